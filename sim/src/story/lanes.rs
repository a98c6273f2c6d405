//! Lanes with spans and marks on them: what a page draws, whatever it is about.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_core::time::Time;

/// What lanes are about; they stand in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// What concerns everybody.
    Edge,
    /// Who holds which slot, and who asks for it.
    Endpoints,
    /// Publishers.
    Sessions,
    /// Channels and the origins that are asked for them.
    Channels,
    /// What comes into feeds.
    Feeds,
    /// Who plays what in whose name.
    Users,
    /// Connections to providers.
    Accounts,
    /// Who watches a feed.
    Viewers,
    /// Requests that were not answered at once.
    Requests,
    /// What a simulator did.
    Faults,
}

impl Group {
    /// Every group, in order.
    pub const ALL: [Group; 10] = [
        Group::Edge,
        Group::Endpoints,
        Group::Sessions,
        Group::Channels,
        Group::Feeds,
        Group::Users,
        Group::Accounts,
        Group::Viewers,
        Group::Requests,
        Group::Faults,
    ];

    /// The word for it in headings.
    pub fn as_str(self) -> &'static str {
        match self {
            Group::Edge => "Edge",
            Group::Endpoints => "Endpoints",
            Group::Sessions => "WHIP sessions",
            Group::Channels => "Channels",
            Group::Feeds => "Feeds",
            Group::Users => "Users",
            Group::Accounts => "Accounts",
            Group::Viewers => "Viewers",
            Group::Requests => "Waiting requests",
            Group::Faults => "Faults",
        }
    }
}

/// How something stood for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for an answer.
    Waiting,
    /// It is there, and nothing has come yet.
    Connecting,
    /// Media flows.
    Live,
    /// It is there, and nothing comes.
    Silent,
    /// It was found to be dead.
    Dead,
    /// It is over, and what it held is not given back yet.
    Closing,
    /// It pauses before it tries again.
    Pause,
    /// It polls.
    Polling,
    /// Nobody uses it now, and it is kept.
    Kept,
    /// It has more than it may have, for a moment.
    Grace,
}

impl State {
    /// Every state, in order.
    pub const ALL: [State; 10] = [
        State::Waiting,
        State::Connecting,
        State::Live,
        State::Silent,
        State::Dead,
        State::Closing,
        State::Pause,
        State::Polling,
        State::Kept,
        State::Grace,
    ];

    /// The word for it in a legend.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waits",
            State::Connecting => "connects",
            State::Live => "live",
            State::Silent => "silent",
            State::Dead => "dead",
            State::Closing => "closing",
            State::Pause => "pause",
            State::Polling => "polls",
            State::Kept => "kept",
            State::Grace => "grace",
        }
    }

    /// What it means.
    pub fn says(self) -> &'static str {
        match self {
            State::Waiting => "waits for an answer, a place or an account",
            State::Connecting => "negotiates or connects: no media has come yet",
            State::Live => "media flows",
            State::Silent => "is connected, and nothing comes",
            State::Dead => "gone without a word: nothing more came from here on",
            State::Closing => "over; what it held is not given back yet",
            State::Pause => "pauses before the next attempt",
            State::Polling => "polls: takes the stream in segments",
            State::Kept => "there, and not used now",
            State::Grace => "has more than it may have, for a moment",
        }
    }
}

/// How much a mark matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// In the order of things.
    Plain,
    /// Somebody did not get what it wanted, or something changed for somebody.
    Notice,
    /// Somebody lost what it had.
    Loss,
    /// A simulator did something on purpose.
    Fault,
}

/// A sentence or a word, kept once however often it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub u32);

/// All texts.
#[derive(Debug)]
pub struct Texts {
    places: HashMap<String, Text>,
    all: Vec<String>,
}

impl Default for Texts {
    fn default() -> Self {
        Texts { places: HashMap::from([(String::new(), Text(0))]), all: vec![String::new()] }
    }
}

impl Texts {
    fn keep(&mut self, text: &str) -> Text {
        if let Some(known) = self.places.get(text) {
            return *known;
        }
        let next = Text(self.all.len() as u32);
        self.places.insert(text.to_owned(), next);
        self.all.push(text.to_owned());
        next
    }

