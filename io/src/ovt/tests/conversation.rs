//! What is said is what OvenMediaEngine says, and what it says is understood.

use super::*;

const IDR: [u8; 35] = [
    0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x0d, 0xda, 5, 7, 0xec, 4, 0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80,
    0, 0, 0, 1, 0x65, 0x88, 0x84, 0x0a,
];
const DELTA: [u8; 14] = [0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x41, 0x9a, 0x20, 0x13];
const AAC: [u8; 11] = [0xff, 0xf1, 0x4c, 0x80, 1, 0x7f, 0xfc, 0x21, 0x10, 4, 5];

fn got(track: u32, codec: Codec, (pts, dts): (i64, i64), key: bool, data: &'static [u8]) -> ClientEvent {
    ClientEvent::Unit(Unit { track, codec, pts, dts, key, data: Bytes::from_static(data) })
}

#[test]
fn our_client_understands_our_origin_and_speaks_as_an_edge_does() {
    let mut client = client("ovt://origin.example:9000/app/one?token=a%20b");
    let (mut events, mut sent) = (Vec::new(), Vec::new());
    for (from, bytes) in lines(OURS) {
        match from {
            From::Edge => {
                if bytes.ends_with(b"}") && bytes.windows(6).any(|w| w == b"\"stop\"") {
                    client.stop();
                    assert!(!client.is_finished());
                }
                assert_eq!(client.output().escape_ascii().to_string(), bytes.escape_ascii().to_string());
                sent.extend_from_slice(client.output());
                client.wrote(bytes.len());
            }
            From::Origin => events.extend(told(&mut client, [&bytes[..]])),
        }
    }
    assert!(client.is_finished());
    assert_eq!(sent, all_of(OURS, From::Edge));
    let mut larger = video();
    larger.bitrate = 3_500_000;
    larger.media = Media::Video(Picture { width: 1920, height: 1080, framerate: 50.0 });
    assert_eq!(
        events,
        [
            ClientEvent::Described(description()),
            ClientEvent::Playing,
            got(0, Codec::H264, (2_033_367, 2_000_000), true, &IDR),
            got(1, Codec::Aac, (2_000_000, 2_000_000), true, &AAC),
            got(0, Codec::H264, (2_033_367, 2_033_367), false, &DELTA),
            ClientEvent::TracksChanged(vec![larger, audio()]),
            got(0, Codec::H264, (2_066_733, 2_066_733), true, &IDR),
        ]
    );
}

#[test]
fn our_origin_answers_as_an_origin_does() {
    let mut origin = origin();
    let mut packetizer = Packetizer::new(Generation::V20);
    let mut larger = video();
    larger.bitrate = 3_500_000;
    larger.media = Media::Video(Picture { width: 1920, height: 1080, framerate: 50.0 });
    let frame = |pts, dts, duration, key, data| Frame { pts, dts, duration, key, data };
    let mut media = [
        (video(), frame(2_033_367, 2_000_000, Some(33_367), true, &IDR)),
        (audio(), frame(2_000_000, 2_000_000, Some(21_333), true, &AAC)),
        (video(), frame(2_033_367, 2_033_367, None, false, &DELTA)),
        (larger.clone(), frame(2_066_733, 2_066_733, None, true, &IDR)),
    ]
    .into_iter();
    for (from, bytes) in lines(OURS) {
        match from {
            From::Edge => {
                origin.receive(&bytes);
                let Some(OriginEvent::Request(request)) = origin.poll() else {
                    panic!("{bytes:?} is a request");
                };
                assert_eq!((request.app.as_str(), request.stream.as_str()), ("app", "one"));
                match request.application {
                    Application::Describe => origin.describe(request.id, &description()).unwrap(),
                    Application::Play => {
                        assert!(!origin.is_playing());
                        origin.playing(request.id);
                        assert!(origin.is_playing());
                    }
                    Application::Stop => origin.stopped(request.id),
                }
                assert_eq!(origin.poll(), None);
            }
            From::Origin => {
                if bytes[1] == 30 {
                    let (track, frame) = media.next().unwrap();
                    assert_eq!(packetizer.unit(&track, &frame).unwrap(), bytes);
                    continue;
                }
                if origin.output().is_empty() {
                    origin.track_changed(&larger).unwrap();
                }
                assert!(!origin.is_finished());
                assert_eq!(said(&mut origin).escape_ascii().to_string(), bytes.escape_ascii().to_string());
            }
        }
    }
    assert_eq!(media.count(), 0);
    assert!(origin.is_finished() && !origin.wants_read());
}

