//! The ring of a live stream and the cursors of its viewers.
//!
//! A feed keeps the newest bytes of one stream. A viewer is a cursor into them and a deadline: it has no queue of its own, so a
//! slow one costs what a quick one costs, and one that the ring overtakes is ended. The driver writes straight out of the
//! ring ([`Feeds::unsent`]) and says what the socket took ([`Feeds::sent`]).
//!
//! A viewer may also poll (HLS): it reads ranges of the same ring ([`Feeds::playlist`], [`Feeds::bytes`]) and has left when it
//! asks no more.

mod midway;
mod polls;
#[cfg(test)]
mod polls_tests;
mod ring;
mod segments;
#[cfg(test)]
mod segments_tests;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use bytes::Bytes;

use serde::{Deserialize, Serialize};

use crate::config::Live;
use crate::id::Table;
use crate::input::{
    FeedId, FeedKind, Note, Output, RefuseReason, RequestId, Token, ViewerEnd, ViewerId, ViewerKind, Writer,
};
use crate::time::{Time, Timers};
pub use midway::{Reads, Watching};
use polls::{Holds, Poll};
use ring::Ring;
pub use segments::{Playlist, Segment};
use segments::{Point, Segments, Watched};

/// All feeds and all viewers.
///
/// Deadlines that passed are acted on in [`Feeds::tick`] alone: call it first, with the same `now`, before another call that
/// takes a time.
#[derive(Debug, Serialize, Deserialize)]
pub struct Feeds {
    #[serde(skip)]
    settings: Live,
    /// What comes after nothing came for longer does not belong to what came before: one target duration.
    pause: Duration,
    feeds: Table<FeedKind, Feed>,
    viewers: Table<ViewerKind, Viewer>,
    timers: Timers<Wake>,
    /// Who polls, by what it is known by.
    tokens: BTreeMap<Token, ViewerId>,
    holds: Holds,
    /// Feeds that are watched by somebody who polls and lack a random access point to be cut at.
    uncut: VecDeque<FeedId>,
    draining: bool,
    ignored: u64,
}

/// A viewer that waits for a random access point looks no more often than this for whether an old one will do.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// Who waits for a deadline. Viewers come first, so that viewers who start at one time share one [`Output::Ready`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Wake {
    Viewer(ViewerId),
    Flush(FeedId),
    Cut(FeedId),
    Hold(FeedId, RequestId),
    Release(FeedId),
}

#[derive(Debug, Serialize, Deserialize)]
struct Feed {
    ring: Ring,
    last_push: Option<Time>,
    writer: Option<Writer>,
    /// When it is next looked at whether the ring is of use to anybody; `NEVER` while it is empty or watched.
    release: Time,
    /// Whoever ever watched. Apart and only where there was one: a chunk of a feed that nobody watches passes by in two lines
    /// of cache.
    audience: Option<Box<Audience>>,
    /// Apart for the same reason: it is looked at when a random access point comes.
    segments: Box<Segments>,
}

/// Begins with a line of cache, and what each chunk needs comes first.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
struct Audience {
    /// Nobody in `started` is under an offset before this.
    #[serde(skip)]
    reached: u64,
    /// Viewers that have not started.
    waiting: BTreeSet<ViewerId>,
    /// Viewers that have started, each under an offset that its cursor has reached or passed. It is looked at again when the tail
    /// passes that offset: a viewer that keeps up costs one look per length of the ring, and a push costs nothing for it.
    started: BTreeSet<(u64, ViewerId)>,
    /// Viewers that poll.
    polling: BTreeSet<ViewerId>,
    /// When a random access point to cut at is overdue; `NEVER` while nobody polls.
    cut: Time,
    /// When the next [`Output::Ready`] is due; `NEVER` while nothing is gathered.
    flush: Time,
    bytes_out: u64,
    ends: Ends,
    /// When somebody last left.
    left: Option<Time>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Viewer {
    feed: FeedId,
    joined: Time,
    sent: u64,
    place: Place,
    /// Where its cursor stood when it was last looked at with something unsent, and since when it has stood there.
    stands: Option<(u64, Time)>,
    armed: Time,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Place {
    /// For a random access point; from `until` on an old one will do.
    Waiting { until: Time },
    /// At `cursor`, and in [`Feed::started`] under `watched`.
    Started { cursor: u64, watched: u64 },
    /// Nowhere: it polls.
    Polling(Poll),
}

/// What became of a request to watch a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It reads from a recent random access point on.
    Now,
    /// It waits: there is no recent random access point. Whoever fills the feed should be asked for a key frame.
    KeyFrameWanted,
    /// It was refused.
    Refused,
}

/// How many viewers ended for which reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends([u64; ViewerEnd::ALL.len()]);

impl Ends {
    /// How many ended for this reason.
    pub fn of(&self, reason: ViewerEnd) -> u64 {
        self.0[reason as usize]
    }
}

/// What comes into a feed at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where it comes from.
    pub from: Writer,
    /// MPEG-TS, whole packets.
    pub data: Bytes,
    /// Whether a player can start at its first byte, and if so, the presentation time there: 90 kHz ticks, modulo 2³³.
    pub random_access: Option<u64>,
}

