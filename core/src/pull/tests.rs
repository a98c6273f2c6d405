//! Cases that people reported (P1 …), in simulated time.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::Phase;
use super::stage::{Fate, Origin, STEP, Stage, ms};
use crate::config::Channel;
use crate::input::{Input, Loss, Note, RefuseReason, RequestId, Switch, ViewerEnd, Writer};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_channel_is_pulled_when_somebody_wants_it_and_left_when_nobody_does() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.run(5_000);
    assert_eq!((stage.opens.len(), stage.phase()), (0, Phase::Off));
    let viewer = stage.viewer();
    assert_eq!(stage.phase(), Phase::Live);
    stage.run(100_000);
    stage.leave(viewer);
    stage.run(59_000);
    assert_eq!(stage.phase(), Phase::Live, "it is kept for idle_timeout");
    stage.run(2_000);
    assert_eq!((stage.phase(), stage.connections.len(), stage.opens.len()), (Phase::Off, 0, 1));
    assert_eq!((stage.edge.pull().timer_count(), stage.edge.feeds().status(ms(0), stage.feed).unwrap().span), (0, 0));
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelOff { .. })), 1);
}

#[test]
fn a_channel_that_is_to_be_left_at_once_is_left_soon_and_costs_no_endless_loop() {
    let mut stage = Stage::new(Channel { idle_timeout: Duration::ZERO, ..Channel::default() }, &[Origin::Good]);
    let viewer = stage.viewer();
    stage.run(1_000);
    assert_eq!(stage.phase(), Phase::Live);
    stage.leave(viewer);
    stage.run(100 + STEP);
    assert_eq!((stage.phase(), stage.connections.len()), (Phase::Off, 0));
}

#[test]
fn p1_a_silent_origin_is_asked_three_times_in_twenty_seconds() {
    let mut stage = Stage::of(&[Origin::Silent]);
    let request = stage.join();
    stage.run(20_000);
    assert!(stage.opens.len() <= 3, "{:?}", stage.opens);
    assert_eq!(stage.fate(request), Some(Fate::Refused(RefuseReason::StartTimeout, 10_000)));
    stage.is_patient();
}

#[test]
fn p1_silence_after_media_is_told_once_with_its_true_length() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(4_000);
    let last = stage.media.last().unwrap().1;
    stage.muted[0] = true;
    stage.run(20_000);
    assert!(stage.opens.len() <= 3, "{:?}", stage.opens);
    let told: Vec<u64> = stage
        .notes
        .iter()
        .filter_map(|(note, at)| match note {
            Note::ChannelSilent { silent, .. } => {
                assert_eq!(silent.unwrap(), (at - last) * 1000);
                Some(*at)
            }
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 1);
    assert!(told[0] - last <= 3_000 + STEP);
    stage.is_patient();
}

#[test]
fn p3_media_on_the_kept_connection_is_passed_on_at_once() {
    let mut stage = Stage::of(&[Origin::Good]);
    let viewer = stage.viewer();
    stage.run(4_000);
    stage.muted[0] = true;
    stage.run(20_000);
    let (opens, kept) = (stage.opens.len(), stage.of_origin(0)[0]);
    stage.muted[0] = false;
    let back = stage.now;
    stage.run(100);
    assert_eq!((stage.gap(back, stage.now) <= 2 * STEP, stage.opens.len()), (true, opens));
    assert_eq!(stage.of_origin(0), [kept], "the attempt beside it is dropped");
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelBack { gap, .. } if *gap >= 20_000_000)), 1);
    assert!(stage.ended.iter().all(|(ended, ..)| *ended != viewer));
}

#[test]
fn p3_an_origin_that_never_sent_is_kept_too() {
    let mut stage = Stage::new(Channel { start_timeout: seconds(30), ..Channel::default() }, &[Origin::Good]);
    stage.muted[0] = true;
    let request = stage.join();
    stage.run(20_000);
    let opens = stage.opens.len();
    stage.muted[0] = false;
    stage.run(1_100);
    assert!(matches!(stage.fate(request), Some(Fate::Joined(..))), "at its first key frame");
    assert_eq!(stage.opens.len(), opens);
}

