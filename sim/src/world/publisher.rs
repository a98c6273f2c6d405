//! A WHIP publisher: asks, is let in or refused, sends, falls silent, leaves in one of many ways, and comes back.

use std::time::Duration;

use holdfast_core::input::{EndReason, EndpointId, Input, RequestId, SessionId};
use rand::Rng;
use rand::rngs::SmallRng;

use super::chance::{Fault, Mark, pick, span};
use super::options::Actor;
use super::oracle::Broken;
use super::stream::{Rhythm, Track};
use super::truth::Fate;
use super::{Event, Owner, World};

/// What a publisher sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AudioVideo,
    AudioOnly,
    /// Picture alone, a frame each so many ms.
    VideoOnly(u32),
    /// Audio and video; then the microphone is off and a frame comes each 5 s, RTCP each so many ms (0 = never).
    Muted(u32),
    /// Nothing, ever.
    Silent,
}

pub(super) struct Publisher {
    dice: SmallRng,
    endpoint: usize,
    kind: Kind,
    state: State,
    /// Steps of an earlier life are void.
    life: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Away,
    Asking(RequestId),
    /// It has its answer, or sends, or is frozen.
    In(SessionId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Post,
    HangUp,
    Vanish,
    Told(Option<SessionId>),
    Begin,
    Mute,
    Pause,
    Resume,
    End,
    /// The server closed the session and it hears of it.
    Closed(SessionId),
    /// It stops sending after it was displaced.
    Stop(SessionId),
}

impl Publisher {
    pub fn new(mut dice: SmallRng, endpoint: usize) -> Self {
        let kind = match dice.random_range(0..10) {
            0..=3 => Kind::AudioVideo,
            4 => Kind::AudioOnly,
            5 => Kind::VideoOnly(33),
            6 => Kind::VideoOnly(*pick(&mut dice, &[1000, 5000])),
            7 | 8 => Kind::Muted(*pick(&mut dice, &[0, 1000])),
            _ => Kind::Silent,
        };
        Publisher { dice, endpoint, kind, state: State::Away, life: 0 }
    }

    fn rhythm(&mut self) -> Rhythm {
        let video = match self.kind {
            Kind::VideoOnly(ms) => Track::every_ms(ms),
            Kind::AudioOnly | Kind::Silent => Track::NONE,
            Kind::AudioVideo | Kind::Muted(_) => Track::every_ms(33),
        };
        let audio = match self.kind {
            Kind::VideoOnly(_) | Kind::Silent => Track::NONE,
            Kind::AudioOnly | Kind::AudioVideo | Kind::Muted(_) => Track::every_ms(20),
        };
        let control = if self.kind == Kind::Silent { Track::NONE } else { Track::every_ms(1000) };
        Rhythm {
            audio: audio.phase(self.dice.random_range(0..100_000_u64) as u32),
            video: video.phase(self.dice.random_range(0..100_000_u64) as u32),
            control: control.phase(self.dice.random_range(0..1_000_000_u64) as u32),
        }
    }
}

impl World<'_> {
    pub(super) fn add_publisher(&mut self, endpoint: usize, first: Duration) {
        let index = self.publishers.len();
        self.publishers.push(Publisher::new(super::generator(self.seed, 100 + index as u64), endpoint));
        self.step_after(index, first, Step::Post);
    }

    fn step_after(&mut self, index: usize, delay: Duration, step: Step) {
        let life = self.publishers[index].life;
        self.plan_event(self.now + delay, Event::Publisher { index, life, step });
    }

    /// Whatever it had in mind it has no more.
    fn turn(&mut self, index: usize, state: State) {
        self.publishers[index].life += 1;
        self.publishers[index].state = state;
    }

    fn come_back(&mut self, index: usize) {
        let dice = &mut self.publishers[index].dice;
        let delay = match dice.random_range(0..4) {
            0 => Duration::from_micros(dice.random_range(0..=1_000)),
            1 => span(dice, 20, 1_500),
            2 => span(dice, 500, 4_000),
            _ => span(dice, 4_000, 20_000),
        };
        self.step_after(index, delay, Step::Post);
    }

    /// The answer to its POST is on its way to it.
    pub(super) fn told(&mut self, index: usize, session: Option<SessionId>) {
        let delay = Duration::from_micros(self.publishers[index].dice.random_range(0..30_000));
        self.step_after(index, delay, Step::Told(session));
    }

    /// The server closed a session; its publisher hears of it if it hears anything.
    pub(super) fn closed_by_server(&mut self, session: SessionId) {
        let Some(post) = self.truth.sessions.get(&session).map(|row| row.post) else { return };
        let Some(Owner::Publisher(index)) = self.owner(post) else { return };
        if self.publishers[index].state == State::In(session) {
            let delay = span(&mut self.publishers[index].dice, 1, 40);
            self.step_after(index, delay, Step::Closed(session));
        }
    }

