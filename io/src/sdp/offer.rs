//! A publisher's offer: checked, and brought into the one shape the media side takes.

mod fault;
mod section;
#[cfg(test)]
mod tests;
mod transport;

use std::collections::BTreeSet;

use holdfast_core::config::Media;

pub use self::fault::OfferFault;
pub use self::section::{Codec, Kind, Section};
use self::transport::Transport;
use super::candidate::Candidate;
use super::credentials::{Credentials, with_credentials};
use super::text::{AttributeFault, Block, MediaLine, Text, attribute, clipped, is_token, push_line};

/// The most `m=` lines of an offer. Publishers send one to three.
const MAX_SECTIONS: usize = 16;
/// The one transport of WebRTC's RTP (RFC 8834 §4.2).
const PROTOCOL: &str = "UDP/TLS/RTP/SAVPF";

/// An offer that can be negotiated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// SDP as the media side gets it, with CRLF: the kept sections alone; each with its own copy of the bundle's
    /// credentials, fingerprints, `setup` and `rtcp-mux`, a port other than 0, and an explicit direction; usable
    /// candidates only, in the section [`transport`](Offer::transport). Checking it again gives the same offer, without
    /// sections to splice back.
    pub text: String,
    /// The kept sections in the order of [`text`](Offer::text): at most one of each kind.
    pub sections: Vec<Section>,
    /// Which of [`sections`](Offer::sections) carries the transport of the bundle: the m-line index of every candidate.
    pub transport: usize,
    /// The publisher's username fragment and password.
    pub credentials: Credentials,
    /// Sections the media side does not see and the answer refuses.
    pub(super) refused: Vec<Refused>,
}

/// A section that was cut from the offer: a data channel, or one the publisher itself refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Its place in the publisher's offer, and so in the answer (RFC 3264 §6).
    pub index: usize,
    /// Its `m=` line with port 0.
    pub line: String,
    /// Its name, if it has one.
    pub mid: Option<String>,
}

/// One `m=` section of the offer as it came.
struct Part<'a> {
    block: &'a Block<'a>,
    line: MediaLine<'a>,
    mid: Option<&'a str>,
    /// Its place in the BUNDLE group.
    bundled: Option<usize>,
    /// Whether the media side will see it.
    kept: bool,
}

impl Offer {
    /// Checks an offer against RFC 9725 §4.4 and the endpoint's setting.
    pub fn check(body: &[u8], media: Media) -> Result<Offer, OfferFault> {
        let text = Text::parse(body)?;
        check_session(&text.session)?;
        let parts = parts(&text)?;
        let kept: Vec<&Part<'_>> = parts.iter().filter(|part| part.kept).collect();
        let sections = kept.iter().map(|part| section(part, media)).collect::<Result<Vec<_>, _>>()?;
        one_of_each(&sections)?;
        let loose = kept.iter().position(|part| part.bundled.is_none());
        if let Some(loose) = loose
            && kept.len() > 1
        {
            return Err(OfferFault::NotBundled { mid: sections[loose].mid.clone() });
        }

        // The bundle's transport is that of the first section in the group that has one (RFC 9143 §7.3.1), of the kept
        // ones if possible: refusing a section must not move the bundle away from it.
        let shares = |part: &&Part<'_>| part.kept || (part.bundled.is_some() && loose.is_none());
        let carries = |part: &Part<'_>| part.line.port != 0 && Transport::is_in(part.block, &text.session);
        let source = parts.iter().filter(shares).min_by_key(|part| (!carries(part), !part.kept, part.bundled));
        let source = source.filter(|_| !kept.is_empty()).ok_or(OfferFault::NoMedia)?;
        if parts.iter().filter(shares).all(|part| part.line.port == 0) {
            return Err(OfferFault::NoPort);
        }
        let transport = Transport::read(source.block, &text.session)?;
        let tagged = (0..kept.len()).min_by_key(|index| kept[*index].bundled).unwrap_or_default();

        let mut out = String::with_capacity(body.len());
        write_session(&mut out, &text.session, &kept);
        for (index, part) in kept.iter().enumerate() {
            part.write(&mut out);
            push_line(&mut out, format_args!("a={}", section::direction(part.block, &text.session)?));
            transport.write(&mut out);
            if index == tagged {
                for candidate in Candidate::usable(source.block) {
                    push_line(&mut out, format_args!("a={candidate}"));
                }
            }
        }
        let refused =
            (0..).zip(&parts).filter(|(_, part)| !part.kept).map(|(index, part)| part.refused(index)).collect();
        Ok(Offer { text: out, sections, transport: tagged, credentials: transport.credentials, refused })
    }

    /// The same offer for an ICE restart: the publisher's new credentials, no candidates.
    pub fn restarted(&self, ufrag: &str, pwd: &str) -> Offer {
        let old = self.text.split_inclusive("\r\n").filter(|line| !line.starts_with("a=candidate:"));
        Offer {
            text: with_credentials(&old.collect::<String>(), ufrag, pwd),
            credentials: Credentials { ufrag: ufrag.to_owned(), pwd: pwd.to_owned() },
            ..self.clone()
        }
    }
}

