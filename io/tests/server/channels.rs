//! Channels that are pulled from origins, seen from the sockets.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_core::config::{Channel, Config, Endpoint};
use holdfast_core::id::Id;
use holdfast_core::input::{Loss, Note, Writer};
use holdfast_io::codec::Codec;
use holdfast_io::media::{MediaCommand, MediaEvent, Unit};
use holdfast_io::origin::Origin;
use holdfast_io::ovt;
use holdfast_io::server::{Clip, ConnId, ConnectError, LinkId, Settings, Target};
use holdfast_io::ts::{Muxer, Tracks};

use crate::desk::{Desk, header};

const GET: &str = "GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n";

/// A server with one channel of these sources, and one endpoint.
fn desk(sources: &[&str]) -> Desk {
    numbered(sources, 7)
}

fn numbered(sources: &[&str], instance: u128) -> Desk {
    let channel = Channel { name: "news".into(), sources: sources.len() as u32, ..Channel::default() };
    let config = Config { endpoints: vec![Endpoint::default()], channels: vec![channel], ..Config::default() };
    let origins = vec![sources.iter().map(|source| Origin::parse(source).unwrap()).collect()];
    Desk::open(config, Settings { origins, instance, ..Settings::default() })
}

/// An encoder: a picture each 40 ms, each tenth a key frame, and sound.
struct Encoder {
    muxer: Muxer,
    time: i64,
    /// Parameter sets before each key frame.
    sets: &'static [u8],
}

impl Encoder {
    fn new() -> Self {
        let mut muxer = Muxer::new();
        muxer.session(from(), Tracks { audio: Some(Codec::Aac), video: Some(Codec::H264) });
        Encoder { muxer, time: 0, sets: &[] }
    }

    /// The packets of the next `pictures` pictures.
    fn encode(&mut self, pictures: usize) -> Vec<u8> {
        (0..pictures).flat_map(|_| self.next()).collect()
    }

    fn next(&mut self) -> Vec<u8> {
        let key = self.time % 400_000 == 0;
        let slice = if key { 0x65 } else { 0x41 };
        let sets = if key { self.sets } else { &[] };
        let picture = [&[0, 0, 0, 1, 9, 0xf0][..], sets, &[0, 0, 0, 1, slice], &[0xab; 500]].concat();
        let mut data = Vec::new();
        for (codec, key, payload) in [(Codec::H264, key, picture), (Codec::Aac, true, adts())] {
            let (pts, dts) = (self.time, self.time);
            let unit = Unit { from: from(), codec, pts, dts, key, data: payload.into() };
            data.extend(self.muxer.push(&unit).map(|chunk| chunk.data.to_vec()).unwrap_or_default());
        }
        self.time += 40_000;
        data
    }
}

/// The packets of so many pictures, the first of which players can start with.
pub fn media(pictures: usize) -> Vec<u8> {
    Encoder::new().encode(pictures)
}

fn from() -> Writer {
    Writer::Source(Id::from_parts(0, 0))
}

fn adts() -> Vec<u8> {
    [&[0xff, 0xf1, 0x4c, 0x80, 0x02, 0x1f, 0xfc][..], &[0; 10]].concat()
}

impl Desk {
    fn watch(&mut self) -> ConnId {
        let id = self.connect();
        self.send(id, GET);
        id
    }

    /// The one link that is open.
    fn link(&self) -> (LinkId, Target) {
        assert_eq!(self.links.len(), 1, "{:?}", self.links);
        self.links[0].clone()
    }

    fn link_opens(&mut self, link: LinkId) {
        self.server.link_connected(self.time(), link, "192.0.2.1:80".parse().unwrap());
        self.turn();
    }

    fn link_says(&mut self, link: LinkId, data: impl AsRef<[u8]>) {
        self.server.link_received(self.time(), link, data.as_ref());
        self.turn();
    }

    fn link_ends(&mut self, link: LinkId) {
        self.links.retain(|(open, _)| *open != link);
        self.server.link_eof(self.time(), link);
        self.turn();
    }

    fn faults(&self) -> Vec<&str> {
        let fault = |note: &'_ Note| matches!(note, Note::SourceFault { .. });
        self.notes
            .iter()
            .filter(|note| fault(note))
            .map(|note| if let Note::SourceFault { why, .. } = note { why.as_str() } else { "" })
            .collect()
    }

    fn losses(&self) -> Vec<Loss> {
        self.notes
            .iter()
            .filter_map(|note| if let Note::SourceLost { loss, .. } = note { Some(*loss) } else { None })
            .collect()
    }
}

