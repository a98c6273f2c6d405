//! One channel: what its connections did, and what follows from that.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::mem;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::access::{Access, Confirmed, Graces, Origins, Verdict};
use super::round::{Fallen, Next, Round, pause};
use super::state::{ChannelCounts, ChannelState, Phase};
use crate::account::Late;
use crate::config;
use crate::feed::Start;
use crate::id::Table;
use crate::input::{
    ChannelId, FeedId, Grant, Loss, Note, Output, RefuseReason, RequestId, SourceId, SourceKind, Switch, ViewerEnd,
    Writer,
};
use crate::publish::Context;
use crate::time::Time;

/// How long media may come before something that a player can start with.
const KEY_FRAME_WAIT: Duration = Duration::from_secs(15);

/// How long an earlier origin is left alone that gets the stream from here; longer than channels stay on for nobody.
const LOOP_PAUSE: Duration = Duration::from_secs(300);

/// One connection to an origin.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Upstream {
    pub source: SourceId,
    pub index: usize,
    pub opened: Time,
    pub access: Access,
    /// When the origin agreed to send.
    pub agreed: Option<Time>,
    /// When media first came, since it was last missing.
    pub since: Option<Time>,
    /// When media last came while it did not write into the feed.
    pub last: Option<Time>,
    /// Whether it ever wrote into the feed: what follows joins on to that.
    pub wrote: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Channel {
    #[serde(skip)]
    pub settings: config::Channel,
    pub feed: FeedId,
    /// Of a title of providers.
    pub origins: Option<Box<Origins>>,
    pub armed: Time,
    pub phase: Phase,
    /// Writes into the feed, or did and is silent.
    pub kept: Option<Upstream>,
    /// May take over.
    pub beside: Option<Upstream>,
    pub round: Round,
    pub held: BTreeSet<(Time, RequestId)>,
    /// When somebody was last held in vain.
    pub asked: Time,
    /// Since when it has been wanted.
    wanted: Time,
    /// When the present media began to flow.
    live: Time,
    /// Until when an origin that ended in order may begin again.
    grace: Option<Time>,
    /// When an earlier origin is looked at next, which one, and how often one was in a row.
    probe: Time,
    probed: usize,
    probes: u32,
    last_loss: Option<(usize, Loss)>,
    /// Whether its origin refused as one does that still counts what was closed before, and when it is asked again.
    pub late: Option<Late>,
    counts: ChannelCounts,
}

impl Channel {
    pub fn new(settings: config::Channel, feed: FeedId) -> Self {
        let sources = settings.sources.clamp(1, config::Channel::SOURCES) as usize;
        // Nothing is asked or looked at more often, whatever was configured.
        let least = Duration::from_millis(100);
        let no_input_timeout = settings.no_input_timeout.max(least);
        let idle_timeout = settings.idle_timeout.max(least);
        let settings = config::Channel { no_input_timeout, idle_timeout, ..settings };
        Channel {
            settings,
            feed,
            origins: None,
            armed: Time::NEVER,
            phase: Phase::Off,
            kept: None,
            beside: None,
            round: Round::new(sources),
            held: BTreeSet::new(),
            asked: Time::ZERO,
            wanted: Time::ZERO,
            live: Time::ZERO,
            grace: None,
            probe: Time::NEVER,
            probed: 0,
            probes: 0,
            last_loss: None,
            late: None,
            counts: ChannelCounts::default(),
        }
    }

    /// Takes its settings from a new one; `None` where that has other origins.
    pub fn configure(&mut self, new: Channel) -> Option<()> {
        self.settings = new.settings;
        (self.feed == new.feed && self.round.is_like(&new.round)).then_some(())
    }

