//! What leads back here by a way that hides it: a proxy that changes the path, the host and who asks.

use std::collections::BTreeMap;

use holdfast_core::config::{Account, Provider};
use holdfast_io::server::{ConnId, LinkId};

use crate::desk::Desk;
use crate::titles::{desk_of, status_of};

/// A proxy between a server's own links and its clients.
struct Proxy {
    relayed: BTreeMap<LinkId, ConnId>,
    asked: usize,
}

impl Proxy {
    /// Passes on what there is in both directions.
    fn turn(&mut self, desk: &mut Desk) {
        for (link, _) in desk.links.clone() {
            if self.relayed.contains_key(&link) {
                continue;
            }
            desk.link_opens(link);
            let Some(asked) = desk.asked.remove(&link) else { continue };
            let asked = String::from_utf8(asked).unwrap();
            let lines = asked.replace("GET /hidden/", "GET /");
            let lines = lines.split("\r\n").map(|line| match line.split_once(": ") {
                Some(("Host", _)) => "Host: inside".to_owned(),
                Some(("User-Agent", _)) => "User-Agent: proxy".to_owned(),
                _ => line.to_owned(),
            });
            let client = desk.connect();
            desk.send(client, lines.collect::<Vec<_>>().join("\r\n"));
            self.relayed.insert(link, client);
            self.asked += 1;
        }
        for (link, client) in self.relayed.clone() {
            if !desk.links.iter().any(|(open, _)| *open == link) {
                // Whoever asked is gone, which this proxy does not pass on.
                continue;
            }
            let answer = desk.read(client);
            if !answer.is_empty() {
                desk.link_says(link, answer);
            }
        }
    }
}

/// How often a circle asks in ten seconds for what one player wanted once, and what that player is told.
fn asked(path: &str, address: &str) -> (usize, u16) {
    let list = format!("#EXTM3U\n#EXTINF:-1 group-title=\"Films\",Film\n{address}\n");
    let unlimited = || Account { max_connections: 0, ..Account::default() };
    let provider = Provider { accounts: vec![unlimited(), unlimited()], ..Provider::default() };
    let mut desk = desk_of(&list, provider, |_| ());
    let client = desk.wants(path, "");
    let mut proxy = Proxy { relayed: BTreeMap::new(), asked: 0 };
    let began = desk.now;
    while desk.now < began + 10_000 {
        proxy.turn(&mut desk);
        desk.run(desk.now + 2);
    }
    (proxy.asked, status_of(&desk.read(client)))
}

#[test]
fn a_circle_that_nothing_gives_away_is_bounded() {
    let film = ("/movie/anna/anna-secret/728194988.mp4", "728194988.mp4");
    let (times, status) = asked(film.0, &format!("http://provider.example/hidden/movie/anna/anna-secret/{}", film.1));
    assert!((50..=310).contains(&times), "the provider is asked {times} times");
    assert!(status >= 400, "its player is told {status}");
}
