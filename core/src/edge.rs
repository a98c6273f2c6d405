//! What happens when this comes in now, and when must I be called again?
//!
//! ```text
//! driver:  edge.handle(now, input, env)      whatever happened
//!          while let Some(output) = edge.poll() { … }
//!          sleep until edge.deadline() or the next input
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

#[cfg(test)]
use crate::account::Strength;
use crate::account::{Accounts, Holder, Told};
use crate::config::{Channel, Config, Endpoint};
use crate::feed::{Chunk, Feeds, Start};
use crate::input::{
    Ask, ChannelId, EndpointId, Env, FeedId, Input, Note, Output, ProviderId, RefuseReason, RequestId, Token, UserId,
    ViewerEnd, Viewing, Writer,
};
use crate::names::Names;
#[cfg(test)]
use crate::playback::Audience;
use crate::playback::{Heard, Playbacks};
use crate::publish::{self, Context, Denied, Head, Publish};
use crate::pull::Pull;
use crate::time::{Time, earliest};

/// Everything that Holdfast decides, in one place.
#[derive(Debug)]
pub struct Edge {
    config: Config,
    endpoints: Names,
    channels: Names,
    now: Time,
    publish: Publish,
    pull: Pull,
    playback: Playbacks,
    accounts: Accounts,
    feeds: Feeds,
    out: VecDeque<Output>,
}

/// What [`Edge::save`] writes.
type Saved = (Time, Publish, Pull, Playbacks, Accounts, Feeds, VecDeque<Output>);

impl Edge {
    /// An edge in which nothing has happened yet.
    pub fn new(config: Config) -> Self {
        let mut feeds = Feeds::new(config.live.clone());
        let publish = Publish::new(&config, || feeds.open());
        let pull = Pull::new(&config, || feeds.open());
        let endpoints = Names::new(&config.endpoints, endpoint_name);
        let channels = Names::new(&config.channels, channel_name);
        let playback = Playbacks::new(&config);
        let (accounts, now, out) = (Accounts::new(&config), Time::ZERO, VecDeque::new());
        Edge { endpoints, channels, config, now, publish, pull, playback, accounts, feeds, out }
    }

