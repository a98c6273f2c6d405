//! Playlists of our own feeds (RFC 8216), in words.
//!
//! Addresses in them are relative and carry the viewer's signed token: a viewer is told by it on whatever connection it asks.
//!
//! | file | question it answers |
//! |---|---|
//! | `rewrite` | how does a playlist of another server's become one of ours? |
//! | `sealed` | what does an address in it stand for? |
//! | `attribute`, `variables` | what is written in a line of it? |

mod attribute;
pub mod rewrite;
pub mod sealed;
mod variables;

use std::fmt::{self, Write};

use holdfast_core::feed::{Playlist, Segment};

/// What a stream is said to take at most before anything of it was measured, in bits per second.
const BANDWIDTH: u64 = 4_000_000;

/// What of a feed's HLS is asked for, by the last part of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `index.m3u8`: the multivariant playlist, which every player begins with.
    Index,
    /// `media.m3u8`: the media playlist, which it asks for again and again.
    Media,
    /// `segment-{number}.ts`.
    Segment(u64),
}

impl File {
    /// Reads a name. Each file has one.
    pub fn parse(name: &str) -> Option<File> {
        match name {
            "index.m3u8" => Some(File::Index),
            "media.m3u8" => Some(File::Media),
            _ => {
                let number = name.strip_prefix("segment-")?.strip_suffix(".ts")?;
                let file = File::Segment(number.parse().ok()?);
                (file.to_string() == name).then_some(file)
            }
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            File::Index => f.write_str("index.m3u8"),
            File::Media => f.write_str("media.m3u8"),
            File::Segment(number) => write!(f, "segment-{number}.ts"),
        }
    }
}

/// The multivariant playlist of one viewer. `CODECS` is left out: a player that reads it relies on it, and what a publisher
/// sends may change while it is watched.
///
/// `base` leads from the address that it was asked for at to where the feed is; it is empty or ends with a `/`.
pub fn multivariant(base: &str, token: &str, bandwidth: u64) -> String {
    let media = File::Media;
    format!("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:BANDWIDTH={bandwidth}\n{base}{media}?v={token}\n")
}

/// A multivariant playlist of one media playlist, of which nothing is known.
pub fn only(address: &str) -> String {
    format!("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:BANDWIDTH={BANDWIDTH}\n{address}\n")
}

/// The media playlist of one viewer. Its media sequence numbers are counted from `first`; not so those of discontinuities, of
/// which hls.js 1.7 keeps an array that it walks through from 0.
///
/// It has no `EXT-X-ENDLIST`: a stream that pauses may go on, and a player that saw the end of a list never asks again. One
/// that is over is answered with an error instead.
pub fn media(token: &str, playlist: Playlist<impl Iterator<Item = Segment>>, first: u64) -> String {
    let Playlist { target, discontinuities, segments } = playlist;
    let mut segments = segments.peekable();
    let sequence = segments.peek().map_or(0, |segment| segment.sequence);
    let mut text = format!(
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:{target}\n#EXT-X-MEDIA-SEQUENCE:{}\n\
         #EXT-X-DISCONTINUITY-SEQUENCE:{discontinuities}\n",
        first + sequence,
    );
    for segment in segments {
        if segment.discontinuity {
            text.push_str("#EXT-X-DISCONTINUITY\n");
        }
        let (seconds, micros) = (segment.duration.as_secs(), segment.duration.subsec_micros());
        let file = File::Segment(first + segment.sequence);
        // Writing into a `String` does not fail.
        let _ = writeln!(text, "#EXTINF:{seconds}.{micros:06},\n{file}?v={token}");
    }
    text
}

/// The highest rate of these segments in bits per second (RFC 8216 §4.3.4.2), as far as they are long enough to have one.
pub fn bandwidth(segments: impl Iterator<Item = Segment>) -> u64 {
    let rates = segments.filter(|segment| segment.duration.as_millis() >= 500).map(|segment| {
        let bits = u128::from(segment.end.saturating_sub(segment.at)) * 8;
        (bits * 1_000_000).div_ceil(segment.duration.as_micros()) as u64
    });
    rates.max().unwrap_or(BANDWIDTH)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TOKEN: &str = "signed";

    fn segment(sequence: u64, ms: u64, discontinuity: bool) -> Segment {
        let at = sequence * 1000;
        Segment { sequence, at, end: at + 1000, duration: Duration::from_millis(ms), discontinuity }
    }

    #[test]
    fn a_file_has_one_name() {
        for file in [File::Index, File::Media, File::Segment(0), File::Segment(u64::MAX)] {
            assert_eq!(File::parse(&file.to_string()), Some(file));
        }
        for wrong in
            ["", "1.ts", "segment-.ts", "segment-01.ts", "segment-+1.ts", "segment-1", "index.m3u", "Index.m3u8"]
        {
            assert_eq!(File::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_media_playlist_says_what_rfc_8216_asks_for() {
        let segments = [segment(7, 2000, false), segment(8, 1966, true), segment(9, 4499, false)];
        let playlist = Playlist { target: 4, discontinuities: 2, segments: segments.into_iter() };
        assert_eq!(
            media(TOKEN, playlist, 100),
            ("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:107\n\
                 #EXT-X-DISCONTINUITY-SEQUENCE:2\n#EXTINF:2.000000,\nsegment-107.ts?v=signed\n#EXT-X-DISCONTINUITY\n\
                 #EXTINF:1.966000,\nsegment-108.ts?v=signed\n#EXTINF:4.499000,\nsegment-109.ts?v=signed\n")
        );
    }

    #[test]
    fn the_bandwidth_is_that_of_the_densest_segment_and_a_fragment_has_none() {
        let segments = [segment(0, 2000, false), segment(1, 1000, false), segment(2, 1, true)];
        assert_eq!(bandwidth(segments.into_iter()), 8000);
        assert_eq!(bandwidth([].into_iter()), BANDWIDTH);
        let index = multivariant("", TOKEN, 8000);
        assert!(index.ends_with("BANDWIDTH=8000\nmedia.m3u8?v=signed\n"), "{index}");
    }
}
