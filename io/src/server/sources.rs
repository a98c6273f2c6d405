//! What comes of a channel's connections: bytes of origins in, media for its feed out.
//!
//! Whatever an origin speaks, it becomes MPEG-TS, goes through a scanner of its own connection, and through the splicer of its
//! channel if the core lets it ([`Edge::takes`](holdfast_core::edge::Edge::takes)).

mod conversation;
mod granted;
mod http;
mod player;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use holdfast_core::input::{
    AllocationId, ChannelId, FeedId, Grant, Input, Loss, Note, Output, ProviderId, RefuseReason, RequestId, SourceId,
    Writer,
};
use holdfast_core::pull::Phase;
use holdfast_core::time::{Time, Timers};

use super::link::{LinkId, Owner, Target};
use super::{Action, Server};
use crate::http::client::{Exchange, Get};
use crate::http::field;
use crate::http::{FieldValue, Request, Via};
use crate::media::{MediaCommand, Unit};
use crate::origin::Origin;
use crate::ovt;
use crate::providers::Form;
use crate::ts::{Muxer, Scanner, Segment, Splicer, Times, Tracks};
pub use player::Clip;
use player::Player;
use told::{Stream, Told};

/// All sources of all channels.
#[derive(Default)]
pub struct Sources {
    sources: BTreeMap<SourceId, Source>,
    /// Those that use an account, by what is to be said when their connection is closed.
    allocations: BTreeMap<AllocationId, SourceId>,
    channels: BTreeMap<ChannelId, Channel>,
    /// Sources that follow a publishing slot, by its feed.
    followers: BTreeMap<FeedId, Vec<SourceId>>,
    /// When files have more to give.
    timers: Timers<SourceId>,
    told: Told,
}

/// What a channel keeps over its sources.
#[derive(Default)]
struct Channel {
    splicer: Splicer,
    /// Whose media went through the splicer last.
    spliced: Option<SourceId>,
    /// What became of each of its origins last, in words.
    faults: BTreeMap<u32, String>,
    /// The same of the one that was asked last, unless it is being asked again; no words where it said nothing.
    last: Option<(Loss, Option<String>)>,
    /// What its origin calls it, where that is said.
    uuid: Option<String>,
    /// The servers through which the request came for which it is fetched.
    via: Via,
}

struct Source {
    channel: ChannelId,
    index: u32,
    feed: FeedId,
    means: Means,
    scanner: Scanner,
    /// Of what does not come as MPEG-TS.
    muxer: Option<Muxer>,
    /// The servers that it comes through, as far as they say so.
    via: Via,
    /// Whether media came.
    proved: bool,
    /// Of a provider's: whose it is, the account that it uses, and what is not to be repeated of its address.
    granted: Option<(ProviderId, Grant, Origin)>,
}

/// How a source's bytes come.
enum Means {
    Http(Box<Fetch>),
    Ovt(Box<Conversation>),
    Media,
    File { player: Player, armed: Time },
    Slot(FeedId),
}

/// One stream over OVT.
struct Conversation {
    link: LinkId,
    client: ovt::Client,
    /// The ids of the tracks that are taken: one picture and one sound.
    taken: [Option<u32>; 2],
    /// The first decoding time; the stream's own begins there.
    first: Option<i64>,
}

/// One stream over HTTP, over all its redirects.
struct Fetch {
    link: LinkId,
    get: Get,
    exchange: Exchange,
    redirects: usize,
    /// Whether content follows.
    answered: bool,
    /// What it is called, where that is no media and nothing of it came so far.
    page: Option<&'static str>,
}

impl Sources {
    /// What became of a channel's origins last, in words, by their place in the list.
    pub fn faults(&self, channel: ChannelId) -> impl Iterator<Item = (u32, &str)> {
        let faults = self.channels.get(&channel).into_iter().flat_map(|channel| &channel.faults);
        faults.map(|(index, why)| (*index, why.as_str()))
    }

    /// What the channel's origin calls the stream, if it said so.
    pub(super) fn uuid(&self, channel: ChannelId) -> Option<&str> {
        self.channels.get(&channel)?.uuid.as_deref()
    }

    /// Whether a provider is just asked this.
    pub(super) fn ask(&self, request: &Request) -> bool {
        self.sources.values().any(|source| match &source.means {
            Means::Http(fetch) => source.granted.is_some() && !fetch.answered && fetch.get.is_for(request),
            _ => false,
        })
    }

