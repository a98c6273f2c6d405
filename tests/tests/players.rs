//! Users with the players that they have: each is counted once, whatever it does, and no more play than may.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_tests::browser::Browser;
use holdfast_tests::edge::Edge;
use holdfast_tests::http::{Connection, Request};
use holdfast_tests::network::{Apart, Link};
use holdfast_tests::origin::Origin;
use holdfast_tests::player::Program;
use holdfast_tests::process::Process;
use holdfast_tests::{AT_ONCE, eventually, ms, prepared, turn, viewer};
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);
/// Long enough for a channel to start, and for a browser on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two channels of two encoders, and users: Anna may play one thing at once, Ben two, Zoe any number.
struct House {
    edge: Edge,
    origins: [Origin; 2],
}

impl House {
    fn open(settings: &str) -> House {
        let origins = [Origin::start("320x180"), Origin::start("320x180")];
        let mut text = format!("{settings}\n");
        for (name, origin) in ["one", "two"].iter().zip(&origins) {
            text += &format!("[[channel]]\nname = \"{name}\"\nsources = [\"{}\"]\n", origin.url());
        }
        for (name, most) in [("anna", 1), ("ben", 2), ("zoe", 0)] {
            text += &format!("[[user]]\nname = \"{name}\"\npassword = \"{name}-secret\"\nmax_connections = {most}\n");
        }
        House { edge: Edge::start(&text), origins }
    }

    /// What the list that this user is given says of its channels: one, and two.
    fn addresses(&self, user: &str, output: &str) -> [String; 2] {
        let path = format!("/get.php?username={user}&password={user}-secret&type=m3u_plus&output={output}");
        let list = self.edge.get(&path).text();
        ["one", "two"].map(|name| {
            let mut lines = list.lines();
            lines.find(|line| line.ends_with(&format!(",{name}"))).expect("the channel is in the list");
            lines.next().expect("its address follows").to_owned()
        })
    }

    fn user(&self, name: &str) -> Value {
        let status = self.edge.status();
        let users = status["users"].as_array().cloned().unwrap_or_default();
        users.into_iter().find(|user| user["name"] == name).expect("the user is in the status")
    }

    /// How many places it uses, of whatever kind.
    fn counted(&self, user: &str) -> u64 {
        let user = self.user(user);
        ["normal", "soft", "grace"].iter().map(|place| user[*place].as_u64().expect("a number")).sum()
    }

    fn counts(&self, user: &str, number: u64, limit: Duration) {
        eventually(&format!("{number} counted for {user}"), limit, || (self.counted(user) == number).then_some(()));
    }

    /// How often the log says that.
    fn said(&self, what: &str) -> usize {
        self.edge.log().lines().filter(|line| line.contains(what)).count()
    }
}

/// Plays with every program at once, on both channels in turn, and sees that there are never more counted than play.
fn all_at_once(house: &House, programs: &[Program], addresses: &[String; 2], beside: u64) -> Vec<Process> {
    let mut players = Vec::new();
    for (program, url) in programs.iter().zip(addresses.iter().cycle()) {
        players.push(program.play(url));
    }
    let all = players.len() as u64 + beside;
    for (program, player) in programs.iter().zip(&mut players) {
        program.is_seen(player, PATIENCE);
        assert!(house.counted("zoe") <= all, "{}", house.user("zoe"));
    }
    let begin = Instant::now();
    while begin.elapsed() < 3 * SECOND {
        assert_eq!(house.counted("zoe"), all, "{}", house.user("zoe"));
        std::thread::sleep(SECOND / 10);
    }
    for (program, player) in programs.iter().zip(&mut players) {
        assert!(player.ended().is_none(), "{program:?} ended:\n{}", player.log());
    }
    players
}

#[test]
fn every_player_of_a_stream_is_counted_once_and_its_place_is_free_when_it_is_killed() {
    let _turn = turn();
    let house = House::open("");
    let addresses = house.addresses("zoe", "ts");
    let mut players = all_at_once(&house, &Program::ALL, &addresses, 0);
    for left in (0..players.len()).rev() {
        players[left].kill();
        house.counts("zoe", left as u64, SECOND);
    }
    assert_eq!((house.origins[0].opens().len(), house.origins[1].opens().len()), (1, 1));
}

