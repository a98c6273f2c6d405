//! What becomes of segments and of who polls when media stops, jumps, comes late, or is gone from the ring.

use alloc::vec;
use alloc::vec::Vec;

use super::polls_tests::{A, B, Stage, WRAP, at, ms, settings};
use super::*;
use crate::config::Hls;

#[test]
fn a_segment_whose_first_byte_left_the_ring_is_none_and_what_follows_follows_on_nothing() {
    // Units come every 500 ms: the ring holds three seconds.
    let mut stage = Stage::new(Live { buffer: 6 * 8, ..settings() });
    let viewer = stage.poll(0, 1);
    stage.push(0, Some(0));
    (1..7).for_each(|n| stage.push(n * 500, None));
    stage.media(3_500, 5_501, 1000, 0);
    assert_eq!(stage.rows(viewer), [(1, 2000, true)], "its number is not given again");
    let segment = stage.list(viewer)[0];
    assert_eq!(stage.feeds.segment(stage.feed, 1), Some(segment));
    (1..4).for_each(|n| stage.push(6_000 + n * 100, None));
    assert_eq!((stage.feeds.segment(stage.feed, 1), stage.rows(viewer).len()), (None, 0));
}

#[test]
fn a_pause_ends_a_segment_however_short_it_is() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.media(0, 1_000, 1000, 0);
    // The publisher's clock stood still meanwhile.
    stage.push(6_000, Some(1_500 * 90));
    stage.media(7_000, 8_501, 1000, WRAP / 90 - 4_500);
    assert_eq!(stage.rows(viewer)[0], (0, 1_500, false));
    let late = stage.poll(8_600, 2);
    assert!(stage.rows(late).iter().all(|row| row.0 > 0), "what lies before the pause is long past");
}

#[test]
fn a_segment_ends_where_the_media_of_its_writer_did() {
    for pause in [200, 5_000] {
        let mut stage = Stage::new(settings());
        let viewer = stage.poll(0, 1);
        stage.media(0, 3_000, 1000, 0);
        stage.switch(B);
        // Audio of the new one comes before its first key frame, which may be late.
        stage.push(5_000, None);
        stage.media(5_000 + pause, 6_001 + pause, 1000, 0);
        assert_eq!(stage.rows(viewer)[..2], [(0, 2000, false), (1, 500, false)], "{pause}");
    }
    // Nor is it cut once that is so.
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.push(0, Some(0));
    (1..44).for_each(|n| stage.push(n * 100, None));
    stage.switch(B);
    stage.push(4_450, None);
    stage.media(5_000, 7_001, 1000, 0);
    assert_eq!(stage.rows(viewer), [(0, 4_300, false), (1, 2_000, true)]);
}

#[test]
fn a_clock_that_stands_still_or_jumps_after_a_cut_is_a_discontinuity() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.push(0, Some(0));
    stage.push(1_000, None);
    stage.push(2_500, Some(0));
    stage.push(4_500, Some(2_000 * 90));
    assert_eq!(stage.rows(viewer), [(0, 1_000, false), (1, 2_000, true)]);

    for jump in [60_000, WRAP / 90 - 60_000] {
        let mut stage = Stage::new(settings());
        let viewer = stage.poll(0, 1);
        stage.push(0, Some(0));
        (1..60).for_each(|n| stage.push(n * 100, None));
        stage.media(6_000, 8_001, 2000, jump);
        assert_eq!(stage.rows(viewer), [(0, 4_400, false), (1, 1_500, false), (2, 2_000, true)], "{jump}");
    }
}

#[test]
fn what_nobody_polls_is_kept_as_long_as_it_fits_a_playlist() {
    // A clock that jumps.
    let mut stage = Stage::new(settings());
    stage.media(0, 2_000, 1000, 0);
    stage.media(2_500, 6_501, 2000, 500_000);
    let viewer = stage.poll(6_600, 1);
    assert_eq!(stage.rows(viewer), [(0, 1_500, false), (1, 2_000, true), (2, 2_000, false)]);
    // Media that is sent slower than it plays, by its own clock.
    let mut stage = Stage::new(settings());
    stage.push(0, Some(0));
    (1..10).for_each(|n| stage.push(n * 1000, None));
    stage.push(10_000, Some(3_000 * 90));
    let viewer = stage.poll(10_100, 1);
    assert_eq!(stage.rows(viewer), [(0, 3_000, false)]);
}

