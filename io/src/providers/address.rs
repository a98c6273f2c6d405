//! Where something of a catalogue is fetched with an account: whose credentials stand in its address, and how what was on some
//! time ago is asked for.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::{Credentials, Kind, Location, Part, Provider, ProviderSettings, Source};
use crate::http::FieldValue;
use crate::http::field::{self, FieldName};

/// What stands for itself in a path (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where a part of it is. `now` is in seconds since 1970.
pub(super) fn url(provider: &Provider, what: &Source, own: Option<&Credentials>, part: Part, now: u64) -> Option<Url> {
    if provider.is_panel() {
        return of_panel(provider, what, own?, part);
    }
    let settings = &provider.settings;
    let listed = settings.location.credentials().or_else(|| settings.accounts.first().cloned().flatten());
    let with_account = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some(match (&listed, own) {
            (Some(from), Some(to)) if from != to => replaced(&url, from, to),
            _ => url,
        })
    };
    match part {
        Part::Whole => with_account(&what.url),
        Part::Playlist => with_account(&as_playlist(&what.url)),
        Part::Archive { start, minutes, playlist } => {
            let archive = Archive { start, minutes, playlist, now };
            with_account(&archived(&what.url, &what.catchup, archive)?)
        }
    }
}

/// What requests for it say beside the usual.
pub(super) fn fields(settings: &ProviderSettings, own: &str) -> Vec<(FieldName, FieldValue)> {
    const ORIGIN: FieldName = FieldName::new("Origin");
    const SENT: [FieldName; 5] = [field::USER_AGENT, field::REFERER, field::COOKIE, field::AUTHORIZATION, ORIGIN];
    let mut fields: Vec<(FieldName, FieldValue)> = Vec::new();
    let configured = format!("User-Agent: {}", settings.user_agent);
    let configured = (!settings.user_agent.is_empty()).then_some(configured.as_str());
    for line in own.lines().chain(configured) {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let Some(name) = SENT.into_iter().find(|sent| sent.as_str() == name) else { continue };
        if let Ok(value) = FieldValue::new(value.to_owned())
            && fields.iter().all(|(said, _)| *said != name)
        {
            fields.push((name, value));
        }
    }
    fields
}

/// The address of a panel's, without what it names there.
pub(crate) fn panel(location: &Location) -> Option<String> {
    let Location::Http(url) = location else { return None };
    let mut base = url.clone();
    base.set_query(None);
    base.set_fragment(None);
    let path = url.path();
    let last = path.rsplit('/').next().unwrap_or_default();
    let folder = if last.contains('.') { &path[..path.len() - last.len()] } else { path };
    base.set_path(folder.trim_end_matches('/'));
    let _ = base.set_username("").and_then(|()| base.set_password(None));
    Some(String::from(base).trim_end_matches('/').to_owned())
}

fn of_panel(provider: &Provider, what: &Source, own: &Credentials, part: Part) -> Option<Url> {
    let base = panel(&provider.settings.location)?;
    let [user, password, id] =
        [&own.username, &own.password, &what.url].map(|text| utf8_percent_encode(text, RESERVED).to_string());
    let text = match (part, what.kind) {
        (Part::Archive { start, minutes, playlist }, _) => {
            let local = start.saturating_add_signed(provider.catalogue.offset);
            let start = written(local, "%Y-%m-%d:%H-%M")?;
            let extension = if playlist { "m3u8" } else { "ts" };
            format!("{base}/timeshift/{user}/{password}/{minutes}/{start}/{id}.{extension}")
        }
        (Part::Playlist, _) => format!("{base}/live/{user}/{password}/{id}.m3u8"),
        (Part::Whole, Kind::Live) => format!("{base}/live/{user}/{password}/{id}.{}", what.extension),
        (Part::Whole, kind) => {
            let (folder, extension) = (if kind == Kind::Film { "movie" } else { "series" }, &what.extension);
            let extension = if extension.is_empty() { "mp4" } else { extension };
            format!("{base}/{folder}/{user}/{password}/{id}.{extension}")
        }
    };
    Url::parse(&text).ok()
}

