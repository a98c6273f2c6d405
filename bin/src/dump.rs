//! `holdfast dump`: fetches the journal of an edge that runs, and keeps it in a file.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read, Write};
use std::iter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use holdfast_io::http::FieldValue;
use holdfast_io::http::client::{Get, ResponseHead};
use holdfast_io::http::field::AUTHORIZATION;
use holdfast_io::net::tls::Trust;
use holdfast_io::net::{FetchError, Part, fetch};
use jiff::Timestamp;
use nix::sys::signal::{SigSet, Signal};
use url::Url;

use crate::replay::{LARGEST, span};

/// How every journal begins, whatever its version.
const MARK: &[u8] = b"HOLDFST";
/// Of an answer that is no journal so many bytes are read: a problem has fewer.
const PROBLEM: usize = 64 << 10;

/// Save what happened lately from an edge that runs, for `holdfast replay`.
#[derive(Debug, Args)]
pub struct Dump {
    /// Where the edge is
    #[arg(long, default_value = "http://127.0.0.1:8080", value_parser = edge)]
    url: Url,
    /// One of the tokens of its [api]; `-` reads it from standard input, where nobody sees it
    #[arg(long)]
    token: Option<String>,
    /// PEM certificates of authorities to trust beside the system's
    #[arg(long, value_name = "FILE")]
    authorities: Option<PathBuf>,
    /// The file; without it, one with the time in its name, in this directory
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Take the place of a file that is there
    #[arg(long)]
    force: bool,
    /// Give up when it is not there to its end after so long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span)]
    within: Duration,
}

/// Where an edge may be.
fn edge(text: &str) -> Result<Url, String> {
    let url = text.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| String::from("an edge is asked at http://ADDRESS:PORT or https://NAME"))
}

/// Why there is no dump.
#[derive(Debug)]
enum Failed {
    Exists(PathBuf),
    Create(PathBuf, io::Error),
    Write(PathBuf, io::Error),
    Ask(String),
    /// From where.
    Fetch(String, FetchError),
    /// From where.
    Refused(String, Refusal),
}

/// An answer that is not the journal.
#[derive(Debug)]
struct Refusal {
    status: u16,
    reason: String,
    detail: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Exists(path) => {
                write!(f, "{} is there already: name another file, or add --force", path.display())
            }
            Failed::Create(path, error) => write!(f, "{} cannot be written: {error}", path.display()),
            Failed::Write(path, error) => {
                write!(f, "{} cannot be written: {error}; what was written of it is removed", path.display())
            }
            Failed::Ask(why) => f.write_str(why),
            Failed::Fetch(url, error @ FetchError::Unreachable(_)) => {
                write!(
                    f,
                    "{url}: {error}; is Holdfast running? Its log says where it listens: --url http://ADDRESS:PORT"
                )
            }
            Failed::Fetch(url, error @ FetchError::Endless(_)) => {
                write!(f, "{url}: {error}; where the line is slow, give it longer: --within 1h. Nothing is kept of it")
            }
            Failed::Fetch(url, error) => write!(f, "{url}: {error}"),
            Failed::Refused(url, Refusal { status, reason, detail }) => match (status, reason.as_str()) {
                (401, _) => {
                    write!(
                        f,
                        "{url}: this edge wants one of the tokens of its [api]: --token TOKEN; where one was given, it is none of them"
                    )
                }
                (403, "forbidden") => {
                    write!(f, "{url}: {detail}; run this on the machine of the edge, at the address 127.0.0.1")
                }
                (404, "recorder-off") | (503, _) => write!(f, "{url}: {detail}"),
                (404, _) => {
                    write!(f, "{url}: what answers there has no journal: another program, or an older Holdfast")
                }
                _ => write!(f, "{url}: the answer is {status} where a journal was asked for: {detail}"),
            },
        }
    }
}