/// Whoever plays lists plays the one that the edge gives out.
#[test]
fn players_of_lists_play_the_list() {
    let _turn = turn();
    let house = House::open("");
    let list = house.edge.url("/get.php?username=zoe&password=zoe-secret&type=m3u_plus");
    for program in [Program::Mpv, Program::Vlc] {
        let mut player = program.play(&list);
        program.is_seen(&mut player, PATIENCE);
        assert_eq!(house.user("zoe")["playbacks"][0]["stream"], "one", "{program:?} begins at the top");
        player.kill();
        house.counts("zoe", 0, SECOND);
    }
}

#[test]
fn every_player_of_hls_is_counted_once() {
    let _turn = turn();
    let house = House::open("[live.hls]\nsegment = \"1s\"\nviewer_timeout = \"6s\"");
    let addresses = house.addresses("zoe", "m3u8");
    let mut browser = Browser::start();
    browser.open_page("hls_js.html");
    browser.until("hls.js", PATIENCE, "typeof Hls === 'function'");
    browser.value(&format!("play({:?})", addresses[0]));
    browser.until("two seconds played", PATIENCE, "at() > 2");
    assert_eq!(house.counted("zoe"), 1, "{}", house.user("zoe"));
    let mut players = all_at_once(&house, &Program::OF_HLS, &addresses, 1);
    assert!(!browser.value("JSON.stringify(faults)").as_str().expect("a list").contains("fatal"));
    browser.kill();
    for player in &mut players {
        player.kill();
    }
    house.counts("zoe", 0, 8 * SECOND);
}

/// V2, V3, and that 0 is any number.
#[test]
fn v2_v3_one_more_than_may_is_refused() {
    let _turn = turn();
    let house = House::open("[playback]\nstrategies = [\"deny\"]");
    for (user, may) in [("anna", 1), ("ben", 2)] {
        let addresses = house.addresses(user, "ts");
        let mut players: Vec<Process> =
            (0..may).map(|number: usize| Program::Curl.play(&addresses[number % 2])).collect();
        for player in &mut players {
            Program::Curl.is_seen(player, PATIENCE);
        }
        house.counts(user, may as u64, SECOND);
        for (output, program) in [("ts", Program::Ffmpeg), ("m3u8", Program::Mpv), ("ts", Program::Curl)] {
            let mut refused = program.play(&house.addresses(user, output)[1]);
            let status = refused.wait(PATIENCE);
            assert!(program == Program::Curl || !status.success(), "{program:?}: {}", refused.log());
            // What it said last is read by another thread.
            eventually("a reason", SECOND, || refused.log().contains("503").then_some(()));
        }
        let answer = house.edge.get(path(&house.addresses(user, "ts")[1]));
        assert_eq!((answer.status, answer.reason().as_str()), (503, "user-limit"));
        assert_eq!(house.counted(user), may as u64);
        assert!(players.iter_mut().all(|player| player.ended().is_none()), "who plays is left alone");
    }
}

/// What follows scheme and host.
fn path(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("an address");
    &rest[rest.find('/').expect("a path")..]
}

/// V17: whoever zaps closes one and opens the other at once, or opens before it closes.
#[test]
fn v17_zapping_always_works() {
    let _turn = turn();
    let house = House::open("");
    let addresses = house.addresses("anna", "ts");
    let mut playing = Program::Curl.play(&addresses[0]);
    Program::Curl.is_seen(&mut playing, PATIENCE);
    let mut longest = Duration::ZERO;
    for number in 1..=20 {
        let url = &addresses[number % 2];
        let begin = Instant::now();
        let mut next;
        if number % 4 < 2 {
            playing.kill();
            next = Program::Curl.play(url);
        } else {
            next = Program::Curl.play(url);
            std::thread::sleep(SECOND / 5);
            assert!(!Program::Curl.shows(&next), "two at once: {}", house.user("anna"));
            playing.kill();
        }
        Program::Curl.is_seen(&mut next, PATIENCE);
        longest = longest.max(begin.elapsed());
        assert!(house.counted("anna") <= 1, "{}", house.user("anna"));
        playing = next;
    }
    // The first time a channel is opened it has to be fetched.
    assert!(longest < 4 * SECOND, "{} ms", ms(longest));
    playing.kill();
    for url in [&addresses[1], &addresses[0]] {
        let mut player = Program::Ffmpeg.play(url);
        Program::Ffmpeg.is_seen(&mut player, PATIENCE);
        player.kill();
    }
    assert_eq!(house.said("was refused"), 0, "{}", house.edge.log());
    house.counts("anna", 0, SECOND);
}

