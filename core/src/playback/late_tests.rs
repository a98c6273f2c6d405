//! Providers that go on counting what was closed, in simulated time.

use alloc::vec;
use core::time::Duration;

use super::Item;
use super::stage::{A, B, Fate, Origin, Stage, hls, provider, user, vod, with};
use crate::config::{Account, Playback, Provider, Strategy};
use crate::input::{AccountId, Failure, Note, RefuseReason, TitleId, ViewerEnd, Want};

fn late(ms: u64) -> Stage {
    let mut stage = Stage::new([user(2, 0)], [provider(&[1])], with(&[]));
    stage.late = ms;
    stage
}

#[test]
fn ranges_of_one_film_come_through_at_a_provider_that_counts_late() {
    let mut stage = late(600);
    let first = stage.rest(0, vod(1), A);
    assert!(stage.is_fetched(first));
    stage.run(100);
    let second = stage.rest(0, vod(1), A);
    stage.run(2000);
    assert_eq!((stage.fate(first), stage.at(second)), (Some(Fate::Cut(ViewerEnd::Superseded)), 100 + 750));
    assert_eq!((stage.used.len(), stage.counted(0), stage.open()), (4, 1, 1), "twice in vain, then not");
    assert_eq!(stage.noted(|note| matches!(note, Note::AccountLate { late: 750_000, .. })), 1);
    assert_eq!(stage.noted(|note| matches!(note, Note::AccountFailed { .. })), 0);
    let account = stage.edge.accounts().account(AccountId(0)).expect("an account");
    assert_eq!((account.counts.failed, account.shunned), (0, crate::time::Time::ZERO));
    // From here on it is known, and nobody is refused.
    for round in 3..7 {
        let start = stage.now;
        let next = stage.rest(0, vod(1), A);
        stage.run(1000);
        assert_eq!((stage.at(next), stage.used.len(), stage.open()), (start + 750, round + 2, 1));
    }
    for request in stage.requests_open() {
        stage.finish(request, ViewerEnd::Left);
    }
    stage.is_empty();
}

#[test]
fn so_does_another_film_where_nothing_cools_and_what_was_learnt_is_forgotten() {
    let mut stage = late(200);
    let first = stage.rest(0, vod(1), A);
    stage.finish(first, ViewerEnd::Left);
    let zap = stage.rest(0, vod(2), A);
    stage.run(1000);
    assert_eq!((stage.at(zap), stage.used.len()), (250, 3));
    stage.finish(zap, ViewerEnd::Left);
    stage.late = 0;
    for (after, wait) in [(0, 250), (300_000, 125), (300_000, 62)] {
        stage.run(after);
        let again = stage.rest(0, vod(1), A);
        stage.run(500);
        stage.finish(again, ViewerEnd::Left);
        let start = stage.now;
        let next = stage.rest(0, vod(2), A);
        stage.run(999);
        assert!(stage.is_fetched(next) && stage.at(next).abs_diff(start + wait) <= 1, "{}", stage.at(next) - start);
        stage.finish(next, ViewerEnd::Left);
        stage.run(1);
    }
    stage.is_empty();
}

#[test]
fn a_refusal_that_does_not_end_is_told_within_two_seconds_and_blames_the_account() {
    let mut stage = late(0);
    let first = stage.rest(0, vod(1), A);
    stage.finish(first, ViewerEnd::Left);
    stage.origins.insert(AccountId(0), Origin::Fails(Failure::Status(403)));
    let second = stage.rest(0, vod(1), A);
    stage.run(5000);
    assert_eq!((stage.refused(second), stage.at(second)), (Some(RefuseReason::ProviderFailed), 2000));
    assert_eq!(stage.used.len(), 1 + 5);
    // Nothing was closed since that it could still count.
    let third = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(third), Some(RefuseReason::ProviderFailed));
    assert_eq!(stage.noted(|note| matches!(note, Note::AccountLate { .. })), 0);
    stage.is_empty();
}

