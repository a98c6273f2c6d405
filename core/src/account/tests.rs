//! Which account is granted: pools, groups, the order in which they are tried, connections that count (spec: playback §4).

use alloc::vec;
use alloc::vec::Vec;

use super::stage::*;
use super::*;
use crate::config::{Account, Provider};

fn grouped(priorities: &[i8]) -> Provider {
    let account = |priority: &i8| Account { priority: *priority, ..Account::default() };
    Provider { accounts: priorities.iter().map(account).collect(), ..Provider::default() }
}

#[test]
fn a_connection_counts_from_its_grant_until_it_is_closed() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(playback(1)));
    let state = |stage: &Stage| stage.room.allocation(grant.allocation).map(|row| row.state);
    assert_eq!(state(&stage), Some(AllocationState::Opening));
    stage.confirm(grant);
    assert_eq!(state(&stage), Some(AllocationState::Active));
    assert_eq!(stage.acquire(wish(playback(2))), Acquired::Exhausted);
    stage.end(playback(1));
    assert_eq!(state(&stage), Some(AllocationState::Closing));
    assert_eq!(stage.acquire(wish(playback(2))), Acquired::Exhausted, "the provider still counts it");
    stage.closed(grant);
    assert_eq!(state(&stage), None);
    assert_eq!(stage.account(playback(2)), 0);
}

#[test]
fn a_connection_that_closes_by_itself_is_counted_no_more() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(playback(1)));
    stage.closed(grant);
    assert_eq!(stage.account(playback(2)), 0);
    assert_eq!(stage.state(playback(1)), Some((LeaseState::Starting, 0)), "its request is not over");
}

#[test]
fn an_account_that_its_provider_does_not_want_is_tried_last_for_a_while() {
    let mut stage = Stage::of(&[2, 2, 2]);
    let mut next = {
        let mut n = 0;
        move |stage: &mut Stage| {
            n += 1;
            let grant = stage.grant(wish(playback(n)));
            (grant.account.0, grant)
        }
    };
    let (first, grant) = next(&mut stage);
    stage.failed(grant);
    stage.closed(grant);
    let (second, grant) = next(&mut stage);
    assert_eq!((first, second), (0, 1));
    stage.refused(grant);
    stage.closed(grant);
    let open: Vec<_> = (0..4).map(|_| next(&mut stage)).collect();
    assert_eq!(
        open.iter().map(|(account, _)| *account).collect::<Vec<_>>(),
        [2, 0, 2, 0],
        "what else failed is no reason"
    );
    let (last, refused) = next(&mut stage);
    assert_eq!(last, 1, "there are no others");
    stage.close(refused);
    open.into_iter().for_each(|(_, grant)| stage.close(grant));
    stage.run(59_999);
    assert_eq!([next(&mut stage).0, next(&mut stage).0], [2, 0]);
    stage.run(1);
    assert_eq!(next(&mut stage).0, 1);
}

#[test]
fn an_account_is_to_blame_only_where_its_provider_forbids_it() {
    let of_status = |status| Blame::from(Failure::Status(status));
    assert_eq!([of_status(401), of_status(403)], [Blame::Account; 2]);
    assert_eq!([of_status(404), of_status(500)], [Blame::Connection; 2]);
    assert_eq!([of_status(429), of_status(503), Blame::from(Loss::Limit)], [Blame::Limit; 3]);
    assert_eq!([Blame::from(Loss::Forbidden), Blame::from(Loss::Reset)], [Blame::Account, Blame::Connection]);
    assert_eq!([Blame::from(Loss::Page), Blame::from(Failure::Page)], [Blame::Account; 2], "so panels say it");
}

#[test]
fn an_account_with_which_something_plays_is_wanted_again() {
    let mut stage = Stage::of(&[1, 1]);
    let grant = stage.grant(wish(playback(1)));
    stage.refused(grant);
    stage.closed(grant);
    let shunned = |stage: &Stage| stage.room.account(AccountId(0)).map(|state| state.shunned);
    assert_eq!(shunned(&stage), Some(ms(60_000)));
    assert_eq!(stage.account(playback(2)), 1);
    let grant = stage.grant(wish(playback(3)));
    assert_eq!(grant.account, AccountId(0));
    stage.confirm(grant);
    assert_eq!(shunned(&stage), Some(Time::ZERO));
}

