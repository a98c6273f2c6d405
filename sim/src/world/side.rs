//! The media side: negotiates, moves media into slots, cuts bridges, and stamps evidence. It may be slow, wrong and late.

use std::thread;
use std::time::Duration;

use holdfast_core::input::{EndReason, Env, Evidence, Input, SessionId, SessionKind, Writer};
use holdfast_core::time::Time;
use rand::Rng;
use rand::rngs::SmallRng;

use super::chance::{Fault, Plan, TEARING, span};
use super::oracle::Broken;
use super::rows::Rows;
use super::truth::{Truth, media};
use super::{Event, Witness, World};

/// Media enters a slot this long after it came.
const JITTER: Duration = Duration::from_millis(200);
/// A picture is a random access point each so many pulses.
const KEY_FRAME_EACH: u64 = 8;

pub(super) struct Side {
    dice: SmallRng,
    entropy: Option<[u8; 16]>,
    bridges: Rows<SessionKind, Bridge>,
    /// How often media is moved.
    pub pulse: Duration,
    /// The longest that an answer or a release takes when nothing is wrong.
    pub usual: Duration,
    /// Whoever asks it something waits for ever.
    pub stuck: bool,
}

/// What moves one session's media into its slot.
#[derive(Debug, Default)]
struct Bridge {
    /// How many packets it has moved.
    moved: u64,
    pulses: u64,
    key_frame: bool,
    /// It puts nothing out until then.
    wedged: Option<Time>,
    /// It is taken down then.
    until: Option<Time>,
}

impl Side {
    pub fn new(dice: SmallRng) -> Self {
        let (pulse, usual) = (Duration::from_millis(250), Duration::ZERO);
        Side { dice, entropy: None, bridges: Rows::default(), pulse, usual, stuck: false }
    }

    pub fn rebuilt(&mut self, session: SessionId) {
        if let Some(bridge) = self.bridges.get_mut(&session) {
            bridge.wedged = None;
        }
    }

    pub fn key_frame(&mut self, session: SessionId) {
        if let Some(bridge) = self.bridges.get_mut(&session) {
            bridge.key_frame = true;
        }
    }

    fn usual(&mut self) -> Duration {
        Duration::from_micros(self.dice.random_range(0..=self.usual.as_micros() as u64))
    }
}

/// What the core is told when it asks.
pub(super) struct Senses<'a> {
    pub now: Time,
    pub truth: &'a Truth,
    pub plan: &'a Plan,
    pub side: &'a mut Side,
    pub witness: &'a mut Witness,
    /// How often it asked during this call.
    pub asked: u32,
}

/// A core that asks more often than this within one call will never stop asking.
const QUESTIONS: u32 = 100_000;

impl Env for Senses<'_> {
    fn activity(&mut self, session: SessionId) -> Evidence {
        self.asked += 1;
        assert!(self.asked < QUESTIONS, "live-lock: one call asks for evidence without end");
        if self.side.stuck {
            loop {
                thread::park();
            }
        }
        let Some(session) = self.truth.sessions.get(&session) else { return Evidence::default() };
        let seen = session.stream.evidence(self.plan.unseen.map(|unseen| self.now - unseen));
        if !self.plan.has(Fault::EvidenceDelay) && !self.plan.has(Fault::TornEvidence) {
            return seen;
        }
        let real = session.stream.at(self.now);
        if seen != real {
            self.witness.faults.add(Fault::EvidenceDelay);
        }
        let mut torn = seen;
        if self.plan.strikes(Fault::TornEvidence, &mut self.side.dice) {
            // A writer stores the time, then the count: in between the count is one behind.
            for (arrivals, unseen) in
                [&mut torn.audio, &mut torn.video, &mut torn.control].into_iter().zip(self.plan.unseen)
            {
                let recent = arrivals.last.is_some_and(|last| self.now.since(last) <= unseen + TEARING);
                if arrivals.count > 1 && recent {
                    arrivals.count -= 1;
                }
            }
            if torn != seen {
                self.witness.faults.add(Fault::TornEvidence);
            }
        }
        torn
    }

    fn entropy(&mut self) -> [u8; 16] {
        if let Some(before) = self.side.entropy.filter(|_| self.plan.strikes(Fault::EntropyRepeat, &mut self.side.dice))
        {
            self.witness.faults.add(Fault::EntropyRepeat);
            return before;
        }
        let bytes = self.side.dice.random();
        self.side.entropy = Some(bytes);
        bytes
    }
}

