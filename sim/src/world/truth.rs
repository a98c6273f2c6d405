//! What really happened, kept apart from the core: who asked, who was let in, who sends, who watches.
//!
//! It is fed with every input and every output and decides nothing itself. The oracles judge the core by it.

mod midway;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint, Live};
use holdfast_core::input::{
    EndReason, EndpointId, FeedId, FeedKind, Input, Note, Output, RefuseReason, RequestId, SessionId, SessionKind,
    SourceId, UserId, ViewerEnd, ViewerId, ViewerKind, Writer,
};
use holdfast_core::time::Time;

use super::playback::truth::Users;
use super::pull::truth::{Channel, Source};
use super::rows::Rows;
use super::stream::Stream;
use super::titles::truth::Titles;
pub(in crate::world) use midway::nameless;

/// What became of a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Held,
    Negotiating(SessionId),
    Accepted(SessionId),
    Refused(RefuseReason),
    /// Its client hung up first.
    Gone,
}

#[derive(Clone, Debug)]
pub struct Post {
    pub endpoint: usize,
    pub arrived: Time,
    /// When it got a slot.
    pub granted: Option<Time>,
    /// Counts POSTs as they arrive.
    pub order: u64,
    pub fate: Fate,
    pub answered: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Session {
    pub endpoint: usize,
    pub slot: usize,
    pub generation: u64,
    pub feed: FeedId,
    pub post: RequestId,
    pub order: u64,
    pub started: Time,
    pub stream: Stream,
    /// It was there when the truth began.
    from_before: bool,
    pub accepted: bool,
    pub finished: Option<(EndReason, Time)>,
    /// How often its end was noted.
    pub notes: u32,
    pub released: bool,
    /// When its media last entered its slot.
    pub output: Option<Time>,
    pub rebuilt: Option<Time>,
    pub key_frame: Option<Time>,
}

impl Session {
    pub fn is_live(&self) -> bool {
        self.finished.is_none()
    }
}

/// At how many places of [`WORDS`] media begins.
const PLACES: usize = 4096;

/// Words that count from 0, the least byte first. Media is a stretch of them: so it takes no memory, and whose it is shows where it
/// lies.
static WORDS: [u8; 8 * 2 * PLACES] = {
    let mut words = [0; 8 * 2 * PLACES];
    let mut at = 0;
    while at < words.len() {
        words[at] = (at as u64 / 8).to_le_bytes()[at % 8];
        at += 1;
    }
    words
};

/// Media that tells where it came from: words that count on from a number of its chunk's own, far from those of its neighbours.
pub fn media(serial: u64, length: usize) -> Bytes {
    let first = serial.wrapping_mul(0x9e37_79b1) % PLACES as u64;
    match WORDS[8 * first as usize..].get(..length) {
        Some(stretch) => Bytes::from_static(stretch),
        None => (first..).flat_map(u64::to_le_bytes).take(length).collect(),
    }
}

/// The number of a chunk of which its length alone was kept: it is read again as zeros.
pub const READ_AGAIN: u64 = u64::MAX;

/// Whether these bytes are those of a chunk from the offset `from` on.
pub fn is_of(bytes: &[u8], serial: u64, from: u64) -> bool {
    if serial == READ_AGAIN {
        return bytes.iter().all(|byte| *byte == 0);
    }
    let begin = 8 * serial + from;
    let stretch = WORDS.get(begin as usize..).and_then(|rest| rest.get(..bytes.len()));
    match stretch {
        Some(stretch) => std::ptr::eq(bytes, stretch) || bytes == stretch,
        None => (begin..).zip(bytes).all(|(at, byte)| (at / 8).to_le_bytes()[at as usize % 8] == *byte),
    }
}

/// By which number a chunk is told from others: its first word.
pub fn serial(data: &[u8]) -> u64 {
    data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub at: u64,
    pub length: u64,
    pub serial: u64,
    pub random_access: bool,
    pub came: Time,
    pub from: Writer,
}

/// What a slot's feed holds.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    pub chunks: VecDeque<Chunk>,
    pub head: u64,
    /// Where the oldest chunk begins. Said here although that knows it: it lies far from those that are looked at.
    pub tail: u64,
    pub last_push: Option<Time>,
    /// Whose slot it is now, or was last.
    pub session: Option<SessionId>,
    /// Viewers that are connected.
    pub viewers: Vec<ViewerId>,
    /// Those of them that were not seen to have started.
    pub waiting: Vec<ViewerId>,
    /// When something last came in or somebody last left, by the core's clock.
    pub used: Option<Time>,
}

