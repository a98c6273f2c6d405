//! A provider and its connections: it counts them by account, bears no more than it says, and may be slow, silent or gone.

use std::time::Duration;

use holdfast_core::input::{
    AccountId, AllocationId, Failure, Grant, Input, Loss, Refusal, RequestId, SourceId, Want, Writer,
};
use holdfast_core::time::Time;
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::chance::{Fault, Plan, pick, span};
use super::super::options::Actor;
use super::super::oracle::Broken;
use super::super::truth::media;
use super::super::{Event, World};

/// How a provider behaves towards whoever asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers soon and gives everything.
    Good,
    /// Takes connections and says nothing.
    Dead,
    /// Nobody listens.
    Unreachable,
    /// Answers with this status.
    Status(u16),
    /// What it answers is of no use.
    Useless,
    /// Answers, and then no media comes.
    Silent,
    /// Breaks each response off after so many ms.
    Breaking(u64),
}

/// What providers say when they do not give something.
const STATUSES: [u16; 8] = [404, 410, 429, 500, 503, 401, 403, 456];

/// What makes a provider behave otherwise for a while.
const MOODS: [Fault; 8] = [
    Fault::ProviderDead,
    Fault::ProviderUnreachable,
    Fault::ProviderStatus,
    Fault::ProviderForbids,
    Fault::ProviderUseless,
    Fault::ProviderSilent,
    Fault::ProviderBreaks,
    Fault::ProviderBreaks,
];
/// What providers say where they count more connections than there may be.
const LIMITS: [u16; 7] = [429, 403, 401, 456, 458, 503, 509];

/// The longest that a provider takes to answer when it is well, in ms.
const ANSWER: u64 = 150;

pub struct Provider {
    pub dice: SmallRng,
    pub mood: Mood,
    /// It is well for the whole run.
    pub steadfast: bool,
    /// For how long it goes on counting what is closed.
    pub counts_late: Duration,
    /// How often it was asked.
    pub asked: u64,
}

impl Provider {
    pub fn new(dice: SmallRng) -> Self {
        Provider { dice, mood: Mood::Good, steadfast: false, counts_late: Duration::ZERO, asked: 0 }
    }
}

/// The provider's own count of an account.
#[derive(Clone, Debug, Default)]
pub struct Count {
    pub open: u32,
    /// The most that were open at once.
    pub peak: u32,
    /// Until when it still counts some that are closed.
    pub ghosts: Vec<Time>,
}

/// For whom a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Relay(RequestId),
    Source(SourceId),
}

/// One connection to a provider, from its grant to its end.
pub struct Link {
    pub account: AccountId,
    pub provider: usize,
    pub used_by: Use,
    /// The provider counts it.
    pub counted: bool,
    /// The driver is closing it.
    closing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Connect,
    Answer,
    /// Media of a live stream.
    Send,
    /// It breaks.
    Break,
    /// It is closed.
    Close,
}

