//! What an operator sees: every endpoint, slot, session, feed, channel; and how a session is ended by hand.

pub(crate) mod accounts;
pub(super) mod channels;
mod libraries;
mod providers;
mod users;

use holdfast_core::feed::FeedStatus;
use holdfast_core::id::Id;
use holdfast_core::input::{Arrivals, EndReason, EndpointId, FeedId, Input, RefuseReason, SessionId, ViewerEnd};
use holdfast_core::publish::EndpointState;
use holdfast_core::time::Time;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{not_allowed, not_found, read_only, text};
use crate::http::field::WWW_AUTHENTICATE;
use crate::http::{FieldValue, Method, Request, Response, Status};
use crate::server::{Call, Server};

/// A read-only page that takes an API token, where there are any.
pub(super) fn guarded(call: &mut Call<'_>, request: &Request, answer: impl FnOnce(&mut Call<'_>) -> Response) {
    let tokens = &call.server.settings().api_tokens;
    if request.method != Method::Options && !tokens.is_empty() && !has_token(call, request) {
        return call.answer(unauthorized());
    }
    read_only(call, request, answer);
}

fn has_token(call: &Call<'_>, request: &Request) -> bool {
    let authorization = request.headers.get("Authorization");
    holdfast_core::publish::bearer_is_one_of(&call.server.settings().api_tokens, authorization)
}

fn unauthorized() -> Response {
    let detail = "the API takes one of its tokens, as Authorization: Bearer TOKEN";
    Response::problem(Status::UNAUTHORIZED, "unauthorized", "Unauthorized", detail)
        .header(WWW_AUTHENTICATE, FieldValue::from_static("Bearer realm=\"holdfast\""))
}

/// `DELETE /api/sessions/{id}` ends a session by hand.
pub(super) fn session(call: &mut Call<'_>, request: &Request, id: &str) {
    if !may_end(call, request) {
        return;
    }
    let live =
        parse(id).filter(|id| call.server.edge().publish().session(*id).is_some_and(|session| session.is_live()));
    let Some(session) = live else { return call.answer(not_found()) };
    call.tell(Input::End { session, reason: EndReason::Kicked });
    call.answer(Response::new(Status::NO_CONTENT));
}

/// `DELETE /api/playbacks/{id}?block=SECONDS` ends a playback by hand; its player may not come back for so long.
pub(super) fn playback(call: &mut Call<'_>, request: &Request, id: &str) {
    if !may_end(call, request) {
        return;
    }
    let block = match request.query_value("block").map(|block| block.parse::<u32>()) {
        None => 0,
        Some(Ok(seconds)) => u64::from(seconds) * 1_000_000,
        Some(Err(_)) => {
            let detail = "block is a whole number of seconds: /api/playbacks/3.1?block=10";
            return call.answer(Response::problem(Status::BAD_REQUEST, "bad-block", "Bad Request", detail));
        }
    };
    let there = parse(id).filter(|id| call.server.edge().playback().get(*id).is_some());
    let Some(playback) = there else { return call.answer(not_found()) };
    call.tell(Input::Kick { playback, block });
    call.answer(Response::new(Status::NO_CONTENT));
}

/// Whether this may end what others do; answers the request if not.
fn may_end(call: &mut Call<'_>, request: &Request) -> bool {
    if request.method != Method::Delete {
        call.answer(not_allowed("DELETE"));
        return false;
    }
    may_operate(call, request, "sessions and playbacks are ended")
}

/// Whether whoever asks operates this server; answers the request if not. Without API tokens only this machine does. `what` is
/// for no others.
pub(super) fn may_operate(call: &mut Call<'_>, request: &Request, what: &str) -> bool {
    let open = call.server.settings().api_tokens.is_empty();
    // Behind a proxy on this machine everybody seems to be on it.
    let proxied =
        ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"].iter().any(|name| request.headers.get(name).is_some());
    let allowed = if open {
        !proxied && call.peer().is_some_and(|peer| peer.ip().is_loopback())
    } else {
        has_token(call, request)
    };
    if allowed {
        return true;
    }
    if open {
        let detail = format!("without an API token in the configuration, {what} from this machine only");
        call.answer(Response::problem(Status::FORBIDDEN, "forbidden", "Forbidden", &detail));
    } else {
        call.answer(unauthorized());
    }
    false
}

