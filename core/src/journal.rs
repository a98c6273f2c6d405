//! The list of core calls: what a run is, what its hash is taken of, what replays it.

/// Media in a journal: its length, not its bytes.
pub(crate) mod length_only {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(data.len() as u32)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let length = u32::deserialize(deserializer)?;
        Ok(Bytes::from(alloc::vec![0; length as usize]))
    }
}
