//! Bits of a parameter set, most significant first (ITU-T H.264 §7.2, §9.1).

/// Reads the payload of a NAL unit without its emulation prevention. Behind its end everything is `None`.
pub(super) struct Bits {
    data: Vec<u8>,
    at: usize,
}

impl Bits {
    /// Of a NAL unit's bytes behind its header. No parameter set that matters is longer than 4 kB.
    pub fn new(escaped: &[u8]) -> Bits {
        let mut data: Vec<u8> = Vec::with_capacity(escaped.len().min(4096));
        let mut zeros = 0;
        for byte in escaped.iter().take(4096) {
            if zeros >= 2 && *byte == 3 {
                zeros = 0;
                continue;
            }
            zeros = if *byte == 0 { zeros + 1 } else { 0 };
            data.push(*byte);
        }
        Bits { data, at: 0 }
    }

    pub fn bit(&mut self) -> Option<bool> {
        let byte = self.data.get(self.at / 8)?;
        let bit = byte << (self.at % 8) & 0x80 != 0;
        self.at += 1;
        Some(bit)
    }

    /// Up to 32 bits.
    pub fn read(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |sum, _| Some(sum << 1 | u32::from(self.bit()?)))
    }

    pub fn skip(&mut self, count: usize) -> Option<()> {
        self.at += count;
        (self.at <= self.data.len() * 8).then_some(())
    }

    /// `ue(v)`.
    pub fn unsigned(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some(((1u64 << zeros) - 1) as u32 + self.read(zeros)?)
    }

    /// `se(v)`.
    pub fn signed(&mut self) -> Option<i64> {
        let code = i64::from(self.unsigned()?);
        Some(if code % 2 == 0 { -(code / 2) } else { (code + 1) / 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read() {
        // 1, 010, 011, 00100, 00101 = 0, 1, 2, 3, 4.
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!((0..5).map(|_| bits.unsigned()).collect::<Option<Vec<_>>>(), Some(vec![0, 1, 2, 3, 4]));
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!((0..5).map(|_| bits.signed()).collect::<Option<Vec<_>>>(), Some(vec![0, 1, -1, 2, -2]));
        assert_eq!(Bits::new(&[0; 9]).unsigned(), None);
        assert_eq!(Bits::new(&[]).bit(), None);
    }

    #[test]
    fn emulation_prevention_is_left_out() {
        let mut bits = Bits::new(&[0, 0, 3, 1, 0, 0, 3, 0, 0, 3]);
        assert_eq!((bits.read(24), bits.read(32), bits.read(1)), (Some(1), Some(0), None));
    }
}
