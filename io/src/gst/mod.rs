//! How does a WHIP session get its media, and a channel that of an RTSP or SRT origin? From GStreamer, one pipeline each.
//!
//! [`Sessions`] is the media side of the loop: it takes [`MediaCommand`]s, gives [`MediaEvent`]s, and never blocks but for
//! [`Sessions::new`]. Everything slow runs on GStreamer's threads, which post to a mailbox and ring one bell.
//!
//! | module | question it answers |
//! |---|---|
//! | `session` | how far is this publisher's negotiation, how is it ended? |
//! | `source` | how is an origin's stream fetched, how does it end? |
//! | `fault` | what does an origin's failure mean? |
//! | `branch` | how do RTP packets become access units? |
//! | `bridge` | how do access units get into the loop's queue? |
//! | `evidence` | what came off the network, and when? |
//! | `mailbox` | how do media threads reach the loop? |
//! | `restart` | how does libnice restart ICE? |
//! | `credentials` | with which username fragment and password? |
//! | `log` | where does what the libraries say go? |
//! | `elements` | is every element there, and where does Debian keep it? |

mod branch;
mod bridge;
mod credentials;
mod elements;
mod evidence;
mod fault;
mod log;
mod mailbox;
mod restart;
mod session;
mod source;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gstreamer::glib;
use gstreamer::prelude::*;
use gstreamer::{Clock, Element};
use holdfast_core::config::Media;
use holdfast_core::input::{EndReason, SessionId, SourceId, Writer};

use self::elements::AudioChain;
use self::mailbox::{Inbox, Outbox, Post, Signal, Turn, mailbox};
use self::session::{Session, Start};
use self::source::Source;
use crate::codec::Codec;
use crate::media::{Activity, MediaCommand, MediaEvent, SessionSettings, Unit};
use crate::sdp::Offer;

/// The warm-up loads plugins, libnice and OpenSSL: half a second on a quiet machine, over ten on one that has just begun to start
/// everything else. Whoever gives up here does not start, so what is given up on has to hang.
const WARM_UP: Duration = Duration::from_secs(60);

/// Gathering with a STUN or TURN server that answers takes tens of milliseconds; one that does not costs every POST 2 s.
const SLOW_GATHERING: Duration = Duration::from_millis(1500);

/// How a publisher's audio reaches viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioCodec {
    /// Decoded and encoded anew, for players that know no Opus in MPEG-TS: most set-top boxes, hls.js.
    Aac,
    /// As it came.
    Opus,
    /// AAC where an encoder is installed, else Opus.
    Auto,
}

/// What all sessions have in common.
pub struct Options {
    /// `Time::ZERO` of the driver.
    pub epoch: Instant,
    /// Local addresses to gather candidates on; loopback is fine. Empty: all of the host's but loopback.
    pub addresses: Vec<IpAddr>,
    /// UDP ports to gather on. `None`: whatever the system gives.
    pub ports: Option<RangeInclusive<u16>>,
    /// `stun://host:port`. Left out with a warning if it does not answer at the start.
    pub stun: Option<String>,
    /// `turn://user:password@host:port`. Left out like `stun`.
    pub turn: Vec<String>,
    /// How audio reaches viewers.
    pub audio: AudioCodec,
    /// How many units and pieces of MPEG-TS may wait for the loop, over all sessions and sources; further ones are dropped and counted.
    pub queue: usize,
    /// Called from media threads when [`Sessions::poll`] has something, once until it has run dry.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

/// Why media cannot be had on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GstError {
    /// GStreamer did not start.
    Init(String),
    /// An element is missing.
    Missing {
        /// Its name.
        element: &'static str,
        /// The Debian package it is in.
        package: &'static str,
    },
    /// The first session, on an offer of our own, could not be negotiated.
    WarmUp(String),
}

impl fmt::Display for GstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GstError::Init(why) => write!(f, "GStreamer does not start: {why}"),
            GstError::Missing { element, package } => {
                write!(f, "the GStreamer element {element} is missing; on Debian it is in the package {package}")
            }
            GstError::WarmUp(why) => write!(f, "a trial WebRTC session failed: {why}"),
        }
    }
}

