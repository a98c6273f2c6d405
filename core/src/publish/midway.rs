//! What has to be known of publishers to follow an edge from the middle of its run on?

use super::{EndpointState, Publish, Session};
use crate::input::{EndpointId, RequestId};
use crate::time::Time;

/// A POST that waits for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Which.
    pub request: RequestId,
    /// Where.
    pub endpoint: EndpointId,
    /// Counts POSTs as they arrive ([`Publish::arrivals`]).
    pub arrival: u64,
    /// Since when.
    pub since: Time,
}

impl Publish {
    /// The POSTs that wait for a slot, by endpoint and arrival.
    pub fn waits(&self) -> impl Iterator<Item = Waits> {
        self.waiting.values().filter_map(|id| self.waiters.get(*id)).map(|own| Waits {
            request: own.request,
            endpoint: own.endpoint,
            arrival: own.arrival,
            since: own.since,
        })
    }

    /// How many POSTs passed their checks so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Whether the program ends.
    pub fn is_draining(&self) -> bool {
        self.draining
    }
}

impl EndpointState<'_> {
    /// Which tenancy of each slot was its last, in order; 0: there was none.
    pub fn generations(self) -> impl Iterator<Item = u64> {
        self.publish.slots.generations(self.id.0)
    }
}

impl Session {
    /// The POST that has no answer yet.
    pub fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// The place of its POST among all ([`Publish::arrivals`]).
    pub fn arrival(&self) -> u64 {
        self.arrival
    }

    /// When a key frame was last asked of it.
    pub fn key_frame(&self) -> Option<Time> {
        self.key_frame
    }

    /// Since when its slot owes something, or when its chain was built anew since.
    pub fn owed(&self) -> Option<Time> {
        self.owed
    }
}
