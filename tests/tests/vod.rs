//! Films, episodes and the past, with the players that people have: every seek is right, counts once, and takes one connection to
//! the provider, by its own count.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_tests::browser::Browser;
use holdfast_tests::household::Household;
use holdfast_tests::http::{Connection, Request};
use holdfast_tests::player::{Program, aria2, mpv_that_seeks};
use holdfast_tests::process::Process;
use holdfast_tests::provider::{Clip, Clips, Fault, Provider, Settings, Uris};
use holdfast_tests::{eventually, prepared, turn};

const SECOND: Duration = Duration::from_secs(1);
/// Long enough for a browser on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long a playback over HLS is kept, and a little.
const KEPT: Duration = Duration::from_secs(12);

/// Playbacks are kept for a short time, so that tests see their end.
const SHORT: &str = "[playback]\nhls_session_ttl = \"6s\"\ncatchup_session_ttl = \"6s\"";

fn provider(limits: &[usize]) -> Provider {
    Provider::start(Settings::accounts(limits))
}

/// As fast as it can, for tests that read whole films.
fn fast(limits: &[usize]) -> Provider {
    Provider::start(Settings { rate: 400 << 20, ..Settings::accounts(limits) })
}

#[test]
fn every_player_seeks_in_every_form_of_film_over_one_connection() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    for name in ["Film Tail", "Film Fast", "Film Matroska", "Film Stream"] {
        let url = house.url(&house.film("anna", name));
        for program in [Program::Ffmpeg, Program::Mpv, Program::Vlc, Program::GStreamer] {
            let mut player = program.play_from(&url, 60);
            program.is_seen(&mut player, PATIENCE);
            assert!(house.counted("anna") <= 1, "{program:?} {name}: {}", house.user("anna"));
            player.kill();
            house.is_over(&provider, 3 * SECOND);
        }
    }
    for path in house.episodes("anna", "The Series") {
        let mut player = Program::Ffmpeg.play_from(&house.url(&path), 100);
        let status = player.wait(PATIENCE);
        assert!(status.success(), "{path}: {}", player.log());
        house.is_over(&provider, 3 * SECOND);
    }
    assert_eq!(house.said("was refused"), 0, "{}", house.edge.log());
}

#[test]
fn whoever_seeks_while_it_plays_is_one_viewer_with_one_connection() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    let url = house.url(&house.film("anna", "Film Tail"));
    let mut player = mpv_that_seeks(&url, &[100, 10, 60, 30, 110]);
    let status = eventually("its end", PATIENCE, || {
        assert!(house.counted("anna") <= 1, "{}", house.user("anna"));
        player.ended()
    });
    assert!(status.success() && player.log().matches("plays at").count() >= 6, "{}", player.log());
    house.is_over(&provider, 3 * SECOND);
    let mut browser = Browser::start();
    browser.open_page("video.html");
    for name in ["Film Tail", "Film Fast"] {
        let url = house.url(&house.film("anna", name));
        browser.value(&format!("play({url:?})"));
        browser.until("it plays", PATIENCE, "at() > 1");
        for second in [100, 20, 70] {
            browser.value(&format!("seek({second})"));
            browser.until("it plays there", PATIENCE, &format!("at() > {second} + 1 && at() < {second} + 20"));
            // None, when it has read all of it.
            assert!(house.counted("anna") <= 1, "{}", house.user("anna"));
        }
        assert_eq!(browser.value("JSON.stringify(faults)"), "[]");
        browser.value("stop()");
        house.is_over(&provider, 5 * SECOND);
    }
}

#[test]
fn every_player_plays_every_form_of_hls_over_one_connection() {
    let _turn = turn();
    for uris in [Uris::Relative, Uris::Rooted, Uris::Absolute] {
        let provider = Provider::start(Settings { uris, ..Settings::accounts(&[1]) });
        let house = Household::of(&provider, SHORT);
        let all: &[&str] = match uris {
            Uris::Relative => &["Film Keys", "Film Ranges", "Film Fragments"],
            _ => &["Film Keys"],
        };
        for name in all {
            let url = house.url(&house.film("anna", name));
            for program in Program::OF_HLS {
                let mut player = program.play(&url);
                program.is_seen(&mut player, PATIENCE);
                assert!(house.counted("anna") <= 1, "{program:?} {name}: {}", house.user("anna"));
                player.kill();
                house.is_over(&provider, KEPT);
            }
        }
        assert_eq!(house.said("was refused"), 0, "{}", house.edge.log());
    }
}

