//! The loop: what became ready goes to the server, what the server says is done.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::Table;
use holdfast_core::input::Note;
use holdfast_core::time::Time;
use rustls::{ServerConfig, ServerConnection};

use super::socket::Socket;
use super::sys::{Event, SocketId, SocketKind, Sys};
use crate::media::{MediaCommand, MediaEvent};
use crate::server::{Action, ConnId, Server, Transmit};

/// How much is read at a time.
const READ: usize = 64 * 1024;
/// How many reads a socket gets in one turn, so that one that always has more does not starve the others.
const READS: usize = 4;
/// How many times in one turn a socket's TLS buffer is filled and emptied.
const FILLS: usize = 8;
/// How many connections a listener gives in one turn.
const ACCEPTS: usize = 64;
/// How many media events are taken in one turn.
const MEDIA: usize = 1024;
/// How long nobody is accepted after the kernel had no descriptor or memory for it. Who waits stays in the queue.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the peer of a connection that we ended may take to end it too. Without that, what it still sends would be
/// answered with a reset, which takes back what it has not read yet (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
/// How many bytes are read and thrown away for that.
const LINGER_BYTES: usize = 256 * 1024;
/// How many sockets linger; beyond that the oldest is closed. Those whose peer ended at once count too, until `LINGER` is
/// over: enough for 2000 a second.
const LINGERING: usize = 4096;
/// How long everybody may take to end in order.
const DRAIN: Duration = Duration::from_secs(5);

/// Where the media of sessions comes from: GStreamer, or nothing.
pub trait Media {
    /// Takes a command; does not block.
    fn command(&mut self, command: MediaCommand);
    /// The next thing that happened. A new one wakes the loop ([`Kernel::waker`](super::Kernel::waker)).
    fn poll(&mut self) -> Option<MediaEvent>;
}

/// What people may want to read.
#[derive(Debug)]
pub enum Report {
    /// Said by the server.
    Note(Note),
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

/// What a driver is made of.
pub struct Parts<S: Sys, M> {
    /// The kernel.
    pub sys: S,
    /// For each of its listeners, how TLS is spoken there, if it is.
    pub listeners: Vec<Option<Arc<ServerConfig>>>,
    /// Decides.
    pub server: Server,
    /// Carries media.
    pub media: M,
    /// Called with what people may want to read; does not block.
    pub report: Box<dyn FnMut(Report)>,
}

/// Moves bytes between the kernel and a [`Server`], and commands and events between it and the media side.
pub struct Driver<S: Sys, M> {
    sys: S,
    listeners: Vec<Listener>,
    server: Server,
    media: M,
    report: Box<dyn FnMut(Report)>,
    now: Time,
    sockets: Table<SocketKind, Entry<S::Stream>>,
    /// The socket of each connection, by the connection's place.
    of_connection: Vec<Option<(ConnId, SocketId)>>,
    /// Sockets with something to do now, each once.
    queue: VecDeque<SocketId>,
    /// Sockets whose connection is over, the oldest first.
    lingering: VecDeque<(Time, SocketId)>,
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
    tls: Option<Arc<ServerConfig>>,
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
}

#[derive(Clone, Copy)]
enum Stage {
    /// It is this connection.
    Open(ConnId),
    /// Its connection is over; what TLS still has is to be written.
    Flushing,
    /// Our end is said; so many more bytes are read.
    Lingering(usize),
}

impl<S: Sys, M: Media> Driver<S, M> {
    /// A driver whose listeners are open.
    pub fn new(parts: Parts<S, M>) -> Self {
        let Parts { mut sys, listeners, server, media, report } = parts;
        let now = sys.now();
        Driver {
            sys,
            listeners: listeners.into_iter().map(|tls| Listener { tls, ready: true }).collect(),
            server,
            media,
            report,
            now,
            sockets: Table::default(),
            of_connection: Vec::new(),
            queue: VecDeque::new(),
            lingering: VecDeque::new(),
            events: Vec::new(),
            buffer: vec![0; READ].into(),
            paused: None,
            failing: false,
            media_waits: true,
            ending: None,
            forced: false,
        }
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
        self.tick();
        Ok(self.over())
    }

