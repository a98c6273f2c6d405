//! Are two runs the same?

use core::fmt;

/// 64 bits over everything that came out, and when what went in did. Tells runs apart; proves nothing against malice.
///
/// Taken a word of 8 bytes at a time, least byte first on every machine: byte by byte it would cost more than all the rest
/// of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

/// An odd number whose bits look like chance (the golden ratio's).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes in more bytes; where one piece ends and the next begins counts.
    pub fn update(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.word(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        // At most 7 bytes are left: the eighth has room for how many there were.
        last[7] = bytes.len() as u8;
        self.word(u64::from_le_bytes(last));
    }

    /// Takes in one word.
    pub(super) fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        // The high half added: a multiplication alone carries nothing downwards.
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(32);
    }

    /// The one of this value.
    pub(super) fn of_value(value: u64) -> Self {
        Digest(value)
    }

    /// The value.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
