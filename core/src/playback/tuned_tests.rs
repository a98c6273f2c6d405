//! Live streams of a provider, whose account they hold as strongly as their strongest viewer, beside titles of the same provider.

use super::stage::{A, B, Fate, Stage, provider, user, vod, with};
use crate::config::User;
use crate::input::{Input, RefuseReason, ViewerEnd};

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
