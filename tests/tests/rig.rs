//! The figures that matter, with real publishers on loopback: who is refused how fast, who is let in after how long.
//!
//! The assertions leave room for a busy machine; what counts is the table this prints.

use std::io::Write as _;
use std::time::Duration;

use holdfast_tests::edge::Edge;
use holdfast_tests::http::{Request, Response};
use holdfast_tests::offer::Tracks;
use holdfast_tests::publisher::{Aiortc, Posted, Publisher};
use holdfast_tests::turn;
use holdfast_tests::viewer::Viewer;

const DEAD_AFTER: Duration = Duration::from_secs(2);
const TAKEOVER_WAIT: Duration = Duration::from_secs(3);
/// A refusal that waits for the second look takes 100 ms; the rest is for a machine that has other things to do.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    fn row(&mut self, situation: &str, wanted: &str, measured: String) {
        self.rows.push([situation.to_owned(), wanted.to_owned(), measured]);
    }

    /// Past the capture of the test runner: the table is wanted when the test passes, too.
    fn print(&self) {
        let mut out = std::io::stdout().lock();
        let mut text = String::from("\n<!-- rig -->\n| situation | wanted | measured |\n|---|---|---|\n");
        for [situation, wanted, measured] in &self.rows {
            text += &format!("| {situation} | {wanted} | {measured} |\n");
        }
        text += "<!-- /rig -->\n";
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("standard output takes the table");
    }
}

/// `12 ms`, or `12–34 ms` for more than one; tenths where whole milliseconds would say nothing.
fn range(times: &[Duration]) -> String {
    let text = |time: Duration| {
        let tenths = time.as_micros().div_ceil(100);
        if tenths < 100 { format!("{}.{}", tenths / 10, tenths % 10) } else { (tenths / 10).to_string() }
    };
    let least = times.iter().min().copied().map_or_else(String::new, text);
    let most = times.iter().max().copied().map_or_else(String::new, text);
    if least == most { format!("{least} ms") } else { format!("{least}–{most} ms") }
}

/// A publisher that has been on air for long enough to be known by its audio and video.
fn on_air(edge: &Edge, publisher: &Aiortc, tracks: Tracks) -> (Publisher, Posted) {
    let publisher = publisher.start();
    let posted = publisher.posted();
    assert_eq!(posted.status, 201, "{posted:?}");
    publisher.connected();
    edge.delivers("live", tracks);
    (publisher, posted)
}

fn kept(edge: &Edge, posted: &Posted) {
    let path = posted.location.as_deref().expect("a granted POST has a Location");
    let answer = Request::new("GET", path).send(edge.address());
    assert!((200..300).contains(&answer.status), "the holder is gone: {answer:?}");
}

fn refused(answer: &Response, reason: &str) {
    assert_eq!((answer.status, answer.reason().as_str()), (503, reason), "{}", answer.text());
    assert!(answer.took < REFUSED_WITHIN, "refused after {:?}", answer.took);
    let seconds: u64 = answer.must("Retry-After").parse().expect("Retry-After is in seconds");
    assert!((1..=60).contains(&seconds));
    assert_eq!(answer.field("Content-Type"), Some("application/problem+json"));
}

/// Three tries of a second client beside a holder that must be kept.
fn second_client(edge: &Edge, holder: &Posted, reason: &str, apart: Duration) -> Vec<Duration> {
    (0..3)
        .map(|_| {
            let answer = edge.post("live");
            refused(&answer, reason);
            kept(edge, holder);
            std::thread::sleep(apart);
            answer.took
        })
        .collect()
}

