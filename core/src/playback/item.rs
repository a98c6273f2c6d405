//! What can be played, and what follows from that alone (spec: playback §2). Nothing else asks for an item's kind.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Playback;
use crate::input::{FeedId, TitleId};

/// What is played, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Item {
    /// A live feed as it comes: a playback is one socket, and two sockets are two playbacks.
    LiveTs(FeedId),
    /// A live feed in segments: a playback is everything that is asked for under one token.
    LiveHls(FeedId),
    /// A live stream of a provider's that comes in segments from there.
    Hls(TitleId),
    /// A live stream of a provider's to which players are sent.
    Dash(TitleId),
    /// A film.
    Vod(TitleId),
    /// An episode of a series.
    Series(TitleId),
    /// What a live stream was some time ago. It is named by the stream, whatever the time.
    Catchup(TitleId),
    /// A file of this machine.
    Local(TitleId),
}

/// What follows from an item's kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// Whether each socket is a playback of its own.
    pub socket_bound: bool,
    /// Whether each playlist with which it begins is a playback of its own; else a player has one of it, whatever it asks for.
    pub own_starts: bool,
    /// Whether it stays with the account with which it began.
    pub account: Binding,
    /// How long it is kept for its player after its last request, and its account with it.
    pub window: Duration,
    /// Whether media that is forwarded confirms its lease.
    pub confirmable: bool,
}

/// Whether a playback stays with an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// It has none of its own.
    None,
    /// It does while that can be had.
    Loose,
    /// It does, or ends.
    Firm,
}

/// What a playback is one of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Socket,
    /// A playlist with which it begins.
    Start,
    /// A player: an address and what it calls itself.
    Player,
}

impl Item {
    /// The one table.
    pub fn traits(self, settings: &Playback) -> Traits {
        let (hls, catchup) = (settings.hls_session_ttl, settings.catchup_session_ttl);
        let row = |own: Own, account, window, confirmable| {
            let (socket_bound, own_starts) = (own == Own::Socket, own == Own::Start);
            Traits { socket_bound, own_starts, account, window, confirmable }
        };
        match self {
            Item::LiveTs(_) => row(Own::Socket, Binding::None, Duration::ZERO, true),
            Item::LiveHls(_) => row(Own::Start, Binding::None, Duration::ZERO, true),
            Item::Hls(_) => row(Own::Start, Binding::Firm, hls, true),
            Item::Dash(_) => row(Own::Start, Binding::None, hls, false),
            Item::Vod(_) | Item::Series(_) => row(Own::Player, Binding::Loose, Duration::ZERO, true),
            Item::Catchup(_) => row(Own::Player, Binding::Firm, catchup, true),
            Item::Local(_) => row(Own::Player, Binding::None, Duration::ZERO, false),
        }
    }

    /// The feed it is read from, where it is a feed of ours.
    pub fn feed(self) -> Option<FeedId> {
        match self {
            Item::LiveTs(feed) | Item::LiveHls(feed) => Some(feed),
            _ => None,
        }
    }

    /// The title that it is, where it is no feed of ours.
    pub fn title(self) -> Option<TitleId> {
        match self {
            Item::LiveTs(_) | Item::LiveHls(_) => None,
            Item::Hls(title)
            | Item::Dash(title)
            | Item::Vod(title)
            | Item::Series(title)
            | Item::Catchup(title)
            | Item::Local(title) => Some(title),
        }
    }

    /// The word for its kind in status, metrics and logs.
    pub fn kind(self) -> &'static str {
        match self {
            Item::LiveTs(_) => "live-ts",
            Item::LiveHls(_) => "live-hls",
            Item::Hls(_) => "hls",
            Item::Dash(_) => "dash",
            Item::Vod(_) => "vod",
            Item::Series(_) => "series",
            Item::Catchup(_) => "catchup",
            Item::Local(_) => "local",
        }
    }
}
