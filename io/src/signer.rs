//! What do addresses prove? The core's tokens and secrets are in its journal, which people send to one another. So what leaves
//! the process in an address is signed with a key that does not: whoever has a journal can make no address of it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use holdfast_core::input::Token;
use ring::hmac;

/// Bytes of a tag. Half of an HMAC-SHA256 (RFC 2104 §5): nobody gets to try 2¹²⁸ of them at a server.
const TAG: usize = 16;
/// Bytes of a token with its tag: 43 letters.
const SIGNED: usize = 16 + TAG;

/// Makes and reads what stands in addresses. Its key ends with the process.
pub(crate) struct Signer {
    key: hmac::Key,
}

impl Signer {
    /// `secret` is unpredictable, and told to nobody.
    pub fn new(secret: &[u8]) -> Self {
        let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), b"holdfast addresses 1");
        Signer { key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()) }
    }

    /// A token as addresses have it: 43 letters, digits, `-` and `_`.
    pub fn sign(&self, token: Token) -> String {
        let mut signed = [0; SIGNED];
        signed[..16].copy_from_slice(&token.0);
        signed[16..].copy_from_slice(&self.tag(b"token", &token.0));
        BASE64.encode(signed)
    }

    /// The token that an address has; `None` if it is none at all.
    ///
    /// One that was not signed here stands for a token that nobody has: always the same one, so that a player which was given it
    /// before a restart can be known by it again, and one that nobody can choose, so that it is no other player's.
    pub fn verify(&self, text: &str) -> Option<Token> {
        let mut signed = [0; SIGNED];
        // Another number of letters than 43 is none; nor is what is written in two ways.
        let length = BASE64.decode_slice(text, &mut signed).ok()?;
        let (token, tag) = signed.split_first_chunk::<16>().filter(|_| length == SIGNED)?;
        let right = self.tag(b"token", token).iter().zip(tag).fold(0, |differs, (own, given)| differs | (own ^ given));
        Some(Token(if right == 0 { *token } else { self.tag(b"foreign", &signed) }))
    }

    /// The last part of the address of a session whose secret is this: 32 hexadecimal digits.
    pub fn resource(&self, secret: [u8; 16]) -> String {
        format!("{:032x}", u128::from_be_bytes(self.tag(b"session", &secret)))
    }

    fn tag(&self, kind: &[u8], content: &[u8]) -> [u8; TAG] {
        let mut context = hmac::Context::with_key(&self.key);
        // No kind is the beginning of another.
        context.update(kind);
        context.update(content);
        let mut tag = [0; TAG];
        tag.copy_from_slice(&context.sign().as_ref()[..TAG]);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);

    #[test]
    fn a_signed_token_is_read_as_it_is_written() {
        let signer = Signer::new(b"secret");
        let text = signer.sign(TOKEN);
        assert_eq!(text.len(), 43);
        assert_eq!(signer.verify(&text), Some(TOKEN));
        for wrong in ["", "A", &text[1..], &format!("{text}A"), &format!("{text}="), &text.replacen('A', "+", 1)] {
            assert_eq!(signer.verify(wrong), None, "{wrong}");
        }
        // The last letter has two bits that say nothing: one of four ways to write it is the right one.
        let last: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']).collect();
        let taken = last.iter().filter(|last| signer.verify(&format!("{}{last}", &text[..42])).is_some());
        assert_eq!(taken.count(), 16);
    }

    #[test]
    fn whoever_knows_a_token_cannot_write_its_address() {
        let (signer, other) = (Signer::new(b"secret"), Signer::new(b"another"));
        for at in 0..43 {
            let mut text = signer.sign(TOKEN).into_bytes();
            text[at] = if text[at] == b'B' { b'R' } else { b'B' };
            assert_ne!(signer.verify(std::str::from_utf8(&text).unwrap()), Some(TOKEN), "letter {at}");
        }
        let foreign = other.sign(TOKEN);
        let stands_for = signer.verify(&foreign).unwrap();
        assert_ne!(stands_for, TOKEN);
        assert_eq!(signer.verify(&foreign), Some(stands_for), "whoever comes back with it is known by it");
        assert_ne!(signer.verify(&other.sign(Token([1; 16]))), Some(stands_for));
        // Nor is what it stands for an address.
        assert_ne!(signer.verify(&other.sign(stands_for)), Some(stands_for));
    }

    #[test]
    fn the_address_of_a_session_is_not_its_secret_nor_a_token_s() {
        let signer = Signer::new(b"secret");
        let address = signer.resource(TOKEN.0);
        assert!(address.len() == 32 && address.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(address, format!("{:032x}", u128::from_be_bytes(TOKEN.0)));
        assert_ne!(address, Signer::new(b"another").resource(TOKEN.0));
        let signed = BASE64.decode(signer.sign(TOKEN)).unwrap();
        assert_ne!(address, signed[16..].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
}
