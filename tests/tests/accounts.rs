//! Accounts of providers with few connections: none is ever used by more than it may be, nobody waits for nothing, and whoever is
//! gone has left nothing behind. What counts is the provider's own count.

use std::time::{Duration, Instant};

use holdfast_tests::household::Household;
use holdfast_tests::http::{Connection, Request};
use holdfast_tests::player::Program;
use holdfast_tests::process::Process;
use holdfast_tests::provider::{Account, Clip, Clips, Fault, Provider, Settings};
use holdfast_tests::{AT_ONCE, eventually, ms, turn};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(40);

fn provider(limits: &[usize]) -> Provider {
    Provider::start(Settings::accounts(limits))
}

fn playing(house: &Household, path: &str) -> Process {
    let mut player = Program::Ffmpeg.play(&house.url(path));
    Program::Ffmpeg.is_seen(&mut player, PATIENCE);
    player
}

/// Reads a little of a live stream.
fn watched(connection: &mut Connection) -> bool {
    !connection.some(10_000, 10 * SECOND).is_empty()
}

/// V2 with a provider: it is the user who has no place, and that is what is said.
#[test]
fn v2_the_users_limit_is_told_before_the_providers() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "[playback]\nstrategies = [\"deny\"]");
    let mut player = playing(&house, &house.live("anna", "News One", "ts"));
    for path in [house.live("anna", "News Two", "ts"), house.film("anna", "Film Tail")] {
        let answer = house.edge.get(&path);
        assert_eq!((answer.status, answer.reason().as_str()), (503, "user-limit"), "{path}");
    }
    let answer = house.edge.get(&house.film("ben", "Film Tail"));
    assert_eq!((answer.status, answer.reason().as_str()), (503, "provider-limit"), "{}", answer.text());
    assert!(answer.field("retry-after").is_some());
    assert!(player.ended().is_none(), "who plays is left alone");
    house.agrees(&provider);
    player.kill();
    house.is_over(&provider, 6 * SECOND);
}

/// V18 and V20 with a provider: one upstream for two users, and for who probes first.
#[test]
fn v18_v20_one_stream_of_the_provider_for_everybody() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    let paths = ["anna", "ben"].map(|user| house.live(user, "News One", "ts"));
    let (mut probe, head) = house.opens("probe", &paths[0], None);
    assert_eq!((head.status, head.field("content-length"), head.field("content-range")), (200, None, None));
    assert!(watched(&mut probe));
    std::thread::sleep(SECOND);
    probe.hang_up();
    let mut players = paths.each_ref().map(|path| playing(&house, path));
    assert_eq!((house.counted("anna"), house.counted("ben")), (1, 1));
    assert_eq!(provider.served("/live/").len(), 1, "{:?}", provider.served("/live/"));
    house.agrees(&provider);
    for player in &mut players {
        player.kill();
    }
    house.is_over(&provider, 6 * SECOND);
}

/// V17 with one slot and one place, between live streams and films; and where more are configured than the panel allows, which refuses
/// what is one too many as it does wrong logins.
#[test]
fn v17_zapping_with_one_connection() {
    let _turn = turn();
    for configured in [1, 3] {
        let provider = Provider::start(Settings { over_limit: 403, ..Settings::accounts(&[1]) });
        let of_panel = provider.configuration("panel");
        let of_panel = of_panel.replace("max_connections = 1", &format!("max_connections = {configured}"));
        let house = Household::open(&of_panel);
        zaps(&house);
        house.is_over(&provider, 6 * SECOND);
        assert_eq!(provider.count(0).refused, 0, "nothing is asked for that is one too many");
    }
}

