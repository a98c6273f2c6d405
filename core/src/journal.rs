//! The list of core calls: what a run is, what its hash is taken of, what replays it.
//!
//! A journal holds the configuration (without secrets), then each call: time, input, and what the outside answered. No
//! media, only its lengths and marks. Written as `postcard` after an 8-byte head of magic and format version.

use alloc::vec::Vec;
use core::{fmt, mem};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::edge::Edge;
use crate::input::{Env, Evidence, Input, Output, SessionId};
use crate::time::Time;

/// The first bytes of every journal; the last one is the format's version.
pub const MAGIC: [u8; 8] = *b"HOLDFST\x01";

/// What the outside answered to the core during one call, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Answer {
    Activity(Evidence),
    Entropy([u8; 16]),
}

#[derive(Serialize, Deserialize)]
enum Entry {
    /// One call; time in µs since the call before.
    Call { after: u64, input: Input, answers: Vec<Answer> },
    /// What the digest was here.
    Digest(u64),
}

/// FNV-1a of 64 bits over everything that went in and came out. Tells runs apart; proves nothing against malice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes in more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The value.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// An [`Edge`] whose calls may be written down.
#[derive(Debug)]
pub struct Recorded {
    edge: Edge,
    journal: Option<Journal>,
}

/// The calls of one run so far.
#[derive(Debug)]
struct Journal {
    bytes: Vec<u8>,
    digest: Digest,
    last: Time,
    calls: u64,
    scratch: Vec<u8>,
}

impl Recorded {
    /// An edge that keeps no journal.
    pub fn off(config: Config) -> Self {
        Recorded { edge: Edge::new(config), journal: None }
    }

    /// An edge that keeps a journal of everything from its first call on.
    pub fn on(config: Config) -> Self {
        let mut journal = Journal {
            bytes: MAGIC.to_vec(),
            digest: Digest::default(),
            last: Time::ZERO,
            calls: 0,
            scratch: Vec::new(),
        };
        journal.write(&config);
        Recorded { edge: Edge::new(config), journal: Some(journal) }
    }

    /// As [`Edge::handle`].
    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        let Some(journal) = &mut self.journal else {
            return self.edge.handle(now, input, env);
        };
        let mut env = Listening { env, answers: Vec::new() };
        let copy = input.clone();
        let before = self.edge.pending().len();
        self.edge.handle(now, input, &mut env);
        let after = now.since(journal.last).as_micros() as u64;
        journal.last = journal.last.max(now);
        journal.calls += 1;
        journal.write(&Entry::Call { after, input: copy, answers: env.answers });
        for output in self.edge.pending().range(before..) {
            journal.digest_of(output);
        }
    }

    /// As [`Edge::poll`].
    pub fn poll(&mut self) -> Option<Output> {
        self.edge.poll()
    }

    /// The edge itself, to look at.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }

    /// The digest of the run so far; `None` where no journal is kept.
    pub fn digest(&self) -> Option<Digest> {
        self.journal.as_ref().map(|journal| journal.digest)
    }

    /// The journal so far, closed by its digest; `None` where none is kept.
    pub fn journal(&self) -> Option<Vec<u8>> {
        let journal = self.journal.as_ref()?;
        let mut bytes = journal.bytes.clone();
        append(&Entry::Digest(journal.digest.value()), &mut bytes);
        Some(bytes)
    }

    /// How many calls the journal holds.
    pub fn calls(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.calls)
    }
}

impl Journal {
    fn write(&mut self, value: &impl Serialize) {
        let from = self.bytes.len();
        append(value, &mut self.bytes);
        self.digest.update(&self.bytes[from..]);
    }

    fn digest_of(&mut self, value: &impl Serialize) {
        self.scratch.clear();
        append(value, &mut self.scratch);
        self.digest.update(&self.scratch);
    }
}

fn append(value: &impl Serialize, bytes: &mut Vec<u8>) {
    // A growing vector takes everything, and none of our types refuses to be serialized.
    *bytes = postcard::to_extend(value, mem::take(bytes)).unwrap_or_default();
}

struct Listening<'a> {
    env: &'a mut dyn Env,
    answers: Vec<Answer>,
}

impl Env for Listening<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let evidence = self.env.activity(session);
        self.answers.push(Answer::Activity(evidence));
        evidence
    }

    fn entropy(&mut self) -> [u8; 16] {
        let bytes = self.env.entropy();
        self.answers.push(Answer::Entropy(bytes));
        bytes
    }
}

