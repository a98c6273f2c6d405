//! Who gives way to whom, who waits how long, graces, and accounts that rest (spec: playback §4).

use alloc::vec;
use alloc::vec::Vec;

use super::stage::*;
use super::*;
use crate::config::{Account, Provider};

const A: Holder = playback(1);
const B: Holder = playback(2);
const C: Holder = playback(3);
const D: Holder = playback(4);

fn strong(stage: &Stage, holder: Holder, strength: Strength) -> Wish<'static> {
    Wish { strength, ..stage.patient(holder) }
}

fn of(holder: Holder, strength: Strength) -> Wish<'static> {
    Wish { strength, ..wish(holder) }
}

fn gave_up(stage: &Stage) -> Vec<(Holder, Why)> {
    let gave_up = |(told, _): &(Told, u64)| match told {
        Told::GiveUp { holder, why } => Some((*holder, *why)),
        _ => None,
    };
    stage.told.iter().filter_map(gave_up).collect()
}

#[test]
fn a_strictly_stronger_one_takes_a_weaker_ones_account_and_an_equal_one_does_not() {
    let soft = |priority| strength(Place::Soft, priority);
    let normal = |priority| strength(Place::Normal, priority);
    let cases = [
        (normal(1), normal(0), true),
        (normal(0), normal(0), false),
        (normal(0), normal(1), false),
        (soft(-100), normal(100), true),
        (normal(100), soft(-100), false),
        (soft(1), soft(0), true),
        (soft(0), soft(0), false),
    ];
    for (holds, asks, gives_way) in cases {
        let mut stage = Stage::of(&[1]);
        let grant = stage.grant(of(A, holds));
        assert_eq!(stage.acquire(strong(&stage, B, asks)), Acquired::Waiting);
        assert_eq!(gave_up(&stage).len(), usize::from(gives_way), "{asks:?} of {holds:?}");
        stage.run(200);
        stage.close(grant);
        assert_eq!(stage.late(B).unwrap().1, 200);
        assert_eq!(stage.late(B).unwrap().0.account.0, 0);
    }
}

#[test]
fn who_gives_way_is_the_weakest_then_the_oldest_then_the_one_with_the_lowest_id() {
    // Holder, strength, when it began.
    let rows = [(A, 5, 0), (B, 7, 300), (C, 7, 100), (D, 7, 100)];
    let mut stage = Stage::of(&[4]);
    let mut order: Vec<(Holder, i8, u64)> = rows.into();
    order.sort_by_key(|row| row.2);
    for (holder, priority, at) in order {
        stage.now = at;
        stage.grant(of(holder, strength(Place::Normal, priority)));
    }
    for n in 10..14 {
        stage.acquire(stage.patient(playback(n)));
    }
    assert_eq!(gave_up(&stage).iter().map(|(holder, _)| *holder).collect::<Vec<_>>(), [C, D, B, A]);
}

#[test]
fn how_old_somebody_is_counts_from_its_first_connection() {
    let mut stage = Stage::of(&[2]);
    let first = stage.grant(of(A, WEAK));
    stage.confirm(first);
    stage.run(100);
    stage.grant(of(B, WEAK));
    stage.run(100);
    stage.close(first);
    stage.grant(of(A, WEAK));
    stage.acquire(stage.patient(C));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
}

#[test]
fn the_weakest_of_all_providers_gives_way() {
    let mut stage = Stage::new(vec![limits(&[1]), limits(&[1])]);
    let providers = &[ProviderId(0), ProviderId(1)];
    stage.grant(of(A, strength(Place::Normal, 3)));
    stage.grant(Wish { providers: &[ProviderId(1)], ..of(B, strength(Place::Normal, 5)) });
    stage.acquire(Wish { providers, ..stage.patient(C) });
    assert_eq!(gave_up(&stage), [(B, Why::Preempted)]);
}

#[test]
fn only_who_uses_the_pinned_account_gives_way_to_a_firm_pin() {
    let mut stage = Stage::of(&[1, 1]);
    stage.grant(of(A, strength(Place::Normal, 3)));
    stage.grant(of(B, strength(Place::Normal, 5)));
    stage.acquire(Wish { pin: Pin::Firm(AccountId(0)), ..stage.patient(C) });
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
}

#[test]
fn first_of_all_those_give_way_that_nobody_would_miss() {
    let mut stage = Stage::of(&[4]);
    stage.grant(of(A, WEAK));
    stage.grant(of(source(7), STRONG));
    stage.run(5_000);
    stage.grant(wish(probe(9)));
    stage.grant(of(source(8), STRONG));
    stage.set_strength(source(8), None);
    for n in 10..14 {
        stage.acquire(strong(&stage, playback(n), NORMAL));
    }
    let order = [(source(8), Why::Idle), (probe(9), Why::Idle), (A, Why::Idle), (source(7), Why::Idle)];
    assert_eq!(gave_up(&stage), order, "lingering, probe, silent: of these the weaker one first");
}

