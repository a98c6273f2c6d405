//! From a track's jitter buffer to the loop's queue: depay, parse, and for AAC decode and encode.

use std::sync::Arc;

use gstreamer::glib;
use gstreamer::prelude::*;
use gstreamer::{
    Buffer, BufferFlags, BufferList, Caps, ClockTime, Element, ElementFactory, Event, FlowError, FlowSuccess,
    FormattedSegment, GhostPad, Pad, PadDirection, PadProbeReturn, PadProbeType, Pipeline, ProxyPad, QueryRef,
    QueryViewMut, Sample, Structure,
};
use gstreamer_app::{AppSink, AppSinkCallbacks};
use holdfast_core::input::Writer;

use super::elements::AudioChain;
use super::mailbox::Line;
use crate::media::{Activity, Codec, Unit};

/// Access units that may wait in an appsink; its callback takes them at once.
const SINK_BUFFERS: u32 = 200;

/// Everything a branch is made from; kept by the session to build it anew.
#[derive(Clone)]
pub(super) struct Branches {
    pub(super) audio: AudioChain,
    pub(super) activity: Arc<Activity>,
    pub(super) line: Arc<Line>,
    /// Added to a pipeline clock's nanoseconds it gives the driver's.
    pub(super) clock_offset: i64,
}

/// A kind of track; its branch goes by this name in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Audio,
    Video,
}

impl Track {
    const ALL: [Track; 2] = [Track::Audio, Track::Video];

    fn of(pad: &Pad) -> Option<Track> {
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        match caps.structure(0)?.get::<&str>("encoding-name").ok()? {
            "H264" => Some(Track::Video),
            "OPUS" => Some(Track::Audio),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Track::Audio => "audio",
            Track::Video => "video",
        }
    }
}

impl Branches {
    /// Links a new branch to a pad of webrtcbin that has just appeared. Runs on the pad's streaming thread.
    pub(super) fn attach(&self, pipeline: &Pipeline, pad: &Pad) -> Result<(), glib::BoolError> {
        let Some(track) = Track::of(pad) else { return Ok(()) };
        if pipeline.by_name(track.name()).is_some() {
            return Ok(());
        }
        self.link(pipeline, pad, track)?;
        if track == Track::Video {
            request_key_frame(pipeline);
        }
        Ok(())
    }

    /// Takes every branch off and links a new one, while the transport goes on. For a thread that may wait: a branch is taken
    /// down with whatever it is busy with.
    pub(super) fn rebuild(&self, pipeline: &Pipeline) -> Result<(), glib::BoolError> {
        for track in Track::ALL {
            let Some(old) = pipeline.by_name(track.name()) else { continue };
            let Some(pad) = old.static_pad("sink").and_then(|sink| sink.peer()) else { continue };
            let block = pad.add_probe(PadProbeType::BLOCK_DOWNSTREAM, |_, _| PadProbeReturn::Ok);
            let done = old.set_state(gstreamer::State::Null).map_err(|_| glib::bool_error!("a branch does not stop"));
            let done = done.and_then(|_| pipeline.remove(&old)).and_then(|()| self.link(pipeline, &pad, track));
            if let Some(block) = block {
                pad.remove_probe(block);
            }
            done?;
        }
        request_key_frame(pipeline);
        Ok(())
    }

    fn link(&self, pipeline: &Pipeline, pad: &Pad, track: Track) -> Result<(), glib::BoolError> {
        let branch = gstreamer::Bin::builder().name(track.name()).build();
        let elements = match track {
            Track::Video => self.video(),
            Track::Audio => self.audio(),
        }?;
        branch.add_many(&elements)?;
        Element::link_many(&elements)?;
        let entry = elements.first().and_then(|first| first.static_pad("sink"));
        let entry = entry.ok_or_else(|| glib::bool_error!("a depayloader has no sink pad"))?;
        let sink = door();
        sink.set_target(Some(&entry))?;
        branch.add_pad(&sink)?;
        pipeline.add(&branch)?;
        branch.sync_state_with_parent()?;
        pad.link(&sink).map_err(|error| glib::bool_error!("a track cannot be linked: {error}"))?;
        // The pipeline may have gone to NULL between reading its state and taking it over.
        if self.activity.is_finished() && branch.set_state(gstreamer::State::Null).is_err() {
            return Err(glib::bool_error!("a branch does not stop"));
        }
        Ok(())
    }

