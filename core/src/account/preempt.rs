//! Who gives way to whom, who is served next, and what happens by grace.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::queue::{For, Waiting};
use super::{Accounts, Acquired, AllocationState, Holder, Pin, Strength, Told, Wake, Way, Why, Wish};
use crate::id::Id;
use crate::input::{AccountId, AllocationId, FeedId, GivesWay, Note, Output, ProviderId, RequestId, TitleId};
use crate::time::Time;

/// What a holder is, if its account is needed: the least gives way first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
enum Class {
    /// It is kept open for nobody.
    Lingering,
    /// It only looks.
    Probe,
    /// It never sent anything, in more than its time.
    Silent,
    /// Somebody plays it.
    Played,
}

/// Where somebody stands among those that may have to give way: the weakest first, then the oldest, then the lowest id.
type Rank = (Class, Reverse<Strength>, Time, Holder);

/// Where a holder was put among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Ranked {
    pub account: AccountId,
    provider: ProviderId,
    rank: Rank,
}

/// Everybody who may have to give way.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Victims {
    of_account: BTreeSet<(AccountId, Rank)>,
    of_provider: BTreeSet<(ProviderId, Rank, AccountId)>,
}

#[cfg(test)]
impl Victims {
    pub fn is_empty(&self) -> bool {
        self.of_account.is_empty() && self.of_provider.is_empty()
    }
}

const LEAST: Rank = (
    Class::Lingering,
    Reverse(Strength { place: crate::playback::Place::Grace, priority: i8::MAX }),
    Time::ZERO,
    Holder::Playback(crate::id::Id::from_parts(0, 0)),
);

/// Whether one of that rank gives way to a wish.
fn gives_way(rank: &Rank, strength: Strength) -> bool {
    rank.0 != Class::Played || strength < rank.1.0
}

impl Accounts {
    /// Puts a holder among those that may have to give way, for a slot of this account, or takes it out.
    pub(super) fn rank(&mut self, holder: Holder, account: Option<AccountId>) {
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        let row = account.and_then(|id| Some((id, self.pools.get(id)?)));
        // Where there is no limit, nothing is gained.
        let ranked = row.filter(|(_, row)| row.serves && row.limit > 0).map(|(account, row)| {
            let class = match (holder, holding.strength) {
                (_, None) => Class::Lingering,
                (Holder::Probe(_), _) => Class::Probe,
                _ if holding.silent => Class::Silent,
                _ => Class::Played,
            };
            let strength = holding.strength.unwrap_or(Strength::PROBE);
            Ranked { account, provider: row.provider, rank: (class, Reverse(strength), holding.since, holder) }
        });
        if ranked == holding.ranked {
            return;
        }
        if let Some(Ranked { account, provider, rank }) = core::mem::replace(&mut holding.ranked, ranked) {
            self.victims.of_account.remove(&(account, rank));
            self.victims.of_provider.remove(&(provider, rank, account));
        }
        if let Some(Ranked { account, provider, rank }) = ranked {
            self.victims.of_account.insert((account, rank));
            self.victims.of_provider.insert((provider, rank, account));
        }
    }

    /// Nobody needs this account any more.
    pub(super) fn unrank_all(&mut self, id: AccountId) {
        let rows = self.victims.of_account.range((id, LEAST)..).take_while(|(account, _)| *account == id);
        let holders: Vec<Holder> = rows.map(|(_, rank)| rank.3).collect();
        for holder in holders {
            self.rank(holder, None);
        }
    }

    /// The one who has to give way to a wish: the weakest of all accounts that will do.
    fn victim(&self, holder: Holder, waiting: &Waiting) -> Option<Rank> {
        let helps =
            |account: AccountId, rank: &Rank| rank.3 != holder && self.makes_room(account, rank.3, waiting.title);
        let weaker = |rank: &Rank| gives_way(rank, waiting.strength);
        if let Pin::Firm(pin) = waiting.pin {
            let rows = self.victims.of_account.range((pin, LEAST)..).take_while(|(account, _)| *account == pin);
            let mut rows = rows.map(|(_, rank)| *rank).take_while(weaker);
            return rows.find(|rank| helps(pin, rank));
        }
        let first = |provider: &ProviderId| {
            let rows = self.victims.of_provider.range((*provider, LEAST, AccountId(0))..);
            let mut rows = rows.take_while(|row| row.0 == *provider && weaker(&row.1));
            rows.find(|row| helps(row.2, &row.1)).map(|row| row.1)
        };
        waiting.providers.iter().filter_map(first).min()
    }

