//! Titles of providers: what becomes of them beside others that want the same accounts (spec: playback §4; pull §3).

use alloc::vec;
use core::time::Duration;

use super::Phase;
use super::house::{House, provider, strength};
use super::stage::{Fate, Origin};
use crate::config::{Channel, Playback, Provider};
use crate::input::{AccountId, Loss, Note, RefuseReason};
use crate::time::Date;

fn failed(house: &House) -> u64 {
    house.edge.accounts().account(AccountId(0)).unwrap().counts.failed
}

#[test]
fn a_connection_that_fails_is_told_of_its_account_and_one_that_is_left_is_not() {
    let mut house = House::of(&[1]);
    house.origins.insert((7, 0), Origin::Fails(Loss::Forbidden, 20));
    house.watch(7, &[0]);
    house.run(1_000);
    let lost = |note: &Note| matches!(note, Note::AccountLost { account: AccountId(0), loss: Loss::Forbidden });
    assert_eq!((house.noted(lost), failed(&house)), (1, 1));
    let mut house = House::of(&[1]);
    let viewer = house.viewer(7, &[0]);
    house.leave(viewer);
    house.run(4_000);
    assert_eq!((house.noted(|note| matches!(note, Note::AccountLost { .. })), failed(&house)), (0, 0));
}

#[test]
fn the_end_of_a_title_is_remembered_for_its_pause_though_nobody_wants_it() {
    let pause = Duration::from_secs(10);
    let live = Channel { retries: Some(0), no_input_timeout: pause, retry_backoff_max: pause, ..Channel::default() };
    let mut house = House::new(vec![Provider { live, ..provider(&[1]) }], Playback::default());
    house.origins.insert((7, 0), Origin::Fails(Loss::Refused, 20));
    house.watch(7, &[0]);
    house.run(5_000);
    assert_eq!(house.phase(7), Some(Phase::Ended));
    let early = house.watch(7, &[0]);
    assert_eq!(house.fate(early), Some(Fate::Refused(RefuseReason::NoSource, house.now)));
    house.run(6_000);
    assert_eq!((house.channel(7), house.opens.len()), (None, 1));
    assert!(house.is_empty());
}

#[test]
fn an_account_that_was_given_up_ends_nobody_once_media_flows_again() {
    let mut house = House::many(&[&[1], &[1]]);
    house.viewer_of(7, &[0, 1], strength(5));
    house.run(1_000);
    house.viewer_of(8, &[0], strength(1));
    house.run(8_000);
    assert_eq!((house.media[&7].0, house.ended.len()), (1, 0), "it goes on from the other provider");
    house.break_off(7, Loss::Reset);
    house.run(15_000);
    assert_eq!((house.ended.len(), house.phase(7)), (0, Some(Phase::Live)));
}

#[test]
fn what_is_silent_makes_room_and_its_next_connection_waits_for_that_as_long_as_a_grace() {
    let mut house = House::new(vec![provider(&[1])], Playback { grace: Duration::from_secs(4), ..Playback::default() });
    house.viewer(7, &[0]);
    house.run(4_000);
    // As long as a preemption is waited for, and longer.
    house.closes_in = 3_000;
    house.muted.push((7, 0));
    let silent = house.now;
    house.run(10_000);
    // Three seconds until it is silent, a pause of so many and a fifth, then it is closed.
    let opened = house.opens.get(1).map(|(.., at)| *at);
    assert!(opened.is_some_and(|at| at <= silent + 3_000 + 3_600 + 3_000 + 40), "{silent}: {opened:?}");
}

#[test]
fn who_made_room_and_another_had_it_waits_on() {
    let mut house = House::of(&[1]);
    house.viewer(7, &[0]);
    house.run(4_000);
    house.muted.push((7, 0));
    // The pause after three seconds of silence is over in 2.4 to 3.6 s: then room is made.
    house.run(5_300);
    let viewer = house.viewer(8, &[0]);
    house.run(10_000);
    assert_eq!((house.phase(7), house.phase(8)), (Some(Phase::Seeking), Some(Phase::Live)));
    assert!(house.ended.is_empty(), "its origin fell silent, nobody took its account");
    house.muted.clear();
    house.leave(viewer);
    house.run(40_000);
    assert_eq!(house.phase(7), Some(Phase::Live));
}

#[test]
fn a_provider_that_is_looked_at_and_refuses_is_not_asked_again_for_the_sake_of_a_close() {
    let playback = Playback { linger: Duration::from_millis(100), ..Playback::default() };
    let mut house = House::new(vec![provider(&[1]), provider(&[1])], playback);
    house.origins.insert((7, 0), Origin::Fails(Loss::Refused, 20));
    house.viewer(7, &[0, 1]);
    house.origins.insert((7, 0), Origin::Fails(Loss::Forbidden, 20));
    for _ in 0..30 {
        let viewer = house.viewer(8, &[0]);
        house.leave(viewer);
        house.run(2_000);
    }
    let refused = house.noted(|note| matches!(note, Note::SourceLost { index: 0, loss: Loss::Forbidden, .. }));
    let asked = house.opens.iter().filter(|(title, provider, ..)| (*title, *provider) == (7, 0)).count();
    assert!(refused > 0);
    assert_eq!(asked, refused + 1, "each that was made is over, the first was refused otherwise");
}

#[test]
fn a_title_is_pulled_for_whoever_watches_whatever_its_provider_says() {
    let live = Channel { on_demand: false, ..Channel::default() };
    let mut house = House::new(vec![Provider { live, ..provider(&[1]) }], Playback::default());
    let viewer = house.viewer(7, &[0]);
    house.leave(viewer);
    house.run(4_000);
    assert!(house.is_empty());
}

#[test]
fn who_comes_after_an_end_is_told_what_failed_since() {
    let second = Duration::from_secs(1);
    let live = Channel { retries: Some(0), no_input_timeout: second, retry_backoff_max: second, ..Channel::default() };
    let mut house = House::new(vec![Provider { live, ..provider(&[1]) }], Playback::default());
    for (loss, reason) in [(Loss::Limit, RefuseReason::ProviderLimit), (Loss::Refused, RefuseReason::NoSource)] {
        house.origins.insert((7, 0), Origin::Fails(loss, 20));
        let request = house.watch(7, &[0]);
        house.run(1_500);
        assert!(
            matches!(house.fate(request), Some(Fate::Refused(own, _)) if own == reason),
            "{:?}",
            house.fate(request)
        );
        assert_eq!(house.phase(7), Some(Phase::Ended));
    }
    assert_eq!(house.opens.len(), 2);
}

#[test]
fn an_account_whose_time_is_over_is_not_used_though_nothing_else_was_due() {
    for (until, opens) in [(30_000, 1), (10_000, 0)] {
        let mut own = provider(&[1]);
        own.accounts[0].until = Some(Date::from_micros(until * 1000));
        let mut house = House::new(vec![own], Playback::default());
        house.run(20_000);
        house.watch(7, &[0]);
        assert_eq!(house.opens.len(), opens, "until {until}");
    }
}

#[test]
fn a_connection_is_waited_for_until_a_deadline() {
    let mut house = House::of(&[1]);
    house.origins.insert((7, 0), Origin::Silent);
    assert_eq!(house.edge.accounts().timer_count(), 0);
    house.watch(7, &[0]);
    assert!(house.edge.accounts().timer_count() > 0);
}
