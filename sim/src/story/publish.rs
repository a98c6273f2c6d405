//! Who held which slot, who asked for it, and how each came to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_core::config::Takeover;
use holdfast_core::input::{EndReason, EndpointId, Input, Note, Output, RequestId, SessionId, Writer};
use holdfast_core::time::Time;

use super::lanes::{Board, Group, LaneId, State, Weight};
use super::{Scene, weight};

/// A publisher that sends comes into its feed many times a second; this long without is a gap worth drawing.
const GAP: Duration = Duration::from_millis(1000);
/// POSTs stand below the slots of their endpoint.
const POSTS: u64 = 1 << 32;

/// Publishers so far.
#[derive(Debug, Default)]
pub(super) struct Stage {
    sessions: BTreeMap<SessionId, Session>,
    /// POSTs that wait for a slot: since when, and where they are drawn.
    posts: BTreeMap<RequestId, (EndpointId, Time, LaneId)>,
    /// Counts sessions, so that they stand in the order in which they came.
    count: u64,
}

#[derive(Debug)]
struct Session {
    slot: LaneId,
    own: LaneId,
    media: Option<Time>,
}

impl Stage {
    pub fn step(&mut self, board: &mut Board, scene: &Scene<'_>) {
        let now = scene.now;
        match scene.input {
            Input::Media { feed, from: Writer::Session(session), .. }
                if scene.edge.feeds().writer(*feed) == Some(Writer::Session(*session)) =>
            {
                self.media(board, now, *session);
            }
            Input::Hangup { request } => self.answered(board, now, *request, "its client hung up"),
            Input::Released { session } if scene.edge.publish().session(*session).is_none() => {
                if let Some(row) = self.sessions.remove(session) {
                    board.end(row.slot, now, "its slot is free again");
                }
            }
            _ => {}
        }
        for output in scene.outputs {
            match output {
                Output::Start { session, request, endpoint, hold, .. } => {
                    self.answered(board, now, *request, "it was let in");
                    self.began(board, scene, *session, *endpoint, hold.slot);
                }
                Output::Refuse { request, reason } => {
                    self.answered(board, now, *request, &format!("refused: {}", reason.says()));
                }
                Output::Note(note) => self.note(board, scene, note),
                _ => {}
            }
        }
        if let Input::Offer { request, endpoint } = scene.input {
            let told = scene.outputs.iter().any(|output| match output {
                Output::Start { request: other, .. } | Output::Refuse { request: other, .. } => other == request,
                _ => false,
            });
            let known = (endpoint.0 as usize) < scene.config().endpoints.len();
            if !told && known && !self.posts.contains_key(request) && !self.is_doubled(scene) {
                let lane = wait(board, scene, *endpoint);
                board.begin(lane, now, State::Waiting, &format!("POST {}", request.0));
                self.posts.insert(*request, (*endpoint, now, lane));
            }
        }
    }

    /// A second offer under the number of one that is known changes nothing, and waits for nothing.
    fn is_doubled(&self, scene: &Scene<'_>) -> bool {
        let waiting: usize = scene.edge.publish().endpoints().map(|endpoint| endpoint.waiting()).sum();
        waiting <= self.posts.len()
    }

    /// What is there when the story begins.
    pub fn adopt(&mut self, board: &mut Board, scene: &Scene<'_>) {
        let there: Vec<SessionId> = scene.edge.publish().sessions().map(|(id, _)| id).collect();
        for id in there {
            let Some(session) = scene.edge.publish().session(id).filter(|_| !self.sessions.contains_key(&id)) else {
                continue;
            };
            self.began(board, scene, id, session.endpoint, session.hold.slot);
            let Some(row) = self.sessions.get_mut(&id) else { continue };
            let state = if session.is_live() { State::Live } else { State::Closing };
            if session.is_answered() {
                row.media = Some(scene.now);
                board.turn(row.slot, scene.now, state, "");
                board.turn(row.own, scene.now, state, "");
            }
        }
        for (place, endpoint) in scene.edge.publish().endpoints().enumerate() {
            let waiting = endpoint.waiting();
            if waiting > self.posts.len() {
                let id = EndpointId(place as u32);
                let lane = board.lane(scene.key(Group::Endpoints, place as u64, POSTS), || posts(scene, id));
                board.mark(lane, scene.now, Weight::Plain, "waiting", &format!("{waiting} POSTs waited here already"));
            }
        }
    }

