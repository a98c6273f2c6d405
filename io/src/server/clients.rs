//! Accepted connections: what their sockets did, requests that come in, answers and media that go out.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use holdfast_core::input::{Input, Note, RefuseReason, RequestId};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;

use super::connection::{Connection, Wanted, Work};
use super::{Action, Call, ConnId, Fetch, Server, Transmit};
use crate::http::{Date, Event, Phase, Response};
use crate::routes;

/// How many pieces one write takes at most; what the kernel does not want more of (`UIO_MAXIOV` is 1024, and a socket's
/// buffer is full long before).
const PIECES: usize = 64;
/// How large a piece is of what is made while it is sent.
const PIECE: usize = 32 * 1024;

impl Server {
    /// A client connected. `None`: there are too many connections, all in all or of its address, or the program ends; drop
    /// its socket.
    pub fn accepted(&mut self, now: Time, peer: SocketAddr) -> Option<ConnId> {
        if self.draining || self.connections.len() >= self.settings.limits.connections {
            self.counts.turned_away += 1;
            if !self.draining && !std::mem::replace(&mut self.full, true) {
                let limit = self.settings.limits.connections as u64;
                self.actions.push_back(Action::Note(Note::ConnectionsFull { limit }));
            }
            return None;
        }
        self.full = false;
        if !self.crowd.enter(peer.ip()) {
            self.counts.crowded += 1;
            return None;
        }
        self.counts.accepted += 1;
        let id = self.connections.insert(Connection::new(peer, &self.settings.limits));
        self.rearm(now, id);
        Some(id)
    }

    /// Bytes came in.
    pub fn received(&mut self, now: Time, id: ConnId, data: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.edge.is_some() {
            return self.edge_received(now, id, data);
        }
        connection.http.receive(data);
        self.serve(now, id);
    }

    /// The client will send nothing more.
    pub fn eof(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.edge.is_some() {
            return self.close(now, id);
        }
        connection.http.eof();
        match connection.work {
            // A player that closes its side has gone: players don't half-close, and a live stream ends by nothing else.
            Work::Joining(_) | Work::Watching(_) | Work::Relaying(_) => return self.close(now, id),
            // A publisher may: its request is complete, and an answer follows (RFC 9112 §9.6). But no place must be kept for
            // one that is gone, which looks the same until something is written to it.
            Work::Offering(_) => {
                connection.http.probe();
                connection.progress = now;
                self.actions.push_back(Action::Write(id));
            }
            Work::None
            | Work::Reading(_)
            | Work::Restarting(_)
            | Work::Fetching(_)
            | Work::Inquiring
            | Work::Producing(_) => {}
        }
        self.serve(now, id);
    }

    /// The socket is gone.
    pub fn closed(&mut self, now: Time, id: ConnId) {
        self.forget(now, id);
        self.pump(now);
    }

    /// Whether more bytes of this client can be taken in.
    pub fn wants_read(&self, id: ConnId) -> bool {
        self.connections.get(id).is_some_and(|connection| match &connection.edge {
            Some(edge) => edge.wants_read(),
            None => connection.http.wants_read(),
        })
    }

