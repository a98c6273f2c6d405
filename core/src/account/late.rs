//! Providers that go on counting a connection for a while after it was closed (spec: protocols §4.4, rule 7).
//!
//! What such a provider answers meanwhile is not the account's fault: the same is asked for again a little later, and how long it
//! took is remembered, so that the next one waits that long at once.

use core::time::Duration;

use super::allocation::Trace;
use super::{Account, Accounts};
use serde::{Deserialize, Serialize};

use crate::input::{AccountId, AllocationId, Failure, Loss, Note, Output};
use crate::time::Time;
use alloc::collections::VecDeque;

/// How long after a close a refusal may come of that: longer than is waited for it, since a provider takes its time to refuse.
const LATELY: Duration = Duration::from_secs(3);
/// The first pause before a request is made again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// How long one request is kept waiting for it in all. Players give up after some seconds.
const LONGEST: Duration = Duration::from_secs(2);
/// In this time half of what was learnt is forgotten: providers change.
const HALF: Duration = Duration::from_secs(300);

/// What is known of how late an account's provider counts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lateness {
    /// When the last connection was closed that it may go on counting.
    closed: Option<Time>,
    learnt: Duration,
    /// When that was learnt.
    at: Time,
}

impl Lateness {
    pub fn closed(&mut self, now: Time) {
        self.closed = Some(now);
    }

    fn now(self, now: Time) -> Duration {
        let halvings = now.since(self.at).as_micros() / HALF.as_micros();
        self.learnt / 1_u32.checked_shl(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// From when on the provider may have forgotten what was closed, for all that is known.
    fn ready(self, now: Time) -> Time {
        self.closed.map_or(Time::ZERO, |closed| closed + self.now(now))
    }

    /// A request made at `opened` came through that had been refused before; whether that is news.
    fn learn(&mut self, now: Time, opened: Time) -> Option<Duration> {
        let took = opened.since(self.closed?).min(LONGEST);
        let news = took > self.now(now);
        if news {
            (self.learnt, self.at) = (took, now);
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
    /// When it was refused first, and how often it was.
    since: Time,
    refusals: u32,
}

impl Late {
    /// When it is made again on this account: another one is not to be waited for.
    pub fn until_on(self, account: AccountId) -> Time {
        if account == self.account { self.until } else { Time::ZERO }
    }
}

/// Whether that is what providers answer at their limit.
pub(crate) fn is_limit(failure: Failure) -> bool {
    matches!(failure, Failure::Status(401 | 403 | 429))
}

/// The same of a source.
pub(crate) fn is_limit_of_source(loss: Loss) -> bool {
    loss == Loss::Forbidden
}

impl Account {
    /// Whether all its connections are in use, so that one more that the provider still counts is one too many.
    fn is_full(&self) -> bool {
        self.limit > 0 && self.used >= self.limit
    }

    /// When its provider saw a connection closed last, where this one is closed now.
    pub(super) fn last_close(&self, now: Time, trace: Trace) -> Option<Time> {
        if trace == Trace::Unseen { self.lateness.closed } else { Some(now) }
    }
}

impl Accounts {
    /// A request on this connection was refused as at a limit, and was so `before`: when it is made again, if it may be for the sake
    /// of a connection that was closed a moment ago. The refused one was never counted by its provider.
    pub(crate) fn late(&mut self, now: Time, allocation: AllocationId, before: Option<Late>) -> Option<Late> {
        let id = self.allocations.get(allocation)?.account;
        let account = self.pools.get(id).filter(|account| account.is_full())?;
        let again = before.is_some_and(|late| late.account == id);
        let closed = account.lateness.closed.filter(|closed| again || now <= *closed + LATELY)?;
        let (since, refusals) = before.map_or((now, 0), |late| (late.since, late.refusals));
        let first = account.cooling.clamp(FIRST, LONGEST);
        let pause = first.saturating_mul(1_u32.checked_shl(refusals).unwrap_or(u32::MAX));
        let until = (now + pause).max(closed + account.lateness.now(now));
        if until > since + LONGEST {
            return None;
        }
        self.discount(allocation);
        Some(Late { account: id, until, since, refusals: refusals + 1 })
    }

    /// What had been refused came through, when it was made again.
    pub(crate) fn learn(&mut self, now: Time, out: &mut VecDeque<Output>, allocation: AllocationId, late: Late) {
        let Late { account, until, .. } = late;
        if self.allocations.get(allocation).is_none_or(|row| row.account != account) {
            return;
        }
        if let Some(took) = self.pools.change(account, |account| account.lateness.learn(now, until)).flatten() {
            out.push_back(Output::Note(Note::AccountLate { account, late: took.as_micros() as u64 }));
        }
    }

    /// When a connection that was granted may be opened, for all that is known of the provider.
    pub(crate) fn ready(&self, now: Time, account: AccountId) -> Time {
        let account = self.pools.get(account).filter(|account| account.is_full());
        account.map_or(Time::ZERO, |account| account.lateness.ready(now))
    }

    /// The provider refused this connection, and never counts it.
    pub(super) fn discount(&mut self, allocation: AllocationId) {
        self.trace(allocation, Trace::Refused);
    }

    /// This connection is never opened: nothing rests for its sake but what was closed before it.
    pub(crate) fn unopened(&mut self, allocation: AllocationId) {
        self.trace(allocation, Trace::Unseen);
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

    use super::super::stage::*;
    use super::*;
    use crate::config::Provider;

    #[test]
    fn what_providers_answer_at_their_limit() {
        let limits = [401, 403, 404, 429, 503].map(|status| is_limit(Failure::Status(status)));
        assert_eq!(limits, [true, true, false, true, false]);
        assert!(is_limit_of_source(Loss::Forbidden) && !is_limit_of_source(Loss::Reset));
    }

    #[test]
    fn only_what_takes_longer_than_is_known_is_news() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.learn(ms(700), ms(700)), None, "nothing was closed");
        lateness.closed(ms(0));
        assert_eq!(lateness.learn(ms(1_000), ms(700)), Some(millis(700)));
        assert_eq!(lateness.learn(ms(1_000), ms(700)), None);
        assert_eq!(lateness.learn(ms(1_000), ms(701)), Some(millis(701)));
        assert_eq!(lateness.learn(ms(1_000), ms(9_000)), Some(LONGEST));
        assert_eq!((lateness.now(ms(300_999)), lateness.now(ms(301_000))), (LONGEST, LONGEST / 2));
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
}
