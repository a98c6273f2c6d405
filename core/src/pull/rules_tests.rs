//! Rules of spec pull §2, §3 and §7 that no reported case shows.

use alloc::vec::Vec;
use core::time::Duration;

use super::Phase;
use super::round::Round;
use super::stage::{Fate, Origin, STEP, Stage, ms};
use crate::config::Channel;
use crate::input::{ChannelId, Input, Loss, Note, RefuseReason, RequestId, Switch, ViewerEnd, Writer};

const FAILS: Origin = Origin::Fails(Loss::Refused, 20);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The shortest pause between two rounds, in ms: a fifth less than `no_input_timeout`.
const LEAST_PAUSE: u64 = 2_400;

impl Stage {
    /// Falls silent, and what happens in the next so many ms.
    fn mute(&mut self, index: usize, span: u64) -> u64 {
        self.muted[index] = true;
        let at = self.now;
        self.run(span);
        at
    }

    /// What is opened from `from` on, in order.
    fn order(&self, from: usize) -> Vec<usize> {
        self.opens[from..].iter().map(|(index, _)| *index).collect()
    }
}

#[test]
fn a_handshake_is_no_media_however_often_it_is_told() {
    let mut stage = Stage::new(Channel { start_timeout: seconds(30), ..Channel::default() }, &[Origin::Silent]);
    stage.join();
    for _ in 0..100 {
        stage.run(100);
        for source in stage.of_origin(0) {
            stage.input(Input::Opened { source });
        }
    }
    let silences: Vec<u64> = stage
        .notes
        .iter()
        .filter(|(note, _)| matches!(note, Note::ChannelSilent { silent: None, .. }))
        .map(|(_, at)| *at)
        .collect();
    assert_eq!(silences, [3_020], "told once, no_input_timeout after it agreed");
}

#[test]
fn a_handshake_is_no_sign_that_an_earlier_origin_works() {
    let settings = Channel { no_input_timeout: seconds(10), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Fails(Loss::Refused, 20), Origin::Good]);
    stage.viewer();
    stage.origins[0] = Origin::Silent;
    // It is probed, agrees, is mute for longer than `stable_after`, and then sends.
    stage.muted[0] = true;
    while stage.opens_of(0).len() < 2 {
        stage.run(STEP);
    }
    stage.run(7_000);
    let source = stage.of_origin(0)[0];
    stage.input(Input::Arrived { source });
    assert!(!stage.edge.takes(ms(stage.now), stage.feed, Writer::Source(source), true));
}

#[test]
fn a_success_is_measured_to_its_last_media_not_to_its_loss() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(3_000);
    stage.mute(0, 2_500);
    stage.lose(0, Loss::Reset);
    stage.run(LEAST_PAUSE - STEP);
    assert_eq!(stage.opens.len(), 1, "5.5 s open, but 3 s of media: no attempt without a pause");
}

#[test]
fn a_success_forgets_rounds_and_pauses_that_came_to_nothing() {
    let settings = Channel { retries: Some(4), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Good]);
    stage.viewer();
    for _ in 0..3 {
        stage.run(10_000);
        stage.origins[0] = FAILS;
        let from = stage.opens.len();
        stage.lose(0, Loss::Reset);
        // At once, and after a pause.
        while stage.opens.len() < from + 2 {
            stage.run(STEP);
        }
        let pause = stage.opens[from + 1].1 - stage.opens[from].1;
        assert!(pause <= 3_600 + 2 * STEP, "{pause}: pauses begin anew");
        stage.origins[0] = Origin::Good;
        while stage.phase() != Phase::Live {
            stage.run(STEP);
        }
    }
    assert!(stage.ended.is_empty(), "two rounds in vain, three times, are not five in a row");
}

#[test]
fn after_a_success_every_other_origin_has_its_turn_at_once_the_next_first() {
    let settings = Channel { failback: false, ..Channel::default() };
    let mut stage = Stage::new(settings, &[FAILS, Origin::Good, FAILS]);
    stage.viewer();
    stage.run(10_000);
    stage.mute(1, 3_000 + 100);
    assert_eq!(stage.order(0), [0, 1, 2, 0]);
}