    /// What it says.
    pub fn of(&self, text: Text) -> &str {
        self.all.get(text.0 as usize).map_or("", String::as_str)
    }

    /// All of them in order.
    pub fn all(&self) -> &[String] {
        &self.all
    }
}

/// Something stood in one way from then to then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// How.
    pub state: State,
    /// Who. Spans of one tenancy follow one another and have the same.
    pub who: Text,
    /// Why it came to its end, or empty.
    pub why: Text,
}

/// Something happened, or was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Time,
    /// How much it matters.
    pub weight: Weight,
    /// In a word.
    pub word: Text,
    /// In a sentence.
    pub why: Text,
    /// In which call, from 1; 0 if in none.
    pub call: u64,
}

/// One lane.
#[derive(Debug)]
pub struct Lane {
    /// What it is about.
    pub group: Group,
    /// What it is called.
    pub name: String,
    /// In order of time; none overlaps another.
    pub spans: Vec<Span>,
    /// In order of time.
    pub marks: Vec<Mark>,
    open: Option<Span>,
    pack: Option<Key>,
}

/// A lane on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(u32);

/// Where lanes stand: group, part of the story, then two numbers that its owner chose.
pub type Key = (Group, u32, u64, u64);

/// Lanes while they are being written.
#[derive(Debug, Default)]
pub struct Board {
    lanes: Vec<Lane>,
    places: BTreeMap<Key, LaneId>,
    /// By the key of the first: how many lanes a pack has, and which of them have nothing open.
    packs: BTreeMap<Key, (u64, BTreeSet<LaneId>)>,
    /// All that is said on it.
    pub texts: Texts,
    /// The call that is being told, from 1.
    pub call: u64,
}

impl Board {
    /// The lane of this key, made when it is first asked for.
    pub fn lane(&mut self, key: Key, name: impl FnOnce() -> String) -> LaneId {
        if let Some(known) = self.places.get(&key) {
            return *known;
        }
        let id = LaneId(self.lanes.len() as u32);
        self.lanes.push(Lane {
            group: key.0,
            name: name(),
            spans: Vec::new(),
            marks: Vec::new(),
            open: None,
            pack: None,
        });
        self.places.insert(key, id);
        id
    }

    /// A lane for one of several that may be there at once: the first one on which nothing is open.
    pub fn pack(&mut self, key: Key, name: impl FnOnce() -> String) -> LaneId {
        let (count, free) = self.packs.entry(key).or_default();
        if let Some(lane) = free.pop_first() {
            return lane;
        }
        *count += 1;
        let number = *count;
        let lane = self.lane((key.0, key.1, key.2, key.3 + number - 1), || match number {
            1 => name(),
            number => format!("{} · {number}", name()),
        });
        self.lanes[lane.0 as usize].pack = Some(key);
        lane
    }

    /// The first lane of a pack, to mark something on it.
    pub fn first(&mut self, key: Key, name: impl FnOnce() -> String) -> LaneId {
        if let Some(known) = self.places.get(&key) {
            return *known;
        }
        let lane = self.pack(key, name);
        if let Some((_, free)) = self.packs.get_mut(&key) {
            free.insert(lane);
        }
        lane
    }

    /// Somebody is there from now on; whoever was is not any more.
    pub fn begin(&mut self, lane: LaneId, at: Time, state: State, who: &str) {
        self.end(lane, at, "");
        let who = self.texts.keep(who);
        let lane_row = &mut self.lanes[lane.0 as usize];
        lane_row.open = Some(Span { from: at, to: at, state, who, why: Text(0) });
        if let Some((_, free)) = lane_row.pack.and_then(|key| self.packs.get_mut(&key)) {
            free.remove(&lane);
        }
    }

    /// From `at` on it stands otherwise; `why` what was before came to its end.
    pub fn turn(&mut self, lane: LaneId, at: Time, state: State, why: &str) {
        let why = self.texts.keep(why);
        let row = &mut self.lanes[lane.0 as usize];
        let Some(open) = row.open.filter(|open| open.state != state) else { return };
        let at = at.max(open.from);
        if at > open.from {
            row.spans.push(Span { to: at, why, ..open });
        }
        row.open = Some(Span { from: at, to: at, state, ..open });
    }

