//! Channels against the whole server: origins that are silent, dead, slow, or closing, and edges of edges.

use std::rc::Rc;

use holdfast_core::config::{Channel, Config, Live};
use holdfast_core::input::{Loss, SessionId};
use holdfast_core::pull::ChannelCounts;
use holdfast_io::origin::Origin as Url;
use holdfast_io::server::{Recording, Settings};

use super::origin::{self, Mood, Origin};
use super::peer::Peer;
use super::{Broken, Stage, play};
use crate::world::oracle::shows;
use crate::{Figures, Scenario};

macro_rules! scenario {
    ($name:literal, $script:ident, $shows:literal) => {
        Scenario { name: $name, shows: $shows, play: |seed, trace| play($script, seed, trace) }
    };
}

/// Every scenario of channels.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario!(
        "net-silent-origin",
        silent,
        "an origin of 3 edges is silent for 20 s: at most 9 opens, back within 100 ms"
    ),
    scenario!("net-black-hole", black_hole, "packets of the origin are held: the other one within the bound"),
    scenario!(
        "net-close-at-play",
        close_at_play,
        "an origin closes at play each time: the other one at once, the first is spared"
    ),
    scenario!(
        "net-reset-at-play",
        reset_at_play,
        "an origin resets at play each time: the other one at once, the first is spared"
    ),
    scenario!("net-drip", drip, "an answer of a byte a second ends at connect_timeout"),
    scenario!(
        "net-failback",
        failback,
        "a silent primary never takes over; when it sends again it does, without a gap"
    ),
    scenario!("net-chain", chain, "an edge of an edge: both play, and an origin's silence costs each few opens"),
];

impl Stage {
    pub fn origin(&mut self, name: &'static str, mood: Mood) {
        let shared = self.shared.clone();
        let number = shared.origins.borrow().len() as u32;
        let id = SessionId::from_parts(number, 64);
        shared.origins.borrow_mut().insert(name, Origin { mood, opens: 0, id });
        self.sim.host(name, move || {
            let serve = origin::serve(shared.clone(), name);
            async move { Ok(serve.await?) }
        });
    }

    /// An edge of two origins, `one` and, where that fails, `two`, which is good.
    fn edge_of_two(&mut self, one: Mood) -> Result<(), Broken> {
        self.origin("one", one);
        self.origin("two", Mood::Good);
        self.pulling("edge", &["http://one/live.ts", "http://two/live.ts"])
    }

    pub fn mood_at(&mut self, ms: u64, name: &'static str, mood: Mood) {
        self.at(ms, move |_, shared| {
            if let Some(origin) = shared.origins.borrow_mut().get_mut(name) {
                origin.mood = mood;
            }
        });
    }

    /// An edge that pulls the channel `ch` from these, in this order.
    fn pulling(&mut self, name: &'static str, urls: &[&str]) -> Result<(), Broken> {
        let urls: Result<Vec<Url>, _> = urls.iter().map(|url| Url::parse(url)).collect();
        let urls = urls.map_err(|error| Broken { id: "script", what: error.to_string() })?;
        let channel = Channel { name: "ch".into(), sources: urls.len() as u32, ..Channel::default() };
        let live = Live { buffer: 256 << 10, ..Live::default() };
        let config = Config { channels: vec![channel], live, ..Config::default() };
        let instance = name.bytes().fold(1, |id: u128, byte| id * 256 + u128::from(byte));
        let settings = Settings { recording: Recording::Whole, origins: vec![urls], instance, ..Settings::default() };
        self.edge(name, config, settings);
        Ok(())
    }

    fn tuned(&mut self, name: &'static str, edge: &'static str, from: u64) {
        self.peer(name, move |peer: Rc<Peer>| async move {
            peer.at(from).await;
            peer.watch_at(edge, "ch", None).await
        });
    }

    fn opens(&self, origin: &str) -> u64 {
        self.shared.origins.borrow().get(origin).map_or(0, |origin| origin.opens)
    }

    fn counts(&self, edge: &str) -> ChannelCounts {
        let edge = self.shared.edge(edge);
        let counts =
            edge.and_then(|edge| edge.server.borrow().edge().pull().states().next().map(|state| *state.counts));
        counts.unwrap_or_default()
    }

    /// The viewer is still there, has lost nothing, and saw media of these origins in this order.
    fn tuned_to(&self, viewer: &str, origins: &[&str]) -> Result<(), Broken> {
        let watch = self.watch(viewer);
        let of: Vec<_> =
            origins.iter().filter_map(|name| self.shared.origins.borrow().get(name).map(|origin| origin.id)).collect();
        shows!(watch.faults == 0, "{viewer} got {} packets that don't follow the ones before", watch.faults);
        shows!(watch.ended.is_none(), "the stream of {viewer} ended at {:?}", watch.ended);
        shows!(watch.sessions == of, "{viewer} saw media of {:?}, not of {of:?}", watch.sessions);
        let late = self.elapsed - watch.last;
        shows!(late < 300, "{viewer} has seen nothing for {late} ms");
        Ok(())
    }
}

/// Detecting silence, a handshake, a group of pictures, and what the network adds.
const FAILOVER: u64 = 3_000 + 50 + 1_040 + 200;

