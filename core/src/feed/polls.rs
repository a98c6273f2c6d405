//! Viewers that poll: they ask for a playlist and for segments, each time anew, and have left when they ask no more.
//!
//! A viewer is counted once, from when it joined to its deadline, on however many connections it asks. One that comes back
//! after its deadline joins anew and may keep what it is known by: players ask for the same address as long as they play, so
//! that nothing else could bring back one that was paused, or slept.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::segments::{Flow, Playlist, Segment};
use super::{Feeds, Place, Wake};
use crate::input::{FeedId, Output, RefuseReason, RequestId, Token, ViewerEnd, ViewerId};
use crate::time::Time;

/// What is kept of a viewer that polls.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Poll {
    pub token: Token,
    /// When it last asked for something, or was last held.
    pub asked: Time,
    /// The first segment that is for it.
    from: u64,
}

/// Requests for playlists that have no segment yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Holds {
    held: BTreeMap<(FeedId, RequestId), Hold>,
    feeds: BTreeMap<RequestId, FeedId>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Hold {
    viewer: ViewerId,
    armed: Time,
}

impl Holds {
    fn of(&self, feed: FeedId) -> impl Iterator<Item = (RequestId, ViewerId)> {
        let all = (feed, RequestId(0))..=(feed, RequestId(u64::MAX));
        self.held.range(all).map(|((_, request), hold)| (*request, hold.viewer))
    }

    /// Each, whose it is, and when it is given up.
    pub(super) fn all(&self) -> impl Iterator<Item = (RequestId, ViewerId, Time)> {
        self.held.iter().map(|((_, request), hold)| (*request, hold.viewer, hold.armed))
    }

    fn remove(&mut self, request: RequestId) -> Option<(FeedId, Hold)> {
        let feed = self.feeds.remove(&request)?;
        Some((feed, self.held.remove(&(feed, request))?))
    }
}

impl Feeds {
    /// A viewer that joined just now polls from here on; answered at once by one [`Output::Polls`] or [`Output::Refuse`].
    pub fn poll(&mut self, now: Time, request: RequestId, id: ViewerId, token: Token, out: &mut VecDeque<Output>) {
        let known = self.tokens.get(&token).copied();
        let Some(viewer) = self.viewers.get_mut(id).filter(|viewer| !matches!(viewer.place, Place::Polling(_))) else {
            self.ignored += 1;
            return out.push_back(Output::Refuse { request, reason: RefuseReason::NotFound });
        };
        let id_of_feed = viewer.feed;
        if let Some(known) = known {
            // It asked twice at once, and the other request came first.
            self.leave(now, id);
            let same = self.viewers.get(known).is_some_and(|viewer| viewer.feed == id_of_feed);
            return out.push_back(match same {
                true => Output::Polls { request, viewer: known, token },
                false => Output::Refuse { request, reason: RefuseReason::NotFound },
            });
        }
        let Some(feed) = self.feeds.get_mut(id_of_feed) else { return };
        let Some(audience) = &mut feed.audience else { return };
        match viewer.place {
            Place::Waiting { .. } => audience.waiting.remove(&id),
            Place::Started { watched, .. } => audience.started.remove(&(watched, id)),
            Place::Polling(_) => false,
        };
        if audience.started.is_empty() {
            self.timers.set(Wake::Flush(id_of_feed), &mut audience.flush, Time::NEVER);
        }
        audience.polling.insert(id);
        let runs = feed.last_push.is_some_and(|last| now.since(last).as_secs() < self.settings.hls.target());
        let from = feed.segments.first(if runs { Flow::Runs } else { Flow::Pauses });
        viewer.place = Place::Polling(Poll { token, asked: now, from });
        self.tokens.insert(token, id);
        self.timers.set(Wake::Viewer(id), &mut viewer.armed, now + self.settings.hls.timeout().min(self.settings.idle));
        self.watch_for_cut(now, id_of_feed);
        out.push_back(Output::Polls { request, viewer: id, token });
    }

