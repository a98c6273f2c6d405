//! Journals are judged as the runs that they are of, and failures are shrunk to what they take.

use holdfast_core::config::Config;
use holdfast_core::journal::Log;
use holdfast_sim::shrink::{Calls, Patience, run_taped, shrink, shrink_journal};
use holdfast_sim::{Actor, Failure, Fault, Faults, Options, judge, run_with, scenarios};

const SEEDS: u64 = 150;

#[test]
fn what_a_world_finds_right_its_journal_is_judged_to_be() {
    let (mut calls, mut wrong) = (0, Vec::new());
    for seed in 0..SEEDS {
        let (result, tapes) = run_taped("random", seed, &Options::default());
        result.unwrap_or_else(|failure| panic!("{failure}"));
        match judge(&tapes[0].journal()) {
            Ok(judged) => {
                assert!(judged.mixed.is_empty(), "{seed}");
                calls += judged.calls;
            }
            Err(verdict) => wrong.push(format!("{seed}: {verdict}")),
        }
    }
    println!("{calls} calls of {SEEDS} journals");
    assert!(wrong.is_empty(), "{} of {SEEDS}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_journal_of_each_scenario_is_judged_right() {
    // Eight hours of a thousand viewers are seconds; canaries are wrong by what only their actors know.
    let left_out = |name: &str| name.starts_with("net-") || name.starts_with("canary") || name == "evening";
    for scenario in scenarios().iter().filter(|scenario| !left_out(scenario.name)) {
        let (result, tapes) = run_taped(scenario.name, 3, &Options::default());
        result.unwrap_or_else(|failure| panic!("{failure}"));
        for tape in &tapes {
            judge(&tape.journal()).unwrap_or_else(|verdict| panic!("{}: {verdict}", scenario.name));
        }
    }
}

/// Somebody dead is displaced in this journal, and by the rules that it is judged by it is not dead yet.
fn wrong_journal() -> (Vec<u8>, Config) {
    for seed in 0..SEEDS {
        let (_, tapes) = run_taped("random", seed, &Options::default());
        let journal = tapes[0].journal();
        let mut rules = Log::read(&journal).expect("a journal").head.config;
        rules.endpoints.iter_mut().for_each(|endpoint| endpoint.dead_after *= 20);
        if let Some(calls) = shrink_journal(&journal, Some(&rules), |_| ()).expect("a journal")
            && calls.id == "publish-3"
        {
            return (journal, rules);
        }
    }
    panic!("nobody is displaced in {SEEDS} seeds");
}

#[test]
fn without_time_the_failure_itself_is_what_there_is() {
    // Evidence comes later than anybody was told: the calls alone do not show it, and the run with less in it is not looked for.
    let none = Patience::within(std::time::Duration::ZERO);
    let (mut lines, options) = (0, Options::default());
    let shrunk = shrink("canary", 7, &options, none, |_| lines += 1).expect("a scenario").expect("a failure");
    assert!(shrunk.cut_short && lines > 1, "{lines}");
    assert!(matches!(shrunk.failure, Failure::Broken { id: "publish-3", seed: 7, .. }), "{:?}", shrunk.failure);
    let whole = shrink("canary", 7, &options, Patience::ENDLESS, |_| ()).expect("a scenario").expect("a failure");
    assert!(!whole.cut_short);
}

#[test]
fn a_failure_ends_at_a_handful_of_calls_and_with_the_same_invariant() {
    let (journal, rules) = wrong_journal();
    let least: Calls = shrink_journal(&journal, Some(&rules), |_| ()).expect("a journal").expect("a failure");
    println!("{} of {} calls:\n{least}", least.log.calls.len(), least.before);
    assert!(least.log.calls.len() <= 10, "{} calls are left", least.log.calls.len());
    let again = shrink_journal(&least.log.write(), Some(&rules), |_| ()).expect("a journal").expect("a failure");
    assert_eq!((again.id, again.log.calls.len()), (least.id, least.log.calls.len()));
    // By its own rules it is right.
    judge(&least.log.write()).unwrap_or_else(|verdict| panic!("{verdict}"));
}

#[test]
fn a_failure_of_a_world_is_shrunk_to_what_it_takes_and_names_a_run_that_repeats_it() {
    let untold = Options { untold: true, ..Options::default() };
    let broken = |seed: &u64| run_with("random", *seed, &untold, None).is_err();
    let seed = (0..SEEDS).find(broken).expect("the judges are asleep");
    let shrunk = shrink("random", seed, &untold, Patience::ENDLESS, |_| ()).expect("a scenario").expect("a failure");
    let (before, after) = shrunk.plan.expect("a plan");
    println!("{} of {before:?}: {after:?}", shrunk.failure);
    assert!(after.faults <= 4 && after.actors <= 8, "{after:?} of {before:?}");
    let Failure::Broken { id, options, .. } = &shrunk.failure else { panic!("{}", shrunk.failure) };
    let again = run_with("random", seed, options, None).expect_err("the same failure");
    assert_eq!(again, shrunk.failure);
    let text = shrunk.failure.to_string();
    assert!(
        text.contains(id) && text.contains("holdfast sim --scenario random") && text.contains("--actors"),
        "{text}"
    );
}

#[test]
fn what_breaks_nothing_is_not_shrunk() {
    assert!(shrink("w1", 1, &Options::default(), Patience::ENDLESS, |_| ()).expect("a scenario").is_none());
    let script = Options { storm: Some(std::time::Duration::ZERO), ..Options::default() };
    assert_eq!(run_with("w1", 1, &script, None), Err(Failure::Script { name: "w1" }));
}

#[test]
fn faults_and_actors_that_are_chosen_are_there_and_no_others() {
    let drawn = [Fault::Stall, Fault::ClockBack, Fault::EvidenceDelay, Fault::EntropyRepeat];
    let bites = |options: &Options, fault: Fault| -> u64 {
        let run = |seed| run_with("random", seed, options, None).unwrap_or_else(|failure| panic!("{failure}"));
        (0..10).map(|seed| run(seed).witness.faults.of(fault)).sum()
    };
    let chosen = Options { faults: Faults::only([Fault::Stall]), ..Options::default() };
    for fault in drawn {
        assert_eq!(bites(&chosen, fault) > 0, fault == Fault::Stall, "{fault:?}");
    }
    let without: Options = Options { faults: "-stall,+late-tick".parse().expect("faults"), ..Options::default() };
    assert_eq!(bites(&without, Fault::Stall), 0);
    assert!(bites(&without, Fault::LateTick) > 0);
    let alone = Options { cast: Some([Actor::Publisher(0)].into()), ..Options::default() };
    let report = run_with("random", 3, &alone, None).unwrap_or_else(|failure| panic!("{failure}"));
    let all = run_with("random", 3, &Options::default(), None).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.figures.of("posts") > Some(0) && report.figures.of("posts") < all.figures.of("posts"));
    assert_eq!(report.witness.faults.of(Fault::Kick), 0);
}