#[test]
fn no_limit_is_any_number() {
    let mut stage = Stage::of(&[0]);
    for n in 0..100 {
        assert_eq!(stage.account(playback(n)), 0);
    }
}

#[test]
fn no_more_is_opened_than_the_provider_allows_and_what_is_there_goes_on() {
    // Configured, allowed, what comes of it.
    for (configured, allowed, limit) in [(3, 1, 1), (3, 5, 3), (3, 0, 3), (0, 2, 2), (0, 0, 0)] {
        let mut stage = Stage::of(&[configured]);
        stage.allow(0, allowed);
        assert_eq!(stage.room.account(AccountId(0)).map(|state| state.limit), Some(limit), "{configured} {allowed}");
        for n in 0..limit.max(5) {
            let granted = matches!(stage.acquire(wish(playback(n))), Acquired::Granted { .. });
            assert_eq!(granted, limit == 0 || n < limit, "{configured} {allowed}: {n}");
        }
    }
    let mut stage = Stage::of(&[2]);
    let (one, two) = (stage.grant(wish(playback(1))), stage.grant(wish(playback(2))));
    stage.allow(0, 1);
    assert!(stage.told.is_empty(), "nobody is ended: {:?}", stage.told);
    stage.close(one);
    assert_eq!(stage.acquire(wish(playback(3))), Acquired::Exhausted, "it was one too many");
    assert_eq!(stage.acquire(stage.patient(playback(4))), Acquired::Waiting);
    stage.agrees();
    stage.close(two);
    assert!(stage.late(playback(4)).is_some());
    // And whoever waits has what is allowed again.
    assert_eq!(stage.acquire(stage.patient(playback(5))), Acquired::Waiting);
    stage.allow(0, 0);
    assert!(stage.late(playback(5)).is_some());
    stage.agrees();
}

#[test]
fn where_fewer_are_allowed_what_lingers_is_closed_and_the_weaker_give_way() {
    let mut stage = Stage::of(&[0]);
    let [watched, left] = [playback(1), source(2)].map(|holder| stage.grant(Wish { strength: WEAK, ..wish(holder) }));
    stage.set_strength(source(2), None);
    assert!(stage.told.is_empty(), "there is no limit");
    stage.allow(0, 1);
    assert!(matches!(stage.last(source(2)), Some((Told::GiveUp { why: Why::Idle, .. }, _))), "{:?}", stage.told);
    stage.closed(left);
    assert_eq!(stage.last(playback(1)), None);
    let strong = Wish { strength: STRONG, ..stage.patient(playback(3)) };
    assert_eq!(stage.acquire(strong), Acquired::Waiting);
    assert!(matches!(stage.last(playback(1)), Some((Told::GiveUp { why: Why::Preempted, .. }, _))));
    stage.closed(watched);
    assert!(stage.late(playback(3)).is_some());
    // What nobody watches any more ends what is beyond.
    let mut stage = Stage::of(&[2]);
    let [_, second] = [1, 2].map(|n| stage.grant(wish(source(n))));
    stage.allow(0, 1);
    stage.set_strength(source(2), None);
    assert!(matches!(stage.last(source(2)), Some((Told::GiveUp { why: Why::Idle, .. }, _))), "{:?}", stage.told);
    stage.closed(second);
    stage.set_strength(source(1), None);
    assert_eq!(stage.last(source(1)), None, "it lingers");
}

#[test]
fn accounts_that_may_not_be_used_are_left_out() {
    let account = |enabled, until| Account { enabled, until, ..Account::default() };
    let accounts = vec![account(false, None), account(true, Some(Date::from_micros(1_000_000))), account(true, None)];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    stage.run(1_000);
    assert_eq!(stage.account(playback(1)), 2);
    assert_eq!(stage.acquire(wish(playback(2))), Acquired::Exhausted);
    assert_eq!(stage.room.accounts().map(|state| state.serves).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(stage.notes, [Note::AccountOver { account: AccountId(1) }], "it is told once");
    assert_eq!(stage.room.lack(&[ProviderId(0)]), RefuseReason::ProviderLimit, "another one may be had");
}

#[test]
fn where_no_account_may_be_used_nobody_waits_and_nobody_gives_way() {
    let accounts = vec![Account { until: Some(Date::from_micros(1_000_000)), ..Account::default() }];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    stage.grant(Wish { strength: WEAK, ..wish(playback(1)) });
    stage.run(1_000);
    assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Exhausted);
    assert_eq!(stage.acquire(Wish { providers: &[ProviderId(7)], ..stage.patient(playback(2)) }), Acquired::Exhausted);
    assert!(stage.told.is_empty(), "{:?}", stage.told);
    assert_eq!(stage.room.lack(&[ProviderId(0)]), RefuseReason::AccountsOver);
    assert_eq!(stage.notes, [Note::AccountOver { account: AccountId(0) }]);
}

