//! Users' places and providers' accounts together, in simulated time (V2 …): which of them decides, who gives way, what is left.

use alloc::vec;
use alloc::vec::Vec;

use super::stage::{A, B, Fate, Origin, Stage, catchup, hls, provider, user, vod, with};
use super::{Item, Place, State};
use crate::config::{Account, Playback, Provider, Strategy, User};
use crate::input::{AccountId, Failure, Input, Note, RefuseReason, RequestId, TitleId, UserId, ViewerEnd, Want};
use crate::time::Time;

fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

fn strong(priority: i8) -> User {
    User { priority, soft_priority: priority, ..User::default() }
}

#[test]
fn v2_a_users_own_limit_is_told_before_the_providers() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    stage.rest(0, vod(1), A);
    let second = stage.rest(0, vod(2), A);
    assert_eq!(stage.refused(second), Some(RefuseReason::UserLimit));
}

#[test]
fn nothing_that_is_asked_of_nobody_is_a_panic() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    let segment = stage.child(0, hls(1), start, Want::Part);
    stage.kick(stage.playback(segment), 0);
    for want in [Want::Setup, Want::Look, Want::Rest, Want::Part] {
        let nobody = stage.child(9, hls(1), start, want);
        assert_eq!(stage.refused(nobody), Some(RefuseReason::NotFound));
    }
}

#[test]
fn titles_and_feeds_of_a_user_share_its_places() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    let film = stage.rest(0, vod(1), A);
    let feed = stage.play(0, 0, A);
    assert_eq!(stage.fate(feed), None, "it is held");
    stage.finish(film, ViewerEnd::Left);
    assert!(matches!(stage.fate(feed), Some(Fate::Joined(_))));
    let film = stage.rest(0, vod(1), A);
    stage.run(2000);
    assert_eq!((stage.refused(film), stage.at(film)), (Some(RefuseReason::UserLimit), 2000));
}

#[test]
fn nobody_is_evicted_for_want_of_an_account() {
    let mut stage = Stage::new([user(0, 0), user(1, 0)], [provider(&[1])], with(&[Strategy::EvictOldest]));
    let theirs = stage.rest(0, vod(1), A);
    let own = stage.play(1, 0, A);
    stage.input(Input::Kick { playback: crate::input::PlaybackId::from_parts(9, 9), block: 0 });
    let feed_ends = stage.ended.len();
    let Some(Fate::Joined(viewer)) = stage.fate(own) else { panic!("{:?}", stage.fate(own)) };
    stage.input(Input::Leave { viewer });
    let wanted = stage.rest(1, vod(2), A);
    assert_eq!(stage.refused(wanted), Some(RefuseReason::ProviderLimit));
    assert_eq!((stage.is_fetched(theirs), stage.ended.len(), stage.counted(1)), (true, feed_ends, 0));
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackEvicted { .. })), 0);
}

#[test]
fn a_failed_grace_of_the_provider_never_goes_on_in_the_users_list() {
    let strategies = with(&[Strategy::GraceHold, Strategy::EvictOldest]);
    let mut stage = Stage::new([user(0, 0), user(2, 0)], [provider(&[1])], strategies);
    stage.rest(0, vod(1), A);
    let own = stage.play(1, 0, A);
    let wanted = stage.rest(1, vod(2), A);
    let pending =
        stage.edge.playback().playbacks().map(|(_, own)| own.state).any(|own| own == State::PendingProvider(at(2000)));
    assert!(pending);
    stage.run(2000);
    assert_eq!((stage.refused(wanted), stage.at(wanted)), (Some(RefuseReason::ProviderLimit), 2000));
    assert!(matches!(stage.fate(own), Some(Fate::Joined(_))));
    assert_eq!((stage.noted(|note| matches!(note, Note::PlaybackEvicted { .. })), stage.counted(1)), (0, 1));
}

#[test]
fn an_account_that_becomes_free_within_the_grace_is_had() {
    let mut stage = Stage::new([user(0, 0), user(1, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    let first = stage.rest(0, vod(1), A);
    let second = stage.rest(1, vod(2), A);
    stage.run(1000);
    stage.finish(first, ViewerEnd::Left);
    assert_eq!((stage.is_fetched(second), stage.at(second)), (true, 1000));
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackStarted { waited: 1_000_000, .. })), 1);
}

