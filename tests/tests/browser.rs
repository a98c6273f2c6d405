//! The ingest page and another client page in a real browser: publishing, refused, displaced.
//!
//! Pictures of each state are left in `target/pages` for somebody to look at.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast_tests::browser::Browser;
use holdfast_tests::edge::Edge;
use holdfast_tests::offer::Tracks;
use holdfast_tests::publisher::Aiortc;
use holdfast_tests::viewer::{self, Viewer};
use holdfast_tests::{AT_ONCE, eventually, ms, prepared, turn};

/// Long enough for a browser that starts on a busy machine.
const PATIENT: Duration = Duration::from_secs(30);

fn picture_of(browser: &mut Browser, state: &str) {
    let folder: PathBuf =
        prepared::holdfast().parent().and_then(|profile| profile.parent()).expect("target").join("pages");
    std::fs::create_dir_all(&folder).expect("target can be written");
    browser.picture(&folder.join(format!("{state}.png")));
}

fn state(wanted: &str) -> String {
    format!("document.body.dataset.state === {wanted:?}")
}

/// The page at work on endpoint `live`, with its own test pattern: 720p of a camera would be the machine's whole work.
fn publish(browser: &mut Browser, edge: &Edge) {
    browser.open(&edge.url("/publish/live?auto=1&source=test"));
}

#[test]
fn the_ingest_page_publishes_from_a_camera() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut browser = Browser::start();
    browser.open(&edge.url("/"));
    browser.until("the endpoint's name in the list", PATIENT, "document.getElementById('endpoint').value === 'live'");
    picture_of(&mut browser, "idle");
    browser.value("document.getElementById('height').value = '360'");
    browser.value("document.getElementById('go').click()");
    browser.until("publishing", PATIENT, &state("publishing"));
    edge.delivers("live", Tracks::Both);
    Viewer::open(edge.address(), "live").gets(50_000, Duration::from_secs(15));
    let codecs = viewer::codecs(&edge.url("/live/live.ts"));
    assert_eq!(codecs.get("video").map(String::as_str), Some("h264"));
    assert_eq!(codecs.get("audio").map(String::as_str), Some("aac"));
    browser.until("a bitrate", PATIENT, "/\\d/.test(document.getElementById('bitrate').textContent)");
    picture_of(&mut browser, "publishing");

    browser.value("document.getElementById('go').click()");
    eventually("a free slot after Stop", Duration::from_secs(2), || edge.session("live").is_null().then_some(()));
    browser.until("stopped", Duration::from_secs(5), &state("stopped"));
}

#[test]
fn the_ingest_page_says_why_it_is_refused() {
    let _turn = turn();
    let edge = Edge::plain();
    let holder = Aiortc::to(&edge.url("/whip/live")).start();
    holder.connected();
    edge.delivers("live", Tracks::Both);
    let mut browser = Browser::start();
    publish(&mut browser, &edge);
    browser.until("refused", PATIENT, &state("refused"));
    assert_eq!(browser.value("window.holdfast.reason"), "holder-live");
    let sentence = browser.value("document.getElementById('sentence').textContent");
    assert!(sentence.as_str().is_some_and(|text| text.contains("on air")), "{sentence}");
    picture_of(&mut browser, "refused");
    // Retry-After is honoured: no second POST within a second of the first.
    let posts = browser.value("window.holdfast.posts").as_u64().unwrap_or(0);
    std::thread::sleep(Duration::from_secs(1));
    assert!(browser.value("window.holdfast.posts").as_u64() <= Some(posts + 1));
}

