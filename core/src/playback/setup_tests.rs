//! What a playlist replaces that costs no place, in simulated time (spec: playback §3, §3.3).

use alloc::vec::Vec;
use core::time::Duration;

use super::stage::{A, B, Fate, Fetched, Stage, catchup, hls, provider, user, vod, with};
use super::{Item, State};
use crate::config::{Provider, Strategy, User};
use crate::input::{Ask, Input, Note, ProviderId, RefuseReason, RequestId, TitleId, Token, ViewerEnd, Want};

const ZAPPING: [Strategy; 2] = [Strategy::EvictSameIpOldest, Strategy::EvictOldest];

/// One account, one place.
fn single(strategies: &[Strategy]) -> Stage {
    Stage::new([user(1, 0), user(1, 0)], [provider(&[1])], with(strategies))
}

fn index(stage: &mut Stage, item: Item, address: u8) -> RequestId {
    stage.fetch(Stage::ask(Stage::viewing(0, item, address), Want::Setup))
}

/// Its playlist, which is sent to its end, and a segment, which flows.
fn plays(stage: &mut Stage, item: Item) -> (Fetched, RequestId) {
    let start = stage.playlist(0, item, A);
    let segment = stage.child(0, item, start, Want::Part);
    assert!(stage.is_fetched(segment), "{item:?}: {:?}", stage.fate(segment));
    (start, segment)
}

fn evictions(stage: &Stage) -> usize {
    stage.noted(|note| matches!(note, Note::PlaybackEvicted { .. }))
}

#[test]
fn a_player_of_hls_changes_channels_with_one_account_and_one_place() {
    for closing in [0, 300] {
        let mut stage = single(&ZAPPING);
        stage.closing = closing;
        let mut last = None;
        for title in 1..=5 {
            let asked = stage.now;
            let first = index(&mut stage, hls(title), A);
            stage.run(closing);
            let start = stage.fetched(first);
            assert!(stage.at(first) <= asked + closing, "channel {title}");
            assert_eq!((stage.counted(0), evictions(&stage)), (0, title as usize - 1), "a playlist has no place");
            stage.finish(first, ViewerEnd::Done);
            stage.run(closing);
            for _ in 0..3 {
                stage.segment(0, hls(title), start);
                stage.run(1_000);
            }
            if let Some((old, of)) = last.replace((title, start)) {
                let late = stage.child(0, hls(old), of, Want::Part);
                assert_eq!(stage.refused(late), Some(RefuseReason::PlaybackOver));
            }
        }
        stage.run(20_000);
        stage.is_empty();
        assert_eq!(stage.peak, 1);
    }
}

