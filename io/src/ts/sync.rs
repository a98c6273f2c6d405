//! Bytes into packets: where packets begin, and what lies between them.
//!
//! Packets come as they are (188 bytes), behind a time stamp of four bytes (192, M2TS) or before sixteen bytes of Reed-Solomon
//! code (204). The distance from one sync byte to the next tells which; what is between packets is left out.

use super::packet::{PACKET, SYNC};

const STRIDES: [usize; 3] = [PACKET, 192, 204];
/// Sync bytes in a row that make a stream. The value is frequent in payload; five at a distance happen once in 2^40 places.
const PROOF: usize = 5;
/// What is searched at a time when nothing is known of where packets begin; more than a proof takes.
const WINDOW: usize = 2048;

/// Finds the packets in the bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    lock: Option<Lock>,
    /// What could not be read yet: less than a packet, or less than a proof.
    carry: Vec<u8>,
    /// Bytes that belong to no packet.
    pub skipped: u64,
    /// Those of them that came since the last packet.
    pub skipped_since: usize,
    /// How often packets did not go on where they should.
    pub losses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    stride: usize,
    /// What lies before the next packet.
    between: usize,
}

enum Search {
    /// Packets begin at `at`.
    Found { at: usize, stride: usize },
    /// Nothing begins before `at`; there it takes more bytes to tell.
    More { at: usize },
}

impl Framing {
    /// Hands each packet that `data` completes to `packet`.
    pub fn read(&mut self, mut data: &[u8], mut packet: impl FnMut(&[u8; PACKET])) {
        while !data.is_empty() {
            if self.carry.is_empty() && self.lock.is_some() {
                let read = self.drain(data, &mut packet);
                data = &data[read..];
                if self.lock.is_some() {
                    self.carry.extend_from_slice(data);
                    return;
                }
                continue;
            }
            let full = if self.lock.is_some() { PACKET } else { WINDOW };
            let (now, later) = data.split_at(full.saturating_sub(self.carry.len()).clamp(1, data.len()));
            data = later;
            let mut carry = std::mem::take(&mut self.carry);
            carry.extend_from_slice(now);
            let read = self.drain(&carry, &mut packet);
            carry.drain(..read);
            self.carry = carry;
        }
    }

    /// Reads what can be read and says how much that was.
    fn drain(&mut self, data: &[u8], packet: &mut impl FnMut(&[u8; PACKET])) -> usize {
        let mut at = 0;
        loop {
            let Some(lock) = &mut self.lock else {
                let found = search(&data[at..]);
                let (Search::Found { at: skipped, .. } | Search::More { at: skipped }) = found;
                at += skipped;
                self.skipped += skipped as u64;
                self.skipped_since += skipped;
                let Search::Found { stride, .. } = found else { return at };
                self.lock = Some(Lock { stride, between: 0 });
                continue;
            };
            let between = lock.between.min(data.len() - at);
            lock.between -= between;
            at += between;
            let Some(first) = data.get(at) else { return at };
            if *first != SYNC {
                self.lock = None;
                self.losses += 1;
                continue;
            }
            let Some(whole) = data[at..].first_chunk() else { return at };
            packet(whole);
            self.skipped_since = 0;
            lock.between = lock.stride - PACKET;
            at += PACKET;
        }
    }
}

fn search(data: &[u8]) -> Search {
    for (at, _) in data.iter().enumerate().filter(|(_, byte)| **byte == SYNC) {
        for stride in STRIDES {
            let mut places = (0..PROOF).map(|index| data.get(at + index * stride));
            match places.find(|byte| *byte != Some(&SYNC)) {
                None => return Search::Found { at, stride },
                // What is not there yet may be the proof: this place cannot be passed over.
                Some(None) => return Search::More { at },
                Some(Some(_)) => {}
            }
        }
    }
    Search::More { at: data.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(count: usize) -> Vec<[u8; PACKET]> {
        let packet = |index| std::array::from_fn(|at| if at == 0 { SYNC } else { index as u8 });
        (0..count).filter(|index| *index as u8 != SYNC).map(packet).collect()
    }

    fn read(framing: &mut Framing, data: &[u8]) -> Vec<[u8; PACKET]> {
        let mut out = Vec::new();
        framing.read(data, |packet| out.push(*packet));
        out
    }

    #[test]
    fn packets_are_found_at_each_distance() {
        for (before, behind) in [(0, 0), (4, 0), (0, 16)] {
            let mut data = Vec::new();
            for packet in packets(20) {
                data.resize(data.len() + before, 0xaa);
                data.extend_from_slice(&packet);
                data.resize(data.len() + behind, 0xbb);
            }
            for cut in [1, 7, 188, 300, data.len()] {
                let mut framing = Framing::default();
                let out: Vec<_> = data.chunks(cut).flat_map(|piece| read(&mut framing, piece)).collect();
                assert_eq!(out, packets(20), "{before}+188+{behind} in pieces of {cut}");
                assert_eq!((framing.skipped, framing.losses), (before as u64, 0));
            }
        }
    }

    #[test]
    fn a_packet_is_there_with_its_last_byte() {
        let data = packets(10).concat();
        let mut framing = Framing::default();
        read(&mut framing, &data[..6 * PACKET]);
        assert_eq!(read(&mut framing, &data[6 * PACKET..7 * PACKET - 1]).len(), 0);
        assert_eq!(read(&mut framing, &data[7 * PACKET - 1..7 * PACKET]).len(), 1);
    }

    #[test]
    fn a_start_amid_a_packet_loses_only_that_one() {
        let data = packets(10).concat();
        let mut framing = Framing::default();
        assert_eq!(read(&mut framing, &data[100..]), packets(10)[1..]);
        assert_eq!((framing.skipped, framing.losses), (88, 0));
    }

    #[test]
    fn garbage_between_packets_is_skipped_and_counted() {
        let data = [packets(8).concat(), vec![0x46; 1000], packets(8).concat()].concat();
        for cut in [1, 187, 190, data.len()] {
            let mut framing = Framing::default();
            let out: Vec<_> = data.chunks(cut).flat_map(|piece| read(&mut framing, piece)).collect();
            assert_eq!(out, [packets(8), packets(8)].concat());
            assert_eq!((framing.skipped, framing.losses, framing.skipped_since), (1000, 1, 0));
        }
    }

    #[test]
    fn a_damaged_sync_byte_costs_its_packet() {
        let mut data = packets(20).concat();
        data[10 * PACKET] = 0;
        let mut framing = Framing::default();
        assert_eq!(read(&mut framing, &data).len(), 19);
        assert_eq!(framing.skipped, PACKET as u64);
    }

    #[test]
    fn what_is_held_is_bounded() {
        for byte in [0, SYNC] {
            let mut framing = Framing::default();
            for _ in 0..100 {
                read(&mut framing, &[byte; 1000]);
                assert!(framing.carry.len() < WINDOW);
            }
        }
    }
}
