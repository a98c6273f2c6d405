//! What that is called of which notes speak, and which of them are worth a line.
//!
//! The core knows titles by numbers, and what a note is about may be over when somebody reads it. A player opens a film many times
//! while it plays it; people want to read that it began and that it is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use holdfast_core::account::Holder;
use holdfast_core::input::{ChannelId, Client, FeedId, Note, PlaybackId, SourceId, TitleId, UserId, ViewerEnd};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;

use super::Server;

/// So many of each kind are remembered.
const MEMORY: usize = 4096;
/// A player that opens a title again within this time goes on with it.
const QUIET: Duration = Duration::from_secs(10);

/// What is to be known of a note for telling it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What is called so, of whoever or whatever the note is about: a title of a catalogue or a library.
    pub title: Option<String>,
    /// The same of the one for whose sake it happened.
    pub by: Option<String>,
    /// Whether it is a detail of something that was told: a player opened a title again.
    pub again: bool,
}

/// What was known when it was told.
#[derive(Debug, Default)]
pub(super) struct Names {
    playbacks: Recent<PlaybackId, Known>,
    channels: Recent<ChannelId, String>,
    sources: Recent<SourceId, String>,
    /// Ends that are told when nothing follows.
    ends: BTreeMap<Player, (Time, Note)>,
}

/// One player and what it plays.
type Player = (UserId, Client, Item);

#[derive(Clone, Debug)]
struct Known {
    name: Option<String>,
    player: Player,
    again: bool,
}

#[derive(Debug)]
struct Recent<K, V> {
    values: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Ord + Copy, V> Recent<K, V> {
    fn put(&mut self, key: K, value: V) {
        if self.values.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MEMORY
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }
}

impl Names {
    /// When [`Server::quiet`] has something.
    pub fn deadline(&self) -> Option<Time> {
        self.ends.values().map(|(at, _)| *at).min()
    }
}

impl Server {
    /// Remembers what a note speaks of; gives it back unless it is told later, or never.
    pub(super) fn name(&mut self, now: Time, note: Note) -> Option<Note> {
        match note {
            Note::PlaybackStarted { user, playback, item, .. } => {
                let client = self.edge().playback().get(playback)?.viewing.client;
                let player = (user, client, item);
                let again = self.names.ends.remove(&player).is_some();
                let name = self.name_of_item(item);
                self.names.playbacks.put(playback, Known { name, player, again });
            }
            Note::PlaybackEnded { playback, reason, .. } => {
                let quiet = matches!(reason, ViewerEnd::Left | ViewerEnd::Done | ViewerEnd::Superseded);
                if let Some(known) = self.names.playbacks.values.get(&playback)
                    && quiet
                    && !self.draining
                    && known.player.2.title().is_some()
                    && self.names.ends.len() < MEMORY
                {
                    self.names.ends.insert(known.player, (now + QUIET, note));
                    return None;
                }
            }
            Note::SourceOpening { channel, source, .. } => {
                if let Some(name) = self.name_of_channel(channel) {
                    self.names.sources.put(source, name.clone());
                    self.names.channels.put(channel, name);
                }
            }
            _ => {}
        }
        Some(note)
    }

    /// An end after which nothing followed.
    pub(super) fn quiet(&mut self, now: Time) -> Option<Note> {
        let due = self.names.ends.iter().find(|(_, (at, _))| *at <= now).map(|(player, _)| *player)?;
        self.names.ends.remove(&due).map(|(_, note)| note)
    }

    /// What there is to know of a note that was given out.
    pub fn about(&self, note: &Note) -> About {
        let of = |title| About { title, ..About::default() };
        match note {
            Note::PlaybackStarted { playback, .. }
            | Note::PlaybackEnded { playback, .. }
            | Note::PlaybackPromoted { playback, .. }
            | Note::PlaybackGraced { playback, .. } => {
                let known = self.names.playbacks.values.get(playback);
                let again = known.is_some_and(|known| known.again) && matches!(note, Note::PlaybackStarted { .. });
                About { again, ..of(self.name_of_playback(*playback)) }
            }
            Note::PlaybackEvicted { playback, by, .. } => {
                About { by: self.name_of_playback(*by), ..of(self.name_of_playback(*playback)) }
            }
            Note::PlaybackRefused { item, .. } => of(self.name_of_item(*item)),
            Note::SourceOpening { channel, .. }
            | Note::SourceLost { channel, .. }
            | Note::SourceFault { channel, .. }
            | Note::ChannelStarted { channel, .. }
            | Note::ChannelSilent { channel, .. }
            | Note::ChannelBack { channel, .. }
            | Note::ChannelSwitched { channel, .. }
            | Note::ChannelEnded { channel, .. }
            | Note::ChannelOff { channel } => of(self.name_of_channel(*channel)),
            Note::ViewerEnded { feed, .. } | Note::ViewerRefused { feed, .. } => of(self.name_of_feed(*feed)),
            Note::AccountGraced { holder, .. } => of(self.name_of_holder(*holder)),
            Note::AccountPreempted { holder, by, .. } => {
                About { by: self.name_of_holder(*by), ..of(self.name_of_holder(*holder)) }
            }
            _ => About::default(),
        }
    }

    /// What people call whatever somebody holds an account for, where that is in a catalogue.
    pub(crate) fn name_of_holder(&self, holder: Holder) -> Option<String> {
        match holder {
            Holder::Playback(playback) => self.name_of_playback(playback),
            Holder::Source(source) => {
                let pull = self.edge().pull();
                let is = |own: Option<(SourceId, u32)>| own.is_some_and(|(own, _)| own == source);
                let mut tuned = pull.tuned_channels();
                let found =
                    tuned.find(|(channel, _)| pull.state(*channel).is_some_and(|own| is(own.kept) || is(own.beside)));
                let known = || self.names.sources.values.get(&source).cloned();
                found.and_then(|(_, title)| self.name_of_title(title)).or_else(known)
            }
            Holder::Probe(_) => None,
        }
    }

    fn name_of_playback(&self, playback: PlaybackId) -> Option<String> {
        let lives = self.edge().playback().get(playback).and_then(|own| self.name_of_item(own.viewing.item));
        lives.or_else(|| self.names.playbacks.values.get(&playback)?.name.clone())
    }

    fn name_of_item(&self, item: Item) -> Option<String> {
        item.title().map_or_else(|| self.name_of_feed(item.feed()?), |title| self.name_of_title(title))
    }

    fn name_of_feed(&self, feed: FeedId) -> Option<String> {
        self.name_of_channel(self.edge().pull().channel_of(feed)?)
    }

    fn name_of_channel(&self, channel: ChannelId) -> Option<String> {
        let title = self.edge().pull().title_of(channel).and_then(|(title, _)| self.name_of_title(title));
        title.or_else(|| self.names.channels.values.get(&channel).cloned())
    }

    fn name_of_title(&self, title: TitleId) -> Option<String> {
        self.providers.name(title).or_else(|| self.libraries().name(title).map(str::to_owned))
    }
}
