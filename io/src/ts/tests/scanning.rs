//! What is media, and where a player can start.

use proptest::prelude::*;

use super::source::*;
use crate::ts::packet::Adaptation;
use crate::ts::psi;
use crate::ts::{Choice, Fault, PACKET, Scanned, Scanner, Segment};

const V: u16 = 0x44;
const A: u16 = 0x45;

fn source() -> Source {
    Source::new(&[(H264, V), (AAC, A)])
}

const CUE: u16 = 0x50;

fn played() -> Vec<u8> {
    let mut source = source();
    source.play(1000, 30);
    source.take()
}

/// Seconds of media with something else before each key frame.
fn with_cues() -> Vec<u8> {
    let mut source = Source::new(&[(H264, V), (AAC, A), (0x86, CUE)]);
    for round in 0..3 {
        source.play(1000 + round * 400, 10);
        source.write(CUE, Adaptation::default(), &psi::section(0xfc, 1, 0, &[1; 300]), &[]);
    }
    source.take()
}

fn starts(segments: &[Segment]) -> Vec<u64> {
    segments.iter().filter_map(|segment| segment.random_access).collect()
}

/// Scans one unit behind the tables, with a P frame behind it so that it is over.
fn starts_with(coding: u8, marked: bool, unit: &[u8]) -> bool {
    let mut source = Source::new(&[(coding, V), (AAC, A)]);
    source.tables();
    source.marked(V, 1000, unit, marked);
    source.unit(V, 1040, INTER);
    // Packets enough to be sure of where they are.
    source.play(2000, 1);
    starts(&scan(&source.out)).contains(&90_000)
}

#[test]
fn key_frames_begin_segments_and_say_when_they_are_shown() {
    let segments = scan(&played());
    assert_eq!(starts(&segments), [1000, 1400, 1800].map(|ms| ms * 90));
    assert_eq!(segments[0].random_access, Some(90_000));
    let program = &segments[0].program;
    assert_eq!((program.number, program.clock, program.streams.len()), (7, V, 2));
}

#[test]
fn every_packet_of_the_program_comes_through_unchanged_and_nothing_else() {
    let data = played();
    let ours: Vec<u8> = Packets::of(&data)
        .0
        .into_iter()
        .filter(|packet| [V, A].contains(&packet.head.pid))
        .flat_map(|packet| packet.raw)
        .collect();
    assert_eq!(joined(&scan(&data)).0, ours);
}

#[test]
fn a_mark_does_not_make_a_start_of_a_picture_that_visibly_is_none() {
    let h265 = |kind: u8| [0, 0, 0, 1, kind << 1, 1, 0x80, 7];
    let mpeg2 = |code: u8| [0, 0, 1, code, 7, 7, 0, 0, 1, 0, 0, 8];
    for (coding, unit, expected) in [
        (H264, IDR, true),
        (H264, INTER, false),
        (0x24, &h265(19), true),
        (0x24, &h265(21), true),
        (0x24, &h265(1), false),
        (0x02, &mpeg2(0xb3), true),
        (0x02, &mpeg2(0xb8), false),
    ] {
        for marked in [false, true] {
            assert_eq!(starts_with(coding, marked, unit), expected, "{coding:#x} {unit:?} {marked}");
        }
    }
}

#[test]
fn where_a_picture_does_not_tell_the_mark_does() {
    for (coding, unit) in [(H264, &[0, 0, 1, 9, 0xf0, 0xff][..]), (0x42, &[1, 2, 3])] {
        assert!(starts_with(coding, true, unit));
        assert!(!starts_with(coding, false, unit));
    }
}

#[test]
fn a_picture_is_recognised_behind_long_private_data() {
    for length in [1000, 6000] {
        let mut unit = vec![0, 0, 0, 1, 6, 5, 0xff];
        unit.resize(length, 0x33);
        unit.extend_from_slice(IDR);
        assert!(starts_with(H264, false, &unit));
    }
}

