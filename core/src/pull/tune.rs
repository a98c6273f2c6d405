//! Channels of titles of providers: there while somebody wants them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::access::{Graces, Origins};
use super::channel::Channel;
use super::{Phase, Pull};
use crate::account::{Holder, Told};
use crate::config::{self, Config};
use crate::input::{ChannelId, FeedId, Output, ProviderId, SourceId, TitleId};
use crate::playback::Audience;
use crate::publish::Context;
use crate::time::Time;

/// All channels of titles.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tuned {
    #[serde(skip)]
    pub graces: Graces,
    #[serde(skip)]
    linger: core::time::Duration,
    /// How each provider's are pulled.
    #[serde(skip)]
    settings: Vec<config::Channel>,
    /// An id is never used again: what comes late finds nothing.
    channels: BTreeMap<ChannelId, Channel>,
    titles: BTreeMap<TitleId, ChannelId>,
    feeds: BTreeMap<FeedId, ChannelId>,
    /// The next id; `None` when they are used up.
    next: Option<u32>,
}

impl Tuned {
    pub fn new(config: &Config) -> Self {
        Tuned {
            graces: Graces::new(&config.playback),
            linger: config.playback.linger,
            settings: config.providers.iter().map(|provider| provider.live.clone()).collect(),
            channels: BTreeMap::new(),
            titles: BTreeMap::new(),
            feeds: BTreeMap::new(),
            next: Some(config.channels.len() as u32),
        }
    }

    /// Takes its settings from a new one; `None` where a channel is of a provider that there is not.
    pub fn configure(&mut self, new: Tuned) -> Option<()> {
        (self.graces, self.linger, self.settings) = (new.graces, new.linger, new.settings);
        let mut channels = core::mem::take(&mut self.channels);
        for channel in channels.values_mut() {
            let settings = self.settings_of(&channel.origins.as_ref()?.providers)?;
            channel.configure(Channel::new(settings, channel.feed))?;
        }
        self.channels = channels;
        Some(())
    }

    /// How a title is pulled that these providers have: as the first says.
    fn settings_of(&self, providers: &[ProviderId]) -> Option<config::Channel> {
        let preferred = self.settings.get(providers.first()?.0 as usize)?;
        let (sources, idle_timeout) = (providers.len() as u32, self.linger);
        Some(config::Channel { sources, on_demand: true, idle_timeout, ..preferred.clone() })
    }

    pub fn get(&self, id: ChannelId) -> Option<&Channel> {
        self.channels.get(&id)
    }

    pub fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(&id)
    }

    pub fn channel_of(&self, feed: FeedId) -> Option<ChannelId> {
        self.feeds.get(&feed).copied()
    }

    pub fn ids(&self) -> impl Iterator<Item = ChannelId> {
        self.channels.keys().copied()
    }
}

impl Pull {
    /// A title is about to be watched: there is a channel of it from here on. Ignored if no provider is named that there is.
    pub(crate) fn tune(&mut self, cx: &mut Context<'_>, title: TitleId, providers: &[ProviderId]) {
        let providers = &providers[..providers.len().min(config::Channel::SOURCES as usize)];
        let Some(settings) = self.tuned.settings_of(providers).filter(|_| !self.draining) else { return };
        let known = self.tuned.titles.get(&title).copied();
        let mut channel = match known.and_then(|id| self.tuned.channels.get_mut(&id)) {
            Some(channel) if channel.phase != Phase::Off || channel.is_of(providers) => {
                channel.asked = cx.now;
                let id = known.unwrap_or(ChannelId(0));
                return self.turn(cx, id, |_| ());
            }
            // Nothing of it is open: it begins anew with the list as it is now.
            Some(channel) => Channel::new(settings, channel.feed),
            None => Channel::new(settings, cx.feeds.open()),
        };
        channel.asked = cx.now;
        channel.origins = Some(Box::new(Origins::new(title, providers)));
        let id = match known {
            Some(id) => id,
            None => {
                let Some(next) = self.tuned.next else { return cx.feeds.close(cx.now, channel.feed, cx.out) };
                self.tuned.next = next.checked_add(1);
                ChannelId(next)
            }
        };
        self.tuned.titles.insert(title, id);
        self.tuned.feeds.insert(channel.feed, id);
        if let Some(mut before) = self.tuned.channels.insert(id, channel) {
            self.timers.set(id, &mut before.armed, Time::NEVER);
        }
        self.turn(cx, id, |_| ());
    }

    /// The channel of a title that somebody wants, or wanted a moment ago.
    pub fn tuned(&self, title: TitleId) -> Option<ChannelId> {
        self.tuned.titles.get(&title).copied()
    }

    /// All channels of titles.
    pub fn tuned_channels(&self) -> impl Iterator<Item = (ChannelId, TitleId)> {
        self.tuned.titles.iter().map(|(title, channel)| (*channel, *title))
    }

    /// The title of a channel, and the providers that are its origins, where it has one.
    pub fn title_of(&self, channel: ChannelId) -> Option<(TitleId, &[ProviderId])> {
        let origins = self.tuned.get(channel)?.origins.as_ref()?;
        Some((origins.title, &origins.providers))
    }

    /// Those that want to watch a feed became others.
    pub(crate) fn set_audience(&mut self, cx: &mut Context<'_>, feed: FeedId, audience: Audience) {
        let Some(id) = self.tuned.channel_of(feed) else { return };
        if let Some(origins) = self.tuned.get_mut(id).and_then(|channel| channel.origins.as_mut()) {
            (origins.said, origins.gracious) = (audience.strongest, audience.gracious);
        }
        self.turn(cx, id, |_| ());
    }

    /// Somebody left a feed.
    pub(crate) fn left(&mut self, cx: &mut Context<'_>, feed: FeedId) {
        if let Some(id) = self.tuned.channel_of(feed) {
            self.turn(cx, id, |_| ());
        }
    }

    /// The account room says something of a source.
    pub(crate) fn told(&mut self, cx: &mut Context<'_>, source: SourceId, told: Told) {
        if let Some(channel) = self.sources.get(source).copied() {
            self.turn(cx, channel, |turn| turn.told(source, told));
        } else if let Told::Granted { grant, .. } = told {
            // It came too late: no connection will be made.
            cx.accounts.unopened(cx.now, grant.allocation);
            cx.accounts.end(cx.now, cx.out, Holder::Source(source));
            cx.accounts.closed(cx.now, cx.out, grant.allocation);
        }
    }

    /// A channel of a title is gone, and its feed.
    pub(super) fn forget(&mut self, cx: &mut Context<'_>, id: ChannelId) {
        let Some(channel) = self.tuned.channels.remove(&id) else { return };
        self.tuned.feeds.remove(&channel.feed);
        if let Some(origins) = &channel.origins {
            self.tuned.titles.remove(&origins.title);
        }
        if channel.phase == Phase::Ended {
            cx.out.push_back(Output::Note(crate::input::Note::ChannelOff { channel: id }));
        }
        cx.feeds.close(cx.now, channel.feed, cx.out);
    }
}

impl Channel {
    fn is_of(&self, providers: &[ProviderId]) -> bool {
        self.origins.as_ref().is_some_and(|origins| origins.providers == providers)
    }
}
