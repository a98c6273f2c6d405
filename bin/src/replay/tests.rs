use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint, User};
use holdfast_core::input::{
    Arrivals, Ask, Client, EndpointId, Env, Evidence, Input, Output, RequestId, SessionId, TitleId, UserId, Viewing,
    Want, Writer,
};
use holdfast_core::journal::{Head, Log, Recorded};
use holdfast_core::playback::Item;
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
    recorded(Recorded::on, 9_000_000)
}

/// The same for so many µs, recorded as `edge` does it.
fn recorded(edge: impl FnOnce(Head) -> Recorded, until: u64) -> Vec<u8> {
    let config =
        Config { endpoints: vec![Endpoint { name: "stage".into(), ..Endpoint::default() }], ..Config::default() };
    let head =
        Head { version: "1.2".into(), commit: "abc".into(), started: Some(2 * 86_400_000_000), ..Head::from(config) };
    let mut edge = edge(head);
    let mut peer = Peer { now: 0, dies: 3_000_000, drawn: 0 };
    let mut inputs = vec![(0, Input::Offer { request: RequestId(1), endpoint: EndpointId(0) })];
    inputs.push((6_000_000, Input::Offer { request: RequestId(2), endpoint: EndpointId(0) }));
    for now in (0..until).step_by(100_000) {
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
    let (found, _) = said(&all, &["--grep", "DisPlaced"]);
    let call = found.lines().find_map(|line| line.split('#').nth(1)?.split(' ').next()).expect("its number");
    let (same, _) = said(&all, &["--grep", &format!("#{call}")]);
    assert_eq!(same, found, "a call is found by its number");
    assert!(found.contains("displaced after") && !found.contains("request 1:") && !found.contains(" … "), "{found}");
    let (until, failed) = said(&all, &["--until", "5.5s"]);
    assert!(!until.contains("request 2:") && until.contains("session 0.0") && until.contains("--until"), "{until}");
    assert_eq!(failed, None);
    assert!(until.contains("they repeat"), "all of it is checked: {until}");
    let count = |text: &str, before: &str| -> u64 {
        let words: Vec<&str> = text.split_whitespace().collect();
        let place =
            words.windows(before.split(' ').count()).position(|own| own.join(" ") == before).expect("it is said");
        words[place - 1].parse().expect("a number")
    };
    assert_eq!(count(&until, "calls in"), count(&quiet, "calls in"), "of all: {until}");
    let told = count(&until, "of these calls;");
    assert!(0 < told && told < count(&until, "calls in"), "{until}");
    assert!(until.contains("calls in +8.900000s"), "{until}");
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
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("FINDING: live-lock is broken: more than"), "before all that is told: {text}");
    assert_eq!(lines.last(), Some(&"FINDING: live-lock is broken in call 20002"), "and at its end: {text}");
    assert!(text.contains("they repeat"), "{text}");
    assert!(failed.starts_with("FINDING: live-lock is broken: more than"), "{failed}");
    assert!(failed.contains("1970-01-01 00:00:05.020 UTC, +0.020000s, call 20002: something is due"), "{failed}");
    assert_eq!(failed.lines().count(), 1, "{failed}");
    let drawn = std::fs::read_to_string(&page).expect("it is drawn");
    assert!(
        drawn.contains("<strong>live-lock</strong> is broken at 00:00:05.020 +0.020000s, call 20002:"),
        "as a headline, at the time that the lines have"
    );
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&page).expect("it is drawn"));
    assert_eq!(mode & 0o777, 0o600, "whose it is, is nobody else's business");
    std::fs::remove_file(&page).expect("it is ours");
}

