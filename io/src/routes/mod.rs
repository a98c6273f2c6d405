//! Which request means what.
//!
//! | path | room |
//! |---|---|
//! | `/whip/{endpoint}`, `/whip/{endpoint}/{session}` | [`whip`] |
//! | `/live/{endpoint}.ts`, `/live/{endpoint}/{slot}.ts`, `/live/{channel}.ts` | [`live`] |
//! | `/live/{endpoint}/index.m3u8`, `/live/{endpoint}/{slot}/index.m3u8` and what they name | [`hls`] |
//! | `/get.php`, `/playlist.m3u` | [`m3u`] |
//! | `/xmltv.php` | [`xmltv`] |
//! | `/player_api.php`, `/live/{user}/{password}/{stream}`, `/{user}/{password}/{stream}` | [`xtream`] |
//! | `/movie/…`, `/series/…`, `/timeshift/…`, `/hls/{sealed}` | [`title`] |
//! | `/api/endpoints` | [`status`]: what pages need to know, for everybody |
//! | `/api/status`, `/api/sessions/{id}`, `/healthz` | [`status`] |
//! | `/api/v1/journal` | `journal`: what happened lately, for operators |
//! | `/metrics` | [`metrics`] |
//! | `/`, `/publish/{endpoint}` and what they load | [`page`] |

pub(crate) mod hls;
mod journal;
pub(crate) mod live;
pub(crate) mod local;
mod login;
mod m3u;
mod metrics;
pub mod page;
pub(crate) mod status;
pub(crate) mod title;
pub(crate) mod whip;
mod xmltv;
pub(crate) mod xtream;

use bytes::Bytes;
use holdfast_core::input::{EndpointId, RefuseReason, SessionId};

use crate::hls::File;
use crate::http::field::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::providers::Kind;
use crate::server::{At, Call, ReadBody, Server};

/// What a body is read for.
pub(crate) enum Then {
    /// A WHIP POST.
    Offer(EndpointId),
    /// A WHIP PATCH with the values of its `If-Match`.
    Patch(SessionId, Vec<String>),
    /// A POST of what clients of panels GET; its parameters.
    Form(Box<Request>),
}

/// Answers a request, or begins to.
pub(crate) fn request(call: &mut Call<'_>, request: Request) {
    let segments: Vec<&str> = request.segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["whip", endpoint] => whip::endpoint(call, &request, endpoint),
        ["whip", endpoint, secret] => whip::session(call, &request, endpoint, secret),
        ["live", file] => live::watch(call, &request, file, None),
        ["live", name, file] if let Some(file) = File::parse(file) => hls::serve(call, &request, (name, None), file),
        ["live", name, slot, file] if let Some(file) = File::parse(file) => {
            hls::serve(call, &request, (name, Some(slot)), file);
        }
        ["live", name, password, file] if let Some(file) = xtream::File::parse(file) => {
            xtream::play(call, &request, (name, password), &file, At::User);
        }
        ["live", endpoint, file] => live::watch(call, &request, endpoint, Some(file)),
        ["movie", name, password, file] => title::play(call, &request, Kind::Film, (name, password), file),
        ["series", name, password, file] => title::play(call, &request, Kind::Episode, (name, password), file),
        ["hls", sealed] => title::child(call, &request, sealed),
        ["timeshift", name, password, minutes, start, file] => {
            title::timeshift(call, &request, (name, password), (minutes, start), file);
        }
        ["streaming", "timeshift.php"] | ["timeshift.php"] => title::timeshift_query(call, &request),
        ["get.php" | "xmltv.php" | "player_api.php" | "panel_api.php"] if request.method == Method::Post => {
            login::form(call, request);
        }
        ["get.php" | "playlist.m3u"] => m3u::list(call, &request),
        ["xmltv.php"] => xmltv::guide(call, &request),
        ["player_api.php" | "panel_api.php"] => xtream::api(call, &request),
        ["healthz"] => read_only(call, &request, |_| text("text/plain; charset=utf-8", "ok\n")),
        ["metrics"] => {
            let format = metrics::Format::of(&request);
            status::guarded(call, &request, |call| metrics::metrics(call, format));
        }
        ["api", "status"] => status::guarded(call, &request, status::status),
        ["api", "endpoints"] => read_only(call, &request, |call| status::endpoints(call.server)),
        ["api", "v1", "journal"] => journal::download(call, &request),
        ["api", "playbacks", id] => status::playback(call, &request, id),
        ["api", "sessions", id] => status::session(call, &request, id),
        ["publish", name] if call.server.edge().endpoint(name).is_none() => {
            read_only(call, &request, |call| no_such_endpoint(call.server, name));
        }
        [name, password, file] if let Some(file) = xtream::File::parse(file) => {
            xtream::play(call, &request, (name, password), &file, At::Root);
        }
        [] if request.path == "*" => call.answer(Response::new(Status::NO_CONTENT)),
        _ => match page::file(&request.path) {
            Some((content_type, content)) => {
                read_only(call, &request, |_| page_file(Status::OK, content_type, Bytes::from_static(content)));
            }
            None => call.answer(not_found()),
        },
    }
}

