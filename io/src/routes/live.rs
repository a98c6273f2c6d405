//! Live MPEG-TS over HTTP: `/live/{endpoint}.ts` is the first slot, `/live/{endpoint}/{slot}.ts` any, counted from 1,
//! `/live/{channel}.ts` a channel.

use holdfast_core::input::{FeedId, Input};

use super::{not_allowed, not_found};
use crate::http::field::{ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use crate::http::{Body, FieldValue, Method, Request, Response, Status, Via};
use crate::server::{Call, Server};

/// Watches the feed of a slot.
pub(super) fn watch(call: &mut Call<'_>, request: &Request, first: &str, second: Option<&str>) {
    let Some(feed) = feed(call.server, first, second) else { return call.answer(not_found()) };
    if let Some(channel) = call.server.edge().pull().channel_of(feed) {
        let Ok(via) = Via::of(&request.headers, &call.server.settings().pseudonym()) else {
            return call.answer(comes_from_here());
        };
        call.server.came_through(channel, via);
    }
    match request.method {
        Method::Get => {
            call.ask(|request| Input::Join { request, feed });
        }
        // Nobody is counted for looking.
        Method::Head => call.answer(stream()),
        Method::Options => {
            let allow = FieldValue::from_static("GET, HEAD, OPTIONS");
            call.answer(Response::new(Status::NO_CONTENT).header(ALLOW, allow));
        }
        _ => call.answer(not_allowed("GET, HEAD, OPTIONS")),
    }
}

/// A channel is asked for by itself.
fn comes_from_here() -> Response {
    let detail = "this channel is fetched from here in a circle: one of its sources leads back to this server";
    Response::problem(Status::LOOP_DETECTED, "loop", "Loop Detected", detail)
}

fn feed(server: &Server, first: &str, second: Option<&str>) -> Option<FeedId> {
    let (name, slot) = match second {
        None => (first.strip_suffix(".ts")?, 1),
        Some(file) => {
            let number = file.strip_suffix(".ts")?;
            let slot = number.parse::<usize>().ok()?;
            // One feed, one address.
            (slot.to_string() == number).then_some((first, slot))?
        }
    };
    if let Some((endpoint, _)) = server.edge().endpoint(name) {
        return server.edge().feed_of(endpoint, slot.checked_sub(1)?);
    }
    let (channel, _) = server.edge().channel(name).filter(|_| second.is_none())?;
    server.edge().pull().feed_of(channel)
}

/// The head of a live stream: 200 whatever range was asked for, since players take a 206 of unknown size for something to
/// seek in; ended by the connection's end.
pub(crate) fn stream() -> Response {
    Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static("video/mp2t"))
        .header(ACCEPT_RANGES, FieldValue::from_static("none"))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
        .body(Body::Stream)
}
