//! Titles of a provider, fetched for users: what its connection says, and what reaches the client.

use std::io::ErrorKind;

use holdfast_core::config::{Account, Config, Playback, Provider, Strategy, User};
use holdfast_core::input::Note;
use holdfast_io::providers::{Dialect, Guide, Location, Output, ProviderSettings, Reach};
use holdfast_io::server::{ConnId, ConnectError, LinkId, Settings};
use holdfast_io::users::{Login, Password, Status};

use crate::desk::{Desk, header};
use crate::parts::begun;

pub const FILM: &str = "/movie/anna/anna-secret/728194988.mp4";

/// What the provider has. What its titles are known by here follows from that.
const LIST: &str = "#EXTM3U\n\
    #EXTINF:-1 group-title=\"Films\",Film\nhttp://provider.example/movie/name/secret/1.mp4\n\
    #EXTINF:-1 group-title=\"Films\",Dash\nhttp://provider.example/movie/name/secret/3.mpd\n\
    #EXTINF:-1 group-title=\"Live\",Lists\nhttp://provider.example/live/name/secret/2.m3u8\n\
    #EXTINF:-1 group-title=\"Live\" catchup=\"xc\" catchup-days=\"3\",News\nhttp://provider.example/live/name/secret/4.ts\n";

/// Anna and Ben may play as much as they like; there is one provider with one account.
pub fn desk() -> Desk {
    desk_of(LIST, Provider::default(), |_| ())
}

/// The same, where the list is not read again for a day.
pub fn desk_for_a_day() -> Desk {
    desk_of(LIST, Provider::default(), |own| own.refresh = std::time::Duration::from_secs(24 * 3600))
}

pub fn desk_of(list: &str, provider: Provider, change: impl FnOnce(&mut ProviderSettings)) -> Desk {
    desk_with(list, (provider, Playback::default()), 0, change)
}

/// One account at a provider with two streams as HLS and a film; Anna and Ben have one place each.
pub fn desk_of_one_place(strategies: &[Strategy]) -> Desk {
    let list = "#EXTM3U\n\
        #EXTINF:-1 group-title=\"Films\",Film\nhttp://provider.example/movie/name/secret/1.mp4\n\
        #EXTINF:-1 group-title=\"Live\",One\nhttp://provider.example/live/name/secret/2.m3u8\n\
        #EXTINF:-1 group-title=\"Live\",Two\nhttp://provider.example/live/name/secret/3.m3u8\n";
    let playback = Playback { strategies: strategies.to_vec(), ..Playback::default() };
    desk_with(list, (Provider::default(), playback), 1, |_| ())
}

fn desk_with(
    list: &str,
    (provider, playback): (Provider, Playback),
    max_connections: u32,
    change: impl FnOnce(&mut ProviderSettings),
) -> Desk {
    let users: Vec<User> =
        ["anna", "ben"].map(|name| User { name: name.into(), max_connections, ..User::default() }).into();
    let login = |user: &User| Login {
        name: user.name.clone(),
        password: Password::parse(&format!("{}-secret", user.name)).unwrap(),
        expires: None,
        groups: Vec::new(),
        status: Status::Active,
    };
    let mut of_provider = ProviderSettings {
        name: provider.name.clone(),
        location: Location::parse("http://provider.example/list.m3u").unwrap(),
        dialect: Dialect::M3u,
        guide: Guide::None,
        refresh: std::time::Duration::from_secs(3600),
        user_agent: String::from("VLC"),
        output: Output::Auto,
        via: false,
        groups: Vec::new(),
        reach: Reach::Public,
        entries: 1000,
        bytes: 1 << 20,
        accounts: provider.accounts.iter().map(|_| None).collect(),
    };
    change(&mut of_provider);
    let settings = Settings {
        users: users.iter().map(login).collect(),
        providers: vec![of_provider],
        epoch: 1_700_000_000,
        instance: 7,
        ..Settings::default()
    };
    let config = Config { users, providers: vec![provider], playback, ..Config::default() };
    let mut desk = Desk::open(config, settings);
    desk.run(0);
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{list}", list.len()));
    assert!(desk.links.is_empty());
    desk
}

impl Desk {
    /// Asks on a connection of its own; nothing has come back yet.
    pub fn wants(&mut self, path: &str, fields: &str) -> ConnId {
        let id = self.connect();
        self.wants_on(id, path, fields);
        id
    }

