//! Viewers that poll: from the request that makes one to its answer.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use holdfast_core::input::{FeedId, Input, RequestId, Token, ViewerId, Viewing};
use holdfast_core::time::Time;

use super::connection::Work;
use super::{Call, Server};
use crate::http::Response;
use crate::routes;

/// So many tokens are remembered after those that were given them have left.
const OWNERS: usize = 4096;

/// What somebody asked for who joins to poll.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joining {
    /// The multivariant playlist.
    ForIndex(At),
    /// The media playlist, under a token from before.
    Again(Token),
}

/// At which address a multivariant playlist was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// Beside the feed's other files.
    Feed,
    /// `/live/{user}/{password}/{stream}`
    User,
    /// `/{user}/{password}/{stream}`
    Root,
}

/// The bytes of a feed that an answer still consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub feed: FeedId,
    /// The next byte.
    pub at: u64,
    /// Behind the last one.
    pub end: u64,
}

/// Who joins to poll, and who has not begun to.
#[derive(Debug, Default)]
pub(super) struct Polls {
    joining: BTreeMap<RequestId, Joining>,
    viewings: BTreeMap<RequestId, Viewing>,
    /// To which user's player each token was given, and the tokens in that order: a player that comes back brings its token only.
    owners: BTreeMap<Token, Viewing>,
    given: VecDeque<Token>,
    /// The newest viewer of a feed and an address that has not asked for its media playlist yet.
    idle: BTreeMap<(IpAddr, FeedId), ViewerId>,
    places: BTreeMap<ViewerId, (IpAddr, FeedId)>,
}

impl Polls {
    /// What the request asked for, if it is one of somebody who joins to poll.
    pub fn joining(&self, request: RequestId) -> Option<Joining> {
        self.joining.get(&request).copied()
    }

    /// The request is answered, or its client gone.
    pub fn forget(&mut self, request: RequestId) {
        self.joining.remove(&request);
        self.viewings.remove(&request);
    }

    /// A player is known by a token from here on.
    fn give(&mut self, request: RequestId, token: Token) {
        let Some(viewing) = self.viewings.remove(&request) else { return };
        if self.owners.insert(token, viewing).is_none() {
            self.given.push_back(token);
        }
        while self.given.len() > OWNERS
            && let Some(oldest) = self.given.pop_front()
        {
            self.owners.remove(&oldest);
        }
    }

    /// The viewer asked for its media playlist, or is gone.
    pub fn begins(&mut self, viewer: ViewerId) {
        if let Some(place) = self.places.remove(&viewer) {
            self.idle.remove(&place);
        }
    }

    /// A viewer got its index. The one before it of the same feed and address, if that has not begun.
    fn enters(&mut self, place: (IpAddr, FeedId), viewer: ViewerId) -> Option<ViewerId> {
        self.places.insert(viewer, place);
        let former = self.idle.insert(place, viewer)?;
        self.places.remove(&former);
        Some(former)
    }
}

impl Call<'_> {
    /// Makes its client a viewer that polls; it is answered when there is something to watch.
    pub fn join_to_poll(&mut self, feed: FeedId, viewing: Option<Viewing>, joining: Joining) {
        if viewing.is_some()
            && let Some(peer) = self.peer()
            && let Some(former) = self.server.polls.idle.get(&(peer.ip(), feed)).copied()
        {
            // It would keep the place that is asked for. Should it go on after all, it joins anew.
            self.server.polls.begins(former);
            self.tell(Input::Leave { viewer: former });
        }
        let request = self.ask(|request| match viewing {
            Some(viewing) => Input::Play { request, viewing },
            None => Input::Join { request, feed },
        });
        self.server.polls.joining.insert(request, joining);
        self.server.polls.viewings.extend(viewing.map(|viewing| (request, viewing)));
    }

    /// Who was given this token.
    pub fn owner(&self, token: Token) -> Option<Viewing> {
        self.server.polls.owners.get(&token).copied()
    }

    /// The viewer asks for its media playlist.
    pub fn begins(&mut self, viewer: ViewerId) {
        self.server.polls.begins(viewer);
    }

    /// Answers it; the content comes out of a feed's ring.
    pub fn send(&mut self, response: Response, fetch: Fetch) {
        self.answer(response);
        if let Some(connection) = self.server.connections.get_mut(self.id) {
            connection.work = Work::Fetching(fetch);
        }
    }
}

impl Server {
    /// Somebody joined in order to poll, and polls from here on.
    pub(super) fn polls(&mut self, now: Time, request: RequestId, viewer: ViewerId, token: Token) {
        self.polls.give(request, token);
        match self.polls.joining.remove(&request) {
            Some(Joining::ForIndex(at)) => {
                let Some((_, feed)) = self.edge().feeds().known(token) else { return };
                let connection = self.requests.get(&request).and_then(|id| self.connections.get(*id));
                let former = connection.and_then(|connection| self.polls.enters((connection.peer.ip(), feed), viewer));
                self.inbox.extend(former.map(|viewer| Input::Leave { viewer }));
                self.answer_request(now, request, routes::hls::index(self, feed, token, at));
            }
            Some(Joining::Again(_)) => self.inbox.push_back(Input::Playlist { request, viewer }),
            None => {}
        }
    }
}
