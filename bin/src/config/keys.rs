//! Every key: its path, what it means, where it goes and how it is written. The reader, the environment, the sample and
//! `holdfast check` know keys from here alone.

use std::time::Duration;

use holdfast_core::config::{Endpoint, Media, Takeover};

use super::value::{
    Address, Count, File, IceUrl, Kind, List, Listener, Name, Password, PortRange, Rate, Secret, Size, Span, Text,
    Value, Words, Wrong,
};
use super::{Audio, Format, IceServer, Level, Settings};

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
    Section { path: "http", doc: "Where clients come in: pages, WHIP, viewers, status.", rows: None },
    Section {
        path: "http.tls",
        doc: "HTTPS instead of HTTP. Browsers give away a camera only there and on localhost.",
        rows: None,
    },
    Section { path: "http.limits", doc: "What one client may take.", rows: None },
    Section { path: "ice", doc: "How publishers' media comes in.", rows: None },
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
    },
    Section { path: "media", doc: "What becomes of the media.", rows: None },
    Section { path: "live", doc: "How live feeds are kept for their viewers.", rows: None },
    Section { path: "api", doc: "Reading /api/status and /metrics, and ending sessions by hand.", rows: None },
    Section { path: "log", doc: "The log, on standard error.", rows: None },
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
    },
];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// `path, doc, field, kind;` a row.
macro_rules! keys {
    ($($path:literal, $doc:expr, $field:expr, $kind:expr;)*) => {
        /// Every key, section by section, in the order of the sample.
        pub(super) static KEYS: &[Key] = &[$(Key { path: $path, doc: $doc, field: &At($field, $kind) }),*];
    };
}

keys! {
    "http.listen", "Addresses and ports, IPv6 in brackets; port 0 lets the system choose.",
        |s, _| &mut s.http.listen, List(Listener, 1, 64);

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
    "http.limits.connections", "Connections at once.",
        |s, _| &mut s.http.limits.connections, Count(1, 1_000_000);
    "http.limits.connections_per_address", "Connections at once of one address, or IPv6 /64; 0 = no limit, for an edge behind a proxy.",
        |s, _| &mut s.http.limits.connections_per_address, Count(0, 1_000_000);
    "http.limits.whip_rate", "WHIP requests that change something, per second and address, on average; 0 = no limit.",
        |s, _| &mut s.http.limits.whip_rate, Count(0, 1_000_000);

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

    "media.audio", "Sound for viewers: \"aac\", \"opus\", or \"auto\": AAC where this machine has an encoder.",
        |s, _| &mut s.media.audio, Words(&[("auto", Audio::Auto), ("aac", Audio::Aac), ("opus", Audio::Opus)]);

    "live.idle", "How long viewers stay connected while nobody publishes.",
        |s, _| &mut s.core.live.idle, Span(ms(100), DAY);
    "live.buffer", "How much of a feed is kept; a viewer that falls further behind is ended.",
        |s, _| &mut s.core.live.buffer, Size(64 << 10, 1 << 30);
    "live.flush_interval", "Small writes are gathered this long; \"0s\" writes each at once.",
        |s, _| &mut s.core.live.flush_interval, Span(ms(0), ms(1000));
    "live.key_frame_interval", "Shortest time between two requests for a key frame to one publisher.",
        |s, _| &mut s.core.live.key_frame_interval, Span(ms(100), HOUR);
    "live.fresh", "A viewer starts at a key frame not older than this, else a new one is asked for.",
        |s, _| &mut s.core.live.fresh, Span(ms(0), HOUR);
    "live.viewers", "Viewers of one feed.",
        |s, _| &mut s.core.live.viewers, Count(1, 1_000_000);

    "api.tokens", "Bearer tokens that may do both. Empty: everybody may read, only this machine may end.",
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
}
