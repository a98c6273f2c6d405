//! The log: what happened, in sentences for people or in JSON for programs, on standard error.
//!
//! Lines are written by a thread of their own, so that a full pipe or a slow terminal never stops the loop. What does not
//! fit into its queue is lost and counted.

mod note;
mod writer;

use std::io::{IsTerminal, stderr};

use holdfast_core::input::{AccountId, Failure, FeedId, Note};
use holdfast_io::server::About;
use tracing::level_filters::LevelFilter;
use tracing::{Subscriber, debug, error, field, info, trace, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

use crate::config::{self, Format, Settings};
pub(crate) use note::clock_set;
use note::{Told, tell};
use writer::Writer;

/// The log while it is open; dropped, it writes what is left, for a second at most.
pub struct Log {
    _writer: Writer,
}

impl Log {
    /// Opens the log of this process. Only the first one is heard.
    pub fn open(settings: &config::Log) -> Log {
        let (writer, lines) = Writer::start(settings.format, stderr());
        let log = subscriber(settings, stderr().is_terminal(), lines);
        // A second log in one process is a test's; it goes to the first.
        let _ = tracing::subscriber::set_global_default(log);
        Log { _writer: writer }
    }
}

/// Writes down what happened, with the names of the configuration. A sentence stands for itself; programs get its parts as
/// well.
pub fn note(settings: &Settings, note: &Note, about: &About) {
    let Told { level, sentence, endpoint, slot, channel, source, session, reason, viewer, user, playback } =
        tell(note, settings, about);
    if settings.log.format == Format::Text {
        return match level {
            tracing::Level::ERROR => error!("{sentence}"),
            tracing::Level::WARN => warn!("{sentence}"),
            tracing::Level::INFO => info!("{sentence}"),
            tracing::Level::DEBUG => debug!("{sentence}"),
            tracing::Level::TRACE => trace!("{sentence}"),
        };
    }
    let (session, viewer) = (session.map(field::display), viewer.map(field::display));
    let playback = playback.map(field::display);
    match level {
        tracing::Level::ERROR => {
            error!(endpoint, slot, channel, source, session, reason, viewer, user, playback, "{sentence}")
        }
        tracing::Level::WARN => {
            warn!(endpoint, slot, channel, source, session, reason, viewer, user, playback, "{sentence}")
        }
        tracing::Level::INFO => {
            info!(endpoint, slot, channel, source, session, reason, viewer, user, playback, "{sentence}")
        }
        tracing::Level::DEBUG => {
            debug!(endpoint, slot, channel, source, session, reason, viewer, user, playback, "{sentence}")
        }
        tracing::Level::TRACE => {
            trace!(endpoint, slot, channel, source, session, reason, viewer, user, playback, "{sentence}")
        }
    }
}

/// A note as [`note`] says it, without its level.
pub(crate) fn sentence(settings: &Settings, note: &Note) -> String {
    tell(note, settings, &About::default()).sentence
}

/// An account and its provider, in the words of a note.
pub(crate) fn account(account: AccountId, settings: &Settings) -> String {
    note::provider::called(settings, account)
}

/// What became of a request for a title, in the words of a note.
pub(crate) fn failure(failure: Failure) -> String {
    note::provider::failed(failure, None).1
}

/// What a feed belongs to, in the words of a note.
pub(crate) fn place(feed: FeedId, settings: &Settings) -> String {
    note::place(feed, &settings.core, &About::default()).to_string()
}

/// Where colours go to a terminal only.
fn subscriber<W>(settings: &config::Log, colours: bool, lines: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let level = match settings.level {
        config::Level::Error => LevelFilter::ERROR,
        config::Level::Warn => LevelFilter::WARN,
        config::Level::Info => LevelFilter::INFO,
        config::Level::Debug => LevelFilter::DEBUG,
        config::Level::Trace => LevelFilter::TRACE,
    };
    // Libraries speak to developers: they are heard only where something is wrong.
    let targets = Targets::new().with_target("holdfast", level).with_default(level.min(LevelFilter::WARN));
    let layer = tracing_subscriber::fmt::layer().with_writer(lines).with_target(false);
    let layer = match settings.format {
        Format::Text => layer.with_ansi(colours).boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    Registry::default().with(layer.with_filter(targets))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use holdfast_core::id::Id;
    use holdfast_core::input::{EndReason, EndpointId};

    use super::*;
    use crate::config::Level;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic while locked").extend_from_slice(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: Level, format: Format, what: impl FnOnce()) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let settings = config::Log { level, format };
        tracing::subscriber::with_default(subscriber(&settings, false, move || writer.clone()), what);
        let bytes = memory.0.lock().expect("no panic while locked").clone();
        String::from_utf8(bytes).expect("text")
    }

    fn displaced() -> Note {
        Note::SessionEnded {
            endpoint: EndpointId(0),
            slot: 0,
            session: Id::from_parts(3, 1),
            reason: EndReason::Displaced,
            lasted: 61_200_000,
            silent: Some(2_040_000),
        }
    }

    fn told(format: Format) {
        let log = config::Log { format, ..config::Log::default() };
        super::note(&Settings { log, ..Settings::default() }, &displaced(), &About::default());
    }

    const SENTENCE: &str = "endpoint \"live\" slot 1: session 3.1 displaced after 61.2 s: nothing had come from it for 2.0 s \
                            and another publisher asked for the slot";

    #[test]
    fn text_is_a_sentence_and_nothing_else() {
        let text = logged(Level::Info, Format::Text, || told(Format::Text));
        let (_, message) = text.split_once("  WARN ").or_else(|| text.split_once(" WARN ")).expect("a level");
        assert_eq!(message, format!("{SENTENCE}\n"));
    }

    #[test]
    fn json_has_the_sentence_and_its_parts() {
        let text = logged(Level::Info, Format::Json, || told(Format::Json));
        for part in [
            r#""level":"WARN""#,
            r#""endpoint":"live""#,
            r#""slot":1"#,
            r#""session":"3.1""#,
            r#""reason":"displaced""#,
            r#""message":"endpoint \"live\" slot 1: session 3.1 displaced"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("viewer") && !text.contains("channel"), "what a note is not about is left out: {text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn what_is_less_important_than_the_level_is_left_out() {
        assert_eq!(logged(Level::Error, Format::Text, || told(Format::Text)), "");
        assert_eq!(logged(Level::Warn, Format::Text, || info!("x")), "");
        assert!(logged(Level::Debug, Format::Text, || debug!("x")).contains("DEBUG"));
    }

    #[test]
    fn libraries_are_heard_where_something_is_wrong() {
        assert_eq!(logged(Level::Trace, Format::Text, || info!(target: "rustls", "x")), "");
        assert!(logged(Level::Info, Format::Text, || warn!(target: "rustls", "x")).contains("WARN"));
        assert!(logged(Level::Info, Format::Text, || info!(target: "holdfast_io::gst", "x")).contains("INFO"));
    }
}
