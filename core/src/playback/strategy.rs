//! What happens when all places of a user are used (spec: playback §3.3).

use alloc::vec::Vec;

use super::{Place, Playbacks, Player, State};
use crate::config::Strategy;
use crate::input::{Note, Output, PlaybackId, RefuseReason, ViewerEnd};
use crate::publish::Context;
use crate::time::Time;

/// Which grace ran out in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallen {
    Hold,
    Instant,
}

/// What a search for somebody to evict found.
enum Target {
    Found(PlaybackId),
    /// Only such as this player evicted a moment ago.
    Protected,
    Nobody,
}

impl Playbacks {
    /// Runs the strategies that were not tried yet: a place, nothing yet (it is held), or why not.
    pub(super) fn strategies(&mut self, cx: &mut Context<'_>, id: PlaybackId) -> Result<Option<Place>, RefuseReason> {
        let mut reason = RefuseReason::UserLimit;
        while let Some((strategy, user)) = self.next_strategy(id) {
            let evicted = match strategy {
                Strategy::EvictSameIpOldest
                | Strategy::EvictSameIpLatest
                | Strategy::EvictOldest
                | Strategy::EvictLatest => self.evict(cx, id, strategy),
                Strategy::GraceHold => {
                    if self.may_grace(cx.now, id) {
                        self.hold(cx, id);
                        return Ok(None);
                    }
                    Target::Nobody
                }
                Strategy::GraceInstant => {
                    if self.may_grace(cx.now, id)
                        && let Some(place) = self.users[user].take_grace()
                    {
                        self.graced(cx, id, strategy);
                        return Ok(Some(place));
                    }
                    Target::Nobody
                }
                Strategy::Deny => return Err(reason),
            };
            match evicted {
                Target::Found(_) => {
                    let (limits, room) = (&self.limits[user], &mut self.users[user]);
                    if let Some(place) = room.take(limits) {
                        return Ok(Some(place));
                    }
                }
                Target::Protected => reason = RefuseReason::Suppressed,
                Target::Nobody => {}
            }
        }
        Err(reason)
    }

    /// A grace ran out: the strategies behind it are what is left, and it is not given again soon.
    pub(super) fn fall(&mut self, now: Time, id: PlaybackId, fallen: Fallen) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let grace = match fallen {
            Fallen::Hold => Strategy::GraceHold,
            Fallen::Instant => Strategy::GraceInstant,
        };
        let place = self.settings.strategies.iter().position(|strategy| *strategy == grace);
        playback.tried = place.map_or(self.settings.strategies.len(), |place| place + 1);
        let user = &mut self.users[playback.viewing.user.0 as usize];
        user.held.remove(&(playback.arrival, id));
        user.cooldown = Some(now + self.settings.grace_cooldown);
    }

    fn next_strategy(&mut self, id: PlaybackId) -> Option<(Strategy, usize)> {
        let playback = self.playbacks.get_mut(id)?;
        let strategy = self.settings.strategies.get(playback.tried).copied()?;
        playback.tried += 1;
        Some((strategy, playback.viewing.user.0 as usize))
    }

    fn may_grace(&self, now: Time, id: PlaybackId) -> bool {
        // One that has a place by grace gets no second one.
        let playback = self.playbacks.get(id).filter(|playback| playback.place.is_none());
        let user = playback.and_then(|playback| self.users.get(playback.viewing.user.0 as usize));
        !self.settings.grace.is_zero() && user.is_some_and(|user| user.cooldown.is_none_or(|until| until <= now))
    }

    fn hold(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let until = cx.now + self.settings.grace;
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        playback.state = State::Held(until);
        self.users[playback.viewing.user.0 as usize].held.insert((playback.arrival, id));
        self.arm(id, until);
        self.graced(cx, id, Strategy::GraceHold);
    }

    fn graced(&self, cx: &mut Context<'_>, id: PlaybackId, rule: Strategy) {
        let user = self.playbacks.get(id).map(|playback| playback.viewing.user);
        cx.out.extend(user.map(|user| Output::Note(Note::PlaybackGraced { user, playback: id, rule })));
    }

    /// Ends one of the user's playbacks for the sake of `id`.
    fn evict(&mut self, cx: &mut Context<'_>, id: PlaybackId, rule: Strategy) -> Target {
        let target = self.target(cx.now, id, rule);
        if let Target::Found(target) = target
            && let (Some(by), Some(player)) = (self.playbacks.get(id), self.playbacks.get(target))
        {
            let (by, target_player) = (by.player(), player.player());
            let viewer = player.viewer;
            self.guards.remember(cx.now, (by, target_player), cx.now + self.settings.reentry_guard, ());
            cx.out.push_back(Output::Note(Note::PlaybackEvicted { user: by.user, playback: target, by: id, rule }));
            // Its place is for who asks, not for who waits.
            self.remove(cx, target, ViewerEnd::Evicted);
            if let Some(viewer) = viewer {
                cx.feeds.end(cx.now, viewer, ViewerEnd::Evicted, cx.out);
            }
        }
        target
    }

    fn target(&self, now: Time, id: PlaybackId, rule: Strategy) -> Target {
        let Some(by) = self.playbacks.get(id) else { return Target::Nobody };
        let (user, address) = (by.viewing.user, by.viewing.client.address);
        let same_address = matches!(rule, Strategy::EvictSameIpOldest | Strategy::EvictSameIpLatest);
        let mut candidates: Vec<(u64, PlaybackId, Player)> = self
            .of_user(user)
            .filter(|(other, playback)| *other != id && playback.state == State::Active)
            // One that runs by grace has no place that it could leave.
            .filter(|(_, playback)| matches!(playback.place, Some(Place::Normal | Place::Soft)))
            .filter(|(_, playback)| !same_address || playback.viewing.client.address == address)
            .map(|(other, playback)| (playback.arrival, other, playback.player()))
            .collect();
        candidates.sort_unstable();
        if matches!(rule, Strategy::EvictSameIpLatest | Strategy::EvictLatest) {
            candidates.reverse();
        }
        let free =
            |(_, _, player): &&(u64, PlaybackId, Player)| self.guards.recall(now, &(by.player(), *player)).is_none();
        match candidates.iter().find(free) {
            Some((_, target, _)) => Target::Found(*target),
            None if candidates.is_empty() => Target::Nobody,
            None => Target::Protected,
        }
    }
}
