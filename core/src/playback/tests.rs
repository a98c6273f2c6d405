//! The rules of playback in simulated time. Cases are named after what people reported (V2 …).

use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use super::{Item, Place, State};
use crate::config::{Config, Endpoint, Playback, Strategy, User};
use crate::input::{
    Client, EndpointId, Env, Evidence, FeedId, Input, Note, Output, PlaybackId, RefuseReason, RequestId, SessionId,
    UserId, ViewerEnd, ViewerId, Viewing,
};
use crate::time::{Date, Time};
use crate::twins::Twins;

struct Outside;

impl Env for Outside {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        [7; 16]
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    In(ViewerId),
    No(RefuseReason),
}

/// An edge with feeds that are always there, and what it said.
struct Stage {
    edge: Twins,
    now: u64,
    requests: u64,
    answers: Vec<(u64, RequestId, Answer)>,
    ended: Vec<(u64, ViewerId, ViewerEnd)>,
    notes: Vec<Note>,
}

const A: u8 = 1;
const B: u8 = 2;

impl Stage {
    fn new(users: impl IntoIterator<Item = User>, playback: Playback) -> Self {
        let endpoints = ["one", "two", "three"].map(|name| Endpoint { name: name.into(), ..Endpoint::default() });
        let users = users.into_iter().collect();
        let edge = Twins::new(Config { endpoints: endpoints.into(), users, playback, ..Config::default() });
        Stage { edge, now: 0, requests: 0, answers: Vec::new(), ended: Vec::new(), notes: Vec::new() }
    }

    fn feed(&self, endpoint: u32) -> FeedId {
        self.edge.feed_of(EndpointId(endpoint), 0).unwrap()
    }

    fn input(&mut self, input: Input) {
        self.edge.handle(Time::from_micros(self.now * 1000), input, &mut Outside);
        while let Some(output) = self.edge.poll() {
            match output {
                Output::Joined { request, viewer } => self.answers.push((self.now, request, Answer::In(viewer))),
                Output::Refuse { request, reason } => self.answers.push((self.now, request, Answer::No(reason))),
                Output::ViewerEnd { viewer, reason } => self.ended.push((self.now, viewer, reason)),
                Output::Note(note) => self.notes.push(note),
                _ => {}
            }
        }
        self.check();
    }

    /// Invariants 1 and 5 of spec playback §9.
    fn check(&self) {
        let room = self.edge.playback();
        let mut rows = 0;
        for (index, limits) in self.edge.config().users.iter().enumerate() {
            let user = UserId(index as u32);
            let used = [Place::Normal, Place::Soft, Place::Grace].map(|place| room.used(user, place));
            let counted = |place| room.of_user(user).filter(|(_, own)| own.place() == Some(place)).count() as u32;
            assert_eq!(used, [Place::Normal, Place::Soft, Place::Grace].map(counted));
            assert!(limits.max_connections == 0 || used[0] <= limits.max_connections);
            assert!(used[1] <= limits.soft_connections && used[2] <= 1);
            rows += room.of_user(user).count();
        }
        assert_eq!(rows, room.playbacks().count());
        assert!(room.permits() <= self.edge.config().playback.cleanup_capacity && room.permits() <= rows);
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(at) = self.edge.deadline().map(|at| at.as_micros().div_ceil(1000)).filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.input(Input::Tick);
        }
        self.now = end;
    }

    fn ask(&mut self, user: u32, endpoint: u32, address: u8) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let client = Client { address: IpAddr::from([10, 0, 0, address]), agent: 0 };
        let viewing = Viewing { user: UserId(user), item: Item::LiveTs(self.feed(endpoint)), client };
        self.input(Input::Play { request, viewing });
        request
    }

    /// Its answer and when it came.
    fn answer(&self, request: RequestId) -> Option<(u64, Answer)> {
        let mut all = self.answers.iter().filter(|(_, own, _)| *own == request);
        let answer = all.next().map(|(at, _, answer)| (*at, *answer));
        assert!(all.next().is_none(), "one answer each");
        answer
    }

    fn refused(&self, request: RequestId) -> Option<(u64, RefuseReason)> {
        match self.answer(request)? {
            (at, Answer::No(reason)) => Some((at, reason)),
            (_, Answer::In(_)) => None,
        }
    }

    /// Asks, and is let in at once.
    fn play(&mut self, user: u32, endpoint: u32, address: u8) -> ViewerId {
        let request = self.ask(user, endpoint, address);
        self.viewer(request).unwrap()
    }

    fn viewer(&self, request: RequestId) -> Option<ViewerId> {
        match self.answer(request)?.1 {
            Answer::In(viewer) => Some(viewer),
            Answer::No(_) => None,
        }
    }

    fn leave(&mut self, viewer: ViewerId) {
        self.input(Input::Leave { viewer });
    }

    fn playback(&self, viewer: ViewerId) -> Option<PlaybackId> {
        self.edge.playback().playbacks().find(|(_, playback)| playback.viewer == Some(viewer)).map(|(id, _)| id)
    }

    fn place(&self, viewer: ViewerId) -> Option<Place> {
        self.edge.playback().get(self.playback(viewer)?)?.place()
    }

    fn end_of(&self, viewer: ViewerId) -> Option<(u64, ViewerEnd)> {
        self.ended.iter().find(|(_, own, _)| *own == viewer).map(|(at, _, reason)| (*at, *reason))
    }

    fn left_over(&self) -> [usize; 4] {
        let room = self.edge.playback();
        [room.playbacks().count(), room.permits(), room.timer_count(), room.requests.len() + room.viewers.len()]
    }
}

