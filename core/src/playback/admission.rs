//! Who gets a place of its user, who waits for one, and who the next one (spec: playback §3.1, §3.2).
//!
//! One way in for everything that is played: it is asked whether it may at all, waits for a permit, then for a place.

use alloc::vec::Vec;
use core::time::Duration;

use super::activation::{Activation, Parting, Released};
use super::title::Title;
use super::{Place, Playback, Playbacks, Player, State, player, refuse};
use crate::account::{Holder, Strength};
use crate::input::{Ask, FeedId, Note, Output, PlaybackId, RefuseReason, RequestId, UserId, ViewerEnd, Viewing};
use crate::memory::Memory;
use crate::publish::Context;
use crate::time::{Date, Time};

/// How long a refusal is the answer to the same request of the same player, which some repeat at once (VLC: four times in 30 ms).
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);

/// Whether a request needs a place of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    Place,
    Nothing,
}

impl Playbacks {
    /// Somebody wants to play a feed: is let in, held, or refused.
    pub(crate) fn ask(&mut self, cx: &mut Context<'_>, request: RequestId, viewing: Viewing) {
        if self.knows(request) {
            self.stale += 1;
            return;
        }
        if !self.may(cx, request, &viewing) || self.repeats(cx, request, &viewing, Cost::Place) {
            return;
        }
        let Some(id) = self.begin(cx, request, viewing, None) else { return };
        if let Some(playback) = self.playbacks.get_mut(id) {
            playback.request = Some(request);
        }
        self.permit(cx);
    }

    /// Whether something of this request is still to come.
    pub(super) fn knows(&self, request: RequestId) -> bool {
        self.requests.contains_key(&request) || self.probes.contains_key(&request)
    }

    /// Why the user may not play at all now, or not this, where that is said.
    pub(crate) fn forbids(&self, now: Time, user: UserId, viewing: Option<&Viewing>) -> Option<RefuseReason> {
        let kept_out =
            |memory: &Memory<Player, ()>| viewing.is_some_and(|own| memory.recall(now, &player(own)).is_some());
        match self.limits.get(user.0 as usize) {
            None => Some(RefuseReason::NotFound),
            Some(_) if self.draining => Some(RefuseReason::Draining),
            Some(limits) if !limits.enabled || self.is_expired(now, user) => Some(RefuseReason::AccountExpired),
            Some(_) if kept_out(&self.blocks) => Some(RefuseReason::Kicked),
            Some(_) if kept_out(&self.preempted) => Some(RefuseReason::Preempted),
            Some(_) => None,
        }
    }

    /// Why a request for a title would be refused at once, whoever else plays; nothing follows from the question.
    pub(crate) fn refuses(&self, now: Time, ask: &Ask) -> Option<RefuseReason> {
        let ended = ask.token.is_some_and(|token| self.ended.recall(now, &token).is_some());
        match self.forbids(now, ask.viewing.user, Some(&ask.viewing)) {
            Some(reason @ (RefuseReason::NotFound | RefuseReason::Draining)) => Some(reason),
            _ if ended => Some(RefuseReason::PlaybackOver),
            None => self.find(ask).err(),
            forbidden => forbidden,
        }
    }

    /// Whether the user may play this at all; if not, it is told.
    pub(super) fn may(&mut self, cx: &mut Context<'_>, request: RequestId, viewing: &Viewing) -> bool {
        let Some(reason) = self.forbids(cx.now, viewing.user, Some(viewing)) else { return true };
        match reason {
            RefuseReason::NotFound | RefuseReason::Draining => refuse(cx, request, reason),
            _ => self.deny(cx, request, viewing, reason),
        }
        false
    }

    /// Whether the same was refused a moment ago and nothing became free since; it is told the same again.
    pub(super) fn repeats(&mut self, cx: &mut Context<'_>, request: RequestId, viewing: &Viewing, cost: Cost) -> bool {
        let Some(&(reason, epoch)) = self.refusals.recall(cx.now, &player(viewing)) else { return false };
        let hits = match reason {
            RefuseReason::ProviderLimit => true,
            _ => cost == Cost::Place,
        };
        if !hits || epoch != self.epoch(viewing.user, reason) {
            return false;
        }
        self.refuse_again(cx, request, viewing.user, reason);
        true
    }

    /// Whether no provider gave the title to that player a moment ago, who is told the same again: none is asked for it as often
    /// as players repeat themselves. What a playlist names is something else each time.
    pub(super) fn fails_again(&mut self, cx: &mut Context<'_>, request: RequestId, ask: &Ask) -> bool {
        let viewing = &ask.viewing;
        if ask.account.is_some() || self.failures.recall(cx.now, &player(viewing)).is_none() {
            return false;
        }
        self.refuse_again(cx, request, viewing.user, RefuseReason::ProviderFailed);
        true
    }

