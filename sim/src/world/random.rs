//! The random scenario: a configuration, a population and faults drawn from the seed; then peace, and nothing may be left.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::config::{Config, Endpoint, Live, Takeover};
use holdfast_core::input::{
    Client, EndReason, EndpointId, FeedId, Input, Loss, PlaybackId, RequestId, SessionId, SourceId, UserId, Viewing,
    Writer,
};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;
use rand::Rng;
use rand::rngs::SmallRng;

use super::chance::{Fault, Plan, pick, span};
use super::options::{Actor, Options};
use super::oracle::{Allowance, Broken};
use super::playback::{settings, users};
use super::pull::channels;
use super::truth::{Fate, Place};
use super::{Event, Owner, World, generator, titles};
use crate::{Figures, Report};

/// Runs one seed.
pub(super) fn play(seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    play_with(seed, &Options::default(), trace)
}

/// Runs one seed with what was chosen by hand.
pub(crate) fn play_with(seed: u64, options: &Options, trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    let (mut world, mut dice) = begin(seed, options, trace);
    let lived = world.live_through(&mut dice, options.storm);
    let now = world.now;
    let figures = world.figures();
    lived.and_then(|()| world.close(figures)).map_err(|broken| (now, broken))
}

/// Who and what a seed has, as far as it is chosen.
pub(crate) fn cast(seed: u64, options: &Options) -> (Vec<Fault>, Vec<Actor>) {
    let (mut world, mut dice) = begin(seed, options, None);
    world.populate(&mut dice);
    let faults = world.plan.faults().collect();
    let numbered = |count: usize| 0..count as u32;
    let publishers = numbered(world.publishers.len()).map(Actor::Publisher);
    let viewers = numbered(world.viewers.len()).map(Actor::Viewer);
    let devices = numbered(world.devices.len()).map(Actor::Device);
    let providers = numbered(world.providers.len()).map(Actor::Provider);
    let origins = (0..).zip(&world.origins);
    let origins =
        origins.flat_map(|(channel, all)| numbered(all.len()).map(move |index| Actor::Origin(channel, index)));
    let all = publishers.chain(viewers).chain(devices).chain(providers).chain(origins).chain([Actor::Operator]);
    (faults, all.filter(|actor| world.attends(*actor)).collect())
}

fn begin<'t>(seed: u64, options: &Options, trace: Option<&'t mut dyn Write>) -> (World<'t>, SmallRng) {
    let mut dice = generator(seed, 0);
    let plan = Plan::draw(&mut dice).choose(&options.faults);
    let mut config = config(&mut dice);
    let first = titles::configure(&mut dice, &mut config);
    let mut world = World::with_titles(config, first, seed, plan, trace);
    world.cast = options.cast.clone();
    if options.untold {
        world.allowance = Allowance::default();
    }
    (world, dice)
}

fn config(dice: &mut SmallRng) -> Config {
    let ms = Duration::from_millis;
    let endpoints = dice.random_range(1..=3);
    let endpoint = |index: u32, dice: &mut SmallRng| {
        let poll = ms(*pick(dice, &[20, 50, 100, 200]));
        let dead_after = ms(*pick(dice, &[500, 1000, 2000, 3000]));
        Endpoint {
            name: format!("e{index}"),
            slots: *pick(dice, &[1, 1, 1, 2, 3, 5]),
            takeover: *pick(
                dice,
                &[Takeover::DisplaceDead, Takeover::DisplaceDead, Takeover::Refuse, Takeover::NewestWins],
            ),
            dead_after,
            takeover_wait: dead_after + poll + ms(*pick(dice, &[0, 100, 1000, 3000])),
            poll,
            inactivity_timeout: ms(*pick(dice, &[2000, 5000, 10_000])),
            setup_timeout: ms(*pick(dice, &[3000, 8000, 15_000])),
            ..Endpoint::default()
        }
    };
    let endpoints = (0..endpoints).map(|index| endpoint(index, dice)).collect();
    let live = Live {
        idle: ms(*pick(dice, &[3000, 10_000, 60_000])),
        buffer: *pick(dice, &[1500, 4096, 16_384, 65_536]),
        flush_interval: ms(*pick(dice, &[0, 20, 20, 100])),
        key_frame_interval: ms(*pick(dice, &[0, 1000])),
        fresh: ms(*pick(dice, &[0, 500, 2000])),
        progress_timeout: ms(*pick(dice, &[1000, 5000, 30_000])),
        viewers: *pick(dice, &[1, 3, 10_000]),
        ..Live::default()
    };
    let (channels, users, playback) = (channels(dice), users(dice), settings(dice));
    Config { endpoints, channels, live, users, playback, providers: Vec::new() }
}