#[test]
fn a_round_beside_a_silent_origin_begins_behind_it() {
    let settings = Channel { failback: false, ..Channel::default() };
    let mut stage = Stage::new(settings, &[FAILS, Origin::Good, FAILS]);
    stage.viewer();
    stage.run(10_000);
    stage.mute(1, 3_100);
    let from = stage.opens.len();
    let second = stage.opens[from - 1].1;
    stage.run(4_000);
    assert_eq!(stage.order(from)[..2], [2, 0]);
    assert!(stage.opens[from].1 - second >= LEAST_PAUSE, "and after a pause: a silence is no breaking");
}

#[test]
fn a_loss_is_news_whatever_pause_was_made() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(4_000);
    stage.mute(0, 20_000);
    // Whatever was tried beside it has been given up, and a long pause is made.
    while stage.connections.len() > 1 {
        stage.run(STEP);
    }
    stage.run(500);
    let opens = stage.opens.len();
    stage.lose(0, Loss::Reset);
    assert_eq!(stage.opens.len(), opens + 1, "a silent connection that goes: there may be an origin again");

    // The same with media that is back, flows for long, and breaks.
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(4_000);
    stage.mute(0, 22_000);
    while stage.connections.len() > 1 {
        stage.run(STEP);
    }
    stage.muted[0] = false;
    stage.run(5_500);
    let opens = stage.opens.len();
    stage.lose(0, Loss::Reset);
    assert_eq!(stage.opens.len(), opens + 1);
}

#[test]
fn a_connection_that_never_sent_and_goes_is_no_news() {
    let settings = Channel { start_timeout: seconds(60), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Stalls(4_000, Loss::Reset)]);
    stage.join();
    stage.run(4_000);
    assert_eq!((stage.opens.len(), stage.connections.len()), (1, 0));
    let next = stage.edge.pull().state(ChannelId(0)).unwrap().next;
    assert!(next.is_some_and(|next| next >= ms(3_020 + LEAST_PAUSE)), "the pause goes on: {next:?}");
}

#[test]
fn pictures_that_nobody_can_start_with_are_waited_for_fifteen_seconds() {
    let settings = Channel { start_timeout: seconds(60), failback: false, ..Channel::default() };
    let mut stage = Stage::new(settings.clone(), &[Origin::Keyless, Origin::Good]);
    stage.join();
    stage.run(20_000);
    assert_eq!(stage.opens, [(0, 0), (1, 15_040)]);

    // An origin that was silent from the beginning, and then sends such pictures.
    let mut stage = Stage::new(settings.clone(), &[Origin::Keyless]);
    stage.muted[0] = true;
    stage.join();
    stage.run(4_000);
    let kept = stage.of_origin(0)[0];
    stage.muted[0] = false;
    stage.run(15_000);
    assert!(stage.connections.contains_key(&kept));
    stage.run(2 * STEP);
    assert!(!stage.connections.contains_key(&kept));
}

#[test]
fn an_origin_that_sent_such_pictures_and_fell_silent_is_kept() {
    let settings = Channel { start_timeout: seconds(60), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Keyless]);
    stage.join();
    stage.run(2_000);
    let kept = stage.of_origin(0)[0];
    stage.mute(0, 20_000);
    assert!(stage.connections.contains_key(&kept), "it may begin to send at any moment");
}

#[test]
fn media_on_the_kept_connection_drops_what_is_tried_beside_it() {
    let mut stage = Stage::of(&[Origin::Good, Origin::Mute]);
    stage.viewer();
    stage.run(4_000);
    stage.mute(0, 3_500);
    assert_eq!(stage.connections.len(), 2);
    stage.muted[0] = false;
    stage.run(2 * STEP);
    assert_eq!((stage.of_origin(0).len(), stage.of_origin(1).len()), (1, 0));
    assert!(stage.gap(stage.now - STEP, stage.now) <= STEP, "at any packet: it joins on to what it sent");
}

