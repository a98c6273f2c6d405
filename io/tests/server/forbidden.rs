//! What a provider names and nobody fetches: private addresses, and this server itself. Client and operator are told which and why.

use holdfast_core::config::User;
use holdfast_core::input::{Failure, Loss, Note};
use holdfast_io::providers::{Guide, ProviderSettings, Reach};
use holdfast_io::server::{ConnId, LinkId, Settings};

use crate::desk::Desk;
use crate::providers::{desk_of, provider};
use crate::titles::{body, status_of};

/// Anna, and a provider that may lead so near and has these: names, and where each is.
fn desk(reach: Reach, entries: &[(&str, &str)]) -> Desk {
    let own = ProviderSettings { reach, guide: Guide::None, ..provider("http://p.example/x.m3u", &[("box", "b")]) };
    let listeners = vec!["0.0.0.0:8080".parse().unwrap()];
    let users = vec![User { name: "anna".into(), ..User::default() }];
    let mut desk = desk_of(vec![own], users, Settings { listeners, ..Settings::default() });
    let entry = |(name, url): &(&str, &str)| format!("#EXTINF:-1 group-title=\"G\",{name}\n{url}\n");
    desk.serves(format!("#EXTM3U\n{}", entries.iter().map(entry).collect::<String>()));
    desk
}

/// Asks for a title as the list has it, or as HLS.
fn asks(desk: &mut Desk, name: &str) -> ConnId {
    let list = desk.asks("/get.php?username=anna&password=x");
    let mut lines = list.lines();
    lines.find(|line| line.ends_with(&format!(",{name}"))).unwrap_or_else(|| panic!("{name}: {list}"));
    let path = lines.next().unwrap().strip_prefix("http://edge.example").unwrap().to_owned();
    desk.wants(&path, "")
}

/// What an operator reads of accounts that failed and of sources that are of no use.
fn told(desk: &mut Desk) -> Vec<String> {
    let notes = std::mem::take(&mut desk.notes);
    let why = |note: &Note| match note {
        Note::AccountFailed { .. } => desk.server.about(note).why,
        Note::SourceLost { loss, .. } => {
            assert_ne!(*loss, Loss::Forbidden, "no credentials would help");
            None
        }
        Note::SourceFault { why, .. } => Some(why.clone()),
        Note::PlaylistFault { why, .. } => {
            Some(format!("a playlist of {:?}: {why}", desk.server.about(note).title.unwrap_or_default()))
        }
        _ => None,
    };
    notes.iter().filter_map(why).collect()
}

fn leads(desk: &mut Desk, link: LinkId, peer: &str, own: Option<&str>) {
    let own = own.map(|own| own.parse().unwrap());
    desk.server.link_connected_from(desk.time(), link, peer.parse().unwrap(), own);
    desk.turn();
}

fn playlist(desk: &mut Desk, content: &str) {
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}", content.len()));
}

const NEAR: &str = "a private address, which is refused; `allow_private` of the provider would allow it";

#[test]
fn whatever_leads_to_a_private_address_says_so_and_names_host_and_key() {
    let entries = [
        ("Film", "http://10.0.0.5/movie/user/word/1.mp4"),
        ("Lists", "http://10.0.0.5/live/user/word/2.m3u8"),
        ("Dash", "http://10.0.0.5/live/user/word/3.mpd"),
        ("Stream", "http://10.0.0.5/live/user/word/4.ts"),
    ];
    for (name, _) in entries {
        let mut desk = desk(Reach::Public, &entries);
        let client = asks(&mut desk, name);
        assert!(desk.links.is_empty(), "{name}");
        let why = format!("it leads to 10.0.0.5, {NEAR}");
        assert_eq!(told(&mut desk), [why.as_str()], "{name}");
        let answer = desk.read(client);
        assert!(status_of(&answer) == 502 && answer.contains(&why), "{name}: {answer}");
    }
}