    /// Writes what there is for this connection through `write`, which is one `writev` a call.
    ///
    /// # Errors
    /// What `write` returned, but for `WouldBlock` and `Interrupted`; the driver then drops the socket and calls
    /// [`Server::closed`].
    pub fn transmit(
        &mut self,
        now: Time,
        id: ConnId,
        write: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit> {
        if self.connections.get(id).is_some_and(|connection| connection.edge.is_some()) {
            return self.transmit_edge(now, id, write);
        }
        let mut produced = false;
        loop {
            let Some(connection) = self.connections.get_mut(id) else { return Ok(Transmit::Idle) };
            if let Work::Producing(producer) = &mut connection.work
                && connection.http.output().is_empty()
            {
                if std::mem::replace(&mut produced, true) {
                    return Ok(Transmit::Later);
                }
                let mut piece = Vec::with_capacity(PIECE + PIECE / 8);
                let more = producer.produce(&mut piece, PIECE);
                if !piece.is_empty() {
                    connection.http.chunk(&piece);
                }
                if !more {
                    connection.http.chunk(&[]);
                    connection.work = Work::None;
                }
                if more && piece.is_empty() {
                    return Ok(Transmit::Later);
                }
            }
            let Some(connection) = self.connections.get(id) else { return Ok(Transmit::Idle) };
            let head = connection.http.output();
            let viewer = match connection.work {
                Work::Watching(viewer) => Some(viewer),
                _ => None,
            };
            let fetch = match connection.work {
                Work::Fetching(fetch) => Some(fetch),
                _ => None,
            };
            let relay = match connection.work {
                Work::Relaying(request) => Some(request),
                _ => None,
            };
            let feeds = self.edge.edge().feeds();
            let bytes = |fetch: Fetch| feeds.bytes(fetch.feed, fetch.at, fetch.end);
            if fetch.is_some_and(|fetch| bytes(fetch).is_none()) {
                // The ring has overtaken it; that the answer is short of its length tells the client.
                self.close(now, id);
                return Ok(Transmit::Idle);
            }
            let part = fetch.and_then(bytes).into_iter().flatten();
            let feed = viewer.into_iter().flat_map(|viewer| feeds.unsent(viewer)).chain(part);
            let body = feed.chain(relay.into_iter().flat_map(|request| self.relayed(request)));
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let mut filled = 0;
            for piece in (!head.is_empty()).then_some(head).into_iter().chain(body).take(PIECES) {
                pieces[filled] = IoSlice::new(piece);
                filled += 1;
            }
            if filled == 0 {
                self.serve(now, id);
                return Ok(Transmit::Idle);
            }
            let (wanted, head) = (pieces[..filled].iter().map(|piece| piece.len()).sum::<usize>(), head.len());
            let written = match write(&pieces[..filled]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Transmit::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.counts.bytes_out += written as u64;
            if let Some(connection) = self.connections.get_mut(id) {
                connection.http.wrote(written.min(head));
                connection.progress = now;
            }
            let own = written.saturating_sub(head) as u64;
            if let (Some(viewer), true) = (viewer, own > 0) {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.watched += own;
                }
                self.decide(now, Input::Sent { viewer, bytes: own });
                self.pump(now);
            }
            if let Some(connection) = self.connections.get_mut(id)
                && let Work::Fetching(fetch) = &mut connection.work
            {
                fetch.at += own;
                if fetch.at >= fetch.end {
                    connection.work = Work::None;
                }
                connection.http.wrote_own(own);
            }
            if let Some(request) = relay {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.http.wrote_own(own);
                }
                self.relay_taken(now, request, own);
                self.relay_ends(now, request);
                self.pump(now);
            }
            if written < wanted {
                // A short write means a full socket buffer: the next would block.
                return Ok(Transmit::Blocked);
            }
        }
    }

