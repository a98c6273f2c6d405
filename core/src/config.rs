//! The configuration after it was read and checked; every value here is usable as it is.
//!
//! Reading it from a file, with the file, line and key of what is wrong, is the program's work.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Date;

/// What the core decides by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Config {
    /// WHIP endpoints, each with its slots.
    pub endpoints: Vec<Endpoint>,
    /// Channels that are pulled from origins.
    pub channels: Vec<Channel>,
    /// How live feeds are kept for their viewers.
    pub live: Live,
    /// Who may play; with none everybody may, uncounted.
    pub users: Vec<User>,
    /// What happens when users want to play more than they may.
    pub playback: Playback,
    /// Where titles come from.
    pub providers: Vec<Provider>,
}

/// One channel, `/live/{name}.ts`: a stream that is pulled from origins when somebody wants it (spec: pull §1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// As [`Endpoint::name`], and no endpoint's.
    pub name: String,
    /// How many origins there are, in the order in which they are preferred: 1 to [`Channel::SOURCES`]. Where they are is not the
    /// core's to know.
    pub sources: u32,
    /// Whether it is pulled only while somebody watches.
    pub on_demand: bool,
    /// How long a viewer is held for the first media.
    pub start_timeout: Duration,
    /// How long resolving, connecting and agreeing may take together.
    pub connect_timeout: Duration,
    /// No media for longer = silent; ≥ 100 ms.
    pub no_input_timeout: Duration,
    /// The longest pause between two rounds of attempts, ≥ `no_input_timeout`, from which it grows twofold each time, ± 20 %;
    /// equal = always that, without chance.
    pub retry_backoff_max: Duration,
    /// How many rounds over all origins may fail after the first before the channel ends; `None` = any number.
    pub retries: Option<u32>,
    /// Media for this long is what counts as success, and what an earlier origin must show before it is returned to.
    pub stable_after: Duration,
    /// Whether an earlier origin is returned to.
    pub failback: bool,
    /// The pause between two looks at an earlier origin; grows to [`Channel::FAILBACK_MAX`].
    pub failback_interval: Duration,
    /// How long after the last viewer left the origin is left; less than 100 ms counts as that.
    pub idle_timeout: Duration,
    /// How long an origin that ended in order is asked again before viewers are ended.
    pub end_grace: Duration,
}

impl Channel {
    /// How many origins a channel may have.
    pub const SOURCES: u32 = 32;
    /// The longest pause between two looks at an earlier origin.
    pub const FAILBACK_MAX: Duration = Duration::from_secs(30);
}

impl Default for Channel {
    fn default() -> Self {
        Channel {
            name: String::from("channel"),
            sources: 1,
            on_demand: true,
            start_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            no_input_timeout: Duration::from_secs(3),
            retry_backoff_max: Duration::from_secs(30),
            retries: None,
            stable_after: Duration::from_secs(5),
            failback: true,
            failback_interval: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(60),
            end_grace: Duration::from_secs(5),
        }
    }
}

/// One WHIP endpoint, `/whip/{name}` (spec: publish, settings).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The last part of its path: 1–64 of `A–Z a–z 0–9 - _ .`, unique.
    pub name: String,
    /// Which kinds of media an offer may hold.
    pub media: Media,
    /// How many publishers at once, ≥ 1.
    pub slots: u32,
    /// Bearer tokens that may publish; none = open to everybody.
    #[serde(skip)]
    pub tokens: Vec<String>,
    /// What happens to a POST when every slot is held.
    pub takeover: Takeover,
    /// Audio frozen this long, and no packet of any kind either = a dead transport.
    pub dead_after: Duration,
    /// How long a POST may be held for a slot, ≥ `dead_after` + `poll`.
    pub takeover_wait: Duration,
    /// Distance between two looks at the evidence, ≥ 10 ms.
    pub poll: Duration,
    /// No audio and no video this long ends a session that had media.
    pub inactivity_timeout: Duration,
    /// No media at all this long after the POST ends a session.
    pub setup_timeout: Duration,
    /// Length of the jitter buffer.
    pub jitter: Duration,
    /// Put into the answer, in bits per second.
    pub max_video_bitrate: u64,
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint {
            name: String::from("live"),
            media: Media::AudioVideo,
            slots: 1,
            tokens: Vec::new(),
            takeover: Takeover::DisplaceDead,
            dead_after: Duration::from_secs(2),
            takeover_wait: Duration::from_secs(3),
            poll: Duration::from_millis(100),
            inactivity_timeout: Duration::from_secs(10),
            setup_timeout: Duration::from_secs(15),
            jitter: Duration::from_millis(200),
            max_video_bitrate: 4_000_000,
        }
    }
}

/// Which kinds of media an endpoint takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Media {
    /// Audio, video, or both.
    AudioVideo,
    /// Audio only.
    Audio,
    /// Video only.
    Video,
}

