//! One stream out of several.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::source::*;
use crate::ts::packet::{Adaptation, PACKET};
use crate::ts::pes::{Pes, PesHead};
use crate::ts::{Chunk, Scanner, Segment, Splicer, Times, psi};

const V: u16 = 0x44;
const A: u16 = 0x45;
const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

fn source() -> Source {
    Source::new(&[(H264, V), (AAC, A)])
}

fn other() -> Source {
    Source::new(&[(H264, 0x1001), (AAC, 0x0033)])
}

fn played(mut source: Source, from: i64, frames: i64) -> Vec<Segment> {
    source.play(from, frames);
    scan(&source.out)
}

fn pass(splicer: &mut Splicer, segments: Vec<Segment>) -> Vec<Chunk> {
    let chunks: Vec<_> = segments.into_iter().filter_map(|segment| splicer.pass(segment)).collect();
    for chunk in &chunks {
        assert!(!chunk.data.is_empty() && chunk.data.len().is_multiple_of(PACKET));
        if chunk.random_access {
            let pids: Vec<_> = Packets::of(&chunk.data).0.iter().map(|packet| packet.head.pid).collect();
            assert_eq!(pids[..2], [0, psi::PMT]);
        }
    }
    chunks
}

fn heads(packets: &Packets, pid: u16) -> Vec<PesHead> {
    let head = |payload: &[u8]| match Pes::read(payload) {
        Pes::Head(head) => head,
        other => panic!("{other:?}"),
    };
    packets.on(pid).iter().filter(|packet| packet.head.starts).map(|packet| head(&packet.payload)).collect()
}

/// Versions of the maps and the PIDs that each declares.
fn maps(packets: &Packets) -> Vec<(u8, Vec<u16>)> {
    let map = |payload: &[u8]| {
        let (end, mut at) = (4 + usize::from(payload[3]) - 4, 13 + usize::from(payload[12]));
        let mut pids = vec![u16::from_be_bytes([payload[9] & 0x1f, payload[10]])];
        while at < end {
            pids.push(u16::from_be_bytes([payload[at + 1] & 0x1f, payload[at + 2]]));
            at += 5 + usize::from(payload[at + 4]);
        }
        (payload[6] >> 1 & 0x1f, pids)
    };
    packets.on(psi::PMT).iter().map(|packet| map(&packet.payload)).collect()
}

#[test]
fn one_source_changes_in_nothing_but_pids_and_counters() {
    let segments = played(source(), 1000, 30);
    let before = Packets::of(&joined(&segments).0);
    let after = Packets::of_chunks(&pass(&mut Splicer::new(), segments));
    assert_eq!(after.gaps(), []);
    for (theirs, ours) in [(V, VIDEO), (A, AUDIO)] {
        let bytes = |packets: &Packets, pid| -> Vec<Vec<u8>> {
            packets.on(pid).iter().map(|packet| [&packet.raw[3..4], &packet.raw[4..]].concat()).collect()
        };
        assert_eq!(bytes(&before, theirs), bytes(&after, ours));
        assert_eq!(after.on(ours)[0].head.continuity, 0);
    }
    let seen: BTreeSet<_> = after.0.iter().map(|packet| packet.head.pid).collect();
    assert_eq!(seen, BTreeSet::from([0, psi::PMT, VIDEO, AUDIO]));
}

#[test]
fn the_map_keeps_descriptors_and_says_where_the_streams_are_now() {
    let packets = Packets::of_chunks(&pass(&mut Splicer::new(), played(source(), 1000, 2)));
    let expected = [
        0, 0x02, 0xb0, 26, 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 3, 0x0e, 1, 7, 0x1b, 0xe1, 0, 0xf0, 0, 0x0f, 0xe1, 1, 0xf0,
        0,
    ];
    assert!(packets.on(psi::PMT)[0].payload.starts_with(&expected));
    assert_eq!(packets.on(0)[0].payload, psi::pat());
}

#[test]
fn a_switch_goes_on_in_counters_and_pids_and_marks_the_clock_once() {
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, played(source(), 1000, 13));
    splicer.begin(Times::Kept);
    chunks.extend(pass(&mut splicer, played(other(), 90_000, 13)));
    splicer.begin(Times::Kept);
    chunks.extend(pass(&mut splicer, played(source(), 2000, 13)));
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    let marked: Vec<_> = packets
        .0
        .iter()
        .filter(|packet| packet.head.discontinuity)
        .map(|packet| (packet.head.pid, packet.head.pcr))
        .collect();
    assert_eq!(marked, [(VIDEO, Some(89_900 * 90)), (VIDEO, Some(1900 * 90))]);
    let versions: BTreeSet<_> = maps(&packets).into_iter().collect();
    assert_eq!(versions, BTreeSet::from([(0, vec![VIDEO, VIDEO, AUDIO])]), "the same contents");
    let times: Vec<_> = heads(&packets, VIDEO).iter().filter_map(|head| head.pts).collect();
    let expected =
        [1000, 90_000, 2000].map(|from| (0..13).map(move |frame| (from + frame * 40) * 90)).into_iter().flatten();
    assert_eq!(times, expected.collect::<Vec<_>>());
}

