//! Titles on their way from a provider to a client: what the core granted is fetched, and passed on as fast as the client takes it.
//!
//! | file | question it answers |
//! |---|---|
//! | `answer` | what is a client told of what a provider answers? |
//! | `upstream` | how is a provider asked, and what does it say? |
//! | `files` | what if it is a file of this machine? |
//! | `downstream` | what reached the client, and how does it end? |
//! | `playlist` | where do the addresses in a playlist lead? |
//! | `faults` | why was a title not to be had a moment ago? |
//! | `sizes` | how large is a title that somebody asked for before? |

mod answer;
mod downstream;
mod faults;
mod files;
mod playlist;
mod sizes;
mod upstream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::input::{
    AccountId, AllocationId, Ask, Failure, Grant, Input, Output, PlaybackId, RefuseReason, RequestId, TitleId, Token,
    UserId, ViewerEnd, Viewing, Want,
};
use holdfast_core::time::{Time, Timers};

use super::connection::Work;
use super::{Action, Call, ConnId, LinkId, Server, Wanted};
use crate::hls::sealed::Sealed;
use crate::http::client::{Exchange, Get};
use crate::http::range::Span;
use crate::http::{FieldValue, Request, Response, Via};
use crate::providers::{Part, Source};
use crate::routes;
pub(super) use answer::is_text;
pub(crate) use files::OfFile;
pub(crate) use sizes::Size;
use sizes::Sizes;

/// How much of a title is kept for a client that does not take it as fast as it comes.
const BUFFER: usize = 256 * 1024;
/// The same of a part that others of its playback wait for: what it is fetched with is free the sooner.
const AHEAD: usize = 16 * 1024 * 1024;
/// How long a provider may take from being asked to the head of its answer, redirects included; a playlist, to its end.
const ANSWER: Duration = Duration::from_secs(10);
/// A client that has taken nothing for so long is not waited for by others of its playback.
const STALL: Duration = Duration::from_secs(1);
/// How long neither side may move a byte.
const IDLE: Duration = Duration::from_secs(90);
/// How often the core is told that media flows.
const REPORT: Duration = Duration::from_secs(1);
/// The longest playlist.
const DOCUMENT: usize = 8 * 1024 * 1024;

/// A request for a title, as far as fetching it needs to know.
pub(crate) struct Errand {
    /// What the core is asked.
    pub ask: Ask,
    /// Where it can be had, as catalogues said when it was asked for: those to which `index` of an [`Output::Fetch`] leads.
    pub sources: Vec<Source>,
    /// What is fetched.
    pub from: From,
    /// What becomes of it.
    pub what: What,
    /// Which bytes of it; `None` = all.
    pub span: Option<Span>,
    /// The client wants that part only of this version of it (RFC 9110 §13.1.5).
    pub if_range: Option<FieldValue>,
    /// Whether it is a stream, as which a refusal may be shown.
    pub wanted: Wanted,
    /// How many levels of its path a playlist's addresses go up before they lead down again.
    pub up: usize,
    /// The servers that the request came through.
    pub via: Via,
}

/// What is fetched of a title.
#[derive(Clone)]
pub(crate) enum From {
    /// What its catalogue says.
    Title(Part),
    /// Something that one of its playlists names. Holds secrets: not for logs.
    Child(Box<Sealed>),
    /// A file of this machine.
    File(Box<OfFile>),
}

/// What becomes of what is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Media, passed on as it comes: that its client gets it is what confirms a lease.
    Media,
    /// What belongs to media, passed on as it comes: a key, what segments begin with.
    Aside,
    /// A playlist, whose addresses are replaced.
    Playlist,
    /// Nothing: the client is sent there.
    Redirect,
    /// Nothing but its size and kind.
    Look,
}

/// What a request can wait for, in words ([`Relay::stage`]).
pub(crate) const STAGES: [&str; 4] = ["waiting", "asking", "streaming", "stalled"];