#[test]
fn those_that_nobody_would_miss_give_way_to_the_weakest() {
    let mut stage = Stage::of(&[3]);
    stage.grant(of(source(7), STRONG));
    stage.run(5_000);
    stage.grant(wish(probe(9)));
    stage.grant(of(source(8), STRONG));
    stage.set_strength(source(8), None);
    for n in 10..13 {
        stage.acquire(strong(&stage, playback(n), strength(Place::Soft, 127)));
    }
    assert_eq!(gave_up(&stage).len(), 3);
}

#[test]
fn one_that_has_sent_something_is_not_silent_however_old() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(source(7)));
    stage.run(4_000);
    stage.confirm(grant);
    stage.run(60_000);
    stage.acquire(stage.patient(B));
    assert_eq!(gave_up(&stage), []);
}

#[test]
fn one_that_falls_silent_for_too_long_while_another_waits_gives_way_then() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(source(7)));
    stage.run(4_000);
    stage.acquire(stage.patient(B));
    stage.run(1_000);
    assert_eq!(gave_up(&stage), [(source(7), Why::Idle)]);
    stage.run(100);
    stage.closed(grant);
    assert_eq!(stage.late(B).unwrap().1, 5_100);
}

#[test]
fn v13_a_probe_gives_way_to_a_viewer_and_never_waits_itself() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(probe(1)));
    assert_eq!(stage.acquire(wish(probe(2))), Acquired::Exhausted);
    assert_eq!(stage.acquire(strong(&stage, A, WEAK)), Acquired::Waiting);
    assert_eq!(gave_up(&stage), [(probe(1), Why::Idle)]);
    stage.run(1_000);
    stage.closed(grant);
    assert_eq!(stage.late(A).unwrap().1, 1_000);
}

#[test]
fn without_patience_or_meekly_nobody_gives_way() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(of(A, WEAK));
    assert_eq!(stage.acquire(of(B, STRONG)), Acquired::Exhausted);
    let meek = Patience::Meek(ms(1_000));
    assert_eq!(stage.acquire(Wish { patience: meek, ..of(B, STRONG) }), Acquired::Waiting);
    stage.set_strength(A, None);
    assert_eq!(gave_up(&stage), []);
    stage.run(500);
    stage.close(grant);
    assert_eq!(stage.late(B).unwrap().1, 500, "but it waits");
}

#[test]
fn who_lingers_gives_way_at_once_to_who_waits_already() {
    let mut stage = Stage::of(&[1]);
    stage.grant(wish(source(7)));
    stage.acquire(stage.patient(B));
    stage.run(500);
    stage.set_strength(source(7), None);
    assert_eq!(gave_up(&stage), [(source(7), Why::Idle)]);
}

#[test]
fn who_becomes_weaker_than_who_waits_gives_way() {
    let mut stage = Stage::of(&[1]);
    stage.grant(wish(source(7)));
    stage.acquire(stage.patient(B));
    stage.set_strength(source(7), Some(WEAK));
    assert_eq!(gave_up(&stage), [(source(7), Why::Preempted)]);
}

#[test]
fn who_waits_and_becomes_stronger_takes_it() {
    let mut stage = Stage::of(&[1]);
    stage.grant(wish(A));
    stage.acquire(stage.patient(source(7)));
    stage.set_strength(source(7), Some(STRONG));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
}

#[test]
fn a_lease_without_a_connection_gives_way_at_once() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(Wish { window: millis(15_000), ..of(A, WEAK) });
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(A);
    assert_eq!(stage.grant(stage.patient(B)).account.0, 0);
    assert_eq!((gave_up(&stage), stage.state(A)), (vec![(A, Why::Preempted)], None));
}

#[test]
fn a_lease_whose_connection_is_being_closed_gives_way_with_that() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(Wish { window: millis(15_000), ..of(A, WEAK) });
    stage.confirm(grant);
    stage.release(grant);
    stage.rest(A);
    assert_eq!(stage.acquire(stage.patient(B)), Acquired::Waiting);
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
    stage.run(50);
    stage.closed(grant);
    assert_eq!(stage.late(B).unwrap().1, 50);
}