#[test]
fn a_clock_that_stands_before_key_frames_stays_there_and_is_marked_where_it_is_the_first() {
    let ticking = |mut source: Source, from: i64| {
        for group in 0..4 {
            let ms = from + group * 400;
            source.tick(ms - 20);
            source.play(ms, 10);
        }
        scan(&source.take())
    };
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, ticking(source(), 1000));
    splicer.begin(Times::Continued);
    chunks.extend(pass(&mut splicer, ticking(other(), 5000)));
    splicer.begin(Times::Kept);
    chunks.extend(pass(&mut splicer, ticking(source(), 9000)));
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    let clocks: Vec<_> = packets.0.iter().filter_map(|packet| packet.head.pcr).collect();
    assert!(clocks.windows(2).all(|pair| pair[0] < pair[1]), "{clocks:?}");
    // The first tick came before the program was known.
    assert_eq!(clocks.len(), 3 * 43);
    let marked = packets.0.iter().filter(|packet| packet.head.discontinuity).filter_map(|packet| packet.head.pcr);
    assert_eq!(marked.collect::<Vec<_>>(), [8900 * 90]);
    let times: Vec<_> = heads(&packets, VIDEO).iter().filter_map(|head| head.pts).collect();
    let goes_on = (0..80).map(|frame| 1000 + frame * 40).chain((0..40).map(|frame| 9000 + frame * 40));
    assert_eq!(times, goes_on.map(|ms| ms * 90).collect::<Vec<_>>());
}

#[test]
fn nothing_of_half_a_pes_packet_meets_the_other_source() {
    let mut splicer = Splicer::new();
    let mut first = played(source(), 1000, 13);
    let mut cut = first.pop().unwrap();
    cut.data.truncate(cut.data.len() / PACKET / 2 * PACKET);
    first.push(cut);
    let mut chunks = pass(&mut splicer, first);
    let switched = Packets::of_chunks(&chunks).0.len();
    splicer.begin(Times::Kept);
    let mut second = other();
    second.play(0, 1);
    // Audio is in the middle of a frame when the key frame comes.
    second.unit(0x0033, 10, &[]);
    let tail = second.out.split_off(second.out.len() - 2 * PACKET);
    second.unit(0x1001, 40, IDR);
    let mut data = second.take();
    data.extend(tail);
    second.play(80, 1);
    data.extend(second.take());
    let segments = scan(&data);
    let at = segments.iter().position(|segment| segment.random_access == Some(40 * 90)).unwrap();
    chunks.extend(pass(&mut splicer, segments[at..].to_vec()));
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    for pid in [VIDEO, AUDIO] {
        let first = packets.0[switched..].iter().find(|packet| packet.head.pid == pid).unwrap();
        assert!(first.head.starts, "{pid:#x}");
    }
}

#[test]
fn what_comes_before_a_random_access_point_does_not_go_out() {
    let segments = played(source(), 1000, 13);
    assert!(segments.len() > 2);
    let mut splicer = Splicer::new();
    let later: Vec<_> = segments.iter().filter(|segment| segment.random_access.is_none()).cloned().collect();
    assert_eq!(pass(&mut splicer, later.clone()), []);
    let chunks = pass(&mut splicer, segments);
    splicer.begin(Times::Kept);
    assert!(!chunks.is_empty() && pass(&mut splicer, later).is_empty());
}

#[test]
fn the_program_map_counts_its_changes() {
    let mut splicer = Splicer::new();
    let mut chunks = Vec::new();
    for (streams, expected) in [
        (&[(H264, V), (AAC, A)][..], (0, vec![VIDEO, VIDEO, AUDIO])),
        (&[(AAC, A), (H264, V)], (1, vec![AUDIO, AUDIO, VIDEO])),
        (
            &[(H264, 9 + V), (AAC, A), (AAC, 0x99), (6, 0x98), (H264, 0x97)],
            (2, vec![VIDEO, VIDEO, AUDIO, 0x102, 0x120, 0x121]),
        ),
        (&[(H264, V), (AAC, A)], (3, vec![VIDEO, VIDEO, AUDIO])),
        (&[(H264, 0x999), (AAC, A)], (3, vec![VIDEO, VIDEO, AUDIO])),
    ] {
        let mut source = Source::new(streams);
        let video = streams.iter().find(|stream| stream.0 == H264).unwrap().1;
        source.tables();
        source.unit(video, 0, IDR);
        source.tables();
        splicer.begin(Times::Kept);
        chunks.extend(pass(&mut splicer, scan(&source.out)));
        let packets = Packets::of_chunks(&chunks);
        assert_eq!(maps(&packets).pop(), Some(expected));
        assert_eq!(packets.gaps(), []);
    }
}

