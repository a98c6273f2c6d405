use super::*;
use crate::http::Limits;

const NOW: u64 = 784_111_800;
/// Sun, 06 Nov 1994 08:49:37 GMT
const MODIFIED: u64 = 784_111_777;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn request(method: &str, fields: &[(&str, &str)]) -> Request {
    let mut head = format!("{method} / HTTP/1.1\r\nHost: a\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    Request::parse(format!("{head}\r\n").as_bytes(), &Limits::default()).unwrap()
}

fn file(length: u64) -> Representation<'static> {
    Representation { length, etag: Some("\"a,b\""), modified: Some(MODIFIED), now: NOW }
}

fn outcome(fields: &[(&str, &str)]) -> Outcome {
    file(1000).outcome(&request("GET", fields), Several::Whole)
}

fn part(first: u64, last: u64) -> Outcome {
    Outcome::Part { first, last }
}

#[test]
fn ranges_of_a_thousand_bytes() {
    for (range, expected) in [
        ("bytes=0-", part(0, 999)),
        ("bytes=0-0", part(0, 0)),
        ("bytes=5-10", part(5, 10)),
        ("BYTES=5-10", part(5, 10)),
        ("bytes=5-5", part(5, 5)),
        ("bytes=005-010", part(5, 10)),
        ("bytes=, 5-10 ,,\t", part(5, 10)),
        ("bytes=999-", part(999, 999)),
        ("bytes=990-2000", part(990, 999)),
        ("bytes=0-99999999999999999999999", part(0, 999)),
        ("bytes=-1", part(999, 999)),
        ("bytes=-1000", part(0, 999)),
        ("bytes=-1001", part(0, 999)),
        ("bytes=-99999999999999999999999", part(0, 999)),
        // What is not there.
        ("bytes=-0", Outcome::Unsatisfiable),
        ("bytes=1000-", Outcome::Unsatisfiable),
        ("bytes=1000-1001", Outcome::Unsatisfiable),
        ("bytes=99999999999999999999999-", Outcome::Unsatisfiable),
        // What is no range.
        ("bytes=5-2", Outcome::Full),
        ("bytes=-", Outcome::Full),
        ("bytes=", Outcome::Full),
        ("bytes=,", Outcome::Full),
        ("bytes", Outcome::Full),
        ("", Outcome::Full),
        ("bytes =0-1", Outcome::Full),
        ("bytes=0 - 1", Outcome::Full),
        ("bytes=+1-2", Outcome::Full),
        ("bytes=0x1-2", Outcome::Full),
        ("bytes=1-2-3", Outcome::Full),
        ("bytes=--1", Outcome::Full),
        ("bytes=a-", Outcome::Full),
        ("bytes=0-1;2-3", Outcome::Full),
        ("seconds=0-1", Outcome::Full),
        // One wrong part makes the whole field wrong.
        ("bytes=0-1,5-2", Outcome::Full),
        ("bytes=0-1,x", Outcome::Full),
    ] {
        assert_eq!(outcome(&[("Range", range)]), expected, "{range:?}");
    }
}

#[test]
fn a_range_is_for_get_alone_and_there_is_one() {
    for method in ["HEAD", "POST", "PUT", "DELETE"] {
        let request = request(method, &[("Range", "bytes=0-1")]);
        assert_eq!(file(10).outcome(&request, Several::Whole), Outcome::Full, "{method}");
        assert_eq!(Asked::of(&request), Asked::Whole, "{method}");
    }
    assert_eq!(outcome(&[("Range", "bytes=0-1"), ("Range", "bytes=0-1")]), Outcome::Full);
}

#[test]
fn nothing_has_no_parts() {
    let empty = |range| file(0).outcome(&request("GET", &[("Range", range)]), Several::First);
    assert_eq!(empty("bytes=0-"), Outcome::Unsatisfiable);
    assert_eq!(empty("bytes=-0"), Outcome::Unsatisfiable);
    assert_eq!(empty("bytes=-5"), Outcome::Full);
}

