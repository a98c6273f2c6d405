//! Connections and codecs around an [`Edge`](holdfast_core::edge::Edge); still sans-I/O: bytes in, bytes out.
//!
//! A driver says what its sockets and its media side did, drains [`Server::poll`], and calls [`Server::tick`] at
//! [`Server::deadline`]. It writes straight out of a feed's ring with [`Server::transmit`].

mod address;
mod call;
mod connection;
mod edges;
mod link;
mod polls;
mod publishers;
mod rate;
mod refusals;
mod settings;
mod sources;
mod viewers;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::id::{Id, Table};
use holdfast_core::input::{EndpointId, Input, Note, Output, RefuseReason, RequestId, ViewerId};
use holdfast_core::journal::Recorded;
use holdfast_core::time::{Time, Timers};

use crate::http::{Date, Event, Phase, Response};
use crate::media::{MediaCommand, MediaEvent};
use crate::routes;
pub(crate) use call::Call;
pub(crate) use connection::Body as ReadBody;
use connection::{Connection, Work};
pub use link::{ConnectError, LinkId, LinkKind, Target};
pub(crate) use polls::{Fetch, Joining};
pub use publishers::{Publisher, Publishers};
pub use settings::{IceServer, Limits, Settings};
pub use sources::{Clip, Sources};

/// Marks ids of connections.
pub enum ConnKind {}
/// One accepted connection, from [`Server::accepted`] until the driver dropped its socket.
pub type ConnId = Id<ConnKind>;

/// What the server asks of its driver.
#[derive(Debug)]
pub enum Action {
    /// There is something to [`Server::transmit`] on this connection.
    Write(ConnId),
    /// Drop the socket, then nothing more is said of this connection.
    Close(ConnId),
    /// Connect to an origin.
    Connect(LinkId, Target),
    /// There is something to [`Server::link_transmit`] on this link.
    WriteLink(LinkId),
    /// Drop the link, at whatever stage it is; then nothing more is said of it.
    CloseLink(LinkId),
    /// For the media side.
    Media(MediaCommand),
    /// For people.
    Note(Note),
}

/// How a [`Server::transmit`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Nothing is left to write.
    Idle,
    /// The socket takes no more now; call again when it does.
    Blocked,
}

/// How many pieces one write takes at most; what the kernel does not want more of (`UIO_MAXIOV` is 1024, and a socket's
/// buffer is full long before).
const PIECES: usize = 64;

/// Connections and codecs around an edge.
pub struct Server {
    edge: Recorded,
    settings: Settings,
    entropy: Box<dyn FnMut() -> [u8; 16] + Send>,
    connections: Table<ConnKind, Connection>,
    publishers: Publishers,
    sources: Sources,
    /// The connection of each viewer, by the viewer's place.
    viewers: Vec<Option<(ViewerId, ConnId)>>,
    requests: BTreeMap<RequestId, ConnId>,
    polls: polls::Polls,
    next_request: u64,
    timers: Timers<ConnId>,
    rate: rate::Rate,
    crowd: address::Crowd,
    refusals: refusals::Refusals,
    inbox: VecDeque<Input>,
    actions: VecDeque<Action>,
    date: (u64, Date),
    draining: bool,
    /// Whether the last client was turned away for want of room.
    full: bool,
    counts: Counts,
}

/// What happened to connections and requests so far.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were turned away because there were too many.
    pub turned_away: u64,
    /// Connections that were turned away because there were too many of their address.
    pub crowded: u64,
    /// Connections that a limit of time ended.
    pub timed_out: u64,
    /// Sessions of which nothing was heard for too long after they had ended.
    pub stuck: u64,
    /// Answers by the first digit of their status, from 1.
    pub answers: [u64; 5],
    /// WHIP requests that failed their checks, by endpoint and status.
    pub denied: BTreeMap<(EndpointId, u16), u64>,
    /// Bytes written to sockets.
    pub bytes_out: u64,
}

impl Server {
    /// A server without connections; `entropy` gives unpredictable bytes.
    pub fn new(config: Config, settings: Settings, entropy: Box<dyn FnMut() -> [u8; 16] + Send>) -> Self {
        let date = (settings.epoch, Date::from_unix(settings.epoch));
        let edge = if settings.journal { Recorded::on(config) } else { Recorded::off(config) };
        Server {
            edge,
            rate: rate::Rate::new(settings.limits.whip_rate),
            crowd: address::Crowd::new(settings.limits.connections_per_address),
            refusals: refusals::Refusals::default(),
            settings,
            entropy,
            connections: Table::default(),
            publishers: Publishers::default(),
            sources: Sources::default(),
            viewers: Vec::new(),
            requests: BTreeMap::new(),
            polls: polls::Polls::default(),
            next_request: 0,
            timers: Timers::default(),
            inbox: VecDeque::new(),
            actions: VecDeque::new(),
            date,
            draining: false,
            full: false,
            counts: Counts::default(),
        }
    }

