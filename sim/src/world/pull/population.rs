//! Channels of the random world: drawn from the seed, lived with, healed, and left.

use std::time::Duration;

use holdfast_core::config::Channel;
use holdfast_core::input::{FeedId, Input, RequestId, ViewerId};
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::chance::{Fault, pick, span};
use super::super::oracle::Broken;
use super::super::{Event, World};
use super::origin::Mood;

/// Channels of a run: in every third none.
pub fn channels(dice: &mut SmallRng) -> Vec<Channel> {
    let count = *pick(dice, &[0, 0, 1, 1, 1, 2]);
    (0..count).map(|index| channel(index, dice)).collect()
}

fn channel(index: u32, dice: &mut SmallRng) -> Channel {
    let ms = Duration::from_millis;
    let no_input_timeout = ms(*pick(dice, &[500, 1000, 3000]));
    let on_demand = dice.random_bool(0.85);
    Channel {
        name: format!("c{index}"),
        sources: *pick(dice, &[1, 2, 2, 3]),
        on_demand,
        start_timeout: ms(*pick(dice, &[1000, 4000, 10_000])),
        connect_timeout: ms(*pick(dice, &[300, 1000, 3000])),
        no_input_timeout,
        retry_backoff_max: no_input_timeout * *pick(dice, &[1, 2, 5]),
        retries: if on_demand { *pick(dice, &[None, None, Some(0), Some(2)]) } else { None },
        stable_after: ms(*pick(dice, &[500, 2000, 5000])),
        failback: dice.random_bool(0.8),
        failback_interval: ms(*pick(dice, &[500, 3000])),
        idle_timeout: ms(*pick(dice, &[0, 1000, 5000])),
        end_grace: ms(*pick(dice, &[0, 1000, 5000, 5000])),
    }
}

impl World<'_> {
    pub(in super::super) fn populate_channels(&mut self, dice: &mut SmallRng) {
        self.asks_first = dice.random_bool(0.5) && !self.plan.has(Fault::ClockBack);
        // Packets by the thousand are for few runs.
        let every = *pick(dice, &[30, 100, 250]);
        for channel in 0..self.origins.len() {
            // In some runs one origin never fails: then nothing excuses the core.
            let steadfast = dice.random_bool(0.4).then(|| dice.random_range(0..self.origins[channel].len()));
            for index in 0..self.origins[channel].len() {
                let first = span(dice, 0, 8_000);
                let origin = &mut self.origins[channel][index];
                origin.every = Duration::from_millis(every);
                origin.steadfast = steadfast == Some(index);
                if !origin.steadfast {
                    self.truth.channels[channel].healthy[index] = Some(self.now + Duration::from_micros(1));
                }
                self.plan_event(self.now + first, Event::Origin { channel, index });
            }
            self.note_arrivals();
            let feed = self.truth.channels[channel].feed;
            for _ in 0..*pick(dice, &[0, 1, 2, 4]) {
                let first = span(dice, 0, 10_000);
                self.add_viewer(feed, first);
            }
        }
    }

    /// Every origin is well from here on.
    pub(in super::super) fn heal_origins(&mut self) {
        for channel in 0..self.origins.len() {
            for index in 0..self.origins[channel].len() {
                self.set_mood(channel, index, Mood::Good);
            }
        }
    }

    /// The longest that anything about channels may take to come to rest.
    pub(in super::super) fn longest_pull(&self) -> Duration {
        let longest = |channel: &super::truth::Channel| {
            let settings = &channel.settings;
            settings.retry_backoff_max * 6 / 5 + settings.start_timeout.max(settings.end_grace) + settings.idle_timeout
        };
        self.truth.channels.iter().map(longest).max().unwrap_or_default()
    }

    /// Somebody asks for a channel.
    pub(in super::super) fn ask_channel(&mut self, feed: FeedId) -> Result<RequestId, Broken> {
        let request = self.request(None);
        self.call(Input::Join { request, feed })?;
        Ok(request)
    }

    /// Who watches by this request, if it was let in.
    pub(in super::super) fn let_in(&self, request: RequestId) -> Option<ViewerId> {
        self.truth.answers.get(&request).and_then(|(answer, _)| answer.ok())
    }

    /// In a world at peace each channel is had by whoever asks for it.
    pub(in super::super) fn try_channels(&mut self) -> Result<(), Broken> {
        for channel in 0..self.truth.channels.len() {
            let row = &self.truth.channels[channel];
            let (feed, start) = (row.feed, row.settings.start_timeout);
            let full = self.truth.feeds[&feed].viewers.len() >= self.truth.live.viewers;
            if self.truth.draining || full {
                continue;
            }
            // Whoever is not held for as long as a key frame takes asks again.
            let (mut viewer, until) = (None, self.now + self.truth.channels[channel].arrival[0]);
            while viewer.is_none() && self.now <= until {
                let request = self.ask_channel(feed)?;
                self.run(self.now + start)?;
                viewer = self.let_in(request);
            }
            let Some(viewer) = viewer else {
                let what = format!("channel {channel} is not had, and all its origins are well");
                return Err(Broken { id: "pull-5", what });
            };
            self.run(self.now + Duration::from_millis(200))?;
            self.call(Input::Leave { viewer })?;
        }
        Ok(())
    }

    /// Whoever watches a channel or waits for one goes.
    pub(in super::super) fn leave_channels(&mut self) -> Result<(), Broken> {
        let feeds: Vec<FeedId> = self.truth.channels.iter().map(|channel| channel.feed).collect();
        for feed in feeds {
            self.all_leave(feed)?;
        }
        Ok(())
    }
}
