//! Origins that are providers: no connection without an account (spec: playback §4).

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Phase;
use super::channel::{Attempt, Origin, Turn, Upstream};
use crate::account::{Acquired, Grace, Holder, Patience, Pin, Strength, Told, Why, Wish};
use crate::config;
use crate::input::{
    AccountId, AllocationId, Grant, Loss, Note, Output, ProviderId, RefuseReason, SourceId, TitleId, ViewerEnd,
};
use crate::playback::Place;
use crate::time::Time;

/// By what right a connection is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Access {
    /// It needs none.
    Free,
    /// It waits for an account and was not made yet.
    Waits,
    /// With an account.
    Granted(AllocationId, Confirmed),
    /// With an account, and not made before then: its provider may still count what was closed before.
    Rests(Grant, Time),
}

impl Access {
    /// Whether there is a connection.
    pub fn is_made(self) -> bool {
        matches!(self, Access::Free | Access::Granted(..))
    }
}

/// Whether media came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Confirmed {
    No,
    Yes,
}

/// The origins of a title, and what became of them for want of accounts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Origins {
    pub title: TitleId,
    /// The preferred one first.
    pub providers: Vec<ProviderId>,
    /// Those that the source beside would take, in the order of its wish.
    candidates: Vec<usize>,
    /// How strong the strongest of those is who want it, if that was said.
    pub said: Option<Strength>,
    /// What the account room knows of that.
    told: Option<Strength>,
    /// From when on those who want it have a grace.
    pub gracious: Time,
    /// What viewers are told of an account that was given up, where no media came since.
    given_up: Option<ViewerEnd>,
    /// Whether an origin failed for another reason than want of an account, since media was last wanted.
    failed: bool,
    /// Whether one of these had no connection to spare.
    limited: bool,
    /// Accounts that were refused in this round: those that their providers have beside them have their turn.
    refused: Vec<AccountId>,
}

impl Origins {
    pub fn new(title: TitleId, providers: &[ProviderId]) -> Self {
        let (candidates, said, told) = (Vec::new(), None, None);
        let (gracious, given_up, failed, limited, refused) = (Time::ZERO, None, false, false, Vec::new());
        let providers = providers.into();
        Origins { title, providers, candidates, said, told, gracious, given_up, failed, limited, refused }
    }

    /// Media flows, or is wanted anew.
    pub fn forget(&mut self) {
        (self.given_up, self.failed, self.limited) = (None, false, false);
        self.refused.clear();
    }

    /// Each origin had its turn.
    pub fn over(&mut self) {
        self.refused.clear();
    }

    /// Why nobody gets the title, after each origin had its turn.
    pub fn lack(&self) -> RefuseReason {
        if self.limited { RefuseReason::ProviderLimit } else { RefuseReason::NoSource }
    }

    /// A source is over.
    pub fn lost(&mut self, loss: Loss) {
        match loss {
            Loss::Preempted => self.given_up = Some(ViewerEnd::Preempted),
            Loss::GraceOver => self.given_up = Some(ViewerEnd::GraceOver),
            Loss::NoAccount => {}
            _ => (self.failed, self.limited) = (true, self.limited || loss == Loss::Limit),
        }
    }
}

/// What graces sources have while they wait for an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Graces {
    wait: Duration,
    kind: Grace,
    preemption_wait: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Graces::new(&config::Playback::default())
    }
}

impl Graces {
    pub fn new(settings: &config::Playback) -> Self {
        let has = |strategy| settings.strategies.contains(&strategy);
        let (hold, instant) = (has(config::Strategy::GraceHold), has(config::Strategy::GraceInstant));
        Graces {
            wait: if hold || instant { settings.grace } else { Duration::ZERO },
            kind: if instant { Grace::Instant } else { Grace::Hold },
            preemption_wait: settings.preemption_wait,
        }
    }
}

