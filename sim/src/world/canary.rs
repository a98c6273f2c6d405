//! Scenarios that must fail: a suite that cannot fail checks nothing.

use std::io::Write;
use std::time::Duration;

use holdfast_core::config::{Config, Endpoint};
use holdfast_core::time::Time;

use super::World;
use super::chance::Plan;
use super::oracle::{Allowance, Broken};
use super::stream::Rhythm;
use crate::{Figures, Report};

/// How long audio is missing when the core calls a publisher dead, as nothing else is configured.
const DEAD_AFTER: u64 = 2_000;

/// Of safety: the judges must find a living publisher displaced.
pub(super) fn living(seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    let mut plan = Plan::calm();
    plan.unseen = [Duration::from_millis(DEAD_AFTER + 500); 3];
    play(plan, seed, trace, |world| {
        world.allowance = Allowance::default();
        let a = world.publish(Rhythm::AUDIO_VIDEO)?;
        world.wait(5_000)?;
        world.send(a, None);
        world.wait(2_400)?;
        world.send(a, Some(Rhythm::AUDIO_VIDEO));
        world.wait(2_400)?;
        world.ask()?;
        world.wait(3_000)
    })
}

/// Of liveness: all that happened was right, then nothing goes wrong any more, and still nobody is served.
pub(super) fn peace(seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    play(Plan::calm(), seed, trace, |world| {
        let a = world.publish(Rhythm::AUDIO_VIDEO)?;
        world.wait(5_000)?;
        world.send(a, None);
        world.wait(500)?;
        world.ask()?;
        world.bench().all(world.edge.edge())?;
        world.heal()?;
        world.driver.still = Some(Time::NEVER);
        world.settle()
    })
}

/// Of what never returns: nobody within can say that the core is at one call for ever.
pub(super) fn stuck(seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    play(Plan::calm(), seed, trace, |world| {
        let a = world.publish(Rhythm::AUDIO_VIDEO)?;
        world.wait(1_000)?;
        world.send(a, None);
        world.side.stuck = true;
        world.ask()?;
        world.wait(60_000)
    })
}

fn play(
    plan: Plan,
    seed: u64,
    trace: Option<&mut dyn Write>,
    script: impl FnOnce(&mut World<'_>) -> Result<(), Broken>,
) -> Result<Report, (Time, Broken)> {
    let config = Config { endpoints: vec![Endpoint::default()], ..Config::default() };
    let mut world = World::new(config, seed, plan, trace);
    let played = script(&mut world);
    let now = world.now;
    played.and_then(|()| world.close(Figures::default())).map_err(|broken| (now, broken))
}
