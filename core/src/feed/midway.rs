//! What has to be known of feeds to follow an edge from the middle of its run on?

use super::{Feeds, Place};
use crate::input::{FeedId, RequestId, ViewerId};
use crate::time::Time;

/// A viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watching {
    /// Which.
    pub viewer: ViewerId,
    /// What.
    pub feed: FeedId,
    /// Since when.
    pub joined: Time,
    /// How.
    pub reads: Reads,
}

/// How a viewer reads its feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// It waits for a point to start at.
    Not,
    /// In one piece.
    On {
        /// Up to which offset it was sent everything.
        cursor: u64,
        /// Since when it is known to stand there, with something unsent.
        stands: Option<Time>,
    },
    /// It polls.
    Polls {
        /// When it last asked for something.
        asked: Time,
    },
}

impl Feeds {
    /// All viewers.
    pub fn watching(&self) -> impl Iterator<Item = Watching> {
        self.viewers.iter().map(|(viewer, row)| {
            let reads = match row.place {
                Place::Waiting { .. } => Reads::Not,
                Place::Started { cursor, .. } => {
                    let stands = row.stands.filter(|(at, _)| *at == cursor).map(|(_, since)| since);
                    Reads::On { cursor, stands }
                }
                Place::Polling(poll) => Reads::Polls { asked: poll.asked },
            };
            Watching { viewer, feed: row.feed, joined: row.joined, reads }
        })
    }

    /// Requests for playlists that have no segment yet: whose, and when each is given up.
    pub fn asks(&self) -> impl Iterator<Item = (RequestId, ViewerId, Time)> {
        self.holds.all()
    }

    /// Where each chunk of a feed begins, and how many bytes it has, oldest first.
    pub fn chunks(&self, id: FeedId) -> impl Iterator<Item = (u64, u64)> {
        self.feeds.get(id).into_iter().flat_map(|feed| feed.ring.chunks())
    }

    /// The newest random access point that is kept: its offset, and when it came.
    pub fn random_access(&self, id: FeedId) -> Option<(u64, Time)> {
        let point = self.feeds.get(id)?.ring.random_access()?;
        Some((point.at, point.came))
    }
}
