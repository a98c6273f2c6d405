//! Which viewer may play, and what becomes of the others: users, their places, strategies, titles.
//!
//! A playback is one viewing, whatever carries it. It uses a place of its user from when it is let in to its end. Rules: spec
//! playback §3 (admission, strategies, states), §5 (seek), §7 (permits), §9 (invariants).
//!
//! | file | question |
//! |---|---|
//! | `item` | what follows from what is played? |
//! | `admission` | who gets a place, and who the next one? |
//! | `strategy` | what when all places are used? |
//! | `title` | which request of a playback is fetched next? |
//! | `wish` | with which account, and what when there is none? |
//! | `setup` | whom does a playlist replace, which costs no place? |
//! | `requests` | what became of it? |
//! | `probe` | what of one that only looks? |
//! | `activation` | what does a playback hold, and how does it give that back? |
//! | `vain` | how often are providers asked for a player in vain? |
//! | `user` | what is known of a user? |
//! | `midway` | what has to be known to follow all that from the middle of a run on? |

mod activation;
mod admission;
#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod grace_tests;
mod item;
#[cfg(test)]
mod late_tests;
mod midway;
mod probe;
mod requests;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod seek_tests;
mod setup;
#[cfg(test)]
mod setup_tests;
#[cfg(test)]
mod stage;
mod strategy;
#[cfg(test)]
mod tests;
mod title;
#[cfg(test)]
mod title_tests;
#[cfg(test)]
mod tuned_tests;
mod user;
mod vain;
#[cfg(test)]
mod vain_tests;
#[cfg(test)]
mod window_tests;
mod wish;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use activation::{Activation, Closing};
pub use item::{Binding, Item, Traits};
pub use midway::{Asked, Fetched, Standing, Who};
use probe::Probe;
use strategy::Fallen;
use title::Title;
use user::User;
pub use user::{Place, UserCounts};

use serde::{Deserialize, Serialize};

use crate::account::Strength;
use crate::cleanup::Permits;
use crate::config::{Config, Playback as Settings};
use crate::id::Table;
use crate::input::{
    AccountId, AllocationId, Client, FeedId, Note, Output, PlaybackId, PlaybackKind, RefuseReason, RequestId, Token,
    UserId, ViewerEnd, ViewerId, Viewing,
};
use crate::memory::Memory;
use crate::publish::Context;
use crate::time::{Date, Time, Timers, earliest};

/// How much of each kind is remembered at most.
const MEMORY: usize = 4096;

/// The playback room.
#[derive(Debug, Serialize, Deserialize)]
pub struct Playbacks {
    #[serde(skip)]
    settings: Settings,
    #[serde(skip)]
    limits: Vec<crate::config::User>,
    users: Vec<User>,
    playbacks: Table<PlaybackKind, Playback>,
    requests: BTreeMap<RequestId, PlaybackId>,
    viewers: BTreeMap<ViewerId, PlaybackId>,
    /// Playbacks of titles by what they are known by, and by their players where those have one each.
    tokens: BTreeMap<Token, PlaybackId>,
    players: BTreeMap<Player, PlaybackId>,
    probes: BTreeMap<RequestId, Probe>,
    /// Connections to providers that are being closed, and the one for which a player's next playback waits.
    closings: BTreeMap<AllocationId, Closing>,
    leaving: BTreeMap<Player, AllocationId>,
    /// How strong those are that watch a feed, the strongest first.
    strengths: BTreeMap<FeedId, BTreeSet<(Strength, PlaybackId)>>,
    /// Feeds whose strongest one may be another now.
    strengthened: VecDeque<FeedId>,
    timers: Timers<PlaybackId>,
    permits: Permits<PlaybackId>,
    /// What was refused just now, and how much had become free by then.
    refusals: Memory<Player, (RefuseReason, u64)>,
    /// Whose title no provider gave just now.
    failures: Memory<Player, ()>,
    /// For whom providers were asked in vain, and until when that counts.
    vain: Memory<Player, Time>,
    /// Who evicted whom and may not again yet.
    guards: Memory<(Player, Player), ()>,
    /// Who was ended by an operator and may not come back yet.
    blocks: Memory<Player, ()>,
    /// Who gave way to a stronger one and may not come back yet.
    preempted: Memory<Player, ()>,
    /// Tokens of what was ended, which never comes back.
    ended: Memory<Token, ()>,
    /// Who was let in and has to be connected with what it wants to see.
    admitted: VecDeque<(RequestId, Item)>,
    /// Who was let in and has a title fetched.
    ready: VecDeque<PlaybackId>,
    /// Requests that were answered while others still work on them.
    abandoned: VecDeque<RequestId>,
    arrivals: u64,
    /// Counts connections to providers that were closed: what was refused before that may be granted now.
    closes: u64,
    draining: bool,
    stale: u64,
}

