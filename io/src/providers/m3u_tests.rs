use super::*;
use proptest::prelude::*;

const ALL: Context<'static> = Context { taken: &|_, _| false, groups: &[], entries: 1_000_000 };

fn read(list: impl AsRef<[u8]>) -> (Catalogue, Reader) {
    read_by(list.as_ref(), usize::MAX)
}

fn read_by(list: &[u8], step: usize) -> (Catalogue, Reader) {
    let (mut catalogue, mut reader) = (Catalogue::default(), Reader::default());
    list.chunks(step.min(list.len()).max(1)).for_each(|data| reader.push(data, &mut catalogue, &ALL));
    reader.finish(&mut catalogue, &ALL);
    (catalogue, reader)
}

const LIST: &str = "#EXTM3U url-tvg=\"http://g.example/a.xml.gz,http://g.example/b.xml\" catchup=\"append\" \
    catchup-source=\"?utc={utc}\" catchup-days=5\n\
    #EXTINF:-1 tvg-id=\"one.example\" tvg-name=\"One\" tvg-logo=\"http://l.example/1.png\" tvg-chno=\"7\" group-title=\"News, World\",One, \"the\" first\n\
    #EXTVLCOPT:http-user-agent=VLC/3 (x)\n\
    #EXTVLCOPT:http-referrer=http://r.example/\n\
    http://p.example/live/u/p/1.ts\n\
    #EXTINF:-1 group-title=Sport catchup=\"none\",Two\n\
    #EXTHTTP:{\"cookie\":\"a=b\",\"X-Other\":\"1\",\"origin\":5}\n\
    http://p.example/live/u/p/2.m3u8|User-Agent=Mozilla%2F5&referer=http://x/\n\
    #EXTINF:-1,A Film (1999)\n\
    #EXTGRP:Films\n\
    http://p.example/movie/u/p/3.mkv\n\
    #EXTINF:-1,Some Series S02 E13 - Title\n\
    http://p.example/series/u/p/4.mp4\n\
    #EXTINF:-1 timeshift=\"3\",Three\n\
    http://p.example/5\n";

#[test]
fn everything_a_list_says_is_read() {
    let (catalogue, reader) = read(LIST);
    assert_eq!((catalogue.counts, catalogue.skipped, reader.wrong), ([3, 1, 1, 1], 0, None));
    assert_eq!(catalogue.guide.as_deref(), Some("http://g.example/a.xml.gz"));
    let one = catalogue.get(0);
    assert_eq!((one.name, one.group, one.guide, one.number), ("One, \"the\" first", "News, World", "one.example", 7));
    assert_eq!((one.catchup, one.catchup_source, one.days, one.extension), ("append", "?utc={utc}", 5, "ts"));
    assert_eq!(one.fields, "User-Agent: VLC/3 (x)\nReferer: http://r.example/\n");
    assert_eq!(catalogue.addresses(0), ["http://p.example/live/u/p/1.ts", "http://l.example/1.png"]);
    let two = catalogue.get(1);
    assert_eq!((two.group, two.catchup, two.days, two.extension), ("Sport", "", 0, "m3u8"));
    assert_eq!(two.fields, "Cookie: a=b\nUser-Agent: Mozilla/5\nReferer: http://x/\n");
    assert_eq!(catalogue.addresses(1)[0], "http://p.example/live/u/p/2.m3u8");
    assert_eq!((catalogue.kind(2), catalogue.get(2).group), (Kind::Film, "Films"));
    assert_eq!((catalogue.kind(3), catalogue.get(3).name), (Kind::Series, "Some Series"));
    assert_eq!(catalogue.get(4).episode, Some(("Some Series", 2, 13)));
    assert_eq!((catalogue.get(5).catchup, catalogue.get(5).days), ("shift", 3));
}

#[test]
fn a_list_is_the_same_in_whatever_pieces_it_comes() {
    let dressed = format!("\u{feff}{}", LIST.replace('\n', "\r\n"));
    let whole = read(LIST).0;
    for step in [1, 2, 7, 100] {
        let (pieces, _) = read_by(dressed.as_bytes(), step);
        assert_eq!(pieces.len(), whole.len());
        for place in 0..whole.len() {
            assert_eq!((pieces.get(place), pieces.addresses(place)), (whole.get(place), whole.addresses(place)));
        }
    }
}

