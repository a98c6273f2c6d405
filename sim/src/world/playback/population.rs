//! Users and their players in the random world: drawn from the seed.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::config::{self, Strategy};
use holdfast_core::input::{Client, FeedId, Input, PlaybackId, RequestId, Token, UserId, ViewerId, Viewing};
use holdfast_core::playback::Item;
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::chance::{Fault, expiry, pick, span};
use super::super::oracle::Broken;
use super::super::viewer::Step;
use super::super::{Owner, World};

/// What tells a viewer that plays for a user from one that needs none.
#[derive(Clone, Debug)]
pub struct Player {
    pub user: UserId,
    pub client: Client,
    pub hls: bool,
    pub token: Option<Token>,
    /// How often it asks at once again when it is refused.
    pub retries: u32,
}

impl Player {
    pub fn viewing(&self, feed: FeedId) -> Viewing {
        let item = if self.hls { Item::LiveHls(feed) } else { Item::LiveTs(feed) };
        Viewing { user: self.user, item, client: self.client }
    }
}

/// Users of a run: in every third none.
pub fn users(dice: &mut SmallRng) -> Vec<config::User> {
    let count = *pick(dice, &[0, 0, 1, 1, 2, 3]);
    let user = |index: u32, dice: &mut SmallRng| config::User {
        name: format!("u{index}"),
        max_connections: *pick(dice, &[0, 1, 1, 1, 2, 3]),
        soft_connections: *pick(dice, &[0, 0, 1, 1, 2]),
        enabled: dice.random_bool(0.95),
        until: expiry(dice, 0.1),
        ..config::User::default()
    };
    (0..count).map(|index| user(index, dice)).collect()
}

/// What happens when they want more than they may.
pub fn settings(dice: &mut SmallRng) -> config::Playback {
    use Strategy::{Deny, EvictLatest, EvictOldest, EvictSameIpLatest, EvictSameIpOldest, GraceHold, GraceInstant};
    let ms = Duration::from_millis;
    let lists: [&[Strategy]; 12] = [
        &[],
        &[GraceHold],
        &[GraceHold],
        &[GraceInstant],
        &[EvictOldest],
        &[EvictLatest, Deny],
        &[EvictSameIpOldest, GraceHold, EvictOldest],
        &[EvictSameIpLatest, GraceInstant, EvictLatest],
        &[EvictSameIpLatest, EvictLatest, GraceInstant],
        &[GraceHold, EvictSameIpOldest],
        &[GraceInstant, EvictSameIpLatest, Deny],
        &[EvictSameIpOldest, EvictOldest],
    ];
    config::Playback {
        strategies: pick(dice, &lists).to_vec(),
        grace: ms(*pick(dice, &[0, 500, 2000, 2000])),
        grace_cooldown: ms(*pick(dice, &[0, 1000, 4000])),
        reentry_guard: ms(*pick(dice, &[0, 1000, 3000])),
        cleanup_capacity: *pick(dice, &[1, 2, 4, 4096, 4096]),
        permit_wait: ms(*pick(dice, &[500, 5000])),
        sessions_per_user: *pick(dice, &[2, 4, 50, 50]),
        ..config::Playback::default()
    }
}

