//! The splicer of one channel: segments of one source after another in, one continuous stream out.

use std::sync::Arc;

use super::blocks::Blocks;
use super::muxer::Chunk;
use super::packet::{Adaptation, HEADER, Head, NULL, PACKET, Pid, pid, write_pcr};
use super::pes::{self, Pes, PesHead, since};
use super::program::{Kind, Program};
use super::psi;
use super::scanner::Segment;

/// PAT and PMT are due after this much of the stream's time; clocks up to 100 ms apart (§2.7.2) make 400 ms of it.
const PSI_INTERVAL: u64 = 300 * 90;
/// A clock that goes on by more than this without saying so has lost its base.
const MAX_CLOCK_STEP: i64 = 90_000;
/// The longest that a frame is taken to last.
const MAX_FRAME: i64 = 90_000;

/// Our PIDs: the first video, then the audio, then all else, then a clock of its own.
const FIRST: u16 = psi::VIDEO;
const OTHERS: u16 = psi::AUDIO + 31;
const LANES: usize = (psi::CLOCK - FIRST + 1) as usize;
const PIDS: usize = 1 << 13;
const DISCONTINUITY: u8 = 0x80;
/// Not one of our lanes.
const NOWHERE: u16 = 0;

/// What becomes of a source's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// They pass as they are.
    #[default]
    Kept,
    /// All are moved by one offset so that the first frame follows the last one that went out: a file that is played in a loop.
    Continued,
}

/// Makes one stream of the segments of sources that follow one another.
///
/// The program has number 1, its PMT is on PID 0x1000, its first video on 0x100, its audio on 0x101 and up to 0x11f, everything else
/// from 0x120, a clock without a stream on 0x1ff, whatever the source. PAT and PMT go before each random access point and at least
/// every 400 ms. Continuity counters go on over a switch; what a source loses within itself stays a gap. The first clock after a
/// switch is marked as a discontinuity, and so is one that jumps.
#[derive(Debug)]
pub struct Splicer {
    pat: Pid,
    pmt: Pid,
    version: u8,
    /// The PMT as it goes out, in packets' payloads.
    map: Vec<u8>,
    source: Option<Source>,
    next: Option<Times>,
    lanes: Box<[Lane]>,
    blocks: Blocks,
    /// Whether anything went out.
    started: bool,
    clock: Option<u64>,
    /// The first clock after a switch did not go out yet.
    unmarked: bool,
    /// The last decoding time of the stream that players start with.
    lead: Option<u64>,
    /// Clock and decoding time when PAT and PMT last went out.
    mapped: (Option<u64>, Option<u64>),
    /// What is added to times.
    offset: u64,
}

#[derive(Debug)]
struct Source {
    program: Arc<Program>,
    /// Our PID of its clock; that of null packets if it has none.
    clock: u16,
    /// Our PID of the stream that players start with.
    lead: u16,
    /// Our PID of each of its.
    routes: Box<[u16]>,
}

/// One of our PIDs.
#[derive(Clone, Debug)]
struct Lane {
    /// The source's PID that feeds it.
    from: u16,
    /// Whether its packets belong to PES packets or sections that began.
    begun: bool,
    /// What is added to the source's counter.
    shift: Option<u8>,
    /// The last counter that went out.
    continuity: u8,
    /// The last decoding time that went out, and how far it was from the one before.
    last: Option<u64>,
    frame: i64,
}

impl Default for Lane {
    fn default() -> Self {
        Lane { from: NULL, begun: false, shift: None, continuity: 15, last: None, frame: 0 }
    }
}

impl Default for Splicer {
    fn default() -> Self {
        Splicer::new()
    }
}

impl Splicer {
    /// The stream begins with the first random access point that comes.
    pub fn new() -> Self {
        Splicer {
            pat: Pid::new(0),
            pmt: Pid::new(psi::PMT),
            version: 0,
            map: Vec::new(),
            source: None,
            next: Some(Times::Kept),
            lanes: vec![Lane::default(); LANES].into(),
            blocks: Blocks::default(),
            started: false,
            clock: None,
            unmarked: false,
            lead: None,
            mapped: (None, None),
            offset: 0,
        }
    }

    /// One whose stream stands behind one of ours: with another map, and with a clock of its own.
    pub(super) fn behind() -> Self {
        // Versions count from 0, and with each other program that a source has.
        Splicer { version: 31, started: true, ..Splicer::new() }
    }

    /// Another source, or another round of the same one, takes over with its next segment that begins with a random access point.
    /// What comes before that does not go out.
    pub fn begin(&mut self, times: Times) {
        self.next = Some(times);
    }

