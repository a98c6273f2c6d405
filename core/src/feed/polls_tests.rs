//! Viewers that poll, and the segments they get, by hand and by chance.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::config::Hls;
use crate::id::Id;

pub(super) const WRAP: u64 = 1 << 33;
pub(super) const A: Writer = Writer::Session(Id::from_parts(0, 0));
pub(super) const B: Writer = Writer::Session(Id::from_parts(1, 0));

pub(super) fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn settings() -> Live {
    let hls = Hls { segment: ms(2000), window: 3, viewer_timeout: None };
    Live { buffer: 1 << 20, viewers: 4, idle: ms(60_000), hls, ..Live::default() }
}

/// One feed, driven by hand. Media comes in units of 8 bytes.
pub(super) struct Stage {
    pub feeds: Feeds,
    pub feed: FeedId,
    pub out: VecDeque<Output>,
    pub requests: u64,
    pub writer: Writer,
}

impl Stage {
    pub fn new(settings: Live) -> Self {
        let mut feeds = Feeds::new(settings);
        let feed = feeds.open();
        feeds.assign(feed, Some(A));
        Stage { feeds, feed, out: VecDeque::new(), requests: 0, writer: A }
    }

    pub fn push(&mut self, now: u64, random_access: Option<u64>) {
        self.tick(now);
        let offset = self.feeds.status(at(now), self.feed).unwrap().bytes_in;
        let data = Bytes::copy_from_slice(&offset.to_be_bytes());
        self.feeds.push(at(now), self.feed, Chunk { from: self.writer, data, random_access }, &mut self.out);
    }

    /// A random access point every `gop` ms, and one unit between two, from `from` until before `to`; the stream's time is `shift`
    /// ms ahead of ours.
    pub fn media(&mut self, from: u64, to: u64, gop: u64, shift: u64) {
        let mut now = from;
        while now < to {
            self.push(now, Some((now + shift) * 90 % WRAP));
            self.push(now + gop / 2, None);
            now += gop;
        }
    }

    pub fn switch(&mut self, writer: Writer) {
        self.writer = writer;
        self.feeds.assign(self.feed, Some(writer));
    }

    pub fn tick(&mut self, now: u64) {
        while let Some(due) = self.feeds.deadline().filter(|due| *due <= at(now)) {
            self.feeds.tick(due, &mut self.out);
        }
    }

    pub fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// Somebody who polls, and is known by `name`.
    pub fn poll(&mut self, now: u64, name: u8) -> ViewerId {
        self.tick(now);
        let request = self.request();
        self.feeds.join(at(now), request, self.feed, &mut self.out);
        let Some(Output::Joined { viewer, .. }) = self.out.pop_back() else { panic!("not let in") };
        self.feeds.poll(at(now), request, viewer, Token([name; 16]), &mut self.out);
        match self.out.pop_back() {
            Some(Output::Polls { request: answered, viewer, .. }) if answered == request => viewer,
            other => panic!("expected Polls, got {other:?}"),
        }
    }

    /// Asks for the playlist; whether it is there at once.
    pub fn ask(&mut self, now: u64, viewer: ViewerId) -> bool {
        self.tick(now);
        let request = self.request();
        self.feeds.ask_playlist(at(now), request, viewer, &mut self.out);
        let answer = Output::Playlist { request, viewer };
        self.out.pop_back_if(|output| *output == answer).is_some()
    }

    pub fn list(&self, viewer: ViewerId) -> Vec<Segment> {
        self.feeds.playlist(viewer).map(|(_, playlist)| playlist.segments.collect()).unwrap_or_default()
    }

    /// Number, milliseconds, and whether it is discontinuous.
    pub fn rows(&self, viewer: ViewerId) -> Vec<(u64, u64, bool)> {
        let row = |segment: Segment| {
            (segment.sequence, segment.duration.as_micros().div_ceil(1000) as u64, segment.discontinuity)
        };
        self.list(viewer).into_iter().map(row).collect()
    }