#[test]
fn several_parts_are_all_of_it_or_the_first() {
    let several = |range: &str, several| file(1000).outcome(&request("GET", &[("Range", range)]), several);
    for (range, whole, first) in [
        ("bytes=0-1,5-6", Outcome::Full, part(0, 1)),
        ("bytes=2000-,5-6", Outcome::Full, part(5, 6)),
        ("bytes=2000-,-0", Outcome::Unsatisfiable, Outcome::Unsatisfiable),
        ("bytes=0-,1-,2-", Outcome::Full, part(0, 999)),
        ("bytes=0-,1-,2-,3-", Outcome::Unsatisfiable, Outcome::Unsatisfiable),
        ("bytes=-1,-2,-3,-4", Outcome::Unsatisfiable, Outcome::Unsatisfiable),
    ] {
        assert_eq!(several(range, Several::Whole), whole, "{range}");
        assert_eq!(several(range, Several::First), first, "{range}");
    }
    let many = |count: u64| (0..count).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect::<Vec<_>>().join(",");
    assert_eq!(several(&format!("bytes={}", many(16)), Several::Whole), Outcome::Full);
    assert_eq!(several(&format!("bytes={}", many(17)), Several::Whole), Outcome::Unsatisfiable);
}

#[test]
fn what_has_an_end_is_a_part_and_everything_else_goes_to_the_end() {
    for (range, want, first) in [
        ("", Want::Rest, Want::Rest),
        ("bytes=0-", Want::Rest, Want::Rest),
        ("bytes=-5", Want::Rest, Want::Rest),
        ("bytes=0-5", Want::Part, Want::Part),
        ("bytes=0-5,7-8", Want::Rest, Want::Part),
        ("bytes=9-5", Want::Rest, Want::Rest),
    ] {
        let asked = Asked::parse(range);
        assert_eq!((asked.want(Several::Whole), asked.want(Several::First)), (want, first), "{range}");
    }
    let asked = |range| Asked::parse(range).span(Several::First).map(|span| FieldValue::from(span).as_str().to_owned());
    for range in ["bytes=0-", "bytes=7-9", "bytes=-4"] {
        assert_eq!(asked(range).as_deref(), Some(range));
    }
    assert_eq!(asked("Bytes= 0-1, 5-").as_deref(), Some("bytes=0-1"));
}

