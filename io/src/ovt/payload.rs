//! Which codec do these bytes look like, and do they come in the shape the muxer takes?

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::Codec;

const ADTS_HEADER: usize = 7;
/// ISO/IEC 14496-3 table 1.18, Hz by index.
const RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// Whether these are NAL units in Annex B.
pub(super) fn is_annex_b(data: &[u8]) -> bool {
    data.starts_with(&[0, 0, 1]) || data.starts_with(&[0, 0, 0, 1])
}

/// Whether these are AAC frames with ADTS headers. Raw AAC never begins with eleven ones.
pub(super) fn is_adts(data: &[u8]) -> bool {
    let &[0xff, b1, _, b3, b4, b5, _, ..] = data else {
        return false;
    };
    let length = usize::from(b3 & 3) << 11 | usize::from(b4) << 3 | usize::from(b5 >> 5);
    // Twelve ones, any MPEG version, layer 0.
    b1 & 0xf6 == 0xf0 && (ADTS_HEADER..=data.len()).contains(&length)
}

/// Whether this is a frame of layer III. No Opus packet looks like it: it would hold more than the 48 frames that are allowed
/// (RFC 6716 §3.2.5).
pub(super) fn is_mp3(data: &[u8]) -> bool {
    let &[0xff, b1, b2, _, ..] = data else {
        return false;
    };
    let (version, layer, bitrate, rate) = (b1 >> 3 & 3, b1 >> 1 & 3, b2 >> 4, b2 >> 2 & 3);
    b1 & 0xe0 == 0xe0 && version != 1 && layer == 1 && bitrate != 15 && rate != 3
}

/// The video codec that a decoder configuration is of, if it looks like one alone.
pub(super) fn configured_video(config: &[u8]) -> Option<Codec> {
    // Bits that are reserved and ones (ISO/IEC 14496-15 §5.3.3.1.2, §8.3.3.1.2).
    let ones = |at: usize, mask: u8| config.get(at).is_some_and(|byte| byte & mask == mask);
    let version = config.first() == Some(&1);
    let avc = version && config.len() >= 7 && ones(4, 0xfc) && ones(5, 0xe0);
    let hevc = version
        && config.len() >= 23
        && ones(13, 0xf0)
        && [(15, 0xfc), (16, 0xfc), (17, 0xf8), (18, 0xf8)].into_iter().all(|(at, mask)| ones(at, mask));
    match (avc, hevc) {
        (true, false) => Some(Codec::H264),
        (false, true) => Some(Codec::H265),
        _ => None,
    }
}

/// The parts of an AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1) that an ADTS header repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AudioConfig {
    /// AAC Main 0, LC 1, SSR 2, LTP 3.
    profile: u8,
    /// Of the core, into [`RATES`].
    rate: u8,
    /// 1 to 7.
    channels: u8,
}

impl AudioConfig {
    /// `None` for what is not AAC, or AAC that has no ADTS form.
    pub(super) fn read(config: &[u8]) -> Option<Self> {
        let mut bits = Bits { bytes: config, at: 0 };
        let object = bits.take(5)?;
        let rate = bits.rate()?;
        let channels = bits.take(4)?;
        // HE-AAC says first what the core is extended by.
        let object = if matches!(object, 5 | 29) {
            bits.rate()?;
            bits.take(5)?
        } else {
            object
        };
        let profile = u8::try_from(object).ok()?.checked_sub(1).filter(|profile| *profile < 4)?;
        let channels = u8::try_from(channels).ok().filter(|channels| (1..=7).contains(channels))?;
        Some(AudioConfig { profile, rate, channels })
    }

