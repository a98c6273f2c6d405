use std::time::Duration;

use std::collections::BTreeSet;

use holdfast_core::config::Takeover;
use proptest::prelude::*;

use super::keys::{KEYS, SECTIONS};
use super::reader::variable_of;
use super::*;

mod channels;
mod libraries;
mod providers;

const SAMPLE: &str = include_str!("../../holdfast.toml");

fn faults(text: &str) -> Vec<String> {
    parse(text, "f.toml").expect_err("refused").to_string().lines().map(str::to_owned).collect()
}

fn with(variables: &[(&str, &str)]) -> Result<Settings, Faults> {
    load(None, variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
}

/// The sample as it is when all its defaults are written out.
fn uncommented(sample: &str) -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c == '[' || c.is_ascii_lowercase()) => rest.to_owned(),
        _ => line.to_owned(),
    };
    sample.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_is_the_embedded_default() {
    let settings = parse("", "f.toml").expect("reads");
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.core.endpoints.len(), 1);
    assert_eq!(settings.core.endpoints[0].name, "live");
    assert_eq!((settings.core.channels[0].name.as_str(), settings.core.channels[0].sources), ("test", 1));
    assert_eq!(settings.origins, [[Origin::Test]]);
    assert!(settings.http.is_loopback());
    assert!(settings.warnings().is_empty());
}

#[test]
fn the_sample_is_what_the_program_prints() {
    assert_eq!(
        SAMPLE,
        sample(),
        "bin/holdfast.toml is stale: write it anew with `holdfast sample > bin/holdfast.toml`"
    );
}

#[test]
fn the_sample_is_all_comment_and_its_defaults_are_the_defaults() {
    assert!(SAMPLE.lines().all(|line| line.is_empty() || line.starts_with('#')));
    let written = uncommented(SAMPLE);
    assert_eq!(parse(&written, "f.toml").expect("reads"), Settings::default());
    // A default that is not really written out would read as the default as well.
    let examples = ["ice.servers[]", "user[]", "provider[]", "account[]", "library[]"];
    let is_example = |path: &str| examples.iter().any(|list| path.starts_with(list));
    for key in KEYS.iter().filter(|key| !is_example(key.path)) {
        let (section, name) = key.path.rsplit_once('.').expect("a section");
        let has_name = |other: &&super::keys::Key| other.path == format!("channel_defaults.{name}");
        let section = if section == "channel[]" && KEYS.iter().any(|other| has_name(&other)) {
            "channel_defaults"
        } else {
            section
        };
        let heading = match section.strip_suffix("[]") {
            Some(list) => format!("[[{list}]]"),
            None => format!("[{section}]"),
        };
        let mut lines = written.lines().skip_while(|line| *line != heading).take_while(|line| !line.is_empty());
        assert!(lines.any(|line| line.starts_with(&format!("{name} = "))), "{}", key.path);
    }
}

#[test]
fn the_examples_in_the_sample_read() {
    let example = |list: &str| -> String {
        let lines =
            SAMPLE.lines().skip_while(|line| *line != format!("# [[{list}]]")).take_while(|line| !line.is_empty());
        lines
            .filter(|line| line.starts_with("# [") || line.contains(" = "))
            .map(|line| line[2..].to_owned() + "\n")
            .collect()
    };
    let text: String = ["ice.servers", "user", "provider", "account", "library"].map(example).concat();
    let settings = parse(&text, "f.toml").expect("reads");
    assert_eq!((settings.ice.servers.len(), settings.ice.servers[0].username.as_str()), (1, "edge"));
    assert_eq!((settings.core.users.len(), settings.core.users[0].name.as_str()), (1, "anna"));
    assert_eq!((settings.providers[0].name.as_str(), settings.accounts[0].provider.as_str()), ("tv", "tv"));
    assert_eq!(settings.libraries[0].path.to_str(), Some("/srv/films"));
}

