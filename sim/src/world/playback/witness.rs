//! Says which branch of playback was taken, by what the truth knows before it takes an input or output in.

use holdfast_core::config::Strategy;
use holdfast_core::input::{Input, Note, Output, RefuseReason, RequestId, ViewerEnd};
use holdfast_core::playback::Place;
use holdfast_core::time::Time;

use super::super::Witness;
use super::super::chance::{Fault, Mark};
use super::super::truth::Truth;
use super::truth::Stage;

impl Witness {
    /// Before the core and the truth take an input in.
    pub fn play_input(&mut self, truth: &Truth, input: &Input) {
        let users = &truth.users;
        match input {
            Input::Hangup { request } => match users.plays.get(request).map(|play| play.stage) {
                Some(Stage::Held(_)) => self.faults.add(Fault::HangUpForPlace),
                Some(Stage::Queued) => self.faults.add(Fault::HangUpForPermit),
                _ => {}
            },
            Input::Kick { playback, .. } => {
                let live = users.named(*playback).is_some_and(|request| users.plays[&request].stage != Stage::Over);
                let live = live || truth.titles.playbacks.get(playback).is_some_and(|row| row.ended.is_none());
                self.faults.add(if live { Fault::KickPlayback } else { Fault::LateKick });
            }
            Input::ClockSet { .. } if users.users.iter().any(|user| user.limits.until.is_some()) => {
                self.faults.add(Fault::SetClock);
            }
            Input::Drain if !truth.draining && users.alive > 0 => self.marks.add(Mark::PlaybackDrained),
            _ => {}
        }
    }

    /// After the truth has heard an output, and before it takes it in.
    pub fn play_output(&mut self, now: Time, truth: &Truth, output: &Output) {
        let users = &truth.users;
        match output {
            Output::Refuse { request, reason } => self.play_refused(now, truth, *request, *reason),
            Output::ViewerEnd { viewer, reason } => self.marks.add(match reason {
                ViewerEnd::Evicted => Mark::ViewerEndedEvicted,
                ViewerEnd::Kicked => Mark::ViewerEndedKicked,
                ViewerEnd::Limit => Mark::ViewerEndedLimit,
                ViewerEnd::Expired => Mark::ViewerEndedExpired,
                ViewerEnd::Left if users.of_viewer(*viewer).is_some() => Mark::PollerLeft,
                _ => return,
            }),
            Output::Note(Note::PlaybackStarted { playback, place, waited, .. }) => {
                let Some(play) = users.named(*playback).and_then(|request| users.plays.get(&request)) else { return };
                self.marks.add(match place {
                    Place::Normal => Mark::PlayedNormal,
                    Place::Soft => Mark::PlayedSoft,
                    Place::Grace => Mark::PlayedByGrace,
                });
                let endpoint = play.viewing.item.feed().is_some_and(|feed| truth.channel_of(feed).is_none());
                if *waited > 0 && endpoint {
                    self.marks.add(Mark::HeldThenIn);
                }
            }
            Output::Note(Note::PlaybackPromoted { .. }) => self.marks.add(Mark::Promoted),
            Output::Note(Note::PlaybackEvicted { rule, by, .. }) => {
                self.marks.add(match rule {
                    Strategy::EvictSameIpOldest => Mark::EvictedSameIpOldest,
                    Strategy::EvictSameIpLatest => Mark::EvictedSameIpLatest,
                    Strategy::EvictOldest => Mark::EvictedOldest,
                    _ => Mark::EvictedLatest,
                });
                let by = users.named(*by).and_then(|request| users.plays.get(&request));
                match by.map(|play| play.stage) {
                    Some(Stage::Held(_)) => self.marks.add(Mark::EvictedAfterHold),
                    Some(Stage::Seen(_) | Stage::In) => self.marks.add(Mark::EvictedAfterInstant),
                    _ => {}
                }
            }
            Output::Note(Note::PlaybackEnded { playback, .. }) => {
                let Some(play) = users.named(*playback).and_then(|request| users.plays.get(&request)) else { return };
                let user = &users.users[play.viewing.user.0 as usize];
                let kept = user.grace.is_some_and(|(request, _)| users.named(*playback) != Some(request));
                if kept && play.evicted.is_none() {
                    self.marks.add(Mark::GraceInstantKept);
                }
            }
            _ => {}
        }
    }

    fn play_refused(&mut self, now: Time, truth: &Truth, request: RequestId, reason: RefuseReason) {
        let users = &truth.users;
        let Some(play) = users.plays.get(&request) else { return };
        self.marks.add(match reason {
            RefuseReason::UserLimit => Mark::RefusedUserLimit,
            RefuseReason::Suppressed => Mark::RefusedSuppressed,
            RefuseReason::AccountExpired => Mark::RefusedAccountExpired,
            RefuseReason::Kicked => Mark::RefusedKicked,
            RefuseReason::Busy => Mark::RefusedBusy,
            _ => return,
        });
        let recent = users.refusals.get(&play.player()).is_some_and(|last| now.since(last.at).as_millis() < 1000);
        match (reason, play.stage) {
            (RefuseReason::UserLimit, Stage::Held(_)) => self.marks.add(Mark::HeldInVain),
            (RefuseReason::UserLimit, Stage::In) => self.marks.add(Mark::GraceOverBeforeSeen),
            (RefuseReason::UserLimit, Stage::Asked) if recent => self.marks.add(Mark::RefusedAgain),
            (RefuseReason::Kicked, Stage::Asked) => self.marks.add(Mark::Blocked),
            _ => {}
        }
    }
}
