//! A WHIP client's media side: webrtcbin as the one that offers, with an H.264 and an Opus encoder.

use std::sync::mpsc::{Receiver, channel};

use gstreamer::glib;
use gstreamer::prelude::*;
use gstreamer::{Element, PadProbeReturn, PadProbeType, Pipeline, Promise, State, Structure};
use gstreamer_sdp::SDPMessage;
use gstreamer_webrtc::{WebRTCICEGatheringState, WebRTCSDPType, WebRTCSessionDescription};
use holdfast_core::input::Writer;
use holdfast_io::sdp::with_credentials;

use crate::restart;
use crate::stage::{PATIENCE, Seat, Stage};

/// How a picture is coded.
#[derive(Clone, Copy, Debug)]
pub enum Encoder {
    /// What most programs publish with.
    X264 { slices: u32 },
    /// OpenH264, which browsers use too.
    OpenH264 { slices: u32 },
}

fn video(encoder: Encoder) -> String {
    let encoder = match encoder {
        Encoder::X264 { slices } => format!(
            "x264enc tune=zerolatency threads=1 option-string=slices={slices} speed-preset=ultrafast key-int-max=10000 bitrate=200"
        ),
        Encoder::OpenH264 { slices } => {
            format!("openh264enc slice-mode=n-slices num-slices={slices} gop-size=10000 bitrate=200000")
        }
    };
    format!(
        "videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=256,framerate=15/1 ! {encoder} \
        ! video/x-h264,profile=constrained-baseline ! rtph264pay config-interval=-1 aggregate-mode=zero-latency \
        ! application/x-rtp,media=video,encoding-name=H264,payload=96,clock-rate=90000 ! rtc."
    )
}

fn audio(channels: u32) -> String {
    format!(
        "audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels={channels} ! opusenc ! rtpopuspay \
        ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,encoding-params=(string)2 ! rtc."
    )
}

pub struct Publisher {
    pipeline: Pipeline,
    webrtc: Element,
    gathered: Receiver<()>,
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(State::Null);
    }
}

impl Publisher {
    pub fn new(channels: u32) -> Publisher {
        Publisher::launch(&format!("{} {}", audio(channels), video(Encoder::X264 { slices: 1 })))
    }

    pub fn of_video(encoder: Encoder) -> Publisher {
        Publisher::launch(&video(encoder))
    }

    pub fn of_audio() -> Publisher {
        Publisher::launch(&audio(2))
    }

    fn launch(tracks: &str) -> Publisher {
        let launch = format!("webrtcbin name=rtc bundle-policy=max-bundle {tracks}");
        let pipeline = gstreamer::parse::launch(&launch).unwrap().downcast::<Pipeline>().unwrap();
        let webrtc = pipeline.by_name("rtc").unwrap();
        let ice = webrtc.property::<glib::Object>("ice-agent");
        assert!(ice.emit_by_name::<bool>("add-local-ip-address", &[&"127.0.0.1"]));
        ice.set_property("ice-tcp", false);
        agent(&webrtc).set_property("upnp", false);
        let (gathering, gathered) = channel();
        webrtc.connect_notify(Some("ice-gathering-state"), move |webrtc, _| {
            if webrtc.property::<WebRTCICEGatheringState>("ice-gathering-state") == WebRTCICEGatheringState::Complete {
                let _ = gathering.send(());
            }
        });
        pipeline.set_state(State::Playing).unwrap();
        Publisher { pipeline, webrtc, gathered }
    }

    /// Publishes to `stage` and waits for media of both kinds.
    pub fn live(stage: &mut Stage, channels: u32) -> (Publisher, Seat) {
        let publisher = Publisher::new(channels);
        let seat = publisher.publish(stage);
        stage.unit("audio", |unit| unit.from == Writer::Session(seat.id) && !unit.codec.is_video());
        stage.unit("video", |unit| unit.from == Writer::Session(seat.id) && unit.codec.is_video());
        (publisher, seat)
    }

    pub fn publish(&self, stage: &mut Stage) -> Seat {
        let seat = stage.start(&self.offer());
        let answer = stage.answer(&seat);
        self.accept(&answer);
        seat
    }

