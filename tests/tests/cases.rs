//! Cases of publishing that need a real peer; the numbers are those of the list of cases.

use std::time::{Duration, Instant};

use holdfast_tests::browser::Browser;
use holdfast_tests::edge::Edge;
use holdfast_tests::http::Request;
use holdfast_tests::network::{TwoWays, Way};
use holdfast_tests::offer::{self, Credentials, Tracks};
use holdfast_tests::process::{Holdings, Process};
use holdfast_tests::publisher::{self, Aiortc, Publisher};
use holdfast_tests::viewer::Viewer;
use holdfast_tests::{AT_ONCE, eventually, ms, prepared, turn};

fn on_air(edge: &Edge, publisher: &Aiortc) -> (Publisher, String) {
    let publisher = publisher.start();
    let posted = publisher.posted();
    assert_eq!(posted.status, 201, "{posted:?}");
    publisher.connected();
    edge.delivers("live", Tracks::Both);
    (publisher, posted.location.expect("a granted POST has a Location"))
}

fn there(edge: &Edge, path: &str) -> u16 {
    Request::new("GET", path).send(edge.address()).status
}

/// W7: A was displaced; its client later sends DELETE for its old session.
#[test]
fn a_late_delete_of_the_displaced_touches_nobody() {
    let _turn = turn();
    let edge = Edge::plain();
    let url = edge.url("/whip/live");
    let (mut a, gone) = on_air(&edge, &Aiortc::to(&url));
    a.kill();
    let (_b, lives) = on_air(&edge, &Aiortc::to(&url));
    assert_eq!(there(&edge, &gone), 404);
    assert_eq!(Request::new("DELETE", &gone).send(edge.address()).status, 404);
    assert_eq!(there(&edge, &lives), 204);
    Viewer::open(edge.address(), "live").gets(30_000, Duration::from_secs(10));
}

/// W8: A is displaced while it stands still, and then goes on sending: it is of a kind that does not notice.
#[test]
fn nothing_of_the_displaced_reaches_the_slot() {
    let _turn = turn();
    let edge = Edge::plain();
    let url = edge.url("/whip/live");
    let viewer = Viewer::open(edge.address(), "live");
    let a = publisher::gstreamer("whipsink", &url);
    a.connected();
    edge.delivers("live", Tracks::Both);
    viewer.gets(30_000, Duration::from_secs(10));
    a.freeze();
    let (_b, lives) = on_air(&edge, &Aiortc::to(&url).size("160x120"));
    a.thaw();
    viewer.gets(60_000, Duration::from_secs(20));
    assert_eq!(there(&edge, &lives), 204);

    let widths = widths(&viewer);
    let change = widths.iter().position(|width| *width == 160).expect("B is seen");
    assert!(widths[..change].iter().all(|width| *width == 320), "{widths:?}");
    assert!(widths[change..].iter().all(|width| *width == 160), "A came back: {widths:?}");
}