#[test]
fn a_silent_connection_is_told_from_a_pause() {
    let mut stage = Stage::of(&[Origin::Silent, FAILS]);
    let first = stage.join();
    stage.run(3_200);
    stage.input(Input::Hangup { request: RequestId(first) });
    assert_eq!((stage.opens.len(), stage.connections.len()), (2, 1), "the silent one is kept, the other one failed");
    let request = stage.join();
    assert_eq!(stage.fate(request), None, "held: media may come at any moment");
}

#[test]
fn every_earlier_origin_is_looked_at_in_turn_ever_less_often_and_not_for_nobody() {
    let mut stage = Stage::of(&[FAILS, FAILS, Origin::Good]);
    let viewer = stage.viewer();
    let live = stage.notes.iter().find(|(note, _)| matches!(note, Note::ChannelStarted { .. })).unwrap().1;
    let from = stage.opens.len();
    stage.run(300_000);
    let probes = &stage.opens[from..];
    assert!((3_000..3_000 + 2 * STEP).contains(&(probes[0].1 - live)), "failback_interval after it began: {probes:?}");
    let order = stage.order(from);
    assert!(order.iter().enumerate().all(|(turn, index)| *index == turn % 2), "{order:?}");
    let pauses: Vec<u64> = probes.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(pauses.iter().all(|pause| *pause <= 36_000 + 3 * STEP), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause > 20_000), "{pauses:?}");

    // It breaks and is had again: then it begins with the first, and soon.
    while stage.order(from).last() != Some(&0) {
        stage.run(STEP);
    }
    stage.run(1_000);
    stage.lose(2, Loss::Reset);
    while stage.phase() != Phase::Live {
        stage.run(STEP);
    }
    let from = stage.opens.len();
    stage.run(12_000);
    assert_eq!(stage.order(from)[..2], [0, 1]);
    assert!(stage.opens[from + 1].1 - stage.opens[from].1 <= 7_200 + 3 * STEP, "{:?}", &stage.opens[from..]);

    stage.leave(viewer);
    let opens = stage.opens.len();
    stage.run(59_000);
    assert_eq!((stage.phase(), stage.opens.len()), (Phase::Live, opens), "nobody would notice");
}

#[test]
fn a_probe_is_made_when_it_is_due_whatever_else_happens() {
    let settings = Channel { failback_interval: seconds(1), no_input_timeout: seconds(10), ..Channel::default() };
    let mut stage = Stage::new(settings, &[FAILS, Origin::Good]);
    stage.viewer();
    let live = stage.media[0].1;
    stage.run(15_000);
    let probe = stage.opens_of(0)[1];
    assert!(probe - 10_000 <= STEP && probe > live, "when the origin may be asked again: {probe}");
}

#[test]
fn nobody_asks_for_nobody() {
    let mut stage = Stage::of(&[Origin::Good, Origin::Good]);
    let viewer = stage.viewer();
    stage.run(4_000);
    stage.leave(viewer);
    stage.mute(0, 50_000);
    assert_eq!(stage.opens.len(), 1);
}

#[test]
fn a_probe_under_way_when_media_breaks_off_has_its_turn() {
    let settings = Channel { retries: Some(0), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Mute, Origin::Good]);
    let viewer = stage.viewer();
    stage.run(6_000);
    while stage.of_origin(0).is_empty() {
        stage.run(STEP);
    }
    stage.run(1_000);
    let (probe, broke) = (*stage.opens_of(0).last().unwrap(), stage.now);
    stage.lose(1, Loss::Reset);
    stage.run(10_000);
    assert_eq!(*stage.opens_of(0).last().unwrap(), probe, "it is not asked again");
    assert_eq!(stage.ended, [(viewer, ViewerEnd::NoSource, probe + 3_000)], "broke at {broke}");
}

