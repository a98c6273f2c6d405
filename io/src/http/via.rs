//! The edges that a request came through.

use std::fmt;

use super::field::{FieldValue, Headers};

/// How many edges there may be between a viewer and an origin. A chain this long is a mistake, if not a loop through
/// somebody who drops what he does not know.
const HOPS: usize = 8;

/// What an edge calls itself in `Via` (RFC 9110 §7.6.3): a token that is like no other's, so that a request which comes
/// back is known, whatever address it comes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pseudonym(String);

impl Pseudonym {
    /// A pseudonym from 16 unpredictable bytes.
    pub fn new(entropy: [u8; 16]) -> Self {
        Pseudonym(format!("holdfast-{:032x}", u128::from_be_bytes(entropy)))
    }
}

/// The servers that a message came through: a request, for the request to an origin that serves it; or an answer, for the answers
/// that hand it on. `Via` is what HTTP has for this ("avoiding
/// request loops", RFC 9110 §7.6.3), and other proxies add themselves to it and pass it on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Via {
    hops: Vec<Box<str>>,
}

/// A request that came through this edge already, or through more than there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looped;

impl fmt::Display for Looped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this request came through here already: a channel's sources lead back to itself")
    }
}

impl std::error::Error for Looped {}

impl Via {
    /// Reads the hops of a message to the edge of this pseudonym.
    ///
    /// # Errors
    /// [`Looped`] if it is among them, or if they are more than eight.
    pub fn of(message: &Headers, own: &Pseudonym) -> Result<Self, Looped> {
        Via::listed(message.list("Via"), own)
    }

    /// The same of the elements of a list that came otherwise.
    ///
    /// # Errors
    /// As [`Via::of`].
    pub fn listed<'a>(hops: impl Iterator<Item = &'a str>, own: &Pseudonym) -> Result<Self, Looped> {
        // Each is a protocol, a name, and perhaps a comment, of which what stands behind a comma has no second word or is
        // taken for a hop: that makes a list longer, never shorter.
        let names = hops.filter_map(|hop| hop.split_ascii_whitespace().nth(1));
        let names = names.filter(|name| FieldValue::new(*name).is_ok());
        let hops: Vec<Box<str>> = names.take(HOPS + 1).map(Into::into).collect();
        if hops.len() > HOPS || hops.iter().any(|hop| **hop == *own.0) {
            return Err(Looped);
        }
        Ok(Via { hops })
    }

    /// Whether a hop of the one is a hop of the other.
    pub fn meets(&self, other: &Via) -> bool {
        self.hops.iter().any(|hop| other.hops.contains(hop))
    }

    /// The value for the message that goes on: the hops, and this edge as the last.
    pub fn through(&self, own: &Pseudonym) -> FieldValue {
        let hops = self.hops.iter().map(|hop| &**hop).chain([own.0.as_str()]);
        let list: Vec<String> = hops.map(|hop| format!("1.1 {hop}")).collect();
        FieldValue::new(list.join(", ")).expect("words of a field value are one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lines: &[&str]) -> Headers {
        let mut headers = Headers::default();
        for line in lines {
            headers.push("via", line.as_bytes());
        }
        headers
    }

    #[test]
    fn a_request_that_comes_back_is_known() {
        let (a, b) = (Pseudonym::new([1; 16]), Pseudonym::new([2; 16]));
        let first = Via::of(&request(&[]), &a).unwrap().through(&a);
        let second = Via::of(&request(&["1.0 fred", first.as_str()]), &b).unwrap().through(&b);
        assert_eq!(
            second.as_str(),
            "1.1 fred, 1.1 holdfast-01010101010101010101010101010101, 1.1 holdfast-02020202020202020202020202020202"
        );
        assert_eq!(Via::of(&request(&[second.as_str()]), &a), Err(Looped));
        assert_eq!(Via::of(&request(&["1.1 x (a, b)", second.as_str()]), &b), Err(Looped));
        assert!(Via::of(&request(&[second.as_str()]), &Pseudonym::new([3; 16])).is_ok());
    }

    #[test]
    fn two_messages_that_came_through_one_edge_are_known() {
        let own = Pseudonym::new([1; 16]);
        let via = |lines: &[&str]| Via::of(&request(lines), &own).unwrap();
        assert!(via(&["1.1 a, 1.1 b"]).meets(&via(&["1.1 c, 1.1 a"])));
        assert!(!via(&["1.1 a"]).meets(&via(&["1.1 b"])) && !via(&[]).meets(&via(&["1.1 b"])));
    }

    #[test]
    fn a_chain_has_an_end() {
        let own = Pseudonym::new([1; 16]);
        assert!(Via::of(&request(&["1.1 a"; HOPS]), &own).is_ok());
        assert_eq!(Via::of(&request(&["1.1 a"; HOPS + 1]), &own), Err(Looped));
    }

    #[test]
    fn whatever_a_request_says_the_value_is_one_line() {
        let own = Pseudonym::new([1; 16]);
        let via = Via::of(&request(&["1.1 a\tb, ,x", "\u{1}\u{7f} \u{1}\u{7f} "]), &own);
        if let Ok(via) = via {
            assert!(!via.through(&own).as_str().contains(|c: char| c.is_control()));
        }
    }
}
