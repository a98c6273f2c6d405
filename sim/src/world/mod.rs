//! The bare core in a world of our own: actors that live and die, a driver that comes late, a media side that lies.
//!
//! One queue of events in simulated time drives everything. Publishers' packets are no events: what came of them is
//! computed when the core looks ([`stream`]). After each call the oracles judge the core by the actors' [`truth`].

mod canary;
pub(crate) mod chance;
mod court;
pub(crate) mod crowd;
mod driver;
pub(crate) mod hearing;
mod named;
pub(crate) mod options;
pub(crate) mod oracle;
mod playback;
mod publisher;
mod pull;
mod queue;
pub(crate) mod random;
mod rows;
mod side;
mod stream;
mod titles;
mod truth;
mod viewer;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::time::Duration;

use holdfast_core::config::{self, Config};
use holdfast_core::input::{
    AllocationId, ChannelId, Input, Output, ProviderId, RequestId, SessionId, SourceId, UserId, Writer,
};
use holdfast_core::journal::{self, Head};
use holdfast_core::time::Time;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use chance::{CLOCK_BACK, Fault, Mark, Plan};
use court::Court;
use driver::Driver;
use oracle::{Allowance, Bench, Broken};
use publisher::Publisher;
use pull::origin::{self, Link, Origin};
use pull::truth::Channel;
use queue::Queue;
use side::{Senses, Side};
use titles::provider::{self, Provider};
use titles::relay::{self, Relay};
use titles::{Device, DeviceStep};
use truth::Truth;
use viewer::{Seats, Viewer};
pub use witness::Witness;

use crate::tape::Taped;
use crate::{Figures, Report};

pub(crate) use named::SCENARIOS;
pub(crate) use playback::SCENARIOS as PLAYBACK_SCENARIOS;
pub(crate) use pull::{EDGES_SCENARIOS, SCENARIOS as PULL_SCENARIOS};
pub(crate) use titles::SCENARIOS as TITLES_SCENARIOS;

/// The scenario that is drawn from its seed.
pub(crate) const RANDOM: &str = "random";
/// More calls than this within one simulated second are a live-lock, in a world of the usual size.
const CALLS_A_SECOND: u64 = 20_000;
/// Everything is judged each so many calls, in a world of the usual size.
const JUDGE_ALL: u64 = 1000;

/// What is still to happen.
#[derive(Clone, Debug)]
enum Event {
    /// An input reaches the driver. Boxed: all other events are short.
    Input(Box<Input>),
    /// The media side moves what came of a session into its slot.
    Pulse(SessionId),
    /// The driver stands still.
    Stall,
    /// The driver goes on.
    Thaw,
    /// A publisher's own step; void if its life has changed since.
    Publisher { index: usize, life: u32, step: publisher::Step },
    /// A viewer's own step.
    Viewer { index: usize, life: u32, step: viewer::Step },
    /// A step of a connection to an origin; void once it is closed.
    Link { source: SourceId, step: origin::Step },
    /// An origin behaves otherwise.
    Origin { channel: usize, index: usize },
    /// An operator does something.
    Operator,
    /// A step of a connection to a provider; void once it is closed.
    Account { allocation: AllocationId, step: provider::Step },
    /// A provider behaves otherwise.
    Provider { index: usize },
    /// A step of a response; void once it is over.
    Relay { request: RequestId, step: relay::Step },
    /// A step of a player of titles; void if its life has changed since.
    Device { index: usize, life: u32, step: DeviceStep },
}

