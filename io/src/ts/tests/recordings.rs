//! Streams that FFmpeg made, and what it says of what becomes of them.

use super::players::{Recording, run};
use super::source::{Packets, scan_with};
use crate::ts::{Chunk, Fault, Kind, Scanner, Segment, Splicer, Times};

/// What FFmpeg's multiplexer makes of two seconds of `video` and `audio`.
pub(super) fn record(args: &[&str], video: Option<(&str, &[&str])>, audio: Option<&[&str]>) -> Vec<u8> {
    let pictures = format!("testsrc=size={}:rate=25:duration=2", video.map_or("16x16", |(size, _)| size));
    let mut all = Vec::new();
    if video.is_some() {
        all.extend(["-f", "lavfi", "-i", &pictures]);
    }
    if audio.is_some() {
        all.extend(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=2", "-ac", "2"]);
    }
    all.extend(video.iter().flat_map(|(_, codec)| *codec));
    all.extend(audio.unwrap_or_default());
    all.extend(args);
    all.extend(["-f", "mpegts", "-"]);
    run("ffmpeg", &all)
}

pub(super) const X264: &[&str] =
    &["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-pix_fmt", "yuv420p"];
pub(super) const X265: &[&str] = &[
    "-c:v",
    "libx265",
    "-preset",
    "ultrafast",
    "-x265-params",
    "log-level=none:keyint=25:min-keyint=25",
    "-pix_fmt",
    "yuv420p",
];
pub(super) const MPEG2: &[&str] = &["-c:v", "mpeg2video", "-g", "25", "-b:v", "1M"];
pub(super) const AAC: &[&str] = &["-c:a", "aac"];
/// In packets with time stamps FFmpeg declares AAC as private data without a word on what it is.
const AC3: &[&str] = &["-c:a", "ac3"];
pub(super) const MP2: &[&str] = &["-c:a", "mp2"];

pub(super) fn segments(data: &[u8]) -> Vec<Segment> {
    scan_with(&mut Scanner::default(), data, 1316).unwrap()
}

fn pass(splicer: &mut Splicer, segments: Vec<Segment>) -> Vec<Chunk> {
    segments.into_iter().filter_map(|segment| splicer.pass(segment)).collect()
}

/// How many packets of each kind FFmpeg finds in what the splicer made of it.
fn counted(name: &str, chunks: &[Chunk]) -> (usize, usize) {
    assert_eq!(Packets::of_chunks(chunks).gaps(), []);
    let (video, audio, _) = Recording::new(name, chunks).check();
    (video, audio)
}

#[test]
fn each_kind_of_recording_starts_where_it_can_and_plays_on() {
    for (name, video, audio) in [
        ("h264", Some(("320x180", X264)), Some(AAC)),
        ("h265", Some(("320x180", X265)), Some(AAC)),
        ("mpeg2", Some(("320x180", MPEG2)), Some(MP2)),
        ("mute", Some(("320x180", X264)), None),
    ] {
        let data = record(&[], video, audio);
        let segments = segments(&data);
        let starts: Vec<_> = segments.iter().filter_map(|segment| segment.random_access).collect();
        assert_eq!(starts.len(), 2, "{name}");
        assert!((89_900..90_100).contains(&(starts[1] - starts[0])), "{name}");
        assert!(segments[0].random_access.is_some(), "{name}");
        let (pictures, _) = counted(name, &pass(&mut Splicer::new(), segments));
        assert_eq!(pictures, 50, "{name}");
    }
}

#[test]
fn sound_alone_starts_often() {
    let data = record(&[], None, Some(AAC));
    let segments = segments(&data);
    assert_eq!(segments[0].program.streams[0].kind(), Kind::Audio);
    let starts = segments.iter().filter(|segment| segment.random_access.is_some()).count();
    assert!((4..=5).contains(&starts), "{starts}");
    let (_, frames) = counted("sound", &pass(&mut Splicer::new(), segments));
    assert!(frames > 90);
}

#[test]
fn two_recordings_of_different_size_and_codec_play_as_one() {
    let mut splicer = Splicer::new();
    let mut chunks = pass(&mut splicer, segments(&record(&[], Some(("320x180", X264)), Some(AAC))));
    splicer.begin(Times::Kept);
    let args = ["-mpegts_start_pid", "0x200", "-mpegts_pmt_start_pid", "0x333", "-output_ts_offset", "5"];
    chunks.extend(pass(&mut splicer, segments(&record(&args, Some(("640x360", X264)), Some(AAC)))));
    let (pictures, frames) = counted("switch", &chunks);
    assert_eq!(pictures, 100);
    assert!(frames > 180);
}

#[test]
fn a_loop_plays_as_one() {
    let data = record(&[], Some(("320x180", X264)), Some(AAC));
    let (mut splicer, mut chunks) = (Splicer::new(), Vec::new());
    for _ in 0..3 {
        splicer.begin(Times::Continued);
        chunks.extend(pass(&mut splicer, segments(&data)));
    }
    let file = Recording::new("loop", &chunks);
    let (video, _, times) = file.check();
    assert_eq!(video, 150);
    let (first, last) = (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
    assert!((5.9..6.3).contains(&(last - first)), "{first} {last}");
}

#[test]
fn longer_packets_are_recognised() {
    let data = record(&["-mpegts_m2ts_mode", "1"], Some(("320x180", X264)), Some(AC3));
    assert_eq!(data.len() % 192, 0);
    let (pictures, _) = counted("m2ts", &pass(&mut Splicer::new(), segments(&data)));
    assert_eq!(pictures, 50);
}

#[test]
fn one_of_several_programs_is_taken() {
    let input = |size: &str| format!("testsrc=size={size}:rate=25:duration=1");
    let (one, two) = (input("320x180"), input("640x360"));
    let mut args = vec!["-f", "lavfi", "-i", &one, "-f", "lavfi", "-i", &two, "-map", "0:v", "-map", "1:v"];
    args.extend(X264);
    args.extend(["-program", "program_num=3:st=0", "-program", "program_num=5:st=1", "-f", "mpegts", "-"]);
    let data = run("ffmpeg", &args);
    for (number, size) in [(3, "320,180"), (5, "640,360")] {
        let mut scanner = Scanner::new(crate::ts::Choice::Number(number));
        let segments = scan_with(&mut scanner, &data, 1316).unwrap();
        let file = Recording::new(&format!("program{number}"), &pass(&mut Splicer::new(), segments));
        assert_eq!(file.check().0, 25);
        let entries = ["-show_entries", "stream=width,height", "-of", "csv=p=0"];
        let found = String::from_utf8(run("ffprobe", &[&entries[..], &[file.path()]].concat())).unwrap();
        assert!(found.starts_with(size), "{found}");
    }
}

#[test]
fn a_start_amid_a_stream_waits_for_a_key_frame() {
    let data = record(&["-pat_period", "0.1"], Some(("320x180", X264)), Some(AAC));
    let chunks = pass(&mut Splicer::new(), segments(&data[data.len() / 4 + 55..]));
    assert!(chunks[0].random_access);
    assert_eq!(counted("amid", &chunks).0, 25);
}

#[test]
fn a_page_is_no_recording() {
    let mut scanner = Scanner::default();
    let page = "<html>".repeat(1000);
    assert_eq!(scan_with(&mut scanner, page.as_bytes(), 1000), Err(Fault::Html));
}
