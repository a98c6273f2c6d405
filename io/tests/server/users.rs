//! Users: how they log in, what they are told, and what counts as their playbacks.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use holdfast_core::config::{Config, Endpoint, Playback, Strategy, User};
use holdfast_core::input::{Note, SessionId};
use holdfast_core::time::Date;
use holdfast_io::server::{Clip, ConnId, Limits, Settings, Slates};
use holdfast_io::users::{Login, Password, Status};
use serde_json::Value;

use crate::desk::{Desk, content, header};

/// Anna may play one thing at once, Ben two, Carl is disabled, and Dora's time is over after 100 s.
fn desk(strategies: &[Strategy], settings: Settings) -> Desk {
    let user = |name: &str, max_connections| User { name: name.into(), max_connections, ..User::default() };
    let users = vec![
        user("anna", 1),
        user("ben", 2),
        User { enabled: false, ..user("carl", 1) },
        User { until: Some(Date::from_micros(100_000_000)), ..user("dora", 1) },
    ];
    let login = |user: &User| Login {
        name: user.name.clone(),
        password: Password::parse(&format!("{}-secret", user.name)).unwrap(),
        expires: (user.name == "dora").then_some(1_700_000_100),
        groups: Vec::new(),
        status: Status::Active,
    };
    let settings = Settings { users: users.iter().map(login).collect(), epoch: 1_700_000_000, ..settings };
    let endpoints = ["live", "stage"].map(|name| Endpoint { name: name.into(), ..Endpoint::default() });
    let playback = Playback { strategies: strategies.to_vec(), ..Playback::default() };
    Desk::open(Config { endpoints: endpoints.into(), users, playback, ..Config::default() }, settings)
}

pub fn simple() -> Desk {
    desk(&[], Settings::default())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: edge.example:8080\r\n\r\n")
}

