//! Follows the core call by call and judges it, whoever gives it its inputs: actors ([`World`](super::World)) or a journal
//! ([`Hearing`](super::hearing::Hearing)).

use holdfast_core::edge::Edge;
use holdfast_core::input::{FeedId, Input, Note, Output, ViewerId, Writer};
use holdfast_core::time::Time;

use super::Witness;
use super::brief;
use super::chance::Mark;
use super::oracle::{Allowance, Bench, Broken, Verdict};
use super::truth::{Chunk, Truth, is_of};

/// One call of the core, in the middle of it.
pub(super) struct Court<'a> {
    pub now: Time,
    /// The core: before the call in [`Court::before`], after it in the others.
    pub edge: &'a Edge,
    pub truth: &'a mut Truth,
    pub witness: &'a mut Witness,
    pub allowance: Allowance,
}

impl Court<'_> {
    fn bench(&self) -> Bench<'_> {
        Bench { truth: self.truth, now: self.now, allowance: self.allowance }
    }

    /// What an input means before the core sees it. `clock` is the time that the core is given with it.
    pub fn before(&mut self, clock: Time, input: &Input) {
        self.witness.input(self.now, self.truth, input);
        self.witness.play_input(self.truth, input);
        self.witness.title_input(self.truth, input);
        self.truth.before(self.now, clock, input);
        // Whom an operator ends, as it stands before that.
        if let Input::Kick { playback, .. } = input {
            let row = self.edge.playback().get(*playback);
            let row = row.filter(|row| self.truth.titles.is_of(row.viewing.user));
            self.truth.titles.kicked = row.map(|row| (*playback, row.viewing));
        }
    }

    /// What came of an input, and whether that is right. Of one that is `stale` nothing may come.
    pub fn after(&mut self, input: &Input, outputs: &[Output], stale: bool) -> Verdict {
        self.name_playbacks(input);
        for output in outputs {
            if stale {
                return Err(Broken { id: "play-17", what: format!("{output:?} comes of {}", brief(input)) });
            }
            self.output(input, output)?;
        }
        let taken = self.taken(input)?;
        self.truth.after(self.now, input);
        self.truth.play_after(self.now);
        self.truth.title_after(self.now, input);
        self.truth.pull_after(self.now, input, taken);
        self.touched(input, outputs)
    }

    fn output(&mut self, input: &Input, output: &Output) -> Verdict {
        self.truth.shut |= matches!(output, Output::Note(Note::Draining { .. }));
        if self.truth.titles.concerns(output, self.truth.channels.len()) {
            let of_feeds = self.truth.titles.is_of_feeds(output);
            self.bench().title_output(input, output)?;
            self.witness.title_output(self.now, self.truth, input, output);
            if of_feeds {
                self.bench().output(input, output)?;
                self.witness.output(self.now, self.truth, output);
                self.truth.output(self.now, input, output);
            }
            self.truth.title_output(self.now, output);
            return Ok(());
        }
        self.truth.play_hear(self.now, output);
        self.bench().play_output(input, output)?;
        self.bench().output(input, output)?;
        self.witness.output(self.now, self.truth, output);
        self.witness.play_output(self.now, self.truth, output);
        self.truth.output(self.now, input, output);
        self.truth.play_output(self.now, input, output);
        Ok(())
    }

    /// What a request of nobody in particular came to be called.
    fn name_playbacks(&mut self, input: &Input) {
        let Input::Play { request, viewing } = input else { return };
        if self.truth.users.fresh != Some(*request) {
            return;
        }
        let users = &self.truth.users;
        let new = self.edge.playback().of_user(viewing.user).map(|(id, _)| id).find(|id| !users.known(*id));
        if let Some(id) = new {
            self.truth.users.name(id, *request);
        }
    }

    /// Whether a source's media went into its feed, which is judged.
    fn taken(&self, input: &Input) -> Result<bool, Broken> {
        let Input::Media { feed, from: Writer::Source(source), random_access, .. } = input else { return Ok(false) };
        let Some(row) = self.truth.feeds.get(feed) else { return Ok(false) };
        let bytes = self.edge.feeds().status(self.now, *feed).map_or(0, |status| status.bytes_in);
        self.bench().media(*source, random_access.is_some(), bytes > row.head)?;
        Ok(bytes > row.head)
    }

    /// Judges what something happened to.
    fn touched(&mut self, input: &Input, outputs: &[Output]) -> Verdict {
        if let Input::Media { from: Writer::Session(session), .. } = input
            && let Some(feed) = self.truth.sessions.get(session).map(|session| session.feed)
        {
            self.watch_starts(feed)?;
            self.bench().feed(self.edge, feed)?;
        }
        if let Input::Media { feed, from: Writer::Source(_), .. } = input {
            self.watch_starts(*feed)?;
            self.bench().feed(self.edge, *feed)?;
        }
        if let Input::KeyFrameWanted { feed } = input {
            self.bench().key_frame(*feed, outputs)?;
        }
        for output in outputs {
            match output {
                Output::Ready { feed } => self.watch_starts(*feed)?,
                Output::Joined { viewer, .. } => {
                    if let Some(feed) = self.truth.viewers.get(viewer).map(|viewer| viewer.feed) {
                        self.watch_starts(feed)?;
                    }
                }
                _ => {}
            }
        }
        self.bench().standing(self.edge)?;
        self.bench().titles_standing(self.edge)
    }

    /// Judges everything, and forgets what nothing can follow from any more.
    pub fn all(&mut self) -> Verdict {
        self.bench().all(self.edge)?;
        self.truth.titles.prune(self.now);
        Ok(())
    }

    /// Finds out which waiting viewers of a feed have started, and where.
    fn watch_starts(&mut self, feed: FeedId) -> Verdict {
        let Some(row) = self.truth.feeds.get(&feed).filter(|row| !row.waiting.is_empty()) else { return Ok(()) };
        let mut old = 0;
        let mut waited = 0;
        for viewer in &row.waiting {
            let Some(viewer_row) = self.truth.viewers.get_mut(viewer) else { continue };
            let unsent: u64 = self.edge.feeds().unsent(*viewer).map(|slice| slice.len() as u64).sum();
            if unsent == 0 {
                continue;
            }
            let at = row.head - unsent;
            let Some(chunk) = row.chunk(at).filter(|chunk| chunk.random_access && chunk.at == at) else {
                let what = format!("viewer {viewer} starts at {at}, which is no random access point");
                return Err(Broken { id: "feed-1", what });
            };
            // One that comes in now is newer than the deadline at which the viewer started.
            let newer = |newest: &Chunk| newest.at > at && newest.came < self.now;
            if row.random_access().is_some_and(newer) {
                return Err(Broken {
                    id: "feed-3",
                    what: format!("viewer {viewer} starts at {at}, before the newest point"),
                });
            }
            let age = self.now.since(chunk.came);
            viewer_row.cursor = Some(at);
            old += u64::from(age > self.truth.live.fresh);
            waited += u64::from(chunk.came > viewer_row.joined);
        }
        let (feeds, viewers) = (&mut self.truth.feeds, &self.truth.viewers);
        if let Some(row) = feeds.get_mut(&feed) {
            row.waiting.retain(|viewer| viewers.get(viewer).is_some_and(|row| row.cursor.is_none()));
        }
        (0..old).for_each(|_| self.witness.marks.add(Mark::ViewerStartedOld));
        (0..waited).for_each(|_| self.witness.marks.add(Mark::ViewerWaited));
        Ok(())
    }

    /// Reads at most `most` bytes of what the viewer is to be sent, each compared with what entered its feed. How many were
    /// read, how many are left.
    pub fn check_bytes(&mut self, id: ViewerId, most: u64) -> Result<(u64, u64), Broken> {
        let broken = |what: String| Err(Broken { id: "feed-1", what });
        let Some(row) = self.truth.viewers.get_mut(&id) else { return Ok((0, 0)) };
        let (feed, mut at) = (&self.truth.feeds[&row.feed], row.cursor);
        let (mut taken, mut left) = (0, 0);
        for slice in self.edge.feeds().unsent(id) {
            let Some(at) = &mut at else { return broken(format!("viewer {id} is sent bytes and has not started")) };
            let mut slice = slice;
            while !slice.is_empty() && taken < most {
                let Some(chunk) = feed.chunk(*at) else {
                    return broken(format!("viewer {id} is sent bytes at {at}, which its feed does not hold"));
                };
                let from = *at - chunk.at;
                let length = (chunk.length - from).min(slice.len() as u64).min(most - taken);
                let (now, rest) = slice.split_at(length as usize);
                if !is_of(now, chunk.serial, from) {
                    return broken(format!("viewer {id} is sent other bytes at {at} than entered its feed"));
                }
                if row.of != Some(chunk.from) {
                    row.of = Some(chunk.from);
                    row.writers += 1;
                }
                (*at, taken, slice) = (*at + length, taken + length, rest);
            }
            left += slice.len() as u64;
        }
        let end = at.map(|at| at + left);
        if end.is_some_and(|end| end != feed.head) {
            return broken(format!("viewer {id} is offered bytes up to {end:?}, its feed ends at {}", feed.head));
        }
        Ok((taken, left))
    }
}
