//! From which origin does a channel come, and what when it does not?
//!
//! A channel is pulled while somebody wants it, from one origin at a time into one feed. At most two connections are open: the
//! one whose media goes into the feed, or last did, and one beside it that may take over. Rules: spec pull §2 (silence), §3
//! (states), §7 (invariants).

mod access;
#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod bounds_tests;
mod channel;
#[cfg(test)]
mod house;
#[cfg(test)]
mod late_tests;
mod memory;
mod midway;
mod round;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod stage;
mod state;
#[cfg(test)]
mod tests;
mod tune;
#[cfg(test)]
mod tuned_tests;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

pub use midway::{Connected, Course};
pub use state::{ChannelCounts, ChannelState, Phase};

use channel::{Channel, Turn};
use tune::Tuned;

use serde::{Deserialize, Serialize};

use crate::account::Accounts;
use crate::config::Config;
use crate::feed::Feeds;
use crate::id::Table;
use crate::input::{ChannelId, FeedId, Loss, Output, RefuseReason, RequestId, SourceId, SourceKind};
use crate::publish::Context;
use crate::time::{Time, Timers};

/// The pull room.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pull {
    /// Those of the configuration.
    channels: Vec<Channel>,
    /// The feed of each of these, ascending.
    feeds: Vec<FeedId>,
    /// Those of titles of providers.
    tuned: Tuned,
    /// The channel of each source that is open.
    sources: Table<SourceKind, ChannelId>,
    /// Whoever is held for first media, and until when.
    claims: BTreeMap<RequestId, (ChannelId, Time)>,
    timers: Timers<ChannelId>,
    draining: bool,
    stale: u64,
}

impl Pull {
    /// Channels of which none is pulled yet; `open_feed` makes the feed of each.
    pub(crate) fn new(config: &Config, mut open_feed: impl FnMut() -> FeedId) -> Self {
        let mut timers = Timers::default();
        let channels: Vec<Channel> = config
            .channels
            .iter()
            .enumerate()
            .map(|(index, settings)| {
                let mut channel = Channel::new(settings.clone(), open_feed());
                if !settings.on_demand {
                    timers.set(ChannelId(index as u32), &mut channel.armed, Time::ZERO);
                }
                channel
            })
            .collect();
        let feeds: Vec<FeedId> = channels.iter().map(|channel| channel.feed).collect();
        debug_assert!(feeds.is_sorted(), "a channel is found by its feed");
        let (sources, claims, tuned) = (Table::default(), BTreeMap::new(), Tuned::new(config));
        Pull { channels, feeds, tuned, sources, claims, timers, draining: false, stale: 0 }
    }

    /// Takes its settings from a new one; `None` where it is of another configuration.
    pub(crate) fn configure(&mut self, new: Pull) -> Option<()> {
        if self.feeds != new.feeds || self.channels.len() != new.channels.len() {
            return None;
        }
        for (own, new) in self.channels.iter_mut().zip(new.channels) {
            own.configure(new)?;
        }
        self.tuned.configure(new.tuned)
    }

    /// The channel that is pulled into this feed.
    pub fn channel_of(&self, feed: FeedId) -> Option<ChannelId> {
        let configured = self.feeds.binary_search(&feed).ok().map(|place| ChannelId(place as u32));
        configured.or_else(|| self.tuned.channel_of(feed))
    }

    /// The feed of a channel.
    pub fn feed_of(&self, channel: ChannelId) -> Option<FeedId> {
        Some(self.channel(channel)?.feed)
    }

