//! HTTP/1.1 over plain sockets: every byte that goes out is the test's, every byte that comes back is kept.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long an answer may take before the test fails.
const LIMIT: Duration = Duration::from_secs(15);

/// A request, built up field by field.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request without a body.
    pub fn new(method: &str, path: &str) -> Request {
        Request { method: method.to_owned(), path: path.to_owned(), fields: Vec::new(), body: Vec::new() }
    }

    /// A WHIP offer.
    pub fn offer(path: &str, sdp: &str) -> Request {
        Request::new("POST", path).field("Content-Type", "application/sdp").body(sdp)
    }

    /// A WHIP fragment: trickled candidates, or new credentials for a restart.
    pub fn fragment(path: &str, if_match: &str, fragment: &str) -> Request {
        Request::new("PATCH", path)
            .field("Content-Type", "application/trickle-ice-sdpfrag")
            .field("If-Match", if_match)
            .body(fragment)
    }

    /// One more field.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Request {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body; its length is put into the head.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Request {
        body.as_ref().clone_into(&mut self.body);
        self
    }

    fn bytes(&self, host: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", self.method, self.path);
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PATCH") {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends it over a connection of its own and reads the whole answer.
    ///
    /// # Panics
    /// When there is no proper answer within 15 s.
    pub fn send(&self, to: SocketAddr) -> Response {
        let mut connection = Connection::open(to);
        connection.send(self);
        let head = self.method == "HEAD";
        connection.response(head).unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.path))
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Names in lower case, with their values, in order.
    pub fields: Vec<(String, String)>,
    /// Its body, without the framing.
    pub body: Vec<u8>,
    /// From the last byte sent to the last byte read.
    pub took: Duration,
}

impl Response {
    /// The first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.as_str())
    }

    /// The first field of this name.
    ///
    /// # Panics
    /// When there is none.
    pub fn must(&self, name: &str) -> &str {
        self.field(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; `Null` if it is something else.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The reason a refusal gives in its problem body.
    pub fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or_default().to_owned()
    }
}

/// What an edge did with a connection instead of answering properly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was closed or reset before a whole answer had come.
    Closed,
    /// Nothing came in time.
    Silence,
    /// What came is not HTTP.
    Garbage(String),
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoAnswer::Closed => f.write_str("the connection was closed without a whole answer"),
            NoAnswer::Silence => f.write_str("no answer in time"),
            NoAnswer::Garbage(what) => write!(f, "not HTTP: {what}"),
        }
    }
}

