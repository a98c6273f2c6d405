//! Messages: JSON objects. What is written here is, byte for byte, what OvenMediaEngine writes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::description::{Contents, WireTrack};
use super::fault::Fault;
use super::json;

/// What is answered when it is not even known what was asked.
pub(super) const UNKNOWN: &str = "unknown";

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Which tracks does the stream have?
    Describe,
    /// Send its media, from now on.
    Play,
    /// Send no more.
    Stop,
}

impl Application {
    pub(super) fn name(self) -> &'static str {
        match self {
            Application::Describe => "describe",
            Application::Play => "play",
            Application::Stop => "stop",
        }
    }

    /// Compared without case.
    fn from_name(name: &str) -> Option<Self> {
        [Application::Describe, Application::Play, Application::Stop]
            .into_iter()
            .find(|application| application.name().eq_ignore_ascii_case(name))
    }
}

/// A request as it is written. `via` is ours alone: the servers it came through, as HTTP's field of that name has them
/// (RFC 9110 §7.6.3). OvenMediaEngine looks at no key that it does not know.
pub(super) fn request(application: Application, id: u32, target: &str, via: Option<&str>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a> {
        application: &'a str,
        id: u32,
        target: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        via: Option<&'a str>,
    }
    json::write(&Request { application: application.name(), id, target, via })
}

/// An answer, or a notice, as it is written. Fields are in the order of their keys.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    pub(super) application: &'a str,
    pub(super) code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) contents: Option<Contents<'a>>,
    pub(super) id: u32,
    pub(super) message: &'a str,
}

/// A request that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) application: Application,
    pub(super) id: u32,
    pub(super) target: String,
    pub(super) app: String,
    pub(super) stream: String,
    /// Empty if nothing is said of it.
    pub(super) via: String,
}

/// A request that is answered with 404 by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) application: String,
    pub(super) id: u32,
    pub(super) why: &'static str,
}

impl Asked {
    pub(super) fn read(message: &[u8]) -> Result<Self, Rejected> {
        let unreadable = |why| Rejected { application: UNKNOWN.into(), id: 0, why };
        let object = object(message).map_err(|_| unreadable("a request is a JSON object"))?;
        let id =
            object.get("id").and_then(unsigned).ok_or_else(|| unreadable("id is not an unsigned 32-bit number"))?;
        let text = |key| object.get(key).and_then(Value::as_str);
        let name = text("application").ok_or_else(|| unreadable("application is not a string"))?;
        let target = text("target").ok_or_else(|| unreadable("target is not a string"))?;
        let url = Url::parse(target);
        let Ok(url) = url else {
            return Err(Rejected { application: UNKNOWN.into(), id, why: "target is not a URL" });
        };
        let rejected = |why| Rejected { application: name.to_owned(), id, why };
        let application = Application::from_name(name).ok_or_else(|| rejected("Unknown application"))?;
        let mut path = url.path_segments().into_iter().flatten().filter(|segment| !segment.is_empty());
        let (Some(app), Some(stream)) = (path.next(), path.next()) else {
            return Err(rejected("target names no stream: its path is /app/stream"));
        };
        if path.next().is_some() {
            return Err(rejected("the stream has no track set of that name"));
        }
        let via = text("via").unwrap_or_default().to_owned();
        let (app, stream) = (app.to_owned(), stream.to_owned());
        Ok(Asked { application, id, target: target.to_owned(), app, stream, via })
    }
}

/// What an origin said, key by key as far as it is there.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) application: Option<String>,
    pub(super) code: Option<u32>,
    pub(super) id: Option<u32>,
    pub(super) message: Option<String>,
    contents: Value,
}

/// A description as it was read. Tracks that lack something are left out.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) app: String,
    pub(super) stream: String,
    pub(super) uuid: String,
    pub(super) tracks: Vec<WireTrack>,
    /// How many tracks were left out.
    pub(super) unread: usize,
}

impl Said {
    pub(super) fn read(message: &[u8]) -> Result<Self, Fault> {
        let mut object = object(message)?;
        let contents = object.remove("contents").unwrap_or_default();
        let text = |key| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key| object.get(key).and_then(unsigned);
        Ok(Said {
            application: text("application"),
            code: number("code"),
            id: number("id"),
            message: text("message"),
            contents,
        })
    }

    /// The stream in its contents, of an answer to describe or of a change of tracks.
    pub(super) fn described(&mut self) -> Result<Described, Fault> {
        if self.contents.get("version").and_then(unsigned).is_none() {
            return Err(Fault::Description("has no version"));
        }
        let Some(Value::Object(said)) = self.contents.get_mut("stream") else {
            return Err(Fault::Description("has no stream"));
        };
        let Some(Value::Array(all)) = said.remove("tracks") else {
            return Err(Fault::Description("has no tracks"));
        };
        let text = |key| said.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (app, stream, uuid) = (text("appName"), text("streamName"), text("originStreamUUID"));
        let count = all.len();
        let tracks: Vec<_> = all.into_iter().filter_map(|track| WireTrack::deserialize(track).ok()).collect();
        Ok(Described { app, stream, uuid, unread: count - tracks.len(), tracks })
    }
}

fn object(message: &[u8]) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_slice(message) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Fault::Json),
    }
}

/// A whole number from 0 to 2³² − 1, however it is written.
fn unsigned(value: &Value) -> Option<u32> {
    const MOST: f64 = u32::MAX as f64;
    match value.as_u64() {
        Some(number) => u32::try_from(number).ok(),
        None => value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..=MOST).contains(n)).map(|n| n as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_as_doubles() {
        for (text, number) in [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("7.0", Some(7)),
            ("4294967295", Some(u32::MAX)),
            ("4294967295.0", Some(u32::MAX)),
            ("4294967296", None),
            ("-1", None),
            ("1.5", None),
            ("1e300", None),
            ("\"1\"", None),
            ("null", None),
        ] {
            assert_eq!(unsigned(&serde_json::from_str(text).unwrap()), number, "{text}");
        }
    }

    #[test]
    fn a_target_names_an_application_and_a_stream() {
        let read = |target: &str| Asked::read(&request(Application::Play, 7, target, None));
        let asked = read("ovt://[::1]:9000/app/one?token=a%20b&x=1").unwrap();
        assert_eq!((asked.app.as_str(), asked.stream.as_str()), ("app", "one"));
        assert_eq!(asked.target, "ovt://[::1]:9000/app/one?token=a%20b&x=1");
        for (target, application) in [
            ("/app/one", UNKNOWN),
            ("", UNKNOWN),
            ("ovt://host", "play"),
            ("ovt://host/app", "play"),
            ("ovt://host/app/", "play"),
            ("ovt:app/one", "play"),
            ("ovt://host/app/one/set", "play"),
        ] {
            let rejected = read(target).unwrap_err();
            assert_eq!((rejected.application.as_str(), rejected.id), (application, 7), "{target}");
        }
    }
}
