//! What FFmpeg says to it. Its encoders make the input, too.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;

use super::recordings::{MP2, X265, record, segments};
use super::*;

pub(super) fn run(program: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(["-v", "error"]).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{program} must be installed: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{program} {args:?}: {errors}");
    output.stdout
}

/// Access units of two seconds of H.264, 25 frames a second, a key frame a second.
fn pictures(size: &str) -> Vec<(bool, Vec<u8>)> {
    let source = format!("testsrc=size={size}:rate=25:duration=2");
    let codec = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "25"];
    let format = ["-x264-params", "slices=1:sliced-threads=0", "-f", "h264", "-"];
    let stream = run("ffmpeg", &[&["-f", "lavfi", "-i", &source][..], &codec, &format].concat());
    let starts: Vec<_> = (0..stream.len() - 3).filter(|&at| stream[at..at + 3] == [0, 0, 1]).collect();
    let (mut units, mut from) = (Vec::new(), 0);
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(stream.len(), |next| next - usize::from(stream[next - 1] == 0));
        let kind = stream[start + 3] & 0x1f;
        if kind == 1 || kind == 5 {
            units.push((kind == 5, stream[from..end].to_vec()));
            from = end;
        }
    }
    assert_eq!((units.len(), units.iter().filter(|(key, _)| *key).count()), (50, 2));
    units
}

/// Two seconds of AAC, with the time of each frame in µs.
fn aac() -> Vec<(i64, Vec<u8>)> {
    let source = "sine=frequency=440:sample_rate=48000:duration=2";
    let stream = run("ffmpeg", &["-f", "lavfi", "-i", source, "-ac", "2", "-c:a", "aac", "-f", "adts", "-"]);
    let (mut frames, mut rest) = (Vec::new(), &stream[..]);
    while !rest.is_empty() {
        let length = usize::from(rest[3] & 3) << 11 | usize::from(rest[4]) << 3 | usize::from(rest[5]) >> 5;
        let (frame, behind) = rest.split_at(length);
        frames.push((frames.len() as i64 * 1_024_000 / 48, frame.to_vec()));
        rest = behind;
    }
    frames
}

/// Two seconds of Opus packets of 20 ms out of Ogg pages (RFC 3533 §6), without the two of headers.
fn opus_packets(channels: &str) -> Vec<(i64, Vec<u8>)> {
    let source = "sine=frequency=440:sample_rate=48000:duration=2";
    let stream = run("ffmpeg", &["-f", "lavfi", "-i", source, "-ac", channels, "-c:a", "libopus", "-f", "ogg", "-"]);
    let (mut packets, mut packet, mut rest) = (Vec::new(), Vec::new(), &stream[..]);
    while !rest.is_empty() {
        assert_eq!(rest[..4], *b"OggS");
        let (lacing, mut data) = rest[27..].split_at(usize::from(rest[26]));
        for &length in lacing {
            let (segment, behind) = data.split_at(usize::from(length));
            packet.extend_from_slice(segment);
            data = behind;
            if length < 255 {
                packets.push(std::mem::take(&mut packet));
            }
        }
        rest = data;
    }
    packets.drain(..2);
    packets.into_iter().enumerate().map(|(index, packet)| (index as i64 * 20_000, packet)).collect()
}

/// A session's units in the order of their times, beginning at `from` µs.
fn units(index: u32, from: i64, video: &[(bool, Vec<u8>)], codec: Codec, audio: &[(i64, Vec<u8>)]) -> Vec<Unit> {
    let unit =
        |codec, time, key, data: &[u8]| Unit { pts: time, dts: time, ..unit(session(index), codec, 0, key, data) };
    let video =
        video.iter().enumerate().map(|(i, (key, data))| unit(Codec::H264, from + i as i64 * 40_000, *key, data));
    let audio = audio.iter().map(|(time, data)| unit(codec, from + time, true, data));
    let mut units: Vec<_> = video.chain(audio).collect();
    units.sort_by_key(|unit| unit.dts);
    units
}

