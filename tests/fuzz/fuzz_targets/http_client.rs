//! Anything an origin sends: read without a panic to one end, and how the bytes are cut changes nothing. Where it
//! redirects to can be asked for. The first byte of an input is the size of the cuts.
#![no_main]

use holdfast_io::http::client::{Event, Exchange, Get};
use libfuzzer_sys::fuzz_target;

/// What comes of these bytes, which come `cut` at a time; content in one piece. Whether the connection could be used again
/// is told before it ends.
fn events(get: &Get, input: &[u8], cut: usize) -> (Vec<Event>, bool) {
    let mut exchange = Exchange::new(get);
    exchange.wrote(usize::MAX);
    let (mut events, mut reusable) = (Vec::new(), false);
    for piece in input.chunks(cut).map(Some).chain([None]) {
        match piece {
            Some(piece) => exchange.receive(piece),
            None => {
                reusable = exchange.is_reusable();
                exchange.eof();
            }
        }
        while let Some(event) = exchange.poll() {
            assert!(!matches!(events.last(), Some(Event::End | Event::Fault(_))), "an event after the last");
            match (&event, events.last_mut()) {
                (Event::Body(data), _) if data.is_empty() => panic!("an event for nothing"),
                (Event::Body(data), Some(Event::Body(before))) => *before = [&before[..], data].concat().into(),
                _ => events.push(event),
            }
        }
    }
    assert!(matches!(events.last(), Some(Event::End | Event::Fault(_))), "an answer without an end");
    (events, reusable)
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, bytes)) = input.split_first() else { return };
    let url = "http://user:password@origin.example/live/1.ts".parse().expect("this is a URL");
    let get = Get::new(url).expect("this can be asked for").keep_alive();
    let whole = events(&get, bytes, bytes.len().max(1));
    assert_eq!(events(&get, bytes, usize::from(*cut).max(1)), whole);
    if let Some(Event::Head(head)) = whole.0.first()
        && let Ok(Some(next)) = get.follow(head)
    {
        let request = Exchange::new(&next);
        let lines = request.output().split(|byte| *byte == b'\n').count();
        assert!(lines <= 9, "a Location added a line to the request");
    }
});
