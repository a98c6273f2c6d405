//! Lists (M3U with the attributes of IPTV), read as their bytes come. Whatever cannot be read is passed over and counted.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3};

use super::Kind;
use super::store::{Catalogue, Context, Entry};

/// No line is longer; the rest of one that is, is passed over.
const LINE: usize = 64 << 10;
const TOO_LONG: &str = "a line is longer than is taken";
const NOWHERE: &str = "no address follows it";
/// No URL is longer.
const URL: usize = 4 << 10;

/// Reads a list into a catalogue.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The beginning of a line of which the rest has not come yet.
    begun: Vec<u8>,
    /// Within a line that is too long.
    passing: bool,
    lines: u64,
    head: Head,
    pending: Option<Info>,
    /// Whether it is in UTF-16, and what of a character has not come yet.
    wide: Option<Wide>,
    /// Whether it shows to be something else.
    pub wrong: Option<&'static str>,
}

/// UTF-16 on its way.
#[derive(Debug, Default)]
struct Wide {
    /// Whether the higher byte of each pair comes first.
    big: bool,
    byte: Option<u8>,
    /// The first half of a pair of surrogates.
    high: Option<u16>,
}

impl Wide {
    fn push(&mut self, data: &[u8]) -> String {
        let mut units: Vec<u16> = self.high.take().into_iter().collect();
        for byte in data {
            match self.byte.take() {
                None => self.byte = Some(*byte),
                Some(first) if self.big => units.push(u16::from_be_bytes([first, *byte])),
                Some(first) => units.push(u16::from_le_bytes([first, *byte])),
            }
        }
        self.high = units.pop_if(|last| (0xd800..0xdc00).contains(last));
        String::from_utf16_lossy(&units)
    }
}

/// What the first line says of all entries.
#[derive(Debug, Default)]
struct Head {
    catchup: String,
    source: String,
    days: u32,
}

/// What the lines before an address say.
#[derive(Debug, Default)]
struct Info {
    name: String,
    group: String,
    logo: String,
    guide: String,
    tvg_name: String,
    number: u32,
    catchup: String,
    source: String,
    days: Option<u32>,
    fields: String,
}

impl Reader {
    /// The next bytes of the list.
    pub fn push(&mut self, data: &[u8], catalogue: &mut Catalogue, cx: &Context<'_>) {
        let mut data = Cow::Borrowed(data);
        // A byte order mark; its first byte may come alone.
        if self.wide.is_none() && self.lines == 0 && !self.passing && self.begun.len() < 2 {
            let start: Vec<u8> = self.begun.iter().chain(data.iter()).copied().take(2).collect();
            let big = match start[..] {
                [0xff, 0xfe] => Some(false),
                [0xfe, 0xff] => Some(true),
                _ => None,
            };
            if let Some(big) = big {
                self.wide = Some(Wide { big, ..Wide::default() });
                data = Cow::Owned(data[2 - self.begun.len()..].to_vec());
                self.begun.clear();
            }
        }
        match &mut self.wide {
            Some(wide) => {
                let text = wide.push(&data);
                self.push_lines(text.as_bytes(), catalogue, cx);
            }
            None => self.push_lines(&data, catalogue, cx),
        }
    }

    fn push_lines(&mut self, mut data: &[u8], catalogue: &mut Catalogue, cx: &Context<'_>) {
        // Some lists end their lines with CR alone; of CRLF an empty line is left, which says nothing.
        while let Some(end) = memchr2(b'\n', b'\r', data) {
            if end == 0 && self.begun.is_empty() && !self.passing {
                // As many as there are at once: of a list of nothing else very many fit into a few bytes.
                let more = data.iter().position(|byte| !matches!(byte, b'\n' | b'\r'));
                data = &data[more.unwrap_or(data.len())..];
                continue;
            }
            let (line, rest) = (&data[..end], &data[end + 1..]);
            data = rest;
            if std::mem::take(&mut self.passing) {
                continue;
            }
            if self.begun.is_empty() {
                self.line(line, catalogue, cx);
            } else {
                let mut whole = std::mem::take(&mut self.begun);
                whole.extend_from_slice(line);
                self.line(&whole, catalogue, cx);
                whole.clear();
                self.begun = whole;
            }
        }
        if self.passing {
            return;
        }
        if self.begun.len() + data.len() > LINE {
            catalogue.skip("", TOO_LONG);
            self.passing = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(data);
        }
    }