impl Dump {
    /// Fetches and writes; the exit code is 1 where there is no dump.
    pub fn run(self) -> ExitCode {
        match self.dump() {
            Ok((path, length)) => {
                let told = writeln!(
                    io::stdout(),
                    "{} ({} kB); look at it with: holdfast replay {0}",
                    path.display(),
                    length.div_ceil(1000)
                );
                // It is there, whoever reads that.
                drop(told);
                ExitCode::SUCCESS
            }
            Err(failed) => {
                eprintln!("{failed}");
                ExitCode::FAILURE
            }
        }
    }

    fn dump(self) -> Result<(PathBuf, u64), Failed> {
        let place = match &self.output {
            Some(path) if self.force => Place::Taken(path.clone()),
            Some(path) => Place::Free(path.clone()),
            None => Place::Next(named(Timestamp::now())),
        };
        let get = self.question()?;
        let mut trust = match &self.authorities {
            Some(file) => {
                Trust::with_authorities(file).map_err(|error| Failed::Ask(format!("--authorities: {error}")))?
            }
            None => Trust::default(),
        };
        let ends = ends_are_heard();
        let mut kept = Kept::new(place)?;
        if let Some(ends) = ends {
            ends.remove(kept.part.clone());
        }
        let url = get.url().to_string();
        let (mut refusal, mut begin) = (None, Vec::new());
        let mut wrote = Ok(());
        let fetched = fetch(&get, &mut trust, self.within, &mut |part| {
            match part {
                Part::Head(head) if head.status != 200 || !is_journal(head) => {
                    refusal = Some((head.status, Vec::new()))
                }
                Part::Head(_) => {}
                Part::Content(data) => match &mut refusal {
                    Some((_, text)) => {
                        text.extend_from_slice(&data[..data.len().min(PROBLEM - text.len())]);
                        if text.len() == PROBLEM {
                            // It may go on for ever, and says nothing that would be told.
                            return Err(io::Error::other("it is no journal"));
                        }
                    }
                    None if kept.length + data.len() as u64 > LARGEST => {
                        return Err(io::Error::other("it has more than 1 GiB, which no journal has"));
                    }
                    None => {
                        begin.extend_from_slice(&data[..data.len().min(MARK.len().saturating_sub(begin.len()))]);
                        if !MARK.starts_with(&begin) {
                            return Err(io::Error::other("it is no journal"));
                        }
                        if let Err(error) = kept.write(data) {
                            wrote = Err(error);
                            return Err(io::Error::other("not written"));
                        }
                    }
                },
            }
            Ok(())
        });
        wrote.map_err(|error| Failed::Write(kept.place.path().to_owned(), error))?;
        fetched.map_err(|error| Failed::Fetch(url.clone(), error))?;
        if let Some((status, text)) = refusal {
            return Err(Failed::Refused(url, refused(status, &text)));
        }
        if begin != MARK {
            return Err(Failed::Ask(format!("{url}: what came is no journal")));
        }
        let length = kept.length;
        Ok((kept.finish()?, length))
    }

    fn question(&self) -> Result<Get, Failed> {
        let mut url = self.url.clone();
        // Of no use here, and nothing for messages.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        url.set_path("/api/v1/journal");
        url.set_query(None);
        let get = Get::new(url).map_err(|fault| Failed::Ask(format!("--url: {fault}")))?;
        let Some(mut token) = self.token.clone() else { return Ok(get) };
        if token == "-" {
            token.clear();
            let read = io::stdin().lock().take(1024).read_line(&mut token);
            read.map_err(|error| Failed::Ask(format!("the token cannot be read: {error}")))?;
        }
        let value = FieldValue::new(format!("Bearer {}", token.trim()));
        let value = value.map_err(|_| Failed::Ask(String::from("--token: this cannot be sent as a token")))?;
        Ok(get.header(AUTHORIZATION, value))
    }
}

fn named(now: Timestamp) -> PathBuf {
    PathBuf::from(format!("holdfast-{}.journal", now.strftime("%Y%m%d-%H%M%S")))
}

fn is_journal(head: &ResponseHead) -> bool {
    head.headers.get("Content-Type").is_some_and(|kind| kind.starts_with("application/octet-stream"))
}

