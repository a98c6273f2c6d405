//! What goes on under one token in simulated time: playlists, segments, what is kept for its player (V4 …).

use alloc::vec::Vec;
use core::time::Duration;

use super::State;
use super::stage::{A, Fate, Origin, Stage, catchup, hls, provider, user, vod, with};
use crate::account::Holder;
use crate::config::Strategy;
use crate::input::{AccountId, Ask, Failure, Note, RefuseReason, RequestId, ViewerEnd, Want};
use crate::time::Time;

fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

const BROKEN: Origin = Origin::Fails(Failure::Status(500));

#[test]
fn a_playlist_costs_no_place_and_its_segments_one() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let request = stage.fetch(Stage::ask(Stage::viewing(0, hls(1), A), Want::Setup));
    let start = stage.fetched(request);
    assert!(start.token.is_some());
    assert_eq!((stage.counted(0), stage.state(stage.playback(request))), (0, State::Prepared));
    stage.finish(request, ViewerEnd::Done);
    let segments = [(); 2].map(|()| stage.child(0, hls(1), start, Want::Part));
    let id = stage.playback(segments[0]);
    assert_eq!((stage.counted(0), stage.state(id), stage.fate(segments[1])), (1, State::Active, None));
    stage.finish(segments[0], ViewerEnd::Done);
    assert_eq!(stage.playback(segments[1]), id);
    assert_eq!(stage.fetched(segments[1]).token, start.token);
}

#[test]
fn two_playlist_starts_are_two_playbacks() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[2])], with(&[]));
    let (one, two) = (stage.playlist(0, hls(1), A), stage.playlist(0, hls(1), A));
    assert_ne!(one.token, two.token);
    let first = stage.child(0, hls(1), one, Want::Part);
    let second = stage.child(0, hls(1), two, Want::Part);
    assert_eq!((stage.is_fetched(first), stage.refused(second)), (true, Some(RefuseReason::UserLimit)));
}

#[test]
fn what_is_kept_for_its_player_comes_back_as_itself_and_counts_once() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    let first = stage.child(0, hls(1), start, Want::Part);
    let id = stage.playback(first);
    stage.finish(first, ViewerEnd::Done);
    assert_eq!((stage.state(id), stage.counted(0)), (State::Preserved(at(15_000)), 1));
    let other = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(other), Some(RefuseReason::UserLimit), "what is kept counts");
    stage.run(10_000);
    let version = stage.edge.playback().get(id).unwrap().version;
    let next = stage.child(0, hls(1), start, Want::Part);
    assert_eq!((stage.playback(next), stage.counted(0), stage.state(id)), (id, 1, State::Active));
    assert!(stage.edge.playback().get(id).unwrap().version > version);
    stage.finish(next, ViewerEnd::Done);
    stage.run(14_999);
    assert_eq!(stage.state(id), State::Preserved(at(25_000)));
    stage.run(1);
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackEnded { reason: ViewerEnd::Left, .. })), 1);
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackStarted { .. })), 1, "it never was a new one");
    stage.is_empty();
}

#[test]
fn a_playlist_renews_what_is_kept_and_does_not_confirm_its_account() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    let first = stage.child(0, hls(1), start, Want::Part);
    let id = stage.playback(first);
    stage.finish(first, ViewerEnd::Done);
    let until = stage.edge.accounts().lease_of(Holder::Playback(id)).unwrap().deadline;
    stage.run(10_000);
    let again = stage.child(0, hls(1), start, Want::Setup);
    stage.finish(again, ViewerEnd::Done);
    assert_eq!((stage.state(id), stage.counted(0)), (State::Preserved(at(25_000)), 1));
    assert_eq!(stage.edge.accounts().lease_of(Holder::Playback(id)).unwrap().deadline, until);
    stage.run(25_000);
    stage.is_empty();
}

#[test]
fn v11_after_its_time_a_player_goes_on_under_its_token_and_evicts_nobody() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[Strategy::EvictOldest]));
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
    stage.run(16_000);
    stage.is_empty();
    let segments: Vec<RequestId> = (0..5).map(|_| stage.child(0, hls(1), start, Want::Part)).collect();
    for segment in segments {
        assert_eq!((stage.fetched(segment).token, stage.counted(0)), (start.token, 1));
        stage.finish(segment, ViewerEnd::Done);
    }
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackEvicted { .. })), 0);
}

#[test]
fn what_was_ended_stays_ended_and_what_was_left_may_come_back() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    let segment = stage.child(0, hls(1), start, Want::Part);
    let id = stage.playback(segment);
    stage.kick(id, 0);
    assert_eq!(stage.fate(segment), Some(Fate::Cut(ViewerEnd::Kicked)));
    stage.run(599_000);
    for want in [Want::Setup, Want::Part, Want::Look] {
        let child = stage.child(0, hls(1), start, want);
        assert_eq!(stage.refused(child), Some(RefuseReason::PlaybackOver), "{want:?}");
    }
    let again = stage.playlist(0, hls(1), A);
    assert_ne!(again.token, start.token);
    stage.segment(0, hls(1), again);
    stage.run(20_000);
    stage.segment(0, hls(1), start);
}