/// V18 and V20: whoever looks at the same thing looks at the same upstream, and so does who comes back.
#[test]
fn v18_v20_one_upstream_for_two_users_and_for_who_probes_first() {
    let _turn = turn();
    let house = House::open("");
    let addresses = ["anna", "ben"].map(|user| house.addresses(user, "ts")[0].clone());
    let codecs = viewer::codecs(&addresses[0]);
    assert_eq!(codecs.get("video").map(String::as_str), Some("h264"), "{codecs:?}");
    let mut players = addresses.each_ref().map(|url| Program::Ffmpeg.play(url));
    for player in &mut players {
        Program::Ffmpeg.is_seen(player, PATIENCE);
    }
    assert_eq!((house.counted("anna"), house.counted("ben")), (1, 1));
    assert_eq!(house.origins[0].opens().len(), 1, "{}", house.edge.log());
}

/// V19: VLC asks for what it does not get with each of its two modules for HTTP; some versions do all of that twice.
#[test]
fn v19_who_asks_again_for_what_was_refused_has_the_same_answer_and_no_new_decision() {
    let _turn = turn();
    let house = House::open("[playback]\nstrategies = [\"deny\"]");
    let addresses = house.addresses("anna", "ts");
    let mut holder = Program::Curl.play(&addresses[0]);
    Program::Curl.is_seen(&mut holder, PATIENCE);
    let mut refused = Program::Vlc.play(&addresses[1]);
    refused.wait(PATIENCE);
    let lines = refused.lines();
    let asked = lines.iter().filter(|line| line.text.starts_with("GET /live/anna/")).count();
    // Each of them says it in words of its own.
    let is_refusal = |text: &str| text.starts_with("HTTP/1.1 503") || text.ends_with("answer code 503");
    let answers = lines.iter().filter(|line| is_refusal(&line.text)).count();
    assert!(asked >= 2 && answers == asked, "{asked} requests, {answers} refused: {}", refused.log());
    house.edge.says("was refused");
    assert_eq!(house.said("was refused"), 1, "{}", house.edge.log());
    let request = Request::new("GET", path(&addresses[1])).field("User-Agent", "four times");
    let mut connections: Vec<Connection> = (0..4).map(|_| Connection::open(house.edge.address())).collect();
    for connection in &mut connections {
        connection.send(&request);
    }
    let answers = connections.iter_mut().map(|connection| connection.response(false).expect("an answer"));
    for answer in answers {
        assert_eq!((answer.status, answer.reason().as_str()), (503, "user-limit"));
    }
    eventually("another player, another decision", AT_ONCE, || (house.said("was refused") >= 2).then_some(()));
    assert_eq!(house.said("was refused"), 2, "{}", house.edge.log());
    assert_eq!((house.counted("anna"), house.origins[1].opens().len()), (1, 0), "nothing is held, nothing opened");
    assert!(holder.ended().is_none());
}