    fn refuse_again(&mut self, cx: &mut Context<'_>, request: RequestId, user: UserId, reason: RefuseReason) {
        self.users[user.0 as usize].counts.refused[reason as usize] += 1;
        refuse(cx, request, reason);
    }

    /// No provider gave a title to a player.
    pub(super) fn remember_failure(&mut self, now: Time, viewing: &Viewing) {
        self.failures.remember(now, player(viewing), now + REFUSAL_MEMORY, ());
    }

    /// How much had become free by now of what such a refusal is for want of.
    fn epoch(&self, user: UserId, reason: RefuseReason) -> u64 {
        match reason {
            RefuseReason::ProviderLimit => self.closes,
            _ => self.users[user.0 as usize].freed,
        }
    }

    /// A new playback, which waits for a permit; none if its user has as many as there may be.
    pub(super) fn begin(
        &mut self,
        cx: &mut Context<'_>,
        request: RequestId,
        viewing: Viewing,
        title: Option<Title>,
    ) -> Option<PlaybackId> {
        if self.users[viewing.user.0 as usize].playbacks.len() >= self.settings.sessions_per_user {
            self.deny(cx, request, &viewing, RefuseReason::UserLimit);
            return None;
        }
        self.arrivals += 1;
        let id = self.playbacks.next_id();
        let until = self.permits.wait(cx.now, id);
        let expires = self.until(viewing.user).map_or(Time::NEVER, Date::time);
        self.playbacks.insert(Playback {
            viewing,
            state: State::Queued(until),
            version: 0,
            asked: cx.now,
            since: cx.now,
            viewer: None,
            holds: Activation::default(),
            request: None,
            title,
            arrival: self.arrivals,
            tried: 0,
            protected: false,
            last: ViewerEnd::Left,
            grace: Time::NEVER,
            expires,
            armed: Time::NEVER,
        });
        self.arm(id);
        self.users[viewing.user.0 as usize].playbacks.insert(id);
        self.requests.insert(request, id);
        Some(id)
    }

    /// Lets those in who waited for a permit, as far as there are any; whether somebody was. When all that happened was heard:
    /// whose own places are free is known only then.
    pub(crate) fn permit(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while let Some((id, permit)) = self.permits.grant() {
            any = true;
            let Some(playback) = self.playbacks.get_mut(id) else {
                self.permits.give_back(permit);
                continue;
            };
            playback.holds.permit = Some(permit);
            if playback.title.is_some() {
                self.transition(id, State::Prepared);
                self.advance(cx, id);
            } else {
                self.admit(cx, id);
            }
        }
        any
    }

    /// Looks for a place for a playback that has none, and goes on with it if there is one.
    pub(super) fn admit(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(user) = self.playbacks.get(id).map(|playback| playback.viewing.user) else { return };
        let (limits, room) = (&self.limits[user.0 as usize], &mut self.users[user.0 as usize]);
        let place = match room.take(limits) {
            Some(place) => Ok(Some(place)),
            None => self.strategies(cx, id),
        };
        match place {
            Ok(Some(place)) => self.let_in(cx, id, place),
            Ok(None) => self.serve(cx, id),
            Err(reason) => self.turn_away(cx, id, reason),
        }
    }

    /// There is a place for it.
    fn let_in(&mut self, cx: &mut Context<'_>, id: PlaybackId, place: Place) {
        if let Some(playback) = self.playbacks.get_mut(id)
            && place == Place::Grace
        {
            playback.grace = cx.now + self.settings.grace;
        }
        self.set_place(cx, id, place);
        self.transition(id, State::Prepared);
        let Some(playback) = self.playbacks.get(id) else { return };
        match playback.request {
            Some(request) => self.admitted.push_back((request, playback.viewing.item)),
            // Whoever was ended for it has to be heard of first by those whose accounts that frees.
            None => self.ready.push_back(id),
        }
    }

    /// There is none.
    fn turn_away(&mut self, cx: &mut Context<'_>, id: PlaybackId, reason: RefuseReason) {
        if self.playbacks.get(id).is_some_and(|playback| playback.title.is_some()) {
            self.transition(id, State::Prepared);
            self.refuse_placeless(cx, id, reason);
            self.serve(cx, id);
        } else {
            self.throw_out(cx, id, reason, ViewerEnd::Limit);
        }
    }