    /// What the driver drives.
    pub fn server(&self) -> &Server {
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
        if !self.queue.is_empty() || self.media_waits || can_accept {
            return Some(Duration::ZERO);
        }
        let linger = self.lingering.front().map(|(until, _)| *until);
        let next = [self.server.deadline(), linger, self.paused, self.ending].into_iter().flatten().min()?;
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
                        match self.server.accepted(self.now, peer) {
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
        let tls = self.listeners[place].tls.clone().map(ServerConnection::new).transpose();
        let Ok(tls) = tls else {
            self.sys.close(stream);
            return self.server.closed(self.now, conn);
        };
        let socket = Socket::new(stream, tls);
        let stage = Stage::Open(conn);
        let entry = Entry { socket, stage, blocked: false, ended: false, hung_up: false, queued: false };
        let id = self.sockets.insert(entry);
        if self.of_connection.len() <= conn.index() {
            self.of_connection.resize(conn.index() + 1, None);
        }
        self.of_connection[conn.index()] = Some((conn, id));
        let registered = self.sockets.get_mut(id).map(|entry| self.sys.register(&mut entry.socket.stream, id));
        if !matches!(registered, Some(Ok(()))) {
            self.fail(id);
        }
    }

    /// Does what a socket is ready for.
    fn serve(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get_mut(id) else { return };
        entry.queued = false;
        match entry.stage {
            Stage::Open(conn) => {
                if entry.blocked || !entry.socket.is_flushed() {
                    self.transmit(id);
                    self.act();
                }
                self.receive(id, conn);
            }
            Stage::Flushing => self.end(id),
            Stage::Lingering(_) => self.discard(id),
        }
    }

    fn receive(&mut self, id: SocketId, conn: ConnId) {
        for _ in 0..READS {
            let wanted = self.server.wants_read(conn);
            let Some(entry) = self.sockets.get_mut(id) else { return };
            if entry.ended || !matches!(entry.stage, Stage::Open(_)) {
                return;
            }
            if !wanted {
                // A connection that is dead in both directions and is not read from would never be noticed.
                if entry.hung_up {
                    self.fail(id);
                }
                return;
            }
            match entry.socket.read(&mut self.sys, &mut self.buffer) {
                Ok(0) => {
                    entry.ended = true;
                    self.server.eof(self.now, conn);
                }
                Ok(length) => self.server.received(self.now, conn, &self.buffer[..length]),
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
            let Stage::Open(conn) = entry.stage else { return };
            if !entry.socket.writable {
                entry.blocked = true;
                return;
            }
            let socket = &mut entry.socket;
            let transmitted = self.server.transmit(self.now, conn, &mut |pieces| socket.write(&mut self.sys, pieces));
            let flushed = transmitted.and_then(|left| socket.flush(&mut self.sys).map(|()| left));
            match flushed {
                Ok(Transmit::Idle) => {
                    entry.blocked = false;
                    // What the server had no room for may have room now.
                    if entry.socket.may_read() && !entry.ended && self.server.wants_read(conn) {
                        self.enqueue(id);
                    }
                    return;
                }
                // Not necessarily for the socket: the buffer of TLS may have been full.
                Ok(Transmit::Blocked) => entry.blocked = true,
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
                Action::Media(command) => self.media.command(command),
                Action::Note(note) => (self.report)(Report::Note(note)),
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
        if let Stage::Open(conn) = entry.stage {
            self.of_connection[conn.index()] = None;
            self.close(id);
            self.server.closed(self.now, conn);
            self.act();
        } else {
            self.close(id);
        }
    }

    fn close(&mut self, id: SocketId) {
        if let Some(entry) = self.sockets.remove(id) {
            self.sys.close(entry.socket.stream);
        }
    }

    /// A connection is over: says so to the peer, then waits a little for it to say the same.
    fn finish(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get_mut(id) else { return };
        entry.stage = Stage::Flushing;
        entry.socket.end();
        if self.lingering.len() == LINGERING
            && let Some((_, oldest)) = self.lingering.pop_front()
        {
            self.close(oldest);
        }
        self.lingering.push_back((self.now + LINGER, id));
        self.end(id);
    }

    fn end(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get_mut(id) else { return };
        if entry.socket.flush(&mut self.sys).is_err() || entry.hung_up {
            return self.close(id);
        }
        if !entry.socket.is_flushed() {
            return;
        }
        if entry.ended || entry.socket.shutdown(&mut self.sys).is_err() {
            return self.close(id);
        }
        entry.stage = Stage::Lingering(LINGER_BYTES);
        self.discard(id);
    }

    fn discard(&mut self, id: SocketId) {
        for _ in 0..READS {
            let Some(entry) = self.sockets.get_mut(id) else { return };
            let Stage::Lingering(left) = &mut entry.stage else { return };
            match entry.socket.read(&mut self.sys, &mut self.buffer) {
                Ok(length) if length > 0 && length < *left => *left -= length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => return self.close(id),
            }
        }
        self.enqueue(id);
    }

    fn tick(&mut self) {
        if self.server.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.server.tick(self.now);
            self.act();
        }
        // Of those that ended before their time only the places in the queue are left.
        while let Some(&(until, id)) = self.lingering.front()
            && (until <= self.now || self.sockets.get(id).is_none())
        {
            self.lingering.pop_front();
            self.close(id);
        }
    }

    /// How it ended, if it did; closes what is left then.
    fn over(&mut self) -> Option<Ended> {
        let until = self.ending?;
        let ended = if self.forced {
            Ended::Forced
        } else if self.server.is_drained() && self.sockets.is_empty() {
            Ended::Drained
        } else if until <= self.now {
            Ended::TimedOut
        } else {
            return None;
        };
        if ended != Ended::Drained {
            (self.report)(Report::CutShort(self.sockets.len()));
        }
        let left: Vec<SocketId> = self.sockets.iter().map(|(id, _)| id).collect();
        for id in left {
            self.close(id);
        }
        Some(ended)
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
