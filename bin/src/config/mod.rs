//! The configuration: one TOML file, every key optional, and the environment on top of it.
//!
//! | room | question it answers |
//! |---|---|
//! | `keys` | which keys are there, what do they mean, where do they go? |
//! | `value` | how is a value written, and within which bounds? |
//! | `reader` | which key stands on which line? |
//! | `file` | what is in a file? |
//! | `check` | do the values go together? |
//! | `text` | how is all of it written down? |
//! | `fault` | what is wrong, where, and what would be right? |

mod check;
mod fault;
mod file;
mod keys;
mod reader;
mod text;
mod value;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::config::{Channel, Config, Endpoint};
use holdfast_io::library::Library;
use holdfast_io::origin::Origin;
use holdfast_io::ovt::{Generation, Notify};
use holdfast_io::providers::{Dialect, Guide, Location, Output};
use holdfast_io::server::{Clip, WrongLogin};
use holdfast_io::users::{Password, Status};
use ipnet::IpNet;

pub use fault::{Fault, Faults, Place};
pub use holdfast_io::server::Limits;
pub use text::{effective, sample};

use reader::Reader;

/// A file larger than this is not a configuration.
const LARGEST_FILE: usize = 1 << 20;

/// Everything that can be configured, read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What the core decides by: endpoints, channels and live feeds.
    pub core: Config,
    /// Where each channel comes from, in the order of `core.channels`.
    pub origins: Vec<Vec<Origin>>,
    /// What channels take where they do not say it themselves; `name` and `sources` mean nothing here.
    pub channel_defaults: Channel,
    /// The contents of the files that are sources, by [`Origin::label`]; [`parse`] reads none.
    pub clips: BTreeMap<String, Arc<Clip>>,
    /// Files that players are shown which are refused.
    pub slates: Slates,
    /// Where is kept of which series episodes of panels are; empty = nowhere.
    pub episodes: PathBuf,
    /// What users log in with, in the order of `core.users`, whose times this edge's clock is not started for yet.
    pub logins: Vec<Login>,
    /// Where titles come from. The core's are made of these when its clock is started.
    pub providers: Vec<Provider>,
    /// The accounts of all of them, in the order in which they are written.
    pub accounts: Vec<Account>,
    /// Films and series that are files of this machine.
    pub libraries: Vec<Library>,
    /// Listeners and limits of HTTP.
    pub http: Http,
    /// How publishers reach our media ports.
    pub ice: Ice,
    /// Serving edges over OVT.
    pub ovt: Ovt,
    /// PEM certificates of authorities that are trusted beside the system's when a channel is fetched over TLS; empty = none.
    pub authorities: PathBuf,
    /// What becomes of the media.
    pub media: Media,
    /// Who may ask and change what runs.
    pub api: Api,
    /// What is logged and how.
    pub log: Log,
}

/// Listeners and limits of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Addresses to listen on, at least one; port 0 = one that the system chooses.
    pub listen: Vec<SocketAddr>,
    /// Serve HTTPS instead of HTTP.
    pub tls: Option<Tls>,
    /// What one client may take.
    pub limits: Limits,
    /// Proxies whose word on where a request comes from is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// How Xtream clients are told that name or password is wrong.
    pub wrong_login: WrongLogin,
}

/// What a user logs in with.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Login {
    /// `None` only where the configuration is refused.
    pub password: Option<Password>,
    /// From when on it may not play any more, in seconds since 1970; `None` = never.
    pub expires: Option<u64>,
    /// Whether it may play, and what clients are told of it.
    pub status: Status,
    /// Which groups of the catalogue it may see and play; none = all.
    pub groups: Vec<String>,
}

/// A provider: where titles come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// What it is called, unique; empty only where the configuration is refused.
    pub name: String,
    /// Where its list or its panel is; `None` only where the configuration is refused.
    pub url: Option<Location>,
    /// What is there.
    pub kind: Dialect,
    /// Where its guide is.
    pub guide: Guide,
    /// How often both are read again.
    pub refresh: Duration,
    /// What it is told that we are; empty = Holdfast.
    pub user_agent: String,
    /// How live streams are asked for.
    pub output: Output,
    /// Whether it is told through which servers a request came.
    pub via: bool,
    /// Which of its groups are taken; none = all.
    pub groups: Vec<String>,
    /// How long an account rests after a connection of its was closed.
    pub cooling: Duration,
    /// Whether its catalogue may lead into private networks.
    pub allow_private: bool,
    /// How many entries of its catalogue are taken.
    pub entries: usize,
    /// How many bytes of each of its answers are read.
    pub bytes: u64,
}

impl Default for Provider {
    fn default() -> Self {
        Provider {
            name: String::new(),
            url: None,
            kind: Dialect::Auto,
            guide: Guide::Auto,
            refresh: Duration::from_secs(6 * 3600),
            user_agent: String::new(),
            output: Output::Auto,
            via: false,
            groups: Vec::new(),
            cooling: Duration::ZERO,
            allow_private: false,
            entries: 1_000_000,
            bytes: 64 << 20,
        }
    }
}

/// MPEG-TS files that players of such are shown in place of a refusal. Empty: none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Slates {
    /// Where the user plays as much as it may.
    pub user_limit: PathBuf,
    /// Where no account of any provider is free.
    pub provider_limit: PathBuf,
}

/// An account at a provider.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The provider's name.
    pub provider: String,
    /// Empty = whatever the provider's addresses hold already.
    pub username: String,
    /// The same.
    pub password: String,
    /// What the core decides by; `until` is not set yet.
    pub core: holdfast_core::config::Account,
    /// From when on it may not be used any more, in seconds since 1970; `None` = never.
    pub expires: Option<u64>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("provider", &self.provider).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Http {
    /// Whether nobody but this machine can reach us.
    pub fn is_loopback(&self) -> bool {
        self.listen.iter().all(|listener| listener.ip().is_loopback())
    }
}

