//! Connections that count on an account, and what each holder has of them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::lease::{Binding, Lease, LeaseId};
use super::pool::Account;
use super::queue::Waiting;
use super::{AccountState, Accounts, Acquired, Ending, Holder, Pin, Strength, Told, Wake, Why};
use crate::input::{AccountId, AllocationId, FeedId, Grant, Note, Output, ProviderId, TitleId, Viewing};
use crate::time::Time;

/// How far a connection has come. It counts until it is closed, which is when it is gone from the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum AllocationState {
    /// No media came through yet.
    Opening,
    /// Media came through.
    Active,
    /// It was given up; the provider still counts it.
    Closing,
}

impl AllocationState {
    /// The word for it in status and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            AllocationState::Opening => "opening",
            AllocationState::Active => "active",
            AllocationState::Closing => "closing",
        }
    }
}

/// What its provider knows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Trace {
    /// It may go on counting it for a while when it is closed.
    Counted,
    /// It refused it, and never counted it.
    Refused,
    /// It never saw it.
    Unseen,
}

/// One connection that counts on an account.
#[derive(Debug, Serialize, Deserialize)]
pub struct Allocation {
    /// For whom.
    pub holder: Holder,
    /// On which account.
    pub account: AccountId,
    /// Under which generation of its holder's lease; `None` for a probe.
    pub binding: Option<Binding>,
    /// How far it has come.
    pub state: AllocationState,
    /// When it was granted.
    pub since: Time,
    /// Until when it was granted.
    pub expires: Time,
    pub(super) title: TitleId,
    pub(super) trace: Trace,
    /// Who waits for its slot.
    pub(super) expected_by: Option<Holder>,
    pub(super) armed: Time,
}

/// Who grants the slots of accounts, and for how long: this process alone, or one that several share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Authority {
    /// For how long it grants a slot.
    pub lifetime: Duration,
}

impl Authority {
    /// The tables here: at once, and for ever.
    pub const LOCAL: Authority = Authority { lifetime: Duration::MAX };

    /// Until when what is granted now is.
    fn grant(self, now: Time) -> Time {
        now + self.lifetime
    }
}

/// What somebody has or waits for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Holding {
    /// `None`: it is kept open for nobody.
    pub strength: Option<Strength>,
    pub since: Time,
    pub window: Duration,
    pub title: TitleId,
    pub viewing: Option<Viewing>,
    pub feed: Option<FeedId>,
    pub wish: Option<Waiting>,
    pub lease: Option<LeaseId>,
    /// Its connection that was not given up.
    pub live: Option<AllocationId>,
    /// Its connections that were.
    pub closing: Vec<AllocationId>,
    /// Where and when its last connection was closed.
    pub closed: Option<(AccountId, Time)>,
    /// Whether its lease ran out before any media came through.
    pub silent: bool,
    /// Where it keeps a slot from others without a connection.
    pub reserves: Option<AccountId>,
    /// Where it stands among those that may have to give way.
    pub ranked: Option<super::preempt::Ranked>,
}

impl Holding {
    pub fn new(now: Time) -> Self {
        Holding {
            strength: None,
            since: now,
            window: Duration::ZERO,
            title: TitleId(0),
            viewing: None,
            feed: None,
            wish: None,
            lease: None,
            live: None,
            closing: Vec::new(),
            closed: None,
            silent: false,
            reserves: None,
            ranked: None,
        }
    }
}

impl Account {
    pub(super) fn state(&self, account: AccountId) -> AccountState<'_> {
        let Account { provider, limit, used, reserved, serves, shunned, counts, .. } = self;
        AccountState {
            account,
            provider: *provider,
            limit: *limit,
            used: *used,
            reserved: *reserved,
            resting: self.resting.len() as u32,
            graced: self.graced.is_some(),
            serves: *serves,
            shunned: *shunned,
            counts,
        }
    }
}

impl Accounts {
    /// Whether the account will do for a wish at all.
    pub(super) fn fits(&self, account: AccountId, waiting: &Waiting) -> bool {
        let row = self.pools.get(account).filter(|row| row.serves);
        row.is_some_and(|row| waiting.index(account, row.provider).is_some())
    }

    /// Whether the account will do for a wish, and has a slot for it now.
    pub(super) fn has(&self, account: AccountId, holder: Holder, waiting: &Waiting) -> bool {
        let own = self.holders.get(&holder).is_some_and(|holding| holding.reserves == Some(account));
        let has = |row: &Account| row.has(waiting.title, u32::from(own));
        self.fits(account, waiting) && self.pools.get(account).is_some_and(has)
    }

