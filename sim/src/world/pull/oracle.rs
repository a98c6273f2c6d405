//! The invariants of pulling (spec: pull §7), judged from the actors' truth.
//!
//! | id | what must hold |
//! |---|---|
//! | `pull-1` | an origin is never asked twice within `no_input_timeout`, but when its channel was off in between |
//! | `pull-2` | silence is told once, with its true length, and media is noted when it comes |
//! | `pull-3` | a channel has at most two connections; one of them writes at most, and who was superseded never again |
//! | `pull-4` | media of another connection begins where a player can start |
//! | `pull-5` | with one origin that is well, media flows again within [`Channel::bound`] |
//! | `pull-6` | nobody takes over from an origin that sends but an earlier one that has sent for `stable_after` |
//! | `pull-7` | a channel that nobody has wanted for `idle_timeout` has no connection and no deadline, one that is wanted is not left |
//! | `pull-8` | whoever waits is answered within `start_timeout`, and for a reason that is so |
//! | `pull-9` | what is counted is what happened |

use std::time::Duration;

use holdfast_core::edge::Edge;
use holdfast_core::input::{Input, Note, Output, RefuseReason, SourceId, ViewerEnd, Writer};
use holdfast_core::pull::Phase;
use holdfast_core::time::Time;

use super::super::oracle::{Bench, Verdict, holds};
use super::super::truth::Join;
use super::truth::{Channel, Source};

