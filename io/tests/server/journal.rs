//! How the journal leaves the server.

use holdfast_core::config::{Config, Endpoint};
use holdfast_core::journal::{Head, replay};
use holdfast_io::server::{Piece, Recording, Settings};

use crate::desk::{Desk, header};

const GET: &str = "GET /api/v1/journal HTTP/1.1\r\nHost: h\r\n\r\n";

fn recording(size: usize, spool: bool) -> Recording {
    Recording::Ring { size, head: Box::new(Head { version: "9.9".into(), ..Head::default() }), spool }
}

fn desk(recording: Recording, tokens: &[&str]) -> Desk {
    let api_tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
    let config = Config { endpoints: vec![Endpoint::default()], ..Config::default() };
    Desk::open(config, Settings { recording, api_tokens, ..Settings::default() })
}

/// The content of a chunked answer.
fn content(answer: &[u8]) -> Vec<u8> {
    let body = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    let (mut rest, mut content) = (&answer[body..], Vec::new());
    loop {
        let line = rest.windows(2).position(|end| end == b"\r\n").expect("a chunk");
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).expect("a length");
        if length == 0 {
            return content;
        }
        content.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 2 + length + 2..];
    }
}

#[test]
fn an_operator_gets_all_of_it_and_it_repeats() {
    let mut desk = desk(recording(1 << 20, false), &[]);
    let (session, _) = desk.publish();
    desk.run_alive(&[session], 3_000);
    let id = desk.connect();
    desk.send(id, GET);
    let answer = desk.written.remove(&id).expect("an answer");
    let head = String::from_utf8_lossy(&answer[..answer.len().min(1000)]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for (name, value) in [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", "attachment; filename=\"holdfast.journal\""),
        ("Cache-Control", "no-store"),
    ] {
        assert_eq!(header(&head, name).as_deref(), Some(value));
    }
    let journal = content(&answer);
    assert_eq!(Head::read(&journal).map(|head| head.version), Ok("9.9".into()));
    let mut calls = 0;
    replay(&journal, |step| calls = step.call).expect("it repeats");
    assert!(calls >= 2, "an offer and its answer: {calls} calls");
    assert!(desk.recorded.is_empty(), "nobody wants it bit by bit");

    let looked = desk.ask(&GET.replace("GET", "HEAD"));
    assert!(looked.starts_with("HTTP/1.1 200 OK\r\n") && looked.ends_with("\r\n\r\n"), "{looked}");
    assert!(desk.ask(&GET.replace("GET", "POST")).starts_with("HTTP/1.1 405 "));
}

#[test]
fn nobody_else_gets_it() {
    let mut open = desk(recording(1 << 20, false), &[]);
    for field in ["Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy"] {
        let answer = open.ask(&GET.replace("Host: h", &format!("Host: h\r\n{field}")));
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("from this machine only"), "{answer}");
    }
    let page = open.ask(&GET.replace("Host: h", "Host: h\r\nOrigin: http://page.example"));
    assert!(page.starts_with("HTTP/1.1 403 ") && page.contains("holdfast dump"), "{page}");
    let mut closed = desk(recording(1 << 20, false), &["open-sesame"]);
    assert!(closed.ask(GET).starts_with("HTTP/1.1 401 "));
    assert!(closed.ask(&GET.replace("Host: h", "Host: h\r\nAuthorization: Bearer wrong")).starts_with("HTTP/1.1 401 "));
    let right =
        closed.ask(&GET.replace("GET", "HEAD").replace("Host: h", "Host: h\r\nAuthorization: Bearer open-sesame"));
    assert!(right.starts_with("HTTP/1.1 200 "), "{right}");
    let mut off = desk(Recording::Off, &[]);
    for method in ["GET", "HEAD"] {
        assert!(off.ask(&GET.replace("GET", method)).starts_with("HTTP/1.1 404 "));
    }
    assert!(off.ask(GET).contains("recorder-off"));
}

#[test]
fn one_at_a_time_is_sent_it() {
    let mut desk = desk(recording(1 << 20, false), &[]);
    let (session, _) = desk.publish();
    desk.run_alive(&[session], 1_000);
    desk.writable = false;
    let slow = desk.connect();
    desk.send(slow, GET);
    desk.writable = true;
    let refused = desk.ask(GET);
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("journal-busy"), "{refused}");
    desk.server.closed(desk.time(), slow);
    let id = desk.connect();
    desk.send(id, GET);
    assert!(desk.written.remove(&id).expect("an answer").starts_with(b"HTTP/1.1 200 "));
}

#[test]
fn what_is_handed_out_bit_by_bit_is_a_journal_from_each_segment_on() {
    let mut desk = desk(recording(4_000, true), &[]);
    let (session, _) = desk.publish();
    desk.run_alive(&[session], 400_000);
    let id = desk.connect();
    desk.send(id, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut pieces = std::mem::take(&mut desk.recorded);
    assert!(pieces.len() > 20, "{} pieces", pieces.len());
    pieces.extend(desk.server.unrecorded());
    let mut starts = 0;
    for (place, piece) in pieces.iter().enumerate() {
        let Piece::Segment { head, .. } = piece else { continue };
        starts += 1;
        let (mut journal, mut open) = (head.to_vec(), Vec::new());
        for piece in &pieces[place..] {
            match piece {
                Piece::Segment { gap: true, .. } if journal.len() > head.len() => break,
                Piece::Segment { .. } => {}
                Piece::Frame(bytes) => {
                    open.clear();
                    journal.extend_from_slice(bytes);
                }
                Piece::Open(bytes) => open = bytes.to_vec(),
            }
        }
        journal.extend_from_slice(&open);
        let mut calls = 0;
        replay(&journal, |step| calls = step.call).unwrap_or_else(|fault| panic!("from piece {place}: {fault}"));
        assert!(calls > 0);
    }
    assert!(starts > 1, "the ring is small: {starts} segments");
}