    /// Pins a wish that avoids some accounts to another one that is about to be free, or whose holder gives way to it. Whether there
    /// is one: nobody waits for one that others go on to use.
    pub(super) fn pin_beside(&self, now: Time, holder: Holder, waiting: &mut Waiting, avoid: &[AccountId]) -> bool {
        let comes =
            |pinned: &Waiting| self.coming(now, holder, pinned).is_some() || self.victim(holder, pinned).is_some();
        !matches!(waiting.pin, Pin::Firm(_)) && self.pin_first(waiting, avoid, comes)
    }

    /// Pins a wish that avoids some accounts to another one that will do, whoever uses it. Whether there is one.
    pub(super) fn pin_other(&self, waiting: &mut Waiting, avoid: &[AccountId]) -> bool {
        self.pin_first(waiting, avoid, |_| true)
    }

    /// Pins a wish to the first account that it does not avoid and with which, pinned to it, it `may` wait. Whether there is one.
    fn pin_first(&self, waiting: &mut Waiting, avoid: &[AccountId], may: impl Fn(&Waiting) -> bool) -> bool {
        let before = waiting.pin;
        let ranges = waiting.providers.iter().map(|provider| self.pools.range(*provider));
        let will_do = |account: &AccountId| !avoid.contains(account) && self.fits(*account, waiting);
        let accounts: Vec<AccountId> =
            ranges.flat_map(|(from, to)| (from.0..to.0).map(AccountId)).filter(will_do).collect();
        let first = accounts.into_iter().find(|account| {
            waiting.pin = Pin::Firm(*account);
            may(waiting)
        });
        waiting.pin = first.map_or(before, Pin::Firm);
        first.is_some()
    }

    /// Whether the title could be had with the account if this holder gave up what it has there. A slot that rests first comes too
    /// late.
    fn makes_room(&self, account: AccountId, holder: Holder, title: TitleId) -> bool {
        let same = || self.holders.get(&holder).is_some_and(|holding| holding.title == title);
        let row = self.pools.get(account).filter(|row| !row.is_over());
        row.is_some_and(|row| row.cooling < self.preemption_wait || same())
    }

    /// Whether a wish could be granted if this holder had no account any more: it has a connection of one that will do, or one is
    /// kept for it.
    pub(crate) fn would_help(&self, holder: Holder, wish: &Wish<'_>) -> bool {
        let Some(holding) = self.holders.get(&holder).filter(|_| holder != wish.holder) else { return false };
        // What is being closed and nobody else counts on is at hand as soon as its holder does not either.
        let own = holding.closing.iter().filter_map(|own| self.allocations.get(*own));
        let own = own.filter(|own| own.expected_by == Some(holder)).map(|own| own.account);
        own.chain(holding.ranked.map(|ranked| ranked.account)).any(|account| {
            let row = self.pools.get(account).filter(|row| row.serves && wish.providers.contains(&row.provider));
            let pinned = !matches!(wish.pin, Pin::Firm(pin) if pin != account);
            row.is_some() && pinned && self.makes_room(account, holder, wish.title)
        })
    }

    /// The sources that a feed has, with or without an account.
    pub(crate) fn sources_of(&self, feed: FeedId) -> impl Iterator<Item = Holder> {
        let rows = self.holders.range(Holder::Source(Id::from_parts(0, 0))..Holder::Probe(RequestId(0)));
        rows.filter(move |(_, holding)| holding.feed == Some(feed)).map(|(holder, _)| *holder)
    }