    pub(super) fn publisher(&mut self, index: usize, life: u32, step: Step) -> Result<(), Broken> {
        if self.publishers[index].life != life {
            return Ok(());
        }
        let state = self.publishers[index].state;
        match (step, state) {
            (Step::Post, State::Away) => self.post(index),
            (Step::HangUp, State::Asking(request)) => self.hang_up(index, request),
            (Step::Vanish, State::Asking(_)) => {
                self.witness.faults.add(Fault::VanishWhileAsking);
                self.say(format_args!("publisher {index} vanishes while it asks"));
                self.turn(index, State::Away);
                self.come_back(index);
                Ok(())
            }
            (Step::Told(Some(session)), State::Asking(_)) => {
                self.turn(index, State::In(session));
                self.set_up(index);
                Ok(())
            }
            (Step::Told(None), State::Asking(_)) => {
                self.turn(index, State::Away);
                let delay = span(&mut self.publishers[index].dice, 300, 5_000);
                self.step_after(index, delay, Step::Post);
                Ok(())
            }
            (Step::Begin, State::In(session)) => {
                self.begin(index, session);
                Ok(())
            }
            (Step::Mute, State::In(session)) => {
                let Kind::Muted(rtcp) = self.publishers[index].kind else { return Ok(()) };
                let control = if rtcp == 0 { Track::NONE } else { Track::every_ms(rtcp) };
                let rhythm = Rhythm { audio: Track::NONE, video: Track::every_ms(5_000), control };
                self.send(session, Some(rhythm));
                Ok(())
            }
            (Step::Pause, State::In(session)) => {
                self.pause(index, session);
                Ok(())
            }
            (Step::Resume, State::In(session)) => {
                self.resume(index, session);
                Ok(())
            }
            (Step::End, State::In(session)) => self.leave(index, session),
            (Step::Closed(session), State::In(own)) if own == session => {
                let keeps = self.plan.strikes(Fault::KeepSending, &mut self.publishers[index].dice);
                self.turn(index, State::In(session));
                if keeps && self.is_sending(session) {
                    let delay = span(&mut self.publishers[index].dice, 500, 5_000);
                    self.step_after(index, delay, Step::Stop(session));
                } else {
                    self.step_after(index, Duration::ZERO, Step::Stop(session));
                }
                Ok(())
            }
            (Step::Stop(session), State::In(_)) => {
                self.send(session, None);
                self.turn(index, State::Away);
                self.come_back(index);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sends in this rhythm from now on, or nothing.
    pub(super) fn send(&mut self, session: SessionId, rhythm: Option<Rhythm>) {
        match rhythm {
            Some(rhythm) => self.say(format_args!("session {session} sends {rhythm:?}")),
            None => self.say(format_args!("session {session} sends nothing")),
        }
        let now = self.now;
        let Some(row) = self.truth.sessions.get_mut(&session) else { return };
        match rhythm {
            Some(rhythm) => row.stream.open(now, rhythm),
            None => row.stream.close(now),
        }
    }

    pub(super) fn is_sending(&self, session: SessionId) -> bool {
        self.truth.live_session(session).is_some_and(|row| row.stream.is_open())
    }

    fn post(&mut self, index: usize) -> Result<(), Broken> {
        if self.healed || !self.attends(Actor::Publisher(index as u32)) {
            return Ok(());
        }
        let request = self.request(Some(Owner::Publisher(index)));
        self.turn(index, State::Asking(request));
        let publisher = &mut self.publishers[index];
        let (plan, dice) = (&self.plan, &mut publisher.dice);
        let endpoint = EndpointId(publisher.endpoint as u32);
        let hangs_up = plan.strikes(Fault::HangUpHeld, dice) || plan.strikes(Fault::HangUpNegotiating, dice);
        let hangs_up = hangs_up.then(|| span(dice, 0, 3_000));
        let vanishes = plan.strikes(Fault::VanishWhileAsking, dice).then(|| span(dice, 0, 2_000));
        let doubled = plan.strikes(Fault::DoubledOffer, dice) && self.driver.still.is_none();
        let input = Input::Offer { request, endpoint };
        if let Some(after) = hangs_up {
            self.step_after(index, after, Step::HangUp);
        } else if let Some(after) = vanishes {
            self.step_after(index, after, Step::Vanish);
        }
        // A request that was answered is never offered again: its number is not used twice.
        if doubled {
            self.deliver(input.clone())?;
            let open = self.truth.posts.get(&request).map(|post| post.fate);
            if matches!(open, Some(Fate::Held | Fate::Negotiating(_))) {
                return self.deliver(input);
            }
            return Ok(());
        }
        self.deliver(input)
    }

    fn hang_up(&mut self, index: usize, request: RequestId) -> Result<(), Broken> {
        self.turn(index, State::Away);
        self.come_back(index);
        self.deliver(Input::Hangup { request })
    }

    fn set_up(&mut self, index: usize) {
        let publisher = &mut self.publishers[index];
        let delay = match publisher.dice.random_range(0..8) {
            0 => span(&mut publisher.dice, 500, 6_000),
            _ => span(&mut publisher.dice, 20, 500),
        };
        if publisher.kind != Kind::Silent {
            self.step_after(index, delay, Step::Begin);
        } else if publisher.dice.random_bool(0.5) {
            let delay = span(&mut publisher.dice, 1_000, 20_000);
            self.step_after(index, delay, Step::End);
        }
    }

    fn begin(&mut self, index: usize, session: SessionId) {
        let rhythm = self.publishers[index].rhythm();
        self.send(session, Some(rhythm));
        let publisher = &mut self.publishers[index];
        let (plan, dice) = (&self.plan, &mut publisher.dice);
        let lasts = span(dice, 500, 30_000);
        let mute = span(dice, 800, 4_000);
        let pause = plan.strikes(Fault::Flap, dice).then(|| span(dice, 300, 6_000));
        if let Kind::Muted(_) = publisher.kind {
            self.step_after(index, mute, Step::Mute);
        }
        if let Some(pause) = pause {
            self.step_after(index, pause, Step::Pause);
        }
        self.step_after(index, lasts, Step::End);
    }

    fn pause(&mut self, index: usize, session: SessionId) {
        if self.healed {
            return;
        }
        self.send(session, None);
        let delay = span(&mut self.publishers[index].dice, 50, 5_000);
        self.step_after(index, delay, Step::Resume);
    }

    fn resume(&mut self, index: usize, session: SessionId) {
        let Some(row) = self.truth.live_session(session) else { return };
        let (place, silent) = (row.endpoint, row.stream.at(self.now).last_any().map(|last| self.now.since(last)));
        let (refused, dead_after) =
            (self.truth.places[place].refused.iter().sum::<u64>(), self.truth.places[place].settings.dead_after);
        if silent.is_some_and(|silent| silent > dead_after / 2) && refused > 0 {
            self.mark(Mark::SparedInPause);
        }
        self.witness.faults.add(Fault::Flap);
        let rhythm = self.publishers[index].rhythm();
        self.send(session, Some(rhythm));
        let delay = span(&mut self.publishers[index].dice, 300, 6_000);
        self.step_after(index, delay, Step::Pause);
    }

    fn leave(&mut self, index: usize, session: SessionId) -> Result<(), Broken> {
        let live = self.truth.live_session(session).is_some();
        let (plan, dice) = (&self.plan, &mut self.publishers[index].dice);
        let silent = plan.strikes(Fault::SilentVanish, dice);
        let late = plan.strikes(Fault::LateDelete, dice).then(|| span(dice, 0, 15_000));
        let twice = plan.strikes(Fault::DoubledEnd, dice).then(|| span(dice, 0, 2_000));
        let fin = (silent && plan.strikes(Fault::LateFin, dice)).then(|| span(dice, 500, 12_000));
        let goodbyes = [EndReason::Deleted, EndReason::DtlsClosed, EndReason::IceFailed, EndReason::Bye];
        let (reason, again) = (*pick(dice, &goodbyes), *pick(dice, &goodbyes[1..]));
        self.send(session, None);
        self.turn(index, State::Away);
        self.come_back(index);
        if let Some(after) = late {
            self.send_after(after, Input::End { session, reason: EndReason::Deleted });
        }
        if let Some(after) = twice {
            self.send_after(after, Input::End { session, reason: again });
        }
        if let Some(after) = fin {
            self.send_after(after, Input::End { session, reason: again });
        }
        if silent {
            if live {
                self.witness.faults.add(Fault::SilentVanish);
            }
            self.say(format_args!("publisher {index} vanishes"));
            return Ok(());
        }
        self.deliver(Input::End { session, reason })
    }

    /// Every publisher that sends at an endpoint loses its network now; they and all the others there ask at once.
    pub(super) fn crowd(&mut self, endpoint: usize) {
        for index in 0..self.publishers.len() {
            if self.publishers[index].endpoint != endpoint {
                continue;
            }
            match self.publishers[index].state {
                State::In(session) if self.is_sending(session) => {
                    self.witness.faults.add(Fault::SilentVanish);
                    self.send(session, None);
                }
                State::Away => {}
                State::In(_) | State::Asking(_) => continue,
            }
            self.turn(index, State::Away);
            let delay = Duration::from_micros(self.publishers[index].dice.random_range(0..1_000));
            self.step_after(index, delay, Step::Post);
        }
    }
}