fn zaps(house: &Household) {
    let paths = [
        house.live("anna", "News One", "ts"),
        house.live("anna", "News Two", "ts"),
        house.film("anna", "Film Tail"),
        house.live("anna", "Archive", "ts"),
    ];
    let mut longest = Duration::ZERO;
    let mut before: Option<Connection> = None;
    for number in 0..20 {
        if number % 2 == 0
            && let Some(before) = before.take()
        {
            before.hang_up();
        }
        let begin = Instant::now();
        let mut next = Connection::open(house.edge.address());
        next.send(&Request::new("GET", &paths[number % 4]).field("User-Agent", "television"));
        if let Some(before) = before.take() {
            std::thread::sleep(SECOND / 5);
            before.hang_up();
        }
        let head = next.head().expect("an answer");
        assert_eq!(head.status, 200, "{number}: {}", house.edge.log());
        assert!(watched(&mut next), "{number}");
        longest = longest.max(begin.elapsed());
        assert!(house.counted("anna") <= 1, "{}", house.user("anna"));
        before = Some(next);
    }
    assert!(longest < 4 * SECOND, "{} ms", ms(longest));
}

#[test]
fn accounts_are_used_side_by_side_and_no_further() {
    let _turn = turn();
    let provider = provider(&[1, 1, 2]);
    let house = Household::of(&provider, "[playback]\ngrace = \"0s\"");
    let names = ["News One", "News Two", "Archive"];
    let mut players: Vec<Process> = names.iter().map(|name| playing(&house, &house.live("zoe", name, "ts"))).collect();
    let (film, head) = house.opens("player", &house.film("zoe", "Film Tail"), None);
    assert_eq!(head.status, 200);
    let answer = house.edge.get(&house.film("zoe", "Film Fast"));
    assert_eq!((answer.status, answer.reason().as_str()), (503, "provider-limit"), "{}", answer.text());
    house.agrees(&provider);
    assert_eq!(provider.counts().iter().map(|count| count.open).collect::<Vec<_>>(), [1, 1, 2]);
    film.hang_up();
    let mut next = playing(&house, &house.film("zoe", "Film Fast"));
    next.kill();
    for player in &mut players {
        player.kill();
    }
    house.is_over(&provider, 6 * SECOND);
}

/// Whoever is stronger has the account, and never beside the weaker one.
#[test]
fn the_stronger_one_has_the_account() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(
        &provider,
        "[[user]]\nname = \"anna\"\npassword = \"anna-secret\"\nmax_connections = 1\npriority = -5",
    );
    for weaker in [house.film("ben", "Film Tail"), house.live("ben", "News One", "ts")] {
        let (mut weak, head) = house.opens("weak", &weaker, None);
        assert_eq!(head.status, 200, "{weaker}");
        assert!(watched(&mut weak));
        let begin = Instant::now();
        let (mut strong, head) = house.opens("strong", &house.film("anna", "Film Fast"), None);
        assert_eq!(head.status, 200, "{weaker}: {}", house.edge.log());
        assert!(begin.elapsed() < AT_ONCE, "{weaker}: {} ms", ms(begin.elapsed()));
        assert!(watched(&mut strong));
        weak.closed_within(5 * SECOND).expect("it gave way");
        assert_eq!(house.counted("ben"), 0);
        let answer = house.edge.get(&weaker);
        assert_eq!(answer.status, 503, "{weaker}: the weaker one does not come back: {}", answer.text());
        drop(strong);
        house.is_over(&provider, 6 * SECOND);
    }
}

/// V8: a connection of a proxy's, which carries one user after the other.
#[test]
fn v8_one_connection_of_two_users() {
    let _turn = turn();
    let provider = provider(&[4]);
    let house = Household::of(&provider, "[http]\nlisten = [\"127.0.0.1:0\"]\ntrusted_proxies = [\"127.0.0.0/8\"]");
    let mut proxy = Connection::open(house.edge.address());
    for (user, address) in [("anna", "192.0.2.1"), ("ben", "192.0.2.2"), ("anna", "192.0.2.1")] {
        let request = Request::new("GET", &house.film(user, "Film Tail")).field("Range", "bytes=0-9999");
        proxy.send(&request.field("X-Forwarded-For", address).field("User-Agent", "player"));
        let answer = proxy.response(false).expect("an answer on the same connection");
        assert_eq!((answer.status, answer.body.len()), (206, 10_000), "{user}");
        house.counts(user, 0, 2 * SECOND);
    }
    let live = Request::new("GET", &house.film("ben", "Film Tail")).field("X-Forwarded-For", "192.0.2.2");
    proxy.send(&live);
    assert_eq!(proxy.head().expect("an answer").status, 200);
    assert_eq!((house.counted("anna"), house.counted("ben")), (0, 1), "who went before is not counted");
    proxy.hang_up();
    house.is_over(&provider, 3 * SECOND);
}

