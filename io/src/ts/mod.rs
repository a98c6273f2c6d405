//! MPEG-TS (ISO/IEC 13818-1): access units into whole 188-byte packets, and other people's streams into streams of ours.
//!
//! | room | question it answers |
//! |---|---|
//! | [`muxer`] | what goes out for this unit, and at what time of the stream? |
//! | [`scanner`] | what of these bytes is media, and where can a player start? |
//! | [`splicer`] | how do sources that follow one another become one stream? |
//! | [`slate`] | how is a clip shown behind a stream that was cut off? |
//! | [`demuxer`] | which access units are in a stream of ours? |
//! | [`packet`] | how do bytes become packets? |
//! | [`blocks`] | where is a chunk kept? |
//! | [`sync`] | where do packets begin in any bytes? |
//! | [`section`] | how do packets become tables? |
//! | [`program`] | what does a source say of its programs? |
//! | [`pes`] | what does the head of a PES packet say? |
//! | [`picture`] | can decoding start at this picture? |
//! | [`psi`] | how does a player learn what is in the stream? |
//! | [`fault`] | what was wrong with bytes that were no stream? |

mod blocks;
mod demuxer;
mod fault;
mod muxer;
mod packet;
mod pes;
mod picture;
mod program;
mod psi;
mod scanner;
mod section;
mod slate;
mod splicer;
mod sync;

#[cfg(test)]
mod tests;

pub use demuxer::{AccessUnit, Demuxer};
pub use fault::Fault;
pub use muxer::{Chunk, Counts, Muxer};
pub use packet::{PACKET, clock};
pub use program::{Elementary, Kind, Program};
pub use psi::Tracks;
pub use scanner::{Choice, Scanned, Scanner, Segment};
pub use slate::behind;
pub use splicer::{Splicer, Times};
