//! Judges a journal: whatever a world judges that does not take knowing what the actors do.
//!
//! These are left out, because no journal says what they are about:
//!
//! | id | what is left out |
//! |---|---|
//! | `publish-3`, `publish-4`, `publish-9` | packets that the core was never told of: what a publisher sent is what it was told when it looked |
//! | `publish-4` | that nobody waits for a slot while every holder sends without a pause |
//! | `publish-6`, `publish-7`, `publish-8` | that in a world at peace all waiting ends and nothing is left |
//! | `pull-5` | that media flows again where an origin is well: which one is, nobody says |
//! | `pull-8` | that nobody is refused for want of an origin that is well |
//! | `feed-3` | that a viewer which reads all that it is offered has read all |
//! | `account-2` | the provider's own count of its connections |
//! | `play-16` | that in a world at peace each title is had |
//!
//! Users that play titles are judged by what must never be and by what must be in time, not place by place: how many places they use,
//! that they have an answer, and what became of it. So are those that watch feeds, too ([`Judged::mixed`]): `play-3`, `play-4`, `play-6`
//! and `play-8` do not say whose turn a place of theirs is. What they watch is judged as what everybody watches.
//!
//! A journal that begins in the middle of a run is judged from there on. What the edge kept by then is believed; what it did not keep
//! is unknown until something says it: what a publisher had sent before the core looks at it next, when each chunk came but the
//! newest, when connections to providers were closed last.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use holdfast_core::config::Config;
use holdfast_core::input::UserId;
use holdfast_core::journal::{Extent, JournalFault, Log, replay};
use holdfast_core::time::Time;

use crate::plain::plain;
use crate::shrink::Again;
use crate::shrink::quiet::quietly;
use crate::shrink::script::{HEARINGS, Script};
use crate::sides::Sides;
use crate::world::Witness;
use crate::world::hearing::{Hearing, Lag};
use crate::world::oracle::Broken;

/// What a journal is that breaks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// How many calls were judged.
    pub calls: u64,
    /// How much time passes in it.
    pub spans: Duration,
    /// Which branches were taken, and which faults bit as far as it can be told.
    pub witness: Witness,
    /// Users that watch feeds and play titles, too: whose turn which of their places is was not followed.
    pub mixed: BTreeSet<UserId>,
}

/// Why a journal is not judged right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It cannot be read, or does not repeat.
    Unfit(JournalFault),
    /// Calls of the middle of a run alone: without what they were made with they cannot be made again ([`judge_log`]).
    NotFromTheBeginning,
    /// Each time it was judged there was more to excuse in it.
    Undecided,
    /// An invariant does not hold.
    Broken {
        /// In which call, from 1.
        call: u64,
        /// When.
        at: Time,
        /// The invariant's id.
        id: &'static str,
        /// What was found.
        what: String,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Unfit(fault) => write!(f, "{fault}"),
            Verdict::NotFromTheBeginning => {
                write!(f, "it begins in the middle of a run, so that calls of it cannot be left out")
            }
            Verdict::Undecided => write!(f, "how late its driver was cannot be told: it cannot be judged"),
            Verdict::Broken { call, at, id, what } => write!(f, "{id} is broken at {at:?} by call {call}: {what}"),
        }
    }
}

impl std::error::Error for Verdict {}

/// Plays a journal, judges each call of it, and checks that it repeats. One that begins in the middle of a run is judged from there
/// on: what was there by then is taken as it stood.
///
/// # Errors
/// The journal breaks an invariant, cannot be read, or does not repeat; of one that is cut off what is whole is judged first.
pub fn judge(bytes: &[u8]) -> Result<Judged, Verdict> {
    judge_by(bytes, None)
}

/// The same by other rules than those that the edge was configured with.
///
/// # Errors
/// As those of [`judge`].
pub fn judge_by(bytes: &[u8], rules: Option<&Config>) -> Result<Judged, Verdict> {
    judge_as(bytes, rules, &BTreeSet::new())
}

