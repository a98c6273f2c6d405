//! `Sessions` against real WebRTC publishers and real origins on loopback.
#![allow(clippy::unwrap_used)]

mod origin;
mod publisher;
#[path = "../../src/gst/restart.rs"]
mod restart;
mod sources;
mod stage;

use std::time::{Duration, Instant};

use holdfast_core::input::{EndReason, Writer};
use holdfast_io::codec::Codec;
use holdfast_io::gst::{AudioCodec, GstError, Options, Sessions};
use holdfast_io::media::{MediaCommand, MediaEvent, Unit};
use holdfast_io::sdp::Candidate;

use publisher::{Encoder, Publisher};
use stage::{PATIENCE, Stage, resources, settles_at};

const NOBODY: &str = include_str!("../../src/gst/warm-up.sdp");

/// The type of the first slice or parameter set that is no delimiter.
fn first_nal(unit: &Unit) -> u8 {
    let starts = unit.data.windows(4).filter(|window| window[..3] == [0, 0, 1]);
    starts.map(|window| window[3] & 0x1f).find(|kind| *kind != 9).unwrap()
}

fn slices(unit: &Unit) -> usize {
    unit.data.windows(4).filter(|window| window[..3] == [0, 0, 1] && (1..=5).contains(&(window[3] & 0x1f))).count()
}

#[test]
fn a_publisher_is_answered_and_its_tracks_arrive_in_order_from_a_key_frame_on() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let publisher = Publisher::new(2);
    let seat = publisher.publish(&mut stage);
    let before = Instant::now();
    let (mut audio, mut video) = (Vec::new(), Vec::new());
    while audio.len() < 25 || video.len() < 10 {
        let unit = stage.unit("both tracks", |_| true);
        if unit.codec.is_video() { video.push(unit) } else { audio.push(unit) }
    }
    assert!(video[0].key);
    assert_eq!(first_nal(&video[0]), 7, "parameter sets come first");
    for track in [&audio, &video] {
        assert!(
            track
                .iter()
                .all(|unit| unit.from == Writer::Session(seat.id) && unit.dts <= unit.pts && !unit.data.is_empty())
        );
        assert!(track.is_sorted_by(|earlier, later| earlier.pts < later.pts));
    }
    assert!(audio.iter().all(|unit| unit.key && unit.codec == Codec::Opus));
    // 25 packets of 20 ms; and on the driver's clock, which began with the stage.
    let span = audio[24].pts - audio[0].pts;
    assert!((400_000..600_000).contains(&span), "{span}");
    let evidence = seat.activity.evidence();
    assert!(evidence.audio.count >= 25 && evidence.video.count >= 10);
    let arrived = i64::try_from(evidence.audio.last.unwrap().as_micros()).unwrap();
    let lag = arrived - audio[24].pts;
    assert!(lag.abs() < 2_000_000 + i64::try_from(before.elapsed().as_micros()).unwrap(), "{lag}");
    assert_eq!(seat.activity.dropped(), 0);
    stage.finish(&seat);
}

#[test]
fn pictures_in_slices_come_whole() {
    for (encoder, wanted) in [
        (Encoder::X264 { slices: 2 }, 2),
        (Encoder::X264 { slices: 4 }, 4),
        (Encoder::OpenH264 { slices: 2 }, 2),
        (Encoder::OpenH264 { slices: 4 }, 4),
    ] {
        let mut stage = Stage::new(AudioCodec::Opus);
        let publisher = Publisher::of_video(encoder);
        let seat = publisher.publish(&mut stage);
        let whole = |unit: &Unit| assert_eq!(slices(unit), wanted, "{encoder:?}");
        for _ in 0..3 {
            stage.unit("a key frame", |unit| {
                whole(unit);
                unit.key
            });
            stage.sessions.command(MediaCommand::KeyFrame { session: seat.id });
        }
        for _ in 0..20 {
            whole(&stage.unit("pictures", |_| true));
        }
        assert_eq!(seat.activity.dropped(), 0);
        stage.finish(&seat);
    }
}

#[test]
fn what_webrtcbin_itself_refuses_fails_and_leaves_nothing() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let base = warm(&mut stage);
    for (odd, why) in [
        // webrtcbin reads through the space and is confused by a second direction: it does not take its own answer.
        (NOBODY.replacen("a=sendonly", "a= sendonly", 1), "Fingerprint in media 1 differs"),
        // Its answer refuses a section whose name stands twice.
        (NOBODY.replace("a=mid:1", "a=mid:1\r\na=mid:1"), "the answer refuses section \"1\""),
    ] {
        let seat = stage.start(&odd);
        let said = loop {
            match stage.next(PATIENCE).expect("an answer or a refusal") {
                MediaEvent::Failed { session, why } if session == seat.id => break why,
                event => assert!(matches!(event, MediaEvent::Gone { .. }), "{event:?}"),
            }
        };
        assert!(said.contains(why), "{said}");
        assert!(stage.sessions.is_empty());
        stage.finish(&seat);
    }
    settles_at(base);
    rounds(&mut stage, 2);
}

