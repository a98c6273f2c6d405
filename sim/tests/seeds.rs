//! The random world over fixed seeds, and every scenario twice.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_core::time::Time;
use holdfast_sim::{Failure, Report, Scenario, Witness, run, scenarios};

/// So many seeds of the random world, or as many as there are in this time, but these at least, and more while a fault has not bitten
/// or a mark was not reached.
const SEEDS: u64 = 20_000;
const LONG: Duration = Duration::from_secs(60);
const ENOUGH: u64 = 1500;

/// Those of the world that must hold.
fn of_the_world() -> impl Iterator<Item = &'static Scenario> {
    scenarios().iter().filter(|scenario| !scenario.name.starts_with("canary") && !scenario.name.starts_with("net-"))
}

/// What the runs came to.
#[derive(Default)]
struct Seen {
    witness: Witness,
    runs: u64,
    events: u64,
    simulated: Duration,
}

impl Seen {
    fn add(&mut self, report: &Report) {
        self.witness.merge(&report.witness);
        (self.runs, self.events) = (self.runs + 1, self.events + report.events);
        self.simulated += report.simulated;
    }

    fn inert(&self) -> Vec<&'static str> {
        self.witness.faults.missing().chain(self.witness.marks.missing()).collect()
    }
}

#[test]
fn every_invariant_holds_over_the_seeds_and_every_fault_bites() {
    let (started, next, seen) = (Instant::now(), AtomicU64::new(0), Mutex::new(Seen::default()));
    let half = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let late = seed >= ENOUGH && started.elapsed() >= LONG;
            if seed >= SEEDS || late && seen.lock().unwrap().inert().is_empty() {
                return;
            }
            let report = run("random", seed, None).unwrap_or_else(|failure| panic!("{failure}"));
            seen.lock().unwrap().add(&report);
        }
    };
    thread::scope(|scope| {
        let halves = [scope.spawn(half), scope.spawn(half)];
        for half in halves {
            half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let seen = seen.into_inner().unwrap();
    let Seen { witness, runs, events, simulated } = &seen;
    let took = started.elapsed();
    println!("{runs} seeds, {events} events, {simulated:?} of simulated time in {took:?}");
    for (name, count) in witness.faults.iter().chain(witness.marks.iter()) {
        println!("{count:>10}  {name}");
    }
    let inert = seen.inert();
    assert!(inert.is_empty(), "never bit, or never reached, over {runs} seeds: {inert:?}");
}

#[test]
fn every_scenario_shows_what_it_must_and_repeats() {
    for scenario in of_the_world() {
        // Eight hours of a thousand viewers are seconds.
        let seeds = if scenario.name == "evening" { 1 } else { 50 };
        for seed in 0..seeds {
            let (mut trace, mut again) = (Vec::new(), Vec::new());
            let first = run(scenario.name, seed, Some(&mut trace)).unwrap_or_else(|failure| panic!("{failure}"));
            let second = run(scenario.name, seed, Some(&mut again)).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(first, second, "{} {seed}", scenario.name);
            assert!(trace == again, "{} {seed}: the traces differ", scenario.name);
        }
    }
}

/// What no journal of the corpus shows, as it took too many calls or never ended.
#[test]
fn what_once_broke_holds() {
    for seed in
        [1925, 7609, 702_100, 704_579, 712_848, 717_705, 721_566, 803_925, 806_292, 808_883, 828_866, 11_259, 905_557]
    {
        run("random", seed, None).unwrap_or_else(|failure| panic!("{failure}"));
    }
    run("evening", 1, None).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn seeds_differ() {
    for scenario in of_the_world() {
        let hash = |seed| run(scenario.name, seed, None).map(|report| report.hash);
        assert_ne!(hash(1), hash(2), "{}", scenario.name);
    }
}

#[test]
fn each_canary_is_found_for_its_reason() {
    for (name, invariant, found) in [("canary", "publish-3", "displaced"), ("canary-peace", "publish-7", "waits")] {
        for seed in 0..20 {
            let failure = run(name, seed, None).expect_err("the judges are asleep");
            let Failure::Broken { id, what, at, .. } = &failure else { panic!("{failure}") };
            assert!(*id == invariant && what.contains(found), "{failure}");
            assert!(*at != Time::NEVER && *at > Time::from_micros(5_500_000), "{failure}");
            assert!(
                failure.to_string().ends_with(&format!("holdfast sim --scenario {name} --seed {seed}")),
                "{failure}"
            );
        }
    }
}

#[test]
fn a_scenario_that_is_not_there_is_named() {
    assert_eq!(run("w99", 1, None), Err(Failure::Unknown { name: "w99".into() }));
    let text = |name: &str| run(name, 1, None).map(drop).map_err(|failure| failure.to_string());
    let near = "there is no scenario rando (did you mean random, net-random?); `holdfast sim --list` shows them";
    assert_eq!(text("rando"), Err(near.to_owned()));
}