/// Its link is gone: it says nothing, and neither does the kernel.
#[test]
fn a_player_that_is_cut_off_gives_up_its_place() {
    let _turn = turn();
    let apart = Apart::new();
    let limit = 3 * SECOND;
    let house = House::open("[http]\nlisten = [\"0.0.0.0:0\"]\nlimits = { write_timeout = \"3s\" }");
    let port = house.edge.address().port();
    let [here, _] = house.addresses("anna", "ts");
    let there = format!("http://10.214.9.1:{port}{}", path(&here));
    let command = Program::Ffmpeg.command(&there);
    let mut inside: Command = apart.inside(Path::new(command.get_program()));
    inside.args(command.get_args());
    let mut player = Process::start("ffmpeg", inside);
    Program::Ffmpeg.is_seen(&mut player, PATIENCE);
    house.counts("anna", 1, SECOND);
    apart.link(Link::Down);
    let begin = Instant::now();
    house.counts("anna", 0, 3 * limit);
    assert!(begin.elapsed() < 2 * limit, "after {} ms", ms(begin.elapsed()));
    let mut next = Program::Curl.play(&here.replace("0.0.0.0", "127.0.0.1"));
    Program::Curl.is_seen(&mut next, PATIENCE);
}

#[test]
fn clients_of_other_people_read_list_guide_and_api() {
    let _turn = turn();
    let house = House::open("");
    let mut command = prepared::tool("node");
    let (user, password) = ("ben", "ben-secret");
    command.arg(prepared::client("iptv.mjs")).arg(prepared::node_modules());
    command.args([house.edge.url("").as_str(), user, password]);
    let mut client = Process::start("iptv.mjs", command);
    let status = client.wait(PATIENCE);
    assert!(status.success(), "{}", client.log());
    let read = client.find("answer", SECOND, |line| Some(line.json()).filter(|json| json["playlist"].is_object()));
    let api = &read["none"];
    assert_eq!((&api["profile"]["auth"], &api["profile"]["max_connections"]), (&Value::from(1), &Value::from("2")));
    assert_eq!(api["server"]["port"], house.edge.address().port().to_string());
    assert_eq!(read["standardized"]["profile"]["maxConnections"], 2);
    assert_eq!(read["wrong"], serde_json::json!({ "auth": 0 }));
    for serializer in ["none", "standardized", "camelcase", "jsonapi"] {
        let own = &read[serializer];
        let channels = own["channels"].as_array().or(own["channels"]["data"].as_array()).expect("a list");
        let each = own["each"].as_array().expect("a list of lists").iter();
        let each: Vec<&Value> =
            each.flat_map(|list| list.as_array().or(list["data"].as_array()).expect("a list")).collect();
        assert_eq!((channels.len(), channels.iter().collect()), (3, each), "{serializer}: categories have all of it");
        assert_eq!(own["nothing"], serde_json::json!([0, 0, 0, 0]), "{serializer}");
        assert_eq!(own["missing"], serde_json::json!(["Movie Not Found", "Show Not Found"]), "{serializer}");
    }
    for (output, urls) in
        [("ts", [0, 1].map(|index| &api["channels"][index]["url"])), ("m3u8", [0, 1].map(|index| &read["hls"][index]))]
    {
        assert_eq!(urls.map(|url| url.as_str().unwrap_or_default().to_owned()), house.addresses(user, output));
    }
    let [one, two] = house.addresses(user, "ts");
    let channels = &read["playlist"]["channels"];
    for (index, (name, url)) in [("one", one), ("two", two)].into_iter().enumerate() {
        let channel = &channels[index];
        assert_eq!((&channel["name"], &channel["tvgId"]), (&Value::from(name), &Value::from(name)), "{channel}");
        assert_eq!(
            (&channel["groupTitle"], &channel["url"]),
            (&Value::from("Channels"), &Value::from(url)),
            "{channel}"
        );
        assert_eq!(read["guide"]["channels"][index]["id"], name, "{}", read["guide"]);
        assert_eq!(api["channels"][index]["epg_channel_id"], name);
    }
    assert!(channels[3].is_null() && read["guide"]["channels"][3].is_null(), "three streams: {read}");
    // That one takes what is not XML, too.
    let guide = house.edge.get(&format!("/xmltv.php?username={user}&password={password}"));
    let mut expat = Command::new(prepared::python());
    expat.args(["-c", "import sys, xml.dom.minidom as dom; dom.parseString(sys.argv[1].encode())", &guide.text()]);
    let output = expat.output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