fn user(max_connections: u32, soft_connections: u32) -> User {
    User { max_connections, soft_connections, ..User::default() }
}

fn with(strategies: &[Strategy]) -> Playback {
    Playback { strategies: strategies.to_vec(), ..Playback::default() }
}

#[test]
fn v3_one_place_is_one_playback() {
    let mut stage = Stage::new([user(1, 0)], with(&[]));
    let first = stage.play(0, 0, A);
    let second = stage.ask(0, 1, A);
    assert_eq!(stage.refused(second), Some((0, RefuseReason::UserLimit)));
    stage.leave(first);
    stage.play(0, 1, A);
    assert_eq!(stage.end_of(first), None, "who left is not ended again");
}

#[test]
fn two_sockets_of_one_player_are_two_playbacks() {
    let mut stage = Stage::new([user(2, 0)], with(&[]));
    stage.play(0, 0, A);
    stage.play(0, 0, A);
    let third = stage.ask(0, 0, A);
    assert_eq!(stage.refused(third), Some((0, RefuseReason::UserLimit)));
}

#[test]
fn no_limit_is_no_limit_and_users_do_not_count_for_one_another() {
    let mut stage = Stage::new([user(0, 0), user(1, 0)], with(&[]));
    for _ in 0..20 {
        stage.play(0, 0, A);
    }
    stage.play(1, 0, A);
    let over = stage.ask(1, 0, A);
    assert!(stage.refused(over).is_some());
}

#[test]
fn soft_places_come_after_normal_ones() {
    let mut stage = Stage::new([user(1, 1)], with(&[]));
    let (normal, soft) = (stage.play(0, 0, A), stage.play(0, 1, A));
    assert_eq!((stage.place(normal), stage.place(soft)), (Some(Place::Normal), Some(Place::Soft)));
    let over = stage.ask(0, 2, A);
    assert!(stage.refused(over).is_some());
    stage.leave(normal);
    let next = stage.play(0, 2, A);
    assert_eq!(stage.place(next), Some(Place::Normal));
}