    fn video(&self) -> Result<Vec<Element>, glib::BoolError> {
        Ok(vec![
            ElementFactory::make("rtph264depay")
                .property("wait-for-keyframe", true)
                .property("request-keyframe", true)
                .build()?,
            // GStreamer's own payloader repeats the parameter sets before every slice of a key frame. As a byte stream
            // the parser would take each repetition for a new picture without a timestamp; packed as avc, parameter sets
            // leave the stream, and a picture stays whole up to its marker bit, in however many slices it comes.
            ElementFactory::make("capsfilter")
                .property(
                    "caps",
                    Caps::builder("video/x-h264").field("stream-format", "avc").field("alignment", "au").build(),
                )
                .build()?,
            ElementFactory::make("h264parse")
                .property("config-interval", -1)
                .property("disable-passthrough", true)
                .build()?,
            self.sink(
                Codec::H264,
                Caps::builder("video/x-h264").field("stream-format", "byte-stream").field("alignment", "au").build(),
            ),
        ])
    }

    fn audio(&self) -> Result<Vec<Element>, glib::BoolError> {
        let depay = ElementFactory::make("rtpopusdepay").build()?;
        match self.audio {
            // WebRTC's Opus is declared stereo whatever is in the packets (RFC 7587 §7), and a sender may change over at will.
            AudioChain::Opus => Ok(vec![
                depay,
                ElementFactory::make("opusparse").build()?,
                self.sink(Codec::Opus { channels: 2 }, Caps::new_empty_simple("audio/x-opus")),
            ]),
            // One rate and layout for every publisher, so that players see one stream across sessions.
            AudioChain::Aac { encoder } => Ok(vec![
                depay,
                ElementFactory::make("opusdec").build()?,
                ElementFactory::make("audioconvert").build()?,
                ElementFactory::make("audioresample").build()?,
                ElementFactory::make("capsfilter")
                    .property("caps", Caps::builder("audio/x-raw").field("rate", 48_000).field("channels", 2).build())
                    .build()?,
                ElementFactory::make(encoder).build()?,
                ElementFactory::make("aacparse").build()?,
                self.sink(
                    Codec::Aac,
                    Caps::builder("audio/mpeg").field("mpegversion", 4).field("stream-format", "adts").build(),
                ),
            ]),
        }
    }

    fn sink(&self, codec: Codec, caps: Caps) -> Element {
        let mut bridge = Bridge::new(codec, self.clone());
        let callbacks = AppSinkCallbacks::builder()
            .new_sample(move |sink| {
                if let Ok(sample) = sink.pull_sample() {
                    bridge.take(sink, &sample);
                }
                Ok(FlowSuccess::Ok)
            })
            .build();
        // async: a sink added to a playing pipeline would otherwise send it through preroll again.
        AppSink::builder()
            .name(if codec.is_video() { "video-sink" } else { "audio-sink" })
            .caps(&caps)
            .async_(false)
            .sync(false)
            .max_buffers(SINK_BUFFERS)
            .drop(true)
            .callbacks(callbacks)
            .build()
            .upcast()
    }
}

/// Asks the publisher for a key frame (PLI), through the video branch of `pipeline` if there is one.
pub(super) fn request_key_frame(pipeline: &Pipeline) {
    if let Some(sink) = pipeline.by_name("video-sink") {
        sink.send_event(key_frame_event());
    }
}

fn key_frame_event() -> Event {
    let request = Structure::builder("GstForceKeyUnit").field("all-headers", true).field("count", 0u32).build();
    gstreamer::event::CustomUpstream::new(request)
}

