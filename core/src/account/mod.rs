//! Who may use which account of which provider, and who gives way to whom.
//!
//! A provider is a pool of accounts, each with so many connections. Whoever wants a title there wishes for an account, is granted
//! one, waits for one, or finds none. A connection is counted from its grant until it is closed, whoever gave it up. Rules: spec
//! playback §4 (acquire order, allocations, leases), §9 (invariants).

mod affinity;
mod allocation;
mod late;
mod lease;
#[cfg(test)]
mod lease_tests;
mod pool;
mod preempt;
#[cfg(test)]
mod preempt_tests;
mod queue;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod tests;
mod wish;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use affinity::Affinities;
pub use allocation::{Allocation, AllocationState};
use allocation::{Authority, Holding, Trace};
pub(crate) use late::Late;
use lease::Rest;
pub use lease::{Binding, Lease, LeaseId, LeaseKind, LeaseState};
pub use pool::AccountCounts;
use pool::{Account, Pools};
use preempt::Victims;
use queue::{Queue, Waiting};
pub(crate) use wish::{Acquired, Grace, Patience, Pin, Told, Why, Wish};
pub use wish::{Holder, Strength};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::id::Table;
use crate::input::{AccountId, AllocationId, AllocationKind, Failure, Loss, Note, Output, ProviderId, RefuseReason};
use crate::time::{Date, Time, Timers};

/// An account as it stands.
#[derive(Clone, Copy, Debug)]
pub struct AccountState<'a> {
    /// Which.
    pub account: AccountId,
    /// Whose.
    pub provider: ProviderId,
    /// How many connections at once; 0 = any number.
    pub limit: u32,
    /// Connections that are not closed.
    pub used: u32,
    /// Slots that leases keep without a connection.
    pub reserved: u32,
    /// Slots that rest after a connection was closed.
    pub resting: u32,
    /// Whether one of its connections is one more than there may be, by grace.
    pub graced: bool,
    /// Whether it may be used: enabled, and its time not over.
    pub serves: bool,
    /// Until then others of its priority are preferred: the provider did not want it.
    pub shunned: Time,
    /// What happened so far.
    pub counts: &'a AccountCounts,
}

/// For how long others are preferred to an account that its provider did not want.
const SHUNNED: Duration = Duration::from_secs(60);

/// What was to blame when a connection came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blame {
    /// The provider does not want the account: 401, 403, or a page in place of media.
    Account,
    /// The account had as many connections as it may have, as its provider counts them.
    Limit,
    /// Anything else, which another account may meet as well.
    Connection,
}

impl From<Failure> for Blame {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Page => Blame::Account,
            _ => failure.refusal().map_or(Blame::Connection, |refusal| Blame::from(Loss::from(refusal))),
        }
    }
}

impl From<Loss> for Blame {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Forbidden | Loss::Page => Blame::Account,
            Loss::Limit => Blame::Limit,
            _ => Blame::Connection,
        }
    }
}

/// Who waits for a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
enum Wake {
    Wish(Holder),
    Lease(LeaseId),
    Grace(AccountId),
    Rest(AccountId),
    Grant(AllocationId),
}

/// The account room.
#[derive(Debug, Serialize, Deserialize)]
pub struct Accounts {
    starting_deadline: Duration,
    preemption_wait: Duration,
    affinity_ttl: Duration,
    authority: Authority,
    pools: Pools,
    allocations: Table<AllocationKind, Allocation>,
    leases: Table<LeaseKind, Lease>,
    holders: BTreeMap<Holder, Holding>,
    queue: Queue,
    waiting: usize,
    /// Those of them that keep a slot of an account, which they may use whoever else waits.
    keepers: BTreeSet<(AccountId, Holder)>,
    arrivals: u64,
    victims: Victims,
    /// Connections that are being closed and whose slots nobody counts on.
    coming: BTreeSet<(AccountId, AllocationId)>,
    /// Accounts where a slot is kept no longer, to be looked at when all that happened is done.
    freed: Vec<AccountId>,
    affinities: Affinities,
    timers: Timers<Wake>,
    told: VecDeque<Told>,
    draining: bool,
    stale: u64,
}