fn silent(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.origin("origin", Mood::Good);
    let edges = [("edge-1", "viewer-1"), ("edge-2", "viewer-2"), ("edge-3", "viewer-3")];
    for (edge, viewer) in edges {
        stage.pulling(edge, &["http://origin/live.ts"])?;
        let from = stage.about(500, 500);
        stage.tuned(viewer, edge, from);
    }
    let falls = stage.about(8_000, 2_000);
    stage.mood_at(falls, "origin", Mood::Silent);
    stage.mood_at(falls + 20_000, "origin", Mood::Good);
    stage.play(falls)?;
    let before = stage.opens("origin");
    stage.play(falls + 20_000)?;
    let opens = stage.opens("origin") - before;
    stage.play(falls + 20_100)?;
    let back =
        edges.iter().map(|(_, viewer)| stage.watch(viewer).last.saturating_sub(falls + 20_000)).min().unwrap_or(0);
    shows!(before == 3 && opens <= 9, "{before} opens at first, {opens} in 20 s of silence");
    shows!(back > 0, "a viewer has no media 100 ms after the origin has");
    stage.play(falls + 25_000)?;
    shows!(stage.opens("origin") == before + opens, "it is asked again while it sends");
    for (_, viewer) in edges {
        stage.tuned_to(viewer, &["origin"])?;
    }
    figures.add("opens", opens);
    Ok(())
}

fn black_hole(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.edge_of_two(Mood::Good)?;
    stage.tuned("viewer", "edge", 500);
    let falls = stage.about(8_000, 2_000);
    stage.at(falls, |sim, _| sim.hold("one", "edge"));
    stage.play(falls + 15_000)?;
    stage.tuned_to("viewer", &["one", "two"])?;
    let gap = stage.watch("viewer").gap;
    shows!(gap <= FAILOVER, "no media for {gap} ms");
    figures.add("gap_ms", gap);
    Ok(())
}

fn close_at_play(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.edge_of_two(Mood::ClosesAtPlay)?;
    let from = stage.about(500, 1_000);
    stage.tuned("viewer", "edge", from);
    stage.play(from + 1_500)?;
    stage.tuned_to("viewer", &["two"])?;
    stage.play(from + 60_000)?;
    stage.tuned_to("viewer", &["two"])?;
    let opens = stage.opens("one");
    shows!((2..=8).contains(&opens), "the closing origin is asked {opens} times in a minute");
    shows!(stage.counts("edge").lost[Loss::Ended as usize] == opens, "{:?}", stage.counts("edge"));
    figures.add("opens", opens);
    Ok(())
}

fn reset_at_play(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.edge_of_two(Mood::ResetsAtPlay)?;
    let from = stage.about(500, 1_000);
    stage.tuned("viewer", "edge", from);
    stage.play(from + 1_500)?;
    stage.tuned_to("viewer", &["two"])?;
    stage.play(from + 60_000)?;
    stage.tuned_to("viewer", &["two"])?;
    let opens = stage.opens("one");
    shows!((2..=8).contains(&opens), "the resetting origin is asked {opens} times in a minute");
    let lost = stage.counts("edge").lost;
    shows!(lost[Loss::Ended as usize] == 0 && lost.iter().sum::<u64>() == opens, "{:?}", stage.counts("edge"));
    figures.add("opens", opens);
    Ok(())
}

fn drip(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.edge_of_two(Mood::Dripping)?;
    let from = stage.about(500, 1_000);
    stage.tuned("viewer", "edge", from);
    stage.play(from + 2_900)?;
    shows!(stage.opens("two") == 0, "it gives up too early");
    stage.play(from + 3_100)?;
    shows!(stage.opens("two") == 1, "it does not give up");
    stage.play(from + 8_000)?;
    stage.tuned_to("viewer", &["two"])?;
    figures.add("timed_out", stage.counts("edge").lost[Loss::TimedOut as usize]);
    Ok(())
}

fn failback(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.edge_of_two(Mood::Silent)?;
    stage.tuned("viewer", "edge", 500);
    let back = stage.about(60_000, 5_000);
    stage.mood_at(back, "one", Mood::Good);
    stage.play(back)?;
    stage.tuned_to("viewer", &["two"])?;
    let (flaps, opens) = (stage.counts("edge").switches, stage.opens("one"));
    shows!(flaps == 0 && opens <= 8, "{flaps} flaps, {opens} opens of a silent primary in a minute");
    stage.play(back + 50_000)?;
    stage.tuned_to("viewer", &["two", "one"])?;
    let gap = stage.watch("viewer").gap;
    shows!(gap < 300, "no media for {gap} ms");
    figures.add("flaps", flaps);
    figures.add("gap_ms", gap);
    Ok(())
}

fn chain(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.origin("origin", Mood::Good);
    stage.pulling("edge-1", &["http://origin/live.ts"])?;
    stage.pulling("edge-2", &["http://edge-1/live/ch.ts"])?;
    let from = stage.about(500, 500);
    stage.tuned("viewer-1", "edge-1", from);
    stage.tuned("viewer-2", "edge-2", from + 3_000);
    let falls = stage.about(10_000, 2_000);
    stage.mood_at(falls, "origin", Mood::Silent);
    stage.mood_at(falls + 20_000, "origin", Mood::Good);
    stage.play(falls + 20_200)?;
    for viewer in ["viewer-1", "viewer-2"] {
        stage.tuned_to(viewer, &["origin"])?;
    }
    let opens = (stage.opens("origin"), stage.counts("edge-2").opens);
    shows!(opens.0 <= 4 && opens.1 <= 5, "{opens:?} opens");
    stage.play(falls + 25_000)?;
    stage.tuned_to("viewer-2", &["origin"])?;
    figures.add("opens", opens.0);
    figures.add("opens_of_the_edge", opens.1);
    Ok(())
}
