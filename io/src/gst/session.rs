//! One publisher: a pipeline of its own around one webrtcbin, and how far its negotiation has come.
//!
//! webrtcbin answers every request on a thread of its own. Each answer travels to the loop as a [`Signal`], and the next step
//! is taken there: a session has one place where it advances, and no lock.

use std::sync::Arc;

use gstreamer::glib;
use gstreamer::prelude::*;
use gstreamer::{
    Bus, BusSyncReply, ClockTime, Element, ElementFactory, MessageView, Pipeline, Promise, State, Structure,
};
use gstreamer_sdp::SDPMessage;
use gstreamer_webrtc::{
    WebRTCBundlePolicy, WebRTCDTLSTransport, WebRTCDTLSTransportState, WebRTCICEConnectionState,
    WebRTCICEGatheringState, WebRTCRTPTransceiver, WebRTCRTPTransceiverDirection, WebRTCSDPType,
    WebRTCSessionDescription,
};
use holdfast_core::input::{EndReason, SessionId, Writer};

use super::branch::{self, Branches};
use super::bridge::Delivery;
use super::credentials;
use super::evidence::{Ingress, Payloads};
use super::mailbox::{Line, Outbox, Reply, Signal};
use super::{Shared, restart};
use crate::media::{Activity, MediaEvent, Packet, SessionSettings};
use crate::sdp::{self, Candidate, Credentials, Kind, Offer};

/// SSRCs per session that get a jitter buffer, each with a thread: two tracks, their retransmissions, and some for a sender
/// that starts a track anew.
const STREAMS: u32 = 8;

/// Between DTLS close_notify and the end of the sockets that carry it.
const GOODBYE: ClockTime = ClockTime::from_mseconds(20);

/// What [`MediaCommand::Start`](crate::media::MediaCommand::Start) brings.
pub(super) struct Start {
    pub(super) session: SessionId,
    pub(super) offer: Offer,
    pub(super) activity: Arc<Activity>,
    pub(super) settings: SessionSettings,
}

/// Which answer of webrtcbin is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    RemoteDescription,
    Answer,
    LocalDescription,
    Gathering,
    /// None: the session is negotiated.
    Settled,
}

/// An ICE restart under way.
struct Restart {
    ours: Credentials,
    candidates: Vec<Candidate>,
}

pub(super) struct Session {
    id: SessionId,
    offer: Offer,
    settings: SessionSettings,
    activity: Arc<Activity>,
    branches: Branches,
    line: Arc<Line>,
    webrtc: Element,
    /// The one transport of the bundle, once it is negotiated.
    dtls: Option<WebRTCDTLSTransport>,
    step: Step,
    gathered: bool,
    restart: Option<Restart>,
    pipeline: Live,
}

/// A pipeline that is taken to NULL before it is dropped, as GStreamer demands.
struct Live(Pipeline);

impl Drop for Live {
    fn drop(&mut self) {
        // Going to NULL cannot fail in a way that leaves anything to do.
        let _ = self.0.set_state(State::Null);
    }
}

impl Session {
    /// Builds the pipeline and hands the offer to webrtcbin.
    ///
    /// # Errors
    /// In words, for the log: what GStreamer refused.
    pub(super) fn start(shared: &Shared, outbox: &Outbox, start: Start) -> Result<Session, String> {
        let Start { session: id, offer, activity, settings } = start;
        let message = SDPMessage::parse_buffer(offer.text.as_bytes()).map_err(|error| error.to_string())?;
        let line = Arc::new(Line::new(id, outbox.clone()));
        let payloads = payloads(&offer, &message)?;
        let ingress = Arc::new(Ingress::new(Arc::clone(&activity), payloads, shared.epoch, Arc::clone(&line)));
        let to = Delivery {
            from: Writer::Session(id),
            activity: Arc::clone(&activity),
            outbox: outbox.clone(),
            clock_offset: shared.clock_offset,
        };
        let branches = Branches { audio: shared.audio, to };
        let pipeline = Live(Pipeline::new());
        let webrtc = webrtc(shared, &settings).map_err(|error| error.to_string())?;
        shared.agent(&webrtc)?;
        pipeline.0.use_clock(Some(&shared.clock));
        pipeline.0.add(&webrtc).map_err(|error| error.to_string())?;
        let bin = webrtc.downcast_ref::<gstreamer::Bin>().ok_or("webrtcbin is not a bin")?;
        let rtpbin = bin.by_name("rtpbin").ok_or("webrtcbin has no rtpbin")?;
        rtpbin.set_property("max-streams", STREAMS);
        ingress.watch(&pipeline.0, &rtpbin);
        listen(&pipeline.0, &webrtc, &line, &branches);
        pipeline.0.set_state(State::Playing).map_err(|error| error.to_string())?;
        let session = Session {
            id,
            offer,
            settings,
            activity,
            branches,
            line,
            webrtc,
            dtls: None,
            step: Step::RemoteDescription,
            gathered: false,
            restart: None,
            pipeline,
        };
        session.set_description("set-remote-description", WebRTCSDPType::Offer, message);
        Ok(session)
    }

