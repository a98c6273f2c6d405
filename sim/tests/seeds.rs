//! The random world over fixed seeds, and every scenario twice.

use std::thread;

use holdfast_core::time::Time;
use holdfast_sim::{Failure, Report, Scenario, Witness, run, scenarios};

const SEEDS: u64 = 2000;

/// Those of the world that must hold.
fn of_the_world() -> impl Iterator<Item = &'static Scenario> {
    scenarios().iter().filter(|scenario| !scenario.name.starts_with("canary") && !scenario.name.starts_with("net-"))
}

#[test]
fn every_invariant_holds_over_the_fixed_seeds_and_every_fault_bites() {
    let half = |from: u64| {
        let mut all = Witness::default();
        for seed in (from..SEEDS).step_by(2) {
            match run("random", seed, None) {
                Ok(Report { witness, .. }) => all.merge(&witness),
                Err(failure) => panic!("{failure}"),
            }
        }
        all
    };
    let mut all = Witness::default();
    thread::scope(|scope| {
        let halves = [scope.spawn(move || half(0)), scope.spawn(move || half(1))];
        halves.into_iter().for_each(|half| match half.join() {
            Ok(witness) => all.merge(&witness),
            Err(panic) => std::panic::resume_unwind(panic),
        });
    });
    let inert: Vec<_> = all.faults.missing().chain(all.marks.missing()).collect();
    assert!(inert.is_empty(), "never bit, or never reached, over {SEEDS} seeds: {inert:?}");
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
}
