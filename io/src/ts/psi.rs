//! PAT and PMT: what is in the stream, and where (ISO/IEC 13818-1 §2.4.4).

use super::packet::ROOM;
use super::program::Program;

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

/// How the audio of a stream is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioCodec {
    /// Opus as private data with a registration (Xiph's mapping of Opus into MPEG-TS). Declared stereo; mono passes so too.
    Opus,
    /// AAC in ADTS.
    Aac,
}

/// The tracks of a session or of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracks {
    /// Its audio, if there is any.
    pub audio: Option<AudioCodec>,
    /// Whether there is video; H.264 always.
    pub video: bool,
}

impl Tracks {
    /// The PID that carries the clock.
    pub(super) fn clock(&self) -> u16 {
        if self.video { VIDEO } else { AUDIO }
    }
}

/// The payload of a packet that says where the program map is.
pub(super) fn pat() -> Vec<u8> {
    let mut body = PROGRAM.to_be_bytes().to_vec();
    body.extend_from_slice(&(0xe000 | PMT).to_be_bytes());
    section(0x00, STREAM, 0, &body)
}

/// The payload of a packet that says what the program is made of. `version` counts modulo 32.
pub(super) fn pmt(tracks: Tracks, version: u8) -> Vec<u8> {
    let mut body = (0xe000 | tracks.clock()).to_be_bytes().to_vec();
    body.extend_from_slice(&[0xf0, 0]);
    if tracks.video {
        stream(0x1b, VIDEO, &[], &mut body);
    }
    match tracks.audio {
        Some(AudioCodec::Aac) => stream(0x0f, AUDIO, &[], &mut body),
        // Registration "Opus", and the DVB extension descriptor for it with channel configuration 2.
        Some(AudioCodec::Opus) => stream(0x06, AUDIO, b"\x05\x04Opus\x7f\x02\x80\x02", &mut body),
        None => {}
    }
    section(0x02, PROGRAM, version, &body)
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
