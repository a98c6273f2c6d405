//! The file that outlives the process: what was recorded is written there by a thread of its own, so that no disk ever stops
//! the loop.
//!
//! There are two of them, each a journal by itself: `FILE` is written, and `FILE.1` is what was written before it. When `FILE` has
//! a quarter of the size, the next segment, which has as much at most, begins a new one. What a run before left is in `FILE.1`
//! until then.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use holdfast_core::journal::{Extent, MAGIC};
use holdfast_io::server::Piece;
use tracing::warn;

/// Pieces that may wait for the disk, one a second: what does not fit is left out up to the next segment.
const QUEUE: usize = 64;
/// What every journal begins with, whatever its version.
const NAME: &[u8] = MAGIC.split_at(7).0;
/// A journal in which nothing happened has fewer bytes.
const SMALL: u64 = 1 << 20;
/// How long the end of the program waits for the rest.
const LAST: Duration = Duration::from_secs(2);

/// Why nothing can be recorded into a file.
#[derive(Debug)]
pub enum Unrecordable {
    /// Somebody does already.
    Taken,
    /// There is something else in the file of this path, which would be lost.
    Foreign(PathBuf),
    /// What the system says.
    Failed(io::Error),
}

impl From<io::Error> for Unrecordable {
    fn from(error: io::Error) -> Self {
        Unrecordable::Failed(error)
    }
}

/// The thread that writes; dropped, it writes what is left.
pub(super) struct Recorder {
    sender: Option<SyncSender<Piece>>,
    ended: Receiver<()>,
    /// The queue was full: what follows is of no use before a segment begins.
    behind: bool,
}

impl Recorder {
    /// Opens the file, which keeps every other Holdfast out of it until the process ends, and starts the thread. Both files together
    /// take `size` bytes, or as many as the ring does where that is more.
    ///
    /// # Errors
    /// [`Unrecordable`]
    pub(super) fn start(path: &Path, size: u64) -> Result<Recorder, Unrecordable> {
        let tape = Tape::open(path, size / 4)?;
        let (sender, pieces) = sync_channel(QUEUE);
        let (end, ended) = sync_channel(1);
        let write = move || {
            tape.record(&pieces);
            let _ = end.send(());
        };
        thread::Builder::new().name(String::from("recorder")).spawn(write)?;
        Ok(Recorder { sender: Some(sender), ended, behind: false })
    }

    /// Has it written; does not block.
    pub(super) fn record(&mut self, mut piece: Piece) {
        match &mut piece {
            Piece::Segment { gap, .. } => *gap |= self.behind,
            Piece::Frame(_) | Piece::Open(_) if self.behind => return,
            Piece::Frame(_) | Piece::Open(_) => {}
        }
        // A thread that has stopped has said why.
        let sent = self.sender.as_ref().map(|sender| sender.try_send(piece));
        self.behind = matches!(sent, Some(Err(TrySendError::Full(_))));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.sender = None;
        // A disk that takes nothing must not keep the program.
        let _ = self.ended.recv_timeout(LAST);
    }
}

/// The two files.
struct Tape {
    path: PathBuf,
    before: PathBuf,
    file: File,
    /// How much is in `file` that stays as it is.
    length: u64,
    /// From where on a segment begins another file.
    most: u64,
}

impl Tape {
    fn open(path: &Path, most: u64) -> Result<Tape, Unrecordable> {
        let before = beside(path, ".1");
        if let Some(next) = next_of(path).filter(|next| next.exists()) {
            // This file may be what another one's becomes.
            drop(locked(&next)?);
        }
        let file = locked(path)?;
        if before.exists() {
            // It may be what another one records into, which would lose it.
            drop(locked(&before)?);
        }
        for named in [path, &before] {
            if !is_recorded(named)? {
                return Err(Unrecordable::Foreign(named.to_owned()));
            }
        }
        let mut tape = Tape { path: path.to_owned(), before, file, length: 0, most };
        match tape.file.metadata()?.len() {
            0 => {}
            // Nothing happened in that run: what is before it is worth more.
            length if length < SMALL && is_empty(path)? => tape.file.set_len(0)?,
            // What a run before left may be what somebody wants to see.
            _ => tape.turn()?,
        }
        Ok(tape)
    }

