//! The driver between the world and the core: punctual in a calm world, else late, forgetful and slow of clock.

use std::time::Duration;

use holdfast_core::input::{EndReason, Input, SourceId, Writer};
use holdfast_core::time::Time;
use rand::Rng;
use rand::rngs::SmallRng;

use super::chance::{CLOCK_BACK, Fault, Plan, span};
use super::oracle::Broken;
use super::{Event, Witness, World};

pub(super) struct Driver {
    dice: SmallRng,
    /// It stands still until then.
    pub still: Option<Time>,
    gathered: Vec<Input>,
    wake: Option<Wake>,
}

/// When a deadline will be served.
#[derive(Clone, Copy)]
struct Wake {
    deadline: Time,
    at: Time,
    lost: bool,
}

impl Driver {
    pub fn new(dice: SmallRng) -> Self {
        Driver { dice, still: None, gathered: Vec::new(), wake: None }
    }

    /// When it wakes for the core's deadline, if nothing happens before.
    pub fn due(&mut self, now: Time, deadline: Option<Time>, plan: &Plan) -> Option<Time> {
        let deadline = deadline?;
        if self.wake.is_none_or(|wake| wake.deadline != deadline) {
            let lost = plan.strikes(Fault::LostWake, &mut self.dice);
            let late = if lost {
                plan.late
            } else if plan.strikes(Fault::LateTick, &mut self.dice) {
                plan.late.min(Duration::from_millis(30))
            } else {
                Duration::ZERO
            };
            let late = Duration::from_micros(self.dice.random_range(0..=late.as_micros() as u64));
            self.wake = Some(Wake { deadline, at: deadline.max(now) + late, lost });
        }
        let at = self.wake.map(|wake| wake.at)?;
        Some(self.still.map_or(at, |still| still.max(at)))
    }

    /// What it takes for the time.
    pub fn clock(&mut self, now: Time, plan: &Plan, witness: &mut Witness) -> Time {
        if !plan.strikes(Fault::ClockBack, &mut self.dice) {
            return now;
        }
        witness.faults.add(Fault::ClockBack);
        now - Duration::from_micros(self.dice.random_range(1..=CLOCK_BACK.as_micros() as u64))
    }
}

impl World<'_> {
    /// The driver wakes for a deadline.
    pub(super) fn wake(&mut self) -> Result<(), Broken> {
        if let Some(wake) = self.driver.wake.filter(|wake| wake.deadline < self.now) {
            self.witness.faults.add(if wake.lost { Fault::LostWake } else { Fault::LateTick });
        }
        self.driver.wake = None;
        self.call(Input::Tick)?;
        if self.plan.strikes(Fault::DoubledWake, &mut self.driver.dice) {
            self.witness.faults.add(Fault::DoubledWake);
            self.call(Input::Tick)?;
        }
        Ok(())
    }

    /// An input reaches the driver.
    pub(super) fn deliver(&mut self, input: Input) -> Result<(), Broken> {
        if self.driver.still.is_some() {
            self.driver.gathered.push(input);
            return Ok(());
        }
        self.call(input)
    }

    /// Hands in media of a source as a driver does that has to know beforehand whether it goes into the feed.
    pub(super) fn ask_first(&mut self, source: SourceId, input: Input) -> Result<(), Broken> {
        let Input::Media { feed, from, random_access, .. } = &input else { return Ok(()) };
        let (feed, from, random_access) = (*feed, *from, random_access.is_some());
        if self.edge.edge().deadline().is_some_and(|at| at <= self.now) {
            self.handle(Input::Tick)?;
        }
        if !self.edge.edge().takes(self.now, feed, from, random_access) {
            self.bench().media(source, random_access, false)?;
            return self.handle(Input::Arrived { source });
        }
        let bytes = |world: &Self| world.edge.edge().feeds().status(world.now, feed).map(|status| status.bytes_in);
        let before = bytes(self);
        self.handle(input)?;
        if bytes(self) == before {
            return Err(Broken { id: "pull-3", what: format!("media of {source} was to be taken and is not") });
        }
        Ok(())
    }

    pub(super) fn plan_stall(&mut self) {
        if self.plan.has(Fault::Stall) {
            let at = self.now + span(&mut self.driver.dice, 50, 8_000);
            self.plan_event(at, Event::Stall);
        }
    }

    pub(super) fn stall(&mut self) {
        if self.healed || self.driver.still.is_some() {
            return;
        }
        let most = self.plan.stall.as_micros() as u64;
        let until = self.now + Duration::from_micros(self.driver.dice.random_range(1..=most.max(1)));
        self.driver.still = Some(until);
        self.say(format_args!("the driver stands still until {until:?}"));
        self.plan_event(until, Event::Thaw);
    }

    pub(super) fn thaw(&mut self) -> Result<(), Broken> {
        self.driver.still = None;
        let mut inputs = std::mem::take(&mut self.driver.gathered);
        if inputs.len() >= 2 {
            self.witness.faults.add(Fault::Stall);
        }
        // Sockets and the media side are two queues: either may be emptied first, each keeps its own order.
        if inputs.len() >= 2 && self.plan.strikes(Fault::Reorder, &mut self.driver.dice) {
            let before = inputs.clone();
            inputs.sort_by_key(|input| !from_media_side(input));
            if inputs != before {
                self.witness.faults.add(Fault::Reorder);
            }
        }
        for input in inputs {
            self.call(input)?;
        }
        self.plan_stall();
        Ok(())
    }
}

fn from_media_side(input: &Input) -> bool {
    match input {
        Input::Answered { .. } | Input::Released { .. } | Input::KeyFrameWanted { .. } => true,
        Input::Media { from, .. } => matches!(from, Writer::Session(_)),
        Input::End { reason, .. } => !matches!(reason, EndReason::Deleted | EndReason::Kicked),
        _ => false,
    }
}
