//! The list of everything there is to play, for IPTV players: `/get.php`, `/playlist.m3u`.

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{login, not_allowed, read_only, text};
use crate::http::{Method, Request, Response};
use crate::server::Call;

/// Answers a request for the list: for everybody where nobody has to log in.
pub(super) fn list(call: &mut Call<'_>, request: &Request) {
    if !matches!(request.method, Method::Get | Method::Head | Method::Options) {
        return call.answer(not_allowed("GET, HEAD, OPTIONS"));
    }
    let login = if call.server.users().is_open() || request.method == Method::Options {
        None
    } else {
        let (name, password) = login::credentials(request).unwrap_or_default();
        if login::user(call, request, &name, &password).is_none() {
            return;
        }
        Some((name, password))
    };
    read_only(call, request, |call| answer(call, request, login));
}

fn answer(call: &Call<'_>, request: &Request, login: Option<(String, String)>) -> Response {
    let base = call.base(request);
    let hls = request.query_value("output").is_some_and(|output| matches!(&*output, "m3u8" | "hls"));
    let mut list = String::from("#EXTM3U\n");
    for stream in call.server.catalog().streams() {
        let (name, group) = (attribute(&stream.name), stream.group.name());
        let _ = writeln!(list, "#EXTINF:-1 tvg-id=\"{name}\" tvg-name=\"{name}\" group-title=\"{group}\",{name}");
        let _ = match (&login, hls) {
            (Some((user, password)), hls) => {
                let (user, password) = (encode(user), encode(password));
                let ending = if hls { "m3u8" } else { "ts" };
                writeln!(list, "{base}/live/{user}/{password}/{}.{ending}", stream.id)
            }
            (None, true) => writeln!(list, "{base}/live/{}/index.m3u8", stream.path),
            (None, false) => writeln!(list, "{base}/live/{}.ts", stream.path),
        };
    }
    text("audio/x-mpegurl; charset=utf-8", list)
}

/// Nothing in it ends the attribute, or the line.
fn attribute(text: &str) -> String {
    text.chars().map(|c| if c == '"' || c.is_control() { '\'' } else { c }).collect()
}

/// What stands for itself in a path (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As one segment of a path.
fn encode(segment: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(segment, RESERVED)
}
