//! One ICE candidate (RFC 8839 §5.1), and whether the server can use it.

use std::fmt;
use std::net::IpAddr;

use super::text::{Block, is_token, number};

/// The most candidates of one offer or fragment that are passed on. Each costs connectivity checks, and sends packets
/// to an address that a stranger chose.
pub const MAX_CANDIDATES: usize = 32;

/// A candidate the server can use: UDP, component 1, a literal unicast address, a port other than 0.
///
/// Extensions (`generation`, `network-cost`, …) are cut: the media library sends what it cannot read to a name
/// resolver, and a `.local` name there costs a thread and four descriptors for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    line: String,
    priority: u32,
}

/// Why a candidate was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateFault {
    /// Not a candidate of RFC 8839 §5.1.
    Grammar,
    /// A right candidate that leads nowhere from here: TCP, a name instead of an address, another component, port 0, an
    /// address that is no single host's, an unknown type. RFC 9725 §4.3.2 wants it dropped silently.
    Unusable,
}

impl fmt::Display for CandidateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CandidateFault::Grammar => {
                "not of the form candidate:<foundation> <component> <transport> <priority> <address> <port> typ <type>"
            }
            CandidateFault::Unusable => "not a UDP candidate of component 1 with a literal address",
        })
    }
}

impl std::error::Error for CandidateFault {}

impl Candidate {
    /// Reads `candidate:…`, the value of an `a=` line.
    pub fn parse(line: &str) -> Result<Self, CandidateFault> {
        let fields: Vec<&str> = line.strip_prefix("candidate:").ok_or(CandidateFault::Grammar)?.split(' ').collect();
        let [foundation, component, transport, priority, address, port, "typ", kind, rest @ ..] = fields.as_slice()
        else {
            return Err(CandidateFault::Grammar);
        };
        let ice_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let component = number::<u16>(component).filter(|component| (1..=256).contains(component));
        let priority = number::<u32>(priority).filter(|priority| (1..1 << 31).contains(priority));
        let port = number::<u16>(port);
        // Extensions come in pairs of name and value.
        let (Some(component), Some(priority), Some(port), 0) = (component, priority, port, rest.len() % 2) else {
            return Err(CandidateFault::Grammar);
        };
        if !(1..=32).contains(&foundation.len())
            || !foundation.bytes().all(ice_char)
            || !is_token(transport)
            || !is_token(kind)
            || address.is_empty()
            || rest.iter().any(|field| field.is_empty())
        {
            return Err(CandidateFault::Grammar);
        }

        let address: IpAddr = address.parse().map_err(|_| CandidateFault::Unusable)?;
        let unicast = match address {
            IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_multicast() && !v4.is_broadcast(),
            IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast(),
        };
        let known = matches!(*kind, "host" | "srflx" | "prflx" | "relay");
        if component != 1 || !transport.eq_ignore_ascii_case("udp") || port == 0 || !unicast || !known {
            return Err(CandidateFault::Unusable);
        }
        let mut line = format!("candidate:{foundation} 1 UDP {priority} {address} {port} typ {kind}");
        if let ["raddr", related, "rport", related_port, ..] = rest
            && let (Ok(related), Some(related_port)) = (related.parse::<IpAddr>(), number::<u16>(related_port))
        {
            line.push_str(&format!(" raddr {related} rport {related_port}"));
        }
        Ok(Candidate { line, priority })
    }

    /// `candidate:…`, without `a=`.
    pub fn as_str(&self) -> &str {
        &self.line
    }

    /// Greater is better (RFC 8445 §5.1.2).
    pub fn priority(&self) -> u32 {
        self.priority
    }

