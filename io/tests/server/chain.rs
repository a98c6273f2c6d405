//! Two servers, of which the second fetches its channel from the first over OVT.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_core::id::Id;
use holdfast_core::input::{Loss, Note, ViewerEnd};
use holdfast_io::codec::{Codec, annexb, h265};
use holdfast_io::ovt::{Generation, OriginSettings};
use holdfast_io::server::{ConnId, LinkId, Settings};
use holdfast_io::ts::{AccessUnit, Demuxer};

use crate::channels::{Encoder, OK, desk, is_whole, layer2, of_settings};
use crate::desk::Desk;

/// Parameter sets of 1920×1080 at 25 pictures a second.
const SETS: &[u8] = &[
    0, 0, 0, 1, 0x67, 0x64, 0x00, 0x28, 0xac, 0xd9, 0x40, 0x78, 0x02, 0x27, 0xe5, 0xc0, 0x44, 0x00, 0x00, 0x03, 0x00,
    0x04, 0x00, 0x00, 0x03, 0x00, 0xc8, 0x3c, 0x60, 0xc6, 0x58, 0, 0, 0, 1, 0x68, 0xeb, 0xe3, 0xcb,
];

/// Parameter sets of 1920×1080 in H.265.
const H265_SETS: &[u8] = &[
    0, 0, 0, 1, 0x40, 0x01, 0x0c, 0, 0, 0, 1, 0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x03, 0x00, 0x78, 0xa0, 0x03, 0xc0, 0x80, 0x10, 0xe5, 0x96, 0x66, 0x69, 0x24, 0xca, 0xe0, 0x10,
    0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00, 0x03, 0x01, 0x90, 0x80, 0, 0, 0, 1, 0x44, 0x01, 0xc1,
];

struct Chain {
    origin: Desk,
    edge: Desk,
    /// The edge's link, and the origin's side of it.
    ends: Option<(LinkId, ConnId)>,
    /// Whether somebody between them hands on nothing that OvenMediaEngine does not know.
    forgets: bool,
    encoder: Encoder,
    source: LinkId,
}

impl Chain {
    fn new(target: &str) -> Self {
        Chain::of(target, 8, OriginSettings::default())
    }

    /// With an edge that bears this random number; the origin's is 7.
    fn of(target: &str, instance: u128, ovt: OriginSettings) -> Self {
        Chain::with(target, instance, Settings { instance: 7, ovt, ..Settings::default() })
    }

    fn with(target: &str, instance: u128, settings: Settings) -> Self {
        // One server would refuse its own request, which is another test's matter.
        let forgets = instance == settings.instance;
        let mut origin = of_settings(&["http://camera.example/x"], settings);
        let mut edge = of_settings(&[target], Settings { instance, ..Settings::default() });
        edge.watch();
        let (link, _) = edge.link();
        let accepted = origin.server.accepted_edge(origin.time(), "127.0.0.1:50000".parse().unwrap()).unwrap();
        edge.link_opens(link);
        let (encoder, source) = (Encoder::new(), Id::from_parts(0, 0));
        let mut chain = Chain { origin, edge, ends: Some((link, accepted)), forgets, encoder, source };
        chain.pass();
        chain
    }