/// All requests for titles that are not over.
#[derive(Default)]
pub(crate) struct Relays {
    relays: BTreeMap<RequestId, Relay>,
    timers: Timers<RequestId>,
    /// Whose connection each allocation is for.
    allocations: BTreeMap<AllocationId, RequestId>,
    /// How many requests of a playback wait.
    waiting: BTreeMap<Group, usize>,
    sizes: Sizes,
    faults: faults::Faults,
    /// Titles of which it was told that something is left out of their playlists.
    lacking: BTreeSet<TitleId>,
    counts: Counts,
}

/// What happened so far to requests for titles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Connections to providers that were begun, redirects apart.
    pub opens: u64,
    /// Redirects that were followed.
    pub redirects: u64,
    /// Bytes of bodies that clients took.
    pub bytes: u64,
    /// Responses whose client took nothing for a second.
    pub stalls: u64,
    /// Responses that neither side moved a byte of for too long.
    pub idles: u64,
    /// Responses that broke off before their end.
    pub broken: u64,
}

/// What tells playbacks apart before the core does.
type Group = (Viewing, Option<Token>);

/// One request for a title.
pub(crate) struct Relay {
    conn: ConnId,
    errand: Errand,
    stage: Stage,
    upstream: Option<Upstream>,
    /// What of it is open, where it is a file of this machine.
    file: Option<files::Reading>,
    granted: Option<Granted>,
    /// Its connection is closed, which the core does not know yet.
    closed: Option<AllocationId>,
    /// What became of the last attempt, and in words.
    fault: Option<(Failure, String)>,
    since: Time,
    /// When either side last moved a byte.
    moved: Time,
    /// When the client last took something, or there was nothing for it.
    taken: Time,
    /// When the core was last told that media flows.
    forwarded: Option<Time>,
    stalled: bool,
    /// Whether the core was told how it ends; the client still gets what there is.
    told: bool,
    /// How many bytes of it the client took.
    bytes: u64,
    /// What its provider said of the whole title.
    size: Option<Size>,
    /// Whoever of the same user wants to know that, before it was said.
    lookers: Vec<ConnId>,
    armed: Time,
}

/// What the core said of it.
#[derive(Clone, Copy)]
struct Granted {
    playback: Option<PlaybackId>,
    token: Option<Token>,
    index: u32,
    account: AccountId,
}

enum Stage {
    /// For the core to say from where it is fetched.
    Waiting,
    /// For the provider's answer.
    Asking { until: Time },
    /// For the first byte of a body: as long as none has come, somebody else may be asked.
    Promised { promise: Box<Promise>, until: Time },
    /// For the rest of a playlist.
    Collecting { document: Vec<u8>, until: Time },
    /// For the provider, or the client.
    Streaming(Stream),
}

/// What a client is told when something of a body comes.
struct Promise {
    response: Response,
    /// The body; `None` where only its head was wanted.
    stream: Option<Stream>,
    /// It may be a page, which the first bytes tell; what the title is like, if it is none.
    page: Option<Size>,
}

/// A body on its way.
struct Stream {
    queue: VecDeque<Bytes>,
    /// How many bytes are in the queue.
    queued: usize,
    /// How many bytes are not wanted before the first that is.
    skip: u64,
    /// How many more bytes are wanted from the provider; `None` = all that come.
    left: Option<u64>,
    /// How the provider ended it, if it did.
    end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Broken,
}

/// A connection to a provider.
struct Upstream {
    link: LinkId,
    allocation: AllocationId,
    get: Get,
    exchange: Exchange,
    redirects: usize,
}

impl Relay {
    /// Whose it is, once the core said so.
    pub fn playback(&self) -> Option<PlaybackId> {
        self.granted.map_or_else(|| self.file.as_ref()?.playback, |granted| granted.playback)
    }

    /// The account with which it is fetched, while it is.
    pub fn account(&self) -> Option<AccountId> {
        self.upstream.as_ref()?;
        Some(self.granted?.account)
    }

    /// How many bytes of it the client took.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When it was asked for.
    pub fn since(&self) -> Time {
        self.since
    }

