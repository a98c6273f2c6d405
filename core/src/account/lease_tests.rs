//! The table of leases, row by row (spec: playback §4).

use super::stage::*;
use super::*;

/// As an HLS playback wishes: a window of 15 s.
fn windowed(holder: Holder) -> Wish<'static> {
    Wish { window: millis(15_000), ..wish(holder) }
}

/// A lease that is active, of a connection that stands.
fn active(stage: &mut Stage, wish: Wish<'static>) -> Grant {
    let grant = stage.grant(wish);
    stage.confirm(grant);
    assert_eq!(stage.state(wish.holder), Some((LeaseState::Active, 0)));
    grant
}

/// A lease that is idle, without a connection.
fn idle(stage: &mut Stage, holder: Holder) {
    let grant = active(stage, windowed(holder));
    stage.release(grant);
    stage.rest(holder);
    stage.closed(grant);
    assert_eq!(stage.state(holder), Some((LeaseState::Idle, 0)));
}

const A: Holder = Holder::Playback(crate::id::Id::from_parts(1, 0));
const B: Holder = Holder::Playback(crate::id::Id::from_parts(2, 0));

#[test]
fn none_a_grant_makes_it_starting_for_five_seconds_whatever_the_window() {
    for window in [0, 15_000, 45_000] {
        let mut stage = Stage::of(&[1]);
        stage.run(700);
        stage.grant(Wish { window: millis(window), ..wish(A) });
        assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Starting, 0)), Some(5_700)));
    }
}

#[test]
fn none_a_probe_has_no_lease() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(probe(1)));
    stage.confirm(grant);
    assert_eq!(stage.room.leases().count(), 0);
    stage.close(grant);
    assert!(stage.is_empty());
}

#[test]
fn starting_reserves_nothing() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(windowed(A));
    stage.close(grant);
    assert_eq!(stage.state(A), Some((LeaseState::Starting, 0)));
    assert_eq!(stage.account(B), 0);
}

#[test]
fn starting_the_same_account_again_changes_nothing() {
    let mut stage = Stage::of(&[1]);
    for _ in 0..4 {
        let grant = stage.grant(windowed(A));
        assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Starting, 0)), Some(5_000)));
        stage.close(grant);
        stage.run(1_000);
    }
    stage.run(1_000);
    assert_eq!(stage.last(A), Some((Told::Expired { holder: A }, 5_000)), "a loop of attempts buys no time");
}

#[test]
fn starting_another_account_begins_anew() {
    let mut stage = Stage::of(&[1, 1]);
    let grant = stage.grant(windowed(A));
    stage.run(3_000);
    stage.release(grant);
    let other = stage.grant(Wish { pin: Pin::Loose(AccountId(1)), ..windowed(A) });
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Starting, 1)), Some(8_000)));
    assert_eq!(other.account.0, 1);
}

#[test]
fn starting_its_deadline_ends_it_and_its_connection_counts_on() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(windowed(A));
    stage.run(4_999);
    assert_eq!(stage.told, []);
    stage.run(1);
    assert_eq!((stage.state(A), stage.last(A)), (None, Some((Told::Expired { holder: A }, 5_000))));
    assert_eq!(stage.acquire(wish(B)), Acquired::Exhausted);
    stage.end(A);
    stage.closed(grant);
    assert!(stage.is_empty());
}

#[test]
fn starting_media_makes_it_active_for_its_window() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(windowed(A));
    stage.run(4_000);
    stage.confirm(grant);
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Active, 0)), Some(19_000)));
}

#[test]
fn starting_media_makes_it_active_without_a_clock_where_there_is_no_window() {
    let mut stage = Stage::of(&[1]);
    active(&mut stage, wish(A));
    assert_eq!(stage.room.lease_of(A).unwrap().deadline, Time::NEVER);
    stage.run(3_600_000);
    assert_eq!(stage.state(A), Some((LeaseState::Active, 0)));
}