#[test]
fn nobody_gives_way_where_a_connection_is_being_closed_anyway() {
    let mut stage = Stage::of(&[2]);
    stage.grant(of(A, WEAK));
    let closing = stage.grant(of(B, NORMAL));
    stage.end(B);
    assert_eq!(stage.acquire(stage.patient(C)), Acquired::Waiting);
    assert_eq!(gave_up(&stage), []);
    stage.closed(closing);
    assert!(stage.late(C).is_some());
}

#[test]
fn two_wishes_never_count_on_the_same_victim() {
    let mut stage = Stage::of(&[2]);
    let (a, b) = (stage.grant(of(A, WEAK)), stage.grant(of(B, WEAK)));
    stage.acquire(stage.patient(C));
    assert_eq!(gave_up(&stage).len(), 1);
    stage.acquire(stage.patient(D));
    assert_eq!(gave_up(&stage).len(), 2);
    stage.acquire(stage.patient(playback(5)));
    assert_eq!(gave_up(&stage).len(), 2);
    stage.closed(a);
    stage.closed(b);
    assert!(stage.late(C).is_some() && stage.late(D).is_some() && stage.late(playback(5)).is_none());
}

#[test]
fn a_slot_goes_to_the_strongest_and_who_counted_on_it_looks_for_another() {
    let mut stage = Stage::of(&[2]);
    let (a, b) = (stage.grant(of(A, WEAK)), stage.grant(of(B, WEAK)));
    stage.acquire(stage.patient(C));
    stage.acquire(strong(&stage, D, STRONG));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted), (B, Why::Preempted)]);
    stage.closed(a);
    assert!(stage.late(D).is_some() && stage.late(C).is_none(), "the stronger one first");
    stage.closed(b);
    assert!(stage.late(C).is_some(), "it counted on the other one then");
    assert_eq!(gave_up(&stage).len(), 2, "and nobody else had to go");
}

#[test]
fn who_counted_on_a_slot_that_another_got_makes_another_one_give_way() {
    let mut stage = Stage::of(&[2]);
    let closing = stage.grant(of(A, NORMAL));
    stage.grant(of(B, WEAK));
    stage.end(A);
    stage.acquire(stage.patient(C));
    assert_eq!(gave_up(&stage), [], "a connection is being closed anyway");
    let meek = Patience::Meek(ms(3_000));
    stage.acquire(Wish { patience: meek, ..of(D, STRONG) });
    stage.closed(closing);
    assert!(stage.late(D).is_some());
    assert_eq!(gave_up(&stage), [(B, Why::Preempted)]);
}

#[test]
fn of_equals_who_came_first_is_served_first() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    for holder in [D, B, C] {
        stage.acquire(stage.patient(holder));
    }
    stage.acquire(strong(&stage, playback(9), WEAK));
    let mut order = Vec::new();
    let mut last = grant;
    for _ in 0..4 {
        stage.close(last);
        let (told, _) = *stage.told.last().unwrap();
        let Told::Granted { holder, grant, .. } = told else { panic!("{told:?}") };
        stage.confirm(grant);
        order.push(holder);
        last = grant;
    }
    assert_eq!(order, [D, B, C, playback(9)]);
}

#[test]
fn who_waits_for_a_victim_waits_as_long_as_a_preemption_may_take() {
    let mut stage = Stage::of(&[1]);
    stage.grant(of(A, WEAK));
    let wish = Wish { patience: Patience::Until(ms(60_000), Grace::Hold), ..wish(B) };
    stage.acquire(wish);
    stage.run(60_000);
    assert_eq!(stage.last(B), Some((Told::Exhausted { holder: B }, 1_500)), "a slot is never used twice");
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(of(A, WEAK));
    assert_eq!(stage.acquire(Wish { patience: Patience::Until(ms(0), Grace::Hold), ..wish }), Acquired::Waiting);
    stage.run(1_499);
    stage.closed(grant);
    assert!(stage.late(B).is_some(), "without a grace, too");
}

#[test]
fn who_waits_for_no_victim_waits_for_the_grace() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    stage.acquire(stage.patient(B));
    assert_eq!(stage.notes, [Note::AccountGraced { holder: B, provider: ProviderId(0) }]);
    stage.run(1_999);
    assert_eq!(stage.told, []);
    stage.run(1);
    assert_eq!(stage.told, [(Told::Exhausted { holder: B }, 2_000)]);
    let none = Patience::Until(ms(stage.now), Grace::Hold);
    assert_eq!(stage.acquire(Wish { patience: none, ..wish(C) }), Acquired::Exhausted, "no grace, no waiting");
    stage.close(grant);
    stage.end(A);
    assert!(stage.is_empty());
}