/// The same where these users are judged as who plays titles, whatever they play.
fn judge_as(bytes: &[u8], rules: Option<&Config>, players: &BTreeSet<UserId>) -> Result<Judged, Verdict> {
    let extent = Extent::of(bytes, |_, _| ()).map_err(Verdict::Unfit)?;
    // What is behind that may be anything.
    let bytes = &bytes[..extent.checked];
    let opening = Log::opening(bytes).map_err(Verdict::Unfit)?;
    let rules = rules.unwrap_or(&opening.head.config);
    let mut sides = Sides::new(&opening.head.config);
    if let Some(edge) = opening.snapshot.as_ref().and_then(|snapshot| snapshot.restore(&opening.head.config)) {
        sides.adopt(&edge);
    }
    let first = quietly(|| replay(bytes, |step| sides.step(&step)).map(drop));
    let (mut of_titles, mixed) = sides.of_titles();
    of_titles.extend(players);
    let mut lag = Lag::default();
    for _ in 0..HEARINGS {
        let heard = hear(bytes, (&opening, rules), &of_titles, lag);
        let more = Lag { slack: lag.slack.max(heard.measured.slack), unseen: lag.unseen.max(heard.measured.unseen) };
        if heard.broken.is_some() && more != lag {
            // There was more to excuse in it than was thought.
            lag = more;
            continue;
        }
        if let Some(broken) = heard.broken {
            return Err(broken);
        }
        if let Ok(Err(fault)) = first {
            return Err(Verdict::Unfit(fault));
        }
        if let Some(fault) = extent.fault {
            return Err(Verdict::Unfit(fault));
        }
        let Heard { calls, spans, witness, .. } = heard;
        return Ok(Judged { calls, spans, witness, mixed });
    }
    Err(Verdict::Undecided)
}

/// What one hearing of a journal came to.
struct Heard {
    calls: u64,
    spans: Duration,
    witness: Witness,
    measured: Lag,
    broken: Option<Verdict>,
}

/// Whose turn it is, where something panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Core,
    Judge,
}

/// Judges each call.
fn hear(bytes: &[u8], (opening, rules): (&Log, &Config), of_titles: &BTreeSet<UserId>, lag: Lag) -> Heard {
    let config = &opening.head.config;
    let mut hearing = Hearing::new(config, rules, of_titles, lag);
    if let Some(snapshot) = &opening.snapshot {
        // One that does not fit is no fault of the run: the journal is refused for it.
        let _ = hearing.begin(snapshot);
    }
    if opening.head.started.is_some() {
        hearing.real();
    }
    let begun = opening.snapshot.as_ref().map_or(Time::ZERO, |snapshot| snapshot.now);
    let (mut calls, mut number, mut last) = (0, opening.snapshot.as_ref().map_or(0, |snapshot| snapshot.calls), begun);
    let mut broken = None;
    let mut turn = Turn::Core;
    let played = quietly(|| {
        replay(bytes, |step| {
            (calls, number, last) = (calls + 1, step.call, step.now);
            if broken.is_some() {
                return;
            }
            turn = Turn::Judge;
            let mut env = Again(step.answers.iter());
            let verdict = hearing.call(step.now, step.input.clone(), &mut env, &mut |_, _, _| ());
            let found = verdict.err().map(|Broken { id, what }| Verdict::Broken {
                call: step.call,
                at: step.now,
                id,
                what: plain(&what),
            });
            broken = found;
            turn = Turn::Core;
        })
    });
    if broken.is_none() && played.is_ok() {
        let verdict = quietly(|| hearing.all()).unwrap_or_else(|what| Err(Broken { id: "judge", what }));
        broken =
            verdict.err().map(|Broken { id, what }| Verdict::Broken { call: number, at: last, id, what: plain(&what) });
    }
    if let (None, Err(what)) = (&broken, played) {
        broken = Some(match turn {
            Turn::Core => Verdict::Broken { call: number + 1, at: last, id: "panic", what },
            Turn::Judge => Verdict::Broken { call: number, at: last, id: "judge", what },
        });
    }
    let (measured, witness) = (hearing.measured, hearing.witness);
    Heard { calls, spans: last.since(begun), witness, measured, broken }
}

