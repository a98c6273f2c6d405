//! How much something matters, and how long something took.

use std::time::Duration;

use holdfast_core::input::{EndReason, Loss, ViewerEnd};

use super::lanes::Weight;

/// Microseconds as seconds.
pub fn seconds(micros: u64) -> String {
    match micros {
        0..10_000_000 => format!("{:.2} s", micros as f64 / 1e6),
        10_000_000..120_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => {
            let whole = micros / 1_000_000;
            format!("{} min {} s", whole / 60, whole % 60)
        }
    }
}

/// As [`seconds`].
pub fn span(span: Duration) -> String {
    seconds(span.as_micros() as u64)
}

/// How much the end of a session matters.
pub fn ended(reason: EndReason) -> Weight {
    match reason {
        EndReason::Deleted | EndReason::Bye | EndReason::DtlsClosed | EndReason::Shutdown => Weight::Plain,
        EndReason::ClientGone | EndReason::NegotiationFailed => Weight::Notice,
        EndReason::Kicked
        | EndReason::IceFailed
        | EndReason::Inactive
        | EndReason::SetupTimeout
        | EndReason::Displaced => Weight::Loss,
    }
}

/// How much the end of a viewer or playback matters.
pub fn viewer_ended(reason: ViewerEnd) -> Weight {
    match reason {
        ViewerEnd::Left | ViewerEnd::Done | ViewerEnd::Shutdown | ViewerEnd::Superseded => Weight::Plain,
        ViewerEnd::Idle | ViewerEnd::Ended => Weight::Notice,
        ViewerEnd::Slow
        | ViewerEnd::Stuck
        | ViewerEnd::NoSource
        | ViewerEnd::Evicted
        | ViewerEnd::Kicked
        | ViewerEnd::Limit
        | ViewerEnd::Failed
        | ViewerEnd::Preempted
        | ViewerEnd::GraceOver
        | ViewerEnd::Expired => Weight::Loss,
    }
}

/// How much the loss of a source matters.
pub fn lost(loss: Loss) -> Weight {
    match loss {
        Loss::Ended => Weight::Plain,
        Loss::Forbidden | Loss::Loop | Loss::Preempted | Loss::GraceOver => Weight::Loss,
        Loss::NotFound
        | Loss::Unresolved
        | Loss::Unreachable
        | Loss::Refused
        | Loss::Reset
        | Loss::Unusable
        | Loss::TimedOut
        | Loss::Silent
        | Loss::NoKeyFrame
        | Loss::NoAccount
        | Loss::Limit
        | Loss::Page => Weight::Notice,
    }
}