#[test]
fn a_child_belongs_to_its_account_its_user_and_its_item() {
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [provider(&[1, 1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    let other =
        Ask { account: Some(AccountId(1)), token: start.token, ..Stage::ask(Stage::viewing(0, hls(1), A), Want::Part) };
    let first = stage.child(0, hls(1), start, Want::Part);
    let wrong = stage.fetch(other);
    assert_eq!(stage.refused(wrong), Some(RefuseReason::NotFound));
    for (user, item) in [(1, hls(1)), (0, hls(2))] {
        let stranger = stage.child(user, item, start, Want::Part);
        assert_eq!(stage.refused(stranger), Some(RefuseReason::NotFound));
    }
    assert!(stage.is_fetched(first));
    // Also where nothing is known of it any more: only there.
    stage.finish(first, ViewerEnd::Done);
    stage.run(16_000);
    stage.origins.insert(AccountId(0), BROKEN);
    let late = stage.child(0, hls(1), start, Want::Part);
    assert_eq!(stage.refused(late), Some(RefuseReason::ProviderFailed), "what it names is not had elsewhere");
}

#[test]
fn an_address_of_what_its_player_began_anew_is_over() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let old = stage.playlist(0, catchup(1), A);
    stage.segment(0, catchup(1), old);
    stage.run(46_000);
    let new = stage.playlist(0, catchup(1), A);
    stage.segment(0, catchup(1), new);
    let late = stage.child(0, catchup(1), old, Want::Part);
    assert_eq!(stage.refused(late), Some(RefuseReason::PlaybackOver));
}

#[test]
fn v4_the_past_is_watched_with_one_account_whatever_is_asked_of_it() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1, 1])], with(&[]));
    for round in 0..10 {
        let request = stage.rest(0, catchup(1), A);
        assert!(stage.is_fetched(request), "{round}");
        if round % 2 == 0 {
            stage.finish(request, ViewerEnd::Left);
        }
        // Sometimes longer than it is kept, never longer than its account is remembered.
        stage.run(if round % 3 == 0 { 100_000 } else { 1000 });
    }
    let first = stage.used[0];
    assert!(stage.used.iter().all(|account| *account == first), "{:?}", stage.used);

    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1, 1])], with(&[]));
    for _ in 0..10 {
        let start = stage.playlist(0, catchup(1), A);
        stage.segment(0, catchup(1), start);
        assert_eq!(stage.counted(0), 1);
        stage.run(2000);
    }
    let first = stage.used[0];
    assert!(stage.used.iter().all(|account| *account == first), "{:?}", stage.used);
}

#[test]
fn a_playlist_that_takes_long_is_not_given_up() {
    // Blocking reloads of a playlist last for some segments.
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    let request = stage.fetch(Stage::ask(Stage::viewing(0, hls(1), A), Want::Setup));
    stage.run(20_000);
    assert!(stage.is_fetched(request));
    stage.finish(request, ViewerEnd::Done);
    stage.is_empty();
}

#[test]
fn every_transition_has_a_version_of_its_own() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    let segment = stage.child(0, hls(1), start, Want::Part);
    let id = stage.playback(segment);
    let version = |stage: &Stage| stage.edge.playback().get(id).unwrap().version;
    let active = version(&stage);
    stage.finish(segment, ViewerEnd::Done);
    let preserved = version(&stage);
    stage.child(0, hls(1), start, Want::Part);
    assert!(active > 0 && active < preserved && preserved < version(&stage));
    assert_eq!(stage.edge.config().playback.hls_session_ttl, Duration::from_secs(15));
}

/// A playlist of a start that a provider takes its time for.
fn slow_playlist(stage: &mut Stage, of: super::stage::Fetched) -> RequestId {
    stage.origins.insert(AccountId(0), Origin::Mute);
    let request = stage.child(0, hls(1), of, Want::Setup);
    assert!(stage.is_fetched(request));
    stage.origins.clear();
    request
}

#[test]
fn each_segment_that_needs_a_place_is_asked_for_anew() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[Strategy::GraceHold]));
    let film = stage.rest(0, vod(1), A);
    let start = stage.playlist(0, hls(1), A);
    let reload = slow_playlist(&mut stage, start);
    let segment = stage.child(0, hls(1), start, Want::Part);
    stage.run(2000);
    assert_eq!(stage.refused(segment), Some(RefuseReason::UserLimit));
    stage.run(5000);
    let segment = stage.child(0, hls(1), start, Want::Part);
    assert_eq!(stage.fate(segment), None, "with a grace of its own");
    // And whoever waits no longer is not let in, though its playback is there.
    stage.hangup(segment);
    stage.finish(film, ViewerEnd::Left);
    assert_eq!((stage.counted(0), stage.is_fetched(reload)), (0, true));
    stage.finish(reload, ViewerEnd::Done);
    stage.is_empty();
}

