//! Live streams of a provider, whose account they hold as strongly as their strongest viewer, beside titles of the same provider.

use alloc::vec;

use super::Place;
use super::stage::{A, B, Fate, Stage, provider, user, vod, with};
use crate::config::{Account, Config, Endpoint, Live, Provider, Strategy, User};
use crate::input::{Input, Note, RefuseReason, ViewerEnd};

fn strong(priority: i8) -> User {
    User { priority, ..user(0, 0) }
}

#[test]
fn a_live_stream_gives_way_whole_to_a_stronger_title_and_its_viewers_may_not_come_back_at_once() {
    let mut stage = Stage::new([strong(1), strong(0)], [provider(&[1])], with(&[]));
    stage.closing = 100;
    let feed = stage.tune(7);
    let (one, two) = (stage.watch(0, feed, A), stage.watch(0, feed, B));
    stage.media(feed);
    let viewers = [one, two].map(|request| stage.viewer(request));
    let film = stage.rest(1, vod(1), A);
    for viewer in viewers {
        assert!(stage.ended.contains(&(viewer, ViewerEnd::Preempted)), "{:?}", stage.ended);
    }
    assert_eq!((stage.counted(0), stage.fate(film)), (0, None));
    stage.run(100);
    assert!(stage.is_fetched(film));
    stage.run(2800);
    for address in [A, B] {
        let back = stage.watch(0, feed, address);
        assert_eq!(stage.refused(back), Some(RefuseReason::Preempted));
    }
    stage.run(100);
    let feed = stage.tune(7);
    let back = stage.watch(0, feed, A);
    assert_ne!(stage.refused(back), Some(RefuseReason::Preempted), "behind the block");
}

#[test]
fn a_live_stream_is_as_strong_as_its_strongest_viewer_that_is_still_there() {
    let mut stage = Stage::new([strong(5), strong(-5), strong(0)], [provider(&[1])], with(&[]));
    let feed = stage.tune(7);
    let (weak, strongest) = (stage.watch(0, feed, A), stage.watch(1, feed, B));
    stage.media(feed);
    let film = stage.rest(2, vod(1), A);
    assert_eq!(stage.refused(film), Some(RefuseReason::ProviderLimit));
    let viewer = stage.viewer(strongest);
    stage.input(Input::Leave { viewer });
    stage.run(1000);
    let film = stage.rest(2, vod(1), A);
    assert!(stage.is_fetched(film));
    assert!(stage.ended.contains(&(stage.viewer(weak), ViewerEnd::Preempted)));
}

#[test]
fn one_that_waits_for_its_first_media_is_as_strong_as_it_will_be() {
    let mut stage = Stage::new([strong(0), strong(5), strong(-5)], [provider(&[1])], with(&[]));
    let feed = stage.tune(7);
    let waits = stage.watch(0, feed, A);
    let weaker = stage.rest(1, vod(1), A);
    assert_eq!((stage.refused(weaker), stage.fate(waits)), (Some(RefuseReason::ProviderLimit), None));
    let stronger = stage.rest(2, vod(2), A);
    assert!(stage.is_fetched(stronger));
}

#[test]
fn what_is_kept_open_for_nobody_is_closed_for_anybody() {
    let mut stage = Stage::new([strong(0), strong(9)], [provider(&[1])], with(&[]));
    let feed = stage.tune(7);
    let watches = stage.watch(0, feed, A);
    stage.media(feed);
    let viewer = stage.viewer(watches);
    stage.input(Input::Leave { viewer });
    assert_eq!((stage.open(), stage.counted(0)), (1, 0));
    let film = stage.rest(1, vod(1), A);
    assert!(stage.is_fetched(film), "{:?}", stage.fate(film));
    stage.finish(film, ViewerEnd::Left);
    stage.run(10_000);
    stage.is_empty();
}

