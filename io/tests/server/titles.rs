//! Titles of a provider, fetched for users: what its connection says, and what reaches the client.

use std::io::ErrorKind;

use holdfast_core::config::{Config, Provider, User};
use holdfast_io::providers::{Dialect, Guide, Location, Output, ProviderSettings};
use holdfast_io::server::{ConnId, ConnectError, LinkId, Settings, Transmit};
use holdfast_io::users::{Login, Password, Status};

use crate::desk::{Desk, header};

const FILM: &str = "/movie/anna/anna-secret/728194988.mp4";

/// What the provider has. What its titles are known by here follows from that.
const LIST: &str = "#EXTM3U\n\
    #EXTINF:-1 group-title=\"Films\",Film\nhttp://provider.example/movie/name/secret/1.mp4\n\
    #EXTINF:-1 group-title=\"Films\",Dash\nhttp://provider.example/movie/name/secret/3.mpd\n\
    #EXTINF:-1 group-title=\"Live\",Lists\nhttp://provider.example/live/name/secret/2.m3u8\n\
    #EXTINF:-1 group-title=\"Live\" catchup=\"xc\" catchup-days=\"3\",News\nhttp://provider.example/live/name/secret/4.ts\n";

/// Anna and Ben may play as much as they like; there is one provider with one account.
fn desk() -> Desk {
    desk_of(Provider::default(), false)
}

fn desk_of(provider: Provider, allow_private: bool) -> Desk {
    let users: Vec<User> =
        ["anna", "ben"].map(|name| User { name: name.into(), max_connections: 0, ..User::default() }).into();
    let login = |user: &User| Login {
        name: user.name.clone(),
        password: Password::parse(&format!("{}-secret", user.name)).unwrap(),
        expires: None,
        groups: Vec::new(),
        status: Status::Active,
    };
    let of_provider = ProviderSettings {
        name: provider.name.clone(),
        location: Location::parse("http://provider.example/list.m3u").unwrap(),
        dialect: Dialect::M3u,
        guide: Guide::None,
        refresh: std::time::Duration::from_secs(3600),
        user_agent: String::from("VLC"),
        output: Output::Ts,
        groups: Vec::new(),
        allow_private,
        entries: 1000,
        bytes: 1 << 20,
        accounts: provider.accounts.iter().map(|_| None).collect(),
    };
    let settings = Settings {
        users: users.iter().map(login).collect(),
        providers: vec![of_provider],
        epoch: 1_700_000_000,
        instance: 7,
        ..Settings::default()
    };
    let mut desk = Desk::open(Config { users, providers: vec![provider], ..Config::default() }, settings);
    desk.run(0);
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{LIST}", LIST.len()));
    assert!(desk.links.is_empty());
    desk
}

impl Desk {
    /// Asks on a connection of its own; nothing has come back yet.
    fn wants(&mut self, path: &str, fields: &str) -> ConnId {
        let id = self.connect();
        self.wants_on(id, path, fields);
        id
    }

