//! The rules of publishing in simulated time. Cases are named after what people reported (W1 …).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::WAITING_LIMIT;
use crate::config::{Config, Endpoint, Takeover};
use crate::input::{
    Arrivals, EndReason, EndpointId, Env, Evidence, FeedId, Input, Note, Output, RefuseReason, RequestId, SessionId,
    Writer,
};
use crate::time::Time;
use crate::twins::Twins;

/// A publisher's rhythm: audio each 20 ms, video each 33 ms, RTCP each second, while it lives.
#[derive(Clone, Copy, Default)]
pub(super) struct Rhythm {
    audio: u64,
    video: u64,
    control: u64,
}

pub(super) const AUDIO_VIDEO: Rhythm = Rhythm { audio: 20, video: 33, control: 1000 };

pub(super) struct Publisher {
    rhythm: Rhythm,
    from: u64,
    /// It sends nothing more from here on.
    until: u64,
}

impl Publisher {
    fn arrivals(&self, every: u64, now: u64) -> Arrivals {
        let now = now.min(self.until);
        if every == 0 || now < self.from {
            return Arrivals::default();
        }
        let count = (now - self.from) / every + 1;
        Arrivals { count, last: Some(ms(self.from + (count - 1) * every)) }
    }
}

#[derive(Default)]
pub(super) struct Peers {
    now: u64,
    publishers: BTreeMap<SessionId, Publisher>,
    entropy: u8,
}

impl Env for Peers {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let Some(publisher) = self.publishers.get(&session) else { return Evidence::default() };
        Evidence {
            audio: publisher.arrivals(publisher.rhythm.audio, self.now),
            video: publisher.arrivals(publisher.rhythm.video, self.now),
            control: publisher.arrivals(publisher.rhythm.control, self.now),
        }
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.entropy += 1;
        [self.entropy; 16]
    }
}

pub(super) fn ms(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

/// What became of a POST, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Accepted(SessionId, u64),
    Refused(RefuseReason, u64),
}

impl Fate {
    fn session(self) -> SessionId {
        match self {
            Fate::Accepted(session, _) => session,
            Fate::Refused(reason, at) => panic!("refused for {reason:?} at {at} ms"),
        }
    }
}

/// An edge, its peers, and a driver that answers at once.
pub(super) struct Stage {
    pub edge: Twins,
    pub peers: Peers,
    fates: BTreeMap<RequestId, Fate>,
    ended: Vec<(SessionId, EndReason, u64)>,
    asked: Vec<Output>,
    /// Whether finished sessions are released at once.
    pub release: bool,
    requests: u64,
}

impl Stage {
    pub fn new(endpoint: Endpoint) -> Self {
        Stage {
            edge: Twins::new(Config { endpoints: vec![endpoint], ..Config::default() }),
            peers: Peers::default(),
            fates: BTreeMap::new(),
            ended: Vec::new(),
            asked: Vec::new(),
            release: true,
            requests: 0,
        }
    }

    pub fn one_slot() -> Self {
        Stage::new(Endpoint::default())
    }

    /// One slot, whose holder has died after so many ms.
    pub fn dead_holder(dies: u64) -> (Self, SessionId) {
        let mut stage = Stage::one_slot();
        let holder = stage.publish(AUDIO_VIDEO);
        stage.run(dies);
        stage.kill(holder);
        (stage, holder)
    }

    fn slots(slots: u32) -> Self {
        Stage::new(Endpoint { slots, ..Endpoint::default() })
    }

    /// A packet of the session's media comes.
    fn media(&mut self, session: SessionId, random_access: Option<u64>) {
        let feed = self.edge.feed_of(EndpointId(0), 0).unwrap();
        let (from, data) = (Writer::Session(session), Bytes::from_static(&[0x47; 188]));
        self.input(Input::Media { feed, from, data, random_access });
    }

