//! How the playback of a title comes to an account, and what when it does not (spec: playback §4, §5).

use super::activation::{Claim, never_opened};
use super::setup::Admission;
use super::{Binding, Playbacks, State};
use crate::account::{Acquired, Grace, Holder, Patience, Pin, Wish};
use crate::config::Strategy;
use crate::input::{Grant, PlaybackId, RefuseReason, TitleId, UserId, ViewerEnd, Viewing};
use crate::publish::Context;
use crate::time::Time;

/// Where a playback looks for an account while its last connection is being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Where that is, as long as it can be had there.
    Same,
    Any,
}

/// What became of a wish for an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wished {
    /// It came true, or waits.
    Made,
    /// It is made again when all that happened was heard.
    Later,
    Vain,
}

impl Playbacks {
    /// Wishes for an account.
    pub(super) fn wish(&mut self, cx: &mut Context<'_>, id: PlaybackId, place: usize, reach: Reach) -> Wished {
        let Some(playback) = self.playbacks.get(id) else { return Wished::Later };
        let Some(title) = &playback.title else { return Wished::Later };
        let Viewing { user, item, .. } = playback.viewing;
        let traits = item.traits(&self.settings);
        let piece = &title.waiting[place];
        // Its own slot is about to be free: it goes nowhere else while it can have that.
        let stays = reach == Reach::Same && playback.holds.closing.is_some() && piece.tried.is_empty();
        let pin = match (piece.at.account, title.account, traits.account) {
            (Some(account), ..) => Pin::Firm(account),
            (None, Some(account), Binding::Firm) if title.bound || stays => Pin::Firm(account),
            (None, Some(account), Binding::Loose) if stays => Pin::Firm(account),
            (None, Some(account), Binding::Firm | Binding::Loose) => Pin::Loose(account),
            _ => Pin::None,
        };
        let (at, tried) = (piece.at.clone(), piece.tried.clone());
        let mut patience = self.patience(cx.now, user);
        let crowded = tried.is_empty() && self.is_crowded(id);
        let mut wish = Wish {
            holder: Holder::Playback(id),
            providers: &at.providers,
            avoid: &tried,
            title: item.title().unwrap_or(TitleId(0)),
            viewing: Some(playback.viewing),
            feed: None,
            strength: self.strength(user, playback.holds.place),
            pin,
            window: traits.window,
            patience: match (crowded, title.refusal) {
                (false, _) => patience,
                (true, None) => Patience::AtHand(patience.until(cx.now)),
                // It has waited for that.
                (true, Some(_)) => Patience::None,
            },
        };
        let mut acquired = cx.accounts.acquire(cx.now, cx.out, wish);
        let mut refusal = (crowded && acquired == Acquired::Waiting).then_some(RefuseReason::UserLimit);
        if acquired == Acquired::Exhausted && stays {
            return self.wish(cx, id, place, Reach::Any);
        } else if acquired == Acquired::Exhausted && crowded {
            match self.make_room(cx, id, &wish) {
                Admission::Evicted => {
                    // Whoever was ended for it has to be heard of first by those whose accounts that frees.
                    self.ready.push_back(id);
                    return Wished::Later;
                }
                Admission::Allowed => {}
                Admission::Graced => {
                    // Whether it may play is not said yet: nobody gives way to it before.
                    patience = Patience::Meek(cx.now + self.settings.grace);
                    refusal = Some(RefuseReason::UserLimit);
                }
                Admission::Refused(reason) => (patience, refusal) = (Patience::None, Some(reason)),
            }
            wish.patience = patience;
            acquired = cx.accounts.acquire(cx.now, cx.out, wish);
        }
        let Some(playback) = self.playbacks.get_mut(id) else { return Wished::Later };
        let Some(title) = &mut playback.title else { return Wished::Later };
        (title.wished, title.refusal) = (Some(at), refusal);
        match acquired {
            Acquired::Granted { grant, index } => playback.holds.claim = Claim::Granted(grant, index),
            Acquired::Waiting => {
                playback.holds.claim = Claim::Wished;
                if playback.state == State::Prepared {
                    self.transition(id, State::PendingProvider(patience.until(cx.now)));
                }
            }
            Acquired::Exhausted => {
                title.wished = None;
                return Wished::Vain;
            }
        }
        Wished::Made
    }

    /// How long somebody waits for an account: as long as the configured grace lasts; without one, only for what gives way or is
    /// being closed anyway.
    fn patience(&self, now: Time, user: UserId) -> Patience {
        let grace = self.settings.strategies.iter().find_map(|strategy| match strategy {
            Strategy::GraceHold => Some(Grace::Hold),
            Strategy::GraceInstant => Some(Grace::Instant),
            _ => None,
        });
        match grace.filter(|_| self.is_gracious(now, user)) {
            Some(grace) => Patience::Until(now + self.settings.grace, grace),
            None => Patience::Until(now, Grace::Hold),
        }
    }

    /// A wish came true.
    pub(super) fn granted(&mut self, cx: &mut Context<'_>, id: PlaybackId, grant: Grant, index: u32) {
        match self.playbacks.get_mut(id).filter(|playback| playback.holds.claim == Claim::Wished) {
            Some(playback) => {
                playback.holds.claim = Claim::Granted(grant, index);
                self.serve(cx, id);
            }
            None => {
                self.stale += 1;
                never_opened(cx, grant);
            }
        }
    }

    /// A wish did not come true in its time.
    pub(super) fn in_vain(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get(id).filter(|own| own.holds.claim == Claim::Wished) else { return };
        let user = playback.viewing.user;
        let undecided = playback.title.as_ref().is_some_and(|title| title.refusal.is_some());
        self.cool_down(cx.now, user);
        if undecided {
            // Whether its user may play it was not said yet.
            self.wish_no_more(id);
        } else {
            self.exhausted(cx, id);
        }
        self.serve(cx, id);
    }

    pub(super) fn wish_no_more(&mut self, id: PlaybackId) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        playback.holds.claim = Claim::None;
        if matches!(playback.state, State::PendingProvider(_)) {
            self.transition(id, State::Prepared);
        }
    }

    /// No account is to be had for those that could be fetched now. That never leads to somebody else's place.
    pub(super) fn exhausted(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        self.wish_no_more(id);
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        playback.last = ViewerEnd::Failed;
        let (placed, viewing) = (playback.holds.place.is_some(), playback.viewing);
        while let Some(title) = self.playbacks.get_mut(id).and_then(|playback| playback.title.as_mut())
            && let Some(place) = title.next(placed)
        {
            title.wished = None;
            // One that was asked for and failed is not refused for want of an account.
            let piece = &title.waiting[place];
            let refusal = title.refusal.unwrap_or_else(|| cx.accounts.lack(&piece.at.providers));
            let (failed, whole) = (!piece.tried.is_empty(), piece.at.account.is_none());
            let reason = if failed { RefuseReason::ProviderFailed } else { refusal };
            if failed && whole {
                self.remember_failure(cx.now, &viewing);
            }
            self.answer(cx, id, place, reason);
        }
    }
}