/// A feed as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedStatus {
    /// Viewers, those that wait and those that poll among them.
    pub viewers: usize,
    /// Viewers that wait for a random access point.
    pub waiting: usize,
    /// Viewers that poll.
    pub polling: usize,
    /// Bytes that ever came in.
    pub bytes_in: u64,
    /// Bytes that all viewers' sockets took.
    pub bytes_out: u64,
    /// Bytes that are kept.
    pub span: u64,
    /// When something last came in; `None` if nothing ever did.
    pub last_push: Option<Time>,
    /// How old the newest random access point is; `None` if none is kept.
    pub random_access_age: Option<Duration>,
    /// Viewers that are gone.
    pub ends: Ends,
}

impl Feeds {
    /// No feed yet.
    pub fn new(settings: Live) -> Self {
        Feeds {
            pause: Duration::from_secs(settings.hls.target()),
            settings,
            feeds: Table::default(),
            viewers: Table::default(),
            timers: Timers::default(),
            tokens: BTreeMap::new(),
            holds: Holds::default(),
            uncut: VecDeque::new(),
            draining: false,
            ignored: 0,
        }
    }

    /// Takes its settings.
    pub(crate) fn configure(&mut self, settings: &Live) {
        self.settings = settings.clone();
    }

    /// Makes a feed. It lasts until it is closed ([`Feeds::close`]).
    pub fn open(&mut self) -> FeedId {
        self.feeds.insert(Feed {
            ring: Ring::new(),
            last_push: None,
            audience: None,
            writer: None,
            segments: Box::default(),
            release: Time::NEVER,
        })
    }

    /// From here on `writer` alone may write into the feed.
    pub fn assign(&mut self, id: FeedId, writer: Option<Writer>) {
        if let Some(feed) = self.feeds.get_mut(id) {
            if feed.writer != writer {
                feed.segments.stop(feed.last_push);
            }
            feed.writer = writer;
        }
    }

    /// Who may write into the feed.
    pub fn writer(&self, id: FeedId) -> Option<Writer> {
        self.feeds.get(id)?.writer
    }

    /// When something last came into the feed.
    pub fn last_push(&self, id: FeedId) -> Option<Time> {
        self.feeds.get(id)?.last_push
    }