/// Whole packets, continuity counters continuous on each PID, and at least one packet.
fn is_whole(stream: &[u8]) {
    assert!(!stream.is_empty() && stream.len().is_multiple_of(188));
    let mut counters = BTreeMap::new();
    for packet in stream.chunks(188) {
        assert_eq!(packet[0], 0x47);
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let (has_payload, counter) = (packet[3] & 0x10 != 0, packet[3] & 0x0f);
        let before = counters.insert(pid, counter);
        assert!(!has_payload || before.is_none_or(|before: u8| (before + 1) & 0x0f == counter), "a gap on PID {pid}");
    }
}

#[test]
fn a_channel_over_http_is_asked_for_and_reaches_its_viewers() {
    let mut desk = desk(&["http://user:secret@origin.example:8080/live/a.ts?x=1"]);
    let (a, b) = (desk.watch(), desk.watch());
    let (link, target) = desk.link();
    assert_eq!(target, Target { host: "origin.example".into(), port: 8080, tls: false });
    desk.link_opens(link);
    let asked = String::from_utf8(desk.asked.remove(&link).unwrap()).unwrap();
    assert!(asked.starts_with("GET /live/a.ts?x=1 HTTP/1.1\r\nHost: origin.example:8080\r\n"), "{asked}");
    assert!(asked.contains("Via: 1.1 holdfast-"), "{asked}");
    desk.link_says(link, OK);
    assert_eq!(desk.read(a), "", "held until media comes");
    let mut encoder = Encoder::new();
    desk.link_says(link, encoder.encode(3));
    desk.run(200);
    for viewer in [a, b] {
        let answer = desk.written.remove(&viewer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        is_whole(&answer[end..]);
    }
    assert_eq!(desk.links.len(), 1, "two viewers, one connection");
}

#[test]
fn p5_half_a_packet_of_one_origin_never_meets_another() {
    let mut desk = desk(&["http://a.example/x", "http://b.example/x"]);
    let viewer = desk.watch();
    let (first, _) = desk.link();
    desk.link_says(first, OK);
    let (mut one, mut other) = (Encoder::new(), Encoder::new());
    other.encode(5);
    desk.link_says(first, one.encode(10));
    desk.now = 2_000;
    let media = one.encode(10);
    desk.link_says(first, &media[..media.len() - 100]);
    desk.links.clear();
    desk.server.link_closed(desk.time(), first);
    desk.turn();
    let (second, target) = desk.link();
    assert_eq!(target.host, "b.example");
    desk.link_says(second, OK);
    desk.link_says(second, other.encode(20));
    desk.run(2_200);
    let answer = desk.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    is_whole(&answer[end..]);
    assert!(!desk.closed.contains(&viewer));
    assert_eq!(desk.losses(), [Loss::Reset]);
}

#[test]
fn what_an_origin_answers_decides_what_it_is() {
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>";
    let gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    for (answer, loss, words) in [
        ("HTTP/1.1 404 Not Found\r\n\r\n", Loss::NotFound, "404"),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", Loss::Forbidden, "403"),
        ("HTTP/1.1 508 Loop Detected\r\n\r\n", Loss::Loop, "508"),
        ("HTTP/1.1 500 Oh\r\n\r\n", Loss::Refused, "500"),
        (html, Loss::Unusable, "a web page"),
        (gzip, Loss::Unusable, "gzip"),
        ("SSH-2.0-OpenSSH\r\n", Loss::Unusable, "not HTTP"),
        ("HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\n\r\n", Loss::Refused, "http"),
    ] {
        let mut desk = desk(&["http://user:secret@origin.example/x"]);
        let viewer = desk.watch();
        let (link, _) = desk.link();
        desk.link_opens(link);
        desk.link_says(link, answer);
        assert_eq!(desk.losses(), [loss], "{answer}");
        assert!(desk.faults().iter().any(|why| why.contains(words)), "{:?}", desk.faults());
        assert!(!format!("{:?}", desk.notes).contains("secret"));
        assert!(desk.links.is_empty(), "the link is dropped");
        let answer = desk.read(viewer);
        assert!(answer.starts_with("HTTP/1.1 502 ") && header(&answer, "Retry-After").is_some(), "{answer}");
        assert!(desk.server.sources().is_empty());
    }
}

#[test]
fn an_origin_that_cannot_be_reached_is_lost_in_the_same_way() {
    for (error, loss) in [
        (ConnectError::Refused, Loss::Unreachable),
        (ConnectError::Resolve("no such name".into()), Loss::Unresolved),
        (ConnectError::Tls("bad certificate".into()), Loss::Unreachable),
    ] {
        let mut desk = desk(&["https://origin.example/x"]);
        let viewer = desk.watch();
        let (link, target) = desk.link();
        assert_eq!((target.port, target.tls), (443, true));
        desk.links.clear();
        desk.server.link_failed(desk.time(), link, error);
        desk.turn();
        assert_eq!(desk.losses(), [loss]);
        assert!(desk.read(viewer).starts_with("HTTP/1.1 502 "));
    }
}

#[test]
fn redirects_are_followed_up_to_a_limit() {
    let mut desk = desk(&["http://origin.example/x"]);
    let viewer = desk.watch();
    for hop in 0..5 {
        let (link, _) = desk.link();
        desk.link_opens(link);
        desk.link_says(link, format!("HTTP/1.1 302 Found\r\nLocation: http://cdn{hop}.example/y\r\n\r\n"));
    }
    let (link, target) = desk.link();
    assert_eq!(target.host, "cdn4.example");
    desk.link_opens(link);
    desk.link_says(link, "HTTP/1.1 302 Found\r\nLocation: http://cdn9.example/y\r\n\r\n");
    assert_eq!(desk.losses(), [Loss::Refused]);
    assert!(desk.faults()[0].contains('5'), "{:?}", desk.faults());
    assert!(desk.read(viewer).starts_with("HTTP/1.1 502 "));
}

#[test]
fn p21_a_request_that_came_through_here_is_refused() {
    let mut desk = desk(&["http://origin.example/x"]);
    let viewer = desk.connect();
    desk.send(viewer, "GET /live/news.ts HTTP/1.1\r\nHost: h\r\nVia: 1.1 holdfast-other\r\n\r\n");
    let (link, _) = desk.link();
    desk.link_opens(link);
    let asked = String::from_utf8(desk.asked.remove(&link).unwrap()).unwrap();
    let via = header(&asked, "Via").unwrap();
    assert!(via.starts_with("1.1 holdfast-other, 1.1 holdfast-0"), "the servers on the way are named: {via}");
    let again = desk.ask(&format!("GET /live/news.ts HTTP/1.1\r\nHost: h\r\nVia: {via}\r\n\r\n"));
    assert!(again.starts_with("HTTP/1.1 508 "), "{again}");
}

#[test]
fn an_origin_of_ovenmediaengine_is_talked_to_as_one_of_its_edges() {
    let mut desk = desk(&["ovt://origin.example/app/stream"]);
    let viewer = desk.watch();
    let (link, target) = desk.link();
    assert_eq!(target, Target { host: "origin.example".into(), port: 9000, tls: false });
    desk.link_opens(link);
    let mut origin = ovt::Origin::new(ovt::OriginSettings::default(), ovt::UnixMillis(0));
    let video = ovt::Media::Video(ovt::Picture { width: 640, height: 360, framerate: 25.0 });
    let track = ovt::Track {
        id: 1,
        name: "video".into(),
        codec: Codec::H264,
        timebase: ovt::Timebase::new(1, 90_000).unwrap(),
        bitrate: 1_000_000,
        media: video,
        decoder_config: Some(Bytes::from_static(&[
            1, 0x42, 0xc0, 0x1e, 0xff, 0xe1, 0, 4, 0x67, 0x42, 0xc0, 0x1e, 1, 0, 2, 0x68, 0xce,
        ])),
    };
    let description = ovt::Description {
        app: "app".into(),
        stream: "stream".into(),
        uuid: String::new(),
        tracks: vec![track.clone()],
    };
    for _ in 0..4 {
        origin.receive(&desk.asked.remove(&link).unwrap_or_default());
        while let Some(event) = origin.poll() {
            let ovt::OriginEvent::Request(request) = event else { panic!("{event:?}") };
            match request.application {
                ovt::Application::Describe => origin.describe(request.id, &description).unwrap(),
                ovt::Application::Play => origin.playing(request.id),
                ovt::Application::Stop => origin.stopped(request.id),
            }
        }
        let said = origin.output().to_vec();
        origin.wrote(said.len());
        desk.link_says(link, said);
    }
    let mut packetizer = ovt::Packetizer::new(ovt::Generation::Auto);
    let picture = [&[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65][..], &[0xab; 40_000]].concat();
    for time in 0..3 {
        let frame = ovt::Frame { pts: time * 40_000, dts: time * 40_000, duration: None, key: true, data: &picture };
        let packets = packetizer.unit(&track, &frame).unwrap();
        desk.link_says(link, packets);
    }
    desk.run(200);
    let answer = desk.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    is_whole(&answer[end..]);
    assert!(answer.len() > 80_000);
    desk.link_ends(link);
    assert_eq!(desk.losses(), [Loss::Ended]);
}

#[test]
fn a_slot_is_a_source() {
    let mut desk = desk(&["whip:live/1"]);
    let (session, _) = desk.publish();
    let viewer = desk.watch();
    assert!(
        desk.commands.iter().any(|command| matches!(command, MediaCommand::KeyFrame { .. })),
        "{:?}",
        desk.commands
    );
    for picture in 0..3 {
        desk.video(session, 1_000_000 + picture * 40_000);
    }
    desk.run(200);
    let answer = desk.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    is_whole(&answer[end..]);
}

#[test]
fn a_file_plays_in_a_loop_without_a_seam() {
    let mut encoder = Encoder::new();
    let clip = Clip::new(encoder.encode(50).into()).unwrap();
    let origin = Origin::parse("file:///slate.ts").unwrap();
    let channel = Channel { name: "news".into(), ..Channel::default() };
    let config = Config { channels: vec![channel], ..Config::default() };
    let clips = [(origin.label(), Arc::new(clip))].into();
    let mut desk = Desk::open(config, Settings { origins: vec![vec![origin]], clips, ..Settings::default() });
    let viewer = desk.watch();
    desk.run(9_000);
    let answer = desk.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    is_whole(&answer[end..]);
    let clocks: Vec<u64> =
        answer[end..].as_chunks::<188>().0.iter().filter_map(|p| Some(holdfast_io::ts::clock(p)?.1)).collect();
    assert!(clocks.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] - pair[0] <= 9_000), "{clocks:?}");
    let length = (clocks[clocks.len() - 1] - clocks[0]) / 90;
    assert!((8_000..=9_500).contains(&length), "{length} ms");
    assert!(desk.losses().is_empty());
}

