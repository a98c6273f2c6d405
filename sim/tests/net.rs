//! Every scenario of the network, twice each.

use std::thread;

use holdfast_sim::{Scenario, run, scenarios};

#[test]
fn every_scenario_shows_what_it_must_and_repeats() {
    let of_the_network: Vec<_> = scenarios().iter().filter(|scenario| scenario.name.starts_with("net-")).collect();
    assert!(of_the_network.len() >= 12);
    // A simulated network belongs to the thread it runs in.
    thread::scope(|scope| {
        let halves = of_the_network.chunks(of_the_network.len().div_ceil(2));
        let halves: Vec<_> = halves.map(|half| scope.spawn(|| half.iter().for_each(|each| twice(each)))).collect();
        halves.into_iter().for_each(|half| half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
}

fn twice(scenario: &Scenario) {
    for seed in 1..=2 {
        let (mut trace, mut again) = (Vec::new(), Vec::new());
        let first = run(scenario.name, seed, Some(&mut trace)).unwrap_or_else(|failure| panic!("{failure}"));
        let second = run(scenario.name, seed, Some(&mut again)).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(trace == again, "{} {seed}: the traces differ", scenario.name);
        assert_eq!(first, second, "{} {seed}", scenario.name);
        println!("{} {seed} {:016x} {}", scenario.name, first.hash, first.figures);
    }
}