impl World<'_> {
    pub(in super::super) fn populate_users(&mut self, dice: &mut SmallRng) {
        let count = self.truth.users.users.iter().filter(|user| !user.of_titles).count() as u32;
        let feeds: Vec<FeedId> = self.truth.feeds.keys().copied().collect();
        for user in 0..count {
            for _ in 0..dice.random_range(1..=7) {
                let address = IpAddr::from([10, 0, 0, dice.random_range(1..=2)]);
                let client = Client { address, agent: dice.random_range(0..2) };
                let player = Player { user: UserId(user), client, hls: dice.random_bool(0.3), token: None, retries: 0 };
                let (feed, first) = (*pick(dice, &feeds), span(dice, 0, 8_000));
                let index = self.add_viewer(feed, first);
                self.viewers[index].player = Some(Box::new(player));
            }
        }
    }

    /// An operator ends playbacks, some that are over.
    pub(in super::super) fn kick_playbacks(&mut self) -> Result<(), Broken> {
        let now: Vec<PlaybackId> = self.edge.edge().playback().playbacks().map(|(id, _)| id).collect();
        if !now.is_empty() && self.plan.strikes(Fault::KickPlayback, &mut self.dice) {
            let playback = *pick(&mut self.dice, &now);
            let block = *pick(&mut self.dice, &[0, 1_000_000, 10_000_000]);
            self.deliver(Input::Kick { playback, block })?;
            if self.plan.strikes(Fault::LateKick, &mut self.dice) {
                self.send_after(Duration::from_millis(200), Input::Kick { playback, block });
            }
        }
        Ok(())
    }

    /// A player that was let in goes on asking.
    pub(in super::super) fn start_polling(&mut self, index: usize, viewer: ViewerId) -> Result<(), Broken> {
        let request = self.request(None);
        let token = self.viewers[index].player.as_ref().and_then(|player| player.token);
        self.viewer_step(index, Duration::from_millis(200), Step::Poll);
        self.deliver(Input::Poll { request, viewer, token })
    }

    pub(in super::super) fn polls(&mut self, viewer: ViewerId, token: Token) {
        let own = self.seats.of(viewer).map(|index| &mut self.viewers[index]).filter(|row| row.is(viewer));
        let own = own.and_then(|row| row.player.as_mut());
        if let Some(player) = own {
            player.token = Some(token);
        }
    }

    pub(in super::super) fn poll_again(&mut self, index: usize, viewer: ViewerId) -> Result<(), Broken> {
        let dice = &mut self.viewers[index].dice;
        let (playlist, next) = (dice.random_bool(0.5), span(dice, 300, 3_000));
        // One that pauses comes back as itself, or as one that left.
        let pauses = !self.healed && self.plan.strikes(Fault::PollerSilent, dice);
        let next = if pauses { next + span(dice, 2_000, 20_000) } else { next };
        if pauses {
            self.witness.faults.add(Fault::PollerSilent);
        }
        self.viewer_step(index, next, Step::Poll);
        if playlist {
            let request = self.request(None);
            return self.deliver(Input::Playlist { request, viewer });
        }
        self.deliver(Input::Polled { viewer, bytes: 188 })
    }

    /// A player opens the next before it closes this.
    pub(in super::super) fn overlap(&mut self, index: usize) {
        let user = self.viewers[index].player.as_ref().map(|player| player.user);
        let idle = |row: &super::super::viewer::Viewer| {
            row.is_idle() && row.player.as_ref().map(|player| player.user) == user && user.is_some()
        };
        let Some(other) = self.viewers.iter().position(idle) else { return };
        self.witness.faults.add(Fault::OpenBeforeClose);
        self.viewer_step(other, Duration::ZERO, Step::Join);
        let close = span(&mut self.viewers[index].dice, 0, 400);
        self.viewer_step(index, close, Step::Leave);
    }

    /// How soon who was refused asks again, if it is one that asks at once.
    pub(in super::super) fn asks_at_once(&mut self, index: usize) -> Option<Duration> {
        let (viewer, plan) = (&mut self.viewers[index], &self.plan);
        let player = viewer.player.as_mut()?;
        if player.retries == 0 && plan.strikes(Fault::RetryAtOnce, &mut viewer.dice) {
            player.retries = 4;
        }
        player.retries = player.retries.saturating_sub(1);
        (player.retries > 0).then(|| {
            self.witness.faults.add(Fault::RetryAtOnce);
            span(&mut viewer.dice, 1, 10)
        })
    }

    /// A request of a player of a user.
    pub(in super::super) fn play(&mut self, index: usize, request: RequestId) -> Option<Input> {
        let viewer = &self.viewers[index];
        let viewing = viewer.player.as_ref()?.viewing(viewer.feed());
        Some(Input::Play { request, viewing })
    }

    /// Asks for a playback that no actor stands behind.
    pub(in super::super) fn ask_to_play(&mut self, viewing: Viewing) -> Result<RequestId, Broken> {
        let request = self.request(None::<Owner>);
        self.call(Input::Play { request, viewing })?;
        Ok(request)
    }
}
