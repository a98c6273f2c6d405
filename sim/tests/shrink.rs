//! Journals are judged as the runs that they are of, and failures are shrunk.

use holdfast_sim::shrink::run_taped;
use holdfast_sim::{Options, judge, scenarios};

#[test]
fn what_a_world_finds_right_its_journal_is_judged_to_be() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let mut wrong = Vec::new();
    let (mut calls, mut worlds) = (0, std::time::Duration::ZERO);
    let started = std::time::Instant::now();
    for seed in 0..seeds {
        let at = std::time::Instant::now();
        let (result, tapes) = run_taped("random", seed, &Options::default());
        worlds += at.elapsed();
        result.unwrap_or_else(|failure| panic!("{failure}"));
        match judge(&tapes[0].journal()) {
            Ok(judged) => calls += judged.calls,
            Err(verdict) => wrong.push(format!("{seed}: {verdict}")),
        }
    }
    println!("{calls} calls, {:?}, of which the worlds {worlds:?}", started.elapsed());
    for line in wrong.iter().take(40) {
        println!("{line}");
    }
    assert!(wrong.is_empty(), "{} of {seeds}", wrong.len());
}

#[test]
fn the_journal_of_each_scenario_is_judged_right() {
    for scenario in scenarios().iter().filter(|scenario| !scenario.name.starts_with("net-")) {
        if matches!(scenario.name, "canary" | "evening") {
            continue;
        }
        let (result, tapes) = run_taped(scenario.name, 3, &Options::default());
        result.unwrap_or_else(|failure| panic!("{failure}"));
        for tape in &tapes {
            match judge(&tape.journal()) {
                Ok(judged) => println!("{}: {} calls, mixed {:?}", scenario.name, judged.calls, judged.mixed),
                Err(verdict) => println!("{}: WRONG {verdict}", scenario.name),
            }
        }
    }
}
