//! What really happened to channels: who was asked when, what each origin sent, whose media went into the feed.

mod midway;

use std::time::Duration;

use holdfast_core::config;
use holdfast_core::input::{ChannelId, FeedId, Input, Loss, Note, Output, SourceId, ViewerEnd, Writer};
use holdfast_core::time::Time;

use super::super::truth::{Chunk, Truth, serial};

/// How long media may come before something that a player can start with.
pub const KEY_FRAME_WAIT: Duration = Duration::from_secs(15);

/// A channel is looked at no more often, whatever was configured.
const LEAST_IDLE: Duration = Duration::from_millis(100);

/// One channel.
#[derive(Clone, Debug)]
pub struct Channel {
    pub settings: config::Channel,
    pub feed: FeedId,
    /// The connections that stand.
    pub open: Vec<SourceId>,
    /// Whose media went into the feed last, since the channel was last off.
    pub writer: Option<SourceId>,
    /// When each origin was last asked, since the channel was last off.
    pub asked: Vec<Option<Time>>,
    /// Since when each origin does what it should.
    pub healthy: Vec<Option<Time>>,
    /// What each origin needs at most, when it is well, from being asked to something that a player can start with.
    pub arrival: Vec<Duration>,
    /// Which of its origins may send pictures without any key frame.
    pub keyless: Vec<bool>,
    /// Since when somebody watches or waits.
    pub wanted: Option<Time>,
    /// Whether somebody may have wanted it who may have waited for a place first.
    pub maybe_wanted: bool,
    /// When somebody last left, and when somebody last asked.
    pub left: Time,
    pub stirred: Time,
    /// When an origin last ended in order.
    pub ended: Option<Time>,
    /// Its viewers were ended, and no origin was asked since.
    pub given_up: bool,
    /// How many sources were lost since it was last off.
    pub losses: u64,
    pub opens: u64,
    pub silences: u64,
    pub switches: u64,
    pub lost: [u64; Loss::ALL.len()],
    /// Its connections are closed and what its feed held is forgotten.
    pub cleared: bool,
}

/// One attempt to pull a channel from one of its origins.
#[derive(Clone, Debug)]
pub struct Source {
    pub channel: usize,
    pub index: usize,
    pub agreed: Option<Time>,
    /// When its first media came, and its last.
    pub since: Option<Time>,
    pub last: Option<Time>,
    pub wrote: bool,
    /// Its silence was told, and it has sent nothing since.
    pub told: bool,
    /// Another one writes in its place.
    pub superseded: bool,
    /// It was lost, not closed.
    pub lost: bool,
    pub gone: bool,
}

impl Channel {
    pub fn new(settings: &config::Channel, feed: FeedId) -> Self {
        let sources = settings.sources as usize;
        Channel {
            settings: config::Channel { idle_timeout: settings.idle_timeout.max(LEAST_IDLE), ..settings.clone() },
            feed,
            open: Vec::new(),
            writer: None,
            asked: vec![None; sources],
            healthy: vec![Some(Time::ZERO); sources],
            arrival: vec![Duration::ZERO; sources],
            keyless: vec![false; sources],
            wanted: (!settings.on_demand).then_some(Time::ZERO),
            maybe_wanted: false,
            left: Time::ZERO,
            stirred: Time::ZERO,
            ended: None,
            given_up: false,
            losses: 0,
            opens: 0,
            silences: 0,
            switches: 0,
            lost: [0; Loss::ALL.len()],
            cleared: false,
        }
    }

    /// How long after media last came, somebody came, or an origin was well again media has to flow, if that origin is well all
    /// the while; `step` is what each step may be late by. Before an origin has its turn each other one may have had its own, which
    /// lasts at most `connect_timeout`, then for as long as pictures come without a key frame, then `no_input_timeout`; then the
    /// origin itself may have to be spared for `no_input_timeout`. An origin that was well from the beginning never waits for a
    /// pause between two rounds.
    pub fn bound(&self, healthy: usize, step: Duration) -> Duration {
        let settings = &self.settings;
        let always = self.is_steadfast(healthy);
        let turns: Duration = (0..self.asked.len())
            .filter(|index| *index != healthy || !always)
            .map(|index| self.turn(index, step))
            .sum();
        let pause = if always {
            Duration::ZERO
        } else {
            // It may have had its last turn just before it was well again: then a whole round of the others comes first.
            settings.retry_backoff_max.max(settings.no_input_timeout) * 6 / 5 + turns
        };
        settings.no_input_timeout * 2 + turns + pause + self.arrival[healthy] + step * 4
    }

