// What other people's clients make of films, series and the past: npm's @iptv/xtream-api and @iptv/playlist.
//
//     node titles.mjs MODULES EDGE NAME PASSWORD
//
// Prints one line of JSON with what each of them read.

import { createRequire } from "node:module";

const [modules, url, username, password] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Xtream } = require("@iptv/xtream-api");
const { parseM3U } = require("@iptv/playlist");

const client = new Xtream({ url, username, password, preferredFormat: "ts" });
const movies = await client.getMovies();
const shows = await client.getShows();
const channels = await client.getChannels();
const archive = channels.find((channel) => Number(channel.tv_archive) === 1);
const start = new Date(Date.UTC(2026, 10, 30, 10, 0));

const list = await (await fetch(`${url}/get.php?username=${username}&password=${password}&type=m3u_plus`)).text();

const answer = {
  movies,
  movie: await client.getMovie({ movieId: String(movies[0].stream_id) }),
  movieCategories: await client.getMovieCategories(),
  shows,
  show: await client.getShow({ showId: String(shows[0].series_id) }),
  showCategories: await client.getShowCategories(),
  channels,
  epg: await client.getShortEPG({ channelId: String(channels[0].stream_id) }),
  standardized: await new Xtream({
    url, username, password, serializer: require("@iptv/xtream-api/standardized").standardizedSerializer,
  }).getMovies(),
  past: archive && client.generateStreamUrl({
    type: "channel", streamId: archive.stream_id, extension: "ts", timeshift: { duration: 60, start },
  }),
  playlist: parseM3U(list),
};
console.log(JSON.stringify(answer));
