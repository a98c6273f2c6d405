//! Viewers that read a feed as it comes: from the core's word to their connection.

use bytes::Bytes;
use holdfast_core::input::{FeedId, Input, RequestId, ViewerEnd, ViewerId};
use holdfast_core::time::Time;

use super::connection::{Produce, Wanted, Work};
use super::{Action, ConnId, Server};
use crate::routes;
use crate::ts::PACKET;

impl Server {
    pub(super) fn joined(&mut self, now: Time, request: RequestId, viewer: ViewerId) {
        if let Some(token) = self.polls.joining(request) {
            return self.inbox.push_back(Input::Poll { request, viewer, token: Some(token) });
        }
        let Some(id) = self.requests.remove(&request).filter(|id| self.connections.get(*id).is_some()) else {
            return self.inbox.push_back(Input::Leave { viewer });
        };
        if self.connections.get(id).is_none_or(|connection| connection.edge.is_none()) {
            let Some(feed) = self.edge().feeds().feed_of(viewer) else { return };
            let head = routes::live::stream(self, Some(feed));
            self.answer(now, id, routes::shared(head));
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.work = Work::Watching(viewer);
            connection.watched = 0;
        }
        if self.viewers.len() <= viewer.index() {
            self.viewers.resize(viewer.index() + 1, None);
        }
        self.viewers[viewer.index()] = Some((viewer, id));
        self.actions.push_back(Action::Write(id));
        self.rearm(now, id);
    }

    pub(super) fn ready(&mut self, feed: FeedId) {
        for viewer in self.edge.edge().feeds().viewers(feed) {
            if let Some(Some((own, id))) = self.viewers.get(viewer.index())
                && *own == viewer
            {
                self.actions.push_back(Action::Write(*id));
            }
        }
    }

    pub(super) fn viewer_ended(&mut self, now: Time, viewer: ViewerId, reason: ViewerEnd) {
        let Some(place) = self.viewers.get_mut(viewer.index()) else { return };
        let Some((_, id)) = place.take_if(|(own, _)| *own == viewer) else { return };
        if matches!(reason, ViewerEnd::Preempted | ViewerEnd::GraceOver) && self.show_slate(now, id) {
            return;
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.work = Work::None;
            // What lies in the socket's buffer still reaches the player; then its stream ends like any that is over.
            self.actions.push_back(Action::Close(id));
            self.forget(now, id);
        }
    }

    /// Shows why its stream ends to a player that would see nothing but its end (spec: protocols §4.4, rule 9). Whether there is
    /// something to show.
    fn show_slate(&mut self, now: Time, id: ConnId) -> bool {
        let Some(connection) = self.connections.get(id) else { return false };
        let Work::Watching(_) = connection.work else { return false };
        connection.edge.is_none() && self.part_with(now, id, connection.watched)
    }

    /// Shows the operator's clip behind the first `sent` bytes of a stream that ends with its connection. Whether there is one, and
    /// it is a stream of MPEG-TS.
    pub(super) fn part_with(&mut self, now: Time, id: ConnId, sent: u64) -> bool {
        let (Some(clip), Some(connection)) = (self.parting.clone(), self.connections.get_mut(id)) else { return false };
        if connection.wanted != Wanted::MpegTs {
            return false;
        }
        let begun = (sent % PACKET as u64) as usize;
        let torn = if begun == 0 { 0 } else { PACKET - begun };
        connection.work = Work::Producing(Box::new(Slate { torn, clip }));
        connection.progress = now;
        self.actions.push_back(Action::Write(id));
        self.rearm(now, id);
        true
    }
}

/// A clip behind a stream that was cut off.
struct Slate {
    /// How much of the packet in which it was cut is missing: what follows has to begin where a packet does.
    torn: usize,
    clip: Bytes,
}

impl Produce for Slate {
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool {
        // What stuffing is (ISO/IEC 13818-1 §2.4.3.5).
        piece.resize(piece.len() + std::mem::take(&mut self.torn), 0xff);
        piece.extend_from_slice(&self.clip.split_to(about.min(self.clip.len())));
        !self.clip.is_empty()
    }
}
