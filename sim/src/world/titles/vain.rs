//! How often providers were asked for a player in vain, as a bucket that leaks: it is asked for no more once that is full.

use std::collections::BTreeMap;

use holdfast_core::time::Time;

use super::super::playback::truth::Player;

/// How many times fill it.
const FULL: f64 = 100.0;
/// How many a second leak from it.
const LEAKS: f64 = 20.0;

/// Everybody's, as it was at some time.
#[derive(Debug, Default)]
pub struct Vain {
    players: BTreeMap<Player, (f64, Time)>,
}

impl Vain {
    fn level(&self, now: Time, player: &Player) -> f64 {
        let Some((level, at)) = self.players.get(player) else { return 0.0 };
        (level - now.since(*at).as_secs_f64() * LEAKS).max(0.0)
    }

    /// A provider was asked, or not in vain, so many times.
    pub fn add(&mut self, now: Time, player: Player, times: f64) {
        let level = (self.level(now, &player) + times).max(0.0);
        self.players.insert(player, (level, now));
    }

    /// Whether no provider may be asked.
    pub fn is_full(&self, now: Time, player: &Player) -> bool {
        // Sums of fractions are a little off.
        self.level(now, player) > FULL - 1e-6
    }

    /// Forgets what has leaked.
    pub fn prune(&mut self, now: Time) {
        self.players.retain(|_, (level, at)| now.since(*at).as_secs_f64() * LEAKS < *level);
    }

    /// Takes over what is known in the middle of a run: until when each of them leaks.
    pub fn adopt(&mut self, now: Time, player: Player, until: Time) {
        self.players.insert(player, (until.since(now).as_secs_f64() * LEAKS, now));
    }
}
