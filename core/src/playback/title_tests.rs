//! Titles in simulated time: the table of items, looks, files, failures (V7 …).

use alloc::vec::Vec;

use super::stage::{A, B, Fate, Origin, Stage, catchup, hls, provider, user, vod, with};
use super::{Binding, Item, Place, State};
use crate::config::{Playback, Strategy, User};
use crate::input::{
    AccountId, Ask, Failure, Input, Note, ProviderId, RefuseReason, RequestId, TitleId, ViewerEnd, Want,
};

const BROKEN: Origin = Origin::Fails(Failure::Status(500));

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
    let playback = stage.edge.playback().get(stage.playback(request)).unwrap();
    assert_eq!((playback.account(), playback.allocation().is_some()), (Some(AccountId(0)), true));
    let started = |note: &Note| matches!(note, Note::PlaybackStarted { place: Place::Normal, waited: 0, .. });
    assert_eq!((stage.noted(started), stage.counted(0), stage.open()), (1, 1, 1));
    stage.finish(request, ViewerEnd::Done);
    let ended = |note: &Note| matches!(note, Note::PlaybackEnded { reason: ViewerEnd::Done, .. });
    assert_eq!(stage.noted(ended), 1);
    stage.is_empty();
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

#[test]
fn what_was_read_ahead_flows_while_others_use_the_account() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let first = stage.part(0, vod(1), A);
    let second = stage.part(0, vod(1), A);
    stage.input(Input::Forwarded { request: first });
    assert!(!stage.is_fetched(second), "one connection at a time");
    stage.sent(first);
    assert!(stage.is_fetched(second));
    // Neither stands in the way of the other, nor ends with it.
    stage.input(Input::Forwarded { request: first });
    stage.input(Input::Stalled { request: first });
    let third = stage.part(0, vod(1), A);
    stage.finish(first, ViewerEnd::Done);
    assert_eq!((stage.open(), stage.is_fetched(third)), (1, false));
    stage.sent(second);
    assert!(stage.is_fetched(third));
    stage.finish(third, ViewerEnd::Left);
    assert_eq!(stage.fate(second), Some(Fate::Fetched(stage.fetched(second))), "it flows on");
    let seek = stage.rest(0, vod(1), A);
    assert_eq!(stage.fate(second), Some(Fate::Cut(ViewerEnd::Superseded)));
    stage.finish(seek, ViewerEnd::Done);
    stage.is_empty();
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
    let many: Vec<RequestId> = (0..68).map(|_| stage.fetch(local(Want::Part))).collect();
    assert_eq!(stage.requests_open().len(), 64, "but not any number");
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
    let counts = |stage: &Stage| (stage.edge.playback().probe_count(), stage.edge.playback().closing_count());
    stage.run(50);
    assert_eq!(counts(&stage), (1, 0));
    let viewer = stage.rest(0, vod(1), A);
    assert_eq!(counts(&stage), (0, 1));
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
    assert_eq!(stage.edge.accounts().account(AccountId(0)).map(|account| account.counts.failed), Some(1));
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
        stage.run(1000);
    }
    assert_eq!(stage.used.len(), 20);
    stage.origins.clear();
    let start = stage.playlist(0, hls(1), A);
    stage.segment(0, hls(1), start);
}

#[test]
fn v19_what_no_provider_gave_is_asked_for_once_however_often_a_player_repeats_itself() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[1, 1])], with(&[]));
    let broken = |stage: &mut Stage| [0, 1].map(|account| stage.origins.insert(AccountId(account), BROKEN));
    broken(&mut stage);
    for _ in 0..4 {
        let request = stage.rest(0, vod(1), A);
        assert_eq!(stage.refused(request), Some(RefuseReason::ProviderFailed));
        assert_eq!(stage.used, [AccountId(0), AccountId(1)], "each is asked once");
        stage.is_empty();
        stage.run(10);
    }
    let refused = |stage: &Stage| {
        let counts = stage.edge.playback().counts(crate::input::UserId(0)).unwrap();
        counts.refused[RefuseReason::ProviderFailed as usize]
    };
    assert_eq!(refused(&stage), 4, "each is told and counted");
    let look = stage.look(0, vod(1), A);
    assert_eq!((stage.refused(look), stage.used.len()), (Some(RefuseReason::ProviderFailed), 2));
    // Another player, another title.
    stage.origins.clear();
    for (item, address) in [(vod(1), B), (vod(2), A)] {
        let request = stage.rest(0, item, address);
        assert!(stage.is_fetched(request));
        stage.finish(request, ViewerEnd::Done);
    }
    stage.run(959);
    let early = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(early), Some(RefuseReason::ProviderFailed));
    stage.run(1);
    let request = stage.rest(0, vod(1), A);
    assert!(stage.is_fetched(request), "and then it is asked again");
}

#[test]
fn an_answer_of_no_use_says_nothing_of_what_is_asked_for_next() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Fails(Failure::Unusable));
    let part = stage.fetch(Stage::ask(Stage::viewing(0, vod(1), A), Want::Part));
    assert_eq!(stage.refused(part), Some(RefuseReason::ProviderFailed));
    stage.origins.clear();
    let whole = stage.rest(0, vod(1), A);
    assert!(stage.is_fetched(whole));
}

#[test]
fn one_account_that_failed_while_the_other_is_in_use_is_not_asked_again_at_once() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[1, 1])], with(&[]));
    stage.rest(0, vod(9), B);
    stage.origins.insert(AccountId(1), BROKEN);
    for _ in 0..4 {
        let request = stage.rest(0, vod(1), A);
        assert_eq!(stage.refused(request), Some(RefuseReason::ProviderFailed));
    }
    assert_eq!(stage.used, [AccountId(0), AccountId(1)]);
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
fn a_feed_is_no_title() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1])], with(&[]));
    let feed = Item::LiveTs(stage.feed(0));
    let wrong = stage.rest(0, feed, A);
    assert_eq!(stage.refused(wrong), Some(RefuseReason::NotFound));
    let nobody = stage.rest(7, vod(1), A);
    assert_eq!(stage.refused(nobody), Some(RefuseReason::NotFound));
}

