//! Titles in simulated time: what belongs to one playback, seeks, windows, failures (V1 …).

use alloc::vec::Vec;
use core::time::Duration;

use super::stage::{A, B, Fate, Origin, Stage, catchup, hls, provider, user, vod, with};
use super::{Binding, Item, Place, State};
use crate::account::Holder;
use crate::config::{Account, Playback, Provider};
use crate::input::{
    AccountId, Ask, Failure, Input, Note, ProviderId, RefuseReason, RequestId, TitleId, ViewerEnd, Want,
};
use crate::time::Time;

fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

const BROKEN: Origin = Origin::Fails(Failure::Status(503));

#[test]
fn the_table_of_items() {
    let settings = Playback::default();
    let row = |item: Item| {
        let traits = item.traits(&settings);
        (traits.socket_bound, traits.own_starts, traits.account, traits.window.as_secs(), traits.confirmable)
    };
    let feed = crate::input::FeedId::from_parts(0, 0);
    assert_eq!(row(Item::LiveTs(feed)), (true, false, Binding::None, 0, true));
    assert_eq!(row(Item::LiveHls(feed)), (false, true, Binding::None, 0, true));
    assert_eq!(row(hls(1)), (false, true, Binding::Firm, 15, true));
    assert_eq!(row(Item::Dash(TitleId(1))), (false, true, Binding::None, 15, false));
    for item in [vod(1), Item::Series(TitleId(1))] {
        assert_eq!(row(item), (false, false, Binding::Loose, 0, true));
    }
    assert_eq!(row(catchup(1)), (false, false, Binding::Firm, 45, true));
    assert_eq!(row(Item::Local(TitleId(1))), (false, false, Binding::None, 0, false));
}

#[test]
fn a_film_is_fetched_with_an_account_and_everything_goes_back() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let request = stage.rest(0, vod(1), A);
    let fetched = stage.fetched(request);
    assert_eq!((fetched.token, fetched.index, fetched.account), (None, 0, Some(AccountId(0))));
    assert_eq!(stage.state(stage.playback(request)), State::Active);
    let started = |note: &Note| matches!(note, Note::PlaybackStarted { place: Place::Normal, waited: 0, .. });
    assert_eq!((stage.noted(started), stage.counted(0), stage.open()), (1, 1, 1));
    stage.finish(request, ViewerEnd::Done);
    let ended = |note: &Note| matches!(note, Note::PlaybackEnded { reason: ViewerEnd::Done, .. });
    assert_eq!(stage.noted(ended), 1);
    stage.is_empty();
}

#[test]
fn v1_seeks_never_make_two_connections_of_a_playback() {
    let mut stage = Stage::new([user(2, 0)], [provider(&[4])], with(&[]));
    stage.closing = 20;
    let mut last = Vec::new();
    for round in 0..6 {
        for (player, address) in [A, B].into_iter().enumerate() {
            let request = stage.rest(0, vod(player as u64), address);
            stage.run(30 + round);
            assert!(stage.is_fetched(request));
            last.push(request);
        }
    }
    assert_eq!((stage.peak, stage.counted(0)), (2, 2));
    let superseded = |request: &&RequestId| stage.fate(**request) == Some(Fate::Cut(ViewerEnd::Superseded));
    assert_eq!(last.iter().filter(superseded).count(), 10);
    for request in stage.requests_open() {
        stage.finish(request, ViewerEnd::Left);
    }
    stage.run(20);
    stage.is_empty();
}

#[test]
fn a_player_that_closes_and_opens_at_once_has_one_connection_too() {
    // The playback is over, its connection is not closed yet: the next one of the same player waits for that.
    let mut stage = Stage::new([user(2, 0)], [provider(&[4])], with(&[]));
    stage.closing = 50;
    for item in [vod(1), Item::Series(TitleId(1))] {
        let first = stage.rest(0, item, A);
        stage.finish(first, ViewerEnd::Left);
        assert_eq!((stage.counted(0), stage.open()), (0, 1));
        let second = stage.rest(0, item, A);
        assert_eq!((stage.fate(second), stage.counted(0)), (None, 1));
        let other = stage.rest(0, item, B);
        assert!(stage.is_fetched(other), "another player has nothing to wait for");
        stage.finish(other, ViewerEnd::Left);
        stage.run(50);
        assert!(stage.is_fetched(second));
        stage.finish(second, ViewerEnd::Left);
        stage.run(50);
        stage.is_empty();
    }
}

