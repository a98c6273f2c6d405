//! Providers: their catalogues are read in the background, told to users, and their live streams played with their accounts.

use std::time::Duration;

use holdfast_core::config::{Account, Config, Provider, User};
use holdfast_core::input::{Note, ProviderId};
use holdfast_io::providers::{Credentials, Dialect, Guide, Location, Output, ProviderSettings, Reach};
use holdfast_io::server::{ConnId, ConnectError, LinkId, Settings};
use holdfast_io::users::{Login, Password, Status};
use serde_json::Value;

use crate::channels::{Encoder, OK};
use crate::desk::{Desk, content};

/// 2026-11-29T20:00:00Z
pub const EPOCH: u64 = 1_795_982_400;

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

pub fn zipped(text: &str) -> Vec<u8> {
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
