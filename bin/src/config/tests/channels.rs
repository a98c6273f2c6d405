//! Channels: their keys, their sources, their defaults.

use std::fs;

use super::*;

/// A channel named `news` of these sources, which begins on the first line.
fn channel(sources: &[&str]) -> String {
    let sources: Vec<String> = sources.iter().map(|source| format!("'{source}'")).collect();
    format!("[[channel]]\nname = 'news'\nsources = [{}]\n", sources.join(", "))
}

/// What is wrong with one source.
fn source_fault(source: &str) -> String {
    let faults = faults(&channel(&[source]));
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].clone()
}

#[test]
fn every_key_of_a_channel_is_read() {
    let text = channel(&["http://a.example/x.ts", "whip:live"])
        + "on_demand = false\nstart_timeout = '1s'\nconnect_timeout = '2s'\nno_input_timeout = '4s'\n\
           retry_backoff_max = '5s'\nretries = 6\nstable_after = '7s'\nfailback = false\nfailback_interval = '8s'\n\
           idle_timeout = '9s'\nend_grace = '10s'\n";
    let settings = parse(&text, "f.toml").expect("reads");
    let seconds = Duration::from_secs;
    assert_eq!(
        settings.core.channels,
        [Channel {
            name: String::from("news"),
            sources: 2,
            on_demand: false,
            start_timeout: seconds(1),
            connect_timeout: seconds(2),
            no_input_timeout: seconds(4),
            retry_backoff_max: seconds(5),
            retries: Some(6),
            stable_after: seconds(7),
            failback: false,
            failback_interval: seconds(8),
            idle_timeout: seconds(9),
            end_grace: seconds(10),
        }]
    );
    let slot = Origin::Slot { endpoint: String::from("live"), slot: 0 };
    assert_eq!(settings.origins, [vec![Origin::parse("http://a.example/x.ts").expect("a URL"), slot]]);
    assert_eq!(parse(&effective(&settings), "f.toml").expect("reads"), settings);
}

#[test]
fn channels_take_what_they_do_not_say_from_the_defaults_wherever_those_stand() {
    let own = channel(&["test:"]) + "idle_timeout = '1s'\n";
    let defaults = "[channel_defaults]\nidle_timeout = '2s'\nretries = 3\nfailback = false\n";
    for text in [own.clone() + defaults, defaults.to_owned() + &own] {
        let settings = parse(&text, "f.toml").expect("reads");
        let [channel] = &settings.core.channels[..] else { panic!("one channel") };
        assert_eq!((channel.idle_timeout, channel.retries), (Duration::from_secs(1), Some(3)));
        assert!(!channel.failback && channel.on_demand);
        assert_eq!((channel.name.as_str(), channel.sources), ("news", 1));
    }
    let embedded = parse(defaults, "f.toml").expect("reads");
    assert_eq!(embedded.core.channels[0].idle_timeout, Duration::from_secs(2), "the default channel, too");
    let settings = with(&[("HOLDFAST_CHANNEL_DEFAULTS_IDLE_TIMEOUT", "3s")]).expect("reads");
    assert_eq!(settings.core.channels[0].idle_timeout, Duration::from_secs(3));
}

#[test]
fn the_environment_may_name_channels_and_their_sources() {
    let settings = with(&[
        ("HOLDFAST_CHANNEL_0_SOURCES", "http://a.example/x.ts, test:"),
        ("HOLDFAST_CHANNEL_1_SOURCES", "whip:live/1"),
        ("HOLDFAST_CHANNEL_1_NAME", "stage"),
        ("HOLDFAST_CHANNEL_1_ON_DEMAND", "false"),
        ("HOLDFAST_CHANNEL_1_RETRIES", "0"),
        ("HOLDFAST_CHANNEL_DEFAULTS_RETRIES", "forever"),
    ])
    .expect("reads");
    let channels: Vec<_> =
        settings.core.channels.iter().map(|own| (own.name.as_str(), own.sources, own.retries)).collect();
    assert_eq!(channels, [("test", 2, None), ("stage", 1, Some(0))]);
    assert!(!settings.core.channels[1].on_demand);
    let wrong = |name, value| with(&[(name, value)]).expect_err("refused").to_string();
    assert!(wrong("HOLDFAST_CHANNEL_0_ON_DEMAND", "yes").ends_with("write true or false"));
    assert!(wrong("HOLDFAST_CHANNEL_0_RETRIES", "never").contains("is not a number"));
    assert_eq!(
        wrong("HOLDFAST_CHANNEL_0_SOURCES", "test:,whip:nobody"),
        "HOLDFAST_CHANNEL_0_SOURCES: key `channel[0].sources`: names an endpoint that is not there; endpoints of this \
         configuration: live"
    );
}

#[test]
fn what_is_written_takes_the_place_of_the_test_channel() {
    let names = |text: &str| -> Vec<String> {
        parse(text, "f.toml").expect("reads").core.channels.into_iter().map(|channel| channel.name).collect()
    };
    assert_eq!(names(&channel(&["test:"])), ["news"]);
    assert!(names("channel = []").is_empty());
    assert_eq!(names("[[endpoint]]\nname = 'stage'"), ["test"]);
    assert!(names("[[endpoint]]\nname = 'test'").is_empty(), "an endpoint may have its name");
}

