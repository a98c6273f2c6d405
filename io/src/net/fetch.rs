//! What does an address answer? For command lines: it blocks.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls::StreamOwned;

use super::tls::Trust;
use crate::http::client::{Event, Exchange, Fault, Get, ResponseHead};

/// How long connecting, and each read and write, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer, or not all of it.
#[derive(Debug)]
pub enum FetchError {
    /// Nobody can be connected to.
    Unreachable(io::Error),
    /// The connection broke, or nothing came for too long.
    Broken(io::Error),
    /// The answer was not at its end by then.
    Endless(Duration),
    /// What came is no answer.
    Answer(Fault),
    /// TLS cannot be spoken.
    Tls(String),
    /// What `take` returned.
    Taken(io::Error),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Unreachable(error) => write!(f, "nobody can be connected to there: {error}"),
            FetchError::Broken(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                write!(f, "no more came of the answer for {PATIENCE:?}")
            }
            FetchError::Broken(error) => write!(f, "the connection broke: {error}"),
            FetchError::Endless(within) => write!(f, "the answer was not at its end after {within:?}"),
            FetchError::Answer(fault) => write!(f, "{fault}"),
            FetchError::Tls(why) => write!(f, "TLS cannot be spoken: {why}"),
            FetchError::Taken(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FetchError {}

/// A part of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Its head; once, first.
    Head(&'a ResponseHead),
    /// The next bytes of its content.
    Content(&'a [u8]),
}

/// Asks and hands each part of the answer to `take`, on this thread. Redirects are not followed. Whoever sends on and on is given up
/// after `within`.
///
/// # Errors
/// [`FetchError`]
pub fn fetch(
    get: &Get,
    trust: &mut Trust,
    within: Duration,
    take: &mut dyn FnMut(Part<'_>) -> io::Result<()>,
) -> Result<(), FetchError> {
    let patience = Patience { since: Instant::now(), within };
    let stream = connect(&get.host(), get.port()).map_err(FetchError::Unreachable)?;
    let patient = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    patient.map_err(FetchError::Broken)?;
    if get.is_encrypted() {
        let tls = trust.client(&get.host()).map_err(FetchError::Tls)?;
        exchange(get, &mut StreamOwned::new(tls, stream), patience, take)
    } else {
        exchange(get, &mut { stream }, patience, take)
    }
}

/// How long all of an answer may take.
#[derive(Clone, Copy)]
struct Patience {
    since: Instant,
    within: Duration,
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(
    get: &Get,
    stream: &mut (impl Read + Write),
    patience: Patience,
    take: &mut dyn FnMut(Part<'_>) -> io::Result<()>,
) -> Result<(), FetchError> {
    let mut exchange = Exchange::new(get);
    stream.write_all(exchange.output()).and_then(|()| stream.flush()).map_err(FetchError::Broken)?;
    exchange.wrote(exchange.output().len());
    let mut buffer = vec![0; 64 << 10];
    loop {
        while let Some(event) = exchange.poll() {
            match event {
                Event::Head(head) => take(Part::Head(&head)).map_err(FetchError::Taken)?,
                Event::Body(data) => take(Part::Content(&data)).map_err(FetchError::Taken)?,
                Event::End => return Ok(()),
                Event::Fault(fault) => return Err(FetchError::Answer(fault)),
            }
        }
        if patience.since.elapsed() >= patience.within {
            return Err(FetchError::Endless(patience.within));
        }
        match stream.read(&mut buffer) {
            Ok(0) => exchange.eof(),
            Ok(length) => exchange.receive(&buffer[..length]),
            // TLS without its goodbye: whether the answer is whole, its framing says.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => exchange.eof(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(FetchError::Broken(error)),
        }
    }
}
