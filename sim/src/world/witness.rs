//! Says where a fault bit and which branch was taken, by what the truth knows before it takes an input or output in.

use std::time::Duration;

use holdfast_core::config::Takeover;
use holdfast_core::input::{EndReason, Input, Output, RefuseReason, RequestId, SessionId, ViewerEnd, Writer};
use holdfast_core::time::Time;

use super::chance::{Fault, Mark, Tally};
use super::truth::{Fate, Truth};

/// How often each fault bit and each mark was reached in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Faults, counted where they bit.
    pub faults: Tally<Fault>,
    /// Branches, counted where they were taken.
    pub marks: Tally<Mark>,
}

impl Witness {
    /// Adds what another run saw.
    pub fn merge(&mut self, other: &Witness) {
        self.faults.merge(&other.faults);
        self.marks.merge(&other.marks);
    }

    /// Before the core and the truth take an input in.
    pub fn input(&mut self, now: Time, truth: &Truth, input: &Input) {
        match input {
            Input::Offer { request, .. } => {
                if truth.posts.contains_key(request) {
                    self.faults.add(Fault::DoubledOffer);
                }
            }
            Input::Hangup { request } => match truth.posts.get(request).map(|post| post.fate) {
                Some(Fate::Held) => self.faults.add(Fault::HangUpHeld),
                Some(Fate::Negotiating(_)) => self.faults.add(Fault::HangUpNegotiating),
                Some(_) => {}
                None if truth.joins.iter().any(|join| join.request == *request) => {
                    self.faults.add(Fault::HangUpWaiting);
                }
                None if truth.users.is_play(*request) || truth.titles.is_request(*request) => {}
                None => self.faults.add(Fault::Nonsense),
            },
            Input::Answered { session } => {
                let Some(row) = truth.sessions.get(session) else { return };
                if row.accepted || !row.is_live() {
                    self.faults.add(Fault::DoubledAnswer);
                } else if now.since(row.started) > Duration::from_millis(500) {
                    self.faults.add(Fault::LateAnswer);
                }
            }
            Input::End { session, reason } => self.end(now, truth, *session, *reason),
            Input::Released { session } => self.released(now, truth, *session),
            Input::Media { from: Writer::Session(session), .. } => {
                let Some(row) = truth.sessions.get(session) else { return };
                if row.released {
                    self.faults.add(Fault::LeakyBridge);
                } else if !row.is_live() && row.stream.is_open() {
                    self.faults.add(Fault::KeepSending);
                }
            }
            Input::Sent { viewer, .. } | Input::Leave { viewer } | Input::GiveUp { viewer } => {
                if truth.viewers.get(viewer).is_some_and(|viewer| viewer.ended.is_some()) {
                    self.faults.add(Fault::LateViewer);
                }
            }
            Input::Play { .. } | Input::Kick { .. } | Input::ClockSet { .. } => {}
            Input::Allowed { account, .. } => {
                if truth.titles.accounts.get(account.0 as usize).is_some_and(|own| !own.open.is_empty()) {
                    self.faults.add(Fault::PanelAllows);
                }
            }
            Input::Join { feed, .. } => {
                if !truth.feeds.contains_key(feed) {
                    self.faults.add(Fault::Nonsense);
                }
            }
            Input::Drain => {
                if !truth.draining && !truth.present.is_empty() {
                    self.faults.add(Fault::Shutdown);
                }
            }
            Input::Opened { source }
            | Input::Arrived { source }
            | Input::Lost { source, .. }
            | Input::Media { from: Writer::Source(source), .. } => {
                if truth.sources.get(source).is_some_and(|row| row.gone) {
                    self.faults.add(Fault::LateSource);
                }
            }
            Input::Tick | Input::KeyFrameWanted { .. } => {}
            Input::Poll { .. } | Input::Playlist { .. } | Input::Polled { .. } => {}
            Input::Tune { .. }
            | Input::Fetch { .. }
            | Input::Forwarded { .. }
            | Input::Failed { .. }
            | Input::Finished { .. }
            | Input::Stalled { .. }
            | Input::Closed { .. } => {}
        }
    }

