//! Every key: its path, what it means, where it goes and how it is written. The reader, the environment, the sample and
//! `holdfast check` know keys from here alone.

use std::time::Duration;

use holdfast_core::config::{Channel, Endpoint, Hls, Media, Strategy, Takeover, User};

use holdfast_io::library::{Library, Shelf};
use holdfast_io::ovt::{Generation, Notify};
use holdfast_io::providers::{Dialect, Location, Output};
use holdfast_io::server::WrongLogin;
use holdfast_io::users::Status;

use super::value::{
    Address, Count, Credential, Directory, File, Flag, Group, GuideAt, IceUrl, Kind, List, Listener, Moment, Name,
    Network, Passphrase, Password, PortRange, Priority, ProviderAt, Rate, Retries, Secret, Size, SizeOr, Source, Span,
    SpanOr, Text, UserName, Value, Words, Wrong,
};
use super::{Account, Audio, Format, IceServer, Level, Login, Provider, Settings};

/// One key.
pub(super) struct Key {
    /// Such as `http.listen`, or `endpoint[].name` for a key of each element of a list.
    pub(super) path: &'static str,
    /// One line for the sample.
    pub(super) doc: &'static str,
    /// Where its value goes.
    pub(super) field: &'static dyn Field,
}

/// A place in the settings with the way its value is written.
pub(super) trait Field: Sync {
    /// Reads a value into element `n` (of no meaning outside of lists).
    fn read(&self, settings: &mut Settings, n: usize, value: Value<'_>) -> Result<(), Wrong>;
    /// What is there, in TOML.
    fn show(&self, settings: &mut Settings, n: usize) -> String;
}

/// The field that a function finds, written as a kind says.
struct At<V, K>(fn(&mut Settings, usize) -> &mut V, K);

impl<V, K: Kind<V> + Sync> Field for At<V, K> {
    fn read(&self, settings: &mut Settings, n: usize, value: Value<'_>) -> Result<(), Wrong> {
        *(self.0)(settings, n) = self.1.read(value)?;
        Ok(())
    }