/// V9: a hundred come and go at once.
#[test]
fn v9_a_hundred_joins_and_leaves() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "[playback]\nsessions_per_user = 1000");
    let path = house.live("zoe", "News One", "ts");
    std::thread::scope(|scope| {
        for number in 0..100_u64 {
            let (house, path) = (&house, &path);
            scope.spawn(move || {
                let mut connection = Connection::open(house.edge.address());
                connection.send(&Request::new("GET", path).field("User-Agent", &format!("viewer {number}")));
                std::thread::sleep(Duration::from_millis(number * 37 % 1500));
                connection.hang_up();
            });
        }
    });
    house.is_over(&provider, 8 * SECOND);
    assert!(provider.served("/live/").len() <= 3, "{:?}", provider.served("/live/").len());
}

/// V13: who only wants to know how large something is gives way.
#[test]
fn v13_a_probe_gives_way_to_a_viewer() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    let path = house.film("ben", "Film Matroska");
    provider.fail("103.mkv", Fault::Silent);
    let mut probe = Connection::open(house.edge.address());
    probe.send(&Request::new("HEAD", &path).field("User-Agent", "probe"));
    eventually("the probe is there", 3 * SECOND, || (provider.count(0).open == 1).then_some(()));
    assert_eq!(house.counted("ben"), 0, "whoever looks is not counted");
    let begin = Instant::now();
    let (mut viewer, head) = house.opens("viewer", &house.film("anna", "Film Fast"), None);
    assert_eq!(head.status, 200);
    assert!(watched(&mut viewer) && begin.elapsed() < AT_ONCE, "{} ms", ms(begin.elapsed()));
    let answer = probe.head().expect("it is told");
    assert!(answer.status >= 500, "{answer:?}");
    drop((probe, viewer));
    house.is_over(&provider, 3 * SECOND);
}

/// V14: a silent stream, and the viewer goes elsewhere.
#[test]
fn v14_what_says_nothing_is_left_at_once() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "");
    for (file, silent) in
        [("/1.ts", house.live("anna", "News One", "ts")), ("/101.mp4", house.film("anna", "Film Tail"))]
    {
        for fault in [Fault::Silent, Fault::Stalls] {
            provider.fail(file, fault);
            let mut first = Connection::open(house.edge.address());
            first.send(&Request::new("GET", &silent).field("User-Agent", "television"));
            eventually("it is asked", 3 * SECOND, || (provider.count(0).open == 1).then_some(()));
            first.hang_up();
            let begin = Instant::now();
            let (mut second, head) = house.opens("television", &house.live("anna", "News Two", "ts"), None);
            assert_eq!(head.status, 200, "{file} {fault:?}: {}", house.edge.log());
            assert!(watched(&mut second) && begin.elapsed() < AT_ONCE, "{} ms", ms(begin.elapsed()));
            drop(second);
            provider.mend();
            house.is_over(&provider, 8 * SECOND);
        }
    }
}

