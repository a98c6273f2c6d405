//! A kernel that lies, deterministically from a seed, and checks what is done to its descriptors.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_core::input::RequestId;
use holdfast_core::time::Time;

use super::sys::{Event, Lookup, SocketId, Sys};
use crate::library::{FileCommand, Library};
use crate::server::LinkId;

/// A descriptor: the number of its connection. It cannot be copied, so nobody can use it after it was closed.
#[derive(Debug)]
pub(super) struct Fd(usize);

/// Ways to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    ShortRead,
    ShortWrite,
    ReadAgain,
    WriteAgain,
    Interrupted,
    PollInterrupted,
    Spurious,
    Stale,
    Late,
    /// Of a socket that is ready both ways only one is said, the other with a later poll.
    HalfReady,
    /// Both directions are over and there are bytes to read: what happens, rather than a lie.
    HungUpWithBytes,
    /// Events come in another order than they happened in.
    Reordered,
    NoDescriptor,
    Aborted,
    RegisterFails,
    ConnectFails,
    NotYetConnected,
}

pub(super) const LIES: usize = 17;

/// What an address, or a name, does when it is asked; after how many polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Accepts(u64),
    Refuses(u64),
    Unreachable(u64),
    RefusesAtOnce,
    Silent,
}

/// What the kernel knows of a connection that is not one yet.
#[derive(Debug)]
struct Connecting {
    /// Polls until it is decided; `None` = for ever.
    left: Option<u64>,
    fails: Option<ErrorKind>,
}

#[derive(Debug)]
struct Question {
    left: u64,
    link: LinkId,
    addresses: Result<Vec<IpAddr>, String>,
    wanted: Weak<()>,
}

/// What the kernel knows of a connection.
#[derive(Debug, Default)]
pub(super) struct Conn {
    to_server: VecDeque<u8>,
    /// The client will send nothing more.
    fin: bool,
    /// The client reset it.
    reset: bool,
    /// What the client has not taken yet.
    pub to_client: Vec<u8>,
    /// The server will send nothing more.
    pub ended: bool,
    /// How long the client may take nothing, where that was said.
    pub patience: Option<Duration>,
    /// The client was told that its connection is gone, and may have lost what it had not read.
    pub lost: bool,
    /// How much more the server may write.
    capacity: usize,
    open: bool,
    id: Option<SocketId>,
    readable: bool,
    writable: bool,
    hung_up: bool,
    /// The server was told that it can write no more.
    full: bool,
    /// We connect to this address.
    pub to: Option<SocketAddr>,
    connecting: Option<Connecting>,
}

pub(super) struct World {
    random: u64,
    /// One in so many calls lies; 0 = none.
    pub odds: u64,
    /// A lie that is not told.
    pub never: Option<Lie>,
    pub bitten: [u64; LIES],
    pub now: Time,
    /// The time since 1970, when the wall clock was set last at this time.
    pub wall: (Duration, Time),
    queue: VecDeque<usize>,
    listening: bool,
    arrived: bool,
    pub conns: Vec<Conn>,
    /// How many descriptors there may be.
    pub descriptors: usize,
    closed: Vec<SocketId>,
    /// What addresses do; those that are not here refuse.
    pub plans: BTreeMap<SocketAddr, Plan>,
    /// After how many polls names are known, and their addresses.
    pub names: BTreeMap<String, (u64, Vec<IpAddr>)>,
    questions: Vec<Question>,
    /// The next connection is gone before it is accepted.
    pub abort: bool,
    /// How often was written.
    pub writes: usize,
    /// How far one quiet poll may take the time.
    pub step: Duration,
    /// The last poll had nothing to say and was not the last word.
    pub asleep: bool,
    pub terminate: bool,
}

#[derive(Clone)]
pub(super) struct Fake(pub Rc<RefCell<World>>);

impl Fake {
    pub fn new(seed: u64, odds: u64) -> Self {
        Fake(Rc::new(RefCell::new(World {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            odds,
            never: None,
            bitten: [0; LIES],
            now: Time::from_micros(1),
            wall: (Duration::ZERO, Time::ZERO),
            queue: VecDeque::new(),
            listening: true,
            arrived: false,
            conns: Vec::new(),
            descriptors: usize::MAX,
            closed: Vec::new(),
            plans: BTreeMap::new(),
            names: BTreeMap::new(),
            questions: Vec::new(),
            abort: false,
            writes: 0,
            step: Duration::MAX,
            asleep: false,
            terminate: false,
        })))
    }

