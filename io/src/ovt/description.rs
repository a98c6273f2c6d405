//! Which tracks does a stream have, and what is known of them?

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::generation::Table;
use super::payload;
use crate::codec::Codec;

/// The signalling version, unchanged since 0.16.
const VERSION: u32 = 0x12;

const VIDEO: i64 = 0;
const AUDIO: i64 = 1;

/// The longest time that is taken, in µs: some 36 000 years, so that sums and differences do not overflow.
const LONGEST: i128 = 1 << 60;

/// What an origin says of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// `#host#app` at an OvenMediaEngine.
    pub app: String,
    /// The stream's name within the application.
    pub stream: String,
    /// Where the stream comes from (`originStreamUUID`), see [`Instance`](super::Instance). Empty if the origin does not say.
    pub uuid: String,
    /// The tracks whose codec is known here.
    pub tracks: Vec<Track>,
}

/// One track of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// By which media units name it. Unique within the stream.
    pub id: u32,
    /// For people.
    pub name: String,
    /// How its frames are coded.
    pub codec: Codec,
    /// In which its times are counted on the wire.
    pub timebase: Timebase,
    /// Bits per second; 0 if unknown.
    pub bitrate: u32,
    /// What it shows or sounds like.
    pub media: Media,
    /// avcC, hvcC or AudioSpecificConfig, by codec. None for Opus and MPEG audio.
    pub decoder_config: Option<Bytes>,
}

/// What differs between picture and sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Media {
    /// Picture.
    Video(Picture),
    /// Sound.
    Audio(Sound),
}

/// Zeros are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Picture {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Frames per second.
    pub framerate: f64,
}

/// Zeros are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sound {
    /// Hz.
    pub rate: u32,
    /// One bit per loudspeaker, as FFmpeg numbers them; mono is 4, stereo 3.
    pub layout: u32,
    /// -1 unknown, 1 signed 16 bit, 8 planar float; see FFmpeg's sample formats.
    pub format: i8,
}

impl Sound {
    /// How many loudspeakers the layout has.
    pub fn channels(self) -> u32 {
        self.layout.count_ones()
    }
}

/// The length of one tick: `num / den` seconds. Neither is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timebase {
    num: u32,
    den: u32,
}

impl Timebase {
    /// Ticks of a microsecond, so that times need no rounding.
    pub const MICROS: Timebase = Timebase { num: 1, den: 1_000_000 };

    /// `None` if one is zero.
    pub fn new(num: u32, den: u32) -> Option<Self> {
        (num > 0 && den > 0).then_some(Timebase { num, den })
    }

    /// The nearest microsecond. Each time is converted by itself, so nothing adds up. `None` beyond 36 000 years.
    pub fn micros(self, ticks: i64) -> Option<i64> {
        let micros = nearest(i128::from(ticks) * i128::from(self.num) * 1_000_000, i128::from(self.den));
        i64::try_from(micros).ok().filter(|_| micros.abs() <= LONGEST)
    }

    /// The nearest tick, or the furthest there is.
    pub fn ticks(self, micros: i64) -> i64 {
        let ticks = nearest(i128::from(micros) * i128::from(self.den), i128::from(self.num) * 1_000_000);
        i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }
}

fn nearest(value: i128, divisor: i128) -> i128 {
    (value + divisor / 2).div_euclid(divisor)
}

/// What keeps an edge from playing a stream at once, named by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Of the track that is lacking; `None` if there are no tracks at all.
    pub track: Option<u32>,
    /// The key of what is zero or absent, or has no number.
    pub key: &'static str,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.track {
            Some(id) => write!(f, "track {id} has no {}", self.key),
            None => write!(f, "there are no {}", self.key),
        }
    }
}

impl std::error::Error for Incomplete {}

impl Description {
    /// Whether an edge can play it at once.
    pub(super) fn check(&self, table: Table) -> Result<(), Incomplete> {
        if self.tracks.is_empty() {
            return Err(Incomplete { track: None, key: "tracks" });
        }
        self.tracks.iter().try_for_each(|track| track.check(table))
    }
}

impl Track {
    /// Whether an edge can play it at once.
    pub(super) fn check(&self, table: Table) -> Result<(), Incomplete> {
        self.lacks(table).map_or(Ok(()), |key| Err(Incomplete { track: Some(self.id), key }))
    }

    fn lacks(&self, table: Table) -> Option<&'static str> {
        let configured = matches!(self.codec, Codec::H264 | Codec::H265 | Codec::Aac);
        match self.media {
            _ if table.number(self.codec).is_none() => Some("codecId"),
            _ if self.bitrate == 0 => Some("bitrate"),
            _ if configured && self.decoder_config.is_none() => Some("decoderConfig"),
            Media::Video(picture) if picture.width == 0 => Some("width"),
            Media::Video(picture) if picture.height == 0 => Some("height"),
            Media::Video(picture) if !(picture.framerate > 0.0 && picture.framerate.is_finite()) => Some("framerate"),
            Media::Audio(sound) if sound.rate == 0 => Some("samplerate"),
            _ => None,
        }
    }
}

/// `contents` of the answer to describe, and of a change of tracks. Fields are in the order of their keys.
#[derive(Serialize)]
pub(super) struct Contents<'a> {
    stream: WireStream<'a>,
    version: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireStream<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    app_name: Option<&'a str>,
    #[serde(rename = "originStreamUUID", skip_serializing_if = "Option::is_none")]
    uuid: Option<&'a str>,
    /// Written as null: there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    playlists: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_name: Option<&'a str>,
    tracks: Vec<WireTrack>,
}

