use proptest::prelude::*;

use super::*;

/// The stream's time at the driver's epoch, in ticks.
const EPOCH: i64 = 10_000 * MS;

fn starts(stage: &Stage) -> Vec<bool> {
    stage.chunks.iter().map(|chunk| chunk.random_access).collect()
}

#[test]
fn nothing_of_a_session_goes_out_before_its_first_key_frame() {
    let mut stage = Stage::new(1, BOTH);
    assert!(!stage.push(opus(1, 0)));
    assert!(!stage.push(delta(1, 10)));
    assert!(stage.muxer.awaits_key_frame());
    assert!(stage.push(key(1, 20)));
    assert!(!stage.muxer.awaits_key_frame());
    assert!(stage.push(opus(1, 25)));
    assert!(stage.push(delta(1, 60)));
    assert_eq!(stage.muxer.counts(), Counts { before_key: 2, ..Counts::default() });
    assert_eq!(starts(&stage), [true, false, false]);
    let stream = stage.stream();
    let map = Map { version: 0, clock: VIDEO, streams: vec![(0x1b, VIDEO), (0x06, AUDIO)], lead: 0 };
    assert_eq!(stream.maps, [map]);
    assert!(stream.clocks[0].starts);
}

#[test]
fn units_of_another_session_change_nothing() {
    let mut stage = Stage::default();
    assert!(!stage.push(key(1, 0)));
    stage.muxer.session(session(2), VIDEO_ONLY);
    assert!(!stage.push(key(1, 10)));
    assert!(stage.push(key(2, 20)));
    assert!(!stage.push(delta(1, 30)));
    assert_eq!(stage.muxer.counts(), Counts { foreign: 3, ..Counts::default() });
    assert_eq!(stage.stream().pes[0].pts, EPOCH + 20 * MS);
}

#[test]
fn what_has_no_payload_or_too_much_of_it_is_dropped() {
    let mut stage = Stage::new(1, AUDIO_ONLY);
    assert!(!stage.push(unit(session(1), Codec::Aac, 0, true, &[])));
    assert!(!stage.push(unit(session(1), Codec::Opus, 0, true, &[0; 65_001])));
    assert!(stage.push(unit(session(1), Codec::Opus, 0, true, &[0; 65_000])));
    assert_eq!(stage.muxer.counts(), Counts { unusable: 2, ..Counts::default() });
    assert!(stage.stream().pes[0].length > 0);
}

#[test]
fn an_audio_only_session_can_be_started_at_every_map() {
    let mut stage = Stage::new(1, AUDIO_ONLY);
    for frame in 0..100 {
        assert!(stage.push(opus(1, frame * 20)));
    }
    let starts: Vec<_> = starts(&stage).iter().enumerate().filter_map(|(i, start)| start.then_some(i)).collect();
    assert_eq!(starts, [0, 20, 40, 60, 80]);
    let stream = stage.stream();
    assert!(stream.clocks.iter().all(|clock| clock.pid == AUDIO && clock.starts));
    assert_eq!(stream.maps[0].streams, [(0x06, AUDIO)]);
}

#[test]
fn a_publisher_whose_camera_is_off_is_heard_and_later_seen() {
    let mut stage = Stage::new(1, BOTH);
    for frame in 0..200 {
        assert_eq!(stage.push(opus(1, frame * 20)), frame >= 100, "2 s of patience, at {frame}");
        assert!(!stage.push(delta(1, frame * 20)), "nothing to be decoded");
    }
    assert!(stage.push(key(1, 4000)));
    assert!(stage.push(delta(1, 4040)));
    let stream = stage.stream();
    let (heard, seen) = (&stream.maps[0], stream.maps.last().unwrap());
    assert_eq!((heard.version, heard.clock, heard.streams.len()), (0, AUDIO, 1));
    assert_eq!((seen.version, seen.clock, seen.streams.len()), (1, VIDEO, 2));
    assert!(stream.clocks.iter().all(|clock| !clock.discontinuity), "the time base is the same");
    assert!(stage.chunks[100].random_access);
}

