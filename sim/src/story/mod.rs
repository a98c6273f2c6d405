//! What happened in a run, as one page that anybody can open: a lane for each slot, session, channel, viewer, user and account.
//!
//! | file | question |
//! |---|---|
//! | `lanes` | what is drawn, whatever it is about? |
//! | `publish`, `pull`, `playback` | what became of slots, of channels, of users and accounts? |
//! | `viewers` | who watched, and who waited for an answer? |
//! | `weight` | how much does it matter? |
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
mod weight;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::{AccountId, EndpointId, FeedId, Input, Note, Output, UserId, Viewing};
use holdfast_core::journal::{self, Extent, JournalFault, Rest, Step};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;

use crate::shrink::quiet::quietly;
use crate::tape::Tape;
use lanes::{Board, Group, Key, Lane, LaneId, Texts, Weight};
pub use page::page;

/// Sentences of what happened. They are those of whoever asks for the story, so that a page says the same as the lines and the log that
/// somebody has beside it.
pub trait Words {
    /// A note.
    fn note(&self, note: &Note) -> String;
    /// An input.
    fn input(&self, input: &Input) -> String;
}

/// The words for edges of a configuration.
pub type Wording<'w> = &'w dyn Fn(&Config) -> Box<dyn Words>;

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
    clock: Clock,
}

/// From when time is counted, everywhere in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// As the trace of a simulated run does: from its beginning.
    Run,
    /// As `holdfast replay` does: from the first call that there is, and by the time of the day where that is known, in µs of
    /// [`Time::ZERO`] since 1970.
    Edge(Option<u64>),
}

/// The invariant that broke in the end.
#[derive(Clone, Debug)]
struct Broken {
    at: Time,
    id: String,
    what: String,
    call: Option<u64>,
}

/// What a journal tells. One that begins in the middle of a run begins with whatever is there by then.
///
/// # Errors
/// What is wrong with the journal, as [`journal::replay`] finds it.
pub fn of_journal(bytes: &[u8], wording: Wording<'_>) -> Result<Story, JournalFault> {
    let mut teller = Teller::new(wording);
    journal::replay(bytes, |step| teller.step(&step))?;
    Ok(teller.finish())
}

/// The same of a journal that may be cut off, broken, or not repeat: what it shows up to there, and that it strays there; where it is
/// broken, also what it shows from the next snapshot on. Where there is not even a head, nothing.
#[must_use]
pub fn as_far_as_it_goes(bytes: &[u8], wording: Wording<'_>) -> Story {
    let mut teller = Teller::new(wording);
    let mut bytes = Cow::Borrowed(bytes);
    loop {
        match quietly(|| journal::replay(&bytes, |step| teller.step(&step))) {
            Ok(Ok(_)) => {}
            Ok(Err(fault @ JournalFault::Truncated { .. })) => teller.ends_early("breaks off", &fault.to_string()),
            Ok(Err(JournalFault::Broken { at })) => match Rest::behind(&bytes, at) {
                Some(rest) => {
                    let (from, to) = (teller.board.call + 1, rest.calls);
                    teller.ends_early("lost", &format!("calls {from} to {to} are lost: the journal is broken there"));
                    teller.next(&format!("from call {}", to + 1));
                    teller.board.call = to;
                    bytes = Cow::Owned(rest.journal);
                    continue;
                }
                None => teller.ends_early("lost", "all behind is lost: the journal is broken here"),
            },
            Ok(Err(fault)) => teller.stray(&fault.to_string()),
            Err(what) => match Extent::of(&bytes, |_, _| ()) {
                // What was not checked may be anything.
                Ok(Extent { calls, fault: Some(fault), .. }) if teller.board.call >= calls => {
                    teller.ends_early("breaks off", &fault.to_string());
                }
                _ => teller.stray(&format!("the core panics: {what}")),
            },
        }
        return teller.finish();
    }
}

