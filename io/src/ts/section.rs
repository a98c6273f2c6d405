//! Packets into sections (ISO/IEC 13818-1 §2.4.4).

use super::packet::Head;
use super::psi::crc32;

/// PAT and PMT have no more than this, all told.
const MAX_SECTION: usize = 1024;
const LENGTH_END: usize = 3;
const CHECKSUM: usize = 4;

/// Assembles the sections of one PID.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// The section that began, less than a section and a packet.
    buffer: Vec<u8>,
    /// Whether a section's begin was seen, so that bytes without one belong to it.
    open: bool,
    continuity: Option<u8>,
    /// Sections that were damaged or too long.
    pub faults: u64,
}

impl Sections {
    /// Appends the sections that this packet completes to `complete`, without their checksum, which was right.
    pub fn read(&mut self, head: &Head, payload: &[u8], complete: &mut Vec<Vec<u8>>) {
        let expected = self.continuity.map(|last| (last + 1) & 0x0f);
        // Some muxers never count; where a section begins nothing depends on what came before.
        if self.continuity == Some(head.continuity) && !head.starts {
            return;
        }
        self.open &= expected == Some(head.continuity);
        self.continuity = Some(head.continuity);
        if !head.starts {
            return self.extend(payload, complete);
        }
        let Some((pointer, payload)) = payload.split_first() else { return };
        let Some((rest, begin)) = payload.split_at_checked(usize::from(*pointer)) else {
            self.open = false;
            self.faults += 1;
            return;
        };
        self.extend(rest, complete);
        self.buffer.clear();
        self.open = true;
        self.extend(begin, complete);
    }

    fn extend(&mut self, data: &[u8], complete: &mut Vec<Vec<u8>>) {
        if !self.open {
            return;
        }
        self.buffer.extend_from_slice(data);
        while let Some(length) = self.length() {
            if length > MAX_SECTION {
                self.open = false;
                self.faults += 1;
                return;
            }
            if self.buffer.len() < length {
                return;
            }
            let mut section: Vec<u8> = self.buffer.drain(..length).collect();
            if length < LENGTH_END + CHECKSUM || crc32(&section) != 0 {
                self.faults += 1;
                continue;
            }
            section.truncate(length - CHECKSUM);
            complete.push(section);
        }
    }

    /// How long the section in the buffer will be; closes at stuffing.
    fn length(&mut self) -> Option<usize> {
        if self.buffer.first() == Some(&0xff) {
            self.open = false;
            return None;
        }
        let head = self.buffer.first_chunk::<LENGTH_END>()?;
        Some(LENGTH_END + (usize::from(head[1] & 0x0f) << 8 | usize::from(head[2])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::psi;

    /// The sections of payloads that follow one another; those that begin one are said to.
    fn read(sections: &mut Sections, payloads: &[(u8, bool, &[u8])]) -> Vec<Vec<u8>> {
        let mut complete = Vec::new();
        for (continuity, starts, payload) in payloads {
            let head = Head { continuity: *continuity, starts: *starts, ..Head::default() };
            sections.read(&head, payload, &mut complete);
        }
        complete
    }

    /// What of two packets the section below leaves.
    const STUFFING: usize = 55;

    fn long() -> Vec<u8> {
        psi::section(2, 1, 0, &[7; 300])
    }

    #[test]
    fn a_section_over_packets_is_put_together() {
        let section = long();
        let (first, second) = section.split_at(184);
        let mut sections = Sections::default();
        let complete = read(&mut sections, &[(0, true, first), (1, false, second)]);
        assert_eq!(complete, [section[1..section.len() - STUFFING - 4].to_vec()]);
        assert_eq!(sections.faults, 0);
    }

    #[test]
    fn a_repeated_packet_is_read_once_and_a_lost_one_voids_the_section() {
        let section = long();
        let (first, second) = section.split_at(184);
        let mut sections = Sections::default();
        assert_eq!(read(&mut sections, &[(0, true, first), (0, true, first), (1, false, second)]).len(), 1);
        assert_eq!(read(&mut sections, &[(2, true, first), (4, false, second)]).len(), 0);
        assert_eq!(read(&mut sections, &[(5, false, second)]).len(), 0, "nothing began");
    }

    #[test]
    fn a_pointer_finishes_one_section_and_begins_the_next() {
        let section = long();
        let data = &section[1..section.len() - STUFFING];
        let tail = data.len() - 183;
        let mut second = vec![tail as u8];
        second.extend_from_slice(&data[183..]);
        second.extend_from_slice(&data[..20]);
        let payloads = [(0, true, &section[..184]), (1, true, &second), (2, false, &data[20..])];
        assert_eq!(read(&mut Sections::default(), &payloads).len(), 2);
    }

    #[test]
    fn a_damaged_section_is_left_out() {
        for at in [4, 100, 300] {
            let mut section = long();
            section[at] ^= 1;
            let (first, second) = section.split_at(184);
            let mut sections = Sections::default();
            assert_eq!(read(&mut sections, &[(0, true, first), (1, false, second)]).len(), 0);
            assert_eq!(sections.faults, 1);
        }
    }

    #[test]
    fn a_length_past_the_limit_is_not_waited_for() {
        let mut sections = Sections::default();
        read(&mut sections, &[(0, true, &[0, 2, 0xbf, 0xff, 0, 0])]);
        for continuity in 1..100 {
            read(&mut sections, &[(continuity & 0x0f, false, &[0; 184])]);
        }
        assert!(sections.buffer.len() <= MAX_SECTION + 184);
        assert_eq!(sections.faults, 1);
    }
}
