//! Which publisher is let in, displaced, ended: endpoints, sessions, POSTs that wait for a slot.
//!
//! Rules: spec publish §3 (order), §4 (takeover), §5 (watchdog), §9 (invariants).

mod admission;
mod session;
mod takeover;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

pub use admission::{Denied, Head, OFFER_LIMIT, admit, authorized, bearer_is_one_of, find, is_media_type};
pub use session::Session;

use crate::config::{Config, Endpoint, Takeover};
use crate::id::{Id, Table};
use crate::input::{
    EndReason, EndpointId, Env, Evidence, FeedId, Note, Output, RefuseReason, RequestId, SessionId, SessionKind,
};
use crate::slots::SlotTable;
use crate::time::{Time, Timers};
use session::Check;
use takeover::{Holder, Look, Rule, Seen};

/// How many POSTs may wait for the slots of one endpoint.
pub const WAITING_LIMIT: usize = 32;

enum WaiterKind {}
type WaiterId = Id<WaiterKind>;

/// A POST that waits for a slot.
#[derive(Debug)]
struct Waiter {
    request: RequestId,
    endpoint: EndpointId,
    arrival: u64,
    since: Time,
    deadline: Time,
    seen: Seen,
    armed: Time,
}

/// Who waits for which deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Waiter(WaiterId),
    Session(SessionId),
}

/// What stands behind a request that has no answer yet.
#[derive(Clone, Copy, Debug)]
enum Claim {
    Waiting(WaiterId),
    Negotiating(SessionId),
}

/// One endpoint as it stands.
#[derive(Debug)]
pub struct EndpointState {
    slots: SlotTable<SessionId>,
    feeds: Vec<FeedId>,
    waiting: VecDeque<WaiterId>,
    /// What happened here so far.
    pub counts: EndpointCounts,
}

/// What happened at one endpoint so far.
#[derive(Clone, Debug, Default)]
pub struct EndpointCounts {
    /// POSTs that passed their checks.
    pub offers: u64,
    /// POSTs that were answered with 201.
    pub accepted: u64,
    /// POSTs that were refused, by [`RefuseReason`] in the order of its `ALL`.
    pub refused: [u64; RefuseReason::ALL.len()],
    /// Sessions that ended, by [`EndReason`] in the order of its `ALL`.
    pub ended: [u64; EndReason::ALL.len()],
}

impl EndpointState {
    /// The session in each slot, in order.
    pub fn holders(&self) -> impl Iterator<Item = Option<SessionId>> + '_ {
        self.slots.holders()
    }

    /// The feed of each slot, in order.
    pub fn feeds(&self) -> &[FeedId] {
        &self.feeds
    }

    /// How many POSTs wait for a slot.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// The publish room.
#[derive(Debug)]
pub struct Publish {
    endpoints: Vec<EndpointState>,
    sessions: Table<SessionKind, Session>,
    waiters: Table<WaiterKind, Waiter>,
    claims: BTreeMap<RequestId, Claim>,
    timers: Timers<Key>,
    arrivals: u64,
    draining: bool,
    stale: u64,
}

/// What every call needs beside its own matter.
pub(crate) struct Context<'a> {
    pub now: Time,
    pub config: &'a Config,
    pub env: &'a mut dyn Env,
    pub out: &'a mut VecDeque<Output>,
}

impl Context<'_> {
    fn endpoint(&self, id: EndpointId) -> &Endpoint {
        &self.config.endpoints[id.0 as usize]
    }

    fn name(&self, id: EndpointId) -> String {
        self.endpoint(id).name.clone()
    }
}

impl Publish {
    /// Endpoints with all slots free; `open_feed` makes the feed of each slot.
    pub(crate) fn new(config: &Config, mut open_feed: impl FnMut() -> FeedId) -> Self {
        let endpoint = |endpoint: &Endpoint| EndpointState {
            slots: SlotTable::new(endpoint.slots),
            feeds: (0..endpoint.slots).map(|_| open_feed()).collect(),
            waiting: VecDeque::new(),
            counts: EndpointCounts::default(),
        };
        Publish {
            endpoints: config.endpoints.iter().map(endpoint).collect(),
            sessions: Table::default(),
            waiters: Table::default(),
            claims: BTreeMap::new(),
            timers: Timers::default(),
            arrivals: 0,
            draining: false,
            stale: 0,
        }
    }