#[test]
fn what_is_too_long_is_shown_to_whoever_polled_before_it_ended() {
    let mut stage = Stage::new(settings());
    stage.push(0, Some(0));
    (1..11).for_each(|n| stage.push(n * 1000, None));
    let viewer = stage.poll(10_100, 1);
    stage.media(10_500, 12_501, 2000, 0);
    assert_eq!(stage.rows(viewer), [(0, 4_499, false), (1, 2_000, true)]);
}

#[test]
fn a_window_longer_than_three_target_durations_is_filled() {
    let hls = Hls { window: 10, ..settings().hls };
    let mut stage = Stage::new(Live { hls, ..settings() });
    stage.media(0, 60_001, 2000, 0);
    let viewer = stage.poll(61_500, 1);
    assert_eq!(stage.rows(viewer).len(), 10);
    // What has left it is kept for as long again, and a little more, and then forgotten although its bytes are there.
    let kept = (0..30).filter(|number| stage.feeds.segment(stage.feed, *number).is_some()).count();
    assert_eq!(kept, 28);
}

#[test]
fn whoever_begins_to_poll_in_the_middle_of_a_segment_has_it_cut() {
    let mut stage = Stage::new(settings());
    stage.push(0, Some(0));
    (1..10).for_each(|n| stage.push(n * 100, None));
    let viewer = stage.poll(950, 1);
    let mut wanted = Vec::new();
    for now in (1_000..5_000).step_by(100) {
        stage.push(now, None);
        wanted.extend(stage.feeds.next_uncut().map(|_| now));
    }
    assert_eq!((wanted, stage.rows(viewer)), (vec![2_000, 4_500], vec![(0, 4_400, false)]));
}

#[test]
fn a_token_is_known_in_its_own_feed_alone() {
    let mut stage = Stage::new(settings());
    stage.poll(0, 1);
    let first = stage.feed;
    stage.feed = stage.feeds.open();
    let request = RequestId(99);
    stage.feeds.join(at(10), request, stage.feed, &mut stage.out);
    let Some(Output::Joined { viewer, .. }) = stage.out.pop_back() else { panic!("not let in") };
    stage.feeds.poll(at(10), request, viewer, Token([1; 16]), &mut stage.out);
    assert_eq!(stage.outputs(), [Output::Refuse { request, reason: RefuseReason::NotFound }]);
    assert_eq!((stage.feeds.viewers_of(first), stage.viewers()), (1, 0));
}

#[test]
fn one_request_for_a_playlist_is_held_once() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    let request = RequestId(99);
    stage.feeds.ask_playlist(at(0), request, viewer, &mut stage.out);
    stage.feeds.ask_playlist(at(1_000), request, viewer, &mut stage.out);
    assert_eq!((stage.feeds.held(), stage.feeds.ignored()), (1, 1));
    stage.tick(8_000);
    assert_eq!(stage.outputs(), [Output::Refuse { request, reason: RefuseReason::StartTimeout }], "from when it asked");
}

#[test]
fn whoever_polls_has_left_three_target_durations_after_it_asked_or_was_answered() {
    let left = |stage: &Stage| stage.feeds.left(stage.feed);
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.media(0, 5_000, 1000, 0);
    assert!(stage.ask(5_000, viewer));
    stage.media(5_000, 30_001, 1000, 0);
    assert_eq!(left(&stage), Some(at(17_000)));

    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    assert!(!stage.ask(0, viewer));
    stage.media(5_000, 30_001, 1000, 0);
    assert_eq!(left(&stage), Some(at(7_000 + 12_000)), "it was held until then");
}

#[test]
fn whoever_polls_a_feed_without_media_is_ended_with_it() {
    let mut stage = Stage::new(Live { idle: ms(5_000), ..settings() });
    let viewer = stage.poll(0, 1);
    stage.feeds.polled(at(4_000), viewer, 10);
    stage.tick(20_000);
    let reason = ViewerEnd::Idle;
    let note = Note::ViewerEnded { feed: stage.feed, viewer, reason, lasted: 5_000_000, sent: 10 };
    assert_eq!(stage.outputs(), [Output::ViewerEnd { viewer, reason }, Output::Note(note)]);
}

