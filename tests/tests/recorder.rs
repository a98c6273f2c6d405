//! When something went wrong: what an edge kept of it, how it is saved, told and looked through, and what is not in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use holdfast_tests::browser::Browser;
use holdfast_tests::edge::Edge;
use holdfast_tests::http::{Connection, Request};
use holdfast_tests::offer::Tracks;
use holdfast_tests::process::{Line, Process};
use holdfast_tests::provider::{Account, Provider, Settings};
use holdfast_tests::publisher::Aiortc;
use holdfast_tests::viewer::Viewer;
use holdfast_tests::{eventually, prepared, turn};

const SECOND: Duration = Duration::from_secs(1);

/// The program with these arguments, run to its end.
fn holdfast(arguments: &[&str]) -> Output {
    let output = Command::new(prepared::holdfast()).args(arguments).output();
    output.expect("the program is built")
}

/// What it says, when that is what it should end with.
fn says(status: i32, arguments: &[&str]) -> String {
    let Output { status: ended, stdout, stderr } = holdfast(arguments);
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(ended.code(), Some(status), "{arguments:?}: {text}");
    text
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the temporary folder has a plain name")
}

/// Which of these are in there, as they are or in another case.
fn found<'w>(bytes: &[u8], wanted: impl IntoIterator<Item = &'w [u8]>) -> Vec<String> {
    let found = wanted.into_iter().filter(|wanted| {
        assert!(wanted.len() >= 6, "{wanted:?} may be there by chance");
        bytes.windows(wanted.len()).any(|window| window.eq_ignore_ascii_case(wanted))
    });
    found.map(|wanted| String::from_utf8_lossy(wanted).into_owned()).collect()
}

/// The address of the media playlist in an index.
fn media(index: &str) -> String {
    index.lines().find(|line| line.contains("media.m3u8?v=")).expect("a media playlist").to_owned()
}