    fn show(&self, settings: &mut Settings, n: usize) -> String {
        self.1.show((self.0)(settings, n))
    }
}

/// A table, or a list of tables where the path ends in `[]`.
pub(super) struct Section {
    /// Its path.
    pub(super) path: &'static str,
    /// For the sample.
    pub(super) doc: &'static str,
    /// For lists.
    pub(super) rows: Option<Rows>,
    /// The section whose keys stand in for those of the same name that are not written here; the sample shows them there.
    pub(super) defaults: Option<&'static str>,
}

impl Section {
    const fn table(path: &'static str, doc: &'static str) -> Section {
        Section { path, doc, rows: None, defaults: None }
    }
}

/// The elements of a list of tables.
pub(super) struct Rows {
    /// How many there may be.
    pub(super) most: usize,
    /// How many there are.
    pub(super) len: fn(&Settings) -> usize,
    /// Takes all away, for a file that has its own.
    pub(super) clear: fn(&mut Settings),
    /// Adds one with its defaults.
    pub(super) push: fn(&mut Settings),
    /// Adds one for the sample to show where the default is an empty list.
    pub(super) example: fn(&mut Settings),
}

/// Every section, in the order of the sample.
pub(super) static SECTIONS: &[Section] = &[
    Section::table("http", "Where clients come in: pages, WHIP, viewers, status."),
    Section::table("http.tls", "HTTPS instead of HTTP. Browsers give away a camera only there and on localhost."),
    Section::table("http.limits", "What one client may take."),
    Section::table("ice", "How publishers' media comes in."),
    Section {
        path: "ice.servers[]",
        doc: "STUN and TURN servers: offered to clients, and used by us. Not needed where clients can reach us.",
        rows: Some(Rows {
            most: 16,
            len: |s| s.ice.servers.len(),
            clear: |s| s.ice.servers.clear(),
            push: |s| s.ice.servers.push(IceServer::default()),
            example: |s| {
                s.ice.servers.push(IceServer {
                    url: String::from("turn:turn.example.org:3478?transport=udp"),
                    username: String::from("edge"),
                    credential: String::from("shown as stars"),
                });
            },
        }),
        defaults: None,
    },
    Section::table(
        "ovt",
        "Serving slots and channels to edges over OVT: OvenMediaEngine's, and other Holdfasts. It knows no access control.",
    ),
    Section::table("origins", "Fetching channels from elsewhere."),
    Section::table("media", "What becomes of the media."),
    Section::table("live", "How live feeds are kept for their viewers."),
    Section::table(
        "live.hls",
        "How live feeds are cut for players of HLS, /live/NAME/index.m3u8, out of what `buffer` keeps.",
    ),
    Section::table("api", "Reading /api/status and /metrics, and ending sessions by hand."),
    Section::table("log", "The log, on standard error."),
    Section::table(
        "recorder",
        "What is kept of what happened lately, for `holdfast dump` and `holdfast replay`: every decision with what led to it. No media,\n\
         no password, no token; but names of users and addresses of players.",
    ),
    Section {
        path: "endpoint[]",
        doc: "Where publishers come in: /whip/NAME, watched at /live/NAME.ts. As many as wanted; the first one written here\n\
              takes the place of the default one.",
        rows: Some(Rows {
            most: 1000,
            len: |s| s.core.endpoints.len(),
            clear: |s| s.core.endpoints.clear(),
            push: |s| s.core.endpoints.push(Endpoint::default()),
            example: |s| s.core.endpoints.push(Endpoint::default()),
        }),
        defaults: None,
    },
    Section::table(
        CHANNEL_DEFAULTS,
        "How channels are pulled from their origins. Each key may stand under a [[channel]] too, where it is about that one.",
    ),
    Section {
        path: "channel[]",
        doc: "Streams that are pulled from origins when somebody watches /live/NAME.ts. As many as wanted; the first one\n\
              written here takes the place of the default one, and `channel = []` at the top of the file leaves none.",
        rows: Some(Rows {
            most: 1000,
            len: |s| s.core.channels.len(),
            clear: |s| {
                s.core.channels.clear();
                s.origins.clear();
            },
            push: |s| {
                s.core.channels.push(Channel::default());
                s.origins.push(Vec::new());
            },
            example: |_| {},
        }),
        defaults: Some(CHANNEL_DEFAULTS),
    },
    Section::table("playback", "What happens when users want to play more at once than they may."),
    Section {
        path: "user[]",
        doc: "Who may play, and how much at once. With nobody here everybody may, uncounted; with somebody every stream takes a name\n\
              and a password: in its path, in its query, or as HTTP Basic.",
        rows: Some(Rows {
            most: 10_000,
            len: |s| s.core.users.len(),
            clear: |s| {
                s.core.users.clear();
                s.logins.clear();
            },
            push: |s| {
                s.core.users.push(User { name: String::new(), ..User::default() });
                s.logins.push(Login::default());
            },
            example: |s| {
                s.core.users.push(User { name: String::from("anna"), ..User::default() });
                s.logins.push(Login {
                    password: holdfast_io::users::Password::parse("shown as stars").ok(),
                    ..Login::default()
                });
            },
        }),
        defaults: None,
    },
    Section {
        path: "provider[]",
        doc: "Where live streams, films and series come from: a list (M3U), or the panel of an IPTV provider (Xtream). What is equally\n\
              called at several of them is one title with several sources, tried in the order in which providers stand here.",
        rows: Some(Rows {
            most: 100,
            len: |s| s.providers.len(),
            clear: |s| s.providers.clear(),
            push: |s| s.providers.push(Provider::default()),
            example: |s| {
                s.providers.push(Provider {
                    name: String::from("tv"),
                    url: Location::parse("http://panel.example:8080").ok(),
                    ..Provider::default()
                });
            },
        }),
        defaults: None,
    },
    Section {
        path: "account[]",
        doc: "What providers are logged in to with, and how much each login may take at once. A provider without any has one: what its\n\
              URL holds.",
        rows: Some(Rows {
            most: 1000,
            len: |s| s.accounts.len(),
            clear: |s| s.accounts.clear(),
            push: |s| s.accounts.push(Account::default()),
            example: |s| {
                s.accounts.push(Account {
                    provider: String::from("tv"),
                    username: String::from("shown as stars"),
                    password: String::from("shown as stars"),
                    ..Account::default()
                });
            },
        }),
        defaults: None,
    },
    Section {
        path: "library[]",
        doc: "Films and series that are files of this machine: mp4, mkv, ts, avi, mov, webm, m4v. Looked through every five minutes.",
        rows: Some(Rows {
            most: 100,
            len: |s| s.libraries.len(),
            clear: |s| s.libraries.clear(),
            push: |s| s.libraries.push(Library::default()),
            example: |s| {
                s.libraries.push(Library {
                    name: String::from("films"),
                    path: "/srv/films".into(),
                    ..Library::default()
                });
            },
        }),
        defaults: None,
    },
];

/// Where channels take what they do not say themselves.
const CHANNEL_DEFAULTS: &str = "channel_defaults";

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// `path, doc, field, kind;` a row; behind them `field, doc, kind;` for what is in `[channel_defaults]` and in each channel.
macro_rules! keys {
    (
        $($path:literal, $doc:expr, $field:expr, $kind:expr;)*
        for channels: $($name:ident, $of_channels:expr, $kind_of_channels:expr;)*
    ) => {
        /// Every key, section by section, in the order of the sample.
        pub(super) static KEYS: &[Key] = &[
            $(Key { path: $path, doc: $doc, field: &At($field, $kind) },)*
            $(Key {
                path: concat!("channel_defaults.", stringify!($name)),
                doc: $of_channels,
                field: &At(|s, _| &mut s.channel_defaults.$name, $kind_of_channels),
            },)*
            $(Key {
                path: concat!("channel[].", stringify!($name)),
                doc: $of_channels,
                field: &At(|s, n| &mut s.core.channels[n].$name, $kind_of_channels),
            },)*
        ];

        /// The names of what channels take from `[channel_defaults]`, and how.
        pub(super) static INHERITED: &[(&str, fn(&mut Channel, &Channel))] =
            &[$((stringify!($name), |own, defaults| own.$name = defaults.$name)),*];
    };
}

keys! {
    "http.listen", "Addresses and ports, IPv6 in brackets; port 0 lets the system choose.",
        |s, _| &mut s.http.listen, List(Listener, 1, 64);

    "http.trusted_proxies", "Networks of proxies that are believed when they say where a request comes from (X-Forwarded-For, X-Real-IP) and how (X-Forwarded-Proto).",
        |s, _| &mut s.http.trusted_proxies, List(Network, 0, 64);
    "http.wrong_login", "The status with which /player_api.php tells players of the Xtream kind that name or password is wrong: \"200\", as most panels do, or \"401\".",
        |s, _| &mut s.http.wrong_login, Words(&[("200", WrongLogin::Ok), ("401", WrongLogin::Unauthorized)]);

    "http.tls.cert", "Certificate chain, PEM, our own certificate first.",
        |s, _| &mut s.http.tls.get_or_insert_default().cert, File;
    "http.tls.key", "Its private key, PEM.",
        |s, _| &mut s.http.tls.get_or_insert_default().key, File;

    "http.limits.head", "Size of a request's head.",
        |s, _| &mut s.http.limits.head, Size(1 << 10, 1 << 20);
    "http.limits.head_timeout", "From the first byte of a head to its last, and from a connection to its first byte.",
        |s, _| &mut s.http.limits.head_timeout, Span(ms(100), HOUR);
    "http.limits.body_timeout", "From the end of a head to the end of its body.",
        |s, _| &mut s.http.limits.body_timeout, Span(ms(100), HOUR);
    "http.limits.idle_timeout", "How long a connection may stay open between requests.",
        |s, _| &mut s.http.limits.idle_timeout, Span(ms(100), DAY);
    "http.limits.write_timeout", "How long a peer may take none of what we have for it.",
        |s, _| &mut s.http.limits.write_timeout, Span(ms(100), HOUR);
    "http.limits.connections", "Connections at once; fewer where the system allows fewer open files, of which media keep what they need.",
        |s, _| &mut s.http.limits.connections, Count(1, 1_000_000);
    "http.limits.connections_per_address", "Connections at once of one address, or IPv6 /64; 0 = no limit, for an edge behind a proxy.",
        |s, _| &mut s.http.limits.connections_per_address, Count(0, 1_000_000);
    "http.limits.whip_rate", "WHIP requests that change something, per second and address, on average; 0 = no limit, for an edge behind a proxy.",
        |s, _| &mut s.http.limits.whip_rate, Count(0, 1_000_000);
    "http.limits.login_failures", "Logins of one address that may fail each minute; 0 = no limit.",
        |s, _| &mut s.http.limits.login_failures, Count(0, 1_000_000);

    "ice.addresses", "Our addresses for media. Empty: loopback while [http] listens on nothing else, else all others. \"0.0.0.0\": all others.",
        |s, _| &mut s.ice.addresses, List(Address, 0, 64);
    "ice.ports", "UDP ports for media, such as \"20000-20100\". Empty: whatever the system gives.",
        |s, _| &mut s.ice.ports, PortRange;

    "ice.servers[].url", "stun:HOST[:PORT] or turn:HOST[:PORT][?transport=udp|tcp], also stuns: and turns:.",
        |s, n| &mut s.ice.servers[n].url, IceUrl;
    "ice.servers[].username", "For TURN.",
        |s, n| &mut s.ice.servers[n].username, Text;
    "ice.servers[].credential", "For TURN.",
        |s, n| &mut s.ice.servers[n].credential, Password;

    "ovt.listen", "Addresses and ports, 9000 by custom. Empty: edges are not served.",
        |s, _| &mut s.ovt.listen, List(Listener, 0, 64);
    "ovt.generation", "Whose numbers for codecs are spoken: \"auto\" for those since 0.19, or \"0.18\" to \"0.21\".",
        |s, _| &mut s.ovt.generation,
        Words(&[
            ("auto", Generation::Auto),
            ("0.18", Generation::V18),
            ("0.19", Generation::V19),
            ("0.20", Generation::V20),
            ("0.21", Generation::V21),
        ]);
    "ovt.notify", "Whether edges are told of new tracks: \"never\", or \"track-changed\", which ones before 0.21 take for an error.",
        |s, _| &mut s.ovt.notify, Words(&[("never", Notify::Never), ("track-changed", Notify::TrackChanged)]);
    "ovt.packet_silence", "A stream ends for edges when no media has come for this long, so that they look elsewhere; \"0s\" = after live.idle.",
        |s, _| &mut s.ovt.packet_silence, SpanOr("0s", Span(ms(100), HOUR));

    "origins.authorities", "Certificates of authorities, PEM, trusted beside the system's. Empty: none.",
        |s, _| &mut s.authorities, File;

    "media.audio", "Sound for viewers: \"aac\", \"opus\", or \"auto\": AAC where this machine has an encoder.",
        |s, _| &mut s.media.audio, Words(&[("auto", Audio::Auto), ("aac", Audio::Aac), ("opus", Audio::Opus)]);

    "live.idle", "How long viewers stay connected while nobody publishes.",
        |s, _| &mut s.core.live.idle, Span(ms(100), DAY);
    "live.buffer", "How much of a feed is kept; a viewer that falls further behind is ended. Memory for each slot that had a publisher lately.",
        |s, _| &mut s.core.live.buffer, Size(64 << 10, 1 << 30);
    "live.flush_interval", "Small writes are gathered this long; \"0s\" writes each at once.",
        |s, _| &mut s.core.live.flush_interval, Span(ms(0), ms(1000));
    "live.key_frame_interval", "Shortest time between two requests for a key frame to one publisher.",
        |s, _| &mut s.core.live.key_frame_interval, Span(ms(100), HOUR);
    "live.fresh", "A viewer starts at a key frame not older than this, else a new one is asked for.",
        |s, _| &mut s.core.live.fresh, Span(ms(0), HOUR);
    "live.progress_timeout", "A viewer whose player takes nothing of what there is for it is ended after this, or at most twice this.",
        |s, _| &mut s.core.live.progress_timeout, Span(ms(1000), DAY);
    "live.viewers", "Viewers of one feed.",
        |s, _| &mut s.core.live.viewers, Count(1, 1_000_000);

    "live.hls.segment", "A segment ends at the first key frame so much behind its beginning; origins have to send one at least every twice as long.",
        |s, _| &mut s.core.live.hls.segment, Span(Hls::LEAST, ms(30_000));
    "live.hls.window", "How many segments a playlist lists; more where these play for less than six times `segment`.",
        |s, _| &mut s.core.live.hls.window, Count(1, 1000);
    "live.hls.viewer_timeout", "A player that asks for nothing this long has left; \"auto\" = six times `segment`, 10s at least.",
        |s, _| &mut s.core.live.hls.viewer_timeout, SpanOr("auto", Span(ms(1000), HOUR));

    "api.tokens", "Bearer tokens that may do both. Empty: everybody may read, only this machine may end; a proxy on this machine has to add Forwarded, X-Forwarded-For or Via then, or everybody seems to be on it.",
        |s, _| &mut s.api.tokens, List(Secret, 0, 1000);

    "log.level", "\"error\", \"warn\", \"info\", \"debug\" or \"trace\".",
        |s, _| &mut s.log.level,
        Words(&[
            ("error", Level::Error),
            ("warn", Level::Warn),
            ("info", Level::Info),
            ("debug", Level::Debug),
            ("trace", Level::Trace),
        ]);
    "log.format", "\"text\" for people, \"json\" for programs.",
        |s, _| &mut s.log.format, Words(&[("text", Format::Text), ("json", Format::Json)]);

    "recorder.size", "How much is kept, in memory, and once more in `file`; a busy hour takes some 250 MiB. \"off\": nothing.",
        |s, _| &mut s.recorder.size, SizeOr("off", Size(1 << 20, 512 << 20));
    "recorder.file", "A file that holds the same and outlives the process; the half before it is in the same name with `.1` behind it. Empty: none.",
        |s, _| &mut s.recorder.file, File;

    "endpoint[].name", "Part of its URLs: 1 to 64 of A–Z a–z 0–9 - _ . , unique.",
        |s, n| &mut s.core.endpoints[n].name, Name;
    "endpoint[].media", "What is accepted: \"audio+video\", \"audio\" or \"video\".",
        |s, n| &mut s.core.endpoints[n].media,
        Words(&[("audio+video", Media::AudioVideo), ("audio", Media::Audio), ("video", Media::Video)]);
    "endpoint[].slots", "Publishers at once.",
        |s, n| &mut s.core.endpoints[n].slots, Count(1, 1000);
    "endpoint[].tokens", "Bearer tokens that may publish. Empty: everybody may.",
        |s, n| &mut s.core.endpoints[n].tokens, List(Secret, 0, 1000);
    "endpoint[].takeover", "When all slots are held: \"displace-dead\" holders, \"refuse\" the newcomer, or \"newest-wins\".",
        |s, n| &mut s.core.endpoints[n].takeover,
        Words(&[
            ("displace-dead", Takeover::DisplaceDead),
            ("refuse", Takeover::Refuse),
            ("newest-wins", Takeover::NewestWins),
        ]);
    "endpoint[].dead_after", "A holder is dead when its audio has been frozen, and no packet at all has come, for this long.",
        |s, n| &mut s.core.endpoints[n].dead_after, Span(ms(100), HOUR);
    "endpoint[].takeover_wait", "How long a newcomer may be held for a slot; at least dead_after + poll.",
        |s, n| &mut s.core.endpoints[n].takeover_wait, Span(ms(100), HOUR);
    "endpoint[].poll", "Distance between two looks at a holder while a newcomer waits.",
        |s, n| &mut s.core.endpoints[n].poll, Span(ms(10), ms(10_000));
    "endpoint[].inactivity_timeout", "A session is ended when no media has come for this long.",
        |s, n| &mut s.core.endpoints[n].inactivity_timeout, Span(ms(100), DAY);
    "endpoint[].setup_timeout", "A session is ended when no media has come this long after its POST.",
        |s, n| &mut s.core.endpoints[n].setup_timeout, Span(ms(1000), HOUR);
    "endpoint[].jitter", "Length of the jitter buffer.",
        |s, n| &mut s.core.endpoints[n].jitter, Span(ms(0), ms(10_000));
    "endpoint[].max_video_bitrate", "Publishers are asked not to send more.",
        |s, n| &mut s.core.endpoints[n].max_video_bitrate, Rate(50_000, 1_000_000_000);

    "channel[].name", "Part of its URL, as an endpoint's; no endpoint may have the same.",
        |s, n| &mut s.core.channels[n].name, Name;
    "channel[].sources", "Where it comes from, the preferred first: http(s)://HOST/PATH (MPEG-TS), ovt://HOST:PORT/APP/STREAM (OvenMediaEngine),\n\
        rtsp(s)://HOST/PATH, srt://HOST:PORT, file:///PATH (MPEG-TS, in a loop), whip:ENDPOINT/SLOT, test: (a test picture).",
        |s, n| &mut s.origins[n], List(Source, 1, Channel::SOURCES as usize);

    "playback.strategies", "What is tried in this order when all places of a user are used: \"evict_same_ip_oldest\", \"evict_same_ip_latest\", \"evict_oldest\", \"evict_latest\",\n\
        \"grace_instant\" (plays for `grace`, then ends if nothing became free), \"grace_hold\" (waits for `grace`), \"deny\". Empty: refused.",
        |s, _| &mut s.core.playback.strategies,
        List(
            Words(&[
                ("evict_same_ip_oldest", Strategy::EvictSameIpOldest),
                ("evict_same_ip_latest", Strategy::EvictSameIpLatest),
                ("evict_oldest", Strategy::EvictOldest),
                ("evict_latest", Strategy::EvictLatest),
                ("grace_instant", Strategy::GraceInstant),
                ("grace_hold", Strategy::GraceHold),
                ("deny", Strategy::Deny),
            ]),
            0,
            7,
        );
    "playback.grace", "How long a playback may wait for a place, or play without one; \"0s\": no grace.",
        |s, _| &mut s.core.playback.grace, Span(ms(0), ms(60_000));
    "playback.grace_cooldown", "How long a user gets no grace after one that was in vain.",
        |s, _| &mut s.core.playback.grace_cooldown, Span(ms(0), HOUR);
    "playback.reentry_guard", "How long a player may not evict again whom it evicted; \"0s\": it may.",
        |s, _| &mut s.core.playback.reentry_guard, Span(ms(0), HOUR);
    "playback.cleanup_capacity", "Playbacks at once, of all users.",
        |s, _| &mut s.core.playback.cleanup_capacity, Count(1, 1_000_000);
    "playback.permit_wait", "How long a request waits for one of these.",
        |s, _| &mut s.core.playback.permit_wait, Span(ms(0), ms(60_000));
    "playback.sessions_per_user", "The most playbacks of one user at once, those that wait among them, whatever its `max_connections`.",
        |s, _| &mut s.core.playback.sessions_per_user, Count(1, 1_000_000);
    "playback.ended_memory", "How long a playback that an operator or a stronger one ended may not be taken up again at its old address.",
        |s, _| &mut s.core.playback.ended_memory, Span(ms(0), DAY);
    "playback.hls_session_ttl", "How long a playback of a provider's HLS keeps its place after the last request of its player.",
        |s, _| &mut s.core.playback.hls_session_ttl, Span(ms(1000), HOUR);
    "playback.catchup_session_ttl", "The same for what was on some time ago (catchup).",
        |s, _| &mut s.core.playback.catchup_session_ttl, Span(ms(1000), HOUR);
    "playback.provider_affinity_ttl", "How much longer the same player is given the same account first.",
        |s, _| &mut s.core.playback.provider_affinity_ttl, Span(ms(0), DAY);
    "playback.starting_deadline", "How long an account is kept for what has not sent anything yet.",
        |s, _| &mut s.core.playback.starting_deadline, Span(ms(100), HOUR);
    "playback.preemption_wait", "How long a playback waits for a weaker one to give way.",
        |s, _| &mut s.core.playback.preemption_wait, Span(ms(0), ms(60_000));
    "playback.preempted_block", "How long one that gave way may not have the same again.",
        |s, _| &mut s.core.playback.preempted_block, Span(ms(0), HOUR);
    "playback.linger", "How long a live stream of a provider stays open when nobody watches it any more, unless its account is needed.",
        |s, _| &mut s.core.playback.linger, Span(ms(0), HOUR);
    "playback.episodes", "A file in which is kept of which series episodes of panels are: after a restart users with `groups` go on with them by that. Empty: none.",
        |s, _| &mut s.episodes, File;
    "playback.user_limit_clip", "An MPEG-TS file that players of MPEG-TS are shown, once, where their user plays as much as it may. Empty: 503.",
        |s, _| &mut s.slates.user_limit, File;
    "playback.provider_limit_clip", "The same where no account of any provider is free.",
        |s, _| &mut s.slates.provider_limit, File;

    "user[].name", "What it logs in with: 1 to 64 of A–Z a–z 0–9 - _ . @ + , unique.",
        |s, n| &mut s.core.users[n].name, UserName;
    "user[].password", "As it is typed, or what `holdfast password` makes of it.",
        |s, n| &mut s.logins[n].password, Passphrase;
    "user[].max_connections", "Playbacks at once; 0: any number, as far as `playback.sessions_per_user` goes.",
        |s, n| &mut s.core.users[n].max_connections, Count(0, 1_000_000);
    "user[].soft_connections", "So many more.",
        |s, n| &mut s.core.users[n].soft_connections, Count(0, 1_000_000);
    "user[].priority", "Who gives way when a provider's connections are used up, from -128 to 127: lower is stronger, equals never give way.",
        |s, n| &mut s.core.users[n].priority, Priority;
    "user[].soft_priority", "The same for what uses one of `soft_connections`, which give way to all others.",
        |s, n| &mut s.core.users[n].soft_priority, Priority;
    "user[].groups", "Which groups of providers' catalogues it may see and play, by name. Empty: all.",
        |s, n| &mut s.logins[n].groups, List(Group, 0, 1000);
    "user[].enabled", "Whether it may play.",
        |s, n| &mut s.core.users[n].enabled, Flag;
    "user[].status", "What its player is told: \"active\" or \"trial\"; \"expired\", \"banned\" and \"disabled\" may not play either.",
        |s, n| &mut s.logins[n].status,
        Words(&[
            ("active", Status::Active),
            ("trial", Status::Trial),
            ("expired", Status::Expired),
            ("banned", Status::Banned),
            ("disabled", Status::Disabled),
        ]);
    "user[].expires", "From when on it may not play any more, and when what it plays ends, in UTC: \"2027-01-31\" or \"2027-01-31T18:00:00Z\". Empty: never.",
        |s, n| &mut s.logins[n].expires, Moment;

    "provider[].name", "What accounts, status and logs call it: 1 to 64 of A–Z a–z 0–9 - _ . , unique.",
        |s, n| &mut s.providers[n].name, Name;
    "provider[].url", "A list, also gzipped: http(s)://…, file:///PATH; or a panel: http(s)://HOST:PORT.",
        |s, n| &mut s.providers[n].url, ProviderAt;
    "provider[].kind", "\"m3u\", \"xtream\", or \"auto\": a panel where the URL names nothing but a host, else a list.",
        |s, n| &mut s.providers[n].kind,
        Words(&[("auto", Dialect::Auto), ("m3u", Dialect::M3u), ("xtream", Dialect::Xtream)]);
    "provider[].guide", "Its guide: the URL of an XMLTV file, also gzipped; \"auto\": where its list says, or its panel has it; or \"none\".",
        |s, n| &mut s.providers[n].guide, GuideAt;
    "provider[].refresh", "How often catalogue and guide are read again, from each minute on; more often is refused.",
        |s, n| &mut s.providers[n].refresh, Span(ms(60_000), Duration::from_secs(30 * 24 * 3600));
    "provider[].user_agent", "What it is told that we are. Empty: Holdfast with its version.",
        |s, n| &mut s.providers[n].user_agent, Text;
    "provider[].output", "How live streams of a panel are asked for: \"ts\", which many viewers share, \"m3u8\" (HLS), or \"auto\": ts unless the panel says, or shows, that it has none.",
        |s, n| &mut s.providers[n].output, Words(&[("auto", Output::Auto), ("ts", Output::Ts), ("m3u8", Output::M3u8)]);
    "provider[].via", "Whether it is told that requests came through here (Via), as a Holdfast should be that could lead back here; some turn away what passed a proxy.",
        |s, n| &mut s.providers[n].via, Flag;
    "provider[].groups", "Which of its groups are taken, by name. Empty: all.",
        |s, n| &mut s.providers[n].groups, List(Group, 0, 1000);
    "provider[].cooling", "How long an account rests after a connection of its was closed: some providers count it for a while longer.",
        |s, n| &mut s.providers[n].cooling, Span(ms(0), ms(60_000));
    "provider[].allow_private", "Whether its catalogue may lead to private addresses and to this machine, though its URL does not. Without it a URL in a private network leads there, and one on this machine to both; a file leads to neither.",
        |s, n| &mut s.providers[n].allow_private, Flag;
    "provider[].entries", "How many entries of its catalogue are taken; what is left out is said in the log.",
        |s, n| &mut s.providers[n].entries, Count(1, 10_000_000);
    "provider[].bytes", "How much is read of its list, of each answer of its panel, and of its guide.",
        |s, n| &mut s.providers[n].bytes, Size(1 << 10, 1 << 30);

    "account[].provider", "Whose it is.",
        |s, n| &mut s.accounts[n].provider, Name;
    "account[].username", "What it logs in with. Addresses of a list that hold those of its first account get these instead.",
        |s, n| &mut s.accounts[n].username, Credential;
    "account[].password", "The same.",
        |s, n| &mut s.accounts[n].password, Credential;
    "account[].max_connections", "How many connections the provider allows it at once; fewer where its panel says so; 0: as many as its panel says, or any number.",
        |s, n| &mut s.accounts[n].core.max_connections, Count(0, 1_000_000);
    "account[].priority", "Accounts of a lower one are used first, those of the same one in turn.",
        |s, n| &mut s.accounts[n].core.priority, Priority;
    "account[].enabled", "Whether it is used.",
        |s, n| &mut s.accounts[n].core.enabled, Flag;
    "account[].expires", "From when on it is not used any more, as a user's. Empty: never.",
        |s, n| &mut s.accounts[n].expires, Moment;
    "account[].overlap", "Whether the provider bears one connection more for a moment, so that zapping need not wait; \"grace_instant\" among `strategies` uses it.",
        |s, n| &mut s.accounts[n].core.overlap, Flag;

    "library[].name", "What status and logs call it: 1 to 64 of A–Z a–z 0–9 - _ . , unique. Its titles are others under another name.",
        |s, n| &mut s.libraries[n].name, Name;
    "library[].path", "Its directory. Hidden files, and links that lead out of it, are left out.",
        |s, n| &mut s.libraries[n].path, Directory;
    "library[].kind", "\"films\": each file is one; \"series\": each directory is one, with its episodes below it: \"Season 1/Name S01E02.mkv\".",
        |s, n| &mut s.libraries[n].kind, Words(&[("films", Shelf::Films), ("series", Shelf::Series)]);
    "library[].group", "The group under which players show it, as in `groups` of a user.",
        |s, n| &mut s.libraries[n].group, Group;

for channels:
    on_demand, "Pulled while somebody watches; false = always.", Flag;
    start_timeout, "How long a viewer is held for the first media, and refused then.", Span(ms(100), HOUR);
    connect_timeout, "How long resolving, connecting and agreeing with an origin may take together.", Span(ms(100), HOUR);
    no_input_timeout, "An origin is silent when no media has come for this long: the next one is opened beside it.",
        Span(ms(100), HOUR);
    retry_backoff_max, "When all origins have failed, the pause grows from no_input_timeout to this; equal = always that.",
        Span(ms(100), DAY);
    retries, "How often all origins may fail after the first time before viewers are ended, or \"forever\".", Retries;
    stable_after, "Media for this long counts as success, and is what an earlier origin must show to be returned to.",
        Span(ms(0), HOUR);
    failback, "Whether an earlier origin in the list is returned to.", Flag;
    failback_interval, "Pause between two looks at an earlier origin; grows to 30s while it is not back.", Span(ms(100), DAY);
    idle_timeout, "How long after the last viewer left the origin is left.", Span(ms(0), DAY);
    end_grace, "How long an origin that ended in order is asked again before viewers are ended.", Span(ms(0), HOUR);
}