#[test]
fn without_a_grace_nobody_waits_for_an_account() {
    for strategies in [vec![], vec![Strategy::EvictOldest], vec![Strategy::Deny]] {
        let mut stage = Stage::new([user(0, 0), user(1, 0)], [provider(&[1])], with(&strategies));
        stage.rest(0, vod(1), A);
        let second = stage.rest(1, vod(2), A);
        assert_eq!((stage.refused(second), stage.at(second)), (Some(RefuseReason::ProviderLimit), 0));
    }
    let playback = Playback { grace: core::time::Duration::ZERO, ..with(&[Strategy::GraceHold]) };
    let mut stage = Stage::new([user(0, 0), user(1, 0)], [provider(&[1])], playback);
    stage.rest(0, vod(1), A);
    let second = stage.rest(1, vod(2), A);
    assert_eq!(stage.refused(second), Some(RefuseReason::ProviderLimit));
    let feed = stage.play(1, 0, A);
    let over = stage.rest(1, vod(3), A);
    assert!(matches!(stage.fate(feed), Some(Fate::Joined(_))));
    assert_eq!(stage.refused(over), Some(RefuseReason::UserLimit), "and nobody for a place");
}

#[test]
fn a_grace_for_an_account_is_not_repeated_at_once() {
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    stage.rest(1, vod(2), A);
    stage.run(3500);
    let again = stage.rest(1, vod(3), A);
    assert_eq!((stage.refused(again), stage.at(again)), (Some(RefuseReason::ProviderLimit), 3500));
    stage.run(2500);
    let later = stage.rest(1, vod(3), A);
    assert_eq!(stage.fate(later), None, "behind the cooldown");
}

#[test]
fn an_instant_grace_of_an_account_runs_at_once_and_ends_when_nothing_becomes_free() {
    let account = Account { max_connections: 1, overlap: true, ..Account::default() };
    let overlapping = Provider { accounts: vec![account], ..Provider::default() };
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [overlapping], with(&[Strategy::GraceInstant]));
    let first = stage.rest(0, vod(1), A);
    let second = stage.rest(1, vod(2), A);
    assert!(stage.is_fetched(second));
    stage.run(2000);
    assert_eq!((stage.fate(second), stage.at(second)), (Some(Fate::Cut(ViewerEnd::GraceOver)), 2000));
    assert!(stage.is_fetched(first));
    let back = stage.rest(1, vod(2), A);
    assert_ne!(stage.refused(back), Some(RefuseReason::Preempted), "that is no preemption");
}

#[test]
fn who_evicts_one_of_its_own_gets_the_account_that_is_free_with_that() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[Strategy::EvictOldest]));
    stage.closing = 200;
    let first = stage.rest(0, vod(1), A);
    let second = stage.rest(0, vod(2), A);
    assert_eq!((stage.fate(first), stage.fate(second)), (Some(Fate::Cut(ViewerEnd::Evicted)), None));
    stage.run(200);
    assert!(stage.is_fetched(second));
}

