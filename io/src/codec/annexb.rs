//! Byte stream format: NAL units behind start codes (ITU-T H.264 and H.265, annex B).

/// Where 0x000001 is, at `from` or behind.
pub fn start_code(data: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // One byte in three tells that none begins at any of them.
    loop {
        match data.get(at + 2)? {
            0 => at += 1,
            1 if data[at] == 0 && data[at + 1] == 0 => return Some(at),
            _ => at += 3,
        }
    }
}

/// The NAL units of an access unit, without start codes and the zeros around them; none is empty.
pub fn units(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = start_code(data, 0);
    std::iter::from_fn(move || {
        loop {
            let from = start? + 3;
            start = start_code(data, from);
            let unit = &data[from..start.unwrap_or(data.len())];
            let end = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if end > 0 {
                return Some(&unit[..end]);
            }
        }
    })
}

/// The same units, each behind four bytes of its length, as MP4 has them.
pub fn to_lengths(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 16);
    for unit in units(data) {
        out.extend_from_slice(&(unit.len() as u32).to_be_bytes());
        out.extend_from_slice(unit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_without_what_is_around_them() {
        let data = [9, 0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 0, 0, 0, 1, 0, 0, 1, 0x65, 0, 7, 0];
        let found: Vec<&[u8]> = units(&data).collect();
        assert_eq!(found, [&[0x67, 1][..], &[0x68], &[0x65, 0, 7]]);
        assert_eq!(to_lengths(&data)[..10], [0, 0, 0, 2, 0x67, 1, 0, 0, 0, 1]);
        assert_eq!(units(&[0, 0, 1]).count() + units(&[0, 0]).count() + units(&[]).count(), 0);
    }
}