impl Turn<'_, '_> {
    /// Looks for an account for the source beside, with any of the origins whose turn it is.
    pub fn acquire(&mut self, source: SourceId) -> Attempt {
        let (now, spacing) = (self.cx.now, self.channel.settings.no_input_timeout);
        let (phase, index) = (self.channel.phase, self.channel.beside.map_or(0, |beside| beside.index));
        let turns: Vec<usize> = match phase {
            Phase::Live => Vec::from([index]),
            _ => self.channel.round.candidates(now, spacing).collect(),
        };
        // What is kept has the same claim from now on, and nothing tells it later.
        self.tell_strength();
        let strength = self.strength().unwrap_or(Strength::PROBE);
        let (kept, feed) = (self.channel.kept, Some(self.channel.feed));
        let Some(origins) = &mut self.channel.origins else { return Attempt::Failed };
        let provider = |index: &usize| origins.providers.get(*index).copied();
        let providers: Vec<ProviderId> = turns.iter().filter_map(provider).collect();
        let (title, holder, gracious) = (origins.title, Holder::Source(source), origins.gracious);
        let avoid = origins.refused.clone();
        origins.candidates = turns;
        origins.told = Some(strength);
        let held_by_kept = kept.filter(|_| phase != Phase::Live).filter(|kept| {
            matches!(kept.access, Access::Granted(..))
                && provider(&kept.index).is_some_and(|own| providers.contains(&own))
        });
        let wish = |patience| {
            let (pin, window, viewing) = (Pin::None, Duration::ZERO, None);
            Wish { holder, providers: &providers, avoid: &avoid, title, viewing, feed, strength, pin, window, patience }
        };
        // A connection beside another one takes nobody's account.
        let grace = if gracious <= now { self.graces.wait } else { Duration::ZERO };
        let patience = if kept.is_some() { Patience::None } else { Patience::Until(now + grace, self.graces.kind) };
        let mut acquired = self.cx.accounts.acquire(now, self.cx.out, wish(patience));
        if acquired == Acquired::Exhausted
            && let Some(kept) = held_by_kept
        {
            // What is silent makes room for what may not be.
            self.channel.kept = None;
            self.close(kept);
            let until = now + self.graces.wait.max(self.graces.preemption_wait);
            acquired = self.cx.accounts.acquire(now, self.cx.out, wish(Patience::Meek(until)));
        }
        match acquired {
            Acquired::Granted { grant, index } => {
                self.begin(self.candidate(index), Some(grant));
                Attempt::Made
            }
            Acquired::Waiting => {
                if let Some(beside) = &mut self.channel.beside {
                    beside.access = Access::Waits;
                }
                Attempt::Made
            }
            Acquired::Exhausted => {
                self.exhausted(source);
                Attempt::Failed
            }
        }
    }

    /// The origin at this place of the wish.
    fn candidate(&self, index: u32) -> usize {
        let origins = self.channel.origins.as_ref();
        origins.and_then(|origins| origins.candidates.get(index as usize).copied()).unwrap_or_default()
    }

    /// There is no account for the source beside.
    fn exhausted(&mut self, source: SourceId) {
        let candidates = self.channel.origins.as_mut().map(|origins| core::mem::take(&mut origins.candidates));
        if self.channel.phase == Phase::Seeking {
            for index in candidates.unwrap_or_default() {
                self.channel.round.passed(index);
            }
        }
        if let Some(beside) = &mut self.channel.beside {
            beside.access = Access::Waits;
        }
        self.lose(source, Loss::NoAccount, Origin::Given);
    }

    /// The account room says something of one of the channel's sources.
    pub fn told(&mut self, source: SourceId, told: Told) {
        match told {
            Told::Granted { grant, index, .. } => self.begin(self.candidate(index), Some(grant)),
            Told::Exhausted { .. } => self.exhausted(source),
            Told::GiveUp { why: Why::Idle, .. } if !self.is_wanted() => self.go_off(),
            Told::GiveUp { why: Why::GraceOver | Why::GrantOver, .. } => {
                self.lose(source, Loss::GraceOver, Origin::Given);
            }
            Told::GiveUp { .. } => self.lose(source, Loss::Preempted, Origin::Given),
            // It may still begin to send, until somebody needs its account.
            Told::Expired { .. } => {}
        }
    }

    /// All origins had their turn: where that came to nothing for want of accounts alone, nobody is left waiting for an origin.
    pub fn lacks_accounts(&mut self) -> bool {
        let Some(origins) = &mut self.channel.origins else { return false };
        let watched = self.cx.feeds.viewers_of(self.channel.feed) > 0;
        if self.channel.kept.is_some() || (watched && origins.given_up.is_none()) || (!watched && origins.failed) {
            return false;
        }
        let reason = origins.given_up.unwrap_or(ViewerEnd::Preempted);
        let lack = self.cx.accounts.lack(&origins.providers);
        origins.forget();
        self.cx.feeds.end_all(self.cx.now, self.channel.feed, reason, self.cx.out);
        self.answer_held(lack);
        self.go_off();
        true
    }

    /// A source is over: its account is used until its connection is closed.
    pub fn give_back(&mut self, upstream: &Upstream, loss: Loss) {
        let (now, holder) = (self.cx.now, Holder::Source(upstream.source));
        match upstream.access {
            Access::Rests(grant, _) => {
                // There is no connection that somebody could close.
                self.cx.accounts.unopened(self.cx.now, grant.allocation);
                self.cx.accounts.end(now, self.cx.out, holder);
                return self.cx.accounts.closed(now, self.cx.out, grant.allocation);
            }
            Access::Granted(allocation, _) if loss != Loss::Ended => {
                if let Some(account) = self.cx.accounts.allocation(allocation).map(|row| row.account) {
                    self.cx.out.push_back(Output::Note(Note::AccountLost { account, loss }));
                }
                self.cx.accounts.failed(now, self.cx.out, allocation, loss.into());
            }
            _ => {}
        }
        self.cx.accounts.end(now, self.cx.out, holder);
    }

