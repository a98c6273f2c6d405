//! From which origin each channel came, what came into feeds, and why that changed.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_core::input::{ChannelId, FeedId, Input, Note, Output, SourceId, TitleId, Writer};
use holdfast_core::pull::{ChannelState, Phase};
use holdfast_core::time::Time;

use super::lanes::{Board, Group, LaneId, State, Weight};
use super::{Scene, weight};

/// Streams of titles stand below the channels of the configuration.
const TITLES: u64 = 1 << 32;

/// Channels and feeds so far.
#[derive(Debug, Default)]
pub(super) struct Stage {
    channels: BTreeMap<ChannelId, LaneId>,
    /// Channels of titles that are there.
    tuned: BTreeMap<ChannelId, Option<TitleId>>,
    sources: BTreeMap<SourceId, Source>,
    feeds: BTreeMap<FeedId, Flow>,
}

#[derive(Debug)]
struct Source {
    channel: ChannelId,
    /// Sources of titles have none of their own: their account shows them.
    lane: Option<LaneId>,
    opened: bool,
    /// Media came from it, whether it was used or not.
    sends: bool,
}

/// What came into a feed without a gap.
#[derive(Debug)]
struct Flow {
    lane: LaneId,
    writer: Writer,
    last: Time,
    gap: Duration,
}

impl Stage {
    pub fn step(&mut self, board: &mut Board, scene: &Scene<'_>) {
        let mut touched = false;
        let mut reasons = BTreeMap::new();
        match scene.input {
            Input::Media { feed, from, .. } => {
                if scene.edge.feeds().writer(*feed) == Some(*from)
                    && scene.edge.feeds().last_push(*feed) == Some(scene.now)
                {
                    self.flow(board, scene, *feed, *from);
                }
                if let Writer::Source(source) = from {
                    self.sends(*source);
                    touched = self.is_new(board, *source);
                }
            }
            Input::Opened { source } => {
                if let Some(row) = self.sources.get_mut(source) {
                    row.opened = true;
                }
                touched = true;
            }
            Input::Arrived { source } => {
                self.sends(*source);
                touched = self.is_new(board, *source);
            }
            Input::Tune { title, .. } => {
                if let Some(channel) = scene.edge.pull().tuned(*title) {
                    self.tuned.insert(channel, Some(*title));
                }
            }
            Input::Lost { .. } | Input::Join { .. } | Input::Drain => touched = true,
            _ => {}
        }
        for output in scene.outputs {
            match output {
                Output::Open { source, channel, index, .. } => {
                    touched = true;
                    self.open(board, scene, *source, *channel, *index);
                }
                Output::Close { source } => {
                    touched = true;
                    self.close(board, scene.now, *source, "it is closed");
                }
                Output::Note(note) => touched |= self.note(board, scene, note, &mut reasons),
                Output::Ready { .. } | Output::KeyFrame { .. } | Output::SourceKeyFrame { .. } => {}
                _ => touched = true,
            }
        }
        if touched {
            self.look(board, scene, &reasons);
        }
    }

    /// What is there when the story begins.
    pub fn adopt(&mut self, board: &mut Board, scene: &Scene<'_>) {
        for place in 0..scene.config().channels.len() as u32 {
            let channel = ChannelId(place);
            let Some(state) = scene.edge.pull().state(channel) else { continue };
            for (source, index) in state.kept.into_iter().chain(state.beside) {
                if !self.sources.contains_key(&source) && !state.waits {
                    self.open(board, scene, source, channel, index);
                }
            }
        }
        self.look(board, scene, &BTreeMap::new());
    }

    /// What flowed to the end, and what ended before.
    pub fn finish(&mut self, board: &mut Board, end: Time) {
        for flow in self.feeds.values() {
            if end.since(flow.last) >= flow.gap {
                board.end(flow.lane, flow.last, "nothing more came");
            }
        }
    }

    fn sends(&mut self, source: SourceId) {
        if let Some(row) = self.sources.get_mut(&source) {
            row.sends = true;
        }
    }

