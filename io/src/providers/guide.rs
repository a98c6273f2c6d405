//! Guides (XMLTV), read as their bytes come, also where these are gzipped. Kept is what is on at channels that somebody has, about
//! now, as it stands in the guide.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr;
use memchr::memmem;
use quick_xml::Reader as Xml;
use quick_xml::events::Event;

use super::Secrets;
use super::store::GuideIds;
use super::unpacking::Unpacking;

/// No element is larger.
const ELEMENT: usize = 64 << 10;
/// So much of what is over is kept, and so much of what is to come; in seconds.
const PAST: u64 = 8 * 24 * 3600;
const TO_COME: u64 = 15 * 24 * 3600;
/// How large a block of elements is.
const BLOCK: usize = 1 << 20;

/// What is on when.
#[derive(Debug, Default)]
pub(crate) struct Programmes {
    blocks: Vec<Vec<u8>>,
    all: Vec<Programme>,
    channels: HashMap<Box<str>, Vec<u32>>,
    bytes: u64,
    /// How many are left out since they could not be read.
    pub skipped: u64,
    /// Whether the guide was read to its end.
    pub whole: bool,
}

/// Something that is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Programme {
    /// In seconds since 1970.
    pub start: u64,
    pub stop: u64,
    at: u32,
    length: u32,
}