/// Serving edges over OVT.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ovt {
    /// Addresses to listen on; none = edges are not served.
    pub listen: Vec<SocketAddr>,
    /// Whose numbers are spoken.
    pub generation: Generation,
    /// What is told unasked.
    pub notify: Notify,
    /// A stream ends for edges after so long without media; `None` = as for any viewer.
    pub packet_silence: Option<Duration>,
}

/// Certificate and key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tls {
    /// The certificate chain, our own first.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How publishers reach our media ports.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ice {
    /// As written; [`Settings::ice_addresses`] says what they come to.
    pub addresses: Vec<IpAddr>,
    /// UDP ports for media; `None` = whatever the system gives.
    pub ports: Option<Ports>,
    /// STUN and TURN servers, for clients and for us.
    pub servers: Vec<IceServer>,
}

/// `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// From 1024.
    pub first: u16,
    /// Not less than `first`.
    pub last: u16,
}

/// A STUN or TURN server.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct IceServer {
    /// RFC 7064 or RFC 7065.
    pub url: String,
    /// Empty for STUN.
    pub username: String,
    /// Empty for STUN.
    pub credential: String,
}

impl fmt::Debug for IceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IceServer").field("url", &self.url).field("username", &self.username).finish_non_exhaustive()
    }
}

/// What becomes of the media.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Media {
    /// The sound that viewers get.
    pub audio: Audio,
}

/// The sound that viewers get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Audio {
    /// AAC where this machine has an encoder, else Opus.
    #[default]
    Auto,
    /// AAC, which every player knows.
    Aac,
    /// Opus as it came: no delay, no loss, not every player.
    Opus,
}

/// Who may ask and change what runs.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Api {
    /// Bearer tokens that may read the status and end sessions; with none, everybody may read it, and only this machine
    /// may end them.
    pub tokens: Vec<String>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("tokens", &self.tokens.len()).finish()
    }
}

/// What is logged and how.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Log {
    /// The least important that is still logged.
    pub level: Level,
    /// For people or for programs.
    pub format: Format,
}

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something may need somebody.
    Warn,
    /// What a day is made of.
    #[default]
    Info,
    /// More than an operator wants.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// Sentences.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Http {
    fn default() -> Self {
        Http {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))],
            tls: None,
            limits: Limits::default(),
            trusted_proxies: Vec::new(),
            wrong_login: WrongLogin::default(),
        }
    }
}

impl Default for Settings {
    /// The embedded default: one endpoint `live`, one channel `test` with the test signal, everything on loopback.
    fn default() -> Self {
        let test = Channel { name: String::from("test"), ..Channel::default() };
        Settings {
            core: Config { endpoints: vec![Endpoint::default()], channels: vec![test], ..Config::default() },
            origins: vec![vec![Origin::Test]],
            channel_defaults: Channel::default(),
            clips: BTreeMap::new(),
            slates: Slates::default(),
            logins: Vec::new(),
            episodes: PathBuf::new(),
            providers: Vec::new(),
            accounts: Vec::new(),
            libraries: Vec::new(),
            http: Http::default(),
            ice: Ice::default(),
            ovt: Ovt::default(),
            authorities: PathBuf::new(),
            media: Media::default(),
            api: Api::default(),
            log: Log::default(),
        }
    }
}

impl Settings {
    /// The addresses that publishers are offered for media; empty = all of the machine.
    ///
    /// Media stays on loopback while HTTP does: an edge that nobody can reach by HTTP has no business on the network.
    pub fn ice_addresses(&self) -> Vec<IpAddr> {
        let mut addresses = self.ice.addresses.clone();
        if addresses.iter().any(IpAddr::is_unspecified) {
            addresses.clear();
        } else if addresses.is_empty() && self.http.is_loopback() {
            addresses.extend(self.http.listen.iter().map(SocketAddr::ip));
            addresses.sort();
            addresses.dedup();
        }
        addresses
    }

    /// What an operator should know though nothing is wrong, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        check::warnings(self)
    }
}

/// Reads a configuration's text. Looks at nothing else: no file, no environment. `file` names it in messages.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(text: &str, file: &str) -> Result<Settings, Faults> {
    let mut reader = Reader::new(file, text)?;
    reader.document();
    reader.complete_channels();
    check::settings(&mut reader);
    reader.finish()
}

/// Reads a configuration file (without one: the embedded default), then the environment's `HOLDFAST_…` variables, which
/// win, and looks whether the files that are named in it can be read; those that are sources are.
///
/// # Errors
/// Everything that is wrong with them.
pub fn load(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Settings, Faults> {
    let (name, text) = match file {
        Some(path) => (path.display().to_string(), text_of(path)?),
        None => (String::from("embedded default"), String::new()),
    };
    let mut reader = Reader::new(&name, &text)?;
    reader.document();
    reader.environment(variables);
    reader.complete_channels();
    check::settings(&mut reader);
    check::files(&mut reader);
    reader.finish()
}

fn text_of(path: &Path) -> Result<String, Faults> {
    let name = path.display().to_string();
    let bytes = file::read(path, LARGEST_FILE).map_err(|error| {
        let right = "name a TOML file of at most 1 MiB that this user may read";
        Faults::one(&name, Place::File, format!("cannot be read: {error}"), right)
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Faults::one(&name, Place::Line(line), String::from("is not UTF-8"), "TOML is UTF-8")
    })
}

#[cfg(test)]
mod tests;