#[test]
fn whoever_is_counted_may_be_evicted_also_while_it_opens_or_is_kept() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[Strategy::EvictOldest]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    let opening = stage.rest(0, vod(1), A);
    assert_eq!(stage.state(stage.playback(opening)), State::Prepared);
    stage.origins.clear();
    let start = stage.playlist(0, hls(1), B);
    let segment = stage.child(0, hls(1), start, Want::Part);
    assert_eq!((stage.fate(opening), stage.is_fetched(segment)), (Some(Fate::Cut(ViewerEnd::Evicted)), true));
    stage.finish(segment, ViewerEnd::Done);
    let third = stage.rest(0, vod(3), A);
    assert!(stage.is_fetched(third), "what is kept may be evicted");
    let late = stage.child(0, hls(1), start, Want::Part);
    assert_eq!(stage.refused(late), Some(RefuseReason::PlaybackOver), "and never comes back");
    // One that waits for an account has its place, too.
    let mut stage =
        Stage::new([user(0, 0), user(1, 0)], [provider(&[1])], with(&[Strategy::EvictOldest, Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    let waits = stage.rest(1, vod(2), A);
    let feed = stage.play(1, 0, A);
    assert_eq!(stage.refused(waits), Some(RefuseReason::UserLimit));
    assert!(matches!(stage.fate(feed), Some(Fate::Joined(_))));
}

#[test]
fn behind_a_protected_target_and_a_grace_in_vain_the_answer_is_suppressed() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[Strategy::EvictOldest, Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    stage.rest(0, vod(2), B);
    stage.rest(0, vod(1), A);
    let again = stage.rest(0, vod(2), B);
    assert_eq!(stage.fate(again), None, "protected, so it is held");
    stage.run(2000);
    assert_eq!(stage.refused(again), Some(RefuseReason::Suppressed));
    // Whoever found nobody protected is told what it is.
    stage.run(5000);
    let mut stage =
        Stage::new([user(1, 0)], [provider(&[0])], with(&[Strategy::EvictSameIpOldest, Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    let other = stage.rest(0, vod(2), B);
    stage.run(2000);
    assert_eq!(stage.refused(other), Some(RefuseReason::UserLimit));
}

#[test]
fn a_stronger_user_takes_the_account_and_the_weaker_may_not_come_back_at_once() {
    let mut stage = Stage::new([strong(0), strong(-1), strong(0)], [provider(&[1])], with(&[]));
    stage.closing = 100;
    let weak = stage.rest(0, vod(1), A);
    let equal = stage.rest(2, vod(1), A);
    assert_eq!(stage.refused(equal), Some(RefuseReason::ProviderLimit), "equals never give way");
    let stronger = stage.rest(1, vod(2), A);
    assert_eq!((stage.fate(weak), stage.fate(stronger)), (Some(Fate::Cut(ViewerEnd::Preempted)), None));
    stage.run(100);
    assert!(stage.is_fetched(stronger));
    stage.run(2800);
    let back = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(back), Some(RefuseReason::Preempted));
    let other = stage.rest(0, vod(3), A);
    assert_eq!(stage.refused(other), Some(RefuseReason::ProviderLimit), "something else it may ask for");
    stage.run(100);
    let back = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(back), Some(RefuseReason::ProviderLimit));
    stage.finish(stronger, ViewerEnd::Left);
    stage.run(100);
    let back = stage.rest(0, vod(1), A);
    assert!(stage.is_fetched(back));
}

/// Invariant 7, where the weaker one does not close in time: a slot is never used twice.
#[test]
fn a_stronger_one_waits_no_longer_than_it_may_for_a_weaker_one_to_close() {
    let mut stage = Stage::new([strong(0), strong(-1)], [provider(&[1])], with(&[]));
    stage.closing = 10_000;
    stage.rest(0, vod(1), A);
    let stronger = stage.rest(1, vod(2), A);
    stage.run(3000);
    assert_eq!((stage.refused(stronger), stage.at(stronger)), (Some(RefuseReason::ProviderLimit), 1500));
}

#[test]
fn the_token_of_one_that_was_preempted_is_over() {
    let mut stage = Stage::new([strong(0), strong(-1)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
    let stronger = stage.rest(1, vod(2), A);
    assert!(stage.is_fetched(stronger), "what is kept gives way, too");
    stage.run(4000);
    let child = stage.child(0, hls(1), start, Want::Part);
    assert_eq!((stage.refused(child), stage.counted(0)), (Some(RefuseReason::PlaybackOver), 0));
}

#[test]
fn a_soft_place_gives_way_to_a_normal_one_of_whatever_priority() {
    let users = [User { max_connections: 1, soft_connections: 1, soft_priority: -9, ..User::default() }, strong(5)];
    let mut stage = Stage::new(users, [provider(&[2])], with(&[]));
    let normal = stage.rest(0, vod(1), A);
    let soft = stage.rest(0, vod(2), A);
    let other = stage.rest(1, vod(3), A);
    assert!(stage.is_fetched(other));
    assert_eq!((stage.is_fetched(normal), stage.fate(soft)), (true, Some(Fate::Cut(ViewerEnd::Preempted))));
    let another = stage.rest(1, vod(4), A);
    assert_eq!(stage.refused(another), Some(RefuseReason::ProviderLimit), "a normal one does not");
}

#[test]
fn one_that_is_promoted_is_as_strong_as_its_new_place() {
    let users = [user(1, 1), strong(5)];
    let mut stage = Stage::new(users, [provider(&[2])], with(&[Strategy::GraceInstant]));
    let (normal, soft) = (stage.rest(0, vod(1), A), stage.rest(0, vod(2), A));
    let grace = stage.play(0, 0, A);
    stage.finish(normal, ViewerEnd::Left);
    let promoted = stage.playback(soft);
    assert_eq!(stage.edge.playback().get(promoted).unwrap().place(), Some(Place::Normal));
    assert_eq!(stage.edge.playback().used(UserId(0), Place::Soft), 1, "{:?} has what that left", stage.fate(grace));
    let one = stage.rest(1, vod(3), A);
    let two = stage.rest(1, vod(4), A);
    assert!(stage.is_fetched(one) && stage.is_fetched(soft));
    assert_eq!(stage.fate(two), None, "nobody is weaker, so it waits");
}

#[test]
fn of_a_promotion_it_is_told_before_of_those_that_give_way_to_it() {
    let users = [User { soft_priority: 9, ..user(1, 1) }, User { soft_priority: 5, ..user(1, 1) }];
    let mut stage = Stage::new(users, [provider(&[1])], with(&[Strategy::GraceInstant]));
    let (normal, _) = (stage.play(0, 0, A), stage.play(1, 0, A));
    stage.rest(0, vod(1), A);
    // While its connection is closed for a seek, a soft one that is stronger comes for the account.
    stage.closing = 100;
    let seek = stage.rest(0, vod(1), A);
    let theirs = stage.rest(1, vod(2), A);
    stage.run(150);
    assert_eq!((stage.is_fetched(theirs), stage.fate(seek)), (true, None));
    let grace = stage.play(0, 1, A);
    assert!(matches!(stage.fate(grace), Some(Fate::Joined(_))));
    let (viewer, before) = (stage.viewer(normal), stage.notes.len());
    stage.input(Input::Leave { viewer });
    let place = |wanted: fn(&Note) -> bool| stage.notes[before..].iter().position(wanted);
    let told = place(|note| matches!(note, Note::PlaybackPromoted { .. }));
    let gave_way = place(|note| matches!(note, Note::AccountPreempted { .. }));
    assert!(told.is_some() && told < gave_way, "{:?}", &stage.notes[before..]);
}

#[test]
fn a_feed_is_as_strong_as_the_strongest_that_watches_it() {
    let mut stage = Stage::new([strong(3), strong(-3)], [], with(&[]));
    let feed = stage.feed(0);
    let strongest = |stage: &Stage| {
        let own = stage.edge.playback().strengths.get(&feed).and_then(|own| own.first());
        own.map(|(strength, _)| (strength.place, strength.priority))
    };
    let weak = stage.play(0, 0, A);
    assert_eq!(strongest(&stage), Some((Place::Normal, 3)));
    let strong = stage.play(1, 0, A);
    assert_eq!(strongest(&stage), Some((Place::Normal, -3)));
    for (request, left) in [(strong, Some((Place::Normal, 3))), (weak, None)] {
        let Some(Fate::Joined(viewer)) = stage.fate(request) else { panic!() };
        stage.input(Input::Leave { viewer });
        assert_eq!(strongest(&stage), left);
    }
    stage.is_empty();
}

#[test]
fn v19_four_equal_requests_have_four_equal_answers_and_touch_no_account() {
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [provider(&[1])], with(&[]));
    let theirs = stage.rest(0, vod(1), A);
    let first = stage.rest(1, vod(2), A);
    assert_eq!(stage.refused(first), Some(RefuseReason::ProviderLimit));
    let (notes, leases) = (stage.notes.len(), stage.edge.accounts().leases().count());
    for _ in 0..3 {
        stage.run(10);
        let again = stage.rest(1, vod(2), A);
        assert_eq!(stage.refused(again), Some(RefuseReason::ProviderLimit));
    }
    assert_eq!((stage.notes.len(), stage.edge.accounts().leases().count()), (notes, leases), "one decision");
    stage.finish(theirs, ViewerEnd::Left);
    let again = stage.rest(1, vod(2), A);
    assert!(stage.is_fetched(again), "what became free since is not refused from memory");
}

#[test]
fn a_playlist_is_not_refused_for_want_of_a_place_from_memory() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[]));
    stage.rest(0, vod(1), A);
    let start = stage.playlist(0, catch(), A);
    let segment = stage.child(0, catch(), start, Want::Part);
    assert_eq!(stage.refused(segment), Some(RefuseReason::UserLimit));
    let again = stage.fetch(Stage::ask(Stage::viewing(0, catch(), A), Want::Setup));
    assert!(stage.is_fetched(again));
}

fn catch() -> Item {
    Item::Catchup(TitleId(7))
}

#[test]
fn playlists_go_on_while_a_place_is_waited_for() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[0])], with(&[Strategy::GraceHold]));
    let film = stage.rest(0, vod(1), A);
    let start = stage.playlist(0, hls(1), A);
    let segment = stage.child(0, hls(1), start, Want::Part);
    let reload = stage.child(0, hls(1), start, Want::Setup);
    assert_eq!((stage.fate(segment), stage.is_fetched(reload)), (None, true));
    stage.finish(reload, ViewerEnd::Done);
    stage.finish(film, ViewerEnd::Left);
    assert!(stage.is_fetched(segment));
    stage.finish(segment, ViewerEnd::Done);
    // Whoever waits no longer is not let in.
    let film = stage.rest(0, vod(1), B);
    assert_eq!(stage.fate(film), None);
    stage.hangup(film);
    stage.run(20_000);
    stage.is_empty();
}

