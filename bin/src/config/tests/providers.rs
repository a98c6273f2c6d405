use holdfast_io::providers::{Dialect, Guide, Output};
use holdfast_io::users::Status;

use super::super::*;
use super::faults;

const PROVIDER: &str = "[[provider]]\nname = 'tv'\nurl = 'http://panel.example:8080'\n";
const ACCOUNT: &str = "[[account]]\nprovider = 'tv'\nusername = 'hunter2'\npassword = 'hunter3'\n";

fn read(text: &str) -> Settings {
    parse(text, "f.toml").unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn a_provider_has_a_name_and_an_address_of_its_own() {
    let named = faults("[[provider]]\nurl = 'http://a.example/x.m3u'");
    assert_eq!(named, ["f.toml:1: key `provider[0]`: has no name; write `name`, such as name = \"tv\""]);
    let placed = faults("[[provider]]\nname = 'tv'");
    assert!(placed[0].starts_with("f.toml:1: key `provider[0]`: has no URL; write `url`"), "{placed:?}");
    let twice = faults(&format!("{PROVIDER}{PROVIDER}{ACCOUNT}"));
    assert!(twice[0].starts_with("f.toml:5: key `provider[1].name`: \"tv\" is the name of `provider[0]`"), "{twice:?}");
    for (url, word) in [("ftp://hunter2@a.example/x", "ftp:"), ("srt://a.example:1", "neither"), ("x", "no URL")] {
        let wrong = faults(&format!("[[provider]]\nname = 'tv'\nurl = '{url}'"));
        assert!(wrong[0].contains(word) && !wrong[0].contains("hunter"), "{wrong:?}");
    }
    let file = faults("[[provider]]\nname = 'tv'\nurl = 'file:///x.m3u'\nkind = 'xtream'");
    assert!(file[0].contains("a file is no panel"), "{file:?}");
}

#[test]
fn a_panel_is_logged_in_to() {
    let wrong = faults(PROVIDER);
    assert!(wrong[0].starts_with("f.toml:3: key `provider[0].url`: is a panel, and there is no account"), "{wrong:?}");
    read(&format!("{PROVIDER}{ACCOUNT}"));
    read("[[provider]]\nname = 'tv'\nurl = 'http://a.example/player_api.php?username=a&password=b'");
    read("[[provider]]\nname = 'tv'\nurl = 'http://a.example/tv.m3u'");
}

#[test]
fn an_account_belongs_to_a_provider_and_is_there_once() {
    let none = faults(ACCOUNT);
    assert!(none[0].contains("there is no provider \"tv\"; write [[provider]]"), "{none:?}");
    let other = faults(&format!("{PROVIDER}{ACCOUNT}{}", ACCOUNT.replace("'tv'", "'vt'").replace("2", "9")));
    assert!(other[0].ends_with("there is no provider \"vt\"; providers of this configuration: tv"), "{other:?}");
    let unnamed = faults(&format!("{PROVIDER}{ACCOUNT}[[account]]\nusername = 'x'"));
    assert!(unnamed[0].contains("key `account[1]`: names no provider"), "{unnamed:?}");
    let twice = faults(&format!("{PROVIDER}{ACCOUNT}{ACCOUNT}"));
    assert!(twice[0].starts_with("f.toml:10: key `account[1].username`: is the same as `account[0]`"), "{twice:?}");
    assert!(!twice[0].contains("hunter"));
    let half = faults(&format!("{PROVIDER}{ACCOUNT}[[account]]\nprovider = 'tv'\npassword = 'x'"));
    assert!(half[0].contains("is there without `username`"), "{half:?}");
}

#[test]
fn everything_of_providers_is_written_and_shown_without_secrets() {
    let text = "[playback]\nlinger = '1s'\npreemption_wait = '2s'\nended_memory = '1m'\n\
        [[user]]\nname = 'a'\npassword = 'x'\npriority = -5\nsoft_priority = 7\nstatus = 'trial'\ngroups = ['News', 'Ünï']\n\
        [[provider]]\nname = 'tv'\nurl = 'http://a:hunter2@p.example/hunter3/get.php?username=hunter4&password=hunter5'\n\
        kind = 'm3u'\nguide = 'https://g.example/hunter6/x.xml.gz'\nrefresh = '1h'\nuser_agent = 'VLC/3'\noutput = 'm3u8'\nvia = true\n\
        groups = ['News']\ncooling = '2s'\nallow_private = true\nentries = 10\nbytes = '1 MiB'\n\
        [[account]]\nprovider = 'tv'\nusername = 'hunter7'\npassword = 'hunter8'\nmax_connections = 3\npriority = -1\n\
        enabled = false\nexpires = '2027-01-31'\noverlap = true\n";
    let settings = read(text);
    let user = &settings.core.users[0];
    assert_eq!((user.priority, user.soft_priority, settings.logins[0].status), (-5, 7, Status::Trial));
    let provider = &settings.providers[0];
    assert_eq!((provider.kind, provider.output, provider.bytes), (Dialect::M3u, Output::M3u8, 1 << 20));
    assert!(provider.via && !Provider::default().via);
    assert!(matches!(provider.guide, Guide::At(_)));
    let account = &settings.accounts[0];
    assert_eq!((account.core.max_connections, account.core.priority, account.core.overlap), (3, -1, true));
    let (shown, debug) = (effective(&settings), format!("{settings:?}"));
    for word in ["hunter", "'x'"] {
        assert!(!shown.contains(word) && !debug.contains(word), "{word}: {shown}");
    }
    for line in
        ["linger = \"1s\"", "priority = -5", "status = \"trial\"", "groups = [\"News\", \"Ünï\"]", "bytes = \"1 MiB\""]
    {
        assert!(shown.lines().any(|shown| shown == line), "{line}");
    }
    assert!(faults("user = [{ name = 'a', password = 'x', priority = 128 }]")[0].contains("from -128 to 127"));
    assert!(faults("playback.linger = 'x'")[0].contains("length of time"));
}

#[test]
fn lists_that_are_files_are_looked_for_when_the_program_starts() {
    let config = std::env::temp_dir().join(format!("holdfast-provider-{}.toml", std::process::id()));
    std::fs::write(&config, "[[provider]]\nname = 'tv'\nurl = 'file:///nonexistent/tv.m3u'").expect("written");
    let wrong = load(Some(&config), []).expect_err("refused").to_string();
    assert!(wrong.contains("key `provider[0].url`: \"/nonexistent/tv.m3u\" cannot be read"), "{wrong}");
    std::fs::remove_file(&config).expect("it is ours");
}

#[test]
fn a_catalogue_is_not_read_again_each_moment_and_who_wants_that_is_told() {
    for (span, wrong) in [("59s", "59s is too short"), ("0s", "0s is too short"), ("800h", "is too long")] {
        let refused = faults(&format!("{PROVIDER}refresh = '{span}'\n{ACCOUNT}")).join("");
        let says = ["key `provider[0].refresh`", wrong, "write 1m to "].iter().all(|part| refused.contains(part));
        assert!(says, "{span}: {refused}");
    }
    assert_eq!(read(&format!("{PROVIDER}refresh = '1m'\n{ACCOUNT}")).providers[0].refresh.as_secs(), 60);
}

#[test]
fn what_makes_no_sense_though_it_can_be_is_warned_of() {
    let open = read(&format!("{PROVIDER}{ACCOUNT}")).warnings().join("");
    assert!(open.contains("there are providers and no users") && open.contains("write [[user]] with `name`"), "{open}");
    let films = read("[[library]]\nname = 'films'\npath = '/srv/films'").warnings().join("");
    assert!(films.contains("there are libraries and no users"), "{films}");
    let user = "[[user]]\nname = 'a'\npassword = 'x'\ngroups = ['Sport']\nmax_connections = 2\n";
    assert_eq!(read(&format!("{PROVIDER}{user}{ACCOUNT}")).warnings(), Vec::<String>::new());
    let narrow = read(&format!("{PROVIDER}groups = ['News']\n{user}{ACCOUNT}")).warnings().join("");
    assert!(narrow.contains("\"Sport\", which is taken of no provider"), "{narrow}");
    let over = |expires: &str| read(&format!("{PROVIDER}{user}{ACCOUNT}expires = '{expires}'")).warnings().join("");
    assert!(
        over("2020-01-31").contains("the time of `account[0]`, of provider \"tv\", is over"),
        "{}",
        over("2020-01-31")
    );
    assert_eq!(over("9999-01-31"), "");
}

#[test]
fn entries_of_a_list_of_this_machine_that_will_be_refused_are_warned_of() {
    let list = std::env::temp_dir().join(format!("holdfast-near-{}.m3u", std::process::id()));
    let entry = |group: &str, url: &str| format!("#EXTINF:-1 group-title=\"{group}\",{url}\n{url}\n");
    let entries = [
        ("News", "http://cdn.example/1.ts"),
        ("News", "http://192.168.1.9:8000/2.ts"),
        ("Sport", "http://localhost/3.m3u8"),
    ];
    let text: String = entries.iter().map(|(group, url)| entry(group, url)).collect();
    std::fs::write(&list, format!("#EXTM3U\n{text}")).unwrap();
    let warned = |more: &str| {
        let users = "[[user]]\nname = 'a'\npassword = 'x'\nmax_connections = 1\n";
        read(&format!("[[provider]]\nname = 'tv'\nurl = 'file://{}'\n{more}\n{users}", list.display()))
            .warnings()
            .join("")
    };
    let all = warned("");
    let says = ["provider \"tv\"", "2 entries lead", "the first is at 192.168.1.9", "`allow_private = true`"];
    assert!(says.iter().all(|part| all.contains(part)), "{all}");
    let sport = warned("groups = ['Sport']");
    assert!(sport.contains("1 entry leads") && sport.contains("the first is at localhost"), "{sport}");
    assert_eq!(warned("allow_private = true"), "");
    std::fs::remove_file(&list).unwrap();
    assert_eq!(warned(""), "", "whether it is there is looked at elsewhere");
}
