//! What goes into the core and what comes out: the vocabulary between deciding and moving bytes.

mod called;
mod note;
mod output;
mod reason;
mod says;
mod status;

use alloc::vec::Vec;
use core::net::IpAddr;

use bytes::Bytes;
pub use note::{GivesWay, Left, Note};
pub use output::Output;
pub use reason::{EndReason, Failure, Loss, RefuseReason, Switch, ViewerEnd};
use serde::{Deserialize, Serialize};
pub use status::Refusal;

use crate::id::Id;
use crate::playback::Item;
use crate::time::Time;

/// Marks ids of WHIP sessions.
pub enum SessionKind {}
/// Marks ids of live feeds.
pub enum FeedKind {}
/// Marks ids of viewers of a feed.
pub enum ViewerKind {}
/// Marks ids of sources.
pub enum SourceKind {}
/// Marks ids of playbacks.
pub enum PlaybackKind {}
/// Marks ids of allocations.
pub enum AllocationKind {}

/// One WHIP session: one publisher from its POST to its end.
pub type SessionId = Id<SessionKind>;
/// One live feed; a slot's feed outlives its sessions.
pub type FeedId = Id<FeedKind>;
/// One viewer of one feed.
pub type ViewerId = Id<ViewerKind>;
/// One attempt to pull a channel from one of its origins, from [`Output::Open`] to its end.
pub type SourceId = Id<SourceKind>;
/// One viewing by one user, whatever carries it.
pub type PlaybackId = Id<PlaybackKind>;
/// One connection to a provider, counted on one of its accounts until the provider counts it no more.
pub type AllocationId = Id<AllocationKind>;

/// Who writes into a feed: at most one at a time, so that a superseded one never writes again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Writer {
    /// The publisher that holds the feed's slot.
    Session(SessionId),
    /// The origin from which the feed's channel is pulled.
    Source(SourceId),
}

/// An endpoint by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EndpointId(pub u32);

/// A channel by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChannelId(pub u32);

/// A user by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UserId(pub u32);

/// A provider by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProviderId(pub u32);

/// An account by its place among those of all providers, in the order of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountId(pub u32);

/// Something in the catalogue of a provider, or a file of this machine: the same as long as it is called the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TitleId(pub u64);

/// What is granted to whoever may use an account now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Whose credentials.
    pub account: AccountId,
    /// Named when the connection is closed ([`Input::Closed`]).
    pub allocation: AllocationId,
}

/// What tells the players of a user apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Its address; the one that a trusted proxy names, where there is one.
    pub address: IpAddr,
    /// A hash of what it calls itself (`User-Agent`).
    pub agent: u64,
}

/// Who wants to play what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Viewing {
    /// Whose places count.
    pub user: UserId,
    /// What is to be played.
    pub item: Item,
    /// By which player.
    pub client: Client,
}

/// A request for a title: one of the requests of which a playback consists.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// Who wants what, with which player.
    pub viewing: Viewing,
    /// How much of it.
    pub want: Want,
    /// What the playback is known by, where an address holds it (HLS); a playlist that begins one has none.
    pub token: Option<Token>,
    /// The account that the same address names: what it stands for is only had there.
    pub account: Option<AccountId>,
    /// Where it can be had, the preferred one first; one provider may be there twice. Empty: on this machine.
    pub providers: Vec<ProviderId>,
}

/// How much of a title is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Want {
    /// What it takes to begin: a playlist, a key, a redirect. Nobody is counted for it.
    Setup,
    /// How large it is and of what kind: a probe, for which nobody is counted and that gives way to everybody.
    Look,
    /// All that is behind some place. It takes the place of whatever the same playback asked for before.
    Rest,
    /// A part with an end, such as a segment. It waits for the parts that were asked for before.
    Part,
}

/// A request that waits for an answer. The server chose it; it is unique while the process runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// What a viewer that polls is known by: unpredictable, and part of every address that it asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub [u8; 16]);

