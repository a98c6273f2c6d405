//! What goes into the core and what comes out: the vocabulary between deciding and moving bytes.

use alloc::string::String;
use core::net::IpAddr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::config::Strategy;
use crate::id::Id;
use crate::playback::{Item, Place};
use crate::slots::Hold;
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

/// Who writes into a feed: at most one at a time, so that a superseded one never writes again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Writer {
    /// The publisher that holds the feed's slot.
    Session(SessionId),
    /// The origin from which the feed's channel is pulled.
    Source(SourceId),
}

/// An endpoint by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EndpointId(pub u32);

/// A channel by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ChannelId(pub u32);

/// A user by its place in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct UserId(pub u32);

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

/// A request that waits for an answer. The server chose it; it is unique while the process runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// What a viewer that polls is known by: unpredictable, and part of every address that it asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
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
        #[serde(with = "crate::journal::length_only")]
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
}

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
    },
    /// Close the source; nothing is to be said of it any more.
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
}

/// Why a session ended. Each session ends with exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndReason {
    /// The client sent DELETE.
    Deleted,
    /// The offer could not be negotiated.
    NegotiationFailed,
    /// The client hung up before it had its answer.
    ClientGone,
    /// ICE failed or was closed.
    IceFailed,
    /// The publisher closed DTLS.
    DtlsClosed,
    /// The publisher said goodbye in RTCP for all its sources.
    Bye,
    /// No media for `inactivity_timeout`.
    Inactive,
    /// No media at all within `setup_timeout`.
    SetupTimeout,
    /// Its transport was dead and another publisher wanted the slot.
    Displaced,
    /// An operator ended it.
    Kicked,
    /// The program ends.
    Shutdown,
}

impl EndReason {
    /// The word for it in status, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            EndReason::Deleted => "deleted",
            EndReason::NegotiationFailed => "negotiation-failed",
            EndReason::ClientGone => "client-gone",
            EndReason::IceFailed => "ice-failed",
            EndReason::DtlsClosed => "dtls-closed",
            EndReason::Bye => "bye",
            EndReason::Inactive => "inactive",
            EndReason::SetupTimeout => "setup-timeout",
            EndReason::Displaced => "displaced",
            EndReason::Kicked => "kicked",
            EndReason::Shutdown => "shutdown",
        }
    }

    /// Every reason.
    pub const ALL: [EndReason; 11] = [
        EndReason::Deleted,
        EndReason::NegotiationFailed,
        EndReason::ClientGone,
        EndReason::IceFailed,
        EndReason::DtlsClosed,
        EndReason::Bye,
        EndReason::Inactive,
        EndReason::SetupTimeout,
        EndReason::Displaced,
        EndReason::Kicked,
        EndReason::Shutdown,
    ];
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RefuseReason {
    /// The slot's holder is alive.
    HolderLive,
    /// The slot's holder has not delivered anything yet.
    HolderNegotiating,
    /// The slot's holder never delivered audio, so its silence proves nothing.
    HolderWithoutAudio,
    /// Nothing was decided within `takeover_wait`.
    TakeoverTimeout,
    /// Too many others wait for the same slots.
    TooManyWaiting,
    /// The offer could not be negotiated.
    NegotiationFailed,
    /// The session was ended before it was answered: displaced, kicked, or not negotiated in time.
    Ended,
    /// The program ends.
    Draining,
    /// The feed has as many viewers as it may have.
    TooManyViewers,
    /// No media came within `start_timeout`, or no segment for a viewer that polls in the time that one may take.
    StartTimeout,
    /// No origin of the channel can be had.
    NoSource,
    /// There is no such endpoint or feed.
    NotFound,
    /// The user plays as much as it may.
    UserLimit,
    /// All that could be ended for it was ended by the same player a moment ago.
    Suppressed,
    /// The user may not play any more, or not yet again.
    AccountExpired,
    /// An operator ended it and does not let it come back yet.
    Kicked,
    /// More plays than can be cleaned up after.
    Busy,
}