    /// There is no more.
    pub fn finish(&mut self, catalogue: &mut Catalogue, cx: &Context<'_>) {
        let last = std::mem::take(&mut self.begun);
        if !last.is_empty() {
            self.line(&last, catalogue, cx);
        }
        if let Some(last) = self.pending.take() {
            catalogue.skip(&last.name, NOWHERE);
        }
    }

    fn line(&mut self, line: &[u8], catalogue: &mut Catalogue, cx: &Context<'_>) {
        if line.len() > LINE {
            catalogue.skip("", TOO_LONG);
            return;
        }
        let first = self.lines == 0;
        self.lines += 1;
        let line = if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        let text = text(line);
        let text = text.trim();
        let Some(tag) = text.strip_prefix('#') else {
            if text.is_empty() {
                self.lines -= u64::from(first);
            } else if first && text.starts_with(['<', '{']) {
                self.wrong = Some(if text.starts_with('<') { "a web page" } else { "JSON" });
            } else {
                self.address(text, catalogue, cx);
            }
            return;
        };
        if let Some(rest) = after(tag, "EXTINF:") {
            if let Some(before) = self.pending.replace(info(rest)) {
                catalogue.skip(&before.name, NOWHERE);
            }
        } else if let Some(rest) = after(tag, "EXTM3U") {
            self.head(rest, catalogue);
        } else if let Some(pending) = &mut self.pending {
            if let Some(group) = after(tag, "EXTGRP:") {
                if pending.group.is_empty() {
                    pending.group = clean(group);
                }
            } else if let Some(option) = after(tag, "EXTVLCOPT:") {
                let (name, value) = option.split_once('=').unwrap_or_default();
                match name.trim() {
                    "http-user-agent" => field(&mut pending.fields, "User-Agent", value),
                    "http-referrer" | "http-referer" => field(&mut pending.fields, "Referer", value),
                    _ => {}
                }
            } else if let Some(json) = after(tag, "EXTHTTP:")
                && let Ok(serde_json::Value::Object(all)) = serde_json::from_str(json.trim())
            {
                for (name, value) in &all {
                    field(&mut pending.fields, name, value.as_str().unwrap_or_default());
                }
            }
        }
    }

    fn head(&mut self, rest: &str, catalogue: &mut Catalogue) {
        attributes(rest, |name, value| match name {
            "url-tvg" | "x-tvg-url" if catalogue.guide.is_none() => {
                // There may be several, of which the first has to do.
                let first = value.split(',').map(str::trim).find(|url| !url.is_empty());
                catalogue.guide = first.map(str::to_owned);
            }
            "catchup" | "catchup-type" => self.head.catchup = value.to_ascii_lowercase(),
            "catchup-source" => self.head.source = value.to_owned(),
            "catchup-days" => self.head.days = value.parse().unwrap_or_default(),
            _ => {}
        });
    }

