//! What inputs and outputs mean for titles: how the truth follows from them.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_core::account::Holder;
use holdfast_core::input::{
    ChannelId, FeedId, GivesWay, Grant, Input, Note, Output, PlaybackId, ProviderId, RefuseReason, RequestId, SourceId,
    TitleId, Token, ViewerEnd, Viewing,
};
use holdfast_core::playback::Place;
use holdfast_core::time::Time;

use super::super::super::truth::{Join, Truth};
use super::{Key, LATE, Playback, Request, Source, Stage, Tuned};

impl Truth {
    /// A title is about to be watched as a live stream: there is a channel of it.
    pub fn tune(&mut self, now: Time, channel: ChannelId, feed: FeedId, title: TitleId, providers: Vec<ProviderId>) {
        let row = Tuned { title, feed, providers, open: BTreeSet::new(), opens: 0, stirred: now };
        let same = |old: &&mut Tuned| old.feed == feed && old.title == title;
        match self.titles.channels.get_mut(&channel).filter(same) {
            Some(old) => old.stirred = now,
            None => {
                let before = self.titles.channels.insert(channel, row);
                self.titles.tuned_sources -= before.map_or(0, |before| before.open.len());
            }
        }
    }

    pub fn title_before(&mut self, now: Time, input: &Input) {
        self.title_asked(now, input);
        let titles = &mut self.titles;
        let is_fetched =
            |request: &RequestId| titles.requests.get(request).is_some_and(|row| row.stage == Stage::Fetching);
        let fetched = match input {
            Input::Failed { request, .. } | Input::Finished { request, .. } => is_fetched(request),
            _ => false,
        };
        match input {
            Input::Allowed { account, connections } => titles.allowed(now, *account, *connections),
            Input::Hangup { request } => {
                let stage = titles.requests.get(request).map(|row| row.stage);
                match stage {
                    Some(Stage::Waiting) => titles.stage(now, *request, Stage::HangingUp),
                    Some(Stage::Fetching) => titles.stage(now, *request, Stage::Finishing),
                    _ => {}
                }
            }
            Input::Failed { request, .. } if fetched => {
                titles.stage(now, *request, Stage::Failing);
                if let Some(row) = titles.requests.get_mut(request) {
                    row.failed = true;
                }
            }
            Input::Finished { request, reason } if fetched => {
                let row = &titles.requests[request];
                if *reason == ViewerEnd::Done && row.forwarded.is_none() {
                    titles.vain.add(now, row.player(), -1.0);
                }
                titles.stage(now, *request, Stage::Finishing);
            }
            // What the core gave up in the moment in which it began was sent to its end all the same.
            Input::Finished { request, .. } if titles.is_tried(*request) => {
                titles.stage(now, *request, Stage::HangingUp);
            }
            // It is closed, whatever was due before the core hears of it.
            Input::Closed { allocation } => titles.closed(now, *allocation),
            Input::Drain => titles.draining = true,
            _ => {}
        }
    }

    fn title_asked(&mut self, now: Time, input: &Input) {
        let titles = &mut self.titles;
        match input {
            Input::Fetch { request, ask } if !titles.is_request(*request) => {
                titles.asked(now, *request, ask.viewing, Some(ask.clone()));
            }
            Input::Play { request, viewing } if titles.is_of(viewing.user) && !titles.is_request(*request) => {
                titles.asked(now, *request, *viewing, None);
                self.may_join(*request);
            }
            _ => {}
        }
    }

    /// Whoever asks for a feed may wait for a place first: for that nobody wants its channel.
    pub fn may_join(&mut self, request: RequestId) {
        let known = self.joins.iter().any(|join| join.request == request);
        if known || !self.titles.watches(request) {
            return;
        }
        let Some(row) = self.titles.requests.get(&request).filter(|row| row.stage.waits()) else { return };
        let Some(feed) = row.viewing.item.feed() else { return };
        self.joins.push(Join { request, feed, at: row.asked });
        if let Some(channel) = self.channel_of(feed) {
            self.channels[channel].maybe_wanted = true;
        }
    }