    /// The segment as it goes out; `None` if nothing of it does.
    pub fn pass(&mut self, segment: Segment) -> Option<Chunk> {
        let random_access = segment.random_access.is_some();
        if let Some(times) = self.next {
            if !random_access {
                return None;
            }
            self.take_over(times, &segment);
        }
        let pts = segment.random_access.map_or(0, |pts| pts.wrapping_add(self.offset) & ((1 << 33) - 1));
        let known = |source: &Source| Arc::ptr_eq(&source.program, &segment.program);
        let changed = !self.source.as_ref().is_some_and(known);
        if changed {
            self.adopt(segment.program);
        }
        let mut window = Window { data: segment.data, read: 0, written: 0 };
        if random_access || changed {
            self.tell(&mut window);
            self.announce(&mut window);
        }
        while let Some(packet) = window.packet() {
            if !self.rewrite(packet) {
                window.skip();
                continue;
            }
            if self.is_due() {
                self.tell(&mut window);
            }
            window.keep();
        }
        let data = window.finish();
        self.started |= !data.is_empty();
        (!data.is_empty()).then(|| Chunk { data: self.blocks.keep(&data), random_access, pts })
    }

    /// `first` is the segment with which the new source starts.
    fn take_over(&mut self, times: Times, first: &Segment) {
        self.next = None;
        self.source = None;
        self.mapped = (None, None);
        let ends = self.lanes.iter().filter_map(|lane| Some(pes::add(lane.last?, lane.frame as u64)));
        let end = ends.reduce(|end, other| if since(other, end) > 0 { other } else { end });
        let start = start(first);
        self.offset = match (times, end, start) {
            (Times::Continued, Some(end), Some(start)) => end.wrapping_sub(start),
            _ => 0,
        };
        if times == Times::Kept {
            self.unmarked = self.started;
            self.clock = None;
        }
        for lane in &mut self.lanes {
            *lane = Lane { continuity: lane.continuity, ..Lane::default() };
        }
    }

    /// From here on the source's packets are those of `program`.
    fn adopt(&mut self, program: Arc<Program>) {
        let mut routes = vec![NOWHERE; PIDS].into_boxed_slice();
        let pids = pids(&program);
        let lead = program.lead().map_or(NULL, |stream| stream.pid);
        for (stream, ours) in program.streams.iter().zip(&pids) {
            if let Some(route) = routes.get_mut(usize::from(stream.pid)).filter(|_| *ours != NULL) {
                *route = *ours;
            }
        }
        let route_of = |pid: u16| routes.get(usize::from(pid)).copied().unwrap_or(NOWHERE);
        let (clock, lead) = (route_of(program.clock), route_of(lead));
        let own_clock = program.clock < NULL && clock == NOWHERE;
        if own_clock {
            routes[usize::from(program.clock)] = psi::CLOCK;
        }
        let mut fed = [NULL; LANES];
        for (theirs, ours) in routes.iter().enumerate().filter(|(_, ours)| **ours != NOWHERE) {
            fed[usize::from(ours - FIRST)] = theirs as u16;
        }
        for (lane, from) in self.lanes.iter_mut().zip(fed).filter(|(lane, from)| lane.from != *from) {
            *lane = Lane { from, continuity: lane.continuity, ..Lane::default() };
        }
        // Nothing begins on it.
        self.lanes[LANES - 1].begun = own_clock;

        let clock = match clock {
            _ if own_clock => psi::CLOCK,
            NOWHERE => NULL,
            clock => clock,
        };
        let map = psi::map(&program, clock, &pids, self.version);
        if !self.map.is_empty() && self.map != map {
            self.version = (self.version + 1) % 32;
        }
        self.map = psi::map(&program, clock, &pids, self.version);
        self.lead = None;
        self.source = Some(Source { program, clock, lead, routes });
    }

    /// Puts PAT and PMT before the next packet.
    fn tell(&mut self, window: &mut Window) {
        let mut packets = Vec::with_capacity(4 * PACKET);
        self.pat.write(Adaptation::default(), &psi::pat(), &[], &mut packets);
        self.pmt.write(Adaptation::default(), &self.map, &[], &mut packets);
        window.insert(&packets);
        self.mapped = (self.clock, self.lead);
    }

    /// Says that the clock has another base if the first packet on its PID cannot say it together with the clock.
    fn announce(&mut self, window: &mut Window) {
        let Some(source) = self.source.as_ref().filter(|source| self.unmarked && source.clock != NULL) else { return };
        let (packets, _) = window.data[window.read..].as_chunks();
        let first = packets.iter().find(|packet| pid(packet) == source.program.clock);
        if first.and_then(Head::read).is_some_and(|head| head.pcr.is_some()) {
            return;
        }
        let mut packet = Vec::with_capacity(PACKET);
        let adaptation = Adaptation { discontinuity: true, ..Adaptation::default() };
        Pid::following(source.clock, self.lanes[usize::from(source.clock - FIRST)].continuity)
            .write_adaptation(adaptation, &mut packet);
        window.insert(&packet);
    }

