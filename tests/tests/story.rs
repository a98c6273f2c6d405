//! The page of a run (`holdfast sim --html`, and what `holdfast_sim::story` writes) in a real browser.
//!
//! Pictures are left in `target/pages` for somebody to look at.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{EndpointId, Env, Evidence, Input, Note, RequestId, SessionId};
use holdfast_core::journal::Recorded;
use holdfast_core::time::Time;
use holdfast_sim::story;
use holdfast_tests::browser::Browser;
use holdfast_tests::{prepared, turn};
use serde_json::json;

const PATIENT: Duration = Duration::from_secs(60);

fn folder() -> PathBuf {
    let folder: PathBuf =
        prepared::holdfast().parent().and_then(|profile| profile.parent()).expect("target").join("pages");
    std::fs::create_dir_all(&folder).expect("target can be written");
    folder
}

/// What the program writes of a scenario.
fn written(scenario: &str, seed: &str) -> PathBuf {
    let path = folder().join(format!("story-{scenario}.html"));
    let mut program = Command::new(prepared::holdfast());
    program.args(["sim", "--quiet", "--scenario", scenario, "--seed", seed, "--html"]).arg(&path);
    let said = program.output().expect("the program runs");
    assert_eq!(said.status.success(), scenario != "canary", "{}", String::from_utf8_lossy(&said.stderr));
    path
}

fn open(browser: &mut Browser, page: &Path) {
    browser.open(&format!("file://{}", page.display()));
    browser.until("the first drawing", PATIENT, "window.holdfast !== undefined && window.holdfast.drawn > 0");
}

/// It asked nobody for anything, and complained about nothing.
fn is_content(browser: &mut Browser) {
    assert_eq!(browser.value("performance.getEntriesByType('resource').length"), 0);
    assert_eq!(browser.console(), Vec::<String>::new());
}

fn size(browser: &mut Browser, width: u32, height: u32) {
    let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", params);
}

fn move_to(browser: &mut Browser, lane: &str, word: &str) {
    let at = browser.value(&format!("window.holdfast.where({lane:?}, {word:?})"));
    browser.call("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": at["x"], "y": at["y"]}));
}

#[test]
fn a_takeover_is_seen_with_its_reason() {
    let _turn = turn();
    let page = written("w1", "1");
    let mut browser = Browser::start();
    open(&mut browser, &page);
    browser.picture(&folder().join("story-w1.png"));

    move_to(&mut browser, "live", "displaced");
    browser.until("the reason on hover", PATIENT, "!document.getElementById('tip').hidden");
    let tip = browser.value("document.getElementById('tip').textContent");
    let says =
        |text: &serde_json::Value, part: &str| assert!(text.as_str().is_some_and(|text| text.contains(part)), "{text}");
    says(&tip, "displaced");
    says(&tip, "nothing had come from it for");
    browser.picture(&folder().join("story-w1-hover.png"));

    // The same for whoever has no mouse: lane by lane and from one thing to the next.
    browser.value("document.getElementById('canvas').focus()");
    for key in ["ArrowDown", "ArrowRight", "ArrowRight"] {
        browser.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": key}));
    }
    browser.until("something is chosen", PATIENT, "document.getElementById('detail').textContent.includes('live')");
    let detail = browser.value("document.getElementById('detail').textContent");
    says(&detail, "session 0.0");

    // Most calls change nothing that is drawn.
    let search = |browser: &mut Browser, text: &str, found: &str| {
        browser.value(&format!(
            "(() => {{ const box = document.getElementById('search'); box.value = '{text}'; box.dispatchEvent(new Event('input')); }})()"
        ));
        browser.until(found, PATIENT, &format!("document.getElementById('found').textContent.startsWith('{found}')"));
    };
    let drawn = browser.value("Math.min(...story.marks.map(({ lane, i }) => lane.call[i]).filter((call) => call > 0))");
    let drawn = drawn.as_u64().expect("a call");
    search(&mut browser, &format!("#{drawn}"), "in ");
    let between = browser.value("(() => { const all = new Set(story.marks.map(({ lane, i }) => lane.call[i])); let call = Math.max(...all) - 1; while (all.has(call)) call--; return call; })()");
    let between = between.as_u64().expect("a call");
    search(&mut browser, &format!("#{between}"), &format!("nothing is drawn of #{between}, next to it of #"));
    browser.picture(&folder().join("story-w1-search.png"));
    for none in ["#0", "#99999999"] {
        search(&mut browser, none, "there are ");
    }
    browser.value("[...document.querySelectorAll('.chip, [aria-pressed]')].forEach((chip) => chip.click())");
    search(&mut browser, &format!("#{drawn}"), "in what is switched off");
    browser.value("[...document.querySelectorAll('.chip, [aria-pressed]')].forEach((chip) => chip.click())");
    search(&mut browser, "nobody at all", "nothing found");
    search(&mut browser, "", "");
    browser.until(
        "everything again",
        PATIENT,
        "document.getElementById('found').textContent === '' && view.query === ''",
    );

    // From the list of decisions to the moment.
    browser.value("document.querySelector('#rows .row').click()");
    says(&browser.value("document.getElementById('detail').textContent"), "session 0.0 displaced after");
    assert_eq!(browser.value("view.chosen.lane.name"), "live");
    is_content(&mut browser);
}

