//! Titles of providers: films, episodes, live streams that come as HLS or DASH, and what was live some time ago.
//!
//! | path | what |
//! |---|---|
//! | `/movie/{user}/{password}/{id}[.ext]`, `/series/…` | a film, an episode |
//! | `/timeshift/{user}/{password}/{minutes}/{start}/{id}[.ts\|.m3u8]` | what was live |
//! | `/hls/{sealed}` | what playlists of theirs name |
//! | `/streaming/timeshift.php`, `/timeshift.php` | the same: `username`, `password`, `stream`, `start`, `duration` |

use holdfast_core::input::{Ask, Failure, RefuseReason, UserId, ViewerEnd, Want};
use holdfast_core::playback::Item;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use url::Url;

use super::{local, login, no_users, not_allowed, not_found, refused};
use crate::hls::sealed;
use crate::http::field::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ALLOW, CACHE_CONTROL, CONTENT_TYPE, IF_RANGE, LOCATION,
    RETRY_AFTER, VIA,
};
use crate::http::range::{Asked, Several, Span};
use crate::http::{Body, FieldValue, Method, Request, Response, Status, Via};
use crate::providers::{Kind, Part, Title};
use crate::server::{Call, Errand, FetchedFrom, Server, Size, Wanted, What};

/// The longest recording that may be asked for, in minutes.
const MINUTES: u32 = 24 * 60;

/// How far ahead, in seconds, a recording may begin: clocks differ.
const AHEAD: u64 = 60;

/// A day, in seconds. A recording may begin so much earlier than its catalogue says that they go back: providers are generous.
const DAY: u64 = 24 * 3600;

/// A title as the last part of a path names it: `12`, `12.mkv`.
pub(super) struct File {
    id: u32,
    /// What the client takes it for; empty if it does not say.
    extension: String,
}

impl File {
    /// Reads a file's name.
    pub fn parse(file: &str) -> Option<File> {
        let (id, extension) = file.split_once('.').unwrap_or((file, ""));
        let plain = extension.len() <= 8 && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // One title, one address.
        let number = id.parse().ok().filter(|number: &u32| number.to_string() == id && plain)?;
        Some(File { id: number, extension: extension.to_ascii_lowercase() })
    }

    fn is_playlist(&self) -> bool {
        self.extension == "m3u8"
    }
}

/// `/movie/…` and `/series/…`
pub(super) fn play(call: &mut Call<'_>, request: &Request, kind: Kind, (name, password): (&str, &str), file: &str) {
    let Some(user) = enter(call, request, name, password) else { return };
    let Some(file) = File::parse(file) else { return call.answer(not_found()) };
    if local::play(call, request, user, (kind, file.id)) {
        return;
    }
    let Some(title) = call.title(user, kind, file.id) else {
        let found = call.server.providers().find(kind, file.id);
        let stray = found.is_some_and(|title| call.server.providers().is_stray(title.title));
        return call.answer(if stray { series_unknown() } else { not_found() });
    };
    let id = title.title;
    let (item, what) = match (title.extension.as_str(), kind) {
        ("m3u8", _) => (Item::Hls(id), What::Playlist),
        ("mpd", _) => (Item::Dash(id), What::Redirect),
        (_, Kind::Episode) => (Item::Series(id), What::Media),
        _ => (Item::Vod(id), What::Media),
    };
    let wanted = if title.extension == "ts" { Wanted::MpegTs } else { Wanted::Anything };
    fetch(call, request, user, Order { item, part: Part::Whole, what, wanted });
}