#[test]
fn a_permit_is_held_until_the_connection_is_closed() {
    let playback = Playback { cleanup_capacity: 1, ..with(&[]) };
    let mut stage = Stage::new([user(0, 0)], [provider(&[0])], playback);
    stage.closing = 500;
    let first = stage.rest(0, vod(1), A);
    let look = stage.look(0, vod(2), A);
    assert_eq!(stage.refused(look), Some(RefuseReason::Busy));
    stage.finish(first, ViewerEnd::Left);
    let second = stage.rest(0, vod(2), B);
    assert_eq!((stage.fate(second), stage.edge.playback().permits()), (None, 1));
    stage.run(500);
    assert!(stage.is_fetched(second));
    let third = stage.rest(0, vod(3), B);
    stage.run(5000);
    assert_eq!((stage.refused(third), stage.at(third)), (Some(RefuseReason::Busy), 5500));
}

#[test]
fn v21_many_clients_against_a_full_account_of_a_silent_provider_are_all_answered() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    stage.origins.insert(AccountId(0), Origin::Mute);
    let mut requests = Vec::new();
    for client in 0..32 {
        requests.push((stage.now, stage.rest(0, vod(client), A)));
        stage.run(300);
    }
    stage.run(10_000);
    for (asked, request) in requests {
        // Its grace, or the time that the one that got the account may take for its first media.
        let within = stage.at(request) - asked;
        assert!(stage.refused(request).is_some() && within <= 7000, "{request:?} after {within} ms");
    }
    stage.is_empty();
}

