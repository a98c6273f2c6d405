//! Live HLS of our own feeds: `/live/{endpoint}/index.m3u8` is the first slot, `/live/{endpoint}/{slot}/index.m3u8` any, counted
//! from 1, `/live/{channel}/index.m3u8` a channel. What the index of a provider's live stream names is under `/live/~{title}/`.
//!
//! Whoever asks for `index.m3u8` gets a token: its player asks for everything else with that, on however many connections.
//! Nobody is counted for that alone: mpv asks for it twice, and whoever probes for nothing else. Who asks for the media
//! playlist is a viewer from then on, and is held until there is something to watch.
//!
//! A player that was paused longer than it is waited for asks for its media playlist with a token that nobody is known by any
//! more. Nothing else can be had from it: ffmpeg ends at an error, VLC and hls.js repeat the same address, none of them asks for
//! `index.m3u8` again. So it joins anew and keeps its token; the same brings players back after this server was restarted.
//! A segment is refused with 410 then: ffmpeg, VLC and hls.js go on with their playlist, and an answer would be seen by
//! somebody who is not counted.

use holdfast_core::input::{FeedId, Input, RefuseReason, TitleId, Token, ViewerId, Viewing};
use holdfast_core::playback::Item;

use super::{live, login, not_allowed};
use crate::hls::{self, File};
use crate::http::field::{ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::server::{At, Call, Fetch, Joining, Owner, Polled, Server};

/// Answers a request for a file of a feed.
pub(super) fn serve(call: &mut Call<'_>, request: &Request, (name, slot): (&str, Option<&str>), file: File) {
    let token = request.query_value("v").and_then(|token| call.server.signer().verify(&token));
    if let (Some(title), None) = (title(name), slot) {
        return serve_title(call, request, title, token, file);
    }
    let Some(feed) = live::enter(call, request, name, slot) else { return };
    match (request.method, file) {
        (Method::Get | Method::Head, File::Segment(number)) => segment(call, request.method, feed, token, number),
        (Method::Get | Method::Head, File::Index) => {
            let Some(viewing) = login::viewing(call, request, Item::LiveHls(feed)) else { return };
            let owner = viewing.map(|Viewing { user, client, .. }| Owner { user, client });
            begin(call, request.method, owner, (Polled::Feed(feed), At::Feed));
        }
        (Method::Get | Method::Head, File::Media) => media(call, request.method, feed, token),
        (Method::Options, _) => {
            let allow = FieldValue::from_static("GET, HEAD, OPTIONS");
            call.answer(Response::new(Status::NO_CONTENT).header(ALLOW, allow));
        }
        _ => call.answer(not_allowed("GET, HEAD, OPTIONS")),
    }
}

/// How the live stream of a provider is called below `/live/`: as no endpoint and no channel can be.
fn name_of(title: TitleId) -> String {
    format!("~{:x}", title.0)
}

fn title(name: &str) -> Option<TitleId> {
    let number = name.strip_prefix('~')?;
    // One stream, one address.
    let title = u64::from_str_radix(number, 16).ok().map(TitleId)?;
    (name_of(title) == name).then_some(title)
}

/// What the index of a provider's live stream names. It is known by its title, since its feed is another one each time that
/// somebody wants it after nobody did.
fn serve_title(call: &mut Call<'_>, request: &Request, title: TitleId, token: Option<Token>, file: File) {
    let feed = call.server.edge().pull().tuned(title).and_then(|channel| call.server.edge().pull().feed_of(channel));
    match (request.method, file, feed) {
        (Method::Get | Method::Head, File::Segment(number), Some(feed)) => {
            segment(call, request.method, feed, token, number);
        }
        (Method::Get | Method::Head, File::Segment(_), None) => call.answer(not_watching()),
        (Method::Get | Method::Head, File::Media, _) => media_of_title(call, request, title, feed, token),
        // Its index is where lists have it.
        (Method::Get | Method::Head, File::Index, _) => call.answer(no_token()),
        (Method::Options, _, _) => {
            let allow = FieldValue::from_static("GET, HEAD, OPTIONS");
            call.answer(Response::new(Status::NO_CONTENT).header(ALLOW, allow));
        }
        _ => call.answer(not_allowed("GET, HEAD, OPTIONS")),
    }
}

/// Tells a player how to begin: nobody in particular where nobody has to log in. Whoever would be refused what follows is told
/// so here already.
pub(super) fn begin(call: &mut Call<'_>, method: Method, owner: Option<Owner>, (polled, at): (Polled, At)) {
    if let Some((reason, why)) = live::refusal(call, owner, polled, Item::LiveHls) {
        return call.answer(super::refused(reason, why.as_deref()));
    }
    if method == Method::Head {
        return call.answer(playlist_head());
    }
    let token = call.give_token(owner, polled);
    let answer = index(call.server, polled, token, at);
    call.answer(answer);
}

fn media_of_title(call: &mut Call<'_>, request: &Request, title: TitleId, feed: Option<FeedId>, token: Option<Token>) {
    let Some(token) = token else { return call.answer(no_token()) };
    let polled = Polled::Title(title);
    match call.server.edge().feeds().known(token) {
        Some((viewer, own)) if Some(own) == feed => ask_playlist(call, request.method, viewer),
        Some(_) => call.answer(no_token()),
        // It joins by what it was given out for.
        None => match call.owner(token, polled).filter(|owner| call.may_play(owner.user, title)) {
            Some(owner) if request.method == Method::Head => look(call, Some(owner), polled),
            Some(owner) => match call.server.tune(call.now, title) {
                Some(feed) if !live::not_in_a_circle(call, request, feed) => {}
                Some(feed) => call.join_to_poll(feed, Joining { token, polled, owner: Some(owner) }),
                // The core takes no more of them at present.
                None => call.answer(super::refused(RefuseReason::Busy, None)),
            },
            None => call.answer(not_watching()),
        },
    }
}

fn media(call: &mut Call<'_>, method: Method, feed: FeedId, token: Option<Token>) {
    let Some(token) = token else { return call.answer(no_token()) };
    let polled = Polled::Feed(feed);
    let owner = match call.server.edge().feeds().known(token) {
        Some((viewer, own)) if own == feed => return ask_playlist(call, method, viewer),
        Some(_) => return call.answer(no_token()),
        None => call.owner(token, polled),
    };
    match owner {
        None if !call.server.users().is_open() => call.answer(not_watching()),
        _ if method == Method::Head => look(call, owner, polled),
        _ => call.join_to_poll(feed, Joining { token, polled, owner }),
    }
}

/// A viewer's playlist. Whoever only looks does not count as one that asks.
fn ask_playlist(call: &mut Call<'_>, method: Method, viewer: ViewerId) {
    match method {
        Method::Head => call.answer(playlist_head()),
        _ => drop(call.ask(|request| Input::Playlist { request, viewer })),
    }
}

/// Answers HEAD of the media playlist of whoever would join with it.
fn look(call: &mut Call<'_>, owner: Option<Owner>, polled: Polled) {
    let refused = live::refusal(call, owner, polled, Item::LiveHls);
    call.answer(refused.map_or_else(playlist_head, |(reason, why)| super::refused(reason, why.as_deref())));
}

/// What HEAD of a playlist says.
pub(super) fn playlist_head() -> Response {
    playlist(Body::Stream)
}

fn segment(call: &mut Call<'_>, method: Method, feed: FeedId, token: Option<Token>, number: u64) {
    let feeds = call.server.edge().feeds();
    let Some((viewer, _)) = token.and_then(|token| feeds.known(token)).filter(|(_, own)| *own == feed) else {
        return call.answer(not_watching());
    };
    let first = call.server.settings().epoch;
    let Some(segment) = number.checked_sub(first).and_then(|sequence| feeds.segment(feed, sequence)) else {
        return call.answer(no_segment());
    };
    let length = segment.end.saturating_sub(segment.at);
    // Ranges are left aside, as RFC 9110 §14.2 allows: players ask for `bytes=0-` of what they want whole.
    let answer = Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static("video/mp2t"))
        .header(ACCEPT_RANGES, FieldValue::from_static("none"))
        .header(CACHE_CONTROL, FieldValue::from_static("max-age=30, immutable"))
        .body(Body::Sized(length));
    match method {
        Method::Head => call.answer(answer),
        _ => {
            call.tell(Input::Polled { viewer, bytes: length });
            call.send(answer, Fetch { feed, at: segment.at, end: segment.end });
        }
    }
}

