//! Connections to origins.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

use holdfast_core::id::Id;
use holdfast_core::input::{Loss, ProviderId, RequestId, SourceId};
use holdfast_core::time::Time;

use super::catalogs::InquiryId;
use super::{Action, Server, Transmit};
use crate::http::client::Get;
use crate::providers::Ends;

/// Marks ids of links.
pub enum LinkKind {}
/// One connection to an origin, from [`Action::Connect`](super::Action::Connect) until it failed, closed or was to be
/// closed.
pub type LinkId = Id<LinkKind>;

/// For whom a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A channel's source.
    Source(SourceId),
    /// A provider's catalogue, or its guide.
    Catalog(ProviderId),
    /// A question to a provider.
    Inquiry(InquiryId),
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

impl Target {
    /// Where a request goes.
    pub(super) fn of(get: &Get) -> Target {
        Target { host: get.host(), port: get.port(), tls: get.is_encrypted() }
    }
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
    /// A link is open; from which address of this machine is not known.
    pub fn link_connected(&mut self, now: Time, id: LinkId, peer: SocketAddr) {
        self.link_connected_from(now, id, peer, None);
    }

    /// A link is open, from this address of this machine if it is known.
    pub fn link_connected_from(&mut self, now: Time, id: LinkId, peer: SocketAddr, own: Option<IpAddr>) {
        let ends = Ends { peer, own };
        let may = match self.links.get(id) {
            Some(Owner::Source(source)) => self.source_may_lead_to(*source, ends),
            Some(Owner::Catalog(provider)) => self.catalog_may_lead_to(*provider, ends),
            // Where that is was said by the operator himself.
            Some(Owner::Inquiry(_)) => Ok(()),
            Some(Owner::Relay(request)) => {
                self.relay_connected(*request, id, ends);
                return self.pump(now);
            }
            None => return self.pump(now),
        };
        match may {
            Ok(()) => self.actions.push_back(Action::WriteLink(id)),
            Err(forbidden) => {
                self.actions.push_back(Action::CloseLink(id));
                self.link_lost(now, id, forbidden.loss(), forbidden.to_string());
            }
        }
        self.pump(now);
    }

    /// A link could not be made.
    pub fn link_failed(&mut self, now: Time, id: LinkId, error: ConnectError) {
        let loss = match error {
            ConnectError::Resolve(_) => Loss::Unresolved,
            _ => Loss::Unreachable,
        };
        let why = match (self.links.get(id), error) {
            // What a certificate says is not ours.
            (Some(Owner::Source(source)), ConnectError::Tls(why)) => ConnectError::Tls(self.quoted(*source, &why)),
            (_, error) => error,
        };
        self.link_lost(now, id, loss, why.to_string());
    }

    /// Bytes came from an origin.
    pub fn link_received(&mut self, now: Time, id: LinkId, data: &[u8]) {
        self.be_punctual(now);
        match self.links.get(id) {
            Some(Owner::Source(source)) => self.source_received(now, *source, data),
            Some(Owner::Catalog(provider)) => self.catalog_received(now, *provider, data),
            Some(Owner::Inquiry(inquiry)) => self.inquiry_received(now, *inquiry, data),
            Some(Owner::Relay(request)) => self.relay_received(now, *request, data),
            None => {}
        }
        self.pump(now);
    }

    /// The origin will send nothing more.
    pub fn link_eof(&mut self, now: Time, id: LinkId) {
        self.be_punctual(now);
        match self.links.get(id) {
            Some(Owner::Source(source)) => self.source_eof(now, *source),
            Some(Owner::Catalog(provider)) => self.catalog_eof(now, *provider),
            Some(Owner::Inquiry(inquiry)) => self.inquiry_eof(now, *inquiry),
            Some(Owner::Relay(request)) => self.relay_eof(now, *request),
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
            Some(Owner::Source(_) | Owner::Inquiry(_)) => true,
            Some(Owner::Catalog(provider)) => self.catalogs.wants_read(*provider),
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
        while let Some(output) = self.link_output(id).filter(|output| !output.is_empty()) {
            let wanted = output.len();
            let written = match write(&[IoSlice::new(output)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Transmit::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match self.links.get(id) {
                Some(Owner::Source(source)) => self.sources.wrote(*source, written),
                Some(Owner::Catalog(provider)) => self.catalogs.wrote(*provider, written),
                Some(Owner::Inquiry(inquiry)) => self.catalogs.inquiry_wrote(*inquiry, written),
                Some(Owner::Relay(request)) => self.relays.wrote(*request, written),
                None => {}
            }
            if written < wanted {
                return Ok(Transmit::Blocked);
            }
        }
        Ok(Transmit::Idle)
    }

    fn link_output(&self, id: LinkId) -> Option<&[u8]> {
        match self.links.get(id)? {
            Owner::Source(source) => self.sources.output(*source),
            Owner::Catalog(provider) => self.catalogs.output(*provider),
            Owner::Inquiry(inquiry) => self.catalogs.inquiry_output(*inquiry),
            Owner::Relay(request) => self.relays.output(*request),
        }
    }

    fn link_lost(&mut self, now: Time, id: LinkId, loss: Loss, why: String) {
        match self.links.remove(id) {
            Some(Owner::Source(source)) => self.source_lost(now, source, loss, why),
            Some(Owner::Catalog(provider)) => self.catalog_failed(now, provider, why),
            Some(Owner::Inquiry(inquiry)) => self.inquiry_failed(now, inquiry),
            Some(Owner::Relay(request)) => self.relay_link_lost(now, request, why),
            None => {}
        }
        self.pump(now);
    }

    /// Begins a link.
    pub(super) fn connect(&mut self, owner: Owner, target: Target) -> LinkId {
        let link = self.links.insert(owner);
        self.actions.push_back(Action::Connect(link, target));
        link
    }

    /// Ends a link, if it is there still.
    pub(super) fn drop_link(&mut self, link: LinkId) {
        if self.links.remove(link).is_some() {
            self.actions.push_back(Action::CloseLink(link));
        }
    }
}