    pub fn input(&mut self, input: Input) {
        let now = self.peers.now;
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.edge.handle(ms(now), input, &mut self.peers);
            while let Some(output) = self.edge.poll() {
                match output {
                    Output::Start { session, .. } => inputs.insert(0, Input::Answered { session }),
                    Output::Accept { request, session } => {
                        let before = self.fates.insert(request, Fate::Accepted(session, now));
                        assert_eq!(before, None, "answered twice");
                    }
                    Output::Refuse { request, reason } => {
                        let before = self.fates.insert(request, Fate::Refused(reason, now));
                        assert_eq!(before, None, "answered twice");
                    }
                    Output::Finish { session, reason } => {
                        self.ended.push((session, reason, now));
                        if self.release {
                            inputs.insert(0, Input::Released { session });
                        }
                    }
                    output => self.asked.push(output),
                }
            }
        }
    }

    /// Runs every deadline up to `until` at its own time.
    pub fn run(&mut self, until: u64) {
        while let Some(at) = self.edge.deadline().filter(|at| *at <= ms(until)) {
            self.peers.now = at.as_micros().div_ceil(1000).max(self.peers.now);
            self.input(Input::Tick);
        }
        self.peers.now = until;
    }

    pub fn post(&mut self) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.input(Input::Offer { request, endpoint: EndpointId(0) });
        request
    }

    /// A publisher that is let in now and delivers from now on.
    pub fn publish(&mut self, rhythm: Rhythm) -> SessionId {
        let request = self.post();
        let session = self.fates[&request].session();
        let from = self.peers.now;
        self.peers.publishers.insert(session, Publisher { rhythm, from, until: u64::MAX });
        session
    }

    fn kill(&mut self, session: SessionId) {
        self.peers.publishers.get_mut(&session).unwrap().until = self.peers.now;
    }

    fn fate(&self, request: RequestId) -> Option<Fate> {
        self.fates.get(&request).copied()
    }

    pub fn reasons(&self, session: SessionId) -> Vec<EndReason> {
        self.ended.iter().filter(|(each, ..)| *each == session).map(|(_, reason, _)| *reason).collect()
    }

    fn assert_nothing_left(&self) {
        let publish = self.edge.publish();
        assert_eq!((publish.session_count(), publish.unanswered(), publish.timer_count()), (0, 0, 0));
        assert!(publish.endpoints().all(|endpoint| endpoint.waiting() == 0));
        assert!(publish.endpoints().all(|endpoint| endpoint.holders().all(|holder| holder.is_none())));
    }
}

#[test]
fn w1_a_dead_publisher_is_displaced_after_dead_after() {
    let (mut stage, a) = Stage::dead_holder(10_000);
    let b = stage.post();
    stage.run(20_000);
    let Some(Fate::Accepted(b, at)) = stage.fate(b) else { panic!("{:?}", stage.fate(b)) };
    assert_eq!(at, 12_000, "the last packet of all came at 10 000 ms (audio), and dead_after is 2 s");
    assert_eq!(stage.reasons(a), [EndReason::Displaced]);
    assert_ne!(a, b);
}

#[test]
fn w2_a_publisher_that_died_a_moment_ago_is_neither_live_nor_dead() {
    for gone_for in [1, 10, 19, 50, 99, 350, 1999] {
        let mut stage = Stage::one_slot();
        let a = stage.publish(AUDIO_VIDEO);
        stage.run(10_000);
        stage.kill(a);
        stage.run(10_000 + gone_for);
        let b = stage.post();
        stage.run(20_000);
        assert_eq!(stage.fate(b).map(|fate| matches!(fate, Fate::Accepted(_, 12_000))), Some(true), "{gone_for}");
    }
}

#[test]
fn a_publisher_dead_for_long_is_displaced_at_the_first_look() {
    let (mut stage, _) = Stage::dead_holder(10_000);
    stage.run(15_000);
    let b = stage.post();
    assert_eq!(stage.fate(b).map(|fate| matches!(fate, Fate::Accepted(_, 15_000))), Some(true));
}

#[test]
fn w3_a_healthy_publisher_is_kept_and_the_other_refused_at_the_second_look() {
    let mut stage = Stage::one_slot();
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(10_007);
    let b = stage.post();
    stage.run(60_000);
    assert_eq!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderLive, 10_107)));
    assert_eq!(stage.reasons(a), []);
}

