//! A driver of the whole server over simulated sockets, with a media side that hears publishers over UDP.
//!
//! What a kernel may do to a program it does: reads and writes come in pieces of any length, a socket that its peer does not
//! empty blocks, one whose peer has vanished never says so.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::Config;
use holdfast_core::input::{EndReason, SessionId, Writer};
use holdfast_core::time::Time;
use holdfast_io::codec::Codec;
use holdfast_io::media::{Activity, MediaCommand, MediaEvent, Packet, Unit};
use holdfast_io::server::{Action, ConnId, ConnectError, LinkId, Server, Settings, Target, Transmit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};
use turmoil::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use turmoil::net::{TcpListener, TcpStream, UdpSocket};

use super::{Shared, now};

/// Where the edge serves HTTP.
pub const HTTP: u16 = 80;
/// Where it hears publishers.
pub const MEDIA: u16 = 9000;
/// How much a socket takes before it blocks.
const SOCKET: usize = 64 << 10;
/// Media waits this long in the jitter buffer.
const JITTER: Duration = Duration::from_millis(200);
/// What is left of a connection that the server closed is delivered within this, or not at all. As long what still comes in is
/// thrown away: closing on unread bytes resets a connection, and its peer may lose the answer (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
/// How long a reset takes to come back.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// What one packet between a publisher and the media side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Audio,
    Video,
    /// A picture at which decoding can start.
    KeyFrame,
    Control,
    /// The publisher closes its transport.
    Bye,
    /// The server closes it.
    Close,
    /// The server wants a picture at which decoding can start.
    WantKeyFrame,
}

impl Kind {
    const ALL: [(Kind, u8); 7] = [
        (Kind::Audio, b'A'),
        (Kind::Video, b'V'),
        (Kind::KeyFrame, b'I'),
        (Kind::Control, b'R'),
        (Kind::Bye, b'B'),
        (Kind::Close, b'C'),
        (Kind::WantKeyFrame, b'K'),
    ];
}

/// A packet as it goes over the wire.
pub fn pack(kind: Kind, session: SessionId) -> [u8; 9] {
    let letter = Kind::ALL.iter().find(|(each, _)| *each == kind).map_or(0, |(_, letter)| *letter);
    let mut packet = [letter; 9];
    packet[1..5].copy_from_slice(&(session.index() as u32).to_be_bytes());
    packet[5..].copy_from_slice(&session.generation().to_be_bytes());
    packet
}

/// What a packet says.
pub fn unpack(packet: &[u8]) -> Option<(Kind, SessionId)> {
    let (kind, _) = *Kind::ALL.iter().find(|(_, letter)| packet.first() == Some(letter))?;
    let number = |from: usize| Some(u32::from_be_bytes(packet.get(from..from + 4)?.try_into().ok()?));
    Some((kind, SessionId::from_parts(number(1)?, number(5)?)))
}

/// Four bytes that tell in a stream whose media it is, and that nothing else in it spells.
pub fn mark(session: SessionId) -> [u8; 4] {
    [0xd1, 0xd2, 0x80 | session.index() as u8, 0x80 | session.generation() as u8]
}

pub struct Edge {
    pub server: RefCell<Server>,
    sockets: RefCell<BTreeMap<Line, Rc<Socket>>>,
    sessions: RefCell<BTreeMap<SessionId, Session>>,
    /// What is in the jitter buffers.
    late: RefCell<VecDeque<(Time, Unit)>>,
    udp: UdpSocket,
    changed: Notify,
    dice: RefCell<SmallRng>,
    shared: Rc<Shared>,
}

/// A connection to the edge, or one of its own to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Client(ConnId),
    Link(LinkId),
}

/// One connection's socket.
#[derive(Default)]
struct Socket {
    out: RefCell<VecDeque<u8>>,
    filled: Notify,
    closing: Cell<bool>,
    stop_reading: Notify,
    stop_writing: Notify,
}

struct Session {
    activity: Arc<Activity>,
    peer: Option<SocketAddr>,
}