/// Who wants to watch a feed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Audience {
    /// How strong the strongest of them is; `None` = nobody is there.
    pub strongest: Option<Strength>,
    /// From when on one of them at least has a grace: no user has one soon after one that was in vain.
    pub gracious: Time,
}

/// One player, as far as it can be told from others: what it asks for again is the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct Player {
    user: UserId,
    client: Client,
    item: Item,
}

/// One viewing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Playback {
    /// Who and what.
    pub viewing: Viewing,
    /// How far it has come.
    pub state: State,
    /// Counts its transitions.
    pub version: u32,
    /// When it was asked for.
    pub asked: Time,
    /// When it was let in; when it was asked for, if it was not yet.
    pub since: Time,
    /// Its viewer, where it watches a feed and there is one.
    pub viewer: Option<ViewerId>,
    holds: Activation,
    /// Its unanswered request, where it watches a feed.
    request: Option<RequestId>,
    /// Its requests, where it watches a title.
    title: Option<Title>,
    arrival: u64,
    /// How many of the strategies have failed.
    tried: usize,
    /// Whether one of them found somebody whom it may not evict again yet.
    protected: bool,
    /// How its last request ended.
    last: ViewerEnd,
    /// Until when it has a place that is not there.
    grace: Time,
    /// Until when its user may play.
    expires: Time,
    armed: Time,
}

/// How far a playback has come (spec: playback §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum State {
    /// It waits until then for a permit.
    Queued(Time),
    /// It waits until then for a place.
    Held(Time),
    /// It waits for an account, until then at least.
    PendingProvider(Time),
    /// It has what it needs; what it wants to see is being fetched. Without a place it has only begun to look what there is.
    Prepared,
    /// It is seen.
    Active,
    /// It was seen, and nothing is asked for at present; until then it may go on as itself.
    Preserved(Time),
}

impl State {
    /// The word for it in status and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Queued(_) => "queued",
            State::Held(_) => "held",
            State::PendingProvider(_) => "pending-provider",
            State::Prepared => "prepared",
            State::Active => "active",
            State::Preserved(_) => "preserved",
        }
    }

    fn is_seen(self) -> bool {
        matches!(self, State::Active | State::Preserved(_))
    }
}

impl Playback {
    /// Which of its user's places it uses.
    pub fn place(&self) -> Option<Place> {
        self.holds.place
    }

    /// The account with which it began, or goes on.
    pub fn account(&self) -> Option<AccountId> {
        self.title.as_ref()?.account
    }

    /// The connection that it has, or may open.
    pub fn allocation(&self) -> Option<AllocationId> {
        self.holds.account().map(|grant| grant.allocation)
    }

    /// How many of its requests there are: those whose responses flow, and those that wait.
    pub fn claims(&self) -> (usize, usize) {
        match &self.title {
            Some(title) => (title.running.len(), title.waiting.len()),
            None => (usize::from(self.viewer.is_some()), usize::from(self.request.is_some())),
        }
    }

    fn player(&self) -> Player {
        player(&self.viewing)
    }

    /// What it waits for first.
    fn deadline(&self) -> Time {
        let own = match self.state {
            State::Held(until) | State::Preserved(until) => until,
            // Whoever lets it wait tells it.
            State::Queued(_) | State::PendingProvider(_) | State::Prepared | State::Active => Time::NEVER,
        };
        let grace = if self.holds.place == Some(Place::Grace) { self.grace } else { Time::NEVER };
        own.min(grace).min(self.expires).min(self.title.as_ref().map_or(Time::NEVER, Title::deadline))
    }
}

fn player(viewing: &Viewing) -> Player {
    let Viewing { user, item, client } = *viewing;
    Player { user, client, item }
}

impl Playbacks {
    /// Takes its settings from a new one; `None` where it is of another configuration.
    pub(crate) fn configure(&mut self, new: Playbacks) -> Option<()> {
        (self.settings, self.limits) = (new.settings, new.limits);
        (self.users.len() == self.limits.len()).then_some(())
    }

