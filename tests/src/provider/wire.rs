//! One connection to a provider: requests come in, heads and bodies go out, until somebody closes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;

use super::accounts::is_gone;

/// How often a connection that waits looks whether it still has a peer.
const LOOK: Duration = Duration::from_millis(50);
/// How long a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(20);

/// The peer is gone, or the provider is.
#[derive(Debug)]
pub(super) struct Gone;

/// A request, as far as a provider cares.
pub(super) struct Request {
    pub method: String,
    /// As it came, with its query.
    pub target: String,
    /// Its parts, decoded.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub fields: Vec<(String, String)>,
}

impl Request {
    fn parse(head: &str) -> Option<Request> {
        let mut lines = head.trim_end().split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let path = path.split('/').skip(1).map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned());
        let query = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (decoded(k), decoded(v)));
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        Some(Request { path: path.collect(), query: query.collect(), method, target: target.clone(), fields })
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The head of an answer.
pub(super) struct Head {
    status: u16,
    fields: Vec<(&'static str, String)>,
}

impl Head {
    pub fn new(status: u16) -> Head {
        Head { status, fields: Vec::new() }
    }

    pub fn with(mut self, name: &'static str, value: impl ToString) -> Head {
        self.fields.push((name, value.to_string()));
        self
    }

    pub fn status(&self) -> u16 {
        self.status
    }
}

pub(super) struct Wire {
    pub socket: Arc<TcpStream>,
    pub number: u64,
    /// The provider is no more.
    pub over: Arc<AtomicBool>,
    /// What was read ahead.
    unread: Vec<u8>,
    /// Bytes of the current answer's body.
    pub sent: u64,
}

impl Wire {
    pub fn new(socket: TcpStream, number: u64, over: Arc<AtomicBool>) -> Wire {
        let _ = socket.set_nodelay(true);
        let _ = socket.set_read_timeout(Some(LOOK));
        let _ = socket.set_write_timeout(Some(LOOK));
        Wire { socket: Arc::new(socket), number, over, unread: Vec::new(), sent: 0 }
    }

    /// The next request; `None` when there is none any more.
    pub fn request(&mut self) -> Option<Request> {
        let begin = Instant::now();
        let mut buffer = [0; 8192];
        loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..end + 4).collect();
                return Request::parse(&String::from_utf8_lossy(&head));
            }
            match (&*self.socket).read(&mut buffer) {
                Ok(0) => return None,
                Ok(read) => self.unread.extend_from_slice(&buffer[..read]),
                Err(error) if is_wait(error.kind()) && !self.over.load(Relaxed) && begin.elapsed() < IDLE => {}
                Err(_) => return None,
            }
        }
    }

    /// What comes after a head, of a POST.
    pub fn body(&mut self, length: usize) -> Option<Vec<u8>> {
        let begin = Instant::now();
        let mut buffer = [0; 8192];
        while self.unread.len() < length {
            match (&*self.socket).read(&mut buffer) {
                Ok(read @ 1..) => self.unread.extend_from_slice(&buffer[..read]),
                Err(error) if is_wait(error.kind()) && begin.elapsed() < IDLE => {}
                _ => return None,
            }
        }
        Some(self.unread.drain(..length).collect())
    }

    pub fn head(&mut self, head: &Head) -> Result<(), Gone> {
        self.sent = 0;
        let mut text = format!("HTTP/1.1 {} {}\r\n", head.status, reason(head.status));
        for (name, value) in &head.fields {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        self.write(text.as_bytes())
    }

    /// A part of a body.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.write(bytes)?;
        self.sent += bytes.len() as u64;
        Ok(())
    }

    /// A body at so many bytes a second.
    pub fn send_at(&mut self, bytes: &[u8], rate: u64) -> Result<(), Gone> {
        let begin = Instant::now();
        let piece = (rate / 50).clamp(512, 64 << 10) as usize;
        for (index, piece_of) in bytes.chunks(piece).enumerate() {
            let due = Duration::from_secs_f64((index * piece) as f64 / rate as f64);
            self.wait(due.saturating_sub(begin.elapsed()))?;
            self.send(piece_of)?;
        }
        Ok(())
    }

    fn write(&self, mut bytes: &[u8]) -> Result<(), Gone> {
        while !bytes.is_empty() {
            match (&*self.socket).write(bytes) {
                Ok(0) => return Err(Gone),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_wait(error.kind()) && !self.is_over() => {}
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Nothing, for so long.
    pub fn wait(&self, time: Duration) -> Result<(), Gone> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            if self.is_over() {
                return Err(Gone);
            }
            std::thread::sleep(LOOK.min(time.saturating_sub(begin.elapsed())));
        }
        Ok(())
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Relaxed) || is_gone(&self.socket)
    }

    /// The end of what is sent; the connection counts until the peer has closed as well, for three seconds at most.
    pub fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        let _ = self.wait(Duration::from_secs(3));
    }
}

fn is_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        302 => "Found",
        304 => "Not Modified",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Whatever",
    }
}

/// What a range of a file of this length stands for (RFC 9110, 14.1.2): from, and up to that byte. `None`: the whole file.
pub(super) fn range(field: Option<&str>, length: u64) -> Option<Result<(u64, u64), Unsatisfiable>> {
    let spec = field?.strip_prefix("bytes=")?;
    let (first, last) = spec.split_once('-')?;
    // Several are answered with all of it.
    if spec.contains(',') {
        return None;
    }
    if first.is_empty() {
        let suffix: u64 = last.parse().ok()?;
        return Some(if suffix == 0 || length == 0 {
            Err(Unsatisfiable)
        } else {
            Ok((length.saturating_sub(suffix), length - 1))
        });
    }
    let first: u64 = first.parse().ok()?;
    let last: u64 = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    if last < first {
        return None;
    }
    Some(if first >= length { Err(Unsatisfiable) } else { Ok((first, last.min(length - 1))) })
}

/// A range that begins behind the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsatisfiable;