#[test]
fn nobody_waits_where_the_provider_cannot_be_at_its_limit() {
    let mut stage = Stage::new([user(2, 0)], [provider(&[2])], with(&[]));
    let first = stage.rest(0, vod(1), A);
    stage.finish(first, ViewerEnd::Left);
    stage.origins.insert(AccountId(0), Origin::Fails(Failure::Status(403)));
    let second = stage.rest(0, vod(1), B);
    assert_eq!((stage.refused(second), stage.at(second)), (Some(RefuseReason::ProviderFailed), 0));
    stage.is_empty();
}

#[test]
fn whoever_leaves_meanwhile_leaves_nothing() {
    let mut stage = late(5000);
    let first = stage.rest(0, vod(1), A);
    stage.finish(first, ViewerEnd::Left);
    let second = stage.rest(0, vod(1), A);
    stage.run(100);
    assert_eq!((stage.open(), stage.requests_waiting().len()), (0, 0));
    stage.hangup(second);
    stage.is_empty();
}

/// A provider whose connections rest for half a second, of which it is known by a seek that it counts them for longer.
fn known_to_be_late() -> Stage {
    let cooled = Provider { cooling: Duration::from_millis(500), ..provider(&[1]) };
    let mut stage = Stage::new([user(2, 0)], [cooled], with(&[]));
    stage.late = 1500;
    let first = stage.rest(0, vod(1), A);
    stage.finish(first, ViewerEnd::Left);
    let second = stage.rest(0, vod(1), A);
    stage.run(3000);
    stage.finish(second, ViewerEnd::Left);
    stage
}

#[test]
fn what_was_granted_and_never_opened_lets_nothing_rest_anew() {
    let mut stage = known_to_be_late();
    // It waits for what is known to be counted for so long, and then does not.
    let third = stage.rest(0, vod(1), A);
    stage.run(1000);
    assert_eq!((stage.open(), stage.is_fetched(third)), (0, false));
    stage.hangup(third);
    let other = stage.rest(0, vod(2), A);
    assert_eq!(stage.refused(other), None);
    stage.run(2000);
    assert!(stage.is_fetched(other));
    stage.finish(other, ViewerEnd::Left);
    stage.run(500);
    stage.is_empty();
}

#[test]
fn who_leaves_before_what_was_granted_is_opened_keeps_what_was_kept_before() {
    let users = [user(0, 0), user(0, 0)];
    let mut stage = Stage::new(users, [provider(&[1])], with(&[Strategy::GraceHold]));
    stage.late = 600;
    let start = stage.playlist(0, hls(1), A);
    let first = stage.child(0, hls(1), start, Want::Part);
    stage.run(2000);
    assert!(stage.is_fetched(first));
    stage.finish(first, ViewerEnd::Done);
    let other = stage.rest(1, vod(2), B);
    // It waits for what is known to be counted for so long, and then does not.
    let second = stage.child(0, hls(1), start, Want::Part);
    stage.run(100);
    assert_eq!((stage.is_fetched(second), stage.fate(other)), (false, None));
    stage.hangup(second);
    stage.run(3000);
    assert_eq!(stage.refused(other), Some(RefuseReason::ProviderLimit), "it is kept for who may come back");
    let third = stage.child(0, hls(1), start, Want::Part);
    assert!(stage.is_fetched(third));
    stage.finish(third, ViewerEnd::Done);
    stage.run(20_000);
    stage.is_empty();
}

#[test]
fn what_rested_before_it_was_granted_and_never_opened_rests_on() {
    let mut stage = known_to_be_late();
    let third = stage.rest(0, vod(1), A);
    stage.run(100);
    stage.hangup(third);
    let other = stage.rest(0, vod(2), A);
    assert_eq!(stage.refused(other), Some(RefuseReason::ProviderLimit));
    stage.run(500);
    stage.is_empty();
}