    fn end(&mut self, now: Time, truth: &Truth, session: SessionId, reason: EndReason) {
        let Some(row) = truth.sessions.get(&session) else { return };
        let last = row.stream.at(now).last_any().filter(|_| !row.stream.is_open());
        let of_transport = matches!(reason, EndReason::DtlsClosed | EndReason::IceFailed | EndReason::Bye);
        if of_transport && last.is_some_and(|last| now.since(last) > Duration::from_millis(500)) {
            self.faults.add(Fault::LateFin);
        }
        match reason {
            EndReason::Deleted if !row.is_live() => self.faults.add(Fault::LateDelete),
            _ if !row.is_live() => self.faults.add(Fault::DoubledEnd),
            EndReason::Kicked => self.faults.add(Fault::Kick),
            EndReason::NegotiationFailed => self.faults.add(Fault::FailedAnswer),
            _ => {}
        }
        if row.is_live() && !truth.places[row.endpoint].held.is_empty() {
            self.marks.add(Mark::EndedWhileHeldFor);
        }
    }

    fn released(&mut self, now: Time, truth: &Truth, session: SessionId) {
        let Some(row) = truth.sessions.get(&session) else { return };
        match row.finished {
            None => self.faults.add(Fault::EarlyRelease),
            Some(_) if row.released => {
                self.faults.add(Fault::DoubledRelease);
                if truth.places[row.endpoint].slots[row.slot].is_some() {
                    self.marks.add(Mark::LateReleaseAfterRegrant);
                }
            }
            Some((_, at)) if now.since(at) > Duration::from_millis(50) => self.faults.add(Fault::SlowRelease),
            Some(_) => {}
        }
    }

    /// Before the truth takes an output in.
    pub fn output(&mut self, now: Time, truth: &Truth, output: &Output) {
        match output {
            Output::Start { request, hold, .. } => self.start(now, truth, *request, hold.slot as usize),
            Output::Refuse { request, reason } => self.refuse(now, truth, *request, *reason),
            Output::Finish { session, reason } => self.finish(now, truth, *session, *reason),
            Output::KeyFrame { .. } => self.marks.add(Mark::KeyFrameAsked),
            Output::Rebuild { .. } => {
                self.faults.add(Fault::Wedge);
                self.marks.add(Mark::Rebuilt);
            }
            Output::ViewerEnd { reason, .. } => self.marks.add(match reason {
                ViewerEnd::Slow => Mark::ViewerEndedSlow,
                ViewerEnd::Idle => Mark::ViewerEndedIdle,
                ViewerEnd::Shutdown => Mark::ViewerEndedShutdown,
                ViewerEnd::Ended => Mark::ViewerEndedEnded,
                ViewerEnd::NoSource => Mark::ViewerEndedNoSource,
                ViewerEnd::Stuck => Mark::ViewerEndedStuck,
                _ => return,
            }),
            Output::Open { .. } | Output::Joined { .. } | Output::Note(_) => self.pull_output(now, truth, output),
            Output::Accept { .. } | Output::Ready { .. } | Output::Close { .. } | Output::SourceKeyFrame { .. } => {}
            Output::Polls { .. } | Output::Playlist { .. } => {}
            Output::Fetch { .. } | Output::Cut { .. } | Output::Drop { .. } => {}
        }
    }

    fn start(&mut self, now: Time, truth: &Truth, request: RequestId, slot: usize) {
        let Some(post) = truth.posts.get(&request) else { return };
        if now == post.arrived {
            self.marks.add(Mark::GrantedAtOnce);
        }
        let before = truth.places[post.endpoint].last[slot].and_then(|session| truth.sessions.get(&session));
        let last = before.and_then(|row| row.finished);
        match (truth.places[post.endpoint].settings.takeover, last) {
            _ if now == post.arrived => {}
            (Takeover::Refuse, _) => self.marks.add(Mark::GrantedUnderRefuse),
            (Takeover::NewestWins, _) => self.marks.add(Mark::GrantedUnderNewestWins),
            (Takeover::DisplaceDead, Some((EndReason::Displaced, _))) => {
                self.marks.add(Mark::GrantedAfterDisplacement);
            }
            (Takeover::DisplaceDead, _) => self.marks.add(Mark::GrantedAfterLeaving),
        }
        match truth.places[post.endpoint].held.len() {
            0 | 1 => {}
            2..5 => self.marks.add(Mark::TwoWaiting),
            _ => self.marks.add(Mark::FiveWaiting),
        }
    }

