//! A viewer of a feed: joins, reads fast or slowly or not at all, leaves or is ended, and comes back.

use std::time::Duration;

use holdfast_core::input::{FeedId, FeedKind, Input, RequestId, ViewerId, ViewerKind};
use rand::Rng;
use rand::rngs::SmallRng;

use super::chance::{Fault, Mark, pick, span};
use super::options::Actor;
use super::oracle::Broken;
use super::playback::Player;
use super::rows::Rows;
use super::truth::Chunk;
use super::{Event, Owner, World};

/// Begins with a line of cache.
#[repr(align(64))]
pub(super) struct Viewer {
    pub dice: SmallRng,
    /// For whom it watches, if it has to say so. Apart, for in a crowd nobody has to.
    pub player: Option<Box<Player>>,
    feed: FeedId,
    id: Option<ViewerId>,
    /// Its request that has no answer yet.
    asking: Option<RequestId>,
    pace: Pace,
    /// A read is planned.
    reading: bool,
    life: u32,
}

impl Viewer {
    pub fn is(&self, id: ViewerId) -> bool {
        self.id == Some(id)
    }

    pub fn feed(&self) -> FeedId {
        self.feed
    }

    /// Neither watches nor asks.
    pub fn is_idle(&self) -> bool {
        self.id.is_none() && self.asking.is_none()
    }

    fn polls(&self) -> bool {
        self.player.as_ref().is_some_and(|player| player.hls)
    }
}

/// Who watches, by places in the list of viewers.
#[derive(Default)]
pub(super) struct Seats {
    of: Rows<ViewerKind, usize>,
    /// Each in order.
    at: Rows<FeedKind, Vec<usize>>,
}

impl Seats {
    fn take(&mut self, id: ViewerId, feed: FeedId, index: usize) {
        self.of.insert(id, index);
        if !self.at.contains_key(&feed) {
            self.at.insert(feed, Vec::new());
        }
        let at = self.at.get_mut(&feed);
        if let Some((at, place)) = at.and_then(|at| at.binary_search(&index).err().map(|place| (at, place))) {
            at.insert(place, index);
        }
    }

    fn leave(&mut self, feed: FeedId, index: usize) {
        let at = self.at.get_mut(&feed);
        if let Some((at, place)) = at.and_then(|at| at.binary_search(&index).ok().map(|place| (at, place))) {
            at.remove(place);
        }
    }

    /// The last place of a viewer; it may have left it.
    pub fn of(&self, id: ViewerId) -> Option<usize> {
        self.of.get(&id).copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Everything, as soon as it is there.
    Fast,
    /// So many bytes each half second.
    Slow(u64),
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Join,
    Read,
    Stop,
    Leave,
    HangUp,
    /// It asks for a playlist or a segment.
    Poll,
    /// It opens the next before it closes this.
    Overlap,
}

impl World<'_> {
    pub(super) fn add_viewer(&mut self, feed: FeedId, first: Duration) -> usize {
        let index = self.viewers.len();
        let dice = super::generator(self.seed, 10_000 + index as u64);
        let (id, asking, pace, player) = (None, None, Pace::Fast, None);
        self.viewers.push(Viewer { dice, feed, id, asking, pace, reading: false, life: 0, player });
        self.viewer_step(index, first, Step::Join);
        index
    }

    pub(super) fn viewer_step(&mut self, index: usize, delay: Duration, step: Step) {
        let life = self.viewers[index].life;
        self.plan_event(self.now + delay, Event::Viewer { index, life, step });
    }

