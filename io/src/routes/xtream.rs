//! What clients of Xtream panels ask for: `/player_api.php`, and streams with name and password in their path. The types of its
//! fields are those that clients rely on: numbers as strings where the panels have them so.

mod panel;

use holdfast_core::input::{Input, RefuseReason, TitleId, UserId};
use holdfast_core::playback::{Item, Place};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{live, local, login, long_text, no_users, not_allowed, not_found, read_only, text, title};
use crate::catalog::{Group, Stream};
use crate::http::field::{CACHE_CONTROL, CONTENT_TYPE};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::providers::library::{Cursor, Item as Title, Library, Step};
use crate::providers::{Kind, guide};
use crate::server::{At, Attempt, Call, Inquired, Owner, Polled, Produce, Server, WrongLogin};

/// How much of the guide is told where nobody says how much.
const LISTINGS: usize = 4;
/// The most that is told at once.
const MOST_LISTINGS: usize = 1000;

/// `/player_api.php`: who that is, and with `action` what there is; `/panel_api.php`: all of it at once.
pub(super) fn api(call: &mut Call<'_>, request: &Request) {
    if !matches!(request.method, Method::Get | Method::Head | Method::Options) {
        return call.answer(not_allowed("GET, HEAD, OPTIONS"));
    }
    if call.server.users().is_open() {
        return call.answer(no_users());
    }
    let (name, password) = login::credentials(request).unwrap_or_default();
    let user = match call.log_in(request, &name, &password) {
        Attempt::Is(user) => user,
        // What panels say; clients look at `auth`.
        Attempt::Wrong => return read_only(call, request, wrong),
        Attempt::TooMany(wait) => return call.answer(login::too_many(wait)),
    };
    let action = request.query_value("action").unwrap_or_default();
    if action.is_empty() && !login::status(call, user).may_play() {
        // It says why.
        return read_only(call, request, |call| json(&info(call, request, user, &password)));
    }
    let Some(()) = login::may_look(call, user) else { return };
    let groups = call.server.users().get(user).map_or(&[][..], |own| &own.groups);
    let library = Library::new(call.server.providers(), groups);
    let shelves = local::Shelves::new(call.server.libraries(), groups);
    let number = |name: &str| request.query_value(name).and_then(|value| value.trim().parse::<u32>().ok());
    let category = number("category_id").filter(|category| *category > 0);
    let listing = |kind, (own, before)| Listing { own, before, ..Listing::new(kind, category) };
    if action.is_empty() && request.path.ends_with("/panel_api.php") {
        return panel::all(call, request, user, &password);
    }
    let lists = match &*action {
        "get_live_streams" => Some(listing(Kind::Live, own_streams(call, category))),
        "get_vod_streams" => Some(listing(Kind::Film, shelves.listing(Kind::Film, category))),
        "get_series" => Some(listing(Kind::Series, shelves.listing(Kind::Series, category))),
        _ => None,
    };
    if let Some(listing) = lists {
        if request.method == Method::Options {
            return read_only(call, request, |_| text("application/json", ""));
        }
        return call.produce(long_text("application/json"), Box::new(Listing { library: Some(library), ..listing }));
    }
    let answer = match &*action {
        "get_live_categories" => categories(Some(call), &library, Kind::Live),
        "get_vod_categories" => with(categories(None, &library, Kind::Film), shelves.categories(Kind::Film)),
        "get_series_categories" => with(categories(None, &library, Kind::Series), shelves.categories(Kind::Series)),
        "get_short_epg" => {
            let limit = number("limit").map_or(LISTINGS, |limit| limit as usize);
            listings(call, &library, number("stream_id"), Extent::Next(limit.min(MOST_LISTINGS)))
        }
        "get_simple_data_table" => listings(call, &library, number("stream_id"), Extent::All),
        "get_vod_info" => {
            let local = number("vod_id").and_then(|id| shelves.film_info(id));
            local.unwrap_or_else(|| film(&library, number("vod_id")))
        }
        "get_series_info" if let Some(local) = number("series_id").and_then(|id| shelves.series_info(id)) => local,
        "get_series_info" => match number("series_id").and_then(|id| library.find(Kind::Series, id)) {
            Some(series) if library.is_asked_for(&series) => {
                let title = TitleId(series.key);
                let Some(known) = call.inquire(title) else { return };
                panel_series(call.server, &library, &series, Some(&known))
            }
            Some(series) => listed_series(&library, &series),
            None => json!({ "seasons": [], "info": { "name": null }, "episodes": [] }),
        },
        // So do panels, and clients ask for what each of them calls differently: get_profile, get_server_info.
        _ => info(call, request, user, &password),
    };
    read_only(call, request, |_| json(&answer));
}

