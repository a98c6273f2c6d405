//! Why, in a sentence.

use std::time::Duration;

use holdfast_core::account::Holder;
use holdfast_core::input::{EndReason, Failure, Loss, RefuseReason, ViewerEnd};

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

/// Why a request was refused.
pub fn refused(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::HolderLive => "the publisher that holds the slot is alive",
        RefuseReason::HolderNegotiating => "the publisher that holds the slot is just connecting",
        RefuseReason::HolderWithoutAudio => {
            "the publisher that holds the slot never sent audio, so its silence proves nothing"
        }
        RefuseReason::TakeoverTimeout => "whether the slot's holder lives was not decided within takeover_wait",
        RefuseReason::TooManyRequests => "too many requests of the same player wait for one another",
        RefuseReason::TooManyWaiting => "too many others wait for the same slots",
        RefuseReason::NegotiationFailed => "its offer could not be negotiated",
        RefuseReason::Ended => "its session was ended before it was answered",
        RefuseReason::Draining => "the program stops",
        RefuseReason::TooManyViewers => "the feed has as many viewers as it may have",
        RefuseReason::StartTimeout => "no media came within start_timeout",
        RefuseReason::NoSource => "no origin of the channel can be had",
        RefuseReason::NotFound => "there is no such endpoint or feed",
        RefuseReason::UserLimit => "its user plays as much at once as it may",
        RefuseReason::Suppressed => {
            "the same player ended what could be ended for it a moment ago (playback.reentry_guard)"
        }
        RefuseReason::AccountExpired => "its user has expired or is disabled",
        RefuseReason::Kicked => "an operator ended it and does not let it come back yet",
        RefuseReason::Busy => "there are as many playbacks as playback.cleanup_capacity allows",
        RefuseReason::ProviderLimit => "no account of a provider that has it is free",
        RefuseReason::ProviderFailed => "no provider gives it",
        RefuseReason::Superseded => "a newer request of the same player took its place",
        RefuseReason::Preempted => "it gave way to a stronger one a moment ago",
        RefuseReason::PlaybackOver => "its playback was ended, or goes on elsewhere",
    }
}

/// How much the end of a viewer or playback matters, and why it came.
pub fn viewer_ended(reason: ViewerEnd) -> (Weight, &'static str) {
    match reason {
        ViewerEnd::Left => (Weight::Plain, "it left"),
        ViewerEnd::Done => (Weight::Plain, "it was sent to its end"),
        ViewerEnd::Shutdown => (Weight::Plain, "the program stops"),
        ViewerEnd::Superseded => (Weight::Plain, "its player asked for something else"),
        ViewerEnd::Slow => (Weight::Loss, "it fell further behind than live.buffer keeps"),
        ViewerEnd::Stuck => (Weight::Loss, "its player took nothing for live.progress_timeout"),
        ViewerEnd::Idle => (Weight::Notice, "nothing came into the feed for live.idle"),
        ViewerEnd::Ended => (Weight::Notice, "the origin ended the stream and did not begin again within end_grace"),
        ViewerEnd::NoSource => (Weight::Loss, "the channel's origins were tried as often as retries allows"),
        ViewerEnd::Evicted => (Weight::Loss, "another playback of its user took its place"),
        ViewerEnd::Kicked => (Weight::Loss, "an operator ended it"),
        ViewerEnd::Limit => (Weight::Loss, "its user plays as much as it may, and no place became free in time"),
        ViewerEnd::Failed => (Weight::Loss, "the provider broke it off"),
        ViewerEnd::Preempted => (Weight::Loss, "its account went to a stronger playback"),
    }
}

/// How much the loss of a source matters, and what it was.
pub fn lost(loss: Loss) -> (Weight, &'static str) {
    match loss {
        Loss::NotFound => (Weight::Notice, "the origin has no such stream"),
        Loss::Forbidden => (Weight::Loss, "the origin wants other credentials"),
        Loss::Unresolved => (Weight::Notice, "the origin's name is not known"),
        Loss::Unreachable => (Weight::Notice, "the origin cannot be reached"),
        Loss::Refused => (Weight::Notice, "the origin refuses"),
        Loss::Reset => (Weight::Notice, "the connection broke"),
        Loss::Ended => (Weight::Plain, "the origin ended the stream"),
        Loss::Unusable => (Weight::Notice, "what the origin sends cannot be passed on"),
        Loss::Loop => (Weight::Loss, "the origin is this server, or gets the stream from it"),
        Loss::TimedOut => (Weight::Notice, "the origin did not agree to send within connect_timeout"),
        Loss::Silent => (Weight::Notice, "no media came from it for no_input_timeout"),
        Loss::NoKeyFrame => (Weight::Notice, "media came, but nothing a player could start with"),
        Loss::NoAccount => (Weight::Notice, "no account of the provider is free"),
        Loss::Preempted => (Weight::Loss, "its account went to somebody stronger"),
    }
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
