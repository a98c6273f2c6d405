//! Channels from origins that fail in every way, with real viewers that must not notice more than the outage.
//!
//! The assertions leave room for a busy machine; what counts is the tables this prints.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_tests::edge::Edge;
use holdfast_tests::network::{Apart, Link};
use holdfast_tests::origin::{Mood, Origin, ffmpeg_listening};
use holdfast_tests::process::Process;
use holdfast_tests::viewer::{self, Player, Viewer};
use holdfast_tests::{AT_ONCE, eventually, ms, turn};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// An edge with one channel, `news`.
fn edge(sources: &[String], settings: &str) -> Edge {
    Edge::start(&channel(sources, settings))
}

fn channel(sources: &[String], settings: &str) -> String {
    format!("[[channel]]\nname = \"news\"\nsources = {sources:?}\n{settings}\n")
}

/// Past the capture of the test runner: tables are wanted when the test passes, too.
fn print(name: &str, head: &str, rows: &[String]) {
    let columns = head.matches('|').count() - 1;
    let text =
        format!("\n<!-- {name} -->\n{head}\n|{}\n{}\n<!-- /{name} -->\n", "---|".repeat(columns), rows.join("\n"));
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("standard output takes the table");
}

/// How long nothing came to the viewer since `since`, as it comes again.
fn gap_after(viewer: &Viewer, since: Instant, limit: Duration) -> Duration {
    // What was under way still comes.
    std::thread::sleep(Duration::from_millis(300));
    let (before, still) = (viewer.seen(), viewer.seen().last.unwrap_or(since));
    let again = eventually("media again", limit, || {
        let seen = viewer.seen();
        assert!(!seen.ended && seen.fault.is_none(), "{seen:?}");
        (seen.bytes > before.bytes).then_some(seen.last).flatten()
    });
    again - still.max(since)
}

/// The file that a viewer wrote decodes; how many complaints about references that are missing it may have.
fn decodes(viewer: &Viewer, frames: u64) {
    let decoded = viewer::decode(viewer.file());
    assert!(decoded.frames >= frames, "{} frames of {frames}: {:?}", decoded.frames, decoded.complaints);
}

#[test]
fn p1_p2_p3_a_silent_origin_and_three_edges() {
    let _turn = turn();
    let mut rows = Vec::new();
    for (policy, settings, most) in
        [("growing pauses (the default)", "", 9), ("a fixed cadence", "retry_backoff_max = \"3s\"", 18)]
    {
        let origin = Origin::start("320x180");
        let edges: Vec<Edge> = (0..3).map(|_| edge(&[origin.url()], settings)).collect();
        let viewers: Vec<Viewer> = edges.iter().map(|edge| Viewer::open(edge.address(), "news")).collect();
        for viewer in &viewers {
            viewer.gets(100_000, PATIENCE);
        }
        assert_eq!(origin.opens().len(), 3, "one connection an edge");
        let silent = origin.be(Mood::Silent);
        std::thread::sleep(20 * SECOND);
        let opens = origin.opens_since(silent);
        for edge in &edges {
            let channel = edge.channel("news");
            assert_eq!(channel["state"], "silent", "{channel}");
            let age = channel["last_media_ms"].as_u64().unwrap();
            assert!((18_000..22_000).contains(&age), "the true time since the last media: {channel}");
        }
        let back = origin.be(Mood::Good);
        let before: Vec<u64> = viewers.iter().map(|viewer| viewer.seen().bytes).collect();
        let mut delays = Vec::new();
        for (viewer, before) in viewers.iter().zip(before) {
            // What the encoder made meanwhile is missing: a gap, and no new connection for the player.
            let seen = eventually("media again", 5 * SECOND, || Some(viewer.seen()).filter(|seen| seen.bytes > before));
            assert!(!seen.ended, "{seen:?}");
            delays.push(seen.last.unwrap().saturating_duration_since(back));
        }
        assert!(opens <= most, "{opens} opens with {policy}");
        assert_eq!(origin.opens_since(back), 0, "nobody opens for media that comes on the kept connection");
        let (opens_each, worst) = (opens as f64 / 3.0, delays.iter().max().copied().unwrap_or_default());
        assert!(worst < AT_ONCE, "{delays:?}");
        rows.push(format!("| {policy} | {opens} | {opens_each:.1} | {} ms |", ms(worst)));
    }
    print(
        "opens",
        "| policy | opens in 20 s of silence, 3 edges | an edge | media at the viewers after it resumes |",
        &rows,
    );
}