/// The width of each picture the viewer got.
fn widths(viewer: &Viewer) -> Vec<u32> {
    let output = prepared::tool("ffprobe")
        .args(["-v", "quiet", "-select_streams", "v", "-show_entries", "frame=width", "-of", "csv=p=0"])
        .arg(viewer.file())
        .output()
        .expect("ffprobe runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.trim_end_matches(',').trim().parse().ok()).collect()
}

/// W9: while A is dead, POSTs come with a wrong token and with none.
#[test]
fn a_wrong_token_does_not_touch_a_dead_holder() {
    let _turn = turn();
    let edge = Edge::start("[[endpoint]]\nname = \"live\"\ntokens = [\"open-sesame\"]\n");
    let (mut a, session) = on_air(&edge, &Aiortc::to(&edge.url("/whip/live")).token("open-sesame"));
    a.kill();
    std::thread::sleep(Duration::from_millis(2500));
    for authorization in
        [None, Some("Bearer wrong"), Some("Basic b3BlbiBzZXNhbWU="), Some("Bearer "), Some("open-sesame")]
    {
        let mut request = Request::offer("/whip/live", &offer::plain());
        if let Some(authorization) = authorization {
            request = request.field("Authorization", authorization);
        }
        let answer = request.send(edge.address());
        assert_eq!(answer.status, 401, "{authorization:?}: {answer:?}");
        assert!(answer.must("WWW-Authenticate").starts_with("Bearer"), "{answer:?}");
    }
    let look = Request::new("GET", &session).field("Authorization", "Bearer open-sesame").send(edge.address());
    assert_eq!(look.status, 204, "A still holds its slot");
    // And the right token takes it over.
    let (_b, _) = on_air(&edge, &Aiortc::to(&edge.url("/whip/live")).token("open-sesame"));
}

/// W17: the edge itself is killed and started again.
#[test]
fn a_killed_edge_is_free_at_once_when_it_is_back() {
    let _turn = turn();
    let mut edge = Edge::plain();
    let (_a, _) = on_air(&edge, &Aiortc::to(&edge.url("/whip/live")));
    edge.restart_after_kill();
    let answer = edge.post("live");
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(answer.took < AT_ONCE, "{:?}", answer.took);
}

/// W18: A is displaced, and learns it long before its own timers would tell.
#[test]
fn the_displaced_is_told() {
    let _turn = turn();
    let edge = Edge::start("[[endpoint]]\nname = \"live\"\ntakeover = \"newest-wins\"\n");
    let url = edge.url("/whip/live");
    let (a, gone) = on_air(&edge, &Aiortc::to(&url));
    let displaced = Instant::now();
    let answer = edge.post("live");
    assert_eq!(answer.status, 201, "{}", answer.text());
    let told = a.told(Duration::from_secs(10)) - displaced;
    assert!(told < AT_ONCE, "told after {told:?}");
    assert_eq!(there(&edge, &gone), 404);
}

/// W20: two hundred publishers, each killed and followed by the next, leave nothing behind.
#[test]
fn two_hundred_rounds_leave_nothing_behind() {
    let _turn = turn();
    let rounds: u32 = std::env::var("TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let edge = Edge::start(
        "[[endpoint]]\nname = \"live\"\ndead_after = \"200ms\"\npoll = \"20ms\"\ntakeover_wait = \"5s\"\n\
         inactivity_timeout = \"1s\"\nsetup_timeout = \"5s\"\n\
         [live]\nbuffer = \"1MiB\"\n",
    );
    let url = edge.url("/whip/live");
    let viewer = Viewer::open(edge.address(), "live");
    let start = Instant::now();
    let mut holder: Option<Publisher> = None;
    let mut before = None;
    let mut half = 0;
    for round in 0..rounds {
        // It is loaded while the last one is on air, and killed as soon as it was heard and seen.
        let mut next = publisher::gstreamer_waiting("whipsink", &url);
        if let Some(mut holder) = holder.take() {
            holder.kill();
        }
        // Two rounds of everything that is made once, without a session: that is where it must come back to.
        if round == 2 {
            before = Some(quiet(&edge));
        }
        next.go();
        next.connected();
        edge.delivers("live", Tracks::Both);
        if round == rounds / 2 {
            half = edge.holdings().resident;
        }
        holder = Some(next);
    }
    let end = edge.holdings().resident;
    drop(holder);
    let before = before.expect("more than two rounds");
    let after = eventually("threads and descriptors as before", Duration::from_secs(15), || {
        let now = edge.holdings();
        (now.threads <= before.threads && now.descriptors <= before.descriptors).then_some(now)
    });
    println!(
        "{rounds} rounds in {:?}; before {before:?}, after {after:?}, half way {half} kB, end {end} kB",
        start.elapsed()
    );
    assert!(end < half + 6_000, "resident memory grew from {half} kB half way to {end} kB");
    assert_eq!(viewer.seen().fault, None);
    assert!(!viewer.seen().ended, "the viewer stayed");
    assert_eq!(edge.session("live"), serde_json::Value::Null);
}

/// What the edge holds when no session is left of the last one.
fn quiet(edge: &Edge) -> Holdings {
    eventually("the end of every session", Duration::from_secs(15), || edge.session("live").is_null().then_some(()));
    // Teardown runs on threads of its own, and they go last.
    let mut last = edge.holdings();
    eventually("no more threads going", Duration::from_secs(15), || {
        std::thread::sleep(Duration::from_millis(500));
        let now = edge.holdings();
        let same = now.threads == last.threads && now.descriptors == last.descriptors;
        last = now;
        same.then_some(now)
    })
}

/// Without a restart nothing comes for as long as one likes to wait.
const LASTING: Duration = Duration::from_secs(12);

/// W21: the publisher's first way to the edge dies; it restarts ICE over the second one.
#[test]
fn a_publisher_changes_its_network_within_its_session() {
    let _turn = turn();
    let ways = TwoWays::new();
    let address = TwoWays::EDGE;
    let edge = Edge::start(&format!(
        "[http]\nlisten = [\"{address}:0\"]\n[ice]\naddresses = [\"{address}\"]\n[[endpoint]]\nname = \"live\"\n"
    ));
    let mut browser = Browser::start_by(ways.inside(&prepared::python()), None);
    browser.open_whip_whep();
    browser.value(&format!("window.publish({:?})", edge.url("/whip/live")));
    edge.delivers("live", Tracks::Both);
    let viewer = Viewer::open(edge.address(), "live");
    viewer.gets(50_000, Duration::from_secs(10));
    let before = edge.session("live");

    // A browser looks at its networks every few seconds; what is measured begins when it knows of the change.
    ways.down(Way::First);
    ways.up(Way::Second);
    browser.until("the second way alone in the browser", Duration::from_secs(20), GATHERS_SECOND_ALONE);
    let arrived = edge.session("live");
    let restarted = Instant::now();
    browser.value("window.whip.restart()");
    for kind in ["audio", "video"] {
        let arrived = arrived[kind]["packets"].as_u64();
        eventually(&format!("{kind} over the second way"), LASTING, || {
            (edge.session("live")[kind]["packets"].as_u64() > arrived).then_some(())
        });
    }
    let back = restarted.elapsed();
    println!("audio and video were back {} ms after the restart began", ms(back));
    viewer.gets(50_000, Duration::from_secs(10));
    let after = edge.session("live");
    assert_eq!(before["id"], after["id"], "the same session goes on");
    // It lasts: what came was not just the rest of what was under way.
    std::thread::sleep(Duration::from_secs(2));
    assert!(edge.session("live")["video"]["packets"].as_u64() > after["video"]["packets"].as_u64());
}

/// Whether a new ICE session of the browser's would use the second way, and not the first.
const GATHERS_SECOND_ALONE: &str = "(async () => {
  const pc = new RTCPeerConnection();
  pc.createDataChannel('probe');
  let found = '';
  const done = new Promise((resolve) => {
    pc.onicecandidate = ({ candidate }) => {
      if (candidate === null) resolve();
      else found += candidate.candidate;
    };
  });
  await pc.setLocalDescription();
  await done;
  pc.close();
  return found.includes('10.213.2.2') && !found.includes('10.213.1.2');
})()";

