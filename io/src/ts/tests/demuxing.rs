//! Access units out of streams of ours.

use std::collections::VecDeque;

use bytes::Bytes;
use proptest::prelude::*;

use super::players::run;
use super::recordings::{AAC, MP2, MPEG2, X264, X265, record, segments};
use super::source::{H264, IDR, INTER, MS, Source};
use super::{AUDIO_ONLY, BOTH, Stage, delta, key, opus, session, unit};
use crate::codec::{Codec, Picture, aac, annexb, h264, h265};
use crate::ts::packet::{Adaptation, write_pes_head};
use crate::ts::{AccessUnit, Demuxer, PACKET, Splicer, Tracks, psi};

fn demux(demuxer: &mut Demuxer, data: &[u8]) -> Vec<AccessUnit> {
    let mut out = VecDeque::new();
    data.chunks(7 * PACKET).for_each(|piece| demuxer.read(piece, &mut out));
    out.into()
}

fn of(units: &[AccessUnit], codec: Codec) -> Vec<&AccessUnit> {
    units.iter().filter(|unit| unit.codec == codec).collect()
}

/// A source that is one of ours.
fn ours(streams: &[(u8, u16)]) -> Source {
    let mut source = Source::new(streams);
    (source.number, source.pmt) = (1, psi::PMT);
    source
}

/// What FFmpeg recorded, spliced.
fn spliced(data: &[u8]) -> Vec<u8> {
    let mut splicer = Splicer::new();
    segments(data).into_iter().filter_map(|segment| splicer.pass(segment)).flat_map(|chunk| chunk.data).collect()
}

#[test]
fn what_was_muxed_comes_out_again() {
    let mut stage = Stage::new(1, BOTH);
    for unit in [key(1, 1000), opus(1, 1000), delta(1, 1040), opus(1, 1020), opus(1, 1040), delta(1, 1080)] {
        assert!(stage.push(unit));
    }
    let data: Vec<u8> = stage.chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
    let mut demuxer = Demuxer::default();
    let units = demux(&mut demuxer, &data);
    let seen: Vec<_> =
        units.iter().map(|unit| (unit.pid, unit.pts / MS - 10_000, unit.dts == unit.pts, unit.key)).collect();
    let expected = [
        (psi::VIDEO, 1000, true, true),
        (psi::AUDIO, 1000, true, true),
        (psi::VIDEO, 1040, true, false),
        (psi::AUDIO, 1020, true, true),
        (psi::AUDIO, 1040, true, true),
        (psi::VIDEO, 1080, true, false),
    ];
    assert_eq!(seen, expected);
    assert!(units[0].data.ends_with(&key(1, 0).data));
    assert_eq!((units[1].codec, &units[1].data), (Codec::Opus, &opus(1, 0).data));
    assert_eq!(demuxer.damaged(), 0);
}

#[test]
fn times_go_on_over_the_end_of_33_bits() {
    let mut stage = Stage::new(1, AUDIO_ONLY);
    let first = (1i64 << 33) / 90 - 10_000 - 100;
    for frame in 0..20 {
        assert!(stage.push(opus(1, first + frame * 20)));
    }
    let data: Vec<u8> = stage.chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
    let times: Vec<_> = demux(&mut Demuxer::default(), &data).iter().map(|unit| unit.pts).collect();
    assert!(times.len() == 20 && times.windows(2).all(|pair| pair[1] - pair[0] == 20 * MS));
}

#[test]
fn frames_of_audio_that_share_or_straddle_packets_are_told_apart() {
    let frame = |length: usize| {
        let mut frame =
            vec![0xff, 0xf1, 0x4c, 0x80 | (length >> 11) as u8, (length >> 3) as u8, (length << 5) as u8 | 0x1f, 0xfc];
        frame.resize(length, 0x22);
        frame
    };
    let frames = [frame(100), frame(200), frame(300), frame(50)].concat();
    let mut source = ours(&[(0x0f, psi::AUDIO)]);
    source.pmt();
    for (ms, part) in [(1000, &frames[..250]), (1043, &frames[250..]), (2000, &[7, 7, 7])] {
        let mut head = Vec::new();
        write_pes_head(0xc0, ms * MS, ms * MS, part.len(), &mut head);
        source.write(psi::AUDIO, Adaptation::default(), &head, part);
    }
    let units = demux(&mut Demuxer::default(), &source.out);
    let seen: Vec<_> = units.iter().map(|unit| (unit.data.len(), unit.pts - 1000 * MS)).collect();
    assert_eq!(seen, [(100, 0), (200, 1920), (300, 43 * MS), (50, 43 * MS + 1920)]);
}