    /// The edge, to look at.
    pub fn edge(&self) -> &Edge {
        self.edge.edge()
    }

    /// The edge with its journal, to look at.
    pub fn recorded(&self) -> &Recorded {
        &self.edge
    }

    /// Publishers, as far as moving their bytes goes.
    pub fn publishers(&self) -> &Publishers {
        &self.publishers
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How many requests were answered with 429.
    pub fn rate_limited(&self) -> u64 {
        self.rate.refused()
    }

    /// Whether the program is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn keep_offer(&mut self, request: RequestId, offer: crate::sdp::Offer) {
        self.publishers.keep_offer(request, offer);
    }

    pub(crate) fn publisher_mut(&mut self, session: holdfast_core::input::SessionId) -> Option<&mut Publisher> {
        self.publishers.get_mut(session)
    }

    /// How many connections there are.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

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
        let id = self.connections.insert(Connection::new(peer, self.settings.limits.head));
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
            Work::Joining(_) | Work::Watching(_) => return self.close(now, id),
            // A publisher may: its request is complete, and an answer follows (RFC 9112 §9.6). But no place must be kept for
            // one that is gone, which looks the same until something is written to it.
            Work::Offering(_) => {
                connection.http.probe();
                connection.progress = now;
                self.actions.push_back(Action::Write(id));
            }
            Work::None | Work::Reading(_) | Work::Restarting(_) | Work::Fetching(_) => {}
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
        loop {
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
            let feeds = self.edge.edge().feeds();
            let bytes = |fetch: Fetch| feeds.bytes(fetch.feed, fetch.at, fetch.end);
            if fetch.is_some_and(|fetch| bytes(fetch).is_none()) {
                // The ring has overtaken it; that the answer is short of its length tells the client.
                self.close(now, id);
                return Ok(Transmit::Idle);
            }
            let part = fetch.and_then(bytes).into_iter().flatten();
            let feed = viewer.into_iter().flat_map(|viewer| feeds.unsent(viewer)).chain(part);
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let mut filled = 0;
            for piece in (!head.is_empty()).then_some(head).into_iter().chain(feed).take(PIECES) {
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
            if written < wanted {
                // A short write means a full socket buffer: the next would block.
                return Ok(Transmit::Blocked);
            }
        }
    }

    /// The media side says something.
    pub fn media(&mut self, now: Time, event: MediaEvent) {
        self.be_punctual(now);
        self.on_media(now, event);
        self.pump(now);
    }

    /// What is due happens before media comes. Who ends or is superseded at this very moment may not reach a muxer or a splicer
    /// any more: packets would be counted there that the core then keeps out of the feed, and viewers would miss them.
    fn be_punctual(&mut self, now: Time) {
        if self.edge.edge().deadline().is_some_and(|deadline| deadline <= now) {
            self.decide(now, Input::Tick);
            self.pump(now);
        }
    }