    /// An account that a wish can have at once: the pinned one, the one of its lease, the one that its player had last, or the one
    /// whose turn it is.
    pub(super) fn find(&self, now: Time, holder: Holder, waiting: &Waiting, avoid: &[AccountId]) -> Option<AccountId> {
        let holding = self.holders.get(&holder)?;
        let pinned = match waiting.pin {
            Pin::None => None,
            Pin::Firm(account) | Pin::Loose(account) => Some(account),
        };
        let leased = holding.lease.and_then(|lease| Some(self.leases.get(lease)?.account));
        let last = holding.viewing.and_then(|viewing| self.affinities.recall(now, &viewing));
        let last = last.filter(|last| self.pools.get(*last).is_some_and(|row| row.shunned <= now));
        let known = [pinned, leased, last].into_iter().flatten().filter(|account| !avoid.contains(account));
        let owed = |account: AccountId| self.is_owed(account, holder, waiting.strength);
        let has = |account: &AccountId| self.has(*account, holder, waiting) && !owed(*account);
        if let Some(account) = known.into_iter().find(has) {
            return Some(account);
        }
        if matches!(waiting.pin, Pin::Firm(_)) {
            return None;
        }
        let pick = |provider: &ProviderId, title| self.pools.pick(now, *provider, title, avoid);
        waiting.providers.iter().find_map(|provider| {
            pick(provider, Some(waiting.title)).filter(|account| !owed(*account)).or_else(|| pick(provider, None))
        })
    }

    /// An account that a wish can have by grace: one connection more than there may be.
    pub(super) fn bearing(&self, waiting: &Waiting) -> Option<AccountId> {
        if let Pin::Firm(pin) = waiting.pin {
            return Some(pin).filter(|pin| self.pools.get(*pin).is_some_and(Account::bears));
        }
        waiting.providers.iter().find_map(|provider| self.pools.bearing(*provider))
    }

    pub(super) fn granted(&mut self, now: Time, holder: Holder, waiting: &Waiting, account: AccountId) -> Acquired {
        let provider = self.pools.get(account).map_or(ProviderId(0), |row| row.provider);
        let index = waiting.index(account, provider).unwrap_or_default();
        Acquired::Granted { grant: self.grant(now, holder, account), index }
    }

    /// Gives the holder a connection on the account.
    fn grant(&mut self, now: Time, holder: Holder, account: AccountId) -> Grant {
        let title = self.holders.get(&holder).map_or(TitleId(0), |holding| holding.title);
        self.pools.wake(account, title);
        self.rearm(account);
        self.pools.change(account, |row| {
            row.used += 1;
            row.counts.granted += 1;
        });
        self.pools.turn(account);
        let expires = self.authority.grant(now);
        let allocation = self.allocations.insert(Allocation {
            holder,
            account,
            binding: None,
            state: AllocationState::Opening,
            since: now,
            expires,
            title,
            trace: Trace::Counted,
            expected_by: None,
            armed: Time::NEVER,
        });
        if let Some(row) = self.allocations.get_mut(allocation) {
            self.timers.set(Wake::Grant(allocation), &mut row.armed, expires);
        }
        if let Some(holding) = self.holders.get_mut(&holder) {
            if holding.lease.is_none() && holding.closing.is_empty() {
                holding.since = now;
            }
            (holding.live, holding.silent) = (Some(allocation), false);
        }
        if !matches!(holder, Holder::Probe(_)) {
            self.bind(now, holder, allocation);
        }
        self.refresh(now, holder);
        Grant { account, allocation }
    }

    /// The holder's lease is of this connection from here on.
    pub(super) fn bind(&mut self, now: Time, holder: Holder, allocation: AllocationId) {
        let Some(account) = self.allocations.get(allocation).map(|row| row.account) else { return };
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        let (until, window) = (now + self.starting_deadline, holding.window);
        let known = holding.lease.filter(|lease| self.leases.get(*lease).is_some());
        let id = match known {
            Some(id) => id,
            None => self.leases.insert(Lease::new(holder, account, window, until)),
        };
        holding.lease = Some(id);
        let Some(lease) = self.leases.get_mut(id) else { return };
        if known.is_some() {
            lease.again(account, window, until);
        }
        let binding = Binding { lease: id, generation: lease.generation };
        self.timers.set(Wake::Lease(id), &mut lease.armed, lease.deadline);
        if let Some(viewing) = &holding.viewing {
            self.affinities.rebind(viewing, account, binding);
        }
        if let Some(row) = self.allocations.get_mut(allocation) {
            row.binding = Some(binding);
        }
    }

    /// Whether that is the present generation of a lease that lasts.
    pub(super) fn is_current(&self, binding: Binding) -> bool {
        self.leases.get(binding.lease).is_some_and(|lease| lease.generation == binding.generation)
    }

    /// A lease's deadline passed.
    pub(super) fn lease_due(&mut self, now: Time, out: &mut VecDeque<Output>, id: LeaseId) {
        let Some(lease) = self.leases.get_mut(id) else { return };
        lease.armed = Time::NEVER;
        let (holder, account, starting) = (lease.holder, lease.account, lease.state == super::LeaseState::Starting);
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        if !starting && holding.live.is_some() {
            // It is looked at again when that is over.
            return;
        }
        holding.silent = starting;
        self.end_lease(holder, if starting { Ending::Failed } else { Ending::InOrder });
        self.pools.change(account, |account| account.counts.expired += 1);
        self.told.push_back(Told::Expired { holder });
        self.refreshed(now, out, holder);
    }

