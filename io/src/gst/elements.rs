//! Which GStreamer elements sessions and sources need, and where Debian keeps them.

use super::{AudioCodec, GstError};

const GOOD: &str = "gstreamer1.0-plugins-good";
const BAD: &str = "gstreamer1.0-plugins-bad";
const BASE: &str = "gstreamer1.0-plugins-base";
const NICE: &str = "gstreamer1.0-nice";

const ALWAYS: [(&str, &str); 15] = [
    ("webrtcbin", BAD),
    ("rtpbin", GOOD),
    ("nicesrc", NICE),
    ("nicesink", NICE),
    ("dtlssrtpdec", BAD),
    ("dtlssrtpenc", BAD),
    ("srtpdec", "gstreamer1.0-plugins-bad"),
    ("srtpenc", BAD),
    ("capsfilter", "libgstreamer1.0-0"),
    ("appsink", BASE),
    ("rtph264depay", GOOD),
    ("h264parse", BAD),
    ("rtpopusdepay", GOOD),
    ("opusparse", BAD),
    ("rtprtxreceive", GOOD),
];

const FOR_AAC: [(&str, &str); 4] =
    [("opusdec", BASE), ("audioconvert", BASE), ("audioresample", BASE), ("aacparse", GOOD)];

/// From an RTSP origin's packets to what viewers get, whatever its codecs.
const FOR_RTSP: [(&str, &str); 17] = [
    ("rtspsrc", GOOD),
    ("udpsrc", GOOD),
    ("rtph265depay", GOOD),
    ("h265parse", BAD),
    ("rtpmp4gdepay", GOOD),
    ("rtpmp4adepay", GOOD),
    ("aacparse", GOOD),
    ("rtppcmudepay", GOOD),
    ("rtppcmadepay", GOOD),
    ("mulawdec", GOOD),
    ("alawdec", GOOD),
    ("rtpmpadepay", GOOD),
    ("mpegaudioparse", GOOD),
    ("mpg123audiodec", GOOD),
    ("rtpac3depay", GOOD),
    ("ac3parse", GOOD),
    ("rtpjitterbuffer", GOOD),
];

/// Best first.
const AAC_ENCODERS: [&str; 2] = ["avenc_aac", "voaacenc"];

/// What becomes of a publisher's Opus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AudioChain {
    /// It stays as it is.
    Opus,
    /// It is decoded and encoded anew, by this element.
    Aac { encoder: &'static str },
}

/// Loads every element that sessions will need, so that no POST pays for it, and settles how audio is coded.
pub(super) fn load(audio: AudioCodec) -> Result<AudioChain, GstError> {
    for (element, package) in ALWAYS {
        need(element, package)?;
    }
    let encoder = AAC_ENCODERS.into_iter().find(|encoder| is_there(encoder));
    let encoder = match (audio, encoder) {
        (AudioCodec::Opus, _) | (AudioCodec::Auto, None) => return Ok(AudioChain::Opus),
        (AudioCodec::Aac, None) => {
            return Err(GstError::Missing { element: "avenc_aac", package: "gstreamer1.0-libav" });
        }
        (AudioCodec::Aac | AudioCodec::Auto, Some(encoder)) => encoder,
    };
    for (element, package) in FOR_AAC {
        need(element, package)?;
    }
    Ok(AudioChain::Aac { encoder })
}

/// # Errors
/// [`GstError::Missing`]
pub(super) fn for_rtsp() -> Result<(), GstError> {
    FOR_RTSP.into_iter().try_for_each(|(element, package)| need(element, package))
}

/// # Errors
/// [`GstError::Missing`]
pub(super) fn for_srt() -> Result<(), GstError> {
    need("srtsrc", BAD)
}

fn need(element: &'static str, package: &'static str) -> Result<(), GstError> {
    if is_there(element) { Ok(()) } else { Err(GstError::Missing { element, package }) }
}

fn is_there(element: &str) -> bool {
    use gstreamer::prelude::*;
    gstreamer::ElementFactory::find(element).is_some_and(|factory| factory.load().is_ok())
}