impl Feed {
    /// Whether nobody has sent or watched for `idle`, by the core's clock: then nothing is kept.
    fn is_forsaken(&self, clock: Time, idle: Duration) -> bool {
        self.viewers.is_empty() && self.used.is_some_and(|used| used + idle <= clock)
    }

    /// The chunk that holds this offset.
    pub fn chunk(&self, at: u64) -> Option<&Chunk> {
        // Nearly everybody reads what came in last.
        let found = match self.chunks.iter().rev().take(4).find(|chunk| chunk.at <= at) {
            Some(chunk) => Some(chunk),
            None => self.chunks.get(self.chunks.partition_point(|chunk| chunk.at + chunk.length <= at)),
        };
        found.filter(|chunk| chunk.at <= at && at < chunk.at + chunk.length)
    }

    /// Whether something came in at least each `pause` from `from` to `until`, as far as is kept.
    pub fn flowed(&self, from: Time, until: Time, pause: Duration) -> bool {
        let mut next = until;
        for chunk in self.chunks.iter().rev() {
            if next.since(chunk.came) > pause {
                return false;
            }
            next = chunk.came;
            if next <= from {
                return true;
            }
        }
        false
    }

    /// Where the tail will be once so many more bytes have come in one chunk.
    pub fn tail_after(&self, length: u64, buffer: u64) -> u64 {
        let head = self.head + length;
        let kept = self.chunks.iter().find(|chunk| head - chunk.at <= buffer);
        if length == 0 { self.tail } else { kept.map_or(self.head, |chunk| chunk.at) }
    }

    pub fn random_access(&self) -> Option<&Chunk> {
        self.chunks.iter().rev().find(|chunk| chunk.random_access)
    }

    /// Nothing is kept any more.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.tail = self.head;
    }

    /// Takes a chunk in, at the time `clock` of the core.
    pub fn push(&mut self, chunk: Chunk, clock: Time, buffer: u64) {
        self.head = chunk.at + chunk.length;
        self.used = Some(clock);
        self.last_push = Some(chunk.came);
        self.chunks.push_back(chunk);
        while self.chunks.len() > 1
            && self.head - self.tail > buffer
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.tail = oldest.at + oldest.length;
        }
    }
}

/// Whether a POST is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stays {
    Held,
    Gone,
}

/// A request to watch a feed.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    pub request: RequestId,
    pub feed: FeedId,
    pub at: Time,
}

#[derive(Clone, Debug)]
pub struct Viewer {
    pub feed: FeedId,
    pub joined: Time,
    /// When its socket last took something.
    pub took: Time,
    /// Where it reads; `None` until it was seen to have started.
    pub cursor: Option<u64>,
    pub ended: Option<ViewerEnd>,
    /// Whose media it read last, and of how many it has read.
    pub of: Option<Writer>,
    pub writers: u32,
    /// When it last asked for something, if it polls.
    pub polled: Option<Time>,
}

/// One endpoint: who holds which slot, and who waits, oldest first.
#[derive(Clone, Debug)]
pub struct Place {
    pub settings: Endpoint,
    pub slots: Vec<Option<SessionId>>,
    /// The generation of the last tenancy of each slot.
    pub generations: Vec<u64>,
    /// Who held each slot last.
    pub last: Vec<Option<SessionId>>,
    pub held: Vec<RequestId>,
    pub offers: u64,
    pub accepted: u64,
    pub refused: [u64; RefuseReason::ALL.len()],
    pub ended: [u64; EndReason::ALL.len()],
}