/// The door of a branch. It never reports failure upstream: a jitter buffer stops for good at the first bad return, and its branch
/// may be taken down under a buffer. And it takes whatever was negotiated: webrtcbin asks it for caps when it answers an ICE
/// restart, and refuses the section if a branch that is just being built names none.
fn door() -> GhostPad {
    fn chain(pad: &GhostPad, parent: Option<&gstreamer::Object>, buffer: Buffer) -> Result<FlowSuccess, FlowError> {
        Ok(ProxyPad::chain_default(pad, parent, buffer).unwrap_or(FlowSuccess::Ok))
    }
    fn chain_list(
        pad: &GhostPad,
        parent: Option<&gstreamer::Object>,
        list: BufferList,
    ) -> Result<FlowSuccess, FlowError> {
        Ok(ProxyPad::chain_list_default(pad, parent, list).unwrap_or(FlowSuccess::Ok))
    }
    fn query(pad: &GhostPad, parent: Option<&gstreamer::Object>, query: &mut QueryRef) -> bool {
        let QueryViewMut::Caps(caps) = query.view_mut() else { return Pad::query_default(pad, parent, query) };
        let any = caps.filter_owned().unwrap_or_else(Caps::new_any);
        caps.set_result(&any);
        true
    }
    GhostPad::builder(PadDirection::Sink)
        .name("sink")
        .chain_function(chain)
        .chain_list_function(chain_list)
        .query_function(query)
        .build()
}

/// Takes samples out of an appsink and puts units into the loop's queue.
struct Bridge {
    codec: Codec,
    to: Branches,
    /// A picture was lost: what refers to it is of no use until the next key frame.
    broken: bool,
}

impl Bridge {
    fn new(codec: Codec, to: Branches) -> Self {
        Bridge { codec, to, broken: false }
    }

    fn take(&mut self, sink: &AppSink, sample: &Sample) {
        if self.to.activity.is_finished() {
            return;
        }
        match self.read(sink, sample) {
            Some(unit) => self.send(sink, unit),
            // Of no use: without timestamp or payload.
            None => self.to.activity.drop_unit(),
        }
    }

    fn send(&mut self, sink: &AppSink, unit: Unit) {
        if unit.key {
            self.broken = false;
        }
        if self.broken {
            return self.to.activity.drop_unit();
        }
        if !self.to.line.outbox.unit(unit) {
            self.lose(sink);
        }
    }

    /// Counts a lost unit. After a lost picture only a key frame is of use.
    fn lose(&mut self, sink: &AppSink) {
        self.to.activity.drop_unit();
        if self.codec.is_video() && !self.broken {
            self.broken = true;
            sink.send_event(key_frame_event());
        }
    }

    fn read(&self, sink: &AppSink, sample: &Sample) -> Option<Unit> {
        let buffer = sample.buffer_owned()?;
        let (pts, dts, flags) = (buffer.pts(), buffer.dts(), buffer.flags());
        let data = buffer.into_mapped_buffer_readable().ok()?;
        let segment = sample.segment()?.downcast_ref::<ClockTime>()?;
        let base = i64::try_from(sink.base_time()?.nseconds()).ok()? + self.to.clock_offset;
        let pts = micros(segment, pts?, base)?;
        // Without B-frames, which WebRTC's H.264 never has, decoding order is presentation order.
        let dts = dts.and_then(|dts| micros(segment, dts, base)).map_or(pts, |dts| dts.min(pts));
        // An intra picture that is no IDR is not marked as a delta either, but nothing can be decoded from there.
        let key = !self.codec.is_video() || (!flags.contains(BufferFlags::DELTA_UNIT) && is_idr(&data));
        let data = bytes::Bytes::from_owner(data);
        Some(Unit { from: Writer::Session(self.to.line.session), codec: self.codec, pts, dts, key, data })
    }
}