    fn wants_on(&mut self, id: ConnId, path: &str, fields: &str) {
        self.send(id, format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    }

    /// The one link that is open, which is made and asked.
    fn asked_of_provider(&mut self) -> (LinkId, String) {
        let (link, _) = self.link();
        self.link_opens(link);
        (link, String::from_utf8(self.asked.remove(&link).unwrap_or_default()).unwrap())
    }

    /// A socket takes so many bytes and then no more.
    fn takes(&mut self, id: ConnId, most: usize) -> usize {
        let (now, mut left) = (self.time(), most);
        let written = self.written.entry(id).or_default();
        let result = self.server.transmit(now, id, &mut |pieces| {
            if left == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let mut count = 0;
            for piece in pieces {
                let taken = piece.len().min(left);
                written.extend_from_slice(&piece[..taken]);
                (left, count) = (left - taken, count + taken);
            }
            Ok(count)
        });
        assert!(matches!(result, Ok(Transmit::Idle | Transmit::Blocked)));
        self.turn();
        most - left
    }

    fn gone(&mut self, id: ConnId) {
        self.server.closed(self.time(), id);
        self.turn();
    }
}

fn status_of(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 10\r\nAccept-Ranges: bytes\r\nETag: \"a\"\r\n\
                     Server: panel\r\nSet-Cookie: a=b\r\n\r\n";

#[test]
fn a_film_is_passed_on_as_it_is() {
    let mut desk = desk();
    let client = desk.wants(FILM, "User-Agent: mpv\r\nCookie: own\r\n");
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.starts_with("GET ") && asked.contains("\r\nHost: provider.example\r\n"), "{asked}");
    assert!(asked.contains("\r\nUser-Agent: VLC\r\n") && asked.contains("\r\nVia: 1.1 holdfast-"), "{asked}");
    assert!(asked.contains("\r\nConnection: close\r\n"), "{asked}");
    for own in ["Cookie", "mpv", "Range"] {
        assert!(!asked.contains(own), "{asked}");
    }
    desk.link_says(link, format!("{WHOLE}01234"));
    let answer = desk.read(client);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for (name, value) in
        [("Content-Type", "video/mp4"), ("Content-Length", "10"), ("Accept-Ranges", "bytes"), ("ETag", "\"a\"")]
    {
        assert_eq!(header(&answer, name).as_deref(), Some(value));
    }
    assert!(header(&answer, "Via").is_some_and(|via| via.starts_with("1.1 holdfast-")));
    assert!(header(&answer, "Set-Cookie").is_none() && header(&answer, "Server").is_none(), "{answer}");
    assert_eq!(body(&answer), "01234");
    desk.link_says(link, "56789");
    assert_eq!(desk.read(client), "56789");
    assert!(desk.links.is_empty(), "the provider counts it no more");
    assert!(!desk.closed.contains(&client));
    // Another user behind the same proxy.
    desk.wants_on(client, &FILM.replace("anna", "ben"), "Range: bytes=5-\r\nIf-Range: \"a\"\r\n");
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("\r\nRange: bytes=5-\r\n") && asked.contains("\r\nIf-Range: \"a\"\r\n"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789");
    let answer = desk.read(client);
    assert_eq!((status_of(&answer), body(&answer)), (206, "56789"));
    assert_eq!(header(&answer, "Content-Range").as_deref(), Some("bytes 5-9/10"));
}

#[test]
fn no_more_is_read_than_the_client_takes() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.writable = false;
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n");
    let mut sent = 0;
    while desk.server.link_wants_read(link) {
        desk.link_says(link, vec![7; 64 * 1024]);
        sent += 64 * 1024;
    }
    assert_eq!(sent, 256 * 1024);
    desk.takes(client, 100_000);
    assert!(desk.server.link_wants_read(link), "there is room again");
    desk.link_says(link, vec![7; 64 * 1024]);
    assert!(desk.server.link_wants_read(link));
    desk.link_says(link, vec![7; 64 * 1024]);
    assert!(!desk.server.link_wants_read(link));
}

#[test]
fn a_client_that_leaves_leaves_nothing_behind() {
    for stage in 0..4 {
        let mut desk = desk();
        let client = desk.wants(FILM, "");
        let (link, _) = desk.link();
        if stage > 0 {
            desk.link_opens(link);
        }
        if stage > 1 {
            desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
        }
        if stage > 2 {
            desk.link_says(link, "0123");
        }
        desk.gone(client);
        assert!(desk.links.is_empty(), "after stage {stage}");
        let again = desk.wants(FILM, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, format!("{WHOLE}0123456789"));
        assert_eq!(body(&desk.read(again)), "0123456789");
    }
}

#[test]
fn a_client_that_ends_its_side_is_gone() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    desk.server.eof(desk.time(), client);
    desk.turn();
    assert!(desk.links.is_empty() && desk.closed.contains(&client));
}

#[test]
fn what_breaks_off_ends_short_of_its_length() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("{WHOLE}0123"));
    desk.link_ends(link);
    assert_eq!(body(&desk.read(client)), "0123", "what came reaches the client");
    assert!(desk.closed.contains(&client));
}

#[test]
fn an_answer_without_a_length_ends_with_its_connection() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n");
    let answer = desk.read(client);
    assert_eq!((header(&answer, "Content-Length"), body(&answer)), (None, "abcd"));
    desk.link_says(link, "0\r\n\r\n");
    assert!(desk.closed.contains(&client) && desk.links.is_empty());
}

