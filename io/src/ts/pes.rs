//! Heads of PES packets and the 33-bit times in them (ISO/IEC 13818-1 §2.4.3.6).

const HEAD: usize = 9;
const STAMP: usize = 5;
const BITS: u32 = 33;

/// What the head of a PES packet says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PesHead {
    /// `stream_id`.
    pub stream: u8,
    /// Bytes behind this head; `None` = up to the next one.
    pub length: Option<usize>,
    /// 90 kHz.
    pub pts: Option<u64>,
    /// 90 kHz; the PTS if it has none of its own.
    pub dts: Option<u64>,
    /// Where its payload begins.
    pub payload: usize,
}

/// What the bytes of a PES packet tell so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pes {
    Head(PesHead),
    /// The head is longer than this.
    More,
    /// No PES packet, or one of a kind that has no head.
    Other,
}

impl Pes {
    /// Reads the begin of a PES packet.
    pub fn read(data: &[u8]) -> Pes {
        if data.iter().zip([0, 0, 1]).any(|(byte, expected)| *byte != expected) {
            return Pes::Other;
        }
        let Some(head) = data.first_chunk::<HEAD>() else { return Pes::More };
        if head[6] & 0xc0 != 0x80 {
            return Pes::Other;
        }
        let payload = HEAD + usize::from(head[8]);
        let Some(fields) = data.get(HEAD..payload) else { return Pes::More };
        let (has_pts, has_dts) = (head[7] & 0x80 != 0, head[7] & 0xc0 == 0xc0);
        let pts = has_pts.then(|| stamp(fields)).flatten();
        let dts = has_dts.then(|| stamp(fields.get(STAMP..)?)).flatten().or(pts);
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        let length = (length > 0).then(|| (6 + length).saturating_sub(payload));
        Pes::Head(PesHead { stream: head[3], length, pts, dts, payload })
    }
}

/// Adds `ticks` to the times in a head that lies whole in `data`.
pub(super) fn shift(data: &mut [u8], ticks: u64) {
    let Pes::Head(_) = Pes::read(data) else { return };
    let present = match data[7] >> 6 {
        2 => 1,
        3 => 2,
        _ => 0,
    };
    let end = HEAD + usize::from(data[8]);
    for field in data[HEAD..end].chunks_exact_mut(STAMP).take(present) {
        let Some(time) = stamp(field) else { continue };
        let time = add(time, ticks);
        field[0] = field[0] & 0xf0 | (time >> 29) as u8 & 0x0e | 1;
        field[1..3].copy_from_slice(&((time >> 14) as u16 | 1).to_be_bytes());
        field[3..5].copy_from_slice(&((time << 1) as u16 | 1).to_be_bytes());
    }
}

fn stamp(field: &[u8]) -> Option<u64> {
    let field = field.first_chunk::<STAMP>()?.map(u64::from);
    Some((field[0] & 0x0e) << 29 | field[1] << 22 | (field[2] & 0xfe) << 14 | field[3] << 7 | field[4] >> 1)
}

/// The sum of two 33-bit times.
pub(super) fn add(time: u64, ticks: u64) -> u64 {
    time.wrapping_add(ticks) & ((1 << BITS) - 1)
}

/// How far 33-bit `time` lies behind (`> 0`) or before `reference`, the shorter way round.
pub(super) fn since(time: u64, reference: u64) -> i64 {
    (time.wrapping_sub(reference) << (64 - BITS)) as i64 >> (64 - BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::write_pes_head;

    fn head(pts: i64, dts: i64, length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        write_pes_head(0xe0, pts, dts, length, &mut out);
        out
    }

    #[test]
    fn what_was_written_is_read() {
        let (pts, dts) = ((1 << 33) - 1, 0x1_2345_6789);
        let head = head(pts, dts, 100);
        let expected =
            PesHead { stream: 0xe0, length: Some(100), pts: Some(pts as u64), dts: Some(dts as u64), payload: 19 };
        assert_eq!(Pes::read(&head), Pes::Head(expected));
        for length in 0..head.len() {
            assert_eq!(Pes::read(&head[..length]), Pes::More);
        }
        assert_eq!(Pes::read(&[0, 0, 2]), Pes::Other);
    }

    #[test]
    fn times_are_moved_over_the_end_of_their_bits() {
        let mut moved = head((1 << 33) - 1, (1 << 33) - 90, 100);
        shift(&mut moved, 91);
        assert_eq!(moved, head(90, 1, 100));
        let mut back = head(5, 5, 0);
        shift(&mut back, 0u64.wrapping_sub(10));
        assert_eq!(back, head((1 << 33) - 5, (1 << 33) - 5, 0));
    }

    #[test]
    fn differences_go_the_shorter_way() {
        assert_eq!(since(5, (1 << 33) - 5), 10);
        assert_eq!(since((1 << 33) - 5, 5), -10);
        assert_eq!(since(add(7, 0u64.wrapping_sub(9)), 7), -9);
    }
}
