//! The provider of these tests, without the program between: it is what real players take for one, it counts what they do, and
//! it refuses what is too much.

use std::time::Duration;

use holdfast_tests::browser::Browser;
use holdfast_tests::player::{Program, aria2, mpv_that_seeks};
use holdfast_tests::process::Process;
use holdfast_tests::provider::{Clip, Clips, FILMS, Fault, Provider, Settings, Uris};
use holdfast_tests::{eventually, prepared, turn};
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(40);

/// Some connections more than any player needs.
fn provider() -> Provider {
    Provider::start(Settings::accounts(&[8, 1]))
}

fn idle(provider: &Provider) {
    eventually("nobody is connected", 5 * SECOND, || (provider.open() == 0).then_some(()));
}

#[test]
fn players_play_whatever_it_has() {
    let _turn = turn();
    let provider = provider();
    for film in &FILMS {
        let url = provider.address(0, "movie", &format!("{}.{}", film.id, film.extension));
        // That ffmpeg cannot seek in fragments of its own making.
        let begin = if film.id == 107 { 0 } else { 100 };
        let mut player = Program::Ffmpeg.play_from(&url, begin);
        let status = player.wait(PATIENCE);
        assert!(status.success() && Program::Ffmpeg.shows(&player), "{}: {}", film.name, player.log());
        // Even of a playlist.
        assert!(provider.served("movie/").iter().all(|own| own.status == 206), "{}", film.name);
        idle(&provider);
        provider.forget();
    }
    let start = "2026-11-30:10-00";
    for (kind, file) in [("live", "1.ts"), ("live", "4.m3u8"), (&format!("timeshift/x/60/{start}"), "3.ts")] {
        let kind = kind.replace("/x/", "/");
        let url = if kind.starts_with("timeshift") {
            let account = provider.account(0);
            format!("{}/timeshift/{}/{}/60/{start}/{file}", provider.url(), account.username, account.password)
        } else {
            provider.address(0, &kind, file)
        };
        // Where a stream begins between key frames, as panels' do, VLC 3.0.24 may stop ("buffer deadlock prevented") and playbin may
        // show nothing for longer than anybody waits.
        let programs = [Program::Mpv, Program::GStreamer, Program::Vlc];
        for program in &programs[..if file == "1.ts" { 1 } else { 3 }] {
            let mut player = program.play(&url);
            program.is_seen(&mut player, PATIENCE);
            assert!(provider.count(0).open > 0 || file.ends_with("m3u8"), "{url}");
            player.kill();
            idle(&provider);
        }
    }
    assert_eq!(provider.count(0).refused, 0, "{:?}", provider.served(""));
}

#[test]
fn seeks_are_ranges() {
    let _turn = turn();
    let provider = provider();
    let url = provider.address(0, "movie", "101.mp4");
    let mut player = mpv_that_seeks(&url, &[100, 10, 60]);
    assert!(player.wait(PATIENCE).success(), "{}", player.log());
    assert!(player.log().matches("plays at").count() >= 4, "{}", player.log());
    let mut browser = Browser::start();
    browser.open_page("video.html");
    browser.value(&format!("play({url:?})"));
    browser.until("it plays", PATIENCE, "at() > 1");
    browser.value("seek(100)");
    browser.until("it plays there", PATIENCE, "at() > 101");
    assert_eq!(browser.value("JSON.stringify(faults)"), "[]");
    browser.kill();
    idle(&provider);
    assert!(provider.count(0).peak >= 2, "players open before they close: {:?}", provider.count(0));
}

/// What is too much is refused, and what comes in the end is what it has.
#[test]
fn surplus_connections_are_counted_and_refused() {
    let _turn = turn();
    let provider = provider();
    let bytes = Clips::ready().file(Clip::Fast);
    for (account, refused) in [(0, false), (1, true)] {
        let file = prepared::scratch("film.mp4");
        let mut client = aria2(&provider.address(account, "movie", "102.mp4"), 4, &file);
        client.wait(PATIENCE);
        assert_eq!(provider.count(account).refused > 0, refused, "{:?}", provider.count(account));
        if !refused {
            assert!(std::fs::read(&file).expect("it is there") == *bytes, "{}", client.log());
            assert_eq!(provider.count(account).peak, 4);
        }
        idle(&provider);
    }
}

