//! What the server does between a provider and a player: it passes on what comes, as fast as it is taken, and says how that goes.

use std::time::Duration;

use holdfast_core::input::{AllocationId, Failure, Grant, Input, RequestId, ViewerEnd, Want};
use rand::Rng;

use super::super::chance::{Fault, span};
use super::super::oracle::Broken;
use super::super::{Event, Owner, World};
use super::provider::Use;

/// It is said each so long that media flows, and after so long that nobody takes it.
const SAID: Duration = Duration::from_secs(1);
/// A response over which nothing comes, or of which nothing is taken, ends after this long.
const BODY_IDLE: Duration = Duration::from_secs(12);

/// One response on its way.
pub struct Relay {
    allocation: Option<AllocationId>,
    want: Want,
    /// How much of it is left, by the time that it takes to send.
    left: Duration,
    /// Media went to the client.
    begun: bool,
    /// Its client takes what comes.
    pub reading: bool,
    stalled: bool,
    /// How long nothing was taken of it, or nothing came.
    idle: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So much of it was sent, if it is taken.
    Flow(Duration),
    /// Nothing comes.
    Idle,
    /// Its client is gone already.
    Gone,
}

impl World<'_> {
    fn relay_step(&mut self, request: RequestId, delay: Duration, step: Step) {
        self.plan_event(self.now + delay, Event::Relay { request, step });
    }

    /// A request is to be fetched.
    pub(in super::super) fn begin_relay(&mut self, request: RequestId, grant: Option<Grant>) -> Result<(), Broken> {
        let want = self.truth.titles.requests.get(&request).and_then(|row| row.want()).unwrap_or(Want::Look);
        let owner = match self.owner(request) {
            Some(Owner::Device(index)) => Some(index),
            _ => None,
        };
        let left = match owner {
            Some(index) => Self::length_of(&mut self.devices[index].dice, want),
            None => Self::length_of(&mut self.dice, want),
        };
        // What a script plays is as long as it needs.
        let led = owner.is_some_and(|index| self.devices[index].led);
        let left = match want {
            Want::Rest if led => Duration::from_secs(3600),
            Want::Rest => left * self.leisure,
            _ => left,
        };
        let allocation = grant.map(|grant| grant.allocation);
        let relay = Relay { allocation, want, left, begun: false, reading: true, stalled: false, idle: Duration::ZERO };
        self.relays.insert(request, relay);
        match grant {
            Some(grant) => self.use_grant(grant, Use::Relay(request)),
            // It comes from this machine.
            None => self.relay_step(request, Duration::from_micros(300), Step::Flow(Duration::ZERO)),
        }
        match owner {
            Some(index) if !self.devices[index].asks(request) => {
                self.relay_step(request, Duration::from_millis(1), Step::Gone);
                Ok(())
            }
            Some(index) => self.device_fetches(index, request),
            None => Ok(()),
        }
    }

    /// The provider answered in order.
    pub(in super::super) fn relay_answered(&mut self, request: RequestId, silent: bool) -> Result<(), Broken> {
        if silent {
            self.relay_step(request, BODY_IDLE, Step::Idle);
            return Ok(());
        }
        self.relay_flows(request, Duration::ZERO)
    }

    pub(in super::super) fn relay(&mut self, request: RequestId, step: Step) -> Result<(), Broken> {
        if !self.relays.contains_key(&request) {
            return Ok(());
        }
        match step {
            Step::Flow(sent) => self.relay_flows(request, sent),
            Step::Idle => self.finish_relay(request, ViewerEnd::Idle),
            Step::Gone => self.finish_relay(request, ViewerEnd::Left),
        }
    }

    fn relay_flows(&mut self, request: RequestId, sent: Duration) -> Result<(), Broken> {
        let said = SAID * self.leisure;
        let Some(relay) = self.relays.get_mut(&request) else { return Ok(()) };
        if relay.reading {
            (relay.left, relay.stalled, relay.idle) = (relay.left.saturating_sub(sent), false, Duration::ZERO);
        } else {
            relay.idle += sent;
        }
        let (want, reading, left) = (relay.want, relay.reading, relay.left);
        if reading && relay.begun && left.is_zero() {
            return self.finish_relay(request, ViewerEnd::Done);
        }
        if relay.idle >= BODY_IDLE {
            return self.finish_relay(request, ViewerEnd::Idle);
        }
        let first = !relay.begun;
        relay.begun = true;
        // A part is read ahead of its client now and then: its connection is closed long before its response is over.
        let ahead = relay.allocation.filter(|_| first && want == Want::Part && self.dice.random_bool(0.2));
        if let Some(allocation) = ahead {
            self.close_soon(allocation);
        }
        let Some(relay) = self.relays.get_mut(&request) else { return Ok(()) };
        let next = left.min(said).max(Duration::from_micros(1));
        let next = if reading { next } else { said };
        let stalls = !reading && !first && !relay.stalled && sent >= SAID;
        relay.stalled |= stalls;
        self.relay_step(request, next, Step::Flow(next));
        let media = matches!(want, Want::Rest | Want::Part);
        if stalls {
            self.witness.faults.add(Fault::ClientStalls);
            return self.deliver(Input::Stalled { request });
        }
        // What only sets up is no media, and it must not matter if somebody says so.
        let wrongly = !media && self.plan.strikes(Fault::LateRelay, &mut self.dice);
        if (media && (reading || first)) || wrongly {
            return self.deliver(Input::Forwarded { request });
        }
        Ok(())
    }

    /// The provider broke a response off.
    pub(in super::super) fn relay_broke(&mut self, request: RequestId) -> Result<(), Broken> {
        match self.relays.get(&request) {
            Some(relay) if relay.begun => self.finish_relay(request, ViewerEnd::Failed),
            Some(relay) => {
                if let Some(allocation) = relay.allocation {
                    self.close_soon(allocation);
                }
                self.relay_failed(request, Failure::Unreachable)
            }
            None => Ok(()),
        }
    }

    /// Nothing came of a response.
    pub(in super::super) fn relay_failed(&mut self, request: RequestId, failure: Failure) -> Result<(), Broken> {
        if self.relays.remove(&request).is_none() {
            return Ok(());
        }
        self.deliver(Input::Failed { request, failure })
    }

    /// A response is over, for a reason that the core does not know.
    pub(in super::super) fn finish_relay(&mut self, request: RequestId, reason: ViewerEnd) -> Result<(), Broken> {
        let Some(relay) = self.relays.remove(&request) else { return Ok(()) };
        let closes_first = self.dice.random_bool(0.5);
        if let Some(allocation) = relay.allocation.filter(|_| closes_first) {
            self.close_soon(allocation);
        }
        let said = self.deliver(Input::Finished { request, reason });
        if let Some(allocation) = relay.allocation {
            self.close_soon(allocation);
        }
        said?;
        self.speak_late(request);
        self.device_finished(request, Some(reason))
    }

    /// What comes when a request is over already.
    fn speak_late(&mut self, request: RequestId) {
        if !self.plan.strikes(Fault::LateRelay, &mut self.dice) {
            return;
        }
        let input = match self.dice.random_range(0..4) {
            0 => Input::Forwarded { request },
            1 => Input::Failed { request, failure: Failure::Unreachable },
            2 => Input::Stalled { request },
            _ => Input::Finished { request, reason: ViewerEnd::Left },
        };
        let after = span(&mut self.dice, 0, 1_500);
        self.send_after(after, input);
    }

    /// The core ends a response.
    pub(in super::super) fn cut_relay(&mut self, request: RequestId) -> Result<(), Broken> {
        let Some(relay) = self.relays.remove(&request) else { return Ok(()) };
        // A response without its client is of no use; some servers wait to be told, some do not.
        if let Some(allocation) = relay.allocation.filter(|_| self.dice.random_bool(0.3)) {
            self.close_soon(allocation);
        }
        self.speak_late(request);
        self.device_finished(request, None)
    }

    /// The core gives a connection up. A response of which nothing was forwarded yet is tried another way, or refused.
    pub(in super::super) fn drop_connection(&mut self, allocation: AllocationId) -> Result<(), Broken> {
        let of_it = |(_, relay): &(&RequestId, &Relay)| relay.allocation == Some(allocation) && !relay.begun;
        let request = self.relays.iter().find(of_it).map(|(request, _)| *request);
        self.close_soon(allocation);
        match request {
            // Some servers say that it failed, which is known already.
            Some(request) if self.dice.random_bool(0.5) => self.relay_failed(request, Failure::Unreachable),
            Some(request) => {
                self.relays.remove(&request);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A client goes away from a request, whatever has become of it.
    pub(in super::super) fn drop_request(&mut self, request: RequestId) -> Result<(), Broken> {
        if self.relays.contains_key(&request) {
            return self.finish_relay(request, ViewerEnd::Left);
        }
        let waits = self.truth.titles.requests.get(&request).is_some_and(|row| row.stage.waits());
        if waits { self.deliver(Input::Hangup { request }) } else { Ok(()) }
    }

    /// A client takes what comes, or not.
    pub(in super::super) fn set_reading(&mut self, request: RequestId, reading: bool) {
        if let Some(relay) = self.relays.get_mut(&request) {
            relay.reading = reading;
        }
    }
}