/// Goes on with a request whose body is complete.
pub(crate) fn body(call: &mut Call<'_>, body: ReadBody) {
    match body.then {
        Then::Offer(endpoint) => whip::offer(call, endpoint, &body.data),
        Then::Patch(session, if_match) => whip::patch(call, session, &if_match, &body.data),
        Then::Form(request) => login::posted(call, *request, &body.data),
    }
}

/// GET and HEAD of something that needs no body.
fn read_only(call: &mut Call<'_>, request: &Request, answer: impl FnOnce(&mut Call<'_>) -> Response) {
    let response = match request.method {
        Method::Get | Method::Head => answer(call),
        Method::Options => {
            Response::new(Status::NO_CONTENT).header(ALLOW, FieldValue::from_static("GET, HEAD, OPTIONS"))
        }
        _ => not_allowed("GET, HEAD, OPTIONS"),
    };
    call.answer(response);
}

/// What every answer carries: pages of other origins may publish and watch, and read why they may not.
pub(crate) fn shared(response: Response) -> Response {
    response
        .header(ACCESS_CONTROL_ALLOW_ORIGIN, FieldValue::from_static("*"))
        .header(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            FieldValue::from_static("Location, Link, ETag, Retry-After, Content-Length, Content-Range"),
        )
        .header(X_CONTENT_TYPE_OPTIONS, FieldValue::from_static("nosniff"))
}