#[test]
fn a_start_is_held_back_only_until_it_is_known_to_be_one() {
    let mut source = source();
    source.play(1000, 10);
    let mut scanner = Scanner::default();
    scan_with(&mut scanner, &source.take(), 188).unwrap();
    source.unit(V, 1400, IDR);
    let first = source.take();
    let out = scan_with(&mut scanner, &first[..PACKET], 188).unwrap();
    assert_eq!(starts(&out), [126_000], "its first packet tells");
}

#[test]
fn tables_alone_are_no_media() {
    let mut source = source();
    let mut scanner = Scanner::default();
    for _ in 0..100 {
        source.tables();
    }
    assert_eq!(scan_with(&mut scanner, &source.take(), 188).unwrap(), []);
    assert!(scanner.program().is_some());
    source.unit(V, 0, INTER);
    assert_eq!(scan_with(&mut scanner, &source.take(), 188).unwrap()[0].random_access, None);
}

#[test]
fn what_is_no_media_goes_with_the_next_that_is() {
    let mut source = Source::new(&[(H264, V), (AAC, A), (0x86, CUE)]);
    source.play(0, 1);
    let mut scanner = Scanner::default();
    source.play(40, 1);
    scan_with(&mut scanner, &source.take(), 188).unwrap();
    source.write(CUE, Adaptation::default(), &psi::section(0xfc, 1, 0, &[1]), &[]);
    assert_eq!(scan_with(&mut scanner, &source.take(), 188).unwrap(), []);
    source.unit(V, 80, IDR);
    let out = scan_with(&mut scanner, &source.take(), 188).unwrap();
    assert_eq!(out[0].random_access, Some(80 * 90));
    let pids: Vec<_> = Packets::of(&joined(&out).0).0.iter().map(|packet| packet.head.pid).collect();
    assert_eq!(pids, [CUE, V, V, V]);
}

#[test]
fn nothing_changes_its_place() {
    let mut source = Source::new(&[(H264, V), (AAC, A), (0x86, CUE)]);
    for frame in 0..30 {
        let ms = frame * 40;
        source.tables();
        source.unit(A, ms, &[0xff, 0xf1]);
        source.write(CUE, Adaptation::default(), &psi::section(0xfc, 1, 0, &[1; 300]), &[]);
        source.tick(ms - 30);
        source.write(0x1fff, Adaptation::default(), &[0xff; 184], &[]);
        let mut alone = Vec::new();
        source.pid(A).write_adaptation(Adaptation { discontinuity: true, ..Adaptation::default() }, &mut alone);
        source.out.extend(alone);
        source.tick(ms - 10);
        source.unit(V, ms, if frame % 3 == 0 { IDR } else { INTER });
    }
    let data = source.take();
    let all = Packets::of(&data).0.into_iter();
    let ours: Vec<u8> =
        all.filter(|packet| [V, A, CUE].contains(&packet.head.pid)).flat_map(|packet| packet.raw).collect();
    for cut in [77, PACKET, 1316, 1 << 20] {
        let out = scan_with(&mut Scanner::default(), &data, cut).unwrap();
        assert_eq!(starts(&out).len(), 10);
        assert!(joined(&out).0 == ours, "in pieces of {cut}");
    }
}

#[test]
fn a_clock_alone_is_no_picture() {
    let mut source = source();
    source.tables();
    for frame in 0..250 {
        source.unit(A, frame * 20, &[0xff, 0xf1]);
        source.tick(frame * 20 + 10);
    }
    assert_eq!(starts(&scan(&source.out)), [3000, 3400, 3800, 4200, 4600].map(|ms| ms * 90));
}

