//! What the server is told when it starts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::input::RefuseReason;
use holdfast_core::journal::Head;
use ipnet::IpNet;

use super::Clip;
use crate::codec::Codec;
use crate::http::Pseudonym;
use crate::library::Library;
use crate::origin::Origin;
use crate::ovt::OriginSettings;
use crate::providers::{Belonging, ProviderSettings};
use crate::users::Login;

/// What the server needs to know beside what the core decides by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What clients may take.
    pub limits: Limits,
    /// STUN and TURN servers that publishers are told of.
    pub ice_servers: Vec<IceServer>,
    /// Tokens that may read the status and end sessions; with none, everybody may read, and loopback may end.
    pub api_tokens: Vec<String>,
    /// How the media side hands audio over.
    pub audio: Codec,
    /// Seconds between 1970-01-01T00:00:00Z and [`Time::ZERO`], as the wall clock had it then.
    pub epoch: u64,
    /// Where each channel comes from, in the order of the configuration.
    pub origins: Vec<Vec<Origin>>,
    /// The files among them, and the test signal, by [`Origin::label`].
    pub clips: BTreeMap<String, Arc<Clip>>,
    /// What players of MPEG-TS are shown that are refused.
    pub slates: Slates,
    /// How edges are spoken with over OVT.
    pub ovt: OriginSettings,
    /// How long an edge is served a stream that no media comes into; `None` = as long as any viewer.
    pub packet_silence: Option<Duration>,
    /// A random number that tells this process from others.
    pub instance: u128,
    /// Which calls of the core are written down.
    pub recording: Recording,
    /// Who may log in, in the order of the core's users; with nobody, nobody has to.
    pub users: Vec<Login>,
    /// Where titles come from, in the order of the core's providers.
    pub providers: Vec<ProviderSettings>,
    /// Of which series episodes of panels are, as these said before this program started ([`Action::Keep`](super::Action::Keep)).
    pub belongings: Vec<Belonging>,
    /// Films and series that are files of this machine.
    pub libraries: Vec<Library>,
    /// Proxies whose word on where a request comes from is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// How Xtream clients are told that name or password is wrong.
    pub wrong_login: WrongLogin,
    /// Whether clients come in over TLS.
    pub secure: bool,
    /// Where clients and edges come in: nothing of a provider's is fetched from there.
    pub listeners: Vec<SocketAddr>,
}

/// Which calls of the core are written down.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Recording {
    /// None.
    #[default]
    Off,
    /// All, in memory: for simulated runs, which end.
    Whole,
    /// The latest.
    Ring {
        /// How many bytes are kept.
        size: usize,
        /// What the journal says of its run; the configuration in it is put there by the server.
        head: Box<Head>,
        /// Whether they are handed to the driver as well ([`Action::Record`](super::Action::Record)).
        spool: bool,
    },
}

/// With which status `/player_api.php` says that a login failed; its content says so in either case. Some clients look at the
/// status alone, others take anything but 200 for a server that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WrongLogin {
    /// 200.
    #[default]
    Ok,
    /// 401.
    Unauthorized,
}

impl Settings {
    /// How this process names itself where it fetches.
    pub(crate) fn pseudonym(&self) -> Pseudonym {
        Pseudonym::new(self.instance.to_be_bytes())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            limits: Limits::default(),
            ice_servers: Vec::new(),
            api_tokens: Vec::new(),
            audio: Codec::Aac,
            epoch: 0,
            origins: Vec::new(),
            clips: BTreeMap::new(),
            slates: Slates::default(),
            ovt: OriginSettings::default(),
            packet_silence: None,
            instance: 0,
            recording: Recording::Off,
            users: Vec::new(),
            providers: Vec::new(),
            belongings: Vec::new(),
            libraries: Vec::new(),
            trusted_proxies: Vec::new(),
            wrong_login: WrongLogin::default(),
            secure: false,
            listeners: Vec::new(),
        }
    }
}

/// What somebody sees who is refused: on a television, a status and its reason are nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Slates {
    /// Whose user plays as much as it may.
    pub user_limit: Option<Arc<Clip>>,
    /// For whom no account of any provider is free.
    pub provider_limit: Option<Arc<Clip>>,
}

impl Slates {
    /// What is shown in place of such a refusal, if there is something.
    pub(crate) fn of(&self, reason: RefuseReason) -> Option<&Clip> {
        match reason {
            RefuseReason::UserLimit => self.user_limit.as_deref(),
            RefuseReason::ProviderLimit | RefuseReason::Preempted => self.provider_limit.as_deref(),
            _ => None,
        }
    }
}

/// What one client, or all of them, may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest request head, in bytes.
    pub head: usize,
    /// How long a client may take for a head, from its first byte, and for its first byte after it connected.
    pub head_timeout: Duration,
    /// How long a client may take for a body.
    pub body_timeout: Duration,
    /// How long a connection may stand between two requests.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of an answer (a live stream has its ring instead).
    pub write_timeout: Duration,
    /// How many connections there may be.
    pub connections: usize,
    /// How many sessions there may be, those that are being taken down and offers that wait among them. The slots are the limit
    /// that is meant; this one is what the process has descriptors for.
    pub sessions: usize,
    /// How many connections one address may have, one IPv6 /64 being one address; 0 = no limit.
    pub connections_per_address: usize,
    /// How many WHIP requests that change something one address may send each second, on average; 0 = no limit.
    pub whip_rate: u32,
    /// How many logins of one address may fail each minute; 0 = no limit.
    pub login_failures: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head: 16 << 10,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            connections: 20_000,
            sessions: usize::MAX,
            connections_per_address: 256,
            whip_rate: 10,
            login_failures: 10,
        }
    }
}

/// A STUN or TURN server as a `Link` names it (RFC 9725 §4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceServer {
    /// `stun:…` or `turn:…`.
    pub url: String,
    /// For TURN.
    pub username: Option<String>,
    /// For TURN.
    pub credential: Option<String>,
}