    /// The same after media of another origin, at place `fallen`, and after the origin was last asked: it is at most
    /// `no_input_timeout` until that one counts as silent and this one may be asked again, and that one has had its turn.
    pub fn failover_bound(&self, healthy: usize, fallen: usize, step: Duration) -> Duration {
        let others = (0..self.asked.len()).filter(|index| *index != healthy && *index != fallen);
        let turns: Duration = others.map(|index| self.turn(index, step)).sum();
        self.settings.no_input_timeout + turns + self.arrival[healthy] + step * 4
    }

    /// Whether an origin was well from the beginning.
    pub fn is_steadfast(&self, index: usize) -> bool {
        self.healthy[index] == Some(Time::ZERO)
    }

    fn turn(&self, index: usize, step: Duration) -> Duration {
        // One that is well sends pictures for up to a whole group before the first that a player can start with.
        let key = if self.keyless[index] { KEY_FRAME_WAIT } else { self.arrival[index] };
        self.settings.connect_timeout + self.settings.no_input_timeout + key + step * 3
    }
}

impl Truth {
    pub fn channel_of(&self, feed: FeedId) -> Option<usize> {
        self.channels.iter().position(|channel| channel.feed == feed)
    }

    /// Requests that are held for first media of a channel.
    pub fn waiting(&self, feed: FeedId) -> usize {
        self.joins.iter().filter(|join| join.feed == feed && !self.titles.is_request(join.request)).count()
    }

    /// Requests that may be, or may wait for a place of their user before that.
    pub fn may_wait(&self, feed: FeedId) -> usize {
        self.joins.iter().filter(|join| join.feed == feed && self.titles.is_request(join.request)).count()
    }

    /// Takes in an output about channels and sources.
    pub fn pull_output(&mut self, now: Time, output: &Output) {
        match output {
            Output::Open { source, channel, index, .. } => {
                let (place, index) = (channel.0 as usize, *index as usize);
                let channel = &mut self.channels[place];
                channel.opens += 1;
                channel.given_up = false;
                channel.asked[index] = Some(now);
                channel.open.push(*source);
                let row = Source {
                    channel: place,
                    index,
                    agreed: None,
                    since: None,
                    last: None,
                    wrote: false,
                    told: false,
                    superseded: false,
                    lost: false,
                    gone: false,
                };
                self.sources.insert(*source, row);
            }
            Output::Close { source } => self.close(*source),
            Output::Note(note) => self.pull_note(now, note),
            _ => {}
        }
    }

    fn pull_note(&mut self, now: Time, note: &Note) {
        match *note {
            Note::SourceLost { channel, source, loss, .. } => {
                let wrote = self.sources.get(&source).is_some_and(|row| row.wrote);
                let channel = &mut self.channels[channel.0 as usize];
                channel.lost[loss as usize] += 1;
                channel.losses += 1;
                if loss == Loss::Ended && wrote {
                    channel.ended = Some(now);
                }
                if let Some(row) = self.sources.get_mut(&source) {
                    row.lost = true;
                }
                self.close(source);
            }
            Note::ChannelSilent { channel: ChannelId(place), index, .. } => {
                let channel = &mut self.channels[place as usize];
                channel.silences += 1;
                for source in &channel.open {
                    if let Some(row) = self.sources.get_mut(source).filter(|row| row.index == index as usize) {
                        row.told |= row.agreed.is_some();
                    }
                }
            }
            Note::ChannelSwitched { channel, .. } => self.channels[channel.0 as usize].switches += 1,
            Note::ChannelOff { channel } => {
                let channel = &mut self.channels[channel.0 as usize];
                channel.asked.fill(None);
                (channel.writer, channel.losses, channel.ended, channel.cleared) = (None, 0, None, true);
            }
            Note::ChannelEnded { channel, reason } => {
                let channel = &mut self.channels[channel.0 as usize];
                (channel.ended, channel.given_up) = (None, true);
                // Whoever wants it in the same moment wants it anew.
                channel.wanted = channel.wanted.map(|_| now);
                // What is pulled without viewers goes on to be asked for.
                channel.cleared = channel.settings.on_demand || reason == ViewerEnd::NoSource;
            }
            _ => {}
        }
    }

