//! Says which branch of titles and accounts was taken, by what the truth knows before it takes an input or output in.

use holdfast_core::account::Holder;
use holdfast_core::input::{Input, Note, Output, RefuseReason, ViewerEnd, Want};
use holdfast_core::playback::Place;
use holdfast_core::time::Time;

use super::super::Witness;
use super::super::chance::{Fault, Mark};
use super::super::truth::Truth;
use super::truth::Stage;

impl Witness {
    /// Before the core and the truth take an input in.
    pub fn title_input(&mut self, truth: &Truth, input: &Input) {
        let titles = &truth.titles;
        match input {
            Input::Closed { allocation }
                if titles.allocations.get(allocation).is_some_and(|row| row.closed.is_some()) =>
            {
                self.faults.add(Fault::DoubledClosed);
            }
            Input::Forwarded { request } | Input::Stalled { request } | Input::Failed { request, .. }
                if titles.requests.get(request).is_some_and(|row| row.stage == Stage::Over) =>
            {
                self.faults.add(Fault::LateRelay);
            }
            Input::Finished { request, .. }
                if titles.requests.get(request).is_some_and(|row| row.stage == Stage::Over) =>
            {
                self.faults.add(Fault::LateRelay);
            }
            Input::Hangup { request }
                if titles.requests.get(request).is_some_and(|row| row.stage == Stage::Waiting) =>
            {
                self.faults.add(Fault::HangUpFetching);
            }
            Input::Drain if !truth.draining && !titles.open.is_empty() => self.marks.add(Mark::TitleDrained),
            _ => {}
        }
    }

    /// Before the truth takes an output in.
    pub fn title_output(&mut self, now: Time, truth: &Truth, input: &Input, output: &Output) {
        let titles = &truth.titles;
        match *output {
            Output::Fetch { request, playback, grant, token, .. } => {
                let Some(row) = titles.requests.get(&request) else { return };
                self.marks.add(if row.asked == now { Mark::FetchedAtOnce } else { Mark::FetchedAfterWait });
                match row.want() {
                    Some(Want::Look) => self.marks.add(Mark::FetchedLook),
                    Some(Want::Part) if row.asked < now && !row.failed => self.marks.add(Mark::FetchedPartInTurn),
                    _ => {}
                }
                if row.failed {
                    self.marks.add(Mark::FailedOver);
                }
                let Some(grant) = grant else { return self.marks.add(Mark::FetchedLocal) };
                let known = playback.and_then(|id| titles.playbacks.get(&id));
                match known.and_then(|row| row.confirmed) {
                    Some((_, account)) if account == grant.account => self.marks.add(Mark::SameAccount),
                    Some(_) => self.marks.add(Mark::OtherAccount),
                    None => {}
                }
                if known.is_some_and(|row| row.kept.is_some()) {
                    self.marks.add(Mark::CameBackInWindow);
                }
                let asked = row.ask.as_ref().and_then(|ask| ask.token);
                if known.is_none() && asked.is_some() && asked == token {
                    self.marks.add(Mark::MadeAnew);
                }
                self.granted(truth, grant.account.0 as usize);
            }
            Output::Open { grant: Some(grant), .. } => {
                self.marks.add(Mark::TunedOpened);
                self.granted(truth, grant.account.0 as usize);
            }
            Output::Joined { request, .. } => {
                let Some(row) = titles.requests.get(&request) else { return };
                let feed = row.viewing.item.feed();
                let others = titles.open.iter().filter(|own| {
                    let other = &titles.requests[own];
                    other.viewing.item.feed() == feed && matches!(other.stage, Stage::Seen(_))
                });
                let shared = others.count() > 0;
                self.marks.add(match row.asked == now {
                    true if shared => Mark::TunedShared,
                    true => Mark::TunedLingering,
                    false => Mark::TunedWaited,
                });
            }
            Output::Refuse { request, reason } => {
                let Some(row) = titles.requests.get(&request) else { return };
                let live = row.ask.is_none();
                self.marks.add(match reason {
                    RefuseReason::ProviderLimit if live => Mark::TunedNoAccount,
                    RefuseReason::ProviderLimit if row.asked == now => Mark::NoAccountAtOnce,
                    RefuseReason::ProviderLimit => Mark::NoAccountInTime,
                    RefuseReason::ProviderFailed => Mark::RefusedProviderFailed,
                    RefuseReason::Superseded => Mark::RefusedSuperseded,
                    RefuseReason::Preempted => Mark::RefusedPreempted,
                    RefuseReason::PlaybackOver => Mark::RefusedPlaybackOver,
                    RefuseReason::UserLimit => Mark::TitleUserLimit,
                    RefuseReason::Kicked => Mark::TitleBlocked,
                    _ => return,
                });
            }
            Output::Drop { allocation } => {
                let silent = titles.allocations.get(&allocation).is_some_and(|row| {
                    row.confirmed.is_none() && now >= row.granted + titles.settings.starting_deadline
                });
                if silent {
                    self.marks.add(Mark::GivenUpSilent);
                }
            }
            Output::Cut { reason, .. } => {
                self.marks.add(match reason {
                    ViewerEnd::Superseded => Mark::CutSuperseded,
                    ViewerEnd::Preempted => Mark::CutPreempted,
                    ViewerEnd::Kicked => Mark::CutKicked,
                    ViewerEnd::Evicted => Mark::CutEvicted,
                    ViewerEnd::Shutdown => Mark::CutShutdown,
                    ViewerEnd::Limit => Mark::CutLimit,
                    ViewerEnd::GraceOver => Mark::CutGraceOver,
                    ViewerEnd::Expired => Mark::CutExpired,
                    _ => return,
                });
            }
            Output::ViewerEnd { reason: ViewerEnd::Preempted, .. } => self.marks.add(Mark::TunedPreempted),
            Output::Note(ref note) => match note {
                Note::AccountGraced { .. } => self.marks.add(Mark::AccountGraced),
                Note::AccountPreempted { holder, .. } => self.marks.add(match holder {
                    Holder::Playback(_) => Mark::PreemptedPlayback,
                    Holder::Source(_) => Mark::PreemptedSource,
                    Holder::Probe(_) => Mark::PreemptedProbe,
                }),
                Note::PlaybackStarted { place: Place::Soft, .. } => self.marks.add(Mark::TitleSoft),
                Note::PlaybackStarted { place: Place::Grace, .. } => self.marks.add(Mark::TitleByGrace),
                Note::PlaybackEnded { reason: ViewerEnd::Left, .. } if *input == Input::Tick => {
                    self.marks.add(Mark::WindowPassed);
                }
                Note::ChannelOff { .. } => self.marks.add(Mark::TunedOff),
                Note::PlaybackEvicted { .. } if matches!(input, Input::Fetch { ask, .. } if ask.want == Want::Setup) => {
                    self.marks.add(Mark::PlaylistMadeRoom);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn granted(&mut self, truth: &Truth, account: usize) {
        let account = &truth.titles.accounts[account];
        let limit = account.limit as usize;
        if limit > 0 && account.open.len() >= limit {
            self.marks.add(Mark::OneMoreThanThereAre);
        }
    }
}