#[test]
fn users_have_a_name_of_their_own_and_a_password() {
    let faults = |text: &str| parse(text, "f.toml").expect_err("refused").to_string();
    let no_name = faults("[[user]]\npassword = 'x'");
    assert!(no_name.contains("has no name"), "{no_name}");
    let odd = faults("[[user]]\nname = 'anna x'\npassword = 'x'");
    assert!(odd.contains("anna x") && !odd.contains("has no name"), "it has one: {odd}");
    let no_password = faults("[[user]]\nname = 'anna'");
    assert!(no_password.contains("\"anna\" has no password"), "{no_password}");
    let twice = faults("user = [{ name = 'a', password = 'x' }, { name = 'a', password = 'y' }]");
    assert!(twice.contains("is the name of `user[0]` already") && !twice.contains('x'), "{twice}");
    let settings = parse("user = [{ name = 'a', password = 'x', expires = '2027-01-31' }]", "f.toml").expect("reads");
    assert_eq!(settings.logins[0].expires, Some(1_801_353_600));
    assert!(!super::effective(&settings).contains("'x'"));
}

#[test]
fn strategies_that_are_never_tried_are_refused() {
    let faults =
        |list: &str| parse(&format!("playback.strategies = [{list}]"), "f.toml").map_err(|faults| faults.to_string());
    for (list, word) in [
        ("'grace_hold', 'grace_instant'", "more than one grace"),
        ("'evict_oldest', 'evict_same_ip_oldest'", "stands behind"),
        ("'deny', 'grace_hold'", "never tried"),
        ("'evict_everybody'", "is not known here"),
    ] {
        let fault = faults(list).expect_err(list);
        assert!(fault.contains(word), "{fault}");
    }
    for list in ["", "'evict_same_ip_latest', 'evict_oldest', 'grace_hold', 'deny'", "'grace_instant', 'evict_oldest'"]
    {
        assert!(faults(list).is_ok(), "{list}");
    }
}

#[test]
fn every_key_is_in_one_section_and_has_one_variable() {
    for key in KEYS {
        let parent = key.path.rsplit_once('.').expect("a section").0;
        assert_eq!(SECTIONS.iter().filter(|section| section.path == parent).count(), 1, "{}", key.path);
    }
    let variables: BTreeSet<String> = KEYS.iter().map(|key| variable_of(key, "0")).collect();
    assert_eq!(variables.len(), KEYS.len());
}

#[test]
fn what_is_effective_reads_as_the_same() {
    let text = "http.listen = ['[::1]:1', '0.0.0.0:2']\n\
                [http.limits]\nhead = '17 KiB'\nidle_timeout = '1m30s'\n\
                [ice]\nports = '2000-3000'\nservers = [{url = 'stun:a'}]\n\
                [[endpoint]]\nname = 'a'\nslots = 3\ntakeover = 'refuse'\n\
                [[endpoint]]\nname = 'b'\nmedia = 'video'\nmax_video_bitrate = '800k'";
    let settings = parse(text, "f.toml").expect("reads");
    assert_eq!(settings.core.endpoints[0].takeover, Takeover::Refuse);
    assert_eq!(settings.core.endpoints[1].max_video_bitrate, 800_000);
    assert_eq!(parse(&effective(&settings), "f.toml").expect("reads"), settings);
}

#[test]
fn secrets_are_not_shown() {
    let text = "api.tokens = ['hunter2']\nice.servers = [{url = 'turn:a', username = 'u', credential = 'hunter2'}]\n\
                [[endpoint]]\ntokens = ['hunter2']";
    let settings = parse(text, "f.toml").expect("reads");
    assert_eq!(settings.core.endpoints[0].tokens, ["hunter2"]);
    assert!(!effective(&settings).contains("hunter2"));
    assert!(!format!("{:?}{:?}", settings.api, settings.ice).contains("hunter2"));
    assert!(!faults("api.tokens = ['hunter2 x']\n[[endpoint]]\ntokens = ['hunter2 x']").join("").contains("hunter2"));
}

#[test]
fn every_fault_is_said_with_its_line_and_key() {
    let text = "[http]\nlisten = [\n  '127.0.0.1:1',\n  'localhost:2',\n]\nlisten_ = 1\n\
                [colour]\n\
                [[endpoint]]\nname = 'a'\ndeadafter = '2s'\n\
                [[endpoint]]\nname = 'b'\ndead_after = 2\npoll = '5ms'\n";
    let right = r#"write numbers with h, m, s, ms or us, such as "2s", "100ms" or "1m30s""#;
    assert_eq!(
        faults(text),
        [
            r#"f.toml:4: key `http.listen[1]`: "localhost:2" is not an IP address with a port; write "ADDRESS:PORT", such as "127.0.0.1:8080" or "[::]:8080""#.to_owned(),
            "f.toml:6: key `http.listen_`: there is no such key; did you mean `listen`?".to_owned(),
            "f.toml:7: key `colour`: there is no such key; known here: account, api, channel, channel_defaults, endpoint, http, ice, library, live, log, media, origins, ovt, playback, provider, recorder, user".to_owned(),
            "f.toml:10: key `endpoint[0].deadafter`: there is no such key; did you mean `dead_after`?".to_owned(),
            format!("f.toml:13: key `endpoint[1].dead_after`: is of type integer where text is wanted; {right}"),
            "f.toml:14: key `endpoint[1].poll`: 5ms is too short; write 10ms to 10s".to_owned(),
        ]
    );
}