#[test]
fn a_redirect_and_a_name_that_lead_to_a_private_address_say_so_too() {
    let entries = [
        ("Film", "http://a.example/movie/user/word/1.mp4"),
        ("Lists", "http://a.example/live/user/word/2.m3u8"),
        ("Stream", "http://a.example/live/user/word/4.ts"),
    ];
    for (name, _) in entries {
        for redirected in [true, false] {
            let mut desk = desk(Reach::Public, &entries);
            let client = asks(&mut desk, name);
            let host = if redirected {
                desk.answers("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.5/secret\r\nContent-Length: 0\r\n\r\n");
                "10.0.0.5"
            } else {
                let (link, _) = desk.link();
                leads(&mut desk, link, "10.0.0.5:80", None);
                assert!(!desk.asked.contains_key(&link));
                "a.example (10.0.0.5)"
            };
            let why = format!("it leads to {host}, {NEAR}");
            assert_eq!(told(&mut desk), [why.as_str()], "{name}");
            let answer = desk.read(client);
            assert!(status_of(&answer) == 502 && answer.contains(&why), "{name}: {answer}");
        }
    }
}

#[test]
fn a_playlist_of_private_addresses_says_which_and_its_children_too() {
    for content in [
        "#EXTM3U\n#EXTINF:4,\nhttp://10.0.0.5/7.ts\n",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://10.0.0.5/a.m3u8\n",
        "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"http://10.0.0.5/k\"\n#EXTINF:4,\n7.ts\n",
    ] {
        let mut desk = desk(Reach::Public, &[("Lists", "http://a.example/live/user/word/2.m3u8")]);
        let client = asks(&mut desk, "Lists");
        playlist(&mut desk, content);
        let answer = desk.read(client);
        let why = format!("it leads to 10.0.0.5, {NEAR}");
        assert!(status_of(&answer) == 502 && answer.contains(&why), "{answer}");
        assert!(told(&mut desk)[0].ends_with(&why));
    }
    let mut desk = desk(Reach::Public, &[("Lists", "http://a.example/live/user/word/2.m3u8")]);
    let client = asks(&mut desk, "Lists");
    playlist(&mut desk, "#EXTM3U\n#EXTINF:4,\nhttp://nas.example/7.ts\n#EXT-X-ENDLIST\n");
    let answer = desk.read(client);
    let part = body(&answer).lines().find(|line| line.contains("hls/")).unwrap().trim_start_matches("../").to_owned();
    let client = desk.wants(&format!("/{part}"), "");
    let (link, _) = desk.link();
    leads(&mut desk, link, "10.0.0.5:80", None);
    let answer = desk.read(client);
    assert!(answer.contains(&format!("it leads to nas.example (10.0.0.5), {NEAR}")), "{answer}");
}

#[test]
fn the_line_that_is_told_is_the_one_with_that_address() {
    let content = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nftp://a.example/5.ts\n#EXTINF:4,\nhttp://10.0.0.5/6.ts\n\
                   #EXTINF:4,\n7.ts\n#EXT-X-ENDLIST\n";
    let mut desk = desk(Reach::Public, &[("Lists", "http://a.example/live/user/word/2.m3u8")]);
    asks(&mut desk, "Lists");
    playlist(&mut desk, content);
    let told = told(&mut desk);
    assert!(told[0].contains("line 4 of the playlist") && !told[0].contains("10.0.0.5"), "{told:?}");
}

#[test]
fn what_is_left_out_of_the_playlists_of_a_title_is_told_once() {
    let content = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n6.ts\n#EXT-X-KEY:METHOD=AES-128,URI=\"http://10.0.0.5/k\"\n\
                   #EXTINF:4,\n7.ts\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\n8.ts\n#EXT-X-ENDLIST\n";
    let mut desk = desk(Reach::Public, &[("Lists", "http://a.example/live/user/word/2.m3u8")]);
    for round in 0..3 {
        let client = asks(&mut desk, "Lists");
        playlist(&mut desk, content);
        let answer = desk.read(client);
        assert_eq!(status_of(&answer), 200, "{answer}");
        let list = body(&answer);
        assert!(list.matches("hls/").count() == 2 && list.matches("#EXT-X-GAP\ndata:,").count() == 1, "{list}");
        let why = format!("a playlist of \"Lists\": line 5 of the playlist names a Key: it leads to 10.0.0.5, {NEAR}");
        assert_eq!(told(&mut desk), if round == 0 { vec![why] } else { Vec::new() });
    }
}

