//! What does an edge say next? One connection to an origin, for one stream.

use bytes::{Buf, Bytes, BytesMut};

use super::UnixMillis;
use super::description::{Description, Track, WireTrack};
use super::fault::{Fault, Ignored, Reported};
use super::generation::{Generation, Numbering};
use super::message::{self, Application, Said, UNKNOWN};
use super::packet::{self, Assembled, Assembler, Kind, MAX_MESSAGE, Media, Stamp};
use super::payload::{self, AudioConfig};
use super::unit::{KEY, RawUnit, Shape};
use crate::codec::Codec;

/// How much is kept of the words of a refusal, in characters.
const MAX_WORDS: usize = 256;

/// What an origin did.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The stream is there, with these tracks; media was asked for.
    Described(Description),
    /// Media follows.
    Playing,
    /// One frame.
    Unit(Unit),
    /// From the next unit on the tracks are these. Their ids are the same.
    TracksChanged(Vec<Track>),
    /// There is no such stream. The connection is to be closed.
    NotFound {
        /// The origin's words, at most 256 characters.
        message: String,
    },
    /// The stream is known and has no media yet. The connection is to be closed.
    NotStarted,
    /// Any other answer. The connection is to be closed.
    Refused {
        /// The origin's code.
        code: u32,
        /// The origin's words, at most 256 characters.
        message: String,
    },
    /// Something was passed over; the first of its kind.
    Ignored(Ignored),
    /// The conversation cannot go on. The connection is to be closed.
    Fault(Fault),
}

/// One frame of one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// By [`Track::id`].
    pub track: u32,
    /// How it is coded.
    pub codec: Codec,
    /// When it is to be shown, µs on the origin's clock.
    pub pts: i64,
    /// When it is to be decoded, µs on the origin's clock.
    pub dts: i64,
    /// Whether decoding can start here (always true for audio). An origin starts anywhere, so the first frames may well need
    /// others that never come.
    pub key: bool,
    /// The frame, never empty.
    pub data: Bytes,
}

/// An edge, towards an origin. Bytes come out of [`output`](Self::output), go in by [`receive`](Self::receive), and events
/// come out of [`poll`](Self::poll): call it until it says `None` after each `receive`, since what was received is kept until
/// then. Beside that one unit and one message are kept at most, [`MAX_UNIT`](super::MAX_UNIT) and [`MAX_MESSAGE`] long.
///
/// There is no end in the protocol: an origin whose stream is over closes the connection.
#[derive(Debug)]
pub struct Client {
    target: String,
    via: Option<String>,
    generation: Generation,
    opened: UnixMillis,
    assembler: Assembler,
    output: BytesMut,
    state: State,
    numbering: Numbering,
    described: Vec<WireTrack>,
    /// The ones of `described` that are given out.
    tracks: Vec<Track>,
    reported: Reported,
    /// What follows the event that was just given.
    next: Option<ClientEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Describing,
    Starting,
    Playing,
    /// Our stop is on its way; its answer is not waited for.
    Stopping,
    Over,
}

impl Client {
    /// Asks for the stream that `target` names, `ovt://host:port/app/stream`. `opened` is the time that its messages bear;
    /// origins do not look at it.
    pub fn new(target: &str, generation: Generation, opened: UnixMillis) -> Self {
        Client::through(None, target, generation, opened)
    }

    /// The same, on behalf of requests that came through servers which `via` lists as HTTP's field does (RFC 9110 §7.6.3).
    pub fn through(via: Option<String>, target: &str, generation: Generation, opened: UnixMillis) -> Self {
        let mut client = Client {
            target: target.to_owned(),
            via,
            generation,
            opened,
            assembler: Assembler::new(Media::Keep, MAX_MESSAGE),
            output: BytesMut::new(),
            state: State::Describing,
            numbering: Numbering::judge(generation, &[]),
            described: Vec::new(),
            tracks: Vec::new(),
            reported: Reported::default(),
            next: None,
        };
        client.ask(Application::Describe);
        client
    }