    fn close(&mut self, source: SourceId) {
        let Some(row) = self.sources.get_mut(&source) else { return };
        row.gone = true;
        self.channels[row.channel].open.retain(|each| *each != source);
    }

    /// What an input meant for channels, now that the core has acted on it. `taken` is whether its media went into the feed.
    pub fn pull_after(&mut self, now: Time, input: &Input, taken: bool) {
        match input {
            Input::Opened { source } => {
                if let Some(row) = self.sources.get_mut(source).filter(|row| !row.gone) {
                    row.agreed.get_or_insert(now);
                }
            }
            Input::Arrived { source } => self.arrived(now, *source),
            Input::Media { from: Writer::Source(source), data, random_access, .. } => {
                self.arrived(now, *source);
                if taken {
                    self.write(now, *source, data, random_access.is_some());
                }
            }
            Input::Join { feed, .. } => {
                if let Some(place) = self.channel_of(*feed) {
                    self.channels[place].stirred = now;
                }
            }
            Input::Drain => self.channels.iter_mut().for_each(|channel| channel.cleared = true),
            _ => {}
        }
        for place in 0..self.channels.len() {
            self.notice(now, place);
        }
    }

    fn arrived(&mut self, now: Time, source: SourceId) {
        let Some(row) = self.sources.get_mut(&source).filter(|row| !row.gone) else { return };
        row.agreed.get_or_insert(now);
        row.since.get_or_insert(now);
        (row.last, row.told) = (Some(now), false);
    }

    fn write(&mut self, now: Time, source: SourceId, data: &[u8], random_access: bool) {
        let Some(row) = self.sources.get_mut(&source) else { return };
        row.wrote = true;
        let channel = &mut self.channels[row.channel];
        channel.ended = None;
        if let Some(other) = channel.writer.replace(source).filter(|other| *other != source)
            && let Some(other) = self.sources.get_mut(&other)
        {
            other.superseded = true;
        }
        let (length, from) = (data.len() as u64, Writer::Source(source));
        if let Some(feed) = self.feeds.get_mut(&channel.feed) {
            let chunk = Chunk { at: feed.head, length, serial: serial(data), random_access, came: now, from };
            feed.push(chunk, self.clock, self.live.buffer as u64);
        }
        self.keep();
    }

    /// Whether somebody wants a channel, and since when.
    fn notice(&mut self, now: Time, place: usize) {
        let feed = self.channels[place].feed;
        let watched = self.feeds.get(&feed).is_some_and(|feed| !feed.viewers.is_empty());
        let somebody = watched || self.waiting(feed) > 0 || !self.channels[place].settings.on_demand;
        let may_be = !self.titles.users.is_empty() && self.may_wait(feed) > 0;
        let channel = &mut self.channels[place];
        if may_be || channel.maybe_wanted {
            channel.stirred = now;
        }
        channel.maybe_wanted = may_be;
        if std::mem::take(&mut channel.cleared) {
            channel.writer = None;
            if let Some(feed) = self.feeds.get_mut(&feed) {
                feed.clear();
                feed.last_push = None;
            }
        }
        match (channel.wanted, somebody) {
            (None, true) => channel.wanted = Some(now),
            (Some(_), false) => (channel.wanted, channel.left, channel.stirred) = (None, now, now),
            _ => {}
        }
    }
}
