//! Any `Range` with any conditions: what is sent lies within what there is, and what is asked of somebody else is what was asked
//! for. Any `Content-Range` is read as it is written, or not at all. An input is lines: the values of `Range`, `If-Range`,
//! `If-None-Match`, `If-Match`, `If-Modified-Since` and `Content-Range`; the first byte of the first is the length of what there is.
#![no_main]

use holdfast_io::http::range::{Asked, ContentRange, Outcome, Representation, Several};
use holdfast_io::http::{Connection, Event, FieldValue, Limits};
use libfuzzer_sys::fuzz_target;

const FIELDS: [&str; 5] = ["Range", "If-Range", "If-None-Match", "If-Match", "If-Modified-Since"];

fuzz_target!(|input: &[u8]| {
    let Some((length, input)) = input.split_first() else { return };
    let lines: Vec<String> =
        input.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into()).collect();
    if let Some(range) = lines.get(5).and_then(|value| ContentRange::parse(value)) {
        let written = FieldValue::from(range);
        assert_eq!(ContentRange::parse(written.as_str()), Some(range));
    }
    let mut head = String::from("GET / HTTP/1.1\r\nHost: a\r\n");
    for (name, value) in FIELDS.iter().zip(&lines).filter(|(_, value)| !value.is_empty()) {
        head += &format!("{name}: {value}\r\n");
    }
    let mut connection = Connection::new(Limits::default());
    connection.receive(format!("{head}\r\n").as_bytes());
    let Some(Event::Request(request)) = connection.poll() else { return };
    let length = u64::from(*length);
    let representation = Representation { length, etag: Some("\"a\""), modified: Some(784_111_777), now: 784_111_800 };
    for several in [Several::Whole, Several::First] {
        let outcome = representation.outcome(&request, several);
        if let Outcome::Part { first, last } = outcome {
            assert!(first <= last && last < length, "{first} to {last} of {length}");
        }
        let Some(span) = Asked::of(&request).span(several) else { continue };
        let again = FieldValue::from(span);
        assert_eq!(Asked::parse(again.as_str()), Asked::One(span), "asked again it is another");
        if let (Some((first, last)), Outcome::Part { .. }, Several::Whole) = (span.within(length), outcome, several) {
            let range = ContentRange::Part { first, last, length: Some(length) };
            assert!(range.answers(span) && outcome == Outcome::Part { first, last });
        }
    }
});