    /// Its request was answered: it watches.
    pub(super) fn watching(&mut self, index: usize, id: ViewerId) -> Result<(), Broken> {
        let viewer = &mut self.viewers[index];
        let (plan, dice) = (&self.plan, &mut viewer.dice);
        let stop = plan.strikes(Fault::ViewerStops, dice).then(|| span(dice, 0, 20_000));
        let slow = plan.strikes(Fault::ViewerSlow, dice).then(|| dice.random_range(1..400));
        let leave = (!self.healed && dice.random_bool(0.5)).then(|| span(dice, 0, 40_000));
        (viewer.id, viewer.asking) = (Some(id), None);
        viewer.pace = slow.map_or(Pace::Fast, Pace::Slow);
        self.seats.take(id, viewer.feed, index);
        self.read_soon(index);
        if let Some(after) = stop {
            self.viewer_step(index, after, Step::Stop);
        }
        if let Some(after) = leave {
            self.viewer_step(index, after, Step::Leave);
        }
        let viewer = &mut self.viewers[index];
        if !self.healed && viewer.player.is_some() && self.plan.strikes(Fault::OpenBeforeClose, &mut viewer.dice) {
            let after = span(&mut viewer.dice, 0, 10_000);
            self.viewer_step(index, after, Step::Overlap);
        }
        match self.viewers[index].polls() {
            true => self.start_polling(index, id),
            false => Ok(()),
        }
    }

    /// Its request was refused.
    pub(super) fn turned_away(&mut self, index: usize) {
        self.viewers[index].life += 1;
        self.viewers[index].asking = None;
        let at_once = self.asks_at_once(index);
        let delay = at_once.unwrap_or_else(|| span(&mut self.viewers[index].dice, 300, 10_000));
        self.viewer_step(index, delay, Step::Join);
    }

    pub(super) fn viewer_ended(&mut self, id: ViewerId) {
        let Some(index) = self.seats.of(id).filter(|index| self.viewers[*index].is(id)) else { return };
        if let Some(row) = self.truth.viewers.get(&id)
            && row.writers > 1
        {
            self.mark(Mark::ViewerAcrossSessions);
        }
        self.gone(index, id);
    }

    fn gone(&mut self, index: usize, id: ViewerId) {
        let viewer = &mut self.viewers[index];
        viewer.life += 1;
        (viewer.id, viewer.asking, viewer.reading) = (None, None, false);
        self.seats.leave(viewer.feed, index);
        let late = self.plan.strikes(Fault::LateViewer, &mut viewer.dice);
        let (delay, mut again) = (span(&mut viewer.dice, 0, 5_000), span(&mut viewer.dice, 500, 15_000));
        if viewer.player.is_some() && viewer.dice.random_bool(0.5) {
            again /= 10;
        }
        if late {
            self.send_after(delay, Input::Leave { viewer: id });
            self.send_after(delay, Input::Sent { viewer: id, bytes: 188 });
        }
        self.viewer_step(index, again, Step::Join);
        self.zap(index);
    }

    /// There are bytes in a feed.
    pub(super) fn readable(&mut self, feed: FeedId) {
        let Some(there) = self.seats.at.get_mut(&feed).map(std::mem::take) else { return };
        there.iter().for_each(|index| self.read_soon(*index));
        if let Some(at) = self.seats.at.get_mut(&feed) {
            *at = there;
        }
    }

    fn read_soon(&mut self, index: usize) {
        let viewer = &mut self.viewers[index];
        if viewer.reading || viewer.polls() {
            return;
        }
        let delay = match viewer.pace {
            Pace::Fast => Duration::from_micros(viewer.dice.random_range(0..2_000)),
            Pace::Slow(_) => Duration::from_millis(500),
            Pace::Stopped => return,
        };
        viewer.reading = true;
        self.viewer_step(index, delay, Step::Read);
    }

    pub(super) fn viewer(&mut self, index: usize, life: u32, step: Step) -> Result<(), Broken> {
        if self.viewers[index].life != life {
            return Ok(());
        }
        match (step, self.viewers[index].id) {
            (Step::Join, None) if !self.healed && self.viewers[index].asking.is_none() => self.join(index),
            (Step::HangUp, None) => {
                let Some(request) = self.viewers[index].asking.take() else { return Ok(()) };
                self.viewers[index].life += 1;
                self.zap(index);
                let again = span(&mut self.viewers[index].dice, 0, 5_000);
                self.viewer_step(index, again, Step::Join);
                self.deliver(Input::Hangup { request })
            }
            (Step::Read, Some(id)) => match self.driver.still {
                // It is the driver that writes to sockets.
                Some(until) => {
                    self.viewer_step(index, until.since(self.now), Step::Read);
                    Ok(())
                }
                None => self.read(index, id),
            },
            (Step::Stop, Some(_)) => {
                self.witness.faults.add(Fault::ViewerStops);
                self.viewers[index].pace = Pace::Stopped;
                Ok(())
            }
            (Step::Poll, Some(id)) if self.viewers[index].pace != Pace::Stopped => self.poll_again(index, id),
            (Step::Overlap, Some(_)) => {
                self.overlap(index);
                Ok(())
            }
            // Who polls leaves by asking no more.
            (Step::Leave, Some(_)) if !self.healed && self.viewers[index].polls() => {
                self.viewers[index].pace = Pace::Stopped;
                Ok(())
            }
            (Step::Leave, Some(id)) => {
                self.gone(index, id);
                self.deliver(Input::Leave { viewer: id })
            }
            _ => Ok(()),
        }
    }