    pub fn state(&self) -> ChannelState<'_> {
        let place = |upstream: Option<Upstream>| upstream.map(|upstream| (upstream.source, upstream.index as u32));
        let pausing = self.phase == Phase::Seeking && self.beside.is_none();
        ChannelState {
            phase: self.phase,
            feed: self.feed,
            kept: place(self.kept),
            beside: place(self.beside),
            next: pausing.then_some(self.round.next),
            waits: self.beside.is_some_and(|beside| !beside.access.is_made()),
            held: self.held.len(),
            last_loss: self.last_loss.map(|(index, loss)| (index as u32, loss)),
            counts: &self.counts,
        }
    }

    /// Until when an origin that ended in order may begin again.
    pub fn grace(&self) -> Option<Time> {
        self.grace
    }

    /// Whether media that comes now from a source that does not write makes it write.
    pub fn takes(&self, now: Time, source: SourceId, random_access: bool) -> bool {
        let is = |upstream: &&Upstream| upstream.source == source;
        if let Some(kept) = self.kept.as_ref().filter(is) {
            return self.phase == Phase::Seeking && (kept.wrote || random_access);
        }
        let Some(beside) = self.beside.as_ref().filter(is) else { return false };
        random_access
            && match self.phase {
                Phase::Seeking => true,
                // An earlier origin takes over from one that works only when it has shown that it does, too.
                Phase::Live => beside.since.is_some_and(|since| now >= since + self.settings.stable_after),
                Phase::Off | Phase::Ended => false,
            }
    }
}

/// A channel while something happens to it.
pub(super) struct Turn<'t, 'cx> {
    pub cx: &'t mut Context<'cx>,
    pub graces: Graces,
    pub id: ChannelId,
    pub channel: &'t mut Channel,
    pub sources: &'t mut Table<SourceKind, ChannelId>,
    pub claims: &'t mut BTreeMap<RequestId, (ChannelId, Time)>,
}

impl Turn<'_, '_> {
    pub fn join(&mut self, request: RequestId) {
        let now = self.cx.now;
        match self.channel.phase {
            Phase::Live => return self.watch(request),
            _ if let Some(reason) = self.channel.remembers(now, self.cx.feeds) => return self.refuse(request, reason),
            Phase::Off | Phase::Ended => {
                self.channel.round.restart();
                self.channel.phase = Phase::Seeking;
                self.channel.wanted = now;
                self.forget_failures();
            }
            Phase::Seeking if self.channel.is_pausing(now, self.cx.feeds) => {
                self.channel.round.next = now;
                self.forget_failures();
            }
            Phase::Seeking => {}
        }
        let until = now + self.channel.settings.start_timeout;
        self.channel.held.insert((until, request));
        self.claims.insert(request, (self.id, until));
    }

    pub fn hangup(&mut self, request: RequestId) {
        if let Some((_, until)) = self.claims.remove(&request) {
            self.channel.held.remove(&(until, request));
            self.channel.asked = self.cx.now;
        }
    }

    pub fn opened(&mut self, source: SourceId) {
        let now = self.cx.now;
        if let Some(upstream) = self.upstream(source) {
            upstream.agreed.get_or_insert(now);
        }
    }

    pub fn arrived(&mut self, source: SourceId, random_access: bool) {
        let now = self.cx.now;
        let takes = self.channel.takes(now, source, random_access);
        let Some(upstream) = self.upstream(source).filter(|upstream| upstream.access.is_made()) else { return };
        upstream.agreed.get_or_insert(now);
        upstream.since.get_or_insert(now);
        upstream.last = Some(now);
        if let Access::Granted(allocation, confirmed @ Confirmed::No) = &mut upstream.access {
            *confirmed = Confirmed::Yes;
            let allocation = *allocation;
            self.cx.accounts.confirm(now, allocation);
        }
        if takes {
            self.flow(source);
        }
    }

    pub fn lost(&mut self, source: SourceId, loss: Loss) {
        self.lose(source, loss, Origin::Gone);
    }

    pub fn drain(&mut self) {
        self.close_all();
        self.answer_held(RefuseReason::Draining);
        self.channel.phase = Phase::Off;
    }

    fn upstream(&mut self, source: SourceId) -> Option<&mut Upstream> {
        let Channel { kept, beside, .. } = &mut *self.channel;
        [kept, beside].into_iter().flatten().find(|upstream| upstream.source == source)
    }

