//! One audio or video section: its direction, and the one codec that is chosen from it.

use std::collections::BTreeMap;
use std::fmt;

use super::OfferFault;
use crate::sdp::text::{AttributeFault, Block, MediaLine, clipped, number};

/// What a section carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sound.
    Audio,
    /// Picture.
    Video,
}

impl Kind {
    /// As in an `m=` line.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Audio => "audio",
            Kind::Video => "video",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The codecs that are taken, one for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// `opus/48000/2` (RFC 7587).
    Opus,
    /// `H264/90000` (RFC 6184), any profile.
    H264,
}

impl Codec {
    /// As in an `rtpmap` attribute, where case does not matter.
    pub fn encoding(self) -> &'static str {
        match self {
            Codec::Opus => "opus/48000/2",
            Codec::H264 => "H264/90000",
        }
    }
}

/// A section of a checked offer, with the payload type chosen for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it carries.
    pub kind: Kind,
    /// Its name in the BUNDLE group (RFC 5888).
    pub mid: String,
    /// What the payload type stands for.
    pub codec: Codec,
    /// The one payload type to negotiate; 0–63 or 96–127, since 64–95 look like RTCP (RFC 5761 §4).
    pub payload_type: u8,
    /// The payload type of its retransmissions, if they are offered (RFC 4588).
    pub rtx: Option<u8>,
}

impl Section {
    /// Chooses the codec: the first Opus; the first H.264 with `packetization-mode=1`, else the first H.264.
    pub(super) fn choose(kind: Kind, mid: &str, line: &MediaLine<'_>, block: &Block<'_>) -> Result<Self, OfferFault> {
        let maps = Maps::read(block)?;
        let codec = match kind {
            Kind::Audio => Codec::Opus,
            Kind::Video => Codec::H264,
        };
        let usable = || {
            let types = line.formats.iter().filter_map(|format| number::<u8>(format));
            types.filter(|payload_type| matches!(payload_type, 0..=63 | 96..=127))
        };
        let mut matching = usable().filter(|payload_type| maps.is(*payload_type, codec.encoding()));
        let single_time = |payload_type: &u8| maps.parameter(*payload_type, "packetization-mode") == Some("1");
        let first = matching.clone().next();
        let payload_type = match codec {
            Codec::Opus => first,
            Codec::H264 => matching.find(single_time).or(first),
        };
        let Some(payload_type) = payload_type else {
            let mut offered: Vec<String> = Vec::new();
            for name in usable().filter_map(|payload_type| maps.encodings.get(&payload_type)).map(|name| clipped(name))
            {
                if offered.len() < 8 && !offered.contains(&name) {
                    offered.push(name);
                }
            }
            return Err(OfferFault::NoCodec { kind, codec, offered });
        };
        let apt = payload_type.to_string();
        let rtx = usable().find(|other| maps.is(*other, "rtx/90000") && maps.parameter(*other, "apt") == Some(&apt));
        Ok(Section { kind, mid: mid.to_owned(), codec, payload_type, rtx })
    }
}

/// What `rtpmap` and `fmtp` say about payload types.
struct Maps<'a> {
    encodings: BTreeMap<u8, &'a str>,
    parameters: BTreeMap<u8, &'a str>,
}

impl<'a> Maps<'a> {
    fn read(block: &Block<'a>) -> Result<Self, AttributeFault> {
        let collect = |name| {
            let mut map = BTreeMap::new();
            for value in block.attributes(name) {
                // What cannot be read says nothing about the payload type that is looked for.
                let Some((payload_type, rest)) = value.split_once(' ') else { continue };
                let Some(payload_type) = number::<u8>(payload_type) else { continue };
                if *map.entry(payload_type).or_insert(rest) != rest {
                    return Err(AttributeFault::Contradiction { attribute: name });
                }
            }
            Ok(map)
        };
        Ok(Maps { encodings: collect("rtpmap")?, parameters: collect("fmtp")? })
    }

    fn is(&self, payload_type: u8, encoding: &str) -> bool {
        self.encodings.get(&payload_type).is_some_and(|found| found.eq_ignore_ascii_case(encoding))
    }

    fn parameter(&self, payload_type: u8, name: &str) -> Option<&'a str> {
        self.parameters.get(&payload_type)?.split(';').find_map(|parameter| {
            let (found, value) = parameter.split_once('=')?;
            found.trim().eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

const DIRECTIONS: [&str; 4] = ["sendrecv", "sendonly", "recvonly", "inactive"];

/// Whether an attribute of this name is a direction.
pub(super) fn is_direction(name: &str) -> bool {
    DIRECTIONS.contains(&name)
}

/// Whether an attribute is about an SSRC (RFC 5576 §4) that no packet can have: 0, or no number of 32 bits. Nothing is lost
/// without it, and GStreamer takes it for a fault of its own program.
pub(super) fn names_no_source(name: &str, value: &str) -> bool {
    let mut fields = value.split(' ').filter(|field| !field.is_empty());
    let is_source = |field: &str| number::<u32>(field).is_some_and(|ssrc| ssrc != 0);
    match name {
        "ssrc" => !fields.next().is_some_and(is_source),
        "ssrc-group" => !fields.skip(1).all(is_source),
        _ => false,
    }
}

/// The direction of a section, which has to be one that sends (RFC 9725 §4.2).
pub(super) fn direction(block: &Block<'_>, session: &Block<'_>) -> Result<&'static str, OfferFault> {
    let find = |block: &Block<'_>| {
        let mut found = DIRECTIONS.into_iter().filter(|name| block.has(name));
        match (found.next(), found.next()) {
            (first, None) => Ok(first),
            _ => Err(AttributeFault::Contradiction { attribute: "sendrecv|sendonly|recvonly|inactive" }),
        }
    };
    let direction = match find(block)? {
        Some(direction) => direction,
        None => find(session)?.unwrap_or("sendrecv"),
    };
    match direction {
        "sendrecv" | "sendonly" => Ok(direction),
        _ => Err(OfferFault::NotSending(direction)),
    }
}
