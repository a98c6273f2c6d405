//! The body of a PATCH and of the answer to an ICE restart: `application/trickle-ice-sdpfrag` (RFC 8840 §9).

use std::fmt;

use super::candidate::{Candidate, CandidateFault, MAX_CANDIDATES};
use super::credentials::{Credentials, Found};
use super::text::{AttributeFault, Text, TextFault, attribute, clipped, push_line};

/// What a publisher tells about its side of ICE after the offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Of the session part, or else of the sections, which must agree; `None` if it names none.
    pub credentials: Option<Credentials>,
    /// The usable candidates of all its sections, at most [`MAX_CANDIDATES`]; the rest is dropped silently
    /// (RFC 9725 §4.3.2).
    pub candidates: Vec<Candidate>,
    /// Whether no more will come.
    pub end_of_candidates: bool,
}

/// Why a fragment is malformed; always a 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentFault {
    /// Not a text of lines.
    Text(TextFault),
    /// An `m=` line of the wrong form.
    MediaLine(String),
    /// An attribute of the wrong form, or one that contradicts itself.
    Attribute(AttributeFault),
    /// A username fragment without a password, or the other way round.
    HalfCredentials,
    /// A candidate of the wrong form.
    Candidate(String),
    /// A candidate before the first `m=` line.
    CandidateOutside,
    /// None of credentials, candidates, and the end of candidates.
    Nothing,
}

impl FragmentFault {
    /// The HTTP status of the refusal.
    pub fn status(&self) -> u16 {
        400
    }
}

impl fmt::Display for FragmentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FragmentFault::Text(fault) => fault.fmt(f),
            FragmentFault::MediaLine(line) => {
                write!(f, "\"{line}\" is not of the form m=<media> <port> <protocol> <format> ...")
            }
            FragmentFault::Attribute(fault) => fault.fmt(f),
            FragmentFault::HalfCredentials => write!(f, "a=ice-ufrag and a=ice-pwd are needed together"),
            FragmentFault::Candidate(line) => write!(f, "\"{line}\" is {}", CandidateFault::Grammar),
            FragmentFault::CandidateOutside => write!(f, "a=candidate stands before the first m= line, not after it"),
            FragmentFault::Nothing => write!(f, "there are neither credentials nor candidates nor a=end-of-candidates"),
        }
    }
}

impl std::error::Error for FragmentFault {}

impl From<TextFault> for FragmentFault {
    fn from(fault: TextFault) -> Self {
        FragmentFault::Text(fault)
    }
}

impl From<AttributeFault> for FragmentFault {
    fn from(fault: AttributeFault) -> Self {
        FragmentFault::Attribute(fault)
    }
}

impl Fragment {
    /// Reads the body of a PATCH.
    pub fn parse(body: &[u8]) -> Result<Fragment, FragmentFault> {
        let text = Text::parse(body)?;
        if text.session.has("candidate") {
            return Err(FragmentFault::CandidateOutside);
        }
        let mut credentials = None;
        let mut candidates = Vec::new();
        for block in std::iter::once(&text.session).chain(&text.media) {
            match Credentials::read(block)? {
                Found::Neither => {}
                Found::Half => return Err(FragmentFault::HalfCredentials),
                Found::Both(found) if credentials.get_or_insert_with(|| found.clone()) != &found => {
                    return Err(AttributeFault::Contradiction { attribute: "ice-ufrag" }.into());
                }
                Found::Both(_) => {}
            }
        }
        for block in &text.media {
            if block.media_line().is_none() {
                return Err(FragmentFault::MediaLine(clipped(block.lines[0])));
            }
            for line in block.lines.iter().filter_map(|line| line.strip_prefix("a=")).filter(|line| is_candidate(line))
            {
                match Candidate::parse(line) {
                    Ok(candidate) if candidates.len() < MAX_CANDIDATES => candidates.push(candidate),
                    Ok(_) | Err(CandidateFault::Unusable) => {}
                    Err(CandidateFault::Grammar) => return Err(FragmentFault::Candidate(clipped(line))),
                }
            }
        }
        let mut blocks = std::iter::once(&text.session).chain(&text.media);
        let end_of_candidates = blocks.any(|block| block.has("end-of-candidates"));
        let silent = !text.media.iter().any(|block| block.has("candidate"));
        if silent && credentials.is_none() && !end_of_candidates {
            return Err(FragmentFault::Nothing);
        }
        Ok(Fragment { credentials, candidates, end_of_candidates })
    }
}