    /// With all candidates.
    pub fn offer(&self) -> String {
        let offer = self.create_offer();
        self.describe("set-local-description", WebRTCSDPType::Offer, &offer);
        self.gathered.recv_timeout(PATIENCE).unwrap();
        self.local_description()
    }

    pub fn accept(&self, answer: &str) {
        self.describe("set-remote-description", WebRTCSDPType::Answer, answer);
    }

    /// Offers anew with other credentials, as a browser does for an ICE restart.
    pub fn restart(&self, ufrag: &str, pwd: &str) {
        restart::restart_stream(&agent(&self.webrtc)).unwrap();
        let offer = with_credentials(&self.create_offer(), ufrag, pwd);
        self.describe("set-local-description", WebRTCSDPType::Offer, &offer);
    }

    pub fn candidates(&self) -> Vec<String> {
        let local = self.local_description();
        let lines = local.lines().filter_map(|line| line.strip_prefix("a="));
        lines.filter(|line| line.starts_with("candidate:")).map(str::to_owned).collect()
    }

    /// From here on nothing leaves this publisher: as if its cable were cut.
    pub fn vanish(&self) {
        for sink in self.elements("nicesink") {
            let pad = sink.static_pad("sink").unwrap();
            pad.add_probe(PadProbeType::BUFFER | PadProbeType::BUFFER_LIST, |_, info| {
                info.data = None;
                PadProbeReturn::Handled
            });
        }
    }

    /// Closes DTLS, as a browser's `close()` does.
    pub fn close(&self) {
        for encoder in self.elements("dtlssrtpenc") {
            encoder.static_pad("data_sink").unwrap().send_event(gstreamer::event::Eos::new());
        }
    }

    /// Ends all its tracks in its RTP session, which tells that in RTCP.
    pub fn say_bye(&self) {
        for session in self.elements("rtpsession") {
            session.static_pad("send_rtp_sink").unwrap().send_event(gstreamer::event::Eos::new());
        }
    }

    /// Whether DTLS has been closed from the other side.
    pub fn on_close(&self) -> Receiver<()> {
        let transceiver =
            self.webrtc.emit_by_name::<gstreamer_webrtc::WebRTCRTPTransceiver>("get-transceiver", &[&0i32]);
        let transport = transceiver.sender().unwrap().transport().unwrap();
        let (closing, closed) = channel();
        transport.connect_state_notify(move |transport| {
            if transport.state() == gstreamer_webrtc::WebRTCDTLSTransportState::Closed {
                let _ = closing.send(());
            }
        });
        closed
    }

    fn elements(&self, factory: &str) -> Vec<Element> {
        let found: Vec<Element> =
            self.pipeline.iterate_all_by_element_factory_name(factory).into_iter().flatten().collect();
        assert!(!found.is_empty());
        found
    }

    fn create_offer(&self) -> String {
        let promise = Promise::new();
        self.webrtc.emit_by_name::<()>("create-offer", &[&None::<Structure>, &promise]);
        promise.wait();
        let offer = promise.get_reply().unwrap().get::<WebRTCSessionDescription>("offer").unwrap();
        offer.sdp().as_text().unwrap()
    }

    fn describe(&self, signal: &str, kind: WebRTCSDPType, sdp: &str) {
        let message = SDPMessage::parse_buffer(sdp.as_bytes()).unwrap();
        let promise = Promise::new();
        self.webrtc.emit_by_name::<()>(signal, &[&WebRTCSessionDescription::new(kind, message), &promise]);
        promise.wait();
        if let Some(error) = promise.get_reply().and_then(|reply| reply.get::<glib::Error>("error").ok()) {
            panic!("{signal}: {error}");
        }
    }

    fn local_description(&self) -> String {
        self.webrtc.property::<WebRTCSessionDescription>("local-description").sdp().as_text().unwrap()
    }
}

fn agent(webrtc: &Element) -> glib::Object {
    webrtc.property::<glib::Object>("ice-agent").property("agent")
}
