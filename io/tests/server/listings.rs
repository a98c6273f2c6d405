//! What users are told of catalogues and guides: lists as long as they are, the API of panels, what is wrong with a guide.

use std::time::Duration;

use holdfast_core::config::User;
use holdfast_core::input::{Left, Note};
use holdfast_io::providers::{Guide, Location, ProviderSettings};
use holdfast_io::server::{Action, Settings};
use serde_json::Value;

use crate::desk::{Desk, content};
use crate::providers::{LIST, XML, desk, desk_of, listed, provider};

#[test]
fn the_api_has_the_types_that_clients_rely_on() {
    let mut desk = listed();
    let live = desk.api("anna", "get_live_streams");
    let one = &live[0];
    assert!(one["stream_id"].is_u64() && one["num"].is_u64() && one["category_ids"][0].is_u64(), "{one}");
    for text in ["category_id", "added", "epg_channel_id", "stream_icon", "is_adult", "custom_sid", "direct_source"] {
        assert!(one[text].is_string(), "{text}: {one}");
    }
    assert_eq!((one["tv_archive"].as_u64(), one["tv_archive_duration"].as_u64()), (Some(1), Some(3)));
    let categories = desk.api("anna", "get_live_categories");
    assert_eq!((&categories[0]["category_name"], &categories[0]["category_id"]), (&"News".into(), &one["category_id"]));
    let chosen = desk.api("anna", &format!("get_live_streams&category_id={}", one["category_id"].as_str().unwrap()));
    assert_eq!((chosen.as_array().unwrap().len(), &chosen[0]), (1, one));
    let films = desk.api("anna", "get_vod_streams");
    assert_eq!((&films[0]["name"], &films[0]["container_extension"]), (&"A Film".into(), &"mkv".into()));
    let film = desk.api("anna", &format!("get_vod_info&vod_id={}", films[0]["stream_id"]));
    assert_eq!((&film["movie_data"]["stream_id"], &film["info"]["name"]), (&films[0]["stream_id"], &"A Film".into()));
    let series = desk.api("anna", "get_series");
    assert_eq!(series[0]["name"], "A Series");
    let own = desk.api("anna", &format!("get_series_info&series_id={}", series[0]["series_id"]));
    let episode = &own["episodes"]["2"][0];
    assert!(
        episode["id"].is_string() && episode["episode_num"] == 1 && episode["container_extension"] == "mp4",
        "{own}"
    );
    // Ben sees the news alone.
    assert_eq!(desk.api("ben", "get_live_streams").as_array().unwrap().len(), 1);
    for none in ["get_vod_streams", "get_series", "get_vod_categories", "get_series_categories"] {
        assert_eq!(desk.api("ben", none), Value::Array(vec![]), "{none}");
    }
    assert_eq!(desk.asks("/get.php?username=ben&password=x").lines().count(), 3);
    let two = desk.id_of("Two & \"a half\"");
    assert!(desk.ask(&format!("GET /live/ben/x/{two}.ts HTTP/1.1\r\nHost: h\r\n\r\n")).starts_with("HTTP/1.1 404 "));
}

#[test]
fn older_players_get_all_at_once() {
    let mut desk = listed();
    let mut all = |user: &str| -> Value {
        serde_json::from_str(&desk.asks(&format!("/panel_api.php?username={user}&password=x"))).unwrap()
    };
    let (anna, ben) = (all("anna"), all("ben"));
    assert_eq!((&anna["user_info"]["auth"], &anna["server_info"]["timezone"]), (&1.into(), &"UTC".into()));
    assert_eq!(anna["categories"]["live"][0]["category_name"], "News");
    assert_eq!(anna["categories"]["movie"][0]["category_name"], "Films");
    let streams = anna["available_channels"].as_object().unwrap();
    assert_eq!(streams.len(), 3, "{anna}");
    for (id, own) in streams {
        assert_eq!(*id, own["stream_id"].to_string());
        let live = own["stream_type"] == "live";
        assert_eq!((own["live"] == "1", own["container_extension"].is_null()), (live, live), "{own}");
        assert!(["News", "Sport", "Films"].iter().any(|name| own["category_name"] == *name), "{own}");
    }
    assert_eq!(ben["available_channels"].as_object().unwrap().len(), 1);
}

