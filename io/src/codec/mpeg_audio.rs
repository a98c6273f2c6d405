//! MPEG audio, layers 1 to 3 (ISO/IEC 11172-3 §2.4.2.3, ISO/IEC 13818-3).

use super::{Codec, Found, Frame};

const HEADER: usize = 4;
const RATES: [u32; 3] = [44_100, 48_000, 32_000];
/// kbit/s of MPEG-1 layers 1, 2 and 3, of MPEG-2 layer 1 and of its layers 2 and 3.
const BITRATES: [[u32; 14]; 5] = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// The frame that begins with `data`. Free format, whose frames do not say their length, is not read.
pub fn frame(data: &[u8]) -> Found {
    let Some(header) = data.first_chunk::<HEADER>() else {
        let sync = data.first().is_none_or(|byte| *byte == 0xff) && data.get(1).is_none_or(|byte| byte & 0xe0 == 0xe0);
        return if sync { Found::More } else { Found::None };
    };
    if header[0] != 0xff || header[1] & 0xe0 != 0xe0 {
        return Found::None;
    }
    let (version, layer) = (header[1] >> 3 & 3, 4 - (header[1] >> 1 & 3));
    let first = version == 3;
    let table = match (first, layer) {
        (true, 1..=3) => usize::from(layer) - 1,
        (false, 1) => 3,
        (false, 2 | 3) => 4,
        _ => return Found::None,
    };
    let bitrate = usize::from(header[2] >> 4).checked_sub(1).and_then(|index| BITRATES[table].get(index));
    let rate = RATES.get(usize::from(header[2] >> 2 & 3));
    let (Some(bitrate), Some(rate), false) = (bitrate, rate, version == 1) else { return Found::None };
    // MPEG-2 halves the rates, what is called 2.5 quarters them.
    let rate = rate
        >> match version {
            3 => 0,
            2 => 1,
            _ => 2,
        };
    let padding = u32::from(header[2] >> 1 & 1);
    let samples = match layer {
        1 => 384,
        3 if !first => 576,
        _ => 1152,
    };
    let length = match layer {
        1 => (12_000 * bitrate / rate + padding) * 4,
        _ => samples / 8 * 1000 * bitrate / rate + padding,
    };
    let codec = if layer == 3 { Codec::Mp3 } else { Codec::Mp2 };
    Found::Frame(Frame { codec, length: length as usize, samples, rate })
}

/// Number of channels of the frame that begins with `data`.
pub fn channels(data: &[u8]) -> Option<u8> {
    let (Found::Frame(_), Some(header)) = (frame(data), data.first_chunk::<HEADER>()) else { return None };
    Some(if header[3] >> 6 == 3 { 1 } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_length_and_duration() {
        for (header, codec, length, samples, rate) in [
            ([0xff, 0xfd, 0xc4, 0], Codec::Mp2, 768, 1152, 48_000),
            ([0xff, 0xfb, 0x92, 0], Codec::Mp3, 418, 1152, 44_100),
            ([0xff, 0xf3, 0x84, 0], Codec::Mp3, 192, 576, 24_000),
            ([0xff, 0xff, 0xc4, 0], Codec::Mp2, 384, 384, 48_000),
        ] {
            assert_eq!(frame(&header), Found::Frame(Frame { codec, length, samples, rate }), "{header:x?}");
        }
        assert_eq!((channels(&[0xff, 0xfd, 0xc4, 0xc0]), channels(&[0xff, 0xfd, 0xc4, 0x80])), (Some(1), Some(2)));
        for header in [[0xff, 0xfb, 0x02, 0], [0xff, 0xfb, 0xf2, 0], [0xff, 0xfb, 0x9c, 0], [0xff, 0xeb, 0x92, 0]] {
            assert_eq!(frame(&header), Found::None, "{header:x?}");
        }
    }
}
