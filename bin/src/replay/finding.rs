//! Which invariant is broken, when, and to whom?

use holdfast_core::journal::{Head, replay};
use holdfast_core::time::Time;
use holdfast_sim::judge as by_invariants;
use holdfast_sim::judge::Verdict;

use super::{caught, told, words};

/// What judging a journal came to.
#[derive(Debug)]
pub(super) enum Judged {
    /// It could not be judged.
    Not,
    /// Nothing is broken; what was judged, in words.
    Right(String),
    Broken(Finding),
}

/// A broken invariant.
#[derive(Debug)]
pub(super) struct Finding {
    /// In which call.
    pub call: u64,
    pub at: Time,
    pub id: &'static str,
    /// What was found.
    pub what: String,
    /// All of that, with the time of the day and with whom it happened to.
    pub line: String,
}

impl Judged {
    /// What judging all parts of a journal came to.
    pub fn all(parts: impl Iterator<Item = Judged>) -> Judged {
        let mut all = Judged::Not;
        for part in parts {
            all = match (all, part) {
                (broken @ Judged::Broken(_), _) | (_, broken @ Judged::Broken(_)) => broken,
                (Judged::Not, other) | (other, Judged::Not) => other,
                (Judged::Right(one), Judged::Right(other)) if one == other => Judged::Right(one),
                (Judged::Right(one), Judged::Right(other)) => {
                    Judged::Right(format!("{one}; behind what is lost: {other}"))
                }
            };
        }
        all
    }
}

/// Judges a journal, or what of it is whole, by every invariant that it tells of. `first` is when the first call was.
pub(super) fn judge(bytes: &[u8], head: &Head, first: Option<Time>) -> Judged {
    match by_invariants(bytes) {
        Ok(judged) => {
            let users = judged.mixed.iter().filter_map(|user| head.config.users.get(user.0 as usize));
            let names: Vec<String> = users.map(|user| format!("\"{}\"", user.name)).collect();
            let right = "no invariant is broken, of those that a journal tells of";
            Judged::Right(match names.len() {
                0 => String::from(right),
                count => format!(
                    "{right}; {} {}, who {} endpoints or channels and titles too, it is not judged whose turn which place was (play-3, \
                     play-4, play-6, play-8): all else is",
                    if count == 1 { "of user" } else { "of the users" },
                    names.join(", "),
                    if count == 1 { "plays" } else { "play" },
                ),
            })
        }
        Err(Verdict::Broken { call, at, id, what }) => {
            let line = format!("{id} is broken: {what}; {}", scene((bytes, head, first), call, at));
            Judged::Broken(Finding { call, at, id, what, line })
        }
        Err(verdict @ Verdict::Undecided) => Judged::Right(format!("not judged by the invariants: {verdict}")),
        // What is wrong with it is told for itself.
        Err(Verdict::Unfit(_) | Verdict::NotFromTheBeginning) => Judged::Not,
    }
}

/// When that was, what went in, and what was done.
fn scene((bytes, head, first): (&[u8], &Head, Option<Time>), wanted: u64, at: Time) -> String {
    let settings = told::settings(&head.config);
    let mut told = Vec::new();
    // It has been run before: whatever is wrong with it has been told.
    let _ = caught(|| {
        replay(bytes, |step| {
            if step.call == wanted {
                told.push(words::input(step.input, &settings).unwrap_or_else(|| told::due(step.input).to_owned()));
                told.extend(step.outputs.iter().filter_map(|output| words::output(output, &settings)));
            }
        })
    });
    let day = head.started.and_then(|started| told::timestamp(started.saturating_add(at.as_micros())));
    let day = day.map(|day| day.strftime("%Y-%m-%d %H:%M:%S%.3f UTC, ").to_string()).unwrap_or_default();
    let since = told::since(at.since(first.unwrap_or(Time::ZERO)));
    format!("{day}{since}, call {wanted}: {}", told.join(" → "))
}
