//! What providers have is there for users, as lists, as the API of panels and as a guide, with addresses of the edge's own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use holdfast_tests::edge::Edge;
use holdfast_tests::household::Household;
use holdfast_tests::http::Request;
use holdfast_tests::player::Program;
use holdfast_tests::process::Process;
use holdfast_tests::provider::{Clip, Clips, DASH, FILMS, Fault, Form, LIVES, Provider, SERIES, Settings};
use holdfast_tests::{eventually, prepared, turn};
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(40);

/// What npm's clients make of the titles of a panel, be it the provider or the edge.
fn titles(url: &str, name: &str, password: &str) -> Value {
    let mut command = prepared::tool("node");
    command.arg(prepared::client("titles.mjs")).arg(prepared::node_modules()).args([url, name, password]);
    let mut client = Process::start("titles.mjs", command);
    assert!(client.wait(PATIENCE).success(), "{}", client.log());
    client.find("answer", SECOND, |line| Some(line.json()).filter(|json| json["playlist"].is_object()))
}

/// The names in a list, in order.
fn names(list: &Value) -> Vec<String> {
    let mut names: Vec<String> =
        list.as_array().into_iter().flatten().filter_map(|own| own["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}

/// Without what an edge has that is told of no endpoint and no channel.
fn ours_of(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name != "live" && name != "test");
    names
}

/// The configuration with the list of an account in place of the panel.
fn by_list(provider: &Provider) -> String {
    provider.configuration("panel").replacen(&provider.url(), &provider.list(0).replace("%2D", "-"), 1)
}

#[test]
fn clients_of_other_people_read_films_series_and_the_past() {
    let _turn = turn();
    let provider = Provider::start(Settings { rate: 400 << 20, ..Settings::accounts(&[1]) });
    let own = provider.account(0);
    let theirs = titles(&provider.url(), &own.username, &own.password);
    let house = Household::of(&provider, "[playback]\nhls_session_ttl = \"1s\"\ncatchup_session_ttl = \"1s\"");
    let ours = titles(&house.url(""), "anna", "anna-secret");
    for list in ["movies", "shows", "channels"] {
        assert_eq!(ours_of(names(&ours[list])), names(&theirs[list]), "{list}");
    }
    let mut theirs_listed = names(&theirs["playlist"]["channels"]);
    // A panel's API does not name the first, nor episodes before it is asked for their series.
    theirs_listed.retain(|name| name != DASH && !name.starts_with(SERIES.1));
    assert_eq!(ours_of(names(&ours["playlist"]["channels"])), theirs_listed);
    assert_eq!(ours["standardized"].as_array().map(Vec::len), Some(FILMS.len()));
    let seasons = |read: &Value| -> Vec<(String, usize)> {
        let seasons = read["show"]["episodes"].as_object().cloned().unwrap_or_default();
        seasons.into_iter().map(|(season, all)| (season, all.as_array().map_or(0, Vec::len))).collect()
    };
    assert_eq!(seasons(&ours), seasons(&theirs), "{}", ours["show"]);
    assert_eq!(ours["show"]["info"]["name"], SERIES.1);
    assert_eq!(names(&ours["movieCategories"]), names(&theirs["movieCategories"]));
    // Their addresses are played as they are.
    let films = ours["movies"].as_array().expect("a list");
    for film in films {
        let form = FILMS.iter().find(|own| film["name"] == own.name).expect("it is one of them").form;
        let url = film["url"].as_str().expect("an address");
        let answer = Request::new("GET", path(url)).field("Range", "bytes=0-99").send(house.edge.address());
        match form {
            Form::File(clip) => {
                assert_eq!(answer.status, 206, "{url}: {}", answer.text());
                assert!(answer.body == Clips::ready().file(clip)[..100], "{url}");
            }
            Form::Hls(_) => assert!(answer.text().starts_with("#EXTM3U"), "{url}: {}", answer.text()),
        }
    }
    let past = ours["past"].as_str().expect("one has an archive");
    let answer = Request::new("GET", path(past)).field("Range", "bytes=0-187").send(house.edge.address());
    assert!(matches!(answer.status, 200 | 206) && answer.body.starts_with(b"G"), "{past}: {}", answer.status);
    let asked = provider.served("timeshift");
    assert!(asked.iter().any(|own| own.target.contains("/60/2026-11-30:10-00/")), "{asked:?}");
    house.is_over(&provider, 5 * SECOND);
}

/// What follows scheme and host.
fn path(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("an address");
    &rest[rest.find('/').expect("a path")..]
}

#[test]
fn a_list_with_faults_of_all_kinds_is_a_catalogue_too() {
    let _turn = turn();
    let provider = Provider::start(Settings { messy: true, ..Settings::accounts(&[1]) });
    let house = Household::open(&by_list(&provider));
    let films = house.api("zoe", "get_vod_streams");
    let all: Vec<&str> = FILMS.iter().map(|film| film.name).collect();
    for name in all {
        assert!(names(&films).iter().any(|own| own == name), "no {name} in {films}");
    }
    let mut player = Program::Ffmpeg.play_from(&house.url(&house.film("anna", "Film Tail")), 60);
    Program::Ffmpeg.is_seen(&mut player, PATIENCE);
    player.kill();
    let mut player = Program::Mpv.play(&house.url(&house.live("anna", "News One", "ts")));
    Program::Mpv.is_seen(&mut player, PATIENCE);
    player.kill();
    // Players are sent to what comes as DASH.
    let answer = house.edge.get(&house.live("anna", DASH, "mpd"));
    assert_eq!(
        (answer.status, answer.must("location")),
        (302, provider.address(0, "live", "5.mpd").replace("%2D", "-").as_str())
    );
    let episodes = house.episodes("anna", SERIES.1);
    assert_eq!(episodes.len(), 3, "{episodes:?}");
    let mut player = Program::Ffmpeg.play_from(&house.url(&episodes[1]), 60);
    Program::Ffmpeg.is_seen(&mut player, PATIENCE);
    player.kill();
    house.is_over(&provider, 6 * SECOND);
}

/// Nothing of what the provider is logged in to with leaves the edge: not to users, not into the log, not into the status.
#[test]
fn secrets_of_accounts_stay_here() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    let panel = provider.configuration("panel").replacen("[[account]]", "output = \"m3u8\"\n[[account]]", 1);
    let house = Household::open(&format!("[playback]\nhls_session_ttl = \"2s\"\n{panel}"));
    let mut texts = Vec::new();
    for path in [
        "/get.php?username=zoe&password=zoe-secret&type=m3u_plus",
        "/player_api.php?username=zoe&password=zoe-secret",
        "/player_api.php?username=zoe&password=zoe-secret&action=get_live_streams",
        "/player_api.php?username=zoe&password=zoe-secret&action=get_vod_streams",
        "/player_api.php?username=zoe&password=zoe-secret&action=get_series",
        "/xmltv.php?username=zoe&password=zoe-secret",
        &house.film("zoe", "Film Keys"),
        &house.live("zoe", "Segments", "m3u8"),
        "/api/status",
        "/metrics",
    ] {
        let answer = house.edge.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        texts.push((path.to_owned(), answer.text()));
    }
    provider.fail("/movie/", Fault::Status(404));
    house.edge.get(&house.film("zoe", "Film Tail"));
    provider.fail("/live/", Fault::Status(404));
    house.edge.get(&house.live("zoe", "News One", "m3u8"));
    texts.push((String::from("the log"), house.edge.log()));
    for (what, text) in texts {
        for secret in ["key-0", "key%2D0"] {
            assert!(!text.contains(secret), "{what} shows {secret}: {text}");
        }
    }
}

#[test]
fn the_guide_is_the_providers_for_what_a_user_has() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    let house = Household::of(&provider, "");
    let guide = eventually("the guide", 20 * SECOND, || {
        let text = house.edge.get("/xmltv.php?username=zoe&password=zoe-secret").text();
        text.contains("<programme").then_some(text)
    });
    let parsed = std::process::Command::new(prepared::python())
        .args(["-c", PROGRAMMES, &guide])
        .output()
        .expect("Python starts");
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
    let read: Value = serde_json::from_slice(&parsed.stdout).expect("JSON");
    let channels: Vec<&str> = LIVES.iter().map(|live| live.epg).filter(|epg| !epg.is_empty()).collect();
    for epg in channels {
        assert_eq!(read[epg].as_array().map(Vec::len), Some(5), "{epg}: {read}");
        let name = LIVES.iter().find(|live| live.epg == epg).expect("it is there").name;
        assert_eq!(read[epg][2], format!("{name} <0>"));
    }
    assert!(!guide.contains("nobody.has"), "a channel that nobody has");
    let channel = house.live("zoe", "News One", "ts");
    let number = channel.rsplit('/').next().and_then(|file| file.split('.').next()).expect("a number");
    let epg = house.api("zoe", &format!("get_short_epg&stream_id={number}"));
    assert!(epg["epg_listings"].as_array().is_some_and(|list| !list.is_empty()), "{epg}");
}

