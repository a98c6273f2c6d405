//! The account room alone, driven by hand in simulated time, and what has to hold after every step.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use super::*;
use crate::config::{Account, Config, Provider};
use crate::id::Id;
use crate::input::{Client, UserId, Viewing};
pub(super) use crate::input::{Grant, RequestId, TitleId};
use crate::playback::Item;
pub(super) use crate::playback::Place;

pub(super) fn ms(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A playback of title `n`.
pub(super) const fn playback(n: u32) -> Holder {
    Holder::Playback(Id::from_parts(n, 0))
}

pub(super) fn source(n: u32) -> Holder {
    Holder::Source(Id::from_parts(n, 0))
}

pub(super) fn probe(n: u32) -> Holder {
    Holder::Probe(RequestId(u64::from(n)))
}

pub(super) fn strength(place: Place, priority: i8) -> Strength {
    Strength { place, priority }
}

pub(super) const NORMAL: Strength = Strength { place: Place::Normal, priority: 0 };
pub(super) const WEAK: Strength = Strength { place: Place::Normal, priority: 9 };
pub(super) const STRONG: Strength = Strength { place: Place::Normal, priority: -9 };
pub(super) const ONE: &[ProviderId] = &[ProviderId(0)];

/// Player `n` of title `n`.
pub(super) fn viewing(n: u32) -> Viewing {
    let client = Client { address: IpAddr::V4(Ipv4Addr::from(n)), agent: 0 };
    Viewing { user: UserId(0), item: Item::Catchup(TitleId(n.into())), client }
}

/// Accounts with these limits.
pub(super) fn limits(limits: &[u32]) -> Provider {
    let account = |limit: &u32| Account { max_connections: *limit, ..Account::default() };
    Provider { accounts: limits.iter().map(account).collect(), ..Provider::default() }
}

/// A wish for the title that has the holder's number, without patience.
pub(super) fn wish(holder: Holder) -> Wish<'static> {
    let title = match holder {
        Holder::Playback(id) => id.index() as u64,
        Holder::Source(id) => id.index() as u64,
        Holder::Probe(request) => request.0,
    };
    Wish {
        holder,
        providers: ONE,
        avoid: &[],
        title: TitleId(title),
        viewing: None,
        feed: None,
        strength: if matches!(holder, Holder::Probe(_)) { Strength::PROBE } else { NORMAL },
        pin: Pin::None,
        window: Duration::ZERO,
        patience: Patience::None,
    }
}

pub(super) struct Stage {
    pub room: Accounts,
    pub now: u64,
    pub out: VecDeque<Output>,
    pub told: Vec<(Told, u64)>,
    pub notes: Vec<Note>,
    /// Connections that were granted and not closed, as the provider counts them.
    pub open: BTreeMap<AllocationId, (Holder, AccountId)>,
    graces: bool,
    /// How many connections of each account were there when its provider came to allow fewer, as far as they still are.
    beyond: BTreeMap<AccountId, u32>,
}

impl Stage {
    pub fn new(providers: Vec<Provider>) -> Self {
        let graces = providers.iter().flat_map(|provider| &provider.accounts).any(|account| account.overlap);
        let room = Accounts::new(&Config { providers, ..Config::default() });
        let (told, notes, open) = (Vec::new(), Vec::new(), BTreeMap::new());
        Stage { room, now: 0, out: VecDeque::new(), told, notes, open, graces, beyond: BTreeMap::new() }
    }

    /// One provider with accounts of these limits.
    pub fn of(accounts: &[u32]) -> Self {
        Stage::new(vec![limits(accounts)])
    }