    fn began(&mut self, board: &mut Board, scene: &Scene<'_>, id: SessionId, endpoint: EndpointId, slot: u32) {
        self.count += 1;
        let name = scene.endpoint(endpoint);
        let place = scene.key(Group::Endpoints, u64::from(endpoint.0), u64::from(slot));
        let slots = scene.config().endpoints.get(endpoint.0 as usize).map_or(1, |own| own.slots);
        let of_slot = if slots == 1 { name.to_owned() } else { format!("{name} slot {}", slot + 1) };
        let slot = board.lane(place, || scene.named(of_slot.clone()));
        let own = board.lane(scene.key(Group::Sessions, self.count, 0), || scene.named(format!("session {id}")));
        board.begin(slot, scene.now, State::Connecting, &format!("session {id}"));
        board.begin(own, scene.now, State::Connecting, &format!("session {id} in {of_slot}"));
        self.sessions.insert(id, Session { slot, own, media: None });
    }

    fn media(&mut self, board: &mut Board, now: Time, id: SessionId) {
        let Some(row) = self.sessions.get_mut(&id) else { return };
        let before = row.media.replace(now);
        for lane in [row.slot, row.own] {
            match before {
                Some(last) if now.since(last) >= GAP => {
                    board.turn(lane, last, State::Silent, "");
                    board.turn(lane, now, State::Live, "media comes again");
                }
                _ => board.turn(lane, now, State::Live, ""),
            }
        }
    }

    fn answered(&mut self, board: &mut Board, now: Time, request: RequestId, how: &str) {
        if let Some((_, _, lane)) = self.posts.remove(&request) {
            board.end(lane, now, how);
        }
    }

    fn note(&mut self, board: &mut Board, scene: &Scene<'_>, note: &Note) {
        let now = scene.now;
        match note {
            Note::SessionStarted { session, .. } => {
                let Some(row) = self.sessions.get(session) else { return };
                board.mark(row.slot, now, Weight::Plain, "let in", &scene.says(note));
            }
            Note::SessionEnded { endpoint, session, reason, silent, .. } => {
                self.ended(board, scene, (*endpoint, *session), (*reason, *silent, scene.says(note)));
            }
            Note::OfferRefused { endpoint, reason, .. } => {
                let lane =
                    board.lane(scene.key(Group::Endpoints, u64::from(endpoint.0), POSTS), || posts(scene, *endpoint));
                board.mark(lane, now, Weight::Notice, &format!("refused: {}", reason.as_str()), &scene.says(note));
            }
            Note::RequestRefused { endpoint, .. } => {
                let lane =
                    board.lane(scene.key(Group::Endpoints, u64::from(endpoint.0), POSTS), || posts(scene, *endpoint));
                board.mark(lane, now, Weight::Notice, "refused", &scene.says(note));
            }
            Note::SlotStalled { session, .. } => {
                let Some(row) = self.sessions.get(session) else { return };
                board.mark(row.slot, now, Weight::Loss, "stalled", &scene.says(note));
            }
            _ => {}
        }
    }

    fn ended(
        &mut self,
        board: &mut Board,
        scene: &Scene<'_>,
        (endpoint, id): (EndpointId, SessionId),
        (reason, silent, mut why): (EndReason, Option<u64>, String),
    ) {
        let Some(row) = self.sessions.get(&id) else { return };
        let now = scene.now;
        if reason == EndReason::Displaced {
            let waiting =
                self.posts.iter().filter(|(_, (of, ..))| *of == endpoint).min_by_key(|(_, (_, since, _))| *since);
            let own = scene.config().endpoints.get(endpoint.0 as usize);
            let dead_after = own.filter(|own| own.takeover == Takeover::DisplaceDead).map(|own| own.dead_after);
            if let Some(dead_after) = dead_after {
                why.push_str(&format!(" (dead_after is {})", weight::span(dead_after)));
            }
            if let Some((request, (_, since, _))) = waiting {
                why.push_str(&format!("; POST {} had waited for {}", request.0, weight::span(now.since(*since))));
            }
        }
        let quiet = silent.map(Duration::from_micros).filter(|quiet| *quiet >= GAP);
        let proven = matches!(reason, EndReason::Displaced | EndReason::Inactive);
        for lane in [row.slot, row.own] {
            if let Some(quiet) = quiet {
                board.turn(lane, now - quiet, if proven { State::Dead } else { State::Silent }, "");
            }
        }
        board.turn(row.slot, now, State::Closing, &why);
        board.end(row.own, now, &why);
        board.mark(row.slot, now, weight::ended(reason), reason.as_str(), &why);
    }
}

/// Where a POST waits: beside its slots, and with all that waits where there are several.
fn wait(board: &mut Board, scene: &Scene<'_>, endpoint: EndpointId) -> LaneId {
    let first = board.lane(scene.key(Group::Endpoints, u64::from(endpoint.0), POSTS), || posts(scene, endpoint));
    match board.state(first) {
        None => first,
        Some(_) => board.pack(scene.key(Group::Requests, POSTS, u64::from(endpoint.0) << 32), || {
            scene.named(format!("more {} POSTs", scene.endpoint(endpoint)))
        }),
    }
}

fn posts(scene: &Scene<'_>, endpoint: EndpointId) -> String {
    scene.named(format!("{} POSTs", scene.endpoint(endpoint)))
}
