//! What does an edge want of us? One connection of an edge.

use bytes::{Buf, BytesMut};

use super::UnixMillis;
use super::description::{Contents, Description, Incomplete, Track};
use super::fault::{Fault, Ignored, Reported};
use super::generation::{Generation, Table};
use super::json;
use super::message::{Answer, Application, Asked, UNKNOWN};
use super::packet::{self, Assembled, Assembler, Kind, MAX_REQUEST, Media, Stamp};

/// How much input is kept while an answer is due or not taken.
const MAX_INPUT: usize = 16 * 1024;
/// From how many bytes of answers on that were not taken no request is looked at.
const MAX_OUTPUT: usize = 64 * 1024;

/// Whether edges are told when a track becomes another one. An edge of 0.20 takes that for an error and connects anew; there is
/// no way to ask what an edge knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// For edges of 0.20 and older.
    #[default]
    Never,
    /// For edges of 0.21, and our own.
    TrackChanged,
}

/// How to speak to edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginSettings {
    /// Whose numbers are spoken.
    pub generation: Generation,
    /// What is told unasked.
    pub notify: Notify,
}

/// What an edge asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// By which it is answered.
    pub id: u32,
    /// What is asked.
    pub application: Application,
    /// The first part of the target's path, as it was written.
    pub app: String,
    /// The second part of the target's path, as it was written.
    pub stream: String,
    /// The URL, at most 64 KiB. It may bear a viewer's query string, secrets included.
    pub target: String,
    /// The servers that the request came through, as HTTP's `Via` lists them; empty if it does not say.
    pub via: String,
}

/// What an edge did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginEvent {
    /// To be answered: with [`Origin::describe`], [`Origin::playing`] or [`Origin::stopped`] by what it asks, or with
    /// [`Origin::refuse`].
    Request(Request),
    /// Something was passed over; the first of its kind.
    Ignored(Ignored),
    /// What came cannot be read. It was answered with 500 and the connection closes after that.
    Fault(Fault),
}

/// An origin, towards one edge. Bytes go in by [`receive`](Self::receive), events come out of [`poll`](Self::poll) (call it
/// until it says `None` after each `receive`, each answer and `wrote`), bytes come out of [`output`](Self::output).
///
/// Requests are served one at a time and in order. Requests that cannot be right are answered with 404 without being shown.
/// The media of a stream that plays is not sent through here but by the driver, whole packets of a
/// [`Packetizer`](super::Packetizer) behind or before what [`output`](Self::output) has.
#[derive(Debug)]
pub struct Origin {
    table: Table,
    notify: Notify,
    opened: UnixMillis,
    assembler: Assembler,
    output: BytesMut,
    due: Option<(u32, Application)>,
    state: State,
    reported: Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Playing,
    /// Nothing is read any more.
    Closing,
}

impl Origin {
    /// A connection that was just accepted, at the time that its messages will bear.
    pub fn new(settings: OriginSettings, opened: UnixMillis) -> Self {
        Origin {
            table: settings.generation.written(),
            notify: settings.notify,
            opened,
            assembler: Assembler::new(Media::Skip, MAX_REQUEST),
            output: BytesMut::new(),
            due: None,
            state: State::Idle,
            reported: Reported::default(),
        }
    }

    /// Takes bytes from the edge. All of them are kept until they are looked at, so the buffer exceeds its limit by what is read
    /// at once; ask [`wants_read`](Self::wants_read) before the next read.
    pub fn receive(&mut self, data: &[u8]) {
        if self.state != State::Closing {
            self.assembler.receive(data);
        }
    }

    /// Whether to read from the edge.
    pub fn wants_read(&self) -> bool {
        self.state != State::Closing && self.assembler.waiting() < MAX_INPUT
    }

    /// What is to be written next; empty if there is nothing.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The edge took the first `count` bytes of [`output`](Self::output).
    pub fn wrote(&mut self, count: usize) {
        self.output.advance(count.min(self.output.len()));
    }

    /// Whether the stream is to be sent: it was asked for, and granted.
    pub fn is_playing(&self) -> bool {
        self.state == State::Playing
    }

    /// Whether all is said and written, and the connection is to be closed.
    pub fn is_finished(&self) -> bool {
        self.state == State::Closing && self.output.is_empty()
    }