#[test]
fn w4_a_negotiating_publisher_is_kept() {
    let mut stage = Stage::one_slot();
    let a = stage.post();
    stage.run(1_000);
    let b = stage.post();
    assert_eq!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderNegotiating, 1_000)));
    assert_eq!(stage.reasons(stage.fate(a).unwrap().session()), []);
}

#[test]
fn w5_a_sparse_video_only_publisher_is_never_displaced() {
    let mut stage = Stage::one_slot();
    let a = stage.publish(Rhythm { video: 5_000, control: 7_000, ..Rhythm::default() });
    for at in [4_990, 10_500, 14_999, 33_000] {
        stage.run(at);
        let b = stage.post();
        assert_eq!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderWithoutAudio, at)));
    }
    assert_eq!(stage.reasons(a), []);
}

#[test]
fn a_muted_microphone_with_sparse_video_is_alive_while_packets_come() {
    let mut stage = Stage::one_slot();
    let a = stage.publish(Rhythm { audio: 20, video: 1_500, control: 0 });
    stage.run(5_000);
    let publisher = stage.peers.publishers.get_mut(&a).unwrap();
    publisher.rhythm.audio = 5_000; // the microphone failed: its last packet lies ever further back
    stage.run(9_900);
    let b = stage.post();
    stage.run(20_000);
    assert!(matches!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderLive, _))), "{:?}", stage.fate(b));
    assert_eq!(stage.reasons(a), []);
}

#[test]
fn w6_a_dead_publisher_is_found_behind_a_quiet_video_only_one() {
    let mut stage = Stage::slots(2);
    let quiet = stage.publish(Rhythm { video: 8_000, ..Rhythm::default() });
    stage.run(1_000);
    let dead = stage.publish(AUDIO_VIDEO);
    stage.run(2_000);
    stage.kill(dead);
    stage.run(7_900);
    let b = stage.post();
    assert!(matches!(stage.fate(b), Some(Fate::Accepted(_, 7_900))));
    assert_eq!((stage.reasons(dead), stage.reasons(quiet)), (vec![EndReason::Displaced], vec![]));
}

#[test]
fn w7_a_late_delete_of_a_displaced_session_touches_nobody() {
    let (mut stage, a) = Stage::dead_holder(1_000);
    stage.run(4_000);
    let b = stage.publish(AUDIO_VIDEO);
    let stale = stage.edge.publish().stale();
    stage.input(Input::End { session: a, reason: EndReason::Deleted });
    stage.input(Input::Released { session: a });
    assert_eq!(stage.edge.publish().stale(), stale + 2);
    assert_eq!((stage.reasons(a), stage.reasons(b)), (vec![EndReason::Displaced], vec![]));
    assert_eq!(stage.edge.publish().endpoint(EndpointId(0)).unwrap().holders().collect::<Vec<_>>(), [Some(b)]);
}

#[test]
fn w8_nothing_of_a_finished_session_enters_the_slot() {
    let mut stage = Stage::one_slot();
    stage.release = false;
    let a = stage.publish(AUDIO_VIDEO);
    let feed = stage.edge.feed_of(EndpointId(0), 0).unwrap();
    let bytes_in = |stage: &Stage| stage.edge.feeds().status(ms(0), feed).unwrap().bytes_in;
    stage.media(a, Some(0));
    assert_eq!(bytes_in(&stage), 188);
    stage.input(Input::End { session: a, reason: EndReason::Kicked });
    stage.media(a, Some(0));
    stage.input(Input::Released { session: a });
    stage.media(a, Some(0));
    assert_eq!(bytes_in(&stage), 188);
}