#[test]
fn a_track_that_stops_is_left_out_until_it_comes_back() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 0));
    for frame in 0..600 {
        stage.push(opus(1, frame * 20));
    }
    assert!(!stage.push(delta(1, 12_000)), "what it refers to may be long gone");
    assert!(stage.push(key(1, 12_040)));
    let stream = stage.stream();
    let mut seen: Vec<_> = stream.maps.iter().map(|map| (map.version, map.streams.len())).collect();
    seen.dedup();
    assert_eq!(seen, [(0, 2), (1, 1), (2, 2)]);
    assert_eq!(stream.maps.iter().find(|map| map.version == 1).map(|map| map.lead), Some(EPOCH + 9_980 * MS));
}

#[test]
fn audio_that_never_comes_is_not_declared_for_ever() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 0));
    for frame in 1..100 {
        stage.push(delta(1, frame * 40));
    }
    stage.push(opus(1, 4000));
    let mut seen: Vec<_> = stage.stream().maps.iter().map(|map| (map.version, map.streams.len())).collect();
    seen.dedup();
    assert_eq!(seen, [(0, 2), (1, 1), (2, 2)]);
}

#[test]
fn the_map_and_the_clock_come_often_enough_at_any_frame_rate() {
    for period in [16, 33, 40, 100, 1000, 5000] {
        let mut stage = Stage::new(1, BOTH);
        for ms in 0..15_000 {
            if ms % period == 0 {
                stage.push(if ms == 0 { key(1, ms) } else { delta(1, ms) });
            }
            if ms % 20 == 0 {
                stage.push(opus(1, ms));
            }
        }
        let stream = stage.stream();
        assert!(stream.clocks.windows(2).all(|pair| pair[1].at - pair[0].at <= 40 * MS), "a frame per {period} ms");
        assert!(stream.maps[1..].windows(2).all(|pair| pair[1].lead - pair[0].lead <= 500 * MS));
        assert!(stream.maps.iter().all(|map| map.version == 0));
    }
}

#[test]
fn a_clock_of_its_own_goes_out_between_distant_frames_only() {
    let mut stage = Stage::new(1, BOTH);
    for ms in 0..3_000 {
        if ms % 33 == 0 {
            stage.push(if ms == 0 { key(1, ms) } else { delta(1, ms) });
        }
        if ms % 20 == 0 {
            stage.push(opus(1, ms));
        }
    }
    assert!(stage.stream().clocks.iter().all(|clock| clock.starts));
}

#[test]
fn late_audio_is_dropped_and_late_video_is_put_behind_what_went_before() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 100));
    stage.push(opus(1, 100));
    assert!(!stage.push(opus(1, 100)));
    assert!(!stage.push(opus(1, 80)));
    assert!(stage.push(opus(1, 120)));
    assert!(stage.push(delta(1, 90)));
    assert!(stage.push(delta(1, 140)));
    assert_eq!(stage.muxer.counts(), Counts { late: 2, nudged: 1, ..Counts::default() });
    let stream = stage.stream();
    let video: Vec<_> = stream.of_pid(VIDEO).iter().map(|pes| (pes.pts, pes.dts)).collect();
    let (first, second) = (EPOCH + 100 * MS, EPOCH + 140 * MS);
    assert_eq!(video, [(first, first), (first + 1, first + 1), (second, second)]);
}

#[test]
fn frames_that_are_shown_later_keep_both_times() {
    let mut stage = Stage::new(1, VIDEO_ONLY);
    stage.push(Unit { pts: 80_000, ..key(1, 40) });
    stage.push(Unit { pts: 10_000, ..delta(1, 80) });
    let times: Vec<_> = stage.stream().pes.iter().map(|pes| (pes.pts - EPOCH, pes.dts - EPOCH)).collect();
    assert_eq!(times, [(80 * MS, 40 * MS), (80 * MS, 80 * MS)], "nothing is shown before it is decoded");
}