impl Media {
    /// The word for it in the configuration and the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Media::AudioVideo => "audio+video",
            Media::Audio => "audio",
            Media::Video => "video",
        }
    }
}

/// What happens to a POST when every slot is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Takeover {
    /// A dead holder is displaced, a living one never.
    DisplaceDead,
    /// Every holder keeps its slot until it ends by itself.
    Refuse,
    /// The newest POST takes the slot of the quietest holder.
    NewestWins,
}

impl Takeover {
    /// The word for it in the configuration and the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Takeover::DisplaceDead => "displace-dead",
            Takeover::Refuse => "refuse",
            Takeover::NewestWins => "newest-wins",
        }
    }
}

/// How live feeds are kept for their viewers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// How long a viewer stays connected to a feed that nothing comes into.
    pub idle: Duration,
    /// How many bytes of a feed are kept; a viewer that falls further behind than this is ended.
    pub buffer: usize,
    /// Small writes are gathered this long; zero writes each chunk at once.
    pub flush_interval: Duration,
    /// The shortest time between two requests for a key frame to one publisher.
    pub key_frame_interval: Duration,
    /// A viewer starts at the newest random access point if it is not older than this; else a key frame is asked for
    /// and awaited this long before the old one has to do.
    pub fresh: Duration,
    /// A viewer whose socket takes nothing of what there is for it is ended when it is looked at again after this long.
    pub progress_timeout: Duration,
    /// How many viewers one feed may have.
    pub viewers: usize,
    /// How it is cut for viewers that poll.
    pub hls: Hls,
}

impl Default for Live {
    fn default() -> Self {
        Live {
            idle: Duration::from_secs(60),
            buffer: 16 << 20,
            flush_interval: Duration::from_millis(20),
            key_frame_interval: Duration::from_secs(1),
            fresh: Duration::from_secs(2),
            progress_timeout: Duration::from_secs(30),
            viewers: 10_000,
            hls: Hls::default(),
        }
    }
}

/// How live feeds are cut for viewers that poll (HTTP Live Streaming, RFC 8216).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hls {
    /// A segment ends at the first random access point that lies so much of the stream behind its beginning; less than
    /// [`Hls::LEAST`] counts as that.
    pub segment: Duration,
    /// How many segments a playlist lists, if as many are kept; more where these are shorter than three target durations
    /// (RFC 8216 §6.2.2).
    pub window: usize,
    /// A viewer that asks for nothing this long has left; `None` = three target durations, 10 s at least.
    pub viewer_timeout: Option<Duration>,
}

impl Hls {
    /// The shortest [`Hls::segment`].
    pub const LEAST: Duration = Duration::from_millis(500);

    /// `segment`, not less than [`Hls::LEAST`].
    pub fn segment(&self) -> Duration {
        self.segment.max(Hls::LEAST)
    }

    /// The target duration in seconds (RFC 8216 §4.3.3.1): twice `segment`, rounded up. It has to be said before the segments
    /// are known and must never change; where random access points come at least every `segment`, none lies further
    /// behind a beginning than that.
    pub fn target(&self) -> u64 {
        (self.segment() * 2).as_micros().div_ceil(1_000_000) as u64
    }

    /// The longest segment: what is still rounded down to the target duration.
    pub fn longest(&self) -> Duration {
        Duration::from_secs(self.target()) + Duration::from_millis(499)
    }

    /// How long a viewer is held for the first segment: one that begins at once and takes as long as it may, and as long again
    /// for a random access point to begin with.
    pub fn hold(&self) -> Duration {
        Duration::from_secs(self.target() * 2)
    }

    /// After which time without a request a viewer has left.
    pub fn timeout(&self) -> Duration {
        let three = Duration::from_secs(self.target() * 3);
        self.viewer_timeout.unwrap_or(three.max(Duration::from_secs(10)))
    }
}

impl Default for Hls {
    fn default() -> Self {
        Hls { segment: Duration::from_secs(2), window: 6, viewer_timeout: None }
    }
}

/// One user (spec: playback, settings).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// As [`Endpoint::name`].
    pub name: String,
    /// How many playbacks at once; 0 = any number.
    pub max_connections: u32,
    /// How many more, which give way to those of others.
    pub soft_connections: u32,
    /// Who gives way to whom for a provider's account: lower is stronger.
    pub priority: i8,
    /// The same, for what uses one of `soft_connections`.
    pub soft_priority: i8,
    /// Whether it may play at all.
    pub enabled: bool,
    /// From when on it may not play any more, and what it plays ends; `None` = never.
    pub until: Option<Date>,
}

impl Default for User {
    fn default() -> Self {
        let name = String::from("user");
        let (max_connections, soft_connections, priority, soft_priority) = (0, 0, 0, 0);
        User { name, max_connections, soft_connections, priority, soft_priority, enabled: true, until: None }
    }
}

