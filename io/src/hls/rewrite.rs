//! Playlists of other servers (RFC 8216, 8216bis), with every address in them replaced: line by line, so that what nobody here
//! knows passes as it came.
//!
//! An address is resolved against the playlist's own, after every redirect. What is replaced by nothing is refused: its line
//! goes, a segment becomes a gap (`EXT-X-GAP`), and so do those that nothing can be made of without the key or the map that is
//! refused, or has no address where it needs one; a variant is not named. Where nothing is left, the whole playlist is refused.
//! Variables (`EXT-X-DEFINE`) are put in and their definitions dropped: what one is taken from need not be there in the address
//! that a player knows.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use url::Url;

use super::attribute::{self, Attribute};
pub use super::variables::Variables;
use super::{sealed, variables};

/// What addresses in playlists lead to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The playlist of a variant (`EXT-X-STREAM-INF`).
    Variant,
    /// That of a rendition (`EXT-X-MEDIA`).
    Rendition,
    /// One of key frames alone (`EXT-X-I-FRAME-STREAM-INF`).
    IFrames,
    /// One of pictures (`EXT-X-IMAGE-STREAM-INF`).
    Images,
    /// A segment.
    Segment,
    /// A part of one (`EXT-X-PART`).
    Part,
    /// A part that will be there soon (`EXT-X-PRELOAD-HINT`).
    Hint,
    /// Another rendition's playlist, of which something is said (`EXT-X-RENDITION-REPORT`).
    Report,
    /// What a decoder is initialised with (`EXT-X-MAP`).
    Map,
    /// A key (`EXT-X-KEY`).
    Key,
    /// A key that will be needed (`EXT-X-SESSION-KEY`).
    SessionKey,
    /// `EXT-X-SESSION-DATA`, `EXT-X-TILES`.
    SessionData,
    /// Which variants are to be preferred (`EXT-X-CONTENT-STEERING`): JSON, with addresses in it.
    Steering,
    /// What is shown in between (`X-ASSET-URI` of `EXT-X-DATERANGE`).
    Asset,
    /// A list of such (`X-ASSET-LIST`): JSON, with addresses in it.
    AssetList,
}

impl Kind {
    /// How that is served.
    pub fn served(self) -> sealed::Kind {
        match self {
            Kind::Variant | Kind::Rendition | Kind::IFrames | Kind::Images | Kind::Report | Kind::Asset => {
                sealed::Kind::Playlist
            }
            Kind::Segment | Kind::Part | Kind::Hint => sealed::Kind::Media,
            Kind::Map => sealed::Kind::Map,
            Kind::Key | Kind::SessionKey => sealed::Kind::Key,
            Kind::SessionData | Kind::Steering | Kind::AssetList => sealed::Kind::Data,
        }
    }

    /// Whether it holds addresses that nobody would replace.
    pub fn is_json(self) -> bool {
        matches!(self, Kind::Steering | Kind::AssetList)
    }
}

/// What a player is told of low latency (RFC 8216bis §6.2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LowLatency {
    /// What the server says: requests for playlists are passed on with their `_HLS_` parameters.
    Passed,
    /// Nothing: there are whole segments, and playlists that are there already.
    Stripped,
}

/// How much may come in and go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a playlist as it comes.
    pub bytes: usize,
    /// Bytes of one of its lines, with variables put in or not.
    pub line: usize,
    /// Bytes of what comes of it.
    pub output: usize,
}

impl Default for Limits {
    /// A day in segments of 2 s, with addresses of 150 bytes that become 300.
    fn default() -> Self {
        Limits { bytes: 8 << 20, line: 32 << 10, output: 24 << 20 }
    }
}

/// How a playlist is rewritten.
#[derive(Clone, Debug)]
pub struct Rewriter<'a> {
    /// Where it came from, after every redirect.
    pub base: &'a Url,
    /// What it may import (`EXT-X-DEFINE` with `IMPORT`) of the playlist that names it: its [`Rewritten::variables`].
    pub imported: &'a Variables,
    /// What is told of low latency.
    pub low_latency: LowLatency,
    /// How much is taken.
    pub limits: Limits,
}