impl std::error::Error for GstError {}

/// What every session is built from.
struct Shared {
    epoch: Instant,
    clock: Clock,
    /// Added to nanoseconds of `clock` it gives nanoseconds since `epoch`: both count the same monotonic time.
    clock_offset: i64,
    addresses: Vec<IpAddr>,
    ports: Option<RangeInclusive<u16>>,
    stun: Option<String>,
    turn: Vec<String>,
    audio: AudioChain,
}

impl Shared {
    /// Settings of a new webrtcbin's ICE agent, in force before anything is negotiated.
    fn agent(&self, webrtc: &Element) -> Result<(), String> {
        let ice = webrtc.property::<glib::Object>("ice-agent");
        for address in &self.addresses {
            if !ice.emit_by_name::<bool>("add-local-ip-address", &[&address.to_string()]) {
                return Err(format!("{address} is no address of this host"));
            }
        }
        if let Some(ports) = &self.ports {
            ice.set_property("min-rtp-port", u32::from(*ports.start()));
            ice.set_property("max-rtp-port", u32::from(*ports.end()));
        }
        ice.set_property("ice-tcp", false);
        // On by default: 200 ms of every gathering, and SSDP to the local network.
        session::agent(webrtc).set_property("upnp", false);
        Ok(())
    }
}

/// The media side of the loop: all WHIP sessions of the process, and all sources that GStreamer fetches.
pub struct Sessions {
    shared: Shared,
    sessions: HashMap<SessionId, Session>,
    sources: HashMap<SourceId, Source>,
    inbox: Inbox,
    outbox: Outbox,
    descriptors: usize,
}

/// Descriptors of one session on a machine with one address, where `/proc` does not say how many it opens.
const DESCRIPTORS: usize = 7;

impl Sessions {
    /// Starts GStreamer, checks that everything needed is installed, and negotiates one session with nobody, since the first of a
    /// process is slow. Blocks for that long: to be called before listening.
    ///
    /// # Errors
    /// [`GstError`]
    pub fn new(options: Options) -> Result<Sessions, GstError> {
        log::listen();
        gstreamer::init().map_err(|error| GstError::Init(error.to_string()))?;
        let audio = elements::load(options.audio)?;
        let clock = gstreamer::SystemClock::obtain();
        let clock_offset = nanos(options.epoch.elapsed()) - nanos(clock.time().into());
        let (outbox, inbox) = mailbox(options.queue, options.wake);
        let shared = Shared {
            epoch: options.epoch,
            clock,
            clock_offset,
            addresses: options.addresses,
            ports: options.ports,
            stun: None,
            turn: Vec::new(),
            audio,
        };
        let mut sessions = Sessions {
            shared,
            sessions: HashMap::new(),
            sources: HashMap::new(),
            inbox,
            outbox,
            descriptors: DESCRIPTORS,
        };
        sessions.warm_up()?;
        if options.stun.is_some() || !options.turn.is_empty() {
            sessions.try_servers(options.stun, options.turn)?;
        }
        Ok(sessions)
    }

    /// How audio reaches viewers, once `Auto` was settled.
    pub fn audio(&self) -> Codec {
        match self.shared.audio {
            AudioChain::Aac { .. } => Codec::Aac,
            AudioChain::Opus => Codec::Opus,
        }
    }

