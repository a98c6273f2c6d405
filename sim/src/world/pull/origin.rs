//! An origin and its connections: good, silent, dead, slow, refusing, flapping, a black hole, without key frames, and back again.

use std::time::Duration;

use holdfast_core::input::{ChannelId, Input, Loss, Note, Output, SourceId, Writer};
use holdfast_core::time::Time;
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::chance::{Fault, Mark, Plan, pick, span};
use super::super::options::Actor;
use super::super::oracle::Broken;
use super::super::truth::media;
use super::super::{Event, World};

/// How an origin behaves towards whoever asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Agrees at once and sends.
    Good,
    /// Agrees and sends nothing; what it sent before stops.
    Silent,
    /// Takes connections and says nothing.
    Dead,
    /// Every connection stands and is dead for ever.
    BlackHole,
    /// Refuses in this way; connections that stood are reset.
    Refusing(Loss),
    /// Its handshake takes longer than anybody waits.
    Dripping,
    /// Agrees, then resets.
    ResetsAtPlay,
    /// Sends for so many ms, then ends like this.
    Flapping(u64, Loss),
    /// Sends pictures that nobody can start with.
    Keyless,
}

/// What refusing origins say.
const REFUSALS: [Loss; 10] = [
    Loss::NotFound,
    Loss::Forbidden,
    Loss::Unresolved,
    Loss::Unreachable,
    Loss::Refused,
    Loss::Unusable,
    Loss::Loop,
    Loss::Reset,
    Loss::Limit,
    Loss::Page,
];

/// The longest handshake of an origin that is well, in ms, and the longest distance between two of its key frames.
const HANDSHAKE: u64 = 60;
const GROUP: u64 = 4_000;

pub struct Origin {
    dice: SmallRng,
    pub mood: Mood,
    /// Its distance between two packets, and between two key frames.
    pub every: Duration,
    pub group: Duration,
    pub handshake: Duration,
    /// It is well for the whole run.
    pub steadfast: bool,
    /// How often it was asked.
    pub asked: u64,
    /// Whether it gives a key frame to whoever asks for one.
    obliging: bool,
}

impl Origin {
    pub fn new(mut dice: SmallRng) -> Self {
        let every = Duration::from_millis(dice.random_range(20..=40));
        let group = Duration::from_millis(*pick(&mut dice, &[500, 1000, 2000, GROUP]));
        let handshake = Duration::from_millis(dice.random_range(1..=HANDSHAKE));
        let obliging = dice.random_bool(0.5);
        Origin { dice, mood: Mood::Good, every, group, handshake, steadfast: false, asked: 0, obliging }
    }
}

/// One connection to an origin, as the origin sees it.
pub struct Link {
    channel: usize,
    index: usize,
    /// The mood in which it was taken.
    mood: Mood,
    next_key: Time,
    /// Nothing comes over it any more.
    dead: bool,
    /// What makes it end.
    cause: Option<Fault>,
    /// What came over it.
    pub packets: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Agree,
    Send,
    Fail(Loss),
}

