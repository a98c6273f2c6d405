//! What ends with the time of its user, in simulated time (spec: playback §8, §10).

use core::time::Duration;

use alloc::vec;

use super::stage::{A, B, Fate, Stage, hls, provider, user, vod, with};
use crate::config::{Account, Playback, Provider, Strategy, User};
use crate::input::{AccountId, Input, Note, RefuseReason, ViewerEnd, Want};
use crate::time::Date;

#[test]
fn everything_of_a_user_ends_when_its_time_is_over() {
    let expiring = |max| User { until: Some(Date::from_micros(10_000_000)), ..user(max, 0) };
    let settings = Playback { grace: Duration::from_secs(20), ..with(&[Strategy::GraceHold]) };
    let mut stage = Stage::new([expiring(5), user(0, 0), expiring(1)], [provider(&[0])], settings);
    let live = stage.play(0, 0, A);
    let tuned = stage.tune(7);
    let title = stage.watch(0, tuned, A);
    stage.media(tuned);
    let film = stage.rest(0, vod(1), A);
    let start = stage.playlist(0, hls(2), A);
    stage.segment(0, hls(2), start);
    let other = stage.rest(1, vod(1), B);
    let (place, held) = (stage.rest(2, vod(3), A), stage.rest(2, vod(4), A));
    stage.run(8_000);
    let feed = stage.tune(8);
    let waits = stage.watch(0, feed, A);
    stage.run(1_999);
    assert_eq!((stage.counted(0), stage.counted(2), stage.fate(held)), (5, 1, None));
    let viewers = [stage.viewer(live), stage.viewer(title)];
    stage.run(1);
    for viewer in viewers {
        assert!(stage.ended.contains(&(viewer, ViewerEnd::Expired)), "{:?}", stage.ended);
    }
    for cut in [film, place] {
        assert_eq!((stage.fate(cut), stage.at(cut)), (Some(Fate::Cut(ViewerEnd::Expired)), 10_000));
    }
    for refused in [waits, held] {
        assert_eq!((stage.refused(refused), stage.at(refused)), (Some(RefuseReason::AccountExpired), 10_000));
    }
    let expired = |note: &Note| matches!(note, Note::PlaybackEnded { reason: ViewerEnd::Expired, .. });
    assert_eq!(stage.noted(expired), 5, "what was kept for its player, too");
    assert!(stage.is_fetched(other), "nobody else's");
    let segment = stage.child(0, hls(2), start, Want::Part);
    assert_eq!(stage.refused(segment), Some(RefuseReason::AccountExpired));
    stage.finish(other, ViewerEnd::Left);
    stage.run(10_000);
    stage.is_empty();
}

#[test]
fn where_the_time_of_all_accounts_is_over_that_is_what_is_told() {
    let account = |until| Account { until: Some(Date::from_micros(until)), ..Account::default() };
    let tv = Provider { accounts: vec![account(3_000_000), account(5_000_000)], ..Provider::default() };
    let mut stage = Stage::new([user(0, 0)], [tv], Playback::default());
    let film = stage.rest(0, vod(1), A);
    stage.run(5_000);
    let over = |account| stage.noted(|note| *note == Note::AccountOver { account: AccountId(account) });
    assert_eq!([over(0), over(1)], [1, 1]);
    assert!(stage.is_fetched(film), "what runs goes on");
    let tuned = stage.tune(7);
    let setup = stage.fetch(Stage::ask(Stage::viewing(0, hls(3), B), Want::Setup));
    let all = [stage.rest(0, vod(2), B), setup, stage.look(0, vod(4), B), stage.watch(0, tuned, B)];
    stage.run(100);
    assert_eq!(all.map(|request| stage.refused(request)), [Some(RefuseReason::AccountsOver); 4]);
}

#[test]
fn accounts_serve_until_a_date_whenever_the_clock_is_set() {
    let account = Account { until: Some(Date::from_micros(5_000_000)), ..Account::default() };
    let tv = Provider { accounts: vec![account], ..Provider::default() };
    let mut stage = Stage::new([user(0, 0)], [tv], Playback::default());
    stage.input(Input::ClockSet { by: 5_000_000 });
    let over = stage.rest(0, vod(1), A);
    assert_eq!(stage.refused(over), Some(RefuseReason::AccountsOver));
    stage.input(Input::ClockSet { by: -1 });
    let film = stage.rest(0, vod(2), A);
    assert!(stage.is_fetched(film));
}

#[test]
fn whoever_may_still_play_when_the_clock_is_set_goes_on_until_its_time_is_over() {
    let expiring = User { until: Some(Date::from_micros(10_000_000)), ..user(1, 0) };
    let mut stage = Stage::new([expiring], [provider(&[0])], with(&[]));
    let film = stage.rest(0, vod(1), A);
    stage.input(Input::ClockSet { by: 1_000_000 });
    stage.run(8_999);
    assert!(stage.is_fetched(film));
    stage.run(1);
    assert_eq!(stage.fate(film), Some(Fate::Cut(ViewerEnd::Expired)));
}