/// What a provider refuses because of the account it refuses with any: nobody who looks makes it count against another one.
#[test]
fn one_that_looks_asks_nowhere_else_when_it_is_forbidden() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.origins.insert(AccountId(0), Origin::Fails(Failure::Status(401)));
    let look = stage.look(0, vod(1), A);
    assert_eq!(stage.refused(look), Some(RefuseReason::ProviderFailed));
    assert_eq!(stage.used, [AccountId(0)]);
}

#[test]
fn so_many_wait_for_one_playback_and_no_more() {
    let mut stage = Stage::new([user(0, 0), user(0, 0)], [provider(&[1])], with(&[Strategy::GraceHold]));
    stage.rest(0, vod(1), A);
    let all: Vec<_> = (0..66).map(|_| stage.part(1, vod(2), A)).collect();
    assert!(all[..64].iter().all(|request| stage.fate(*request).is_none()));
    let beyond = &all[64..];
    assert!(beyond.iter().all(|request| stage.refused(*request) == Some(RefuseReason::TooManyRequests)));
}

/// A playlist that fails says nothing of what the one before it named.
#[test]
fn what_a_playlist_names_is_asked_for_though_the_playlist_failed_a_moment_ago() {
    let mut stage = Stage::new([user(0, 0)], [provider(&[1])], with(&[]));
    let start = stage.playlist(0, hls(1), A);
    stage.origins.insert(AccountId(0), BROKEN);
    let again = stage.fetch(Stage::ask(Stage::viewing(0, hls(1), A), Want::Setup));
    assert_eq!(stage.refused(again), Some(RefuseReason::ProviderFailed));
    stage.origins.clear();
    let segment = stage.child(0, hls(1), start, Want::Part);
    assert!(stage.is_fetched(segment), "{:?}", stage.fate(segment));
}

/// A place by grace is none that makes strong: whoever has one of its own has the account.
#[test]
fn a_grace_is_no_stronger_than_a_soft_place() {
    let users = [user(1, 0), user(1, 0)];
    let mut stage = Stage::new(users, [provider(&[2])], with(&[Strategy::GraceInstant]));
    stage.rest(0, vod(1), A);
    let graced = stage.rest(0, vod(2), A);
    assert!(stage.is_fetched(graced));
    let normal = stage.rest(1, vod(3), A);
    assert_eq!(stage.fate(graced), Some(Fate::Cut(ViewerEnd::Preempted)));
    assert!(stage.is_fetched(normal));
}

#[test]
fn where_an_account_fails_whoever_is_weaker_gives_way_at_another() {
    let weaker = User { priority: 5, ..user(0, 0) };
    let mut stage = Stage::new([user(0, 0), weaker], [provider(&[1, 1])], with(&[]));
    let theirs = stage.rest(1, vod(1), B);
    stage.origins.insert(AccountId(1), Origin::Fails(Failure::Status(503)));
    let mine = stage.rest(0, vod(2), A);
    stage.run(1_000);
    assert!(stage.is_fetched(mine), "{:?}", stage.fate(mine));
    assert_eq!(
        (stage.fetched(mine).account, stage.fate(theirs)),
        (Some(AccountId(0)), Some(Fate::Cut(ViewerEnd::Preempted)))
    );
    // Nobody waits for what equals go on to use.
    let other = stage.rest(0, vod(3), B);
    assert_eq!(stage.refused(other), Some(RefuseReason::ProviderFailed));
}

#[test]
fn each_item_has_its_word() {
    let feed = crate::input::FeedId::from_parts(0, 0);
    let title = TitleId(1);
    let titles = [Item::Hls, Item::Dash, Item::Vod, Item::Series, Item::Catchup, Item::Local].map(|item| item(title));
    assert_eq!([Item::LiveTs(feed), Item::LiveHls(feed)].map(Item::kind), ["live-ts", "live-hls"]);
    assert_eq!(titles.map(Item::kind), ["hls", "dash", "vod", "series", "catchup", "local"]);
}

#[test]
fn nothing_is_known_by_what_something_else_is_or_was_known_by() {
    for over in [false, true] {
        let mut stage = Stage::new([user(0, 0)], [provider(&[0])], with(&[]));
        // The first one that is made up here.
        let token = Some(crate::input::Token(1u128.to_be_bytes()));
        let start = || Stage::ask(Stage::viewing(0, hls(1), A), Want::Setup);
        let known = stage.fetch(Ask { token, ..start() });
        assert_eq!(stage.fetched(known).token, token);
        if over {
            stage.kick(stage.playback(known), 0);
        }
        assert_eq!(token.map(|token| stage.edge.playback().is_known(token)), Some(!over));
        let other = stage.fetch(start());
        assert_ne!(stage.fetched(other).token, token, "over: {over}");
    }
}

#[test]
fn a_film_is_asked_for_elsewhere_where_its_account_fails_and_the_past_before_any_media_came() {
    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.rest(0, vod(1), A);
    stage.origins.insert(AccountId(0), BROKEN);
    let seek = stage.rest(0, vod(1), A);
    assert_eq!(stage.fetched(seek).account, Some(AccountId(1)));

    let mut stage = Stage::new([user(1, 0)], [provider(&[1, 1])], with(&[]));
    stage.origins.insert(AccountId(0), BROKEN);
    let request = stage.rest(0, catchup(1), A);
    assert_eq!(stage.fetched(request).account, Some(AccountId(1)));
}
