//! What happened in a run, as one page that anybody can open: a lane for each slot, session, channel, viewer, user and account.
//!
//! | file | question |
//! |---|---|
//! | `lanes` | what is drawn, whatever it is about? |
//! | `publish`, `pull`, `playback` | what became of slots, of channels, of users and accounts? |
//! | `viewers` | who watched, and who waited for an answer? |
//! | `words` | why, in a sentence? |
//! | `page` | how is it written? |
//! | `tape` | how does a simulated run hand out what it was? |

mod lanes;
mod page;
mod playback;
mod publish;
mod pull;
#[cfg(test)]
mod tests;
mod viewers;
mod words;

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::{AccountId, EndpointId, FeedId, Input, Note, Output, UserId, Viewing};
use holdfast_core::journal::{self, JournalFault, Step};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;

use crate::shrink::quiet::quietly;
use crate::tape::Tape;
use lanes::{Board, Group, Key, Lane, LaneId, Texts, Weight};
pub use page::page;

/// A run, ready to be drawn.
#[derive(Debug)]
pub struct Story {
    title: String,
    begin: Time,
    end: Time,
    calls: u64,
    lanes: Vec<Lane>,
    texts: Texts,
    broken: Option<Broken>,
}

/// The invariant that broke in the end.
#[derive(Clone, Debug)]
struct Broken {
    at: Time,
    id: String,
    what: String,
}

/// What a journal tells. One that begins in the middle of a run begins with whatever is there by then.
///
/// # Errors
/// What is wrong with the journal, as [`journal::replay`] finds it.
pub fn of_journal(bytes: &[u8]) -> Result<Story, JournalFault> {
    let mut teller = Teller::default();
    journal::replay(bytes, |step| teller.step(&step))?;
    Ok(teller.finish())
}

/// The same of a journal that may be cut off, broken, or not repeat: what it shows up to there, and that it strays there. Where there is
/// not even a head, nothing.
#[must_use]
pub fn as_far_as_it_goes(bytes: &[u8]) -> Story {
    let mut teller = Teller::default();
    match quietly(|| journal::replay(bytes, |step| teller.step(&step))) {
        Ok(Ok(_)) => {}
        Ok(Err(fault)) => teller.stray(&fault.to_string()),
        Err(what) => teller.stray(&format!("the core panics: {what}")),
    }
    teller.finish()
}

/// What simulated edges were given, one after the other; `None` where there is none. What a journal that does not repeat shows up to
/// there is shown: it is why somebody looks.
pub(crate) fn of_tapes(tapes: &[Tape]) -> Option<Story> {
    let mut teller = Teller::default();
    for (number, tape) in tapes.iter().enumerate() {
        match (tapes.len(), tape.name.as_str()) {
            (1, _) => {}
            (_, "") => teller.next(&format!("edge {}", number + 1)),
            (_, name) => teller.next(name),
        }
        let mut faults = tape.faults.iter().peekable();
        // Where the core panics in the run, it does so here, too: what was before that is what somebody wants to see.
        let played = panic::catch_unwind(AssertUnwindSafe(|| {
            journal::replay(&tape.whole, |step| {
                teller.step(&step);
                while let Some((at, _, name)) = faults.next_if(|(_, call, _)| *call <= step.call) {
                    teller.fault(*at, name, &met(step.input));
                }
            })
        }));
        faults.for_each(|(at, _, name)| teller.fault(*at, name, ""));
        match played {
            Ok(Ok(_)) => {}
            Ok(Err(fault)) => teller.stray(&fault.to_string()),
            Err(_) => teller.stray("the core panics"),
        }
    }
    (!tapes.is_empty()).then(|| teller.finish())
}

/// Which input a fault came with.
fn met(input: &Input) -> String {
    match input {
        Input::Tick => String::from("with the time that passed"),
        Input::Media { from, .. } => format!("with media from {from:?}"),
        input => format!("with {input:?}"),
    }
}

impl Story {
    /// The same, under this heading.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The same, and an invariant broke at `at`; at its end if that is not known.
    #[must_use]
    pub fn broken(mut self, at: Time, id: impl Into<String>, what: impl Into<String>) -> Self {
        let at = if at == Time::NEVER { self.end } else { at };
        self.end = self.end.max(at);
        self.broken = Some(Broken { at, id: id.into(), what: what.into() });
        self
    }
}

/// What one step of a run shows.
struct Scene<'a> {
    part: u32,
    prefix: &'a str,
    now: Time,
    edge: &'a Edge,
    input: &'a Input,
    outputs: &'a [Output],
}