/// The titles of the programmes of each channel, as JSON.
const PROGRAMMES: &str = "
import json, sys, xml.etree.ElementTree as tree
found = {}
for own in tree.fromstring(sys.argv[1].encode()).iter('programme'):
    found.setdefault(own.get('channel'), []).append(own.findtext('title'))
print(json.dumps(found))
";

/// A panel that answers nothing sensible at first, and then does.
#[test]
fn a_panel_that_fails_is_asked_again() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    provider.fail("player_api", Fault::Status(500));
    let user = "[[user]]\nname = \"zoe\"\npassword = \"zoe-secret\"\n";
    let edge = Edge::start(&format!("{user}{}", provider.configuration("panel")));
    eventually("it was asked", 20 * SECOND, || (!provider.served("player_api").is_empty()).then_some(()));
    std::thread::sleep(SECOND);
    provider.mend();
    let films = || edge.get("/player_api.php?username=zoe&password=zoe-secret&action=get_vod_streams").json();
    eventually("its films", 90 * SECOND, || films().as_array().filter(|list| list.len() == FILMS.len()).map(|_| ()));
}

/// A list that cannot be read again leaves what there is: it is listed and plays, the log says why, and the next good one is taken.
#[test]
fn what_was_read_last_is_kept_until_there_is_something_better() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    let file = prepared::scratch("list.m3u");
    let entry =
        |name: &str| format!("#EXTINF:-1 group-title=\"Films\",{name}\n{}\n", provider.address(0, "movie", "101.mp4"));
    std::fs::write(&file, format!("#EXTM3U\n{}", entry("Of The File"))).expect("the temporary folder can be written");
    // One over HTTP, one in a file: both are due each minute, and ten seconds after a reading that failed.
    let each_minute = |text: &str| text.replacen("[[account]]", "refresh = \"1m\"\n[[account]]", 1);
    let of_file = format!(
        "[[provider]]\nname = \"file\"\nurl = \"file://{}\"\nrefresh = \"1m\"\nallow_private = true\n",
        file.display()
    );
    let house = Household::open(&(each_minute(&by_list(&provider)) + &of_file));
    let count = || names(&house.api("zoe", "get_vod_streams"));
    eventually("the file's", 10 * SECOND, || count().contains(&String::from("Of The File")).then_some(()));
    let before = count();
    let path = house.film("anna", "Film Tail");
    let mut player = Program::Ffmpeg.play(&house.url(&house.live("zoe", "News One", "ts")));
    Program::Ffmpeg.is_seen(&mut player, PATIENCE);
    player.kill();
    house.is_over(&provider, 6 * SECOND);

    std::fs::remove_file(&file).expect("it is there");
    // First it breaks off in the middle of a line, then it answers nothing sensible, then it is whole again.
    provider.fail_times("get.php", Fault::Abort(700), 1);
    provider.fail_times("get.php", Fault::Status(500), 1);
    for (said, how) in [("panel", "ended"), ("panel", "500"), ("file", "cannot be read")] {
        eventually(&format!("{said}: {how}"), 100 * SECOND, || {
            let log = house.edge.log();
            let so = |line: &str| line.contains("catalogue") && line.contains(said) && line.contains(how);
            log.lines().any(so).then_some(())
        });
        assert_eq!(count(), before, "what there is is kept");
        let answer = Request::new("GET", &path).field("Range", "bytes=0-99").send(house.edge.address());
        assert_eq!(answer.status, 206, "{}", answer.text());
        assert!(answer.body == Clips::ready().file(Clip::Tail)[..100]);
    }
    let fault = || house.edge.status()["providers"].clone();
    std::fs::write(&file, format!("#EXTM3U\n{}", entry("Something New"))).expect("the temporary folder can be written");
    eventually("the next good one", 100 * SECOND, || count().contains(&String::from("Something New")).then_some(()));
    assert!(!count().contains(&String::from("Of The File")), "what it has no more is gone");
    eventually("both are well", 60 * SECOND, || {
        let all = fault();
        all.as_array()?.iter().all(|own| own["fault"].is_null()).then_some(())
    });
    house.is_over(&provider, 6 * SECOND);
}