#[test]
fn hls_js_plays_and_seeks_and_a_long_pause_costs_nothing() {
    let _turn = turn();
    let provider = provider(&[1]);
    // One of its live streams is there as HLS alone, which a panel does not say.
    let panel = provider.configuration("panel").replacen("[[account]]", "output = \"m3u8\"\n[[account]]", 1);
    let house = Household::open(&format!("{SHORT}\n{panel}"));
    let mut browser = Browser::start();
    browser.open_page("hls_js.html");
    browser.until("hls.js", PATIENCE, "typeof Hls === 'function'");
    for (name, path) in [
        ("a film", house.film("anna", "Film Keys")),
        ("live", house.live("anna", "Segments", "m3u8")),
        ("the past", house.past("anna", "Archive", "2026-11-30:10-00", "m3u8")),
    ] {
        browser.value(&format!("play({:?})", house.url(&path)));
        browser.until(&format!("two seconds of {name}"), PATIENCE, "at() > 2");
        assert_eq!(house.counted("anna"), 1, "{name}: {}", house.user("anna"));
        if name != "live" {
            browser.value("document.getElementById('video').currentTime = 80");
            browser.until("it plays there", PATIENCE, "at() > 82");
        }
        assert!(!browser.value("JSON.stringify(faults)").as_str().expect("a list").contains("fatal"), "{name}");
        browser.value("hls.destroy() || true");
        house.is_over(&provider, KEPT);
    }
}

/// V1: two players that seek as VLC does, and never read what they asked for before.
#[test]
fn v1_two_seeking_players_take_two_connections() {
    let _turn = turn();
    let provider = provider(&[4]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Tail);
    let path = house.film("ben", "Film Tail");
    let tail = bytes.len() - (64 << 10);
    let begin = Instant::now();
    let mut unread = Vec::new();
    let mut playing = Vec::new();
    for from in [0, tail, 4096] {
        playing.clear();
        for agent in ["one", "two"] {
            let (connection, head) = house.opens(agent, &path, Some(&format!("bytes={from}-")));
            assert_eq!((head.status, head.must("content-range").contains(&format!("bytes {from}-"))), (206, true));
            playing.push((agent, connection));
        }
        unread.append(&mut playing);
    }
    for (agent, connection) in unread.iter_mut().rev().take(2) {
        let got = connection.some(1 << 20, 10 * SECOND);
        assert!(got == bytes[4096..4096 + (1 << 20)], "{agent}: {} bytes", got.len());
    }
    assert!(begin.elapsed() < 10 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(house.counted("ben"), 2);
    assert!(provider.count(0).peak <= 2, "{:?}", provider.count(0));
    house.agrees(&provider);
    drop(unread);
    house.is_over(&provider, 3 * SECOND);
}

#[test]
fn aria2_with_four_connections_gets_its_film_over_one() {
    let _turn = turn();
    let provider = fast(&[1]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Fast);
    let file = prepared::scratch("film.mp4");
    let mut client = aria2(&house.url(&house.film("anna", "Film Fast")), 4, &file);
    let status = eventually("its end", 2 * PATIENCE, || {
        assert!(house.counted("anna") <= 1, "{}", house.user("anna"));
        client.ended()
    });
    assert!(status.success(), "{}", client.log());
    assert!(std::fs::read(&file).expect("it is there") == *bytes, "{}", client.log());
    house.is_over(&provider, 3 * SECOND);
}

#[test]
fn ranges_are_what_rfc_9110_says() {
    let _turn = turn();
    let provider = fast(&[1]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Fast);
    let path = house.film("anna", "Film Fast");
    let all = bytes.len();
    let span = |from: usize, to: usize| (206, Some(format!("bytes {from}-{}/{all}", to - 1)), from..to);
    let whole = || (200, None, 0..all);
    let cases = [
        ("bytes=0-0", span(0, 1)),
        ("bytes=100-199", span(100, 200)),
        ("bytes=-500", span(all - 500, all)),
        (&format!("bytes={}-", all - 10), span(all - 10, all)),
        (&format!("bytes={}-{}", all - 10, all + 10), span(all - 10, all)),
        (&format!("bytes=-{}", all + 10), span(0, all)),
        (&format!("bytes={all}-"), (416, Some(format!("bytes */{all}")), 0..0)),
        ("bytes=-0", (416, Some(format!("bytes */{all}")), 0..0)),
        ("bytes=5-2", whole()),
        ("bytes=x-", whole()),
        ("seconds=0-1", whole()),
    ];
    let mut tag = None;
    for (range, (status, content_range, body)) in cases {
        let answer = house.part("curl", &path, range);
        assert_eq!((answer.status, answer.field("content-range")), (status, content_range.as_deref()), "{range}");
        assert!(status == 416 || answer.body == bytes[body], "{range}: {} bytes", answer.body.len());
        if status != 416 {
            assert_eq!(answer.field("accept-ranges"), Some("bytes"), "{range}");
            let own = answer.must("etag").to_owned();
            assert_eq!(tag.get_or_insert_with(|| own.clone()), &own, "{range}");
        }
    }
    let tag = tag.expect("one was there");
    let modified = house.part("curl", &path, "bytes=0-0").must("last-modified").to_owned();
    for (version, status) in [(tag.as_str(), 206), (&modified, 206), ("\"other\"", 200)] {
        let request = Request::new("GET", &path).field("Range", "bytes=7-9").field("If-Range", version);
        let answer = request.send(house.edge.address());
        assert_eq!(answer.status, status, "{version}");
        assert!(answer.body == bytes[if status == 206 { 7..10 } else { 0..all }], "{version}");
    }
    let answer = Request::new("HEAD", &path).field("Range", "bytes=0-9").send(house.edge.address());
    assert_eq!((answer.status, answer.must("content-length")), (200, all.to_string().as_str()));
    let several = house.part("curl", &path, "bytes=0-9,20-29");
    assert!(matches!(several.status, 200 | 206 | 416), "{}", several.status);
    house.is_over(&provider, 3 * SECOND);
}

/// V12 and V16: whoever asks for parts is one viewer, however often, and none afterwards.
#[test]
fn v12_v16_parts_count_once_and_leave_nothing() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Tail);
    let path = house.film("anna", "Film Tail");
    for _ in 0..50 {
        let mut curl = prepared::tool("curl");
        curl.args(["-sS", "--fail", "--range", "0-1023", "--output", "/dev/null", &house.url(&path)]);
        let mut client = Process::start("curl", curl);
        assert!(client.wait(PATIENCE).success(), "{}", client.log());
        assert!(house.counted("anna") <= 1);
    }
    house.is_over(&provider, 3 * SECOND);
    let mut before: Option<Connection> = None;
    for number in 0..30 {
        let from = number * 500_000;
        let (mut connection, head) = house.opens("seeker", &path, Some(&format!("bytes={from}-")));
        assert_eq!(head.status, 206, "{head:?}");
        assert!(connection.some(1000, 5 * SECOND) == bytes[from..from + 1000], "{number}");
        assert_eq!(house.counted("anna"), 1, "{}", house.user("anna"));
        if let Some(before) = before.replace(connection) {
            before.hang_up();
        }
    }
    drop(before);
    house.is_over(&provider, 3 * SECOND);
}