#[test]
fn w11_of_posts_in_one_moment_as_many_win_as_slots_came_free() {
    for (slots, posts) in [(1, 2), (1, 10), (2, 3), (3, 10)] {
        let mut stage = Stage::slots(slots);
        let old: Vec<_> = (0..slots).map(|_| stage.publish(AUDIO_VIDEO)).collect();
        stage.run(5_000);
        old.iter().for_each(|session| stage.kill(*session));
        let requests: Vec<_> = (0..posts).map(|_| stage.post()).collect();
        stage.run(14_000);
        let won = requests.iter().filter(|request| matches!(stage.fate(**request), Some(Fate::Accepted(..)))).count();
        assert_eq!(won, slots as usize, "{slots} slots, {posts} posts");
        assert!(requests.iter().all(|request| stage.fate(*request).is_some()));
        assert_eq!(stage.ended.len(), slots as usize, "winners are not displaced by losers");
    }
}

#[test]
fn w12_a_client_that_hangs_up_leaves_nothing() {
    let (mut stage, a) = Stage::dead_holder(5_000);
    let b = stage.post();
    stage.run(5_500);
    stage.input(Input::Hangup { request: b });
    stage.run(6_900);
    assert_eq!((stage.fate(b), stage.reasons(a)), (None, vec![]), "nobody waits, so nobody is displaced");
    stage.run(60_000);
    assert_eq!(stage.reasons(a), [EndReason::Inactive]);
    stage.assert_nothing_left();
}

#[test]
fn a_client_that_hangs_up_while_it_is_negotiated_with_gives_its_slot_back() {
    let mut stage = Stage::one_slot();
    let request = RequestId(77);
    stage.edge.handle(ms(0), Input::Offer { request, endpoint: EndpointId(0) }, &mut stage.peers);
    while stage.edge.poll().is_some() {}
    stage.input(Input::Hangup { request });
    assert_eq!(stage.ended.iter().map(|(_, reason, _)| *reason).collect::<Vec<_>>(), [EndReason::ClientGone]);
    assert_eq!(stage.fate(request), None);
    stage.assert_nothing_left();
}

#[test]
fn w13_a_client_that_never_sends_media_gives_its_slot_back() {
    let mut stage = Stage::one_slot();
    let a = stage.post();
    let session = stage.fate(a).unwrap().session();
    stage.run(14_999);
    assert_eq!(stage.reasons(session), []);
    stage.run(15_000);
    assert_eq!(stage.reasons(session), [EndReason::SetupTimeout]);
    stage.assert_nothing_left();
}

#[test]
fn w16_pauses_shorter_than_the_watchdog_are_nobodys_business() {
    let mut stage = Stage::one_slot();
    let a = stage.publish(AUDIO_VIDEO);
    for round in 1..20 {
        stage.run(round * 5_000);
        stage.kill(a);
        stage.run(round * 5_000 + 3_000);
        let from = stage.peers.now;
        stage.peers.publishers.insert(a, Publisher { rhythm: AUDIO_VIDEO, from, until: u64::MAX });
    }
    assert_eq!(stage.reasons(a), []);
}

#[test]
fn the_watchdog_fires_at_its_time() {
    let (mut stage, a) = Stage::dead_holder(4_000);
    stage.run(13_999);
    assert_eq!(stage.reasons(a), []);
    stage.run(30_000);
    assert_eq!(stage.ended, [(a, EndReason::Inactive, 14_000)]);
    stage.assert_nothing_left();
}

#[test]
fn a_session_ends_with_the_first_reason_only() {
    let mut stage = Stage::one_slot();
    stage.release = false;
    let a = stage.publish(AUDIO_VIDEO);
    stage.input(Input::End { session: a, reason: EndReason::DtlsClosed });
    stage.input(Input::End { session: a, reason: EndReason::Deleted });
    stage.run(60_000);
    stage.input(Input::Drain);
    assert_eq!(stage.reasons(a), [EndReason::DtlsClosed]);
    let notes = stage.asked.iter().filter(|each| matches!(each, Output::Note(Note::SessionEnded { .. }))).count();
    assert_eq!(notes, 1);
}

#[test]
fn a_finished_holder_is_waited_for_until_its_slot_is_released() {
    let mut stage = Stage::one_slot();
    stage.release = false;
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(1_000);
    stage.input(Input::End { session: a, reason: EndReason::Deleted });
    let b = stage.post();
    stage.run(2_500);
    assert_eq!(stage.fate(b), None);
    stage.input(Input::Released { session: a });
    assert!(matches!(stage.fate(b), Some(Fate::Accepted(_, 2_500))));
}

