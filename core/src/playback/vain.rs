//! How often providers are asked for a player in vain (spec: playback §10: none is asked as often as players repeat themselves).
//!
//! What nothing comes of is asked for ever more often by who seeks faster than any provider answers, and by this server itself, where a
//! provider's address leads back here by a way that hides it.

use core::time::Duration;

use super::probe::Probe;
use super::{Playback, Playbacks, Player};
use crate::input::RequestId;
use crate::time::Time;

/// How many times in a row. Browsers that are dragged through a film are far from it.
const BURST: u32 = 100;
/// How long it takes until it is one less.
const INTERVAL: Duration = Duration::from_millis(50);

impl Playbacks {
    /// Whether a provider was asked for this player so often that it has to wait.
    pub(super) fn asks_in_vain(&self, now: Time, player: &Player) -> bool {
        self.vain.recall(now, player).is_some_and(|until| *until >= now + INTERVAL * BURST)
    }

    /// A provider is asked for this player.
    pub(super) fn asks(&mut self, now: Time, player: Player) {
        let until = self.vain.recall(now, &player).map_or(now, |until| *until) + INTERVAL;
        self.vain.remember(now, player, until, until);
    }

    /// What a request is for comes, or its provider says that there is no more of it.
    pub(super) fn comes(&mut self, now: Time, request: RequestId) {
        let asker = match self.running(request) {
            Some((_, running)) if running.forwarded => return,
            Some((id, running)) => {
                running.forwarded = true;
                self.playbacks.get(id).map(Playback::player)
            }
            None => self.probes.get(&request).map(Probe::player),
        };
        let Some(asker) = asker else { return };
        if let Some(until) = self.vain.recall(now, &asker).map(|until| *until - INTERVAL) {
            self.vain.remember(now, asker, until, until);
        }
    }
}