/// A refusal of the core's, as a client gets it (spec: publish §3.4). `why` is what the media side said.
pub(crate) fn refused(reason: RefuseReason, why: Option<&str>) -> Response {
    let (status, retry, detail) = match reason {
        RefuseReason::HolderLive => (
            Status::SERVICE_UNAVAILABLE,
            Some(5),
            "another publisher is live in this slot and is kept; end it first, or wait until it has ended",
        ),
        RefuseReason::HolderNegotiating => (
            Status::SERVICE_UNAVAILABLE,
            Some(2),
            "another publisher has just been let into this slot and has not sent media yet; try again shortly",
        ),
        RefuseReason::HolderWithoutAudio => (
            Status::SERVICE_UNAVAILABLE,
            Some(10),
            "another publisher holds this slot without audio, so its silence proves nothing; it keeps the slot until it \
             ends or sends nothing for the inactivity timeout",
        ),
        RefuseReason::TakeoverTimeout => (
            Status::SERVICE_UNAVAILABLE,
            Some(1),
            "whether the slot's publisher is still alive could not be told in time; try again",
        ),
        RefuseReason::TooManyWaiting => {
            (Status::SERVICE_UNAVAILABLE, Some(3), "too many publishers wait for the slots of this endpoint")
        }
        RefuseReason::Ended => (
            Status::SERVICE_UNAVAILABLE,
            Some(2),
            "the session was ended before it was answered: another publisher was preferred, an operator ended it, or it was \
             not negotiated in time",
        ),
        RefuseReason::Draining => (Status::SERVICE_UNAVAILABLE, Some(5), "this server is shutting down"),
        RefuseReason::TooManyViewers => {
            (Status::SERVICE_UNAVAILABLE, Some(10), "this stream has as many viewers as it may have")
        }
        RefuseReason::NegotiationFailed => (
            Status::UNPROCESSABLE_CONTENT,
            None,
            why.unwrap_or(
                "no session could be negotiated from this offer; offer H.264 and Opus over BUNDLE and DTLS-SRTP",
            ),
        ),
        RefuseReason::StartTimeout => (
            Status::GATEWAY_TIMEOUT,
            Some(3),
            why.unwrap_or(
                "no media came in time: whoever is to send it is not there, sends nothing, or takes too long",
            ),
        ),
        RefuseReason::NoSource => (
            Status::BAD_GATEWAY,
            Some(3),
            why.unwrap_or("no origin of this channel can be had at present; /api/status says what became of each"),
        ),
        RefuseReason::NotFound => return not_found(),
        RefuseReason::UserLimit => (
            Status::SERVICE_UNAVAILABLE,
            Some(5),
            "this user plays as much at once as it may; stop another playback first",
        ),
        RefuseReason::Suppressed => return Response::new(Status::NO_CONTENT),
        RefuseReason::AccountExpired => {
            (Status::FORBIDDEN, None, "this user may not play: it has expired or is disabled")
        }
        RefuseReason::Kicked => {
            (Status::FORBIDDEN, None, "an operator ended this playback and does not let it come back yet")
        }
        RefuseReason::Busy => (Status::SERVICE_UNAVAILABLE, Some(5), "this server plays as much at once as it can"),
        RefuseReason::TooManyRequests => {
            (Status::SERVICE_UNAVAILABLE, Some(1), "this player asks for more at once than may wait for one another")
        }
        RefuseReason::InVain => (
            Status::SERVICE_UNAVAILABLE,
            Some(5),
            "its provider was asked for this player a hundred times in seconds, and nothing came of it",
        ),
        RefuseReason::ProviderLimit => (
            Status::SERVICE_UNAVAILABLE,
            Some(5),
            why.unwrap_or("all connections that the provider gives are in use; stop another playback first"),
        ),
        RefuseReason::AccountsOver => (
            Status::SERVICE_UNAVAILABLE,
            Some(60),
            "no account of a provider that has this may be used any more; its operator has to renew one",
        ),
        RefuseReason::ProviderFailed => {
            (Status::BAD_GATEWAY, Some(3), why.unwrap_or("no provider gives this at present"))
        }
        RefuseReason::Superseded => {
            (Status::SERVICE_UNAVAILABLE, Some(1), "a newer request of the same player took the place of this one")
        }
        RefuseReason::Preempted => {
            (Status::SERVICE_UNAVAILABLE, Some(3), "this playback gave way to one that is preferred; try again shortly")
        }
        RefuseReason::PlaybackOver => {
            (Status::FORBIDDEN, None, "this playback is over, or goes on elsewhere; open its playlist again")
        }
    };
    let problem = Response::problem(status, reason.as_str(), status.reason(), detail);
    let problem = match retry {
        Some(seconds) => problem.header(RETRY_AFTER, FieldValue::from(seconds)),
        None => problem,
    };
    // Its player went on elsewhere: nobody asks for anything more here.
    if reason == RefuseReason::Superseded { problem.close() } else { problem }
}

fn not_found() -> Response {
    let detail = "there is nothing at this address; GET /api/endpoints lists the endpoints and channels";
    Response::problem(Status::NOT_FOUND, "not-found", "Not Found", detail)
}

/// What is for users is asked for where there are none.
fn no_users() -> Response {
    let detail = "lists and titles of providers and libraries are for users, and none is configured here: see [[user]]";
    Response::problem(Status::NOT_FOUND, "no-users", "Not Found", detail)
}

fn not_allowed(methods: &'static str) -> Response {
    let detail = format!("this resource takes {methods}");
    Response::problem(Status::METHOD_NOT_ALLOWED, "method-not-allowed", "Method Not Allowed", &detail)
        .header(ALLOW, FieldValue::from_static(methods))
}

fn text(content_type: &'static str, content: impl Into<Bytes>) -> Response {
    Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static(content_type))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
        .body(Body::Full(content.into()))
}

/// The head of something that is made piece by piece.
fn long_text(content_type: &'static str) -> Response {
    Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static(content_type))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
}

/// The ingest page of an endpoint that is not there.
fn no_such_endpoint(server: &Server, name: &str) -> Response {
    let all = server.edge().config().endpoints.iter().map(|endpoint| endpoint.name.as_str());
    let content = page::no_such_endpoint(name, all);
    page_file(Status::NOT_FOUND, page::HTML, content.into())
}

fn page_file(status: Status, content_type: &'static str, content: Bytes) -> Response {
    Response::new(status)
        .header(CONTENT_TYPE, FieldValue::from_static(content_type))
        .header(CACHE_CONTROL, FieldValue::from_static("no-cache"))
        .header(CONTENT_SECURITY_POLICY, FieldValue::from_static(page::CONTENT_SECURITY_POLICY))
        .header(REFERRER_POLICY, FieldValue::from_static("no-referrer"))
        .body(Body::Full(content))
}
