use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::id::Id;

fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn settings() -> Live {
    Live { idle: ms(1000), buffer: 10, flush_interval: ms(20), fresh: ms(200), viewers: 3, ..Live::default() }
}

const WRITER: Writer = Writer::Session(Id::from_parts(0, 0));

/// One feed, driven by hand.
struct Stage {
    feeds: Feeds,
    feed: FeedId,
    out: VecDeque<Output>,
    requests: u64,
}

impl Stage {
    fn new(settings: Live) -> Self {
        let mut feeds = Feeds::new(settings);
        let feed = feeds.open();
        feeds.assign(feed, Some(WRITER));
        Stage { feeds, feed, out: VecDeque::new(), requests: 0 }
    }

    fn push(&mut self, now: Time, data: &'static str) {
        self.write(now, Bytes::from_static(data.as_bytes()), None);
    }

    fn push_key(&mut self, now: Time, data: &'static str) {
        self.write(now, Bytes::from_static(data.as_bytes()), Some(0));
    }

    fn write(&mut self, now: Time, data: Bytes, random_access: Option<u64>) {
        self.feeds.push(now, self.feed, Chunk { from: WRITER, data, random_access }, &mut self.out);
    }

    fn join(&mut self, now: Time) -> (ViewerId, Start) {
        self.requests += 1;
        let request = RequestId(self.requests);
        let start = self.feeds.join(now, request, self.feed, &mut self.out);
        match self.out.pop_back() {
            Some(Output::Joined { request: answered, viewer }) if answered == request => (viewer, start),
            other => panic!("expected Joined, got {other:?}"),
        }
    }

    fn refused(&mut self, now: Time) -> RefuseReason {
        let start = self.feeds.join(now, RequestId(0), self.feed, &mut self.out);
        assert_eq!(start, Start::Refused);
        let noted = self.out.pop_back_if(|output| matches!(output, Output::Note(Note::ViewerRefused { .. })));
        match self.out.pop_back() {
            Some(Output::Refuse { reason: RefuseReason::TooManyViewers, .. }) if noted.is_none() => panic!("no note"),
            Some(Output::Refuse { request: RequestId(0), reason }) => reason,
            other => panic!("expected Refuse, got {other:?}"),
        }
    }

    fn tick(&mut self, now: Time) {
        self.feeds.tick(now, &mut self.out);
    }

    fn read(&self, viewer: ViewerId) -> Vec<u8> {
        self.feeds.unsent(viewer).collect::<Vec<_>>().concat()
    }

    fn outputs(&mut self) -> Vec<Output> {
        self.out.drain(..).collect()
    }

    fn status(&self) -> FeedStatus {
        self.feeds.status(Time::ZERO, self.feed).unwrap()
    }
}

fn ended(feed: FeedId, viewer: ViewerId, reason: ViewerEnd, lasted: Duration, sent: u64) -> [Output; 2] {
    let lasted = lasted.as_micros() as u64;
    [Output::ViewerEnd { viewer, reason }, Output::Note(Note::ViewerEnded { feed, viewer, reason, lasted, sent })]
}

#[test]
fn a_viewer_starts_at_the_newest_random_access_point_when_that_is_fresh() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "ab");
    stage.push_key(at(100), "cd");
    stage.push(at(150), "e");
    let (viewer, start) = stage.join(at(300));
    assert_eq!(start, Start::Now);
    assert_eq!(stage.read(viewer), b"cde");
    stage.feeds.sent(viewer, 2);
    stage.push(at(310), "fg");
    assert_eq!(stage.read(viewer), b"efg");
}

#[test]
fn a_viewer_waits_for_a_fresh_start_and_gets_it_at_once() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "ab");
    let (viewer, start) = stage.join(at(201));
    assert_eq!(start, Start::KeyFrameWanted);
    assert_eq!(stage.feeds.viewers(stage.feed).collect::<Vec<_>>(), [viewer]);
    stage.push(at(300), "c");
    assert!(stage.read(viewer).is_empty());
    assert_eq!(stage.outputs(), [], "nobody reads, so nobody is told");
    stage.push_key(at(301), "de");
    assert_eq!(stage.outputs(), [Output::Ready { feed: stage.feed }]);
    assert_eq!(stage.read(viewer), b"de");
}