impl World<'_> {
    /// Tells the truth what each origin needs at most from being asked to something that a player can start with.
    pub fn note_arrivals(&mut self) {
        for (origins, channel) in self.origins.iter().zip(&mut self.truth.channels) {
            channel.arrival = origins.iter().map(Origin::arrival).collect();
        }
    }

    /// An origin behaves like this from now on.
    pub fn set_mood(&mut self, channel: usize, index: usize, mood: Mood) {
        self.say(format_args!("origin {index} of channel {channel} is {mood:?}"));
        self.origins[channel][index].mood = mood;
        let row = &mut self.truth.channels[channel];
        row.healthy[index] = match mood {
            Mood::Good => row.healthy[index].or(Some(self.now)),
            _ => None,
        };
        row.keyless[index] |= mood == Mood::Keyless;
        match mood {
            Mood::BlackHole => self.links_of(channel, index).into_iter().for_each(|source| {
                self.links.entry(source).and_modify(|link| link.dead = true);
            }),
            Mood::Refusing(_) => self.reset_links(channel, index, Fault::OriginRefuses),
            _ => {}
        }
    }

    fn links_of(&self, channel: usize, index: usize) -> Vec<SourceId> {
        let of_it = |link: &Link| (link.channel, link.index) == (channel, index);
        self.links.iter().filter(|(_, link)| of_it(link)).map(|(source, _)| *source).collect()
    }

    /// All connections of an origin break.
    pub fn reset_links(&mut self, channel: usize, index: usize, cause: Fault) {
        for source in self.links_of(channel, index) {
            self.fail_after(source, Duration::ZERO, Loss::Reset, cause);
        }
    }

    /// Connections to an origin end like this, now.
    pub fn links_end(&mut self, channel: usize, index: usize, loss: Loss) {
        for source in self.links_of(channel, index) {
            self.fail_after(source, Duration::ZERO, loss, Fault::OriginEnds);
        }
    }

    fn fail_after(&mut self, source: SourceId, delay: Duration, loss: Loss, cause: Fault) {
        self.links.entry(source).and_modify(|link| link.cause = Some(cause));
        self.link_step(source, delay, Step::Fail(loss));
    }

    fn link_step(&mut self, source: SourceId, delay: Duration, step: Step) {
        self.plan_event(self.now + delay, Event::Link { source, step });
    }

    /// An origin is asked.
    pub(in super::super) fn open_link(&mut self, source: SourceId, channel: ChannelId, index: u32) {
        let (channel, index) = (channel.0 as usize, index as usize);
        let patience = self.truth.channels[channel].settings.connect_timeout;
        let origin = &mut self.origins[channel][index];
        origin.asked += 1;
        let (mood, handshake) = (origin.mood, origin.handshake);
        let drip = patience + span(&mut origin.dice, 1, 5_000);
        // Whoever comes comes in the middle of a group of pictures.
        let next_key = self.now + origin.group.mul_f64(origin.dice.random_range(0.0..1.0));
        let link = Link { channel, index, mood, next_key, dead: mood == Mood::BlackHole, cause: None, packets: 0 };
        self.links.insert(source, link);
        match mood {
            Mood::Good | Mood::Silent | Mood::Keyless | Mood::ResetsAtPlay | Mood::Flapping(..) => {
                self.link_step(source, handshake, Step::Agree);
            }
            Mood::Refusing(loss) => self.fail_after(source, handshake, loss, Fault::OriginRefuses),
            Mood::Dripping => self.link_step(source, drip, Step::Agree),
            Mood::Dead | Mood::BlackHole => {}
        }
    }

    /// The edge closed a connection; what was on its way still comes.
    pub(in super::super) fn close_link(&mut self, source: SourceId) {
        let Some(link) = self.links.remove(&source) else { return };
        let dice = &mut self.origins[link.channel][link.index].dice;
        if !self.plan.strikes(Fault::LateSource, dice) {
            return;
        }
        let (delay, kind) = (span(dice, 0, 2_000), dice.random_range(0..4));
        let input = match kind {
            0 => Input::Opened { source },
            1 => Input::Lost { source, loss: Loss::Reset },
            2 => Input::Arrived { source },
            _ => self.packet(source, link.channel, true),
        };
        self.send_after(delay, input);
    }

    fn packet(&mut self, source: SourceId, channel: usize, key: bool) -> Input {
        self.serial += 1;
        let (feed, from) = (self.truth.channels[channel].feed, Writer::Source(source));
        let data = media(self.serial, 188);
        Input::Media { feed, from, data, random_access: key.then_some(self.now.as_micros() * 9 / 100) }
    }

    pub(in super::super) fn link(&mut self, source: SourceId, step: Step) -> Result<(), Broken> {
        let Some(link) = self.links.get_mut(&source) else { return Ok(()) };
        let (channel, index, mood) = (link.channel, link.index, link.mood);
        match step {
            Step::Agree => {
                let origin = &mut self.origins[channel][index];
                let (first, end) = (span(&mut origin.dice, 0, 50), span(&mut origin.dice, 0, 5));
                match mood {
                    Mood::ResetsAtPlay => self.fail_after(source, end, Loss::Reset, Fault::OriginResetsAtPlay),
                    Mood::Flapping(plays, loss) => {
                        let cause = if loss == Loss::Ended { Fault::OriginEnds } else { Fault::OriginFlaps };
                        self.fail_after(source, Duration::from_millis(plays), loss, cause);
                    }
                    _ => {}
                }
                self.link_step(source, first, Step::Send);
                self.deliver(Input::Opened { source })
            }
            Step::Send => {
                let (now, origin) = (self.now, &mut self.origins[channel][index]);
                let sends = !link.dead && matches!(origin.mood, Mood::Good | Mood::Flapping(..) | Mood::Keyless);
                let key = origin.mood != Mood::Keyless && now >= link.next_key;
                let every = origin.every;
                if key && sends {
                    link.next_key = now + origin.group;
                }
                self.link_step(source, every, Step::Send);
                if !sends {
                    return Ok(());
                }
                link_count(self.links.get_mut(&source));
                let input = self.packet(source, channel, key);
                self.deliver(input)
            }
            Step::Fail(loss) => {
                let origin = &mut self.origins[channel][index];
                let again =
                    self.plan.strikes(Fault::LateSource, &mut origin.dice).then(|| span(&mut origin.dice, 0, 500));
                if let Some(after) = again {
                    self.send_after(after, Input::Lost { source, loss: Loss::Reset });
                }
                let lost = self.deliver(Input::Lost { source, loss });
                self.links.remove(&source);
                lost
            }
        }
    }

    /// The edge would like a key frame.
    pub(in super::super) fn want_key_frame(&mut self, source: SourceId) {
        self.mark(Mark::SourceKeyFrame);
        let now = self.now;
        let Some(link) = self.links.get_mut(&source) else { return };
        if self.origins[link.channel][link.index].obliging {
            link.next_key = now;
        }
    }

    /// Says which fault of which origin an output is the consequence of.
    pub(in super::super) fn blame(&mut self, output: &Output) {
        match *output {
            Output::Note(Note::SourceLost { source, loss, .. }) => {
                let Some(link) = self.links.get(&source) else { return };
                let fault = match loss {
                    Loss::TimedOut if link.mood == Mood::Dripping => Some(Fault::OriginDrips),
                    Loss::TimedOut => Some(Fault::OriginDead),
                    Loss::NoKeyFrame => Some(Fault::OriginKeyless),
                    Loss::Silent => None,
                    _ => link.cause,
                };
                fault.into_iter().for_each(|fault| self.witness.faults.add(fault));
            }
            // Of a title's nobody here knows why.
            Output::Note(Note::ChannelSilent { channel, index, .. }) if (channel.0 as usize) < self.origins.len() => {
                let mut of_it = self
                    .links
                    .values()
                    .filter(|link| (link.channel, link.index) == (channel.0 as usize, index as usize));
                let dead = of_it.any(|link| link.dead);
                self.witness.faults.add(if dead { Fault::OriginBlackHole } else { Fault::OriginSilent });
            }
            _ => {}
        }
    }

    /// An origin's own step: it behaves otherwise for a while.
    pub(in super::super) fn origin(&mut self, channel: usize, index: usize) {
        let attends = self.attends(Actor::Origin(channel as u32, index as u32));
        let origin = &mut self.origins[channel][index];
        if self.healed || origin.steadfast || !attends {
            return;
        }
        let (mood, lasts) = (origin.draw(&self.plan), span(&mut origin.dice, 300, 15_000));
        // Or nobody would ever lose patience.
        let lasts = if mood == Mood::Keyless { lasts + Duration::from_secs(16) } else { lasts };
        if mood == Mood::Good && self.plan.strikes(Fault::OriginReturns, &mut self.origins[channel][index].dice) {
            self.reset_links(channel, index, Fault::OriginReturns);
        }
        self.set_mood(channel, index, mood);
        self.plan_event(self.now + lasts, Event::Origin { channel, index });
    }
}