    /// While everybody ends, a request that has not come in whole is refused.
    pub(super) fn refuse_rest(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id).filter(|_| self.draining) else { return };
        if matches!(connection.http.phase(), Phase::Head | Phase::Body) {
            connection.work = Work::None;
            connection.http.give_up();
            self.answer(now, id, routes::shared(routes::refused(RefuseReason::Draining, None)));
        }
    }

    /// Ends a connection of ours; the driver is told to drop its socket.
    pub(super) fn close(&mut self, now: Time, id: ConnId) {
        if self.connections.get(id).is_some() {
            self.actions.push_back(Action::Close(id));
            self.forget(now, id);
            self.pump(now);
        }
    }

    pub(super) fn forget(&mut self, now: Time, id: ConnId) {
        let Some(mut connection) = self.connections.remove(id) else { return };
        self.timers.set(id, &mut connection.armed, Time::NEVER);
        self.crowd.leave(connection.peer.ip());
        match connection.work {
            Work::Offering(request) | Work::Joining(request) => {
                self.requests.remove(&request);
                self.publishers.forget_offer(request);
                self.polls.forget(request);
                self.decide(now, Input::Hangup { request });
            }
            Work::Watching(viewer) => {
                self.viewers[viewer.index()] = None;
                self.decide(now, Input::Leave { viewer });
            }
            Work::Restarting(session) => self.publishers.restart_abandoned(session, id),
            Work::Relaying(request) => self.relay_left(now, request),
            Work::None | Work::Reading(_) | Work::Fetching(_) | Work::Inquiring | Work::Producing(_) => {}
        }
    }

    /// Turns what was received into requests and these into answers, as far as it goes.
    pub(super) fn serve(&mut self, now: Time, id: ConnId) {
        while let Some(connection) = self.connections.get_mut(id) {
            let Some(event) = connection.http.poll() else { break };
            match event {
                Event::Request(request) => {
                    connection.served = true;
                    self.be_patient(id, self.settings.limits.write_timeout);
                    routes::request(&mut Call { server: self, now, id }, request);
                }
                Event::Body(data) => {
                    if let Work::Reading(body) = &mut connection.work {
                        body.data.extend_from_slice(&data);
                    }
                }
                Event::BodyEnd => {
                    if let Work::Reading(body) = std::mem::replace(&mut connection.work, Work::None) {
                        routes::body(&mut Call { server: self, now, id }, *body);
                    }
                }
                Event::Fault(fault) => {
                    connection.work = Work::None;
                    let answer = routes::shared(Response::from(&fault));
                    self.answer(now, id, answer);
                }
            }
        }
        self.refuse_rest(now, id);
        self.pump(now);
        self.settle(now, id);
    }

    /// The client of a connection may take nothing of what it is sent for so long.
    pub(super) fn be_patient(&mut self, id: ConnId, patience: Duration) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if std::mem::replace(&mut connection.patience, patience) != patience {
            self.actions.push_back(Action::Patience(id, patience));
        }
    }

    pub(super) fn answer(&mut self, now: Time, id: ConnId, response: Response) {
        let date = self.date(now);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let class = usize::from(response.status().code() / 100).clamp(1, 5) - 1;
        self.counts.answers[class] += 1;
        connection.http.respond(response, &date);
        connection.progress = now;
        self.actions.push_back(Action::Write(id));
        self.rearm(now, id);
    }

    fn date(&mut self, now: Time) -> Date {
        let seconds = self.wall(now).as_secs();
        if self.date.0 != seconds {
            self.date = (seconds, Date::from_unix(seconds));
        }
        self.date.1.clone()
    }

    /// After something was read or written: closes what is finished, serves what came meanwhile, moves the deadline.
    pub(super) fn settle(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.http.is_finished() && !matches!(connection.work, Work::Watching(_)) {
            return self.close(now, id);
        }
        self.rearm(now, id);
    }

    pub(super) fn rearm(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let deadline = connection.deadline(now, &self.settings.limits);
        self.timers.set(id, &mut connection.armed, deadline);
    }

    /// A connection's deadline passed.
    pub(super) fn overdue(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let deadline = connection.deadline(now, &self.settings.limits);
        if deadline > now {
            return self.rearm(now, id);
        }
        if self.edge_overdue(now, id) {
            return;
        }
        let Some(connection) = self.connections.get_mut(id) else { return };
        self.counts.timed_out += 1;
        match connection.overdue_answer() {
            Some(answer) => {
                if let Work::Restarting(session) = std::mem::replace(&mut connection.work, Work::None) {
                    self.publishers.restart_abandoned(session, id);
                }
                connection.http.give_up();
                self.answer(now, id, routes::shared(answer));
            }
            None => self.close(now, id),
        }
    }

    /// Puts a request of this connection before the core; answered by `Accept`, `Joined` or `Refuse`.
    pub(super) fn ask(&mut self, now: Time, id: ConnId, input: impl FnOnce(RequestId) -> Input) -> RequestId {
        self.next_request += 1;
        let request = RequestId(self.next_request);
        if let Some(connection) = self.connections.get_mut(id) {
            let input = input(request);
            let feed = match &input {
                Input::Play { viewing, .. } => viewing.item.feed(),
                Input::Join { feed, .. } => Some(*feed),
                _ => None,
            };
            connection.title = None;
            connection.channel = feed.and_then(|feed| self.edge.edge().pull().channel_of(feed));
            connection.wanted = match &input {
                Input::Play { viewing, .. } if matches!(viewing.item, Item::LiveTs(_)) => Wanted::MpegTs,
                _ => Wanted::Anything,
            };
            connection.work =
                if matches!(input, Input::Offer { .. }) { Work::Offering(request) } else { Work::Joining(request) };
            self.requests.insert(request, id);
            self.inbox.push_back(input);
        }
        self.rearm(now, id);
        request
    }

    pub(crate) fn answer_restart(&mut self, now: Time, id: ConnId, response: Response) {
        if let Some(connection) = self.connections.get_mut(id)
            && matches!(connection.work, Work::Restarting(_))
        {
            connection.work = Work::None;
            self.answer(now, id, routes::shared(response));
        }
    }

    pub(super) fn answer_request(&mut self, now: Time, request: RequestId, response: Response) {
        self.publishers.forget_offer(request);
        self.polls.forget(request);
        let Some(id) = self.requests.remove(&request) else { return };
        if let Some(connection) = self.connections.get_mut(id) {
            connection.work = Work::None;
            self.answer(now, id, routes::shared(response));
        }
    }
}
