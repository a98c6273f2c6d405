//! Which publisher is let in, displaced, ended: endpoints, sessions, POSTs that wait for a slot.
//!
//! Rules: spec publish §3 (order), §4 (takeover), §5 (watchdog), §9 (invariants).

mod admission;
mod endpoint;
mod midway;
mod session;
#[cfg(test)]
mod status_tests;
mod takeover;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

pub use admission::{Denied, Head, OFFER_LIMIT, admit, authorized, bearer_is_one_of, is_media_type};
pub use endpoint::{EndpointCounts, EndpointState};
pub use midway::Waits;
pub use session::Session;

use serde::{Deserialize, Serialize};

use crate::account::Accounts;
use crate::config::{Config, Takeover};
use crate::feed::Feeds;
use crate::id::{Id, Table};
use crate::input::{
    EndReason, EndpointId, Env, Evidence, FeedId, Note, Output, RefuseReason, RequestId, SessionId, SessionKind, Writer,
};
use crate::slots::SlotTable;
use crate::time::{Time, Timers};
use endpoint::AllSettings;
use session::Check;
use takeover::{Holder, Look, Rule, Seen};

/// How many POSTs may wait for the slots of one endpoint.
pub const WAITING_LIMIT: usize = 32;

enum WaiterKind {}
type WaiterId = Id<WaiterKind>;

/// A POST that waits for a slot.
#[derive(Debug, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
enum Key {
    Waiter(WaiterId),
    Session(SessionId),
}

/// What stands behind a request that has no answer yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Claim {
    Waiting(WaiterId),
    Negotiating(SessionId),
}

/// What a POST does that goes on waiting.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// When it looks again.
    until: Time,
    /// Which holder it ends.
    displace: Option<SessionId>,
}

impl Waiter {
    /// One look at the holders.
    fn look(&mut self, now: Time, rule: Rule, holders: &[Holder]) -> Result<Wait, RefuseReason> {
        let wait = match rule.look(now, holders, &self.seen) {
            Look::Refuse(reason) => return Err(reason),
            Look::Wait(_) if now >= self.deadline => return Err(RefuseReason::TakeoverTimeout),
            Look::Wait(at) => Wait { until: at.min(self.deadline), displace: None },
            Look::Displace(session) => {
                // The holder is not thrown out for nothing: its slot may take one more look to come free.
                self.deadline = self.deadline.max(now + rule.poll);
                Wait { until: now + rule.poll, displace: Some(session) }
            }
        };
        self.seen.remember(holders);
        Ok(wait)
    }
}

/// The publish room.
#[derive(Debug, Serialize, Deserialize)]
pub struct Publish {
    #[serde(skip)]
    settings: AllSettings,
    #[serde(skip)]
    key_frame_interval: Duration,
    /// One group for each endpoint.
    slots: SlotTable<SessionId>,
    /// The feed of each slot, in the order of [`Publish::slots`], ascending.
    feeds: Vec<FeedId>,
    /// By endpoint.
    counts: Vec<EndpointCounts>,
    sessions: Table<SessionKind, Session>,
    waiters: Table<WaiterKind, Waiter>,
    /// All waiters by endpoint and arrival.
    waiting: BTreeMap<(EndpointId, u64), WaiterId>,
    /// What the look that is going on found; kept for its memory.
    #[serde(skip)]
    holders: Vec<Holder>,
    claims: BTreeMap<RequestId, Claim>,
    timers: Timers<Key>,
    arrivals: u64,
    draining: bool,
    stale: u64,
}

/// What every call needs beside its own matter.
pub(crate) struct Context<'a> {
    pub now: Time,
    pub env: &'a mut dyn Env,
    pub feeds: &'a mut Feeds,
    pub accounts: &'a mut Accounts,
    pub out: &'a mut VecDeque<Output>,
}

impl Publish {
    /// Takes its settings from a new one; `None` where it is of another configuration.
    pub(crate) fn configure(&mut self, new: Publish) -> Option<()> {
        let fits = self.slots.is_like(&new.slots) && self.feeds == new.feeds && self.counts.len() == new.counts.len();
        (self.settings, self.key_frame_interval) = (new.settings, new.key_frame_interval);
        fits.then_some(())
    }

    /// Endpoints with all slots free; `open_feed` makes the feed of each slot.
    pub(crate) fn new(config: &Config, mut open_feed: impl FnMut() -> FeedId) -> Self {
        let slots = SlotTable::new(config.endpoints.iter().map(|endpoint| endpoint.slots));
        let feeds: Vec<FeedId> = (0..slots.capacity()).map(|_| open_feed()).collect();
        debug_assert!(feeds.is_sorted(), "a slot is found by its feed");
        Publish {
            settings: AllSettings::new(&config.endpoints),
            key_frame_interval: config.live.key_frame_interval,
            slots,
            feeds,
            counts: config.endpoints.iter().map(|_| EndpointCounts::default()).collect(),
            sessions: Table::default(),
            waiters: Table::default(),
            waiting: BTreeMap::new(),
            holders: Vec::new(),
            claims: BTreeMap::new(),
            timers: Timers::default(),
            arrivals: 0,
            draining: false,
            stale: 0,
        }
    }

