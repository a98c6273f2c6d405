//! Accounts at providers, for the status.

use std::collections::BTreeMap;

use holdfast_core::account::{AccountState, Allocation, Holder};
use holdfast_core::input::{AccountId, AllocationId, Failure, Loss as SourceLoss, Note, ProviderId};
use holdfast_core::time::Time;
use serde::Serialize;

use super::millis;
use crate::server::Server;

/// One account: how many of its connections are used, and by whom.
#[derive(Serialize)]
pub(in crate::routes) struct Account {
    /// Its provider, and which of its accounts, counted from 1.
    name: String,
    /// 0 = any number.
    limit: u32,
    /// Connections that the provider counts.
    used: u32,
    /// Those that are kept for players without a connection at present.
    reserved: u32,
    /// Those that rest after one was closed.
    resting: u32,
    /// Whether one more is used than there are, by grace.
    graced: bool,
    /// Whether it may be used.
    serves: bool,
    /// Whether others of its priority are preferred for now: its provider did not want it.
    shunned: bool,
    granted: u64,
    confirmed: u64,
    preempted: u64,
    failed: u64,
    expired: u64,
    /// Why somebody lost a connection of its last, and how long ago.
    last_loss: Option<Loss>,
    connections: Vec<Connection>,
}

#[derive(Serialize)]
struct Loss {
    reason: String,
    age_ms: u64,
}

#[derive(Serialize)]
struct Connection {
    id: String,
    /// `opening`, `active`, `closing`.
    state: &'static str,
    /// `playback 3.1`, `source 2.0`, `probe 17`.
    holder: String,
    /// What that plays, where it is called something.
    title: Option<String>,
    age_ms: u64,
}

/// The accounts of each provider, in the order of the configuration.
pub(in crate::routes) fn accounts(server: &Server, now: Time) -> BTreeMap<ProviderId, Vec<Account>> {
    let room = server.edge().accounts();
    let mut connections = BTreeMap::<AccountId, Vec<Connection>>::new();
    for (id, allocation) in room.allocations() {
        connections.entry(allocation.account).or_default().push(connection(server, now, id, allocation));
    }
    let mut account = |state: AccountState<'_>| Account {
        name: label(server, state.account),
        limit: state.limit,
        used: state.used,
        reserved: state.reserved,
        resting: state.resting,
        graced: state.graced,
        serves: state.serves,
        shunned: state.shunned > now,
        granted: state.counts.granted,
        confirmed: state.counts.confirmed,
        preempted: state.counts.preempted,
        failed: state.counts.failed,
        expired: state.counts.expired,
        last_loss: server
            .last_loss(state.account)
            .map(|(at, reason)| Loss { reason: reason.clone(), age_ms: millis(now, *at) }),
        connections: connections.remove(&state.account).unwrap_or_default(),
    };
    let mut all = BTreeMap::<ProviderId, Vec<Account>>::new();
    for state in room.accounts() {
        all.entry(state.provider).or_default().push(account(state));
    }
    all
}

fn connection(server: &Server, now: Time, id: AllocationId, allocation: &Allocation) -> Connection {
    let holder = match allocation.holder {
        Holder::Playback(id) => format!("playback {id}"),
        Holder::Source(id) => format!("source {id}"),
        Holder::Probe(request) => format!("probe {}", request.0),
    };
    Connection {
        id: id.to_string(),
        state: allocation.state.as_str(),
        holder,
        title: server.name_of_holder(allocation.holder),
        age_ms: millis(now, allocation.since),
    }
}

/// Which account a note says that somebody lost, and why.
pub(crate) fn loss(note: &Note) -> Option<(AccountId, String)> {
    match note {
        Note::AccountPreempted { account, .. } => Some((*account, String::from("preempted"))),
        Note::AccountFailed { account, failure } => {
            let why = match failure {
                Failure::Unreachable => String::from("unreachable"),
                Failure::TimedOut => String::from("timed-out"),
                Failure::Unusable => String::from("unusable"),
                Failure::Status(status) => format!("status-{status}"),
            };
            Some((*account, why))
        }
        // What it had to give up was said before.
        Note::AccountLost { account, loss } if *loss != SourceLoss::Preempted => {
            Some((*account, loss.as_str().to_owned()))
        }
        _ => None,
    }
}

/// What people call an account: its provider, and which of its accounts, counted from 1.
pub(in crate::routes) fn label(server: &Server, account: AccountId) -> String {
    let mut left = account.0 as usize;
    for provider in &server.edge().config().providers {
        if left < provider.accounts.len() {
            return format!("{}/{}", provider.name, left + 1);
        }
        left -= provider.accounts.len();
    }
    account.0.to_string()
}