fn status_of(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

fn body(answer: &str) -> String {
    content(answer)
}

fn json(answer: &str) -> Value {
    assert_eq!(status_of(answer), 200, "{answer}");
    serde_json::from_str(&body(answer)).unwrap()
}

/// Asks on a connection of its own, which stays open.
fn open(desk: &mut Desk, path: &str) -> (ConnId, String) {
    let id = desk.connect();
    desk.send(id, get(path));
    let answer = desk.read(id);
    (id, answer)
}

fn close(desk: &mut Desk, id: ConnId) {
    let now = desk.time();
    desk.server.closed(now, id);
    desk.turn();
}

/// The address of a stream for Anna, as her list has it.
fn address(desk: &mut Desk, user: &str, stream: &str, output: &str) -> String {
    let list =
        desk.ask(&get(&format!("/get.php?username={user}&password={user}-secret&type=m3u_plus&output={output}")));
    let content = body(&list);
    let mut lines = content.lines();
    lines.find(|line| line.ends_with(&format!(",{stream}"))).expect("the stream is in the list");
    let url = lines.next().unwrap();
    url.strip_prefix("http://edge.example:8080").expect("the address that the client used").to_owned()
}

fn counted(desk: &mut Desk, user: usize) -> u64 {
    let user = desk.status()["users"][user].clone();
    ["normal", "soft", "grace"].iter().map(|place| user[*place].as_u64().unwrap()).sum()
}

fn publish(desk: &mut Desk) -> SessionId {
    let (session, _) = desk.publish();
    desk.video(session, 0);
    session
}

#[test]
fn the_list_has_an_address_for_every_stream_that_plays() {
    let mut desk = simple();
    publish(&mut desk);
    let list = desk.ask(&get("/get.php?username=ben&password=ben-secret&type=m3u_plus"));
    assert_eq!(header(&list, "Content-Type").as_deref(), Some("audio/x-mpegurl"));
    let guide = "http://edge.example:8080/xmltv.php?username=ben&password=ben-secret";
    let head = format!("#EXTM3U url-tvg=\"{guide}\" x-tvg-url=\"{guide}\"\n");
    let first = "#EXTINF:-1 tvg-id=\"live\" tvg-name=\"live\" group-title=\"Live\",live\n";
    assert!(body(&list).starts_with(&format!("{head}{first}")), "{list}");
    assert_eq!(body(&list).lines().count(), 5);
    let path = address(&mut desk, "ben", "live", "ts");
    let (_, answer) = open(&mut desk, &path);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(header(&answer, "Content-Type").as_deref(), Some("video/mp2t"));
    assert_eq!(counted(&mut desk, 1), 1);
    // Without `/live`, and without an ending, as some clients write it.
    let short = path.replace("/live/ben", "/ben").replace(".ts", "");
    let (_, answer) = open(&mut desk, &short);
    assert_eq!(status_of(&answer), 200);
    assert_eq!(counted(&mut desk, 1), 2);
    let (_, third) = open(&mut desk, &path);
    assert_eq!((status_of(&third), header(&third, "Retry-After").as_deref()), (503, Some("5")));
    assert!(third.contains("user-limit"), "{third}");
}

#[test]
fn the_guide_knows_the_streams_as_the_list_does() {
    let mut desk = simple();
    let list = desk.ask(&get("/get.php?username=anna&password=anna-secret"));
    let url = body(&list).split('"').nth(1).unwrap().to_owned();
    let guide = desk.ask(&get(url.strip_prefix("http://edge.example:8080").unwrap()));
    assert_eq!(header(&guide, "Content-Type").as_deref(), Some("application/xml; charset=utf-8"));
    let ids = |text: &str, before: &str| -> Vec<String> {
        text.split(before).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&body(&guide), "<channel id=\""), ["live", "stage"]);
    assert_eq!(ids(&body(&list), "tvg-id=\""), ["live", "stage"]);
    for (path, status) in
        [("/xmltv.php", 403), ("/xmltv.php?username=anna&password=b", 403), ("/xmltv.php?username=anna", 403)]
    {
        assert_eq!(status_of(&desk.ask(&get(path))), status, "{path}");
    }
    let mut open = Desk::simple();
    let guide = open.ask(&get("/xmltv.php"));
    assert!(body(&guide).contains("<display-name>live</display-name>"), "{guide}");
    let list = open.ask(&get("/playlist.m3u"));
    assert!(body(&list).starts_with("#EXTM3U url-tvg=\"http://edge.example:8080/xmltv.php\""), "{list}");
}

#[test]
fn names_and_passwords_that_need_it_are_escaped() {
    let users = vec![User { name: "a b".into(), ..User::default() }];
    let login = Login {
        name: "a b".into(),
        password: Password::parse("x/y?&\"é").unwrap(),
        expires: None,
        groups: Vec::new(),
        status: Status::Active,
    };
    let config = Config { endpoints: vec![Endpoint::default()], users, ..Config::default() };
    let mut desk = Desk::open(config, Settings { users: vec![login], ..Settings::default() });
    let list = desk.ask(&get("/playlist.m3u?username=a%20b&password=x%2Fy%3F%26%22%C3%A9"));
    let content = body(&list);
    let url = content.lines().last().unwrap();
    assert!(url.contains("/live/a%20b/x%2Fy%3F%26%22%C3%A9/"), "{url}");
    let guide = body(&list).split('"').nth(1).unwrap().strip_prefix("http://edge.example:8080").unwrap().to_owned();
    assert_eq!(status_of(&desk.ask(&get(&guide))), 200, "{guide}");
    publish(&mut desk);
    let (_, answer) = open(&mut desk, url.strip_prefix("http://edge.example:8080").unwrap());
    assert_eq!(status_of(&answer), 200, "{answer}");
}

