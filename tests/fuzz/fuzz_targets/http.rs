//! Anything a client sends: read without a panic, each request answered once, and how the bytes are cut changes nothing.
//! The first byte of an input is the size of the cuts.
#![no_main]

use bytes::Bytes;
use holdfast_io::http::{Body, Connection, Date, Event, Limits, Response, Status};
use libfuzzer_sys::fuzz_target;

/// The longest content that the server below takes.
const CONTENT: u64 = 64;

/// What a server that answers each request with its path and content sends for these bytes, which come `cut` at a time.
fn sent(input: &[u8], cut: usize) -> Vec<u8> {
    let date = Date::from_unix(0);
    let mut connection = Connection::new(Limits { head: 512, request_line: 256, headers: 16, buffered: 1024 });
    let (mut sent, mut content) = (Vec::new(), Vec::new());
    for piece in input.chunks(cut).map(Some).chain([None]) {
        match piece {
            Some(piece) => connection.receive(piece),
            None => connection.eof(),
        }
        loop {
            while let Some(event) = connection.poll() {
                match event {
                    Event::Request(request) => {
                        content = request.path.into_bytes();
                        connection.accept_body(CONTENT);
                    }
                    Event::Body(data) => {
                        assert!(!data.is_empty());
                        content.extend_from_slice(&data);
                    }
                    Event::BodyEnd => {
                        let body = Body::Full(Bytes::copy_from_slice(&content));
                        connection.respond(Response::new(Status::OK).body(body), &date);
                    }
                    Event::Fault(fault) => connection.respond((&fault).into(), &date),
                }
            }
            let output = connection.output();
            if output.is_empty() {
                break;
            }
            let count = output.len().min(cut);
            sent.extend_from_slice(&output[..count]);
            connection.wrote(count);
        }
    }
    assert!(connection.is_finished(), "nothing is waited for after the end");
    sent
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, bytes)) = input.split_first() else { return };
    let whole = sent(bytes, bytes.len().max(1));
    assert_eq!(sent(bytes, usize::from(*cut).max(1)), whole);
});
