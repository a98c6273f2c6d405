//! One connection: its codec, what it is at, and how long it may be at it.

use std::net::SocketAddr;
use std::time::Duration;

use holdfast_core::input::{ChannelId, RequestId, SessionId, TitleId, ViewerId};
use holdfast_core::time::Time;

use super::edges::Edge;
use super::{Fetch, Limits};
use crate::http::{self, Phase, Response, Status};
use crate::routes::Then;

/// One accepted connection.
pub(super) struct Connection {
    pub http: http::Connection,
    /// What it is instead, where edges come in over OVT.
    pub edge: Option<Box<Edge>>,
    pub peer: SocketAddr,
    pub work: Work,
    /// What its last request asked for that was put before the core.
    pub wanted: Wanted,
    /// The live title that it asked for last as MPEG-TS, and what that is known by in addresses.
    pub title: Option<(TitleId, u32)>,
    /// The channel whose feed it asked for last.
    pub channel: Option<ChannelId>,
    /// How many bytes of a live feed it took.
    pub watched: u64,
    /// When bytes of an answer last went out, or an answer was made.
    pub progress: Time,
    pub armed: Time,
    /// How long its client may take nothing of an answer.
    pub patience: Duration,
    /// Whether it ever sent a request.
    pub served: bool,
    phase: Phase,
    since: Time,
}

/// What a connection is at, beyond reading and writing.
pub(super) enum Work {
    None,
    /// A request's body.
    Reading(Box<Body>),
    /// For the core to let a publisher in.
    Offering(RequestId),
    /// For the core to let a viewer in.
    Joining(RequestId),
    /// For ICE to be restarted.
    Restarting(SessionId),
    /// A live feed.
    Watching(ViewerId),
    /// Being sent a part of a feed.
    Fetching(Fetch),
    /// For a provider to say something.
    Inquiring,
    /// Being sent what is made piece by piece as it is taken.
    Producing(Box<dyn Produce>),
    /// For a title, or being sent it.
    Relaying(RequestId),
}

/// What is long and made piece by piece.
pub(crate) trait Produce: Send {
    /// Appends the next piece, of about so many bytes; it may be none for once. Whether there is more.
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool;
}

/// What a request asked for, as far as it matters to its refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Anything,
    /// A stream in which something else may be shown.
    MpegTs,
}

/// A body that is being read.
pub(crate) struct Body {
    pub data: Vec<u8>,
    pub then: Then,
}

impl Connection {
    pub fn new(peer: SocketAddr, limits: &Limits) -> Self {
        let patience = limits.write_timeout;
        let limits = http::Limits { head: limits.head, ..http::Limits::default() };
        Connection {
            http: http::Connection::new(limits),
            edge: None,
            peer,
            work: Work::None,
            wanted: Wanted::Anything,
            title: None,
            channel: None,
            watched: 0,
            progress: Time::ZERO,
            armed: Time::NEVER,
            patience,
            served: false,
            phase: Phase::Closing,
            since: Time::ZERO,
        }
    }

    /// When it is at its limit; `NEVER` where somebody else sees to it.
    pub fn deadline(&mut self, now: Time, limits: &Limits) -> Time {
        if let Some(edge) = &self.edge {
            return match self.work {
                Work::Joining(_) => Time::NEVER,
                Work::Watching(_) => edge.deadline(),
                _ => edge.acted + limits.head_timeout,
            };
        }
        let phase = self.http.phase();
        if phase != self.phase {
            (self.phase, self.since) = (phase, now);
        }
        if matches!(self.work, Work::Relaying(_)) {
            // The relay has its own.
            return Time::NEVER;
        }
        if !self.http.output().is_empty() {
            return self.since.max(self.progress) + self.patience;
        }
        match (&self.work, phase) {
            (Work::Offering(_) | Work::Joining(_) | Work::Watching(_) | Work::Inquiring, _) => Time::NEVER,
            (Work::Restarting(_), _) => self.since + limits.body_timeout,
            // Before the first request a TLS handshake may still be under way.
            (_, Phase::Idle) if !self.served => self.since + limits.head_timeout,
            (_, Phase::Idle) => self.since + limits.idle_timeout,
            (_, Phase::Head) => self.since + limits.head_timeout,
            (_, Phase::Body) => self.since + limits.body_timeout,
            (_, Phase::Responding | Phase::Streaming | Phase::Closing) => self.since.max(self.progress) + self.patience,
        }
    }

    /// What a client is told whose time is over; `None` = the connection just closes.
    pub fn overdue_answer(&self) -> Option<Response> {
        if !self.http.output().is_empty() || self.edge.is_some() {
            return None;
        }
        let timeout = |what: &str| {
            let detail = format!("{what} took too long to arrive; send it in one go");
            Some(Response::problem(Status::REQUEST_TIMEOUT, "timeout", "Request Timeout", &detail).close())
        };
        match (&self.work, self.http.phase()) {
            (Work::Restarting(_), _) => Some(Response::problem(
                Status::GATEWAY_TIMEOUT,
                "restart-failed",
                "ICE was not restarted",
                "the media side did not answer in time; the session goes on as before",
            )),
            (_, Phase::Head) => timeout("the head of the request"),
            (_, Phase::Body) => timeout("the body of the request"),
            _ => None,
        }
    }
}
