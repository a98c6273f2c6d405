//! Peers of the edge: publishers that POST and send, clients that come in the wrong way, viewers that check what they get.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use holdfast_core::input::SessionId;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;
use turmoil::net::{TcpStream, UdpSocket};

use super::edge::{HTTP, Kind, MEDIA, mark, pack, session_of, unpack};
use super::{Shared, now_ms, panel};

/// How a publisher sends: one packet each so many ms, 0 = never.
#[derive(Clone, Copy, Debug)]
pub struct Sends {
    pub audio: u64,
    pub video: u64,
    pub control: u64,
}

pub const AUDIO_VIDEO: Sends = Sends { audio: 20, video: 40, control: 1000 };

/// One in so many pictures is a key frame.
const KEY_FRAME_EACH: u64 = 50;

/// Whether a publisher minds that a transport is closed: by the server, or by itself when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenClosed {
    Stop,
    /// It sends on as if it had not heard, and ends without a word.
    Ignore,
}

/// A POST and its answer.
#[derive(Clone, Debug, Default)]
pub struct Post {
    pub who: &'static str,
    pub status: u16,
    /// Of a problem.
    pub reason: String,
    pub retry_after: Option<u64>,
    pub location: String,
    pub session: Option<SessionId>,
    pub asked: u64,
    pub answered: u64,
}

/// What a viewer got.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    pub packets: u64,
    /// Packets that did not begin as one, or whose counter did not follow the one before.
    pub faults: u64,
    /// Whose media it was, in order.
    pub sessions: Vec<SessionId>,
    /// How often it began anew.
    pub begun: u64,
    pub last: u64,
    /// The longest time in which nothing came, after the first.
    pub gap: u64,
    pub ended: Option<u64>,
    counters: BTreeMap<u16, u8>,
    rest: Vec<u8>,
}

impl Watch {
    fn take(&mut self, data: &[u8], known: &[SessionId]) {
        self.gap = if self.last > 0 { self.gap.max(now_ms() - self.last) } else { 0 };
        self.last = now_ms();
        self.rest.extend_from_slice(data);
        let whole = self.rest.len() / 188 * 188;
        let bytes: Vec<u8> = self.rest.drain(..whole).collect();
        for packet in bytes.chunks(188) {
            self.packet(packet, known);
        }
    }

    fn packet(&mut self, packet: &[u8], known: &[SessionId]) {
        self.packets += 1;
        let pid = u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
        let (payload, counter) = (packet[3] & 0x10 != 0, packet[3] & 0x0f);
        let before = self.counters.insert(pid, counter);
        let follows = before.is_none_or(|before| counter == if payload { (before + 1) % 16 } else { before });
        self.faults += u64::from(packet[0] != 0x47 || !follows);
        let whose = known.iter().find(|session| packet.windows(4).any(|bytes| bytes == mark(**session)));
        if let Some(session) = whose.filter(|session| self.sessions.last() != Some(*session)) {
            self.sessions.push(*session);
        }
    }
}

/// An answer to a request.
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
    pub stream: TcpStream,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &str| line.split_once(':').is_some_and(|(own, _)| own.eq_ignore_ascii_case(name));
        let line = self.head.lines().find(|line| named(line))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }
}

/// As whom publishers are counted.
pub const PUBLISHERS: &str = "publishers";

/// Somebody who is there until this is dropped: with its host, if that is no more.
pub struct Present {
    shared: Rc<Shared>,
    who: String,
}

impl Drop for Present {
    fn drop(&mut self) {
        if let Some(count) = self.shared.present.borrow_mut().get_mut(&self.who) {
            *count -= 1;
        }
    }
}

/// One host beside the edge.
pub struct Peer {
    pub name: &'static str,
    shared: Rc<Shared>,
    dice: RefCell<SmallRng>,
    /// Connections that it keeps open, as browsers do.
    kept: RefCell<Vec<TcpStream>>,
}

impl Peer {
    /// The host in its `life`th life, from 0: one that comes back does other things than before.
    pub fn new(name: &'static str, shared: Rc<Shared>, seed: u64, life: u64) -> Self {
        let salt = name.bytes().fold(seed, |salt, byte| salt.wrapping_mul(31).wrapping_add(u64::from(byte)));
        // Not the time: where hosts are set up this network asks the real clock for it.
        let salt = salt ^ life.rotate_left(32);
        Peer { name, shared, dice: RefCell::new(SmallRng::seed_from_u64(salt)), kept: RefCell::default() }
    }

    /// Waits until so many ms after the start.
    pub async fn at(&self, ms: u64) {
        sleep(Duration::from_millis(ms.saturating_sub(now_ms()))).await;
    }

    pub fn say(&self, what: std::fmt::Arguments<'_>) {
        self.shared.say(self.name, what);
    }