/// Serves until the simulation ends.
pub async fn serve(
    shared: Rc<Shared>,
    name: &'static str,
    config: Config,
    settings: Settings,
    seed: u64,
) -> io::Result<()> {
    let mut entropy = SmallRng::seed_from_u64(seed ^ 1);
    let server = Server::new(config, settings, Box::new(move || entropy.random()));
    let listener = TcpListener::bind(("0.0.0.0", HTTP)).await?;
    let edge = Rc::new(Edge {
        server: RefCell::new(server),
        sockets: RefCell::default(),
        sessions: RefCell::default(),
        late: RefCell::default(),
        udp: UdpSocket::bind(("0.0.0.0", MEDIA)).await?,
        changed: Notify::new(),
        dice: RefCell::new(SmallRng::seed_from_u64(seed ^ 2)),
        shared: shared.clone(),
    });
    shared.edges.borrow_mut().insert(name, edge.clone());
    spawn_local(edge.clone().serve_deadlines());
    spawn_local(edge.clone().hear());
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = shared.drain.notified() => {
                edge.server.borrow_mut().drain(now());
                edge.act();
                continue;
            }
            accepted = listener.accept() => accepted?,
        };
        let Some(id) = edge.server.borrow_mut().accepted(now(), peer) else { continue };
        let socket = Rc::new(Socket::default());
        edge.sockets.borrow_mut().insert(Line::Client(id), socket.clone());
        edge.carry(Line::Client(id), socket, stream);
        edge.act();
    }
}

impl Edge {
    /// Does what the server asks for.
    fn act(self: &Rc<Self>) {
        loop {
            let action = self.server.borrow_mut().poll();
            match action {
                Some(Action::Write(id)) => self.transmit(Line::Client(id)),
                Some(Action::Close(id)) => self.close(Line::Client(id)),
                Some(Action::Connect(id, target)) => self.connect(id, target),
                Some(Action::WriteLink(id)) => self.transmit(Line::Link(id)),
                Some(Action::CloseLink(id)) => self.close(Line::Link(id)),
                // There are no disks in this world.
                Some(Action::File(..) | Action::Scan(_) | Action::Patience(..) | Action::Keep(_)) => {}
                // No scenario has any.
                Some(Action::ReadFile(id, _)) => {
                    let error = ConnectError::Other(String::from("there are no files here"));
                    self.server.borrow_mut().link_failed(now(), id, error);
                }
                Some(Action::Media(command)) => self.command(command),
                Some(Action::Note(note)) => self.shared.say("edge", format_args!("{note:?}")),
                None => break,
            }
        }
        self.changed.notify_one();
    }

    /// Connects to an origin, for as long as the server waits for it.
    fn connect(self: &Rc<Self>, id: LinkId, target: Target) {
        let (edge, socket) = (self.clone(), Rc::new(Socket::default()));
        self.sockets.borrow_mut().insert(Line::Link(id), socket.clone());
        spawn_local(async move {
            let connected = tokio::select! {
                biased;
                () = socket.stop_reading.notified() => return,
                connected = TcpStream::connect((target.host.as_str(), target.port)) => connected,
            };
            let peer = connected.as_ref().ok().and_then(|stream| stream.peer_addr().ok());
            match (connected, peer) {
                (Ok(stream), Some(peer)) => {
                    edge.carry(Line::Link(id), socket, stream);
                    edge.server.borrow_mut().link_connected(now(), id, peer);
                }
                (failed, _) => {
                    let why = failed.err().map_or_else(|| String::from("no peer"), |error| error.to_string());
                    edge.close(Line::Link(id));
                    edge.server.borrow_mut().link_failed(now(), id, ConnectError::Other(why));
                }
            }
            edge.act();
        });
    }

    fn carry(self: &Rc<Self>, line: Line, socket: Rc<Socket>, stream: TcpStream) {
        let (read, write) = stream.into_split();
        spawn_local(self.clone().read(line, socket.clone(), read));
        spawn_local(self.clone().write(line, socket, write));
    }

    fn close(&self, id: Line) {
        if let Some(socket) = self.sockets.borrow_mut().remove(&id) {
            socket.closing.set(true);
            socket.stop_reading.notify_one();
            socket.stop_writing.notify_one();
            socket.filled.notify_one();
        }
    }

    /// The kernel says that a socket is gone.
    fn lost(self: &Rc<Self>, line: Line) {
        if self.sockets.borrow().contains_key(&line) {
            match line {
                Line::Client(id) => self.server.borrow_mut().closed(now(), id),
                Line::Link(id) => self.server.borrow_mut().link_closed(now(), id),
            }
            self.close(line);
            self.act();
        }
    }