#[test]
fn broken_lines_are_passed_over_and_counted() {
    let endless = "x".repeat(LINE + 1);
    let list = format!(
        "#EXTINF:-1,first without an address\n#EXTINF:-1,A\nhttp://a/1\n{endless}\nrtp://b/2\n#EXTINF:-1,C\nfile:///etc/passwd\n\
         #EXTINF:-1 tvg-id=\"{endless}\",D\nhttp://d/1\nhttp:///e\n#EXTINF\n#\n\n#EXTINF:-1,last"
    );
    for step in [13, usize::MAX] {
        let (catalogue, _) = read_by(list.as_bytes(), step);
        // D is there, named by its address: what said its name was too long.
        assert_eq!((catalogue.len(), catalogue.skipped), (2, 7), "{step}");
        assert_eq!(catalogue.first_skipped, "\"first without an address\": no address follows it");
        assert_eq!((catalogue.get(0).name, catalogue.get(1).name), ("A", "1"));
    }
}

#[test]
fn latin_1_and_lists_without_a_head_are_read() {
    let (catalogue, _) = read(b"#EXTINF:0,Caf\xe9\nhttp://a/1\nhttp://a/x%20y.ts\n");
    assert_eq!((catalogue.get(0).name, catalogue.get(1).name), ("Café", "x y.ts"));
}

#[test]
fn lists_in_utf_16_and_with_bare_cr_are_read() {
    let list = "#EXTM3U\n#EXTINF:-1,Caf\u{e9} \u{1f3ac}\nhttp://a/1.ts\n#EXTINF:-1,B\nhttp://a/2.ts\n";
    let names = |data: &[u8], step| {
        let (catalogue, _) = read_by(data, step);
        assert_eq!((catalogue.len(), catalogue.skipped), (2, 0));
        [0, 1].map(|place| catalogue.get(place).name.to_owned())
    };
    let wide = |bytes: fn(u16) -> [u8; 2]| {
        [0xfeff].into_iter().chain(list.encode_utf16()).flat_map(bytes).collect::<Vec<u8>>()
    };
    for step in [1, 2, 3, 7, usize::MAX] {
        for data in [wide(u16::to_le_bytes), wide(u16::to_be_bytes), list.replace('\n', "\r").into()] {
            assert_eq!(names(&data, step), ["Caf\u{e9} \u{1f3ac}", "B"], "{step}");
        }
    }
}

#[test]
fn what_is_no_list_shows() {
    assert_eq!(read("\n<!DOCTYPE html><html>").1.wrong, Some("a web page"));
    assert_eq!(read("{\"user_info\":{}}").1.wrong, Some("JSON"));
    assert_eq!(read("").1.wrong, None);
}

#[test]
fn quotes_within_values_and_missing_ones_do_not_swallow_the_name() {
    for (line, group, name) in [
        (r#"-1 group-title="A "B" C" tvg-id="x",N"#, "A \"B\" C", "N"),
        (r#"-1 group-title="A, B",N, M"#, "A, B", "N, M"),
        (r#"-1 group-title="A,N"#, "A", "N"),
        (r#"-1 group-title=A,N"#, "A", "N"),
        (r#"-1 group-title="",N"#, "", "N"),
        (r#"-1 GROUP-TITLE="A"  ,  N  "#, "A", "N"),
        (r#"-1,N"#, "", "N"),
        (r#"-1 junk group-title="A" =x ,N"#, "A", "N"),
    ] {
        let own = info(line);
        assert_eq!((own.group.as_str(), own.name.as_str()), (group, name), "{line}");
    }
}

#[test]
fn a_kind_shows_in_the_path() {
    for (path, numbered, kind) in [
        ("/live/u/p/1.ts", false, Kind::Live),
        ("/u/p/1", false, Kind::Live),
        ("/x/index.m3u8", true, Kind::Live),
        ("/x/manifest.mpd", false, Kind::Live),
        ("/movie/u/p/1.mp4", false, Kind::Film),
        ("/movie/u/p/1.mp4", true, Kind::Episode),
        ("/series/u/p/1.mkv", false, Kind::Episode),
        ("/files/a.MKV", false, Kind::Film),
        ("/files/a.mkv", true, Kind::Episode),
    ] {
        assert_eq!(super::kind(path, extension(path), numbered), kind, "{path}");
    }
    for (name, read) in [
        ("A S01E02", Some(("A", 1, 2))),
        ("A - s1 e2 x", Some(("A", 1, 2))),
        ("S03.E04", Some(("S03.E04", 3, 4))),
        ("Ünï S1E1000", Some(("Ünï", 1, 1000))),
        ("PS5E1", None),
        ("Class of S09", None),
        ("S1E", None),
    ] {
        assert_eq!(episode(name), read, "{name}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..500), step in 1usize..50) {
        let (one, _) = read_by(&bytes, step);
        let (other, _) = read(&bytes);
        prop_assert_eq!((one.len(), one.skipped), (other.len(), other.skipped));
    }

    #[test]
    fn any_line_is_read(line in "[ -~éü\t]{0,80}") {
        let list = format!("#EXTINF:{line}\nhttp://a/b{line}\n#{line}\n");
        let _ = read(list);
    }
}