    /// What each wrote reaches the other, until both are quiet.
    fn pass(&mut self) {
        let Some((link, accepted)) = self.ends else { return };
        for _ in 0..20 {
            let mut asked = self.edge.asked.remove(&link).unwrap_or_default();
            let via = asked.windows(5).position(|key| key == b"\"via\"");
            if let Some(at) = via.filter(|_| self.forgets) {
                asked[at + 1] = b'?';
            }
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

    fn wait(&mut self, until: u64) {
        self.origin.run(until);
        self.edge.run(until);
        self.pass();
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

/// The access units that a viewer of the edge got.
fn units(chain: &mut Chain) -> Vec<AccessUnit> {
    let viewer = *chain.edge.written.keys().next().unwrap();
    let answer = chain.edge.written.remove(&viewer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    is_whole(&answer[end..]);
    let mut units = VecDeque::new();
    Demuxer::default().read(&answer[end..], &mut units);
    units.into()
}

#[test]
fn h265_and_mpeg_audio_go_over_ovt_as_they_are() {
    let mut chain = Chain::new("ovt://origin.example/live/news");
    chain.encoder = Encoder::of(Codec::H265, Codec::Mp2);
    chain.encoder.sets = H265_SETS;
    chain.camera_opens();
    chain.send(60);
    let units = units(&mut chain);
    let of = |codec| units.iter().filter(move |unit| unit.codec == codec);
    let (pictures, sounds) = (of(Codec::H265).count(), of(Codec::Mp2).count());
    assert!(pictures > 50 && sounds > 50 && pictures + sounds == units.len(), "{pictures}, {sounds}");
    let keys: Vec<_> = of(Codec::H265).filter(|unit| unit.key).collect();
    assert!(of(Codec::H265).next().unwrap().key && keys.len() >= 5);
    for key in keys {
        let sets: Vec<_> = annexb::units(&key.data).map(|nal| h265::kind(nal[0])).collect();
        assert_eq!(sets, [35, 32, 33, 34, 19], "one delimiter, all sets");
    }
    assert!(of(Codec::Mp2).all(|unit| unit.data == layer2()));
}

#[test]
fn an_edge_of_a_release_without_layer_2_gets_the_picture_alone() {
    let settings = OriginSettings { generation: Generation::V20, ..OriginSettings::default() };
    let mut chain = Chain::of("ovt://origin.example/live/news", 8, settings);
    chain.encoder = Encoder::of(Codec::H265, Codec::Mp2);
    chain.encoder.sets = H265_SETS;
    chain.camera_opens();
    chain.send(150);
    let units = units(&mut chain);
    assert!(units.len() > 50 && units.iter().all(|unit| unit.codec == Codec::H265));
}

#[test]
fn a_stream_that_is_silent_ends_for_an_edge() {
    let settings = Settings { instance: 7, packet_silence: Some(Duration::from_secs(2)), ..Settings::default() };
    let mut chain = Chain::with("ovt://origin.example/live/news", 8, settings);
    chain.encoder.sets = SETS;
    chain.camera_opens();
    // Longer than it may be silent.
    chain.send(100);
    assert!(chain.edge.losses().is_empty() && chain.ends.is_some(), "it sends");
    let last = chain.origin.now;
    chain.wait(last + 1_900);
    assert!(chain.ends.is_some(), "not yet");
    chain.wait(last + 2_100);
    assert!(chain.ends.is_none());
    assert_eq!(chain.edge.losses(), [Loss::Reset]);
    let ends = |note: &Note| matches!(note, Note::ViewerEnded { reason: ViewerEnd::Idle, .. });
    assert!(chain.origin.notes.iter().any(ends), "{:?}", chain.origin.notes);
    assert_eq!(chain.origin.server.connection_count(), 0);
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

/// Nobody has media yet that could show where it comes from.
#[test]
fn a_circle_is_known_before_any_media() {
    let source = |host: &str| [format!("ovt://{host}.example/live/news")];
    let make = |host: &str, instance| {
        let sources = source(host);
        of_settings(&[&sources[0]], Settings { instance, ..Settings::default() })
    };
    // Each fetches from the other; then one from itself.
    for (mut a, mut b) in [(make("b", 7), Some(make("a", 8))), (make("a", 7), None)] {
        let viewer = a.watch();
        let (out, _) = a.link();
        a.link_opens(out);
        let address = "127.0.0.1:50000".parse().unwrap();
        if let Some(b) = &mut b {
            let from_a = b.server.accepted_edge(b.time(), address).unwrap();
            b.send(from_a, a.asked.remove(&out).unwrap());
            let (back, _) = b.link();
            b.link_opens(back);
            let from_b = a.server.accepted_edge(a.time(), address).unwrap();
            a.send(from_b, b.asked.remove(&back).unwrap());
            b.link_says(back, a.written.remove(&from_b).unwrap());
            assert_eq!(b.losses(), [Loss::Loop]);
            a.link_says(out, b.written.remove(&from_a).unwrap());
        } else {
            let from_a = a.server.accepted_edge(a.time(), address).unwrap();
            let asked = a.asked.remove(&out).unwrap();
            a.send(from_a, asked);
            let told = a.written.remove(&from_a).unwrap();
            a.link_says(out, told);
        }
        assert_eq!(a.losses(), [Loss::Loop]);
        assert!(a.read(viewer).starts_with("HTTP/1.1 502 "));
        assert_eq!(a.now, 0, "at once");
    }
}

#[test]
fn a_stream_that_comes_back_in_a_circle_is_refused() {
    // Both are one server: they bear one random number.
    let mut chain = Chain::of("ovt://origin.example/live/news", 7, OriginSettings::default());
    chain.encoder.sets = SETS;
    chain.camera_opens();
    chain.send(10);
    assert_eq!(chain.edge.losses(), [Loss::Loop]);
}