impl World<'_> {
    fn figures(&self) -> Figures {
        let truth = &self.truth;
        let displaced = |place: &Place| place.ended[EndReason::Displaced as usize];
        let mut figures = Figures::default();
        figures.add("posts", truth.posts.len() as u64);
        figures.add("granted", truth.sessions.len() as u64);
        figures.add("displaced", truth.places.iter().map(displaced).sum());
        figures.add("viewers", truth.viewers.len() as u64);
        figures
    }

    /// Whether somebody takes part.
    pub(super) fn attends(&self, actor: Actor) -> bool {
        self.cast.as_ref().is_none_or(|cast| cast.contains(&actor))
    }

    fn live_through(&mut self, dice: &mut SmallRng, most: Option<Duration>) -> Result<(), Broken> {
        self.populate(dice);
        let storm = span(dice, 20_000, 60_000);
        self.run(self.now + most.map_or(storm, |most| storm.min(most)))?;
        self.bench().all(self.edge.edge())?;
        self.heal()?;
        self.settle()?;
        self.depart(dice)?;
        let idle = self.truth.live.idle;
        self.run(
            self.now
                + self.truth.longest_wait()
                + self.longest_pull()
                + self.longest_title()
                + idle
                + Duration::from_secs(1),
        )?;
        self.bench().rest(self.edge.edge())
    }

    fn populate(&mut self, dice: &mut SmallRng) {
        self.side.usual = Duration::from_millis(*pick(dice, &[0, 1, 20]));
        self.side.pulse = Duration::from_millis(*pick(dice, &[100, 250, 500]));
        let places: Vec<usize> = self.truth.places.iter().map(|place| place.slots.len()).collect();
        for (endpoint, slots) in places.into_iter().enumerate() {
            let publishers = slots + dice.random_range(0..=3);
            for _ in 0..publishers {
                let first = span(dice, 0, 3_000);
                self.add_publisher(endpoint, first);
            }
        }
        let feeds: Vec<FeedId> = self.truth.feeds.keys().copied().collect();
        for _ in 0..dice.random_range(0..=5) {
            let (feed, first) = (*pick(dice, &feeds), span(dice, 0, 5_000));
            self.add_viewer(feed, first);
        }
        self.populate_channels(dice);
        self.populate_users(dice);
        self.populate_titles(dice);
        self.plan_stall();
        let at = self.now + span(dice, 500, 20_000);
        if self.attends(Actor::Operator) {
            self.plan_event(at, Event::Operator);
        }
    }

    /// An operator, or whoever comes by, does something.
    pub(super) fn operate(&mut self) -> Result<(), Broken> {
        if self.healed {
            return Ok(());
        }
        let again = span(&mut self.dice, 1_000, 15_000);
        self.plan_event(self.now + again, Event::Operator);
        if self.plan.strikes(Fault::Kick, &mut self.dice) && !self.truth.present.is_empty() {
            let session = *pick(&mut self.dice, &self.truth.present);
            self.deliver(Input::End { session, reason: EndReason::Kicked })?;
        }
        if self.plan.strikes(Fault::Nonsense, &mut self.dice) {
            self.talk_nonsense()?;
        }
        self.kick_playbacks()?;
        if self.plan.strikes(Fault::SetClock, &mut self.dice) {
            let by = self.dice.random_range(-30_000_000..=30_000_000);
            self.deliver(Input::ClockSet { by })?;
        }
        self.allow()?;
        let endpoint = self.dice.random_range(0..self.truth.places.len());
        match self.dice.random_range(0..6) {
            0 | 1 => self.crowd(endpoint),
            2 => {
                let passers = *pick(&mut self.dice, &[2, 10, 40]);
                for _ in 0..passers {
                    let request = self.request(Some(Owner::Passer));
                    let after = Duration::from_micros(self.dice.random_range(0..1_000));
                    self.send_after(after, Input::Offer { request, endpoint: EndpointId(endpoint as u32) });
                }
            }
            _ => {}
        }
        // Once in a run, and not in every run, or nothing else would be seen.
        if self.plan.strikes(Fault::Shutdown, &mut self.dice) && self.dice.random_bool(0.2) {
            self.deliver(Input::Drain)?;
        }
        Ok(())
    }

    fn talk_nonsense(&mut self) -> Result<(), Broken> {
        let (index, generation) = (self.dice.random_range(0..20), self.dice.random_range(1000..2000));
        let session = SessionId::from_parts(index, generation);
        let lost = self.request(None);
        self.deliver(Input::Offer { request: lost, endpoint: EndpointId(index + 3) })?;
        self.deliver(Input::Hangup { request: RequestId(u64::from(generation) << 32) })?;
        self.deliver(Input::Answered { session })?;
        self.deliver(Input::Released { session })?;
        self.deliver(Input::End { session, reason: EndReason::Bye })?;
        let request = self.request(None);
        let feed = FeedId::from_parts(index + 20, generation);
        self.deliver(Input::Join { request, feed })?;
        self.deliver(Input::KeyFrameWanted { feed })?;
        let request = self.request(None);
        let client = Client { address: IpAddr::from([10, 0, 0, 9]), agent: 0 };
        let viewing = Viewing { user: UserId(index), item: Item::LiveTs(feed), client };
        self.deliver(Input::Play { request, viewing })?;
        self.deliver(Input::Kick { playback: PlaybackId::from_parts(index, generation), block: 0 })?;
        let (from, data) = (Writer::Session(session), super::truth::media(0, 188));
        self.deliver(Input::Media { feed, from, data, random_access: Some(0) })?;
        let source = SourceId::from_parts(index, generation);
        self.deliver(Input::Opened { source })?;
        self.deliver(Input::Arrived { source })?;
        self.deliver(Input::Lost { source, loss: Loss::ALL[index as usize % Loss::ALL.len()] })?;
        self.talk_nonsense_of_titles(index, generation)
    }

    /// One of a crowd was let in: it leaves again.
    pub(super) fn pass(&mut self, session: SessionId) {
        let after = span(&mut self.dice, 0, 2_000);
        self.send_after(after, Input::End { session, reason: EndReason::Deleted });
    }

    /// Nothing goes wrong from here on, and nobody new comes.
    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.say(format_args!("the world is healed"));
        self.healed = true;
        self.plan = self.plan.healed();
        self.heal_origins();
        self.heal_providers();
        self.allow_all()?;
        if let Some(until) = self.driver.still {
            self.run(until)?;
        }
        Ok(())
    }

    /// All waiting is over, all dead are gone, whoever lives is served.
    pub(super) fn settle(&mut self) -> Result<(), Broken> {
        let (longest, allowance) = (self.truth.longest_wait(), self.allowance);
        let longest = longest.max(self.longest_pull()).max(self.longest_title());
        self.run(self.now + longest + allowance.slack + allowance.unseen + Duration::from_secs(8))?;
        self.allowance = Allowance { slack: Duration::ZERO, ..allowance };
        self.bench().all(self.edge.edge())?;
        self.all_read()?;
        self.try_channels()?;
        self.try_titles()?;
        let held: usize = self.truth.places.iter().map(|place| place.held.len()).sum();
        let broken = |id, what| Err(Broken { id, what });
        if held > 0 {
            return broken("publish-7", format!("{held} POSTs wait in a world that is at peace"));
        }
        let dead = self.truth.live_sessions().find(|(_, row)| !row.stream.is_open());
        if let Some((session, _)) = dead {
            return broken("publish-8", format!("{session} has no peer and still holds its slot"));
        }
        for endpoint in 0..self.truth.places.len() {
            let place = &self.truth.places[endpoint];
            let free = place.slots.iter().any(Option::is_none);
            if !free || self.truth.draining {
                continue;
            }
            let request = self.request(None);
            self.call(Input::Offer { request, endpoint: EndpointId(endpoint as u32) })?;
            self.run(self.now + Duration::from_secs(1))?;
            let fate = self.truth.posts[&request].fate;
            let Fate::Accepted(session) = fate else {
                return broken("publish-6", format!("{request:?} finds a free slot and is {fate:?}"));
            };
            self.call(Input::End { session, reason: EndReason::Deleted })?;
        }
        Ok(())
    }

    /// Everybody leaves, politely or not.
    fn depart(&mut self, dice: &mut SmallRng) -> Result<(), Broken> {
        // What is pulled without viewers goes on until the program ends.
        let endless = self.truth.channels.iter().any(|channel| !channel.settings.on_demand);
        if (endless || dice.random_bool(0.3)) && !self.truth.draining {
            return self.call(Input::Drain);
        }
        self.leave_channels()?;
        self.leave_titles()?;
        let live: Vec<SessionId> = self.truth.live_sessions().map(|(id, _)| id).collect();
        for session in live {
            self.send(session, None);
            if dice.random_bool(0.5) {
                self.call(Input::End { session, reason: EndReason::DtlsClosed })?;
            }
        }
        Ok(())
    }
}
