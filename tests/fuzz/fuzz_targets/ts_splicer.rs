//! Sources of any bytes, one after the other: whole packets come out, on our PIDs, and counters go on over a switch. The first
//! byte of an input is the size of the reads, the second one where the sources part, in 256ths.
#![no_main]

use std::collections::{BTreeMap, VecDeque};

use holdfast_io::ts::{Demuxer, PACKET, Scanner, Splicer, Times};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [cut, part, bytes @ ..] = input else { return };
    let (first, second) = bytes.split_at(bytes.len() * usize::from(*part) / 256);
    let (mut splicer, mut demuxer, mut units) = (Splicer::new(), Demuxer::default(), VecDeque::new());
    let mut counts: BTreeMap<u16, u8> = BTreeMap::new();
    for (source, times) in [(first, Times::Kept), (second, Times::Kept), (first, Times::Continued)] {
        let (mut scanner, mut out) = (Scanner::default(), VecDeque::new());
        for piece in source.chunks(usize::from(*cut).max(1)) {
            // A fault ends nothing but the scanner.
            let _ = scanner.read(piece, &mut out);
        }
        splicer.begin(times);
        // Within a source gaps are its own; the first packets behind a switch are ours.
        let mut fresh = counts.clone();
        for chunk in out.drain(..).filter_map(|segment| splicer.pass(segment)) {
            assert!(!chunk.data.is_empty() && chunk.data.len().is_multiple_of(PACKET));
            for packet in chunk.data.chunks(PACKET) {
                let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
                assert!(packet[0] == 0x47 && (pid == 0 || pid == 0x1000 || (0x100..0x200).contains(&pid)));
                let count = packet[3] & 0x0f;
                let expected = fresh.remove(&pid).map(|last| (last + (packet[3] >> 4 & 1)) & 0x0f);
                assert!(expected.is_none_or(|expected| expected == count));
                counts.insert(pid, count);
            }
            demuxer.read(&chunk.data, &mut units);
        }
    }
});