/// V15: whatever is broken off whenever, the counts agree.
#[test]
fn v15_two_hundred_random_ends() {
    let _turn = turn();
    let provider = provider(&[2, 1]);
    let house =
        Household::of(&provider, "[playback]\ngrace = \"1s\"\nhls_session_ttl = \"2s\"\ncatchup_session_ttl = \"2s\"");
    let paths = [
        house.film("zoe", "Film Tail"),
        house.film("zoe", "Film Stream"),
        house.film("zoe", "Film Keys"),
        house.live("zoe", "News One", "ts"),
        house.live("zoe", "News Two", "ts"),
        house.live("zoe", "Segments", "m3u8"),
        house.past("zoe", "Archive", "2026-11-30:10-00", "ts"),
    ];
    // A fixed seed, by the constants of Knuth's MMIX.
    let mut state = 4_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..10 {
        let mut standing = Vec::new();
        for _ in 0..20 {
            let path = &paths[random(paths.len() as u64) as usize];
            let mut connection = Connection::open(house.edge.address());
            let agent = format!("player {}", random(4));
            let range = format!("bytes={}-", random(20_000_000));
            connection.send(&Request::new("GET", path).field("User-Agent", &agent).field("Range", &range));
            std::thread::sleep(Duration::from_millis(random(60)));
            standing.push(connection);
            if random(3) > 0 {
                standing.swap_remove(random(standing.len() as u64) as usize).hang_up();
            }
        }
        drop(standing);
        if round % 3 == 2 {
            // A quiet moment.
            house.is_over(&provider, 10 * SECOND);
        }
    }
    house.is_over(&provider, 10 * SECOND);
}

/// V21: whoever asks a full account for something that says nothing has an answer within its grace.
#[test]
fn v21_one_after_the_other_against_a_full_account() {
    let _turn = turn();
    let provider = provider(&[1]);
    let house = Household::of(&provider, "[playback]\ngrace = \"1s\"\nsessions_per_user = 200");
    let mut holder = playing(&house, &house.live("ben", "News Two", "ts"));
    provider.fail("/live/", Fault::Silent);
    let path = house.live("zoe", "News One", "ts");
    for number in 0..32 {
        let begin = Instant::now();
        let request = Request::new("GET", &path).field("User-Agent", &format!("client {number}"));
        let answer = request.send(house.edge.address());
        assert_eq!(answer.status, 503, "{number}: {}", answer.text());
        assert!(begin.elapsed() < AT_ONCE, "{number}: {} ms", ms(begin.elapsed()));
    }
    assert_eq!((house.counted("zoe"), provider.open()), (0, 1));
    assert_eq!(provider.served("/live/").len(), 1, "nobody asked the provider");
    assert!(holder.ended().is_none());
    holder.kill();
    house.is_over(&provider, 6 * SECOND);
}

/// V22: what ends late belongs to what it was.
#[test]
fn v22_an_old_request_ends_after_its_playback_has_moved() {
    let _turn = turn();
    let provider = provider(&[1, 1]);
    let house = Household::of(&provider, "");
    let bytes = Clips::ready().file(Clip::Tail);
    let path = house.film("anna", "Film Tail");
    let (mut first, head) = house.opens("player", &path, Some("bytes=0-"));
    assert_eq!(head.status, 206);
    assert!(watched(&mut first));
    let served = provider.served("/movie/");
    let account = served[0].account.expect("an account");
    provider.fail(&format!("/movie/acc{account}/"), Fault::Status(500));
    let (mut second, head) = house.opens("player", &path, Some("bytes=5000000-"));
    assert_eq!(head.status, 206, "{}", house.edge.log());
    assert!(second.some(10_000, 5 * SECOND) == bytes[5_000_000..5_010_000]);
    first.hang_up();
    std::thread::sleep(SECOND);
    assert!(second.some(3_000_000, 10 * SECOND) == bytes[5_010_000..8_010_000], "the successor goes on");
    assert_eq!(house.counted("anna"), 1);
    house.agrees(&provider);
    assert_eq!(provider.count(1 - account).open, 1);
    let (mut third, head) = house.opens("player", &path, Some("bytes=9000000-"));
    assert_eq!(head.status, 206);
    assert!(third.some(10_000, 5 * SECOND) == bytes[9_000_000..9_010_000]);
    assert_eq!(provider.served("/movie/").last().and_then(|own| own.account), Some(1 - account), "it stays there");
    drop((second, third));
    house.is_over(&provider, 3 * SECOND);
}

