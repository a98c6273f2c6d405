//! What is kept for each endpoint: the settings that decide, and what happened there so far.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Publish;
use super::session::Limits;
use super::takeover::Rule;
use crate::config::Endpoint;
use crate::input::{EndReason, EndpointId, FeedId, RefuseReason, SessionId};

/// One endpoint as it stands.
#[derive(Clone, Copy, Debug)]
pub struct EndpointState<'p> {
    pub(super) publish: &'p Publish,
    pub(super) id: EndpointId,
    /// What happened here so far.
    pub counts: &'p EndpointCounts,
}

impl<'p> EndpointState<'p> {
    /// The session in each slot, in order.
    pub fn holders(self) -> impl Iterator<Item = Option<SessionId>> + 'p {
        self.publish.slots.holders(self.id.0)
    }

    /// The feed of each slot, in order.
    pub fn feeds(self) -> &'p [FeedId] {
        &self.publish.feeds[self.publish.slots.range(self.id.0)]
    }

    /// How many POSTs wait for a slot.
    pub fn waiting(self) -> usize {
        self.publish.waiting_at(self.id).count()
    }
}

/// What happened at one endpoint so far.
///
/// Aligned, so that a POST that is refused, which is what a fleet of reconnecting publishers sends most, counts in one cache line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct EndpointCounts {
    /// POSTs that passed their checks.
    pub offers: u64,
    /// POSTs that were answered with 201.
    pub accepted: u64,
    /// POSTs that were refused, by [`RefuseReason`] in the order of its `ALL`.
    pub refused: [u64; RefuseReason::ALL.len()],
    /// Sessions that ended, by [`EndReason`] in the order of its `ALL`.
    pub ended: [u64; EndReason::ALL.len()],
}

/// The settings of an endpoint by which it is decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Settings {
    pub rule: Rule,
    pub takeover_wait: Duration,
    pub limits: Limits,
}

impl From<&Endpoint> for Settings {
    fn from(endpoint: &Endpoint) -> Self {
        let Endpoint { takeover, dead_after, poll, takeover_wait, inactivity_timeout, setup_timeout, .. } = *endpoint;
        // Without a pause between two looks there is no end to them.
        let poll = poll.max(Duration::from_millis(1));
        Settings {
            rule: Rule { takeover, dead_after, poll },
            takeover_wait,
            limits: Limits { inactivity_timeout, setup_timeout },
        }
    }
}

/// The settings of each endpoint. Most endpoints of an edge have the same: each set is kept once, where caches hold it.
#[derive(Debug, Default)]
pub(super) struct AllSettings {
    distinct: Vec<Settings>,
    /// Which of them, by endpoint.
    of: Vec<u32>,
}

impl AllSettings {
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut known = BTreeMap::new();
        let mut distinct = Vec::new();
        let mut place = |endpoint: &Endpoint| {
            let settings = Settings::from(endpoint);
            *known.entry(settings).or_insert_with(|| {
                distinct.push(settings);
                distinct.len() as u32 - 1
            })
        };
        let of = endpoints.iter().map(&mut place).collect();
        AllSettings { distinct, of }
    }

    /// The settings of an endpoint that is there.
    pub fn of(&self, endpoint: EndpointId) -> &Settings {
        &self.distinct[self.of[endpoint.0 as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Takeover;

    #[test]
    fn each_endpoint_has_its_own_settings_and_equal_ones_are_kept_once() {
        let refuse = Endpoint { takeover: Takeover::Refuse, ..Endpoint::default() };
        let patient = Endpoint { setup_timeout: Duration::from_secs(60), ..Endpoint::default() };
        let endpoints = [Endpoint::default(), refuse, Endpoint::default(), patient];
        let all = AllSettings::new(&endpoints);
        assert_eq!(all.distinct.len(), 3);
        for (index, endpoint) in endpoints.iter().enumerate() {
            assert_eq!(*all.of(EndpointId(index as u32)), Settings::from(endpoint));
        }
    }
}