#[test]
fn an_old_start_has_to_do_when_no_new_one_comes() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "ab");
    let (first, _) = stage.join(at(300));
    let (second, _) = stage.join(at(300));
    assert_eq!(stage.feeds.deadline(), Some(at(500)));
    stage.push(at(400), "c");
    stage.tick(at(499));
    assert!(stage.read(first).is_empty());
    stage.tick(at(500));
    assert_eq!((stage.read(first), stage.read(second)), (b"abc".to_vec(), b"abc".to_vec()));
    assert_eq!(stage.outputs(), [Output::Ready { feed: stage.feed }], "one for both");
}

#[test]
fn an_old_picture_is_not_shown_for_a_live_one() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "ab");
    let (viewer, _) = stage.join(at(300));
    stage.tick(at(500));
    assert!(stage.read(viewer).is_empty(), "nothing has come in for longer than `fresh`");
    stage.push(at(650), "c");
    stage.tick(at(700));
    assert_eq!(stage.read(viewer), b"abc", "it flows again, and the old start has to do");
}

#[test]
fn a_wait_is_not_missed_when_idle_is_shorter() {
    let mut stage = Stage::new(Live { idle: ms(100), ..settings() });
    stage.push_key(at(0), "ab");
    let (viewer, _) = stage.join(at(300));
    stage.push(at(390), "c");
    stage.tick(at(400));
    stage.push(at(480), "d");
    stage.tick(at(490));
    assert_eq!(stage.feeds.deadline(), Some(at(500)));
    stage.tick(at(500));
    assert_eq!(stage.read(viewer), b"abcd");
}

#[test]
fn a_viewer_waits_on_when_there_is_no_start_at_all() {
    let mut stage = Stage::new(settings());
    let (viewer, start) = stage.join(at(0));
    assert_eq!(start, Start::KeyFrameWanted);
    stage.tick(at(200));
    stage.push(at(900), "abc");
    stage.tick(at(1500));
    assert!(stage.read(viewer).is_empty());
    stage.push_key(at(1600), "d");
    assert_eq!(stage.read(viewer), b"d");
}

#[test]
fn small_chunks_are_gathered() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "a");
    stage.join(at(0));
    stage.push(at(10), "b");
    stage.push(at(25), "c");
    assert_eq!(stage.feeds.deadline(), Some(at(30)));
    stage.tick(at(29));
    assert_eq!(stage.outputs(), []);
    stage.tick(at(30));
    stage.tick(at(60));
    assert_eq!(stage.outputs(), [Output::Ready { feed: stage.feed }]);
}

#[test]
fn nothing_is_gathered_for_nobody() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "a");
    assert_eq!(stage.feeds.deadline(), Some(at(1000)), "the stream is let go of");
    let (viewer, _) = stage.join(at(0));
    stage.push(at(10), "b");
    assert_eq!(stage.feeds.deadline(), Some(at(30)));
    stage.feeds.leave(at(10), viewer);
    assert_eq!(stage.feeds.deadline(), Some(at(1000)));
}

#[test]
fn without_an_interval_every_chunk_is_ready_at_once() {
    let mut stage = Stage::new(Live { flush_interval: Duration::ZERO, ..settings() });
    stage.push_key(at(0), "a");
    stage.join(at(0));
    stage.push(at(0), "b");
    stage.push(at(0), "c");
    assert_eq!(stage.outputs(), [Output::Ready { feed: stage.feed }, Output::Ready { feed: stage.feed }]);
}