    /// A viewer asks for its playlist; answered by one [`Output::Playlist`] as soon as there is a segment for it, or by
    /// [`Output::Refuse`] when that takes too long.
    pub fn ask_playlist(&mut self, now: Time, request: RequestId, id: ViewerId, out: &mut VecDeque<Output>) {
        self.polled(now, id, 0);
        let Some(viewer) = self.viewers.get(id).filter(|viewer| matches!(viewer.place, Place::Polling(_))) else {
            return out.push_back(Output::Refuse { request, reason: RefuseReason::NotFound });
        };
        if self.has_segment(id) {
            return out.push_back(Output::Playlist { request, viewer: id });
        }
        if self.holds.feeds.contains_key(&request) {
            self.ignored += 1;
            return;
        }
        let (feed, until) = (viewer.feed, now + self.settings.hls.hold());
        let mut hold = Hold { viewer: id, armed: Time::NEVER };
        self.timers.set(Wake::Hold(feed, request), &mut hold.armed, until);
        self.holds.held.insert((feed, request), hold);
        self.holds.feeds.insert(request, feed);
    }

    /// A viewer that polls asked for something and is given `bytes` of its feed.
    pub fn polled(&mut self, now: Time, id: ViewerId, bytes: u64) {
        let Some(viewer) = self.viewers.get_mut(id) else {
            self.ignored += 1;
            return;
        };
        let Place::Polling(poll) = &mut viewer.place else {
            self.ignored += 1;
            return;
        };
        poll.asked = now;
        viewer.sent += bytes;
        if let Some(audience) = self.feeds.get_mut(viewer.feed).and_then(|feed| feed.audience.as_mut()) {
            audience.bytes_out += bytes;
        }
    }

    /// The client of a held request went away. Whether there is one.
    pub fn hangup(&mut self, request: RequestId) -> bool {
        self.release(request).is_some()
    }

    /// A feed that lacks a random access point to be cut at, of those that were not given out yet.
    pub fn next_uncut(&mut self) -> Option<FeedId> {
        self.uncut.pop_front()
    }

    /// Who polls under this token, and which feed.
    pub fn known(&self, token: Token) -> Option<(ViewerId, FeedId)> {
        let id = *self.tokens.get(&token)?;
        Some((id, self.viewers.get(id)?.feed))
    }

    /// What a viewer that polls is shown, and what it is known by.
    pub fn playlist(&self, id: ViewerId) -> Option<(Token, Playlist<impl Iterator<Item = Segment>>)> {
        let viewer = self.viewers.get(id)?;
        let Place::Polling(poll) = viewer.place else { return None };
        let feed = self.feeds.get(viewer.feed)?;
        Some((poll.token, feed.segments.playlist(poll.from, feed.ring.tail(), &self.settings.hls)))
    }

    /// A segment of a feed, if it is still kept.
    pub fn segment(&self, id: FeedId, sequence: u64) -> Option<Segment> {
        let feed = self.feeds.get(id)?;
        feed.segments.get(sequence, feed.ring.tail())
    }

    /// The newest segments of a feed, oldest first.
    pub fn segments(&self, id: FeedId) -> impl Iterator<Item = Segment> {
        let feed = self.feeds.get(id).into_iter();
        feed.flat_map(|feed| feed.segments.playlist(0, feed.ring.tail(), &self.settings.hls).segments)
    }

    /// The bytes of a feed from one offset to another; `None` if they are not kept any more.
    pub fn bytes(&self, id: FeedId, at: u64, end: u64) -> Option<impl Iterator<Item = &[u8]>> {
        self.feeds.get(id)?.ring.range(at, end)
    }

    /// How many requests for a playlist are held.
    pub fn held(&self) -> usize {
        self.holds.held.len()
    }

