//! The demuxer of a stream of ours: whole packets in, access units out, to be sent over another protocol.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::packet::{Head, PACKET, pid};
use super::pes::{Pes, PesHead, since};
use super::picture::{Inspection, Pictures, Start};
use super::program::{Elementary, Program};
use super::psi;
use super::section::Sections;
use crate::codec::{Codec, Found, Frame, aac, mpeg_audio, opus};

/// A picture of 8K at 100 Mbit/s and one picture a second would fit.
const MAX_VIDEO: usize = 16 << 20;
/// A PES packet of audio says its length in 16 bits.
const MAX_AUDIO: usize = 128 << 10;
/// Opus counts its samples at this rate.
const OPUS_RATE: u32 = 48_000;
const CLOCK: i64 = 90_000;

/// What a decoder takes at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessUnit {
    /// PID of its track.
    pub pid: u16,
    /// How it is coded.
    pub codec: Codec,
    /// When it is to be shown, in 90 kHz ticks that go on where the 33 bits of the stream end.
    pub pts: i64,
    /// When it is to be decoded, likewise.
    pub dts: i64,
    /// Whether decoding can start here (always true for audio).
    pub key: bool,
    /// The payload.
    pub data: Bytes,
}

/// Takes a stream apart that came out of a muxer or a splicer of ours: program 1 with its map on PID 0x1000.
///
/// A video frame of open length is complete with the begin of the next one. What is damaged by a gap does not come out. It holds
/// one unit of each track, at most 16 MiB of video and 128 kB of anything else.
#[derive(Debug, Default)]
pub struct Demuxer {
    map: Sections,
    program: Option<Program>,
    tracks: BTreeMap<u16, Track>,
    /// The last decoding time of any track.
    last: Option<i64>,
    damaged: u64,
}

#[derive(Debug)]
struct Track {
    /// As it was declared; whether MPEG audio is of layer 3 its frames say.
    codec: Codec,
    continuity: Option<u8>,
    /// The PES packet that began, with its head.
    pes: Vec<u8>,
    /// Whether it began and is whole so far.
    open: bool,
    /// What the multiplexer says of it.
    marked: bool,
    /// A frame of audio that the last PES packet began.
    rest: Vec<u8>,
    /// The time of the last PES packet's first frame, and how long the frames since are, in samples of the rate.
    time: Option<i64>,
    samples: i64,
    rate: u32,
}

impl Demuxer {
    /// The program as it was declared last.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// How many PES packets could not be used: a packet of them is missing, they have no time, or they are too long.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Reads whole packets and appends the units that they complete to `out`.
    pub fn read(&mut self, data: &[u8], out: &mut VecDeque<AccessUnit>) {
        let (packets, _) = data.as_chunks::<PACKET>();
        for packet in packets {
            let Some(head) = Head::read(packet) else { continue };
            let payload = &packet[head.payload..];
            if pid(packet) == psi::PMT {
                self.declare(&head, payload, out);
            } else if let Some(mut track) = self.tracks.remove(&head.pid) {
                self.track(&mut track, &head, payload, out);
                self.tracks.insert(head.pid, track);
            }
        }
    }

    fn declare(&mut self, head: &Head, payload: &[u8], out: &mut VecDeque<AccessUnit>) {
        let mut sections = Vec::new();
        self.map.read(head, payload, &mut sections);
        for program in sections.iter().filter_map(|section| Program::parse(section, psi::PROGRAM)) {
            if self.program.as_ref() == Some(&program) {
                continue;
            }
            let mut former = std::mem::take(&mut self.tracks);
            for stream in &program.streams {
                let Some(codec) = coding(stream) else { continue };
                let track = former.remove(&stream.pid).filter(|track| track.codec == codec);
                self.tracks.insert(stream.pid, track.unwrap_or_else(|| Track::new(codec)));
            }
            for (pid, mut track) in former {
                self.finish(pid, &mut track, out);
            }
            self.program = Some(program);
        }
    }

    fn track(&mut self, track: &mut Track, head: &Head, payload: &[u8], out: &mut VecDeque<AccessUnit>) {
        if payload.is_empty() {
            return;
        }
        let last = track.continuity.replace(head.continuity);
        if last == Some(head.continuity) && !head.discontinuity {
            return;
        }
        if last.is_some_and(|last| (last + 1) & 0x0f != head.continuity) {
            self.damaged += u64::from(track.open);
            track.open = false;
            track.rest.clear();
        }
        if head.starts {
            self.finish(head.pid, track, out);
            (track.open, track.marked) = (true, head.random_access);
        }
        if !track.open {
            return;
        }
        track.pes.extend_from_slice(payload);
        let limit = if track.codec.is_video() { MAX_VIDEO } else { MAX_AUDIO };
        if track.pes.len() > limit {
            self.damaged += 1;
            track.open = false;
            track.pes = Vec::new();
        } else if let Pes::Head(PesHead { length: Some(length), payload, .. }) = Pes::read(&track.pes)
            && track.pes.len() >= payload + length
        {
            track.pes.truncate(payload + length);
            self.finish(head.pid, track, out);
        }
    }

