//! Connections to origins.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use holdfast_core::id::Id;
use holdfast_core::time::Time;

use super::{Server, Transmit};

/// Marks ids of links.
pub enum LinkKind {}
/// One connection to an origin, from [`Action::Connect`](super::Action::Connect) until it failed, closed or was to be
/// closed.
pub type LinkId = Id<LinkKind>;

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

/// What the driver says of links. No link was asked for, so each of them is late and changes nothing.
impl Server {
    /// A link is open.
    pub fn link_connected(&mut self, _: Time, _: LinkId, _: SocketAddr) {}

    /// A link could not be made.
    pub fn link_failed(&mut self, _: Time, _: LinkId, _: ConnectError) {}

    /// Bytes came from an origin.
    pub fn link_received(&mut self, _: Time, _: LinkId, _: &[u8]) {}

    /// The origin will send nothing more.
    pub fn link_eof(&mut self, _: Time, _: LinkId) {}

    /// An open link is gone.
    pub fn link_closed(&mut self, _: Time, _: LinkId) {}

    /// Whether more bytes of this origin can be taken in.
    pub fn link_wants_read(&self, _: LinkId) -> bool {
        false
    }

    /// Writes what there is for this origin.
    ///
    /// # Errors
    /// What `write` returned.
    pub fn link_transmit(
        &mut self,
        _: Time,
        _: LinkId,
        _: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit> {
        Ok(Transmit::Idle)
    }
}