    /// A client connects; its number.
    pub fn connect(&self, capacity: usize) -> usize {
        let mut world = self.0.borrow_mut();
        let lost = !world.listening;
        world.conns.push(Conn { capacity, lost, ..Conn::default() });
        let client = world.conns.len() - 1;
        world.queue.push_back(client);
        world.arrived = true;
        client
    }

    pub fn send(&self, client: usize, data: &[u8]) {
        let conn = &mut self.0.borrow_mut().conns[client];
        conn.to_server.extend(data);
        conn.readable = true;
    }

    pub fn fin(&self, client: usize) {
        let conn = &mut self.0.borrow_mut().conns[client];
        (conn.fin, conn.readable) = (true, true);
        conn.hung_up |= conn.ended;
    }

    pub fn reset(&self, client: usize) {
        let conn = &mut self.0.borrow_mut().conns[client];
        conn.to_server.clear();
        (conn.fin, conn.reset) = (true, true);
        (conn.readable, conn.writable, conn.hung_up) = (true, true, true);
    }

    /// The client takes at most `most` bytes.
    pub fn take(&self, client: usize, most: usize) -> Vec<u8> {
        let conn = &mut self.0.borrow_mut().conns[client];
        let count = most.min(conn.to_client.len());
        conn.capacity += count;
        conn.to_client.drain(..count).collect()
    }

    /// The server may write so much more.
    pub fn make_room(&self, client: usize, bytes: usize) {
        self.0.borrow_mut().conns[client].capacity += bytes;
    }

    pub fn open_descriptors(&self) -> usize {
        self.0.borrow().conns.iter().filter(|conn| conn.open).count()
    }

    pub fn random(&self, below: u64) -> u64 {
        self.0.borrow_mut().random(below)
    }
}

impl World {
    pub fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    fn lies(&mut self, lie: Lie) -> bool {
        let lies = self.odds > 0 && self.never != Some(lie) && self.random(self.odds) == 0;
        self.bitten[lie as usize] += u64::from(lies);
        lies
    }

    fn conn(&mut self, fd: &Fd) -> &mut Conn {
        let conn = &mut self.conns[fd.0];
        assert!(conn.open, "descriptor {} was used after it was closed", fd.0);
        conn
    }

    /// A connection that bytes may be moved over.
    fn carrier(&mut self, fd: &Fd) -> &mut Conn {
        let conn = self.conn(fd);
        assert!(conn.connecting.is_none(), "descriptor {} was used before it was connected", fd.0);
        conn
    }

    /// Goes on with what takes a while; whether there is still such.
    fn advance(&mut self, events: &mut Vec<Event>) -> bool {
        for mut question in std::mem::take(&mut self.questions) {
            if question.left > 0 {
                question.left -= 1;
                self.questions.push(question);
            } else if question.wanted.strong_count() > 0 || self.random(2) == 0 {
                events.push(Event::Resolved { link: question.link, addresses: question.addresses });
            }
        }
        let mut waits = !self.questions.is_empty();
        for conn in self.conns.iter_mut().filter(|conn| conn.open) {
            let Some(Connecting { left: Some(left), fails }) = &mut conn.connecting else { continue };
            match *left {
                0 => continue,
                1 => {
                    let fails = fails.is_some();
                    (conn.writable, conn.readable, conn.hung_up) = (true, conn.readable || fails, fails);
                }
                _ => waits = true,
            }
            *left -= 1;
        }
        waits
    }

    fn found(&mut self, events: &mut Vec<Event>) {
        if self.listening && self.arrived && !self.lies(Lie::Late) {
            self.arrived = false;
            events.push(Event::Accept(0));
        }
        for client in 0..self.conns.len() {
            let conn = &mut self.conns[client];
            if conn.full && conn.capacity > 0 {
                (conn.full, conn.writable) = (false, true);
            }
            let (true, Some(id)) = (conn.open, conn.id) else { continue };
            let edge = conn.readable || conn.writable || conn.hung_up;
            if edge && self.lies(Lie::Late) {
                continue;
            }
            let spurious = self.lies(Lie::Spurious);
            let both = self.conns[client].readable && self.conns[client].writable;
            let half = both && !spurious && self.lies(Lie::HalfReady);
            let reads = half && self.random(2) == 0;
            let conn = &mut self.conns[client];
            if half {
                events.push(Event::Socket { id, readable: reads, writable: !reads, hung_up: false });
                (conn.readable, conn.writable) = (!reads, reads);
            } else if edge || spurious {
                let (readable, writable) = (conn.readable || spurious, conn.writable || spurious);
                let left = conn.hung_up && !conn.to_server.is_empty();
                events.push(Event::Socket { id, readable, writable, hung_up: conn.hung_up });
                (conn.readable, conn.writable, conn.hung_up) = (false, false, false);
                self.bitten[Lie::HungUpWithBytes as usize] += u64::from(left);
            }
        }
        if !self.closed.is_empty() && self.lies(Lie::Stale) {
            let which = self.random(self.closed.len() as u64) as usize;
            let id = self.closed[which];
            events.push(Event::Socket { id, readable: true, writable: true, hung_up: true });
        }
        for place in (1..events.len()).rev() {
            let other = self.random(place as u64 + 1) as usize;
            events.swap(place, other);
            self.bitten[Lie::Reordered as usize] += u64::from(place != other);
        }
    }
}

