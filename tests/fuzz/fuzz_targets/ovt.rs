//! Anything an origin or an edge sends: read without a panic, and how the bytes are cut changes nothing. The first byte of an
//! input is the size of the cuts; the second says who reads, and whose numbers are spoken.
#![no_main]

use bytes::Bytes;
use holdfast_io::codec::Codec;
use holdfast_io::ovt::{
    Application, Client, ClientEvent, Description, Frame, Generation, Media, Notify, Origin, OriginEvent,
    OriginSettings, Packetizer, Sound, Timebase, Track, UnixMillis,
};
use libfuzzer_sys::fuzz_target;

/// What a client tells of these bytes, and what it says.
fn fetched(input: &[u8], cut: usize, generation: Generation) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new("ovt://origin/app/one", generation, UnixMillis(0));
    let mut events = Vec::new();
    for piece in input.chunks(cut) {
        client.receive(piece);
        while let Some(event) = client.poll() {
            if let ClientEvent::Unit(unit) = &event {
                assert!(!unit.data.is_empty());
            }
            events.push(event);
        }
    }
    let sent = client.output().to_vec();
    client.stop();
    assert!(client.poll().is_none(), "nothing comes after a stop");
    client.wrote(usize::MAX);
    assert!(client.is_finished());
    (events, sent)
}

/// What an origin of one stream tells of these bytes, and what it says.
fn served(input: &[u8], cut: usize, generation: Generation) -> (Vec<OriginEvent>, Vec<u8>) {
    let description = Description {
        app: "#default#app".into(),
        stream: "one".into(),
        uuid: "uuid".into(),
        tracks: vec![Track {
            id: 0,
            name: "audio".into(),
            codec: Codec::Opus,
            timebase: Timebase::MICROS,
            bitrate: 64_000,
            media: Media::Audio(Sound { rate: 48_000, layout: 3, format: 8 }),
            decoder_config: None,
        }],
    };
    let mut origin = Origin::new(OriginSettings { generation, notify: Notify::TrackChanged }, UnixMillis(0));
    let (mut events, mut sent) = (Vec::new(), Vec::new());
    for piece in input.chunks(cut) {
        origin.receive(piece);
        loop {
            while let Some(event) = origin.poll() {
                if let OriginEvent::Request(request) = &event {
                    match request.application {
                        _ if request.stream != "one" => origin.refuse(request.id, 404, "not here"),
                        Application::Describe => origin.describe(request.id, &description).expect("it is complete"),
                        Application::Play => origin.playing(request.id),
                        Application::Stop => origin.stopped(request.id),
                    }
                }
                events.push(event);
            }
            if origin.output().is_empty() {
                break;
            }
            sent.extend_from_slice(origin.output());
            origin.wrote(usize::MAX);
        }
    }
    (events, sent)
}

/// A frame that goes through a packetizer and a client comes out as it was, as far as its codec allows it.
fn relayed(data: &[u8], generation: Generation) {
    let mut edge = Origin::new(OriginSettings { generation, notify: Notify::Never }, UnixMillis(0));
    let mut client = Client::new("ovt://origin/app/one", generation, UnixMillis(0));
    let track = Track {
        id: 7,
        name: String::from_utf8_lossy(data).into_owned(),
        codec: Codec::Opus,
        timebase: Timebase::MICROS,
        bitrate: 1,
        media: Media::Audio(Sound { rate: 48_000, layout: 4, format: -1 }),
        decoder_config: None,
    };
    let tracks = vec![track.clone()];
    let description = Description { app: String::new(), stream: track.name.clone(), uuid: String::new(), tracks };
    for _ in 0..2 {
        edge.receive(client.output());
        client.wrote(usize::MAX);
        match edge.poll() {
            Some(OriginEvent::Request(request)) if request.application == Application::Describe => {
                edge.describe(request.id, &description).expect("it is complete");
            }
            Some(OriginEvent::Request(request)) => edge.playing(request.id),
            event => panic!("{event:?}"),
        }
        client.receive(edge.output());
        edge.wrote(usize::MAX);
        match client.poll() {
            Some(ClientEvent::Described(got)) if generation != Generation::Auto => assert_eq!(got, description),
            Some(ClientEvent::Described(_) | ClientEvent::Playing) => {}
            event => panic!("{event:?}"),
        }
    }
    let frame = Frame { pts: 3, dts: -3, duration: None, key: true, data };
    client.receive(&Packetizer::new(generation).unit(&track, &frame).expect("it is short"));
    match client.poll() {
        Some(ClientEvent::Unit(unit)) => assert_eq!((unit.data, unit.pts, unit.dts), (Bytes::copy_from_slice(data), 3, -3)),
        event => assert!(data.is_empty(), "{event:?}"),
    }
}

fuzz_target!(|input: &[u8]| {
    let &[cut, who, ref bytes @ ..] = input else { return };
    let cut = usize::from(cut).max(1);
    let generation = [Generation::Auto, Generation::V18, Generation::V21][usize::from(who / 4) % 3];
    match who % 4 {
        0 | 1 => assert_eq!(fetched(bytes, cut, generation), fetched(bytes, bytes.len().max(1), generation)),
        2 => assert_eq!(served(bytes, cut, generation), served(bytes, bytes.len().max(1), generation)),
        _ => relayed(bytes, generation),
    }
});