#[test]
fn what_a_gap_damaged_does_not_come_out() {
    let mut source = ours(&[(H264, psi::VIDEO), (0x0f, psi::AUDIO)]);
    source.pmt();
    for (ms, picture) in [(0, IDR), (40, INTER), (80, INTER), (120, INTER)] {
        source.unit(psi::VIDEO, ms, picture);
    }
    let mut packets: Vec<_> = source.out.chunks(PACKET).map(<[u8]>::to_vec).collect();
    packets.insert(2, packets[1].clone());
    let gap = packets.iter().enumerate().filter(|(_, packet)| packet[1] & 0x40 != 0).nth(3).unwrap().0 + 1;
    packets.remove(gap);
    let mut demuxer = Demuxer::default();
    let times: Vec<_> = demux(&mut demuxer, &packets.concat()).iter().map(|unit| unit.pts / MS).collect();
    assert_eq!((times, demuxer.damaged()), (vec![0, 80, 120], 1), "a repetition is none");
}

#[test]
fn pictures_of_open_length_end_with_the_next_and_those_of_known_length_at_once() {
    let mut source = ours(&[(H264, psi::VIDEO)]);
    source.pmt();
    let open = |source: &mut Source, ms: i64| {
        let mut head = Vec::new();
        write_pes_head(0xe0, ms * MS, ms * MS, 0x1_0000, &mut head);
        head.extend_from_slice(IDR);
        source.write(psi::VIDEO, Adaptation::default(), &head, &[]);
        source.take()
    };
    let mut demuxer = Demuxer::default();
    assert_eq!(demux(&mut demuxer, &open(&mut source, 0)).len(), 0);
    assert_eq!(demux(&mut demuxer, &open(&mut source, 40)).len(), 1);
    source.unit(psi::VIDEO, 80, INTER);
    assert_eq!(demux(&mut demuxer, &source.out).len(), 2);
}

#[test]
fn half_a_picture_before_a_switch_does_not_come_out() {
    let mut source = ours(&[(H264, psi::VIDEO)]);
    source.pmt();
    source.unit(psi::VIDEO, 0, IDR);
    let half = source.out.len() - PACKET;
    let mut next = ours(&[(H264, psi::VIDEO)]);
    next.unit(psi::VIDEO, 40, IDR);
    // The counter goes on as a splicer makes it.
    next.out.chunks_mut(PACKET).for_each(|packet| packet[3] += 2);
    let mut demuxer = Demuxer::default();
    let units = demux(&mut demuxer, &[&source.out[..half], &next.out].concat());
    let times: Vec<_> = units.iter().map(|unit| unit.pts / MS).collect();
    assert_eq!((times, demuxer.damaged()), (vec![40], 1));
}

#[test]
fn a_picture_without_end_is_given_up() {
    let mut source = ours(&[(H264, psi::VIDEO)]);
    source.pmt();
    let mut head = Vec::new();
    write_pes_head(0xe0, 0, 0, 0x1_0000, &mut head);
    source.write(psi::VIDEO, Adaptation::default(), &head, &vec![0x55; 17 << 20]);
    let mut demuxer = Demuxer::default();
    assert_eq!((demux(&mut demuxer, &source.take()).len(), demuxer.damaged()), (0, 1));
    source.unit(psi::VIDEO, 80, IDR);
    assert_eq!(demux(&mut demuxer, &source.out).len(), 1);
}

#[test]
fn recordings_come_apart_into_what_their_encoders_made() {
    for (video, codec, format) in [(X264, Codec::H264, "h264"), (X265, Codec::H265, "hevc")] {
        let data = record(&[], Some(("320x180", video)), Some(AAC));
        let mut demuxer = Demuxer::default();
        let units = demux(&mut demuxer, &spliced(&data));
        let path = std::env::temp_dir().join(format!("holdfast-{}-{format}-apart.ts", std::process::id()));
        std::fs::write(&path, &data).unwrap();
        let copy =
            |args: &[&str]| run("ffmpeg", &[&["-i", path.to_str().unwrap(), "-c", "copy"], args, &["-"]].concat());
        let (pictures, sound) = (copy(&["-an", "-f", format]), copy(&["-vn", "-f", "adts"]));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(units.iter().filter(|unit| unit.codec == codec && unit.key).count(), 2);
        assert_eq!(of(&units, codec).len(), 49, "the last one is not over");
        let joined = |units: &[AccessUnit], codec| {
            of(units, codec).iter().flat_map(|unit| unit.data.to_vec()).collect::<Vec<_>>()
        };
        assert!(pictures.starts_with(&joined(&units, codec)));
        assert_eq!(joined(&units, Codec::Aac), sound);
        let steps = |units: &[AccessUnit], codec| -> Vec<i64> {
            of(units, codec).windows(2).map(|pair| pair[1].dts - pair[0].dts).collect()
        };
        assert!(steps(&units, codec).iter().all(|step| *step == 3600));
        assert!(steps(&units, Codec::Aac).iter().all(|step| (1919..=1921).contains(step)));
        let mut times: Vec<_> = of(&units, codec).iter().map(|unit| unit.pts).collect();
        times.sort_unstable();
        assert!(times.windows(2).all(|pair| pair[1] > pair[0]));
        assert_eq!(demuxer.damaged(), 0);
    }
}

