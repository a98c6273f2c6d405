//! `GET /metrics`: the same counts for Prometheus.

use std::collections::BTreeSet;

use holdfast_core::account::Holder;
use holdfast_core::input::{AccountId, EndReason, EndpointId, Loss, RefuseReason, UserId, ViewerEnd};
use holdfast_core::playback::Place;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::status::accounts::{Watchers, username};
use super::status::channels::{STATES, state_of};
use super::text as text_response;
use crate::http::{Request, Response, Status};
use crate::providers::{Kind, account_name};
use crate::server::{Call, STAGES, Server};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfEndpoint {
    endpoint: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WithReason {
    endpoint: String,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Denied {
    endpoint: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSlot {
    endpoint: String,
    slot: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SlotWithReason {
    endpoint: String,
    slot: u64,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfChannel {
    channel: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ChannelWithReason {
    channel: String,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ChannelInState {
    channel: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfUser {
    user: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UserPlace {
    user: String,
    place: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UserWithReason {
    user: String,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAccount {
    provider: String,
    /// Counted from 1.
    account: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NamedAccount {
    provider: String,
    account: u64,
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AccountInState {
    provider: String,
    account: u64,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AccountOfUser {
    provider: String,
    account: u64,
    user: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AccountWithEvent {
    provider: String,
    account: u64,
    event: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfProvider {
    provider: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProviderKind {
    provider: String,
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfLibrary {
    library: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfStatus {
    class: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfLimit {
    /// The setting.
    limit: &'static str,
}

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenMetrics 1.0, for those who say that they read it, as Prometheus does.
    OpenMetrics,
    /// Prometheus' own text format 0.0.4, for everybody else.
    Text,
}

impl Format {
    pub(super) fn of(request: &Request) -> Self {
        let reads = |accept: &str| accept.contains("application/openmetrics-text");
        if request.headers.get("Accept").is_some_and(reads) { Format::OpenMetrics } else { Format::Text }
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// OpenMetrics as text format 0.0.4, in which a counter is described under the name of its one sample.
fn older(page: &str) -> String {
    let counters: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut text = String::with_capacity(page.len() + 1024);
    for line in page.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(name) => {
                text.extend(["# ", what, " ", name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The registry is made for each scrape from the state as it is: counts have one home, the core's.
pub(super) fn metrics(call: &mut Call<'_>, format: Format) -> Response {
    let mut registry = Registry::with_prefix("holdfast");
    endpoints(&mut registry, call.server);
    feeds(&mut registry, call);
    channels(&mut registry, call);
    users(&mut registry, call.server);
    accounts(&mut registry, call.server);
    providers(&mut registry, call);
    relays(&mut registry, call.server);
    connections(&mut registry, call.server);
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) if format == Format::Text => text_response(format.content_type(), older(&page)),
        Ok(()) => text_response(format.content_type(), page),
        Err(error) => {
            let detail = format!("cannot be written: {error}");
            Response::problem(Status::INTERNAL_SERVER_ERROR, "metrics", "No metrics", &detail)
        }
    }
}

fn endpoints(registry: &mut Registry, server: &Server) {
    let offers = Family::<OfEndpoint, Counter>::default();
    let accepted = Family::<OfEndpoint, Counter>::default();
    let refused = Family::<WithReason, Counter>::default();
    let ended = Family::<WithReason, Counter>::default();
    let slots = Family::<OfEndpoint, Gauge>::default();
    let held = Family::<OfEndpoint, Gauge>::default();
    let waiting = Family::<OfEndpoint, Gauge>::default();
    let edge = server.edge();
    for (own, state) in edge.config().endpoints.iter().zip(edge.publish().endpoints()) {
        let of = OfEndpoint { endpoint: own.name.clone() };
        offers.get_or_create(&of).inc_by(state.counts.offers);
        accepted.get_or_create(&of).inc_by(state.counts.accepted);
        slots.get_or_create(&of).set(i64::from(own.slots));
        held.get_or_create(&of).set(state.holders().flatten().count() as i64);
        waiting.get_or_create(&of).set(state.waiting() as i64);
        let with = |reason| WithReason { endpoint: own.name.clone(), reason };
        for (reason, count) in RefuseReason::ALL.iter().zip(state.counts.refused) {
            refused.get_or_create(&with(reason.as_str())).inc_by(count);
        }
        for (reason, count) in EndReason::ALL.iter().zip(state.counts.ended) {
            ended.get_or_create(&with(reason.as_str())).inc_by(count);
        }
    }
    let denied = Family::<Denied, Counter>::default();
    for (&(endpoint, status), count) in &server.counts().denied {
        let Some(own) = edge.config().endpoints.get(endpoint.0 as usize) else { continue };
        denied.get_or_create(&Denied { endpoint: own.name.clone(), status }).inc_by(*count);
    }
    registry.register("publish_denied", "WHIP requests that failed their checks, by status", denied);
    registry.register("publish_offers", "WHIP offers that passed their checks", offers);
    registry.register("publish_accepted", "WHIP offers that were answered with a session", accepted);
    registry.register("publish_refused", "WHIP offers that were refused, by reason", refused);
    registry.register("publish_ended", "Publishing sessions that ended, by reason", ended);
    let stuck: Counter = Counter::default();
    stuck.inc_by(server.counts().stuck);
    registry.register("publish_stuck", "Sessions that did not go away in time after they had ended", stuck);
    registry.register("publish_slots", "Slots of the endpoint", slots);
    registry.register("publish_slots_held", "Slots that have a publisher", held);
    registry.register("publish_waiting", "WHIP offers that wait for a slot", waiting);
}

fn feeds(registry: &mut Registry, call: &Call<'_>) {
    let viewers = Family::<OfSlot, Gauge>::default();
    let bytes_in = Family::<OfSlot, Counter>::default();
    let bytes_out = Family::<OfSlot, Counter>::default();
    let ended = Family::<SlotWithReason, Counter>::default();
    let edge = call.server.edge();
    for (id, own) in edge.config().endpoints.iter().enumerate() {
        for slot in 0..own.slots as usize {
            let feed = edge.feed_of(EndpointId(id as u32), slot);
            let Some(status) = feed.and_then(|feed| edge.feeds().status(call.now, feed)) else { continue };
            let slot = slot as u64 + 1;
            let of = OfSlot { endpoint: own.name.clone(), slot };
            viewers.get_or_create(&of).set(status.viewers as i64);
            bytes_in.get_or_create(&of).inc_by(status.bytes_in);
            bytes_out.get_or_create(&of).inc_by(status.bytes_out);
            for reason in ViewerEnd::ALL {
                let of = SlotWithReason { endpoint: own.name.clone(), slot, reason: reason.as_str() };
                ended.get_or_create(&of).inc_by(status.ends.of(reason));
            }
        }
    }
    registry.register("live_viewers", "Viewers of the slot's feed", viewers);
    registry.register("live_received_bytes", "MPEG-TS bytes that came into the slot's feed", bytes_in);
    registry.register("live_sent_bytes", "MPEG-TS bytes that viewers' sockets took", bytes_out);
    registry.register("live_viewers_ended", "Viewers that are gone, by reason", ended);
}

fn channels(registry: &mut Registry, call: &Call<'_>) {
    let states = Family::<ChannelInState, Gauge>::default();
    let opens = Family::<OfChannel, Counter>::default();
    let silences = Family::<OfChannel, Counter>::default();
    let switches = Family::<OfChannel, Counter>::default();
    let lost = Family::<ChannelWithReason, Counter>::default();
    let held = Family::<OfChannel, Gauge>::default();
    let viewers = Family::<OfChannel, Gauge>::default();
    let bytes_in = Family::<OfChannel, Counter>::default();
    let bytes_out = Family::<OfChannel, Counter>::default();
    let ended = Family::<ChannelWithReason, Counter>::default();
    let edge = call.server.edge();
    for (own, state) in edge.config().channels.iter().zip(edge.pull().states()) {
        let of = OfChannel { channel: own.name.clone() };
        let with = |reason| ChannelWithReason { channel: own.name.clone(), reason };
        for each in STATES {
            let of = ChannelInState { channel: own.name.clone(), state: each };
            states.get_or_create(&of).set(i64::from(each == state_of(&state)));
        }
        opens.get_or_create(&of).inc_by(state.counts.opens);
        silences.get_or_create(&of).inc_by(state.counts.silences);
        switches.get_or_create(&of).inc_by(state.counts.switches);
        for (loss, count) in Loss::ALL.iter().zip(state.counts.lost) {
            lost.get_or_create(&with(loss.as_str())).inc_by(count);
        }
        held.get_or_create(&of).set(state.held as i64);
        let Some(feed) = edge.feeds().status(call.now, state.feed) else { continue };
        viewers.get_or_create(&of).set(feed.viewers as i64);
        bytes_in.get_or_create(&of).inc_by(feed.bytes_in);
        bytes_out.get_or_create(&of).inc_by(feed.bytes_out);
        for reason in ViewerEnd::ALL {
            ended.get_or_create(&with(reason.as_str())).inc_by(feed.ends.of(reason));
        }
    }
    registry.register("channel_state", "1 for the state that the channel is in", states);
    registry.register("channel_opens", "How often an origin of the channel was asked", opens);
    registry.register("channel_silences", "How often a connected origin fell silent", silences);
    registry.register("channel_switches", "How often the channel went on from another connection", switches);
    registry.register("channel_lost", "Connections to origins that were lost, by reason", lost);
    registry.register("channel_held", "Requests that wait for the first media", held);
    registry.register("channel_viewers", "Viewers of the channel", viewers);
    registry.register("channel_received_bytes", "MPEG-TS bytes that came into the channel's feed", bytes_in);
    registry.register("channel_sent_bytes", "MPEG-TS bytes that viewers' sockets took", bytes_out);
    registry.register("channel_viewers_ended", "Viewers that are gone, by reason", ended);
}

fn users(registry: &mut Registry, server: &Server) {
    let used = Family::<UserPlace, Gauge>::default();
    let limits = Family::<UserPlace, Gauge>::default();
    let started = Family::<OfUser, Counter>::default();
    let refused = Family::<UserWithReason, Counter>::default();
    let ended = Family::<UserWithReason, Counter>::default();
    let room = server.edge().playback();
    for (index, own) in server.edge().config().users.iter().enumerate() {
        let id = UserId(index as u32);
        let Some(counts) = room.counts(id) else { continue };
        for place in [Place::Normal, Place::Soft, Place::Grace] {
            let of = UserPlace { user: own.name.clone(), place: place.as_str() };
            used.get_or_create(&of).set(i64::from(room.used(id, place)));
        }
        for (place, most) in [(Place::Normal, own.max_connections), (Place::Soft, own.soft_connections)] {
            limits.get_or_create(&UserPlace { user: own.name.clone(), place: place.as_str() }).set(i64::from(most));
        }
        started.get_or_create(&OfUser { user: own.name.clone() }).inc_by(counts.started);
        let with = |reason| UserWithReason { user: own.name.clone(), reason };
        for (reason, count) in RefuseReason::ALL.iter().zip(counts.refused).filter(|(_, count)| *count > 0) {
            refused.get_or_create(&with(reason.as_str())).inc_by(count);
        }
        for (reason, count) in ViewerEnd::ALL.iter().zip(counts.ended) {
            ended.get_or_create(&with(reason.as_str())).inc_by(count);
        }
    }
    registry.register("user_places_used", "Places that the user's playbacks use, by kind", used);
    registry.register("user_places", "Places that the user has, by kind; 0 normal ones = any number", limits);
    registry.register("user_playbacks", "Playbacks of the user that were seen", started);
    registry.register("user_playbacks_refused", "Playbacks of the user that were refused, by reason", refused);
    registry.register("user_playbacks_ended", "Playbacks of the user that ended, by reason", ended);
    let failed: Counter = Counter::default();
    failed.inc_by(server.failed_logins());
    registry.register("logins_failed", "Logins with a wrong name or password", failed);
}

fn accounts(registry: &mut Registry, server: &Server) {
    let used = Family::<AccountInState, Gauge>::default();
    let limits = Family::<OfAccount, Gauge>::default();
    let serving = Family::<OfAccount, Gauge>::default();
    let events = Family::<AccountWithEvent, Counter>::default();
    let users = Family::<AccountOfUser, Gauge>::default();
    let names = Family::<NamedAccount, Gauge>::default();
    let (config, room, watchers) = (server.edge().config(), server.edge().accounts(), Watchers::of(server));
    let mut holders = std::collections::BTreeMap::<AccountId, Vec<(Holder, &'static str)>>::new();
    for (_, own) in room.allocations() {
        holders.entry(own.account).or_default().push((own.holder, "used"));
    }
    for lease in room.kept() {
        holders.entry(lease.account).or_default().push((lease.holder, "reserved"));
    }
    let mut numbers = std::collections::BTreeMap::<u32, u64>::new();
    for state in server.edge().accounts().accounts() {
        let number = numbers.entry(state.provider.0).or_default();
        *number += 1;
        let number = *number;
        let Some(provider) = config.providers.get(state.provider.0 as usize) else { continue };
        let of = || OfAccount { provider: provider.name.clone(), account: number };
        let slots = [("used", state.used), ("reserved", state.reserved), ("resting", state.resting)];
        for (state, count) in slots {
            let of = AccountInState { provider: provider.name.clone(), account: number, state };
            used.get_or_create(&of).set(i64::from(count));
        }
        for (holder, state) in holders.remove(&state.account).unwrap_or_default() {
            for user in watchers.users(server, holder) {
                let of = AccountOfUser { provider: provider.name.clone(), account: number, user, state };
                users.get_or_create(&of).inc();
            }
        }
        let place = number as usize - 1;
        let name = account_name(place + 1, username(server, state.provider, place));
        names.get_or_create(&NamedAccount { provider: provider.name.clone(), account: number, name }).set(1);
        limits.get_or_create(&of()).set(i64::from(state.limit));
        serving.get_or_create(&of()).set(i64::from(state.serves));
        let counts = state.counts;
        for (event, count) in [
            ("granted", counts.granted),
            ("confirmed", counts.confirmed),
            ("graced", counts.graced),
            ("preempted", counts.preempted),
            ("failed", counts.failed),
            ("expired", counts.expired),
        ] {
            let of = AccountWithEvent { provider: provider.name.clone(), account: number, event };
            events.get_or_create(&of).inc_by(count);
        }
    }
    registry.register("account_slots", "Connections of the account that are used, kept for somebody, or rest", used);
    registry.register(
        "account_users",
        "Of these, how many serve a user or are kept for it; a live stream that several watch counts for each of them",
        users,
    );
    registry.register("account_name", "1; with what the account logs in, where not everybody may read that", names);
    registry.register("account_limit", "Connections that the account has; 0 = any number", limits);
    registry.register("account_serves", "1 if the account may be used", serving);
    registry.register("account_events", "What happened to connections of the account", events);
}

fn providers(registry: &mut Registry, call: &Call<'_>) {
    let titles = Family::<ProviderKind, Gauge>::default();
    let skipped = Family::<OfProvider, Gauge>::default();
    let programmes = Family::<OfProvider, Gauge>::default();
    let ages = Family::<OfProvider, Gauge>::default();
    let reads = Family::<OfProvider, Counter>::default();
    let faults = Family::<OfProvider, Counter>::default();
    let server = &*call.server;
    for (id, own) in server.providers().iter() {
        let of = OfProvider { provider: own.settings.name.clone() };
        for kind in Kind::ALL {
            let of = ProviderKind { provider: own.settings.name.clone(), kind: kind.as_str() };
            titles.get_or_create(&of).set(own.catalogue.counts[kind as usize] as i64);
        }
        skipped.get_or_create(&of).set(own.catalogue.skipped as i64);
        programmes.get_or_create(&of).set(own.programmes.len() as i64);
        if let (Some(read), _) = server.catalog_state(id) {
            ages.get_or_create(&of).set(call.now.since(read).as_secs() as i64);
        }
        let counts = server.catalog_counts(id);
        reads.get_or_create(&of).inc_by(counts.reads);
        faults.get_or_create(&of).inc_by(counts.faults);
    }
    registry.register("provider_titles", "Titles in the provider's catalogue, by kind", titles);
    registry.register("provider_skipped", "Entries of its catalogue that could not be used", skipped);
    registry.register("provider_programmes", "Programmes in its guide", programmes);
    registry.register("provider_catalog_age_seconds", "How long ago its catalogue was read", ages);
    registry.register("provider_catalog_reads", "How often its catalogue was read to its end", reads);
    registry.register("provider_catalog_faults", "Catalogues and guides of it that could not be read", faults);
    let found = Family::<OfLibrary, Gauge>::default();
    for (place, own) in server.libraries().all().iter().enumerate() {
        let count = server.libraries().count(place) as i64;
        found.get_or_create(&OfLibrary { library: own.name.clone() }).set(count);
    }
    registry.register("library_titles", "Films or episodes in the library", found);
}

fn relays(registry: &mut Registry, server: &Server) {
    let (all, counts) = (server.relays(), server.relays().counts());
    let states = Family::<InState, Gauge>::default();
    for state in STAGES {
        states
            .get_or_create(&InState { state })
            .set(all.iter().filter(|(_, relay)| relay.stage() == state).count() as i64);
    }
    registry.register("title_requests", "Requests for titles that are not over, by what they wait for", states);
    let connections: Gauge = Gauge::default();
    connections.set(all.connections() as i64);
    registry.register("title_connections", "Connections to providers for titles", connections);
    for (name, help, value) in [
        ("title_opens", "Connections to providers that were begun, redirects apart", counts.opens),
        ("title_redirects", "Redirects of providers that were followed", counts.redirects),
        ("title_sent_bytes", "Bytes of titles that clients took", counts.bytes),
        ("title_stalls", "Responses whose client took nothing for a second", counts.stalls),
        ("title_idles", "Responses that ended since neither side moved a byte", counts.idles),
        ("title_broken", "Responses that a provider broke off", counts.broken),
    ] {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

fn connections(registry: &mut Registry, server: &Server) {
    let counts = server.counts();
    let gauge = |value: i64| {
        let gauge: Gauge = Gauge::default();
        gauge.set(value);
        gauge
    };
    let counter = |value: u64| {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        counter
    };
    let answers = Family::<OfStatus, Counter>::default();
    for (class, count) in (1..).zip(counts.answers) {
        answers.get_or_create(&OfStatus { class: format!("{class}xx") }).inc_by(count);
    }
    registry.register("http_connections", "Open connections", gauge(server.connection_count() as i64));
    registry.register("http_connections_accepted", "Connections that were accepted", counter(counts.accepted));
    let turned_away = Family::<OfLimit, Counter>::default();
    for (limit, count) in [("connections", counts.turned_away), ("connections_per_address", counts.crowded)] {
        turned_away.get_or_create(&OfLimit { limit }).inc_by(count);
    }
    registry.register("http_connections_turned_away", "Connections beyond a limit", turned_away);
    let limited = counter(server.rate_limited());
    registry.register("whip_rate_limited", "WHIP requests beyond whip_rate, answered with 429", limited);
    registry.register("http_connections_timed_out", "Connections that a time limit ended", counter(counts.timed_out));
    registry.register("http_responses", "Answers, by class of status", answers);
    registry.register("http_sent_bytes", "Bytes written to clients", counter(counts.bytes_out));
    let stale = server.edge().publish().stale()
        + server.edge().pull().stale()
        + server.edge().playback().stale()
        + server.edge().feeds().ignored()
        + server.edge().accounts().stale();
    registry.register("core_stale_inputs", "Inputs that came too late to change anything", counter(stale));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_names_a_counter_as_its_sample() {
        let page = "# HELP a_b Things.\n# TYPE a_b counter\na_b_total{x=\"y z\"} 3\n# HELP c Now.\n# TYPE c gauge\nc 1\n# EOF\n";
        let text = "# HELP a_b_total Things.\n# TYPE a_b_total counter\na_b_total{x=\"y z\"} 3\n# HELP c Now.\n# TYPE c gauge\nc 1\n";
        assert_eq!(older(page), text);
    }
}
