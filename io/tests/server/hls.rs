//! What players get that poll.

use std::time::Duration;

use holdfast_core::config::{Channel, Config, Endpoint, Live};
use holdfast_core::input::{FeedId, SessionId, ViewerEnd};
use holdfast_io::origin::Origin;
use holdfast_io::server::{Action, ConnId, Limits, Settings};

use crate::channels::media as media_of_an_origin;
use crate::desk::{Desk, header, limited};

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn feed(desk: &Desk) -> FeedId {
    desk.server.edge().feeds().feeds().next().unwrap()
}

fn viewers(desk: &Desk) -> usize {
    desk.server.edge().feeds().viewer_count()
}

/// Key frames every 500 ms from now until `until`.
fn publish(desk: &mut Desk, session: SessionId, until: u64) {
    while desk.now < until {
        let now = desk.now;
        desk.run_alive(&[session], now + 500);
        desk.video(session, (desk.now * 1000) as i64);
    }
}

/// The address of the media playlist, from the answer to a request for the index.
fn media(index: &str) -> String {
    assert!(index.starts_with("HTTP/1.1 200 OK\r\n"), "{index}");
    let name = body(index).lines().find(|line| line.starts_with("media.m3u8?v=")).expect("a media playlist");
    format!("/live/live/{name}")
}

fn segments(playlist: &str) -> Vec<String> {
    let lines = body(playlist).lines().filter(|line| line.starts_with("segment-"));
    lines.map(|line| format!("/live/live/{line}")).collect()
}

fn bytes(desk: &mut Desk, connection: ConnId, path: &str) -> (String, Vec<u8>) {
    desk.send(connection, get(path));
    let answer = desk.written.remove(&connection).unwrap();
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    (String::from_utf8(answer[..head].to_vec()).unwrap(), answer[head..].to_vec())
}

#[test]
fn a_player_gets_an_index_a_playlist_and_segments_out_of_the_ring() {
    let mut desk = Desk::simple();
    let (session, _) = desk.publish();
    publish(&mut desk, session, 9_000);
    let index = desk.ask(&get("/live/live/index.m3u8"));
    assert_eq!(header(&index, "Content-Type").as_deref(), Some("application/vnd.apple.mpegurl"));
    assert_eq!(header(&index, "Cache-Control").as_deref(), Some("no-cache, no-store"));
    assert_eq!(header(&index, "Access-Control-Allow-Origin").as_deref(), Some("*"));
    let playlist = desk.ask(&get(&media(&index)));
    assert_eq!(header(&playlist, "Content-Type").as_deref(), Some("application/vnd.apple.mpegurl"));
    assert!(body(&playlist).contains("\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:0\n"), "{playlist}");
    assert_eq!(body(&playlist).matches("#EXTINF:2.000000,\n").count(), 4, "{playlist}");
    assert!(!playlist.contains("ENDLIST") && !playlist.contains("DISCONTINUITY\n"), "{playlist}");
    // All segments on one connection, one after the other, are the stream.
    let connection = desk.connect();
    let mut stream = Vec::new();
    for path in segments(&playlist) {
        let (head, content) = bytes(&mut desk, connection, &path);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(header(&head, "Content-Type").as_deref(), Some("video/mp2t"));
        assert_eq!(header(&head, "Cache-Control").as_deref(), Some("max-age=30, immutable"));
        assert_eq!(header(&head, "Content-Length"), Some(content.len().to_string()));
        assert_eq!((content.len() % 188, content[0]), (0, 0x47));
        let pid = u16::from_be_bytes([content[1] & 0x1f, content[2]]);
        assert_eq!(pid, 0, "it begins with the tables");
        stream.extend(content);
    }
    let feeds = desk.server.edge().feeds();
    let ring: Vec<u8> = feeds.bytes(feed(&desk), 0, stream.len() as u64).unwrap().flatten().copied().collect();
    assert!(ring == stream, "not a byte is missing or changed");
    assert!(!desk.closed.contains(&connection));
    assert_eq!(viewers(&desk), 1, "one viewer on whatever connections");
}

