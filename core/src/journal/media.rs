//! How is media kept? By its length alone; what is read again is zeros.

use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// No chunk of media comes near this; a broken journal must not make us ask for gigabytes.
const LIMIT: u64 = 64 << 20;

/// Nearly every chunk is shorter.
static SHORT: [u8; 64 << 10] = [0; 64 << 10];

const PACKET: u64 = 188;

/// A length as a number that is small where it is one of whole packets.
pub(crate) fn packets(length: usize) -> u64 {
    let length = length as u64;
    if length.is_multiple_of(PACKET) { length / PACKET * 2 } else { length.saturating_mul(2).saturating_add(1) }
}

/// The length behind [`packets`].
pub(crate) fn length(packets: u64) -> u64 {
    if packets.is_multiple_of(2) { (packets / 2).saturating_mul(PACKET) } else { packets / 2 }
}

/// Media that is read again: all of it shares one stretch of zeros, which nobody writes to, so that it takes no memory.
#[derive(Default, Debug)]
pub(crate) struct Zeros(Bytes);

impl Zeros {
    /// So many; `None` if no chunk is that long.
    pub fn get(&mut self, length: u64) -> Option<Bytes> {
        if let Some(short) = SHORT.get(..length as usize) {
            return Some(Bytes::from_static(short));
        }
        if length > LIMIT {
            return None;
        }
        if length > self.0.len() as u64 {
            self.0 = Bytes::from(alloc::vec![0; length.next_power_of_two() as usize]);
        }
        Some(self.0.slice(..length as usize))
    }
}

pub fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(data.len() as u64)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let length = u64::deserialize(deserializer)?;
    Zeros::default().get(length).ok_or_else(|| D::Error::custom("a chunk of media longer than 64 MiB"))
}
