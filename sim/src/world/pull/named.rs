//! The cases people reported of pulling, on the bare core: each a script, what it must show, and what it measured.

use std::io::Write;
use std::time::Duration;

use holdfast_core::config::{self, Config, Live};
use holdfast_core::input::{ChannelId, FeedId, Input, Loss, RefuseReason, RequestId, ViewerId};
use holdfast_core::pull::ChannelState;
use holdfast_core::time::Time;
use rand::Rng;

use super::super::World;
use super::super::chance::{Fault, Mark, Plan};
use super::super::oracle::{Broken, shows};
use super::origin::Mood;
use crate::{Figures, Report, Scenario};

macro_rules! script {
    ($id:literal, $sources:expr, $script:ident, $shows:literal) => {
        Scenario { name: $id, shows: $shows, play: |seed, trace| play($sources, |_| (), $script, seed, trace) }
    };
    ($id:literal, $sources:expr, $change:expr, $script:ident, $shows:literal) => {
        Scenario { name: $id, shows: $shows, play: |seed, trace| play($sources, $change, $script, seed, trace) }
    };
}

/// Every scenario of one edge and its channels.
pub(crate) const SCENARIOS: &[Scenario] = &[
    script!("p01-silent", 1, p1, "an origin falls silent for 20 s: at most 3 opens, its silence told once and true"),
    script!("p03-back", 1, p3, "media comes back after 20 s on the kept connection: passed on in 100 ms, no new open"),
    script!("p04-dead-among-many", 50, one_each, p4, "50 channels reset, 10 origins then never answer: 40 flow in 2 s"),
    script!("p05-reset", 2, p5, "an origin is reset in the middle, the other is good: the viewer plays on"),
    script!("p08-next", 3, p8, "refused, not found, good: on the third within a handshake each"),
    script!(
        "p08-long-group",
        2,
        hasty,
        p8_long,
        "pictures come for up to 4 s before the first to start with, timeouts are shorter: they are waited for"
    ),
    script!("p09-pause", 1, patient, p9, "media pauses for 4 s of 10: nothing happens"),
    script!("p10-zap", 1, p10, "the last viewer leaves, one comes after 10 ms to 2.9 s: each plays, one open"),
    script!("p12-black-hole", 2, p12, "the origin that plays becomes a black hole: the other one within the bound"),
    script!("p13-refused", 1, once, p13, "a refusal after 10 ms: the viewer has its answer in 1 s"),
    script!("p14-reset-at-play", 1, p14, "an origin resets at play each time: ever longer pauses"),
    script!("p15-crowd", 1, p15, "20 viewers in one millisecond: one open"),
    script!("p16-flapping", 2, p16, "the primary plays 2 s and closes, each time: settles on the other"),
    script!("p16-flapping-long", 2, p16_long, "the primary plays just long enough to be returned to: never a pause"),
    script!("p17-silent-primary", 2, p17, "the primary is silent, the backup good, 60 s: no flap"),
    script!(
        "p18-headers-only",
        1,
        p18,
        "an origin agrees, sends nothing and closes after 5 s: answered by start_timeout"
    ),
    script!("p19-drip", 2, p19, "a handshake that drips ends at connect_timeout"),
    script!("p21-loop", 1, p21, "the origin is this server itself: refused at once, and no more often than anything"),
    script!("p22-gone", 1, p22, "viewers leave during the handshake, two in one millisecond: nothing is left"),
    script!("p-dead-100", 3, p_dead, "100 viewers of a dead channel: one round"),
    script!(
        "p-failback",
        2,
        p_failback,
        "the primary is back: returned to when it has shown that it works, without a gap"
    ),
    script!("p-ended", 1, p_ended, "an origin ends in order: viewers are ended after end_grace, not before"),
    script!("p-idle", 1, p_idle, "nobody watches for idle_timeout: no connection, no deadline"),
];