/// An id as the status shows it: place and generation, `3.1`.
fn parse<Kind>(id: &str) -> Option<Id<Kind>> {
    let (index, generation) = id.split_once('.')?;
    Some(Id::from_parts(index.parse().ok()?, generation.parse().ok()?))
}

#[derive(Serialize)]
struct StatusPage {
    version: &'static str,
    uptime_seconds: f64,
    draining: bool,
    connections: usize,
    endpoints: Vec<Endpoint>,
    channels: Vec<channels::Channel>,
    providers: Vec<providers::Provider>,
    libraries: Vec<libraries::Library>,
    users: Vec<users::User>,
    stale_inputs: u64,
}

#[derive(Serialize)]
struct Endpoint {
    name: String,
    publish: String,
    media: &'static str,
    takeover: &'static str,
    /// Whether it takes publishers without a token.
    open: bool,
    waiting: usize,
    offers: u64,
    accepted: u64,
    refused: Map<String, Value>,
    ended: Map<String, Value>,
    slots: Vec<Slot>,
}

#[derive(Serialize)]
struct Slot {
    slot: usize,
    state: &'static str,
    feed: String,
    viewers: usize,
    viewers_waiting: usize,
    viewers_ended: Map<String, Value>,
    bytes_in: u64,
    bytes_out: u64,
    last_output_ms: Option<u64>,
    key_frame_age_ms: Option<u64>,
    unusable_units: Unusable,
    session: Option<Session>,
}

/// Units that could not go into the stream as they came, over all sessions of the slot.
#[derive(Default, Serialize)]
struct Unusable {
    late: u64,
    nudged: u64,
    before_key_frame: u64,
    broken: u64,
}

#[derive(Serialize)]
struct Session {
    id: String,
    /// `negotiating`, `connecting` (answered, no media yet), `live`, `silent`, `ending`.
    state: &'static str,
    age_ms: u64,
    audio: Track,
    video: Track,
    control: Track,
    dropped_units: u64,
    ice_sessions: u64,
}

#[derive(Serialize)]
struct Track {
    packets: u64,
    idle_ms: Option<u64>,
}

/// `GET /api/status`
pub(super) fn status(call: &mut Call<'_>) -> Response {
    let (server, now) = (&*call.server, call.now);
    let edge = server.edge();
    let endpoints = edge.config().endpoints.iter().zip(edge.publish().endpoints()).enumerate();
    let page = StatusPage {
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: now.as_micros() as f64 / 1e6,
        draining: server.is_draining(),
        connections: server.connection_count(),
        endpoints: endpoints
            .map(|(id, (own, state))| endpoint(server, now, EndpointId(id as u32), own, state))
            .collect(),
        channels: channels::channels(server, now),
        providers: providers::providers(server, now),
        libraries: libraries::libraries(server, now),
        users: users::users(server, now),
        stale_inputs: edge.publish().stale()
            + edge.pull().stale()
            + edge.playback().stale()
            + edge.feeds().ignored()
            + edge.accounts().stale(),
    };
    json(&page)
}

/// What a page needs to know of an endpoint before it publishes or watches.
#[derive(Serialize)]
struct Offered<'a> {
    name: &'a str,
    publish: String,
    media: &'static str,
    open: bool,
    slots: Vec<Watch>,
}

#[derive(Serialize)]
struct Watch {
    slot: usize,
    feed: String,
}

/// `GET /api/endpoints`: what is configured, for everybody; nothing of what happens.
pub(super) fn endpoints(server: &Server) -> Response {
    let all = server.edge().config().endpoints.iter().map(|own| Offered {
        name: &own.name,
        publish: format!("/whip/{}", own.name),
        media: own.media.as_str(),
        open: own.tokens.is_empty(),
        slots: (0..own.slots as usize).map(|slot| Watch { slot: slot + 1, feed: feed_path(&own.name, slot) }).collect(),
    });
    let all: Vec<Offered<'_>> = all.collect();
    json(&serde_json::json!({ "endpoints": all }))
}

fn json(page: &impl Serialize) -> Response {
    match serde_json::to_vec_pretty(page) {
        Ok(json) => text("application/json", json),
        Err(error) => Response::problem(
            Status::INTERNAL_SERVER_ERROR,
            "status",
            "No status",
            &format!("cannot be written: {error}"),
        ),
    }
}

