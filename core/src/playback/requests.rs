//! What became of the requests of a title's playback, and of its account.

use alloc::vec::Vec;

use super::activation::Claim;
use super::title::{Running, Title};
use super::{Binding, Playbacks};
use crate::account::{Blame, Holder, Told, Why};
use crate::input::{AccountId, Failure, Note, Output, PlaybackId, RefuseReason, RequestId, ViewerEnd, Want};
use crate::publish::Context;

impl Playbacks {
    /// The client of an unanswered request went away. Others may have heard of it, too.
    pub(crate) fn hangup(&mut self, cx: &mut Context<'_>, request: RequestId) {
        if self.probes.contains_key(&request) {
            return self.looked(cx, request);
        }
        let Some(id) = self.requests.get(&request).copied() else { return };
        if self.playbacks.get(id).is_some_and(|playback| playback.title.is_some()) {
            self.over(cx, id, request, ViewerEnd::Left);
        } else {
            self.end(cx, id, ViewerEnd::Left);
        }
    }

    /// Media of a title came through to a client.
    pub(crate) fn forwarded(&mut self, cx: &mut Context<'_>, request: RequestId) {
        if self.probes.contains_key(&request) {
            return;
        }
        let Some((id, running)) = self.running(request) else {
            self.stale += 1;
            return;
        };
        (running.stalled, running.forwarded) = (false, true);
        let (detached, want, late) = (running.detached, running.piece.want, running.piece.late.take());
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        if let (Claim::Open(grant), Some(late), false) = (playback.holds.claim, late, detached) {
            cx.accounts.learn(cx.now, cx.out, grant.allocation, late);
        }
        if want == Want::Setup {
            return;
        }
        if let (Claim::Open(grant), Some(title)) = (playback.holds.claim, &mut playback.title)
            && playback.viewing.item.traits(&self.settings).confirmable
            && !detached
        {
            title.bound = true;
            cx.accounts.confirm(cx.now, grant.allocation);
        }
        if !playback.state.is_seen() {
            self.seen(cx, id);
        }
    }

    /// A provider did not give what a request is for: another account is asked, or its client is told.
    pub(crate) fn failed(&mut self, cx: &mut Context<'_>, request: RequestId, failure: Failure) {
        if self.probes.contains_key(&request) {
            return self.look_failed(cx, request, failure);
        }
        let Some((id, _)) = self.running(request) else {
            self.stale += 1;
            return;
        };
        self.fail(cx, id, request, failure);
    }

    fn fail(&mut self, cx: &mut Context<'_>, id: PlaybackId, request: RequestId, failure: Failure) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let viewing = playback.viewing;
        let firm = viewing.item.traits(&self.settings).account == Binding::Firm;
        let (claim, Some(title)) = (playback.holds.claim, &mut playback.title) else { return };
        let Some(Running { mut piece, detached, .. }) = title.take(request) else { return };
        let (Claim::Open(grant), false) = (claim, detached) else {
            playback.last = ViewerEnd::Failed;
            self.requests.remove(&request);
            self.deny(cx, request, &viewing, RefuseReason::ProviderFailed);
            return self.serve(cx, id);
        };
        if failure.refusal().is_some_and(|refusal| refusal.may_be_a_limit())
            && let Some(late) = cx.accounts.late(cx.now, grant.allocation, piece.late)
        {
            piece.late = Some(late);
            title.waiting.push_front(piece);
            self.give_up(cx, id);
            return self.serve(cx, id);
        }
        let bound = piece.at.account.is_some() || (firm && title.bound);
        let again = failure.fails_over() && !bound;
        // What a playlist names says nothing of the rest, and an answer that is of no use is one to this very request.
        let whole = piece.at.account.is_none() && failure != Failure::Unusable;
        if again {
            // What it had there is over; another account may have it.
            title.account = None;
            piece.tried.extend(spent(cx, grant.account, failure));
            title.waiting.push_front(piece);
        } else {
            playback.last = ViewerEnd::Failed;
            self.requests.remove(&request);
        }
        cx.out.push_back(Output::Note(Note::AccountFailed { account: grant.account, failure }));
        cx.accounts.failed(cx.now, cx.out, grant.allocation, failure.into());
        self.give_up(cx, id);
        if !again {
            if whole {
                self.remember_failure(cx.now, &viewing);
            }
            self.deny(cx, request, &viewing, RefuseReason::ProviderFailed);
        }
        self.serve(cx, id);
    }

