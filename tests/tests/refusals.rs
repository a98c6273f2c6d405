//! Who is refused or ended, and what its player is shown of that: with real players, over real sockets.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use holdfast_tests::household::Household;
use holdfast_tests::http::Request;
use holdfast_tests::player::Program;
use holdfast_tests::process::Process;
use holdfast_tests::provider::{Provider, Settings};
use holdfast_tests::{eventually, prepared, turn};
use jiff::Timestamp;
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(40);

/// Pictures of a clip that an operator made.
const PICTURES: u32 = 75;

/// What an operator shows to those who are refused: three seconds with a picture of this width.
fn clip(width: u32) -> PathBuf {
    let path = prepared::scratch(&format!("clip-{width}.ts"));
    let mut command = prepared::tool("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i"]);
    command.arg(format!("testsrc2=size={width}x96:rate=25")).args(["-f", "lavfi", "-i", "sine=sample_rate=48000"]);
    command.args(["-t", "3", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]);
    let output = command.arg(&path).output().expect("ffmpeg starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// The settings that name such clips: for a user's limit of a width of 160, for the provider's of 192.
fn clips() -> String {
    let [user, provider] = [160, 192].map(|width| clip(width).display().to_string());
    format!("user_limit_clip = \"{user}\"\nprovider_limit_clip = \"{provider}\"\n")
}

fn playing(house: &Household, path: &str) -> Process {
    shown(Program::Ffmpeg, house, path)
}

fn shown(program: Program, house: &Household, path: &str) -> Process {
    let mut player = program.play(&house.url(path));
    program.is_seen(&mut player, PATIENCE);
    player
}

/// How many pictures ffmpeg has decoded.
fn frames(player: &Process) -> u32 {
    let last = |text: &str| text.strip_prefix("frame=").and_then(|frames| frames.trim().parse().ok());
    player.lines().iter().rev().find_map(|line| last(&line.text)).unwrap_or(0)
}

/// The widths of the pictures that ffprobe finds at an address, and how many there are of each.
fn widths(url: &str) -> Vec<(u32, usize)> {
    let output = prepared::tool("ffprobe")
        .args(["-v", "quiet", "-select_streams", "v", "-show_entries", "frame=width", "-of", "csv=p=0", url])
        .output()
        .expect("ffprobe starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found: Vec<(u32, usize)> = Vec::new();
    for width in text.lines().filter_map(|line| line.trim_end_matches(',').trim().parse().ok()) {
        match found.last_mut() {
            Some((last, count)) if *last == width => *count += 1,
            _ => found.push((width, 1)),
        }
    }
    found
}

#[test]
fn players_show_the_operators_clip_in_place_of_a_refusal() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    let house = Household::of(&provider, &format!("[playback]\nstrategies = [\"deny\"]\n{}", clips()));
    let mut holder = playing(&house, &house.live("anna", "News One", "ts"));
    for (user, width) in [("anna", 160), ("ben", 192)] {
        let path = house.live(user, "News Two", "ts");
        let mut player = Program::Ffmpeg.play(&house.url(&path));
        assert!(player.wait(PATIENCE).success(), "{}", player.log());
        assert_eq!(frames(&player), PICTURES, "all of it: {}", player.log());
        assert_eq!(widths(&house.url(&path)), [(width, PICTURES as usize)], "{user}");
        for program in [Program::Mpv, Program::Vlc, Program::GStreamer] {
            let mut player = program.play(&house.url(&path));
            program.is_seen(&mut player, PATIENCE);
            player.kill();
        }
        // What takes no MPEG-TS is told in words.
        let answer = house.edge.get(&house.film(user, "Film Tail"));
        assert_eq!(answer.status, 503, "{}", answer.text());
    }
    assert_eq!((house.counted("anna"), house.counted("ben")), (1, 0), "a clip takes no place");
    assert!(holder.ended().is_none());
    house.agrees(&provider);
    holder.kill();
    house.is_over(&provider, 6 * SECOND);
}

/// A live stream whose account goes to somebody stronger ends with the clip: its player plays that, and then comes to an end in order.
#[test]
fn whoever_gives_way_is_shown_the_clip_first() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    let user = "[[user]]\nname = \"anna\"\npassword = \"anna-secret\"\npriority = -5\n";
    let house = Household::of(&provider, &format!("[playback]\n{}{user}", clips()));
    let path = house.live("ben", "News One", "ts");
    let mut player = playing(&house, &path);
    let file = prepared::scratch("seen.ts");
    let mut command = prepared::tool("curl");
    command.args(["-sS", "-o"]).arg(&file).arg(house.url(&path));
    let mut client = Process::start("curl", command);
    eventually("it is sent something", PATIENCE, || file.metadata().is_ok_and(|own| own.len() > 100_000).then_some(()));
    let mut strong = playing(&house, &house.film("anna", "Film Stream"));
    for weak in [&mut player, &mut client] {
        assert!(weak.wait(PATIENCE).success(), "{}", weak.log());
    }
    let seen = widths(&file.display().to_string());
    assert_eq!((seen.len(), seen.last().copied()), (2, Some((192, PICTURES as usize))), "{seen:?}");
    strong.kill();
    house.is_over(&provider, 6 * SECOND);
}