#[test]
fn a_broken_invariant_is_a_headline() {
    let _turn = turn();
    let page = written("canary", "7");
    let mut browser = Browser::start();
    open(&mut browser, &page);
    let text = browser.value("document.getElementById('broken').textContent");
    assert!(text.as_str().is_some_and(|text| text.starts_with("publish-3 is broken at")), "{text}");
    browser.picture(&folder().join("story-canary.png"));
    is_content(&mut browser);
}

#[test]
fn what_is_read_first_is_not_cut() {
    let _turn = turn();
    let page = written("random", "5");
    let mut browser = Browser::start();
    for width in [1600, 1000] {
        size(&mut browser, width, 900);
        open(&mut browser, &page);
        browser.picture(&folder().join(format!("story-{width}.png")));
        let titles = "[...document.querySelectorAll('#rows .word')]";
        assert_eq!(browser.value(&format!("{titles}.length > 3")), true);
        let cut = format!(
            "{titles}.filter((title) => title.scrollWidth > title.clientWidth).map((title) => title.textContent)"
        );
        assert_eq!(browser.value(&cut), json!([]), "at {width} pixels");
        // Browsers keep some room at the end of it for a cross.
        let fits = "(() => { const box = document.getElementById('search'), style = getComputedStyle(box), ink = document.createElement('canvas').getContext('2d'); \
                    ink.font = style.font; \
                    return ink.measureText(box.placeholder).width + 20 <= box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight); })()";
        assert_eq!(browser.value(fits), true, "the search field at {width} pixels");
    }
}

