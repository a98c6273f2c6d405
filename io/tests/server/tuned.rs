//! Live streams of providers as channels that come and go.

use std::sync::Arc;

use holdfast_core::config::User;
use holdfast_core::input::{Loss, Note, RefuseReason, UserId};
use holdfast_io::providers::{Guide, ProviderSettings};
use holdfast_io::server::{Clip, ConnId, ConnectError, LinkId, Settings, Slates};
use holdfast_io::ts::behind;

use crate::channels::{Encoder, OK, media};
use crate::desk::{Desk, content};
use crate::providers::{desk_of, provider};

/// So many streams at a provider with one account; Anna is weaker than Ben.
fn desk(streams: usize, settings: Settings) -> Desk {
    let users =
        [("anna", 5), ("ben", -5)].map(|(name, priority)| User { name: name.into(), priority, ..User::default() });
    let own = ProviderSettings { guide: Guide::None, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
    let mut desk = desk_of(vec![own], users.into(), settings);
    let mut list = String::from("#EXTM3U\n");
    for n in 0..streams {
        list += &format!(
            "#EXTINF:-1 group-title=\"News\" catchup=\"xc\" catchup-days=\"3\",S{n}\nhttp://l.example/live/a/b/{n}.ts\n"
        );
    }
    desk.serves(list);
    desk
}

/// Asks for a stream as a user.
fn plays(desk: &mut Desk, user: &str, name: &str) -> ConnId {
    let id = desk.id_of(name);
    let conn = desk.connect();
    desk.send(conn, format!("GET /live/{user}/x/{id}.ts HTTP/1.1\r\nHost: h\r\n\r\n"));
    conn
}

fn leaves(desk: &mut Desk, conn: ConnId) {
    desk.server.closed(desk.time(), conn);
    desk.turn();
}

#[test]
fn nothing_is_kept_of_a_stream_that_nobody_watches_any_more() {
    let mut desk = desk(40, Settings::default());
    for n in 0..40 {
        let conn = plays(&mut desk, "anna", &format!("S{n}"));
        match n % 4 {
            // Refused, broken off, and well.
            0 => desk.answers("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            1 => desk.answers("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
            2 => {}
            _ => {
                let (link, _) = desk.link();
                desk.link_opens(link);
                desk.link_says(link, OK);
                desk.link_says(link, Encoder::new().encode(3));
            }
        }
        leaves(&mut desk, conn);
        desk.run(desk.now + 60_000);
        assert!(desk.links.is_empty());
        let kept = desk.server.sources().channels();
        assert!(kept <= 1, "{kept} after {n}");
    }
}

#[test]
fn whoever_is_refused_a_stream_is_told_what_its_provider_answered() {
    for (answer, words) in [
        ("404 Not Found\r\nContent-Length: 0", "the origin answers 404"),
        ("403 Forbidden\r\nContent-Length: 0", "the origin answers 403: it refuses the credentials"),
        ("500 Oh\r\nContent-Length: 0", "the origin answers 500"),
        ("200 OK\r\nContent-Type: text/html\r\nContent-Length: 0", "web page"),
        ("200 OK\r\nContent-Length: 0", "the origin ended the stream"),
    ] {
        let mut desk = desk(1, Settings::default());
        let conn = plays(&mut desk, "anna", "S0");
        for _ in 0..10 {
            if desk.links.is_empty() {
                break;
            }
            desk.answers(&format!("HTTP/1.1 {answer}\r\n\r\n"));
            desk.run(desk.now + 1000);
        }
        let refusal = desk.read(conn);
        assert!(refusal.starts_with("HTTP/1.1 50") && refusal.contains(words), "{answer}: {refusal}");
        // Also whoever asks just behind, and polls.
        let id = desk.id_of("S0");
        for path in [format!("/live/ben/x/{id}.m3u8"), format!("/live/ben/x/{id}.ts")] {
            for method in ["GET", "HEAD"] {
                let again = desk.ask(&format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
                assert_eq!(again.get(..13), refusal.get(..13), "{method} {path}, {answer}: {again}");
                assert!(method == "HEAD" || again.contains(words), "{answer}: {again}");
            }
        }
    }
}

#[test]
fn an_operator_sees_what_is_watched_at_providers() {
    let mut desk = desk(2, Settings::default());
    let conn = plays(&mut desk, "anna", "S1");
    let (link, _) = desk.link();
    desk.link_opens(link);
    desk.link_says(link, OK);
    desk.link_says(link, Encoder::new().encode(12));
    desk.run(desk.now + 200);
    let status = desk.status();
    let own = &status["providers"][0];
    assert_eq!((&own["reads"], &own["faults"]), (&1.into(), &0.into()));
    let channel = &own["channels"][0];
    assert_eq!((&channel["name"], &channel["state"], &channel["viewers"]), (&"S1".into(), &"live".into(), &1.into()));
    assert_eq!((&channel["kept"]["label"], &channel["sources"][0]["label"]), (&"tv".into(), &"tv".into()));
    let holder = format!("source {}", channel["kept"]["id"].as_str().unwrap());
    let connection = &own["accounts"][0]["connections"][0];
    assert_eq!(connection["holder"], holder.as_str());
    assert_eq!((&connection["title"], &connection["users"]), (&"S1".into(), &serde_json::json!(["anna"])));
    let playback = status["users"][0]["playbacks"][0].clone();
    assert_eq!(playback["title"], "S1");
    assert_eq!(playback["stream"], desk.id_of("S1").to_string(), "as lists know it");
    for (series, value) in [
        ("holdfast_provider_titles{provider=\"tv\",kind=\"live\"}", 2),
        ("holdfast_provider_catalog_reads_total{provider=\"tv\"}", 1),
        ("holdfast_provider_catalog_faults_total{provider=\"tv\"}", 0),
        ("holdfast_account_limit{provider=\"tv\",account=\"1\"}", 1),
        ("holdfast_account_slots{provider=\"tv\",account=\"1\",state=\"used\"}", 1),
    ] {
        assert_eq!(desk.metric(series), Some(value), "{series}");
    }
    leaves(&mut desk, conn);
    desk.run(desk.now + 60_000);
    assert_eq!(desk.status()["providers"][0]["channels"].as_array().map(Vec::len), Some(0));
}

#[test]
fn whoever_gives_way_sees_why_before_the_end() {
    for slate in [true, false] {
        let clip = Arc::new(Clip::new(media(50).into()).unwrap());
        let slates = Slates { provider_limit: slate.then_some(clip), ..Slates::default() };
        let mut desk = desk(2, Settings { slates, ..Settings::default() });
        let anna = plays(&mut desk, "anna", "S0");
        let (link, _) = desk.link();
        desk.link_opens(link);
        desk.link_says(link, OK);
        desk.writable = false;
        desk.link_says(link, Encoder::new().encode(12));
        desk.run(desk.now + 200);
        // The head, and so much of the stream that it ends within a packet.
        let now = desk.time();
        let taken = desk.written.entry(anna).or_default();
        let mut calls = 0;
        let _ = desk.server.transmit(now, anna, &mut |pieces| {
            calls += 1;
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            let end = all.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
            let count = all.len().min(end + 188 * 3 + 50);
            taken.extend_from_slice(&all[..count]);
            if calls == 1 { Ok(count) } else { Err(std::io::ErrorKind::WouldBlock.into()) }
        });
        desk.turn();
        desk.writable = true;
        let ben = plays(&mut desk, "ben", "S1");
        desk.run(desk.now + 1600);
        assert!(desk.closed.contains(&anna), "the end follows");
        let seen = desk.written.remove(&anna).unwrap();
        let begin = seen.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let stream = &seen[begin..];
        let shown = behind(&media(50)).unwrap();
        assert_eq!(stream.ends_with(&shown), slate);
        if slate {
            assert_eq!(stream.len(), 188 * 4 + shown.len());
            assert!(stream.as_chunks::<188>().0.iter().all(|packet| packet[0] == 0x47));
        }
        assert_eq!(desk.links.len(), 1, "the account is Ben's");
        leaves(&mut desk, ben);
    }
}

/// A recording whose account goes to somebody stronger: what has no length ends with the clip, what has one ends short of it.
#[test]
fn a_recording_that_gives_way_ends_with_the_clip() {
    for length in ["", "Content-Length: 1000000\r\n"] {
        let clip = Arc::new(Clip::new(media(50).into()).unwrap());
        let slates = Slates { provider_limit: Some(clip), ..Slates::default() };
        let mut desk = desk(2, Settings { slates, ..Settings::default() });
        let id = desk.id_of("S0");
        let anna = desk.connect();
        desk.send(anna, format!("GET /timeshift/anna/x/60/2026-11-28:20-15/{id}.ts HTTP/1.1\r\nHost: h\r\n\r\n"));
        let (link, _) = desk.link();
        desk.link_opens(link);
        desk.link_says(link, format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n{length}\r\n"));
        desk.link_says(link, [&media(3)[..], &[0x47; 50]].concat());
        desk.run(desk.now + 200);
        let ben = plays(&mut desk, "ben", "S1");
        desk.run(desk.now + 1600);
        assert!(desk.closed.contains(&anna), "the end follows");
        let seen = desk.written.remove(&anna).unwrap();
        let begin = seen.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let stream = &seen[begin..];
        let (shown, torn) = (behind(&media(50)).unwrap(), media(3).len() + 50);
        assert_eq!(stream.ends_with(&shown), length.is_empty());
        let all = if length.is_empty() { media(3).len() + 188 + shown.len() } else { torn };
        assert_eq!(stream.len(), all);
        assert_eq!(desk.links.len(), 1, "the account is Ben's");
        leaves(&mut desk, ben);
    }
}

#[test]
fn a_request_goes_on_with_what_it_found_though_the_catalogue_changes() {
    let users = vec![User { name: "anna".into(), ..User::default() }];
    let own = |url, seconds| ProviderSettings {
        guide: Guide::None,
        refresh: std::time::Duration::from_secs(seconds),
        ..provider(url, &[("a", "b")])
    };
    let providers = vec![own("http://p.example/x.m3u", 3600), own("http://q.example/x.m3u", 20)];
    let mut desk = desk_of(providers, users, Settings::default());
    let list = |host: &str, file: u32| format!("#EXTM3U\n#EXTINF:-1,A\nhttp://{host}.example/movie/a/b/{file}.mp4\n");
    desk.serves(list("p", 1));
    desk.serves(list("q", 2));
    let film = desk.api("anna", "get_vod_streams")[0]["stream_id"].clone();
    desk.run(19_500);
    let conn = desk.connect();
    desk.send(conn, format!("GET /movie/anna/x/{film}.mp4 HTTP/1.1\r\nHost: h\r\n\r\n"));
    let (first, target) = desk.link();
    assert_eq!(target.host, "p.example");
    desk.run(20_000);
    let (catalogue, target) = desk.links[1].clone();
    assert_eq!(target.host, "q.example");
    desk.link_opens(catalogue);
    let content = list("q", 99);
    desk.link_says(catalogue, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len()));
    desk.links.clear();
    desk.server.link_failed(desk.time(), first, ConnectError::Refused);
    desk.turn();
    let (second, _) = desk.link();
    desk.link_opens(second);
    let asked = String::from_utf8(desk.asked.remove(&second).unwrap()).unwrap();
    assert!(asked.starts_with("GET /movie/a/b/2.mp4 HTTP/1.1\r\nHost: q.example\r\n"), "{asked}");
}

/// The address of the media playlist that an index names, as a player resolves it.
fn media_playlist(index: &str, asked: &str) -> String {
    assert!(index.starts_with("HTTP/1.1 200 OK\r\n"), "{index}");
    let name = content(index).lines().find(|line| line.contains("media.m3u8?v=")).expect("a playlist").to_owned();
    let base: url::Url = format!("http://h{asked}").parse().unwrap();
    let address = base.join(&name).unwrap();
    format!("{}?{}", address.path(), address.query().unwrap())
}

#[test]
fn a_stream_plays_as_hls_and_a_player_that_was_paused_comes_back() {
    let mut desk = desk(2, Settings::default());
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    for asked in [format!("/live/anna/x/{}.m3u8", desk.id_of("S0")), format!("/anna/x/{}.m3u8", desk.id_of("S1"))] {
        let conn = desk.connect();
        desk.send(conn, get(&asked));
        let address = media_playlist(&desk.read(conn), &asked);
        assert!(desk.links.is_empty(), "no provider is asked for an index");
        desk.send(conn, get(&address));
        let (link, _) = desk.link();
        desk.link_opens(link);
        desk.link_says(link, OK);
        desk.link_says(link, media(250));
        let list = desk.read(conn);
        let segment = content(&list).lines().find(|line| line.starts_with("segment-")).expect("a segment").to_owned();
        let (directory, _) = address.rsplit_once('/').unwrap();
        let segment = format!("{directory}/{segment}");
        let head = desk.ask(&format!("HEAD {segment} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        // It asks for nothing until nobody is there any more, and then for the same address.
        desk.run(desk.now + 60_000);
        assert_eq!((desk.links.len(), desk.server.edge().playback().playbacks().count()), (0, 0));
        let head = desk.ask(&format!("HEAD {segment} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 410 "), "{head}");
        let again = desk.connect();
        desk.send(again, get(&address));
        let (link, _) = desk.link();
        desk.link_opens(link);
        desk.link_says(link, OK);
        desk.link_says(link, media(250));
        assert!(content(&desk.read(again)).contains("segment-"), "under the address that it has");
        assert_eq!(desk.server.edge().playback().playbacks().count(), 1);
        desk.run(desk.now + 60_000);
        assert!(desk.links.is_empty());
    }
    for wrong in ["/live/~1/media.m3u8?v=00", "/live/~/media.m3u8", "/live/~01/index.m3u8", "/live/~x/segment-1.ts"] {
        let answer = desk.ask(&get(wrong));
        assert!(answer.starts_with("HTTP/1.1 404 ") || answer.starts_with("HTTP/1.1 410 "), "{wrong}: {answer}");
    }
}

/// The link that was asked for after `before`, opened, if there is one.
fn next_link(desk: &mut Desk, before: Option<LinkId>) -> Option<LinkId> {
    let link = desk.links.last().map(|(link, _)| *link).filter(|link| Some(*link) != before)?;
    desk.link_opens(link);
    Some(link)
}

/// A user who may play one thing zaps to a stream, at a provider that still counts what was `closed` 1.5 s after that and answers
/// with this status meanwhile. How often it was asked, and what the player was told.
fn zaps(desk: &mut Desk, (name, closed, status): (&str, Option<u64>, u16)) -> (ConnId, usize, String) {
    let (mut last, mut asked, mut told) = (desk.links.last().map(|(link, _)| *link), 0, String::new());
    let conn = plays(desk, "anna", name);
    for _ in 0..400 {
        if let Some(link) = next_link(desk, last) {
            (last, asked) = (Some(link), asked + 1);
            if closed.is_some_and(|closed| desk.now < closed + 1_500) {
                desk.link_says(link, format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"));
            } else {
                desk.link_says(link, OK);
                desk.link_says(link, Encoder::new().encode(12));
            }
        }
        told += &desk.read(conn);
        if !told.is_empty() {
            break;
        }
        desk.run(desk.now + 10);
    }
    (conn, asked, told)
}

fn zapper(streams: usize) -> Desk {
    let own = ProviderSettings { guide: Guide::None, ..provider("http://p.example/x.m3u", &[("a", "b")]) };
    let anna = User { name: "anna".into(), max_connections: 1, ..User::default() };
    let mut desk = desk_of(vec![own], vec![anna], Settings::default());
    let entry = |n| format!("#EXTINF:-1 group-title=\"News\",S{n}\nhttp://l.example/live/a/b/{n}.ts\n");
    desk.serves(format!("#EXTM3U\n{}", (0..streams).map(entry).collect::<String>()));
    desk
}

#[test]
fn zapping_goes_on_at_a_provider_that_counts_late_whatever_it_answers() {
    for status in [401, 403, 429, 456, 458, 503, 509] {
        let mut desk = zapper(4);
        let (mut conn, _, told) = zaps(&mut desk, ("S0", None, 200));
        assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
        desk.notes.clear();
        for (zap, name) in ["S1", "S2", "S3"].into_iter().enumerate() {
            desk.run(desk.now + 1_000);
            leaves(&mut desk, conn);
            let closed = desk.now;
            let (next, asked, told) = zaps(&mut desk, (name, Some(closed), status));
            assert!(told.starts_with("HTTP/1.1 200 "), "{status}, {name}: {told}");
            assert!(
                if zap == 0 { (2..=5).contains(&asked) } else { asked == 1 },
                "{status}, {name}: asked {asked} times"
            );
            conn = next;
        }
        let late = desk.notes.iter().filter(|note| matches!(note, Note::AccountLate { .. })).count();
        let lost = desk.notes.iter().filter(|note| matches!(note, Note::AccountLost { .. } | Note::SourceLost { .. }));
        assert_eq!((late, lost.count()), (1, 0), "{status}: {:?}", desk.notes);
    }
}

#[test]
fn a_limit_that_does_not_end_is_told_as_one_to_the_player_and_to_the_operator() {
    // What may be a limit, and is not said to be one, is told as what was said.
    let (limit, forbidden) = (RefuseReason::ProviderLimit, RefuseReason::NoSource);
    for (status, code, why, lost) in
        [(403, 502, forbidden, Loss::Forbidden), (429, 503, limit, Loss::Limit), (503, 503, limit, Loss::Limit)]
    {
        let mut desk = zapper(2);
        let (conn, ..) = zaps(&mut desk, ("S0", None, 200));
        desk.run(desk.now + 1_000);
        leaves(&mut desk, conn);
        desk.notes.clear();
        let start = desk.now;
        let (_, asked, told) = zaps(&mut desk, ("S1", Some(start + 60_000), status));
        assert!(told.starts_with(&format!("HTTP/1.1 {code} ")) && told.contains(why.as_str()), "{status}: {told}");
        assert!(told.contains("\r\nRetry-After: ") && asked == 5, "{status}: {told}");
        assert!((2_000..2_200).contains(&(desk.now - start)), "{status}: {}", desk.now - start);
        let told = |note: &&Note| matches!(note, Note::SourceLost { loss, lasted: 1_900_000.., .. } if *loss == lost);
        assert_eq!(desk.notes.iter().filter(told).count(), 1, "{status}: {:?}", desk.notes);
        // Who could not watch what, and why.
        let refused = desk.notes.iter().find(|note| matches!(note, Note::PlaybackRefused { .. })).cloned();
        let Some(Note::PlaybackRefused { user: UserId(0), client, reason, .. }) = refused else {
            panic!("{status}: {:?}", desk.notes)
        };
        assert_eq!((client.address.to_string().as_str(), reason), ("127.0.0.1", why));
        let about = desk.server.about(&refused.unwrap());
        assert_eq!((about.title.as_deref(), about.from.as_deref()), (Some("S1"), Some("127.0.0.1")));
        let counted = format!("holdfast_user_playbacks_refused_total{{user=\"anna\",reason=\"{}\"}}", why.as_str());
        assert_eq!(desk.metric(&counted), Some(1));
    }
}