impl Scene<'_> {
    fn config(&self) -> &Config {
        self.edge.config()
    }

    fn key(&self, group: Group, a: u64, b: u64) -> Key {
        (group, self.part, a, b)
    }

    fn named(&self, name: String) -> String {
        if self.prefix.is_empty() { name } else { format!("{} · {name}", self.prefix) }
    }

    fn notes(&self) -> impl Iterator<Item = &Note> {
        self.outputs.iter().filter_map(|output| if let Output::Note(note) = output { Some(note) } else { None })
    }

    fn endpoint(&self, endpoint: EndpointId) -> &str {
        self.config().endpoints.get(endpoint.0 as usize).map_or("?", |own| own.name.as_str())
    }

    fn user(&self, user: UserId) -> &str {
        self.config().users.get(user.0 as usize).map_or("?", |own| own.name.as_str())
    }

    /// People count from 1.
    fn feed(&self, feed: FeedId) -> String {
        let mut left = feed.index();
        for endpoint in &self.config().endpoints {
            match endpoint.slots as usize {
                1 if left == 0 => return endpoint.name.clone(),
                slots if left < slots => return format!("{} slot {}", endpoint.name, left + 1),
                slots => left -= slots,
            }
        }
        match self.config().channels.get(left) {
            Some(channel) => channel.name.clone(),
            None => String::from("a title's stream"),
        }
    }

    fn item(&self, item: Item) -> String {
        match (item.feed(), item.title()) {
            (Some(feed), _) => format!("{} ({})", self.feed(feed), item.kind()),
            (_, Some(title)) => format!("title {} ({})", title.0, item.kind()),
            (None, None) => item.kind().to_owned(),
        }
    }

    fn viewing(&self, viewing: &Viewing) -> String {
        format!("{}, user {}", self.item(viewing.item), self.user(viewing.user))
    }

    fn account(&self, account: AccountId) -> String {
        let mut left = account.0 as usize;
        for provider in &self.config().providers {
            if left < provider.accounts.len() {
                return format!("{} account {}", provider.name, left + 1);
            }
            left -= provider.accounts.len();
        }
        format!("account {}", account.0 + 1)
    }

    fn edge_lane(&self, board: &mut Board) -> LaneId {
        board.lane(self.key(Group::Edge, 0, 0), || self.named(String::from("the edge")))
    }
}

/// Follows runs step by step and writes down what they show.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    board: Board,
    /// Runs told before this one.
    part: u32,
    prefix: String,
    begun: bool,
    begin: Option<Time>,
    end: Time,
    calls: u64,
    publish: publish::Stage,
    pull: pull::Stage,
    playback: playback::Stage,
    viewers: viewers::Stage,
    faults: BTreeMap<&'static str, LaneId>,
}

impl Teller {
    /// Another run comes, of this name.
    pub fn next(&mut self, name: &str) {
        if self.begun {
            self.close_part();
            self.part += 1;
        }
        name.clone_into(&mut self.prefix);
    }

    pub fn step(&mut self, step: &Step<'_>) {
        let (now, edge, input, outputs) = (step.now, step.edge, step.input, step.outputs);
        self.begin = Some(self.begin.unwrap_or(now).min(now));
        self.end = self.end.max(now);
        self.calls += 1;
        let scene = Scene { part: self.part, prefix: &self.prefix, now, edge, input, outputs };
        let board = &mut self.board;
        self.publish.step(board, &scene);
        self.pull.step(board, &scene);
        self.playback.step(board, &scene);
        self.viewers.step(board, &scene);
        if !self.begun {
            self.begun = true;
            self.publish.adopt(board, &scene);
            self.pull.adopt(board, &scene);
            self.playback.adopt(board, &scene);
            self.viewers.adopt(board, &scene);
        }
        for note in scene.notes() {
            if let Some((weight, word, why)) = of_the_edge(note) {
                let lane = scene.edge_lane(board);
                board.mark(lane, now, weight, word, &why);
            }
        }
    }

    /// A simulator did something.
    pub fn fault(&mut self, at: Time, name: &'static str, what: &str) {
        self.begin = Some(self.begin.unwrap_or(at).min(at));
        self.end = self.end.max(at);
        let number = self.faults.len() as u64;
        let board = &mut self.board;
        let lane = *self
            .faults
            .entry(name)
            .or_insert_with(|| board.lane((Group::Faults, 0, number, 0), || String::from(name)));
        board.mark(lane, at, Weight::Fault, name, what);
    }

    /// A journal does not repeat its run.
    fn stray(&mut self, fault: &str) {
        let lane = self.board.lane((Group::Edge, self.part, 0, 0), || String::from("the edge"));
        self.board.mark(
            lane,
            self.end,
            Weight::Loss,
            "strays",
            &format!("the journal does not repeat the run: {fault}"),
        );
    }

    fn close_part(&mut self) {
        self.pull.finish(&mut self.board, self.end);
        self.publish = publish::Stage::default();
        self.pull = pull::Stage::default();
        self.playback = playback::Stage::default();
        self.viewers = viewers::Stage::default();
        self.board.end_all(self.end);
        self.begun = false;
    }

    pub fn finish(mut self) -> Story {
        self.close_part();
        let (lanes, texts) = self.board.close(self.end);
        let begin = self.begin.unwrap_or(Time::ZERO);
        let title = String::from("Holdfast journal");
        Story { title, begin, end: self.end, calls: self.calls, lanes, texts, broken: None }
    }
}

/// What concerns everybody.
fn of_the_edge(note: &Note) -> Option<(Weight, &'static str, String)> {
    Some(match note {
        Note::Draining { sessions, viewers } => {
            let why = format!("the program stops: nobody new comes in; {sessions} sessions and {viewers} viewers end");
            (Weight::Loss, "stops", why)
        }
        Note::LibraryFault { library, why, .. } => {
            (Weight::Notice, "library", format!("library {library} cannot be looked through: {why}"))
        }
        Note::RateLimited { peer, refused } => {
            (Weight::Notice, "too many requests", format!("{peer} sends more than it may: {refused} were refused"))
        }
        Note::ConnectionsFull { limit } => {
            (Weight::Loss, "full", format!("clients are turned away: there are {limit} connections, as many as may be"))
        }
        Note::LoginFailed { peer, failures, .. } => {
            (Weight::Notice, "login failed", format!("{peer} could not log in: {failures} times"))
        }
        _ => return None,
    })
}