/// A playlist in other words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewritten {
    /// Lines that end with LF; UTF-8 without a byte order mark.
    pub text: String,
    /// Whether it names other playlists, and no segments.
    pub multivariant: bool,
    /// Whether nothing will be added to it (`EXT-X-ENDLIST`).
    pub ended: bool,
    /// Its target duration; zero where it has none.
    pub target: Duration,
    /// Why the first thing that was left out of it was; [JSON](Kind::is_json) apart.
    pub missed: Option<Fault>,
}

/// Why a playlist is not passed on. Holds nothing of what is in it: addresses are secrets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It does not begin with `#EXTM3U`.
    NotAPlaylist,
    /// It has more bytes than it may, or would have.
    TooLarge,
    /// One of its lines has; counted from 1.
    LineTooLong(usize),
    /// What it cannot be played without is at an address that is none, or is refused.
    Refused {
        /// Counted from 1.
        line: usize,
        /// What.
        kind: Kind,
    },
    /// What it cannot be played without has no address.
    Nowhere {
        /// Counted from 1.
        line: usize,
        /// What.
        kind: Kind,
    },
    /// It uses a variable that is not defined, or cannot be.
    Variable(usize),
    /// It leaves out what the player is taken to have already (`EXT-X-SKIP`), and the player asked for all.
    Delta(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotAPlaylist => f.write_str("a playlist begins with #EXTM3U"),
            Fault::TooLarge => f.write_str("the playlist is larger than is taken"),
            Fault::LineTooLong(line) => write!(f, "line {line} of the playlist is longer than is taken"),
            Fault::Refused { line, kind } => write!(
                f,
                "line {line} of the playlist names a {kind:?} at an address that is not fetched from: http and https are, on \
                 servers that the provider may name"
            ),
            Fault::Nowhere { line, kind } => write!(
                f,
                "line {line} of the playlist has a {kind:?} without an address (URI), which nothing behind it can be played \
                 without"
            ),
            Fault::Variable(line) => {
                write!(f, "line {line} of the playlist uses a variable that cannot be had")
            }
            Fault::Delta(line) => write!(f, "line {line} of the playlist skips segments, which nobody asked for"),
        }
    }
}

impl std::error::Error for Fault {}

/// What variables a playlist defines: what those that it names may import.
pub fn defined(playlist: &[u8], rewriter: &Rewriter<'_>) -> Result<Variables, Fault> {
    if playlist.len() > rewriter.limits.bytes {
        return Err(Fault::TooLarge);
    }
    let mut defined = Variables::default();
    let lists = Lines(playlist).filter_map(|line| line.trim_ascii_start().strip_prefix(variables::DEFINE));
    for list in lists.filter_map(|list| str::from_utf8(list).ok()) {
        // One that cannot be had is missed by whoever uses it.
        let _ = defined.define(list, rewriter.base, rewriter.imported);
    }
    Ok(defined)
}

impl Rewriter<'_> {
    /// Rewrites a playlist. `replace` is called with the line of every address in it, in their order, what it is of, and the address,
    /// resolved and of http or https; the others are refused already, but for `data:`, `skd:` and `urn:`, which nobody fetches and which stay.
    ///
    /// # Errors
    /// When it is not to be passed on.
    pub fn rewrite(
        &self,
        playlist: &[u8],
        replace: &mut dyn FnMut(usize, Kind, &Url) -> Option<String>,
    ) -> Result<Rewritten, Fault> {
        let playlist = playlist.strip_prefix(b"\xef\xbb\xbf").unwrap_or(playlist).trim_ascii_start();
        let header = playlist.strip_prefix(b"#EXTM3U").ok_or(Fault::NotAPlaylist)?;
        if !matches!(header.first(), None | Some(b'\r' | b'\n' | b' ' | b'\t')) {
            return Err(Fault::NotAPlaylist);
        }
        let variables = defined(playlist, self)?;
        let out = Rewritten {
            text: String::with_capacity(playlist.len() * 2),
            multivariant: false,
            ended: false,
            target: Duration::ZERO,
            missed: None,
        };
        let defines = Lines(playlist).any(|line| line.trim_ascii_start().starts_with(variables::DEFINE));
        let (number, next, variant, named, fault) = (0, Kind::Segment, 0, 0, None);
        let (keys, map) = (Keys::default(), None);
        let mut pass =
            Pass { how: self, variables, replace, out, number, next, variant, defines, named, fault, keys, map };
        for line in Lines(playlist) {
            pass.number += 1;
            pass.line(line)?;
            if pass.out.text.len() > self.limits.output {
                return Err(Fault::TooLarge);
            }
        }
        match pass.fault {
            Some(fault) if pass.named == 0 => Err(fault),
            _ => Ok(pass.out),
        }
    }
}

