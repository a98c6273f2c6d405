//! Media units: a 36-byte header and a frame, all integers big-endian.

use bytes::{Buf, BufMut, Bytes};

use super::fault::Fault;

/// The length of a unit's header.
pub(super) const HEADER: usize = 36;

/// Flags of a frame.
pub(super) const DELTA: u8 = 1;
pub(super) const KEY: u8 = 2;

/// What a unit carries, as far as it is told apart here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A frame.
    Frame,
    /// A decoder configuration, or an event.
    Other,
}

/// A unit as it came. Times are in the timebase of its track. What its header says of the kind of media and the bitstream
/// format is left out: the description and the payload itself say it more reliably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawUnit {
    pub(super) track: u32,
    pub(super) pts: i64,
    pub(super) dts: i64,
    pub(super) flag: u8,
    pub(super) shape: Shape,
    pub(super) data: Bytes,
}

impl RawUnit {
    pub(super) fn read(mut unit: Bytes) -> Result<Self, Fault> {
        if unit.len() < HEADER {
            return Err(Fault::UnitTooShort(unit.len()));
        }
        let (track, pts, dts) = (unit.get_u32(), unit.get_i64(), unit.get_i64());
        let (_duration, _media, flag, _format) = (unit.get_i64(), unit.get_i8(), unit.get_u8(), unit.get_i8());
        // -1 unknown, 0 "OVT", 1 raw, 3 NAL units; 2 is a sequence header, the rest are events.
        let shape = if matches!(unit.get_i8(), -1 | 0 | 1 | 3) { Shape::Frame } else { Shape::Other };
        let said = unit.get_u32();
        if usize::try_from(said) != Ok(unit.len()) {
            return Err(Fault::UnitSize { said, came: unit.len() });
        }
        Ok(RawUnit { track, pts, dts, flag, shape, data: unit })
    }
}

/// The header of a unit as an origin writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) track: u32,
    pub(super) pts: i64,
    pub(super) dts: i64,
    /// -1 if unknown.
    pub(super) duration: i64,
    pub(super) media: i8,
    pub(super) flag: u8,
    pub(super) format: i8,
    pub(super) packet: i8,
    pub(super) size: u32,
}

impl Head {
    pub(super) fn write(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut out = &mut bytes[..];
        out.put_u32(self.track);
        out.put_i64(self.pts);
        out.put_i64(self.dts);
        out.put_i64(self.duration);
        out.put_i8(self.media);
        out.put_u8(self.flag);
        out.put_i8(self.format);
        out.put_i8(self.packet);
        out.put_u32(self.size);
        bytes
    }
}
