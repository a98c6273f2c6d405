//! Which viewer may play, and what becomes of the others: users, their places, strategies.
//!
//! A playback is one viewing, whatever carries it. It uses a place of its user from when it is let in to its end. Rules: spec
//! playback §3 (admission, strategies, states), §7 (permits), §9 (invariants).

mod item;
mod memory;
mod strategy;
#[cfg(test)]
mod tests;
mod user;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

pub use item::{Binding, Item, Traits};
use memory::Memory;
use strategy::Fallen;
use user::User;
pub use user::{Place, UserCounts};

use crate::account::Told;
use crate::config::{Config, Playback as Settings};
use crate::id::Table;
use crate::input::{
    Ask, Client, Failure, Note, Output, PlaybackId, PlaybackKind, RefuseReason, RequestId, UserId, ViewerEnd, ViewerId,
    Viewing,
};
use crate::publish::Context;
use crate::time::{Time, Timers};

/// How long a refusal is the answer to the same request of the same player, which some repeat at once (VLC: four times in 30 ms).
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);
/// How much of each kind is remembered at most.
const MEMORY: usize = 4096;

/// The playback room.
#[derive(Debug)]
pub struct Playbacks {
    settings: Settings,
    limits: Vec<crate::config::User>,
    users: Vec<User>,
    playbacks: Table<PlaybackKind, Playback>,
    requests: BTreeMap<RequestId, PlaybackId>,
    viewers: BTreeMap<ViewerId, PlaybackId>,
    timers: Timers<PlaybackId>,
    /// How many playbacks have a permit: what they leave behind will be cleaned up.
    permits: usize,
    /// Who waits for one, in the order in which they came.
    unpermitted: BTreeSet<(u64, PlaybackId)>,
    /// What was refused just now, and how many places of the user had become free by then.
    refusals: Memory<Player, (RefuseReason, u64)>,
    /// Who evicted whom and may not again yet.
    guards: Memory<(Player, Player), ()>,
    /// Who was ended by an operator and may not come back yet.
    blocks: Memory<Player, ()>,
    /// Who was let in and has to be connected with what it wants to see.
    admitted: VecDeque<(RequestId, Item)>,
    /// Requests that were answered while others still work on them.
    abandoned: VecDeque<RequestId>,
    arrivals: u64,
    draining: bool,
    stale: u64,
}

/// One player, as far as it can be told from others: what it asks for again is the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Player {
    user: UserId,
    client: Client,
    item: Item,
}

/// One viewing.
#[derive(Debug)]
pub struct Playback {
    /// Who and what.
    pub viewing: Viewing,
    /// How far it has come.
    pub state: State,
    /// Which of its user's places it uses.
    pub place: Option<Place>,
    /// When it was asked for.
    pub asked: Time,
    /// When it was let in; when it was asked for, if it was not yet.
    pub since: Time,
    /// Its viewer, once there is one.
    pub viewer: Option<ViewerId>,
    request: Option<RequestId>,
    arrival: u64,
    /// How many of the strategies have failed.
    tried: usize,
    armed: Time,
}

/// How far a playback has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It waits until then for a permit.
    Queued(Time),
    /// It waits until then for a place.
    Held(Time),
    /// It has a place; what it wants to see is being fetched.
    Prepared,
    /// It is seen.
    Active,
}

impl State {
    /// The word for it in status and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Queued(_) => "queued",
            State::Held(_) => "held",
            State::Prepared => "prepared",
            State::Active => "active",
        }
    }
}

impl Playback {
    fn player(&self) -> Player {
        player(&self.viewing)
    }
}

fn player(viewing: &Viewing) -> Player {
    let Viewing { user, item, client } = *viewing;
    Player { user, client, item }
}

impl Playbacks {
    pub(crate) fn new(config: &Config) -> Self {
        Playbacks {
            settings: config.playback.clone(),
            limits: config.users.clone(),
            users: config.users.iter().map(|_| User::default()).collect(),
            playbacks: Table::default(),
            requests: BTreeMap::new(),
            viewers: BTreeMap::new(),
            timers: Timers::default(),
            permits: 0,
            unpermitted: BTreeSet::new(),
            refusals: Memory::new(MEMORY),
            guards: Memory::new(MEMORY),
            blocks: Memory::new(MEMORY),
            admitted: VecDeque::new(),
            abandoned: VecDeque::new(),
            arrivals: 0,
            draining: false,
            stale: 0,
        }
    }

