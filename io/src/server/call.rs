//! What the routes may do with one request.

use std::net::SocketAddr;
use std::time::Duration;

use holdfast_core::input::{EndpointId, Input, Note, RequestId, SessionId};
use holdfast_core::time::Time;

use super::connection::{Body, Produce, Work};
use super::{Action, ConnId, Server};
use crate::http::{self, Response};
use crate::media::MediaCommand;
use crate::routes;

/// One request of one connection, on its way through the routes.
pub(crate) struct Call<'a> {
    pub server: &'a mut Server,
    pub now: Time,
    pub id: ConnId,
}

impl Call<'_> {
    /// Answers it.
    pub fn answer(&mut self, response: Response) {
        self.server.answer(self.now, self.id, routes::shared(response));
    }

    /// Answers it with what is made piece by piece as the client takes it.
    pub fn produce(&mut self, response: Response, producer: Box<dyn Produce>) {
        self.answer(response.body(http::Body::Chunks));
        if let Some(connection) = self.server.connections.get_mut(self.id)
            && connection.http.phase() == http::Phase::Streaming
        {
            connection.work = Work::Producing(producer);
        }
    }

    /// Reads its body, at most `limit` bytes, then goes on with `then`.
    pub fn read(&mut self, limit: u64, then: routes::Then) {
        let Some(connection) = self.server.connections.get_mut(self.id) else { return };
        connection.work = Work::Reading(Box::new(Body { data: Vec::new(), then }));
        connection.http.accept_body(limit);
        if !connection.http.output().is_empty() {
            // 100 Continue: its client sends the body once it has read that.
            connection.progress = self.now;
            self.server.actions.push_back(Action::Write(self.id));
        }
        self.server.rearm(self.now, self.id);
    }

    /// Where it comes from.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.server.connections.get(self.id).map(|connection| connection.peer)
    }

    /// Answers it with a problem of the request itself, which operators get to know of.
    pub fn deny(&mut self, endpoint: EndpointId, response: Response, why: String) {
        let status = response.status().code();
        *self.server.counts.denied.entry((endpoint, status)).or_default() += 1;
        let from = self.peer().map(|peer| peer.ip().to_string());
        self.server.tell(self.now, Note::RequestRefused { endpoint, status, from, why });
        self.answer(response);
    }

    /// Counts it against what its address may change.
    ///
    /// # Errors
    /// How long its client should wait, if it is one too many.
    pub fn admit(&mut self) -> Result<(), Duration> {
        match self.peer() {
            Some(peer) => self.server.rate.admit(self.now, peer.ip()).map_err(|too_many| {
                if let Some((peer, refused)) = too_many.tell {
                    self.server.tell(self.now, Note::RateLimited { peer: peer.to_string(), refused });
                }
                too_many.wait
            }),
            None => Ok(()),
        }
    }

    /// Puts it before the core.
    pub fn ask(&mut self, input: impl FnOnce(RequestId) -> Input) -> RequestId {
        self.server.ask(self.now, self.id, input)
    }

    /// Tells the core.
    pub fn tell(&mut self, input: Input) {
        self.server.decide(self.now, input);
        self.server.pump(self.now);
    }

    /// Asks the media side.
    pub fn command(&mut self, command: MediaCommand) {
        self.server.actions.push_back(Action::Media(command));
    }

    /// Leaves it unanswered until the session's ICE was restarted.
    pub fn await_restart(&mut self, session: SessionId) {
        if let Some(connection) = self.server.connections.get_mut(self.id) {
            connection.work = Work::Restarting(session);
        }
        self.server.rearm(self.now, self.id);
    }
}