impl Programmes {
    /// What is on at a channel, in the order of the guide.
    pub fn of<'a>(&'a self, channel: &str) -> impl Iterator<Item = (Programme, &'a str)> + use<'a> {
        let places = self.channels.get(channel).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| {
            let own = self.all[*place as usize];
            (own, self.element(own))
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    fn element(&self, own: Programme) -> &str {
        let block = self.blocks.get(own.at as usize / BLOCK).map_or(&[][..], Vec::as_slice);
        let at = own.at as usize % BLOCK;
        block.get(at..at + own.length as usize).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default()
    }

    fn add(&mut self, channel: &str, start: u64, stop: u64, element: &str) {
        if self.blocks.last().is_none_or(|block| block.len() + element.len() > BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let block = self.blocks.len() - 1;
        let Ok(at) = u32::try_from(block * BLOCK + self.blocks[block].len()) else { return };
        self.blocks[block].extend_from_slice(element.as_bytes());
        self.bytes += element.len() as u64;
        let place = self.all.len() as u32;
        self.all.push(Programme { start, stop, at, length: element.len() as u32 });
        match self.channels.get_mut(channel) {
            Some(places) => places.push(place),
            None => drop(self.channels.insert(channel.into(), vec![place])),
        }
    }
}

/// Reads a guide.
pub(crate) struct Reader {
    unpacking: Unpacking,
    /// What of an element came so far, and what stands before it.
    begun: Vec<u8>,
    /// Whether the rest of an element that is too long is passed over.
    passing: bool,
    /// The ids of channels that are wanted.
    wanted: GuideIds,
    /// Seconds since 1970.
    now: u64,
    /// How many bytes are kept, and eight times as many read.
    limit: u64,
    /// What must not be told of the provider.
    secrets: Secrets,
    read: u64,
    seen: bool,
    /// Whether its end came.
    ended: bool,
    pub programmes: Programmes,
}

impl Reader {
    pub fn new(wanted: GuideIds, now: u64, limit: u64, secrets: Secrets) -> Self {
        Reader {
            unpacking: Unpacking::default(),
            begun: Vec::new(),
            passing: false,
            wanted,
            now,
            limit,
            secrets,
            read: 0,
            seen: false,
            ended: false,
            programmes: Programmes::default(),
        }
    }

    /// The next bytes; how many of them were taken.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn push(&mut self, data: &[u8]) -> Result<usize, &'static str> {
        let mut unpacking = std::mem::take(&mut self.unpacking);
        let done = unpacking.push(data, |plain| self.plain(plain));
        self.unpacking = unpacking;
        done
    }

    /// There is no more: what is in it, and what is wrong with it, if something is.
    pub fn finish(mut self) -> (Programmes, Result<(), &'static str>) {
        let unpacking = std::mem::take(&mut self.unpacking);
        let fault = match unpacking.finish(|plain| self.plain(plain)) {
            Ok(()) if !self.seen => Err("it is no XMLTV"),
            Ok(()) if !self.ended => Err("it breaks off before its end (</tv>)"),
            Ok(()) if self.programmes.skipped > 0 && self.programmes.all.is_empty() => {
                Err("none of the programmes in it can be read")
            }
            done => done,
        };
        for places in self.programmes.channels.values_mut() {
            let all = &self.programmes.all;
            places.sort_by_key(|place| all[*place as usize].start);
        }
        self.programmes.whole = fault.is_ok();
        (self.programmes, fault)
    }

    fn plain(&mut self, data: &[u8]) -> Result<(), &'static str> {
        self.read += data.len() as u64;
        if self.read > self.limit.saturating_mul(8) || self.programmes.bytes > self.limit {
            return Err("it is larger than `bytes` allows");
        }
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend_from_slice(data);
        let mut left = whole.as_slice();
        loop {
            if self.passing {
                let Some(end) = memmem::find(left, b"</programme>") else {
                    // The end may have come in part.
                    left = &left[left.len().saturating_sub(b"</programme>".len())..];
                    break;
                };
                left = &left[end + b"</programme>".len()..];
                self.passing = false;
            }
            let Some(open) = memchr(b'<', left) else {
                left = &[];
                break;
            };
            left = &left[open..];
            const BEGIN: &[u8] = b"<programme";
            if left.len() < BEGIN.len() && BEGIN.starts_with(left) {
                break;
            }
            if !left.starts_with(BEGIN) {
                self.seen |= left.starts_with(b"<tv") || left.starts_with(b"<channel");
                self.ended |= left.starts_with(b"</tv>");
                // It may have come in part.
                if [&b"<tv"[..], b"<channel", b"</tv>"]
                    .iter()
                    .any(|tag| left.len() < tag.len() && tag.starts_with(left))
                {
                    break;
                }
                left = &left[1..];
                continue;
            }
            self.seen = true;
            let Some(end) = memmem::find(left, b"</programme>").map(|at| at + b"</programme>".len()) else {
                if left.len() > ELEMENT {
                    self.programmes.skipped += 1;
                    self.passing = true;
                    continue;
                }
                break;
            };
            let (element, rest) = left.split_at(end);
            left = rest;
            self.element(element);
        }
        let from = whole.len() - left.len();
        whole.drain(..from);
        self.begun = whole;
        Ok(())
    }

    fn element(&mut self, raw: &[u8]) {
        let text = match std::str::from_utf8(raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => raw.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
        };
        let head = &text[..text.find('>').unwrap_or(text.len())];
        let value = |name: &str| attribute(head, name);
        let channel = value("channel").map(|channel| unescaped(channel.trim()));
        let Some(((channel, start), stop)) =
            channel.zip(value("start").and_then(time)).zip(value("stop").and_then(time))
        else {
            self.programmes.skipped += 1;
            return;
        };
        if !self.wanted.contains(&channel) || stop + PAST < self.now || start > self.now + TO_COME {
            return;
        }
        if text.len() > ELEMENT || !is_whole(&text) {
            self.programmes.skipped += 1;
            return;
        }
        self.programmes.add(&channel, start, stop, &self.without_secrets(&text));
    }
}

impl Reader {
    /// An element that is whole, without the tags that name an address which tells the provider's credentials: `<icon src>`, and
    /// `<url>` with what is in it.
    fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let tells = |address: &str| self.secrets.are_told_by(&unescaped(address));
        let mut left = Cow::Borrowed(text);
        let mut from = 0;
        while let Some(open) = left[from..].find("<icon").map(|at| at + from) {
            let Some(close) = left[open..].find('>').map(|at| open + at + 1) else { break };
            from = close;
            if attribute(&left[open..close - 1], "src").is_some_and(tells) {
                let end = if left[..close].ends_with("/>") { Some(close) } else { after(&left, close, "</icon>") };
                left.to_mut().replace_range(open..end.unwrap_or(close), "");
                from = open;
            }
        }
        from = 0;
        while let Some(open) = left[from..].find("<url").map(|at| at + from) {
            let Some(close) = after(&left, open, "</url>") else { break };
            from = close;
            if tells(left[open..close].split(['<', '>']).nth(2).unwrap_or_default().trim()) {
                left.to_mut().replace_range(open..close, "");
                from = open;
            }
        }
        left
    }
}