/// Invariant 10.
#[test]
fn a_drain_completes_from_every_state() {
    let accounts = [provider(&[1]), provider(&[0])];
    let playback = Playback { cleanup_capacity: 7, ..with(&[Strategy::GraceHold]) };
    let mut stage = Stage::new([user(0, 0), user(1, 0)], accounts, playback);
    stage.closing = 300;
    let over = stage.rest(0, vod(9), B);
    stage.finish(over, ViewerEnd::Left);
    stage.run(300);
    let start = stage.playlist(1, hls(1), A);
    stage.run(300);
    stage.segment(1, hls(1), start);
    let held = stage.rest(1, vod(2), A);
    stage.run(300);
    let everywhere = |item, want| crate::input::Ask {
        providers: vec![crate::input::ProviderId(1)],
        ..Stage::ask(Stage::viewing(0, item, A), want)
    };
    let active = stage.fetch(everywhere(vod(3), Want::Rest));
    let closing = stage.fetch(everywhere(vod(4), Want::Rest));
    stage.finish(closing, ViewerEnd::Left);
    let look = stage.fetch(everywhere(vod(5), Want::Look));
    stage.origins.insert(AccountId(1), Origin::Mute);
    let prepared = stage.fetch(everywhere(vod(6), Want::Rest));
    let pending = stage.rest(0, vod(7), A);
    let queued = stage.rest(0, vod(8), A);
    let mut states: Vec<&str> = stage.edge.playback().playbacks().map(|(_, own)| own.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["active", "held", "pending-provider", "prepared", "preserved", "queued"]);
    stage.input(Input::Drain);
    for request in [held, pending, queued] {
        assert_eq!(stage.refused(request), Some(RefuseReason::Draining));
    }
    for request in [active, look, prepared] {
        assert_eq!(stage.fate(request), Some(Fate::Cut(ViewerEnd::Shutdown)));
    }
    for want in [Want::Rest, Want::Look, Want::Setup] {
        let late = stage.child(1, hls(1), start, want);
        assert_eq!(stage.refused(late), Some(RefuseReason::Draining));
    }
    assert_eq!((stage.counted(0), stage.counted(1)), (0, 0));
    stage.run(300);
    stage.is_empty();
}