#[test]
fn a_key_in_the_wrong_section_is_sent_to_its_own() {
    assert_eq!(faults("slots = 2"), ["f.toml:1: key `slots`: there is no such key; did you mean `endpoint[].slots`?"]);
}

#[test]
fn what_is_not_toml_is_said_with_its_line() {
    let faults = faults("[http]\nlisten = [\n\n[log]\nlevel =\n");
    assert!(faults.iter().all(|fault| fault.starts_with("f.toml:") && fault.contains("is not TOML")), "{faults:?}");
    assert!(self::faults("\n\nx = = 1")[0].starts_with("f.toml:3: is not TOML: "));
    assert!(self::faults("a = 1\na = 2")[0].starts_with("f.toml:2: is not TOML: "));
}

#[test]
fn what_stands_twice_is_said_with_its_key_and_both_lines() {
    for (text, said) in [
        (
            "[playback]\ngrace = '1s'\n\n[log]\n\n[playback]  # again\ngrace = '2s'",
            (6, "`[playback]` stands in line 1 already"),
        ),
        ("[log]\nlevel = 'info'\n[playback]\ngrace = '1s'\ngrace = '2s'", (5, "`grace` stands in line 4 already")),
    ] {
        let fault = faults(text).remove(0);
        assert!(fault.starts_with(&format!("f.toml:{}: is not TOML: {}", said.0, said.1)), "{fault}");
    }
}

#[test]
fn tables_and_values_are_not_mixed_up() {
    assert!(faults("http = 1")[0].contains("a table is wanted"));
    assert!(faults("endpoint = 1")[0].contains("a list of tables is wanted"));
    assert!(faults("endpoint = [1]")[0].contains("key `endpoint[0]`: is of type integer where a table is wanted"));
    assert!(faults("[endpoint]\nname = 'a'")[0].contains("write [[endpoint]]"));
    assert!(faults("log.level = {}")[0].contains("text is wanted"));
    assert!(faults("'http.listen' = []")[0].contains("there is no such key"));
    assert!(faults("'endpoint[]' = []")[0].contains("there is no such key"));
    assert!(faults("http.listen = []")[0].contains("has 0 elements"));
}

#[test]
fn a_wait_shorter_than_death_takes_is_refused_where_it_was_written() {
    let wrong = "is shorter than `dead_after` + `poll`";
    let long = faults("[[endpoint]]\n\ndead_after = '5s'");
    assert_eq!(
        long,
        [
            "f.toml:3: key `endpoint[0].dead_after`: `dead_after` + `poll` is 5s100ms, longer than `takeover_wait`, which is 3s \
          by default; write `takeover_wait = \"5s100ms\"` or more, or less of the others"
        ]
    );
    let seldom = faults("[[endpoint]]\npoll = '2s'");
    assert!(seldom[0].starts_with("f.toml:2: key `endpoint[0].poll`: `dead_after` + `poll` is 4s, "), "{seldom:?}");
    let short = faults("[[endpoint]]\ndead_after = '5s'\ntakeover_wait = '5099ms'");
    let wrong = format!("f.toml:3: key `endpoint[0].takeover_wait`: 5s99ms {wrong}, 5s100ms; ");
    assert!(short[0].starts_with(&wrong), "{short:?}");
    assert!(short[0].ends_with("write `takeover_wait = \"5s100ms\"` or more, or less of the others"), "{short:?}");
    parse("[[endpoint]]\ndead_after = '5s'\ntakeover_wait = '5100ms'", "f.toml").expect("exactly enough");
    // The wait is not blamed for a death that could not be read.
    assert_eq!(faults("[[endpoint]]\ndead_after = 'x'\ntakeover_wait = '1s'").len(), 1);
}