type Script = fn(&mut World<'_>, &mut Figures) -> Result<(), Broken>;

fn one_each(config: &mut Config) {
    let channel = config.channels[0].clone();
    let sources = std::mem::replace(&mut config.channels[0].sources, 1);
    let many = (1..sources).map(|index| config::Channel { name: format!("c{index}"), sources: 1, ..channel.clone() });
    config.channels.extend(many);
    config.channels[0].sources = 1;
}

fn patient(config: &mut Config) {
    config.channels[0].no_input_timeout = Duration::from_secs(10);
}

fn hasty(config: &mut Config) {
    let ms = Duration::from_millis;
    (config.channels[0].connect_timeout, config.channels[0].no_input_timeout) = (ms(300), ms(500));
}

fn once(config: &mut Config) {
    config.channels[0].retries = Some(0);
}

fn play(
    sources: u32,
    change: fn(&mut Config),
    script: Script,
    seed: u64,
    trace: Option<&mut dyn Write>,
) -> Result<Report, (Time, Broken)> {
    let channel = config::Channel { sources, ..config::Channel::default() };
    // Viewers of a script are there and read nothing.
    let live = Live { progress_timeout: Duration::from_secs(3600), ..Live::default() };
    let mut config = Config { channels: vec![channel], live, ..Config::default() };
    change(&mut config);
    let mut world = World::new(config, seed, Plan::calm(), trace);
    let mut figures = Figures::default();
    let played = script(&mut world, &mut figures);
    let now = world.now;
    played.and_then(|()| world.close(figures)).map_err(|broken| (now, broken))
}

impl World<'_> {
    pub fn feed(&self, channel: usize) -> FeedId {
        self.truth.channels[channel].feed
    }

    /// Somebody watches channel 0, and is let in within so many ms.
    pub fn tune_in(&mut self, within_ms: u64) -> Result<ViewerId, Broken> {
        let request = self.ask_channel(self.feed(0))?;
        self.wait(within_ms)?;
        let Some(viewer) = self.let_in(request) else {
            return Err(Broken { id: "script", what: format!("{request:?} is not let in after {within_ms} ms") });
        };
        Ok(viewer)
    }

    /// Somebody has watched channel 0 for up to so many ms.
    fn tuned_in(&mut self, most_ms: u64) -> Result<ViewerId, Broken> {
        let viewer = self.tune_in(5_000)?;
        self.while_away(most_ms)?;
        Ok(viewer)
    }

    pub fn state(&self, channel: u32) -> Result<ChannelState<'_>, Broken> {
        let unknown = || Broken { id: "script", what: format!("there is no channel {channel}") };
        self.edge.edge().pull().state(ChannelId(channel)).ok_or_else(unknown)
    }

    pub fn opens(&self, channel: usize) -> u64 {
        self.origins[channel].iter().map(|origin| origin.asked).sum()
    }

    /// Which origin's media goes into channel 0.
    fn plays(&self) -> Option<usize> {
        let writer = self.truth.channels[0].writer?;
        Some(self.truth.sources.get(&writer)?.index)
    }

    /// How long ago media last came into a channel, in ms.
    fn dry_for(&self, channel: usize) -> u64 {
        let last = self.truth.feeds[&self.feed(channel)].last_push;
        last.map_or(u64::MAX, |last| self.now.since(last).as_millis() as u64)
    }

    /// Runs for so many ms; the longest that media did not come into channel 0.
    fn longest_gap(&mut self, ms: u64) -> Result<u64, Broken> {
        let mut longest = 0;
        for _ in 0..ms / 10 {
            self.wait(10)?;
            longest = longest.max(self.dry_for(0));
        }
        Ok(longest)
    }

    fn refused_watch(&self, request: RequestId, reason: RefuseReason) -> Result<Time, Broken> {
        match self.truth.answers.get(&request) {
            Some((Err(answer), at)) if *answer == reason => Ok(*at),
            answer => {
                Err(Broken { id: "script", what: format!("{request:?} should be refused for {reason:?}: {answer:?}") })
            }
        }
    }

    fn watches(&self, viewer: ViewerId) -> Result<(), Broken> {
        let end = self.truth.viewers.get(&viewer).and_then(|viewer| viewer.ended);
        shows!(end.is_none(), "{viewer} should watch, but: {end:?}");
        Ok(())
    }
}

fn p1(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let viewer = world.tuned_in(10_000)?;
    world.set_mood(0, 0, Mood::Silent);
    let (opens, last) = (world.opens(0), world.dry_for(0));
    world.wait(20_000)?;
    let (opens, silences) = (world.opens(0) - opens, world.state(0)?.counts.silences);
    shows!(opens <= 3 && silences == 1, "{opens} opens, {silences} silences told");
    shows!(world.dry_for(0) == last + 20_000, "media came from nowhere");
    world.watches(viewer)?;
    figures.add("opens", opens);
    Ok(())
}