impl Part<'_> {
    /// Its lines as the media side gets them, but for direction and transport.
    fn write(&self, out: &mut String) {
        push_line(out, format_args!("m={} 9 {PROTOCOL} {}", self.line.media, self.line.formats.join(" ")));
        for line in &self.block.lines[1..] {
            let (name, value) = attribute(line).unwrap_or_default();
            let dropped = name == "bundle-only" || section::names_no_source(name, value);
            if !Transport::owns(name) && !section::is_direction(name) && !dropped {
                push_line(out, line);
            }
        }
    }

    fn refused(&self, index: usize) -> Refused {
        let MediaLine { media, protocol, formats, .. } = &self.line;
        let line = format!("m={media} 0 {protocol} {}", formats.join(" "));
        Refused { index, line, mid: self.mid.map(str::to_owned) }
    }
}

/// The lines RFC 8866 §5 wants in every session part.
fn check_session(session: &Block<'_>) -> Result<(), OfferFault> {
    if session.lines.first() != Some(&"v=0") {
        return Err(OfferFault::MissingLine('v'));
    }
    match ['o', 's', 't'].into_iter().find(|letter| !session.lines.iter().any(|line| line.starts_with(*letter))) {
        Some(letter) => Err(OfferFault::MissingLine(letter)),
        None => Ok(()),
    }
}

/// The session part as the media side gets it: with the kept sections alone in the BUNDLE group.
fn write_session(out: &mut String, session: &Block<'_>, kept: &[&Part<'_>]) {
    for line in &session.lines {
        let (name, value) = attribute(line).unwrap_or_default();
        let bundle = name == "group" && members(value).is_some();
        if !bundle && !Transport::owns(name) && !section::is_direction(name) {
            push_line(out, line);
        }
    }
    let mut bundled: Vec<_> = kept.iter().filter(|part| part.bundled.is_some()).collect();
    bundled.sort_by_key(|part| part.bundled);
    let mids: Vec<&str> = bundled.into_iter().filter_map(|part| part.mid).collect();
    if !mids.is_empty() {
        push_line(out, format_args!("a=group:BUNDLE {}", mids.join(" ")));
    }
}

/// The names in a `group` attribute, if it is a BUNDLE group (RFC 9143 §7.1).
fn members(group: &str) -> Option<Vec<&str>> {
    let mut fields = group.split(' ').filter(|field| !field.is_empty());
    (fields.next() == Some("BUNDLE")).then(|| fields.collect())
}

/// Reads names, group and `m=` lines, and decides which sections the media side will see.
///
/// A name in the group that no section has is passed over: FFmpeg's publisher always writes `BUNDLE 0 1`.
fn parts<'a>(text: &'a Text<'a>) -> Result<Vec<Part<'a>>, OfferFault> {
    if text.media.len() > MAX_SECTIONS {
        return Err(OfferFault::ManySections);
    }
    let mut groups = text.session.attributes("group").filter_map(members);
    let group = groups.next().unwrap_or_default();
    if groups.next().is_some() {
        return Err(OfferFault::ManyBundles);
    }
    let mut listed = BTreeSet::new();
    if let Some(twice) = group.iter().find(|mid| !listed.insert(**mid)) {
        return Err(OfferFault::DuplicateMid(clipped(twice)));
    }
    let mut parts = Vec::with_capacity(text.media.len());
    let mut mids = BTreeSet::new();
    for block in &text.media {
        let line = block.media_line().ok_or_else(|| OfferFault::MediaLine(clipped(block.lines[0])))?;
        let mid = block.single("mid")?;
        if let Some(mid) = mid {
            if !is_token(mid) {
                let form = "one token (RFC 8866 section 9)";
                return Err(AttributeFault::Grammar { attribute: "mid", value: clipped(mid), form }.into());
            }
            if !mids.insert(mid) {
                return Err(OfferFault::DuplicateMid(clipped(mid)));
            }
        }
        let bundled = group.iter().position(|member| Some(*member) == mid);
        // Port 0 refuses a section, except that a bundle-only one has no port of its own (RFC 9143 §6).
        let offered = line.port != 0 || (bundled.is_some() && block.has("bundle-only"));
        parts.push(Part { block, kept: offered && line.media != "application", line, mid, bundled });
    }
    Ok(parts)
}

/// Checks one kept section.
fn section(part: &Part<'_>, media: Media) -> Result<Section, OfferFault> {
    let kind = match part.line.media {
        "audio" => Kind::Audio,
        "video" => Kind::Video,
        other => return Err(OfferFault::UnknownKind(clipped(other))),
    };
    if matches!((media, kind), (Media::Audio, Kind::Video) | (Media::Video, Kind::Audio)) {
        return Err(OfferFault::KindNotTaken(kind));
    }
    if part.line.protocol != PROTOCOL {
        return Err(OfferFault::Protocol { kind, protocol: clipped(part.line.protocol) });
    }
    let mid = part.mid.ok_or(OfferFault::NoMid(kind))?;
    Section::choose(kind, mid, &part.line, part.block)
}

/// At most one section of each kind, and payload types that tell them apart on the one transport (RFC 9143 §9.1).
fn one_of_each(sections: &[Section]) -> Result<(), OfferFault> {
    for (index, section) in sections.iter().enumerate() {
        for earlier in &sections[..index] {
            if earlier.kind == section.kind {
                return Err(OfferFault::ManyTracks(section.kind));
            }
            if earlier.payload_type == section.payload_type {
                return Err(OfferFault::SharedPayloadType(section.payload_type));
            }
        }
    }
    Ok(())
}
