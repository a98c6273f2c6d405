//! Whether decoding can start at a picture, from the first bytes of its access unit.

use super::program::Elementary;
use crate::codec::annexb::start_code;
use crate::codec::h265;

/// An SEI unit longer than this holds pictures' worth of private data; the message that is looked for comes early.
const MAX_SEI: usize = 512;
/// First byte of a slice and what its Exp-Golomb codes for its place and type take at most when it is a picture's first.
const SLICE: usize = 4;

/// How pictures are coded, as far as their starts can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pictures {
    Mpeg2,
    H264,
    H265,
    /// Nothing but the multiplexer's mark tells.
    Opaque,
}

/// What is known of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Decoding can start here.
    RandomAccess,
    /// It refers to others.
    Other,
    /// It takes more bytes to tell, or none will.
    Unknown,
}

/// Reads an access unit from its begin, as far as it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inspection {
    pictures: Pictures,
    /// What lies before needs not be read again.
    at: usize,
    parameters: bool,
    recovery: bool,
}

impl Pictures {
    pub fn of(stream: &Elementary) -> Pictures {
        match stream.stream_type {
            0x01 | 0x02 => Pictures::Mpeg2,
            0x1b => Pictures::H264,
            0x24 => Pictures::H265,
            0x06 if stream.registration() == Some(*b"HEVC") => Pictures::H265,
            _ => Pictures::Opaque,
        }
    }
}

impl Inspection {
    /// Of an access unit that begins at `at` of what it is going to be shown.
    pub fn new(pictures: Pictures, at: usize) -> Inspection {
        Inspection { pictures, at, parameters: false, recovery: false }
    }

    /// Looks at `data`, which goes on from what it was shown before.
    pub fn look(&mut self, data: &[u8]) -> Start {
        if self.pictures == Pictures::Opaque {
            return Start::Unknown;
        }
        loop {
            let Some(start) = start_code(data, self.at) else {
                self.at = self.at.max(data.len().saturating_sub(2));
                return Start::Unknown;
            };
            self.at = start;
            let Some((first, rest)) = data[start + 3..].split_first() else { return Start::Unknown };
            let found = match self.pictures {
                Pictures::Mpeg2 => mpeg2(*first),
                Pictures::H264 => self.h264(*first, rest),
                Pictures::H265 => of_h265(*first),
                Pictures::Opaque => Some(Start::Unknown),
            };
            match found {
                Some(start) => return start,
                None => self.at = start + 3,
            }
        }
    }

    /// `None` if the unit does not decide; `Unknown` if it may once more of it is there.
    fn h264(&mut self, first: u8, rest: &[u8]) -> Option<Start> {
        match first & 0x1f {
            5 => Some(Start::RandomAccess),
            1 | 2 if self.parameters && self.recovery => {
                Some(if rest.len() < SLICE { Start::Unknown } else { intra_slice(rest) })
            }
            1 | 2 => Some(Start::Other),
            6 => {
                let end = start_code(rest, 0);
                if end.is_none() && rest.len() < MAX_SEI {
                    return Some(Start::Unknown);
                }
                self.recovery |= recovers_at_once(&rest[..end.unwrap_or(MAX_SEI).min(MAX_SEI)]);
                None
            }
            7 => {
                self.parameters = true;
                None
            }
            _ => None,
        }
    }
}

/// Broadcasters' open GOPs have no IDR: with its parameters, a recovery point and an intra slice a picture is as good a start
/// (ETSI TS 101 154 §5.5.5).
fn intra_slice(slice: &[u8]) -> Start {
    // Its first macroblock is 0, a single bit; then the type: 2 and 7 are I, 4 and 9 SI.
    let bits = slice.iter().take(SLICE).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
    let kind = (bits & 1 << 31 != 0).then(|| exp_golomb(bits << 1));
    if matches!(kind, Some(2 | 4 | 7 | 9)) { Start::RandomAccess } else { Start::Other }
}

/// The code at the most significant bit (ITU-T H.264 §9.1).
fn exp_golomb(bits: u32) -> u32 {
    let zeros = bits.leading_zeros();
    if zeros > 15 { u32::MAX } else { (bits >> (31 - 2 * zeros)) - 1 }
}