#[test]
fn a_feed_that_was_cleared_has_nothing_to_let_go_of() {
    let mut stage = Stage::new(settings());
    stage.media(0, 1_000, 1000, 0);
    assert!(stage.feeds.deadline().is_some());
    stage.feeds.clear(stage.feed);
    assert_eq!((stage.feeds.deadline(), stage.writer), (None, A));
}

#[test]
fn only_what_lies_before_a_pause_longer_than_a_segment_is_past() {
    let longest = settings().hls.target() * 1000;
    for (pause, past) in [(longest, false), (longest + 1, true)] {
        let mut stage = Stage::new(settings());
        stage.media(0, 3_001, 1000, 0);
        let goes_on = 3_500 + pause;
        stage.push(goes_on, Some(goes_on * 90));
        let viewer = stage.poll(goes_on + 1, 1);
        assert_eq!(stage.rows(viewer).is_empty(), past, "after {pause} ms");

        // Audio comes before the key frame.
        let mut stage = Stage::new(settings());
        stage.push(0, Some(0));
        stage.push(pause, None);
        stage.push(pause + 100, Some((pause + 100) * 90));
        let viewer = stage.poll(pause + 101, 1);
        assert_eq!(stage.rows(viewer).is_empty(), past, "after {pause} ms");
    }
}

#[test]
fn what_nobody_polled_for_is_kept_unless_it_is_too_long_for_the_list() {
    let longest = settings().hls.longest().as_millis() as u64;
    for (length, rows) in [(longest, vec![(0, longest, false)]), (longest + 1, vec![])] {
        let mut stage = Stage::new(settings());
        stage.push(0, Some(0));
        stage.push(2_000, None);
        stage.push(length, None);
        // The publisher's clock jumped.
        stage.push(length + 100, Some(WRAP / 2));
        let viewer = stage.poll(length + 200, 1);
        assert_eq!(stage.rows(viewer), rows);
    }
}

#[test]
fn what_was_cut_off_goes_on_where_the_stream_does() {
    let mut stage = Stage::new(settings());
    let viewer = stage.poll(0, 1);
    stage.push(0, Some(0));
    (1..11).for_each(|n| stage.push(n * 500, None));
    stage.ask(5_100, viewer);
    (11..15).for_each(|n| stage.push(n * 500, None));
    stage.media(7_500, 11_501, 2000, 0);
    let viewer = stage.poll(11_600, 2);
    let rows = stage.rows(viewer);
    assert!(rows.len() > 2 && rows.iter().all(|row| !row.2), "{rows:?}");
}

#[test]
fn what_comes_after_a_stream_was_cleared_in_its_first_segment_follows_on_nothing() {
    let mut stage = Stage::new(settings());
    stage.push(0, Some(0));
    stage.feeds.clear(stage.feed);
    let viewer = stage.poll(1_000, 1);
    stage.media(2_000, 6_001, 1000, 0);
    let discontinuous: Vec<bool> = stage.rows(viewer).iter().map(|row| row.2).collect();
    assert_eq!(discontinuous, [true, false]);
}

#[test]
fn who_comes_a_target_duration_after_the_last_media_begins_with_what_comes_next() {
    let target = settings().hls.target() * 1000;
    for (after, past) in [(target - 1, false), (target, true)] {
        let mut stage = Stage::new(settings());
        stage.media(0, 6_001, 1000, 0);
        let viewer = stage.poll(6_500 + after, 1);
        assert_eq!(stage.rows(viewer).is_empty(), past, "after {after} ms");
    }
}

#[test]
fn no_random_access_point_is_asked_for_of_a_feed_that_was_closed() {
    let mut stage = Stage::new(settings());
    stage.poll(0, 1);
    stage.push(0, Some(0));
    stage.push(1, None);
    stage.tick(2_000);
    let other = stage.feeds.open();
    stage.feeds.close(at(2_000), other, &mut stage.out);
    assert_eq!(stage.feeds.next_uncut(), Some(stage.feed), "another one was closed");
    stage.tick(4_000);
    stage.push(4_000, None);
    stage.tick(6_000);
    stage.feeds.close(at(6_000), stage.feed, &mut stage.out);
    assert_eq!(stage.feeds.next_uncut(), None);
}