    /// The source's media goes into the feed from here on.
    fn flow(&mut self, source: SourceId) {
        let now = self.cx.now;
        let last = self.last_media();
        let gap = now.since(last.unwrap_or(self.channel.wanted)).as_micros() as u64;
        let (channel, was) = (self.id, self.channel.phase);
        let back = self.channel.kept.is_some_and(|kept| kept.source == source);
        // Whatever else is open has come too late, or is superseded.
        let other = if back {
            self.channel.beside.take()
        } else {
            mem::replace(&mut self.channel.kept, self.channel.beside.take())
        };
        if let Some(other) = other {
            if was == Phase::Live {
                self.channel.round.left(other.index);
            }
            self.close(other);
        }
        let Some(kept) = &mut self.channel.kept else { return };
        let (index, first) = (kept.index as u32, last.is_none());
        let continues = mem::replace(&mut kept.wrote, true);
        (self.channel.phase, self.channel.live, self.channel.grace) = (Phase::Live, now, None);
        if let Some(origins) = &mut self.channel.origins {
            origins.forget();
        }
        self.was_late(source);
        (self.channel.probe, self.channel.probed, self.channel.probes) =
            (now + self.channel.settings.failback_interval, 0, 0);
        self.cx.feeds.assign(self.channel.feed, Some(Writer::Source(source)));
        let note = if first {
            Note::ChannelStarted { channel, index, waited: gap }
        } else if continues {
            Note::ChannelBack { channel, index, gap }
        } else {
            self.channel.counts.switches += 1;
            let why = if was == Phase::Live { Switch::Failback } else { Switch::Failover };
            Note::ChannelSwitched { channel, index, why, gap }
        };
        self.cx.out.push_back(Output::Note(note));
        for (_, request) in mem::take(&mut self.channel.held) {
            self.claims.remove(&request);
            self.watch(request);
        }
    }

    fn watch(&mut self, request: RequestId) {
        let start = self.cx.feeds.join(self.cx.now, request, self.channel.feed, self.cx.out);
        if let (Start::KeyFrameWanted, Some(kept)) = (start, self.channel.kept) {
            self.cx.out.push_back(Output::SourceKeyFrame { source: kept.source });
        }
    }

    /// When media last came into the feed.
    fn last_media(&self) -> Option<Time> {
        self.cx.feeds.last_push(self.channel.feed)
    }

    /// The source is over.
    pub fn lose(&mut self, source: SourceId, loss: Loss, origin: Origin) {
        let now = self.cx.now;
        let is = |upstream: &mut Upstream| upstream.source == source;
        let (upstream, kept) = match self.channel.kept.take_if(is) {
            Some(upstream) => (upstream, true),
            None => match self.channel.beside.take_if(is) {
                Some(upstream) => (upstream, false),
                None => return,
            },
        };
        let was = self.channel.phase;
        let verdict = match origin {
            Origin::Gone => self.verdict(&upstream, loss),
            Origin::Given => Verdict::Lost { loss, since: upstream.opened, refused: None },
        };
        let Verdict::Lost { loss, since, refused } = verdict else {
            self.sources.remove(source);
            // Not told: it is as if it took longer to open.
            return self.give_back(&upstream, Loss::Ended);
        };
        if kept && was == Phase::Live {
            let fallen = if loss.is_of_account() { Fallen::Taken } else { Fallen::Broken };
            self.fall(upstream.index, fallen);
        }
        if was == Phase::Seeking && loss.is_of_account() {
            self.channel.round.after(now, upstream.index, Fallen::Taken);
        } else if was == Phase::Seeking && upstream.wrote {
            // That a silent connection is gone is news: there may be an origin again.
            self.channel.round.next = now;
        }
        // One that had fallen silent before did not end in order, whatever its connection says: a server that hangs lets its
        // clients' time-outs end it.
        if upstream.wrote && was == Phase::Live && loss == Loss::Ended {
            self.channel.grace = Some(now + self.channel.settings.end_grace);
        }
        if !kept && was == Phase::Live {
            // An earlier origin is looked at again after a while, ever less often.
            let (first, chance) = (self.channel.settings.failback_interval, self.chance());
            let longest = config::Channel::FAILBACK_MAX.max(first);
            self.channel.probes = self.channel.probes.saturating_add(1);
            // An origin that gets the stream from here will, until somebody changes that. Looking at it keeps it going.
            let least = if loss == Loss::Loop { LOOP_PAUSE } else { Duration::ZERO };
            self.channel.probe = now + pause(first, longest, self.channel.probes, chance).max(least);
        }
        if let Some(origins) = &mut self.channel.origins {
            origins.lost(loss);
        }
        match origin {
            Origin::Gone => {
                self.sources.remove(source);
                self.give_back(&upstream, loss);
                if let Some(account) = refused {
                    self.spurn(&upstream, account);
                }
            }
            Origin::Given => self.close(upstream),
        }
        self.channel.counts.lost[loss as usize] += 1;
        self.channel.last_loss = Some((upstream.index, loss));
        let (channel, index) = (self.id, upstream.index as u32);
        let lasted = now.since(since).as_micros() as u64;
        self.cx.out.push_back(Output::Note(Note::SourceLost { channel, index, source, loss, lasted }));
    }

