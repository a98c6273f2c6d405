//! What of a title reached its client, and how it ends.

use bytes::{Buf, Bytes};
use holdfast_core::input::{Input, RefuseReason, RequestId, ViewerEnd};
use holdfast_core::time::Time;

use super::{End, From, IDLE, REPORT, Stage, Stream, What};
use crate::http::Response;
use crate::routes;
use crate::server::{Action, Server};

impl Server {
    /// The head of an answer goes out; its body follows as it comes.
    pub(super) fn begin(&mut self, now: Time, request: RequestId, response: Response, stream: Stream) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let conn = relay.conn;
        (relay.moved, relay.taken) = (now, now);
        self.relays.set_stage(request, Stage::Streaming(stream));
        self.relays.rearm(request);
        self.requests.remove(&request);
        // Whoever pauses a film takes nothing: what the kernel still has for it counts like what is here.
        self.be_patient(conn, IDLE);
        self.answer(now, conn, routes::shared(response));
    }

    /// What there is for the client of a request, after the head.
    pub(in crate::server) fn relayed(&self, request: RequestId) -> impl Iterator<Item = &[u8]> {
        let stream = match self.relays.relays.get(&request).map(|relay| &relay.stage) {
            Some(Stage::Streaming(stream)) => Some(stream),
            _ => None,
        };
        stream.into_iter().flat_map(|stream| &stream.queue).map(|data| &**data)
    }

    /// The client took so many bytes of the body, or of what stands before it.
    pub(in crate::server) fn relay_taken(&mut self, now: Time, request: RequestId, own: u64) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let Stage::Streaming(stream) = &mut relay.stage else { return };
        stream.take(own);
        relay.bytes += own;
        self.relays.counts.bytes += own;
        (relay.moved, relay.taken) = (now, now);
        relay.stalled = false;
        let due = relay.forwarded.is_none_or(|last| last + REPORT <= now);
        if own > 0 && due && !relay.told && relay.errand.what == What::Media {
            relay.forwarded = Some(now);
            self.decide(now, Input::Forwarded { request });
            self.pump(now);
        }
        self.free_early(request);
        self.relays.rearm(request);
        self.read_further(request);
    }

    /// What is kept of a body goes on to the client while others use the account. That media came through is said before.
    pub(super) fn free_early(&mut self, request: RequestId) {
        if let Some(relay) = self.relays.relays.get(&request)
            && let Stage::Streaming(stream) = &relay.stage
            && stream.queued > 0
            && (relay.forwarded.is_some() || relay.errand.what != What::Media)
        {
            self.tell_closed(request);
        }
    }

    /// Something came, or the provider is done: it goes on to the client, or ends with it.
    pub(super) fn flow(&mut self, now: Time, request: RequestId) {
        if self.relay_ends(now, request) {
            return;
        }
        if let Some(relay) = self.relays.relays.get(&request).filter(|relay| relay.is_answered()) {
            self.actions.push_back(Action::Write(relay.conn));
            self.free_early(request);
            self.relays.rearm(request);
        }
    }

    /// Whether the client of a request took the last of it, or is to get no more; ends it then.
    pub(in crate::server) fn relay_ends(&mut self, now: Time, request: RequestId) -> bool {
        let Some(relay) = self.relays.relays.get(&request) else { return true };
        let Stage::Streaming(Stream { end: Some(end), queued: 0, .. }) = relay.stage else { return false };
        let conn = relay.conn;
        if end == End::Broken {
            self.over(now, request, ViewerEnd::Failed);
            return true;
        }
        self.inbox.push_back(Input::Finished { request, reason: ViewerEnd::Done });
        self.end_relay(now, request);
        self.detach(conn);
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.http.end_stream();
            connection.progress = now;
        }
        self.actions.push_back(Action::Write(conn));
        self.rearm(now, conn);
        true
    }

    /// A response that began does not go on.
    pub(super) fn over(&mut self, now: Time, request: RequestId, reason: ViewerEnd) {
        if self.relays.relays.get(&request).is_some_and(|relay| !relay.told) {
            self.inbox.push_back(Input::Finished { request, reason });
        }
        let Some(relay) = self.end_relay(now, request) else { return };
        self.detach(relay.conn);
        self.close(now, relay.conn);
    }

    /// The client of a request is gone.
    pub(in crate::server) fn relay_left(&mut self, now: Time, request: RequestId) {
        self.requests.remove(&request);
        let Some(relay) = self.end_relay(now, request) else { return };
        let input = match relay.stage {
            _ if relay.told => return,
            Stage::Waiting => Input::Hangup { request },
            _ => Input::Finished { request, reason: ViewerEnd::Left },
        };
        self.decide(now, input);
    }

    /// The core refused a request for a title; how its client is told, if there is something left to tell.
    pub(in crate::server) fn relay_refused(
        &mut self,
        now: Time,
        request: RequestId,
        reason: RefuseReason,
    ) -> Option<Response> {
        let relay = self.end_relay(now, request)?;
        if relay.is_answered() {
            self.detach(relay.conn);
            self.close(now, relay.conn);
            return None;
        }
        if reason != RefuseReason::ProviderFailed {
            return Some(routes::refused(reason, None));
        }
        let (viewing, faults) = (relay.errand.ask.viewing, &mut self.relays.faults);
        if let Some(fault) = relay.fault.clone().filter(|_| matches!(relay.errand.from, From::Title(_))) {
            faults.learn(now, viewing, fault);
        }
        Some(match relay.fault.as_ref().or_else(|| faults.get(now, &viewing)) {
            Some((failure, why)) => routes::title::failed(*failure, why),
            None => routes::refused(reason, None),
        })
    }
}

impl Stream {
    fn take(&mut self, mut count: u64) {
        self.queued = self.queued.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        while count > 0
            && let Some(first) = self.queue.front_mut()
        {
            let taken = usize::try_from(count).unwrap_or(usize::MAX).min(first.len());
            Bytes::advance(first, taken);
            count -= taken as u64;
            if first.is_empty() {
                self.queue.pop_front();
            }
        }
    }
}