    /// A grace is over: it becomes what there is a place for, or the strategies behind it decide.
    pub(super) fn readmit(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        self.settle_grace(cx, id);
        let Some(playback) = self.playbacks.get(id).filter(|playback| playback.place() == Some(Place::Grace)) else {
            return;
        };
        let user = playback.viewing.user;
        // Its own place is none: what the strategies find has to be one.
        match self.strategies(cx, id) {
            Ok(Some(place)) => {
                self.users[user.0 as usize].release(Place::Grace);
                self.set_place(cx, id, place);
            }
            Ok(None) => self.throw_out(cx, id, RefuseReason::UserLimit, ViewerEnd::Limit),
            Err(reason) => self.throw_out(cx, id, reason, ViewerEnd::Limit),
        }
    }

    /// It uses this place from now on, and is as strong as that makes it.
    pub(super) fn set_place(&mut self, cx: &mut Context<'_>, id: PlaybackId, place: Place) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let old = playback.holds.place.replace(place);
        let (arrival, user, item) = (playback.arrival, playback.viewing.user, playback.viewing.item);
        let titled = playback.title.is_some();
        self.users[user.0 as usize].held.remove(&(arrival, id));
        self.arm(id);
        let strength = self.strength(user, Some(place));
        if titled {
            cx.accounts.set_strength(cx.now, cx.out, Holder::Playback(id), Some(strength));
        } else if let Some(feed) = item.feed() {
            let own = self.strengths.entry(feed).or_default();
            own.insert((strength, id));
            if let Some(old) = old.map(|old| strength_of(&self.limits[user.0 as usize], old))
                && old != strength
            {
                own.remove(&(old, id));
            }
            self.strengthened.push_back(feed);
        }
    }

    /// How strong a playback with this place is; without one, as strong as it will be with the one that it would get now.
    pub(super) fn strength(&self, user: UserId, place: Option<Place>) -> Strength {
        let limits = &self.limits[user.0 as usize];
        strength_of(limits, place.unwrap_or_else(|| self.users[user.0 as usize].next(limits).unwrap_or(Place::Soft)))
    }

    /// Ends a playback from here: its viewer, or its requests with this answer.
    pub(super) fn throw_out(&mut self, cx: &mut Context<'_>, id: PlaybackId, answer: RefuseReason, reason: ViewerEnd) {
        if let Some(user) = self.remove(cx, id, reason, Some(answer)) {
            self.freed(cx, user);
        }
    }

    /// A playback is over by itself: everything it had goes to whoever waits for that.
    pub(super) fn end(&mut self, cx: &mut Context<'_>, id: PlaybackId, reason: ViewerEnd) {
        if let Some(user) = self.remove(cx, id, reason, None) {
            self.freed(cx, user);
        }
    }

    /// Takes every trace of a playback out; whose it was. Whoever still waits for an answer gets `answer`, if there is one.
    pub(super) fn remove(
        &mut self,
        cx: &mut Context<'_>,
        id: PlaybackId,
        reason: ViewerEnd,
        answer: Option<RefuseReason>,
    ) -> Option<UserId> {
        let mut playback = self.playbacks.remove(id)?;
        self.timers.set(id, &mut playback.armed, Time::NEVER);
        let (viewing, player) = (playback.viewing, playback.player());
        let user = viewing.user;
        if let Some(request) = playback.request {
            self.requests.remove(&request);
            self.admitted.retain(|(admitted, _)| *admitted != request);
            if let Some(answer) = answer {
                if playback.state == State::Prepared {
                    self.abandoned.push_back(request);
                }
                self.deny(cx, request, &viewing, answer);
            }
        }
        if let Some(viewer) = playback.viewer {
            self.viewers.remove(&viewer);
            if answer.is_some() {
                cx.feeds.end(cx.now, viewer, reason, cx.out);
            }
        }
        let keyed = playback.title.is_some() && !viewing.item.traits(&self.settings).own_starts;
        let titled = playback.title.is_some();
        if let Some(title) = playback.title {
            self.forget(cx, id, &viewing, title, (reason, answer));
        }
        if playback.state.is_seen() {
            self.users[user.0 as usize].counts.ended[reason as usize] += 1;
            let lasted = cx.now.since(playback.since).as_micros() as u64;
            cx.out.push_back(Output::Note(Note::PlaybackEnded { user, playback: id, reason, lasted }));
        }
        self.permits.leave(id);
        let room = &mut self.users[user.0 as usize];
        room.playbacks.remove(&id);
        room.held.remove(&(playback.arrival, id));
        if let Some((place, feed)) = playback.holds.place.zip(viewing.item.feed()).filter(|_| !titled) {
            self.weaken(feed, user, place, id);
        }
        let parting = match reason {
            ViewerEnd::Done | ViewerEnd::Left => Parting::Friends,
            _ => Parting::Ended,
        };
        let holder = Holder::Playback(id);
        self.release(cx, Released { holder, player, parting, leaving: keyed }, playback.holds);
        Some(user)
    }