#[test]
fn an_origin_left_while_silent_had_its_turn() {
    let settings = Channel { failback: false, ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Good, Origin::Plays(2_000, Loss::Reset)]);
    stage.viewer();
    stage.run(10_000);
    stage.mute(0, 6_500);
    assert_eq!(stage.connections.len(), 0, "the other one came, went, and was too short to be a success");
    let next = stage.edge.pull().state(ChannelId(0)).unwrap().next;
    assert!(next.is_some_and(|next| next > ms(stage.now)), "a pause: {next:?} {:?}", stage.opens);
}

#[test]
fn only_an_origin_that_sent_can_end_a_channel() {
    let settings = Channel { start_timeout: seconds(60), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Stalls(4_000, Loss::Ended)]);
    stage.join();
    stage.run(20_000);
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelEnded { .. })), 0);
}

#[test]
fn an_end_is_over_when_nobody_waits_for_it() {
    let settings = Channel { end_grace: seconds(120), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Good]);
    let viewer = stage.viewer();
    stage.run(10_000);
    stage.leave(viewer);
    stage.lose(0, Loss::Ended);
    stage.run(130_000);
    assert_eq!((stage.phase(), stage.noted(|note| matches!(note, Note::ChannelEnded { .. }))), (Phase::Off, 0));
    let request = stage.join();
    stage.run(1_000);
    assert!(matches!(stage.fate(request), Some(Fate::Joined(..))));
}

#[test]
fn an_end_is_remembered_for_a_pause_and_then_forgotten() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    stage.origins[0] = FAILS;
    stage.lose(0, Loss::Ended);
    stage.run(5_500);
    assert_eq!(stage.phase(), Phase::Ended);
    stage.origins[0] = Origin::Good;
    let (opens, early) = (stage.opens.len(), stage.join());
    assert_eq!(stage.fate(early), Some(Fate::Refused(RefuseReason::NoSource, stage.now)));
    assert_eq!(stage.opens.len(), opens);
    stage.run(36_000);
    stage.viewer();
    stage.run(20_000);
    assert_eq!((stage.phase(), stage.ended.len()), (Phase::Live, 1), "it is not ended again");
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelEnded { .. })), 1);
}

#[test]
fn a_persistent_channel_goes_on_after_an_orderly_end_but_not_in_a_drain() {
    let mut stage = Stage::new(Channel { on_demand: false, ..Channel::default() }, &[Origin::Good]);
    stage.run(10_000);
    stage.origins[0] = FAILS;
    stage.lose(0, Loss::Ended);
    stage.run(20_000);
    stage.origins[0] = Origin::Good;
    stage.run(31_000);
    assert_eq!(stage.phase(), Phase::Live);
    stage.input(Input::Drain);
    stage.run(60_000);
    assert_eq!((stage.phase(), stage.connections.len()), (Phase::Off, 0));
}

#[test]
fn a_viewer_who_comes_in_a_pause_tries_again_unless_that_was_just_done() {
    let mut stage = Stage::of(&[FAILS]);
    for opens in 1..=4 {
        stage.join();
        stage.run(2_900);
        let early = stage.join();
        assert!(matches!(stage.fate(early), Some(Fate::Refused(RefuseReason::NoSource, at)) if at == stage.now));
        assert_eq!(stage.opens.len(), opens, "from memory");
        stage.run(200);
        assert!(opens == 1 || stage.edge.pull().state(ChannelId(0)).unwrap().next > Some(ms(stage.now)), "a pause");
    }
}