#[test]
fn what_one_player_asks_of_one_film_is_one_playback() {
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [provider(&[0])], with(&[]));
    let first = stage.rest(0, vod(1), A);
    let id = stage.playback(first);
    let again = stage.rest(0, vod(1), A);
    assert_eq!(stage.playback(again), id);
    for (user, item, address) in [(0, vod(2), A), (0, vod(1), B), (1, vod(1), A), (0, catchup(1), A)] {
        let other = stage.rest(user, item, address);
        assert_ne!(stage.playback(other), id, "{user} {item:?} {address}");
    }
    assert_eq!((stage.counted(0), stage.counted(1)), (4, 1));
}

#[test]
fn v12_thirty_ranges_each_closing_the_one_before_count_once() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let mut last = stage.rest(0, vod(1), A);
    for _ in 0..30 {
        let next = stage.rest(0, vod(1), A);
        stage.hangup(last);
        assert_eq!((stage.counted(0), stage.open(), stage.is_fetched(next)), (1, 1, true));
        last = next;
    }
    stage.hangup(last);
    stage.is_empty();
}

#[test]
fn v16_many_short_ranges_leave_nothing() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    for _ in 0..50 {
        let request = stage.part(0, vod(1), A);
        assert!(stage.is_fetched(request));
        stage.finish(request, ViewerEnd::Done);
        assert_eq!(stage.counted(0), 0);
    }
    stage.is_empty();
}

#[test]
fn parts_wait_their_turn_and_so_many_may_wait() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[]));
    let parts: Vec<RequestId> = (0..17).map(|_| stage.part(0, vod(1), A)).collect();
    let over = stage.part(0, vod(1), A);
    assert_eq!(stage.refused(over), Some(RefuseReason::Busy));
    assert_eq!((stage.requests_waiting().len(), stage.counted(0), stage.open()), (16, 1, 1));
    for part in &parts {
        assert!(stage.is_fetched(*part), "in the order of asking");
        stage.finish(*part, ViewerEnd::Done);
    }
    assert_eq!(stage.peak, 1);
    stage.is_empty();
}

#[test]
fn a_part_does_not_wait_for_ever() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[]));
    let first = stage.part(0, vod(1), A);
    let second = stage.part(0, vod(1), A);
    stage.run(61_000);
    assert_eq!((stage.refused(second), stage.at(second)), (Some(RefuseReason::Busy), 60_000));
    assert!(stage.is_fetched(first));
}

#[test]
fn one_that_takes_nothing_gives_way_to_those_that_wait_and_only_to_them() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[]));
    let first = stage.part(0, vod(1), A);
    stage.input(Input::Stalled { request: first });
    assert!(stage.is_fetched(first), "nobody waits");
    let second = stage.part(0, vod(1), A);
    assert_eq!(stage.fate(first), Some(Fate::Cut(ViewerEnd::Superseded)));
    let third = stage.part(0, vod(1), A);
    assert_eq!((stage.is_fetched(second), stage.fate(third)), (true, None));
    stage.input(Input::Stalled { request: second });
    assert_eq!((stage.fate(second), stage.is_fetched(third)), (Some(Fate::Cut(ViewerEnd::Superseded)), true));
    // One that took something again is waited for.
    stage.input(Input::Stalled { request: third });
    stage.input(Input::Forwarded { request: third });
    let fourth = stage.part(0, vod(1), A);
    assert_eq!(stage.fate(fourth), None);
}

#[test]
fn a_seek_takes_the_place_of_all_that_waits_too() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let (running, waiting) = (stage.part(0, vod(1), A), stage.part(0, vod(1), A));
    let seek = stage.rest(0, vod(1), A);
    assert_eq!(stage.fate(running), Some(Fate::Cut(ViewerEnd::Superseded)));
    assert_eq!((stage.refused(waiting), stage.is_fetched(seek)), (Some(RefuseReason::Superseded), true));
}

#[test]
fn ending_one_request_ends_no_other() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let [first, second, third] = [(); 3].map(|()| stage.part(0, vod(1), A));
    stage.hangup(second);
    assert!(stage.is_fetched(first));
    stage.finish(first, ViewerEnd::Left);
    assert_eq!((stage.is_fetched(third), stage.counted(0)), (true, 1), "it falls back to what is alive");
    stage.finish(third, ViewerEnd::Left);
    stage.is_empty();
}