fn p3(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let viewer = world.tuned_in(10_000)?;
    world.set_mood(0, 0, Mood::Silent);
    world.wait(20_000)?;
    let opens = world.opens(0);
    world.set_mood(0, 0, Mood::Good);
    world.wait(100)?;
    let gap = world.dry_for(0);
    shows!(gap < 100, "no media {gap} ms after it is there again");
    world.wait(5_000)?;
    shows!(world.opens(0) == opens, "{} opens too many", world.opens(0) - opens);
    shows!(world.state(0)?.counts.switches == 0, "it goes on from another connection");
    world.watches(viewer)?;
    figures.add("opens", opens);
    Ok(())
}

fn p4(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let channels = world.origins.len();
    for channel in 0..channels {
        world.origins[channel][0].group = Duration::from_secs(1);
    }
    world.note_arrivals();
    for channel in 0..channels {
        world.ask_channel(world.feed(channel))?;
    }
    world.wait(10_000)?;
    for channel in 0..10 {
        world.set_mood(channel, 0, Mood::Dead);
    }
    for channel in 0..channels {
        world.reset_links(channel, 0, Fault::OriginReturns);
    }
    let mut slowest = 0;
    for step in 1..=200 {
        world.wait(10)?;
        if (10..channels).any(|channel| world.dry_for(channel) > 100) {
            slowest = step * 10;
        }
    }
    shows!(slowest < 2_000, "a channel whose origin is well is dry after {slowest} ms");
    figures.add("channels_back", (10..channels).filter(|channel| world.dry_for(*channel) < 100).count() as u64);
    figures.add("slowest_ms", slowest);
    Ok(())
}

fn p5(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let viewer = world.tuned_in(10_000)?;
    world.set_mood(0, 0, Mood::Refusing(Loss::Reset));
    let gap = world.longest_gap(10_000)?;
    let most = world.truth.channels[0].arrival[1].as_millis() as u64 + 100;
    shows!(gap <= most && world.plays() == Some(1), "no media for {gap} ms, more than {most}");
    world.watches(viewer)?;
    figures.add("gap_ms", gap);
    Ok(())
}

fn p8(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Refusing(Loss::Refused));
    world.set_mood(0, 1, Mood::Refusing(Loss::NotFound));
    world.while_away(1_000)?;
    world.ask_channel(world.feed(0))?;
    let handshakes: Duration = world.origins[0][..2].iter().map(|origin| origin.handshake).sum();
    world.run(world.now + handshakes)?;
    let opens = world.opens(0);
    shows!(opens == 3, "{opens} of 3 origins are asked within {handshakes:?}");
    world.wait(5_000)?;
    shows!(world.plays() == Some(2), "it plays {:?}", world.plays());
    figures.add("opens", opens);
    Ok(())
}

fn p8_long(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    for (index, group) in [4_000, 500].into_iter().enumerate() {
        world.origins[0][index].group = Duration::from_millis(group);
    }
    world.note_arrivals();
    world.while_away(1_000)?;
    world.tune_in(5_000)?;
    shows!(world.plays() == Some(0) && world.opens(0) == 1, "{} opens, it plays {:?}", world.opens(0), world.plays());
    figures.add("opens", world.opens(0));
    Ok(())
}

fn p9(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.tuned_in(10_000)?;
    world.set_mood(0, 0, Mood::Silent);
    world.wait(4_000)?;
    world.set_mood(0, 0, Mood::Good);
    world.wait(4_000)?;
    let counts = *world.state(0)?.counts;
    shows!(counts.silences == 0 && counts.opens == 1, "{counts:?}");
    figures.add("opens", counts.opens);
    Ok(())
}

fn p10(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let mut viewer = world.tune_in(5_000)?;
    for pause in [10, 100, 1_000, 2_900] {
        world.while_away(2_000)?;
        world.call(Input::Leave { viewer })?;
        world.wait(pause)?;
        viewer = world.tune_in(0)?;
    }
    shows!(world.opens(0) == 1, "{} opens", world.opens(0));
    figures.add("opens", world.opens(0));
    Ok(())
}

fn p12(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let viewer = world.tuned_in(10_000)?;
    world.set_mood(0, 0, Mood::BlackHole);
    let gap = world.longest_gap(12_000)?;
    let most = 3_000 + world.truth.channels[0].arrival[1].as_millis() as u64;
    shows!(gap <= most && world.plays() == Some(1), "no media for {gap} ms, more than {most}");
    world.watches(viewer)?;
    figures.add("gap_ms", gap);
    Ok(())
}

