//! Accounts at providers, for the status.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::account::{AccountState, Holder};
use holdfast_core::input::{
    AccountId, Failure, FeedId, GivesWay, Loss as SourceLoss, Note, ProviderId, RequestId, SourceId, UserId, Viewing,
};
use holdfast_core::time::Time;
use serde::Serialize;

use super::millis;
use crate::providers::account_name;
use crate::server::Server;

/// One account: how many of its connections are used, and by whom.
#[derive(Serialize)]
pub(in crate::routes) struct Account {
    /// [`label`]
    name: String,
    /// As configured, or as its panel allows, where that is less; 0 = any number.
    limit: u32,
    /// How many its panel says that it allows; `None` where there is none, or it does not say.
    allowed: Option<u32>,
    /// Connections that the provider counts.
    used: u32,
    /// Those that are kept for players without a connection at present: as many as `reservations`.
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
    /// Why somebody lost a connection of its last, and how long ago: what the provider did (`status-403`, `unreachable`, …), or for
    /// whom it was needed: somebody stronger (`preempted`), or anybody, since nobody watched it any more (`lingering`), it only looked
    /// (`probe`), or sent nothing (`silent`).
    last_loss: Option<Loss>,
    connections: Vec<Connection>,
    reservations: Vec<Reservation>,
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
    #[serde(flatten)]
    held: Held,
    age_ms: u64,
}

/// A slot that is kept for somebody.
#[derive(Serialize)]
struct Reservation {
    /// As the playback's, with its user.
    state: &'static str,
    #[serde(flatten)]
    held: Held,
    /// How long ago its player asked for what it plays.
    age_ms: u64,
    /// How long it is still kept, unless its player comes back.
    left_ms: u64,
}

/// Who has something of an account, and for whom.
#[derive(Serialize)]
struct Held {
    /// `playback 3.1`, `source 2.0`, `probe 17`.
    holder: String,
    /// What that plays, where it is called something; of a source the channel.
    title: Option<String>,
    /// The kind of that, as with users; `None` for a source, which any kinds may watch.
    kind: Option<&'static str>,
    /// Whose it is; of a source, who watches its channel or waits for it.
    users: Vec<String>,
}

/// The accounts of each provider, in the order of the configuration.
pub(in crate::routes) fn accounts(server: &Server, now: Time) -> BTreeMap<ProviderId, Vec<Account>> {
    let (room, watchers) = (server.edge().accounts(), Watchers::of(server));
    let mut connections = BTreeMap::<AccountId, Vec<Connection>>::new();
    for (id, allocation) in room.allocations() {
        let held = watchers.held(server, allocation.holder);
        connections.entry(allocation.account).or_default().push(Connection {
            id: id.to_string(),
            state: allocation.state.as_str(),
            held,
            age_ms: millis(now, allocation.since),
        });
    }
    let mut reservations = BTreeMap::<AccountId, Vec<Reservation>>::new();
    for lease in room.kept() {
        let Holder::Playback(id) = lease.holder else { continue };
        let Some(playback) = server.edge().playback().get(id) else { continue };
        reservations.entry(lease.account).or_default().push(Reservation {
            state: playback.state.as_str(),
            held: watchers.held(server, lease.holder),
            age_ms: millis(now, playback.asked),
            left_ms: millis(lease.deadline, now),
        });
    }
    let mut account = |state: AccountState<'_>| Account {
        name: label(server, state.account),
        limit: state.limit,
        allowed: server.allowed(state.provider, state.account),
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
        reservations: reservations.remove(&state.account).unwrap_or_default(),
    };
    let mut all = BTreeMap::<ProviderId, Vec<Account>>::new();
    for state in room.accounts() {
        all.entry(state.provider).or_default().push(account(state));
    }
    all
}

/// For whom each holder of an account has it.
pub(in crate::routes) struct Watchers {
    of_feed: BTreeMap<FeedId, BTreeSet<UserId>>,
    /// Into which feed each source goes.
    feeds: BTreeMap<SourceId, FeedId>,
    probes: BTreeMap<RequestId, Viewing>,
}