    /// The PES packet that began is over.
    fn finish(&mut self, pid: u16, track: &mut Track, out: &mut VecDeque<AccessUnit>) {
        let pes = std::mem::take(&mut track.pes);
        if !std::mem::take(&mut track.open) {
            return;
        }
        let Pes::Head(head) = Pes::read(&pes) else {
            self.damaged += 1;
            return;
        };
        let data = Bytes::from(pes).slice(head.payload..);
        if head.length.is_some_and(|length| data.len() < length) {
            self.damaged += 1;
            track.rest.clear();
            return;
        }
        let times = head.pts.zip(head.dts).map(|(pts, dts)| {
            let dts_at = self.unroll(dts);
            (dts_at + since(pts, dts), dts_at)
        });
        if !track.codec.is_video() {
            return track.frames(pid, times.map(|(pts, _)| pts), &data, out);
        }
        let Some((pts, dts)) = times.filter(|_| !data.is_empty()) else {
            self.damaged += 1;
            return;
        };
        let codec = track.codec;
        let pictures = if codec == Codec::H264 { Pictures::H264 } else { Pictures::H265 };
        let start = Inspection::new(pictures, 0).look(&data);
        let key = start == Start::RandomAccess || (start == Start::Unknown && track.marked);
        out.push_back(AccessUnit { pid, codec, pts, dts, key, data });
    }

    /// A time beyond 33 bits, near the last one.
    fn unroll(&mut self, time: u64) -> i64 {
        let at = self.last.map_or(time as i64, |last| last + since(time, last as u64));
        self.last = Some(at);
        at
    }
}

impl Track {
    fn new(codec: Codec) -> Track {
        Track {
            codec,
            continuity: None,
            pes: Vec::new(),
            open: false,
            marked: false,
            rest: Vec::new(),
            time: None,
            samples: 0,
            rate: OPUS_RATE,
        }
    }

    /// The frames that `data` completes. The first one that begins in it is the one that `time` is of (ISO/IEC 13818-1 §2.4.3.7).
    fn frames(&mut self, pid: u16, time: Option<i64>, data: &[u8], out: &mut VecDeque<AccessUnit>) {
        if self.codec == Codec::Opus {
            self.restart(time);
            let mut rest = data;
            while let Some((packet, more)) = opus::unwrap(rest) {
                rest = more;
                let Some(samples) = opus::samples(packet) else { continue };
                let frame = Frame { codec: Codec::Opus, length: packet.len(), samples, rate: OPUS_RATE };
                out.extend(self.frame(pid, Bytes::copy_from_slice(packet), frame));
            }
            return;
        }
        let read = if self.codec == Codec::Aac { aac::frame } else { mpeg_audio::frame };
        let carried = self.rest.len();
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(data);
        let all = Bytes::from(all);
        let (mut at, mut time) = (0, Some(time));
        loop {
            if at >= carried
                && let Some(time) = time.take()
            {
                self.restart(time);
            }
            match read(&all[at..]) {
                Found::Frame(frame) if frame.length <= all.len() - at => {
                    out.extend(self.frame(pid, all.slice(at..at + frame.length), frame));
                    at += frame.length;
                }
                Found::Frame(_) | Found::More => break,
                Found::None => at += 1,
            }
        }
        self.rest = all[at..].to_vec();
    }

    fn restart(&mut self, time: Option<i64>) {
        if time.is_some() {
            (self.time, self.samples) = (time, 0);
        }
    }

    /// One frame at its time; `None` if there was no time yet.
    fn frame(&mut self, pid: u16, data: Bytes, frame: Frame) -> Option<AccessUnit> {
        let Frame { codec, samples, rate, .. } = frame;
        if rate != self.rate {
            self.time = self.time.map(|time| time + self.elapsed());
            (self.rate, self.samples) = (rate, 0);
        }
        let pts = self.time? + self.elapsed();
        self.samples += i64::from(samples);
        Some(AccessUnit { pid, codec, pts, dts: pts, key: true, data })
    }

    fn elapsed(&self) -> i64 {
        self.samples * CLOCK / i64::from(self.rate)
    }
}

/// How a stream is coded; `None` if streams of its kind are not taken apart.
fn coding(stream: &Elementary) -> Option<Codec> {
    match (stream.stream_type, stream.registration().as_ref()) {
        (0x1b, _) => Some(Codec::H264),
        (0x24, _) | (0x06, Some(b"HEVC")) => Some(Codec::H265),
        (0x0f, _) => Some(Codec::Aac),
        (0x03 | 0x04, _) => Some(Codec::Mp2),
        (0x06, Some(b"Opus")) => Some(Codec::Opus),
        _ => None,
    }
}