#[test]
fn a_seek_keeps_its_account_although_others_wait_for_it() {
    let mut stage = Stage::new([user(1, 0), user(1, 0)], [provider(&[1])], with(&[crate::config::Strategy::GraceHold]));
    stage.closing = 100;
    let first = stage.rest(0, vod(1), A);
    stage.run(100);
    let other = stage.rest(1, vod(2), B);
    assert_eq!(stage.fate(other), None);
    stage.run(100);
    let seek = stage.rest(0, vod(1), A);
    stage.run(200);
    assert_eq!((stage.is_fetched(seek), stage.fate(other)), (true, None));
    assert_eq!(stage.fate(first), Some(Fate::Cut(ViewerEnd::Superseded)));

    // And with turns to take, it stays where it is.
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1, 1])], with(&[]));
    for _ in 0..4 {
        stage.rest(0, vod(1), A);
    }
    assert_eq!(stage.used, [AccountId(0); 4]);
}

#[test]
fn a_seek_needs_no_place_of_its_user_again() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let first = stage.rest(0, vod(1), A);
    let id = stage.playback(first);
    let seek = stage.rest(0, vod(1), A);
    assert_eq!((stage.playback(seek), stage.state(id), stage.counted(0)), (id, State::Active, 1));
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackStarted { .. })), 1, "it is one playback");
}

/// An account whose time is over in 5 s, and one that lasts.
fn ending() -> Provider {
    let account = |until| Account { max_connections: 1, until, ..Account::default() };
    Provider { accounts: [account(Some(at(5000))), account(None)].into(), ..Provider::default() }
}

#[test]
fn a_film_may_leave_its_account_and_the_past_may_not() {
    for (item, leaves) in [(vod(1), true), (Item::Series(TitleId(1)), true), (catchup(1), false)] {
        let mut stage = Stage::new([user(1, 0)], [ending()], with(&[]));
        stage.rest(0, item, A);
        stage.run(6000);
        let seek = stage.rest(0, item, A);
        if leaves {
            assert_eq!(stage.fetched(seek).account, Some(AccountId(1)), "{item:?}");
        } else {
            assert_eq!(stage.refused(seek), Some(RefuseReason::ProviderLimit), "{item:?}");
        }
    }
}

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
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[crate::config::Strategy::EvictOldest]));
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
fn a_film_that_was_kicked_may_come_back_behind_the_block() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let first = stage.rest(0, vod(1), A);
    stage.kick(stage.playback(first), 10_000);
    stage.run(9_000);
    for refused in [stage.rest(0, vod(1), A), stage.look(0, vod(1), A)] {
        assert_eq!(stage.refused(refused), Some(RefuseReason::Kicked));
    }
    stage.run(1_000);
    let back = stage.rest(0, vod(1), A);
    assert!(stage.is_fetched(back));
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
fn a_redirect_costs_no_place_and_leaves_nothing() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    for _ in 0..5 {
        let request = stage.fetch(Stage::ask(Stage::viewing(0, Item::Dash(TitleId(1)), A), Want::Setup));
        assert_eq!(stage.counted(0), 0);
        stage.input(Input::Forwarded { request });
        stage.finish(request, ViewerEnd::Done);
        stage.is_empty();
    }
}

fn local(want: Want) -> Ask {
    Ask { providers: Vec::new(), ..Stage::ask(Stage::viewing(0, Item::Local(TitleId(1)), A), want) }
}

#[test]
fn a_file_of_this_machine_needs_a_place_and_no_account() {
    let mut stage = Stage::new([user(1, 0)], [], with(&[]));
    let look = stage.fetch(local(Want::Look));
    assert_eq!((stage.fetched(look).account, stage.counted(0)), (None, 0));
    stage.finish(look, ViewerEnd::Done);
    let requests: Vec<RequestId> = [Want::Rest, Want::Part, Want::Rest].map(|want| stage.fetch(local(want))).into();
    for request in &requests {
        let fetched = stage.fetched(*request);
        assert_eq!((fetched.account, fetched.token), (None, None), "nobody counts them, so none is cut for another");
    }
    assert_eq!(stage.counted(0), 1);
    let many: Vec<RequestId> = (0..20).map(|_| stage.fetch(local(Want::Part))).collect();
    assert_eq!(stage.requests_open().len(), 16, "but not any number");
    assert_eq!(stage.fate(requests[0]), Some(Fate::Cut(ViewerEnd::Superseded)));
    assert!(stage.is_fetched(*many.last().unwrap()));
    let over = stage.fetch(Ask { viewing: Stage::viewing(0, Item::Local(TitleId(2)), A), ..local(Want::Rest) });
    assert_eq!(stage.refused(over), Some(RefuseReason::UserLimit));
    for request in stage.requests_open() {
        stage.finish(request, ViewerEnd::Done);
    }
    let failed = stage.fetch(local(Want::Rest));
    stage.input(Input::Failed { request: failed, failure: Failure::Status(404) });
    assert_eq!(stage.refused(failed), Some(RefuseReason::ProviderFailed));
    stage.is_empty();
}