    /// A chunk of the stream came in. It is ignored and counted if it is empty or from somebody who may not write.
    pub fn push(&mut self, now: Time, id: FeedId, chunk: Chunk, out: &mut VecDeque<Output>) {
        let Chunk { from, data, random_access: pts } = chunk;
        let random_access = pts.is_some();
        let feed = self.feeds.get_mut(id).filter(|feed| feed.writer == Some(from) && !data.is_empty());
        let Some(feed) = feed else {
            self.ignored += 1;
            return;
        };
        let at = feed.ring.head();
        feed.ring.push(now, data, random_access, self.settings.buffer);
        let last = feed.last_push.replace(now);
        if last.is_some_and(|last| now.since(last) > self.pause) {
            feed.segments.stop(last);
        }
        if let Some(pts) = pts {
            let polled = feed.audience.as_ref().is_some_and(|audience| !audience.polling.is_empty());
            let watched = if polled { Watched::Yes } else { Watched::No };
            let point = Point { at, pts, now, writer: from, last, tail: feed.ring.tail(), watched };
            let closed = feed.segments.point(point, &self.settings.hls);
            if polled {
                self.segmented(now, id, closed, out);
            }
        }
        let Some(feed) = self.feeds.get_mut(id) else { return };
        if feed.release == Time::NEVER && feed.viewers() == 0 {
            self.timers.set(Wake::Release(id), &mut feed.release, now + self.settings.idle);
        }
        let Some(audience) = &mut feed.audience else { return };
        let begin = if random_access { mem::take(&mut audience.waiting) } else { BTreeSet::new() };
        for &viewer in &begin {
            if let Some(row) = self.viewers.get_mut(viewer) {
                audience.start(viewer, row, at);
            }
        }
        self.end_overtaken(now, id, out);

        let Some(audience) = self.feeds.get_mut(id).and_then(|feed| feed.audience.as_mut()) else { return };
        if !begin.is_empty() || (self.settings.flush_interval.is_zero() && !audience.started.is_empty()) {
            self.timers.set(Wake::Flush(id), &mut audience.flush, Time::NEVER);
            out.push_back(Output::Ready { feed: id });
        } else if audience.flush == Time::NEVER && !audience.started.is_empty() {
            self.timers.set(Wake::Flush(id), &mut audience.flush, now + self.settings.flush_interval);
        }
    }

    /// Somebody wants to watch; answered at once by one [`Output::Joined`] or [`Output::Refuse`]. After `Joined` the driver reads
    /// [`Feeds::unsent`] without waiting for [`Output::Ready`].
    pub fn join(&mut self, now: Time, request: RequestId, id: FeedId, out: &mut VecDeque<Output>) -> Start {
        if let Some(reason) = self.refuses(id) {
            out.push_back(Output::Refuse { request, reason });
            if reason == RefuseReason::TooManyViewers {
                out.push_back(Output::Note(Note::ViewerRefused { request, feed: id, reason }));
            }
            return Start::Refused;
        }
        let Some(feed) = self.feeds.get_mut(id) else { return Start::Refused };
        let fresh = feed.ring.random_access().filter(|point| point.age(now) <= self.settings.fresh);
        let (until, idle) = (now + self.settings.fresh, now + self.settings.idle);
        let place = Place::Waiting { until };
        let (sent, stands, armed) = (0, None, Time::NEVER);
        let viewer = self.viewers.insert(Viewer { feed: id, joined: now, sent, place, stands, armed });
        let audience = feed.audience.get_or_insert_with(Box::default);
        audience.waiting.insert(viewer);
        if let Some(row) = self.viewers.get_mut(viewer) {
            if let Some(point) = fresh {
                audience.start(viewer, row, point.at);
            }
            let wake = if fresh.is_some() { idle.min(now + self.settings.progress_timeout) } else { idle.min(until) };
            self.timers.set(Wake::Viewer(viewer), &mut row.armed, wake);
        }
        out.push_back(Output::Joined { request, viewer });
        if fresh.is_some() { Start::Now } else { Start::KeyFrameWanted }
    }

    /// Why nobody joins a feed now, where nobody does.
    pub(crate) fn refuses(&self, id: FeedId) -> Option<RefuseReason> {
        match self.feeds.get(id) {
            _ if self.draining => Some(RefuseReason::Draining),
            None => Some(RefuseReason::NotFound),
            Some(feed) => (feed.viewers() >= self.settings.viewers).then_some(RefuseReason::TooManyViewers),
        }
    }

    /// The viewer's socket took `bytes` of [`Feeds::unsent`].
    pub fn sent(&mut self, id: ViewerId, bytes: u64) {
        let taken = self.viewers.get_mut(id).and_then(|viewer| {
            let feed = self.feeds.get_mut(viewer.feed)?;
            let Place::Started { cursor, .. } = &mut viewer.place else { return None };
            let taken = bytes.min(feed.ring.head() - *cursor);
            *cursor += taken;
            viewer.sent += taken;
            if let Some(audience) = &mut feed.audience {
                audience.bytes_out += taken;
            }
            Some(taken)
        });
        if taken != Some(bytes) {
            self.ignored += 1;
        }
    }

