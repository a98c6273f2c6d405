//! How a channel stands, for whoever looks at it.

use serde::{Deserialize, Serialize};

use crate::input::{FeedId, Loss, SourceId};
use crate::time::Time;

/// Where a channel stands (spec: pull §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Nobody wants it.
    Off,
    /// Media is wanted and none comes: an origin is being opened, or is silent, or a pause is made.
    Seeking,
    /// Media flows.
    Live,
    /// Its origins came to their end; until when that is remembered.
    Ended,
}

/// What happened to a channel so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelCounts {
    /// How often an origin was asked.
    pub opens: u64,
    /// How often a connected origin fell silent.
    pub silences: u64,
    /// How often it went on from another connection.
    pub switches: u64,
    /// Sources that were lost, by [`Loss`] in the order of its `ALL`.
    pub lost: [u64; Loss::ALL.len()],
}

/// A channel as it stands.
#[derive(Clone, Copy, Debug)]
pub struct ChannelState<'c> {
    /// Where it stands.
    pub phase: Phase,
    /// Its feed.
    pub feed: FeedId,
    /// The origin whose media goes into the feed, or last did and is still connected: its place in the list.
    pub kept: Option<(SourceId, u32)>,
    /// The origin that is being tried: its place in the list.
    pub beside: Option<(SourceId, u32)>,
    /// When the next attempt is due, in a pause.
    pub next: Option<Time>,
    /// Whether the origin that is being tried waits for an account, or for its provider to have counted another connection out.
    pub waits: bool,
    /// Requests that are held for first media.
    pub held: usize,
    /// What became of the source that was lost last, and its place in the list.
    pub last_loss: Option<(u32, Loss)>,
    /// What happened so far.
    pub counts: &'c ChannelCounts,
}