    pub fn outputs(&mut self) -> Vec<Output> {
        self.out.drain(..).collect()
    }

    pub fn viewers(&self) -> usize {
        self.feeds.viewers_of(self.feed)
    }
}

#[test]
fn a_segment_ends_at_the_first_random_access_point_that_is_far_enough() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.media(0, 6001, 750, 0);
    assert_eq!(stage.rows(viewer), [(0, 2250, false), (1, 2250, false)]);
    let list = stage.list(viewer);
    assert_eq!((list[0].at, list[0].end, list[1].at), (0, 48, 48), "six units, and no byte between two segments");
    let bytes: Vec<u8> = stage.feeds.bytes(stage.feed, 8, 24).unwrap().flatten().copied().collect();
    assert_eq!(bytes, [8u64.to_be_bytes(), 16u64.to_be_bytes()].concat());
}

#[test]
fn the_clock_of_the_stream_may_wrap() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    let shift = WRAP / 90 - 3000;
    stage.media(0, 8001, 2000, shift);
    assert_eq!(stage.rows(viewer), [(0, 2000, false), (1, 2000, false), (2, 2000, false), (3, 2000, false)]);
}

#[test]
fn a_jump_of_the_clock_is_a_discontinuity_and_time_is_taken_from_when_media_came() {
    for shift in [100_000, WRAP / 90 - 100_000] {
        let mut stage = Stage::new(settings());
        let viewer = stage.poll(0, 1);
        stage.media(0, 3001, 1000, 0);
        stage.media(4000, 8001, 2000, shift);
        let expected = [(0, 2000, false), (1, 1500, false), (2, 2000, true), (3, 2000, false)];
        assert_eq!(stage.rows(viewer), expected, "shift {shift}");
    }
}

#[test]
fn another_writer_is_a_discontinuity_and_the_pause_before_it_is_in_no_segment() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.media(0, 3001, 1000, 0);
    stage.tick(3600);
    stage.switch(B);
    stage.tick(10_000);
    assert!(stage.ask(10_000, viewer), "it has a list, and may wait for more");
    // Audio of the new one comes before its first key frame.
    stage.push(12_800, None);
    stage.media(13_000, 16_001, 1000, 0);
    assert_eq!(stage.rows(viewer), [(0, 2000, false), (1, 1500, false), (2, 2000, true)]);
}

#[test]
fn numbers_go_on_when_segments_leave_with_the_ring() {
    // Units come every 250 ms: the ring holds eight seconds.
    let mut stage = Stage::new(Live { buffer: 32 * 8, ..settings() });
    let viewer = stage.poll(0, 1);
    stage.media(0, 4000, 500, 0);
    stage.switch(B);
    stage.media(4000, 6001, 500, 0);
    assert_eq!(stage.rows(viewer), [(0, 2000, false), (1, 1750, false), (2, 2000, true)]);
    assert!(stage.ask(6300, viewer));
    stage.media(6500, 8001, 500, 0);
    let discontinuities = |stage: &Stage| stage.feeds.playlist(viewer).unwrap().1.discontinuities;
    assert_eq!(discontinuities(&stage), 0);
    assert_eq!(stage.feeds.segment(stage.feed, 0), None, "its first byte is gone");
    stage.media(8500, 14_001, 500, 0);
    let rows = stage.rows(viewer);
    assert_eq!(rows.first(), Some(&(4, 2000, false)), "{rows:?}");
    assert_eq!(discontinuities(&stage), 1, "it left with its segment and counts on");
}

#[test]
fn a_playlist_has_its_window_and_three_target_durations_at_least() {
    let mut stage = Stage::new(settings());
    stage.media(0, 40_001, 2000, 0);
    let viewer = stage.poll(41_500, 1);
    let rows = stage.rows(viewer);
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [14, 15, 16, 17, 18, 19], "3 × 4 s, not 3 segments");
    let mut stage = Stage::new(settings());
    stage.media(0, 40_001, 4000, 0);
    let viewer = stage.poll(42_500, 1);
    assert_eq!(stage.rows(viewer).len(), 3);
    let old = stage.list(viewer)[0].sequence - 1;
    assert!(stage.feeds.segment(stage.feed, old).is_some(), "what has left the playlist can still be had for a while");
}

