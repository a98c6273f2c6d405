//! `holdfast dump`: fetches the journal of an edge that runs, and keeps it in a file.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use holdfast_io::http::FieldValue;
use holdfast_io::http::client::{Get, ResponseHead};
use holdfast_io::http::field::AUTHORIZATION;
use holdfast_io::net::tls::Trust;
use holdfast_io::net::{FetchError, Part, fetch};
use jiff::Timestamp;
use url::Url;

use crate::replay::LARGEST;

/// Save what happened lately from an edge that runs, for `holdfast replay`.
#[derive(Debug, Args)]
pub struct Dump {
    /// Where the edge is
    #[arg(long, default_value = "http://127.0.0.1:8080")]
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
            Failed::Fetch(url, error) => write!(f, "{url}: {error}"),
            Failed::Refused(url, Refusal { status, reason, detail }) => match (status, reason.as_str()) {
                (401, _) => write!(f, "{url}: this edge wants one of the tokens of its [api]: add --token TOKEN"),
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
        let path = self.output.clone().unwrap_or_else(|| named(Timestamp::now()));
        let get = self.question()?;
        let mut trust = match &self.authorities {
            Some(file) => {
                Trust::with_authorities(file).map_err(|error| Failed::Ask(format!("--authorities: {error}")))?
            }
            None => Trust::default(),
        };
        let mut kept = Kept::new(&path, self.force)?;
        let url = get.url().to_string();
        let (mut refusal, mut begin) = (None, Vec::new());
        let mut wrote = Ok(());
        let fetched = fetch(&get, &mut trust, &mut |part| {
            match part {
                Part::Head(head) if head.status != 200 || !is_journal(head) => {
                    refusal = Some((head.status, Vec::new()))
                }
                Part::Head(_) => {}
                Part::Content(data) => match &mut refusal {
                    Some((_, text)) => text.extend_from_slice(&data[..data.len().min((64 << 10) - text.len())]),
                    None if kept.length + data.len() as u64 > LARGEST => {
                        return Err(io::Error::other("it has more than 1 GiB, which no journal has"));
                    }
                    None => {
                        begin.extend_from_slice(&data[..data.len().min(8_usize.saturating_sub(begin.len()))]);
                        if let Err(error) = kept.write(data) {
                            wrote = Err(error);
                            return Err(io::Error::other("not written"));
                        }
                    }
                },
            }
            Ok(())
        });
        wrote.map_err(|error| Failed::Write(path.clone(), error))?;
        fetched.map_err(|error| Failed::Fetch(url.clone(), error))?;
        if let Some((status, text)) = refusal {
            return Err(Failed::Refused(url, refused(status, &text)));
        }
        if !begin.starts_with(b"HOLDFST") {
            return Err(Failed::Ask(format!("{url}: what came is no journal")));
        }
        let length = kept.length;
        kept.finish()?;
        Ok((path, length))
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

/// A file that is there when it is whole, and not before.
struct Kept {
    path: PathBuf,
    part: PathBuf,
    file: Option<File>,
    force: bool,
    length: u64,
}

impl Kept {
    fn new(path: &Path, force: bool) -> Result<Kept, Failed> {
        let failed = |error| Failed::Create(path.to_owned(), error);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => return Err(failed(io::Error::other("it is a directory"))),
            Ok(_) if !force => return Err(Failed::Exists(path.to_owned())),
            _ => {}
        }
        let name = path.file_name().ok_or_else(|| failed(io::Error::other("it has no name")))?;
        let part = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        // There are addresses of players in it: nobody else's business.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
        Ok(Kept { path: path.to_owned(), part, file: Some(file), force, length: 0 })
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.length += data.len() as u64;
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(data))
    }

    fn finish(mut self) -> Result<(), Failed> {
        let failed = |error| Failed::Write(self.path.clone(), error);
        if let Some(file) = self.file.take() {
            file.sync_all().map_err(failed)?;
        }
        if self.force {
            return fs::rename(&self.part, &self.path).map_err(failed);
        }
        // Unlike a rename, this takes nobody's place, whoever came meanwhile.
        match fs::hard_link(&self.part, &self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failed::Exists(self.path.clone())),
            // Not every file system has these.
            Err(_) => fs::rename(&self.part, &self.path).map_err(failed),
        }
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
    use super::*;

    #[test]
    fn a_file_is_there_when_it_is_whole_and_takes_nobody_s_place() {
        let directory = std::env::temp_dir().join(format!("holdfast-dump-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("the temporary folder can be written");
        let path = directory.join("a.journal");
        let mut kept = Kept::new(&path, false).expect("it can be written");
        kept.write(b"one").expect("there is room");
        assert!(!path.exists());
        let mut other = Kept { part: directory.join("other"), file: None, path: path.clone(), force: false, length: 0 };
        fs::write(&other.part, b"two").expect("there is room");
        kept.finish().expect("nobody is there");
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        assert!(matches!(Kept::new(&path, false), Err(Failed::Exists(_))));
        other.length = 3;
        assert!(matches!(other.finish(), Err(Failed::Exists(_))));
        let mut forced = Kept::new(&path, true).expect("as wished");
        forced.write(b"three").expect("there is room");
        drop(forced);
        assert_eq!(fs::read(&path).expect("it is there"), b"one", "what is not whole is nothing");
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 1, "nothing is left of it");
        assert!(matches!(Kept::new(&directory, true), Err(Failed::Create(..))));
        assert!(matches!(Kept::new(Path::new("/nonexistent/a"), false), Err(Failed::Create(..))));
        fs::remove_dir_all(&directory).expect("it is ours");
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
