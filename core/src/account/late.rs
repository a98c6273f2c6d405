//! Providers that go on counting a connection for a while after it was closed (spec: protocols §4.4, rule 7).
//!
//! What such a provider answers meanwhile is not the account's fault: the same is asked for again a little later, and how long it
//! took is remembered, so that the next one waits that long at once.

use core::time::Duration;

use super::allocation::Trace;
use super::{Account, Accounts, LeaseState, Wake};
use serde::{Deserialize, Serialize};

use crate::input::{AccountId, AllocationId, Note, Output, TitleId};
use crate::time::Time;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How long after a close a refusal may come of that: longer than is waited for it, since a provider takes its time to refuse.
const LATELY: Duration = Duration::from_secs(3);
/// The first pause before a request is made again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// How long one request is kept waiting for it in all: it is made for the last time then. Players give up after some seconds.
const LONGEST: Duration = Duration::from_secs(2);
/// In this time half of what was learnt is forgotten: providers change.
const HALF: Duration = Duration::from_secs(300);

/// How many closes of an account are kept in mind.
const CLOSES: usize = 8;

/// What is known of how late an account's provider counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lateness {
    /// Connections that were closed and that it may go on counting, and what was fetched over them; the newest first.
    closes: VecDeque<(Time, TitleId)>,
    /// How long it does so where the same is fetched again: some count what one player fetches of a title once, however many
    /// connections that takes (HLS), and it may go on at once.
    same: Learnt,
    /// And where it is something else.
    other: Learnt,
}

/// What was learnt once.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Learnt {
    late: Duration,
    /// When that was learnt.
    at: Time,
}

impl Learnt {
    fn now(self, now: Time) -> Duration {
        let halvings = now.since(self.at).as_micros() / HALF.as_micros();
        self.late / 1_u32.checked_shl(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(u32::MAX)
    }
}

impl Lateness {
    pub fn closed(&mut self, now: Time, title: TitleId) {
        self.closes.truncate(CLOSES - 1);
        self.closes.push_front((now, title));
    }

    /// When the last connection was closed.
    fn last(&self) -> Option<Time> {
        self.closes.front().map(|(at, _)| *at)
    }

    /// From when on the provider may count so few of what was closed that this title may be fetched, for all that is known: so many
    /// more connections than there are it bears.
    fn ready(&self, now: Time, title: TitleId, spare: usize) -> Time {
        let same = self.same.now(now);
        // What the same has to wait for, everything has.
        let other = self.other.now(now).max(same);
        let until = |(at, own): &(Time, TitleId)| *at + if *own == title { same } else { other };
        let mut all: Vec<Time> = self.closes.iter().map(until).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.get(spare).copied().unwrap_or(Time::ZERO)
    }

    /// A request made at `opened` came through that had been refused before, where the provider bore so many more connections; what of
    /// that is news.
    fn learn(&mut self, now: Time, opened: Time, title: TitleId, spare: usize) -> Option<Duration> {
        // Where it may have been either, it was another title: whoever goes on with the same comes back for it again and again.
        let mut others = self.closes.iter().filter(|(at, own)| *own != title && opened <= *at + LATELY);
        let (closed, own) = *others.nth(spare).or_else(|| self.closes.get(spare))?;
        let took = opened.since(closed).min(LONGEST);
        let learnt = if own == title { &mut self.same } else { &mut self.other };
        let news = took > learnt.now(now);
        if news {
            *learnt = Learnt { late: took, at: now };
        }
        news.then_some(took)
    }
}

/// A request that was refused after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Late {
    /// Whose provider may still count what was closed.
    account: AccountId,
    /// When it is made again.
    pub until: Time,
    /// When it was refused first.
    pub since: Time,
    /// How often it was.
    refusals: u32,
}

impl Late {
    /// When it is made again on this account: another one is not to be waited for.
    pub fn until_on(self, account: AccountId) -> Time {
        if account == self.account { self.until } else { Time::ZERO }
    }
}

