//! H.265: sequence parameter sets (ITU-T H.265 §7.3.2.2) and the configuration record (ISO/IEC 14496-15 §8.3.3).

use std::ops::RangeInclusive;

use super::bits::Bits;
use super::{Picture, annexb, h264};

const VPS: u8 = 32;
const SPS: u8 = 33;
const PPS: u8 = 34;
/// Profile, tier, level: its part for the highest sub-layer.
const PROFILE: usize = 12;

/// Types of NAL units that are slices of pictures (table 7-1).
pub const SLICES: RangeInclusive<u8> = 0..=31;
/// Those of pictures at which decoding can start: BLA, IDR and CRA. Types 22 and 23 are reserved.
pub const RANDOM_ACCESS: RangeInclusive<u8> = 16..=21;

/// The type in the first byte of a NAL unit.
pub fn kind(header: u8) -> u8 {
    header >> 1 & 0x3f
}

/// A sequence parameter set as far as it is of use.
struct Sequence {
    picture: Picture,
    sub_layers: u8,
    nested: bool,
    profile: [u8; PROFILE],
    chroma: u8,
    luma_depth: u8,
    chroma_depth: u8,
}

impl Sequence {
    fn parse(sps: &[u8]) -> Option<Sequence> {
        if kind(*sps.first()?) != SPS || sps.len() < 2 {
            return None;
        }
        let mut bits = Bits::new(&sps[2..]);
        bits.skip(4)?;
        let sub_layers = bits.read(3)? as u8;
        let nested = bits.bit()?;
        let mut profile = [0; PROFILE];
        for byte in &mut profile {
            *byte = bits.read(8)? as u8;
        }
        skip_sub_layers(&mut bits, sub_layers)?;
        bits.unsigned()?;
        let chroma = bits.unsigned()?;
        let apart = chroma == 3 && bits.bit()?;
        let (width, height) = (bits.unsigned()?, bits.unsigned()?);
        let crop =
            if bits.bit()? { [bits.unsigned()?, bits.unsigned()?, bits.unsigned()?, bits.unsigned()?] } else { [0; 4] };
        let (across, down) = match chroma {
            1 => (2, 2),
            2 => (2, 1),
            _ => (1, 1),
        };
        let extent = |size: u32, crop: u32, other: u32, step: u32| {
            size.checked_sub(crop.checked_add(other)?.checked_mul(step)?).filter(|extent| *extent > 0)
        };
        let width = extent(width, crop[0], crop[1], across)?;
        let height = extent(height, crop[2], crop[3], down)?;
        let (luma_depth, chroma_depth) = (bits.unsigned()?, bits.unsigned()?);
        let sane = chroma <= 3 && luma_depth <= 8 && chroma_depth <= 8 && !apart;
        sane.then_some(())?;
        let reorder = reorder(&mut bits, sub_layers);
        let rate = reorder.and_then(|(order_bits, _)| rate(&mut bits, order_bits));
        let picture = Picture { width, height, rate, reorder: reorder.map(|(_, reorder)| reorder) };
        let (luma_depth, chroma_depth) = (luma_depth as u8, chroma_depth as u8);
        Some(Sequence { picture, sub_layers, nested, profile, chroma: chroma as u8, luma_depth, chroma_depth })
    }
}

/// What a sequence parameter set, a NAL unit with its header, says; `None` if it is none or damaged.
pub fn picture(sps: &[u8]) -> Option<Picture> {
    Sequence::parse(sps).map(|sequence| sequence.picture)
}

fn skip_sub_layers(bits: &mut Bits, sub_layers: u8) -> Option<()> {
    let mut present = Vec::new();
    for _ in 0..sub_layers {
        present.push((bits.bit()?, bits.bit()?));
    }
    if sub_layers > 0 {
        bits.skip(2 * (8 - usize::from(sub_layers)))?;
    }
    for (profile, level) in present {
        bits.skip(if profile { 88 } else { 0 } + if level { 8 } else { 0 })?;
    }
    Some(())
}

/// The length of a picture's number in bits, and how far pictures are reordered in the highest sub-layer.
fn reorder(bits: &mut Bits, sub_layers: u8) -> Option<(u32, u8)> {
    let order_bits = bits.unsigned()?.checked_add(4)?;
    let layers = if bits.bit()? { sub_layers + 1 } else { 1 };
    let mut reorder = 0;
    for _ in 0..layers {
        bits.unsigned()?;
        reorder = bits.unsigned()?;
        bits.unsigned()?;
    }
    // A decoder holds no more pictures (§A.4.2).
    (reorder <= 16).then_some((order_bits, reorder as u8))
}

