//! How is a call written?
//!
//! What is called thousands of times a second takes a few bytes: a byte of kind and flags, the time since the call before, and
//! what cannot be told from the calls before. Everything else is `postcard`.
//!
//! | kind | flags | then |
//! |---|---|---|
//! | any call | [`LATER`]: time passed | µs |
//! | [`TICK`] | | |
//! | [`MEDIA`] | [`KNOWN`] feed, writer; [`SAME`] length; [`MARKED`] | feed, writer, length, presentation time |
//! | [`SENT`], [`POLLED`] | [`KNOWN`] viewer; [`SAME`] bytes | viewer, bytes |
//! | [`ARRIVED`] | | source |
//! | [`OTHER`] | | the input |
//! | [`ACTIVITY`] | [`KNOWN`] session; [`AUDIO`], [`VIDEO`], [`CONTROL`] changed | session, what changed since its last |
//! | [`ENTROPY`] | | 16 bytes |
//! | [`DIGEST`] | | 8 bytes |
//!
//! Answers follow their call. A viewer that is known is known by its place alone, and so are a feed and a session.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use super::media::{self, Zeros};
use super::{Answer, Digest};
use crate::id::Id;
use crate::input::{Arrivals, Evidence, FeedId, Input, SessionId, ViewerId, Writer};
use crate::time::Time;

const KIND: u8 = 0x0f;
const OTHER: u8 = 0;
const TICK: u8 = 1;
const MEDIA: u8 = 2;
const SENT: u8 = 3;
const POLLED: u8 = 4;
const ARRIVED: u8 = 5;
const ACTIVITY: u8 = 6;
const ENTROPY: u8 = 7;
const DIGEST: u8 = 8;

const LATER: u8 = 0x80;
const KNOWN: u8 = 0x10;
const SAME: u8 = 0x20;
const MARKED: u8 = 0x40;
const AUDIO: u8 = 0x20;
const VIDEO: u8 = 0x40;
const CONTROL: u8 = 0x80;

/// How many feeds and sessions, and how many viewers are known at a time, each at the place that its own place falls on.
const FEEDS: usize = 256;
const SESSIONS: usize = 256;
const VIEWERS: usize = 4096;

/// Nothing has this id: so many tenancies of so many places there never were.
const fn nobody<Kind>() -> Id<Kind> {
    Id::from_parts(u32::MAX, u32::MAX)
}

/// What is known of the calls so far, to whoever writes and whoever reads.
#[derive(Debug)]
pub struct Coder {
    now: Time,
    feeds: Vec<(FeedId, Writer, u64)>,
    viewers: Vec<ViewerId>,
    sessions: Vec<(SessionId, Evidence)>,
    /// How many bytes were sent last.
    sent: u64,
    zeros: Zeros,
}

/// What a frame of calls is made of.
#[derive(Debug)]
pub enum Piece {
    Call(Input),
    Answer(Answer),
    Digest(Digest),
}

/// Why something cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// It goes on behind the end.
    End,
    /// It makes no sense.
    Nonsense,
}

impl Coder {
    /// Nothing is known but the time.
    pub fn new(now: Time) -> Self {
        Coder {
            now,
            feeds: vec![(nobody(), Writer::Session(nobody()), 0); FEEDS],
            viewers: vec![nobody(); VIEWERS],
            sessions: vec![(nobody(), Evidence::default()); SESSIONS],
            sent: 0,
            zeros: Zeros::default(),
        }
    }

    /// When the last call was.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Appends a call. Time that goes back is written as time that stands: the core takes it so, too.
    pub fn call(&mut self, bytes: &mut Vec<u8>, now: Time, input: &Input) {
        // Not by way of a `Duration`: its seconds and nanoseconds cost more than all the rest.
        let after = now.as_micros().saturating_sub(self.now.as_micros());
        self.now = self.now.max(now);
        let later = if after > 0 { LATER } else { 0 };
        match input {
            Input::Tick => short(bytes, TICK | later, after, [None, None]),
            Input::Media { feed, from, data, random_access } => {
                let length = media::packets(data.len());
                let known = &mut self.feeds[feed.index() % FEEDS];
                let mut kind = MEDIA | later;
                if random_access.is_some() {
                    kind |= MARKED;
                }
                if (known.0, known.1) == (*feed, *from) {
                    let same = known.2 == length;
                    known.2 = length;
                    kind |= KNOWN | if same { SAME } else { 0 };
                    short(bytes, kind, after, [Some(feed.index() as u64), (!same).then_some(length)]);
                } else {
                    *known = (*feed, *from, length);
                    short(bytes, kind, after, [Some(feed.index() as u64), Some(u64::from(feed.generation()))]);
                    match from {
                        Writer::Session(id) => long_id(bytes, 0, *id),
                        Writer::Source(id) => long_id(bytes, 1, *id),
                    }
                    varint(bytes, length);
                }
                if let Some(time) = random_access {
                    varint(bytes, *time);
                }
            }
            Input::Sent { viewer, bytes: sent } => self.viewer(bytes, (SENT | later, after), *viewer, *sent),
            Input::Polled { viewer, bytes: sent } => self.viewer(bytes, (POLLED | later, after), *viewer, *sent),
            Input::Arrived { source } => {
                let id = [Some(source.index() as u64), Some(u64::from(source.generation()))];
                short(bytes, ARRIVED | later, after, id);
            }
            input => {
                short(bytes, OTHER | later, after, [None, None]);
                append(input, bytes);
            }
        }
    }