/// What a provider does wrong is told, or made good, and nothing of it is left.
#[test]
fn faults_of_the_provider_reach_the_client_as_what_they_are() {
    let _turn = turn();
    let provider = fast(&[1]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Fast);
    let path = house.film("anna", "Film Fast");
    // Of the provider's own refusals nobody here is guilty (spec: playback §8).
    for (status, told) in [(404, 404), (410, 410), (429, 429), (500, 500), (503, 503), (401, 502), (403, 502)] {
        provider.fail("movie/", Fault::Status(status));
        // What a player repeats is told again and asked nobody.
        let answer = house.part(&format!("curl {status}"), &path, "bytes=0-99");
        assert_eq!(answer.status, told, "a {status} of the provider: {}", answer.text());
        provider.mend();
        house.is_over(&provider, 3 * SECOND);
    }
    provider.fail_times("movie/", Fault::WrongRange, 1);
    let answer = house.part("curl", &path, "bytes=100-9999");
    assert_eq!(answer.status, 502, "a part that was not asked for: {}", answer.text());
    provider.fail("movie/", Fault::NoRange);
    let answer = house.part("curl", &path, "bytes=100-199");
    assert!(answer.status == 502 || answer.body == bytes[100..200], "{} of {}", answer.body.len(), answer.status);
    provider.mend();
    provider.fail_times("movie/", Fault::Abort(100_000), 1);
    let (mut connection, head) = house.opens("curl", &path, Some("bytes=0-999999"));
    assert_eq!(head.must("content-length"), "1000000");
    assert_eq!(connection.some(1_000_000, 5 * SECOND).len(), 100_000, "what came, and the end");
    house.is_over(&provider, 3 * SECOND);
    provider.fail_times("movie/", Fault::Slow(50_000), 1);
    let (mut connection, _) = house.opens("curl", &path, Some("bytes=0-199999"));
    assert!(connection.some(200_000, 15 * SECOND) == bytes[..200_000], "slow is no fault");
    drop(connection);
    house.is_over(&provider, 3 * SECOND);
}

