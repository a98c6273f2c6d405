//! Viewers that read a feed as it comes: from the core's word to their connection.

use holdfast_core::input::{FeedId, Input, RequestId, ViewerId};
use holdfast_core::time::Time;

use super::connection::Work;
use super::{Action, Joining, Server};
use crate::routes;

impl Server {
    pub(super) fn joined(&mut self, now: Time, request: RequestId, viewer: ViewerId) {
        if let Some(joining) = self.polls.joining(request) {
            let token = match joining {
                Joining::ForIndex(_) => None,
                Joining::Again(token) => Some(token),
            };
            return self.inbox.push_back(Input::Poll { request, viewer, token });
        }
        let Some(id) = self.requests.remove(&request).filter(|id| self.connections.get(*id).is_some()) else {
            return self.inbox.push_back(Input::Leave { viewer });
        };
        if self.connections.get(id).is_none_or(|connection| connection.edge.is_none()) {
            let Some(feed) = self.edge().feeds().feed_of(viewer) else { return };
            let head = routes::live::stream(self, feed);
            self.answer(now, id, routes::shared(head));
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.work = Work::Watching(viewer);
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

    pub(super) fn viewer_ended(&mut self, now: Time, viewer: ViewerId) {
        self.polls.begins(viewer);
        let Some(place) = self.viewers.get_mut(viewer.index()) else { return };
        let Some((_, id)) = place.take_if(|(own, _)| *own == viewer) else { return };
        if let Some(connection) = self.connections.get_mut(id) {
            connection.work = Work::None;
            // What lies in the socket's buffer still reaches the player; then its stream ends like any that is over.
            self.actions.push_back(Action::Close(id));
            self.forget(now, id);
        }
    }
}
