//! Packets as they come off the network, before the jitter buffer: what [`Activity`] is stamped from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use gstreamer::prelude::*;
use gstreamer::{BufferRef, Element, Pad, PadProbeData, PadProbeReturn, PadProbeType, Pipeline};
use gstreamer_sdp::SDPMediaRef;
use holdfast_core::input::EndReason;
use holdfast_core::time::Time;

use super::mailbox::{Line, Signal};
use crate::media::{Activity, Packet};

/// What a payload type of the answer stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// Not in the answer: no evidence of anything.
    Unknown,
    /// The track itself.
    Track(Packet),
    /// Retransmissions of the track (RFC 4588): they say as much about its sender, under an SSRC of their own.
    Repair(Packet),
}

/// The payload types of an answer, looked up once when the session is set up.
pub(super) struct Payloads([Payload; 128]);

impl Payloads {
    pub(super) fn none() -> Self {
        Payloads([Payload::Unknown; 128])
    }

    /// Adds the chosen payload type of one section and the retransmissions that go with it.
    pub(super) fn add(&mut self, media: &SDPMediaRef, chosen: u8, packet: Packet) {
        self.set(chosen, Payload::Track(packet));
        for attribute in media.attributes().filter(|attribute| attribute.key() == "fmtp") {
            let Some((payload_type, parameters)) = attribute.value().and_then(|value| value.split_once(' ')) else {
                continue;
            };
            let repaired = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("apt="));
            if repaired.and_then(|apt| apt.parse().ok()) == Some(chosen)
                && let Ok(payload_type) = payload_type.parse()
            {
                self.set(payload_type, Payload::Repair(packet));
            }
        }
    }

    fn set(&mut self, payload_type: u8, payload: Payload) {
        if let Some(entry) = self.0.get_mut(usize::from(payload_type)) {
            *entry = payload;
        }
    }

    /// Of the second byte of an RTP header, whose top bit is the marker.
    fn get(&self, second_byte: u8) -> Payload {
        self.0[usize::from(second_byte & 0x7f)]
    }
}

/// The SSRC a track was last seen with, and whether it said goodbye.
#[derive(Default)]
struct Source(AtomicU64);

const LIVE: u64 = 1 << 32;
const LEFT: u64 = 1 << 33;

impl Source {
    /// A packet after a goodbye takes the goodbye back.
    fn seen(&self, ssrc: u32) {
        self.0.store(LIVE | u64::from(ssrc), Relaxed);
    }

    fn left(&self, ssrc: u32) -> bool {
        self.0.compare_exchange(LIVE | u64::from(ssrc), LEFT, Relaxed, Relaxed).is_ok()
    }

    fn is_live(&self) -> bool {
        self.0.load(Relaxed) & LIVE != 0
    }
}

/// The ingress of one session.
pub(super) struct Ingress {
    pub(super) activity: Arc<Activity>,
    pub(super) payloads: Payloads,
    /// `Time::ZERO` of the driver.
    pub(super) epoch: Instant,
    pub(super) line: Arc<Line>,
    audio: Source,
    video: Source,
}

impl Ingress {
    pub(super) fn new(activity: Arc<Activity>, payloads: Payloads, epoch: Instant, line: Arc<Line>) -> Self {
        Ingress { activity, payloads, epoch, line, audio: Source::default(), video: Source::default() }
    }

    /// Watches every transport that `pipeline` will have, and the goodbyes that its `rtpbin` hears.
    pub(super) fn watch(self: &Arc<Self>, pipeline: &Pipeline, rtpbin: &Element) {
        let ingress = Arc::clone(self);
        pipeline.connect_deep_element_added(move |_, _, element| {
            if element.factory().is_none_or(|factory| factory.name() != "dtlssrtpdec") {
                return;
            }
            if let Some(pad) = element.static_pad("rtp_src") {
                ingress.probe(&pad, Ingress::rtp);
            }
            if let Some(pad) = element.static_pad("rtcp_src") {
                ingress.probe(&pad, Ingress::rtcp);
            }
        });
        let ingress = Arc::clone(self);
        rtpbin.connect("on-bye-ssrc", false, move |arguments| {
            if let Some(Ok(ssrc)) = arguments.get(2).map(|ssrc| ssrc.get()) {
                ingress.goodbye(ssrc);
            }
            None
        });
    }

    fn probe(self: &Arc<Self>, pad: &Pad, packet: fn(&Ingress, &BufferRef, Time)) {
        let ingress = Arc::clone(self);
        pad.add_probe(PadProbeType::BUFFER | PadProbeType::BUFFER_LIST, move |_, info| {
            let now = now(ingress.epoch);
            match &info.data {
                Some(PadProbeData::Buffer(buffer)) => packet(&ingress, buffer, now),
                Some(PadProbeData::BufferList(list)) => list.iter().for_each(|buffer| packet(&ingress, buffer, now)),
                _ => {}
            }
            PadProbeReturn::Ok
        });
    }

