//! Providers: what there is of each, and of when.

use holdfast_core::time::Time;
use serde::Serialize;

use super::{accounts, millis};
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
    accounts: Vec<accounts::Account>,
}

/// All providers, in the order of the configuration.
pub(super) fn providers(server: &Server, now: Time) -> Vec<Provider> {
    let mut accounts = accounts::accounts(server, now);
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
            accounts: accounts.remove(&id).unwrap_or_default(),
        }
    };
    server.providers().iter().map(provider).collect()
}
