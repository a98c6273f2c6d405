//! What a playback holds, and how it gives all of it back (spec: playback §3).

use core::mem;

use serde::{Deserialize, Serialize};

use super::{Place, Playbacks, Player};
use crate::account::Holder;
use crate::cleanup::Permit;
use crate::input::{AllocationId, Grant, Output, PlaybackId};
use crate::publish::Context;

/// Everything that a playback or a probe holds: one value, so that it is given back in one place, whatever it ended in the middle of.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Activation {
    pub permit: Option<Permit>,
    pub place: Option<Place>,
    pub claim: Claim,
    /// Its last connection to a provider, which is still being closed: the next one is opened behind that, whatever the account bears.
    pub closing: Option<AllocationId>,
}

/// How far a playback has come with an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Claim {
    #[default]
    None,
    /// It wishes for one.
    Wished,
    /// It may open a connection, and has not yet.
    Granted(Grant, u32),
    /// It has one.
    Open(Grant),
}

impl Activation {
    pub fn account(&self) -> Option<Grant> {
        match self.claim {
            Claim::None | Claim::Wished => None,
            Claim::Granted(grant, _) | Claim::Open(grant) => Some(grant),
        }
    }
}

/// Whose connection is being closed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Closing {
    /// Of a playback that goes on.
    Playback(PlaybackId),
    /// Of one that is over: its permit is held until nothing is left of it. Its player's next playback waits for that, too.
    Over(Option<Permit>, Option<Player>),
}

/// What becomes of a lease whose playback ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// It ended in order: its player gets the same account first when it comes back.
    Friends,
    /// It was ended, or its account failed it.
    Ended,
}

impl Playbacks {
    /// The connection, or the wish for one, is needed no more; the lease is another matter.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        give_up(cx, Holder::Playback(id), &mut playback.holds);
        if let Some(allocation) = playback.holds.closing {
            self.closings.insert(allocation, Closing::Playback(id));
        }
    }

    /// Gives back everything: the wish or the connection, the lease, the place, and the permit once the connection is closed.
    pub(super) fn release(&mut self, cx: &mut Context<'_>, of: Released, mut holds: Activation) {
        let Released { holder, player, parting, leaving } = of;
        give_up(cx, holder, &mut holds);
        match parting {
            Parting::Friends => cx.accounts.rest(cx.now, cx.out, holder),
            Parting::Ended => {}
        }
        cx.accounts.end(cx.now, cx.out, holder);
        if let Some(place) = holds.place {
            self.users[player.user.0 as usize].release(place);
        }
        if let Some(allocation) = holds.closing {
            let player = leaving.then(|| {
                self.leaving.insert(player, allocation);
                player
            });
            self.closings.insert(allocation, Closing::Over(holds.permit, player));
        } else if let Some(permit) = holds.permit {
            self.permits.give_back(permit);
        }
    }

    /// A connection to a provider is closed. `holder` is who had it until now.
    pub(crate) fn closed(&mut self, cx: &mut Context<'_>, allocation: AllocationId, holder: Option<Holder>) {
        self.closes += 1;
        match self.closings.remove(&allocation) {
            Some(Closing::Playback(id)) => {
                if let Some(playback) = self.playbacks.get_mut(id) {
                    playback.holds.closing = None;
                    self.serve(cx, id);
                }
            }
            Some(Closing::Over(permit, player)) => {
                if let Some(player) = player {
                    self.leaving.remove(&player);
                }
                if let Some(permit) = permit {
                    self.permits.give_back(permit);
                }
            }
            None => {
                if let Some(Holder::Playback(id)) = holder {
                    self.detach(cx, id, allocation);
                }
            }
        }
    }

    /// The provider sent all there was: what is left of the response flows without it, and others need not wait for that.
    fn detach(&mut self, cx: &mut Context<'_>, id: PlaybackId, allocation: AllocationId) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let (Claim::Open(grant), Some(title)) = (playback.holds.claim, &mut playback.title) else { return };
        if grant.allocation == allocation {
            playback.holds.claim = Claim::None;
            title.running.iter_mut().for_each(|running| running.detached = true);
            self.serve(cx, id);
        }
    }

    /// A new playback of a player whose last one is over waits for that one's connection to be closed.
    pub(super) fn inherit(&mut self, id: PlaybackId, player: &Player) {
        let Some(allocation) = self.leaving.remove(player) else { return };
        if let Some(Closing::Over(Some(permit), _)) = self.closings.insert(allocation, Closing::Playback(id)) {
            self.permits.give_back(permit);
        }
        if let Some(playback) = self.playbacks.get_mut(id) {
            playback.holds.closing = Some(allocation);
        }
    }
}

/// Whose everything is given back.
pub(super) struct Released {
    pub holder: Holder,
    pub player: Player,
    pub parting: Parting,
    /// Whether a later playback of the same player goes on where this one ended.
    pub leaving: bool,
}

fn give_up(cx: &mut Context<'_>, holder: Holder, holds: &mut Activation) {
    match mem::take(&mut holds.claim) {
        Claim::None => {}
        Claim::Wished => cx.accounts.withdraw(holder),
        Claim::Granted(grant, _) => never_opened(cx, grant),
        Claim::Open(Grant { allocation, .. }) => {
            cx.out.push_back(Output::Drop { allocation });
            cx.accounts.release(cx.now, allocation);
            holds.closing = Some(allocation);
        }
    }
}

/// Gives back what was granted and never used: there is no connection that somebody could close.
pub(super) fn never_opened(cx: &mut Context<'_>, Grant { allocation, .. }: Grant) {
    cx.accounts.unopened(cx.now, allocation);
    cx.accounts.release(cx.now, allocation);
    cx.accounts.closed(cx.now, cx.out, allocation);
}
