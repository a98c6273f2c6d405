//! HEAD and playlists say what GET of the stream would be refused with at once; nobody is counted for them, and nothing is opened.

use holdfast_core::config::{Account, Config, Provider, User};
use holdfast_core::time::Date;
use holdfast_io::providers::{Guide, ProviderSettings};
use holdfast_io::server::Settings;
use holdfast_io::users::{Login, Password, Status};

use crate::desk::{Desk, content};
use crate::providers::provider;

const LIST: &str = "#EXTM3U\n\
    #EXTINF:-1 catchup=\"xc\" catchup-days=\"3\",Stream\nhttp://l.example/live/a/b/1.ts\n\
    #EXTINF:-1,List\nhttp://l.example/live/a/b/2.m3u8\n\
    #EXTINF:-1 group-title=\"Films\",Film\nhttp://l.example/movie/a/b/3.mp4\n";

/// When what is to end ends.
const OVER: Option<Date> = Some(Date::from_micros(10_000_000));

/// A provider with this account, and Anna.
fn desk(account: Account, anna: User) -> Desk {
    let own = ProviderSettings { guide: Guide::None, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
    let tv = Provider { name: own.name.clone(), accounts: vec![account], ..Provider::default() };
    let anna = User { name: "anna".into(), ..anna };
    let login = Login {
        name: anna.name.clone(),
        password: Password::parse("x").unwrap(),
        expires: None,
        groups: Vec::new(),
        status: Status::Active,
    };
    let settings =
        Settings { users: vec![login], providers: vec![own], epoch: 1_795_982_400, instance: 7, ..Settings::default() };
    let mut desk = Desk::open(Config { users: vec![anna], providers: vec![tv], ..Config::default() }, settings);
    desk.run(0);
    desk.serves(LIST);
    desk
}

fn status(desk: &mut Desk, method: &str, path: &str) -> String {
    let answer = desk.ask(&format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    answer.get(9..12).unwrap_or("none").to_owned()
}

/// What of the provider's is live, as a user asks for it.
fn live(desk: &mut Desk) -> Vec<String> {
    let (stream, list) = (desk.id_of("Stream"), desk.id_of("List"));
    vec![
        format!("/live/anna/x/{stream}.ts"),
        format!("/live/anna/x/{stream}.m3u8"),
        format!("/anna/x/{stream}.ts"),
        format!("/anna/x/{stream}.m3u8"),
        format!("/live/anna/x/{list}.m3u8"),
        format!("/timeshift/anna/x/60/2026-11-29:18-00/{stream}.ts"),
    ]
}

/// The film, and the playlist of the stream's viewer who looked how to begin; beside all that is live.
fn everything(desk: &mut Desk) -> Vec<String> {
    let mut all = live(desk);
    let index = desk.asks(&all[1].clone());
    all.push(index.lines().find(|line| line.contains("?v=")).expect("a media playlist").replace("../../", "/live/"));
    let films = desk.api("anna", "get_vod_streams");
    all.push(format!("/movie/anna/x/{}.mp4", films[0]["stream_id"]));
    all
}

fn nothing_follows(desk: &Desk) {
    let edge = desk.server.edge();
    assert!(desk.links.is_empty(), "nobody is asked: {:?}", desk.links);
    assert_eq!((edge.playback().playbacks().count(), edge.pull().tuned_channels().count()), (0, 0));
}

#[test]
fn head_opens_nothing_and_counts_nobody() {
    let mut desk = desk(Account::default(), User::default());
    for path in live(&mut desk) {
        assert_eq!(status(&mut desk, "HEAD", &path), "200", "{path}");
        nothing_follows(&desk);
    }
}

#[test]
fn that_all_accounts_are_over_is_said_to_whoever_only_looks_too() {
    let mut desk = desk(Account { until: OVER, ..Account::default() }, User::default());
    let all = everything(&mut desk);
    desk.run(11_000);
    for path in &all {
        assert_eq!(status(&mut desk, "HEAD", path), "503", "{path}");
        nothing_follows(&desk);
    }
    for path in &all {
        let told = desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("accounts-over"), "{path}: {told}");
        assert!(desk.links.is_empty());
    }
}

#[test]
fn that_a_user_is_over_is_said_to_whoever_only_looks_too() {
    let mut desk = desk(Account::default(), User { until: OVER, ..User::default() });
    let mut all = everything(&mut desk);
    let (conn, path) = (desk.connect(), all[4].clone());
    desk.send(conn, format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://l.example/1.ts\n";
    desk.serves(list);
    let child = content(&desk.read(conn)).lines().find(|line| line.contains("/hls/")).expect("a segment").to_owned();
    all.push(child[child.find("/hls/").unwrap()..].to_owned());
    assert_eq!(status(&mut desk, "HEAD", all.last().unwrap()), "200");
    desk.run(11_000);
    for path in &all {
        assert_eq!(status(&mut desk, "HEAD", path), "403", "{path}");
        nothing_follows(&desk);
    }
    for path in &all {
        assert_eq!(status(&mut desk, "GET", path), "403", "{path}");
    }
}

#[test]
fn head_needs_the_login_and_the_token_that_get_does() {
    let mut desk = crate::users::simple();
    for path in ["/live/live.ts", "/live/live/index.m3u8"] {
        for method in ["HEAD", "GET"] {
            assert_eq!(status(&mut desk, method, path), "401", "{method} {path}");
        }
    }
    for token in ["", "?v=00"] {
        let path = format!("/live/live/media.m3u8{token}");
        assert_eq!(status(&mut desk, "HEAD", &path), status(&mut desk, "GET", &path), "{path}");
        assert_ne!(status(&mut desk, "HEAD", &path), "200");
    }
    let index = desk.asks("/live/live/index.m3u8?username=anna&password=anna-secret");
    let media = format!("/live/live/{}", index.lines().find(|line| line.contains("?v=")).unwrap());
    assert_eq!(status(&mut desk, "HEAD", &media), "200");
    assert_eq!(desk.server.edge().playback().playbacks().count(), 0);
}

#[test]
fn a_stream_with_as_many_viewers_as_it_may_have_says_so() {
    use holdfast_core::config::{Endpoint, Live};
    let config = Config {
        endpoints: vec![Endpoint::default()],
        live: Live { viewers: 1, ..Live::default() },
        ..Config::default()
    };
    let mut desk = Desk::open(config, Settings::default());
    let paths = ["/live/live.ts", "/live/live/index.m3u8"];
    assert_eq!(paths.map(|path| status(&mut desk, "HEAD", path)), ["200", "200"]);
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/live.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    for path in paths {
        for method in ["HEAD", "GET"] {
            assert_eq!(status(&mut desk, method, path), "503", "{method} {path}");
        }
    }
}