#[test]
fn a_name_is_an_endpoints_or_a_channels() {
    let of_endpoint = faults(&channel(&["test:"]).replace("news", "live"));
    assert_eq!(
        of_endpoint,
        [
            "f.toml:2: key `channel[0].name`: \"live\" is the name of `endpoint[0]` already; give each channel and endpoint a \
             `name` of its own"
        ]
    );
    let twice = faults(&(channel(&["test:"]) + &channel(&["test:"])));
    assert!(twice[0].starts_with("f.toml:5: key `channel[1].name`: \"news\" is the name of `channel[0]`"), "{twice:?}");
    assert!(faults(&channel(&["test:"]).replace("news", "a/b"))[0].contains("cannot be a part of a URL's path"));
}

#[test]
fn a_channel_has_1_to_32_sources() {
    assert_eq!(
        faults("[[channel]]\nname = 'news'"),
        [
            "f.toml:1: key `channel[0]`: has no sources; write `sources`, such as sources = [\"http://origin.example/live.ts\"]"
        ]
    );
    assert!(faults(&channel(&[]))[0].contains("key `channel[0].sources`: has 0 elements"));
    let many: Vec<String> = (0..32).map(|n| format!("http://a.example/{n}.ts")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    parse(&channel(&many), "f.toml").expect("the most");
    assert!(faults(&channel(&["test:"; 33]))[0].contains("write a list of 1 to 32"));
}

#[test]
fn a_source_that_cannot_be_used_is_named_by_its_place_and_without_its_secrets() {
    let text =
        "[[channel]]\nname = 'news'\nsources = [\n  'test:',\n  'ftp://user:hunter2@a.example/x?key=hunter2',\n]";
    let wrong = faults(text);
    assert!(wrong[0].starts_with("f.toml:5: key `channel[0].sources[1]`: begins with \"ftp:\""), "{wrong:?}");
    assert!(wrong[0].ends_with("write the URL of a source, such as \"http://origin.example/live.ts\""), "{wrong:?}");
    assert!(!wrong[0].contains("hunter2"));
    assert!(source_fault(&format!("http://a.example/{}", "hunter2".repeat(300))).contains("a URL has at most 2048"));
    assert!(faults("[[channel]]\nsources = [1]")[0].contains("text is wanted"));
}

#[test]
fn sources_are_shown_without_their_secrets() {
    let sources = [
        "http://user:hunter2@a.example/x.ts?key=hunter2",
        "rtsps://user:hunter2@a.example/hunter2/x",
        "srt://a.example:7000?passphrase=hunter2hunter2",
        "ovt://a.example/app/stream?generation=0.18",
        "file:///srv/a%20b%3F.ts",
        "whip:live/1",
    ];
    let text = effective(&parse(&channel(&sources), "f.toml").expect("reads"));
    let shown = text.lines().find(|line| line.starts_with("sources = ")).expect("sources");
    assert_eq!(
        shown,
        "sources = [\"http://***@a.example/x.ts?***\", \"rtsps://***@a.example/***/x\", \"srt://a.example:7000?***\", \
         \"ovt://a.example/***/stream?generation=0.18\", \"file:///srv/a%20b%3F.ts\", \"whip:live/1\"]"
    );
    let plain = parse(&channel(&sources[4..]), "f.toml").expect("reads");
    assert_eq!(parse(&effective(&plain), "f.toml").expect("reads"), plain, "what holds no secret reads as the same");
}

#[test]
fn a_slot_that_is_a_source_exists() {
    let text = |source: &str| channel(&[source]) + "[[endpoint]]\nname = 'stage'\nslots = 2\n";
    parse(&text("whip:stage/2"), "f.toml").expect("the last slot");
    assert_eq!(
        faults(&text("whip:stage/3")),
        ["f.toml:3: key `channel[0].sources[0]`: names slot 3 of an endpoint that has 2; slots are numbered from 1"]
    );
    assert!(
        source_fault("whip:stage")
            .contains("names an endpoint that is not there; endpoints of this configuration: live")
    );
}

#[test]
fn a_channel_has_each_source_once() {
    let twice = faults(&channel(&["http://a.example/x.ts", "test:", "http://a.example:80/x.ts"]));
    let told = "f.toml:3: key `channel[0].sources[2]`: is the same as `sources[0]`; write each source once";
    assert!(twice.len() == 1 && twice[0].starts_with(told), "{twice:?}");
    parse(&channel(&["http://a.example/x.ts", "http://a.example/x.ts?backup"]), "f.toml").expect("two sources");
}

#[test]
fn a_channel_that_is_its_own_source_is_refused_as_far_as_it_can_be_seen() {
    let own = |listen: &str, source: &str| {
        let text = format!("http.listen = ['{listen}']\n{}", channel(&[source]));
        parse(&text, "f.toml").err().map(|faults| faults.to_string())
    };
    for (listen, source) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/live/news.ts"),
        ("127.0.0.1:8080", "http://localhost:8080/live/news.ts?x=1"),
        ("0.0.0.0:80", "http://127.0.0.1/live/news.ts"),
        ("[::]:8080", "http://[::1]:8080/live/news.ts"),
        ("192.0.2.7:8080", "http://192.0.2.7:8080/live/news.ts"),
    ] {
        let wrong = own(listen, source).expect("refused");
        assert!(
            wrong.starts_with("f.toml:4: key `channel[0].sources[0]`: is this channel itself"),
            "{source}: {wrong}"
        );
    }
    let ovt = |source: &str| parse(&format!("ovt.listen = ['0.0.0.0:9000']\n{}", channel(&[source])), "f.toml");
    assert!(
        ovt("ovt://127.0.0.1/live/news").is_err_and(|faults| faults.to_string().contains("is this channel itself"))
    );
    ovt("ovt://127.0.0.1/live/other").expect("another one");
    ovt("ovt://127.0.0.1:9001/live/news").expect("elsewhere");
    for (listen, source) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/live/other.ts"),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/live/news.ts"),
        ("127.0.0.1:8080", "https://127.0.0.1:8080/live/news.ts"),
        ("192.0.2.7:8080", "http://127.0.0.1:8080/live/news.ts"),
        ("0.0.0.0:8080", "http://192.0.2.7:8080/live/news.ts"),
    ] {
        assert_eq!(own(listen, source), None, "{source} at {listen}");
    }
}

