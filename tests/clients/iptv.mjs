// What other people's clients make of an edge: npm's @iptv/xtream-api, @iptv/playlist and @iptv/xmltv.
//
//     node iptv.mjs MODULES EDGE NAME PASSWORD
//
// Prints one line of JSON with what each of them read.

import { createRequire } from "node:module";

const [modules, url, username, password] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Xtream } = require("@iptv/xtream-api");
const { parseM3U } = require("@iptv/playlist");
const { parseXmltv } = require("@iptv/xmltv");

const failure = async (promise) => promise.then(() => null, (error) => error.message);

async function xtream(serializer, preferredFormat) {
  const client = new Xtream({ url, username, password, preferredFormat, serializer });
  const channels = await client.getChannels();
  const categories = await client.getChannelCategories();
  const read = (list) => list?.data ?? list;
  const of = (category) => category.category_id ?? category.categoryId ?? category.id;
  return {
    profile: await client.getProfile(),
    server: await client.getServerInfo(),
    categories,
    channels,
    each: await Promise.all(read(categories).map((own) => client.getChannels({ categoryId: of(own) }))),
    nothing: [
      await client.getMovieCategories(),
      await client.getShowCategories(),
      await client.getMovies(),
      await client.getShows(),
    ].map((list) => read(list).length),
    epg: [await client.getShortEPG({ channelId: "1" }), await client.getFullEPG({ channelId: "1" })],
    missing: [await failure(client.getMovie({ movieId: "1" })), await failure(client.getShow({ showId: "1" }))],
  };
}

const list = await (await fetch(`${url}/get.php?username=${username}&password=${password}&type=m3u_plus`)).text();
const playlist = parseM3U(list);
const guide = await (await fetch(playlist.headers["url-tvg"] ?? playlist.headers.urlTvg)).text();

const answer = {
  none: await xtream(undefined, "ts"),
  hls: (await xtream(undefined, "m3u8")).channels.map((channel) => channel.url),
  standardized: await xtream(require("@iptv/xtream-api/standardized").standardizedSerializer),
  camelcase: await xtream(require("@iptv/xtream-api/camelcase").camelCaseSerializer),
  jsonapi: await xtream(require("@iptv/xtream-api/jsonapi").JSONAPISerializer),
  wrong: await new Xtream({ url, username, password: `${password}x` }).getProfile(),
  playlist,
  guide: parseXmltv(guide),
};
console.log(JSON.stringify(answer));