/// W22: candidates nobody can use, and far too many of them.
#[test]
fn junk_candidates_leave_nothing_behind() {
    let _turn = turn();
    let edge = Edge::plain();
    // One round first, for what is made once.
    junk_round(&edge, 0);
    let before = quiet(&edge);
    for round in 1..=20 {
        junk_round(&edge, round);
    }
    let after = eventually("threads and descriptors as before", Duration::from_secs(15), || {
        let now = edge.holdings();
        (now.threads <= before.threads && now.descriptors <= before.descriptors).then_some(now)
    });
    println!("before {before:?}, after {after:?}");
    assert_eq!(edge.post("live").status, 201);
}

fn junk_round(edge: &Edge, round: u32) {
    let credentials = Credentials::numbered(round);
    let junk = [
        "1 1 udp 2113937151 0f4aa2b0-9f2b-4f6c-8f43-1a2b3c4d5e6f.local 50000 typ host",
        "2 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active",
        "3 1 udp 2113937151 publisher.example.com 50000 typ host",
        "4 2 udp 2113937150 192.0.2.7 50001 typ host",
        "5 1 udp 2113937151 192.0.2.7 0 typ host",
        "6 1 udp 2113937151 ::ffff:192.0.2.7 50000 typ host",
        "7 1 udp 2113937151 192.0.2.7 50000 typ srflx raddr 0.0.0.0 rport 0",
    ];
    let garbage = [
        "8 1 udp 2113937151 192.0.2.7 70000 typ host",
        "9 1 udp 99999999999 192.0.2.7 50000 typ host",
        "10 1 udp",
        "\u{fffd}\u{fffd}",
    ];
    let many = vec!["1 1 udp 1 192.0.2.7 9 typ host"; 5000];
    let mut sdp = offer::with(Tracks::Both, &credentials);
    for candidate in junk.iter().chain(&garbage).chain(&many) {
        sdp += &format!("a=candidate:{candidate}\r\n");
    }
    let answer = Request::offer("/whip/live", &sdp).send(edge.address());
    assert_eq!(answer.status, 201, "{}", answer.text());
    let (session, etag) = (answer.must("Location").to_owned(), answer.must("ETag").to_owned());
    for candidates in [&junk[..], &many[..]] {
        let text = offer::fragment(&credentials, candidates);
        let answer = Request::fragment(&session, &etag, &text).send(edge.address());
        assert_eq!(answer.status, 204, "{} candidates: {}", candidates.len(), answer.text());
    }
    // What is no candidate at all is said to be none.
    let text = offer::fragment(&credentials, &garbage);
    assert_eq!(Request::fragment(&session, &etag, &text).send(edge.address()).status, 400);
    assert_eq!(Request::new("DELETE", &session).send(edge.address()).status, 200);
}

/// A publisher of a kind that says goodbye by DTLS alone frees its slot at once.
#[test]
fn a_closed_browser_tab_frees_the_slot() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut browser = Browser::start();
    browser.open_whip_whep();
    browser.value(&format!("window.publish({:?})", edge.url("/whip/live")));
    edge.delivers("live", Tracks::Both);
    browser.value("window.pc.close()");
    eventually("the end of the session", AT_ONCE, || edge.session("live").is_null().then_some(()));
}

/// The program says what it does, and a configuration it cannot use is refused before anything starts.
#[test]
fn check_names_file_line_and_key() {
    let _turn = turn();
    let file = prepared::scratch("wrong.toml");
    std::fs::write(&file, "[[endpoint]]\nname = \"live\"\ndead_after = \"soon\"\n").unwrap();
    let mut command = std::process::Command::new(prepared::holdfast());
    command.arg("check").arg(&file);
    let mut check = Process::start("holdfast check", command);
    let status = check.wait(Duration::from_secs(10));
    assert!(!status.success());
    let said = eventually("a word on dead_after", Duration::from_secs(2), || {
        let log = check.log();
        log.contains("dead_after").then_some(log)
    });
    assert!(said.contains(&format!("{}:3", file.display())), "{said}");
}