/// The seed of one actor of a run: far from the seeds of its neighbours.
fn generator(seed: u64, actor: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ actor.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// Everything: the core and all that lies to it.
pub(crate) struct World<'t> {
    now: Time,
    seed: u64,
    edge: Taped,
    truth: Truth,
    plan: Plan,
    /// Who takes part; `None`: everybody.
    cast: Option<BTreeSet<options::Actor>>,
    allowance: Allowance,
    witness: Witness,
    queue: Queue<Event>,
    dice: SmallRng,
    driver: Driver,
    side: Side,
    publishers: Vec<Publisher>,
    viewers: Vec<Viewer>,
    seats: Seats,
    /// By channel and place in its list.
    origins: Vec<Vec<Origin>>,
    links: BTreeMap<SourceId, Link>,
    /// Whether the driver asks what will become of a source's media before it hands it in.
    asks_first: bool,
    /// By the number of the request, from 1.
    owners: Vec<Option<Owner>>,
    providers: Vec<Provider>,
    /// By account: what its provider counts.
    counts: Vec<provider::Count>,
    connections: BTreeMap<AllocationId, provider::Link>,
    relays: BTreeMap<RequestId, Relay>,
    devices: Vec<Device>,
    /// By title: who has it.
    titles: Vec<Vec<ProviderId>>,
    /// How long the server waits for a provider's answer.
    patience: Duration,
    /// By how much players of titles take their time.
    leisure: u32,
    /// The distance between two packets of a provider's live streams.
    live_every: Duration,
    healed: bool,
    requests: u64,
    serial: u64,
    calls: u64,
    /// Events of the queue that happened.
    steps: u64,
    this_second: (u64, u64),
    /// More calls than this within one simulated second are a live-lock.
    most_a_second: u64,
    /// Everything is judged each so many calls.
    judge_all: u64,
    scratch: Vec<Output>,
    trace: Option<&'t mut dyn Write>,
}

/// Whose request it is.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Publisher(usize),
    Viewer(usize),
    Device(usize),
    /// One of a crowd that leaves as soon as it is let in.
    Passer,
}

impl<'t> World<'t> {
    pub fn new(config: Config, seed: u64, plan: Plan, trace: Option<&'t mut dyn Write>) -> Self {
        let users = config.users.len();
        Self::with_titles(config, users, seed, plan, trace)
    }

