//! One channel of an edge, driven by hand in simulated time, and origins that do as they are told.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::Phase;
use crate::config::{Channel, Config, Live};
use crate::input::{
    ChannelId, Env, Evidence, FeedId, Input, Loss, Note, Output, RefuseReason, RequestId, SessionId, SourceId,
    ViewerEnd, ViewerId, Writer,
};
use crate::time::Time;
use crate::twins::Twins;

/// What an origin does with whoever asks it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Origin {
    /// Says this after so many ms.
    Fails(Loss, u64),
    /// Takes the connection and says nothing.
    Mute,
    /// Agrees after 10 ms and sends nothing.
    Silent,
    /// Agrees after 10 ms and sends, a key frame each second, the first after 200 ms.
    Good,
    /// As `Good`, but without any key frame.
    Keyless,
    /// As `Good` for so many ms, then ends in this way.
    Plays(u64, Loss),
    /// As `Silent`, and ends in this way so many ms after it was asked.
    Stalls(u64, Loss),
}

pub(super) struct Connection {
    index: usize,
    opened: u64,
    agreed: bool,
    /// It does what its origin did when it was opened, but for silence.
    pub origin: Origin,
}

pub(super) struct Outside(pub u8);

impl Env for Outside {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.0 = self.0.wrapping_mul(5).wrapping_add(113);
        [self.0; 16]
    }
}

/// What became of a request to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Joined(ViewerId, u64),
    Refused(RefuseReason, u64),
}

pub(super) struct Stage {
    pub edge: Twins,
    pub outside: Outside,
    pub now: u64,
    pub feed: FeedId,
    pub origins: Vec<Origin>,
    /// Origins whose connections stand and send nothing at present.
    pub muted: Vec<bool>,
    pub connections: BTreeMap<SourceId, Connection>,
    pub opens: Vec<(usize, u64)>,
    pub fates: BTreeMap<u64, Fate>,
    pub ended: Vec<(ViewerId, ViewerEnd, u64)>,
    pub notes: Vec<(Note, u64)>,
    pub requests: u64,
    /// Key frames that were asked for.
    pub wishes: Vec<(SourceId, u64)>,
    /// When media went into the feed, and from which origin.
    pub media: Vec<(usize, u64)>,
}

pub(super) const STEP: u64 = 20;