    /// The media that was live from this origin no longer flows.
    fn fall(&mut self, index: usize, success: Fallen) {
        let now = self.cx.now;
        let last = self.last_media().unwrap_or(self.channel.live);
        let stable = last >= self.channel.live + self.channel.settings.stable_after;
        let fallen = if stable || success == Fallen::Taken { success } else { Fallen::Short };
        self.channel.round.after(now, index, fallen);
        self.channel.phase = Phase::Seeking;
        self.cx.feeds.assign(self.channel.feed, None);
        if let Some(beside) = self.channel.beside.filter(|beside| beside.access.is_made()) {
            self.channel.round.open(beside.opened, beside.index);
        }
    }

    /// What follows from what happened and from the time.
    pub fn settle(&mut self) {
        self.answer_overdue();
        self.turn_off();
        if self.channel.phase == Phase::Off && !self.channel.settings.on_demand {
            self.channel.round.restart();
            (self.channel.phase, self.channel.wanted) = (Phase::Seeking, self.cx.now);
        }
        self.wake();
        self.judge_beside();
        self.judge_kept();
        if self.channel.grace.is_some_and(|until| self.cx.now >= until) {
            self.end(ViewerEnd::Ended);
        }
        match self.channel.phase {
            Phase::Seeking => self.seek(),
            Phase::Live => self.look_back(),
            Phase::Off | Phase::Ended => {}
        }
    }