impl RefuseReason {
    /// The word for it in problem bodies, status, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            RefuseReason::HolderLive => "holder-live",
            RefuseReason::HolderNegotiating => "holder-negotiating",
            RefuseReason::HolderWithoutAudio => "holder-without-audio",
            RefuseReason::TakeoverTimeout => "takeover-timeout",
            RefuseReason::TooManyWaiting => "too-many-waiting",
            RefuseReason::NegotiationFailed => "negotiation-failed",
            RefuseReason::Ended => "ended",
            RefuseReason::Draining => "draining",
            RefuseReason::TooManyViewers => "too-many-viewers",
            RefuseReason::StartTimeout => "start-timeout",
            RefuseReason::NoSource => "no-source",
            RefuseReason::NotFound => "not-found",
            RefuseReason::UserLimit => "user-limit",
            RefuseReason::Suppressed => "suppressed",
            RefuseReason::AccountExpired => "account-expired",
            RefuseReason::Kicked => "kicked",
            RefuseReason::Busy => "busy",
        }
    }

    /// Every reason.
    pub const ALL: [RefuseReason; 17] = [
        RefuseReason::HolderLive,
        RefuseReason::HolderNegotiating,
        RefuseReason::HolderWithoutAudio,
        RefuseReason::TakeoverTimeout,
        RefuseReason::TooManyWaiting,
        RefuseReason::NegotiationFailed,
        RefuseReason::Ended,
        RefuseReason::Draining,
        RefuseReason::TooManyViewers,
        RefuseReason::StartTimeout,
        RefuseReason::NoSource,
        RefuseReason::NotFound,
        RefuseReason::UserLimit,
        RefuseReason::Suppressed,
        RefuseReason::AccountExpired,
        RefuseReason::Kicked,
        RefuseReason::Busy,
    ];
}

/// Why a viewer's response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ViewerEnd {
    /// Its socket is gone, or it polls no more.
    Left,
    /// It fell further behind than the feed keeps.
    Slow,
    /// Nothing came into the feed for `idle`.
    Idle,
    /// The channel's origin ended it, and did not begin again within `end_grace`.
    Ended,
    /// The channel's origins were tried as often as they may be.
    NoSource,
    /// The program ends.
    Shutdown,
    /// Another playback of its user took its place.
    Evicted,
    /// An operator ended it.
    Kicked,
    /// Its user plays as much as it may, and no place became free in time.
    Limit,
    /// Its socket took nothing for `progress_timeout`.
    Stuck,
}

impl ViewerEnd {
    /// The word for it in status, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            ViewerEnd::Left => "left",
            ViewerEnd::Slow => "slow",
            ViewerEnd::Idle => "idle",
            ViewerEnd::Ended => "ended",
            ViewerEnd::NoSource => "no-source",
            ViewerEnd::Shutdown => "shutdown",
            ViewerEnd::Evicted => "evicted",
            ViewerEnd::Kicked => "kicked",
            ViewerEnd::Limit => "user-limit",
            ViewerEnd::Stuck => "stuck",
        }
    }

    /// Every reason.
    pub const ALL: [ViewerEnd; 10] = [
        ViewerEnd::Left,
        ViewerEnd::Slow,
        ViewerEnd::Idle,
        ViewerEnd::Ended,
        ViewerEnd::NoSource,
        ViewerEnd::Shutdown,
        ViewerEnd::Evicted,
        ViewerEnd::Kicked,
        ViewerEnd::Limit,
        ViewerEnd::Stuck,
    ];
}