    /// The usable candidates of a section, at most [`MAX_CANDIDATES`].
    pub(super) fn usable(block: &Block<'_>) -> Vec<Candidate> {
        let lines = block.lines.iter().filter_map(|line| line.strip_prefix("a="));
        lines.filter_map(|line| Candidate::parse(line).ok()).take(MAX_CANDIDATES).collect()
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_candidates_are_read_and_cut_to_what_counts() {
        let host = "candidate:842163049 1 udp 1677729535 192.0.2.7 46154 typ srflx raddr 10.0.0.17 rport 46154 generation 0 ufrag EsAw network-cost 999";
        let candidate = Candidate::parse(host).unwrap();
        assert_eq!(
            candidate.as_str(),
            "candidate:842163049 1 UDP 1677729535 192.0.2.7 46154 typ srflx raddr 10.0.0.17 rport 46154"
        );
        assert_eq!(candidate.priority(), 1_677_729_535);
        assert_eq!(Candidate::parse(candidate.as_str()), Ok(candidate));
        assert_eq!(
            Candidate::parse("candidate:1 1 UDP 5 2001:db8::1 9 typ host").unwrap().as_str(),
            "candidate:1 1 UDP 5 2001:db8::1 9 typ host"
        );
    }

    #[test]
    fn a_related_address_that_is_a_name_is_cut() {
        let line = "candidate:1 1 udp 5 192.0.2.7 46154 typ srflx raddr 5e2f.local rport 9";
        assert_eq!(Candidate::parse(line).unwrap().as_str(), "candidate:1 1 UDP 5 192.0.2.7 46154 typ srflx");
    }

    #[test]
    fn right_but_useless() {
        for line in [
            "candidate:1 1 udp 5 b1a5.local 46154 typ host",
            "candidate:1 1 udp 5 publisher.example 46154 typ host",
            "candidate:1 1 udp 5 fe80::1%eth0 46154 typ host",
            "candidate:1 1 tcp 5 192.0.2.7 9 typ host tcptype active",
            "candidate:1 2 udp 5 192.0.2.7 46155 typ host",
            "candidate:1 1 udp 5 192.0.2.7 0 typ host",
            "candidate:1 1 udp 5 0.0.0.0 46154 typ host",
            "candidate:1 1 udp 5 224.0.0.1 46154 typ host",
            "candidate:1 1 udp 5 255.255.255.255 46154 typ host",
            "candidate:1 1 udp 5 :: 46154 typ host",
            "candidate:1 1 udp 5 ff02::1 46154 typ host",
            "candidate:1 1 udp 5 192.0.2.7 46154 typ carrier-pigeon",
        ] {
            assert_eq!(Candidate::parse(line), Err(CandidateFault::Unusable), "{line}");
        }
    }

    #[test]
    fn no_candidates_at_all() {
        for line in [
            "",
            "candidate:",
            "candidate:garbage",
            "1 1 udp 5 192.0.2.7 46154 typ host",
            "candidate:1 1 udp 5 192.0.2.7 46154",
            "candidate:1 1 udp 5 192.0.2.7 46154 host",
            "candidate: 1 udp 5 192.0.2.7 46154 typ host",
            "candidate:- 1 udp 5 192.0.2.7 46154 typ host",
            "candidate:123456789012345678901234567890123 1 udp 5 192.0.2.7 46154 typ host",
            "candidate:1 0 udp 5 192.0.2.7 46154 typ host",
            "candidate:1 257 udp 5 192.0.2.7 46154 typ host",
            "candidate:1 x udp 5 192.0.2.7 46154 typ host",
            "candidate:1 1 udp 0 192.0.2.7 46154 typ host",
            "candidate:1 1 udp 2147483648 192.0.2.7 46154 typ host",
            "candidate:1 1 udp +5 192.0.2.7 46154 typ host",
            "candidate:1 1 udp 5  46154 typ host",
            "candidate:1 1 udp 5 192.0.2.7 65536 typ host",
            "candidate:1 1 u=dp 5 192.0.2.7 46154 typ host",
            "candidate:1 1 udp 5 192.0.2.7 46154 typ host generation",
            "candidate:1 1 udp 5 192.0.2.7 46154 typ host  0",
        ] {
            assert_eq!(Candidate::parse(line), Err(CandidateFault::Grammar), "{line}");
        }
    }
}