#[derive(Debug)]
pub struct Truth {
    pub places: Vec<Place>,
    pub live: Live,
    pub posts: BTreeMap<RequestId, Post>,
    pub sessions: Rows<SessionKind, Session>,
    /// Sessions whose slot is not released yet.
    pub present: Vec<SessionId>,
    /// Sessions of these that have no answer yet.
    pub negotiating: BTreeSet<SessionId>,
    /// Endpoints at which POSTs are held, and how many POSTs that are.
    pub queues: BTreeSet<usize>,
    pub held: usize,
    pub feeds: Rows<FeedKind, Feed>,
    pub viewers: Rows<ViewerKind, Viewer>,
    pub watching: usize,
    /// Requests to watch that have no answer yet.
    pub joins: Vec<Join>,
    /// What came of requests to watch, and when.
    pub answers: BTreeMap<RequestId, (Result<ViewerId, RefuseReason>, Time)>,
    pub channels: Vec<Channel>,
    pub sources: BTreeMap<SourceId, Source>,
    pub users: Users,
    pub titles: Titles,
    /// Requests of viewers that poll, and when they were made.
    pub asks: BTreeMap<RequestId, (ViewerId, Time)>,
    pub draining: bool,
    /// When the wall clock was set last.
    pub clock_set: Time,
    /// It is ending, and has said so: nobody comes in any more. What was due in the very call in which it began was done before.
    pub shut: bool,
    /// What time it is for the core: what it was given may lie before what it was given last.
    pub clock: Time,
    /// Endpoint and slot that the present input releases: what was due before it still finds the slot held.
    pub freed: Option<(usize, usize)>,
    /// Nothing that a feed keeps is forsaken before this time of the core's clock.
    forsaken: Time,
    orders: u64,
}

impl Truth {
    /// Users in `of_titles` play titles.
    pub fn new(
        config: &Config,
        of_titles: &BTreeSet<UserId>,
        feeds: impl Iterator<Item = FeedId>,
        channels: Vec<Channel>,
    ) -> Self {
        let feeds: BTreeSet<FeedId> = feeds.collect();
        let place = |endpoint: &Endpoint| Place {
            settings: endpoint.clone(),
            slots: vec![None; endpoint.slots as usize],
            generations: vec![0; endpoint.slots as usize],
            last: vec![None; endpoint.slots as usize],
            held: Vec::new(),
            offers: 0,
            accepted: 0,
            refused: [0; RefuseReason::ALL.len()],
            ended: [0; EndReason::ALL.len()],
        };
        Truth {
            places: config.endpoints.iter().map(place).collect(),
            live: config.live.clone(),
            posts: BTreeMap::new(),
            sessions: Rows::default(),
            present: Vec::new(),
            negotiating: BTreeSet::new(),
            queues: BTreeSet::new(),
            held: 0,
            forsaken: Time::NEVER,
            feeds: feeds.iter().map(|feed| (*feed, Feed::default())).collect(),
            viewers: Rows::default(),
            watching: 0,
            joins: Vec::new(),
            answers: BTreeMap::new(),
            channels,
            sources: BTreeMap::new(),
            users: Users::new(config, of_titles),
            titles: Titles::new(config, of_titles, feeds),
            asks: BTreeMap::new(),
            draining: false,
            clock_set: Time::ZERO,
            shut: false,
            clock: Time::ZERO,
            freed: None,
            orders: 0,
        }
    }