#[test]
fn a_later_session_keeps_its_own_time() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 0));
    stage.push(opus(1, 10));
    stage.muxer.session(session(2), BOTH);
    stage.push(key(2, 3000));
    stage.push(opus(2, 3010));
    let stream = stage.stream();
    assert_eq!(stream.pes[2].pts, EPOCH + 3000 * MS);
    let marks: Vec<_> = stream.clocks.iter().map(|clock| (clock.at - EPOCH, clock.discontinuity)).collect();
    assert_eq!(marks, [(-200 * MS, false), (2800 * MS, true)]);
    assert!(stream.maps.iter().all(|map| map.version == 0));
}

#[test]
fn a_session_that_overlaps_is_moved_as_a_whole() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 1000));
    stage.push(opus(1, 1010));
    stage.muxer.session(session(2), BOTH);
    assert!(stage.push(key(2, 500)));
    assert!(stage.push(opus(2, 505)));
    assert!(stage.push(delta(2, 540)));
    let stream = stage.stream();
    let times: Vec<_> = stream.pes.iter().map(|pes| pes.pts - EPOCH).collect();
    assert_eq!(times, [1000 * MS, 1010 * MS, 1030 * MS, 1035 * MS, 1070 * MS]);
    assert_eq!(stage.muxer.counts(), Counts::default());
}

#[test]
fn the_version_counts_the_changes_of_the_program() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 0));
    stage.push(opus(1, 10));
    stage.muxer.session(session(2), AUDIO_ONLY);
    stage.push(opus(2, 100));
    stage.muxer.session(session(3), Tracks { audio: Some(Codec::Aac), video: Some(Codec::H264) });
    stage.push(key(3, 200));
    stage.push(unit(session(3), Codec::Aac, 210, true, &[0xff, 0xf1, 0, 0, 0, 0, 0]));
    let stream = stage.stream();
    let maps: Vec<_> = stream.maps.iter().map(|map| (map.version, map.clock, map.streams.clone())).collect();
    let (avc, opus, aac) = ((0x1b, VIDEO), (0x06, AUDIO), (0x0f, AUDIO));
    assert_eq!(maps, [(0, VIDEO, vec![avc, opus]), (1, AUDIO, vec![opus]), (2, VIDEO, vec![avc, aac])]);
    let clocks: Vec<_> = stream.clocks.iter().map(|clock| (clock.pid, clock.discontinuity)).collect();
    assert_eq!(clocks, [(VIDEO, false), (AUDIO, true), (VIDEO, true)]);
    let streams: Vec<_> = stream.pes.iter().map(|pes| pes.stream).collect();
    assert_eq!(streams, [0xe0, 0xbd, 0xbd, 0xe0, 0xc0]);
}

#[test]
fn the_clock_gives_way_to_a_track_that_comes_later() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 0));
    for frame in 0..500 {
        stage.push(opus(1, frame * 20));
        if frame > 20 && frame % 2 == 0 {
            stage.push(delta(1, frame * 20 - 400));
        }
    }
    let stream = stage.stream();
    assert_eq!(stream.overdue, 5, "while the clock stands still to be 200 ms later, then no more");
    assert!(stream.clocks.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(stage.muxer.counts(), Counts::default());
}

#[test]
fn the_clock_does_not_give_way_without_end() {
    let mut stage = Stage::new(1, BOTH);
    stage.push(key(1, 0));
    stage.push(opus(1, 5000));
    stage.push(delta(1, 1000));
    stage.push(opus(1, 9000));
    assert_eq!(stage.stream().clocks.last().map(|clock| clock.at), Some(EPOCH + (9000 - 200 - 500) * MS));
}

#[test]
fn what_comes_is_declared_whatever_was_negotiated() {
    let mut stage = Stage::new(1, Tracks::default());
    stage.push(opus(1, 0));
    stage.push(key(1, 10));
    stage.muxer.session(session(2), Tracks { audio: Some(Codec::Aac), video: None });
    stage.push(opus(2, 1000));
    let maps: Vec<_> = stage.stream().maps.into_iter().map(|map| map.streams).collect();
    let (avc, opus) = ((0x1b, VIDEO), (0x06, AUDIO));
    assert_eq!(maps, [vec![opus], vec![avc, opus], vec![opus]]);
}