    fn transmit(&self, line: Line) {
        let Some(socket) = self.sockets.borrow().get(&line).cloned() else { return };
        let mut out = socket.out.borrow_mut();
        let mut dice = self.dice.borrow_mut();
        let mut write = |pieces: &[io::IoSlice<'_>]| {
            let all: usize = pieces.iter().map(|piece| piece.len()).sum();
            let room = (SOCKET - out.len()).min(all);
            if room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // A kernel may take less than there is room for.
            let taken = if dice.random_bool(0.1) { dice.random_range(1..=room) } else { room };
            out.extend(pieces.iter().flat_map(|piece| piece.iter()).take(taken));
            Ok(taken)
        };
        // A socket whose peer is gone says so to whoever reads it.
        let _: io::Result<Transmit> = match line {
            Line::Client(id) => self.server.borrow_mut().transmit(now(), id, &mut write),
            Line::Link(id) => self.server.borrow_mut().link_transmit(now(), id, &mut write),
        };
        socket.filled.notify_one();
    }

    fn wants_read(&self, line: Line) -> bool {
        match line {
            Line::Client(id) => self.server.borrow().wants_read(id),
            Line::Link(id) => self.server.borrow().link_wants_read(id),
        }
    }

    async fn read(self: Rc<Self>, line: Line, socket: Rc<Socket>, mut half: OwnedReadHalf) {
        let mut buffer = [0; 4096];
        loop {
            if socket.closing.get() {
                let discard = async { while half.read(&mut buffer).await.is_ok_and(|length| length > 0) {} };
                let _ = timeout(LINGER, discard).await;
                return;
            }
            if !self.wants_read(line) {
                sleep(Duration::from_millis(2)).await;
                continue;
            }
            let read = tokio::select! {
                biased;
                () = socket.stop_reading.notified() => continue,
                read = half.read(&mut buffer) => read,
            };
            match read {
                Ok(0) => {
                    match line {
                        Line::Client(id) => self.server.borrow_mut().eof(now(), id),
                        Line::Link(id) => self.server.borrow_mut().link_eof(now(), id),
                    }
                    self.act();
                    if half.peer_addr().is_ok_and(|peer| self.shared.gone.borrow().contains(&peer)) {
                        sleep(ROUND_TRIP).await;
                        self.lost(line);
                    }
                    return;
                }
                Ok(length) => {
                    let mut rest = &buffer[..length];
                    while !rest.is_empty() {
                        let cut = self.dice.borrow_mut().random_range(1..=rest.len());
                        let (piece, more) = rest.split_at(cut);
                        match line {
                            Line::Client(id) => self.server.borrow_mut().received(now(), id, piece),
                            Line::Link(id) => self.server.borrow_mut().link_received(now(), id, piece),
                        }
                        self.act();
                        rest = more;
                    }
                }
                Err(_) => return self.lost(line),
            }
        }
    }

    async fn write(self: Rc<Self>, line: Line, socket: Rc<Socket>, mut half: OwnedWriteHalf) {
        loop {
            let most = self.dice.borrow_mut().random_range(1..=4096);
            let piece: Vec<u8> = {
                let mut out = socket.out.borrow_mut();
                let length = out.len().min(most);
                out.drain(..length).collect()
            };
            if piece.is_empty() {
                if socket.closing.get() {
                    let _ = timeout(LINGER, half.shutdown()).await;
                    return;
                }
                socket.filled.notified().await;
                continue;
            }
            let written = tokio::select! {
                biased;
                () = socket.stop_writing.notified(), if !socket.closing.get() => None,
                written = half.write_all(&piece) => Some(written),
            };
            let written = match written {
                Some(written) => written,
                // A write that was given up here has written nothing: sockets of this network take all or none.
                None => match timeout(LINGER, half.write_all(&piece)).await {
                    Ok(written) => written,
                    Err(_) => return,
                },
            };
            if written.is_err() {
                return self.lost(line);
            }
            self.transmit(line);
            self.act();
        }
    }

    async fn serve_deadlines(self: Rc<Self>) {
        loop {
            let late = self.late.borrow().front().map(|(at, _)| *at);
            let deadline = self.server.borrow().deadline().into_iter().chain(late).min();
            let wait = deadline.map_or(Duration::from_secs(3600), |at| at.since(now()));
            tokio::select! {
                biased;
                () = self.changed.notified() => continue,
                () = sleep(wait) => {}
            }
            let now = now();
            loop {
                let unit = self.late.borrow_mut().pop_front_if(|(at, _)| *at <= now);
                let Some((_, unit)) = unit else { break };
                self.server.borrow_mut().media(now, MediaEvent::Unit(unit));
            }
            self.server.borrow_mut().tick(now);
            self.act();
        }
    }