/// Lines that end with LF, CRLF or CR: for a player that takes a CR alone for the end of a line nothing is hidden in one.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\n', b'\r', self.0).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix(b"\r\n").or(rest.get(1..)).unwrap_or_default();
        Some(line)
    }
}

/// One way through a playlist.
struct Pass<'a, 'r> {
    how: &'a Rewriter<'a>,
    variables: Variables,
    replace: &'r mut dyn FnMut(usize, Kind, &Url) -> Option<String>,
    out: Rewritten,
    number: usize,
    /// What the next address on a line of its own leads to.
    next: Kind,
    /// Where in what comes of it the variant begins whose address that is.
    variant: usize,
    /// Whether it is to define variables.
    defines: bool,
    /// How many segments and variants it names.
    named: usize,
    /// What was wrong with the first that it does not.
    fault: Option<Fault>,
    keys: Keys,
    /// What was wrong with that which the next segments begin with.
    map: Option<Fault>,
}

/// The keys of the next segments: one for each system that players may have.
#[derive(Default)]
struct Keys {
    /// Whether there is one that can be fetched.
    usable: bool,
    /// What was wrong with one that cannot.
    fault: Option<Fault>,
    /// Whether a segment followed: the next key is that of others.
    used: bool,
}

/// What becomes of an address.
enum Address {
    Kept,
    Replaced(String),
    Refused,
}