#[test]
fn a_viewer_is_ended_when_the_ring_overtakes_it() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "abcd");
    let (slow, _) = stage.join(at(0));
    let (quick, _) = stage.join(at(0));
    stage.feeds.sent(slow, 3);
    stage.feeds.sent(quick, 4);
    stage.push(at(10), "efghij");
    stage.tick(at(30));
    stage.outputs();
    assert_eq!(stage.read(slow), b"defghij", "as far behind as the ring reaches");
    stage.push(at(40), "k");
    assert_eq!(stage.outputs(), ended(stage.feed, slow, ViewerEnd::Slow, ms(40), 3));
    assert!(stage.read(slow).is_empty());
    assert_eq!(stage.read(quick), b"efghijk");
    stage.push(at(50), "lmnop");
    assert_eq!(stage.outputs(), ended(stage.feed, quick, ViewerEnd::Slow, ms(50), 4), "the quick one stopped too");
    assert_eq!(stage.status().ends.of(ViewerEnd::Slow), 2);
}

#[test]
fn a_viewer_that_keeps_up_outlasts_the_ring() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "ab");
    let (viewer, _) = stage.join(at(0));
    for step in 1..100 {
        stage.push(at(step), "cde");
        let unread = stage.read(viewer).len() as u64;
        stage.feeds.sent(viewer, unread - 2);
    }
    assert_eq!(stage.status().viewers, 1);
    assert_eq!(stage.status().bytes_out, 2 + 99 * 3 - 2);
}

#[test]
fn a_viewer_of_a_silent_feed_is_ended_and_pushes_or_its_join_renew_its_time() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "a");
    let (early, _) = stage.join(at(100));
    stage.push(at(300), "b");
    let (late, _) = stage.join(at(800));
    stage.tick(at(1299));
    stage.outputs();
    stage.tick(at(1300));
    assert_eq!(stage.outputs(), ended(stage.feed, early, ViewerEnd::Idle, ms(1200), 0));
    stage.tick(at(1799));
    assert_eq!(stage.outputs(), []);
    assert_eq!(stage.feeds.deadline(), Some(at(1800)));
    stage.tick(at(1800));
    assert_eq!(stage.outputs(), ended(stage.feed, late, ViewerEnd::Idle, ms(1000), 0));
    assert_eq!(stage.feeds.deadline(), Some(at(2800)), "nobody watches and nobody sends");
    stage.tick(at(2799));
    assert_eq!(stage.status().span, 2);
    stage.tick(at(2800));
    assert_eq!((stage.status().span, stage.status().bytes_in, stage.feeds.deadline()), (0, 2, None));
}

#[test]
fn a_stream_that_comes_or_is_watched_is_kept() {
    let mut stage = Stage::new(settings());
    for now in (0..5000).step_by(500) {
        stage.push_key(at(now), "a");
        stage.tick(at(now));
    }
    assert_eq!(stage.status().span, 10);
    let (viewer, _) = stage.join(at(4600));
    stage.tick(at(5599));
    assert_eq!(stage.status().span, 10);
    stage.feeds.leave(at(5599), viewer);
    stage.tick(at(6598));
    assert_eq!(stage.status().span, 10);
    stage.tick(at(6599));
    assert_eq!(stage.status().span, 0);
    stage.push_key(at(7000), "b");
    let (viewer, start) = stage.join(at(7001));
    assert_eq!((start, stage.read(viewer)), (Start::Now, b"b".to_vec()), "its offsets go on");
}

#[test]
fn a_feed_has_room_for_so_many_viewers() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "a");
    let (first, _) = stage.join(at(0));
    stage.join(at(0));
    stage.join(at(900));
    assert_eq!(stage.refused(at(900)), RefuseReason::TooManyViewers);
    stage.feeds.leave(at(0), first);
    stage.join(at(900));
    assert_eq!(stage.refused(at(900)), RefuseReason::TooManyViewers);
    let other = stage.feeds.open();
    stage.feeds.assign(other, Some(WRITER));
    assert_eq!(stage.feeds.join(at(900), RequestId(9), other, &mut stage.out), Start::KeyFrameWanted);
}

