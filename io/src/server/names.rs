//! What that is called of which notes speak, and which of them are worth a line.
//!
//! The core knows titles by numbers, and what a note is about may be over when somebody reads it. A player opens a film many times
//! while it plays it; people want to read that it began and that it is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use holdfast_core::account::Holder;
use holdfast_core::input::{
    AccountId, ChannelId, Client, Failure, FeedId, Note, PlaybackId, RequestId, SourceId, TitleId, UserId, ViewerEnd,
    Viewing,
};
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
    /// The address of whoever was refused.
    pub from: Option<String>,
    /// What was wrong, in words, where the note says that in one.
    pub why: Option<String>,
}

/// What was known when it was told.
#[derive(Debug, Default)]
pub(super) struct Names {
    playbacks: Recent<PlaybackId, Known>,
    /// The addresses of those that were refused.
    refused: Recent<RequestId, String>,
    channels: Recent<ChannelId, String>,
    sources: Recent<SourceId, String>,
    /// What was wrong when an account failed last.
    faults: BTreeMap<AccountId, (Failure, String)>,
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

    /// Remembers what is wrong with what an account is used for: the core says that it failed.
    pub fn failed(&mut self, account: AccountId, failure: Failure, why: &str) {
        self.faults.insert(account, (failure, why.to_owned()));
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

    /// Something is fetched for a playback, which may be over before it is seen.
    pub(super) fn name_playback(&mut self, playback: PlaybackId, viewing: Viewing) {
        if !self.names.playbacks.values.contains_key(&playback) {
            let (name, player) = (self.name_of_item(viewing.item), (viewing.user, viewing.client, viewing.item));
            self.names.playbacks.put(playback, Known { name, player, again: false });
        }
    }

    /// An end after which nothing followed.
    pub(super) fn quiet(&mut self, now: Time) -> Option<Note> {
        let due = self.names.ends.iter().find(|(_, (at, _))| *at <= now).map(|(player, _)| *player)?;
        self.names.ends.remove(&due).map(|(_, note)| note)
    }

    /// Keeps from where a request came that is refused.
    pub(super) fn remember_address(&mut self, request: RequestId) {
        if let Some(address) = self.address_of(request) {
            self.names.refused.put(request, address);
        }
    }

    /// From where a request came that is not answered yet.
    pub(super) fn address_of(&self, request: RequestId) -> Option<String> {
        let connection = self.connections.get(*self.requests.get(&request)?)?;
        Some(connection.peer.ip().to_string())
    }

    /// From where somebody came who was refused, where a note is about that.
    pub(super) fn refused_from(&self, note: &Note) -> Option<String> {
        match note {
            // Behind a proxy that is trusted it is not that one's.
            Note::PlaybackRefused { client, .. } => Some(client.address.to_string()),
            Note::OfferRefused { request, .. } | Note::ViewerRefused { request, .. } => {
                self.names.refused.values.get(request).cloned()
            }
            _ => None,
        }
    }

    /// What there is to know of a note that was given out.
    pub fn about(&self, note: &Note) -> About {
        let of = |title| About { title, ..About::default() };
        let from = self.refused_from(note);
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
            Note::PlaybackRefused { item, reason, .. } => {
                let channel = item.feed().and_then(|feed| self.edge().pull().channel_of(feed));
                let why = channel.and_then(|channel| self.lack_of(channel, *reason));
                About { from, why, ..of(self.name_of_item(*item)) }
            }
            Note::OfferRefused { .. } => About { from, ..About::default() },
            Note::ViewerRefused { feed, .. } => About { from, ..of(self.name_of_feed(*feed)) },
            Note::SourceOpening { channel, .. }
            | Note::SourceLost { channel, .. }
            | Note::SourceFault { channel, .. }
            | Note::ChannelStarted { channel, .. }
            | Note::ChannelSilent { channel, .. }
            | Note::ChannelBack { channel, .. }
            | Note::ChannelSwitched { channel, .. }
            | Note::ChannelEnded { channel, .. }
            | Note::ChannelOff { channel } => of(self.name_of_channel(*channel)),
            Note::ViewerEnded { feed, .. } => of(self.name_of_feed(*feed)),
            Note::PlaylistFault { title, .. } => of(self.name_of_title(*title)),
            Note::AccountFailed { account, failure } => {
                let known = self.names.faults.get(account).filter(|(known, _)| known == failure);
                About { why: known.map(|(_, why)| why.clone()), ..About::default() }
            }
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

    pub(crate) fn name_of_title(&self, title: TitleId) -> Option<String> {
        self.providers.name(title).or_else(|| self.libraries().name(title).map(str::to_owned))
    }
}
