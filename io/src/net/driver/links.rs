//! Connections to origins: resolve, connect, agree on TLS, be open. Each of these ends whenever the server says so; how long
//! they may take is for it to know.
//!
//! A host may have several addresses, of which some lead nowhere without saying so. They are tried one beside the other, the
//! next after a moment, and the first that connects is taken (RFC 8305).

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use holdfast_core::time::Time;

use super::{Driver, Entry, Media, Peer, READS, Serve, Socket, SocketId, Stage, Sys};
use crate::net::socket::Handshake;
use crate::net::sys::Lookup;
use crate::server::{ConnectError, LinkId, Target};

/// How many addresses of a name are tried.
const ADDRESSES: usize = 8;
/// How long an address has for itself before the next is tried beside it (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How many are tried at once. Beyond that the oldest has to go, which had a second: descriptors are few.
const ATTEMPTS: usize = 4;

/// A link, from when it was asked for until it is over.
pub(super) struct Link {
    target: Target,
    /// Its name is being looked up.
    lookup: Option<Lookup>,
    /// Addresses that were not tried yet, the next first.
    untried: VecDeque<IpAddr>,
    /// Those that are being connected, the oldest first; then the one that is.
    sockets: VecDeque<SocketId>,
    /// When the next address is tried beside these.
    armed: Time,
}

impl Link {
    fn new(target: Target, lookup: Option<Lookup>, untried: VecDeque<IpAddr>) -> Self {
        Link { target, lookup, untried, sockets: VecDeque::new(), armed: Time::NEVER }
    }
}

impl<S: Sys, M: Media, P: Serve> Driver<S, M, P> {
    pub(super) fn connect(&mut self, id: LinkId, target: Target) {
        let literal: Option<IpAddr> = target.host.parse().ok();
        let lookup = match literal {
            Some(_) => None,
            None => match self.sys.resolve(id, &target.host) {
                Ok(lookup) => Some(lookup),
                Err(error) => return self.server.failed(self.now, id, ConnectError::Resolve(error.to_string())),
            },
        };
        let resolved = lookup.is_none();
        if self.links.len() <= id.index() {
            self.links.resize_with(id.index() + 1, || None);
        }
        self.links[id.index()] = Some((id, Link::new(target, lookup, literal.into_iter().collect())));
        if resolved {
            self.try_next(id, ConnectError::Unreachable);
        }
    }

    pub(super) fn resolved(&mut self, id: LinkId, addresses: Result<Vec<IpAddr>, String>) {
        let Some(link) = self.link_mut(id).filter(|link| link.lookup.is_some()) else { return };
        link.lookup = None;
        let none = match addresses {
            Ok(addresses) => {
                link.untried = interleaved(addresses);
                "it has no address".into()
            }
            Err(why) => why,
        };
        self.try_next(id, ConnectError::Resolve(none));
        self.act();
    }

    /// Begins to connect to the next address that lets it begin. `error` is why that before did not do; the link fails with it
    /// if there is none and no other is being tried.
    fn try_next(&mut self, id: LinkId, mut error: ConnectError) {
        while let Some(link) = self.link_mut(id) {
            let Some(address) = link.untried.pop_front() else {
                if link.sockets.is_empty() {
                    self.link_failed(id, error);
                }
                break;
            };
            let to = SocketAddr::new(address, link.target.port);
            match self.begin(id, to) {
                Ok(()) => break,
                Err(refused) => error = connect_error(&refused),
            }
        }
        let more = self.link_mut(id).is_some_and(|link| !link.untried.is_empty());
        self.arm(id, if more { self.now + ATTEMPT_DELAY } else { Time::NEVER });
    }

    /// Tries further addresses where those before had their time.
    pub(super) fn attempt_further(&mut self) {
        while let Some(id) = self.attempts.expired(self.now) {
            if let Some(link) = self.link_mut(id) {
                link.armed = Time::NEVER;
                self.try_next(id, ConnectError::TimedOut);
            }
        }
    }

    fn arm(&mut self, id: LinkId, at: Time) {
        if let Some(Some((own, link))) = self.links.get_mut(id.index())
            && *own == id
        {
            self.attempts.set(id, &mut link.armed, at);
        }
    }

    fn begin(&mut self, id: LinkId, to: SocketAddr) -> io::Result<()> {
        let stream = self.sys.connect(to)?;
        let socket = self.sockets.insert(Entry::new(Socket::connecting(stream), Stage::Connecting(id)));
        if let Err(error) = self.register(socket) {
            self.close(socket);
            return Err(error);
        }
        let Some(link) = self.link_mut(id) else { return Ok(()) };
        link.sockets.push_back(socket);
        let oldest = if link.sockets.len() > ATTEMPTS { link.sockets.pop_front() } else { None };
        if let Some(oldest) = oldest {
            self.close(oldest);
        }
        Ok(())
    }