#[test]
fn access_units_start_with_one_delimiter() {
    let mut stage = Stage::new(1, VIDEO_ONLY);
    let (long, short) = ([0, 0, 0, 1, 9, 0x10, 0, 0, 1, 0x65], [0, 0, 1, 9, 0x10, 0, 0, 1, 0x65]);
    stage.push(unit(session(1), Codec::H264, 0, true, &long));
    stage.push(unit(session(1), Codec::H264, 40, true, &short));
    stage.push(unit(session(1), Codec::H264, 80, true, &[0, 0, 1, 0x65]));
    let stream = stage.stream();
    let data: Vec<_> = stream.pes.iter().map(|pes| &pes.data[..]).collect();
    assert_eq!(data, [&long[..], &short, &[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x65]]);
}

#[test]
fn so_do_those_of_h265() {
    let mut stage = Stage::new(1, Tracks { audio: None, video: Some(Codec::H265) });
    let (long, short) = ([0, 0, 0, 1, 0x46, 1, 0x10, 0, 0, 1, 0x26, 1], [0, 0, 1, 0x46, 1, 0x10, 0, 0, 1, 0x26, 1]);
    // A VPS.
    let bare = [0, 0, 0, 1, 0x40, 1, 0x0c, 0, 0, 1, 0x26, 1];
    for (ms, data) in [(0, &long[..]), (40, &short), (80, &bare)] {
        stage.push(unit(session(1), Codec::H265, ms, true, data));
    }
    let stream = stage.stream();
    let data: Vec<_> = stream.pes.iter().map(|pes| &pes.data[..]).collect();
    assert_eq!(data, [&long[..], &short, &[&[0, 0, 0, 1, 0x46, 1, 0x50], &bare[..]].concat()]);
    assert_eq!(stream.maps[0].streams, [(0x24, VIDEO)]);
}

#[test]
fn mpeg_audio_of_low_rates_is_declared_as_such() {
    let mut stage = Stage::new(1, AUDIO_ONLY);
    // Layer 2 at 48 kHz and at 24 kHz, layer 3 at 44.1 kHz and at 22.05 kHz.
    for (ms, codec, header) in [
        (0, Codec::Mp2, [0xff, 0xfd, 0xc4, 0]),
        (30, Codec::Mp2, [0xff, 0xf5, 0xc4, 0]),
        (60, Codec::Mp3, [0xff, 0xfb, 0x92, 0]),
        (90, Codec::Mp3, [0xff, 0xf3, 0x80, 0]),
    ] {
        stage.push(unit(session(1), codec, ms, true, &header));
    }
    let stream = stage.stream();
    let maps: Vec<_> = stream.maps.iter().map(|map| map.streams[0].0).collect();
    assert_eq!(maps, [0x03, 0x04, 0x03, 0x04]);
    assert!(stream.pes.iter().all(|pes| pes.stream == 0xc0));
}

#[test]
fn opus_packets_say_their_length() {
    let mut stage = Stage::new(1, AUDIO_ONLY);
    for (ms, length) in [(0, 1), (20, 254), (40, 255), (60, 600)] {
        stage.push(unit(session(1), Codec::Opus, ms, true, &vec![9; length]));
    }
    let heads: Vec<_> = stage
        .stream()
        .pes
        .iter()
        .map(|pes| pes.data[..pes.data.iter().position(|&b| b == 9).unwrap()].to_vec())
        .collect();
    let expected = [&[0x7f, 0xe0, 1][..], &[0x7f, 0xe0, 254], &[0x7f, 0xe0, 255, 0], &[0x7f, 0xe0, 255, 255, 90]];
    assert_eq!(heads, expected);
}

