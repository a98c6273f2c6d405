//! The muxer of one slot: one stream across all its sessions.

use std::mem;

use bytes::Bytes;
use holdfast_core::input::Writer;

use super::blocks::Blocks;
use super::packet::{Adaptation, Pid, wrap, write_pes_head};
use super::psi::{self, Rates, Tracks};
use crate::codec::{Codec, Found, h265, mpeg_audio};
use crate::media::Unit;

/// 90 kHz ticks per millisecond.
const MS: i64 = 90;
/// How far decoding lies behind the clock. It covers what two tracks that belong together come apart by; players that follow the
/// clock add it to their latency.
const DELAY: i64 = 200 * MS;
/// A track that comes later than the other one makes the delay that much longer, up to here: together under the second that
/// the decoder model allows (§2.4.2.6).
const MAX_SKEW: i64 = 500 * MS;
/// 100 ms are allowed (§2.7.2) and 40 ms recommended (ETSI TR 101 290); less than that would cost a packet more for every frame of
/// audio.
const CLOCK_INTERVAL: i64 = 35 * MS;
/// With units up to 100 ms apart this keeps within 500 ms (ETSI TR 101 290).
const PSI_INTERVAL: i64 = 400 * MS;
/// What lies between the last unit of a session and the first one of the next, where their times would overlap.
const SEAM: i64 = 20 * MS;
/// A track that was negotiated and never came is waited for this long, then left out: a publisher whose camera is off is heard.
const PATIENCE: i64 = 2_000 * MS;
/// A track that came and stopped is left out after this; a still picture may well pause for five seconds.
const SILENCE: i64 = 10_000 * MS;
/// The stream's time at the driver's epoch, so that units from just before it and their clock are not negative.
const ORIGIN: i64 = 10_000 * MS;

const VIDEO_STREAM: u8 = 0xe0;
const AUDIO_STREAM: u8 = 0xc0;
const PRIVATE_STREAM: u8 = 0xbd;

/// Only video may leave the length of its PES packet open. Frames of audio have a few kilobytes at most.
const MAX_AUDIO: usize = 65_000;

/// Access unit delimiter, any type of slice (ITU-T H.264 §7.3.2.4).
const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];
/// The same (ITU-T H.265 §7.3.2.5): its type is 35.
const H265_DELIMITER: [u8; 7] = [0, 0, 0, 1, 35 << 1, 1, 0x50];

/// Whole packets that go out together: of one access unit or of one segment, with whatever had to go before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// A multiple of [`PACKET`](super::PACKET) bytes, never empty.
    pub data: Bytes,
    /// Whether a player can start at its first byte.
    pub random_access: bool,
    /// When what a player sees first there is to be shown, in 90 kHz ticks modulo 2³³; of no meaning where it cannot start.
    pub pts: u64,
}

/// What could not go into the stream as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Audio that was dropped since its time was over.
    pub late: u64,
    /// Video whose time was over, and that was put behind the frame before it.
    pub nudged: u64,
    /// Units that were dropped while their session's first key frame was awaited.
    pub before_key: u64,
    /// Units of a session that is not the slot's.
    pub foreign: u64,
    /// Units without payload, or audio that does not fit a PES packet.
    pub unusable: u64,
}

/// Makes one MPEG-TS stream of the sessions of a slot, one after the other.
///
/// The stream's time is the units' own (µs on the driver's clock) as long as it goes forward. A session whose first unit would
/// overlap the one before it is moved behind that as a whole, by one offset for all its tracks. PIDs stay; counters go on;
/// the program map's version counts up when the tracks change; the first clock of a new session is marked as a discontinuity.
#[derive(Debug)]
pub struct Muxer {
    pat: Pid,
    pmt: Pid,
    video: Track,
    audio: Track,
    session: Option<Session>,
    /// What the program map declares, and how often that changed.
    program: Option<(Tracks, Rates)>,
    version: u8,
    /// The latest time that went out, of any track.
    lead: Option<i64>,
    /// The last clock that went out.
    clock: Option<i64>,
    /// When the program map last went out.
    mapped: Option<i64>,
    counts: Counts,
    blocks: Blocks,
    /// Where a chunk is written before its length is known.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Track {
    pid: Pid,
    /// The last decoding time.
    last: Option<i64>,
}

/// The session that feeds the slot now. Times are before the offset.
#[derive(Debug)]
struct Session {
    id: Writer,
    tracks: Tracks,
    rates: Rates,
    /// The first time that came, and the latest.
    span: Option<(i64, i64)>,
    /// When video last came that can be decoded; `None` while a key frame is awaited.
    video: Option<i64>,
    audio: Option<i64>,
    /// `None` before the first unit that goes out.
    offset: Option<i64>,
    skew: i64,
}