    /// Of how many channels something is kept: what became of their origins, and where their media stands.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    pub(super) fn output(&self, source: SourceId) -> Option<&[u8]> {
        match &self.sources.get(&source)?.means {
            Means::Http(fetch) => Some(fetch.exchange.output()),
            Means::Ovt(conversation) => Some(conversation.client.output()),
            Means::Media | Means::File { .. } | Means::Slot(_) => None,
        }
    }

    pub(super) fn wrote(&mut self, source: SourceId, count: usize) {
        let Some(source) = self.sources.get_mut(&source) else { return };
        match &mut source.means {
            Means::Http(fetch) => fetch.exchange.wrote(count),
            Means::Ovt(conversation) => conversation.client.wrote(count),
            Means::Media | Means::File { .. } | Means::Slot(_) => {}
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.timers.deadline()
    }
}

impl Server {
    /// Channels' sources, as far as moving their bytes goes.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Whether the channel is not asked for by itself, by a request that came `via` these servers.
    pub(crate) fn is_asked_by_others(&mut self, channel: ChannelId, via: Option<Via>) -> bool {
        match via {
            // Whoever asks may be whom it comes from.
            Some(via) if !via.meets(&self.comes_through(channel)) => {
                self.came_through(channel, via);
                true
            }
            Some(_) | None => false,
        }
    }

    fn came_through(&mut self, channel: ChannelId, via: Via) {
        // While media flows nobody is asked for its sake.
        if self.edge().pull().state(channel).is_some_and(|state| state.phase != Phase::Live)
            && let Some(own) = self.channel_mut(channel)
        {
            own.via = via;
        }
    }

    /// What is kept over the sources of a channel, while there is such a channel.
    fn channel_mut(&mut self, channel: ChannelId) -> Option<&mut Channel> {
        self.edge.edge().pull().feed_of(channel)?;
        Some(self.sources.channels.entry(channel).or_default())
    }

    /// Forgets what was kept of channels that are gone: those of titles come and go, and their ids are never used again.
    pub(super) fn forget_channels(&mut self) {
        let pull = self.edge.edge().pull();
        self.sources.channels.retain(|channel, _| pull.feed_of(*channel).is_some());
    }

    /// The servers that the channel's media comes through, as far as they say so.
    pub(crate) fn comes_through(&self, channel: ChannelId) -> Via {
        let kept = self.edge().pull().state(channel).and_then(|state| state.kept);
        let source = kept.and_then(|(source, _)| self.sources.sources.get(&source));
        source.map(|source| source.via.clone()).unwrap_or_default()
    }

    /// Does what the core says about a source.
    pub(super) fn execute_source(&mut self, now: Time, output: Output) {
        if let Output::Open { channel, .. } = &output
            && let Some(own) = self.sources.channels.get_mut(channel)
        {
            own.last = None;
        }
        match output {
            Output::Open { source, channel, index, grant: Some(grant) } => {
                self.open_granted(now, source, channel, index, grant)
            }
            Output::Open { source, channel, index, grant: None } => self.open_source(now, source, channel, index),
            Output::Close { source } => self.close_source(source),
            Output::SourceKeyFrame { source } => {
                if let Some(Means::Slot(feed)) = self.sources.sources.get(&source).map(|source| &source.means) {
                    self.inbox.push_back(Input::KeyFrameWanted { feed: *feed });
                }
            }
            _ => {}
        }
    }