fn p13(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.origins[0][0].handshake = Duration::from_millis(10);
    world.set_mood(0, 0, Mood::Refusing(Loss::Unreachable));
    world.while_away(1_000)?;
    let (asked, request) = (world.now, world.ask_channel(world.feed(0))?);
    world.wait(1_000)?;
    let took = world.refused_watch(request, RefuseReason::NoSource)?.since(asked).as_millis() as u64;
    shows!(took == 10, "it was answered after {took} ms");
    figures.add("refused_after_ms", took);
    Ok(())
}

fn p14(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.tuned_in(20_000)?;
    world.set_mood(0, 0, Mood::ResetsAtPlay);
    world.reset_links(0, 0, Fault::OriginReturns);
    let (opens, calls) = (world.opens(0), world.calls);
    let mut pauses = Vec::new();
    let (mut last, mut seen) = (world.now, opens);
    for _ in 0..9_000 {
        world.wait(10)?;
        if world.opens(0) > seen {
            pauses.push(world.now.since(last));
            (last, seen) = (world.now, world.opens(0));
        }
    }
    let (opens, calls) = (seen - opens, world.calls - calls);
    // 3, 6, 12, 24 and 30 s, a fifth more or less.
    shows!((4..=6).contains(&opens), "{opens} opens in 90 s");
    let grows = pauses[1..].windows(2).take(3).all(|pair| pair[1] * 4 >= pair[0] * 5);
    shows!(grows, "the pauses are {pauses:?}");
    shows!(calls < 200, "{calls} calls of the core in 90 s");
    figures.add("opens", opens);
    figures.add("calls", calls);
    Ok(())
}

fn p15(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let mut requests = Vec::new();
    for _ in 0..20 {
        requests.push(world.ask_channel(world.feed(0))?);
        let micros = world.dice.random_range(0..50);
        world.run(world.now + Duration::from_micros(micros))?;
    }
    world.wait(5_000)?;
    let let_in = requests.iter().filter(|request| world.let_in(**request).is_some()).count();
    shows!(world.opens(0) == 1 && let_in == 20, "{} opens, {let_in} of 20 are let in", world.opens(0));
    figures.add("opens", world.opens(0));
    Ok(())
}

fn p16(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Flapping(2_000, Loss::Reset));
    // So that something of it is seen within its 2 s.
    world.origins[0][0].group = Duration::from_millis(500);
    let viewer = world.tune_in(1_000)?;
    world.wait(10_000)?;
    let gap = world.longest_gap(60_000)?;
    shows!(gap < 100 && world.plays() == Some(1), "no media for {gap} ms");
    shows!(world.state(0)?.counts.switches == 1, "it goes to and fro: {:?}", world.state(0)?.counts);
    world.watches(viewer)?;
    let opens = world.origins[0][0].asked;
    shows!(opens <= 8, "the primary is asked {opens} times in 70 s");
    figures.add("opens_primary", opens);
    figures.add("gap_ms", gap);
    Ok(())
}

fn p16_long(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Flapping(8_000, Loss::Reset));
    world.origins[0][0].group = Duration::from_millis(500);
    let viewer = world.tune_in(1_000)?;
    let gap = world.longest_gap(120_000)?;
    let most = world.truth.channels[0].arrival[1].as_millis() as u64 + 100;
    shows!(gap <= most, "no media for {gap} ms though the backup is well; {most} ms would do");
    world.watches(viewer)?;
    let opens = world.origins[0][0].asked;
    figures.add("opens_primary", opens);
    figures.add("gap_ms", gap);
    Ok(())
}

fn p17(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Silent);
    world.while_away(1_000)?;
    let viewer = world.tune_in(10_000)?;
    let gap = world.longest_gap(60_000)?;
    let counts = *world.state(0)?.counts;
    let flaps = counts.switches;
    shows!(gap < 100 && flaps == 0, "no media for {gap} ms, {flaps} flaps");
    world.watches(viewer)?;
    figures.add("flaps", flaps);
    figures.add("opens_primary", world.origins[0][0].asked);
    Ok(())
}

fn p18(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Silent);
    let (asked, request) = (world.now, world.ask_channel(world.feed(0))?);
    world.wait(5_000)?;
    world.while_away(2_000)?;
    world.reset_links(0, 0, Fault::OriginReturns);
    world.wait(10_000)?;
    // Whether another attempt is being made when the connection is lost depends on chance.
    let reasons = [RefuseReason::StartTimeout, RefuseReason::NoSource];
    let at = reasons.iter().find_map(|reason| world.refused_watch(request, *reason).ok());
    let took = at.map_or(u64::MAX, |at| at.since(asked).as_millis() as u64);
    shows!(took <= 10_000, "it was answered after {took} ms");
    figures.add("refused_after_ms", took);
    Ok(())
}

