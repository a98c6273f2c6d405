//! A source whose packets are made one by one, and what anybody sees of packets.

use std::collections::{BTreeMap, VecDeque};

use crate::ts::packet::{Adaptation, Head, PACKET, Pid, write_pes_head};
use crate::ts::{Chunk, Fault, Scanner, Segment, psi};

pub const H264: u8 = 0x1b;
pub const AAC: u8 = 0x0f;
pub const MS: i64 = 90;
pub const IDR: &[u8] = &[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x42, 0, 30, 0, 0, 0, 1, 0x65, 0x88, 0x84];
pub const INTER: &[u8] = &[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x41, 0x9a, 0x84];

/// One program's packets.
pub struct Source {
    pub number: u16,
    pub pmt: u16,
    pub clock: u16,
    /// Type and PID of each stream.
    pub streams: Vec<(u8, u16)>,
    pub version: u8,
    pids: BTreeMap<u16, Pid>,
    pub out: Vec<u8>,
}

impl Source {
    pub fn new(streams: &[(u8, u16)]) -> Source {
        let (streams, clock) = (streams.to_vec(), streams[0].1);
        Source { number: 7, pmt: 0x30, clock, streams, version: 0, pids: BTreeMap::new(), out: Vec::new() }
    }

    pub fn pid(&mut self, number: u16) -> &mut Pid {
        self.pids.entry(number).or_insert_with(|| Pid::new(number))
    }

    pub fn write(&mut self, pid: u16, adaptation: Adaptation, head: &[u8], body: &[u8]) {
        let mut out = std::mem::take(&mut self.out);
        self.pid(pid).write(adaptation, head, body, &mut out);
        self.out = out;
    }

    pub fn pat(&mut self, programs: &[(u16, u16)]) {
        let entry = |(number, pid): &(u16, u16)| [number.to_be_bytes(), (0xe000 | pid).to_be_bytes()].concat();
        let body: Vec<u8> = programs.iter().flat_map(entry).collect();
        self.write(0, Adaptation::default(), &psi::section(0, 99, 0, &body), &[]);
    }

    pub fn pmt(&mut self) {
        let mut body = [(0xe000 | self.clock).to_be_bytes(), [0xf0, 3]].concat();
        body.extend_from_slice(&[0x0e, 1, 7]);
        for (coding, pid) in &self.streams {
            body.push(*coding);
            body.extend_from_slice(&(0xe000 | pid).to_be_bytes());
            body.extend_from_slice(&[0xf0, 0]);
        }
        let section = psi::section(2, self.number, self.version, &body);
        self.write(self.pmt, Adaptation::default(), &section, &[]);
    }

    pub fn tables(&mut self) {
        self.pat(&[(0, 0x10), (self.number, self.pmt)]);
        self.pmt();
    }

    /// A PES packet of `unit` and 400 bytes behind it, with the clock 100 ms before it if it is on the clock's PID.
    pub fn unit(&mut self, pid: u16, ms: i64, unit: &[u8]) {
        self.marked(pid, ms, unit, false);
    }

    pub fn marked(&mut self, pid: u16, ms: i64, unit: &[u8], random_access: bool) {
        let pcr = (pid == self.clock).then_some((ms - 100) * MS);
        let adaptation = Adaptation { random_access, pcr, ..Adaptation::default() };
        let (mut head, body) = (Vec::new(), vec![0x55; 400]);
        write_pes_head(0xe0, ms * MS, ms * MS, unit.len() + body.len(), &mut head);
        head.extend_from_slice(unit);
        self.write(pid, adaptation, &head, &body);
    }

    /// The clock alone, as multiplexers of constant rate send it between frames.
    pub fn tick(&mut self, ms: i64) {
        let mut out = std::mem::take(&mut self.out);
        let adaptation = Adaptation { pcr: Some((ms - 100) * MS), ..Adaptation::default() };
        self.pid(self.clock).write_adaptation(adaptation, &mut out);
        self.out = out;
    }

    /// Video and audio from `from` ms on, a key frame first and each ten frames of 40 ms.
    pub fn play(&mut self, from: i64, frames: i64) {
        let (video, audio) = (self.streams[0].1, self.streams[1].1);
        for frame in 0..frames {
            let ms = from + frame * 40;
            if frame % 10 == 0 {
                self.tables();
            }
            self.unit(video, ms, if frame % 10 == 0 { IDR } else { INTER });
            self.unit(audio, ms, &[0xff, 0xf1]);
        }
    }

    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// What a scanner makes of bytes in pieces of `cut`.
pub fn scan_with(scanner: &mut Scanner, data: &[u8], cut: usize) -> Result<Vec<Segment>, Fault> {
    let mut out = VecDeque::new();
    for piece in data.chunks(cut) {
        scanner.read(piece, &mut out)?;
    }
    for segment in &out {
        check(segment);
    }
    Ok(out.into())
}

pub fn scan(data: &[u8]) -> Vec<Segment> {
    scan_with(&mut Scanner::default(), data, 1500).unwrap()
}

/// What holds for each segment.
fn check(segment: &Segment) {
    let packets = Packets::of(&segment.data);
    let is_media = |packet: &&Packet| {
        let stream = segment.program.streams.iter().find(|stream| stream.pid == packet.head.pid);
        !packet.payload.is_empty() && stream.is_some_and(|stream| stream.kind() != crate::ts::Kind::Data)
    };
    assert!(packets.0.iter().any(|packet| is_media(&packet)), "a segment shows that there is media");
    if segment.random_access.is_some() {
        assert!(packets.0.iter().find(is_media).is_some_and(|first| first.head.starts));
    }
}

/// Segments without their borders.
pub fn joined(segments: &[Segment]) -> (Vec<u8>, Vec<(usize, u64)>) {
    let (mut data, mut starts) = (Vec::new(), Vec::new());
    for segment in segments {
        starts.extend(segment.random_access.map(|pts| (data.len(), pts)));
        data.extend_from_slice(&segment.data);
    }
    (data, starts)
}

#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    pub head: Head,
    pub payload: Vec<u8>,
    pub raw: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packets(pub Vec<Packet>);

impl Packets {
    pub fn of(data: &[u8]) -> Packets {
        assert!(data.len().is_multiple_of(PACKET));
        let packet = |raw: &[u8]| {
            assert_eq!(raw[0], 0x47);
            let head = Head::read(raw.first_chunk().unwrap()).unwrap();
            Packet { head, payload: raw[head.payload..].to_vec(), raw: raw.to_vec() }
        };
        Packets(data.chunks(PACKET).map(packet).collect())
    }

    pub fn of_chunks(chunks: &[Chunk]) -> Packets {
        Packets(chunks.iter().flat_map(|chunk| Packets::of(&chunk.data).0).collect())
    }

    pub fn on(&self, pid: u16) -> Vec<&Packet> {
        self.0.iter().filter(|packet| packet.head.pid == pid).collect()
    }

    /// PIDs on which the counter does not go on, with the place of the packet.
    pub fn gaps(&self) -> Vec<(u16, usize)> {
        let (mut last, mut gaps) = (BTreeMap::new(), Vec::new());
        for (index, packet) in self.0.iter().enumerate() {
            let count = packet.head.continuity;
            let expected = |last: u8| if packet.payload.is_empty() { last } else { (last + 1) & 0x0f };
            let previous = last.insert(packet.head.pid, count);
            if previous.is_some_and(|last| expected(last) != count) {
                gaps.push((packet.head.pid, index));
            }
        }
        gaps
    }
}