#[test]
fn who_is_not_right_is_not_let_in_anywhere() {
    let mut desk = simple();
    publish(&mut desk);
    let id = address(&mut desk, "anna", "live", "ts").rsplit('/').next().unwrap().to_owned();
    for path in [
        "/get.php?username=anna&password=wrong".to_owned(),
        "/get.php".to_owned(),
        "/playlist.m3u?username=&password=".to_owned(),
        format!("/live/anna/wrong/{id}"),
        format!("/live/nobody/anna-secret/{id}"),
        format!("/anna/ben-secret/{id}"),
    ] {
        let answer = desk.ask(&get(&path));
        assert_eq!(status_of(&answer), 403, "{path}: {answer}");
    }
    for path in ["/live/live.ts", "/live/live/index.m3u8"] {
        let answer = desk.ask(&get(path));
        assert_eq!(status_of(&answer), 401, "{answer}");
        assert!(header(&answer, "WWW-Authenticate").unwrap().starts_with("Basic "));
    }
    let missing = desk.ask(&get("/live/anna/anna-secret/1.ts"));
    assert_eq!(status_of(&missing), 404);
    assert_eq!(desk.server.edge().playback().playbacks().count(), 0);
}

#[test]
fn plain_addresses_take_basic_and_the_query() {
    let mut desk = simple();
    publish(&mut desk);
    let (_, answer) = open(&mut desk, "/live/live.ts?username=ben&password=ben-secret");
    assert_eq!(status_of(&answer), 200);
    let id = desk.connect();
    let basic = BASE64.encode("ben:ben-secret");
    desk.send(id, format!("GET /live/live.ts HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {basic}\r\n\r\n"));
    assert_eq!(status_of(&desk.read(id)), 200);
    assert_eq!(counted(&mut desk, 1), 2);
}

