//! Why, in a sentence: the one home of these words, for logs, status and pages.
//!
//! `it` is whatever was refused, ended or lost. Keys of the configuration stand in backticks.

use super::{Loss, RefuseReason, ViewerEnd};

impl RefuseReason {
    /// Why, and what to do about it where somebody can.
    pub fn says(self) -> &'static str {
        match self {
            RefuseReason::HolderLive => "the publisher that holds the slot is alive",
            RefuseReason::HolderNegotiating => "the publisher that holds the slot is just connecting",
            RefuseReason::HolderWithoutAudio => {
                "the publisher that holds the slot never sent audio, so its silence proves nothing; end it by hand if it is gone"
            }
            RefuseReason::TakeoverTimeout => {
                "whether the slot's holder lives could not be decided within `takeover_wait`"
            }
            RefuseReason::TooManyWaiting => "too many others wait for the same slots",
            RefuseReason::NegotiationFailed => "no session could be negotiated from its offer",
            RefuseReason::Ended => "its session was ended before it was answered",
            RefuseReason::Draining => "the program stops",
            RefuseReason::TooManyViewers => "the feed has as many viewers as `live.viewers` allows",
            RefuseReason::StartTimeout => "no media came within `start_timeout`",
            RefuseReason::NoSource => "no origin of the channel can be had",
            RefuseReason::NotFound => "there is no such endpoint or channel",
            RefuseReason::UserLimit => "its user plays as much at once as it may",
            RefuseReason::Suppressed => {
                "the same player ended what could be ended for it a moment ago (`playback.reentry_guard`)"
            }
            RefuseReason::AccountExpired => "its user has expired or is disabled",
            RefuseReason::Kicked => "an operator ended it and does not let it come back yet",
            RefuseReason::Busy => {
                "there are as many playbacks as `playback.cleanup_capacity` allows, or its player's requests took too long"
            }
            RefuseReason::TooManyRequests => "its player asks for more at once than may wait for one another",
            RefuseReason::InVain => {
                "a provider was asked for its player a hundred times in seconds and nothing came of it; if that provider's addresses lead back to this server, as by a proxy, take them out"
            }
            RefuseReason::ProviderLimit => {
                "no account of a provider that has it is free; add an [[account]], or give its user a stronger `priority`"
            }
            RefuseReason::AccountsOver => {
                "no provider that has it has an account that may be used: their `expires` is over, or they are disabled"
            }
            RefuseReason::ProviderFailed => "no provider gives it",
            RefuseReason::Superseded => "a newer request of the same player took its place",
            RefuseReason::Preempted => "it gave way to a stronger one a moment ago",
            RefuseReason::PlaybackOver => "its playback was ended, or goes on elsewhere",
        }
    }
}

impl ViewerEnd {
    /// Why, and what that means where it is not plain.
    pub fn says(self) -> &'static str {
        match self {
            ViewerEnd::Left => "it left",
            ViewerEnd::Done => "it was sent to its end",
            ViewerEnd::Slow => {
                "it fell further behind than `live.buffer` keeps; its network is too slow for the stream"
            }
            ViewerEnd::Stuck => {
                "its player took nothing for `live.progress_timeout`; it is gone without a word, paused, or much too slow"
            }
            ViewerEnd::Idle => "nothing came into the stream for `live.idle`",
            ViewerEnd::Ended => "the origin ended the stream and did not begin again within `end_grace`",
            ViewerEnd::NoSource => "the channel's origins were tried as often as `retries` allows",
            ViewerEnd::Shutdown => "the program stops",
            ViewerEnd::Evicted => "its user plays something else instead",
            ViewerEnd::Kicked => "an operator ended it",
            ViewerEnd::Limit => "its user plays as much as it may, and no place became free in time",
            ViewerEnd::Failed => "the provider broke off, or sent nothing",
            ViewerEnd::Superseded => "its player asked for something else",
            ViewerEnd::Preempted => "its account went to a stronger playback",
            ViewerEnd::GraceOver => {
                "it had a connection beyond those of its account by grace (`overlap`), and none became free within `playback.grace`"
            }
            ViewerEnd::Expired => "the `expires` of its user is over",
        }
    }
}

impl Loss {
    /// What became of the connection; `it` is the origin.
    pub fn says(self) -> &'static str {
        match self {
            Loss::Forbidden => "it refuses the credentials in the configuration, or this stream to them (401, 403)",
            Loss::Loop => "it is this server, or gets the stream from here; name where the stream comes from",
            Loss::TimedOut => "it did not agree to send within `connect_timeout`",
            Loss::NoAccount => "none of its provider's accounts is to be had",
            Loss::Preempted => "its account went to somebody else",
            Loss::GraceOver => {
                "it was one connection more than its account has, by grace, and none became free within `playback.grace`"
            }
            Loss::Limit => {
                "it bears no more connections at present: it may still count one that was closed a moment ago (`cooling`), or somebody else uses the account (`max_connections`)"
            }
            Loss::Page => "it sends a page in place of media, as providers do whose login is wrong, over or blocked",
            Loss::NoKeyFrame => "what it sends has no key frame, so nobody could begin to watch",
            Loss::Silent => "it sent no media for `no_input_timeout`",
            Loss::NotFound => "it has no such stream",
            Loss::Unresolved => "its name is not known",
            Loss::Unreachable => "it cannot be reached",
            Loss::Refused => "it refuses",
            Loss::Reset => "the connection broke",
            Loss::Ended => "it ended the stream",
            Loss::Unusable => "what it sends cannot be passed on",
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_words_of_its_own() {
        let refusals: BTreeSet<&str> = RefuseReason::ALL.iter().map(|reason| reason.says()).collect();
        assert_eq!(refusals.len(), RefuseReason::ALL.len());
        let ends: BTreeSet<&str> = ViewerEnd::ALL.iter().map(|reason| reason.says()).collect();
        assert_eq!(ends.len(), ViewerEnd::ALL.len());
        let losses: BTreeSet<&str> = Loss::ALL.iter().map(|loss| loss.says()).collect();
        assert_eq!(losses.len(), Loss::ALL.len());
    }
}