#[test]
fn what_is_no_media_does_not_pile_up() {
    let mut source = Source::new(&[(H264, V), (AAC, A), (0x86, CUE)]);
    source.play(0, 1);
    source.write(CUE, Adaptation::default(), &[0; 1 << 20], &[]);
    source.unit(V, 40, INTER);
    for cut in [PACKET, 1 << 20] {
        let mut scanner = Scanner::default();
        let out = scan_with(&mut scanner, &source.out, cut).unwrap();
        assert!(out.last().unwrap().data.len() < 64 << 10);
        assert_eq!(scanner.counts().foreign as usize, (1 << 20) / 184 / 256 * 256);
    }
}

#[test]
fn sound_alone_can_be_started_at_a_frame_each_400_ms() {
    let mut source = Source::new(&[(AAC, A)]);
    for frame in 0..100 {
        if frame % 20 == 0 {
            source.tables();
        }
        source.unit(A, 1000 + frame * 24, &[0xff, 0xf1]);
    }
    let starts = starts(&scan(&source.out));
    assert_eq!(starts, [0, 17, 34, 51, 68, 85].map(|frame| (1000 + frame * 24) * 90));
}

#[test]
fn video_that_is_declared_and_does_not_come_keeps_nobody_waiting() {
    let mut source = source();
    source.tables();
    for frame in 0..250 {
        source.unit(A, frame * 20, &[0xff, 0xf1]);
    }
    source.unit(V, 5000, INTER);
    source.unit(A, 5000, &[0xff, 0xf1]);
    source.unit(A, 5500, &[0xff, 0xf1]);
    source.unit(V, 5540, IDR);
    let expected = [3000, 3400, 3800, 4200, 4600, 5540].map(|ms| ms * 90);
    for cut in [PACKET, 1 << 20] {
        let out = scan_with(&mut Scanner::default(), &source.out, cut).unwrap();
        assert_eq!(starts(&out), expected, "from there on video leads");
    }
}

#[test]
fn the_first_program_is_taken_or_the_one_that_was_asked_for() {
    let (mut one, mut two) = (source(), Source::new(&[(H264, 0x64), (AAC, 0x65)]));
    (two.number, two.pmt) = (9, 0x31);
    let mut data = Vec::new();
    for round in 0..10 {
        one.pat(&[(0, 0x10), (7, 0x30), (9, 0x31)]);
        for source in [&mut one, &mut two] {
            source.pmt();
            source.unit(source.clock, round * 40, IDR);
        }
        data.extend(one.take());
        data.extend(two.take());
    }
    for (choice, clock) in [(Choice::First, V), (Choice::Number(7), V), (Choice::Number(9), 0x64)] {
        let segments = scan_with(&mut Scanner::new(choice), &data, 1000).unwrap();
        assert_eq!(starts(&segments).len(), 10);
        assert!(segments.iter().all(|segment| segment.program.clock == clock));
        assert!(Packets::of(&joined(&segments).0).0.iter().all(|packet| packet.head.pid == clock));
    }
    let mut scanner = Scanner::new(Choice::Number(8));
    assert_eq!(scan_with(&mut scanner, &data, 1000), Ok(vec![]));
    assert_eq!(scanner.fault(), Some(Fault::NoProgram { number: 8 }));
}

#[test]
fn a_new_map_is_followed_and_an_equal_one_of_another_version_is_not_new() {
    let mut source = source();
    source.play(0, 2);
    source.version = 1;
    source.play(80, 2);
    (source.version, source.streams[0].1, source.clock) = (2, 0x99, 0x99);
    source.play(160, 2);
    let segments = scan(&source.out);
    let programs: Vec<_> = segments.iter().map(|segment| segment.program.streams[0].pid).collect();
    assert_eq!((programs.first(), programs.last()), (Some(&V), Some(&0x99)));
    assert!(segments.windows(2).all(|pair| {
        (pair[0].program == pair[1].program) == std::sync::Arc::ptr_eq(&pair[0].program, &pair[1].program)
    }));
    assert_eq!(starts(&segments), [0, 80 * 90, 160 * 90]);
}

