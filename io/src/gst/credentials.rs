//! Unguessable ICE credentials of our side.

use crate::sdp::Credentials;

/// Sixty-four characters, six bits each, of which ICE credentials may consist (`ice-char`, RFC 8839 §5.4).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 8445 §5.3 asks for 24 bits: four characters.
const UFRAG_CHARS: usize = 8;
/// RFC 8445 §5.3 asks for 128 bits: twenty-two characters.
const PWD_CHARS: usize = 24;

/// New ones, for an ICE restart.
///
/// # Errors
/// The operating system gave no entropy.
pub(super) fn fresh() -> Result<Credentials, getrandom::Error> {
    Ok(Credentials { ufrag: ice_chars::<UFRAG_CHARS>()?, pwd: ice_chars::<PWD_CHARS>()? })
}

fn ice_chars<const N: usize>() -> Result<String, getrandom::Error> {
    let mut entropy = [0; N];
    getrandom::fill(&mut entropy)?;
    Ok(entropy.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 0x3f)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_well_formed_and_new_every_time() {
        let (one, other) = (fresh().unwrap(), fresh().unwrap());
        assert_eq!(Credentials::parse(&one.ufrag, &one.pwd).as_ref(), Ok(&one));
        assert_ne!(one.ufrag, other.ufrag);
        assert_ne!(one.pwd, other.pwd);
    }
}