#[test]
fn changes_of_tracks_are_told_to_those_alone_who_understand_them() {
    let mut origin = Origin::new(OriginSettings::default(), OPENED);
    origin.receive(&packet(10, br#"{"application":"play","id":1,"target":"ovt://a/app/one"}"#));
    assert!(matches!(origin.poll(), Some(OriginEvent::Request(_))));
    origin.playing(1);
    said(&mut origin);
    origin.track_changed(&video()).unwrap();
    assert!(origin.output().is_empty());

    // Nor to those who get no media.
    let mut origin = super::origin();
    origin.track_changed(&video()).unwrap();
    assert!(origin.output().is_empty());
}

#[test]
fn an_origin_of_0_20_is_understood() {
    let mut client = client("ovt://127.0.0.1:9000/app/s1");
    let events = told(&mut client, [&all_of(OME, From::Origin)[..]]);
    let [ClientEvent::Described(described), ClientEvent::Playing, rest @ ..] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((described.app.as_str(), described.stream.as_str()), ("#default#app", "s1"));
    assert_eq!(described.uuid, "b3f1c6de-52a7-4a0e-9c44-0d2f6a1e7788/#default#app/s1/i");
    let names: Vec<_> = described.tracks.iter().map(|track| (track.id, track.codec, track.name.as_str())).collect();
    assert_eq!(names, [(0, Codec::H264, "bypass_video"), (1, Codec::Aac, "bypass_audio")], "data is left out");
    assert_eq!(described.tracks[0].media, Media::Video(Picture { width: 320, height: 240, framerate: 25.0 }));
    assert_eq!(described.tracks[1].media, Media::Audio(Sound { rate: 48_000, layout: 3, format: 1 }));
    assert_eq!(
        rest,
        [
            got(0, Codec::H264, (4_701_000, 4_701_000), false, &DELTA),
            // Comes before the unit in which it lies; the one behind the last unit is of the same kind.
            ClientEvent::Ignored(Ignored::Message),
            got(0, Codec::H264, (4_741_000, 4_741_000), true, &IDR),
            got(1, Codec::Aac, (4_714_000, 4_714_000), true, &AAC),
            got(1, Codec::Aac, (4_736_000, 4_736_000), true, &AAC),
        ]
    );
    let asked = all_of(OME, From::Edge);
    assert!(asked.starts_with(client.output()), "describe and play were asked, in this order");
    client.wrote(usize::MAX);
    client.stop();
    assert!(asked.ends_with(client.output()) && !client.output().is_empty());
}

#[test]
fn requests_of_edges_are_read_and_wrong_ones_answered() {
    let mut origin = origin();
    let mut shown = Vec::new();
    for (from, bytes) in lines(REQUESTS) {
        if from == From::Origin {
            let expected = String::from_utf8_lossy(&bytes[18..]).into_owned();
            let said = said(&mut origin);
            assert_eq!(String::from_utf8_lossy(&said[18..]), expected);
            assert_eq!(said[..18], bytes[..18]);
            continue;
        }
        origin.receive(&bytes);
        while let Some(event) = origin.poll() {
            let OriginEvent::Request(request) = event else { panic!("{event:?}") };
            assert_eq!(request.target, "ovt://127.0.0.1:17001/app/one?token=a%20b&x=1");
            shown.push((request.application, request.id));
            match request.id {
                1 => origin.refuse(1, 404, "no such stream"),
                2 => origin.refuse(2, 202, "not started"),
                id => origin.playing(id),
            }
        }
    }
    assert_eq!(shown, [(Application::Describe, 1), (Application::Describe, 2), (Application::Play, 6)]);
    assert!(origin.wants_read() && origin.is_playing());
}

#[test]
fn a_request_has_one_answer_and_the_next_waits_for_it() {
    let mut origin = origin();
    let ask = |id: u8| packet(10, format!(r#"{{"application":"play","id":{id},"target":"ovt://a/b/c"}}"#).as_bytes());
    origin.receive(&[ask(1), ask(2)].concat());
    assert!(matches!(origin.poll(), Some(OriginEvent::Request(Request { id: 1, .. }))));
    assert_eq!(origin.poll(), None);
    origin.playing(2);
    origin.stopped(1);
    origin.describe(1, &description()).unwrap();
    assert!(origin.output().is_empty(), "that is not what was asked");
    origin.playing(1);
    let once = said(&mut origin);
    assert!(!once.is_empty());
    origin.playing(1);
    origin.refuse(1, 404, "");
    assert!(origin.output().is_empty());
    assert!(matches!(origin.poll(), Some(OriginEvent::Request(Request { id: 2, .. }))));
}

#[test]
fn a_description_is_sent_when_an_edge_can_play_at_once() {
    let mut origin = origin();
    origin.receive(&packet(10, br#"{"application":"describe","id":1,"target":"ovt://a/app/one"}"#));
    assert!(matches!(origin.poll(), Some(OriginEvent::Request(_))));
    let picture = |width, height, framerate| Media::Video(Picture { width, height, framerate });
    let lacking = [
        ("bitrate", Track { bitrate: 0, ..video() }),
        ("decoderConfig", Track { decoder_config: None, ..video() }),
        ("width", Track { media: picture(0, 720, 25.0), ..video() }),
        ("height", Track { media: picture(1280, 0, 25.0), ..video() }),
        ("framerate", Track { media: picture(1280, 720, 0.0), ..video() }),
        ("framerate", Track { media: picture(1280, 720, f64::NAN), ..video() }),
        ("framerate", Track { media: picture(1280, 720, f64::INFINITY), ..video() }),
        ("decoderConfig", Track { decoder_config: None, ..audio() }),
        ("samplerate", Track { media: Media::Audio(Sound { rate: 0, layout: 3, format: 8 }), ..audio() }),
    ];
    for (key, track) in lacking {
        let incomplete = Err(Incomplete { track: Some(track.id), key });
        assert_eq!(origin.track_changed(&track), incomplete);
        assert_eq!(origin.describe(1, &Description { tracks: vec![track], ..description() }), incomplete);
    }
    let mut empty = description();
    empty.tracks.clear();
    assert_eq!(origin.describe(1, &empty), Err(Incomplete { track: None, key: "tracks" }));
    assert!(origin.output().is_empty());
    origin.describe(1, &description()).unwrap();
    assert!(!origin.output().is_empty());
}

#[test]
fn refusals_are_told_apart() {
    let refused = |code: u32, application: &str| {
        let answer = format!(r#"{{"application":"{application}","code":{code},"id":1,"message":"why"}}"#);
        let mut client = client("ovt://a/b/c");
        let mut events = told(&mut client, [&packet(20, answer.as_bytes())[..]]);
        assert!(client.is_finished());
        assert_eq!(events.len(), 1);
        events.remove(0)
    };
    let message = || "why".to_owned();
    assert_eq!(refused(404, "describe"), ClientEvent::NotFound { message: message() });
    assert_eq!(refused(404, "unknown"), ClientEvent::NotFound { message: message() });
    assert_eq!(refused(202, "describe"), ClientEvent::NotStarted);
    assert_eq!(refused(500, "unknown"), ClientEvent::Refused { code: 500, message: message() });
    assert_eq!(refused(4_294_967_295, "describe"), ClientEvent::Refused { code: u32::MAX, message: message() });
    assert_eq!(refused(200, "unknown"), ClientEvent::Fault(Fault::Answer("belongs to another request")));
}

#[test]
fn stopping_before_media_was_promised_says_nothing_more() {
    let mut client = client("ovt://a/b/c");
    client.wrote(usize::MAX);
    client.stop();
    assert!(client.output().is_empty() && client.is_finished());
    client.receive(&all_of(OURS, From::Origin));
    assert_eq!(client.poll(), None);
}

#[test]
fn a_track_may_change_before_the_answer_to_play() {
    let ours = lines(OURS);
    let answers: Vec<&[u8]> = ours.iter().filter(|(from, _)| *from == From::Origin).map(|(_, b)| &b[..]).collect();
    let [describe, play, _, _, _, notice, ..] = answers[..] else { panic!() };
    let events = told(&mut client("ovt://a/b/c"), [describe, notice, play]);
    assert!(
        matches!(events[..], [ClientEvent::Described(_), ClientEvent::TracksChanged(_), ClientEvent::Playing]),
        "{events:?}"
    );
}

#[test]
fn notices_change_known_tracks_alone() {
    let track = |id: u32, rate: u32| {
        format!(
            r#"{{"audioTrack":{{"samplerate":{rate}}},"codecId":7,"decoderConfig":"EZA=","id":{id},"mediaType":1,"timebaseDen":1000000,"timebaseNum":1}}"#
        )
    };
    let notice = |message: &str, tracks: &str| {
        let contents = format!(r#"{{"stream":{{"tracks":[{tracks}]}},"version":18}}"#);
        let notice =
            format!(r#"{{"application":"notify","code":200,"contents":{contents},"id":0,"message":"{message}"}}"#);
        packet(20, notice.as_bytes())
    };
    let early = told(&mut client("ovt://a/b/c"), [&notice("track_changed", &track(1, 8_000))[..]]);
    assert_eq!(early, [ClientEvent::Ignored(Ignored::Message)], "nothing is described yet");
    let mut client = playing();
    assert_eq!(told(&mut client, [&notice("track_changed", &track(7, 8_000))[..]]), []);
    assert_eq!(told(&mut client, [&notice("rebooting", "")[..]]), [ClientEvent::Ignored(Ignored::Message)]);
    let partly = format!("{{}},{}", track(1, 44_100));
    let events = told(&mut client, [&notice("track_changed", &partly)[..]]);
    let [ClientEvent::TracksChanged(tracks), ClientEvent::Ignored(Ignored::Track)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(tracks[0], video());
    assert_eq!(tracks[1].media, Media::Audio(Sound { rate: 44_100, layout: 0, format: -1 }));
    assert_eq!(told(&mut client, [&notice("track_changed", &track(1, 44_100))[..]]), [], "that is no change");
}

#[test]
fn media_before_the_answer_to_play_is_not_given_out() {
    let ours = lines(OURS);
    let answers: Vec<&[u8]> =
        ours.iter().filter(|(from, _)| *from == From::Origin).map(|(_, bytes)| &bytes[..]).collect();
    let [describe, play, first, second, ..] = answers[..] else { panic!() };
    let events = told(&mut client("ovt://a/b/c"), [&[first, describe, first, play, second].concat()[..]]);
    assert!(
        matches!(
            events[..],
            [ClientEvent::Described(_), ClientEvent::Playing, ClientEvent::Unit(Unit { track: 1, .. })]
        ),
        "{events:?}"
    );
}

/// Conversations that were recorded between others, if there are any: `client_to_origin.bin` and `origin_to_client.bin` in the
/// directory that HOLDFAST_OVT_RECORDINGS names. What holds for them holds for our own fixture.
#[test]
fn recorded_conversations_are_understood() {
    let (asked, answered) = match std::env::var_os("HOLDFAST_OVT_RECORDINGS") {
        Some(directory) => {
            let read = |name| std::fs::read(std::path::Path::new(&directory).join(name)).unwrap();
            (read("client_to_origin.bin"), read("origin_to_client.bin"))
        }
        None => (all_of(OME, From::Edge), all_of(OME, From::Origin)),
    };

    // What the edge sends is read, and is what ours sends but for the time.
    let (mut origin, mut requests) = (origin(), Vec::new());
    origin.receive(&asked);
    while let Some(event) = origin.poll() {
        let OriginEvent::Request(request) = event else { panic!("{event:?}") };
        match request.application {
            Application::Describe => origin.describe(request.id, &description()).unwrap(),
            Application::Play => origin.playing(request.id),
            Application::Stop => origin.stopped(request.id),
        }
        requests.push(request);
    }
    let kinds: Vec<_> = requests.iter().map(|request| (request.application, request.id)).collect();
    assert_eq!(kinds, [(Application::Describe, 1), (Application::Play, 2), (Application::Stop, 3)]);

    let mut client = client(&requests[0].target);
    let events = told(&mut client, answered.chunks(1000));
    client.stop();
    let mut timed = asked.clone();
    let mut at = 0;
    while at < timed.len() {
        let length = usize::from(u16::from_be_bytes([timed[at + 16], timed[at + 17]]));
        timed[at + 4..at + 12].copy_from_slice(&OPENED.0.to_be_bytes());
        at += 18 + length;
    }
    assert_eq!(client.output().escape_ascii().to_string(), timed.escape_ascii().to_string());

    assert!(matches!(events[..2], [ClientEvent::Described(_), ClientEvent::Playing]));
    let (mut video, mut audio) = (0, 0);
    for event in &events[2..] {
        match event {
            ClientEvent::Unit(unit) if unit.codec.is_video() => {
                assert!(unit.data.starts_with(&[0, 0, 0, 1, 9]), "an access unit delimiter goes first");
                assert_eq!(
                    unit.key,
                    unit.data.windows(5).any(|w| w == [0, 0, 0, 1, 0x65] || w == [0, 0, 1, 0x65, 0x88])
                );
                video += 1;
            }
            ClientEvent::Unit(unit) => {
                assert_eq!((unit.codec, unit.key, unit.data[0]), (Codec::Aac, true, 0xff));
                audio += 1;
            }
            ClientEvent::Ignored(Ignored::Message) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(video > 0 && audio > 0);
    let units = answered.len() / 1000;
    assert!(video + audio > units, "{video} + {audio}");
}
