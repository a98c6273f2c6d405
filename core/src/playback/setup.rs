//! Whom a playlist replaces that costs no place, where all that it needs is in use (spec: playback §3, §3.3).
//!
//! What its playback will need next is a place, and its user's own admission comes before any provider's. So where no account is
//! at hand and all places of the user are used, the strategies say who makes room, as they will for the first segment; an account
//! that one has whom they end counts as free. It is done now and not then, since there will be no segment without the playlist. The
//! place is not taken: that is for the segment.

use super::strategy::Target;
use super::{Playbacks, State};
use crate::account::{Holder, Wish};
use crate::config::Strategy;
use crate::input::{PlaybackId, RefuseReason, UserId};
use crate::publish::Context;

/// What its user's own admission says to a playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Somebody has made room for it.
    Evicted,
    /// There will be a place: it may look for an account as everybody does.
    Allowed,
    /// It may wait for somebody to leave, as long as a grace lasts.
    Graced,
    Refused(RefuseReason),
}

impl Playbacks {
    /// Whether a playback has no place, needs none yet, and will find none.
    pub(super) fn is_crowded(&self, id: PlaybackId) -> bool {
        let Some(playback) = self.playbacks.get(id) else { return false };
        let user = playback.viewing.user.0 as usize;
        let sets_up = playback.title.as_ref().is_some_and(|title| !title.needs_place());
        // What its player is only sent to elsewhere never takes a place.
        let plays = playback.viewing.item.traits(&self.settings).confirmable;
        let undecided = playback.place().is_none() && !matches!(playback.state, State::Held(_));
        sets_up && plays && undecided && self.users[user].next(&self.limits[user]).is_none()
    }

    /// Runs the strategies that were not tried yet for a playlist that finds no account at hand. Nobody is ended by whose end it
    /// would have none either.
    pub(super) fn make_room(&mut self, cx: &mut Context<'_>, id: PlaybackId, wish: &Wish<'_>) -> Admission {
        while let Some((strategy, user)) = self.next_strategy(id) {
            match strategy {
                Strategy::EvictSameIpOldest
                | Strategy::EvictSameIpLatest
                | Strategy::EvictOldest
                | Strategy::EvictLatest => match self.target(cx.now, id, strategy) {
                    Target::Found(target) if self.would_help(cx, target, wish) => {
                        self.evict(cx, id, strategy);
                        self.freed(cx, UserId(user as u32));
                        return Admission::Evicted;
                    }
                    Target::Found(_) => {
                        // It decides the same again.
                        if let Some(playback) = self.playbacks.get_mut(id) {
                            playback.tried -= 1;
                        }
                        return Admission::Allowed;
                    }
                    Target::Protected => {
                        if let Some(playback) = self.playbacks.get_mut(id) {
                            playback.protected = true;
                        }
                    }
                    Target::Nobody => {}
                },
                Strategy::GraceHold | Strategy::GraceInstant => {
                    if self.may_grace(cx.now, id) {
                        return Admission::Graced;
                    }
                }
                Strategy::Deny => break,
            }
        }
        let protected = self.playbacks.get(id).is_some_and(|playback| playback.protected);
        Admission::Refused(if protected { RefuseReason::Suppressed } else { RefuseReason::UserLimit })
    }

    /// Whether the end of a playback leaves an account for a wish: its own, or that of a feed that nobody else watches.
    fn would_help(&self, cx: &Context<'_>, target: PlaybackId, wish: &Wish<'_>) -> bool {
        let feed = self.playbacks.get(target).and_then(|playback| playback.viewing.item.feed());
        match feed {
            None => cx.accounts.would_help(Holder::Playback(target), wish),
            Some(feed) => {
                let alone =
                    cx.feeds.viewers_of(feed) <= 1 && self.strengths.get(&feed).is_none_or(|own| own.len() <= 1);
                alone && cx.accounts.sources_of(feed).any(|source| cx.accounts.would_help(source, wish))
            }
        }
    }
}