    /// The address of what the lines before it described.
    fn address(&mut self, text: &str, catalogue: &mut Catalogue, cx: &Context<'_>) {
        let mut own = self.pending.take().unwrap_or_default();
        // Kodi's way to say what is asked with: `url|User-Agent=…&Referer=…`.
        let (url, options) = text.split_once('|').unwrap_or((text, ""));
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or_default();
            let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            field(&mut own.fields, name, &value);
        }
        let url = url.trim();
        let Some(path) = path(url) else {
            return catalogue.skip(&own.name, "what follows it is no address of http or https");
        };
        if own.name.is_empty() {
            own.name = own.tvg_name;
        }
        if own.name.is_empty() {
            let last = path.rsplit('/').next().unwrap_or_default();
            own.name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
        }
        let extension = extension(path);
        let numbered = episode(&own.name);
        let kind = kind(path, extension, numbered.is_some());
        let (catchup, source, days) = match own.catchup.as_str() {
            "" => (self.head.catchup.as_str(), self.head.source.as_str(), own.days.unwrap_or(self.head.days)),
            "none" | "disabled" => ("", "", 0),
            kind => (kind, own.source.as_str(), own.days.unwrap_or(self.head.days)),
        };
        let source = if own.source.is_empty() { source } else { &own.source };
        let has_archive = kind == Kind::Live && !catchup.is_empty();
        let entry = Entry {
            name: &own.name,
            group: &own.group,
            logo: &own.logo,
            guide: &own.guide,
            address: url,
            extension,
            number: own.number,
            days: if has_archive { days.min(365) } else { 0 },
            catchup: if has_archive { catchup } else { "" },
            catchup_source: if has_archive { source } else { "" },
            fields: &own.fields,
            episode: (kind == Kind::Episode).then(|| numbered.unwrap_or((&own.name, 1, 0))),
            ..Entry::default()
        };
        catalogue.add(cx, kind, &entry);
    }
}

/// As UTF-8; what is not that is taken for Latin-1.
fn text(line: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => line.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// What follows a tag, in whatever case it is written.
fn after<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (own, rest) = tag.split_at_checked(name.len())?;
    own.eq_ignore_ascii_case(name).then_some(rest)
}

fn clean(text: &str) -> String {
    let text = text.trim();
    if text.contains(char::is_control) { text.replace(char::is_control, " ") } else { text.to_owned() }
}

fn info(rest: &str) -> Info {
    let mut info = Info::default();
    let name = attributes(rest, |name, value| {
        let wanted = match name {
            "tvg-id" => &mut info.guide,
            "tvg-name" => &mut info.tvg_name,
            "tvg-logo" | "logo" => &mut info.logo,
            "group-title" => &mut info.group,
            "catchup-source" => &mut info.source,
            "catchup" | "catchup-type" => {
                info.catchup = value.to_ascii_lowercase();
                return;
            }
            "catchup-days" => {
                info.days = value.parse().ok();
                return;
            }
            // Who says for how long means `shift`.
            "timeshift" | "tvg-rec" => {
                let days = value.parse().ok().filter(|days| *days > 0);
                if days.is_some() && info.catchup.is_empty() {
                    info.catchup = String::from("shift");
                }
                info.days = info.days.or(days);
                return;
            }
            "tvg-chno" | "channel-number" => {
                info.number = value.parse().unwrap_or_default();
                return;
            }
            _ => return,
        };
        *wanted = clean(value);
    });
    info.name = clean(name);
    info
}

/// Says every attribute before the name, which is what follows the first comma outside of quotes.
fn attributes<'t>(text: &'t str, mut each: impl FnMut(&str, &'t str)) -> &'t str {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(stop) = end_of_name(rest) else { return "" };
        let (name, left) = rest.split_at(stop);
        match left.as_bytes()[0] {
            b',' => return &left[1..],
            b'=' => {
                let value;
                (value, rest) = value_of(&left[1..]);
                if !name.is_empty() {
                    each(&name.to_ascii_lowercase(), value);
                }
            }
            _ => rest = left,
        }
    }
}

/// Where a name ends: at `=`, a comma or white space.
fn end_of_name(text: &str) -> Option<usize> {
    text.bytes().position(|byte| matches!(byte, b'=' | b',' | b' ' | b'\t'))
}

/// A value, in quotes or not, and what follows it.
fn value_of(text: &str) -> (&str, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return text.split_at(end);
    };
    let bytes = quoted.as_bytes();
    let mut from = 0;
    // Names have quotes in them: the one that ends the value stands before the end, a comma, or the name of the next.
    while let Some(at) = memchr(b'"', &bytes[from..]).map(|at| at + from) {
        let behind = &bytes[at + 1..];
        let ends = match behind.first() {
            None | Some(b',') => true,
            Some(b' ' | b'\t') => memchr3(b'=', b',', b'"', behind).is_none_or(|next| behind[next] != b'"'),
            Some(_) => false,
        };
        if ends {
            return (&quoted[..at], &quoted[at + 1..]);
        }
        from = at + 1;
    }
    // None does: it ends at the last quote, or, without any, where the next separator is.
    let end = quoted.rfind('"').or_else(|| memchr2(b',', b' ', bytes)).unwrap_or(quoted.len());
    let rest = &quoted[end..];
    (&quoted[..end], rest.strip_prefix('"').unwrap_or(rest))
}