    /// Takes in one input. Time never goes back: an earlier `now` counts as the latest one. What was due by now happens
    /// first.
    pub fn handle(&mut self, now: Time, input: Input, env: &mut dyn Env) {
        self.now = self.now.max(now);
        let now = self.now;
        let due = self.is_due(now);
        let mut told = self.out.len();
        let cx = &mut Context { now, env, feeds: &mut self.feeds, accounts: &mut self.accounts, out: &mut self.out };
        if due {
            self.publish.tick(cx);
            self.pull.tick(cx);
            cx.feeds.tick(now, cx.out);
            cx.accounts.tick(now, cx.out);
            // Places that became free are there for whoever waits till now, and for whoever asks now.
            follow(&mut self.playback, &mut self.pull, &mut self.publish, cx, &mut told);
            self.playback.tick(cx);
            follow(&mut self.playback, &mut self.pull, &mut self.publish, cx, &mut told);
        }
        while let Some(feed) = cx.feeds.next_uncut() {
            match self.pull.channel_of(feed).and_then(|channel| self.pull.state(channel)?.kept) {
                Some((source, _)) => cx.out.push_back(Output::SourceKeyFrame { source }),
                None => self.publish.key_frame(cx, feed),
            }
        }
        match input {
            Input::Tick => {}
            Input::Offer { request, endpoint } => self.publish.offer(cx, request, endpoint),
            Input::Hangup { request } => {
                self.playback.hangup(cx, request);
                if !cx.feeds.hangup(request) && !self.pull.hangup(cx, request) {
                    self.publish.hangup(cx, request);
                }
            }
            Input::Answered { session } => self.publish.answered(cx, session),
            Input::End { session, reason } => self.publish.finish(cx, session, reason),
            Input::Released { session } => self.publish.released(cx, session),
            Input::Media { feed, from, data, random_access } => {
                if let Writer::Source(source) = from
                    && cx.feeds.writer(feed) != Some(from)
                {
                    self.pull.arrived(cx, source, random_access.is_some());
                }
                cx.feeds.push(now, feed, Chunk { from, data, random_access }, cx.out);
            }
            Input::Opened { source } => self.pull.opened(cx, source),
            Input::Arrived { source } => self.pull.arrived(cx, source, false),
            Input::Lost { source, loss } => self.pull.lost(cx, source, loss),
            Input::Join { request, feed } => {
                join(&mut self.pull, &mut self.publish, cx, request, feed);
            }
            Input::KeyFrameWanted { feed } => self.publish.key_frame(cx, feed),
            Input::Sent { viewer, bytes } => cx.feeds.sent(viewer, bytes),
            Input::Leave { viewer } => {
                let feed = cx.feeds.feed_of(viewer);
                cx.feeds.leave(now, viewer);
                if let Some(feed) = feed.filter(|feed| cx.feeds.viewers_of(*feed) == 0) {
                    self.pull.left(cx, feed);
                }
                self.playback.heard(cx, Heard::Ended(viewer, ViewerEnd::Left));
            }
            Input::Poll { request, viewer, token } => {
                let token = token.unwrap_or_else(|| Token(cx.env.entropy()));
                cx.feeds.poll(now, request, viewer, token, cx.out);
                if cx.feeds.feed_of(viewer).is_none() {
                    // Somebody is known by its token already.
                    self.playback.heard(cx, Heard::Ended(viewer, ViewerEnd::Left));
                }
            }
            Input::Playlist { request, viewer } => cx.feeds.ask_playlist(now, request, viewer, cx.out),
            Input::Polled { viewer, bytes } => cx.feeds.polled(now, viewer, bytes),
            Input::GiveUp { viewer } => cx.feeds.end(now, viewer, ViewerEnd::Idle, cx.out),
            Input::Drain => {
                let viewers = cx.feeds.viewer_count() as u32;
                let sessions = self.publish.drain(cx);
                cx.out.push_back(Output::Note(Note::Draining { sessions, viewers }));
                cx.accounts.drain();
                self.playback.drain(cx);
                self.pull.drain(cx);
                cx.feeds.drain(now, cx.out);
            }
            Input::Allowed { account, connections } => cx.accounts.allow(now, cx.out, account, connections),
            Input::ClockSet { by } => {
                cx.out.push_back(Output::Note(Note::ClockSet { by }));
                cx.accounts.set_clock(now, cx.out, by);
                self.playback.set_clock(cx, by);
            }
            Input::Play { request, viewing } => self.playback.ask(cx, request, viewing),
            Input::Kick { playback, block } => self.playback.kick(cx, playback, Duration::from_micros(block)),
            Input::Tune { title, providers } => self.pull.tune(cx, title, &providers),
            Input::Fetch { request, ask } => self.playback.fetch(cx, request, ask),
            Input::Forwarded { request } => self.playback.forwarded(cx, request),
            Input::Failed { request, failure } => self.playback.failed(cx, request, failure),
            Input::Finished { request, reason } => self.playback.finished(cx, request, reason),
            Input::Stalled { request } => self.playback.stalled(cx, request),
            Input::Closed { allocation } => {
                let holder = cx.accounts.allocation(allocation).map(|own| own.holder);
                cx.accounts.closed(now, cx.out, allocation);
                self.playback.closed(cx, allocation, holder);
            }
        }
        follow(&mut self.playback, &mut self.pull, &mut self.publish, cx, &mut told);
    }

    /// The strongest of those that want a feed became another one, as playbacks say it.
    #[cfg(test)]
    pub(crate) fn set_strength(&mut self, now: Time, feed: FeedId, strength: Option<Strength>, env: &mut dyn Env) {
        let mut told = self.out.len();
        let cx = &mut Context { now, env, feeds: &mut self.feeds, accounts: &mut self.accounts, out: &mut self.out };
        self.pull.set_audience(cx, feed, Audience { strongest: strength, gracious: Time::ZERO });
        follow(&mut self.playback, &mut self.pull, &mut self.publish, cx, &mut told);
    }