#[test]
fn draining_ends_everybody_once_and_lets_nobody_in() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "a");
    let (viewer, _) = stage.join(at(100));
    let (waiting, _) = stage.join(at(500));
    stage.feeds.drain(at(600), &mut stage.out);
    let mut expected = ended(stage.feed, viewer, ViewerEnd::Shutdown, ms(500), 0).to_vec();
    expected.extend(ended(stage.feed, waiting, ViewerEnd::Shutdown, ms(100), 0));
    assert_eq!(stage.outputs(), expected);
    stage.feeds.drain(at(600), &mut stage.out);
    assert_eq!(stage.outputs(), []);
    assert_eq!(stage.refused(at(600)), RefuseReason::Draining);
    assert_eq!(stage.feeds.deadline(), Some(at(1000)), "the stream is let go of, should it take so long");
}

#[test]
fn what_comes_late_changes_nothing_and_is_counted() {
    let mut stage = Stage::new(settings());
    stage.push_key(at(0), "abc");
    let (first, _) = stage.join(at(0));
    stage.feeds.leave(at(0), first);
    let (second, _) = stage.join(at(0));
    assert_eq!(second.index(), first.index());
    stage.feeds.leave(at(0), first);
    stage.feeds.sent(first, 1);
    assert_eq!(stage.read(second), b"abc");
    assert_eq!(stage.feeds.ignored(), 2);
    stage.feeds.sent(second, 4);
    assert_eq!((stage.status().bytes_out, stage.feeds.ignored()), (3, 3), "no more than there was");
    stage.push(at(1), "");
    let unknown = FeedId::from_parts(7, 0);
    let chunk = Chunk { from: WRITER, data: Bytes::from_static(b"x"), random_access: Some(0) };
    stage.feeds.push(at(1), unknown, chunk, &mut stage.out);
    assert_eq!(stage.feeds.join(at(1), RequestId(0), unknown, &mut stage.out), Start::Refused);
    assert_eq!(stage.feeds.ignored(), 5);
    assert_eq!(stage.status().ends.of(ViewerEnd::Left), 1);
}

#[test]
fn status_tells_what_is_there() {
    let mut stage = Stage::new(settings());
    assert_eq!(stage.status().last_push, None);
    stage.push_key(at(0), "abcdef");
    stage.push(at(50), "ghijk");
    stage.push_key(at(60), "l");
    stage.push(at(100), "mn");
    stage.join(at(270));
    let status = stage.feeds.status(at(300), stage.feed).unwrap();
    let expected = FeedStatus {
        viewers: 1,
        waiting: 1,
        polling: 0,
        bytes_in: 14,
        bytes_out: 0,
        span: 8,
        last_push: Some(at(100)),
        random_access_age: Some(ms(240)),
        ends: Ends::default(),
    };
    assert_eq!(status, expected);
}

/// The rules again, by looking at everything every time.
struct Model {
    settings: Live,
    bytes: Vec<u8>,
    chunks: Vec<ModelChunk>,
    viewers: Vec<ModelViewer>,
    flush: Option<Time>,
    draining: bool,
    left: Option<Time>,
    /// How many bytes were let go of while nobody watched.
    released: usize,
}

struct ModelChunk {
    from: usize,
    came: Time,
    random_access: bool,
}

struct ModelViewer {
    id: ViewerId,
    joined: Time,
    until: Option<Time>,
    from: Option<usize>,
    read: usize,
}

impl Model {
    fn tail(&self) -> usize {
        let fits = |chunk: &&ModelChunk| self.bytes.len() - chunk.from <= self.settings.buffer;
        self.chunks.iter().find(fits).or(self.chunks.last()).map_or(0, |chunk| chunk.from).max(self.released)
    }

    /// When what is kept is of no use any more.
    fn release_at(&self) -> Option<Time> {
        let kept = self.viewers.is_empty() && self.released < self.bytes.len();
        let last = self.chunks.last().filter(|_| kept)?.came;
        Some(self.left.map_or(last, |left| left.max(last)) + self.settings.idle)
    }