#[test]
fn an_account_that_ends_on_a_date_does_so_when_the_clock_is_set() {
    let account = |until| Account { until: Some(Date::from_micros(until)), ..Account::default() };
    let accounts = vec![account(1_000_000), Account { enabled: false, ..account(9_000_000) }];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    let serves = |stage: &Stage| stage.room.accounts().map(|state| state.serves).collect::<Vec<_>>();
    stage.set_clock(999_000);
    assert_eq!(serves(&stage), [true, false]);
    let grant = stage.grant(wish(playback(1)));
    assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Waiting);
    stage.run(1);
    stage.end(playback(1));
    stage.closed(grant);
    assert_eq!(serves(&stage), [false, false]);
    assert_eq!(stage.late(playback(2)), None, "nobody has it");
    // Whoever waited for it has it when it serves after all.
    stage.set_clock(-1_000_000);
    assert_eq!(serves(&stage), [true, false]);
    assert!(stage.late(playback(2)).is_some());
}

#[test]
fn an_account_that_ended_before_the_start_serves_no_sooner_than_the_clock_says() {
    let accounts = vec![Account { until: Some(Date::from_micros(-5_000_000)), ..Account::default() }];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    stage.run(1_000);
    for (by, serves) in [(-3_000_000, false), (-3_000_000, false), (-1, true), (1, false)] {
        stage.set_clock(by);
        assert_eq!(stage.room.accounts().map(|state| state.serves).collect::<Vec<_>>(), [serves], "{by}");
    }
}

#[test]
fn at_an_account_that_serves_after_all_the_weaker_give_way_again() {
    let accounts = vec![Account { until: Some(Date::from_micros(1_000_000)), ..Account::default() }];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    stage.grant(Wish { strength: WEAK, ..wish(playback(1)) });
    stage.set_clock(1_000_000);
    assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Exhausted);
    stage.set_clock(-1_000_000);
    assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Waiting);
    assert!(stage.told.iter().any(|(told, _)| matches!(told, Told::GiveUp { .. })), "{:?}", stage.told);
}