    /// Whether the publisher has its answer.
    pub(super) fn is_answered(&self) -> bool {
        self.step == Step::Settled || self.restart.is_some()
    }

    /// Candidates of the publisher. All of them belong to the section that carries the bundle: webrtcbin queues those of any
    /// other for ever.
    pub(super) fn add_candidates(&self, candidates: &[Candidate]) {
        let bundle = u32::try_from(self.offer.transport).unwrap_or(0);
        for candidate in candidates {
            self.webrtc.emit_by_name::<()>("add-ice-candidate", &[&bundle, &candidate.as_str()]);
        }
    }

    pub(super) fn request_key_frame(&self) {
        branch::request_key_frame(&self.pipeline.0);
    }

    /// Builds what lies behind the jitter buffers anew, on another thread.
    pub(super) fn rebuild(&self) {
        let (branches, line) = (self.branches.clone(), Arc::clone(&self.line));
        self.pipeline.0.call_async(move |pipeline| {
            if let Err(error) = branches.rebuild(pipeline) {
                line.end(Signal::Fault(error.to_string()));
            }
        });
    }

    /// Starts an ICE restart towards the publisher's new credentials and candidates.
    ///
    /// # Errors
    /// In words, for the client: it goes on with the old ones.
    pub(super) fn restart(&mut self, ufrag: &str, pwd: &str, candidates: Vec<Candidate>) -> Result<(), String> {
        if self.step != Step::Settled {
            return Err("a negotiation is under way".into());
        }
        let offer = self.offer.restarted(ufrag, pwd);
        let message = SDPMessage::parse_buffer(offer.text.as_bytes()).map_err(|error| error.to_string())?;
        let ours = credentials::fresh().map_err(|error| error.to_string())?;
        restart::restart_stream(&agent(&self.webrtc))?;
        self.offer = offer;
        self.restart = Some(Restart { ours, candidates });
        self.step = Step::RemoteDescription;
        self.set_description("set-remote-description", WebRTCSDPType::Offer, message);
        Ok(())
    }

    /// All candidates are known.
    ///
    /// # Errors
    /// As [`Session::replied`].
    pub(super) fn gathered(&mut self) -> Result<Option<MediaEvent>, String> {
        self.gathered = true;
        if self.step == Step::Gathering { self.answer().map(Some) } else { Ok(None) }
    }

    /// Takes the step that follows webrtcbin's reply.
    ///
    /// # Errors
    /// In words: the negotiation failed. A session without an answer is to be dropped; one with an answer goes on.
    pub(super) fn replied(&mut self, reply: Reply) -> Result<Option<MediaEvent>, String> {
        let event = reply.and_then(|description| self.advance(description));
        if event.is_err() && self.restart.take().is_some() {
            self.step = Step::Settled;
        }
        event
    }

    fn advance(&mut self, description: Option<WebRTCSessionDescription>) -> Result<Option<MediaEvent>, String> {
        match self.step {
            Step::RemoteDescription => {
                if self.restart.is_none() {
                    self.add_transceivers()?;
                }
                self.step = Step::Answer;
                self.webrtc.emit_by_name::<()>("create-answer", &[&None::<Structure>, &self.promise()]);
                Ok(None)
            }
            Step::Answer => {
                let description = description.ok_or("webrtcbin made no answer")?;
                let message = self.with_new_credentials(description.sdp().to_owned())?;
                self.step = Step::LocalDescription;
                self.set_description("set-local-description", WebRTCSDPType::Answer, message);
                Ok(None)
            }
            Step::LocalDescription => match self.restart.take() {
                Some(restart) => {
                    self.step = Step::Settled;
                    self.add_candidates(&restart.candidates);
                    let Credentials { ufrag, pwd } = restart.ours;
                    Ok(Some(MediaEvent::Restarted { session: self.id, ufrag, pwd }))
                }
                None => {
                    self.listen_for_close();
                    self.step = Step::Gathering;
                    if self.gathered { self.answer().map(Some) } else { Ok(None) }
                }
            },
            Step::Gathering | Step::Settled => Ok(None),
        }
    }

