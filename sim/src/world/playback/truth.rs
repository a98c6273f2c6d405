//! Who asked to play, who has which place of its user, who waits: by what the core said, and by the rules of places alone.
//!
//! What the core says is taken in where it says it: a place is free once the end of its playback was told, and taken by
//! whoever's turn it is. Strategies are not followed here: whether the core was right to use one is for the oracles.

mod midway;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use holdfast_core::config::{self, Strategy};
use holdfast_core::input::{
    Client, Input, Note, Output, PlaybackId, RefuseReason, RequestId, UserId, ViewerEnd, ViewerId, Viewing,
};
use holdfast_core::playback::{Item, Place};
use holdfast_core::time::Time;

use super::super::truth::{Join, Truth};

/// One player, as far as it can be told from others.
pub type Player = (UserId, Client, Item);

/// How far a request to play has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The core is at it now.
    Asked,
    /// No permit is free.
    Queued,
    /// It has a permit and no place, and the core is at it now.
    Undecided,
    /// It waits for a place, since then.
    Held(Time),
    /// It has a place, and waits for what it wants to see.
    In,
    Seen(ViewerId),
    Over,
}

#[derive(Clone, Debug)]
pub struct Play {
    pub viewing: Viewing,
    pub asked: Time,
    /// Counts requests as they come.
    pub order: u64,
    pub stage: Stage,
    pub place: Option<Place>,
    /// When it was last let in.
    pub let_in: Time,
    /// A grace of it ran out in vain.
    pub fallen: bool,
    /// By whom it was evicted.
    pub evicted: Option<RequestId>,
}

impl Play {
    pub fn player(&self) -> Player {
        (self.viewing.user, self.viewing.client, self.viewing.item)
    }
}

#[derive(Clone, Debug)]
pub struct User {
    pub limits: config::User,
    /// It plays titles: it is judged for itself, and nothing of it is here.
    pub of_titles: bool,
    /// Its requests and playbacks that are not over, in the order in which they came.
    pub rows: Vec<RequestId>,
    pub held: Vec<RequestId>,
    /// Who runs without a place, and since when.
    pub grace: Option<(RequestId, Time)>,
    /// When a grace last ran out in vain.
    pub fallen: Option<Time>,
    /// How many places became free.
    pub freed: u64,
    pub started: u64,
    pub refused: [u64; RefuseReason::ALL.len()],
    pub ended: [u64; ViewerEnd::ALL.len()],
}

/// What a player was last refused for.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub at: Time,
    pub reason: RefuseReason,
    pub freed: u64,
}

#[derive(Debug)]
pub struct Users {
    pub settings: config::Playback,
    pub users: Vec<User>,
    pub plays: BTreeMap<RequestId, Play>,
    /// How the core calls them.
    names: BTreeMap<PlaybackId, RequestId>,
    seen: BTreeMap<ViewerId, RequestId>,
    pub queue: VecDeque<RequestId>,
    /// How many are not over.
    pub alive: usize,
    /// Whose request the core handles now, until something is known of it.
    pub fresh: Option<RequestId>,
    asking: Option<RequestId>,
    /// Who hangs up now.
    hangup: Option<RequestId>,
    pub refusals: BTreeMap<Player, Refusal>,
    refused: Option<(Player, Refusal)>,
    /// Who evicted whom, and when.
    pub guards: BTreeMap<(Player, Player), Time>,
    /// From when until when who was kicked may not come back.
    pub blocks: BTreeMap<Player, (Time, Time)>,
    /// Users that something happened to in this call.
    pub touched: BTreeSet<usize>,
    orders: u64,
}