#[test]
fn a_long_list_is_made_while_it_is_taken() {
    let mut list = String::from("#EXTM3U\n");
    (0..20_000)
        .for_each(|n| list += &format!("#EXTINF:-1 group-title=\"G{}\",Channel {n}\nhttp://l.example/{n}\n", n % 7));
    let refresh = Duration::from_secs(20);
    let large = ProviderSettings { bytes: 64 << 20, refresh, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
    let mut desk = desk(vec![large]);
    desk.serves(&list);
    desk.writable = false;
    let id = desk.connect();
    desk.send(id, "GET /player_api.php?username=anna&password=x&action=get_live_streams HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut most = 0;
    let taken = desk.server.transmit(desk.time(), id, &mut |pieces| {
        most = most.max(pieces.iter().map(|piece| piece.len()).sum());
        Err(std::io::ErrorKind::WouldBlock.into())
    });
    assert!(taken.is_ok() && most < 64 << 10, "{most}");
    // The catalogue changes meanwhile: the list is that of before.
    desk.run(20_000);
    desk.writable = true;
    desk.serves("#EXTM3U\n#EXTINF:-1,New\nhttp://l.example/9\n");
    desk.flush(id);
    let answer = desk.read(id);
    let all: Value = serde_json::from_str(&content(&answer)).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 20_000);
    assert!(desk.closed.contains(&id));
}

/// Whoever asks for little of much keeps nobody waiting while that is looked for.
#[test]
fn what_is_looked_through_in_vain_is_so_bit_by_bit() {
    let entry = |n: u32, group: &str| {
        format!("#EXTINF:-1 tvg-id=\"c{n}\" group-title=\"{group}\",Channel {n}\nhttp://l.example/{n}.ts\n")
    };
    let list = (0..35_000).map(|n| entry(n, "Many")).chain([entry(35_000, "Few")]).collect::<String>();
    let guide = Guide::At(Location::parse("http://p.example/guide.xml").unwrap());
    let mut desk =
        desk(vec![ProviderSettings { bytes: 64 << 20, guide, ..provider("http://p.example/x.m3u", &[("a", "b")]) }]);
    desk.serves(format!("#EXTM3U\n{list}"));
    desk.serves(XML.replace("one.example", "c35000"));
    let categories = desk.api("anna", "get_live_categories");
    let few = categories.as_array().unwrap().iter().find(|own| own["category_name"] == "Few").unwrap();
    let few = few["category_id"].as_str().unwrap();
    for (path, what) in [
        (
            format!("/player_api.php?username=anna&password=x&action=get_live_streams&category_id={few}"),
            "Channel 35000",
        ),
        (String::from("/xmltv.php?username=anna&password=x"), "Now &amp; here"),
    ] {
        desk.writable = false;
        let id = desk.connect();
        desk.server.received(desk.time(), id, format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        let (mut written, mut idle) = (Vec::new(), 0);
        while !desk.closed.contains(&id) {
            let before = written.len();
            let done = desk.server.transmit(desk.time(), id, &mut |pieces| {
                pieces.iter().for_each(|piece| written.extend_from_slice(piece));
                Ok(pieces.iter().map(|piece| piece.len()).sum())
            });
            assert!(done.is_ok());
            idle += u32::from(written.len() == before);
            while let Some(action) = desk.server.poll() {
                if let Action::Close(id) = action {
                    desk.closed.push(id);
                }
            }
        }
        assert!(content(&String::from_utf8_lossy(&written)).contains(what), "{path}");
        assert!(idle >= 2, "{path}: {idle} turns without anything");
    }
}

#[test]
fn numbers_in_the_lists_of_the_api_are_those_of_their_places_whatever_providers_number() {
    let list = |name: &str| {
        format!(
            "#EXTM3U\n#EXTINF:-1 tvg-chno=\"1\" group-title=\"News\",{name} one\nhttp://l.example/live/a/b/1.ts\n\
             #EXTINF:-1 group-title=\"Sport\",{name} two\nhttp://l.example/live/a/b/2.ts\n\
             #EXTINF:-1 tvg-chno=\"1\" group-title=\"Films\",{name} film\nhttp://l.example/movie/a/b/3.mkv\n"
        )
    };
    let other = ProviderSettings { name: String::from("other"), ..provider("http://q.example/l.m3u", &[("a", "b")]) };
    let mut desk = desk(vec![provider("http://p.example/l.m3u", &[("a", "b")]), other]);
    for name in ["First", "Second"] {
        desk.serves(list(name));
    }
    let numbers = |all: &Value| -> Vec<u64> {
        all.as_array().into_iter().flatten().filter_map(|own| own["num"].as_u64()).collect()
    };
    let live = desk.api("anna", "get_live_streams");
    assert_eq!(numbers(&live), [1, 2, 3, 4], "{live}");
    assert_eq!(numbers(&desk.api("anna", "get_vod_streams")), [1, 2]);
    // Whoever looks in one category finds it under the same number.
    let sport = live[1]["category_id"].as_str().unwrap();
    assert_eq!(numbers(&desk.api("anna", &format!("get_live_streams&category_id={sport}"))), [2, 4]);
    let all: Value = serde_json::from_str(&desk.asks("/panel_api.php?username=anna&password=x")).unwrap();
    let streams = all["available_channels"].as_object().unwrap().values();
    let mut numbers: Vec<u64> = streams.filter_map(|own| own["num"].as_u64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn only_what_is_live_has_the_number_of_a_channel_in_the_list() {
    let list = "#EXTM3U\n#EXTINF:-1 tvg-chno=\"7\",Live\nhttp://l.example/live/a/b/1.ts\n\
                #EXTINF:-1 tvg-chno=\"7\",Film\nhttp://l.example/movie/a/b/2.mkv\n\
                #EXTINF:-1 tvg-chno=\"7\",Series S01E01\nhttp://l.example/series/a/b/3.mkv\n";
    let mut desk = desk(vec![provider("http://p.example/l.m3u", &[("a", "b")])]);
    desk.serves(list);
    let list = desk.asks("/get.php?username=anna&password=x");
    let numbered: Vec<&str> = list.lines().filter(|line| line.contains("tvg-chno=\"7\"")).collect();
    assert!(numbered.len() == 1 && numbered[0].ends_with(",Live"), "{list}");
    assert_eq!(list.matches("#EXTINF").count(), 3, "{list}");
}

#[test]
fn what_an_account_logs_in_with_is_told_to_whoever_may_read_it() {
    for (tokens, name, label) in [(vec![String::from("key")], "tv/1 (box-1)", "1 (box-1)"), (Vec::new(), "tv/1", "1")] {
        let own = provider("http://p.example/l.m3u", &[("box-1", "hunter2")]);
        let settings = Settings { api_tokens: tokens, ..Settings::default() };
        let mut desk = desk_of(vec![own], vec![User { name: "anna".into(), ..User::default() }], settings);
        desk.serves("#EXTM3U\n#EXTINF:-1,Film\nhttp://l.example/movie/a/b/3.mkv\n");
        let mut ask =
            |path: &str| desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer key\r\n\r\n"));
        let status: Value = serde_json::from_str(&content(&ask("/api/status"))).unwrap();
        assert_eq!(status["providers"][0]["accounts"][0]["name"], name);
        let metrics = ask("/metrics");
        let line = format!("holdfast_account_name{{provider=\"tv\",account=\"1\",name=\"{label}\"}} 1\n");
        assert!(metrics.contains(&line) && !metrics.contains("hunter2"), "{metrics}");
    }
}

#[test]
fn a_guide_that_is_broken_is_told_once_and_the_last_good_one_is_kept() {
    let zipped = |text: &str| {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let (cut, packed) = (&XML[..XML.len() - 40], zipped(XML));
    let mut wrong = packed.clone();
    wrong.iter_mut().skip(20).take(40).for_each(|byte| *byte ^= 0x55);
    for (broken, why) in [
        (cut.as_bytes(), "it breaks off before its end (</tv>)"),
        (XML.strip_suffix("</tv>").unwrap().as_bytes(), "it breaks off before its end (</tv>)"),
        (b"<html>pay first</html>", "it is no XMLTV"),
        (b"", "it is no XMLTV"),
        (b"<tv><programme start=\"x\"></programme></tv>", "none of the programmes in it can be read"),
        (&packed[..packed.len() / 2], "it ended early"),
        (&wrong, "its compression is broken"),
    ] {
        let mut desk = listed();
        let guide = desk.asks("/xmltv.php?username=anna&password=x");
        desk.notes.clear();
        for round in 1..=2 {
            desk.run(round * 3_600_000);
            desk.serves(LIST);
            desk.serves(broken);
            let expected = (format!("the guide: {why}"), Left::Former(2));
            assert_eq!(faults(&mut desk), if round == 1 { vec![expected] } else { Vec::new() });
            assert_eq!(desk.status()["providers"][0]["fault"], format!("the guide: {why}"));
            assert_eq!(desk.asks("/xmltv.php?username=anna&password=x"), guide);
        }
    }
    // Where there was none before, a part of it is better than nothing.
    let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
    desk.serves(LIST);
    desk.serves(cut);
    let why = String::from("the guide: it breaks off before its end (</tv>)");
    assert_eq!(faults(&mut desk), [(why.clone(), Left::Beginning(1))], "nothing was read last");
    assert!(desk.asks("/xmltv.php?username=anna&password=x").contains("Now &amp; here"));
    // As long as it never comes whole, the newest part of it is shown.
    desk.run(3_600_000);
    desk.serves(LIST);
    desk.serves(cut.replace("Now", "Then"));
    assert_eq!(faults(&mut desk), [], "as before");
    assert!(desk.asks("/xmltv.php?username=anna&password=x").contains("Then &amp; here"));
    // Of one that has nothing in it there is nothing.
    let mut desk = self::desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
    desk.serves(LIST);
    desk.serves("<tv>");
    assert_eq!(faults(&mut desk), [(why, Left::Nothing)]);
}

/// Why a catalogue or a guide could not be read, and what there is of it.
fn faults(desk: &mut Desk) -> Vec<(String, Left)> {
    let told = desk.notes.drain(..).filter_map(|note| match note {
        Note::CatalogFault { why, left, .. } => Some((why, left)),
        _ => None,
    });
    told.collect()
}

#[test]
fn how_much_of_a_guide_cannot_be_read_is_told() {
    for (guide, expected) in [
        (XML.to_owned(), (2, 0)),
        // A tag that does not match, one that is never closed, and a time that is none.
        (XML.replace("</desc>", "</dsc>"), (1, 1)),
        (XML.replace("here</title>", "here"), (1, 1)),
        (XML.replace("\"20261129193000 ", "\"soon "), (1, 1)),
    ] {
        let mut desk = desk(vec![provider("http://p.example/x.m3u", &[("a", "b")])]);
        desk.serves(LIST);
        desk.serves(&guide);
        let read = desk.notes.iter().find_map(|note| match note {
            Note::GuideRead { programmes, skipped, .. } => Some((*programmes, *skipped)),
            _ => None,
        });
        assert_eq!(read, Some(expected), "{guide}");
        assert_eq!(faults(&mut desk), []);
        let told = desk.asks("/xmltv.php?username=anna&password=x");
        assert!(told.contains("Next") && told.ends_with("</tv>\n"), "{told}");
    }
}
