//! WHIP (RFC 9725): publishers come in by POST, trickle and restart ICE by PATCH, leave by DELETE.

use std::time::Duration;

use holdfast_core::config::Endpoint;
use holdfast_core::input::{EndReason, EndpointId, Input, SessionId};
use holdfast_core::publish::{self, Denied, Head, OFFER_LIMIT};

use super::{Then, not_allowed, not_found};
use crate::http::field::{
    ACCEPT_PATCH, ACCEPT_POST, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE,
    ALLOW, CONTENT_TYPE, ETAG, LINK, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use crate::http::{Body, FieldValue, Method, Request, RequestBody, Response, Status};
use crate::media::MediaCommand;
use crate::sdp::patch::{self, Patch};
use crate::sdp::{Fragment, Offer};
use crate::server::{Call, IceServer, Server};

const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// The longest fragment, in bytes.
const FRAGMENT_LIMIT: u64 = 256 * 1024;

/// `/whip/{endpoint}`
pub(super) fn endpoint(call: &mut Call<'_>, request: &Request, name: &str) {
    match request.method {
        Method::Post => {
            if let Err(wait) = call.admit() {
                return call.answer(too_many(wait));
            }
            post(call, request, name);
        }
        Method::Get | Method::Head => known(call, name, |_| Response::new(Status::NO_CONTENT)),
        Method::Options => known(call, name, |server| {
            // A preflight carries no credentials, so the servers' credentials are not for it (RFC 9725 §4.6).
            let preflight = request.headers.get("Access-Control-Request-Method").is_some();
            let servers = if preflight { &[][..] } else { &server.settings().ice_servers };
            options("GET, HEAD, POST, OPTIONS", servers).header(ACCEPT_POST, FieldValue::from_static("application/sdp"))
        }),
        _ => call.answer(not_allowed("GET, HEAD, POST, OPTIONS")),
    }
}

fn known(call: &mut Call<'_>, name: &str, answer: impl FnOnce(&Server) -> Response) {
    let response = match call.server.edge().endpoint(name) {
        Some(_) => answer(call.server),
        None => not_found(),
    };
    call.answer(response);
}

fn options(methods: &'static str, servers: &[IceServer]) -> Response {
    let response = Response::new(Status::OK)
        .header(ALLOW, FieldValue::from_static(methods))
        .header(ACCESS_CONTROL_ALLOW_METHODS, FieldValue::from_static("POST, PATCH, DELETE, GET, HEAD, OPTIONS"))
        .header(ACCESS_CONTROL_ALLOW_HEADERS, FieldValue::from_static("Authorization, Content-Type, If-Match"))
        .header(ACCESS_CONTROL_MAX_AGE, FieldValue::from_static("600"));
    with_ice_servers(response, servers)
}

fn post(call: &mut Call<'_>, request: &Request, name: &str) {
    let head = Head {
        endpoint: name,
        authorization: request.headers.get("Authorization"),
        content_type: request.headers.get("Content-Type"),
        length: match request.body {
            RequestBody::Length(length) => Some(length),
            RequestBody::None => Some(0),
            RequestBody::Chunked => None,
        },
    };
    match call.server.edge().admit(&head) {
        Ok(endpoint) if request.body == RequestBody::None => offer(call, endpoint, &[]),
        Ok(endpoint) => call.read(OFFER_LIMIT, Then::Offer(endpoint)),
        Err(denied) => match call.server.edge().endpoint(name).map(|(endpoint, _)| endpoint) {
            Some(endpoint) => call.deny(endpoint, denial(denied), denied.to_string()),
            None => call.answer(denial(denied)),
        },
    }
}

/// 429: this address sends more than it may.
fn too_many(wait: Duration) -> Response {
    let detail = "this address sends more requests than it may; wait, then go on slower";
    Response::problem(Status::TOO_MANY_REQUESTS, "too-many-requests", "Too Many Requests", detail)
        .header(RETRY_AFTER, FieldValue::from(wait.as_secs() + 1))
}

/// 503: as many sessions as there are descriptors for, whoever may hold a slot. Started all the same, another one would take them
/// down.
fn no_room() -> Response {
    let detail =
        "as many sessions are beginning, running and ending here as this server takes at once; try again shortly";
    let status = Status::SERVICE_UNAVAILABLE;
    Response::problem(status, "no-room", status.reason(), detail).header(RETRY_AFTER, FieldValue::from(3))
}

fn denial(denied: Denied) -> Response {
    match denied {
        Denied::NotFound => not_found(),
        Denied::Unauthorized => unauthorized(),
        Denied::UnsupportedType => unsupported("an offer is sent as Content-Type: application/sdp"),
        Denied::TooLarge => {
            let detail = format!("an offer has at most {OFFER_LIMIT} bytes");
            Response::problem(Status::CONTENT_TOO_LARGE, "too-large", "Content Too Large", &detail)
        }
    }
}

fn unsupported(detail: &str) -> Response {
    Response::problem(Status::UNSUPPORTED_MEDIA_TYPE, "unsupported-type", "Unsupported Media Type", detail)
}

fn unauthorized() -> Response {
    let detail = "this endpoint takes publishers with one of its tokens, as Authorization: Bearer TOKEN";
    Response::problem(Status::UNAUTHORIZED, "unauthorized", "Unauthorized", detail)
        .header(WWW_AUTHENTICATE, FieldValue::from_static("Bearer realm=\"holdfast\""))
}

/// The offer is complete: checked as text, then put before the core. Nobody's slot is looked at for one that is wrong.
pub(super) fn offer(call: &mut Call<'_>, endpoint: EndpointId, body: &[u8]) {
    let Some(settings) = call.server.edge().config().endpoints.get(endpoint.0 as usize) else {
        return call.answer(not_found());
    };
    match Offer::check(body, settings.media) {
        Ok(_) if call.server.publishers().claims() >= call.server.settings().limits.sessions => {
            let most = call.server.settings().limits.sessions;
            let why = format!("{most} sessions are beginning, running and ending: no more are taken at once");
            call.deny(endpoint, no_room(), why);
        }
        Ok(offer) => {
            let request = call.ask(|request| Input::Offer { request, endpoint });
            call.server.keep_offer(request, offer);
        }
        Err(fault) => {
            let malformed = fault.status() == 400;
            let status = if malformed { Status::BAD_REQUEST } else { Status::UNPROCESSABLE_CONTENT };
            let why = fault.to_string();
            call.deny(endpoint, Response::problem(status, "offer", "This offer cannot be taken", &why), why);
        }
    }
}

/// 201 for a session that was negotiated.
pub(crate) fn created(server: &Server, session: SessionId) -> Response {
    let publisher = server.publishers().get(session);
    let name = publisher.and_then(|publisher| server.edge().config().endpoints.get(publisher.endpoint.0 as usize));
    let (Some(publisher), Some(Endpoint { name, .. })) = (publisher, name) else { return no_session(None) };
    let location = format!("/whip/{name}/{}", publisher.secret);
    let (Ok(location), Ok(etag)) = (FieldValue::new(location), FieldValue::new(publisher.etag())) else {
        return no_session(None);
    };
    let response = Response::new(Status::CREATED)
        .header(CONTENT_TYPE, FieldValue::from_static("application/sdp"))
        .header(LOCATION, location)
        .header(ETAG, etag)
        .header(ACCEPT_PATCH, FieldValue::from_static(FRAGMENT));
    with_ice_servers(response, &server.settings().ice_servers).body(Body::Full(publisher.answer.clone().into()))
}

/// One `Link` for each server (RFC 9725 §4.6).
fn with_ice_servers(response: Response, servers: &[IceServer]) -> Response {
    servers.iter().fold(response, |response, server| {
        let mut link = format!("<{}>; rel=\"ice-server\"", server.url);
        if let (Some(username), Some(credential)) = (&server.username, &server.credential) {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let (username, credential) = (quoted(username), quoted(credential));
            link += &format!("; username=\"{username}\"; credential=\"{credential}\"; credential-type=\"password\"");
        }
        match FieldValue::new(link) {
            Ok(link) => response.header(LINK, link),
            Err(_) => response,
        }
    })
}

/// `/whip/{endpoint}/{session}`
pub(super) fn session(call: &mut Call<'_>, request: &Request, name: &str, secret: &str) {
    if request.method == Method::Options {
        // A preflight is never authenticated, and tells nothing about whether the session is there.
        let methods = options("GET, HEAD, PATCH, DELETE, OPTIONS", &[]);
        return call.answer(methods.header(ACCEPT_PATCH, FieldValue::from_static(FRAGMENT)));
    }
    if matches!(request.method, Method::Patch | Method::Delete)
        && let Err(wait) = call.admit()
    {
        return call.answer(too_many(wait));
    }
    let session = call.server.publishers().by_secret(secret);
    let owner = session.and_then(|session| call.server.publishers().get(session)).map(|publisher| publisher.endpoint);
    let (Some(session), Some((id, endpoint))) = (session, call.server.edge().endpoint(name)) else {
        return call.answer(no_session(call.server.publishers().end_of(secret)));
    };
    if owner != Some(id) {
        return call.answer(no_session(None));
    }
    if !publish::authorized(endpoint, request.headers.get("Authorization")) {
        return call.answer(unauthorized());
    }
    match request.method {
        Method::Get | Method::Head => call.answer(Response::new(Status::NO_CONTENT)),
        // RFC 9725 §4.3.1: If-Match is no matter of DELETE.
        Method::Delete => {
            call.tell(Input::End { session, reason: EndReason::Deleted });
            call.answer(Response::new(Status::OK));
        }
        Method::Patch => {
            let is_fragment = |value: &str| publish::is_media_type(value, FRAGMENT);
            if !request.headers.get("Content-Type").is_some_and(is_fragment) {
                let detail = "candidates and restarts are sent as Content-Type: application/trickle-ice-sdpfrag";
                return call.answer(unsupported(detail));
            }
            let if_match: Vec<String> = request.headers.get_all("If-Match").map(str::to_owned).collect();
            match request.body {
                RequestBody::None => patch(call, session, &if_match, &[]),
                RequestBody::Length(_) | RequestBody::Chunked => {
                    call.read(FRAGMENT_LIMIT, Then::Patch(session, if_match))
                }
            }
        }
        _ => call.answer(not_allowed("GET, HEAD, PATCH, DELETE, OPTIONS")),
    }
}

/// The fragment is complete: trickle or ICE restart (spec: protocols §3.3).
pub(super) fn patch(call: &mut Call<'_>, session: SessionId, if_match: &[String], body: &[u8]) {
    let live = call.server.publishers().get(session).filter(|publisher| !publisher.finished);
    let Some(publisher) = live else { return call.answer(no_session(None)) };
    let fragment = match Fragment::parse(body) {
        Ok(fragment) => fragment,
        Err(fault) => {
            let detail = fault.to_string();
            return call.answer(Response::problem(
                Status::BAD_REQUEST,
                "fragment",
                "This fragment cannot be read",
                &detail,
            ));
        }
    };
    let values: Vec<&str> = if_match.iter().map(String::as_str).collect();
    match patch::decide(&values, &publisher.etag(), &fragment, &publisher.credentials) {
        Patch::PreconditionRequired => call.answer(Response::problem(
            Status::PRECONDITION_REQUIRED,
            "precondition-required",
            "Precondition Required",
            "a PATCH names the ICE session it is for: If-Match with the ETag of the 201, or \"*\" to restart ICE",
        )),
        Patch::PreconditionFailed => call.answer(Response::problem(
            Status::PRECONDITION_FAILED,
            "precondition-failed",
            "Precondition Failed",
            "this PATCH is for an ICE session that was replaced; use the ETag of the last answer",
        )),
        Patch::HalfRestart => call.answer(Response::problem(
            Status::BAD_REQUEST,
            "half-restart",
            "Half an ICE restart",
            "a restart brings a new ice-ufrag and a new ice-pwd; one of these two is the session's present one",
        )),
        Patch::Trickle => {
            if !fragment.candidates.is_empty() {
                call.command(MediaCommand::Candidates { session, candidates: fragment.candidates });
            }
            call.answer(Response::new(Status::NO_CONTENT));
        }
        Patch::Restart if publisher.answer.is_empty() || publisher.restart.is_some() => {
            call.answer(restart_failed("another restart of this session is under way"));
        }
        Patch::Restart => {
            let Some(credentials) = fragment.credentials else { return };
            let (ufrag, pwd) = (credentials.ufrag.clone(), credentials.pwd.clone());
            let id = call.id;
            if let Some(publisher) = call.server.publisher_mut(session) {
                publisher.restart = Some((id, credentials));
            }
            call.await_restart(session);
            call.command(MediaCommand::Restart { session, ufrag, pwd, candidates: fragment.candidates });
        }
    }
}

/// 200 for a restart, with our side of it.
pub(crate) fn restarted(etag: &str, fragment: String) -> Response {
    match FieldValue::new(etag) {
        Ok(etag) => Response::new(Status::OK)
            .header(CONTENT_TYPE, FieldValue::from_static(FRAGMENT))
            .header(ETAG, etag)
            .body(Body::Full(fragment.into())),
        Err(_) => restart_failed("no entity tag could be made"),
    }
}

/// The old ICE session goes on.
pub(crate) fn restart_failed(why: &str) -> Response {
    let detail = format!("ICE was not restarted and goes on as before: {why}; publish anew if media does not flow");
    Response::problem(Status::CONFLICT, "restart-failed", "ICE was not restarted", &detail)
}

/// 404 for a session that ended, with the reason while it is remembered, or that never was.
pub(crate) fn no_session(ended: Option<EndReason>) -> Response {
    let (kind, detail) = match ended {
        Some(EndReason::Displaced) => {
            ("displaced", "this session's transport was silent and another publisher took over its slot".to_owned())
        }
        Some(reason) => (
            reason.as_str(),
            format!("this session has ended: {}; publish anew with a POST to the endpoint", reason.as_str()),
        ),
        None => {
            ("no-session", "this session has ended or never was; publish anew with a POST to the endpoint".to_owned())
        }
    };
    Response::problem(Status::NOT_FOUND, kind, "Not Found", &detail)
}