#[test]
fn mpeg_audio_comes_in_frames() {
    let data = record(&[], Some(("320x180", MPEG2)), Some(MP2));
    let units = demux(&mut Demuxer::default(), &spliced(&data));
    assert!(units.len() > 80 && units.iter().all(|unit| unit.codec == Codec::Mp2));
    assert!(units.windows(2).all(|pair| pair[1].pts - pair[0].pts == 2160 && pair[0].data.len() == pair[1].data.len()));
}

/// What follows the name of a box, as its length says.
fn boxed<'a>(file: &'a [u8], name: &[u8; 4]) -> &'a [u8] {
    let at = file.windows(4).position(|window| window == name).unwrap();
    let length = u32::from_be_bytes(file[at - 4..at].try_into().unwrap()) as usize;
    &file[at + 4..at - 4 + length]
}

#[test]
fn configurations_are_those_that_ffmpeg_writes() {
    let size = |sps: Option<Picture>| sps.map(|picture| (picture.width, picture.height));
    for (video, codec) in [(X264, Codec::H264), (X265, Codec::H265)] {
        let data = record(&[], Some(("322x182", video)), Some(AAC));
        let path = std::env::temp_dir().join(format!("holdfast-{}-{codec:?}.mp4", std::process::id()));
        let mut source = path.clone();
        source.set_extension("ts");
        std::fs::write(&source, &data).unwrap();
        run("ffmpeg", &["-y", "-i", source.to_str().unwrap(), "-c", "copy", path.to_str().unwrap()]);
        let file = std::fs::read(&path).unwrap();
        for path in [path, source] {
            std::fs::remove_file(path).unwrap();
        }
        let units = demux(&mut Demuxer::default(), &spliced(&data));
        let first = of(&units, codec)[0].data.clone();
        let sets: Vec<_> = annexb::units(&first).collect();
        if codec == Codec::H264 {
            assert_eq!(h264::configuration(&first).unwrap(), boxed(&file, b"avcC"));
            let picture = sets.iter().find_map(|set| h264::picture(set));
            assert_eq!(size(picture), Some((322, 182)));
            assert_eq!(picture.and_then(|picture| picture.rate), Some((50, 2)));
        } else {
            let (record, expected) = (h265::configuration(&first).unwrap(), boxed(&file, b"hvcC"));
            // FFmpeg reads the least segmentation and the parallelism out of what is optional.
            assert_eq!((&record[..13], &record[16..22]), (&expected[..13], &expected[16..22]));
            assert!(
                sets.iter()
                    .filter(|set| (32..35).contains(&(set[0] >> 1)))
                    .all(|set| record.windows(set.len()).any(|window| window == *set))
            );
            let picture = sets.iter().find_map(|set| h265::picture(set));
            assert_eq!(size(picture), Some((322, 182)));
            assert_eq!(picture.and_then(|picture| picture.rate), Some((25, 1)));
        }
        let config = aac::configuration(&of(&units, Codec::Aac)[0].data).unwrap();
        let esds = boxed(&file, b"esds");
        // Tag and length of DecoderSpecificInfo.
        let info = esds.windows(4).position(|window| window == [5, 0x80, 0x80, 0x80]).unwrap() + 5;
        assert!(esds[info..].starts_with(&config));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_packets_are_read(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        let mut stage = Stage::new(1, Tracks { audio: Some(Codec::Aac), video: Some(Codec::H264) });
        stage.push(key(1, 0));
        stage.push(unit(session(1), Codec::Aac, 0, true, &[0xff, 0xf1, 0x4c, 0x80, 1, 0x7f, 0xfc, 1]));
        let mut data: Vec<u8> = stage.chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
        for (index, body) in bytes.chunks(185).enumerate() {
            data.extend([0x47, if body[0] & 1 == 0 { 0x41 } else { 0x01 }, (index % 2) as u8]);
            data.extend_from_slice(body);
            data.resize(data.len().next_multiple_of(PACKET), 0xff);
        }
        let mut demuxer = Demuxer::default();
        for unit in demux(&mut demuxer, &data) {
            prop_assert!(!unit.data.is_empty());
            h264::configuration(&unit.data);
            h265::configuration(&unit.data);
            aac::configuration(&unit.data);
        }
        let sps = Bytes::from(bytes);
        h264::picture(&[&[0x67], &sps[..]].concat());
        h265::picture(&[&[0x42, 1], &sps[..]].concat());
    }
}
