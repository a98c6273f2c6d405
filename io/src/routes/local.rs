//! Films and episodes that are files of this machine, at the addresses of all others.

use holdfast_core::input::{Ask, UserId, Want};
use holdfast_core::playback::Item;

use super::{login, not_found};
use crate::http::range::{Asked, Several};
use crate::http::{FieldValue, Method, Request, Response, Status, Via};
use crate::providers::Kind;
use crate::server::{Call, Errand, FetchedFrom, OfFile, Wanted, What};

/// Plays the film or episode of this id, if it is a file of this machine. Whether it is; if not, it is not answered.
pub(super) fn play(call: &mut Call<'_>, request: &Request, user: UserId, (kind, id): (Kind, u32)) -> bool {
    let Some(local) = call.server.libraries().find(kind, id) else { return false };
    let groups = call.server.users().get(user).map_or(&[][..], |login| &login.groups);
    if !call.server.libraries().permits(local.library, groups) {
        call.answer(not_found());
        return true;
    }
    let file = OfFile { place: local.place.clone(), kind: media_type(local.extension), request: request.clone() };
    let wanted = if local.extension == "ts" { Wanted::MpegTs } else { Wanted::Anything };
    let (id, asked) = (local.title, Asked::of(request));
    let (what, want) = match request.method {
        Method::Head => (What::Look, Want::Look),
        _ => (What::Media, asked.want(Several::Whole)),
    };
    let viewing = login::of(call, request, user, Item::Local(id));
    let ask = Ask { viewing, want, token: None, account: None, providers: Vec::new() };
    let from = FetchedFrom::File(Box::new(file));
    // Whoever it came through gets no further: it is from here.
    call.fetch(Errand { ask, from, what, span: None, if_range: None, wanted, up: 0, via: Via::default() });
    true
}

/// What players are told that it is.
fn media_type(extension: &str) -> FieldValue {
    FieldValue::from_static(match extension {
        "mp4" | "m4v" => "video/mp4",
        "mkv" => "video/x-matroska",
        "ts" => "video/mp2t",
        "avi" => "video/x-msvideo",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    })
}

/// It is not what the client takes it for (`If-Match`, `If-Unmodified-Since`).
pub(crate) fn another_version() -> Response {
    let detail = "the file is another version than the one that was asked for";
    Response::problem(Status::PRECONDITION_FAILED, "another-version", "Precondition Failed", detail)
}
