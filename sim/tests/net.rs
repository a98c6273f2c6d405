//! Every scenario of the network, twice each, and the random one over fixed seeds.

use std::thread;

use holdfast_sim::{Failure, Scenario, run, scenarios};

/// Of the random network.
const SEEDS: u64 = 50;

/// Those that must hold.
fn of_the_network() -> impl Iterator<Item = &'static Scenario> {
    scenarios().iter().filter(|scenario| scenario.name.starts_with("net-") && scenario.name != "net-canary")
}

/// Does this to each, in two threads: a simulated network belongs to the thread it runs in.
fn in_halves<T: Copy + Send>(all: &[T], each: impl Fn(T) + Copy + Send) {
    let half = |from: usize| {
        let own: Vec<T> = all.iter().copied().skip(from).step_by(2).collect();
        move || own.into_iter().for_each(each)
    };
    thread::scope(|scope| {
        let halves = [scope.spawn(half(0)), scope.spawn(half(1))];
        halves.into_iter().for_each(|half| half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
}

#[test]
fn every_scenario_shows_what_it_must_and_repeats() {
    let all: Vec<&Scenario> = of_the_network().filter(|scenario| scenario.name != "net-random").collect();
    assert!(all.len() >= 29, "{}", all.len());
    in_halves(&all, |scenario| (1..=2).for_each(|seed| twice(scenario.name, seed)));
}

#[test]
fn whatever_the_network_does_those_are_counted_who_are_there() {
    // The first of the seeds are run again, and must be the same.
    let seeds: Vec<u64> = (1..=SEEDS).collect();
    in_halves(&seeds, |seed| match seed {
        1 | 2 => twice("net-random", seed),
        _ => match run("net-random", seed, None) {
            Ok(report) => println!("net-random {seed} {:016x} {}", report.hash, report.figures),
            Err(failure) => panic!("{failure}"),
        },
    });
}

#[test]
fn a_panic_of_a_task_within_a_host_is_no_green_run() {
    // Without `--cfg tokio_unstable` it would be.
    let failure = run("net-canary", 1, None).expect_err("it is swallowed");
    assert!(matches!(failure, Failure::Broken { id: "panic" | "network", .. }), "{failure}");
}

fn twice(name: &str, seed: u64) {
    let (mut trace, mut again) = (Vec::new(), Vec::new());
    let first = run(name, seed, Some(&mut trace)).unwrap_or_else(|failure| panic!("{failure}"));
    let second = run(name, seed, Some(&mut again)).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(trace == again, "{name} {seed}: the traces differ");
    assert_eq!(first, second, "{name} {seed}");
    println!("{name} {seed} {:016x} {}", first.hash, first.figures);
}