    fn open_source(&mut self, now: Time, id: SourceId, channel: ChannelId, index: u32) {
        let Some(feed) = self.edge().pull().feed_of(channel) else { return };
        let origins = self.settings.origins.get(channel.0 as usize);
        let Some(origin) = origins.and_then(|origins| origins.get(index as usize)).cloned() else {
            return self.inbox.push_back(Input::Lost { source: id, loss: Loss::Unusable });
        };
        let mut muxer = None;
        let means = match origin {
            Origin::Http(url) => match self.get(channel, url) {
                Ok(get) => {
                    let (link, exchange) = (self.connect(Owner::Source(id), Target::of(&get)), Exchange::new(&get));
                    Means::Http(Box::new(Fetch { link, get, exchange, redirects: 0, answered: false, page: None }))
                }
                Err(why) => return self.fail_to_open(now, id, (channel, index), Loss::Unusable, why),
            },
            Origin::Ovt { host, port, target, generation } => {
                muxer = Some(Muxer::new());
                let link = self.connect(Owner::Source(id), Target { host, port, tls: false });
                let opened = ovt::UnixMillis(self.wall(now).as_millis() as u64);
                let via = Some(self.via(channel).as_str().to_owned());
                let client = ovt::Client::through(via, &target, generation, opened);
                Means::Ovt(Box::new(Conversation { link, client, taken: [None; 2], first: None }))
            }
            Origin::Rtsp(_) | Origin::Srt(_) => {
                let mut own = Muxer::new();
                own.session(Writer::Source(id), Tracks::default());
                muxer = Some(own);
                self.actions.push_back(Action::Media(MediaCommand::Open { source: id, origin }));
                Means::Media
            }
            Origin::File(_) | Origin::Test => match self.settings.clips.get(&origin.label()).cloned() {
                Some(clip) => self.play(now, id, clip),
                None => {
                    let why = String::from("the file was not there when the program started");
                    return self.fail_to_open(now, id, (channel, index), Loss::NotFound, why);
                }
            },
            Origin::Slot { endpoint, slot } => {
                let found = self.edge().endpoint(&endpoint).and_then(|(id, _)| self.edge().feed_of(id, slot as usize));
                let Some(followed) = found else {
                    let why = String::from("this server has no such endpoint or slot");
                    return self.fail_to_open(now, id, (channel, index), Loss::NotFound, why);
                };
                self.sources.followers.entry(followed).or_default().push(id);
                self.inbox.push_back(Input::Opened { source: id });
                self.inbox.push_back(Input::KeyFrameWanted { feed: followed });
                Means::Slot(followed)
            }
        };
        let source = Source {
            channel,
            index,
            feed,
            means,
            scanner: Scanner::default(),
            muxer,
            via: Via::default(),
            proved: false,
            granted: None,
        };
        self.sources.sources.insert(id, source);
    }

    fn fail_to_open(&mut self, now: Time, id: SourceId, (channel, index): (ChannelId, u32), loss: Loss, why: String) {
        self.tell_fault(now, (channel, index), loss, why);
        self.inbox.push_back(Input::Lost { source: id, loss });
    }

    fn get(&self, channel: ChannelId, url: url::Url) -> Result<Get, String> {
        Ok(Get::new(url).map_err(|fault| fault.to_string())?.header(field::VIA, self.via(channel)))
    }

    /// What a request for a stream says: through which servers it came, so that one which is asked for its own stream can tell
    /// (RFC 9110 §7.6.3).
    fn via(&self, channel: ChannelId) -> FieldValue {
        let own = self.settings.pseudonym();
        match self.sources.channels.get(&channel) {
            Some(channel) => channel.via.through(&own),
            None => Via::default().through(&own),
        }
    }

    fn close_source(&mut self, id: SourceId) {
        let Some(source) = self.sources.sources.remove(&id) else { return };
        match source.means {
            Means::Http(fetch) => self.drop_link(fetch.link),
            Means::Ovt(conversation) => self.drop_link(conversation.link),
            Means::Media => self.actions.push_back(Action::Media(MediaCommand::Close { source: id })),
            Means::File { mut armed, .. } => self.sources.timers.set(id, &mut armed, Time::NEVER),
            Means::Slot(feed) => {
                if let Some(followers) = self.sources.followers.get_mut(&feed) {
                    followers.retain(|follower| *follower != id);
                }
            }
        }
        if self.edge().pull().feed_of(source.channel).is_none() {
            self.sources.channels.remove(&source.channel);
        }
        if let Some((_, Grant { allocation, .. }, _)) = source.granted {
            self.sources.allocations.remove(&allocation);
            self.inbox.push_back(Input::Closed { allocation });
        }
    }

    /// Words that came from an origin, as they may be repeated: some repeat what they were asked for, with its keys. Said where they
    /// are put into a sentence: our own words are no secret, whatever the origin's address holds.
    pub(super) fn quoted(&self, id: SourceId, words: &str) -> String {
        let Some(source) = self.sources.sources.get(&id) else { return String::new() };
        let origins = self.settings.origins.get(source.channel.0 as usize);
        let configured = || origins.and_then(|all| all.get(source.index as usize));
        let origin = source.granted.as_ref().map(|(.., origin)| origin).or_else(configured);
        origin.map_or_else(|| words.to_owned(), |origin| origin.redact(words))
    }

    /// The source is of no more use: its connection is dropped, and the core told. What of `why` are not our words is
    /// [`Server::quoted`].
    pub(super) fn source_lost(&mut self, now: Time, id: SourceId, loss: Loss, why: String) {
        if let Some(Source { channel, index, .. }) = self.sources.sources.get(&id) {
            let (channel, index) = (*channel, *index);
            self.tell_fault(now, (channel, index), loss, why);
            self.close_source(id);
            self.decide(now, Input::Lost { source: id, loss });
        }
    }

