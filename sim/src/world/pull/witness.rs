//! Says which branch of pulling was taken, by what the truth knows before it takes an output in.

use holdfast_core::input::{Loss, Note, Output, Switch, ViewerEnd};
use holdfast_core::time::Time;

use super::super::Witness;
use super::super::chance::Mark;
use super::super::truth::Truth;

impl Witness {
    /// Before the truth takes an output about channels in.
    pub fn pull_output(&mut self, now: Time, truth: &Truth, output: &Output) {
        match output {
            Output::Open { channel, index, .. } => {
                let channel = &truth.channels[channel.0 as usize];
                let settings = &channel.settings;
                let again = channel.asked[*index as usize];
                if again.is_none() && channel.opens > 0 && channel.losses == 0 && channel.open.is_empty() {
                    self.marks.add(Mark::ChannelOnAgain);
                }
                if !settings.on_demand && truth.feeds[&channel.feed].viewers.is_empty() {
                    self.marks.add(Mark::ChannelPersistent);
                }
                let pause = again.map(|last| now.since(last));
                if pause.is_some_and(|pause| pause > settings.no_input_timeout * 2) {
                    self.marks.add(Mark::GrowingPause);
                }
                if pause.is_some() && settings.retry_backoff_max == settings.no_input_timeout {
                    self.marks.add(Mark::FixedCadence);
                }
                let joined = truth.joins.iter().any(|join| join.feed == channel.feed && join.at == now);
                if joined && channel.losses > 0 && channel.open.is_empty() {
                    self.marks.add(Mark::JoinedInPause);
                }
            }
            Output::Joined { request, .. } => {
                let Some(join) = truth.joins.iter().find(|join| join.request == *request) else { return };
                if join.at < now && truth.feeds.get(&join.feed).is_some_and(|feed| !feed.viewers.is_empty()) {
                    self.marks.add(Mark::JoinedUnderRepair);
                }
            }
            Output::Note(note) => self.pull_note(now, truth, note),
            _ => {}
        }
    }

    fn pull_note(&mut self, now: Time, truth: &Truth, note: &Note) {
        match *note {
            Note::ChannelStarted { channel, .. } => {
                self.marks.add(Mark::ChannelStarted);
                if truth.waiting(truth.channels[channel.0 as usize].feed) >= 2 {
                    self.marks.add(Mark::ChannelStartedForTwo);
                }
            }
            Note::ChannelBack { .. } => self.marks.add(Mark::ChannelBack),
            Note::ChannelSwitched { channel, why, .. } => {
                self.marks.add(match why {
                    Switch::Failover => Mark::ChannelFailover,
                    Switch::Failback => Mark::ChannelFailback,
                });
                if truth.channels[channel.0 as usize].ended.is_some() {
                    self.marks.add(Mark::ChannelBeganAgain);
                }
            }
            Note::ChannelOff { .. } => self.marks.add(Mark::ChannelOff),
            Note::ChannelEnded { reason: ViewerEnd::Ended, .. } => self.marks.add(Mark::ChannelEndedInOrder),
            Note::ChannelEnded { .. } => self.marks.add(Mark::ChannelEndedNoSource),
            Note::ChannelSilent { channel, silent, .. } => {
                let open = truth.channels[channel.0 as usize].open.len();
                self.marks.add(match silent {
                    _ if open > 1 => Mark::SilentBesideDead,
                    Some(_) => Mark::SilentAfterMedia,
                    None => Mark::SilentFromTheBeginning,
                });
            }
            Note::SourceLost { channel, source, loss, .. } => {
                self.marks.add(match loss {
                    Loss::NotFound => Mark::LostNotFound,
                    Loss::Forbidden => Mark::LostForbidden,
                    Loss::Unresolved => Mark::LostUnresolved,
                    Loss::Unreachable => Mark::LostUnreachable,
                    Loss::Refused => Mark::LostRefused,
                    Loss::Limit => Mark::LostLimit,
                    Loss::Page => Mark::LostPage,
                    Loss::Reset => Mark::LostReset,
                    Loss::Ended => Mark::LostEnded,
                    Loss::Unusable => Mark::LostUnusable,
                    Loss::Loop => Mark::LostLoop,
                    Loss::TimedOut => Mark::LostTimedOut,
                    Loss::Silent => Mark::LostSilent,
                    Loss::NoKeyFrame => Mark::LostNoKeyFrame,
                    // No source of this world is a provider.
                    Loss::NoAccount | Loss::Preempted | Loss::GraceOver => return,
                });
                let (channel, Some(row)) = (&truth.channels[channel.0 as usize], truth.sources.get(&source)) else {
                    return;
                };
                let last = truth.feeds[&channel.feed].last_push;
                let flows = last.is_some_and(|last| now.since(last) < channel.settings.no_input_timeout);
                if row.told {
                    self.marks.add(Mark::SilentLost);
                } else if row.wrote
                    && let Some(since) = row.since
                {
                    let long = now.since(since) >= channel.settings.stable_after;
                    self.marks.add(if long { Mark::LongSuccess } else { Mark::ShortSuccess });
                } else if flows && channel.writer.is_some_and(|writer| channel.open.contains(&writer)) {
                    self.marks.add(Mark::ProbeFailed);
                }
            }
            _ => {}
        }
    }
}
