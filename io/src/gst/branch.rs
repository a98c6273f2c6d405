//! From a track's jitter buffer to the loop's queue: depay, parse, and for AAC decode and encode.

use gstreamer::glib;
use gstreamer::prelude::*;
use gstreamer::{
    Buffer, BufferList, Caps, Element, ElementFactory, FlowError, FlowSuccess, GhostPad, Pad, PadDirection,
    PadProbeReturn, PadProbeType, Pipeline, ProxyPad, QueryRef, QueryViewMut, StructureRef,
};

use super::bridge::{Delivery, key_frame_event};
use super::elements::AudioChain;
use crate::codec::Codec;

/// Everything a branch is made from; kept by the session to build it anew.
#[derive(Clone)]
pub(super) struct Branches {
    pub(super) audio: AudioChain,
    pub(super) to: Delivery,
}

/// A kind of track; its branch goes by this name in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Audio,
    Video,
}

impl Track {
    const ALL: [Track; 2] = [Track::Audio, Track::Video];

    fn name(self) -> &'static str {
        match self {
            Track::Audio => "audio",
            Track::Video => "video",
        }
    }
}

/// How a track is packed into RTP and coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// RFC 6184.
    H264,
    /// RFC 7798.
    H265,
    /// RFC 7587.
    Opus,
    /// RFC 3640.
    Aac,
    /// RFC 6416.
    Latm,
    /// G.711 µ-law (RFC 3551 §4.5.14).
    Pcmu,
    /// G.711 A-law (RFC 3551 §4.5.14).
    Pcma,
    /// MPEG audio (RFC 2250).
    Mpa,
    /// RFC 4184.
    Ac3,
}

impl Format {
    /// Of caps `application/x-rtp`. `None`: nothing that a branch can be made for.
    pub(super) fn of(rtp: &StructureRef) -> Option<Format> {
        match rtp.get::<&str>("encoding-name").ok()? {
            "H264" => Some(Format::H264),
            "H265" => Some(Format::H265),
            "OPUS" => Some(Format::Opus),
            "MPEG4-GENERIC" => Some(Format::Aac),
            "MP4A-LATM" => Some(Format::Latm),
            "PCMU" => Some(Format::Pcmu),
            "PCMA" => Some(Format::Pcma),
            "MPA" => Some(Format::Mpa),
            "AC3" => Some(Format::Ac3),
            _ => None,
        }
    }

    fn of_pad(pad: &Pad) -> Option<Format> {
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        Format::of(caps.structure(0)?)
    }

    pub(super) fn track(self) -> Track {
        if matches!(self, Format::H264 | Format::H265) { Track::Video } else { Track::Audio }
    }

    /// What depacks and decodes audio that viewers cannot have as it is.
    fn decoding(self) -> &'static [&'static str] {
        match self {
            Format::Opus => &["rtpopusdepay", "opusdec"],
            Format::Pcmu => &["rtppcmudepay", "mulawdec"],
            Format::Pcma => &["rtppcmadepay", "alawdec"],
            Format::Mpa => &["rtpmpadepay", "mpegaudioparse", "mpg123audiodec"],
            Format::H264 | Format::H265 | Format::Aac | Format::Latm | Format::Ac3 => &[],
        }
    }
}

impl Branches {
    /// Whether viewers can have what is coded so.
    pub(super) fn take(&self, format: Format) -> bool {
        !matches!(format, Format::Pcmu | Format::Pcma) || matches!(self.audio, AudioChain::Aac { .. })
    }

    /// Links a new branch to a pad with RTP that has just appeared; the second of its kind stays unlinked. Runs on the pad's streaming thread.
    pub(super) fn attach(&self, pipeline: &Pipeline, pad: &Pad) -> Result<(), glib::BoolError> {
        let Some(format) = Format::of_pad(pad) else { return Ok(()) };
        if !self.take(format) || pipeline.by_name(format.track().name()).is_some() {
            return Ok(());
        }
        self.link(pipeline, pad, format)?;
        if format.track() == Track::Video {
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
            let format = Format::of_pad(&pad).ok_or_else(|| glib::bool_error!("a track has lost its format"));
            let done = done.and_then(|_| pipeline.remove(&old)).and_then(|()| self.link(pipeline, &pad, format?));
            if let Some(block) = block {
                pad.remove_probe(block);
            }
            done?;
        }
        request_key_frame(pipeline);
        Ok(())
    }