    /// The holder's lease, if it has one, is over.
    pub(super) fn end_lease(&mut self, holder: Holder, ending: Ending) {
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        let Some(id) = holding.lease.take() else { return };
        let Some(mut lease) = self.leases.remove(id) else { return };
        self.timers.set(Wake::Lease(id), &mut lease.armed, Time::NEVER);
        if let Some(viewing) = holding.viewing.filter(|_| ending == Ending::Failed) {
            let binding = Binding { lease: id, generation: lease.generation };
            self.affinities.forget(&viewing, lease.account, binding);
        }
    }

    /// The holder loses its account: its connection is given up, its lease over.
    pub(super) fn give_up(&mut self, now: Time, holder: Holder, why: Why) {
        self.withdraw(holder);
        if let Some(live) = self.holders.get(&holder).and_then(|holding| holding.live) {
            self.let_go(now, live);
        }
        self.end_lease(holder, Ending::Failed);
        self.told.push_back(Told::GiveUp { holder, why });
        self.refresh(now, holder);
    }

    /// What follows for the tables from what became of a holder.
    pub(super) fn refresh(&mut self, now: Time, holder: Holder) {
        let Some(holding) = self.holders.get(&holder) else { return };
        let lease = holding.lease.and_then(|lease| self.leases.get(lease)).filter(|lease| lease.reserves());
        let kept = lease.map(|lease| lease.account);
        let connected = |account: AccountId| {
            let mut all = holding.live.iter().chain(&holding.closing);
            all.any(|own| self.allocations.get(*own).is_some_and(|row| row.account == account))
        };
        let reserves = kept.filter(|account| !connected(*account));
        let live = holding.live.and_then(|live| self.allocations.get(live)).map(|row| row.account);
        let (was, closed, title) = (holding.reserves, holding.closed, holding.title);
        self.rank(holder, live.or(kept));
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        holding.reserves = reserves;
        if was != reserves {
            let waits = holding.wish.is_some();
            if let Some(id) = was {
                self.keepers.remove(&(id, holder));
            }
            self.keepers.extend(reserves.filter(|_| waits).map(|id| (id, holder)));
            if let Some(id) = was {
                self.pools.change(id, |account| account.reserved -= 1);
                self.freed.push(id);
                // What was kept need not rest; now it has to, if that is not over.
                let cooling = self.pools.get(id).filter(|row| row.limit > 0).map_or(Duration::ZERO, |row| row.cooling);
                let until = closed.filter(|(account, _)| *account == id).map(|(_, at)| at + cooling);
                if let Some(until) = until.filter(|until| *until > now && live != Some(id)) {
                    self.pools.rest(id, title, until);
                    self.rearm(id);
                }
            }
            if let Some(id) = reserves {
                self.pools.change(id, |account| account.reserved += 1);
            }
        }
        self.sweep(holder);
    }

    /// As [`Accounts::refresh`], and what was kept goes to whoever waits for it.
    pub(super) fn refreshed(&mut self, now: Time, out: &mut VecDeque<Output>, holder: Holder) {
        let account = self.holders.get(&holder).and_then(|holding| Some(holding.ranked.as_ref()?.account));
        self.refresh(now, holder);
        self.serve_freed(now);
        if let Some(account) = account {
            self.review_at(now, out, account);
            self.serve_freed(now);
        }
    }

    /// Forgets a holder that has nothing.
    pub(super) fn sweep(&mut self, holder: Holder) {
        let nothing = |holding: &Holding| {
            let none = holding.wish.is_none() && holding.lease.is_none() && holding.live.is_none();
            none && holding.closing.is_empty()
        };
        if self.holders.get(&holder).is_some_and(nothing) {
            debug_assert!(self.holders.get(&holder).is_some_and(|row| row.reserves.is_none() && row.ranked.is_none()));
            self.holders.remove(&holder);
        }
    }

    /// Sets the timer of the slots that rest.
    pub(super) fn rearm(&mut self, id: AccountId) {
        let Some(account) = self.pools.get(id) else { return };
        let at = account.resting.front().map_or(Time::NEVER, |(until, _)| *until);
        let mut armed = account.rest_armed;
        if armed != at {
            self.timers.set(Wake::Rest(id), &mut armed, at);
            self.pools.change(id, |account| account.rest_armed = armed);
        }
    }

    /// Accounts whose time is over are left out from here on.
    pub(super) fn retire(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some(account) = self.pools.ended(now) {
            self.unrank_all(account);
            out.push_back(Output::Note(Note::AccountOver { account }));
        }
    }
}