/// W18 with the page: it says so within a second, and does not come back by itself.
#[test]
fn the_ingest_page_knows_when_it_is_displaced() {
    let _turn = turn();
    let edge = Edge::start("[[endpoint]]\nname = \"live\"\ntakeover = \"newest-wins\"\n");
    let mut browser = Browser::start();
    publish(&mut browser, &edge);
    browser.until("publishing", PATIENT, &state("publishing"));
    edge.delivers("live", Tracks::Both);
    let next = Aiortc::to(&edge.url("/whip/live")).waiting().start();
    let mut next = next;
    let displaced = next.go();
    assert_eq!(next.posted().status, 201);
    browser.until("no more publishing", Duration::from_secs(5), "document.body.dataset.state !== 'publishing'");
    let told = displaced.elapsed();
    browser.until("displaced", Duration::from_secs(5), &state("displaced"));
    println!("the page knew {} ms after the POST, and said so after {} ms", ms(told), ms(displaced.elapsed()));
    assert!(displaced.elapsed() < AT_ONCE, "{:?}", displaced.elapsed());
    picture_of(&mut browser, "displaced");
    next.connected();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(browser.value("document.body.dataset.state"), "displaced");
    Viewer::open(edge.address(), "live").gets(30_000, Duration::from_secs(10));
}

/// The browser stands still for three seconds, as on a train; meanwhile its slot goes to another publisher.
#[test]
fn the_ingest_page_wakes_up_displaced() {
    let _turn = turn();
    let edge = Edge::plain();
    let mut browser = Browser::start();
    publish(&mut browser, &edge);
    browser.until("publishing", PATIENT, &state("publishing"));
    edge.delivers("live", Tracks::Both);
    let mut next = Aiortc::to(&edge.url("/whip/live")).waiting().start();
    browser.freeze();
    next.go();
    let posted = next.posted();
    assert_eq!(posted.status, 201, "{posted:?}");
    next.connected();
    edge.delivers("live", Tracks::Both);
    browser.thaw();
    let awake = Instant::now();
    browser.until("no more publishing", Duration::from_secs(5), "document.body.dataset.state !== 'publishing'");
    assert!(awake.elapsed() < AT_ONCE, "{:?}", awake.elapsed());
    browser.until("displaced", Duration::from_secs(5), &state("displaced"));
}

/// The browser is killed and started again: it is back on air within seconds, and the viewer never left.
#[test]
fn a_killed_browser_comes_back() {
    let _turn = turn();
    let edge = Edge::plain();
    let viewer = Viewer::open(edge.address(), "live");
    let mut browser = Browser::start();
    publish(&mut browser, &edge);
    edge.delivers("live", Tracks::Both);
    viewer.gets(30_000, Duration::from_secs(15));
    let first = edge.session("live")["id"].clone();
    browser.kill();
    let mut browser = Browser::start();
    publish(&mut browser, &edge);
    browser.until("publishing", PATIENT, &state("publishing"));
    assert_ne!(edge.session("live")["id"], first);
    viewer.gets(30_000, Duration::from_secs(15));
    let decoded = viewer::decode(viewer.file());
    assert!(decoded.frames > 20, "{decoded:?}");
    assert_eq!(decoded.complaints, Vec::<String>::new());
}

#[test]
fn whip_whep_publishes_from_another_origin() {
    let _turn = turn();
    let edge = Edge::start("[[endpoint]]\nname = \"live\"\ntokens = [\"secret\"]\n");
    let mut browser = Browser::start();
    browser.open_whip_whep();
    let url = edge.url("/whip/live");
    let refused = browser.evaluate(&format!("window.publish({url:?}, 'wrong')"));
    assert!(refused.as_ref().is_err_and(|error| error.contains("401")), "{refused:?}");
    browser.value(&format!("window.publish({url:?}, 'secret')"));
    browser.until("its DTLS transport", PATIENT, "document.getElementById('state').textContent === 'connected'");
    edge.delivers("live", Tracks::Both);
    Viewer::open(edge.address(), "live").gets(50_000, Duration::from_secs(15));
    browser.value("window.whip.stop()");
    eventually("a free slot after stop()", Duration::from_secs(2), || edge.session("live").is_null().then_some(()));
}
