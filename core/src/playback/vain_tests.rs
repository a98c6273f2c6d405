//! Whoever has providers asked in vain waits, and nobody else does.

use alloc::vec::Vec;

use super::Item;
use super::stage::{Origin, Stage, hls, provider, user, vod, with};
use crate::input::{AccountId, Input, RefuseReason, RequestId, TitleId, ViewerEnd, Want};

const A: u8 = 1;
const B: u8 = 2;

/// How many of so many requests had a provider asked, each superseding the one before.
fn asked(stage: &mut Stage, count: usize, player: u8) -> usize {
    let all: Vec<RequestId> = (0..count).map(|_| stage.rest(0, vod(1), player)).collect();
    let refused = all.iter().filter(|request| stage.refused(**request) == Some(RefuseReason::InVain)).count();
    count - refused
}

/// An account without a limit, whose provider takes connections and sends nothing: as in a circle through something that hides it.
fn mute() -> Stage {
    let mut stage = Stage::new([user(0, 0)], [provider(&[0])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    stage
}

#[test]
fn a_hundred_requests_in_vain_are_made_and_then_twenty_a_second() {
    let mut stage = mute();
    assert_eq!(asked(&mut stage, 500, A), 100);
    assert_eq!(asked(&mut stage, 500, B), 100, "another player is another");
    stage.run(1_000);
    assert_eq!(asked(&mut stage, 500, A), 20);
    stage.run(5_000);
    assert_eq!(asked(&mut stage, 500, A), 100, "and all is forgotten");
}

#[test]
fn what_comes_is_not_in_vain() {
    let mut stage = mute();
    for _ in 0..1_000 {
        let request = stage.rest(0, vod(1), A);
        assert!(stage.is_fetched(request));
        stage.input(Input::Forwarded { request });
        stage.input(Input::Forwarded { request });
    }
    assert_eq!(asked(&mut stage, 500, A), 100, "once for each");
}

#[test]
fn what_is_said_without_media_is_not_in_vain() {
    let mut stage = mute();
    for _ in 0..1_000 {
        let redirect = stage.fetch(Stage::ask(Stage::viewing(0, Item::Dash(TitleId(1)), A), Want::Setup));
        assert!(stage.is_fetched(redirect));
        stage.finish(redirect, ViewerEnd::Done);
        let look = stage.look(0, vod(1), A);
        assert!(stage.is_fetched(look));
        stage.finish(look, ViewerEnd::Done);
    }
}

#[test]
fn whoever_leaves_before_anything_comes_has_asked_in_vain() {
    let mut stage = mute();
    for _ in 0..100 {
        let request = stage.rest(0, vod(1), A);
        assert!(stage.is_fetched(request));
        stage.finish(request, ViewerEnd::Left);
    }
    let request = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(request), Some(RefuseReason::InVain));
}

#[test]
fn looks_count_as_well() {
    let mut stage = mute();
    let all: Vec<RequestId> = (0..300).map(|_| stage.look(0, vod(1), A)).collect();
    let refused = all.iter().filter(|request| stage.refused(**request) == Some(RefuseReason::InVain)).count();
    assert_eq!(refused, 200);
}

#[test]
fn segments_that_come_are_fetched_however_many() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[0])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    for _ in 0..1_000 {
        let segment = stage.segment(0, hls(1), start);
        assert_eq!(stage.refused(segment), None);
    }
}