/// What a problem says (RFC 9457); an answer that is none says little.
fn refused(status: u16, text: &[u8]) -> Refusal {
    let problem: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    let member = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let detail = Some(member("detail"))
        .filter(|detail| !detail.is_empty())
        .unwrap_or_else(|| String::from("it is something else"));
    Refusal { status, reason: member("reason"), detail }
}

/// What ends this program from outside, which from here on does so only where it is waited for.
struct Ends(SigSet);

fn ends_are_heard() -> Option<Ends> {
    let mut ends = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(|signal| ends.add(signal));
    // Where it is refused they end it as they ever do.
    ends.thread_block().ok().map(|()| Ends(ends))
}

impl Ends {
    /// Removes a file that is not whole before the program ends.
    fn remove(self, part: PathBuf) {
        let wait = move || {
            let Ok(signal) = self.0.wait() else { return };
            let _ = fs::remove_file(&part);
            eprintln!("ended by {signal}: nothing is kept of what had come");
            // As shells have it.
            std::process::exit(128 + signal as i32);
        };
        // Without it the file is left behind, and nothing worse.
        let _ = thread::Builder::new().name(String::from("ends")).spawn(wait);
    }
}

/// Where a dump goes, and whose place it takes.
#[derive(Clone, Debug)]
enum Place {
    /// There, where nobody may be.
    Free(PathBuf),
    /// There, whoever is.
    Taken(PathBuf),
    /// There, or beside whoever is: under the same name with the first number that is free.
    Next(PathBuf),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Place::Free(path) | Place::Taken(path) | Place::Next(path) => path,
        }
    }

    /// Puts a file that is whole in its place; where that is.
    fn take(&self, part: &Path) -> Result<PathBuf, Failed> {
        let failed = |path: &Path, error| Failed::Write(path.to_owned(), error);
        match self {
            Place::Taken(path) => fs::rename(part, path).map_err(|error| failed(path, error)).map(|()| path.clone()),
            Place::Free(path) => match link(part, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failed::Exists(path.clone())),
                linked => linked.map_err(|error| failed(path, error)).map(|()| path.clone()),
            },
            Place::Next(path) => {
                let names = iter::once(path.clone()).chain((2..).map(|number| numbered(path, number)));
                for name in names {
                    match link(part, &name) {
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                        linked => return linked.map_err(|error| failed(&name, error)).map(|()| name),
                    }
                }
                Err(Failed::Exists(path.clone()))
            }
        }
    }
}

/// Whether an edge that runs records into this file: it has it locked.
pub(crate) fn is_recorded(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// `a.journal` as `a-2.journal`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{}-{number}.{}", part(path.file_stem()), part(path.extension())))
}

/// Unlike a rename, this takes nobody's place, whoever came meanwhile.
fn link(part: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(part, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Not every file system has these.
        Err(_) if path.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(part, path),
        Ok(()) => Ok(()),
    }
}

/// A file that is there when it is whole, and not before.
struct Kept {
    place: Place,
    part: PathBuf,
    file: Option<File>,
    length: u64,
}