    /// Tells the publisher (DTLS close_notify) and takes everything down, on another thread; [`Signal::Gone`] follows when the
    /// pipeline is disposed of.
    pub(super) fn finish(self) {
        let Session { webrtc, dtls, activity, line, pipeline, .. } = self;
        activity.finish();
        let connected = dtls.is_some_and(|dtls| dtls.state() == WebRTCDTLSTransportState::Connected);
        drop(webrtc);
        pipeline.0.add_weak_ref_notify(move || line.send(Signal::Gone));
        pipeline.0.clone().call_async(move |running| {
            if connected {
                say_goodbye(running);
            }
            drop(pipeline);
        });
    }

    /// Takes everything down, on another thread, and tells nobody.
    pub(super) fn discard(self) {
        self.activity.finish();
        let pipeline = self.pipeline;
        pipeline.0.clone().call_async(move |_| drop(pipeline));
    }

    /// webrtcbin 1.22 makes no transceivers from an offer: one per section, with the one codec chosen, or it would answer with
    /// whatever was offered.
    fn add_transceivers(&self) -> Result<(), String> {
        let message = SDPMessage::parse_buffer(self.offer.text.as_bytes()).map_err(|error| error.to_string())?;
        for (section, media) in self.offer.sections.iter().zip(message.medias()) {
            let caps = media.caps_from_media(section.payload_type.into());
            let mut caps = caps.ok_or_else(|| format!("payload type {} is not described", section.payload_type))?;
            for structure in caps.make_mut().iter_mut() {
                structure.set_name("application/x-rtp");
            }
            let transceiver = self.webrtc.emit_by_name::<WebRTCRTPTransceiver>(
                "add-transceiver",
                &[&WebRTCRTPTransceiverDirection::Recvonly, &caps],
            );
            transceiver.set_property("codec-preferences", &caps);
            transceiver.set_property("do-nack", true);
        }
        Ok(())
    }