#[test]
fn the_stream_goes_on_over_the_end_of_its_33_bits() {
    let mut stage = Stage::new(1, BOTH);
    let end = ((1i64 << 33) - EPOCH) / MS;
    stage.push(key(1, end - 100));
    for step in 1..20 {
        assert!(stage.push(delta(1, end - 100 + step * 40)));
        assert!(stage.push(opus(1, end - 100 + step * 40)));
    }
    assert_eq!(stage.muxer.counts(), Counts::default());
    let stream = stage.stream();
    let wrapped = |pair: &[i64]| (pair[1] - pair[0]).rem_euclid(1 << 33);
    let times: Vec<_> = stream.of_pid(VIDEO).iter().map(|pes| pes.pts).collect();
    assert!(times.windows(2).all(|pair| wrapped(pair) == 40 * MS));
    let clocks: Vec<_> = stream.clocks.iter().map(|clock| clock.at).collect();
    assert!(clocks.windows(2).all(|pair| wrapped(pair) == 40 * MS));
    assert!(times[0] > times[19] && clocks[0] > clocks[19]);
}

#[test]
fn another_reader_reads_the_same() {
    use mpeg2ts::es::StreamType;
    read_by_another((Codec::H264, &[0, 0, 0, 1, 9, 0xf0]), Codec::Aac, [StreamType::H264, StreamType::AdtsAac]);
    let delimiter = [0, 0, 0, 1, 0x46, 1, 0x50];
    read_by_another((Codec::H265, &delimiter), Codec::Mp3, [StreamType::H265, StreamType::Mpeg1Audio]);
    read_by_another(
        (Codec::H265, &delimiter),
        Codec::Ac3,
        [StreamType::H265, StreamType::DolbyDigitalUpToSixChannelAudio],
    );
}

/// Video, whose units begin with a delimiter, and audio, which are declared so.
fn read_by_another((video, delimiter): (Codec, &[u8]), audio: Codec, declared: [mpeg2ts::es::StreamType; 2]) {
    use mpeg2ts::ts::{ReadTsPacket, TsPacketReader, TsPayload};
    let mut stage = Stage::new(1, Tracks { audio: Some(audio), video: Some(video) });
    let mut sent = Vec::new();
    for frame in 0..50u8 {
        let picture = [delimiter, &vec![frame; 1000 * usize::from(frame % 7) + 1]].concat();
        let sound = vec![frame; usize::from(frame) * 5 + 1];
        let ms = i64::from(frame) * 40;
        stage.push(unit(session(1), video, ms, frame % 10 == 0, &picture));
        stage.push(unit(session(1), audio, ms, true, &sound));
        sent.extend([(VIDEO, picture), (AUDIO, sound)]);
    }
    let data: Vec<u8> = stage.chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
    let mut reader = TsPacketReader::new(&data[..]);
    let (mut read, mut maps): (Vec<(u16, Vec<u8>)>, usize) = (Vec::new(), 0);
    while let Some(packet) = reader.read_ts_packet().unwrap() {
        let pid = packet.header.pid.as_u16();
        match packet.payload {
            Some(TsPayload::PesStart(pes)) => {
                let ticks = pes.header.pts.unwrap().as_u64() as i64;
                assert_eq!(ticks, EPOCH + read.len() as i64 / 2 * 40 * MS);
                read.push((pid, pes.data.to_vec()));
            }
            Some(TsPayload::PesContinuation(bytes)) => read.last_mut().unwrap().1.extend_from_slice(&bytes),
            Some(TsPayload::Pmt(map)) => {
                let streams = map.es_info.iter().map(|stream| (stream.elementary_pid.as_u16(), stream.stream_type));
                assert!(streams.eq([VIDEO, AUDIO].into_iter().zip(declared)));
                assert_eq!(map.pcr_pid.map(|pid| pid.as_u16()), Some(VIDEO));
                maps += 1;
            }
            _ => {}
        }
    }
    assert_eq!(read, sent);
    assert!(maps >= 5);
}

#[derive(Clone, Debug)]
enum Step {
    Session { index: u32, tracks: Tracks },
    Unit(Unit),
}