/// What is wrong with a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalFault {
    /// It does not begin as a journal of this version does.
    NotAJournal,
    /// It breaks off or makes no sense at this byte.
    Broken {
        /// Where, from 0.
        at: usize,
    },
    /// The core asked for something else than it did in the recorded run.
    Diverged {
        /// In which call, from 1.
        call: u64,
    },
    /// The outputs differ from the recorded run's.
    OtherDigest {
        /// After which call, from 1.
        call: u64,
    },
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalFault::NotAJournal => write!(f, "not a journal of format version {}", MAGIC[7]),
            JournalFault::Broken { at } => write!(f, "broken or cut off at byte {at}"),
            JournalFault::Diverged { call } => {
                write!(f, "call {call} asks for something else than the recorded run did")
            }
            JournalFault::OtherDigest { call } => write!(f, "outputs up to call {call} differ from the recorded run's"),
        }
    }
}

impl core::error::Error for JournalFault {}

/// One replayed call, for whoever watches.
#[derive(Debug)]
pub struct Step<'a> {
    /// Which call, from 1.
    pub call: u64,
    /// When.
    pub now: Time,
    /// What went in.
    pub input: &'a Input,
    /// What came out.
    pub outputs: &'a [Output],
    /// The edge after it.
    pub edge: &'a Edge,
}

/// Runs a journal through a new edge, shows each step to `watch`, and checks every digest in it.
pub fn replay(bytes: &[u8], mut watch: impl FnMut(Step<'_>)) -> Result<Digest, JournalFault> {
    let body = bytes.strip_prefix(&MAGIC).ok_or(JournalFault::NotAJournal)?;
    let at = |rest: &[u8]| bytes.len() - rest.len();
    let mut digest = Digest::default();
    let (config, mut rest): (Config, _) =
        postcard::take_from_bytes(body).map_err(|_| JournalFault::Broken { at: MAGIC.len() })?;
    digest.update(&body[..body.len() - rest.len()]);
    let mut edge = Edge::new(config);
    let (mut now, mut call, mut outputs) = (Time::ZERO, 0, Vec::new());
    while !rest.is_empty() {
        let (entry, next) = postcard::take_from_bytes(rest).map_err(|_| JournalFault::Broken { at: at(rest) })?;
        match entry {
            Entry::Call { after, input, answers } => {
                call += 1;
                now = now + core::time::Duration::from_micros(after);
                let mut env = Answering { answers: answers.iter(), diverged: false };
                edge.handle(now, input.clone(), &mut env);
                if env.diverged || env.answers.next().is_some() {
                    return Err(JournalFault::Diverged { call });
                }
                digest.update(&rest[..rest.len() - next.len()]);
                outputs.clear();
                while let Some(output) = edge.poll() {
                    digest.update(&postcard::to_allocvec(&output).unwrap_or_default());
                    outputs.push(output);
                }
                watch(Step { call, now, input: &input, outputs: &outputs, edge: &edge });
            }
            Entry::Digest(recorded) if recorded == digest.value() => {}
            Entry::Digest(_) => return Err(JournalFault::OtherDigest { call }),
        }
        rest = next;
    }
    Ok(digest)
}

struct Answering<'a> {
    answers: core::slice::Iter<'a, Answer>,
    diverged: bool,
}

impl Env for Answering<'_> {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        match self.answers.next() {
            Some(Answer::Activity(evidence)) => *evidence,
            _ => {
                self.diverged = true;
                Evidence::default()
            }
        }
    }

    fn entropy(&mut self) -> [u8; 16] {
        match self.answers.next() {
            Some(Answer::Entropy(bytes)) => *bytes,
            _ => {
                self.diverged = true;
                [0; 16]
            }
        }
    }
}

/// Media in a journal: its length, not its bytes.
pub(crate) mod length_only {
    use bytes::Bytes;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// No chunk of media comes near this; a broken journal must not make us ask for gigabytes.
    const LIMIT: u32 = 64 << 20;

    pub fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(data.len() as u32)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let length = u32::deserialize(deserializer)?;
        if length > LIMIT {
            return Err(D::Error::custom("a chunk of media longer than 64 MiB"));
        }
        Ok(Bytes::from(alloc::vec![0; length as usize]))
    }
}