    /// The next event; none while an answer is due, or while the edge does not take the ones it has.
    pub fn poll(&mut self) -> Option<OriginEvent> {
        while self.due.is_none() && self.state != State::Closing && self.output.len() < MAX_OUTPUT {
            let event = match self.assembler.next() {
                Ok(None) => return None,
                Ok(Some(Assembled::Message(Kind::Request, message))) => self.hear(&message),
                Ok(Some(Assembled::Message(_, _))) => self.ignore(Ignored::Message),
                Ok(Some(Assembled::Skipped(kind))) => self.ignore(Ignored::Packet(kind)),
                // Media is read past.
                Ok(Some(Assembled::Unit(_))) => None,
                Err(fault) => Some(self.fail(fault)),
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Answers a request to describe. An edge plays at once only what is fully described, so anything less is not sent, and the
    /// request stays due. Does nothing unless that request is due.
    pub fn describe(&mut self, id: u32, description: &Description) -> Result<(), Incomplete> {
        description.check(self.table)?;
        if self.settle(id, Some(Application::Describe)) {
            let contents = Some(Contents::describe(description, self.table));
            self.answer(&Answer { application: Application::Describe.name(), code: 200, contents, id, message: "ok" });
        }
        Ok(())
    }

    /// Grants a request to play: media may follow. Does nothing unless that request is due.
    pub fn playing(&mut self, id: u32) {
        if self.settle(id, Some(Application::Play)) {
            self.answer(&granted(Application::Play, id));
            self.state = State::Playing;
        }
    }

    /// Grants a request to stop; the connection closes after that. Does nothing unless that request is due.
    pub fn stopped(&mut self, id: u32) {
        if self.settle(id, Some(Application::Stop)) {
            self.answer(&granted(Application::Stop, id));
            self.close();
        }
    }

    /// Refuses a request: 404 if there is no such stream, 202 if it has no media yet. Edges take any code for a failure. Does
    /// nothing unless that request is due.
    pub fn refuse(&mut self, id: u32, code: u16, message: &str) {
        if let Some((_, application)) = self.due
            && self.settle(id, None)
        {
            self.answer(&Answer { application: application.name(), code, contents: None, id, message });
        }
    }

    /// From the next unit on a track is this. Tells the edge, if the settings say so and the stream plays; as with
    /// [`describe`](Self::describe), nothing less than a full description is sent.
    pub fn track_changed(&mut self, track: &Track) -> Result<(), Incomplete> {
        track.check(self.table)?;
        if self.notify == Notify::TrackChanged && self.state == State::Playing {
            let contents = Some(Contents::changed(track, self.table));
            self.answer(&Answer { application: "notify", code: 200, contents, id: 0, message: "track_changed" });
        }
        Ok(())
    }

    fn hear(&mut self, message: &[u8]) -> Option<OriginEvent> {
        match Asked::read(message) {
            Ok(Asked { application, id, target, app, stream, via }) => {
                self.due = Some((id, application));
                Some(OriginEvent::Request(Request { id, application, app, stream, target, via }))
            }
            Err(rejected) => {
                let (application, id) = (&*rejected.application, rejected.id);
                self.answer(&Answer { application, code: 404, contents: None, id, message: rejected.why });
                None
            }
        }
    }

    fn fail(&mut self, fault: Fault) -> OriginEvent {
        let message = "Server Internals Error";
        self.answer(&Answer { application: UNKNOWN, code: 500, contents: None, id: 0, message });
        self.close();
        OriginEvent::Fault(fault)
    }

    fn ignore(&mut self, ignored: Ignored) -> Option<OriginEvent> {
        self.reported.first(ignored).map(OriginEvent::Ignored)
    }

    /// Whether that request was due; it is no more.
    fn settle(&mut self, id: u32, application: Option<Application>) -> bool {
        let due =
            self.due.is_some_and(|(due, asked)| due == id && application.is_none_or(|answered| answered == asked));
        if due {
            self.due = None;
        }
        due
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        let stamp = Stamp { kind: Kind::Response, timestamp: self.opened.0, sequence: 0 };
        packet::write(&mut self.output, stamp, &json::write(answer)[..]);
    }

    fn close(&mut self) {
        self.state = State::Closing;
        self.due = None;
        self.assembler = Assembler::new(Media::Skip, MAX_REQUEST);
    }
}

fn granted(application: Application, id: u32) -> Answer<'static> {
    Answer { application: application.name(), code: 200, contents: None, id, message: "ok" }
}