impl Session {
    /// Time went on to `time`: forgets what stopped.
    fn observe(&mut self, time: i64) {
        let (_, latest) = self.span.get_or_insert((time, time));
        *latest = time.max(*latest);
        let latest = *latest;
        for track in [&mut self.video, &mut self.audio] {
            *track = track.filter(|last| latest - last < SILENCE);
        }
    }

    /// The tracks that are there, or still waited for.
    fn present(&self) -> Tracks {
        let waits = self.span.is_none_or(|(first, latest)| latest - first < PATIENCE);
        Tracks {
            audio: self.tracks.audio.filter(|_| waits || self.audio.is_some()),
            video: self.tracks.video.filter(|_| waits || self.video.is_some()),
        }
    }
}

impl Default for Muxer {
    fn default() -> Self {
        Muxer::new()
    }
}

impl Muxer {
    /// Nothing goes out before [`Muxer::session`].
    pub fn new() -> Self {
        Muxer {
            pat: Pid::new(0),
            pmt: Pid::new(psi::PMT),
            video: Track { pid: Pid::new(psi::VIDEO), last: None },
            audio: Track { pid: Pid::new(psi::AUDIO), last: None },
            session: None,
            program: None,
            version: 0,
            lead: None,
            clock: None,
            mapped: None,
            counts: Counts::default(),
            blocks: Blocks::default(),
            scratch: Vec::new(),
        }
    }

    /// From here on the stream is fed by `from`, which negotiated `tracks`. Said again of the same session, its times are taken
    /// anew.
    pub fn session(&mut self, from: Writer, tracks: Tracks) {
        let (span, video, audio, offset) = (None, None, None, None);
        self.session = Some(Session { id: from, tracks, rates: Rates::Full, span, video, audio, offset, skew: 0 });
    }

    /// Whether the session has video of which nothing can go out before a key frame.
    pub fn awaits_key_frame(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.tracks.video.is_some() && session.video.is_none())
    }

    /// What could not go into the stream as it came, over all sessions.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The packets of one access unit; `None` if it does not go out, which is counted.
    pub fn push(&mut self, unit: &Unit) -> Option<Chunk> {
        let (program, rates) = self.admit(unit)?;
        let placed = self.place(unit)?;

        let changed = self.program != Some((program, rates));
        if changed {
            self.version = if self.program.is_some() { (self.version + 1) % 32 } else { 0 };
            self.program = Some((program, rates));
        }
        let key = unit.codec.is_video() && unit.key;
        let due = changed || self.mapped.is_none_or(|last| placed.lead - last >= PSI_INTERVAL);
        // Without video a player can start at any frame; it is asked to where it learns what there is.
        let random_access = key || (due && program.video.is_none());

        let mut out = mem::take(&mut self.scratch);
        out.clear();
        if key || due {
            self.mapped = Some(placed.lead);
            self.pat.write(Adaptation::default(), &psi::pat(), &[], &mut out);
            self.pmt.write(Adaptation::default(), &psi::pmt(program, rates, self.version), &[], &mut out);
        }

        let clock = self.clock.map_or(placed.clock, |last| last.max(placed.clock));
        let passed = self.clock.map_or(CLOCK_INTERVAL, |last| clock - last);
        let tell = random_access || passed >= CLOCK_INTERVAL || (unit.codec.is_video() && passed > 0);
        let mut adaptation = Adaptation { random_access, ..Adaptation::default() };
        if tell {
            adaptation.discontinuity = placed.first && self.clock.is_some();
            adaptation.pcr = Some(clock);
            self.clock = Some(clock);
        }
        if program.video.is_some() && !unit.codec.is_video() {
            if tell {
                self.video.pid.write_adaptation(adaptation, &mut out);
            }
            adaptation = Adaptation::default();
        }

        let (stream, prefix) = elementary(unit);
        let mut head = Vec::with_capacity(32);
        write_pes_head(stream, placed.pts, placed.dts, prefix.len() + unit.data.len(), &mut head);
        head.extend_from_slice(&prefix);
        self.track(unit.codec).pid.write(adaptation, &head, &unit.data, &mut out);
        let data = self.blocks.keep(&out);
        self.scratch = out;
        Some(Chunk { data, random_access, pts: wrap(placed.pts) })
    }

    /// Whether the unit belongs into the stream, and what the program is made of then.
    fn admit(&mut self, unit: &Unit) -> Option<(Tracks, Rates)> {
        let Some(session) = self.session.as_mut().filter(|session| session.id == unit.from) else {
            self.counts.foreign += 1;
            return None;
        };
        if unit.data.is_empty() || (!unit.codec.is_video() && unit.data.len() > MAX_AUDIO) {
            self.counts.unusable += 1;
            return None;
        }
        let time = ticks(unit.dts);
        session.observe(time);
        let waits = if unit.codec.is_video() {
            session.tracks.video = Some(unit.codec);
            session.video.is_none() && !unit.key
        } else {
            session.tracks.audio = Some(unit.codec);
            session.rates = rates(unit);
            session.audio = session.audio.max(Some(time));
            session.video.is_none() && session.present().video.is_some()
        };
        if waits {
            self.counts.before_key += 1;
            return None;
        }
        if unit.codec.is_video() {
            session.video = session.video.max(Some(time));
        }
        Some((session.present(), session.rates))
    }

    /// The unit's place in the stream's time.
    fn place(&mut self, unit: &Unit) -> Option<Placed> {
        let (lead, session) = (self.lead, self.session.as_mut()?);
        let first = session.offset.is_none();
        let overlap = lead.map_or(0, |lead| lead + SEAM - ticks(unit.dts));
        let offset = *session.offset.get_or_insert(overlap.max(0));
        let mut dts = ticks(unit.dts) + offset;
        let track = if unit.codec.is_video() { &mut self.video } else { &mut self.audio };
        if let Some(last) = track.last.filter(|last| dts <= *last) {
            if !unit.codec.is_video() {
                self.counts.late += 1;
                return None;
            }
            self.counts.nudged += 1;
            dts = last + 1;
        }
        track.last = Some(dts);
        let pts = dts.max(ticks(unit.pts) + offset);
        let lead = lead.map_or(dts, |lead| lead.max(dts));
        self.lead = Some(lead);
        session.skew = session.skew.max((lead - dts).min(MAX_SKEW));
        Some(Placed { pts, dts, lead, clock: lead - DELAY - session.skew, first })
    }

    fn track(&mut self, codec: Codec) -> &mut Track {
        if codec.is_video() { &mut self.video } else { &mut self.audio }
    }
}

