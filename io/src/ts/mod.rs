//! MPEG-TS: access units in, whole 188-byte packets out (ISO/IEC 13818-1).
//!
//! | room | question it answers |
//! |---|---|
//! | [`muxer`] | what goes out for this unit, and at what time of the stream? |
//! | [`packet`] | how do bytes become packets? |
//! | [`psi`] | how does a player learn what is in the stream? |

mod muxer;
mod packet;
mod psi;

#[cfg(test)]
mod tests;

pub use muxer::{Chunk, Counts, Muxer};
pub use packet::PACKET;
pub use psi::{AudioCodec, Tracks};