#[test]
fn sources_of_gstreamer_are_opened_and_closed_by_the_core() {
    let mut desk = desk(&["rtsp://camera.example/a", "srt://relay.example:7000"]);
    let viewer = desk.watch();
    let opened = |desk: &mut Desk| match desk.commands.pop() {
        Some(MediaCommand::Open { source, origin }) => (source, origin),
        other => panic!("{other:?}"),
    };
    let (camera, origin) = opened(&mut desk);
    assert!(matches!(origin, Origin::Rtsp(_)));
    let why = "the camera said 404".to_owned();
    desk.server.media(desk.time(), MediaEvent::SourceLost { source: camera, loss: Loss::NotFound, why });
    desk.turn();
    let (relay, origin) = opened(&mut desk);
    assert!(matches!(origin, Origin::Srt(_)));
    desk.server.media(desk.time(), MediaEvent::SourceOpened { source: relay });
    let data = Encoder::new().encode(5).into();
    desk.server.media(desk.time(), MediaEvent::SourceData { source: relay, data });
    desk.turn();
    desk.run(200);
    assert!(desk.read(viewer).starts_with("HTTP/1.1 200 "));
    desk.commands.clear();
    desk.server.drain(desk.time());
    desk.turn();
    assert!(desk.commands.iter().any(|command| matches!(command, MediaCommand::Close { source } if *source == relay)));
}