/// The address with another account's credentials where it holds those of `from`: before its host, one after the other in its
/// path, and as values in its query.
fn replaced(url: &Url, from: &Credentials, to: &Credentials) -> Url {
    let mut own = url.clone();
    let is = |text: &str, what: &str| !what.is_empty() && percent_decode_str(text).decode_utf8_lossy() == what;
    let encoded = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    if is(url.username(), &from.username) {
        let _ = own.set_username(&encoded(&to.username)).and_then(|()| own.set_password(Some(&encoded(&to.password))));
    }
    let mut segments: Vec<Cow<'_, str>> = url.path().split('/').map(Cow::Borrowed).collect();
    for at in 1..segments.len() {
        if is(&segments[at - 1], &from.username) && is(&segments[at], &from.password) {
            segments[at - 1] = encoded(&to.username).into();
            segments[at] = encoded(&to.password).into();
            break;
        }
    }
    own.set_path(&segments.join("/"));
    if let Some(query) = url.query() {
        let mut parts = Vec::new();
        for part in query.split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let plain = value.replace('+', " ");
            let other = match () {
                () if is(&plain, &from.username) && name != "password" => Some(&to.username),
                () if is(&plain, &from.password) => Some(&to.password),
                () => None,
            };
            parts.push(other.map_or(part.to_owned(), |other| format!("{name}={}", encoded(other))));
        }
        own.set_query(Some(&parts.join("&")));
    }
    own
}

/// The playlist of what a panel's list names as a stream.
fn as_playlist(url: &str) -> String {
    let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    match path.strip_suffix(".ts") {
        Some(stem) if path.contains("/live/") => format!("{stem}.m3u8{query}"),
        _ => url.to_owned(),
    }
}

#[derive(Clone, Copy)]
struct Archive {
    start: u64,
    minutes: u32,
    playlist: bool,
    now: u64,
}

/// Where what a live stream was is, after the way that its list says (protocols §4.2).
fn archived(url: &str, [way, source]: &[String; 2], archive: Archive) -> Option<String> {
    let template = match way.as_str() {
        "append" => format!("{url}{source}"),
        "shift" | "timeshift" if source.is_empty() => {
            let separator = if url.contains('?') { '&' } else { '?' };
            format!("{url}{separator}utc={{utc}}&lutc={{lutc}}")
        }
        "shift" | "timeshift" => format!("{url}{source}"),
        "fs" | "flussonic" | "flussonic-ts" | "flussonic-hls" => flussonic(url, archive)?,
        "xc" => xtream_codes(url, archive)?,
        "" => return None,
        // `default` and `vod` say all of it themselves.
        _ if !source.is_empty() => source.to_owned(),
        _ => return None,
    };
    Some(filled(&template, archive))
}

/// `…/channel/mpegts?token` or `…/channel/index.m3u8?token`.
fn flussonic(url: &str, archive: Archive) -> Option<String> {
    let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (channel, file) = path.rsplit_once('/')?;
    let kind =
        file.strip_suffix(".m3u8").and_then(|stem| stem.strip_suffix("index")).map(|kind| kind.trim_end_matches('-'));
    Some(match kind {
        Some("") => format!("{channel}/archive-{{utc}}-{{duration}}.m3u8{query}"),
        Some(kind) => format!("{channel}/{kind}-{{utc}}-{{duration}}.m3u8{query}"),
        None if archive.playlist => format!("{channel}/archive-{{utc}}-{{duration}}.m3u8{query}"),
        None => format!("{channel}/timeshift_abs-{{utc}}.ts{query}"),
    })
}

/// `…/live/user/password/id.ts`, also without `live`.
fn xtream_codes(url: &str, archive: Archive) -> Option<String> {
    let path = url.split('?').next()?;
    let mut parts = path.rsplitn(4, '/');
    let [id, password, user, base] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let base = base.strip_suffix("/live").unwrap_or(base);
    let (id, extension) = (id.split('.').next()?, if archive.playlist { "m3u8" } else { "ts" });
    let minutes = archive.minutes;
    Some(format!("{base}/timeshift/{user}/{password}/{minutes}/{{Y}}-{{m}}-{{d}}:{{H}}-{{M}}/{id}.{extension}"))
}