#[test]
fn a_table_that_moves_the_map_is_followed() {
    let mut source = source();
    source.play(0, 2);
    source.pmt = 0x31;
    source.play(80, 2);
    (source.number, source.pmt, source.streams[1].1) = (8, 0x32, 0x77);
    source.play(160, 2);
    let segments = scan(&source.out);
    assert_eq!(segments.last().unwrap().program.streams[1].pid, 0x77);
    assert_eq!(starts(&segments).len(), 3);
}

#[test]
fn packets_in_longer_frames_are_taken_out_of_them() {
    let data = played();
    for (before, behind) in [(4, 0), (0, 16)] {
        let framed = |packet: &[u8]| [vec![0x11; before], packet.to_vec(), vec![0x22; behind]].concat();
        let framed: Vec<u8> = data.chunks(PACKET).flat_map(framed).collect();
        assert_eq!(joined(&scan(&framed)), joined(&scan(&data)));
    }
}

#[test]
fn a_connection_that_starts_amid_a_packet_loses_that_one() {
    let data = [source().take(), played()].concat();
    let mut behind = source();
    behind.unit(A, 0, &[]);
    let behind = [&behind.out[77..], &data].concat();
    assert_eq!(joined(&scan(&behind)), joined(&scan(&data)));
}

#[test]
fn garbage_between_packets_costs_nothing_else() {
    let data = played();
    let (first, second) = data.split_at(40 * PACKET);
    let mut scanner = Scanner::default();
    let out = scan_with(&mut scanner, &[first, &[0x20; 5000], second].concat(), 700).unwrap();
    assert_eq!(joined(&out), joined(&scan(&data)));
    let counts = scanner.counts();
    assert_eq!((counts.skipped_bytes, counts.sync_losses), (5000, 1));
    assert_eq!(counts.packets as usize, data.len() / PACKET);
}

#[test]
fn damaged_scrambled_and_malformed_packets_are_dropped_and_counted() {
    let data = played();
    let mut packets: Vec<_> = data.chunks(PACKET).map(<[u8]>::to_vec).collect();
    let media: Vec<_> = (0..packets.len()).filter(|at| packets[*at][2] == V as u8).collect();
    packets[media[3]][1] |= 0x80;
    packets[media[4]][3] |= 0xc0;
    packets[media[5]][3] &= 0x0f;
    packets[media[6]][3] |= 0x30;
    packets[media[6]][4] = 184;
    let mut scanner = Scanner::default();
    let out = scan_with(&mut scanner, &packets.concat(), 700).unwrap();
    let counts = Scanned { damaged: 1, scrambled: 1, malformed: 2, ..scanner.counts() };
    assert_eq!(scanner.counts(), counts);
    assert_eq!(joined(&out).0.len(), joined(&scan(&data)).0.len() - 4 * PACKET);
}

#[test]
fn a_clock_that_jumps_is_counted_and_the_media_goes_on() {
    let mut source = source();
    source.play(100_000, 10);
    source.play(0, 10);
    source.play(50_000, 10);
    let mut scanner = Scanner::default();
    let out = scan_with(&mut scanner, &source.out, 700).unwrap();
    assert_eq!(starts(&out), [100_000, 0, 50_000].map(|ms| ms * 90));
    assert_eq!(scanner.counts().clock_jumps, 2);

    let mut source = Source::new(&[(AAC, A)]);
    source.tables();
    for ms in [100_000, 100_020, 0, 20, 400] {
        source.unit(A, ms, &[0xff]);
    }
    source.tables();
    source.tables();
    assert_eq!(super::scanning::starts(&scan(&source.out)), [100_000, 0, 400].map(|ms| ms * 90));
}

/// What is said of `data` repeated up to the limits.
fn fault(data: &[u8]) -> Fault {
    let repeated = data.repeat((3 << 20) / data.len());
    let faults = [1500, 1 << 20].map(|cut| {
        let mut scanner = Scanner::default();
        let fault = scan_with(&mut scanner, &repeated, cut).unwrap_err();
        assert_eq!(scanner.read(&played(), &mut Default::default()), Err(fault), "it is over");
        fault
    });
    assert_eq!(faults[0], faults[1]);
    faults[0]
}