#[test]
fn p12_p16_p17_failover_and_failback() {
    let _turn = turn();
    let mut rows = Vec::new();
    let (primary, backup) = (Origin::start("320x180"), Origin::start("320x180"));
    let sources = [primary.url(), backup.url()];
    type Fault = fn(&Origin) -> Instant;
    let faults: [(&str, Fault, u64); 2] = [
        ("falls silent, connection stands", |origin| origin.be(Mood::Silent), 5_500),
        (
            "ends the connection, then takes it and is mute",
            |origin| {
                origin.be(Mood::Mute);
                origin.end_all()
            },
            2_500,
        ),
    ];
    for (what, fault, most) in faults {
        primary.be(Mood::Good);
        let edge = edge(&sources, "");
        let viewer = Viewer::open(edge.address(), "news");
        let mut player = Player::start(&edge.url("/live/news.ts"));
        viewer.gets(300_000, PATIENCE);
        player.plays(25, PATIENCE);
        std::thread::sleep(5 * SECOND);
        let began = fault(&primary);
        let gap = gap_after(&viewer, began, PATIENCE);
        assert!(ms(gap) <= u128::from(most), "{what}: {gap:?}");
        player.plays(50, PATIENCE);
        assert_eq!(edge.channel("news")["kept"]["index"], 1, "{}", edge.channel("news"));
        // It shows no media: it never takes over, however long that lasts.
        std::thread::sleep(8 * SECOND);
        assert_eq!(edge.channel("news")["switches"], 1, "no flap: {}", edge.channel("news"));
        let back = primary.be(Mood::Good);
        let returned = eventually("failback", 60 * SECOND, || {
            assert!(!viewer.seen().ended);
            (edge.channel("news")["kept"]["index"] == 0).then(Instant::now)
        });
        viewer.gets(100_000, PATIENCE);
        player.plays(50, PATIENCE);
        let seen = viewer.seen();
        assert!(!seen.ended && seen.fault.is_none(), "{seen:?}");
        decodes(&viewer, 300);
        let failback = returned - back;
        rows.push(format!("| {what} | {} ms | {:.1} s, no gap |", ms(gap), failback.as_secs_f64()));
    }
    print("failover", "| the primary … | viewer without media | back on the primary after it works again |", &rows);
}

/// The first origin is the program itself, apart in a network namespace; the second one, outside, is of ffmpeg's making.
#[test]
fn links_packets_and_processes_that_fail() {
    let _turn = turn();
    let apart = Apart::new();
    let inside =
        format!("[http]\nlisten = [\"{}:8070\"]\n[[channel]]\nname = \"test\"\nsources = [\"test:\"]\n", Apart::INSIDE);
    let launch = |program: &Path| apart.inside(program);
    let mut origin = Edge::start_by(&inside, launch);
    let backup = Origin::start("640x360");
    let edge = edge(&[origin.url("/live/test.ts"), backup.url()], "");
    let viewer = Viewer::open(edge.address(), "news");
    let mut player = Player::start(&edge.url("/live/news.ts"));
    player.plays(25, PATIENCE);
    let mut rows = Vec::new();
    let mut ordeal =
        |what: &str, fail: &mut dyn FnMut(&mut Edge), mend: &mut dyn FnMut(&mut Edge), origin: &mut Edge| {
            std::thread::sleep(6 * SECOND);
            let began = Instant::now();
            fail(origin);
            let gap = gap_after(&viewer, began, PATIENCE);
            assert!(gap <= 7 * SECOND, "{what}: {gap:?}");
            player.plays(50, PATIENCE);
            eventually("the backup", PATIENCE, || (edge.channel("news")["kept"]["index"] == 1).then_some(()));
            mend(origin);
            let mended = Instant::now();
            let returned =
                eventually("failback", 90 * SECOND, || (edge.channel("news")["kept"]["index"] == 0).then(Instant::now));
            player.plays(50, PATIENCE);
            assert!(!viewer.seen().ended && viewer.seen().fault.is_none(), "{what}: {:?}", viewer.seen());
            rows.push(format!("| {what} | {} ms | {:.1} s |", ms(gap), (returned - mended).as_secs_f64()));
        };
    ordeal("link down and up", &mut |_| apart.link(Link::Down), &mut |_| apart.link(Link::Up), &mut origin);
    ordeal(
        "packets vanish without a reset",
        &mut |_| apart.packets(Link::Down),
        &mut |_| apart.packets(Link::Up),
        &mut origin,
    );
    ordeal("process stopped and continued", &mut |origin| origin.freeze(), &mut |origin| origin.thaw(), &mut origin);
    ordeal(
        "process killed and restarted",
        &mut |origin| origin.kill(),
        &mut |origin| *origin = Edge::start_by(&inside, |program: &Path| apart.inside(program)),
        &mut origin,
    );
    decodes(&viewer, 500);
    print("ordeals", "| the origin's … | viewer without media | back after it works again |", &rows);
}

