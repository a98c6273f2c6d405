//! Edges that fetch streams from here over OVT.
//!
//! An edge is a viewer like any other: it holds a place in the feed, and what it is sent is taken from the feed's ring as
//! its socket takes it. It wants access units, so what comes out of the ring is taken apart for it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use holdfast_core::input::{FeedId, Input, Loss, RefuseReason, RequestId, ViewerId};
use holdfast_core::time::Time;

use super::connection::Work;
use super::{Action, ConnId, Server, Settings, Sources, Transmit};
use crate::codec::{Codec, Found, aac, annexb, h264, h265, mpeg_audio};
use crate::http::Via;
use crate::ovt::{self, Application, Frame, OriginEvent, Packetizer};
use crate::ts::{AccessUnit, Demuxer, Elementary};

/// How much lies ready for a socket; the rest waits in the ring.
const READY: usize = 256 << 10;
/// How much is kept of what precedes the request to play: from the last key frame on, so that the edge can start at once.
const BACKLOG: usize = 4 << 20;
/// How long all tracks that the stream declares are waited for; a track that does not come is left out.
const PATIENCE: Duration = Duration::from_secs(2);
/// The application under which the first slot of an endpoint, and a channel, are found by their names.
const APP: &str = "live";
/// What HTTP answers to a request that leads back to itself (RFC 5842 §7.2).
const LOOP: u16 = 508;
/// A track's figures are measured over this long at least before they are believed.
const MEASURED: i64 = 90_000 / 4;

/// One connection of an edge.
pub(super) struct Edge {
    origin: ovt::Origin,
    demuxer: Demuxer,
    packetizer: Packetizer,
    stream: Option<Stream>,
    /// The request that is to be answered when the core let the edge in, or when all tracks are known.
    asked: Option<(u32, Application)>,
    tracks: BTreeMap<u16, Measured>,
    /// Since the last key frame, until the edge plays.
    backlog: BytesMut,
    ready: BytesMut,
    /// When the first of the stream came.
    begun: Option<Time>,
    /// When anything was last done.
    pub acted: Time,
    /// When media last came into the stream, as far as that was looked at, or when it was asked for.
    heard: Time,
    /// How long none may come.
    silence: Option<Duration>,
}

/// What an edge asked for.
struct Stream {
    feed: FeedId,
    app: String,
    name: String,
}

/// One track and what was seen of it.
struct Measured {
    first: i64,
    last: i64,
    units: u32,
    bytes: u64,
    track: Option<ovt::Track>,
}

impl Edge {
    fn new(settings: &Settings, wall: Duration, now: Time) -> Self {
        let opened = ovt::UnixMillis(wall.as_millis() as u64);
        Edge {
            origin: ovt::Origin::new(settings.ovt, opened),
            demuxer: Demuxer::default(),
            packetizer: Packetizer::new(settings.ovt.generation),
            stream: None,
            asked: None,
            tracks: BTreeMap::new(),
            backlog: BytesMut::new(),
            ready: BytesMut::new(),
            begun: None,
            acted: now,
            heard: now,
            silence: settings.packet_silence,
        }
    }

    pub fn wants_read(&self) -> bool {
        self.origin.wants_read()
    }

    /// Whether all is said and written.
    fn is_finished(&self) -> bool {
        self.origin.is_finished() && self.ready.is_empty()
    }

    /// Messages and media go out in the order in which they were made; a message never lies within a packet.
    fn say(&mut self) {
        let said = self.origin.output();
        self.ready.extend_from_slice(said);
        let length = said.len();
        self.origin.wrote(length);
    }

    /// Takes in more of the stream.
    fn take(&mut self, now: Time, data: &[u8]) {
        self.begun.get_or_insert(now);
        let mut units = VecDeque::new();
        self.demuxer.read(data, &mut units);
        for unit in units {
            self.unit(&unit);
        }
    }

