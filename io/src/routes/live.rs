//! Live MPEG-TS over HTTP: `/live/{endpoint}.ts` is the first slot, `/live/{endpoint}/{slot}.ts` any, counted from 1,
//! `/live/{channel}.ts` a channel.

use bytes::Bytes;
use holdfast_core::input::{FeedId, Input, ProviderId, RefuseReason, Viewing};
use holdfast_core::playback::Item;

use super::{login, not_allowed, not_found};
use crate::http::field::{ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_TYPE, VIA};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::server::{Call, Owner, Polled, Server};

/// Watches the feed of a slot or a channel.
pub(super) fn watch(call: &mut Call<'_>, request: &Request, first: &str, second: Option<&str>) {
    let (name, slot) = match second {
        None => (first.strip_suffix(".ts"), None),
        Some(file) => (Some(first), file.strip_suffix(".ts")),
    };
    let Some(name) = name.filter(|_| second.is_some() == slot.is_some()) else { return call.answer(not_found()) };
    let Some(feed) = enter(call, request, name, slot) else { return };
    match request.method {
        Method::Get | Method::Head => {
            let Some(viewing) = login::viewing(call, request, Item::LiveTs(feed)) else { return };
            if request.method == Method::Head {
                let owner = viewing.map(|Viewing { user, client, .. }| Owner { user, client });
                return look(call, owner, Polled::Feed(feed));
            }
            call.ask(|request| match viewing {
                Some(viewing) => Input::Play { request, viewing },
                None => Input::Join { request, feed },
            });
        }
        Method::Options => {
            let allow = FieldValue::from_static("GET, HEAD, OPTIONS");
            call.answer(Response::new(Status::NO_CONTENT).header(ALLOW, allow));
        }
        _ => call.answer(not_allowed("GET, HEAD, OPTIONS")),
    }
}

/// Answers HEAD of a live stream: nobody is counted for looking, nothing is opened, and it says what GET would at once.
pub(super) fn look(call: &mut Call<'_>, owner: Option<Owner>, polled: Polled) {
    let answer = match refusal(call, owner, polled, Item::LiveTs) {
        Some((reason, _)) if let Some(clip) = call.server.settings().slates.of(reason) => slate(clip.data()),
        Some((reason, why)) => super::refused(reason, why.as_deref()),
        None => stream(call.server, feed_of(call.server, polled)),
    };
    call.answer(answer);
}

/// Why whoever wants to watch this now would be refused at once, whoever else plays, and what more there is to say of it. `item` is
/// what a feed is for them.
pub(super) fn refusal(
    call: &Call<'_>,
    owner: Option<Owner>,
    polled: Polled,
    item: fn(FeedId) -> Item,
) -> Option<(RefuseReason, Option<String>)> {
    let edge = call.server.edge();
    if let Some(feed) = feed_of(call.server, polled) {
        let viewing = owner.map(|Owner { user, client }| Viewing { user, item: item(feed), client });
        let reason = edge.refuses(call.now, viewing.as_ref(), feed)?;
        let channel = edge.pull().channel_of(feed);
        return Some((reason, channel.and_then(|channel| call.server.lack_of(channel, reason))));
    }
    let (Polled::Title(title), Some(Owner { user, .. })) = (polled, owner) else { return None };
    let sources = call.server.providers().sources(title);
    let providers: Vec<ProviderId> = sources.iter().map(|source| source.provider).collect();
    Some((edge.refuses_to_tune(call.now, user, &providers)?, None))
}

/// The feed of it, if there is one at present.
pub(super) fn feed_of(server: &Server, polled: Polled) -> Option<FeedId> {
    let pull = server.edge().pull();
    match polled {
        Polled::Feed(feed) => Some(feed),
        Polled::Title(title) => pull.tuned(title).and_then(|channel| pull.feed_of(channel)),
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
pub(crate) fn stream(server: &Server, feed: Option<FeedId>) -> Response {
    let channel = feed.and_then(|feed| server.edge().pull().channel_of(feed));
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