#[test]
fn a_slot_that_is_never_released_ends_the_wait_at_its_time() {
    let mut stage = Stage::one_slot();
    stage.release = false;
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(1_000);
    stage.input(Input::End { session: a, reason: EndReason::Deleted });
    let b = stage.post();
    stage.run(60_000);
    assert_eq!(stage.fate(b), Some(Fate::Refused(RefuseReason::TakeoverTimeout, 4_000)));
}

#[test]
fn a_holder_that_goes_on_in_time_is_not_displaced() {
    let (mut stage, a) = Stage::dead_holder(5_000);
    let b = stage.post();
    stage.run(6_900);
    stage.peers.publishers.insert(a, Publisher { rhythm: AUDIO_VIDEO, from: 1_000, until: u64::MAX });
    stage.run(20_000);
    assert!(matches!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderLive, 6_900..=7_000))));
    assert_eq!(stage.reasons(a), []);
}

#[test]
fn a_driver_that_comes_late_still_lets_the_right_one_in() {
    let (mut stage, a) = Stage::dead_holder(5_000);
    let b = stage.post();
    stage.peers.now = 9_000;
    stage.input(Input::Tick);
    assert!(matches!(stage.fate(b), Some(Fate::Accepted(_, 9_000))), "{:?}", stage.fate(b));
    assert_eq!(stage.reasons(a), [EndReason::Displaced]);
}

#[test]
fn refuse_keeps_a_dead_holder_until_its_watchdog() {
    let mut stage = Stage::new(Endpoint { takeover: Takeover::Refuse, ..Endpoint::default() });
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(5_000);
    stage.kill(a);
    stage.run(14_000);
    let b = stage.post();
    assert_eq!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderLive, 14_000)));
    stage.run(15_000);
    assert_eq!(stage.reasons(a), [EndReason::Inactive]);
    let c = stage.post();
    assert!(matches!(stage.fate(c), Some(Fate::Accepted(..))));
}

#[test]
fn newest_wins_lets_the_last_one_in() {
    let mut stage = Stage::new(Endpoint { takeover: Takeover::NewestWins, ..Endpoint::default() });
    stage.release = false;
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(1_000);
    let (b, c) = (stage.post(), stage.post());
    assert_eq!(stage.reasons(a), [EndReason::Displaced]);
    stage.input(Input::Released { session: a });
    assert!(matches!(stage.fate(c), Some(Fate::Accepted(..))));
    assert_eq!(stage.fate(b), Some(Fate::Refused(RefuseReason::HolderNegotiating, 1_000)));
}

#[test]
fn posts_that_wait_are_bounded() {
    let (mut stage, _) = Stage::dead_holder(1_000);
    let waiting: Vec<_> = (0..WAITING_LIMIT).map(|_| stage.post()).collect();
    let one_more = stage.post();
    assert_eq!(stage.fate(one_more), Some(Fate::Refused(RefuseReason::TooManyWaiting, 1_000)));
    assert!(waiting.iter().all(|request| stage.fate(*request).is_none()));
}

#[test]
fn drain_answers_all_ends_all_and_lets_nobody_in() {
    let mut stage = Stage::slots(2);
    let a = stage.publish(AUDIO_VIDEO);
    let b = stage.publish(AUDIO_VIDEO);
    stage.run(5_000);
    stage.kill(a);
    stage.kill(b);
    let waiting = stage.post();
    stage.input(Input::Drain);
    assert_eq!(stage.fate(waiting), Some(Fate::Refused(RefuseReason::Draining, 5_000)));
    assert_eq!((stage.reasons(a), stage.reasons(b)), (vec![EndReason::Shutdown], vec![EndReason::Shutdown]));
    let late = stage.post();
    assert_eq!(stage.fate(late), Some(Fate::Refused(RefuseReason::Draining, 5_000)));
    stage.assert_nothing_left();
}