#[test]
fn one_that_looks_counts_for_nobody() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let look = stage.look(0, vod(1), A);
    let fetched = stage.fetched(look);
    assert_eq!((fetched.playback, fetched.account, stage.counted(0)), (None, Some(AccountId(0)), 0));
    assert_eq!(stage.edge.accounts().leases().count(), 0);
    let second = stage.look(0, vod(2), A);
    assert_eq!((stage.refused(second), stage.at(second)), (Some(RefuseReason::ProviderLimit), 0));
    stage.finish(look, ViewerEnd::Done);
    stage.is_empty();
}

#[test]
fn v13_one_that_looks_is_cut_the_moment_a_viewer_needs_the_account() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    stage.closing = 100;
    let look = stage.look(0, vod(1), A);
    stage.run(50);
    let viewer = stage.rest(0, vod(1), A);
    assert_eq!((stage.fate(look), stage.fate(viewer)), (Some(Fate::Cut(ViewerEnd::Preempted)), None));
    stage.run(100);
    assert_eq!((stage.is_fetched(viewer), stage.at(viewer)), (true, 150));
    let again = stage.look(0, vod(2), B);
    assert_eq!(stage.refused(again), Some(RefuseReason::ProviderLimit), "and never the other way round");
}

#[test]
fn one_that_looks_asks_elsewhere_too() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.origins.insert(AccountId(0), BROKEN);
    let look = stage.look(0, vod(1), A);
    assert_eq!(stage.fetched(look).account, Some(AccountId(1)));
    stage.hangup(look);
    stage.origins.insert(AccountId(1), BROKEN);
    let look = stage.look(0, vod(1), A);
    assert_eq!(stage.refused(look), Some(RefuseReason::ProviderFailed));
    stage.is_empty();
}

#[test]
fn what_one_account_does_not_give_another_may() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1]), provider(&[1])], with(&[]));
    stage.origins.insert(AccountId(0), BROKEN);
    stage.origins.insert(AccountId(1), Origin::Fails(Failure::TimedOut));
    let viewing = Stage::viewing(0, vod(1), A);
    let both = || Ask { providers: [ProviderId(0), ProviderId(1)].into(), ..Stage::ask(viewing, Want::Rest) };
    let request = stage.fetch(both());
    let fetched = stage.fetched(request);
    assert_eq!((fetched.account, fetched.index, stage.peak), (Some(AccountId(2)), 1, 1));
    assert_eq!(stage.used, [AccountId(0), AccountId(1), AccountId(2)], "each once, in order");
    assert_eq!(stage.noted(|note| matches!(note, Note::AccountFailed { .. })), 2);
    stage.finish(request, ViewerEnd::Done);
    stage.origins.insert(AccountId(2), Origin::Fails(Failure::Unreachable));
    let request = stage.fetch(both());
    assert_eq!((stage.refused(request), stage.used.len()), (Some(RefuseReason::ProviderFailed), 6));
    stage.is_empty();
}

#[test]
fn what_may_be_asked_elsewhere_depends_on_the_failure() {
    let elsewhere = [
        Failure::Unreachable,
        Failure::TimedOut,
        Failure::Status(404),
        Failure::Status(410),
        Failure::Status(429),
        Failure::Status(500),
        Failure::Status(599),
    ];
    let nowhere =
        [Failure::Status(401), Failure::Status(403), Failure::Status(400), Failure::Status(416), Failure::Unusable];
    for (failure, again) in elsewhere.map(|own| (own, true)).into_iter().chain(nowhere.map(|own| (own, false))) {
        let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
        stage.origins.insert(AccountId(0), Origin::Fails(failure));
        let request = stage.rest(0, vod(1), A);
        if again {
            assert_eq!(stage.fetched(request).account, Some(AccountId(1)), "{failure:?}");
        } else {
            assert_eq!(stage.refused(request), Some(RefuseReason::ProviderFailed), "{failure:?}");
            stage.is_empty();
        }
    }
}