    /// Hears what publishers send.
    async fn hear(self: Rc<Self>) {
        let mut packet = [0; 1500];
        while let Ok((length, from)) = self.udp.recv_from(&mut packet).await {
            if let Some((kind, session)) = unpack(&packet[..length]) {
                self.packet(kind, session, from);
            }
        }
    }

    fn packet(self: &Rc<Self>, kind: Kind, id: SessionId, from: SocketAddr) {
        let now = now();
        let mut sessions = self.sessions.borrow_mut();
        let Some(session) = sessions.get_mut(&id) else { return };
        session.peer = Some(from);
        let stamped = match kind {
            Kind::Audio => Packet::Audio,
            Kind::Video | Kind::KeyFrame => Packet::Video,
            Kind::Control => Packet::Control,
            Kind::Bye => {
                drop(sessions);
                self.server.borrow_mut().media(now, MediaEvent::Ended { session: id, reason: EndReason::DtlsClosed });
                return self.act();
            }
            Kind::Close | Kind::WantKeyFrame => return,
        };
        session.activity.stamp(stamped, now);
        if stamped == Packet::Control {
            return;
        }
        // The flag that a session is over is not looked at: even a media side that forgets to must not do harm.
        let (codec, head): (_, &[u8]) = match kind {
            Kind::Audio => (Codec::Aac, &[0xff, 0xf1, 0x4c, 0x80]),
            Kind::KeyFrame => (Codec::H264, &[0, 0, 0, 1, 0x65]),
            _ => (Codec::H264, &[0, 0, 0, 1, 0x41]),
        };
        let length = if kind == Kind::Audio { 12 } else { 40 };
        let data: Bytes = head.iter().copied().chain(mark(id).into_iter().cycle().take(4 * length)).collect();
        let time = now.as_micros() as i64;
        let unit = Unit { from: Writer::Session(id), codec, pts: time, dts: time, key: kind != Kind::Video, data };
        self.late.borrow_mut().push_back((now + JITTER, unit));
        self.changed.notify_one();
    }

    fn command(self: &Rc<Self>, command: MediaCommand) {
        let event = match command {
            MediaCommand::Start { session, activity, .. } => {
                self.sessions.borrow_mut().insert(session, Session { activity, peer: None });
                let delay = Duration::from_millis(self.dice.borrow_mut().random_range(5..=30));
                Some((delay, MediaEvent::Answered { session, answer: answer(session) }))
            }
            MediaCommand::KeyFrame { session } => {
                self.tell(Kind::WantKeyFrame, session);
                None
            }
            MediaCommand::Finish { session } => {
                self.tell(Kind::Close, session);
                let delay = Duration::from_millis(self.dice.borrow_mut().random_range(5..=300));
                Some((delay, MediaEvent::Gone { session }))
            }
            MediaCommand::Restart { session, ufrag, pwd, .. } => {
                Some((Duration::from_millis(5), MediaEvent::Restarted { session, ufrag, pwd }))
            }
            MediaCommand::Candidates { .. }
            | MediaCommand::Rebuild { .. }
            | MediaCommand::Open { .. }
            | MediaCommand::Close { .. } => None,
        };
        let (Some((delay, event)), edge) = (event, self.clone()) else { return };
        spawn_local(async move {
            sleep(delay).await;
            edge.server.borrow_mut().media(now(), event);
            edge.act();
        });
    }

    fn tell(&self, kind: Kind, session: SessionId) {
        let peer = self.sessions.borrow().get(&session).and_then(|session| session.peer);
        if let Some(peer) = peer {
            // A packet that is not sent is a packet that is lost.
            let _ = self.udp.try_send_to(&pack(kind, session), peer);
        }
    }
}

/// An answer whose ICE credentials name the session, as they do for a real media side.
fn answer(session: SessionId) -> String {
    let (index, generation) = (session.index(), session.generation());
    format!(
        "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\na=ice-lite\r\n\
         m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:s{index}g{generation}\r\n\
         a=ice-pwd:9876543210abcdef012345\r\na=candidate:1 1 UDP 2015363327 192.0.2.1 {MEDIA} typ host\r\n"
    )
}

/// The session that an answer is about.
pub fn session_of(answer: &str) -> Option<SessionId> {
    let ufrag = answer.lines().find_map(|line| line.strip_prefix("a=ice-ufrag:s"))?;
    let (index, generation) = ufrag.split_once('g')?;
    Some(SessionId::from_parts(index.parse().ok()?, generation.parse().ok()?))
}
