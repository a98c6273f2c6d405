//! Which account of a provider has a slot free: pools, groups by priority, round robin (spec: playback §4).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::late::Lateness;
use crate::config;
use crate::input::{AccountId, AllocationId, ProviderId, TitleId};
use crate::time::{Date, Time};

/// What happened to an account so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountCounts {
    /// Connections that were granted.
    pub granted: u64,
    /// Of these, that media came through.
    pub confirmed: u64,
    /// Of these, one more than there are, by grace.
    pub graced: u64,
    /// Holders that gave way to others.
    pub preempted: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Leases that ran out.
    pub expired: u64,
}

/// One account and who uses how much of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Account {
    pub provider: ProviderId,
    group: u32,
    /// How many connections it may have: as configured, or fewer, where its provider said so; 0 = any number.
    pub limit: u32,
    configured: u32,
    pub overlap: bool,
    pub cooling: Duration,
    /// Whether it may be used: enabled, and its time not over.
    pub serves: bool,
    /// When that is over, where it is enabled and ever so.
    pub until: Option<Date>,
    /// Until then its turn comes last among those of its priority.
    pub shunned: Time,
    /// How late its provider counts.
    pub lateness: Lateness,
    /// Connections that are not closed.
    pub used: u32,
    /// Slots that leases keep without a connection.
    pub reserved: u32,
    /// The connection that is one more than there may be, and until when.
    pub graced: Option<(AllocationId, Time)>,
    /// Slots that rest, until when, and for which title they need not; the first to be over first.
    pub resting: VecDeque<(Time, TitleId)>,
    pub grace_armed: Time,
    pub rest_armed: Time,
    pub counts: AccountCounts,
}

impl Account {
    /// Its provider allows so many connections; 0 = any number. Whether that changes how many it may have.
    pub fn allow(&mut self, connections: u32) -> bool {
        let limit = match (self.configured, connections) {
            (0, one) | (one, 0) => one,
            (configured, allowed) => configured.min(allowed),
        };
        core::mem::replace(&mut self.limit, limit) != limit
    }

    /// Slots that are taken or kept from those that have no special right.
    pub fn taken(&self) -> u32 {
        self.used.saturating_add(self.reserved).saturating_add(self.resting.len() as u32)
    }

    /// Slots that anybody may have.
    pub fn free(&self) -> u32 {
        if self.limit == 0 { u32::MAX } else { self.limit.saturating_sub(self.taken()) }
    }

    /// Whether there are more connections than there may be, or as many with what is kept for others.
    pub fn is_over(&self) -> bool {
        self.limit > 0 && self.used.saturating_add(self.reserved) > self.limit
    }

    /// How many connections more there are than there may be.
    pub fn excess(&self) -> u32 {
        if self.limit == 0 { 0 } else { self.used.saturating_sub(self.limit) }
    }

    /// Whether it bears one connection more now.
    pub fn bears(&self) -> bool {
        self.serves && self.overlap && self.limit > 0 && self.graced.is_none() && self.taken() <= self.limit
    }

    fn rests_for(&self, title: TitleId) -> bool {
        self.resting.iter().any(|(_, own)| *own == title)
    }

    /// Whether somebody has a slot for this title who has `own` of those that are kept.
    pub fn has(&self, title: TitleId, own: u32) -> bool {
        if self.limit == 0 {
            return true;
        }
        let own = own + u32::from(self.rests_for(title));
        self.used < self.limit && self.taken().saturating_sub(own) < self.limit
    }
}

/// Accounts of one priority.
#[derive(Debug, Serialize, Deserialize)]
struct Group {
    /// Where the next turn begins.
    next: u32,
    /// With a slot for anybody.
    free: BTreeSet<u32>,
    /// With a slot that rests, by the title that may have it.
    resting: BTreeSet<(TitleId, u32)>,
    /// That bear one connection more and have none yet.
    bears: BTreeSet<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pool {
    /// The strongest first.
    groups: Vec<Group>,
    /// Its accounts' places: from, to.
    accounts: (u32, u32),
    serving: usize,
}

/// All accounts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    accounts: Vec<Account>,
    /// When accounts' times are over.
    ends: BTreeSet<(Date, u32)>,
}

