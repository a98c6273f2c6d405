//! End to end: real publishers, players and browsers against the real program.
//!
//! `tests/run` installs what they need and runs them. Of each program one test runs at a time, since their figures are times.
//!
//! * [`edge`]: the program, started on a free port with a configuration of the test's own
//! * [`http`]: requests over plain sockets, for every byte to be the test's
//! * [`offer`]: SDP offers and fragments nobody stands behind
//! * [`publisher`]: aiortc, GStreamer's WHIP elements, FFmpeg's WHIP muxer
//! * [`browser`]: headless Chromium, driven over DevTools
//! * [`origin`]: the live stream of an encoder over HTTP, which falls silent and comes back as a test wants
//! * [`provider`]: a panel with accounts that it counts and limits, and with everything that panels have
//! * [`viewer`]: a socket that reads a live stream, ffprobe, ffmpeg
//! * [`player`]: ffmpeg, mpv, VLC, GStreamer's playbin and curl, as people start them
//! * [`household`]: an edge between users and a provider
//! * [`network`]: a namespace with two ways to the edge, and one that is cut off from it
//! * [`process`]: child processes that report by lines of JSON
//! * [`prepared`]: what `tests/run` has put where

// A test fails by panicking; here that is the intended way to report.
#![allow(clippy::unwrap_used)]

pub mod browser;
pub mod edge;
pub mod household;
pub mod http;
pub mod network;
pub mod offer;
pub mod origin;
pub mod player;
pub mod prepared;
pub mod process;
pub mod provider;
pub mod publisher;
pub mod viewer;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static TURN: Mutex<()> = Mutex::new(());

/// One test at a time: two of them on two cores would measure one another.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks every 20 ms until `look` finds something, and fails with `what` after `limit`.
///
/// # Panics
/// When nothing was found in time.
pub fn eventually<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is done at once is done within this, also on a machine that has other things to do: what this keeps apart from "at once"
/// takes tens of seconds or never comes. How long things take is measured by benchmarks and printed by tests.
pub const AT_ONCE: Duration = Duration::from_secs(4);

/// Milliseconds, for tables.
pub fn ms(duration: Duration) -> u128 {
    duration.as_millis()
}