/// The template with every `{placeholder}` and `${placeholder}` that is known filled in.
fn filled(template: &str, archive: Archive) -> String {
    let mut text = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let before = &rest[..open];
        let Some(close) = rest[open..].find('}').map(|at| at + open) else { break };
        let value = placeholder(&rest[open + 1..close], archive);
        text.push_str(if value.is_some() { before.strip_suffix('$').unwrap_or(before) } else { before });
        match value {
            Some(value) => text.push_str(&value),
            None => text.push_str(&rest[open..=close]),
        }
        rest = &rest[close + 1..];
    }
    text.push_str(rest);
    text
}

fn placeholder(name: &str, archive: Archive) -> Option<String> {
    let Archive { start, minutes, now, .. } = archive;
    let seconds = u64::from(minutes) * 60;
    let end = start.saturating_add(seconds);
    let (name, argument) = name.split_once(':').map_or((name, None), |(name, argument)| (name, Some(argument)));
    let moment = |moment: u64| match argument {
        None => Some(moment.to_string()),
        // Letters such as `YmdHMS` stand for parts of the time.
        Some(letters) => {
            let mut format = String::new();
            for letter in letters.chars() {
                let _ = match letter {
                    'Y' | 'm' | 'd' | 'H' | 'M' | 'S' => write!(format, "%{letter}"),
                    '%' => write!(format, "%%"),
                    other => write!(format, "{other}"),
                };
            }
            written(moment, &format)
        }
    };
    let divided = |seconds: u64| {
        let unit = argument.map_or(Some(1), |unit| unit.parse().ok()).filter(|unit: &u64| *unit > 0)?;
        Some((seconds / unit).to_string())
    };
    match name {
        "utc" | "start" | "timestamp-start" => moment(start),
        "lutc" | "now" | "timestamp" => moment(now),
        "utcend" | "end" => moment(end),
        "duration" => divided(seconds),
        "offset" => divided(now.saturating_sub(start)),
        "Y" | "m" | "d" | "H" | "M" | "S" if argument.is_none() => written(start, &format!("%{name}")),
        _ => None,
    }
}