    fn link(&self, pipeline: &Pipeline, pad: &Pad, format: Format) -> Result<(), glib::BoolError> {
        let branch = gstreamer::Bin::builder().name(format.track().name()).build();
        let elements = match format.track() {
            Track::Video => self.video(format),
            Track::Audio => self.audio(format),
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
        if self.to.activity.is_finished() && branch.set_state(gstreamer::State::Null).is_err() {
            return Err(glib::bool_error!("a branch does not stop"));
        }
        Ok(())
    }

    fn video(&self, format: Format) -> Result<Vec<Element>, glib::BoolError> {
        let (codec, depay, parse, media, packed) = match format {
            Format::H265 => (Codec::H265, "rtph265depay", "h265parse", "video/x-h265", "hvc1"),
            _ => (Codec::H264, "rtph264depay", "h264parse", "video/x-h264", "avc"),
        };
        let stream = |form: &str| Caps::builder(media).field("stream-format", form).field("alignment", "au").build();
        let depay = ElementFactory::make(depay).build()?;
        // Of the two only the one for H.264 can ask.
        for property in ["wait-for-keyframe", "request-keyframe"] {
            if depay.has_property(property) {
                depay.set_property(property, true);
            }
        }
        Ok(vec![
            depay,
            // GStreamer's own payloader repeats the parameter sets before every slice of a key frame. As a byte stream
            // the parser would take each repetition for a new picture without a timestamp; packed as for MP4, parameter sets
            // leave the stream, and a picture stays whole up to its marker bit, in however many slices it comes.
            ElementFactory::make("capsfilter").property("caps", stream(packed)).build()?,
            ElementFactory::make(parse)
                .property("config-interval", -1)
                .property("disable-passthrough", true)
                .build()?,
            self.to.sink(codec, &stream("byte-stream")),
        ])
    }

    fn audio(&self, format: Format) -> Result<Vec<Element>, glib::BoolError> {
        let adts = Caps::builder("audio/mpeg").field("mpegversion", 4).field("stream-format", "adts").build();
        let make = |name: &&str| ElementFactory::make(name).build();
        let as_it_is =
            |depay, parse, codec, caps: &Caps| Ok(vec![make(&depay)?, make(&parse)?, self.to.sink(codec, caps)]);
        match (format, self.audio) {
            (Format::Aac, _) => as_it_is("rtpmp4gdepay", "aacparse", Codec::Aac, &adts),
            (Format::Latm, _) => as_it_is("rtpmp4adepay", "aacparse", Codec::Aac, &adts),
            (Format::Ac3, _) => as_it_is("rtpac3depay", "ac3parse", Codec::Ac3, &Caps::new_empty_simple("audio/x-ac3")),
            (Format::Mpa, AudioChain::Opus) => {
                let caps = Caps::builder("audio/mpeg").field("mpegversion", 1).build();
                as_it_is("rtpmpadepay", "mpegaudioparse", Codec::Mp2, &caps)
            }
            // Opus in RTP is declared stereo whatever is in the packets (RFC 7587 §7), and a sender may change over at will.
            (_, AudioChain::Opus) => {
                as_it_is("rtpopusdepay", "opusparse", Codec::Opus, &Caps::new_empty_simple("audio/x-opus"))
            }
            // One rate and layout for every publisher, so that players see one stream across sessions.
            (_, AudioChain::Aac { encoder }) => {
                let mut elements = format.decoding().iter().map(make).collect::<Result<Vec<_>, _>>()?;
                elements.extend([
                    make(&"audioconvert")?,
                    make(&"audioresample")?,
                    ElementFactory::make("capsfilter")
                        .property(
                            "caps",
                            Caps::builder("audio/x-raw").field("rate", 48_000).field("channels", 2).build(),
                        )
                        .build()?,
                    make(&encoder)?,
                    make(&"aacparse")?,
                    self.to.sink(Codec::Aac, &adts),
                ]);
                Ok(elements)
            }
        }
    }
}

/// Asks the publisher for a key frame (PLI), through the video branch of `pipeline` if there is one.
pub(super) fn request_key_frame(pipeline: &Pipeline) {
    if let Some(sink) = pipeline.by_name("video-sink") {
        sink.send_event(key_frame_event());
    }
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

#[cfg(test)]
mod tests {
    use gstreamer::{ClockTime, FormattedSegment, Segment};

    use super::*;

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