    pub(crate) fn new(config: &Config) -> Self {
        Playbacks {
            settings: config.playback.clone(),
            limits: config.users.clone(),
            users: config.users.iter().map(User::new).collect(),
            playbacks: Table::default(),
            requests: BTreeMap::new(),
            viewers: BTreeMap::new(),
            tokens: BTreeMap::new(),
            players: BTreeMap::new(),
            probes: BTreeMap::new(),
            closings: BTreeMap::new(),
            leaving: BTreeMap::new(),
            strengths: BTreeMap::new(),
            strengthened: VecDeque::new(),
            timers: Timers::default(),
            permits: Permits::new(config.playback.cleanup_capacity, config.playback.permit_wait),
            refusals: Memory::new(MEMORY),
            failures: Memory::new(MEMORY),
            vain: Memory::new(MEMORY),
            guards: Memory::new(MEMORY),
            blocks: Memory::new(MEMORY),
            preempted: Memory::new(MEMORY),
            ended: Memory::new(MEMORY),
            admitted: VecDeque::new(),
            ready: VecDeque::new(),
            abandoned: VecDeque::new(),
            arrivals: 0,
            closes: 0,
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

    /// From when on a user may not play; `None`: it always may.
    pub fn until(&self, user: UserId) -> Option<Date> {
        self.users.get(user.0 as usize).and_then(|user| user.until)
    }

    /// Whether a user's time is over.
    pub fn is_expired(&self, now: Time, user: UserId) -> bool {
        self.until(user).is_some_and(|until| until.has_come(now))
    }

    /// The wall clock was set by so many µs: users may play until a date.
    pub(crate) fn set_clock(&mut self, cx: &mut Context<'_>, by: i64) {
        for place in 0..self.users.len() {
            let user = &mut self.users[place];
            let Some(until) = &mut user.until else { continue };
            *until = until.when_set(by);
            let until = until.time();
            // What was refused before may be let in now.
            user.freed += 1;
            for id in user.playbacks.clone() {
                if let Some(playback) = self.playbacks.get_mut(id) {
                    playback.expires = until;
                    self.arm(id);
                }
            }
            if until <= cx.now {
                self.expire(cx, UserId(place as u32));
            }
        }
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

    /// Whether a playback that is not over is known by this.
    pub fn is_known(&self, token: Token) -> bool {
        self.tokens.contains_key(&token)
    }

    /// How many permits are held.
    pub fn permits(&self) -> usize {
        self.permits.held()
    }

    /// How many requests only look.
    pub fn probe_count(&self) -> usize {
        self.probes.len()
    }

    /// How many connections to providers are being closed of what was fetched here.
    pub fn closing_count(&self) -> usize {
        self.closings.len()
    }

    /// How many deadlines are armed.
    pub fn timer_count(&self) -> usize {
        self.timers.len() + self.permits.waiting()
    }

    /// How many inputs came too late, or named what never was.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        earliest(self.timers.deadline(), self.permits.deadline())
    }

    /// Whether nothing is left to be done for now: nothing that another room is to be told or asked, nobody who may go on.
    pub(crate) fn has_done_all(&self) -> bool {
        let told = self.strengthened.is_empty() && self.admitted.is_empty() && self.abandoned.is_empty();
        told && self.ready.is_empty() && !self.permits.can_grant()
    }

    /// What was let in and is to be connected with what it wants to see.
    pub(crate) fn next_admitted(&mut self) -> Option<(RequestId, Item)> {
        self.admitted.pop_front()
    }

    /// Goes on with titles that were let in, when all that happened was heard; whether there was one.
    pub(crate) fn proceed(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(id) = self.ready.pop_front() else { return false };
        self.serve(cx, id);
        true
    }

    /// A request that was answered here while others may still work on it.
    pub(crate) fn next_abandoned(&mut self) -> Option<RequestId> {
        self.abandoned.pop_front()
    }

    /// A feed whose audience may be another now.
    pub(crate) fn next_audience(&mut self, now: Time) -> Option<(FeedId, Audience)> {
        let feed = self.strengthened.pop_front()?;
        let own = self.strengths.get(&feed);
        let strongest = own.and_then(|own| own.first()).map(|(strength, _)| *strength);
        let mut gracious = Time::NEVER;
        for (_, id) in own.into_iter().flatten() {
            let user = self.playbacks.get(*id).and_then(|playback| self.users.get(playback.viewing.user.0 as usize));
            gracious = gracious.min(user.and_then(|user| user.cooldown).unwrap_or(Time::ZERO));
            if gracious <= now {
                break;
            }
        }
        Some((feed, Audience { strongest, gracious: if own.is_some() { gracious } else { Time::ZERO } }))
    }

    /// What the other rooms said: playbacks follow from it.
    pub(crate) fn heard(&mut self, cx: &mut Context<'_>, output: Heard) {
        match output {
            Heard::Joined(request, viewer) => {
                let Some(id) = self.requests.remove(&request) else { return };
                let Some(playback) = self.playbacks.get_mut(id) else { return };
                (playback.request, playback.viewer) = (None, Some(viewer));
                self.viewers.insert(viewer, id);
                self.seen(cx, id);
            }
            Heard::Refused(request, reason) => {
                let Some(id) = self.requests.get(&request).copied() else { return };
                if let Some((viewing, asked)) =
                    self.playbacks.get(id).map(|playback| (playback.viewing, playback.asked))
                {
                    if reason == RefuseReason::ProviderLimit && asked < cx.now {
                        self.cool_down(cx.now, viewing.user);
                    }
                    self.count_refusal(cx, &viewing, reason);
                }
                self.end(cx, id, ViewerEnd::NoSource);
            }
            Heard::Ended(viewer, reason) => {
                if let Some(id) = self.viewers.get(&viewer).copied() {
                    if reason == ViewerEnd::Preempted {
                        self.keep_out(cx.now, id);
                    }
                    self.end(cx, id, reason);
                }
            }
        }
    }

    /// A playback is seen from now on.
    fn seen(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        playback.since = cx.now;
        let Viewing { user, item, .. } = playback.viewing;
        self.users[user.0 as usize].counts.started += 1;
        if let Some(place) = playback.place() {
            let waited = cx.now.since(playback.asked).as_micros() as u64;
            cx.out.push_back(Output::Note(Note::PlaybackStarted { user, playback: id, item, place, waited }));
        }
        self.transition(id, State::Active);
    }

    /// A stronger one took its account: its player may not have it back at once.
    fn keep_out(&mut self, now: Time, id: PlaybackId) {
        if let Some(player) = self.playbacks.get(id).map(Playback::player) {
            self.preempted.remember(now, player, now + self.settings.preempted_block, ());
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

    /// Nobody new comes in; who waits here is told, and titles end. Those that watch a feed, or wait for one, end with that.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>) {
        self.draining = true;
        let ends = |playback: &Playback| {
            playback.title.is_some() || (playback.viewer.is_none() && playback.state != State::Prepared)
        };
        let ending: Vec<PlaybackId> =
            self.playbacks().filter(|(_, playback)| ends(playback)).map(|(id, _)| id).collect();
        for id in ending {
            self.throw_out(cx, id, RefuseReason::Draining, ViewerEnd::Shutdown);
        }
        self.drain_probes(cx);
    }

    /// Runs every deadline that is due.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.permits.expired(cx.now) {
            self.throw_out(cx, id, RefuseReason::Busy, ViewerEnd::Limit);
        }
        while let Some(id) = self.timers.expired(cx.now) {
            let Some(playback) = self.playbacks.get_mut(id) else { continue };
            playback.armed = Time::NEVER;
            if playback.expires <= cx.now {
                let user = playback.viewing.user;
                self.expire(cx, user);
                continue;
            }
            match playback.state {
                State::Held(until) if until <= cx.now => {
                    self.fall(cx.now, id, Fallen::Hold);
                    self.admit(cx, id);
                }
                State::Preserved(until) if until <= cx.now => self.end(cx, id, ViewerEnd::Left),
                _ if playback.place() == Some(Place::Grace) && playback.grace <= cx.now => {
                    self.fall(cx.now, id, Fallen::Instant);
                    self.readmit(cx, id);
                }
                _ => self.overdue(cx, id),
            }
            self.arm(id);
        }
    }

    /// A user may not play any longer.
    fn expire(&mut self, cx: &mut Context<'_>, user: UserId) {
        // Those that wait first: nobody is let in for a moment.
        let mut all: Vec<_> = self.of_user(user).map(|(id, own)| (own.place().is_some(), own.arrival, id)).collect();
        all.sort_unstable();
        for (_, _, id) in all {
            self.remove(cx, id, ViewerEnd::Expired, Some(RefuseReason::AccountExpired));
        }
    }

    /// A playback goes on in another state. Whatever deadline it had belonged to the old one.
    fn transition(&mut self, id: PlaybackId, state: State) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        if playback.state != state {
            playback.state = state;
            playback.version = playback.version.wrapping_add(1);
        }
        self.arm(id);
    }

    fn arm(&mut self, id: PlaybackId) {
        if let Some(playback) = self.playbacks.get_mut(id) {
            let at = playback.deadline();
            self.timers.set(id, &mut playback.armed, at);
        }
    }
}

/// What the other rooms said of a request or a viewer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    Joined(RequestId, ViewerId),
    Refused(RequestId, RefuseReason),
    Ended(ViewerId, ViewerEnd),
}

impl Heard {
    /// What an output says of playbacks, if anything.
    pub fn of(output: &Output) -> Option<Heard> {
        match *output {
            Output::Joined { request, viewer } => Some(Heard::Joined(request, viewer)),
            Output::Refuse { request, reason } => Some(Heard::Refused(request, reason)),
            Output::ViewerEnd { viewer, reason } => Some(Heard::Ended(viewer, reason)),
            _ => None,
        }
    }
}

fn refuse(cx: &mut Context<'_>, request: RequestId, reason: RefuseReason) {
    cx.out.push_back(Output::Refuse { request, reason });
}