#[test]
fn who_is_held_gets_the_place_that_becomes_free_in_the_order_of_asking() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    let first = stage.play(0, 0, A);
    let (second, third) = (stage.ask(0, 1, A), stage.ask(0, 2, A));
    stage.run(500);
    assert_eq!((stage.answer(second), stage.answer(third)), (None, None));
    stage.leave(first);
    assert!(stage.viewer(second).is_some(), "at the moment at which the place is free");
    assert_eq!(stage.answer(third), None);
    stage.run(5000);
    assert_eq!(stage.refused(third), Some((2000, RefuseReason::UserLimit)));
}

#[test]
fn a_grace_in_vain_is_not_repeated_at_once() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    stage.play(0, 0, A);
    let held = stage.ask(0, 1, A);
    stage.run(3500);
    assert_eq!(stage.refused(held), Some((2000, RefuseReason::UserLimit)));
    let again = stage.ask(0, 1, A);
    assert_eq!(stage.refused(again), Some((3500, RefuseReason::UserLimit)), "within the cooldown");
    stage.run(2500);
    let later = stage.ask(0, 1, A);
    assert_eq!(stage.answer(later), None, "behind the cooldown");
}

#[test]
fn v17_zapping_with_one_place_never_fails() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    let mut current = stage.play(0, 0, A);
    for round in 0..20 {
        let next = stage.ask(0, round % 3, A);
        stage.run(50);
        stage.leave(current);
        current = stage.viewer(next).unwrap();
        stage.run(100);
    }
}

#[test]
fn instant_grace_runs_at_once_and_ends_when_nothing_becomes_free() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceInstant]));
    let first = stage.play(0, 0, A);
    let second = stage.play(0, 1, A);
    assert_eq!(stage.place(second), Some(Place::Grace));
    let third = stage.ask(0, 2, A);
    assert_eq!(stage.refused(third), Some((0, RefuseReason::UserLimit)), "one at a time");
    stage.run(5000);
    assert_eq!(stage.end_of(second), Some((2000, ViewerEnd::Limit)));
    assert_eq!(stage.end_of(first), None);
}

#[test]
fn instant_grace_stays_when_a_place_becomes_free() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceInstant]));
    let (first, second) = (stage.play(0, 0, A), stage.play(0, 1, A));
    stage.run(1000);
    stage.leave(first);
    assert_eq!(stage.place(second), Some(Place::Normal));
    stage.run(9000);
    assert_eq!(stage.end_of(second), None);
    let third = stage.play(0, 2, A);
    assert_eq!(stage.place(third), Some(Place::Grace), "a grace that was not in vain costs no cooldown");
}

#[test]
fn a_normal_place_goes_to_the_oldest_soft_one_and_its_place_to_the_grace() {
    let mut stage = Stage::new([user(1, 2)], with(&[Strategy::GraceInstant]));
    let normal = stage.play(0, 0, A);
    let (older, newer) = (stage.play(0, 0, A), stage.play(0, 0, A));
    let grace = stage.play(0, 0, A);
    stage.leave(normal);
    let places = [older, newer, grace].map(|viewer| stage.place(viewer));
    assert_eq!(places, [Some(Place::Normal), Some(Place::Soft), Some(Place::Soft)]);
    let promoted = stage.playback(older).unwrap();
    assert!(stage.notes.contains(&Note::PlaybackPromoted { user: UserId(0), playback: promoted }));
}

#[test]
fn a_grace_in_vain_goes_on_with_the_strategies_behind_it() {
    let mut stage =
        Stage::new([user(1, 0)], with(&[Strategy::EvictLatest, Strategy::GraceHold, Strategy::EvictOldest]));
    // Only what stands behind is tried: the one in front would have been tried before.
    let first = stage.play(0, 0, A);
    let second = stage.play(0, 1, B);
    assert_eq!(stage.end_of(first), Some((0, ViewerEnd::Evicted)));
    let back = stage.ask(0, 0, A);
    assert!(stage.viewer(back).is_some(), "it evicts in its turn");
    assert_eq!(stage.end_of(second), Some((0, ViewerEnd::Evicted)));
    let again = stage.ask(0, 1, B);
    assert_eq!(stage.answer(again), None, "protected, so it is held");
    stage.run(2000);
    assert_eq!(stage.refused(again), Some((2000, RefuseReason::Suppressed)), "and still protected behind that");

    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceInstant, Strategy::EvictOldest]));
    let first = stage.play(0, 0, A);
    let second = stage.play(0, 1, A);
    stage.run(2000);
    assert_eq!((stage.end_of(first), stage.end_of(second)), (Some((2000, ViewerEnd::Evicted)), None));
    assert_eq!(stage.place(second), Some(Place::Normal));
}