/// Whoever may see some groups alone has these alone, by every way to what there is.
#[test]
fn a_user_has_the_groups_it_is_given() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[2]));
    let user = "[[user]]\nname = \"carl\"\npassword = \"carl-secret\"\ngroups = [\"Films\"]\n";
    let house = Household::of(&provider, user);
    let of_carl = |path: String| path.replace("zoe", "carl");
    for action in ["get_live_streams", "get_series"] {
        let list = house.api("carl", action);
        // Channels of our own are for everybody.
        let ours = |own: &Value| own["name"] == "live" || own["name"] == "test";
        assert!(list.as_array().is_some_and(|list| list.iter().all(ours)), "{action}: {list}");
    }
    let list = house.edge.get("/get.php?username=carl&password=carl-secret&type=m3u_plus").text();
    assert!(list.contains(",Film Tail") && !list.contains(",News One"), "{list}");
    for path in [
        house.live("zoe", "News One", "ts"),
        house.live("zoe", "News One", "m3u8"),
        house.live("zoe", "Segments", "m3u8"),
        house.past("zoe", "Archive", "2026-11-30:10-00", "ts"),
        house.episodes("zoe", "The Series").remove(0),
    ] {
        let answer = house.edge.get(&of_carl(path.clone()));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(provider.open(), 0, "nobody asked the provider");
    let mut player = playing(&house, &house.film("carl", "Film Tail"));
    assert_eq!(house.counted("carl"), 1);
    player.kill();
    house.counts("carl", 0, 3 * SECOND);
    house.is_over(&provider, 3 * SECOND);
}

/// A user expires while it watches: everything that it plays ends, and nothing new begins.
#[test]
fn a_user_that_expires_begins_nothing_new() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[0]));
    // Long enough for two players to begin on a machine that has other things to do.
    let expires = Timestamp::now().as_second() + 30;
    let moment = Timestamp::from_second(expires).expect("in range");
    let user = format!("[[user]]\nname = \"dora\"\npassword = \"dora-secret\"\nexpires = \"{moment}\"\n");
    let house = Household::of(&provider, &format!("{user}[playback]\nhls_session_ttl = \"3s\"\n"));
    let live = house.live("dora", "News One", "ts");
    let segments = house.film("dora", "Film Keys");
    let film = house.film("dora", "Film Stream");
    let mut player = playing(&house, &live);
    let mut of_segments = shown(Program::Mpv, &house, &segments);
    assert!(Timestamp::now().as_second() < expires, "the machine was too slow for this test");
    assert_eq!(house.api("dora", "")["user_info"]["status"], "Active");
    let expired = || house.api("dora", "")["user_info"]["status"] == "Expired";
    eventually("it expires", 35 * SECOND, || expired().then_some(()));
    assert!(Timestamp::now().as_second() >= expires);
    for path in [&live, &segments, &film] {
        let answer = house.edge.get(path);
        assert_eq!((answer.status, answer.reason().as_str()), (403, "account-expired"), "{path}");
    }
    let list = house.edge.get("/get.php?username=dora&password=dora-secret&type=m3u_plus");
    assert_eq!(list.status, 403);
    house.counts("dora", 0, 6 * SECOND);
    of_segments.kill();
    player.kill();
    house.is_over(&provider, 6 * SECOND);
}