    /// RTP fixed header: payload type in byte 1, SSRC in bytes 8 to 11 (RFC 3550 §5.1).
    fn rtp(&self, buffer: &BufferRef, now: Time) {
        let mut header = [0; 12];
        if buffer.size() < header.len() || buffer.copy_to_slice(0, &mut header).is_err() {
            return;
        }
        let [_, second, _, _, _, _, _, _, ssrc @ ..] = header;
        match self.payloads.get(second) {
            Payload::Unknown => return,
            Payload::Track(Packet::Audio) => self.audio.seen(u32::from_be_bytes(ssrc)),
            Payload::Track(_) => self.video.seen(u32::from_be_bytes(ssrc)),
            Payload::Repair(_) => {}
        }
        if let Payload::Track(packet) | Payload::Repair(packet) = self.payloads.get(second) {
            self.activity.stamp(packet, now);
        }
    }

    fn rtcp(&self, _: &BufferRef, now: Time) {
        self.activity.stamp(Packet::Control, now);
    }

    /// An RTCP BYE ends the session once no track is left that has not said it (RFC 3550 §6.6).
    fn goodbye(&self, ssrc: u32) {
        let ours = self.audio.left(ssrc) | self.video.left(ssrc);
        if ours && !self.audio.is_live() && !self.video.is_live() {
            self.line.end(Signal::Ended(EndReason::Bye));
        }
    }
}

/// One monotonic clock read.
fn now(epoch: Instant) -> Time {
    let elapsed = epoch.elapsed();
    Time::from_micros(elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros()))
}

#[cfg(test)]
mod tests {
    use gstreamer::Buffer;
    use gstreamer_sdp::SDPMessage;
    use holdfast_core::input::SessionId;

    use super::super::mailbox::{Inbox, Post, mailbox};
    use super::*;

    const AUDIO: u8 = 111;
    const VIDEO: u8 = 102;
    const REPAIR: u8 = 121;
    const OTHER_REPAIR: u8 = 122;

    fn payloads() -> Payloads {
        gstreamer::init().unwrap();
        let offer = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
            m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n\
            m=video 9 UDP/TLS/RTP/SAVPF 96 97 102 121 122\r\na=rtpmap:102 H264/90000\r\n\
            a=fmtp:102 packetization-mode=1;profile-level-id=42e01f\r\na=fmtp:121 apt=102\r\na=fmtp:122 rtx-time=3; apt=96\r\n";
        let message = SDPMessage::parse_buffer(offer.as_bytes()).unwrap();
        let mut payloads = Payloads::none();
        payloads.add(message.media(0).unwrap(), AUDIO, Packet::Audio);
        payloads.add(message.media(1).unwrap(), VIDEO, Packet::Video);
        payloads
    }

    fn ingress() -> (Ingress, Inbox) {
        let (outbox, inbox) = mailbox(1, Arc::new(|| ()));
        let line = Arc::new(Line::new(SessionId::from_parts(0, 0), outbox));
        (Ingress::new(Arc::default(), payloads(), Instant::now(), line), inbox)
    }

    fn packet(payload_type: u8, ssrc: u32) -> Buffer {
        let mut packet = vec![0x80, payload_type, 0, 1, 0, 0, 0, 0];
        packet.extend(ssrc.to_be_bytes());
        Buffer::from_slice(packet)
    }

    fn receive(ingress: &Ingress, payload_type: u8, ssrc: u32) {
        ingress.rtp(&packet(payload_type, ssrc), Time::from_micros(7));
    }

    fn ended(inbox: &Inbox) -> bool {
        matches!(inbox.next(), Some(Post::Signal(_, Signal::Ended(EndReason::Bye))))
    }

    #[test]
    fn payload_types_of_the_answer_are_told_apart_and_no_other_counts() {
        let (ingress, _inbox) = ingress();
        for payload_type in [AUDIO, AUDIO | 0x80, VIDEO, REPAIR, OTHER_REPAIR, 96, 97, 0] {
            receive(&ingress, payload_type, 1);
        }
        ingress.rtcp(&packet(200, 1), Time::ZERO);
        let evidence = ingress.activity.evidence();
        assert_eq!((evidence.audio.count, evidence.video.count, evidence.control.count), (2, 2, 1));
        assert_eq!(evidence.video.last, Some(Time::from_micros(7)));
    }

    #[test]
    fn a_packet_shorter_than_its_header_is_no_evidence() {
        let (ingress, _inbox) = ingress();
        ingress.rtp(&Buffer::from_slice([0x80, AUDIO, 0]), Time::ZERO);
        assert_eq!(ingress.activity.evidence().audio.count, 0);
    }

    #[test]
    fn goodbye_of_all_sources_ends_the_session_once() {
        let (ingress, inbox) = ingress();
        receive(&ingress, AUDIO, 1);
        receive(&ingress, VIDEO, 2);
        receive(&ingress, REPAIR, 3);
        ingress.goodbye(1);
        ingress.goodbye(99);
        ingress.goodbye(3);
        assert!(!ended(&inbox));
        ingress.goodbye(2);
        ingress.goodbye(2);
        assert!(ended(&inbox));
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_source_that_goes_on_sending_has_not_left() {
        let (ingress, inbox) = ingress();
        receive(&ingress, AUDIO, 1);
        receive(&ingress, VIDEO, 2);
        ingress.goodbye(1);
        receive(&ingress, AUDIO, 1);
        ingress.goodbye(2);
        assert!(!ended(&inbox));
        ingress.goodbye(1);
        assert!(ended(&inbox));
    }
}
