//! Real players of HLS: ffmpeg, mpv, hls.js in Chromium.

use std::time::{Duration, Instant};

use holdfast_tests::browser::Browser;
use holdfast_tests::edge::Edge;
use holdfast_tests::offer::Tracks;
use holdfast_tests::process::Process;
use holdfast_tests::publisher::Aiortc;
use holdfast_tests::viewer::{self, Viewer};
use holdfast_tests::{eventually, prepared, turn};
use rustix::process::Signal;

const SECOND: Duration = Duration::from_secs(1);
/// Long enough for a channel to start, for three segments, and for a browser on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// An edge with one channel, `news`, that shows a test picture.
fn edge() -> Edge {
    Edge::start("[[channel]]\nname = \"news\"\nsources = [\"test:\"]\n")
}

fn viewers(edge: &Edge) -> u64 {
    edge.channel("news")["viewers"].as_u64().expect("a number of viewers")
}

/// An ffmpeg that plays `seconds` of a stream, as fast as it comes, and says what it complains of.
fn ffmpeg(url: &str, seconds: u32) -> Process {
    let mut command = prepared::tool("ffmpeg");
    command.args(["-nostdin", "-hide_banner", "-v", "warning", "-stats_period", "0.2", "-progress", "pipe:1"]);
    command.args([
        "-i",
        url,
        "-t",
        &seconds.to_string(),
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "-1",
        "-f",
        "null",
        "-",
    ]);
    Process::start("ffmpeg", command)
}

fn frames(player: &Process) -> u64 {
    let lines = player.lines();
    lines.iter().rev().find_map(|line| line.text.strip_prefix("frame=")?.trim().parse().ok()).unwrap_or(0)
}