impl Bench<'_> {
    /// Judges an output about channels before the truth takes it in.
    pub fn pull_output(&self, input: &Input, output: &Output) -> Verdict {
        match *output {
            Output::Open { source, channel, index, .. } => {
                let channel = &self.truth.channels[channel.0 as usize];
                let last = channel.asked[index as usize];
                let next = last.map(|last| last + channel.settings.no_input_timeout);
                let now = self.now + self.allowance.early;
                holds!(
                    next.is_none_or(|next| now >= next),
                    "pull-1",
                    "origin {index} is asked again, last at {last:?}"
                );
                let open = channel.open.len() + 1;
                holds!(open <= 2, "pull-3", "{open} connections are open");
                holds!(!self.truth.sources.contains_key(&source), "pull-3", "source {source} is opened twice");
                holds!(!self.truth.shut, "pull-7", "source {source} is opened while the program ends");
                Ok(())
            }
            Output::Close { source } => {
                let row = self.truth.sources.get(&source);
                let open = row.is_some_and(|row| !row.gone);
                holds!(open, "pull-3", "source {source} is closed and does not stand");
                Ok(())
            }
            Output::SourceKeyFrame { source } => {
                // One that has sent no key frame yet is asked for one, too. What was due before it is lost still finds it there.
                let goes = matches!(input, Input::Lost { source: lost, .. } if *lost == source);
                let writes = self.truth.sources.get(&source).is_some_and(|row| !row.gone || goes);
                holds!(writes, "pull-3", "a key frame is asked of source {source}, which is gone");
                Ok(())
            }
            Output::Note(ref note) => self.pull_note(note),
            _ => Ok(()),
        }
    }

    fn is(&self, told: u64, since: Time) -> bool {
        let (truth, early) = (self.now.since(since), self.allowance.early);
        let told = Duration::from_micros(told);
        told <= truth + early && truth <= told + early
    }

    fn pull_note(&self, note: &Note) -> Verdict {
        match *note {
            Note::ChannelSilent { channel, index, silent } => {
                let channel = &self.truth.channels[channel.0 as usize];
                let rows = channel.open.iter().filter_map(|source| self.truth.sources.get(source));
                let so =
                    rows.filter(|row| row.index == index as usize && row.agreed.is_some() && !row.told).any(|row| {
                        let since = row.last.max(row.agreed).unwrap_or_default();
                        let long = self.now.since(since) + self.allowance.early >= channel.settings.no_input_timeout;
                        long && match (silent, row.last) {
                            (Some(silent), Some(last)) => self.is(silent, last),
                            (silent, last) => silent.is_none() && last.is_none(),
                        }
                    });
                holds!(so, "pull-2", "origin {index} is told to be silent for {silent:?} µs");
            }
            Note::ChannelBack { channel, gap, .. } | Note::ChannelSwitched { channel, gap, .. } => {
                let feed = &self.truth.feeds[&self.truth.channels[channel.0 as usize].feed];
                let so = feed.last_push.is_some_and(|last| self.is(gap, last));
                holds!(so, "pull-2", "a gap of {gap} µs is told, but media last came at {:?}", feed.last_push);
            }
            Note::ChannelStarted { channel, .. } => {
                let feed = &self.truth.feeds[&self.truth.channels[channel.0 as usize].feed];
                holds!(feed.last_push.is_none(), "pull-2", "a channel starts that had media at {:?}", feed.last_push);
            }
            Note::ChannelOff { channel } => {
                let channel = &self.truth.channels[channel.0 as usize];
                let idle = self.now.since(channel.left) + self.allowance.early;
                let nobody = channel.wanted.is_none() && idle >= channel.settings.idle_timeout;
                holds!(nobody, "pull-7", "a channel is left that was wanted {idle:?} ago");
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a channel has media, for all that the core can know: it must not have less than this, and may have more.
    fn flows(&self, channel: &Channel) -> bool {
        let Some(writer) = channel.writer.and_then(|writer| self.truth.sources.get(&writer)) else { return false };
        let last = self.truth.feeds[&channel.feed].last_push;
        let fresh = |last: Time| self.now + self.allowance.early < last + channel.settings.no_input_timeout;
        !writer.lost && last.is_some_and(fresh)
    }

    /// Beyond doubt without media.
    fn dry(&self, channel: &Channel) -> bool {
        let Some(writer) = channel.writer.and_then(|writer| self.truth.sources.get(&writer)) else { return true };
        let last = self.truth.feeds[&channel.feed].last_push;
        let long = |last: Time| self.now >= last + channel.settings.no_input_timeout + self.allowance.early;
        writer.lost || last.is_none_or(long)
    }

    /// Whether an origin that does not write has shown that it works, beyond doubt or for all that can be known.
    fn proven(&self, channel: &Channel, writer: SourceId, source: &Source, leeway: Leeway) -> bool {
        let earlier = self.truth.sources.get(&writer).is_some_and(|writer| source.index < writer.index);
        let stable = channel.settings.stable_after;
        let shown = source.since.is_some_and(|since| match leeway {
            Leeway::MustHave => self.now >= since + stable + self.allowance.early,
            Leeway::MayHave => self.now + self.allowance.early >= since + stable,
        });
        earlier && shown && channel.settings.failback
    }

    /// Judges whether media that came from a source went into its channel's feed, after the outputs and before the media were taken
    /// in.
    pub fn media(&self, id: SourceId, random_access: bool, taken: bool) -> Verdict {
        let Some(source) = self.truth.sources.get(&id) else {
            holds!(!taken, "pull-3", "media of source {id} is taken, which never was");
            return Ok(());
        };
        let channel = &self.truth.channels[source.channel];
        if source.gone || source.superseded {
            holds!(!taken, "pull-3", "media of source {id} is taken, which is over");
            return Ok(());
        }
        if channel.writer == Some(id) {
            holds!(taken, "pull-2", "media of source {id}, which writes, does not go into the feed");
            return Ok(());
        }
        let proven = |leeway| channel.writer.is_some_and(|writer| self.proven(channel, writer, source, leeway));
        if taken {
            holds!(random_access, "pull-4", "source {id} takes over where no player can start");
            let may = !self.flows(channel) || proven(Leeway::MayHave);
            holds!(may, "pull-6", "source {id} takes over from {:?}, which sends", channel.writer);
        } else {
            let must = random_access && (self.dry(channel) || proven(Leeway::MustHave));
            holds!(!must, "pull-5", "media of source {id} is not taken, and {:?} sends none", channel.writer);
        }
        Ok(())
    }

    /// Judges a request to watch a channel that is let in.
    pub fn join_channel(&self, input: &Input, join: &Join, channel: usize) -> Verdict {
        let channel = &self.truth.channels[channel];
        let comes = matches!(input, Input::Media { feed, .. } if *feed == channel.feed);
        holds!(comes || !self.dry(channel), "pull-8", "{:?} is let in, and no origin sends", join.request);
        Ok(())
    }

    /// Whether a request to watch a channel may be refused for this reason.
    pub fn refuse_join(&self, join: &Join, channel: usize, reason: RefuseReason) -> bool {
        let channel = &self.truth.channels[channel];
        let waited = self.now.since(join.at) + self.allowance.early;
        match reason {
            RefuseReason::StartTimeout => waited >= channel.settings.start_timeout && !self.flows(channel),
            RefuseReason::NoSource => {
                let failed = channel.losses > 0 || channel.silences > 0 || channel.given_up;
                failed && !self.flows(channel) && self.may_give_up(channel)
            }
            _ => false,
        }
    }

    /// Whether the driver stands still for so long that it makes silence where there was none, or hears too late of what was agreed.
    fn stands_still(&self, channel: &Channel) -> bool {
        let patience = channel.settings.no_input_timeout.min(channel.settings.connect_timeout);
        self.allowance.slack + Duration::from_millis(300) >= patience
    }

    /// An origin that was well from the beginning is had as soon as it has its turn: nobody is refused for want of one.
    fn may_give_up(&self, channel: &Channel) -> bool {
        self.stands_still(channel)
            || channel.ended.is_some()
            || channel.given_up
            || !channel.healthy.contains(&Some(Time::ZERO))
    }

    /// Whether a viewer of a channel may be ended for this reason.
    pub fn end_viewer(&self, channel: usize, reason: ViewerEnd) -> bool {
        let channel = &self.truth.channels[channel];
        match reason {
            ViewerEnd::Ended => channel.ended.is_some_and(|ended| {
                let waited = self.now.since(ended) + self.allowance.early;
                waited >= channel.settings.end_grace && !self.flows(channel)
            }),
            _ => {
                let failed = channel.losses > 0 || channel.silences > 0;
                channel.settings.retries.is_some() && self.may_give_up(channel) && failed
            }
        }
    }

    /// Judges how channels stand after each call.
    pub fn channels(&self, edge: &Edge) -> Verdict {
        let (truth, step) = (self.truth, self.allowance.slack);
        let mut open = 0;
        for (channel, state) in truth.channels.iter().zip(edge.pull().states()) {
            let name = &channel.settings.name;
            open += channel.open.len();
            let writer = edge.feeds().writer(channel.feed);
            let stands =
                writer.is_none_or(|writer| channel.open.iter().any(|source| writer == Writer::Source(*source)));
            holds!(stands, "pull-3", "{writer:?} writes into {name}, of which {:?} stand", channel.open);
            let counts = state.counts;
            let told = (counts.opens, counts.silences, counts.switches, counts.lost);
            let real = (channel.opens, channel.silences, channel.switches, channel.lost);
            holds!(told == real, "pull-9", "{name} counts {told:?}, but it was {real:?}");
            let waiting = (state.held, truth.waiting(channel.feed));
            let so = waiting.0 == waiting.1
                || waiting.0 > waiting.1 && waiting.0 <= waiting.1 + truth.may_wait(channel.feed);
            holds!(so, "pull-8", "who waits for {name}, by the core and in truth: {waiting:?}");
            let over = channel.wanted.is_none() && self.now > channel.stirred + channel.settings.idle_timeout + step;
            if over {
                let left = channel.open.len();
                let off = matches!(state.phase, Phase::Off | Phase::Ended);
                holds!(
                    left == 0 && off,
                    "pull-7",
                    "nobody wants {name}, {left} connections stand, it is {:?}",
                    state.phase
                );
                let kept = edge.feeds().status(self.now, channel.feed).map(|status| status.span);
                holds!(kept == Some(0), "pull-7", "nobody wants {name}, of which {kept:?} bytes are kept");
            }
            if let Some(wanted) = channel.wanted.filter(|_| !truth.draining) {
                self.served(channel, wanted)?;
            }
        }
        open += truth.titles.tuned_sources;
        let sources = (edge.pull().source_count(), open);
        // A source of a title is one while it waits for an account, too, or for its provider to have counted another out.
        let tuned = edge.pull().tuned_channels().filter_map(|(channel, _)| edge.pull().state(channel));
        let waiting = tuned.filter(|channel| channel.waits).count();
        holds!(
            sources.0 == sources.1 + waiting,
            "pull-9",
            "sources, by the core and in truth: {sources:?}, {waiting} wait"
        );
        // Whoever may wait for a place first is judged for itself.
        for join in truth.joins.iter().filter(|join| !truth.titles.is_request(join.request)) {
            let Some(channel) = truth.channel_of(join.feed) else { continue };
            let latest = join.at + truth.channels[channel].settings.start_timeout + step;
            holds!(self.now <= latest, "pull-8", "{:?} waits since {:?}", join.request, join.at);
        }
        let timers = edge.pull().timer_count();
        let most = truth.channels.len() + edge.pull().tuned_channels().count();
        holds!(timers <= most, "pull-7", "{timers} deadlines of {most} channels");
        Ok(())
    }

    /// Media flows where an origin is well.
    fn served(&self, channel: &Channel, wanted: Time) -> Verdict {
        if !self.allowance.slack.is_zero() && self.stands_still(channel) {
            return Ok(());
        }
        let last = self.truth.feeds[&channel.feed].last_push;
        for (index, healthy) in channel.healthy.iter().enumerate() {
            let Some(healthy) = healthy else { continue };
            let since = last.map_or(wanted, |last| last.max(wanted)).max(*healthy);
            let step = self.allowance.slack;
            let name = &channel.settings.name;
            holds!(
                self.now <= since + channel.bound(index, step),
                "pull-5",
                "{name} has no media since {last:?}, is wanted since {wanted:?}, and origin {index} is well since {healthy:?}"
            );
            let writer = channel.writer.and_then(|writer| self.truth.sources.get(&writer));
            let Some(writer) = writer.filter(|writer| channel.is_steadfast(index) && writer.index != index) else {
                continue;
            };
            let since = since.max(channel.asked[index].unwrap_or_default());
            holds!(
                self.now <= since + channel.failover_bound(index, writer.index, step),
                "pull-5",
                "{name} has no media of origin {} since {last:?} and waits for {index}, which is always well",
                writer.index
            );
        }
        Ok(())
    }

    /// Judges that nothing is left of any channel.
    pub fn channels_rest(&self, edge: &Edge) -> Verdict {
        let pull = edge.pull();
        let left = (pull.source_count(), pull.held(), pull.timer_count());
        holds!(left == (0, 0, 0), "pull-7", "sources, requests and deadlines left: {left:?}");
        Ok(())
    }
}

/// Whether a doubt speaks for a claim or against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leeway {
    MustHave,
    MayHave,
}
