//! Our two sides against each other, through packets of any size.

use super::*;

/// Bytes that differ by frame and place, and begin as Annex B does.
fn frame_data(number: usize, length: usize) -> Vec<u8> {
    let start = [0, 0, 0, 1].into_iter();
    start.chain((4..length).map(|at| (number.wrapping_mul(31).wrapping_add(at * 7) >> 2) as u8)).take(length).collect()
}

/// A client and an origin between which describe and play are done.
fn connected(description: &Description) -> (Client, Origin) {
    let (mut client, mut origin) = (client("ovt://origin/app/one"), origin());
    let mut events = Vec::new();
    while !client.output().is_empty() {
        origin.receive(client.output());
        client.wrote(usize::MAX);
        while let Some(OriginEvent::Request(request)) = origin.poll() {
            match request.application {
                Application::Describe => origin.describe(request.id, description).unwrap(),
                Application::Play => origin.playing(request.id),
                Application::Stop => origin.stopped(request.id),
            }
        }
        events.extend(told(&mut client, [&said(&mut origin)[..]]));
    }
    assert_eq!(events, [ClientEvent::Described(description.clone()), ClientEvent::Playing]);
    (client, origin)
}

#[test]
fn thousands_of_units_arrive_as_they_were_sent() {
    let (mut client, mut origin) = connected(&description());
    let mut packetizer = Packetizer::new(Generation::V20);
    let video = video();
    for number in 0..3000_usize {
        // Every size around the borders of packets, and 100 KiB now and then.
        let length = match number % 50 {
            0 => 100 * 1024,
            1..=8 => MAX_PAYLOAD - 36 + number % 50 - 4,
            9..=16 => 2 * MAX_PAYLOAD - 36 + number % 50 - 12,
            other => other,
        };
        let data = frame_data(number, length.max(4));
        let at = number as i64 * 33_367;
        let frame = Frame { pts: at + 66_733, dts: at, duration: None, key: number % 50 == 0, data: &data };
        let packets = packetizer.unit(&video, &frame).unwrap();

        // A message lies between the first packet of a unit and the rest of it.
        let first = 18 + usize::from(u16::from_be_bytes([packets[16], packets[17]]));
        let mut changed = video.clone();
        changed.bitrate = 1_000_000 + number as u32;
        origin.track_changed(&changed).unwrap();
        let message = said(&mut origin);
        let mut events = told(&mut client, [&packets[..first], &message[..], &packets[first..]]);
        if first == packets.len() {
            events.swap(0, 1);
        }
        let [ClientEvent::TracksChanged(tracks), ClientEvent::Unit(unit)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(tracks[0].bitrate, changed.bitrate);
        assert_eq!(unit.data, data);
        assert_eq!((unit.track, unit.codec, unit.key), (0, Codec::H264, frame.key));
        assert!((unit.pts - frame.pts).abs() <= 6 && (unit.dts - frame.dts).abs() <= 6, "a tick has 11 µs");
    }
}

#[test]
fn one_counter_goes_through_all_units_of_a_stream_and_wraps() {
    let mut packetizer = Packetizer::new(Generation::V20);
    let data = vec![0; 2 * MAX_PAYLOAD];
    let frame = Frame { pts: 0, dts: 0, duration: None, key: false, data: &data };
    let mut expected = 0_u16;
    for _ in 0..22_000 {
        let packets = packetizer.unit(&video(), &frame).unwrap();
        let mut rest = &packets[..];
        while let [first, 30, high, low, ..] = *rest {
            assert_eq!(u16::from_be_bytes([high, low]), expected);
            expected = expected.wrapping_add(1);
            let length = 18 + usize::from(u16::from_be_bytes([rest[16], rest[17]]));
            assert_eq!(first, if length == rest.len() { 0x60 } else { 0x40 });
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }
    assert_eq!(expected, 464, "three packets each, 66 000 in all");
}

#[test]
fn every_frame_of_audio_bears_the_key_flag() {
    let frame = Frame { pts: 0, dts: 0, duration: None, key: false, data: &[1] };
    let flag = |track: &Track| Packetizer::new(Generation::V20).unit(track, &frame).unwrap()[18 + 29];
    assert_eq!((flag(&audio()), flag(&video())), (2, 1));
}

#[test]
fn every_codec_goes_through_under_every_setting() {
    let config = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
    let hevc = config(&[1, 1, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 93, 0xf0, 0, 0xfc, 0xfd, 0xf8, 0xf8, 0, 0, 0x0f, 0]);
    let tracks = vec![
        Track { id: 5, codec: Codec::H265, decoder_config: hevc, ..video() },
        video(),
        audio(),
        Track { id: 2, codec: Codec::Opus, decoder_config: None, ..audio() },
        Track { id: 3, codec: Codec::Mp3, decoder_config: None, ..audio() },
    ];
    let layer2 = Track { id: 4, codec: Codec::Mp2, decoder_config: None, ..audio() };
    for generation in [Generation::V18, Generation::V19, Generation::V20, Generation::V21, Generation::Auto] {
        let mut origin = Origin::new(OriginSettings { generation, notify: Notify::Never }, OPENED);
        let mut description = Description { tracks: tracks.clone(), ..description() };
        let known = matches!(generation, Generation::V21 | Generation::Auto);
        assert_eq!(Packetizer::new(generation).carries(Codec::Mp2), known);
        description.tracks.extend(known.then(|| layer2.clone()));
        // The client has to find out.
        let mut client = client("ovt://origin/app/one");
        origin.receive(client.output());
        let Some(OriginEvent::Request(request)) = origin.poll() else { panic!() };
        if !known {
            let unknown = Description { tracks: vec![layer2.clone()], ..description.clone() };
            assert_eq!(origin.describe(request.id, &unknown), Err(Incomplete { track: Some(4), key: "codecId" }));
        }
        origin.describe(request.id, &description).unwrap();
        let events = told(&mut client, [&said(&mut origin)[..]]);
        assert_eq!(events, [ClientEvent::Described(description)], "{generation:?}");
    }
}

#[test]
fn a_description_longer_than_a_packet_goes_through() {
    let tracks = (0..150).map(|id| Track { id, name: "é".repeat(20), ..video() }).collect();
    connected(&Description { tracks, ..description() });
}

#[test]
fn a_unit_that_no_client_takes_is_not_made() {
    let mut packetizer = Packetizer::new(Generation::V20);
    let data = vec![0; MAX_UNIT - 35];
    let frame = |data| Frame { pts: 0, dts: 0, duration: None, key: false, data };
    assert_eq!(packetizer.unit(&video(), &frame(&data)), Err(Fault::UnitTooLong(MAX_UNIT)));
    let (mut client, _) = connected(&description());
    let longest = frame_data(0, MAX_UNIT - 36);
    let packets = packetizer.unit(&video(), &frame(&longest)).unwrap();
    let events = told(&mut client, packets.chunks(100_000));
    assert!(matches!(&events[..], [ClientEvent::Unit(unit)] if unit.data == longest));
}

#[test]
fn a_stream_that_comes_back_is_recognised() {
    let instance = Instance(7);
    let ours = Description { uuid: instance.name("app", "one"), ..description() };
    let mut client = client("ovt://origin/app/one");
    let mut origin = origin();
    origin.receive(client.output());
    let Some(OriginEvent::Request(request)) = origin.poll() else { panic!() };
    origin.describe(request.id, &ours).unwrap();
    match &told(&mut client, [origin.output()])[..] {
        [ClientEvent::Described(described)] => {
            assert!(instance.named(&described.uuid));
            assert!(!Instance(8).named(&described.uuid));
        }
        other => panic!("{other:?}"),
    }
}