    /// How many descriptors one session opens here: it depends on the addresses of the host, and on its TURN servers.
    pub fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// Carries out one command. Does not block; what comes of it is in [`Sessions::poll`], then or later.
    pub fn command(&mut self, command: MediaCommand) {
        match command {
            MediaCommand::Start { session, offer, activity, settings } => {
                let start = Start { session, offer: *offer, activity, settings };
                match Session::start(&self.shared, &self.outbox, start) {
                    Ok(started) => {
                        if let Some(stale) = self.sessions.insert(session, started) {
                            stale.discard();
                        }
                    }
                    Err(why) => self.outbox.signal(session, Signal::Fault(why)),
                }
            }
            MediaCommand::Candidates { session, candidates } => {
                if let Some(session) = self.sessions.get(&session) {
                    session.add_candidates(&candidates);
                }
            }
            MediaCommand::Restart { session, ufrag, pwd, candidates } => {
                let done = match self.sessions.get_mut(&session) {
                    Some(session) => session.restart(&ufrag, &pwd, candidates),
                    None => Err("the session is over".into()),
                };
                if let Err(why) = done {
                    self.outbox.signal(session, Signal::NotRestarted(why));
                }
            }
            MediaCommand::KeyFrame { session } => {
                if let Some(session) = self.sessions.get(&session) {
                    session.request_key_frame();
                }
            }
            MediaCommand::Rebuild { session } => {
                if let Some(session) = self.sessions.get(&session) {
                    session.rebuild();
                }
            }
            MediaCommand::Open { source, origin } => {
                self.sources.insert(source, Source::open(&self.shared, &self.outbox, source, &origin));
            }
            MediaCommand::Close { source } => {
                self.sources.remove(&source);
            }
            MediaCommand::Finish { session } => match self.sessions.remove(&session) {
                Some(session) => session.finish(),
                None => self.outbox.signal(session, Signal::Gone),
            },
        }
    }

