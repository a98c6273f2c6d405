//! What happened, for people.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::{
    AccountId, ChannelId, Client, EndReason, EndpointId, Failure, FeedId, Loss, PlaybackId, ProviderId, RefuseReason,
    RequestId, SessionId, SourceId, Switch, TitleId, UserId, ViewerEnd, ViewerId,
};
use crate::account::Holder;
use crate::config::Strategy;
use crate::playback::{Item, Place};

/// Why a holder of an account gives way to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GivesWay {
    /// It was kept open for nobody.
    Lingering,
    /// It only looked.
    Probe,
    /// It never sent anything, in more than its time.
    Silent,
    /// The other one is stronger.
    Weaker,
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
        /// Its request.
        request: RequestId,
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
        /// From where it came, where that is known.
        from: Option<String>,
        /// What was wrong with it.
        why: String,
    },
    /// Somebody was not let in to watch.
    ViewerRefused {
        /// Its request.
        request: RequestId,
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
        /// From where, and with which player.
        client: Client,
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
    /// All accounts are used; whoever wants one waits for it, or uses one more than there are, until its grace is over.
    AccountGraced {
        /// Who.
        holder: Holder,
        /// The provider that is preferred.
        provider: ProviderId,
    },
    /// Whoever used an account gives way to a stronger one.
    AccountPreempted {
        /// The account.
        account: AccountId,
        /// Who gives way.
        holder: Holder,
        /// For whose sake.
        by: Holder,
        /// Why that one.
        why: GivesWay,
    },
    /// A connection to a provider failed.
    AccountFailed {
        /// The account.
        account: AccountId,
        /// What happened.
        failure: Failure,
    },
    /// A source with an account of a provider's is over.
    AccountLost {
        /// The account.
        account: AccountId,
        /// What happened.
        loss: Loss,
    },
    /// A connection was refused for a moment after another one of its account had been closed, and then came through.
    AccountLate {
        /// The account.
        account: AccountId,
        /// How long its provider still counted that, in microseconds.
        late: u64,
    },
    /// An account may be used no longer: its time is over. What runs with it goes on.
    AccountOver {
        /// The account.
        account: AccountId,
    },
    /// A provider's catalogue was read.
    CatalogRead {
        /// The provider.
        provider: ProviderId,
        /// Live streams.
        live: u64,
        /// Films.
        films: u64,
        /// Series.
        series: u64,
        /// Entries that could not be used.
        skipped: u64,
        /// The first of them, and why, in words; empty where there is none.
        first: String,
        /// Entries that were left out because there are as many as there may be.
        beyond: u64,
    },
    /// A provider's catalogue or guide could not be read, or not to its end.
    CatalogFault {
        /// The provider.
        provider: ProviderId,
        /// In words.
        why: String,
        /// What there is of it now.
        left: Left,
    },
    /// A library of this machine was looked through, and there is something else in it than before.
    LibraryRead {
        /// What it is called.
        library: String,
        /// How many films or episodes there are.
        files: u64,
        /// How many files or directories are left out, since their names are no text in UTF-8.
        unnamed: u64,
        /// How many files are left out, since there is nothing in them.
        empty: u64,
        /// Whether there is more than is taken.
        cut_short: bool,
    },
    /// A library of this machine cannot be looked through; what was found there before is kept.
    LibraryFault {
        /// What it is called.
        library: String,
        /// In words.
        why: String,
        /// How many films or episodes that were found before are kept.
        kept: u64,
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
    /// The wall clock of this machine was set.
    ClockSet {
        /// Forward by so many µs; back where it is negative.
        by: i64,
    },
    /// Somebody could not log in: name or password is wrong.
    LoginFailed {
        /// From where.
        peer: String,
        /// The user whose name was given; `None`: nobody has that name.
        user: Option<UserId>,
        /// How many logins failed since that was last said, this one among them.
        failures: u64,
    },
    /// Something is left out of the playlists of a provider's title, and the rest of it plays.
    PlaylistFault {
        /// The provider.
        provider: ProviderId,
        /// The title.
        title: TitleId,
        /// In words.
        why: String,
    },
    /// A provider's guide was read to its end.
    GuideRead {
        /// The provider.
        provider: ProviderId,
        /// What is on: programmes of channels that its catalogue has, about now.
        programmes: u64,
        /// Programmes that are left out since they could not be read.
        skipped: u64,
    },
    /// More connections are configured for an account than its provider says that it allows. Said once, and when that changes.
    AccountOverstated {
        /// The account.
        account: AccountId,
        /// How many are configured.
        configured: u32,
        /// How many the provider allows.
        allowed: u32,
    },
    /// A provider's panel does not let an account in, or does not say. Said once, and when that changes.
    AccountNotLetIn {
        /// The account.
        account: AccountId,
        /// In words.
        why: String,
    },
    /// Live streams of a provider's panel came as HLS that did not come as MPEG-TS: all are asked for so, until its catalogue is read
    /// anew.
    LiveAsHls {
        /// The provider.
        provider: ProviderId,
    },
    /// Too many logins from an address failed: for a while none from there is looked at. Said once until that is over.
    LoginsLocked {
        /// From where.
        peer: String,
        /// How long, in µs, unless more fail then.
        wait: u64,
        /// How many addresses that began for since it was last said, this one among them.
        addresses: u64,
    },
}

/// What there is of a catalogue or a guide after a reading that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    /// Nothing: none was read before either.
    Nothing,
    /// So many entries of what was read to its end last.
    Former(u64),
    /// So many entries that came before it broke off; it was never read to its end.
    Beginning(u64),
}