/// How a player begins.
fn index(server: &Server, polled: Polled, token: Token, at: At) -> Response {
    let feeds = server.edge().feeds();
    let (path, feed) = match polled {
        Polled::Feed(feed) => (server.catalog().path_of(feed).unwrap_or_default().to_owned(), Some(feed)),
        Polled::Title(title) => {
            let pull = server.edge().pull();
            (name_of(title), pull.tuned(title).and_then(|channel| pull.feed_of(channel)))
        }
    };
    let bandwidth = hls::bandwidth(feed.into_iter().flat_map(|feed| feeds.segments(feed)));
    let base = match at {
        At::Feed => String::new(),
        At::User => format!("../../{path}/"),
        At::Root => format!("../../live/{path}/"),
    };
    playlist(Body::Full(hls::multivariant(&base, &server.signer().sign(token), bandwidth).into()))
}

/// A viewer's playlist as it is now. Numbers are counted from when the server started, in seconds: after a restart they go on
/// further up, for whoever comes back.
pub(crate) fn current(server: &Server, viewer: ViewerId) -> Response {
    match server.edge().feeds().playlist(viewer) {
        Some((token, list)) => {
            let token = server.signer().sign(token);
            playlist(Body::Full(hls::media(&token, list, server.settings().epoch).into()))
        }
        None => not_watching(),
    }
}

/// A playlist of a provider's, in our words.
pub(crate) fn playlist_of(text: String) -> Response {
    playlist(Body::Full(text.into()))
}

/// A multivariant playlist of one media playlist.
pub(crate) fn only(address: &str) -> Response {
    playlist_of(hls::only(address))
}

fn playlist(body: Body) -> Response {
    Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static("application/vnd.apple.mpegurl"))
        .header(CACHE_CONTROL, FieldValue::from_static("no-cache, no-store"))
        .body(body)
}

fn no_token() -> Response {
    let detail =
        "this address lacks the token that it was given out with, or has that of another stream; begin with index.m3u8";
    Response::problem(Status::NOT_FOUND, "no-token", "Not Found", detail)
}

fn not_watching() -> Response {
    let detail =
        "whoever this address was given out to has not asked for anything for too long; ask for the playlist first";
    Response::problem(Status::GONE, "not-watching", "Gone", detail)
}

fn no_segment() -> Response {
    let detail = "this segment is not kept any more, or not there yet; the playlist says which are";
    Response::problem(Status::NOT_FOUND, "no-segment", "Not Found", detail)
}
