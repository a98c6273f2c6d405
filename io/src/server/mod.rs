//! Connections and codecs around an [`Edge`](holdfast_core::edge::Edge); still sans-I/O: bytes in, bytes out.
//!
//! A driver says what its sockets and its media side did, drains [`Server::poll`], and calls [`Server::tick`] at
//! [`Server::deadline`]. It writes straight out of a feed's ring with [`Server::transmit`].

mod address;
mod call;
mod catalogs;
mod clients;
mod connection;
mod edges;
mod guesses;
mod guests;
mod link;
mod names;
mod polls;
mod publishers;
mod rate;
mod recording;
mod refusals;
mod relays;
mod settings;
mod shelves;
mod sources;
mod viewers;
mod wall;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::id::{Id, Table};
use holdfast_core::input::{AccountId, EndpointId, Input, Note, Output, RefuseReason, RequestId, ViewerId};
use holdfast_core::journal::Recorded;
use holdfast_core::time::{Time, Timers};

use crate::catalog::Catalog;
use crate::hls::sealed::Seal;
use crate::http::{Date, Response};
use crate::library::{FileCommand, Libraries, Library};
use crate::media::{MediaCommand, MediaEvent};
use crate::providers::{Belonging, Listeners, Providers};
use crate::routes;
use crate::signer::Signer;
use crate::ts;
use crate::users::Users;
pub(crate) use call::Call;
pub(crate) use catalogs::Inquired;
use connection::Connection;
pub(crate) use connection::{Body as ReadBody, Produce, Wanted};
pub(crate) use guests::Attempt;
pub use link::{ConnectError, LinkId, LinkKind, Target};
pub use names::About;
pub(crate) use polls::{At, Fetch, Joining, Owner, Polled};
pub use publishers::{Publisher, Publishers};
pub(crate) use recording::NoJournal;
pub use recording::Piece;
pub(crate) use relays::{Errand, From as FetchedFrom, OfFile, Relay, STAGES, Size, What};
pub use settings::{IceServer, Limits, Recording, Settings, Slates, WrongLogin};
pub(crate) use shelves::Looked;
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
    /// From here on the client of this connection may take nothing of what is sent to it, or acknowledge none of it, for so long.
    Patience(ConnId, Duration),
    /// Connect to an origin.
    Connect(LinkId, Target),
    /// There is something to [`Server::link_transmit`] on this link.
    WriteLink(LinkId),
    /// Drop the link, at whatever stage it is; then nothing more is said of it.
    CloseLink(LinkId),
    /// Do something with the file of a request; answered by [`Server::file`], but for closing.
    File(RequestId, FileCommand),
    /// Look through libraries; answered by [`Server::scanned`].
    Scan(Arc<[Library]>),
    /// Read a file of this machine as if an origin sent it: what is in it, then its end; or that the link failed.
    ReadFile(LinkId, PathBuf),
    /// For the media side.
    Media(MediaCommand),
    /// Write down, so that it can be [told](Settings::belongings) at the next start.
    Keep(Vec<Belonging>),
    /// For people.
    Note(Note),
    /// To be kept beyond the end of the process.
    Record(Piece),
}

/// How a [`Server::transmit`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Nothing is left to write.
    Idle,
    /// The socket takes no more now; call again when it does.
    Blocked,
    /// More has to be made first, which takes its time: call again when others have had their turn.
    Later,
}