    /// The next thing to do; drained after each [`Edge::handle`].
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// What is still to be polled, oldest first.
    pub(crate) fn pending(&self) -> &VecDeque<Output> {
        &self.out
    }

    /// When to call again with [`Input::Tick`] if nothing else happens.
    pub fn deadline(&self) -> Option<Time> {
        let rooms = [self.publish.deadline(), self.pull.deadline(), self.playback.deadline(), self.accounts.deadline()];
        rooms.into_iter().fold(self.feeds.deadline(), earliest)
    }

    /// Whether something is to be done that was due by `now`. What follows from a call is done in it, and waits for no other.
    fn is_due(&self, now: Time) -> bool {
        self.deadline().is_some_and(|due| due <= now) || self.accounts.is_due(now)
    }

    /// Appends everything that it keeps to `bytes`, but for its configuration.
    pub(crate) fn save(&self, bytes: Vec<u8>) -> Result<Vec<u8>, postcard::Error> {
        let Edge { now, publish, pull, playback, accounts, feeds, out, config: _, endpoints: _, channels: _ } = self;
        postcard::to_extend(&(now, publish, pull, playback, accounts, feeds, out), bytes)
    }

    /// The edge of this configuration that [`Edge::save`] wrote; `None` if `bytes` make no sense or do not fit the configuration.
    pub(crate) fn restore(config: Config, bytes: &[u8]) -> Option<Edge> {
        let Edge { config, endpoints, channels, publish: publish_new, pull: pull_new, playback: playback_new, .. } =
            Edge::new(config);
        let (state, []) = postcard::take_from_bytes(bytes).ok()? else { return None };
        let (now, mut publish, mut pull, mut playback, accounts, mut feeds, out): Saved = state;
        publish.configure(publish_new)?;
        pull.configure(pull_new)?;
        playback.configure(playback_new)?;
        feeds.configure(&config.live);
        Some(Edge { config, endpoints, channels, now, publish, pull, playback, accounts, feeds, out })
    }

    /// The configuration it decides by.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The endpoint of this name.
    pub fn endpoint(&self, name: &str) -> Option<(EndpointId, &Endpoint)> {
        let (place, endpoint) = self.endpoints.find(&self.config.endpoints, endpoint_name, name)?;
        Some((EndpointId(place), endpoint))
    }

    /// The channel of this name.
    pub fn channel(&self, name: &str) -> Option<(ChannelId, &Channel)> {
        let (place, channel) = self.channels.find(&self.config.channels, channel_name, name)?;
        Some((ChannelId(place), channel))
    }

    /// Whether media that comes now from `from` goes into `feed` ([`Input::Media`]); if not, it may be evidence
    /// ([`Input::Arrived`]). Ask when everything that was due by `now` has been done.
    pub fn takes(&self, now: Time, feed: FeedId, from: Writer, random_access: bool) -> bool {
        self.feeds.writer(feed) == Some(from)
            || match from {
                Writer::Session(_) => false,
                Writer::Source(source) => self.pull.takes(now, source, random_access),
            }
    }

    /// Checks the head of a POST; what passes may be told as [`Input::Offer`] once its body is there.
    pub fn admit(&self, head: &Head<'_>) -> Result<EndpointId, Denied> {
        publish::admit(self.endpoint(head.endpoint), head)
    }

    /// Why whoever asked for a feed now would be refused at once, whoever else plays; nothing follows from the question, and nobody
    /// is counted for it. Whether there is a place for `viewing` is not in it.
    pub fn refuses(&self, now: Time, viewing: Option<&Viewing>, feed: FeedId) -> Option<RefuseReason> {
        let forbidden = viewing.and_then(|viewing| self.playback.forbids(now, viewing.user, Some(viewing)));
        forbidden.or_else(|| match self.pull.channel_of(feed) {
            Some(channel) => self.pull.refuses(now, &self.feeds, &self.accounts, channel),
            None => self.feeds.refuses(feed),
        })
    }

