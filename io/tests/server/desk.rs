//! A server with simulated time, and what its clients and its media side say to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{Note, RequestId, SessionId, Writer};
use holdfast_core::time::Time;
use holdfast_io::codec::Codec;
use holdfast_io::library::{self, FileCommand, FileEvent};
use holdfast_io::media::{Activity, MediaCommand, MediaEvent, Packet, Unit};
use holdfast_io::providers::Belonging;
use holdfast_io::server::{Action, ConnId, ConnectError, Limits, LinkId, Piece, Server, Settings, Target, Transmit};

/// An offer as browsers send it, cut down to what matters here.
pub const OFFER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\na=msid-semantic: WMS *\r\n\
m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\n\
a=ice-pwd:0123456789abcdef012345\r\na=fingerprint:sha-256 \
00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=setup:actpass\r\na=rtpmap:111 opus/48000/2\r\n\
m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\n\
a=ice-pwd:0123456789abcdef012345\r\na=fingerprint:sha-256 \
00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=setup:actpass\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n";

pub const ANSWER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:wxyz\r\na=ice-pwd:9876543210abcdef012345\r\n\
a=candidate:1 1 UDP 2015363327 127.0.0.1 40000 typ host\r\n";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MediaSide {
    Works,
    Hangs,
}

/// A server, its clients' sockets, and the media side.
pub struct Desk {
    pub server: Server,
    pub now: u64,
    /// What the server wrote to each connection that is not yet read.
    pub written: BTreeMap<ConnId, Vec<u8>>,
    pub closed: Vec<ConnId>,
    pub sessions: BTreeMap<SessionId, Arc<Activity>>,
    pub finished: Vec<SessionId>,
    pub commands: Vec<MediaCommand>,
    pub notes: Vec<Note>,
    /// What was to be kept of the journal.
    pub recorded: Vec<Piece>,
    /// Files that are open.
    pub files: BTreeMap<RequestId, File>,
    /// Links that are to be open, the oldest first.
    pub links: Vec<(LinkId, Target)>,
    /// What was written to each link.
    pub asked: BTreeMap<LinkId, Vec<u8>>,
    /// For how long the kernel lets a client take nothing, where that was said.
    pub patience: BTreeMap<ConnId, Duration>,
    /// What is to be known at the next start.
    pub kept: Vec<Belonging>,
    /// Whether sockets take anything.
    pub writable: bool,
    /// Whether the media side answers offers and takes sessions down.
    pub media: MediaSide,
}

impl Desk {
    pub fn new(endpoint: Endpoint, settings: Settings) -> Self {
        Desk::open(Config { endpoints: vec![endpoint], ..Config::default() }, settings)
    }

    pub fn open(config: Config, settings: Settings) -> Self {
        let mut entropy = 0u64;
        let next = move || {
            entropy += 1;
            let mut bytes = [entropy as u8; 16];
            if entropy > 255 {
                bytes[..8].copy_from_slice(&entropy.to_be_bytes());
            }
            bytes
        };
        Desk {
            server: Server::new(config, settings, Box::new(next)),
            now: 0,
            written: BTreeMap::new(),
            closed: Vec::new(),
            sessions: BTreeMap::new(),
            finished: Vec::new(),
            commands: Vec::new(),
            notes: Vec::new(),
            recorded: Vec::new(),
            files: BTreeMap::new(),
            links: Vec::new(),
            asked: BTreeMap::new(),
            patience: BTreeMap::new(),
            kept: Vec::new(),
            writable: true,
            media: MediaSide::Works,
        }
    }

    pub fn simple() -> Self {
        Desk::new(Endpoint::default(), Settings::default())
    }

    pub fn time(&self) -> Time {
        Time::from_micros(self.now * 1000)
    }

    pub fn connect(&mut self) -> ConnId {
        let id = self.server.accepted(self.time(), "127.0.0.1:50000".parse().unwrap()).expect("room");
        self.turn();
        id
    }

    pub fn send(&mut self, id: ConnId, data: impl AsRef<[u8]>) {
        self.server.received(self.time(), id, data.as_ref());
        self.turn();
    }

    fn file(&mut self, request: RequestId, command: FileCommand) {
        let event = match command {
            FileCommand::Open(place) => library::open(&place).map(|(file, attributes)| {
                self.files.insert(request, file);
                FileEvent::Opened(attributes)
            }),
            FileCommand::Read { at, length } => library::read(&self.files[&request], at, length).map(FileEvent::Data),
            FileCommand::Close => return drop(self.files.remove(&request)),
        };
        self.server.file(self.time(), request, event.unwrap_or_else(FileEvent::Failed));
    }