    /// Takes bytes from the origin.
    pub fn receive(&mut self, data: &[u8]) {
        if !self.is_deaf() {
            self.assembler.receive(data);
        }
    }

    /// What is to be written next; empty if there is nothing.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The origin took the first `count` bytes of [`output`](Self::output).
    pub fn wrote(&mut self, count: usize) {
        self.output.advance(count.min(self.output.len()));
    }

    /// Wants no more. If media was promised, the origin is told; nothing further is given out.
    pub fn stop(&mut self) {
        match self.state {
            State::Playing => {
                self.ask(Application::Stop);
                self.state = State::Stopping;
            }
            State::Describing | State::Starting => self.state = State::Over,
            State::Stopping | State::Over => return,
        }
        self.forget();
    }

    /// Whether the connection is to be closed: all is said and written.
    pub fn is_finished(&self) -> bool {
        match self.state {
            State::Over => true,
            State::Stopping => self.output.is_empty(),
            State::Describing | State::Starting | State::Playing => false,
        }
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.next.take() {
            return Some(event);
        }
        while !self.is_deaf() {
            let event = match self.assembler.next() {
                Ok(None) => return None,
                Ok(Some(Assembled::Message(Kind::Response, message))) => self.hear(&message),
                Ok(Some(Assembled::Message(_, _))) => Ok(self.ignore(Ignored::Message)),
                Ok(Some(Assembled::Skipped(kind))) => Ok(self.ignore(Ignored::Packet(kind))),
                Ok(Some(Assembled::Unit(unit))) => RawUnit::read(unit).map(|unit| self.take(unit)),
                Err(fault) => Err(fault),
            };
            match event {
                Ok(None) => {}
                Ok(event) => return event,
                Err(fault) => return Some(self.end(ClientEvent::Fault(fault))),
            }
        }
        None
    }

    fn is_deaf(&self) -> bool {
        matches!(self.state, State::Stopping | State::Over)
    }

    fn ask(&mut self, application: Application) {
        let stamp = Stamp { kind: Kind::Request, timestamp: self.opened.0, sequence: 0 };
        let via = self.via.as_deref().filter(|_| application == Application::Describe);
        let message = message::request(application, request_id(application), &self.target, via);
        packet::write(&mut self.output, stamp, &message[..]);
    }

    fn ignore(&mut self, ignored: Ignored) -> Option<ClientEvent> {
        self.reported.first(ignored).map(ClientEvent::Ignored)
    }

    fn end(&mut self, event: ClientEvent) -> ClientEvent {
        self.state = State::Over;
        self.forget();
        event
    }

    fn forget(&mut self) {
        self.assembler = Assembler::new(Media::Keep, MAX_MESSAGE);
        self.next = None;
    }

    fn hear(&mut self, message: &[u8]) -> Result<Option<ClientEvent>, Fault> {
        let mut said = Said::read(message)?;
        let application = said.application.as_deref().unwrap_or_default();
        if application == "notify" && self.state != State::Describing {
            return self.notice(said);
        }
        let asked = match self.state {
            State::Describing => Application::Describe,
            State::Starting => Application::Play,
            State::Playing | State::Stopping | State::Over => return Ok(self.ignore(Ignored::Message)),
        };
        if application != asked.name() && application != UNKNOWN {
            return Ok(self.ignore(Ignored::Message));
        }
        let code = said.code.ok_or(Fault::Answer("has no code"))?;
        if code != 200 {
            let message = said.message.unwrap_or_default().chars().take(MAX_WORDS).collect();
            return Ok(Some(self.end(match code {
                202 => ClientEvent::NotStarted,
                404 => ClientEvent::NotFound { message },
                code => ClientEvent::Refused { code, message },
            })));
        }
        if application != asked.name() || said.id != Some(request_id(asked)) {
            return Err(Fault::Answer("belongs to another request"));
        }
        if asked == Application::Describe {
            return self.describe(&mut said).map(Some);
        }
        self.state = State::Playing;
        Ok(Some(ClientEvent::Playing))
    }

