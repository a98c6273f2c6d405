//! The invariants of playback (spec: playback §9), judged from the actors' truth.
//!
//! | id | what must hold |
//! |---|---|
//! | `play-1` | a user plays no more than it may, but for one grace; who has which place is what the rules of places say |
//! | `play-2` | nobody is refused while a place is free, nor before every strategy was used that could be; who may not play does not |
//! | `play-3` | a grace lasts `grace`, is given once and not within `grace_cooldown` of one that was in vain |
//! | `play-4` | what is stale changes nothing: what is counted is what happened |
//! | `play-5` | as many permits are held as playbacks run; nothing is left of what is over |
//! | `play-6` | who waits for a place or a permit has it when it is free, in the order of asking, or is told in time |
//! | `play-7` | who was kicked stays out exactly as long as it is blocked |
//! | `play-8` | only a rule evicts, whom it says, for one that gains by it, and nobody the same one twice within `reentry_guard` |
//! | `play-9` | each request is answered once; a playback ends once, for a reason that happened |
//! | `play-10` | nobody plays or waits once the program ends |
//! | `play-18` | nobody plays on when the time of its user is over, and none of it ends before |

use std::time::Duration;

use holdfast_core::config::Strategy;
use holdfast_core::edge::Edge;
use holdfast_core::input::{Input, Note, Output, RefuseReason, RequestId, UserId, ViewerEnd, ViewerId};
use holdfast_core::playback::{Place, State};
use holdfast_core::time::{Date, Time};

use super::super::brief;
use super::super::oracle::{Bench, Broken, Verdict, holds};
use super::truth::{Play, Stage, is_of_feeds};

/// How many users that play titles are looked at after each call.
pub const FEW: usize = 20;
/// How long a refusal answers the same player again.
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);

/// What the strategies leave one who finds no place, for all that can be known.
#[derive(Debug, Default)]
struct Left {
    /// One of them must have helped.
    helps: Option<Strategy>,
    /// One of them may have found only such as are protected.
    may_suppress: bool,
    /// One of them must have.
    must_suppress: bool,
}

