//! The answer a publisher gets, made from what the media side answered.

use std::fmt;

use super::candidate::Candidate;
use super::offer::{Kind, Offer, Refused, Section};
use super::text::{Block, Text, TextFault, attribute, push_line};

/// Why a local description is not an answer to the offer. Each is the media side's doing, not the publisher's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerFault {
    /// Not a text of lines.
    Text(TextFault),
    /// Another number of sections than the media side was offered.
    Sections,
    /// The section of this name is refused or has another name.
    Refused(String),
    /// The section of this name does not use the chosen payload type first.
    PayloadType(String),
    /// The section of this name would not receive.
    NotReceiving(String),
    /// There is no usable candidate, so nobody could connect.
    NoCandidate,
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerFault::Text(fault) => write!(f, "the answer is no SDP: {fault}"),
            AnswerFault::Sections => write!(f, "the answer has another number of sections than the offer"),
            AnswerFault::Refused(mid) => write!(f, "the answer refuses section \"{mid}\""),
            AnswerFault::PayloadType(mid) => write!(f, "the answer takes another codec in section \"{mid}\""),
            AnswerFault::NotReceiving(mid) => write!(f, "the answer does not receive in section \"{mid}\""),
            AnswerFault::NoCandidate => write!(f, "the answer has no usable candidate"),
        }
    }
}

impl std::error::Error for AnswerFault {}

impl Offer {
    /// Makes the publisher's answer of the media side's local description, once that has its candidates:
    ///
    /// * sections that were cut stand refused at their place (RFC 3264 §6);
    /// * `rtcp-mux-only` in each section (RFC 9725 §4.4.1), `recvonly`;
    /// * `b=TIAS` in bits per second and `b=AS` in kbit/s for video;
    /// * each candidate once, in the section of the bundle's transport, and `end-of-candidates`, since the server never
    ///   trickles (RFC 9725 §4.3.2).
    pub fn answer(&self, local: &str, max_video_bitrate: u64) -> Result<String, AnswerFault> {
        let text = Text::parse(local.as_bytes()).map_err(AnswerFault::Text)?;
        if text.media.len() != self.sections.len() {
            return Err(AnswerFault::Sections);
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        for candidate in text.media.iter().flat_map(Candidate::usable) {
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        if candidates.is_empty() {
            return Err(AnswerFault::NoCandidate);
        }

        let mut out = String::with_capacity(local.len() + 512);
        for line in text.session.lines.iter().filter(|line| !is_candidate(line)) {
            push_line(&mut out, line);
        }
        let connection = text.session.lines.iter().any(|line| line.starts_with("c="));
        let mut refused = self.refused.iter().peekable();
        let mut index = 0;
        let mut splice = |out: &mut String, index: &mut usize| {
            while let Some(section) = refused.next_if(|section| section.index == *index) {
                section.write(out, &text.media[self.transport]);
                *index += 1;
            }
        };
        for (kept, (section, block)) in self.sections.iter().zip(&text.media).enumerate() {
            splice(&mut out, &mut index);
            section.check_answer(block)?;
            let bitrate = (section.kind == Kind::Video).then_some(max_video_bitrate);
            write_section(&mut out, block, bitrate, connection);
            if kept == self.transport {
                for candidate in &candidates {
                    push_line(&mut out, format_args!("a={candidate}"));
                }
                push_line(&mut out, "a=end-of-candidates");
            }
            index += 1;
        }
        splice(&mut out, &mut index);
        Ok(out)
    }
}

impl Section {
    fn check_answer(&self, block: &Block<'_>) -> Result<(), AnswerFault> {
        let line = block.media_line().filter(|line| line.port != 0 && line.media == self.kind.as_str());
        let named = block.attributes("mid").eq([self.mid.as_str()]);
        let Some(line) = line.filter(|_| named) else {
            return Err(AnswerFault::Refused(self.mid.clone()));
        };
        if line.formats[0] != self.payload_type.to_string() {
            return Err(AnswerFault::PayloadType(self.mid.clone()));
        }
        let receives =
            block.has("recvonly") && !["sendrecv", "sendonly", "inactive"].into_iter().any(|name| block.has(name));
        if receives { Ok(()) } else { Err(AnswerFault::NotReceiving(self.mid.clone())) }
    }
}

impl Refused {
    /// A refused section needs no transport (RFC 9429 §5.3.1), but aiortc takes no answer that has one without.
    fn write(&self, out: &mut String, transport: &Block<'_>) {
        push_line(out, &self.line);
        push_line(out, "c=IN IP4 0.0.0.0");
        if let Some(mid) = &self.mid {
            push_line(out, format_args!("a=mid:{mid}"));
        }
        for line in &transport.lines {
            if matches!(attribute(line), Some(("ice-ufrag" | "ice-pwd" | "fingerprint" | "setup", _))) {
                push_line(out, line);
            }
        }
        if !self.line.starts_with("m=application") {
            push_line(out, "a=rtcp-mux");
            push_line(out, "a=inactive");
        }
    }
}

fn is_candidate(line: &str) -> bool {
    matches!(attribute(line), Some(("candidate" | "end-of-candidates", _)))
}

/// A kept section without its candidates, in the order of RFC 8866 §5: `m=`, `i=`, `c=`, `b=`, `k=`, `a=`.
fn write_section(out: &mut String, block: &Block<'_>, bitrate: Option<u64>, connection: bool) {
    let first = |letters: &'static [u8]| block.lines.iter().filter(move |line| letters.contains(&line.as_bytes()[0]));
    for line in first(b"mic") {
        push_line(out, line);
    }
    if !connection && first(b"c").next().is_none() {
        push_line(out, "c=IN IP4 0.0.0.0");
    }
    if let Some(bitrate) = bitrate {
        push_line(out, format_args!("b=AS:{}", bitrate.div_ceil(1000)));
        push_line(out, format_args!("b=TIAS:{bitrate}"));
    }
    for line in first(b"ka").filter(|line| !is_candidate(line)) {
        if !matches!(attribute(line), Some(("rtcp-mux" | "rtcp-mux-only", _))) {
            push_line(out, line);
        }
    }
    push_line(out, "a=rtcp-mux");
    push_line(out, "a=rtcp-mux-only");
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