#[test]
fn active_reserves_only_where_there_is_a_window() {
    for (window, free) in [(0, true), (15_000, false)] {
        let mut stage = Stage::of(&[1]);
        let grant = active(&mut stage, Wish { window: millis(window), ..wish(A) });
        stage.close(grant);
        assert_eq!(stage.state(A), Some((LeaseState::Active, 0)));
        let acquired = stage.acquire(wish(B));
        assert_eq!(matches!(acquired, Acquired::Granted { .. }), free, "{window}");
        assert_eq!(stage.room.account(AccountId(0)).unwrap().reserved, u32::from(!free));
    }
}

#[test]
fn active_what_it_reserves_is_one_slot_with_and_without_a_connection() {
    let mut stage = Stage::of(&[2]);
    let grant = active(&mut stage, windowed(A));
    let other = stage.grant(wish(B));
    stage.close(other);
    stage.end(B);
    stage.release(grant);
    let other = stage.grant(wish(B));
    stage.close(other);
    stage.end(B);
    stage.closed(grant);
    stage.account(B);
    assert_eq!(stage.acquire(wish(playback(3))), Acquired::Exhausted);
    assert_eq!(stage.grant(windowed(A)).account.0, 0);
}

#[test]
fn active_media_renews_it() {
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.run(9_000);
    stage.confirm(grant);
    assert_eq!(stage.until(A), Some(24_000));
}

#[test]
fn active_another_request_on_the_same_account_changes_nothing() {
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.run(1_000);
    stage.close(grant);
    stage.grant(windowed(A));
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Active, 0)), Some(15_000)));
}

#[test]
fn active_another_account_begins_anew_and_reserves_the_former_no_more() {
    let mut stage = Stage::of(&[1, 1]);
    let grant = active(&mut stage, windowed(A));
    stage.close(grant);
    stage.run(1_000);
    let other = stage.grant(Wish { pin: Pin::Loose(AccountId(1)), ..windowed(A) });
    assert_eq!((other.account.0, stage.state(A), stage.until(A)), (1, Some((LeaseState::Starting, 1)), Some(6_000)));
    assert_eq!(stage.account(B), 0);
}

#[test]
fn active_the_last_request_over_in_order_makes_it_idle() {
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.run(2_000);
    stage.close(grant);
    stage.rest(A);
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Idle, 0)), Some(17_000)));
    assert_eq!(stage.acquire(wish(B)), Acquired::Exhausted, "it reserves");
}

#[test]
fn active_the_last_request_over_ends_it_where_there_is_no_window() {
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, wish(A));
    stage.close(grant);
    stage.rest(A);
    assert!(stage.is_empty());
}

#[test]
fn starting_the_last_request_over_ends_it_if_it_was_never_confirmed() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(windowed(A));
    stage.close(grant);
    stage.rest(A);
    assert!(stage.is_empty());
}

#[test]
fn idle_who_returns_is_starting_anew_and_reserves_nothing_until_confirmed() {
    let mut stage = Stage::of(&[1]);
    idle(&mut stage, A);
    stage.run(3_000);
    let grant = stage.grant(windowed(A));
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Starting, 1)), Some(8_000)));
    stage.close(grant);
    assert_eq!(stage.account(B), 0);
}

#[test]
fn idle_who_returns_for_what_never_confirms_is_as_idle_as_before() {
    let mut stage = Stage::of(&[1]);
    idle(&mut stage, A);
    stage.run(3_000);
    let grant = stage.grant(windowed(A));
    stage.run(1_000);
    stage.close(grant);
    stage.rest(A);
    assert_eq!(
        (stage.state(A), stage.until(A)),
        (Some((LeaseState::Idle, 1)), Some(15_000)),
        "a playlist renews nothing"
    );
}

#[test]
fn active_or_idle_its_deadline_ends_it_where_there_is_no_connection() {
    let mut stage = Stage::of(&[1]);
    idle(&mut stage, A);
    stage.acquire(Wish { patience: Patience::Until(ms(20_000), Grace::Hold), ..wish(B) });
    stage.run(15_000);
    assert_eq!((stage.state(A), stage.last(A)), (None, Some((Told::Expired { holder: A }, 15_000))));
    assert_eq!(stage.late(B).unwrap().1, 15_000, "and its slot is whose turn it is");
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.run(1_000);
    stage.close(grant);
    stage.run(14_000);
    assert_eq!(stage.last(A), Some((Told::Expired { holder: A }, 15_000)));
    assert!(stage.is_empty());
}