    /// The viewer's socket is gone.
    pub fn leave(&mut self, now: Time, id: ViewerId) {
        if self.remove(now, id, ViewerEnd::Left).is_none() {
            self.ignored += 1;
        }
    }

    /// Ends every viewer of a feed.
    pub fn end_all(&mut self, now: Time, id: FeedId, reason: ViewerEnd, out: &mut VecDeque<Output>) {
        let all: Vec<ViewerId> = self.viewers(id).collect();
        for viewer in all {
            self.end(now, viewer, reason, out);
        }
    }

    /// Forgets what is kept of a feed's stream. Its viewers, if it has any, begin anew with what comes next.
    pub fn clear(&mut self, id: FeedId) {
        let Some(feed) = self.feeds.get_mut(id) else { return };
        feed.ring.clear();
        feed.segments.clear();
        feed.last_push = None;
        self.timers.set(Wake::Release(id), &mut feed.release, Time::NEVER);
    }

    /// Ends a feed and its viewers, if it has any; nothing of it is kept.
    pub fn close(&mut self, now: Time, id: FeedId, out: &mut VecDeque<Output>) {
        self.end_all(now, id, ViewerEnd::Ended, out);
        self.clear(id);
        let Some(mut feed) = self.feeds.remove(id) else { return };
        if let Some(audience) = &mut feed.audience {
            self.timers.set(Wake::Flush(id), &mut audience.flush, Time::NEVER);
            self.timers.set(Wake::Cut(id), &mut audience.cut, Time::NEVER);
        }
        self.uncut.retain(|uncut| *uncut != id);
    }

    /// How many viewers a feed has.
    pub fn viewers_of(&self, id: FeedId) -> usize {
        self.feeds.get(id).map_or(0, Feed::viewers)
    }

    /// When the last viewer of a feed left; `None` if there never was one.
    pub fn left(&self, id: FeedId) -> Option<Time> {
        self.feeds.get(id)?.audience.as_ref()?.left
    }

    /// Acts on every deadline that is `now` or earlier.
    pub fn tick(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some(wake) = self.timers.expired(now) {
            match wake {
                Wake::Viewer(viewer) => self.wake_viewer(now, viewer, out),
                Wake::Flush(id) => {
                    if let Some(audience) = self.feeds.get_mut(id).and_then(|feed| feed.audience.as_mut()) {
                        audience.flush = Time::NEVER;
                        out.push_back(Output::Ready { feed: id });
                    }
                }
                Wake::Cut(id) => self.overdue(now, id, out),
                Wake::Hold(feed, request) => self.give_up(feed, request, out),
                Wake::Release(id) => self.let_go(now, id),
            }
        }
    }

