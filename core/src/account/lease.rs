//! Who keeps an account for how long: one lease for each holder (spec: playback §4, the table).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::account::Holder;
use crate::id::Id;
use crate::input::AccountId;
use crate::time::Time;

/// Marks ids of leases.
pub enum LeaseKind {}
/// One holder's hold on an account, from its first grant to its end.
pub type LeaseId = Id<LeaseKind>;

/// One generation of a lease: what was granted under another one may change nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Binding {
    /// Which lease.
    pub lease: LeaseId,
    /// Which generation of it, from 0.
    pub generation: u32,
}

/// How far a lease has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum LeaseState {
    /// No media came through yet.
    Starting,
    /// Media came through.
    Active,
    /// The last request is over.
    Idle,
}

impl LeaseState {
    /// The word for it in status and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            LeaseState::Starting => "starting",
            LeaseState::Active => "active",
            LeaseState::Idle => "idle",
        }
    }
}

/// One lease.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lease {
    /// Whose.
    pub holder: Holder,
    /// On which account.
    pub account: AccountId,
    /// Counts how often it began anew.
    pub generation: u32,
    /// How far it has come.
    pub state: LeaseState,
    /// When it ends unless something happens; [`Time::NEVER`] where that is not up to the clock.
    pub deadline: Time,
    /// How long it is kept without a connection; zero = not at all.
    pub window: Duration,
    /// Until when it is kept if what it began anew for comes to its end without media: a playlist between two segments.
    kept: Option<Time>,
    pub(super) armed: Time,
}

/// Whether a lease lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    Kept,
    Over,
}

impl Lease {
    /// A connection was granted to somebody who has no lease.
    pub(super) fn new(holder: Holder, account: AccountId, window: Duration, until: Time) -> Self {
        let (state, armed) = (LeaseState::Starting, Time::NEVER);
        Lease { holder, account, generation: 0, state, deadline: until, window, kept: None, armed }
    }

    /// Another connection was granted to its holder.
    pub(super) fn again(&mut self, account: AccountId, window: Duration, until: Time) {
        self.window = window;
        if self.account == account {
            match self.state {
                // A loop of attempts adds requests, not time.
                LeaseState::Starting => return,
                // It goes on as it is.
                LeaseState::Active => return,
                LeaseState::Idle => self.kept = Some(self.deadline),
            }
        } else {
            self.kept = None;
        }
        self.account = account;
        self.generation = self.generation.wrapping_add(1);
        (self.state, self.deadline) = (LeaseState::Starting, until);
    }

    /// Media came through to a client.
    pub(super) fn confirm(&mut self, now: Time) {
        self.state = LeaseState::Active;
        self.kept = None;
        self.deadline = if self.window.is_zero() { Time::NEVER } else { now + self.window };
    }

    /// The last request is over, in order.
    pub(super) fn rest(&mut self, now: Time) -> Rest {
        let until = match self.state {
            LeaseState::Starting => self.kept.take(),
            LeaseState::Active => (!self.window.is_zero()).then(|| now + self.window),
            LeaseState::Idle => Some(self.deadline),
        };
        match until.filter(|until| *until > now) {
            Some(until) => {
                (self.state, self.deadline) = (LeaseState::Idle, until);
                Rest::Kept
            }
            None => Rest::Over,
        }
    }

    /// What it began anew for is not made use of: it goes on as it was, unless that would be over by now.
    pub(super) fn resume(&mut self, now: Time) {
        if let Some(until) = self.kept.take_if(|until| *until > now) {
            (self.state, self.deadline) = (LeaseState::Idle, until);
        }
    }

    /// Whether it keeps a slot of its account from others, also while it has no connection.
    pub fn reserves(&self) -> bool {
        self.state != LeaseState::Starting && !self.window.is_zero()
    }
}

impl Accounts {
    /// The leases that keep a slot for somebody who has no connection there at present.
    pub fn kept(&self) -> impl Iterator<Item = &Lease> {
        let kept = |holding: &super::allocation::Holding| {
            let lease = self.leases.get(holding.lease?)?;
            (holding.reserves == Some(lease.account)).then_some(lease)
        };
        self.holders.values().filter_map(kept)
    }
}
