//! Begins in the middle of a run: what is there by then is taken from the core, which alone knows it, and believed. Whatever
//! comes of it from there on is judged.
//!
//! What an edge does not keep is unknown until something says it: what a publisher sent before the core looks at it next
//! ([`Session::is_known`]), when a chunk came that is not the newest, what became of requests that were answered.

use std::collections::VecDeque;

use holdfast_core::edge::Edge;
use holdfast_core::feed::Reads;
use holdfast_core::input::{EndpointId, RequestId, SourceId, Writer};
use holdfast_core::time::Time;

use super::{Chunk, Fate, Feed, Post, READ_AGAIN, Session, Truth, Viewer};
use crate::world::stream::Stream;

/// What a request is called that was answered before: the edge has forgotten it, and numbers so large are never given.
pub(in crate::world) fn nameless(number: u64) -> RequestId {
    RequestId(u64::MAX - number)
}

impl Truth {
    /// What is there in an edge at this moment.
    pub fn adopt(&mut self, edge: &Edge, now: Time) {
        (self.clock, self.forsaken) = (now, Time::ZERO);
        self.draining = edge.publish().is_draining();
        self.shut = self.draining;
        self.adopt_posts(edge, now);
        self.adopt_feeds(edge, now);
        self.adopt_channels(edge, now);
        self.adopt_plays(edge);
        self.adopt_titles(edge, now);
    }

    fn adopt_posts(&mut self, edge: &Edge, now: Time) {
        let publish = edge.publish();
        self.orders = publish.arrivals();
        for (place, state) in self.places.iter_mut().zip(publish.endpoints()) {
            place.slots = state.holders().collect();
            place.last.clone_from(&place.slots);
            place.generations = state.generations().collect();
            let counts = state.counts;
            (place.offers, place.accepted) = (counts.offers, counts.accepted);
            (place.refused, place.ended) = (counts.refused, counts.ended);
        }
        for (number, (id, own)) in publish.sessions().enumerate() {
            let (endpoint, slot) = (own.endpoint.0 as usize, own.hold.slot as usize);
            let post = own.request().unwrap_or(nameless(number as u64));
            let (order, accepted) = (own.arrival(), own.is_answered());
            if let Some(request) = own.request() {
                let fate = Fate::Negotiating(id);
                let (arrived, granted) = (own.created, Some(own.created));
                self.posts.insert(request, Post { endpoint, arrived, granted, order, fate, answered: None });
            }
            let output = edge.feeds().last_push(own.feed).filter(|last| *last >= own.created);
            let row = Session {
                endpoint,
                slot,
                generation: own.hold.generation,
                feed: own.feed,
                post,
                order,
                started: own.created,
                stream: Stream::default(),
                from_before: true,
                accepted,
                finished: own.finished.map(|reason| (reason, now)),
                notes: u32::from(own.finished.is_some()),
                released: false,
                output,
                // No chain is built anew sooner after it was, or after its slot began to owe.
                rebuilt: own.owed(),
                key_frame: own.key_frame(),
            };
            self.sessions.insert(id, row);
            self.present.push(id);
            if own.is_live() && !accepted {
                self.negotiating.insert(id);
            }
        }
        for own in publish.waits() {
            let endpoint = own.endpoint.0 as usize;
            let (arrived, order, fate) = (own.since, own.arrival, Fate::Held);
            self.posts.insert(own.request, Post { endpoint, arrived, granted: None, order, fate, answered: None });
            self.hold(endpoint, own.request, super::Stays::Held);
        }
        for endpoint in 0..self.places.len() {
            let Some(state) = publish.endpoint(EndpointId(endpoint as u32)) else { continue };
            for (feed, session) in state.feeds().iter().zip(state.holders()) {
                if let Some(feed) = self.feeds.get_mut(feed) {
                    feed.session = session;
                }
            }
        }
    }

    fn adopt_feeds(&mut self, edge: &Edge, now: Time) {
        let feeds = edge.feeds();
        for id in self.feeds.keys().copied().collect::<Vec<_>>() {
            // Who sent what is kept is of no account: nobody is judged by it.
            let from = feeds.writer(id).unwrap_or(Writer::Source(SourceId::from_parts(u32::MAX, u32::MAX)));
            let (last, point) = (feeds.last_push(id), feeds.random_access(id));
            let Some(row) = self.feeds.get_mut(&id) else { continue };
            let head = feeds.status(now, id).map_or(0, |status| status.bytes_in);
            let chunk = |(at, length): (u64, u64)| {
                let point = point.filter(|(own, _)| *own == at).map(|(_, came)| came);
                let newest = last.filter(|_| at + length == head);
                let came = newest.or(point).unwrap_or(Time::ZERO);
                Chunk { at, length, serial: READ_AGAIN, random_access: point.is_some(), came, from }
            };
            let chunks: VecDeque<Chunk> = feeds.chunks(id).map(chunk).collect();
            *row = Feed {
                tail: chunks.front().map_or(head, |chunk| chunk.at),
                chunks,
                head,
                last_push: last,
                session: row.session,
                viewers: Vec::new(),
                waiting: Vec::new(),
                used: last.max(feeds.left(id)),
            };
        }
        for own in feeds.watching() {
            let Some(feed) = self.feeds.get_mut(&own.feed) else { continue };
            feed.viewers.push(own.viewer);
            let (cursor, took, polled) = match own.reads {
                Reads::Not => (None, own.joined, None),
                // Where it is not known to stand, the core begins to measure no sooner than now.
                Reads::On { cursor, stands } => (Some(cursor), stands.unwrap_or(now), None),
                Reads::Polls { asked } => (None, own.joined, Some(asked)),
            };
            if cursor.is_none() {
                feed.waiting.push(own.viewer);
            }
            let (ended, of, writers) = (None, None, 0);
            let row = Viewer { feed: own.feed, joined: own.joined, took, cursor, ended, of, writers, polled };
            self.viewers.insert(own.viewer, row);
            self.watching += 1;
        }
        for (request, viewer, until) in feeds.asks() {
            self.asks.insert(request, (viewer, until - self.live.hls.hold()));
        }
    }
}

impl Session {
    /// Whether it is known what it sent: of one that was there before it is what the core was told when it looked next.
    pub fn is_known(&self) -> bool {
        !self.from_before || self.stream.told().is_some()
    }
}
