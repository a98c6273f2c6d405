//! `holdfast replay`: what happened, from a journal that an edge kept, run once more through the same core.
//!
//! | file | question it answers |
//! |---|---|
//! | `told` | which lines are printed, and what is left at the end? |
//! | `parts` | which parts of it can be read, and what is lost between them? |
//! | `finding` | which invariant is broken, when, and to whom? |
//! | `words` | what was one call? |

mod finding;
mod parts;
mod told;
mod words;

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use holdfast_core::config::Config;
use holdfast_core::input::{Input, Note};
use holdfast_core::journal::{Digest, Head, JournalFault, MAGIC, replay};

use holdfast_sim::story::{self, Story, Words};

use crate::config::{self, Settings};
use crate::log;
use finding::{Finding, Judged};
use parts::{Lost, Part, Parts};
use told::Told;

/// A journal of more bytes is none: an edge keeps half of that at most.
pub(crate) const LARGEST: u64 = 1 << 30;

/// Say what happened in a journal that `holdfast dump` saved, check that it repeats, and judge it by every invariant that it tells of.
#[derive(Debug, Args)]
pub struct Replay {
    /// The journal
    file: PathBuf,
    /// Tell no more than happened so long after its beginning, such as 12.5s or 3m; all of it is checked
    #[arg(long, value_name = "TIME", value_parser = span)]
    until: Option<Duration>,
    /// Tell only of calls with this text in what is told of them, in large or small letters; `#472` is call 472
    #[arg(long, value_name = "TEXT", conflicts_with = "quiet")]
    grep: Option<String>,
    /// Tell only how it ends
    #[arg(long)]
    quiet: bool,
    /// Write what happened as a page for a browser, also where something is wrong
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

/// Seconds with or without a point, or as in the configuration.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    let span =
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).or_else(|| config::parse_span(text));
    span.ok_or_else(|| format!("`{text}` is not a length of time like 12.5s or 1m30s"))
}

/// Why there is nothing to tell, or no more.
#[derive(Debug)]
enum Failed {
    Unreadable(io::Error),
    Empty,
    /// With what it is compressed.
    Packed(&'static str),
    Journal(JournalFault),
    /// Other bytes than were written, so that calls are lost.
    Lost(Vec<Lost>),
    /// The core panics in this call.
    Panic {
        call: u64,
        what: String,
    },
    /// An invariant is broken.
    Broken(String),
    Write(io::Error),
    Page(PathBuf, io::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Failed::Journal(fault @ (JournalFault::NotAJournal | JournalFault::OtherVersion { .. })) => {
                write!(f, "{fault}; `holdfast dump` of the same version writes what can be replayed")
            }
            Failed::Empty => write!(f, "no journal: it is empty; was it saved to its end?"),
            Failed::Packed(how) => write!(f, "no journal yet: it is compressed with {how}; unpack it first"),
            Failed::Journal(fault @ JournalFault::Truncated { call: 0, .. }) => {
                write!(f, "{fault}, so that there is nothing to tell; fetch it once more, to its end")
            }
            Failed::Journal(fault @ JournalFault::Truncated { .. }) => {
                write!(
                    f,
                    "{fault}, as where power was lost, a disk was full, or it was not saved to its end; what stands before is told and \
                     judged"
                )
            }
            Failed::Lost(lost) => {
                let lost: Vec<String> = lost.iter().map(Lost::to_string).collect();
                write!(
                    f,
                    "other bytes than were written: {}; all else is told and judged; fetch it once more",
                    lost.join("; ")
                )
            }
            Failed::Journal(fault) => {
                write!(
                    f,
                    "{fault}; a journal repeats with the build that wrote it: if this is that, please report it, with this file"
                )
            }
            Failed::Panic { call, what } => {
                write!(f, "FINDING: the core panics in call {call}: {what}; please report it, with this file")
            }
            Failed::Broken(what) => write!(f, "FINDING: {what}; please report it, with this file"),
            Failed::Write(error) => write!(f, "cannot write: {error}"),
            Failed::Page(path, error) => write!(f, "the page cannot be written to {}: {error}", path.display()),
        }
    }
}