    /// The response to a request for a title is over.
    pub(crate) fn finished(&mut self, cx: &mut Context<'_>, request: RequestId, reason: ViewerEnd) {
        if self.probes.contains_key(&request) {
            return self.looked(cx, request);
        }
        match self.requests.get(&request).copied() {
            Some(id) if self.playbacks.get(id).is_some_and(|playback| playback.title.is_some()) => {
                self.over(cx, id, request, reason);
            }
            _ => self.stale += 1,
        }
    }

    /// A request of a playback is over, whether it waited or its response flowed; only what it has itself goes with it.
    fn over(&mut self, cx: &mut Context<'_>, id: PlaybackId, request: RequestId, reason: ViewerEnd) {
        self.requests.remove(&request);
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        playback.last = reason;
        let Some(title) = &mut playback.title else { return };
        if let Some(running) = title.take(request) {
            if let (Claim::Open(grant), false) = (playback.holds.claim, running.detached) {
                if reason == ViewerEnd::Failed {
                    cx.accounts.failed(cx.now, cx.out, grant.allocation, Blame::Connection);
                }
                self.give_up(cx, id);
            }
        } else {
            title.waiting.retain(|piece| piece.request != request);
        }
        self.advance(cx, id);
    }

    /// The client of a request takes nothing.
    pub(crate) fn stalled(&mut self, cx: &mut Context<'_>, request: RequestId) {
        if let Some((id, running)) = self.running(request) {
            running.stalled = true;
            self.serve(cx, id);
        } else if !self.probes.contains_key(&request) {
            self.stale += 1;
        }
    }

    /// Those that waited too long for others of their playback are told so.
    pub(super) fn overdue(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let now = cx.now;
        let late = |title: &Title| title.waiting.iter().position(|piece| piece.until <= now);
        while let Some(title) = self.playbacks.get(id).and_then(|playback| playback.title.as_ref())
            && let Some(place) = late(title)
        {
            self.answer(cx, id, place, RefuseReason::Busy);
        }
        self.advance(cx, id);
        if let Some(title) = self.playbacks.get_mut(id).and_then(|playback| playback.title.as_mut()) {
            // Where nothing can be fetched yet for another reason: what is over must not be due for ever.
            title.pause = title.pause.filter(|until| *until > now);
        }
    }

    /// The account room says something of a playback or a probe.
    pub(crate) fn told(&mut self, cx: &mut Context<'_>, told: Told) {
        let id = match told.holder() {
            Holder::Playback(id) => id,
            Holder::Probe(request) => return self.look_told(cx, request, told),
            Holder::Source(_) => return,
        };
        match told {
            Told::Granted { grant, index, .. } => self.granted(cx, id, grant, index),
            Told::Exhausted { .. } => self.in_vain(cx, id),
            Told::GiveUp { why: Why::Preempted, .. } => {
                self.keep_out(cx.now, id);
                self.throw_out(cx, id, RefuseReason::Preempted, ViewerEnd::Preempted);
            }
            Told::GiveUp { why, .. } => {
                let reason = if why == Why::Idle { ViewerEnd::Failed } else { ViewerEnd::GraceOver };
                self.throw_out(cx, id, RefuseReason::ProviderLimit, reason);
            }
            Told::Expired { .. } => self.expired(cx, id),
        }
    }

    /// Its lease ran out. Where it waits for media that a viewer is to see, that took too long; whatever else it does may go on.
    fn expired(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get(id) else { return };
        let Some(title) = &playback.title else { return };
        let mut connected = title.running.iter().filter(|running| !running.detached && !running.piece.is_local());
        let silent = connected.find(|running| !running.forwarded && running.piece.want != Want::Setup);
        if let Some(request) = silent.map(|running| running.piece.request) {
            self.fail(cx, id, request, Failure::TimedOut);
        }
    }

    fn running(&mut self, request: RequestId) -> Option<(PlaybackId, &mut Running)> {
        let id = *self.requests.get(&request)?;
        let title = self.playbacks.get_mut(id)?.title.as_mut()?;
        Some((id, title.running.iter_mut().find(|running| running.piece.request == request)?))
    }
}

/// The accounts with which the same need not be asked for after one failed so.
pub(super) fn spent(cx: &Context<'_>, account: AccountId, failure: Failure) -> Vec<AccountId> {
    match cx.accounts.account(account) {
        Some(own) if failure.is_of_provider() => {
            let all = cx.accounts.accounts().filter(|other| other.provider == own.provider);
            all.map(|other| other.account).collect()
        }
        _ => Vec::from([account]),
    }
}

impl Title {
    /// Takes out one whose response flowed.
    fn take(&mut self, request: RequestId) -> Option<Running> {
        let place = self.running.iter().position(|running| running.piece.request == request)?;
        Some(self.running.remove(place))
    }
}
