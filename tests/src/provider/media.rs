//! What a provider sends: live streams, files with ranges, playlists and what they name.

use std::fmt::Write as _;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::catalogue::{self, Form};
use super::clips::{self, Clip, Clips, Hls};
use super::wire::{Gone, Head, Request, Unsatisfiable, Wire, range};
use super::{Fault, Shared, Uris};

/// How many segments the playlist of a live stream lists.
const WINDOW: u64 = 6;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// A live stream; as a playlist, or as it comes.
    Live { id: u32, playlist: bool },
    /// A film or an episode.
    Film { id: u32 },
    /// What a live stream was.
    Archive { id: u32, playlist: bool },
    /// What a playlist names.
    Part { id: u32, name: String },
}

/// Who asks, by its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Account(String, String),
    /// What a redirect gave out.
    Token(String),
}

/// Whom and what the address of a medium names.
pub(super) fn address(request: &Request) -> Option<(Who, Media)> {
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    let account = |name: &str, password: &str| Who::Account(name.to_owned(), password.to_owned());
    let of_query = || Some(account(request.value("username")?, request.value("password")?));
    Some(match path[..] {
        ["lb", token, kind, file] => (Who::Token(token.to_owned()), medium(kind, file)?),
        ["lb", token, "hls", id, name] => (Who::Token(token.to_owned()), part(id, name)?),
        ["hls", user, password, id, name] => (account(user, password), part(id, name)?),
        ["timeshift", user, password, _, _, file] => (account(user, password), medium("timeshift", file)?),
        [kind @ ("live" | "movie" | "series"), user, password, file] => (account(user, password), medium(kind, file)?),
        ["timeshift.php"] | ["streaming", "timeshift.php"] => {
            let id = request.value("stream")?.parse().ok()?;
            (of_query()?, Media::Archive { id, playlist: request.value("extension") == Some("m3u8") })
        }
        [user, password, file] => (account(user, password), medium("live", file)?),
        _ => return None,
    })
}

fn part(id: &str, name: &str) -> Option<Media> {
    Some(Media::Part { id: id.parse().ok()?, name: name.to_owned() })
}

fn medium(kind: &str, file: &str) -> Option<Media> {
    let (id, extension) = file.split_once('.').unwrap_or((file, "ts"));
    let (id, playlist) = (id.parse().ok()?, extension == "m3u8");
    Some(match kind {
        "live" => Media::Live { id, playlist },
        "timeshift" => Media::Archive { id, playlist },
        _ => Media::Film { id },
    })
}

/// Where the parts of a playlist are.
pub(super) struct Place<'p> {
    /// `http://host:port` that was asked.
    pub base: String,
    /// `hls/{username}/{password}`, or what a redirect led to.
    pub prefix: String,
    pub uris: Uris,
    pub request: &'p Request,
}

impl Place<'_> {
    fn part(&self, id: u32, name: &str) -> String {
        let rooted = format!("{}/{id}/{name}", self.prefix);
        match self.uris {
            Uris::Absolute => format!("{}/{rooted}", self.base),
            Uris::Rooted => format!("/{rooted}"),
            Uris::Relative => format!("{}{rooted}", "../".repeat(self.request.path.len() - 1)),
        }
    }
}

/// Answers with a medium; the status is told before the body is.
pub(super) fn answer(
    shared: &Shared,
    wire: &mut Wire,
    medium: &Media,
    place: &Place<'_>,
    fault: Option<Fault>,
) -> Result<(), Gone> {
    let found = match medium {
        Media::Live { id, playlist } => match catalogue::live(*id) {
            Some(own) if *playlist => Some(playlist_of(live_playlist(shared, *id, own.hls, place))),
            Some(own) if own.ts => return live(shared, wire, place.request, fault),
            _ => None,
        },
        Media::Film { id } => catalogue::film(*id).map(|film| match film.form {
            Form::File(clip) => file(clip),
            Form::Hls(_) => playlist_of(format!(
                "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=700000,RESOLUTION=320x180\n{}\n",
                place.part(*id, "index.m3u8")
            )),
        }),
        Media::Archive { id, playlist } => catalogue::live(*id)
            .filter(|own| own.archive)
            .map(|own| if *playlist { playlist_of(film_playlist(*id, own.hls, place)) } else { file(Clip::Ts) }),
        Media::Part { id, name } => {
            let hls = catalogue::live(*id).map(|own| own.hls).or(match catalogue::film(*id).map(|film| film.form) {
                Some(Form::Hls(hls)) => Some(hls),
                _ => None,
            });
            hls.and_then(|hls| part_of(*id, hls, name, place))
        }
    };
    match found {
        Some((kind, bytes)) => send(shared, wire, place.request, fault, (kind, bytes)),
        None => refuse(shared, wire, 404),
    }
}