#[test]
fn one_that_runs_by_grace_is_evicted_for_nobody() {
    // It has no place: whoever evicted it would have none either.
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceInstant, Strategy::EvictLatest]));
    let (first, second) = (stage.play(0, 0, A), stage.play(0, 1, A));
    let third = stage.play(0, 2, A);
    let ends = [first, second, third].map(|viewer| stage.end_of(viewer));
    assert_eq!(ends, [Some((0, ViewerEnd::Evicted)), None, None]);
    assert_eq!([second, third].map(|viewer| stage.place(viewer)), [Some(Place::Grace), Some(Place::Normal)]);
}

#[test]
fn a_place_whose_viewer_has_ended_by_now_is_free_for_who_asks_now() {
    let mut stage = Stage::new([user(1, 0)], with(&[]));
    stage.play(0, 0, A);
    // The driver comes late: the viewer's end was due before.
    stage.now = 70_000;
    let second = stage.ask(0, 1, A);
    assert!(stage.viewer(second).is_some(), "{:?}", stage.answer(second));

    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    stage.play(0, 0, A);
    stage.run(59_000);
    let held = stage.ask(0, 1, A);
    stage.now = 62_000;
    stage.input(Input::Tick);
    assert!(stage.viewer(held).is_some(), "before its own wait is over: {:?}", stage.answer(held));
}

#[test]
fn evictions_choose_by_age_and_address() {
    for (strategy, evicted) in [
        (Strategy::EvictOldest, 0),
        (Strategy::EvictLatest, 3),
        (Strategy::EvictSameIpOldest, 1),
        (Strategy::EvictSameIpLatest, 2),
    ] {
        let mut stage = Stage::new([user(4, 0)], with(&[strategy]));
        let viewers = [B, A, A, B].map(|address| {
            stage.run(10);
            stage.play(0, 0, address)
        });
        stage.play(0, 1, A);
        let ended: Vec<usize> = (0..4).filter(|index| stage.end_of(viewers[*index]).is_some()).collect();
        assert_eq!(ended, [evicted], "{strategy:?}");
    }
}

#[test]
fn a_rule_for_the_same_address_hits_no_other() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::EvictSameIpOldest]));
    let first = stage.play(0, 0, A);
    let second = stage.ask(0, 1, B);
    assert_eq!(stage.refused(second), Some((0, RefuseReason::UserLimit)));
    assert_eq!(stage.end_of(first), None);
}

#[test]
fn nobody_evicts_a_playback_of_another_user() {
    let mut stage = Stage::new([user(1, 0), user(1, 0)], with(&[Strategy::EvictOldest]));
    let (other, own) = (stage.play(1, 0, A), stage.play(0, 0, A));
    stage.play(0, 1, A);
    assert_eq!((stage.end_of(other), stage.end_of(own)), (None, Some((0, ViewerEnd::Evicted))));
}

/// Invariant 8.
#[test]
fn two_players_evict_each_other_once_in_the_time_of_the_guard() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::EvictOldest]));
    stage.play(0, 0, A);
    let mut evictions = Vec::new();
    for step in 0..60 {
        let (endpoint, address) = if step % 2 == 0 { (1, B) } else { (0, A) };
        let before = stage.ended.len();
        let plays = stage.edge.playback().playbacks().next().map(|(_, own)| own.viewing.client.address);
        if plays == Some(IpAddr::from([10, 0, 0, address])) {
            stage.run(100);
            continue;
        }
        let request = stage.ask(0, endpoint, address);
        if stage.ended.len() > before {
            evictions.push((stage.now, address));
        } else {
            assert!(matches!(stage.refused(request), Some((_, RefuseReason::Suppressed | RefuseReason::UserLimit))));
        }
        stage.run(100);
    }
    for address in [A, B] {
        let own: Vec<u64> = evictions.iter().filter(|(_, by)| *by == address).map(|(at, _)| *at).collect();
        assert!(own.len() >= 2 && own.windows(2).all(|pair| pair[1] - pair[0] >= 3000), "{evictions:?}");
    }
}