#[test]
fn where_random_access_points_are_rare_one_is_asked_for_and_then_the_segment_is_cut() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.push(0, Some(0));
    let mut wanted = Vec::new();
    for now in (100..9_400).step_by(100) {
        stage.push(now, None);
        while stage.feeds.next_uncut().is_some() {
            wanted.push(now);
        }
    }
    assert_eq!(wanted[..2], [2000, 4500], "after `segment`, and when that was in vain");
    assert_eq!(stage.rows(viewer), [(0, 4400, false), (1, 4400, false)]);
    assert!(stage.ask(9_350, viewer));
    stage.push(9_400, Some(9_400 * 90));
    stage.media(10_400, 12_401, 2000, 0);
    let rows = stage.rows(viewer);
    assert_eq!(rows[2], (2, 600, false), "the next random access point ends it, however short it is");
    assert!(rows.iter().all(|row| !row.2), "{rows:?}");
}

#[test]
fn nobody_is_asked_for_random_access_points_while_nobody_polls() {
    let mut stage = Stage::new(settings());
    stage.push(0, Some(0));
    assert_eq!(stage.feeds.deadline(), Some(at(0) + settings().idle), "but for what is kept to be let go of");
    (1..300).for_each(|n| stage.push(n * 100, None));
    stage.push(30_000, Some(30_000 * 90));
    stage.media(32_000, 34_001, 2000, 0);
    let viewer = stage.poll(34_100, 1);
    assert_eq!(stage.rows(viewer), [(1, 2000, true), (2, 2000, false)], "what is too long for a playlist is in none");
}

#[test]
fn a_viewer_is_held_until_there_is_a_segment() {
    let mut stage = Stage::new(settings());
    stage.push(0, Some(0));
    let viewer = stage.poll(100, 1);
    assert!(!stage.ask(150, viewer));
    let request = RequestId(stage.requests);
    stage.push(1000, Some(90_000));
    assert!(!stage.outputs().iter().any(|output| matches!(output, Output::Playlist { .. })));
    stage.push(2000, Some(180_000));
    assert_eq!(stage.outputs(), [Output::Playlist { request, viewer }]);
    assert_eq!(stage.feeds.held(), 0);
}

#[test]
fn a_viewer_is_not_held_for_ever() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    assert!(!stage.ask(1000, viewer));
    let request = RequestId(stage.requests);
    stage.tick(8_999);
    assert_eq!(stage.outputs(), []);
    stage.tick(9_000);
    assert_eq!(stage.outputs(), [Output::Refuse { request, reason: RefuseReason::StartTimeout }]);
    assert!(!stage.ask(9_500, viewer));
    assert!(stage.feeds.hangup(RequestId(stage.requests)) && stage.feeds.held() == 0);
    assert!(!stage.feeds.hangup(RequestId(stage.requests)));
}

#[test]
fn a_viewer_counts_once_from_its_join_until_it_asks_no_more() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    assert_eq!((stage.viewers(), stage.feeds.status(at(0), stage.feed).unwrap().polling), (1, 1));
    stage.media(0, 30_001, 1000, 0);
    assert_eq!(stage.viewers(), 0, "it never came back");
    assert_eq!(stage.feeds.left(stage.feed), Some(at(12_000)), "three target durations");
    assert_eq!(stage.feeds.known(Token([1; 16])), None);
    let gone = stage.outputs();
    assert!(gone.contains(&Output::ViewerEnd { viewer, reason: ViewerEnd::Left }), "{gone:?}");
    let viewer = stage.poll(30_500, 2);
    for now in (31_000..60_000).step_by(5000) {
        stage.media(now, now + 5000, 1000, 0);
        assert!(stage.ask(now + 4600, viewer));
        stage.feeds.polled(at(now + 4700), viewer, 10);
    }
    assert_eq!(stage.viewers(), 1);
    let status = stage.feeds.status(at(60_000), stage.feed).unwrap();
    assert_eq!((status.bytes_out, status.ends.of(ViewerEnd::Left)), (60, 1));
}