    /// The answer's text: an ICE restart needs other credentials than webrtcbin's, which stay what they were.
    fn with_new_credentials(&self, answer: SDPMessage) -> Result<SDPMessage, String> {
        let Some(Restart { ours, .. }) = &self.restart else { return Ok(answer) };
        let text = answer.as_text().map_err(|error| error.to_string())?;
        let text = sdp::with_credentials(&text, &ours.ufrag, &ours.pwd);
        SDPMessage::parse_buffer(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn answer(&mut self) -> Result<MediaEvent, String> {
        let local = self.webrtc.property::<Option<WebRTCSessionDescription>>("local-description");
        let local = local.ok_or("webrtcbin has no local description")?;
        let local = local.sdp().as_text().map_err(|error| error.to_string())?;
        let answer = self.offer.answer(&local, self.settings.max_video_bitrate).map_err(|fault| fault.to_string())?;
        self.step = Step::Settled;
        Ok(MediaEvent::Answered { session: self.id, answer })
    }

    /// webrtcbin's own states never move when a publisher closes; the DTLS transport's does, within milliseconds.
    fn listen_for_close(&mut self) {
        let transceiver = self.webrtc.emit_by_name::<Option<WebRTCRTPTransceiver>>("get-transceiver", &[&0i32]);
        self.dtls =
            transceiver.and_then(|transceiver| transceiver.receiver()).and_then(|receiver| receiver.transport());
        let Some(dtls) = &self.dtls else { return };
        let line = Arc::clone(&self.line);
        dtls.connect_state_notify(move |dtls| {
            if matches!(dtls.state(), WebRTCDTLSTransportState::Closed | WebRTCDTLSTransportState::Failed) {
                line.end(Signal::Ended(EndReason::DtlsClosed));
            }
        });
    }

    fn set_description(&self, signal: &str, kind: WebRTCSDPType, message: SDPMessage) {
        let description = WebRTCSessionDescription::new(kind, message);
        self.webrtc.emit_by_name::<()>(signal, &[&description, &self.promise()]);
    }

    fn promise(&self) -> Promise {
        let line = Arc::clone(&self.line);
        Promise::with_change_func(move |reply| {
            let reply = match reply {
                Ok(None) => Ok(None),
                Ok(Some(reply)) => match reply.get::<glib::Error>("error") {
                    Ok(error) => Err(error.to_string()),
                    Err(_) => Ok(reply.get("answer").ok()),
                },
                Err(error) => Err(format!("webrtcbin gave no reply: {error:?}")),
            };
            line.send(Signal::Reply(reply));
        })
    }
}

fn payloads(offer: &Offer, message: &SDPMessage) -> Result<Payloads, String> {
    let mut payloads = Payloads::none();
    for (section, media) in offer.sections.iter().zip(message.medias()) {
        let packet = match section.kind {
            Kind::Audio => Packet::Audio,
            Kind::Video => Packet::Video,
        };
        payloads.add(media, section.payload_type, packet);
    }
    Ok(payloads)
}

fn webrtc(shared: &Shared, settings: &SessionSettings) -> Result<Element, glib::BoolError> {
    let latency = u32::try_from(settings.jitter.as_millis()).unwrap_or(u32::MAX);
    let webrtc = ElementFactory::make("webrtcbin")
        .property("bundle-policy", WebRTCBundlePolicy::MaxBundle)
        .property("latency", latency)
        .build()?;
    if let Some(stun) = &shared.stun {
        webrtc.set_property("stun-server", stun);
    }
    for turn in &shared.turn {
        webrtc.emit_by_name::<bool>("add-turn-server", &[turn]);
    }
    Ok(webrtc)
}

/// libnice's agent.
pub(super) fn agent(webrtc: &Element) -> glib::Object {
    webrtc.property::<glib::Object>("ice-agent").property("agent")
}

/// Nothing in here holds the pipeline or an element: a closure that did would keep them alive for ever.
fn listen(pipeline: &Pipeline, webrtc: &Element, line: &Arc<Line>, branches: &Branches) {
    if let Some(bus) = pipeline.bus() {
        let line = Arc::clone(line);
        bus.set_sync_handler(move |_: &Bus, message| {
            if let MessageView::Error(error) = message.view() {
                let source = message.src().map(|source| source.name());
                line.end(Signal::Fault(format!("{}: {}", source.as_deref().unwrap_or("?"), error.error())));
            }
            BusSyncReply::Drop
        });
    }
    let (branches, to) = (branches.clone(), Arc::clone(line));
    webrtc.connect_pad_added(move |webrtc, pad| {
        if pad.direction() != gstreamer::PadDirection::Src {
            return;
        }
        let pipeline = webrtc.parent().and_then(|parent| parent.downcast::<Pipeline>().ok());
        if let Some(pipeline) = pipeline
            && let Err(error) = branches.attach(&pipeline, pad)
        {
            to.end(Signal::Fault(error.to_string()));
        }
    });
    let to = Arc::clone(line);
    webrtc.connect_notify(Some("ice-gathering-state"), move |webrtc, _| {
        if webrtc.property::<WebRTCICEGatheringState>("ice-gathering-state") == WebRTCICEGatheringState::Complete {
            to.send(Signal::Gathered);
        }
    });
    // `Disconnected` ends nothing: a network that flaps comes back within the same session.
    let to = Arc::clone(line);
    webrtc.connect_notify(Some("ice-connection-state"), move |webrtc, _| {
        let state = webrtc.property::<WebRTCICEConnectionState>("ice-connection-state");
        if matches!(state, WebRTCICEConnectionState::Failed | WebRTCICEConnectionState::Closed) {
            to.end(Signal::Ended(EndReason::IceFailed));
        }
    });
}

/// DTLS close_notify goes out when the encoder's data pad ends; without the wait the sockets would close before it.
fn say_goodbye(pipeline: &Pipeline) {
    let mut told = false;
    for encoder in pipeline.iterate_all_by_element_factory_name("dtlssrtpenc") {
        let Ok(encoder) = encoder else { continue };
        if let Some(pad) = encoder.static_pad("data_sink") {
            told |= pad.send_event(gstreamer::event::Eos::new());
        }
    }
    if told {
        let clock = gstreamer::SystemClock::obtain();
        let until = clock.time() + GOODBYE;
        // Early or late makes no difference worth telling.
        let _ = clock.new_single_shot_id(until).wait();
    }
}
