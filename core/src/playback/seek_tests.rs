//! Seeks and parts in simulated time: one connection for each playback (V1 …).

use alloc::vec::Vec;

use super::stage::{A, B, Fate, Stage, catchup, provider, user, vod, with};
use super::{Item, State};
use crate::account::Holder;
use crate::config::{Account, Provider, Strategy};
use crate::input::{AccountId, Ask, Failure, Input, Note, RefuseReason, RequestId, TitleId, ViewerEnd, Want};
use crate::time::Date;

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
    let parts: Vec<RequestId> = (0..65).map(|_| stage.part(0, vod(1), A)).collect();
    let over = stage.part(0, vod(1), A);
    assert_eq!(stage.refused(over), Some(RefuseReason::TooManyRequests));
    assert_eq!((stage.requests_waiting().len(), stage.counted(0), stage.open()), (64, 1, 1));
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
    let mut stage = Stage::new([user(1, 0), user(1, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
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
    Provider { accounts: [account(Some(Date::from_micros(5_000_000))), account(None)].into(), ..Provider::default() }
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
fn what_is_wished_for_is_what_was_asked_for_last() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[1]), provider(&[1])], with(&[Strategy::GraceHold]));
    stage.rest(0, vod(9), B);
    let first = stage.rest(0, vod(1), A);
    assert_eq!(stage.fate(first), None);
    let elsewhere = [crate::input::ProviderId(1)].into();
    let second = stage.fetch(Ask { providers: elsewhere, ..Stage::ask(Stage::viewing(0, vod(1), A), Want::Rest) });
    assert_eq!(stage.refused(first), Some(RefuseReason::Superseded));
    assert_eq!((stage.fetched(second).account, stage.edge.accounts().waiting()), (Some(AccountId(1)), 0));
}

#[test]
fn an_account_that_was_waited_for_by_one_that_is_gone_is_not_kept_by_what_has_no_connection_any_more() {
    let mut stage = Stage::new([user(2, 0)], [provider(&[1])], with(&[]));
    let first = stage.part(0, vod(1), A);
    assert!(stage.is_fetched(first));
    let allocation = stage.edge.accounts().allocations().next().unwrap().0;
    // The provider closes it; its client still reads.
    stage.close(allocation);
    stage.input(Input::Closed { allocation });
    let second = stage.part(0, vod(1), A);
    let third = stage.part(0, vod(1), A);
    stage.closing = 100;
    stage.input(Input::Finished { request: second, reason: ViewerEnd::Left });
    stage.hangup(third);
    stage.run(200);
    let other = stage.part(0, vod(2), A);
    assert!(stage.is_fetched(other), "{:?}", stage.fate(other));
}

#[test]
fn a_lease_that_ran_out_before_its_connection_was_opened_begins_anew() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[2])], with(&[]));
    stage.closing = 6_000;
    stage.origins.insert(AccountId(0), super::stage::Origin::Mute);
    let first = stage.rest(0, vod(1), A);
    assert!(stage.is_fetched(first));
    stage.run(1_000);
    let second = stage.rest(0, vod(1), A);
    stage.run(6_000);
    assert!(stage.is_fetched(second), "it has the account, and no lease");
    stage.run(4_990);
    assert!(stage.is_fetched(second));
    stage.run(10_000);
    assert_eq!((stage.refused(second), stage.at(second)), (Some(RefuseReason::ProviderFailed), 12_000));
    stage.is_empty();
}