pub(super) fn ms(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

impl Stage {
    pub fn new(settings: Channel, origins: &[Origin]) -> Self {
        let channel = Channel { sources: origins.len() as u32, ..settings };
        // Viewers here are there and read nothing.
        let live = Live { progress_timeout: Duration::from_secs(24 * 3600), ..Live::default() };
        let edge = Twins::new(Config { channels: vec![channel], live, ..Config::default() });
        let feed = edge.pull().feed_of(ChannelId(0)).unwrap();
        Stage {
            edge,
            outside: Outside(1),
            now: 0,
            feed,
            origins: origins.to_vec(),
            muted: vec![false; origins.len()],
            connections: BTreeMap::new(),
            opens: Vec::new(),
            fates: BTreeMap::new(),
            ended: Vec::new(),
            notes: Vec::new(),
            requests: 0,
            wishes: Vec::new(),
            media: Vec::new(),
        }
    }

    pub fn of(origins: &[Origin]) -> Self {
        Stage::new(Channel::default(), origins)
    }

    /// What is drawn by chance from here on.
    pub fn chance(&mut self, seed: u8) {
        self.outside = Outside(seed);
    }

    pub fn input(&mut self, input: Input) {
        self.edge.handle(ms(self.now), input, &mut self.outside);
        while let Some(output) = self.edge.poll() {
            match output {
                Output::Open { source, index, .. } => {
                    let index = index as usize;
                    self.opens.push((index, self.now));
                    let origin = self.origins[index];
                    let connection = Connection { index, opened: self.now, agreed: false, origin };
                    self.connections.insert(source, connection);
                }
                Output::Close { source } => assert!(self.connections.remove(&source).is_some(), "closed twice"),
                Output::Joined { request, viewer } => {
                    self.fates.insert(request.0, Fate::Joined(viewer, self.now));
                }
                Output::Refuse { request, reason } => {
                    assert!(self.fates.insert(request.0, Fate::Refused(reason, self.now)).is_none(), "answered twice");
                }
                Output::ViewerEnd { viewer, reason } => self.ended.push((viewer, reason, self.now)),
                Output::SourceKeyFrame { source } => self.wishes.push((source, self.now)),
                Output::Note(note) => self.notes.push((note, self.now)),
                _ => {}
            }
        }
        assert!(self.connections.len() <= 2, "two connections a channel at most");
        assert_eq!(self.edge.pull().source_count(), self.connections.len());
    }

    pub fn join(&mut self) -> u64 {
        self.requests += 1;
        self.input(Input::Join { request: RequestId(self.requests), feed: self.feed });
        self.requests
    }

    pub fn fate(&self, request: u64) -> Option<Fate> {
        self.fates.get(&request).copied()
    }

    /// A viewer that is let in.
    pub fn viewer(&mut self) -> ViewerId {
        let request = self.join();
        let until = self.now + 15_000;
        while self.fate(request).is_none() && self.now < until {
            self.run(STEP);
        }
        match self.fate(request) {
            Some(Fate::Joined(viewer, _)) => viewer,
            other => panic!("{other:?}"),
        }
    }

    pub fn leave(&mut self, viewer: ViewerId) {
        self.input(Input::Leave { viewer });
    }

    pub fn lose(&mut self, index: usize, loss: Loss) {
        let sources: Vec<SourceId> = self.of_origin(index);
        for source in sources {
            self.connections.remove(&source);
            self.input(Input::Lost { source, loss });
        }
    }

    pub fn of_origin(&self, index: usize) -> Vec<SourceId> {
        self.connections.iter().filter(|(_, each)| each.index == index).map(|(source, _)| *source).collect()
    }

    /// Time passes.
    pub fn run(&mut self, span: u64) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            while self.edge.deadline().is_some_and(|at| at <= ms(self.now)) {
                self.input(Input::Tick);
            }
            let sources: Vec<SourceId> = self.connections.keys().copied().collect();
            for source in sources {
                self.act(source);
            }
        }
    }

    fn act(&mut self, source: SourceId) {
        let Some(connection) = self.connections.get_mut(&source) else { return };
        let (index, age) = (connection.index, self.now - connection.opened);
        let gone = match connection.origin {
            Origin::Fails(loss, after) | Origin::Plays(after, loss) | Origin::Stalls(after, loss) => {
                (age >= after).then_some(loss)
            }
            _ => None,
        };
        if let Some(loss) = gone {
            self.connections.remove(&source);
            return self.input(Input::Lost { source, loss });
        }
        let origin = connection.origin;
        if matches!(origin, Origin::Fails(..) | Origin::Mute) {
            return;
        }
        if !core::mem::replace(&mut connection.agreed, true) {
            return self.input(Input::Opened { source });
        }
        if self.muted[index] || matches!(origin, Origin::Silent | Origin::Stalls(..)) {
            return;
        }
        let key = origin != Origin::Keyless && age % 1000 == 200;
        let from = Writer::Source(source);
        if self.edge.takes(ms(self.now), self.feed, from, key) {
            let data = Bytes::from_static(&[0x47; 188]);
            self.media.push((index, self.now));
            self.input(Input::Media { feed: self.feed, from, data, random_access: key.then_some(0) });
            assert_eq!(self.edge.feeds().ignored(), 0, "what is taken goes in");
        } else {
            self.input(Input::Arrived { source });
        }
    }

    pub fn phase(&self) -> Phase {
        self.edge.pull().state(ChannelId(0)).unwrap().phase
    }

    pub fn opens_of(&self, index: usize) -> Vec<u64> {
        self.opens.iter().filter(|(own, _)| *own == index).map(|(_, at)| *at).collect()
    }

    pub fn noted(&self, wanted: impl Fn(&Note) -> bool) -> usize {
        self.notes.iter().filter(|(note, _)| wanted(note)).count()
    }

    /// The longest time without media in the feed from `from` to `to`.
    pub fn gap(&self, from: u64, to: u64) -> u64 {
        let mut last = from;
        let times = self.media.iter().map(|(_, at)| *at).filter(|at| (from..=to).contains(at)).chain([to]);
        times.fold(0, |gap, at| gap.max(at - core::mem::replace(&mut last, at)))
    }

    /// No origin was asked twice within `no_input_timeout`.
    pub fn is_patient(&self) {
        for index in 0..self.origins.len() {
            let opens = self.opens_of(index);
            assert!(opens.windows(2).all(|pair| pair[1] - pair[0] >= 3_000), "origin {index} at {opens:?}");
        }
    }
}