    /// All playbacks.
    pub fn playbacks(&self) -> impl Iterator<Item = (PlaybackId, &Playback)> {
        self.playbacks.iter()
    }

    /// A playback as it stands.
    pub fn get(&self, id: PlaybackId) -> Option<&Playback> {
        self.playbacks.get(id)
    }

    /// How many of a user's places of this kind are used.
    pub fn used(&self, user: UserId, place: Place) -> u32 {
        self.users.get(user.0 as usize).map_or(0, |user| user.used(place))
    }

    /// What happened to a user's playbacks so far.
    pub fn counts(&self, user: UserId) -> Option<&UserCounts> {
        self.users.get(user.0 as usize).map(|user| &user.counts)
    }

    /// A user's playbacks, counted or not.
    pub fn of_user(&self, user: UserId) -> impl Iterator<Item = (PlaybackId, &Playback)> {
        let ids = self.users.get(user.0 as usize).into_iter().flat_map(|user| &user.playbacks);
        ids.filter_map(|id| Some((*id, self.playbacks.get(*id)?)))
    }

    /// How many permits are held.
    pub fn permits(&self) -> usize {
        self.permits
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

    /// Somebody wants to play: is let in, held, or refused.
    pub(crate) fn ask(&mut self, cx: &mut Context<'_>, request: RequestId, viewing: Viewing) {
        if self.requests.contains_key(&request) {
            self.stale += 1;
            return;
        }
        let Some(limits) = self.limits.get(viewing.user.0 as usize) else {
            return refuse(cx, request, RefuseReason::NotFound);
        };
        if self.draining {
            return refuse(cx, request, RefuseReason::Draining);
        }
        if !limits.enabled || limits.until.is_some_and(|until| until <= cx.now) {
            return self.deny(cx, request, &viewing, RefuseReason::AccountExpired);
        }
        let player = player(&viewing);
        if self.blocks.recall(cx.now, &player).is_some() {
            return self.deny(cx, request, &viewing, RefuseReason::Kicked);
        }
        let user = &mut self.users[viewing.user.0 as usize];
        if let Some((reason, freed)) = self.refusals.recall(cx.now, &player)
            && freed == user.freed
        {
            user.counts.refused[reason as usize] += 1;
            return refuse(cx, request, reason);
        }
        if user.playbacks.len() >= self.settings.sessions_per_user {
            return self.deny(cx, request, &viewing, RefuseReason::UserLimit);
        }
        self.arrivals += 1;
        let id = self.playbacks.insert(Playback {
            viewing,
            state: State::Queued(cx.now + self.settings.permit_wait),
            place: None,
            asked: cx.now,
            since: cx.now,
            viewer: None,
            request: Some(request),
            arrival: self.arrivals,
            tried: 0,
            armed: Time::NEVER,
        });
        user.playbacks.insert(id);
        self.requests.insert(request, id);
        self.unpermitted.insert((self.arrivals, id));
        self.arm(id, cx.now + self.settings.permit_wait);
        self.permit(cx);
    }

    /// The client of an unanswered request went away. Whether there is one here; others may have heard of it, too.
    pub(crate) fn hangup(&mut self, cx: &mut Context<'_>, request: RequestId) {
        if let Some(id) = self.requests.get(&request).copied() {
            self.end(cx, id, ViewerEnd::Left);
        }
    }

    /// What was let in and is to be connected with what it wants to see.
    pub(crate) fn next_admitted(&mut self) -> Option<(RequestId, Item)> {
        self.admitted.pop_front()
    }

    /// A request that was answered here while others may still work on it.
    pub(crate) fn next_abandoned(&mut self) -> Option<RequestId> {
        self.abandoned.pop_front()
    }

    /// A user wants a title.
    pub(crate) fn fetch(&mut self, cx: &mut Context<'_>, request: RequestId, _ask: Ask) {
        refuse(cx, request, RefuseReason::NotFound);
    }

    /// Media of a title came through to a client.
    pub(crate) fn forwarded(&mut self, _cx: &mut Context<'_>, _request: RequestId) {}

    /// A provider did not give what a request is for.
    pub(crate) fn failed(&mut self, _cx: &mut Context<'_>, _request: RequestId, _failure: Failure) {}

    /// The response to a request for a title is over.
    pub(crate) fn finished(&mut self, _cx: &mut Context<'_>, _request: RequestId, _reason: ViewerEnd) {}

    /// The client of a request takes nothing.
    pub(crate) fn stalled(&mut self, _cx: &mut Context<'_>, _request: RequestId) {}

    /// The account room says something of a playback or a probe.
    pub(crate) fn told(&mut self, _cx: &mut Context<'_>, _told: Told) {}

    /// What the other rooms said: playbacks follow from it.
    pub(crate) fn heard(&mut self, cx: &mut Context<'_>, output: Heard) {
        match output {
            Heard::Joined(request, viewer) => {
                let Some(id) = self.requests.remove(&request) else { return };
                let Some(playback) = self.playbacks.get_mut(id) else { return };
                (playback.request, playback.viewer, playback.since) = (None, Some(viewer), cx.now);
                playback.state = State::Active;
                self.viewers.insert(viewer, id);
                let Viewing { user, item, .. } = playback.viewing;
                self.users[user.0 as usize].counts.started += 1;
                if let Some(place) = playback.place {
                    let waited = cx.now.since(playback.asked).as_micros() as u64;
                    cx.out.push_back(Output::Note(Note::PlaybackStarted { user, playback: id, item, place, waited }));
                }
            }
            Heard::Refused(request) => {
                if let Some(id) = self.requests.get(&request).copied() {
                    self.end(cx, id, ViewerEnd::NoSource);
                }
            }
            Heard::Ended(viewer, reason) => {
                if let Some(id) = self.viewers.get(&viewer).copied() {
                    self.end(cx, id, reason);
                }
            }
        }
    }

    /// An operator ends a playback; for `block` its player may not come back.
    pub(crate) fn kick(&mut self, cx: &mut Context<'_>, id: PlaybackId, block: Duration) {
        let Some(player) = self.playbacks.get(id).map(Playback::player) else {
            self.stale += 1;
            return;
        };
        if !block.is_zero() {
            self.blocks.remember(cx.now, player, cx.now + block, ());
        }
        self.throw_out(cx, id, RefuseReason::Kicked, ViewerEnd::Kicked);
    }

    /// Nobody new comes in; who waits here is told. Viewers, and who waits for a feed, end with that.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>) {
        self.draining = true;
        let waits = |id: &&PlaybackId| self.get(**id).is_some_and(|playback| playback.state != State::Prepared);
        let waiting: Vec<PlaybackId> = self.requests.values().filter(waits).copied().collect();
        for id in waiting {
            self.throw_out(cx, id, RefuseReason::Draining, ViewerEnd::Shutdown);
        }
    }

    /// Runs every deadline that is due.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.timers.expired(cx.now) {
            let Some(playback) = self.playbacks.get_mut(id) else { continue };
            playback.armed = Time::NEVER;
            match (playback.state, playback.place) {
                (State::Queued(_), _) => self.throw_out(cx, id, RefuseReason::Busy, ViewerEnd::Limit),
                (State::Held(_), _) => {
                    self.fall(cx.now, id, Fallen::Hold);
                    self.admit(cx, id);
                }
                (State::Prepared | State::Active, Some(Place::Grace)) => {
                    self.fall(cx.now, id, Fallen::Instant);
                    self.readmit(cx, id);
                }
                (State::Prepared | State::Active, _) => {}
            }
        }
    }

    /// Lets those in who waited for a permit, as far as there are any; whether somebody was. When all that happened was heard:
    /// whose own places are free is known only then.
    pub(crate) fn permit(&mut self, cx: &mut Context<'_>) -> bool {
        let waiting = self.unpermitted.len();
        while self.permits < self.settings.cleanup_capacity
            && let Some((_, id)) = self.unpermitted.pop_first()
        {
            self.permits += 1;
            self.arm(id, Time::NEVER);
            self.admit(cx, id);
        }
        self.unpermitted.len() < waiting
    }

    /// A grace is over: it becomes what there is a place for, or the strategies behind it decide.
    fn readmit(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        self.settle_grace(cx, id);
        let Some(playback) = self.playbacks.get(id).filter(|playback| playback.place == Some(Place::Grace)) else {
            return;
        };
        let user = playback.viewing.user;
        // Its own place is none: what the strategies find has to be one.
        if let Some(place) = self.strategies(cx, id).unwrap_or_default() {
            self.users[user.0 as usize].release(Place::Grace);
            self.set_place(id, place);
        } else {
            self.throw_out(cx, id, RefuseReason::UserLimit, ViewerEnd::Limit);
        }
    }

    /// Looks for a place for a playback that has none, and goes on with it if there is one.
    fn admit(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(user) = self.playbacks.get(id).map(|playback| playback.viewing.user) else { return };
        let (limits, room) = (&self.limits[user.0 as usize], &mut self.users[user.0 as usize]);
        let place = match room.take(limits) {
            Some(place) => Ok(Some(place)),
            None => self.strategies(cx, id),
        };
        match place {
            Ok(Some(place)) => {
                self.set_place(id, place);
                let grace = if place == Place::Grace { cx.now + self.settings.grace } else { Time::NEVER };
                self.arm(id, grace);
                let Some(playback) = self.playbacks.get_mut(id) else { return };
                playback.state = State::Prepared;
                self.admitted.extend(playback.request.map(|request| (request, playback.viewing.item)));
            }
            Ok(None) => {}
            Err(reason) => self.throw_out(cx, id, reason, ViewerEnd::Limit),
        }
    }

    fn set_place(&mut self, id: PlaybackId, place: Place) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        playback.place = Some(place);
        let (arrival, user) = (playback.arrival, playback.viewing.user);
        self.users[user.0 as usize].held.remove(&(arrival, id));
        if place != Place::Grace {
            self.arm(id, Time::NEVER);
        }
    }

    /// Ends a playback from here: its viewer, or its request with this answer.
    fn throw_out(&mut self, cx: &mut Context<'_>, id: PlaybackId, answer: RefuseReason, reason: ViewerEnd) {
        let Some(playback) = self.playbacks.get(id) else { return };
        let viewing = playback.viewing;
        if let Some(viewer) = playback.viewer {
            self.viewers.remove(&viewer);
            cx.feeds.end(cx.now, viewer, reason, cx.out);
        } else if let Some(request) = playback.request {
            if matches!(playback.state, State::Prepared) {
                self.abandoned.push_back(request);
            }
            self.deny(cx, request, &viewing, answer);
        }
        self.end(cx, id, reason);
    }

    /// A playback is over: everything it had goes to whoever waits for that.
    fn end(&mut self, cx: &mut Context<'_>, id: PlaybackId, reason: ViewerEnd) {
        let Some(user) = self.remove(cx, id, reason) else { return };
        self.freed(cx, user);
    }

    /// Takes every trace of a playback out; whose it was.
    fn remove(&mut self, cx: &mut Context<'_>, id: PlaybackId, reason: ViewerEnd) -> Option<UserId> {
        self.arm(id, Time::NEVER);
        let playback = self.playbacks.remove(id)?;
        let user = playback.viewing.user;
        if let Some(request) = playback.request {
            self.requests.remove(&request);
            self.admitted.retain(|(admitted, _)| *admitted != request);
        }
        if let Some(viewer) = playback.viewer {
            self.viewers.remove(&viewer);
            self.users[user.0 as usize].counts.ended[reason as usize] += 1;
            let lasted = cx.now.since(playback.since).as_micros() as u64;
            cx.out.push_back(Output::Note(Note::PlaybackEnded { user, playback: id, reason, lasted }));
        }
        if !self.unpermitted.remove(&(playback.arrival, id)) {
            self.permits -= 1;
        }
        let room = &mut self.users[user.0 as usize];
        room.playbacks.remove(&id);
        room.held.remove(&(playback.arrival, id));
        if let Some(place) = playback.place {
            room.release(place);
        }
        Some(user)
    }

    /// Places of a user may be free.
    fn freed(&mut self, cx: &mut Context<'_>, user: UserId) {
        let graces: Vec<PlaybackId> = self.with_place(user, Place::Grace).collect();
        for id in graces {
            self.settle_grace(cx, id);
        }
        while let Some((_, id)) = self.users[user.0 as usize].held.first().copied() {
            let (limits, room) = (&self.limits[user.0 as usize], &mut self.users[user.0 as usize]);
            let Some(place) = room.take(limits) else { break };
            self.set_place(id, place);
            let Some(playback) = self.playbacks.get_mut(id) else { break };
            playback.state = State::Prepared;
            self.admitted.extend(playback.request.map(|request| (request, playback.viewing.item)));
        }
    }

    /// Whoever was let in by grace has a place as soon as there is one. A normal one goes to the oldest of the soft ones, which
    /// may be ended by others, and the grace into what that leaves.
    fn settle_grace(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(user) = self.playbacks.get(id).map(|playback| playback.viewing.user) else { return };
        let (limits, room) = (&self.limits[user.0 as usize], &mut self.users[user.0 as usize]);
        let Some(mut place) = room.take(limits) else { return };
        room.release(Place::Grace);
        if place == Place::Normal
            && let Some(soft) = self.with_place(user, Place::Soft).min_by_key(|soft| self.arrival(*soft))
        {
            self.set_place(soft, Place::Normal);
            cx.out.push_back(Output::Note(Note::PlaybackPromoted { user, playback: soft }));
            place = Place::Soft;
        }
        self.set_place(id, place);
    }

    fn arrival(&self, id: PlaybackId) -> u64 {
        self.playbacks.get(id).map_or(u64::MAX, |playback| playback.arrival)
    }

    fn with_place(&self, user: UserId, place: Place) -> impl Iterator<Item = PlaybackId> {
        self.of_user(user).filter(move |(_, playback)| playback.place == Some(place)).map(|(id, _)| id)
    }

    /// Refuses, tells people, and remembers it for the repetition.
    fn deny(&mut self, cx: &mut Context<'_>, request: RequestId, viewing: &Viewing, reason: RefuseReason) {
        refuse(cx, request, reason);
        let (user, item) = (viewing.user, viewing.item);
        self.users[user.0 as usize].counts.refused[reason as usize] += 1;
        if reason == RefuseReason::Draining {
            return;
        }
        if matches!(reason, RefuseReason::UserLimit | RefuseReason::Suppressed) {
            let freed = self.users[user.0 as usize].freed;
            self.refusals.remember(cx.now, player(viewing), cx.now + REFUSAL_MEMORY, (reason, freed));
        }
        cx.out.push_back(Output::Note(Note::PlaybackRefused { user, item, reason }));
    }

    fn arm(&mut self, id: PlaybackId, at: Time) {
        if let Some(playback) = self.playbacks.get_mut(id) {
            self.timers.set(id, &mut playback.armed, at);
        }
    }
}

/// What the other rooms said of a request or a viewer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    Joined(RequestId, ViewerId),
    Refused(RequestId),
    Ended(ViewerId, ViewerEnd),
}

impl Heard {
    /// What an output says of playbacks, if anything.
    pub fn of(output: &Output) -> Option<Heard> {
        match *output {
            Output::Joined { request, viewer } => Some(Heard::Joined(request, viewer)),
            Output::Refuse { request, .. } => Some(Heard::Refused(request)),
            Output::ViewerEnd { viewer, reason } => Some(Heard::Ended(viewer, reason)),
            _ => None,
        }
    }
}

fn refuse(cx: &mut Context<'_>, request: RequestId, reason: RefuseReason) {
    cx.out.push_back(Output::Refuse { request, reason });
}