#[test]
fn what_was_wrong_is_said() {
    let tables = |program: &mut Source| {
        program.tables();
        program.take()
    };
    let (mut one, mut null) = (source(), source());
    one.pat(&[(7, 0x30)]);
    null.write(0x1fff, Adaptation::default(), &[1; 184], &[]);
    let mut scrambled = source();
    scrambled.tables();
    scrambled.unit(V, 0, IDR);
    scrambled.out.chunks_mut(PACKET).skip(2).for_each(|packet| packet[3] |= 0x80);
    for (data, expected) in [
        (&b"<!DOCTYPE html><html><head>"[..], Fault::Html),
        (b"\xef\xbb\xbf\r\n<html>", Fault::Html),
        (b"#EXTM3U\n", Fault::Playlist),
        (b"\x1f\x8b\x08\0\0\0\0\0", Fault::Gzip),
        (b"\0\0\0\x20ftypisom", Fault::Mp4),
        (b"abc", Fault::NoSync),
        (&null.out, Fault::NoPat),
        (&one.out, Fault::NoPmt { program: 7 }),
        (&tables(&mut Source::new(&[(5, V)])), Fault::NoMedia { program: 7 }),
        (&tables(&mut source()), Fault::Empty { program: 7 }),
        (&scrambled.out, Fault::Scrambled { program: 7 }),
    ] {
        assert_eq!(fault(data), expected);
        assert!(expected.to_string().len() > 5);
    }
}

#[test]
fn a_short_answer_has_its_reason_too() {
    let mut scanner = Scanner::default();
    assert_eq!(scanner.fault(), Some(Fault::Nothing));
    scanner.read(b"<html>no such stream</html>", &mut Default::default()).unwrap();
    assert_eq!(scanner.fault(), Some(Fault::Html));
    let mut scanner = Scanner::default();
    scan_with(&mut scanner, &played(), 100).unwrap();
    assert_eq!(scanner.fault(), None);
}

#[test]
fn a_stream_that_turns_into_garbage_is_given_up() {
    let mut scanner = Scanner::default();
    scan_with(&mut scanner, &played(), 1000).unwrap();
    assert_eq!(scan_with(&mut scanner, &vec![1; 2 << 20], 1000), Err(Fault::NoSync));
}

/// A stream with garbage in it, and bytes changed.
fn disturbed() -> impl Strategy<Value = Vec<u8>> {
    let garbage = (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..900));
    let flip = (any::<prop::sample::Index>(), any::<u8>());
    (prop::collection::vec(garbage, 0..4), prop::collection::vec(flip, 0..20)).prop_map(|(garbage, flips)| {
        let mut data = with_cues();
        for (at, byte) in flips {
            let at = at.index(data.len());
            data[at] = byte;
        }
        for (at, bytes) in garbage {
            let at = at.index(data.len());
            data.splice(at..at, bytes);
        }
        data
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn how_bytes_are_cut_changes_nothing(data in disturbed(), cuts in prop::collection::vec(1..700usize, 1..9)) {
        let (mut pieces, mut whole) = (Scanner::default(), Scanner::default());
        let (mut out, mut rest, mut cuts) = (Default::default(), &data[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            pieces.read(piece, &mut out).unwrap();
            rest = later;
        }
        let at_once = scan_with(&mut whole, &data, data.len()).unwrap();
        prop_assert_eq!(joined(out.make_contiguous()), joined(&at_once));
        prop_assert_eq!(pieces.counts(), whole.counts());
    }

    #[test]
    fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..3000)) {
        let packets: Vec<u8> = data.chunks(187).flat_map(|body| [&[0x47], body].concat()).collect();
        for data in [data, packets] {
            scan_with(&mut Scanner::default(), &data, 77).unwrap();
        }
    }
}