    /// The same of a title of these providers that is no channel yet.
    pub fn refuses_to_tune(&self, now: Time, user: UserId, providers: &[ProviderId]) -> Option<RefuseReason> {
        self.playback.forbids(now, user, None).or_else(|| self.lacks_accounts(providers))
    }

    /// The same of a request for a title.
    pub fn refuses_to_fetch(&self, now: Time, ask: &Ask) -> Option<RefuseReason> {
        let nowhere = || if ask.providers.is_empty() { None } else { self.lacks_accounts(&ask.providers) };
        self.playback.refuses(now, ask).or_else(nowhere)
    }

    /// Whether all accounts of these providers are over.
    fn lacks_accounts(&self, providers: &[ProviderId]) -> Option<RefuseReason> {
        Some(self.accounts.lack(providers)).filter(|lack| *lack == RefuseReason::AccountsOver)
    }

    /// The publish room, to look at.
    pub fn publish(&self) -> &Publish {
        &self.publish
    }

    /// The pull room, to look at.
    pub fn pull(&self) -> &Pull {
        &self.pull
    }

    /// The playback room, to look at.
    pub fn playback(&self) -> &Playbacks {
        &self.playback
    }

    /// The account room, to look at.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The live feeds, to look at and to write from.
    pub fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// The feed of an endpoint's slot (from 0).
    pub fn feed_of(&self, endpoint: EndpointId, slot: usize) -> Option<FeedId> {
        self.publish.endpoint(endpoint)?.feeds().get(slot).copied()
    }
}

/// Lets playbacks follow from what the other rooms said, and the other rooms from whom playbacks let in, until all is said.
fn follow(playback: &mut Playbacks, pull: &mut Pull, publish: &mut Publish, cx: &mut Context<'_>, told: &mut usize) {
    // As it is after nearly every call.
    if *told == cx.out.len() && cx.accounts.has_told_all() && playback.has_done_all() {
        return;
    }
    let mut refused = *told;
    loop {
        if let Some((feed, audience)) = playback.next_audience(cx.now) {
            // Before whoever was let in asks for it: how strong that is decides whose account it may take.
            pull.set_audience(cx, feed, audience);
        } else if let Some((request, item)) = playback.next_admitted() {
            if let Some(feed) = item.feed() {
                join(pull, publish, cx, request, feed);
            }
        } else if let Some(request) = playback.next_abandoned() {
            let _ = cx.feeds.hangup(request) || pull.hangup(cx, request);
        } else if let Some(told) = cx.accounts.poll() {
            tell(playback, pull, cx, told);
        } else if let Some(output) = cx.out.get(refused) {
            // Before whoever is let in with it is told of: the place of one that was refused may be that one's by now.
            refused += 1;
            if let Some(heard @ Heard::Refused(..)) = Heard::of(output) {
                playback.heard(cx, heard);
            }
        } else if let Some(output) = cx.out.get(*told) {
            *told += 1;
            if let Some(heard) = Heard::of(output) {
                playback.heard(cx, heard);
            }
        } else if !playback.proceed(cx) && !playback.permit(cx) {
            break;
        }
    }
}

/// Tells whoever holds or wishes for an account what became of it.
fn tell(playback: &mut Playbacks, pull: &mut Pull, cx: &mut Context<'_>, told: Told) {
    match told.holder() {
        Holder::Source(source) => pull.told(cx, source, told),
        Holder::Playback(_) | Holder::Probe(_) => playback.told(cx, told),
    }
}

/// Connects a request with a feed, whoever fills it.
fn join(pull: &mut Pull, publish: &mut Publish, cx: &mut Context<'_>, request: RequestId, feed: FeedId) {
    if let Some(channel) = pull.channel_of(feed) {
        pull.join(cx, request, channel);
    } else if cx.feeds.join(cx.now, request, feed, cx.out) == Start::KeyFrameWanted {
        publish.key_frame(cx, feed);
    }
}

fn endpoint_name(endpoint: &Endpoint) -> &str {
    &endpoint.name
}

fn channel_name(channel: &Channel) -> &str {
    &channel.name
}