#[test]
fn a_range_of_another_version_is_none() {
    for (condition, expected) in [
        ("\"a,b\"", part(0, 1)),
        (DATE, part(0, 1)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", part(0, 1)),
        ("\"b\"", Outcome::Full),
        ("W/\"a,b\"", Outcome::Full),
        ("\"a,b\", \"c\"", Outcome::Full),
        ("\"a,b\" ,", Outcome::Full),
        ("\"a,b", Outcome::Full),
        ("a,b", Outcome::Full),
        ("*", Outcome::Full),
        (BEFORE, Outcome::Full),
        // Exactly that one: it may have been put back.
        (AFTER, Outcome::Full),
    ] {
        assert_eq!(outcome(&[("Range", "bytes=0-1"), ("If-Range", condition)]), expected, "{condition}");
    }
    assert_eq!(outcome(&[("If-Range", "\"a,b\"")]), Outcome::Full);
    let get = |condition| request("GET", &[("Range", "bytes=0-1"), ("If-Range", condition)]);
    let weak = Representation { etag: Some("W/\"a\""), ..file(10) };
    assert_eq!(weak.outcome(&get("W/\"a\""), Several::Whole), Outcome::Full);
    // It may be modified once more in the same second.
    let fresh = Representation { now: MODIFIED, ..file(10) };
    assert_eq!(fresh.outcome(&get(DATE), Several::Whole), Outcome::Full);
    let unknown = Representation { etag: None, modified: None, ..file(10) };
    assert_eq!(unknown.outcome(&get(DATE), Several::Whole), Outcome::Full);
    assert_eq!(unknown.outcome(&get("\"a\""), Several::Whole), Outcome::Full);
}

#[test]
fn conditions_in_their_order() {
    use Outcome::{Full, NotModified, PreconditionFailed, Unsatisfiable};
    let cases: &[(&[(&str, &str)], Outcome)] = &[
        (&[("If-None-Match", "\"a,b\"")], NotModified),
        (&[("If-None-Match", "W/\"a,b\"")], NotModified),
        (&[("If-None-Match", "\"x\" , \"a,b\"")], NotModified),
        (&[("If-None-Match", "*")], NotModified),
        (&[("If-None-Match", "\"x\"")], Full),
        (&[("If-None-Match", "a,b")], Full),
        (&[("If-Modified-Since", DATE)], NotModified),
        (&[("If-Modified-Since", AFTER)], NotModified),
        (&[("If-Modified-Since", BEFORE)], Full),
        (&[("If-Modified-Since", "yesterday")], Full),
        (&[("If-Modified-Since", DATE), ("If-Modified-Since", DATE)], Full),
        (&[("If-None-Match", "\"x\""), ("If-Modified-Since", AFTER)], Full),
        (&[("If-Match", "\"a,b\"")], Full),
        (&[("If-Match", "*")], Full),
        (&[("If-Match", "\"x\""), ("If-Match", "\"a,b\"")], Full),
        (&[("If-Match", "W/\"a,b\"")], PreconditionFailed),
        (&[("If-Match", "\"x\"")], PreconditionFailed),
        (&[("If-Match", "\"a b\"")], PreconditionFailed),
        (&[("If-Unmodified-Since", DATE)], Full),
        (&[("If-Unmodified-Since", BEFORE)], PreconditionFailed),
        (&[("If-Unmodified-Since", "yesterday")], Full),
        (&[("If-Match", "*"), ("If-Unmodified-Since", BEFORE)], Full),
        // The first that fails decides.
        (&[("If-Match", "\"x\""), ("If-None-Match", "\"a,b\"")], PreconditionFailed),
        (&[("If-None-Match", "\"a,b\""), ("Range", "bytes=2000-")], NotModified),
        (&[("If-Range", "\"x\""), ("Range", "bytes=2000-")], Full),
        (&[("If-Match", "*"), ("Range", "bytes=2000-")], Unsatisfiable),
        (&[("If-Unmodified-Since", DATE), ("Range", "bytes=1-")], part(1, 999)),
    ];
    for (fields, expected) in cases {
        assert_eq!(outcome(fields), *expected, "{fields:?}");
    }
    let with = |method, fields: &[(&str, &str)]| file(9).outcome(&request(method, fields), Several::Whole);
    assert_eq!(with("HEAD", &[("If-None-Match", "*")]), NotModified);
    assert_eq!(with("PUT", &[("If-None-Match", "*")]), PreconditionFailed);
    assert_eq!(with("PUT", &[("If-Modified-Since", DATE)]), Full);
    let unknown = Representation { etag: None, modified: None, ..file(9) };
    assert_eq!(unknown.outcome(&request("GET", &[("If-Match", "\"a\"")]), Several::Whole), PreconditionFailed);
    assert_eq!(unknown.outcome(&request("GET", &[("If-Modified-Since", DATE)]), Several::Whole), Full);
}

#[test]
fn content_ranges_are_read_as_they_are_written() {
    for value in ["bytes 0-0/1", "bytes 5-9/10", "bytes 5-9/*", "bytes */0", "bytes */10"] {
        let range = ContentRange::parse(value).unwrap();
        assert_eq!(FieldValue::from(range).as_str(), value);
    }
    for wrong in [
        "",
        "bytes",
        "bytes 0-1",
        "bytes=0-1/2",
        "bytes 0-1/",
        "bytes 2-1/5",
        "bytes 0-5/5",
        "bytes -5/5",
        "bytes 0-/5",
        "bytes +0-1/5",
        "bytes */*",
        "seconds 0-1/5",
        "bytes  0-1/5",
        "bytes 0-99999999999999999999999/*",
    ] {
        assert_eq!(ContentRange::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn an_answer_begins_where_it_was_to_begin() {
    for (value, range, right) in [
        ("bytes 0-9/10", "bytes=0-", true),
        ("bytes 0-4/10", "bytes=0-", true),
        ("bytes 1-9/10", "bytes=0-", false),
        ("bytes 5-9/*", "bytes=5-", true),
        ("bytes 5-9/10", "bytes=5-20", true),
        ("bytes 5-9/10", "bytes=5-8", false),
        ("bytes 5-9/10", "bytes=4-9", false),
        ("bytes 7-9/10", "bytes=-3", true),
        ("bytes 6-9/10", "bytes=-3", false),
        ("bytes 0-1/2", "bytes=-3", true),
        ("bytes 7-9/*", "bytes=-3", true),
        ("bytes 6-9/*", "bytes=-3", false),
        ("bytes */10", "bytes=20-", false),
    ] {
        let span = Asked::parse(range).span(Several::Whole).unwrap();
        assert_eq!(ContentRange::parse(value).unwrap().answers(span), right, "{value} for {range}");
    }
}

proptest::proptest! {
    #[test]
    fn any_field_is_answered_within_the_length(
        set in "[-0-9 ,a]{0,24}",
        length in 0u64..40,
        condition in "[ -~]{0,12}",
    ) {
        let request = request("GET", &[("Range", &format!("bytes={set}")), ("If-Range", &condition)]);
        for several in [Several::Whole, Several::First] {
            for request in [&request, &self::request("GET", &[("Range", &format!("bytes={set}"))])] {
                if let Outcome::Part { first, last } = file(length).outcome(request, several) {
                    proptest::prop_assert!(first <= last && last < length);
                }
            }
        }
    }
}