    /// Somebody is there from now on, as long as what this gives is kept.
    pub fn present(&self, who: &str) -> Present {
        *self.shared.present.borrow_mut().entry(who.to_owned()).or_default() += 1;
        Present { shared: self.shared.clone(), who: who.to_owned() }
    }

    /// What it gets from now on does not follow what it got before.
    pub fn begin(&self) {
        let mut watches = self.shared.watches.borrow_mut();
        let watch = watches.entry(self.name).or_default();
        watch.begun += 1;
        (watch.last, watch.ended) = (0, None);
        watch.counters.clear();
        watch.rest.clear();
    }

    /// How a request for a stream was answered.
    pub fn stream_answered(&self, status: u16) {
        self.shared.streams.borrow_mut().push((self.name, status));
    }

    /// A number from `least` to `most`.
    pub fn between(&self, least: u64, most: u64) -> u64 {
        self.dice.borrow_mut().random_range(least..=most)
    }

    /// Closes what it keeps open.
    pub fn let_go(&self) {
        self.kept.borrow_mut().clear();
    }

    /// It got a piece of a stream.
    pub fn take(&self, data: &[u8]) {
        let mut known: Vec<SessionId> = self.shared.posts.borrow().iter().filter_map(|post| post.session).collect();
        known.extend(self.shared.origins.borrow().values().map(|origin| origin.id));
        known.extend((0..panel::STREAMS).map(panel::session));
        self.shared.watches.borrow_mut().entry(self.name).or_default().take(data, &known);
    }

    /// Sends a request, cut anywhere, and reads the whole answer.
    pub async fn request(&self, text: &str) -> io::Result<Reply> {
        let mut stream = TcpStream::connect(("edge", HTTP)).await?;
        self.send(&mut stream, text).await?;
        self.reply(stream).await
    }

