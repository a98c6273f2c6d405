//! Who watched a feed, and who waited for an answer.

use std::collections::BTreeMap;

use holdfast_core::input::{FeedId, Input, Note, Output, RequestId, ViewerId};
use holdfast_core::time::Time;

use super::lanes::{Board, Group, LaneId, State, Weight};
use super::{Scene, weight};

/// Viewers and requests so far.
#[derive(Debug, Default)]
pub(super) struct Stage {
    viewers: BTreeMap<ViewerId, LaneId>,
    /// Requests that wait, and where they are drawn.
    waits: BTreeMap<RequestId, LaneId>,
    /// What each request that wants to watch asked for, until it is answered.
    asked: BTreeMap<RequestId, String>,
}

/// What a request waits for: lanes are named by it, and stand in this order.
#[derive(Clone, Copy)]
enum Wait {
    Watch,
    Playlist,
    Title,
}

impl Wait {
    fn as_str(self) -> &'static str {
        match self {
            Wait::Watch => "to watch",
            Wait::Playlist => "for a playlist",
            Wait::Title => "for a title",
        }
    }
}

impl Stage {
    pub fn step(&mut self, board: &mut Board, scene: &Scene<'_>) {
        let now = scene.now;
        let asks = match scene.input {
            Input::Join { request, feed } => Some((*request, Wait::Watch, scene.feed(*feed))),
            Input::Play { request, viewing } => Some((*request, Wait::Watch, scene.viewing(viewing))),
            Input::Fetch { request, ask } => Some((*request, Wait::Title, scene.viewing(&ask.viewing))),
            Input::Playlist { request, viewer } => Some((*request, Wait::Playlist, format!("viewer {viewer}"))),
            Input::Hangup { request } => {
                self.answered(board, now, *request, "its client hung up");
                None
            }
            Input::Leave { viewer } => {
                self.ended(board, now, *viewer, "it left");
                None
            }
            _ => None,
        };
        if let Some((request, Wait::Watch, what)) = &asks {
            self.asked.insert(*request, what.clone());
        }
        let mut answered = false;
        for output in scene.outputs {
            let request = match output {
                Output::Joined { request, viewer } => {
                    let what = self.asked.remove(request).unwrap_or_default();
                    self.begin(board, scene, *viewer, State::Live, &what);
                    self.answered(board, now, *request, "it was let in");
                    request
                }
                Output::Polls { request, viewer, .. } => {
                    if let Some(lane) = self.viewers.get(viewer) {
                        board.turn(*lane, now, State::Polling, "");
                    }
                    request
                }
                Output::Refuse { request, reason } => {
                    self.asked.remove(request);
                    self.answered(board, now, *request, &format!("refused: {}", reason.says()));
                    request
                }
                Output::Fetch { request, .. } | Output::Playlist { request, .. } => {
                    self.answered(board, now, *request, "it was answered");
                    request
                }
                Output::ViewerEnd { viewer, reason } => {
                    self.ended(board, now, *viewer, &format!("{}: {}", reason.as_str(), reason.says()));
                    continue;
                }
                Output::Note(note) => {
                    self.note(board, scene, note);
                    continue;
                }
                _ => continue,
            };
            answered |= asks.as_ref().is_some_and(|(asks, ..)| asks == request);
        }
        if let Input::Poll { viewer, .. } = scene.input
            && scene.edge.feeds().feed_of(*viewer).is_none()
        {
            self.ended(board, now, *viewer, "it goes on as the viewer that it was before");
        }
        if let Some((request, wait, what)) = asks.filter(|(request, ..)| !answered && !self.waits.contains_key(request))
        {
            let lane = board.pack(scene.key(Group::Requests, wait as u64, 0), || scene.named(wait.as_str().to_owned()));
            board.begin(lane, now, State::Waiting, &format!("{request}: {what}"));
            self.waits.insert(request, lane);
        }
    }

    /// What is there when the story begins.
    pub fn adopt(&mut self, board: &mut Board, scene: &Scene<'_>) {
        let feeds: Vec<FeedId> = scene.edge.feeds().feeds().collect();
        for feed in feeds {
            for viewer in scene.edge.feeds().viewers(feed) {
                if !self.viewers.contains_key(&viewer) {
                    self.begin(board, scene, viewer, State::Live, &scene.feed(feed));
                }
            }
        }
    }

    fn begin(&mut self, board: &mut Board, scene: &Scene<'_>, viewer: ViewerId, state: State, what: &str) {
        let key = scene.key(Group::Viewers, viewer.index() as u64, 0);
        let lane = board.lane(key, || scene.named(format!("viewer {}", viewer.index())));
        let of = if what.is_empty() { String::new() } else { format!(": {what}") };
        board.begin(lane, scene.now, state, &format!("viewer {viewer}{of}"));
        self.viewers.insert(viewer, lane);
    }

    fn ended(&mut self, board: &mut Board, now: Time, viewer: ViewerId, why: &str) {
        if let Some(lane) = self.viewers.remove(&viewer) {
            board.end(lane, now, why);
        }
    }

    fn answered(&mut self, board: &mut Board, now: Time, request: RequestId, how: &str) {
        if let Some(lane) = self.waits.remove(&request) {
            board.end(lane, now, how);
        }
    }

    fn note(&mut self, board: &mut Board, scene: &Scene<'_>, note: &Note) {
        match note {
            Note::ViewerEnded { viewer, reason, .. } => {
                let key = scene.key(Group::Viewers, viewer.index() as u64, 0);
                let lane = board.lane(key, || scene.named(format!("viewer {}", viewer.index())));
                board.mark(lane, scene.now, weight::viewer_ended(*reason), reason.as_str(), &scene.says(note));
            }
            Note::ViewerRefused { reason, .. } => {
                let key = scene.key(Group::Requests, Wait::Watch as u64, 0);
                let lane = board.first(key, || scene.named(Wait::Watch.as_str().to_owned()));
                let word = format!("refused: {}", reason.as_str());
                board.mark(lane, scene.now, Weight::Notice, &word, &scene.says(note));
            }
            _ => {}
        }
    }
}