    fn refuse(&mut self, now: Time, truth: &Truth, request: RequestId, reason: RefuseReason) {
        self.marks.add(match reason {
            RefuseReason::HolderLive => Mark::RefusedHolderLive,
            RefuseReason::HolderNegotiating => Mark::RefusedHolderNegotiating,
            RefuseReason::HolderWithoutAudio => Mark::RefusedHolderWithoutAudio,
            RefuseReason::TakeoverTimeout => Mark::RefusedTakeoverTimeout,
            RefuseReason::TooManyWaiting => Mark::RefusedTooManyWaiting,
            RefuseReason::NegotiationFailed => Mark::RefusedNegotiationFailed,
            RefuseReason::Ended => Mark::RefusedEnded,
            RefuseReason::Draining => Mark::RefusedDraining,
            RefuseReason::TooManyViewers => Mark::RefusedTooManyViewers,
            RefuseReason::NotFound => Mark::RefusedNotFound,
            RefuseReason::StartTimeout => Mark::RefusedStartTimeout,
            RefuseReason::NoSource => Mark::RefusedNoSource,
            _ => return,
        });
        if let Some(join) = truth.joins.iter().find(|join| join.request == request) {
            match reason {
                RefuseReason::NoSource if join.at == now => self.marks.add(Mark::RefusedFromMemory),
                RefuseReason::Draining if join.at < now => self.marks.add(Mark::DrainedWhileWaiting),
                _ => {}
            }
        }
        let Some(post) = truth.posts.get(&request) else { return };
        match (reason, post.fate) {
            (RefuseReason::Draining, Fate::Held) if post.arrived < now => self.marks.add(Mark::DrainedWhileHeld),
            (RefuseReason::Draining, Fate::Negotiating(_)) => self.marks.add(Mark::DrainedWhileNegotiating),
            (RefuseReason::HolderNegotiating, Fate::Held) if post.arrived < now => {
                self.marks.add(Mark::LoserAfterWinner);
            }
            (RefuseReason::HolderLive, Fate::Held) => {
                // Audio long gone, other packets just now: the microphone is off and the publisher lives.
                let dead_after = truth.places[post.endpoint].settings.dead_after;
                let muted = truth.holders(post.endpoint).any(|(_, row)| {
                    let evidence = row.stream.at(now);
                    evidence.audio.last.is_some_and(|last| last + dead_after < now) && row.stream.is_open()
                });
                if muted {
                    self.marks.add(Mark::SparedMuted);
                }
            }
            (RefuseReason::HolderWithoutAudio, _) => self.marks.add(Mark::SparedVideoOnly),
            _ => {}
        }
    }

    fn finish(&mut self, now: Time, truth: &Truth, session: SessionId, reason: EndReason) {
        self.marks.add(match reason {
            EndReason::Deleted => Mark::EndedDeleted,
            EndReason::NegotiationFailed => Mark::EndedNegotiationFailed,
            EndReason::ClientGone => Mark::EndedClientGone,
            EndReason::IceFailed => Mark::EndedIceFailed,
            EndReason::DtlsClosed => Mark::EndedDtlsClosed,
            EndReason::Bye => Mark::EndedBye,
            EndReason::Inactive => Mark::EndedInactive,
            EndReason::SetupTimeout => Mark::EndedSetupTimeout,
            EndReason::Displaced => Mark::EndedDisplaced,
            EndReason::Kicked => Mark::EndedKicked,
            EndReason::Shutdown => Mark::EndedShutdown,
        });
        let Some(row) = truth.sessions.get(&session) else { return };
        if reason == EndReason::SetupTimeout && !row.accepted {
            self.faults.add(Fault::LostAnswer);
        }
        if reason != EndReason::Displaced {
            return;
        }
        if truth.places[row.endpoint].settings.takeover == Takeover::NewestWins {
            return self.marks.add(Mark::DisplacedByNewest);
        }
        let others = || truth.holders(row.endpoint).filter(|(id, _)| *id != session).map(|(_, row)| row.stream.at(now));
        if others().any(|evidence| evidence.audio.last.is_some()) {
            self.marks.add(Mark::DeadFoundAmongSeveral);
        }
        if others().any(|evidence| evidence.audio.last.is_none() && evidence.video.last.is_some()) {
            self.marks.add(Mark::DeadBesideVideoOnly);
        }
    }
}
