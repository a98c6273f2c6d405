use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{Arrivals, EndpointId, Env, Evidence, Input, Output, RequestId, SessionId, Writer};
use holdfast_core::journal::{Head, Recorded};
use holdfast_core::time::Time;

use super::*;

/// Audio each 20 ms, until it dies.
struct Peer {
    now: u64,
    dies: u64,
    drawn: u8,
}

impl Env for Peer {
    fn activity(&mut self, session: SessionId) -> Evidence {
        let until = if session.index() == 0 && session.generation() == 0 { self.now.min(self.dies) } else { self.now };
        let last = Some(Time::from_micros(until / 20_000 * 20_000));
        Evidence { audio: Arrivals { count: until / 20_000 + 1, last }, ..Evidence::default() }
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.drawn += 1;
        [self.drawn; 16]
    }
}

/// A publisher dies after three seconds, and another one takes its slot after six; two days after the epoch.
fn journal() -> Vec<u8> {
    let config =
        Config { endpoints: vec![Endpoint { name: "stage".into(), ..Endpoint::default() }], ..Config::default() };
    let head =
        Head { version: "1.2".into(), commit: "abc".into(), started: Some(2 * 86_400_000_000), ..Head::from(config) };
    let mut edge = Recorded::on(head);
    let mut peer = Peer { now: 0, dies: 3_000_000, drawn: 0 };
    let mut inputs = vec![(0, Input::Offer { request: RequestId(1), endpoint: EndpointId(0) })];
    inputs.push((6_000_000, Input::Offer { request: RequestId(2), endpoint: EndpointId(0) }));
    for now in (0..9_000_000).step_by(100_000) {
        peer.now = now;
        let mut due: Vec<Input> = inputs.extract_if(.., |(at, _)| *at <= now).map(|(_, input)| input).collect();
        due.push(Input::Tick);
        if now < peer.dies
            && let Some((session, _)) = edge.edge().publish().sessions().next()
            && let Some(feed) = edge.edge().feed_of(EndpointId(0), 0)
        {
            let data = Bytes::from(vec![0x47; 188 * 10]);
            due.push(Input::Media { feed, from: Writer::Session(session), data, random_access: Some(0) });
        }
        while let Some(input) = due.pop() {
            edge.handle(Time::from_micros(now), input, &mut peer);
            while let Some(output) = edge.poll() {
                match output {
                    Output::Start { session, .. } => due.push(Input::Answered { session }),
                    Output::Finish { session, .. } => due.push(Input::Released { session }),
                    _ => {}
                }
            }
        }
    }
    edge.journal().expect("one is kept")
}