    /// The word for what it waits for.
    pub fn stage(&self) -> &'static str {
        match self.stage {
            Stage::Waiting => "waiting",
            Stage::Asking { .. } | Stage::Promised { .. } | Stage::Collecting { .. } => "asking",
            Stage::Streaming(_) if self.stalled => "stalled",
            Stage::Streaming(_) => "streaming",
        }
    }

    fn group(&self) -> Group {
        (self.errand.ask.viewing, self.errand.ask.token)
    }

    fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Streaming(_))
    }

    /// Whether its answer ends where its connection does.
    fn is_endless(&self) -> bool {
        matches!(&self.stage, Stage::Streaming(stream) if stream.left.is_none())
    }

    /// When something is to be seen to.
    fn deadline(&self) -> Time {
        match &self.stage {
            Stage::Waiting => Time::NEVER,
            Stage::Asking { until } | Stage::Promised { until, .. } | Stage::Collecting { until, .. } => *until,
            Stage::Streaming(stream) => {
                let stall = if self.stalled || stream.queued == 0 { Time::NEVER } else { self.taken + STALL };
                stall.min(self.moved + IDLE)
            }
        }
    }
}

impl Relays {
    /// Every request, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Relay)> {
        self.relays.iter().map(|(request, relay)| (*request, relay))
    }

    /// What a user is sent, or is to be sent, of a title itself.
    fn of(&self, user: UserId, title: TitleId) -> impl Iterator<Item = (RequestId, &Relay)> {
        self.iter().filter(move |(_, relay)| {
            let viewing = &relay.errand.ask.viewing;
            (viewing.user, viewing.item.title()) == (user, Some(title))
                && matches!(relay.errand.from, From::Title(Part::Whole))
        })
    }

    /// Whether a provider is just asked this.
    pub fn ask(&self, request: &Request) -> bool {
        self.relays.values().any(|relay| {
            let asking = matches!(relay.stage, Stage::Asking { .. });
            relay.upstream.as_ref().is_some_and(|own| asking && own.get.is_for(request))
        })
    }

    /// How many connections to providers are open, or being opened.
    pub fn connections(&self) -> usize {
        self.allocations.len()
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.relays.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.timers.deadline()
    }

    pub(super) fn output(&self, request: RequestId) -> Option<&[u8]> {
        Some(self.relays.get(&request)?.upstream.as_ref()?.exchange.output())
    }

    pub(super) fn wrote(&mut self, request: RequestId, count: usize) {
        if let Some(upstream) = self.relays.get_mut(&request).and_then(|relay| relay.upstream.as_mut()) {
            upstream.exchange.wrote(count);
        }
    }

    /// Whether more of the provider's answer can be taken in.
    pub(super) fn wants_read(&self, request: RequestId) -> bool {
        let Some(relay) = self.relays.get(&request) else { return false };
        let Stage::Streaming(stream) = &relay.stage else { return true };
        let hurry = relay.errand.ask.want == Want::Part && self.waiting.contains_key(&relay.group());
        stream.queued < if hurry { AHEAD } else { BUFFER }
    }

    fn waits(&mut self, group: Group) {
        *self.waiting.entry(group).or_default() += 1;
    }

    fn waits_no_more(&mut self, group: Group) {
        if let Some(count) = self.waiting.get_mut(&group) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&group);
            }
        }
    }

    /// The stage of a relay changes.
    fn set_stage(&mut self, request: RequestId, stage: Stage) {
        let Some(relay) = self.relays.get_mut(&request) else { return };
        let waits = [&relay.stage, &stage].map(|stage| matches!(stage, Stage::Waiting));
        let group = relay.group();
        relay.stage = stage;
        match waits {
            [false, true] => self.waits(group),
            [true, false] => self.waits_no_more(group),
            _ => {}
        }
    }

    /// A timer that comes too early finds that out; to move it with every byte would cost more.
    fn rearm(&mut self, request: RequestId) {
        if let Some(relay) = self.relays.get_mut(&request) {
            let at = relay.deadline().min(relay.armed);
            self.timers.set(request, &mut relay.armed, at);
        }
    }
}

