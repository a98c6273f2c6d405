//! What is wished for, and what becomes of it.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::input::{AccountId, FeedId, Grant, PlaybackId, ProviderId, RequestId, SourceId, TitleId, Viewing};
use crate::playback::Place;
use crate::time::Time;

/// Whoever holds a lease: one each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Holder {
    /// A playback of a title.
    Playback(PlaybackId),
    /// A source of a channel.
    Source(SourceId),
    /// A request that only looks.
    Probe(RequestId),
}

/// How strong a claim on an account is; the lesser one is the stronger. Equals never give way to one another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Strength {
    /// Whatever uses a soft place gives way to what uses a normal one.
    pub place: Place,
    /// Of the user; lower is stronger.
    pub priority: i8,
}

impl Strength {
    /// Of a probe: everybody else's is more.
    pub const PROBE: Strength = Strength { place: Place::Grace, priority: 127 };
}

/// What somebody wishes for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'w> {
    /// For whom. One that has a lease already keeps it where it can.
    pub holder: Holder,
    /// Where it can be had, the preferred provider first.
    pub providers: &'w [ProviderId],
    /// Accounts that failed it already. What is wished for behind a failure is had at once, or by grace at one other account.
    pub avoid: &'w [AccountId],
    /// What is to be had: an account that rests does so for other titles.
    pub title: TitleId,
    /// Who plays it with which player, where the account that it had last is to be tried first when it comes back.
    pub viewing: Option<Viewing>,
    /// Into which feed it goes, where it is a source of one.
    pub feed: Option<FeedId>,
    pub strength: Strength,
    pub pin: Pin,
    /// How long a lease is kept without a connection after media was forwarded; zero = not at all.
    pub window: Duration,
    pub patience: Patience,
}

/// An account that was used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Pin {
    None,
    /// It is tried first.
    Loose(AccountId),
    /// No other will do.
    Firm(AccountId),
}

/// What is done for a wish when no account is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Nothing: a probe.
    None,
    /// Nothing either, but it waits until then for what is being closed anyway.
    AtHand(Time),
    /// It waits until then for what becomes free, but nobody gives way: a hedge.
    Meek(Time),
    /// Weaker ones give way; it waits until then for what becomes free, or `preemption_wait` for what is given up for it. Where the
    /// grace is an instant one and an account bears it, it gets one connection more than there are at once, until then.
    Until(Time, Grace),
}

impl Patience {
    /// Whether it waits for what nobody gives way for.
    pub fn is_grace(self, now: Time) -> bool {
        matches!(self, Patience::Until(until, _) if until > now)
    }

    /// Until when somebody waits at least.
    pub fn until(self, now: Time) -> Time {
        match self {
            Patience::None => now,
            Patience::AtHand(until) | Patience::Meek(until) | Patience::Until(until, _) => until,
        }
    }
}

/// Which kind of grace a wish has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Grace {
    Hold,
    Instant,
}

/// What became of a wish at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acquired {
    /// `index` is the provider's place in the wish.
    Granted {
        grant: Grant,
        index: u32,
    },
    /// It is told later ([`Told`]).
    Waiting,
    Exhausted,
}

/// What the account room has to say to those that hold or wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The wish came true.
    Granted { holder: Holder, grant: Grant, index: u32 },
    /// It did not, in its time.
    Exhausted { holder: Holder },
    /// The holder lost its account and its lease: it has to close its connection now, which counts as given up already.
    GiveUp { holder: Holder, why: Why },
    /// The lease ran out: no media came within `starting_deadline`, or its window passed. A connection that there is keeps its slot
    /// until it is closed, or somebody needs it.
    Expired { holder: Holder },
}

impl Told {
    /// To whom it is told.
    pub fn holder(self) -> Holder {
        match self {
            Told::Granted { holder, .. }
            | Told::Exhausted { holder }
            | Told::GiveUp { holder, .. }
            | Told::Expired { holder } => holder,
        }
    }
}

/// Why a holder loses its account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Why {
    /// A stronger one needs it.
    Preempted,
    /// It was kept open for nobody, or never sent anything, and somebody needs it.
    Idle,
    /// It had it by grace, and that is over.
    GraceOver,
    /// The authority granted it for so long only.
    GrantOver,
}