    /// It is another one from now on, in the same way.
    pub fn rename(&mut self, lane: LaneId, at: Time, who: &str) {
        let who = self.texts.keep(who);
        let row = &mut self.lanes[lane.0 as usize];
        let Some(open) = row.open.filter(|open| open.who != who) else { return };
        if at > open.from {
            row.spans.push(Span { to: at, ..open });
        }
        row.open = Some(Span { from: at, to: at, who, ..open });
    }

    /// It is over.
    pub fn end(&mut self, lane: LaneId, at: Time, why: &str) {
        let why = self.texts.keep(why);
        let row = &mut self.lanes[lane.0 as usize];
        let Some(open) = row.open.take() else { return };
        row.spans.push(Span { to: at.max(open.from), why, ..open });
        if let Some((_, free)) = row.pack.and_then(|key| self.packs.get_mut(&key)) {
            free.insert(lane);
        }
    }

    /// How it stands now, if something is open.
    pub fn state(&self, lane: LaneId) -> Option<State> {
        self.lanes[lane.0 as usize].open.map(|open| open.state)
    }

    /// Something happened.
    pub fn mark(&mut self, lane: LaneId, at: Time, weight: Weight, word: &str, why: &str) {
        let (word, why) = (self.texts.keep(word), self.texts.keep(why));
        self.lanes[lane.0 as usize].marks.push(Mark { at, weight, word, why, call: self.call });
    }

    /// What is there lasts until then.
    pub fn end_all(&mut self, at: Time) {
        for lane in 0..self.lanes.len() {
            self.end(LaneId(lane as u32), at, "");
        }
    }

    /// All lanes in order, and what is said on them.
    pub fn close(mut self, at: Time) -> (Vec<Lane>, Texts) {
        self.end_all(at);
        let order: BTreeMap<LaneId, Key> = self.places.iter().map(|(key, lane)| (*lane, *key)).collect();
        let mut numbered: Vec<(Key, Lane)> = self
            .lanes
            .into_iter()
            .enumerate()
            .filter_map(|(place, lane)| Some((*order.get(&LaneId(place as u32))?, lane)))
            .collect();
        numbered.sort_by_key(|(key, _)| *key);
        (numbered.into_iter().map(|(_, lane)| lane).collect(), self.texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (Group::Requests, 0, 0, 0);

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn those_that_overlap_get_a_lane_each_and_a_lane_is_used_again() {
        let mut board = Board::default();
        let name = || String::from("wait");
        let a = board.pack(KEY, name);
        board.begin(a, at(0), State::Waiting, "a");
        let b = board.pack(KEY, name);
        board.begin(b, at(1), State::Waiting, "b");
        assert_ne!(a, b);
        board.end(a, at(2), "answered");
        let c = board.pack(KEY, name);
        assert_eq!(a, c);
        board.begin(c, at(3), State::Waiting, "c");
        let (lanes, texts) = board.close(at(4));
        assert_eq!(lanes.iter().map(|lane| lane.name.as_str()).collect::<Vec<_>>(), ["wait", "wait · 2"]);
        let who: Vec<_> = lanes[0].spans.iter().map(|span| (texts.of(span.who), texts.of(span.why))).collect();
        assert_eq!(who, [("a", "answered"), ("c", "")]);
        assert_eq!(lanes[1].spans[0].to, at(4));
    }

    #[test]
    fn what_is_known_only_later_is_cut_where_it_began() {
        let mut board = Board::default();
        let lane = board.lane(KEY, String::new);
        board.begin(lane, at(0), State::Live, "s");
        board.turn(lane, at(3), State::Dead, "");
        board.turn(lane, at(5), State::Closing, "displaced");
        let (lanes, _) = board.close(at(6));
        let seen: Vec<_> = lanes[0].spans.iter().map(|span| (span.from, span.to, span.state)).collect();
        assert_eq!(seen, [(at(0), at(3), State::Live), (at(3), at(5), State::Dead), (at(5), at(6), State::Closing)]);
    }

    #[test]
    fn a_mark_on_a_pack_takes_no_lane_from_it() {
        let mut board = Board::default();
        let lane = board.first(KEY, || String::from("posts"));
        board.mark(lane, at(1), Weight::Notice, "refused", "");
        assert_eq!(board.pack(KEY, || String::from("posts")), lane);
    }
}