/// A stream in a file of its own.
pub(super) struct Recording(PathBuf);

impl Recording {
    pub(super) fn new(name: &str, chunks: &[Chunk]) -> Recording {
        let path = std::env::temp_dir().join(format!("holdfast-{}-{name}.ts", std::process::id()));
        let data: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
        std::fs::write(&path, data).unwrap();
        Recording(path)
    }

    pub(super) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Decodes all of it without an error; returns how many packets of each kind there are, and all their times in seconds.
    pub(super) fn check(&self) -> (usize, usize, Vec<f64>) {
        let path = self.path();
        run("ffmpeg", &["-xerror", "-err_detect", "explode", "-i", path, "-map", "0", "-f", "null", "-"]);
        let entries = ["-show_entries", "packet=codec_type,pts_time", "-of", "csv=p=0"];
        let list = String::from_utf8(run("ffprobe", &[&entries[..], &[path]].concat())).unwrap();
        let packets: Vec<_> = list.lines().filter_map(|line| line.split_once(',')).collect();
        let video = packets.iter().filter(|(kind, _)| *kind == "video").count();
        let times = packets.iter().map(|(_, time)| time.trim_end_matches(',').parse().unwrap()).collect();
        (video, packets.len() - video, times)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // What stays behind in the directory for such things harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn push_all(stage: &mut Stage, units: Vec<Unit>) {
    for unit in units {
        let what = format!("{:?} {}", unit.codec, unit.dts);
        assert!(stage.push(unit), "{what}");
    }
}

#[test]
fn two_sessions_of_different_size_play_as_one() {
    let tracks = Tracks { audio: Some(Codec::Aac), video: Some(Codec::H264) };
    let audio = aac();
    let mut stage = Stage::new(1, tracks);
    push_all(&mut stage, units(1, 0, &pictures("320x180"), Codec::Aac, &audio));
    stage.muxer.session(session(2), tracks);
    push_all(&mut stage, units(2, 5_000_000, &pictures("640x360"), Codec::Aac, &audio));
    let (video, sound, times) = Recording::new("sizes", &stage.chunks).check();
    assert_eq!((video, sound), (100, 2 * audio.len()));
    assert!(times.iter().all(|time| (10.0..17.1).contains(time)));
}

#[test]
fn opus_plays_beside_video_in_mono_and_stereo() {
    for channels in ["1", "2"] {
        let audio = opus_packets(channels);
        let mut stage = Stage::new(1, BOTH);
        push_all(&mut stage, units(1, 0, &pictures("320x180"), Codec::Opus, &audio));
        let file = Recording::new(&format!("opus{channels}"), &stage.chunks);
        let (video, sound, _) = file.check();
        assert_eq!((video, sound), (50, audio.len()));
        let entries = ["-show_entries", "stream=codec_name,channels", "-of", "csv=p=0"];
        let streams = run("ffprobe", &[&entries[..], &[file.path()]].concat());
        let streams = String::from_utf8(streams).unwrap();
        assert!(streams.contains("h264") && streams.contains("opus,2"), "{streams}");
    }
}

/// Units of a recording of FFmpeg's as they come out of the demuxer, a picture at which decoding can start first.
fn recorded(video: Option<&[&str]>, audio: &[&str]) -> Vec<Unit> {
    let data = record(&[], video.map(|codec| ("320x180", codec)), Some(audio));
    let mut splicer = Splicer::new();
    let (mut demuxer, mut units) = (Demuxer::default(), VecDeque::new());
    for chunk in segments(&data).into_iter().filter_map(|segment| splicer.pass(segment)) {
        demuxer.read(&chunk.data, &mut units);
    }
    let micros = |ticks: i64| ticks * 100 / 9;
    let unit = |unit: AccessUnit| {
        let (pts, dts) = (micros(unit.pts), micros(unit.dts));
        Unit { from: session(1), codec: unit.codec, pts, dts, key: unit.key, data: unit.data }
    };
    let mut units: Vec<Unit> = units.into_iter().map(unit).collect();
    units.sort_by_key(|unit| unit.dts);
    units
}

fn codecs(recording: &Recording) -> String {
    let entries = ["-show_entries", "stream=codec_name", "-of", "csv=p=0"];
    String::from_utf8(run("ffprobe", &[&entries[..], &[recording.path()]].concat())).unwrap()
}

#[test]
fn h265_and_mpeg_audio_go_through_and_play() {
    let (mp3, low): (&[&str], &[&str]) =
        (&["-c:a", "libmp3lame"], &["-c:a", "libtwolame", "-ar", "24000", "-b:a", "64k"]);
    for (name, audio, found) in [("mp2", MP2, "mp2"), ("mp3", mp3, "mp3"), ("low", low, "mp2")] {
        let units = recorded(Some(X265), audio);
        let video = units.iter().filter(|unit| unit.codec == Codec::H265).count();
        let sound = units.len() - video;
        assert!(video == 49 && sound > 30, "{name}: {video}, {sound}");
        assert!(units.iter().any(|unit| unit.pts > unit.dts), "pictures are out of order");
        let mut stage = Stage::new(1, Tracks::default());
        let dropped = units.into_iter().map(|unit| stage.push(unit)).filter(|out| !out).count();
        let recording = Recording::new(&format!("h265-{name}"), &stage.chunks);
        let (pictures, frames, times) = recording.check();
        assert_eq!((pictures, frames + dropped), (video, sound), "{name}");
        assert!(dropped < 5 && times.len() == pictures + frames, "sound before the first picture: {dropped}");
        let codecs = codecs(&recording);
        assert!(codecs.contains("hevc") && codecs.contains(found), "{name}: {codecs}");
        // And where a player starts at the second key frame.
        let start = stage.chunks.iter().rposition(|chunk| chunk.random_access).unwrap();
        stage.chunks.drain(..start);
        assert_eq!(Recording::new(&format!("h265-{name}-later"), &stage.chunks).check().0, 24);
    }
}

#[test]
fn ac_3_is_known_by_its_registration() {
    let stream = run(
        "ffmpeg",
        &["-f", "lavfi", "-i", "sine=sample_rate=48000:duration=2", "-c:a", "ac3", "-b:a", "192k", "-f", "ac3", "-"],
    );
    let frames: Vec<_> = stream.chunks(768).enumerate().map(|(i, frame)| (i as i64 * 32_000, frame.to_vec())).collect();
    let mut stage = Stage::new(1, Tracks::default());
    push_all(&mut stage, units(1, 0, &[], Codec::Ac3, &frames));
    let recording = Recording::new("ac3", &stage.chunks);
    assert_eq!(recording.check().1, frames.len());
    assert_eq!(codecs(&recording).lines().next(), Some("ac3"));
}

#[test]
fn a_player_that_starts_at_a_random_access_point_misses_nothing() {
    let audio = opus_packets("2");
    let mut stage = Stage::new(1, BOTH);
    push_all(&mut stage, units(1, 0, &pictures("320x180"), Codec::Opus, &audio));
    let start = stage.chunks.iter().rposition(|chunk| chunk.random_access).unwrap();
    stage.chunks.drain(..start);
    let (video, _, _) = Recording::new("start", &stage.chunks).check();
    assert_eq!(video, 25);
}

#[test]
fn audio_alone_plays_and_video_may_come_later() {
    let (audio, video) = (opus_packets("2"), pictures("320x180"));
    let mut stage = Stage::new(1, AUDIO_ONLY);
    push_all(&mut stage, units(1, 0, &[], Codec::Opus, &audio));
    let (pictures, sound, _) = Recording::new("audio", &stage.chunks).check();
    assert_eq!((pictures, sound), (0, audio.len()));
    stage.muxer.session(session(2), BOTH);
    push_all(&mut stage, units(2, 2_100_000, &video, Codec::Opus, &audio));
    let (pictures, sound, _) = Recording::new("later", &stage.chunks).check();
    assert_eq!((pictures, sound), (50, 2 * audio.len()));
}