#[test]
fn v19_the_repetition_of_a_refused_request_has_the_same_answer_and_is_no_new_decision() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    let first = stage.play(0, 0, A);
    let request = stage.ask(0, 1, A);
    stage.run(2000);
    assert!(stage.refused(request).is_some());
    let notes = stage.notes.len();
    for _ in 0..3 {
        stage.run(10);
        let again = stage.ask(0, 1, A);
        assert_eq!(stage.refused(again), Some((stage.now, RefuseReason::UserLimit)));
    }
    assert_eq!(stage.notes.len(), notes, "nothing was decided again");
    stage.leave(first);
    let now_free = stage.ask(0, 1, A);
    assert!(stage.viewer(now_free).is_some(), "what became free since is not refused from memory");
}

#[test]
fn v5_who_was_kicked_stays_out_for_the_time_of_the_block() {
    let mut stage = Stage::new([user(1, 0)], with(&[]));
    let viewer = stage.play(0, 0, A);
    let playback = stage.playback(viewer).unwrap();
    stage.input(Input::Kick { playback, block: 10_000_000 });
    assert_eq!(stage.end_of(viewer), Some((0, ViewerEnd::Kicked)));
    for _ in 0..9 {
        stage.run(1000);
        let again = stage.ask(0, 0, A);
        assert_eq!(stage.refused(again), Some((stage.now, RefuseReason::Kicked)));
    }
    stage.run(1000);
    stage.play(0, 0, A);
    stage.input(Input::Kick { playback, block: 0 });
    assert_eq!(stage.edge.playback().stale(), 1, "a late kick hits nobody");
}

#[test]
fn a_kick_without_a_block_lets_it_come_back_and_ends_one_that_waits() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    stage.play(0, 0, A);
    let held = stage.ask(0, 1, A);
    let (playback, _) = stage.edge.playback().playbacks().find(|(_, own)| own.viewer.is_none()).unwrap();
    stage.input(Input::Kick { playback, block: 0 });
    assert_eq!(stage.refused(held), Some((0, RefuseReason::Kicked)));
    let again = stage.ask(0, 1, A);
    assert_eq!(stage.answer(again), None);
}

#[test]
fn users_that_may_not_play_are_told_so() {
    let mut stage = Stage::new(
        [
            User { enabled: false, ..User::default() },
            User { until: Some(Date::from_micros(5_000_000)), ..User::default() },
        ],
        with(&[]),
    );
    let disabled = stage.ask(0, 0, A);
    assert_eq!(stage.refused(disabled), Some((0, RefuseReason::AccountExpired)));
    stage.play(1, 0, A);
    stage.run(5000);
    let expired = stage.ask(1, 0, A);
    assert_eq!(stage.refused(expired), Some((5000, RefuseReason::AccountExpired)));
    let nobody = stage.ask(2, 0, A);
    assert_eq!(stage.refused(nobody), Some((5000, RefuseReason::NotFound)));
}