#[test]
fn what_a_provider_answers_is_told_to_the_client() {
    for (answer, status) in [
        ("HTTP/1.1 404 Not Found\r\n\r\n", 404),
        ("HTTP/1.1 456 Too many\r\n\r\n", 456),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", 502),
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", 502),
        ("HTTP/1.1 503 Busy\r\n\r\n", 503),
        ("HTTP/1.1 204 No Content\r\n\r\n", 502),
        ("HTTP/1.1 206 x\r\nContent-Range: bytes 0-3/10\r\n\r\n0123", 502),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nxx", 502),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 502),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 502),
        ("SSH-2.0-OpenSSH\r\n", 502),
        ("HTTP/1.1 302 Found\r\nLocation: ftp://other.example/\r\n\r\n", 502),
        ("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", 502),
        ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", 502),
        ("HTTP/1.1 302 Found\r\n\r\n", 502),
    ] {
        let mut desk = desk();
        let client = desk.wants(FILM, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, answer);
        let told = desk.read(client);
        assert_eq!(status_of(&told), status, "{answer}: {told}");
        assert!(told.contains("provider-failed") && !told.contains("secret"), "{told}");
        assert!(desk.links.is_empty());
    }
}

#[test]
fn a_head_without_an_end_is_not_read_to_its_end() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n");
    for _ in 0..10_000 {
        if desk.links.is_empty() {
            break;
        }
        desk.link_says(link, format!("X: {}\r\n", "y".repeat(1000)));
    }
    assert_eq!(status_of(&desk.read(client)), 502);
}

#[test]
fn a_provider_that_says_nothing_is_not_waited_for_without_end() {
    for opens in [false, true] {
        let mut desk = desk();
        let client = desk.wants(FILM, "");
        let (link, _) = desk.link();
        if opens {
            desk.link_opens(link);
        }
        desk.run(4_999);
        assert_eq!(desk.read(client), "");
        desk.run(5_000);
        let told = desk.read(client);
        assert!(matches!(status_of(&told), 502 | 504), "{told}");
        assert!(desk.links.is_empty());
    }
}

#[test]
fn a_provider_that_cannot_be_reached_is_a_bad_gateway() {
    for error in [ConnectError::Refused, ConnectError::Resolve("no such name".into()), ConnectError::Tls("bad".into())]
    {
        let mut desk = desk();
        let client = desk.wants(FILM, "");
        let (link, _) = desk.link();
        desk.links.clear();
        desk.server.link_failed(desk.time(), link, error);
        desk.turn();
        assert_eq!(status_of(&desk.read(client)), 502);
    }
}

#[test]
fn redirects_are_followed_and_counted() {
    let mut desk = desk();
    let client = desk.wants(FILM, "Range: bytes=3-\r\n");
    for hop in 0..5 {
        let (link, asked) = desk.asked_of_provider();
        assert!(asked.contains("\r\nRange: bytes=3-\r\n") && asked.contains("\r\nUser-Agent: VLC\r\n"), "{asked}");
        desk.link_says(link, format!("HTTP/1.1 302 Found\r\nLocation: http://edge{hop}.example/x?token=1\r\n\r\n"));
    }
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.starts_with("GET /x?token=1 HTTP/1.1\r\nHost: edge4.example\r\n"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 3-4/5\r\n\r\nde");
    assert_eq!(body(&desk.read(client)), "de");
    let client = desk.wants(FILM, "");
    for _ in 0..6 {
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, "HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n");
    }
    assert_eq!(status_of(&desk.read(client)), 502);
    assert!(desk.links.is_empty());
}

#[test]
fn a_name_that_leads_into_this_house_is_told_nothing() {
    for (allow_private, status) in [(false, 502), (true, 200)] {
        let mut desk = desk_of(Provider::default(), allow_private);
        let client = desk.wants(FILM, "");
        let (link, _) = desk.link();
        desk.server.link_connected(desk.time(), link, "10.0.0.1:80".parse().unwrap());
        desk.turn();
        assert_eq!(desk.asked.contains_key(&link), allow_private);
        if allow_private {
            desk.link_says(link, format!("{WHOLE}0"));
        }
        assert_eq!(status_of(&desk.read(client)), status);
    }
}