impl Call<'_> {
    /// Fetches a title, or a part of it, for the client, once the core says from where.
    pub fn fetch(&mut self, errand: Errand) {
        let Call { server, now, id } = self;
        server.next_request += 1;
        let request = RequestId(server.next_request);
        let Some(connection) = server.connections.get_mut(*id) else { return };
        connection.work = Work::Relaying(request);
        connection.wanted = errand.wanted;
        server.requests.insert(request, *id);
        server.inbox.push_back(Input::Fetch { request, ask: errand.ask.clone() });
        let relay = Relay {
            conn: *id,
            errand,
            stage: Stage::Waiting,
            upstream: None,
            file: None,
            granted: None,
            closed: None,
            fault: None,
            since: *now,
            moved: *now,
            taken: *now,
            forwarded: None,
            stalled: false,
            told: false,
            bytes: 0,
            size: None,
            lookers: Vec::new(),
            armed: Time::NEVER,
        };
        server.relays.waits(relay.group());
        server.relays.relays.insert(request, relay);
        server.rearm(*now, *id);
    }

    /// What is known of a title: from before, or from what its user is being sent of it.
    pub fn size(&self, user: UserId, title: TitleId) -> Option<&Size> {
        let relays = &self.server.relays;
        relays.sizes.get(title).or_else(|| relays.of(user, title).find_map(|(_, relay)| relay.size.as_ref()))
    }

    /// Leaves it unanswered until the provider that is just asked for the title, for the same user, says what it is like. Whether
    /// one is asked: a second connection for it would be one too many, or end the first.
    pub fn looks_on(&mut self, user: UserId, title: TitleId) -> bool {
        let asked = |relay: &Relay| matches!(relay.stage, Stage::Asking { .. } | Stage::Promised { .. });
        let relay = self.server.relays.of(user, title).find(|(_, relay)| asked(relay)).map(|(request, _)| request);
        let Some(relay) = relay.and_then(|request| self.server.relays.relays.get_mut(&request)) else { return false };
        relay.lookers.push(self.id);
        if let Some(connection) = self.server.connections.get_mut(self.id) {
            connection.work = Work::Inquiring;
        }
        self.server.rearm(self.now, self.id);
        true
    }
}

impl Server {
    /// Requests for titles, to look at.
    pub(crate) fn relays(&self) -> &Relays {
        &self.relays
    }

