//! The configuration in the terms of those who move bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use holdfast_core::config::{Account, Channel, Config, Provider, User};
use holdfast_core::journal::Head;
use holdfast_core::time::Date;
use holdfast_io::codec::Codec;
use holdfast_io::gst;
use holdfast_io::origin::Origin;
use holdfast_io::ovt::OriginSettings;
use holdfast_io::providers::{Credentials, ProviderSettings, Reach};
use holdfast_io::server::{self, Clip, Recording};
use holdfast_io::users::Login;
use url::Url;

use super::descriptors::Wanted;
use crate::config::{self, Audio, IceServer, Settings};

/// Units of media that may wait for the loop, over all sessions: some seconds of dozens of publishers.
const QUEUE: usize = 16 * 1024;

/// What `test:` sources play.
const TEST_SIGNAL: &[u8] = include_bytes!("test-signal/signal.ts");

/// For GStreamer. `epoch` is `Time::ZERO` of the driver.
pub(super) fn media(settings: &Settings, epoch: Instant, wake: Arc<dyn Fn() + Send + Sync>) -> gst::Options {
    let servers = &settings.ice.servers;
    gst::Options {
        epoch,
        addresses: settings.ice_addresses(),
        ports: settings.ice.ports.map(|ports| ports.first..=ports.last),
        stun: servers.iter().filter(|server| server.url.starts_with("stun:")).find_map(with_authority),
        turn: servers.iter().filter(|server| server.url.starts_with("turn")).filter_map(with_authority).collect(),
        audio: match settings.media.audio {
            Audio::Auto => gst::AudioCodec::Auto,
            Audio::Aac => gst::AudioCodec::Aac,
            Audio::Opus => gst::AudioCodec::Opus,
        },
        queue: QUEUE,
        wake,
    }
}

/// The URL of an ICE server as GStreamer wants it: `scheme://user:password@host:port?transport=…`, where RFC 7064 and
/// RFC 7065 know neither the slashes nor a user.
fn with_authority(server: &IceServer) -> Option<String> {
    let (scheme, rest) = server.url.split_once(':')?;
    let mut url = Url::parse(&format!("{scheme}://{rest}")).ok()?;
    if url.port().is_none() {
        let port = if scheme.ends_with('s') { 5349 } else { 3478 };
        url.set_port(Some(port)).ok()?;
    }
    if !server.username.is_empty() {
        url.set_username(&server.username).ok()?;
        url.set_password(Some(&server.credential)).ok()?;
    }
    Some(url.into())
}

/// For the core, whose clock starts with `started`.
pub(super) fn core(settings: &Settings, started: SystemTime) -> Config {
    let mut core = settings.core.clone();
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    let until = |expires| Date::from_micros(micros(Duration::from_secs(expires)).saturating_sub(micros(started)));
    for (user, login) in core.users.iter_mut().zip(&settings.logins) {
        user.until = login.expires.map(until);
        user.enabled &= login.status.may_play();
    }
    core.providers = settings
        .providers
        .iter()
        .map(|provider| {
            let own = |account: &config::Account| Account { until: account.expires.map(until), ..account.core.clone() };
            let mut accounts: Vec<Account> = accounts(settings, provider).map(own).collect();
            if accounts.is_empty() {
                accounts.push(Account::default());
            }
            let live = Channel { on_demand: true, ..settings.channel_defaults.clone() };
            Provider { name: provider.name.clone(), accounts, cooling: provider.cooling, live }
        })
        .collect();
    core
}

/// The accounts of a provider, in the order in which they are written.
fn accounts<'s>(
    settings: &'s Settings,
    provider: &'s config::Provider,
) -> impl Iterator<Item = &'s config::Account> + use<'s> {
    settings.accounts.iter().filter(|account| account.provider == provider.name)
}