#[test]
fn accounts_of_a_group_take_turns() {
    let mut stage = Stage::of(&[2, 2, 2]);
    let turns: Vec<u32> = (0..6).map(|n| stage.account(playback(n))).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn turns_go_on_behind_the_last_one_whatever_is_free() {
    let mut stage = Stage::of(&[1, 1, 1]);
    let first = stage.grant(wish(playback(1)));
    stage.close(first);
    assert_eq!(stage.account(playback(2)), 1);
    assert_eq!((stage.account(playback(3)), stage.account(playback(4))), (2, 0));
}

#[test]
fn groups_have_their_turn_by_priority() {
    let mut stage = Stage::new(vec![grouped(&[5, -5, 0, -5])]);
    let turns: Vec<u32> = (0..4).map(|n| stage.account(playback(n))).collect();
    assert_eq!(turns, [1, 3, 2, 0]);
}

#[test]
fn the_preferred_provider_is_tried_with_all_its_groups_first() {
    let mut stage = Stage::new(vec![grouped(&[0]), grouped(&[0, 9])]);
    let providers = &[ProviderId(1), ProviderId(0), ProviderId(1)];
    let found: Vec<(u32, u32)> = (0..3)
        .map(|n| match stage.acquire(Wish { providers, ..wish(playback(n)) }) {
            Acquired::Granted { grant, index } => (grant.account.0, index),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [(1, 0), (2, 0), (0, 1)]);
}

#[test]
fn a_pinned_account_is_tried_first() {
    for pin in [Pin::Loose(AccountId(2)), Pin::Firm(AccountId(2))] {
        let mut stage = Stage::of(&[1, 1, 1]);
        let grant = stage.grant(Wish { pin, ..wish(playback(1)) });
        assert_eq!(grant.account.0, 2);
    }
}

#[test]
fn a_loose_pin_may_be_left_a_firm_one_not() {
    let mut stage = Stage::of(&[1, 1]);
    stage.account(playback(1));
    let loose = Pin::Loose(AccountId(0));
    assert_eq!(stage.grant(Wish { pin: loose, ..wish(playback(2)) }).account.0, 1);
    let mut stage = Stage::of(&[1, 1]);
    let grant = stage.grant(wish(playback(1)));
    let firm = Pin::Firm(AccountId(0));
    assert_eq!(stage.acquire(Wish { pin: firm, ..wish(playback(2)) }), Acquired::Exhausted);
    assert_eq!(stage.acquire(Wish { pin: firm, ..stage.patient(playback(2)) }), Acquired::Waiting);
    stage.grant(wish(playback(3)));
    stage.close(grant);
    assert_eq!(stage.late(playback(2)).unwrap().0.account.0, 0);
}

#[test]
fn a_firm_pin_that_cannot_be_had_is_not_waited_for() {
    let mut stage = Stage::new(vec![limits(&[1]), limits(&[1])]);
    for account in [1, 77] {
        let pin = Pin::Firm(AccountId(account));
        assert_eq!(stage.acquire(Wish { pin, ..stage.patient(playback(1)) }), Acquired::Exhausted, "{account}");
    }
    assert!(stage.is_empty());
}

#[test]
fn a_wish_of_who_has_a_lease_keeps_its_account_where_it_can() {
    let mut stage = Stage::of(&[2, 2]);
    let first = stage.grant(wish(playback(1)));
    stage.confirm(first);
    stage.release(first);
    let again = stage.grant(wish(playback(1)));
    assert_eq!((first.account.0, again.account.0), (0, 0));
}

fn remembered(player: u32, holder: Holder) -> Wish<'static> {
    let viewing = Some(viewing(player));
    Wish { viewing, window: millis(45_000), ..wish(holder) }
}

#[test]
fn v4_who_comes_back_has_the_account_that_it_had() {
    let mut stage = Stage::of(&[1, 1, 1]);
    for n in 0..10 {
        let grant = stage.grant(remembered(7, playback(n)));
        assert_eq!(grant.account.0, 0, "{n}");
        stage.confirm(grant);
        stage.close(grant);
        stage.rest(playback(n));
        // Its window passes, and it comes back as another playback.
        stage.run(60_000);
        assert_eq!(stage.last(playback(n)).unwrap().0, Told::Expired { holder: playback(n) });
    }
    assert!(stage.is_empty());
}

#[test]
fn an_affinity_lasts_for_the_window_and_the_ttl_and_reserves_nothing() {
    for (pause, account) in [(45_000 + 119_000, 0), (45_000 + 120_000, 1)] {
        let mut stage = Stage::of(&[1, 1, 1]);
        let grant = stage.grant(remembered(7, playback(1)));
        stage.confirm(grant);
        stage.close(grant);
        stage.rest(playback(1));
        stage.run(pause);
        assert_eq!(stage.grant(remembered(7, playback(2))).account.0, account);
    }
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(remembered(7, playback(1)));
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(playback(1));
    stage.run(50_000);
    assert_eq!(stage.account(playback(9)), 0);
    assert_eq!(stage.acquire(remembered(7, playback(2))), Acquired::Exhausted);
}

#[test]
fn only_what_was_confirmed_and_has_a_window_is_remembered() {
    let mut stage = Stage::of(&[1, 1]);
    let unconfirmed = stage.grant(remembered(7, playback(1)));
    stage.close(unconfirmed);
    stage.rest(playback(1));
    let windowless = stage.grant(Wish { window: Duration::ZERO, ..remembered(8, playback(2)) });
    stage.confirm(windowless);
    assert_eq!(stage.room.affinities(), 0);
}

#[test]
fn a_failure_ends_an_affinity_if_it_is_of_how_the_account_was_used_last() {
    let mut stage = Stage::of(&[1, 1, 1]);
    let grant = stage.grant(remembered(7, playback(1)));
    stage.confirm(grant);
    stage.failed(grant);
    stage.closed(grant);
    assert_eq!(stage.room.affinities(), 0);
    // As is the first attempt after it came back.
    let grant = stage.grant(remembered(7, playback(2)));
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(playback(2));
    stage.run(50_000);
    let again = stage.grant(remembered(7, playback(3)));
    assert_eq!(again.account, grant.account);
    stage.failed(again);
    assert_eq!(stage.room.affinities(), 0);
}

#[test]
fn v22_a_late_failure_of_a_playback_that_moved_on_touches_neither_lease_nor_affinity() {
    let mut stage = Stage::of(&[1, 1]);
    let old = stage.grant(remembered(7, playback(1)));
    stage.confirm(old);
    stage.release(old);
    let firm = Pin::Loose(AccountId(1));
    let new = stage.grant(Wish { pin: firm, ..remembered(7, playback(1)) });
    assert_eq!((old.account.0, new.account.0, stage.state(playback(1))), (0, 1, Some((LeaseState::Starting, 1))));
    stage.confirm(new);
    let stale = stage.room.stale();
    stage.failed(old);
    stage.confirm(old);
    stage.closed(old);
    assert_eq!(stage.state(playback(1)), Some((LeaseState::Active, 1)));
    assert_eq!((stage.room.affinities(), stage.room.stale()), (1, stale + 2));
    stage.release(new);
    stage.end(playback(1));
    assert_eq!(stage.room.affinities(), 0, "a kick ends it");
}

#[test]
fn what_names_nothing_changes_nothing_and_is_counted() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(playback(1)));
    stage.close(grant);
    stage.end(playback(1));
    let next = stage.grant(wish(playback(2)));
    for (n, act) in [Stage::release, Stage::confirm, Stage::failed].into_iter().enumerate() {
        act(&mut stage, grant);
        assert_eq!(stage.room.stale(), n as u64 + 1);
    }
    let mut out = alloc::collections::VecDeque::new();
    stage.room.closed(ms(0), &mut out, grant.allocation);
    assert_eq!(stage.room.stale(), 4);
    assert_eq!(stage.room.allocation(next.allocation).unwrap().state, AllocationState::Opening);
}

