//! Providers: their catalogues are read in the background, told to users, and their live streams played with their accounts.

use std::time::Duration;

use holdfast_core::config::{Account, Config, Provider, User};
use holdfast_core::input::{Left, Note, ProviderId, UserId};
use holdfast_io::providers::{Belonging, Credentials, Dialect, Guide, Location, Output, ProviderSettings, Reach};
use holdfast_io::server::{Action, ConnId, ConnectError, LinkId, Settings, WrongLogin};
use holdfast_io::users::{Login, Password, Status};
use serde_json::Value;

use crate::channels::{Encoder, OK};
use crate::desk::{Desk, content};

/// 2026-11-29T20:00:00Z
const EPOCH: u64 = 1_795_982_400;

pub const LIST: &str = "#EXTM3U url-tvg=\"http://guide.example/x.xml\"\n\
    #EXTINF:-1 tvg-id=\"one.example\" tvg-logo=\"http://l.example/1.png\" group-title=\"News\" catchup=\"shift\" catchup-days=\"3\",One\n\
    http://l.example/live/a/b/1.ts\n\
    #EXTINF:-1 group-title=\"Sport\",Two & \"a half\"\nhttp://l.example/live/a/b/2.ts\n\
    #EXTINF:-1 group-title=\"Films\",A Film\nhttp://l.example/movie/a/b/3.mkv\n\
    #EXTINF:-1 group-title=\"Series\",A Series S02E01\nhttp://l.example/series/a/b/4.mp4\n";

pub const XML: &str = "<?xml version=\"1.0\"?><tv><programme start=\"20261129193000 +0000\" stop=\"20261129203000 +0000\" channel=\"one.example\">\
    <title>Now &amp; here</title><desc>D</desc></programme>\
    <programme start=\"20261129203000 +0000\" stop=\"20261129210000 +0000\" channel=\"one.example\"><title>Next</title></programme></tv>";

pub fn provider(url: &str, accounts: &[(&str, &str)]) -> ProviderSettings {
    let own = |(username, password): &(&str, &str)| {
        Some(Credentials { username: (*username).to_owned(), password: (*password).to_owned() })
    };
    ProviderSettings {
        name: String::from("tv"),
        location: Location::parse(url).unwrap(),
        dialect: Dialect::Auto,
        guide: Guide::Auto,
        refresh: Duration::from_secs(3600),
        user_agent: String::from("VLC/3"),
        output: Output::Auto,
        via: false,
        groups: Vec::new(),
        reach: Reach::Public,
        entries: 1_000_000,
        bytes: 1 << 20,
        accounts: accounts.iter().map(own).collect(),
    }
}

/// Anna sees everything, Ben the news.
pub fn desk(providers: Vec<ProviderSettings>) -> Desk {
    let users = ["anna", "ben"].map(|name| User { name: name.into(), ..User::default() });
    desk_of(providers, users.into(), Settings::default())
}

pub fn desk_of(providers: Vec<ProviderSettings>, users: Vec<User>, settings: Settings) -> Desk {
    let login = |user: &User| Login {
        name: user.name.clone(),
        password: Password::parse("x").unwrap(),
        expires: None,
        groups: if user.name == "ben" { vec![String::from("News")] } else { Vec::new() },
        status: Status::Active,
    };
    let own = |settings: &ProviderSettings| Provider {
        name: settings.name.clone(),
        accounts: vec![Account::default(); settings.accounts.len()],
        ..Provider::default()
    };
    let config = Config { providers: providers.iter().map(own).collect(), users: users.clone(), ..Config::default() };
    let settings =
        Settings { users: users.iter().map(login).collect(), epoch: EPOCH, instance: 7, providers, ..settings };
    let mut desk = Desk::open(config, settings);
    desk.run(0);
    desk
}

pub fn listed() -> Desk {
    let mut desk = desk(vec![provider("http://p.example/get.php?username=a&password=b", &[("a", "b"), ("c", "d")])]);
    desk.serves(LIST);
    desk.serves(XML);
    assert!(desk.links.is_empty(), "all is read");
    desk
}

