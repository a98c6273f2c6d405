//! Who may use which account of which provider, and who gives way to whom.
//!
//! A provider is a pool of accounts, each with so many connections. Whoever wants a title there wishes for an account, is granted
//! one, waits for one, or finds none. A connection is counted from its grant until it is closed, whoever gave it up. Rules: spec
//! playback §4 (acquire order, allocations, leases), §9 (invariants).

use alloc::collections::VecDeque;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::input::{AccountId, AllocationId, Grant, Output, PlaybackId, ProviderId, RequestId, SourceId};
use crate::playback::Place;
use crate::time::Time;

/// Whoever holds a lease: one each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
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
    pub const PROBE: Strength = Strength { place: Place::Soft, priority: 127 };
}

/// What somebody wishes for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'w> {
    /// For whom. One that has a lease already keeps it where it can.
    pub holder: Holder,
    /// Where it can be had, the preferred provider first.
    pub providers: &'w [ProviderId],
    /// Accounts that failed it: no others will do.
    pub avoid: &'w [AccountId],
    pub title: crate::input::TitleId,
    pub viewing: Option<crate::input::Viewing>,
    pub strength: Strength,
    pub pin: Pin,
    /// How long a lease is kept without a connection after media was forwarded; zero = not at all.
    pub window: Duration,
    pub patience: Patience,
}

/// An account that was used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// Nothing: a hedge, a probe.
    None,
    Meek(Time),
    /// Weaker ones give way; it waits until then for that, or for what becomes free. Where the grace is an instant one and an account
    /// bears it, it gets one connection more than there are at once, until then.
    Until(Time, Grace),
}

/// Which kind of grace a wish has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The wish came true.
    Granted { holder: Holder, grant: Grant, index: u32 },
    /// It did not, in its time.
    Exhausted { holder: Holder },
    /// The holder loses its account: it has to give up its connection now.
    GiveUp { holder: Holder, why: Why },
    /// The lease ran out: no media came within `starting_deadline`, or its window passed.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// A stronger one needs it.
    Preempted,
    /// It was kept open for nobody, or never sent anything, and somebody needs it.
    Idle,
    /// It had it by grace, and that is over.
    GraceOver,
    GrantOver,
}

/// The account room.
#[derive(Debug)]
pub struct Accounts {
    told: VecDeque<Told>,
}

impl Accounts {
    pub(crate) fn new(_config: &Config) -> Self {
        Accounts { told: VecDeque::new() }
    }

    /// Wishes for an account. A holder that has a connection already has to give it up before ([`Accounts::release`]); where that
    /// is still being closed and its slot is needed, the wish waits for it.
    pub(crate) fn acquire(&mut self, _now: Time, _out: &mut VecDeque<Output>, _wish: Wish<'_>) -> Acquired {
        Acquired::Exhausted
    }

    /// A wish that waits is given up.
    pub(crate) fn withdraw(&mut self, _holder: Holder) {}

    /// The holder needs the connection no more: it keeps its slot until it is closed.
    pub(crate) fn release(&mut self, _now: Time, _allocation: AllocationId) {}

    pub(crate) fn failed(&mut self, _now: Time, _out: &mut VecDeque<Output>, _allocation: AllocationId) {}

    /// The connection is closed.
    pub(crate) fn closed(&mut self, _now: Time, _out: &mut VecDeque<Output>, _allocation: AllocationId) {}

    /// Media came through to a client.
    pub(crate) fn confirm(&mut self, _now: Time, _allocation: AllocationId) {}

    /// The holder's last request is over, in order: its lease is kept for its window if it was confirmed.
    pub(crate) fn rest(&mut self, _now: Time, _holder: Holder) {}

    /// The holder is over, or its lease is for another reason: nothing of it is kept but connections that are being closed.
    pub(crate) fn end(&mut self, _now: Time, _out: &mut VecDeque<Output>, _holder: Holder) {}

    /// The holder became stronger or weaker; `None`: it is kept open for nobody, and may be closed for anybody.
    pub(crate) fn set_strength(&mut self, _now: Time, _holder: Holder, _strength: Option<Strength>) {}

    /// What was to be told.
    pub(crate) fn poll(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Nobody is granted anything any more; whoever waits is told.
    pub(crate) fn drain(&mut self) {}

    pub(crate) fn deadline(&self) -> Option<Time> {
        None
    }

    /// Runs every deadline that is due.
    pub(crate) fn tick(&mut self, _now: Time, _out: &mut VecDeque<Output>) {}
}
