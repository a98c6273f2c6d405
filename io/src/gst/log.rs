//! What GLib and GStreamer say of themselves goes where our own words go, and not raw to standard error.

use std::sync::Once;

use gstreamer::DebugLevel;
use gstreamer::glib::{self, LogLevel, LogWriterOutput};
use tracing::Level;

/// Listens to both, from the first call on. GStreamer says what `GST_DEBUG` asks it for, which is nothing by default.
pub(super) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        glib::log_set_writer_func(|level, fields| {
            // The process ends at once after it: no other thread would come to write it.
            if level == LogLevel::Error {
                return LogWriterOutput::Unhandled;
            }
            let field = |key: &str| fields.iter().find(|field| field.key() == key).and_then(|field| field.value_str());
            let domain = field("GLIB_DOMAIN").unwrap_or("GLib");
            say(of_glib(level), domain, field("MESSAGE").unwrap_or_default());
            LogWriterOutput::Handled
        });
        gstreamer::log::remove_default_log_function();
        gstreamer::log::add_log_function(|category, level, _, _, _, object, message| {
            let text = message.get();
            let text = text.as_deref().map_or("", glib::GStr::as_str);
            match object {
                Some(object) => say(of_gstreamer(level), category.name(), &format!("{object}: {text}")),
                None => say(of_gstreamer(level), category.name(), text),
            }
        });
    });
}

fn say(level: Level, domain: &str, text: &str) {
    match level {
        Level::ERROR => tracing::error!("{domain}: {text}"),
        Level::WARN => tracing::warn!("{domain}: {text}"),
        Level::INFO => tracing::info!("{domain}: {text}"),
        Level::DEBUG => tracing::debug!("{domain}: {text}"),
        Level::TRACE => tracing::trace!("{domain}: {text}"),
    }
}

/// A critical one is a fault of the program's, and a warning is of its surroundings; the others are for developers.
fn of_glib(level: LogLevel) -> Level {
    match level {
        LogLevel::Error | LogLevel::Critical => Level::ERROR,
        LogLevel::Warning => Level::WARN,
        LogLevel::Message | LogLevel::Info => Level::DEBUG,
        LogLevel::Debug => Level::TRACE,
    }
}

/// Elements warn of what their peer does: it says nothing about this machine.
fn of_gstreamer(level: DebugLevel) -> Level {
    match level {
        DebugLevel::Error | DebugLevel::Warning => Level::WARN,
        DebugLevel::Fixme | DebugLevel::Info => Level::DEBUG,
        _ => Level::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<(Level, String)>>>);

    impl Subscriber for Heard {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            struct Text(String);
            impl Visit for Text {
                fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
                    self.0 += &format!("{value:?}");
                }
            }
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push((*event.metadata().level(), text.0));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn what_the_libraries_say_is_heard_in_the_log() {
        listen();
        listen();
        gstreamer::init().unwrap();
        let heard = Heard::default();
        tracing::subscriber::with_default(heard.clone(), || {
            glib::g_critical!("GStreamer", "assertion 'ssrc != 0' failed");
            glib::g_warning!("libnice", "a \"quoted\" line\nand another");
            let category = gstreamer::DebugCategory::new("heard", gstreamer::DebugColorFlags::empty(), None);
            category.set_threshold(DebugLevel::Warning);
            gstreamer::warning!(category, "a packet was late");
            gstreamer::info!(category, "nobody asked for this");
        });
        let heard = heard.0.lock().unwrap();
        let expected = [
            (Level::ERROR, "GStreamer: assertion 'ssrc != 0' failed"),
            (Level::WARN, "libnice: a \"quoted\" line\nand another"),
            (Level::WARN, "heard: a packet was late"),
        ];
        assert_eq!(*heard, expected.map(|(level, text)| (level, text.to_owned())));
    }
}