#[test]
fn a_map_that_changes_within_a_source_is_told_at_once() {
    let mut source = source();
    source.play(0, 3);
    source.version = 1;
    source.streams[1].1 = 0x77;
    source.pmt();
    source.unit(0x77, 120, &[0xff]);
    source.unit(V, 120, INTER);
    let chunks = pass(&mut Splicer::new(), scan(&source.out));
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    assert_eq!((maps(&packets).len(), heads(&packets, AUDIO).len()), (2, 4));
    assert!(packets.0.iter().all(|packet| !packet.head.discontinuity));
}

#[test]
fn a_clock_that_comes_later_than_its_base_is_announced() {
    let mut second = other();
    second.clock = 0x0033;
    second.play(0, 12);
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, played(source(), 1000, 13));
    splicer.begin(Times::Kept);
    let segments: Vec<_> = scan_with(&mut Scanner::default(), &second.out, PACKET).unwrap();
    chunks.extend(pass(&mut splicer, segments));
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    let at = packets.0.iter().position(|packet| packet.head.discontinuity).unwrap();
    let pids: Vec<_> = packets.0[at - 2..at + 2].iter().map(|packet| packet.head.pid).collect();
    assert_eq!(pids, [0, psi::PMT, AUDIO, VIDEO]);
    assert!(packets.0[at].payload.is_empty());
    let marked = packets.0[at + 1..].iter().filter(|packet| packet.head.discontinuity);
    assert_eq!(marked.map(|packet| packet.head.pcr).collect::<Vec<_>>(), [Some((1 << 33) - 9000)]);
}

#[test]
fn a_counter_goes_on_where_packets_without_payload_came_first() {
    let mut second = other();
    second.clock = 0x0033;
    second.play(0, 1);
    second.unit(0x1001, 40, IDR);
    let mut data = second.take();
    // The clock goes out, the rest of a frame that began before the switch does not, the next one does.
    let mut clock = Vec::new();
    second.pid(0x0033).write_adaptation(Adaptation { pcr: Some(0), ..Adaptation::default() }, &mut clock);
    data.extend(clock);
    second.unit(0x0033, 40, &[0xff]);
    data.extend(second.take().split_off(PACKET));
    second.unit(0x0033, 80, &[0xff]);
    data.extend(second.take());
    second.tables();
    data.extend(second.take());
    let segments = scan(&data);
    let at = segments.iter().position(|segment| segment.random_access == Some(40 * 90)).unwrap();
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, played(source(), 1000, 13));
    splicer.begin(Times::Kept);
    chunks.extend(pass(&mut splicer, segments[at..].to_vec()));
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    assert_eq!(heads(&packets, AUDIO).len(), 14);
}

#[test]
fn another_reader_reads_the_same() {
    use mpeg2ts::ts::{ReadTsPacket, TsPacketReader, TsPayload};
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, played(source(), 1000, 5));
    splicer.begin(Times::Kept);
    chunks.extend(pass(&mut splicer, played(other(), 3000, 5)));
    let data: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
    let (mut reader, mut times, mut maps) = (TsPacketReader::new(&data[..]), Vec::new(), 0);
    while let Some(packet) = reader.read_ts_packet().unwrap() {
        match packet.payload {
            Some(TsPayload::PesStart(pes)) => {
                times.push((packet.header.pid.as_u16(), pes.header.pts.unwrap().as_u64() as i64 / MS));
            }
            Some(TsPayload::Pmt(map)) => {
                let pids: Vec<_> = map.es_info.iter().map(|stream| stream.elementary_pid.as_u16()).collect();
                assert_eq!((map.pcr_pid.map(|pid| pid.as_u16()), pids), (Some(VIDEO), vec![VIDEO, AUDIO]));
                maps += 1;
            }
            _ => {}
        }
    }
    let frame = |ms| [(VIDEO, ms), (AUDIO, ms)];
    let expected = [1000, 3000].into_iter().flat_map(|from| (0..5).flat_map(move |index| frame(from + index * 40)));
    assert_eq!(times, expected.collect::<Vec<_>>());
    assert_eq!(maps, 2);
}

