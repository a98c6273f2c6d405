//! Looks for a broken invariant: the random world over its seeds, then every scenario.
//!
//! `hunt SEEDS SECONDS [ID]` stops at the first one that breaks `ID`, or any where none is named, and after so many seconds of
//! processor time. It prints `scenario id seed tried seconds` for each invariant when it is first found broken, the one that was looked
//! for last.

use std::{env, fs};

use holdfast_sim::{Failure, run, scenarios};

fn main() {
    let mut args = env::args().skip(1);
    let seeds: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(200);
    let seconds: f32 = args.next().and_then(|text| text.parse().ok()).unwrap_or(40.0);
    let wanted = args.next();
    // A panic of the core is a find like any other.
    std::panic::set_hook(Box::new(|_| {}));
    let mut known: Vec<&str> = Vec::new();
    let random = (0..seeds).map(|seed| ("random", seed));
    // Some scenarios take seconds, and nothing in them is not in the others.
    let named = scenarios().iter().map(|scenario| scenario.name).filter(|name| !matches!(*name, "random" | "evening"));
    let named = named.filter(|name| !name.starts_with("canary") && !name.starts_with("net-")).map(|name| (name, 1));
    for ((scenario, seed), tried) in random.chain(named).zip(1..) {
        if spent() > seconds {
            return;
        }
        let Err(Failure::Broken { id, .. }) = run(scenario, seed, None) else { continue };
        if known.contains(&id) {
            continue;
        }
        known.push(id);
        println!("{scenario} {id} {seed} {tried} {:.1}", spent());
        if wanted.as_deref().is_none_or(|wanted| wanted == id) {
            return;
        }
    }
}

/// Processor time of this thread in seconds: whatever else the machine does, the same is found in it.
fn spent() -> f32 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default() as f32 / 1e9
}