impl Users {
    /// Those users that are not in `of_titles` are followed.
    pub fn new(config: &config::Config, of_titles: &BTreeSet<UserId>) -> Self {
        let user = |(limits, place): (&config::User, u32)| User {
            limits: limits.clone(),
            of_titles: of_titles.contains(&UserId(place)),
            rows: Vec::new(),
            held: Vec::new(),
            grace: None,
            fallen: None,
            freed: 0,
            started: 0,
            refused: [0; RefuseReason::ALL.len()],
            ended: [0; ViewerEnd::ALL.len()],
        };
        Users {
            settings: config.playback.clone(),
            users: config.users.iter().zip(0..).map(user).collect(),
            plays: BTreeMap::new(),
            names: BTreeMap::new(),
            seen: BTreeMap::new(),
            queue: VecDeque::new(),
            alive: 0,
            fresh: None,
            asking: None,
            hangup: None,
            refusals: BTreeMap::new(),
            refused: None,
            guards: BTreeMap::new(),
            blocks: BTreeMap::new(),
            touched: BTreeSet::new(),
            orders: 0,
        }
    }

    pub fn is_play(&self, request: RequestId) -> bool {
        self.plays.contains_key(&request)
    }

    /// The request of a playback; one that nobody knows yet is of the request that is handled now.
    pub fn named(&self, id: PlaybackId) -> Option<RequestId> {
        self.names.get(&id).copied().or(self.asking)
    }

    pub fn known(&self, id: PlaybackId) -> bool {
        self.names.contains_key(&id)
    }

    pub fn name(&mut self, id: PlaybackId, request: RequestId) {
        self.names.insert(id, request);
    }

    pub fn of_viewer(&self, viewer: ViewerId) -> Option<RequestId> {
        self.seen.get(&viewer).copied()
    }

    pub fn name_of(&self, request: RequestId) -> Option<PlaybackId> {
        self.names.iter().find(|(_, own)| **own == request).map(|(id, _)| *id)
    }

    /// A user's playbacks with a place of this kind.
    pub fn with_place(&self, user: usize, place: Place) -> impl Iterator<Item = RequestId> {
        let rows = self.users[user].rows.iter().copied();
        rows.filter(move |request| self.plays[request].place == Some(place))
    }

    pub fn used(&self, user: usize, place: Place) -> u32 {
        self.with_place(user, place).count() as u32
    }

    /// Which place of a user is free.
    pub fn free(&self, user: usize) -> Option<Place> {
        let limits = &self.users[user].limits;
        if limits.max_connections == 0 || self.used(user, Place::Normal) < limits.max_connections {
            return Some(Place::Normal);
        }
        (self.used(user, Place::Soft) < limits.soft_connections).then_some(Place::Soft)
    }

    /// Whether a refusal was decided and told at this very moment.
    pub fn was_told(&self, now: Time) -> bool {
        self.refusals.values().any(|refusal| refusal.at == now)
    }

    pub fn permits(&self) -> usize {
        self.alive - self.queue.len()
    }

    /// How many deadlines there have to be.
    pub fn deadlines(&self) -> usize {
        let waits = |user: &User| match user.limits.until {
            // Each ends with its user's time.
            Some(_) => user.rows.len(),
            None => user.held.len() + usize::from(user.grace.is_some()),
        };
        self.queue.len() + self.users.iter().map(waits).sum::<usize>()
    }

    /// Whether a grace of a row is over in vain: it holds none, and nobody of its user gets one soon.
    pub fn fall(&mut self, now: Time, request: RequestId) {
        let Some(play) = self.plays.get_mut(&request) else { return };
        let user = &mut self.users[play.viewing.user.0 as usize];
        let graced = matches!(play.stage, Stage::Held(_)) || user.grace.is_some_and(|(own, _)| own == request);
        if graced {
            play.fallen = true;
            user.fallen = Some(now);
        }
    }
}

impl Truth {
    pub fn play_before(&mut self, now: Time, input: &Input) {
        let of_titles = |viewing: &Viewing| self.titles.is_of(viewing.user);
        let elsewhere = matches!(input, Input::Play { viewing, .. } if of_titles(viewing));
        let users = &mut self.users;
        (users.fresh, users.asking, users.hangup) = (None, None, None);
        users.touched.clear();
        match *input {
            Input::Play { request, viewing } if !elsewhere && !users.is_play(request) => {
                users.orders += 1;
                let (order, stage) = (users.orders, Stage::Asked);
                let play = Play {
                    viewing,
                    asked: now,
                    order,
                    stage,
                    place: None,
                    let_in: Time::ZERO,
                    fallen: false,
                    evicted: None,
                };
                users.plays.insert(request, play);
                (users.fresh, users.asking) = (Some(request), Some(request));
            }
            Input::Hangup { request } => users.hangup = Some(request),
            _ => {}
        }
    }

