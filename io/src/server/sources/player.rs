//! A file in a loop, at the speed of its clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::time::Time;

use crate::ts::{self, PACKET};

/// How much goes out ahead of the clock at once.
const TURN: Duration = Duration::from_millis(40);
/// Clocks that are further apart than this do not belong to one another.
const JUMP: u64 = 10 * 90_000;

/// An MPEG-TS file that was read.
#[derive(PartialEq, Eq)]
pub struct Clip {
    data: Bytes,
    /// Where in the file, in bytes, which time since its beginning is reached, in µs; ascending in both.
    clock: Vec<(usize, u64)>,
}

impl fmt::Debug for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clip").field("bytes", &self.data.len()).field("length", &self.length()).finish()
    }
}

/// What is wrong with a file that is to be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClip;

impl fmt::Display for NoClip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "is no MPEG-TS of whole 188-byte packets with a clock (PCR) of half a second at least; \
             `ffmpeg -i FILE -c copy -f mpegts OUT.ts` makes one",
        )
    }
}

impl std::error::Error for NoClip {}

impl Clip {
    /// A file's contents.
    ///
    /// # Errors
    /// If it cannot be played.
    pub fn new(data: Bytes) -> Result<Self, NoClip> {
        let (packets, _) = data.as_chunks::<PACKET>();
        let mut clock: Vec<(usize, u64)> = Vec::new();
        let (mut last, mut at, mut of) = (None, 0, None);
        for (index, packet) in packets.iter().enumerate() {
            let Some((pid, ticks)) = ts::clock(packet) else { continue };
            if *of.get_or_insert(pid) != pid {
                continue;
            }
            if let Some(last) = last {
                let step = ticks.wrapping_sub(last) & ((1 << 33) - 1);
                at += if step < JUMP { step } else { 0 };
            }
            last = Some(ticks);
            clock.push((index * PACKET, at * 100 / 9));
        }
        let long = clock.last().is_some_and(|(_, at)| *at >= 500_000);
        if packets.is_empty() || packets.iter().any(|packet| packet[0] != 0x47) || !long {
            return Err(NoClip);
        }
        Ok(Clip { data, clock })
    }

    /// All of it.
    pub(crate) fn data(&self) -> Bytes {
        self.data.clone()
    }

    /// How long one round takes: its clock, and one more step of it for what comes behind its last tick.
    fn length(&self) -> Duration {
        let (last, steps) = self.clock.last().map_or((0, 1), |(_, at)| (*at, self.clock.len() as u64 - 1));
        Duration::from_micros(last + last / steps.max(1))
    }
}

/// One play of a clip.
#[derive(Debug)]
pub(super) struct Player {
    clip: Arc<Clip>,
    /// When this round began.
    begun: Time,
    /// The next byte.
    at: usize,
}

/// What a player gives at a time.
pub(super) struct Turn {
    pub data: Bytes,
    /// Whether it begins with the file's first byte, and not for the first time.
    pub begins_anew: bool,
    /// When there is more.
    pub next: Time,
}

impl Player {
    pub fn new(clip: Arc<Clip>, now: Time) -> Self {
        Player { clip, begun: now, at: 0 }
    }

    /// What is due now.
    pub fn turn(&mut self, now: Time) -> Turn {
        let begins_anew = self.at == self.clip.data.len();
        if begins_anew {
            let length = self.clip.length();
            // A server that stood still does not catch up with hours of a slate.
            self.begun = if now.since(self.begun) > length * 2 { now } else { self.begun + length };
            self.at = 0;
        }
        let until = (now.since(self.begun) + TURN).as_micros() as u64;
        let clock = &self.clip.clock;
        let place = clock.partition_point(|(_, at)| *at <= until);
        let end = clock.get(place).map_or(self.clip.data.len(), |(offset, _)| *offset).max(self.at);
        let data = self.clip.data.slice(self.at..end);
        self.at = end;
        let next = match clock.get(place) {
            Some((_, at)) => self.begun + Duration::from_micros(*at).saturating_sub(TURN),
            None => self.begun + self.clip.length().saturating_sub(TURN),
        };
        Turn { data, begins_anew, next: next.max(now + TURN / 4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of PID 256 with this clock.
    fn packet(ticks: u64) -> [u8; PACKET] {
        let mut packet = [0xff; PACKET];
        packet[..6].copy_from_slice(&[0x47, 0x01, 0x00, 0x20, 183, 0x10]);
        packet[6..10].copy_from_slice(&((ticks >> 1) as u32).to_be_bytes());
        packet[10] = (ticks as u8) << 7 | 0x7e;
        packet
    }

    fn clip(clocks: impl Iterator<Item = u64>) -> Result<Clip, NoClip> {
        Clip::new(clocks.flat_map(packet).collect::<Vec<u8>>().into())
    }

    #[test]
    fn a_file_goes_out_at_the_speed_of_its_clock_and_begins_anew() {
        // A clock each 40 ms, over the end of its 33 bits.
        let clip = Arc::new(clip((0..50).map(|step| ((1 << 33) - 36_000 + step * 3_600) % (1 << 33))).unwrap());
        assert_eq!(clip.length(), Duration::from_millis(2_000));
        let mut player = Player::new(clip.clone(), Time::ZERO);
        let (mut now, mut sent, mut rounds) = (Time::ZERO, 0, 0);
        while now < Time::from_micros(10_000_000) {
            let turn = player.turn(now);
            rounds += u64::from(turn.begins_anew);
            sent += turn.data.len();
            assert!(turn.next > now, "it rests");
            let packets = now.as_micros() / 40_000;
            assert!((sent / PACKET).abs_diff(packets as usize) <= 3, "{sent} bytes at {now:?}");
            now = turn.next;
        }
        assert_eq!(rounds, 5, "each begins 40 ms ahead, the last as well");
    }

    #[test]
    fn what_cannot_be_played_is_no_clip() {
        assert!(Clip::new(Bytes::new()).is_err());
        assert!(Clip::new(Bytes::from_static(&[0x47; 1880])).is_err());
        assert!(clip([0, 3_600].into_iter()).is_err(), "40 ms");
        assert!(clip([5, 5, 5].into_iter()).is_err());
    }

    #[test]
    fn a_clock_that_jumps_does_not_stop_the_file() {
        let clip = clip((0..20).map(|step| step * 9_000 + if step < 10 { 0 } else { 1 << 30 })).unwrap();
        assert_eq!(clip.clock.last().unwrap().1, 1_800_000);
    }
}