    pub fn turn(&mut self) {
        while let Some(action) = self.server.poll() {
            match action {
                Action::Write(id) if self.writable => self.write(id),
                Action::Write(id) => {
                    let now = self.time();
                    let result = self.server.transmit(now, id, &mut |_| Err(ErrorKind::WouldBlock.into()));
                    assert_ne!(result.unwrap(), Transmit::Idle);
                }
                Action::Close(id) => self.closed.push(id),
                Action::Patience(id, patience) => drop(self.patience.insert(id, patience)),
                Action::Media(MediaCommand::Start { session, activity, .. }) => {
                    self.sessions.insert(session, activity);
                    if self.media == MediaSide::Hangs {
                        continue;
                    }
                    let answer = ANSWER.to_owned();
                    self.server.media(self.time(), MediaEvent::Answered { session, answer });
                }
                Action::Media(MediaCommand::Finish { session }) => {
                    self.finished.push(session);
                    if self.media == MediaSide::Works {
                        self.server.media(self.time(), MediaEvent::Gone { session });
                    }
                }
                Action::Media(command) => self.commands.push(command),
                Action::Connect(link, target) => self.links.push((link, target)),
                Action::WriteLink(link) => {
                    let (now, written) = (self.time(), self.asked.entry(link).or_default());
                    let result = self.server.link_transmit(now, link, &mut |pieces| {
                        pieces.iter().for_each(|piece| written.extend_from_slice(piece));
                        Ok(pieces.iter().map(|piece| piece.len()).sum())
                    });
                    assert_eq!(result.unwrap(), Transmit::Idle);
                }
                Action::CloseLink(link) => self.links.retain(|(open, _)| *open != link),
                Action::Scan(libraries) => {
                    let now = self.time();
                    self.server.scanned(now, &library::scan(&libraries));
                }
                Action::File(request, command) => self.file(request, command),
                Action::ReadFile(link, path) => match std::fs::read(path) {
                    Ok(content) => {
                        content.chunks(5000).for_each(|piece| self.server.link_received(self.time(), link, piece));
                        self.server.link_eof(self.time(), link);
                    }
                    Err(error) => self.server.link_failed(self.time(), link, ConnectError::Other(error.to_string())),
                },
                Action::Keep(belongings) => self.kept.extend(belongings),
                Action::Record(piece) => self.recorded.push(piece),
                Action::Note(note) => self.notes.push(note),
            }
        }
    }

    fn write(&mut self, id: ConnId) {
        let (now, written) = (self.time(), self.written.entry(id).or_default());
        // What is made piece by piece lets others have their turn in between.
        for _ in 0..10_000 {
            let result = self.server.transmit(now, id, &mut |pieces| {
                pieces.iter().for_each(|piece| written.extend_from_slice(piece));
                Ok(pieces.iter().map(|piece| piece.len()).sum())
            });
            if result.unwrap() == Transmit::Idle {
                return;
            }
        }
        panic!("an answer without end");
    }

    /// A socket that took nothing takes all there is.
    pub fn flush(&mut self, id: ConnId) {
        self.write(id);
        self.turn();
    }

    /// Runs every deadline up to `until` ms.
    pub fn run(&mut self, until: u64) {
        while let Some(at) = self.server.deadline().map(|at| at.as_micros().div_ceil(1000)).filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.server.tick(self.time());
            self.turn();
        }
        self.now = until;
    }

    /// Publishers that live from now to `until`, in steps of 20 ms.
    pub fn run_alive(&mut self, sessions: &[SessionId], until: u64) {
        while self.now < until {
            for session in sessions {
                self.sessions[session].stamp(Packet::Audio, self.time());
            }
            self.run(self.now + 20);
        }
    }

    pub fn read(&mut self, id: ConnId) -> String {
        String::from_utf8_lossy(&self.written.remove(&id).unwrap_or_default()).into_owned()
    }

    /// One request on a connection of its own; the answer, empty if there is none yet.
    pub fn ask(&mut self, request: &str) -> String {
        let id = self.connect();
        self.send(id, request);
        self.read(id)
    }

    pub fn post(&mut self) -> ConnId {
        let id = self.connect();
        self.send(id, post_request("", OFFER));
        id
    }

    /// A publisher that is let in.
    pub fn publish(&mut self) -> (SessionId, String) {
        let id = self.post();
        let answer = self.read(id);
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        (*self.sessions.last_key_value().expect("a session").0, header(&answer, "Location").expect("Location"))
    }

    /// What `/metrics` says of one series.
    pub fn metric(&mut self, series: &str) -> Option<u64> {
        let page = self.ask("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
        page.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    pub fn status(&mut self) -> serde_json::Value {
        let answer = self.ask("GET /api/status HTTP/1.1\r\nHost: h\r\n\r\n");
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    }

    pub fn video(&mut self, session: SessionId, at: i64) {
        // An access unit delimiter, then an IDR slice.
        let data = Bytes::from_static(&[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65, 1, 2, 3]);
        let unit = Unit { from: Writer::Session(session), codec: Codec::H264, pts: at, dts: at, key: true, data };
        self.server.media(self.time(), MediaEvent::Unit(unit));
        self.turn();
    }
}

pub fn limited(limits: Limits) -> Settings {
    Settings { limits, ..Settings::default() }
}

pub fn post_request(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /whip/live HTTP/1.1\r\nHost: h\r\nContent-Type: application/sdp\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    )
}

pub fn patch_request(location: &str, if_match: &str, body: &str) -> String {
    let if_match = if if_match.is_empty() { String::new() } else { format!("If-Match: {if_match}\r\n") };
    let length = body.len();
    format!(
        "PATCH {location} HTTP/1.1\r\nHost: h\r\nContent-Type: application/trickle-ice-sdpfrag\r\n{if_match}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

pub fn header(answer: &str, name: &str) -> Option<String> {
    let head = answer.split("\r\n\r\n").next()?;
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
}

pub fn fragment(ufrag: &str, pwd: &str) -> String {
    format!(
        "a=ice-ufrag:{ufrag}\r\na=ice-pwd:{pwd}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n\
         a=candidate:1 1 UDP 2113937151 192.0.2.1 50000 typ host\r\na=end-of-candidates\r\n"
    )
}

pub const SAME: [&str; 2] = ["abcd", "0123456789abcdef012345"];
pub const NEW: [&str; 2] = ["efgh", "abcdef0123456789abcdef"];

/// What an answer holds, also where it came in chunks (RFC 9112 §7.1).
pub fn content(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return rest.to_owned();
    }
    let mut content = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").expect("the size of a chunk");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            assert_eq!(after, "\r\n");
            return content;
        }
        content.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").expect("the end of a chunk");
    }
}
