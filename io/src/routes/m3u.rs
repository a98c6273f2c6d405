//! The list of everything there is to play, for IPTV players: `/get.php`, `/playlist.m3u`.

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{login, text};
use crate::http::{Request, Response};
use crate::server::Call;

/// Answers a request for the list: for everybody where nobody has to log in.
pub(super) fn list(call: &mut Call<'_>, request: &Request) {
    login::page(call, request, answer);
}

fn answer(call: &Call<'_>, request: &Request, login: Option<(String, String)>) -> Response {
    let base = call.base(request);
    let hls = request.query_value("output").is_some_and(|output| matches!(&*output, "m3u8" | "hls"));
    let mut guide = format!("{base}/xmltv.php");
    if let Some((user, password)) = &login {
        let _ = write!(guide, "?username={}&password={}", encode(user), encode(password));
    }
    // Players look for the one or the other.
    let mut list = format!("#EXTM3U url-tvg=\"{guide}\" x-tvg-url=\"{guide}\"\n");
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
    // Without a charset: mpv takes a list for one by these very words.
    text("audio/x-mpegurl", list)
}

/// Nothing in it ends the attribute, or the line.
fn attribute(text: &str) -> String {
    text.chars().map(|c| if c == '"' || c.is_control() { '\'' } else { c }).collect()
}

/// What stands for itself in a path (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As one segment of a path, or one value of a query.
fn encode(segment: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(segment, RESERVED)
}
