//! Begins in the middle of a run: who plays which title with which account, as the core has it by then.
//!
//! When something last happened to somebody is not kept by the core where nothing depends on it: it counts as now, so that what is
//! excused by it is excused for as long as it may be, and no longer.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_core::account::{AllocationState, Holder, LeaseState};
use holdfast_core::edge::Edge;
use holdfast_core::input::{AllocationId, PlaybackId, RequestId, SourceId, Token, ViewerId, Viewing};
use holdfast_core::playback::{Asked, Fetched, Playback as Row, State};
use holdfast_core::time::Time;

use super::super::super::truth::{Truth, nameless};
use super::{Allocation, Key, Playback, Request, Source, Stage, Titles, Tuned};

/// How long a refusal is said again, and how long a part waits for those before it.
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);
const PART_WAIT: Duration = Duration::from_secs(60);

impl Truth {
    pub fn adopt_titles(&mut self, edge: &Edge, now: Time) {
        self.titles.draining = self.draining;
        for (user, limits) in &mut self.titles.users {
            limits.until = edge.playback().until(*user);
        }
        for (account, place) in self.titles.accounts.iter_mut().zip(0..) {
            let id = holdfast_core::input::AccountId(place);
            account.settings.until = edge.accounts().until(id).or(account.settings.until);
            // When its provider said that it allows fewer is not known.
            if let Some(state) = edge.accounts().account(id).filter(|state| state.limit != account.limit) {
                account.before = Some((account.most(), now));
                account.limit = state.limit;
            }
        }
        self.titles.adopt_channels(edge, now);
        self.titles.adopt_playbacks(edge, now);
        self.titles.adopt_allocations(edge, now);
        self.titles.adopt_memories(edge, now);
        self.titles.tuned_sources = self.titles.channels.values().map(|channel| channel.open.len()).sum();
        for request in self.titles.open.clone() {
            self.may_join(request);
        }
    }
}

impl Titles {
    fn adopt_channels(&mut self, edge: &Edge, now: Time) {
        let pull = edge.pull();
        for (channel, title) in pull.tuned_channels() {
            let (Some(state), Some(course)) = (pull.state(channel), pull.course(channel)) else { continue };
            let Some((_, providers)) = pull.title_of(channel) else { continue };
            let mut open = BTreeSet::new();
            for own in [course.kept, course.beside].into_iter().flatten() {
                let Some(allocation) = own.allocation else { continue };
                open.insert(own.source);
                self.sources.insert(own.source, Source { channel, feed: state.feed, allocation, gone: false });
            }
            let (feed, providers, opens) = (state.feed, providers.to_vec(), state.counts.opens);
            self.channels.insert(channel, Tuned { title, feed, providers, open, opens, stirred: now });
        }
    }

    fn adopt_playbacks(&mut self, edge: &Edge, now: Time) {
        let room = edge.playback();
        let mut rows: Vec<_> = room.playbacks().filter(|(_, own)| self.is_of(own.viewing.user)).collect();
        rows.sort_by_key(|(_, own)| own.arrival());
        for (id, own) in rows {
            if !own.is_of_title() {
                let request = own.request().unwrap_or(nameless(own.arrival()));
                self.adopt_live(request, own.viewing, own.asked, own.viewer, now);
                continue;
            }
            let lease = edge.accounts().lease_of(Holder::Playback(id));
            let idle = lease.filter(|lease| lease.state == LeaseState::Idle);
            let row = Playback {
                viewing: own.viewing,
                token: own.token(),
                began: own.asked,
                stirred: match own.state {
                    State::Preserved(until) => until - self.traits(own.viewing.item).window,
                    _ => now,
                },
                confirmed: own.account().filter(|_| own.is_bound()).map(|account| (now, account)),
                failed: None,
                // How long nothing has come is not known before something does.
                silent: own.account().map(|account| (account, Time::ZERO)),
                kept: idle.map(|lease| (lease.account, lease.deadline)),
                place: own.place(),
                started: matches!(own.state, State::Active | State::Preserved(_)),
                ended: None,
            };
            if let Some(token) = own.token() {
                self.tokens.insert(token, id);
            }
            self.adopt_asked(own, id, now);
            self.playbacks.insert(id, row);
        }
        for asked in room.looks() {
            self.adopt_request(asked, None, None, now);
        }
    }

    fn adopt_live(&mut self, id: RequestId, viewing: Viewing, asked: Time, viewer: Option<ViewerId>, now: Time) {
        self.asked(now, id, viewing, None);
        if let Some(row) = self.requests.get_mut(&id) {
            row.asked = asked;
        }
        if let Some(viewer) = viewer {
            self.stage(now, id, Stage::Seen(viewer));
            self.sees(viewer, id);
        }
    }

