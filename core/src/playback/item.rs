//! What can be played.

use serde::{Deserialize, Serialize};

use crate::input::FeedId;

/// What is played, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Item {
    /// A live feed as it comes: a playback is one socket, and two sockets are two playbacks.
    LiveTs(FeedId),
    /// A live feed in segments: a playback is everything that is asked for under one token.
    LiveHls(FeedId),
}

impl Item {
    /// The feed it is read from.
    pub fn feed(self) -> FeedId {
        match self {
            Item::LiveTs(feed) | Item::LiveHls(feed) => feed,
        }
    }

    /// The word for its kind in status, metrics and logs.
    pub fn kind(self) -> &'static str {
        match self {
            Item::LiveTs(_) => "live-ts",
            Item::LiveHls(_) => "live-hls",
        }
    }
}