#[test]
fn a_look_costs_one_connection_and_the_next_none() {
    let mut desk = desk();
    let client = desk.connect();
    desk.send(client, format!("HEAD {FILM} HTTP/1.1\r\nHost: h\r\n\r\n"));
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("\r\nRange: bytes=0-0\r\n"), "{asked}");
    desk.link_says(
        link,
        "HTTP/1.1 206 x\r\nContent-Range: bytes 0-0/1234\r\nContent-Type: video/mp4\r\nContent-Length: 1\r\n\r\nx",
    );
    assert!(desk.links.is_empty());
    let first = desk.read(client);
    assert_eq!((status_of(&first), header(&first, "Content-Length").as_deref(), body(&first)), (200, Some("1234"), ""));
    assert_eq!(header(&first, "Accept-Ranges").as_deref(), Some("bytes"));
    desk.send(client, format!("HEAD {FILM} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert!(desk.links.is_empty(), "it is known");
    assert_eq!(header(&desk.read(client), "Content-Length").as_deref(), Some("1234"));
}

#[test]
fn a_range_behind_the_end_is_told_with_the_length() {
    let mut desk = desk();
    let client = desk.wants(FILM, "Range: bytes=100-\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 416 x\r\nContent-Range: bytes */10\r\nContent-Length: 4\r\n\r\noops");
    let told = desk.read(client);
    assert_eq!((status_of(&told), header(&told, "Content-Range").as_deref()), (416, Some("bytes */10")));
    assert!(desk.links.is_empty() && !desk.closed.contains(&client));
}

#[test]
fn a_provider_that_knows_no_ranges_serves_them_all_the_same() {
    let mut desk = desk();
    let client = desk.wants(FILM, "Range: bytes=4-6\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01");
    desk.link_says(link, "2345678");
    let told = desk.read(client);
    assert_eq!(
        (status_of(&told), header(&told, "Content-Range").as_deref(), body(&told)),
        (206, Some("bytes 4-6/10"), "456")
    );
    assert!(desk.links.is_empty(), "the rest is not waited for");
}

#[test]
fn neither_side_may_stand_still_for_ever() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("{WHOLE}01"));
    desk.run(80_000);
    desk.link_says(link, "2");
    desk.run(169_000);
    assert!(!desk.closed.contains(&client), "a byte came 89 s ago");
    desk.run(171_000);
    assert!(desk.closed.contains(&client) && desk.links.is_empty());
}

