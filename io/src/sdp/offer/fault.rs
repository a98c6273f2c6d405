//! Why an offer is refused.

use std::fmt;

use super::{Codec, Kind, MAX_SECTIONS, PROTOCOL};
use crate::sdp::text::{AttributeFault, TextFault};

/// Why an offer is refused. Its text names what is wrong and what the right form is, for the publisher to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferFault {
    /// Not a text of lines.
    Text(TextFault),
    /// `v=0` is not the first line, or there is no `o=`, `s=` or `t=` line before the first section.
    MissingLine(char),
    /// An `m=` line of the wrong form.
    MediaLine(String),
    /// An attribute of the wrong form.
    Attribute(AttributeFault),
    /// Two sections of one name, or a name twice in the group.
    DuplicateMid(String),
    /// Audio and video have the same payload type on one transport.
    SharedPayloadType(u8),
    /// No audio and no video is offered.
    NoMedia,
    /// Every section has port 0: `bundle-only` all of them, with nothing to be bundled with.
    NoPort,
    /// Too many `m=` lines.
    ManySections,
    /// A section that is neither audio nor video nor a data channel.
    UnknownKind(String),
    /// The endpoint does not take this kind.
    KindNotTaken(Kind),
    /// Two tracks of one kind.
    ManyTracks(Kind),
    /// Not RTP over DTLS.
    Protocol {
        /// The section.
        kind: Kind,
        /// What it offers.
        protocol: String,
    },
    /// `recvonly` or `inactive`.
    NotSending(&'static str),
    /// A section without name.
    NoMid(Kind),
    /// More than one BUNDLE group.
    ManyBundles,
    /// A section outside the BUNDLE group.
    NotBundled {
        /// Its name.
        mid: String,
    },
    /// RTCP on a transport of its own.
    NoRtcpMux,
    /// No fingerprint of a certificate.
    NoFingerprint,
    /// Only fingerprints that prove nothing.
    WeakFingerprint,
    /// No ICE credentials, or only half of them.
    NoCredentials,
    /// No DTLS role, or `holdconn`.
    NoSetup,
    /// The codec that is taken is not offered.
    NoCodec {
        /// The section.
        kind: Kind,
        /// What it has to offer.
        codec: Codec,
        /// What it offers, the first eight.
        offered: Vec<String>,
    },
}

impl OfferFault {
    /// The HTTP status of the refusal: 400 = malformed, 422 = well formed, but not what is taken here.
    pub fn status(&self) -> u16 {
        match self {
            OfferFault::Text(_)
            | OfferFault::MissingLine(_)
            | OfferFault::MediaLine(_)
            | OfferFault::Attribute(_)
            | OfferFault::DuplicateMid(_)
            | OfferFault::SharedPayloadType(_) => 400,
            OfferFault::NoMedia
            | OfferFault::NoPort
            | OfferFault::ManySections
            | OfferFault::UnknownKind(_)
            | OfferFault::KindNotTaken(_)
            | OfferFault::ManyTracks(_)
            | OfferFault::Protocol { .. }
            | OfferFault::NotSending(_)
            | OfferFault::NoMid(_)
            | OfferFault::ManyBundles
            | OfferFault::NotBundled { .. }
            | OfferFault::NoRtcpMux
            | OfferFault::NoFingerprint
            | OfferFault::WeakFingerprint
            | OfferFault::NoCredentials
            | OfferFault::NoSetup
            | OfferFault::NoCodec { .. } => 422,
        }
    }
}

impl fmt::Display for OfferFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OfferFault::Text(fault) => fault.fmt(f),
            OfferFault::MissingLine('v') => write!(f, "SDP has to begin with v=0"),
            OfferFault::MissingLine(letter) => write!(f, "there is no {letter}= line before the first m= line"),
            OfferFault::MediaLine(line) => {
                write!(f, "\"{line}\" is not of the form m=<media> <port> <protocol> <format> ...")
            }
            OfferFault::Attribute(fault) => fault.fmt(f),
            OfferFault::DuplicateMid(mid) => {
                write!(f, "a=mid \"{mid}\" stands twice, in sections or in a=group:BUNDLE")
            }
            OfferFault::SharedPayloadType(payload_type) => {
                write!(f, "audio and video both use payload type {payload_type}, bundled sections need different ones")
            }
            OfferFault::NoMedia => {
                write!(
                    f,
                    "no audio and no video section is offered, at least one has to be; port 0 without a=bundle-only refuses one"
                )
            }
            OfferFault::NoPort => {
                write!(
                    f,
                    "every section has port 0; the first of a=group:BUNDLE carries the transport and needs another, such as 9"
                )
            }
            OfferFault::ManySections => write!(f, "there are more than {MAX_SECTIONS} m= lines"),
            OfferFault::UnknownKind(kind) => write!(f, "a section is of kind \"{kind}\", audio and video are taken"),
            OfferFault::KindNotTaken(Kind::Audio) => write!(f, "audio is offered, this endpoint takes video only"),
            OfferFault::KindNotTaken(Kind::Video) => write!(f, "video is offered, this endpoint takes audio only"),
            OfferFault::ManyTracks(kind) => write!(f, "more than one {kind} section is offered, one is taken"),
            OfferFault::Protocol { kind, protocol } => {
                write!(f, "the {kind} section's protocol is {protocol}, it has to be {PROTOCOL}")
            }
            OfferFault::NotSending(direction) => {
                write!(f, "a section is {direction}, a publisher has to offer sendonly or sendrecv")
            }
            OfferFault::NoMid(kind) => write!(f, "the {kind} section has no a=mid"),
            OfferFault::ManyBundles => {
                write!(f, "there are several a=group:BUNDLE lines, one has to hold all sections")
            }
            OfferFault::NotBundled { mid } => {
                write!(f, "section \"{mid}\" is not in a=group:BUNDLE, which has to hold all audio and video")
            }
            OfferFault::NoRtcpMux => write!(f, "there is no a=rtcp-mux, RTCP has to share the transport of RTP"),
            OfferFault::NoFingerprint => write!(f, "there is no a=fingerprint, one of sha-256 or better is needed"),
            OfferFault::WeakFingerprint => {
                write!(f, "a=fingerprint has to be of sha-256, sha-384 or sha-512, none of these is offered")
            }
            OfferFault::NoCredentials => write!(f, "a=ice-ufrag and a=ice-pwd are needed, both"),
            OfferFault::NoSetup => write!(f, "a=setup has to be actpass, active or passive"),
            OfferFault::NoCodec { kind, codec, offered } => {
                let offered = if offered.is_empty() { "nothing known".to_owned() } else { offered.join(", ") };
                write!(f, "the {kind} section offers {offered}; it has to offer {}", codec.encoding())
            }
        }
    }
}

impl std::error::Error for OfferFault {}

impl From<TextFault> for OfferFault {
    fn from(fault: TextFault) -> Self {
        OfferFault::Text(fault)
    }
}

impl From<AttributeFault> for OfferFault {
    fn from(fault: AttributeFault) -> Self {
        OfferFault::Attribute(fault)
    }
}
