//! The invariants of publishing and of feeds, judged from the actors' truth. Nothing here asks the core for its reasons.
//!
//! | id | what must hold |
//! |---|---|
//! | `publish-1` | a slot has at most one holder, a session at most one slot |
//! | `publish-2` | only the holder's media enters a slot, none after its end |
//! | `publish-3` | nobody alive is displaced, nor who never delivered audio, nor who never delivered anything |
//! | `publish-4` | a POST that waits for a dead holder gets its slot; nobody is refused for a reason that is not so |
//! | `publish-5` | a session ends once, for one reason, and that reason happened |
//! | `publish-6` | a slot that comes free goes to the POST whose turn it is, and to it alone |
//! | `publish-7` | each POST is answered once and in time |
//! | `publish-8` | nothing is left that no peer stands behind, and everything is counted |
//! | `publish-9` | watchdog and set-up deadline end a session neither early nor late |
//! | `publish-10` | chains are rebuilt and key frames asked for when due, and only of sessions that live |
//! | `feed-1` | a viewer's bytes are the feed's, without a gap, from a random access point on |
//! | `feed-2` | a viewer ends once, for a reason that is so |
//! | `feed-3` | a viewer starts as soon as there is a point to start at, and is sent what comes in |

use std::fmt::Write as _;
use std::time::Duration;

use holdfast_core::config::Takeover;
use holdfast_core::edge::Edge;
use holdfast_core::input::{
    EndReason, EndpointId, FeedId, Input, Note, Output, RefuseReason, RequestId, SessionId, ViewerEnd, ViewerId,
};
use holdfast_core::publish::WAITING_LIMIT;
use holdfast_core::time::Time;

use super::brief;
use super::playback::truth::is_of_feeds;
use super::truth::{Fate, Post, Session, Truth};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its id.
    pub id: &'static str,
    /// What was found.
    pub what: String,
}

pub type Verdict = Result<(), Broken>;

macro_rules! holds {
    ($condition:expr, $id:literal, $($what:tt)+) => {
        if !$condition {
            return Err($crate::world::oracle::Broken { id: $id, what: format!($($what)+) });
        }
    };
}
pub(super) use holds;

/// What a script must show was not so.
macro_rules! shows {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::world::oracle::Broken { id: "script", what: format!($($what)+) });
        }
    };
}
pub(crate) use shows;

/// What the faults of this run excuse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowance {
    /// How late the driver may come.
    pub slack: Duration,
    /// How late evidence may be seen.
    pub unseen: Duration,
    /// By how much the core's clock may have been slow when it began to measure.
    pub early: Duration,
}

/// One judged moment: the truth, the time the core was given, and what the faults excuse.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    pub truth: &'a Truth,
    pub now: Time,
    pub allowance: Allowance,
}

