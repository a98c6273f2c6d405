use std::io::Write;

use super::*;
use proptest::prelude::*;

/// 2026-11-29T20:00:00Z
const NOW: u64 = 1_795_982_400;

fn read_by(guide: &[u8], step: usize, limit: u64) -> (Result<Programmes, &'static str>, u64) {
    let mut wanted = GuideIds::default();
    for guide in ["a.example", "b & c"] {
        wanted.insert(guide);
    }
    let mut reader = Reader::new(wanted, NOW, limit, secrets());
    for piece in guide.chunks(step) {
        if let Err(fault) = reader.push(piece) {
            return (Err(fault), 0);
        }
    }
    let skipped = reader.programmes.skipped;
    let (programmes, done) = reader.finish();
    (done.map(|()| programmes), skipped)
}

fn secrets() -> Secrets {
    Secrets::of(&crate::providers::tests::settings("http://p.example/", &[("joe", "s3cret")]))
}

#[test]
fn pictures_and_addresses_that_tell_the_account_are_left_out() {
    let programme = |inside: &str| {
        format!(
            "<programme start=\"20261129210000 +0000\" stop=\"20261129220000 +0000\" channel=\"a.example\">{inside}</programme>"
        )
    };
    for (inside, left) in [
        ("<title>T</title><icon src=\"http://p.example/joe/s3cret/1.png\"/>", "<title>T</title>"),
        ("<icon width=\"1\" src='http://p.example/x?p=s3cret&amp;u=1' /><title>T</title>", "<title>T</title>"),
        ("<icon src=\"http://p.example/joe/s3cret/1.png\"></icon><title>T</title>", "<title>T</title>"),
        (
            "<title>T</title><url>http://p.example/joe/1</url><url>http://i.example/1</url>",
            "<title>T</title><url>http://i.example/1</url>",
        ),
        (
            "<icon src=\"http://p.example/joe/1\"/><icon src=\"http://i.example/1.png\"/>",
            "<icon src=\"http://i.example/1.png\"/>",
        ),
        ("<title>joe s3cret</title>", "<title>joe s3cret</title>"),
    ] {
        let guide = format!("<tv>{}</tv>", programme(inside));
        let (read, skipped) = read_by(guide.as_bytes(), 7, 1 << 20);
        let read = read.unwrap();
        let told: Vec<&str> = read.of("a.example").map(|(_, element)| element).collect();
        assert_eq!((told, skipped), (vec![programme(left).as_str()], 0), "{inside}");
    }
}

const GUIDE: &str = "<?xml version=\"1.0\"?><!DOCTYPE tv SYSTEM \"xmltv.dtd\">\n<tv>\n\
    <channel id=\"a.example\"><display-name>A</display-name></channel>\n\
    <programme start=\"20261129210000 +0000\" stop=\"20261129220000 +0000\" channel=\"a.example\"><title lang=\"en\">Later</title></programme>\n\
    <programme channel='a.example' start='20261129203000 +0100' stop='20261129220000 +0100'>\n\
    <title>N &amp; <![CDATA[<o>]]>w&#33;</title><title>Other</title><desc>D</desc><icon src=\"x\"/></programme>\n\
    <programme start=\"20261129200000\" stop=\"20261129210000\" channel=\"b &amp; c\"><title/></programme>\n\
    <programme start=\"20261129200000\" stop=\"20261129210000\" channel=\"other\"><title>x</title></programme>\n\
    <programme start=\"20261101200000\" stop=\"20261101210000\" channel=\"a.example\"><title>Over</title></programme>\n\
    </tv>\n";

fn zipped(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn what_is_on_is_read_in_whatever_pieces_it_comes() {
    for guide in [GUIDE.as_bytes().to_vec(), zipped(GUIDE), [zipped(&GUIDE[..700]), zipped(&GUIDE[700..])].concat()] {
        for step in [1, 7, 64, 100_000] {
            let (programmes, skipped) = read_by(&guide, step, 1 << 20);
            let programmes = programmes.unwrap();
            assert_eq!((programmes.len(), skipped), (3, 0), "{step}");
            let on: Vec<(u64, (String, String))> =
                programmes.of("a.example").map(|(own, element)| (own.start, words(element))).collect();
            let now = (String::from("N & <o>w!"), String::from("D"));
            assert_eq!(on, [(NOW - 1800, now), (NOW + 3600, (String::from("Later"), String::new()))]);
            assert_eq!(programmes.of("b & c").count(), 1);
            assert_eq!(programmes.of("other").count() + programmes.of("").count(), 0);
        }
    }
}

#[test]
fn what_would_break_a_document_is_left_out() {
    let on = |inner: &str| {
        let start = "start=\"20261129200000\" stop=\"20261129210000\" channel=\"a.example\"";
        let (programmes, skipped) =
            read_by(format!("<tv><programme {start}>{inner}</programme></tv>").as_bytes(), 9, 1 << 20);
        (programmes.map_or(0, |programmes| programmes.len()), skipped)
    };
    assert_eq!(on("<title>x</title>"), (1, 0));
    for inner in ["<title>x</desc>", "<title>", "&nbsp;", "<?x y?>", "<a b=c>", "<!DOCTYPE x>", "</x>", "&#0;"] {
        assert_eq!(on(inner), (0, 1), "{inner}");
    }
    assert_eq!(on(&"x".repeat(ELEMENT)), (0, 1));
    assert_eq!(on(&format!("{}{}", "<a>".repeat(20), "</a>".repeat(20))), (0, 1));
}

#[test]
fn what_is_no_guide_or_too_large_is_refused() {
    let fault = |guide: &[u8]| read_by(guide, 1000, 1 << 10).0.unwrap_err();
    assert_eq!(fault(b"<html></html>"), "it is no XMLTV");
    assert_eq!(fault(b""), "it is no XMLTV");
    assert_eq!(fault(&[0x1f, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), "its compression is broken");
    assert_eq!(fault(&zipped(GUIDE)[..100]), "it ended early");
    assert_eq!(fault(" ".repeat(10 << 10).as_bytes()), "it is larger than `bytes` allows");
    // A hundred MiB of nothing, in a hundred KiB.
    let bomb = zipped(&" ".repeat(100 << 20));
    assert!(bomb.len() < 200 << 10);
    assert_eq!(fault(&bomb), "it is larger than `bytes` allows");
    assert_eq!(read_by(b"<tv></tv>", 1, 1 << 10).0.unwrap().len(), 0);
}

#[test]
fn times_are_read_in_every_zone() {
    for (text, seconds) in [
        ("20261129200000 +0000", Some(NOW)),
        ("20261129210000 +0100", Some(NOW)),
        ("20261129143000 -0530", Some(NOW)),
        ("202611292000", Some(NOW)),
        (" 20261129200000 UTC ", Some(NOW)),
        ("20261329200000", None),
        ("x", None),
        ("2026112", None),
        ("19000101", None),
    ] {
        assert_eq!(time(text), seconds, "{text}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(text in "[<>/=\"'&;a-z0-9 ]{0,200}", step in 1usize..20) {
        let guide = format!("<tv><programme {text}</programme><programme start=\"20261129200000\" stop=\"20261129210000\" channel=\"a.example\">{text}</programme></tv>");
        let (programmes, _) = read_by(guide.as_bytes(), step, 1 << 20);
        for (_, element) in programmes.iter().flat_map(|programmes| programmes.of("a.example")) {
            words(element);
        }
    }
}