fn endpoint(
    server: &Server,
    now: Time,
    id: EndpointId,
    own: &holdfast_core::config::Endpoint,
    state: EndpointState<'_>,
) -> Endpoint {
    let counts = state.counts;
    let slots = state.holders().enumerate().map(|(slot, holder)| {
        let feed = server.edge().feed_of(id, slot);
        self::slot(server, now, &own.name, (slot, feed), holder)
    });
    Endpoint {
        name: own.name.clone(),
        publish: format!("/whip/{}", own.name),
        media: own.media.as_str(),
        takeover: own.takeover.as_str(),
        open: own.tokens.is_empty(),
        waiting: state.waiting(),
        offers: counts.offers,
        accepted: counts.accepted,
        refused: words(RefuseReason::ALL.iter().map(|reason| reason.as_str()).zip(counts.refused)),
        ended: words(EndReason::ALL.iter().map(|reason| reason.as_str()).zip(counts.ended)),
        slots: slots.collect(),
    }
}

fn words<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> Map<String, Value> {
    counts.filter(|(_, count)| *count > 0).map(|(word, count)| (word.to_owned(), Value::from(count))).collect()
}

/// Where the feed of a slot (from 0) is watched, or that of a channel, which has one.
pub(super) fn feed_path(endpoint: &str, slot: usize) -> String {
    if slot == 0 { format!("/live/{endpoint}.ts") } else { format!("/live/{endpoint}/{}.ts", slot + 1) }
}

fn millis(now: Time, since: Time) -> u64 {
    now.since(since).as_millis() as u64
}

fn slot(
    server: &Server,
    now: Time,
    endpoint: &str,
    (slot, feed): (usize, Option<FeedId>),
    holder: Option<SessionId>,
) -> Slot {
    let counts = feed.and_then(|feed| server.publishers().muxer(feed)).map(|muxer| muxer.counts());
    let feed: Option<FeedStatus> = feed.and_then(|feed| server.edge().feeds().status(now, feed));
    let ended = |feed: &FeedStatus| words(ViewerEnd::ALL.iter().map(|end| (end.as_str(), feed.ends.of(*end))));
    Slot {
        slot: slot + 1,
        state: if holder.is_some() { "held" } else { "free" },
        feed: feed_path(endpoint, slot),
        viewers: feed.as_ref().map_or(0, |feed| feed.viewers),
        viewers_waiting: feed.as_ref().map_or(0, |feed| feed.waiting),
        viewers_ended: feed.as_ref().map(ended).unwrap_or_default(),
        bytes_in: feed.as_ref().map_or(0, |feed| feed.bytes_in),
        bytes_out: feed.as_ref().map_or(0, |feed| feed.bytes_out),
        last_output_ms: feed.as_ref().and_then(|feed| feed.last_push).map(|at| millis(now, at)),
        key_frame_age_ms: feed.as_ref().and_then(|feed| feed.random_access_age).map(|age| age.as_millis() as u64),
        unusable_units: counts.map_or_else(Unusable::default, |counts| Unusable {
            late: counts.late,
            nudged: counts.nudged,
            before_key_frame: counts.before_key,
            broken: counts.unusable,
        }),
        session: holder.and_then(|id| session_status(server, now, id)),
    }
}

/// What a person calls a session that has sent nothing for this long, in ms.
const SILENT: u64 = 1000;

fn session_status(server: &Server, now: Time, id: SessionId) -> Option<Session> {
    let session = server.edge().publish().session(id)?;
    let publisher = server.publishers().get(id);
    let evidence = publisher.map(|publisher| publisher.activity.evidence()).unwrap_or_default();
    let track =
        |arrivals: Arrivals| Track { packets: arrivals.count, idle_ms: arrivals.last.map(|last| millis(now, last)) };
    let state = match evidence.last_media() {
        _ if !session.is_live() => "ending",
        _ if !session.is_answered() => "negotiating",
        None => "connecting",
        Some(last) if millis(now, last) < SILENT => "live",
        Some(_) => "silent",
    };
    Some(Session {
        id: id.to_string(),
        state,
        age_ms: millis(now, session.created),
        audio: track(evidence.audio),
        video: track(evidence.video),
        control: track(evidence.control),
        dropped_units: publisher.map_or(0, |publisher| publisher.activity.dropped()),
        ice_sessions: publisher.map_or(0, |publisher| publisher.ice),
    })
}