#[test]
fn a_key_without_an_address_costs_what_needs_it_and_is_told() {
    let lists = [("Lists", "http://a.example/live/user/word/2.m3u8")];
    let key = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128\n#EXTINF:4,\n6.ts\n";
    let why =
        "line 3 of the playlist has a Key without an address (URI), which nothing behind it can be played without";
    // Where something else can be played, it is.
    let mut some = desk(Reach::Public, &lists);
    for round in 0..2 {
        let client = asks(&mut some, "Lists");
        playlist(&mut some, &format!("{key}#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\n7.ts\n#EXT-X-ENDLIST\n"));
        let answer = some.read(client);
        let list = body(&answer);
        assert!(list.matches("hls/").count() == 1 && list.matches("#EXT-X-GAP\ndata:,").count() == 1, "{answer}");
        assert_eq!(told(&mut some).iter().filter(|told| told.contains(why)).count(), 1 - round);
    }
    // Where nothing can, client and operator are told what that is.
    let mut none = desk(Reach::Public, &lists);
    let client = asks(&mut none, "Lists");
    playlist(&mut none, &format!("{key}#EXT-X-ENDLIST\n"));
    let answer = none.read(client);
    assert!(status_of(&answer) == 502 && answer.contains(why), "{answer}");
    assert_eq!(told(&mut none), [why]);
}

#[test]
fn nothing_of_a_providers_is_fetched_from_this_server() {
    let entries = [
        ("Film", "http://127.0.0.1:8080/api/status.mp4"),
        ("Lists", "http://127.0.0.1:8080/live/user/word/2.m3u8"),
        ("Own stream", "http://127.0.0.1:8080/live/user/word/4.ts"),
        ("Own page", "http://127.0.0.1:8080/api/status?x=.ts"),
        ("Name", "http://here.example:8080/movie/user/word/5.mp4"),
        ("Named stream", "http://here.example:8080/live/user/word/7.ts"),
        ("Parts", "http://127.0.0.1:8081/live/user/word/6.m3u8"),
    ];
    let why =
        |host: &str| format!("it leads to port 8080 of {host}, where this server itself listens, which is refused");
    for name in ["Film", "Lists", "Own stream", "Own page"] {
        let mut desk = desk(Reach::Machine, &entries);
        let client = asks(&mut desk, name);
        assert!(desk.links.is_empty(), "{name}");
        assert_eq!(told(&mut desk), [why("127.0.0.1")], "{name}");
        assert!(desk.read(client).contains(&why("127.0.0.1")), "{name}");
    }
    // A name shows it when it is connected to.
    for (name, from, refused) in [
        ("Name", "192.0.2.1", true),
        ("Name", "192.0.2.2", false),
        ("Named stream", "192.0.2.1", true),
        ("Named stream", "192.0.2.2", false),
    ] {
        let mut desk = desk(Reach::Machine, &entries);
        let client = asks(&mut desk, name);
        let (link, _) = desk.link();
        leads(&mut desk, link, "192.0.2.1:8080", Some(from));
        assert_eq!(desk.asked.contains_key(&link), !refused);
        if refused {
            assert!(desk.read(client).contains(&why("here.example (192.0.2.1)")));
        }
    }
    // Another server on this machine is another; what it names of this one is not fetched.
    let mut desk = desk(Reach::Machine, &entries);
    let client = asks(&mut desk, "Parts");
    playlist(&mut desk, "#EXTM3U\n#EXTINF:4,\nhttp://127.0.0.1:8080/api/status\n#EXTINF:4,\n7.ts\n#EXT-X-ENDLIST\n");
    let answer = desk.read(client);
    let list = body(&answer);
    assert!(list.matches("hls/").count() == 1 && list.contains("#EXT-X-GAP\ndata:,"), "{answer}");
    assert!(told(&mut desk)[0].contains(&why("127.0.0.1")));
    let part = list.lines().find(|line| line.contains("hls/")).unwrap().trim_start_matches("../").to_owned();
    let client = desk.wants(&format!("/{part}"), "");
    desk.answers("HTTP/1.1 302 Found\r\nLocation: http://localhost:8080/api/status\r\nContent-Length: 0\r\n\r\n");
    assert!(desk.read(client).contains(&why("localhost")));
}

