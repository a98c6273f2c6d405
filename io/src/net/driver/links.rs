//! Connections to origins: resolve, connect, agree on TLS, be open. Each of these ends whenever the server says so; how long
//! they may take is for it to know.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use super::{Driver, Entry, Media, Peer, READS, Serve, Socket, SocketId, Stage, Sys};
use crate::net::socket::Handshake;
use crate::net::sys::Lookup;
use crate::server::{ConnectError, LinkId, Target};

/// How many addresses of a name are tried.
const ADDRESSES: usize = 8;

/// A link, from when it was asked for until it is over.
pub(super) struct Link {
    target: Target,
    /// Its name is being looked up.
    lookup: Option<Lookup>,
    /// Addresses that were not tried yet, the next first.
    untried: VecDeque<IpAddr>,
    socket: Option<SocketId>,
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
        self.links[id.index()] =
            Some((id, Link { target, lookup, untried: literal.into_iter().collect(), socket: None }));
        if resolved {
            self.try_next(id, ConnectError::Unreachable);
        }
    }

    pub(super) fn resolved(&mut self, id: LinkId, addresses: Result<Vec<IpAddr>, String>) {
        let Some(link) = self.link_mut(id).filter(|link| link.lookup.is_some()) else { return };
        link.lookup = None;
        let none = match addresses {
            Ok(addresses) => {
                link.untried = addresses.into_iter().take(ADDRESSES).collect();
                "it has no address".into()
            }
            Err(why) => why,
        };
        self.try_next(id, ConnectError::Resolve(none));
        self.act();
    }

    /// Begins to connect to the next address that lets it begin. `error` is why that before did not do.
    fn try_next(&mut self, id: LinkId, mut error: ConnectError) {
        while let Some(link) = self.link_mut(id) {
            let Some(address) = link.untried.pop_front() else { return self.link_failed(id, error) };
            let to = SocketAddr::new(address, link.target.port);
            match self.begin(id, to) {
                Ok(()) => return,
                Err(refused) => error = connect_error(&refused),
            }
        }
    }

    fn begin(&mut self, id: LinkId, to: SocketAddr) -> io::Result<()> {
        let stream = self.sys.connect(to)?;
        let socket = self.sockets.insert(Entry::new(Socket::connecting(stream), Stage::Connecting(id)));
        if let Err(error) = self.register(socket) {
            self.close(socket);
            return Err(error);
        }
        if let Some(link) = self.link_mut(id) {
            link.socket = Some(socket);
        }
        Ok(())
    }

    /// A socket that is being connected became ready.
    pub(super) fn connect_further(&mut self, socket: SocketId, id: LinkId) {
        let Some(entry) = self.sockets.get_mut(socket) else { return };
        match self.sys.connected(&mut entry.socket.stream) {
            Ok(address) => self.reached(socket, id, address),
            Err(error) if error.kind() == ErrorKind::WouldBlock => entry.socket.writable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.enqueue(socket),
            Err(error) => {
                self.close(socket);
                self.try_next(id, connect_error(&error));
            }
        }
        self.act();
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
            self.server.connected(self.now, id, address);
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
        let Some(place) = self.links.get_mut(id.index()) else { return };
        let Some((_, Link { socket: Some(socket), .. })) = place.take_if(|(own, _)| *own == id) else { return };
        if let Some(Entry { socket, stage: Stage::Open(_), .. }) = self.sockets.get_mut(socket) {
            socket.end();
            // To say so is a courtesy; an error means that nobody listens.
            let _ = socket.flush(&mut self.sys);
        }
        self.close(socket);
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
        self.link_mut(id)?.socket
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        let (own, link) = self.links.get_mut(id.index())?.as_mut()?;
        (*own == id).then_some(link)
    }
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