/// A live stream of a provider that comes as HLS or DASH. Whether it is one; if not, it is not answered.
pub(super) fn live(
    call: &mut Call<'_>,
    request: &Request,
    user: UserId,
    (title, id): (&Title, u32),
    as_playlist: bool,
) -> bool {
    let (item, what) = match title.extension.as_str() {
        "mpd" => (Item::Dash(title.title), What::Redirect),
        "m3u8" if as_playlist => (Item::Hls(title.title), What::Playlist),
        // There is no stream of it; the list of its segments is beside where that would be.
        "m3u8" => {
            call.answer(playlist_of(id));
            return true;
        }
        _ => return false,
    };
    let part = if what == What::Playlist { Part::Playlist } else { Part::Whole };
    fetch(call, request, user, Order { item, part, what, wanted: Wanted::Anything });
    true
}

/// `/timeshift/{user}/{password}/{minutes}/{start}/{id}`
pub(super) fn timeshift(
    call: &mut Call<'_>,
    request: &Request,
    (name, password): (&str, &str),
    (minutes, start): (&str, &str),
    file: &str,
) {
    let Some(user) = enter(call, request, name, password) else { return };
    let (Some(minutes), Some(start)) = (self::minutes(minutes), self::start(start)) else {
        return call.answer(malformed_time());
    };
    if start > call.wall() + AHEAD {
        return call.answer(not_yet());
    }
    let Some(file) = File::parse(file) else { return call.answer(not_found()) };
    let Some(title) = call.title(user, Kind::Live, file.id) else { return call.answer(not_found()) };
    if let Some(days) = call.server.providers().archived_days(title.title)
        && start + u64::from(days) * DAY + DAY < call.wall()
    {
        return call.answer(no_more(days));
    }
    let playlist = file.is_playlist();
    let part = Part::Archive { start, minutes, playlist };
    let (what, wanted) = if playlist { (What::Playlist, Wanted::Anything) } else { (What::Media, Wanted::MpegTs) };
    fetch(call, request, user, Order { item: Item::Catchup(title.title), part, what, wanted });
}

/// The same with everything in the query.
pub(super) fn timeshift_query(call: &mut Call<'_>, request: &Request) {
    let (name, password) = login::credentials(request).unwrap_or_default();
    let value = |name| request.query_value(name).unwrap_or_default().into_owned();
    let (minutes, start, stream) = (value("duration"), value("start"), value("stream"));
    timeshift(call, request, (&name, &password), (&minutes, &start), &stream);
}

/// `/hls/{sealed}`: what a playlist of a provider's names.
pub(super) fn child(call: &mut Call<'_>, request: &Request, text: &str) {
    if !matches!(request.method, Method::Get | Method::Head) {
        return call.answer(other_method(request));
    }
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return call.answer(malformed_address());
    }
    let Ok(sealed) = call.opened(text) else { return call.answer(not_ours()) };
    let Some(via) = call.came_through(request) else {
        return call.answer(comes_from_here(call.server));
    };
    let (what, want) = match sealed.kind {
        sealed::Kind::Playlist => (What::Playlist, Want::Setup),
        sealed::Kind::Media => (What::Media, Want::Part),
        sealed::Kind::Map => (What::Aside, Want::Part),
        sealed::Kind::Key | sealed::Kind::Data => (What::Aside, Want::Setup),
    };
    // The address alone will do; with a login it is that user's or nobody's.
    if let Some((name, password)) = login::credentials(request) {
        let Some(user) = login::user(call, request, &name, &password) else { return };
        if user != sealed.user {
            return call.answer(not_yours());
        }
    }
    let Some(title) = sealed.item.title() else { return call.answer(not_ours()) };
    // Players ask for `bytes=0-` of what they want whole.
    let span = Asked::of(request).span(Several::Whole).filter(|span| what != What::Playlist && *span != Span::From(0));
    let viewing = login::of(call, request, sealed.user, sealed.item);
    let sources = call.server.providers().sources(title);
    let ask = Ask {
        viewing,
        want,
        token: Some(sealed.token),
        account: Some(sealed.account),
        providers: sources.iter().map(|source| source.provider).collect(),
    };
    if request.method == Method::Head {
        let head = if what == What::Playlist { super::hls::playlist_head() } else { stream_head() };
        return look(call, &ask, head);
    }
    call.fetch(Errand {
        ask,
        sources,
        from: FetchedFrom::Child(Box::new(sealed)),
        what,
        span,
        if_range: if_range(request),
        wanted: Wanted::Anything,
        up: 1,
        via,
    });
}

