//! Live MPEG-TS over HTTP: `/live/{endpoint}.ts` is the first slot, `/live/{endpoint}/{slot}.ts` any, counted from 1.

use holdfast_core::input::{FeedId, Input};

use super::{not_allowed, not_found};
use crate::http::field::{ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::server::{Call, Server};

/// Watches the feed of a slot.
pub(super) fn watch(call: &mut Call<'_>, request: &Request, first: &str, second: Option<&str>) {
    let Some(feed) = feed(call.server, first, second) else { return call.answer(not_found()) };
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
    let (endpoint, _) = server.edge().endpoint(name)?;
    server.edge().feed_of(endpoint, slot.checked_sub(1)?)
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