#[test]
fn a_thousand_viewers_can_be_searched_and_unfolded() {
    let _turn = turn();
    let page = written("evening", "1");
    let mut browser = Browser::start();
    size(&mut browser, 1400, 900);
    open(&mut browser, &page);
    let (drawn, lanes) = (browser.value("Math.round(window.holdfast.drawn)"), browser.value("story.lanes.length"));
    let marks = browser.value("story.marks.length");
    let bytes = std::fs::metadata(&page).map_or(0, |data| data.len());
    println!("first drawing of {lanes} lanes, {marks} marks, {} kB after {drawn} ms", bytes / 1000);
    browser.picture(&folder().join("story-evening.png"));

    assert!(lanes.as_u64() >= Some(1000), "{lanes}");
    assert_eq!(browser.value("view.rows.filter((row) => row.kind === 'lane').length < 300"), true, "crowds are folded");
    let fold = "fold(story.groups.find((group) => group.name === 'Viewers').index)";
    browser.value(fold);
    let frames = "(async () => { const start = performance.now(); for (let i = 0; i < 60; i++) { scroller.scrollTop += 200; \
                  await new Promise(requestAnimationFrame); } return Math.round((performance.now() - start) / 60); })()";
    println!("a frame while a thousand lanes scroll: {} ms", browser.value(frames));
    browser.picture(&folder().join("story-evening-unfolded.png"));
    browser.value(fold);

    browser.value("(() => { const box = document.getElementById('search'); box.value = 'u17'; box.dispatchEvent(new Event('input')); })()");
    browser.until("lanes are found", PATIENT, "/^in \\d+ lanes?$/.test(document.getElementById('found').textContent)");
    let all = "view.rows.filter((row) => row.kind === 'lane').every((row) => row.lane.found)";
    assert_eq!(browser.value(all), true, "only what was searched for");
    assert_eq!(browser.value("view.rows.some((row) => row.lane?.name === 'u17')"), true);
    browser.picture(&folder().join("story-evening-search.png"));
    is_content(&mut browser);
}

/// Nobody sends anything.
struct Nothing;

impl Env for Nothing {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        [7; 16]
    }
}

const HOSTILE: &str = "</script><img src=x onerror=\"window.stolen=1\"><script>window.stolen=1</script>";

/// Sentences with a name in them, as those of the log.
struct Named;

impl story::Words for Named {
    fn note(&self, note: &Note) -> String {
        format!("endpoint \"{HOSTILE}\": {note:?}")
    }

    fn input(&self, input: &Input) -> String {
        format!("endpoint \"{HOSTILE}\": {input:?}")
    }
}

#[test]
fn hostile_names_are_text() {
    let _turn = turn();
    let name = HOSTILE;
    let endpoint = Endpoint { name: name.into(), ..Endpoint::default() };
    let mut edge = Recorded::on(Config { endpoints: vec![endpoint], ..Config::default() });
    for request in 1..4 {
        let input = Input::Offer { request: RequestId(request), endpoint: EndpointId(0) };
        edge.handle(Time::from_micros(request * 1_000_000), input, &mut Nothing);
        while edge.poll().is_some() {}
    }
    let journal = edge.journal().expect("it is kept");
    let story = story::of_journal(&journal, &|_| Box::new(Named)).expect("it repeats");
    let page = folder().join("story-hostile.html");
    std::fs::write(&page, story::page(&story.titled(name))).expect("target can be written");

    let mut browser = Browser::start();
    open(&mut browser, &page);
    assert_eq!(browser.value("window.stolen === undefined && document.images.length === 0"), true);
    assert_eq!(browser.value("document.title"), name);
    assert_eq!(browser.value("story.lanes.some((lane) => lane.name === story.title)"), true);
    // In the tip, in what is chosen and in the list, too.
    browser.value("list.filter()");
    move_to(&mut browser, name, "let in");
    browser.until("the tip", PATIENT, "!document.getElementById('tip').hidden");
    browser.value("choose({ lane: story.lanes[0], kind: 'span', i: 0 })");
    assert_eq!(browser.value("document.getElementById('tip').textContent.includes(story.title)"), true);
    assert_eq!(browser.value("document.getElementById('rows').textContent.includes(story.title)"), true);
    browser.picture(&folder().join("story-hostile.png"));
    assert_eq!(browser.value("window.stolen === undefined && document.images.length === 0"), true);
    is_content(&mut browser);
}

#[test]
fn without_javascript_there_are_tables() {
    let _turn = turn();
    let page = written("w1", "1");
    let mut browser = Browser::start();
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(&format!("file://{}", page.display()));
    let text = browser.value("document.getElementById('summary').innerText");
    assert!(
        text.as_str().is_some_and(|text| text.contains("Who held which slot") && text.contains("displaced")),
        "{text}"
    );
    assert_eq!(browser.value("document.getElementById('app').hidden"), true);
    browser.picture(&folder().join("story-plain.png"));
}
