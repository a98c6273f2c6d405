//! What the driver drives: the server, or a script of the tests.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use holdfast_core::input::{Note, RequestId};
use holdfast_core::time::Time;

use crate::library::{FileEvent, Scan};
use crate::media::MediaEvent;
use crate::server::{About, Action, ConnId, ConnectError, LinkId, Server, Transmit};

/// Whose socket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client's, who connected to us.
    Client(ConnId),
    /// An origin's, whom we connected to.
    Origin(LinkId),
}

/// Decides, without sockets: see [`Server`].
pub trait Serve {
    /// A client connected; `None` drops its socket.
    fn accepted(&mut self, now: Time, peer: SocketAddr) -> Option<ConnId>;
    /// An edge connected; `None` drops its socket.
    fn accepted_edge(&mut self, now: Time, peer: SocketAddr) -> Option<ConnId>;
    /// A link is open, its TLS too; from this address of this machine.
    fn connected(&mut self, now: Time, link: LinkId, peer: SocketAddr, own: Option<IpAddr>);
    /// A link could not be made.
    fn failed(&mut self, now: Time, link: LinkId, error: ConnectError);
    /// Bytes came in.
    fn received(&mut self, now: Time, peer: Peer, data: &[u8]);
    /// The peer will send nothing more.
    fn eof(&mut self, now: Time, peer: Peer);
    /// The socket is gone.
    fn closed(&mut self, now: Time, peer: Peer);
    /// Whether more bytes can be taken in.
    fn wants_read(&self, peer: Peer) -> bool;
    /// Writes what there is.
    ///
    /// # Errors
    /// What `write` returned, but for `WouldBlock` and `Interrupted`; [`closed`](Self::closed) follows.
    fn transmit(
        &mut self,
        now: Time,
        peer: Peer,
        write: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit>;
    /// The media side says something.
    fn media(&mut self, now: Time, event: MediaEvent);
    /// Something came of what was to be done with a file.
    fn file(&mut self, now: Time, request: RequestId, event: FileEvent);
    /// Libraries were looked through.
    fn scanned(&mut self, now: Time, scan: Scan);
    /// The wall clock has so much since 1970-01-01T00:00:00Z.
    fn set_clock(&mut self, _now: Time, _wall: Duration) {}
    /// Deadlines.
    fn tick(&mut self, now: Time);
    /// When [`tick`](Self::tick) must be called next.
    fn deadline(&self) -> Option<Time>;
    /// Everybody is to end in order.
    fn drain(&mut self, now: Time);
    /// Whether everybody has.
    fn is_drained(&self) -> bool;
    /// The next thing to do.
    fn poll(&mut self) -> Option<Action>;
    /// What there is to know of a note.
    fn about(&self, _note: &Note) -> About {
        About::default()
    }
}

impl Serve for Server {
    fn accepted(&mut self, now: Time, peer: SocketAddr) -> Option<ConnId> {
        self.accepted(now, peer)
    }

    fn accepted_edge(&mut self, now: Time, peer: SocketAddr) -> Option<ConnId> {
        self.accepted_edge(now, peer)
    }

    fn connected(&mut self, now: Time, link: LinkId, peer: SocketAddr, own: Option<IpAddr>) {
        self.link_connected_from(now, link, peer, own);
    }

    fn failed(&mut self, now: Time, link: LinkId, error: ConnectError) {
        self.link_failed(now, link, error);
    }

    fn received(&mut self, now: Time, peer: Peer, data: &[u8]) {
        match peer {
            Peer::Client(id) => self.received(now, id, data),
            Peer::Origin(id) => self.link_received(now, id, data),
        }
    }

    fn eof(&mut self, now: Time, peer: Peer) {
        match peer {
            Peer::Client(id) => self.eof(now, id),
            Peer::Origin(id) => self.link_eof(now, id),
        }
    }

    fn closed(&mut self, now: Time, peer: Peer) {
        match peer {
            Peer::Client(id) => self.closed(now, id),
            Peer::Origin(id) => self.link_closed(now, id),
        }
    }

    fn wants_read(&self, peer: Peer) -> bool {
        match peer {
            Peer::Client(id) => self.wants_read(id),
            Peer::Origin(id) => self.link_wants_read(id),
        }
    }

    fn transmit(
        &mut self,
        now: Time,
        peer: Peer,
        write: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit> {
        match peer {
            Peer::Client(id) => self.transmit(now, id, write),
            Peer::Origin(id) => self.link_transmit(now, id, write),
        }
    }

    fn media(&mut self, now: Time, event: MediaEvent) {
        self.media(now, event);
    }

    fn file(&mut self, now: Time, request: RequestId, event: FileEvent) {
        self.file(now, request, event);
    }

    fn scanned(&mut self, now: Time, scan: Scan) {
        self.scanned(now, &scan);
    }

    fn set_clock(&mut self, now: Time, wall: Duration) {
        self.set_clock(now, wall);
    }

    fn tick(&mut self, now: Time) {
        self.tick(now);
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline()
    }

    fn drain(&mut self, now: Time) {
        self.drain(now);
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn poll(&mut self) -> Option<Action> {
        self.poll()
    }

    fn about(&self, note: &Note) -> About {
        self.about(note)
    }
}