impl Account {
    /// How many more connections than there are its provider may count; `None`: any number.
    fn spare(&self) -> Option<usize> {
        (self.limit > 0).then(|| self.limit.saturating_sub(self.used) as usize)
    }

    /// When its provider saw a connection closed last, where this one is closed now.
    pub(super) fn last_close(&self, now: Time, trace: Trace) -> Option<Time> {
        if trace == Trace::Unseen { self.lateness.last() } else { Some(now) }
    }
}

impl Accounts {
    /// A request on this connection was refused as at a limit, and was so `before`: when it is made again, if it may be for the sake
    /// of a connection that was closed a moment ago. The refused one was never counted by its provider.
    pub(crate) fn late(&mut self, now: Time, allocation: AllocationId, before: Option<Late>) -> Option<Late> {
        let row = self.allocations.get(allocation)?;
        let (id, title) = (row.account, row.title);
        let account = self.pools.get(id)?;
        let spare = account.spare()?;
        let again = before.is_some_and(|late| late.account == id);
        // That it may go on counting more of these than it has room for.
        account.lateness.closes.get(spare).filter(|(closed, _)| again || now <= *closed + LATELY)?;
        let (since, refusals) = before.map_or((now, 0), |late| (late.since, late.refusals));
        let first = account.cooling.clamp(FIRST, LONGEST);
        let pause = first.saturating_mul(1_u32.checked_shl(refusals).unwrap_or(u32::MAX));
        let last = since + LONGEST;
        if now >= last {
            return None;
        }
        let until = (now + pause).max(account.lateness.ready(now, title, spare)).min(last);
        self.discount(allocation);
        Some(Late { account: id, until, since, refusals: refusals + 1 })
    }

    /// What had been refused came through, when it was made again.
    pub(crate) fn learn(&mut self, now: Time, out: &mut VecDeque<Output>, allocation: AllocationId, late: Late) {
        let Late { account, until, .. } = late;
        let Some(title) = self.allocations.get(allocation).filter(|row| row.account == account).map(|row| row.title)
        else {
            return;
        };
        let learn = |account: &mut Account| account.lateness.learn(now, until, title, account.spare()?);
        if let Some(took) = self.pools.change(account, learn).flatten() {
            out.push_back(Output::Note(Note::AccountLate { account, late: took.as_micros() as u64 }));
        }
    }

    /// When a connection that was granted may be opened, for all that is known of the provider.
    pub(crate) fn ready(&self, now: Time, allocation: AllocationId) -> Time {
        let ready = || {
            let row = self.allocations.get(allocation)?;
            let account = self.pools.get(row.account)?;
            Some(account.lateness.ready(now, row.title, account.spare()?))
        };
        ready().unwrap_or(Time::ZERO)
    }

    /// A connection that was granted is not opened before then, for the provider's sake: nobody may call its holder silent for that.
    pub(crate) fn put_off(&mut self, allocation: AllocationId, until: Time) {
        let deadline = until + self.starting_deadline;
        self.change_start(allocation, |own| own.max(deadline));
    }

    /// It is opened now, perhaps sooner than that.
    pub(super) fn put_off_no_more(&mut self, now: Time, allocation: AllocationId) {
        let deadline = now + self.starting_deadline;
        self.change_start(allocation, |own| own.min(deadline));
    }

    /// Changes by when media has to come through, where none has.
    fn change_start(&mut self, allocation: AllocationId, change: impl FnOnce(Time) -> Time) {
        let Some(binding) = self.allocations.get(allocation).and_then(|row| row.binding) else { return };
        let Some(lease) = self.leases.get_mut(binding.lease) else { return };
        if lease.generation == binding.generation && lease.state == LeaseState::Starting {
            lease.deadline = change(lease.deadline);
            self.timers.set(Wake::Lease(binding.lease), &mut lease.armed, lease.deadline);
        }
    }

