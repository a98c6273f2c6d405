//! Publishers none of us wrote.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::prepared;
use crate::process::Process;

/// aiortc, whose cadence a test controls.
#[derive(Clone, Debug)]
pub struct Aiortc {
    url: String,
    video: String,
    audio: String,
    size: String,
    bind: String,
    token: Option<String>,
    wait: bool,
}

impl Aiortc {
    /// Audio, and video at 30 frames per second, to this address.
    pub fn to(url: &str) -> Aiortc {
        Aiortc {
            url: url.to_owned(),
            video: "30".to_owned(),
            audio: "on".to_owned(),
            size: "320x240".to_owned(),
            bind: "127.0.0.1".to_owned(),
            token: None,
            wait: false,
        }
    }

    /// Frames per second, or `none`.
    #[must_use]
    pub fn video(mut self, fps: &str) -> Aiortc {
        fps.clone_into(&mut self.video);
        self
    }

    /// `on`, `none`, or the seconds after which the microphone fails for good.
    #[must_use]
    pub fn audio(mut self, audio: &str) -> Aiortc {
        audio.clone_into(&mut self.audio);
        self
    }

    /// Width and height of the picture, such as `160x120`.
    #[must_use]
    pub fn size(mut self, size: &str) -> Aiortc {
        size.clone_into(&mut self.size);
        self
    }

    /// With this bearer token.
    #[must_use]
    pub fn token(mut self, token: &str) -> Aiortc {
        self.token = Some(token.to_owned());
        self
    }

    /// It makes its offer and then waits for [`Publisher::go`].
    #[must_use]
    pub fn waiting(mut self) -> Aiortc {
        self.wait = true;
        self
    }

    /// Starts it; it has loaded and made its offer when this returns.
    pub fn start(&self) -> Publisher {
        let mut command = Command::new(prepared::python());
        command.arg(prepared::client("aiortc_whip.py"));
        command.args(["--url", &self.url, "--video", &self.video, "--audio", &self.audio]);
        command.args(["--size", &self.size, "--bind", &self.bind]);
        if let Some(token) = &self.token {
            command.args(["--token", token]);
        }
        if self.wait {
            command.arg("--wait");
        }
        Publisher::start("aiortc", command)
    }
}

/// GStreamer's `whipclientsink` or `whipsink`, with audio and video.
pub fn gstreamer(kind: &str, url: &str) -> Publisher {
    let mut command = Command::new(prepared::gstreamer_publisher());
    command.args(["--kind", kind, "--url", url]);
    Publisher::start(kind, command)
}

/// The same, loaded and waiting for [`Publisher::go`].
pub fn gstreamer_waiting(kind: &str, url: &str) -> Publisher {
    let mut command = Command::new(prepared::gstreamer_publisher());
    command.args(["--wait", "--kind", kind, "--url", url]);
    Publisher::start(kind, command)
}

/// FFmpeg's WHIP muxer, with audio and video.
pub fn ffmpeg(url: &str) -> Publisher {
    let mut command = Command::new(prepared::python());
    command.arg(prepared::client("ffmpeg_whip.py")).args(["--url", url]);
    Publisher::start("ffmpeg", command)
}

/// A running publisher.
pub struct Publisher {
    process: Process,
}

/// How a publisher's POST was answered, as it saw it.
#[derive(Clone, Debug)]
pub struct Posted {
    /// The status.
    pub status: u64,
    /// From the POST to the answer.
    pub took: Duration,
    /// The session's path, if it was granted.
    pub location: Option<String>,
    /// When the answer was there.
    pub at: Instant,
    /// The refusal's body.
    pub body: Value,
}

impl Publisher {
    fn start(name: &str, command: Command) -> Publisher {
        let process = Process::start(name, command);
        process.event("ready", Duration::from_secs(30));
        Publisher { process }
    }

    /// Lets one go on that was started [`Aiortc::waiting`].
    pub fn go(&mut self) -> Instant {
        self.process.tell("go");
        Instant::now()
    }

    /// How its POST was answered (aiortc only: the others don't say).
    pub fn posted(&self) -> Posted {
        let (at, value) = self.process.event("posted", Duration::from_secs(20));
        Posted {
            status: value["status"].as_u64().unwrap_or(0),
            took: Duration::from_secs_f64(value["ms"].as_f64().unwrap_or(0.0) / 1000.0),
            location: value["location"].as_str().map(str::to_owned),
            at,
            body: value["body"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null),
        }
    }

    /// Waits until its transport is up.
    pub fn connected(&self) -> Instant {
        self.process.event("connected", Duration::from_secs(20)).0
    }

    /// When its microphone failed.
    pub fn muted(&self) -> Instant {
        self.process.event("muted", Duration::from_secs(20)).0
    }

    /// Waits until it is told that its DTLS transport was closed.
    pub fn told(&self, limit: Duration) -> Instant {
        self.process.find("end of its DTLS transport", limit, |line| {
            let value = line.json();
            (value["event"] == "dtls" && value["state"] == "closed").then_some(line.at)
        })
    }

    /// SIGKILL: no goodbye of any kind.
    pub fn kill(&mut self) -> Instant {
        self.process.kill()
    }

    /// SIGTERM, upon which it sends DELETE; returns when that was answered.
    ///
    /// # Panics
    /// When it was not within 10 s.
    pub fn leave(&mut self) {
        self.process.signal(Signal::TERM);
        self.process.event("deleted", Duration::from_secs(10));
    }

    /// SIGSTOP to the whole of it: nothing is sent any more, and nothing is lost.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.process.signal(Signal::CONT);
    }

    /// The process behind it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