/// Who that is; answers the request if it is nobody, or if nothing is fetched for it.
fn enter(call: &mut Call<'_>, request: &Request, name: &str, password: &str) -> Option<UserId> {
    match request.method {
        // Before anybody is taken for a guesser: what it logs in with is its provider's.
        _ if call.came_through(request).is_none() => call.answer(comes_from_here(call.server)),
        _ if call.server.users().is_open() => call.answer(no_users()),
        Method::Get | Method::Head => return login::user(call, request, name, password),
        _ => call.answer(other_method(request)),
    }
    None
}

/// What is neither GET nor HEAD. Pages of other origins may ask for parts.
fn other_method(request: &Request) -> Response {
    if request.method != Method::Options {
        return not_allowed("GET, HEAD, OPTIONS");
    }
    Response::new(Status::NO_CONTENT)
        .header(ALLOW, FieldValue::from_static("GET, HEAD, OPTIONS"))
        .header(ACCESS_CONTROL_ALLOW_METHODS, FieldValue::from_static("GET, HEAD, OPTIONS"))
        .header(ACCESS_CONTROL_ALLOW_HEADERS, FieldValue::from_static("Range, If-Range"))
}

/// What a request is for.
struct Order {
    item: Item,
    part: Part,
    what: What,
    wanted: Wanted,
}

fn fetch(call: &mut Call<'_>, request: &Request, user: UserId, order: Order) {
    let Order { item, part, what, wanted } = order;
    let Some(title) = item.title() else { return call.answer(not_found()) };
    let Some(via) = call.came_through(request) else {
        return call.answer(comes_from_here(call.server));
    };
    let head = request.method == Method::Head;
    let viewing = login::of(call, request, user, item);
    let sources = call.server.providers().sources(title);
    let providers = sources.iter().map(|source| source.provider).collect();
    let ask = |want, providers| Ask { viewing, want, token: None, account: None, providers };
    let known = call.size(user, title).cloned();
    let what = match (what, part) {
        (What::Media, Part::Whole) if head => match known {
            Some(size) => return look(call, &ask(Want::Look, providers), looked_at(&size)),
            None if call.looks_on(user, title) => return,
            None => What::Look,
        },
        // What it would be is known.
        (What::Media, _) if head => return look(call, &ask(Want::Look, providers), stream_head()),
        (What::Playlist, _) if head => {
            return look(call, &ask(Want::Look, providers), super::hls::playlist_head());
        }
        (what, _) => what,
    };
    let asked = Asked::of(request);
    if asked == Asked::Abuse {
        return call.answer(unsatisfiable());
    }
    let (span, want) = match what {
        What::Media => (asked.span(Several::Whole), asked.want(Several::Whole)),
        What::Aside => (asked.span(Several::Whole), Want::Setup),
        What::Playlist | What::Redirect => (None, Want::Setup),
        What::Look => (None, Want::Look),
    };
    let if_range = if_range(request);
    call.fetch(Errand {
        ask: ask(want, providers),
        sources,
        from: FetchedFrom::Title(part),
        what,
        span,
        if_range,
        wanted,
        up: request.segments.len().saturating_sub(1),
        via,
    });
}

/// Answers HEAD with what is known, for which nobody is counted and nobody asked, or with what GET would be refused with at once.
fn look(call: &mut Call<'_>, ask: &Ask, head: Response) {
    let reason = call.server.edge().refuses_to_fetch(call.now, ask);
    call.answer(reason.map_or(head, |reason| refused(reason, None)));
}

fn if_range(request: &Request) -> Option<FieldValue> {
    request.headers.get(IF_RANGE.as_str()).and_then(|value| FieldValue::new(value).ok())
}