#[test]
fn p15_p10_many_viewers_share_one_connection_and_zap() {
    let _turn = turn();
    let origin = Origin::start("320x180");
    let edge = edge(&[origin.url()], "");
    let viewers: Vec<Viewer> = std::thread::scope(|scope| {
        let open = || Viewer::open(edge.address(), "news");
        let opening: Vec<_> = (0..20).map(|_| scope.spawn(open)).collect();
        opening.into_iter().map(|viewer| viewer.join().unwrap()).collect()
    });
    for viewer in &viewers {
        viewer.gets(20_000, PATIENCE);
    }
    assert_eq!(origin.opens().len(), 1);
    drop(viewers);
    for pause in [10, 100, 1_000] {
        std::thread::sleep(Duration::from_millis(pause));
        Viewer::open(edge.address(), "news").gets(20_000, PATIENCE);
    }
    assert_eq!(origin.opens().len(), 1, "nobody is sent away while the last one leaves");
}

#[test]
fn p13_a_refusal_reaches_the_viewer_at_once() {
    let _turn = turn();
    let origin = Origin::start("320x180");
    origin.be(Mood::Missing);
    let edge = edge(&[origin.url()], "retries = 0");
    let asked = Instant::now();
    let answer = edge.get("/live/news.ts");
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    assert_eq!((answer.status, answer.reason().as_str()), (502, "no-source"), "{answer:?}");
    edge.says("the origin answers 404");
}

#[test]
fn p21_a_channel_that_leads_back_in_a_circle_is_refused() {
    let _turn = turn();
    let at = |port: u16, source: u16| {
        let source = format!("http://127.0.0.1:{source}/live/news.ts");
        Edge::start(&format!("[http]\nlisten = [\"127.0.0.1:{port}\"]\n{}", channel(&[source], "")))
    };
    let (first, second) = (at(18_098, 18_099), at(18_099, 18_098));
    let answer = first.get("/live/news.ts");
    assert_eq!((answer.status, answer.reason().as_str()), (502, "no-source"), "{answer:?}");
    second.says("508");
}

#[test]
fn two_edges_chained_over_http_and_over_ovt() {
    let _turn = turn();
    let origin = Origin::start("320x180");
    let ovt = "[http]\nlisten = [\"127.0.0.1:0\"]\n[ovt]\nlisten = [\"127.0.0.1:19000\"]\n";
    let first = Edge::start(&format!("{ovt}{}", channel(&[origin.url()], "")));
    for source in [first.url("/live/news.ts"), String::from("ovt://127.0.0.1:19000/live/news")] {
        let second = edge(std::slice::from_ref(&source), "");
        let viewer = Viewer::open(second.address(), "news");
        let mut player = Player::start(&second.url("/live/news.ts"));
        player.plays(100, PATIENCE);
        viewer.gets(200_000, PATIENCE);
        decodes(&viewer, 75);
        let codecs = viewer::codecs(&viewer.file().display().to_string());
        assert_eq!((codecs["video"].as_str(), codecs["audio"].as_str()), ("h264", "aac"), "{source}");
    }
    assert_eq!(origin.opens().len(), 1);
}

#[test]
fn an_origin_of_ffmpegs_own_is_pulled() {
    let _turn = turn();
    let port = 18_765;
    let mut origin = Process::start("ffmpeg", ffmpeg_listening(port));
    let edge = edge(&[format!("http://127.0.0.1:{port}/stream.ts")], "");
    eventually("ffmpeg listens", PATIENCE, || {
        assert!(origin.ended().is_none(), "{}", origin.log());
        Command::new("sh").args(["-c", &format!("ss -ltn | grep -q :{port}")]).status().ok()?.success().then_some(())
    });
    let viewer = Viewer::open(edge.address(), "news");
    viewer.gets(100_000, PATIENCE);
    decodes(&viewer, 10);
}

/// P11, with media: a player whose network is gone is no viewer for long, however little there is to send to it.
#[test]
fn p11_a_player_whose_network_is_gone_is_ended() {
    let _turn = turn();
    let apart = Apart::new();
    let edge = Edge::start(&format!(
        "[http]\nlisten = [\"127.0.0.1:0\", \"{}:8071\"]\n[http.limits]\nwrite_timeout = \"2s\"\n\
         [[channel]]\nname = \"news\"\nsources = [\"test:\"]\nidle_timeout = \"2s\"\n",
        Apart::OUTSIDE
    ));
    let mut player = apart.inside(Path::new("curl"));
    let url = format!("http://{}:8071/live/news.ts", Apart::OUTSIDE);
    let mut player = player.args(["--silent", "--output", "/dev/null", &url]).spawn().expect("curl is there");
    let viewers = || edge.channel("news")["viewers"].as_u64();
    eventually("a viewer", PATIENCE, || (viewers() == Some(1)).then_some(()));
    std::thread::sleep(2 * SECOND);
    apart.packets(Link::Down);
    let lost = Instant::now();
    eventually("its end", PATIENCE, || (viewers() == Some(0)).then_some(()));
    assert!(lost.elapsed() >= SECOND, "a short gap is none");
    eventually("nothing is left", PATIENCE, || (edge.channel("news")["state"] == "off").then_some(()));
    println!("a player whose network is gone is ended after {} ms", ms(lost.elapsed()));
    player.kill().and_then(|()| player.wait()).expect("it ends");
}