/// What simulated edges were given, one after the other; `None` where there is none. What a journal that does not repeat shows up to
/// there is shown: it is why somebody looks.
pub(crate) fn of_tapes(tapes: &[Tape], wording: Wording<'_>) -> Option<Story> {
    let mut teller = Teller::new(wording);
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
                    let met = teller.words.as_ref().map(|words| format!("with this: {}", words.input(step.input)));
                    teller.fault(*at, name, &met.unwrap_or_default());
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
        self.broken = Some(Broken { at, id: id.into(), what: what.into(), call: None });
        self
    }

    /// The same, and that was in this call, from 1.
    #[must_use]
    pub fn in_call(mut self, call: u64) -> Self {
        self.broken.iter_mut().for_each(|broken| broken.call = Some(call));
        self
    }

    /// The same of an edge that really ran: with the times that `holdfast replay` tells. `started` is the time of the day of
    /// [`Time::ZERO`] in µs since 1970, where that is known.
    #[must_use]
    pub fn of_an_edge(mut self, started: Option<u64>) -> Self {
        self.clock = Clock::Edge(started);
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
    words: &'a dyn Words,
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

    /// A note, in words.
    fn says(&self, note: &Note) -> String {
        self.words.note(note)
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
            (_, Some(title)) => format!("{title} ({})", item.kind()),
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
        account.to_string()
    }

    fn edge_lane(&self, board: &mut Board) -> LaneId {
        board.lane(self.key(Group::Edge, 0, 0), || self.named(String::from("the edge")))
    }
}

/// Follows runs step by step and writes down what they show.
pub(crate) struct Teller<'w> {
    wording: Wording<'w>,
    /// Those of the run that is told now.
    words: Option<Box<dyn Words>>,
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

impl<'w> Teller<'w> {
    pub fn new(wording: Wording<'w>) -> Self {
        Teller {
            wording,
            words: None,
            board: Board::default(),
            part: 0,
            prefix: String::new(),
            begun: false,
            begin: None,
            end: Time::ZERO,
            calls: 0,
            publish: publish::Stage::default(),
            pull: pull::Stage::default(),
            playback: playback::Stage::default(),
            viewers: viewers::Stage::default(),
            faults: BTreeMap::new(),
        }
    }

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
        let words = self.words.get_or_insert_with(|| (self.wording)(edge.config()));
        let words = &**words;
        let scene = Scene { part: self.part, prefix: &self.prefix, now, edge, input, outputs, words };
        let board = &mut self.board;
        board.call = step.call;
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
            if let Some((weight, word)) = of_the_edge(note) {
                let lane = scene.edge_lane(board);
                board.mark(lane, now, weight, word, &scene.says(note));
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
        self.ends_early("strays", &format!("the journal does not repeat the run: {fault}"));
    }

    /// There is no more to tell.
    fn ends_early(&mut self, word: &str, why: &str) {
        let lane = self.board.lane((Group::Edge, self.part, 0, 0), || String::from("the edge"));
        self.board.mark(lane, self.end, Weight::Loss, word, why);
    }

    fn close_part(&mut self) {
        self.pull.finish(&mut self.board, self.end);
        self.publish = publish::Stage::default();
        self.pull = pull::Stage::default();
        self.playback = playback::Stage::default();
        self.viewers = viewers::Stage::default();
        self.board.end_all(self.end);
        self.begun = false;
        self.words = None;
    }

    pub fn finish(mut self) -> Story {
        self.close_part();
        let (lanes, texts) = self.board.close(self.end);
        let begin = self.begin.unwrap_or(Time::ZERO);
        let title = String::from("Holdfast journal");
        Story { title, begin, end: self.end, calls: self.calls, lanes, texts, broken: None, clock: Clock::Run }
    }
}

/// What concerns everybody.
fn of_the_edge(note: &Note) -> Option<(Weight, &'static str)> {
    Some(match note {
        Note::Draining { .. } => (Weight::Loss, "stops"),
        Note::ClockSet { .. } => (Weight::Notice, "clock set"),
        Note::LibraryFault { .. } => (Weight::Notice, "library"),
        Note::RateLimited { .. } => (Weight::Notice, "too many requests"),
        Note::ConnectionsFull { .. } => (Weight::Loss, "full"),
        Note::LoginFailed { .. } => (Weight::Notice, "login failed"),
        Note::AccountNotLetIn { .. } => (Weight::Notice, "account not let in"),
        Note::LiveAsHls { .. } => (Weight::Notice, "live as hls"),
        Note::AccountOverstated { .. } => (Weight::Notice, "account overstated"),
        Note::LoginsLocked { .. } => (Weight::Notice, "locked out"),
        Note::CatalogFault { .. } => (Weight::Notice, "catalogue"),
        _ => return None,
    })
}