#[test]
fn p8_the_next_origin_is_tried_at_once() {
    let origins = [Origin::Fails(Loss::Unreachable, 20), Origin::Fails(Loss::NotFound, 20), Origin::Good];
    let mut stage = Stage::of(&origins);
    let request = stage.join();
    stage.run(400);
    assert_eq!(stage.opens, [(0, 0), (1, 20), (2, 40)]);
    assert!(matches!(stage.fate(request), Some(Fate::Joined(_, 240))), "{:?}", stage.fate(request));
}

#[test]
fn p9_a_pause_shorter_than_the_timeout_is_nothing() {
    let mut stage = Stage::new(Channel { no_input_timeout: seconds(10), ..Channel::default() }, &[Origin::Good]);
    stage.viewer();
    stage.run(4_000);
    stage.muted[0] = true;
    stage.run(4_000);
    stage.muted[0] = false;
    stage.run(4_000);
    assert_eq!((stage.opens.len(), stage.noted(|note| matches!(note, Note::ChannelSilent { .. }))), (1, 0));
}

#[test]
fn p10_there_is_no_window_in_which_a_channel_is_being_left() {
    for pause in [20, 100, 1_000, 2_900, 59_000, 61_000] {
        let mut stage = Stage::of(&[Origin::Good]);
        let viewer = stage.viewer();
        stage.run(2_000);
        stage.leave(viewer);
        stage.run(pause);
        stage.viewer();
        assert_eq!(stage.opens.len(), if pause > 60_000 { 2 } else { 1 }, "{pause}");
    }
}

#[test]
fn p12_a_black_hole_costs_the_timeout_a_handshake_and_a_key_frame() {
    let mut stage = Stage::of(&[Origin::Good, Origin::Good]);
    stage.viewer();
    stage.run(4_000);
    stage.muted[0] = true;
    let hole = stage.now;
    stage.run(6_000);
    assert!(stage.gap(hole, stage.now) <= 3_000 + 1_000 + 3 * STEP, "{}", stage.gap(hole, stage.now));
    assert_eq!(stage.media.last().unwrap().0, 1);
    assert_eq!(stage.of_origin(0).len(), 0, "the old one is closed when the new one takes over");
    assert!(stage.ended.is_empty());
}

#[test]
fn p13_a_refusal_is_answered_at_once() {
    for retries in [None, Some(0)] {
        let mut stage = Stage::new(Channel { retries, ..Channel::default() }, &[Origin::Fails(Loss::Refused, 20)]);
        let request = stage.join();
        stage.run(1_000);
        assert_eq!(stage.fate(request), Some(Fate::Refused(RefuseReason::NoSource, 20)));
        let again = stage.join();
        assert_eq!(stage.fate(again), Some(Fate::Refused(RefuseReason::NoSource, 1_000)), "from memory");
        assert_eq!(stage.opens.len(), 1);
        stage.run(3_000);
        stage.join();
        assert_eq!(stage.opens.len(), 2, "the memory is as long as the pause");
    }
}

#[test]
fn p14_an_origin_that_resets_each_time_is_asked_ever_less_often() {
    let mut stage = Stage::of(&[Origin::Good]);
    let viewer = stage.viewer();
    stage.run(6_000);
    stage.origins[0] = Origin::Fails(Loss::Reset, 20);
    stage.lose(0, Loss::Reset);
    let from = stage.opens.len();
    stage.run(50_000);
    let opens = &stage.opens[from..];
    assert!((3..=5).contains(&opens.len()), "{opens:?}");
    let pauses: Vec<u64> = opens.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(pauses.windows(2).all(|pair| pair[1] > pair[0] * 5 / 4), "{pauses:?}");
    assert!(stage.ended.is_empty(), "{viewer} waits");
    stage.is_patient();
}