    /// Everybody who watches a feed, or waits for it, goes.
    pub(super) fn all_leave(&mut self, feed: FeedId) -> Result<(), Broken> {
        for index in 0..self.viewers.len() {
            let viewer = &self.viewers[index];
            let (life, step) = (viewer.life, if viewer.id.is_some() { Step::Leave } else { Step::HangUp });
            if viewer.feed == feed {
                self.viewer(index, life, step)?;
            }
        }
        Ok(())
    }

    fn join(&mut self, index: usize) -> Result<(), Broken> {
        if !self.attends(Actor::Viewer(index as u32)) {
            return Ok(());
        }
        let request = self.request(Some(Owner::Viewer(index)));
        let viewer = &mut self.viewers[index];
        viewer.asking = Some(request);
        let feed = viewer.feed;
        let hangs_up = self.plan.strikes(Fault::HangUpWaiting, &mut viewer.dice);
        let patience = hangs_up.then(|| span(&mut viewer.dice, 0, 4_000));
        if let Some(after) = patience {
            self.viewer_step(index, after, Step::HangUp);
        }
        let play = self.play(index, request);
        self.deliver(play.unwrap_or(Input::Join { request, feed }))
    }

    /// Next time it may watch another channel.
    fn zap(&mut self, index: usize) {
        let viewer = &mut self.viewers[index];
        let of_channel = self.truth.channel_of(viewer.feed).is_some();
        if of_channel && self.plan.strikes(Fault::Zap, &mut viewer.dice) {
            let next = pick(&mut viewer.dice, &self.truth.channels).feed;
            if next != viewer.feed {
                self.witness.faults.add(Fault::Zap);
                viewer.feed = next;
                if let Some(player) = &mut viewer.player {
                    player.token = None;
                }
            }
        }
    }

    fn read(&mut self, index: usize, id: ViewerId) -> Result<(), Broken> {
        let viewer = &mut self.viewers[index];
        viewer.reading = false;
        let most = match viewer.pace {
            Pace::Fast => u64::MAX,
            Pace::Slow(bytes) => bytes,
            Pace::Stopped => return Ok(()),
        };
        let slow = viewer.pace != Pace::Fast;
        let (bytes, left) = self.court().check_bytes(id, most)?;
        if slow && left > 0 {
            self.witness.faults.add(Fault::ViewerSlow);
            self.read_soon(index);
        }
        if bytes == 0 {
            return Ok(());
        }
        self.call(Input::Sent { viewer: id, bytes })
    }

    /// Every fast viewer has read everything its feed holds.
    pub(super) fn all_read(&self) -> Result<(), Broken> {
        for viewer in &self.viewers {
            let Some(row) = viewer.id.and_then(|id| self.truth.viewers.get(&id)) else { continue };
            let recent = self.truth.live.flush_interval + Duration::from_millis(5);
            let old = |chunk: &&Chunk| chunk.came + recent < self.now;
            let head =
                self.truth.feeds[&row.feed].chunks.iter().rev().find(old).map_or(0, |chunk| chunk.at + chunk.length);
            let behind = row.cursor.is_some_and(|cursor| cursor < head);
            if viewer.pace == Pace::Fast && behind && !viewer.polls() {
                let what = format!("{:?} reads all it is offered and stands at {:?} of {head}", viewer.id, row.cursor);
                return Err(Broken { id: "feed-3", what });
            }
        }
        Ok(())
    }
}
