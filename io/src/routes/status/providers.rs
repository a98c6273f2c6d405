//! Providers: what there is of each, and of when.

use holdfast_core::account::AccountState;
use holdfast_core::time::Time;
use serde::Serialize;

use super::millis;
use crate::providers::Kind;
use crate::server::Server;

#[derive(Serialize)]
pub(super) struct Provider {
    name: String,
    /// Where its list or its panel is, as far as it holds no key.
    label: String,
    live: u64,
    films: u64,
    series: u64,
    episodes: u64,
    /// Entries that could not be used.
    skipped: u64,
    /// What its guide says is on, about now.
    programmes: usize,
    /// `null` while there is no catalogue.
    read_ms: Option<u64>,
    /// Why the last reading failed; `null` if it did not.
    fault: Option<String>,
    accounts: Vec<Account>,
}

#[derive(Serialize)]
struct Account {
    /// How many connections it may have at once; 0 = any number.
    limit: u32,
    /// Connections that are not closed.
    used: u32,
    /// What is kept for players that come back.
    reserved: u32,
    /// What rests after a connection was closed.
    resting: u32,
    /// Whether one connection is one too many, by grace.
    graced: bool,
    /// Whether it may be used: enabled, and its time not over.
    serves: bool,
    granted: u64,
    confirmed: u64,
    preempted: u64,
    failed: u64,
    expired: u64,
}

fn account(state: AccountState<'_>) -> Account {
    let counts = state.counts;
    Account {
        limit: state.limit,
        used: state.used,
        reserved: state.reserved,
        resting: state.resting,
        graced: state.graced,
        serves: state.serves,
        granted: counts.granted,
        confirmed: counts.confirmed,
        preempted: counts.preempted,
        failed: counts.failed,
        expired: counts.expired,
    }
}

/// All providers, in the order of the configuration.
pub(super) fn providers(server: &Server, now: Time) -> Vec<Provider> {
    let accounts = server.edge().accounts();
    let provider = |(id, own): (_, &crate::providers::Provider)| {
        let (read, fault) = server.catalog_state(id);
        let count = |kind: Kind| own.catalogue.counts[kind as usize];
        Provider {
            name: own.settings.name.clone(),
            label: own.settings.location.label(),
            live: count(Kind::Live),
            films: count(Kind::Film),
            series: count(Kind::Series),
            episodes: count(Kind::Episode),
            skipped: own.catalogue.skipped,
            programmes: own.programmes.len(),
            read_ms: read.map(|read| millis(now, read)),
            fault: fault.map(str::to_owned),
            accounts: accounts.accounts().filter(|state| state.provider == id).map(account).collect(),
        }
    };
    server.providers().iter().map(provider).collect()
}