/// The frame rate, which stands far behind.
fn rate(bits: &mut Bits, order_bits: u32) -> Option<(u32, u32)> {
    for _ in 0..6 {
        bits.unsigned()?;
    }
    if bits.bit()? && bits.bit()? {
        skip_scaling_lists(bits)?;
    }
    bits.skip(2)?;
    if bits.bit()? {
        bits.skip(8)?;
        bits.unsigned()?;
        bits.unsigned()?;
        bits.skip(1)?;
    }
    skip_reference_sets(bits)?;
    if bits.bit()? {
        for _ in 0..bits.unsigned()?.min(32) {
            bits.skip(order_bits as usize + 1)?;
        }
    }
    bits.skip(2)?;
    if !bits.bit()? {
        return None;
    }
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
    bits.skip(3)?;
    if bits.bit()? {
        for _ in 0..4 {
            bits.unsigned()?;
        }
    }
    if !bits.bit()? {
        return None;
    }
    let (tick, scale) = (bits.read(32)?, bits.read(32)?);
    (tick > 0 && scale > 0).then_some((scale, tick))
}

fn skip_scaling_lists(bits: &mut Bits) -> Option<()> {
    for size in 0..4 {
        for _ in (0..6).step_by(if size == 3 { 3 } else { 1 }) {
            if !bits.bit()? {
                bits.unsigned()?;
                continue;
            }
            if size > 1 {
                bits.signed()?;
            }
            for _ in 0..64.min(1 << (4 + 2 * size)) {
                bits.signed()?;
            }
        }
    }
    Some(())
}

/// Short-term reference picture sets (§7.3.7).
fn skip_reference_sets(bits: &mut Bits) -> Option<()> {
    let count = bits.unsigned().filter(|count| *count <= 64)?;
    let mut pictures = 0u32;
    for set in 0..count {
        if set > 0 && bits.bit()? {
            bits.skip(1)?;
            bits.unsigned()?;
            let mut kept = 0;
            for _ in 0..=pictures {
                let used = bits.bit()?;
                kept += u32::from(used || bits.bit()?);
            }
            pictures = kept;
        } else {
            let (before, behind) = (bits.unsigned()?, bits.unsigned()?);
            pictures = before.checked_add(behind).filter(|pictures| *pictures <= 32)?;
            for _ in 0..pictures {
                bits.unsigned()?;
                bits.skip(1)?;
            }
        }
    }
    Some(())
}

/// The configuration record (`hvcC`) of the parameter sets in an access unit in annex B; `None` if one of them is missing.
pub fn configuration(unit: &[u8]) -> Option<Vec<u8>> {
    let of_kind = |wanted| {
        let mut sets: Vec<&[u8]> = Vec::new();
        for set in annexb::units(unit).filter(|set| kind(set[0]) == wanted && set.len() <= usize::from(u16::MAX)) {
            if !sets.contains(&set) && sets.len() < 64 {
                sets.push(set);
            }
        }
        sets
    };
    let sequence = of_kind(SPS);
    let sps = Sequence::parse(sequence.first()?)?;
    let mut out = vec![1];
    out.extend_from_slice(&sps.profile);
    let layers = (sps.sub_layers + 1) << 3 | u8::from(sps.nested) << 2;
    out.extend_from_slice(&[0xf0, 0, 0xfc, 0xfc | sps.chroma, 0xf8 | sps.luma_depth, 0xf8 | sps.chroma_depth]);
    // No average rate is said; lengths have four bytes; three arrays, each of them complete.
    out.extend_from_slice(&[0, 0, layers | 3, 3]);
    for (kind, sets) in [(VPS, of_kind(VPS)), (SPS, sequence), (PPS, of_kind(PPS))] {
        sets.first()?;
        out.push(0x80 | kind);
        out.extend_from_slice(&(sets.len() as u16).to_be_bytes());
        h264::append(&sets, &mut out);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1920×1080 of 1920×1088, Main.
    const HD: &[u8] = &[
        0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00, 0x78,
        0xa0, 0x03, 0xc0, 0x80, 0x10, 0xe5, 0x96, 0x66, 0x69, 0x24, 0xca, 0xe0, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10,
        0x00, 0x00, 0x03, 0x01, 0x90, 0x80,
    ];

    #[test]
    fn size_is_read_from_any_part_of_a_set() {
        let read = picture(HD).unwrap();
        assert_eq!((read.width, read.height), (1920, 1080));
        for length in 0..HD.len() {
            picture(&HD[..length]);
        }
        assert_eq!(picture(&[0x40, 1, 2]), None);
    }

    #[test]
    fn the_record_wants_all_three_sets() {
        let unit = |sets: &[&[u8]]| sets.iter().flat_map(|set| [&[0, 0, 0, 1], *set].concat()).collect::<Vec<u8>>();
        let (vps, pps) = (&[0x40, 1, 0x0c][..], &[0x44, 1, 0xc1][..]);
        let record = configuration(&unit(&[vps, HD, pps])).unwrap();
        assert_eq!(record[..2], [1, 1]);
        assert_eq!(record[13..23], [0xf0, 0, 0xfc, 0xfd, 0xf8, 0xf8, 0, 0, 0x0f, 3]);
        assert_eq!(record[23..31], [0xa0, 0, 1, 0, 3, 0x40, 1, 0x0c]);
        assert!(record.ends_with(&[0xa2, 0, 1, 0, 3, 0x44, 1, 0xc1]));
        assert_eq!(configuration(&unit(&[HD, pps])), None);
    }
}