    /// Takes an output in, after it was judged.
    pub fn title_output(&mut self, now: Time, output: &Output) {
        let titles = &mut self.titles;
        match *output {
            Output::Fetch { request, playback, token, grant, .. } => self.fetched(now, request, playback, token, grant),
            Output::Refuse { request, reason } => {
                let Some(row) = titles.requests.get_mut(&request) else { return };
                row.refused = Some(reason);
                let player = row.player();
                if row.ask.is_none() && reason == RefuseReason::ProviderLimit && row.asked < now {
                    titles.fallen.insert(row.viewing.user, (row.asked, now));
                }
                match reason {
                    RefuseReason::UserLimit | RefuseReason::Suppressed | RefuseReason::ProviderLimit => {
                        titles.refusals.insert(player, (reason, now));
                    }
                    // What a playlist names says nothing of the rest, and a repetition is no news.
                    RefuseReason::ProviderFailed if row.fetches > 0 && row.names_no_account() => {
                        titles.failures.insert(player, now);
                    }
                    _ => {}
                }
                // What is there for its player is kept for longer by its asking.
                let same = |row: &&mut Playback| row.player() == player;
                titles.playbacks.values_mut().filter(same).for_each(|row| row.stirred = now);
                titles.stage(now, request, Stage::Over);
                if reason != RefuseReason::Kicked {
                    // What an operator ends now may have been that, and over by itself just before.
                    let plays = titles.open.iter().any(|id| titles.requests[id].player() == player);
                    let of = |viewing: &Viewing| (viewing.user, viewing.client, viewing.item) == player;
                    titles.kicked = titles.kicked.filter(|(_, viewing)| plays || !of(viewing));
                }
            }
            Output::Joined { request, viewer } => {
                titles.stage(now, request, Stage::Seen(viewer));
                titles.sees(viewer, request);
            }
            Output::ViewerEnd { viewer, reason } => {
                let Some(request) = titles.sees_no_more(viewer) else { return };
                titles.ends.insert(viewer, reason);
                if let Some(row) = titles.requests.get_mut(&request) {
                    row.cut = Some(reason);
                    if reason == ViewerEnd::Preempted {
                        titles.eased.insert(row.player(), now);
                        titles.preempted.insert(row.player(), now);
                    }
                }
                titles.stage(now, request, Stage::Over);
            }
            Output::Cut { request, reason } => self.was_cut(now, request, reason),
            Output::Drop { allocation } => {
                let Some(row) = titles.allocations.get_mut(&allocation) else { return };
                row.dropped.get_or_insert(now);
                let request = row.request;
                titles.leaves(allocation);
                // Of one of which nothing was forwarded another attempt is made, or it is refused.
                if let Some(id) = request
                    && titles
                        .requests
                        .get(&id)
                        .is_some_and(|row| row.stage == Stage::Fetching && row.forwarded.is_none())
                {
                    titles.stage(now, id, Stage::Dropped);
                    titles.dropped.push(id);
                    if let Some(row) = titles.requests.get_mut(&id) {
                        row.failed = true;
                    }
                }
            }
            Output::Open { source, channel, grant, .. } => {
                let Some(grant) = grant else { return };
                titles.grant(now, grant, Holder::Source(source), None);
                let Some(row) = titles.channels.get_mut(&channel) else { return };
                titles.tuned_sources += usize::from(row.open.insert(source));
                row.opens += 1;
                let source_row = Source { channel, feed: row.feed, allocation: grant.allocation, gone: false };
                titles.sources.insert(source, source_row);
            }
            Output::Close { source } => self.source_over(now, source, true),
            Output::Note(ref note) => self.title_note(now, note),
            _ => {}
        }
    }

    fn fetched(
        &mut self,
        now: Time,
        id: RequestId,
        playback: Option<PlaybackId>,
        token: Option<Token>,
        grant: Option<Grant>,
    ) {
        let titles = &mut self.titles;
        // What was granted may not have been opened at once.
        let may_be_granted = titles.requests.get(&id).map_or(now, |row| row.waits_since.max(now - LATE));
        titles.stage(now, id, Stage::Fetching);
        let Some(row) = titles.requests.get_mut(&id) else { return };
        row.playback = playback;
        row.fetches += 1;
        (row.forwarded, row.stalled) = (None, None);
        row.allocation = grant.map(|grant| grant.allocation);
        row.account = grant.map(|grant| grant.account);
        let viewing = row.viewing;
        if let (Some(token), false) = (token, matches!(row.key, Key::Player(_))) {
            row.key = Key::Token(token);
        }
        if let Some(playback) = playback {
            let fresh = Playback {
                viewing,
                token,
                began: now,
                stirred: now,
                confirmed: None,
                failed: None,
                silent: None,
                kept: None,
                place: None,
                started: false,
                ended: None,
            };
            let row = titles.playbacks.entry(playback).or_insert(fresh);
            (row.stirred, row.kept) = (now, None);
            if let Some(account) = grant.map(|grant| grant.account) {
                row.silent = row.silent.filter(|(own, _)| *own == account).or(Some((account, may_be_granted)));
            }
            row.token = row.token.or(token);
            if let Some(token) = token {
                titles.tokens.insert(token, playback);
            }
        }
        let holder = playback.map_or(Holder::Probe(id), Holder::Playback);
        if let Some(grant) = grant {
            titles.vain.add(now, (viewing.user, viewing.client, viewing.item), 1.0);
            titles.grant(now, grant, holder, Some(id));
            // Who has a lease that was confirmed keeps it for longer.
            let confirmed = playback.and_then(|id| titles.playbacks.get(&id)?.confirmed).is_some();
            // What only looks or sets up has none.
            let plays = titles.requests.get(&id).is_some_and(Request::counts);
            if !confirmed && playback.is_some() && plays {
                let latest = now + titles.settings.starting_deadline + titles.slack * 2;
                titles.starts.insert((latest, grant.allocation));
            }
        }
    }