#[test]
fn whoever_comes_when_the_pause_is_over_or_somebody_waits_is_held() {
    for retries in [None, Some(0)] {
        // A chance that makes the pause shorter than `no_input_timeout`.
        let comes = |chance| {
            let mut stage = Stage::new(Channel { retries, ..Channel::default() }, &[FAILS]);
            stage.chance(chance);
            stage.join();
            stage.run(LEAST_PAUSE + 200);
            let request = stage.join();
            (stage.fate(request).is_none(), request, stage)
        };
        let (_, first, mut stage) = (0..=255).map(comes).find(|(held, ..)| *held).unwrap();
        assert_eq!(stage.opens.len(), 1, "the origin is spared for no_input_timeout");
        let second = stage.join();
        assert_eq!(stage.fate(second), None, "nor is one refused that comes then");
        stage.origins[0] = Origin::Good;
        stage.run(1_000);
        for request in [first, second] {
            assert!(matches!(stage.fate(request), Some(Fate::Joined(..))));
        }
        assert_eq!(stage.opens.len(), 2);
    }
}

#[test]
fn idle_counts_from_whoever_was_there_last() {
    let off = |stage: &mut Stage| {
        while stage.phase() != Phase::Off {
            stage.run(STEP);
        }
        stage.now
    };
    // Answered that no origin can be had, and by `start_timeout`.
    let mut stage = Stage::of(&[Origin::Mute]);
    stage.join();
    assert_eq!(off(&mut stage), 63_000);
    let mut stage = Stage::of(&[Origin::Silent]);
    stage.join();
    assert_eq!(off(&mut stage), 70_000);
    // A viewer left, later somebody asked and hung up.
    let mut stage = Stage::of(&[Origin::Good]);
    let viewer = stage.viewer();
    stage.run(1_000);
    stage.leave(viewer);
    stage.mute(0, 30_000);
    let request = stage.join();
    stage.run(1_000);
    stage.input(Input::Hangup { request: RequestId(request) });
    let gone = stage.now;
    assert_eq!(off(&mut stage), gone + 60_000);
}

#[test]
fn a_channel_that_was_off_begins_without_a_past() {
    let settings = Channel { idle_timeout: seconds(1), ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Good]);
    let viewer = stage.viewer();
    stage.leave(viewer);
    let late = Writer::Source(stage.of_origin(0)[0]);
    stage.run(1_100);
    assert_eq!((stage.phase(), stage.edge.takes(ms(stage.now), stage.feed, late, true)), (Phase::Off, false));
    stage.viewer();
    assert_eq!(stage.opens.len(), 2, "within no_input_timeout");
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelStarted { .. })), 2, "nothing is joined on to");
}

#[test]
fn a_channel_that_ended_begins_with_the_first_origin_as_many_rounds_as_before_and_no_more_often() {
    let mut stage = Stage::new(Channel { retries: Some(0), ..Channel::default() }, &[Origin::Good, FAILS]);
    stage.viewer();
    stage.run(10_000);
    stage.mute(0, 3_100);
    assert_eq!(stage.phase(), Phase::Ended);
    stage.run(4_000);
    let from = stage.opens.len();
    stage.join();
    assert_eq!(stage.order(from), [0]);

    let mut stage = Stage::new(Channel { retries: Some(1), ..Channel::default() }, &[FAILS]);
    let mut pauses = Vec::new();
    for _ in 0..2 {
        let (from, ended) = (stage.opens.len(), stage.now);
        while stage.opens.len() == from || stage.phase() != Phase::Ended {
            if stage.edge.pull().held() == 0 {
                stage.join();
            }
            stage.run(STEP);
        }
        assert_eq!(stage.opens.len(), from + 2, "retries begin anew");
        pauses.push(stage.opens[from].1 - ended);
    }
    // One after the second round, another one after the fourth.
    stage.run(1_000);
    let next = |stage: &Stage| stage.edge.pull().state(ChannelId(0)).unwrap().next;
    assert_eq!((pauses[0], next(&stage)), (0, None));
    assert!(pauses[1] >= 4_800, "{pauses:?}");
    let from = stage.now;
    while stage.phase() == Phase::Ended {
        stage.join();
        stage.run(STEP);
    }
    assert!(stage.now - from > pauses[1] * 2, "{pauses:?}, {}: no more often than before", stage.now - from);
}

