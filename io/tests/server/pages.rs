//! What comes of a film when its provider gives something else: a page in its place, or itself in a circle.

use holdfast_core::config::{Account, Config, Provider, User};
use holdfast_core::input::{Failure, Note};
use holdfast_io::providers::{Guide, ProviderSettings};
use holdfast_io::server::Settings;
use holdfast_io::users::{Login, Password, Status};

use crate::desk::{Desk, header};
use crate::providers::provider;
use crate::titles::{body, status_of};

/// Two providers that have the same film, the first with two accounts; Anna may play it.
fn desk() -> (Desk, String) {
    let of = |name: &str, accounts: &[(&str, &str)]| ProviderSettings {
        name: name.to_owned(),
        guide: Guide::None,
        ..provider(&format!("http://{name}.example/x.m3u"), accounts)
    };
    let providers = vec![of("one", &[("a", "b"), ("c", "d")]), of("two", &[("e", "f")])];
    let core = |own: &ProviderSettings| Provider {
        name: own.name.clone(),
        accounts: vec![Account::default(); own.accounts.len()],
        ..Provider::default()
    };
    let anna = User { name: "anna".into(), ..User::default() };
    let login = Login {
        name: anna.name.clone(),
        password: Password::parse("x").unwrap(),
        expires: None,
        groups: Vec::new(),
        status: Status::Active,
    };
    let config = Config { users: vec![anna], providers: providers.iter().map(core).collect(), ..Config::default() };
    let settings = Settings { users: vec![login], providers, epoch: 1_795_982_400, instance: 7, ..Settings::default() };
    let mut desk = Desk::open(config, settings);
    desk.run(0);
    for (user, password) in [("a", "b"), ("e", "f")] {
        desk.serves(format!(
            "#EXTM3U\n#EXTINF:-1,Film\nhttp://l.example/movie/{user}/{password}/3.mp4\n\
             #EXTINF:-1,List\nhttp://l.example/live/{user}/{password}/2.m3u8\n"
        ));
    }
    let films = desk.api("anna", "get_vod_streams");
    let path = format!("/movie/anna/x/{}.mp4", films[0]["stream_id"]);
    (desk, path)
}

/// Answers whoever is asked next; with which account that was.
fn answers(desk: &mut Desk, answer: &str) -> String {
    let (link, asked) = desk.asked_of_provider();
    desk.link_says(link, answer);
    asked.split(' ').nth(1).and_then(|path| path.split('/').nth(2)).unwrap_or_default().to_owned()
}

fn failures(desk: &Desk) -> Vec<Failure> {
    let notes = desk.notes.iter();
    notes
        .filter_map(|note| if let Note::AccountFailed { failure, .. } = note { Some(*failure) } else { None })
        .collect()
}

const FILM: &str = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 10\r\n\r\n0123456789";
const LOOPS: &str = "HTTP/1.1 508 Loop Detected\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_page_in_place_of_a_film_is_none_and_another_account_is_asked() {
    for page in [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\r\n <!DOCTYPE html>wrong login",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<b>expired</b>",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"user_info\":{\"auth\":0}}",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n",
    ] {
        for fields in ["", "Range: bytes=0-\r\n", "Range: bytes=5-\r\n"] {
            let (mut desk, path) = desk();
            let client = desk.wants(&path, fields);
            assert_eq!(answers(&mut desk, page), "a", "{page}");
            assert_eq!(desk.read(client), "", "nothing of it: {page}");
            answers(&mut desk, FILM);
            let answer = desk.read(client);
            assert!(matches!(status_of(&answer), 200 | 206) && "0123456789".ends_with(body(&answer)), "{answer}");
            assert_eq!(failures(&desk), [Failure::Page]);
        }
    }
}

#[test]
fn where_all_that_comes_is_pages_that_is_what_is_told() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>";
    let (mut desk, path) = desk();
    let client = desk.wants(&path, "");
    for _ in 0..3 {
        answers(&mut desk, page);
    }
    let answer = desk.read(client);
    assert!(status_of(&answer) == 502 && answer.contains("a page where media was to come"), "{answer}");
    assert_eq!(failures(&desk), [Failure::Page; 3]);
    // Whoever only looks gets no head of a page, either.
    desk.run(desk.now + 5_000);
    let client = desk.connect();
    desk.send(client, format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    answers(&mut desk, page);
    assert_eq!(desk.read(client), "");
    answers(&mut desk, FILM);
    let head = desk.read(client);
    assert_eq!((status_of(&head), header(&head, "Content-Length").as_deref()), (200, Some("10")), "{head}");
}

#[test]
fn media_that_is_called_a_page_is_media_all_the_same() {
    // As a script does that says nothing of its type.
    let (mut desk, path) = desk();
    let client = desk.wants(&path, "");
    answers(
        &mut desk,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\nContent-Length: 8\r\n\r\n\0\0\0\u{18}ftyp",
    );
    let answer = desk.read(client);
    assert_eq!((status_of(&answer), body(&answer)), (200, "\0\0\0\u{18}ftyp"));
    assert_eq!(header(&answer, "Content-Type").as_deref(), Some("application/octet-stream"), "no browser shows it");
    assert_eq!(failures(&desk), []);
    let head = desk.ask(&format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!((status_of(&head), header(&head, "Content-Length").as_deref()), (200, Some("8")));
}

#[test]
fn a_page_in_place_of_a_segment_is_none_and_what_no_media_is_may_be_one() {
    let (mut desk, _) = desk();
    let streams = desk.api("anna", "get_live_streams");
    let client = desk.wants(&format!("/live/anna/x/{}.m3u8", streams[0]["stream_id"]), "");
    answers(
        &mut desk,
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apple.mpegurl\r\nConnection: close\r\nContent-Length: 113\r\n\r\n\
         #EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n",
    );
    let list = desk.read(client);
    let sealed = |line: &str| Some(format!("/hls/{}", line.split("hls/").nth(1)?.trim_end_matches('"')));
    let paths: Vec<String> = body(&list).lines().filter_map(sealed).collect();
    assert_eq!(paths.len(), 3, "{list}");
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    let client = desk.wants(&paths[1], "");
    answers(&mut desk, page);
    let answer = desk.read(client);
    assert!(status_of(&answer) == 502 && answer.contains("a page where media was to come"), "{answer}");
    // What is not media begins as it likes.
    desk.run(desk.now + 5_000);
    let client = desk.wants(&paths[0], "");
    answers(&mut desk, page);
    assert_eq!(body(&desk.read(client)), "<html>");
}

#[test]
fn a_circle_is_one_with_every_account_of_its_provider() {
    for method in ["GET", "HEAD"] {
        let (mut desk, path) = desk();
        let client = desk.connect();
        desk.send(client, format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(answers(&mut desk, LOOPS), "a", "{method}");
        assert_eq!(answers(&mut desk, FILM), "e", "{method}: another provider is asked, no other account of this one");
        assert_eq!(status_of(&desk.read(client)), 200);
    }
}