    /// The same, and users from `first` on play titles.
    pub fn with_titles(config: Config, first: usize, seed: u64, plan: Plan, trace: Option<&'t mut dyn Write>) -> Self {
        let edge = Taped::on(Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: Some(seed),
            config: config.clone(),
            ..Head::default()
        });
        let early = if plan.has(Fault::ClockBack) { CLOCK_BACK } else { Duration::ZERO };
        let numbered = || config.channels.iter().enumerate();
        let channel = |(place, settings): (usize, &config::Channel)| {
            Some(Channel::new(settings, edge.edge().pull().feed_of(ChannelId(place as u32))?))
        };
        let channels = numbered().filter_map(channel).collect();
        let origin =
            |place: usize, index: u32| Origin::new(generator(seed, 20_000 + 100 * place as u64 + u64::from(index)));
        let origins = numbered()
            .map(|(place, settings)| (0..settings.sources).map(|index| origin(place, index)).collect())
            .collect();
        let of_titles = (first as u32..config.users.len() as u32).map(UserId).collect();
        let provider = |place: usize| Provider::new(generator(seed, 30_000 + place as u64));
        let mut world = World {
            now: Time::ZERO,
            seed,
            truth: Truth::new(&config, &of_titles, edge.edge().feeds().feeds(), channels),
            edge,
            allowance: Allowance { slack: plan.slack(), unseen: plan.unseen_at_most(), early },
            plan,
            cast: None,
            witness: Witness::default(),
            queue: Queue::default(),
            dice: generator(seed, 1),
            driver: Driver::new(generator(seed, 2)),
            side: Side::new(generator(seed, 3)),
            publishers: Vec::new(),
            viewers: Vec::new(),
            seats: Seats::default(),
            origins,
            links: BTreeMap::new(),
            asks_first: false,
            owners: Vec::new(),
            providers: (0..config.providers.len()).map(provider).collect(),
            counts: config
                .providers
                .iter()
                .flat_map(|provider| &provider.accounts)
                .map(|_| Default::default())
                .collect(),
            connections: BTreeMap::new(),
            relays: BTreeMap::new(),
            devices: Vec::new(),
            titles: Vec::new(),
            patience: Duration::from_secs(3),
            leisure: 1,
            live_every: Duration::from_millis(100),
            healed: false,
            requests: 0,
            serial: 0,
            calls: 0,
            steps: 0,
            this_second: (0, 0),
            most_a_second: CALLS_A_SECOND,
            judge_all: JUDGE_ALL,
            scratch: Vec::new(),
            trace,
        };
        world.truth.titles.slack = world.allowance.slack;
        world.note_arrivals();
        world
    }

    fn plan_event(&mut self, at: Time, event: Event) {
        self.queue.push(at.max(self.now), event);
    }

    fn send_after(&mut self, delay: Duration, input: Input) {
        self.plan_event(self.now + delay, Event::Input(Box::new(input)));
    }

    fn request(&mut self, owner: Option<Owner>) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.owners.push(owner);
        request
    }

    /// Whose a request is; nobody's, if it was made up.
    fn owner(&self, request: RequestId) -> Option<Owner> {
        self.owners.get(request.0.checked_sub(1)? as usize).copied().flatten()
    }

    fn say(&mut self, what: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            // Whoever reads the trace may stop reading; the run goes on.
            let _ = writeln!(trace, "{:?} {what}", self.now);
        }
    }

    /// Lets everything happen up to and with `until`.
    pub fn run(&mut self, until: Time) -> Result<(), Broken> {
        loop {
            let event = self.queue.next();
            let deadline = self.driver.due(self.now, self.edge.edge().deadline(), &self.plan);
            match (event, deadline) {
                (_, Some(at)) if at <= until && event.is_none_or(|event| at <= event) => {
                    self.now = at.max(self.now);
                    self.wake()?;
                }
                (Some(at), _) if at <= until => {
                    self.now = at;
                    self.steps += 1;
                    let Some(event) = self.queue.pop() else { break };
                    let happened = self.happen(event);
                    self.edge.note(self.now, &self.witness.faults);
                    happened?;
                }
                _ => break,
            }
        }
        self.now = until.max(self.now);
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Input(input) => self.deliver(*input),
            Event::Pulse(session) => self.pulse(session),
            Event::Stall => {
                self.stall();
                Ok(())
            }
            Event::Thaw => self.thaw(),
            Event::Publisher { index, life, step } => self.publisher(index, life, step),
            Event::Viewer { index, life, step } => self.viewer(index, life, step),
            Event::Link { source, step } => self.link(source, step),
            Event::Origin { channel, index } => {
                self.origin(channel, index);
                Ok(())
            }
            Event::Operator => self.operate(),
            Event::Account { allocation, step } => self.account_step(allocation, step),
            Event::Provider { index } => {
                self.provider_step(index);
                Ok(())
            }
            Event::Relay { request, step } => self.relay(request, step),
            Event::Device { index, life, step } => self.device(index, life, step),
        }
    }

    /// Gives the core one input, now, and lets everybody act on what comes out.
    fn call(&mut self, input: Input) -> Result<(), Broken> {
        match input {
            Input::Media { from: Writer::Source(source), .. } if self.asks_first => self.ask_first(source, input),
            // What is due is done first, so that whatever follows would be of it.
            input if self.truth.titles.is_stale(&input) => {
                self.handle(Input::Tick)?;
                self.handle(input)
            }
            input => self.handle(input),
        }
    }

    fn handle(&mut self, input: Input) -> Result<(), Broken> {
        self.budget()?;
        if self.trace.is_some() && input != Input::Tick {
            self.say(format_args!("→ {}", brief(&input)));
            // What it is at is read where it never returns, too.
            let _ = self.trace.as_mut().map(|trace| trace.flush());
        }
        let clock = self.driver.clock(self.now, &self.plan, &mut self.witness);
        // With a clock that goes back, what is due may be so only now.
        let stale = self.truth.titles.is_stale(&input) && !self.plan.has(Fault::ClockBack);
        self.court().before(clock, &input);
        let mut senses = Senses {
            now: self.now,
            truth: &self.truth,
            plan: &self.plan,
            side: &mut self.side,
            witness: &mut self.witness,
            asked: 0,
        };
        self.edge.handle(clock, input.clone(), &mut senses);
        let mut outputs = std::mem::take(&mut self.scratch);
        outputs.extend(std::iter::from_fn(|| self.edge.poll()));
        for output in &outputs {
            if self.trace.is_some() {
                self.say(format_args!("← {output:?}"));
            }
            self.blame(output);
        }
        self.edge.note(self.now, &self.witness.faults);
        self.court().after(&input, &outputs, stale)?;
        if self.calls.is_multiple_of(self.judge_all) {
            self.court().all()?;
        }
        for output in outputs.drain(..) {
            self.react(output)?;
        }
        self.scratch = outputs;
        Ok(())
    }

    fn court(&mut self) -> Court<'_> {
        let (truth, witness) = (&mut self.truth, &mut self.witness);
        Court { now: self.now, edge: self.edge.edge(), truth, witness, allowance: self.allowance }
    }

    fn budget(&mut self) -> Result<(), Broken> {
        self.calls += 1;
        let second = self.now.as_micros() / 1_000_000;
        self.this_second = (second, if second == self.this_second.0 { self.this_second.1 + 1 } else { 1 });
        let most = self.most_a_second;
        if self.this_second.1 <= most {
            return Ok(());
        }
        let due = self.edge.edge().deadline();
        let what = format!("more than {most} calls within one simulated second; due at {due:?}");
        Err(Broken { id: "live-lock", what })
    }

    fn bench(&self) -> Bench<'_> {
        Bench { truth: &self.truth, now: self.now, allowance: self.allowance }
    }

    fn react(&mut self, output: Output) -> Result<(), Broken> {
        match output {
            Output::Start { session, .. } => self.negotiate(session),
            Output::Accept { request, session } => {
                let at = self.now + self.side.pulse;
                self.plan_event(at, Event::Pulse(session));
                match self.owner(request) {
                    Some(Owner::Publisher(index)) => self.told(index, Some(session)),
                    Some(Owner::Passer) => self.pass(session),
                    Some(Owner::Viewer(_) | Owner::Device(_)) | None => {}
                }
            }
            Output::Refuse { request, reason } => match self.owner(request) {
                Some(Owner::Publisher(index)) => self.told(index, None),
                Some(Owner::Viewer(index)) => self.turned_away(index),
                Some(Owner::Device(index)) => return self.device_refused(index, request, reason),
                Some(Owner::Passer) | None => {}
            },
            Output::Finish { session, .. } => self.cut(session),
            Output::Joined { request, viewer } => {
                return match self.owner(request) {
                    Some(Owner::Viewer(index)) => self.watching(index, viewer),
                    Some(Owner::Device(index)) => self.device_watches(index, request, viewer),
                    _ => Ok(()),
                };
            }
            Output::Ready { feed } => {
                self.readable(feed);
                self.live_readable(feed);
            }
            Output::ViewerEnd { viewer, .. } => {
                self.viewer_ended(viewer);
                return self.live_ended(viewer);
            }
            Output::Rebuild { session } => self.side.rebuilt(session),
            Output::KeyFrame { session } => self.side.key_frame(session),
            Output::Open { source, grant: Some(grant), .. } => self.use_grant(grant, provider::Use::Source(source)),
            Output::Open { source, channel, index, grant: None } => self.open_link(source, channel, index),
            Output::Close { source } => match self.truth.titles.sources.get(&source).map(|row| row.allocation) {
                Some(allocation) => self.close_soon(allocation),
                None => self.close_link(source),
            },
            Output::SourceKeyFrame { source } => self.want_key_frame(source),
            Output::Polls { viewer, token, .. } => self.polls(viewer, token),
            Output::Playlist { .. } | Output::Note(_) => {}
            Output::Fetch { request, grant, .. } => return self.begin_relay(request, grant),
            Output::Cut { request, .. } => return self.cut_relay(request),
            Output::Drop { allocation } => return self.drop_connection(allocation),
        }
        Ok(())
    }

    /// Checks that the run's journal repeats it.
    pub fn close(self, figures: Figures) -> Result<Report, Broken> {
        self.bench().all(self.edge.edge())?;
        let digest = self.edge.digest().unwrap_or_default();
        let broken = |what| Err(Broken { id: "journal", what });
        if let Some(journal) = self.edge.journal() {
            match journal::replay(&journal, |_| ()) {
                Ok(again) if again == digest => {}
                Ok(again) => return broken(format!("replayed to {again}, but the run was {digest}")),
                Err(fault) => return broken(fault.to_string()),
            }
            // The end of it alone, from a snapshot on, is the same run.
            match journal::replay(&self.edge.end().unwrap_or_default(), |_| ()) {
                Ok(again) if again == digest => {}
                Ok(again) => return broken(format!("its end replayed to {again}, but the run was {digest}")),
                Err(fault) => return broken(format!("its end: {fault}")),
            }
        }
        let (hash, simulated) = (digest.value(), self.now.since(Time::ZERO));
        Ok(Report { hash, figures, events: self.calls, steps: self.steps, simulated, witness: self.witness })
    }

    fn mark(&mut self, mark: Mark) {
        self.witness.marks.add(mark);
    }
}

/// An input in a line.
pub(crate) fn brief(input: &Input) -> String {
    match input {
        Input::Media { feed, from, data, random_access } => {
            let mark = if random_access.is_some() { ", random access" } else { "" };
            format!("Media {{ feed: {feed}, from: {from:?}, {} bytes{mark} }}", data.len())
        }
        input => format!("{input:?}"),
    }
}
