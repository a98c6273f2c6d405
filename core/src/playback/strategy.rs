//! What happens when all places of a user are used (spec: playback §3.3).

use alloc::vec::Vec;

use super::{Place, Playbacks, Player, State};
use crate::config::Strategy;
use crate::input::{FeedId, Note, Output, PlaybackId, RefuseReason, UserId, ViewerEnd};
use crate::publish::Context;
use crate::time::Time;

/// Which grace ran out in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallen {
    Hold,
    Instant,
}

/// What a search for somebody to evict found.
pub(super) enum Target {
    Found(PlaybackId),
    /// Only such as this player evicted a moment ago.
    Protected,
    Nobody,
}

impl Playbacks {
    /// Runs the strategies that were not tried yet: a place, nothing yet (it is held), or why not.
    pub(super) fn strategies(&mut self, cx: &mut Context<'_>, id: PlaybackId) -> Result<Option<Place>, RefuseReason> {
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
                Strategy::Deny => break,
            };
            match evicted {
                Target::Found(_) => {
                    let (limits, room) = (&self.limits[user], &mut self.users[user]);
                    if let Some(place) = room.take(limits) {
                        return Ok(Some(place));
                    }
                }
                Target::Protected => {
                    if let Some(playback) = self.playbacks.get_mut(id) {
                        playback.protected = true;
                    }
                }
                Target::Nobody => {}
            }
        }
        // Also behind a grace: whoever it could have evicted is why there is no place.
        let protected = self.playbacks.get(id).is_some_and(|playback| playback.protected);
        Err(if protected { RefuseReason::Suppressed } else { RefuseReason::UserLimit })
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

    /// An account was waited for in vain: no grace is given again soon, whatever the user watches.
    pub(super) fn cool_down(&mut self, now: Time, user: UserId) {
        self.users[user.0 as usize].cooldown = Some(now + self.settings.grace_cooldown);
        let placed = self.of_user(user).filter(|(_, playback)| playback.place().is_some() && playback.title.is_none());
        let feeds: Vec<FeedId> = placed.filter_map(|(_, playback)| playback.viewing.item.feed()).collect();
        self.strengthened.extend(feeds);
    }

    pub(super) fn next_strategy(&mut self, id: PlaybackId) -> Option<(Strategy, usize)> {
        let playback = self.playbacks.get_mut(id)?;
        let strategy = self.settings.strategies.get(playback.tried).copied()?;
        playback.tried += 1;
        Some((strategy, playback.viewing.user.0 as usize))
    }

    pub(super) fn may_grace(&self, now: Time, id: PlaybackId) -> bool {
        // One that has a place by grace gets no second one.
        let playback = self.playbacks.get(id).filter(|playback| playback.place().is_none());
        playback.is_some_and(|playback| self.is_gracious(now, playback.viewing.user))
    }

    /// Whether there are graces, and the user's last one in vain is long enough ago.
    pub(super) fn is_gracious(&self, now: Time, user: UserId) -> bool {
        let user = self.users.get(user.0 as usize);
        !self.settings.grace.is_zero() && user.is_some_and(|user| user.cooldown.is_none_or(|until| until <= now))
    }

    fn hold(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let until = cx.now + self.settings.grace;
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        self.users[playback.viewing.user.0 as usize].held.insert((playback.arrival, id));
        self.transition(id, State::Held(until));
        self.graced(cx, id, Strategy::GraceHold);
    }

    fn graced(&self, cx: &mut Context<'_>, id: PlaybackId, rule: Strategy) {
        let user = self.playbacks.get(id).map(|playback| playback.viewing.user);
        cx.out.extend(user.map(|user| Output::Note(Note::PlaybackGraced { user, playback: id, rule })));
    }

    /// Ends one of the user's playbacks for the sake of `id`.
    pub(super) fn evict(&mut self, cx: &mut Context<'_>, id: PlaybackId, rule: Strategy) -> Target {
        let target = self.target(cx.now, id, rule);
        if let Target::Found(target) = target
            && let (Some(by), Some(player)) = (self.playbacks.get(id), self.playbacks.get(target))
        {
            let (by, target_player) = (by.player(), player.player());
            self.guards.remember(cx.now, (by, target_player), cx.now + self.settings.reentry_guard, ());
            cx.out.push_back(Output::Note(Note::PlaybackEvicted { user: by.user, playback: target, by: id, rule }));
            // Its place is for who asks, not for who waits.
            self.remove(cx, target, ViewerEnd::Evicted, Some(RefuseReason::UserLimit));
        }
        target
    }

    pub(super) fn target(&self, now: Time, id: PlaybackId, rule: Strategy) -> Target {
        let Some(by) = self.playbacks.get(id) else { return Target::Nobody };
        let (user, address) = (by.viewing.user, by.viewing.client.address);
        let same_address = matches!(rule, Strategy::EvictSameIpOldest | Strategy::EvictSameIpLatest);
        let mut candidates: Vec<(u64, PlaybackId, Player)> = self
            .of_user(user)
            .filter(|(other, _)| *other != id)
            // Whoever has a place is counted, also while it is still opening or kept for its player. One that runs by grace has
            // none that it could leave.
            .filter(|(_, playback)| matches!(playback.place(), Some(Place::Normal | Place::Soft)))
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
