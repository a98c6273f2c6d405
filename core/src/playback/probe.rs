//! A request that only looks: nobody is counted for it, and it gives way to everybody (spec: playback §4, background work).

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::activation::{Activation, Claim, Parting, Released, never_opened};
use super::requests::spent;
use super::{Asked, Fetched, Playbacks, Player, player};
use crate::account::{Acquired, Holder, Patience, Pin, Strength, Told, Wish};
use crate::input::{AccountId, Ask, Failure, Note, Output, RefuseReason, RequestId, TitleId, ViewerEnd, Viewing};
use crate::publish::Context;

/// One that looks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Probe {
    ask: Ask,
    tried: Vec<AccountId>,
    holds: Activation,
}

impl Probe {
    pub fn player(&self) -> Player {
        player(&self.ask.viewing)
    }

    fn viewing(&self) -> Viewing {
        self.ask.viewing
    }

    /// As whoever begins to follow it in the middle sees it: it is fetched as soon as it is asked for.
    pub fn asked(&self, request: RequestId) -> Asked {
        let allocation = self.holds.account().map(|grant| grant.allocation);
        let stage = Fetched::Yes { allocation, forwarded: false, stalled: false };
        Asked { request, ask: self.ask.clone(), tried: self.tried.clone(), late: false, until: None, stage }
    }
}

impl Playbacks {
    /// Somebody wants to know what there is.
    pub(super) fn look(&mut self, cx: &mut Context<'_>, request: RequestId, ask: Ask) {
        let viewing = ask.viewing;
        let Some(permit) = self.permits.take() else {
            return self.deny(cx, request, &viewing, RefuseReason::Busy);
        };
        let holds = Activation { permit: Some(permit), ..Activation::default() };
        self.probes.insert(request, Probe { ask, tried: Vec::new(), holds });
        self.try_look(cx, request);
    }

    fn try_look(&mut self, cx: &mut Context<'_>, request: RequestId) {
        let Some(probe) = self.probes.get_mut(&request) else { return };
        if probe.ask.providers.is_empty() {
            let (playback, token, grant) = (None, None, None);
            return cx.out.push_back(Output::Fetch { request, playback, token, index: 0, grant });
        }
        let wish = Wish {
            holder: Holder::Probe(request),
            providers: &probe.ask.providers,
            avoid: &probe.tried,
            title: probe.ask.viewing.item.title().unwrap_or(TitleId(0)),
            viewing: None,
            feed: None,
            strength: Strength::PROBE,
            pin: probe.ask.account.map_or(Pin::None, Pin::Firm),
            window: Duration::ZERO,
            patience: Patience::None,
        };
        match cx.accounts.acquire(cx.now, cx.out, wish) {
            Acquired::Granted { grant, index } => {
                probe.holds.claim = Claim::Open(grant);
                let (playback, token, asker) = (None, None, probe.player());
                self.asks(cx.now, asker);
                cx.out.push_back(Output::Fetch { request, playback, token, index, grant: Some(grant) });
            }
            Acquired::Waiting | Acquired::Exhausted => {
                let failed = !probe.tried.is_empty();
                let lack = cx.accounts.lack(&probe.ask.providers);
                let reason = if failed { RefuseReason::ProviderFailed } else { lack };
                let viewing = probe.viewing();
                self.looked(cx, request);
                self.deny(cx, request, &viewing, reason);
            }
        }
    }

    /// It has looked, or looks no longer.
    pub(super) fn looked(&mut self, cx: &mut Context<'_>, request: RequestId) {
        let Some(probe) = self.probes.remove(&request) else { return };
        let (holder, player) = (Holder::Probe(request), probe.player());
        let parting = Parting::Ended;
        self.release(cx, Released { holder, player, parting, leaving: false }, probe.holds);
    }

    /// A provider did not say what there is.
    pub(super) fn look_failed(&mut self, cx: &mut Context<'_>, request: RequestId, failure: Failure) {
        let Some(mut probe) = self.probes.remove(&request) else { return };
        let viewing = probe.viewing();
        let grant = probe.holds.account();
        if let Some(grant) = grant {
            cx.out.push_back(Output::Note(Note::AccountFailed { account: grant.account, failure }));
            cx.accounts.failed(cx.now, cx.out, grant.allocation, failure.into());
            probe.tried.extend(spent(cx, grant.account, failure));
        }
        let again = grant.is_some() && failure.fails_over() && probe.ask.account.is_none();
        let (ask, tried, player) = (probe.ask.clone(), core::mem::take(&mut probe.tried), probe.player());
        let released = Released { holder: Holder::Probe(request), player, parting: Parting::Ended, leaving: false };
        self.release(cx, released, probe.holds);
        // The permit of the first connection stays with it until that is closed; the second one takes its own.
        match again.then(|| self.permits.take()).flatten() {
            Some(permit) => {
                let holds = Activation { permit: Some(permit), ..Activation::default() };
                self.probes.insert(request, Probe { ask, tried, holds });
                self.try_look(cx, request);
            }
            None => self.deny(cx, request, &viewing, RefuseReason::ProviderFailed),
        }
    }

    /// The account room says something of a probe.
    pub(super) fn look_told(&mut self, cx: &mut Context<'_>, request: RequestId, told: Told) {
        match told {
            Told::Granted { grant, .. } => {
                self.stale += 1;
                never_opened(cx, grant);
            }
            Told::GiveUp { .. } if self.probes.contains_key(&request) => {
                self.looked(cx, request);
                cx.out.push_back(Output::Cut { request, reason: ViewerEnd::Preempted });
            }
            Told::GiveUp { .. } | Told::Exhausted { .. } | Told::Expired { .. } => {}
        }
    }

    /// Nobody looks any longer.
    pub(super) fn drain_probes(&mut self, cx: &mut Context<'_>) {
        let probes: Vec<RequestId> = self.probes.keys().copied().collect();
        for request in probes {
            self.looked(cx, request);
            cx.out.push_back(Output::Cut { request, reason: ViewerEnd::Shutdown });
        }
    }
}