/// Whether an access unit in Annex B is an instantaneous decoding refresh: its first slice (NAL types 1 to 5, ITU-T H.264 table 7-1)
/// is of type 5. What comes before it is short: this looks at no more than a few hundred bytes of a picture.
fn is_idr(data: &[u8]) -> bool {
    let starts = data.windows(4).filter(|window| window[..3] == [0, 0, 1]);
    starts.map(|window| window[3] & 0x1f).find(|kind| (1..=5).contains(kind)) == Some(5)
}

/// A position in `segment` as µs on the driver's clock, which is `base` ns ahead of running time.
fn micros(segment: &FormattedSegment<ClockTime>, position: ClockTime, base: i64) -> Option<i64> {
    let running = segment.to_running_time_full(position)?;
    let nanos = match running {
        gstreamer::Signed::Positive(time) => i64::try_from(time.nseconds()).ok()?,
        gstreamer::Signed::Negative(time) => -i64::try_from(time.nseconds()).ok()?,
    };
    nanos.checked_add(base).map(|nanos| nanos.div_euclid(1000))
}

#[cfg(test)]
mod tests {
    use gstreamer::{Segment, State};
    use holdfast_core::input::SessionId;

    use super::super::mailbox::{Inbox, Post, mailbox};
    use super::*;

    /// An appsink of a branch, fed by hand on this thread.
    struct Rig {
        activity: Arc<Activity>,
        inbox: Inbox,
        sink: Element,
        pad: Pad,
    }

    impl Drop for Rig {
        fn drop(&mut self) {
            let _ = self.sink.set_state(State::Null);
        }
    }

    impl Rig {
        fn new(codec: Codec, queue: usize) -> Rig {
            gstreamer::init().unwrap();
            let (outbox, inbox) = mailbox(queue, Arc::new(|| ()));
            let activity = Arc::new(Activity::default());
            let branches = Branches {
                audio: AudioChain::Opus,
                activity: Arc::clone(&activity),
                line: Arc::new(Line::new(SessionId::from_parts(3, 1), outbox)),
                clock_offset: 5_000_000,
            };
            let caps = Caps::new_empty_simple("video/x-h264");
            let sink = branches.sink(codec, caps.clone());
            sink.set_base_time(ClockTime::from_mseconds(20));
            sink.set_state(State::Playing).unwrap();
            let pad = sink.static_pad("sink").unwrap();
            let mut segment = FormattedSegment::<ClockTime>::new();
            segment.set_start(ClockTime::from_mseconds(100));
            assert!(pad.send_event(gstreamer::event::StreamStart::new("test")));
            assert!(pad.send_event(gstreamer::event::Caps::new(&caps)));
            assert!(pad.send_event(gstreamer::event::Segment::new(AsRef::<Segment>::as_ref(&segment))));
            Rig { activity, inbox, sink, pad }
        }

        fn push(&self, pts: Option<u64>, flags: BufferFlags) {
            self.push_data(pts, flags, &[0, 0, 1, 0x65, 0x88]);
        }

        fn push_data(&self, pts: Option<u64>, flags: BufferFlags, data: &'static [u8]) {
            let mut buffer = Buffer::from_slice(data);
            let writable = buffer.make_mut();
            writable.set_pts(pts.map(ClockTime::from_mseconds));
            writable.set_flags(flags);
            self.pad.chain(buffer).unwrap();
        }

        fn units(&self) -> Vec<(i64, bool)> {
            let posts = std::iter::from_fn(|| self.inbox.next());
            posts
                .map(|post| if let Post::Unit(unit) = post { (unit.pts, unit.key) } else { panic!("{post:?}") })
                .collect()
        }
    }

    #[test]
    fn only_an_instantaneous_decoding_refresh_is_a_key_frame() {
        let rig = Rig::new(Codec::H264, 8);
        // Delimiter and intra slice, no IDR: the parser does not mark it as a delta unit.
        rig.push_data(Some(200), BufferFlags::empty(), &[0, 0, 0, 1, 9, 0x10, 0, 0, 1, 0x61, 0x88]);
        rig.push_data(Some(240), BufferFlags::empty(), &[0, 0, 0, 1, 9, 0x10, 0, 0, 1, 0x65, 0x88]);
        rig.push_data(Some(280), BufferFlags::DELTA_UNIT, &[0, 0, 0, 1, 9, 0x30, 0, 0, 1, 0x41, 0x9a]);
        let keys: Vec<bool> = rig.units().into_iter().map(|(_, key)| key).collect();
        assert_eq!(keys, [false, true, false]);
    }