    pub fn live_session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).filter(|session| session.is_live())
    }

    /// The sessions that hold a slot of an endpoint.
    pub fn holders(&self, place: usize) -> impl Iterator<Item = (SessionId, &Session)> {
        self.places[place].slots.iter().flatten().filter_map(|id| Some((*id, self.sessions.get(id)?)))
    }

    /// Users and accounts end on dates.
    fn set_clock(&mut self, by: i64) {
        for user in self.users.users.iter_mut().filter(|user| user.limits.until.is_some()) {
            user.freed += 1;
        }
        let users = self.users.users.iter_mut().map(|user| &mut user.limits.until);
        let others = self.titles.users.values_mut().map(|limits| &mut limits.until);
        let accounts = self.titles.accounts.iter_mut().map(|account| &mut account.settings.until);
        for until in users.chain(others).chain(accounts).filter_map(Option::as_mut) {
            *until = until.when_set(by);
        }
    }

    /// What an input means before the core has seen it; `clock` is the time that the core is given with it.
    pub fn before(&mut self, now: Time, clock: Time, input: &Input) {
        self.clock = self.clock.max(clock);
        if self.forsaken <= self.clock {
            self.forsake();
        }
        self.freed = None;
        if let Input::ClockSet { by } = *input {
            self.clock_set = now;
            self.set_clock(by);
        }
        self.play_before(now, input);
        self.title_before(now, input);
        match input {
            Input::Offer { request, endpoint } if !self.posts.contains_key(request) => {
                self.offer(now, *request, *endpoint);
            }
            Input::Released { session } if self.sessions.get(session).is_some_and(|session| !session.is_live()) => {
                self.release(*session);
            }
            Input::Join { request, feed } => {
                self.joins.push(Join { request: *request, feed: *feed, at: now });
            }
            Input::Drain => self.draining = true,
            Input::Poll { request, viewer, .. } | Input::Playlist { request, viewer } => {
                self.asks.insert(*request, (*viewer, now));
            }
            _ => {}
        }
    }

    /// Empties the feeds in which nobody is interested any more.
    fn forsake(&mut self) {
        let (clock, idle) = (self.clock, self.live.idle);
        self.forsaken = Time::NEVER;
        for feed in self.feeds.values_mut().filter(|feed| !feed.chunks.is_empty()) {
            if feed.is_forsaken(clock, idle) {
                feed.clear();
            } else if let Some(used) = feed.used.filter(|_| feed.viewers.is_empty()) {
                self.forsaken = self.forsaken.min(used + idle);
            }
        }
    }

    /// Something is kept in a feed, or nobody watches it any more.
    pub fn keep(&mut self) {
        self.forsaken = self.forsaken.min(self.clock + self.live.idle);
    }

    /// A POST is held at an endpoint, or no more.
    fn hold(&mut self, endpoint: usize, request: RequestId, stays: Stays) {
        let place = &mut self.places[endpoint];
        let before = place.held.len();
        match stays {
            Stays::Held => place.held.push(request),
            Stays::Gone => place.held.retain(|each| *each != request),
        }
        self.held = self.held + place.held.len() - before;
        match place.held.is_empty() {
            true => self.queues.remove(&endpoint),
            false => self.queues.insert(endpoint),
        };
    }

    fn offer(&mut self, now: Time, request: RequestId, endpoint: EndpointId) {
        self.orders += 1;
        let endpoint = endpoint.0 as usize;
        let (order, fate) = (self.orders, Fate::Held);
        self.posts.insert(request, Post { endpoint, arrived: now, granted: None, order, fate, answered: None });
        if let Some(place) = self.places.get_mut(endpoint) {
            place.offers += 1;
            self.hold(endpoint, request, Stays::Held);
        }
    }

    fn release(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.released) else { return };
        session.released = true;
        self.freed = Some((session.endpoint, session.slot));
        self.places[session.endpoint].slots[session.slot] = None;
        if let Some(place) = self.present.iter().position(|each| *each == id) {
            self.present.remove(place);
        }
    }

    /// What an output means. `input` is what the core was handling.
    pub fn output(&mut self, now: Time, input: &Input, output: &Output) {
        match output {
            Output::Start { session, request, endpoint, hold, feed, .. } => {
                let endpoint = endpoint.0 as usize;
                let Some(post) = self.posts.get_mut(request) else { return };
                post.fate = Fate::Negotiating(*session);
                post.granted = Some(now);
                self.hold(endpoint, *request, Stays::Gone);
                let post = &self.posts[request];
                let place = &mut self.places[endpoint];
                place.slots[hold.slot as usize] = Some(*session);
                place.last[hold.slot as usize] = Some(*session);
                place.generations[hold.slot as usize] = hold.generation;
                self.present.push(*session);
                self.negotiating.insert(*session);
                if let Some(feed) = self.feeds.get_mut(feed) {
                    feed.session = Some(*session);
                }
                let row = Session {
                    endpoint,
                    slot: hold.slot as usize,
                    generation: hold.generation,
                    feed: *feed,
                    post: *request,
                    order: post.order,
                    started: now,
                    stream: Stream::default(),
                    from_before: false,
                    accepted: false,
                    finished: None,
                    notes: 0,
                    released: false,
                    output: None,
                    rebuilt: None,
                    key_frame: None,
                };
                self.sessions.insert(*session, row);
            }
            Output::Accept { request, session } => {
                if let Some(post) = self.posts.get_mut(request) {
                    (post.fate, post.answered) = (Fate::Accepted(*session), Some(now));
                    self.places[post.endpoint].accepted += 1;
                }
                if let Some(session) = self.sessions.get_mut(session) {
                    session.accepted = true;
                }
                self.negotiating.remove(session);
            }
            Output::Refuse { request, reason } => {
                if let Some(index) = self.joins.iter().position(|join| join.request == *request) {
                    self.joins.swap_remove(index);
                    self.answers.insert(*request, (Err(*reason), now));
                }
                if let Some((viewer, _)) = self.asks.get(request).copied()
                    && *reason == RefuseReason::NotFound
                    && self.is_first_ask(viewer)
                {
                    self.end_viewer(viewer, ViewerEnd::Left);
                    self.titles.mistaken(now, viewer);
                }
                let Some(post) = self.posts.get_mut(request) else { return };
                (post.fate, post.answered) = (Fate::Refused(*reason), Some(now));
                let endpoint = post.endpoint;
                if let Some(place) = self.places.get_mut(endpoint) {
                    place.refused[*reason as usize] += 1;
                    self.hold(endpoint, *request, Stays::Gone);
                }
            }
            Output::Finish { session: id, reason } => {
                let Some(session) = self.sessions.get_mut(id) else { return };
                session.finished = Some((*reason, now));
                self.negotiating.remove(id);
                self.places[session.endpoint].ended[*reason as usize] += 1;
                if *reason == EndReason::ClientGone
                    && let Some(post) = self.posts.get_mut(&session.post)
                {
                    post.fate = Fate::Gone;
                }
                if matches!(input, Input::Released { session } if session == id) {
                    self.release(*id);
                }
            }
            Output::KeyFrame { session } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.key_frame = Some(now);
                }
            }
            Output::Rebuild { session } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.rebuilt = Some(now);
                }
            }
            Output::Joined { request, viewer } => {
                let Some(index) = self.joins.iter().position(|join| join.request == *request) else { return };
                let feed = self.joins.swap_remove(index).feed;
                self.answers.insert(*request, (Ok(*viewer), now));
                let row = Viewer {
                    feed,
                    joined: now,
                    took: now,
                    cursor: None,
                    ended: None,
                    of: None,
                    writers: 0,
                    polled: None,
                };
                self.viewers.insert(*viewer, row);
                self.watching += 1;
                if let Some(feed) = self.feeds.get_mut(&feed) {
                    feed.viewers.push(*viewer);
                    feed.waiting.push(*viewer);
                }
            }
            Output::ViewerEnd { viewer, reason } => self.end_viewer(*viewer, *reason),
            Output::Note(Note::SessionEnded { session, .. }) => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.notes += 1;
                }
            }
            Output::Open { .. } | Output::Close { .. } | Output::Note(_) => self.pull_output(now, output),
            Output::Ready { .. } | Output::SourceKeyFrame { .. } => {}
            Output::Fetch { .. } | Output::Cut { .. } | Output::Drop { .. } => {}
            Output::Polls { request, viewer, .. } => {
                // Somebody was known by its token already.
                match self.asks.get(request).map(|(asked, _)| *asked) {
                    Some(asked) if asked != *viewer => {
                        self.end_viewer(asked, ViewerEnd::Left);
                        self.titles.mistaken(now, asked);
                    }
                    _ => self.asked(now, *viewer),
                }
            }
            Output::Playlist { viewer, .. } => self.asked(now, *viewer),
        }
    }

    /// Whether a viewer is there and is not known to poll.
    pub fn is_first_ask(&self, viewer: ViewerId) -> bool {
        self.viewers.get(&viewer).is_some_and(|viewer| viewer.ended.is_none() && viewer.polled.is_none())
    }

    /// A viewer that polls asks for something.
    fn asked(&mut self, now: Time, viewer: ViewerId) {
        if let Some(viewer) = self.viewers.get_mut(&viewer) {
            viewer.polled = Some(now);
        }
    }

    /// What an input meant, now that the core has acted on it and on everything that was due before it.
    pub fn after(&mut self, now: Time, input: &Input) {
        match input {
            Input::Hangup { request } => {
                self.joins.retain(|join| join.request != *request);
                if let Some(post) = self.posts.get_mut(request).filter(|post| post.fate == Fate::Held) {
                    post.fate = Fate::Gone;
                    let endpoint = post.endpoint;
                    self.hold(endpoint, *request, Stays::Gone);
                }
            }
            Input::Media { from: Writer::Session(id), data, random_access, .. } => {
                let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_live()) else { return };
                session.output = Some(now);
                if let Some(feed) = self.feeds.get_mut(&session.feed) {
                    let (length, random_access) = (data.len() as u64, random_access.is_some());
                    let chunk = Chunk {
                        at: feed.head,
                        length,
                        serial: serial(data),
                        random_access,
                        came: now,
                        from: Writer::Session(*id),
                    };
                    feed.push(chunk, self.clock, self.live.buffer as u64);
                }
                self.keep();
            }
            Input::Sent { viewer, bytes } => {
                if let Some(viewer) = self.viewers.get_mut(viewer)
                    && let Some(cursor) = viewer.cursor.as_mut()
                {
                    *cursor += bytes;
                    viewer.took = now;
                }
            }
            Input::Leave { viewer } => self.end_viewer(*viewer, ViewerEnd::Left),
            Input::Playlist { viewer, .. } | Input::Polled { viewer, .. }
                if self.viewers.get(viewer).is_some_and(|viewer| viewer.polled.is_some()) =>
            {
                self.asked(now, *viewer);
            }
            _ => {}
        }
    }

    fn end_viewer(&mut self, id: ViewerId, reason: ViewerEnd) {
        let Some(viewer) = self.viewers.get_mut(&id).filter(|viewer| viewer.ended.is_none()) else { return };
        viewer.ended = Some(reason);
        self.watching -= 1;
        if let Some(feed) = self.feeds.get_mut(&viewer.feed) {
            feed.viewers.retain(|each| *each != id);
            feed.waiting.retain(|each| *each != id);
            feed.used = Some(self.clock);
        }
        self.keep();
    }

    /// POSTs that have no answer and whose client is still there.
    pub fn unanswered(&self) -> usize {
        self.held + self.negotiating.len()
    }

    /// The same, counted anew.
    pub fn count_unanswered(&self) -> usize {
        let held: usize = self.places.iter().map(|place| place.held.len()).sum();
        held + self.live_sessions().filter(|(_, session)| !session.accepted).count()
    }

    /// Sessions that are not over.
    pub fn live_sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.present.iter().filter_map(|id| Some((*id, self.live_session(*id)?)))
    }

    /// When the watchdog or the set-up deadline has to end a session that hears nothing more.
    pub fn latest_end(&self, session: &Session, now: Time) -> Time {
        let settings = &self.places[session.endpoint].settings;
        match session.stream.at(now).last_media() {
            Some(last) => last + settings.inactivity_timeout,
            None => session.started + settings.setup_timeout,
        }
    }

    /// The longest that anything may take to come to rest.
    pub fn longest_wait(&self) -> Duration {
        let longest = |settings: &Endpoint| {
            let wait = settings.takeover_wait + settings.poll + settings.setup_timeout;
            wait + settings.inactivity_timeout
        };
        self.places.iter().map(|place| longest(&place.settings)).max().unwrap_or_default()
    }
}