    /// What an output says before it is judged: whose turn it was is known from the places alone.
    pub fn play_hear(&mut self, now: Time, output: &Output) {
        match *output {
            Output::Joined { request, .. } => self.has_come_to(now, request),
            Output::Refuse { request, reason } if is_of_feeds(reason) => {
                let known = |play: &Play| (play.viewing.user.0 as usize) < self.users.users.len();
                let waits = self.users.plays.get(&request).is_some_and(known);
                if waits && !(self.draining && reason == RefuseReason::Draining) {
                    self.has_come_to(now, request);
                }
            }
            Output::Note(Note::PlaybackGraced { playback, .. }) => {
                if let Some(request) = self.users.named(playback) {
                    self.has_come_to(now, request);
                }
            }
            Output::Note(Note::PlaybackEvicted { by, .. }) => {
                if let Some(request) = self.users.named(by) {
                    self.has_come_to(now, request);
                }
            }
            // A place became free, perhaps by whoever goes before it was seen.
            Output::Note(Note::PlaybackPromoted { .. }) => self.gave_up(now),
            // Who waited too long for a permit has none.
            Output::Refuse { request, reason }
                // Nor need a client have gone whose user's time was over before it went.
                if reason != RefuseReason::Busy
                    && (reason != RefuseReason::AccountExpired || self.users.hangup.is_none())
                    && self.users.fresh != Some(request)
                    && self.users.plays.get(&request).is_some_and(|play| play.stage == Stage::Queued) =>
            {
                self.has_come_to(now, request);
            }
            _ => {}
        }
    }

    /// The core has come to a request: what freed its place or permit has happened.
    fn has_come_to(&mut self, now: Time, request: RequestId) {
        if self.users.fresh == Some(request) {
            return self.enter(now);
        }
        let stage = self.users.plays.get(&request).map(|play| play.stage);
        if matches!(stage, Some(Stage::Queued | Stage::Held(_))) {
            self.permit(now);
            let stands = self.users.plays.get(&request).map(|play| play.stage) == stage;
            // What was due before its own client went still finds it waiting.
            if stands && self.users.hangup != Some(request) {
                self.gave_up(now);
                self.permit(now);
            }
        }
    }

    fn enter(&mut self, now: Time) {
        let Some(request) = self.users.fresh.take() else { return };
        let users = &mut self.users;
        let Some(play) = users.plays.get_mut(&request) else { return };
        let user = play.viewing.user.0 as usize;
        play.stage = Stage::Queued;
        users.users[user].rows.push(request);
        users.queue.push_back(request);
        users.alive += 1;
        users.touched.insert(user);
        self.permit(now);
    }

    fn permit(&mut self, now: Time) {
        while self.users.permits() < self.users.settings.cleanup_capacity
            && let Some(request) = self.users.queue.pop_front()
        {
            let Some(play) = self.users.plays.get_mut(&request) else { continue };
            play.stage = Stage::Undecided;
            let user = play.viewing.user.0 as usize;
            self.users.touched.insert(user);
            if let Some(place) = self.users.free(user) {
                self.let_in(now, request, place);
            }
        }
    }

    fn gave_up(&mut self, now: Time) {
        let Some(request) = self.users.hangup.take() else { return };
        let seen = |play: &Play| matches!(play.stage, Stage::Seen(_) | Stage::Over);
        if self.users.plays.get(&request).is_none_or(seen) {
            return;
        }
        self.joins.retain(|join| join.request != request);
        self.play_over(now, request, Frees::Everybody);
    }