#[test]
fn another_account_than_the_one_that_counts_late_is_not_waited_for() {
    let [one, other] = [0, 1].map(|priority| Account { max_connections: 1, priority, ..Account::default() });
    let pool = Provider { accounts: vec![one, other], ..Provider::default() };
    let mut stage = Stage::new([user(0, 0)], [pool], with(&[]));
    (stage.late, stage.closing) = (600, 0);
    let first = stage.rest(0, vod(1), A);
    stage.finish(first, ViewerEnd::Left);
    stage.closing = 50;
    // What may be of any account does not stay with the one that was refused.
    let second = stage.fetch(Stage::ask(Stage::viewing(0, Item::Dash(TitleId(2)), A), Want::Setup));
    assert_eq!(stage.used, [AccountId(0), AccountId(0)], "refused as at a limit");
    stage.run(1000);
    assert_eq!(stage.used, [AccountId(0), AccountId(0), AccountId(1)]);
    assert_eq!(
        stage.at(second),
        50,
        "as soon as its last connection is closed, not when the other account may be ready"
    );
    stage.finish(second, ViewerEnd::Left);
    stage.run(60_000);
    stage.is_empty();
}

#[test]
fn what_others_close_meanwhile_puts_nobody_off_again() {
    let mut stage = Stage::new([user(3, 0)], [provider(&[2])], with(&[]));
    stage.late = 1_000;
    let kept = stage.rest(0, vod(9), A);
    let first = stage.rest(0, vod(1), B);
    stage.finish(first, ViewerEnd::Left);
    let zapped = stage.rest(0, vod(2), B);
    stage.run(2_500);
    assert!(stage.is_fetched(zapped), "and that is learnt");
    stage.late = 0;
    stage.finish(kept, ViewerEnd::Left);
    stage.run(5_000);
    let goes_on = |stage: &mut Stage, own| {
        stage.finish(own, ViewerEnd::Left);
        let next = stage.rest(0, vod(2), B);
        assert!(stage.is_fetched(next), "going on with the same waits for nothing");
        next
    };
    let mut own = goes_on(&mut stage, zapped);
    let (start, waits) = (stage.now, stage.rest(0, vod(3), A));
    for _ in 0..6 {
        stage.run(900);
        own = goes_on(&mut stage, own);
    }
    assert!((start + 500..=start + 2_000).contains(&stage.at(waits)), "{} {start}", stage.at(waits));
}

#[test]
fn whoever_waits_for_such_a_provider_gives_way_to_nobody_as_if_it_were_silent() {
    let waits = with(&[Strategy::GraceHold]);
    let settings = Playback { starting_deadline: Duration::from_secs(1), grace: Duration::from_secs(20), ..waits };
    let mut stage = Stage::new([user(2, 0), user(2, 0)], [provider(&[1])], settings);
    stage.late = 1_500;
    for title in [1, 2] {
        let film = stage.rest(0, vod(title), A);
        stage.run(3_000);
        stage.finish(film, ViewerEnd::Left);
    }
    let (asked, start) = (stage.used.len(), stage.now);
    let zap = stage.rest(0, vod(3), A);
    let other = stage.rest(1, vod(4), B);
    stage.run(3_000);
    assert!(stage.is_fetched(zap), "{:?}", stage.fate(zap));
    assert_eq!((stage.used.len(), stage.fate(other)), (asked + 1, None));
    assert!(stage.at(zap) > start + 1_000, "it took longer than it may be silent");
}

#[test]
fn a_part_that_waited_too_long_meanwhile_puts_off_nobody_behind_it() {
    let mut stage = late(600);
    stage.rest(0, vod(1), A);
    stage.run(100);
    let film = stage.rest(0, vod(1), A);
    stage.run(2_000);
    let (start, first) = (stage.now, stage.part(0, vod(1), A));
    stage.run(1_000);
    let second = stage.part(0, vod(1), A);
    stage.run(58_700);
    stage.finish(film, ViewerEnd::Done);
    stage.run(1_000);
    assert_eq!((stage.refused(first), stage.at(first)), (Some(RefuseReason::Busy), start + 60_000));
    assert_eq!((stage.is_fetched(second), stage.at(second)), (true, start + 59_700 + 750));
}