    /// Whether media from a source may change how its channel stands.
    fn is_new(&self, board: &Board, source: SourceId) -> bool {
        let Some(row) = self.sources.get(&source) else { return false };
        let state = |lane: &LaneId| board.state(*lane);
        row.lane.as_ref().and_then(state) != Some(State::Live)
            || self.channels.get(&row.channel).and_then(state) != Some(State::Live)
    }

    fn flow(&mut self, board: &mut Board, scene: &Scene<'_>, feed: FeedId, from: Writer) {
        let now = scene.now;
        if let Some(flow) = self.feeds.get_mut(&feed) {
            let quiet = now.since(flow.last);
            if flow.writer == from && quiet < flow.gap && board.state(flow.lane).is_some() {
                flow.last = now;
                return;
            }
            let why = if quiet >= flow.gap { "nothing more came" } else { "it goes on from another writer" };
            board.end(flow.lane, flow.last, why);
        }
        let configured = scene.edge.pull().channel_of(feed).and_then(|id| scene.config().channels.get(id.0 as usize));
        let gap = configured.map_or(Duration::from_secs(2), |channel| channel.no_input_timeout);
        let lane = board.lane(scene.key(Group::Feeds, feed.index() as u64, 0), || {
            let known = feed.generation() == 0 && (configured.is_some() || matches!(from, Writer::Session(_)));
            scene.named(if known { scene.feed(feed) } else { format!("title stream (feed {})", feed.index()) })
        });
        let who = match from {
            Writer::Session(session) => format!("from session {session}"),
            Writer::Source(source) => format!("from source {source}"),
        };
        board.begin(lane, now, State::Live, &who);
        self.feeds.insert(feed, Flow { lane, writer: from, last: now, gap });
    }

    fn open(&mut self, board: &mut Board, scene: &Scene<'_>, source: SourceId, channel: ChannelId, index: u32) {
        let settings = scene.config().channels.get(channel.0 as usize);
        if settings.is_none() {
            self.tuned.entry(channel).or_insert(None);
        }
        let lane = settings.map(|settings| {
            let key = scene.key(Group::Channels, u64::from(channel.0), u64::from(index + 1) << 16);
            let lane = board.pack(key, || scene.named(format!("{} origin {}", settings.name, index + 1)));
            board.begin(lane, scene.now, State::Connecting, &format!("source {source}"));
            lane
        });
        self.sources.insert(source, Source { channel, lane, opened: false, sends: false });
    }

    fn close(&mut self, board: &mut Board, now: Time, source: SourceId, why: &str) {
        if let Some(lane) = self.sources.remove(&source).and_then(|row| row.lane) {
            board.end(lane, now, why);
        }
    }

    fn channel(&mut self, board: &mut Board, scene: &Scene<'_>, channel: ChannelId) -> LaneId {
        if let Some(known) = self.channels.get(&channel) {
            return *known;
        }
        let lane = match scene.config().channels.get(channel.0 as usize) {
            Some(settings) => {
                board.lane(scene.key(Group::Channels, u64::from(channel.0), 0), || scene.named(settings.name.clone()))
            }
            None => board.pack(scene.key(Group::Channels, TITLES, 0), || scene.named(String::from("titles' streams"))),
        };
        self.channels.insert(channel, lane);
        lane
    }

    /// How all channels stand now.
    fn look(&mut self, board: &mut Board, scene: &Scene<'_>, reasons: &BTreeMap<ChannelId, String>) {
        for place in 0..scene.config().channels.len() as u32 {
            let channel = ChannelId(place);
            if let Some(state) = scene.edge.pull().state(channel) {
                self.stands(board, scene, (channel, None), &state, reasons.get(&channel));
            }
        }
        let tuned: Vec<_> = self.tuned.iter().map(|(channel, title)| (*channel, *title)).collect();
        for (channel, title) in tuned {
            match scene.edge.pull().state(channel) {
                Some(state) => self.stands(board, scene, (channel, title), &state, reasons.get(&channel)),
                None => {
                    self.tuned.remove(&channel);
                    if let Some(lane) = self.channels.remove(&channel) {
                        board.end(
                            lane,
                            scene.now,
                            reasons.get(&channel).map_or("nobody watches it any more", String::as_str),
                        );
                    }
                }
            }
        }
    }