    /// When something may follow from the time alone.
    pub fn deadline(&self) -> Time {
        let channel = &*self.channel;
        if matches!(channel.phase, Phase::Off | Phase::Ended) {
            return self.gone_at().unwrap_or(Time::NEVER);
        }
        let held = channel.held.first().map(|(until, _)| *until);
        let off = self.off_at().or(channel.settings.on_demand.then(|| self.cx.now + channel.settings.idle_timeout));
        let beside = channel.beside.and_then(|beside| match beside.access {
            Access::Waits => None,
            Access::Rests(_, at) => Some(at),
            Access::Free | Access::Granted(..) => Some(self.due(&beside).0),
        });
        let kept = channel.kept.and_then(|kept| self.kept_due(&kept));
        let next = match channel.phase {
            Phase::Seeking if channel.beside.is_none() && self.is_wanted() => Some(channel.round.next),
            Phase::Live => self.probe_due().map(|(at, _)| at),
            _ => None,
        };
        [held, off, beside, kept, next, channel.grace].into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    pub fn is_wanted(&self) -> bool {
        !self.channel.settings.on_demand
            || !self.channel.held.is_empty()
            || self.cx.feeds.viewers_of(self.channel.feed) > 0
    }

    /// When the channel is to be turned off, if nobody is there.
    pub fn off_at(&self) -> Option<Time> {
        let channel = &*self.channel;
        let nobody = channel.held.is_empty() && self.cx.feeds.viewers_of(channel.feed) == 0;
        (channel.settings.on_demand && nobody).then(|| {
            // Who comes back finds nothing where nothing was opened; and an account is kept from others for it.
            let waits = channel.kept.is_none() && channel.beside.is_some_and(|beside| !beside.access.is_made());
            let since = self.cx.feeds.left(channel.feed).map_or(channel.asked, |left| left.max(channel.asked));
            since + if waits { Duration::ZERO } else { channel.settings.idle_timeout }
        })
    }

    fn turn_off(&mut self) {
        let running = matches!(self.channel.phase, Phase::Seeking | Phase::Live);
        if !running || self.off_at().is_none_or(|at| self.cx.now < at) {
            return;
        }
        self.go_off();
    }

    /// Closes everything; nothing is remembered.
    pub fn go_off(&mut self) {
        self.close_all();
        self.channel.round.reset();
        (self.channel.phase, self.channel.grace, self.channel.late) = (Phase::Off, None, None);
        self.cx.out.push_back(Output::Note(Note::ChannelOff { channel: self.id }));
    }

    fn answer_overdue(&mut self) {
        while let Some((until, request)) = self.channel.held.first().copied()
            && until <= self.cx.now
        {
            self.channel.held.pop_first();
            self.channel.asked = self.cx.now;
            self.claims.remove(&request);
            self.refuse(request, RefuseReason::StartTimeout);
        }
    }

    /// By when a connection that does not write has to show what, and what it is if it does not.
    fn due(&self, upstream: &Upstream) -> (Time, Loss) {
        let settings = &self.channel.settings;
        let Some(agreed) = upstream.agreed else { return (upstream.opened + settings.connect_timeout, Loss::TimedOut) };
        let silent = (upstream.last.map_or(agreed, |last| last.max(agreed)) + settings.no_input_timeout, Loss::Silent);
        match upstream.since {
            Some(since) if self.channel.phase == Phase::Seeking => {
                silent.min((since + KEY_FRAME_WAIT, Loss::NoKeyFrame))
            }
            _ => silent,
        }
    }

    /// When the connection that writes, or wrote, has to be looked at.
    fn kept_due(&self, kept: &Upstream) -> Option<Time> {
        match self.channel.phase {
            Phase::Live => Some(
                self.last_media().map_or(self.channel.live, |last| last.max(self.channel.live))
                    + self.channel.settings.no_input_timeout,
            ),
            // A silent one is kept for as long as it takes; one that sends what nobody can start with is not.
            _ if !kept.wrote => kept.since.map(|since| since + KEY_FRAME_WAIT),
            _ => None,
        }
    }

    fn judge_beside(&mut self) {
        let Some(beside) = self.channel.beside.filter(|beside| beside.access.is_made()) else { return };
        let (at, loss) = self.due(&beside);
        if self.cx.now < at {
            return;
        }
        if loss == Loss::Silent && self.channel.phase == Phase::Seeking && self.channel.kept.is_none() {
            // Connected and silent is better than nothing: it may begin to send at any moment.
            self.channel.kept = Some(Upstream { since: None, ..beside });
            self.channel.beside = None;
            return self.fall_silent(beside.index, beside.last);
        }
        self.lose(beside.source, loss, Origin::Given);
    }

    fn judge_kept(&mut self) {
        let Some(kept) = self.channel.kept else { return };
        if self.kept_due(&kept).is_none_or(|at| self.cx.now < at) {
            return;
        }
        if self.channel.phase != Phase::Live {
            return self.lose(kept.source, Loss::NoKeyFrame, Origin::Given);
        }
        let last = self.last_media();
        self.fall(kept.index, Fallen::Silent);
        self.fall_silent(kept.index, last);
    }

    fn fall_silent(&mut self, index: usize, last: Option<Time>) {
        self.channel.counts.silences += 1;
        let silent = last.map(|last| self.cx.now.since(last).as_micros() as u64);
        let note = Note::ChannelSilent { channel: self.id, index: index as u32, silent };
        self.cx.out.push_back(Output::Note(note));
    }

    /// Media is wanted: tries what may be tried.
    pub fn seek(&mut self) {
        if self.channel.beside.is_some() || !self.is_wanted() {
            return;
        }
        let (now, spacing) = (self.cx.now, self.channel.settings.no_input_timeout);
        match self.channel.round.next(now, spacing) {
            Next::Open(index) => {
                if self.open(index) == Attempt::Failed {
                    self.seek();
                }
            }
            Next::At(at) => self.channel.round.next = at,
            Next::Over if self.lacks_accounts() => {}
            Next::Over => {
                if let Some(origins) = &mut self.channel.origins {
                    origins.over();
                }
                let from = self
                    .channel
                    .kept
                    .map_or(0, |kept| (kept.index + 1) % self.channel.settings.sources.max(1) as usize);
                let chance = self.chance();
                let Channel { round, settings, .. } = &mut *self.channel;
                if !round.over(now, from, settings, chance) {
                    self.end(ViewerEnd::NoSource);
                } else if self.channel.round.next <= now {
                    self.seek();
                } else if self.channel.kept.is_none() && self.cx.feeds.viewers_of(self.channel.feed) == 0 {
                    self.answer_held(self.channel.lack());
                }
            }
        }
    }

    /// Which earlier origin is to be looked at, and when.
    fn probe_due(&self) -> Option<(Time, usize)> {
        let channel = &*self.channel;
        let kept =
            channel.kept.filter(|kept| kept.index > 0 && channel.settings.failback && channel.beside.is_none())?;
        if !self.is_wanted() {
            return None;
        }
        let index = channel.probed % kept.index;
        Some((channel.probe.max(channel.round.ready(index, channel.settings.no_input_timeout)), index))
    }

    /// Media flows: looks whether an earlier origin is back.
    fn look_back(&mut self) {
        if let Some((_, index)) = self.probe_due().filter(|(at, _)| self.cx.now >= *at) {
            self.channel.probed = index + 1;
            let _ = self.open(index);
        }
    }

    fn open(&mut self, index: usize) -> Attempt {
        let (opened, source) = (self.cx.now, self.sources.insert(self.id));
        let access = Access::Free;
        let upstream = Upstream { source, index, opened, access, agreed: None, since: None, last: None, wrote: false };
        self.channel.beside = Some(upstream);
        if self.channel.origins.is_some() {
            return self.acquire(source);
        }
        self.begin(index, None);
        Attempt::Made
    }

    /// Has the connection beside made, now that nothing lacks.
    pub fn begin(&mut self, index: usize, grant: Option<Grant>) {
        let now = self.cx.now;
        let Some(beside) = &mut self.channel.beside else { return };
        (beside.index, beside.opened) = (index, now);
        if grant.is_none_or(|grant| !self.rests(grant)) {
            self.make(grant);
        }
    }

    /// Makes it, whatever the provider may still count.
    pub fn make(&mut self, grant: Option<Grant>) {
        let (channel, now) = (self.id, self.cx.now);
        let Some(beside) = &mut self.channel.beside else { return };
        beside.opened = now;
        if let Some(grant) = grant {
            beside.access = Access::Granted(grant.allocation, Confirmed::No);
        }
        let (source, index) = (beside.source, beside.index as u32);
        self.channel.round.open(now, beside.index);
        self.channel.counts.opens += 1;
        self.cx.out.push_back(Output::Open { source, channel, index, grant });
        self.cx.out.push_back(Output::Note(Note::SourceOpening { channel, index, source }));
    }

    /// Ends everybody: the channel's origins have come to their end.
    pub fn end(&mut self, reason: ViewerEnd) {
        self.channel.grace = None;
        self.cx.feeds.end_all(self.cx.now, self.channel.feed, reason, self.cx.out);
        self.answer_held(self.channel.lack());
        self.cx.out.push_back(Output::Note(Note::ChannelEnded { channel: self.id, reason }));
        if reason == ViewerEnd::Ended {
            // Where it is pulled without viewers too, it goes on to be asked for, as after any round in vain.
            let chance = self.chance();
            let Channel { round, settings, .. } = &mut *self.channel;
            if round.over(self.cx.now, 0, settings, chance) && !settings.on_demand {
                return;
            }
        }
        self.close_all();
        self.channel.phase = Phase::Ended;
    }

    pub fn close_all(&mut self) {
        for upstream in [self.channel.kept.take(), self.channel.beside.take()].into_iter().flatten() {
            self.close(upstream);
        }
        self.cx.feeds.assign(self.channel.feed, None);
        self.cx.feeds.clear(self.channel.feed);
    }

    pub fn close(&mut self, upstream: Upstream) {
        self.sources.remove(upstream.source);
        if upstream.access.is_made() {
            self.cx.out.push_back(Output::Close { source: upstream.source });
        }
        self.give_back(&upstream, Loss::Ended);
    }

    pub fn answer_held(&mut self, reason: RefuseReason) {
        for (_, request) in mem::take(&mut self.channel.held) {
            self.claims.remove(&request);
            self.channel.asked = self.cx.now;
            self.refuse(request, reason);
        }
    }

    fn refuse(&mut self, request: RequestId, reason: RefuseReason) {
        self.cx.out.push_back(Output::Refuse { request, reason });
    }

    /// Media is wanted anew: what becomes of that says why it comes to nothing, if it does.
    fn forget_failures(&mut self) {
        if let Some(origins) = &mut self.channel.origins {
            origins.forget();
        }
    }

    fn chance(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.cx.env.entropy();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// What became of an attempt at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Made,
    /// There is no account for it.
    Failed,
}

/// Who ends a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is gone already.
    Gone,
    /// We give it up.
    Given,
}
