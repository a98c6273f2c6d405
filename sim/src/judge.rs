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
//! In a run in which one user watches feeds and plays titles, too, only panics and live-locks are looked for.

use std::fmt;
use std::time::Duration;

use holdfast_core::input::UserId;
use holdfast_core::journal::{JournalFault, Log, replay};
use holdfast_core::time::Time;

use crate::shrink::script::Script;
use crate::world::Witness;

/// What a journal is that breaks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// How many calls were judged.
    pub calls: u64,
    /// How much time passes in it.
    pub spans: Duration,
    /// Which branches were taken, and which faults bit as far as it can be told.
    pub witness: Witness,
    /// A user that watches feeds and plays titles, too: it was not followed who plays what.
    pub mixed: Option<UserId>,
}

/// Why a journal is not judged right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It cannot be read, or does not repeat.
    Unfit(JournalFault),
    /// Its beginning is not there any more: what happened before is not known.
    NotFromTheBeginning,
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
                write!(f, "it begins in the middle of a run, and what was before cannot be judged by")
            }
            Verdict::Broken { call, at, id, what } => write!(f, "{id} is broken at {at:?} by call {call}: {what}"),
        }
    }
}

impl std::error::Error for Verdict {}

/// Plays a journal, judges each call of it, and checks that it repeats.
///
/// # Errors
/// The journal cannot be read, breaks an invariant, or does not repeat.
pub fn judge(bytes: &[u8]) -> Result<Judged, Verdict> {
    let judged = judge_log(Log::read(bytes).map_err(Verdict::Unfit)?)?;
    replay(bytes, |_| ()).map_err(Verdict::Unfit)?;
    Ok(judged)
}

/// Judges calls that need not come to what they came to once: those of another version of the core, or some of a run's. What
/// the core asks for and was not asked for then is answered by what is known.
///
/// # Errors
/// An invariant is broken, or the beginning is missing.
pub fn judge_log(log: Log) -> Result<Judged, Verdict> {
    if log.snapshot.is_some() {
        return Err(Verdict::NotFromTheBeginning);
    }
    let spans = log.calls.last().map_or(Duration::ZERO, |call| call.now.since(Time::ZERO));
    let script = Script::new(log);
    let played = script.play(&(0..script.len()).collect::<Vec<_>>());
    let calls = played.calls.len() as u64;
    match played.broken {
        Some((at, broken)) => Err(Verdict::Broken { call: calls, at, id: broken.id, what: broken.what }),
        None => Ok(Judged { calls, spans, witness: played.witness, mixed: script.mixed() }),
    }
}