#[test]
fn who_withdraws_leaves_nothing_and_what_it_counted_on_is_for_others() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(of(A, WEAK));
    stage.acquire(stage.patient(B));
    stage.withdraw(B);
    assert_eq!(stage.room.waiting(), 0);
    stage.acquire(stage.patient(C));
    assert_eq!(gave_up(&stage).len(), 1);
    stage.closed(grant);
    let late = stage.late(C).unwrap().0;
    stage.close(late);
    stage.end(C);
    assert!(stage.is_empty());
}

#[test]
fn a_new_wish_takes_the_place_of_the_one_that_waits() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    stage.acquire(stage.patient(B));
    stage.run(1_000);
    stage.acquire(stage.patient(B));
    assert_eq!(stage.room.waiting(), 1);
    stage.run(1_500);
    assert_eq!(stage.told, []);
    stage.close(grant);
    assert!(stage.late(B).is_some());
}

#[test]
fn who_gave_up_a_connection_for_another_waits_for_its_own_slot() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    stage.confirm(grant);
    stage.acquire(stage.patient(B));
    stage.run(100);
    stage.release(grant);
    let seek = Wish { pin: Pin::Loose(AccountId(0)), patience: Patience::Until(ms(100), Grace::Hold), ..wish(A) };
    assert_eq!(stage.acquire(seek), Acquired::Waiting);
    stage.run(50);
    stage.closed(grant);
    assert_eq!(stage.late(A).unwrap().1, 150, "a seek loses its slot to no equal, however long that one has waited");
    assert_eq!(stage.state(A), Some((LeaseState::Active, 0)));
}

#[test]
fn a_stronger_one_that_waits_has_the_slot_of_a_seek() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    stage.confirm(grant);
    stage.release(grant);
    stage.acquire(Wish { pin: Pin::Loose(AccountId(0)), ..stage.patient(A) });
    stage.acquire(strong(&stage, B, STRONG));
    stage.closed(grant);
    assert!(stage.late(B).is_some() && stage.late(A).is_none());
}

#[test]
fn who_keeps_a_slot_has_it_when_its_connection_is_closed() {
    let mut stage = Stage::of(&[1]);
    let windowed = Wish { window: millis(15_000), ..wish(A) };
    let grant = stage.grant(windowed);
    stage.confirm(grant);
    stage.acquire(stage.patient(B));
    stage.release(grant);
    stage.rest(A);
    let next = Wish { pin: Pin::Firm(AccountId(0)), patience: Patience::Until(ms(2_000), Grace::Hold), ..windowed };
    assert_eq!(stage.acquire(next), Acquired::Waiting);
    stage.closed(grant);
    assert!(stage.late(A).is_some() && stage.late(B).is_none());
}

#[test]
fn who_keeps_a_slot_has_it_when_any_connection_is_closed_that_was_in_its_way() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    let windowed = Wish { window: millis(15_000), ..wish(A) };
    let grant = stage.grant(windowed);
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(A);
    let other = stage.grant(instant(&stage, B));
    assert_eq!(stage.acquire(Wish { patience: Patience::Meek(ms(2_000)), ..windowed }), Acquired::Waiting);
    stage.acquire(stage.patient(C));
    stage.close(other);
    assert!(stage.late(A).is_some() && stage.late(C).is_none());
}

fn overlapping(max_connections: u32) -> Provider {
    let account = Account { overlap: true, max_connections, ..Account::default() };
    Provider { accounts: vec![account], ..Provider::default() }
}

fn instant(stage: &Stage, holder: Holder) -> Wish<'static> {
    Wish { patience: Patience::Until(ms(stage.now + 2_000), Grace::Instant), ..wish(holder) }
}

#[test]
fn what_is_kept_for_nobody_ends_a_grace() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    let first = stage.grant(wish(A));
    stage.confirm(first);
    let second = stage.grant(instant(&stage, B));
    stage.confirm(second);
    stage.run(400);
    stage.set_strength(A, None);
    assert_eq!(gave_up(&stage), [(A, Why::Idle)]);
    stage.close(first);
    assert!(!stage.room.account(AccountId(0)).unwrap().graced, "it has a slot of its own now");
    stage.run(60_000);
    assert_eq!(gave_up(&stage), [(A, Why::Idle)]);
    stage.close(second);
}

