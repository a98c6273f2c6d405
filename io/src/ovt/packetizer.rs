//! How do frames become packets?

use bytes::{Buf, Bytes, BytesMut};

use super::description::{Media, Track};
use super::fault::Fault;
use super::generation::{Generation, Table};
use super::packet::{self, Kind, MAX_UNIT, Stamp};
use super::unit::{self, DELTA, Head, KEY};
use crate::codec::Codec;

/// One frame of a track on its way to edges: Annex B, ADTS, or as it is, by codec.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it is to be shown, µs.
    pub pts: i64,
    /// When it is to be decoded, µs.
    pub dts: i64,
    /// For how long, µs, if that is known. Edges measure it anew.
    pub duration: Option<i64>,
    /// Whether decoding can start here. Audio always can.
    pub key: bool,
    /// The frame.
    pub data: &'a [u8],
}

/// Makes the packets of one stream. They are the same for all of its edges: one counter goes through them, so an edge begins
/// with an arbitrary number.
#[derive(Debug)]
pub struct Packetizer {
    table: Table,
    sequence: u16,
}

impl Packetizer {
    /// For edges that speak the numbers of `generation`.
    pub fn new(generation: Generation) -> Self {
        Packetizer { table: generation.written(), sequence: 0 }
    }

    /// Whether these edges have a number for the codec.
    pub fn carries(&self, codec: Codec) -> bool {
        self.table.number(codec).is_some()
    }

    /// The packets of one frame, behind one another. An edge may begin with any of these; only messages may come between two
    /// packets. Refused if the unit would have more than [`MAX_UNIT`] bytes.
    pub fn unit(&mut self, track: &Track, frame: &Frame<'_>) -> Result<Bytes, Fault> {
        let size = u32::try_from(frame.data.len())
            .ok()
            .filter(|_| frame.data.len() + unit::HEADER <= MAX_UNIT)
            .ok_or(Fault::UnitTooLong(MAX_UNIT))?;
        let pts = track.timebase.ticks(frame.pts);
        let (media, packet) = match track.media {
            // NAL units; raw.
            Media::Video(_) => (0, 3),
            Media::Audio(_) => (1, 1),
        };
        let head = Head {
            track: track.id,
            pts,
            dts: track.timebase.ticks(frame.dts),
            duration: frame.duration.map_or(-1, |duration| track.timebase.ticks(duration)),
            media,
            flag: if frame.key || media == 1 { KEY } else { DELTA },
            format: self.table.format(track.codec),
            packet,
            size,
        };
        let mut out = BytesMut::new();
        let stamp = Stamp { kind: Kind::Media, timestamp: pts.cast_unsigned(), sequence: self.sequence };
        self.sequence = packet::write(&mut out, stamp, head.write().chain(frame.data));
        Ok(out.freeze())
    }
}