#[test]
fn rtcp_counts_as_control() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (_publisher, seat) = Publisher::live(&mut stage, 2);
    stage.unit("a sender report", |_| seat.activity.evidence().control.count > 0);
    stage.finish(&seat);
}

#[test]
fn mono_and_stereo_become_the_same_aac() {
    for channels in [1, 2] {
        let mut stage = Stage::new(AudioCodec::Aac);
        let publisher = Publisher::new(channels);
        let seat = publisher.publish(&mut stage);
        let mut last = i64::MIN;
        for _ in 0..10 {
            let unit = stage.unit("AAC", |unit| unit.codec == Codec::Aac);
            // ADTS: syncword; AAC-LC, 48 kHz, two channels; frame length (ISO 13818-7 §6.2).
            let header = &unit.data[..7];
            assert_eq!((header[0], header[1] & 0xf6), (0xff, 0xf0));
            assert_eq!((header[2] >> 6, header[2] >> 2 & 0xf, (header[2] & 1) << 2 | header[3] >> 6), (1, 3, 2));
            let length = usize::from(header[3] & 3) << 11 | usize::from(header[4]) << 3 | usize::from(header[5] >> 5);
            assert_eq!(length, unit.data.len());
            assert!(unit.pts > last);
            last = unit.pts;
        }
        stage.finish(&seat);
    }
}

#[test]
fn mono_opus_passes_as_it_is() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (_publisher, seat) = Publisher::live(&mut stage, 1);
    stage.unit("Opus", |unit| unit.codec == Codec::Opus);
    stage.finish(&seat);
}

#[test]
fn a_publisher_that_vanishes_freezes_its_evidence_and_nothing_else_tells() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (publisher, seat) = Publisher::live(&mut stage, 2);
    publisher.vanish();
    // What is on its way and in the jitter buffer still arrives.
    stage.collect(Duration::from_millis(400));
    let frozen = seat.activity.evidence();
    let events = stage.collect(Duration::from_millis(600));
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(seat.activity.evidence(), frozen);
    assert!(frozen.audio.count > 0 && frozen.video.count > 0);
    stage.finish(&seat);
}

#[test]
fn a_finished_session_delivers_nothing_though_its_publisher_goes_on() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (_publisher, seat) = Publisher::live(&mut stage, 2);
    seat.activity.finish();
    // Units that were in the queue when the flag was set; the holder's generation keeps them out of the slot.
    while stage.sessions.poll().is_some() {}
    let before = seat.activity.evidence().audio.count;
    let late = stage.collect(Duration::from_millis(500));
    assert!(late.len() <= 2, "{late:?}");
    assert!(seat.activity.evidence().audio.count > before);
    stage.finish(&seat);
}

#[test]
fn a_key_frame_comes_when_asked_for() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (_publisher, seat) = Publisher::live(&mut stage, 2);
    // The encoder makes none by itself for 10 000 frames; those of the start are over when ten deltas have come in a row.
    let mut deltas = 0;
    stage.unit("deltas", |unit| {
        if unit.codec.is_video() {
            deltas = if unit.key { 0 } else { deltas + 1 };
        }
        deltas == 10
    });
    stage.sessions.command(MediaCommand::KeyFrame { session: seat.id });
    let key = stage.unit("a key frame", |unit| unit.codec.is_video() && unit.key);
    assert_eq!(first_nal(&key), 7);
    stage.finish(&seat);
}

#[test]
fn a_publisher_that_closes_ends_its_session() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (publisher, seat) = Publisher::live(&mut stage, 2);
    publisher.close();
    assert_eq!(stage.end(&seat), EndReason::DtlsClosed);
    stage.finish(&seat);
}

#[test]
fn goodbye_in_rtcp_ends_the_session() {
    let mut stage = Stage::new(AudioCodec::Opus);
    // GStreamer closes its RTCP after the goodbye of its first source: with two it would not say all.
    let publisher = Publisher::of_audio();
    let seat = publisher.publish(&mut stage);
    stage.unit("audio", |_| true);
    publisher.say_bye();
    assert_eq!(stage.end(&seat), EndReason::Bye);
    stage.finish(&seat);
}