    /// When [`Feeds::tick`] must be called next.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.deadline()
    }

    /// Ends every viewer and lets nobody in from here on.
    pub fn drain(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.draining = true;
        let all: VecDeque<ViewerId> = self.viewers.iter().map(|(id, _)| id).collect();
        for viewer in all {
            self.end(now, viewer, ViewerEnd::Shutdown, out);
        }
    }

    /// The viewers of a feed, those that wait and those that poll among them.
    pub fn viewers(&self, id: FeedId) -> impl Iterator<Item = ViewerId> {
        let audience = self.feeds.get(id).and_then(|feed| feed.audience.as_ref()).into_iter();
        audience.flat_map(|audience| {
            let started = audience.started.iter().map(|(_, viewer)| viewer);
            started.chain(&audience.waiting).chain(&audience.polling).copied()
        })
    }

    /// What the viewer was not sent yet, oldest first; nothing while it waits, and nothing of a viewer that is gone.
    pub fn unsent(&self, id: ViewerId) -> impl Iterator<Item = &[u8]> {
        let started = self.viewers.get(id).and_then(|viewer| match viewer.place {
            Place::Started { cursor, .. } => Some((self.feeds.get(viewer.feed)?, cursor)),
            Place::Waiting { .. } | Place::Polling(_) => None,
        });
        started.into_iter().flat_map(|(feed, cursor)| feed.ring.slices(cursor))
    }

    /// Which feed the viewer watches, if it has not ended.
    pub fn feed_of(&self, id: ViewerId) -> Option<FeedId> {
        self.viewers.get(id).map(|viewer| viewer.feed)
    }

    /// How many viewers there are, over all feeds.
    pub fn viewer_count(&self) -> usize {
        self.viewers.len()
    }

    /// How many deadlines are armed.
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// All feeds, in the order in which they were opened.
    pub fn feeds(&self) -> impl Iterator<Item = FeedId> {
        self.feeds.iter().map(|(id, _)| id)
    }

    /// A feed as it is now.
    pub fn status(&self, now: Time, id: FeedId) -> Option<FeedStatus> {
        let feed = self.feeds.get(id)?;
        let audience = feed.audience.as_ref();
        Some(FeedStatus {
            viewers: feed.viewers(),
            waiting: audience.map_or(0, |audience| audience.waiting.len()),
            polling: audience.map_or(0, |audience| audience.polling.len()),
            bytes_in: feed.ring.head(),
            bytes_out: audience.map_or(0, |audience| audience.bytes_out),
            span: feed.ring.span(),
            last_push: feed.last_push,
            random_access_age: feed.ring.random_access().map(|point| point.age(now)),
            ends: audience.map_or_else(Ends::default, |audience| audience.ends),
        })
    }

    /// Calls that changed nothing or less than they said: late ids, empty chunks, more bytes sent than there were.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Ends the viewers whose next byte is no longer kept.
    fn end_overtaken(&mut self, now: Time, id: FeedId, out: &mut VecDeque<Output>) {
        while let Some(feed) = self.feeds.get_mut(id) {
            let tail = feed.ring.tail();
            let Some(audience) = &mut feed.audience else { return };
            if audience.reached >= tail {
                return;
            }
            audience.reached = audience.started.first().map_or(u64::MAX, |(offset, _)| *offset);
            if audience.reached >= tail {
                return;
            }
            let Some((_, viewer)) = audience.started.pop_first() else { return };
            match self.viewers.get_mut(viewer).map(|row| &mut row.place) {
                Some(Place::Started { cursor, watched }) if *cursor >= tail => {
                    *watched = *cursor;
                    audience.started.insert((*cursor, viewer));
                }
                _ => self.end(now, viewer, ViewerEnd::Slow, out),
            }
        }
    }

    /// A viewer's deadline passed. It may have moved since it was armed: deadlines are not set anew with every chunk that comes in.
    fn wake_viewer(&mut self, now: Time, id: ViewerId, out: &mut VecDeque<Output>) {
        let Some(viewer) = self.viewers.get_mut(id) else { return };
        let Some(feed) = self.feeds.get_mut(viewer.feed) else { return };
        viewer.armed = Time::NEVER;
        let idle = feed.last_push.map_or(viewer.joined, |push| push.max(viewer.joined)) + self.settings.idle;
        if idle <= now {
            self.end(now, id, ViewerEnd::Idle, out);
            return;
        }
        let mut next = idle;
        if let Place::Started { cursor, .. } = viewer.place {
            // A cursor is looked at, not watched: what is sent costs nothing for this.
            let since = match viewer.stands {
                Some((at, since)) if at == cursor => since,
                _ => now,
            };
            let until = since + self.settings.progress_timeout;
            viewer.stands = (cursor < feed.ring.head()).then_some((cursor, since));
            if viewer.stands.is_some() && until <= now {
                self.end(now, id, ViewerEnd::Stuck, out);
                return;
            }
            next = next.min(until);
        }
        if let Place::Polling(poll) = &viewer.place {
            let until = poll.asked + self.settings.hls.timeout();
            if until <= now {
                self.end(now, id, ViewerEnd::Left, out);
                return;
            }
            next = next.min(until);
        }
        if let Place::Waiting { until } = &mut viewer.place {
            // Where nothing comes in any more, an old picture would be taken for a live one.
            let flows = feed.last_push.is_some_and(|push| now.since(push) <= self.settings.fresh);
            match feed.ring.random_access().filter(|_| flows && *until <= now) {
                Some(point) => {
                    if let Some(audience) = &mut feed.audience {
                        self.timers.set(Wake::Flush(viewer.feed), &mut audience.flush, now);
                        audience.start(id, viewer, point.at);
                    }
                }
                None if *until > now => next = next.min(*until),
                None => {
                    *until = now + self.settings.fresh.max(LEAST_WAIT);
                    next = next.min(*until);
                }
            }
        }
        self.timers.set(Wake::Viewer(id), &mut viewer.armed, next);
    }

    /// Lets go of a stream that nobody sends and nobody watches: nobody could start in it any more.
    fn let_go(&mut self, now: Time, id: FeedId) {
        let Some(feed) = self.feeds.get_mut(id) else { return };
        feed.release = Time::NEVER;
        if feed.viewers() > 0 {
            return;
        }
        let left = feed.audience.as_ref().and_then(|audience| audience.left);
        let Some(used) = feed.last_push.max(left) else { return };
        if used + self.settings.idle > now {
            self.timers.set(Wake::Release(id), &mut feed.release, used + self.settings.idle);
        } else {
            feed.ring.clear();
            feed.segments.clear();
        }
    }

    /// Ends a viewer.
    pub fn end(&mut self, now: Time, id: ViewerId, reason: ViewerEnd, out: &mut VecDeque<Output>) {
        self.refuse_held(id, reason, out);
        let Some(viewer) = self.remove(now, id, reason) else {
            self.ignored += 1;
            return;
        };
        out.push_back(Output::ViewerEnd { viewer: id, reason });
        if reason == ViewerEnd::Left {
            return;
        }
        let (feed, lasted, sent) = (viewer.feed, now.since(viewer.joined).as_micros() as u64, viewer.sent);
        out.push_back(Output::Note(Note::ViewerEnded { feed, viewer: id, reason, lasted, sent }));
    }

    /// Takes every trace of a viewer out.
    fn remove(&mut self, now: Time, id: ViewerId, reason: ViewerEnd) -> Option<Viewer> {
        let mut viewer = self.viewers.remove(id)?;
        self.timers.set(Wake::Viewer(id), &mut viewer.armed, Time::NEVER);
        let audience = self.feeds.get_mut(viewer.feed)?.audience.as_mut()?;
        match viewer.place {
            Place::Waiting { .. } => audience.waiting.remove(&id),
            Place::Started { watched, .. } => audience.started.remove(&(watched, id)),
            Place::Polling(poll) => {
                self.tokens.remove(&poll.token);
                audience.polling.remove(&id)
            }
        };
        if audience.polling.is_empty() {
            self.timers.set(Wake::Cut(viewer.feed), &mut audience.cut, Time::NEVER);
        }
        if audience.started.is_empty() {
            self.timers.set(Wake::Flush(viewer.feed), &mut audience.flush, Time::NEVER);
        }
        audience.ends.0[reason as usize] += 1;
        audience.left = Some(now);
        if let Some(feed) = self.feeds.get_mut(viewer.feed)
            && feed.release == Time::NEVER
            && feed.viewers() == 0
            && feed.ring.span() > 0
        {
            self.timers.set(Wake::Release(viewer.feed), &mut feed.release, now + self.settings.idle);
        }
        Some(viewer)
    }
}

impl Feed {
    fn viewers(&self) -> usize {
        let count = |audience: &Audience| audience.waiting.len() + audience.started.len() + audience.polling.len();
        self.audience.as_deref().map_or(0, count)
    }
}

impl Default for Audience {
    fn default() -> Self {
        Audience {
            reached: u64::MAX,
            waiting: BTreeSet::new(),
            started: BTreeSet::new(),
            polling: BTreeSet::new(),
            cut: Time::NEVER,
            flush: Time::NEVER,
            bytes_out: 0,
            ends: Ends::default(),
            left: None,
        }
    }
}

impl Audience {
    fn start(&mut self, id: ViewerId, viewer: &mut Viewer, at: u64) {
        self.waiting.remove(&id);
        viewer.place = Place::Started { cursor: at, watched: at };
        self.reached = self.reached.min(at);
        self.started.insert((at, id));
    }
}
