//! Anything a provider calls its catalogue: read without a panic, however it is cut, and told to users as lists and JSON that are
//! whole. The first byte of an input is the size of the cuts and whether it is a list (even) or what a panel answers to one request
//! after the other (odd), split at bytes 0xff.
#![no_main]

use std::time::Duration;

use holdfast_core::config::{Account, Config, Provider, User};
use holdfast_core::time::Time;
use holdfast_io::providers::{Credentials, Dialect, Guide, Location, Output, ProviderSettings, Reach};
use holdfast_io::server::{Action, ConnId, Server, Settings};
use holdfast_io::users::{Login, Password, Status};
use libfuzzer_sys::fuzz_target;

fn server(url: &str) -> Server {
    let provider = ProviderSettings {
        name: String::from("tv"),
        location: Location::parse(url).expect("this is an address"),
        dialect: Dialect::Auto,
        guide: Guide::None,
        refresh: Duration::from_secs(3600),
        user_agent: String::new(),
        output: Output::Auto,
        via: false,
        groups: Vec::new(),
        reach: Reach::Public,
        entries: 1000,
        bytes: 1 << 20,
        accounts: vec![Some(Credentials { username: String::from("name"), password: String::from("secret") })],
    };
    let login = Login {
        name: String::from("anna"),
        password: Password::parse("a").expect("this is a password"),
        expires: None,
        groups: Vec::new(),
        status: Status::Active,
    };
    let config = Config {
        providers: vec![Provider { accounts: vec![Account::default()], ..Provider::default() }],
        users: vec![User { name: String::from("anna"), ..User::default() }],
        ..Config::default()
    };
    let settings =
        Settings { providers: vec![provider], users: vec![login], epoch: 1_800_000_000, ..Settings::default() };
    Server::new(config, settings, Box::new(|| [7; 16]))
}

/// What the server wrote to its one client.
struct World<'i> {
    server: Server,
    parts: Vec<&'i [u8]>,
    cut: usize,
    written: Vec<u8>,
}

impl World<'_> {
    fn turn(&mut self) {
        let now = Time::ZERO;
        while let Some(action) = self.server.poll() {
            match action {
                Action::ReadFile(link, _) => {
                    let all = self.parts.concat();
                    all.chunks(self.cut).for_each(|piece| self.server.link_received(now, link, piece));
                    self.server.link_eof(now, link);
                }
                Action::Connect(link, _) => {
                    let part = if self.parts.is_empty() { &b"[]"[..] } else { self.parts.remove(0) };
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", part.len());
                    self.server.link_connected(now, link, ([192, 0, 2, 1], 80).into());
                    let _ =
                        self.server.link_transmit(now, link, &mut |pieces| Ok(pieces.iter().map(|p| p.len()).sum()));
                    self.server.link_received(now, link, head.as_bytes());
                    part.chunks(self.cut).for_each(|piece| self.server.link_received(now, link, piece));
                    self.server.link_eof(now, link);
                }
                Action::Write(id) => self.write(id),
                _ => {}
            }
        }
    }

    fn write(&mut self, id: ConnId) {
        let written = &mut self.written;
        let _ = self.server.transmit(Time::ZERO, id, &mut |pieces| {
            pieces.iter().for_each(|piece| written.extend_from_slice(piece));
            Ok(pieces.iter().map(|piece| piece.len()).sum())
        });
    }

    fn ask(&mut self, path: &str) -> Vec<u8> {
        let id = self.server.accepted(Time::ZERO, ([127, 0, 0, 1], 5000).into()).expect("there is room");
        let request = format!("GET {path} HTTP/1.0\r\nHost: a\r\n\r\n");
        self.server.received(Time::ZERO, id, request.as_bytes());
        self.turn();
        for _ in 0..100 {
            self.write(id);
            self.turn();
        }
        self.server.closed(Time::ZERO, id);
        self.turn();
        std::mem::take(&mut self.written)
    }
}

/// What users are told of it.
fn told(input: &[u8], list: bool, cut: usize) -> Vec<Vec<u8>> {
    let url = if list { "file:///tv.m3u" } else { "http://panel.example:8080" };
    let parts = if list { vec![input] } else { input.split(|byte| *byte == 0xff).collect() };
    let mut world = World { server: server(url), parts, cut, written: Vec::new() };
    world.server.tick(Time::ZERO);
    world.turn();
    let login = "username=anna&password=a";
    let mut answers = vec![world.ask(&format!("/get.php?{login}&type=m3u_plus"))];
    for action in ["get_live_categories", "get_live_streams", "get_vod_streams", "get_series", "get_vod_categories"] {
        answers.push(world.ask(&format!("/player_api.php?{login}&action={action}")));
    }
    answers
}

fuzz_target!(|input: &[u8]| {
    let Some((mode, input)) = input.split_first() else { return };
    let (list, cut) = (mode % 2 == 0, usize::from(mode / 2) + 1);
    let whole = told(input, list, input.len().max(1));
    assert_eq!(told(input, list, cut), whole, "cut at {cut} it is another");
    for answer in &whole {
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        let body = &answer[head + 4..];
        assert!(body.starts_with(b"#EXTM3U") || (body.starts_with(b"[") && body.ends_with(b"]")));
    }
});