#[test]
fn memory_of_affinities_is_bounded() {
    let mut stage = Stage::of(&[0]);
    for n in 0..5_000 {
        let grant = stage.grant(remembered(n, playback(n)));
        stage.room.confirm(ms(0), grant.allocation);
        stage.open.clear();
        stage.room.closed(ms(0), &mut alloc::collections::VecDeque::new(), grant.allocation);
        stage.room.rest(ms(0), &mut alloc::collections::VecDeque::new(), playback(n));
    }
    assert!(stage.room.affinities() <= 4_096);
}

#[test]
fn a_grant_of_an_authority_that_sets_it_a_term_ends_with_that() {
    let mut stage = Stage::of(&[1]);
    stage.room.authority = Authority { lifetime: millis(10_000) };
    let grant = stage.grant(wish(playback(1)));
    stage.confirm(grant);
    assert_eq!(stage.room.allocation(grant.allocation).unwrap().expires, ms(10_000));
    stage.run(9_999);
    assert!(stage.told.is_empty());
    stage.run(1);
    assert_eq!(stage.told, [(Told::GiveUp { holder: playback(1), why: Why::GrantOver }, 10_000)]);
    assert_eq!(stage.acquire(wish(playback(2))), Acquired::Exhausted, "it counts until it is closed");
    stage.closed(grant);
    assert!(stage.is_empty());
}

#[test]
fn here_a_grant_has_no_term() {
    let mut stage = Stage::of(&[1]);
    let grant = stage.grant(wish(playback(1)));
    assert_eq!(stage.room.allocation(grant.allocation).unwrap().expires, Time::NEVER);
}

#[test]
fn after_a_drain_nobody_is_granted_anything_and_who_waits_is_told() {
    let mut stage = Stage::of(&[1, 1]);
    stage.account(playback(1));
    let second = stage.grant(wish(playback(2)));
    stage.acquire(stage.patient(playback(3)));
    stage.room.drain();
    stage.run(0);
    stage.close(second);
    assert_eq!(stage.told, [(Told::Exhausted { holder: playback(3) }, 0)]);
    assert_eq!(stage.acquire(stage.patient(playback(4))), Acquired::Exhausted);
}

#[test]
fn counts_tell_what_happened() {
    let mut stage = Stage::of(&[1]);
    let first = stage.grant(Wish { strength: WEAK, ..wish(playback(1)) });
    stage.confirm(first);
    stage.confirm(first);
    stage.acquire(stage.patient(playback(2)));
    stage.closed(first);
    let second = stage.late(playback(2)).unwrap().0;
    stage.failed(second);
    stage.closed(second);
    stage.account(playback(3));
    stage.run(6_000);
    let counts = *stage.room.account(AccountId(0)).unwrap().counts;
    let expected = AccountCounts { granted: 3, confirmed: 1, graced: 0, preempted: 1, failed: 1, expired: 1 };
    assert_eq!(counts, expected);
}