#[test]
fn who_waits_with_viewers_for_a_repair_waits_through_rounds_in_vain() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    stage.origins[0] = FAILS;
    stage.lose(0, Loss::Reset);
    let request = stage.join();
    stage.run(9_900);
    assert!(stage.opens.len() >= 3);
    assert_eq!(stage.fate(request), None);
}

#[test]
fn an_origin_that_may_not_be_asked_yet_holds_up_no_other() {
    let mut stage = Stage::of(&[FAILS, FAILS, Origin::Good]);
    stage.viewer();
    stage.run(30_000);
    let probes = stage.opens_of(0).len();
    while stage.opens_of(0).len() == probes {
        stage.run(STEP);
    }
    stage.run(100);
    stage.lose(2, Loss::Reset);
    assert_eq!(*stage.opens.last().unwrap(), (1, stage.now), "the first was asked just now");
}

#[test]
fn what_the_writer_says_beside_its_media_changes_nothing() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(2_000);
    let (source, notes) = (stage.of_origin(0)[0], stage.notes.len());
    for input in [Input::Arrived { source }, Input::Opened { source }] {
        stage.input(input);
    }
    assert_eq!((stage.notes.len(), stage.phase()), (notes, Phase::Live));
}

#[test]
fn a_request_is_held_once() {
    let mut stage = Stage::of(&[Origin::Mute]);
    let request = stage.join();
    stage.input(Input::Join { request: RequestId(request), feed: stage.feed });
    assert_eq!((stage.edge.pull().held(), stage.edge.pull().stale()), (1, 1));
    stage.run(4_000);
    assert_eq!(stage.edge.pull().held(), 0, "and answered once");
}

#[test]
fn what_is_counted_and_told_is_what_happened() {
    let mut stage = Stage::of(&[Origin::Good, Origin::Good]);
    stage.run(5_000);
    let asked = stage.now;
    stage.viewer();
    let waited = (stage.media[0].1 - asked) * 1000;
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelStarted { waited: told, .. } if *told == waited)), 1);
    stage.run(4_000);
    stage.mute(0, 6_000);
    stage.lose(1, Loss::Reset);
    let state = stage.edge.pull().state(ChannelId(0)).unwrap();
    let mut lost = [0; Loss::ALL.len()];
    lost[Loss::Reset as usize] = 1;
    let counts = state.counts;
    assert_eq!((counts.opens, counts.silences, counts.switches), (stage.opens.len() as u64, 1, 1));
    assert_eq!((counts.lost, state.last_loss), (lost, Some((1, Loss::Reset))));
    assert_eq!(stage.noted(|note| matches!(note, Note::SourceLost { loss: Loss::Reset, index: 1, .. })), 1);
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelSwitched { why: Switch::Failover, .. })), 1);
}

#[test]
fn a_viewer_who_finds_no_recent_key_frame_has_one_asked_for() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(1_000);
    stage.origins[0] = Origin::Keyless;
    let source = stage.of_origin(0)[0];
    stage.connections.get_mut(&source).unwrap().origin = Origin::Keyless;
    stage.run(2_500);
    stage.join();
    assert_eq!(stage.wishes.last(), Some(&(source, stage.now)));
}

#[test]
fn nothing_is_asked_without_a_pause_whatever_was_configured() {
    let zero = Duration::ZERO;
    let settings =
        Channel { no_input_timeout: zero, retry_backoff_max: zero, failback_interval: zero, ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Fails(Loss::Refused, 0), Origin::Good]);
    stage.join();
    stage.run(2_000);
    assert!(stage.opens_of(0).windows(2).all(|pair| pair[1] - pair[0] >= 100), "{:?}", stage.opens);
}

#[test]
fn chance_moves_a_pause_by_a_fifth() {
    let settings = Channel::default();
    let next = |chance| {
        let mut round = Round::new(1);
        assert!(round.over(ms(0), 0, &settings, chance));
        round.next
    };
    assert_eq!([next(0), next(200), next(400)], [ms(2_400), ms(3_000), ms(3_600)]);
}
