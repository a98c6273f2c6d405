//! The end of every branch: an appsink whose samples become units in the loop's queue.

use std::collections::VecDeque;
use std::sync::Arc;

use gstreamer::prelude::*;
use gstreamer::{BufferFlags, Caps, ClockTime, Element, Event, FlowSuccess, FormattedSegment, Sample, Structure};
use gstreamer_app::{AppSink, AppSinkCallbacks};
use holdfast_core::input::Writer;

use super::mailbox::Outbox;
use crate::codec::{Codec, Found, annexb, h264, h265, mpeg_audio};
use crate::media::{Activity, Unit};

/// Buffers that may wait in an appsink; its callback takes them at once.
const SINK_BUFFERS: u32 = 200;

/// µs between the decoding times of pictures that would have the same: more than one tick of MPEG-TS's 90 kHz.
const APART: i64 = 12;

/// µs between pictures as long as it is not seen.
const FRAME: i64 = 40_000;

/// A decoder holds no more pictures than that (ITU-T H.264 §A.3.1, H.265 §A.4.2).
const MAX_DEPTH: usize = 16;

/// µs by which a picture may be shown before one that came earlier. What goes back further is a clock that was set anew.
const REORDER: i64 = 1_000_000;

/// Where the media of one session or source goes.
#[derive(Clone)]
pub(super) struct Delivery {
    pub(super) from: Writer,
    pub(super) activity: Arc<Activity>,
    pub(super) outbox: Outbox,
    /// Added to a pipeline clock's nanoseconds it gives the driver's.
    pub(super) clock_offset: i64,
}

impl Delivery {
    /// The last element of a branch.
    pub(super) fn sink(&self, codec: Codec, caps: &Caps) -> Element {
        let mut bridge = Bridge::new(codec, self.clone());
        let name = if codec.is_video() { "video-sink" } else { "audio-sink" };
        appsink(name, Some(caps), move |sink, sample| bridge.take(sink, &sample))
    }
}

/// An appsink that gives each sample to `take` at once, on its streaming thread.
pub(super) fn appsink(
    name: &str,
    caps: Option<&Caps>,
    mut take: impl FnMut(&AppSink, Sample) + Send + 'static,
) -> Element {
    let callbacks = AppSinkCallbacks::builder()
        .new_sample(move |sink| {
            if let Ok(sample) = sink.pull_sample() {
                take(sink, sample);
            }
            Ok(FlowSuccess::Ok)
        })
        .build();
    // async: a sink added to a playing pipeline would otherwise send it through preroll again.
    let sink = AppSink::builder()
        .name(name)
        .async_(false)
        .sync(false)
        .max_buffers(SINK_BUFFERS)
        .drop(true)
        .callbacks(callbacks)
        .build();
    sink.set_caps(caps);
    sink.upcast()
}

/// Asks whoever codes the picture for a key frame.
pub(super) fn key_frame_event() -> Event {
    let request = Structure::builder("GstForceKeyUnit").field("all-headers", true).field("count", 0u32).build();
    gstreamer::event::CustomUpstream::new(request)
}

/// Takes samples out of an appsink and puts units into the loop's queue.
struct Bridge {
    codec: Codec,
    to: Delivery,
    order: Order,
    /// A picture was lost: what refers to it is of no use until the next key frame.
    broken: bool,
}