#[test]
fn a_slot_that_rests_in_time_is_counted_on_and_no_other() {
    let wait = Stage::of(&[1]).room.preemption_wait;
    for (cooling, counts) in [(wait - millis(1), true), (wait, false)] {
        let mut stage = Stage::new(vec![Provider { cooling, ..limits(&[1]) }]);
        let grant = stage.grant(wish(playback(1)));
        stage.release(grant);
        assert_eq!(stage.acquire(stage.patient(playback(2))), Acquired::Waiting);
        let by = stage.room.allocation(grant.allocation).unwrap().expected_by;
        assert_eq!(by, counts.then_some(playback(2)), "{cooling:?}");
    }
}

#[test]
fn slots_have_rested_one_after_the_other() {
    let mut stage = Stage::new(vec![Provider { cooling: millis(500), ..limits(&[2]) }]);
    let (first, second) = (stage.grant(wish(playback(1))), stage.grant(wish(playback(2))));
    stage.close(first);
    stage.run(200);
    stage.close(second);
    stage.run(299);
    assert_eq!(stage.acquire(wish(playback(3))), Acquired::Exhausted);
    stage.run(1);
    assert_eq!(stage.account(playback(3)), 0);
}

#[test]
fn a_slot_that_has_rested_is_its_titles_no_more() {
    let mut stage = Stage::new(vec![Provider { cooling: millis(500), ..limits(&[1, 1]) }]);
    let grant = stage.grant(wish(playback(1)));
    stage.close(grant);
    stage.end(playback(1));
    stage.run(500);
    assert_eq!(stage.account(playback(1)), 1, "it is the turn of the other account");
}

#[test]
fn a_grace_that_is_needed_no_more_ends_in_its_time_and_nobody_gives_way() {
    let mut provider = limits(&[1]);
    provider.accounts[0].overlap = true;
    let mut stage = Stage::new(vec![provider]);
    let grant = stage.grant(remembered(7, playback(1)));
    stage.confirm(grant);
    stage.close(grant);
    stage.rest(playback(1));
    stage.grant(Wish { patience: Patience::Until(ms(2_000), Grace::Instant), ..wish(playback(2)) });
    stage.end(playback(1));
    let graced = |stage: &Stage| stage.room.account(AccountId(0)).unwrap().graced;
    assert!(graced(&stage));
    stage.run(2_000);
    assert!(!graced(&stage) && stage.told.is_empty(), "{:?}", stage.told);
}

#[test]
fn an_account_that_ends_on_a_date_is_looked_at_then() {
    let end = Date::from_micros(1_000_000);
    let accounts = vec![Account { until: Some(end), ..Account::default() }, Account::default()];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    let until = |stage: &Stage| [0, 1].map(|account| stage.room.until(AccountId(account)));
    assert_eq!((stage.room.deadline(), until(&stage)), (Some(ms(1_000)), [Some(end), None]));
    stage.set_clock(400_000);
    assert_eq!((stage.room.deadline(), until(&stage)), (Some(ms(600)), [Some(Date::from_micros(600_000)), None]));
}

#[test]
fn a_clock_that_is_set_twice_brings_no_account_back() {
    let accounts = vec![Account { until: Some(Date::from_micros(1_000_000)), ..Account::default() }];
    let mut stage = Stage::new(vec![Provider { accounts, ..Provider::default() }]);
    stage.set_clock(1);
    assert_eq!(stage.room.lack(ONE), RefuseReason::ProviderLimit);
    stage.set_clock(1_000_000);
    assert_eq!(stage.room.lack(ONE), RefuseReason::AccountsOver);
    assert_eq!(stage.acquire(stage.patient(playback(1))), Acquired::Exhausted);
}

#[test]
fn a_holder_whose_former_connection_is_closed_still_has_the_present_one() {
    let mut stage = Stage::of(&[2]);
    let first = stage.grant(wish(playback(1)));
    stage.release(first);
    let second = stage.grant(wish(playback(1)));
    stage.closed(first);
    stage.end(playback(1));
    let state = stage.room.allocation(second.allocation).map(|row| row.state);
    assert_eq!(state, Some(AllocationState::Closing), "it is given up with its holder");
}
