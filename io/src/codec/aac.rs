//! AAC in ADTS (ISO/IEC 13818-7 §6.2) and the configuration of its decoder (ISO/IEC 14496-3 §1.6.2.1).

use super::{Codec, Found, Frame};

const RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
const HEADER: usize = 7;

/// The frame that begins with `data`.
pub fn frame(data: &[u8]) -> Found {
    let Some(header) = data.first_chunk::<HEADER>() else {
        // What is there may already be wrong.
        let sync = data.first().is_none_or(|byte| *byte == 0xff) && data.get(1).is_none_or(|byte| byte & 0xf6 == 0xf0);
        return if sync { Found::More } else { Found::None };
    };
    let length = usize::from(header[3] & 3) << 11 | usize::from(header[4]) << 3 | usize::from(header[5]) >> 5;
    let rate = RATES.get(usize::from(header[2] >> 2 & 0x0f));
    match rate {
        Some(rate) if header[0] == 0xff && header[1] & 0xf6 == 0xf0 && length >= HEADER => {
            let samples = 1024 * (u32::from(header[6] & 3) + 1);
            Found::Frame(Frame { codec: Codec::Aac, length, samples, rate: *rate })
        }
        _ => Found::None,
    }
}

/// AudioSpecificConfig of the frame that begins with `data`; `None` if none does, or its channels are said within it.
pub fn configuration(data: &[u8]) -> Option<[u8; 2]> {
    let (Found::Frame(_), Some(header)) = (frame(data), data.first_chunk::<HEADER>()) else { return None };
    let kind = (header[2] >> 6) + 1;
    let rate = header[2] >> 2 & 0x0f;
    let channels = (header[2] & 1) << 2 | header[3] >> 6;
    (channels > 0).then_some([kind << 3 | rate >> 1, rate << 7 | channels << 3])
}

/// Number of channels of the frame that begins with `data`; 0 = said within it.
pub fn channels(data: &[u8]) -> Option<u8> {
    let (Found::Frame(_), Some(header)) = (frame(data), data.first_chunk::<HEADER>()) else { return None };
    let code = (header[2] & 1) << 2 | header[3] >> 6;
    Some(if code == 7 { 8 } else { code })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LC, 48 kHz, stereo, 371 bytes.
    const STEREO: [u8; 8] = [0xff, 0xf1, 0x4c, 0x80, 0x2e, 0x7f, 0xfc, 0x21];

    #[test]
    fn a_header_says_length_and_duration() {
        assert_eq!(frame(&STEREO), Found::Frame(Frame { codec: Codec::Aac, length: 371, samples: 1024, rate: 48_000 }));
        for length in 0..HEADER {
            assert_eq!(frame(&STEREO[..length]), Found::More);
        }
        assert_eq!(frame(&[0xff, 0xe1]), Found::None);
        assert_eq!(frame(&[0xff, 0xf1, 0x4c, 0x80, 0, 0x7f, 0xfc]), Found::None, "shorter than its header");
        assert_eq!(frame(&[0xff, 0xf1, 0x7c, 0x80, 0x2e, 0x7f, 0xfc]), Found::None, "no such rate");
    }

    #[test]
    fn the_configuration_says_the_same() {
        assert_eq!(configuration(&STEREO), Some([0x11, 0x90]));
        assert_eq!(channels(&STEREO), Some(2));
        assert_eq!(configuration(&[0; 8]), None);
    }
}