pub(super) fn refuse(shared: &Shared, wire: &mut Wire, status: u16) -> Result<(), Gone> {
    let text = "<html>no</html>";
    let head = Head::new(status).with("Content-Type", "text/html").with("Content-Length", text.len());
    shared.head(wire, head)?;
    wire.send(text.as_bytes())
}

fn file(clip: Clip) -> (&'static str, Arc<Vec<u8>>) {
    let kind = match clip {
        Clip::Tail | Clip::Fast => "video/mp4",
        Clip::Matroska => "video/x-matroska",
        Clip::Ts | Clip::Small => "video/mp2t",
    };
    (kind, Clips::ready().file(clip))
}

fn playlist_of(text: String) -> (&'static str, Arc<Vec<u8>>) {
    ("application/x-mpegURL", Arc::new(text.into_bytes()))
}

fn part_of(id: u32, hls: Hls, name: &str, place: &Place<'_>) -> Option<(&'static str, Arc<Vec<u8>>)> {
    if name == "index.m3u8" {
        return Some(playlist_of(film_playlist(id, hls, place)));
    }
    let (stem, extension) = name.split_once('.')?;
    let kind = match extension {
        "ts" => "video/mp2t",
        "m4s" | "mp4" => "video/mp4",
        "bin" => "application/octet-stream",
        _ => return None,
    };
    let parts = Clips::ready();
    let name = match stem.strip_prefix("live").and_then(|number| number.parse::<u64>().ok()) {
        Some(number) => format!("part{}.ts", number % segments(&parts.playlist(hls)).len() as u64),
        None => name.to_owned(),
    };
    Some((kind, Arc::new(parts.part(hls, &name)?)))
}

/// The durations of a playlist's segments.
fn segments(playlist: &str) -> Vec<f64> {
    let lengths = playlist.lines().filter_map(|line| line.strip_prefix("#EXTINF:"));
    lengths.filter_map(|length| length.trim_end_matches(',').parse().ok()).collect()
}

/// What ffmpeg wrote, with addresses of ours in it.
fn film_playlist(id: u32, hls: Hls, place: &Place<'_>) -> String {
    let mut text = String::new();
    for line in Clips::ready().playlist(hls).lines() {
        text += &match (line.strip_prefix('#'), line.split_once("URI=\"")) {
            (None, _) => place.part(id, line),
            (Some(_), Some((before, rest))) => {
                let (name, after) = rest.split_once('"').expect("ffmpeg closes its quotes");
                format!("{before}URI=\"{}\"{after}", place.part(id, name))
            }
            (Some(_), None) => line.to_owned(),
        };
        text.push('\n');
    }
    text
}

/// The newest segments of a clip that is shown over and over since the provider started.
fn live_playlist(shared: &Shared, id: u32, hls: Hls, place: &Place<'_>) -> String {
    let lengths = segments(&Clips::ready().playlist(hls));
    let count = lengths.len() as u64;
    let first = shared.began.elapsed().as_secs() / clips::SEGMENT;
    let mut text = format!("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:{}\n", clips::SEGMENT + 1);
    let _ = writeln!(
        text,
        "#EXT-X-MEDIA-SEQUENCE:{first}\n#EXT-X-DISCONTINUITY-SEQUENCE:{}",
        first.saturating_sub(1) / count
    );
    if hls == Hls::Keys {
        let key = film_playlist(id, hls, place);
        text += key.lines().find(|line| line.starts_with("#EXT-X-KEY")).expect("it has a key");
        text.push('\n');
    }
    for number in first..first + WINDOW {
        if number > 0 && number % count == 0 {
            text += "#EXT-X-DISCONTINUITY\n";
        }
        let length = lengths[(number % count) as usize];
        let _ = writeln!(text, "#EXTINF:{length},\n{}", place.part(id, &format!("live{number}.ts")));
    }
    text
}