#[test]
fn what_is_posted_is_answered_as_what_is_in_a_query() {
    let mut desk = simple();
    let post = |path: &str, kind: &str, body: &str| {
        let length = body.len();
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let form = "application/x-www-form-urlencoded; charset=UTF-8";
    let login = "username=anna&password=anna%2Dsecret";
    let answer = json(&desk.ask(&post("/player_api.php", form, login)));
    assert_eq!(answer["user_info"]["auth"], 1);
    let streams = format!("{login}&action=get_live_streams");
    assert_eq!(json(&desk.ask(&post("/player_api.php", form, &streams)))[0]["name"], "live");
    // What is in both is what the query says.
    let answer = json(&desk.ask(&post("/player_api.php?action=get_live_categories&username=ben", form, &streams)));
    assert_eq!(answer["user_info"]["auth"], 0);
    let empty = format!("POST /player_api.php?{login} HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(json(&desk.ask(&empty))["user_info"]["auth"], 1);
    assert!(body(&desk.ask(&post("/get.php", form, login))).starts_with("#EXTM3U"));
    assert!(body(&desk.ask(&post("/xmltv.php", form, login))).contains("<channel id=\"live\">"));
    assert_eq!(json(&desk.ask(&post("/player_api.php", "text/plain", login)))["user_info"]["auth"], 0);
    let long = "a".repeat((64 << 10) + 1);
    assert_eq!(status_of(&desk.ask(&post("/player_api.php", form, &long))), 413);
}

#[test]
fn guessing_is_slowed_down_for_its_address_alone() {
    let limits = Limits { login_failures: 3, ..Limits::default() };
    let mut desk = desk(&[], Settings { limits, ..Settings::default() });
    let wrong = |guess: u32| get(&format!("/player_api.php?username=anna&password=guess-{guess}"));
    for guess in [0, 0, 0, 0, 1] {
        assert_eq!(json(&desk.ask(&wrong(guess)))["user_info"]["auth"], 0);
    }
    let right = get("/player_api.php?username=anna&password=anna-secret");
    assert_eq!(json(&desk.ask(&right))["user_info"]["auth"], 1, "one that is set up wrongly keeps nobody out");
    assert_eq!(json(&desk.ask(&wrong(2)))["user_info"]["auth"], 0);
    assert_eq!(json(&desk.ask(&right))["user_info"]["auth"], 1, "whoever was let in from there is not kept out");
    let other = get("/player_api.php?username=ben&password=ben-secret");
    for late in [&other, &wrong(3)] {
        let answer = desk.ask(late);
        assert_eq!((status_of(&answer), header(&answer, "Retry-After").as_deref()), (429, Some("21")), "{answer}");
    }
    assert_eq!(json(&desk.ask(&wrong(0)))["user_info"]["auth"], 0, "what is known to be wrong needs no looking at");
    desk.run(20_000);
    assert_eq!(json(&desk.ask(&other))["user_info"]["auth"], 1);
    assert_eq!(desk.metric("holdfast_logins_failed_total"), Some(7));
    // Which address that was, until when, is said once.
    let locked =
        |note: &Note| if let Note::LoginsLocked { peer, wait, .. } = note { Some((peer.clone(), *wait)) } else { None };
    assert_eq!(desk.notes.iter().filter_map(locked).collect::<Vec<_>>(), [("127.0.0.1".to_owned(), 20_000_000)]);
}

#[test]
fn the_xtream_api_has_the_types_that_clients_rely_on() {
    let mut desk = simple();
    publish(&mut desk);
    let path = address(&mut desk, "dora", "live", "ts");
    open(&mut desk, &path);
    let api = |action: &str| get(&format!("/player_api.php?username=dora&password=dora-secret{action}"));
    let login = json(&desk.ask(&api("")));
    assert_eq!(login["server_info"]["https_port"], "", "there is none");
    let user = &login["user_info"];
    assert_eq!((&user["auth"], &user["status"]), (&Value::from(1), &Value::from("Active")));
    for (field, value) in
        [("active_cons", "1"), ("max_connections", "1"), ("exp_date", "1700000100"), ("is_trial", "0")]
    {
        assert_eq!(user[field], value, "{field}");
    }
    assert_eq!(user["allowed_output_formats"], serde_json::json!(["m3u8", "ts"]));
    let server = &login["server_info"];
    assert_eq!((&server["url"], &server["port"]), (&Value::from("edge.example"), &Value::from("8080")));
    assert_eq!((&server["server_protocol"], &server["timezone"]), (&Value::from("http"), &Value::from("UTC")));
    assert_eq!(
        (&server["timestamp_now"], &server["time_now"]),
        (&Value::from(1_700_000_000), &Value::from("2023-11-14 22:13:20"))
    );
    let ben = json(&desk.ask(&get("/player_api.php?username=ben&password=ben-secret")));
    assert_eq!(ben["user_info"]["exp_date"], Value::Null);

    let categories = json(&desk.ask(&api("&action=get_live_categories")));
    let category = categories[0]["category_id"].as_str().unwrap().to_owned();
    let streams = json(&desk.ask(&api(&format!("&action=get_live_streams&category_id={category}"))));
    assert_eq!(streams.as_array().unwrap().len(), 2);
    let stream = &streams[0];
    assert!(stream["num"].is_u64() && stream["stream_id"].is_u64() && stream["category_id"].is_string(), "{stream}");
    assert_eq!(format!("/live/dora/dora-secret/{}.ts", stream["stream_id"]), path);
    assert_eq!(json(&desk.ask(&api("&action=get_live_streams&category_id=99"))), serde_json::json!([]));
    for action in ["get_vod_streams", "get_series", "get_vod_categories", "get_series_categories"] {
        assert_eq!(json(&desk.ask(&api(&format!("&action={action}")))), serde_json::json!([]), "{action}");
    }
    // What is called otherwise everywhere is the login again, as panels have it.
    for action in ["get_profile", "get_server_info", "drop_tables"] {
        let again = json(&desk.ask(&api(&format!("&action={action}"))));
        assert_eq!((&again["user_info"]["auth"], &again["server_info"]), (&Value::from(1), server), "{action}");
    }
    assert_eq!(json(&desk.ask(&get("/player_api.php")))["user_info"]["auth"], 0);
}

#[test]
fn a_user_ends_on_its_date_though_the_clock_was_wrong_when_the_server_started() {
    let mut desk = simple();
    publish(&mut desk);
    let path = address(&mut desk, "dora", "live", "ts");
    let (viewer, _) = open(&mut desk, &path);
    let told = |desk: &mut Desk| {
        json(&desk.ask(&get("/player_api.php?username=dora&password=dora-secret")))["user_info"]["status"].clone()
    };
    assert_eq!(told(&mut desk), "Active");
    desk.server.set_clock(desk.time(), Duration::from_secs(1_700_000_200));
    desk.turn();
    assert_eq!(told(&mut desk), "Expired");
    assert!(desk.closed.contains(&viewer));
    desk.server.set_clock(desk.time(), Duration::from_secs(1_700_000_050));
    assert_eq!(told(&mut desk), "Active");
    let (_, answer) = open(&mut desk, &path);
    assert_eq!(status_of(&answer), 200);
}

#[test]
fn who_may_not_play_can_still_log_in_and_see_why() {
    let mut desk = simple();
    let file = address(&mut desk, "anna", "live", "ts").rsplit('/').next().unwrap().to_owned();
    let refused = |desk: &mut Desk, user: &str| {
        let login = format!("username={user}&password={user}-secret");
        for path in [
            format!("/live/{user}/{user}-secret/{file}"),
            format!("/get.php?{login}"),
            format!("/xmltv.php?{login}"),
            format!("/player_api.php?{login}&action=get_live_streams"),
            format!("/player_api.php?{login}&action=get_vod_categories"),
            format!("/panel_api.php?{login}&action=get_series"),
        ] {
            let answer = desk.ask(&get(&path));
            assert_eq!(status_of(&answer), 403, "{path}: {answer}");
            assert!(answer.contains("account-expired"), "{path}: {answer}");
        }
    };
    let status = |desk: &mut Desk, user: &str, file: &str| {
        let login = json(&desk.ask(&get(&format!("/{file}?username={user}&password={user}-secret"))));
        assert_eq!(login["user_info"]["auth"], 1);
        assert_eq!(login["available_channels"], Value::Null, "whatever there is is for others");
        login["user_info"]["status"].as_str().unwrap().to_owned()
    };
    refused(&mut desk, "carl");
    assert_eq!(status(&mut desk, "carl", "player_api.php"), "Disabled");
    assert_eq!(status(&mut desk, "carl", "panel_api.php"), "Disabled");
    assert_eq!(status(&mut desk, "dora", "player_api.php"), "Active");
    address(&mut desk, "dora", "live", "ts");
    desk.run(100_000);
    assert_eq!(status(&mut desk, "dora", "player_api.php"), "Expired");
    refused(&mut desk, "dora");
}

#[test]
fn what_flows_ends_when_the_time_of_its_user_is_over() {
    let mut desk = simple();
    desk.run(90_000);
    let session = publish(&mut desk);
    let [dora, anna] = ["dora", "anna"].map(|user| {
        let path = address(&mut desk, user, "live", "ts");
        let (id, answer) = open(&mut desk, &path);
        assert_eq!(status_of(&answer), 200, "{answer}");
        id
    });
    flow(&mut desk, session, 9_500);
    assert!(!desk.closed.contains(&dora) && counted(&mut desk, 3) == 1);
    flow(&mut desk, session, 500);
    assert!(desk.closed.contains(&dora) && !desk.closed.contains(&anna));
    assert_eq!((counted(&mut desk, 3), counted(&mut desk, 0)), (0, 1));
    assert_eq!(desk.metric("holdfast_user_playbacks_ended_total{user=\"dora\",reason=\"expired\"}"), Some(1));
    let path = address(&mut desk, "anna", "live", "ts").replace("anna", "dora");
    let (_, answer) = open(&mut desk, &path);
    assert!(status_of(&answer) == 403 && answer.contains("account-expired"), "{answer}");
}

#[test]
fn a_place_is_free_when_the_player_has_gone_and_goes_to_who_waits() {
    let mut desk = desk(&[Strategy::GraceHold], Settings::default());
    publish(&mut desk);
    let path = address(&mut desk, "anna", "live", "ts");
    let (first, answer) = open(&mut desk, &path);
    assert_eq!(status_of(&answer), 200);
    let (second, answer) = open(&mut desk, &path);
    assert_eq!(answer, "", "held");
    close(&mut desk, first);
    assert_eq!(status_of(&desk.read(second)), 200);
    let (third, _) = open(&mut desk, &path);
    close(&mut desk, third);
    assert_eq!(counted(&mut desk, 0), 1, "who hung up while it waited is forgotten");
    close(&mut desk, second);
    assert_eq!(counted(&mut desk, 0), 0);
}

#[test]
fn looking_is_not_counted() {
    let mut desk = simple();
    publish(&mut desk);
    for output in ["ts", "m3u8"] {
        let path = address(&mut desk, "anna", "live", output);
        for _ in 0..3 {
            let head = desk.ask(&format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
            assert_eq!((status_of(&head), body(&head).as_str()), (200, ""));
        }
    }
    assert_eq!(counted(&mut desk, 0), 0);
    let post = address(&mut desk, "anna", "live", "ts");
    let answer = desk.ask(&format!("DELETE {post} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!((status_of(&answer), header(&answer, "Allow").as_deref()), (405, Some("GET, HEAD")));
}

/// Key frames every 500 ms.
fn flow(desk: &mut Desk, session: SessionId, ms: u64) {
    let until = desk.now + ms;
    while desk.now < until {
        let now = desk.now;
        desk.run_alive(&[session], now + 500);
        desk.video(session, (desk.now * 1000) as i64);
    }
}

/// The address of the media playlist behind that of an index.
fn resolve(path: &str, index: &str) -> String {
    assert_eq!(status_of(index), 200, "{index}");
    let base = url::Url::parse("http://edge.example:8080").unwrap().join(path).unwrap();
    let content = body(index);
    let line = content.lines().find(|line| line.contains("media.m3u8")).unwrap();
    let media = base.join(line).unwrap();
    format!("{}?{}", media.path(), media.query().unwrap())
}

#[test]
fn a_playback_in_segments_is_counted_once_however_it_is_asked_for() {
    let mut desk = simple();
    let session = publish(&mut desk);
    flow(&mut desk, session, 9_000);
    for short in [false, true] {
        let mut path = address(&mut desk, "anna", "live", "m3u8");
        if short {
            path = path.replacen("/live/", "/", 1);
        }
        // mpv asks twice and goes on with the second.
        let first = desk.ask(&get(&path));
        let second = desk.ask(&get(&path));
        let (first, second) = (resolve(&path, &first), resolve(&path, &second));
        assert_ne!(first, second);
        let playlist = desk.ask(&get(&second));
        assert!(playlist.contains("segment-"), "{playlist}");
        let segment = body(&playlist).lines().find(|line| line.starts_with("segment-")).unwrap().to_owned();
        let segment = second.replace(second.rsplit('/').next().unwrap(), &segment);
        for _ in 0..2 {
            let (_, answer) = open(&mut desk, &segment);
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
        assert_eq!(counted(&mut desk, 0), 1);
        // While it is watched there is no place for another.
        let ts = address(&mut desk, "anna", "live", "ts");
        assert_eq!(status_of(&desk.ask(&get(&ts))), 503);
        flow(&mut desk, session, 20_000);
        assert_eq!(counted(&mut desk, 0), 0, "it asked no more");
    }
}

#[test]
fn an_index_alone_takes_no_place_whoever_asks_for_it_how_often() {
    let mut desk = simple();
    let session = publish(&mut desk);
    flow(&mut desk, session, 9_000);
    let ts = address(&mut desk, "anna", "live", "ts");
    let path = address(&mut desk, "anna", "live", "m3u8");
    let index = desk.ask(&get(&path));
    assert_eq!((status_of(&index), counted(&mut desk, 0)), (200, 0));
    assert_eq!(desk.server.edge().playback().playbacks().count() + desk.server.edge().feeds().viewer_count(), 0);
    let (playing, answer) = open(&mut desk, &ts);
    assert_eq!((status_of(&answer), counted(&mut desk, 0)), (200, 1), "its only place is free");
    assert_eq!(status_of(&desk.ask(&get(&path))), 200, "whoever only looks is told how it would begin");
    let media = resolve(&path, &index);
    assert_eq!(status_of(&desk.ask(&get(&media))), 503, "and is refused when it does");
    close(&mut desk, playing);
    flow(&mut desk, session, 2_000);
    // Probes make nobody forgotten that plays.
    assert_eq!(status_of(&desk.ask(&get(&media))), 200);
    let prober = desk.connect();
    for _ in 0..5_000 {
        desk.send(prober, get(&path));
        assert_eq!(status_of(&desk.read(prober)), 200);
    }
    flow(&mut desk, session, 20_000);
    assert_eq!(counted(&mut desk, 0), 0);
    assert_eq!(status_of(&desk.ask(&get(&media))), 200, "it comes back by its token");
}

/// V11: whoever was paused comes back as itself, evicts nobody, and is counted again.
#[test]
fn v11_a_player_that_was_paused_comes_back_by_its_token_alone() {
    let mut desk = desk(&[Strategy::EvictOldest], Settings::default());
    let session = publish(&mut desk);
    flow(&mut desk, session, 9_000);
    let path = address(&mut desk, "anna", "live", "m3u8");
    let index = desk.ask(&get(&path));
    let media = resolve(&path, &index);
    desk.ask(&get(&media));
    flow(&mut desk, session, 16_000);
    assert_eq!(counted(&mut desk, 0), 0);
    let segment = media.replace("media.m3u8", "segment-1700000000.ts");
    for _ in 0..5 {
        assert_eq!(status_of(&desk.ask(&get(&segment))), 410, "nothing that is not counted is sent");
    }
    let playlist = desk.ask(&get(&media));
    assert_eq!(status_of(&playlist), 200, "{playlist}");
    assert_eq!(counted(&mut desk, 0), 1);
    let forged = media.replace("v=", "v=0");
    assert_ne!(status_of(&desk.ask(&get(&forged))), 200);
    let never_given = format!("{}?v={}", media.split('?').next().unwrap(), "ab".repeat(21) + "A");
    assert_eq!(status_of(&desk.ask(&get(&never_given))), 410);
    assert_eq!(desk.metric("holdfast_user_playbacks_ended_total{user=\"anna\",reason=\"evicted\"}"), Some(0));
}

#[test]
fn an_operator_ends_a_playback_and_keeps_its_player_out() {
    let mut desk = simple();
    publish(&mut desk);
    let path = address(&mut desk, "anna", "live", "ts");
    let (connection, _) = open(&mut desk, &path);
    let playback = desk.status()["users"][0]["playbacks"][0].clone();
    assert_eq!(
        (&playback["stream"], &playback["state"], &playback["kind"]),
        (&"live".into(), &"active".into(), &"live-ts".into())
    );
    let id = playback["id"].as_str().unwrap().to_owned();
    let bad = desk.ask(&format!("DELETE /api/playbacks/{id}?block=long HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(status_of(&bad), 400);
    let answer = desk.ask(&format!("DELETE /api/playbacks/{id}?block=10 HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(status_of(&answer), 204);
    assert!(desk.closed.contains(&connection));
    let again = desk.ask(&format!("DELETE /api/playbacks/{id} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(status_of(&again), 404);
    assert_eq!(status_of(&desk.ask(&get(&path))), 403);
    desk.run(10_000);
    let (_, answer) = open(&mut desk, &path);
    assert_eq!(status_of(&answer), 200);
}

#[test]
fn without_users_everybody_plays_and_nobody_is_counted() {
    let mut desk = Desk::simple();
    publish(&mut desk);
    let list = desk.ask(&get("/playlist.m3u"));
    assert!(body(&list).ends_with(",live\nhttp://edge.example:8080/live/live.ts\n"), "{list}");
    let list = desk.ask(&get("/playlist.m3u?output=m3u8"));
    assert!(body(&list).ends_with("/live/live/index.m3u8\n"), "{list}");
    assert_eq!(status_of(&desk.ask(&get("/player_api.php?username=a&password=b"))), 404);
    let (_, answer) = open(&mut desk, "/live/live.ts");
    assert_eq!(status_of(&answer), 200);
    assert_eq!(desk.server.edge().playback().playbacks().count(), 0);
}

#[test]
fn a_trusted_proxy_says_who_its_clients_are() {
    let settings = Settings { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..Settings::default() };
    let mut desk = desk(&[], settings);
    publish(&mut desk);
    let path = address(&mut desk, "anna", "live", "ts");
    let id = desk.connect();
    desk.send(id, format!("GET {path} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.5, 198.51.100.7\r\n\r\n"));
    assert_eq!(desk.status()["users"][0]["playbacks"][0]["address"], "198.51.100.7");
    let list = desk.ask(
        "GET /get.php?username=anna&password=anna-secret HTTP/1.1\r\nHost: tv.example\r\nX-Forwarded-Proto: https\r\n\r\n",
    );
    assert!(list.contains("\nhttps://tv.example/live/anna/"), "{list}");
}

#[test]
fn nothing_that_people_read_has_a_password() {
    let mut desk = simple();
    publish(&mut desk);
    let path = address(&mut desk, "anna", "live", "ts");
    open(&mut desk, &path);
    open(&mut desk, &path);
    let (status, metrics) = (desk.status().to_string(), desk.ask(&get("/metrics")));
    let notes = format!("{:?}", desk.notes);
    for text in [status, metrics, notes] {
        assert!(!text.contains("secret"), "{text}");
    }
    assert!(desk.metric("holdfast_user_places_used{user=\"anna\",place=\"normal\"}") == Some(1));
    assert!(desk.metric("holdfast_user_playbacks_refused_total{user=\"anna\",reason=\"user-limit\"}") == Some(1));
}

#[test]
fn a_television_is_shown_why_it_is_refused() {
    let clip = std::sync::Arc::new(Clip::new(crate::channels::media(50).into()).unwrap());
    let slates = Slates { user_limit: Some(clip), ..Slates::default() };
    let mut desk = desk(&[], Settings { slates, ..Settings::default() });
    publish(&mut desk);
    let path = address(&mut desk, "anna", "live", "ts");
    open(&mut desk, &path);
    let second = desk.connect();
    desk.send(second, get(&path));
    let answer = desk.written.remove(&second).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(answer[end..], crate::channels::media(50), "once");
    assert!(desk.closed.contains(&second));
    assert_eq!(counted(&mut desk, 0), 1);
    let refused = desk.status()["users"][0]["refused"].clone();
    assert!(refused.is_null() || refused["user-limit"] == 1, "{refused}");
    let list = address(&mut desk, "anna", "live", "m3u8");
    let index = desk.ask(&get(&list));
    let (_, answer) = open(&mut desk, &resolve(&list, &index));
    assert_eq!(status_of(&answer), 503, "what is no stream is told in words");
}