/// What is printed, and what went wrong.
fn said(bytes: &[u8], arguments: &[&str]) -> (String, Option<String>) {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        replay: Replay,
    }
    let path = std::env::temp_dir().join(format!(
        "holdfast-replay-{}-{:?}.journal",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    let all = ["replay", path.to_str().expect("text")].into_iter().chain(arguments.iter().copied());
    let line = <Line as clap::Parser>::try_parse_from(all).expect("understood");
    let mut out = Vec::new();
    let failed = line.replay.tell(&mut out).err().map(|failed| failed.to_string());
    std::fs::remove_file(&path).expect("it is ours");
    (String::from_utf8(out).expect("text"), failed)
}

#[test]
fn a_displacement_is_told_with_its_time_and_its_reason() {
    let (text, failed) = said(&journal(), &[]);
    assert_eq!(failed, None, "{text}");
    assert!(text.starts_with("Holdfast 1.2 (abc), started 1970-01-03 00:00:00 UTC\n"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let asked =
        lines.iter().position(|line| line.contains("request 2: somebody wants to publish at endpoint \"stage\""));
    let displaced = lines.iter().position(|line| line.contains("displaced after"));
    let (asked, displaced) = (asked.expect("asked"), displaced.expect("displaced"));
    assert!(asked < displaced && lines[asked].starts_with("00:00:06.000   +6.000000s  #"), "{}", lines[asked]);
    assert!(
        lines[displaced].contains("nothing had come from it for 3.") && lines[displaced].contains("another publisher")
    );
    assert!(text.contains("kB came in, 0 kB went out"), "media is summed up: {text}");
    assert!(!text.contains("0101010101"), "what was drawn is nobody's business");
    assert!(text.contains("they repeat; digest "), "{text}");
    assert!(text.ends_with("at the end there are:\n  endpoint \"stage\" slot 1: session 0.1\n"), "{text}");
}

#[test]
fn what_is_told_can_be_less() {
    let all = journal();
    let (quiet, _) = said(&all, &["--quiet"]);
    assert!(quiet.lines().count() == 4 && quiet.contains("they repeat"), "{quiet}");
    assert!(quiet.contains("no invariant is broken"), "{quiet}");
    let (found, _) = said(&all, &["--grep", "displaced"]);
    assert!(found.contains("displaced after") && !found.contains("request 1:") && !found.contains(" … "), "{found}");
    let (until, failed) = said(&all, &["--until", "5.5s"]);
    assert!(!until.contains("request 2:") && until.contains("session 0.0") && until.contains("--until"), "{until}");
    assert_eq!(failed, None);
    assert!(until.contains("they repeat"), "all of it is checked: {until}");
}

/// A core that has something to do without end.
fn restless() -> Vec<u8> {
    let endpoints = vec![Endpoint { name: "stage".into(), ..Endpoint::default() }];
    let head = Head { started: Some(0), ..Head::from(Config { endpoints, ..Config::default() }) };
    let mut edge = Recorded::on(head);
    let mut peer = Peer { now: 0, dies: 0, drawn: 0 };
    let at = |micros: u64| Time::from_micros(5_000_000 + micros);
    edge.handle(at(0), Input::Offer { request: RequestId(1), endpoint: EndpointId(0) }, &mut peer);
    for tick in 0..25_000 {
        edge.handle(at(tick), Input::Tick, &mut peer);
        while edge.poll().is_some() {}
    }
    edge.journal().expect("one is kept")
}

#[test]
fn a_broken_invariant_is_one_line_and_the_headline_of_the_page() {
    let page = std::env::temp_dir().join(format!("holdfast-replay-{}.html", std::process::id()));
    let (text, failed) = said(&restless(), &["--html", page.to_str().expect("text")]);
    let failed = failed.expect("it is broken");
    assert!(text.contains("they repeat") && text.contains("live-lock is broken"), "{text}");
    assert!(failed.starts_with("FINDING: live-lock is broken: more than"), "{failed}");
    assert!(failed.contains("1970-01-01 00:00:05.020 UTC, +0.020000s, call 20002: something is due"), "{failed}");
    assert_eq!(failed.lines().count(), 1, "{failed}");
    let drawn = std::fs::read_to_string(&page).expect("it is drawn");
    assert!(drawn.contains("<strong>live-lock</strong> is broken at 5.0"), "as a headline");
    std::fs::remove_file(&page).expect("it is ours");
}

#[test]
fn a_page_is_drawn_also_of_what_is_cut_off() {
    let page = std::env::temp_dir().join(format!("holdfast-replay-cut-{}.html", std::process::id()));
    let all = journal();
    let (_, failed) = said(&all[..all.len() - 10], &["--quiet", "--html", page.to_str().expect("text")]);
    assert!(failed.expect("cut").contains("cut off"));
    let drawn = std::fs::read_to_string(&page).expect("it is drawn");
    assert!(drawn.contains("started 1970-01-03 00:00:00 UTC") && drawn.contains("displaced"), "what is whole is drawn");
    std::fs::remove_file(&page).expect("it is ours");
    let (_, failed) = said(&all, &["--quiet", "--html", "/nonexistent/page.html"]);
    assert!(failed.expect("nowhere").contains("the page cannot be written to /nonexistent/page.html"));
}

#[test]
fn lengths_of_time_are_seconds_or_as_in_the_configuration() {
    assert_eq!(span("12.5s"), Ok(Duration::from_millis(12_500)));
    assert_eq!(span("3"), Ok(Duration::from_secs(3)));
    assert_eq!(span("1m30s"), Ok(Duration::from_secs(90)));
    for wrong in ["", "-1s", "NaN", "1e30", "soon"] {
        assert!(span(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_be_replayed_is_told_apart() {
    let all = journal();
    let fault = |bytes: &[u8]| said(bytes, &[]).1.expect("refused");
    assert!(fault(b"").contains("empty") && fault(b"RIFF, and more than that").contains("no journal"));
    assert!(fault(b"\x1f\x8b\x08 and so on").contains("gzip"));
    let (text, begun) = said(&all[..20], &[]);
    assert!(begun.expect("cut").contains("nothing to tell") && text.is_empty(), "{text}");
    let mut other = all.clone();
    other[7] += 1;
    assert!(fault(&other).contains("version"));
    let (text, cut) = said(&all[..all.len() - 10], &[]);
    assert!(cut.expect("cut").contains("cut off") && text.contains("displaced after"), "what is whole is told: {text}");
    let mut broken = all.clone();
    let middle = all.len() / 2;
    broken[middle] ^= 0x55;
    assert!(!fault(&broken).is_empty());
    for (path, why) in [("/", "a directory"), ("/dev/zero", "not a file"), ("/nonexistent/a.journal", "No such file")] {
        let error = read(Path::new(path)).expect_err("refused").to_string();
        assert!(error.contains(why), "{path}: {error}");
    }
    let large = std::env::temp_dir().join(format!("holdfast-large-{}.journal", std::process::id()));
    // A file may have holes: this takes no room.
    let file = File::create(&large).expect("the temporary folder can be written");
    file.set_len(LARGEST + 1).expect("a file may have holes");
    assert!(read(&large).expect_err("refused").to_string().contains("1 GiB"));
    std::fs::remove_file(&large).expect("it is ours");
}

#[test]
fn a_panic_is_a_finding_with_the_number_of_the_call() {
    let (what, played) = caught(|| -> u8 { panic!("at the disco") });
    assert_eq!(played, None);
    let what = what.expect("words");
    assert!(what.starts_with("at the disco (") && what.contains("tests.rs:"), "{what}");
    let finding = Failed::Panic { call: 7, what }.to_string();
    assert!(finding.contains("FINDING") && finding.contains("call 7"), "{finding}");
    assert_eq!(caught(|| 5), (None, Some(5)));
}
