//! The packets that a publisher really sends: computed from its rhythm when somebody looks, never one event a packet.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_core::input::{Arrivals, Evidence};
use holdfast_core::time::Time;

/// Nobody looks further back than this, so windows that closed before it are summed up.
const MEMORY: Duration = Duration::from_secs(3);

/// One kind of packet: the first after `phase` µs, then one each `every` µs; none at all where `every` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Track {
    pub every: u32,
    pub phase: u32,
}

impl Track {
    pub const NONE: Track = Track { every: 0, phase: 0 };

    pub const fn every_ms(ms: u32) -> Self {
        Track { every: ms * 1000, phase: 0 }
    }

    pub fn phase(self, micros: u32) -> Self {
        Track { phase: micros, ..self }
    }
}

/// How often which packets leave a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rhythm {
    pub audio: Track,
    pub video: Track,
    pub control: Track,
}

impl Rhythm {
    /// Audio each 20 ms, video each 33 ms, RTCP each second.
    pub const AUDIO_VIDEO: Rhythm =
        Rhythm { audio: Track::every_ms(20), video: Track::every_ms(33), control: Track::every_ms(1000) };

    /// Picture alone, a frame each `ms` ms, no RTCP.
    pub const fn video_only(ms: u32) -> Self {
        Rhythm { audio: Track::NONE, video: Track::every_ms(ms), control: Track::NONE }
    }

    /// The same without audio.
    pub fn muted(self) -> Self {
        Rhythm { audio: Track::NONE, ..self }
    }

    fn tracks(&self) -> [Track; 3] {
        [self.audio, self.video, self.control]
    }
}

/// A time in which packets leave: `[from, until)`.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    from: Time,
    until: Time,
    rhythm: Rhythm,
}

impl Window {
    /// What came of one track up to and with `at`.
    fn arrivals(&self, track: Track, at: Time) -> Arrivals {
        // Not by way of `Duration`s, for this is asked more often than all else.
        let (first, every) = (self.from.as_micros() + u64::from(track.phase), u64::from(track.every));
        let last = at.as_micros().min(self.until.as_micros().saturating_sub(1));
        if every == 0 || last < first {
            return Arrivals::default();
        }
        let steps = (last - first) / every;
        Arrivals { count: steps + 1, last: Some(Time::from_micros(first + steps * every)) }
    }
}

/// Everything that one session's publisher sent so far.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The last one; until the first there is one in which nothing leaves.
    window: Window,
    /// Apart, and only where there is any: most have none, and are looked at more often than all else.
    past: Option<Box<Past>>,
}

#[derive(Clone, Debug, Default)]
struct Past {
    before: [Arrivals; 3],
    /// Those between these and the last.
    windows: VecDeque<Window>,
    /// What the core was told, where nobody knows what was sent: the moment for which that is so, and the evidence.
    told: VecDeque<(Time, Evidence)>,
}

impl Stream {
    /// From `now` on packets leave in this rhythm.
    pub fn open(&mut self, now: Time, rhythm: Rhythm) {
        self.close(now);
        if self.window.from < self.window.until {
            let Past { before, windows, .. } = &mut **self.past.get_or_insert_default();
            windows.push_back(self.window);
            while let Some(window) = windows.front().filter(|window| window.until + MEMORY <= now).copied() {
                let sums = before.iter_mut().zip(window.rhythm.tracks());
                sums.for_each(|(sum, track)| *sum = add(*sum, window.arrivals(track, now)));
                windows.pop_front();
            }
        }
        self.window = Window { from: now, until: Time::NEVER, rhythm };
    }

    /// From `now` on no packet leaves.
    pub fn close(&mut self, now: Time) {
        if self.is_open() {
            self.window.until = now;
        }
    }

    /// Whether packets leave.
    pub fn is_open(&self) -> bool {
        self.window.until == Time::NEVER
    }

    /// What was told of it is so for the moment `at`.
    pub fn tell(&mut self, at: Time, evidence: Evidence) {
        let told = &mut self.past.get_or_insert_default().told;
        while told.len() > 1 && told[1].0 + MEMORY <= at {
            told.pop_front();
        }
        told.push_back((at, evidence));
    }

    /// Up to when it is known what was sent; `None` where it always is.
    pub fn told_until(&self) -> Option<Time> {
        self.told().map(|(at, _)| at)
    }

    /// What was told last; `None` where nothing was.
    pub fn told(&self) -> Option<(Time, Evidence)> {
        self.past.as_ref()?.told.back().copied()
    }

    /// What came of audio, video and control up to and with these times, none further back than [`MEMORY`].
    pub fn evidence(&self, at: [Time; 3]) -> Evidence {
        let of = |kind: usize| move |window: &Window| window.arrivals(window.rhythm.tracks()[kind], at[kind]);
        let Some(Past { before, windows, told }) = self.past.as_deref() else {
            let last = |kind| of(kind)(&self.window);
            return Evidence { audio: last(0), video: last(1), control: last(2) };
        };
        if !told.is_empty() {
            let told = |at: Time| {
                let known = told.iter().rev().find(|(told, _)| *told <= at);
                known.map(|(_, evidence)| *evidence).unwrap_or_default()
            };
            return Evidence { audio: told(at[0]).audio, video: told(at[1]).video, control: told(at[2]).control };
        }
        let sum = |kind: usize| windows.iter().chain([&self.window]).map(of(kind)).fold(before[kind], add);
        Evidence { audio: sum(0), video: sum(1), control: sum(2) }
    }

    /// What came up to and with `at`.
    pub fn at(&self, at: Time) -> Evidence {
        self.evidence([at; 3])
    }
}

fn add(sum: Arrivals, more: Arrivals) -> Arrivals {
    Arrivals { count: sum.count + more.count, last: sum.last.max(more.last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn packets_are_counted_as_if_each_had_been_sent() {
        let mut stream = Stream::default();
        let rhythm =
            Rhythm { audio: Track::every_ms(20).phase(5_000), video: Track::every_ms(33), control: Track::NONE };
        let (mut audio, mut video) = (Arrivals::default(), Arrivals::default());
        let mut open = false;
        for ms in 0..20_000 {
            // Two seconds of sending, one of silence.
            let sends = ms % 3000 < 2000;
            if sends != open {
                if sends {
                    stream.open(at(ms), rhythm)
                } else {
                    stream.close(at(ms))
                }
                open = sends;
            }
            let since = ms % 3000;
            if sends && since >= 5 && (since - 5) % 20 == 0 {
                audio = Arrivals { count: audio.count + 1, last: Some(at(ms)) };
            }
            if sends && since % 33 == 0 {
                video = Arrivals { count: video.count + 1, last: Some(at(ms)) };
            }
            assert_eq!(stream.at(at(ms)), Evidence { audio, video, control: Arrivals::default() }, "{ms} ms");
        }
        assert!(stream.past.is_some_and(|past| past.windows.len() <= 2), "old windows are summed up");
    }

    #[test]
    fn a_look_at_the_past_sees_the_past() {
        let mut stream = Stream::default();
        stream.open(at(0), Rhythm::AUDIO_VIDEO);
        stream.close(at(100));
        stream.open(at(200), Rhythm::AUDIO_VIDEO);
        assert_eq!(stream.at(at(150)).audio, Arrivals { count: 5, last: Some(at(80)) });
        assert_eq!(stream.at(at(200)).audio, Arrivals { count: 6, last: Some(at(200)) });
    }
}