    fn describe(&mut self, said: &mut Said) -> Result<ClientEvent, Fault> {
        let described = said.described()?;
        self.described = described.tracks;
        self.numbering = Numbering::judge(self.generation, &self.described);
        self.tracks = self.given_out();
        if self.tracks.is_empty() {
            return Err(Fault::Description("has no track of a codec that is known here"));
        }
        if described.unread > 0 {
            self.next = self.ignore(Ignored::Track);
        }
        self.ask(Application::Play);
        self.state = State::Starting;
        let (app, stream, uuid) = (described.app, described.stream, described.uuid);
        Ok(ClientEvent::Described(Description { app, stream, uuid, tracks: self.tracks.clone() }))
    }

    /// A track may have become another one. Tracks that were not there before are not taken in.
    fn notice(&mut self, mut said: Said) -> Result<Option<ClientEvent>, Fault> {
        if said.message.as_deref() != Some("track_changed") {
            return Ok(self.ignore(Ignored::Message));
        }
        let Ok(changed) = said.described() else {
            return Ok(self.ignore(Ignored::Track));
        };
        for track in changed.tracks {
            if let Some(known) = self.described.iter_mut().find(|known| known.id == track.id) {
                *known = track;
            }
        }
        if let Numbering::Guessed(_) = self.numbering {
            self.numbering = Numbering::judge(self.generation, &self.described);
        }
        let ignored = if changed.unread > 0 { self.ignore(Ignored::Track) } else { None };
        Ok(match self.renumber() {
            Some(event) => {
                self.next = ignored;
                Some(event)
            }
            None => ignored,
        })
    }

    fn given_out(&self) -> Vec<Track> {
        let table = self.numbering.table();
        self.described.iter().filter_map(|track| track.track(table)).collect()
    }

    fn renumber(&mut self) -> Option<ClientEvent> {
        let tracks = self.given_out();
        if tracks == self.tracks {
            return None;
        }
        self.tracks = tracks;
        Some(ClientEvent::TracksChanged(self.tracks.clone()))
    }

    fn take(&mut self, unit: RawUnit) -> Option<ClientEvent> {
        // An origin may well begin to send before it answers. Nobody waits for these frames.
        if self.state != State::Playing {
            return None;
        }
        let Some(described) = self.described.iter().find(|track| track.id == unit.track) else {
            return self.ignore(Ignored::UnknownTrack(unit.track));
        };
        let numbering = self.numbering.weigh(described, &unit.data);
        let corrected = numbering.table() != self.numbering.table();
        self.numbering = numbering;
        let changed = if corrected { self.renumber() } else { None };
        let id = unit.track;
        let event = match self.tracks.iter().find(|track| track.id == id) {
            Some(track) => frame(track, unit).map(ClientEvent::Unit).or_else(|| self.ignore(Ignored::Payload(id))),
            None => None,
        };
        match changed {
            Some(changed) => {
                self.next = event;
                Some(changed)
            }
            None => event,
        }
    }
}

/// Requests are counted, and there is one of each.
fn request_id(application: Application) -> u32 {
    match application {
        Application::Describe => 1,
        Application::Play => 2,
        Application::Stop => 3,
    }
}

fn frame(track: &Track, unit: RawUnit) -> Option<Unit> {
    if unit.shape == Shape::Other || unit.data.is_empty() {
        return None;
    }
    let data = match track.codec {
        Codec::H264 | Codec::H265 if !payload::is_annex_b(&unit.data) => return None,
        Codec::Aac if !payload::is_adts(&unit.data) => {
            AudioConfig::read(track.decoder_config.as_ref()?)?.adts(&unit.data)?
        }
        _ => unit.data,
    };
    Some(Unit {
        track: track.id,
        codec: track.codec,
        pts: track.timebase.micros(unit.pts)?,
        dts: track.timebase.micros(unit.dts)?,
        key: !track.codec.is_video() || unit.flag == KEY,
        data,
    })
}
