//! Passwords as they are kept, and whether one is right.

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use ring::{digest, pbkdf2};

/// What a hashed password begins with.
const SCHEME: &str = "pbkdf2-sha256";
/// How often new hashes are iterated: a few milliseconds on a small box, whose one thread has viewers to serve meanwhile.
const ITERATIONS: u32 = 10_000;
/// What a configuration may ask for.
const MOST_ITERATIONS: u32 = 100_000;
const SALT: usize = 16;

/// A user's password, as it stands in the configuration.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// As it is typed.
    Plain(String),
    /// `pbkdf2-sha256$ITERATIONS$SALT$HASH`, both in Base64 without padding.
    Hashed {
        /// Of PBKDF2 (RFC 8018).
        iterations: NonZeroU32,
        /// Any bytes.
        salt: Vec<u8>,
        /// HMAC-SHA256's length.
        hash: Vec<u8>,
    },
}

impl Password {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, in words: it is empty, or looks hashed and is not.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a password is not empty".into());
        }
        let Some(rest) = text.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix('$')) else {
            return Ok(Password::Plain(text.into()));
        };
        let form = || {
            format!("a hashed password has the form {SCHEME}$ITERATIONS$SALT$HASH, as `holdfast password` prints it")
        };
        let [iterations, salt, hash] = rest.split('$').collect::<Vec<_>>().try_into().map_err(|_| form())?;
        let iterations: NonZeroU32 = iterations.parse().map_err(|_| form())?;
        if iterations.get() > MOST_ITERATIONS {
            return Err(format!(
                "{iterations} iterations would keep viewers waiting at each login; {MOST_ITERATIONS} are the most"
            ));
        }
        let bytes = |text: &str| BASE64.decode(text).map_err(|_| form());
        let (salt, hash) = (bytes(salt)?, bytes(hash)?);
        if hash.len() != digest::SHA256_OUTPUT_LEN {
            return Err(form());
        }
        Ok(Password::Hashed { iterations, salt, hash })
    }

    /// Hashes one; `random` is the salt.
    pub fn hash(password: &str, random: [u8; SALT]) -> Self {
        let iterations = NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN);
        let mut hash = vec![0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &random, password.as_bytes(), &mut hash);
        Password::Hashed { iterations, salt: random.into(), hash }
    }

    /// Whether it is this one. Takes as long whichever part of it is wrong.
    pub(super) fn is(&self, given: &str) -> bool {
        match self {
            // Of equal lengths, whatever was given; only these are compared.
            Password::Plain(own) => {
                let of = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
                let (own, given) = (of(own), of(given));
                own.as_ref().iter().zip(given.as_ref()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
            }
            Password::Hashed { iterations, salt, hash } => {
                pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, *iterations, salt, given.as_bytes(), hash).is_ok()
            }
        }
    }
}

impl std::fmt::Display for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Password::Plain(own) => f.write_str(own),
            Password::Hashed { iterations, salt, hash } => {
                write!(f, "{SCHEME}${iterations}${}${}", BASE64.encode(salt), BASE64.encode(hash))
            }
        }
    }
}

/// Not to be read in a log.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_itself_and_no_other() {
        let hashed = Password::hash("geheim", [7; SALT]);
        for password in [Password::parse("geheim").unwrap(), Password::parse(&hashed.to_string()).unwrap()] {
            assert!(password.is("geheim"));
            for wrong in ["", "geheim ", "Geheim", "gehei", &hashed.to_string()] {
                assert!(!password.is(wrong), "{wrong}");
            }
        }
        assert_ne!(hashed, Password::hash("geheim", [8; SALT]), "salted");
    }

    #[test]
    fn what_looks_hashed_and_is_not_is_refused() {
        for wrong in [
            "",
            "pbkdf2-sha256$",
            "pbkdf2-sha256$1000$AAAA",
            "pbkdf2-sha256$0$AAAA$AAAA",
            "pbkdf2-sha256$1000$AAAA$AAAA",
            "pbkdf2-sha256$1000$!$AAAA",
            "pbkdf2-sha256$1000000000$AAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert!(Password::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_not_read_in_a_log() {
        assert_eq!(format!("{:?}", Password::Plain("geheim".into())), "Password(…)");
    }
}