/// Parameter sets of 1920×1080 at 25 pictures a second.
const SETS: &[u8] = &[
    0, 0, 0, 1, 0x67, 0x64, 0x00, 0x28, 0xac, 0xd9, 0x40, 0x78, 0x02, 0x27, 0xe5, 0xc0, 0x44, 0x00, 0x00, 0x03, 0x00,
    0x04, 0x00, 0x00, 0x03, 0x00, 0xc8, 0x3c, 0x60, 0xc6, 0x58, 0, 0, 0, 1, 0x68, 0xeb, 0xe3, 0xcb,
];

/// Two servers, of which the second fetches its channel from the first over OVT.
struct Chain {
    origin: Desk,
    edge: Desk,
    /// The edge's link, and the origin's side of it.
    ends: Option<(LinkId, ConnId)>,
    encoder: Encoder,
    source: LinkId,
}

impl Chain {
    fn new(target: &str) -> Self {
        Chain::of(target, 8)
    }

    /// With an edge that bears this random number; the origin's is 7.
    fn of(target: &str, instance: u128) -> Self {
        let mut origin = desk(&["http://camera.example/x"]);
        let mut edge = numbered(&[target], instance);
        edge.watch();
        let (link, _) = edge.link();
        let accepted = origin.server.accepted_edge(origin.time(), "127.0.0.1:50000".parse().unwrap()).unwrap();
        edge.link_opens(link);
        let mut chain =
            Chain { origin, edge, ends: Some((link, accepted)), encoder: Encoder::new(), source: Id::from_parts(0, 0) };
        chain.pass();
        chain
    }