#[test]
fn an_instant_grace_is_one_more_where_the_account_bears_it() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    let first = stage.grant(wish(A));
    let second = stage.grant(instant(&stage, B));
    assert!(stage.room.account(AccountId(0)).unwrap().graced);
    assert_eq!(stage.notes, [Note::AccountGraced { holder: B, provider: ProviderId(0) }]);
    assert_eq!(stage.room.account(AccountId(0)).unwrap().counts.graced, 1);
    assert_eq!(stage.acquire(instant(&stage, C)), Acquired::Waiting, "one only");
    stage.run(1_000);
    stage.close(first);
    assert!(!stage.room.account(AccountId(0)).unwrap().graced, "it has a slot of its own now");
    stage.run(60_000);
    assert_eq!(gave_up(&stage), []);
    stage.close(second);
}

#[test]
fn an_instant_grace_ends_where_nothing_became_free() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    stage.grant(wish(A));
    let second = stage.grant(instant(&stage, B));
    stage.run(2_000);
    assert_eq!(gave_up(&stage), [(B, Why::GraceOver)]);
    assert_eq!(stage.acquire(instant(&stage, C)), Acquired::Waiting, "it counts until it is closed");
    stage.closed(second);
    assert!(!stage.room.account(AccountId(0)).unwrap().graced);
    assert_eq!(stage.late(C), None);
    assert!(matches!(stage.acquire(instant(&stage, C)), Acquired::Granted { .. }));
}

#[test]
fn a_grace_is_a_wait_where_no_account_bears_more_or_it_is_no_instant_one() {
    for (overlap, grace) in [(false, Grace::Instant), (true, Grace::Hold)] {
        let mut stage = Stage::new(vec![if overlap { overlapping(1) } else { limits(&[1]) }]);
        stage.grant(wish(A));
        let patience = Patience::Until(ms(2_000), grace);
        assert_eq!(stage.acquire(Wish { patience, ..wish(B) }), Acquired::Waiting);
    }
}

#[test]
fn a_grace_comes_after_preemption() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    stage.grant(of(A, WEAK));
    assert_eq!(stage.acquire(instant(&stage, B)), Acquired::Waiting);
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
}

#[test]
fn a_pinned_account_bears_a_grace_too_and_no_other_does() {
    let mut stage = Stage::new(vec![overlapping(1), overlapping(1)]);
    let providers = &[ProviderId(0), ProviderId(1)];
    stage.grant(wish(A));
    stage.grant(Wish { providers, ..wish(B) });
    let pin = Pin::Firm(AccountId(1));
    let grant = stage.grant(Wish { pin, providers, ..instant(&stage, C) });
    assert_eq!(grant.account.0, 1);
    assert_eq!(stage.acquire(Wish { pin, providers, ..instant(&stage, D) }), Acquired::Waiting);
}

fn cooling(accounts: &[u32], cooling: u64) -> Provider {
    Provider { cooling: millis(cooling), ..limits(accounts) }
}

/// For the title of another holder.
fn title_of(holder: Holder, wish: Wish<'static>) -> Wish<'static> {
    Wish { title: super::stage::wish(holder).title, ..wish }
}

#[test]
fn an_account_rests_after_a_close_before_another_title_may_use_it() {
    let mut stage = Stage::new(vec![cooling(&[1], 4_000)]);
    let grant = stage.grant(wish(A));
    stage.close(grant);
    stage.end(A);
    assert_eq!(stage.acquire(wish(B)), Acquired::Exhausted);
    assert_eq!(stage.room.account(AccountId(0)).unwrap().resting, 1);
    stage.run(3_999);
    assert_eq!(stage.acquire(wish(B)), Acquired::Exhausted);
    stage.run(1);
    assert_eq!(stage.account(B), 0);
    let mut stage = Stage::new(vec![cooling(&[1], 4_000)]);
    let grant = stage.grant(wish(A));
    stage.close(grant);
    stage.end(A);
    assert_eq!(stage.grant(title_of(A, wish(C))).account.0, 0, "the same title need not wait");
    assert_eq!(stage.room.account(AccountId(0)).unwrap().resting, 0);
}

#[test]
fn who_waits_is_served_when_an_account_has_rested() {
    let mut stage = Stage::new(vec![cooling(&[1], 1_000)]);
    let grant = stage.grant(wish(A));
    stage.acquire(stage.patient(B));
    stage.acquire(title_of(A, stage.patient(C)));
    stage.close(grant);
    assert!(stage.late(B).is_none(), "it rests for that one");
    let same = stage.late(C).unwrap().0;
    stage.run(500);
    stage.close(same);
    stage.end(C);
    stage.run(1_000);
    assert_eq!(stage.late(B).unwrap().1, 1_500);
}

#[test]
fn what_a_lease_keeps_rests_when_that_is_over_if_it_has_to_still() {
    let mut stage = Stage::new(vec![cooling(&[1], 4_000)]);
    let grant = stage.grant(Wish { window: millis(15_000), ..wish(A) });
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(A);
    assert_eq!(stage.room.account(AccountId(0)).unwrap().resting, 0);
    stage.run(1_000);
    stage.end(A);
    assert_eq!(stage.acquire(wish(B)), Acquired::Exhausted);
    stage.run(3_000);
    assert_eq!(stage.account(B), 0);
}

#[test]
fn nobody_gives_way_for_an_account_that_would_rest_for_longer_than_one_waits() {
    let mut stage = Stage::new(vec![cooling(&[1], 4_000)]);
    stage.grant(of(A, WEAK));
    stage.acquire(stage.patient(B));
    assert_eq!(gave_up(&stage), []);
    stage.acquire(title_of(A, stage.patient(C)));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)], "the same title has it at once");
}