    /// Makes somebody give way to a wish.
    pub(super) fn preempt(
        &mut self,
        now: Time,
        out: &mut VecDeque<Output>,
        holder: Holder,
        waiting: &Waiting,
    ) -> Option<Way> {
        let (class, _, _, victim) = self.victim(holder, waiting)?;
        let holding = self.holders.get(&victim)?;
        let (account, live, closing) = (holding.ranked?.account, holding.live, holding.closing.clone());
        let why = if class == Class::Played { Why::Preempted } else { Why::Idle };
        self.pools.change(account, |row| row.counts.preempted += 1);
        let gives_way = match class {
            Class::Lingering => GivesWay::Lingering,
            Class::Probe => GivesWay::Probe,
            Class::Silent => GivesWay::Silent,
            Class::Played => GivesWay::Weaker,
        };
        out.push_back(Output::Note(Note::AccountPreempted { account, holder: victim, by: holder, why: gives_way }));
        self.give_up(now, victim, why);
        let closing = live.into_iter().chain(closing);
        let closing =
            closing.into_iter().find(|own| self.allocations.get(*own).is_some_and(|row| row.account == account));
        Some(closing.map_or(Way::Clear(account), Way::Closing))
    }

    /// Lets a wish count on a connection that is being closed anyway, if one will do.
    pub(super) fn expect(&mut self, now: Time, holder: Holder, waiting: &mut Waiting) -> bool {
        let Some(allocation) = self.coming(now, holder, waiting) else { return false };
        self.count_on(holder, waiting, allocation);
        true
    }

    /// A connection that is being closed anyway, and that a wish can count on: its holder's own first.
    pub(super) fn coming(&self, now: Time, holder: Holder, waiting: &Waiting) -> Option<AllocationId> {
        let useful = |id: AccountId, allocation: AllocationId| {
            let Some((row, coming)) = self.pools.get(id).zip(self.allocations.get(allocation)) else { return false };
            let in_time = coming.title == waiting.title || now + row.cooling < now + self.preemption_wait;
            let own = coming.holder == holder;
            let keeps = |holding: &super::allocation::Holding| {
                let lease = holding.lease.and_then(|lease| self.leases.get(lease));
                lease.is_some_and(|lease| lease.account == id && lease.reserves())
            };
            let kept = !own && self.holders.get(&coming.holder).is_some_and(keeps);
            self.fits(id, waiting) && row.used <= row.limit && in_time && !kept && coming.expected_by.is_none()
        };
        let own = self.holders.get(&holder).into_iter().flat_map(|holding| &holding.closing);
        let mut own = own.filter_map(|own| Some((self.allocations.get(*own)?.account, *own)));
        let own = own.find(|(id, allocation)| useful(*id, *allocation));
        let found = own.or_else(|| {
            let ranges = match waiting.pin {
                Pin::Firm(pin) => Vec::from([(pin, AccountId(pin.0.saturating_add(1)))]),
                _ => waiting.providers.iter().map(|provider| self.pools.range(*provider)).collect(),
            };
            let least = AllocationId::from_parts(0, 0);
            let rows = ranges.into_iter().flat_map(|(from, to)| self.coming.range((from, least)..(to, least)).copied());
            rows.into_iter().find(|(id, allocation)| useful(*id, *allocation))
        });
        found.map(|(_, allocation)| allocation)
    }

    /// The wish counts on a connection that is being closed, and no other may.
    pub(super) fn count_on(&mut self, holder: Holder, waiting: &mut Waiting, allocation: AllocationId) {
        let Some(row) = self.allocations.get_mut(allocation) else { return };
        let (account, before) = (row.account, row.expected_by.replace(holder));
        self.coming.remove(&(account, allocation));
        waiting.expects = Some(allocation);
        if let Some(before) = before.filter(|before| *before != holder) {
            self.set_expects(before, None);
        }
    }

    /// Nobody counts on a connection that is being closed any more.
    pub(super) fn forgo(&mut self, allocation: Option<AllocationId>) {
        let Some(id) = allocation else { return };
        if let Some(row) = self.allocations.get_mut(id) {
            row.expected_by = None;
            self.coming.insert((row.account, id));
        }
    }

    /// Changes what a wish that waits counts on.
    pub(super) fn set_expects(&mut self, holder: Holder, expects: Option<AllocationId>) {
        let Some(waiting) = self.holders.get_mut(&holder).and_then(|holding| holding.wish.as_mut()) else { return };
        self.queue.remove(holder, waiting);
        waiting.expects = expects;
        self.queue.insert(holder, waiting);
    }

    /// Puts a wish into the queue.
    pub(super) fn enqueue(&mut self, holder: Holder, mut waiting: Waiting) {
        let Some(holding) = self.holders.get_mut(&holder) else { return };
        self.queue.insert(holder, &waiting);
        self.timers.set(Wake::Wish(holder), &mut waiting.armed, waiting.until);
        self.waiting += 1;
        self.keepers.extend(holding.reserves.map(|account| (account, holder)));
        holding.wish = Some(waiting);
    }