/// The page of a journal, in a real browser. Its picture is left in `target/pages` for somebody to look at.
fn is_drawn(journal: &Path) {
    let folder = prepared::holdfast().parent().and_then(Path::parent).expect("target").join("pages");
    fs::create_dir_all(&folder).expect("target can be written");
    let page = folder.join("recorded.html");
    assert!(says(0, &["replay", text(journal), "--quiet", "--html", text(&page)]).contains("no invariant is broken"));
    let mut browser = Browser::start();
    browser.open(&format!("file://{}", page.display()));
    browser.until("the first drawing", 60 * SECOND, "window.holdfast !== undefined && window.holdfast.drawn > 0");
    assert_eq!(
        browser.value(
            "story.broken === null && story.title.startsWith('Holdfast: ') && story.title.includes(', started 20')"
        ),
        true
    );
    browser.picture(&folder.join("recorded.png"));
    let lanes = browser.value("story.lanes.map((lane) => lane.name)");
    for lane in ["stage", "away", "anna", "bert", "panel account 1"] {
        assert!(lanes.as_array().is_some_and(|lanes| lanes.iter().any(|own| own == lane)), "{lane}: {lanes}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_displacement_is_told_from_a_dump_and_no_secret_is_in_it() {
    let _turn = turn();
    let account =
        Account { username: "account-of-the-house".into(), password: "key-of-the-house".into(), ..Account::of(2) };
    let provider = Provider::start(Settings { accounts: vec![account], ..Settings::default() });
    let file = prepared::scratch("edge.journal");
    let configuration = format!(
        "[recorder]\nfile = \"{}\"\n\
         [api]\ntokens = [\"api-token-of-the-operator\"]\n\
         [[endpoint]]\nname = \"stage\"\ntokens = [\"bearer-token-of-the-stage\"]\n\
         [[channel]]\nname = \"away\"\nsources = [\"http://origin-user:origin-password@127.0.0.1:9/key-in-a-path-000/a.ts\"]\n\
         [[user]]\nname = \"anna\"\npassword = \"password-of-anna\"\nmax_connections = 3\n\
         [[user]]\nname = \"bert\"\npassword = \"password-of-bert\"\nmax_connections = 3\n{}",
        text(&file),
        provider.configuration("panel"),
    );
    let edge = Edge::start(&configuration);
    let url = edge.url("/whip/stage");
    let publisher = Aiortc::to(&url).token("bearer-token-of-the-stage");
    let bearer = |path: &str| Request::new("GET", path).field("Authorization", "Bearer api-token-of-the-operator");
    let basic = "Basic YW5uYTpwYXNzd29yZC1vZi1hbm5h";
    let status = || bearer("/api/status").send(edge.address()).json();

    let mut first = publisher.start();
    let first_session = first.posted().location.expect("a granted POST has a Location");
    first.connected();
    // A player of HLS, one of MPEG-TS, one whose origin is not there, and one of the provider's.
    let index = eventually("an index", 20 * SECOND, || {
        let answer = Request::new("GET", "/live/stage/index.m3u8").field("Authorization", basic).send(edge.address());
        (answer.status == 200).then(|| answer.text())
    });
    let address = format!("/live/stage/{}", media(&index));
    let playlist = edge.get(&address);
    assert_eq!(playlist.status, 200, "{}", playlist.text());
    let signed = address.rsplit_once('=').expect("a token").1.to_owned();
    let mut live = Connection::open(edge.address());
    live.send(&Request::new("GET", "/live/stage.ts").field("Authorization", basic));
    assert!(!live.some(30_000, 20 * SECOND).is_empty());
    let away = Request::new("GET", "/live/away.ts").field("Authorization", basic).send(edge.address());
    assert_eq!(away.status, 502, "{}", away.text());
    // Somebody else: of who watches feeds and plays titles not everything is judged.
    let login = "username=bert&password=password-of-bert";
    let streams = eventually("a catalogue", 20 * SECOND, || {
        let list = edge.get(&format!("/player_api.php?{login}&action=get_live_streams")).json();
        list.as_array().filter(|list| list.len() > 3).cloned()
    });
    let stream = streams.iter().find(|own| own["name"] == "News One").expect("the provider has it");
    let mut titled = Connection::open(edge.address());
    titled.send(&Request::new("GET", &format!("/live/bert/password-of-bert/{}.ts", stream["stream_id"])));
    assert!(!titled.some(10_000, 20 * SECOND).is_empty());

    first.kill();
    let second = publisher.start();
    let second_session = second.posted().location.expect("the other is dead");
    second.connected();
    eventually("media of the second", 20 * SECOND, || {
        let session = status()["endpoints"][0]["slots"][0]["session"].clone();
        (session["audio"]["packets"].as_u64() > Some(0)).then_some(())
    });

    // Nobody else gets it.
    assert!(says(1, &["dump", "--url", &edge.url("/")]).contains("--token"));
    let dump = prepared::scratch("dump.journal");
    let of_edge = ["dump", "--url", &edge.url("/"), "--token", "api-token-of-the-operator", "-o", text(&dump)];
    assert!(says(0, &of_edge).contains(text(&dump)));
    assert_eq!(fs::metadata(&dump).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(says(1, &of_edge).contains("--force"), "it takes nobody's place");
    says(0, &[&of_edge[..], &["--force"]].concat());
    eventually("the file", 5 * SECOND, || fs::metadata(&file).ok().filter(|file| file.len() > 1000).map(|_| ()));

    let told = says(0, &["replay", text(&dump)]);
    for part in [
        "somebody wants to publish at endpoint \"stage\"",
        "displaced after",
        "nothing had come from it for",
        "another publisher asked for the slot",
        "user \"anna\" wants to play endpoint \"stage\" slot 1",
        "they repeat; digest",
        "no invariant is broken",
        "endpoint \"stage\" slot 1: session",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let searched = says(0, &["replay", text(&dump), "--grep", "displaced after"]);
    assert_eq!(searched.lines().filter(|line| line.contains("displaced after")).count(), 1, "{searched}");
    assert!(says(0, &["replay", text(&dump), "--quiet", "--until", "1s"]).contains("they repeat"));
    println!("{} bytes of dump, {} lines told", fs::metadata(&dump).unwrap().len(), told.lines().count());
    is_drawn(&dump);

    // Neither there nor in the file that is written beside it, nor in what is told.
    let secret = |location: &str| location.rsplit_once('/').expect("a path").1.to_owned();
    let sessions = [secret(&first_session), secret(&second_session)];
    let bytes = |hex: &str| u128::from_str_radix(hex, 16).expect("32 digits").to_be_bytes().to_vec();
    let token = BASE64.decode(&signed).expect("43 letters");
    let account = provider.account(0).clone();
    let mut secrets: Vec<Vec<u8>> = [
        "api-token-of-the-operator",
        "bearer-token-of-the-stage",
        "password-of-anna",
        "password-of-bert",
        "origin-user",
        "origin-password",
        "key-in-a-path-000",
        &account.username,
        &account.password,
        &signed,
        &sessions[0],
        &sessions[1],
        basic.rsplit_once(' ').unwrap().1,
    ]
    .iter()
    .map(|secret| secret.as_bytes().to_vec())
    .collect();
    secrets.extend(sessions.iter().map(|session| bytes(session)));
    // The token is in it, and worth nothing without the tag.
    secrets.push(token[16..].to_vec());
    let dumped = fs::read(&dump).unwrap();
    assert_eq!(found(&dumped, [&token[..16]]).len(), 1, "the search finds what is there");
    eventually("the file to be up to date", 5 * SECOND, || {
        (!found(&fs::read(&file).unwrap(), [&token[..16]]).is_empty()).then_some(())
    });
    for place in [&dumped, &fs::read(&file).unwrap(), &told.into_bytes()] {
        assert_eq!(found(place, secrets.iter().map(Vec::as_slice)), Vec::<String>::new());
    }
    let forged = BASE64.encode([&token[..16], &[7; 16]].concat());
    let answer = edge.get(&address.replace(&signed, &forged));
    assert_eq!(answer.status, 410, "{}", answer.text());

    // The file outlives the process, however that ends, but for what happened within the last second.
    thread::sleep(2 * SECOND);
    let mut edge = edge;
    edge.kill();
    let told = says(0, &["replay", text(&file)]);
    assert!(told.contains("displaced after"), "{told}");
}

#[test]
fn what_cannot_be_replayed_or_saved_is_said_in_words() {
    let _turn = turn();
    let edge = Edge::start("[recorder]\nsize = \"off\"\n");
    assert!(says(1, &["dump", "--url", &edge.url("/")]).contains("\"off\""));
    drop(edge);
    let edge = Edge::plain();
    edge.post("live");
    let dump = prepared::scratch("bad.journal");
    says(0, &["dump", "--url", &edge.url("/"), "-o", text(&dump)]);
    assert!(says(1, &["dump", "--url", &edge.url("/"), "-o", "/nonexistent/a"]).contains("/nonexistent/a"));
    drop(edge);
    assert!(says(1, &["dump", "--url", "http://127.0.0.1:9", "-o", "/tmp/never"]).contains("is Holdfast running?"));
    let whole = fs::read(&dump).unwrap();
    says(0, &["replay", text(&dump)]);
    let broken = prepared::scratch("broken.journal");
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 0x10;
    let mut other = whole.clone();
    other[7] += 1;
    for (bytes, why) in [
        (&whole[..whole.len() - 5], "breaks off"),
        (&whole[..20], "breaks off"),
        (&whole[..3], "no journal"),
        (b"", "it is empty"),
        (b"\x1f\x8b\x08, and so on", "compressed with gzip"),
        (b"\x7fELF and so on", "no journal"),
        // With nothing whole behind it, it breaks off there.
        (&flipped, "br"),
        (&other, "version"),
    ] {
        fs::write(&broken, bytes).unwrap();
        let text = says(1, &["replay", text(&broken)]);
        assert!(text.contains(why) && !text.contains("panicked"), "{why}: {text}");
    }
    fs::File::create(&broken).unwrap().set_len((1 << 30) + 1).unwrap();
    assert!(says(1, &["replay", text(&broken)]).contains("1 GiB"));
    fs::remove_file(&broken).unwrap();
    assert!(says(1, &["replay", text(&broken)]).contains("cannot be read"));
    assert!(says(1, &["replay", "/"]).contains("directory"));
}

/// A running edge, or what it says when it does not start.
fn started(configuration: &Path) -> Process {
    let mut command = Command::new(prepared::holdfast());
    command.arg("run").arg(configuration);
    Process::start("holdfast", command)
}

#[test]
fn one_file_takes_one_recorder() {
    let _turn = turn();
    let file = prepared::scratch("one.journal");
    let edge = Edge::start(&format!("[recorder]\nfile = \"{}\"\n", text(&file)));
    let other = prepared::scratch("other.toml");
    fs::write(&other, format!("[http]\nlisten = [\"127.0.0.1:0\"]\n[recorder]\nfile = \"{}\"\n", text(&file))).unwrap();
    let mut second = started(&other);
    let why = |line: &Line| line.text.contains("another Holdfast records into").then(|| line.text.clone());
    let why = second.find("reason", 20 * SECOND, why);
    assert!(why.contains(text(&file)), "{why}");
    assert_eq!(second.wait(20 * SECOND).code(), Some(1));
    edge.post("live");
    let (status, _) = edge.terminate();
    assert!(status.success());
    assert!(says(0, &["replay", text(&file)]).contains("the program is to end"), "its last second is in it, too");
    // What it left is kept beside what follows.
    let again = Edge::start(&format!("[recorder]\nfile = \"{}\"\n", text(&file)));
    let before = PathBuf::from(format!("{}.1", text(&file)));
    assert!(says(0, &["replay", text(&before)]).contains("the program is to end"));
    drop(again);
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let _turn = turn();
    let folder = prepared::scratch("full");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("edge.journal");
    let configuration = format!("[http]\nlisten = [\"127.0.0.1:0\"]\n[recorder]\nfile = \"{}\"\n", text(&file));
    // A file system of 16 KiB, which nobody else sees.
    let edge = Edge::start_by(&configuration, |program| {
        let mut command = prepared::tool("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command.arg("mount -t tmpfs -o size=16k none \"$1\" && shift && exec \"$@\"");
        command.args(["sh", text(&folder)]).arg(program);
        command
    });
    let publisher = Aiortc::to(&edge.url("/whip/live")).start();
    publisher.connected();
    edge.delivers("live", Tracks::Both);
    let viewer = Viewer::open(edge.address(), "live");
    let warned = eventually("a warning", 60 * SECOND, || {
        for _ in 0..20 {
            edge.get("/live/live/index.m3u8");
        }
        edge.log().lines().find(|line| line.contains("the recorder cannot write")).map(str::to_owned)
    });
    assert!(
        warned.contains("No space left") && warned.contains(text(&file)) && warned.contains("Make room"),
        "{warned}"
    );
    viewer.gets(60_000, 20 * SECOND);
    std::thread::sleep(3 * SECOND);
    assert_eq!(edge.log().matches("the recorder cannot write").count(), 1, "it is said once");
    // In memory it goes on; a dump onto a full disk leaves nothing.
    let dump = prepared::scratch("full.journal");
    says(0, &["dump", "--url", &edge.url("/"), "-o", text(&dump)]);
    says(0, &["replay", text(&dump), "--quiet"]);
    let script = "mount -t tmpfs -o size=8k none \"$1\" && \"$2\" dump --url \"$3\" -o \"$1/a\"; code=$?; ls -A \"$1\"; exit $code";
    let output = prepared::tool("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", text(&folder)])
        .arg(prepared::holdfast())
        .arg(edge.url("/"))
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left") && said.contains("removed"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is left of it");
}