    fn unit(&mut self, unit: &AccessUnit) {
        let measured = self.tracks.entry(unit.pid).or_insert_with(|| Measured {
            first: unit.dts,
            last: unit.dts,
            units: 0,
            bytes: 0,
            track: None,
        });
        measured.units = measured.units.saturating_add(1);
        measured.bytes += unit.data.len() as u64;
        measured.last = measured.last.max(unit.dts);
        let stream = self.demuxer.program().and_then(|program| program.streams.iter().find(|own| own.pid == unit.pid));
        let track = measured.describe(unit, stream).filter(|track| self.packetizer.carries(track.codec));
        if let Some(track) = track {
            let changed = measured.track.as_ref().is_some_and(|old| old.decoder_config != track.decoder_config);
            if changed && self.origin.is_playing() {
                // What cannot be told in full is not told; the units themselves say what they are.
                let _ = self.origin.track_changed(&track);
                self.say();
            }
            let Some(measured) = self.tracks.get_mut(&unit.pid) else { return };
            measured.track = Some(track);
        }
        let Some(track) = self.tracks.get(&unit.pid).and_then(|measured| measured.track.as_ref()) else { return };
        let micros = |ticks: i64| ticks.saturating_mul(100) / 9;
        let frame =
            Frame { pts: micros(unit.pts), dts: micros(unit.dts), duration: None, key: unit.key, data: &unit.data };
        let Ok(packets) = self.packetizer.unit(track, &frame) else { return };
        if self.origin.is_playing() {
            return self.ready.extend_from_slice(&packets);
        }
        let starts = unit.key && (unit.codec.is_video() || !self.has_video());
        if starts || self.backlog.len() + packets.len() > BACKLOG {
            self.backlog.clear();
        }
        if starts || !self.backlog.is_empty() {
            self.backlog.extend_from_slice(&packets);
        }
    }

    fn has_video(&self) -> bool {
        self.tracks.values().any(|measured| measured.track.as_ref().is_some_and(|track| track.codec.is_video()))
    }

    /// The tracks, once each that the stream declares is known, or was waited for long enough.
    fn described(&self, now: Time) -> Option<Vec<ovt::Track>> {
        let declared = self.demuxer.program()?.streams.len();
        let tracks: Vec<ovt::Track> = self.tracks.values().filter_map(|measured| measured.track.clone()).collect();
        let waited = self.begun.is_some_and(|begun| now >= begun + PATIENCE);
        (!tracks.is_empty() && (tracks.len() >= declared || waited)).then_some(tracks)
    }

    /// When a description is due though not all tracks have come.
    fn patience(&self) -> Option<Time> {
        self.asked.as_ref()?;
        Some(self.begun? + PATIENCE)
    }

    /// When its stream has to be looked at. It may have moved since: it is not set anew with every chunk that comes in.
    pub fn deadline(&self) -> Time {
        let silent = self.silence.map(|silence| self.heard + silence);
        [self.patience(), silent].into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Answers what can be answered now.
    fn answer(&mut self, now: Time, uuids: &Uuids<'_>) {
        let (Some((id, application)), Some(stream)) = (self.asked, &self.stream) else { return };
        let Some(tracks) = self.described(now) else { return };
        match application {
            Application::Describe => {
                let (app, name) = (format!("#default#{}", stream.app), stream.name.clone());
                let uuid = uuids.of(stream.feed, &app, &name);
                let description = ovt::Description { uuid, app, stream: name, tracks };
                if self.origin.describe(id, &description).is_err() {
                    self.origin.refuse(id, 202, "the stream has not started");
                }
            }
            Application::Play => {
                self.origin.playing(id);
                self.say();
                let backlog = std::mem::take(&mut self.backlog);
                self.ready.extend_from_slice(&backlog);
            }
            Application::Stop => self.origin.stopped(id),
        }
        self.asked = None;
        self.say();
    }
}

/// What streams are called, so that one that comes back in a circle is known.
struct Uuids<'s> {
    instance: ovt::Instance,
    edge: &'s holdfast_core::edge::Edge,
    sources: &'s Sources,
}