#[test]
fn p15_many_viewers_share_one_attempt_and_its_result() {
    for origin in [Origin::Good, Origin::Fails(Loss::NotFound, 100)] {
        let mut stage = Stage::of(&[origin]);
        let requests: Vec<u64> = (0..100).map(|_| stage.join()).collect();
        stage.run(1_000);
        assert_eq!(stage.opens.len(), 1);
        for request in requests {
            match stage.fate(request).unwrap() {
                Fate::Joined(..) => assert_eq!(origin, Origin::Good),
                Fate::Refused(reason, at) => assert_eq!((reason, at), (RefuseReason::NoSource, 100)),
            }
        }
        assert_eq!(stage.edge.pull().held(), 0);
    }
}

#[test]
fn p16_a_success_that_is_too_short_is_none() {
    let mut stage = Stage::of(&[Origin::Plays(2_000, Loss::Reset), Origin::Good]);
    stage.viewer();
    stage.run(60_000);
    let settled = stage.media.iter().position(|(index, _)| *index == 1).unwrap();
    assert!(stage.media[settled..].iter().all(|(index, _)| *index == 1), "it never goes back");
    assert!(stage.opens_of(0).len() <= 6, "{:?}", stage.opens_of(0));
    stage.is_patient();
}

#[test]
fn p16_alone_it_is_asked_ever_less_often() {
    let mut stage = Stage::of(&[Origin::Plays(2_000, Loss::Reset)]);
    stage.viewer();
    stage.run(60_000);
    assert!(stage.opens.len() <= 6, "{:?}", stage.opens);
}

#[test]
fn p16_a_backup_that_works_is_not_kept_waiting_for_a_primary_that_does_not() {
    let mut stage = Stage::of(&[Origin::Plays(8_000, Loss::Reset), Origin::Good]);
    stage.viewer();
    stage.run(120_000);
    assert!(stage.noted(|note| matches!(note, Note::ChannelSwitched { why: Switch::Failback, .. })) > 0);
    assert!(stage.gap(1_000, stage.now) <= 10 + 200 + 1_000 + 2 * STEP, "{}", stage.gap(1_000, stage.now));
    stage.is_patient();
}

#[test]
fn p4_a_connection_that_breaks_after_a_success_is_made_again_at_once() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    let broke = stage.now;
    stage.lose(0, Loss::Reset);
    assert_eq!(*stage.opens.last().unwrap(), (0, broke));
    stage.run(1_000);
    stage.lose(0, Loss::Reset);
    stage.run(2_000);
    assert_eq!(*stage.opens.last().unwrap(), (0, broke), "but not after none");
}

#[test]
fn p17_a_primary_that_is_silent_never_takes_over() {
    let mut stage = Stage::of(&[Origin::Silent, Origin::Good]);
    stage.viewer();
    stage.run(60_000);
    assert!(stage.media.iter().all(|(index, _)| *index == 1));
    assert_eq!(stage.noted(|note| matches!(note, Note::ChannelSwitched { .. })), 0);
    assert!(stage.opens_of(0).len() <= 7, "{:?}", stage.opens_of(0));
    assert!(stage.gap(10_000, 60_000) <= STEP);
    stage.is_patient();
}

#[test]
fn a_primary_that_is_back_takes_over_when_it_has_shown_that_it_works() {
    let mut stage = Stage::of(&[Origin::Fails(Loss::Unreachable, 20), Origin::Good]);
    let viewer = stage.viewer();
    stage.run(4_000);
    assert_eq!(stage.media.last().unwrap().0, 1);
    stage.origins[0] = Origin::Good;
    stage.run(20_000);
    let first = stage.media.iter().find(|(index, _)| *index == 0).unwrap().1;
    let opened = *stage.opens_of(0).last().unwrap();
    assert!(first - opened >= 5_000 && first - opened <= 6_500, "{opened} {first}");
    assert!(stage.gap(1_000, stage.now) <= STEP, "nobody notices");
    assert_eq!(stage.connections.len(), 1);
    assert!(stage.ended.iter().all(|(ended, ..)| *ended != viewer));
    let failback = |note: &Note| matches!(note, Note::ChannelSwitched { why: Switch::Failback, index: 0, .. });
    assert_eq!(stage.noted(failback), 1);
    let mut stays = Stage::new(Channel { failback: false, ..Channel::default() }, &[Origin::Good, Origin::Good]);
    stays.origins[0] = Origin::Fails(Loss::Unreachable, 20);
    stays.viewer();
    stays.origins[0] = Origin::Good;
    stays.run(60_000);
    assert_eq!(stays.opens_of(0).len(), 1);
}