fn link_count(link: Option<&mut Link>) {
    if let Some(link) = link {
        link.packets += 1;
    }
}

impl Origin {
    fn arrival(&self) -> Duration {
        // Its first packet comes up to 50 ms after the handshake, and its key frame with the packet that is due then.
        self.handshake + self.group + self.every * 2 + Duration::from_millis(50)
    }

    fn draw(&mut self, plan: &Plan) -> Mood {
        let dice = &mut self.dice;
        let fault = *pick(
            dice,
            &[
                Fault::OriginSilent,
                Fault::OriginSilent,
                Fault::OriginDead,
                Fault::OriginBlackHole,
                Fault::OriginRefuses,
                Fault::OriginRefuses,
                Fault::OriginDrips,
                Fault::OriginResetsAtPlay,
                Fault::OriginFlaps,
                Fault::OriginEnds,
                Fault::OriginKeyless,
                Fault::OriginKeyless,
            ],
        );
        if !plan.strikes(fault, dice) {
            return Mood::Good;
        }
        let plays = *pick(dice, &[0, 500, 2_000, 6_000]) + dice.random_range(0..1_000);
        match fault {
            Fault::OriginSilent => Mood::Silent,
            Fault::OriginDead => Mood::Dead,
            Fault::OriginBlackHole => Mood::BlackHole,
            Fault::OriginRefuses => Mood::Refusing(*pick(dice, &REFUSALS)),
            Fault::OriginDrips => Mood::Dripping,
            Fault::OriginResetsAtPlay => Mood::ResetsAtPlay,
            Fault::OriginFlaps => Mood::Flapping(plays, Loss::Reset),
            Fault::OriginEnds => Mood::Flapping(plays, Loss::Ended),
            _ => Mood::Keyless,
        }
    }
}
