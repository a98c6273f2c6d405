//! Codecs beyond H.264 and AAC come through whole, whatever the origin speaks.

use std::time::Duration;

use holdfast_tests::edge::Edge;
use holdfast_tests::origin::{H264, H265, MPEG_AUDIO, Origin, ffmpeg_over_srt, rtsp};
use holdfast_tests::process::Process;
use holdfast_tests::turn;
use holdfast_tests::viewer::{self, Viewer};

const PATIENCE: Duration = Duration::from_secs(20);

/// An edge with one channel, `news`, of this source.
fn edge(source: &str, settings: &str) -> Edge {
    Edge::start(&format!("{settings}[[channel]]\nname = \"news\"\nsources = [\"{source}\"]\n"))
}

/// What a viewer gets is coded so, and decodes without a complaint.
fn shows(edge: &Edge, video: &str, audio: &str) {
    let viewer = Viewer::open(edge.address(), "news");
    viewer.gets(400_000, PATIENCE);
    let codecs = viewer::codecs(&viewer.file().display().to_string());
    assert_eq!((codecs["video"].as_str(), codecs["audio"].as_str()), (video, audio));
    let decoded = viewer::decode(viewer.file());
    // The file ends wherever it was looked at.
    let cut =
        |complaint: &&String| !complaint.contains("PES packet size mismatch") && !complaint.contains("Packet corrupt");
    let complaints: Vec<&String> = decoded.complaints.iter().filter(cut).collect();
    assert!(decoded.frames >= 50 && complaints.is_empty(), "{} frames: {complaints:?}", decoded.frames);
}

#[test]
fn h265_and_mpeg_audio_over_rtsp() {
    let _turn = turn();
    let (_origin, address) = rtsp();
    let source = format!("rtsp://{address}/h265");
    shows(&edge(&source, "[media]\naudio = \"opus\"\n"), "hevc", "mp2");
    shows(&edge(&source, "[media]\naudio = \"aac\"\n"), "hevc", "aac");
}

#[test]
fn h265_and_mpeg_audio_over_srt() {
    let _turn = turn();
    let port = 18_766;
    let _origin = Process::start("ffmpeg", ffmpeg_over_srt(port, &H265, &MPEG_AUDIO));
    shows(&edge(&format!("srt://127.0.0.1:{port}"), ""), "hevc", "mp2");
}

#[test]
fn h265_and_mpeg_audio_from_edge_to_edge_over_ovt() {
    let _turn = turn();
    let origin = Origin::encoding("320x180", &H265, &MPEG_AUDIO);
    let ovt = "[http]\nlisten = [\"127.0.0.1:0\"]\n[ovt]\nlisten = [\"127.0.0.1:19002\"]\n";
    let first = edge(&origin.url(), ovt);
    let second = edge("ovt://127.0.0.1:19002/live/news", "");
    shows(&second, "hevc", "mp2");
    shows(&first, "hevc", "mp2");
    assert_eq!(origin.opens().len(), 1);
}

/// Encoders and satellites send at one rate, and between frames nothing but the clock.
#[test]
fn a_multiplex_of_constant_rate() {
    let _turn = turn();
    let origin = Origin::encoding("320x180", &H264, &["-c:a", "aac", "-muxrate", "2M"]);
    let edge = edge(&origin.url(), "");
    let viewer = Viewer::open(edge.address(), "news");
    let seen = viewer.gets(400_000, PATIENCE);
    assert!(seen.random_access >= 3 && seen.discontinuities == 0, "{seen:?}");
    assert_eq!(viewer::complaints_of_packets(viewer.file()), Vec::<String>::new());
}