/// V7, V10.
#[test]
fn v7_v10_what_a_provider_refuses_of_hls_costs_nothing() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, SHORT);
    let path = house.film("anna", "Film Keys");
    provider.fail_times("105.m3u8", Fault::Status(500), 20);
    for player in 0..20 {
        // Each is another one: what one player repeats is not asked for again.
        let request = Request::new("GET", &path).field("User-Agent", &format!("player {player}"));
        assert_eq!(request.send(house.edge.address()).status, 500);
    }
    assert_eq!(house.counted("anna"), 0);
    provider.fail("key.bin", Fault::Status(400));
    let master = house.edge.get(&path);
    assert_eq!(master.status, 200, "{}", master.text());
    let variant = lines(&path, &master.text()).remove(0);
    let list = house.edge.get(&variant).text();
    let key = list.lines().find(|line| line.starts_with("#EXT-X-KEY")).unwrap_or_else(|| panic!("no key in {list}"));
    let key = key.split("URI=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("it has an address");
    let answer = house.edge.get(&named(&variant, key));
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(house.counted("anna"), 0, "no media was forwarded");
    provider.mend();
    let mut player = Program::Ffmpeg.play(&house.url(&path));
    Program::Ffmpeg.is_seen(&mut player, PATIENCE);
    player.kill();
    house.is_over(&provider, KEPT);
}

/// What a line of the playlist at that path names, as a path.
fn named(path: &str, line: &str) -> String {
    let base = url::Url::parse("http://edge/").and_then(|root| root.join(path)).expect("a path");
    base.join(line).expect("an address").path().to_owned()
}

/// The paths of what a playlist names in lines of their own.
fn lines(path: &str, playlist: &str) -> Vec<String> {
    let lines = playlist.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| named(path, line)).collect()
}

/// V11: a pause of 16 s, and then five segments at once.
#[test]
fn v11_whoever_pauses_comes_back_as_itself() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "[playback]\nstrategies = [\"evict_oldest\"]");
    let path = house.film("anna", "Film Keys");
    let variant = lines(&path, &house.edge.get(&path).text()).remove(0);
    let segments = lines(&variant, &house.edge.get(&variant).text());
    assert_eq!(house.edge.get(&segments[0]).status, 200);
    assert_eq!(house.counted("anna"), 1);
    std::thread::sleep(16 * SECOND);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let house = &house;
        let fetching = segments[1..6].iter().map(|own| scope.spawn(move || house.edge.get(own).status));
        let fetching: Vec<_> = fetching.collect();
        fetching.into_iter().map(|own| own.join().expect("an answer")).collect()
    });
    assert_eq!(statuses, [200; 5]);
    assert_eq!((house.counted("anna"), house.said("evict")), (1, 0), "{}", house.edge.log());
    house.is_over(&provider, 25 * SECOND);
}

/// V4: whoever looks for a place in the past stays with one account.
#[test]
fn v4_the_past_stays_with_one_account() {
    let _turn = turn();
    let provider = provider(&[1, 1, 1]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Ts);
    for minute in 10..20 {
        let path = house.past("anna", "Archive", &format!("2026-11-30:10-{minute}"), "ts");
        let (mut connection, head) = house.opens("player", &path, Some("bytes=0-"));
        assert!(matches!(head.status, 200 | 206), "{head:?}");
        assert!(connection.some(100_000, 5 * SECOND) == bytes[..100_000]);
        assert_eq!(house.counted("anna"), 1);
    }
    let served = provider.served("timeshift");
    assert!(served.len() >= 10 && served.iter().all(|own| own.account == served[0].account), "{served:?}");
    assert!(served.iter().any(|own| own.target.contains("2026-11-30:10-19")), "{served:?}");
    let open = || provider.served("timeshift").iter().filter(|own| own.ended.is_none()).count();
    eventually("the last one is over", 3 * SECOND, || (open() == 0).then_some(()));
    // Another player is another playback, and hers is kept.
    let mut player = Program::Vlc.play(&house.url(&house.past("ben", "Archive", "2026-11-30:10-30", "ts")));
    Program::Vlc.is_seen(&mut player, PATIENCE);
    player.kill();
    house.is_over(&provider, 60 * SECOND);
}