    /// Every endpoint, in the order of the configuration.
    pub fn endpoints(&self) -> impl Iterator<Item = EndpointState<'_>> {
        self.counts.iter().enumerate().map(|(index, counts)| EndpointState {
            publish: self,
            id: EndpointId(index as u32),
            counts,
        })
    }

    /// One endpoint; `None` if there is no such.
    pub fn endpoint(&self, id: EndpointId) -> Option<EndpointState<'_>> {
        Some(EndpointState { publish: self, id, counts: self.counts.get(id.0 as usize)? })
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
        let Some(counts) = self.counts.get_mut(endpoint.0 as usize) else {
            return cx.out.push_back(Output::Refuse { request, reason: RefuseReason::NotFound });
        };
        counts.offers += 1;
        self.arrivals += 1;
        let mut waiter = Waiter {
            request,
            endpoint,
            arrival: self.arrivals,
            since: cx.now,
            deadline: cx.now + self.settings.of(endpoint).takeover_wait,
            seen: Seen::default(),
            armed: Time::NEVER,
        };
        if self.draining {
            self.refuse(cx, &waiter, RefuseReason::Draining);
        } else if self.slots.has_free(endpoint.0) {
            self.grant(cx, waiter);
        } else if self.waiting_at(endpoint).count() >= WAITING_LIMIT {
            self.refuse(cx, &waiter, RefuseReason::TooManyWaiting);
        } else {
            self.survey(cx, endpoint, waiter.arrival);
            match waiter.look(cx.now, self.settings.of(endpoint).rule, &self.holders) {
                Err(reason) => self.refuse(cx, &waiter, reason),
                Ok(wait) => {
                    let arrival = waiter.arrival;
                    let id = self.waiters.insert(waiter);
                    self.waiting.insert((endpoint, arrival), id);
                    self.claims.insert(request, Claim::Waiting(id));
                    self.wait(cx, id, wait);
                }
            }
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
        self.counts[session.endpoint.0 as usize].accepted += 1;
        cx.out.push_back(Output::Accept { request, session: id });
    }

    /// Ends a session. Single-fire: whatever comes first names the reason, everything later changes nothing.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>, id: SessionId, reason: EndReason) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_live()) else {
            self.stale += 1;
            return;
        };
        session.finished = Some(reason);
        cx.feeds.assign(session.feed, None);
        self.timers.set(Key::Session(id), &mut session.armed, Time::NEVER);
        let (endpoint, slot, created) = (session.endpoint, session.hold.slot, session.created);
        let request = session.request.take();
        let counts = &mut self.counts[endpoint.0 as usize];
        counts.ended[reason as usize] += 1;
        if let Some(request) = request {
            self.claims.remove(&request);
            if reason != EndReason::ClientGone {
                // Only what is wrong with the offer is told as such; whoever was ended for another reason may try again.
                let reason = match reason {
                    _ if self.draining => RefuseReason::Draining,
                    EndReason::NegotiationFailed => RefuseReason::NegotiationFailed,
                    _ => RefuseReason::Ended,
                };
                counts.refused[reason as usize] += 1;
                cx.out.push_back(Output::Refuse { request, reason });
            }
        }
        cx.out.push_back(Output::Finish { session: id, reason });
        let last = cx.env.activity(id).last_media();
        let micros = |since: Time| cx.now.since(since).as_micros() as u64;
        let (lasted, silent) = (micros(created), last.map(micros));
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
        let endpoint = session.endpoint;
        self.slots.release(endpoint.0, session.hold);
        let next = match self.settings.of(endpoint).rule.takeover {
            Takeover::NewestWins => self.waiting_at(endpoint).next_back(),
            Takeover::DisplaceDead | Takeover::Refuse => self.waiting_at(endpoint).next(),
        };
        if let Some(waiter) = next.and_then(|next| self.forget_waiter(next)) {
            self.grant(cx, waiter);
        }
        let others: Vec<WaiterId> = self.waiting_at(endpoint).collect();
        for waiter in others {
            self.look(cx, waiter);
        }
    }

    /// Somebody needs a key frame in `feed`; its publisher is asked at most once per `key_frame_interval`.
    pub(crate) fn key_frame(&mut self, cx: &mut Context<'_>, feed: FeedId) {
        let holder = self.feeds.binary_search(&feed).ok().and_then(|place| self.slots.holder_at(place));
        let Some((id, session)) = holder.and_then(|id| Some((id, self.sessions.get_mut(id)?))) else { return };
        let next = session.key_frame.map(|last| last + self.key_frame_interval);
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
        let output = cx.feeds.last_push(session.feed);
        match session.check(cx.now, &evidence, output, &self.settings.of(session.endpoint).limits) {
            Check::Again(at) => self.timers.set(Key::Session(id), &mut session.armed, at),
            Check::End(reason) => self.finish(cx, id, reason),
            Check::Stalled(stalled, at) => {
                self.timers.set(Key::Session(id), &mut session.armed, at);
                let (endpoint, slot) = (session.endpoint, session.hold.slot);
                cx.out.push_back(Output::Rebuild { session: id });
                let stalled = stalled.as_micros() as u64;
                cx.out.push_back(Output::Note(Note::SlotStalled { endpoint, slot, session: id, stalled }));
            }
        }
    }

    /// One look of a waiting POST at the holders.
    fn look(&mut self, cx: &mut Context<'_>, id: WaiterId) {
        let Some(&Waiter { endpoint, arrival, .. }) = self.waiters.get(id) else { return };
        self.survey(cx, endpoint, arrival);
        let Some(waiter) = self.waiters.get_mut(id) else { return };
        match waiter.look(cx.now, self.settings.of(endpoint).rule, &self.holders) {
            Ok(wait) => self.wait(cx, id, wait),
            Err(reason) => {
                if let Some(waiter) = self.forget_waiter(id) {
                    self.refuse(cx, &waiter, reason);
                }
            }
        }
    }

    /// Finds out about the holders at an endpoint, for a POST that arrived then.
    fn survey(&mut self, cx: &mut Context<'_>, endpoint: EndpointId, arrival: u64) {
        let holder = |session| {
            let row = self.sessions.get(session)?;
            let (finished, newer) = (!row.is_live(), row.arrival > arrival);
            Some(Holder { session, finished, newer, evidence: cx.env.activity(session) })
        };
        self.holders.clear();
        self.holders.extend(self.slots.holders(endpoint.0).flatten().filter_map(holder));
    }

    /// What a look decided of a POST that goes on waiting.
    fn wait(&mut self, cx: &mut Context<'_>, id: WaiterId, wait: Wait) {
        if let Some(waiter) = self.waiters.get_mut(id) {
            self.timers.set(Key::Waiter(id), &mut waiter.armed, wait.until);
        }
        if let Some(holder) = wait.displace {
            self.finish(cx, holder, EndReason::Displaced);
        }
    }

    /// The POSTs that wait at an endpoint, oldest first.
    fn waiting_at(&self, endpoint: EndpointId) -> impl DoubleEndedIterator<Item = WaiterId> {
        self.waiting.range((endpoint, 0)..=(endpoint, u64::MAX)).map(|(_, id)| *id)
    }

    fn grant(&mut self, cx: &mut Context<'_>, waiter: Waiter) {
        let (request, endpoint) = (waiter.request, waiter.endpoint);
        let id = self.sessions.next_id();
        let Some(hold) = self.slots.take(endpoint.0, id) else {
            return self.refuse(cx, &waiter, RefuseReason::HolderNegotiating);
        };
        let feed = self.feeds[self.slots.range(endpoint.0).start + hold.slot as usize];
        let mut session = Session::new(cx.now, endpoint, hold, feed);
        session.request = Some(request);
        session.arrival = waiter.arrival;
        cx.feeds.assign(feed, Some(Writer::Session(id)));
        let first = match session.check(cx.now, &Evidence::default(), None, &self.settings.of(endpoint).limits) {
            Check::Again(at) => at,
            Check::End(_) | Check::Stalled(..) => cx.now,
        };
        self.timers.set(Key::Session(id), &mut session.armed, first);
        self.sessions.insert(session);
        self.claims.insert(request, Claim::Negotiating(id));
        let secret = cx.env.entropy();
        cx.out.push_back(Output::Start { session: id, request, endpoint, hold, feed, secret });
        let waited = cx.now.since(waiter.since).as_micros() as u64;
        cx.out.push_back(Output::Note(Note::SessionStarted { endpoint, slot: hold.slot, session: id, waited }));
    }

    fn refuse(&mut self, cx: &mut Context<'_>, waiter: &Waiter, reason: RefuseReason) {
        self.counts[waiter.endpoint.0 as usize].refused[reason as usize] += 1;
        cx.out.push_back(Output::Refuse { request: waiter.request, reason });
        let waited = cx.now.since(waiter.since).as_micros() as u64;
        cx.out.push_back(Output::Note(Note::OfferRefused {
            request: waiter.request,
            endpoint: waiter.endpoint,
            reason,
            waited,
        }));
    }

    fn forget_waiter(&mut self, id: WaiterId) -> Option<Waiter> {
        let mut waiter = self.waiters.remove(id)?;
        self.timers.set(Key::Waiter(id), &mut waiter.armed, Time::NEVER);
        self.claims.remove(&waiter.request);
        self.waiting.remove(&(waiter.endpoint, waiter.arrival));
        Some(waiter)
    }
}