/// What a panel said of a series, or that it said nothing.
pub(crate) fn inquired(server: &Server, series: TitleId, known: Option<&Inquired>) -> Response {
    // Whoever waited was let in, and saw the series.
    let library = Library::new(server.providers(), &[]);
    match library.by_key(Kind::Series, series.0) {
        Some(series) => json(&panel_series(server, &library, &series, known)),
        None => json(&json!({ "seasons": [], "info": { "name": null }, "episodes": [] })),
    }
}

/// Name or password is wrong.
fn wrong(call: &mut Call<'_>) -> Response {
    let status = match call.server.settings().wrong_login {
        WrongLogin::Ok => Status::OK,
        WrongLogin::Unauthorized => Status::UNAUTHORIZED,
    };
    let content = json!({ "user_info": { "auth": 0 } }).to_string();
    Response::new(status)
        .header(CONTENT_TYPE, FieldValue::from_static("application/json"))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
        .body(Body::Full(content.into()))
}

fn json(value: &Value) -> Response {
    text("application/json", value.to_string())
}

fn info(call: &Call<'_>, request: &Request, user: UserId, password: &str) -> Value {
    let edge = call.server.edge();
    let (login, limits) = (call.server.users().get(user), edge.config().users.get(user.0 as usize));
    let used: u32 =
        [Place::Normal, Place::Soft, Place::Grace].map(|place| edge.playback().used(user, place)).iter().sum();
    let told = login.map(|login| login.status).unwrap_or_default();
    let status = login::status(call, user).as_str();
    let trial = told == crate::users::Status::Trial;
    let seconds = call.wall();
    let time = Timestamp::from_second(i64::try_from(seconds).unwrap_or_default()).unwrap_or_default();
    let (scheme, authority) = call.origin(request);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port),
        _ => (authority.as_str(), if scheme == "https" { "443" } else { "80" }),
    };
    json!({
        "user_info": {
            "username": login.map(|login| login.name.as_str()),
            "password": password,
            "message": "",
            "auth": 1,
            "status": status,
            "exp_date": login.and_then(|login| login.expires).map(|expires| expires.to_string()),
            "is_trial": if trial { "1" } else { "0" },
            "active_cons": used.to_string(),
            "created_at": "0",
            "max_connections": limits.map_or(0, |limits| limits.max_connections).to_string(),
            "allowed_output_formats": ["m3u8", "ts"],
        },
        "server_info": {
            "url": host,
            "port": port,
            "https_port": if scheme == "https" { port } else { "" },
            "server_protocol": scheme,
            "rtmp_port": "0",
            "timezone": "UTC",
            "timestamp_now": seconds,
            "time_now": time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        },
    })
}

fn category(id: u32, name: &str) -> Value {
    json!({ "category_id": id.to_string(), "category_name": name, "parent_id": 0 })
}

fn categories(call: Option<&Call<'_>>, library: &Library, kind: Kind) -> Value {
    let own = call.map_or(&[][..], |call| call.server.catalog().streams());
    let there = |group: &Group| own.iter().any(|stream| stream.group == *group);
    let own = Group::ALL.into_iter().filter(there).map(|group| category(group.id(), group.name()));
    own.chain(library.categories(kind).into_iter().map(|(id, name)| category(id, name))).collect()
}

/// Categories of providers, and those of this machine that are not among them.
fn with(categories: Value, local: Vec<(u32, &str)>) -> Value {
    let Value::Array(mut all) = categories else { return categories };
    for (id, name) in local {
        let own = category(id, name);
        if !all.contains(&own) {
            all.push(own);
        }
    }
    all.into()
}