    fn point(&self) -> Option<&ModelChunk> {
        self.chunks.iter().rev().find(|chunk| chunk.random_access && chunk.from >= self.tail())
    }

    fn idle_at(&self, viewer: &ModelViewer) -> Time {
        self.chunks.last().map_or(viewer.joined, |chunk| chunk.came.max(viewer.joined)) + self.settings.idle
    }

    fn deadline(&self) -> Option<Time> {
        let idle = self.viewers.iter().map(|viewer| self.idle_at(viewer));
        let waits = self.viewers.iter().filter_map(|viewer| viewer.until);
        idle.chain(waits).chain(self.flush).chain(self.release_at()).min()
    }

    fn reads(&self) -> bool {
        self.viewers.iter().any(|viewer| viewer.from.is_some())
    }

    /// Everything that is due at `now`: who ends, and whether the feed is ready.
    fn tick(&mut self, now: Time) -> (Vec<(ViewerId, ViewerEnd)>, bool) {
        if self.release_at().is_some_and(|due| due <= now) {
            self.released = self.bytes.len();
        }
        let ids: Vec<_> = self.viewers.iter().filter(|viewer| self.idle_at(viewer) <= now).map(|v| v.id).collect();
        self.viewers.retain(|viewer| !ids.contains(&viewer.id));
        if !ids.is_empty() {
            self.left = Some(now);
        }
        let mut ready = self.flush.is_some_and(|due| due <= now);
        let flows = self.chunks.last().is_some_and(|chunk| now.since(chunk.came) <= self.settings.fresh);
        let point = self.point().map(|chunk| chunk.from).filter(|_| flows);
        for viewer in &mut self.viewers {
            if viewer.until.is_some_and(|until| until <= now) {
                viewer.until = point.is_none().then(|| now + self.settings.fresh.max(ms(100)));
                viewer.from = point;
                ready |= point.is_some();
            }
        }
        if ready || !self.reads() {
            self.flush = None;
        }
        (ids.into_iter().map(|id| (id, ViewerEnd::Idle)).collect(), ready && self.reads())
    }

    fn push(&mut self, now: Time, data: &[u8], random_access: bool) -> (Vec<(ViewerId, ViewerEnd)>, bool) {
        let from = self.bytes.len();
        self.bytes.extend(data);
        self.chunks.push(ModelChunk { from, came: now, random_access });
        let mut ready = false;
        for viewer in self.viewers.iter_mut().filter(|viewer| viewer.from.is_none() && random_access) {
            viewer.from = Some(from);
            viewer.until = None;
            ready = true;
        }
        let tail = self.tail();
        let slow = |viewer: &ModelViewer| viewer.from.is_some_and(|from| from + viewer.read < tail);
        let ids: Vec<_> = self.viewers.iter().filter(|viewer| slow(viewer)).map(|viewer| viewer.id).collect();
        self.viewers.retain(|viewer| !slow(viewer));
        if !ids.is_empty() {
            self.left = Some(now);
        }
        if self.reads() {
            ready |= self.settings.flush_interval.is_zero();
            if !ready && self.flush.is_none() {
                self.flush = Some(now + self.settings.flush_interval);
            }
        }
        if ready || !self.reads() {
            self.flush = None;
        }
        (ids.into_iter().map(|id| (id, ViewerEnd::Slow)).collect(), ready)
    }

