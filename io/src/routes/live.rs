//! Live MPEG-TS over HTTP: `/live/{endpoint}.ts` is the first slot, `/live/{endpoint}/{slot}.ts` any, counted from 1,
//! `/live/{channel}.ts` a channel.

use bytes::Bytes;
use holdfast_core::input::{FeedId, Input};
use holdfast_core::playback::Item;

use super::{login, not_allowed, not_found};
use crate::http::field::{ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_TYPE, VIA};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::server::{Call, Server};

/// Watches the feed of a slot or a channel.
pub(super) fn watch(call: &mut Call<'_>, request: &Request, first: &str, second: Option<&str>) {
    let (name, slot) = match second {
        None => (first.strip_suffix(".ts"), None),
        Some(file) => (Some(first), file.strip_suffix(".ts")),
    };
    let Some(name) = name.filter(|_| second.is_some() == slot.is_some()) else { return call.answer(not_found()) };
    let Some(feed) = enter(call, request, name, slot) else { return };
    match request.method {
        Method::Get => {
            let Some(viewing) = login::viewing(call, request, Item::LiveTs(feed)) else { return };
            call.ask(|request| match viewing {
                Some(viewing) => Input::Play { request, viewing },
                None => Input::Join { request, feed },
            });
        }
        // Nobody is counted for looking.
        Method::Head => call.answer(stream(call.server, feed)),
        Method::Options => {
            let allow = FieldValue::from_static("GET, HEAD, OPTIONS");
            call.answer(Response::new(Status::NO_CONTENT).header(ALLOW, allow));
        }
        _ => call.answer(not_allowed("GET, HEAD, OPTIONS")),
    }
}

/// The feed of a slot, counted from 1, or of a channel; answers the request if it cannot have it.
pub(super) fn enter(call: &mut Call<'_>, request: &Request, name: &str, slot: Option<&str>) -> Option<FeedId> {
    let Some(feed) = feed(call.server, name, slot) else {
        call.answer(not_found());
        return None;
    };
    not_in_a_circle(call, request, feed).then_some(feed)
}

/// Whether the feed is not asked for by itself; answers the request if it is.
pub(super) fn not_in_a_circle(call: &mut Call<'_>, request: &Request, feed: FeedId) -> bool {
    let Some(channel) = call.server.edge().pull().channel_of(feed) else { return true };
    let via = call.came_through(request);
    let others = call.server.is_asked_by_others(channel, via);
    if !others {
        call.answer(comes_from_here());
    }
    others
}

/// A channel is asked for by itself.
fn comes_from_here() -> Response {
    let detail = "this channel is fetched from here in a circle: one of its sources leads back to this server";
    Response::problem(Status::LOOP_DETECTED, "loop", "Loop Detected", detail)
}

fn feed(server: &Server, name: &str, slot: Option<&str>) -> Option<FeedId> {
    let number = match slot {
        None => 1,
        // One feed, one address.
        Some(text) => text.parse::<usize>().ok().filter(|number| number.to_string() == text)?,
    };
    if let Some((endpoint, _)) = server.edge().endpoint(name) {
        return server.edge().feed_of(endpoint, number.checked_sub(1)?);
    }
    let (channel, _) = server.edge().channel(name).filter(|_| slot.is_none())?;
    server.edge().pull().feed_of(channel)
}

/// The head of a live stream: 200 whatever range was asked for, since players take a 206 of unknown size for something to
/// seek in; ended by the connection's end.
///
/// It says which servers the stream comes through: an edge that finds itself among them would get its own stream back.
pub(crate) fn stream(server: &Server, feed: FeedId) -> Response {
    let channel = server.edge().pull().channel_of(feed);
    let via = channel.map(|channel| server.comes_through(channel)).unwrap_or_default();
    Response::new(Status::OK)
        .header(VIA, via.through(&server.settings().pseudonym()))
        .header(CONTENT_TYPE, FieldValue::from_static("video/mp2t"))
        .header(ACCEPT_RANGES, FieldValue::from_static("none"))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
        .body(Body::Stream)
}

/// What is shown in place of a refusal: a clip, once.
pub(crate) fn slate(clip: Bytes) -> Response {
    Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static("video/mp2t"))
        .header(ACCEPT_RANGES, FieldValue::from_static("none"))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
        .body(Body::Full(clip))
        .close()
}
