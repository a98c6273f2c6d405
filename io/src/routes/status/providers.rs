//! Providers: what there is of each, and of when.

use holdfast_core::time::Time;
use serde::Serialize;

use super::{accounts, channels, millis};
use crate::providers::{Form, Kind};
use crate::server::Server;

#[derive(Serialize)]
pub(super) struct Provider {
    name: String,
    /// Where its list or its panel is, as far as it holds no key.
    label: String,
    live: u64,
    /// The form in which its live streams are asked for, but for those that came in the other one (`ts`, `m3u8`); `null` where its list
    /// says that of each.
    live_form: Option<&'static str>,
    films: u64,
    series: u64,
    episodes: u64,
    /// Entries that could not be used.
    skipped: u64,
    /// What its guide says is on, about now.
    programmes: usize,
    /// How long ago its catalogue was read in full; `null` while there is none.
    read_ms: Option<u64>,
    /// Why the last reading failed; `null` if it did not.
    fault: Option<String>,
    /// How often its catalogue was read, and how often something of it could not be.
    reads: u64,
    faults: u64,
    accounts: Vec<accounts::Account>,
    /// Its live streams that are watched, or were a moment ago.
    channels: Vec<channels::Channel>,
}

/// All providers, in the order of the configuration.
pub(super) fn providers(server: &Server, now: Time) -> Vec<Provider> {
    let mut accounts = accounts::accounts(server, now);
    let mut tuned = channels::tuned(server, now);
    let provider = |(id, own): (_, &crate::providers::Provider)| {
        let (read, fault) = server.catalog_state(id);
        let counts = server.catalog_counts(id);
        let count = |kind: Kind| own.catalogue.counts[kind as usize];
        Provider {
            name: own.settings.name.clone(),
            label: own.settings.location.label(),
            live: count(Kind::Live),
            live_form: own.form().map(Form::extension),
            films: count(Kind::Film),
            series: count(Kind::Series),
            episodes: count(Kind::Episode),
            skipped: own.catalogue.skipped,
            programmes: own.programmes.len(),
            read_ms: read.map(|read| millis(now, read)),
            fault: fault.map(str::to_owned),
            reads: counts.reads,
            faults: counts.faults,
            accounts: accounts.remove(&id).unwrap_or_default(),
            channels: tuned.remove(&id).unwrap_or_default(),
        }
    };
    server.providers().iter().map(provider).collect()
}