    /// A socket that is being connected became ready.
    pub(super) fn connect_further(&mut self, socket: SocketId, id: LinkId) {
        let Some(entry) = self.sockets.get_mut(socket) else { return };
        match self.sys.connected(&mut entry.socket.stream) {
            Ok(address) => {
                self.settle(socket, id);
                self.reached(socket, id, address);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => entry.socket.writable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.enqueue(socket),
            Err(error) => {
                self.close(socket);
                if let Some(link) = self.link_mut(id) {
                    link.sockets.retain(|own| *own != socket);
                }
                self.try_next(id, connect_error(&error));
            }
        }
        self.act();
    }

    /// The link is this socket's; the others were too slow.
    fn settle(&mut self, socket: SocketId, id: LinkId) {
        self.arm(id, Time::NEVER);
        let Some(link) = self.link_mut(id) else { return };
        link.untried.clear();
        for other in std::mem::replace(&mut link.sockets, VecDeque::from([socket])) {
            if other != socket {
                self.close(other);
            }
        }
    }

    fn reached(&mut self, socket: SocketId, id: LinkId, address: SocketAddr) {
        let Some(Target { host, tls, .. }) = self.link_mut(id).map(|link| link.target.clone()) else { return };
        if !tls {
            return self.opened(socket, id, address);
        }
        match (self.trust.client(&host), self.sockets.get_mut(socket)) {
            (Ok(tls), Some(entry)) => {
                entry.socket.encrypt(tls.into());
                entry.stage = Stage::Handshaking(id, address);
                self.handshake(socket, id, address);
            }
            (Ok(_), None) => {}
            (Err(why), _) => {
                self.close(socket);
                self.link_failed(id, ConnectError::Tls(why));
            }
        }
    }

    pub(super) fn handshake(&mut self, socket: SocketId, id: LinkId, address: SocketAddr) {
        for _ in 0..READS {
            let Some(entry) = self.sockets.get_mut(socket) else { return };
            match entry.socket.handshake(&mut self.sys) {
                Ok(Handshake::Going) => continue,
                Ok(Handshake::Done) => self.opened(socket, id, address),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    self.close(socket);
                    self.link_failed(id, handshake_error(&error));
                }
            }
            return self.act();
        }
        self.enqueue(socket);
    }

    fn opened(&mut self, socket: SocketId, id: LinkId, address: SocketAddr) {
        if let Some(entry) = self.sockets.get_mut(socket) {
            entry.stage = Stage::Open(Peer::Origin(id));
            let own = self.sys.own_address(&entry.socket.stream);
            self.server.connected(self.now, id, address, own);
            // What came with the last of the handshake has no event of its own.
            self.enqueue(socket);
        }
    }

    fn link_failed(&mut self, id: LinkId, error: ConnectError) {
        self.links[id.index()] = None;
        self.server.failed(self.now, id, error);
    }

    /// The server wants to hear no more of a link.
    pub(super) fn close_link(&mut self, id: LinkId) {
        self.arm(id, Time::NEVER);
        self.files.retain(|(own, _)| *own != id);
        let Some(place) = self.links.get_mut(id.index()) else { return };
        let Some((_, link)) = place.take_if(|(own, _)| *own == id) else { return };
        for id in link.sockets {
            if let Some(Entry { socket, stage: Stage::Open(_), .. }) = self.sockets.get_mut(id) {
                socket.end();
                // To say so is a courtesy; an error means that nobody listens.
                let _ = socket.flush(&mut self.sys);
            }
            self.close(id);
        }
    }

    /// Reads again from origins whose bytes the server did not want, as soon as it does. What makes it want them is no event
    /// of their sockets: a viewer that took what came before.
    pub(super) fn resume(&mut self) {
        let mut withheld = std::mem::take(&mut self.withheld);
        withheld.retain(|id| {
            let Some(Entry { stage: Stage::Open(peer), withheld, .. }) = self.sockets.get_mut(*id) else {
                return false;
            };
            *withheld = !self.server.wants_read(*peer);
            if *withheld {
                return true;
            }
            self.enqueue(*id);
            false
        });
        self.withheld = withheld;
    }

    pub(super) fn socket_of_link(&mut self, id: LinkId) -> Option<SocketId> {
        self.link_mut(id)?.sockets.front().copied()
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        let (own, link) = self.links.get_mut(id.index())?.as_mut()?;
        (*own == id).then_some(link)
    }
}

/// The addresses to try, those of one family between those of the other, beginning with the first (RFC 8305 §4): a family that
/// leads nowhere costs one delay.
fn interleaved(addresses: Vec<IpAddr>) -> VecDeque<IpAddr> {
    let first = addresses.first().is_some_and(IpAddr::is_ipv4);
    let (same, other): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(|own| own.is_ipv4() == first);
    let (mut same, mut other) = (same.into_iter(), other.into_iter());
    let mut all = VecDeque::new();
    while all.len() < ADDRESSES {
        let before = all.len();
        all.extend(same.next());
        all.extend(other.next());
        if all.len() == before {
            break;
        }
    }
    all
}

fn connect_error(error: &io::Error) -> ConnectError {
    match error.kind() {
        ErrorKind::ConnectionRefused => ConnectError::Refused,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            ConnectError::Unreachable
        }
        ErrorKind::TimedOut => ConnectError::TimedOut,
        _ => ConnectError::Other(error.to_string()),
    }
}

fn handshake_error(error: &io::Error) -> ConnectError {
    match error.kind() {
        ErrorKind::InvalidData => ConnectError::Tls(error.to_string()),
        ErrorKind::UnexpectedEof => ConnectError::Tls("the connection ended within the handshake".into()),
        _ => connect_error(error),
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
