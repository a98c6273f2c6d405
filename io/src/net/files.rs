//! Files of this machine, opened and read by threads of their own: a disk may take as long as it likes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;

use holdfast_core::input::RequestId;
use mio::Waker;

use super::sys::Event;
use crate::library::{self, FileCommand, FileEvent, FileFault, Library, PIECE, Place};

/// How many of them there are: a disk that hangs, and a look through all directories, leave one for the others.
const THREADS: usize = 4;
/// How many jobs may wait.
const WAITING: usize = 4096;

/// A file of a request; gone once the request has no more use for it.
#[derive(Default)]
struct Handle(OnceLock<File>);

enum Job {
    Open(RequestId, Weak<Handle>, Place),
    Read(RequestId, Weak<Handle>, u64, usize),
    Scan(Arc<[Library]>),
}

/// The threads, and what they found.
pub(super) struct Files {
    jobs: SyncSender<Job>,
    found: Receiver<Event>,
    open: BTreeMap<RequestId, Arc<Handle>>,
}

impl Files {
    /// Starts the threads. They end when this is dropped, each after the job it is at: nobody waits for that.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(waker: &Arc<Waker>) -> io::Result<Self> {
        let (jobs, asked) = mpsc::sync_channel(WAITING);
        let (say, found) = mpsc::channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..THREADS {
            let (asked, say, waker) = (asked.clone(), say.clone(), waker.clone());
            thread::Builder::new().name("files".into()).spawn(move || serve(&asked, &say, &waker))?;
        }
        Ok(Files { jobs, found, open: BTreeMap::new() })
    }

    /// Does something with the file of a request.
    ///
    /// # Errors
    /// When too many jobs wait already.
    pub fn command(&mut self, request: RequestId, command: FileCommand) -> io::Result<()> {
        let job = match command {
            FileCommand::Open(place) => {
                let handle = Arc::new(Handle::default());
                let job = Job::Open(request, Arc::downgrade(&handle), place);
                self.open.insert(request, handle);
                job
            }
            FileCommand::Read { at, length } => {
                let handle = self.open.get(&request).map(Arc::downgrade).unwrap_or_default();
                Job::Read(request, handle, at, length)
            }
            FileCommand::Close => {
                self.open.remove(&request);
                return Ok(());
            }
        };
        self.ask(job)
    }

    /// Looks through libraries.
    ///
    /// # Errors
    /// When too many jobs wait already.
    pub fn scan(&self, libraries: Arc<[Library]>) -> io::Result<()> {
        self.ask(Job::Scan(libraries))
    }

    fn ask(&self, job: Job) -> io::Result<()> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::other(format!("{WAITING} other jobs wait for the disk")),
            TrySendError::Disconnected(_) => io::Error::other("the threads that read files have ended"),
        })
    }

    /// What was found since.
    pub fn found(&self) -> impl Iterator<Item = Event> {
        self.found.try_iter()
    }
}

fn serve(asked: &Mutex<Receiver<Job>>, say: &Sender<Event>, waker: &Waker) {
    loop {
        // Held while waiting: the others wait for the lock instead, and one gets the next job either way.
        let Some(job) = asked.lock().ok().and_then(|asked| asked.recv().ok()) else { return };
        let event = match job {
            Job::Scan(libraries) => Event::Scanned(library::scan(&libraries)),
            Job::Open(request, handle, place) => {
                let Some(handle) = handle.upgrade() else { continue };
                let opened = library::open(&place).map(|(file, attributes)| {
                    // It is opened once.
                    let _ = handle.0.set(file);
                    FileEvent::Opened(attributes)
                });
                Event::File { request, event: opened.unwrap_or_else(FileEvent::Failed) }
            }
            Job::Read(request, handle, at, length) => {
                let Some(handle) = handle.upgrade() else { continue };
                let data = match handle.0.get() {
                    Some(file) => library::read(file, at, length.min(PIECE)),
                    None => Err(FileFault::Gone),
                };
                Event::File { request, event: data.map_or_else(FileEvent::Failed, FileEvent::Data) }
            }
        };
        // The only way for a wake-up to fail is a full pipe, which wakes all the same.
        if say.send(event).is_err() || waker.wake().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use mio::{Events, Poll, Token};

    use super::*;

    fn next(files: &Files) -> Event {
        files.found.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn a_file_is_opened_once_and_read_until_it_is_closed() {
        let poll = Poll::new().unwrap();
        let mut files = Files::start(&Arc::new(Waker::new(poll.registry(), Token(0)).unwrap())).unwrap();
        let path = std::env::temp_dir().join(format!("holdfast-files-{}.ts", std::process::id()));
        fs::write(&path, "0123456789").unwrap();
        let root: Arc<std::path::Path> = fs::canonicalize(path.parent().unwrap()).unwrap().into();
        let place = Place { root, path: path.file_name().unwrap().into() };
        let (request, other) = (RequestId(1), RequestId(2));
        files.command(request, FileCommand::Open(place.clone())).unwrap();
        let Event::File { event: FileEvent::Opened(attributes), .. } = next(&files) else { panic!("not opened") };
        assert_eq!(attributes.length, 10);
        // What is read is what was opened, whatever its name stands for now.
        fs::remove_file(&path).unwrap();
        files.command(request, FileCommand::Read { at: 2, length: 3 }).unwrap();
        assert_eq!(next(&files), Event::File { request, event: FileEvent::Data("234".into()) });
        files.command(other, FileCommand::Open(place)).unwrap();
        assert_eq!(next(&files), Event::File { request: other, event: FileEvent::Failed(FileFault::Gone) });
        // Nothing is said of what is closed.
        files.command(request, FileCommand::Close).unwrap();
        files.command(request, FileCommand::Read { at: 0, length: 1 }).unwrap();
        files.scan(Vec::new().into()).unwrap();
        assert_eq!(next(&files), Event::Scanned(library::Scan::default()));
        let mut woken = Events::with_capacity(8);
        let mut poll = poll;
        poll.poll(&mut woken, Some(Duration::ZERO)).unwrap();
        assert!(!woken.is_empty());
    }

    #[test]
    fn jobs_are_bounded() {
        let (jobs, _asked) = mpsc::sync_channel(WAITING);
        let (_say, found) = mpsc::channel();
        let files = Files { jobs, found, open: BTreeMap::new() };
        for _ in 0..WAITING {
            files.scan(Vec::new().into()).unwrap();
        }
        assert!(files.scan(Vec::new().into()).unwrap_err().to_string().contains("4096"));
    }
}