    /// Puts an ADTS header (§1.A.2.2) in front of a raw frame. `None` if the frame is longer than one may be.
    pub(super) fn adts(self, frame: &[u8]) -> Option<Bytes> {
        let length = u16::try_from(frame.len() + ADTS_HEADER).ok().filter(|length| *length < 1 << 13)?;
        let [high, low] = length.to_be_bytes();
        let mut out = BytesMut::with_capacity(usize::from(length));
        // MPEG-4, no checksum; buffer fullness all ones, "variable rate"; one frame.
        out.put_slice(&[
            0xff,
            0xf1,
            self.profile << 6 | self.rate << 2 | self.channels >> 2,
            self.channels << 6 | high >> 3,
            high << 5 | low >> 3,
            low << 5 | 0x1f,
            0xfc,
        ]);
        out.put_slice(frame);
        Some(out.freeze())
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// A sampling frequency, as an index into [`RATES`].
    fn rate(&mut self) -> Option<u8> {
        let index = match self.take(4)? {
            15 => {
                let rate = self.take(24)?;
                RATES.iter().position(|known| *known == rate)?
            }
            index => usize::try_from(index).ok()?,
        };
        u8::try_from(index).ok().filter(|_| index < RATES.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_frames_get_the_header_their_configuration_asks_for() {
        // LC, 48 kHz, stereo; the same with an explicit frequency; HE-AAC over a core of 24 kHz.
        for (config, header) in [
            (&[0x11, 0x90][..], [0xff, 0xf1, 0x4c, 0x80, 0x01, 0x3f, 0xfc]),
            (&[0x17, 0x80, 0x5d, 0xc0, 0x10], [0xff, 0xf1, 0x4c, 0x80, 0x01, 0x3f, 0xfc]),
            (&[0x2b, 0x11, 0x88], [0xff, 0xf1, 0x58, 0x80, 0x01, 0x3f, 0xfc]),
        ] {
            let adts = AudioConfig::read(config).unwrap().adts(&[0x21, 0x10]).unwrap();
            assert_eq!(adts[..7], header, "{config:02x?}");
            assert_eq!(adts[7..], [0x21, 0x10]);
            assert!(is_adts(&adts) && !is_mp3(&adts));
        }
    }

    #[test]
    fn the_longest_frame_has_thirteen_bits_of_length() {
        let config = AudioConfig::read(&[0x11, 0x90]).unwrap();
        let longest = config.adts(&[0; 8191 - ADTS_HEADER]).unwrap();
        assert_eq!(longest[3..6], [0x83, 0xff, 0xff]);
        assert!(is_adts(&longest));
        assert_eq!(config.adts(&[0; 8192 - ADTS_HEADER]), None);
    }

    #[test]
    fn what_has_no_adts_form_is_no_configuration() {
        // Empty, cut, reserved rate, no channel count, ER AAC LD, unknown explicit rate.
        for config in [&[][..], &[0x11], &[0x16, 0x90], &[0x11, 0x80], &[0xb9, 0x90], &[0x17, 0x80, 0, 0, 0x90]] {
            assert_eq!(AudioConfig::read(config), None, "{config:02x?}");
        }
    }

    #[test]
    fn adts_layer_three_and_opus_are_told_apart() {
        let mp3 = [0xff, 0xfb, 0x90, 0x64, 0, 0, 0, 0];
        assert!(is_mp3(&mp3) && !is_adts(&mp3));
        // The TOC byte 0xff and six frames.
        let opus = [0xff, 0x06, 1, 2, 3, 4, 5, 6];
        assert!(!is_mp3(&opus) && !is_adts(&opus));
        // A length beyond the data.
        assert!(!is_adts(&[0xff, 0xf1, 0x4c, 0x80, 0x01, 0x5f, 0xfc, 1, 2]));
    }

    #[test]
    fn configurations_of_h264_and_h265_are_told_apart() {
        let avc = [1, 0x42, 0xc0, 0x0d, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68];
        let mut hevc = [0; 23];
        (hevc[0], hevc[13], hevc[15], hevc[16], hevc[17], hevc[18]) = (1, 0xf0, 0xfc, 0xfd, 0xf8, 0xf8);
        assert_eq!(configured_video(&avc), Some(Codec::H264));
        assert_eq!(configured_video(&hevc), Some(Codec::H265));
        assert_eq!(configured_video(&[1, 2, 3]), None);
        (hevc[4], hevc[5]) = (0xff, 0xe0);
        assert_eq!(configured_video(&hevc), None);
    }
}