    /// Takes a wish out of the queue.
    pub(super) fn unqueue(&mut self, holder: Holder) -> Option<Waiting> {
        let holding = self.holders.get_mut(&holder)?;
        let mut waiting = holding.wish.take()?;
        if let Some(account) = holding.reserves {
            self.keepers.remove(&(account, holder));
        }
        self.queue.remove(holder, &waiting);
        self.timers.set(Wake::Wish(holder), &mut waiting.armed, Time::NEVER);
        self.waiting -= 1;
        Some(waiting)
    }

    /// Whoever gave up a connection has its slot first, if it waits for one and nobody stronger does.
    pub(super) fn pass_on(&mut self, now: Time, holder: Holder, id: AccountId) {
        let Some(holding) = self.holders.get(&holder) else { return };
        let Some(waiting) = &holding.wish else { return };
        if !self.has(id, holder, waiting) {
            return;
        }
        let provider = self.pools.get(id).map_or(ProviderId(0), |row| row.provider);
        let first = self.queue.first(id, provider, For::Any).and_then(|first| self.holders.get(&first)?.wish.as_ref());
        if first.is_none_or(|first| waiting.strength <= first.strength) {
            self.fulfil(now, holder, id);
        }
    }

    /// Grants what is kept no longer to those that wait for it.
    pub(super) fn serve_freed(&mut self, now: Time) {
        while let Some(id) = self.freed.pop() {
            self.serve(now, id);
        }
    }

    /// Grants what is free at an account to those that wait for it.
    pub(super) fn serve(&mut self, now: Time, id: AccountId) {
        while let Some(account) = self.pools.get(id).filter(|account| account.serves && !self.queue.is_empty()) {
            let provider = account.provider;
            let next = if let Some(keeper) = self.keeper(id) {
                Some(keeper)
            } else if account.free() > 0 && (account.limit == 0 || account.used < account.limit) {
                self.queue.first(id, provider, For::Any)
            } else {
                let titles = account.resting.iter().map(|(_, title)| *title);
                let titles = titles.filter(|title| account.has(*title, 0));
                let mut first = titles.filter_map(|title| self.queue.first(id, provider, For::Title(title)));
                first.find(|first| {
                    let wish = self.holders.get(first).and_then(|holding| holding.wish.as_ref());
                    wish.is_some_and(|wish| !self.is_owed(id, *first, wish.strength))
                })
            };
            let Some(holder) = next else { break };
            self.fulfil(now, holder, id);
        }
    }

    /// Whether the slot that is left at an account, which rests for others, is for a stronger one that waits for it to have rested.
    pub(super) fn is_owed(&self, id: AccountId, holder: Holder, strength: Strength) -> bool {
        let Some(row) = self.pools.get(id).filter(|row| row.free() == 0) else { return false };
        let keeps = self.holders.get(&holder).is_some_and(|holding| holding.reserves == Some(id));
        let first = self.queue.first(id, row.provider, For::Any).and_then(|first| self.holders.get(&first));
        !keeps && first.and_then(|first| first.wish.as_ref()).is_some_and(|first| first.strength < strength)
    }

    /// Who waits and keeps a slot of this account that it can have now.
    fn keeper(&self, id: AccountId) -> Option<Holder> {
        let rows = self.keepers.range((id, LEAST.3)..).take_while(|(account, _)| *account == id);
        let has = |holder: &Holder| {
            let wish = self.holders.get(holder).and_then(|holding| holding.wish.as_ref());
            wish.is_some_and(|wish| self.has(id, *holder, wish))
        };
        rows.map(|(_, holder)| *holder).find(has)
    }

    /// Grants a slot of this account to one that waits. What it counted on is for others to count on.
    fn fulfil(&mut self, now: Time, holder: Holder, id: AccountId) {
        let Some(waiting) = self.unqueue(holder) else { return };
        self.forgo(waiting.expects);
        if let Acquired::Granted { grant, index } = self.granted(now, holder, &waiting, id) {
            self.told.push_back(Told::Granted { holder, grant, index });
        }
    }

