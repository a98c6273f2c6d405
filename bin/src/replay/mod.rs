//! `holdfast replay`: what happened, from a journal that an edge kept, run once more through the same core.
//!
//! | file | question it answers |
//! |---|---|
//! | `told` | which lines are printed, and what is left at the end? |
//! | `words` | what was one call? |

mod told;
mod words;

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use holdfast_core::journal::{Digest, Head, JournalFault, replay};

use crate::config;
use told::Told;

/// A journal of more bytes is none: an edge keeps half of that at most.
pub(crate) const LARGEST: u64 = 1 << 30;

/// Say what happened in a journal that `holdfast dump` saved, and check that it repeats.
#[derive(Debug, Args)]
pub struct Replay {
    /// The journal
    file: PathBuf,
    /// Tell no more than happened so long after its beginning, such as 12.5s or 3m; all of it is checked
    #[arg(long, value_name = "TIME", value_parser = span)]
    until: Option<Duration>,
    /// Tell only of calls with this text in what is told of them
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Tell only how it ends
    #[arg(long)]
    quiet: bool,
}

/// Seconds with or without a point, or as in the configuration.
fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    let span =
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).or_else(|| config::parse_span(text));
    span.ok_or_else(|| format!("`{text}` is not a length of time like 12.5s or 1m30s"))
}

/// Why there is nothing to tell, or no more.
#[derive(Debug)]
enum Failed {
    Unreadable(io::Error),
    Journal(JournalFault),
    /// The core panics in this call.
    Panic {
        call: u64,
        what: String,
    },
    Write(io::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Failed::Journal(fault @ (JournalFault::NotAJournal | JournalFault::OtherVersion { .. })) => {
                write!(f, "{fault}; `holdfast dump` of the same version writes what can be replayed")
            }
            Failed::Journal(fault @ JournalFault::Truncated { .. }) => {
                write!(f, "{fault}; what is told is all that is whole")
            }
            Failed::Journal(fault) => write!(f, "{fault}"),
            Failed::Panic { call, what } => {
                write!(f, "FINDING: the core panics in call {call}: {what}; please report it, with this file")
            }
            Failed::Write(error) => write!(f, "cannot write: {error}"),
        }
    }
}

impl Replay {
    /// Tells and checks; the exit code is 1 where the file is no whole journal or does not repeat.
    pub fn run(self) -> ExitCode {
        let mut out = BufWriter::new(io::stdout().lock());
        let done = self.tell(&mut out).and_then(|()| out.flush().map_err(Failed::Write));
        match done {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever read it has seen enough.
            Err(Failed::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(failed) => {
                // What was told comes first.
                let _ = out.flush();
                eprintln!("{}: {failed}", self.file.display());
                ExitCode::FAILURE
            }
        }
    }

    fn tell(&self, out: &mut impl Write) -> Result<(), Failed> {
        let bytes = read(&self.file).map_err(Failed::Unreadable)?;
        let head = Head::read(&bytes).map_err(Failed::Journal)?;
        let mut told = Told::new(&head, self, out);
        let played = guarded(&bytes, &mut told);
        told.end(played.as_ref().ok().copied()).map_err(Failed::Write)?;
        played.map(drop)
    }
}

/// Replays; a panic of the core is a finding and not the end of this program.
fn guarded<W: Write>(bytes: &[u8], told: &mut Told<'_, W>) -> Result<Digest, Failed> {
    let (what, played) = caught(|| replay(bytes, |step| told.step(&step)));
    match (what, played) {
        (_, Some(played)) => played.map_err(Failed::Journal),
        // Those before it were told.
        (what, None) => Err(Failed::Panic { call: told.calls() + 1, what: what.unwrap_or_default() }),
    }
}

/// What came of it, or what it says where it panics, and where that was.
fn caught<T>(run: impl FnOnce() -> T) -> (Option<String>, Option<T>) {
    thread_local!(static WORDS: RefCell<Option<String>> = const { RefCell::new(None) });
    let before = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
        WORDS.with(|own| *own.borrow_mut() = Some(format!("{}{place}", text(info.payload()))));
    }));
    let done = panic::catch_unwind(AssertUnwindSafe(run)).ok();
    panic::set_hook(before);
    (WORDS.with(|own| own.borrow_mut().take()), done)
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = path.metadata()?;
    // Looked at before it is opened: opening a pipe would wait for its other end, and a device may never end.
    if found.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let too_large = || io::Error::other("it has more than 1 GiB, which no journal has");
    if found.len() > LARGEST {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