    fn was_cut(&mut self, now: Time, id: RequestId, reason: ViewerEnd) {
        let titles = &mut self.titles;
        let Some(row) = titles.requests.get_mut(&id) else { return };
        row.cut = Some(reason);
        let (playback, player) = (row.playback, row.player());
        titles.stage(now, id, Stage::Over);
        let Some(playback) = playback else { return };
        if let Some(row) = titles.playbacks.get_mut(&playback) {
            row.stirred = now;
        }
        match reason {
            ViewerEnd::Kicked | ViewerEnd::Evicted | ViewerEnd::GraceOver => titles.for_good(now, playback),
            ViewerEnd::Preempted => {
                titles.for_good(now, playback);
                if titles.yielded.contains(&Holder::Playback(playback)) {
                    titles.preempted.insert(player, now);
                }
            }
            _ => {}
        }
    }

    fn source_over(&mut self, now: Time, id: SourceId, dropped: bool) {
        let titles = &mut self.titles;
        let Some(row) = titles.sources.get_mut(&id) else { return };
        row.gone = true;
        if let Some(channel) = titles.channels.get_mut(&row.channel) {
            titles.tuned_sources -= usize::from(channel.open.remove(&id));
        }
        let allocation = row.allocation;
        if let Some(row) = titles.allocations.get_mut(&allocation).filter(|_| dropped) {
            row.dropped.get_or_insert(now);
            titles.leaves(allocation);
        }
    }

    fn title_note(&mut self, now: Time, note: &Note) {
        let titles = &mut self.titles;
        match *note {
            Note::PlaybackStarted { playback, place, .. } => {
                if let Some(row) = titles.playbacks.get_mut(&playback) {
                    (row.place, row.started) = (Some(place), true);
                }
            }
            Note::PlaybackPromoted { playback, .. } => {
                if let Some(row) = titles.playbacks.get_mut(&playback) {
                    row.place = Some(Place::Normal);
                }
            }
            Note::PlaybackEnded { playback, reason, .. } => {
                if reason != ViewerEnd::Kicked {
                    // What was over anyway by then was not ended by an operator.
                    titles.kicked = titles.kicked.filter(|(own, _)| *own != playback);
                }
                let for_good = [ViewerEnd::Kicked, ViewerEnd::Evicted, ViewerEnd::Preempted, ViewerEnd::GraceOver];
                if for_good.contains(&reason) {
                    titles.for_good(now, playback);
                }
                if reason == ViewerEnd::Preempted
                    && titles.yielded.contains(&Holder::Playback(playback))
                    && let Some(row) = titles.playbacks.get(&playback)
                {
                    let player = row.player();
                    titles.preempted.insert(player, now);
                }
                titles.playback_over(now, playback, reason);
            }
            Note::AccountPreempted { account, holder, why, .. } => {
                titles.accounts[account.0 as usize].eased = Some(now);
                if !matches!(holder, Holder::Playback(id) if titles.playbacks.contains_key(&id)) {
                    titles.eased_other = Some(now);
                }
                if let Holder::Playback(id) = holder
                    && let Some(row) = titles.playbacks.get_mut(&id)
                {
                    row.kept = None;
                    titles.eased.insert((row.viewing.user, row.viewing.client, row.viewing.item), now);
                    // Of the others nobody was watching.
                    titles.yielded.extend((why == GivesWay::Weaker).then_some(holder));
                }
            }
            Note::SourceLost { source, .. } => self.source_over(now, source, false),
            _ => {}
        }
    }

    /// What an input meant, now that the core has acted on it and on everything that was due before it.
    pub fn title_after(&mut self, now: Time, input: &Input) {
        self.title_input_done(now, input);
        for id in std::mem::take(&mut self.titles.dropped) {
            if self.titles.requests.get(&id).is_some_and(|row| row.stage == Stage::Dropped) {
                self.titles.stage(now, id, Stage::Waiting);
            }
        }
        self.titles.tidy();
    }