fn is_candidate(attribute: &str) -> bool {
    attribute == "candidate" || attribute.starts_with("candidate:")
}

/// The body of the answer to an ICE restart (RFC 9725 §4.3.3), made from the answer that set the session up: its
/// `ice-lite`, `ice-options` and `ice-pacing`, its bundle and its best candidate, with our new credentials.
///
/// One candidate only, although the answer may hold more: the client library whip-whep joins several with commas.
pub fn restart_fragment(answer: &str, ufrag: &str, pwd: &str) -> String {
    let mut ice: Vec<&str> = Vec::new();
    let mut group = None;
    let mut section: [Option<&str>; 2] = [None, None];
    let mut best: Option<([Option<&str>; 2], Candidate)> = None;
    for line in answer.lines() {
        if line.starts_with("m=") {
            section = [Some(line), None];
        }
        match attribute(line) {
            Some(("ice-lite" | "ice-options" | "ice-pacing", _)) if !ice.contains(&line) => ice.push(line),
            Some(("group", value)) if value.starts_with("BUNDLE ") => group = Some(line),
            Some(("mid", _)) => section[1] = Some(line),
            Some(("candidate", _)) => {
                if let Ok(candidate) = Candidate::parse(&line[2..])
                    && best.as_ref().is_none_or(|(_, best)| candidate.priority() > best.priority())
                {
                    best = Some((section, candidate));
                }
            }
            _ => {}
        }
    }
    let mut out = String::new();
    ice.into_iter().chain(group).for_each(|line| push_line(&mut out, line));
    let (section, candidate) = best.map_or((section, None), |(section, candidate)| (section, Some(candidate)));
    section.into_iter().flatten().for_each(|line| push_line(&mut out, line));
    push_line(&mut out, format_args!("a=ice-ufrag:{ufrag}"));
    push_line(&mut out, format_args!("a=ice-pwd:{pwd}"));
    if let Some(candidate) = candidate {
        push_line(&mut out, format_args!("a={candidate}"));
    }
    push_line(&mut out, "a=end-of-candidates");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const UFRAG: &str = "EsAw";
    const PWD: &str = "P2uYro0UCOQ4zxjKXaWCBui1";

    fn fault(body: &str) -> FragmentFault {
        let fault = Fragment::parse(body.as_bytes()).unwrap_err();
        assert_eq!(fault.status(), 400);
        fault
    }

    #[test]
    fn the_fragment_of_the_whip_specification() {
        // The shape of RFC 9725 §4.3.2.
        let fragment = Fragment::parse(
            b"a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:EsAw\r\n\
              a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n\
              a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1\r\n\
              a=candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active generation 0 ufrag EsAw\r\n\
              a=candidate:1 1 udp 2122260222 5e2f.local 61765 typ host\r\n\
              a=end-of-candidates\r\n",
        )
        .unwrap();
        assert_eq!(fragment.credentials, Some(Credentials::parse(UFRAG, PWD).unwrap()));
        assert!(fragment.end_of_candidates);
        assert_eq!(fragment.candidates.len(), 1);
        assert_eq!(fragment.candidates[0].as_str(), "candidate:1387637174 1 UDP 2122260223 192.0.2.1 61764 typ host");
    }

    #[test]
    fn credentials_of_the_session_part_and_of_sections() {
        let both = format!("a=ice-ufrag:{UFRAG}\na=ice-pwd:{PWD}\n");
        let parsed = |body: &str| Fragment::parse(body.as_bytes()).unwrap().credentials;
        let expected = Some(Credentials::parse(UFRAG, PWD).unwrap());
        assert_eq!(parsed(&both), expected);
        assert_eq!(parsed(&format!("m=audio 0 UDP/TLS/RTP/SAVPF 0\na=mid:0\n{both}")), expected);
        assert_eq!(parsed(&format!("{both}m=audio 9 UDP/TLS/RTP/SAVPF 0\na=mid:0\n{both}")), expected);
        assert_eq!(parsed("a=end-of-candidates\n"), None);
        let other = both.replace(UFRAG, "Other");
        assert_eq!(
            fault(&format!("{both}m=audio 9 UDP/TLS/RTP/SAVPF 0\n{other}")),
            FragmentFault::Attribute(AttributeFault::Contradiction { attribute: "ice-ufrag" })
        );
    }

    #[test]
    fn malformed_fragments() {
        let section = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n";
        assert_eq!(fault(""), FragmentFault::Text(TextFault::Empty));
        assert_eq!(fault("hello"), FragmentFault::Text(TextFault::NotALine(1)));
        assert_eq!(fault(section), FragmentFault::Nothing);
        assert_eq!(fault("m=audio 9\r\na=end-of-candidates\r\n"), FragmentFault::MediaLine("m=audio 9".into()));
        assert_eq!(fault("a=ice-ufrag:EsAw\r\n"), FragmentFault::HalfCredentials);
        assert_eq!(fault(&format!("{section}a=ice-pwd:{PWD}\r\n")), FragmentFault::HalfCredentials);
        assert!(matches!(
            fault(&format!("a=ice-ufrag:E\r\na=ice-pwd:{PWD}\r\n")),
            FragmentFault::Attribute(AttributeFault::Grammar { attribute: "ice-ufrag", .. })
        ));
        for bad in ["candidate:garbage", "candidate:", "candidate"] {
            assert_eq!(fault(&format!("{section}a={bad}\r\n")), FragmentFault::Candidate(bad.into()));
        }
        let good = "a=candidate:1 1 udp 5 192.0.2.1 61764 typ host\r\n";
        assert_eq!(fault(good), FragmentFault::CandidateOutside);
        assert_eq!(fault(&format!("{good}{section}{good}")), FragmentFault::CandidateOutside);
    }

    #[test]
    fn unusable_candidates_are_dropped_and_the_rest_is_bounded() {
        let section = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n";
        let fragment =
            Fragment::parse(format!("{section}a=candidate:1 1 udp 5 x.local 61764 typ host\r\n").as_bytes()).unwrap();
        assert_eq!(fragment.candidates, []);
        let many: String =
            (1..=5000).map(|port| format!("a=candidate:1 1 udp 5 192.0.2.1 {port} typ host\n")).collect();
        let fragment = Fragment::parse(format!("{section}{many}").as_bytes()).unwrap();
        assert_eq!(fragment.candidates.len(), MAX_CANDIDATES);
    }

    #[test]
    fn the_body_of_a_restart() {
        let answer = "v=0\r\no=- 1 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-options:trickle\r\na=ice-lite\r\n\
            a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:old1\r\na=ice-pwd:older\r\n\
            a=candidate:2 1 UDP 7 198.51.100.2 39132 typ host\r\na=candidate:1 1 UDP 9 198.51.100.1 39132 typ host\r\n\
            a=candidate:3 1 UDP 8 198.51.100.3 39132 typ host\r\n\
            m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=ice-options:trickle\r\na=ice-pacing:50\r\na=ice-ufrag:old1\r\na=ice-pwd:older\r\n";
        assert_eq!(
            restart_fragment(answer, UFRAG, PWD),
            "a=ice-options:trickle\r\na=ice-lite\r\na=ice-pacing:50\r\na=group:BUNDLE 0 1\r\n\
             m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n\
             a=candidate:1 1 UDP 9 198.51.100.1 39132 typ host\r\na=end-of-candidates\r\n"
        );
        assert!(Fragment::parse(restart_fragment(answer, UFRAG, PWD).as_bytes()).is_ok());
    }
}