    fn check(&self, stage: &Stage) {
        let mut ids: Vec<_> = stage.feeds.viewers(stage.feed).collect();
        ids.sort();
        let mut expected: Vec<_> = self.viewers.iter().map(|viewer| viewer.id).collect();
        expected.sort();
        assert_eq!(ids, expected);
        for viewer in &self.viewers {
            let from = viewer.from.map_or(self.bytes.len(), |from| from + viewer.read);
            assert_eq!(stage.read(viewer.id), self.bytes[from..], "{}", viewer.id);
            let starts = |from| self.chunks.iter().any(|chunk| chunk.random_access && chunk.from == from);
            assert!(viewer.from.is_none_or(starts));
        }
        assert!(stage.feeds.deadline() <= self.deadline() || self.deadline().is_none(), "a deadline would be missed");
        assert_eq!(stage.status().span as usize, self.bytes.len() - self.tail());
        if self.viewers.is_empty() && self.release_at().is_none() {
            assert_eq!(stage.feeds.deadline(), None, "nobody is left, so nothing is waited for");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { length: usize, random_access: bool },
    Join,
    Sent { viewer: usize, bytes: u64 },
    Leave { viewer: usize },
    Pass { ms: u64 },
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1usize..60, prop::bool::weighted(0.3)).prop_map(|(length, random_access)| Step::Push { length, random_access }),
        4 => Just(Step::Join),
        8 => (0usize..8, 0u64..80).prop_map(|(viewer, bytes)| Step::Sent { viewer, bytes }),
        1 => (0usize..8).prop_map(|viewer| Step::Leave { viewer }),
        6 => prop_oneof![0u64..30, 0u64..1200].prop_map(|ms| Step::Pass { ms }),
    ];
    (prop::collection::vec(step, 0..80), prop::bool::weighted(0.2)).prop_map(|(mut steps, drain)| {
        if drain {
            steps.insert(steps.len() / 2, Step::Drain);
        }
        steps
    })
}

