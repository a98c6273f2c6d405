//! Every rule of spec playback §4 and every row of its table, in simulated time.

use alloc::vec;

use super::stage::*;
use super::*;
use crate::config::{Account, Provider};

#[test]
fn a_connection_counts_from_its_grant_until_it_is_closed() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(stage.wish(playback(1)));
    assert_eq!(stage.acquire(stage.wish(playback(2))), Acquired::Exhausted);
    stage.end(playback(1));
    assert_eq!(stage.acquire(stage.wish(playback(2))), Acquired::Exhausted, "the provider still counts it");
    assert_eq!(stage.room.allocation(grant.allocation).unwrap().state, AllocationState::Closing);
    stage.closed(grant);
    assert_eq!(stage.account(playback(2)), 0);
}

#[test]
fn who_waits_is_granted_what_becomes_free() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(stage.wish(playback(1)));
    assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Waiting);
    stage.run(500);
    stage.release(grant);
    assert_eq!(stage.late(playback(2)), None);
    stage.closed(grant);
    assert_eq!(stage.late(playback(2)).unwrap().1, 500);
}

#[test]
fn a_stronger_one_preempts_a_weaker_one() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(Wish { strength: WEAK, ..stage.wish(playback(1)) });
    assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Waiting);
    assert_eq!(stage.last(playback(1)).unwrap().0, Told::GiveUp { holder: playback(1), why: Why::Preempted });
    stage.run(100);
    stage.closed(grant);
    assert_eq!(stage.late(playback(2)).unwrap().1, 100);
    let (by, holder) = (playback(2), playback(1));
    assert_eq!(stage.notes, [Note::AccountPreempted { account: AccountId(0), holder, by }]);
}

#[test]
fn a_lease_that_is_kept_reserves_its_slot() {
    let mut stage = Stage::of(&[1]);
    let wish = Wish { window: millis(15_000), ..stage.wish(playback(1)) };
    let grant = stage.grant(wish);
    stage.confirm(grant);
    stage.release(grant);
    stage.rest(playback(1));
    stage.closed(grant);
    assert_eq!(stage.acquire(stage.wish(playback(2))), Acquired::Exhausted);
    let grant = stage.grant(wish);
    stage.close(grant);
    stage.end(playback(1));
    assert!(stage.is_empty());
    assert_eq!(stage.account(playback(2)), 0);
}

#[test]
fn accounts_that_may_not_be_used_are_left_out() {
    let account = |enabled, until| Account { enabled, until, ..Account::default() };
    let accounts = vec![account(false, None), account(true, Some(ms(1_000))), account(true, None)];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    stage.run(1_000);
    assert_eq!(stage.account(playback(1)), 2);
    assert_eq!(stage.acquire(stage.wish(playback(2))), Acquired::Exhausted);
}
