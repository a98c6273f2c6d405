//! A clip behind a stream of ours that was cut off.

use std::collections::{BTreeSet, VecDeque};

use super::packet::{Adaptation, PACKET, Pid, pid};
use super::scanner::Scanner;
use super::splicer::Splicer;

/// A clip as it goes out behind a stream of a [`Splicer`]'s that ended with a whole packet, wherever that was: its streams are on
/// the same PIDs, so that players show it in the same place; its map has another version; and on each PID it says that neither
/// counts nor clock go on (§2.4.3.5). `None` if nothing in it can be played.
pub fn behind(clip: &[u8]) -> Option<Vec<u8>> {
    let mut segments = VecDeque::new();
    Scanner::default().read(clip, &mut segments).ok()?;
    let mut splicer = Splicer::behind();
    let mut out = Vec::with_capacity(clip.len() + clip.len() / 16);
    let mut begun = BTreeSet::new();
    for chunk in segments.into_iter().filter_map(|segment| splicer.pass(segment)) {
        for packet in chunk.data.as_chunks::<PACKET>().0 {
            let number = pid(packet);
            if begun.insert(number) {
                let adaptation = Adaptation { discontinuity: true, ..Adaptation::default() };
                Pid::following(number, packet[3].wrapping_sub(1) & 0x0f).write_adaptation(adaptation, &mut out);
            }
            out.extend_from_slice(packet);
        }
    }
    (!out.is_empty()).then_some(out)
}
