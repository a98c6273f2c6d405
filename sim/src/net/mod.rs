//! The whole server over a simulated network: sockets that block, vanish and come late, with real bytes on them.

mod edge;
mod household;
mod origin;
mod panel;
mod peer;
mod player;
mod pulled;
mod scenarios;
mod soak;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use holdfast_core::config::{Config, Endpoint, Live};
use holdfast_core::input::EndReason;
use holdfast_core::journal::{self, Digest};
use holdfast_core::time::Time;
use holdfast_io::server::{Recording, Settings};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Notify;
use turmoil::{Builder, Sim};

use edge::Edge;
pub(crate) use household::SCENARIOS as HOUSEHOLD_SCENARIOS;
use origin::Origin;
use panel::Panel;
use peer::{Peer, Post, Watch};
pub(crate) use pulled::SCENARIOS as PULLED_SCENARIOS;
pub(crate) use scenarios::SCENARIOS;
pub(crate) use soak::SCENARIOS as SOAK_SCENARIOS;

use crate::tape::{self, Tape};
use crate::world::oracle::Broken;
use crate::{Figures, Report, Witness};

/// Since the start of the simulation.
fn now() -> Time {
    Time::from_micros(turmoil::sim_elapsed().unwrap_or_default().as_micros() as u64)
}

/// ms since the start of the simulation.
fn now_ms() -> u64 {
    now().as_micros() / 1000
}