impl Watchers {
    pub(in crate::routes) fn of(server: &Server) -> Self {
        let (pull, room) = (server.edge().pull(), server.edge().playback());
        let mut of_feed = BTreeMap::<FeedId, BTreeSet<UserId>>::new();
        for (_, playback) in room.playbacks() {
            if let Some(feed) = playback.viewing.item.feed() {
                of_feed.entry(feed).or_default().insert(playback.viewing.user);
            }
        }
        let states = pull.tuned_channels().filter_map(|(channel, _)| pull.state(channel));
        let sources = states.flat_map(|state| {
            let own = state.kept.into_iter().chain(state.beside);
            own.map(move |(source, _)| (source, state.feed))
        });
        let probes = room.looks().map(|own| (own.request, own.ask.viewing)).collect();
        Watchers { of_feed, feeds: sources.collect(), probes }
    }

    /// The users for whom somebody has an account: several where they watch the same.
    pub(in crate::routes) fn users(&self, server: &Server, holder: Holder) -> Vec<String> {
        let users: Vec<UserId> = match holder {
            Holder::Source(source) => {
                let watching = self.feeds.get(&source).and_then(|feed| self.of_feed.get(feed));
                watching.into_iter().flatten().copied().collect()
            }
            _ => self.viewing(server, holder).map(|viewing| viewing.user).into_iter().collect(),
        };
        let name = |user: UserId| server.edge().config().users.get(user.0 as usize).map(|own| own.name.clone());
        users.into_iter().filter_map(name).collect()
    }

    fn viewing(&self, server: &Server, holder: Holder) -> Option<Viewing> {
        match holder {
            Holder::Playback(id) => server.edge().playback().get(id).map(|own| own.viewing),
            Holder::Probe(request) => self.probes.get(&request).copied(),
            Holder::Source(_) => None,
        }
    }

    fn held(&self, server: &Server, holder: Holder) -> Held {
        let viewing = self.viewing(server, holder);
        let named = viewing.and_then(|viewing| server.name_of_title(viewing.item.title()?));
        Held {
            holder: match holder {
                Holder::Playback(id) => format!("playback {id}"),
                Holder::Source(id) => format!("source {id}"),
                Holder::Probe(request) => format!("probe {}", request.0),
            },
            title: server.name_of_holder(holder).or(named),
            kind: viewing.map(|viewing| viewing.item.kind()),
            users: self.users(server, holder),
        }
    }
}

/// Which account a note says that somebody lost, and why.
pub(crate) fn loss(note: &Note) -> Option<(AccountId, String)> {
    match note {
        Note::AccountPreempted { account, why, .. } => {
            let why = match why {
                GivesWay::Lingering => "lingering",
                GivesWay::Probe => "probe",
                GivesWay::Silent => "silent",
                GivesWay::Weaker => "preempted",
            };
            Some((*account, String::from(why)))
        }
        Note::AccountFailed { account, failure } => {
            let why = match failure {
                Failure::Unreachable => String::from("unreachable"),
                Failure::TimedOut => String::from("timed-out"),
                Failure::Unusable => String::from("unusable"),
                Failure::Page => String::from("page"),
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

/// What people call an account: its provider, and which of its accounts, with what it logs in with where not everybody may read that.
pub(in crate::routes) fn label(server: &Server, account: AccountId) -> String {
    let mut left = account.0 as usize;
    for (id, provider) in (0..).map(ProviderId).zip(&server.edge().config().providers) {
        if left < provider.accounts.len() {
            return format!("{}/{}", provider.name, account_name(left + 1, username(server, id, left)));
        }
        left -= provider.accounts.len();
    }
    account.0.to_string()
}

/// What an account of a provider logs in with; empty where that is not known, or where everybody may read status and metrics.
pub(in crate::routes) fn username(server: &Server, provider: ProviderId, place: usize) -> &str {
    let guarded = !server.settings().api_tokens.is_empty();
    server.providers().get(provider).filter(|_| guarded).map_or("", |own| own.settings.username(place))
}
