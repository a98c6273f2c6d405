//! What viewers and operators are told of origins that give nothing: the cause, in the answer as in the log, once.

use holdfast_core::config::User;
use holdfast_core::input::{Loss, Note, RefuseReason};
use holdfast_io::media::{MediaCommand, MediaEvent};
use holdfast_io::providers::{Guide, ProviderSettings};
use holdfast_io::server::{ConnId, Settings};

use crate::channels::{Encoder, OK, desk as channel};
use crate::desk::{Desk, header};
use crate::providers::{desk_of, provider};

/// A provider with so many accounts and two streams, whose addresses have the segments that these are.
fn desk(accounts: usize, (user, password): (&str, &str)) -> Desk {
    let own = ProviderSettings {
        guide: Guide::None,
        ..provider("http://p.example/x.m3u", &vec![(user, password); accounts])
    };
    let mut desk = desk_of(vec![own], vec![User { name: "anna".into(), ..User::default() }], Settings::default());
    let entry = |name, id| format!("#EXTINF:-1,{name}\nhttp://l.example/live/{user}/{password}/{id}.ts\n");
    desk.serves(format!("#EXTM3U\n{}{}", entry("S", 1), entry("T", 2)));
    desk
}

fn plays(desk: &mut Desk, name: &str) -> ConnId {
    let (id, conn) = (desk.id_of(name), desk.connect());
    desk.send(conn, format!("GET /live/anna/x/{id}.ts HTTP/1.1\r\nHost: h\r\n\r\n"));
    conn
}

/// Every connection gets this answer, for so long; how many there were.
fn answers(desk: &mut Desk, answer: &str, ms: u64) -> usize {
    let (until, mut asked) = (desk.now + ms, 0);
    while desk.now < until {
        for (link, _) in desk.links.clone() {
            desk.link_opens(link);
            desk.link_says(link, answer);
            asked += 1;
        }
        desk.run(desk.now + 50);
    }
    asked
}

fn refusal(status: u16) -> String {
    format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n")
}

fn faults(desk: &Desk) -> Vec<&str> {
    let notes = desk.notes.iter();
    notes.filter_map(|note| if let Note::SourceFault { why, .. } = note { Some(why.as_str()) } else { None }).collect()
}

#[test]
fn a_limit_that_a_provider_says_it_has_is_told_with_what_it_answered() {
    for status in [429, 456, 458, 503, 509] {
        let mut desk = desk(1, ("a", "b"));
        let conn = plays(&mut desk, "S");
        answers(&mut desk, &refusal(status), 200);
        let told = desk.read(conn);
        assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("provider-limit"), "{told}");
        assert!(told.contains(&format!("the origin answers {status}: it bears no more connections")), "{told}");
        assert!(!told.contains("are in use"), "nothing plays: {told}");
        let refused = desk.notes.iter().find(|note| matches!(note, Note::PlaybackRefused { .. })).expect("a line");
        let why = desk.server.about(refused).why.expect("why");
        assert!(why.contains(&format!("the origin answers {status}")), "{why}");
    }
}

#[test]
fn what_a_silent_origin_does_is_in_the_answer() {
    for (says, words) in [
        (None, (RefuseReason::NoSource, "of the origin that was asked last, it did not agree to send")),
        (Some(OK), (RefuseReason::StartTimeout, "the origin is connected and has sent no media so far")),
    ] {
        let mut desk = channel(&["http://origin.example/a.ts"]);
        let viewer = desk.watch();
        let (link, _) = desk.link();
        desk.link_opens(link);
        if let Some(says) = says {
            desk.link_says(link, says);
        }
        let mut told = String::new();
        for _ in 0..1_000 {
            told = desk.read(viewer);
            if !told.is_empty() {
                break;
            }
            desk.run(desk.now + 50);
        }
        let (reason, words) = words;
        assert!(told.starts_with("HTTP/1.1 50") && told.contains(reason.as_str()) && told.contains(words), "{told}");
        assert!(header(&told, "Retry-After").is_some());
    }
}

