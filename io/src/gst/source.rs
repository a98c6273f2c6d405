//! One origin that GStreamer speaks with: a pipeline of its own, which is built, started and taken down on GStreamer's threads.
//!
//! Deadlines are none of its business. It says when the origin agreed, gives what it sends, and says once why it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use gstreamer::glib;
use gstreamer::prelude::*;
use gstreamer::{Bus, BusSyncReply, Caps, Element, ElementFactory, MessageView, Pipeline, ProgressType, State};
use holdfast_core::input::{Loss, SourceId, Writer};
use percent_encoding::percent_decode_str;
use url::Url;

use super::Shared;
use super::branch::{Branches, Format, Track};
use super::bridge::{self, Delivery};
use super::elements;
use super::fault::Fault;
use super::mailbox::{Outbox, Turn};
use crate::media::Activity;
use crate::origin::{Origin, Secrets};

/// ms of the jitter buffer: what a camera over a home network needs.
const LATENCY: u32 = 200;

/// ms that libsrt tries to connect. Longer than any deadline of the core.
const SRT_CONNECT: &str = "60000";

/// One source. Dropping it takes everything down, on another thread.
pub(super) struct Source {
    id: SourceId,
    pipeline: Pipeline,
    activity: Arc<Activity>,
}

impl Source {
    /// Starts to fetch. What comes of it is in the mailbox.
    pub(super) fn open(shared: &Shared, outbox: &Outbox, id: SourceId, origin: &Origin) -> Source {
        let pipeline = Pipeline::new();
        pipeline.use_clock(Some(&shared.clock));
        let activity = Arc::new(Activity::default());
        let delivery = Delivery {
            from: Writer::Source(id),
            activity: Arc::clone(&activity),
            outbox: outbox.clone(),
            clock_offset: shared.clock_offset,
        };
        let story = Arc::new(Story::new(id, outbox));
        let kind = match origin {
            Origin::Rtsp(url) => Kind::Rtsp(url.clone(), Branches { audio: shared.audio, to: delivery }),
            Origin::Srt(url) => Kind::Srt(url.clone(), delivery),
            _ => {
                story.lost(Loss::Unusable, String::from("GStreamer fetches nothing but RTSP and SRT"));
                return Source { id, pipeline, activity };
            }
        };
        // Loading plugins and, for SRT, looking up names: neither is for the loop to wait for.
        let open = Arc::clone(&activity);
        pipeline.call_async(move |pipeline| {
            if open.is_finished() {
                return;
            }
            if let Err(why) = kind.start(pipeline, &story) {
                // An element that fails to start says more about it on the bus, and has done so before.
                story.lost(Loss::Unusable, why);
            }
            // It may have been taken down between the look above and its start.
            if open.is_finished() {
                stop(pipeline);
            }
        });
        Source { id, pipeline, activity }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.activity.finish();
        self.pipeline.call_async(stop);
        let dropped = self.activity.dropped();
        if dropped > 0 {
            tracing::debug!(source = %self.id, dropped, "media that could not be taken or used");
        }
    }
}

fn stop(pipeline: &Pipeline) {
    // Going to NULL cannot fail in a way that leaves anything to do.
    let _ = pipeline.set_state(State::Null);
}

/// What is told of a source, each thing once.
struct Story {
    id: SourceId,
    outbox: Outbox,
    opened: AtomicBool,
    lost: AtomicBool,
}

impl Story {
    fn new(id: SourceId, outbox: &Outbox) -> Self {
        Story { id, outbox: outbox.clone(), opened: AtomicBool::new(false), lost: AtomicBool::new(false) }
    }

    fn opened(&self) {
        if !self.opened.swap(true, Relaxed) {
            self.outbox.turn(self.id, Turn::Opened);
        }
    }

    fn lost(&self, loss: Loss, why: String) {
        if !self.lost.swap(true, Relaxed) {
            self.outbox.turn(self.id, Turn::Lost(loss, why));
        }
    }
}

/// What is spoken with the origin.
enum Kind {
    Rtsp(Url, Branches),
    Srt(Url, Delivery),
}