impl Pass<'_, '_> {
    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = line.trim_ascii();
        let is_long = line.len() > self.how.limits.line;
        let text = match str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            // Addresses in other encodings are found as they were written.
            Err(_) if line[0] != b'#' => percent_encoding::percent_encode(line, attribute::BEYOND_ASCII).into(),
            Err(_) => String::from_utf8_lossy(line),
        };
        let is_tag = text.starts_with("#EXT");
        if text.is_empty() || (text.starts_with('#') && !is_tag) {
            self.keep(&text);
            return Ok(());
        }
        // Their values are in their places.
        if line.starts_with(variables::DEFINE) {
            return Ok(());
        }
        let number = self.number;
        let whole =
            if is_long { Err(Fault::LineTooLong(number)) } else { self.put_in(&text).ok_or(Fault::Variable(number)) };
        let whole = match (whole, is_tag) {
            (Ok(whole), _) => whole,
            (Err(fault), true) => return self.odd_tag(&text, fault),
            (Err(fault), false) => {
                self.miss(fault);
                return Ok(());
            }
        };
        let text = whole.trim();
        if is_tag {
            return self.tag(text);
        }
        let kind = self.next;
        self.keys.used = true;
        if let Some(fault) = self.lacks().filter(|_| kind == Kind::Segment) {
            self.miss(fault);
            return Ok(());
        }
        match self.address(kind, text) {
            Address::Kept => self.name(text),
            Address::Replaced(new) => self.name(&attribute::quotable(&new)),
            Address::Refused => self.miss(Fault::Refused { line: number, kind }),
        }
        Ok(())
    }

    /// With variables in their places; `None` where one is not defined. Where none is to be, `{$` means nothing.
    fn put_in<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        let lacks = self.defines && self.variables.is_empty() && text.contains("{$");
        if lacks { None } else { self.variables.put_into(text, self.how.limits.line) }
    }

    /// A segment, or the playlist of a variant.
    fn name(&mut self, address: &str) {
        (self.next, self.named) = (Kind::Segment, self.named + 1);
        self.keep(address);
    }

    /// There is none where one should be. Segments are counted, and one that is missed is said to be; of a variant nothing is left.
    fn miss(&mut self, fault: Fault) {
        match std::mem::replace(&mut self.next, Kind::Segment) {
            Kind::Variant => self.out.text.truncate(self.variant),
            // Nobody fetches anything from there, and nobody is asked for it.
            _ => self.keep("#EXT-X-GAP\ndata:,"),
        }
        self.fault.get_or_insert(fault);
        self.out.missed.get_or_insert(fault);
    }

    /// Why nothing can be made of the next segment, whatever its own address.
    fn lacks(&self) -> Option<Fault> {
        self.map.or(self.keys.fault.filter(|_| !self.keys.usable))
    }

    /// A key, or none where none is needed, or what segments begin with; `fault` where it cannot be had.
    fn needs(&mut self, kind: Kind, fault: Option<Fault>) {
        match kind {
            Kind::Key => {
                if self.keys.used {
                    self.keys = Keys::default();
                }
                self.keys.usable |= fault.is_none();
                self.keys.fault = self.keys.fault.or(fault);
            }
            Kind::Map => self.map = fault,
            _ => {}
        }
    }

    /// The address in a tag leads nowhere.
    fn drop_tag(&mut self, kind: Kind, fault: Fault) {
        self.needs(kind, Some(fault));
        if !kind.is_json() {
            self.out.missed.get_or_insert(fault);
        }
    }

    /// A tag that is too long, or uses what is not defined, passes as it came where there is no address in it.
    fn odd_tag(&mut self, text: &str, fault: Fault) -> Result<(), Fault> {
        let name = text.split_once(':').map_or(text, |(name, _)| name);
        match carriers(name) {
            [] if name != "#EXT-X-PREFETCH" => return self.tag(text),
            [(_, kind), ..] => self.drop_tag(*kind, fault),
            [] => self.drop_tag(Kind::Hint, fault),
        }
        Ok(())
    }

    fn keep(&mut self, line: &str) {
        self.out.text.push_str(line);
        self.out.text.push('\n');
    }

    fn tag(&mut self, line: &str) -> Result<(), Fault> {
        let (name, list) = line.split_once(':').unwrap_or((line, ""));
        let stripped = self.how.low_latency == LowLatency::Stripped;
        match name {
            "#EXT-X-PART-INF"
            | "#EXT-X-PART"
            | "#EXT-X-PRELOAD-HINT"
            | "#EXT-X-RENDITION-REPORT"
            | "#EXT-X-PREFETCH"
                if stripped =>
            {
                return Ok(());
            }
            "#EXT-X-SKIP" if stripped => return Err(Fault::Delta(self.number)),
            "#EXT-X-SERVER-CONTROL" if stripped => {
                const ABLE: [&str; 4] = ["CAN-BLOCK-RELOAD", "CAN-SKIP-UNTIL", "CAN-SKIP-DATERANGES", "PART-HOLD-BACK"];
                let able = |own: &Attribute<'_>| ABLE.iter().any(|name| own.is(name));
                let rest: Vec<&str> =
                    attribute::list(list).filter(|own| !able(own)).map(|own| &list[own.begin..own.end]).collect();
                if !rest.is_empty() {
                    self.keep(&format!("{name}:{}", rest.join(",")));
                }
                return Ok(());
            }
            "#EXT-X-ENDLIST" => self.out.ended = true,
            "#EXT-X-TARGETDURATION" => {
                // A decimal number of seconds, by the letter; not all write it so.
                let seconds = list.trim().parse::<f64>().unwrap_or_default().clamp(0.0, 86_400.0);
                self.out.target = Duration::from_secs_f64(if seconds.is_nan() { 0.0 } else { seconds });
            }
            "#EXT-X-STREAM-INF" => {
                (self.next, self.out.multivariant) = (Kind::Variant, true);
                self.variant = self.out.text.len();
            }
            "#EXT-X-PREFETCH" => {
                self.prefetch(name, list.trim());
                return Ok(());
            }
            _ => {}
        }
        let carried = carriers(name);
        if carried.is_empty() {
            self.keep(line);
            return Ok(());
        }
        self.out.multivariant |= matches!(name, "#EXT-X-MEDIA" | "#EXT-X-I-FRAME-STREAM-INF");
        self.attributes(line, name.len() + 1, carried);
        Ok(())
    }

    /// Replaces the addresses among the attributes that begin at `from` in the line of a tag.
    fn attributes(&mut self, line: &str, from: usize, carried: &[(&str, Kind)]) {
        let list = line.get(from..).unwrap_or_default();
        let (begin, mut done) = (self.out.text.len(), 0);
        // Keys say by which method; whoever says none at all is taken at that word by players.
        let (mut leads, mut method) = (false, "NONE");
        for own in attribute::list(list) {
            if own.is("METHOD") {
                method = own.value;
            }
            let Some(&(_, kind)) = carried.iter().find(|(name, _)| own.is(name)) else { continue };
            leads |= !own.value.is_empty();
            match self.address(kind, own.value) {
                Address::Kept => {}
                Address::Replaced(new) => {
                    self.out.text.push_str(&line[done..from + own.written]);
                    self.out.text.push('"');
                    self.out.text.push_str(&attribute::quotable(&new));
                    self.out.text.push('"');
                    done = from + own.end;
                }
                Address::Refused => {
                    self.out.text.truncate(begin);
                    return self.drop_tag(kind, Fault::Refused { line: self.number, kind });
                }
            }
        }
        if let &[(_, kind), ..] = carried {
            // RFC 8216 §4.3.2.4, §4.3.2.5
            let needed = kind == Kind::Map || kind == Kind::Key && !method.eq_ignore_ascii_case("NONE");
            if needed && !leads {
                self.out.text.truncate(begin);
                return self.drop_tag(kind, Fault::Nowhere { line: self.number, kind });
            }
            self.needs(kind, None);
        }
        self.keep(&line[done..]);
    }

    /// A segment that is not complete yet, as some servers name it: a tag that is all address.
    fn prefetch(&mut self, name: &str, uri: &str) {
        match self.address(Kind::Hint, uri) {
            Address::Kept => self.keep(&format!("{name}:{uri}")),
            Address::Replaced(new) => self.keep(&format!("{name}:{}", attribute::quotable(&new))),
            Address::Refused => {
                self.drop_tag(Kind::Hint, Fault::Refused { line: self.number, kind: Kind::Hint });
            }
        }
    }

    fn address(&mut self, kind: Kind, text: &str) -> Address {
        const NEVER_FETCHED: [&str; 3] = ["data:", "skd:", "urn:"];
        let has = |scheme: &&str| text.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme));
        if text.is_empty() || NEVER_FETCHED.iter().any(has) {
            return Address::Kept;
        }
        let url = self.how.base.join(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let new = url.and_then(|url| (self.replace)(self.number, kind, &url));
        new.map_or(Address::Refused, Address::Replaced)
    }
}