    #[test]
    fn a_unit_bears_the_driver_s_time() {
        let rig = Rig::new(Codec::H264, 8);
        rig.push(Some(101), BufferFlags::empty());
        rig.push(Some(141), BufferFlags::DELTA_UNIT);
        // 1 ms into the segment, 20 ms of base time, 5 ms between the clocks.
        assert_eq!(rig.units(), [(26_000, true), (66_000, false)]);
    }

    #[test]
    fn a_position_before_the_segment_is_negative_running_time() {
        gstreamer::init().unwrap();
        let mut segment = FormattedSegment::<ClockTime>::new();
        segment.set_start(ClockTime::from_mseconds(100));
        assert_eq!(micros(&segment, ClockTime::from_mseconds(90), 0), Some(-10_000));
    }

    #[test]
    fn a_unit_without_a_timestamp_is_dropped_and_counted_and_the_stream_goes_on() {
        let rig = Rig::new(Codec::H264, 8);
        rig.push(Some(100), BufferFlags::empty());
        rig.push(None, BufferFlags::DELTA_UNIT);
        rig.push(Some(180), BufferFlags::DELTA_UNIT);
        assert_eq!(rig.units().len(), 2);
        assert_eq!(rig.activity.dropped(), 1);
    }

    #[test]
    fn nothing_leaves_a_finished_session() {
        let rig = Rig::new(Codec::H264, 8);
        rig.push(Some(100), BufferFlags::empty());
        rig.activity.finish();
        rig.push(Some(140), BufferFlags::empty());
        assert_eq!(rig.units().len(), 1);
        assert_eq!(rig.activity.dropped(), 0);
    }

    #[test]
    fn after_a_lost_picture_nothing_that_refers_to_it_goes_out_and_a_key_frame_is_asked_for_once() {
        let rig = Rig::new(Codec::H264, 1);
        rig.push(Some(100), BufferFlags::empty());
        rig.push(Some(140), BufferFlags::DELTA_UNIT);
        assert_eq!(rig.units().len(), 1);
        rig.push(Some(180), BufferFlags::DELTA_UNIT);
        assert_eq!(rig.units(), []);
        rig.push(Some(220), BufferFlags::empty());
        assert_eq!(rig.units(), [(145_000, true)]);
        assert_eq!(rig.activity.dropped(), 2);
    }

    #[test]
    fn lost_audio_takes_nothing_with_it() {
        let rig = Rig::new(Codec::Aac, 1);
        for at in [100, 120] {
            rig.push(Some(at), BufferFlags::empty());
        }
        assert_eq!(rig.units().len(), 1);
        rig.push(Some(140), BufferFlags::empty());
        assert_eq!(rig.units().len(), 1);
        assert_eq!(rig.activity.dropped(), 1);
    }

    #[test]
    fn a_branch_that_fails_does_not_stop_what_feeds_it() {
        gstreamer::init().unwrap();
        let pad = door();
        let inner = Pad::builder(PadDirection::Sink)
            .name("inner")
            .chain_function(|_, _, _| Err(gstreamer::FlowError::Error))
            .build();
        inner.set_active(true).unwrap();
        pad.set_target(Some(&inner)).unwrap();
        pad.set_active(true).unwrap();
        assert!(pad.send_event(gstreamer::event::StreamStart::new("test")));
        let segment = FormattedSegment::<ClockTime>::new();
        assert!(pad.send_event(gstreamer::event::Segment::new(AsRef::<Segment>::as_ref(&segment))));
        assert_eq!(pad.chain(Buffer::from_slice([0])), Ok(FlowSuccess::Ok));
    }
}
