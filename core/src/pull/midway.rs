//! What has to be known of channels to follow an edge from the middle of its run on?

use alloc::vec::Vec;

use super::Pull;
use super::access::Access;
use super::channel::Upstream;
use crate::input::{AllocationId, ChannelId, RequestId, SourceId};
use crate::time::Time;

/// A connection to an origin that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Which.
    pub source: SourceId,
    /// The place of its origin in the list.
    pub index: u32,
    /// With which account, where it takes one.
    pub allocation: Option<AllocationId>,
    /// When its origin agreed to send.
    pub agreed: Option<Time>,
    /// When media first came, since it was last missing.
    pub since: Option<Time>,
    /// When media last came that did not go into the feed.
    pub last: Option<Time>,
    /// Whether its media ever went into the feed.
    pub wrote: bool,
}

/// A channel beyond its [`state`](super::ChannelState).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// The connection whose media goes into the feed, or last did.
    pub kept: Option<Connected>,
    /// The one that may take over.
    pub beside: Option<Connected>,
    /// When each origin was last asked.
    pub opened: Vec<Option<Time>>,
    /// When somebody was last held in vain.
    pub asked: Time,
    /// Until when an origin that ended in order may begin again.
    pub grace: Option<Time>,
}

impl Pull {
    /// What a channel has gone through.
    pub fn course(&self, channel: ChannelId) -> Option<Course> {
        let own = self.channel(channel)?;
        let connected = |upstream: Option<Upstream>| upstream.and_then(|upstream| upstream.connected());
        Some(Course {
            kept: connected(own.kept),
            beside: connected(own.beside),
            opened: own.round.opened().to_vec(),
            asked: own.asked,
            grace: own.grace(),
        })
    }

    /// Whoever is held for first media: of which channel, and until when.
    pub fn claims(&self) -> impl Iterator<Item = (RequestId, ChannelId, Time)> {
        self.claims.iter().map(|(request, (channel, until))| (*request, *channel, *until))
    }
}

impl Upstream {
    /// `None` while it waits for an account: nothing was asked for yet.
    fn connected(&self) -> Option<Connected> {
        let allocation = match self.access {
            Access::Waits | Access::Rests(..) => return None,
            Access::Free => None,
            Access::Granted(allocation, _) => Some(allocation),
        };
        let Upstream { source, index, agreed, since, last, wrote, .. } = *self;
        Some(Connected { source, index: index as u32, allocation, agreed, since, last, wrote })
    }
}