#[test]
fn a_token_is_good_once_and_a_playlist_may_be_anywhere() {
    let _turn = turn();
    for uris in [Uris::Relative, Uris::Rooted, Uris::Absolute] {
        let provider = Provider::start(Settings { redirect: true, uris, ..Settings::accounts(&[4]) });
        let mut curl = prepared::tool("curl");
        let url = provider.address(0, "movie", "102.mp4");
        curl.args(["-sSL", "--output", "/dev/null", "--write-out", "%{http_code} %{url_effective}\n", &url]);
        let mut client = Process::start("curl", curl);
        assert!(client.wait(PATIENCE).success());
        let end = client.find("its end", SECOND, |line| line.text.strip_prefix("200 ").map(str::to_owned));
        let mut curl = prepared::tool("curl");
        curl.args(["-sS", "--output", "/dev/null", "--write-out", "%{http_code}\n", &end]);
        let mut client = Process::start("curl", curl);
        client.wait(PATIENCE);
        client.find("refusal", SECOND, |line| (line.text == "403").then_some(()));
        for (kind, file) in [("movie", "105.m3u8"), ("movie", "106.m3u8"), ("movie", "107.m3u8"), ("live", "4.m3u8")] {
            let mut player = Program::Ffmpeg.play(&provider.address(0, kind, file));
            Program::Ffmpeg.is_seen(&mut player, PATIENCE);
            player.kill();
        }
        idle(&provider);
    }
}

#[test]
fn faults_are_what_they_are_called() {
    let _turn = turn();
    let provider = provider();
    let url = provider.address(0, "movie", "102.mp4");
    let curl = |arguments: &[&str]| {
        let mut curl = prepared::tool("curl");
        curl.args(["-sS", "--max-time", "2", "--output", "/dev/null", "--dump-header", "/dev/stderr"]);
        curl.args(["--write-out", "{\"size\": %{size_download}}\n"]).args(arguments).arg(&url);
        let mut client = Process::start("curl", curl);
        client.wait(PATIENCE);
        idle(&provider);
        provider.mend();
        let size = client.find("its size", SECOND, |line| line.json()["size"].as_u64());
        (client.log(), size)
    };
    for (fault, told, sizes) in [
        (Fault::Silent, "timed out", 0..1),
        (Fault::Stalls, "timed out", 1000..1001),
        (Fault::Slow(20_000), "timed out", 20_000..80_000),
        (Fault::Abort(50_000), "transfer closed", 50_000..50_001),
        (Fault::Status(500), "HTTP/1.1 500 ", 0..100),
    ] {
        provider.fail("movie/", fault);
        let (log, size) = curl(&[]);
        assert!(log.contains(told) && sizes.contains(&size), "{fault:?}: {size} {log}");
    }
    provider.fail("movie/", Fault::NoRange);
    assert!(curl(&["--range", "100-199"]).0.contains("HTTP/1.1 200 "));
    provider.fail("movie/", Fault::WrongRange);
    assert!(curl(&["--range", "100-1999"]).0.contains("bytes 1100-1999/"));
    assert!(curl(&["--range", "100-1999"]).0.contains("bytes 100-1999/"));
}

/// npm's @iptv/xtream-api and @iptv/playlist read it, so that what they make of it can be compared with what they make of an edge.
#[test]
fn clients_of_other_people_read_it() {
    let _turn = turn();
    let provider = provider();
    let read = titles(&provider.url(), &provider.account(0).username, &provider.account(0).password);
    let films = read["movies"].as_array().expect("a list");
    assert_eq!(films.len(), FILMS.len(), "{read}");
    let address = provider.address(0, "movie", "103.mkv").replace("%2D", "-");
    assert_eq!(films[2]["url"], address);
    assert_eq!(read["show"]["episodes"]["1"].as_array().map(Vec::len), Some(2), "{read}");
    assert_eq!(read["playlist"]["channels"].as_array().map(Vec::len), Some(4 + 1 + 7 + 3));
}

/// What npm's clients make of the titles of a panel.
fn titles(url: &str, name: &str, password: &str) -> Value {
    let mut command = prepared::tool("node");
    command.arg(prepared::client("titles.mjs")).arg(prepared::node_modules()).args([url, name, password]);
    let mut client = Process::start("titles.mjs", command);
    assert!(client.wait(PATIENCE).success(), "{}", client.log());
    client.find("answer", SECOND, |line| Some(line.json()).filter(|json| json["playlist"].is_object()))
}