#[test]
fn pauses_are_not_shorter_than_what_they_begin_with() {
    let written = faults(&(channel(&["test:"]) + "retry_backoff_max = '1s'\n"));
    assert_eq!(
        written,
        [
            "f.toml:4: key `channel[0].retry_backoff_max`: 1s is shorter than `no_input_timeout`, 3s, which pauses begin with; \
             write `retry_backoff_max = \"3s\"` or more, or a shorter `no_input_timeout`"
        ]
    );
    let longer = faults(&(channel(&["test:"]) + "no_input_timeout = '31s'\n"));
    assert!(longer[0].starts_with("f.toml:4: key `channel[0].no_input_timeout`: 31s is longer than"), "{longer:?}");
    let defaults = faults(&format!("[channel_defaults]\nno_input_timeout = '31s'\n{}", channel(&["test:"])));
    assert_eq!(defaults.len(), 1, "said once: {defaults:?}");
    assert!(defaults[0].starts_with("f.toml:2: key `channel_defaults.no_input_timeout`"), "{defaults:?}");
    parse(&(channel(&["test:"]) + "retry_backoff_max = '3s'\n"), "f.toml").expect("a fixed cadence");
    let short = faults(&(channel(&["test:"]) + "no_input_timeout = '99ms'\n"));
    assert!(short[0].contains("99ms is too short; write 100ms to"), "{short:?}");
}

#[test]
fn files_are_read_when_the_program_starts() {
    let folder = std::env::temp_dir().join(format!("holdfast-clips-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (good, bad, config) = (folder.join("good.ts"), folder.join("bad.ts"), folder.join("f.toml"));
    fs::write(&good, include_bytes!("../../run/test-signal/signal.ts")).expect("written");
    fs::write(&bad, b"no MPEG-TS").expect("written");
    let load_with = |paths: &[&Path]| {
        let urls: Vec<String> = paths.iter().map(|path| format!("file://{}", path.display())).collect();
        fs::write(&config, channel(&urls.iter().map(String::as_str).collect::<Vec<_>>())).expect("written");
        load(Some(&config), [])
    };
    let url = format!("file://{}", good.display());
    let one = channel(&[&url]);
    fs::write(&config, one.clone() + &one.replace("news", "more")).expect("written");
    let settings = load(Some(&config), []).expect("reads");
    assert_eq!(settings.clips.keys().collect::<Vec<_>>(), [&url], "once for both channels");
    let refused = |path: &Path| load_with(&[&good, path]).expect_err("refused").to_string();
    let key = "f.toml:3: key `channel[0].sources[1]`: ";
    let wrong = refused(&bad);
    assert!(wrong.contains(key) && wrong.contains("bad.ts\" is no MPEG-TS") && wrong.contains("ffmpeg"), "{wrong}");
    assert!(refused(&folder.join("none.ts")).contains("none.ts\" cannot be read: "));
    assert!(refused(&folder).contains("cannot be read: it is not a file"));
    let shown = |path: &Path| {
        fs::write(&config, format!("[playback]\nuser_limit_clip = '{}'\n", path.display())).expect("written");
        load(Some(&config), [])
    };
    assert!(shown(&good).expect("reads").clips.contains_key(&url));
    let wrong = shown(&bad).expect_err("refused").to_string();
    assert!(wrong.contains("f.toml:2: key `playback.user_limit_clip`: ") && wrong.contains("is no MPEG-TS"), "{wrong}");
    let large = folder.join("large.ts");
    // A hole: it takes no room on the disk.
    fs::File::create(&large).and_then(|file| file.set_len((256 << 20) + 1)).expect("a hole");
    assert!(refused(&large).contains("is larger than 256 MiB"));
    fs::remove_dir_all(&folder).expect("removed");
}