fn steps(time: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<Step>> {
    let audio = prop_oneof![Just(None), Just(Some(Codec::Opus)), Just(Some(Codec::Aac))];
    let video = prop_oneof![Just(None), Just(Some(Codec::H264)), Just(Some(Codec::H265))];
    let tracks = (audio, video).prop_map(|(audio, video)| Tracks { audio, video });
    let codec = prop_oneof![
        2 => Just(Codec::H264),
        1 => Just(Codec::H265),
        2 => Just(Codec::Opus),
        1 => Just(Codec::Aac),
        1 => Just(Codec::Mp2),
    ];
    let length = prop_oneof![10 => 0..800usize, 1 => 0..80_000usize];
    let unit = (0..2u32, codec, time, -50_000..200_000i64, prop::bool::weighted(0.2), length);
    let step = prop_oneof![
        1 => (0..2u32, tracks).prop_map(|(index, tracks)| Step::Session { index, tracks }),
        30 => unit.prop_map(|(index, codec, dts, ahead, key, length)| {
            let data = Bytes::from(vec![index as u8; length]);
            Step::Unit(Unit { from: session(index), codec, pts: dts.saturating_add(ahead), dts, key, data })
        }),
    ];
    prop::collection::vec(step, 0..120)
}

/// Plays the steps; reading what comes out checks sync, counters, lengths, and that a start comes with a map.
fn play(steps: Vec<Step>) -> Stream {
    let mut stage = Stage::default();
    let (mut current, mut accepted) = (None, 0);
    for step in steps {
        match step {
            Step::Session { index, tracks } => {
                stage.muxer.session(session(index), tracks);
                current = Some(session(index));
            }
            Step::Unit(unit) => {
                let of = unit.from;
                let out = stage.push(unit);
                assert!(!out || current == Some(of));
                accepted += usize::from(out);
            }
        }
    }
    let stream = stage.stream();
    assert_eq!(stream.pes.len(), accepted);
    let maps: Vec<_> = stream.maps.iter().map(|map| (map.version, map.clock, &map.streams)).collect();
    assert!(maps.windows(2).all(|pair| (pair[0].0 == pair[1].0) == (pair[0] == pair[1])));
    stream
}

proptest! {
    #[test]
    fn whatever_comes_in_time_goes_forward(
        steps in steps(prop_oneof![20 => 0..3_000_000i64, 1 => 0..60_000_000i64]),
        sorted in any::<bool>(),
    ) {
        let mut steps = steps;
        if sorted {
            steps.sort_by_key(|step| match step {
                Step::Session { index, .. } => i64::from(*index) * 1_000_000,
                Step::Unit(unit) => unit.dts,
            });
        }
        let stream = play(steps);
        for pid in [VIDEO, AUDIO] {
            let times: Vec<_> = stream.of_pid(pid).iter().map(|pes| pes.dts).collect();
            prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        }
        prop_assert!(stream.pes.iter().all(|pes| pes.dts <= pes.pts));
        prop_assert!(stream.clocks.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn no_time_is_too_strange(steps in steps(any::<i64>())) {
        play(steps);
    }
}

#[test]
fn a_chunk_takes_no_more_memory_than_it_has_bytes() {
    let mut muxer = Muxer::new();
    muxer.session(session(1), BOTH);
    let idr = [&[0, 0, 0, 1, 0x65][..], &[7; 20_000]].concat();
    let large = muxer.push(&unit(session(1), Codec::H264, 0, true, &idr)).unwrap().data;
    let audio: Vec<Bytes> = (1..50).filter_map(|n| Some(muxer.push(&opus(1, n * 20))?.data)).collect();
    assert_eq!(audio.len(), 49);
    let beside = |pair: &[Bytes]| pair[0].as_ptr_range().end == pair[1].as_ptr();
    assert!(audio.windows(2).all(beside), "frames of audio lie side by side");
    let length = large.len();
    assert_eq!(Vec::from(large).capacity(), length);
}
