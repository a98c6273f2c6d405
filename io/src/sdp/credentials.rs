//! ICE username fragment and password (RFC 8839 §5.4).

use super::text::{AttributeFault, Block, attribute, clipped};

/// The username fragment and password of one side of an ICE session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// 4–256 of `A–Z a–z 0–9 + /`.
    pub ufrag: String,
    /// 22–256 of `A–Z a–z 0–9 + /`.
    pub pwd: String,
}

impl Credentials {
    /// Checks both by RFC 8839 §5.4.
    pub fn parse(ufrag: &str, pwd: &str) -> Result<Self, AttributeFault> {
        let check = |attribute, value: &str, least: usize, form| {
            let ice_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            match (least..=256).contains(&value.len()) && value.bytes().all(ice_char) {
                true => Ok(value.to_owned()),
                false => Err(AttributeFault::Grammar { attribute, value: clipped(value), form }),
            }
        };
        Ok(Credentials {
            ufrag: check("ice-ufrag", ufrag, 4, "4-256 letters, digits, + or /")?,
            pwd: check("ice-pwd", pwd, 22, "22-256 letters, digits, + or /")?,
        })
    }

    /// The pair in a block: neither, both, or only one of them.
    pub(super) fn read(block: &Block<'_>) -> Result<Found, AttributeFault> {
        Ok(match (block.single("ice-ufrag")?, block.single("ice-pwd")?) {
            (None, None) => Found::Neither,
            (Some(ufrag), Some(pwd)) => Found::Both(Credentials::parse(ufrag, pwd)?),
            _ => Found::Half,
        })
    }
}

/// What a block holds of a pair of credentials.
pub(super) enum Found {
    /// Nothing.
    Neither,
    /// One without the other.
    Half,
    /// Both, well formed.
    Both(Credentials),
}

/// The same text with every `ice-ufrag` and `ice-pwd`, of the session and of each section, replaced. Line ends stay.
pub fn with_credentials(sdp: &str, ufrag: &str, pwd: &str) -> String {
    let mut out = String::with_capacity(sdp.len() + ufrag.len() + pwd.len());
    for line in sdp.split_inclusive('\n') {
        let content = line.trim_end_matches(['\r', '\n']);
        let end = &line[content.len()..];
        let (name, value) = match attribute(content) {
            Some(("ice-ufrag", _)) => ("a=ice-ufrag:", ufrag),
            Some(("ice-pwd", _)) => ("a=ice-pwd:", pwd),
            _ => (content, ""),
        };
        out.extend([name, value, end]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_characters() {
        let (ufrag, pwd) = ("a+/9", "abcdefghijklmnopqrst+/");
        assert!(Credentials::parse(ufrag, pwd).is_ok());
        assert!(Credentials::parse(&"u".repeat(256), &"p".repeat(256)).is_ok());
        for bad in ["", "abc", "ab-d", "ab d", "äbcd", &"u".repeat(257)] {
            assert!(
                matches!(Credentials::parse(bad, pwd), Err(AttributeFault::Grammar { attribute: "ice-ufrag", .. })),
                "{bad}"
            );
        }
        for bad in ["", "abcdefghijklmnopqrstu", "abcdefghijklmnopqrstu=", &"p".repeat(257)] {
            assert!(
                matches!(Credentials::parse(ufrag, bad), Err(AttributeFault::Grammar { attribute: "ice-pwd", .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn replaces_all_and_nothing_else() {
        let sdp =
            "v=0\r\na=ice-ufrag:old1\r\nm=audio 9 X 0\na=ice-pwd:oldpwd\na=ice-options:trickle\r\na=ice-ufrag:old2";
        assert_eq!(
            with_credentials(sdp, "new", "newpwd"),
            "v=0\r\na=ice-ufrag:new\r\nm=audio 9 X 0\na=ice-pwd:newpwd\na=ice-options:trickle\r\na=ice-ufrag:new"
        );
    }
}