impl Desk {
    /// The oldest link is opened and answered whole. What was asked there.
    pub fn serves(&mut self, body: impl AsRef<[u8]>) -> String {
        let (link, _) = self.links[0].clone();
        self.link_opens(link);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.as_ref().len());
        self.link_says(link, head);
        body.as_ref().chunks(700).for_each(|piece| self.link_says(link, piece));
        let asked = String::from_utf8(self.asked.remove(&link).unwrap_or_default()).unwrap();
        asked.lines().next().unwrap_or_default().to_owned()
    }

    /// The oldest link gets this answer.
    pub fn answers(&mut self, answer: &str) {
        let (link, _) = self.links[0].clone();
        self.link_opens(link);
        self.link_says(link, answer);
    }

    pub fn asks(&mut self, path: &str) -> String {
        let answer = self.ask(&format!("GET {path} HTTP/1.1\r\nHost: edge.example\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        content(&answer)
    }

    pub fn api(&mut self, user: &str, action: &str) -> Value {
        let text = self.asks(&format!("/player_api.php?username={user}&password=x&action={action}"));
        serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{action}: {fault}: {text}"))
    }

    pub fn read_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
            .into_iter()
            .filter_map(|note| match note {
                Note::CatalogRead { live, films, series, skipped, beyond: 0, .. } => {
                    Some(format!("{live} {films} {series} {skipped}"))
                }
                Note::CatalogRead { live, films, series, beyond, .. } => {
                    Some(format!("{live} {films} {series}, beyond {beyond}"))
                }
                Note::CatalogFault { provider: ProviderId(0), why, .. } => Some(why),
                _ => None,
            })
            .collect()
    }

    pub fn id_of(&mut self, name: &str) -> u64 {
        let all = self.api("anna", "get_live_streams");
        let found = all.as_array().unwrap().iter().find(|own| own["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {all}"))["stream_id"].as_u64().unwrap()
    }

    pub fn plays(&mut self, name: &str) -> ConnId {
        let id = self.id_of(name);
        let conn = self.connect();
        self.send(conn, format!("GET /live/anna/x/{id}.ts HTTP/1.1\r\nHost: h\r\n\r\n"));
        conn
    }
}

#[test]
fn a_list_and_its_guide_are_read_and_told() {
    let mut desk = desk(vec![provider("http://p.example/get.php?username=a&password=b", &[("a", "b")])]);
    assert!(desk.serves(LIST).starts_with("GET /get.php?username=a&password=b HTTP/1.1"));
    assert_eq!(desk.links[0].1.host, "guide.example");
    desk.serves(XML);
    assert_eq!(desk.read_notes(), ["2 1 1 0"]);
    let list = desk.asks("/get.php?username=anna&password=x&type=m3u_plus&output=ts");
    let one = desk.id_of("One");
    for part in [
        "#EXTINF:-1 tvg-id=\"one.example\" tvg-name=\"One\" tvg-logo=\"http://l.example/1.png\" group-title=\"News\" catchup=\"default\" \
         catchup-days=\"3\" catchup-source=\"http://edge.example/timeshift/anna/x/{duration:60}/{utc}/",
        &format!(",One\nhttp://edge.example/live/anna/x/{one}.ts\n"),
        "group-title=\"Sport\",Two & 'a half'\n",
        ".mkv\n",
    ] {
        assert!(list.contains(part), "{part}\n{list}");
    }
    assert_eq!(list.lines().count(), 9);
    let guide = desk.asks("/xmltv.php?username=anna&password=x");
    for part in [
        "<channel id=\"one.example\">\n    <display-name>One</display-name>",
        "<title>Now &amp; here</title>",
        "</tv>\n",
    ] {
        assert!(guide.contains(part), "{part}\n{guide}");
    }
    let epg = desk.api("anna", &format!("get_short_epg&stream_id={one}&limit=1"));
    let first = &epg["epg_listings"][0];
    assert_eq!((epg["epg_listings"].as_array().unwrap().len(), &first["start"]), (1, &"2026-11-29 19:30:00".into()));
    assert_eq!((&first["title"], &first["stop_timestamp"]), (&"Tm93ICYgaGVyZQ==".into(), &"1795984200".into()));
    let table = desk.api("anna", &format!("get_simple_data_table&stream_id={one}"));
    let flags = |n: usize| {
        [&table["epg_listings"][n]["now_playing"], &table["epg_listings"][n]["has_archive"]].map(Value::as_u64)
    };
    assert_eq!((flags(0), flags(1)), ([Some(1), Some(1)], [Some(0), Some(0)]));
    // Nobody who is nobody sees anything.
    assert!(desk.ask("GET /xmltv.php HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 403 "));
}