/// Some count a connection for a while after it was closed.
#[test]
fn an_account_rests_for_as_long_as_its_provider_counts() {
    let _turn = turn();
    let late = Duration::from_millis(700);
    let provider = Provider::start(Settings { late, ..Settings::accounts(&[1]) });
    let text = provider.configuration("panel");
    let text = text.replacen("[[account]]", "cooling = \"1500ms\"\n[[account]]", 1);
    let house = Household::open(&text);
    for name in ["Film Tail", "Film Fast", "Film Tail"] {
        let (mut connection, head) = house.opens("television", &house.film("anna", name), None);
        assert_eq!(head.status, 200, "{name}: {}", house.edge.log());
        assert!(watched(&mut connection));
        connection.hang_up();
    }
    house.is_over(&provider, 4 * SECOND);
}

/// The provider bears less than its account says: who comes too much is refused, who plays goes on, nothing is left.
#[test]
fn a_provider_that_bears_less_than_it_says() {
    let _turn = turn();
    for over_limit in [403, 456, 503] {
        let mut settings = Settings { over_limit, ..Settings::accounts(&[1]) };
        settings.accounts[0] = Account { says: Some(3), ..Account::of(1) };
        let provider = Provider::start(settings);
        let text = provider.configuration("panel").replace("max_connections = 1", "max_connections = 3");
        let house = Household::open(&text);
        let (mut first, head) = house.opens("first", &house.film("ben", "Film Tail"), None);
        assert_eq!(head.status, 200);
        let answer = house.part("second", &house.film("zoe", "Film Fast"), "bytes=0-99");
        assert!(answer.status >= 400, "{over_limit}: {}", answer.status);
        assert_eq!(house.counted("zoe"), 0);
        assert!(watched(&mut first), "who plays goes on");
        let refused = provider.count(0).refused;
        assert!((1..=2).contains(&refused), "{over_limit}: asked {refused} times");
        drop(first);
        for user in ["ben", "zoe"] {
            house.counts(user, 0, 3 * SECOND);
        }
        eventually("nothing is open", 3 * SECOND, || (provider.open() == 0).then_some(()));
        house.agrees(&provider);
    }
}

/// What one provider does not give another does, and an account that is in the way of nobody is not asked twice.
#[test]
fn another_account_and_another_provider_help() {
    let _turn = turn();
    let mut settings = Settings::accounts(&[1, 1]);
    settings.accounts[0] = Account { status: "Expired", ..Account::of(1) };
    let first = Provider::start(settings);
    let second = provider(&[1]);
    let house = Household::open(&(first.configuration("first") + &second.configuration("second")));
    let bytes = Clips::ready().file(Clip::Tail);
    let path = house.film("anna", "Film Tail");
    // 404, 5xx and what breaks off lead further.
    for fault in [Fault::Status(404), Fault::Status(500), Fault::Status(503)] {
        first.fail("/movie/", fault);
        let answer = house.part("player", &path, "bytes=1000-1999");
        assert_eq!(answer.status, 206, "{fault:?}: {}", answer.text());
        assert!(answer.body == bytes[1000..2000]);
        first.mend();
    }
    assert!(second.served("/movie/").len() >= 3, "{:?}", second.served("/movie/"));
    for provider in [&first, &second] {
        provider.was_kept_within_limits(3 * SECOND);
    }
    drop(first);
    let mut player = playing(&house, &house.live("anna", "News One", "ts"));
    player.kill();
    house.counts("anna", 0, 3 * SECOND);
    second.was_kept_within_limits(6 * SECOND);
}

