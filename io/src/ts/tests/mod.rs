//! What every test here stands on: units made by hand, and a strict reader of what came out.

mod demuxing;
mod players;
mod recordings;
mod rules;
mod scanning;
mod source;
mod splicing;

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_core::id::Id;
use holdfast_core::input::Writer;

use super::*;
use crate::codec::Codec;
use crate::media::Unit;

const VIDEO: u16 = psi::VIDEO;
const AUDIO: u16 = psi::AUDIO;
/// 90 kHz ticks per millisecond.
const MS: i64 = 90;

const BOTH: Tracks = Tracks { audio: Some(Codec::Opus), video: Some(Codec::H264) };
const AUDIO_ONLY: Tracks = Tracks { audio: Some(Codec::Opus), video: None };
const VIDEO_ONLY: Tracks = Tracks { audio: None, video: Some(Codec::H264) };

fn session(index: u32) -> Writer {
    Writer::Session(Id::from_parts(index, 0))
}

fn unit(from: Writer, codec: Codec, ms: i64, key: bool, data: &[u8]) -> Unit {
    Unit { from, codec, pts: ms * 1000, dts: ms * 1000, key, data: Bytes::copy_from_slice(data) }
}

fn key(index: u32, ms: i64) -> Unit {
    unit(session(index), Codec::H264, ms, true, &[0, 0, 0, 1, 0x65, 1, 2, 3])
}

fn delta(index: u32, ms: i64) -> Unit {
    unit(session(index), Codec::H264, ms, false, &[0, 0, 0, 1, 0x41, 4, 5, 6])
}

fn opus(index: u32, ms: i64) -> Unit {
    unit(session(index), Codec::Opus, ms, true, &[7; 80])
}

/// Everything a stream says, in the order in which it says it.
#[derive(Debug, Default)]
struct Stream {
    pes: Vec<Pes>,
    clocks: Vec<Clock>,
    maps: Vec<Map>,
    /// How often each PID's next packet with payload must count.
    counts: BTreeMap<u16, u8>,
    lead: i64,
    /// How many units were to be decoded before what the clock said.
    overdue: usize,
}

#[derive(Debug, PartialEq)]
struct Pes {
    pid: u16,
    stream: u8,
    pts: i64,
    dts: i64,
    random_access: bool,
    data: Vec<u8>,
    /// What its head says of its length; 0 = open.
    length: usize,
}

#[derive(Debug, PartialEq)]
struct Clock {
    pid: u16,
    at: i64,
    discontinuity: bool,
    /// Whether a unit starts in its packet.
    starts: bool,
}

#[derive(Debug, PartialEq)]
struct Map {
    version: u8,
    clock: u16,
    /// Type and PID of each stream.
    streams: Vec<(u8, u16)>,
    /// The latest decoding time before it.
    lead: i64,
}

impl Stream {
    fn of(chunks: &[Chunk]) -> Stream {
        let mut stream = Stream::default();
        for chunk in chunks {
            stream.read(chunk);
        }
        stream
    }

    fn read(&mut self, chunk: &Chunk) {
        assert!(!chunk.data.is_empty() && chunk.data.len().is_multiple_of(PACKET));
        let (maps, clocks, units) = (self.maps.len(), self.clocks.len(), self.pes.len());
        for packet in chunk.data.chunks(PACKET) {
            self.packet(packet);
        }
        assert_eq!(self.pes.len(), units + 1, "one unit a chunk");
        let pes = &self.pes[units];
        assert_eq!(pes.random_access, chunk.random_access);
        assert!(
            !chunk.random_access || self.maps.len() > maps,
            "a player can start only where it is told what there is"
        );
        assert!(!chunk.random_access || self.clocks.len() > clocks, "and what time it is");
        assert!(pes.length == 0 || pes.length == pes.data.len(), "says {}, has {}", pes.length, pes.data.len());
        self.lead = self.lead.max(pes.dts);
        self.overdue += usize::from(self.clocks.last().is_some_and(|clock| pes.dts < clock.at));
    }

