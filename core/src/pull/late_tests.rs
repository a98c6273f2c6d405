//! Live streams of providers that still count what was closed a moment ago (spec: protocols §4.4).

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::house::{House, provider};
use super::stage::{Fate, Origin};
use crate::config::Playback;
use crate::input::{AccountId, GivesWay, Loss, Note, RefuseReason};

#[test]
fn a_zap_at_a_provider_that_counts_late_is_asked_again_and_then_goes_on() {
    let mut house = House::of(&[1]);
    let viewer = house.viewer(7, &[0]);
    house.leave(viewer);
    house.origins.insert((8, 0), Origin::Fails(Loss::Forbidden, 20));
    let request = house.watch(8, &[0]);
    house.run(400);
    let refused = house.opens.iter().filter(|open| open.0 == 8).count();
    assert!(refused >= 1 && house.fate(request).is_none(), "it waits");
    house.origins.remove(&(8, 0));
    house.joined(request, 2_000);
    assert_eq!(house.opens.iter().filter(|open| open.0 == 8).count(), refused + 1);
    assert_eq!(house.noted(|note| matches!(note, Note::AccountLate { .. })), 1);
    assert_eq!(house.noted(|note| matches!(note, Note::SourceLost { loss: Loss::Forbidden, .. })), 0);
    assert_eq!(house.edge.accounts().account(AccountId(0)).map(|own| own.counts.failed), Some(0));
}

#[test]
fn a_refusal_that_does_not_end_is_told_in_two_seconds() {
    let mut house = House::of(&[1]);
    let viewer = house.viewer(7, &[0]);
    house.leave(viewer);
    house.origins.insert((8, 0), Origin::Fails(Loss::Forbidden, 20));
    let (request, start) = (house.watch(8, &[0]), house.now);
    house.run(3_000);
    assert!(
        matches!(house.fate(request), Some(Fate::Refused(RefuseReason::NoSource, at)) if at < start + 2_500),
        "{:?}",
        house.fate(request)
    );
    let limit = |note: &Note| {
        // It was tried for so long, not only for the last time.
        matches!(note, Note::SourceLost { loss: Loss::Forbidden, lasted, .. } if *lasted >= 2_000_000)
    };
    assert_eq!((house.noted(limit), house.noted(|note| matches!(note, Note::SourceLost { .. }))), (1, 1));
    // Nothing was closed since that could still be counted.
    house.run(5_000);
    let again = house.watch(8, &[0]);
    house.run(500);
    assert!(matches!(house.fate(again), Some(Fate::Refused(RefuseReason::NoSource, _))), "{:?}", house.fate(again));
    assert_eq!(house.noted(|note| matches!(note, Note::SourceLost { loss: Loss::Forbidden, .. })), 2);
}

/// Zaps of one viewer through `titles` at a provider of one account that counts `late` ms late and answers `refusal` meanwhile: how
/// long each took, and how often it was asked for.
fn zaps(late: u64, refusal: Loss, titles: core::ops::Range<u64>) -> Vec<(u64, usize)> {
    let mut house = House::of(&[1]);
    house.late = (late, refusal);
    let mut viewer = house.viewer(7, &[0]);
    let mut took = Vec::new();
    for title in titles {
        house.run(1_000);
        house.leave(viewer);
        let start = house.now;
        let request = house.watch(title, &[0]);
        viewer = house.joined(request, 5_000);
        took.push((house.now - start, house.opens.iter().filter(|open| open.0 == title).count()));
    }
    assert_eq!(house.noted(|note| matches!(note, Note::SourceLost { .. })), 0);
    assert_eq!(house.edge.accounts().account(AccountId(0)).map(|own| own.counts.failed), Some(0));
    house.leave(viewer);
    house.run(70_000);
    assert!(house.is_empty());
    took
}

#[test]
fn zapping_goes_on_at_a_provider_that_counts_late_whatever_it_answers_and_then_waits_for_it_at_once() {
    for refusal in [Loss::Limit, Loss::Forbidden, Loss::Page] {
        let took = zaps(1_500, refusal, 8..12);
        assert!((1_500..2_500).contains(&took[0].0) && took[0].1 == 4, "{refusal:?}: {took:?}");
        for again in &took[1..] {
            assert!((1_500..2_500).contains(&again.0) && again.1 == 1, "{refusal:?}: {took:?}");
        }
    }
    // What is waited for in all is waited for to its end.
    let took = zaps(1_950, Loss::Limit, 8..10);
    assert_eq!(took.iter().map(|own| own.1).collect::<Vec<_>>(), [5, 1], "{took:?}");
}

#[test]
fn who_leaves_while_what_was_granted_rests_leaves_nothing() {
    let mut house = House::of(&[1]);
    house.late = (1_500, Loss::Limit);
    let viewer = house.viewer(7, &[0]);
    house.leave(viewer);
    let request = house.watch(8, &[0]);
    let viewer = house.joined(request, 5_000);
    house.leave(viewer);
    let request = house.watch(9, &[0]);
    house.run(500);
    let channel = house.channel(9).unwrap();
    assert!(house.edge.pull().state(channel).unwrap().waits, "it is granted and rests");
    assert_eq!((house.open(), house.edge.accounts().allocations().count()), (0, 1));
    house.hangup(request);
    // Whoever is next has what is left of it, and no more.
    let (request, start) = (house.watch(10, &[0]), house.now);
    let viewer = house.joined(request, 5_000);
    assert!(house.now - start < 1_800, "{}", house.now - start);
    assert_eq!(house.opens.iter().filter(|open| open.0 == 9).count(), 0);
    house.leave(viewer);
    house.run(70_000);
    assert!(house.is_empty());
}

#[test]
fn a_source_that_rests_for_a_provider_that_counts_late_is_not_silent_meanwhile() {
    let settings = Playback { starting_deadline: Duration::from_secs(1), ..Playback::default() };
    let mut house = House::new(vec![provider(&[1])], settings);
    house.late = (1_500, Loss::Limit);
    let viewer = house.viewer(7, &[0]);
    house.leave(viewer);
    let request = house.watch(8, &[0]);
    let viewer = house.joined(request, 5_000);
    house.leave(viewer);
    let (zap, start) = (house.watch(9, &[0]), house.now);
    house.run(1_200);
    let other = house.watch(10, &[0]);
    house.joined(zap, 1_500);
    assert!(house.now > start + 1_400, "it rested for longer than it may be silent");
    let silent = |note: &Note| matches!(note, Note::AccountPreempted { why: GivesWay::Silent, .. });
    assert_eq!(house.noted(silent), 0);
    house.run(3_000);
    assert!(matches!(house.fate(other), Some(Fate::Refused(RefuseReason::ProviderLimit, _))));
}