#[test]
fn a_stream_that_a_user_zaps_away_from_makes_room_for_a_film_of_its() {
    let strategies = with(&[crate::config::Strategy::EvictOldest]);
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], strategies);
    stage.closing = 200;
    let feed = stage.tune(7);
    let watches = stage.watch(0, feed, A);
    let film = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(watches), Some(RefuseReason::UserLimit), "it was evicted before any media came");
    assert_eq!(stage.fate(film), None);
    stage.run(200);
    assert!(matches!(stage.fate(film), Some(Fate::Fetched(_))));
}

#[test]
fn a_grace_in_vain_of_a_live_stream_is_followed_by_none_for_a_while() {
    let users = [user(0, 0), user(0, 0), user(0, 0)];
    let mut stage = Stage::new(users, [provider(&[1])], with(&[Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    let watch = |stage: &mut Stage, who: u32| {
        let feed = stage.tune(7);
        stage.watch(who, feed, A)
    };
    let first = watch(&mut stage, 1);
    stage.run(2_000);
    assert_eq!((stage.refused(first), stage.at(first)), (Some(RefuseReason::ProviderLimit), 2_000));
    stage.run(1_500);
    let again = watch(&mut stage, 1);
    assert_eq!((stage.refused(again), stage.at(again)), (Some(RefuseReason::ProviderLimit), 3_500), "at once");
    let film = stage.rest(1, vod(2), A);
    assert_eq!((stage.refused(film), stage.at(film)), (Some(RefuseReason::ProviderLimit), 3_500), "nor for a film");
    // Whoever has a grace of its own waits for both.
    let other = watch(&mut stage, 2);
    let shared = watch(&mut stage, 1);
    stage.run(1_999);
    assert_eq!((stage.fate(other), stage.fate(shared)), (None, None));
    stage.run(1);
    assert_eq!((stage.at(other), stage.at(shared)), (5_500, 5_500));
    stage.run(3_999);
    let early = watch(&mut stage, 1);
    assert_eq!(stage.at(early), 9_499);
    stage.run(1);
    let later = watch(&mut stage, 1);
    assert_eq!(stage.fate(later), None, "behind the cooldown");
}

#[test]
fn a_live_stream_that_ran_by_grace_ends_with_that_and_gave_way_to_nobody() {
    let account = Account { max_connections: 1, overlap: true, ..Account::default() };
    let overlapping = Provider { accounts: alloc::vec![account], ..Provider::default() };
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [overlapping], with(&[Strategy::GraceInstant]));
    let film = stage.rest(0, vod(1), A);
    let feed = stage.tune(7);
    let request = stage.watch(1, feed, A);
    stage.media(feed);
    let viewer = stage.viewer(request);
    stage.run(2_500);
    assert!(stage.ended.contains(&(viewer, ViewerEnd::GraceOver)), "{:?}", stage.ended);
    assert!(stage.is_fetched(film));
    let feed = stage.tune(7);
    let back = stage.watch(1, feed, A);
    assert_ne!(stage.refused(back), Some(RefuseReason::Preempted));
}

#[test]
fn whoever_is_let_in_has_the_place_of_one_that_is_refused_with_it() {
    let mut stage = Stage::of(Config {
        endpoints: vec![Endpoint { name: "one".into(), ..Endpoint::default() }],
        users: vec![user(1, 0)],
        providers: vec![provider(&[1])],
        playback: with(&[Strategy::EvictSameIpLatest, Strategy::GraceInstant]),
        live: Live { viewers: 1, ..Live::default() },
        ..Config::default()
    });
    let first = stage.play(0, 0, A);
    let feed = stage.tune(7);
    let by_grace = stage.watch(0, feed, B);
    let evicts = stage.watch(0, feed, A);
    assert!(stage.ended.contains(&(stage.viewer(first), ViewerEnd::Evicted)));
    stage.media(feed);
    assert_eq!(stage.refused(evicts), Some(RefuseReason::TooManyViewers));
    stage.viewer(by_grace);
    let started = |place| stage.noted(|note| matches!(note, Note::PlaybackStarted { place: own, .. } if *own == place));
    assert_eq!((started(Place::Normal), started(Place::Grace)), (2, 0));
}