/// Panels send players elsewhere with a token that is good once: each request begins at the panel.
#[test]
fn a_redirect_takes_no_connection_and_its_token_is_used_once() {
    let _turn = turn();
    let provider = Provider::start(Settings { redirect: true, ..Settings::accounts(&[1]) });
    let house = Household::of(&provider, "[playback]\nhls_session_ttl = \"6s\"\ncatchup_session_ttl = \"6s\"");
    let bytes = Clips::ready().file(Clip::Tail);
    let path = house.film("anna", "Film Tail");
    for from in [0, 20_000_000, 48] {
        let (mut connection, head) = house.opens("player", &path, Some(&format!("bytes={from}-")));
        assert_eq!(head.status, 206, "{}", house.edge.log());
        assert!(connection.some(10_000, 5 * SECOND) == bytes[from..from + 10_000]);
    }
    house.is_over(&provider, 3 * SECOND);
    for path in [
        house.live("anna", "News One", "ts"),
        house.film("anna", "Film Keys"),
        house.past("anna", "Archive", "2026-11-30:10-00", "m3u8"),
    ] {
        let mut player = playing(&house, &path);
        player.kill();
        house.is_over(&provider, 12 * SECOND);
    }
}

/// The provider of a live stream falls silent, or is gone, while somebody watches: another one that has it goes on.
#[test]
fn another_provider_goes_on_with_a_live_stream() {
    let _turn = turn();
    let first = provider(&[1]);
    let second = provider(&[1]);
    let house = Household::open(&(first.configuration("first") + &second.configuration("second")));
    let path = house.live("anna", "News One", "ts");
    let mut player = playing(&house, &path);
    assert_eq!((first.open(), second.open()), (1, 0));
    drop(first);
    eventually("the other one is asked", 15 * SECOND, || (second.open() == 1).then_some(()));
    let seen = || player.lines().iter().filter(|line| line.text.starts_with("frame=")).count();
    let before = seen();
    // Each report of its says how many pictures there were; it reports five times a second.
    eventually("it plays on", 15 * SECOND, || (seen() > before + 15).then_some(()));
    assert!(player.ended().is_none(), "{}", player.log());
    assert_eq!(house.counted("anna"), 1);
    player.kill();
    house.counts("anna", 0, 3 * SECOND);
    second.was_kept_within_limits(6 * SECOND);
}

/// A provider that bears one connection more for a moment: zapping plays at once, and two do not stay.
#[test]
fn an_overlap_is_used_for_a_moment() {
    let _turn = turn();
    let provider = provider(&[2]);
    let text = provider.configuration("panel").replace("max_connections = 2", "max_connections = 1\noverlap = true");
    let house = Household::open(&format!("[playback]\nstrategies = [\"grace_instant\"]\ngrace = \"2s\"\n{text}"));
    let (mut first, head) = house.opens("television", &house.film("ben", "Film Tail"), None);
    assert_eq!(head.status, 200);
    assert!(watched(&mut first));
    let (mut second, head) = house.opens("television", &house.film("ben", "Film Fast"), None);
    assert_eq!(head.status, 200, "{}", house.edge.log());
    assert!(watched(&mut second));
    assert_eq!(provider.open(), 2, "both, for a moment");
    first.hang_up();
    eventually("one is left", 3 * SECOND, || (provider.open() == 1).then_some(()));
    assert!(second.closed_within(4 * SECOND).is_none(), "who zapped plays on");
    // Nobody leaves this time.
    let (mut third, head) = house.opens("other", &house.film("zoe", "Film Stream"), None);
    assert_eq!(head.status, 200, "{}", house.edge.log());
    assert!(watched(&mut third));
    let fourth = house.part("another", &house.film("zoe", "Film Matroska"), "bytes=0-99");
    assert_eq!((fourth.status, fourth.reason().as_str()), (503, "provider-limit"), "one more, no further");
    third.closed_within(6 * SECOND).expect("its grace was in vain");
    eventually("one is left", 3 * SECOND, || (provider.open() == 1).then_some(()));
    assert!(watched(&mut second), "who was there before is left alone");
    second.hang_up();
    house.is_over(&provider, 6 * SECOND);
}