    /// A feed that is polled got a random access point, which ended a segment or not.
    pub(super) fn segmented(&mut self, now: Time, id: FeedId, closed: bool, out: &mut VecDeque<Output>) {
        self.watch_for_cut(now, id);
        if !closed {
            return;
        }
        let held: Vec<_> = self.holds.of(id).filter(|(_, viewer)| self.has_segment(*viewer)).collect();
        for (request, viewer) in held {
            self.release(request);
            self.polled(now, viewer, 0);
            out.push_back(Output::Playlist { request, viewer });
        }
    }

    /// A random access point to cut at did not come in time: one is asked for, and when that is in vain the segment is cut.
    pub(super) fn overdue(&mut self, now: Time, id: FeedId, out: &mut VecDeque<Output>) {
        let settings = &self.settings.hls;
        let Some(feed) = self.feeds.get_mut(id) else { return };
        let Some(audience) = &mut feed.audience else { return };
        audience.cut = Time::NEVER;
        let runs = feed.last_push.is_some_and(|last| now.since(last) < settings.segment());
        let late = feed.segments.began().is_some_and(|began| now.since(began) >= settings.longest());
        let closed = runs && late && feed.segments.cut(feed.ring.head(), feed.last_push, settings);
        if runs {
            self.uncut.push_back(id);
        }
        self.segmented(now, id, closed, out);
    }

    /// A segment did not come in time.
    pub(super) fn give_up(&mut self, feed: FeedId, request: RequestId, out: &mut VecDeque<Output>) {
        if let Some(hold) = self.holds.held.get_mut(&(feed, request)) {
            hold.armed = Time::NEVER;
            self.release(request);
            out.push_back(Output::Refuse { request, reason: RefuseReason::StartTimeout });
        }
    }

    /// Answers what is held of a viewer that ends.
    pub(super) fn refuse_held(&mut self, id: ViewerId, end: ViewerEnd, out: &mut VecDeque<Output>) {
        let Some(viewer) = self.viewers.get(id).filter(|viewer| matches!(viewer.place, Place::Polling(_))) else {
            return;
        };
        let reason = match end {
            ViewerEnd::Shutdown => RefuseReason::Draining,
            ViewerEnd::Ended | ViewerEnd::NoSource => RefuseReason::NoSource,
            ViewerEnd::Evicted | ViewerEnd::Limit => RefuseReason::UserLimit,
            ViewerEnd::Kicked => RefuseReason::Kicked,
            ViewerEnd::Preempted => RefuseReason::Preempted,
            ViewerEnd::GraceOver => RefuseReason::ProviderLimit,
            ViewerEnd::Expired => RefuseReason::AccountExpired,
            ViewerEnd::Superseded => RefuseReason::Superseded,
            ViewerEnd::Left
            | ViewerEnd::Slow
            | ViewerEnd::Stuck
            | ViewerEnd::Idle
            | ViewerEnd::Done
            | ViewerEnd::Failed => RefuseReason::StartTimeout,
        };
        let held: Vec<_> = self.holds.of(viewer.feed).filter(|(_, own)| *own == id).collect();
        for (request, _) in held {
            self.release(request);
            out.push_back(Output::Refuse { request, reason });
        }
    }

    fn release(&mut self, request: RequestId) -> Option<()> {
        let (feed, mut hold) = self.holds.remove(request)?;
        self.timers.set(Wake::Hold(feed, request), &mut hold.armed, Time::NEVER);
        Some(())
    }

    fn has_segment(&self, id: ViewerId) -> bool {
        self.playlist(id).is_some_and(|(_, mut playlist)| playlist.segments.next().is_some())
    }

    /// Sets the time at which a random access point to cut at is overdue.
    fn watch_for_cut(&mut self, now: Time, id: FeedId) {
        let settings = &self.settings.hls;
        let Some(feed) = self.feeds.get_mut(id) else { return };
        let Some(audience) = &mut feed.audience else { return };
        let later = now + settings.segment();
        let at = match feed.segments.began() {
            Some(began) => [began + settings.segment(), began + settings.longest()]
                .into_iter()
                .find(|at| *at > now)
                .unwrap_or(later),
            None => later,
        };
        self.timers.set(Wake::Cut(id), &mut audience.cut, at);
    }
}