/// Invariants 1 to 6 and 10, V15: whatever is dropped in the middle of what.
#[test]
fn v15_nothing_is_left_of_random_viewers() {
    for seed in 0..150_u64 {
        let strategies = match seed % 5 {
            0 => vec![Strategy::GraceHold],
            1 => vec![Strategy::EvictSameIpOldest, Strategy::GraceInstant, Strategy::EvictOldest],
            2 => vec![Strategy::GraceInstant],
            3 => vec![],
            _ => vec![Strategy::EvictLatest],
        };
        let overlap = Account { max_connections: 1, overlap: seed % 3 == 0, ..Account::default() };
        let more = Account { max_connections: 2, priority: 1, ..Account::default() };
        let cooling = core::time::Duration::from_millis(seed % 2 * 700);
        let providers = [Provider { accounts: vec![overlap, more], cooling, ..Provider::default() }, provider(&[1, 0])];
        let users = [user(1, 1), strong(-1), User { max_connections: 2, ..strong(1) }];
        let playback = Playback { cleanup_capacity: 12, sessions_per_user: 6, ..with(&strategies) };
        let mut stage = Stage::new(users, providers, playback);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut chance = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        let mut starts = Vec::new();
        for _ in 0..250 {
            let (user, address, title) = (chance(3) as u32, chance(2) as u8, chance(3));
            match chance(12) {
                0..=3 => {
                    let items = [
                        vod(title),
                        hls(title),
                        catchup(title),
                        Item::Series(TitleId(title)),
                        Item::Dash(TitleId(title)),
                    ];
                    let item = items[chance(5) as usize];
                    let want = [Want::Rest, Want::Part, Want::Look, Want::Setup][chance(4) as usize];
                    let mut ask = Stage::ask(Stage::viewing(user, item, address), want);
                    ask.providers = match chance(5) {
                        0 => vec![],
                        1 => vec![crate::input::ProviderId(1), crate::input::ProviderId(0)],
                        2 => vec![crate::input::ProviderId(1)],
                        _ => ask.providers,
                    };
                    let request = stage.fetch(ask.clone());
                    if let Some(Fate::Fetched(fetched)) = stage.fate(request)
                        && fetched.token.is_some()
                    {
                        starts.push((ask, fetched));
                    }
                }
                4 => {
                    let known = starts.get(chance(starts.len() as u64 + 1) as usize).cloned();
                    if let Some((ask, of)) = known {
                        let want = [Want::Part, Want::Setup][chance(2) as usize];
                        stage.fetch(crate::input::Ask { token: of.token, account: of.account, want, ..ask });
                    }
                }
                5 => {
                    stage.play(user, chance(2) as u32, address);
                }
                6 | 7 => {
                    let open = stage.requests_open();
                    if let Some(request) = open.get(chance(open.len() as u64 + 1) as usize).copied() {
                        let reasons = [ViewerEnd::Done, ViewerEnd::Left, ViewerEnd::Failed, ViewerEnd::Idle];
                        match chance(5) {
                            0 => stage.input(Input::Stalled { request }),
                            1 => stage.hangup(request),
                            _ => stage.finish(request, reasons[chance(4) as usize]),
                        }
                    }
                }
                8 => {
                    let waiting = stage.requests_waiting();
                    waiting.into_iter().take(2).for_each(|request| stage.hangup(request));
                }
                9 => {
                    let viewer = stage.edge.playback().playbacks().filter_map(|(_, own)| own.viewer).next();
                    let playback = stage.edge.playback().playbacks().map(|(id, _)| id).last();
                    match (chance(3), viewer, playback) {
                        (0, _, Some(playback)) => stage.kick(playback, chance(2) * 1000),
                        (_, Some(viewer), _) => stage.input(Input::Leave { viewer }),
                        _ => {}
                    }
                }
                10 => {
                    let account = AccountId(chance(4) as u32);
                    let failures = [Failure::Status(503), Failure::Status(403), Failure::Unreachable];
                    let origin = match chance(6) {
                        0 => Origin::Mute,
                        1 => Origin::Fails(failures[chance(3) as usize]),
                        _ => Origin::Good,
                    };
                    stage.origins.insert(account, origin);
                    stage.closing = [0, 0, 30, 2500][chance(4) as usize];
                }
                _ => stage.run(chance(4000)),
            }
        }
        if seed % 2 == 0 {
            stage.input(Input::Drain);
            assert_eq!((0..3).map(|user| stage.counted(user)).sum::<u32>(), 0, "seed {seed}");
            assert!(stage.requests_open().is_empty() && stage.requests_waiting().is_empty(), "seed {seed}");
        } else {
            for _ in 0..40 {
                let viewers: Vec<_> = stage.edge.playback().playbacks().filter_map(|(_, own)| own.viewer).collect();
                viewers.into_iter().for_each(|viewer| stage.input(Input::Leave { viewer }));
                let open: Vec<RequestId> = stage.requests_open();
                open.into_iter().for_each(|request| {
                    if stage.is_fetched(request) {
                        stage.finish(request, ViewerEnd::Left);
                    }
                });
                stage.run(3000);
            }
            assert!(stage.requests_waiting().is_empty(), "seed {seed}");
        }
        stage.run(60_000);
        stage.is_empty();
    }
}

