//! Which codec a number means is found out from what comes.

use super::*;

const ASC: &str = "EZA=";
const MP3: [u8; 8] = [0xff, 0xfb, 0x90, 0x64, 0, 0, 0, 0];
const OPUS: [u8; 8] = [0xfc, 1, 2, 3, 4, 5, 6, 7];
const ADTS: [u8; 9] = [0xff, 0xf1, 0x4c, 0x80, 1, 0x3f, 0xfc, 0x21, 0x10];

/// One track, as a description has it.
fn track(id: u32, media: u8, codec: u8, rate: u32, more: &str) -> String {
    format!(
        r#"{{"audioTrack":{{"layout":3,"sampleFormat":-1,"samplerate":{rate}}},"bitrate":1,"codecId":{codec},"id":{id},"mediaType":{media},"name":"","timebaseDen":1000,"timebaseNum":1{more}}}"#
    )
}

fn config(config: &str) -> String {
    format!(r#","decoderConfig":"{config}""#)
}

/// The codecs that a client makes of these tracks, and the client, which plays.
fn described(generation: Generation, tracks: &[String]) -> (Vec<Codec>, Client) {
    let mut client = Client::new("ovt://a/b/c", generation, OPENED);
    let tracks = tracks.join(",");
    let describe = format!(
        r#"{{"application":"describe","code":200,"contents":{{"stream":{{"tracks":[{tracks}]}},"version":18}},"id":1,"message":"ok"}}"#
    );
    let play = br#"{"application":"play","code":200,"id":2,"message":"ok"}"#;
    let events = told(&mut client, [&packet(20, describe.as_bytes())[..], &packet(20, play)]);
    let [ClientEvent::Described(description), ClientEvent::Playing] = &events[..] else { panic!("{events:?}") };
    (description.tracks.iter().map(|track| track.codec).collect(), client)
}

fn auto(tracks: &[String]) -> Vec<Codec> {
    described(Generation::Auto, tracks).0
}

#[test]
fn descriptions_tell_the_tables_apart() {
    use Codec::{Aac, H264, H265, Mp3, Opus};
    let video = || track(0, 0, 1, 0, "");
    // 0.18: AAC 6, Opus 8. 0.19 to 0.21: AAC 7, Opus 9.
    assert_eq!(auto(&[video(), track(1, 1, 6, 44_100, &config(ASC))]), [H264, Aac]);
    assert_eq!(auto(&[video(), track(1, 1, 7, 44_100, &config(ASC))]), [H264, Aac]);
    assert_eq!(auto(&[track(0, 0, 2, 0, ""), track(1, 1, 8, 48_000, "")]), [H265, Opus]);
    assert_eq!(auto(&[video(), track(1, 1, 9, 48_000, "")]), [H264, Opus]);
    // One track decides for all: 7 and 8 are AAC and MP3, or MP3 and Opus.
    assert_eq!(auto(&[track(0, 1, 7, 48_000, &config(ASC)), track(1, 1, 8, 48_000, "")]), [Aac, Mp3]);
    assert_eq!(
        auto(&[track(0, 1, 6, 48_000, &config(ASC)), track(1, 1, 7, 48_000, ""), track(2, 1, 8, 48_000, "")]),
        [Aac, Mp3, Opus]
    );
    assert_eq!(auto(&[track(0, 1, 8, 44_100, "")]), [Mp3], "Opus has 48 kHz");
    // Thumbnails: WebP since 0.19, JPEG until then; 0.21 describes more.
    assert_eq!(auto(&[track(0, 0, 12, 0, ""), track(1, 1, 8, 48_000, "")]), [Mp3]);
    assert_eq!(auto(&[track(0, 0, 9, 0, ""), track(1, 1, 7, 48_000, "")]), [Mp3]);
    assert_eq!(auto(&[track(0, 1, 8, 48_000, r#","publicName":"x""#)]), [Mp3]);
}

#[test]
fn a_setting_outweighs_evidence() {
    let tracks = [track(0, 1, 7, 48_000, &config(ASC)), track(1, 1, 8, 48_000, "")];
    let (codecs, mut client) = described(Generation::V18, &tracks);
    assert_eq!(codecs, [Codec::Mp3, Codec::Opus]);
    let events = told(&mut client, [&unit(0, &ADTS)[..]]);
    assert!(matches!(events[..], [ClientEvent::Unit(Unit { codec: Codec::Mp3, .. })]), "{events:?}");
    for generation in [Generation::V19, Generation::V20, Generation::V21] {
        assert_eq!(described(generation, &tracks).0, [Codec::Aac, Codec::Mp3]);
    }
}

#[test]
fn media_corrects_a_guess_before_it_is_given_out() {
    for (number, guess, data, codec) in [(8, Codec::Opus, &MP3, Codec::Mp3), (7, Codec::Aac, &MP3, Codec::Mp3)] {
        let (codecs, mut client) = described(Generation::Auto, &[track(0, 1, number, 48_000, "")]);
        assert_eq!(codecs, [guess]);
        let events = told(&mut client, [&unit(0, data)[..], &unit(0, data)]);
        let [ClientEvent::TracksChanged(tracks), ClientEvent::Unit(first), ClientEvent::Unit(second)] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert_eq!((tracks[0].codec, first.codec, second.codec), (codec, codec, codec));
    }
}

#[test]
fn media_confirms_a_guess_once() {
    // Afterwards it is no guess: what looks like another codec is a broken frame.
    let (_, mut client) = described(Generation::Auto, &[track(0, 1, 8, 48_000, "")]);
    let events = told(&mut client, [&unit(0, &OPUS)[..], &unit(0, &MP3)]);
    assert!(
        matches!(&events[..], [ClientEvent::Unit(one), ClientEvent::Unit(two)] if one.codec == Codec::Opus && two.codec == Codec::Opus),
        "{events:?}"
    );
    let (_, mut client) = described(Generation::Auto, &[track(0, 1, 7, 48_000, "")]);
    let events = told(&mut client, [&unit(0, &ADTS)[..], &unit(0, &MP3)]);
    assert!(matches!(&events[..], [ClientEvent::Unit(_), ClientEvent::Ignored(Ignored::Payload(0))]), "{events:?}");
}

#[test]
fn the_configuration_tells_h264_and_h265_apart() {
    let hevc = "AQAAAAAAAAAAAAAAAPAA/Pz4+AAAAAA=";
    assert_eq!(auto(&[track(0, 0, 1, 0, &config(hevc))]), [Codec::H265]);
    assert_eq!(auto(&[track(0, 0, 2, 0, &config("AULADf/hAAFnAQABaA=="))]), [Codec::H264]);
    assert_eq!(auto(&[track(0, 0, 2, 0, &config("AQID"))]), [Codec::H265]);
    assert_eq!(auto(&[track(0, 0, 2, 0, &config("not base64"))]), [Codec::H265]);
}

#[test]
fn raw_aac_gets_its_header_and_what_cannot_have_one_is_passed_over() {
    let (_, mut client) = described(Generation::Auto, &[track(0, 1, 7, 48_000, &config(ASC))]);
    let events = told(&mut client, [&unit(0, &[0x21, 0x10])[..], &unit(0, &ADTS)]);
    let data: Vec<_> =
        events.iter().map(|event| if let ClientEvent::Unit(unit) = event { &unit.data[..] } else { &[] }).collect();
    assert_eq!(data, [ADTS, ADTS]);

    let (_, mut client) = described(Generation::V20, &[track(0, 1, 7, 48_000, "")]);
    assert_eq!(told(&mut client, [&unit(0, &[0x21, 0x10])[..]]), [ClientEvent::Ignored(Ignored::Payload(0))]);

    // A sequence header is no frame, nor is nothing, nor video without start codes.
    let mut header = unit(0, &[0x11, 0x90]);
    header[18 + 31] = 2;
    let (_, mut client) = described(Generation::Auto, &[track(0, 1, 7, 48_000, &config(ASC)), track(1, 0, 1, 0, "")]);
    let events = told(&mut client, [&header[..], &unit(0, &[]), &unit(1, &[0, 0, 0, 2, 9, 0xf0])]);
    assert_eq!(events, [ClientEvent::Ignored(Ignored::Payload(0))]);
}

#[test]
fn tracks_of_other_codecs_are_left_out_and_the_rest_plays() {
    // VP8, VP9, AV1 since 0.19; a picture that says it is sound; a data track; one that lacks its timebase.
    let others = [
        track(2, 0, 3, 0, ""),
        track(3, 0, 4, 0, ""),
        track(4, 0, 5, 0, ""),
        track(5, 1, 1, 0, ""),
        track(6, 2, 0, 0, ""),
    ];
    let mut tracks = others.to_vec();
    tracks.push(track(1, 1, 9, 48_000, ""));
    let (codecs, mut client) = described(Generation::Auto, &tracks);
    assert_eq!(codecs, [Codec::Opus]);
    let units: Vec<_> = (2..7).chain([1]).flat_map(|id| unit(id, &OPUS)).collect();
    let events = told(&mut client, [&units[..]]);
    assert!(matches!(events[..], [ClientEvent::Unit(Unit { track: 1, .. })]), "{events:?}");
}
