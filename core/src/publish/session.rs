//! One publisher from its POST to its end, and the deadlines it has to meet (spec: publish §5, §6).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::input::{EndReason, EndpointId, Evidence, FeedId, RequestId};
use crate::slots::Hold;
use crate::time::Time;

/// A session that delivers while its slot puts nothing out this long has its chain built anew.
const STALL: Duration = Duration::from_secs(10);

/// One WHIP session.
#[derive(Debug, Serialize, Deserialize)]
pub struct Session {
    /// Where it publishes.
    pub endpoint: EndpointId,
    /// Its slot and tenancy.
    pub hold: Hold,
    /// The feed of its slot.
    pub feed: FeedId,
    /// When its slot was granted.
    pub created: Time,
    /// Why it is over, if it is; its slot stays held until the bridge is cut.
    pub finished: Option<EndReason>,
    /// The POST that has no answer yet.
    pub(super) request: Option<RequestId>,
    /// Counts POSTs, so that it can be told who came first.
    pub(super) arrival: u64,
    /// Its armed deadline.
    pub(super) armed: Time,
    /// When its slot was first seen to owe something: media came in after the last that went out.
    pub(super) owed: Option<Time>,
    /// When a key frame was last asked for.
    pub(super) key_frame: Option<Time>,
}

/// How long a session may be silent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Limits {
    /// Once it had media.
    pub inactivity_timeout: Duration,
    /// From its POST to its first media.
    pub setup_timeout: Duration,
}

/// What a session's deadline found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// All is well; look again then.
    Again(Time),
    /// It is over.
    End(EndReason),
    /// It delivers, its slot has put nothing out this long: the publisher is not to blame. Look again then.
    Stalled(Duration, Time),
}

impl Session {
    pub(super) fn new(now: Time, endpoint: EndpointId, hold: Hold, feed: FeedId) -> Self {
        Session {
            endpoint,
            hold,
            feed,
            created: now,
            finished: None,
            request: None,
            arrival: 0,
            armed: Time::NEVER,
            owed: None,
            key_frame: None,
        }
    }

    /// Whether the client has its answer.
    pub fn is_answered(&self) -> bool {
        self.request.is_none()
    }

    /// Whether audio and video of this session may enter its slot.
    pub fn is_live(&self) -> bool {
        self.finished.is_none()
    }

    /// Set-up deadline, watchdog and stall in one: called when it is let in, then at the deadline it named last.
    /// `output` is when its slot last put something out, whoever published then.
    pub(super) fn check(&mut self, now: Time, evidence: &Evidence, output: Option<Time>, limits: &Limits) -> Check {
        let Some(last) = evidence.last_media() else {
            let setup = self.created + limits.setup_timeout;
            // Media that begins and ends between two checks must not outlive the watchdog.
            let next = setup.min(now + limits.inactivity_timeout);
            return if now >= setup { Check::End(EndReason::SetupTimeout) } else { Check::Again(next) };
        };
        let inactive = last + limits.inactivity_timeout;
        if now >= inactive {
            return Check::End(EndReason::Inactive);
        }
        let output = output.filter(|output| *output >= self.created);
        // A slot that is silent because nothing comes in owes nothing.
        if output.is_some_and(|output| last <= output || self.owed.is_some_and(|owed| owed < output)) {
            self.owed = None;
        }
        if output.is_some_and(|output| last <= output) {
            return Check::Again(inactive.min(now + STALL / 2));
        }
        let owed = *self.owed.get_or_insert(now);
        if now < owed + STALL {
            return Check::Again(inactive.min(owed + STALL));
        }
        self.owed = Some(now);
        Check::Stalled(now.since(owed), inactive.min(now + STALL))
    }
}