impl Pools {
    pub fn new(providers: &[config::Provider]) -> Self {
        let mut all = Pools { pools: Vec::new(), accounts: Vec::new(), ends: BTreeSet::new() };
        for (place, provider) in providers.iter().enumerate() {
            let priorities: BTreeSet<i8> = provider.accounts.iter().map(|account| account.priority).collect();
            let groups: BTreeMap<i8, u32> = priorities.iter().copied().zip(0..).collect();
            let from = all.accounts.len() as u32;
            all.pools.push(Pool {
                groups: priorities.iter().map(|_| Group::new()).collect(),
                accounts: (from, from + provider.accounts.len() as u32),
                serving: provider.accounts.iter().filter(|account| account.enabled).count(),
            });
            for account in &provider.accounts {
                let id = all.accounts.len() as u32;
                let until = account.until.filter(|_| account.enabled);
                all.ends.extend(until.map(|until| (until, id)));
                all.accounts.push(Account {
                    provider: ProviderId(place as u32),
                    group: groups[&account.priority],
                    limit: account.max_connections,
                    configured: account.max_connections,
                    overlap: account.overlap,
                    cooling: provider.cooling,
                    serves: account.enabled,
                    until,
                    shunned: Time::ZERO,
                    lateness: Lateness::default(),
                    used: 0,
                    reserved: 0,
                    graced: None,
                    resting: VecDeque::new(),
                    grace_armed: Time::NEVER,
                    rest_armed: Time::NEVER,
                    counts: AccountCounts::default(),
                });
                all.update(AccountId(id));
            }
        }
        all
    }