    fn adopt_asked(&mut self, own: &Row, id: PlaybackId, now: Time) {
        for asked in own.asked_for() {
            self.adopt_request(asked, Some(id), own.token(), now);
        }
    }

    fn adopt_request(&mut self, asked: Asked, playback: Option<PlaybackId>, token: Option<Token>, now: Time) {
        let (id, viewing) = (asked.request, asked.ask.viewing);
        self.asked(now, id, viewing, Some(asked.ask));
        let own_starts = self.traits(viewing.item).own_starts;
        let Some(row) = self.requests.get_mut(&id) else { return };
        if let (Some(token), true) = (token, own_starts) {
            row.key = Key::Token(token);
        }
        row.asked = asked.until.map_or(now, |until| until - PART_WAIT);
        row.waits_since = Time::ZERO;
        row.fetches = asked.tried.len() as u32 + u32::from(asked.late);
        row.failed = row.fetches > 0;
        row.playback = playback;
        if let Fetched::Yes { allocation, forwarded, stalled } = asked.stage {
            row.fetches += 1;
            row.allocation = allocation;
            (row.forwarded, row.stalled) = (forwarded.then_some(now), stalled.then_some(now));
            self.stage(now, id, Stage::Fetching);
        }
    }

    fn adopt_allocations(&mut self, edge: &Edge, now: Time) {
        let room = edge.accounts();
        let fetched: Vec<(RequestId, AllocationId)> =
            self.requests.iter().filter_map(|(id, row)| Some((*id, row.allocation?))).collect();
        let mut rows: Vec<_> = room.allocations().collect();
        rows.sort_by_key(|(id, own)| (own.since, *id));
        for (id, own) in rows {
            let request = fetched.iter().find(|(_, allocation)| *allocation == id).map(|(request, _)| *request);
            let closing = own.state == AllocationState::Closing;
            let open = match own.holder {
                Holder::Source(source) => self.is_source(source, id),
                Holder::Playback(_) | Holder::Probe(_) => request.is_some(),
            };
            // What was granted and not opened yet is not known to anybody but the core.
            if !open && !closing {
                continue;
            }
            let Some(account) = self.accounts.get_mut(own.account.0 as usize) else { continue };
            account.open.insert(id);
            account.grants += 1;
            let limit = account.settings.max_connections;
            let over = limit > 0 && account.open.len() > limit as usize;
            let confirmed = (own.state == AllocationState::Active).then_some(now);
            let row = Allocation {
                account: own.account,
                holder: own.holder,
                request,
                granted: own.since,
                confirmed,
                dropped: closing.then_some(now),
                let_go: None,
                closed: None,
                over,
            };
            self.allocations.insert(id, row);
            if closing {
                self.leaving.insert(id);
            }
            if let Some(row) = request.and_then(|request| self.requests.get_mut(&request)) {
                row.account = Some(own.account);
            }
            let bound = request.and_then(|request| self.requests.get(&request)?.playback);
            let unbound = bound.and_then(|id| self.playbacks.get(&id)).is_some_and(|row| row.confirmed.is_none());
            let plays = request.and_then(|request| self.requests.get(&request)).is_some_and(Request::counts);
            if unbound && plays && own.state == AllocationState::Opening {
                let latest = own.since + self.settings.starting_deadline + self.slack * 2;
                self.starts.insert((latest, id));
            }
        }
    }

    fn is_source(&self, source: SourceId, allocation: AllocationId) -> bool {
        self.sources.get(&source).is_some_and(|row| row.allocation == allocation)
    }

    fn adopt_memories(&mut self, edge: &Edge, now: Time) {
        let room = edge.playback();
        for (token, until) in room.ended() {
            self.over.insert(token, until - self.settings.ended_memory);
        }
        for (player, until) in room.blocks() {
            self.blocks.insert(player, (Time::ZERO, until));
        }
        for (player, until) in room.preempted() {
            let at = until - self.settings.preempted_block;
            self.preempted.insert(player, at);
            self.eased.insert(player, at);
        }
        for (player, reason, _, until) in room.refusals() {
            self.refusals.insert(player, (reason, until - REFUSAL_MEMORY));
        }
        for (player, until) in room.failures() {
            self.failures.insert(player, until - REFUSAL_MEMORY);
        }
        for (player, until) in room.vain() {
            self.vain.adopt(now, player, until);
        }
        // Who gave way a moment ago of whom nothing was seen, and when connections were closed, is not known.
        self.eased_other = Some(now);
        self.accounts.iter_mut().for_each(|account| account.closed = Some(now));
    }
}