impl Uuids<'_> {
    fn of(&self, feed: FeedId, app: &str, name: &str) -> String {
        let fetched = self.edge.pull().channel_of(feed).and_then(|channel| self.sources.uuid(channel));
        fetched.map_or_else(|| self.instance.name(app, name), str::to_owned)
    }
}

impl Measured {
    /// The track, if this unit of the stream says what it is.
    fn describe(&self, unit: &AccessUnit, stream: Option<&Elementary>) -> Option<ovt::Track> {
        let span = self.last - self.first;
        let measured = span >= MEASURED;
        let picture = |picture: crate::codec::Picture| {
            // What the stream does not say of its rate is measured, or taken for what is usual.
            let framerate = match picture.rate {
                Some((pictures, seconds)) => f64::from(pictures) / f64::from(seconds),
                None if measured => f64::from(self.units - 1) * 90_000.0 / span as f64,
                None => 25.0,
            };
            ovt::Media::Video(ovt::Picture { width: picture.width, height: picture.height, framerate })
        };
        let sets = |kind: fn(&[u8]) -> bool| annexb::units(&unit.data).find(|nal| kind(nal));
        let (media, config, usual) = match unit.codec {
            Codec::H264 if unit.key => {
                let size = h264::picture(sets(|nal| nal[0] & 0x1f == 7)?)?;
                (picture(size), h264::configuration(&unit.data)?, 2_000_000)
            }
            Codec::H265 if unit.key => {
                let size = h265::picture(sets(|nal| h265::kind(nal[0]) == 33)?)?;
                (picture(size), h265::configuration(&unit.data)?, 2_000_000)
            }
            Codec::H264 | Codec::H265 | Codec::Ac3 => return None,
            // Sound says the same at each frame.
            _ if self.track.is_some() => return None,
            Codec::Aac => {
                let Found::Frame(frame) = aac::frame(&unit.data) else { return None };
                let config = aac::configuration(&unit.data)?.to_vec();
                (sound(frame.rate, aac::channels(&unit.data)?), config, 128_000)
            }
            Codec::Mp2 | Codec::Mp3 => {
                let Found::Frame(frame) = mpeg_audio::frame(&unit.data) else { return None };
                (sound(frame.rate, mpeg_audio::channels(&unit.data)?), Vec::new(), 192_000)
            }
            Codec::Opus => (sound(48_000, stream?.opus_channels()), Vec::new(), 96_000),
        };
        let bitrate = if measured { self.bytes * 8 * 90_000 / span as u64 } else { usual };
        Some(ovt::Track {
            id: u32::from(unit.pid),
            name: String::from(if unit.codec.is_video() { "video" } else { "audio" }),
            codec: unit.codec,
            timebase: ovt::Timebase::new(1, 90_000)?,
            bitrate: u32::try_from(bitrate.max(1)).unwrap_or(u32::MAX),
            media,
            decoder_config: (!config.is_empty()).then(|| config.into()),
        })
    }
}

fn sound(rate: u32, channels: u8) -> ovt::Media {
    // FFmpeg's masks: one loudspeaker is the centre, two are left and right, six are 5.1 with side ones.
    let layout = match channels {
        1 => 0x4,
        2 => 0x3,
        6 => 0x60f,
        other => (1 << other.min(8)) - 1,
    };
    ovt::Media::Audio(ovt::Sound { rate, layout, format: 8 })
}