#[test]
fn a_request_that_is_known_is_no_other_one() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[0])], with(&[]));
    let (film, look) = (stage.rest(0, vod(1), A), stage.look(0, vod(2), A));
    let feed = stage.feed(0);
    let before = (stage.edge.playback().stale(), stage.counted(0));
    for request in [film, look] {
        stage.input(Input::Play { request, viewing: Stage::viewing(0, Item::LiveTs(feed), B) });
        stage.input(Input::Fetch { request, ask: Stage::ask(Stage::viewing(0, vod(3), B), Want::Rest) });
    }
    assert_eq!((stage.edge.playback().stale(), stage.counted(0)), (before.0 + 4, before.1));
}

#[test]
fn a_viewer_that_waits_does_not_end_by_what_ends_titles() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    let film = stage.rest(0, vod(1), A);
    let held = stage.play(0, 0, A);
    stage.input(Input::Finished { request: held, reason: ViewerEnd::Done });
    assert_eq!(stage.edge.playback().stale(), 1);
    stage.finish(film, ViewerEnd::Left);
    let viewer = stage.viewer(held);
    assert!(stage.edge.playback().playbacks().any(|(_, own)| own.viewer == Some(viewer)));
}

#[test]
fn v19_playlists_refused_for_want_of_an_account_are_one_decision_too() {
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [provider(&[1])], with(&[]));
    stage.rest(0, vod(1), A);
    for _ in 0..4 {
        let playlist = stage.fetch(Stage::ask(Stage::viewing(1, hls(1), A), Want::Setup));
        assert_eq!(stage.refused(playlist), Some(RefuseReason::ProviderLimit));
    }
    assert_eq!(stage.noted(|note| matches!(note, Note::PlaybackRefused { .. })), 1);
}

#[test]
fn what_is_superseded_is_counted_and_people_are_not_told() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    stage.rest(0, vod(1), A);
    let part = stage.part(0, vod(1), A);
    stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(part), Some(RefuseReason::Superseded));
    let refused = |note: &Note| matches!(note, Note::PlaybackRefused { .. });
    assert_eq!(stage.noted(refused), 0);
    let counts = stage.edge.playback().counts(UserId(0)).expect("a user");
    assert_eq!(counts.refused[RefuseReason::Superseded as usize], 1);
    let other = stage.rest(0, vod(2), A);
    assert_eq!((stage.refused(other), stage.noted(refused)), (Some(RefuseReason::UserLimit), 1));
}

#[test]
fn whoever_waits_for_a_permit_is_told_of_a_drain_at_once() {
    let playback = Playback { cleanup_capacity: 1, ..with(&[]) };
    let mut stage = Stage::new([user(0, 0)], [provider(&[1])], playback);
    stage.closing = 100;
    stage.rest(0, vod(1), A);
    let queued = stage.play(0, 0, A);
    assert_eq!((stage.fate(queued), stage.edge.playback().timer_count()), (None, 1));
    stage.input(Input::Drain);
    assert_eq!(stage.refused(queued), Some(RefuseReason::Draining));
}
