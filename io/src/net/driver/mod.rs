//! The loop: what became ready goes to the server, what the server says is done.
//!
//! | file | question it answers |
//! |---|---|
//! | `links` | how is an origin reached? |
//! | `files` | how is a file read that stands in for one? |
//! | `ending` | how does a connection end, so that nobody loses its last bytes? |

mod ending;
mod files;
mod links;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::Table;
use holdfast_core::input::Note;
use holdfast_core::time::{Time, Timers};
use rustls::{ServerConfig, ServerConnection};

use super::serve::{Peer, Serve};
use super::socket::Socket;
use super::sys::{Event, SocketId, SocketKind, Sys};
use super::tls::Trust;
use crate::library::{FileEvent, FileFault, Scan};
use crate::media::{MediaCommand, MediaEvent};
use crate::providers::Belonging;
use crate::server::{Action, ConnId, LinkId, Piece, Server, Transmit};
use links::Link;

/// How much is read at a time.
const READ: usize = 64 * 1024;
/// How many reads a socket gets in one turn, so that one that always has more does not starve the others.
const READS: usize = 4;
/// How many times in one turn a socket's TLS buffer is filled and emptied.
const FILLS: usize = 8;
/// How many pieces of long answers are made in one turn, whoever wants them: media is not to wait for lists.
const MADE: usize = 2;
/// How many connections a listener gives in one turn.
const ACCEPTS: usize = 64;
/// How often the wall clock is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How many media events are taken in one turn.
const MEDIA: usize = 1024;
/// How long nobody is accepted after the kernel had no descriptor or memory for it. Who waits stays in the queue.
const PAUSE: Duration = Duration::from_millis(200);
/// How long everybody may take to end in order.
const DRAIN: Duration = Duration::from_secs(5);

/// Where the media of sessions comes from: GStreamer, or nothing.
pub trait Media {
    /// Takes a command; does not block.
    fn command(&mut self, command: MediaCommand);
    /// The next thing that happened. A new one wakes the loop ([`Kernel::waker`](super::Kernel::waker)).
    fn poll(&mut self) -> Option<MediaEvent>;
}

/// What people may want to read, now or later.
#[derive(Debug)]
pub enum Report {
    /// Said by the server, with what it knows of what that is about.
    Note(Note, crate::server::About),
    /// To be written down by whoever keeps it for the next start.
    Keep(Vec<Belonging>),
    /// A part of the journal, for whoever keeps it.
    Record(Piece),
    /// Nobody can be accepted, for want of descriptors or memory; said once until somebody was accepted again. They wait.
    AcceptFailing(io::Error),
    /// Somebody was accepted again.
    AcceptRecovered,
    /// A second signal came, or five seconds were over, with so many connections left.
    CutShort(usize),
}

/// How [`Driver::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everybody ended in order.
    Drained,
    /// Somebody did not in five seconds.
    TimedOut,
    /// The process was asked twice to end.
    Forced,
}

/// What is spoken at a listener.
#[derive(Clone, Debug)]
pub enum Door {
    /// HTTP, within TLS where there is a configuration for it.
    Http(Option<Arc<ServerConfig>>),
    /// OVT, for edges.
    Ovt,
}

/// What a driver is made of.
pub struct Parts<S: Sys, M, P = Server> {
    /// The kernel.
    pub sys: S,
    /// What is spoken at each of its listeners.
    pub listeners: Vec<Door>,
    /// Decides.
    pub server: P,
    /// Whom it trusts to be an origin.
    pub trust: Trust,
    /// Carries media.
    pub media: M,
    /// Called with what people may want to read; does not block.
    pub report: Box<dyn FnMut(Report)>,
}