impl Sys for Fake {
    type Stream = Fd;

    fn accept(&mut self, _: usize) -> io::Result<(Fd, SocketAddr)> {
        let world = &mut *self.0.borrow_mut();
        assert!(world.listening, "a listener was used after it was closed");
        if world.lies(Lie::Interrupted) {
            return Err(ErrorKind::Interrupted.into());
        }
        let Some(&client) = world.queue.front() else { return Err(ErrorKind::WouldBlock.into()) };
        let open = world.conns.iter().filter(|conn| conn.open).count();
        if open >= world.descriptors || world.lies(Lie::NoDescriptor) {
            return Err(io::Error::from_raw_os_error(24));
        }
        world.queue.pop_front();
        if world.lies(Lie::Aborted) || std::mem::take(&mut world.abort) {
            world.conns[client].lost = true;
            return Err(ErrorKind::ConnectionAborted.into());
        }
        world.conns[client].open = true;
        Ok((Fd(client), SocketAddr::from((Ipv4Addr::LOCALHOST, 1024 + client as u16))))
    }

    fn resolve(&mut self, link: LinkId, host: &str) -> io::Result<Lookup> {
        let world = &mut *self.0.borrow_mut();
        let (left, addresses) = match world.names.get(host) {
            Some((left, addresses)) => (*left, Ok(addresses.clone())),
            None => (0, Err("no such name".into())),
        };
        let wanted = Arc::new(());
        world.questions.push(Question { left, link, addresses, wanted: Arc::downgrade(&wanted) });
        Ok(Lookup::new(wanted))
    }