impl Kind {
    /// # Errors
    /// In words: what is missing, or what GStreamer refused.
    fn start(self, pipeline: &Pipeline, story: &Arc<Story>) -> Result<(), String> {
        let refused = |error: glib::BoolError| error.to_string();
        let listener = match self {
            Kind::Rtsp(url, branches) => {
                elements::for_rtsp().map_err(|missing| missing.to_string())?;
                let source = rtsp(&url).map_err(refused)?;
                pipeline.add(&source).map_err(refused)?;
                choose(&source, &branches);
                receive(&source, branches, story);
                Listener { secrets: Secrets::of(&url), judge: |fault| fault.of_rtsp(), story: Arc::clone(story) }
            }
            Kind::Srt(url, delivery) => {
                elements::for_srt().map_err(|missing| missing.to_string())?;
                let source = srt(&url).map_err(refused)?;
                let sink = stream(delivery, story);
                pipeline.add_many([&source, &sink]).map_err(refused)?;
                source.link(&sink).map_err(refused)?;
                let to = Arc::clone(story);
                source.connect("caller-added", false, move |_| {
                    to.opened();
                    None
                });
                Listener { secrets: Secrets::of(&url), judge: |fault| fault.of_srt(), story: Arc::clone(story) }
            }
        };
        listener.listen(pipeline);
        pipeline.set_state(State::Playing).map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Hears what the elements of a source say. Holds neither pipeline nor element: that would keep them alive for ever.
struct Listener {
    secrets: Secrets,
    judge: fn(&Fault<'_>) -> Loss,
    story: Arc<Story>,
}

impl Listener {
    fn listen(self, pipeline: &Pipeline) {
        let Some(bus) = pipeline.bus() else { return };
        bus.set_sync_handler(move |_: &Bus, message| {
            match message.view() {
                MessageView::Error(error) => {
                    let (error, debug) = (error.error(), error.debug());
                    let fault = Fault { error: &error, debug: debug.as_deref() };
                    self.story.lost((self.judge)(&fault), fault.why(&self.secrets));
                }
                MessageView::Eos(_) => self.story.lost(Loss::Ended, String::from("the origin ended the stream")),
                // rtspsrc completes "open" with the last SETUP and its first "request" with PLAY. Keep-alives are no progress.
                MessageView::Progress(progress) => {
                    if let (ProgressType::Complete, "request", _) = progress.get() {
                        self.story.opened();
                    }
                }
                _ => {}
            }
            BusSyncReply::Drop
        });
    }
}

fn rtsp(url: &Url) -> Result<Element, glib::BoolError> {
    let (location, transport) = location(url);
    let source = ElementFactory::make("rtspsrc")
        .property("location", &location)
        .property_from_str("protocols", transport)
        .property("latency", LATENCY)
        .property("udp-reconnect", false)
        .property("timeout", 0u64)
        .property("tcp-timeout", 0u64)
        .build()?;
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    if !url.username().is_empty() {
        source.set_property("user-id", plain(url.username()));
        source.set_property("user-pw", plain(url.password().unwrap_or_default()));
    }
    Ok(source)
}

/// The URL that the origin is asked for, and over what RTP is to come. `transport=udp` is for us; the rest of the query is the
/// origin's. Credentials have their own way.
fn location(url: &Url) -> (String, &'static str) {
    let mut plain = url.clone();
    // A URL that cannot have them has none.
    let _ = plain.set_username("").and_then(|()| plain.set_password(None));
    let mut transport = "tcp";
    if let Some(query) = url.query() {
        let mut kept = Vec::new();
        for part in query.split('&') {
            match part {
                "transport=udp" => transport = "udp",
                "transport=tcp" => transport = "tcp",
                part => kept.push(part),
            }
        }
        plain.set_query((!kept.is_empty()).then(|| kept.join("&")).as_deref());
    }
    (plain.into(), transport)
}

/// Asks the origin for the first picture and the first sound that viewers can have, and for nothing else.
fn choose(source: &Element, branches: &Branches) {
    let branches = branches.clone();
    let (video, audio) = (AtomicBool::new(false), AtomicBool::new(false));
    source.connect("select-stream", false, move |arguments| {
        let caps = arguments.get(2).and_then(|caps| caps.get::<Caps>().ok());
        let structure = caps.as_ref().and_then(|caps| caps.structure(0));
        let format = structure.and_then(Format::of).filter(|format| branches.take(*format));
        let wanted = match format.map(Format::track) {
            Some(Track::Video) => !video.swap(true, Relaxed),
            Some(Track::Audio) => !audio.swap(true, Relaxed),
            None => false,
        };
        if !wanted {
            let encoding = structure.and_then(|structure| structure.get::<&str>("encoding-name").ok());
            tracing::info!(source = ?branches.to.from, encoding = encoding.unwrap_or("unknown"), "a track is left out");
        }
        Some(wanted.to_value())
    });
}

/// Makes a branch for each track that comes.
fn receive(source: &Element, branches: Branches, story: &Arc<Story>) {
    let story = Arc::clone(story);
    source.connect_pad_added(move |source, pad| {
        let pipeline = source.parent().and_then(|parent| parent.downcast::<Pipeline>().ok());
        if let Some(pipeline) = pipeline
            && let Err(error) = branches.attach(&pipeline, pad)
        {
            story.lost(Loss::Unusable, error.to_string());
        }
    });
}

/// The URL's own query gives mode, passphrase, latency and libsrt's other options.
fn srt(url: &Url) -> Result<Element, glib::BoolError> {
    let mut url = url.clone();
    if !url.query_pairs().any(|(name, _)| name == "conntimeo") {
        url.query_pairs_mut().append_pair("conntimeo", SRT_CONNECT);
    }
    let source = ElementFactory::make("srtsrc").property("uri", url.as_str()).build()?;
    if source.has_property("auto-reconnect") {
        source.set_property("auto-reconnect", false);
    }
    Ok(source)
}

/// The end of an SRT source. A caller learns that it is connected from the first bytes: nothing tells it before.
fn stream(to: Delivery, story: &Arc<Story>) -> Element {
    let story = Arc::clone(story);
    bridge::appsink("stream-sink", None, move |_, sample| {
        if to.activity.is_finished() {
            return;
        }
        story.opened();
        let data = sample.buffer_owned().and_then(|buffer| buffer.into_mapped_buffer_readable().ok());
        if !data.is_some_and(|data| to.outbox.data(story.id, Bytes::from_owner(data))) {
            to.activity.drop_unit();
        }
    })
}

#[cfg(test)]
mod tests {
    use gstreamer::{Buffer, FormattedSegment, Segment};

    use super::super::mailbox::{Inbox, Post, mailbox};
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn credentials_and_our_own_parameter_are_no_part_of_the_location() {
        for (given, asked, transport) in [
            ("rtsp://a.example/cam", "rtsp://a.example/cam", "tcp"),
            ("rtsp://u:p@a.example:8554/cam?transport=udp", "rtsp://a.example:8554/cam", "udp"),
            (
                "rtsps://a.example/cam?channel=1&transport=udp&sub=a%20b",
                "rtsps://a.example/cam?channel=1&sub=a%20b",
                "udp",
            ),
            ("rtsp://a.example/cam?transport=tcp", "rtsp://a.example/cam", "tcp"),
        ] {
            assert_eq!(location(&url(given)), (asked.to_owned(), transport));
        }
    }

    #[test]
    fn credentials_are_decoded() {
        gstreamer::init().unwrap();
        let source = rtsp(&url("rtsp://us%40er:p%3Aw@a.example/cam")).unwrap();
        assert_eq!(source.property::<String>("user-id"), "us@er");
        assert_eq!(source.property::<String>("user-pw"), "p:w");
    }

    #[test]
    fn an_srt_url_keeps_its_options() {
        gstreamer::init().unwrap();
        let uri = |text: &str| srt(&url(text)).unwrap().property::<String>("uri");
        let given = uri("srt://a.example:9000?latency=400&mode=listener");
        assert!(given.contains("latency=400") && given.contains("mode=listener") && given.contains("conntimeo=60000"));
        assert!(uri("srt://a.example:9000?conntimeo=300").contains("conntimeo=300"));
    }

    fn sunk(queue: usize) -> (Element, gstreamer::Pad, Arc<Activity>, Inbox) {
        gstreamer::init().unwrap();
        let (outbox, inbox) = mailbox(queue, Arc::new(|| ()));
        let (id, activity) = (SourceId::from_parts(1, 1), Arc::new(Activity::default()));
        let story = Story::new(id, &outbox);
        let from = Writer::Source(id);
        let sink =
            stream(Delivery { from, activity: Arc::clone(&activity), outbox, clock_offset: 0 }, &Arc::new(story));
        sink.set_state(State::Playing).unwrap();
        let pad = sink.static_pad("sink").unwrap();
        assert!(pad.send_event(gstreamer::event::StreamStart::new("test")));
        let segment = FormattedSegment::<gstreamer::ClockTime>::new();
        assert!(pad.send_event(gstreamer::event::Segment::new(AsRef::<Segment>::as_ref(&segment))));
        (sink, pad, activity, inbox)
    }

    #[test]
    fn bytes_that_find_no_place_are_dropped_and_counted_and_none_leave_after_the_end() {
        let (sink, pad, activity, inbox) = sunk(1);
        for byte in 0..3 {
            pad.chain(Buffer::from_slice([byte])).unwrap();
        }
        assert!(matches!(inbox.next(), Some(Post::Turn(_, Turn::Opened))));
        assert!(matches!(inbox.next(), Some(Post::Data(_, data)) if data[..] == [0]));
        assert!(inbox.next().is_none());
        assert_eq!(activity.dropped(), 2);
        activity.finish();
        pad.chain(Buffer::from_slice([3])).unwrap();
        assert!(inbox.next().is_none());
        assert_eq!(activity.dropped(), 2);
        sink.set_state(State::Null).unwrap();
    }

    #[test]
    fn the_end_is_told_once() {
        let (outbox, inbox) = mailbox(1, Arc::new(|| ()));
        let id = SourceId::from_parts(1, 1);
        let story = Story::new(id, &outbox);
        story.lost(Loss::NotFound, String::from("first"));
        story.lost(Loss::Unusable, String::from("second"));
        assert!(matches!(inbox.next(), Some(Post::Turn(_, Turn::Lost(Loss::NotFound, _)))));
        assert!(inbox.next().is_none());
    }
}