/// The attributes of a tag that are addresses.
fn carriers(tag: &str) -> &'static [(&'static str, Kind)] {
    match tag {
        "#EXT-X-KEY" => &[("URI", Kind::Key)],
        "#EXT-X-MAP" => &[("URI", Kind::Map)],
        "#EXT-X-PART" => &[("URI", Kind::Part)],
        "#EXT-X-PRELOAD-HINT" => &[("URI", Kind::Hint)],
        "#EXT-X-RENDITION-REPORT" => &[("URI", Kind::Report)],
        "#EXT-X-MEDIA" => &[("URI", Kind::Rendition)],
        "#EXT-X-I-FRAME-STREAM-INF" => &[("URI", Kind::IFrames)],
        "#EXT-X-IMAGE-STREAM-INF" => &[("URI", Kind::Images)],
        "#EXT-X-SESSION-KEY" => &[("URI", Kind::SessionKey)],
        "#EXT-X-SESSION-DATA" | "#EXT-X-TILES" => &[("URI", Kind::SessionData)],
        "#EXT-X-CONTENT-STEERING" => &[("SERVER-URI", Kind::Steering)],
        "#EXT-X-DATERANGE" => &[("X-ASSET-URI", Kind::Asset), ("X-ASSET-LIST", Kind::AssetList)],
        _ => &[],
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