/// Connections and codecs around an edge.
pub struct Server {
    edge: Recorded,
    settings: Settings,
    /// When [`Time::ZERO`] was, since 1970-01-01T00:00:00Z.
    zero: Duration,
    entropy: Box<dyn FnMut() -> [u8; 16] + Send>,
    connections: Table<ConnKind, Connection>,
    publishers: Publishers,
    sources: Sources,
    catalogs: catalogs::Catalogs,
    relays: relays::Relays,
    /// Why somebody lost a connection of an account last, and when.
    losses: BTreeMap<AccountId, (Time, String)>,
    /// Connections to origins and providers, and for whom each is.
    links: Table<LinkKind, link::Owner>,
    /// The connection of each viewer, by the viewer's place.
    viewers: Vec<Option<(ViewerId, ConnId)>>,
    requests: BTreeMap<RequestId, ConnId>,
    polls: polls::Polls,
    next_request: u64,
    timers: Timers<ConnId>,
    rate: rate::Rate,
    crowd: address::Crowd,
    refusals: refusals::Refusals,
    names: names::Names,
    catalog: Catalog,
    users: Users,
    providers: Providers,
    /// What addresses in providers' playlists are sealed with; it ends with the process.
    seal: Seal,
    /// What players and publishers are known by in addresses is signed with this.
    signer: Signer,
    shelves: shelves::Shelves,
    guesses: guesses::Guesses,
    failed_logins: u64,
    /// What is shown behind a stream whose account went to somebody stronger.
    parting: Option<Bytes>,
    inbox: VecDeque<Input>,
    actions: VecDeque<Action>,
    date: (u64, Date),
    draining: bool,
    /// Whether the last client was turned away for want of room.
    full: bool,
    counts: Counts,
    spool: recording::Spool,
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
    pub fn new(config: Config, settings: Settings, mut entropy: Box<dyn FnMut() -> [u8; 16] + Send>) -> Self {
        // Not by the core: what it asks for is in its journal.
        let secret = [entropy(), entropy()];
        let secret = secret.as_flattened();
        let date = (settings.epoch, Date::from_unix(settings.epoch));
        let mut providers = Providers::new(&settings.providers);
        providers.recall(&settings.belongings);
        providers.listeners = Listeners(settings.listeners.clone());
        let (edge, spool) = (recording::edge(config, &settings.recording), recording::Spool::new(&settings.recording));
        Server {
            rate: rate::Rate::new(settings.limits.whip_rate),
            crowd: address::Crowd::new(settings.limits.connections_per_address),
            refusals: refusals::Refusals::default(),
            names: names::Names::default(),
            catalog: Catalog::new(edge.edge()),
            users: Users::new(settings.users.clone()),
            providers,
            catalogs: catalogs::Catalogs::new(&settings.providers),
            links: Table::default(),
            seal: Seal::new(secret, &[]),
            signer: Signer::new(secret),
            shelves: shelves::Shelves::new(Libraries::new(&settings.libraries)),
            guesses: guesses::Guesses::new(settings.limits.login_failures),
            failed_logins: 0,
            parting: settings.slates.provider_limit.as_ref().and_then(|clip| ts::behind(&clip.data())).map(Bytes::from),
            zero: Duration::from_secs(settings.epoch),
            settings,
            edge,
            entropy,
            connections: Table::default(),
            publishers: Publishers::default(),
            sources: Sources::default(),
            relays: relays::Relays::default(),
            losses: BTreeMap::new(),
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
            spool,
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

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn signer(&self) -> &Signer {
        &self.signer
    }

    pub(crate) fn providers(&self) -> &Providers {
        &self.providers
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// When and why somebody lost a connection of an account last.
    pub(crate) fn last_loss(&self, account: AccountId) -> Option<&(Time, String)> {
        self.losses.get(&account)
    }

    /// What happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How many requests were answered with 429.
    pub fn rate_limited(&self) -> u64 {
        self.rate.refused()
    }

    /// How many logins failed.
    pub fn failed_logins(&self) -> u64 {
        self.failed_logins
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
        self.refresh(now);
        self.relays_overdue(now);
        self.look_through(now);
        while let Some(session) = self.publishers.stuck(now) {
            self.counts.stuck += 1;
            self.on_media(now, MediaEvent::Gone { session });
        }
        while let Some(note) = self.refusals.due(now).or_else(|| self.quiet(now)) {
            self.actions.push_back(Action::Note(note));
        }
        self.pump(now);
        self.spool(now);
    }

    /// When [`Server::tick`] must be called next.
    pub fn deadline(&self) -> Option<Time> {
        let rooms = [
            self.edge.edge().deadline(),
            self.timers.deadline(),
            self.publishers.deadline(),
            self.sources.deadline(),
            self.relays.deadline(),
            self.shelves.deadline(),
            self.refusals.deadline(),
            self.names.deadline(),
            self.catalogs.deadline(),
            self.spool.deadline(),
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
        while let Some(note) = self.refusals.due(Time::NEVER).or_else(|| self.quiet(Time::NEVER)) {
            self.actions.push_back(Action::Note(note));
        }
    }

    /// Whether everybody has ended and every answer is written.
    pub fn is_drained(&self) -> bool {
        self.draining && self.connections.is_empty() && self.publishers.is_empty() && self.relays.is_empty()
    }

    /// The next thing to do; drained after each call.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn decide(&mut self, now: Time, input: Input) {
        let mut outside = publishers::Outside { publishers: &self.publishers, entropy: &mut self.entropy };
        self.edge.handle(now, input, &mut outside);
        self.spool.called(now);
    }

    /// Hands the core what waits for it and does what it says, until both are quiet.
    fn pump(&mut self, now: Time) {
        self.providers.clock = self.wall(now).as_secs();
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
                self.remember_address(request);
                if let Some(id) = self.edge_of(request) {
                    self.requests.remove(&request);
                    return self.edge_refused(now, id, reason);
                }
                let why = self.publishers.take_fault(request).or_else(|| self.lack(request, reason));
                let answer = self.relay_refused(now, request, reason);
                let answer = self.beside(request, reason).or_else(|| self.slate(request, reason)).or(answer);
                let answer = answer.unwrap_or_else(|| routes::refused(reason, why.as_deref()));
                self.answer_request(now, request, answer);
            }
            Output::Joined { request, viewer } => self.joined(now, request, viewer),
            Output::Ready { feed } => self.ready(feed),
            Output::ViewerEnd { viewer, reason } => self.viewer_ended(now, viewer, reason),
            Output::Polls { request, viewer, .. } => self.polls(request, viewer),
            Output::Playlist { request, viewer } => {
                self.answer_request(now, request, routes::hls::current(self, viewer));
            }
            Output::Drop { allocation } if self.drop_source(allocation) => {}
            Output::Fetch { .. } | Output::Cut { .. } | Output::Drop { .. } => self.execute_relay(now, output),
            Output::Note(note) => self.tell(now, note),
        }
    }

    /// What a player of MPEG-TS is shown in place of a refusal, if there is something.
    fn slate(&self, request: RequestId, reason: RefuseReason) -> Option<Response> {
        let clip = self.settings.slates.of(reason)?;
        let connection = self.connections.get(*self.requests.get(&request)?)?;
        (connection.wanted == Wanted::MpegTs).then(|| routes::live::slate(clip.data()))
    }

    /// Tells people, but not of every refusal.
    fn tell(&mut self, now: Time, note: Note) {
        if let Some((account, why)) = routes::status::accounts::loss(&note) {
            self.losses.insert(account, (now, why));
        }
        if !self.is_news(now, &note) {
            return;
        }
        let from = self.refused_from(&note);
        let told = self.name(now, note).and_then(|note| self.refusals.sift(now, note, from));
        self.actions.extend(told.map(Action::Note));
    }
}