#[test]
fn one_token_is_one_viewer_whoever_asks_twice_at_once() {
    let mut stage = Stage::new(settings());
    let first = stage.poll(0, 1);
    assert_eq!((stage.poll(0, 1), stage.viewers()), (first, 1));
    assert_ne!(stage.poll(0, 2), first);
    assert_eq!(stage.viewers(), 2);
    stage.feeds.leave(at(10), first);
    assert_eq!((stage.viewers(), stage.feeds.known(Token([1; 16]))), (1, None));
    // It comes back as who it was.
    let again = stage.poll(20, 1);
    assert_eq!(stage.feeds.known(Token([1; 16])), Some((again, stage.feed)));
}

#[test]
fn viewers_that_poll_take_the_places_of_viewers() {
    let mut stage = Stage::new(settings());
    for name in 0..4 {
        stage.poll(0, name);
    }
    let request = stage.request();
    assert_eq!(stage.feeds.join(at(0), request, stage.feed, &mut stage.out), Start::Refused);
    let viewers: Vec<_> = stage.feeds.viewers(stage.feed).collect();
    assert_eq!((viewers.len(), stage.feeds.viewer_count()), (4, 4));
}

#[test]
fn a_silent_feed_ends_its_viewers_and_shows_no_old_picture_to_new_ones() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.media(0, 6001, 1000, 0);
    let old = stage.list(viewer);
    for now in (7_000..66_000).step_by(4000) {
        assert!(stage.ask(now, viewer));
    }
    assert_eq!(stage.list(viewer), old, "it may go on, as it does for who reads it as it comes");
    stage.outputs();
    let new = stage.poll(60_000, 2);
    assert!(!stage.ask(60_000, new), "what lies in the ring is long past");
    stage.tick(66_500);
    assert_eq!(stage.list(viewer), [], "nothing has come for `idle`");
    let ended = stage.outputs();
    assert!(ended.contains(&Output::ViewerEnd { viewer, reason: ViewerEnd::Idle }), "{ended:?}");
    // Media comes back, on another clock.
    stage.media(67_000, 71_001, 1000, 500_000);
    assert_eq!(stage.rows(new), [(4, 2000, true), (5, 2000, false)]);
    let later = stage.poll(71_600, 3);
    assert_eq!(stage.rows(later), stage.rows(new), "nor to who comes after it");
}

#[test]
fn who_is_held_when_a_feed_ends_is_told() {
    for (end, reason) in [
        (ViewerEnd::Ended, RefuseReason::NoSource),
        (ViewerEnd::NoSource, RefuseReason::NoSource),
        (ViewerEnd::Idle, RefuseReason::StartTimeout),
    ] {
        let mut stage = Stage::new(settings());
        let viewer = stage.poll(0, 1);
        assert!(!stage.ask(10, viewer));
        let request = RequestId(stage.requests);
        stage.feeds.end_all(at(20), stage.feed, end, &mut stage.out);
        assert_eq!(stage.outputs()[..1], [Output::Refuse { request, reason }]);
        assert_eq!(
            (stage.feeds.held(), stage.viewers(), stage.feeds.deadline()),
            (0, 0, None),
            "nothing is left of it"
        );
    }
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    assert!(!stage.ask(10, viewer));
    stage.feeds.drain(at(20), &mut stage.out);
    assert!(matches!(stage.outputs()[0], Output::Refuse { reason: RefuseReason::Draining, .. }));
    assert_eq!((stage.feeds.held(), stage.feeds.deadline()), (0, None));
}