    fn viewer(&mut self, bytes: &mut Vec<u8>, (kind, after): (u8, u64), viewer: ViewerId, sent: u64) {
        let known = mem::replace(&mut self.viewers[viewer.index() % VIEWERS], viewer) == viewer;
        let same = mem::replace(&mut self.sent, sent) == sent;
        let kind = kind | if known { KNOWN } else { 0 } | if same { SAME } else { 0 };
        let packets = (!same).then(|| media::packets(sent as usize));
        if known {
            short(bytes, kind, after, [Some(viewer.index() as u64), packets]);
        } else {
            short(bytes, kind, after, [Some(viewer.index() as u64), Some(u64::from(viewer.generation()))]);
            packets.into_iter().for_each(|packets| varint(bytes, packets));
        }
        if packets == Some(u64::MAX) {
            // More than can be said in packets.
            varint(bytes, sent);
        }
    }

    /// Appends an answer to the last call.
    pub fn answer(&mut self, bytes: &mut Vec<u8>, answer: &Answer) {
        match answer {
            Answer::Activity { session, evidence } => {
                let (now, known) = (self.now, &mut self.sessions[session.index() % SESSIONS]);
                let is_known = known.0 == *session;
                let before = if is_known { known.1 } else { Evidence::default() };
                *known = (*session, *evidence);
                let kinds = [
                    (AUDIO, before.audio, evidence.audio),
                    (VIDEO, before.video, evidence.video),
                    (CONTROL, before.control, evidence.control),
                ];
                let changed = kinds.iter().filter(|(_, before, after)| before != after);
                let flags = changed.clone().fold(if is_known { KNOWN } else { 0 }, |flags, (flag, ..)| flags | flag);
                bytes.push(ACTIVITY | flags);
                varint(bytes, session.index() as u64);
                if !is_known {
                    varint(bytes, u64::from(session.generation()));
                }
                for (_, before, after) in changed {
                    varint(bytes, after.count.wrapping_sub(before.count));
                    moment(bytes, now, after.last);
                }
            }
            Answer::Entropy(entropy) => {
                bytes.push(ENTROPY);
                bytes.extend_from_slice(entropy);
            }
        }
    }

    /// Appends what the digest is now.
    pub fn digest(bytes: &mut Vec<u8>, digest: Digest) {
        bytes.push(DIGEST);
        bytes.extend_from_slice(&digest.value().to_le_bytes());
    }

    /// Whether an answer comes next.
    pub fn is_answer(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|kind| matches!(kind & KIND, ACTIVITY | ENTROPY))
    }

    /// What comes next; takes it off `bytes`.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Piece, Unreadable> {
        let [kind] = take(bytes)?;
        let (call, flags) = (kind & KIND, kind & !KIND);
        if call <= ARRIVED && flags & LATER != 0 {
            self.now = self.now + Duration::from_micros(take_varint(bytes)?);
        }
        let (known, same) = (flags & KNOWN != 0, flags & SAME != 0);
        Ok(match call {
            OTHER => Piece::Call(take_postcard(bytes)?),
            TICK => Piece::Call(Input::Tick),
            MEDIA => {
                let index = take_index(bytes)?;
                let place = index as usize % FEEDS;
                if !known {
                    let feed = Id::from_parts(index, take_index(bytes)?);
                    let from = match take(bytes)? {
                        [0] => Writer::Session(take_id(bytes)?),
                        [1] => Writer::Source(take_id(bytes)?),
                        _ => return Err(Unreadable::Nonsense),
                    };
                    self.feeds[place] = (feed, from, 0);
                }
                if !known || !same {
                    self.feeds[place].2 = take_varint(bytes)?;
                }
                let (feed, from, packets) = self.feeds[place];
                let data = self.zeros.get(media::length(packets)).ok_or(Unreadable::Nonsense)?;
                let random_access = if flags & MARKED != 0 { Some(take_varint(bytes)?) } else { None };
                Piece::Call(Input::Media { feed, from, data, random_access })
            }
            SENT | POLLED => {
                let index = take_index(bytes)?;
                let place = index as usize % VIEWERS;
                if !known {
                    self.viewers[place] = Id::from_parts(index, take_index(bytes)?);
                }
                if !same {
                    let packets = take_varint(bytes)?;
                    self.sent = if packets == u64::MAX { take_varint(bytes)? } else { media::length(packets) };
                }
                let (viewer, bytes) = (self.viewers[place], self.sent);
                Piece::Call(if call == SENT { Input::Sent { viewer, bytes } } else { Input::Polled { viewer, bytes } })
            }
            ARRIVED => Piece::Call(Input::Arrived { source: take_id(bytes)? }),
            ACTIVITY => {
                let index = take_index(bytes)?;
                let place = index as usize % SESSIONS;
                if !known {
                    self.sessions[place] = (Id::from_parts(index, take_index(bytes)?), Evidence::default());
                }
                let (session, mut evidence) = self.sessions[place];
                let Evidence { audio, video, control } = &mut evidence;
                for (flag, arrivals) in [(AUDIO, audio), (VIDEO, video), (CONTROL, control)] {
                    if flags & flag != 0 {
                        let count = arrivals.count.wrapping_add(take_varint(bytes)?);
                        *arrivals = Arrivals { count, last: take_moment(bytes, self.now)? };
                    }
                }
                self.sessions[place].1 = evidence;
                Piece::Answer(Answer::Activity { session, evidence })
            }
            ENTROPY => Piece::Answer(Answer::Entropy(take(bytes)?)),
            DIGEST => Piece::Digest(Digest::of_value(u64::from_le_bytes(take(bytes)?))),
            _ => return Err(Unreadable::Nonsense),
        })
    }
}