    /// The provider refused this connection, and never counts it.
    pub(super) fn discount(&mut self, allocation: AllocationId) {
        self.trace(allocation, Trace::Refused);
    }

    /// This connection is never opened: nothing rests for its sake but what was closed before it, and a lease that began anew for it
    /// keeps what it kept before, whoever waits for that.
    pub(crate) fn unopened(&mut self, now: Time, allocation: AllocationId) {
        self.trace(allocation, Trace::Unseen);
        let binding = self.allocations.get(allocation).and_then(|row| row.binding);
        let Some(id) = binding.filter(|binding| self.is_current(*binding)).map(|binding| binding.lease) else { return };
        if let Some(lease) = self.leases.get_mut(id) {
            lease.resume(now);
            self.timers.set(Wake::Lease(id), &mut lease.armed, lease.deadline);
        }
    }

    fn trace(&mut self, allocation: AllocationId, trace: Trace) {
        if let Some(row) = self.allocations.get_mut(allocation) {
            row.trace = trace;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::Wish;
    use super::super::stage::*;
    use super::*;
    use crate::config::Provider;

    #[test]
    fn only_what_takes_longer_than_is_known_is_news() {
        let mut lateness = Lateness::default();
        let (same, another) = (TitleId(1), TitleId(2));
        assert_eq!(lateness.learn(ms(700), ms(700), same, 0), None, "nothing was closed");
        lateness.closed(ms(0), same);
        assert_eq!(lateness.learn(ms(1_000), ms(700), same, 0), Some(millis(700)));
        assert_eq!(lateness.learn(ms(1_000), ms(700), same, 0), None);
        assert_eq!(lateness.learn(ms(1_000), ms(701), same, 0), Some(millis(701)));
        assert_eq!(lateness.learn(ms(1_000), ms(9_000), same, 0), Some(LONGEST));
        assert_eq!((lateness.same.now(ms(300_999)), lateness.same.now(ms(301_000))), (LONGEST, LONGEST / 2));
        assert_eq!([same, another].map(|title| lateness.ready(ms(1_000), title, 0)), [ms(2_000); 2]);
    }

    #[test]
    fn what_one_player_goes_on_with_does_not_wait_for_what_another_title_had_to() {
        let mut stage = Stage::of(&[1]);
        let (one, other) = (TitleId(1), TitleId(2));
        let first = stage.grant(Wish { title: one, ..wish(playback(1)) });
        stage.close(first);
        let zapped = stage.grant(Wish { title: other, ..wish(playback(2)) });
        let late = stage.room.late(ms(0), zapped.allocation, None).unwrap();
        stage.close(zapped);
        stage.run(2_000);
        let zapped = stage.grant(Wish { title: other, ..wish(playback(2)) });
        let mut out = VecDeque::new();
        stage.room.learn(ms(2_000), &mut out, zapped.allocation, Late { until: ms(2_000), ..late });
        stage.close(zapped);
        stage.run(1_000);
        let next = stage.grant(Wish { title: other, ..wish(playback(2)) });
        // What was closed of another title less than three seconds ago may have been it, again.
        stage.room.learn(ms(2_900), &mut out, next.allocation, Late { until: ms(2_900), ..late });
        assert_eq!(stage.room.ready(ms(3_000), next.allocation), ms(2_000), "the next segment waits for nothing");
        stage.close(next);
        let back = stage.grant(Wish { title: one, ..wish(playback(1)) });
        assert_eq!(stage.room.ready(ms(3_000), back.allocation), ms(5_000));
    }

    #[test]
    fn an_account_with_more_connections_counts_late_too() {
        let mut stage = Stage::of(&[2]);
        let mut now = 0;
        let mut part = |stage: &mut Stage, at: u64| {
            stage.run(at - now);
            now = at;
            let grant = stage.grant(wish(playback(1)));
            (grant, stage.room.ready(ms(at), grant.allocation))
        };
        // Both connections that were closed may be counted still, beside this one.
        let (first, _) = part(&mut stage, 0);
        stage.close(first);
        let (second, _) = part(&mut stage, 10);
        assert_eq!(
            stage.room.late(ms(10), second.allocation, None),
            None,
            "there is room for one that is counted late"
        );
        stage.close(second);
        let (third, _) = part(&mut stage, 20);
        let late = stage.room.late(ms(20), third.allocation, None).expect("it is asked again");
        stage.close(third);
        let (third, _) = part(&mut stage, 510);
        let mut out = VecDeque::new();
        stage.room.learn(ms(510), &mut out, third.allocation, Late { until: ms(510), ..late });
        assert_eq!(out, [Output::Note(Note::AccountLate { account: AccountId(0), late: 510_000 })]);
        stage.close(third);
        let (_, ready) = part(&mut stage, 515);
        assert_eq!(ready, ms(520), "the second of them is forgotten then");
    }

    #[test]
    fn whoever_waits_for_a_provider_that_counts_late_does_not_count_as_silent_for_that() {
        let mut stage = Stage::of(&[1]);
        let grant = stage.grant(wish(playback(1)));
        let begun = stage.until(playback(1)).unwrap();
        for (until, expected) in [(1_500, begun + 1_500), (500, begun + 1_500)] {
            stage.room.put_off(grant.allocation, ms(until));
            assert_eq!(stage.until(playback(1)), Some(expected));
        }
        stage.run(1_000);
        stage.room.opened(ms(1_000), grant.allocation);
        assert_eq!(stage.until(playback(1)), Some(begun + 1_000), "it was opened sooner than that");
        stage.confirm(grant);
        let kept = stage.until(playback(1));
        stage.room.put_off(grant.allocation, ms(90_000));
        assert_eq!(stage.until(playback(1)), kept, "it has had media");
    }

    #[test]
    fn a_request_is_made_again_within_two_seconds_and_not_later() {
        for cooling in [2_000, 9_000] {
            let mut stage = Stage::new(vec![Provider { cooling: millis(cooling), ..limits(&[1]) }]);
            let first = stage.grant(wish(playback(1)));
            stage.close(first);
            let again = stage.grant(wish(playback(1)));
            let late = stage.room.late(ms(0), again.allocation, None).unwrap();
            assert_eq!(late.until, ms(2_000), "a cooling of {cooling} ms");
            assert_eq!(stage.room.late(ms(2_000), again.allocation, Some(late)), None);
        }
    }

    #[test]
    fn no_more_closes_are_kept_in_mind_than_so_many() {
        let mut lateness = Lateness::default();
        (0..20).for_each(|n| lateness.closed(ms(n), TitleId(n)));
        assert_eq!((lateness.closes.len(), lateness.last()), (CLOSES, Some(ms(19))));
    }

    #[test]
    fn where_there_is_no_limit_nothing_is_counted_late() {
        let mut stage = Stage::of(&[0]);
        let first = stage.grant(wish(playback(1)));
        stage.close(first);
        let again = stage.grant(wish(playback(1)));
        assert_eq!(stage.room.late(ms(0), again.allocation, None), None);
    }

    #[test]
    fn what_is_made_again_goes_on_being_made_on_its_account_alone() {
        let mut stage = Stage::of(&[1]);
        let first = stage.grant(wish(playback(1)));
        stage.close(first);
        stage.run(2_900);
        let again = stage.grant(wish(playback(1)));
        let late = stage.room.late(ms(2_900), again.allocation, None).unwrap();
        assert_eq!(late.until, ms(3_150));
        let elsewhere = Late { account: AccountId(1), ..late };
        assert_eq!(stage.room.late(ms(3_150), again.allocation, Some(elsewhere)), None);
        assert!(stage.room.late(ms(3_150), again.allocation, Some(late)).is_some());
    }
}