    fn packet(&mut self, packet: &[u8]) {
        assert_eq!(packet[0], 0x47);
        assert_eq!((packet[1] & 0xa0, packet[3] & 0xc0), (0, 0), "no error, no priority, nothing scrambled");
        let starts = packet[1] & 0x40 != 0;
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let (field, payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        let next = self.counts.entry(pid).or_insert(0);
        if payload {
            assert_eq!(packet[3] & 0x0f, *next, "PID {pid:#x}");
            *next = (*next + 1) & 0x0f;
        } else {
            assert_eq!((packet[3] + 1) & 0x0f, *next, "PID {pid:#x}");
        }
        let length = if field { 1 + usize::from(packet[4]) } else { 0 };
        let flags = if length > 1 { packet[5] } else { 0 };
        if flags & 0x10 != 0 {
            let field = packet[6..12].iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte));
            assert_eq!(field & 0x7fff, 0x7e00);
            self.clocks.push(Clock { pid, at: field >> 15, discontinuity: flags & 0x80 != 0, starts });
        } else {
            assert_eq!(flags & 0x80, 0, "a discontinuity comes with its clock");
        }
        let data = &packet[4 + length..];
        match pid {
            0 => assert!(starts && data.starts_with(&[0, 0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0])),
            psi::PMT => self.map(data),
            _ if starts => self.start(pid, flags & 0x40 != 0, data),
            _ if payload => self.pes.last_mut().unwrap().data.extend_from_slice(data),
            _ => {}
        }
    }

    fn map(&mut self, data: &[u8]) {
        let end = 4 + usize::from(data[3]) - 4;
        let pid = |at: usize| u16::from_be_bytes([data[at] & 0x1f, data[at + 1]]);
        let (mut at, mut streams) = (13, Vec::new());
        while at < end {
            streams.push((data[at], pid(at + 1)));
            at += 5 + usize::from(data[at + 4]);
        }
        assert_eq!(at, end);
        assert!(data[end + 4..].iter().all(|&byte| byte == 0xff));
        self.maps.push(Map { version: data[6] >> 1 & 0x1f, clock: pid(9), streams, lead: self.lead });
    }

    fn start(&mut self, pid: u16, random_access: bool, data: &[u8]) {
        assert_eq!(data[..3], [0, 0, 1]);
        let length = usize::from(u16::from_be_bytes([data[4], data[5]]));
        let time = |at: usize| {
            let byte = |i: usize| i64::from(data[at + i]);
            assert_eq!((byte(0) & 1, byte(2) & 1, byte(4) & 1), (1, 1, 1));
            (byte(0) & 0x0e) << 29 | byte(1) << 22 | (byte(2) & 0xfe) << 14 | byte(3) << 7 | byte(4) >> 1
        };
        let pts = time(9);
        let dts = if data[7] & 0x40 != 0 { time(14) } else { pts };
        let head = 9 + usize::from(data[8]);
        let length = length.saturating_sub(head - 6);
        let (stream, data) = (data[3], data[head..].to_vec());
        self.pes.push(Pes { pid, stream, pts, dts, random_access, data, length });
    }

    fn of_pid(&self, pid: u16) -> Vec<&Pes> {
        self.pes.iter().filter(|pes| pes.pid == pid).collect()
    }
}

/// A muxer and what came out of it.
#[derive(Default)]
struct Stage {
    muxer: Muxer,
    chunks: Vec<Chunk>,
}

impl Stage {
    fn new(index: u32, tracks: Tracks) -> Stage {
        let mut stage = Stage::default();
        stage.muxer.session(session(index), tracks);
        stage
    }

    /// Whether it went out.
    fn push(&mut self, unit: Unit) -> bool {
        let chunk = self.muxer.push(&unit);
        let out = chunk.is_some();
        self.chunks.extend(chunk);
        out
    }

    fn stream(&self) -> Stream {
        Stream::of(&self.chunks)
    }
}