#[test]
fn whoever_may_play_until_a_date_does_so_when_the_clock_is_set() {
    let until = Some(Date::from_micros(5_000_000));
    let unlimited = User { max_connections: 0, ..User::default() };
    let mut stage = Stage::new([User { until, ..unlimited.clone() }, unlimited], with(&[]));
    let set = |seconds: i64| Input::ClockSet { by: seconds * 1_000_000 };
    stage.input(set(4));
    stage.play(0, 0, A);
    stage.run(1000);
    let expired = stage.ask(0, 1, A);
    assert_eq!(stage.refused(expired), Some((1000, RefuseReason::AccountExpired)));
    stage.input(set(-1));
    stage.play(0, 2, A);
    stage.input(Input::ClockSet { by: i64::MAX });
    stage.play(1, 0, A);
    stage.input(Input::ClockSet { by: i64::MIN });
    let viewer = stage.play(0, 2, A);
    assert_eq!(stage.end_of(viewer), None);
    stage.input(Input::ClockSet { by: i64::MIN });
    stage.input(Input::ClockSet { by: i64::MAX });
    assert_eq!(stage.end_of(viewer).map(|(_, reason)| reason), Some(ViewerEnd::Expired));
}

#[test]
fn whoever_expired_before_the_start_plays_no_sooner_than_the_clock_says() {
    let until = Some(Date::from_micros(-5_000_000));
    let mut stage = Stage::new([User { until, max_connections: 0, ..User::default() }], with(&[]));
    let set = |micros: i64| Input::ClockSet { by: micros };
    for by in [0, -3_000_000, -2_000_000] {
        stage.input(set(by));
        let expired = stage.ask(0, 0, A);
        assert_eq!(stage.refused(expired), Some((0, RefuseReason::AccountExpired)), "{by}");
    }
    stage.input(set(-1));
    stage.play(0, 0, A);
}

#[test]
fn nothing_runs_without_a_permit() {
    let playback = Playback { cleanup_capacity: 2, ..with(&[]) };
    let mut stage = Stage::new([user(0, 0), user(0, 0)], playback);
    let (first, _) = (stage.play(0, 0, A), stage.play(1, 0, A));
    let (waits, waits_too) = (stage.ask(0, 0, A), stage.ask(1, 0, A));
    stage.run(1000);
    assert_eq!((stage.answer(waits), stage.answer(waits_too)), (None, None));
    stage.leave(first);
    assert!(stage.viewer(waits).is_some(), "first come, first served");
    stage.run(9000);
    assert_eq!(stage.refused(waits_too), Some((5000, RefuseReason::Busy)));
}

#[test]
fn who_gets_a_permit_finds_the_places_of_all_who_have_ended() {
    let playback = Playback { cleanup_capacity: 2, permit_wait: Duration::from_secs(90), ..with(&[]) };
    let mut stage = Stage::new([user(0, 0), user(1, 0)], playback);
    stage.play(0, 0, A);
    stage.play(1, 0, A);
    let waits = stage.ask(1, 1, A);
    // Both viewers end in the same call; the permit of the first is free before the place of the second.
    stage.run(60_000);
    assert!(stage.viewer(waits).is_some(), "{:?}", stage.answer(waits));
}

#[test]
fn a_user_cannot_fill_the_tables() {
    let playback = Playback { sessions_per_user: 3, ..with(&[Strategy::GraceHold]) };
    let mut stage = Stage::new([user(1, 0)], playback);
    stage.play(0, 0, A);
    let held = [1, 2].map(|endpoint| stage.ask(0, endpoint, A));
    let over = stage.ask(0, 2, B);
    assert_eq!(stage.refused(over), Some((0, RefuseReason::UserLimit)));
    assert_eq!(held.map(|request| stage.answer(request)), [None, None]);
}