#[test]
fn a_failure_gives_the_slot_to_who_waits_when_it_is_closed() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    stage.acquire(stage.patient(B));
    stage.failed(grant);
    assert_eq!(stage.late(B), None);
    stage.closed(grant);
    assert!(stage.late(B).is_some());
}

#[test]
fn v21_many_at_a_full_account_have_their_answers_in_their_graces() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(A));
    stage.confirm(grant);
    for n in 10..42 {
        stage.acquire(stage.patient(playback(n)));
        stage.run(10);
    }
    stage.run(3_000);
    for n in 10..42 {
        let asked = u64::from(n - 10) * 10;
        assert_eq!(stage.last(playback(n)), Some((Told::Exhausted { holder: playback(n) }, asked + 2_000)));
    }
    stage.close(grant);
    stage.end(A);
    assert!(stage.is_empty());
}

#[test]
fn thousands_that_wait_cost_what_happens_and_no_more() {
    let mut stage = Stage::new(vec![limits(&[1; 2_000])]);
    let mut out = alloc::collections::VecDeque::new();
    let mut grants = Vec::new();
    for n in 0..2_000 {
        let acquired = stage.room.acquire(ms(0), &mut out, wish(playback(n)));
        let Acquired::Granted { grant, .. } = acquired else { panic!("{acquired:?}") };
        grants.push(grant);
    }
    for n in 2_000..12_000 {
        assert_eq!(stage.room.acquire(ms(0), &mut out, stage.patient(playback(n))), Acquired::Waiting);
    }
    for grant in grants {
        stage.room.release(ms(1), grant.allocation);
        stage.room.closed(ms(1), &mut out, grant.allocation);
    }
    assert_eq!(stage.room.waiting(), 8_000);
    stage.room.tick(ms(2_000), &mut out);
    assert_eq!(stage.room.waiting(), 0);
}

#[test]
fn a_slot_that_rests_for_its_title_does_so_only_while_its_account_may_be_used() {
    let account = Account { until: Some(Date::from_micros(1_500_000)), ..Account::default() };
    let mut stage = Stage::new(vec![Provider { accounts: vec![account], ..cooling(&[1], 5_000) }]);
    let grant = stage.grant(wish(A));
    stage.run(1_000);
    stage.end(A);
    stage.close(grant);
    stage.run(1_000);
    assert_eq!(stage.acquire(Wish { title: wish(A).title, ..wish(B) }), Acquired::Exhausted);
}

#[test]
fn what_rests_for_its_title_is_not_had_past_a_stronger_one_that_waits() {
    let mut stage = Stage::new(vec![cooling(&[1], 300)]);
    let grant = stage.grant(of(A, WEAK));
    assert_eq!(stage.acquire(strong(&stage, B, NORMAL)), Acquired::Waiting);
    stage.run(10);
    stage.closed(grant);
    // It rests for the title of the one that gave way, and another weak one wants just that.
    let same = Wish { title: wish(A).title, ..of(C, WEAK) };
    assert_eq!(stage.acquire(same), Acquired::Exhausted);
    stage.run(300);
    assert_eq!(stage.late(B).unwrap().1, 310);
}

/// Where one more is connected than may be, nobody gives way in vain: what one leaves there is not there for anybody.
#[test]
fn nobody_gives_way_at_an_account_that_is_over_its_limit() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    stage.grant(of(A, WEAK));
    stage.grant(Wish { strength: WEAK, ..instant(&stage, B) });
    assert_eq!(stage.acquire(strong(&stage, C, STRONG)), Acquired::Waiting);
    assert_eq!(gave_up(&stage), []);
}

/// The same of what is being closed there.
#[test]
fn nobody_counts_on_what_is_closed_where_there_is_one_too_many() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    let first = stage.grant(wish(A));
    stage.grant(instant(&stage, B));
    stage.release(first);
    let impatient = Wish { patience: Patience::Until(ms(0), Grace::Hold), ..wish(C) };
    assert_eq!(stage.acquire(impatient), Acquired::Exhausted);
}

