//! How bytes are cut changes nothing, and no bytes are a panic.

use proptest::prelude::*;

use super::*;

/// Cuts at these places, wherever they fall.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([0, bytes.len()]).collect();
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// Everything an origin tells of these pieces, and all it says.
fn served<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<OriginEvent>, Vec<u8>) {
    let (mut origin, mut events, mut sent) = (origin(), Vec::new(), Vec::new());
    for piece in pieces {
        origin.receive(piece);
        loop {
            while let Some(event) = origin.poll() {
                if let OriginEvent::Request(request) = &event {
                    match request.application {
                        Application::Describe => origin.describe(request.id, &description()).unwrap(),
                        Application::Play => origin.playing(request.id),
                        Application::Stop => origin.stopped(request.id),
                    }
                }
                events.push(event);
            }
            if origin.output().is_empty() {
                break;
            }
            sent.extend(said(&mut origin));
        }
    }
    (events, sent)
}

/// Packets as they may be, right and wrong.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let message = prop_oneof![
        Just(r#"{"application":"play","id":2,"target":"ovt://a/app/one"}"#.to_owned()),
        Just(r#"{"application":"play","code":200,"id":2,"message":"ok"}"#.to_owned()),
        Just(r#"{"application":"notify","code":200,"id":0,"message":"track_changed"}"#.to_owned()),
        Just("[1]".to_owned()),
        "\\PC{0,20}",
    ];
    let payload = prop_oneof![
        message.prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..60),
        (0..4_u8, prop::collection::vec(any::<u8>(), 0..60))
            .prop_map(|(track, data)| unit(track, &data)[18..].to_vec()),
    ];
    let one = (prop::sample::select(&[10_u8, 20, 30, 30, 0, 99][..]), any::<bool>(), payload);
    prop::collection::vec(one, 0..12).prop_map(|all| {
        all.into_iter()
            .flat_map(|(kind, last, payload)| if last { packet(kind, &payload) } else { part(kind, &payload) })
            .collect()
    })
}

proptest! {
    #[test]
    fn a_client_hears_the_same_however_its_input_is_cut(
        tail in packets(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        fixture in prop::sample::select(&[OURS, OME][..]),
    ) {
        let bytes = [all_of(fixture, From::Origin), tail].concat();
        let mut whole = client("ovt://a/b/c");
        let mut cut = client("ovt://a/b/c");
        prop_assert_eq!(told(&mut cut, pieces(&bytes, &cuts)), told(&mut whole, [&bytes[..]]));
        prop_assert_eq!(cut.output(), whole.output());
    }

    #[test]
    fn an_origin_hears_the_same_however_its_input_is_cut(
        head in packets(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let bytes = [head, all_of(REQUESTS, From::Edge)].concat();
        prop_assert_eq!(served(pieces(&bytes, &cuts)), served([&bytes[..]]));
    }

    #[test]
    fn nothing_is_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), tail in packets()) {
        for bytes in [bytes, tail] {
            told(&mut client("ovt://a/b/c"), [&bytes[..]]);
            told(&mut playing(), [&bytes[..]]);
            served([&bytes[..]]);
        }
    }
}

#[test]
fn single_bytes_are_enough() {
    let bytes = all_of(OURS, From::Origin);
    let whole = told(&mut client("ovt://a/b/c"), [&bytes[..]]);
    assert!(whole.len() > 6);
    assert_eq!(told(&mut client("ovt://a/b/c"), bytes.chunks(1)), whole);
}