/// Lists as people have them: with a byte order mark and lines as on DOS, or in Latin-1 and without a head; in a file, or over HTTP.
#[test]
fn lists_in_files_and_over_http_in_whatever_coding() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[2]));
    let entry = |name: &[u8], group: &[u8], kind: &str, file: &str| -> Vec<u8> {
        let mut all = [b"#EXTINF:-1 tvg-id=\"\" group-title=\"", group, b"\",", name, b"\n"].concat();
        all.extend_from_slice(provider.address(0, kind, file).as_bytes());
        all.push(b'\n');
        all
    };
    let utf8 = [
        entry("Übertragung".as_bytes(), b"News", "live", "1.ts"),
        entry("Film Ärger".as_bytes(), b"Films", "movie", "101.mp4"),
    ];
    let dos = String::from_utf8([&b"#EXTM3U\n"[..], &utf8.concat()].concat()).expect("UTF-8").replace('\n', "\r\n");
    let dos = format!("\u{feff}{dos}").into_bytes();
    // "Télé" and "Café Müller".
    let latin =
        [entry(b"T\xe9l\xe9", b"News", "live", "2.ts"), entry(b"Caf\xe9 M\xfcller", b"Films", "movie", "102.mp4")]
            .concat();
    let mut configuration = String::new();
    for (number, list) in [&dos, &latin].into_iter().enumerate() {
        let file = prepared::scratch(&format!("list-{number}.m3u"));
        std::fs::write(&file, list).expect("the temporary folder can be written");
        configuration += &format!(
            "[[provider]]\nname = \"file-{number}\"\nurl = \"file://{}\"\nallow_private = true\n\
             [[provider]]\nname = \"http-{number}\"\nurl = \"{}\"\n",
            file.display(),
            served(list.clone()),
        );
    }
    let house = Household::open(&configuration);
    let all = ["Café Müller", "Film Ärger"];
    eventually("all lists", 10 * SECOND, || (names(&house.api("zoe", "get_vod_streams")) == all).then_some(()));
    let well = |own: &Value| own["fault"].is_null() && own["reads"] == 1;
    eventually("four readings", 10 * SECOND, || {
        let status = house.edge.status();
        (status["providers"].as_array()?.iter().all(well)).then_some(())
    });
    for (name, clip) in all.iter().zip([Clip::Fast, Clip::Tail]) {
        let answer = house.part("player", &house.film("anna", name), "bytes=100-199");
        assert_eq!(answer.status, 206, "{name}: {}", answer.text());
        assert!(answer.body == Clips::ready().file(clip)[100..200], "{name}");
    }
    for name in ["Übertragung", "Télé"] {
        let mut player = Program::Ffmpeg.play(&house.url(&house.live("anna", name, "ts")));
        Program::Ffmpeg.is_seen(&mut player, PATIENCE);
        player.kill();
        house.counts("anna", 0, 3 * SECOND);
    }
    let list = house.edge.get("/get.php?username=zoe&password=zoe-secret&type=m3u_plus").text();
    assert!(list.contains(",Café Müller\n") && !list.contains(['\r', '\u{feff}']), "{list}");
}

/// The address of a list that whoever asks for it is sent.
fn served(list: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: audio/x-mpegurl\r\nConnection: close\r\n\r\n";
            let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&list));
        }
    });
    format!("http://{address}/list.m3u")
}

/// Two hundred thousand films are a catalogue, and lists of them go out whole.
#[test]
fn a_large_catalogue() {
    let _turn = turn();
    let bulk = 200_000;
    let provider = Provider::start(Settings { bulk, ..Settings::accounts(&[1]) });
    for configuration in [provider.configuration("panel"), by_list(&provider)] {
        let house = Household::open(&configuration);
        let list = house.edge.get("/get.php?username=zoe&password=zoe-secret&type=m3u_plus").text();
        assert_eq!(list.matches(",Bulk ").count(), bulk as usize);
        let resident = house.edge.holdings().resident;
        assert!(resident < 700_000, "{resident} kB");
        let mut player = Program::Ffmpeg.play_from(&house.url(&house.film("anna", "Film Tail")), 60);
        Program::Ffmpeg.is_seen(&mut player, PATIENCE);
        player.kill();
        house.is_over(&provider, 5 * SECOND);
    }
}