/// What became of a source that is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Loss {
    /// The origin has no such stream (404, 410).
    NotFound,
    /// The origin wants other credentials (401, 403).
    Forbidden,
    /// The origin's name is not known.
    Unresolved,
    /// Nobody listens there, there is no way there, or TLS cannot be spoken with it.
    Unreachable,
    /// The origin refused in another way.
    Refused,
    /// The connection broke.
    Reset,
    /// The origin ended the stream in order.
    Ended,
    /// What the origin sends is no stream that can be passed on.
    Unusable,
    /// The origin is this server, or gets the stream from it.
    Loop,
    /// The handshake took longer than `connect_timeout`. Decided here.
    TimedOut,
    /// No media for `no_input_timeout`. Decided here.
    Silent,
    /// Media came, but nothing that a player could start with. Decided here.
    NoKeyFrame,
}

impl Loss {
    /// The word for it in status, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Loss::NotFound => "not-found",
            Loss::Forbidden => "forbidden",
            Loss::Unresolved => "unresolved",
            Loss::Unreachable => "unreachable",
            Loss::Refused => "refused",
            Loss::Reset => "reset",
            Loss::Ended => "ended",
            Loss::Unusable => "unusable",
            Loss::Loop => "loop",
            Loss::TimedOut => "timed-out",
            Loss::Silent => "silent",
            Loss::NoKeyFrame => "no-key-frame",
        }
    }

    /// Every loss.
    pub const ALL: [Loss; 12] = [
        Loss::NotFound,
        Loss::Forbidden,
        Loss::Unresolved,
        Loss::Unreachable,
        Loss::Refused,
        Loss::Reset,
        Loss::Ended,
        Loss::Unusable,
        Loss::Loop,
        Loss::TimedOut,
        Loss::Silent,
        Loss::NoKeyFrame,
    ];
}

/// Why a channel changed its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Switch {
    /// Nothing came from the other one.
    Failover,
    /// One that stands earlier in the list is back.
    Failback,
}

impl Switch {
    /// The word for it in status, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Switch::Failover => "failover",
            Switch::Failback => "failback",
        }
    }
}