#[test]
fn malformed_requests_change_nothing() {
    let mut desk = desk();
    for (path, status) in [
        ("/movie/anna/wrong/1.mp4", 403),
        ("/movie/anna/anna-secret/one.mp4", 404),
        ("/movie/anna/anna-secret/01.mp4", 404),
        ("/timeshift/anna/anna-secret/60/2026-13-30:20-15/1.ts", 400),
        ("/timeshift/anna/anna-secret/0/2026-11-30:20-15/1.ts", 400),
        ("/timeshift/anna/wrong/60/2026-11-30:20-15/1.ts", 403),
        ("/timeshift.php?username=anna&password=anna-secret&stream=1&start=x&duration=60", 400),
        ("/streaming/timeshift.php?username=anna&password=anna-secret&stream=1&start=2026-11-30:20-15", 400),
    ] {
        let answer = desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(status_of(&answer), status, "{path}: {answer}");
        assert!(answer.contains("application/problem+json") && desk.links.is_empty(), "{answer}");
    }
    let post = desk.ask(&format!("POST {FILM} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(status_of(&post), 405);
    let options = desk.ask(&format!("OPTIONS {FILM} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!((status_of(&options), header(&options, "Allow").as_deref()), (204, Some("GET, HEAD, OPTIONS")));
}

const LIVE: &str = "/live/anna/anna-secret/151514632.m3u8";

/// Asks for a playlist, which the provider has at this address and answers with this; the connection, and what came of it.
fn playlist(desk: &mut Desk, path: &str, content: &str) -> (ConnId, String) {
    let client = desk.wants(path, "Range: bytes=0-\r\n");
    let (link, asked) = desk.asked_of_provider();
    assert!(!asked.contains("Range"), "{asked}");
    let length = content.len();
    desk.link_says(
        link,
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/x-mpegurl\r\nContent-Length: {length}\r\n\r\n{content}"),
    );
    assert!(desk.links.is_empty());
    let answer = desk.read(client);
    assert_eq!(header(&answer, "Content-Type").as_deref(), Some("application/vnd.apple.mpegurl"), "{answer}");
    (client, answer)
}

/// The addresses in a playlist that was at this path, as paths.
fn addresses(path: &str, answer: &str) -> Vec<String> {
    let base = url::Url::parse("http://edge.example").unwrap().join(path).unwrap();
    let named = |line: &str| match line.split_once("URI=\"") {
        Some((_, rest)) => rest.split('"').next().map(str::to_owned),
        None => (!line.starts_with('#')).then(|| line.to_owned()),
    };
    body(answer).lines().filter_map(named).map(|name| base.join(&name).unwrap().path().to_owned()).collect()
}

const MEDIA: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-KEY:METHOD=AES-128,URI=\"key.bin\"\n\
                     #EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:4,\nhttp://cdn.example/secret/7.ts\n#EXTINF:4,\n8.ts?a=b\n";

#[test]
fn a_live_playlist_leads_here_and_nowhere_else() {
    let mut desk = desk();
    // It is asked for again and again, at an address that says which playback that is.
    let (client, index) = playlist(&mut desk, LIVE, MEDIA);
    let media = addresses(LIVE, &index);
    assert!(index.contains("#EXT-X-STREAM-INF") && media.len() == 1 && media[0].starts_with("/hls/"), "{index}");
    assert!(!desk.closed.contains(&client));
    let (_, list) = playlist(&mut desk, &media[0], MEDIA);
    assert!(body(&list).starts_with("#EXTM3U\n") && !list.contains("example"), "{list}");
    let parts = addresses(&media[0], &list);
    assert_eq!(parts.len(), 4, "{list}");
    let (_, again) = playlist(&mut desk, &media[0], MEDIA);
    assert_eq!(body(&again), body(&list), "segments keep their names");
    for (part, host, path) in [
        (&parts[0], "provider.example", "/live/name/secret/key.bin"),
        (&parts[1], "provider.example", "/live/name/secret/init.mp4"),
        (&parts[2], "cdn.example", "/secret/7.ts"),
        (&parts[3], "provider.example", "/live/name/secret/8.ts?a=b"),
    ] {
        let client = desk.wants(part, "Range: bytes=0-\r\n");
        assert_eq!(desk.link().1.host, host);
        let (link, asked) = desk.asked_of_provider();
        assert!(asked.starts_with(&format!("GET {path} HTTP/1.1\r\n")) && !asked.contains("Range"), "{asked}");
        assert!(asked.contains("\r\nUser-Agent: VLC\r\n"), "{asked}");
        desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(body(&desk.read(client)), "abc");
        assert!(desk.links.is_empty());
    }
    let client = desk.wants(&parts[0], "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(status_of(&desk.read(client)), 400, "V7");
}

#[test]
fn a_playlist_is_read_where_it_is_in_the_end() {
    let mut desk = desk();
    let client = desk.wants(LIVE, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 302 Found\r\nLocation: http://edge.example/deep/live.m3u8?token=1\r\n\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/a.m3u8\n");
    desk.link_ends(link);
    let index = desk.read(client);
    let variants = addresses(LIVE, &index);
    desk.wants(&variants[0], "");
    let (_, asked) = desk.asked_of_provider();
    assert!(asked.starts_with("GET /deep/low/a.m3u8 HTTP/1.1\r\nHost: edge.example\r\n"), "{asked}");
}

#[test]
fn low_latency_is_not_promised() {
    let mut desk = desk();
    let content = format!(
        "#EXTM3U\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0,HOLD-BACK=9\n#EXT-X-PART-INF:PART-TARGET=0.3\n{}\
         #EXT-X-PART:DURATION=0.3,URI=\"9.0.ts\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"9.1.ts\"\n",
        MEDIA.strip_prefix("#EXTM3U\n").unwrap()
    );
    let (_, index) = playlist(&mut desk, LIVE, &content);
    let media = addresses(LIVE, &index);
    let (_, list) = playlist(&mut desk, &media[0], &content);
    assert!(list.contains("#EXT-X-SERVER-CONTROL:HOLD-BACK=9\n"), "{list}");
    assert!(!list.contains("PART") && !list.contains("CAN-BLOCK-RELOAD"), "{list}");
    assert_eq!(addresses(&media[0], &list).len(), 4);
}

#[test]
fn what_is_no_playlist_is_not_passed_on() {
    for (fields, content) in [
        ("", "<html>"),
        ("", ""),
        ("Content-Encoding: gzip\r\n", "\u{1f}\u{8b}"),
        ("", "#EXTM3U\n#EXTINF:4,\nhttp://169.254.169.254/latest\n"),
        ("", "#EXTM3U\n#EXTINF:4,\nfile:///etc/passwd\n"),
    ] {
        let mut desk = desk();
        let client = desk.wants(LIVE, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, format!("HTTP/1.1 200 OK\r\n{fields}\r\n{content}"));
        if !desk.links.is_empty() {
            desk.link_ends(link);
        }
        let told = desk.read(client);
        assert_eq!(status_of(&told), 502, "{content}: {told}");
        assert!(desk.links.is_empty());
    }
}

#[test]
fn a_playlist_without_an_end_is_not_read_to_its_end() {
    let mut desk = desk();
    let client = desk.wants(LIVE, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n");
    let mut sent = 0;
    while !desk.links.is_empty() && sent < 64 << 20 {
        desk.link_says(link, vec![b'#'; 64 * 1024]);
        sent += 64 * 1024;
    }
    assert!(sent <= 9 << 20, "{sent}");
    assert_eq!(status_of(&desk.read(client)), 502);
    let client = desk.wants(LIVE, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n");
    desk.run(desk.now + 9_000);
    desk.link_says(link, "#\n");
    desk.run(desk.now + 1_000);
    assert_eq!(status_of(&desk.read(client)), 504, "a byte now and then does not help");
}

#[test]
fn addresses_that_were_not_given_out_here_lead_nowhere() {
    let mut desk = desk();
    let (_, index) = playlist(&mut desk, LIVE, MEDIA);
    let own = addresses(LIVE, &index).remove(0);
    let letter = own.chars().nth(20).unwrap();
    let forged = own.replacen(letter, if letter == 'A' { "B" } else { "A" }, 1);
    for (path, status) in [
        ("/hls/", 403),
        ("/hls/x.ts", 403),
        (&own[..own.len() / 2], 403),
        (forged.as_str(), if forged.starts_with("/hls/") { 403 } else { 404 }),
        ("/hls/a%20b", 400),
        ("/hls/a%00", 400),
        ("/hls/..%2f..%2fetc", 400),
        ("/hls/http:", 400),
    ] {
        let answer = desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(status_of(&answer), status, "{path}: {answer}");
        assert!(desk.links.is_empty());
    }
    desk.run(86_400_000);
    assert_eq!(status_of(&desk.ask(&format!("GET {own} HTTP/1.1\r\nHost: h\r\n\r\n"))), 403, "a day later");
    assert!(desk.links.is_empty());
}

#[test]
fn what_has_no_stream_is_beside_it_and_what_is_dash_is_elsewhere() {
    let mut desk = desk();
    let answer = desk.ask("GET /live/anna/anna-secret/151514632.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((status_of(&answer), header(&answer, "Location").as_deref()), (302, Some("151514632.m3u8")));
    let answer = desk.ask("GET /movie/anna/anna-secret/534827041.mpd HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(status_of(&answer), 302, "{answer}");
    assert!(header(&answer, "Location").is_some_and(|to| to.starts_with("http://provider.example/")));
    assert!(desk.links.is_empty(), "nothing is fetched for it");
}

#[test]
fn a_recording_is_fetched_as_a_stream_or_as_a_playlist() {
    let mut desk = desk();
    for path in [
        "/timeshift/anna/anna-secret/60/2026-11-30:20-15/564845761.ts",
        "/timeshift/anna/anna-secret/60/2026-11-30%3A20-15/564845761",
        "/timeshift.php?username=anna&password=anna-secret&stream=564845761&start=2026-11-30:20-15&duration=60",
    ] {
        let client = desk.wants(path, "Range: bytes=100-\r\n");
        let (link, asked) = desk.asked_of_provider();
        assert!(asked.contains("\r\nRange: bytes=100-\r\n"), "{asked}");
        desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 100-102/103\r\n\r\nabc");
        let answer = desk.read(client);
        assert_eq!((status_of(&answer), body(&answer)), (206, "abc"));
    }
    let ended = format!("{MEDIA}#EXT-X-ENDLIST\n");
    let path = "/timeshift/anna/anna-secret/60/2026-11-30:20-15/564845761.m3u8";
    let (_, list) = playlist(&mut desk, path, &ended);
    let parts = addresses(path, &list);
    assert!(list.contains("#EXT-X-ENDLIST") && parts.len() == 4 && parts[3].starts_with("/hls/"), "{list}");
}

/// An answer whose body follows.
fn begun(desk: &mut Desk, link: LinkId) {
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n0123");
}

#[test]
fn a_seek_takes_the_place_of_what_played() {
    let mut desk = desk();
    let first = desk.wants(FILM, "Range: bytes=0-\r\n");
    let (link, _) = desk.asked_of_provider();
    begun(&mut desk, link);
    assert_eq!(status_of(&desk.read(first)), 200);
    let second = desk.wants(FILM, "Range: bytes=500-\r\n");
    assert!(desk.closed.contains(&first), "it need not be awaited");
    let (other, asked) = desk.asked_of_provider();
    assert!(other != link && asked.contains("bytes=500-"), "{asked}");
    desk.link_says(other, "HTTP/1.1 206 x\r\nContent-Range: bytes 500-502/503\r\n\r\nabc");
    assert_eq!(body(&desk.read(second)), "abc");
    // Before anything came.
    let third = desk.wants(FILM, "");
    let fourth = desk.wants(FILM, "");
    let told = desk.read(third);
    assert_eq!(status_of(&told), 503, "{told}");
    assert!(told.contains("superseded") && !desk.closed.contains(&third), "{told}");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("{WHOLE}0123456789"));
    assert_eq!(body(&desk.read(fourth)), "0123456789");
}

#[test]
fn parts_wait_for_one_another_but_not_for_who_takes_nothing() {
    let mut desk = desk();
    let part = |from: u64| format!("Range: bytes={from}-{}\r\n", from + 9);
    let first = desk.wants(FILM, &part(0));
    let second = desk.wants(FILM, &part(10));
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("bytes=0-9"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/100\r\n\r\n0123456789");
    assert_eq!(body(&desk.read(first)), "0123456789");
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("bytes=10-19"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\n\r\n");
    desk.writable = false;
    desk.link_says(link, "012");
    let third = desk.wants(FILM, &part(20));
    desk.run(desk.now + 900);
    assert_eq!(desk.link().0, link, "it may take it yet");
    desk.run(desk.now + 200);
    assert!(desk.closed.contains(&second));
    desk.writable = true;
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("bytes=20-29"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 20-29/100\r\n\r\n0123456789");
    assert_eq!(body(&desk.read(third)), "0123456789");
}

#[test]
fn a_part_that_others_wait_for_is_read_ahead() {
    let mut desk = desk();
    let first = desk.wants(FILM, "Range: bytes=0-999999\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.writable = false;
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 0-999999/2000000\r\n\r\n");
    desk.link_says(link, vec![7; 300_000]);
    assert!(!desk.server.link_wants_read(link));
    let second = desk.wants(FILM, "Range: bytes=1000000-1000002\r\n");
    assert!(desk.server.link_wants_read(link));
    desk.takes(first, 1000);
    desk.link_says(link, vec![7; 700_000]);
    let (other, asked) = desk.asked_of_provider();
    assert!(other != link && asked.contains("bytes=1000000-"), "the provider is done with the first: {asked}");
    desk.run(desk.now + 500);
    desk.writable = true;
    desk.link_says(other, "HTTP/1.1 206 x\r\nContent-Range: bytes 1000000-1000002/2000000\r\n\r\nabc");
    assert_eq!(body(&desk.read(second)), "abc");
    desk.takes(first, usize::MAX);
    let taken = desk.written.remove(&first).unwrap();
    assert_eq!(taken.iter().filter(|byte| **byte == 7).count(), 1_000_000);
}

#[test]
fn an_operator_sees_what_is_fetched_and_ends_it() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    begun(&mut desk, link);
    desk.run(2_000);
    let status = desk.status();
    let playback = &status["users"][0]["playbacks"][0];
    assert_eq!(
        (playback["kind"].as_str(), playback["requests"][0]["state"].as_str()),
        (Some("vod"), Some("streaming"))
    );
    let request = &playback["requests"][0];
    assert_eq!((request["bytes"].as_u64(), request["age_ms"].as_u64()), (Some(4), Some(2_000)), "{request}");
    assert_eq!(request["account"].as_str(), Some("provider/1"));
    let account = &status["providers"][0]["accounts"][0];
    assert_eq!(
        (account["name"].as_str(), account["used"].as_u64(), account["limit"].as_u64()),
        (Some("provider/1"), Some(1), Some(1))
    );
    let connection = &account["connections"][0];
    assert_eq!(
        (connection["state"].as_str(), connection["age_ms"].as_u64()),
        (Some("active"), Some(2_000)),
        "{account}"
    );
    assert_eq!(connection["holder"].as_str(), Some(&*format!("playback {}", playback["id"].as_str().unwrap())));
    let slots = "holdfast_account_slots{provider=\"provider\",account=\"1\",state=\"used\"}";
    assert_eq!(desk.metric(slots), Some(1));
    assert_eq!(desk.metric("holdfast_title_connections"), Some(1));
    assert_eq!(desk.metric("holdfast_title_sent_bytes_total"), Some(4));
    let id = playback["id"].as_str().unwrap().to_owned();
    let ended = desk.ask(&format!("DELETE /api/playbacks/{id}?block=10 HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(status_of(&ended), 204);
    assert!(desk.closed.contains(&client) && desk.links.is_empty());
    let again = desk.wants(FILM, "");
    assert_eq!(status_of(&desk.read(again)), 403);
    desk.wants(&FILM.replace("anna", "ben"), "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 403 Forbidden\r\n\r\n");
    let status = desk.status();
    let account = &status["providers"][0]["accounts"][0];
    assert_eq!(
        (account["used"].as_u64(), account["last_loss"]["reason"].as_str()),
        (Some(0), Some("status-403")),
        "{account}"
    );
}

#[test]
fn everybody_ends_when_the_program_does() {
    let mut desk = desk();
    let playing = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    begun(&mut desk, link);
    let waiting = desk.wants(&FILM.replace("anna", "ben"), "");
    desk.server.drain(desk.time());
    desk.turn();
    assert!(desk.closed.contains(&playing) && desk.links.is_empty());
    assert_eq!(status_of(&desk.read(waiting)), 503);
    desk.gone(playing);
    desk.gone(waiting);
    assert!(desk.server.is_drained());
}

#[test]
fn an_answer_of_which_nothing_comes_is_none() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, WHOLE);
    assert_eq!(desk.read(client), "", "another account might give it");
    desk.link_ends(link);
    assert_eq!(status_of(&desk.read(client)), 502);
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(header(&desk.read(client), "Content-Length").as_deref(), Some("0"), "nothing is all there is");
    assert!(!desk.closed.contains(&client));
}

#[test]
fn nothing_of_a_film_comes_too_late() {
    let mut desk = desk();
    for _ in 0..3 {
        let client = desk.wants(FILM, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, WHOLE);
        desk.link_says(link, "0123456789");
        assert_eq!(body(&desk.read(client)), "0123456789");
        desk.wants(FILM, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, format!("{WHOLE}01"));
        desk.link_ends(link);
    }
    let status = desk.status();
    assert_eq!(status["stale_inputs"].as_u64(), Some(0), "{status}");
    assert_eq!(desk.server.edge().accounts().stale(), 0);
    assert!(desk.server.edge().accounts().allocations().next().is_none());
}
