//! Memory of chunks that are kept for long: as much as they have bytes, nearly.

use bytes::{Bytes, BytesMut};

/// Chunks below this share a block. One of a frame of audio has 188 to 564 bytes; the allocator and the reference count would
/// take as much again for each.
const SMALL: usize = 2048;
/// Of a block at most `SMALL` bytes stay unused, and it goes when the last of its chunks does.
const BLOCK: usize = 32 * 1024;

/// Gives chunks their memory.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    block: BytesMut,
}

impl Blocks {
    /// A copy of a chunk, to be kept.
    pub fn keep(&mut self, chunk: &[u8]) -> Bytes {
        if chunk.len() >= SMALL {
            return Bytes::copy_from_slice(chunk);
        }
        if self.block.capacity() < chunk.len() {
            self.block = BytesMut::with_capacity(BLOCK);
        }
        self.block.extend_from_slice(chunk);
        self.block.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_chunks_lie_side_by_side_and_large_ones_take_what_they_need() {
        let mut blocks = Blocks::default();
        let mut kept = Vec::new();
        for n in 0..200u8 {
            kept.push(blocks.keep(&vec![n; if n % 10 == 0 { 5000 } else { 188 }]));
        }
        assert!(kept.iter().enumerate().all(|(n, chunk)| chunk.iter().all(|byte| usize::from(*byte) == n)));
        let small: Vec<&Bytes> = kept.iter().filter(|chunk| chunk.len() == 188).collect();
        let beside = small.windows(2).filter(|pair| pair[0].as_ptr_range().end == pair[1].as_ptr()).count();
        assert_eq!(beside, 178, "one block was full");
        for chunk in kept {
            if chunk.len() == 5000 {
                // Nobody else has it: its memory is its own.
                assert_eq!(Vec::from(chunk).capacity(), 5000);
            }
        }
    }
}