/// For whoever reads the catalogues.
fn providers(settings: &Settings) -> Vec<ProviderSettings> {
    let of = |provider: &config::Provider| {
        let location = provider.url.clone()?;
        let own = |account: &config::Account| {
            let (username, password) = (account.username.clone(), account.password.clone());
            (!username.is_empty()).then_some(Credentials { username, password })
        };
        // Whoever has nothing of its own has what the URL holds.
        let held = location.credentials();
        let mut all: Vec<Option<Credentials>> =
            accounts(settings, provider).map(|account| own(account).or_else(|| held.clone())).collect();
        if all.is_empty() {
            all.push(held);
        }
        Some(ProviderSettings {
            name: provider.name.clone(),
            dialect: provider.kind.at(&location),
            // Whoever is there may lead there.
            reach: if provider.allow_private { Reach::Machine } else { location.reach() },
            location,
            guide: provider.guide.clone(),
            refresh: provider.refresh,
            user_agent: provider.user_agent.clone(),
            output: provider.output,
            via: provider.via,
            groups: provider.groups.clone(),
            entries: provider.entries,
            bytes: provider.bytes,
            accounts: all,
        })
    };
    settings.providers.iter().filter_map(of).collect()
}

fn logins(settings: &Settings) -> Vec<Login> {
    let logins = settings.core.users.iter().zip(&settings.logins);
    let login = |(user, login): (&User, &config::Login)| {
        Some(Login {
            name: user.name.clone(),
            password: login.password.clone()?,
            expires: login.expires,
            groups: login.groups.clone(),
            status: login.status,
        })
    };
    logins.filter_map(login).collect()
}

/// For connections and codecs. `started` is `Time::ZERO` of the driver, `audio` what publishers' sound becomes.
pub(super) fn server(settings: &Settings, started: SystemTime, audio: Codec) -> server::Settings {
    let mut clips = settings.clips.clone();
    if let Ok(signal) = Clip::new(Bytes::from_static(TEST_SIGNAL)) {
        clips.insert(Origin::Test.label(), Arc::new(signal));
    }
    let slate = |path: &Path| settings.clips.get(&Origin::File(path.to_owned()).label()).cloned();
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    server::Settings {
        limits: settings.http.limits.clone(),
        ice_servers: settings
            .ice
            .servers
            .iter()
            .map(|server| server::IceServer {
                url: server.url.clone(),
                username: given(&server.username),
                credential: given(&server.credential),
            })
            .collect(),
        api_tokens: settings.api.tokens.clone(),
        audio,
        epoch: started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        origins: settings.origins.clone(),
        slates: server::Slates {
            user_limit: slate(&settings.slates.user_limit),
            provider_limit: slate(&settings.slates.provider_limit),
        },
        clips,
        ovt: OriginSettings { generation: settings.ovt.generation, notify: settings.ovt.notify },
        packet_silence: settings.ovt.packet_silence,
        instance: u128::from_le_bytes(entropy()),
        recording: recording(settings, started),
        users: logins(settings),
        providers: providers(settings),
        belongings: Vec::new(),
        libraries: settings.libraries.clone(),
        trusted_proxies: settings.http.trusted_proxies.clone(),
        wrong_login: settings.http.wrong_login,
        secure: settings.http.tls.is_some(),
        listeners: Vec::new(),
    }
}

fn recording(settings: &Settings, started: SystemTime) -> Recording {
    let Some(size) = settings.recorder.size else { return Recording::Off };
    let head = Head {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Of whoever builds it from a repository and says so.
        commit: option_env!("HOLDFAST_COMMIT").unwrap_or_default().to_owned(),
        seed: None,
        started: started.duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_micros()).ok()),
        config: Config::default(),
    };
    Recording::Ring { size, head: Box::new(head), spool: !settings.recorder.file.as_os_str().is_empty() }
}

/// What files are opened for. `session` is how many one session opens.
pub(super) fn wanted(settings: &Settings, session: usize) -> Wanted {
    let slots = settings.core.endpoints.iter().map(|endpoint| endpoint.slots as usize).sum();
    let (connections, channels) = (settings.http.limits.connections, settings.core.channels.len());
    Wanted { connections, slots, channels, session }
}