/// How long a recording is to be.
fn minutes(text: &str) -> Option<u32> {
    text.parse().ok().filter(|minutes| (1..=MINUTES).contains(minutes) && !text.starts_with('+'))
}

/// When a recording begins, in seconds since 1970: `2026-11-30:20-15` or `2026-11-30:20-15-00` in this server's time zone, which is
/// UTC, or that number itself.
fn start(text: &str) -> Option<u64> {
    if text.len() >= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|seconds: &u64| *seconds < 1 << 40);
    }
    let (date, time) = text.split_once([':', '_', ' ', 'T'])?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.split(['-', ':']).map(number);
    let (hour, minute) = (time.next()??, time.next()??);
    let second = match time.next() {
        Some(second) => second?,
        None => 0,
    };
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    let small = |number: u16| i8::try_from(number).ok();
    let civil = DateTime::new(
        i16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        0,
    );
    let moment = civil.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    u64::try_from(moment.as_second()).ok()
}

/// What a client gets whose response the core ends before it began.
pub(crate) fn ended(reason: ViewerEnd) -> RefuseReason {
    match reason {
        ViewerEnd::Superseded => RefuseReason::Superseded,
        ViewerEnd::Preempted => RefuseReason::Preempted,
        ViewerEnd::Shutdown => RefuseReason::Draining,
        ViewerEnd::Evicted | ViewerEnd::Limit => RefuseReason::UserLimit,
        ViewerEnd::Kicked => RefuseReason::Kicked,
        ViewerEnd::Failed => RefuseReason::ProviderFailed,
        ViewerEnd::GraceOver => RefuseReason::ProviderLimit,
        ViewerEnd::Expired => RefuseReason::AccountExpired,
        _ => RefuseReason::PlaybackOver,
    }
}

/// No provider gave it. An error of the provider's is the client's as well, but for one about our credentials.
pub(crate) fn failed(failure: Failure, why: &str) -> Response {
    let status = match failure {
        Failure::Status(401 | 403) => Status::BAD_GATEWAY,
        Failure::Status(status) => Status::of_error(status).unwrap_or(Status::BAD_GATEWAY),
        Failure::TimedOut => Status::GATEWAY_TIMEOUT,
        Failure::Unreachable | Failure::Unusable | Failure::Page => Status::BAD_GATEWAY,
    };
    let reason = RefuseReason::ProviderFailed.as_str();
    let problem = Response::problem(status, reason, "The provider does not give it", why);
    if status.code() >= 500 { problem.header(RETRY_AFTER, FieldValue::from(3)) } else { problem }
}

/// What is said of a title of which only that was to be known.
pub(crate) fn looked_at(size: &Size) -> Response {
    let response = Response::new(Status::OK).body(size.length.map_or(Body::Stream, Body::Sized));
    size.fields.iter().fold(response, |response, (name, value)| response.header(*name, value.clone()))
}

/// What was asked for lies behind the end.
pub(crate) fn unsatisfiable() -> Response {
    let detail = "there is nothing in the range that was asked for";
    Response::problem(Status::RANGE_NOT_SATISFIABLE, "range", "Range Not Satisfiable", detail)
}

/// The client is to ask there. Holds credentials of the provider's, which is how it is meant.
pub(crate) fn elsewhere(url: &Url) -> Response {
    match FieldValue::new(url.as_str()) {
        Ok(location) => Response::new(Status::FOUND)
            .header(LOCATION, location)
            .header(CACHE_CONTROL, FieldValue::from_static("no-store")),
        Err(_) => refused(RefuseReason::ProviderFailed, None),
    }
}

/// The playlist of what was asked for as a stream: it stands beside that.
pub(crate) fn playlist_of(id: u32) -> Response {
    let location = FieldValue::new(format!("{id}.m3u8")).expect("digits are a field value");
    Response::new(Status::FOUND).header(LOCATION, location).header(CACHE_CONTROL, FieldValue::from_static("no-store"))
}