    /// Looks again for what a wish that waits could count on.
    pub(super) fn review(&mut self, now: Time, out: &mut VecDeque<Output>, holder: Holder) {
        let Some(holding) = self.holders.get(&holder) else { return };
        let Some(waiting) = &holding.wish else { return };
        if waiting.expects.is_some() || !waiting.preempts {
            return;
        }
        let Some(mut waiting) = self.unqueue(holder) else { return };
        if !self.expect(now, holder, &mut waiting) {
            match self.preempt(now, out, holder, &waiting) {
                Some(Way::Clear(account)) => {
                    if let Acquired::Granted { grant, index } = self.granted(now, holder, &waiting, account) {
                        self.told.push_back(Told::Granted { holder, grant, index });
                    }
                    return;
                }
                Some(Way::Closing(allocation)) => {
                    self.count_on(holder, &mut waiting, allocation);
                    waiting.until = waiting.until.max(now + self.preemption_wait);
                }
                None => {}
            }
        }
        self.enqueue(holder, waiting);
    }

    /// Somebody at this account became weaker: the strongest that waits in vain looks again.
    pub(super) fn review_at(&mut self, now: Time, out: &mut VecDeque<Output>, id: AccountId) {
        let Some(provider) = self.pools.get(id).map(|row| row.provider) else { return };
        if let Some(holder) = self.queue.first(id, provider, For::Unmet) {
            self.review(now, out, holder);
        }
    }

    /// What was just granted is one more than there may be.
    pub(super) fn overlap(&mut self, id: AccountId, acquired: Acquired, until: Time) {
        let Acquired::Granted { grant, .. } = acquired else { return };
        let armed = self.pools.change(id, |account| {
            account.graced = Some((grant.allocation, until));
            account.counts.graced += 1;
            account.grace_armed
        });
        if let Some(mut armed) = armed {
            self.timers.set(Wake::Grace(id), &mut armed, until);
            self.pools.change(id, |account| account.grace_armed = armed);
        }
    }

    /// Whether the holder's account has more connections than there may be, by grace or since its provider allows fewer: one that is
    /// kept for nobody is closed.
    pub(super) fn is_over_limit(&self, holder: Holder) -> bool {
        let live = self.holders.get(&holder).and_then(|holding| self.allocations.get(holding.live?));
        let account = live.and_then(|row| self.pools.get(row.account));
        account.is_some_and(|account| account.graced.is_some() || account.excess() > 0)
    }

    /// What nobody watches gives way where there are more connections than there may be.
    pub(super) fn close_lingering(&mut self, now: Time, id: AccountId) {
        let excess = self.pools.get(id).map_or(0, super::Account::excess) as usize;
        let rows = self.victims.of_account.range((id, LEAST)..).take_while(|(account, _)| *account == id);
        let lingering = rows.filter(|(_, rank)| rank.0 == Class::Lingering).take(excess);
        for holder in lingering.map(|(_, rank)| rank.3).collect::<Vec<_>>() {
            self.give_up(now, holder, Why::Idle);
        }
    }

    /// A connection was closed: a grace is over where there is a slot for it now, or it was that one.
    pub(super) fn settle_grace(&mut self, id: AccountId, closed: AllocationId) {
        let Some(account) = self.pools.get(id) else { return };
        let Some((graced, _)) = account.graced else { return };
        if graced == closed || !account.is_over() {
            self.end_grace(id);
        }
    }

    fn end_grace(&mut self, id: AccountId) {
        let Some(mut armed) = self.pools.get(id).map(|account| account.grace_armed) else { return };
        self.timers.set(Wake::Grace(id), &mut armed, Time::NEVER);
        self.pools.change(id, |account| (account.graced, account.grace_armed) = (None, armed));
    }

    /// A grace is over.
    pub(super) fn grace_due(&mut self, now: Time, id: AccountId) {
        self.pools.change(id, |account| account.grace_armed = Time::NEVER);
        let Some(account) = self.pools.get(id) else { return };
        let Some((graced, _)) = account.graced else { return };
        let holder = self.allocations.get(graced).filter(|row| row.state != AllocationState::Closing);
        match holder.map(|row| row.holder).filter(|_| account.is_over()) {
            // It counts until it is closed.
            Some(holder) => self.give_up(now, holder, Why::GraceOver),
            None if !account.is_over() => self.end_grace(id),
            None => {}
        }
        self.serve(now, id);
    }
}