#[test]
fn a_page_is_drawn_also_of_what_is_cut_off() {
    let page = std::env::temp_dir().join(format!("holdfast-replay-cut-{}.html", std::process::id()));
    let all = journal();
    let (_, failed) = said(&all[..all.len() - 10], &["--quiet", "--html", page.to_str().expect("text")]);
    assert!(failed.expect("cut").contains("breaks off"));
    let drawn = std::fs::read_to_string(&page).expect("it is drawn");
    assert!(drawn.contains("started 1970-01-03 00:00:00 UTC") && drawn.contains("displaced"), "what is whole is drawn");
    let told: Vec<String> = said(&all, &[])
        .0
        .lines()
        .filter_map(|line| Some(line.split_once("→ endpoint ")?.1.replace('"', "\\\"")))
        .collect();
    assert!(told.len() > 2, "{told:?}");
    for sentence in told {
        assert!(drawn.contains(&format!("endpoint {sentence}")), "the page has the words of the lines: {sentence}");
    }
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
    assert!(
        cut.expect("cut").contains("breaks off") && text.contains("displaced after"),
        "what is whole is told: {text}"
    );
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
fn what_power_took_from_the_end_of_a_recording_is_no_finding() {
    let all = journal();
    let head = Head::read(&all).expect("a head");
    let begin = holdfast_core::journal::Log { head, ..Default::default() }.write().len();
    for from in (begin + 17..all.len()).step_by(101) {
        for lost in [1, 3, 9, 200] {
            let behind = &all[(from + lost).min(all.len())..];
            let zeros = vec![0; lost.min(all.len() - from)];
            for wrong in [[&all[..from], behind].concat(), [&all[..from], &zeros, behind].concat()] {
                if wrong == all {
                    continue;
                }
                let (text, failed) = said(&wrong, &["--quiet"]);
                let failed = failed.expect("something is missing");
                assert!(failed.contains("the recording breaks off"), "{from}, {lost}: {failed}");
                assert!(!failed.contains("report it") && !text.contains("FINDING"), "{from}, {lost}: {failed}\n{text}");
            }
        }
    }
}

/// Anna watches a slot and plays a film; Ben watches alone, and neither is what breaks.
fn mixed(lock: impl Fn(&mut Recorded, &mut Peer)) -> Vec<u8> {
    let endpoints = vec![Endpoint { name: "stage".into(), ..Endpoint::default() }];
    let user = |name: &str| User { name: name.into(), max_connections: 2, ..User::default() };
    let config = Config { endpoints, users: vec![user("anna"), user("ben")], ..Config::default() };
    let mut edge = Recorded::on(Head { started: Some(0), ..Head::from(config) });
    let mut peer = Peer { now: 0, dies: 0, drawn: 0 };
    let feed = edge.edge().feed_of(EndpointId(0), 0).expect("a slot");
    let client = Client { address: [10, 0, 0, 1].into(), agent: 0 };
    let viewing = |user, item| Viewing { user: UserId(user), item, client };
    let film = viewing(0, Item::Local(TitleId(7)));
    let ask = Ask { viewing: film, want: Want::Rest, token: None, account: None, providers: Vec::new() };
    for input in [
        Input::Play { request: RequestId(1), viewing: viewing(0, Item::LiveTs(feed)) },
        Input::Fetch { request: RequestId(2), ask },
        Input::Play { request: RequestId(3), viewing: viewing(1, Item::LiveTs(feed)) },
    ] {
        edge.handle(Time::from_micros(5_000_000), input, &mut peer);
        while edge.poll().is_some() {}
    }
    lock(&mut edge, &mut peer);
    edge.journal().expect("one is kept")
}

#[test]
fn a_journal_of_who_watches_feeds_and_plays_titles_is_judged_and_says_what_is_not() {
    let (text, failed) = said(&mixed(|_, _| ()), &["--quiet"]);
    assert_eq!(failed, None, "{text}");
    assert!(text.contains("no invariant is broken"), "{text}");
    assert!(
        text.contains("of user \"anna\", who") && !text.contains("\"ben\",") && text.contains("(play-3, play-4,"),
        "{text}"
    );
    let broken = mixed(|edge, peer| {
        for tick in 0..25_000 {
            edge.handle(Time::from_micros(5_000_000 + tick), Input::Tick, peer);
            while edge.poll().is_some() {}
        }
    });
    let (_, failed) = said(&broken, &["--quiet"]);
    assert!(failed.expect("it is broken").contains("FINDING: live-lock is broken"));
}

#[test]
fn a_journal_without_a_call_is_one() {
    let config =
        Config { endpoints: vec![Endpoint { name: "stage".into(), ..Endpoint::default() }], ..Config::default() };
    let (text, failed) = said(&Recorded::on(config).journal().expect("one is kept"), &[]);
    assert_eq!(failed, None, "{text}");
    assert!(
        text.contains("0 calls in +0.000000s; they repeat") && text.contains("at the end nobody is there"),
        "{text}"
    );
}

/// Five minutes in which there is a snapshot now and then, and where each begins.
fn with_snapshots() -> (Vec<u8>, Vec<usize>) {
    let all = recorded(|head| Recorded::marked(head, 1), 300_000_000);
    let (mut at, mut snapshots) = (8, Vec::new());
    while at < all.len() {
        if all[at] == 2 {
            snapshots.push(at);
        }
        at += 16 + u32::from_le_bytes(all[at + 4..at + 8].try_into().expect("4 bytes")) as usize;
    }
    (all, snapshots)
}

#[test]
fn behind_a_broken_byte_it_goes_on_from_the_next_snapshot_and_says_what_is_lost() {
    let (all, snapshots) = with_snapshots();
    assert!(snapshots.len() > 2, "{snapshots:?}");
    let calls = Log::read(&all).expect("it is whole").calls;
    let mut wrong = all.clone();
    // Between the first snapshot and the second, and between the second and the third.
    wrong[snapshots[1] - 1] ^= 1;
    let page = std::env::temp_dir().join(format!("holdfast-replay-lost-{}.html", std::process::id()));
    let (text, failed) = said(&wrong, &["--html", page.to_str().expect("text")]);
    let failed = failed.expect("some is lost");
    let lost = text.lines().find(|line| line.starts_with("  … broken at byte")).expect("said where it is");
    let words: Vec<&str> = lost.split_whitespace().collect();
    let number = |behind: &str| -> usize {
        let place = words.iter().position(|word| *word == behind).expect("it is said");
        words[place + 1].parse().expect("a number")
    };
    let (from, to) = (number("calls"), number("to"));
    assert!(0 < from && from <= to && to < calls.len(), "{lost}");
    let since = |call: usize| told::since(calls[call - 1].now.since(calls[0].now));
    assert!(lost.ends_with(&format!("from {} to {}", since(from - 1), since(to))), "{lost}");
    assert!(failed.contains(lost.trim_start_matches([' ', '…'])) && failed.contains("fetch it once more"), "{failed}");
    assert!(
        text.contains(&format!("{} calls in +299.9", calls.len())) && text.contains("those that are not lost repeat"),
        "{text}"
    );
    assert!(text.contains("no invariant is broken") && text.contains("at the end there are:"), "{text}");
    let drawn = std::fs::read_to_string(&page).expect("it is drawn");
    std::fs::remove_file(&page).expect("it is ours");
    assert!(drawn.contains(&format!("calls {from} to {to} are lost")), "the page says so, too");
    // The same twice, and where nothing follows that could be gone on from.
    wrong[snapshots[2] - 1] ^= 1;
    let (twice, _) = said(&wrong, &[]);
    assert_eq!(twice.lines().filter(|line| line.starts_with("  … broken at byte")).count(), 2, "{twice}");
    let mut last = all.clone();
    last[snapshots[snapshots.len() - 1] + 20] ^= 1;
    let (text, failed) = said(&last, &["--quiet"]);
    let failed = failed.expect("some is lost");
    assert!(failed.contains("all behind call") && failed.contains("no snapshot that is whole follows"), "{failed}");
    assert!(text.contains("no snapshot that is whole follows"), "{text}");
    // Cut off, too: bytes are counted in the file, whatever is lost before.
    let mut cut = wrong.clone();
    cut.truncate(cut.len() - 3);
    let (_, failed) = said(&cut, &["--quiet"]);
    let failed = failed.expect("some is lost");
    let at = failed.split("begins at byte ").nth(1).and_then(|rest| rest.split(' ').next()).expect("said where");
    assert!(at.parse::<usize>().is_ok_and(|at| at > snapshots[snapshots.len() - 1] && at < cut.len()), "{failed}");
    // Before the first call that can be read.
    let mut first = all;
    first[snapshots[0] - 1] ^= 1;
    assert!(said(&first, &["--quiet"]).1.expect("some is lost").contains("calls up to "));
}

#[test]
fn one_call_is_told_by_its_number_also_where_it_is_summed_up() {
    let all = journal();
    let calls = Log::read(&all).expect("it is whole").calls;
    let of = |wanted: fn(&Input) -> bool| calls.iter().position(|call| wanted(&call.input)).expect("there is one") + 1;
    let told = |call: usize| said(&all, &["--grep", &format!("#{call}")]).0;
    let media = of(|input| matches!(input, Input::Media { .. }));
    let text = told(media);
    assert!(
        text.contains(&format!("#{media:<7} session 0.0: 1880 bytes come into endpoint \"stage\" slot 1")),
        "{text}"
    );
    // One at which nothing was done.
    assert!(told(20).contains("#20 "), "{}", told(20));
    for call in 1..=calls.len() {
        assert!(told(call).contains(&format!(" #{call:<7} ")), "{}", told(call));
    }
    let none = told(calls.len() + 1);
    assert!(
        none.contains(&format!("call {} is not among those that can be told: 1 to {}", calls.len() + 1, calls.len())),
        "{none}"
    );
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