impl Kept {
    fn new(place: Place) -> Result<Kept, Failed> {
        let path = place.path();
        let failed = |error| Failed::Create(path.to_owned(), error);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() && !matches!(place, Place::Next(_)) => {
                return Err(failed(io::Error::other("it is a directory")));
            }
            Ok(found) if !found.is_file() && matches!(place, Place::Taken(_)) => {
                return Err(failed(io::Error::other("what is there is no file; name another one")));
            }
            Ok(_) if matches!(place, Place::Taken(_)) && is_recorded(path) => {
                return Err(failed(io::Error::other("an edge that runs records into it; name another file")));
            }
            Ok(_) if matches!(place, Place::Free(_)) => return Err(Failed::Exists(path.to_owned())),
            _ => {}
        }
        let name = path.file_name().ok_or_else(|| failed(io::Error::other("it has no name")))?;
        let part = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        // There are addresses of players in it: nobody else's business.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
        Ok(Kept { place, part, file: Some(file), length: 0 })
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.length += data.len() as u64;
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(data))
    }

    /// Where it is.
    fn finish(mut self) -> Result<PathBuf, Failed> {
        if let Some(file) = self.file.take() {
            file.sync_all().map_err(|error| Failed::Write(self.place.path().to_owned(), error))?;
        }
        self.place.take(&self.part)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // After a rename there is nothing.
        let _ = fs::remove_file(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_file_is_there_when_it_is_whole_and_takes_nobody_s_place() {
        let directory = std::env::temp_dir().join(format!("holdfast-dump-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("the temporary folder can be written");
        let path = directory.join("a.journal");
        let free = || Place::Free(path.clone());
        let mut kept = Kept::new(free()).expect("it can be written");
        kept.write(b"one").expect("there is room");
        assert!(!path.exists());
        let other = Kept { part: directory.join("other"), file: None, place: free(), length: 3 };
        fs::write(&other.part, b"two").expect("there is room");
        kept.finish().expect("nobody is there");
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        assert!(matches!(Kept::new(free()), Err(Failed::Exists(_))));
        assert!(matches!(other.finish(), Err(Failed::Exists(_))));
        let mut forced = Kept::new(Place::Taken(path.clone())).expect("as wished");
        forced.write(b"three").expect("there is room");
        drop(forced);
        assert_eq!(fs::read(&path).expect("it is there"), b"one", "what is not whole is nothing");
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 1, "nothing is left of it");
        assert!(matches!(Kept::new(Place::Taken(directory.clone())), Err(Failed::Create(..))));
        let recorded = File::open(&path).expect("it is there");
        recorded.try_lock().expect("nobody else has it");
        assert!(matches!(Kept::new(Place::Taken(path.clone())), Err(Failed::Create(..))), "an edge records into it");
        drop(recorded);
        let socket = directory.join("socket");
        let _listener = UnixListener::bind(&socket).expect("the temporary folder can be written");
        assert!(matches!(Kept::new(Place::Taken(socket)), Err(Failed::Create(..))), "it is no file");
        assert!(matches!(Kept::new(Place::Free("/nonexistent/a".into())), Err(Failed::Create(..))));
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn dumps_of_one_second_stand_beside_one_another() {
        let directory = std::env::temp_dir().join(format!("holdfast-dumps-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("the temporary folder can be written");
        let named = directory.join("holdfast-20261130-130405.journal");
        for (name, content) in [
            ("holdfast-20261130-130405.journal", b"one"),
            ("holdfast-20261130-130405-2.journal", b"two"),
            ("holdfast-20261130-130405-3.journal", b"six"),
        ] {
            let mut kept = Kept::new(Place::Next(named.clone())).expect("it can be written");
            kept.write(content).expect("there is room");
            assert_eq!(kept.finish().expect("there is a name"), directory.join(name));
            assert_eq!(fs::read(directory.join(name)).expect("it is there"), content);
        }
        assert_eq!(fs::read(&named).expect("it is there"), b"one", "nobody's place is taken");
        fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn only_where_an_edge_can_be_is_asked() {
        for right in ["http://127.0.0.1:8080", "https://edge.example/", "http://anna@10.0.0.1"] {
            assert!(edge(right).is_ok(), "{right}");
        }
        for wrong in ["ftp://127.0.0.1/", "127.0.0.1:8080", "localhost:8080", "file:///a.journal", "http://", ""] {
            assert!(edge(wrong).expect_err(wrong).contains("http://ADDRESS:PORT"), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let told = |status, text: &str| {
            Failed::Refused(String::from("http://127.0.0.1:8080/"), refused(status, text.as_bytes())).to_string()
        };
        assert!(told(401, "{}").contains("--token"));
        assert!(
            told(404, r#"{"reason":"recorder-off","detail":"nothing is recorded here"}"#)
                .contains("nothing is recorded")
        );
        assert!(told(404, "<html>").contains("another program"));
        assert!(told(200, "hello").contains("200"));
    }

    #[test]
    fn a_dump_without_a_name_has_the_time_in_it() {
        let time: Timestamp = "2026-11-30T13:04:05Z".parse().expect("a time");
        assert_eq!(named(time), Path::new("holdfast-20261130-130405.journal"));
    }
}