#[test]
fn p18_p19_p11_whoever_waits_is_answered_by_start_timeout() {
    for origin in [Origin::Stalls(5_000, Loss::Ended), Origin::Mute, Origin::Silent, Origin::Keyless] {
        let mut stage = Stage::of(&[origin]);
        let request = stage.join();
        stage.run(10_000);
        assert!(matches!(stage.fate(request), Some(Fate::Refused(..))), "{origin:?} {:?}", stage.fate(request));
        stage.run(120_000);
        assert_eq!((stage.connections.len(), stage.edge.pull().timer_count()), (0, 0), "{origin:?}");
        assert!(stage.opens.len() <= 4, "{origin:?} {:?}", stage.opens);
    }
}

#[test]
fn p19_one_deadline_for_the_whole_handshake() {
    let mut stage = Stage::of(&[Origin::Mute, Origin::Good]);
    stage.join();
    stage.run(5_000);
    assert_eq!(stage.opens, [(0, 0), (1, 3_000)]);
}

#[test]
fn p22_whoever_leaves_during_the_handshake_leaves_nothing() {
    let mut stage = Stage::of(&[Origin::Mute]);
    let (a, b) = (stage.join(), stage.join());
    stage.run(100);
    for request in [a, b] {
        stage.input(Input::Hangup { request: RequestId(request) });
    }
    stage.run(65_000);
    assert_eq!((stage.connections.len(), stage.edge.pull().held(), stage.edge.pull().timer_count()), (0, 0, 0));
    assert!(stage.fates.is_empty());
    assert_eq!(stage.opens.len(), 1, "nobody asks for nobody");
}

#[test]
fn an_origin_that_ended_in_order_is_asked_again_for_a_while() {
    let mut stage = Stage::of(&[Origin::Good]);
    let viewer = stage.viewer();
    stage.run(10_000);
    stage.origins[0] = Origin::Fails(Loss::NotFound, 20);
    stage.lose(0, Loss::Ended);
    let lost = stage.now;
    stage.run(6_000);
    assert_eq!(stage.ended, [(viewer, ViewerEnd::Ended, lost + 5_000)]);
    assert_eq!((stage.phase(), stage.connections.len()), (Phase::Ended, 0));

    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    stage.lose(0, Loss::Ended);
    stage.run(20_000);
    assert!(stage.ended.is_empty(), "it began again");
}

/// P7: what hangs is ended by its client's own time-outs, and works again later.
#[test]
fn p7_an_end_of_what_had_fallen_silent_is_no_end_in_order() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    stage.muted[0] = true;
    stage.run(28_000);
    stage.origins[0] = Origin::Mute;
    stage.lose(0, Loss::Ended);
    stage.run(15_000);
    assert!(stage.ended.is_empty(), "{:?}", stage.ended);
    (stage.origins[0], stage.muted[0]) = (Origin::Good, false);
    stage.run(60_000);
    assert_eq!((stage.phase(), stage.ended.len()), (Phase::Live, 0));
}

#[test]
fn an_earlier_origin_that_leads_back_here_is_left_alone_for_long() {
    let looks = |loss| {
        let mut stage = Stage::of(&[Origin::Fails(loss, 20), Origin::Good]);
        stage.viewer();
        stage.run(600_000);
        stage.opens_of(0).windows(2).map(|pair| pair[1] - pair[0]).skip(1).collect::<Vec<u64>>()
    };
    assert!(looks(Loss::Refused).iter().all(|pause| *pause <= 40_000));
    let looks = looks(Loss::Loop);
    assert!(!looks.is_empty() && looks.iter().all(|pause| *pause >= 300_000), "{looks:?}");
}