    pub fn wants_on(&mut self, id: ConnId, path: &str, fields: &str) {
        self.send(id, format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    }

    /// The one link that is open, which is made and asked.
    pub fn asked_of_provider(&mut self) -> (LinkId, String) {
        let (link, _) = self.link();
        self.link_opens(link);
        (link, String::from_utf8(self.asked.remove(&link).unwrap_or_default()).unwrap())
    }

    /// A socket takes so many bytes and then no more.
    pub fn takes(&mut self, id: ConnId, most: usize) -> usize {
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
        assert!(result.is_ok());
        self.turn();
        most - left
    }

    pub fn gone(&mut self, id: ConnId) {
        self.server.closed(self.time(), id);
        self.turn();
    }
}

pub fn status_of(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

pub fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

pub const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 10\r\nAccept-Ranges: bytes\r\nETag: \"a\"\r\n\
                     Server: panel\r\nSet-Cookie: a=b\r\n\r\n";

#[test]
fn a_film_is_passed_on_as_it_is() {
    let mut desk = desk();
    let client = desk.wants(FILM, "User-Agent: mpv\r\nCookie: own\r\n");
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.starts_with("GET ") && asked.contains("\r\nHost: provider.example\r\n"), "{asked}");
    assert!(asked.contains("\r\nUser-Agent: VLC\r\n"), "{asked}");
    assert!(asked.contains("\r\nConnection: close\r\n"), "{asked}");
    for own in ["Cookie", "mpv", "Range", "Via"] {
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
fn a_part_of_what_has_changed_is_not_passed_on() {
    let mut desk = desk();
    let client = desk.wants(FILM, "Range: bytes=5-\r\nIf-Range: \"a\"\r\n");
    let (link, _) = desk.asked_of_provider();
    let changed = "HTTP/1.1 206 x\r\nETag: \"b\"\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789";
    desk.link_says(link, changed);
    assert_eq!(desk.read(client), "");
    let (link, asked) = desk.asked_of_provider();
    assert!(!asked.contains("Range"), "all of it, on the only connection: {asked}");
    desk.link_says(link, "HTTP/1.1 200 OK\r\nETag: \"b\"\r\nContent-Length: 10\r\n\r\n0123456789");
    let answer = desk.read(client);
    assert_eq!((status_of(&answer), body(&answer)), (200, "0123456789"));
    assert_eq!(header(&answer, "ETag").as_deref(), Some("\"b\""));
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

/// The provider ends it in order, and has sent less than the range that it named.
#[test]
fn what_is_less_than_was_said_ends_short_of_its_length() {
    let mut desk = desk();
    let client = desk.wants(FILM, "Range: bytes=0-9\r\n");
    let (link, _) = desk.asked_of_provider();
    let head = "HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/10\r\nTransfer-Encoding: chunked\r\n\r\n";
    desk.link_says(link, format!("{head}3\r\nabc\r\n0\r\n\r\n"));
    let answer = desk.read(client);
    assert_eq!((status_of(&answer), header(&answer, "Content-Length").as_deref()), (206, Some("10")));
    assert_eq!(body(&answer), "abc");
    assert!(desk.closed.contains(&client), "what is missing is not waited for");
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
    for (reach, leads_to, may) in [
        (Reach::Public, "10.0.0.1:80", false),
        (Reach::Network, "10.0.0.1:80", true),
        (Reach::Network, "127.0.0.1:80", false),
        (Reach::Machine, "127.0.0.1:80", true),
    ] {
        let mut desk = desk_of(LIST, Provider::default(), |own| own.reach = reach);
        let client = desk.wants(FILM, "");
        let (link, _) = desk.link();
        desk.server.link_connected(desk.time(), link, leads_to.parse().unwrap());
        desk.turn();
        assert_eq!(desk.asked.contains_key(&link), may, "{leads_to}");
        if may {
            desk.link_says(link, format!("{WHOLE}0"));
        }
        assert_eq!(status_of(&desk.read(client)), if may { 200 } else { 502 });
    }
}

#[test]
fn more_parts_than_anybody_needs_are_asked_of_nobody() {
    let mut desk = desk();
    let parts: Vec<String> = (0..200).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect();
    let client = desk.wants(FILM, &format!("Range: bytes={}\r\n", parts.join(",")));
    assert_eq!(status_of(&desk.read(client)), 416);
    assert!(desk.links.is_empty());
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

/// A paused film is ended by nothing but that: neither here nor by the kernel, which would count what lies in its buffer.
#[test]
fn whoever_pauses_a_film_has_body_idle_and_not_write_timeout() {
    let mut desk = desk();
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    assert_eq!(desk.patience.get(&client), None, "nothing is sent to it yet");
    desk.writable = false;
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n");
    while desk.server.link_wants_read(link) {
        desk.link_says(link, vec![7; 64 * 1024]);
    }
    let body_idle = std::time::Duration::from_secs(90);
    assert_eq!(desk.patience.get(&client), Some(&body_idle));
    desk.takes(client, 1000);
    desk.run(desk.now + 89_000);
    assert!(!desk.closed.contains(&client));
    desk.takes(client, 1000);
    desk.run(desk.now + 89_000);
    assert!(!desk.closed.contains(&client), "it took something");
    desk.run(desk.now + 2_000);
    assert!(desk.closed.contains(&client) && desk.links.is_empty());
    // The last bytes of one without a length count like the rest, and what is no film does not.
    let mut desk = desk_of(LIST, Provider::default(), |_| ());
    let client = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n");
    desk.writable = false;
    desk.link_says(link, "4\r\nefgh\r\n0\r\n\r\n");
    desk.run(desk.now + 89_000);
    assert!(!desk.closed.contains(&client));
    let other = desk.connect();
    desk.writable = true;
    desk.wants_on(other, FILM, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("{WHOLE}0123456789"));
    assert_eq!(desk.patience.get(&other), Some(&body_idle));
    desk.writable = false;
    desk.wants_on(other, "/healthz", "");
    assert_eq!(desk.patience.get(&other), Some(&std::time::Duration::from_secs(30)));
    desk.run(desk.now + 29_000);
    assert!(!desk.closed.contains(&other));
    desk.run(desk.now + 2_000);
    assert!(desk.closed.contains(&other), "`write_timeout` is for everything else");
}

/// V19: VLC asks four times within 30 ms.
#[test]
fn v19_whoever_repeats_what_no_provider_gave_gets_the_same_answer_and_nobody_is_asked() {
    let mut desk = desk();
    let client = desk.wants(FILM, "User-Agent: VLC/3.0.24 LibVLC/3.0.24\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let first = desk.read(client);
    assert_eq!(status_of(&first), 404);
    for _ in 0..3 {
        desk.run(desk.now + 10);
        let client = desk.wants(FILM, "User-Agent: VLC/3.0.24 LibVLC/3.0.24\r\n");
        assert_eq!((body(&desk.read(client)), desk.links.len()), (body(&first), 0));
    }
    let other = desk.wants(FILM, "User-Agent: mpv\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("{WHOLE}0123456789"));
    assert_eq!(status_of(&desk.read(other)), 200);
    desk.run(desk.now + 1_000);
    desk.wants(FILM, "User-Agent: VLC/3.0.24 LibVLC/3.0.24\r\n");
    assert_eq!(desk.links.len(), 1, "and then it is asked again");
}

/// An account of one that plays the film already: a second connection is not to be had, and not needed.
#[test]
fn a_look_beside_ones_own_playback_is_answered_from_that() {
    let head = |desk: &mut Desk| {
        let client = desk.connect();
        desk.send(client, format!("HEAD {FILM} HTTP/1.1\r\nHost: h\r\n\r\n"));
        client
    };
    let answer =
        "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n";
    let mut desk = desk();
    let playing = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    let early = head(&mut desk);
    assert_eq!((desk.read(early), desk.links.len()), (String::new(), 1), "it waits for what is asked anyway");
    desk.link_says(link, answer);
    let late = head(&mut desk);
    for looking in [early, late] {
        let told = desk.read(looking);
        assert_eq!((status_of(&told), body(&told)), (200, ""), "{told}");
        let field = |name| header(&told, name);
        assert_eq!((field("Content-Type").as_deref(), field("ETag").as_deref()), (Some("video/mp4"), Some("\"a\"")));
    }
    assert_eq!(desk.links.len(), 1);
    desk.link_says(link, "4\r\nefgh\r\n");
    assert!(body(&desk.read(playing)).contains("abcd"), "the film plays on");
    // What is somebody else's says nothing to whoever looks.
    let client = desk.connect();
    desk.send(client, format!("HEAD {} HTTP/1.1\r\nHost: h\r\n\r\n", FILM.replace("anna", "ben")));
    assert_eq!(status_of(&desk.read(client)), 503);
    desk.gone(playing);
    // Where nothing comes of it, whoever waits is told that.
    let playing = desk.wants(FILM, "");
    let (link, _) = desk.asked_of_provider();
    let looking = head(&mut desk);
    desk.link_says(link, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    assert_eq!([playing, looking].map(|client| status_of(&desk.read(client))), [404, 404]);
    assert!(desk.links.is_empty());
}

#[test]
fn a_provider_is_told_that_there_is_a_proxy_where_that_is_wanted() {
    let mut desk = desk_of(LIST, Provider::default(), |own| own.via = true);
    let client = desk.wants(FILM, "Via: 1.1 fred\r\n");
    let (_, asked) = desk.asked_of_provider();
    assert!(asked.contains("\r\nVia: 1.1 fred, 1.1 holdfast-"), "{asked}");
    desk.gone(client);
    desk.wants("/live/anna/anna-secret/564845761.ts", "");
    let (_, asked) = desk.asked_of_provider();
    assert!(asked.contains("/4.ts HTTP") && asked.contains("\r\nVia: 1.1 holdfast-"), "{asked}");
    let mut desk = self::desk();
    desk.wants("/live/anna/anna-secret/564845761.ts", "");
    let (_, asked) = desk.asked_of_provider();
    assert!(asked.contains("/4.ts HTTP") && !asked.contains("Via"), "{asked}");
}

/// A provider that leads back here, and is not told by whom it is asked.
#[test]
fn a_circle_without_via_is_known_by_what_comes_back() {
    let film = "#EXTM3U\n#EXTINF:-1 group-title=\"Films\",Film\nhttp://provider.example/movie/anna/anna-secret/728194988.mp4\n";
    let unlimited = Account { max_connections: 0, ..Account::default() };
    let provider = Provider { accounts: vec![unlimited], ..Provider::default() };
    let mut desk = desk_of(film, provider, |_| ());
    desk.wants(FILM, "");
    let (_, asked) = desk.asked_of_provider();
    assert!(asked.starts_with(&format!("GET {FILM} HTTP/1.1\r\nHost: provider.example\r\n")), "{asked}");
    let back = desk.connect();
    desk.send(back, &asked);
    let answer = desk.read(back);
    assert_eq!((status_of(&answer), desk.links.len()), (508, 1), "{answer}");
    // The same of somebody who asks this server by its own name is none.
    let other = desk.wants(FILM, "User-Agent: other\r\n");
    assert_eq!((desk.read(other), desk.links.len()), (String::new(), 2));
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
        // Nothing of what is to come was recorded.
        ("/timeshift/anna/anna-secret/60/9998-12-31:20-15/1.ts", 404),
        ("/timeshift/anna/anna-secret/60/1700000100/1.ts", 404),
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

#[test]
fn a_film_that_its_player_opens_again_and_again_is_told_by_name_and_its_end_once() {
    let mut desk = desk();
    for _ in 0..3 {
        let client = desk.wants(FILM, "Range: bytes=5-9\r\n");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789");
        assert_eq!(status_of(&desk.read(client)), 206);
        desk.run(desk.now + 1_000);
    }
    let told = |desk: &mut Desk| -> Vec<(bool, Option<String>, bool)> {
        let notes = std::mem::take(&mut desk.notes);
        let of = |note: &Note| matches!(note, Note::PlaybackStarted { .. } | Note::PlaybackEnded { .. });
        let about = |note: &Note| (matches!(note, Note::PlaybackStarted { .. }), desk.server.about(note));
        notes.iter().filter(|note| of(note)).map(about).map(|(start, own)| (start, own.title, own.again)).collect()
    };
    let film = || Some(String::from("Film"));
    assert_eq!(told(&mut desk), [(true, film(), false), (true, film(), true), (true, film(), true)]);
    desk.run(desk.now + 10_000);
    assert_eq!(told(&mut desk), [(false, film(), false)]);
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
    let held = (&connection["title"], &connection["kind"], &connection["users"]);
    assert_eq!(held, (&"Film".into(), &"vod".into(), &serde_json::json!(["anna"])));
    let users = "holdfast_account_users{provider=\"provider\",account=\"1\",user=\"anna\",state=\"used\"}";
    assert_eq!(desk.metric(users), Some(1));
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
    // A connection was closed a moment ago, which the provider may still count: it is asked again for a while.
    for pause in [250, 500, 1_000, 250, 0] {
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, "HTTP/1.1 403 Forbidden\r\n\r\n");
        desk.run(desk.now + pause);
    }
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
    desk.run(desk.now + 1_000);
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