#[test]
fn figures() {
    let _turn = turn();
    let edge = Edge::plain();
    let url = edge.url("/whip/live");
    let mut table = Table { rows: Vec::new() };

    // SIGKILL and rejoin, three times in a row under one viewer; the next publisher is loaded and waits to POST.
    let viewer = Viewer::open(edge.address(), "live");
    let (mut holder, mut posted) = on_air(&edge, &Aiortc::to(&url), Tracks::Both);
    viewer.gets(50_000, Duration::from_secs(10));
    let mut granted = Vec::new();
    for _ in 0..3 {
        let mut next = Aiortc::to(&url).waiting().start();
        let killed = holder.kill();
        next.go();
        let answer = next.posted();
        assert_eq!(answer.status, 201, "{answer:?}");
        let after = answer.at - killed;
        // The last packet before the kill may be up to one audio packet old.
        assert!(after > DEAD_AFTER - Duration::from_millis(100), "granted {after:?} after the kill");
        assert!(answer.took < TAKEOVER_WAIT, "granted after {:?}", answer.took);
        next.connected();
        viewer.gets(20_000, Duration::from_secs(10));
        granted.push(after);
        (holder, posted) = (next, answer);
        edge.delivers("live", Tracks::Both);
    }
    table.row(
        "audio+video publisher SIGKILLed, immediate rejoin",
        "201 within 2100 ms",
        format!("201 after {}", range(&granted)),
    );

    // A healthy publisher and a second client.
    let times = second_client(&edge, &posted, "holder-live", Duration::from_millis(300));
    viewer.gets(20_000, Duration::from_secs(5));
    table.row(
        "healthy publisher, second client",
        "503 within 150 ms, kept",
        format!("503 after {}, kept", range(&times)),
    );

    // DELETE, then POST.
    let path = posted.location.clone().expect("a granted POST has a Location");
    let deleted = Request::new("DELETE", &path).send(edge.address());
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let answer = edge.post("live");
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(answer.took < REFUSED_WITHIN);
    table.row("DELETE, then POST", "201 at once", format!("201 after {}", range(&[answer.took])));
    assert_eq!(Request::new("DELETE", answer.must("Location")).send(edge.address()).status, 200);
    holder.kill();

    // POST without contention.
    let free: Vec<Duration> = (0..5)
        .map(|_| {
            let answer = edge.post("live");
            assert_eq!(answer.status, 201, "{}", answer.text());
            assert_eq!(Request::new("DELETE", answer.must("Location")).send(edge.address()).status, 200);
            answer.took
        })
        .collect();
    assert!(free.iter().all(|took| *took < REFUSED_WITHIN), "{free:?}");
    table.row("POST without contention", "201 within 300 ms", format!("201 after {}", range(&free)));

    // Video alone, at any cadence, proves nothing by its silence.
    for (fps, text) in [("30", "30 fps"), ("1", "1 fps"), ("0.2", "1 frame per 5 s")] {
        let (mut holder, posted) = on_air(&edge, &Aiortc::to(&url).video(fps).audio("none"), Tracks::Video);
        // Well beyond what would be death, were there audio.
        if fps == "0.2" {
            std::thread::sleep(Duration::from_millis(3500));
        }
        let times = second_client(&edge, &posted, "holder-without-audio", Duration::from_millis(700));
        table.row(
            &format!("video-only {text}, second client"),
            "503 at once, kept",
            format!("503 after {}, kept", range(&times)),
        );
        assert_eq!(Request::new("DELETE", posted.location.as_deref().unwrap()).send(edge.address()).status, 200);
        holder.kill();
    }

    // A microphone that failed after three seconds, and one picture in five.
    let (mut holder, posted) = on_air(&edge, &Aiortc::to(&url).video("0.2").audio("3"), Tracks::Both);
    holder.muted();
    std::thread::sleep(DEAD_AFTER + Duration::from_millis(500));
    let mut times = Vec::new();
    for _ in 0..3 {
        let answer = edge.post("live");
        // What tells its life is RTCP, once a second or so: within dead_after, not at the second look.
        assert_eq!((answer.status, answer.reason().as_str()), (503, "holder-live"), "{}", answer.text());
        assert!(answer.took < DEAD_AFTER + REFUSED_WITHIN, "refused after {:?}", answer.took);
        kept(&edge, &posted);
        times.push(answer.took);
    }
    table.row(
        "muted microphone, video 1 frame per 5 s, second client",
        "503, kept",
        format!("503 after {}, kept", range(&times)),
    );
    holder.kill();

    table.print();
}
