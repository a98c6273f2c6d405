//! The list of everything there is to play, for IPTV players: `/get.php`, `/playlist.m3u`.

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{local, login, long_text};
use crate::http::Request;
use crate::providers::Kind;
use crate::providers::library::{Cursor, Item, Library, Step};
use crate::server::{Call, Produce};

/// Answers a request for the list: for everybody where nobody has to log in.
pub(super) fn list(call: &mut Call<'_>, request: &Request) {
    // Without a charset: mpv takes a list for one by these very words.
    login::long_page(call, request, long_text("audio/x-mpegurl"), |call, request, login, library, groups| {
        let base = call.base(request);
        let hls = request.query_value("output").is_some_and(|output| matches!(&*output, "m3u8" | "hls"));
        let login = login.map(|(user, password)| (encode(&user).to_string(), encode(&password).to_string()));
        let mut own = own(call, &base, login.as_ref(), hls);
        if let Some((user, password)) = &login {
            for local::Entry { name, group, folder, file } in
                local::Shelves::new(call.server.libraries(), groups).entries()
            {
                let (name, group) = (attribute(name), attribute(group));
                let _ = writeln!(own, "#EXTINF:-1 tvg-name=\"{name}\" group-title=\"{group}\",{name}");
                let _ = writeln!(own, "{base}/{folder}/{user}/{password}/{file}");
            }
        }
        // Nobody plays titles of providers who is not somebody.
        let titles = login.map(|(user, password)| {
            let place = Cursor::default();
            Titles { library, place, base, login: format!("{user}/{password}"), hls }
        });
        Box::new(List { own: Some(own), titles })
    });
}

/// What there is beside the titles of providers.
fn own(call: &Call<'_>, base: &str, login: Option<&(String, String)>, hls: bool) -> String {
    let mut guide = format!("{base}/xmltv.php");
    if let Some((user, password)) = login {
        let _ = write!(guide, "?username={user}&password={password}");
    }
    // Players look for the one or the other.
    let mut list = format!("#EXTM3U url-tvg=\"{guide}\" x-tvg-url=\"{guide}\"\n");
    for stream in call.server.catalog().streams() {
        let (name, group) = (attribute(&stream.name), stream.group.name());
        let _ = writeln!(list, "#EXTINF:-1 tvg-id=\"{name}\" tvg-name=\"{name}\" group-title=\"{group}\",{name}");
        let _ = match (login, hls) {
            (Some((user, password)), hls) => {
                let ending = if hls { "m3u8" } else { "ts" };
                writeln!(list, "{base}/live/{user}/{password}/{}.{ending}", stream.id)
            }
            (None, true) => writeln!(list, "{base}/live/{}/index.m3u8", stream.path),
            (None, false) => writeln!(list, "{base}/live/{}.ts", stream.path),
        };
    }
    list
}

struct List {
    own: Option<String>,
    titles: Option<Titles>,
}

/// The titles of providers.
struct Titles {
    library: Library,
    place: Cursor,
    base: String,
    /// Name and password, as addresses have them.
    login: String,
    hls: bool,
}

impl Produce for List {
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool {
        if let Some(own) = self.own.take() {
            piece.extend_from_slice(own.as_bytes());
        }
        let Some(titles) = &mut self.titles else { return false };
        let Titles { library, place, base, login, hls } = titles;
        let mut text = String::new();
        while piece.len() + text.len() < about {
            match library.next(place, &[Kind::Live, Kind::Film, Kind::Episode]) {
                Step::Item(item) => title(&mut text, library, &item, base, login, *hls),
                Step::Pause => break,
                Step::End => {
                    piece.extend_from_slice(text.as_bytes());
                    return false;
                }
            }
        }
        piece.extend_from_slice(text.as_bytes());
        true
    }
}

fn title(list: &mut String, library: &Library, item: &Item<'_>, base: &str, login: &str, hls: bool) {
    let Item { kind, id, entry, extension, .. } = item;
    let (folder, extension) = match kind {
        Kind::Live if hls || *extension == "m3u8" => ("live", "m3u8"),
        Kind::Live if *extension == "mpd" => ("live", "mpd"),
        Kind::Live => ("live", "ts"),
        Kind::Film => ("movie", *extension),
        Kind::Episode | Kind::Series => ("series", *extension),
    };
    let name = attribute(entry.name);
    let _ = write!(list, "#EXTINF:-1 tvg-id=\"{}\" tvg-name=\"{name}\"", attribute(entry.guide));
    let _ = write!(list, " tvg-logo=\"{}\"", attribute(&library.logo(item)));
    // A player has one row of numbers for all that it lists: a film's would be some channel's.
    if *kind == Kind::Live && entry.number > 0 {
        let _ = write!(list, " tvg-chno=\"{}\"", entry.number);
    }
    let _ = write!(list, " group-title=\"{}\"", attribute(item.group()));
    if *kind == Kind::Live && entry.told_days() > 0 {
        // As a number: Kodi fills parts of the time, `{Y}-{m}-{d}`, by its own time zone.
        let source = format!("{base}/timeshift/{login}/{{duration:60}}/{{utc}}/{id}.{extension}");
        let _ = write!(list, " catchup=\"default\" catchup-days=\"{}\" catchup-source=\"{source}\"", entry.told_days());
    }
    let _ = writeln!(list, ",{name}\n{base}/{folder}/{login}/{id}.{extension}");
}

/// Nothing in it ends the attribute, or the line.
fn attribute(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(|c: char| c == '"' || c.is_control()) {
        return text.into();
    }
    text.chars().map(|c| if c == '"' || c.is_control() { '\'' } else { c }).collect::<String>().into()
}

/// What stands for itself in a path (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As one segment of a path, or one value of a query.
fn encode(segment: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(segment, RESERVED)
}