#[test]
fn an_origin_that_says_the_same_again_and_again_is_one_line() {
    let mut desk = desk(1, ("a", "b"));
    let conn = plays(&mut desk, "S");
    let (link, _) = desk.link();
    desk.link_opens(link);
    desk.link_says(link, OK);
    desk.link_says(link, Encoder::new().encode(12));
    desk.run(desk.now + 200);
    assert!(desk.read(conn).starts_with("HTTP/1.1 200 "));
    // Its provider refuses the next one: that may be for the connection that it still counts, so it is asked again for a while.
    desk.server.closed(desk.time(), conn);
    desk.turn();
    desk.notes.clear();
    let conn = plays(&mut desk, "T");
    assert_eq!(answers(&mut desk, &refusal(403), 3_000), 5);
    assert!(desk.read(conn).contains("the origin answers 403"));
    assert_eq!((faults(&desk), desk.losses()), (vec!["the origin answers 403"], vec![Loss::Forbidden]));
    // What changes is told.
    desk.run(desk.now + 60_000);
    plays(&mut desk, "T");
    assert_eq!(answers(&mut desk, &refusal(500), 3_000), 1);
    assert_eq!(faults(&desk), ["the origin answers 403", "the origin answers 500"]);
    assert_eq!(desk.losses(), [Loss::Forbidden, Loss::Refused]);
}

#[test]
fn whoever_comes_back_for_what_is_refused_is_told_why_and_the_operator_who_that_was() {
    let mut desk = desk(1, ("a", "b"));
    for _ in 0..3 {
        let conn = plays(&mut desk, "S");
        answers(&mut desk, &refusal(403), 200);
        assert!(desk.read(conn).contains("the origin answers 403: it refuses"));
        desk.run(desk.now + 60_000);
        assert_eq!(desk.server.edge().pull().tuned_channels().count(), 0, "its channel is another one each time");
    }
    assert_eq!((faults(&desk), desk.losses()), (vec!["the origin answers 403"], vec![Loss::Forbidden]));
    let refused = desk.notes.iter().filter(|note| matches!(note, Note::PlaybackRefused { .. }));
    assert_eq!(refused.count(), 3);
}

#[test]
fn our_own_words_are_no_secret_whatever_the_address_holds() {
    let mut desk = desk(1, ("403", "origin"));
    let conn = plays(&mut desk, "S");
    answers(&mut desk, &refusal(403), 200);
    assert_eq!(faults(&desk), ["the origin answers 403"]);
    let told = desk.read(conn);
    assert!(told.contains("the origin answers 403: it refuses"), "{told}");
    // Of a channel of the configuration too, and over whatever it comes.
    let mut desk = channel(&["http://origin.example/answers/404/the/x.ts"]);
    desk.watch();
    answers(&mut desk, &refusal(404), 200);
    assert_eq!(faults(&desk), ["the origin answers 404"]);
    let mut desk = channel(&["rtsp://camera.example/origin/stream/1"]);
    desk.watch();
    let Some(MediaCommand::Open { source, .. }) = desk.commands.pop() else { panic!("{:?}", desk.commands) };
    let (loss, why) = (Loss::Ended, String::from("the origin ended the stream"));
    desk.server.media(desk.time(), MediaEvent::SourceLost { source, loss, why });
    desk.turn();
    assert_eq!(faults(&desk), ["the origin ended the stream"]);
}

#[test]
fn what_an_origin_repeats_of_its_address_is_not_told() {
    // What it says of the coding of its content are its own words.
    let mut desk = desk(1, ("geheim", "s3cr3t"));
    plays(&mut desk, "S");
    answers(&mut desk, "HTTP/1.1 200 OK\r\nContent-Encoding: s3cr3t-geheim\r\n\r\n", 200);
    assert_eq!(faults(&desk), ["the content is encoded with …-…, though it was asked for as it is"]);
}