#[test]
fn a_playback_that_is_bound_to_its_account_is_asked_for_nowhere_else() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.rest(0, catchup(1), A);
    stage.origins.insert(AccountId(0), BROKEN);
    let seek = stage.rest(0, catchup(1), A);
    assert_eq!(stage.refused(seek), Some(RefuseReason::ProviderFailed));
    // Before any media came from there it may begin elsewhere.
    stage.run(60_000);
    let request = stage.rest(0, catchup(2), A);
    assert_eq!(stage.fetched(request).account, Some(AccountId(1)));
}

#[test]
fn v10_a_playlist_that_fails_costs_nothing() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Fails(Failure::Status(500)));
    for _ in 0..20 {
        let request = stage.fetch(Stage::ask(Stage::viewing(0, hls(1), A), Want::Setup));
        assert_eq!(stage.refused(request), Some(RefuseReason::ProviderFailed));
        stage.is_empty();
    }
    stage.origins.clear();
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
}

#[test]
fn v7_a_key_that_is_refused_does_not_end_the_playback() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
    stage.origins.insert(AccountId(0), Origin::Fails(Failure::Status(400)));
    let key = stage.child(0, hls(1), start, Want::Setup);
    assert_eq!((stage.refused(key), stage.counted(0)), (Some(RefuseReason::ProviderFailed), 1));
    stage.origins.clear();
    stage.segment(0, hls(1), start);
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackStarted { .. })), 1);
}

#[test]
fn a_provider_that_says_nothing_is_given_up_for_another() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    let request = stage.rest(0, vod(1), A);
    let id = stage.playback(request);
    assert_eq!((stage.fetched(request).account, stage.state(id)), (Some(AccountId(0)), State::Prepared));
    stage.run(5000);
    assert_eq!(stage.fetched(request).account, Some(AccountId(1)));
    assert_eq!((stage.state(id), stage.at(request)), (State::Active, 5000));
    stage.finish(request, ViewerEnd::Done);
    stage.origins.insert(AccountId(1), Origin::Mute);
    let request = stage.rest(0, vod(1), A);
    stage.run(10_000);
    assert_eq!(stage.refused(request), Some(RefuseReason::ProviderFailed));
    stage.is_empty();
}

#[test]
fn v14_a_viewer_of_a_silent_provider_that_switches_leaves_nothing_behind() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    let first = stage.rest(0, vod(1), A);
    stage.run(1000);
    stage.hangup(first);
    stage.origins.clear();
    let second = stage.rest(0, vod(2), A);
    assert!(stage.is_fetched(second));
    stage.finish(second, ViewerEnd::Left);
    stage.is_empty();
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

/// Invariant 4.
#[test]
fn v22_what_comes_late_of_an_old_request_changes_nothing() {
    let mut stage = Stage::new([user(1, 0)], [ending()], with(&[]));
    let old = stage.rest(0, vod(1), A);
    stage.run(6000);
    let new = stage.rest(0, vod(1), A);
    let (id, fetched) = (stage.playback(new), stage.fetched(new));
    assert_eq!(fetched.account, Some(AccountId(1)));
    let looks = |stage: &Stage| {
        let playback = stage.edge.playback().get(id).unwrap();
        let lease = stage.edge.accounts().lease_of(Holder::Playback(id)).map(|lease| (lease.account, lease.generation));
        (playback.version, playback.state, lease, stage.counted(0), stage.open())
    };
    let (before, stale) = (looks(&stage), stage.edge.playback().stale());
    let late = [
        Input::Finished { request: old, reason: ViewerEnd::Failed },
        Input::Failed { request: old, failure: Failure::Unreachable },
        Input::Forwarded { request: old },
        Input::Stalled { request: old },
        Input::Hangup { request: old },
        Input::Closed { allocation: crate::input::AllocationId::from_parts(77, 7) },
    ];
    for input in late {
        stage.input(input);
        assert_eq!(looks(&stage), before);
    }
    assert_eq!(stage.edge.playback().stale(), stale + 4, "and is counted");
    // A number that is in use is no new request.
    let again = Ask { ..Stage::ask(Stage::viewing(0, vod(9), A), Want::Rest) };
    stage.input(Input::Fetch { request: new, ask: again });
    assert_eq!(looks(&stage), before);
}

#[test]
fn a_feed_is_no_title() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let feed = Item::LiveTs(stage.feed(0));
    let wrong = stage.rest(0, feed, A);
    assert_eq!(stage.refused(wrong), Some(RefuseReason::NotFound));
    let nobody = stage.rest(7, vod(1), A);
    assert_eq!(stage.refused(nobody), Some(RefuseReason::NotFound));
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