impl Server {
    /// An edge connected to the port for OVT. As [`Server::accepted`].
    pub fn accepted_edge(&mut self, now: Time, peer: std::net::SocketAddr) -> Option<ConnId> {
        let id = self.accepted(now, peer)?;
        let edge = Edge::new(&self.settings, self.wall(now), now);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.edge = Some(Box::new(edge));
        }
        self.rearm(now, id);
        Some(id)
    }

    pub(super) fn edge_received(&mut self, now: Time, id: ConnId, data: &[u8]) {
        if let Some(edge) = self.connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) {
            edge.origin.receive(data);
            edge.acted = now;
        }
        self.converse_with_edge(now, id);
    }

    fn converse_with_edge(&mut self, now: Time, id: ConnId) {
        while let Some(edge) = self.connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) {
            let event = edge.origin.poll();
            edge.say();
            match event {
                None | Some(OriginEvent::Fault(_)) => break,
                Some(OriginEvent::Ignored(_)) => {}
                Some(OriginEvent::Request(request)) => self.edge_asks(now, id, request),
            }
        }
        self.actions.push_back(Action::Write(id));
        self.pump(now);
        self.rearm(now, id);
    }

    fn edge_asks(&mut self, now: Time, id: ConnId, request: ovt::Request) {
        let feed = self.stream_named(&request.app, &request.stream);
        let looped = feed.is_some_and(|feed| self.asks_for_itself(feed, &request));
        let Server { settings, sources, connections, edge: core, .. } = self;
        let uuids = Uuids { instance: ovt::Instance(settings.instance), edge: core.edge(), sources };
        let Some(edge) = connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) else { return };
        match (request.application, feed) {
            (Application::Stop, _) => edge.origin.stopped(request.id),
            (_, None) => edge.origin.refuse(request.id, 404, "there is no such stream"),
            _ if looped => edge.origin.refuse(request.id, LOOP, "loop"),
            (application, Some(feed)) => match &edge.stream {
                None => {
                    edge.asked = Some((request.id, application));
                    edge.stream = Some(Stream { feed, app: request.app, name: request.stream });
                    edge.heard = now;
                    self.ask(now, id, |request| Input::Join { request, feed });
                }
                Some(stream) if stream.feed == feed => {
                    edge.asked = Some((request.id, application));
                    edge.answer(now, &uuids);
                }
                Some(_) => edge.origin.refuse(request.id, 404, "another stream plays on this connection"),
            },
        }
        if let Some(edge) = self.connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) {
            edge.say();
        }
    }

    /// Whether an edge asks for a channel that would be fetched from itself.
    fn asks_for_itself(&mut self, feed: FeedId, request: &ovt::Request) -> bool {
        let channel = self.edge().pull().channel_of(feed).filter(|_| request.application == Application::Describe);
        let via = Via::listed(request.via.split(','), &self.settings.pseudonym()).ok();
        channel.is_some_and(|channel| !self.is_asked_by_others(channel, via))
    }

    /// `live/NAME` is a channel or the first slot of an endpoint, `ENDPOINT/NUMBER` any slot, counted from 1.
    fn stream_named(&self, app: &str, stream: &str) -> Option<FeedId> {
        let core = self.edge();
        if let Some(feed) = core.endpoint(app).and_then(|(endpoint, _)| {
            let slot = stream.parse::<usize>().ok().filter(|slot| slot.to_string() == stream)?;
            core.feed_of(endpoint, slot.checked_sub(1)?)
        }) {
            return Some(feed);
        }
        if app != APP {
            return None;
        }
        match core.endpoint(stream) {
            Some((endpoint, _)) => core.feed_of(endpoint, 0),
            None => core.pull().feed_of(core.channel(stream)?.0),
        }
    }

    /// The connection of this request, if an edge asks.
    pub(super) fn edge_of(&self, request: RequestId) -> Option<ConnId> {
        let id = *self.requests.get(&request)?;
        self.connections.get(id)?.edge.as_ref().map(|_| id)
    }

    /// The core refused an edge.
    pub(super) fn edge_refused(&mut self, now: Time, id: ConnId, reason: RefuseReason) {
        let pull = self.edge.edge().pull();
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.work = Work::None;
        let Some(edge) = &mut connection.edge else { return };
        let channel = edge.stream.take().and_then(|stream| pull.channel_of(stream.feed));
        let lost = channel.and_then(|channel| pull.state(channel)?.last_loss);
        if let Some((request, _)) = edge.asked.take() {
            let code = match reason {
                RefuseReason::StartTimeout => 202,
                // So that the whole circle knows what it is.
                RefuseReason::NoSource if lost.is_some_and(|(_, loss)| loss == Loss::Loop) => LOOP,
                _ => 404,
            };
            edge.origin.refuse(request, code, reason.as_str());
        }
        edge.say();
        self.actions.push_back(Action::Write(id));
        self.rearm(now, id);
    }

    /// The deadline of an edge passed. Whether that is about its stream, and seen to.
    pub(super) fn edge_overdue(&mut self, now: Time, id: ConnId) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let (Some(edge), Work::Watching(viewer)) = (&mut connection.edge, &connection.work) else { return false };
        if edge.patience().is_some_and(|until| until <= now) {
            self.describe_late(now, id);
            return true;
        }
        let feeds = self.edge.edge().feeds();
        let last = edge.stream.as_ref().and_then(|stream| feeds.last_push(stream.feed));
        edge.heard = last.map_or(edge.heard, |last| last.max(edge.heard));
        if edge.deadline() <= now {
            let viewer = *viewer;
            self.decide(now, Input::GiveUp { viewer });
            self.pump(now);
        } else {
            self.rearm(now, id);
        }
        true
    }

    /// A description is due though not all tracks came.
    fn describe_late(&mut self, now: Time, id: ConnId) {
        let Server { settings, sources, connections, edge: core, .. } = self;
        let uuids = Uuids { instance: ovt::Instance(settings.instance), edge: core.edge(), sources };
        let Some(edge) = connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) else { return };
        edge.answer(now, &uuids);
        if let Some((request, _)) = edge.asked.take() {
            edge.origin.refuse(request, 202, "the stream has not started");
            edge.say();
        }
        self.actions.push_back(Action::Write(id));
        self.rearm(now, id);
    }

    /// Takes more of the stream out of the ring, as long as the socket may want it.
    fn fill_edge(&mut self, now: Time, id: ConnId, viewer: ViewerId) {
        let Server { settings, sources, connections, edge: core, .. } = self;
        let uuids = Uuids { instance: ovt::Instance(settings.instance), edge: core.edge(), sources };
        let Some(edge) = connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) else { return };
        let mut taken = 0;
        for piece in core.edge().feeds().unsent(viewer) {
            if edge.ready.len() >= READY {
                break;
            }
            edge.take(now, piece);
            taken += piece.len() as u64;
        }
        edge.answer(now, &uuids);
        if taken > 0 {
            self.decide(now, Input::Sent { viewer, bytes: taken });
            self.pump(now);
        }
    }

    pub(super) fn transmit_edge(
        &mut self,
        now: Time,
        id: ConnId,
        write: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Transmit> {
        loop {
            if let Some(Work::Watching(viewer)) = self.connections.get(id).map(|connection| &connection.work) {
                let viewer = *viewer;
                self.fill_edge(now, id, viewer);
            }
            let Some(edge) = self.connections.get_mut(id).and_then(|connection| connection.edge.as_mut()) else {
                return Ok(Transmit::Idle);
            };
            if edge.ready.is_empty() {
                if edge.is_finished() {
                    self.close(now, id);
                } else {
                    self.rearm(now, id);
                }
                return Ok(Transmit::Idle);
            }
            let wanted = edge.ready.len();
            let written = match write(&[IoSlice::new(&edge.ready)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Transmit::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            edge.ready.advance(written);
            edge.acted = now;
            self.counts.bytes_out += written as u64;
            if written < wanted {
                return Ok(Transmit::Blocked);
            }
        }
    }
}