impl<'a> Contents<'a> {
    pub(super) fn describe(description: &'a Description, table: Table) -> Self {
        let stream = WireStream {
            app_name: Some(&description.app),
            uuid: Some(&description.uuid),
            playlists: Some(()),
            stream_name: Some(&description.stream),
            tracks: description.tracks.iter().map(|track| WireTrack::of(track, table)).collect(),
        };
        Contents { stream, version: VERSION }
    }

    pub(super) fn changed(track: &Track, table: Table) -> Self {
        let tracks = vec![WireTrack::of(track, table)];
        Contents {
            stream: WireStream { app_name: None, uuid: None, playlists: None, stream_name: None, tracks },
            version: VERSION,
        }
    }
}

/// A track as it is written, fields in the order of their keys. What a peer of any release leaves out has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireTrack {
    #[serde(default)]
    audio_track: WireAudio,
    #[serde(default)]
    bitrate: i64,
    pub(super) codec_id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decoder_config: Option<String>,
    pub(super) id: u32,
    #[serde(default, skip_deserializing)]
    last_frame_time: u64,
    media_type: i64,
    #[serde(default)]
    name: String,
    /// Of 0.21, and never written.
    #[serde(default, skip_serializing)]
    pub(super) public_name: Option<String>,
    #[serde(default, skip_deserializing)]
    start_frame_time: u64,
    timebase_den: u32,
    timebase_num: u32,
    #[serde(default)]
    video_track: WireVideo,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireAudio {
    layout: u32,
    sample_format: i8,
    samplerate: i64,
}

impl Default for WireAudio {
    fn default() -> Self {
        WireAudio { layout: 0, sample_format: -1, samplerate: 0 }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WireVideo {
    framerate: f64,
    height: i64,
    width: i64,
}

impl WireTrack {
    fn of(track: &Track, table: Table) -> Self {
        let mut wire = WireTrack {
            bitrate: track.bitrate.into(),
            // 0 is no codec, and such a track is not described.
            codec_id: table.number(track.codec).unwrap_or(0).into(),
            decoder_config: track.decoder_config.as_ref().map(|config| BASE64_STANDARD.encode(config)),
            id: track.id,
            name: track.name.clone(),
            timebase_den: track.timebase.den,
            timebase_num: track.timebase.num,
            ..WireTrack::default()
        };
        match track.media {
            Media::Video(Picture { width, height, framerate }) => {
                wire.media_type = VIDEO;
                wire.video_track = WireVideo { framerate, height: height.into(), width: width.into() };
            }
            Media::Audio(Sound { rate, layout, format }) => {
                wire.media_type = AUDIO;
                wire.audio_track = WireAudio { layout, sample_format: format, samplerate: rate.into() };
            }
        }
        wire
    }

    pub(super) fn is_audio(&self) -> bool {
        self.media_type == AUDIO
    }

    pub(super) fn sample_rate(&self) -> i64 {
        self.audio_track.samplerate
    }

    /// The decoder configuration, unless it is empty or not base64.
    pub(super) fn config(&self) -> Option<Bytes> {
        let config = BASE64_STANDARD.decode(self.decoder_config.as_ref()?).ok()?;
        (!config.is_empty()).then(|| config.into())
    }

    /// The track, if its codec is one that is given out.
    pub(super) fn track(&self, table: Table) -> Option<Track> {
        let decoder_config = self.config();
        let codec = table.codec(self.codec_id)?;
        let number = |value: i64| u32::try_from(value).unwrap_or(0);
        let (codec, media) = match (self.media_type, codec.is_video()) {
            (VIDEO, true) => {
                let WireVideo { framerate, height, width } = self.video_track;
                let picture = Picture { width: number(width), height: number(height), framerate };
                let configured = decoder_config.as_deref().and_then(payload::configured_video);
                (configured.unwrap_or(codec), Media::Video(picture))
            }
            (AUDIO, false) => {
                let WireAudio { layout, sample_format: format, samplerate } = self.audio_track;
                (codec, Media::Audio(Sound { rate: number(samplerate), layout, format }))
            }
            _ => return None,
        };
        Some(Track {
            id: self.id,
            name: self.name.clone(),
            codec,
            timebase: Timebase::new(self.timebase_num, self.timebase_den)?,
            bitrate: number(self.bitrate),
            media,
            decoder_config,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_to_the_nearest_and_back_without_loss() {
        let ninety = Timebase::new(1, 90_000).unwrap();
        for ticks in [0, 1, -1, 2, 3, 3_003, 8_589_934_591, -8_589_934_591] {
            let micros = ninety.micros(ticks).unwrap();
            assert_eq!(ninety.ticks(micros), ticks);
        }
        assert_eq!(ninety.micros(1), Some(11));
        assert_eq!(ninety.micros(-1), Some(-11));
        assert_eq!(ninety.micros(3_003), Some(33_367));
        assert_eq!(Timebase::new(1001, 30_000).unwrap().micros(30_000), Some(1_001_000_000));
        assert_eq!(Timebase::MICROS.micros(7), Some(7));
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let slow = Timebase::new(u32::MAX, 1).unwrap();
        assert_eq!(slow.micros(i64::MAX), None);
        assert_eq!(Timebase::MICROS.micros(i64::MIN), None);
        assert_eq!(slow.ticks(i64::MAX), 2_147);
        assert_eq!(Timebase::new(1, u32::MAX).unwrap().ticks(i64::MIN), i64::MIN);
        assert_eq!(Timebase::new(0, 1), None);
        assert_eq!(Timebase::new(1, 0), None);
    }
}