    /// Somebody does not watch a feed any more.
    fn weaken(&mut self, feed: FeedId, user: UserId, place: Place, id: PlaybackId) {
        let strength = self.strength(user, Some(place));
        if let Some(own) = self.strengths.get_mut(&feed) {
            own.remove(&(strength, id));
            if own.is_empty() {
                self.strengths.remove(&feed);
            }
            self.strengthened.push_back(feed);
        }
    }

    /// Places of a user may be free.
    pub(super) fn freed(&mut self, cx: &mut Context<'_>, user: UserId) {
        let graces: Vec<PlaybackId> = self.with_place(user, Place::Grace).collect();
        for id in graces {
            self.settle_grace(cx, id);
        }
        while let Some((_, id)) = self.users[user.0 as usize].held.first().copied() {
            let (limits, room) = (&self.limits[user.0 as usize], &mut self.users[user.0 as usize]);
            let Some(place) = room.take(limits) else { break };
            self.let_in(cx, id, place);
        }
    }

    /// Whoever was let in by grace has a place as soon as there is one. A normal one goes to the best of the soft ones, which
    /// may be ended by others, and the grace into what that leaves.
    fn settle_grace(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(user) = self.playbacks.get(id).map(|playback| playback.viewing.user) else { return };
        let (limits, room) = (&self.limits[user.0 as usize], &mut self.users[user.0 as usize]);
        let Some(mut place) = room.take(limits) else { return };
        room.release(Place::Grace);
        let best = |soft: &PlaybackId| (self.strength(user, Some(Place::Soft)), self.arrival(*soft));
        let soft = self.with_place(user, Place::Soft).min_by_key(best);
        if place == Place::Normal
            && let Some(soft) = soft
        {
            // Told first: the stronger it is, the more may have to give way to it.
            cx.out.push_back(Output::Note(Note::PlaybackPromoted { user, playback: soft }));
            self.set_place(cx, soft, Place::Normal);
            place = Place::Soft;
        }
        self.set_place(cx, id, place);
    }

    fn arrival(&self, id: PlaybackId) -> u64 {
        self.playbacks.get(id).map_or(u64::MAX, |playback| playback.arrival)
    }

    fn with_place(&self, user: UserId, place: Place) -> impl Iterator<Item = PlaybackId> {
        self.of_user(user).filter(move |(_, playback)| playback.place() == Some(place)).map(|(id, _)| id)
    }

    /// Refuses, tells people, and remembers it for the repetition.
    pub(super) fn deny(&mut self, cx: &mut Context<'_>, request: RequestId, viewing: &Viewing, reason: RefuseReason) {
        refuse(cx, request, reason);
        match reason {
            RefuseReason::UserLimit | RefuseReason::Suppressed | RefuseReason::ProviderLimit => {
                let (key, epoch): (Player, u64) = (player(viewing), self.epoch(viewing.user, reason));
                self.refusals.remember(cx.now, key, cx.now + REFUSAL_MEMORY, (reason, epoch));
            }
            _ => {}
        }
        self.count_refusal(cx, viewing, reason);
    }

    /// Counts a refusal, whoever refused, and tells people.
    pub(super) fn count_refusal(&mut self, cx: &mut Context<'_>, viewing: &Viewing, reason: RefuseReason) {
        let Viewing { user, item, client } = *viewing;
        if reason == RefuseReason::Draining {
            // All are, and the program is over.
            return;
        }
        self.users[user.0 as usize].counts.refused[reason as usize] += 1;
        // Nobody was kept from playing by this.
        if reason != RefuseReason::Superseded {
            cx.out.push_back(Output::Note(Note::PlaybackRefused { user, client, item, reason }));
        }
    }
}

/// How strong whatever uses such a place of this user is. One that is not there makes nobody stronger than a soft one.
fn strength_of(limits: &crate::config::User, place: Place) -> Strength {
    match place {
        Place::Normal => Strength { place: Place::Normal, priority: limits.priority },
        Place::Soft | Place::Grace => Strength { place: Place::Soft, priority: limits.soft_priority },
    }
}