#[test]
fn a_range_is_answered_whole_and_head_without_content() {
    let mut desk = Desk::simple();
    let (session, _) = desk.publish();
    publish(&mut desk, session, 5_000);
    let index = desk.ask(&get("/live/live/1/index.m3u8"));
    let media = media(&index);
    let playlist = desk.ask(&get(&media));
    let path = &segments(&playlist)[0];
    let ranged = format!("GET {path} HTTP/1.1\r\nHost: h\r\nRange: bytes=0-\r\n\r\n");
    let answer = desk.ask(&ranged);
    assert!(answer.starts_with("HTTP/1.1 200 ") && header(&answer, "Content-Range").is_none(), "{answer}");
    let connection = desk.connect();
    for _ in 0..2 {
        desk.send(connection, format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let head = desk.read(connection);
        assert_eq!(header(&head, "Content-Length"), header(&answer, "Content-Length"));
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }
    let before = viewers(&desk);
    for path in ["/live/live/index.m3u8", &media] {
        let head = desk.ask(&format!("HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 200 ") && body(&head).is_empty(), "{head}");
        let options = desk.ask(&format!("OPTIONS {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(options.starts_with("HTTP/1.1 204 "), "{options}");
        let post = desk.ask(&format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
        assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
    }
    assert_eq!(viewers(&desk), before, "nobody is counted for looking");
}

#[test]
fn a_player_that_comes_first_is_held_for_the_first_segment() {
    let mut desk = Desk::simple();
    let media = media(&desk.ask(&get("/live/live/index.m3u8")));
    let player = desk.connect();
    desk.send(player, get(&media));
    assert_eq!(desk.read(player), "");
    let (session, _) = desk.publish();
    publish(&mut desk, session, 2_000);
    assert_eq!(desk.read(player), "", "no playlist without a segment");
    publish(&mut desk, session, 2_500);
    let playlist = desk.read(player);
    assert_eq!(segments(&playlist).len(), 1, "{playlist}");
}

#[test]
fn a_player_without_a_publisher_is_told_in_time() {
    let mut desk = Desk::simple();
    let media = media(&desk.ask(&get("/live/live/index.m3u8")));
    let player = desk.connect();
    desk.send(player, get(&media));
    desk.run(7_999);
    assert_eq!(desk.read(player), "");
    desk.run(8_000);
    let answer = desk.read(player);
    assert!(answer.starts_with("HTTP/1.1 504 ") && header(&answer, "Retry-After").is_some(), "{answer}");
    // One that hangs up is not answered later.
    let player = desk.connect();
    desk.send(player, get(&media));
    desk.server.closed(desk.time(), player);
    assert_eq!(desk.server.edge().feeds().held(), 0);
    desk.run(30_000);
    assert_eq!((desk.read(player), viewers(&desk)), (String::new(), 0));
}

#[test]
fn whoever_begins_is_a_viewer_and_nobody_for_the_index_alone() {
    let mut desk = Desk::simple();
    let (session, _) = desk.publish();
    publish(&mut desk, session, 5_000);
    let first = media(&desk.ask(&get("/live/live/index.m3u8")));
    let second = media(&desk.ask(&get("/live/live/index.m3u8")));
    assert_ne!(first, second);
    assert_eq!(viewers(&desk), 0, "mpv asks twice, and whoever probes for nothing else");
    assert!(desk.ask(&get(&second)).starts_with("HTTP/1.1 200 "));
    assert_eq!(viewers(&desk), 1);
    assert!(desk.ask(&get(&first)).starts_with("HTTP/1.1 200 "), "it was another player behind the same address");
    assert_eq!(viewers(&desk), 2);
    let third = media(&desk.ask(&get("/live/live/index.m3u8")));
    assert_eq!(viewers(&desk), 2);
    assert!(desk.ask(&get(&third)).starts_with("HTTP/1.1 200 "));
    assert_eq!(viewers(&desk), 3);
}

#[test]
fn a_player_that_was_paused_comes_back_under_its_address() {
    let mut desk = Desk::simple();
    let (session, _) = desk.publish();
    publish(&mut desk, session, 5_000);
    let media = media(&desk.ask(&get("/live/live/index.m3u8")));
    let old = segments(&desk.ask(&get(&media)));
    publish(&mut desk, session, 17_500);
    assert_eq!(viewers(&desk), 0);
    assert!(desk.ask(&get(&old[0])).starts_with("HTTP/1.1 410 "), "whoever is not counted gets no media");
    let playlist = desk.ask(&get(&media));
    assert!(playlist.starts_with("HTTP/1.1 200 "), "{playlist}");
    assert_eq!(viewers(&desk), 1);
    let path = segments(&playlist).pop().unwrap();
    assert!(desk.ask(&get(&path)).starts_with("HTTP/1.1 200 "));
    let status = desk.server.edge().feeds().status(desk.time(), feed(&desk)).unwrap();
    assert_eq!((status.polling, status.ends.of(ViewerEnd::Left)), (1, 1));
}

#[test]
fn wrong_addresses_are_told_what_is_wrong() {
    let mut desk = Desk::new(Endpoint { slots: 2, ..Endpoint::default() }, Settings::default());
    let (session, _) = desk.publish();
    publish(&mut desk, session, 5_000);
    let index = desk.ask(&get("/live/live/index.m3u8"));
    let media = media(&index);
    assert!(desk.ask(&get(&media)).starts_with("HTTP/1.1 200 "));
    let token = media.rsplit_once('=').unwrap().1;
    for path in
        ["/live/other/index.m3u8", "/live/live/3/index.m3u8", "/live/live/01/index.m3u8", "/live/live/index.m3u"]
    {
        assert!(desk.ask(&get(path)).starts_with("HTTP/1.1 404 "), "{path}");
    }
    for query in ["", "?v=", "?v=1", &format!("?v={}", token.to_uppercase().replace('0', "G"))] {
        let answer = desk.ask(&get(&format!("/live/live/media.m3u8{query}")));
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("index.m3u8"), "{answer}");
    }
    let of_another = desk.ask(&get(&format!("/live/live/2/media.m3u8?v={token}")));
    assert!(of_another.starts_with("HTTP/1.1 404 "), "{of_another}");
    for (path, status) in [("segment-0.ts", 410), ("2/segment-0.ts?v=TOKEN", 410), ("segment-9.ts?v=TOKEN", 404)] {
        let answer = desk.ask(&get(&format!("/live/live/{}", path.replace("TOKEN", token))));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
    assert_eq!(viewers(&desk), 1);
}

#[test]
fn numbers_begin_with_the_time_of_the_start_so_that_they_go_on_after_a_restart() {
    let mut desk = Desk::new(Endpoint::default(), Settings { epoch: 1_700_000_000, ..Settings::default() });
    let (session, _) = desk.publish();
    publish(&mut desk, session, 5_000);
    // A token from before the restart.
    let playlist = desk.ask(&get("/live/live/media.m3u8?v=00000000000000000000000000000007"));
    assert!(playlist.contains("#EXT-X-MEDIA-SEQUENCE:1700000000\n"), "{playlist}");
    assert!(segments(&playlist)[0].starts_with("/live/live/segment-1700000000.ts?v="));
    assert!(desk.ask(&get(&segments(&playlist)[0])).starts_with("HTTP/1.1 200 "));
    assert_eq!(viewers(&desk), 1);
}

#[test]
fn a_reader_that_the_ring_overtakes_is_cut_off_and_one_that_stops_is_timed_out() {
    let limits = Limits { idle_timeout: Duration::from_secs(500), ..Limits::default() };
    let live = Live { buffer: 20_000, ..Live::default() };
    let config = Config { endpoints: vec![Endpoint::default()], live, ..Config::default() };
    let mut desk = Desk::open(config, limited(limits));
    let (session, _) = desk.publish();
    publish(&mut desk, session, 5_000);
    let media = media(&desk.ask(&get("/live/live/index.m3u8")));
    let path = segments(&desk.ask(&get(&media)))[0].clone();
    desk.writable = false;
    let (slow, stuck) = (desk.connect(), desk.connect());
    desk.send(slow, get(&path));
    desk.send(stuck, get(&path));
    // It takes the head and a little, and then nothing until its segment is gone.
    let now = desk.time();
    desk.server.transmit(now, slow, &mut |pieces| Ok(pieces[0].len() + 188)).unwrap();
    while desk.server.edge().feeds().segment(feed(&desk), 0).is_some() {
        let now = desk.now;
        publish(&mut desk, session, now + 500);
    }
    assert!(!desk.closed.contains(&slow));
    desk.writable = true;
    let now = desk.time();
    desk.server.transmit(now, slow, &mut |_| panic!("nothing of it is left")).unwrap();
    assert!(matches!(desk.server.poll(), Some(Action::Close(id)) if id == slow));
    let now = desk.now;
    publish(&mut desk, session, now + 31_000);
    assert!(desk.closed.contains(&stuck), "no write for `write_timeout`");
}

#[test]
fn places_are_shared_with_viewers_of_the_stream() {
    let live = Live { viewers: 2, ..Live::default() };
    let mut desk =
        Desk::open(Config { endpoints: vec![Endpoint::default()], live, ..Config::default() }, Settings::default());
    let stream = desk.connect();
    desk.send(stream, get("/live/live.ts"));
    let [media, other] = [(); 2].map(|()| media(&desk.ask(&get("/live/live/index.m3u8"))));
    let held = desk.connect();
    desk.send(held, get(&media));
    let refused = desk.ask(&get(&other));
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("too-many-viewers"), "{refused}");
    assert_eq!(viewers(&desk), 2);
    let status = desk.status();
    assert_eq!(status["endpoints"][0]["slots"][0]["viewers"], 2);
    desk.server.drain(desk.time());
    desk.turn();
    let answer = desk.read(held);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("draining"), "{answer}");
    assert_eq!((viewers(&desk), desk.server.edge().feeds().held()), (0, 0));
}

/// A server with one channel, a player that asked for its media playlist, and the address of that.
fn channel() -> (Desk, ConnId, String) {
    let channel = Channel { name: "news".into(), idle_timeout: Duration::from_secs(5), ..Channel::default() };
    let config = Config { channels: vec![channel], ..Config::default() };
    let origin = Origin::parse("http://192.0.2.1/a.ts").unwrap();
    let mut desk = Desk::open(config, Settings { origins: vec![vec![origin]], ..Settings::default() });
    let player = desk.connect();
    desk.send(player, get("/live/news/index.m3u8"));
    let address = media(&desk.read(player)).replace("/live/live/", "/live/news/");
    assert_eq!(desk.links.len(), 0, "no origin is asked for an index");
    desk.send(player, get(&address));
    assert_eq!((desk.read(player), desk.links.len()), (String::new(), 1), "held while its origin is asked");
    (desk, player, address)
}

fn origin_says(desk: &mut Desk, data: impl AsRef<[u8]>) {
    let (now, link) = (desk.time(), desk.links[0].0);
    desk.server.link_received(now, link, data.as_ref());
    desk.turn();
}

#[test]
fn a_channel_whose_origin_cannot_be_had_is_refused() {
    let (mut desk, player, _) = channel();
    desk.run(20_000);
    let refused = desk.read(player);
    assert!(refused.starts_with("HTTP/1.1 50") && header(&refused, "Retry-After").is_some(), "{refused}");
    assert_eq!(viewers(&desk), 0);
}

#[test]
fn a_player_keeps_a_channel_and_p6_a_silent_origin_ends_its_list() {
    let (mut desk, player, address) = channel();
    let (now, link) = (desk.time(), desk.links[0].0);
    desk.server.link_connected(now, link, "192.0.2.1:80".parse().unwrap());
    desk.turn();
    origin_says(&mut desk, "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n");
    origin_says(&mut desk, media_of_an_origin(250));
    let first = desk.read(player);
    assert_eq!(segments(&first).len(), 4, "ten seconds, of which the last two are not over: {first}");
    // Nothing more comes, and the connection stands.
    let mut now = 0;
    while now < 56_000 {
        now += 4_000;
        desk.run(now);
        assert_eq!(body(&desk.ask(&get(&address))), body(&first), "it may go on");
        assert!(desk.links.iter().any(|(open, _)| *open == link), "a viewer that polls keeps the channel, too");
    }
    desk.run(60_500);
    assert_eq!(viewers(&desk), 0, "nothing has come for `idle`");
    let player = desk.connect();
    desk.send(player, get(&address));
    assert_eq!(desk.read(player), "", "no old list");
    desk.run(71_000);
    let answer = desk.read(player);
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    // Media comes back on the same connection, and so does the player.
    desk.send(player, get(&address));
    origin_says(&mut desk, media_of_an_origin(250));
    let again = desk.read(player);
    assert!(body(&again).contains("#EXT-X-DISCONTINUITY\n#EXTINF:"), "{again}");
    assert!(segments(&again).iter().all(|path| !segments(&first).contains(path)), "{again}");
    assert_eq!(viewers(&desk), 1);
    desk.run(90_000);
    assert_eq!((viewers(&desk), desk.links.len()), (0, 0), "whoever polls no more keeps nothing");
}