/// Outputs as the model tells them: who ended, each with its note, and how often the feed was ready.
fn told(stage: &mut Stage) -> (Vec<(ViewerId, ViewerEnd)>, usize) {
    let outputs = stage.outputs();
    let ready = outputs.iter().filter(|output| matches!(output, Output::Ready { .. })).count();
    let mut ends = Vec::new();
    let mut notes = Vec::new();
    for output in outputs {
        match output {
            Output::ViewerEnd { viewer, reason } => ends.push((viewer, reason)),
            Output::Note(Note::ViewerEnded { viewer, reason, .. }) => notes.push((viewer, reason)),
            Output::Ready { .. } => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(ends, notes);
    ends.sort();
    (ends, ready)
}

fn agree(stage: &mut Stage, (mut ends, ready): (Vec<(ViewerId, ViewerEnd)>, bool)) {
    ends.sort();
    assert_eq!(told(stage), (ends, usize::from(ready)));
}

fn run(settings: Live, steps: Vec<Step>) {
    let mut stage = Stage::new(settings.clone());
    let (bytes, chunks, viewers) = (Vec::new(), Vec::new(), Vec::new());
    let mut model = Model { settings, bytes, chunks, viewers, flush: None, draining: false, left: None, released: 0 };
    let mut now = at(5);
    for step in steps {
        match step {
            Step::Push { length, random_access } => {
                let data: Vec<u8> = (0..length).map(|i| (model.bytes.len() + i) as u8).collect();
                stage.write(now, Bytes::copy_from_slice(&data), random_access.then_some(0));
                agree(&mut stage, model.push(now, &data, random_access));
            }
            Step::Join if model.draining => assert_eq!(stage.refused(now), RefuseReason::Draining),
            Step::Join if model.viewers.len() == model.settings.viewers => {
                assert_eq!(stage.refused(now), RefuseReason::TooManyViewers);
            }
            Step::Join => {
                let (id, start) = stage.join(now);
                let fresh = model.point().filter(|point| now.since(point.came) <= model.settings.fresh);
                let from = fresh.map(|point| point.from);
                assert_eq!(start, if from.is_some() { Start::Now } else { Start::KeyFrameWanted });
                let until = from.is_none().then_some(now + model.settings.fresh);
                model.viewers.push(ModelViewer { id, joined: now, until, from, read: 0 });
            }
            Step::Sent { viewer, bytes } => {
                if let Some(viewer) = model.viewers.get_mut(viewer) {
                    stage.feeds.sent(viewer.id, bytes);
                    if let Some(from) = viewer.from {
                        viewer.read = (viewer.read + bytes as usize).min(model.bytes.len() - from);
                    }
                }
            }
            Step::Leave { viewer } if viewer < model.viewers.len() => {
                stage.feeds.leave(now, model.viewers.remove(viewer).id);
                model.left = Some(now);
                if !model.reads() {
                    model.flush = None;
                }
            }
            Step::Leave { .. } => {}
            Step::Pass { ms: span } => {
                let then = now + ms(span);
                while let Some(due) = model.deadline().filter(|due| *due <= then) {
                    now = now.max(due);
                    stage.tick(now);
                    agree(&mut stage, model.tick(now));
                    model.check(&stage);
                }
                now = then;
                stage.tick(now);
                agree(&mut stage, (Vec::new(), false));
            }
            Step::Drain => {
                model.draining = true;
                stage.feeds.drain(now, &mut stage.out);
                let ends = model.viewers.drain(..).map(|viewer| (viewer.id, ViewerEnd::Shutdown)).collect();
                model.flush = None;
                model.left = if Vec::is_empty(&ends) { model.left } else { Some(now) };
                agree(&mut stage, (ends, false));
            }
        }
        model.check(&stage);
    }
    for viewer in model.viewers.drain(..) {
        stage.feeds.leave(now, viewer.id);
        model.left = Some(now);
    }
    model.flush = None;
    model.check(&stage);
    assert_eq!(stage.status().viewers, 0);
}

proptest! {
    #[test]
    fn agrees_with_the_rules_applied_to_everything(steps in steps(), buffer in 0usize..200, flush in 0u64..3, idle in 1u64..5) {
        run(Live { buffer, idle: ms(idle * 70), flush_interval: ms(flush * 10), ..settings() }, steps);
    }
}

#[test]
fn only_who_may_write_writes() {
    let mut stage = Stage::new(settings());
    let other = Writer::Source(Id::from_parts(0, 0));
    let bytes_in = |stage: &Stage| stage.feeds.status(at(0), stage.feed).unwrap().bytes_in;
    let chunk = |from| Chunk { from, data: Bytes::from_static(b"abc"), random_access: None };
    stage.feeds.push(at(0), stage.feed, chunk(other), &mut stage.out);
    assert_eq!((bytes_in(&stage), stage.feeds.ignored()), (0, 1));
    stage.feeds.assign(stage.feed, Some(other));
    stage.feeds.push(at(0), stage.feed, chunk(other), &mut stage.out);
    stage.push(at(0), "ab");
    assert_eq!((bytes_in(&stage), stage.feeds.ignored()), (3, 2));
    stage.feeds.assign(stage.feed, None);
    stage.feeds.push(at(0), stage.feed, chunk(other), &mut stage.out);
    assert_eq!((bytes_in(&stage), stage.feeds.ignored()), (3, 3));
}

#[test]
fn a_viewer_that_takes_nothing_ends_though_it_is_not_far_behind() {
    let live = Live { progress_timeout: ms(300), idle: ms(60_000), buffer: 1 << 20, ..settings() };
    for takes in [false, true] {
        let mut stage = Stage::new(live.clone());
        stage.write(at(0), Bytes::from_static(b"k"), Some(0));
        let (viewer, _) = stage.join(at(0));
        // It is up to date while nothing comes, for as long as that takes.
        stage.feeds.sent(viewer, 1);
        for now in 1..20 {
            stage.feeds.tick(at(now * 100), &mut stage.out);
        }
        for now in 20..40 {
            stage.push(at(now * 100), "m");
            if takes && now % 2 == 0 {
                stage.feeds.sent(viewer, 1);
            }
            stage.feeds.tick(at(now * 100), &mut stage.out);
        }
        let ends: Vec<&Output> = stage.out.iter().filter(|output| matches!(output, Output::ViewerEnd { .. })).collect();
        if takes {
            assert!(ends.is_empty(), "slow, but it takes something");
        } else {
            assert_eq!(ends, [&Output::ViewerEnd { viewer, reason: ViewerEnd::Stuck }]);
        }
    }
}
