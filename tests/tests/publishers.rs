//! Every kind of publisher is let in and seen by real players.

use std::collections::HashMap;
use std::time::Duration;

use holdfast_tests::edge::Edge;
use holdfast_tests::offer::Tracks;
use holdfast_tests::process::Process;
use holdfast_tests::publisher::{self, Aiortc, Publisher};
use holdfast_tests::viewer::{self, Player, Viewer};
use holdfast_tests::{prepared, turn};

/// The publisher is watched by a socket, by ffprobe and by a player that decodes.
fn is_seen(start: impl FnOnce(&str) -> Publisher) {
    let _turn = turn();
    let edge = Edge::plain();
    let publisher = start(&edge.url("/whip/live"));
    publisher.connected();
    let viewer = Viewer::open(edge.address(), "live");
    viewer.gets(30_000, Duration::from_secs(20));
    let wanted = [("audio", "aac"), ("video", "h264")].map(|(kind, codec)| (kind.to_owned(), codec.to_owned()));
    assert_eq!(viewer::codecs(&edge.url("/live/live.ts")), HashMap::from(wanted));
    Player::start(&edge.url("/live/live.ts")).plays(40, Duration::from_secs(20));
    assert_eq!(viewer.seen().fault, None);
}

#[test]
fn aiortc() {
    is_seen(|url| Aiortc::to(url).start());
}

#[test]
fn whipclientsink() {
    is_seen(|url| publisher::gstreamer("whipclientsink", url));
}

#[test]
fn whipsink() {
    is_seen(|url| publisher::gstreamer("whipsink", url));
}

#[test]
fn ffmpeg() {
    is_seen(publisher::ffmpeg);
}

#[test]
fn mpv_plays_what_is_published() {
    let _turn = turn();
    let edge = Edge::plain();
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    publisher.connected();
    edge.delivers("live", Tracks::Both);
    let mut command = prepared::tool("mpv");
    command.args(["--no-config", "--vo=null", "--ao=null", "--length=2", "--msg-level=all=warn"]);
    command.args(["--term-status-msg=at ${time-pos}", &edge.url("/live/live.ts")]);
    let mut mpv = Process::start("mpv", command);
    let status = mpv.wait(Duration::from_secs(30));
    assert!(status.success(), "{}", mpv.log());
}

#[test]
fn one_viewer_sees_every_change_of_publisher() {
    let _turn = turn();
    let edge = Edge::plain();
    let url = edge.url("/whip/live");
    let viewer = Viewer::open(edge.address(), "live");
    let mut first = Aiortc::to(&url).start();
    first.connected();
    viewer.gets(30_000, Duration::from_secs(10));
    let mut player = Player::start(&edge.url("/live/live.ts"));
    player.plays(30, Duration::from_secs(20));

    // Killed, and another kind of publisher comes at once, with another picture size, cadence and encoder each time.
    first.kill();
    let mut second = publisher::gstreamer("whipsink", &url);
    second.connected();
    viewer.gets(30_000, Duration::from_secs(15));
    player.plays(30, Duration::from_secs(20));

    second.kill();
    let mut third = Aiortc::to(&url).size("640x360").start();
    third.connected();
    viewer.gets(30_000, Duration::from_secs(15));
    player.plays(30, Duration::from_secs(20));

    // Ended properly.
    third.leave();
    let mut fourth = publisher::gstreamer("whipclientsink", &url);
    fourth.connected();
    let seen = viewer.gets(30_000, Duration::from_secs(15));
    player.plays(30, Duration::from_secs(20));
    fourth.kill();

    assert!(seen.random_access >= 4, "each publisher begins with a random access point: {seen:?}");
    let decoded = viewer::decode(viewer.file());
    assert!(decoded.frames > 200, "{decoded:?}");
    assert_eq!(decoded.complaints, Vec::<String>::new());
}
