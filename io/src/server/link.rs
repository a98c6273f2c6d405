//! Connections to origins.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use holdfast_core::id::Id;
use holdfast_core::input::Loss;
use holdfast_core::time::Time;

use super::{Action, Server, Transmit};

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

/// What the driver says of links.
impl Server {
    /// A link is open.
    pub fn link_connected(&mut self, now: Time, id: LinkId, _peer: SocketAddr) {
        if self.sources.of_link(id).is_some() {
            self.actions.push_back(Action::WriteLink(id));
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
        self.source_received(now, id, data);
        self.pump(now);
    }

    /// The origin will send nothing more.
    pub fn link_eof(&mut self, now: Time, id: LinkId) {
        self.be_punctual(now);
        self.source_eof(now, id);
        self.pump(now);
    }

    /// An open link is gone.
    pub fn link_closed(&mut self, now: Time, id: LinkId) {
        self.link_lost(now, id, Loss::Reset, String::from("the connection broke"));
    }

    /// Whether more bytes of this origin can be taken in.
    pub fn link_wants_read(&self, id: LinkId) -> bool {
        self.sources.of_link(id).is_some()
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
        while let Some(output) = self.sources.output(id).filter(|output| !output.is_empty()) {
            let wanted = output.len();
            let written = match write(&[IoSlice::new(output)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Transmit::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.sources.wrote(id, written);
            if written < wanted {
                return Ok(Transmit::Blocked);
            }
        }
        Ok(Transmit::Idle)
    }

    fn link_lost(&mut self, now: Time, id: LinkId, loss: Loss, why: String) {
        if let Some(source) = self.sources.link_gone(id) {
            self.source_lost(now, source, loss, why);
        }
        self.pump(now);
    }
}