/// Unpredictable bytes, for the secret part of session URLs and for what tells this process from others.
pub(crate) fn entropy() -> [u8; 16] {
    let mut bytes = [0; 16];
    // It can fail only before the system has gathered any entropy, which is over before programs start.
    getrandom::fill(&mut bytes).expect("the system's random numbers are there");
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdfast_core::time::{Date, Time};

    use super::*;
    use crate::config::parse;

    fn options(text: &str) -> gst::Options {
        media(&parse(text, "f.toml").expect("reads"), Instant::now(), Arc::new(|| {}))
    }

    #[test]
    fn ice_servers_get_an_authority_for_gstreamer() {
        let options = options(
            "ice.servers = [
                { url = 'turns:t.example.org', username = 'a:b', credential = 'p@ss/word' },
                { url = 'stun:192.0.2.7' },
                { url = 'turn:[2001:db8::1]:99?transport=tcp', username = 'u', credential = 'p' },
                { url = 'stun:192.0.2.8:99' },
            ]",
        );
        assert_eq!(options.stun.as_deref(), Some("stun://192.0.2.7:3478"));
        assert_eq!(
            options.turn,
            ["turns://a%3Ab:p%40ss%2Fword@t.example.org:5349", "turn://u:p@[2001:db8::1]:99?transport=tcp"]
        );
    }

    #[test]
    fn media_gets_its_addresses_and_ports() {
        let own = options("ice.ports = '2000-2100'\n[media]\naudio = 'opus'");
        assert_eq!(own.ports, Some(2000..=2100));
        assert_eq!(own.addresses, [std::net::IpAddr::from([127, 0, 0, 1])]);
        assert_eq!(own.audio, gst::AudioCodec::Opus);
        assert!(options("http.listen = ['0.0.0.0:80']").addresses.is_empty());
    }

    #[test]
    fn limits_and_secrets_reach_the_server() {
        let text = "http.limits.head = '2 KiB'\napi.tokens = ['a']\nice.servers = [{ url = 'stun:a' }]";
        let started = UNIX_EPOCH + std::time::Duration::from_millis(2500);
        let own = server(&parse(text, "f.toml").expect("reads"), started, Codec::Opus);
        assert_eq!((own.limits.head, own.epoch, own.audio), (2048, 2, Codec::Opus));
        assert_eq!(own.api_tokens, ["a"]);
        let stun = server::IceServer { url: String::from("stun:a"), username: None, credential: None };
        assert_eq!(own.ice_servers, [stun]);
    }

    #[test]
    fn channels_reach_the_server_with_the_test_signal() {
        let text = "[[channel]]\nname = 'a'\nsources = ['http://a.example/x.ts', 'test:']\n\
                    [[channel]]\nname = 'b'\nsources = ['ovt://b.example/app/stream']";
        let settings = parse(text, "f.toml").expect("reads");
        let own = server(&settings, UNIX_EPOCH, Codec::Aac);
        assert_eq!(own.origins.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(settings.core.channels.iter().map(|channel| channel.sources).collect::<Vec<_>>(), [2, 1]);
        assert!(own.clips.contains_key("test:"));
        assert_ne!(own.instance, server(&settings, UNIX_EPOCH, Codec::Aac).instance, "drawn anew at each start");
    }

    #[test]
    fn providers_and_their_accounts_reach_the_core_and_the_server_in_the_same_order() {
        let text = "channel_defaults.connect_timeout = '1s'\n\
                    [[provider]]\nname = 'list'\nurl = 'http://a.example/get.php?username=u&password=p'\ncooling = '2s'\n\
                    [[provider]]\nname = 'panel'\nurl = 'http://b.example'\n\
                    [[account]]\nprovider = 'panel'\nusername = 'x'\nmax_connections = 2\nexpires = '1970-01-01T00:01:00Z'\n\
                    [[account]]\nprovider = 'panel'\nusername = 'y'\nenabled = false";
        let settings = parse(text, "f.toml").expect("reads");
        let own = core(&settings, UNIX_EPOCH + Duration::from_secs(10)).providers;
        assert_eq!(own.iter().map(|own| own.accounts.len()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((own[0].cooling, own[0].accounts[0].max_connections), (Duration::from_secs(2), 1));
        assert_eq!((own[1].accounts[0].max_connections, own[1].accounts[1].enabled), (2, false));
        assert_eq!(own[1].accounts[0].until, Some(Date::from_micros(50_000_000)));
        assert_eq!(own[1].live.connect_timeout, Duration::from_secs(1));
        let served = server(&settings, UNIX_EPOCH, Codec::Aac).providers;
        let names = |n: usize| -> Vec<Option<&str>> {
            served[n].accounts.iter().map(|own| own.as_ref().map(|own| own.username.as_str())).collect()
        };
        assert_eq!((names(0), names(1)), (vec![Some("u")], vec![Some("x"), Some("y")]));
        assert_eq!(served[0].reach, Reach::Public);
        let at_home = parse("[[provider]]\nname = 'list'\nurl = 'http://192.168.1.2/tv.m3u'", "f.toml").expect("reads");
        assert_eq!(server(&at_home, UNIX_EPOCH, Codec::Aac).providers[0].reach, Reach::Network, "it is there itself");
    }

    #[test]
    fn a_user_whose_status_says_so_may_not_play() {
        for (status, may) in
            [("active", true), ("trial", true), ("expired", false), ("banned", false), ("disabled", false)]
        {
            let text = format!("user = [{{ name = 'a', password = 'x', status = '{status}' }}]");
            assert_eq!(core(&parse(&text, "f.toml").expect("reads"), UNIX_EPOCH).users[0].enabled, may, "{status}");
        }
    }

    #[test]
    fn the_test_signal_is_small_and_begins_each_second_anew() {
        assert!(TEST_SIGNAL.len() <= 350_000 && TEST_SIGNAL.len().is_multiple_of(188));
        let mut scanner = holdfast_io::ts::Scanner::default();
        let mut segments = std::collections::VecDeque::new();
        scanner.read(TEST_SIGNAL, &mut segments).expect("MPEG-TS");
        let starts: Vec<u64> = segments.iter().filter_map(|segment| segment.random_access).collect();
        assert_eq!(starts.len(), 8);
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 90_000), "{starts:?}");
    }

    /// What the first viewer of the embedded default gets in `seconds`, without its head.
    fn watched(seconds: u64) -> Vec<u8> {
        let settings = Settings::default();
        let own = server(&settings, UNIX_EPOCH, Codec::Aac);
        let mut server = server::Server::new(settings.core, own, Box::new(entropy));
        let (mut now, mut stream) = (Time::ZERO, Vec::new());
        let viewer = server.accepted(now, "127.0.0.1:50000".parse().expect("an address")).expect("room");
        server.received(now, viewer, b"GET /live/test.ts HTTP/1.1\r\nHost: h\r\n\r\n");
        while now < Time::from_micros(seconds * 1_000_000) {
            while let Some(action) = server.poll() {
                if let server::Action::Write(id) = action {
                    let taken = server.transmit(now, id, &mut |pieces| {
                        pieces.iter().for_each(|piece| stream.extend_from_slice(piece));
                        Ok(pieces.iter().map(|piece| piece.len()).sum())
                    });
                    taken.expect("the socket takes everything");
                }
            }
            now = server.deadline().expect("a file has more to give").max(now);
            server.tick(now);
        }
        let head = stream.windows(4).position(|end| end == b"\r\n\r\n").expect("an answer") + 4;
        assert!(stream.starts_with(b"HTTP/1.1 200 "));
        stream.split_off(head)
    }

    /// Presentation times of PES packets, by PID.
    fn times(stream: &[u8]) -> BTreeMap<u16, Vec<u64>> {
        let mut times: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        for packet in stream.as_chunks::<188>().0 {
            let payload = 4 + if packet[3] & 0x20 != 0 { 1 + usize::from(packet[4]) } else { 0 };
            let Some([0, 0, 1, .., flags, _, a, b, c, d, e]) = packet.get(payload..payload + 14) else { continue };
            if packet[1] & 0x40 != 0 && flags & 0x80 != 0 {
                let [a, b, c, d, e] = [a, b, c, d, e].map(|byte| u64::from(*byte));
                let time = (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1;
                times.entry(u16::from_be_bytes([packet[1] & 0x1f, packet[2]])).or_default().push(time);
            }
        }
        times
    }

    #[test]
    fn the_default_channel_plays_at_once_and_round_after_round_without_a_seam() {
        let times = times(&watched(20));
        assert_eq!(times.len(), 2, "a picture and a sound");
        for (pid, times) in times {
            let step = if pid == 0x100 { 3_600 } else { 1_920 };
            assert!(times.len() as u64 > 19 * 90_000 / step, "{} on PID {pid}", times.len());
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] == step), "PID {pid}: {times:?}");
        }
    }

    #[test]
    fn entropy_does_not_repeat() {
        assert_ne!(entropy(), entropy());
    }
}