#[test]
fn names_are_unique_also_where_they_are_left_out() {
    let same = faults("[[endpoint]]\nname = 'a'\n[[endpoint]]\nname = 'b'\n[[endpoint]]\nname = 'a'");
    assert_eq!(
        same,
        [
            "f.toml:6: key `endpoint[2].name`: \"a\" is the name of `endpoint[0]` already; give each endpoint a `name` of its own"
        ]
    );
    assert!(faults("[[endpoint]]\n[[endpoint]]")[0].starts_with("f.toml:2: key `endpoint[1]`: \"live\" is the name"));
}

#[test]
fn sums_are_bounded() {
    let many: String = (0..5).map(|n| format!("[[endpoint]]\nname = 'e{n}'\nslots = 1000\n")).collect();
    assert!(faults(&many)[0].contains("endpoints and channels together have 5001 slots"));
    let large = faults("live.buffer = '1 GiB'\n[[endpoint]]\nslots = 64");
    assert!(large[0].starts_with("f.toml:1: key `live.buffer`: 65 slots and channels"), "{large:?}");
    parse("live.buffer = '1 GiB'\n[[endpoint]]\nslots = 63", "f.toml").expect("exactly the most");
    parse("live.buffer = '1 GiB'\nchannel = []\n[[endpoint]]\nslots = 64", "f.toml").expect("exactly the most");
    let rows: String = (0..1001).map(|n| format!("[[endpoint]]\nname = 'e{n}'\n")).collect();
    assert!(faults(&rows)[0].contains("there may be at most 1000"));
    assert!(faults(&"#".repeat(LARGEST_FILE + 1))[0].contains("at most 1 MiB"));
}

#[test]
fn listeners_certificates_and_ice_servers_are_whole() {
    assert!(faults("http.listen = ['127.0.0.1:80', '127.0.0.1:80']")[0].contains("is there twice"));
    let shared = faults("http.listen = ['127.0.0.1:80']\novt.listen = ['127.0.0.1:80']");
    assert!(shared[0].starts_with("f.toml:2: key `ovt.listen`: \"127.0.0.1:80\" is there twice"), "{shared:?}");
    parse("http.listen = ['127.0.0.1:0', '127.0.0.1:0']", "f.toml").expect("two ports of the system's choice");
    assert!(faults("http.tls.cert = '/a'")[0].contains("key `http.tls.cert`: stands without `http.tls.key`"));
    assert!(faults("http.tls.key = '/a'")[0].contains("key `http.tls.key`: stands without `http.tls.cert`"));
    assert!(faults("ice.servers = [{username = 'a'}]")[0].contains("has no URL"));
    assert!(
        faults("ice.servers = [{url = 'turn:a', username = 'a'}]")[0].contains("without `username` or `credential`")
    );
}

#[test]
fn certificates_must_be_readable_files() {
    let variables = [("HOLDFAST_HTTP_TLS_CERT", "/nonexistent/cert.pem"), ("HOLDFAST_HTTP_TLS_KEY", "/")];
    let text = with(&variables).expect_err("refused").to_string();
    assert!(
        text.contains("HOLDFAST_HTTP_TLS_CERT: key `http.tls.cert`: \"/nonexistent/cert.pem\" cannot be read: "),
        "{text}"
    );
    assert!(
        text.contains("HOLDFAST_HTTP_TLS_KEY: key `http.tls.key`: \"/\" cannot be read: it is not a file"),
        "{text}"
    );
    let authorities = with(&[("HOLDFAST_ORIGINS_AUTHORITIES", "/")]).expect_err("refused").to_string();
    assert!(authorities.contains("key `origins.authorities`: \"/\" cannot be read: it is not a file"), "{authorities}");
}

/// A certificate and its key in files of the temporary folder.
fn certificate(name: &str) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed([String::from("localhost")]).expect("a certificate can be made");
    [("cert", made.cert.pem()), ("key", made.signing_key.serialize_pem())].map(|(kind, text)| {
        let path = std::env::temp_dir().join(format!("holdfast-{name}-{kind}-{}.pem", std::process::id()));
        std::fs::write(&path, text).expect("the temporary folder can be written");
        path.to_string_lossy().into_owned()
    })
}