    /// When the time of an account that serves is over.
    pub fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| end.time())
    }

    /// The wall clock was set by so many µs. The accounts whose time is not over after all.
    pub fn set_clock(&mut self, now: Time, by: i64) -> Vec<AccountId> {
        let mut again = Vec::new();
        self.ends.clear();
        for (account, place) in self.accounts.iter_mut().zip(0..) {
            let Some(until) = &mut account.until else { continue };
            *until = until.when_set(by);
            if !account.serves && !until.has_come(now) {
                account.serves = true;
                self.pools[account.provider.0 as usize].serving += 1;
                again.push(AccountId(place));
            }
            if account.serves {
                self.ends.insert((*until, place));
            }
        }
        again.iter().for_each(|id| self.update(*id));
        again
    }

    /// An account whose time was over by `now`, and that served until now.
    pub fn ended(&mut self, now: Time) -> Option<AccountId> {
        let (_, place) = self.ends.first().copied().filter(|(until, _)| until.has_come(now))?;
        self.ends.pop_first();
        let account = &mut self.accounts[place as usize];
        account.serves = false;
        self.pools[account.provider.0 as usize].serving -= 1;
        self.update(AccountId(place));
        Some(AccountId(place))
    }

    pub fn get(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(id.0 as usize)
    }

    pub fn all(&self) -> impl Iterator<Item = (AccountId, &Account)> {
        self.accounts.iter().zip(0..).map(|(account, place)| (AccountId(place), account))
    }

    /// Changes an account.
    pub fn change<R>(&mut self, id: AccountId, change: impl FnOnce(&mut Account) -> R) -> Option<R> {
        let result = change(self.accounts.get_mut(id.0 as usize)?);
        self.update(id);
        Some(result)
    }

    /// The places of a provider's accounts: from the first to behind the last.
    pub fn range(&self, provider: ProviderId) -> (AccountId, AccountId) {
        let (from, to) = self.pools.get(provider.0 as usize).map_or((0, 0), |pool| pool.accounts);
        (AccountId(from), AccountId(to))
    }

    /// Whether a provider has any account that may be used.
    pub fn serves(&self, provider: ProviderId) -> bool {
        self.pools.get(provider.0 as usize).is_some_and(|pool| pool.serving > 0)
    }

    /// Whether a provider has an account that may be used and is none of these.
    pub fn has_other(&self, provider: ProviderId, than: &[AccountId]) -> bool {
        let Some(Pool { accounts: (from, to), .. }) = self.pools.get(provider.0 as usize) else { return false };
        (*from..*to).any(|place| self.accounts[place as usize].serves && !than.contains(&AccountId(place)))
    }

    /// The account of a provider whose turn it is and that has a slot for this title, or for anybody where none is named. Of one
    /// priority those that are shunned come last.
    pub fn pick(
        &self,
        now: Time,
        provider: ProviderId,
        title: Option<TitleId>,
        avoid: &[AccountId],
    ) -> Option<AccountId> {
        let pool = self.pools.get(provider.0 as usize)?;
        let fresh = |place: &u32| !avoid.contains(&AccountId(*place));
        let liked = |place: &u32| fresh(place) && self.accounts[*place as usize].shunned <= now;
        let of = |group: &Group| self.pick_of(group, title, liked).or_else(|| self.pick_of(group, title, fresh));
        pool.groups.iter().find_map(of).map(AccountId)
    }

    fn pick_of(&self, group: &Group, title: Option<TitleId>, may: impl Fn(&u32) -> bool) -> Option<u32> {
        let rests = title.and_then(|title| {
            let mut rests = group.resting.range((title, 0)..=(title, u32::MAX)).map(|(_, place)| *place);
            let has = |row: &Account| row.serves && row.has(title, 0);
            rests.find(|place| may(place) && has(&self.accounts[*place as usize]))
        });
        rests.or_else(|| group.free.range(group.next..).chain(&group.free).copied().find(may))
    }

    /// The account of a provider that bears one connection more.
    pub fn bearing(&self, provider: ProviderId) -> Option<AccountId> {
        let pool = self.pools.get(provider.0 as usize)?;
        pool.groups.iter().find_map(|group| group.bears.first().copied().map(AccountId))
    }

    /// The account had its turn.
    pub fn turn(&mut self, id: AccountId) {
        let Some(account) = self.accounts.get(id.0 as usize) else { return };
        self.pools[account.provider.0 as usize].groups[account.group as usize].next = id.0 + 1;
    }

    /// A slot that rests is used by its title: it rests no longer.
    pub fn wake(&mut self, id: AccountId, title: TitleId) {
        let woken = self.change(id, |account| {
            let place = account.resting.iter().position(|(_, own)| *own == title);
            place.is_some_and(|place| account.resting.remove(place).is_some())
        });
        if woken == Some(true) {
            self.unrest(id, title);
        }
    }

    /// A slot rests for all but this title.
    pub fn rest(&mut self, id: AccountId, title: TitleId, until: Time) {
        self.change(id, |account| {
            let place = account.resting.partition_point(|(own, _)| *own <= until);
            account.resting.insert(place, (until, title));
        });
        if let Some(account) = self.accounts.get(id.0 as usize) {
            let group = &mut self.pools[account.provider.0 as usize].groups[account.group as usize];
            group.resting.insert((title, id.0));
        }
    }

    /// Slots that have rested by `now` are for everybody.
    pub fn rested(&mut self, id: AccountId, now: Time) {
        while let Some((_, title)) = self.get(id).and_then(|account| account.resting.front().copied())
            && let Some(true) = self.change(id, |account| {
                let due = account.resting.front().is_some_and(|(until, _)| *until <= now);
                due && account.resting.pop_front().is_some()
            })
        {
            self.unrest(id, title);
        }
    }

    fn unrest(&mut self, id: AccountId, title: TitleId) {
        if let Some(account) = self.accounts.get(id.0 as usize).filter(|account| !account.rests_for(title)) {
            let group = &mut self.pools[account.provider.0 as usize].groups[account.group as usize];
            group.resting.remove(&(title, id.0));
        }
    }

    /// Puts an account where it is found.
    fn update(&mut self, id: AccountId) {
        let Some(account) = self.accounts.get(id.0 as usize) else { return };
        let group = &mut self.pools[account.provider.0 as usize].groups[account.group as usize];
        let place = |set: &mut BTreeSet<u32>, is: bool| if is { set.insert(id.0) } else { set.remove(&id.0) };
        place(&mut group.free, account.serves && account.free() > 0);
        place(&mut group.bears, account.bears());
    }
}

impl Group {
    fn new() -> Self {
        Group { next: 0, free: BTreeSet::new(), resting: BTreeSet::new(), bears: BTreeSet::new() }
    }
}