    fn record(mut self, pieces: &Receiver<Piece>) {
        let mut begun = false;
        while let Ok(piece) = pieces.recv() {
            let written = match piece {
                Piece::Segment { head, gap } => {
                    let turned = if begun && (gap || self.length >= self.most) { self.turn() } else { Ok(()) };
                    begun = true;
                    turned.and_then(|()| if self.length == 0 { self.write(&head) } else { Ok(()) })
                }
                Piece::Frame(bytes) if begun => self.write(&bytes),
                // What takes its place is longer: there is more of the same in it.
                Piece::Open(bytes) if begun => self.file.write_all_at(&bytes, self.length),
                Piece::Frame(_) | Piece::Open(_) => Ok(()),
            };
            if let Err(error) = written {
                warn!(
                    "the recorder cannot write {}: {error}; nothing more is recorded there, in memory it is, for `holdfast dump`. \
                     Make room or name another `file` in [recorder], then start again",
                    self.path.display()
                );
                return;
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// What is in the file is what was before from here on, and a new one begins. There is always one under the name, and always one
    /// that is locked.
    fn turn(&mut self) -> io::Result<()> {
        let (next, former) = (beside(&self.path, ".new"), beside(&self.path, ".old"));
        // What a crash in the middle of this left.
        for left in [&next, &former] {
            match fs::remove_file(left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
        file.try_lock().map_err(io::Error::other)?;
        match fs::hard_link(&self.path, &former) {
            Ok(()) => fs::rename(&former, &self.before)?,
            // Not every file system has these.
            Err(_) => fs::rename(&self.path, &self.before)?,
        }
        fs::rename(&next, &self.path)?;
        (self.file, self.length) = (file, 0);
        Ok(())
    }
}

/// The file of this path, ours alone, whatever is in it. Others than its owner have no business in it.
fn locked(path: &Path) -> Result<File, Unrecordable> {
    // Looked at before it is opened: opening a pipe would wait for its other end.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is not a file").into());
    }
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Unrecordable::Taken),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    // Another one may have begun its next file since this one was opened.
    let (named, own) = (path.metadata()?, file.metadata()?);
    match (named.dev(), named.ino()) == (own.dev(), own.ino()) {
        true => Ok(file),
        false => Err(Unrecordable::Taken),
    }
}

/// Whether what is in a file is a recorder's, whole or cut off, or nothing.
fn is_recorded(path: &Path) -> io::Result<bool> {
    let mut begins = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(NAME.len() as u64).read_to_end(&mut begins)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(NAME.starts_with(&begins))
}

/// Whether no call is in a journal.
fn is_empty(path: &Path) -> io::Result<bool> {
    let mut calls = 0;
    let extent = Extent::of(&fs::read(path)?, |_, _| calls += 1);
    Ok(extent.is_ok_and(|extent| extent.fault.is_none()) && calls == 0)
}

/// Of what a file with this name is what was recorded before.
fn next_of(path: &Path) -> Option<PathBuf> {
    path.extension().filter(|ending| *ending == "1").map(|_| path.with_extension(""))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// A directory of the test's own, empty.
    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("holdfast-recorder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("the temporary folder can be written");
        path
    }

    fn segment(gap: bool) -> Piece {
        Piece::Segment { head: Bytes::from_static(NAME), gap }
    }

    fn frame(bytes: &'static str) -> Piece {
        Piece::Frame(Bytes::from_static(bytes.as_bytes()))
    }

    fn open(bytes: &'static str) -> Piece {
        Piece::Open(Bytes::from_static(bytes.as_bytes()))
    }

    fn content(path: &Path) -> String {
        String::from_utf8(fs::read(path).expect("it is there")).expect("text")
    }

    #[test]
    fn each_of_the_two_files_begins_with_a_head_and_a_segment() {
        let directory = directory("turn");
        let (path, before) = (directory.join("edge"), directory.join("edge.1"));
        let start = || Recorder::start(&path, 40).expect("it can be written");
        let mut recorder = start();
        for piece in [
            segment(false),
            frame("one"),
            open("m"),
            open("mo"),
            frame("more"),
            segment(false),
            frame("two"),
            open("o"),
        ] {
            recorder.record(piece);
        }
        drop(recorder);
        assert_eq!((content(&before), content(&path)), ("HOLDFSTonemore".into(), "HOLDFSTtwoo".into()));
        let mut again = start();
        // What is no segment's beginning is nothing to begin with.
        for piece in [frame("lost"), open("lost"), segment(false), frame("3"), segment(false), frame("4")] {
            again.record(piece);
        }
        drop(again);
        assert_eq!(
            (content(&before), content(&path)),
            ("HOLDFSTtwoo".into(), "HOLDFST34".into()),
            "a run before is kept"
        );
        let mut gap = start();
        for piece in [segment(false), frame("5"), segment(true), frame("7")] {
            gap.record(piece);
        }
        drop(gap);
        assert_eq!(
            (content(&before), content(&path)),
            ("HOLDFST5".into(), "HOLDFST7".into()),
            "nothing is missing within one"
        );
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 2, "nothing else is left");
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn a_run_in_which_nothing_happened_takes_the_place_of_none() {
        let directory = directory("nothing");
        let (path, before) = (directory.join("edge"), directory.join("edge.1"));
        let empty = holdfast_core::journal::Recorded::on(holdfast_core::config::Config::default());
        fs::write(&path, empty.journal().expect("one is kept")).expect("it can be written");
        fs::write(&before, "HOLDFST of some time ago").expect("it can be written");
        drop(Recorder::start(&path, 400).expect("it can be written"));
        assert_eq!((content(&path).as_str(), content(&before).as_str()), ("", "HOLDFST of some time ago"));
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    /// What is not handed out before the first call is asked for twice.
    #[test]
    fn a_segment_that_begins_again_is_not_written_again() {
        let directory = directory("header");
        let path = directory.join("edge");
        let mut recorder = Recorder::start(&path, 400).expect("it can be written");
        for piece in [segment(false), open("empty")] {
            recorder.record(piece);
        }
        while !content(&path).ends_with("empty") {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(content(&path), "HOLDFSTempty", "before anything has happened");
        for piece in [segment(false), frame("frame 1"), open("2")] {
            recorder.record(piece);
        }
        drop(recorder);
        assert_eq!(content(&path), "HOLDFSTframe 12");
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn one_file_takes_one_recorder_also_after_it_has_turned() {
        let directory = directory("lock");
        let path = directory.join("edge");
        let mut recorder = Recorder::start(&path, 4).expect("it can be written");
        assert!(matches!(Recorder::start(&path, 4), Err(Unrecordable::Taken)));
        for piece in ["one", "two", "three"] {
            recorder.record(segment(false));
            recorder.record(frame(piece));
        }
        while !(path.with_file_name("edge.1").exists() && content(&path).ends_with("three")) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(matches!(Recorder::start(&path, 4), Err(Unrecordable::Taken)));
        drop(recorder);
        assert!(Recorder::start(&path, 4).is_ok());
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn what_is_something_elses_is_left_as_it_is() {
        let directory = directory("foreign");
        let (path, before) = (directory.join("edge"), directory.join("edge.1"));
        for foreign in [&path, &before] {
            fs::write(foreign, "dear diary").expect("it can be written");
            let refused = Recorder::start(&path, 40).err();
            assert!(matches!(&refused, Some(Unrecordable::Foreign(named)) if named == foreign), "{refused:?}");
            assert_eq!(content(foreign), "dear diary");
            fs::remove_file(foreign).expect("it is ours");
        }
        // Another one's file is no place for what this one recorded before.
        let other = Recorder::start(&before, 40).expect("it can be written");
        assert!(matches!(Recorder::start(&path, 40), Err(Unrecordable::Taken)));
        drop(other);
        let other = Recorder::start(&path, 40).expect("nobody else does");
        fs::remove_file(&before).expect("it is ours");
        assert!(matches!(Recorder::start(&before, 40), Err(Unrecordable::Taken)), "it is where the other one's goes");
        assert!(!before.exists(), "and nothing is left there");
        drop(other);
        assert!(Recorder::start(&before, 40).is_ok());
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn what_is_no_file_is_refused_and_a_full_disk_ends_the_recording_alone() {
        for path in ["/dev/full", "/", "/nonexistent/edge"] {
            assert!(matches!(Recorder::start(Path::new(path), 20), Err(Unrecordable::Failed(_))), "{path}");
        }
        // The thread's own part, on what is always full.
        let file = OpenOptions::new().write(true).open("/dev/full").expect("every Linux has it");
        let tape = Tape { path: "/dev/full".into(), before: "/dev/null".into(), file, length: 0, most: 10 };
        let (sender, pieces) = sync_channel(QUEUE);
        sender.send(segment(false)).expect("there is room");
        tape.record(&pieces);
        drop(pieces);
        let (_, ended) = sync_channel(1);
        let mut recorder = Recorder { sender: Some(sender), ended, behind: false };
        recorder.record(segment(false));
        assert!(!recorder.behind, "whoever stopped is not waited for");
    }

    #[test]
    fn what_a_slow_disk_cannot_take_is_left_out_up_to_the_next_segment() {
        let (sender, pieces) = sync_channel(1);
        let (_, ended) = sync_channel(1);
        let mut recorder = Recorder { sender: Some(sender), ended, behind: false };
        recorder.record(segment(false));
        recorder.record(frame("lost"));
        assert_eq!(pieces.try_recv(), Ok(segment(false)));
        recorder.record(frame("of no use without it"));
        assert!(pieces.try_recv().is_err());
        recorder.record(segment(false));
        assert_eq!(pieces.try_recv(), Ok(segment(true)), "whoever reads it has to know");
        recorder.record(frame("more"));
        assert_eq!(pieces.try_recv(), Ok(frame("more")));
    }
}
