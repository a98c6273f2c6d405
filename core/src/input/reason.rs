//! Why something ended, was refused, or changed.

use serde::{Deserialize, Serialize};

use super::Refusal;

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
    /// No account of any provider that has it is free.
    ProviderLimit,
    /// No provider that has it has an account that may be used: their time is over, or they are disabled.
    AccountsOver,
    /// No provider gives it; the server knows what the last one said.
    ProviderFailed,
    /// A newer request of the same playback took its place.
    Superseded,
    /// It gave way to a stronger one a moment ago.
    Preempted,
    /// Its playback was ended, or goes on elsewhere, and what its address names is over with that.
    PlaybackOver,
    /// As many requests of its playback wait as may.
    TooManyRequests,
    /// Providers were asked for its player too often in vain.
    InVain,
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
            RefuseReason::ProviderLimit => "provider-limit",
            RefuseReason::AccountsOver => "accounts-over",
            RefuseReason::ProviderFailed => "provider-failed",
            RefuseReason::Superseded => "superseded",
            RefuseReason::Preempted => "preempted",
            RefuseReason::PlaybackOver => "playback-over",
            RefuseReason::TooManyRequests => "too-many-requests",
            RefuseReason::InVain => "in-vain",
        }
    }

    /// Every reason.
    pub const ALL: [RefuseReason; 25] = [
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
        RefuseReason::ProviderLimit,
        RefuseReason::AccountsOver,
        RefuseReason::ProviderFailed,
        RefuseReason::Superseded,
        RefuseReason::Preempted,
        RefuseReason::PlaybackOver,
        RefuseReason::TooManyRequests,
        RefuseReason::InVain,
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
    /// It was sent to its end.
    Done,
    /// The provider broke it off.
    Failed,
    /// A newer request of the same playback took its place.
    Superseded,
    /// Its account went to a stronger playback.
    Preempted,
    /// It had its account by grace, no other became free, and the grace is over.
    GraceOver,
    /// Its user may not play any longer: the time until which it might is over.
    Expired,
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
            ViewerEnd::Done => "done",
            ViewerEnd::Failed => "failed",
            ViewerEnd::Superseded => "superseded",
            ViewerEnd::Preempted => "preempted",
            ViewerEnd::GraceOver => "grace-over",
            ViewerEnd::Expired => "expired",
        }
    }

    /// Every reason.
    pub const ALL: [ViewerEnd; 16] = [
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
        ViewerEnd::Done,
        ViewerEnd::Failed,
        ViewerEnd::Superseded,
        ViewerEnd::Preempted,
        ViewerEnd::GraceOver,
        ViewerEnd::Expired,
    ];
}

/// What became of a source that is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Loss {
    /// The origin has no such stream (404, 410).
    NotFound,
    /// The origin refuses the credentials, or what is asked for to them (401, 403).
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
    /// No account of the provider is free. Decided here.
    NoAccount,
    /// Its account went to a stronger playback, or to somebody who gets media from it. Decided here.
    Preempted,
    /// It had its account by grace, and that is over. Decided here.
    GraceOver,
    /// The origin has as many connections as it, or the account, may have (429, 456, 458, 503, 509). A provider that goes on to
    /// refuse an account for a while after one of its connections was closed counts as such, whatever it answers.
    Limit,
    /// The origin answered with a page for people, or with what programs tell one another, in place of media: how providers say that
    /// a login is wrong, over or blocked.
    Page,
}

impl Loss {
    /// Whether the origin had to be left for want of an account, and did nothing wrong.
    pub fn is_of_account(self) -> bool {
        matches!(self, Loss::Preempted | Loss::GraceOver)
    }

    /// Whether the origin refused whoever asked, and may not refuse another login.
    pub fn is_of_login(self) -> bool {
        matches!(self, Loss::Forbidden | Loss::Limit | Loss::Page)
    }

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
            Loss::NoAccount => "no-account",
            Loss::Preempted => "preempted",
            Loss::GraceOver => "grace-over",
            Loss::Limit => "limit",
            Loss::Page => "page",
        }
    }

    /// Every loss.
    pub const ALL: [Loss; 17] = [
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
        Loss::NoAccount,
        Loss::Preempted,
        Loss::GraceOver,
        Loss::Limit,
        Loss::Page,
    ];
}

/// What became of a request to a provider of which nothing was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Failure {
    /// No connection, or it broke before the answer.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// It answered with this status, 400 or more.
    Status(u16),
    /// What it answered is of no use.
    Unusable,
    /// It answered with a page for people where media was to come: how panels say that a login is wrong or over.
    Page,
}

impl Failure {
    /// Whether another account or provider is tried after it (spec: playback §10). What wrong credentials get is never
    /// asked for elsewhere.
    pub fn fails_over(self) -> bool {
        match self {
            Failure::Unreachable | Failure::TimedOut | Failure::Page => true,
            Failure::Status(status) => match self.refusal() {
                Some(Refusal::Missing | Refusal::Limit) => true,
                _ => matches!(status, 500..=599),
            },
            Failure::Unusable => false,
        }
    }

    /// What its status means, where it is one.
    pub fn refusal(self) -> Option<Refusal> {
        match self {
            Failure::Status(status) => Some(Refusal::of(u32::from(status))),
            Failure::Unreachable | Failure::TimedOut | Failure::Unusable | Failure::Page => None,
        }
    }

    /// Whether it is the same with every account of the provider: what is fetched there comes from here.
    pub fn is_of_provider(self) -> bool {
        self.refusal() == Some(Refusal::Loop)
    }
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

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_reason_counts_at_its_place_among_all() {
        assert!(EndReason::ALL.iter().enumerate().all(|(place, reason)| *reason as usize == place));
        assert!(RefuseReason::ALL.iter().enumerate().all(|(place, reason)| *reason as usize == place));
        assert!(ViewerEnd::ALL.iter().enumerate().all(|(place, reason)| *reason as usize == place));
        assert!(Loss::ALL.iter().enumerate().all(|(place, loss)| *loss as usize == place));
    }

    #[test]
    fn every_reason_has_one_word_of_its_own() {
        let all = [
            EndReason::ALL.map(EndReason::as_str).to_vec(),
            RefuseReason::ALL.map(RefuseReason::as_str).to_vec(),
            ViewerEnd::ALL.map(ViewerEnd::as_str).to_vec(),
            Loss::ALL.map(Loss::as_str).to_vec(),
            [Switch::Failover, Switch::Failback].map(Switch::as_str).to_vec(),
        ];
        for words in all {
            let different: BTreeSet<&str> = words.iter().copied().collect();
            assert_eq!(different.len(), words.len());
            assert!(words.iter().all(|word| !word.is_empty() && !word.contains(' ')), "{words:?}");
        }
    }
}