#[test]
fn nothing_is_left_of_a_feed_that_was_closed() {
    let mut stage = Stage::new(settings());
    stage.poll(0, 1);
    stage.media(0, 3001, 1000, 0);
    let feed = stage.feed;
    assert_eq!((stage.feeds.viewer_count(), stage.feeds.timer_count() > 0), (1, true));
    stage.feeds.close(at(3600), feed, &mut stage.out);
    assert_eq!((stage.feeds.viewer_count(), stage.feeds.timer_count()), (0, 0));
    assert!(stage.feeds.status(at(3600), feed).is_none());
    stage.feeds.close(at(3601), feed, &mut stage.out);
}

#[test]
fn a_feed_that_was_cleared_goes_on_with_a_discontinuity() {
    let mut stage = Stage::new(settings());
    stage.media(0, 6001, 1000, 0);
    stage.feeds.clear(stage.feed);
    let viewer = stage.poll(7_000, 1);
    stage.media(8_000, 12_001, 1000, 0);
    assert_eq!(stage.rows(viewer), [(4, 2000, true), (5, 2000, false)], "the fourth was not whole");
}

#[test]
fn no_random_access_point_is_asked_for_of_who_sends_nothing() {
    for (last, asked) in [(None, false), (Some(1), true)] {
        let mut stage = Stage::new(settings());
        stage.poll(0, 1);
        stage.push(0, Some(0));
        if let Some(last) = last {
            stage.push(last, None);
        }
        stage.tick(2000);
        assert_eq!(stage.feeds.next_uncut().is_some(), asked, "{last:?}");
    }
}

#[test]
fn what_comes_too_late_is_counted() {
    let mut stage = Stage::new(settings());
    let gone = stage.poll(0, 1);
    stage.feeds.leave(at(1), gone);
    stage.feeds.leave(at(2), gone);
    stage.feeds.polled(at(2), gone, 5);
    stage.feeds.end(at(2), gone, ViewerEnd::Ended, &mut stage.out);
    assert_eq!((stage.feeds.ignored(), stage.outputs()), (3, vec![]));
    // One that does not poll.
    let request = stage.request();
    stage.feeds.join(at(3), request, stage.feed, &mut stage.out);
    let Some(Output::Joined { viewer, .. }) = stage.out.pop_back() else { panic!("not let in") };
    stage.feeds.polled(at(4), viewer, 5);
    assert_eq!((stage.feeds.ignored(), stage.feeds.status(at(4), stage.feed).unwrap().bytes_out), (4, 0));
}

#[test]
fn late_and_wrong_calls_change_nothing() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.feeds.leave(at(1), viewer);
    stage.feeds.polled(at(2), viewer, 5);
    assert!(!stage.ask(3, viewer));
    assert!(matches!(stage.outputs()[..], [Output::Refuse { reason: RefuseReason::NotFound, .. }]));
    let request = stage.request();
    stage.feeds.poll(at(4), request, viewer, Token([2; 16]), &mut stage.out);
    assert_eq!(stage.outputs(), [Output::Refuse { request, reason: RefuseReason::NotFound }]);
    // One that polls does not begin to twice.
    let viewer = stage.poll(5, 1);
    stage.feeds.poll(at(6), request, viewer, Token([2; 16]), &mut stage.out);
    assert_eq!(stage.outputs(), [Output::Refuse { request, reason: RefuseReason::NotFound }]);
    assert_eq!((stage.viewers(), stage.feeds.ignored()), (1, 4));
}

