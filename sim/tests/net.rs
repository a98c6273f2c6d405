//! Every scenario of the network, twice each.

use holdfast_sim::{run, scenarios};

#[test]
fn every_scenario_shows_what_it_must_and_repeats() {
    for scenario in scenarios().iter().filter(|scenario| scenario.name.starts_with("net-")) {
        for seed in 1..=3 {
            let (mut trace, mut again) = (Vec::new(), Vec::new());
            let first = run(scenario.name, seed, Some(&mut trace)).unwrap_or_else(|failure| panic!("{failure}"));
            let second = run(scenario.name, seed, Some(&mut again)).unwrap_or_else(|failure| panic!("{failure}"));
            assert!(trace == again, "{} {seed}: the traces differ", scenario.name);
            assert_eq!(first, second, "{} {seed}", scenario.name);
            println!("{} {seed} {:016x} {}", scenario.name, first.hash, first.figures);
        }
    }
}