/// What happened, for people. Structured; the program prints it, the simulator checks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A session took a slot.
    SessionStarted {
        /// The endpoint.
        endpoint: EndpointId,
        /// Its slot, from 0.
        slot: u32,
        /// The session.
        session: SessionId,
        /// How long the POST had waited for the slot, in µs.
        waited: u64,
    },
    /// A session ended.
    SessionEnded {
        /// The endpoint.
        endpoint: EndpointId,
        /// Its slot, from 0.
        slot: u32,
        /// The session.
        session: SessionId,
        /// Why.
        reason: EndReason,
        /// How long it lasted, in µs.
        lasted: u64,
        /// How long before its end the last media came in, in µs; `None` if none ever did.
        silent: Option<u64>,
    },
    /// A POST was refused.
    OfferRefused {
        /// The endpoint.
        endpoint: EndpointId,
        /// Why.
        reason: RefuseReason,
        /// How long it had waited, in µs.
        waited: u64,
    },
    /// A session delivers but its slot puts nothing out.
    SlotStalled {
        /// The endpoint.
        endpoint: EndpointId,
        /// Its slot, from 0.
        slot: u32,
        /// The session.
        session: SessionId,
        /// How long the slot has put nothing out, in µs.
        stalled: u64,
    },
    /// A viewer was ended by us.
    ViewerEnded {
        /// The feed.
        feed: FeedId,
        /// The viewer.
        viewer: ViewerId,
        /// Why.
        reason: ViewerEnd,
        /// How long it watched, in µs.
        lasted: u64,
        /// How many bytes it was sent.
        sent: u64,
    },
    /// A WHIP request was refused before anybody's slot was looked at.
    RequestRefused {
        /// The endpoint.
        endpoint: EndpointId,
        /// The HTTP status it was answered with.
        status: u16,
        /// What was wrong with it.
        why: String,
    },
    /// Somebody was not let in to watch.
    ViewerRefused {
        /// The feed.
        feed: FeedId,
        /// Why.
        reason: RefuseReason,
    },
    /// An origin is asked for a channel.
    SourceOpening {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// The source.
        source: SourceId,
    },
    /// A source is of no more use.
    SourceLost {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// The source.
        source: SourceId,
        /// What happened.
        loss: Loss,
        /// How long it lasted, in µs.
        lasted: u64,
    },
    /// What was wrong with an origin, as far as the core does not know.
    SourceFault {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// In words.
        why: String,
    },
    /// The first media of a channel came.
    ChannelStarted {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// How long the channel had been wanted, in µs.
        waited: u64,
    },
    /// A source is connected and sends no media; said once a silence.
    ChannelSilent {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// How long ago the last media came, in µs; `None` if none ever did.
        silent: Option<u64>,
    },
    /// Media came again on the connection that was silent.
    ChannelBack {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// How long nothing came, in µs.
        gap: u64,
    },
    /// A channel goes on from another connection.
    ChannelSwitched {
        /// The channel.
        channel: ChannelId,
        /// Which of its origins, from 0.
        index: u32,
        /// Why.
        why: Switch,
        /// How long nothing came, in µs.
        gap: u64,
    },
    /// A channel's viewers were ended.
    ChannelEnded {
        /// The channel.
        channel: ChannelId,
        /// Why.
        reason: ViewerEnd,
    },
    /// Nobody watches a channel any more; its connections are closed.
    ChannelOff {
        /// The channel.
        channel: ChannelId,
    },
    /// A user's playback is seen.
    PlaybackStarted {
        /// The user.
        user: UserId,
        /// The playback.
        playback: PlaybackId,
        /// What is played.
        item: Item,
        /// Which of the user's places it uses.
        place: Place,
        /// How long it had been asked for, in µs.
        waited: u64,
    },
    /// A playback that was seen is over.
    PlaybackEnded {
        /// The user.
        user: UserId,
        /// The playback.
        playback: PlaybackId,
        /// Why.
        reason: ViewerEnd,
        /// How long it was seen, in µs.
        lasted: u64,
    },
    /// A user may not play.
    PlaybackRefused {
        /// The user.
        user: UserId,
        /// What was to be played.
        item: Item,
        /// Why.
        reason: RefuseReason,
    },
    /// A playback that others could have ended has a place of its own.
    PlaybackPromoted {
        /// The user.
        user: UserId,
        /// The playback.
        playback: PlaybackId,
    },
    /// A playback ended for the sake of another one of its user.
    PlaybackEvicted {
        /// The user.
        user: UserId,
        /// The one that ends.
        playback: PlaybackId,
        /// For whose sake.
        by: PlaybackId,
        /// By which of the configured strategies.
        rule: Strategy,
    },
    /// All places of a user are used; a playback waits for one, or runs without one, until its grace is over.
    PlaybackGraced {
        /// The user.
        user: UserId,
        /// The playback.
        playback: PlaybackId,
        /// By which of the configured strategies.
        rule: Strategy,
    },
    /// An address sends more requests than it may.
    RateLimited {
        /// The address, or the network, that counts as one.
        peer: String,
        /// How many of its requests were refused since that was last said.
        refused: u64,
    },
    /// There are as many connections as there may be; said once until there is room again.
    ConnectionsFull {
        /// How many there may be.
        limit: u64,
    },
    /// The program began to drain.
    Draining {
        /// Sessions that end with it.
        sessions: u32,
        /// Viewers that end with it.
        viewers: u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_counts_at_its_place_among_all() {
        assert!(EndReason::ALL.iter().enumerate().all(|(place, reason)| *reason as usize == place));
        assert!(RefuseReason::ALL.iter().enumerate().all(|(place, reason)| *reason as usize == place));
        assert!(ViewerEnd::ALL.iter().enumerate().all(|(place, reason)| *reason as usize == place));
        assert!(Loss::ALL.iter().enumerate().all(|(place, loss)| *loss as usize == place));
    }
}