#[test]
fn the_api_has_the_types_that_clients_rely_on() {
    let mut desk = listed();
    let live = desk.api("anna", "get_live_streams");
    let one = &live[0];
    assert!(one["stream_id"].is_u64() && one["num"].is_u64() && one["category_ids"][0].is_u64(), "{one}");
    for text in ["category_id", "added", "epg_channel_id", "stream_icon", "is_adult", "custom_sid", "direct_source"] {
        assert!(one[text].is_string(), "{text}: {one}");
    }
    assert_eq!((one["tv_archive"].as_u64(), one["tv_archive_duration"].as_u64()), (Some(1), Some(3)));
    let categories = desk.api("anna", "get_live_categories");
    assert_eq!((&categories[0]["category_name"], &categories[0]["category_id"]), (&"News".into(), &one["category_id"]));
    let chosen = desk.api("anna", &format!("get_live_streams&category_id={}", one["category_id"].as_str().unwrap()));
    assert_eq!((chosen.as_array().unwrap().len(), &chosen[0]), (1, one));
    let films = desk.api("anna", "get_vod_streams");
    assert_eq!((&films[0]["name"], &films[0]["container_extension"]), (&"A Film".into(), &"mkv".into()));
    let film = desk.api("anna", &format!("get_vod_info&vod_id={}", films[0]["stream_id"]));
    assert_eq!((&film["movie_data"]["stream_id"], &film["info"]["name"]), (&films[0]["stream_id"], &"A Film".into()));
    let series = desk.api("anna", "get_series");
    assert_eq!(series[0]["name"], "A Series");
    let own = desk.api("anna", &format!("get_series_info&series_id={}", series[0]["series_id"]));
    let episode = &own["episodes"]["2"][0];
    assert!(
        episode["id"].is_string() && episode["episode_num"] == 1 && episode["container_extension"] == "mp4",
        "{own}"
    );
    // Ben sees the news alone.
    assert_eq!(desk.api("ben", "get_live_streams").as_array().unwrap().len(), 1);
    for none in ["get_vod_streams", "get_series", "get_vod_categories", "get_series_categories"] {
        assert_eq!(desk.api("ben", none), Value::Array(vec![]), "{none}");
    }
    assert_eq!(desk.asks("/get.php?username=ben&password=x").lines().count(), 3);
    let two = desk.id_of("Two & \"a half\"");
    assert!(desk.ask(&format!("GET /live/ben/x/{two}.ts HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 404 "));
}

#[test]
fn older_players_get_all_at_once() {
    let mut desk = listed();
    let mut all = |user: &str| -> Value {
        serde_json::from_str(&desk.asks(&format!("/panel_api.php?username={user}&password=x"))).unwrap()
    };
    let (anna, ben) = (all("anna"), all("ben"));
    assert_eq!((&anna["user_info"]["auth"], &anna["server_info"]["timezone"]), (&1.into(), &"UTC".into()));
    assert_eq!(anna["categories"]["live"][0]["category_name"], "News");
    assert_eq!(anna["categories"]["movie"][0]["category_name"], "Films");
    let streams = anna["available_channels"].as_object().unwrap();
    assert_eq!(streams.len(), 3, "{anna}");
    for (id, own) in streams {
        assert_eq!(*id, own["stream_id"].to_string());
        let live = own["stream_type"] == "live";
        assert_eq!((own["live"] == "1", own["container_extension"].is_null()), (live, live), "{own}");
        assert!(["News", "Sport", "Films"].iter().any(|name| own["category_name"] == *name), "{own}");
    }
    assert_eq!(ben["available_channels"].as_object().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_read_leaves_what_there_is_and_is_asked_for_again() {
    let mut desk = listed();
    desk.read_notes();
    desk.run(3_600_000);
    desk.answers("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(desk.read_notes(), ["the catalogue: it answers 503"]);
    desk.id_of("One");
    desk.run(3_609_999);
    assert!(desk.links.is_empty());
    desk.run(3_610_000);
    desk.serves("<html>pay first</html>");
    assert_eq!(desk.read_notes(), ["the catalogue: what is there is a web page and no list (M3U)"]);
    // The second pause is twice as long.
    desk.run(3_629_999);
    assert!(desk.links.is_empty());
    desk.run(3_630_000);
    let (link, _) = desk.links[0].clone();
    desk.links.clear();
    desk.server.link_failed(desk.time(), link, ConnectError::Refused);
    desk.turn();
    assert_eq!(desk.read_notes(), ["the catalogue: nobody listens there"]);
    desk.run(3_670_000);
    // One that says nothing any more.
    let (link, _) = desk.links[0].clone();
    desk.link_opens(link);
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n#EXTINF:-1,New\nhttp://l.example/9\n");
    desk.run(3_700_000);
    assert_eq!(desk.read_notes(), ["the catalogue: the provider takes too long, or sends nothing any more"]);
    assert_eq!(desk.api("anna", "get_live_streams").as_array().unwrap().len(), 2);
    desk.run(3_780_000);
    desk.serves("#EXTM3U\n#EXTINF:-1,New\nhttp://l.example/9\n");
    assert_eq!(desk.read_notes(), ["1 0 0 0"]);
    assert_eq!(desk.api("anna", "get_live_streams").as_array().unwrap().len(), 1);
}

#[test]
fn a_guide_that_is_missing_is_asked_for_when_the_catalogue_is() {
    let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
    desk.serves(LIST);
    desk.answers("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(desk.read_notes(), ["2 1 1 0", "the guide: it answers 404"]);
    desk.run(3_599_999);
    assert!(desk.links.is_empty());
    desk.run(3_600_000);
    assert_eq!(desk.links.len(), 1);
}

/// Where a list redirects to is said by others than the operator: into no house, be it by a name or by what that leads to.
#[test]
fn a_catalogue_that_redirects_leads_into_no_house_of_ours() {
    for allow_private in [false, true] {
        let reach = if allow_private { Reach::Machine } else { Reach::Public };
        let own = ProviderSettings { reach, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
        let elsewhere =
            |host: &str| format!("HTTP/1.1 302 Found\r\nLocation: http://{host}/x.m3u\r\nContent-Length: 0\r\n\r\n");
        let near = "it leads to 127.0.0.1, a private address, which is refused; `allow_private` of the provider would allow it";
        let mut desk = self::desk(vec![own.clone()]);
        desk.serves("#EXTM3U url-tvg=\"http://127.0.0.1/x.xml\"\n#EXTINF:-1 tvg-id=\"a\",A\nhttp://l.example/1.ts\n");
        assert_eq!(desk.links.len(), usize::from(allow_private), "its guide is said by the list");
        assert_eq!(desk.read_notes().contains(&format!("the guide: {near}")), !allow_private);
        let mut desk = self::desk(vec![own.clone()]);
        desk.answers(&elsewhere("127.0.0.1"));
        let why = format!("the catalogue: {near}");
        assert_eq!(desk.read_notes(), if allow_private { vec![] } else { vec![why] });
        let mut desk = self::desk(vec![own]);
        desk.answers(&elsewhere("cdn.example"));
        let (link, _) = desk.link();
        desk.server.link_connected(desk.time(), link, "10.0.0.1:80".parse().unwrap());
        desk.turn();
        assert_eq!(desk.asked.contains_key(&link), allow_private);
    }
}

#[test]
fn a_list_that_is_too_large_or_empty_is_refused() {
    let small = ProviderSettings { bytes: 1 << 10, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
    let mut desk = desk(vec![small]);
    desk.serves(format!("#EXTM3U\n{}", "#\n".repeat(1 << 10)));
    assert_eq!(desk.read_notes(), ["the catalogue: it is larger than `bytes` of the provider allows"]);
    desk.run(10_000);
    desk.serves("#EXTM3U\nrtp://x\n");
    assert_eq!(desk.read_notes(), ["the catalogue: there is nothing in it that can be played"]);
}

#[test]
fn what_is_left_out_of_a_list_is_said() {
    let url = "http://p.example/x.m3u";
    let few = ProviderSettings { entries: 2, ..provider(url, &[("a", "b")]) };
    let mut short = desk(vec![few]);
    short.serves(LIST);
    // The last one would have been two: an episode and its series.
    assert_eq!(short.read_notes(), ["2 0 0, beyond 2"]);
    let other = ProviderSettings { groups: vec![String::from("news")], ..provider(url, &[("a", "b")]) };
    let mut strict = desk(vec![other]);
    strict.serves(LIST);
    let why = "the catalogue: none of its 4 entries is in one of `groups` of the provider: write these as it does, or none for all";
    assert_eq!(strict.read_notes(), [why]);
}

fn zipped(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// A few bytes become many: they are taken apart between everything else, and whoever sends more of them waits.
#[test]
fn what_is_gzipped_is_taken_apart_bit_by_bit() {
    let entry = |n: u32| format!("#EXTINF:-1 group-title=\"Films\",Film {n}\nhttp://l.example/movie/a/b/{n}.mp4\n");
    let list: String = (0..20_000).map(entry).collect();
    let packed = zipped(&list);
    let own = |url: &str| ProviderSettings { guide: Guide::None, ..provider(url, &[("a", "b")]) };
    let mut desk = self::desk(vec![own("http://p.example/x.m3u.gz")]);
    let (link, _) = desk.links[0].clone();
    desk.link_opens(link);
    desk.link_says(link, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", packed.len()));
    desk.link_says(link, &packed);
    let mut turns = 0;
    while !desk.links.is_empty() && turns < 100 {
        assert!(desk.read_notes().is_empty() && !desk.server.link_wants_read(link), "it is not read to its end");
        turns += 1;
        desk.run(desk.now + 1);
    }
    assert!((2..20).contains(&turns), "{turns} turns for {} bytes, unpacked {}", packed.len(), list.len());
    assert_eq!(desk.read_notes(), ["0 20000 0 0"]);

    // What ends early, or is not to be waited for, leaves nothing to go on with.
    let mut desk = self::desk(vec![own("http://p.example/x.m3u.gz")]);
    let (link, _) = desk.links[0].clone();
    desk.link_opens(link);
    desk.link_says(link, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", packed.len() + 1));
    desk.link_says(link, &packed);
    desk.server.link_closed(desk.time(), link);
    desk.turn();
    assert_eq!(desk.read_notes().len(), 1);
    desk.run(desk.now + 9_000);
    assert!(desk.read_notes().is_empty(), "it is asked for again after ten seconds");

    let path = std::env::temp_dir().join(format!("holdfast-packed-{}.m3u.gz", std::process::id()));
    std::fs::write(&path, zipped(&format!("#EXTM3U\n{}{}", "#\n".repeat(3 << 20), entry(1)))).unwrap();
    let mut desk = self::desk(vec![own(&format!("file://{}", path.display()))]);
    std::fs::remove_file(&path).unwrap();
    assert!(desk.read_notes().is_empty(), "the file is at its end, and not read");
    desk.run(desk.now + 50);
    assert_eq!(desk.read_notes(), ["0 1 0 0"]);
}

#[test]
fn a_list_and_a_panel_may_be_gzipped() {
    let settings = || provider("http://p.example/x.m3u.gz", &[("a", "b")]);
    let mut list = desk(vec![settings()]);
    list.serves(zipped(LIST));
    assert_eq!(list.read_notes(), ["2 1 1 0"]);
    let small = ProviderSettings { bytes: 1 << 10, ..settings() };
    let mut bomb = desk(vec![small]);
    bomb.serves(zipped(&format!("#EXTM3U\n{}", "#\n".repeat(5 << 10))));
    assert_eq!(bomb.read_notes(), ["the catalogue: unpacked it is larger than `bytes` of the provider allows"]);
    let mut broken = desk(vec![settings()]);
    broken.serves(&zipped(LIST)[..100]);
    assert_eq!(broken.read_notes(), ["the catalogue: it ended early"]);
}

#[test]
fn no_picture_tells_the_account() {
    let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("joe", "s3cret")])]);
    desk.serves(
        "#EXTM3U\n#EXTINF:-1 tvg-id=\"o\" tvg-logo=\"http://p.example/l.php?u=joe&p=s3cret\",One\nhttp://l.example/1.ts\n\
         #EXTINF:-1 tvg-logo=\"http://p.example/2.png\",Two\nhttp://l.example/2.ts\n",
    );
    for path in ["get.php", "xmltv.php", "player_api.php", "panel_api.php"] {
        for action in ["", "&action=get_live_streams"] {
            let told = desk.asks(&format!("/{path}?username=anna&password=x{action}"));
            assert!(!told.contains("s3cret"), "{path}: {told}");
        }
    }
    let icons = desk.api("anna", "get_live_streams");
    assert_eq!([&icons[0]["stream_icon"], &icons[1]["stream_icon"]], ["", "http://p.example/2.png"]);
}

#[test]
fn a_list_of_this_machine_is_read_like_any_other_and_anew_when_that_is_due() {
    let path = std::env::temp_dir().join(format!("holdfast-list-{}.m3u", std::process::id()));
    std::fs::write(&path, LIST).unwrap();
    let mut desk = desk(vec![provider(&format!("file://{}", path.display()), &[("a", "b")])]);
    assert_eq!(desk.read_notes(), ["2 1 1 0"]);
    std::fs::write(&path, "#EXTINF:-1,New\nhttp://l.example/9\n").unwrap();
    desk.links.clear();
    desk.run(3_700_000);
    assert!(desk.read_notes().contains(&String::from("1 0 0 0")));
    std::fs::remove_file(&path).unwrap();
    desk.run(7_400_000);
    assert!(desk.read_notes()[0].starts_with("the catalogue: No such file"));
    assert_eq!(desk.api("anna", "get_live_streams").as_array().unwrap().len(), 1);
}

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
fn panel(formats: &str) -> Desk {
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

#[test]
fn what_does_not_come_as_ts_is_asked_for_as_hls_and_that_is_remembered_of_the_panel() {
    for answer in [
        NOT_FOUND,
        "HTTP/1.1 406 x\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>",
    ] {
        let mut desk = panel(r#"["ts","m3u8"]"#);
        let conn = desk.plays("One");
        let (link, path) = asked(&mut desk);
        assert_eq!(path, "/live/u/v/11.ts");
        desk.link_says(link, answer);
        let told = desk.read(conn);
        assert!(told.starts_with("HTTP/1.1 302 "), "{answer}: {told}");
        // The others are not concluded from one that may be gone.
        let other = desk.plays("Two");
        assert_eq!(asked(&mut desk).1, "/live/u/v/12.ts");
        desk.server.closed(desk.time(), other);
        desk.turn();
        desk.run(desk.now + 5_000);
        let conn = hls(&mut desk, "One");
        let (link, path) = asked(&mut desk);
        assert_eq!(path, "/live/u/v/11.m3u8");
        desk.link_says(link, LISTED);
        desk.link_ends(link);
        let list = desk.read(conn);
        assert!(list.starts_with("HTTP/1.1 200 ") && list.contains("/hls/"), "{list}");
        let conn = desk.plays("Two");
        assert!(desk.read(conn).starts_with("HTTP/1.1 302 "), "all of them come so");
    }
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

#[test]
fn a_live_stream_is_pulled_with_an_account_and_shared() {
    let mut desk = listed();
    let one = desk.plays("One");
    let (link, target) = desk.link();
    assert_eq!(target.host, "l.example");
    desk.link_opens(link);
    let asked = String::from_utf8(desk.asked.remove(&link).unwrap()).unwrap();
    assert!(asked.starts_with("GET /live/a/b/1.ts HTTP/1.1\r\n") && asked.contains("User-Agent: VLC/3\r\n"), "{asked}");
    desk.link_says(link, OK);
    let mut encoder = Encoder::new();
    desk.link_says(link, encoder.encode(3));
    desk.run(200);
    assert!(desk.read(one).starts_with("HTTP/1.1 200 OK\r\n"));
    let other = desk.plays("One");
    desk.link_says(link, encoder.encode(3));
    desk.run(400);
    assert!(desk.read(other).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(desk.links.len(), 1, "one connection for both");
    // Another stream takes the other account.
    let two = desk.plays("Two & \"a half\"");
    let (second, _) = desk.links[1].clone();
    desk.link_opens(second);
    let asked = String::from_utf8(desk.asked.remove(&second).unwrap()).unwrap();
    assert!(asked.starts_with("GET /live/c/d/2.ts HTTP/1.1\r\n"), "{asked}");
    let status = desk.status();
    let own = &status["providers"][0];
    assert_eq!((&own["name"], &own["live"], &own["programmes"]), (&"tv".into(), &2.into(), &2.into()));
    assert_eq!((&own["label"], &own["fault"]), (&"http://p.example/get.php?…".into(), &Value::Null));
    assert_eq!([&own["accounts"][0]["used"], &own["accounts"][1]["used"]], [&1, &1]);
    for conn in [one, other, two] {
        desk.server.closed(desk.time(), conn);
        desk.turn();
    }
    desk.run(60_000);
    assert!(desk.links.is_empty(), "what nobody watches is closed");
    // What is closed is free again: both accounts.
    let _ = [desk.plays("One"), desk.plays("Two & \"a half\"")];
    assert_eq!(desk.links.len(), 2);
}

#[test]
fn an_account_is_free_again_however_its_connection_ended() {
    let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
    desk.serves(LIST);
    desk.serves(XML);
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://cdn.example/token/x.ts\r\n\r\n";
    let fail = |desk: &mut Desk, link: LinkId| {
        desk.links.clear();
        desk.server.link_failed(desk.time(), link, ConnectError::Refused);
        desk.turn();
    };
    for round in 0..5 {
        let viewer = desk.plays("One");
        let (link, _) = desk.link();
        match round {
            0 => fail(&mut desk, link),
            1 => desk.answers("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            2 => {
                desk.answers(redirect);
                let (next, target) = desk.link();
                assert_eq!(target.host, "cdn.example");
                fail(&mut desk, next);
            }
            3 => desk.answers("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/x.ts\r\n\r\n"),
            _ => {
                // A name that leads to a private address is seen when it is connected to.
                desk.server.link_connected(desk.time(), link, "10.0.0.1:80".parse().unwrap());
                desk.links.retain(|(open, _)| *open != link);
                desk.turn();
                assert!(!desk.asked.contains_key(&link), "nothing is asked there");
            }
        }
        desk.server.closed(desk.time(), viewer);
        desk.turn();
        desk.run(desk.now + 120_000);
        assert!(desk.links.is_empty(), "{round}");
        let faults: Vec<String> = desk.notes.iter().map(|note| format!("{note:?}")).collect();
        assert!(!faults.concat().contains("token") && !faults.concat().contains("live/a/b"), "{faults:?}");
    }
}

#[test]
fn a_long_list_is_made_while_it_is_taken() {
    let mut list = String::from("#EXTM3U\n");
    (0..20_000)
        .for_each(|n| list += &format!("#EXTINF:-1 group-title=\"G{}\",Channel {n}\nhttp://l.example/{n}\n", n % 7));
    let refresh = Duration::from_secs(20);
    let large = ProviderSettings { bytes: 64 << 20, refresh, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
    let mut desk = desk(vec![large]);
    desk.serves(&list);
    desk.writable = false;
    let id = desk.connect();
    desk.send(id, "GET /player_api.php?username=anna&password=x&action=get_live_streams HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut most = 0;
    let taken = desk.server.transmit(desk.time(), id, &mut |pieces| {
        most = most.max(pieces.iter().map(|piece| piece.len()).sum());
        Err(std::io::ErrorKind::WouldBlock.into())
    });
    assert!(taken.is_ok() && most < 64 << 10, "{most}");
    // The catalogue changes meanwhile: the list is that of before.
    desk.run(20_000);
    desk.writable = true;
    desk.serves("#EXTM3U\n#EXTINF:-1,New\nhttp://l.example/9\n");
    desk.flush(id);
    let answer = desk.read(id);
    let all: Value = serde_json::from_str(&content(&answer)).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 20_000);
    assert!(desk.closed.contains(&id));
}

/// Whoever asks for little of much keeps nobody waiting while that is looked for.
#[test]
fn what_is_looked_through_in_vain_is_so_bit_by_bit() {
    let entry = |n: u32, group: &str| {
        format!("#EXTINF:-1 tvg-id=\"c{n}\" group-title=\"{group}\",Channel {n}\nhttp://l.example/{n}.ts\n")
    };
    let list = (0..35_000).map(|n| entry(n, "Many")).chain([entry(35_000, "Few")]).collect::<String>();
    let guide = Guide::At(Location::parse("http://p.example/guide.xml").unwrap());
    let mut desk =
        desk(vec![ProviderSettings { bytes: 64 << 20, guide, ..provider("http://p.example/x.m3u", &[("a", "b")]) }]);
    desk.serves(format!("#EXTM3U\n{list}"));
    desk.serves(XML.replace("one.example", "c35000"));
    let categories = desk.api("anna", "get_live_categories");
    let few = categories.as_array().unwrap().iter().find(|own| own["category_name"] == "Few").unwrap();
    let few = few["category_id"].as_str().unwrap();
    for (path, what) in [
        (
            format!("/player_api.php?username=anna&password=x&action=get_live_streams&category_id={few}"),
            "Channel 35000",
        ),
        (String::from("/xmltv.php?username=anna&password=x"), "Now &amp; here"),
    ] {
        desk.writable = false;
        let id = desk.connect();
        desk.server.received(desk.time(), id, format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        let (mut written, mut idle) = (Vec::new(), 0);
        while !desk.closed.contains(&id) {
            let before = written.len();
            let done = desk.server.transmit(desk.time(), id, &mut |pieces| {
                pieces.iter().for_each(|piece| written.extend_from_slice(piece));
                Ok(pieces.iter().map(|piece| piece.len()).sum())
            });
            assert!(done.is_ok());
            idle += u32::from(written.len() == before);
            while let Some(action) = desk.server.poll() {
                if let Action::Close(id) = action {
                    desk.closed.push(id);
                }
            }
        }
        assert!(content(&String::from_utf8_lossy(&written)).contains(what), "{path}");
        assert!(idle >= 2, "{path}: {idle} turns without anything");
    }
}

#[test]
fn numbers_in_the_lists_of_the_api_are_those_of_their_places_whatever_providers_number() {
    let list = |name: &str| {
        format!(
            "#EXTM3U\n#EXTINF:-1 tvg-chno=\"1\" group-title=\"News\",{name} one\nhttp://l.example/live/a/b/1.ts\n\
             #EXTINF:-1 group-title=\"Sport\",{name} two\nhttp://l.example/live/a/b/2.ts\n\
             #EXTINF:-1 tvg-chno=\"1\" group-title=\"Films\",{name} film\nhttp://l.example/movie/a/b/3.mkv\n"
        )
    };
    let other = ProviderSettings { name: String::from("other"), ..provider("http://q.example/l.m3u", &[("a", "b")]) };
    let mut desk = desk(vec![provider("http://p.example/l.m3u", &[("a", "b")]), other]);
    for name in ["First", "Second"] {
        desk.serves(list(name));
    }
    let numbers = |all: &Value| -> Vec<u64> {
        all.as_array().into_iter().flatten().filter_map(|own| own["num"].as_u64()).collect()
    };
    let live = desk.api("anna", "get_live_streams");
    assert_eq!(numbers(&live), [1, 2, 3, 4], "{live}");
    assert_eq!(numbers(&desk.api("anna", "get_vod_streams")), [1, 2]);
    // Whoever looks in one category finds it under the same number.
    let sport = live[1]["category_id"].as_str().unwrap();
    assert_eq!(numbers(&desk.api("anna", &format!("get_live_streams&category_id={sport}"))), [2, 4]);
    let all: Value = serde_json::from_str(&desk.asks("/panel_api.php?username=anna&password=x")).unwrap();
    let streams = all["available_channels"].as_object().unwrap().values();
    let mut numbers: Vec<u64> = streams.filter_map(|own| own["num"].as_u64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn only_what_is_live_has_the_number_of_a_channel_in_the_list() {
    let list = "#EXTM3U\n#EXTINF:-1 tvg-chno=\"7\",Live\nhttp://l.example/live/a/b/1.ts\n\
                #EXTINF:-1 tvg-chno=\"7\",Film\nhttp://l.example/movie/a/b/2.mkv\n\
                #EXTINF:-1 tvg-chno=\"7\",Series S01E01\nhttp://l.example/series/a/b/3.mkv\n";
    let mut desk = desk(vec![provider("http://p.example/l.m3u", &[("a", "b")])]);
    desk.serves(list);
    let list = desk.asks("/get.php?username=anna&password=x");
    let numbered: Vec<&str> = list.lines().filter(|line| line.contains("tvg-chno=\"7\"")).collect();
    assert!(numbered.len() == 1 && numbered[0].ends_with(",Live"), "{list}");
    assert_eq!(list.matches("#EXTINF").count(), 3, "{list}");
}

#[test]
fn what_its_catalogue_says_is_recorded_no_more_is_asked_of_nobody() {
    let list = "#EXTM3U\n#EXTINF:-1 catchup=\"xc\" catchup-days=\"3\",Dated\nhttp://l.example/live/a/b/1.ts\n\
                #EXTINF:-1 catchup=\"xc\",Undated\nhttp://l.example/live/a/b/2.ts\n";
    let mut desk = desk(vec![provider("http://p.example/l.m3u", &[("a", "b")])]);
    desk.serves(list);
    let (dated, undated) = (desk.id_of("Dated"), desk.id_of("Undated"));
    // It is 2026-11-29 20:00. A day more than it says is asked for: providers are generous.
    for (id, start, asked) in [
        (dated, "2026-11-25:20-00", true),
        (dated, "2026-11-25:19-59", false),
        (dated, "1990-01-01:00-00", false),
        (undated, "1990-01-01:00-00", true),
    ] {
        let client = desk.connect();
        desk.send(client, format!("GET /timeshift/anna/x/60/{start}/{id}.ts HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(!desk.links.is_empty(), asked, "{start}");
        if asked {
            desk.answers("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        } else {
            let answer = desk.read(client);
            assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("not-recorded-any-more"), "{answer}");
            assert!(answer.contains("kept for 3 days"), "{answer}");
        }
        desk.run(desk.now + 2_000);
    }
    let live = desk.api("anna", "get_live_streams");
    let told = |n: usize| [&live[n]["tv_archive"], &live[n]["tv_archive_duration"]].map(Value::as_u64);
    assert_eq!((told(0), told(1)), ([Some(1), Some(3)], [Some(1), Some(1)]), "{live}");
}

#[test]
fn what_an_account_logs_in_with_is_told_to_whoever_may_read_it() {
    for (tokens, name, label) in [(vec![String::from("key")], "tv/1 (box-1)", "1 (box-1)"), (Vec::new(), "tv/1", "1")] {
        let own = provider("http://p.example/l.m3u", &[("box-1", "hunter2")]);
        let settings = Settings { api_tokens: tokens, ..Settings::default() };
        let mut desk = desk_of(vec![own], vec![User { name: "anna".into(), ..User::default() }], settings);
        desk.serves("#EXTM3U\n#EXTINF:-1,Film\nhttp://l.example/movie/a/b/3.mkv\n");
        let mut ask =
            |path: &str| desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer key\r\n\r\n"));
        let status: Value = serde_json::from_str(&content(&ask("/api/status"))).unwrap();
        assert_eq!(status["providers"][0]["accounts"][0]["name"], name);
        let metrics = ask("/metrics");
        let line = format!("holdfast_account_name{{provider=\"tv\",account=\"1\",name=\"{label}\"}} 1\n");
        assert!(metrics.contains(&line) && !metrics.contains("hunter2"), "{metrics}");
    }
}

#[test]
fn a_guide_that_is_broken_is_told_once_and_the_last_good_one_is_kept() {
    let zipped = |text: &str| {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let (cut, packed) = (&XML[..XML.len() - 40], zipped(XML));
    let mut wrong = packed.clone();
    wrong.iter_mut().skip(20).take(40).for_each(|byte| *byte ^= 0x55);
    for (broken, why) in [
        (cut.as_bytes(), "it breaks off before its end (</tv>)"),
        (XML.strip_suffix("</tv>").unwrap().as_bytes(), "it breaks off before its end (</tv>)"),
        (b"<html>pay first</html>", "it is no XMLTV"),
        (b"", "it is no XMLTV"),
        (b"<tv><programme start=\"x\"></programme></tv>", "none of the programmes in it can be read"),
        (&packed[..packed.len() / 2], "it ended early"),
        (&wrong, "its compression is broken"),
    ] {
        let mut desk = listed();
        let guide = desk.asks("/xmltv.php?username=anna&password=x");
        desk.notes.clear();
        for round in 1..=2 {
            desk.run(round * 3_600_000);
            desk.serves(LIST);
            desk.serves(broken);
            let expected = (format!("the guide: {why}"), Left::Former(2));
            assert_eq!(faults(&mut desk), if round == 1 { vec![expected] } else { Vec::new() });
            assert_eq!(desk.status()["providers"][0]["fault"], format!("the guide: {why}"));
            assert_eq!(desk.asks("/xmltv.php?username=anna&password=x"), guide);
        }
    }
    // Where there was none before, a part of it is better than nothing.
    let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
    desk.serves(LIST);
    desk.serves(cut);
    let why = String::from("the guide: it breaks off before its end (</tv>)");
    assert_eq!(faults(&mut desk), [(why.clone(), Left::Beginning(1))], "nothing was read last");
    assert!(desk.asks("/xmltv.php?username=anna&password=x").contains("Now &amp; here"));
    // As long as it never comes whole, the newest part of it is shown.
    desk.run(3_600_000);
    desk.serves(LIST);
    desk.serves(cut.replace("Now", "Then"));
    assert_eq!(faults(&mut desk), [], "as before");
    assert!(desk.asks("/xmltv.php?username=anna&password=x").contains("Then &amp; here"));
    // Of one that has nothing in it there is nothing.
    let mut desk = self::desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
    desk.serves(LIST);
    desk.serves("<tv>");
    assert_eq!(faults(&mut desk), [(why, Left::Nothing)]);
}

/// Why a catalogue or a guide could not be read, and what there is of it.
fn faults(desk: &mut Desk) -> Vec<(String, Left)> {
    let told = desk.notes.drain(..).filter_map(|note| match note {
        Note::CatalogFault { why, left, .. } => Some((why, left)),
        _ => None,
    });
    told.collect()
}

#[test]
fn how_much_of_a_guide_cannot_be_read_is_told() {
    for (guide, expected) in [
        (XML.to_owned(), (2, 0)),
        // A tag that does not match, one that is never closed, and a time that is none.
        (XML.replace("</desc>", "</dsc>"), (1, 1)),
        (XML.replace("here</title>", "here"), (1, 1)),
        (XML.replace("\"20261129193000 ", "\"soon "), (1, 1)),
    ] {
        let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
        desk.serves(LIST);
        desk.serves(&guide);
        let read = desk.notes.iter().find_map(|note| match note {
            Note::GuideRead { programmes, skipped, .. } => Some((*programmes, *skipped)),
            _ => None,
        });
        assert_eq!(read, Some(expected), "{guide}");
        assert_eq!(faults(&mut desk), []);
        let told = desk.asks("/xmltv.php?username=anna&password=x");
        assert!(told.contains("Next") && told.ends_with("</tv>\n"), "{told}");
    }
}
