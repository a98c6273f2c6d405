//! PAT and PMT: what is in the stream, and where (ISO/IEC 13818-1 §2.4.4).

use super::packet::ROOM;
use super::program::Program;
use crate::codec::Codec;

/// PID of the program map.
pub(super) const PMT: u16 = 0x1000;
/// PID of the video.
pub(super) const VIDEO: u16 = 0x100;
/// PID of the audio.
pub(super) const AUDIO: u16 = 0x101;

/// PID of a clock that comes with no stream.
pub(super) const CLOCK: u16 = 0x1ff;

/// Number of the program.
pub(super) const PROGRAM: u16 = 1;
const STREAM: u16 = 1;

/// At which sampling rates MPEG audio runs: those of MPEG-2, below 32 kHz, have a stream type of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rates {
    #[default]
    Full,
    Halved,
}

/// The tracks of a session or of a program, and how they are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracks {
    /// Its audio, if there is any.
    pub audio: Option<Codec>,
    /// Its video, if there is any.
    pub video: Option<Codec>,
}

impl Tracks {
    /// The PID that carries the clock.
    pub(super) fn clock(&self) -> u16 {
        if self.video.is_some() { VIDEO } else { AUDIO }
    }
}

/// The payload of a packet that says where the program map is.
pub(super) fn pat() -> Vec<u8> {
    let mut body = PROGRAM.to_be_bytes().to_vec();
    body.extend_from_slice(&(0xe000 | PMT).to_be_bytes());
    section(0x00, STREAM, 0, &body)
}

/// The payload of a packet that says what the program is made of. `version` counts modulo 32.
pub(super) fn pmt(tracks: Tracks, rates: Rates, version: u8) -> Vec<u8> {
    let mut body = (0xe000 | tracks.clock()).to_be_bytes().to_vec();
    body.extend_from_slice(&[0xf0, 0]);
    for (codec, pid) in [(tracks.video, VIDEO), (tracks.audio, AUDIO)] {
        if let Some(codec) = codec {
            let (kind, descriptors) = declaration(codec, rates);
            stream(kind, pid, descriptors, &mut body);
        }
    }
    section(0x02, PROGRAM, version, &body)
}

/// The stream type of a track (§2.4.4.10), and its descriptors.
fn declaration(codec: Codec, rates: Rates) -> (u8, &'static [u8]) {
    match codec {
        Codec::H264 => (0x1b, &[]),
        Codec::H265 => (0x24, &[]),
        Codec::Aac => (0x0f, &[]),
        Codec::Mp2 | Codec::Mp3 if rates == Rates::Halved => (0x04, &[]),
        Codec::Mp2 | Codec::Mp3 => (0x03, &[]),
        // With its registration (ATSC A/52 annex A §3.4).
        Codec::Ac3 => (0x81, b"\x05\x04AC-3"),
        // Private data with a registration (Xiph's mapping of Opus into MPEG-TS), and the DVB extension descriptor for it with
        // channel configuration 2: declared stereo, mono passes so too.
        Codec::Opus => (0x06, b"\x05\x04Opus\x7f\x02\x80\x02"),
    }
}

/// The payload of packets that say what a program is made of, whose streams are on `pids` here. `version` counts modulo 32.
pub(super) fn map(program: &Program, clock: u16, pids: &[u16], version: u8) -> Vec<u8> {
    let mut body = (0xe000 | clock).to_be_bytes().to_vec();
    body.extend_from_slice(&(0xf000 | program.descriptors.len() as u16).to_be_bytes());
    body.extend_from_slice(&program.descriptors);
    for (elementary, pid) in program.streams.iter().zip(pids) {
        stream(elementary.stream_type, *pid, &elementary.descriptors, &mut body);
    }
    section(0x02, PROGRAM, version, &body)
}

fn stream(kind: u8, pid: u16, descriptors: &[u8], body: &mut Vec<u8>) {
    body.push(kind);
    body.extend_from_slice(&(0xe000 | pid).to_be_bytes());
    body.extend_from_slice(&(0xf000 | descriptors.len() as u16).to_be_bytes());
    body.extend_from_slice(descriptors);
}

/// A section that is one of one, behind its pointer field; what is left of its last packet is stuffed behind it, as sections are
/// (§2.4.4).
pub(super) fn section(table: u8, id: u16, version: u8, body: &[u8]) -> Vec<u8> {
    // What the length counts: five bytes of head, the body, four of checksum.
    let length = 0xb000 | (5 + body.len() + 4) as u16;
    let mut out = vec![0, table];
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0xc1 | (version & 0x1f) << 1, 0, 0]);
    out.extend_from_slice(body);
    let checksum = crc32(&out[1..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    out.resize(out.len().next_multiple_of(ROOM), 0xff);
    out
}

/// The checksum of ISO/IEC 13818-1 annex A: polynomial 0x04c11db7, most significant bit first, not inverted.
pub(super) fn crc32(data: &[u8]) -> u32 {
    data.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte) << 24,
            |crc, _| {
                if crc & 1 << 31 == 0 { crc << 1 } else { crc << 1 ^ 0x04c1_1db7 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0x0376_e6e7);
    }
}