/// One connection.
pub struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    unread: Vec<u8>,
    sent: Instant,
    limit: Duration,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// When nobody listens.
    pub fn open(to: SocketAddr) -> Connection {
        let stream =
            TcpStream::connect_timeout(&to, LIMIT).unwrap_or_else(|error| panic!("connecting to {to}: {error}"));
        stream.set_nodelay(true).unwrap();
        Connection { stream, peer: to, unread: Vec::new(), sent: Instant::now(), limit: LIMIT }
    }

    /// Waits for answers no longer than this from now on.
    pub fn limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Sends bytes as they are; an edge that has closed meanwhile is no failure of the test.
    pub fn raw(&mut self, bytes: &[u8]) -> bool {
        let sent = self.stream.write_all(bytes).is_ok();
        self.sent = Instant::now();
        sent
    }

    /// Sends a request.
    pub fn send(&mut self, request: &Request) {
        let bytes = request.bytes(self.peer);
        self.raw(&bytes);
    }

    /// Says that nothing more is sent; answers still come.
    ///
    /// # Panics
    /// When the connection is gone.
    pub fn shut_down(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).expect("the connection stands");
    }

    /// Closes both ways, without waiting for what may still come.
    pub fn hang_up(self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn more(&mut self, until: Instant) -> Result<(), NoAnswer> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NoAnswer::Silence);
        }
        self.stream.set_read_timeout(Some(left)).unwrap();
        let mut chunk = [0; 16384];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(NoAnswer::Closed),
            Ok(read) => {
                self.unread.extend_from_slice(&chunk[..read]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(NoAnswer::Silence),
            Err(_) => Err(NoAnswer::Closed),
        }
    }

    /// Waits until the edge closes, reading and dropping what comes. How long that took, or `None` after `limit`.
    pub fn closed_within(&mut self, limit: Duration) -> Option<Duration> {
        let start = Instant::now();
        loop {
            match self.more(start + limit) {
                Ok(()) => self.unread.clear(),
                Err(NoAnswer::Closed) => return Some(start.elapsed()),
                Err(_) => return None,
            }
        }
    }

    /// The head of the next answer; its body stays unread.
    ///
    /// # Errors
    /// When there is none.
    pub fn head(&mut self) -> Result<Response, NoAnswer> {
        let until = Instant::now() + self.limit;
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            self.more(until)?;
        };
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next().unwrap_or_default();
        let status = line
            .strip_prefix("HTTP/1.1 ")
            .or_else(|| line.strip_prefix("HTTP/1.0 "))
            .and_then(|rest| rest.get(..3))
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| NoAnswer::Garbage(line.to_owned()))?;
        let fields = lines
            .map(|line| {
                let (name, value) = line.split_once(':').ok_or_else(|| NoAnswer::Garbage(line.to_owned()))?;
                Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
            })
            .collect::<Result<_, _>>()?;
        Ok(Response { status, fields, body: Vec::new(), took: self.sent.elapsed() })
    }

    /// The next answer with its body; `head` for one that has none whatever its fields say.
    ///
    /// # Errors
    /// When there is none, or it is cut off.
    pub fn response(&mut self, head: bool) -> Result<Response, NoAnswer> {
        let until = Instant::now() + self.limit;
        let mut response = loop {
            let response = self.head()?;
            if response.status != 100 {
                break response;
            }
        };
        if !head && !matches!(response.status, 204 | 304) {
            response.body = self.body(&response, until)?;
        }
        response.took = self.sent.elapsed();
        Ok(response)
    }

    fn body(&mut self, response: &Response, until: Instant) -> Result<Vec<u8>, NoAnswer> {
        if response.field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return self.chunks(until);
        }
        if let Some(length) = response.field("content-length") {
            let length: usize = length.parse().map_err(|_| NoAnswer::Garbage(length.to_owned()))?;
            return self.take(length, until);
        }
        loop {
            match self.more(until) {
                Ok(()) => {}
                Err(NoAnswer::Closed) => return Ok(std::mem::take(&mut self.unread)),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, length: usize, until: Instant) -> Result<Vec<u8>, NoAnswer> {
        while self.unread.len() < length {
            self.more(until)?;
        }
        Ok(self.unread.drain(..length).collect())
    }

    fn line(&mut self, until: Instant) -> Result<String, NoAnswer> {
        loop {
            if let Some(at) = self.unread.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.unread.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            self.more(until)?;
        }
    }

    fn chunks(&mut self, until: Instant) -> Result<Vec<u8>, NoAnswer> {
        let mut body = Vec::new();
        loop {
            let line = self.line(until)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| NoAnswer::Garbage(line.clone()))?;
            body.extend(self.take(size, until)?);
            if size == 0 {
                while !self.line(until)?.is_empty() {}
                return Ok(body);
            }
            self.take(2, until)?;
        }
    }

    /// So many bytes of a body of known length, or all that come before it breaks off.
    pub fn some(&mut self, length: usize, limit: Duration) -> Vec<u8> {
        let until = Instant::now() + limit;
        while self.unread.len() < length && self.more(until).is_ok() {}
        let length = length.min(self.unread.len());
        self.unread.drain(..length).collect()
    }

    /// The socket and what was read ahead, for a body that never ends.
    pub fn into_stream(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.unread)
    }
}
