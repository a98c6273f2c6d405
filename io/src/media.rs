//! The border between the event loop and whatever carries the media of WHIP sessions (GStreamer, or a simulated peer).
//!
//! Media threads write [`Activity`], read its one flag, and push [`Unit`]s into a bounded queue with a waker. They never
//! call into the core and never take a lock of ours. The loop sends [`MediaCommand`]s and gets [`MediaEvent`]s back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::input::{Arrivals, EndReason, Evidence, Loss, SessionId, SourceId, Writer};
use holdfast_core::time::Time;

use crate::codec::Codec;
use crate::origin::Origin;
use crate::sdp::{Candidate, Offer};

/// Which packets a stamp is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// RTP of the audio track.
    Audio,
    /// RTP of the video track.
    Video,
    /// RTCP.
    Control,
}

/// The evidence of one session: written by its media threads, read by the loop. Relaxed loads and stores only.
///
/// Each kind has one writing thread, so a count needs no atomic addition.
#[derive(Debug, Default)]
pub struct Activity {
    audio: Counter,
    video: Counter,
    control: Counter,
    finished: AtomicBool,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Counter {
    count: AtomicU64,
    /// µs since the driver's epoch; meaningless while `count` is 0.
    last: AtomicU64,
}

impl Activity {
    /// One packet came off the network at `now`.
    #[inline]
    pub fn stamp(&self, packet: Packet, now: Time) {
        let counter = match packet {
            Packet::Audio => &self.audio,
            Packet::Video => &self.video,
            Packet::Control => &self.control,
        };
        counter.last.store(now.as_micros(), Relaxed);
        counter.count.store(counter.count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// What came in so far.
    pub fn evidence(&self) -> Evidence {
        Evidence { audio: self.audio.arrivals(), video: self.video.arrivals(), control: self.control.arrivals() }
    }

    /// From here on nothing of this session may enter its slot.
    pub fn finish(&self) {
        self.finished.store(true, Relaxed);
    }

    /// Whether the session is over. Checked per buffer, after the sample was pulled, so that the queue drains.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.finished.load(Relaxed)
    }

    /// One unit could not be used: no timestamp, or the loop's queue was full.
    pub fn drop_unit(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// How many units could not be used.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

impl Counter {
    fn arrivals(&self) -> Arrivals {
        let count = self.count.load(Relaxed);
        Arrivals { count, last: (count > 0).then(|| Time::from_micros(self.last.load(Relaxed))) }
    }
}

/// One access unit of one track, on its way into a slot.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Where it came from.
    pub from: Writer,
    /// How it is coded.
    pub codec: Codec,
    /// When it is to be shown, µs on the driver's clock. May lie before the driver's epoch by a little.
    pub pts: i64,
    /// When it is to be decoded, µs on the driver's clock.
    pub dts: i64,
    /// Whether decoding can start here (always true for audio).
    pub key: bool,
    /// The payload.
    pub data: Bytes,
}

/// What the loop asks of the media side. Nothing here blocks.
#[derive(Debug)]
pub enum MediaCommand {
    /// Negotiate an offer; answered by [`MediaEvent::Answered`] or [`MediaEvent::Failed`].
    Start {
        /// The session.
        session: SessionId,
        /// The checked offer.
        offer: Box<Offer>,
        /// What its threads write.
        activity: Arc<Activity>,
        /// Its endpoint's settings.
        settings: SessionSettings,
    },
    /// Candidates that the publisher trickled.
    Candidates {
        /// The session.
        session: SessionId,
        /// Usable ones only.
        candidates: Vec<Candidate>,
    },
    /// ICE restart; answered by [`MediaEvent::Restarted`] or [`MediaEvent::RestartFailed`].
    Restart {
        /// The session.
        session: SessionId,
        /// The publisher's new username fragment.
        ufrag: String,
        /// The publisher's new password.
        pwd: String,
        /// The publisher's new candidates, if it sent any.
        candidates: Vec<Candidate>,
    },
    /// Ask the publisher for a key frame.
    KeyFrame {
        /// The session.
        session: SessionId,
    },
    /// Build what lies behind the jitter buffer anew.
    Rebuild {
        /// The session.
        session: SessionId,
    },
    /// Fetch a channel from an origin that GStreamer speaks with ([`Origin::Rtsp`], [`Origin::Srt`]); answered by
    /// [`MediaEvent::SourceOpened`] and media, or by [`MediaEvent::SourceLost`]. It does not try again by itself.
    Open {
        /// The source.
        source: SourceId,
        /// Where.
        origin: Origin,
    },
    /// Take the source down; nothing is to be said of it any more.
    Close {
        /// The source.
        source: SourceId,
    },
    /// Tell the publisher (DTLS close_notify), then take everything down; answered by [`MediaEvent::Gone`].
    Finish {
        /// The session.
        session: SessionId,
    },
}

/// Settings of an endpoint that matter to its sessions' media.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Length of the jitter buffer.
    pub jitter: Duration,
    /// Put into the answer, bits per second.
    pub max_video_bitrate: u64,
}

/// What the media side tells the loop.
#[derive(Debug)]
pub enum MediaEvent {
    /// The answer to the offer, complete with candidates.
    Answered {
        /// The session.
        session: SessionId,
        /// SDP, as the client gets it.
        answer: String,
    },
    /// The offer could not be negotiated.
    Failed {
        /// The session.
        session: SessionId,
        /// In words, for the problem body and the log.
        why: String,
    },
    /// The publisher or its transport ended the session.
    Ended {
        /// The session.
        session: SessionId,
        /// `IceFailed`, `DtlsClosed` or `Bye`.
        reason: EndReason,
    },
    /// ICE was restarted.
    Restarted {
        /// The session.
        session: SessionId,
        /// Our new username fragment.
        ufrag: String,
        /// Our new password.
        pwd: String,
    },
    /// ICE could not be restarted; the old one goes on.
    RestartFailed {
        /// The session.
        session: SessionId,
        /// In words.
        why: String,
    },
    /// An access unit.
    Unit(Unit),
    /// The origin agreed to send.
    SourceOpened {
        /// The source.
        source: SourceId,
    },
    /// Bytes of the MPEG-TS that an origin sends.
    SourceData {
        /// The source.
        source: SourceId,
        /// In any pieces.
        data: Bytes,
    },
    /// The source is of no more use. It is taken down by itself.
    SourceLost {
        /// The source.
        source: SourceId,
        /// What happened.
        loss: Loss,
        /// In words, for the status and the log: without what may not be repeated of the origin's address.
        why: String,
    },
    /// Nothing of the session is left: threads, sockets, memory.
    Gone {
        /// The session.
        session: SessionId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_none_before_the_first_packet_even_at_time_zero() {
        let activity = Activity::default();
        assert_eq!(activity.evidence(), Evidence::default());
        activity.stamp(Packet::Video, Time::ZERO);
        let evidence = activity.evidence();
        assert_eq!(evidence.video, Arrivals { count: 1, last: Some(Time::ZERO) });
        assert_eq!(evidence.audio.last, None);
    }

    #[test]
    fn kinds_are_counted_apart() {
        let activity = Activity::default();
        for ms in 0..3 {
            activity.stamp(Packet::Audio, Time::from_micros(ms * 1000));
        }
        activity.stamp(Packet::Control, Time::from_micros(9));
        let evidence = activity.evidence();
        assert_eq!((evidence.audio.count, evidence.video.count, evidence.control.count), (3, 0, 1));
        assert_eq!(evidence.last_media(), Some(Time::from_micros(2000)));
    }
}