/// V5: who was thrown out stays out, for as long as was said.
#[test]
fn v5_a_block_lasts_as_long_as_it_was_to() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    let path = house.film("anna", "Film Tail");
    let (connection, head) = house.opens("player", &path, None);
    assert_eq!(head.status, 200);
    let id = house.user("anna")["playbacks"][0]["id"].as_str().expect("an id").to_owned();
    let kicked = Instant::now();
    let answer = Request::new("DELETE", &format!("/api/playbacks/{id}?block=5")).send(house.edge.address());
    assert!(answer.status < 300, "{}", answer.text());
    let mut refused = 0;
    let allowed = eventually("it is let in again", 15 * SECOND, || {
        let answer = house.part("player", &path, "bytes=0-99");
        match answer.status {
            206 => Some(Instant::now()),
            403 => {
                refused += 1;
                std::thread::sleep(SECOND / 2);
                None
            }
            other => panic!("{other}: {}", answer.text()),
        }
    });
    assert!(refused >= 5 && (allowed - kicked) >= 5 * SECOND, "{refused} times, {:?}", allowed - kicked);
    drop(connection);
    house.is_over(&provider, 3 * SECOND);
}

/// Films of this machine's own: the same players, and nobody else to ask.
#[test]
fn files_of_this_machine_are_films_too() {
    let _turn = turn();
    let folder = prepared::scratch("films");
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let clips = Clips::ready();
    for (clip, name) in [(Clip::Tail, "Tail.mp4"), (Clip::Matroska, "Matroska.mkv")] {
        std::fs::copy(clips.path(clip), folder.join(name)).expect("it is there");
    }
    std::os::unix::fs::symlink(clips.path(Clip::Fast), folder.join("Outside.mp4")).expect("a link");
    let house = Household::open(&format!("[[library]]\nname = \"disk\"\npath = \"{}\"\n", folder.display()));
    let films = house.api("anna", "get_vod_streams");
    assert_eq!(films.as_array().map(Vec::len), Some(2), "a link that leads out is none: {films}");
    for name in ["Tail", "Matroska"] {
        let url = house.url(&house.film("anna", name));
        for program in [Program::Ffmpeg, Program::Mpv, Program::Vlc, Program::GStreamer] {
            let mut player = program.play_from(&url, 60);
            program.is_seen(&mut player, PATIENCE);
            assert!(house.counted("anna") <= 1, "{program:?} {name}: {}", house.user("anna"));
            player.kill();
            house.counts("anna", 0, 3 * SECOND);
        }
    }
    let bytes = clips.file(Clip::Tail);
    let answer = house.part("curl", &house.film("anna", "Tail"), "bytes=-500");
    assert!(answer.status == 206 && answer.body == bytes[bytes.len() - 500..], "{}", answer.status);
    let file = prepared::scratch("film.mp4");
    let mut client = aria2(&house.url(&house.film("anna", "Tail")), 4, &file);
    assert!(client.wait(PATIENCE).success(), "{}", client.log());
    assert!(std::fs::read(&file).expect("it is there") == *bytes, "{}", client.log());
    house.counts("anna", 0, 3 * SECOND);
}

#[test]
fn redbot_has_nothing_to_say_of_a_film_and_a_playlist() {
    let _turn = turn();
    let provider = fast(&[0]);
    let house = Household::of(&provider, "");
    for path in [
        house.film("zoe", "Film Fast"),
        house.film("zoe", "Film Keys"),
        String::from("/get.php?username=zoe&password=zoe-secret&type=m3u_plus"),
    ] {
        let said = redbot(&house.url(&path));
        // What it says of ranges and conditions is not asked: it tries them all at once, and the newest request takes the place of
        // the others of the same player.
        for wrong in
            ["incorrect", "isn't correct", "not allowed", "invalid", "doesn't have a Date", "missing", "unparseable"]
        {
            assert!(!said.contains(wrong), "{path}: {said}");
        }
        assert!(
            said.contains("The Content-Length header is correct") || path.starts_with("/get.php"),
            "{path}: {said}"
        );
    }
    house.is_over(&provider, 20 * SECOND);
}

fn redbot(url: &str) -> String {
    let mut command = Command::new(prepared::python());
    let program = Path::new(prepared::python().parent().expect("a folder")).join("redbot");
    command.arg(program).args(["-o", "text", url]);
    let mut process = Process::start("redbot", command);
    assert!(process.wait(PATIENCE).success(), "{}", process.log());
    process.log()
}