/// Appends anything as `postcard`.
pub fn append(value: &impl serde::Serialize, bytes: &mut Vec<u8>) {
    // A growing vector takes everything, and none of our types refuses to be serialized.
    *bytes = postcard::to_extend(value, mem::take(bytes)).unwrap_or_default();
}

/// Appends the beginning of a call: all of it at once, where its numbers are small, which nearly all are.
#[inline]
fn short(bytes: &mut Vec<u8>, kind: u8, after: u64, [one, two]: [Option<u64>; 2]) {
    if (after | one.unwrap_or(0) | two.unwrap_or(0)) < 1 << 14 {
        let (mut word, mut bits) = (u64::from(kind), 8);
        let mut add = |value: u64| {
            let more = u64::from(value >= 0x80);
            word |= ((value & 0x7f) | (more << 7) | ((value >> 7) << 8)) << bits;
            bits += 8 + 8 * more;
        };
        if after > 0 {
            add(after);
        }
        if let Some(one) = one {
            add(one);
        }
        if let Some(two) = two {
            add(two);
        }
        let end = bytes.len() + (bits / 8) as usize;
        bytes.extend_from_slice(&word.to_le_bytes());
        bytes.truncate(end);
        return;
    }
    bytes.push(kind);
    if after > 0 {
        varint(bytes, after);
    }
    [one, two].into_iter().flatten().for_each(|value| varint(bytes, value));
}

/// Appends a number in as many bytes as it takes, 7 bits in each, the least first.
pub fn varint(bytes: &mut impl Extend<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.extend(Some(value as u8 | 0x80));
        value >>= 7;
    }
    bytes.extend(Some(value as u8));
}

fn long_id<Kind>(bytes: &mut Vec<u8>, tag: u8, id: Id<Kind>) {
    bytes.push(tag);
    varint(bytes, id.index() as u64);
    varint(bytes, u64::from(id.generation()));
}

/// Appends a time, small where it is near `now`: 0 is none, else the distance and its sign, and one. What does not fit behind that
/// one is told apart by a byte more.
fn moment(bytes: &mut Vec<u8>, now: Time, time: Option<Time>) {
    let Some(time) = time else { return bytes.push(0) };
    let distance = now.as_micros().wrapping_sub(time.as_micros()) as i64;
    let folded = (distance << 1 ^ distance >> 63) as u64;
    varint(bytes, folded.saturating_add(1));
    if folded >= u64::MAX - 1 {
        bytes.push(u8::from(folded == u64::MAX));
    }
}

fn take_moment(bytes: &mut &[u8], now: Time) -> Result<Option<Time>, Unreadable> {
    let Some(folded) = take_varint(bytes)?.checked_sub(1) else { return Ok(None) };
    let folded = if folded == u64::MAX - 1 && take(bytes)? != [0] { u64::MAX } else { folded };
    let distance = (folded >> 1) as i64 ^ -((folded & 1) as i64);
    Ok(Some(Time::from_micros(now.as_micros().wrapping_sub(distance as u64))))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Unreadable> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(Unreadable::End)?;
    *bytes = rest;
    Ok(*taken)
}

/// Takes off what [`varint`] appended.
pub fn take_varint(bytes: &mut &[u8]) -> Result<u64, Unreadable> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(bytes)?;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return Err(Unreadable::Nonsense);
        }
        value |= part << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Unreadable::Nonsense)
}

fn take_index(bytes: &mut &[u8]) -> Result<u32, Unreadable> {
    u32::try_from(take_varint(bytes)?).map_err(|_| Unreadable::Nonsense)
}

fn take_id<Kind>(bytes: &mut &[u8]) -> Result<Id<Kind>, Unreadable> {
    Ok(Id::from_parts(take_index(bytes)?, take_index(bytes)?))
}

fn take_postcard<T: for<'de> serde::Deserialize<'de>>(bytes: &mut &[u8]) -> Result<T, Unreadable> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|error| match error {
        postcard::Error::DeserializeUnexpectedEnd => Unreadable::End,
        _ => Unreadable::Nonsense,
    })?;
    *bytes = rest;
    Ok(value)
}
