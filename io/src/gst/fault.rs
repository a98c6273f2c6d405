//! What a failed origin meant, as far as GStreamer's errors and the text that comes with them let it be told.

use gstreamer::glib;
use gstreamer::{LibraryError, ResourceError};
use holdfast_core::input::Loss;

use crate::origin::Secrets;

/// An error off the bus: its own words, and the text for developers, whose last line often says more.
pub(super) struct Fault<'e> {
    pub(super) error: &'e glib::Error,
    pub(super) debug: Option<&'e str>,
}

impl Fault<'_> {
    /// The text after the lines that name source file and element.
    fn detail(&self) -> &str {
        self.debug.and_then(|debug| debug.lines().last()).unwrap_or_default().trim()
    }

    /// The status of an RTSP answer: rtspsrc writes "Not Found (404)".
    fn status(&self) -> Option<u16> {
        let (_, status) = self.detail().strip_suffix(')')?.rsplit_once('(')?;
        status.parse().ok().filter(|status| (300..600).contains(status))
    }

    /// What happened to an RTSP origin.
    pub(super) fn of_rtsp(&self) -> Loss {
        match self.status() {
            Some(404 | 410) => return Loss::NotFound,
            Some(401 | 403 | 407) => return Loss::Forbidden,
            Some(_) => return Loss::Refused,
            None => {}
        }
        match self.error.kind::<ResourceError>() {
            Some(ResourceError::NotFound) => Loss::NotFound,
            Some(ResourceError::NotAuthorized) => Loss::Forbidden,
            // No name, no way there and nobody who listens read alike: "Failed to connect. (Generic error)".
            Some(ResourceError::OpenRead | ResourceError::OpenReadWrite) => Loss::Unreachable,
            Some(ResourceError::Read | ResourceError::Write) => Loss::Reset,
            Some(ResourceError::Settings) => Loss::Refused,
            _ => Loss::Unusable,
        }
    }

    /// What happened to an SRT origin; libsrt tells it in words.
    pub(super) fn of_srt(&self) -> Loss {
        let detail = self.detail().to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| detail.contains(word));
        if self.error.matches(ResourceError::NotAuthorized) || says(&["password", "passphrase", "secret"]) {
            Loss::Forbidden
        } else if says(&["resolve"]) {
            Loss::Unresolved
        } else if says(&["timeout", "timed out", "unreachable"]) {
            Loss::Unreachable
        } else if says(&["reject", "setup failure"]) {
            Loss::Refused
        } else if says(&["broken", "does not exist", "closed", "lost"]) {
            Loss::Reset
        } else if self.error.kind::<LibraryError>().is_some() {
            Loss::Unusable
        } else {
            match self.error.kind::<ResourceError>() {
                Some(ResourceError::OpenRead | ResourceError::OpenReadWrite) => Loss::Unreachable,
                Some(ResourceError::Read) => Loss::Reset,
                _ => Loss::Unusable,
            }
        }
    }

    /// In words, without any of `secrets`.
    pub(super) fn why(&self, secrets: &Secrets) -> String {
        secrets.without(format!("{} {}", self.error.message().trim_end(), self.detail()).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    const PLACE: &str =
        "../gst/rtsp/gstrtspsrc.c(6895): gst_rtspsrc_send (): /GstPipeline:pipeline0/GstRTSPSrc:rtspsrc0:\n";

    fn rtsp(kind: ResourceError, detail: &str) -> Loss {
        let debug = format!("{PLACE}{detail}");
        Fault { error: &glib::Error::new(kind, "It failed."), debug: Some(&debug) }.of_rtsp()
    }

    fn srt(kind: ResourceError, detail: &str) -> Loss {
        Fault { error: &glib::Error::new(kind, "It failed."), debug: Some(detail) }.of_srt()
    }

    #[test]
    fn the_status_of_an_rtsp_answer_says_most() {
        for (detail, loss) in [
            ("Not Found (404)", Loss::NotFound),
            ("Gone (410)", Loss::NotFound),
            ("Unauthorized (401)", Loss::Forbidden),
            ("Forbidden (403)", Loss::Forbidden),
            ("Not Enough Bandwidth (453)", Loss::Refused),
            ("Service Unavailable (503)", Loss::Refused),
        ] {
            assert_eq!(rtsp(ResourceError::Read, detail), loss, "{detail}");
        }
    }

    #[test]
    fn without_a_status_the_kind_of_the_error_counts() {
        for (kind, loss) in [
            (ResourceError::OpenReadWrite, Loss::Unreachable),
            (ResourceError::Read, Loss::Reset),
            (ResourceError::Write, Loss::Reset),
            (ResourceError::NotAuthorized, Loss::Forbidden),
            (ResourceError::Failed, Loss::Unusable),
        ] {
            assert_eq!(rtsp(kind, "Could not do it. (Generic error)"), loss, "{kind:?}");
        }
    }

    #[test]
    fn srt_says_it_in_words() {
        for (detail, loss) in [
            ("Failed to open SRT: Failed to resolve host 'a.example': Name or service not known", Loss::Unresolved),
            ("Error on SRT socket: Connection timeout", Loss::Unreachable),
            ("Error on SRT socket: Connection was broken", Loss::Reset),
            ("Error on SRT socket: Connection rejected", Loss::Refused),
        ] {
            assert_eq!(srt(ResourceError::Read, detail), loss, "{detail}");
        }
    }

    #[test]
    fn nothing_secret_is_repeated() {
        let url = Url::parse("rtsp://admin:geheim@a.example/cam?user=root&pass=x1y2").unwrap();
        let secrets = Secrets::of(&url);
        let why = |message: &str, detail: &str| {
            Fault { error: &glib::Error::new(ResourceError::Read, message), debug: Some(detail) }.why(&secrets)
        };
        assert_eq!(why("Not found.", "Not Found (404)"), "Not found. Not Found (404)");
        assert_eq!(why("Not found.", "no rtsp://admin:geheim@a.example/cam"), "Not found. no rtsp://…:…@a.example/cam");
        assert_eq!(why("No answer for x1y2.", ""), "No answer for ….");
        assert!(!why("No answer for x1y2.", "geheim").contains("x1y2"));
    }
}
