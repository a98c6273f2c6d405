//! A server that a test dictates, and a driver around it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use holdfast_core::input::RequestId;
use holdfast_core::time::Time;

use super::{Driver, Media, Peer, Serve, Sys};
use crate::library::{FileEvent, Scan};
use crate::media::{MediaCommand, MediaEvent};
use crate::net::driver::{Door, Ended, Parts};
use crate::net::fake::Fake;
use crate::net::kernel::{Clock, Kernel};
use crate::net::tls::Trust;
use crate::server::{Action, ConnId, ConnectError, LinkId, Target, Transmit};

pub struct NoMedia;

impl Media for NoMedia {
    fn command(&mut self, _: MediaCommand) {}

    fn poll(&mut self) -> Option<MediaEvent> {
        None
    }
}

/// What a link was told, and what it says.
#[derive(Default)]
pub struct Told {
    pub address: Option<SocketAddr>,
    pub own: Option<IpAddr>,
    pub failed: Option<ConnectError>,
    pub got: Vec<u8>,
    pub eof: bool,
    pub closed: bool,
    /// It wants to hear nothing now.
    pub deaf: bool,
    /// We closed it.
    pub dropped: bool,
    pub to_send: Vec<u8>,
    /// How many more times that is to be made, and was.
    pub to_make: usize,
    pub made: usize,
}

impl Told {
    pub fn is_over(&self) -> bool {
        self.failed.is_some() || self.closed || self.dropped
    }
}

/// A server that does what a test says, and checks the order in which it is told of its links.
#[derive(Default)]
pub struct Script {
    pub actions: VecDeque<Action>,
    pub links: BTreeMap<LinkId, Told>,
    /// The one client that is let in, which says nothing.
    pub client: Option<ConnId>,
    draining: bool,
}

impl Script {
    fn link(&mut self, link: LinkId) -> &mut Told {
        let told = self.links.get_mut(&link).unwrap();
        assert!(!told.is_over(), "{link}: told of a link that is over");
        told
    }

    fn open(&mut self, peer: Peer) -> &mut Told {
        let Peer::Origin(link) = peer else { panic!("there are no clients") };
        let told = self.link(link);
        assert!(told.address.is_some(), "{link}: told of a link that is not open");
        told
    }
}

impl Serve for Script {
    fn accepted(&mut self, _: Time, _: SocketAddr) -> Option<ConnId> {
        self.client
    }

    fn accepted_edge(&mut self, _: Time, _: SocketAddr) -> Option<ConnId> {
        None
    }

    fn connected(&mut self, _: Time, link: LinkId, address: SocketAddr, own: Option<IpAddr>) {
        self.link(link).own = own;
        assert_eq!(self.link(link).address.replace(address), None, "{link}: opened twice");
        if !self.link(link).to_send.is_empty() {
            self.actions.push_back(Action::WriteLink(link));
        }
    }

    fn failed(&mut self, _: Time, link: LinkId, error: ConnectError) {
        let told = self.link(link);
        assert_eq!(told.address, None, "{link}: failed after it was open");
        told.failed = Some(error);
    }

    fn received(&mut self, _: Time, peer: Peer, data: &[u8]) {
        let told = self.open(peer);
        assert!(!told.eof && !told.deaf && !data.is_empty());
        told.got.extend(data);
    }

    fn eof(&mut self, _: Time, peer: Peer) {
        assert!(!std::mem::replace(&mut self.open(peer).eof, true), "the end was told twice");
    }

    fn closed(&mut self, _: Time, peer: Peer) {
        self.open(peer).closed = true;
    }

    fn wants_read(&self, peer: Peer) -> bool {
        matches!(peer, Peer::Origin(link) if self.links.get(&link).is_some_and(|told| !told.is_over() && !told.deaf))
    }

    fn transmit(
        &mut self,
        _: Time,
        peer: Peer,
        write: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit> {
        let told = self.open(peer);
        while !told.to_send.is_empty() {
            let written = match write(&[IoSlice::new(&told.to_send)]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Transmit::Blocked),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
            told.to_send.drain(..written);
            if !told.to_send.is_empty() {
                return Ok(Transmit::Blocked);
            }
        }
        if told.to_make > 0 {
            (told.to_make, told.made) = (told.to_make - 1, told.made + 1);
            told.to_send = vec![b'x'; 100];
            return Ok(Transmit::Later);
        }
        Ok(Transmit::Idle)
    }

    fn media(&mut self, _: Time, _: MediaEvent) {}

    fn file(&mut self, _: Time, _: RequestId, _: FileEvent) {}

    fn scanned(&mut self, _: Time, _: Scan) {}

    fn tick(&mut self, _: Time) {}

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn drain(&mut self, _: Time) {
        self.draining = true;
        for (link, told) in &mut self.links {
            if !told.is_over() {
                told.dropped = true;
                self.actions.push_back(Action::CloseLink(*link));
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.draining
    }

    fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

/// A driver, and a place for every link.
pub struct Bench<S: Sys> {
    pub driver: Driver<S, NoMedia, Script>,
}

impl<S: Sys> Bench<S> {
    pub fn on(sys: S, trust: Trust) -> Self {
        let server = Script::default();
        let parts =
            Parts { sys, listeners: vec![Door::Http(None)], server, trust, media: NoMedia, report: Box::new(|_| {}) };
        Bench { driver: Driver::new(parts) }
    }

    pub fn connect(&mut self, link: LinkId, host: &str, target: (u16, bool), to_send: &[u8]) {
        let (port, tls) = target;
        self.driver.server.links.insert(link, Told { to_send: to_send.into(), ..Told::default() });
        self.driver.server.actions.push_back(Action::Connect(link, Target { host: host.into(), port, tls }));
        self.driver.act();
    }

    pub fn close(&mut self, link: LinkId) {
        let told = self.driver.server.links.get_mut(&link).unwrap();
        if !told.is_over() {
            told.dropped = true;
            self.driver.server.actions.push_back(Action::CloseLink(link));
            self.driver.act();
        }
    }

    pub fn told(&self, link: LinkId) -> &Told {
        &self.driver.server.links[&link]
    }

    pub fn told_mut(&mut self, link: LinkId) -> &mut Told {
        self.driver.server.links.get_mut(&link).unwrap()
    }

    pub fn end(&mut self) {
        self.driver.drain();
        assert_eq!(self.driver.timeout(), Some(Duration::ZERO), "nobody is waited for");
        assert_eq!(self.driver.turn().unwrap(), Some(Ended::Drained));
    }
}

impl Bench<Kernel> {
    pub fn kernel(trust: Trust) -> Self {
        Bench::on(Kernel::new(Clock::start()).unwrap(), trust)
    }

    pub fn until(&mut self, link: LinkId, what: impl Fn(&Told) -> bool) {
        let begun = Instant::now();
        while !what(self.told(link)) {
            assert!(begun.elapsed() < Duration::from_secs(20), "failed: {:?}", self.told(link).failed);
            self.driver.turn().unwrap();
        }
    }
}

impl Bench<Fake> {
    pub fn turns(&mut self, count: usize) {
        for _ in 0..count {
            assert_eq!(self.driver.turn().unwrap(), None);
        }
    }
}
