//! Conversations, byte for byte, and everything that must not happen in one.

mod conversation;
mod cuts;
mod hostile;
mod numbers;
mod relay;

use bytes::Bytes;

use super::*;
use crate::codec::Codec;

const OURS: &str = include_str!("../fixtures/ours.txt");
const OME: &str = include_str!("../fixtures/ome.txt");
const REQUESTS: &str = include_str!("../fixtures/requests.txt");

/// When the fixtures' messages were written.
const OPENED: UnixMillis = UnixMillis(0x018b_cfe5_6800);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Edge,
    Origin,
}

/// The lines of a fixture: who sends, and what. A line is `>` (the edge) or `<` (the origin), then hexadecimal, then perhaps
/// text behind `| `.
fn lines(fixture: &str) -> Vec<(From, Vec<u8>)> {
    let mut lines = Vec::new();
    for line in fixture.lines().filter(|line| !line.starts_with('#')) {
        let (side, rest) = line.split_at(1);
        let (hex, text) = rest.split_once("| ").unwrap_or((rest, ""));
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let mut bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        bytes.extend_from_slice(text.as_bytes());
        let from = match side {
            ">" => From::Edge,
            "<" => From::Origin,
            other => panic!("a line begins with {other:?}"),
        };
        lines.push((from, bytes));
    }
    lines
}

/// All that one side sends in a fixture.
fn all_of(fixture: &str, side: From) -> Vec<u8> {
    lines(fixture).into_iter().filter(|(from, _)| *from == side).flat_map(|(_, bytes)| bytes).collect()
}

/// One packet, marked as the last.
fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, kind];
    bytes.extend_from_slice(&[0; 14]);
    bytes.extend_from_slice(&u16::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// One packet, not the last.
fn part(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = packet(kind, payload);
    bytes[0] = 0x40;
    bytes
}

/// A unit of a track in one packet, as raw data with a key flag.
fn unit(track: u8, data: &[u8]) -> Vec<u8> {
    let mut unit = vec![0, 0, 0, track];
    unit.extend_from_slice(&[0; 24]);
    unit.extend_from_slice(&[1, 2, 0xff, 1]);
    unit.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
    unit.extend_from_slice(data);
    packet(30, &unit)
}

/// Everything a client tells of these pieces.
fn told<'a>(client: &mut Client, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ClientEvent> {
    let mut events = Vec::new();
    for piece in pieces {
        client.receive(piece);
        events.extend(std::iter::from_fn(|| client.poll()));
    }
    events
}

fn client(target: &str) -> Client {
    Client::new(target, Generation::Auto, OPENED)
}

/// A client that plays one H.264 and one AAC track.
fn playing() -> Client {
    let mut client = client("ovt://origin.example:9000/app/one?token=a%20b");
    let ours = lines(OURS);
    let answers: Vec<&[u8]> =
        ours.iter().filter(|(from, _)| *from == From::Origin).map(|(_, b)| &b[..]).take(2).collect();
    let events = told(&mut client, answers);
    assert!(matches!(events[..], [ClientEvent::Described(_), ClientEvent::Playing]), "{events:?}");
    client.wrote(usize::MAX);
    client
}

fn origin() -> Origin {
    Origin::new(OriginSettings { generation: Generation::V20, notify: Notify::TrackChanged }, OPENED)
}

fn video() -> Track {
    let config = [1, 0x42, 0xc0, 0x0d, 0xff, 0xe1, 0, 9, 0x67, 0x42, 0xc0, 0x0d, 0xda, 0x05, 7, 0xec, 4, 1, 0, 4];
    let config = [&config[..], &[0x68, 0xce, 0x3c, 0x80]].concat();
    Track {
        id: 0,
        name: "video".into(),
        codec: Codec::H264,
        timebase: Timebase::new(1, 90_000).unwrap(),
        bitrate: 2_500_000,
        media: Media::Video(Picture { width: 1280, height: 720, framerate: 30_000.0 / 1001.0 }),
        decoder_config: Some(config.into()),
    }
}

fn audio() -> Track {
    Track {
        id: 1,
        name: "audio é".into(),
        codec: Codec::Aac,
        timebase: Timebase::MICROS,
        bitrate: 128_000,
        media: Media::Audio(Sound { rate: 48_000, layout: 3, format: 8 }),
        decoder_config: Some(Bytes::from_static(&[0x11, 0x90])),
    }
}

fn description() -> Description {
    let instance = Instance(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    Description {
        app: "#default#app".into(),
        stream: "one".into(),
        uuid: instance.name("#default#app", "one"),
        tracks: vec![video(), audio()],
    }
}

/// All that an origin has to say now.
fn said(origin: &mut Origin) -> Vec<u8> {
    let said = origin.output().to_vec();
    origin.wrote(said.len());
    said
}

/// What it keeps shows in its `Debug` form, in bytes.
fn kept(codec: &impl std::fmt::Debug) -> usize {
    format!("{codec:?}").len()
}