#[test]
fn what_somebody_counts_on_is_not_counted_on_by_its_own_holder_once_more() {
    let mut stage = Stage::of(&[1]);
    let first = stage.grant(wish(A));
    stage.release(first);
    assert_eq!(stage.acquire(stage.patient(B)), Acquired::Waiting);
    let impatient = Wish { patience: Patience::Until(ms(0), Grace::Hold), ..wish(A) };
    assert_eq!(stage.acquire(impatient), Acquired::Exhausted);
    stage.closed(first);
    assert!(stage.late(B).is_some());
}

#[test]
fn an_account_without_a_limit_does_not_rest() {
    let mut stage = Stage::new(vec![cooling(&[0], 4_000)]);
    let resting = |stage: &Stage| stage.room.account(AccountId(0)).unwrap().resting;
    let grant = stage.grant(Wish { window: millis(15_000), ..wish(A) });
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(A);
    stage.run(1_000);
    stage.end(A);
    assert_eq!(resting(&stage), 0, "nor for what a lease kept");
    let grant = stage.grant(wish(B));
    stage.close(grant);
    assert_eq!(resting(&stage), 0);
}

#[test]
fn nobody_gives_way_at_an_account_whose_time_is_over() {
    for changes in [false, true] {
        let ends = Account { until: Some(Date::from_micros(1_000_000)), ..Account::default() };
        let accounts = vec![ends, Account::default()];
        let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
        assert_eq!(stage.grant(of(A, WEAK)).account.0, 0);
        stage.grant(wish(B));
        stage.run(1_000);
        if changes {
            stage.set_strength(A, Some(Strength { priority: 8, ..WEAK }));
        }
        assert_eq!(stage.acquire(stage.patient(C)), Acquired::Waiting);
        assert_eq!(gave_up(&stage), []);
    }
}

#[test]
fn a_grace_of_no_time_is_none() {
    let mut stage = Stage::new(vec![overlapping(1)]);
    stage.grant(wish(A));
    let patience = Patience::Until(ms(0), Grace::Instant);
    assert_eq!(stage.acquire(Wish { patience, ..wish(B) }), Acquired::Exhausted);
}

#[test]
fn where_there_is_no_limit_any_more_a_grace_ends_in_its_time_and_nobody_gives_way() {
    let mut stage = Stage::new(vec![overlapping(0)]);
    stage.allow(0, 1);
    stage.grant(wish(A));
    stage.grant(instant(&stage, B));
    stage.allow(0, 0);
    stage.run(2_000);
    assert_eq!(gave_up(&stage), []);
    assert!(!stage.room.account(AccountId(0)).unwrap().graced);
}

#[test]
fn a_grace_goes_on_while_there_are_too_many_without_it() {
    let mut stage = Stage::new(vec![overlapping(2)]);
    let first = stage.grant(wish(A));
    stage.grant(wish(B));
    stage.grant(instant(&stage, C));
    stage.allow(0, 1);
    stage.close(first);
    assert!(stage.room.account(AccountId(0)).unwrap().graced);
    stage.run(2_000);
    assert_eq!(gave_up(&stage), [(C, Why::GraceOver)]);
}

#[test]
fn a_title_takes_its_own_slot_that_rests_and_leaves_that_of_another() {
    let mut stage = Stage::new(vec![cooling(&[2], 4_000)]);
    let (first, second) = (stage.grant(wish(A)), stage.grant(wish(B)));
    stage.close(first);
    stage.close(second);
    stage.grant(title_of(B, wish(C)));
    assert_eq!(stage.acquire(title_of(B, wish(D))), Acquired::Exhausted);
    stage.grant(title_of(A, wish(D)));
}

#[test]
fn nobody_gives_way_for_an_account_that_would_rest_for_as_long_as_one_waits() {
    let waits = Config::default().playback.preemption_wait;
    for (cooling, gives_way) in [(waits, false), (waits - millis(1), true)] {
        let mut stage = Stage::new(vec![Provider { cooling, ..limits(&[1]) }]);
        stage.grant(of(A, WEAK));
        stage.acquire(stage.patient(B));
        assert_eq!(!gave_up(&stage).is_empty(), gives_way, "{cooling:?}");
    }
}

#[test]
fn who_finds_a_victim_only_later_waits_for_it_as_long_as_a_preemption_may_take() {
    let mut stage = Stage::of(&[1]);
    let first = stage.grant(wish(A));
    assert_eq!(stage.acquire(stage.patient(B)), Acquired::Waiting);
    stage.run(1_900);
    stage.set_strength(A, Some(WEAK));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
    stage.run(200);
    stage.closed(first);
    assert!(stage.late(B).is_some(), "{:?}", stage.told);
}

