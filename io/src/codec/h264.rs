//! H.264: sequence parameter sets (ITU-T H.264 §7.3.2.1.1, annex E) and the configuration record (ISO/IEC 14496-15 §5.3.3).

use super::bits::Bits;
use super::{Picture, annexb};

const SPS: u8 = 7;
const PPS: u8 = 8;
/// A decoder holds no more pictures (§A.3.1).
const MAX_REORDER: u32 = 16;
/// Profiles that say how samples are laid out.
const HIGH: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// What a sequence parameter set, a NAL unit with its header, says; `None` if it is none or damaged.
pub fn picture(sps: &[u8]) -> Option<Picture> {
    let (header, payload) = sps.split_first()?;
    if header & 0x1f != SPS {
        return None;
    }
    let mut bits = Bits::new(payload);
    let profile = bits.read(8)?;
    bits.skip(16)?;
    bits.unsigned()?;
    let mut chroma = 1;
    if HIGH.contains(&profile) {
        chroma = bits.unsigned()?;
        if chroma == 3 {
            bits.skip(1)?;
        }
        bits.unsigned()?;
        bits.unsigned()?;
        bits.skip(1)?;
        if bits.bit()? {
            let lists = if chroma == 3 { 12 } else { 8 };
            for list in 0..lists {
                if bits.bit()? {
                    skip_scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    bits.unsigned()?;
    let counting = bits.unsigned()?;
    match counting {
        0 => {
            bits.unsigned()?;
        }
        1 => {
            bits.skip(1)?;
            bits.signed()?;
            bits.signed()?;
            for _ in 0..bits.unsigned()?.min(255) {
                bits.signed()?;
            }
        }
        _ => {}
    }
    bits.unsigned()?;
    bits.skip(1)?;
    let (width, height) = (bits.unsigned()?, bits.unsigned()?);
    let frames_only = bits.bit()?;
    if !frames_only {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    let crop =
        if bits.bit()? { [bits.unsigned()?, bits.unsigned()?, bits.unsigned()?, bits.unsigned()?] } else { [0; 4] };
    let fields = if frames_only { 1 } else { 2 };
    let (across, down) = match chroma {
        1 => (2, 2 * fields),
        2 => (2, fields),
        _ => (1, fields),
    };
    let extent = |units: u32, size: u32, crop: u32, other: u32, step: u32| {
        let cropped = crop.checked_add(other)?.checked_mul(step)?;
        units.checked_add(1)?.checked_mul(size)?.checked_sub(cropped).filter(|extent| *extent > 0)
    };
    let width = extent(width, 16, crop[0], crop[1], across)?;
    let height = extent(height, 16 * fields, crop[2], crop[3], down)?;
    // What is damaged behind the size costs nothing else. Pictures counted in the order in which they come have that of showing.
    let ordered = (counting == 2).then_some(0);
    let (rate, reorder) = if bits.bit() == Some(true) { usability(&mut bits) } else { (None, None) };
    Some(Picture { width, height, rate, reorder: ordered.or(reorder) })
}

fn skip_scaling_list(bits: &mut Bits, size: usize) -> Option<()> {
    let (mut last, mut next) = (8, 8);
    for _ in 0..size {
        if next != 0 {
            next = (last + bits.signed()?).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// The frame rate and the reordering in the usability information (§E.1.1).
fn usability(bits: &mut Bits) -> (Option<(u32, u32)>, Option<u8>) {
    let Some(rate) = skip_appearance(bits).and_then(|()| timing(bits)) else { return (None, None) };
    (rate, reorder(bits))
}

fn skip_appearance(bits: &mut Bits) -> Option<()> {
    if bits.bit()? && bits.read(8)? == 255 {
        bits.skip(32)?;
    }
    if bits.bit()? {
        bits.skip(1)?;
    }
    if bits.bit()? {
        bits.skip(4)?;
        if bits.bit()? {
            bits.skip(24)?;
        }
    }
    if bits.bit()? {
        bits.unsigned()?;
        bits.unsigned()?;
    }
    Some(())
}

/// `None`: nothing can be read behind it either.
fn timing(bits: &mut Bits) -> Option<Option<(u32, u32)>> {
    if !bits.bit()? {
        return Some(None);
    }
    let (tick, scale) = (bits.read(32)?, bits.read(32)?);
    bits.skip(1)?;
    // A tick is the time of a field.
    let frame = tick.checked_mul(2).filter(|frame| *frame > 0 && scale > 0);
    Some(frame.map(|frame| (scale, frame)))
}

fn reorder(bits: &mut Bits) -> Option<u8> {
    let mut buffered = false;
    for _ in 0..2 {
        if bits.bit()? {
            buffered = true;
            let buffers = bits.unsigned()?.min(31) + 1;
            bits.skip(8)?;
            for _ in 0..buffers {
                bits.unsigned()?;
                bits.unsigned()?;
                bits.skip(1)?;
            }
            bits.skip(20)?;
        }
    }
    bits.skip(if buffered { 2 } else { 1 })?;
    if !bits.bit()? {
        return None;
    }
    bits.skip(1)?;
    for _ in 0..4 {
        bits.unsigned()?;
    }
    bits.unsigned().filter(|reorder| *reorder <= MAX_REORDER).map(|reorder| reorder as u8)
}

/// The configuration record (`avcC`) of the parameter sets in an access unit in annex B; `None` if one of them is missing.
pub fn configuration(unit: &[u8]) -> Option<Vec<u8>> {
    let of_kind = |kind| {
        let mut sets: Vec<&[u8]> = Vec::new();
        for set in annexb::units(unit).filter(|set| set[0] & 0x1f == kind && set.len() <= usize::from(u16::MAX)) {
            if !sets.contains(&set) && sets.len() < 31 {
                sets.push(set);
            }
        }
        sets
    };
    let (sequence, picture) = (of_kind(SPS), of_kind(PPS));
    let [_, profile, compatibility, level, ..] = **sequence.first()? else { return None };
    picture.first()?;
    let mut out = vec![1, profile, compatibility, level, 0xff, 0xe0 | sequence.len() as u8];
    append(&sequence, &mut out);
    out.push(picture.len() as u8);
    append(&picture, &mut out);
    if !matches!(profile, 66 | 77 | 88) {
        let mut bits = Bits::new(&sequence[0][4..]);
        bits.unsigned()?;
        let chroma = bits.unsigned()?;
        if chroma == 3 {
            bits.skip(1)?;
        }
        let (luma_depth, chroma_depth) = (bits.unsigned()?, bits.unsigned()?);
        out.extend_from_slice(&[0xfc | chroma as u8, 0xf8 | luma_depth as u8, 0xf8 | chroma_depth as u8, 0]);
    }
    Some(out)
}

/// Each set behind its length.
pub(super) fn append(sets: &[&[u8]], out: &mut Vec<u8>) {
    for set in sets {
        out.extend_from_slice(&(set.len() as u16).to_be_bytes());
        out.extend_from_slice(set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1920×1080 of 1920×1088, High, 25 frames a second.
    const HD: &[u8] = &[
        0x67, 0x64, 0x00, 0x28, 0xac, 0xd9, 0x40, 0x78, 0x02, 0x27, 0xe5, 0xc0, 0x44, 0x00, 0x00, 0x03, 0x00, 0x04,
        0x00, 0x00, 0x03, 0x00, 0xc8, 0x3c, 0x60, 0xc6, 0x58,
    ];

    #[test]
    fn size_and_rate_are_read() {
        assert_eq!(picture(HD), Some(Picture { width: 1920, height: 1080, rate: Some((50, 2)), reorder: Some(2) }));
        for length in 0..HD.len() {
            picture(&HD[..length]);
        }
        assert_eq!(picture(&[0x68, 1, 2]), None);
    }

    #[test]
    fn the_record_holds_each_set_once() {
        let pps = [0x68, 0xeb, 0xe3, 0xcb];
        let unit = [&[0, 0, 0, 1][..], HD, &[0, 0, 1], &pps, &[0, 0, 1], HD, &[0, 0, 1, 0x65, 7]].concat();
        let expected =
            [&[1, 0x64, 0, 0x28, 0xff, 0xe1, 0, HD.len() as u8][..], HD, &[1, 0, 4], &pps, &[0xfd, 0xf8, 0xf8, 0]];
        assert_eq!(configuration(&unit), Some(expected.concat()));
        assert_eq!(configuration(&[&[0, 0, 1][..], HD].concat()), None);
    }
}
