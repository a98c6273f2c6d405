//! Titles that are files of this machine: read in pieces by the driver's threads, as fast as their client takes them.

use bytes::Bytes;
use holdfast_core::input::{Failure, Input, PlaybackId, RequestId, ViewerEnd};
use holdfast_core::time::Time;

use super::{ANSWER, BUFFER, End, From, Stage, Stream, What};
use crate::http::field::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use crate::http::range::{ContentRange, Outcome, Representation, Several};
use crate::http::{Body, Date, FieldValue, Request, Response, Status};
use crate::library::{Attributes, FileCommand, FileEvent, FileFault, PIECE, Place};
use crate::routes;
use crate::server::{Action, Server};

/// A file that is to be fetched.
#[derive(Clone)]
pub(crate) struct OfFile {
    pub place: Place,
    /// Its `Content-Type`.
    pub kind: FieldValue,
    /// With the conditions under which it is wanted.
    pub request: Request,
}

/// How far a file was read.
pub(super) struct Reading {
    pub playback: Option<PlaybackId>,
    /// Where the next piece begins.
    at: u64,
    /// Whether something that was asked of the driver is not answered yet.
    asked: bool,
}

impl Server {
    /// The core says that it comes from this machine.
    pub(super) fn open_file(&mut self, now: Time, request: RequestId, playback: Option<PlaybackId>) {
        let Some(relay) = self.relays.relays.get_mut(&request) else {
            // Its client went away meanwhile.
            return self.inbox.push_back(Input::Finished { request, reason: ViewerEnd::Left });
        };
        let From::File(file) = &relay.errand.from else {
            return self.relay_failed(request, Failure::Unusable, String::from("it is not on this machine"));
        };
        let open = FileCommand::Open(file.place.clone());
        relay.file = Some(Reading { playback, at: 0, asked: true });
        self.actions.push_back(Action::File(request, open));
        self.relays.set_stage(request, Stage::Asking { until: now + ANSWER });
        self.relays.rearm(request);
    }

    /// A file is of no more use.
    pub(super) fn close_file(&mut self, request: RequestId) {
        if self.relays.relays.get_mut(&request).and_then(|relay| relay.file.take()).is_some() {
            self.actions.push_back(Action::File(request, FileCommand::Close));
        }
    }

    /// Something came of what the driver was asked to do with a file.
    pub fn file(&mut self, now: Time, request: RequestId, event: FileEvent) {
        let Some(reading) = self.relays.relays.get_mut(&request).and_then(|relay| relay.file.as_mut()) else { return };
        reading.asked = false;
        match event {
            FileEvent::Opened(attributes) => self.file_opened(now, request, &attributes),
            FileEvent::Data(data) => self.file_read(now, request, data),
            FileEvent::Failed(FileFault::Gone) => {
                let why = String::from("the file is not there any more");
                self.relay_broken(now, request, Failure::Status(404), why);
            }
            FileEvent::Failed(FileFault::Unreadable(why)) => {
                self.relay_broken(now, request, Failure::Unusable, format!("the file cannot be read: {why}"));
            }
        }
        self.pump(now);
    }

    fn file_opened(&mut self, now: Time, request: RequestId, attributes: &Attributes) {
        let seconds = self.wall(now).as_secs();
        let Some(relay) = self.relays.relays.get(&request) else { return };
        let From::File(file) = &relay.errand.from else { return };
        // RFC 9110 §8.8.2.1: nothing was modified later than now.
        let modified = attributes.modified.min(seconds);
        let (length, etag) = (attributes.length, Some(attributes.etag.as_str()));
        let representation = Representation { length, etag, modified: Some(modified), now: seconds };
        let outcome = representation.outcome(&file.request, Several::Whole);
        let described = |response: Response| {
            let response = response
                .header(LAST_MODIFIED, date(modified))
                .header(ACCEPT_RANGES, FieldValue::from_static("bytes"))
                .header(CACHE_CONTROL, FieldValue::from_static("private, no-cache"));
            match FieldValue::new(attributes.etag.clone()) {
                Ok(etag) => response.header(ETAG, etag),
                Err(_) => response,
            }
        };
        let content = |status| described(Response::new(status).header(CONTENT_TYPE, file.kind.clone()));
        let (at, count, response) = match outcome {
            Outcome::Full if length == 0 => return self.settled(now, request, content(Status::OK)),
            Outcome::Full => (0, length, content(Status::OK)),
            Outcome::Part { first, last } => {
                let range = ContentRange::Part { first, last, length: Some(length) };
                (first, last - first + 1, content(Status::PARTIAL_CONTENT).header(CONTENT_RANGE, range.into()))
            }
            Outcome::Unsatisfiable => {
                let range = ContentRange::Unsatisfied { length };
                let answer = routes::title::unsatisfiable().header(CONTENT_RANGE, range.into());
                return self.settled(now, request, answer);
            }
            Outcome::NotModified => {
                return self.settled(now, request, described(Response::new(Status::NOT_MODIFIED)));
            }
            Outcome::PreconditionFailed => {
                return self.settled(now, request, routes::local::another_version());
            }
        };
        let response = response.body(Body::Sized(count));
        if relay.errand.what == What::Look {
            return self.settled(now, request, response);
        }
        if let Some(reading) = self.relays.relays.get_mut(&request).and_then(|relay| relay.file.as_mut()) {
            reading.at = at;
        }
        let stream =
            Stream { queue: std::collections::VecDeque::new(), queued: 0, skip: 0, left: Some(count), end: None };
        self.begin(now, request, response, stream);
        self.read_further(request);
    }

    fn file_read(&mut self, now: Time, request: RequestId, data: Bytes) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let (Some(reading), Stage::Streaming(stream)) = (&mut relay.file, &mut relay.stage) else { return };
        let left = stream.left.unwrap_or(0);
        let count = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        relay.moved = now;
        if stream.queued == 0 {
            relay.taken = now;
        }
        reading.at += count as u64;
        stream.left = Some(left - count as u64);
        stream.queued += count;
        stream.queue.push_back(data.slice(..count));
        // It became shorter while it was read: that the answer is short of its length tells the client.
        let end = if count == 0 { Some(End::Broken) } else { (count as u64 == left).then_some(End::Complete) };
        if end.is_some() {
            stream.end = end;
            self.close_file(request);
        } else {
            self.read_further(request);
        }
        self.flow(now, request);
    }

    /// Asks for the next piece, where there is room for it.
    pub(super) fn read_further(&mut self, request: RequestId) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let (Some(reading), Stage::Streaming(stream)) = (&mut relay.file, &relay.stage) else { return };
        let left = stream.left.unwrap_or(0);
        if reading.asked || left == 0 || stream.queued >= BUFFER {
            return;
        }
        reading.asked = true;
        let length = PIECE.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.actions.push_back(Action::File(request, FileCommand::Read { at: reading.at, length }));
    }
}

fn date(seconds: u64) -> FieldValue {
    FieldValue::new(Date::from_unix(seconds).as_str()).expect("a date is a field value")
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
