//! How much something matters, and why it came, where the core has no words for it.

use std::time::Duration;

use holdfast_core::account::Holder;
use holdfast_core::input::{EndReason, Failure, Loss, ViewerEnd};

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

/// How much the end of a session matters, and why it came.
pub fn ended(reason: EndReason, silent: Option<u64>) -> (Weight, String) {
    let silence = match silent {
        Some(silent) => format!("no media had come from it for {}", seconds(silent)),
        None => String::from("it never sent any media"),
    };
    match reason {
        EndReason::Deleted => (Weight::Plain, "its publisher ended it (DELETE)".into()),
        EndReason::Bye => (Weight::Plain, "its publisher said goodbye (RTCP)".into()),
        EndReason::DtlsClosed => (Weight::Plain, "its publisher closed the connection (DTLS)".into()),
        EndReason::ClientGone => (Weight::Notice, "its client hung up before it had an answer".into()),
        EndReason::Shutdown => (Weight::Plain, "the program stops".into()),
        EndReason::Kicked => (Weight::Loss, "an operator ended it".into()),
        EndReason::NegotiationFailed => (Weight::Notice, "its offer could not be negotiated".into()),
        EndReason::IceFailed => (Weight::Loss, format!("its network path failed (ICE); {silence}")),
        EndReason::Inactive => (Weight::Loss, format!("{silence}, which is inactivity_timeout")),
        EndReason::SetupTimeout => (Weight::Loss, "no media ever came, for which it had setup_timeout".into()),
        EndReason::Displaced => (Weight::Loss, format!("{silence}, and another publisher asked for the slot")),
    }
}

/// How much the end of a viewer or playback matters, and why it came.
pub fn viewer_ended(reason: ViewerEnd) -> (Weight, &'static str) {
    let weight = match reason {
        ViewerEnd::Left | ViewerEnd::Done | ViewerEnd::Shutdown | ViewerEnd::Superseded => Weight::Plain,
        ViewerEnd::Idle | ViewerEnd::Ended => Weight::Notice,
        ViewerEnd::Slow
        | ViewerEnd::Stuck
        | ViewerEnd::NoSource
        | ViewerEnd::Evicted
        | ViewerEnd::Kicked
        | ViewerEnd::Limit
        | ViewerEnd::Failed
        | ViewerEnd::Preempted => Weight::Loss,
    };
    (weight, reason.says())
}

/// How much the loss of a source matters, and what it was.
pub fn lost(loss: Loss) -> (Weight, &'static str) {
    let weight = match loss {
        Loss::Ended => Weight::Plain,
        Loss::Forbidden | Loss::Loop | Loss::Preempted => Weight::Loss,
        Loss::NotFound
        | Loss::Unresolved
        | Loss::Unreachable
        | Loss::Refused
        | Loss::Reset
        | Loss::Unusable
        | Loss::TimedOut
        | Loss::Silent
        | Loss::NoKeyFrame
        | Loss::NoAccount => Weight::Notice,
    };
    (weight, loss.says())
}

/// What became of a connection to a provider.
pub fn failed(failure: Failure) -> String {
    match failure {
        Failure::Unreachable => "the provider cannot be reached".into(),
        Failure::TimedOut => "the provider did not answer in time".into(),
        Failure::Status(status) => format!("the provider answers {status}"),
        Failure::Unusable => "what the provider answers is of no use".into(),
    }
}

/// Who uses an account.
pub fn holder(holder: Holder) -> String {
    match holder {
        Holder::Playback(playback) => format!("playback {playback}"),
        Holder::Source(source) => format!("source {source}"),
        Holder::Probe(request) => format!("probe {}", request.0),
    }
}