#[test]
fn certificates_must_be_usable() {
    let ([cert, key], [_, other]) = (certificate("one"), certificate("other"));
    let junk = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let of = |cert: &str, key: &str| with(&[("HOLDFAST_HTTP_TLS_CERT", cert), ("HOLDFAST_HTTP_TLS_KEY", key)]);
    let settings = of(&cert, &key).expect("they belong together");
    assert_eq!(settings.http.tls, Some(Tls { cert: cert.clone().into(), key: key.clone().into() }));
    for (chain, secret, variable, right) in [
        (junk, key.as_str(), "HOLDFAST_HTTP_TLS_CERT: key `http.tls.cert`: ", "with CERTIFICATE sections"),
        (&cert, junk, "HOLDFAST_HTTP_TLS_KEY: key `http.tls.key`: ", "PRIVATE KEY"),
        (&cert, &other, "HOLDFAST_HTTP_TLS_CERT: key `http.tls.cert`: ", "the private key of the first certificate"),
        (&key, &cert, "HOLDFAST_HTTP_TLS_CERT: key `http.tls.cert`: ", "are swapped"),
    ] {
        let text = of(chain, secret).expect_err("refused").to_string();
        assert!(text.starts_with(variable) && text.contains(right), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
    let authorities = |path: &str| with(&[("HOLDFAST_ORIGINS_AUTHORITIES", path)]);
    authorities(&cert).expect("a certificate is one of an authority");
    let text = authorities(junk).expect_err("refused").to_string();
    assert!(text.starts_with("HOLDFAST_ORIGINS_AUTHORITIES: key `origins.authorities`: "), "{text}");
    for path in [cert, key, other] {
        std::fs::remove_file(path).expect("it is ours");
    }
}

#[test]
fn the_environment_wins() {
    let settings = with(&[
        ("PATH", "/bin"),
        ("HOLDFAST_HTTP_LISTEN", "127.0.0.1:9000,[::1]:9000"),
        ("HOLDFAST_LIVE_IDLE", "5s"),
        ("HOLDFAST_LOG_LEVEL", "debug"),
        ("HOLDFAST_ENDPOINT_0_TOKENS", "one, other"),
        ("HOLDFAST_ENDPOINT_2_NAME", "third"),
        ("HOLDFAST_ENDPOINT_1_SLOTS", "3"),
        ("HOLDFAST_ENDPOINT_1_NAME", "second"),
        ("HOLDFAST_ICE_SERVERS_0_URL", "stun:192.0.2.7"),
    ])
    .expect("reads");
    assert_eq!(settings.http.listen.len(), 2);
    assert_eq!(settings.core.live.idle, Duration::from_secs(5));
    assert_eq!(settings.log.level, Level::Debug);
    assert_eq!(settings.core.endpoints[0].tokens, ["one", "other"]);
    assert_eq!((settings.core.endpoints[1].name.as_str(), settings.core.endpoints[1].slots), ("second", 3));
    assert_eq!(settings.ice.servers[0].url, "stun:192.0.2.7");
}

#[test]
fn a_variable_takes_the_place_of_a_faulty_value_in_the_file() {
    let text = "[log]\nlevel = 'loud'\n";
    let mut reader = Reader::new("f.toml", text).expect("small");
    reader.document();
    reader.environment([("HOLDFAST_LOG_LEVEL".into(), "warn".into())]);
    assert_eq!(reader.finish().expect("reads").log.level, Level::Warn);
}

#[test]
fn variables_are_refused_as_keys_are() {
    let wrong = |name, value| with(&[(name, value)]).expect_err("refused").to_string();
    assert_eq!(
        wrong("HOLDFAST_HTTP_LISTN", "x"),
        "HOLDFAST_HTTP_LISTN: there is no such variable; did you mean HOLDFAST_HTTP_LISTEN?"
    );
    assert!(wrong("HOLDFAST_ENDPOINT_0_TOKEN", "x").ends_with("did you mean HOLDFAST_ENDPOINT_0_TOKENS?"));
    assert!(wrong("HOLDFAST_COLOUR_OF_THE_HOUSE", "x").contains("variables are named after keys"));
    assert_eq!(
        wrong("HOLDFAST_ENDPOINT_2_SLOTS", "1"),
        "HOLDFAST_ENDPOINT_2_SLOTS: key `endpoint[2].slots`: there is no `endpoint[1]` before it; number them from 0 to 1"
    );
    assert_eq!(
        wrong("HOLDFAST_ICE_SERVERS_1_URL", "stun:192.0.2.7"),
        "HOLDFAST_ICE_SERVERS_1_URL: key `ice.servers[1].url`: there is no `ice.servers[0]` before it; number them from 0 to 0"
    );
    assert!(wrong("HOLDFAST_ENDPOINT_01_SLOTS", "1").contains("no such variable"));
    assert!(wrong("HOLDFAST_ENDPOINT_0_SLOTS", "0").contains("write a whole number from 1 to 1000"));
    assert!(
        wrong("HOLDFAST_ENDPOINT_0_DEAD_AFTER", "5s").starts_with(
            "HOLDFAST_ENDPOINT_0_DEAD_AFTER: key `endpoint[0].dead_after`: `dead_after` + `poll` is 5s100ms"
        )
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let text = load(Some(Path::new("/nonexistent/holdfast.toml")), []).expect_err("refused").to_string();
    assert!(text.starts_with("/nonexistent/holdfast.toml: cannot be read: "), "{text}");
}

#[test]
fn media_stays_on_loopback_while_http_does() {
    let addresses = |text| parse(text, "f.toml").expect("reads").ice_addresses();
    let local: IpAddr = Ipv4Addr::LOCALHOST.into();
    assert_eq!(addresses(""), [local]);
    assert_eq!(
        addresses("http.listen = ['127.0.0.1:1', '127.0.0.1:2', '[::1]:1']"),
        [local, "::1".parse().expect("an address")]
    );
    assert!(addresses("http.listen = ['127.0.0.1:1', '0.0.0.0:2']").is_empty());
    assert!(addresses("ice.addresses = ['0.0.0.0']").is_empty());
    assert_eq!(addresses("http.listen = ['0.0.0.0:1']\nice.addresses = ['127.0.0.1']"), [local]);
}

#[test]
fn what_is_open_to_the_network_is_warned_about() {
    let warnings = |text| parse(text, "f.toml").expect("reads").warnings().join("\n");
    assert!(
        warnings("http.listen = ['0.0.0.0:1']")
            .contains("endpoint \"live\" is open to everybody who can reach 0.0.0.0:1")
    );
    assert!(!warnings("http.listen = ['0.0.0.0:1']\n[[endpoint]]\ntokens = ['a']").contains("is open"));
    assert!(warnings("http.listen = ['0.0.0.0:1']").contains("plain HTTP"));
    assert!(warnings("ice.servers = [{url = 'stun:a'}]").contains("ICE server stun:a"));
}

#[test]
fn hls_and_edges_are_configured_in_the_file_and_by_variables() {
    let text = "[live.hls]\nsegment = '4s'\nwindow = 8\nviewer_timeout = '20s'\n[ovt]\npacket_silence = '3s'";
    let settings = parse(text, "f.toml").expect("reads");
    let hls = &settings.core.live.hls;
    assert_eq!((hls.segment, hls.window, hls.target()), (Duration::from_secs(4), 8, 8));
    assert_eq!((hls.timeout(), settings.ovt.packet_silence), (Duration::from_secs(20), Some(Duration::from_secs(3))));
    assert_eq!(parse(&effective(&settings), "f.toml").expect("reads"), settings);
    let settings = with(&[
        ("HOLDFAST_LIVE_HLS_SEGMENT", "1s"),
        ("HOLDFAST_LIVE_HLS_WINDOW", "10"),
        ("HOLDFAST_LIVE_HLS_VIEWER_TIMEOUT", "auto"),
        ("HOLDFAST_OVT_PACKET_SILENCE", "0s"),
    ])
    .expect("reads");
    let hls = settings.core.live.hls;
    assert_eq!((hls.segment, hls.window, hls.viewer_timeout), (Duration::from_secs(1), 10, None));
    assert_eq!(settings.ovt.packet_silence, None);
}

#[test]
fn what_players_of_hls_could_not_use_is_refused_or_warned_of() {
    let right = |least| format!("write \"{least}\" or more, or a shorter `segment`");
    let wrong = |timeout, target| format!("{timeout} is too short for players, which ask every {target}s");
    assert_eq!(
        faults("live.hls.viewer_timeout = '7s'"),
        [format!("f.toml:1: key `live.hls.viewer_timeout`: {}; {}", wrong("7s", 4), right("8s"))]
    );
    assert!(parse("live.hls.viewer_timeout = '8s'", "f.toml").is_ok());
    assert!(faults("live.hls.segment = '499ms'")[0].contains("too short; write 500ms to 30s"));
    assert!(faults("live.hls.window = 0")[0].contains("from 1 to 1000"));
    assert!(faults("live.hls.viewer_timeout = 'soon'")[0].ends_with("or \"auto\""));
    assert!(faults("ovt.packet_silence = '50ms'")[0].ends_with("50ms is too short; write 100ms to 1h; or \"0s\""));
    let warned = |text: &str| parse(text, "f.toml").expect("reads").warnings().join("");
    // 16 MiB are 33.6 seconds of 4 Mbit/s.
    assert_eq!(warned("live.hls.window = 17"), "");
    assert!(warned("live.hls.window = 18").contains("keeps 34s of a stream of 4 Mbit/s"));
    assert!(warned("live.hls.segment = '6s'").contains("should list 36s"));
    assert!(warned("[[endpoint]]\nmax_video_bitrate = '20M'\ntokens = ['a']").contains("keeps 7s of a stream of 20"));
}

#[test]
fn how_many_a_user_may_play_where_nothing_limits_it_is_said() {
    let warned = |text: &str| {
        let text = format!("[[user]]\nname = 'a'\npassword = 'x'\n{text}");
        parse(&text, "f.toml").expect("reads").warnings().join("\n")
    };
    let any = warned("");
    assert!(any.contains("any number") && any.contains("which is 50 for each: \"a\""), "{any}");
    assert!(warned("[playback]\nsessions_per_user = 7").contains("which is 7 for each"));
    assert_eq!(warned("max_connections = 50"), "");
    let beyond = warned("max_connections = 50\nsoft_connections = 1");
    assert!(beyond.contains("more than 50 places") && beyond.contains("raise it for \"a\""), "{beyond}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = parse(&text, "f.toml");
    }

    #[test]
    fn any_value_of_any_key_is_read_or_refused(
        n in 0..KEYS.len(),
        value in prop_oneof![
            any::<i64>().prop_map(|value| value.to_string()),
            any::<bool>().prop_map(|value| value.to_string()),
            "[ -~]{0,20}".prop_map(|text| toml::Value::from(text).to_string()),
            "[0-9]{1,20} ?(h|m|s|ms|us|M|k|MiB|GiB|Gbit/s)?".prop_map(|text| toml::Value::from(text).to_string()),
            Just("[]".to_owned()), Just("[1, 'a', {}]".to_owned()), Just("{}".to_owned()),
        ],
    ) {
        let (section, name) = KEYS[n].path.rsplit_once('.').expect("a section");
        let heading = match section.strip_suffix("[]") {
            Some(list) => format!("[[{list}]]"),
            None => format!("[{section}]"),
        };
        if let Ok(settings) = parse(&format!("{heading}\n{name} = {value}"), "f.toml") {
            // What was accepted is usable as it is: it says itself in words that are accepted.
            if !effective(&settings).contains("***") {
                prop_assert_eq!(parse(&effective(&settings), "f.toml"), Ok(settings));
            }
        }
    }
}

#[test]
fn the_configuration_in_the_readme_reads() {
    let readme = include_str!("../../../README.md");
    let blocks: Vec<&str> = readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let settings = parse(block, "README.md").unwrap_or_else(|faults| panic!("{faults}"));
        assert_ne!(settings, Settings::default());
    }
    let all: Vec<&str> = readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    parse(&all.join("\n"), "README.md").unwrap_or_else(|faults| panic!("together: {faults}"));
}

#[test]
fn listeners_that_collide_are_named_with_their_line() {
    let wrong = faults("\n[http]\nlisten = ['[::]:80', '0.0.0.0:80']");
    assert!(
        wrong[0].starts_with("f.toml:3: key `http.listen`: \"[::]:80\" and \"0.0.0.0:80\" cannot both be"),
        "{wrong:?}"
    );
    assert!(faults("http.listen = ['127.0.0.1:80', '127.0.0.1:80']")[0].contains("is there twice"));
    parse("http.listen = ['[::1]:80', '0.0.0.0:80']", "f.toml").expect("apart");
}
