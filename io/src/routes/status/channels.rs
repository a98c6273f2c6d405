//! Channels: where each stands, what its origins do, who watches.

use std::collections::BTreeMap;

use holdfast_core::input::{ChannelId, Loss, ProviderId, ViewerEnd};
use holdfast_core::pull::{ChannelState, Phase};
use holdfast_core::time::Time;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{feed_path, millis, words};
use crate::server::Server;

/// Every word of [`state_of`].
pub(in crate::routes) const STATES: [&str; 6] = ["off", "opening", "live", "silent", "waiting", "ended"];

/// Where a channel stands, in one word (spec: pull §3).
pub(in crate::routes) fn state_of(state: &ChannelState<'_>) -> &'static str {
    match state.phase {
        Phase::Off => "off",
        Phase::Live => "live",
        Phase::Ended => "ended",
        Phase::Seeking if state.kept.is_some() => "silent",
        Phase::Seeking if state.beside.is_some() => "opening",
        Phase::Seeking => "waiting",
    }
}

#[derive(Serialize)]
pub(super) struct Channel {
    name: String,
    /// Where everybody may watch it; empty for those of providers, which users see under ids of their own.
    feed: String,
    on_demand: bool,
    /// `off`, `opening`, `live`, `silent` (connected, without media), `waiting` (for the next attempt), `ended`.
    state: &'static str,
    /// The origin whose media goes into the feed, or last did and is still connected.
    kept: Option<Connection>,
    /// The origin that is being tried.
    beside: Option<Connection>,
    sources: Vec<Source>,
    opens: u64,
    silences: u64,
    switches: u64,
    lost: Map<String, Value>,
    last_loss: Option<LastLoss>,
    /// `null` while none is due: nobody wants it, or one is under way.
    next_attempt_ms: Option<u64>,
    last_media_ms: Option<u64>,
    key_frame_age_ms: Option<u64>,
    /// Requests that wait for the first media.
    held: usize,
    viewers: usize,
    viewers_waiting: usize,
    viewers_ended: Map<String, Value>,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Serialize)]
struct Connection {
    /// What it is called where accounts say who uses them.
    id: String,
    /// Its place in `sources`, from 0.
    index: u32,
    label: String,
    /// `live` or `silent` for the one that is kept; `opening`, or `probing` while another one is live, for the one beside.
    state: &'static str,
}

#[derive(Serialize)]
struct Source {
    /// Its URL, as far as it holds no key.
    label: String,
    /// What became of it last, in words.
    last_fault: Option<String>,
}

#[derive(Serialize)]
struct LastLoss {
    index: u32,
    reason: &'static str,
}

/// What a channel is apart from how it stands.
struct Own {
    name: String,
    feed: String,
    on_demand: bool,
    /// What its origins are called.
    labels: Vec<String>,
}

/// All channels, in the order of the configuration.
pub(super) fn channels(server: &Server, now: Time) -> Vec<Channel> {
    let edge = server.edge();
    let all = edge.config().channels.iter().zip(edge.pull().states()).enumerate();
    let all = all.map(|(id, (own, state))| {
        let origins = server.settings().origins.get(id).map_or(&[][..], Vec::as_slice);
        let own = Own {
            name: own.name.clone(),
            feed: feed_path(&own.name, 0),
            on_demand: own.on_demand,
            labels: origins.iter().map(|origin| origin.label()).collect(),
        };
        channel(server, now, ChannelId(id as u32), own, state)
    });
    all.collect()
}

/// The live streams of providers that are watched, or were a moment ago, by the provider that is asked first.
pub(super) fn tuned(server: &Server, now: Time) -> BTreeMap<ProviderId, Vec<Channel>> {
    let (pull, mut all) = (server.edge().pull(), BTreeMap::<ProviderId, Vec<Channel>>::new());
    for (id, title) in pull.tuned_channels() {
        let (Some(state), Some((_, providers))) = (pull.state(id), pull.title_of(id)) else { continue };
        let Some(first) = providers.first() else { continue };
        let name = |provider: &ProviderId| server.providers().get(*provider).map(|own| own.settings.name.clone());
        let own = Own {
            name: server.providers().name(title).unwrap_or_else(|| format!("title {}", title.0)),
            feed: String::new(),
            on_demand: true,
            labels: providers.iter().map(|provider| name(provider).unwrap_or_default()).collect(),
        };
        all.entry(*first).or_default().push(channel(server, now, id, own, state));
    }
    all
}

fn channel(server: &Server, now: Time, id: ChannelId, own: Own, state: ChannelState<'_>) -> Channel {
    let feed = server.edge().feeds().status(now, state.feed);
    let label = |index: u32| own.labels.get(index as usize).cloned().unwrap_or_default();
    let is_live = state.phase == Phase::Live;
    let fault = |index: usize| {
        let mut faults = server.sources().faults(id);
        faults.find(|(of, _)| *of as usize == index).map(|(_, why)| why.to_owned())
    };
    Channel {
        name: own.name.clone(),
        feed: own.feed.clone(),
        on_demand: own.on_demand,
        state: state_of(&state),
        kept: state.kept.map(|(source, index)| Connection {
            id: source.to_string(),
            index,
            label: label(index),
            state: if is_live { "live" } else { "silent" },
        }),
        beside: state.beside.map(|(source, index)| Connection {
            id: source.to_string(),
            index,
            label: label(index),
            state: if is_live { "probing" } else { "opening" },
        }),
        sources: (0..own.labels.len())
            .map(|index| Source { label: label(index as u32), last_fault: fault(index) })
            .collect(),
        opens: state.counts.opens,
        silences: state.counts.silences,
        switches: state.counts.switches,
        lost: words(Loss::ALL.iter().map(|loss| loss.as_str()).zip(state.counts.lost)),
        last_loss: state.last_loss.map(|(index, loss)| LastLoss { index, reason: loss.as_str() }),
        next_attempt_ms: state.next.filter(|next| *next > now).map(|next| millis(next, now)),
        last_media_ms: feed.as_ref().and_then(|feed| feed.last_push).map(|at| millis(now, at)),
        key_frame_age_ms: feed.as_ref().and_then(|feed| feed.random_access_age).map(|age| age.as_millis() as u64),
        held: state.held,
        viewers: feed.as_ref().map_or(0, |feed| feed.viewers),
        viewers_waiting: feed.as_ref().map_or(0, |feed| feed.waiting),
        viewers_ended: feed
            .as_ref()
            .map(|feed| words(ViewerEnd::ALL.iter().map(|end| (end.as_str(), feed.ends.of(*end)))))
            .unwrap_or_default(),
        bytes_in: feed.as_ref().map_or(0, |feed| feed.bytes_in),
        bytes_out: feed.as_ref().map_or(0, |feed| feed.bytes_out),
    }
}