impl Replay {
    /// Tells, checks and judges; the exit code is 1 where the file is no whole journal, does not repeat, or breaks an invariant.
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
        let head = Head::read(&bytes).map_err(|fault| unfit(&bytes, fault))?;
        let Parts { parts, ends, first } = parts::of(&bytes, self.until).map_err(Failed::Journal)?;
        let judge = |part: &Part<'_>| finding::judge(&part.bytes[..part.extent.checked], &head, first);
        let judged = Judged::all(parts.iter().map(judge));
        let mut told = Told::new(&head, ends, self, out);
        told.begin(&judged);
        let mut played = Err(Failed::Empty);
        let mut lost = Vec::new();
        for part in &parts {
            if let Some(before) = &part.lost {
                told.lost(before);
                lost.push(before.clone());
            }
            played = guarded(part, &mut told);
            match (&played, &part.behind) {
                // What is behind it is the next part, or lost.
                (Err(Failed::Journal(JournalFault::Broken { .. })), behind) => lost.extend(behind.clone()),
                (Ok(_), _) => {}
                _ => break,
            }
        }
        played = match played {
            Err(Failed::Journal(JournalFault::Broken { .. })) => Err(Failed::Lost(std::mem::take(&mut lost))),
            played => played,
        };
        told.end(played.as_ref(), &lost, &judged).map_err(Failed::Write)?;
        if let Some(page) = &self.html {
            self.draw(page, &bytes, &head, &judged).map_err(|error| Failed::Page(page.clone(), error))?;
        }
        match (judged, played) {
            // What is cut off there may be the recorder's doing; this is not.
            (Judged::Broken(finding), Ok(_) | Err(Failed::Journal(_) | Failed::Lost(_))) => {
                Err(Failed::Broken(finding.line))
            }
            (_, Ok(_)) if !lost.is_empty() => Err(Failed::Lost(lost)),
            (_, played) => played.map(drop),
        }
    }

    fn draw(&self, page: &Path, bytes: &[u8], head: &Head, judged: &Judged) -> io::Result<()> {
        let name = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let title = match head.started.and_then(told::timestamp) {
            Some(started) => format!("Holdfast: {name}, started {}", started.strftime("%Y-%m-%d %H:%M:%S UTC")),
            None => format!("Holdfast: {name}"),
        };
        // A panic of the core has been told of by then.
        let (_, story) = caught(|| story::as_far_as_it_goes(bytes, &in_words));
        let story = story.ok_or_else(|| io::Error::other("what happened cannot be drawn"))?.titled(title);
        let story = story.of_an_edge(head.started);
        let story = match judged {
            Judged::Broken(Finding { call, at, id, what, .. }) => story.broken(*at, *id, what.clone()).in_call(*call),
            Judged::Not | Judged::Right(_) => story,
        };
        write_page(page, &story)
    }
}

/// The words of replay and log, for a page.
pub(crate) fn in_words(config: &Config) -> Box<dyn Words> {
    Box::new(InWords(told::settings(config)))
}

struct InWords(Settings);

impl Words for InWords {
    fn note(&self, note: &Note) -> String {
        log::sentence(&self.0, note)
    }

    fn input(&self, input: &Input) -> String {
        words::flow(input, &self.0)
    }
}

/// Writes a page, but not in the place of a journal: what it shows may be nowhere else.
///
/// # Errors
/// Those of the system, and that there is a journal.
pub(crate) fn write_page(path: &Path, story: &Story) -> io::Result<()> {
    if begins(path)? == MAGIC[..7] {
        return Err(io::Error::other("that is a journal, which the page would take the place of; name another file"));
    }
    write_private(path, story::page(story).as_bytes())
}

/// Writes a journal, in the place of another one at most, and of none that an edge records into.
pub(crate) fn write_journal(path: &Path, journal: &[u8]) -> io::Result<()> {
    let begins = begins(path)?;
    if !begins.is_empty() && begins != MAGIC[..7] {
        return Err(io::Error::other("that is no journal, and would be lost; name another file"));
    }
    if crate::dump::is_recorded(path) {
        return Err(io::Error::other("an edge that runs records into it; name another file"));
    }
    write_private(path, journal)
}

/// What a file begins with; nothing where there is none.
fn begins(path: &Path) -> io::Result<Vec<u8>> {
    let mut begins = Vec::new();
    // A pipe would wait for somebody to write into it.
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        file.take(7).read_to_end(&mut begins)?;
    }
    Ok(begins)
}

/// Whose it is may be named in it, and from where each plays: nobody else's business.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    file.write_all(bytes)
}

/// Replays; a panic of the core is a finding and not the end of this program.
fn guarded<W: Write>(part: &Part<'_>, told: &mut Told<'_, W>) -> Result<Digest, Failed> {
    let Part { bytes, extent, before, .. } = part;
    let (what, played) = caught(|| replay(bytes, |step| told.step(&step)));
    match (what, played) {
        (_, Some(Err(JournalFault::Truncated { at, call }))) => {
            Err(Failed::Journal(JournalFault::Truncated { at: at + before, call }))
        }
        (_, Some(played)) => played.map_err(Failed::Journal),
        // What was not checked may be anything.
        (_, None) if told.calls() >= extent.calls && extent.fault.is_some() => {
            Err(Failed::Journal(JournalFault::Truncated { at: extent.checked + before, call: told.calls() }))
        }
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

/// Why a file is no journal, as far as that can be told from how it begins.
fn unfit(bytes: &[u8], fault: JournalFault) -> Failed {
    let packed: [(&[u8], _); 4] =
        [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz"), (b"PK\x03\x04", "zip")];
    match packed.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        _ if bytes.is_empty() => Failed::Empty,
        Some((_, how)) => Failed::Packed(how),
        None => Failed::Journal(fault),
    }
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