impl World<'_> {
    fn link_to_provider(&mut self, allocation: AllocationId, delay: Duration, step: Step) {
        self.plan_event(self.now + delay, Event::Account { allocation, step });
    }

    /// A grant is acted upon.
    pub(in super::super) fn use_grant(&mut self, grant: Grant, used_by: Use) {
        let provider = self.truth.titles.accounts[grant.account.0 as usize].provider.0 as usize;
        self.providers[provider].asked += 1;
        let handshake = span(&mut self.providers[provider].dice, 1, 60);
        let link = Link { account: grant.account, provider, used_by, counted: false, closing: false };
        self.connections.insert(grant.allocation, link);
        self.link_to_provider(grant.allocation, handshake, Step::Connect);
    }

    pub(in super::super) fn account_step(&mut self, allocation: AllocationId, step: Step) -> Result<(), Broken> {
        let Some(link) = self.connections.get(&allocation) else { return Ok(()) };
        if link.closing && step != Step::Close {
            return Ok(());
        }
        match step {
            Step::Connect => self.connect(allocation),
            Step::Answer => self.answer(allocation),
            Step::Send => self.send_live(allocation),
            Step::Break => self.breaks(allocation),
            Step::Close => self.close_connection(allocation),
        }
    }

    /// The provider takes a connection: it counts it from here on.
    fn connect(&mut self, allocation: AllocationId) -> Result<(), Broken> {
        let Some(link) = self.connections.get_mut(&allocation) else { return Ok(()) };
        let (account, provider) = (link.account.0 as usize, link.provider);
        let (limit, most) = (self.truth.titles.accounts[account].limit, self.truth.titles.accounts[account].most());
        let (now, count) = (self.now, &mut self.counts[account]);
        let mood = self.providers[provider].mood;
        if mood == Mood::Unreachable {
            self.witness.faults.add(Fault::ProviderUnreachable);
            return self.no_good(allocation, Failure::Unreachable, Loss::Unreachable);
        }
        link.counted = true;
        count.open += 1;
        count.peak = count.peak.max(count.open);
        count.ghosts.retain(|until| *until > now);
        if limit > 0 && count.open > most {
            let what = format!("account {account} bears {limit} connections, {most} at most, and gets {}", count.open);
            return Err(Broken { id: "account-2", what });
        }
        let ghosts = count.ghosts.len() as u32;
        if limit > 0 && count.open + ghosts > most {
            self.witness.faults.add(Fault::ProviderCountsLate);
            // What it refuses it does not count.
            (link.counted, count.open) = (false, count.open - 1);
            let status = *pick(&mut self.providers[provider].dice, &LIMITS);
            return self.refuses(allocation, status);
        }
        let slow = span(&mut self.providers[provider].dice, 1, ANSWER);
        match mood {
            // The driver loses patience, or the core does.
            Mood::Dead => {
                self.witness.faults.add(Fault::ProviderDead);
                let patience = self.patience;
                self.link_to_provider(allocation, patience, Step::Answer);
            }
            _ => self.link_to_provider(allocation, slow, Step::Answer),
        }
        Ok(())
    }

    /// The provider answers.
    fn answer(&mut self, allocation: AllocationId) -> Result<(), Broken> {
        let Some(link) = self.connections.get(&allocation) else { return Ok(()) };
        let (provider, used_by) = (link.provider, link.used_by);
        let mood = self.providers[provider].mood;
        match mood {
            Mood::Dead => return self.no_good(allocation, Failure::TimedOut, Loss::TimedOut),
            Mood::Unreachable => {
                self.witness.faults.add(Fault::ProviderUnreachable);
                return self.no_good(allocation, Failure::Unreachable, Loss::Reset);
            }
            Mood::Status(status) => {
                let forbids = Refusal::of(status.into()) == Refusal::Credentials;
                self.witness.faults.add(if forbids { Fault::ProviderForbids } else { Fault::ProviderStatus });
                return self.refuses(allocation, status);
            }
            Mood::Useless => {
                self.witness.faults.add(Fault::ProviderUseless);
                return self.no_good(allocation, Failure::Unusable, Loss::Unusable);
            }
            Mood::Breaking(after) => self.link_to_provider(allocation, Duration::from_millis(after), Step::Break),
            Mood::Good | Mood::Silent => {}
        }
        if mood == Mood::Silent {
            self.witness.faults.add(Fault::ProviderSilent);
        }
        match used_by {
            Use::Relay(request) => self.relay_answered(request, mood == Mood::Silent),
            Use::Source(source) => {
                let first = span(&mut self.providers[provider].dice, 1, 50);
                self.link_to_provider(allocation, first, Step::Send);
                self.deliver(Input::Opened { source })
            }
        }
    }

    fn send_live(&mut self, allocation: AllocationId) -> Result<(), Broken> {
        let Some(link) = self.connections.get(&allocation) else { return Ok(()) };
        let Use::Source(source) = link.used_by else { return Ok(()) };
        let silent = self.providers[link.provider].mood == Mood::Silent;
        self.link_to_provider(allocation, self.live_every, Step::Send);
        let Some(feed) = self.truth.titles.sources.get(&source).map(|row| row.feed) else { return Ok(()) };
        if silent {
            self.witness.faults.add(Fault::ProviderSilent);
            return Ok(());
        }
        self.serial += 1;
        let (from, data) = (Writer::Source(source), media(self.serial, 188));
        self.deliver(Input::Media { feed, from, data, random_access: Some(self.now.as_micros() * 9 / 100) })
    }

    /// The provider breaks a connection in the middle.
    fn breaks(&mut self, allocation: AllocationId) -> Result<(), Broken> {
        let Some(link) = self.connections.get(&allocation) else { return Ok(()) };
        self.witness.faults.add(Fault::ProviderBreaks);
        match link.used_by {
            Use::Relay(request) => self.relay_broke(request),
            Use::Source(source) => {
                self.close_soon(allocation);
                self.deliver(Input::Lost { source, loss: Loss::Reset })
            }
        }
    }

    fn refuses(&mut self, allocation: AllocationId, status: u16) -> Result<(), Broken> {
        self.no_good(allocation, Failure::Status(status), Refusal::of(status.into()).into())
    }

    /// Nothing comes of a connection.
    fn no_good(&mut self, allocation: AllocationId, failure: Failure, loss: Loss) -> Result<(), Broken> {
        let Some(link) = self.connections.get(&allocation) else { return Ok(()) };
        let used_by = link.used_by;
        self.close_soon(allocation);
        match used_by {
            Use::Relay(request) => self.relay_failed(request, failure),
            Use::Source(source) => self.deliver(Input::Lost { source, loss }),
        }
    }

    /// The driver closes a connection, for its own reasons or because it was told to.
    pub(in super::super) fn close_soon(&mut self, allocation: AllocationId) {
        self.truth.titles.let_go(self.now, allocation);
        let Some(link) = self.connections.get_mut(&allocation).filter(|link| !link.closing) else { return };
        link.closing = true;
        let dice = &mut self.providers[link.provider].dice;
        let late = self.plan.strikes(Fault::CloseLate, dice);
        let delay = match late {
            true => span(dice, 100, 2_500),
            false => span(dice, 0, 20) * u32::from(dice.random_bool(0.7)),
        };
        if late {
            self.witness.faults.add(Fault::CloseLate);
        }
        self.link_to_provider(allocation, delay, Step::Close);
    }

    /// A connection is closed: the provider counts it no more, or not for long, and the core is told.
    fn close_connection(&mut self, allocation: AllocationId) -> Result<(), Broken> {
        let Some(link) = self.connections.remove(&allocation) else { return Ok(()) };
        let provider = &mut self.providers[link.provider];
        if link.counted {
            let count = &mut self.counts[link.account.0 as usize];
            count.open -= 1;
            if !provider.counts_late.is_zero() {
                count.ghosts.push(self.now + provider.counts_late);
            }
        }
        let dice = &mut provider.dice;
        if self.plan.strikes(Fault::DoubledClosed, dice) {
            let after = span(dice, 0, 3_000);
            self.send_after(after, Input::Closed { allocation });
        }
        self.deliver(Input::Closed { allocation })
    }

    /// A provider behaves otherwise for a while.
    pub(in super::super) fn provider_step(&mut self, index: usize) {
        let attends = self.attends(Actor::Provider(index as u32));
        let provider = &mut self.providers[index];
        if self.healed || provider.steadfast || !attends {
            return;
        }
        provider.mood = provider.draw(&self.plan);
        let lasts = span(&mut provider.dice, 300, 12_000);
        let mood = provider.mood;
        self.say(format_args!("provider {index} is {mood:?}"));
        self.plan_event(self.now + lasts, Event::Provider { index });
    }

    /// Every provider is well from here on.
    pub(in super::super) fn heal_providers(&mut self) {
        for provider in &mut self.providers {
            (provider.mood, provider.counts_late) = (Mood::Good, Duration::ZERO);
        }
        // What was taken by one that never answers is answered late.
        self.patience = Duration::from_secs(3);
    }

    /// A panel says how many connections it allows.
    pub(in super::super) fn allow(&mut self) -> Result<(), Broken> {
        let accounts = self.truth.titles.accounts.len();
        if accounts > 0 && self.plan.strikes(Fault::PanelAllows, &mut self.dice) {
            let account = AccountId(self.dice.random_range(0..accounts) as u32);
            let connections = *pick(&mut self.dice, &[0, 1, 1, 2, 5]);
            self.deliver(Input::Allowed { account, connections })?;
        }
        Ok(())
    }

    /// Panels allow what is configured.
    pub(in super::super) fn allow_all(&mut self) -> Result<(), Broken> {
        for (account, place) in self.truth.titles.accounts.clone().into_iter().zip(0..) {
            if account.limit != account.settings.max_connections {
                self.deliver(Input::Allowed { account: AccountId(place), connections: 0 })?;
            }
        }
        Ok(())
    }

    /// What somebody wants of a provider takes so long to send.
    pub(in super::super) fn length_of(dice: &mut SmallRng, want: Want) -> Duration {
        match want {
            Want::Setup | Want::Look => span(dice, 1, 40),
            Want::Part => span(dice, 20, 900),
            Want::Rest => span(dice, 2_000, 60_000),
        }
    }
}

impl Provider {
    fn draw(&mut self, plan: &Plan) -> Mood {
        let dice = &mut self.dice;
        let faults: Vec<Fault> = MOODS.into_iter().filter(|fault| plan.has(*fault)).collect();
        let Some(fault) = (!faults.is_empty()).then(|| *pick(dice, &faults)) else { return Mood::Good };
        // There are few moods in a run: one that is rare on each of many occasions would never be seen in it.
        if !plan.strikes(fault, dice) && !dice.random_bool(0.3) {
            return Mood::Good;
        }
        match fault {
            Fault::ProviderDead => Mood::Dead,
            Fault::ProviderUnreachable => Mood::Unreachable,
            Fault::ProviderStatus => Mood::Status(STATUSES[dice.random_range(0..5)]),
            Fault::ProviderForbids => Mood::Status(STATUSES[dice.random_range(5..8)]),
            Fault::ProviderUseless => Mood::Useless,
            Fault::ProviderSilent => Mood::Silent,
            _ => Mood::Breaking(dice.random_range(0..4_000)),
        }
    }
}