/// What happens when users want to play more than they may (spec: playback §3.3, §10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Playback {
    /// What is tried in this order when all places of a user are used; nothing = refused.
    pub strategies: Vec<Strategy>,
    /// How long a playback may wait for a place, or run without one; zero switches that off.
    pub grace: Duration,
    /// How long no grace is given to a user after one that was in vain.
    pub grace_cooldown: Duration,
    /// How long a player may not evict again whom it evicted; zero switches that off.
    pub reentry_guard: Duration,
    /// How many playbacks there may be; whatever they leave behind is cleaned up.
    pub cleanup_capacity: usize,
    /// How long a request waits for one of these.
    pub permit_wait: Duration,
    /// How many playbacks of a user there may be, counted or not.
    pub sessions_per_user: usize,
    /// How long what an operator or a stronger playback ended is remembered by its token.
    pub ended_memory: Duration,
    /// How long a playback over HLS is kept for its player after its last request.
    pub hls_session_ttl: Duration,
    /// How long one of the past is.
    pub catchup_session_ttl: Duration,
    /// How long after that its player is still given the same account first.
    pub provider_affinity_ttl: Duration,
    /// How long a lease may take to its first media.
    pub starting_deadline: Duration,
    /// How long somebody waits for one that gives way.
    pub preemption_wait: Duration,
    /// How long one that gave way may not have the same again.
    pub preempted_block: Duration,
    /// How long a live stream of a provider stays open for nobody, unless somebody else wants its account.
    pub linger: Duration,
}

impl Default for Playback {
    fn default() -> Self {
        Playback {
            strategies: Vec::from([Strategy::GraceHold]),
            grace: Duration::from_secs(2),
            grace_cooldown: Duration::from_secs(4),
            reentry_guard: Duration::from_secs(3),
            cleanup_capacity: 4096,
            permit_wait: Duration::from_secs(5),
            sessions_per_user: 50,
            ended_memory: Duration::from_secs(600),
            hls_session_ttl: Duration::from_secs(15),
            catchup_session_ttl: Duration::from_secs(45),
            provider_affinity_ttl: Duration::from_secs(120),
            starting_deadline: Duration::from_secs(5),
            preemption_wait: Duration::from_millis(1500),
            preempted_block: Duration::from_secs(3),
            linger: Duration::from_secs(3),
        }
    }
}

/// Where titles come from: a pool of accounts (spec: playback §4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// As [`Endpoint::name`].
    pub name: String,
    /// At least one.
    pub accounts: Vec<Account>,
    /// How long an account rests after a connection of its was closed before another item may use it: some providers
    /// count it for a while longer.
    pub cooling: Duration,
    /// How a live stream of its is pulled; `name` and `sources` mean nothing here, and `idle_timeout` is [`Playback::linger`].
    pub live: Channel,
}

/// One account of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// How many connections at once; 0 = any number.
    pub max_connections: u32,
    /// Accounts of a lower one are used first; those of the same one take turns.
    pub priority: i8,
    /// Whether it may be used at all.
    pub enabled: bool,
    /// From when on it may not be used any more; `None` = never.
    pub until: Option<Date>,
    /// Whether the provider bears one connection more for as long as a grace lasts.
    pub overlap: bool,
}

impl Default for Provider {
    fn default() -> Self {
        let accounts = Vec::from([Account::default()]);
        Provider { name: String::from("provider"), accounts, cooling: Duration::ZERO, live: Channel::default() }
    }
}

impl Default for Account {
    fn default() -> Self {
        Account { max_connections: 1, priority: 0, enabled: true, until: None, overlap: false }
    }
}

/// What is tried when all places of a user are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strategy {
    /// The oldest playback from the same address ends.
    EvictSameIpOldest,
    /// The latest playback from the same address ends.
    EvictSameIpLatest,
    /// The oldest playback ends.
    EvictOldest,
    /// The latest playback ends.
    EvictLatest,
    /// It runs at once, and ends after `grace` if there is no place for it then.
    GraceInstant,
    /// It waits for a place for `grace`.
    GraceHold,
    /// It is refused.
    Deny,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 7] = [
        Strategy::EvictSameIpOldest,
        Strategy::EvictSameIpLatest,
        Strategy::EvictOldest,
        Strategy::EvictLatest,
        Strategy::GraceInstant,
        Strategy::GraceHold,
        Strategy::Deny,
    ];

    /// The word for it in the configuration, status and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::EvictSameIpOldest => "evict_same_ip_oldest",
            Strategy::EvictSameIpLatest => "evict_same_ip_latest",
            Strategy::EvictOldest => "evict_oldest",
            Strategy::EvictLatest => "evict_latest",
            Strategy::GraceInstant => "grace_instant",
            Strategy::GraceHold => "grace_hold",
            Strategy::Deny => "deny",
        }
    }
}