    /// Deadlines.
    pub fn tick(&mut self, now: Time) {
        while let Some(id) = self.timers.expired(now) {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.armed = Time::NEVER;
                self.overdue(now, id);
            }
        }
        self.be_punctual(now);
        self.play_on(now);
        while let Some(session) = self.publishers.stuck(now) {
            self.counts.stuck += 1;
            self.on_media(now, MediaEvent::Gone { session });
        }
        while let Some(note) = self.refusals.due(now) {
            self.actions.push_back(Action::Note(note));
        }
        self.pump(now);
    }

    /// When [`Server::tick`] must be called next.
    pub fn deadline(&self) -> Option<Time> {
        let rooms = [
            self.edge.edge().deadline(),
            self.timers.deadline(),
            self.publishers.deadline(),
            self.sources.deadline(),
            self.refusals.deadline(),
        ];
        rooms.into_iter().flatten().min()
    }

    /// The program is to end: nobody new comes in, everybody ends in order. A request that has not come in whole is refused:
    /// its client may never send the rest.
    pub fn drain(&mut self, now: Time) {
        self.draining = true;
        self.decide(now, Input::Drain);
        self.pump(now);
        let all: Vec<ConnId> = self.connections.iter().map(|(id, _)| id).collect();
        for id in all {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.http.drain();
            }
            self.refuse_rest(now, id);
            self.settle(now, id);
        }
        while let Some(note) = self.refusals.due(Time::NEVER) {
            self.actions.push_back(Action::Note(note));
        }
    }

    /// While everybody ends, a request that has not come in whole is refused.
    fn refuse_rest(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id).filter(|_| self.draining) else { return };
        if matches!(connection.http.phase(), Phase::Head | Phase::Body) {
            connection.work = Work::None;
            connection.http.give_up();
            self.answer(now, id, routes::shared(routes::refused(RefuseReason::Draining, None)));
        }
    }

    /// Whether everybody has ended and every answer is written.
    pub fn is_drained(&self) -> bool {
        self.draining && self.connections.is_empty() && self.publishers.is_empty()
    }

    /// The next thing to do; drained after each call.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Ends a connection of ours; the driver is told to drop its socket.
    fn close(&mut self, now: Time, id: ConnId) {
        if self.connections.get(id).is_some() {
            self.actions.push_back(Action::Close(id));
            self.forget(now, id);
            self.pump(now);
        }
    }

    fn forget(&mut self, now: Time, id: ConnId) {
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
            Work::None | Work::Reading(_) | Work::Fetching(_) => {}
        }
    }

    /// Turns what was received into requests and these into answers, as far as it goes.
    fn serve(&mut self, now: Time, id: ConnId) {
        while let Some(connection) = self.connections.get_mut(id) {
            let Some(event) = connection.http.poll() else { break };
            match event {
                Event::Request(request) => {
                    connection.served = true;
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

    fn answer(&mut self, now: Time, id: ConnId, response: Response) {
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
        let seconds = self.settings.epoch + now.as_micros() / 1_000_000;
        if self.date.0 != seconds {
            self.date = (seconds, Date::from_unix(seconds));
        }
        self.date.1.clone()
    }

    /// After something was read or written: closes what is finished, serves what came meanwhile, moves the deadline.
    fn settle(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.http.is_finished() && !matches!(connection.work, Work::Watching(_)) {
            return self.close(now, id);
        }
        self.rearm(now, id);
    }

    fn rearm(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let deadline = connection.deadline(now, &self.settings.limits);
        self.timers.set(id, &mut connection.armed, deadline);
    }

    /// A connection's deadline passed.
    fn overdue(&mut self, now: Time, id: ConnId) {
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
    fn ask(&mut self, now: Time, id: ConnId, input: impl FnOnce(RequestId) -> Input) -> RequestId {
        self.next_request += 1;
        let request = RequestId(self.next_request);
        if let Some(connection) = self.connections.get_mut(id) {
            let input = input(request);
            connection.work =
                if matches!(input, Input::Offer { .. }) { Work::Offering(request) } else { Work::Joining(request) };
            self.requests.insert(request, id);
            self.inbox.push_back(input);
        }
        self.rearm(now, id);
        request
    }

    fn decide(&mut self, now: Time, input: Input) {
        let mut outside = publishers::Outside { publishers: &self.publishers, entropy: &mut self.entropy };
        self.edge.handle(now, input, &mut outside);
    }

    /// Hands the core what waits for it and does what it says, until both are quiet.
    fn pump(&mut self, now: Time) {
        loop {
            while let Some(output) = self.edge.poll() {
                self.execute(now, output);
            }
            let Some(input) = self.inbox.pop_front() else { break };
            self.decide(now, input);
        }
    }

    fn execute(&mut self, now: Time, output: Output) {
        match output {
            Output::Start { .. } | Output::Finish { .. } | Output::KeyFrame { .. } | Output::Rebuild { .. } => {
                self.execute_media(now, output);
            }
            Output::Open { .. } | Output::Close { .. } | Output::SourceKeyFrame { .. } => {
                self.execute_source(now, output);
            }
            Output::Accept { request, session } => {
                let answer = routes::whip::created(self, session);
                self.answer_request(now, request, answer);
            }
            Output::Refuse { request, reason } => {
                if let Some(id) = self.edge_of(request) {
                    self.requests.remove(&request);
                    return self.edge_refused(now, id, reason);
                }
                let why = self.publishers.take_fault(request);
                self.answer_request(now, request, routes::refused(reason, why.as_deref()));
            }
            Output::Joined { request, viewer } => self.joined(now, request, viewer),
            Output::Ready { feed } => self.ready(feed),
            Output::ViewerEnd { viewer, .. } => self.viewer_ended(now, viewer),
            Output::Polls { request, viewer, token } => self.polls(now, request, viewer, token),
            Output::Playlist { request, viewer } => {
                self.answer_request(now, request, routes::hls::current(self, viewer));
            }
            Output::Note(note) => self.tell(now, note),
        }
    }

    /// Tells people, but not of every refusal.
    fn tell(&mut self, now: Time, note: Note) {
        self.actions.extend(self.refusals.sift(now, note).map(Action::Note));
    }

    pub(crate) fn answer_restart(&mut self, now: Time, id: ConnId, response: Response) {
        if let Some(connection) = self.connections.get_mut(id)
            && matches!(connection.work, Work::Restarting(_))
        {
            connection.work = Work::None;
            self.answer(now, id, routes::shared(response));
        }
    }

    fn answer_request(&mut self, now: Time, request: RequestId, response: Response) {
        self.publishers.forget_offer(request);
        self.polls.forget(request);
        let Some(id) = self.requests.remove(&request) else { return };
        if let Some(connection) = self.connections.get_mut(id) {
            connection.work = Work::None;
            self.answer(now, id, routes::shared(response));
        }
    }
}