/// Streams of this server, and how many there are in all categories.
fn own_streams(call: &Call<'_>, category: Option<u32>) -> (Vec<Value>, usize) {
    let streams = call.server.catalog().streams().iter();
    let count = streams.len();
    let record = |(index, stream): (usize, &Stream)| {
        json!({
            "num": index + 1,
            "name": stream.name,
            "stream_type": "live",
            "stream_id": stream.id,
            "stream_icon": "",
            "epg_channel_id": stream.name,
            "added": "0",
            "is_adult": "0",
            "category_id": stream.group.id().to_string(),
            "category_ids": [stream.group.id()],
            "custom_sid": "",
            "tv_archive": 0,
            "direct_source": "",
            "tv_archive_duration": 0,
        })
    };
    // Its number is the same in whichever category it is looked for.
    let wanted = |stream: &Stream| category.is_none_or(|category| stream.group.id() == category);
    (streams.enumerate().filter(|(_, stream)| wanted(stream)).map(record).collect(), count)
}

/// A list of titles as it is told, piece by piece.
struct Listing {
    /// What is told before.
    own: Vec<Value>,
    /// The number of the last that is told before, in whichever category it is.
    before: usize,
    library: Option<Library>,
    kind: Kind,
    category: Option<u32>,
    place: Cursor,
    begun: bool,
}

impl Listing {
    fn new(kind: Kind, category: Option<u32>) -> Self {
        Listing { own: Vec::new(), before: 0, library: None, kind, category, place: Cursor::default(), begun: false }
    }
}

impl Produce for Listing {
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool {
        for value in std::mem::take(&mut self.own) {
            piece.push(if std::mem::replace(&mut self.begun, true) { b',' } else { b'[' });
            piece.extend_from_slice(value.to_string().as_bytes());
        }
        let Some(library) = &self.library else { return false };
        while piece.len() < about {
            match library.next(&mut self.place, &[self.kind]) {
                Step::Item(item) if self.category.is_some_and(|category| category != item.category()) => {}
                Step::Item(item) => {
                    piece.push(if std::mem::replace(&mut self.begun, true) { b',' } else { b'[' });
                    piece.extend_from_slice(
                        record(library, &item, self.before + self.place.count).to_string().as_bytes(),
                    );
                }
                Step::Pause => break,
                Step::End => {
                    piece.extend_from_slice(if self.begun { b"]" } else { b"[]" });
                    return false;
                }
            }
        }
        true
    }
}

/// A title as lists have it, with its number there. What its provider numbers it may be another one's number, too.
fn record(library: &Library, item: &Title<'_>, number: usize) -> Value {
    let more: Map<String, Value> = serde_json::from_str(item.entry.more).unwrap_or_default();
    let said = |name: &str| more.get(name).and_then(Value::as_str).unwrap_or_default();
    let logo = library.logo(item);
    let (category, added) = (item.category(), item.entry.added.to_string());
    let rating = said("rating").parse::<f64>().unwrap_or_default();
    match item.kind {
        Kind::Live => json!({
            "num": number,
            "name": item.entry.name,
            "stream_type": "live",
            "stream_id": item.id,
            "stream_icon": logo,
            "epg_channel_id": item.entry.guide,
            "added": added,
            "is_adult": "0",
            "category_id": category.to_string(),
            "category_ids": [category],
            "custom_sid": "",
            "tv_archive": u8::from(item.entry.told_days() > 0),
            "direct_source": "",
            "tv_archive_duration": item.entry.told_days(),
        }),
        Kind::Series => json!({
            "num": number,
            "name": item.entry.name,
            "series_id": item.id,
            "cover": logo,
            "plot": said("plot"),
            "cast": "",
            "director": "",
            "genre": said("genre"),
            "releaseDate": said("releaseDate"),
            "last_modified": added,
            "rating": said("rating"),
            "rating_5based": rating / 2.0,
            "backdrop_path": [],
            "youtube_trailer": "",
            "episode_run_time": "0",
            "category_id": category.to_string(),
            "category_ids": [category],
        }),
        Kind::Film | Kind::Episode => json!({
            "num": number,
            "name": item.entry.name,
            "stream_type": "movie",
            "stream_id": item.id,
            "stream_icon": logo,
            "rating": said("rating"),
            "rating_5based": rating / 2.0,
            "added": added,
            "is_adult": "0",
            "category_id": category.to_string(),
            "category_ids": [category],
            "container_extension": item.extension,
            "custom_sid": "",
            "direct_source": "",
        }),
    }
}