#[test]
fn an_offer_that_cannot_be_negotiated_is_answered_and_frees_its_slot() {
    let mut stage = Stage::one_slot();
    let request = RequestId(5);
    stage.edge.handle(ms(0), Input::Offer { request, endpoint: EndpointId(0) }, &mut stage.peers);
    let Some(Output::Start { session, .. }) = stage.edge.poll() else { panic!("no start") };
    while stage.edge.poll().is_some() {}
    stage.input(Input::End { session, reason: EndReason::NegotiationFailed });
    assert_eq!(stage.fate(request), Some(Fate::Refused(RefuseReason::NegotiationFailed, 0)));
    stage.assert_nothing_left();
}

#[test]
fn requests_and_endpoints_that_make_no_sense_change_nothing() {
    let mut stage = Stage::one_slot();
    let lost = RequestId(9);
    stage.input(Input::Offer { request: lost, endpoint: EndpointId(7) });
    assert_eq!(stage.fate(lost), Some(Fate::Refused(RefuseReason::NotFound, 0)));
    stage.input(Input::Hangup { request: RequestId(1234) });
    stage.input(Input::Join { request: RequestId(10), feed: FeedId::from_parts(99, 9) });
    assert_eq!(stage.fate(RequestId(10)), Some(Fate::Refused(RefuseReason::NotFound, 0)));
    stage.assert_nothing_left();
}

fn rebuilds(stage: &Stage) -> usize {
    stage.asked.iter().filter(|each| matches!(each, Output::Rebuild { .. })).count()
}

#[test]
fn w19_a_slot_that_puts_nothing_out_is_rebuilt_and_the_publisher_kept() {
    let mut stage = Stage::one_slot();
    let a = stage.publish(AUDIO_VIDEO);
    for round in 0..1_000 {
        stage.run(round * 20);
        stage.media(a, None);
    }
    stage.run(20_000);
    assert_eq!(rebuilds(&stage), 0, "it puts out");
    stage.run(36_000);
    assert_eq!(rebuilds(&stage), 1, "it has put nothing out for 16 s");
    assert_eq!(stage.reasons(a), []);
}

#[test]
fn a_stall_is_seen_in_time_where_a_session_may_be_silent_for_long() {
    let mut stage = Stage::new(Endpoint { inactivity_timeout: Duration::from_secs(60), ..Endpoint::default() });
    let a = stage.publish(Rhythm { audio: 35, ..AUDIO_VIDEO });
    for round in 0..4_000 {
        stage.run(round * 5);
        stage.media(a, None);
    }
    stage.run(36_000);
    assert_eq!(rebuilds(&stage), 1, "it has put nothing out for 16 s");
}

#[test]
fn a_slot_owes_nothing_while_nothing_comes_in() {
    let mut stage = Stage::new(Endpoint { inactivity_timeout: Duration::from_secs(60), ..Endpoint::default() });
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(1_000);
    stage.kill(a);
    stage.media(a, None);
    stage.run(60_000);
    assert_eq!(rebuilds(&stage), 0);
}

#[test]
fn key_frames_are_asked_for_when_a_viewer_needs_one_and_not_too_often() {
    let mut stage = Stage::one_slot();
    let a = stage.publish(AUDIO_VIDEO);
    let feed = stage.edge.feed_of(EndpointId(0), 0).unwrap();
    let asked = |stage: &Stage| stage.asked.iter().filter(|each| **each == Output::KeyFrame { session: a }).count();
    let join = |stage: &mut Stage, request| stage.input(Input::Join { request: RequestId(request), feed });
    stage.run(1_000);
    join(&mut stage, 100);
    join(&mut stage, 101);
    assert_eq!(asked(&stage), 1, "two viewers within a second share one");
    stage.run(2_000);
    join(&mut stage, 102);
    assert_eq!(asked(&stage), 2);
    stage.media(a, Some(0));
    stage.run(3_500);
    join(&mut stage, 103);
    assert_eq!(asked(&stage), 2, "a recent random access point will do");
}