/// What all hosts of one simulation write down.
#[derive(Default)]
pub struct Shared {
    lines: RefCell<Vec<String>>,
    /// By the name of the host.
    edges: RefCell<BTreeMap<&'static str, Rc<Edge>>>,
    origins: RefCell<BTreeMap<&'static str, Origin>>,
    /// The program is told to end.
    drain: Notify,
    posts: RefCell<Vec<Post>>,
    watches: RefCell<BTreeMap<&'static str, Watch>>,
    /// Which publishers were told that they are over, and when.
    told: RefCell<Vec<(&'static str, u64)>>,
    panel: RefCell<Panel>,
    /// Who is there, in truth: publishers, and by the name of its user, or of its stream where nobody logs in, who watches.
    present: RefCell<BTreeMap<String, usize>>,
    /// Statuses of requests that were no POST.
    statuses: RefCell<Vec<(&'static str, u16)>>,
    /// How requests for streams were answered.
    streams: RefCell<Vec<(&'static str, u16)>>,
    /// Sockets of clients that closed both directions: whatever is still sent there is answered with a reset, which this network
    /// keeps to itself until something is sent again.
    gone: RefCell<BTreeSet<SocketAddr>>,
}

impl Shared {
    fn edge(&self, name: &str) -> Option<Rc<Edge>> {
        self.edges.borrow().get(name).cloned()
    }

    /// How many are there of these.
    fn present(&self, who: &str) -> usize {
        self.present.borrow().get(who).copied().unwrap_or(0)
    }

    fn say(&self, who: &str, what: fmt::Arguments<'_>) {
        self.lines.borrow_mut().push(format!("{:?} {who}: {what}", now()));
    }
}

type Act = Box<dyn FnOnce(&mut Sim<'static>, &Shared)>;

/// One simulated network with an edge in it.
pub struct Stage {
    sim: Sim<'static>,
    shared: Rc<Shared>,
    acts: Vec<(u64, Act)>,
    seed: u64,
    /// Moves the moments at which a script acts.
    dice: SmallRng,
    elapsed: u64,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let ms = Duration::from_millis;
        let sim = Builder::new()
            .rng_seed(seed)
            .epoch(SystemTime::UNIX_EPOCH)
            .simulation_duration(Duration::from_secs(3600))
            .tick_duration(ms(1))
            .tcp_capacity(64)
            .udp_capacity(1024)
            .min_message_latency(ms(1))
            .max_message_latency(ms(4))
            .fail_rate(0.0)
            .build();
        let shared = Rc::new(Shared::default());
        Stage { sim, shared, acts: Vec::new(), seed, dice: SmallRng::seed_from_u64(seed), elapsed: 0 }
    }

    /// An edge that publishers come to.
    fn publishing(&mut self) {
        let endpoint = Endpoint { tokens: vec!["secret".into()], ..Endpoint::default() };
        let live = Live { buffer: 256 << 10, idle: Duration::from_secs(20), ..Live::default() };
        let config = Config { endpoints: vec![endpoint], live, ..Config::default() };
        self.edge("edge", config, Settings { recording: Recording::Whole, ..Settings::default() });
    }

    /// An edge on a host of its own.
    fn edge(&mut self, name: &'static str, config: Config, settings: Settings) {
        let shared = self.shared.clone();
        let seed =
            name.bytes().skip(4).fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        self.sim.host(name, move || {
            let serve = edge::serve(shared.clone(), name, config.clone(), settings.clone(), seed);
            async move { Ok(serve.await?) }
        });
    }

    /// A host that does this; an error on its sockets ends it, and is only written down.
    fn peer<F, Script>(&mut self, name: &'static str, script: F)
    where
        F: Fn(Rc<Peer>) -> Script + 'static,
        Script: Future<Output = io::Result<()>> + 'static,
    {
        let (shared, seed, lives) = (self.shared.clone(), self.seed, Cell::new(0));
        self.sim.host(name, move || {
            let peer = Rc::new(Peer::new(name, shared.clone(), seed, lives.replace(lives.get() + 1)));
            let script = script(peer.clone());
            let shared = shared.clone();
            async move {
                if let Err(error) = script.await {
                    shared.say(name, format_args!("{error}"));
                }
                // Its sockets stay open until the host is no more.
                std::future::pending::<()>().await;
                drop(peer);
                Ok(())
            }
        });
    }

    /// Something happens to the network or a host so many ms after the start.
    fn at(&mut self, ms: u64, act: impl FnOnce(&mut Sim<'static>, &Shared) + 'static) {
        self.acts.push((ms, Box::new(act)));
        self.acts.sort_by_key(|(ms, _)| *ms);
    }

    /// The host is silently cut off, then it is no more.
    fn vanish(&mut self, ms: u64, name: &'static str) {
        self.at(ms, move |sim, _| {
            sim.partition(name, "edge");
            sim.crash(name);
        });
    }

    /// A moment that the seed chose, up to so many ms after this one.
    fn about(&mut self, ms: u64, most: u64) -> u64 {
        ms + self.dice.random_range(0..=most)
    }

    /// Lets everything happen until so many ms after the start.
    fn play(&mut self, until: u64) -> Result<(), Broken> {
        while self.elapsed < until {
            while self.acts.first().is_some_and(|(at, _)| *at <= self.elapsed) {
                let (_, act) = self.acts.remove(0);
                act(&mut self.sim, &self.shared);
            }
            let broken = |error: Box<dyn std::error::Error>| Broken { id: "network", what: error.to_string() };
            self.sim.step().map_err(broken)?;
            self.elapsed += 1;
        }
        Ok(())
    }

    /// The POSTs of a host that were answered, in order.
    fn posts(&self, who: &str) -> Vec<Post> {
        self.shared.posts.borrow().iter().filter(|post| post.who == who).cloned().collect()
    }

    fn watch(&self, who: &str) -> Watch {
        self.shared.watches.borrow().get(who).cloned().unwrap_or_default()
    }

    /// How many sessions of the endpoint ended for this reason.
    fn ended(&self, reason: EndReason) -> u64 {
        let Some(edge) = self.shared.edge("edge") else { return 0 };
        let server = edge.server.borrow();
        let place = EndReason::ALL.iter().position(|each| *each == reason).unwrap_or(0);
        server.edge().publish().endpoints().map(|endpoint| endpoint.counts.ended[place]).sum()
    }

    /// What is left: sessions, POSTs without an answer, armed deadlines of the publish room.
    fn left(&self) -> (usize, usize, usize) {
        let Some(edge) = self.shared.edge("edge") else { return (0, 0, 0) };
        let server = edge.server.borrow();
        let publish = server.edge().publish();
        (publish.session_count(), publish.unanswered(), publish.timer_count())
    }

    /// The run is over: its journal must repeat it.
    fn close(self, figures: Figures) -> Result<Report, Broken> {
        let mut digest = Digest::default();
        let lines = self.shared.lines.borrow();
        lines.iter().for_each(|line| digest.update(line.as_bytes()));
        let broken = |what: String| Broken { id: "journal", what };
        let mut events = 0;
        for edge in self.shared.edges.borrow().values() {
            let server = edge.server.borrow();
            let (journal, own) = (server.recorded().journal().unwrap_or_default(), server.recorded().digest());
            let again = journal::replay(&journal, |_| ()).map_err(|fault| broken(fault.to_string()))?;
            if Some(again) != own {
                return Err(broken(format!("replayed to {again}, but the run was {own:?}")));
            }
            digest.update(&again.value().to_le_bytes());
            events += server.recorded().calls();
        }
        let simulated = Duration::from_millis(self.elapsed);
        Ok(Report { hash: digest.value(), figures, events, steps: 0, simulated, witness: Witness::default() })
    }
}

type Script = fn(&mut Stage, &mut Figures) -> Result<(), Broken>;

fn play(script: Script, seed: u64, trace: Option<&mut dyn Write>) -> Result<Report, (Time, Broken)> {
    let mut stage = Stage::new(seed);
    let mut figures = Figures::default();
    let played = script(&mut stage, &mut figures);
    let now = Time::from_micros(stage.elapsed * 1000);
    if let Some(trace) = trace {
        for line in stage.shared.lines.borrow().iter() {
            // Whoever reads the trace may stop reading; the run is over anyway.
            let _ = writeln!(trace, "{line}");
        }
    }
    let shared = stage.shared.clone();
    for (name, edge) in shared.edges.borrow().iter() {
        tape::keep(|| {
            let whole = edge.server.borrow().recorded().journal()?;
            Some(Tape { name: (*name).to_owned(), whole, ..Tape::default() })
        });
    }
    let closed = played.and_then(|()| stage.close(figures));
    // The edges and what they write down hold one another.
    shared.edges.borrow_mut().clear();
    closed.map_err(|broken| (now, broken))
}