#[test]
fn whatever_of_its_user_holds_the_account_makes_room_for_a_playlist() {
    let film = |stage: &mut Stage| stage.rest(0, vod(1), A);
    let part = |stage: &mut Stage| plays(stage, hls(1)).1;
    let past = |stage: &mut Stage| plays(stage, catchup(1)).1;
    let live = |stage: &mut Stage| {
        let feed = stage.tune(1);
        let request = stage.watch(0, feed, A);
        stage.media(feed);
        request
    };
    let silent = |stage: &mut Stage| {
        let feed = stage.tune(1);
        stage.watch(0, feed, A)
    };
    type Play<'p> = &'p dyn Fn(&mut Stage) -> RequestId;
    let all: [(&str, Play<'_>); 5] =
        [("film", &film), ("hls", &part), ("past", &past), ("live", &live), ("silent", &silent)];
    for item in [hls(2), catchup(2)] {
        for (name, play) in all {
            let mut stage = single(&[Strategy::EvictOldest]);
            let old = play(&mut stage);
            stage.closing = 200;
            stage.run(1_000);
            let first = index(&mut stage, item, A);
            stage.run(500);
            assert!(stage.is_fetched(first), "{name}, then {item:?}: {:?}", stage.fate(first));
            assert!(!stage.is_fetched(old) && evictions(&stage) == 1, "{name}: {:?}", stage.fate(old));
            let start = stage.fetched(first);
            stage.finish(first, ViewerEnd::Done);
            stage.run(500);
            let segment = stage.child(0, item, start, Want::Part);
            assert!(stage.is_fetched(segment) && evictions(&stage) == 1, "{name}");
            stage.finish(segment, ViewerEnd::Done);
            stage.run(60_000);
            stage.is_empty();
        }
    }
}

#[test]
fn what_is_kept_for_nobody_else_makes_room_as_the_strategies_say() {
    for (strategies, reason) in [(&[][..], RefuseReason::UserLimit), (&[Strategy::Deny], RefuseReason::UserLimit)] {
        let mut stage = single(strategies);
        let (_, segment) = plays(&mut stage, hls(1));
        stage.finish(segment, ViewerEnd::Done);
        let first = index(&mut stage, hls(2), A);
        assert_eq!((stage.refused(first), stage.at(first)), (Some(reason), 0), "{strategies:?}");
        assert_eq!((evictions(&stage), stage.counted(0)), (0, 1));
    }
    // Another address than the one that the rule is for.
    let mut stage = single(&[Strategy::EvictSameIpOldest]);
    let film = stage.rest(0, vod(1), B);
    let first = index(&mut stage, hls(2), A);
    assert_eq!((stage.refused(first), stage.is_fetched(film)), (Some(RefuseReason::UserLimit), true));
    let first = index(&mut stage, hls(2), B);
    assert!(stage.is_fetched(first));
    assert_eq!(stage.fate(film), Some(Fate::Cut(ViewerEnd::Evicted)));
}

#[test]
fn a_playlist_waits_for_its_user_as_long_as_a_grace_and_the_strategies_behind_it_follow() {
    let mut stage = single(&[Strategy::GraceHold]);
    let film = stage.rest(0, vod(1), A);
    let first = index(&mut stage, hls(2), A);
    stage.run(1_500);
    assert_eq!(stage.fate(first), None);
    stage.finish(film, ViewerEnd::Left);
    assert!(stage.is_fetched(first), "as soon as the film is left");
    stage.finish(first, ViewerEnd::Done);
    let film = stage.rest(0, vod(1), A);
    let first = index(&mut stage, hls(2), A);
    stage.run(2_000);
    let at = stage.at(first);
    assert_eq!((stage.refused(first), at), (Some(RefuseReason::UserLimit), 3_500));
    let again = index(&mut stage, hls(3), A);
    assert_eq!((stage.refused(again), stage.at(again)), (Some(RefuseReason::UserLimit), 3_500), "no second grace");
    assert!(stage.is_fetched(film));

    for grace in [Strategy::GraceHold, Strategy::GraceInstant] {
        let mut stage = single(&[grace, Strategy::EvictOldest]);
        let film = stage.rest(0, vod(1), A);
        let first = index(&mut stage, hls(2), A);
        stage.run(1_999);
        assert_eq!((stage.fate(first), stage.is_fetched(film)), (None, true));
        stage.run(1);
        assert_eq!((stage.is_fetched(first), stage.fate(film)), (true, Some(Fate::Cut(ViewerEnd::Evicted))));
    }
}

#[test]
fn nobody_is_evicted_for_a_playlist_in_vain() {
    // The account is somebody else's.
    let mut stage = single(&[Strategy::EvictOldest]);
    let other = stage.rest(1, vod(1), B);
    let file = Ask { providers: Vec::new(), ..Stage::ask(Stage::viewing(0, Item::Local(TitleId(9)), A), Want::Rest) };
    let file = stage.fetch(file);
    let first = index(&mut stage, hls(2), A);
    assert_eq!(stage.refused(first), Some(RefuseReason::ProviderLimit));
    assert!(stage.is_fetched(other) && stage.is_fetched(file) && evictions(&stage) == 0);

    // A live stream that others watch as well stays open without it.
    let mut stage = single(&[Strategy::EvictOldest]);
    let feed = stage.tune(1);
    let mine = stage.watch(0, feed, A);
    stage.media(feed);
    stage.watch(1, feed, B);
    let first = index(&mut stage, hls(2), A);
    assert_eq!((stage.refused(first), evictions(&stage)), (Some(RefuseReason::ProviderLimit), 0));
    stage.viewer(mine);

    // The account rests first.
    let cooling = Provider { cooling: Duration::from_secs(5), ..provider(&[1]) };
    let mut stage = Stage::new([user(1, 0)], [cooling], with(&[Strategy::EvictOldest]));
    let film = stage.rest(0, vod(1), A);
    let first = index(&mut stage, hls(2), A);
    assert_eq!((stage.refused(first), stage.is_fetched(film)), (Some(RefuseReason::ProviderLimit), true));

    // There is a free account, or a place, or the player is only sent elsewhere.
    let mut stage = Stage::new([user(1, 0)], [provider(&[2])], with(&[Strategy::EvictOldest]));
    let film = stage.rest(0, vod(1), A);
    let first = index(&mut stage, hls(2), A);
    assert!(stage.is_fetched(first) && stage.is_fetched(film));
    let mut stage = Stage::new([user(2, 0)], [provider(&[1])], with(&[Strategy::EvictOldest]));
    let film = stage.rest(0, vod(1), A);
    let first = index(&mut stage, hls(2), A);
    assert_eq!((stage.refused(first), stage.is_fetched(film)), (Some(RefuseReason::ProviderLimit), true));
    let mut stage = single(&[Strategy::EvictOldest]);
    let film = stage.rest(0, vod(1), A);
    let first = index(&mut stage, Item::Dash(TitleId(2)), A);
    assert_eq!((stage.refused(first), stage.is_fetched(film)), (Some(RefuseReason::ProviderLimit), true));
}

#[test]
fn its_own_user_makes_room_before_anybody_weaker_does() {
    let strong = User { priority: -1, ..user(1, 0) };
    let mut stage = Stage::new([strong.clone(), user(1, 0)], [provider(&[2])], with(&[Strategy::EvictOldest]));
    let weak = stage.rest(1, vod(1), B);
    let film = stage.rest(0, vod(2), A);
    let first = index(&mut stage, hls(3), A);
    assert_eq!((stage.is_fetched(first), stage.is_fetched(weak)), (true, true));
    assert_eq!(stage.fate(film), Some(Fate::Cut(ViewerEnd::Evicted)));
    // Where it may not play, nobody gives way to it.
    let mut stage = Stage::new([strong, user(1, 0)], [provider(&[2])], with(&[]));
    let weak = stage.rest(1, vod(1), B);
    stage.rest(0, vod(2), A);
    let first = index(&mut stage, hls(3), A);
    assert_eq!((stage.refused(first), stage.is_fetched(weak)), (Some(RefuseReason::UserLimit), true));
}

#[test]
fn two_players_do_not_throw_each_other_out_in_turns_by_their_playlists() {
    let mut stage = single(&[Strategy::EvictOldest]);
    plays(&mut stage, hls(1));
    let other = index(&mut stage, hls(2), B);
    let start = stage.fetched(other);
    stage.finish(other, ViewerEnd::Done);
    let segment = stage.fetch(Ask {
        token: start.token,
        account: start.account,
        ..Stage::ask(Stage::viewing(0, hls(2), B), Want::Part)
    });
    assert!(stage.is_fetched(segment));
    stage.run(100);
    let (back, back_segment) = plays(&mut stage, hls(1));
    assert_eq!((evictions(&stage), stage.fate(segment)), (2, Some(Fate::Cut(ViewerEnd::Evicted))));
    stage.run(100);
    let again = index(&mut stage, hls(2), B);
    assert_eq!(stage.refused(again), Some(RefuseReason::Suppressed));
    assert_eq!(stage.fetched(back_segment).token, back.token);
    let id = stage.playback(back_segment);
    assert_eq!(stage.state(id), State::Active);
}

fn known_as(number: u8) -> Option<Token> {
    Some(Token([number; 16]))
}

#[test]
fn a_playlist_that_was_to_wait_makes_room_for_the_one_behind_it() {
    let strategies = with(&[Strategy::EvictOldest, Strategy::GraceHold]);
    let mut stage = Stage::new([user(1, 0), user(0, 0)], [provider(&[1]), provider(&[1])], strategies);
    let of = |item, want, provider| {
        let ask = Stage::ask(Stage::viewing(0, item, A), want);
        Ask { token: known_as(9), providers: Vec::from([ProviderId(provider)]), ..ask }
    };
    let film = stage.fetch(Ask { token: None, ..of(vod(1), Want::Rest, 1) });
    stage.rest(1, vod(2), B);
    // The end of the film would not help the first one.
    let first = stage.fetch(of(hls(3), Want::Setup, 0));
    let second = stage.fetch(of(hls(3), Want::Setup, 1));
    assert_eq!((stage.fate(first), stage.fate(second), stage.is_fetched(film)), (None, None, true));
    stage.hangup(first);
    assert_eq!((stage.is_fetched(second), stage.fate(film)), (true, Some(Fate::Cut(ViewerEnd::Evicted))));
}

#[test]
fn a_playlist_of_what_has_a_place_waits_for_an_account_as_everybody_does() {
    let providers = [provider(&[1]), provider(&[1])];
    let mut stage = Stage::new([user(1, 0), user(0, 0)], providers, with(&[Strategy::GraceHold]));
    let of = |user, item, want, provider| {
        let ask = Stage::ask(Stage::viewing(user, item, A), want);
        Ask { providers: Vec::from([ProviderId(provider)]), ..ask }
    };
    for provider in [0, 1] {
        stage.fetch(of(1, vod(u64::from(provider)), Want::Rest, provider));
    }
    let segment = stage.fetch(Ask { token: known_as(9), ..of(0, hls(3), Want::Part, 0) });
    let playlist = stage.fetch(Ask { token: known_as(9), ..of(0, hls(3), Want::Setup, 1) });
    stage.hangup(segment);
    assert_eq!((stage.counted(0), stage.fate(playlist)), (1, None));
    stage.run(2_000);
    assert_eq!((stage.refused(playlist), stage.at(playlist)), (Some(RefuseReason::ProviderLimit), 2_000));
}

#[test]
fn a_live_stream_that_somebody_without_a_playback_watches_is_not_ended_for_a_playlist() {
    let mut stage = single(&[Strategy::EvictOldest]);
    let feed = stage.tune(1);
    let mine = stage.watch(0, feed, A);
    stage.media(feed);
    let request = stage.next();
    stage.input(Input::Join { request, feed });
    let first = index(&mut stage, hls(2), A);
    assert_eq!((stage.refused(first), evictions(&stage)), (Some(RefuseReason::ProviderLimit), 0));
    stage.viewer(mine);
}