    /// Does what the core says about requests for titles.
    pub(super) fn execute_relay(&mut self, now: Time, output: Output) {
        match output {
            Output::Fetch { request, playback, token, index, grant } => {
                if let Some((relay, playback)) = self.relays.relays.get(&request).zip(playback) {
                    let viewing = relay.errand.ask.viewing;
                    self.name_playback(playback, viewing);
                }
                let granted = |Grant { account, .. }| Granted { playback, token, index, account };
                match grant {
                    Some(grant) => self.granted(now, request, grant.allocation, granted(grant)),
                    None => self.open_file(now, request, playback),
                }
            }
            Output::Cut { request, reason } => {
                let Some(relay) = self.end_relay(now, request) else { return };
                if relay.is_answered() {
                    self.detach(relay.conn);
                    // What has a length is not the length that it was to be, and that tells the client.
                    if matches!(reason, ViewerEnd::Preempted | ViewerEnd::GraceOver)
                        && relay.is_endless()
                        && self.part_with(now, relay.conn, relay.bytes)
                    {
                        return;
                    }
                    return self.close(now, relay.conn);
                }
                let reason = routes::title::ended(reason);
                let answer = self.slate(request, reason).unwrap_or_else(|| routes::refused(reason, None));
                self.answer_request(now, request, answer);
            }
            Output::Drop { allocation } => {
                let Some(request) = self.relays.allocations.get(&allocation).copied() else {
                    // It was closed before that was asked for. Who asks waits for the answer all the same.
                    let closed = Input::Closed { allocation };
                    if !self.inbox.contains(&closed) {
                        self.inbox.push_back(closed);
                    }
                    return;
                };
                self.drop_upstream(request);
                self.tell_closed(request);
                let Some(relay) = self.relays.relays.get_mut(&request) else { return };
                match &mut relay.stage {
                    Stage::Streaming(stream) => {
                        stream.end.get_or_insert(End::Broken);
                        self.flow(now, request);
                    }
                    Stage::Waiting => {}
                    // Who takes it away says what becomes of the request; what it was fetched for did not come in its time.
                    Stage::Asking { .. } | Stage::Promised { .. } | Stage::Collecting { .. } => {
                        relay.fault = Some((Failure::TimedOut, String::from("the provider did not answer in time")));
                        self.relays.set_stage(request, Stage::Waiting);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes a request out with everything that it holds. Its connection stays as it is.
    fn end_relay(&mut self, now: Time, request: RequestId) -> Option<Relay> {
        self.drop_upstream(request);
        self.tell_closed(request);
        self.relays.set_stage_over(request);
        let mut relay = self.relays.relays.remove(&request)?;
        self.relays.timers.set(request, &mut relay.armed, Time::NEVER);
        for looker in std::mem::take(&mut relay.lookers) {
            // What it waited for is not said any more.
            let answer = match &relay.fault {
                Some((failure, why)) => routes::title::failed(*failure, why),
                None => routes::refused(RefuseReason::Busy, None),
            };
            self.tell_looker(now, looker, answer);
        }
        Some(relay)
    }

    /// Whoever waited to be told what a title is like is told so, or why not.
    fn tell_looker(&mut self, now: Time, looker: ConnId, answer: Response) {
        let Some(connection) = self.connections.get_mut(looker) else { return };
        if matches!(connection.work, Work::Inquiring) {
            connection.work = Work::None;
            self.answer(now, looker, routes::shared(answer));
        }
    }

    /// A connection is at nothing any more.
    fn detach(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.work = Work::None;
        }
    }

    /// What of a relay is due.
    pub(super) fn relays_overdue(&mut self, now: Time) {
        while let Some(request) = self.relays.timers.expired(now) {
            let Some(relay) = self.relays.relays.get_mut(&request) else { continue };
            relay.armed = Time::NEVER;
            if relay.deadline() > now {
                self.relays.rearm(request);
                continue;
            }
            if !relay.is_answered() {
                let why = String::from("the provider did not answer in time");
                self.relay_failed(request, Failure::TimedOut, why);
            } else if relay.moved + IDLE <= now {
                self.relays.counts.idles += 1;
                self.over(now, request, ViewerEnd::Idle);
            } else {
                relay.stalled = true;
                self.relays.counts.stalls += 1;
                if !relay.told {
                    self.inbox.push_back(Input::Stalled { request });
                }
                self.relays.rearm(request);
            }
        }
    }
}

impl Relays {
    /// A relay is about to be taken out.
    fn set_stage_over(&mut self, request: RequestId) {
        if let Some(relay) = self.relays.get(&request)
            && matches!(relay.stage, Stage::Waiting)
        {
            let group = relay.group();
            self.waits_no_more(group);
        }
    }
}

impl Server {
    /// Closes the connection to the provider, or the file. [`Server::tell_closed`] says so of a connection, once.
    fn drop_upstream(&mut self, request: RequestId) {
        self.close_file(request);
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let Some(upstream) = relay.upstream.take() else { return };
        relay.closed = Some(upstream.allocation);
        if self.links.remove(upstream.link).is_some() {
            self.actions.push_back(Action::CloseLink(upstream.link));
        }
    }

    /// Says that the connection of a request is closed, if that was not said yet. Behind whatever else is said of the request:
    /// only with an account that it has can media be forwarded, or fail.
    fn tell_closed(&mut self, request: RequestId) {
        let Some(allocation) = self.relays.relays.get_mut(&request).and_then(|relay| relay.closed.take()) else {
            return;
        };
        self.closed_allocation(allocation);
    }

    fn closed_allocation(&mut self, allocation: AllocationId) {
        self.relays.allocations.remove(&allocation);
        self.inbox.push_back(Input::Closed { allocation });
    }
}