/// Adds a field of requests, if it is one that is sent.
fn field(fields: &mut String, name: &str, value: &str) {
    const SENT: [&str; 5] = ["User-Agent", "Referer", "Cookie", "Authorization", "Origin"];
    let name = if name.trim().eq_ignore_ascii_case("Referrer") { "Referer" } else { name.trim() };
    let value = value.trim();
    if let Some(name) = SENT.iter().find(|sent| sent.eq_ignore_ascii_case(name))
        && !value.is_empty()
        && value.len() <= 1024
        && !value.contains(char::is_control)
    {
        for part in [name, ": ", value, "\n"] {
            fields.push_str(part);
        }
    }
}

/// The path of an address that is one of HTTP.
pub(super) fn path(url: &str) -> Option<&str> {
    let rest = after(url, "http://").or_else(|| after(url, "https://"))?;
    if url.len() > URL || rest.is_empty() || rest.starts_with(['/', '?', '#']) || rest.contains(char::is_control) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    Some(rest[..end].find('/').map_or("", |at| &rest[at..end]))
}

/// What follows the last dot of a path, in lower case as far as it is known.
fn extension(path: &str) -> &'static str {
    const KNOWN: [&str; 18] = [
        "ts", "m3u8", "mpd", "mp4", "mkv", "avi", "mov", "m4v", "webm", "flv", "wmv", "mpg", "mpeg", "mp3", "aac",
        "m2ts", "3gp", "ogg",
    ];
    let last = path.rsplit('/').next().unwrap_or_default();
    let own = last.rsplit_once('.').map_or("", |(_, extension)| extension);
    KNOWN.iter().find(|known| known.eq_ignore_ascii_case(own)).copied().unwrap_or_default()
}

fn kind(path: &str, extension: &str, numbered: bool) -> Kind {
    let file = matches!(
        extension,
        "mp4" | "mkv" | "avi" | "mov" | "m4v" | "webm" | "flv" | "wmv" | "mpg" | "mpeg" | "m2ts" | "3gp"
    );
    if path.contains("/live/") {
        Kind::Live
    } else if path.contains("/series/") || numbered && (file || path.contains("/movie/")) {
        Kind::Episode
    } else if path.contains("/movie/") || file {
        Kind::Film
    } else {
        Kind::Live
    }
}

/// `Series S01E02`, also `s1 e2` and `S01.E02`: the series, the season and the number.
fn episode(name: &str) -> Option<(&str, u32, u32)> {
    let bytes = name.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut from = 0;
    while let Some(at) = memchr2(b's', b'S', &bytes[from..]).map(|at| at + from) {
        from = at + 1;
        let begins = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let season = digits(at + 1);
        if !begins || !(1..=3).contains(&season) {
            continue;
        }
        let mut next = at + 1 + season;
        while matches!(bytes.get(next), Some(b' ' | b'.' | b'-' | b'_')) {
            next += 1;
        }
        if !matches!(bytes.get(next), Some(b'e' | b'E')) {
            continue;
        }
        let number = digits(next + 1);
        if !(1..=4).contains(&number) {
            continue;
        }
        let series = name[..at].trim_end_matches([' ', '-', '.', '_', '|', ':', '–']).trim();
        let parsed = |from: usize, count: usize| name[from..from + count].parse().unwrap_or_default();
        let series = if series.is_empty() { name } else { series };
        return Some((series, parsed(at + 1, season), parsed(next + 1, number)));
    }
    None
}

#[cfg(test)]
#[path = "m3u_tests.rs"]
mod tests;