    /// Every endpoint, in the order of the configuration.
    pub fn endpoints(&self) -> &[EndpointState] {
        &self.endpoints
    }

    /// A session that is not yet forgotten: it holds its slot, finished or not.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// All sessions that hold a slot.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter()
    }

    /// How many sessions hold a slot.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// How many requests have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.claims.len()
    }

    /// How many deadlines are armed.
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// How many inputs came too late, or named what never was.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timers.deadline()
    }

    /// A POST that passed every check of its text.
    pub(crate) fn offer(&mut self, cx: &mut Context<'_>, request: RequestId, endpoint: EndpointId) {
        if self.claims.contains_key(&request) {
            self.stale += 1;
            return;
        }
        let Some(state) = self.endpoints.get_mut(endpoint.0 as usize) else {
            return cx.out.push_back(Output::Refuse { request, reason: RefuseReason::NotFound });
        };
        state.counts.offers += 1;
        self.arrivals += 1;
        let waiter = Waiter {
            request,
            endpoint,
            arrival: self.arrivals,
            since: cx.now,
            deadline: cx.now + cx.endpoint(endpoint).takeover_wait,
            seen: Seen::default(),
            armed: Time::NEVER,
        };
        if self.draining {
            self.refuse(cx, &waiter, RefuseReason::Draining);
        } else if state.slots.has_free() {
            self.grant(cx, waiter);
        } else if state.waiting.len() >= WAITING_LIMIT {
            self.refuse(cx, &waiter, RefuseReason::TooManyWaiting);
        } else {
            let id = self.waiters.insert(waiter);
            self.endpoints[endpoint.0 as usize].waiting.push_back(id);
            self.claims.insert(request, Claim::Waiting(id));
            self.look(cx, id);
        }
    }

    /// The client of an unanswered POST went away.
    pub(crate) fn hangup(&mut self, cx: &mut Context<'_>, request: RequestId) {
        match self.claims.get(&request) {
            Some(Claim::Waiting(waiter)) => drop(self.forget_waiter(*waiter)),
            Some(Claim::Negotiating(session)) => self.finish(cx, *session, EndReason::ClientGone),
            None => self.stale += 1,
        }
    }

    /// The session's offer was answered.
    pub(crate) fn answered(&mut self, cx: &mut Context<'_>, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_live()) else {
            self.stale += 1;
            return;
        };
        let Some(request) = session.request.take() else {
            self.stale += 1;
            return;
        };
        self.claims.remove(&request);
        self.endpoints[session.endpoint.0 as usize].counts.accepted += 1;
        cx.out.push_back(Output::Accept { request, session: id });
    }

    /// Ends a session. Single-fire: whatever comes first names the reason, everything later changes nothing.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>, id: SessionId, reason: EndReason) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_live()) else {
            self.stale += 1;
            return;
        };
        session.finished = Some(reason);
        self.timers.set(Key::Session(id), &mut session.armed, Time::NEVER);
        let (endpoint, slot, created) = (session.endpoint, session.hold.slot, session.created);
        let request = session.request.take();
        let counts = &mut self.endpoints[endpoint.0 as usize].counts;
        counts.ended[EndReason::ALL.iter().position(|each| *each == reason).unwrap_or(0)] += 1;
        if let Some(request) = request {
            self.claims.remove(&request);
            if reason != EndReason::ClientGone {
                let reason = if self.draining { RefuseReason::Draining } else { RefuseReason::NegotiationFailed };
                counts.refused[index_of(reason)] += 1;
                cx.out.push_back(Output::Refuse { request, reason });
            }
        }
        cx.out.push_back(Output::Finish { session: id, reason });
        let last = cx.env.activity(id).last_media();
        let micros = |since: Time| cx.now.since(since).as_micros() as u64;
        let (lasted, silent) = (micros(created), last.map(micros));
        let endpoint = cx.name(endpoint);
        cx.out.push_back(Output::Note(Note::SessionEnded { endpoint, slot, session: id, reason, lasted, silent }));
    }

    /// The bridge of a finished session is cut: its slot goes to the POST that waits longest (or came last, where the
    /// newest wins), and the others look again.
    pub(crate) fn released(&mut self, cx: &mut Context<'_>, id: SessionId) {
        if self.sessions.get(id).is_none_or(Session::is_live) {
            self.stale += 1;
            return;
        }
        let Some(session) = self.sessions.remove(id) else { return };
        let state = &mut self.endpoints[session.endpoint.0 as usize];
        state.slots.release(session.hold);
        let next = match cx.endpoint(session.endpoint).takeover {
            Takeover::NewestWins => state.waiting.back(),
            Takeover::DisplaceDead | Takeover::Refuse => state.waiting.front(),
        };
        if let Some(waiter) = next.copied().and_then(|next| self.forget_waiter(next)) {
            self.grant(cx, waiter);
        }
        let others: Vec<WaiterId> = self.endpoints[session.endpoint.0 as usize].waiting.iter().copied().collect();
        for waiter in others {
            self.look(cx, waiter);
        }
    }

    /// The session's media is about to enter its slot: the feed it goes into, unless the session is over.
    pub(crate) fn media(&mut self, now: Time, id: SessionId) -> Option<FeedId> {
        let session = self.sessions.get_mut(id).filter(|session| session.is_live());
        let Some(session) = session else {
            self.stale += 1;
            return None;
        };
        session.output = Some(now);
        Some(session.feed)
    }

    /// Somebody needs a key frame in `feed`; its publisher is asked at most once per `key_frame_interval`.
    pub(crate) fn key_frame(&mut self, cx: &mut Context<'_>, feed: FeedId) {
        let holder = self.endpoints.iter().find_map(|state| {
            let slot = state.feeds.iter().position(|each| *each == feed)?;
            state.slots.holders().nth(slot).flatten()
        });
        let Some((id, session)) = holder.and_then(|id| Some((id, self.sessions.get_mut(id)?))) else { return };
        let next = session.key_frame.map(|last| last + cx.config.live.key_frame_interval);
        if session.is_live() && session.is_answered() && next.is_none_or(|next| cx.now >= next) {
            session.key_frame = Some(cx.now);
            cx.out.push_back(Output::KeyFrame { session: id });
        }
    }

    /// Nobody new comes in; everybody ends. How many sessions that were.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>) -> u32 {
        self.draining = true;
        let waiting: Vec<WaiterId> = self.waiters.iter().map(|(id, _)| id).collect();
        for waiter in waiting {
            if let Some(waiter) = self.forget_waiter(waiter) {
                self.refuse(cx, &waiter, RefuseReason::Draining);
            }
        }
        let live: Vec<SessionId> =
            self.sessions.iter().filter(|(_, session)| session.is_live()).map(|(id, _)| id).collect();
        for session in &live {
            self.finish(cx, *session, EndReason::Shutdown);
        }
        live.len() as u32
    }

    /// Runs every deadline that is due.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        while let Some(key) = self.timers.expired(cx.now) {
            match key {
                Key::Waiter(id) => {
                    if let Some(waiter) = self.waiters.get_mut(id) {
                        waiter.armed = Time::NEVER;
                        self.look(cx, id);
                    }
                }
                Key::Session(id) => self.check(cx, id),
            }
        }
    }

    fn check(&mut self, cx: &mut Context<'_>, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.armed = Time::NEVER;
        let evidence = cx.env.activity(id);
        match session.check(cx.now, &evidence, cx.endpoint(session.endpoint)) {
            Check::Again(at) => self.timers.set(Key::Session(id), &mut session.armed, at),
            Check::End(reason) => self.finish(cx, id, reason),
            Check::Stalled(stalled, at) => {
                self.timers.set(Key::Session(id), &mut session.armed, at);
                let (endpoint, slot) = (cx.name(session.endpoint), session.hold.slot);
                cx.out.push_back(Output::Rebuild { session: id });
                let stalled = stalled.as_micros() as u64;
                cx.out.push_back(Output::Note(Note::SlotStalled { endpoint, slot, session: id, stalled }));
            }
        }
    }

    /// One look of a waiting POST at the holders.
    fn look(&mut self, cx: &mut Context<'_>, id: WaiterId) {
        let Some(waiter) = self.waiters.get_mut(id) else { return };
        let endpoint = cx.endpoint(waiter.endpoint);
        let rule = Rule { takeover: endpoint.takeover, dead_after: endpoint.dead_after, poll: endpoint.poll };
        let holders: Vec<Holder> = self.endpoints[waiter.endpoint.0 as usize]
            .slots
            .holders()
            .flatten()
            .filter_map(|session| {
                let row = self.sessions.get(session)?;
                let (finished, newer) = (!row.is_live(), row.arrival > waiter.arrival);
                Some(Holder { session, finished, newer, evidence: cx.env.activity(session) })
            })
            .collect();
        let look = rule.look(cx.now, &holders, &waiter.seen);
        waiter.seen.remember(&holders);
        let refusal = match look {
            Look::Refuse(reason) => Some(reason),
            Look::Wait(_) if cx.now >= waiter.deadline => Some(RefuseReason::TakeoverTimeout),
            Look::Wait(at) => {
                self.timers.set(Key::Waiter(id), &mut waiter.armed, at.min(waiter.deadline));
                None
            }
            Look::Displace(session) => {
                // The holder is not thrown out for nothing: its slot may take one more look to come free.
                waiter.deadline = waiter.deadline.max(cx.now + rule.poll);
                self.timers.set(Key::Waiter(id), &mut waiter.armed, cx.now + rule.poll);
                self.finish(cx, session, EndReason::Displaced);
                None
            }
        };
        if let (Some(reason), Some(waiter)) = (refusal, refusal.and_then(|_| self.forget_waiter(id))) {
            self.refuse(cx, &waiter, reason);
        }
    }

    fn grant(&mut self, cx: &mut Context<'_>, waiter: Waiter) {
        let (request, endpoint) = (waiter.request, waiter.endpoint);
        let state = &mut self.endpoints[endpoint.0 as usize];
        let id = self.sessions.next_id();
        let Some(hold) = state.slots.take(id) else {
            return self.refuse(cx, &waiter, RefuseReason::HolderNegotiating);
        };
        let feed = state.feeds[hold.slot as usize];
        let mut session = Session::new(cx.now, endpoint, hold, feed);
        session.request = Some(request);
        session.arrival = waiter.arrival;
        let first = match session.check(cx.now, &Evidence::default(), cx.endpoint(endpoint)) {
            Check::Again(at) => at,
            Check::End(_) | Check::Stalled(..) => cx.now,
        };
        self.timers.set(Key::Session(id), &mut session.armed, first);
        self.sessions.insert(session);
        self.claims.insert(request, Claim::Negotiating(id));
        let secret = cx.env.entropy();
        cx.out.push_back(Output::Start { session: id, request, endpoint, hold, feed, secret });
        let waited = cx.now.since(waiter.since).as_micros() as u64;
        let endpoint = cx.name(endpoint);
        cx.out.push_back(Output::Note(Note::SessionStarted { endpoint, slot: hold.slot, session: id, waited }));
    }

    fn refuse(&mut self, cx: &mut Context<'_>, waiter: &Waiter, reason: RefuseReason) {
        self.endpoints[waiter.endpoint.0 as usize].counts.refused[index_of(reason)] += 1;
        cx.out.push_back(Output::Refuse { request: waiter.request, reason });
        let waited = cx.now.since(waiter.since).as_micros() as u64;
        cx.out.push_back(Output::Note(Note::OfferRefused { endpoint: cx.name(waiter.endpoint), reason, waited }));
    }

    fn forget_waiter(&mut self, id: WaiterId) -> Option<Waiter> {
        let mut waiter = self.waiters.remove(id)?;
        self.timers.set(Key::Waiter(id), &mut waiter.armed, Time::NEVER);
        self.claims.remove(&waiter.request);
        self.endpoints[waiter.endpoint.0 as usize].waiting.retain(|each| *each != id);
        Some(waiter)
    }
}

fn index_of(reason: RefuseReason) -> usize {
    RefuseReason::ALL.iter().position(|each| *each == reason).unwrap_or(0)
}