    fn let_in(&mut self, now: Time, request: RequestId, place: Place) {
        let Some(play) = self.users.plays.get_mut(&request) else { return };
        (play.stage, play.place, play.let_in) = (Stage::In, Some(place), now);
        let (user, item) = (play.viewing.user.0 as usize, play.viewing.item);
        self.users.users[user].held.retain(|own| *own != request);
        let Some(feed) = item.feed() else { return };
        self.joins.push(Join { request, feed, at: now });
        if let Some(channel) = self.channel_of(feed) {
            self.channels[channel].stirred = now;
        }
    }

    fn play_over(&mut self, now: Time, request: RequestId, frees: Frees) {
        let users = &mut self.users;
        let Some(play) = users.plays.get_mut(&request).filter(|play| play.stage != Stage::Over) else { return };
        let entered = play.stage != Stage::Asked;
        if let Stage::Seen(viewer) = play.stage {
            users.seen.remove(&viewer);
        }
        play.stage = Stage::Over;
        let (index, place) = (play.viewing.user.0 as usize, play.place.take());
        if !entered {
            return;
        }
        let user = &mut users.users[index];
        user.rows.retain(|own| *own != request);
        user.held.retain(|own| *own != request);
        user.grace = user.grace.filter(|(own, _)| *own != request);
        user.freed += u64::from(place.is_some());
        users.queue.retain(|own| *own != request);
        users.alive -= 1;
        users.touched.insert(index);
        match frees {
            Frees::Everybody => self.settle(now, index),
            Frees::One(by) => self.succeed(now, by),
        }
    }

    /// Whoever evicted has the place.
    fn succeed(&mut self, now: Time, by: RequestId) {
        self.users.fall(now, by);
        let Some(user) = self.users.plays.get(&by).map(|play| play.viewing.user.0 as usize) else { return };
        let Some(place) = self.users.free(user) else { return };
        if self.users.users[user].grace.is_some_and(|(own, _)| own == by) {
            self.users.users[user].grace = None;
            self.users.users[user].freed += 1;
            if let Some(play) = self.users.plays.get_mut(&by) {
                play.place = Some(place);
            }
        } else {
            self.let_in(now, by, place);
        }
    }

    /// Free places go to the grace, then to those who wait in the order in which they came.
    fn settle(&mut self, now: Time, user: usize) {
        while let Some(place) = self.users.free(user) {
            if let Some((request, _)) = self.users.users[user].grace.take() {
                self.users.users[user].freed += 1;
                let soft = self.users.with_place(user, Place::Soft).next().filter(|_| place == Place::Normal);
                let rest = soft.map_or(place, |_| Place::Soft);
                for (request, place) in soft.map(|soft| (soft, Place::Normal)).into_iter().chain([(request, rest)]) {
                    if let Some(play) = self.users.plays.get_mut(&request) {
                        play.place = Some(place);
                    }
                }
            } else if let Some(request) = self.users.users[user].held.first().copied() {
                self.let_in(now, request, place);
            } else {
                // Of those that came to their turn in this very call nothing was said so far.
                let is_next = |own: &&RequestId| self.users.plays[*own].stage == Stage::Undecided;
                let Some(request) = self.users.users[user].rows.iter().find(is_next).copied() else { break };
                self.let_in(now, request, place);
            }
        }
    }

