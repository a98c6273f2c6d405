//! Users and what they play, for the status.

use std::collections::BTreeMap;

use holdfast_core::input::{PlaybackId, RequestId, UserId};
use holdfast_core::playback::{Place, Playback};
use holdfast_core::time::Time;
use serde::Serialize;

use super::{accounts, millis};
use crate::providers::Providers;
use crate::server::{Relay, Server};

/// One user: its places, and each of its playbacks.
#[derive(Serialize)]
pub(in crate::routes) struct User {
    name: String,
    enabled: bool,
    expired: bool,
    /// 0 = any number.
    max_connections: u32,
    soft_connections: u32,
    normal: u32,
    soft: u32,
    grace: u32,
    playbacks: Vec<Watching>,
}

#[derive(Serialize)]
struct Watching {
    id: String,
    /// Where it is, below `/live/`; of what is in a catalogue or a library the number that lists know it by.
    stream: String,
    /// What it plays is called, where that is in a catalogue or a library.
    title: Option<String>,
    kind: &'static str,
    /// `queued`, `held`, `pending-provider`, `prepared`, `active`, `preserved`.
    state: &'static str,
    place: Option<&'static str>,
    address: String,
    age_ms: u64,
    viewer: Option<String>,
    /// Its requests for titles that are not over.
    requests: Vec<Fetching>,
}

/// A request for a title, or a part of one.
#[derive(Serialize)]
struct Fetching {
    id: u64,
    /// `waiting`, `asking`, `streaming`, `stalled`.
    state: &'static str,
    /// The provider and which of its accounts, counted from 1, while it is connected there.
    account: Option<String>,
    /// How many of its bytes the client took.
    bytes: u64,
    age_ms: u64,
}

pub(in crate::routes) fn users(server: &Server, now: Time) -> Vec<User> {
    let edge = server.edge();
    let room = edge.playback();
    let mut fetched = Fetched::new();
    for (request, relay) in server.relays().iter() {
        if let Some(playback) = relay.playback() {
            fetched.entry(playback).or_default().push((request, relay));
        }
    }
    let user = |(index, limits): (usize, &holdfast_core::config::User)| {
        let id = UserId(index as u32);
        User {
            name: limits.name.clone(),
            enabled: limits.enabled,
            expired: room.is_expired(now, id),
            max_connections: limits.max_connections,
            soft_connections: limits.soft_connections,
            normal: room.used(id, Place::Normal),
            soft: room.used(id, Place::Soft),
            grace: room.used(id, Place::Grace),
            playbacks: room.of_user(id).map(|own| watching(server, now, &fetched, own)).collect(),
        }
    };
    edge.config().users.iter().enumerate().map(user).collect()
}

type Fetched<'s> = BTreeMap<PlaybackId, Vec<(RequestId, &'s Relay)>>;

fn watching(server: &Server, now: Time, fetched: &Fetched<'_>, (id, playback): (PlaybackId, &Playback)) -> Watching {
    let item = playback.viewing.item;
    let pull = server.edge().pull();
    let tuned = || Some(pull.title_of(pull.channel_of(item.feed()?)?)?.0);
    let name = |title| {
        let local = || server.libraries().name(title).map(str::to_owned);
        server.providers().name(title).or_else(local)
    };
    let title = item.title().or_else(tuned);
    let number = |title| server.libraries().titled(title).map_or_else(|| Providers::client_id(title), |own| own.id);
    Watching {
        id: id.to_string(),
        stream: match title {
            Some(title) => number(title).to_string(),
            None => item.feed().and_then(|feed| server.catalog().path_of(feed)).unwrap_or_default().to_owned(),
        },
        title: title.and_then(name),
        kind: item.kind(),
        state: playback.state.as_str(),
        place: playback.place().map(Place::as_str),
        address: playback.viewing.client.address.to_string(),
        age_ms: millis(now, playback.asked),
        viewer: playback.viewer.map(|viewer| viewer.to_string()),
        requests: fetched
            .get(&id)
            .map(|own| own.iter().map(|own| fetching(server, now, own)).collect())
            .unwrap_or_default(),
    }
}

fn fetching(server: &Server, now: Time, (request, relay): &(RequestId, &Relay)) -> Fetching {
    Fetching {
        id: request.0,
        state: relay.stage(),
        account: relay.account().map(|account| accounts::label(server, account)),
        bytes: relay.bytes(),
        age_ms: millis(now, relay.since()),
    }
}