/// What it said beside its progress.
fn complaints(player: &Process) -> Vec<String> {
    let is_progress = |text: &str| {
        text.split_once('=').is_some_and(|(key, _)| key.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'))
    };
    let lines = player.lines().into_iter().map(|line| line.text);
    viewer::beside_the_scaler(lines.filter(|text| !text.is_empty() && !is_progress(text)))
}

#[test]
fn ffmpeg_plays_a_channel_and_is_one_viewer() {
    let _turn = turn();
    let edge = edge();
    let codecs = viewer::codecs(&edge.url("/live/news/index.m3u8"));
    assert_eq!(codecs.get("video").map(String::as_str), Some("h264"), "{codecs:?}");
    // ffprobe has left without a word; its place is given up in its time.
    eventually("nobody watches", 20 * SECOND, || (viewers(&edge) == 0).then_some(()));
    let mut player = ffmpeg(&edge.url("/live/news/index.m3u8"), 12);
    eventually("pictures", PATIENCE, || (frames(&player) > 50).then_some(()));
    let mut most = 0;
    let status = loop {
        most = most.max(viewers(&edge));
        assert_eq!(viewers(&edge), 1, "however many connections it asks on");
        if let Some(status) = player.ended() {
            break status;
        }
        std::thread::sleep(SECOND / 5);
    };
    assert!(status.success(), "{}", player.log());
    assert_eq!((most, complaints(&player)), (1, Vec::<String>::new()));
    assert!(frames(&player) >= 12 * 24, "{} frames in 12 s", frames(&player));
    eventually("nobody watches", 20 * SECOND, || (viewers(&edge) == 0).then_some(()));
}

#[test]
fn mpv_asks_for_the_index_twice_and_is_one_viewer() {
    let _turn = turn();
    let edge = edge();
    let mut command = prepared::tool("mpv");
    command.args([
        "--no-config",
        "--vo=null",
        "--ao=null",
        "--length=8",
        "--msg-level=all=warn",
        "--term-status-msg=at ${=time-pos}",
    ]);
    command.args(["--no-input-terminal", &edge.url("/live/news/index.m3u8")]);
    let mut player = Process::start("mpv", command);
    eventually("it watches", PATIENCE, || (viewers(&edge) > 0).then_some(()));
    let begin = Instant::now();
    let mut most = 0;
    let status = eventually("its end", PATIENCE, || {
        most = most.max(viewers(&edge));
        player.ended()
    });
    assert!(status.success(), "{}", player.log());
    assert!(begin.elapsed() > 5 * SECOND, "it played in {:?}: {}", begin.elapsed(), player.log());
    assert_eq!(most, 1, "{}", player.log());
}

#[test]
fn hls_js_plays_in_a_browser_and_comes_back_after_a_long_sleep() {
    let _turn = turn();
    let edge = edge();
    let mut browser = Browser::start();
    browser.open_page("hls_js.html");
    browser.until("hls.js", PATIENCE, "typeof Hls === 'function'");
    browser.value(&format!("play({:?})", edge.url("/live/news/index.m3u8")));
    browser.until("five seconds played", PATIENCE, "at() > 5");
    // Sound begins up to a frame, 21 ms, after the picture that a segment begins with; hls.js may step over that once.
    let faults = browser.value("JSON.stringify(faults)");
    assert!(faults == "[]" || faults == "[\"bufferSeekOverHole\"]", "{faults}");
    assert_eq!(viewers(&edge), 1);
    // A lid is closed: nothing is asked for until nobody knows it any more.
    browser.freeze();
    eventually("its place is given up", 20 * SECOND, || (viewers(&edge) == 0).then_some(()));
    browser.thaw();
    let before = browser.value("at()").as_f64().expect("a time");
    browser.until("it plays on", PATIENCE, &format!("at() > {before} + 5"));
    assert!(!browser.value("JSON.stringify(faults)").as_str().expect("a list").contains("fatal"));
    assert_eq!(viewers(&edge), 1);
}

#[test]
fn ffmpeg_that_was_stopped_plays_on() {
    let _turn = turn();
    let edge = edge();
    let mut player = ffmpeg(&edge.url("/live/news/index.m3u8"), 60);
    eventually("pictures", PATIENCE, || (frames(&player) > 50).then_some(()));
    player.signal(Signal::STOP);
    eventually("its place is given up", 20 * SECOND, || (viewers(&edge) == 0).then_some(()));
    player.signal(Signal::CONT);
    let before = frames(&player);
    eventually("more pictures", PATIENCE, || {
        assert!(player.ended().is_none(), "{}", player.log());
        (frames(&player) > before + 200).then_some(())
    });
    assert_eq!(viewers(&edge), 1);
    player.kill();
}

#[test]
fn a_publisher_that_sends_key_frames_only_when_asked_is_asked() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut browser = Browser::start();
    browser.open(&edge.url("/publish/live?auto=1&source=test"));
    edge.delivers("live", Tracks::Both);
    let mut player = ffmpeg(&edge.url("/live/live/index.m3u8"), 10);
    let status = player.wait(PATIENCE);
    assert!(status.success() && frames(&player) > 100, "{} frames: {}", frames(&player), player.log());
    assert_eq!(complaints(&player), Vec::<String>::new());
    let playlist = String::from_utf8(edge.get("/live/live/index.m3u8").body).expect("text");
    let media = playlist.lines().last().expect("a media playlist").to_owned();
    let list = String::from_utf8(edge.get(&format!("/live/live/{media}")).body).expect("text");
    assert!(!list.contains("#EXT-X-DISCONTINUITY\n"), "{list}");
    let target = list.lines().find_map(|line| line.strip_prefix("#EXT-X-TARGETDURATION:")).expect("a target duration");
    let longest =
        list.lines().filter_map(|line| line.strip_prefix("#EXTINF:")?.trim_end_matches(',').parse::<f64>().ok());
    assert!(longest.fold(0.0, f64::max) < 3.0, "key frames are asked for after two seconds of {target}: {list}");
}

#[test]
fn a_publisher_that_comes_back_is_a_discontinuity_and_the_player_plays_on() {
    let _turn = turn();
    let edge = Edge::plain();
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    edge.delivers("live", Tracks::Both);
    let mut player = ffmpeg(&edge.url("/live/live/index.m3u8"), 40);
    eventually("pictures", PATIENCE, || (frames(&player) > 50).then_some(()));
    drop(publisher);
    eventually("a free slot", PATIENCE, || edge.session("live").is_null().then_some(()));
    let _publisher = Aiortc::to(&edge.url("/whip/live")).start();
    edge.delivers("live", Tracks::Both);
    let before = frames(&player);
    eventually("pictures of the second", PATIENCE, || {
        assert!(player.ended().is_none(), "{}", player.log());
        (frames(&player) > before + 150).then_some(())
    });
    player.kill();
    // Beside it, whoever reads the stream as it comes.
    Viewer::open(edge.address(), "live").gets(20_000, PATIENCE);
}