#[test]
fn active_its_deadline_waits_for_the_end_of_its_connection() {
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.run(30_000);
    assert_eq!((stage.state(A), stage.told.len()), (Some((LeaseState::Active, 0)), 0));
    stage.release(grant);
    stage.run(0);
    assert_eq!(stage.last(A), Some((Told::Expired { holder: A }, 30_000)));
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.run(30_000);
    stage.release(grant);
    stage.rest(A);
    stage.run(1_000);
    assert_eq!(stage.state(A), Some((LeaseState::Idle, 0)), "unless its request ends in order with it");
}

#[test]
fn any_a_failure_ends_it() {
    let mut stage = Stage::of(&[1]);
    let grant = active(&mut stage, windowed(A));
    stage.failed(grant);
    assert_eq!(stage.state(A), None);
    stage.closed(grant);
    assert!(stage.is_empty());
}

#[test]
fn any_an_end_from_outside_ends_it() {
    let mut stage = Stage::of(&[1]);
    idle(&mut stage, A);
    stage.end(A);
    assert!(stage.is_empty());
    assert_eq!(stage.account(B), 0);
}

#[test]
fn any_preemption_ends_it() {
    let mut stage = Stage::of(&[1]);
    active(&mut stage, windowed(A));
    stage.acquire(Wish { strength: STRONG, ..stage.patient(B) });
    assert_eq!((stage.state(A), stage.room.affinities()), (None, 0));
}

#[test]
fn a_generation_that_is_over_confirms_nothing() {
    let mut stage = Stage::of(&[2, 2]);
    let old = stage.grant(windowed(A));
    stage.release(old);
    let new = stage.grant(Wish { pin: Pin::Loose(AccountId(1)), ..windowed(A) });
    let binding = |grant: Grant, stage: &Stage| stage.room.allocation(grant.allocation).unwrap().binding.unwrap();
    let (a, b) = (binding(old, &stage), binding(new, &stage));
    assert_eq!((a.lease, a.generation, b.generation), (b.lease, 0, 1));
    let stale = stage.room.stale();
    stage.confirm(old);
    assert_eq!((stage.state(A), stage.room.stale()), (Some((LeaseState::Starting, 1)), stale + 1));
    stage.failed(old);
    assert_eq!((stage.state(A), stage.room.stale()), (Some((LeaseState::Starting, 1)), stale + 2));
}

#[test]
fn media_after_the_deadline_makes_a_lease_where_nobody_needed_the_account() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(windowed(A));
    stage.run(6_000);
    stage.confirm(grant);
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Active, 0)), Some(21_000)));
    assert_eq!(stage.acquire(stage.patient(B)), Acquired::Waiting, "and it gives way to its equals no more");
    assert_eq!(stage.last(A), Some((Told::Expired { holder: A }, 5_000)));
}

#[test]
fn what_is_kept_is_listed_while_there_is_no_connection() {
    let mut stage = Stage::of(&[2]);
    let kept = |stage: &Stage| stage.room.kept().map(|lease| lease.holder).collect::<Vec<_>>();
    let grant = active(&mut stage, windowed(A));
    assert_eq!(kept(&stage), []);
    stage.release(grant);
    assert_eq!(kept(&stage), [], "it is being closed");
    stage.closed(grant);
    assert_eq!(kept(&stage), [A]);
    stage.grant(windowed(A));
    assert_eq!(kept(&stage), []);
}

#[test]
fn idle_who_returns_for_what_is_never_opened_is_as_idle_as_before() {
    let mut stage = Stage::of(&[1]);
    idle(&mut stage, A);
    stage.run(3_000);
    let grant = stage.grant(windowed(A));
    assert_eq!(stage.state(A), Some((LeaseState::Starting, 1)));
    stage.room.unopened(ms(3_000), grant.allocation);
    assert_eq!((stage.state(A), stage.until(A)), (Some((LeaseState::Idle, 1)), Some(15_000)));
}
