use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};

use super::super::script::{Bench, Told};
use super::*;
use crate::net::fake::{Fake, LIES, Lie, Plan};
use crate::net::tls::{self, Trust};
use crate::server::{Action, ConnId};

#[path = "made_tests.rs"]
mod made;
#[path = "race_tests.rs"]
mod race;

fn link(index: u32) -> LinkId {
    LinkId::from_parts(index, 0)
}

fn bench(seed: u64, odds: u64) -> (Fake, Bench<Fake>) {
    let fake = Fake::new(seed, odds);
    let bench = Bench::on(fake.clone(), Trust::default());
    (fake, bench)
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn plan(fake: &Fake, address: impl Into<IpAddr>, plan: Plan) {
    fake.0.borrow_mut().plans.insert((address.into(), 80).into(), plan);
}

fn name(fake: &Fake, name: &str, after: u64, addresses: &[IpAddr]) {
    fake.0.borrow_mut().names.insert(name.into(), (after, addresses.into()));
}

/// The addresses that were tried, in order.
fn tried(fake: &Fake) -> Vec<IpAddr> {
    fake.0.borrow().conns.iter().filter_map(|conn| conn.to).map(|to| to.ip()).collect()
}

const NOT_TLS: (u16, bool) = (80, false);

#[test]
fn how_long_a_client_is_waited_for_is_said_to_the_kernel() {
    let (fake, mut bench) = bench(1, 0);
    let client = ConnId::from_parts(0, 0);
    bench.driver.server.client = Some(client);
    let number = fake.connect(0);
    bench.turns(3);
    assert_eq!(fake.0.borrow().conns[number].patience, None);
    let patience = Duration::from_secs(90);
    for of in [ConnId::from_parts(1, 0), client] {
        bench.driver.server.actions.push_back(Action::Patience(of, patience));
        bench.driver.act();
    }
    assert_eq!(fake.0.borrow().conns[number].patience, Some(patience));
}

#[test]
fn a_link_opens_carries_bytes_both_ways_and_ends() {
    let (fake, mut bench) = bench(1, 0);
    plan(&fake, HERE, Plan::Accepts(3));
    bench.connect(link(0), "127.0.0.1", NOT_TLS, b"ask");
    bench.turns(3);
    assert_eq!(bench.told(link(0)).address, None);
    bench.turns(2);
    assert_eq!(bench.told(link(0)).address, Some((HERE, 80).into()));
    assert_eq!(fake.take(0, 100), b"ask");
    fake.send(0, b"answer");
    bench.turns(2);
    assert_eq!(bench.told(link(0)).got, b"answer");
    fake.fin(0);
    bench.turns(2);
    assert!(bench.told(link(0)).eof && !bench.told(link(0)).closed);
    assert_eq!(fake.open_descriptors(), 1, "it is the server that closes it");
    bench.close(link(0));
    assert_eq!(fake.open_descriptors(), 0);
    bench.end();
}

#[test]
fn what_an_origin_says_before_it_is_asked_is_read() {
    let (authority, secret) = origin_tls("origin.example");
    for encrypted in [false, true] {
        let fake = Fake::new(1, 0);
        let mut bench = Bench::on(fake.clone(), authority.trust());
        name(&fake, "origin.example", 0, &[HERE]);
        plan(&fake, HERE, Plan::Accepts(1));
        bench.connect(link(0), "origin.example", (80, encrypted), b"");
        let mut origin = ServerConnection::new(secret.clone()).unwrap();
        origin.writer().write_all(b"greeting").unwrap();
        bench.turns(2);
        if encrypted {
            bench.turns(2);
            pump(&fake, 0, &mut origin);
        } else {
            fake.send(0, b"greeting");
        }
        bench.turns(4);
        // With TLS 1.3 an origin may speak before it has heard the client's Finished; rustls does not.
        if encrypted {
            pump(&fake, 0, &mut origin);
            bench.turns(2);
        }
        assert_eq!(bench.told(link(0)).got, b"greeting", "encrypted: {encrypted}");
    }
}

#[test]
fn what_is_written_when_the_origin_takes_little_is_written_to_its_end() {
    let (fake, mut bench) = bench(1, 0);
    plan(&fake, HERE, Plan::Accepts(0));
    let long: Vec<u8> = (0..5000).map(|n| n as u8).collect();
    bench.connect(link(0), "127.0.0.1", NOT_TLS, &long);
    let mut sent = Vec::new();
    for _ in 0..20 {
        bench.turns(2);
        sent.extend(fake.take(0, 400));
    }
    assert_eq!(sent, long);
}

#[test]
fn addresses_of_a_name_are_tried_in_turn_the_next_at_once() {
    let (fake, mut bench) = bench(1, 0);
    let all: Vec<IpAddr> = (1..=6).map(|last| Ipv4Addr::new(192, 0, 2, last).into()).collect();
    name(&fake, "origin.example", 2, &all);
    for (address, does) in all.iter().zip([
        Plan::Refuses(1),
        Plan::RefusesAtOnce,
        Plan::Unreachable(2),
        Plan::Refuses(0),
        Plan::Accepts(1),
        Plan::Accepts(0),
    ]) {
        plan(&fake, *address, does);
    }
    bench.connect(link(0), "origin.example", NOT_TLS, b"");
    let before = fake.0.borrow().now;
    bench.turns(20);
    assert_eq!(bench.told(link(0)).address, Some((all[4], 80).into()));
    assert_eq!(tried(&fake), all[..5]);
    assert_eq!(fake.open_descriptors(), 1);
    assert!(fake.0.borrow().now.since(before) < Duration::from_millis(1), "nothing is waited for");
}

#[test]
fn no_more_than_some_addresses_are_tried() {
    let (fake, mut bench) = bench(1, 0);
    let all: Vec<IpAddr> = (1..=100).map(|last| Ipv4Addr::new(192, 0, 2, last).into()).collect();
    name(&fake, "origin.example", 0, &all);
    bench.connect(link(0), "origin.example", NOT_TLS, b"");
    bench.turns(100);
    assert_eq!(bench.told(link(0)).failed, Some(ConnectError::Refused));
    assert_eq!(tried(&fake), all[..ADDRESSES]);
}

#[test]
fn why_a_link_fails_is_told_once_and_nothing_is_left() {
    let (fake, mut bench) = bench(1, 0);
    name(&fake, "nothing.example", 1, &[]);
    name(&fake, "origin.example", 1, &[HERE, Ipv6Addr::LOCALHOST.into()]);
    plan(&fake, HERE, Plan::Refuses(1));
    plan(&fake, Ipv6Addr::LOCALHOST, Plan::Unreachable(1));
    plan(&fake, Ipv4Addr::new(192, 0, 2, 1), Plan::RefusesAtOnce);
    for (place, (host, error)) in [
        ("unknown.example", ConnectError::Resolve("no such name".into())),
        ("nothing.example", ConnectError::Resolve("it has no address".into())),
        ("origin.example", ConnectError::Unreachable),
        ("127.0.0.1", ConnectError::Refused),
        ("::1", ConnectError::Unreachable),
        ("192.0.2.1", ConnectError::Refused),
    ]
    .into_iter()
    .enumerate()
    {
        let link = link(place as u32);
        bench.connect(link, host, NOT_TLS, b"");
        bench.turns(10);
        assert_eq!(bench.told(link).failed, Some(error), "{host}");
        bench.close(link);
    }
    assert_eq!(fake.open_descriptors(), 0);
    bench.end();
}

#[test]
fn for_want_of_descriptors_a_link_fails_in_words() {
    let (fake, mut bench) = bench(1, 0);
    fake.0.borrow_mut().descriptors = 0;
    bench.connect(link(0), "127.0.0.1", NOT_TLS, b"");
    assert!(matches!(&bench.told(link(0)).failed, Some(ConnectError::Other(words)) if words.contains("open files")));
}

#[test]
fn a_link_that_is_closed_at_any_stage_leaves_nothing_and_hears_nothing() {
    let (authority, secret) = origin_tls("origin.example");
    let fake = Fake::new(1, 0);
    let mut bench = Bench::on(fake.clone(), authority.trust());
    name(&fake, "origin.example", 3, &[HERE, Ipv6Addr::LOCALHOST.into()]);
    plan(&fake, HERE, Plan::Refuses(3));
    plan(&fake, Ipv6Addr::LOCALHOST, Plan::Accepts(3));
    for turns in 0..40 {
        let link = LinkId::from_parts(0, turns);
        let before = fake.0.borrow().conns.len();
        bench.connect(link, "origin.example", (80, true), b"ask");
        let mut origin = None;
        for _ in 0..turns {
            bench.turns(1);
            let (conns, number) = (fake.0.borrow().conns.len(), before + 1);
            if conns > number {
                pump(&fake, number, origin.get_or_insert_with(|| ServerConnection::new(secret.clone()).unwrap()));
            }
        }
        assert!(turns < 39 || bench.told(link).address.is_some(), "so many turns bring it to its end");
        bench.close(link);
        assert_eq!(fake.open_descriptors(), 0, "after {turns} turns");
        let conns = fake.0.borrow().conns.len();
        // A late answer of the look-up comes, or does not.
        bench.turns(20);
        assert_eq!(fake.0.borrow().conns.len(), conns, "a link that is closed connects");
    }
}

#[test]
fn a_place_that_is_used_again_is_not_taken_for_the_one_before() {
    let (fake, mut bench) = bench(1, 0);
    name(&fake, "slow.example", 5, &[Ipv4Addr::new(192, 0, 2, 1).into()]);
    name(&fake, "slower.example", 9, &[HERE]);
    plan(&fake, HERE, Plan::Accepts(0));
    bench.connect(link(0), "slow.example", NOT_TLS, b"");
    bench.close(link(0));
    let next = LinkId::from_parts(0, 1);
    bench.connect(next, "slower.example", NOT_TLS, b"");
    bench.turns(20);
    assert_eq!(bench.told(next).address, Some((HERE, 80).into()));
    assert_eq!(tried(&fake), [HERE]);
    bench.driver.close_link(link(0));
    assert_eq!(fake.open_descriptors(), 1, "a stale id closes nothing");
    let last = LinkId::from_parts(0, 2);
    bench.close(next);
    bench.connect(last, "slower.example", NOT_TLS, b"");
    bench.driver.resolved(next, Ok(Vec::new()));
    bench.turns(20);
    assert_eq!(bench.told(last).address, Some((HERE, 80).into()), "an answer to another was taken");
}

#[test]
fn a_reset_is_told_as_such_and_the_descriptor_is_closed() {
    let (fake, mut bench) = bench(1, 0);
    plan(&fake, HERE, Plan::Accepts(0));
    bench.connect(link(0), "127.0.0.1", NOT_TLS, b"");
    bench.turns(3);
    bench.told_mut(link(0)).deaf = true;
    fake.send(0, b"x");
    bench.turns(3);
    fake.reset(0);
    bench.turns(3);
    assert!(bench.told(link(0)).closed && !bench.told(link(0)).eof);
    assert_eq!(fake.open_descriptors(), 0);
    bench.end();
}

#[test]
fn what_was_not_wanted_is_read_when_it_is_though_no_event_says_so() {
    let (fake, mut bench) = bench(1, 0);
    plan(&fake, HERE, Plan::Accepts(0));
    bench.connect(link(0), "127.0.0.1", NOT_TLS, b"");
    bench.turns(3);
    bench.told_mut(link(0)).deaf = true;
    for _ in 0..10 {
        fake.send(0, b"later");
        bench.turns(2);
    }
    assert_eq!((bench.told(link(0)).got.len(), bench.driver.withheld.len()), (0, 1));
    assert!(bench.driver.queue.is_empty(), "it waits without turning");
    bench.told_mut(link(0)).deaf = false;
    bench.turns(2);
    assert_eq!(bench.told(link(0)).got.len(), 50);
    assert!(bench.driver.withheld.is_empty());
}

#[test]
fn an_origin_that_always_has_more_does_not_starve_the_others() {
    let (fake, mut bench) = bench(1, 0);
    plan(&fake, HERE, Plan::Accepts(0));
    for place in 0..2 {
        bench.connect(link(place), "127.0.0.1", NOT_TLS, b"");
    }
    bench.turns(3);
    fake.send(0, &[b'x'; 1_000_000]);
    fake.send(1, b"x");
    bench.turns(1);
    assert_eq!(bench.told(link(1)).got, b"x");
    assert!(bench.told(link(0)).got.len() < 1_000_000, "all at once");
    bench.turns(10);
    assert_eq!(bench.told(link(0)).got.len(), 1_000_000);
}

/// Certificates of an origin, and the file that an edge trusts.
struct Authority {
    pem: String,
}

impl Authority {
    fn trust(&self) -> Trust {
        let own = format!("holdfast-{}-{:?}.pem", std::process::id(), thread::current().id());
        let file = std::env::temp_dir().join(own);
        std::fs::write(&file, &self.pem).unwrap();
        let trust = Trust::with_authorities(&file);
        std::fs::remove_file(&file).unwrap();
        trust.unwrap()
    }
}

fn origin_tls(name: &str) -> (Authority, Arc<ServerConfig>) {
    origin_tls_of(vec![name.into()])
}

fn origin_tls_of(names: Vec<String>) -> (Authority, Arc<ServerConfig>) {
    let own = rcgen::generate_simple_self_signed(names).unwrap();
    let pem = own.cert.pem();
    let secret = tls::server_config(pem.as_bytes(), own.signing_key.serialize_pem().as_bytes()).unwrap();
    (Authority { pem }, secret)
}

/// Moves what is on the wire between a link and its origin.
fn pump(fake: &Fake, number: usize, origin: &mut ServerConnection) {
    let taken = fake.take(number, 500);
    let mut taken = &taken[..];
    while !taken.is_empty() {
        origin.read_tls(&mut taken).unwrap();
        let _ = origin.process_new_packets();
    }
    let mut wire = Vec::new();
    while origin.wants_write() {
        origin.write_tls(&mut wire).unwrap();
    }
    if !wire.is_empty() {
        fake.send(number, &wire);
    }
}

#[test]
fn tls_is_spoken_with_who_is_trusted_and_is_who_was_asked_for() {
    let (authority, secret) = origin_tls("origin.example");
    let (stranger, _) = origin_tls("origin.example");
    for (asked, authority, words) in [
        ("origin.example", &authority, None),
        ("127.0.0.1", &authority, Some("not valid for name")),
        ("origin.example", &stranger, Some("invalid peer certificate")),
        ("no name", &authority, Some("invalid dns name")),
    ] {
        let fake = Fake::new(1, 0);
        let mut bench = Bench::on(fake.clone(), authority.trust());
        name(&fake, "origin.example", 0, &[HERE]);
        name(&fake, "no name", 0, &[HERE]);
        plan(&fake, HERE, Plan::Accepts(0));
        bench.connect(link(0), asked, (80, true), b"ask");
        let mut origin = ServerConnection::new(secret.clone()).unwrap();
        // What comes with the last flight of the handshake is not left behind.
        origin.writer().write_all(b"answer").unwrap();
        bench.turns(3);
        for _ in 0..20 {
            pump(&fake, 0, &mut origin);
            bench.turns(3);
        }
        let told = bench.told(link(0));
        if let Some(words) = words {
            let Some(ConnectError::Tls(why)) = &told.failed else { panic!("{:?} of {asked}", told.failed) };
            assert!(why.contains(words), "{why}");
            assert_eq!(fake.open_descriptors(), 0);
            continue;
        }
        assert_eq!((told.address, &told.got[..]), (Some((HERE, 80).into()), &b"answer"[..]));
        let mut asked = [0; 3];
        origin.reader().read_exact(&mut asked).unwrap();
        assert_eq!((&asked, origin.server_name()), (b"ask", Some("origin.example")));
        assert_eq!(origin.alpn_protocol(), Some(&b"http/1.1"[..]));
        bench.close(link(0));
        pump(&fake, 0, &mut origin);
        assert_eq!(origin.reader().read(&mut asked).unwrap(), 0, "the end is said");
    }
}

#[test]
fn a_handshake_longer_than_one_turn_reads_is_read_to_its_end() {
    let (authority, secret) = origin_tls_of((0..1500).map(|n| format!("{n}.origin.example")).collect());
    let fake = Fake::new(1, 0);
    let mut bench = Bench::on(fake.clone(), authority.trust());
    name(&fake, "7.origin.example", 0, &[HERE]);
    plan(&fake, HERE, Plan::Accepts(0));
    bench.connect(link(0), "7.origin.example", (80, true), b"");
    bench.turns(3);
    pump(&fake, 0, &mut ServerConnection::new(secret).unwrap());
    bench.turns(10);
    let told = bench.told(link(0));
    assert_eq!((told.address, &told.failed), (Some((HERE, 80).into()), &None));
}

#[test]
fn a_handshake_that_ends_or_is_none_is_told_as_such() {
    for (sent, words) in [(&b""[..], "ended within"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "corrupt")] {
        let (authority, _) = origin_tls("origin.example");
        let fake = Fake::new(1, 0);
        let mut bench = Bench::on(fake.clone(), authority.trust());
        plan(&fake, HERE, Plan::Accepts(0));
        bench.connect(link(0), "127.0.0.1", (80, true), b"ask");
        bench.turns(3);
        fake.send(0, sent);
        fake.fin(0);
        bench.turns(3);
        let told = bench.told(link(0));
        assert!(matches!(&told.failed, Some(ConnectError::Tls(why)) if why.contains(words)), "{:?}", told.failed);
        assert_eq!(fake.open_descriptors(), 0);
    }
}

/// An origin that sends back what it gets, and ends when it has all.
struct Echo {
    tls: Option<ServerConnection>,
    expected: usize,
    got: usize,
    /// What is to be sent, as it is on the wire.
    wire: Vec<u8>,
    ended: bool,
}

impl Echo {
    fn act(&mut self, fake: &Fake, number: usize) {
        let taken = fake.take(number, fake.random(700) as usize);
        match &mut self.tls {
            Some(tls) => {
                let mut taken = &taken[..];
                while !taken.is_empty() {
                    tls.read_tls(&mut taken).unwrap();
                    tls.process_new_packets().unwrap();
                }
                let mut got = Vec::new();
                let _ = tls.reader().read_to_end(&mut got);
                self.got += got.len();
                tls.writer().write_all(&got).unwrap();
                while tls.wants_write() {
                    tls.write_tls(&mut self.wire).unwrap();
                }
            }
            None => {
                self.got += taken.len();
                self.wire.extend(taken);
            }
        }
        if fake.0.borrow().conns[number].ended || self.ended {
            return;
        }
        let piece: Vec<u8> = self.wire.drain(..self.wire.len().min(fake.random(900) as usize)).collect();
        if !piece.is_empty() {
            fake.send(number, &piece);
        }
        if self.got == self.expected && self.wire.is_empty() {
            self.ended = true;
            fake.fin(number);
        }
    }
}

#[test]
fn whatever_the_kernel_does_links_carry_all_or_say_that_they_do_not() {
    let (authority, secret) = origin_tls("origin.example");
    let (mut bitten, mut echoed, mut failed, mut closed) = ([0; LIES], 0, 0, 0);
    for seed in 1..=120 {
        let encrypted = seed % 3 == 0;
        let fake = Fake::new(seed, 4 + seed % 20);
        // An event for nothing would wake a link that waits for nothing.
        fake.0.borrow_mut().never = (seed % 2 == 0).then_some(Lie::Spurious);
        let mut bench = Bench::on(fake.clone(), authority.trust());
        let addresses: Vec<IpAddr> = (1..=5).map(|last| Ipv4Addr::new(192, 0, 2, last).into()).collect();
        for address in &addresses {
            let after = fake.random(4);
            let plans = [Plan::Accepts(after), Plan::Refuses(after), Plan::Unreachable(after), Plan::RefusesAtOnce];
            plan(&fake, *address, plans[fake.random(4) as usize]);
        }
        plan(&fake, HERE, Plan::Silent);
        let addresses = &addresses[..1 + fake.random(5) as usize];
        // Where the others fail, this one may still connect, and how long that may take is for the server to know.
        let waits = seed % 4 == 1;
        if waits {
            plan(&fake, addresses[0], Plan::Silent);
        }
        name(&fake, "origin.example", fake.random(5), addresses);
        let count = 1 + seed as u32 % 5;
        let mut silent = Vec::new();
        let content: Vec<u8> = (0..fake.random(6000)).map(|n| n as u8).collect();
        for place in 0..count {
            let host = if place > 0 && fake.random(8) == 0 { "127.0.0.1" } else { "origin.example" };
            if waits || host == "127.0.0.1" {
                silent.push(link(place));
            }
            bench.connect(link(place), host, (80, encrypted), &content);
        }
        let mut origins = BTreeMap::<usize, Echo>::new();
        let settled = |told: &Told| told.is_over() || told.eof;
        for turn in 0..3000 {
            bench.turns(1);
            let mut links = bench.driver.server.links.iter();
            if turn > 200 && links.all(|(link, told)| settled(told) || silent.contains(link)) {
                break;
            }
            let conns = fake.0.borrow().conns.len();
            for number in 0..conns {
                let new = || Echo {
                    tls: encrypted.then(|| ServerConnection::new(secret.clone()).unwrap()),
                    expected: content.len(),
                    got: 0,
                    wire: Vec::new(),
                    ended: false,
                };
                origins.entry(number).or_insert_with(new).act(&fake, number);
                // Not for ever: that, and closing, would end what waits for nothing.
                if turn < 60 && fake.random(60) == 0 {
                    fake.reset(number);
                    origins.get_mut(&number).unwrap().ended = true;
                }
            }
            let any = link(fake.random(u64::from(count)) as u32);
            match fake.random(300) {
                0..5 if turn < 60 => bench.close(any),
                5..15 => {
                    let told = bench.told_mut(any);
                    told.deaf = !told.deaf;
                }
                _ => {}
            }
        }
        for told in bench.driver.server.links.values_mut() {
            told.deaf = false;
        }
        fake.0.borrow_mut().odds = 0;
        bench.turns(500);
        for (place, told) in &bench.driver.server.links {
            assert!(content.starts_with(&told.got), "seed {seed}, {place}");
            let got = told.got.len();
            assert!(settled(told) || silent.contains(place), "seed {seed}, {place}: waits, with {got} bytes");
            assert!(!told.eof || told.is_over() || told.got == content, "seed {seed}, {place}: {got} bytes");
            echoed += usize::from(told.got == content && told.eof);
            failed += usize::from(told.failed.is_some());
            closed += usize::from(told.closed);
        }
        bench.end();
        assert_eq!(fake.open_descriptors(), 0, "seed {seed}: left open");
        for (total, new) in bitten.iter_mut().zip(fake.0.borrow().bitten) {
            *total += new;
        }
    }
    assert!(echoed > 50 && failed > 20 && closed > 20, "{echoed} echoed, {failed} failed, {closed} closed");
    for lie in [Lie::ConnectFails, Lie::NotYetConnected, Lie::RegisterFails, Lie::Spurious, Lie::Late, Lie::ShortRead] {
        assert!(bitten[lie as usize] > 10, "{lie:?} is hardly told");
    }
}

#[test]
fn real_sockets() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let long = vec![7; 3_000_000];
    let expected = long.clone();
    let origin = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut got = vec![0; 3_000_000];
        stream.read_exact(&mut got).unwrap();
        assert!(got == expected);
        stream.write_all(&got).unwrap();
        listener
    });
    let mut bench = Bench::kernel(Trust::default());
    // Where it has an IPv6 address too, that refuses: nobody listens there.
    bench.connect(link(0), "localhost", (address.port(), false), &long);
    bench.until(link(0), |told| told.eof);
    assert_eq!(bench.told(link(0)).address, Some(address));
    assert_eq!(bench.told(link(0)).own, Some(address.ip()), "what leads to this machine comes from there");
    assert!(bench.told(link(0)).got == long);
    bench.close(link(0));
    drop(origin.join().unwrap());
    bench.connect(link(1), "127.0.0.1", (address.port(), false), b"");
    bench.until(link(1), |told| told.failed.is_some());
    assert_eq!(bench.told(link(1)).failed, Some(ConnectError::Refused));
    // No name holds a NUL, so nobody on the network is asked.
    bench.connect(link(2), "a\0b", (80, false), b"");
    bench.until(link(2), |told| told.failed.is_some());
    assert!(matches!(bench.told(link(2)).failed, Some(ConnectError::Resolve(_))));
    bench.end();
}

#[test]
fn real_sockets_with_tls() {
    let (authority, secret) = origin_tls("localhost");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let origin = thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        let mut stream = rustls::StreamOwned::new(ServerConnection::new(secret).unwrap(), stream);
        let mut got = vec![0; 300_000];
        stream.read_exact(&mut got).unwrap();
        stream.write_all(&got).unwrap();
        // An end without close_notify would be an error.
        assert_eq!(stream.read(&mut got).unwrap(), 0);
    });
    let mut bench = Bench::kernel(authority.trust());
    let long: Vec<u8> = (0..300_000).map(|n| n as u8).collect();
    bench.connect(link(0), "localhost", (port, true), &long);
    bench.until(link(0), |told| told.got.len() == 300_000);
    assert!(bench.told(link(0)).got == long);
    bench.close(link(0));
    origin.join().unwrap();
    bench.end();
}