    /// A channel as it stands.
    pub fn state(&self, channel: ChannelId) -> Option<ChannelState<'_>> {
        self.channel(channel).map(Channel::state)
    }

    fn channel(&self, id: ChannelId) -> Option<&Channel> {
        self.channels.get(id.0 as usize).or_else(|| self.tuned.get(id))
    }

    /// All channels of the configuration as they stand, in its order.
    pub fn states(&self) -> impl Iterator<Item = ChannelState<'_>> {
        self.channels.iter().map(Channel::state)
    }

    /// How many sources are open, over all channels.
    pub fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// How many requests are held for first media.
    pub fn held(&self) -> usize {
        self.claims.len()
    }

    /// How many deadlines are armed.
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// How many inputs came too late, or named what never was.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timers.deadline()
    }

    /// Whether media that comes now from `source`, which does not write into its channel's feed, makes it write.
    pub(crate) fn takes(&self, now: Time, source: SourceId, random_access: bool) -> bool {
        let channel = self.sources.get(source).and_then(|channel| self.channel(*channel));
        channel.is_some_and(|channel| channel.takes(now, source, random_access))
    }

    /// Somebody wants to watch a channel: joins its feed, or is held for first media, or refused.
    pub(crate) fn join(&mut self, cx: &mut Context<'_>, request: RequestId, channel: ChannelId) {
        if self.claims.contains_key(&request) {
            self.stale += 1;
        } else if self.draining {
            cx.out.push_back(Output::Refuse { request, reason: RefuseReason::Draining });
        } else {
            self.turn(cx, channel, |turn| turn.join(request));
        }
    }

    /// Why whoever wanted to watch a channel now would be refused at once, if that is so.
    pub(crate) fn refuses(&self, now: Time, feeds: &Feeds, accounts: &Accounts, id: ChannelId) -> Option<RefuseReason> {
        let channel = self.channel(id)?;
        match channel.phase {
            _ if self.draining => Some(RefuseReason::Draining),
            Phase::Live => feeds.refuses(channel.feed),
            _ => channel.remembers(now, feeds).or_else(|| {
                let origins = channel.origins.as_ref().filter(|_| channel.begins(now, feeds))?;
                Some(accounts.lack(&origins.providers)).filter(|lack| *lack == RefuseReason::AccountsOver)
            }),
        }
    }

    /// The client of a held request went away. Whether there is one.
    pub(crate) fn hangup(&mut self, cx: &mut Context<'_>, request: RequestId) -> bool {
        let Some((channel, _)) = self.claims.get(&request).copied() else { return false };
        self.turn(cx, channel, |turn| turn.hangup(request));
        true
    }

    /// The source's handshake is over.
    pub(crate) fn opened(&mut self, cx: &mut Context<'_>, source: SourceId) {
        self.of_source(cx, source, |turn| turn.opened(source));
    }

    /// Media came from a source that does not write into its channel's feed; from now on it may.
    pub(crate) fn arrived(&mut self, cx: &mut Context<'_>, source: SourceId, random_access: bool) {
        self.of_source(cx, source, |turn| turn.arrived(source, random_access));
    }

    /// The source is of no more use.
    pub(crate) fn lost(&mut self, cx: &mut Context<'_>, source: SourceId, loss: Loss) {
        self.of_source(cx, source, |turn| turn.lost(source, loss));
    }

    /// Nobody new comes in; every source is closed. Viewers end with their feeds.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>) {
        self.draining = true;
        let configured = (0..self.channels.len() as u32).map(ChannelId);
        let all: Vec<ChannelId> = configured.chain(self.tuned.ids()).collect();
        for channel in all {
            self.turn(cx, channel, |turn| turn.drain());
        }
    }

    /// Runs every deadline that is due.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.timers.expired(cx.now) {
            if let Some(channel) = channel_mut(&mut self.channels, &mut self.tuned, id) {
                channel.armed = Time::NEVER;
            }
            self.turn(cx, id, |_| ());
        }
    }

    fn of_source(&mut self, cx: &mut Context<'_>, source: SourceId, act: impl FnOnce(&mut Turn<'_, '_>)) {
        match self.sources.get(source).copied() {
            Some(channel) => self.turn(cx, channel, act),
            None => self.stale += 1,
        }
    }

    /// Something happens to a channel; then whatever follows from that and from the time.
    fn turn(&mut self, cx: &mut Context<'_>, id: ChannelId, act: impl FnOnce(&mut Turn<'_, '_>)) {
        let graces = self.tuned.graces;
        let Some(channel) = channel_mut(&mut self.channels, &mut self.tuned, id) else { return };
        let mut turn = Turn { cx, graces, id, channel, sources: &mut self.sources, claims: &mut self.claims };
        act(&mut turn);
        if !self.draining {
            turn.settle();
        }
        turn.tell_strength();
        let gone = turn.is_gone();
        let at = if gone { Time::NEVER } else { turn.deadline() };
        self.timers.set(id, &mut channel.armed, at);
        if gone {
            self.forget(cx, id);
        }
    }
}

fn channel_mut<'c>(channels: &'c mut [Channel], tuned: &'c mut Tuned, id: ChannelId) -> Option<&'c mut Channel> {
    match channels.get_mut(id.0 as usize) {
        Some(channel) => Some(channel),
        None => tuned.get_mut(id),
    }
}
