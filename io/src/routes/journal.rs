//! `GET /api/v1/journal`: what happened lately, for `holdfast replay`.

use super::{not_allowed, status};
use crate::http::field::{ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, RETRY_AFTER};
use crate::http::{Body, FieldValue, Method, Request, Response, Status};
use crate::server::{Call, NoJournal};

/// Answers with the journal as it is now, piece by piece.
pub(super) fn download(call: &mut Call<'_>, request: &Request) {
    match request.method {
        Method::Get | Method::Head => {}
        Method::Options => {
            let allow = FieldValue::from_static("GET, HEAD, OPTIONS");
            return call.answer(Response::new(Status::NO_CONTENT).header(ALLOW, allow));
        }
        _ => return call.answer(not_allowed("GET, HEAD, OPTIONS")),
    }
    if !status::may_operate(call, request, "the journal is read") {
        return;
    }
    if call.server.settings().api_tokens.is_empty() && request.headers.get("Origin").is_some() {
        // Some page in a browser on this machine: everybody's pages may read what is answered here.
        let detail = "without an API token in the configuration, no page is given the journal; use `holdfast dump`";
        return call.answer(Response::problem(Status::FORBIDDEN, "forbidden", "Forbidden", detail));
    }
    let head = Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static("application/octet-stream"))
        .header(CONTENT_DISPOSITION, FieldValue::from_static("attachment; filename=\"holdfast.journal\""))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"));
    if request.method == Method::Head {
        return match call.server.keeps_journal() {
            true => call.answer(head.body(Body::Chunks)),
            false => call.answer(refusal(NoJournal::Off)),
        };
    }
    match call.server.download() {
        Ok(download) => call.produce(head, Box::new(download)),
        Err(none) => call.answer(refusal(none)),
    }
}

fn refusal(none: NoJournal) -> Response {
    match none {
        NoJournal::Off => {
            let detail = "nothing is recorded here: `size` in [recorder] of the configuration is \"off\"";
            Response::problem(Status::NOT_FOUND, "recorder-off", "Not Found", detail)
        }
        NoJournal::Busy => {
            let detail = "somebody else is being sent the journal; try again when that is over";
            let status = Status::SERVICE_UNAVAILABLE;
            Response::problem(status, "journal-busy", status.reason(), detail).header(RETRY_AFTER, FieldValue::from(3))
        }
    }
}
