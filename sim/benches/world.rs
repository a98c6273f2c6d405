//! How fast the simulated world is, everything in it judged: simulated seconds for a CPU second, and what an event costs.
//!
//! An event is what the world does of itself (a packet burst, a read, a step of somebody) or a call of the core. Only CPU time of
//! this thread counts, the best of some rounds.

use std::error::Error;
use std::time::Duration;

use holdfast_sim::{Crowd, Journal, Report, run};
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What rounds cost and did.
struct Measured {
    /// CPU seconds.
    cpu: f64,
    /// Simulated seconds.
    simulated: f64,
    events: f64,
    calls: f64,
}

fn main() -> Outcome<()> {
    // Started as a test it only shows that it runs.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let measured = args.iter().any(|arg| arg == "--bench");
    // Only the lines with this in them, as `cargo bench --bench world -- WORDS` asks for.
    let only = args.iter().find(|arg| !arg.starts_with('-')).cloned().unwrap_or_default();
    let wanted = |words: &str| words.contains(&only);
    let (scale, rounds, seeds) = if measured { (1, 5, 300) } else { (100, 1, 2) };

    println!("{:<34} {:>14} {:>12} {:>12} {:>12}", "", "simulated s/s", "events/s", "calls/s", "ns an event");
    if wanted("random seeds") {
        tell("random seeds", &best(rounds, || (0..seeds).map(|seed| run("random", seed, None)).collect())?);
    }
    for journal in [Journal::Kept, Journal::None] {
        for viewers in [0, 8] {
            let eight = Crowd { publishers: 8, viewers, lasts: Duration::from_secs(3600 / scale), journal };
            let words = format!("8 sessions, {viewers} viewers{}", of(journal));
            if wanted(&words) {
                tell(&words, &best(rounds, || Ok(vec![eight.run(1)?]))?);
            }
        }
    }
    for journal in [Journal::Kept, Journal::None] {
        let mut first = None;
        for actors in [100, 1000, 10_000] {
            let lasts = Duration::from_secs(400_000 / u64::from(actors) / scale);
            let crowd = Crowd { publishers: actors / 2, viewers: actors / 2, lasts, journal };
            let words = format!("{actors} actors{}", of(journal));
            if !wanted(&words) {
                continue;
            }
            let all = best(rounds.min(3), || Ok(vec![crowd.run(1)?]))?;
            let cost = all.cpu / all.events;
            let ratio = cost / *first.get_or_insert(cost);
            tell(&format!("{words} ({ratio:.2}×)"), &all);
        }
    }
    Ok(())
}

fn of(journal: Journal) -> &'static str {
    if journal == Journal::Kept { "" } else { ", no journal" }
}

/// The round that cost the least.
fn best(rounds: u32, mut round: impl FnMut() -> Result<Vec<Report>, holdfast_sim::Failure>) -> Outcome<Measured> {
    let cpu = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let mut best: Option<Measured> = None;
    for _ in 0..rounds {
        let before = cpu();
        let reports = round()?;
        let cpu = cpu() - before;
        let sum = |of: fn(&Report) -> f64| reports.iter().map(of).sum::<f64>();
        let measured = Measured {
            cpu,
            simulated: sum(|report| report.simulated.as_secs_f64()),
            events: sum(|report| (report.events + report.steps) as f64),
            calls: sum(|report| report.events as f64),
        };
        if best.as_ref().is_none_or(|best| cpu < best.cpu) {
            best = Some(measured);
        }
    }
    best.ok_or_else(|| "no rounds".into())
}

fn tell(words: &str, Measured { cpu, simulated, events, calls }: &Measured) {
    let per = |of: &f64| of / cpu;
    println!(
        "{words:<34} {:>14.0} {:>12.0} {:>12.0} {:>12.0}",
        per(simulated),
        per(events),
        per(calls),
        cpu * 1e9 / events
    );
}