/// A live stream as it comes, for as long as somebody takes it.
fn live(shared: &Shared, wire: &mut Wire, request: &Request, fault: Option<Fault>) -> Result<(), Gone> {
    shared.head(wire, Head::new(200).with("Content-Type", "video/mp2t").with("Connection", "close"))?;
    if request.method == "HEAD" {
        return Err(Gone);
    }
    let stream = shared.hub.join();
    loop {
        match stream.recv_timeout(Duration::from_millis(50)) {
            Ok(_) if fault == Some(Fault::Stalls) => {}
            Ok(bytes) => match fault {
                Some(Fault::Slow(rate)) => wire.send_at(&bytes, rate)?,
                _ => wire.send(&bytes)?,
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Gone),
        }
        if wire.is_over() || matches!(fault, Some(Fault::Abort(most)) if wire.sent >= most) {
            return Err(Gone);
        }
    }
}

fn send(
    shared: &Shared,
    wire: &mut Wire,
    request: &Request,
    fault: Option<Fault>,
    (kind, bytes): (&str, Arc<Vec<u8>>),
) -> Result<(), Gone> {
    let length = bytes.len() as u64;
    let tag = format!("\"{length:x}\"");
    let asked = request.field("range").filter(|_| request.method == "GET" && fault != Some(Fault::NoRange));
    // Of something that has changed the whole is sent (RFC 9110, 13.1.5).
    let asked = asked.filter(|_| request.field("if-range").is_none_or(|own| own == tag || own == MODIFIED));
    let mut head;
    let (first, last) = match range(asked, length) {
        Some(Err(Unsatisfiable)) => {
            head = Head::new(416).with("Content-Range", format!("bytes */{length}")).with("Content-Length", 0);
            shared.head(wire, head)?;
            return Ok(());
        }
        Some(Ok((first, last))) => {
            let said = if fault == Some(Fault::WrongRange) { (first + 1000).min(last) } else { first };
            head = Head::new(206).with("Content-Range", format!("bytes {said}-{last}/{length}"));
            (first, last)
        }
        None => {
            head = Head::new(200);
            (0, length.saturating_sub(1))
        }
    };
    let bytes = &bytes[first as usize..bytes.len().min(last as usize + 1)];
    head = head.with("Content-Type", kind).with("Content-Length", bytes.len());
    if !kind.contains("mpegURL") {
        head = head.with("ETag", tag).with("Last-Modified", MODIFIED);
    }
    if fault != Some(Fault::NoRange) {
        head = head.with("Accept-Ranges", "bytes");
    }
    shared.head(wire, head)?;
    if request.method == "HEAD" {
        return Ok(());
    }
    let rate = shared.settings.rate;
    match fault {
        Some(Fault::Stalls) => {
            wire.send(&bytes[..bytes.len().min(1000)])?;
            wire.wait(Duration::from_secs(3600))
        }
        Some(Fault::Abort(most)) if most < bytes.len() as u64 => {
            wire.send_at(&bytes[..most as usize], rate)?;
            Err(Gone)
        }
        Some(Fault::Slow(rate)) => wire.send_at(bytes, rate),
        _ => wire.send_at(bytes, rate),
    }
}

/// When everything was made, by its own word.
const MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

impl Shared {
    /// Sends a head, and writes down its status.
    pub(super) fn head(&self, wire: &mut Wire, head: Head) -> Result<(), Gone> {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = served.iter_mut().rev().find(|own| own.number == wire.number) {
            own.status = head.status();
        }
        drop(served);
        let head = if self.settings.keep_alive { head } else { head.with("Connection", "close") };
        wire.head(&head)
    }
}