/// Judges calls that need not come to what they came to once: those of another version of the core, or some of a run's. What
/// the core asks for and was not asked for then is answered by what is known.
///
/// # Errors
/// An invariant is broken, or the calls are not those of a run from its beginning.
pub fn judge_log(log: Log) -> Result<Judged, Verdict> {
    if log.snapshot.is_some() {
        return Err(Verdict::NotFromTheBeginning);
    }
    let spans = log.calls.last().map_or(Duration::ZERO, |call| call.now.since(Time::ZERO));
    let script = Script::new(log);
    let played = script.play(&(0..script.len()).collect::<Vec<_>>());
    let calls = played.calls.len() as u64;
    match played.broken {
        Some((at, broken)) => Err(Verdict::Broken { call: calls, at, id: broken.id, what: plain(&broken.what) }),
        None => Ok(Judged { calls, spans, witness: played.witness, mixed: script.mixed() }),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::journal::Extent;

    use super::*;
    use crate::shrink::run_taped;
    use crate::{Options, scenarios};

    const SEEDS: u64 = 200;

    /// Everybody, as if each of them played titles, too.
    fn everybody(journal: &[u8]) -> BTreeSet<UserId> {
        let config = Log::opening(journal).expect("it is whole").head.config;
        (0..config.users.len() as u32).map(UserId).collect()
    }

    #[test]
    fn what_is_right_is_right_for_users_that_watch_feeds_and_play_titles() {
        let mut wrong = Vec::new();
        let mut look = |name: &str, seed| {
            let (result, tapes) = run_taped(name, seed, &Options::default());
            result.unwrap_or_else(|failure| panic!("{failure}"));
            for journal in tapes.iter().map(|tape| tape.journal()) {
                if let Err(verdict) = judge_as(&journal, None, &everybody(&journal)) {
                    wrong.push(format!("{name} {seed}: {verdict}"));
                }
            }
        };
        (0..SEEDS).for_each(|seed| look("random", seed));
        let left_out = |name: &str| name.starts_with("net-") || name.starts_with("canary") || name == "evening";
        scenarios().iter().filter(|scenario| !left_out(scenario.name)).for_each(|scenario| look(scenario.name, 3));
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// Rules by which what happened was wrong: each is found by its own id, whoever plays what.
    #[test]
    fn what_is_wrong_is_found_also_where_users_watch_feeds_and_play_titles() {
        type Rule = (&'static str, fn(&mut Config));
        let stricter: [Rule; 5] = [
            ("publish-3", |rules| rules.endpoints.iter_mut().for_each(|endpoint| endpoint.dead_after *= 20)),
            ("pull-1", |rules| rules.channels.iter_mut().for_each(|channel| channel.no_input_timeout *= 20)),
            ("pull-8", |rules| rules.channels.iter_mut().for_each(|channel| channel.start_timeout *= 20)),
            ("play-1", |rules| rules.users.iter_mut().for_each(|user| user.max_connections = 1)),
            ("account-2", |rules| {
                let accounts = rules.providers.iter_mut().flat_map(|provider| &mut provider.accounts);
                accounts.for_each(|account| account.max_connections = account.max_connections.min(1));
            }),
        ];
        let mut found = BTreeSet::new();
        for seed in 0..SEEDS {
            let (_, tapes) = run_taped("random", seed, &Options::default());
            let journal = tapes[0].journal();
            for (id, change) in stricter.iter().filter(|(id, _)| !found.contains(id)).collect::<Vec<_>>() {
                let mut rules = Log::opening(&journal).expect("it is whole").head.config;
                change(&mut rules);
                let verdict = judge_as(&journal, Some(&rules), &everybody(&journal));
                if matches!(&verdict, Err(Verdict::Broken { id: own, .. }) if own == id) {
                    found.insert(*id);
                }
            }
        }
        let missing: Vec<_> = stricter.iter().map(|(id, _)| *id).filter(|id| !found.contains(id)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// Where power was lost, nothing is said of the edge but what stands before.
    #[test]
    fn what_breaks_off_is_no_fault_of_the_edge_wherever_bytes_of_its_last_frame_are_lost() {
        let (_, tapes) = run_taped("w1", 1, &Options::default());
        let whole = tapes[0].journal();
        let calls = judge(&whole).expect("it is right").calls;
        let frame = Extent::of(&whole[..whole.len() - 1], |_, _| ()).expect("it has a head").checked;
        let mut judged = 0;
        for from in (frame + 1..whole.len()).step_by(37) {
            for lost in [1, 2, 5, 40] {
                let (before, behind) = (&whole[..from], &whole[(from + lost).min(whole.len())..]);
                let zeros = vec![0; lost.min(whole.len() - from)];
                for wrong in [[before, behind].concat(), [before, &zeros, behind].concat()] {
                    if wrong == whole {
                        continue;
                    }
                    judged += 1;
                    let verdict = judge(&wrong);
                    assert!(
                        matches!(&verdict, Err(Verdict::Unfit(JournalFault::Truncated { call, .. })) if *call <= calls),
                        "{from}, {lost}: {verdict:?}"
                    );
                }
            }
        }
        assert!(judged > 100, "{judged}");
    }
}