#[test]
fn retries_are_counted_in_rounds_and_their_end_is_remembered() {
    for retries in 0..3 {
        let settings = Channel { retries: Some(retries), ..Channel::default() };
        let mut stage = Stage::new(settings, &[Origin::Good, Origin::Fails(Loss::Refused, 20)]);
        let viewer = stage.viewer();
        stage.run(10_000);
        stage.origins[0] = Origin::Fails(Loss::Refused, 20);
        stage.lose(0, Loss::Reset);
        stage.run(60_000);
        assert!(matches!(stage.ended[..], [(ended, ViewerEnd::NoSource, _)] if ended == viewer), "{retries}");
        assert_eq!(stage.opens_of(0).len() as u32, 1 + retries);
        assert_eq!(stage.phase(), Phase::Ended);
    }
}

#[test]
fn a_persistent_channel_is_pulled_without_viewers() {
    let settings = Channel { on_demand: false, ..Channel::default() };
    let mut stage = Stage::new(settings, &[Origin::Good, Origin::Good]);
    stage.run(100_000);
    assert_eq!((stage.phase(), stage.opens.len()), (Phase::Live, 1));
    stage.origins[0] = Origin::Fails(Loss::Unreachable, 20);
    stage.lose(0, Loss::Reset);
    stage.run(3_000);
    assert_eq!(stage.media.last().unwrap().0, 1, "failover is for it too");
}

#[test]
fn a_viewer_of_a_channel_under_repair_joins_it() {
    let mut stage = Stage::of(&[Origin::Good]);
    stage.viewer();
    stage.run(10_000);
    stage.origins[0] = Origin::Fails(Loss::Reset, 20);
    stage.lose(0, Loss::Reset);
    stage.run(4_000);
    let request = stage.join();
    assert_eq!(stage.fate(request), None, "held");
    stage.origins[0] = Origin::Good;
    stage.run(9_000);
    assert!(matches!(stage.fate(request), Some(Fate::Joined(..))), "{:?}", stage.fate(request));
}

#[test]
fn what_comes_late_changes_nothing() {
    let mut stage = Stage::of(&[Origin::Good, Origin::Good]);
    stage.viewer();
    stage.run(2_000);
    let old = stage.of_origin(0)[0];
    stage.lose(0, Loss::Reset);
    stage.run(3_000);
    let (phase, stale) = (stage.phase(), stage.edge.pull().stale());
    for input in
        [Input::Opened { source: old }, Input::Arrived { source: old }, Input::Lost { source: old, loss: Loss::Reset }]
    {
        stage.input(input);
    }
    let (feed, from) = (stage.feed, Writer::Source(old));
    assert!(!stage.edge.takes(ms(stage.now), feed, from, true));
    stage.input(Input::Media { feed, from, data: Bytes::from_static(&[0; 188]), random_access: Some(0) });
    assert_eq!((stage.phase(), stage.edge.pull().stale(), stage.edge.feeds().ignored()), (phase, stale + 4, 1));
}

#[test]
fn a_drain_closes_everything() {
    let mut stage = Stage::of(&[Origin::Silent, Origin::Mute]);
    let request = stage.join();
    stage.run(4_000);
    assert_eq!(stage.connections.len(), 2);
    stage.input(Input::Drain);
    assert_eq!(stage.fate(request), Some(Fate::Refused(RefuseReason::Draining, 4_000)));
    assert_eq!((stage.connections.len(), stage.edge.pull().timer_count()), (0, 0));
    let late = stage.join();
    assert_eq!(stage.fate(late), Some(Fate::Refused(RefuseReason::Draining, 4_000)));
}

#[test]
fn pauses_grow_twofold_to_their_limit_and_never_by_the_same_chance() {
    let pause = |times, chance| super::round::pause(seconds(3), seconds(30), times, chance).as_millis();
    assert_eq!([pause(0, 200), pause(1, 200), pause(2, 200), pause(3, 200)], [3_000, 6_000, 12_000, 24_000]);
    assert_eq!([pause(4, 200), pause(40, 200), pause(u32::MAX, 200)], [30_000; 3]);
    assert_eq!((pause(0, 0), pause(0, 400), pause(4, 400)), (2_400, 3_600, 36_000));
    let fixed = super::round::pause(seconds(3), seconds(3), 7, 99);
    assert_eq!(fixed, seconds(3), "equal limits are a fixed cadence");
}
