//! What comes out: everything the core asks for.

use serde::{Deserialize, Serialize};

use super::{
    AllocationId, ChannelId, EndReason, EndpointId, FeedId, Grant, Note, PlaybackId, RefuseReason, RequestId,
    SessionId, SourceId, Token, ViewerEnd, ViewerId,
};
use crate::slots::Hold;

/// Everything the core asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Negotiate the offer of `request`; answered by [`Input::Answered`] or [`Input::End`].
    Start {
        /// The session that was made for it.
        session: SessionId,
        /// Whose offer.
        request: RequestId,
        /// Where it publishes.
        endpoint: EndpointId,
        /// Its slot and tenancy.
        hold: Hold,
        /// Its feed.
        feed: FeedId,
        /// The unguessable part of the session's URL.
        secret: [u8; 16],
    },
    /// Answer the POST with 201.
    Accept {
        /// The request.
        request: RequestId,
        /// Its session.
        session: SessionId,
    },
    /// Answer the request with a refusal.
    Refuse {
        /// The request.
        request: RequestId,
        /// Why.
        reason: RefuseReason,
    },
    /// The session is over. Cut its bridge and say [`Input::Released`]; then tell its peer and take it down.
    Finish {
        /// The session.
        session: SessionId,
        /// Why.
        reason: EndReason,
    },
    /// Ask the session's publisher for a key frame.
    KeyFrame {
        /// The session.
        session: SessionId,
    },
    /// Somebody waits for a key frame of the source: ask for one where its origin can be asked.
    SourceKeyFrame {
        /// The source.
        source: SourceId,
    },
    /// The session delivers but its slot puts nothing out: build its chain anew.
    Rebuild {
        /// The session.
        session: SessionId,
    },
    /// Pull the channel from one of its origins; answered by [`Input::Opened`] and media, or by [`Input::Lost`].
    Open {
        /// The source.
        source: SourceId,
        /// Whose.
        channel: ChannelId,
        /// Which of the channel's origins, from 0.
        index: u32,
        /// The account that it uses, where the origin is a provider; [`Input::Closed`](super::Input::Closed) when its connection is.
        grant: Option<Grant>,
    },
    /// Close the source; nothing is to be said of it any more but that its connection is closed.
    Close {
        /// The source.
        source: SourceId,
    },
    /// The viewer is in; its bytes are read from the feed at its cursor.
    Joined {
        /// The request.
        request: RequestId,
        /// Its viewer.
        viewer: ViewerId,
    },
    /// There are bytes for the viewers of a feed.
    Ready {
        /// The feed.
        feed: FeedId,
    },
    /// The viewer's response ends here.
    ViewerEnd {
        /// The viewer.
        viewer: ViewerId,
        /// Why.
        reason: ViewerEnd,
    },
    /// Something an operator may want to read.
    Note(Note),
    /// The viewer polls from here on.
    Polls {
        /// The request.
        request: RequestId,
        /// Its viewer: the one that joined, or, if somebody was known by the token already, that one.
        viewer: ViewerId,
        /// What it is known by.
        token: Token,
    },
    /// The viewer's playlist has a segment at least: answer the request with it.
    Playlist {
        /// The request.
        request: RequestId,
        /// The viewer.
        viewer: ViewerId,
    },
    /// Fetch what the request asked for; answered by [`Input::Forwarded`](super::Input::Forwarded) and
    /// [`Input::Finished`](super::Input::Finished), or by [`Input::Failed`](super::Input::Failed).
    Fetch {
        /// The request.
        request: RequestId,
        /// Whose it is; `None` for one that only looks.
        playback: Option<PlaybackId>,
        /// What its playback is known by in the addresses of what it consists of (HLS).
        token: Option<Token>,
        /// From where: the place in [`Ask::providers`](super::Ask::providers).
        index: u32,
        /// The account that it uses; `None` where it comes from this machine.
        grant: Option<Grant>,
    },
    /// The response to the request ends here, and nothing more of it is forwarded.
    Cut {
        /// The request.
        request: RequestId,
        /// Why.
        reason: ViewerEnd,
    },
    /// Close the connection to the provider; answered by [`Input::Closed`](super::Input::Closed).
    Drop {
        /// The allocation.
        allocation: AllocationId,
    },
}