/// Whether an SEI unit holds a recovery point with nothing to be decoded before it (ITU-T H.264 §D.1.8).
fn recovers_at_once(sei: &[u8]) -> bool {
    // Emulation prevention would shift what comes behind it.
    let mut plain: Vec<u8> = Vec::with_capacity(sei.len());
    for byte in sei {
        if !(*byte == 3 && plain.ends_with(&[0, 0])) {
            plain.push(*byte);
        }
    }
    let mut rest = &plain[..];
    loop {
        let (Some(kind), Some(size)) = (extended(&mut rest), extended(&mut rest)) else { return false };
        let Some((payload, more)) = rest.split_at_checked(size) else { return false };
        if kind == 6 {
            return payload.first().is_some_and(|byte| byte & 0x80 != 0);
        }
        rest = more;
    }
}

/// A number as a sum of bytes of which only the last is below 255.
fn extended(data: &mut &[u8]) -> Option<usize> {
    let mut sum = 0;
    loop {
        let (byte, rest) = data.split_first()?;
        *data = rest;
        sum += usize::from(*byte);
        if *byte < 255 {
            return Some(sum);
        }
    }
}

fn of_h265(first: u8) -> Option<Start> {
    match h265::kind(first) {
        kind if h265::RANDOM_ACCESS.contains(&kind) => Some(Start::RandomAccess),
        kind if h265::SLICES.contains(&kind) => Some(Start::Other),
        _ => None,
    }
}

fn mpeg2(code: u8) -> Option<Start> {
    match code {
        0xb3 => Some(Start::RandomAccess),
        0x00..=0xaf => Some(Start::Other),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: &[u8] = &[0, 0, 1, 0x67, 0x42, 0, 30];
    const IDR: &[u8] = &[0, 0, 0, 1, 0x65, 0x88, 0x84, 0, 9];
    const INTRA: &[u8] = &[0, 0, 1, 0x41, 0x88, 0x84, 0, 9];
    const INTER: &[u8] = &[0, 0, 1, 0x41, 0x9a, 0x84, 0, 9];
    const RECOVERY: &[u8] = &[0, 0, 1, 6, 5, 2, 1, 1, 6, 1, 0xc0, 0x80];
    const SLOW_RECOVERY: &[u8] = &[0, 0, 1, 6, 6, 1, 0x40, 0x80];

    fn verdict(pictures: Pictures, data: &[u8]) -> Start {
        let whole = Inspection::new(pictures, 0).look(data);
        let mut pieces = Inspection::new(pictures, 0);
        let decided = (0..=data.len()).map(|end| pieces.look(&data[..end])).find(|start| *start != Start::Unknown);
        assert_eq!(decided.unwrap_or(Start::Unknown), whole, "how much is seen at a time changes nothing");
        whole
    }

    #[test]
    fn h264_starts_at_an_idr_or_at_a_recovery_point_that_needs_nothing() {
        for (units, start) in [
            (&[SPS, IDR][..], Start::RandomAccess),
            (&[IDR], Start::RandomAccess),
            (&[&[0, 0, 0, 1, 9, 0xf0], SPS, RECOVERY, INTRA], Start::RandomAccess),
            (&[INTRA], Start::Other),
            (&[RECOVERY, INTRA], Start::Other),
            (&[SPS, INTRA], Start::Other),
            (&[SPS, RECOVERY, INTER], Start::Other),
            (&[SPS, SLOW_RECOVERY, INTRA], Start::Other),
            (&[SPS], Start::Unknown),
        ] {
            assert_eq!(verdict(Pictures::H264, &units.concat()), start, "{units:?}");
        }
    }

    #[test]
    fn h265_starts_at_any_intra_random_access_picture() {
        for kind in 0..64 {
            let parameters = [0, 0, 1, 33 << 1, 1, 7];
            let data = [&parameters[..], &[0, 0, 1, kind << 1, 1, 0x80]].concat();
            let expected = match kind {
                16..=21 => Start::RandomAccess,
                0..=31 => Start::Other,
                _ => Start::Unknown,
            };
            assert_eq!(verdict(Pictures::H265, &data), expected, "{kind}");
        }
    }

    #[test]
    fn mpeg2_starts_at_a_sequence() {
        let picture = [0, 0, 1, 0, 1, 2];
        let group = [0, 0, 1, 0xb8, 1, 2];
        assert_eq!(verdict(Pictures::Mpeg2, &[&[0, 0, 1, 0xb3, 1][..], &picture].concat()), Start::RandomAccess);
        assert_eq!(verdict(Pictures::Mpeg2, &[group, picture].concat()), Start::Other);
    }

    #[test]
    fn a_long_sei_is_not_waited_for() {
        let mut data = [SPS, &[0, 0, 1, 6, 5, 255, 255]].concat();
        data.resize(2000, 7);
        data.extend_from_slice(IDR);
        assert_eq!(verdict(Pictures::H264, &data), Start::RandomAccess);
    }
}
