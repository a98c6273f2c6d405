//! Viewers that poll: from the address that makes one to its answer.

use std::collections::{BTreeMap, VecDeque};

use holdfast_core::input::{Client, FeedId, Input, RequestId, TitleId, Token, UserId, ViewerId, Viewing};
use holdfast_core::playback::Item;

use super::connection::Work;
use super::{Call, Server};
use crate::http::Response;

/// So many tokens are remembered of players that began, and as many of such as did not: whoever probes makes nobody forgotten that
/// was paused.
const OWNERS: usize = 4096;

/// Of what a player is given a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polled {
    /// A feed of ours.
    Feed(FeedId),
    /// A provider's live stream, whose feed is another one each time that somebody wants it after nobody did.
    Title(TitleId),
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

/// Who joins to poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    pub token: Token,
    /// What it was given that for.
    pub polled: Polled,
    /// Nobody in particular where nobody has to log in.
    pub owner: Option<Owner>,
}

/// Who joins to poll, and who was told how.
#[derive(Debug, Default)]
pub(super) struct Polls {
    /// The token under which each joins.
    joining: BTreeMap<RequestId, Token>,
    /// Tokens of players that have not begun, and of such as have.
    fresh: Tokens,
    begun: Tokens,
}

/// To which user's player each token was given, and the tokens in that order: a player brings its token only.
#[derive(Debug, Default)]
struct Tokens {
    owners: BTreeMap<Token, (Polled, Owner)>,
    order: VecDeque<Token>,
}

/// Whose a token is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub user: UserId,
    pub client: Client,
}

impl Tokens {
    fn keep(&mut self, token: Token, polled: Polled, owner: Owner) {
        if self.owners.insert(token, (polled, owner)).is_none() {
            self.order.push_back(token);
        }
        while self.order.len() > OWNERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.owners.remove(&oldest);
        }
    }

    fn get(&self, token: Token, polled: Polled) -> Option<Owner> {
        self.owners.get(&token).filter(|(own, _)| *own == polled).map(|(_, owner)| *owner)
    }
}

impl Polls {
    /// Under which token the request joins, if it does.
    pub fn joining(&self, request: RequestId) -> Option<Token> {
        self.joining.get(&request).copied()
    }

    /// The request is answered, or its client gone.
    pub fn forget(&mut self, request: RequestId) {
        self.joining.remove(&request);
    }
}

impl Call<'_> {
    /// A token for a player that has only begun to look what there is: nothing is counted and nothing fetched for it until it
    /// asks for its media playlist (spec: playback §3.1, set-up).
    pub fn give_token(&mut self, owner: Option<Owner>, polled: Polled) -> Token {
        let token = Token((self.server.entropy)());
        if let Some(owner) = owner {
            self.server.polls.fresh.keep(token, polled, owner);
        }
        token
    }

    /// Makes its client a viewer that polls; it is answered when there is something to watch.
    pub fn join_to_poll(&mut self, feed: FeedId, joining: Joining) {
        let Joining { token, polled, owner } = joining;
        let request = self.ask(|request| match owner {
            Some(Owner { user, client }) => {
                Input::Play { request, viewing: Viewing { user, item: Item::LiveHls(feed), client } }
            }
            None => Input::Join { request, feed },
        });
        self.server.polls.joining.insert(request, token);
        if let Some(owner) = owner {
            self.server.polls.begun.keep(token, polled, owner);
        }
    }

    /// Who was given this token for this.
    pub fn owner(&self, token: Token, polled: Polled) -> Option<Owner> {
        let polls = &self.server.polls;
        polls.begun.get(token, polled).or_else(|| polls.fresh.get(token, polled))
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
    pub(super) fn polls(&mut self, request: RequestId, viewer: ViewerId) {
        if self.polls.joining.remove(&request).is_some() {
            self.inbox.push_back(Input::Playlist { request, viewer });
        }
    }
}
