//! Channels that are pulled from origins, seen from the sockets.

use std::collections::{BTreeMap, VecDeque};
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
use holdfast_io::ts::{Demuxer, Muxer, Tracks};

use crate::desk::{Desk, header};

const GET: &str = "GET /live/news.ts HTTP/1.1\r\nHost: h\r\n\r\n";
pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n";

/// A server with one channel of these sources, and one endpoint.
pub fn desk(sources: &[&str]) -> Desk {
    of_settings(sources, Settings { instance: 7, ..Settings::default() })
}

pub fn of_settings(sources: &[&str], settings: Settings) -> Desk {
    let channel = Channel { name: "news".into(), sources: sources.len() as u32, ..Channel::default() };
    let config = Config { endpoints: vec![Endpoint::default()], channels: vec![channel], ..Config::default() };
    let origins = vec![sources.iter().map(|source| Origin::parse(source).unwrap()).collect()];
    Desk::open(config, Settings { origins, ..settings })
}

/// An encoder: a picture each 40 ms, each tenth a key frame, and sound.
pub struct Encoder {
    muxer: Muxer,
    tracks: Tracks,
    time: i64,
    /// Parameter sets before each key frame.
    pub sets: &'static [u8],
}

impl Encoder {
    pub fn new() -> Self {
        Encoder::of(Codec::H264, Codec::Aac)
    }

    pub fn of(video: Codec, audio: Codec) -> Self {
        let tracks = Tracks { audio: Some(audio), video: Some(video) };
        let mut muxer = Muxer::new();
        muxer.session(from(), tracks);
        Encoder { muxer, tracks, time: 0, sets: &[] }
    }

    /// The packets of the next `pictures` pictures.
    pub fn encode(&mut self, pictures: usize) -> Vec<u8> {
        (0..pictures).flat_map(|_| self.next()).collect()
    }