impl Accounts {
    pub(crate) fn new(config: &Config) -> Self {
        Accounts {
            starting_deadline: config.playback.starting_deadline,
            preemption_wait: config.playback.preemption_wait,
            affinity_ttl: config.playback.provider_affinity_ttl,
            authority: Authority::LOCAL,
            pools: Pools::new(&config.providers),
            allocations: Table::default(),
            leases: Table::default(),
            holders: BTreeMap::new(),
            queue: Queue::default(),
            waiting: 0,
            keepers: BTreeSet::new(),
            arrivals: 0,
            victims: Victims::default(),
            coming: BTreeSet::new(),
            freed: Vec::new(),
            affinities: Affinities::default(),
            timers: Timers::default(),
            told: VecDeque::new(),
            draining: false,
            stale: 0,
        }
    }

    /// All accounts as they stand, in the order of the configuration.
    pub fn accounts(&self) -> impl Iterator<Item = AccountState<'_>> {
        self.pools.all().map(|(id, account)| account.state(id))
    }

    /// An account as it stands.
    pub fn account(&self, id: AccountId) -> Option<AccountState<'_>> {
        self.pools.get(id).map(|account| account.state(id))
    }

    /// All connections that are not closed.
    pub fn allocations(&self) -> impl Iterator<Item = (AllocationId, &Allocation)> {
        self.allocations.iter()
    }

    /// A connection, if it is not closed.
    pub fn allocation(&self, id: AllocationId) -> Option<&Allocation> {
        self.allocations.get(id)
    }

    /// All leases.
    pub fn leases(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.leases.iter()
    }

    /// The lease of a holder, if it has one.
    pub fn lease_of(&self, holder: Holder) -> Option<&Lease> {
        self.leases.get(self.holders.get(&holder)?.lease?)
    }

    /// From when on an account may not be used; `None` where it may not anyhow, or always may.
    pub fn until(&self, account: AccountId) -> Option<Date> {
        self.pools.get(account).and_then(|own| own.until)
    }

    /// How many wishes wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many players' last accounts are remembered.
    pub fn affinities(&self) -> usize {
        self.affinities.len()
    }

    /// How many deadlines are armed.
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// How many calls came too late, or named what never was.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    /// Wishes for an account. A holder that has a connection already has to give it up before ([`Accounts::release`]); where that
    /// is still being closed and its slot is needed, the wish waits for it. A wish of its that waits is given up for this one.
    pub(crate) fn acquire(&mut self, now: Time, out: &mut VecDeque<Output>, wish: Wish<'_>) -> Acquired {
        self.retire(now, out);
        let holder = wish.holder;
        self.withdraw(holder);
        if self.draining {
            return Acquired::Exhausted;
        }
        if let Some(live) = self.holders.get(&holder).and_then(|holding| holding.live) {
            self.let_go(now, live);
        }
        let holding = self.holders.entry(holder).or_insert_with(|| Holding::new(now));
        holding.strength = Some(wish.strength);
        (holding.window, holding.title, holding.viewing) = (wish.window, wish.title, wish.viewing);
        holding.feed = wish.feed;
        self.arrivals += 1;
        let mut waiting = Waiting {
            providers: wish.providers.into(),
            pin: wish.pin,
            title: wish.title,
            strength: wish.strength,
            arrival: self.arrivals,
            until: now,
            preempts: false,
            grace: Grace::Hold,
            expects: None,
            armed: Time::NEVER,
        };
        let granted =
            self.find(now, holder, &waiting, wish.avoid).map(|account| self.granted(now, holder, &waiting, account));
        let acquired = granted.unwrap_or_else(|| {
            (waiting.until, waiting.preempts, waiting.grace) = match wish.patience {
                Patience::None => return Acquired::Exhausted,
                _ if !(wish.avoid.is_empty()
                    || self.pin_beside(now, holder, &mut waiting, wish.avoid)
                    || (wish.patience.is_grace(now) && self.pin_other(&mut waiting, wish.avoid))) =>
                {
                    return Acquired::Exhausted;
                }
                Patience::AtHand(_) if self.coming(now, holder, &waiting).is_none() => return Acquired::Exhausted,
                Patience::AtHand(until) => (until, true, Grace::Hold),
                Patience::Meek(until) => (until, false, Grace::Hold),
                Patience::Until(until, grace) => (until, true, grace),
            };
            self.wait(now, out, holder, waiting)
        });
        self.refresh(now, holder);
        self.serve_freed(now);
        acquired
    }

    /// Makes way for a wish that finds nothing free, or lets it wait.
    fn wait(&mut self, now: Time, out: &mut VecDeque<Output>, holder: Holder, mut waiting: Waiting) -> Acquired {
        let able = match waiting.pin {
            Pin::Firm(pin) => self.fits(pin, &waiting),
            _ => waiting.providers.iter().any(|provider| self.pools.serves(*provider)),
        };
        if !able {
            return Acquired::Exhausted;
        }
        if !self.expect(now, holder, &mut waiting) {
            match waiting.preempts.then(|| self.preempt(now, out, holder, &waiting)).flatten() {
                Some(Way::Clear(account)) => return self.granted(now, holder, &waiting, account),
                Some(Way::Closing(allocation)) => {
                    self.count_on(holder, &mut waiting, allocation);
                    waiting.until = now + self.preemption_wait;
                }
                None if waiting.grace == Grace::Instant && waiting.until > now => {
                    if let Some(account) = self.bearing(&waiting) {
                        let until = waiting.until;
                        let acquired = self.granted(now, holder, &waiting, account);
                        self.overlap(account, acquired, until);
                        self.note_grace(out, holder, &waiting);
                        return acquired;
                    }
                    self.note_grace(out, holder, &waiting);
                }
                None if waiting.until > now => self.note_grace(out, holder, &waiting),
                None => return Acquired::Exhausted,
            }
        } else {
            waiting.until = waiting.until.max(now + self.preemption_wait);
        }
        self.enqueue(holder, waiting);
        Acquired::Waiting
    }

    fn note_grace(&self, out: &mut VecDeque<Output>, holder: Holder, waiting: &Waiting) {
        if let Some(provider) = waiting.providers.first().copied() {
            out.push_back(Output::Note(Note::AccountGraced { holder, provider }));
        }
    }

    /// A wish that waits is given up.
    pub(crate) fn withdraw(&mut self, holder: Holder) {
        if let Some(waiting) = self.unqueue(holder) {
            self.forgo(waiting.expects);
            self.sweep(holder);
        }
    }

    /// Why nobody gets what these providers have, where none of their accounts is to be had.
    pub(crate) fn lack(&self, providers: &[ProviderId]) -> RefuseReason {
        let serves = providers.iter().any(|provider| self.pools.serves(*provider));
        if serves { RefuseReason::ProviderLimit } else { RefuseReason::AccountsOver }
    }

    /// Whether a provider has an account that may be used and is none of these.
    pub(crate) fn has_other(&self, provider: ProviderId, than: &[AccountId]) -> bool {
        self.pools.has_other(provider, than)
    }

    /// The holder needs the connection no more: it keeps its slot until it is closed.
    pub(crate) fn release(&mut self, now: Time, allocation: AllocationId) {
        self.let_go(now, allocation);
        self.serve_freed(now);
    }

    fn let_go(&mut self, now: Time, allocation: AllocationId) {
        let Some(row) = self.allocations.get_mut(allocation) else {
            self.stale += 1;
            return;
        };
        if row.state == AllocationState::Closing {
            return;
        }
        row.state = AllocationState::Closing;
        let (holder, account) = (row.holder, row.account);
        self.timers.set(Wake::Grant(allocation), &mut row.armed, Time::NEVER);
        if let Some(holding) = self.holders.get_mut(&holder) {
            holding.live = None;
            holding.closing.push(allocation);
            if let Some((id, lease)) = holding.lease.and_then(|id| Some((id, self.leases.get_mut(id)?))) {
                // Its window may have passed while there was a connection.
                self.timers.set(Wake::Lease(id), &mut lease.armed, lease.deadline.max(now));
            }
        }
        self.coming.insert((account, allocation));
        self.refresh(now, holder);
    }

    /// The connection came to nothing at the provider: released, and the lease under which it was granted is over, and with it
    /// what is remembered of the player's account. Of one that was superseded nothing follows but its release. An account that is to
    /// blame is tried last for a while.
    pub(crate) fn failed(&mut self, now: Time, out: &mut VecDeque<Output>, allocation: AllocationId, blame: Blame) {
        let Some(row) = self.allocations.get(allocation) else {
            self.stale += 1;
            return;
        };
        let (holder, account, binding) = (row.holder, row.account, row.binding);
        if blame != Blame::Connection {
            self.discount(allocation);
        }
        self.pools.change(account, |account| {
            account.counts.failed += 1;
            if blame == Blame::Account {
                account.shunned = now + SHUNNED;
            }
        });
        self.let_go(now, allocation);
        if binding.is_some_and(|binding| self.is_current(binding)) {
            self.end_lease(holder, Ending::Failed);
            self.refreshed(now, out, holder);
        } else {
            self.stale += 1;
        }
    }

    /// The connection is closed.
    pub(crate) fn closed(&mut self, now: Time, out: &mut VecDeque<Output>, allocation: AllocationId) {
        self.retire(now, out);
        let Some(mut row) = self.allocations.remove(allocation) else {
            self.stale += 1;
            return;
        };
        self.timers.set(Wake::Grant(allocation), &mut row.armed, Time::NEVER);
        let (holder, id) = (row.holder, row.account);
        self.coming.remove(&(id, allocation));
        self.pools.change(id, |account| {
            account.used -= 1;
            if row.trace == Trace::Counted {
                account.lateness.closed(now, row.title);
            }
        });
        if let Some(holding) = self.holders.get_mut(&holder) {
            if holding.live == Some(allocation) {
                holding.live = None;
                if let Some((id, lease)) = holding.lease.and_then(|id| Some((id, self.leases.get_mut(id)?))) {
                    self.timers.set(Wake::Lease(id), &mut lease.armed, lease.deadline.max(now));
                }
            }
            holding.closing.retain(|own| *own != allocation);
            if row.trace != Trace::Unseen {
                holding.closed = Some((id, now));
            }
        }
        let deprived = row.expected_by;
        if let Some(deprived) = deprived {
            self.set_expects(deprived, None);
        }
        self.refresh(now, holder);
        let keeps = self.holders.get(&holder).is_some_and(|holding| holding.reserves == Some(id));
        let account = self.pools.get(id).filter(|account| account.limit > 0);
        let cooled = account.and_then(|account| Some(account.last_close(now, row.trace)? + account.cooling));
        if let Some(until) = cooled.filter(|until| !keeps && *until > now) {
            self.pools.rest(id, row.title, until);
            self.rearm(id);
            if let Some(holding) = self.holders.get_mut(&holder) {
                holding.closed = None;
            }
        }
        self.settle_grace(id, allocation);
        self.pass_on(now, holder, id);
        self.serve(now, id);
        if let Some(deprived) = deprived {
            self.review(now, out, deprived);
        }
        self.sweep(holder);
        self.serve_freed(now);
    }

    /// What was granted is used only now, when its holder's last connection is closed. If its lease ran out over that, it begins anew;
    /// if it was put off for longer than until now, it has no more time for that.
    pub(crate) fn opened(&mut self, now: Time, allocation: AllocationId) {
        self.put_off_no_more(now, allocation);
        let Some(holder) = self.allocations.get(allocation).map(|row| row.holder) else { return };
        let Some(holding) = self.holders.get_mut(&holder).filter(|holding| holding.lease.is_none()) else { return };
        holding.silent = false;
        self.bind(now, holder, allocation);
        self.refresh(now, holder);
        self.serve_freed(now);
    }

    /// Media came through to a client.
    pub(crate) fn confirm(&mut self, now: Time, allocation: AllocationId) {
        let Some(row) = self.allocations.get_mut(allocation).filter(|row| row.state != AllocationState::Closing) else {
            self.stale += 1;
            return;
        };
        let (holder, account) = (row.holder, row.account);
        let first = row.state == AllocationState::Opening;
        row.state = AllocationState::Active;
        if first {
            self.pools.change(account, |account| {
                account.counts.confirmed += 1;
                account.shunned = Time::ZERO;
            });
        }
        if let Some(holding) = self.holders.get_mut(&holder) {
            holding.silent = false;
        }
        if !matches!(holder, Holder::Probe(_)) {
            if self.holders.get(&holder).is_some_and(|holding| holding.lease.is_none()) {
                // It took longer than `starting_deadline`, and nobody needed the account meanwhile.
                self.bind(now, holder, allocation);
            }
            self.confirm_lease(now, holder, allocation);
        }
        self.refresh(now, holder);
        self.serve_freed(now);
    }

    fn confirm_lease(&mut self, now: Time, holder: Holder, allocation: AllocationId) {
        let Some(binding) = self.allocations.get(allocation).and_then(|row| row.binding) else { return };
        let Some(lease) = self.leases.get_mut(binding.lease).filter(|row| row.generation == binding.generation) else {
            self.stale += 1;
            return;
        };
        lease.confirm(now);
        let (account, window) = (lease.account, lease.window);
        self.timers.set(Wake::Lease(binding.lease), &mut lease.armed, lease.deadline);
        let viewing = self.holders.get(&holder).and_then(|holding| holding.viewing);
        if let Some(viewing) = viewing.filter(|_| !window.is_zero()) {
            self.affinities.remember(now, viewing, account, binding, now + window + self.affinity_ttl);
        }
    }

    /// The holder's last request is over, in order: its lease is kept for its window if it was confirmed.
    pub(crate) fn rest(&mut self, now: Time, out: &mut VecDeque<Output>, holder: Holder) {
        let Some(holding) = self.holders.get(&holder) else { return };
        if let Some(live) = holding.live {
            self.let_go(now, live);
        }
        let Some(id) = self.holders.get(&holder).and_then(|holding| holding.lease) else { return };
        let Some(lease) = self.leases.get_mut(id) else { return };
        match lease.rest(now) {
            Rest::Kept => self.timers.set(Wake::Lease(id), &mut lease.armed, lease.deadline),
            Rest::Over => self.end_lease(holder, Ending::InOrder),
        }
        self.refreshed(now, out, holder);
    }

    /// The holder is over, or its lease is for another reason: nothing of it is kept but connections that are being closed.
    pub(crate) fn end(&mut self, now: Time, out: &mut VecDeque<Output>, holder: Holder) {
        self.withdraw(holder);
        let Some(holding) = self.holders.get(&holder) else { return };
        if let Some(live) = holding.live {
            self.let_go(now, live);
        }
        self.end_lease(holder, Ending::Failed);
        self.refreshed(now, out, holder);
    }

    /// The holder became stronger or weaker; `None`: it is kept open for nobody, and may be closed for anybody.
    pub(crate) fn set_strength(
        &mut self,
        now: Time,
        out: &mut VecDeque<Output>,
        holder: Holder,
        strength: Option<Strength>,
    ) {
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        if holding.strength == strength {
            return;
        }
        holding.strength = strength;
        if let Some(waiting) = &mut holding.wish {
            self.queue.remove(holder, waiting);
            waiting.strength = strength.unwrap_or(Strength::PROBE);
            self.queue.insert(holder, waiting);
            self.review(now, out, holder);
        }
        if strength.is_none() && self.is_over_limit(holder) {
            self.give_up(now, holder, Why::Idle);
            return self.serve_freed(now);
        }
        self.refreshed(now, out, holder);
    }

    /// Whether there is nothing to be told.
    pub(crate) fn has_told_all(&self) -> bool {
        self.told.is_empty()
    }

    /// What was to be told.
    pub(crate) fn poll(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Nobody is granted anything any more; whoever waits is told.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
        let waiting = |(holder, holding): (&Holder, &Holding)| holding.wish.is_some().then_some(*holder);
        let all: VecDeque<Holder> = self.holders.iter().filter_map(waiting).collect();
        for holder in all {
            self.withdraw(holder);
            self.told.push_back(Told::Exhausted { holder });
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        [self.timers.deadline(), self.pools.next_end()].into_iter().flatten().min()
    }

    /// Whether there is something for [`Accounts::tick`] to do.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        debug_assert!(self.freed.is_empty(), "what is kept no longer is granted in the call in which it became free");
        self.deadline().is_some_and(|due| due <= now)
    }

    /// The wall clock was set by so many µs: accounts end on dates.
    pub(crate) fn set_clock(&mut self, now: Time, out: &mut VecDeque<Output>, by: i64) {
        let again = self.pools.set_clock(now, by);
        self.retire(now, out);
        if again.is_empty() {
            return;
        }
        // Whoever went on there may have to give way again.
        let holders: Vec<Holder> = self.holders.keys().copied().collect();
        holders.into_iter().for_each(|holder| self.refresh(now, holder));
        for id in again {
            self.serve(now, id);
            self.review_at(now, out, id);
        }
        self.serve_freed(now);
    }

    /// An account's provider says how many connections it allows: what is over is not closed for that, and what is free now is granted.
    pub(crate) fn allow(&mut self, now: Time, out: &mut VecDeque<Output>, id: AccountId, connections: u32) {
        self.retire(now, out);
        match self.pools.change(id, |account| account.allow(connections)) {
            Some(true) => {}
            Some(false) => return,
            None => return self.stale += 1,
        }
        // Where there was no limit nobody had to give way, and where there is none any more nobody has to.
        let holders: Vec<Holder> = self.holders.keys().copied().collect();
        holders.into_iter().for_each(|holder| self.refresh(now, holder));
        self.close_lingering(now, id);
        self.serve(now, id);
        self.review_at(now, out, id);
        self.serve_freed(now);
    }

    /// Runs every deadline that is due.
    pub(crate) fn tick(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.retire(now, out);
        while let Some(wake) = self.timers.expired(now) {
            match wake {
                Wake::Wish(holder) => {
                    if let Some(waiting) = self.holders.get_mut(&holder).and_then(|holding| holding.wish.as_mut()) {
                        waiting.armed = Time::NEVER;
                        self.withdraw(holder);
                        self.told.push_back(Told::Exhausted { holder });
                    }
                }
                Wake::Lease(lease) => self.lease_due(now, out, lease),
                Wake::Grace(id) => self.grace_due(now, id),
                Wake::Rest(id) => {
                    self.pools.change(id, |account| account.rest_armed = Time::NEVER);
                    self.pools.rested(id, now);
                    self.rearm(id);
                    self.serve(now, id);
                }
                Wake::Grant(allocation) => {
                    if let Some(row) = self.allocations.get_mut(allocation) {
                        row.armed = Time::NEVER;
                        let holder = row.holder;
                        self.give_up(now, holder, Why::GrantOver);
                    }
                }
            }
        }
        self.serve_freed(now);
    }
}

/// How a lease ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// As it should: the player may have its account again.
    InOrder,
    /// Not so: what is remembered of the player's account ends with it.
    Failed,
}

/// What was made for a wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The account has a slot now.
    Clear(AccountId),
    /// It has one when this is closed.
    Closing(AllocationId),
}
