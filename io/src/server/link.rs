//! Connections to origins.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use holdfast_core::id::Id;
use holdfast_core::input::{Loss, RequestId, SourceId};
use holdfast_core::time::Time;

use super::{Action, Server, Transmit};

/// Marks ids of links.
pub enum LinkKind {}
/// One connection to an origin, from [`Action::Connect`](super::Action::Connect) until it failed, closed or was to be
/// closed.
pub type LinkId = Id<LinkKind>;

/// For whom a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A source of a channel.
    Source(SourceId),
    /// A request for a title.
    Relay(RequestId),
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A DNS name, or an IP address without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Whether TLS is spoken.
    pub tls: bool,
}

/// Why a link could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The name has no address; why.
    Resolve(String),
    /// Nobody listens there.
    Refused,
    /// There is no way there.
    Unreachable,
    /// The kernel gave up waiting for an answer.
    TimedOut,
    /// TLS was not agreed on; why.
    Tls(String),
    /// What the kernel says.
    Other(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Resolve(why) => write!(f, "the name cannot be resolved: {why}"),
            ConnectError::Refused => f.write_str("nobody listens there"),
            ConnectError::Unreachable => f.write_str("there is no way there"),
            ConnectError::TimedOut => f.write_str("no answer"),
            ConnectError::Tls(why) => write!(f, "TLS: {why}"),
            ConnectError::Other(why) => f.write_str(why),
        }
    }
}

/// What the driver says of links.
impl Server {
    /// A link is open.
    pub fn link_connected(&mut self, now: Time, id: LinkId, peer: SocketAddr) {
        match self.links.get(id).copied() {
            Some(Owner::Source(_)) => self.actions.push_back(Action::WriteLink(id)),
            Some(Owner::Relay(request)) => self.relay_connected(request, id, peer),
            None => {}
        }
        self.pump(now);
    }

    /// A link could not be made.
    pub fn link_failed(&mut self, now: Time, id: LinkId, error: ConnectError) {
        let loss = match error {
            ConnectError::Resolve(_) => Loss::Unresolved,
            _ => Loss::Unreachable,
        };
        self.link_lost(now, id, loss, error.to_string());
    }

    /// Bytes came from an origin.
    pub fn link_received(&mut self, now: Time, id: LinkId, data: &[u8]) {
        self.be_punctual(now);
        match self.links.get(id).copied() {
            Some(Owner::Source(source)) => self.source_received(now, source, data),
            Some(Owner::Relay(request)) => self.relay_received(now, request, data),
            None => {}
        }
        self.pump(now);
    }

    /// The origin will send nothing more.
    pub fn link_eof(&mut self, now: Time, id: LinkId) {
        self.be_punctual(now);
        match self.links.get(id).copied() {
            Some(Owner::Source(source)) => self.source_eof(now, source),
            Some(Owner::Relay(request)) => self.relay_eof(now, request),
            None => {}
        }
        self.pump(now);
    }

    /// An open link is gone.
    pub fn link_closed(&mut self, now: Time, id: LinkId) {
        self.link_lost(now, id, Loss::Reset, String::from("the connection broke"));
    }

    /// Whether more bytes of this origin can be taken in.
    pub fn link_wants_read(&self, id: LinkId) -> bool {
        match self.links.get(id) {
            Some(Owner::Source(_)) => true,
            Some(Owner::Relay(request)) => self.relays.wants_read(*request),
            None => false,
        }
    }

    /// Writes what there is for this origin.
    ///
    /// # Errors
    /// What `write` returned, but for `WouldBlock` and `Interrupted`.
    pub fn link_transmit(
        &mut self,
        _now: Time,
        id: LinkId,
        write: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit> {
        let Some(owner) = self.links.get(id).copied() else { return Ok(Transmit::Idle) };
        loop {
            let output = match owner {
                Owner::Source(source) => self.sources.output(source),
                Owner::Relay(request) => self.relays.output(request),
            };
            let Some(output) = output.filter(|output| !output.is_empty()) else { return Ok(Transmit::Idle) };
            let wanted = output.len();
            let written = match write(&[IoSlice::new(output)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Transmit::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match owner {
                Owner::Source(source) => self.sources.wrote(source, written),
                Owner::Relay(request) => self.relays.wrote(request, written),
            }
            if written < wanted {
                return Ok(Transmit::Blocked);
            }
        }
    }

    fn link_lost(&mut self, now: Time, id: LinkId, loss: Loss, why: String) {
        match self.links.remove(id) {
            Some(Owner::Source(source)) => self.source_lost(now, source, loss, why),
            Some(Owner::Relay(request)) => self.relay_link_lost(now, request, why),
            None => {}
        }
        self.pump(now);
    }
}