#[test]
fn a_finished_session_tells_its_publisher_before_it_goes() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let (publisher, seat) = Publisher::live(&mut stage, 2);
    let closed = publisher.on_close();
    let finished = Instant::now();
    stage.sessions.command(MediaCommand::Finish { session: seat.id });
    assert!(finished.elapsed() < Duration::from_millis(100), "Finish blocks the loop");
    closed.recv_timeout(Duration::from_secs(1)).unwrap();
    stage.gone(&seat);
}

#[test]
fn the_chain_is_rebuilt_under_a_running_transport() {
    let mut stage = Stage::new(AudioCodec::Aac);
    let (_publisher, seat) = Publisher::live(&mut stage, 2);
    for _ in 0..3 {
        let control = seat.activity.evidence();
        stage.sessions.command(MediaCommand::Rebuild { session: seat.id });
        let key = stage.unit("video after the rebuild", |unit| unit.codec.is_video() && unit.key);
        stage.unit("audio after the rebuild", |unit| !unit.codec.is_video() && unit.pts > key.pts);
        assert!(seat.activity.evidence().audio.count > control.audio.count);
    }
    stage.finish(&seat);
}

#[test]
fn ice_restarts_under_the_same_media() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let publisher = Publisher::new(2);
    let seat = stage.start(&publisher.offer());
    let answer = stage.answer(&seat);
    publisher.accept(&answer);
    stage.unit("video", |unit| unit.codec.is_video());
    let (ufrag, pwd) = ("fresh", "freshfreshfreshfreshfresh");
    publisher.restart(ufrag, pwd);
    stage.sessions.command(MediaCommand::Restart {
        session: seat.id,
        ufrag: ufrag.into(),
        pwd: pwd.into(),
        candidates: publisher.candidates().iter().map(|line| Candidate::parse(line).unwrap()).collect(),
    });
    let (ufrag, pwd) = stage.until("the restart", |event| match event {
        MediaEvent::Restarted { ufrag, pwd, .. } => Some((ufrag, pwd)),
        MediaEvent::RestartFailed { why, .. } => panic!("{why}"),
        _ => None,
    });
    assert!(!answer.contains(&ufrag) && !answer.contains(&pwd));
    publisher.accept(&holdfast_io::sdp::with_credentials(&answer, &ufrag, &pwd));
    let before = seat.activity.evidence();
    stage.unit("audio and video over the new pair", |_| {
        let now = seat.activity.evidence();
        now.audio.count > before.audio.count + 50 && now.video.count > before.video.count + 15
    });
    stage.finish(&seat);
}

#[test]
fn a_restart_of_a_session_that_is_over_fails() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let seat = stage.start(NOBODY);
    stage.answer(&seat);
    stage.finish(&seat);
    stage.sessions.command(MediaCommand::Restart {
        session: seat.id,
        ufrag: "gone".into(),
        pwd: "gonegonegonegonegonegone".into(),
        candidates: Vec::new(),
    });
    stage.until("RestartFailed", |event| matches!(event, MediaEvent::RestartFailed { .. }).then_some(()));
}

/// Sessions that are started and finished, every other one while webrtcbin is still busy with it.
fn rounds(stage: &mut Stage, count: usize) {
    for round in 0..count {
        let seat = stage.start(NOBODY);
        if round % 2 == 0 {
            stage.answer(&seat);
        }
        stage.finish(&seat);
    }
}

/// Threads and descriptors after the first sessions: those of a process open some that all share and that stay.
fn warm(stage: &mut Stage) -> (usize, usize) {
    rounds(stage, 4);
    stage.collect(Duration::from_secs(2));
    resources()
}

#[test]
fn publishers_come_and_go_and_leave_nothing() {
    let mut stage = Stage::new(AudioCodec::Aac);
    let round = |stage: &mut Stage| {
        let (_publisher, seat) = Publisher::live(stage, 2);
        stage.finish(&seat);
    };
    round(&mut stage);
    let base = warm(&mut stage);
    for _ in 0..3 {
        round(&mut stage);
    }
    settles_at(base);
    assert!(stage.sessions.is_empty());
}

#[test]
fn fifty_quick_rounds_leave_nothing() {
    let mut stage = Stage::new(AudioCodec::Opus);
    let base = warm(&mut stage);
    rounds(&mut stage, 50);
    settles_at(base);
    assert!(stage.sessions.is_empty());
}

#[test]
fn an_address_of_another_host_is_refused_at_the_start() {
    let stage = Stage::new(AudioCodec::Opus);
    let refused = Sessions::new(Options {
        epoch: Instant::now(),
        addresses: vec!["192.0.2.1".parse().unwrap()],
        ports: None,
        stun: None,
        turn: Vec::new(),
        audio: AudioCodec::Auto,
        queue: 1,
        wake: std::sync::Arc::new(|| ()),
    });
    assert!(matches!(refused.err(), Some(GstError::WarmUp(_))));
    drop(stage);
}
