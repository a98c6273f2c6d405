//! Panels: how they are read, how their live streams come, and who may see what they say of a series.

use holdfast_core::config::{Account, Config, Provider, User};
use holdfast_core::input::{Loss, Note, ProviderId, UserId};
use holdfast_io::providers::{Belonging, Guide, ProviderSettings};
use holdfast_io::server::{ConnId, LinkId, Settings, WrongLogin};
use serde_json::Value;

use crate::channels::{Encoder, OK};
use crate::desk::{Desk, content};
use crate::providers::{XML, desk, desk_of, provider};

pub fn paneled() -> Desk {
    let mut desk = desk(vec![provider("http://panel.example:8080", &[("u", "v"), ("w", "z")])]);
    assert!(
        desk.serves("{\"user_info\":{\"auth\":1,\"status\":\"Active\"},\"server_info\":{}}")
            .starts_with("GET /player_api.php?username=u&password=v HTTP")
    );
    for (action, answer) in [
        ("get_live_categories", r#"[{"category_id":"5","category_name":"News"}]"#),
        (
            "get_live_streams",
            r#"[{"num":1,"name":"One","stream_id":"11","category_id":"5","epg_channel_id":"one.example"}]"#,
        ),
        ("get_vod_categories", "[]"),
        ("get_vod_streams", r#"[{"name":"F","stream_id":7,"container_extension":"mkv"}]"#),
        ("get_series_categories", "null"),
        ("get_series", r#"[{"name":"S","series_id":9,"category_id":"x"}]"#),
    ] {
        let asked = desk.serves(answer);
        assert!(asked.contains(&format!("&action={action} ")), "{asked}");
    }
    // What it allows for the other account.
    let asked = desk.serves("{\"user_info\":{\"auth\":1,\"max_connections\":\"3\"}}");
    assert!(asked.starts_with("GET /player_api.php?username=w&password=z HTTP"), "{asked}");
    assert!(desk.serves(XML).starts_with("GET /xmltv.php?username=u&password=v HTTP"));
    assert_eq!(desk.read_notes(), ["1 1 1 0"]);
    desk
}

#[test]
fn a_panel_is_read_and_its_series_asked_for_when_somebody_looks() {
    let mut desk = paneled();
    let series = desk.api("anna", "get_series")[0]["series_id"].clone();
    let [one, other] = [(); 2].map(|()| desk.connect());
    let ask = format!(
        "GET /player_api.php?username=anna&password=x&action=get_series_info&series_id={series} HTTP/1.1\r\nHost: h\r\n\r\n"
    );
    desk.send(one, &ask);
    desk.send(other, &ask);
    assert_eq!((desk.links.len(), desk.read(one).as_str()), (1, ""), "one question for both");
    let episodes = r#"{"info":{"plot":"P","name":"other"},"episodes":{"1":[{"id":"4711","episode_num":"3","season":1,"title":"T","container_extension":"avi"}]}}"#;
    let asked = desk.serves(episodes);
    assert!(
        asked.starts_with("GET /player_api.php?username=u&password=v&action=get_series_info&series_id=9 HTTP"),
        "{asked}"
    );
    let answer = desk.read(one);
    assert_eq!(answer, desk.read(other));
    let told: Value = serde_json::from_str(&content(&answer)).unwrap();
    assert_eq!((&told["info"]["plot"], &told["info"]["name"]), (&"P".into(), &"S".into()));
    assert_eq!(
        (&told["episodes"]["1"][0]["title"], &told["episodes"]["1"][0]["container_extension"]),
        (&"T".into(), &"avi".into())
    );
    // It is known now; and a panel that answers nonsense, or not at all, is an empty series.
    desk.send(one, &ask);
    assert!(desk.links.is_empty() && desk.read(one).contains("\"T\""));
    desk.run(700_000);
    let one = desk.connect();
    desk.send(one, &ask);
    desk.serves("nonsense");
    assert_eq!(desk.read(one), "");
    let asked = desk.serves("{\"user_info\":{\"auth\":0}}");
    assert!(asked.contains("username=w&password=z&action=get_series_info"), "the other account: {asked}");
    assert!(desk.read(one).contains("\"episodes\":{}"));
    desk.send(one, &ask);
    desk.run(730_000);
    assert!(desk.read(one).contains("\"episodes\":{}") && desk.links.is_empty());
    // Whoever is gone needs no answer of the second.
    let gone = desk.connect();
    desk.send(gone, &ask);
    desk.server.closed(desk.time(), gone);
    desk.answers("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert!(desk.links.is_empty());
    // What the first cannot say, the second can.
    desk.send(one, &ask);
    desk.answers("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    desk.serves(episodes);
    assert!(desk.read(one).contains("\"T\""));
}

/// A panel with two live streams that says so of how they come; what is read of it is read.
pub fn panel(formats: &str) -> Desk {
    let settings = provider("http://panel.example:8080", &[("u", "v")]);
    let mut desk = desk(vec![ProviderSettings { guide: Guide::None, ..settings }]);
    desk.serves(format!("{{\"user_info\":{{\"auth\":1,\"allowed_output_formats\":{formats}}}}}"));
    for answer in ["[]", r#"[{"name":"One","stream_id":11},{"name":"Two","stream_id":12}]"#, "[]", "[]", "[]", "[]"] {
        desk.serves(answer);
    }
    assert!(desk.links.is_empty());
    desk
}

/// What the provider is asked for, by whoever asked for it last.
fn asked(desk: &mut Desk) -> (LinkId, String) {
    let link = desk.links.last().expect("it is asked").0;
    desk.link_opens(link);
    let asked = String::from_utf8(desk.asked.remove(&link).unwrap_or_default()).unwrap();
    (link, asked.split(' ').nth(1).unwrap_or_default().to_owned())
}

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
const LISTED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apple.mpegurl\r\n\r\n#EXTM3U\n#EXT-X-TARGETDURATION:4\n\
    #EXTINF:4,\nhttp://panel.example:8080/1.ts\n";

fn hls(desk: &mut Desk, name: &str) -> ConnId {
    let (id, conn) = (desk.id_of(name), desk.connect());
    desk.send(conn, format!("GET /live/anna/x/{id}.m3u8 HTTP/1.1\r\nHost: h\r\n\r\n"));
    conn
}

#[test]
fn live_streams_are_asked_for_as_the_panel_says_that_they_come() {
    for (formats, path) in
        [(r#"["ts","m3u8"]"#, Some("/live/u/v/11.ts")), ("[]", Some("/live/u/v/11.ts")), (r#"["m3u8"]"#, None)]
    {
        let mut desk = panel(formats);
        let conn = desk.plays("One");
        match path {
            Some(path) => assert_eq!(asked(&mut desk).1, path, "{formats}"),
            None => {
                let answer = desk.read(conn);
                let location = format!("\r\nLocation: {}.m3u8\r\n", desk.id_of("One"));
                assert!(answer.starts_with("HTTP/1.1 302 ") && answer.contains(&location), "{answer}");
                hls(&mut desk, "One");
                assert_eq!(asked(&mut desk).1, "/live/u/v/11.m3u8");
            }
        }
    }
}

/// A live stream that is asked for as MPEG-TS, does not come so, and comes as HLS.
fn comes_as_hls(desk: &mut Desk, name: &str, answer: &str) {
    let conn = desk.plays(name);
    let (link, path) = asked(desk);
    assert!(path.ends_with(".ts"), "{path}");
    desk.link_says(link, answer);
    let told = desk.read(conn);
    assert!(told.starts_with("HTTP/1.1 302 "), "{answer}: {told}");
    desk.run(desk.now + 5_000);
    let conn = hls(desk, name);
    let (link, path) = asked(desk);
    assert!(path.ends_with(".m3u8"), "{path}");
    desk.link_says(link, LISTED);
    desk.link_ends(link);
    let list = desk.read(conn);
    assert!(list.starts_with("HTTP/1.1 200 ") && list.contains("/hls/"), "{list}");
}

#[test]
fn what_does_not_come_as_ts_is_asked_for_as_hls_and_two_of_them_stand_for_the_panel() {
    for answer in [
        NOT_FOUND,
        "HTTP/1.1 406 x\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-mpegurl\r\n\r\n#EXTM3U",
    ] {
        let mut desk = panel(r#"["ts","m3u8"]"#);
        let form = |desk: &mut Desk| desk.status()["providers"][0]["live_form"].clone();
        comes_as_hls(&mut desk, "One", answer);
        let refused = |note: &Note| matches!(note, Note::PlaybackRefused { .. });
        assert!(!desk.notes.iter().any(refused), "whoever is sent on is not refused: {:?}", desk.notes);
        // The others are not concluded from one that may be gone.
        assert_eq!(form(&mut desk), "ts");
        comes_as_hls(&mut desk, "Two", answer);
        assert_eq!(form(&mut desk), "m3u8");
        let told = |note: &&Note| matches!(note, Note::LiveAsHls { provider: ProviderId(0) });
        assert_eq!(desk.notes.iter().filter(told).count(), 1, "{:?}", desk.notes);
    }
}

#[test]
fn a_page_says_nothing_of_how_a_stream_comes() {
    for answer in ["Content-Type: text/html\r\n\r\n <html>", "Content-Type: application/json\r\n\r\n{\"error\":1}"] {
        let mut desk = panel(r#"["ts","m3u8"]"#);
        let conn = desk.plays("One");
        let (link, _) = asked(&mut desk);
        desk.link_says(link, format!("HTTP/1.1 200 OK\r\n{answer}"));
        let told = desk.read(conn);
        assert!(told.starts_with("HTTP/1.1 502 "), "{told}");
        assert!(desk.notes.iter().any(|note| matches!(note, Note::SourceLost { loss: Loss::Page, .. })));
        desk.run(desk.now + 60_000);
        desk.plays("One");
        assert_eq!(asked(&mut desk).1, "/live/u/v/11.ts");
    }
    // Scripts call all that they send a page.
    let mut desk = panel("[]");
    let conn = desk.plays("One");
    let (link, _) = asked(&mut desk);
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    desk.link_says(link, Encoder::new().encode(12));
    let answer = desk.written.remove(&conn).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer[..40]));
}

#[test]
fn one_that_is_gone_and_a_panel_that_gives_ts_change_nothing() {
    // It comes in neither form.
    let mut desk = panel(r#"["ts","m3u8"]"#);
    desk.plays("One");
    let (link, _) = asked(&mut desk);
    desk.link_says(link, NOT_FOUND);
    let conn = hls(&mut desk, "One");
    let (link, path) = asked(&mut desk);
    assert_eq!(path, "/live/u/v/11.m3u8");
    desk.link_says(link, NOT_FOUND);
    assert!(desk.read(conn).starts_with("HTTP/1.1 404 "));
    desk.run(desk.now + 60_000);
    desk.plays("One");
    let (link, path) = asked(&mut desk);
    assert_eq!(path, "/live/u/v/11.ts", "and is asked for as before");
    desk.link_says(link, NOT_FOUND);
    desk.run(desk.now + 60_000);
    desk.plays("One");
    assert_eq!(asked(&mut desk).1, "/live/u/v/11.ts", "once");
    // Another came as MPEG-TS before.
    let mut desk = panel(r#"["ts","m3u8"]"#);
    let two = desk.plays("Two");
    let (link, _) = asked(&mut desk);
    desk.link_says(link, OK);
    desk.link_says(link, Encoder::new().encode(12));
    desk.server.closed(desk.time(), two);
    desk.turn();
    desk.run(desk.now + 60_000);
    let conn = desk.plays("One");
    let (link, _) = asked(&mut desk);
    desk.link_says(link, NOT_FOUND);
    assert!(desk.read(conn).starts_with("HTTP/1.1 302 "), "a panel may have both kinds");
    desk.run(desk.now + 60_000);
    let conn = hls(&mut desk, "One");
    let (link, path) = asked(&mut desk);
    assert_eq!(path, "/live/u/v/11.m3u8");
    desk.link_says(link, LISTED);
    desk.link_ends(link);
    assert!(desk.read(conn).starts_with("HTTP/1.1 200 "));
    desk.run(desk.now + 60_000);
    desk.plays("Two");
    assert_eq!(asked(&mut desk).1, "/live/u/v/12.ts", "and the other one as before");
    // Nor is what the operator or the panel says passed over.
    let mut desk = panel(r#"["ts"]"#);
    let conn = desk.plays("One");
    let (link, _) = asked(&mut desk);
    desk.link_says(link, NOT_FOUND);
    desk.run(desk.now + 60_000);
    assert!(!desk.read(conn).starts_with("HTTP/1.1 302 "));
}

#[test]
fn what_a_panel_says_of_a_series_does_not_tell_its_account() {
    let mut desk = desk_of_secrets();
    let series = desk.api("anna", "get_series")[0]["series_id"].clone();
    let conn = desk.connect();
    desk.send(conn, format!("GET /player_api.php?username=anna&password=x&action=get_series_info&series_id={series} HTTP/1.1\r\nHost: h\r\n\r\n"));
    desk.serves(
        r#"{"info":{"plot":"P","backdrop_path":["http://panel.example:8080/joe/s3cret/b.jpg","http://i.example/b.jpg"]},
        "episodes":{"1":[{"id":"4711","season":1,"container_extension":"avi",
        "info":{"movie_image":"http://panel.example:8080/images/joe/s3cret/1.jpg","plot":"E"}}]}}"#,
    );
    let told = desk.read(conn);
    assert!(!told.contains("s3cret") && !told.contains("joe"), "{told}");
    assert!(told.contains("http://i.example/b.jpg") && told.contains("\"plot\":\"E\""), "{told}");
}

fn desk_of_secrets() -> Desk {
    let settings = provider("http://panel.example:8080", &[("joe", "s3cret")]);
    let mut desk = desk(vec![ProviderSettings { guide: Guide::None, ..settings }]);
    for answer in ["{\"user_info\":{\"auth\":1}}", "[]", "[]", "[]", "[]", "[]", r#"[{"name":"S","series_id":9}]"#] {
        desk.serves(answer);
    }
    desk
}

/// A panel with two series, of which Ben may see the first, and what was said of their episodes before.
fn of_two_series(belongings: Vec<Belonging>) -> Desk {
    let users = ["anna", "ben"].map(|name| User { name: name.into(), ..User::default() });
    let settings = provider("http://panel.example:8080", &[("u", "v")]);
    let settings = vec![ProviderSettings { guide: Guide::None, ..settings }];
    let mut desk = desk_of(settings, users.into(), Settings { belongings, ..Settings::default() });
    desk.serves("{\"user_info\":{\"auth\":1}}");
    for answer in [
        "[]",
        "[]",
        "[]",
        "[]",
        r#"[{"category_id":"5","category_name":"News"},{"category_id":"6","category_name":"Sport"}]"#,
        r#"[{"name":"S","series_id":9,"category_id":"5"},{"name":"T","series_id":10,"category_id":"6"}]"#,
    ] {
        desk.serves(answer);
    }
    desk
}

#[test]
fn an_episode_is_for_those_who_may_see_its_series() {
    let mut desk = of_two_series(Vec::new());
    let all = desk.api("anna", "get_series");
    assert_eq!(desk.api("ben", "get_series").as_array().unwrap().len(), 1);
    let mut paths = Vec::new();
    for (series, episode) in [(&all[0], 4711), (&all[1], 4712)] {
        // What it is called here follows from what it is called there.
        paths.push(format!("{}.mkv", 1 << 30 | episode << 5 | 1));
        let refused = desk.ask(&format!("GET /series/ben/x/{} HTTP/1.1\r\nHost: h\r\n\r\n", paths[paths.len() - 1]));
        assert!(refused.starts_with("HTTP/1.1 404 ") && desk.links.is_empty(), "nobody knows yet: {refused}");
        assert!(refused.contains("series-unknown"), "{refused}");
        let conn = desk.connect();
        let id = &series["series_id"];
        desk.send(conn, format!("GET /player_api.php?username=anna&password=x&action=get_series_info&series_id={id} HTTP/1.1\r\nHost: h\r\n\r\n"));
        desk.serves(format!(
            r#"{{"info":{{}},"episodes":{{"1":[{{"id":"{episode}","container_extension":"mkv"}}]}}}}"#
        ));
        assert!(desk.read(conn).contains(&format!("\"{}\"", 1 << 30 | episode << 5 | 1)));
    }
    let kept = std::mem::take(&mut desk.kept);
    assert_eq!(
        kept.iter().map(|own| (own.provider.as_str(), own.episode)).collect::<Vec<_>>(),
        [("tv", 4711), ("tv", 4712)]
    );
    // The same after a restart, without anybody having opened a series since.
    for mut desk in [desk, of_two_series(kept)] {
        for (user, path, may) in [("ben", 0, true), ("ben", 1, false), ("anna", 1, true)] {
            let conn = desk.connect();
            desk.send(conn, format!("GET /series/{user}/x/{} HTTP/1.1\r\nHost: h\r\n\r\n", paths[path]));
            assert_eq!(!desk.links.is_empty(), may, "{user} {path}: {}", desk.read(conn));
            desk.server.closed(desk.time(), conn);
            desk.turn();
            assert!(desk.links.is_empty());
        }
    }
}

#[test]
fn whoever_cannot_log_in_is_told_so_in_either_way_and_the_operator_too() {
    for (wrong_login, status) in [(WrongLogin::Ok, "200 OK"), (WrongLogin::Unauthorized, "401 Unauthorized")] {
        let users = vec![User { name: "anna".into(), ..User::default() }];
        let mut desk = desk_of(Vec::new(), users, Settings { wrong_login, ..Settings::default() });
        let mut ask = |name: &str| {
            desk.ask(&format!("GET /player_api.php?username={name}&password=hunter2 HTTP/1.1\r\nHost: h\r\n\r\n"))
        };
        for name in ["anna", "carl", "carl"] {
            let answer = ask(name);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
            assert_eq!(content(&answer), "{\"user_info\":{\"auth\":0}}");
        }
        desk.run(2000);
        let failed = |user, failures| Note::LoginFailed { peer: "127.0.0.1".into(), user, failures };
        assert_eq!(desk.notes, [failed(Some(UserId(0)), 1), failed(None, 2)]);
    }
}

#[test]
fn a_login_that_a_panel_refuses_is_said_so() {
    let mut desk = desk(vec![provider("http://panel.example", &[("hunter2", "hunter3")])]);
    desk.serves("{\"user_info\":{\"auth\":0}}");
    let notes = desk.read_notes();
    assert!(notes[0].contains("does not know this name and password") && !notes[0].contains("hunter"), "{notes:?}");
}

/// A panel that is read with the first of three accounts, which may have two connections each.
fn of_three() -> Desk {
    let settings = provider("http://panel.example:8080", &[("u", "v"), ("w", "z"), ("y", "x")]);
    let account = Account { max_connections: 2, ..Account::default() };
    let accounts = vec![account.clone(), Account { enabled: false, ..account.clone() }, account];
    let tv = Provider { name: settings.name.clone(), accounts, ..Provider::default() };
    let config = Config { providers: vec![tv], ..Config::default() };
    let mut desk = Desk::open(config, Settings { providers: vec![settings], ..Settings::default() });
    desk.run(0);
    desk
}

fn reads_of_three(desk: &mut Desk, third: &str) {
    desk.serves("{\"user_info\":{\"auth\":1,\"max_connections\":2}}");
    for answer in ["[]", r#"[{"name":"One","stream_id":11,"epg_channel_id":"one.example"}]"#, "[]", "[]", "[]", "[]"] {
        desk.serves(answer);
    }
    let asked = if third.starts_with("HTTP/") {
        let (link, path) = asked(desk);
        desk.link_says(link, third);
        format!("GET {path} HTTP")
    } else {
        desk.serves(third)
    };
    assert!(
        asked.starts_with("GET /player_api.php?username=y&password=x HTTP"),
        "one that is not used is left out: {asked}"
    );
    assert!(desk.serves(XML).starts_with("GET /xmltv.php?username=u&password=v HTTP"), "then the guide");
    let next = desk.now + 3_600_000;
    desk.run(next);
}

#[test]
fn each_account_is_asked_for_and_one_that_is_not_let_in_stops_nothing() {
    let mut desk = of_three();
    let limits = |desk: &mut Desk| {
        let all = desk.status()["providers"][0]["accounts"].clone();
        [0, 1, 2].map(|place: usize| (all[place]["limit"].as_u64(), all[place]["allowed"].as_u64()))
    };
    reads_of_three(&mut desk, "{\"user_info\":{\"auth\":1,\"max_connections\":1}}");
    assert_eq!(limits(&mut desk), [(Some(2), Some(2)), (Some(2), None), (Some(1), Some(1))]);
    let told = |desk: &mut Desk| -> Vec<String> {
        let notes = std::mem::take(&mut desk.notes);
        let own = notes.into_iter().filter_map(|note| match note {
            Note::AccountNotLetIn { account, why } => Some(format!("{} {why}", account.0)),
            Note::CatalogFault { why, .. } => Some(why),
            _ => None,
        });
        own.collect()
    };
    assert!(told(&mut desk).is_empty());
    for (answer, why) in [
        ("{\"user_info\":{\"auth\":0}}", "does not know this name and password"),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "403"),
        ("HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\nContent-Length: 0\r\n\r\n", "http"),
    ] {
        reads_of_three(&mut desk, answer);
        let said = told(&mut desk);
        assert!(said.len() == 1 && said[0].starts_with("2 ") && said[0].contains(why), "{answer}: {said:?}");
        reads_of_three(&mut desk, answer);
        assert!(told(&mut desk).is_empty(), "it is told once");
        assert_eq!(limits(&mut desk)[2].0, Some(1), "what it allowed is held to");
        assert!(!said[0].contains("password=x"), "{said:?}");
    }
    reads_of_three(&mut desk, "{\"user_info\":{\"auth\":1}}");
    assert_eq!(limits(&mut desk)[2], (Some(2), None));
}

#[test]
fn more_connections_than_a_panel_allows_are_told_once_and_when_that_changes() {
    for (configured, says, allowed, told) in [
        (2, r#""1""#, Some(1), vec![(2, 1)]),
        (0, "3", Some(3), vec![]),
        (2, "2", Some(2), vec![]),
        (1, "5", Some(5), vec![]),
        (2, "0", None, vec![]),
        (2, "null", None, vec![]),
    ] {
        let settings = ProviderSettings { guide: Guide::None, ..provider("http://panel.example:8080", &[("u", "v")]) };
        let account = Account { max_connections: configured, ..Account::default() };
        let tv = Provider { name: settings.name.clone(), accounts: vec![account], ..Provider::default() };
        let config = Config { providers: vec![tv], ..Config::default() };
        let mut desk = Desk::open(config, Settings { providers: vec![settings], ..Settings::default() });
        let read = |desk: &mut Desk, says: &str| {
            desk.serves(format!("{{\"user_info\":{{\"auth\":1,\"max_connections\":{says}}}}}"));
            for answer in ["[]", r#"[{"name":"One","stream_id":11}]"#, "[]", "[]", "[]", "[]"] {
                desk.serves(answer);
            }
            let next = desk.now + 3_600_000;
            desk.run(next);
        };
        desk.run(0);
        read(&mut desk, says);
        read(&mut desk, says);
        let overstated = |desk: &Desk| -> Vec<(u32, u32)> {
            let notes = desk.notes.iter();
            let own = notes.filter_map(|note| match note {
                Note::AccountOverstated { configured, allowed, .. } => Some((*configured, *allowed)),
                _ => None,
            });
            own.collect()
        };
        assert_eq!(overstated(&desk), told, "{configured} of {says}");
        let account = desk.status()["providers"][0]["accounts"][0].clone();
        let limit = allowed.filter(|allowed| configured == 0 || configured > *allowed).unwrap_or(configured);
        assert_eq!((&account["limit"], &account["allowed"]), (&limit.into(), &serde_json::json!(allowed)));
        if configured == 2 {
            read(&mut desk, "1");
            read(&mut desk, "0");
            let account = &desk.status()["providers"][0]["accounts"][0];
            assert_eq!((&account["limit"], &account["allowed"]), (&2.into(), &serde_json::Value::Null));
        }
    }
}
