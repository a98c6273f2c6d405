//! Media in a journal: its length, not its bytes.

use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// No chunk of media comes near this; a broken journal must not make us ask for gigabytes.
const LIMIT: u32 = 64 << 20;

pub fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(data.len() as u32)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let length = u32::deserialize(deserializer)?;
    if length > LIMIT {
        return Err(D::Error::custom("a chunk of media longer than 64 MiB"));
    }
    Ok(Bytes::from(alloc::vec![0; length as usize]))
}