    /// What becomes of a source that is gone: where its provider may still count what was closed before, it is asked again in a
    /// moment. If it was so in vain, it is lost for what its provider said last, and was so all the while.
    pub fn verdict(&mut self, upstream: &Upstream, loss: Loss) -> Verdict {
        let (now, before) = (self.cx.now, self.channel.late.take());
        let Some(allocation) = self.refused(upstream, loss) else {
            return Verdict::Lost { loss, since: upstream.opened, refused: None };
        };
        self.channel.late = self.cx.accounts.late(now, allocation, before);
        match (self.channel.late, before) {
            (Some(late), _) => {
                self.channel.round.retry(upstream.index, late.until);
                Verdict::AskedAgain
            }
            (None, before) => {
                let since = before.map_or(upstream.opened, |before| before.since.min(upstream.opened));
                let refused = self.cx.accounts.allocation(allocation).map(|row| row.account);
                Verdict::Lost { loss, since, refused }
            }
        }
    }

    /// An origin refused an account, with which it was asked for media that nobody has: where its provider has another one that was
    /// not refused in this round, the same is asked with that at once. How many it has bounds how often that happens.
    pub fn spurn(&mut self, upstream: &Upstream, account: AccountId) {
        let Some(origins) = &mut self.channel.origins else { return };
        let Some(provider) = origins.providers.get(upstream.index) else { return };
        origins.refused.push(account);
        if self.cx.accounts.has_other(*provider, &origins.refused) {
            self.channel.round.retry(upstream.index, self.cx.now);
        }
    }

    /// The allocation with which media was sought in vain, where that may be for its account alone.
    fn refused(&self, upstream: &Upstream, loss: Loss) -> Option<AllocationId> {
        let sought = self.channel.phase == Phase::Seeking && !upstream.wrote;
        let Access::Granted(allocation, Confirmed::No) = upstream.access else { return None };
        (sought && loss.is_of_login()).then_some(allocation)
    }

    /// When the source beside may be opened on this account, for all that is known of its provider.
    pub fn rests(&mut self, grant: Grant) -> bool {
        let (now, at) = (self.cx.now, self.cx.accounts.ready(self.cx.now, grant.allocation));
        if let Some(beside) = self.channel.beside.as_mut().filter(|_| at > now) {
            beside.access = Access::Rests(grant, at);
            self.cx.accounts.put_off(grant.allocation, at);
        }
        at > now
    }

    /// Has the source beside opened that its provider may have forgotten enough for by now. What others closed meanwhile does not put it
    /// off again.
    pub fn wake(&mut self) {
        if let Some(Upstream { access: Access::Rests(grant, at), .. }) = self.channel.beside
            && at <= self.cx.now
        {
            self.make(Some(grant));
        }
    }

    /// Media flows from a source; what it took is remembered, if it had been refused before.
    pub fn was_late(&mut self, source: SourceId) {
        let kept = self.channel.kept.filter(|kept| kept.source == source);
        if let (Some(late), Some(Access::Granted(allocation, _))) =
            (self.channel.late.take(), kept.map(|kept| kept.access))
        {
            self.cx.accounts.learn(self.cx.now, self.cx.out, allocation, late);
        }
    }

    /// How strong the channel's claim on accounts is; `None` while nobody is there.
    fn strength(&self) -> Option<Strength> {
        let said = self.channel.origins.as_ref().and_then(|origins| origins.said);
        // Who is not known as a user watches as one does of whom nothing is said.
        self.is_wanted().then(|| said.unwrap_or(Strength { place: Place::Normal, priority: 0 }))
    }

    /// Says to the account room how strong the channel's claim is, where that has changed.
    pub fn tell_strength(&mut self) {
        let strength = self.strength();
        let Some(origins) = self.channel.origins.as_mut().filter(|origins| origins.told != strength) else { return };
        origins.told = strength;
        for upstream in [self.channel.kept, self.channel.beside].into_iter().flatten() {
            let holder = Holder::Source(upstream.source);
            self.cx.accounts.set_strength(self.cx.now, self.cx.out, holder, strength);
        }
    }

    /// When a channel of a title is gone, if nobody wants it.
    pub fn gone_at(&self) -> Option<Time> {
        self.channel.origins.as_ref()?;
        let remembered = if self.channel.phase == Phase::Ended { self.channel.round.next } else { Time::ZERO };
        self.off_at().map(|at| at.max(remembered))
    }

    /// Whether it is gone.
    pub fn is_gone(&self) -> bool {
        let over = matches!(self.channel.phase, Phase::Off | Phase::Ended);
        over && self.gone_at().is_some_and(|at| at <= self.cx.now)
    }
}

/// What becomes of a source that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same is asked again in a moment.
    AskedAgain,
    /// It is over, and was tried since then; with which account, where it may be for that alone.
    Lost { loss: Loss, since: Time, refused: Option<AccountId> },
}