    /// What whoever asked for a channel, and is refused for want of media, is told of the origin that was asked last: whoever
    /// operates this server finds there what to look for.
    pub(super) fn lack(&self, request: RequestId, reason: RefuseReason) -> Option<String> {
        self.lack_of(self.connections.get(*self.requests.get(&request)?)?.channel?, reason)
    }

    /// The same of a channel.
    pub(crate) fn lack_of(&self, channel: ChannelId, reason: RefuseReason) -> Option<String> {
        let last = self.sources.channels.get(&channel).and_then(|own| own.last.as_ref());
        let (what, last) = match reason {
            RefuseReason::NoSource => ("no origin of this channel can be had at present", last),
            RefuseReason::StartTimeout => ("no media came in time", last),
            // Else it is for want of an account that is free, and no origin said anything.
            RefuseReason::ProviderLimit => {
                ("no provider has a connection to spare for it", last.filter(|(loss, _)| loss.is_of_login()))
            }
            _ => return None,
        };
        let why = match last {
            Some((loss, Some(why))) => match loss {
                // What these ask for is not in the words of the origin, which are a number.
                Loss::Forbidden | Loss::NotFound | Loss::Limit | Loss::Loop if why.ends_with(char::is_numeric) => {
                    format!("{why}: {}", loss.says())
                }
                _ => why.clone(),
            },
            None if reason == RefuseReason::ProviderLimit => return None,
            silent => match (self.lingering(channel), silent) {
                (Some(does), _) => does.to_owned(),
                (None, Some((loss, _))) => format!("of the origin that was asked last, {}", loss.says()),
                (None, None) => return None,
            },
        };
        Some(format!("{what}: {why}; /api/status says what became of each"))
    }