    pub async fn send(&self, stream: &mut TcpStream, text: &str) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let cut = self.dice.borrow_mut().random_range(1..=rest.len());
            let (piece, more) = rest.split_at(cut);
            stream.write_all(piece).await?;
            rest = more;
        }
        Ok(())
    }

    async fn reply(&self, mut stream: TcpStream) -> io::Result<Reply> {
        let mut data = Vec::new();
        loop {
            if stream.read_buf(&mut data).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let text = String::from_utf8_lossy(&data);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                let (head, body) = (head.to_owned(), body.to_owned());
                return Ok(Reply { status, head, body, stream });
            }
        }
    }

    /// POSTs an offer.
    pub async fn post(&self) -> io::Result<Post> {
        self.post_as("Authorization: Bearer secret\r\nContent-Type: application/sdp\r\n", &offer()).await
    }

    /// POSTs anything.
    pub async fn post_as(&self, headers: &str, body: &str) -> io::Result<Post> {
        let asked = now_ms();
        let length = body.len();
        let head = format!("POST /whip/live HTTP/1.1\r\nHost: edge\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        let reply = self.request(&head).await?;
        let problem = reply.body.split_once("\"reason\":\"").and_then(|(_, rest)| rest.split('"').next());
        let post = Post {
            who: self.name,
            status: reply.status,
            reason: problem.unwrap_or_default().to_owned(),
            retry_after: reply.header("Retry-After").and_then(|seconds| seconds.parse().ok()),
            location: reply.header("Location").unwrap_or_default().to_owned(),
            session: session_of(&reply.body).filter(|_| reply.status == 201),
            asked,
            answered: now_ms(),
        };
        let took = post.answered - asked;
        self.say(format_args!("POST → {} {} {:?} after {took} ms", post.status, post.reason, post.session));
        self.shared.posts.borrow_mut().push(post.clone());
        self.kept.borrow_mut().push(reply.stream);
        Ok(post)
    }

    /// POSTs an offer and goes away `patience` ms later without having read the answer.
    pub async fn post_and_leave(&self, patience: u64) -> io::Result<()> {
        let mut stream = TcpStream::connect(("edge", HTTP)).await?;
        let body = offer();
        let length = body.len();
        let text = format!(
            "POST /whip/live HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer secret\r\n\
             Content-Type: application/sdp\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.send(&mut stream, &text).await?;
        sleep(Duration::from_millis(patience)).await;
        self.say(format_args!("hangs up"));
        self.shared.gone.borrow_mut().insert(stream.local_addr()?);
        Ok(())
    }

    /// DELETEs a session; the status of the answer.
    pub async fn delete(&self, post: &Post) -> io::Result<u16> {
        let location = &post.location;
        let text = format!("DELETE {location} HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer secret\r\n\r\n");
        let status = self.request(&text).await?.status;
        self.say(format_args!("DELETE → {status}"));
        self.shared.statuses.borrow_mut().push((self.name, status));
        Ok(status)
    }

    /// Sends until so many ms after the start, then closes its transport, if it minds closing at all. When the server closed it, if
    /// it did before.
    pub async fn publish(&self, post: &Post, sends: Sends, until: u64, closed: WhenClosed) -> io::Result<Option<u64>> {
        let Some(session) = post.session else { return Err(io::ErrorKind::InvalidInput.into()) };
        let _present = self.present(PUBLISHERS);
        let edge = (turmoil::lookup("edge"), MEDIA);
        let socket = UdpSocket::bind(("0.0.0.0", 0)).await?;
        let start = now_ms();
        let mut next = [start, start, start + sends.control];
        let every = [sends.audio, sends.video, sends.control];
        let (mut pictures, mut key, mut told) = (0_u64, true, None);
        let mut buffer = [0; 64];
        self.say(format_args!("sends {sends:?} for {session}"));
        loop {
            let track = (0..3).filter(|track| every[*track] > 0).min_by_key(|track| next[*track]);
            let at = track.map_or(until, |track| next[track]).min(until);
            tokio::select! {
                biased;
                () = sleep(Duration::from_millis(at.saturating_sub(now_ms()))) => {
                    let Some(track) = track.filter(|track| next[*track] < until) else {
                        if closed == WhenClosed::Stop {
                            socket.send_to(&pack(Kind::Bye, session), edge).await?;
                            self.say(format_args!("closes {session}"));
                        }
                        return Ok(told);
                    };
                    next[track] += every[track];
                    let kind = match track {
                        0 => Kind::Audio,
                        1 => {
                            pictures += 1;
                            let now = key || pictures.is_multiple_of(KEY_FRAME_EACH);
                            key = false;
                            if now { Kind::KeyFrame } else { Kind::Video }
                        }
                        _ => Kind::Control,
                    };
                    socket.send_to(&pack(kind, session), edge).await?;
                }
                received = socket.recv_from(&mut buffer) => {
                    let (length, _) = received?;
                    match unpack(&buffer[..length]) {
                        Some((Kind::WantKeyFrame, own)) if own == session => key = true,
                        Some((Kind::Close, own)) if own == session && told.is_none() => {
                            told = Some(now_ms());
                            self.shared.told.borrow_mut().push((self.name, now_ms()));
                            self.say(format_args!("is told that {session} is over"));
                            if closed == WhenClosed::Stop {
                                return Ok(told);
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Watches until the stream ends; takes nothing any more from `stops` ms after the start on.
    pub async fn watch(&self, stops: Option<u64>) -> io::Result<()> {
        self.watch_at("edge", "live", stops).await
    }

    /// The same of any stream of any edge.
    pub async fn watch_at(&self, edge: &str, name: &str, stops: Option<u64>) -> io::Result<()> {
        self.watch_path(edge, name, &format!("/live/{name}.ts"), stops).await
    }

    /// The same of any path; counts as `who` as long as it lasts.
    pub async fn watch_path(&self, edge: &str, who: &str, path: &str, stops: Option<u64>) -> io::Result<()> {
        let mut stream = TcpStream::connect((edge, HTTP)).await?;
        self.send(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: {edge}\r\n\r\n")).await?;
        let mut data = Vec::new();
        let mut present = None;
        self.begin();
        loop {
            if stops.is_some_and(|stops| stops <= now_ms()) {
                self.say(format_args!("stops reading"));
                self.kept.borrow_mut().push(stream);
                std::future::pending::<()>().await;
                return Ok(());
            }
            let read = stream.read_buf(&mut data).await.unwrap_or(0);
            if read == 0 {
                let mut watches = self.shared.watches.borrow_mut();
                let watch = watches.entry(self.name).or_default();
                watch.ended = Some(now_ms());
                self.say(format_args!("its stream ended after {} packets", watch.packets));
                return Ok(());
            }
            if present.is_none() {
                let Some(end) = data.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
                let head = String::from_utf8_lossy(&data[..end]).into_owned();
                self.say(format_args!("GET → {}", head.lines().next().unwrap_or_default()));
                let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
                self.stream_answered(status);
                if status != 200 {
                    return Ok(());
                }
                data.drain(..end + 4);
                present = Some(self.present(who));
            }
            self.take(&data);
            data.clear();
        }
    }
}

/// An offer as browsers send it.
fn offer() -> String {
    let shared = "c=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\na=ice-ufrag:Pq4x\r\na=ice-pwd:0123456789abcdefghijklmn\r\n\
                  a=ice-options:trickle\r\na=fingerprint:sha-256 \
                  00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\n\
                  a=setup:actpass\r\na=sendonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\n";
    format!(
        "v=0\r\no=- 7614219274584779017 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
         a=msid-semantic: WMS stream\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n{shared}a=mid:0\r\n\
         a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\n\
         {shared}a=mid:1\r\na=rtpmap:96 H264/90000\r\n\
         a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
         a=rtcp-fb:96 nack pli\r\n"
    )
}
