//! Rules of spec pull §2 and §3 at the very time from which they hold, and what is kept of a channel.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::round::Round;
use super::stage::{Fate, Origin, Stage, ms};
use super::{Phase, Pull};
use crate::config::{Channel, Config};
use crate::id::Table;
use crate::input::{ChannelId, FeedId, FeedKind, Loss, Note, RefuseReason};
use crate::time::Time;

const FAILS: Origin = Origin::Fails(Loss::Refused, 20);

impl Stage {
    /// Somebody comes at this time: whether held.
    fn is_held_at(&mut self, at: u64) -> bool {
        self.now = at;
        let request = self.join();
        match self.fate(request) {
            None => true,
            Some(Fate::Refused(RefuseReason::NoSource, _)) => false,
            other => panic!("{other:?}"),
        }
    }

    /// When the pause is over.
    fn next(&self) -> u64 {
        self.edge.pull().state(ChannelId(0)).unwrap().next.unwrap().as_micros() / 1000
    }
}

#[test]
fn an_end_is_remembered_until_its_pause_is_over() {
    let settings = Channel { retry_backoff_max: Duration::from_secs(3), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    stage.origins[0] = FAILS;
    stage.lose(0, Loss::Ended);
    let end = stage.now + 5_000;
    assert_eq!(stage.edge.pull().course(ChannelId(0)).unwrap().grace, Some(ms(end)), "it may begin again until then");
    stage.run(5_000);
    assert_eq!((stage.phase(), stage.noted(|note| matches!(note, Note::ChannelEnded { .. }))), (Phase::Ended, 1));
    assert_eq!(stage.edge.pull().course(ChannelId(0)).unwrap().grace, None);
    assert!(!stage.is_held_at(end + 2_999));
    assert!(stage.is_held_at(end + 3_000));
}

#[test]
fn who_comes_in_a_pause_is_held_from_no_input_timeout_on_or_when_it_is_over() {
    let paused = |chance| {
        let mut stage = Stage::of(&[FAILS]);
        stage.chance(chance);
        stage.join();
        stage.run(1_000);
        stage
    };
    let mut long = (0..=255).map(paused).find(|stage| stage.next() > 3_001).unwrap();
    assert!(!long.is_held_at(2_999), "the origin was asked at the beginning");
    assert!(long.is_held_at(3_000));
    let mut short = (0..=255).map(paused).find(|stage| stage.next() < 2_900).unwrap();
    let over = short.next();
    assert!(!short.is_held_at(over - 1));
    assert!(short.is_held_at(over));
}

#[test]
fn a_channel_has_one_deadline_while_it_is_pulled() {
    let mut stage = Stage::of(&[Origin::Mute]);
    assert_eq!(stage.edge.pull().timer_count(), 0);
    stage.join();
    assert_eq!(stage.edge.pull().timer_count(), 1);
}

#[test]
fn channels_that_are_not_those_of_the_configuration_are_refused() {
    let mut table = Table::<FeedKind, ()>::default();
    let feeds: Vec<FeedId> = (0..3).map(|_| table.insert(())).collect();
    let pull = |sources: &[u32], feeds: &[FeedId]| {
        let channels = sources.iter().map(|sources| Channel { sources: *sources, ..Channel::default() }).collect();
        let mut feeds = feeds.iter().copied();
        Pull::new(&Config { channels, ..Config::default() }, || feeds.next().unwrap())
    };
    let is_taken = |mut own: Pull, new: Pull| own.configure(new).is_some();
    let ours = || pull(&[1, 2], &feeds);
    assert!(is_taken(ours(), ours()));
    assert!(!is_taken(ours(), pull(&[1], &feeds)), "fewer channels");
    assert!(!is_taken(ours(), pull(&[1, 1], &feeds)), "fewer origins");
    assert!(!is_taken(ours(), pull(&[1, 2], &feeds[1..])), "other feeds");
    // A snapshot that was tampered with.
    let of_others = Pull { feeds: vec![feeds[1], feeds[2]], ..ours() };
    assert!(!is_taken(of_others, ours()), "feeds that are no channel's");
    let short = Pull { channels: Vec::new(), ..ours() };
    assert!(!is_taken(short, ours()), "channels without feeds");
    let mut elsewhere = ours();
    elsewhere.channels[0].feed = feeds[2];
    assert!(!is_taken(elsewhere, ours()), "a channel into another's feed");
    assert_eq!(ours().deadline(), None::<Time>);
}

#[test]
fn a_round_over_other_origins_is_refused() {
    let round = |sources, from| {
        let mut round = Round::new(sources);
        round.over(Time::ZERO, from, &Channel::default(), 0);
        round
    };
    assert!(round(2, 1).is_like(&Round::new(2)));
    for (other, of) in [(round(2, 2), 2), (round(1, 0), 2), (round(3, 0), 2)] {
        assert!(!other.is_like(&Round::new(of)), "{other:?} of {of}");
    }
    // A snapshot that was tampered with: two origins, and when one of them was asked.
    let torn = (0_usize, vec![false; 2], vec![None::<Time>; 1], 0_u32, 0_u32, false, Time::ZERO);
    let torn: Round = postcard::from_bytes(&postcard::to_allocvec(&torn).unwrap()).unwrap();
    assert!(!torn.is_like(&Round::new(2)));
}

#[test]
fn a_channel_that_was_off_makes_pauses_as_if_it_had_never_been_asked_for() {
    let mut stage = Stage::of(&[FAILS]);
    for _ in 0..6 {
        stage.join();
        stage.run(3_100);
    }
    assert!(stage.next() > stage.now + 10_000, "ever longer");
    while stage.phase() != Phase::Off {
        stage.run(1_000);
    }
    stage.join();
    stage.run(100);
    assert!(stage.next() < stage.now + 3_600, "{} at {}", stage.next(), stage.now);
}

#[test]
fn an_earlier_origin_may_take_as_long_to_show_that_it_works_as_was_configured() {
    let settings = Channel { stable_after: Duration::from_secs(20), ..Channel::default() };
    let mut stage = Stage::new(settings, &[FAILS, Origin::Good]);
    stage.viewer();
    stage.origins[0] = Origin::Good;
    stage.run(60_000);
    assert_eq!(stage.media.last().unwrap().0, 0, "longer than what nobody can start with is waited for");
}

#[test]
fn the_course_of_a_channel_says_what_is_open_and_when_each_was_asked() {
    let mut stage = Stage::of(&[FAILS, Origin::Good]);
    assert_eq!(stage.edge.pull().course(ChannelId(1)), None);
    stage.viewer();
    let course = stage.edge.pull().course(ChannelId(0)).unwrap();
    assert_eq!((course.beside, course.grace), (None, None));
    let kept = course.kept.unwrap();
    assert_eq!((kept.source, kept.index, kept.allocation, kept.wrote), (stage.of_origin(1)[0], 1, None, true));
    let opened: Vec<Option<Time>> = stage.opens.iter().map(|(_, at)| Some(ms(*at))).collect();
    assert_eq!(course.opened, opened);
}