#[test]
fn a_clock_of_its_own_keeps_a_pid_of_its_own() {
    let mut source = source();
    source.clock = 0x55;
    source.tables();
    let mut out = Vec::new();
    for frame in 0..3 {
        let adaptation = Adaptation { pcr: Some(frame * 40 * MS), ..Adaptation::default() };
        source.pid(0x55).write_adaptation(adaptation, &mut out);
        source.out.append(&mut out);
        source.unit(V, frame * 40, if frame == 0 { IDR } else { INTER });
    }
    let packets = Packets::of_chunks(&pass(&mut Splicer::new(), scan(&source.out)));
    assert_eq!(packets.on(psi::CLOCK).len(), 3);
    assert_eq!(packets.gaps(), []);
    assert_eq!(maps(&packets)[0].1[0], psi::CLOCK);
}

#[test]
fn a_loss_within_a_source_stays_the_same_gap_and_a_repetition_stays_one() {
    let mut source = source();
    source.play(0, 1);
    source.unit(V, 40, INTER);
    let mut packets: Vec<_> = source.out.chunks(PACKET).map(<[u8]>::to_vec).collect();
    let video: Vec<_> = (0..packets.len()).filter(|at| packets[*at][2] == V as u8).collect();
    packets.insert(video[4], packets[video[4]].clone());
    packets.remove(video[1]);
    source.out = packets.concat();
    source.play(80, 1);
    let counts: Vec<_> = Packets::of_chunks(&pass(&mut Splicer::new(), scan(&source.out)))
        .on(VIDEO)
        .iter()
        .map(|packet| packet.head.continuity)
        .collect();
    assert_eq!(counts, [0, 2, 3, 4, 4, 5, 6, 7, 8]);
}

#[test]
fn a_clock_that_jumps_without_saying_so_is_marked() {
    let mut source = source();
    source.play(100_000, 10);
    source.play(0, 10);
    source.play(400, 10);
    source.play(50_000, 10);
    let packets = Packets::of_chunks(&pass(&mut Splicer::new(), scan(&source.out)));
    let marked = packets.0.iter().filter(|packet| packet.head.discontinuity).filter_map(|packet| packet.head.pcr);
    assert_eq!(marked.collect::<Vec<_>>(), [(1 << 33) - 9000, 49_900 * 90]);
}

#[test]
fn tables_go_out_at_least_every_400_ms() {
    // Ten seconds after its one key frame, in one segment or in many.
    let mut source = source();
    source.play(1000, 1);
    for frame in 1..250 {
        source.unit(V, 1000 + frame * 40, INTER);
    }
    for cut in [PACKET, 1 << 20] {
        let segments = scan_with(&mut Scanner::default(), &source.out, cut).unwrap();
        let packets = Packets::of_chunks(&pass(&mut Splicer::new(), segments));
        // The first map comes before any clock.
        let (mut now, mut told) = (packets.0.iter().find_map(|packet| packet.head.pcr).unwrap(), vec![]);
        for packet in &packets.0 {
            now = packet.head.pcr.unwrap_or(now);
            told.extend((packet.head.pid == psi::PMT).then_some(now));
        }
        told.push(now);
        assert!(told.windows(2).all(|pair| pair[1] - pair[0] <= 400 * 90), "{told:?}");
        assert_eq!(packets.gaps(), []);
    }
}

#[test]
fn a_loop_goes_on_in_time() {
    let recorded = played(source(), 10_000, 25);
    let mut splicer = Splicer::new();
    let mut chunks = Vec::new();
    for _ in 0..4 {
        splicer.begin(Times::Continued);
        chunks.extend(pass(&mut splicer, recorded.clone()));
    }
    let packets = Packets::of_chunks(&chunks);
    assert_eq!(packets.gaps(), []);
    for pid in [VIDEO, AUDIO] {
        let times: Vec<_> = heads(&packets, pid).iter().map(|head| head.pts.unwrap()).collect();
        assert_eq!(times, (0..100).map(|frame| (10_000 + frame * 40) * 90).collect::<Vec<_>>());
    }
    let clocks: Vec<_> = packets.0.iter().filter_map(|packet| packet.head.pcr).collect();
    assert!(clocks.windows(2).all(|pair| pair[1] - pair[0] == 40 * 90));
    assert!(packets.0.iter().all(|packet| !packet.head.discontinuity));
}