    /// Takes an output in, after it was judged.
    pub fn play_output(&mut self, now: Time, input: &Input, output: &Output) {
        match *output {
            Output::Joined { request, viewer } => {
                let users = &mut self.users;
                let Some(play) = users.plays.get_mut(&request) else { return };
                play.stage = Stage::Seen(viewer);
                let user = play.viewing.user.0 as usize;
                users.touched.insert(user);
                users.users[user].started += 1;
                users.seen.insert(viewer, request);
            }
            Output::Refuse { request, reason } => self.play_refused(now, input, request, reason),
            Output::ViewerEnd { viewer, reason } => {
                let Some(request) = self.users.of_viewer(viewer) else { return };
                if reason == ViewerEnd::Limit {
                    self.users.fall(now, request);
                }
                self.block(now, input, request, reason == ViewerEnd::Kicked);
            }
            Output::Note(Note::PlaybackStarted { playback, place, .. }) => {
                let request = self.users.named(playback);
                if let Some(play) = request.and_then(|request| self.users.plays.get_mut(&request)) {
                    play.place = Some(place);
                }
            }
            Output::Note(Note::PlaybackEnded { playback, reason, .. }) => {
                let Some(request) = self.users.named(playback) else { return };
                let Some(play) = self.users.plays.get(&request) else { return };
                self.users.users[play.viewing.user.0 as usize].ended[reason as usize] += 1;
                let frees = play.evicted.filter(|_| reason == ViewerEnd::Evicted).map_or(Frees::Everybody, Frees::One);
                self.play_over(now, request, frees);
            }
            // What is not told is the repetition of what was.
            Output::Note(Note::PlaybackRefused {
                reason: RefuseReason::UserLimit | RefuseReason::Suppressed, ..
            }) => {
                self.users.refusals.extend(self.users.refused.take());
            }
            Output::Note(Note::PlaybackEvicted { playback, by, .. }) => {
                let (Some(target), Some(by)) = (self.users.named(playback), self.users.named(by)) else { return };
                let players = [by, target].map(|request| self.users.plays[&request].player());
                self.users.guards.insert((players[0], players[1]), now);
                if let Some(play) = self.users.plays.get_mut(&target) {
                    play.evicted = Some(by);
                }
            }
            Output::Note(Note::PlaybackGraced { user, playback, rule }) => {
                let Some(request) = self.users.named(playback) else { return };
                let user = &mut self.users.users[user.0 as usize];
                if rule == Strategy::GraceHold {
                    user.held.push(request);
                    if let Some(play) = self.users.plays.get_mut(&request) {
                        play.stage = Stage::Held(now);
                    }
                } else {
                    user.grace = Some((request, now));
                    self.let_in(now, request, Place::Grace);
                }
            }
            _ => {}
        }
    }

    fn play_refused(&mut self, now: Time, input: &Input, request: RequestId, reason: RefuseReason) {
        let Some(play) = self.users.plays.get(&request) else { return };
        let (player, index) = (play.player(), play.viewing.user.0 as usize);
        self.answers.insert(request, (Err(reason), now));
        if self.users.fresh == Some(request) {
            self.users.fresh = None;
        }
        if reason == RefuseReason::UserLimit || reason == RefuseReason::Suppressed {
            self.users.fall(now, request);
        }
        self.block(now, input, request, reason == RefuseReason::Kicked);
        if let Some(user) = self.users.users.get_mut(index) {
            self.users.touched.insert(index);
            if reason != RefuseReason::Draining {
                user.refused[reason as usize] += 1;
            }
        }
        let freed = self.users.users.get(index).map_or(0, |user| user.freed);
        self.users.refused = Some((player, Refusal { at: now, reason, freed }));
        // Kicked or drained, it may have been connected already.
        self.joins.retain(|join| join.request != request);
        let by = self.users.plays.get(&request).and_then(|play| play.evicted);
        self.play_over(now, request, by.map_or(Frees::Everybody, Frees::One));
    }

    fn block(&mut self, now: Time, input: &Input, request: RequestId, kicked: bool) {
        let Input::Kick { playback, block } = input else { return };
        if kicked && *block > 0 && self.users.named(*playback) == Some(request) {
            let until = now + std::time::Duration::from_micros(*block);
            self.users.blocks.insert(self.users.plays[&request].player(), (now, until));
        }
    }

    pub fn play_after(&mut self, now: Time) {
        self.enter(now);
        self.gave_up(now);
        self.permit(now);
    }
}

/// Whom a place goes to that becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frees {
    Everybody,
    One(RequestId),
}

/// Whether it is for the feeds, not for users and their places, that somebody is refused.
pub fn is_of_feeds(reason: RefuseReason) -> bool {
    !matches!(
        reason,
        RefuseReason::UserLimit
            | RefuseReason::Suppressed
            | RefuseReason::AccountExpired
            | RefuseReason::Kicked
            | RefuseReason::Busy
    )
}