fn film(library: &Library, id: Option<u32>) -> Value {
    let Some(item) = id.and_then(|id| library.find(Kind::Film, id)) else { return json!({ "info": [] }) };
    let more: Map<String, Value> = serde_json::from_str(item.entry.more).unwrap_or_default();
    let said = |name: &str| more.get(name).and_then(Value::as_str).unwrap_or_default();
    json!({
        "info": {
            "name": item.entry.name,
            "movie_image": library.logo(&item),
            "plot": said("plot"),
            "genre": said("genre"),
            "rating": said("rating"),
            "releasedate": said("releaseDate"),
        },
        "movie_data": {
            "stream_id": item.id,
            "name": item.entry.name,
            "added": item.entry.added.to_string(),
            "category_id": item.category().to_string(),
            "category_ids": [item.category()],
            "container_extension": item.extension,
            "custom_sid": "",
            "direct_source": "",
        },
    })
}

/// A series with its episodes, season by season.
fn series(library: &Library, own: &Title<'_>, said: &Value, episodes: Vec<(u64, Value)>) -> Value {
    let mut info = record(library, own, 0);
    if let (Some(info), Some(said)) = (info.as_object_mut(), said.as_object()) {
        info.remove("num");
        let ours = ["name", "cover", "category_id", "category_ids", "series_id"];
        info.extend(
            said.iter()
                .filter(|(name, _)| !ours.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    let mut seasons: std::collections::BTreeMap<u64, Vec<Value>> = std::collections::BTreeMap::new();
    for (season, episode) in episodes {
        seasons.entry(season).or_default().push(episode);
    }
    let told: Vec<Value> = seasons
        .iter()
        .map(|(season, all)| {
            json!({
                "id": season, "season_number": season, "name": format!("Season {season}"),
                "episode_count": all.len(), "air_date": "", "overview": "", "cover": "", "cover_big": "",
            })
        })
        .collect();
    let episodes: Map<String, Value> =
        seasons.into_iter().map(|(season, all)| (season.to_string(), all.into())).collect();
    json!({ "seasons": told, "info": info, "episodes": episodes })
}

fn listed_series(library: &Library, own: &Title<'_>) -> Value {
    let episode = |item: Title<'_>| {
        let (_, season, number) = item.entry.episode.unwrap_or_default();
        let told = json!({
            "id": item.id.to_string(),
            "episode_num": number,
            "title": item.entry.name,
            "container_extension": item.extension,
            "info": { "movie_image": library.logo(&item) },
            "custom_sid": "",
            "added": item.entry.added.to_string(),
            "season": season,
            "direct_source": "",
        });
        (u64::from(season), told)
    };
    series(library, own, &Value::Null, library.episodes(own).into_iter().map(episode).collect())
}

fn panel_series(server: &Server, library: &Library, own: &Title<'_>, known: Option<&Inquired>) -> Value {
    let Some(known) = known else { return series(library, own, &Value::Null, Vec::new()) };
    let provider = server.providers().get(known.provider);
    let mut all: Vec<_> = known.episodes.iter().collect();
    all.sort_by_key(|told| (told.season, told.number));
    let episode = |told: &crate::providers::xtream::Told| {
        let id = provider?.episode(told.id, &told.extension)?;
        let value = json!({
            "id": id.client_id().to_string(),
            "episode_num": told.number,
            "title": told.title,
            "container_extension": if told.extension.is_empty() { "mp4" } else { &told.extension },
            "info": told.info,
            "custom_sid": "",
            "added": if told.added.is_empty() { "0" } else { &told.added },
            "season": told.season,
            "direct_source": "",
        });
        Some((told.season, value))
    };
    series(library, own, &known.info, all.into_iter().filter_map(episode).collect())
}

/// How much of the guide.
enum Extent {
    /// So many, from now on.
    Next(usize),
    All,
}

fn listings(call: &Call<'_>, library: &Library, id: Option<u32>, extent: Extent) -> Value {
    let now = call.wall();
    let Some(item) = id.and_then(|id| library.find(Kind::Live, id)) else { return json!({ "epg_listings": [] }) };
    let encoded = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let written = |seconds: u64| {
        let moment = Timestamp::from_second(i64::try_from(seconds).unwrap_or_default()).unwrap_or_default();
        moment.strftime("%Y-%m-%d %H:%M:%S").to_string()
    };
    let all = library.programmes(&item);
    let wanted: Vec<_> = match extent {
        Extent::Next(limit) => all.filter(|(own, _)| own.stop > now).take(limit).collect(),
        Extent::All => all.take(MOST_LISTINGS).collect(),
    };
    let archived = u64::from(item.entry.told_days()) * 24 * 3600;
    let told = wanted.into_iter().map(|(own, element)| {
        let (title, description) = guide::words(element);
        let mut told = json!({
            "id": own.start.to_string(),
            "epg_id": item.id.to_string(),
            "title": encoded(&title),
            "lang": "",
            "start": written(own.start),
            "end": written(own.stop),
            "description": encoded(&description),
            "channel_id": item.entry.guide,
            "start_timestamp": own.start.to_string(),
            "stop_timestamp": own.stop.to_string(),
        });
        if matches!(extent, Extent::All) {
            told["now_playing"] = u8::from(own.start <= now && now < own.stop).into();
            told["has_archive"] = u8::from(own.start < now && own.start + archived > now).into();
        }
        told
    });
    json!({ "epg_listings": told.collect::<Vec<Value>>() })
}

/// A stream as `/live/{name}/{password}/{file}` and `/{name}/{password}/{file}` name it: `12`, `12.ts`, `12.m3u8`, and `12.mpd` for
/// one that comes as DASH.
pub(super) struct File {
    id: u32,
    hls: bool,
    dash: bool,
}

impl File {
    /// Reads a file's name.
    pub fn parse(file: &str) -> Option<File> {
        let (id, extension) = file.split_once('.').unwrap_or((file, "ts"));
        // One stream, one address.
        let number = id.parse().ok().filter(|number: &u32| number.to_string() == id)?;
        let known = matches!(extension, "ts" | "m3u8" | "mpd");
        known.then_some(File { id: number, hls: extension == "m3u8", dash: extension == "mpd" })
    }
}

/// Plays a stream for the user that these are right for.
pub(super) fn play(call: &mut Call<'_>, request: &Request, (name, password): (&str, &str), file: &File, at: At) {
    if call.came_through(request).is_none() {
        return call.answer(title::comes_from_here(call.server));
    }
    if call.server.users().is_open() {
        return call.answer(no_users());
    }
    let Some(user) = login::user(call, request, name, password) else { return };
    let own = call.server.catalog().get(file.id).map(|stream| stream.feed).filter(|_| !file.dash);
    let polled = match own {
        Some(feed) => Polled::Feed(feed),
        None => match tunable(call, request, user, file) {
            Some(title) => Polled::Title(title),
            None => return,
        },
    };
    match request.method {
        Method::Get | Method::Head if file.hls => {
            let owner = Owner { user, client: login::player(call, request) };
            super::hls::begin(call, request.method, Some(owner), (polled, at));
        }
        Method::Get | Method::Head => watch(call, request, user, (polled, file.id)),
        _ => call.answer(not_allowed("GET, HEAD")),
    }
}

/// A live title of a provider's that becomes a feed here; the request is answered where it is none.
fn tunable(call: &mut Call<'_>, request: &Request, user: UserId, file: &File) -> Option<TitleId> {
    let found = call.title(user, Kind::Live, file.id).filter(|title| !file.dash || title.extension == "mpd");
    let Some(title) = found else {
        call.answer(not_found());
        return None;
    };
    (!title::live(call, request, user, (&title, file.id), file.hls)).then_some(title.title)
}

/// Watches a feed as it comes.
fn watch(call: &mut Call<'_>, request: &Request, user: UserId, (polled, id): (Polled, u32)) {
    if request.method == Method::Head {
        let others = live::feed_of(call.server, polled).is_none_or(|feed| live::not_in_a_circle(call, request, feed));
        if others {
            let owner = Owner { user, client: login::player(call, request) };
            live::look(call, Some(owner), polled);
        }
        return;
    }
    let feed = match polled {
        Polled::Feed(feed) => Some(feed),
        Polled::Title(title) => call.server.tune(call.now, title),
    };
    // The core takes no more titles at present.
    let Some(feed) = feed else { return call.answer(super::refused(RefuseReason::Busy, None)) };
    if !live::not_in_a_circle(call, request, feed) {
        return;
    }
    let viewing = login::of(call, request, user, Item::LiveTs(feed));
    call.ask(|request| Input::Play { request, viewing });
    if let Polled::Title(title) = polled {
        call.asks_for_title(title, id);
    }
}
