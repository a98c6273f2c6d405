use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use holdfast_core::config::{Config, User};

use super::*;
use crate::library::{self, Library, Shelf};
use crate::providers::Kind;
use crate::server::{ConnId, Settings};
use crate::users::{Login, Password, Status as UserStatus};

const EPOCH: u64 = 2_000_000_000;

/// A server with a library of two files and one user, who may play one thing at once. Disks answer when they are told to.
struct Desk {
    server: Server,
    now: Time,
    written: BTreeMap<ConnId, Vec<u8>>,
    closed: Vec<ConnId>,
    commands: Vec<(RequestId, FileCommand)>,
    files: BTreeMap<RequestId, File>,
    /// How many bytes sockets take.
    room: usize,
    path: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Desk {
    fn new(name: &str, length: usize) -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-local-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("film.mp4"), content(length)).unwrap();
        fs::write(path.join("other.mkv"), "other").unwrap();
        let user = User { name: "anna".into(), max_connections: 1, ..User::default() };
        let login = Login {
            name: "anna".into(),
            password: Password::parse("a").unwrap(),
            expires: None,
            groups: Vec::new(),
            status: UserStatus::Active,
        };
        let library = Library { name: "l".into(), path: path.clone(), kind: Shelf::Films, group: String::new() };
        let settings = Settings { users: vec![login], libraries: vec![library], epoch: EPOCH, ..Settings::default() };
        let mut playback = holdfast_core::config::Playback::default();
        playback.strategies.clear();
        let config = Config { users: vec![user], playback, ..Config::default() };
        let mut desk = Desk {
            server: Server::new(config, settings, Box::new(|| [1; 16])),
            now: Time::ZERO,
            written: BTreeMap::new(),
            closed: Vec::new(),
            commands: Vec::new(),
            files: BTreeMap::new(),
            room: usize::MAX,
            path,
        };
        desk.tick();
        desk
    }

    fn address(&self, name: &str) -> String {
        let local = self.server.libraries().of(Kind::Film).find(|local| local.name == name).unwrap();
        format!("/movie/anna/a/{}.{}", local.id, local.extension)
    }

    fn tick(&mut self) {
        self.server.tick(self.now);
        self.turn();
    }

    fn turn(&mut self) {
        while let Some(action) = self.server.poll() {
            match action {
                Action::Write(id) => self.write(id),
                Action::Close(id) => self.closed.push(id),
                Action::Scan(libraries) => self.server.scanned(self.now, &library::scan(&libraries)),
                Action::File(request, command) => self.commands.push((request, command)),
                _ => {}
            }
        }
    }

    fn write(&mut self, id: ConnId) {
        let (room, written) = (&mut self.room, self.written.entry(id).or_default());
        let result = self.server.transmit(self.now, id, &mut |pieces| {
            let mut count = 0;
            for piece in pieces {
                let taken = piece.len().min(*room);
                written.extend_from_slice(&piece[..taken]);
                *room -= taken;
                count += taken;
            }
            if count == 0 { Err(std::io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        });
        result.unwrap();
    }

    /// The disk does what it was asked.
    fn work(&mut self) {
        while !self.commands.is_empty() {
            self.work_once();
        }
    }

    fn work_once(&mut self) {
        let (request, command) = self.commands.remove(0);
        let event = match command {
            FileCommand::Open(place) => library::open(&place).map(|(file, attributes)| {
                self.files.insert(request, file);
                FileEvent::Opened(attributes)
            }),
            FileCommand::Read { at, length } => library::read(&self.files[&request], at, length).map(FileEvent::Data),
            FileCommand::Close => return drop(self.files.remove(&request)),
        };
        self.server.file(self.now, request, event.unwrap_or_else(FileEvent::Failed));
        self.turn();
    }

    fn begin(&mut self, request: &str) -> ConnId {
        let id = self.server.accepted(self.now, "127.0.0.1:5000".parse().unwrap()).unwrap();
        self.send(id, request);
        id
    }

    fn send(&mut self, id: ConnId, request: &str) {
        self.server.received(self.now, id, request.as_bytes());
        self.turn();
    }

    fn answer(&mut self, id: ConnId) -> (String, Vec<u8>) {
        let written = self.written.remove(&id).unwrap_or_default();
        let end = written.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
        (String::from_utf8(written[..end].to_vec()).unwrap(), written[end..].to_vec())
    }

    fn ask(&mut self, request: &str) -> (String, Vec<u8>) {
        let id = self.begin(request);
        self.work();
        self.answer(id)
    }

    /// Everything that was opened is closed, and nobody plays anything.
    fn is_quiet(&mut self) -> bool {
        self.work();
        self.files.is_empty() && self.server.relays.is_empty() && {
            let room = self.server.edge().playback();
            room.playbacks().next().is_none() && room.probe_count() == 0 && room.permits() == 0
        }
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_film_is_sent_whole_or_in_part_on_one_connection() {
    let length = 3 * PIECE + 17;
    let mut desk = Desk::new("whole", length);
    let film = desk.address("film");
    let id = desk.begin(&get(&film, ""));
    desk.work();
    let (head, body) = desk.answer(id);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(field(&head, "Content-Length"), Some(&*length.to_string()));
    assert_eq!((field(&head, "Content-Type"), field(&head, "Accept-Ranges")), (Some("video/mp4"), Some("bytes")));
    assert_eq!(body, content(length));
    let etag = field(&head, "ETag").unwrap().to_owned();
    for (range, first, last) in [
        ("bytes=0-", 0, length - 1),
        ("bytes=5-10", 5, 10),
        ("bytes=-7", length - 7, length - 1),
        ("bytes=262140-786440", PIECE - 4, 3 * PIECE + 8),
    ] {
        desk.send(id, &get(&film, &format!("Range: {range}\r\nIf-Range: {etag}\r\n")));
        desk.work();
        let (head, body) = desk.answer(id);
        assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
        assert_eq!(field(&head, "Content-Range"), Some(&*format!("bytes {first}-{last}/{length}")));
        assert_eq!(field(&head, "ETag"), Some(&*etag));
        assert_eq!(body, content(length)[first..=last], "{range}");
    }
    assert!(desk.is_quiet());
}

#[test]
fn what_is_not_wanted_any_more_or_not_there_is_not_sent() {
    let mut desk = Desk::new("conditions", 1000);
    let film = desk.address("film");
    let (head, body) = desk.ask(&format!("HEAD {film} HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200 ") && body.is_empty(), "{head}");
    assert_eq!(field(&head, "Content-Length"), Some("1000"));
    let (etag, date) = (field(&head, "ETag").unwrap().to_owned(), field(&head, "Last-Modified").unwrap().to_owned());
    for (fields, status) in [
        (format!("If-None-Match: {etag}\r\nRange: bytes=0-1\r\n"), "304"),
        (format!("If-Modified-Since: {date}\r\n"), "304"),
        (String::from("If-None-Match: \"x\"\r\n"), "200"),
        (String::from("If-Match: \"x\"\r\n"), "412"),
        (String::from("Range: bytes=0-1\r\nIf-Range: \"x\"\r\n"), "200"),
        (format!("Range: bytes=0-1\r\nIf-Range: {date}\r\n"), "206"),
        (String::from("Range: bytes=1000-\r\n"), "416"),
        (String::from("Range: bytes=5-2\r\n"), "200"),
    ] {
        let (head, _) = desk.ask(&get(&film, &fields));
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}{head}");
        let length = (status == "416").then_some("bytes */1000");
        assert_eq!(field(&head, "Content-Range"), length.or((status == "206").then_some("bytes 0-1/1000")));
    }
    assert!(desk.is_quiet());
}

#[test]
fn it_is_read_as_fast_as_its_client_takes_it() {
    let mut desk = Desk::new("slow", 20 * PIECE);
    let film = desk.address("film");
    desk.room = 1000;
    let id = desk.begin(&get(&film, ""));
    desk.work();
    // What the head left room for, and two pieces.
    assert_eq!(desk.written[&id].len(), 1000);
    let queued: usize = desk.server.relayed(RequestId(1)).map(<[u8]>::len).sum();
    assert!(queued <= BUFFER + PIECE, "{queued} bytes are kept");
    desk.room = usize::MAX;
    desk.write(id);
    desk.turn();
    desk.work();
    assert_eq!(desk.answer(id).1, content(20 * PIECE));
    assert!(desk.is_quiet());
}

#[test]
fn a_file_that_became_shorter_ends_the_response() {
    let mut desk = Desk::new("short", 4 * PIECE);
    let film = desk.address("film");
    let id = desk.begin(&get(&film, ""));
    desk.work_once();
    File::options().write(true).open(desk.path.join("film.mp4")).unwrap().set_len(PIECE as u64 + 5).unwrap();
    desk.work();
    assert_eq!(desk.answer(id).1.len(), PIECE + 5);
    assert_eq!(desk.closed, [id]);
    assert!(desk.is_quiet());
}

#[test]
fn a_file_that_is_gone_is_not_found_and_nothing_is_left() {
    let mut desk = Desk::new("gone", 10);
    let film = desk.address("film");
    fs::remove_file(desk.path.join("film.mp4")).unwrap();
    let (head, _) = desk.ask(&get(&film, ""));
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    // The next look takes it out of the catalogue.
    desk.now = desk.now + crate::library::INTERVAL;
    desk.tick();
    assert_eq!(desk.server.libraries().of(Kind::Film).count(), 1);
    assert!(desk.is_quiet());
}

#[test]
fn a_client_that_leaves_closes_the_file_at_any_time() {
    for steps in 0..4 {
        let mut desk = Desk::new("leaves", 10 * PIECE);
        let film = desk.address("film");
        desk.room = 1000;
        let id = desk.begin(&get(&film, ""));
        for _ in 0..steps {
            desk.work_once();
        }
        desk.server.closed(desk.now, id);
        desk.turn();
        assert!(desk.is_quiet(), "after {steps} steps");
    }
}

#[test]
fn a_film_uses_a_place_of_its_user_and_looking_does_not() {
    let mut desk = Desk::new("places", 10 * PIECE);
    let (film, other) = (desk.address("film"), desk.address("other"));
    desk.room = 1000;
    let id = desk.begin(&get(&film, ""));
    desk.work();
    desk.room = usize::MAX;
    let (head, _) = desk.ask(&get(&other, ""));
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After"), "{head}");
    let (head, _) = desk.ask(&format!("HEAD {other} HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    // A seek is the same playback, and costs no provider anything.
    let (head, body) = desk.ask(&get(&film, "Range: bytes=-4\r\n"));
    assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
    assert_eq!(body, content(10 * PIECE)[10 * PIECE - 4..]);
    desk.server.closed(desk.now, id);
    desk.turn();
    assert!(desk.is_quiet());
    let (head, _) = desk.ask(&get(&other, ""));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

#[test]
fn other_ids_and_other_passwords_get_nothing() {
    let mut desk = Desk::new("others", 10);
    let film = desk.address("film");
    for (path, status) in [
        (film.replace("/a/", "/b/"), "403"),
        (film.replace("movie", "series"), "404"),
        (String::from("/movie/anna/a/2130706432.mp4"), "404"),
        (String::from("/movie/anna/a/../film.mp4"), "400"),
    ] {
        let (head, _) = desk.ask(&get(&path, ""));
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {head}");
    }
}

#[test]
fn what_is_here_is_listed_where_titles_of_providers_are() {
    let mut desk = Desk::new("listed", 10);
    fs::create_dir_all(desk.path.join("Show")).unwrap();
    fs::write(desk.path.join("Show/S01E02.mkv"), "x").unwrap();
    let series = Library { name: "s".into(), path: desk.path.clone(), kind: Shelf::Series, group: "Kids".into() };
    desk.server.shelves = crate::server::shelves::Shelves::new(library::Libraries::new(&[
        Library { name: "l".into(), path: desk.path.clone(), kind: Shelf::Films, group: "Films".into() },
        series,
    ]));
    desk.tick();
    let mut api = |action: &str| -> serde_json::Value {
        let (head, body) = desk.ask(&get(&format!("/player_api.php?username=anna&password=a&action={action}"), ""));
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        serde_json::from_slice(&chunks(&head, &body)).unwrap()
    };
    let films = api("get_vod_streams");
    let film = films.as_array().unwrap().iter().find(|film| film["name"] == "film").unwrap().clone();
    assert_eq!(film["container_extension"], "mp4");
    let categories = api("get_vod_categories");
    assert_eq!(
        (&categories[0]["category_name"], &categories[0]["category_id"]),
        (&"Films".into(), &film["category_id"])
    );
    assert_eq!(api(&format!("get_vod_info&vod_id={}", film["stream_id"]))["movie_data"]["name"], "film");
    assert_eq!(api("get_series_categories")[0]["category_name"], "Kids");
    let shows = api("get_series");
    let show = shows.as_array().unwrap().iter().find(|show| show["name"] == "Show").unwrap();
    let info = api(&format!("get_series_info&series_id={}", show["series_id"]));
    let episode = &info["episodes"]["1"][0];
    assert_eq!((&episode["episode_num"], &episode["container_extension"]), (&2.into(), &"mkv".into()));
    let path = format!("/series/anna/a/{}.mkv", episode["id"].as_str().unwrap());
    assert_eq!(desk.ask(&get(&path, "")).1, b"x");
    let (head, body) = desk.ask(&get("/get.php?username=anna&password=a&type=m3u_plus", ""));
    let list = String::from_utf8(chunks(&head, &body)).unwrap();
    assert!(list.contains("group-title=\"Films\",film\nhttp://a/movie/anna/a/"), "{list}");
    assert!(list.contains(&path), "{list}");
}

/// A body without its chunks, if it has any.
fn chunks(head: &str, body: &[u8]) -> Vec<u8> {
    if field(head, "Transfer-Encoding") != Some("chunked") {
        return body.to_vec();
    }
    let (mut out, mut rest) = (Vec::new(), body);
    loop {
        let line = rest.windows(2).position(|end| end == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return out;
        }
        out.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 4 + length..];
    }
}