    fn file(&mut self, _: RequestId, _: FileCommand) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn scan(&mut self, _: Arc<[Library]>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<Fd> {
        let world = &mut *self.0.borrow_mut();
        let open = world.conns.iter().filter(|conn| conn.open).count();
        if open >= world.descriptors || world.lies(Lie::ConnectFails) {
            return Err(io::Error::from_raw_os_error(24));
        }
        let (left, fails) = match world.plans.get(&to).copied().unwrap_or(Plan::Refuses(0)) {
            Plan::Accepts(polls) => (Some(polls + 1), None),
            Plan::Refuses(polls) => (Some(polls + 1), Some(ErrorKind::ConnectionRefused)),
            Plan::Unreachable(polls) => (Some(polls + 1), Some(ErrorKind::HostUnreachable)),
            Plan::RefusesAtOnce => {
                world.conns.push(Conn { to: Some(to), ..Conn::default() });
                return Err(ErrorKind::ConnectionRefused.into());
            }
            Plan::Silent => (None, None),
        };
        let connecting = Some(Connecting { left, fails });
        world.conns.push(Conn { to: Some(to), connecting, open: true, capacity: 1000, ..Conn::default() });
        Ok(Fd(world.conns.len() - 1))
    }

    fn own_address(&self, _: &Fd) -> Option<IpAddr> {
        None
    }

    fn connected(&mut self, fd: &mut Fd) -> io::Result<SocketAddr> {
        let world = &mut *self.0.borrow_mut();
        if world.lies(Lie::Interrupted) {
            return Err(ErrorKind::Interrupted.into());
        }
        let not_yet = world.lies(Lie::NotYetConnected);
        let conn = world.conn(fd);
        match &conn.connecting {
            Some(Connecting { left: Some(0), .. }) if not_yet => {
                conn.writable = true;
                Err(ErrorKind::WouldBlock.into())
            }
            Some(Connecting { left: Some(0), fails: Some(fails) }) => Err((*fails).into()),
            Some(Connecting { left: Some(0), fails: None }) => {
                conn.connecting = None;
                conn.to.ok_or(ErrorKind::NotConnected.into())
            }
            Some(_) => Err(ErrorKind::WouldBlock.into()),
            None => panic!("descriptor {} was asked again whether it is connected", fd.0),
        }
    }

    fn register(&mut self, fd: &mut Fd, id: SocketId) -> io::Result<()> {
        let world = &mut *self.0.borrow_mut();
        if world.lies(Lie::RegisterFails) {
            world.conns[fd.0].lost = true;
            return Err(ErrorKind::OutOfMemory.into());
        }
        let conn = world.conn(fd);
        assert_eq!(conn.id, None, "a socket is registered once");
        (conn.id, conn.writable) = (Some(id), conn.connecting.is_none());
        conn.readable |= conn.fin || !conn.to_server.is_empty();
        Ok(())
    }

    fn set_patience(&mut self, fd: &mut Fd, patience: Duration) {
        self.0.borrow_mut().carrier(fd).patience = Some(patience);
    }

    fn read(&mut self, fd: &mut Fd, buffer: &mut [u8]) -> io::Result<usize> {
        let world = &mut *self.0.borrow_mut();
        if world.lies(Lie::Interrupted) {
            return Err(ErrorKind::Interrupted.into());
        }
        let (short, again) = (world.lies(Lie::ShortRead), world.lies(Lie::ReadAgain));
        let some = 1 + world.random(7) as usize;
        let conn = world.carrier(fd);
        if conn.reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if again {
            conn.readable = conn.fin || !conn.to_server.is_empty();
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = conn.to_server.len().min(buffer.len()).min(if short { some } else { usize::MAX });
        if count == 0 && !conn.fin {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (to, from) in buffer.iter_mut().zip(conn.to_server.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    fn writev(&mut self, fd: &mut Fd, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let world = &mut *self.0.borrow_mut();
        if world.lies(Lie::Interrupted) {
            return Err(ErrorKind::Interrupted.into());
        }
        let (short, again) = (world.lies(Lie::ShortWrite), world.lies(Lie::WriteAgain));
        let some = 1 + world.random(100) as usize;
        let conn = world.carrier(fd);
        assert!(!conn.ended, "written after the end was said");
        if conn.reset {
            return Err(ErrorKind::BrokenPipe.into());
        }
        world.writes += 1;
        let conn = world.carrier(fd);
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        assert!(wanted > 0, "a write of nothing");
        let count = if again { 0 } else { wanted.min(conn.capacity).min(if short { some } else { usize::MAX }) };
        conn.capacity -= count;
        conn.full = count < wanted;
        conn.to_client.extend(pieces.iter().flat_map(|piece| piece.iter()).take(count));
        if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    fn shutdown(&mut self, fd: &mut Fd) -> io::Result<()> {
        let world = &mut *self.0.borrow_mut();
        let conn = world.carrier(fd);
        if conn.reset {
            return Err(ErrorKind::NotConnected.into());
        }
        assert!(!conn.ended, "the end was said twice");
        conn.ended = true;
        conn.hung_up = conn.fin;
        Ok(())
    }

    fn close(&mut self, fd: Fd) {
        let world = &mut *self.0.borrow_mut();
        let conn = world.conn(&fd);
        // A kernel resets what is closed with bytes unread.
        conn.lost |= !conn.to_server.is_empty();
        (conn.open, conn.ended) = (false, true);
        let id = conn.id.take();
        world.closed.extend(id);
    }

    fn close_listener(&mut self, _: usize) {
        let world = &mut *self.0.borrow_mut();
        assert!(world.listening, "a listener was closed twice");
        world.listening = false;
        while let Some(client) = world.queue.pop_front() {
            world.conns[client].lost = true;
        }
    }

    fn poll(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let world = &mut *self.0.borrow_mut();
        if world.lies(Lie::PollInterrupted) {
            return Err(ErrorKind::Interrupted.into());
        }
        let before = events.len();
        let waits = world.advance(events);
        world.found(events);
        if std::mem::take(&mut world.terminate) {
            events.push(Event::Terminate);
        }
        let knocks = world.listening && world.arrived;
        let stirs = world.conns.iter().any(|conn| conn.open && conn.readable | conn.writable);
        let quiet = events.len() == before && !(waits || knocks || stirs);
        world.asleep = quiet && timeout != Some(Duration::ZERO);
        world.now = world.now
            + match timeout {
                _ if !quiet => Duration::from_micros(10),
                Some(timeout) => timeout.min(world.step),
                None => Duration::ZERO,
            };
        Ok(())
    }

    fn now(&mut self) -> Time {
        self.0.borrow().now
    }

    fn wall(&mut self) -> Duration {
        let world = self.0.borrow();
        world.wall.0 + world.now.since(world.wall.1)
    }
}