    /// What the origin does that is connected, or being asked, and does not say that it fails.
    fn lingering(&self, channel: ChannelId) -> Option<&'static str> {
        let state = self.edge().pull().state(channel).filter(|state| state.phase == Phase::Seeking)?;
        if state.waits && state.kept.is_none() {
            return Some("it waits for an account of its provider, which are all in use or rest");
        }
        let (id, _) = state.kept.or(state.beside)?;
        let source = self.sources.sources.get(&id)?;
        Some(match &source.means {
            _ if source.proved => "the origin sends media, and nothing that a player could begin with so far",
            Means::Http(fetch) if !fetch.answered => "the origin has not answered so far",
            _ => "the origin is connected and has sent no media so far",
        })
    }

    fn tell_fault(&mut self, now: Time, (channel, index): (ChannelId, u32), loss: Loss, why: String) {
        let stream = self.stream_of(channel);
        let Some(own) = self.channel_mut(channel) else { return };
        own.last = Some((loss, Some(why.clone())));
        own.faults.insert(index, why.clone());
        if self.sources.told.words(now, (stream, index), &why) {
            self.actions.push_back(Action::Note(Note::SourceFault { channel, index, why }));
        }
    }

    fn stream_of(&self, channel: ChannelId) -> Stream {
        self.edge().pull().title_of(channel).map_or(Stream::Channel(channel), |(title, _)| Stream::Title(title))
    }

    /// Follows what the core says of a channel's sources. Whether that is news.
    pub(super) fn is_news(&mut self, now: Time, note: &Note) -> bool {
        match *note {
            Note::SourceLost { channel, index, loss, .. } if !loss.is_of_account() && loss != Loss::NoAccount => {
                let stream = self.stream_of(channel);
                let Some(own) = self.channel_mut(channel) else { return true };
                if own.last.as_ref().is_none_or(|(last, _)| *last != loss) {
                    own.last = Some((loss, None));
                }
                self.sources.told.loss(now, (stream, index), loss)
            }
            // It is sent to where that is to be had since.
            Note::PlaybackRefused { item, reason: RefuseReason::NoSource, .. } => {
                let pull = self.edge.edge().pull();
                let title = item.feed().and_then(|feed| pull.title_of(pull.channel_of(feed)?));
                title.is_none_or(|(title, _)| !self.providers.is_hls(title))
            }
            Note::ChannelOff { channel } => {
                if let Some(own) = self.sources.channels.get_mut(&channel) {
                    own.last = None;
                }
                true
            }
            Note::ChannelStarted { channel, index, .. }
            | Note::ChannelBack { channel, index, .. }
            | Note::ChannelSwitched { channel, index, .. } => {
                if let Some(own) = self.sources.channels.get_mut(&channel) {
                    own.last = None;
                }
                let stream = self.stream_of(channel);
                self.sources.told.forget((stream, index));
                true
            }
            _ => true,
        }
    }

    /// Bytes came on a link.
    pub(super) fn source_received(&mut self, now: Time, id: SourceId, data: &[u8]) {
        match self.sources.sources.get_mut(&id).map(|source| &mut source.means) {
            Some(Means::Http(fetch)) => {
                fetch.exchange.receive(data);
                self.fetch(now, id);
            }
            Some(Means::Ovt(conversation)) => {
                conversation.client.receive(data);
                self.converse(now, id);
            }
            _ => {}
        }
    }

    /// A link's origin sends nothing more.
    pub(super) fn source_eof(&mut self, now: Time, id: SourceId) {
        match self.sources.sources.get_mut(&id).map(|source| &mut source.means) {
            Some(Means::Http(fetch)) => {
                fetch.exchange.eof();
                self.fetch(now, id);
            }
            Some(Means::Ovt(_)) => {
                // A stream that ends in order is stopped.
                self.source_lost(now, id, Loss::Reset, String::from("the origin closed the connection"));
            }
            _ => {}
        }
    }

    /// An access unit came from an origin.
    pub(super) fn source_unit(&mut self, now: Time, id: SourceId, unit: &Unit) {
        let muxer = self.sources.sources.get_mut(&id).and_then(|source| source.muxer.as_mut());
        if let Some(chunk) = muxer.and_then(|muxer| muxer.push(unit)) {
            self.stream(now, id, &chunk.data);
        }
    }

    /// Bytes of MPEG-TS came from an origin.
    pub(super) fn stream(&mut self, now: Time, id: SourceId, data: &[u8]) {
        let Some(source) = self.sources.sources.get_mut(&id) else { return };
        let mut segments = VecDeque::new();
        let read = source.scanner.read(data, &mut segments);
        for segment in segments {
            self.segment(now, id, segment);
        }
        if let Err(fault) = read {
            self.source_lost(now, id, Loss::Unusable, format!("the origin sends {fault}"));
        }
    }

    /// Media of a source goes into the channel's feed, if the core lets it.
    fn segment(&mut self, now: Time, id: SourceId, segment: Segment) {
        let Some(source) = self.sources.sources.get_mut(&id) else { return };
        if let (Some((provider, ..)), false) = (&source.granted, std::mem::replace(&mut source.proved, true))
            && let Some(own) = self.providers.get_mut(*provider)
            && let Some((title, _)) = self.edge.edge().pull().title_of(source.channel)
        {
            own.came(title, Form::Ts);
        }
        let (feed, from, of) = (source.feed, Writer::Source(id), source.channel);
        let random_access = segment.random_access.is_some();
        let mut input = Input::Arrived { source: id };
        if self.edge().takes(now, feed, from, random_access) {
            let channel = self.sources.channels.entry(of).or_default();
            if channel.spliced != Some(id) {
                channel.spliced = Some(id);
                channel.splicer.begin(Times::Kept);
            }
            if let Some(chunk) = channel.splicer.pass(segment) {
                let random_access = chunk.random_access.then_some(chunk.pts);
                input = Input::Media { feed, from, data: chunk.data, random_access };
            }
        }
        self.decide(now, input);
    }

    /// Media went into a slot's feed: whoever follows it gets it, too.
    pub(super) fn follow(&mut self, now: Time, slot: FeedId, data: &Bytes) {
        let Some(followers) = self.sources.followers.get(&slot) else { return };
        for id in followers.clone() {
            self.stream(now, id, data);
        }
    }

    fn play(&mut self, now: Time, id: SourceId, clip: Arc<Clip>) -> Means {
        self.inbox.push_back(Input::Opened { source: id });
        let mut armed = Time::NEVER;
        self.sources.timers.set(id, &mut armed, now);
        Means::File { player: Player::new(clip, now), armed }
    }

    /// Files that have more to give now.
    pub(super) fn play_on(&mut self, now: Time) {
        while let Some(id) = self.sources.timers.expired(now) {
            let Some(source) = self.sources.sources.get_mut(&id) else { continue };
            let Means::File { player, armed } = &mut source.means else { continue };
            *armed = Time::NEVER;
            let turn = player.turn(now);
            self.sources.timers.set(id, armed, turn.next);
            if turn.begins_anew {
                source.scanner = Scanner::default();
                let channel = self.sources.channels.entry(source.channel).or_default();
                if channel.spliced == Some(id) {
                    channel.splicer.begin(Times::Continued);
                }
            }
            self.stream(now, id, &turn.data);
        }
    }
}
