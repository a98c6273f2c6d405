//! Who waits for an account: the strongest first, and of equals the one that came first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Grace, Holder, Pin, Strength};
use crate::input::{AccountId, AllocationId, ProviderId, TitleId};
use crate::time::Time;

/// A wish that waits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub providers: Vec<ProviderId>,
    pub pin: Pin,
    pub title: TitleId,
    pub strength: Strength,
    /// When it came, among all.
    pub arrival: u64,
    pub until: Time,
    /// Whether weaker ones give way to it.
    pub preempts: bool,
    pub grace: Grace,
    /// The connection that is being closed and whose slot it waits for.
    pub expects: Option<AllocationId>,
    pub armed: Time,
}

impl Waiting {
    /// Where the account's provider stands in the wish, if the account will do.
    pub fn index(&self, account: AccountId, provider: ProviderId) -> Option<u32> {
        if matches!(self.pin, Pin::Firm(pin) if pin != account) {
            return None;
        }
        self.providers.iter().position(|own| *own == provider).map(|place| place as u32)
    }

    fn rows(&self, holder: Holder) -> impl Iterator<Item = Row> {
        let rank = (self.strength, self.arrival, holder);
        let firm = if let Pin::Firm(account) = self.pin { Some(account) } else { None };
        let providers = self.providers.iter().filter(move |_| firm.is_none());
        let wheres = firm.map(Where::Account).into_iter().chain(providers.map(|provider| Where::Provider(*provider)));
        let unmet = self.expects.is_none() && self.preempts;
        wheres.flat_map(move |place| {
            let unmet = unmet.then_some((place, For::Unmet, rank));
            [(place, For::Any, rank), (place, For::Title(self.title), rank)].into_iter().chain(unmet)
        })
    }
}

/// Where something is waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) enum Where {
    Provider(ProviderId),
    Account(AccountId),
}

/// Whoever waits, as one looks for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) enum For {
    /// All.
    Any,
    /// Those that want this title: it may have slots that others may not.
    Title(TitleId),
    /// Those that nobody gives way to yet, though weaker ones would.
    Unmet,
}

type Rank = (Strength, u64, Holder);
type Row = (Where, For, Rank);

/// All wishes that wait, each under everything that it is looked for by.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue(BTreeSet<Row>);

impl Queue {
    pub fn insert(&mut self, holder: Holder, waiting: &Waiting) {
        self.0.extend(waiting.rows(holder));
    }

    pub fn remove(&mut self, holder: Holder, waiting: &Waiting) {
        for row in waiting.rows(holder) {
            self.0.remove(&row);
        }
    }

    /// Whose turn it is at an account.
    pub fn first(&self, account: AccountId, provider: ProviderId, wanted: For) -> Option<Holder> {
        let first = |place| {
            let first = self.0.range((place, wanted, LEAST)..).next();
            first.filter(|row| row.0 == place && row.1 == wanted).map(|row| row.2)
        };
        let pair = [first(Where::Provider(provider)), first(Where::Account(account))];
        pair.into_iter().flatten().min().map(|(_, _, holder)| holder)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

const LEAST: Rank = (
    Strength { place: crate::playback::Place::Normal, priority: i8::MIN },
    0,
    Holder::Playback(crate::id::Id::from_parts(0, 0)),
);