/// When a unit goes out, in ticks.
struct Placed {
    pts: i64,
    dts: i64,
    /// The latest time of any track.
    lead: i64,
    /// What the clock would show if it could go back.
    clock: i64,
    /// Whether it is the first one of its session.
    first: bool,
}

/// The stream's time of a time on the driver's clock, before any offset.
fn ticks(micros: i64) -> i64 {
    // Within 35 years of the epoch, so that no sum of times overflows.
    (micros.clamp(-(1 << 50), 1 << 50) * 9).div_euclid(100) + ORIGIN
}

/// At which rates a frame of MPEG audio runs.
fn rates(unit: &Unit) -> Rates {
    match unit.codec {
        Codec::Mp2 | Codec::Mp3 => match mpeg_audio::frame(&unit.data) {
            Found::Frame(frame) if frame.rate < 32_000 => Rates::Halved,
            _ => Rates::Full,
        },
        _ => Rates::Full,
    }
}

/// The unit's kind of stream, and what has to stand before its payload.
fn elementary(unit: &Unit) -> (u8, Vec<u8>) {
    match unit.codec {
        Codec::H264 if first_nal(&unit.data).is_some_and(|nal| nal & 0x1f == 9) => (VIDEO_STREAM, Vec::new()),
        Codec::H264 => (VIDEO_STREAM, DELIMITER.to_vec()),
        Codec::H265 if first_nal(&unit.data).is_some_and(|nal| h265::kind(nal) == 35) => (VIDEO_STREAM, Vec::new()),
        Codec::H265 => (VIDEO_STREAM, H265_DELIMITER.to_vec()),
        Codec::Aac | Codec::Mp2 | Codec::Mp3 => (AUDIO_STREAM, Vec::new()),
        Codec::Ac3 => (PRIVATE_STREAM, Vec::new()),
        Codec::Opus => {
            // Control header: eleven bits of mark, nothing trimmed, no extension; then the length in bytes of 255 and a rest.
            let mut header = vec![0x7f, 0xe0];
            header.resize(2 + unit.data.len() / 255, 0xff);
            header.push((unit.data.len() % 255) as u8);
            (PRIVATE_STREAM, header)
        }
    }
}

/// The first byte of the NAL unit with which an access unit begins.
fn first_nal(data: &[u8]) -> Option<u8> {
    let data = data.strip_prefix(&[0]).filter(|rest| rest.starts_with(&[0, 0, 1])).unwrap_or(data);
    data.strip_prefix(&[0, 0, 1]).and_then(|nal| nal.first()).copied()
}