fn written(seconds: u64, format: &str) -> Option<String> {
    let moment = Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    let zoned = moment.to_zoned(TimeZone::UTC);
    jiff::fmt::strtime::format(format, &zoned).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(username: &str, password: &str) -> Credentials {
        Credentials { username: username.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn another_account_takes_the_place_of_the_lists_own_wherever_that_stands() {
        let (from, to) = (credentials("a@b", "s 1"), credentials("o/p", "q&r"));
        for (listed, own) in [
            ("http://p/live/a%40b/s%201/1.ts", "http://p/live/o%2Fp/q%26r/1.ts"),
            ("http://p/a@b/s%201/1", "http://p/o%2Fp/q%26r/1"),
            ("http://p/x?username=a%40b&password=s+1&id=1", "http://p/x?username=o%2Fp&password=q%26r&id=1"),
            ("http://a%40b:s%201@p/x", "http://o%2Fp:q%26r@p/x"),
            ("http://p/a@b/1/s%201/x", "http://p/a@b/1/s%201/x"),
            ("http://p/other?x=y", "http://p/other?x=y"),
        ] {
            assert_eq!(replaced(&listed.parse().unwrap(), &from, &to).as_str(), own, "{listed}");
        }
        // A password that is the name is one all the same.
        let url = "http://p/x?username=a&password=a".parse().unwrap();
        let own = replaced(&url, &credentials("a", "a"), &credentials("b", "c"));
        assert_eq!(own.as_str(), "http://p/x?username=b&password=c");
        // What is equal by chance stays: both have to be there, side by side.
        let (from, to) = (credentials("live", "1"), credentials("x", "y"));
        let url = "http://p/live/live/1/7.ts".parse().unwrap();
        assert_eq!(replaced(&url, &from, &to).as_str(), "http://p/live/x/y/7.ts");
    }

    #[test]
    fn what_a_list_says_of_a_stream_goes_before_what_is_said_of_all() {
        let settings = ProviderSettings {
            user_agent: String::from("VLC"),
            ..crate::providers::tests::settings("http://p.example/", &[("a", "b")])
        };
        let said = |own: &str| -> Vec<String> {
            fields(&settings, own)
                .iter()
                .map(|(name, value)| format!("{}: {}", name.as_str(), value.as_str()))
                .collect()
        };
        assert_eq!(said(""), ["User-Agent: VLC"]);
        assert_eq!(said("Referer: http://r\nUser-Agent: Own\n"), ["Referer: http://r", "User-Agent: Own"]);
        assert_eq!(said("Host: evil\nUser-Agent: Own\n"), ["User-Agent: Own"]);
    }

    #[test]
    fn an_archive_is_asked_for_as_its_list_says() {
        // 2026-11-29T20:05:06Z, for 90 minutes, an hour and a second later.
        let ask = |url: &str, catchup: &'static str, source: &'static str, playlist: bool| {
            let archive = Archive { start: 1_795_982_706, minutes: 90, playlist, now: 1_795_986_307 };
            archived(url, &[catchup, source].map(str::to_owned), archive)
        };
        for (url, catchup, source, playlist, own) in [
            ("http://p/1.ts", "append", "?utc=${start}&d={duration:60}", false, "http://p/1.ts?utc=1795982706&d=90"),
            ("http://p/1.ts", "shift", "", false, "http://p/1.ts?utc=1795982706&lutc=1795986307"),
            ("http://p/1.ts?t=x", "shift", "", false, "http://p/1.ts?t=x&utc=1795982706&lutc=1795986307"),
            ("http://p/1", "default", "http://q/{Y}/{m}/{d}/{H}{M}{S}", false, "http://q/2026/11/29/200506"),
            (
                "http://p/1",
                "default",
                "http://q/{utc:Y-m-d_H}/{utcend}/{offset:60}",
                false,
                "http://q/2026-11-29_20/1795988106/60",
            ),
            ("http://p/1", "vod", "http://q/{unknown}/${duration}", false, "http://q/{unknown}/5400"),
            ("http://p/c/mpegts?t=x", "fs", "", false, "http://p/c/timeshift_abs-1795982706.ts?t=x"),
            ("http://p/c/mpegts?t=x", "flussonic", "", true, "http://p/c/archive-1795982706-5400.m3u8?t=x"),
            ("http://p/c/index.m3u8", "fs", "", true, "http://p/c/archive-1795982706-5400.m3u8"),
            ("http://p:8/live/u/s/7.ts", "xc", "", false, "http://p:8/timeshift/u/s/90/2026-11-29:20-05/7.ts"),
            ("http://p:8/u/s/7", "xc", "", true, "http://p:8/timeshift/u/s/90/2026-11-29:20-05/7.m3u8"),
        ] {
            assert_eq!(ask(url, catchup, source, playlist).as_deref(), Some(own), "{catchup} {url}");
        }
        assert_eq!(ask("http://p/1", "", "", false), None);
        assert_eq!(ask("http://p/1", "default", "", false), None);
        for source in ["{", "${", "{}", "{duration:0}", "{duration:x}", "{utc:%%%}", "${{utc}}"] {
            assert!(ask("http://p/1", "append", source, false).is_some(), "{source}");
        }
    }

    #[test]
    fn a_panel_is_where_its_address_says() {
        let panel = |text: &str| panel(&Location::parse(text).unwrap());
        for (text, base) in [
            ("http://p:8080", "http://p:8080"),
            ("http://p/", "http://p"),
            ("http://p/a/player_api.php?username=x&password=y", "http://p/a"),
            ("https://u:x@p/a/b/", "https://p/a/b"),
        ] {
            assert_eq!(panel(text).as_deref(), Some(base), "{text}");
        }
    }
}