impl World<'_> {
    /// A session is to be negotiated.
    pub(super) fn negotiate(&mut self, session: SessionId) {
        let (plan, dice) = (&self.plan, &mut self.side.dice);
        let early = plan.strikes(Fault::EarlyRelease, dice).then(|| span(dice, 0, 10_000));
        let doubled = plan.strikes(Fault::DoubledAnswer, dice).then(|| span(dice, 0, 3_000));
        let late = if plan.strikes(Fault::LateAnswer, dice) { span(dice, 500, 8_000) } else { Duration::ZERO };
        let failed = plan.strikes(Fault::FailedAnswer, dice);
        let lost = plan.strikes(Fault::LostAnswer, dice);
        if let Some(after) = early {
            self.send_after(after, Input::Released { session });
        }
        let delay = self.side.usual() + late;
        if failed {
            self.send_after(delay, Input::End { session, reason: EndReason::NegotiationFailed });
        } else if !lost {
            self.side.bridges.insert(session, Bridge::default());
            self.send_after(delay, Input::Answered { session });
            if let Some(after) = doubled {
                self.send_after(delay + after, Input::Answered { session });
            }
        }
    }

    /// A session is over: its bridge is cut, then its peer is told.
    pub(super) fn cut(&mut self, session: SessionId) {
        let (plan, dice) = (&self.plan, &mut self.side.dice);
        let slow = if plan.strikes(Fault::SlowRelease, dice) { span(dice, 51, 6_000) } else { Duration::ZERO };
        let doubled = plan.strikes(Fault::DoubledRelease, dice).then(|| span(dice, 0, 10_000));
        let leak = if plan.strikes(Fault::LeakyBridge, dice) { span(dice, 100, 3_000) } else { Duration::ZERO };
        let delay = self.side.usual() + slow;
        self.send_after(delay, Input::Released { session });
        if let Some(after) = doubled {
            self.send_after(delay + after, Input::Released { session });
        }
        if let Some(bridge) = self.side.bridges.get_mut(&session) {
            bridge.until = Some(self.now + delay + leak);
        }
        self.closed_by_server(session);
    }

    /// Moves what came of a session's media since the last time.
    pub(super) fn pulse(&mut self, session: SessionId) -> Result<(), Broken> {
        let Some(bridge) = self.side.bridges.get_mut(&session) else { return Ok(()) };
        if bridge.until.is_some_and(|until| until <= self.now) {
            return Ok(());
        }
        let Some(row) = self.truth.sessions.get(&session) else { return Ok(()) };
        let evidence = row.stream.at(self.now - JITTER);
        let came = evidence.audio.count + evidence.video.count;
        bridge.pulses += 1;
        if came > bridge.moved && bridge.wedged.is_none() && self.plan.strikes(Fault::Wedge, &mut self.side.dice) {
            // Rarely, or nothing would ever be seen.
            let long = span(&mut self.side.dice, 1_000, 25_000);
            bridge.wedged = self.side.dice.random_bool(0.02).then(|| self.now + long);
        }
        let wedged = bridge.wedged.is_some_and(|until| until > self.now);
        if !wedged {
            bridge.wedged = None;
        }
        let fresh = came > bridge.moved && !wedged;
        let key = evidence.video.count == 0 || bridge.key_frame || bridge.pulses % KEY_FRAME_EACH == 1;
        if fresh {
            bridge.moved = came;
            bridge.key_frame &= !key;
        }
        let at = self.now + self.side.pulse;
        self.plan_event(at, Event::Pulse(session));
        if !fresh {
            return Ok(());
        }
        // Loss, or a muxer that waits for a picture it can start with.
        if self.side.dice.random_bool(0.05)
            && let Some(feed) = self.truth.sessions.get(&session).map(|row| row.feed)
        {
            self.deliver(Input::KeyFrameWanted { feed })?;
        }
        let packets = self.side.dice.random_range(1..=4);
        self.serial += 1;
        let Some(row) = self.truth.sessions.get(&session) else { return Ok(()) };
        let (feed, from) = (row.feed, Writer::Session(session));
        let data = media(self.serial, 188 * packets);
        self.deliver(Input::Media { feed, from, data, random_access: key.then_some(self.now.as_micros() * 9 / 100) })
    }
}