/// What is behind a public name, where no address shows that it is this server, shows itself by what comes back: with whichever
/// login its provider has, by whichever host a proxy on the way calls it, and whether it is told of servers on the way or not.
#[test]
fn what_leads_back_through_a_public_name_ends_at_once_as_a_circle() {
    let entries = [
        ("Stream", "http://public.example/live/user/word/4.ts"),
        ("Short", "http://public.example/user/word/5"),
        ("Film", "http://public.example/movie/user/word/1.mp4"),
        ("Lists", "http://public.example/live/user/word/2.m3u8"),
        ("Episode S01E01", "http://public.example/series/user/word/3.mkv"),
        ("Prefix", "http://public.example/edge/one/movie/user/word/6.mp4"),
    ];
    for (name, via) in entries.iter().flat_map(|(name, _)| [(name, false), (name, true)]) {
        for host in ["public.example", "upstream"] {
            let own = ProviderSettings {
                guide: Guide::None,
                via,
                user_agent: if via { "VLC/3".into() } else { String::new() },
                ..provider("http://p.example/x.m3u", &[("box", "b"), ("tube", "c"), ("set", "d")])
            };
            let users = vec![User { name: "anna".into(), ..User::default() }];
            let mut desk = desk_of(vec![own], users, Settings::default());
            let entry = |(name, url): &(&str, &str)| format!("#EXTINF:-1 group-title=\"G\",{name}\n{url}\n");
            desk.serves(format!("#EXTM3U\n{}", entries.iter().map(entry).collect::<String>()));
            let client = asks(&mut desk, name);
            let (link, _) = desk.link();
            desk.link_opens(link);
            let asked = String::from_utf8(desk.asked.remove(&link).unwrap()).unwrap();
            assert_eq!(asked.contains("Via: "), via, "{asked}");
            // What a proxy changes, and what tells who asked where nothing else does.
            let asked = asked.replace("Host: public.example", &format!("Host: {host}"));
            let mut asked = asked.replace("GET /edge/one/", "GET /");
            if via {
                asked = asked.replace("VLC/3", "Proxy");
            }
            let back = desk.ask(&asked);
            assert_eq!(status_of(&back), 508, "{name} by {host}: {back}");
            assert_eq!(desk.server.failed_logins(), 0, "nobody guesses");
            desk.link_says(link, back);
            desk.run(desk.now + 5000);
            assert!(desk.links.is_empty() && desk.asked.is_empty(), "{name} is asked for once");
            let answer = desk.read(client);
            let live = answer.contains("no-source");
            let words = if live { "answers 508: it is this server" } else { "its address leads back to this server" };
            assert!(status_of(&answer) == 502 && answer.contains(words), "{name}: {answer}");
            let told = |note: &Note| match note {
                Note::SourceLost { loss, .. } => {
                    assert_eq!(*loss, Loss::Loop);
                    true
                }
                Note::AccountFailed { failure, .. } => {
                    assert_eq!(*failure, Failure::Unusable);
                    true
                }
                _ => false,
            };
            assert_eq!(desk.notes.iter().filter(|note| told(note)).count(), 1, "{name}: {:?}", desk.notes);
        }
    }
}