/// An operator ends what somebody watches, whichever way it comes; whoever else watches it is left alone.
#[test]
fn an_operator_ends_what_is_watched_and_nobody_else() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[2]));
    let house = Household::of(&provider, "");
    let path = house.live("ben", "News One", "ts");
    let mut other = playing(&house, &path);
    let kick = |block: u32| {
        let id = house.user("anna")["playbacks"][0]["id"].as_str().expect("an id").to_owned();
        let block = if block == 0 { String::new() } else { format!("?block={block}") };
        let answer = Request::new("DELETE", &format!("/api/playbacks/{id}{block}")).send(house.edge.address());
        assert!(answer.status < 300, "{}", answer.text());
    };
    for (path, one, another) in [
        (house.live("anna", "News One", "ts"), Program::Ffmpeg, Program::Mpv),
        (house.film("anna", "Film Keys"), Program::Mpv, Program::Vlc),
    ] {
        let mut player = shown(one, &house, &path);
        kick(30);
        house.counts("anna", 0, 2 * SECOND);
        player.wait(PATIENCE);
        // The same player again, and another.
        let mut again = one.play(&house.url(&path));
        assert!(!again.wait(PATIENCE).success(), "{}", again.log());
        eventually("a reason", SECOND, || again.log().contains("403").then_some(()));
        let mut player = shown(another, &house, &path);
        // Without a block it may begin anew at once.
        kick(0);
        player.wait(PATIENCE);
        let mut player = shown(another, &house, &path);
        player.kill();
        house.counts("anna", 0, 20 * SECOND);
    }
    assert!(other.ended().is_none(), "{}", other.log());
    assert_eq!(provider.served("/1.ts").len(), 1, "the stream stood all the while");
    other.kill();
    house.is_over(&provider, 20 * SECOND);
}

/// Whoever guesses passwords is told to wait, with the right one as well; whoever plays or was let in before, and other addresses,
/// are left alone.
#[test]
fn guessing_passwords_is_slow_for_its_address_alone() {
    let _turn = turn();
    let provider = Provider::start(Settings::accounts(&[1]));
    let house = Household::of(&provider, "");
    let path = house.live("anna", "News One", "ts");
    let film = house.film("zoe", "Film Tail");
    let mut player = playing(&house, &path);
    let status = |address: &str, path: &str| {
        let mut command: Command = prepared::tool("curl");
        command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "10", "--interface", address]);
        let output = command.arg(house.url(path)).output().expect("curl starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let login = |password: &str| format!("/get.php?username=zoe&password={password}&type=m3u_plus");
    let wrong: Vec<String> = (0..12).map(|number| status("127.0.0.9", &login(&format!("guess-{number}")))).collect();
    assert!(wrong[..10].iter().all(|status| status == "403"), "{wrong:?}");
    assert_eq!(wrong[11], "429", "{wrong:?}");
    for path in [login("zoe-secret"), film.clone(), String::from("/player_api.php?username=zoe&password=zoe-secret")] {
        assert_eq!(status("127.0.0.9", &path), "429", "{path}: whether it is right is not said");
    }
    assert_eq!(status("127.0.0.8", &login("zoe-secret")), "200", "another address");
    // Whoever was let in at an address before is let in there whatever others try.
    for number in 0..12 {
        status("127.0.0.8", &login(&format!("guess-{number}")));
    }
    assert_eq!(status("127.0.0.8", &login("zoe-secret")), "200");
    assert_eq!(status("127.0.0.8", "/get.php?username=anna&password=anna-secret"), "429", "another user");
    assert!(player.ended().is_none());
    // One each six seconds is right again.
    eventually("it may try again", 15 * SECOND, || (status("127.0.0.9", &login("zoe-secret")) == "200").then_some(()));
    player.kill();
    house.is_over(&provider, 6 * SECOND);
}