    /// What each wrote reaches the other, until both are quiet.
    fn pass(&mut self) {
        let Some((link, accepted)) = self.ends else { return };
        for _ in 0..20 {
            let asked = self.edge.asked.remove(&link).unwrap_or_default();
            let told = self.origin.written.remove(&accepted).unwrap_or_default();
            if asked.is_empty() && told.is_empty() {
                break;
            }
            self.origin.send(accepted, asked);
            self.edge.link_says(link, told);
        }
        if self.origin.closed.contains(&accepted) {
            self.ends = None;
            self.edge.link_ends(link);
        }
    }

    /// The camera of the origin sends so many pictures, in real time.
    fn send(&mut self, pictures: usize) {
        for _ in 0..pictures {
            let media = self.encoder.next();
            self.origin.link_says(self.source, media);
            let now = self.origin.now + 40;
            self.origin.run(now);
            self.edge.run(now);
            self.pass();
        }
    }

    fn camera_opens(&mut self) {
        (self.source, _) = self.origin.link();
        self.origin.link_opens(self.source);
        self.origin.link_says(self.source, OK);
    }
}

#[test]
fn one_server_fetches_from_another_over_ovt() {
    let mut chain = Chain::new("ovt://origin.example/live/news");
    chain.encoder.sets = SETS;
    chain.camera_opens();
    chain.send(60);
    let viewer = *chain.edge.written.keys().next().unwrap();
    let answer = chain.edge.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    is_whole(&answer[end..]);
    // 500 bytes a picture, each tenth with parameter sets.
    assert!(answer.len() > 50 * 500, "{}", answer.len());
    assert_eq!(chain.origin.server.edge().feeds().viewer_count(), 1, "an edge is a viewer");
    // The viewer leaves; a minute later nothing is left of it, here and there.
    let now = chain.edge.time();
    chain.edge.server.closed(now, viewer);
    chain.edge.turn();
    chain.send(61 * 25);
    assert!(chain.edge.links.is_empty());
    let (now, (_, accepted)) = (chain.origin.time(), chain.ends.unwrap());
    chain.origin.server.closed(now, accepted);
    chain.origin.turn();
    assert_eq!((chain.origin.server.edge().feeds().viewer_count(), chain.origin.server.connection_count()), (0, 0));
}

#[test]
fn an_edge_that_asks_for_what_is_not_there_is_told() {
    for (target, loss) in [
        ("ovt://origin.example/live/other", Loss::NotFound),
        ("ovt://origin.example/elsewhere/news", Loss::NotFound),
        ("ovt://origin.example/live/2", Loss::NotFound),
    ] {
        let chain = Chain::new(target);
        assert_eq!(chain.edge.losses(), [loss], "{target}");
    }
}

#[test]
fn an_edge_whose_stream_cannot_be_had_is_told_by_and_by() {
    let mut chain = Chain::new("ovt://origin.example/live/news");
    let (camera, _) = chain.origin.link();
    chain.origin.link_opens(camera);
    chain.origin.link_says(camera, "HTTP/1.1 404 Not Found\r\n\r\n");
    chain.pass();
    assert_eq!(chain.edge.losses(), [Loss::NotFound]);
}

#[test]
fn p20_an_edge_that_talks_nonsense_is_answered_and_closed() {
    let message = |kind: u8, text: &str| {
        let mut packet = vec![0x60, kind];
        packet.extend([0; 14]);
        packet.extend((text.len() as u16).to_be_bytes());
        packet.extend(text.bytes());
        packet
    };
    let long = [&[0x60, 10][..], &[0; 14], &[0xff, 0xff]].concat();
    for (said, closes) in [
        (long, true),
        (message(10, "[1]"), false),
        (message(10, "{\"application\":"), false),
        (message(99, "x"), false),
        (message(30, "x"), false),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), false),
    ] {
        let mut desk = desk(&["http://camera.example/x"]);
        let id = desk.server.accepted_edge(desk.time(), "127.0.0.1:50000".parse().unwrap()).unwrap();
        desk.send(id, &said);
        assert_eq!(desk.closed.contains(&id), closes, "{said:?}");
        desk.run(60_000);
        assert!(desk.closed.contains(&id), "whoever asks for nothing is closed");
        assert_eq!(desk.server.connection_count(), 0);
    }
}

#[test]
fn a_stream_that_comes_back_in_a_circle_is_refused() {
    // Both are one server: they bear one random number.
    let mut chain = Chain::of("ovt://origin.example/live/news", 7);
    chain.encoder.sets = SETS;
    chain.camera_opens();
    chain.send(10);
    assert_eq!(chain.edge.losses(), [Loss::Loop]);
}