#[test]
fn a_loop_goes_on_over_the_end_of_its_33_bits() {
    let end = (1i64 << 33) / 90;
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, played(source(), end - 500, 12));
    splicer.begin(Times::Continued);
    chunks.extend(pass(&mut splicer, played(other(), 5000, 12)));
    let times: Vec<_> = heads(&Packets::of_chunks(&chunks), VIDEO).iter().map(|head| head.pts.unwrap()).collect();
    let step = |pair: &[u64]| pair[1].wrapping_sub(pair[0]) & ((1 << 33) - 1);
    assert!(times.windows(2).all(|pair| step(pair) == 3600), "{times:?}");
    assert!(times.iter().max() > times.last());
}

#[derive(Clone, Debug)]
struct Turn {
    source: usize,
    from: i64,
    frames: i64,
    times: Times,
    /// How many of its last packets are missing.
    missing: usize,
}

fn turn() -> impl Strategy<Value = Turn> {
    let times = prop_oneof![Just(Times::Kept), Just(Times::Continued)];
    (0..3usize, 0..100_000i64, 1..25i64, times, 0..40usize).prop_map(|(source, from, frames, times, missing)| Turn {
        source,
        from,
        frames,
        times,
        missing,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_switches_give_one_stream(turns in prop::collection::vec(turn(), 1..8), cut in 100..5000usize) {
        let mut splicer = Splicer::new();
        let mut chunks = Vec::new();
        for turn in turns {
            let mut source = match turn.source {
                0 => source(),
                1 => other(),
                _ => Source::new(&[(AAC, 0x100), (H264, 0x101), (6, 0x102)]),
            };
            source.streams.sort_by_key(|stream| stream.0 != H264);
            source.play(turn.from, turn.frames);
            source.play(turn.from + turn.frames * 40, 1);
            let end = source.out.len().saturating_sub(turn.missing * PACKET);
            let segments = scan_with(&mut Scanner::default(), &source.out[..end], cut).unwrap();
            splicer.begin(turn.times);
            chunks.extend(pass(&mut splicer, segments));
        }
        let packets = Packets::of_chunks(&chunks);
        prop_assert_eq!(packets.gaps(), []);
        prop_assert!(packets.0.iter().all(|packet| [0, psi::PMT, VIDEO, AUDIO].contains(&packet.head.pid)));
        let versions = maps(&packets);
        prop_assert!(versions.windows(2).all(|pair| (pair[0].0 == pair[1].0) == (pair[0].1 == pair[1].1) || pair[0].0 + 1 == pair[1].0));
    }

    #[test]
    fn any_segment_is_passed(data in prop::collection::vec(any::<u8>(), 0..2000), random_access: Option<u64>) {
        let program = Arc::clone(&played(source(), 0, 1)[0].program);
        let mut splicer = Splicer::new();
        pass(&mut splicer, played(source(), 0, 1));
        splicer.begin(Times::Continued);
        for data in [data.clone(), data.chunks(185).flat_map(|body| [&[0x47, 0x40, V as u8], body].concat()).collect()] {
            if let Some(chunk) = splicer.pass(Segment { data, random_access, program: Arc::clone(&program) }) {
                prop_assert!(chunk.data.len().is_multiple_of(PACKET));
            }
        }
    }
}

/// A clip behind a stream that was cut off wherever it was: in the same place, with another map, and nothing goes on.
#[test]
fn a_clip_stands_behind_a_stream_that_was_cut_off() {
    let stream = Packets::of_chunks(&pass(&mut Splicer::new(), played(source(), 1000, 13)));
    let mut clip = other();
    clip.play(0, 25);
    let behind = Packets::of(&crate::ts::behind(&clip.out).unwrap());
    for pid in [0, psi::PMT, VIDEO, AUDIO] {
        let (first, next) = (behind.on(pid)[0].head, behind.on(pid)[1].head);
        assert!(first.discontinuity && first.payload == PACKET, "{pid}");
        assert_eq!(next.continuity, (first.continuity + 1) % 16, "{pid}");
    }
    assert_eq!(behind.gaps(), []);
    let clocks = behind.0.iter().filter(|packet| packet.head.pcr.is_some());
    let marked: Vec<bool> = clocks.map(|packet| packet.head.discontinuity).collect();
    assert!(marked[0] && marked[1..].iter().all(|marked| !marked), "{marked:?}");
    let full = Packets(behind.0.iter().filter(|packet| !packet.payload.is_empty()).cloned().collect());
    let (before, after) = (maps(&stream)[0].clone(), maps(&full)[0].clone());
    assert_eq!(before.1, after.1, "the same PIDs");
    assert_ne!(before.0, after.0, "players read a map that has another version");
    assert_eq!(heads(&behind, VIDEO).len(), 25);
    assert_eq!(crate::ts::behind(&[0x47; 188 * 10]), None);
}
