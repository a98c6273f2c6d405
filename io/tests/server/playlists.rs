//! Playlists of providers, and what they name.

use holdfast_core::config::Strategy;
use holdfast_io::server::ConnId;

use crate::desk::{Desk, header};
use crate::titles::{body, desk, desk_for_a_day, desk_of_one_place, status_of};

const LIVE: &str = "/live/anna/anna-secret/151514632.m3u8";

/// Asks for a playlist, which the provider has at this address and answers with this; the connection, and what came of it.
fn playlist(desk: &mut Desk, path: &str, content: &str) -> (ConnId, String) {
    let client = desk.wants(path, "Range: bytes=0-\r\n");
    let (link, asked) = desk.asked_of_provider();
    assert!(!asked.contains("Range"), "{asked}");
    let length = content.len();
    desk.link_says(
        link,
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/x-mpegurl\r\nContent-Length: {length}\r\n\r\n{content}"),
    );
    assert!(desk.links.is_empty());
    let answer = desk.read(client);
    assert_eq!(header(&answer, "Content-Type").as_deref(), Some("application/vnd.apple.mpegurl"), "{answer}");
    (client, answer)
}

/// The addresses in a playlist that was at this path, as paths.
fn addresses(path: &str, answer: &str) -> Vec<String> {
    let base = url::Url::parse("http://edge.example").unwrap().join(path).unwrap();
    let named = |line: &str| match line.split_once("URI=\"") {
        Some((_, rest)) => rest.split('"').next().map(str::to_owned),
        None => (!line.starts_with('#')).then(|| line.to_owned()),
    };
    body(answer).lines().filter_map(named).map(|name| base.join(&name).unwrap().path().to_owned()).collect()
}

const MEDIA: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-KEY:METHOD=AES-128,URI=\"key.bin\"\n\
                     #EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:4,\nhttp://cdn.example/secret/7.ts\n#EXTINF:4,\n8.ts?a=b\n";