/// Moves bytes between the kernel and a [`Server`] (or what else [`Serve`]s), and commands and events between it and the media side.
pub struct Driver<S: Sys, M, P = Server> {
    sys: S,
    listeners: Vec<Listener>,
    server: P,
    trust: Trust,
    media: M,
    report: Box<dyn FnMut(Report)>,
    now: Time,
    /// When the wall clock is looked at again, if anything happens then.
    look: Time,
    sockets: Table<SocketKind, Entry<S::Stream>>,
    /// The socket of each connection, by the connection's place.
    of_connection: Vec<Option<(ConnId, SocketId)>>,
    /// Each link, by its place.
    links: Vec<Option<(LinkId, Link)>>,
    /// Links of which another address is to be tried.
    attempts: Timers<LinkId>,
    /// Files that are being read, a piece of each in a turn.
    files: VecDeque<(LinkId, File)>,
    /// Sockets of links that may have more than the server wanted.
    withheld: Vec<SocketId>,
    /// Sockets with something to do now, each once.
    queue: VecDeque<SocketId>,
    /// Sockets for which the server has more to make ([`Transmit::Later`]), each once.
    patient: VecDeque<SocketId>,
    /// Sockets whose connection is over, the oldest first.
    lingering: VecDeque<(Time, SocketId)>,
    /// How many sockets there may be, those whose connection is over among them.
    most: usize,
    events: Vec<Event>,
    buffer: Box<[u8]>,
    /// Until when nobody is accepted.
    paused: Option<Time>,
    /// Whether the last attempt to accept failed for want of something.
    failing: bool,
    /// Whether media events were left behind.
    media_waits: bool,
    /// Until when everybody is to have ended.
    ending: Option<Time>,
    forced: bool,
}

struct Listener {
    door: Door,
    ready: bool,
}

struct Entry<Stream> {
    socket: Socket<Stream>,
    stage: Stage,
    /// The server has something that the socket did not take.
    blocked: bool,
    /// Reading gave the end.
    ended: bool,
    hung_up: bool,
    queued: bool,
    patient: bool,
    withheld: bool,
}

impl<Stream> Entry<Stream> {
    fn new(socket: Socket<Stream>, stage: Stage) -> Self {
        Entry {
            socket,
            stage,
            blocked: false,
            ended: false,
            hung_up: false,
            queued: false,
            patient: false,
            withheld: false,
        }
    }
}

#[derive(Clone, Copy)]
enum Stage {
    /// It is being connected.
    Connecting(LinkId),
    /// It is connected to this address; TLS is being agreed on.
    Handshaking(LinkId, SocketAddr),
    /// It carries what this peer and the server say.
    Open(Peer),
    /// Its connection is over; what TLS still has is to be written.
    Flushing,
    /// Our end is said; so many more bytes are read.
    Lingering(usize),
}

impl<S: Sys, M: Media, P: Serve> Driver<S, M, P> {
    /// A driver whose listeners are open.
    pub fn new(parts: Parts<S, M, P>) -> Self {
        let Parts { mut sys, listeners, server, trust, media, report } = parts;
        let now = sys.now();
        Driver {
            sys,
            listeners: listeners.into_iter().map(|door| Listener { door, ready: true }).collect(),
            server,
            trust,
            media,
            report,
            now,
            look: now,
            sockets: Table::default(),
            of_connection: Vec::new(),
            links: Vec::new(),
            attempts: Timers::default(),
            files: VecDeque::new(),
            withheld: Vec::new(),
            queue: VecDeque::new(),
            patient: VecDeque::new(),
            lingering: VecDeque::new(),
            most: usize::MAX,
            events: Vec::new(),
            buffer: vec![0; READ].into(),
            paused: None,
            failing: false,
            media_waits: true,
            ending: None,
            forced: false,
        }
    }

    /// Keeps within so many sockets: where another client comes, one whose connection is over has to go, however little its peer
    /// has read. What the process may open beyond that is for others.
    pub fn keep_within(&mut self, most: usize) {
        self.most = most;
    }

    /// Runs until the process was asked to end and everybody has ended.
    ///
    /// # Errors
    /// When the kernel gives no events any more.
    pub fn run(&mut self) -> io::Result<Ended> {
        loop {
            if let Some(ended) = self.turn()? {
                return Ok(ended);
            }
        }
    }