/// Invariants 5 and 10.
#[test]
fn nothing_is_left_whatever_was_dropped_in_the_middle_of_what() {
    for seed in 0..200_u64 {
        let strategies = match seed % 4 {
            0 => vec![Strategy::GraceHold],
            1 => vec![Strategy::EvictSameIpOldest, Strategy::GraceInstant, Strategy::EvictOldest],
            2 => vec![Strategy::GraceInstant],
            _ => vec![Strategy::EvictLatest],
        };
        let playback = Playback { cleanup_capacity: 6, ..with(&strategies) };
        let mut stage = Stage::new([user(1, 1), user(2, 0), user(0, 0)], playback);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut chance = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        for _ in 0..300 {
            match chance(6) {
                0 | 1 => drop(stage.ask(chance(3) as u32, chance(3) as u32, chance(3) as u8)),
                2 => {
                    let request = RequestId(chance(stage.requests + 1));
                    if stage.answer(request).is_none() {
                        stage.input(Input::Hangup { request });
                    }
                }
                3 => {
                    let viewer = stage.edge.playback().playbacks().filter_map(|(_, own)| own.viewer).next();
                    viewer.into_iter().for_each(|viewer| stage.leave(viewer));
                }
                4 => {
                    let playback = stage.edge.playback().playbacks().map(|(id, _)| id).last();
                    let block = chance(2) * 1_000_000;
                    playback.into_iter().for_each(|playback| stage.input(Input::Kick { playback, block }));
                }
                _ => stage.run(chance(1500)),
            }
        }
        if seed % 2 == 0 {
            stage.input(Input::Drain);
            let late = stage.ask(2, 0, A);
            assert_eq!(stage.refused(late).map(|(_, reason)| reason), Some(RefuseReason::Draining));
        } else {
            stage.run(20_000);
            let viewers: Vec<ViewerId> = stage.edge.playback().playbacks().filter_map(|(_, own)| own.viewer).collect();
            viewers.into_iter().for_each(|viewer| stage.leave(viewer));
            // Whoever had no permit has one now.
            let viewers: Vec<ViewerId> = stage.edge.playback().playbacks().filter_map(|(_, own)| own.viewer).collect();
            viewers.into_iter().for_each(|viewer| stage.leave(viewer));
        }
        assert_eq!(stage.left_over(), [0; 4], "seed {seed}");
        assert_eq!(stage.edge.feeds().viewer_count(), 0, "seed {seed}");
    }
}

#[test]
fn states_say_how_far_a_playback_is() {
    let mut stage = Stage::new([user(1, 0)], with(&[Strategy::GraceHold]));
    let viewer = stage.play(0, 0, A);
    stage.ask(0, 1, A);
    let states: Vec<State> = stage.edge.playback().playbacks().map(|(_, own)| own.state).collect();
    assert_eq!(states, [State::Active, State::Held(Time::ZERO + Duration::from_secs(2))]);
    stage.leave(viewer);
    let note = |note: &Note| matches!(note, Note::PlaybackStarted { waited: 0, place: Place::Normal, .. });
    assert_eq!(stage.notes.iter().filter(|own| note(own)).count(), 2);
}

#[test]
fn age_is_told_by_when_one_came_and_not_by_whose_row_it_took() {
    let mut stage = Stage::new([user(2, 0)], with(&[Strategy::EvictOldest]));
    let (gone, older) = (stage.play(0, 0, A), stage.play(0, 0, A));
    stage.leave(gone);
    let newer = stage.play(0, 0, A);
    stage.play(0, 1, A);
    assert_eq!((stage.end_of(older), stage.end_of(newer)), (Some((0, ViewerEnd::Evicted)), None));

    let mut stage = Stage::new([user(1, 2)], with(&[Strategy::GraceInstant]));
    let normal = stage.play(0, 0, A);
    let (gone, older) = (stage.play(0, 0, A), stage.play(0, 0, A));
    stage.leave(gone);
    let newer = stage.play(0, 0, A);
    stage.play(0, 0, A);
    stage.leave(normal);
    assert_eq!([older, newer].map(|viewer| stage.place(viewer)), [Some(Place::Normal), Some(Place::Soft)]);
}

#[test]
fn each_playback_counts() {
    let mut stage = Stage::new([user(1, 0)], with(&[]));
    for _ in 0..3 {
        let viewer = stage.play(0, 0, A);
        stage.leave(viewer);
    }
    let counts = stage.edge.playback().counts(UserId(0)).unwrap();
    assert_eq!((counts.started, counts.ended[ViewerEnd::Left as usize]), (3, 3));
}