    fn title_input_done(&mut self, now: Time, input: &Input) {
        if let Input::Lost { source, .. } = *input {
            // One that is asked for again in a moment is not told of.
            return self.source_over(now, source, false);
        }
        let titles = &mut self.titles;
        match *input {
            Input::Hangup { request } => {
                let gone = [Stage::HangingUp, Stage::Finishing, Stage::Dropped];
                if let Some(row) = titles.requests.get(&request).filter(|row| gone.contains(&row.stage)) {
                    // What its playback is kept for begins when the last of those that waited is over, too.
                    let player = row.player();
                    let same = |row: &&mut Playback| row.player() == player;
                    titles.playbacks.values_mut().filter(same).for_each(|row| row.stirred = now);
                    titles.stage(now, request, Stage::Over);
                }
            }
            Input::Failed { request, failure } => {
                // What is asked for again since its provider may count late goes on as it was.
                let may_go_on = failure.refusal().is_some_and(|refusal| refusal.may_be_a_limit());
                let row = titles.requests.get(&request);
                let (playback, over) = row.map_or((None, false), |row| (row.playback, row.stage == Stage::Failing));
                if let Some(row) = playback.and_then(|id| titles.playbacks.get_mut(&id)) {
                    (row.failed, row.kept) = (Some(now), None);
                    row.silent = row.silent.filter(|_| !over || may_go_on);
                }
                if titles.requests.get(&request).is_some_and(|row| row.stage == Stage::Failing) {
                    titles.stage(now, request, Stage::Waiting);
                }
            }
            Input::Finished { request, reason } => {
                let Some(row) = titles.requests.get(&request) else { return };
                match row.stage {
                    Stage::HangingUp => return titles.stage(now, request, Stage::Over),
                    Stage::Finishing => {}
                    _ => return,
                }
                let confirmed =
                    row.forwarded.filter(|_| row.counts() && row.viewing.item.traits(&titles.settings).confirmable);
                let (playback, account) = (row.playback, row.account);
                // Where it had its connection still, that is a failure of the account's.
                let connected = row.allocation.is_some();
                let broke = reason == ViewerEnd::Failed && connected;
                titles.stage(now, request, Stage::Over);
                let Some(id) = playback else { return };
                let others = titles.fetching(id).count() > 0;
                let waits = titles.open.iter().any(|other| {
                    let other = &titles.requests[other];
                    Some(other.key) == titles.requests.get(&request).map(|row| row.key)
                });
                let Some(row) = titles.playbacks.get_mut(&id) else { return };
                row.stirred = now;
                // What waits goes on with what was granted.
                row.silent = row.silent.filter(|_| others || waits);
                row.failed = broke.then_some(now).or(row.failed);
                let confirmed = confirmed.filter(|at| row.failed.is_none_or(|failed| failed < *at));
                let window = row.viewing.item.traits(&titles.settings).window;
                // Without a connection its account was kept for no longer than that.
                let lasts = row.confirmed.is_some_and(|(at, _)| now + titles.slack * 2 < at + window);
                if reason == ViewerEnd::Done && !others && !waits && !window.is_zero() && (connected || lasts) {
                    row.kept = confirmed.and(account).map(|account| (account, now + window));
                }
            }
            Input::Forwarded { request } => {
                let Some(row) = titles.requests.get_mut(&request).filter(|row| row.stage == Stage::Fetching) else {
                    return;
                };
                if row.forwarded.is_none() {
                    titles.vain.add(now, row.player(), -1.0);
                }
                (row.forwarded, row.stalled) = (Some(now), None);
                let confirms = row.counts() && row.viewing.item.traits(&titles.settings).confirmable;
                if let Some(row) = row.allocation.and_then(|id| titles.allocations.get_mut(&id)).filter(|_| confirms) {
                    row.confirmed = Some(now);
                }
                let account = row.account.filter(|_| confirms && row.allocation.is_some());
                if let Some(playback) = row.playback.and_then(|id| titles.playbacks.get_mut(&id)) {
                    playback.stirred = now;
                    playback.silent = playback.silent.filter(|_| !confirms);
                    playback.confirmed = account.map(|account| (now, account)).or(playback.confirmed);
                }
            }
            Input::Stalled { request } => {
                if let Some(row) = titles.requests.get_mut(&request).filter(|row| row.stage == Stage::Fetching) {
                    row.stalled.get_or_insert(now);
                }
            }
            Input::Leave { viewer } => {
                if let Some(request) = titles.sees_no_more(viewer) {
                    titles.stage(now, request, Stage::Over);
                }
            }
            Input::Kick { block, .. } => {
                let Some((playback, viewing)) = titles.kicked.take() else { return };
                let until = now + Duration::from_micros(block);
                if block > 0 {
                    titles.blocks.insert((viewing.user, viewing.client, viewing.item), (now, until));
                }
                titles.for_good(now, playback);
                titles.playback_over(now, playback, ViewerEnd::Kicked);
            }
            _ => {}
        }
    }
}