impl Bridge {
    fn new(codec: Codec, to: Delivery) -> Self {
        Bridge { codec, to, order: Order::default(), broken: false }
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
        if !self.to.outbox.unit(unit) {
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

    fn read(&mut self, sink: &AppSink, sample: &Sample) -> Option<Unit> {
        let buffer = sample.buffer_owned()?;
        let (pts, dts, flags) = (buffer.pts(), buffer.dts(), buffer.flags());
        let data = buffer.into_mapped_buffer_readable().ok()?;
        let segment = sample.segment()?.downcast_ref::<ClockTime>()?;
        let base = i64::try_from(sink.base_time()?.nseconds()).ok()? + self.to.clock_offset;
        let pts = micros(segment, pts?, base)?;
        // An intra picture of other kinds is not marked as a delta either, but nothing can be decoded from there.
        let key = !self.codec.is_video() || (!flags.contains(BufferFlags::DELTA_UNIT) && starts(self.codec, &data));
        let dts = match (self.to.from, self.codec.is_video()) {
            (Writer::Source(_), true) => {
                if let Some(depth) = key.then(|| depth(self.codec, &data)).flatten() {
                    self.order.deepen(depth);
                }
                self.order.decode(pts)?
            }
            // Without B-frames, which WebRTC's H.264 never has, decoding order is presentation order.
            _ => dts.and_then(|dts| micros(segment, dts, base)).map_or(pts, |dts| dts.min(pts)),
        };
        let codec = match self.codec {
            // One parser and one name in RTP for all layers.
            Codec::Mp2 | Codec::Mp3 => match mpeg_audio::frame(&data) {
                Found::Frame(frame) => frame.codec,
                Found::More | Found::None => return None,
            },
            codec => codec,
        };
        let data = bytes::Bytes::from_owner(data);
        Some(Unit { from: self.to.from, codec, pts, dts, key, data })
    }
}

/// Gives decoding times to pictures that come in decoding order with nothing but the time when they are shown: RTP carries no more
/// (RFC 6184 §5.1), and an origin may well have B-frames.
///
/// Where a picture may come before `depth` others that are shown earlier, the n-th one is decoded when the one is shown that is
/// shown (n − depth)-th: that is known as soon as it comes, and is as even as the times of showing are. GStreamer's own
/// timestampers find the same times, but hold pictures back: as many as a decoder could, where the stream does not say how many.
#[derive(Default)]
struct Order {
    depth: usize,
    /// The last `depth` + 1 times of showing, in their order.
    shown: VecDeque<i64>,
    decoded: Option<i64>,
}

impl Order {
    /// The stream says how many pictures come before one that is shown earlier.
    fn deepen(&mut self, depth: u8) {
        self.depth = self.depth.max(usize::from(depth));
    }

    /// `None`: the picture would have had to be decoded before it came. That happens once where the stream does not say how deep
    /// its order is: to the first B-frames, which hardly anything refers to.
    fn decode(&mut self, pts: i64) -> Option<i64> {
        if self.shown.back().is_some_and(|latest| latest - pts >= REORDER) {
            self.shown.clear();
            self.decoded = None;
        }
        let at = self.shown.partition_point(|shown| *shown <= pts);
        let earlier = at == 0 && self.shown.len() > self.depth;
        self.depth += usize::from(earlier && self.depth < MAX_DEPTH);
        self.shown.insert(at, pts);
        while self.shown.len() > self.depth + 1 {
            self.shown.pop_front();
        }
        // Pictures before the first one would have been shown at this pace.
        let ahead = (self.depth + 1 - self.shown.len()) as i64 * FRAME;
        let due = self.shown.front().map_or(pts, |shown| shown - ahead);
        let dts = self.decoded.map_or(due, |decoded| due.max(decoded + APART));
        let in_time = dts <= pts;
        if in_time {
            self.decoded = Some(dts);
        }
        in_time.then_some(dts)
    }
}

/// Whether decoding can start at an access unit in Annex B: the type of its first slice says so. H.264's is 5, an instantaneous
/// decoding refresh, of 1 to 5 (ITU-T H.264 table 7-1). What comes before it is short: this looks at no more than a few hundred
/// bytes of a picture.
fn starts(codec: Codec, data: &[u8]) -> bool {
    let headers = data.windows(4).filter(|window| window[..3] == [0, 0, 1]).map(|window| window[3]);
    if codec == Codec::H265 {
        let mut slices = headers.map(h265::kind).filter(|kind| h265::SLICES.contains(kind));
        return slices.next().is_some_and(|kind| h265::RANDOM_ACCESS.contains(&kind));
    }
    headers.map(|header| header & 0x1f).find(|kind| (1..=5).contains(kind)) == Some(5)
}

/// How many pictures come before one that is shown earlier, as the parameter set of a key frame says.
fn depth(codec: Codec, data: &[u8]) -> Option<u8> {
    let picture = if codec == Codec::H265 { h265::picture } else { h264::picture };
    annexb::units(data).find_map(picture)?.reorder
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
    use gstreamer::{Buffer, Pad, Segment, State};
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
            let to = Delivery {
                from: Writer::Session(SessionId::from_parts(3, 1)),
                activity: Arc::clone(&activity),
                outbox,
                clock_offset: 5_000_000,
            };
            let caps = Caps::new_empty_simple("video/x-h264");
            let sink = to.sink(codec, &caps);
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
    fn h265_can_be_decoded_from_bla_idr_and_cra_on() {
        // Parameter sets, then a slice.
        let unit = |kind: u8| [0, 0, 0, 1, 0x40, 1, 0, 0, 1, 0x42, 1, 0, 0, 1, kind << 1, 1, 0x88];
        let keys: Vec<u8> = (0..32).filter(|kind| starts(Codec::H265, &unit(*kind))).collect();
        assert_eq!(keys, [16, 17, 18, 19, 20, 21]);
        assert!(!starts(Codec::H264, &unit(19)) && !starts(Codec::H265, &[0, 0, 1, 0x40, 1]));
    }

    #[test]
    fn a_frame_of_mpeg_audio_says_its_layer() {
        let rig = Rig::new(Codec::Mp2, 8);
        for (ms, data) in [(140, &[0xff, 0xfd, 0xc4, 0]), (160, &[0xff, 0xfb, 0x92, 0]), (180, &[0xff, 0xfb, 0, 0])] {
            rig.push_data(Some(ms), BufferFlags::empty(), data);
        }
        let posts = std::iter::from_fn(|| rig.inbox.next());
        let codecs: Vec<Codec> =
            posts.map(|post| if let Post::Unit(unit) = post { unit.codec } else { panic!("{post:?}") }).collect();
        assert_eq!((codecs, rig.activity.dropped()), (vec![Codec::Mp2, Codec::Mp3], 1));
    }

    /// Decoding times of pictures shown at these times, given in decoding order, all in ms.
    fn decoded(order: &mut Order, shown: impl IntoIterator<Item = i64>) -> Vec<Option<i64>> {
        shown.into_iter().map(|pts| order.decode(pts * 1000)).collect()
    }

    #[test]
    fn pictures_in_the_order_of_showing_are_decoded_when_they_are_shown() {
        let mut order = Order::default();
        assert_eq!(decoded(&mut order, [0, 40, 80]), [Some(0), Some(40_000), Some(80_000)]);
    }

    /// A pyramid of pictures 40 ms apart: P, B that the others refer to, b, b.
    fn pyramids(rounds: i64) -> Vec<i64> {
        let group = |at: i64| [at + 160, at + 80, at + 40, at + 120];
        [0].into_iter().chain((0..rounds).flat_map(|round| group(160 * round))).collect()
    }

    #[test]
    fn with_b_frames_decoding_times_are_even_and_none_is_missing() {
        let mut order = Order::default();
        order.deepen(2);
        let expected: Vec<_> = (0..81).map(|picture| Some((picture - 2) * 40_000)).collect();
        assert_eq!(decoded(&mut order, pyramids(20)), expected);
    }

    #[test]
    fn what_the_stream_does_not_say_is_learned_from_its_first_pictures() {
        let mut order = Order::default();
        let times = decoded(&mut order, pyramids(20));
        assert_eq!(times[..2], [Some(0), Some(160_000)]);
        assert_eq!(times[2..5], [None; 3], "of no use any more");
        assert!(times[5..].is_sorted_by(|earlier, later| earlier.is_some() && earlier < later));
        assert_eq!(times[7..], (7..81).map(|picture| Some((picture - 2) * 40_000)).collect::<Vec<_>>());
    }

    #[test]
    fn a_picture_that_is_lost_shifts_nothing_for_long() {
        let mut order = Order::default();
        order.deepen(2);
        let mut shown = pyramids(20);
        shown.remove(31);
        let times = decoded(&mut order, shown);
        assert!(times.is_sorted_by(|earlier, later| earlier.is_some() && earlier < later));
        assert_eq!(times.last(), Some(&Some(78 * 40_000)));
    }

    #[test]
    fn a_clock_that_is_set_back_starts_the_order_anew() {
        let mut order = Order::default();
        assert_eq!(decoded(&mut order, [100_000, 20, 60]), [Some(100_000_000), Some(20_000), Some(60_000)]);
    }
}
