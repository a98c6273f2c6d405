//! What an id stands for, whatever it is called in this run: of a shorter run the same things have other ids.

use std::collections::BTreeMap;

use holdfast_core::edge::Edge;
use holdfast_core::input::{
    AllocationId, Ask, ChannelId, FeedId, Input, Output, PlaybackId, RequestId, SessionId, SourceId, TitleId, Token,
    ViewerId, Viewing, Writer,
};
use holdfast_core::playback::Item;

/// An id that the core gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Session(SessionId),
    Viewer(ViewerId),
    Source(SourceId),
    Allocation(AllocationId),
    Playback(PlaybackId),
    Token(Token),
    Feed(FeedId),
}

/// What it was given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// This request's, and the how manieth it is of its kind.
    Request(RequestId, u32),
    /// The how manieth attempt for a channel.
    Channel(ChannelId, u32),
    /// The how manieth attempt for a title, or the how manieth feed of it.
    Tuned(TitleId, u32),
}

impl Origin {
    /// The next one of its kind for the same.
    fn next(self) -> Self {
        match self {
            Origin::Request(request, count) => Origin::Request(request, count + 1),
            Origin::Channel(channel, count) => Origin::Channel(channel, count + 1),
            Origin::Tuned(title, count) => Origin::Tuned(title, count + 1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Session,
    Viewer,
    Source,
    Allocation,
    Playback,
    Token,
    Feed,
}

/// The ids of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    stands_for: BTreeMap<Id, (Kind, Origin)>,
    called: BTreeMap<(Kind, Origin), Id>,
    /// Which title a channel is of.
    titles: BTreeMap<ChannelId, TitleId>,
    /// The last attempt for each channel and title.
    opens: BTreeMap<Origin, Origin>,
    fetches: BTreeMap<RequestId, u32>,
}

impl Names {
    fn add(&mut self, kind: Kind, mut origin: Origin, id: Id) {
        if self.stands_for.contains_key(&id) {
            return;
        }
        while self.called.contains_key(&(kind, origin)) {
            origin = origin.next();
        }
        self.stands_for.insert(id, (kind, origin));
        self.called.insert((kind, origin), id);
    }

    /// Takes in what one call gave.
    pub fn learn(&mut self, input: &Input, outputs: &[Output], edge: &Edge) {
        outputs.iter().for_each(|output| self.output(output));
        match input {
            Input::Tune { title, .. } => {
                let pull = edge.pull();
                if let Some((channel, feed)) = pull.tuned(*title).and_then(|id| Some((id, pull.feed_of(id)?))) {
                    self.titles.insert(channel, *title);
                    self.add(Kind::Feed, Origin::Tuned(*title, 0), Id::Feed(feed));
                }
            }
            Input::Play { request, viewing } => {
                let rows = edge.playback().of_user(viewing.user).map(|(id, _)| Id::Playback(id));
                let new = rows.filter(|id| !self.stands_for.contains_key(id)).last();
                if let Some(id) = new {
                    self.add(Kind::Playback, Origin::Request(*request, 0), id);
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, output: &Output) {
        match *output {
            Output::Start { session, request, .. } => {
                self.add(Kind::Session, Origin::Request(request, 0), Id::Session(session));
            }
            Output::Joined { request, viewer } => {
                self.add(Kind::Viewer, Origin::Request(request, 0), Id::Viewer(viewer));
            }
            Output::Polls { request, token, .. } => {
                self.add(Kind::Token, Origin::Request(request, 0), Id::Token(token));
            }
            Output::Open { source, channel, grant, .. } => {
                // A title that is tuned anew has another channel.
                let title = self.titles.get(&channel).copied();
                let of = title.map_or(Origin::Channel(channel, 0), |title| Origin::Tuned(title, 0));
                let origin = self.opens.entry(of).or_insert(of);
                *origin = origin.next();
                let origin = *origin;
                self.add(Kind::Source, origin, Id::Source(source));
                if let Some(grant) = grant {
                    self.add(Kind::Allocation, origin, Id::Allocation(grant.allocation));
                }
            }
            Output::Fetch { request, playback, token, grant, .. } => {
                let fetch = self.fetches.entry(request).or_default();
                *fetch += 1;
                let origin = Origin::Request(request, *fetch);
                if let Some(grant) = grant {
                    self.add(Kind::Allocation, origin, Id::Allocation(grant.allocation));
                }
                if let Some(playback) = playback {
                    self.add(Kind::Playback, Origin::Request(request, 0), Id::Playback(playback));
                }
                if let Some(token) = token {
                    self.add(Kind::Token, Origin::Request(request, 0), Id::Token(token));
                }
            }
            _ => {}
        }
    }

    /// A session of this run as it is called in another one.
    pub fn session_in(&self, other: &Names, session: SessionId) -> Option<SessionId> {
        match self.name_in(other, Id::Session(session)) {
            Found::Called(Id::Session(session)) => Some(session),
            Found::Called(_) | Found::Missing => None,
            Found::Nobodys => Some(session),
        }
    }

    fn name_in(&self, other: &Names, id: Id) -> Found {
        match self.stands_for.get(&id) {
            None => Found::Nobodys,
            Some(origin) => {
                let same = other.called.get(origin);
                // Of a title that was tuned less often the last feed will do.
                let last = || match origin {
                    (Kind::Feed, Origin::Tuned(title, _)) => {
                        let all =
                            (Kind::Feed, Origin::Tuned(*title, 0))..=(Kind::Feed, Origin::Tuned(*title, u32::MAX));
                        other.called.range(all).next_back().map(|(_, id)| id)
                    }
                    _ => None,
                };
                same.or_else(last).map_or(Found::Missing, |id| Found::Called(*id))
            }
        }
    }

    /// An input of this run as it reads in another one; `None` where it is about something that is not there.
    pub fn translate(&self, other: &Names, input: &Input) -> Option<Input> {
        let to = To { own: self, other };
        let mut input = input.clone();
        match &mut input {
            Input::Answered { session } | Input::End { session, .. } | Input::Released { session } => {
                to.session(session)?;
            }
            Input::Media { feed, from, .. } => {
                to.feed(feed)?;
                match from {
                    Writer::Session(session) => to.session(session)?,
                    Writer::Source(source) => to.source(source)?,
                }
            }
            Input::Opened { source } | Input::Arrived { source } | Input::Lost { source, .. } => to.source(source)?,
            Input::Join { feed, .. } | Input::KeyFrameWanted { feed } => to.feed(feed)?,
            Input::Poll { viewer, token, .. } => {
                to.viewer(viewer)?;
                token.as_mut().map_or(Some(()), |token| to.token(token))?;
            }
            Input::Sent { viewer, .. }
            | Input::Leave { viewer }
            | Input::Playlist { viewer, .. }
            | Input::Polled { viewer, .. }
            | Input::GiveUp { viewer } => to.viewer(viewer)?,
            Input::Play { viewing, .. } => to.viewing(viewing)?,
            Input::Kick { playback, .. } => to.playback(playback)?,
            Input::Fetch { ask: Ask { viewing, token, .. }, .. } => {
                to.viewing(viewing)?;
                token.as_mut().map_or(Some(()), |token| to.token(token))?;
            }
            Input::Closed { allocation } => to.allocation(allocation)?,
            Input::Tick
            | Input::ClockSet { .. }
            | Input::Allowed { .. }
            | Input::Offer { .. }
            | Input::Hangup { .. }
            | Input::Drain
            | Input::Tune { .. }
            | Input::Forwarded { .. }
            | Input::Failed { .. }
            | Input::Finished { .. }
            | Input::Stalled { .. } => {}
        }
        Some(input)
    }
}

/// How an id is called elsewhere.
enum Found {
    Called(Id),
    /// What it stands for is not there.
    Missing,
    /// It never stood for anything.
    Nobodys,
}

struct To<'a> {
    own: &'a Names,
    other: &'a Names,
}

macro_rules! translations {
    ($($name:ident: $variant:ident($of:ty),)+) => {
        impl To<'_> {
            $(fn $name(&self, id: &mut $of) -> Option<()> {
                match self.own.name_in(self.other, Id::$variant(*id)) {
                    Found::Called(Id::$variant(other)) => *id = other,
                    Found::Called(_) | Found::Missing => return None,
                    Found::Nobodys => {}
                }
                Some(())
            })+
        }
    };
}

translations! {
    session: Session(SessionId),
    viewer: Viewer(ViewerId),
    source: Source(SourceId),
    allocation: Allocation(AllocationId),
    playback: Playback(PlaybackId),
    feed: Feed(FeedId),
}

impl To<'_> {
    /// A player may come with a token before the core is known to have given it: that one is kept as it is.
    fn token(&self, token: &mut Token) -> Option<()> {
        if let Found::Called(Id::Token(other)) = self.own.name_in(self.other, Id::Token(*token)) {
            *token = other;
        }
        Some(())
    }

    fn viewing(&self, viewing: &mut Viewing) -> Option<()> {
        match &mut viewing.item {
            Item::LiveTs(feed) | Item::LiveHls(feed) => self.feed(feed),
            _ => Some(()),
        }
    }
}