    /// One turn: waits for events, at most until the next deadline, and does what they allow. `Some` when all is over and
    /// every socket closed.
    ///
    /// # Errors
    /// When the kernel gives no events any more.
    pub fn turn(&mut self) -> io::Result<Option<Ended>> {
        let timeout = self.timeout();
        let mut events = std::mem::take(&mut self.events);
        match self.sys.poll(timeout, &mut events) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => self.now = self.sys.now(),
        }
        if self.now >= self.look {
            self.look = self.now + LOOK;
            self.server.set_clock(self.now, self.sys.wall());
            self.act();
        }
        for event in events.drain(..) {
            self.notice(event);
        }
        self.events = events;
        self.take_media();
        self.accept();
        for _ in 0..self.queue.len() {
            let Some(id) = self.queue.pop_front() else { break };
            self.serve(id);
        }
        for _ in 0..MADE.min(self.patient.len()) {
            let Some(id) = self.patient.pop_front() else { break };
            if let Some(entry) = self.sockets.get_mut(id) {
                entry.patient = false;
                self.transmit(id);
                self.act();
            }
        }
        self.read_files();
        self.tick();
        self.resume();
        Ok(self.over())
    }

    /// What the driver drives.
    pub fn server(&self) -> &P {
        &self.server
    }

    /// Ends in order: accepts nobody, lets everybody finish within five seconds. A second time: ends at once.
    pub fn drain(&mut self) {
        if self.ending.is_some() {
            self.forced = true;
            return;
        }
        self.ending = Some(self.now + DRAIN);
        for place in 0..self.listeners.len() {
            self.sys.close_listener(place);
        }
        self.listeners.clear();
        self.server.drain(self.now);
        self.act();
    }

    fn timeout(&mut self) -> Option<Duration> {
        let can_accept = self.paused.is_none() && self.listeners.iter().any(|listener| listener.ready);
        let drained = self.ending.is_some() && self.is_drained();
        let busy = !self.queue.is_empty() || !self.patient.is_empty() || !self.files.is_empty() || self.media_waits;
        if busy || can_accept || drained {
            return Some(Duration::ZERO);
        }
        let linger = self.lingering.front().map(|(until, _)| *until);
        let waits = [self.server.deadline(), self.attempts.deadline(), linger, self.paused, self.ending];
        let next = waits.into_iter().flatten().min()?;
        // From the clock and not from the start of this turn, which may have been long ago.
        Some(next.since(self.sys.now()))
    }

    fn notice(&mut self, event: Event) {
        match event {
            Event::Accept(place) => {
                if let Some(listener) = self.listeners.get_mut(place) {
                    listener.ready = true;
                }
            }
            Event::Socket { id, readable, writable, hung_up } => {
                if let Some(entry) = self.sockets.get_mut(id) {
                    entry.socket.readable |= readable;
                    entry.socket.writable |= writable;
                    entry.hung_up |= hung_up;
                    self.enqueue(id);
                }
            }
            Event::Resolved { link, addresses } => self.resolved(link, addresses),
            Event::File { request, event } => {
                self.server.file(self.now, request, event);
                self.act();
            }
            Event::Scanned(scan) => {
                self.server.scanned(self.now, scan);
                self.act();
            }
            Event::Terminate => self.drain(),
        }
    }

    fn enqueue(&mut self, id: SocketId) {
        if let Some(entry) = self.sockets.get_mut(id)
            && !entry.queued
        {
            entry.queued = true;
            self.queue.push_back(id);
        }
    }

    fn take_media(&mut self) {
        for _ in 0..MEDIA {
            let Some(event) = self.media.poll() else {
                self.media_waits = false;
                return;
            };
            self.server.media(self.now, event);
            self.act();
        }
        self.media_waits = true;
    }

    fn accept(&mut self) {
        if self.paused.is_some_and(|until| until > self.now) {
            return;
        }
        self.paused = None;
        for place in 0..self.listeners.len() {
            for _ in 0..ACCEPTS {
                if !self.listeners[place].ready {
                    break;
                }
                match self.sys.accept(place) {
                    Ok((stream, peer)) => {
                        if std::mem::replace(&mut self.failing, false) {
                            (self.report)(Report::AcceptRecovered);
                        }
                        self.make_room();
                        let accepted = match self.listeners[place].door {
                            Door::Http(_) => self.server.accepted(self.now, peer),
                            Door::Ovt => self.server.accepted_edge(self.now, peer),
                        };
                        match accepted {
                            Some(conn) => self.open(place, stream, conn),
                            None => self.sys.close(stream),
                        }
                        self.act();
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.listeners[place].ready = false,
                    // About one connection that is gone already, or about nothing.
                    Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                    Err(error) => return self.pause(error),
                }
            }
        }
    }

    fn make_room(&mut self) {
        while self.sockets.len() >= self.most
            && let Some((_, oldest)) = self.lingering.pop_front()
        {
            self.close(oldest);
        }
    }

    /// There is no descriptor (or memory) for another connection. It stays in the kernel's queue, and trying again at once
    /// would only burn time.
    fn pause(&mut self, error: io::Error) {
        if !std::mem::replace(&mut self.failing, true) {
            (self.report)(Report::AcceptFailing(error));
        }
        while let Some((_, id)) = self.lingering.pop_front() {
            self.close(id);
        }
        self.paused = Some(self.now + PAUSE);
    }

    fn open(&mut self, place: usize, stream: S::Stream, conn: ConnId) {
        let peer = Peer::Client(conn);
        let tls = match &self.listeners[place].door {
            Door::Http(tls) => tls.clone().map(ServerConnection::new).transpose(),
            Door::Ovt => Ok(None),
        };
        let Ok(tls) = tls else {
            self.sys.close(stream);
            return self.server.closed(self.now, peer);
        };
        let id = self.sockets.insert(Entry::new(Socket::accepted(stream, tls.map(Into::into)), Stage::Open(peer)));
        if self.of_connection.len() <= conn.index() {
            self.of_connection.resize(conn.index() + 1, None);
        }
        self.of_connection[conn.index()] = Some((conn, id));
        if self.register(id).is_err() {
            self.fail(id);
        }
    }

    fn register(&mut self, id: SocketId) -> io::Result<()> {
        let entry = self.sockets.get_mut(id).ok_or(ErrorKind::NotFound)?;
        self.sys.register(&mut entry.socket.stream, id)
    }

    /// Does what a socket is ready for.
    fn serve(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get_mut(id) else { return };
        entry.queued = false;
        match entry.stage {
            Stage::Connecting(link) => self.connect_further(id, link),
            Stage::Handshaking(link, address) => self.handshake(id, link, address),
            Stage::Open(peer) => {
                if entry.blocked || !entry.socket.is_flushed() {
                    self.transmit(id);
                    self.act();
                }
                self.receive(id, peer);
            }
            Stage::Flushing => self.end(id),
            Stage::Lingering(_) => self.discard(id),
        }
    }

    fn receive(&mut self, id: SocketId, peer: Peer) {
        for _ in 0..READS {
            let wanted = self.server.wants_read(peer);
            let Some(entry) = self.sockets.get_mut(id) else { return };
            if !matches!(entry.stage, Stage::Open(_)) {
                return;
            }
            if entry.ended {
                // It sends no more, and takes no more either.
                if entry.hung_up {
                    self.fail(id);
                }
                return;
            }
            if !wanted {
                // A connection that is dead in both directions and is not read from would never be noticed.
                if entry.hung_up {
                    self.fail(id);
                } else if matches!(peer, Peer::Origin(_)) && !std::mem::replace(&mut entry.withheld, true) {
                    self.withheld.push(id);
                }
                return;
            }
            match entry.socket.read(&mut self.sys, &mut self.buffer) {
                Ok(0) => {
                    entry.ended = true;
                    self.server.eof(self.now, peer);
                }
                Ok(length) => self.server.received(self.now, peer, &self.buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.fail(id),
            }
            self.act();
        }
        self.enqueue(id);
    }

    /// Writes what the server has for a socket, as far as the socket takes it.
    fn transmit(&mut self, id: SocketId) {
        for _ in 0..FILLS {
            let Some(entry) = self.sockets.get_mut(id) else { return };
            let Stage::Open(peer) = entry.stage else { return };
            if entry.patient {
                return;
            }
            if !entry.socket.writable {
                entry.blocked = true;
                return;
            }
            let socket = &mut entry.socket;
            let transmitted = self.server.transmit(self.now, peer, &mut |pieces| socket.write(&mut self.sys, pieces));
            let flushed = transmitted.and_then(|left| socket.flush(&mut self.sys).map(|()| left));
            match flushed {
                Ok(Transmit::Idle) => {
                    entry.blocked = false;
                    // What the server had no room for may have room now.
                    if entry.socket.may_read() && !entry.ended && self.server.wants_read(peer) {
                        self.enqueue(id);
                    }
                    return;
                }
                // Not necessarily for the socket: the buffer of TLS may have been full.
                Ok(Transmit::Blocked) => entry.blocked = true,
                Ok(Transmit::Later) => {
                    (entry.blocked, entry.patient) = (true, true);
                    return self.patient.push_back(id);
                }
                Err(_) => return self.fail(id),
            }
        }
        self.enqueue(id);
    }

    /// Does what the server says, until it says nothing more.
    fn act(&mut self) {
        while let Some(action) = self.server.poll() {
            match action {
                Action::Write(conn) => {
                    if let Some(id) = self.socket_of(conn) {
                        self.transmit(id);
                    }
                }
                Action::Close(conn) => {
                    if let Some(id) = self.socket_of(conn) {
                        self.of_connection[conn.index()] = None;
                        self.finish(id);
                    }
                }
                Action::Patience(conn, patience) => {
                    let id = self.socket_of(conn);
                    if let Some(entry) = id.and_then(|id| self.sockets.get_mut(id)) {
                        entry.socket.set_patience(&mut self.sys, patience);
                    }
                }
                Action::Connect(link, target) => self.connect(link, target),
                Action::WriteLink(link) => {
                    if let Some(id) = self.socket_of_link(link) {
                        self.transmit(id);
                    }
                }
                Action::CloseLink(link) => self.close_link(link),
                Action::File(request, command) => {
                    if let Err(error) = self.sys.file(request, command) {
                        let fault = FileFault::Unreadable(error.to_string());
                        self.server.file(self.now, request, FileEvent::Failed(fault));
                    }
                }
                Action::Scan(libraries) => {
                    let all = 0..libraries.len();
                    if let Err(error) = self.sys.scan(libraries) {
                        let failed = all.map(|library| (library, error.to_string())).collect();
                        self.server.scanned(self.now, Scan { failed, ..Scan::default() });
                    }
                }
                Action::ReadFile(link, path) => self.open_file(link, &path),
                Action::Media(command) => self.media.command(command),
                Action::Keep(belongings) => (self.report)(Report::Keep(belongings)),
                Action::Note(note) => {
                    let about = self.server.about(&note);
                    (self.report)(Report::Note(note, about));
                }
                Action::Record(piece) => (self.report)(Report::Record(piece)),
            }
        }
    }

    fn socket_of(&self, conn: ConnId) -> Option<SocketId> {
        let (own, id) = (*self.of_connection.get(conn.index())?)?;
        (own == conn).then_some(id)
    }

    /// A socket is of no more use.
    fn fail(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get(id) else { return };
        let stage = entry.stage;
        self.close(id);
        if let Stage::Open(peer) = stage {
            match peer {
                Peer::Client(conn) => self.of_connection[conn.index()] = None,
                Peer::Origin(link) => self.links[link.index()] = None,
            }
            self.server.closed(self.now, peer);
            self.act();
        }
    }

    fn close(&mut self, id: SocketId) {
        if let Some(entry) = self.sockets.remove(id) {
            self.sys.close(entry.socket.stream);
        }
    }

    fn tick(&mut self) {
        if self.server.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.server.tick(self.now);
            self.act();
        }
        self.attempt_further();
        self.act();
        // Of those that ended before their time only the places in the queue are left.
        while let Some(&(until, id)) = self.lingering.front()
            && (until <= self.now || self.sockets.get(id).is_none())
        {
            self.lingering.pop_front();
            self.close(id);
        }
    }
}

#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;