#[test]
fn who_has_a_victim_or_wants_none_takes_none_when_it_becomes_stronger() {
    let mut stage = Stage::of(&[1, 1]);
    stage.grant(of(A, WEAK));
    stage.grant(of(B, WEAK));
    assert_eq!(stage.acquire(stage.patient(C)), Acquired::Waiting);
    stage.set_strength(C, Some(STRONG));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
    assert_eq!(stage.acquire(Wish { patience: Patience::Meek(ms(2_000)), ..of(D, WEAK) }), Acquired::Waiting);
    stage.set_strength(D, Some(STRONG));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted)]);
}

#[test]
fn who_has_a_victim_does_not_stand_before_one_that_has_none() {
    let mut stage = Stage::of(&[1, 1]);
    stage.grant(of(A, WEAK));
    stage.grant(wish(B));
    assert_eq!(stage.acquire(stage.patient(C)), Acquired::Waiting);
    assert_eq!(stage.acquire(stage.patient(D)), Acquired::Waiting);
    stage.set_strength(B, Some(WEAK));
    assert_eq!(gave_up(&stage), [(A, Why::Preempted), (B, Why::Preempted)]);
}

#[test]
fn what_is_at_hand_is_waited_for_and_nobody_gives_way() {
    let mut stage = Stage::of(&[1]);
    let first = stage.grant(of(A, WEAK));
    let at_hand = Wish { patience: Patience::AtHand(ms(2_000)), ..wish(B) };
    assert_eq!(stage.acquire(at_hand), Acquired::Exhausted);
    stage.release(first);
    assert_eq!(stage.acquire(at_hand), Acquired::Waiting);
    assert_eq!(gave_up(&stage), []);
    stage.closed(first);
    assert!(stage.late(B).is_some());
}

#[test]
fn what_is_avoided_is_not_waited_for_and_who_uses_another_account_gives_way() {
    let mut stage = Stage::of(&[1, 1]);
    stage.grant(wish(A));
    stage.grant(of(B, WEAK));
    let impatient = Wish { patience: Patience::Until(ms(0), Grace::Hold), ..wish(C) };
    let both = &[AccountId(0), AccountId(1)];
    assert_eq!(stage.acquire(Wish { avoid: both, ..stage.patient(C) }), Acquired::Exhausted);
    assert_eq!(gave_up(&stage), []);
    assert_eq!(stage.acquire(Wish { avoid: &both[..1], ..impatient }), Acquired::Waiting);
    assert_eq!(gave_up(&stage), [(B, Why::Preempted)]);
}

#[test]
fn only_who_has_what_will_do_would_help() {
    let providers = &[ProviderId(0), ProviderId(1)];
    let mut stage = Stage::new(vec![limits(&[1]), limits(&[1])]);
    let first = stage.grant(wish(A));
    stage.grant(Wish { providers: &[ProviderId(1)], ..wish(B) });
    let helps = |stage: &Stage, wish: Wish<'_>| [A, B, C].map(|holder| stage.room.would_help(holder, &wish));
    assert_eq!(helps(&stage, wish(D)), [true, false, false]);
    assert_eq!(helps(&stage, Wish { providers, ..wish(D) }), [true, true, false]);
    assert_eq!(helps(&stage, Wish { providers, ..wish(A) }), [false, true, false], "not to itself");
    let pin = Pin::Firm(AccountId(1));
    assert_eq!(helps(&stage, Wish { providers, pin, ..wish(D) }), [false, true, false]);
    stage.release(first);
    assert_eq!(helps(&stage, wish(D)), [false; 3], "what is being closed is at hand without that");
    assert_eq!(stage.acquire(stage.patient(A)), Acquired::Waiting);
    assert_eq!(helps(&stage, wish(D)), [true, false, false], "unless it waits for it itself");
    let mut stage = Stage::of(&[0]);
    stage.grant(wish(A));
    assert_eq!(helps(&stage, wish(D)), [false; 3], "where there is no limit nothing is gained");
}

#[test]
fn a_slot_that_its_title_took_is_its_titles_no_more() {
    let mut stage = Stage::new(vec![cooling(&[2, 2], 4_000)]);
    let first = stage.grant(wish(A));
    stage.close(first);
    let same = |stage: &mut Stage, holder| stage.grant(title_of(A, wish(holder))).account.0;
    assert_eq!([same(&mut stage, B), same(&mut stage, C)], [0, 1]);
}