#[test]
fn a_live_playlist_leads_here_and_nowhere_else() {
    let mut desk = desk();
    // It is asked for again and again, at an address that says which playback that is.
    let (client, index) = playlist(&mut desk, LIVE, MEDIA);
    let media = addresses(LIVE, &index);
    assert!(index.contains("#EXT-X-STREAM-INF") && media.len() == 1 && media[0].starts_with("/hls/"), "{index}");
    assert!(!desk.closed.contains(&client));
    let (_, list) = playlist(&mut desk, &media[0], MEDIA);
    assert!(body(&list).starts_with("#EXTM3U\n") && !list.contains("example"), "{list}");
    let parts = addresses(&media[0], &list);
    assert_eq!(parts.len(), 4, "{list}");
    let (_, again) = playlist(&mut desk, &media[0], MEDIA);
    assert_eq!(body(&again), body(&list), "segments keep their names");
    for (part, host, path) in [
        (&parts[0], "provider.example", "/live/name/secret/key.bin"),
        (&parts[1], "provider.example", "/live/name/secret/init.mp4"),
        (&parts[2], "cdn.example", "/secret/7.ts"),
        (&parts[3], "provider.example", "/live/name/secret/8.ts?a=b"),
    ] {
        let client = desk.wants(part, "Range: bytes=0-\r\n");
        assert_eq!(desk.link().1.host, host);
        let (link, asked) = desk.asked_of_provider();
        assert!(asked.starts_with(&format!("GET {path} HTTP/1.1\r\n")) && !asked.contains("Range"), "{asked}");
        assert!(asked.contains("\r\nUser-Agent: VLC\r\n"), "{asked}");
        desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(body(&desk.read(client)), "abc");
        assert!(desk.links.is_empty());
    }
    let client = desk.wants(&parts[0], "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(status_of(&desk.read(client)), 400, "V7");
}

/// The path of a stream, as Anna's list has it.
fn listed(desk: &mut Desk, name: &str) -> String {
    let list = desk.ask("GET /get.php?username=anna&password=anna-secret&output=m3u8 HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut lines = body(&list).lines();
    lines.find(|line| line.ends_with(&format!(",{name}"))).unwrap_or_else(|| panic!("{name}: {list}"));
    lines.next().and_then(|url| url.strip_prefix("http://h")).unwrap().to_owned()
}

#[test]
fn a_player_of_hls_changes_channels_with_one_account_and_one_place_and_an_operator_sees_for_whom_it_is_kept() {
    let mut desk = desk_of_one_place(&[Strategy::EvictSameIpOldest]);
    let film = listed(&mut desk, "Film");
    let film = desk.wants(&film, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\nabc");
    let mut last: Option<String> = None;
    for name in ["One", "Two", "One"] {
        let path = listed(&mut desk, name);
        let (_, index) = playlist(&mut desk, &path, MEDIA);
        assert!(desk.closed.contains(&film), "{name}");
        let media = addresses(&path, &index);
        let (_, list) = playlist(&mut desk, &media[0], MEDIA);
        let part = addresses(&media[0], &list).pop().unwrap();
        let client = desk.wants(&part, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(body(&desk.read(client)), "abc");
        if let Some(before) = last.replace(part) {
            let late = desk.wants(&before, "");
            assert_eq!(status_of(&desk.read(late)), 403, "what it watched before is over");
        }
        desk.run(desk.now + 4_000);
        let account = desk.status()["providers"][0]["accounts"][0].clone();
        assert_eq!((&account["used"], &account["reserved"]), (&0.into(), &1.into()), "{account}");
        let kept = &account["reservations"][0];
        assert_eq!((&kept["title"], &kept["users"]), (&name.into(), &serde_json::json!(["anna"])), "{account}");
        assert_eq!((&kept["kind"], &kept["state"]), (&"hls".into(), &"preserved".into()), "{account}");
        assert_eq!((&kept["age_ms"], &kept["left_ms"]), (&4_000.into(), &11_000.into()), "{account}");
        let users = "holdfast_account_users{provider=\"provider\",account=\"1\",user=\"anna\",state=\"reserved\"}";
        assert_eq!(desk.metric(users), Some(1));
    }
}

#[test]
fn a_playlist_that_its_users_other_playback_keeps_out_is_told_so() {
    let mut desk = desk_of_one_place(&[]);
    let film = listed(&mut desk, "Film");
    desk.wants(&film, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\nabc");
    let index = listed(&mut desk, "One");
    let index = desk.wants(&index, "");
    let answer = desk.read(index);
    assert!(status_of(&answer) == 503 && answer.contains("user-limit"), "{answer}");
}

#[test]
fn a_playlist_is_read_where_it_is_in_the_end() {
    let mut desk = desk();
    let client = desk.wants(LIVE, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 302 Found\r\nLocation: http://edge.example/deep/live.m3u8?token=1\r\n\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/a.m3u8\n");
    desk.link_ends(link);
    let index = desk.read(client);
    let variants = addresses(LIVE, &index);
    desk.wants(&variants[0], "");
    let (_, asked) = desk.asked_of_provider();
    assert!(asked.starts_with("GET /deep/low/a.m3u8 HTTP/1.1\r\nHost: edge.example\r\n"), "{asked}");
}

#[test]
fn low_latency_is_not_promised() {
    let mut desk = desk();
    let content = format!(
        "#EXTM3U\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0,HOLD-BACK=9\n#EXT-X-PART-INF:PART-TARGET=0.3\n{}\
         #EXT-X-PART:DURATION=0.3,URI=\"9.0.ts\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"9.1.ts\"\n",
        MEDIA.strip_prefix("#EXTM3U\n").unwrap()
    );
    let (_, index) = playlist(&mut desk, LIVE, &content);
    let media = addresses(LIVE, &index);
    let (_, list) = playlist(&mut desk, &media[0], &content);
    assert!(list.contains("#EXT-X-SERVER-CONTROL:HOLD-BACK=9\n"), "{list}");
    assert!(!list.contains("PART") && !list.contains("CAN-BLOCK-RELOAD"), "{list}");
    assert_eq!(addresses(&media[0], &list).len(), 4);
}

#[test]
fn what_is_no_playlist_is_not_passed_on() {
    for (fields, content) in [
        ("", "<html>"),
        ("", ""),
        ("Content-Encoding: gzip\r\n", "\u{1f}\u{8b}"),
        ("", "#EXTM3U\n#EXTINF:4,\nhttp://169.254.169.254/latest\n"),
        ("", "#EXTM3U\n#EXTINF:4,\nfile:///etc/passwd\n"),
    ] {
        let mut desk = desk();
        let client = desk.wants(LIVE, "");
        let (link, _) = desk.asked_of_provider();
        desk.link_says(link, format!("HTTP/1.1 200 OK\r\n{fields}\r\n{content}"));
        if !desk.links.is_empty() {
            desk.link_ends(link);
        }
        let told = desk.read(client);
        assert_eq!(status_of(&told), 502, "{content}: {told}");
        assert!(desk.links.is_empty());
    }
}

#[test]
fn a_playlist_without_an_end_is_not_read_to_its_end() {
    let mut desk = desk();
    let client = desk.wants(LIVE, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n");
    let mut sent = 0;
    while !desk.links.is_empty() && sent < 64 << 20 {
        desk.link_says(link, vec![b'#'; 64 * 1024]);
        sent += 64 * 1024;
    }
    assert!(sent <= 9 << 20, "{sent}");
    assert_eq!(status_of(&desk.read(client)), 502);
    desk.run(desk.now + 1_000);
    let client = desk.wants(LIVE, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n");
    desk.run(desk.now + 9_000);
    desk.link_says(link, "#\n");
    desk.run(desk.now + 1_000);
    assert_eq!(status_of(&desk.read(client)), 504, "a byte now and then does not help");
}

#[test]
fn addresses_that_were_not_given_out_here_lead_nowhere() {
    let mut desk = desk();
    let (_, index) = playlist(&mut desk, LIVE, MEDIA);
    let own = addresses(LIVE, &index).remove(0);
    let letter = own.chars().nth(20).unwrap();
    let forged = own.replacen(letter, if letter == 'A' { "B" } else { "A" }, 1);
    for (path, status) in [
        ("/hls/", 403),
        ("/hls/x.ts", 403),
        (&own[..own.len() / 2], 403),
        (forged.as_str(), if forged.starts_with("/hls/") { 403 } else { 404 }),
        ("/hls/a%20b", 400),
        ("/hls/a%00", 400),
        ("/hls/..%2f..%2fetc", 400),
        ("/hls/http:", 400),
    ] {
        let answer = desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(status_of(&answer), status, "{path}: {answer}");
        assert!(desk.links.is_empty());
    }
}

const HOURS: u64 = 3_600_000;

#[test]
fn an_address_lasts_for_six_hours_and_as_long_as_its_playback() {
    let mut desk = desk_for_a_day();
    let (_, index) = playlist(&mut desk, LIVE, MEDIA);
    let media = addresses(LIVE, &index).remove(0);
    let fetch = format!("GET {media} HTTP/1.1\r\nHost: h\r\n\r\n");
    // A film of four hours that is paused for one.
    desk.run(5 * HOURS);
    let (_, list) = playlist(&mut desk, &media, MEDIA);
    let part = addresses(&media, &list).remove(2);
    let client = desk.wants(&part, "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(status_of(&desk.read(client)), 200);
    while desk.now < 7 * HOURS {
        desk.run(desk.now + 14_000);
        let (_, list) = playlist(&mut desk, &media, MEDIA);
        assert_eq!(status_of(&list), 200, "at {}: {list}", desk.now);
    }
    desk.run(desk.now + 16_000);
    assert_eq!(status_of(&desk.ask(&fetch)), 403, "its playback is over");
    assert!(desk.links.is_empty());
}

#[test]
fn an_address_is_of_no_use_to_whoever_logs_in_as_somebody_else() {
    let mut desk = desk();
    let (_, index) = playlist(&mut desk, LIVE, MEDIA);
    let media = addresses(LIVE, &index).remove(0);
    for (login, status) in [
        ("?username=ben&password=ben-secret", 403),
        ("?username=anna&password=wrong", 403),
        ("?username=anna&password=anna-secret", 200),
        ("", 200),
    ] {
        let path = format!("{media}{login}");
        let answer = match status {
            200 => playlist(&mut desk, &path, MEDIA).1,
            _ => desk.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")),
        };
        assert_eq!(status_of(&answer), status, "{login}: {answer}");
        assert!(status == 200 || desk.links.is_empty());
    }
}

#[test]
fn what_has_no_stream_is_beside_it_and_what_is_dash_is_elsewhere() {
    let mut desk = desk();
    let answer = desk.ask("GET /live/anna/anna-secret/151514632.ts HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((status_of(&answer), header(&answer, "Location").as_deref()), (302, Some("151514632.m3u8")));
    let answer = desk.ask("GET /movie/anna/anna-secret/534827041.mpd HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(status_of(&answer), 302, "{answer}");
    assert!(header(&answer, "Location").is_some_and(|to| to.starts_with("http://provider.example/")));
    assert!(desk.links.is_empty(), "nothing is fetched for it");
}

#[test]
fn a_recording_is_fetched_as_a_stream_or_as_a_playlist() {
    let mut desk = desk();
    for path in [
        "/timeshift/anna/anna-secret/60/2023-11-13:20-15/564845761.ts",
        "/timeshift/anna/anna-secret/60/2023-11-13%3A20-15/564845761",
        "/timeshift.php?username=anna&password=anna-secret&stream=564845761&start=2023-11-13:20-15&duration=60",
    ] {
        let client = desk.wants(path, "Range: bytes=100-\r\n");
        let (link, asked) = desk.asked_of_provider();
        assert!(asked.contains("\r\nRange: bytes=100-\r\n"), "{asked}");
        desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 100-102/103\r\n\r\nabc");
        let answer = desk.read(client);
        assert_eq!((status_of(&answer), body(&answer)), (206, "abc"));
    }
    let ended = format!("{MEDIA}#EXT-X-ENDLIST\n");
    let path = "/timeshift/anna/anna-secret/60/2023-11-13:20-15/564845761.m3u8";
    let (_, list) = playlist(&mut desk, path, &ended);
    let parts = addresses(path, &list);
    assert!(list.contains("#EXT-X-ENDLIST") && parts.len() == 4 && parts[3].starts_with("/hls/"), "{list}");
}

#[test]
fn what_a_list_of_lists_defines_is_imported_by_the_lists_that_it_names() {
    let mut desk = desk();
    let index = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"host\",VALUE=\"http://cdn.example\"\n#EXT-X-DEFINE:NAME=\"own\",VALUE=\"x\"\n\
                 #EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n";
    let (_, answer) = playlist(&mut desk, LIVE, index);
    let variants = addresses(LIVE, &answer);
    let media = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:IMPORT=\"host\"\n#EXTINF:4,\n{$host}/7.ts\n";
    for _ in 0..2 {
        let (_, list) = playlist(&mut desk, &variants[0], media);
        let parts = addresses(&variants[0], &list);
        desk.wants(&parts[0], "");
        assert_eq!(desk.link().1.host, "cdn.example", "{list}");
        let (link, asked) = desk.asked_of_provider();
        assert!(asked.starts_with("GET /7.ts HTTP/1.1\r\n"), "{asked}");
        desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
    }
    // What it does not define cannot be imported, and nobody asks for what that would lead to.
    let client = desk.wants(&variants[0], "");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("HTTP/1.1 200 OK\r\n\r\n{}", media.replace("host", "other")));
    if !desk.links.is_empty() {
        desk.link_ends(link);
    }
    assert_eq!(status_of(&desk.read(client)), 502);
}