#[derive(Clone, Debug)]
enum Step {
    /// Time passes, then a unit comes.
    Unit(u64),
    /// Time passes, then a random access point comes; the stream's time goes on by so much more than ours.
    Point(u64, u64),
    Switch,
    Silence(u64),
    Clear,
    /// The player asks and reads what is new to it.
    Ask,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..400).prop_map(Step::Unit),
        6 => (0u64..1500).prop_map(|pause| Step::Point(pause, 0)),
        1 => (0u64..1500, 0u64..WRAP / 90).prop_map(|(pause, jump)| Step::Point(pause, jump)),
        1 => Just(Step::Switch),
        1 => (1000u64..20_000).prop_map(Step::Silence),
        1 => prop_oneof![4 => Just(Step::Ask), 1 => Just(Step::Clear)],
        4 => Just(Step::Ask),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever happens to a feed: segments one after the other are its bytes, from a random access point on; numbers only grow;
    /// no duration is more than the playlist says; a playlist changes at its ends alone (RFC 8216 §6.2.1).
    #[test]
    fn segments_are_the_bytes_of_the_ring(
        steps in prop::collection::vec(step(), 1..150),
        units in 8usize..400,
        watched in any::<bool>(),
    ) {
        let mut stage = Stage::new(Live { buffer: units * 8, idle: ms(3_600_000), ..settings() });
        let (mut now, mut ahead) = (0, 0);
        let mut viewer = watched.then(|| stage.poll(0, 1));
        // What was read so far, by number; and the points that came in.
        let mut read: BTreeMap<u64, Segment> = BTreeMap::new();
        let mut points = vec![];
        let (mut front, mut passed) = (0, 0);
        for step in steps {
            match step {
                Step::Unit(pause) => {
                    now += pause;
                    stage.push(now, None);
                }
                Step::Point(pause, jump) => {
                    (now, ahead) = (now + pause, ahead + jump);
                    points.push(stage.feeds.status(at(now), stage.feed).unwrap().bytes_in);
                    stage.push(now, Some((now + ahead) * 90 % WRAP));
                }
                Step::Switch => {
                    let other = if stage.writer == A { B } else { A };
                    stage.switch(other);
                }
                Step::Silence(pause) => now += pause,
                Step::Clear => stage.feeds.clear(stage.feed),
                Step::Ask => {
                    stage.tick(now);
                    let id = viewer.filter(|id| stage.feeds.playlist(*id).is_some()).unwrap_or_else(|| stage.poll(now, 1));
                    viewer = Some(id);
                    let there = stage.ask(now, id);
                    let list = stage.list(id);
                    prop_assert_eq!(there, !list.is_empty());
                    let Some(first) = list.first() else { continue };
                    let playlist = stage.feeds.playlist(id).unwrap().1;
                    prop_assert!(first.sequence >= front, "the media sequence number went back");
                    prop_assert!(playlist.discontinuities >= passed);
                    // A segment keeps its discontinuity sequence number as long as it is listed.
                    let between = read.range(front..first.sequence).filter(|(_, segment)| segment.discontinuity).count();
                    let whole = (front..first.sequence).all(|number| read.contains_key(&number));
                    prop_assert!(!whole || playlist.discontinuities == passed + between as u64 || read.is_empty());
                    (front, passed) = (first.sequence, playlist.discontinuities);
                    for (segment, next) in list.iter().zip(list.iter().skip(1)) {
                        prop_assert_eq!(segment.sequence + 1, next.sequence);
                    }
                    for segment in list {
                        prop_assert!(!segment.duration.is_zero());
                        prop_assert!((segment.duration + ms(500)).as_secs() <= playlist.target, "{:?}", segment);
                        if let Some(same) = read.insert(segment.sequence, segment) {
                            prop_assert_eq!(same, segment, "a segment changed");
                        }
                        if let Some(before) = segment.sequence.checked_sub(1).and_then(|number| read.get(&number))
                            && !segment.discontinuity
                        {
                            prop_assert_eq!(before.end, segment.at, "bytes are missing");
                        }
                        let bytes: Vec<u8> =
                            stage.feeds.bytes(stage.feed, segment.at, segment.end).expect("listed, so kept").flatten().copied().collect();
                        let expected: Vec<u8> = (segment.at / 8..segment.end / 8).flat_map(|n| (n * 8).to_be_bytes()).collect();
                        prop_assert_eq!(bytes, expected);
                        prop_assert!(
                            !segment.discontinuity || points.contains(&segment.at),
                            "a discontinuity begins at a random access point"
                        );
                        prop_assert_eq!(stage.feeds.segment(stage.feed, segment.sequence), Some(segment));
                    }
                }
            }
        }
    }
}