#[test]
fn a_playlist_that_waits_is_not_refused_with_a_segment_that_needs_a_place() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[]));
    stage.rest(0, vod(1), A);
    let start = stage.playlist(0, hls(1), A);
    let running = slow_playlist(&mut stage, start);
    let waits = stage.child(0, hls(1), start, Want::Setup);
    let segment = stage.child(0, hls(1), start, Want::Part);
    assert_eq!((stage.refused(segment), stage.fate(waits)), (Some(RefuseReason::UserLimit), None));
    stage.finish(running, ViewerEnd::Done);
    assert!(stage.is_fetched(waits));
}

#[test]
fn a_segment_that_is_waited_for_no_longer_is_wished_for_no_longer() {
    let mut stage = Stage::new([user(1, 0), user(1, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
    // Playlists keep the playback, and not its account, which somebody else takes.
    stage.run(10_000);
    let reload = stage.child(0, hls(1), start, Want::Setup);
    stage.finish(reload, ViewerEnd::Done);
    stage.run(6000);
    let film = stage.rest(1, vod(1), A);
    assert!(stage.is_fetched(film));
    let segment = stage.child(0, hls(1), start, Want::Part);
    assert_eq!((stage.fate(segment), stage.edge.accounts().waiting()), (None, 1));
    stage.hangup(segment);
    assert_eq!((stage.edge.accounts().waiting(), stage.counted(0)), (0, 1));
}

#[test]
fn a_playlist_in_between_does_not_make_the_account_of_the_past_forgotten() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1, 1])], with(&[]));
    let first = stage.rest(0, catchup(1), A);
    stage.finish(first, ViewerEnd::Left);
    stage.run(60_000);
    stage.playlist(0, catchup(1), A);
    stage.rest(0, catchup(1), A);
    assert_eq!(stage.used, [AccountId(0); 3]);
}

#[test]
fn what_breaks_in_the_middle_keeps_its_account_from_nobody() {
    for (reason, kept) in [(ViewerEnd::Failed, false), (ViewerEnd::Done, true)] {
        let mut stage = Stage::new([user(1, 0), user(1, 0)], [provider(&[1])], with(&[]));
        let start = stage.playlist(0, hls(1), A);
        let segment = stage.child(0, hls(1), start, Want::Part);
        let id = stage.playback(segment);
        stage.finish(segment, reason);
        assert_eq!(stage.state(id), State::Preserved(at(15_000)), "its player may come back");
        assert_eq!(stage.edge.accounts().lease_of(Holder::Playback(id)).is_some(), kept);
        let film = stage.rest(1, vod(1), A);
        assert_eq!(stage.is_fetched(film), !kept);
    }
}

#[test]
fn a_child_that_failed_does_not_let_its_playback_go_elsewhere() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
    stage.origins.insert(AccountId(0), BROKEN);
    let failed = stage.child(0, hls(1), start, Want::Part);
    assert_eq!(stage.refused(failed), Some(RefuseReason::ProviderFailed));
    let ask = Stage::ask(Stage::viewing(0, hls(1), A), Want::Part);
    let other = stage.fetch(Ask { account: Some(AccountId(1)), token: start.token, ..ask });
    assert_eq!(stage.refused(other), Some(RefuseReason::NotFound));
}

#[test]
fn a_playlist_more_changes_nothing_of_that_one_waits_for_an_account() {
    let mut stage = Stage::new([user(1, 0), user(1, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    stage.rest(1, vod(1), A);
    let token = Some(crate::input::Token([9; 16]));
    let ask = || crate::input::Ask { token, ..Stage::ask(Stage::viewing(0, hls(1), A), Want::Setup) };
    for _ in 0..2 {
        stage.fetch(ask());
        let (_, playback) = stage.edge.playback().of_user(crate::input::UserId(0)).next().expect("one");
        assert_eq!(playback.state, State::PendingProvider(at(2_000)));
    }
}

#[test]
fn what_the_provider_has_sent_flows_on_and_before_any_came_through_the_past_may_begin_elsewhere() {
    let mut stage = Stage::new([user(1, 0), user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    let first = stage.part(0, catchup(1), A);
    stage.sent(first);
    stage.run(20_000);
    assert!(stage.is_fetched(first), "though its lease ran out");
    let taken =
        crate::input::Ask { account: Some(AccountId(0)), ..Stage::ask(Stage::viewing(1, vod(1), A), Want::Rest) };
    let film = stage.fetch(taken);
    assert!(stage.is_fetched(film));
    let second = stage.part(0, catchup(1), A);
    assert_eq!(stage.fetched(second).account, Some(AccountId(1)), "{:?}", stage.fate(second));
}
