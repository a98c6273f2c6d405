//! What clients of Xtream panels ask for: `/player_api.php`, and streams with name and password in their path. The types of its
//! fields are those that clients rely on: numbers as strings where the panels have them so.

use holdfast_core::input::{FeedId, Input, UserId};
use holdfast_core::playback::{Item, Place};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{live, login, not_allowed, not_found, read_only, text, title};
use crate::catalog::{Group, Stream};
use crate::http::{Method, Request, Response};
use crate::providers::Kind;
use crate::server::{At, Attempt, Call, Joining};

/// `/player_api.php`: who that is, and with `action` what there is.
pub(super) fn api(call: &mut Call<'_>, request: &Request) {
    if !matches!(request.method, Method::Get | Method::Head | Method::Options) {
        return call.answer(not_allowed("GET, HEAD, OPTIONS"));
    }
    if call.server.users().is_open() {
        return call.answer(not_found());
    }
    let (name, password) = login::credentials(request).unwrap_or_default();
    let user = match call.log_in(request, &name, &password) {
        Attempt::Is(user) => user,
        // What panels say; clients look at `auth`.
        Attempt::Wrong => return read_only(call, request, |_| json(&json!({ "user_info": { "auth": 0 } }))),
        Attempt::TooMany(wait) => return call.answer(login::too_many(wait)),
    };
    let action = request.query_value("action").unwrap_or_default();
    let category = request.query_value("category_id").and_then(|id| id.parse::<u32>().ok());
    let answer = match &*action {
        "get_live_categories" => categories(call),
        "get_live_streams" => streams(call, category),
        "get_vod_categories" | "get_series_categories" | "get_vod_streams" | "get_series" => json!([]),
        "get_short_epg" | "get_simple_data_table" => json!({ "epg_listings": [] }),
        "get_vod_info" => json!({ "info": [] }),
        "get_series_info" => json!({ "seasons": [], "info": { "name": null }, "episodes": [] }),
        // So do panels, and clients ask for what each of them calls differently: get_profile, get_server_info.
        _ => info(call, request, user, &password),
    };
    read_only(call, request, |_| json(&answer));
}

fn json(value: &Value) -> Response {
    text("application/json", value.to_string())
}

fn info(call: &Call<'_>, request: &Request, user: UserId, password: &str) -> Value {
    let edge = call.server.edge();
    let (login, limits) = (call.server.users().get(user), edge.config().users.get(user.0 as usize));
    let used: u32 =
        [Place::Normal, Place::Soft, Place::Grace].map(|place| edge.playback().used(user, place)).iter().sum();
    let expired = limits.is_some_and(|limits| limits.until.is_some_and(|until| until <= call.now));
    let status = match limits {
        Some(limits) if limits.enabled && !expired => "Active",
        Some(limits) if limits.enabled => "Expired",
        _ => "Disabled",
    };
    let seconds = call.server.settings().epoch + call.now.as_micros() / 1_000_000;
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
            "is_trial": "0",
            "active_cons": used.to_string(),
            "created_at": "0",
            "max_connections": limits.map_or(0, |limits| limits.max_connections).to_string(),
            "allowed_output_formats": ["m3u8", "ts"],
        },
        "server_info": {
            "url": host,
            "port": port,
            "https_port": if scheme == "https" { port } else { "443" },
            "server_protocol": scheme,
            "rtmp_port": "0",
            "timezone": "UTC",
            "timestamp_now": seconds,
            "time_now": time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        },
    })
}

fn categories(call: &Call<'_>) -> Value {
    let streams = call.server.catalog().streams();
    let there = |group: &Group| streams.iter().any(|stream| stream.group == *group);
    let category =
        |group: Group| json!({ "category_id": group.id().to_string(), "category_name": group.name(), "parent_id": 0 });
    Group::ALL.into_iter().filter(there).map(category).collect()
}

fn streams(call: &Call<'_>, category: Option<u32>) -> Value {
    let streams = call.server.catalog().streams().iter();
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
    streams.enumerate().filter(|(_, stream)| wanted(stream)).map(record).collect()
}

/// A stream as `/live/{name}/{password}/{file}` and `/{name}/{password}/{file}` name it: `12`, `12.ts`, `12.m3u8`.
pub(super) struct File {
    id: u32,
    hls: bool,
}

impl File {
    /// Reads a file's name.
    pub fn parse(file: &str) -> Option<File> {
        let (id, hls) = match file.split_once('.') {
            None | Some((_, "ts")) => (file.split('.').next()?, false),
            Some((id, "m3u8")) => (id, true),
            Some(_) => return None,
        };
        // One stream, one address.
        let number = id.parse().ok().filter(|number: &u32| number.to_string() == id)?;
        Some(File { id: number, hls })
    }
}

/// Plays a stream for the user that these are right for.
pub(super) fn play(call: &mut Call<'_>, request: &Request, (name, password): (&str, &str), file: &File, at: At) {
    if call.server.users().is_open() {
        return call.answer(not_found());
    }
    let Some(user) = login::user(call, request, name, password) else { return };
    let Some(feed) = call.server.catalog().get(file.id).map(|stream| stream.feed) else {
        let title = call.server.providers().find(Kind::Live, file.id);
        if title.is_none_or(|title| !title::live(call, request, user, &title, file.hls)) {
            call.answer(not_found());
        }
        return;
    };
    if !live::not_in_a_circle(call, request, feed) {
        return;
    }
    match request.method {
        Method::Get => begin(call, request, user, feed, file.hls.then_some(at)),
        // Nobody is counted for looking.
        Method::Head if file.hls => call.answer(super::hls::playlist_head()),
        Method::Head => call.answer(live::stream(call.server, feed)),
        _ => call.answer(not_allowed("GET, HEAD")),
    }
}

fn begin(call: &mut Call<'_>, request: &Request, user: UserId, feed: FeedId, hls: Option<At>) {
    let item = if hls.is_some() { Item::LiveHls(feed) } else { Item::LiveTs(feed) };
    let viewing = login::of(call, request, user, item);
    match hls {
        Some(at) => call.join_to_poll(feed, Some(viewing), Joining::ForIndex(at)),
        None => drop(call.ask(|request| Input::Play { request, viewing })),
    }
}
