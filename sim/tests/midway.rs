//! Journals whose beginning is gone, as that of every edge that has run for a while, are judged and drawn from there on.

use holdfast_core::config::Config;
use holdfast_core::input::{Input, Note};
use holdfast_core::journal::{Fresh, Log, Mark, Recorded, replay};
use holdfast_sim::judge::{Verdict, judge_by};
use holdfast_sim::shrink::run_taped;
use holdfast_sim::{Options, judge, scenarios, story};

/// What is drawn is looked at here, not how it is told.
struct Wordless;

impl story::Words for Wordless {
    fn note(&self, _note: &Note) -> String {
        String::new()
    }

    fn input(&self, _input: &Input) -> String {
        String::new()
    }
}

const SEEDS: u64 = 60;
/// Snapshots are as near to one another as they can be.
const SMALL: usize = 1;

/// What of a run is left when its beginning is gone: from each snapshot on that a recorder made which kept all it could of the last
/// calls, for each of some moments at which it was asked.
fn turned(journal: &[u8]) -> Vec<Vec<u8>> {
    let log = Log::read(journal).expect("it is whole");
    let mut all = Vec::new();
    let mut edge = Recorded::ring(log.head.clone(), SMALL);
    for calls in log.calls.chunks(log.calls.len().div_ceil(3).max(1)) {
        Log { calls: calls.to_vec(), ..Log::default() }.record(&mut edge);
        let mut parts: Vec<Vec<u8>> = Vec::new();
        edge.since(Mark::default(), |fresh| match fresh {
            Fresh::Segment { head, .. } => parts.push(head.to_vec()),
            Fresh::Frame(bytes) | Fresh::Open(bytes) => {
                parts.iter_mut().for_each(|part| part.extend_from_slice(&bytes))
            }
        });
        parts.retain(|part| Log::opening(part).is_ok_and(|opening| opening.snapshot.is_some()));
        all.extend(parts);
    }
    all
}

#[test]
fn what_is_right_from_the_beginning_is_right_from_the_middle_on() {
    let (mut journals, mut calls, mut wrong) = (0, 0, Vec::new());
    let mut look = |name: &str, seed: u64| {
        let (result, tapes) = run_taped(name, seed, &Options::default());
        result.unwrap_or_else(|failure| panic!("{failure}"));
        for tape in &tapes {
            for part in turned(&tape.journal()) {
                journals += 1;
                match judge(&part) {
                    Ok(judged) => calls += judged.calls,
                    Err(verdict) => wrong.push(format!("{name} {seed}, from call {}: {verdict}", first_call(&part))),
                }
            }
        }
    };
    (0..SEEDS).for_each(|seed| look("random", seed));
    let left_out = |name: &str| name.starts_with("net-") || name.starts_with("canary") || name == "evening";
    scenarios().iter().filter(|scenario| !left_out(scenario.name)).for_each(|scenario| look(scenario.name, 3));
    println!("{calls} calls of {journals} journals that begin in the middle");
    assert!(wrong.is_empty(), "{} of {journals}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(journals > SEEDS, "{journals}");
}

fn first_call(journal: &[u8]) -> u64 {
    Log::opening(journal).ok().and_then(|opening| opening.snapshot).map_or(0, |snapshot| snapshot.calls)
}

/// The same by rules that find somebody alive who was displaced as dead.
fn stricter(journal: &[u8]) -> Config {
    let mut rules = Log::opening(journal).expect("it is whole").head.config;
    rules.endpoints.iter_mut().for_each(|endpoint| endpoint.dead_after *= 20);
    rules
}

#[test]
fn what_breaks_behind_the_snapshot_is_found_there() {
    for seed in 0..400 {
        let (_, tapes) = run_taped("random", seed, &Options::default());
        let whole = tapes[0].journal();
        let rules = stricter(&whole);
        let Err(Verdict::Broken { id: "publish-3", call, at, .. }) = judge_by(&whole, Some(&rules)) else { continue };
        for part in turned(&whole).iter().filter(|part| first_call(part) < call) {
            let mut last = 0;
            replay(part, |step| last = step.call).expect("it repeats");
            if last < call {
                continue;
            }
            // Whose session that is was there before: what it is judged by is what was taken from the snapshot.
            let found = judge_by(part, Some(&rules)).expect_err("it is broken from there on, too");
            let Verdict::Broken { id, call: own, at: when, what } = &found else { panic!("{found}") };
            assert_eq!((*id, *own, *when), ("publish-3", call, at), "{what}");
            let story =
                story::of_journal(part, &|_| Box::new(Wordless)).expect("it repeats").broken(*when, *id, what.clone());
            let page = story::page(&story);
            assert!(page.contains("<strong>publish-3</strong> is broken at"), "{what}");
            return;
        }
    }
    panic!("nobody was displaced behind a snapshot");
}
