//! What has to be known of playbacks to follow an edge from the middle of its run on?

use alloc::vec::Vec;

use super::activation::Claim;
use super::title::{Piece, Title};
use super::{Playback, Playbacks, Player};
use crate::input::{AccountId, AllocationId, Ask, Client, PlaybackId, RefuseReason, RequestId, Token, UserId};
use crate::playback::Item;
use crate::time::Time;

/// A request for a title that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which.
    pub request: RequestId,
    /// For what.
    pub ask: Ask,
    /// Accounts that failed it.
    pub tried: Vec<AccountId>,
    /// Whether it was refused, and is made again since its provider may count late.
    pub late: bool,
    /// Until when it waits for those before it; `None` where nobody knows.
    pub until: Option<Time>,
    /// How far it has come.
    pub stage: Fetched,
}

/// How far a request for a title has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It waits for its turn.
    Not,
    /// It was told to be fetched.
    Yes {
        /// Over which connection; `None`: over none that is counted, or that is closed already.
        allocation: Option<AllocationId>,
        /// Whether media of it came through.
        forwarded: bool,
        /// Whether its client takes nothing.
        stalled: bool,
    },
}

/// One player, as far as it can be told from others.
pub type Who = (UserId, Client, Item);

/// A user beyond its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Playbacks that wait for a place, in the order in which they came.
    pub held: Vec<PlaybackId>,
    /// No grace is given before.
    pub cooldown: Option<Time>,
    /// Counts places that became free.
    pub freed: u64,
}

impl Playback {
    /// Its unanswered request, where it watches a feed.
    pub fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// Counts playbacks as they come.
    pub fn arrival(&self) -> u64 {
        self.arrival
    }

    /// Until when it has a place that is not there.
    pub fn grace(&self) -> Time {
        self.grace
    }

    /// Whether it is of a title, and not of a feed.
    pub fn is_of_title(&self) -> bool {
        self.title.is_some()
    }

    /// What it is known by.
    pub fn token(&self) -> Option<Token> {
        self.title.as_ref()?.token
    }

    /// Whether media came through from its account.
    pub fn is_bound(&self) -> bool {
        self.title.as_ref().is_some_and(|title| title.bound)
    }

    /// Its requests for a title, those that are fetched first.
    pub fn asked_for(&self) -> Vec<Asked> {
        let Some(title) = &self.title else { return Vec::new() };
        let open = match self.holds.claim {
            Claim::Open(grant) => Some(grant.allocation),
            Claim::None | Claim::Wished | Claim::Granted(..) => None,
        };
        let running = title.running.iter().map(|row| {
            let allocation = open.filter(|_| !row.detached && !row.piece.is_local());
            let stage = Fetched::Yes { allocation, forwarded: row.forwarded, stalled: row.stalled };
            self.asked_as(title, &row.piece, stage)
        });
        running.chain(title.waiting.iter().map(|piece| self.asked_as(title, piece, Fetched::Not))).collect()
    }

    fn asked_as(&self, title: &Title, piece: &Piece, stage: Fetched) -> Asked {
        let (viewing, token) = (self.viewing, title.token);
        let ask =
            Ask { viewing, want: piece.want, token, account: piece.at.account, providers: piece.at.providers.to_vec() };
        Asked {
            request: piece.request,
            ask,
            tried: piece.tried.clone(),
            late: piece.late.is_some(),
            until: Some(piece.until),
            stage,
        }
    }
}

impl Playbacks {
    /// A user beyond its places.
    pub fn standing(&self, user: UserId) -> Option<Standing> {
        let own = self.users.get(user.0 as usize)?;
        let held = own.held.iter().map(|(_, id)| *id).collect();
        Some(Standing { held, cooldown: own.cooldown, freed: own.freed })
    }

    /// How many playbacks there have been.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Playbacks that wait for a permit, in the order in which they came.
    pub fn queue(&self) -> impl Iterator<Item = PlaybackId> {
        self.permits.queue()
    }

    /// Requests that only look.
    pub fn looks(&self) -> impl Iterator<Item = Asked> {
        self.probes.iter().map(|(request, probe)| probe.asked(*request))
    }

    /// What a player was refused for, how much had become free by then, and until when that is remembered.
    pub fn refusals(&self) -> impl Iterator<Item = (Who, RefuseReason, u64, Time)> {
        self.refusals.iter().map(|(player, until, (reason, freed))| (player.who(), *reason, *freed, until))
    }

    /// For whom providers were asked in vain, and until when that counts.
    pub fn vain(&self) -> impl Iterator<Item = (Who, Time)> {
        self.vain.iter().map(|(player, until, _)| (player.who(), until))
    }

    /// Whose title no provider gave, and until when that is remembered.
    pub fn failures(&self) -> impl Iterator<Item = (Who, Time)> {
        self.failures.iter().map(|(player, until, ())| (player.who(), until))
    }

    /// Who evicted whom, and until when it may not again.
    pub fn guards(&self) -> impl Iterator<Item = (Who, Who, Time)> {
        self.guards.iter().map(|((by, target), until, ())| (by.who(), target.who(), until))
    }

    /// Who may not come back, and until when.
    pub fn blocks(&self) -> impl Iterator<Item = (Who, Time)> {
        self.blocks.iter().map(|(player, until, ())| (player.who(), until))
    }

    /// Who gave way, and until when it may not come back.
    pub fn preempted(&self) -> impl Iterator<Item = (Who, Time)> {
        self.preempted.iter().map(|(player, until, ())| (player.who(), until))
    }

    /// What playbacks were known by that were ended for good, and until when that is remembered.
    pub fn ended(&self) -> impl Iterator<Item = (Token, Time)> {
        self.ended.iter().map(|(token, until, ())| (*token, until))
    }
}

impl Player {
    fn who(&self) -> Who {
        let Player { user, client, item } = *self;
        (user, client, item)
    }
}