    /// Makes a packet of the source one of ours; whether it goes out.
    fn rewrite(&mut self, packet: &mut [u8; PACKET]) -> bool {
        let Some(source) = &self.source else { return false };
        let ours = source.routes[usize::from(pid(packet))];
        let Some(head) = Head::read(packet).filter(|_| ours != NOWHERE) else { return false };
        let lane = &mut self.lanes[usize::from(ours - FIRST)];
        if head.payload < PACKET && !lane.begun {
            if !head.starts {
                return false;
            }
            lane.begun = true;
            lane.shift = None;
        }
        // One that has no payload repeats the count (§2.4.3.3).
        let counted = u8::from(head.payload < PACKET);
        let shift = *lane.shift.get_or_insert((lane.continuity + counted).wrapping_sub(head.continuity));
        lane.continuity = head.continuity.wrapping_add(shift) & 0x0f;
        let [high, low] = ours.to_be_bytes();
        (packet[1], packet[2]) = (packet[1] & 0xe0 | high, low);
        packet[3] = packet[3] & 0xf0 | lane.continuity;

        if head.starts
            && let Some(pes) = pes_head(&packet[head.payload..])
            && let Some(dts) = pes.dts
        {
            let dts = pes::add(dts, self.offset);
            if self.offset != 0 {
                pes::shift(&mut packet[head.payload..], self.offset);
            }
            if ours < OTHERS {
                lane.go_on(dts);
            }
            if ours == source.lead {
                self.lead = Some(dts);
            }
        }
        if let Some(pcr) = head.pcr {
            let pcr = pes::add(pcr, self.offset);
            if self.offset != 0 {
                write_pcr(packet, pcr);
            }
            if ours == source.clock {
                let jumped = self.clock.is_some_and(|last| !(0..=MAX_CLOCK_STEP).contains(&since(pcr, last)));
                if self.unmarked || jumped {
                    packet[HEADER + 1] |= DISCONTINUITY;
                }
                self.unmarked = false;
                self.clock = Some(pcr);
            }
        }
        true
    }

    /// Whether PAT and PMT have to go out again, by either clock of the stream.
    fn is_due(&mut self) -> bool {
        let passed = |now: Option<u64>, then: &mut Option<u64>| {
            now.is_some_and(|now| since(now, *then.get_or_insert(now)).unsigned_abs() >= PSI_INTERVAL)
        };
        passed(self.clock, &mut self.mapped.0) | passed(self.lead, &mut self.mapped.1)
    }
}

impl Lane {
    fn go_on(&mut self, dts: u64) {
        let step = self.last.map_or(0, |last| since(dts, last));
        if (1..=MAX_FRAME).contains(&step) {
            self.frame = step;
        }
        self.last = Some(dts);
    }
}

/// A segment that is read and written in place: what was written and is not read yet is apart by what was left out.
struct Window {
    data: Vec<u8>,
    read: usize,
    written: usize,
}

impl Window {
    fn packet(&mut self) -> Option<&mut [u8; PACKET]> {
        self.data[self.read..].first_chunk_mut()
    }

    fn keep(&mut self) {
        if self.read != self.written {
            self.data.copy_within(self.read..self.read + PACKET, self.written);
        }
        self.read += PACKET;
        self.written += PACKET;
    }

    fn skip(&mut self) {
        self.read += PACKET;
    }

    /// Writes `packets` before the one that is read next.
    fn insert(&mut self, packets: &[u8]) {
        let lacks = packets.len().saturating_sub(self.read - self.written);
        if lacks > 0 {
            let end = self.data.len();
            self.data.resize(end + lacks, 0);
            self.data.copy_within(self.read..end, self.read + lacks);
            self.read += lacks;
        }
        self.data[self.written..self.written + packets.len()].copy_from_slice(packets);
        self.written += packets.len();
    }

    fn finish(mut self) -> Vec<u8> {
        self.data.truncate(self.written);
        self.data
    }
}

/// When the first picture or sound of a segment is to be decoded.
fn start(segment: &Segment) -> Option<u64> {
    let is_media = |pid| segment.program.streams.iter().any(|stream| stream.pid == pid && stream.kind() != Kind::Data);
    let (packets, _) = segment.data.as_chunks::<PACKET>();
    let mut read = packets.iter().filter_map(|packet| Some((packet, Head::read(packet)?)));
    let (packet, head) = read.find(|(_, head)| head.payload < PACKET && is_media(head.pid))?;
    pes_head(&packet[head.payload..])?.dts
}

/// Our PIDs of the program's streams, by kind and order.
fn pids(program: &Program) -> Vec<u16> {
    let (mut video, mut audio, mut others) = (psi::VIDEO..psi::AUDIO, psi::AUDIO..OTHERS, OTHERS..psi::CLOCK);
    let mut pid = |kind| {
        let first = match kind {
            Kind::Video => video.next(),
            Kind::Audio => audio.next(),
            Kind::Data => None,
        };
        // A section has no room for more streams than there are numbers.
        first.or_else(|| others.next()).unwrap_or(NULL)
    };
    program.streams.iter().map(|stream| pid(stream.kind())).collect()
}

fn pes_head(data: &[u8]) -> Option<PesHead> {
    match Pes::read(data) {
        Pes::Head(head) => Some(head),
        Pes::More | Pes::Other => None,
    }
}