fn p19(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Dripping);
    world.while_away(1_000)?;
    world.ask_channel(world.feed(0))?;
    world.wait(2_999)?;
    shows!(world.opens(0) == 1, "it gives up too early");
    world.wait(1)?;
    shows!(world.opens(0) == 2, "it does not give up");
    world.wait(5_000)?;
    shows!(world.plays() == Some(1), "it plays {:?}", world.plays());
    figures.add("opens", world.opens(0));
    Ok(())
}

fn p21(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Refusing(Loss::Loop));
    world.while_away(1_000)?;
    let mut refused = 0;
    for _ in 0..25 {
        let request = world.ask_channel(world.feed(0))?;
        world.wait(800)?;
        world.refused_watch(request, RefuseReason::NoSource)?;
        refused += 1;
    }
    let opens = world.opens(0);
    shows!(opens <= 7, "{opens} opens for {refused} viewers in 20 s");
    figures.add("refused", refused);
    figures.add("opens", opens);
    Ok(())
}

fn p22(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Dead);
    let (a, b) = (world.ask_channel(world.feed(0))?, world.ask_channel(world.feed(0))?);
    world.while_away(2_000)?;
    world.call(Input::Hangup { request: a })?;
    world.run(world.now + Duration::from_micros(500))?;
    world.call(Input::Hangup { request: b })?;
    world.wait(60_000)?;
    world.bench().channels_rest(world.edge.edge())?;
    shows!(world.opens(0) == 1, "{} opens for nobody", world.opens(0));
    figures.add("opens", world.opens(0));
    Ok(())
}

fn p_dead(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    for (index, loss) in [Loss::Unreachable, Loss::NotFound, Loss::Refused].into_iter().enumerate() {
        world.set_mood(0, index, Mood::Refusing(loss));
    }
    let mut requests = Vec::new();
    for _ in 0..100 {
        requests.push(world.ask_channel(world.feed(0))?);
        world.while_away(20)?;
    }
    world.wait(200)?;
    for request in requests {
        world.refused_watch(request, RefuseReason::NoSource)?;
    }
    let opens = world.opens(0);
    shows!(opens == 3, "{opens} opens for 100 viewers of 3 dead origins");
    figures.add("opens", opens);
    figures.add("rounds", opens / 3);
    Ok(())
}

fn p_failback(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Refusing(Loss::Unreachable));
    let viewer = world.tuned_in(20_000)?;
    world.set_mood(0, 0, Mood::Good);
    let back = world.now;
    let mut gap = 0;
    while world.plays() != Some(0) {
        gap = gap.max(world.longest_gap(10)?);
        let took = world.now.since(back).as_millis();
        shows!(took < 30_000 * 6 / 5 + 5_000 + 5_000, "the primary is not returned to after {took} ms");
    }
    shows!(gap < 100, "no media for {gap} ms");
    shows!(world.truth.channels[0].open.len() == 1, "the other connection still stands");
    world.watches(viewer)?;
    figures.add("gap_ms", gap);
    figures.add("returned_after_ms", world.now.since(back).as_millis() as u64);
    Ok(())
}

fn p_ended(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.set_mood(0, 0, Mood::Flapping(10_000, Loss::Ended));
    let viewer = world.tune_in(5_000)?;
    world.wait(1_000)?;
    world.links_end(0, 0, Loss::Ended);
    world.wait(0)?;
    world.set_mood(0, 0, Mood::Refusing(Loss::NotFound));
    let ended = world.now;
    world.wait(4_990)?;
    world.watches(viewer)?;
    world.wait(20)?;
    let end = world.truth.viewers.get(&viewer).and_then(|viewer| viewer.ended);
    shows!(end == Some(holdfast_core::input::ViewerEnd::Ended), "after end_grace the viewer is {end:?}");
    figures.add("ended_after_ms", world.now.since(ended).as_millis() as u64);
    Ok(())
}

fn p_idle(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let viewer = world.tuned_in(100_000)?;
    world.call(Input::Leave { viewer })?;
    world.wait(59_999)?;
    shows!(world.truth.channels[0].open.len() == 1, "it is left too early");
    world.wait(1)?;
    world.bench().channels_rest(world.edge.edge())?;
    shows!(world.witness.marks.of(Mark::ChannelOff) == 1, "it is not told");
    figures.add("left_after_ms", 60_000);
    Ok(())
}