    pub fn next(&mut self) -> Vec<u8> {
        let key = self.time % 400_000 == 0;
        let Tracks { audio: Some(audio), video: Some(video) } = self.tracks else { panic!("{:?}", self.tracks) };
        let (delimiter, slice): (&[u8], &[u8]) = match (video, key) {
            (Codec::H265, true) => (&[0x46, 1, 0x50], &[19 << 1, 1]),
            (Codec::H265, false) => (&[0x46, 1, 0x50], &[1 << 1, 1]),
            (_, true) => (&[9, 0xf0], &[0x65]),
            (_, false) => (&[9, 0xf0], &[0x41]),
        };
        let start = &[0, 0, 0, 1][..];
        let sets = if key { self.sets } else { &[] };
        let picture = [start, delimiter, sets, start, slice, &[0xab; 500]].concat();
        let sound = if audio == Codec::Aac { adts() } else { layer2() };
        let mut data = Vec::new();
        for (codec, key, payload) in [(video, key, picture), (audio, true, sound)] {
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

/// 24 ms in stereo at 192 kbit/s.
pub fn layer2() -> Vec<u8> {
    [&[0xff, 0xfd, 0xa4, 0][..], &[0; 572]].concat()
}

impl Desk {
    pub fn watch(&mut self) -> ConnId {
        let id = self.connect();
        self.send(id, GET);
        id
    }

    /// The one link that is open.
    pub fn link(&self) -> (LinkId, Target) {
        assert_eq!(self.links.len(), 1, "{:?}", self.links);
        self.links[0].clone()
    }

    pub fn link_opens(&mut self, link: LinkId) {
        self.server.link_connected(self.time(), link, "192.0.2.1:80".parse().unwrap());
        self.turn();
    }

    pub fn link_says(&mut self, link: LinkId, data: impl AsRef<[u8]>) {
        self.server.link_received(self.time(), link, data.as_ref());
        self.turn();
    }

    pub fn link_ends(&mut self, link: LinkId) {
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

    pub fn losses(&self) -> Vec<Loss> {
        self.notes
            .iter()
            .filter_map(|note| if let Note::SourceLost { loss, .. } = note { Some(*loss) } else { None })
            .collect()
    }
}

/// Whole packets, continuity counters continuous on each PID, and at least one packet.
pub fn is_whole(stream: &[u8]) {
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
        (html, Loss::Page, "a web page"),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", Loss::Page, "JSON"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n", Loss::Page, "a web page"),
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
        // Whoever is refused is told so too, also from memory.
        let again = desk.watch();
        for viewer in [viewer, again] {
            let answer = desk.read(viewer);
            assert!(answer.starts_with("HTTP/1.1 502 ") && header(&answer, "Retry-After").is_some(), "{answer}");
            assert!(answer.contains(words) && !answer.contains("secret"), "{answer}");
            let loss = if answer.contains("origin answers 4") || loss == Loss::Loop { loss.says() } else { words };
            assert!(answer.contains(loss), "{answer}");
        }
        assert!(desk.server.sources().is_empty());
    }
}

#[test]
fn what_an_ovt_origin_answers_decides_what_it_is() {
    for (code, loss) in [
        (401, Loss::Forbidden),
        (403, Loss::Forbidden),
        (404, Loss::NotFound),
        (410, Loss::NotFound),
        (500, Loss::Refused),
        (508, Loss::Loop),
    ] {
        let mut desk = desk(&["ovt://origin.example/live/x"]);
        let viewer = desk.watch();
        let (link, _) = desk.link();
        desk.link_opens(link);
        let answer = format!(r#"{{"application":"describe","code":{code},"id":1,"message":"no"}}"#);
        // Version 1, the last fragment of a response, then its sequence, time, session and length.
        let head = [&[0x60, 20][..], &[0; 14], &(answer.len() as u16).to_be_bytes()].concat();
        desk.link_says(link, [&head, answer.as_bytes()].concat());
        assert_eq!(desk.losses(), [loss], "{code}");
        assert!(desk.read(viewer).starts_with("HTTP/1.1 502 "));
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

/// Two edges that are each other's sources: neither may go on from the other's copy of its own stream.
#[test]
fn p21_a_stream_is_not_taken_from_whoever_takes_it_from_here() {
    let mut desk = desk(&["http://other-edge.example/live/news.ts"]);
    desk.watch();
    let (link, _) = desk.link();
    desk.link_opens(link);
    let asked = String::from_utf8(desk.asked.remove(&link).unwrap()).unwrap();
    let own = header(&asked, "Via").unwrap();
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n";
    desk.link_says(link, format!("{answer}Via: 1.1 holdfast-third, {own}, 1.1 holdfast-other\r\n\r\n"));
    assert_eq!(desk.losses(), [Loss::Loop]);

    // Nor is one given to whom it comes from.
    let mut desk = self::desk(&["http://other-edge.example/live/news.ts"]);
    let viewer = desk.watch();
    let (link, _) = desk.link();
    desk.link_opens(link);
    desk.link_says(link, format!("{answer}Via: 1.1 holdfast-third, 1.1 holdfast-other\r\n\r\n"));
    desk.link_says(link, media(20));
    let head = desk.read(viewer);
    let via = header(&head, "Via").expect("it says where the stream comes through");
    assert!(via.starts_with("1.1 holdfast-third, 1.1 holdfast-other, 1.1 holdfast-0"), "{via}");
    let asks = |desk: &mut crate::desk::Desk, hop: &str| {
        desk.ask(&format!("GET /live/news.ts HTTP/1.1\r\nHost: h\r\nVia: 1.1 {hop}\r\n\r\n"))
    };
    assert!(asks(&mut desk, "holdfast-other").starts_with("HTTP/1.1 508 "));
    assert!(asks(&mut desk, "holdfast-third").starts_with("HTTP/1.1 508 "));
    assert!(asks(&mut desk, "holdfast-fourth").starts_with("HTTP/1.1 200 "));
}

#[test]
fn an_origin_of_ovenmediaengine_is_talked_to_as_one_of_its_edges() {
    let mut desk = desk(&["ovt://origin.example/app/stream"]);
    let viewer = desk.watch();
    let (link, target) = desk.link();
    assert_eq!(target, Target { host: "origin.example".into(), port: 9000, tls: false });
    desk.link_opens(link);
    let track = track(1, Codec::H264);
    play(&mut desk, link, std::slice::from_ref(&track));
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
    // A stream that ends in order is stopped; this is a server that is gone.
    desk.link_ends(link);
    assert_eq!(desk.losses(), [Loss::Reset]);
}

/// A track of an origin.
fn track(id: u32, codec: Codec) -> ovt::Track {
    let media = if codec.is_video() {
        ovt::Media::Video(ovt::Picture { width: 640, height: 360, framerate: 25.0 })
    } else {
        ovt::Media::Audio(ovt::Sound { rate: 48_000, layout: 3, format: 8 })
    };
    let config: &'static [u8] = match codec {
        Codec::H264 => &[1, 0x42, 0xc0, 0x1e, 0xff, 0xe1, 0, 4, 0x67, 0x42, 0xc0, 0x1e, 1, 0, 2, 0x68, 0xce],
        Codec::Aac => &[0x11, 0x90],
        _ => &[],
    };
    ovt::Track {
        id,
        name: String::new(),
        codec,
        timebase: ovt::Timebase::new(1, 90_000).unwrap(),
        bitrate: 1_000_000,
        media,
        decoder_config: (!config.is_empty()).then(|| Bytes::from_static(config)),
    }
}

/// The channel's link is answered by an origin that has these tracks, until it is to play.
fn play(desk: &mut Desk, link: LinkId, tracks: &[ovt::Track]) {
    let mut origin = ovt::Origin::new(ovt::OriginSettings::default(), ovt::UnixMillis(0));
    let (app, stream, uuid) = ("app".into(), "stream".into(), String::new());
    let description = ovt::Description { app, stream, uuid, tracks: tracks.to_vec() };
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
}

#[test]
fn of_renditions_one_picture_and_one_sound_are_taken() {
    let mut desk = desk(&["ovt://origin.example/app/stream"]);
    let viewer = desk.watch();
    let (link, _) = desk.link();
    desk.link_opens(link);
    let tracks = [(1, Codec::Opus), (2, Codec::H264), (3, Codec::Aac), (4, Codec::H264), (5, Codec::Aac)];
    let tracks = tracks.map(|(id, codec)| track(id, codec));
    play(&mut desk, link, &tracks);
    let mut packetizer = ovt::Packetizer::new(ovt::Generation::Auto);
    for time in 0..20 {
        for track in &tracks {
            let picture = [&[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65][..], &[track.id as u8; 100]].concat();
            let sound = [&adts()[..7], &[track.id as u8; 10]].concat();
            let data = if track.codec.is_video() { &picture } else { &sound };
            let frame = ovt::Frame { pts: time * 40_000, dts: time * 40_000, duration: None, key: true, data };
            let packets = packetizer.unit(track, &frame).unwrap();
            desk.link_says(link, packets);
        }
    }
    desk.run(200);
    let answer = desk.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut units = VecDeque::new();
    Demuxer::default().read(&answer[end..], &mut units);
    // The first picture, and the first sound that every player knows.
    let seen = |codec, id: u8| units.iter().filter(|unit| unit.codec == codec && unit.data.last() == Some(&id)).count();
    assert!(seen(Codec::H264, 2) >= 18 && seen(Codec::Aac, 3) >= 18, "{units:?}");
    assert_eq!(seen(Codec::H264, 2) + seen(Codec::Aac, 3), units.len());
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
