//! Graces that meet something else, in simulated time: what waits too long, what is kept, what is asked for meanwhile.

use core::time::Duration;

use super::stage::{A, B, Fate, Stage, hls, provider, user, vod, with};
use super::{Place, State};
use crate::config::{Playback, Strategy};
use crate::input::{Note, RefuseReason, UserId, ViewerEnd, Want};

fn graces(stage: &Stage, wanted: Strategy) -> usize {
    stage.noted(|note| matches!(note, Note::PlaybackGraced { rule, .. } if *rule == wanted))
}

#[test]
fn each_grace_is_told() {
    for rule in [Strategy::GraceHold, Strategy::GraceInstant] {
        let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[rule]));
        stage.rest(0, vod(1), A);
        stage.rest(0, vod(2), A);
        assert_eq!(graces(&stage, rule), 1);
    }
}

#[test]
fn a_part_that_waited_too_long_ends_no_grace() {
    let settings = Playback { grace: Duration::from_secs(90), ..with(&[Strategy::GraceHold]) };
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], settings);
    let film = stage.rest(0, vod(1), A);
    let early = stage.part(0, vod(2), A);
    stage.run(30_000);
    let late = stage.part(0, vod(2), A);
    stage.run(30_000);
    assert_eq!((stage.refused(early), stage.fate(late)), (Some(RefuseReason::Busy), None));
    stage.run(10_000);
    stage.finish(film, ViewerEnd::Left);
    assert!(stage.is_fetched(late));
}

#[test]
fn a_part_of_what_ran_by_grace_is_told_that_it_waited_too_long() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[2])], with(&[Strategy::GraceInstant]));
    let film = stage.rest(0, vod(1), A);
    let graced = stage.rest(0, vod(2), A);
    stage.finish(film, ViewerEnd::Left);
    let part = stage.part(0, vod(2), A);
    stage.run(60_000);
    assert_eq!((stage.refused(part), stage.at(part)), (Some(RefuseReason::Busy), 60_000));
    assert!(stage.is_fetched(graced));
}

#[test]
fn what_is_asked_for_meanwhile_makes_no_grace_longer() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    let first = stage.part(0, vod(2), A);
    stage.run(1_500);
    let second = stage.part(0, vod(2), A);
    stage.run(500);
    for part in [first, second] {
        assert_eq!((stage.refused(part), stage.at(part)), (Some(RefuseReason::UserLimit), 2_000));
    }
    assert_eq!(graces(&stage, Strategy::GraceHold), 1);
}

#[test]
fn a_grace_in_vain_is_over_also_where_nothing_is_between_two() {
    let settings = Playback { grace_cooldown: Duration::ZERO, ..with(&[Strategy::GraceHold]) };
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], settings);
    stage.rest(0, vod(1), A);
    let held = stage.rest(0, vod(2), A);
    stage.run(2_000);
    assert_eq!((stage.refused(held), stage.at(held)), (Some(RefuseReason::UserLimit), 2_000));
}

#[test]
fn what_is_kept_by_grace_goes_on_with_the_strategies_behind_it() {
    let strategies = with(&[Strategy::GraceInstant, Strategy::EvictOldest]);
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], strategies);
    let film = stage.rest(0, vod(1), A);
    let start = stage.playlist(0, hls(2), A);
    stage.segment(0, hls(2), start);
    let kept = |stage: &Stage| {
        let mut all = stage.edge.playback().of_user(UserId(0));
        all.find(|(_, own)| matches!(own.state, State::Preserved(_))).and_then(|(_, own)| own.place())
    };
    assert_eq!(kept(&stage), Some(Place::Grace));
    stage.run(2_000);
    assert_eq!((kept(&stage), stage.fate(film)), (Some(Place::Normal), Some(Fate::Cut(ViewerEnd::Evicted))));
}

#[test]
fn whoever_found_somebody_protected_is_told_so_though_a_playlist_was_fetched_meanwhile() {
    let strategies = with(&[Strategy::EvictOldest, Strategy::GraceHold]);
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], strategies);
    stage.rest(0, vod(1), B);
    let start = stage.playlist(0, hls(2), A);
    stage.segment(0, hls(2), start);
    stage.rest(0, vod(1), B);
    let start = stage.playlist(0, hls(2), A);
    let segment = stage.child(0, hls(2), start, Want::Part);
    assert_eq!(stage.fate(segment), None, "protected, so it is held");
    let reload = stage.child(0, hls(2), start, Want::Setup);
    assert!(stage.is_fetched(reload));
    stage.finish(reload, ViewerEnd::Done);
    stage.run(2_000);
    assert_eq!(stage.refused(segment), Some(RefuseReason::Suppressed));
}