fn stream_head() -> Response {
    Response::new(Status::OK)
        .header(CONTENT_TYPE, FieldValue::from_static("video/mp2t"))
        .header(CACHE_CONTROL, FieldValue::from_static("no-store"))
        .body(Body::Stream)
}

fn series_unknown() -> Response {
    let detail =
        "this user may see some series alone, and of which one this episode is was not said yet: open its series once";
    Response::problem(Status::NOT_FOUND, "series-unknown", "Not Found", detail)
}

fn malformed_address() -> Response {
    let detail = "what follows /hls/ is letters, digits, dashes and underscores, as a playlist of this server has it";
    Response::problem(Status::BAD_REQUEST, "malformed-address", "Bad Request", detail)
}

fn not_ours() -> Response {
    Response::problem(Status::FORBIDDEN, "not-ours", "Forbidden", &sealed::NotOurs.to_string())
}

fn not_yours() -> Response {
    let detail = "this address was given out to another user than the one that logs in here; open the playlist again";
    Response::problem(Status::FORBIDDEN, "not-yours", "Forbidden", detail)
}

fn malformed_time() -> Response {
    let detail =
        "a recording is named by its length in minutes, 1 to 1440, and its beginning: /60/2026-11-30:20-15/, in UTC";
    Response::problem(Status::BAD_REQUEST, "malformed-time", "Bad Request", detail)
}

fn not_yet() -> Response {
    let detail = "what is to begin in the future was not recorded; the beginning of a recording is in UTC";
    Response::problem(Status::NOT_FOUND, "not-recorded-yet", "Not Found", detail)
}

fn no_more(days: u32) -> Response {
    let detail = format!("what this stream was is kept for {days} days; the beginning of a recording is in UTC");
    Response::problem(Status::NOT_FOUND, "not-recorded-any-more", "Not Found", &detail)
}

/// It is asked for by this server itself, which knows it by its name in the answer.
pub(super) fn comes_from_here(server: &Server) -> Response {
    let detail = "this title is fetched from here in a circle: the provider's addresses lead back to this server";
    let own = Via::default().through(&server.settings().pseudonym());
    Response::problem(Status::LOOP_DETECTED, "loop", "Loop Detected", detail).header(VIA, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_recording_is_a_moment_in_utc_or_nothing() {
        for (text, seconds) in [
            ("2026-11-30:20-15", 1_796_069_700),
            ("2026-11-30:20-15-30", 1_796_069_730),
            ("2026-11-30_20-15", 1_796_069_700),
            ("2026-11-30 20:15:00", 1_796_069_700),
            ("1796069700", 1_796_069_700),
            ("2024-02-29:00-00", 1_709_164_800),
        ] {
            assert_eq!(start(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "2026-11-30",
            "2026-02-29:00-00",
            "2026-13-01:00-00",
            "2026-11-30:24-00",
            "2026-11-30:20-60",
            "x",
            "-1",
            "2026-11-30:20-15-00-00",
            "2026-11-30-1:20-15",
            "+2026-11-30:20-15",
            "1969-12-31:00-00",
            "12345678",
            "99999999999999999999",
            "2026-11-30:20",
            "70000-01-01:00-00",
        ] {
            assert_eq!(start(text), None, "{text}");
        }
        assert_eq!(minutes("90"), Some(90));
        assert!(["0", "1441", "", "-1", "+5", "9999999999", "1.5"].iter().all(|text| minutes(text).is_none()));
    }

    #[test]
    fn a_title_has_one_address() {
        let parsed = |text| File::parse(text).map(|file| (file.id, file.extension));
        assert_eq!(parsed("12"), Some((12, String::new())));
        assert_eq!(parsed("12.MKV"), Some((12, "mkv".into())));
        for wrong in ["", "012", "+1.mp4", "1.mp4.exe", "a.mp4", "1.toolongone", "4294967296", "1.m/p"] {
            assert!(parsed(wrong).is_none(), "{wrong}");
        }
    }
}