    /// The same, with a grace of 2 s.
    pub fn patient(&self, holder: Holder) -> Wish<'static> {
        Wish { patience: Patience::Until(ms(self.now + 2_000), Grace::Hold), ..wish(holder) }
    }

    pub fn acquire(&mut self, wish: Wish<'_>) -> Acquired {
        let acquired = self.room.acquire(ms(self.now), &mut self.out, wish);
        if let Acquired::Granted { grant, .. } = acquired {
            self.open.insert(grant.allocation, (wish.holder, grant.account));
        }
        self.settle();
        acquired
    }

    /// As [`Stage::acquire`], of what is granted.
    pub fn grant(&mut self, wish: Wish<'_>) -> Grant {
        match self.acquire(wish) {
            Acquired::Granted { grant, .. } => grant,
            other => panic!("{other:?}"),
        }
    }

    /// The account that a wish without any special wishes is granted.
    pub fn account(&mut self, holder: Holder) -> u32 {
        self.grant(wish(holder)).account.0
    }

    pub fn release(&mut self, grant: Grant) {
        self.room.release(ms(self.now), grant.allocation);
        self.settle();
    }

    pub fn set_clock(&mut self, by: i64) {
        self.room.set_clock(ms(self.now), &mut self.out, by);
        self.settle();
    }

    /// The provider allows so many connections of an account.
    pub fn allow(&mut self, account: u32, connections: u32) {
        let account = AccountId(account);
        let used = self.room.account(account).map_or(0, |state| state.used);
        self.beyond.insert(account, used);
        self.room.allow(ms(self.now), &mut self.out, account, connections);
        self.settle();
    }

    pub fn closed(&mut self, grant: Grant) {
        self.open.remove(&grant.allocation);
        self.room.closed(ms(self.now), &mut self.out, grant.allocation);
        self.settle();
    }

    /// Gives up and closes.
    pub fn close(&mut self, grant: Grant) {
        self.release(grant);
        self.closed(grant);
    }

    pub fn failed(&mut self, grant: Grant) {
        self.fails(grant, Blame::Connection);
    }

    /// The provider does not want its account.
    pub fn refused(&mut self, grant: Grant) {
        self.fails(grant, Blame::Account);
    }

    fn fails(&mut self, grant: Grant, blame: Blame) {
        self.room.failed(ms(self.now), &mut self.out, grant.allocation, blame);
        self.settle();
    }

    pub fn confirm(&mut self, grant: Grant) {
        self.room.confirm(ms(self.now), grant.allocation);
        self.settle();
    }

    pub fn rest(&mut self, holder: Holder) {
        self.room.rest(ms(self.now), &mut self.out, holder);
        self.settle();
    }

    pub fn end(&mut self, holder: Holder) {
        self.room.end(ms(self.now), &mut self.out, holder);
        self.settle();
    }

    pub fn withdraw(&mut self, holder: Holder) {
        self.room.withdraw(holder);
        self.settle();
    }

    pub fn set_strength(&mut self, holder: Holder, strength: Option<Strength>) {
        self.room.set_strength(ms(self.now), &mut self.out, holder, strength);
        self.settle();
    }

    /// Time passes.
    pub fn run(&mut self, span: u64) {
        let end = self.now + span;
        while let Some(at) = self.room.deadline().filter(|at| *at <= ms(end)) {
            self.now = self.now.max(at.as_micros().div_ceil(1000));
            self.room.tick(ms(self.now), &mut self.out);
            self.settle();
        }
        self.now = end;
    }

    fn settle(&mut self) {
        while let Some(told) = self.room.poll() {
            if let Told::Granted { holder, grant, .. } = told {
                self.open.insert(grant.allocation, (holder, grant.account));
            }
            self.told.push((told, self.now));
        }
        for output in self.out.drain(..) {
            match output {
                Output::Note(note) => self.notes.push(note),
                other => panic!("{other:?}"),
            }
        }
        assert!(self.room.freed.is_empty(), "what follows from a call is done in it");
        self.check();
    }

    /// What has to hold always (spec: playback §9).
    fn check(&mut self) {
        let mut used: BTreeMap<AccountId, u32> = BTreeMap::new();
        for (_, account) in self.open.values() {
            *used.entry(*account).or_default() += 1;
        }
        for state in self.room.accounts() {
            let used = used.get(&state.account).copied().unwrap_or_default();
            assert_eq!(state.used, used, "what the provider counts");
            let more = u32::from(self.graces && state.graced);
            let beyond = self.beyond.get_mut(&state.account).map_or(0, |beyond| {
                *beyond = used.min(*beyond);
                *beyond
            });
            assert!(state.limit == 0 || used <= beyond.max(state.limit + more), "{state:?}");
        }
        let mut holders: Vec<Holder> = self.room.leases().map(|(_, lease)| lease.holder).collect();
        let leases = holders.len();
        holders.sort();
        holders.dedup();
        assert_eq!(holders.len(), leases, "one lease each");
        for (_, lease) in self.room.leases() {
            let starting = lease.state == LeaseState::Starting;
            assert!(!starting || lease.deadline <= ms(self.now + 5_000), "{lease:?}");
            assert!(!starting || lease.deadline >= ms(self.now), "{lease:?}");
        }
    }

    /// What the tables say of one another (spec: playback §9), and that nobody waits for what is free.
    pub fn agrees(&self) {
        let room = &self.room;
        let mut reserved: BTreeMap<AccountId, u32> = BTreeMap::new();
        let mut waiting = 0;
        for (holder, holding) in &room.holders {
            if let Some(account) = holding.reserves {
                *reserved.entry(account).or_default() += 1;
            }
            if let Some(live) = holding.live {
                let row = room.allocations.get(live).expect("a connection that is live is there");
                assert!(row.holder == *holder && row.state != AllocationState::Closing);
            }
            for own in &holding.closing {
                assert_eq!(room.allocations.get(*own).map(|row| row.state), Some(AllocationState::Closing));
            }
            let Some(wish) = &holding.wish else { continue };
            waiting += 1;
            assert!(wish.until >= ms(self.now), "{holder:?} has had no answer");
            if let Some(expected) = wish.expects {
                assert_eq!(room.allocations.get(expected).and_then(|row| row.expected_by), Some(*holder));
            }
            for state in room.accounts() {
                // What rests for its title may be for a stronger one that waits until it has rested.
                let rests = state.resting > 0 && state.used + state.reserved + state.resting >= state.limit;
                let owed = rests && holding.reserves != Some(state.account);
                assert!(owed || !room.has(state.account, *holder, wish), "{holder:?} waits for {state:?}");
            }
        }
        assert_eq!(room.waiting(), waiting);
        for state in room.accounts() {
            assert_eq!(state.reserved, reserved.get(&state.account).copied().unwrap_or_default());
            let was_more = self.beyond.contains_key(&state.account);
            assert!(was_more || state.limit == 0 || state.resting <= 2 * state.limit + 1);
        }
        for (id, row) in room.allocations() {
            let by = row.expected_by.and_then(|holder| room.holders.get(&holder)?.wish.as_ref()?.expects);
            assert_eq!(by, row.expected_by.map(|_| id), "who counts on it waits");
            let counted = row.state == AllocationState::Closing && row.expected_by.is_none();
            assert_eq!(room.coming.contains(&(row.account, id)), counted);
        }
        for (id, lease) in room.leases() {
            assert_eq!(room.holders.get(&lease.holder).and_then(|holding| holding.lease), Some(id), "{lease:?}");
        }
    }

    /// What was told of a holder last, and when.
    pub fn last(&self, holder: Holder) -> Option<(Told, u64)> {
        self.told.iter().rev().find(|(told, _)| told.holder() == holder).copied()
    }

    /// What a holder that waited was granted, and when.
    pub fn late(&self, holder: Holder) -> Option<(Grant, u64)> {
        self.told.iter().rev().find_map(|(told, at)| match told {
            Told::Granted { holder: own, grant, .. } if *own == holder => Some((*grant, *at)),
            _ => None,
        })
    }

    pub fn state(&self, holder: Holder) -> Option<(LeaseState, u32)> {
        self.room.lease_of(holder).map(|lease| (lease.state, lease.generation))
    }

    /// When the lease ends, in ms.
    pub fn until(&self, holder: Holder) -> Option<u64> {
        self.room.lease_of(holder).map(|lease| lease.deadline.as_micros() / 1000)
    }

    /// Nothing is left but what is remembered.
    pub fn is_empty(&self) -> bool {
        let room = &self.room;
        let rows = (room.allocations().count(), room.leases().count(), room.waiting(), room.timer_count());
        let reserved: u32 = room.accounts().map(|account| account.reserved).sum();
        assert_eq!((room.holders.len(), room.coming.len(), room.queue.is_empty()), (0, 0, true));
        assert!(room.keepers.is_empty() && room.freed.is_empty());
        rows == (0, 0, 0, 0) && reserved == 0 && room.victims.is_empty()
    }
}
