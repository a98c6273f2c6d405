//! The program under test, started on a free port with a configuration of the test's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::http::{Request, Response};
use crate::offer::{self, Tracks};
use crate::process::{Holdings, Process};
use crate::{AT_ONCE, prepared};

/// A running edge.
pub struct Edge {
    process: Process,
    address: SocketAddr,
    file: PathBuf,
}

impl Edge {
    /// Starts the program with one endpoint, `live`, at its defaults.
    pub fn plain() -> Edge {
        Edge::start("[[endpoint]]\nname = \"live\"\n")
    }

    /// Starts the program with this configuration, on a free port of 127.0.0.1 unless it says where to listen.
    ///
    /// # Panics
    /// When it does not listen within 20 s.
    pub fn start(configuration: &str) -> Edge {
        let file = prepared::scratch("edge.toml");
        let text = if configuration.contains("[http]") {
            configuration.to_owned()
        } else {
            format!("[http]\nlisten = [\"127.0.0.1:0\"]\n{configuration}")
        };
        std::fs::write(&file, text).expect("the temporary folder can be written");
        Edge::run(file)
    }

    /// As [`Edge::start`], where `launch` runs the program (given its path).
    ///
    /// # Panics
    /// When it does not listen within 20 s.
    pub fn start_by(configuration: &str, launch: impl FnOnce(&Path) -> Command) -> Edge {
        let file = prepared::scratch("edge.toml");
        std::fs::write(&file, configuration).expect("the temporary folder can be written");
        Edge::run_by(file, launch)
    }

    fn run(file: PathBuf) -> Edge {
        Edge::run_by(file, |program| Command::new(program))
    }

    fn run_by(file: PathBuf, launch: impl FnOnce(&Path) -> Command) -> Edge {
        let mut command = launch(prepared::holdfast());
        command.arg("run").arg(&file);
        // What the caller's environment says of the edge would be on top of the test's file.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HOLDFAST_")) {
            command.env_remove(name);
        }
        // It limits by itself what glibc keeps in an arena for each thread.
        command.env_remove("MALLOC_ARENA_MAX");
        let process = Process::start("holdfast", command);
        let address = process.find("line with the address it listens on", Duration::from_secs(60), |line| {
            let text = line.text.split("listening on http://").nth(1)?;
            let end = text
                .find(|c: char| !(c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '[' | ']')))
                .unwrap_or(text.len());
            text[..end].parse().ok()
        });
        Edge { process, address, file }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of `path` on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it holds now.
    pub fn holdings(&self) -> Holdings {
        Holdings::of(self.process.pid())
    }

    /// How long all its threads together have run on a processor.
    ///
    /// # Panics
    /// When it has ended.
    pub fn cpu(&self) -> Duration {
        self.process.cpu()
    }

    /// A variable of the environment that it runs in.
    pub fn variable(&self, name: &str) -> Option<String> {
        let all = std::fs::read(format!("/proc/{}/environ", self.process.pid())).expect("it runs");
        let all = String::from_utf8_lossy(&all).into_owned();
        all.split('\0').find_map(|one| one.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    /// Waits for a line of its log with `text`: whoever it answers may hear of it a moment earlier.
    ///
    /// # Panics
    /// When there is none for a while.
    pub fn says(&self, text: &str) {
        self.process.find(text, AT_ONCE, |line| line.text.contains(text).then_some(()));
    }

    /// Everything it has said.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// GET.
    pub fn get(&self, path: &str) -> Response {
        Request::new("GET", path).send(self.address)
    }

    /// POST of an offer nobody stands behind.
    pub fn post(&self, endpoint: &str) -> Response {
        Request::offer(&format!("/whip/{endpoint}"), &offer::plain()).send(self.address)
    }

    /// `/api/status`.
    pub fn status(&self) -> Value {
        self.get("/api/status").json()
    }

    /// The session in the first slot of an endpoint, as the status shows it; `Null` if there is none.
    pub fn session(&self, endpoint: &str) -> Value {
        let status = self.status();
        let endpoints = status["endpoints"].as_array().cloned().unwrap_or_default();
        let found = endpoints.into_iter().find(|own| own["name"] == endpoint);
        found.map_or(Value::Null, |own| own["slots"][0]["session"].clone())
    }

    /// Waits until the first slot's publisher has delivered these kinds of media.
    ///
    /// # Panics
    /// After 15 s.
    pub fn delivers(&self, endpoint: &str, tracks: Tracks) {
        let kinds: &[&str] = match tracks {
            Tracks::Both => &["audio", "video"],
            Tracks::Audio => &["audio"],
            Tracks::Video => &["video"],
        };
        crate::eventually(&format!("{kinds:?} from the publisher"), Duration::from_secs(15), || {
            let session = self.session(endpoint);
            kinds.iter().all(|kind| session[kind]["packets"].as_u64() > Some(0)).then_some(())
        });
    }

    /// SIGKILL, and the same configuration on the same port again. How long the new one took to listen.
    pub fn restart_after_kill(&mut self) -> Duration {
        self.process.kill();
        let text = std::fs::read_to_string(&self.file).expect("the configuration is still there");
        let text = text.replace("127.0.0.1:0", &self.address.to_string());
        std::fs::write(&self.file, text).expect("the temporary folder can be written");
        let start = Instant::now();
        let again = Edge::run(self.file.clone());
        let took = start.elapsed();
        *self = again;
        took
    }

    /// SIGSTOP: it does nothing more, and its connections stand.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.process.signal(Signal::CONT);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The channel of this name, as the status shows it; `Null` if there is none.
    pub fn channel(&self, name: &str) -> Value {
        let status = self.status();
        let channels = status["channels"].as_array().cloned().unwrap_or_default();
        channels.into_iter().find(|own| own["name"] == name).unwrap_or(Value::Null)
    }

    /// SIGTERM; how it ended and how long that took.
    pub fn terminate(mut self) -> (ExitStatus, Duration) {
        self.process.signal(Signal::TERM);
        let start = Instant::now();
        let status = self.process.wait(Duration::from_secs(15));
        (status, start.elapsed())
    }

    /// SIGHUP; how it ended.
    ///
    /// # Panics
    /// When it has not ended within 15 s.
    pub fn hang_up(mut self) -> ExitStatus {
        self.process.signal(Signal::HUP);
        self.process.wait(Duration::from_secs(15))
    }

    /// SIGTERM; the edge still drains when this returns.
    pub fn ask_to_end(&self) {
        self.process.signal(Signal::TERM);
    }

    /// Waits for the end of one that was asked to.
    ///
    /// # Panics
    /// After `limit`.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        self.process.wait(limit)
    }
}