impl Bench<'_> {
    /// Judges one output before the truth takes it in. `input` is what the core was handling.
    pub fn output(&self, input: &Input, output: &Output) -> Verdict {
        match output {
            Output::Start { session, request, endpoint, hold, feed, .. } => {
                self.start(*session, *request, *endpoint, *feed)?;
                let place = &self.truth.places[endpoint.0 as usize];
                let slot = hold.slot as usize;
                holds!(
                    place.slots[slot].is_none(),
                    "publish-1",
                    "slot {slot} of {} is held twice",
                    place.settings.name
                );
                let last = place.generations[slot];
                holds!(hold.generation > last, "publish-1", "slot {slot} is given under generation {last} again");
                Ok(())
            }
            Output::Accept { request, session } => {
                let post = self.post(*request)?;
                holds!(
                    post.fate == Fate::Negotiating(*session),
                    "publish-7",
                    "{request:?} is accepted, but it is {:?}",
                    post.fate
                );
                holds!(
                    *input == Input::Answered { session: *session },
                    "publish-7",
                    "session {session} is accepted without an answer"
                );
                Ok(())
            }
            Output::Refuse { request, reason } => match self.truth.posts.get(request) {
                Some(post) => self.refuse(*request, post, *reason),
                None => self.refuse_viewer(*request, *reason),
            },
            Output::Finish { session, reason } => self.finish(input, *session, *reason),
            Output::Note(Note::SessionEnded { session, reason, .. }) => {
                let row = self.session(*session)?;
                let finished = row.finished.map(|(reason, _)| reason);
                holds!(
                    finished == Some(*reason),
                    "publish-5",
                    "session {session} is noted as {reason:?} but was {finished:?}"
                );
                holds!(row.notes == 0, "publish-5", "the end of session {session} is noted twice");
                Ok(())
            }
            Output::KeyFrame { session } => {
                let row = self.session(*session)?;
                holds!(
                    row.is_live() && row.accepted,
                    "publish-10",
                    "a key frame is asked of session {session}, which is not there"
                );
                let next = row.key_frame.map(|last| last + self.truth.live.key_frame_interval);
                let now = self.now + self.allowance.early;
                holds!(
                    next.is_none_or(|next| now >= next),
                    "publish-10",
                    "key frames are asked of session {session} too often"
                );
                Ok(())
            }
            Output::Rebuild { session } => {
                let row = self.session(*session)?;
                holds!(row.is_live(), "publish-10", "session {session} is over and its chain is rebuilt");
                let idle = self.now.since(row.output.unwrap_or(row.started).max(row.rebuilt.unwrap_or(Time::ZERO)));
                holds!(
                    idle + self.allowance.early >= Duration::from_secs(10),
                    "publish-10",
                    "the chain of session {session} is rebuilt after {idle:?} of silence"
                );
                Ok(())
            }
            Output::Joined { request, .. } => {
                let join = self.truth.joins.iter().find(|join| join.request == *request);
                let known = join.is_some_and(|join| self.truth.feeds.contains_key(&join.feed));
                holds!(known, "feed-2", "{request:?} joins a feed it never asked for");
                holds!(!self.truth.shut, "feed-2", "{request:?} joins while the program ends");
                match join.and_then(|join| Some((join, self.truth.channel_of(join.feed)?))) {
                    Some((join, channel)) => self.join_channel(input, join, channel),
                    None => Ok(()),
                }
            }
            Output::ViewerEnd { viewer, reason } => self.viewer_end(input, *viewer, *reason),
            Output::Ready { .. } | Output::Polls { .. } | Output::Playlist { .. } => Ok(()),
            Output::Fetch { .. } | Output::Cut { .. } | Output::Drop { .. } => Ok(()),
            Output::Open { .. } | Output::Close { .. } | Output::SourceKeyFrame { .. } | Output::Note(_) => {
                self.pull_output(input, output)
            }
        }
    }

    fn post(&self, request: RequestId) -> Result<&Post, Broken> {
        let unknown = || Broken { id: "publish-7", what: format!("{request:?} is answered but was never made") };
        self.truth.posts.get(&request).ok_or_else(unknown)
    }

    fn session(&self, id: SessionId) -> Result<&Session, Broken> {
        let unknown = || Broken { id: "publish-5", what: format!("session {id} is spoken of but never was") };
        self.truth.sessions.get(&id).ok_or_else(unknown)
    }

    fn start(&self, session: SessionId, request: RequestId, endpoint: EndpointId, feed: FeedId) -> Verdict {
        let post = self.post(request)?;
        holds!(!self.truth.shut, "publish-6", "{request:?} gets a slot while the program ends");
        holds!(!self.truth.sessions.contains_key(&session), "publish-1", "session {session} is given a second slot");
        holds!(post.fate == Fate::Held, "publish-6", "{request:?} gets a slot, but it is {:?}", post.fate);
        holds!(post.endpoint == endpoint.0 as usize, "publish-1", "{request:?} gets a slot of another endpoint");
        let place = &self.truth.places[post.endpoint];
        let turn = match place.settings.takeover {
            Takeover::NewestWins => place.held.last(),
            Takeover::DisplaceDead | Takeover::Refuse => place.held.first(),
        };
        holds!(turn == Some(&request), "publish-6", "{request:?} gets a slot though it was the turn of {turn:?}");
        let before = self.truth.feeds.get(&feed).and_then(|feed| feed.session);
        let elsewhere = before.is_some_and(|session| self.truth.live_session(session).is_some());
        holds!(!elsewhere, "publish-2", "session {session} is to feed a slot that another session feeds");
        Ok(())
    }

    /// When the last packet of any kind came that the core must have seen by now.
    fn seen(&self, session: &Session) -> Option<Time> {
        session.stream.at(self.now - self.allowance.unseen).last_any()
    }

    /// A holder that is beyond doubt dead: it delivered audio, and then nothing for so long that any look must see it.
    fn dead_holder(&self, place: usize) -> Option<SessionId> {
        let settings = &self.truth.places[place].settings;
        let looks = settings.poll + self.allowance.slack + self.allowance.slack;
        let silence = settings.dead_after.max(looks) + self.allowance.slack + self.allowance.unseen;
        let dead = |session: &Session| {
            let evidence = session.stream.at(self.now);
            let known = session.stream.told_until().map_or(self.now, |until| until.min(self.now));
            let silent = evidence.last_any().is_some_and(|last| last + silence <= known);
            session.is_live() && evidence.audio.last.is_some() && silent
        };
        self.truth.holders(place).find(|(_, session)| dead(session)).map(|(id, _)| id)
    }

    /// Whether audio came without a pause all through the `span` before now.
    fn dense(&self, session: &Session, span: Duration) -> bool {
        if session.stream.told_until().is_some() {
            // Between two looks nobody knows.
            return false;
        }
        let until = self.now - self.allowance.unseen;
        let count = |at| session.stream.at(at).audio.count;
        u128::from(count(until) - count(until - span)) * 22 >= span.as_millis()
    }

    fn refuse(&self, request: RequestId, post: &Post, reason: RefuseReason) -> Verdict {
        let open = matches!(post.fate, Fate::Held | Fate::Negotiating(_));
        holds!(open, "publish-7", "{request:?} is refused for {reason:?}, but it is {:?}", post.fate);
        if reason == RefuseReason::NotFound {
            let known = self.truth.places.get(post.endpoint).is_some();
            holds!(!known, "publish-4", "{request:?} does not find its endpoint");
            return Ok(());
        }
        if reason == RefuseReason::NegotiationFailed {
            let negotiating = matches!(post.fate, Fate::Negotiating(_));
            holds!(negotiating, "publish-4", "{request:?} was never negotiated with");
            return Ok(());
        }
        if reason == RefuseReason::Ended {
            let negotiating = matches!(post.fate, Fate::Negotiating(_));
            holds!(negotiating, "publish-4", "{request:?} had no session that could have ended");
            return Ok(());
        }
        if reason == RefuseReason::Draining {
            holds!(self.truth.draining, "publish-4", "{request:?} is refused as if the program ended");
            return Ok(());
        }
        holds!(post.fate == Fate::Held, "publish-4", "{request:?} has its slot and is refused for {reason:?}");
        let place = &self.truth.places[post.endpoint];
        let rule = place.settings.takeover;
        let held =
            |(slot, holder): (usize, &Option<_>)| holder.is_some() || self.truth.freed == Some((post.endpoint, slot));
        let full = place.slots.iter().enumerate().all(held);
        holds!(full, "publish-6", "{request:?} is refused for {reason:?} while a slot is free");
        // A packet that a look may have found and the look before not.
        let looks = place.settings.poll + self.allowance.slack + self.allowance.slack;
        let ago = self.now - looks - self.allowance.unseen;
        let any = |test: &dyn Fn(&Session) -> bool| self.truth.holders(post.endpoint).any(|(_, row)| test(row));
        match reason {
            RefuseReason::TooManyWaiting => {
                let waiting = place.held.len() - 1;
                holds!(waiting >= WAITING_LIMIT, "publish-4", "{request:?} is one too many after {waiting}");
                return Ok(());
            }
            RefuseReason::HolderLive if rule == Takeover::Refuse => {
                let media = any(&|row| row.stream.at(self.now).last_media().is_some());
                holds!(media, "publish-4", "{request:?}: no holder ever delivered anything");
            }
            RefuseReason::HolderLive => {
                let moved = any(&|row| row.stream.at(self.now).last_any().is_some_and(|last| last >= ago));
                holds!(moved, "publish-4", "{request:?}: no holder has sent anything for {looks:?}");
                holds!(rule == Takeover::DisplaceDead, "publish-4", "{request:?}: the newest wins against the living");
            }
            RefuseReason::HolderWithoutAudio => {
                let before = self.now - self.allowance.unseen;
                let audio = any(&|row| row.is_live() && row.stream.at(before).audio.last.is_some());
                holds!(!audio, "publish-4", "{request:?}: a holder did deliver audio");
                let video = any(&|row| row.stream.at(self.now).video.last.is_some());
                holds!(video, "publish-4", "{request:?}: no holder ever delivered anything");
            }
            RefuseReason::HolderNegotiating if rule == Takeover::NewestWins => {
                let older = any(&|row| row.order < post.order);
                holds!(!older, "publish-4", "{request:?} is newer than a holder");
            }
            RefuseReason::HolderNegotiating => {
                let before = self.now - self.allowance.unseen;
                let media = any(&|row| row.is_live() && row.stream.at(before).last_media().is_some());
                holds!(!media, "publish-4", "{request:?}: a holder did deliver media");
            }
            RefuseReason::TakeoverTimeout => {
                let waited = self.now.since(post.arrived);
                let wait = place.settings.takeover_wait;
                holds!(waited + self.allowance.early >= wait, "publish-7", "{request:?} is given up after {waited:?}");
            }
            _ => holds!(false, "publish-4", "{request:?} is refused for {reason:?}, which is not for it"),
        }
        let leaving = any(&|row| !row.is_live()) || self.truth.freed.is_some_and(|(place, _)| place == post.endpoint);
        if rule == Takeover::DisplaceDead && !leaving {
            let dead = self.dead_holder(post.endpoint);
            holds!(dead.is_none(), "publish-4", "{request:?} is refused for {reason:?} though {dead:?} is dead");
        }
        Ok(())
    }

    fn finish(&self, input: &Input, id: SessionId, reason: EndReason) -> Verdict {
        let session = self.session(id)?;
        holds!(
            session.is_live(),
            "publish-5",
            "session {id} ends as {reason:?} after it ended as {:?}",
            session.finished
        );
        let settings = &self.truth.places[session.endpoint].settings;
        let evidence = session.stream.at(self.now - self.allowance.unseen);
        match reason {
            EndReason::Displaced => self.displaced(id, session),
            EndReason::Inactive => {
                let silent = evidence.last_media().map(|last| self.now.since(last));
                let early = silent.is_none_or(|silent| silent + self.allowance.unseen < settings.inactivity_timeout);
                holds!(!early, "publish-9", "the watchdog ends session {id}, whose media came {silent:?} ago");
                self.not_late(id, session)
            }
            EndReason::SetupTimeout => {
                let age = self.now.since(session.started);
                holds!(
                    age + self.allowance.early >= settings.setup_timeout,
                    "publish-9",
                    "session {id} gets {age:?} to set up"
                );
                holds!(
                    evidence.last_media().is_none(),
                    "publish-9",
                    "session {id} did deliver before its set-up deadline"
                );
                self.not_late(id, session)
            }
            EndReason::ClientGone => {
                let cause = *input == Input::Hangup { request: session.post };
                holds!(cause, "publish-5", "session {id} ends as if its client had gone");
                Ok(())
            }
            EndReason::Shutdown => {
                holds!(*input == Input::Drain, "publish-5", "session {id} ends as if the program ended");
                Ok(())
            }
            _ => {
                let cause = *input == Input::End { session: id, reason };
                holds!(cause, "publish-5", "session {id} ends as {reason:?} on {}", brief(input));
                Ok(())
            }
        }
    }

    fn not_late(&self, id: SessionId, session: &Session) -> Verdict {
        if !session.is_known() {
            return Ok(());
        }
        let latest = self.truth.latest_end(session, self.now) + self.allowance.slack + self.allowance.unseen;
        holds!(self.now <= latest, "publish-9", "session {id} should have ended by {latest:?}");
        Ok(())
    }

    fn displaced(&self, id: SessionId, session: &Session) -> Verdict {
        let place = &self.truth.places[session.endpoint];
        let newer = |request: &RequestId| self.truth.posts[request].order > session.order;
        holds!(
            place.held.iter().any(newer),
            "publish-3",
            "session {id} is displaced and no newer POST waits for its slot"
        );
        let name = &place.settings.name;
        match place.settings.takeover {
            Takeover::Refuse => {
                holds!(false, "publish-3", "session {id} is displaced at {name}, where holders are kept")
            }
            Takeover::NewestWins => {}
            Takeover::DisplaceDead => {
                let evidence = session.stream.at(self.now);
                holds!(
                    evidence.last_media().is_some(),
                    "publish-3",
                    "session {id} is displaced and never delivered anything"
                );
                holds!(
                    evidence.audio.last.is_some(),
                    "publish-3",
                    "session {id} is displaced and never delivered audio"
                );
                let dead = |last: Time| last + place.settings.dead_after <= self.now;
                let last = self.seen(session);
                holds!(last.is_none_or(dead), "publish-3", "session {id} is displaced and sent a packet at {last:?}");
            }
        }
        Ok(())
    }

    fn refuse_viewer(&self, request: RequestId, reason: RefuseReason) -> Verdict {
        if let Some((viewer, at)) = self.truth.asks.get(&request) {
            return self.refuse_ask(request, *viewer, *at, reason);
        }
        let Some(join) = self.truth.joins.iter().find(|join| join.request == request) else {
            // Whether users may play is judged for itself.
            if self.truth.users.is_play(request) || self.truth.titles.is_request(request) {
                return Ok(());
            }
            return Err(Broken { id: "publish-7", what: format!("{request:?} is refused and was never made") });
        };
        let feed = self.truth.feeds.get(&join.feed);
        let so = match reason {
            RefuseReason::StartTimeout | RefuseReason::NoSource => {
                let channel = self.truth.channel_of(join.feed);
                let so = channel.is_some_and(|channel| self.refuse_join(join, channel, reason));
                holds!(so, "pull-8", "{request:?} may not watch for {reason:?}");
                true
            }
            RefuseReason::Draining => self.truth.draining,
            RefuseReason::NotFound => feed.is_none(),
            reason if !is_of_feeds(reason) => {
                self.truth.users.is_play(request) || self.truth.titles.is_request(request)
            }
            RefuseReason::TooManyViewers => feed.is_some_and(|feed| feed.viewers.len() >= self.truth.live.viewers),
            _ => false,
        };
        holds!(so, "feed-2", "{request:?} may not watch for {reason:?}");
        Ok(())
    }

    /// Whether a viewer that polls is at its end for want of requests or of media.
    fn may_have_left(&self, viewer: ViewerId) -> bool {
        let Some(row) = self.truth.viewers.get(&viewer) else { return false };
        let came = self.truth.feeds[&row.feed].last_push.map_or(row.joined, |push| push.max(row.joined));
        let now = self.now + self.allowance.early;
        let asked = row.polled.unwrap_or(row.joined) + self.truth.live.hls.timeout();
        came + self.truth.live.idle <= now || asked <= now
    }

    fn refuse_ask(&self, request: RequestId, viewer: ViewerId, at: Time, reason: RefuseReason) -> Verdict {
        let there = self.truth.viewers.get(&viewer).is_some_and(|viewer| viewer.ended.is_none());
        let waited = self.now.since(at) + self.allowance.early;
        // A viewer that ends takes its requests with it, and is told after them.
        let so = match reason {
            // By its token somebody else is known.
            RefuseReason::NotFound => !there || self.truth.is_first_ask(viewer),
            RefuseReason::StartTimeout => waited >= self.truth.live.hls.hold() || self.may_have_left(viewer),
            _ => self.truth.draining || there,
        };
        holds!(so, "feed-2", "{request:?} of viewer {viewer} is refused for {reason:?} after {waited:?}");
        Ok(())
    }

    fn viewer_end(&self, input: &Input, id: ViewerId, reason: ViewerEnd) -> Verdict {
        let Some(viewer) = self.truth.viewers.get(&id) else {
            return Err(Broken { id: "feed-2", what: format!("viewer {id} ends and never joined") });
        };
        holds!(viewer.ended.is_none(), "feed-2", "viewer {id} ends as {reason:?} after it ended as {:?}", viewer.ended);
        let feed = &self.truth.feeds[&viewer.feed];
        match reason {
            ViewerEnd::Left => {
                let timeout = self.truth.live.hls.timeout();
                let so = viewer.polled.is_some_and(|polled| self.now + self.allowance.early >= polled + timeout);
                holds!(so, "feed-2", "viewer {id} is told that it left, asked last at {:?}", viewer.polled);
            }
            ViewerEnd::Evicted | ViewerEnd::Kicked | ViewerEnd::Limit | ViewerEnd::Expired => {
                let users = self.truth.users.users.iter().any(|user| !user.of_titles)
                    || self.truth.titles.viewers.contains_key(&id);
                holds!(users, "feed-2", "viewer {id} ends as {reason:?} where nobody has to log in");
            }
            ViewerEnd::Done
            | ViewerEnd::Failed
            | ViewerEnd::Superseded
            | ViewerEnd::Preempted
            | ViewerEnd::GraceOver => {
                holds!(false, "feed-2", "viewer {id} ends as {reason:?}, which is for titles");
            }
            ViewerEnd::Ended | ViewerEnd::NoSource => {
                let channel = self.truth.channel_of(viewer.feed);
                let so = channel.is_some_and(|channel| self.end_viewer(channel, reason));
                holds!(so, "pull-5", "viewer {id} ends as {reason:?}");
            }
            ViewerEnd::Shutdown => holds!(*input == Input::Drain, "feed-2", "viewer {id} ends as if the program ended"),
            ViewerEnd::Idle => {
                let idle = self.now.since(feed.last_push.map_or(viewer.joined, |push| push.max(viewer.joined)));
                let (least, most) = (self.truth.live.idle, self.truth.live.idle + self.allowance.slack);
                holds!(
                    least <= idle + self.allowance.early && idle <= most,
                    "feed-2",
                    "viewer {id} ends as idle after {idle:?}"
                );
            }
            ViewerEnd::Stuck => {
                let (took, behind) = (self.now.since(viewer.took), viewer.cursor.is_some_and(|at| at < feed.head));
                let least = self.truth.live.progress_timeout;
                holds!(
                    behind && took + self.allowance.early >= least,
                    "feed-2",
                    "viewer {id} ends as stuck after {took:?}"
                );
            }
            // The chunk that overtook it is not in the truth yet.
            ViewerEnd::Slow => {
                let pushed = match input {
                    Input::Media { data, .. } => data.len() as u64,
                    _ => 0,
                };
                let tail = feed.tail_after(pushed, self.truth.live.buffer as u64);
                // A driver that comes late may let a viewer start at an old point and overtake it in the same call.
                let at = viewer.cursor.or(feed.random_access().map(|point| point.at));
                holds!(
                    at.is_some_and(|at| at < tail),
                    "feed-2",
                    "viewer {id} ends as slow at {at:?}, its feed is kept from {tail}"
                );
            }
        }
        Ok(())
    }

    /// Judges what stands after each call: cheap enough for every one.
    pub fn standing(&self, edge: &Edge) -> Verdict {
        for index in self.truth.queues.iter().copied() {
            let place = &self.truth.places[index];
            let Some(oldest) = place.held.first() else { continue };
            let name = &place.settings.name;
            holds!(
                place.slots.iter().all(Option::is_some),
                "publish-6",
                "{oldest:?} waits while a slot of {name} is free"
            );
            for request in &place.held {
                let post = &self.truth.posts[request];
                let latest = post.arrived + place.settings.takeover_wait + place.settings.poll + self.allowance.slack;
                holds!(self.now <= latest, "publish-7", "{request:?} waits at {name} since {:?}", post.arrived);
            }
            let waiting = place.held.len();
            holds!(waiting <= WAITING_LIMIT, "publish-8", "{waiting} POSTs wait at {name}");
            let leaving = self.truth.holders(index).any(|(_, session)| !session.is_live());
            if place.settings.takeover == Takeover::DisplaceDead && !leaving {
                // Whoever holds has been sending all along, so that every look found more than the one before.
                let span = (place.settings.poll + self.allowance.slack) * 4;
                let oldest = self.truth.posts[oldest].arrived;
                let long = oldest + span + self.allowance.unseen < self.now;
                let alive = long && self.truth.holders(index).all(|(_, session)| self.dense(session, span));
                holds!(!alive, "publish-4", "a POST waits at {name} since {oldest:?}, though every holder sends audio");
            }
            let newest = place.held.iter().map(|request| self.truth.posts[request].arrived).max();
            let looked = newest.is_some_and(|newest| newest + place.settings.poll + self.allowance.slack < self.now);
            if place.settings.takeover == Takeover::DisplaceDead && looked && !leaving {
                let dead = self.dead_holder(index);
                holds!(dead.is_none(), "publish-4", "{oldest:?} waits at {name} though {dead:?} is dead");
                let may_have_audio =
                    |session: &Session| !session.is_known() || session.stream.at(self.now).audio.last.is_some();
                let audio = self.truth.holders(index).any(|(_, session)| may_have_audio(session));
                holds!(audio, "publish-4", "{oldest:?} waits at {name} though no holder ever delivered audio");
            }
        }
        let unanswered = (edge.publish().unanswered(), self.truth.unanswered());
        if self.truth.draining {
            let left = (self.truth.live_sessions().count(), unanswered.1, self.truth.watching);
            holds!(
                left == (0, 0, 0),
                "publish-8",
                "the program ends; sessions, POSTs and viewers that go on: {left:?}"
            );
        }
        holds!(unanswered.0 == unanswered.1, "publish-8", "unanswered POSTs, by the core and in truth: {unanswered:?}");
        let sessions = (edge.publish().session_count(), self.truth.present.len());
        holds!(sessions.0 == sessions.1, "publish-8", "sessions, by the core and in truth: {sessions:?}");
        let viewers = (edge.feeds().viewer_count(), self.truth.watching + self.truth.titles.watching());
        holds!(viewers.0 == viewers.1, "feed-2", "viewers, by the core and in truth: {viewers:?}");
        self.play_standing(edge)?;
        self.channels(edge)
    }

    /// Judges what came of the wish for a key frame in a feed, after the truth has taken it in.
    pub fn key_frame(&self, feed: FeedId, outputs: &[Output]) -> Verdict {
        let Some(id) = self.truth.feeds.get(&feed).and_then(|feed| feed.session) else { return Ok(()) };
        let Some(session) = self.truth.live_session(id).filter(|session| session.accepted) else { return Ok(()) };
        let interval = self.truth.live.key_frame_interval + self.allowance.early;
        let due = session.key_frame.is_none_or(|last| last + interval < self.now);
        let asked = outputs.contains(&Output::KeyFrame { session: id });
        holds!(asked || !due, "publish-10", "session {id} is not asked for the key frame that somebody wants");
        Ok(())
    }

    /// Judges a feed that something happened to.
    pub fn feed(&self, edge: &Edge, id: FeedId) -> Verdict {
        let Some(feed) = self.truth.feeds.get(&id) else { return Ok(()) };
        let bytes = edge.feeds().status(self.now, id).map(|status| (status.bytes_in, status.span));
        let (head, span) = (feed.head, feed.head - feed.tail);
        holds!(
            bytes == Some((head, span)),
            "publish-2",
            "bytes in feed {id}: {bytes:?}, but {head} of holders, {span} kept"
        );
        let last = edge.feeds().last_push(id);
        let apart = last.zip(feed.last_push).map(|(last, truth)| truth.since(last).max(last.since(truth)));
        let so = last.is_some() == feed.last_push.is_some() && apart.is_none_or(|apart| apart <= self.allowance.early);
        holds!(so, "pull-2", "media last came into {id} at {:?}, not at {last:?}", feed.last_push);
        for viewer in &feed.viewers {
            let row = &self.truth.viewers[viewer];
            match row.cursor {
                _ if row.polled.is_some() => {}
                Some(cursor) => {
                    holds!(cursor >= feed.tail, "feed-2", "viewer {viewer} was overtaken and is still there")
                }
                None => {
                    // An old point will do once the viewer has waited, as long as something comes in; it is looked for again
                    // and again.
                    let looks = self.truth.live.fresh.max(Duration::from_millis(100)) + self.allowance.slack;
                    let old = row.joined + looks + looks;
                    // What came with a clock that goes back looks older than it is.
                    let pause = self.truth.live.fresh.saturating_sub(self.allowance.early);
                    let flows = self.now > old && feed.flowed(self.now - looks, self.now, pause);
                    let point = feed.random_access().map(|point| (point.came, point.at));
                    let since = point.filter(|(came, _)| *came > row.joined || flows);
                    holds!(since.is_none(), "feed-3", "viewer {viewer} waits though it could start at {since:?}");
                }
            }
        }
        Ok(())
    }

    /// Judges everything.
    pub fn all(&self, edge: &Edge) -> Verdict {
        self.standing(edge)?;
        self.play_all(edge)?;
        self.titles_all(edge)?;
        for (place, state) in self.truth.places.iter().zip(edge.publish().endpoints()) {
            let name = &place.settings.name;
            let holders = state.holders().eq(place.slots.iter().copied());
            holds!(holders, "publish-1", "the holders at {name} are {:?}", place.slots);
            let counts = state.counts;
            let same = (counts.offers, counts.accepted) == (place.offers, place.accepted)
                && (counts.refused, counts.ended) == (place.refused, place.ended);
            holds!(same, "publish-8", "{name} counts {counts:?}, but {}", counted(place));
            let waiting = (state.waiting(), place.held.len());
            holds!(waiting.0 == waiting.1, "publish-8", "{name}: waiting by the core and in truth: {waiting:?}");
        }
        let unanswered = (self.truth.unanswered(), self.truth.count_unanswered());
        holds!(
            unanswered.0 == unanswered.1,
            "publish-8",
            "unanswered POSTs, kept count of and counted: {unanswered:?}"
        );
        let waiting = self.truth.held;
        let timers = (edge.publish().timer_count(), self.truth.live_sessions().count() + waiting);
        holds!(timers.0 == timers.1, "publish-8", "deadlines, armed and needed: {timers:?}");
        for (id, session) in self.truth.live_sessions() {
            self.not_late(id, session)?;
        }
        for feed in self.truth.feeds.keys() {
            self.feed(edge, *feed)?;
        }
        Ok(())
    }

    /// Judges that nothing is left of anybody.
    pub fn rest(&self, edge: &Edge) -> Verdict {
        self.all(edge)?;
        let publish = edge.publish();
        let left = (publish.session_count(), publish.unanswered(), publish.timer_count(), edge.feeds().viewer_count());
        holds!(left == (0, 0, 0, 0), "publish-8", "sessions, POSTs, deadlines and viewers left: {left:?}");
        self.channels_rest(edge)?;
        self.play_rest(edge)?;
        self.titles_rest(edge)?;
        // What is left is to let go of what feeds keep, once nobody has sent or watched for `idle`.
        let kept = self.truth.feeds.values().filter(|feed| !feed.chunks.is_empty());
        let last = kept.filter_map(|feed| feed.used).max().map(|used| used + self.truth.live.idle);
        let deadline = edge.deadline();
        holds!(deadline.is_none_or(|at| Some(at) <= last), "publish-8", "something is still due at {deadline:?}");
        let unanswered =
            self.truth.posts.iter().find(|(_, post)| matches!(post.fate, Fate::Held | Fate::Negotiating(_)));
        holds!(unanswered.is_none(), "publish-7", "never answered: {unanswered:?}");
        let session = self.truth.sessions.iter().find(|(_, session)| session.notes != 1 || session.is_live());
        holds!(session.is_none(), "publish-5", "not ended and noted once: {session:?}");
        Ok(())
    }
}

fn counted(place: &super::truth::Place) -> String {
    let mut words = String::new();
    let (offers, accepted) = (place.offers, place.accepted);
    let _ = write!(words, "offers {offers}, accepted {accepted}, refused {:?}, ended {:?}", place.refused, place.ended);
    words
}
