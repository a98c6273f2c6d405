//! Anything an origin sends: read without a panic, only whole packets come out, and how the bytes are cut changes nothing.
//! The first byte of an input is the size of the cuts.
#![no_main]

use std::collections::VecDeque;

use holdfast_io::ts::{Fault, PACKET, Scanned, Scanner, Segment};
use libfuzzer_sys::fuzz_target;

/// Bytes and the starts among them, without the borders of segments; and what the scanner says of it all.
type Read = (Vec<u8>, Vec<(usize, u64)>, Scanned, Result<(), Fault>);

fn read(input: &[u8], cut: usize) -> Read {
    let (mut scanner, mut out, mut result) = (Scanner::default(), VecDeque::new(), Ok(()));
    for piece in input.chunks(cut) {
        result = scanner.read(piece, &mut out);
    }
    let (mut data, mut starts) = (Vec::new(), Vec::new());
    for Segment { data: packets, random_access, program } in out {
        assert!(!packets.is_empty() && packets.len().is_multiple_of(PACKET));
        assert!(program.lead().is_some(), "media of a program that has none");
        starts.extend(random_access.map(|pts| (data.len(), pts)));
        data.extend(packets);
    }
    (data, starts, scanner.counts(), result)
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, bytes)) = input.split_first() else { return };
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(read(bytes, usize::from(*cut).max(1)), whole);
});