    fn stands(
        &mut self,
        board: &mut Board,
        scene: &Scene<'_>,
        (channel, title): (ChannelId, Option<TitleId>),
        state: &ChannelState<'_>,
        reason: Option<&String>,
    ) {
        let live = state.phase == Phase::Live;
        for (source, kept) in
            state.kept.map(|kept| (kept.0, true)).into_iter().chain(state.beside.map(|beside| (beside.0, false)))
        {
            let Some(row) = self.sources.get(&source) else { continue };
            let Some(lane) = row.lane else { continue };
            let own = match kept {
                true if live => State::Live,
                true => State::Silent,
                // Beside the one that is used it may well send.
                false if row.sends => State::Kept,
                false if row.opened => State::Silent,
                false => State::Connecting,
            };
            board.turn(lane, scene.now, own, "");
        }
        let stands = match state.phase {
            Phase::Off | Phase::Ended => None,
            Phase::Live => Some(State::Live),
            Phase::Seeking if state.kept.is_some() => Some(State::Silent),
            Phase::Seeking if state.waits => Some(State::Waiting),
            Phase::Seeking if state.beside.is_none() && state.next.is_some() => Some(State::Pause),
            Phase::Seeking => Some(State::Connecting),
        };
        let why = reason.map_or("", String::as_str);
        if stands.is_none() && !self.channels.contains_key(&channel) {
            return;
        }
        let lane = self.channel(board, scene, channel);
        let Some(stands) = stands else { return board.end(lane, scene.now, why) };
        let index = state.kept.or(state.beside).map(|(_, index)| index + 1);
        let who = match (title, index) {
            (Some(title), _) => title.to_string(),
            (None, Some(index)) => format!("origin {index}"),
            (None, None) => String::from("no origin"),
        };
        match board.state(lane) {
            None => board.begin(lane, scene.now, stands, &who),
            Some(_) => {
                board.turn(lane, scene.now, stands, why);
                board.rename(lane, scene.now, &who);
            }
        }
    }

    /// Whether it is about a channel.
    fn note(
        &mut self,
        board: &mut Board,
        scene: &Scene<'_>,
        note: &Note,
        reasons: &mut BTreeMap<ChannelId, String>,
    ) -> bool {
        let why = scene.says(note);
        let (channel, weight, word) = match note {
            Note::SourceOpening { .. } => return true,
            Note::SourceLost { channel, source, loss, .. } => {
                self.close(board, scene.now, *source, &why);
                (*channel, weight::lost(*loss), loss.as_str())
            }
            Note::SourceFault { channel, .. } => (*channel, Weight::Notice, "fault"),
            Note::ChannelStarted { channel, .. } => (*channel, Weight::Plain, "started"),
            Note::ChannelSilent { channel, .. } => (*channel, Weight::Notice, "silent"),
            Note::ChannelBack { channel, .. } => (*channel, Weight::Plain, "back"),
            Note::ChannelSwitched { channel, why, .. } => (*channel, Weight::Notice, why.as_str()),
            Note::ChannelEnded { channel, reason } => (*channel, weight::viewer_ended(*reason), "ended"),
            Note::ChannelOff { channel } => (*channel, Weight::Plain, "off"),
            _ => return false,
        };
        let lane = match scene.config().channels.get(channel.0 as usize) {
            Some(_) => self.channel(board, scene, channel),
            None => match self.channels.get(&channel) {
                Some(lane) => *lane,
                None => {
                    board.first(scene.key(Group::Channels, TITLES, 0), || scene.named(String::from("titles' streams")))
                }
            },
        };
        board.mark(lane, scene.now, weight, word, &why);
        reasons.insert(channel, why);
        true
    }
}
