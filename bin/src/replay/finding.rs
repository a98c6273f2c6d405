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
    pub at: Time,
    pub id: &'static str,
    /// What was found.
    pub what: String,
    /// All of that, with the time of the day and with whom it happened to.
    pub line: String,
}

/// Judges a journal by every invariant that it tells of.
pub(super) fn judge(bytes: &[u8], head: &Head) -> Judged {
    match by_invariants(bytes) {
        Ok(judged) => {
            let mixed = judged.mixed.and_then(|user| head.config.users.get(user.0 as usize));
            Judged::Right(match mixed {
                Some(user) => format!(
                    "not judged by the invariants: user \"{}\" watches feeds and plays titles too, which no judge follows",
                    user.name
                ),
                None => String::from("no invariant is broken, of those that a journal tells of"),
            })
        }
        Err(Verdict::Broken { call, at, id, what }) => {
            let line = format!("{id} is broken: {what}; {}", scene(bytes, head, call, at));
            Judged::Broken(Finding { at, id, what, line })
        }
        Err(verdict @ Verdict::Undecided) => Judged::Right(format!("not judged by the invariants: {verdict}")),
        // What is wrong with it is told for itself.
        Err(Verdict::Unfit(_) | Verdict::NotFromTheBeginning) => Judged::Not,
    }
}

/// When that was, what went in, and what was done.
fn scene(bytes: &[u8], head: &Head, wanted: u64, at: Time) -> String {
    let settings = told::settings(head);
    let (mut first, mut told) = (None, Vec::new());
    // It has been run before: whatever is wrong with it has been told.
    let _ = caught(|| {
        replay(bytes, |step| {
            first.get_or_insert(step.now);
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