/// Behind the next `what` from there on.
fn after(text: &str, from: usize, what: &str) -> Option<usize> {
    text[from..].find(what).map(|at| from + at + what.len())
}

/// The value of an attribute within a tag, as it is written.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let mut from = 0;
    while let Some(at) = tag[from..].find(name).map(|at| at + from) {
        from = at + name.len();
        let Some(rest) = tag[from..].trim_start().strip_prefix('=').map(str::trim_start) else { continue };
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')).unwrap_or('"');
        if tag[..at].ends_with(char::is_whitespace)
            && let Some(rest) = rest.strip_prefix(quote)
        {
            return rest.split(quote).next();
        }
    }
    None
}

fn unescaped(text: &str) -> Cow<'_, str> {
    quick_xml::escape::unescape(text).unwrap_or(Cow::Borrowed(text))
}

/// Whether nothing in an element would break the document that it is put into.
fn is_whole(element: &str) -> bool {
    let mut xml = Xml::from_str(element);
    let mut depth = 0;
    loop {
        match xml.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                if depth > 16 || start.attributes().any(|attribute| attribute.is_err()) {
                    return false;
                }
            }
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::Empty(tag)) if tag.attributes().all(|attribute| attribute.is_ok()) => {}
            Ok(Event::Text(_) | Event::CData(_) | Event::Comment(_)) => {}
            Ok(Event::GeneralRef(reference)) => {
                let known = matches!(&*reference, "amp" | "lt" | "gt" | "quot" | "apos");
                if !known && !matches!(reference.resolve_char_ref(), Ok(Some(_))) {
                    return false;
                }
            }
            Ok(Event::Eof) => return depth == 0 && !element.contains('\0'),
            Ok(Event::Empty(_) | Event::PI(_) | Event::DocType(_) | Event::Decl(_)) | Err(_) => return false,
        }
    }
}

/// Title and description of what an element says is on.
pub(crate) fn words(element: &str) -> (String, String) {
    let mut xml = Xml::from_str(element);
    let (mut title, mut description, mut within) = (String::new(), String::new(), Vec::new());
    let mut done = [false; 2];
    loop {
        let piece = match xml.read_event() {
            Ok(Event::Start(start)) => {
                within.push(start.name().as_ref().to_owned());
                continue;
            }
            Ok(Event::End(end)) => {
                // There may be one for each language; the first has to do.
                done[0] |= end.name().as_ref() == "title";
                done[1] |= end.name().as_ref() == "desc";
                within.pop();
                continue;
            }
            Ok(Event::Text(text)) => text.to_string(),
            Ok(Event::CData(text)) => text.to_string(),
            Ok(Event::GeneralRef(reference)) => {
                let name = &*reference;
                unescaped(&format!("&{name};")).into_owned()
            }
            Ok(Event::Eof) | Err(_) => return (title.trim().to_owned(), description.trim().to_owned()),
            Ok(_) => continue,
        };
        match within.last().map(String::as_str) {
            Some("title") if !done[0] => title.push_str(&piece),
            Some("desc") if !done[1] => description.push_str(&piece),
            _ => {}
        }
    }
}

/// `20261129200000 +0100`, the end of which may be missing, as seconds since 1970.
fn time(text: &str) -> Option<u64> {
    let (digits, zone) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if digits.len() < 8 || digits.len() > 14 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part =
        |from: usize, to: usize| -> i16 { digits.get(from..to).and_then(|part| part.parse().ok()).unwrap_or_default() };
    let small = |from: usize, to: usize| i8::try_from(part(from, to)).ok();
    let moment = jiff::civil::DateTime::new(
        part(0, 4),
        small(4, 6)?,
        small(6, 8)?,
        small(8, 10)?,
        small(10, 12)?,
        small(12, 14)?.min(59),
        0,
    )
    .ok()?;
    let seconds = moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    let zone = zone.trim();
    let offset = match zone.as_bytes() {
        [sign @ (b'+' | b'-'), a, b, c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()) => {
            let [a, b, c, d] = [a, b, c, d].map(|byte| i64::from(byte - b'0'));
            let ahead = (a * 10 + b) * 3600 + (c * 10 + d) * 60;
            if *sign == b'-' { -ahead } else { ahead }
        }
        _ => 0,
    };
    u64::try_from(seconds - offset).ok()
}

#[cfg(test)]
#[path = "guide_tests.rs"]
mod tests;