impl Bench<'_> {
    /// Judges what an output says of users, after the truth has heard it and before it takes it in.
    pub fn play_output(&self, input: &Input, output: &Output) -> Verdict {
        let users = &self.truth.users;
        match *output {
            Output::Joined { request, .. } => {
                let Some(play) = users.plays.get(&request) else { return Ok(()) };
                let first = self.first_held(play);
                let turn = play.stage == Stage::In;
                holds!(turn, "play-6", "{request:?} is let in, is {:?}, and it is the turn of {first:?}", play.stage);
                self.may_play(request, play)
            }
            Output::Refuse { request, reason } => match users.plays.get(&request) {
                Some(play) => self.play_refused(input, request, play, reason),
                None => Ok(()),
            },
            Output::ViewerEnd { viewer, reason } => self.play_end(input, viewer, reason),
            Output::Note(ref note) => self.play_note(note),
            _ => Ok(()),
        }
    }

    /// Whether one that came to its turn may have the place of another that was refused just before, in the same call.
    fn found_a_place(&self, play: &Play) -> bool {
        play.stage == Stage::Undecided && self.truth.users.free(play.viewing.user.0 as usize).is_some()
    }

    fn first_held(&self, play: &Play) -> Option<RequestId> {
        self.truth.users.users.get(play.viewing.user.0 as usize)?.held.first().copied()
    }

    fn not_before(&self, at: Time) -> bool {
        self.now + self.allowance.early >= at
    }

    /// Whether whoever might play until then should play no longer.
    pub fn is_over(&self, until: Option<Date>) -> bool {
        until.is_some_and(|until| until.time() + self.allowance.slack < self.now)
    }

    fn surely_before(&self, at: Time) -> bool {
        self.now < at - self.allowance.early
    }

    /// Nobody is let in, held or given a grace who may not play at all.
    fn may_play(&self, request: RequestId, play: &Play) -> Verdict {
        let users = &self.truth.users;
        let limits = &users.users[play.viewing.user.0 as usize].limits;
        holds!(limits.enabled, "play-2", "{request:?} plays for a user that may not");
        let expired = limits.until.is_some_and(|until| until.time() + self.allowance.early <= play.asked);
        holds!(!expired, "play-2", "{request:?} plays for a user that expired at {:?}", limits.until);
        let block = users.blocks.get(&play.player());
        let blocked =
            block.is_some_and(|(from, until)| *from < play.asked && play.asked < *until - self.allowance.early);
        holds!(!blocked, "play-7", "{request:?} plays and is blocked: {block:?}");
        Ok(())
    }

    fn play_refused(&self, input: &Input, request: RequestId, play: &Play, reason: RefuseReason) -> Verdict {
        let users = &self.truth.users;
        let open = !matches!(play.stage, Stage::Seen(_) | Stage::Over);
        holds!(open, "play-9", "{request:?} is refused for {reason:?} and is {:?}", play.stage);
        if is_of_feeds(reason) {
            let nobody = users.users.get(play.viewing.user.0 as usize).is_none();
            let so = match reason {
                RefuseReason::Draining => self.truth.draining,
                RefuseReason::NotFound if nobody => true,
                _ => play.stage == Stage::In || self.found_a_place(play),
            };
            holds!(so, "play-2", "{request:?} is refused for {reason:?} and is {:?}", play.stage);
            return Ok(());
        }
        // Whose grace is over in this very call may be told so first.
        let over = matches!(play.stage, Stage::Held(since) if self.not_before(since + users.settings.grace));
        holds!(
            !self.truth.draining || reason != RefuseReason::UserLimit || over,
            "play-10",
            "{request:?}: {reason:?} at the end"
        );
        let user = &users.users[play.viewing.user.0 as usize];
        match reason {
            RefuseReason::AccountExpired => {
                let expired = user.limits.until.is_some_and(|until| self.not_before(until.time()));
                holds!(!user.limits.enabled || expired, "play-2", "{request:?} is refused though its user may play");
            }
            RefuseReason::Kicked if play.stage == Stage::Asked => {
                let block = users.blocks.get(&play.player()).copied();
                let so = block.is_some_and(|(_, until)| self.now < until + self.allowance.early);
                holds!(so, "play-7", "{request:?} is refused as kicked, blocked: {block:?}");
            }
            RefuseReason::Kicked => {
                let so = matches!(input, Input::Kick { playback, .. } if users.named(*playback) == Some(request));
                holds!(so, "play-7", "{request:?} is kicked by {}", brief(input));
            }
            RefuseReason::Busy => {
                let waited = play.asked + users.settings.permit_wait;
                let so = play.stage == Stage::Queued && self.not_before(waited);
                holds!(so, "play-6", "{request:?} is too many, asked at {:?}, {:?}", play.asked, play.stage);
            }
            _ => self.limited(request, play, reason)?,
        }
        Ok(())
    }

    /// Judges a refusal for want of a place.
    fn limited(&self, request: RequestId, play: &Play, reason: RefuseReason) -> Verdict {
        let users = &self.truth.users;
        let index = play.viewing.user.0 as usize;
        let user = &users.users[index];
        if play.stage == Stage::Asked {
            let last = users.refusals.get(&play.player());
            let same = |last: &&super::truth::Refusal| {
                (last.reason, last.freed) == (reason, user.freed)
                    && self.now < last.at + REFUSAL_MEMORY + self.allowance.early
            };
            if last.filter(same).is_some() {
                return Ok(());
            }
            if reason == RefuseReason::UserLimit && user.rows.len() >= users.settings.sessions_per_user {
                return Ok(());
            }
            self.may_play(request, play)?;
            holds!(
                users.permits() < users.settings.cleanup_capacity,
                "play-6",
                "{request:?} is refused and has no permit"
            );
        }
        if play.evicted.is_some() {
            return Ok(());
        }
        self.no_place(request, play)?;
        let grace = users.settings.grace;
        match play.stage {
            Stage::Held(since) => {
                holds!(self.not_before(since + grace), "play-3", "{request:?} is held since {since:?} and given up");
            }
            Stage::In => {
                let since = user.grace.filter(|(own, _)| *own == request).map(|(_, since)| since);
                let so = since.is_some_and(|since| self.not_before(since + grace));
                holds!(so, "play-3", "{request:?} has a place and is refused, its grace began at {since:?}");
            }
            Stage::Asked | Stage::Undecided => {}
            stage => holds!(false, "play-9", "{request:?} is refused and is {stage:?}"),
        }
        let left = self.left(request, play);
        holds!(
            left.helps.is_none(),
            "play-2",
            "{request:?} is refused for {reason:?}, and {:?} would help",
            left.helps
        );
        if play.stage == Stage::In {
            // Its answer is for want of a place, whatever was found.
            return Ok(());
        }
        match reason {
            RefuseReason::Suppressed => {
                holds!(left.may_suppress, "play-8", "{request:?} is suppressed, and no guard says so")
            }
            _ => {
                holds!(!left.must_suppress, "play-8", "{request:?} found only such as it evicted just now: {reason:?}")
            }
        }
        Ok(())
    }

    /// No place was free, with those counted as gone whose viewers have ended.
    fn no_place(&self, request: RequestId, play: &Play) -> Verdict {
        let users = &self.truth.users;
        let index = play.viewing.user.0 as usize;
        let limits = &users.users[index].limits;
        let there = |own: &RequestId| match users.plays[own].stage {
            Stage::Seen(viewer) => self.truth.viewers.get(&viewer).is_some_and(|row| row.ended.is_none()),
            _ => true,
        };
        let used =
            [Place::Normal, Place::Soft].map(|place| users.with_place(index, place).filter(there).count() as u32);
        let full =
            limits.max_connections > 0 && used[0] >= limits.max_connections && used[1] >= limits.soft_connections;
        holds!(full, "play-2", "{request:?} finds no place, and {used:?} of {limits:?} are used");
        Ok(())
    }

    /// What the strategies that a request has before it could do for it.
    fn left(&self, request: RequestId, play: &Play) -> Left {
        let users = &self.truth.users;
        let index = play.viewing.user.0 as usize;
        let user = &users.users[index];
        let strategies = &users.settings.strategies;
        let grace = |strategy: &Strategy| matches!(strategy, Strategy::GraceHold | Strategy::GraceInstant);
        let runs = matches!(play.stage, Stage::Held(_)) || user.grace.is_some_and(|(own, _)| own == request);
        let behind = if runs { strategies.iter().position(grace).map_or(0, |place| place + 1) } else { 0 };
        let mut left = Left::default();
        for strategy in &strategies[behind..] {
            match strategy {
                Strategy::Deny => break,
                Strategy::GraceHold | Strategy::GraceInstant => {
                    let cools = user
                        .fallen
                        .is_some_and(|at| self.now < at + users.settings.grace_cooldown + self.allowance.early);
                    let taken = *strategy == Strategy::GraceInstant && user.grace.is_some();
                    if !runs && !cools && !taken && !users.settings.grace.is_zero() {
                        left.helps = Some(*strategy);
                    }
                }
                _ => {
                    let candidates = self.candidates(request, play, *strategy);
                    let guarded = |target: &RequestId| self.guard(play, &users.plays[target]);
                    let (mut may, mut must) = (!candidates.is_empty(), !candidates.is_empty());
                    for guard in candidates.iter().map(guarded) {
                        may &= guard != Guard::Off;
                        must &= guard == Guard::On;
                    }
                    left.may_suppress |= may;
                    left.must_suppress |= must;
                    if !candidates.is_empty() && !may {
                        left.helps = Some(*strategy);
                    }
                }
            }
        }
        left
    }

    /// Whom a rule may evict, first of all whom it should.
    fn candidates(&self, by: RequestId, play: &Play, rule: Strategy) -> Vec<RequestId> {
        let users = &self.truth.users;
        let same = matches!(rule, Strategy::EvictSameIpOldest | Strategy::EvictSameIpLatest);
        let rows = users.users[play.viewing.user.0 as usize].rows.iter().copied();
        let may = |other: &RequestId| {
            let row = &users.plays[other];
            // Whoever has a place counts, also while it is still opening.
            let seen = match row.stage {
                Stage::Seen(viewer) => self.truth.viewers.get(&viewer).is_some_and(|row| row.ended.is_none()),
                stage => stage == Stage::In,
            };
            let near = row.viewing.client.address == play.viewing.client.address;
            *other != by && seen && row.place != Some(Place::Grace) && (near || !same)
        };
        let mut all: Vec<_> = rows.filter(may).collect();
        if matches!(rule, Strategy::EvictLatest | Strategy::EvictSameIpLatest) {
            all.reverse();
        }
        all
    }

    fn guard(&self, by: &Play, target: &Play) -> Guard {
        // Who is seen since this very moment may not have been when it was decided.
        if let Stage::Seen(viewer) = target.stage
            && self.truth.viewers.get(&viewer).is_some_and(|row| row.joined == self.now)
        {
            return Guard::Unsure;
        }
        let Some(at) = self.truth.users.guards.get(&(by.player(), target.player())) else { return Guard::Off };
        let until = *at + self.truth.users.settings.reentry_guard;
        if self.surely_before(until) {
            Guard::On
        } else if self.now >= until + self.allowance.early {
            Guard::Off
        } else {
            Guard::Unsure
        }
    }

    fn play_end(&self, input: &Input, viewer: ViewerId, reason: ViewerEnd) -> Verdict {
        let users = &self.truth.users;
        // Of one that was evicted, the end was told before.
        let evicted = users.plays.values().rev().take(200).any(|play| play.evicted.is_some());
        let Some(request) = users.of_viewer(viewer) else {
            let so =
                reason != ViewerEnd::Kicked && reason != ViewerEnd::Limit && (reason != ViewerEnd::Evicted || evicted);
            holds!(so, "play-9", "viewer {viewer} ends as {reason:?} and is no user's");
            return Ok(());
        };
        let play = &users.plays[&request];
        let user = &users.users[play.viewing.user.0 as usize];
        match reason {
            ViewerEnd::Evicted => holds!(play.evicted.is_some(), "play-8", "viewer {viewer} is evicted by nobody"),
            ViewerEnd::Kicked => {
                let so = matches!(input, Input::Kick { playback, .. } if users.named(*playback) == Some(request));
                holds!(so, "play-9", "viewer {viewer} is kicked by {}", brief(input));
            }
            ViewerEnd::Limit => {
                let since = user.grace.filter(|(own, _)| *own == request).map(|(_, since)| since);
                let so = since.is_some_and(|since| self.not_before(since + users.settings.grace));
                holds!(so, "play-3", "viewer {viewer} ends for want of a place, its grace began at {since:?}");
                self.no_place(request, play)?;
                let helps = self.left(request, play).helps;
                holds!(helps.is_none(), "play-2", "viewer {viewer} ends for want of a place, and {helps:?} would help");
            }
            ViewerEnd::Expired => {
                let so = user.limits.until.is_some_and(|until| self.not_before(until.time()));
                holds!(
                    so,
                    "play-18",
                    "viewer {viewer} ends as expired, its user may play until {:?}",
                    user.limits.until
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn play_note(&self, note: &Note) -> Verdict {
        let users = &self.truth.users;
        let row = |playback| {
            let request = users.named(playback);
            let unknown =
                || Broken { id: "play-4", what: format!("playback {playback} is spoken of and never was: {note:?}") };
            request.and_then(|request| Some((request, users.plays.get(&request)?))).ok_or_else(unknown)
        };
        match *note {
            Note::PlaybackStarted { playback, place, waited, .. } => {
                let (request, play) = row(playback)?;
                // A better place may have become free in this very call, after it was let in for all that could be known.
                let better = play.place == Some(Place::Soft)
                    && users.free(play.viewing.user.0 as usize) == Some(Place::Normal)
                    && self.now == play.let_in;
                let so = matches!(play.stage, Stage::Seen(_)) && (play.place == Some(place) || better);
                holds!(so, "play-1", "{request:?} starts on a {place:?} place, but {:?}, {:?}", play.place, play.stage);
                let (truth, told) = (self.now.since(play.asked), Duration::from_micros(waited));
                let same = told <= truth + self.allowance.early && truth <= told + self.allowance.early;
                holds!(same, "play-4", "{request:?} waited {truth:?}, not {told:?}");
            }
            Note::PlaybackEnded { playback, reason, .. } => {
                let (request, play) = row(playback)?;
                let Stage::Seen(viewer) = play.stage else {
                    holds!(false, "play-9", "{request:?} ends as {reason:?} and is {:?}", play.stage);
                    return Ok(());
                };
                let end = self.truth.viewers.get(&viewer).and_then(|row| row.ended);
                let evicted = play.evicted.is_some() && reason == ViewerEnd::Evicted;
                let so = end.map_or(reason == ViewerEnd::Left || evicted, |end| end == reason);
                holds!(so, "play-9", "{request:?} ends as {reason:?}, its viewer as {end:?}");
            }
            Note::PlaybackPromoted { playback, .. } => {
                let (request, play) = row(playback)?;
                // One that is refused in the same call may be told so before it is heard that it was.
                let so = play.place == Some(Place::Normal) || matches!(play.stage, Stage::Over);
                holds!(so, "play-1", "{request:?} is promoted and is {:?}", play.place);
            }
            Note::PlaybackGraced { playback, rule, .. } => {
                let (request, play) = row(playback)?;
                self.may_play(request, play)?;
                holds!(play.stage == Stage::Undecided && !play.fallen, "play-3", "{request:?} gets a grace: {play:?}");
                self.no_place(request, play)?;
                let user = &users.users[play.viewing.user.0 as usize];
                let cools = user.fallen.is_some_and(|at| self.surely_before(at + users.settings.grace_cooldown));
                holds!(!cools, "play-3", "{request:?} gets a grace, the last was in vain at {:?}", user.fallen);
                let again = rule == Strategy::GraceInstant && user.grace.is_some();
                holds!(!again, "play-1", "{request:?} gets a second grace beside {:?}", user.grace);
                let listed = users.settings.strategies.contains(&rule) && !users.settings.grace.is_zero();
                holds!(listed, "play-3", "{request:?} gets a grace by {rule:?}, which is switched off");
                self.nothing_before(request, play, rule)?;
            }
            Note::PlaybackEvicted { playback, by, rule, user } => {
                let ((target, evicted), (request, play)) = (row(playback)?, row(by)?);
                holds!(
                    evicted.viewing.user == user && play.viewing.user == user,
                    "play-8",
                    "{target:?} is of another user"
                );
                holds!(users.settings.strategies.contains(&rule), "play-8", "{rule:?} is no rule here");
                self.may_play(request, play)?;
                self.no_place(request, play)?;
                let candidates = self.candidates(request, play, rule);
                holds!(
                    candidates.contains(&target),
                    "play-8",
                    "{target:?} is evicted, {rule:?} may evict {candidates:?}"
                );
                let guard = self.guard(play, evicted);
                holds!(guard != Guard::On, "play-8", "{target:?} is evicted by the same one again");
                let better = candidates.iter().take_while(|own| **own != target);
                let better = better.into_iter().find(|own| self.guard(play, &users.plays[own]) == Guard::Off);
                holds!(
                    better.is_none(),
                    "play-8",
                    "{target:?} is evicted by {rule:?}, and {better:?} stands before it"
                );
                let grace = users.settings.grace;
                let since = match play.stage {
                    Stage::Undecided => None,
                    Stage::Held(since) => Some(since),
                    _ => users.users[user.0 as usize].grace.filter(|(own, _)| *own == request).map(|(_, since)| since),
                };
                let so = since.map_or(play.stage == Stage::Undecided, |since| self.not_before(since + grace));
                holds!(so, "play-3", "{request:?} evicts and is {:?} since {since:?}", play.stage);
                if since.is_none() {
                    self.nothing_before(request, play, rule)?;
                }
            }
            Note::PlaybackRefused { user: UserId(user), .. } => {
                holds!((user as usize) < users.users.len(), "play-4", "user {user} is refused and never was");
            }
            _ => {}
        }
        Ok(())
    }

    /// No rule that stands before this one would have helped.
    fn nothing_before(&self, request: RequestId, play: &Play, rule: Strategy) -> Verdict {
        let strategies = &self.truth.users.settings.strategies;
        for before in strategies.iter().take_while(|own| **own != rule) {
            let evicts = !matches!(before, Strategy::GraceHold | Strategy::GraceInstant | Strategy::Deny);
            holds!(*before != Strategy::Deny, "play-2", "{request:?} goes on behind {before:?}");
            let off = |target: &RequestId| self.guard(play, &self.truth.users.plays[target]) == Guard::Off;
            let helps = evicts && self.candidates(request, play, *before).iter().any(off);
            holds!(!helps, "play-2", "{request:?} goes on to {rule:?}, and {before:?} would help");
        }
        Ok(())
    }

    /// Judges how users stand after each call: those that something happened to.
    pub fn play_standing(&self, edge: &Edge) -> Verdict {
        let users = &self.truth.users;
        if self.truth.titles.users.len() <= FEW {
            self.play_tables(edge)?;
        }
        holds!(!self.truth.draining || users.alive == 0, "play-10", "{} play or wait at the end", users.alive);
        if let Some(first) = users.queue.front() {
            let latest = users.plays[first].asked + users.settings.permit_wait + self.allowance.slack;
            holds!(self.now <= latest, "play-6", "{first:?} waits for a permit longer than until {latest:?}");
        }
        if users.users.len() <= FEW {
            for (index, user) in users.users.iter().enumerate().filter(|(_, user)| !user.of_titles) {
                let over = self.is_over(user.limits.until);
                holds!(!over || user.rows.is_empty(), "play-18", "user {index} plays on, expired: {:?}", user.limits);
            }
        }
        users.touched.iter().try_for_each(|user| self.play_user(edge, *user))
    }

    /// Judges how many permits and deadlines there are: after each call where users are few, else now and then.
    fn play_tables(&self, edge: &Edge) -> Verdict {
        let (users, room) = (&self.truth.users, edge.playback());
        let (rows, permitted) = self.title_rows(edge);
        let permits = (room.permits(), users.permits() + permitted);
        // A permit is held until the last connection of what it was for is closed, and for those that only look.
        let more = if rows > 0 || permits.0 > permits.1 { self.loose_permits() } else { 0 };
        let so = permits.1 <= permits.0 && permits.0 <= permits.1 + more;
        holds!(so, "play-5", "permits held, by the core and in truth: {permits:?}");
        holds!(permits.0 <= users.settings.cleanup_capacity, "play-5", "{} permits are held", permits.0);
        // How many a playback of a title needs is not known here.
        let timers = (room.timer_count(), users.deadlines());
        let so = timers.0 == timers.1 || rows > 0 && timers.1 <= timers.0 && timers.0 <= timers.1 + rows * 4;
        holds!(so, "play-5", "deadlines, armed and needed: {timers:?}");
        Ok(())
    }

    fn play_user(&self, edge: &Edge, index: usize) -> Verdict {
        let (users, room) = (&self.truth.users, edge.playback());
        let (user, name) = (&users.users[index], UserId(index as u32));
        for place in [Place::Normal, Place::Soft, Place::Grace] {
            let used = (room.used(name, place), users.used(index, place));
            holds!(used.0 == used.1, "play-1", "{place:?} places of {name:?}, by the core and in truth: {used:?}");
        }
        let (max, soft) = (user.limits.max_connections, user.limits.soft_connections);
        let used = [Place::Normal, Place::Soft, Place::Grace].map(|place| users.used(index, place));
        let so = (max == 0 || used[0] <= max) && used[1] <= soft && used[2] <= 1;
        holds!(so, "play-1", "{name:?} uses {used:?} of {max} and {soft} places");
        for request in &user.rows {
            let play = &users.plays[request];
            if let Stage::Seen(viewer) = play.stage {
                let ended = self.truth.viewers.get(&viewer).and_then(|row| row.ended);
                holds!(ended.is_none(), "play-5", "{request:?} is seen by viewer {viewer}, which ended as {ended:?}");
            }
            holds!(play.stage != Stage::Undecided, "play-9", "{request:?} is neither let in, nor held, nor refused");
        }
        let stages = |test: &dyn Fn(Stage) -> bool| user.rows.iter().filter(|own| test(users.plays[own].stage)).count();
        let states = |test: &dyn Fn(State) -> bool| room.of_user(name).filter(|(_, row)| test(row.state)).count();
        let told = [
            states(&|state| matches!(state, State::Queued(_))),
            states(&|state| matches!(state, State::Held(_))),
            states(&|state| state == State::Prepared),
            states(&|state| state == State::Active),
        ];
        let truth = [
            stages(&|stage| stage == Stage::Queued),
            stages(&|stage| matches!(stage, Stage::Held(_))),
            stages(&|stage| stage == Stage::In),
            stages(&|stage| matches!(stage, Stage::Seen(_))),
        ];
        holds!(told == truth, "play-4", "queued, held, prepared and active of {name:?}: {told:?}, in truth {truth:?}");
        let latest = |since: Time| since + users.settings.grace + self.allowance.slack;
        for request in &user.held {
            if let Stage::Held(since) = users.plays[request].stage {
                holds!(self.now <= latest(since), "play-3", "{request:?} is held since {since:?}");
            }
        }
        if let Some((request, since)) = user.grace {
            holds!(self.now <= latest(since), "play-3", "{request:?} has its grace since {since:?}");
        }
        let idle = user.held.is_empty() && user.grace.is_none();
        holds!(idle || users.free(index).is_none(), "play-6", "{name:?} has a place free and somebody waits for it");
        Ok(())
    }

    /// Judges every user, and what was counted.
    pub fn play_all(&self, edge: &Edge) -> Verdict {
        let (users, room) = (&self.truth.users, edge.playback());
        self.play_tables(edge)?;
        let rows = (room.playbacks().count(), users.alive + self.title_rows(edge).0);
        holds!(rows.0 == rows.1, "play-5", "playbacks, by the core and in truth: {rows:?}");
        for (index, user) in users.users.iter().enumerate().filter(|(_, user)| !user.of_titles) {
            self.play_user(edge, index)?;
            let Some(counts) = room.counts(UserId(index as u32)) else { continue };
            let same = (counts.started, counts.refused, counts.ended) == (user.started, user.refused, user.ended);
            holds!(same, "play-4", "user {index} counts {counts:?}, but it was {user:?}");
        }
        Ok(())
    }

    /// Judges that nothing is left of any playback.
    pub fn play_rest(&self, edge: &Edge) -> Verdict {
        let room = edge.playback();
        let left = (room.playbacks().count(), room.permits(), room.timer_count(), self.truth.users.alive);
        holds!(left == (0, 0, 0, 0), "play-5", "playbacks, permits and deadlines left: {left:?}");
        Ok(())
    }
}

/// Whether somebody is protected from one that evicted it a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    On,
    Unsure,
    Off,
}
