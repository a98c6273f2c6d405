//! Which codec does a number mean? Numbers moved when AV1 was inserted in 0.19; 0.21 added layer 2 of MPEG
//! audio.

use super::description::WireTrack;
use super::payload::{self, AudioConfig};
use crate::codec::Codec;

/// A release line of OvenMediaEngine, for the numbers it gives to codecs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// An origin's is found out from what it sends; edges are served as 0.21.
    #[default]
    Auto,
    /// 0.18, and older ones since 0.16.
    V18,
    /// 0.19.
    V19,
    /// 0.20.
    V20,
    /// 0.21.
    V21,
}

/// The numbers in use, as far as they differ for what is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Up to 0.18.
    Before19,
    /// Of 0.19 and 0.20.
    Since19,
    /// Since 0.21: the same and more.
    Since21,
}

impl Generation {
    /// `None`: to be found out.
    fn table(self) -> Option<Table> {
        match self {
            Generation::Auto => None,
            Generation::V18 => Some(Table::Before19),
            Generation::V19 | Generation::V20 => Some(Table::Since19),
            Generation::V21 => Some(Table::Since21),
        }
    }

    /// The numbers that an origin writes.
    pub(super) fn written(self) -> Table {
        self.table().unwrap_or(Table::Since21)
    }
}

impl Table {
    /// The codec of a number, if it is one that is given out.
    pub(super) fn codec(self, number: i64) -> Option<Codec> {
        [Codec::H264, Codec::H265, Codec::Aac, Codec::Mp3, Codec::Opus, Codec::Mp2]
            .into_iter()
            .find(|codec| self.number(*codec).is_some_and(|own| i64::from(own) == number))
    }

    /// The number of a codec; `None` if it has none.
    pub(super) fn number(self, codec: Codec) -> Option<u8> {
        let inserted = if self == Table::Before19 { 0 } else { 1 };
        match codec {
            Codec::H264 => Some(1),
            Codec::H265 => Some(2),
            Codec::Aac => Some(6 + inserted),
            Codec::Mp3 => Some(7 + inserted),
            Codec::Opus => Some(8 + inserted),
            Codec::Mp2 => (self == Table::Since21).then_some(15),
            Codec::Ac3 => None,
        }
    }

    /// The number of the bitstream format in which a codec is carried; -1 unknown.
    pub(super) fn format(self, codec: Codec) -> i8 {
        let inserted = if self == Table::Before19 { 0 } else { 1 };
        match codec {
            Codec::H264 => 1,
            Codec::H265 => 4,
            Codec::Aac => 9 + inserted,
            Codec::Opus => 11 + inserted,
            Codec::Mp3 => 13 + inserted,
            Codec::Mp2 if self == Table::Since21 => 25,
            Codec::Mp2 | Codec::Ac3 => -1,
        }
    }
}

/// What is known of a peer's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// By setting or by evidence.
    Known(Table),
    /// Nothing told them apart so far.
    Guessed(Table),
}

impl Numbering {
    /// Decides by the setting, then by the first track that means something in one table alone.
    pub(super) fn judge(generation: Generation, tracks: &[WireTrack]) -> Self {
        if let Some(table) = generation.table().or_else(|| tracks.iter().find_map(evidence)) {
            return Numbering::Known(table);
        }
        // Opus always has 48 kHz and MP3 seldom does, so 8 is rather the Opus of 0.18 than the MP3 of 0.19.
        let opus = tracks.iter().any(|track| track.is_audio() && track.codec_id == 8);
        Numbering::Guessed(if opus { Table::Before19 } else { Table::Since21 })
    }

    pub(super) fn table(self) -> Table {
        let (Numbering::Known(table) | Numbering::Guessed(table)) = self;
        table
    }

    /// Looks at a frame of a track while the numbers are a guess.
    pub(super) fn weigh(self, track: &WireTrack, data: &[u8]) -> Self {
        if matches!(self, Numbering::Known(_)) || !track.is_audio() || data.is_empty() {
            return self;
        }
        match track.codec_id {
            7 if payload::is_adts(data) => Numbering::Known(Table::Since21),
            7 if payload::is_mp3(data) => Numbering::Known(Table::Before19),
            8 if payload::is_mp3(data) => Numbering::Known(Table::Since21),
            8 => Numbering::Known(Table::Before19),
            _ => self,
        }
    }
}

/// What one track proves.
fn evidence(track: &WireTrack) -> Option<Table> {
    // 0.21 describes more.
    if track.public_name.is_some() {
        return Some(Table::Since21);
    }
    if !track.is_audio() {
        // Pictures of thumbnails are video: JPEG 9, PNG 10, WebP 11 became 10, 11, 12.
        return match track.codec_id {
            9 => Some(Table::Before19),
            12.. => Some(Table::Since21),
            _ => None,
        };
    }
    match track.codec_id {
        // AAC, else a codec of Flash video.
        6 => Some(Table::Before19),
        // AAC, else MP3, which has no configuration.
        7 => track.config().and_then(|config| AudioConfig::read(&config)).map(|_| Table::Since21),
        // MP3, else Opus, which always has 48 kHz.
        8 if !matches!(track.sample_rate(), 0 | 48_000) => Some(Table::Since21),
        // Opus, else JPEG.
        9 => Some(Table::Since21),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_release_lines() {
        for (table, aac, mp3, opus, mp2) in [
            (Table::Before19, 6, 7, 8, None),
            (Table::Since19, 7, 8, 9, None),
            (Table::Since21, 7, 8, 9, Some(Codec::Mp2)),
        ] {
            assert_eq!(table.codec(1), Some(Codec::H264));
            assert_eq!(table.codec(2), Some(Codec::H265));
            assert_eq!(table.codec(aac), Some(Codec::Aac));
            assert_eq!(table.codec(mp3), Some(Codec::Mp3));
            assert_eq!(table.codec(opus), Some(Codec::Opus));
            assert_eq!(table.codec(15), mp2);
            for other in [-1, 0, 3, 4, 5, 10, 11, 12, 13, 14, 16, i64::MAX] {
                assert_eq!(table.codec(other), None);
            }
        }
        let formats = |generation: Generation| {
            [Codec::H264, Codec::H265, Codec::Aac, Codec::Opus, Codec::Mp3, Codec::Mp2]
                .map(|codec| generation.written().format(codec))
        };
        assert_eq!(formats(Generation::V18), [1, 4, 9, 11, 13, -1]);
        for generation in [Generation::V19, Generation::V20] {
            assert_eq!(formats(generation), [1, 4, 10, 12, 14, -1]);
        }
        for generation in [Generation::Auto, Generation::V21] {
            assert_eq!(formats(generation), [1, 4, 10, 12, 14, 25]);
        }
    }
}