    /// The next thing the loop should know. `None`: nothing until `wake` is called.
    pub fn poll(&mut self) -> Option<MediaEvent> {
        loop {
            let event = match self.inbox.next()? {
                Post::Unit(Unit { from: Writer::Source(source), .. }) | Post::Data(source, _)
                    if !self.sources.contains_key(&source) =>
                {
                    None
                }
                Post::Unit(unit) => Some(MediaEvent::Unit(unit)),
                Post::Data(source, data) => Some(MediaEvent::SourceData { source, data }),
                Post::Signal(session, signal) => self.signal(session, signal),
                Post::Turn(source, turn) => self.turn(source, turn),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// A source that was closed meanwhile is not spoken of any more.
    fn turn(&mut self, id: SourceId, turn: Turn) -> Option<MediaEvent> {
        match turn {
            Turn::Opened => self.sources.contains_key(&id).then_some(MediaEvent::SourceOpened { source: id }),
            Turn::Lost(loss, why) => self.sources.remove(&id).map(|_| MediaEvent::SourceLost { source: id, loss, why }),
        }
    }

    fn signal(&mut self, id: SessionId, signal: Signal) -> Option<MediaEvent> {
        let session = self.sessions.get_mut(&id);
        let stepped = match (signal, session) {
            (Signal::Gone, _) => return Some(MediaEvent::Gone { session: id }),
            (Signal::NotRestarted(why), _) => return Some(MediaEvent::RestartFailed { session: id, why }),
            (Signal::Fault(why), None) => return Some(MediaEvent::Failed { session: id, why }),
            (_, None) => return None,
            (Signal::Reply(reply), Some(session)) => session.replied(reply),
            (Signal::Gathered, Some(session)) => session.gathered(),
            (Signal::Ended(reason), Some(session)) if session.is_answered() => {
                return Some(MediaEvent::Ended { session: id, reason });
            }
            (Signal::Ended(reason), Some(_)) => Err(format!("it ended while it was negotiated: {}", reason.as_str())),
            (Signal::Fault(why), Some(session)) if session.is_answered() => {
                tracing::warn!(session = %id, %why, "media failed");
                return Some(MediaEvent::Ended { session: id, reason: EndReason::IceFailed });
            }
            (Signal::Fault(why), Some(_)) => Err(why),
        };
        match stepped {
            Ok(event) => event,
            Err(why) if self.sessions.get(&id).is_some_and(Session::is_answered) => {
                Some(MediaEvent::RestartFailed { session: id, why })
            }
            Err(why) => {
                if let Some(session) = self.sessions.remove(&id) {
                    session.discard();
                }
                Some(MediaEvent::Failed { session: id, why })
            }
        }
    }

    /// Negotiates a session with nobody and takes it down again.
    fn warm_up(&mut self) -> Result<Duration, GstError> {
        let session = SessionId::from_parts(u32::MAX, u32::MAX);
        let offer = Offer::check(include_bytes!("warm-up.sdp"), Media::AudioVideo);
        let offer = offer.map_err(|fault| GstError::WarmUp(fault.to_string()))?;
        let started = Instant::now();
        self.command(MediaCommand::Start {
            session,
            offer: Box::new(offer),
            activity: Arc::new(Activity::default()),
            settings: SessionSettings { jitter: Duration::from_millis(200), max_video_bitrate: 4_000_000 },
        });
        let (mut took, mut open) = (None, None);
        loop {
            let left = WARM_UP.saturating_sub(started.elapsed());
            let post = self
                .inbox
                .wait(left)
                .ok_or_else(|| GstError::WarmUp(format!("no answer within {} s", WARM_UP.as_secs())))?;
            let Post::Signal(id, signal) = post else { continue };
            match self.signal(id, signal) {
                Some(MediaEvent::Answered { .. }) => {
                    took = Some(started.elapsed());
                    open = open_descriptors();
                    self.command(MediaCommand::Finish { session });
                }
                Some(MediaEvent::Failed { why, .. }) => return Err(GstError::WarmUp(why)),
                Some(MediaEvent::Gone { .. }) => break,
                _ => {}
            }
        }
        // From what there is after it, since the first session opens what stays open.
        if let (Some(during), Some(after)) = (open, open_descriptors()) {
            self.descriptors = during.saturating_sub(after).max(DESCRIPTORS);
        }
        // The bell rang for nobody: the loop that it is to wake finds nothing.
        while self.inbox.next().is_some() {}
        took.ok_or_else(|| GstError::WarmUp("it had no answer".into()))
    }

    /// Takes the servers over if gathering with them does not stall.
    fn try_servers(&mut self, stun: Option<String>, turn: Vec<String>) -> Result<(), GstError> {
        self.shared.stun = stun;
        self.shared.turn = turn;
        if self.warm_up()? >= SLOW_GATHERING {
            tracing::warn!("a STUN or TURN server does not answer: going on without any of them");
            self.shared.stun = None;
            self.shared.turn.clear();
        }
        Ok(())
    }
}

fn open_descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use holdfast_core::input::Loss;

    use super::*;
    use crate::codec::Codec;
    use crate::origin::Origin;

    /// Without the warm-up.
    fn bare() -> Sessions {
        gstreamer::init().unwrap();
        let (outbox, inbox) = mailbox(8, Arc::new(|| ()));
        let shared = Shared {
            epoch: Instant::now(),
            clock: gstreamer::SystemClock::obtain(),
            clock_offset: 0,
            addresses: Vec::new(),
            ports: None,
            stun: None,
            turn: Vec::new(),
            audio: AudioChain::Opus,
        };
        let (sessions, sources) = (HashMap::new(), HashMap::new());
        Sessions { shared, sessions, sources, inbox, outbox, descriptors: DESCRIPTORS }
    }

    fn everything(media: &Sessions, source: SourceId) {
        let from = Writer::Source(source);
        let unit = Unit { from, codec: Codec::Aac, pts: 0, dts: 0, key: true, data: Bytes::new() };
        media.outbox.turn(source, Turn::Opened);
        assert!(media.outbox.unit(unit) && media.outbox.data(source, Bytes::new()));
        media.outbox.turn(source, Turn::Lost(Loss::Reset, String::from("late")));
    }

    #[test]
    fn nothing_is_said_of_a_source_that_is_closed_or_lost() {
        let mut media = bare();
        let (source, origin) = (SourceId::from_parts(1, 1), Origin::Test);
        media.command(MediaCommand::Open { source, origin: origin.clone() });
        media.command(MediaCommand::Close { source });
        everything(&media, source);
        assert!(media.poll().is_none());

        let source = SourceId::from_parts(1, 2);
        media.command(MediaCommand::Open { source, origin });
        everything(&media, source);
        assert!(matches!(media.poll(), Some(MediaEvent::SourceLost { loss: Loss::Unusable, .. })));
        assert!(media.poll().is_none());
        assert!(media.sources.is_empty());
    }
}