/// Everything that can happen to the core. Any sequence of inputs is legal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Time passed.
    Tick,
    /// A WHIP POST whose head and offer passed every check.
    Offer {
        /// Answered by one [`Output::Accept`] or [`Output::Refuse`].
        request: RequestId,
        /// Where it wants to publish.
        endpoint: EndpointId,
    },
    /// The client of an unanswered request went away.
    Hangup {
        /// The request.
        request: RequestId,
    },
    /// The media side has an answer to the session's offer.
    Answered {
        /// The session.
        session: SessionId,
    },
    /// The session ended from outside: the client, the transport, an operator.
    End {
        /// The session.
        session: SessionId,
        /// What ended it.
        reason: EndReason,
    },
    /// The bridge of a finished session is cut: nothing of it can enter its slot any more.
    Released {
        /// The session.
        session: SessionId,
    },
    /// Media for a feed.
    Media {
        /// The feed.
        feed: FeedId,
        /// Where it comes from; ignored and counted unless that is who may write into the feed.
        from: Writer,
        /// MPEG-TS, whole packets. A journal keeps the length only.
        #[serde(with = "crate::journal::media")]
        data: Bytes,
        /// Whether a player can start here, and if so, the presentation time of what it sees first: 90 kHz ticks, modulo 2³³.
        random_access: Option<u64>,
    },
    /// The origin agreed to send: its handshake is over.
    Opened {
        /// The source.
        source: SourceId,
    },
    /// Media came from a source that does not write into its channel's feed ([`Edge::takes`](crate::edge::Edge::takes)).
    Arrived {
        /// The source.
        source: SourceId,
    },
    /// The source came to its end, or never came to be.
    Lost {
        /// The source.
        source: SourceId,
        /// What happened.
        loss: Loss,
    },
    /// Somebody wants to watch a feed.
    Join {
        /// Answered by one [`Output::Joined`] or [`Output::Refuse`].
        request: RequestId,
        /// Which feed.
        feed: FeedId,
    },
    /// Nothing of the feed's publisher can be shown before its next key frame.
    KeyFrameWanted {
        /// The feed.
        feed: FeedId,
    },
    /// A viewer's socket took this many bytes.
    Sent {
        /// The viewer.
        viewer: ViewerId,
        /// How many bytes beyond its cursor.
        bytes: u64,
    },
    /// A viewer's socket is gone.
    Leave {
        /// The viewer.
        viewer: ViewerId,
    },
    /// The program is to end: nobody new comes in, everybody ends in order.
    Drain,
    /// A viewer that joined just now will not read the feed as it comes: it polls (HLS), and leaves by asking no more.
    Poll {
        /// Answered by one [`Output::Polls`] or [`Output::Refuse`].
        request: RequestId,
        /// The viewer.
        viewer: ViewerId,
        /// What it was known by before, if it comes back; else it gets a new one.
        token: Option<Token>,
    },
    /// A viewer that polls asks for its playlist.
    Playlist {
        /// Answered by one [`Output::Playlist`], for which it may be held, or by [`Output::Refuse`].
        request: RequestId,
        /// The viewer.
        viewer: ViewerId,
    },
    /// A viewer that polls asked for something else and gets it.
    Polled {
        /// The viewer.
        viewer: ViewerId,
        /// How many bytes of its feed that are.
        bytes: u64,
    },
    /// A user wants to play.
    Play {
        /// Answered by one [`Output::Joined`] or [`Output::Refuse`].
        request: RequestId,
        /// Who, what, and with which player.
        viewing: Viewing,
    },
    /// An operator ends a playback.
    Kick {
        /// The playback.
        playback: PlaybackId,
        /// How long its player may not come back, in µs.
        block: u64,
    },
    /// A viewer waits no longer for a feed that nothing comes into: it ends as [`ViewerEnd::Idle`].
    GiveUp {
        /// The viewer.
        viewer: ViewerId,
    },
    /// A title of a provider is about to be watched as a live stream: from here on there is a channel of it
    /// ([`Pull::tuned`](crate::pull::Pull::tuned)), which is gone when nobody has wanted it for its `idle_timeout`.
    Tune {
        /// The title.
        title: TitleId,
        /// Where it can be had, the preferred one first: the channel's origins.
        providers: Vec<ProviderId>,
    },
    /// A user wants a title, or a part of it.
    Fetch {
        /// Answered by [`Output::Fetch`] or [`Output::Refuse`].
        request: RequestId,
        /// Who, what, how much.
        ask: Ask,
    },
    /// Media of the title was forwarded to the client of the request: said at the first byte of a 200 or 206 and then, while it
    /// flows, about once a second.
    Forwarded {
        /// The request.
        request: RequestId,
    },
    /// The request could not be fetched, and nothing of it was forwarded. Answered by another [`Output::Fetch`] or by [`Output::Refuse`].
    Failed {
        /// The request.
        request: RequestId,
        /// What happened.
        failure: Failure,
    },
    /// The response is over: it was sent to its end, or its client is gone, or the connection to the provider broke in the middle.
    Finished {
        /// The request.
        request: RequestId,
        /// How: [`ViewerEnd::Done`], [`ViewerEnd::Left`], [`ViewerEnd::Failed`] or [`ViewerEnd::Idle`].
        reason: ViewerEnd,
    },
    /// The client of a request has taken nothing of its response for a second: others of the same playback need not wait for it.
    Stalled {
        /// The request.
        request: RequestId,
    },
    /// A connection to a provider is closed, whoever closed it, or was never made: its account may be used again.
    Closed {
        /// The allocation.
        allocation: AllocationId,
    },
    /// The wall clock of this machine was set, as on a box that asks for the time when its network is there: whatever ends on a
    /// date ends so much sooner.
    ClockSet {
        /// Forward by so many µs; back where it is negative.
        by: i64,
    },
    /// A provider says how many connections it allows for an account: no more are made at a time than that, or than are configured.
    /// Those beyond it that are there go on.
    Allowed {
        /// The account.
        account: AccountId,
        /// How many; 0 = any number, or it does not say.
        connections: u32,
    },
}

/// What came in so far of one kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// How many.
    pub count: u64,
    /// When the last one came; `None` before the first.
    pub last: Option<Time>,
}

/// What is known of a session's transport, stamped where packets come off the network (spec: publish, evidence).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// RTP packets of audio.
    pub audio: Arrivals,
    /// RTP packets of video.
    pub video: Arrivals,
    /// RTCP packets.
    pub control: Arrivals,
}

impl Evidence {
    /// When the last audio or video came; `None` before the first.
    pub fn last_media(&self) -> Option<Time> {
        self.audio.last.max(self.video.last)
    }

    /// When the last packet of any kind came; `None` before the first.
    pub fn last_any(&self) -> Option<Time> {
        self.last_media().max(self.control.last)
    }
}

/// What the core may ask of outside. Answers are recorded with the call.
pub trait Env {
    /// The evidence of a session, as it is now. Default for a session that is not known.
    fn activity(&mut self, session: SessionId) -> Evidence;
    /// Unpredictable bytes.
    fn entropy(&mut self) -> [u8; 16];
}
