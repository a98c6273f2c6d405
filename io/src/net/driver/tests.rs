use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{SessionId, Writer};

use super::super::clients::{Answers, Client, Kind, LARGE, LAST, OK, REQUESTS, answers, offer, tls, undated};
use super::super::fake::{Fake, LIES, Lie};
use super::super::kernel::{Clock, Kernel};
use super::ending::{LINGER, LINGER_BYTES};
use super::*;
use crate::codec::Codec;
use crate::media::Unit;
use crate::server::{Limits, Settings};

/// Of random runs of clients.
const SEEDS: u64 = 1500;

/// A media side that answers every offer unless it is told to wait, and says what the test puts into it.
#[derive(Default)]
struct Studio {
    events: VecDeque<MediaEvent>,
    session: Option<SessionId>,
    waits: bool,
}

impl Media for Rc<RefCell<Studio>> {
    fn command(&mut self, command: MediaCommand) {
        let mut studio = self.borrow_mut();
        match command {
            MediaCommand::Start { session, .. } => {
                studio.session = Some(session);
                if !studio.waits {
                    studio.events.push_back(MediaEvent::Answered { session, answer: "v=0\r\n".into() });
                }
            }
            MediaCommand::Finish { session } => studio.events.push_back(MediaEvent::Gone { session }),
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<MediaEvent> {
        self.borrow_mut().events.pop_front()
    }
}

struct Stage {
    fake: Fake,
    studio: Rc<RefCell<Studio>>,
    reports: Rc<RefCell<Vec<String>>>,
    driver: Driver<Fake, Rc<RefCell<Studio>>>,
}

/// A server behind a kernel that lies in one of `odds` calls.
fn stage(seed: u64, odds: u64) -> Stage {
    stage_with(seed, odds, Settings::default(), None)
}

fn stage_with(seed: u64, odds: u64, settings: Settings, tls: Option<Arc<ServerConfig>>) -> Stage {
    let config = Config { endpoints: vec![Endpoint::default()], ..Config::default() };
    let mut next = 0u8;
    let entropy = move || {
        next = next.wrapping_add(1);
        [next; 16]
    };
    let server = Server::new(config, settings, Box::new(entropy));
    let (fake, studio, reports) = (Fake::new(seed, odds), Rc::default(), Rc::<RefCell<Vec<String>>>::default());
    let report = {
        let reports = reports.clone();
        Box::new(move |report| reports.borrow_mut().push(format!("{report:?}")))
    };
    let parts = Parts {
        sys: fake.clone(),
        listeners: vec![Door::Http(tls)],
        server,
        trust: Trust::default(),
        media: Rc::clone(&studio),
        report,
    };
    Stage { fake, studio, reports, driver: Driver::new(parts) }
}

impl Stage {
    fn turn(&mut self) -> Option<Ended> {
        self.driver.turn().unwrap()
    }

    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            assert_eq!(self.turn(), None);
        }
    }

    /// Turns until nothing happens any more; no time passes.
    fn rest(&mut self) {
        self.fake.0.borrow_mut().step = Duration::ZERO;
        for _ in 0..1000 {
            self.turns(1);
            if self.fake.0.borrow().asleep {
                self.fake.0.borrow_mut().step = Duration::MAX;
                return;
            }
        }
        panic!("the driver does not come to rest");
    }

    fn reported(&self, what: &str) -> usize {
        self.reports.borrow().iter().filter(|report| report.contains(what)).count()
    }

    /// All is over and nothing is left open.
    fn check_end(&self) {
        assert_eq!(self.fake.open_descriptors(), 0, "left open");
        assert_eq!(self.driver.server().connection_count(), 0, "the server still believes in connections");
    }

    fn end(&mut self) -> Ended {
        self.driver.drain();
        for _ in 0..100_000 {
            if let Some(ended) = self.turn() {
                self.check_end();
                return ended;
            }
        }
        panic!("the driver does not end");
    }
}

/// What everything that clients ask for is answered by a kernel that never lies.
fn known() -> Answers {
    let mut stage = stage(1, 0);
    let one = |(request, status): (&'static str, u16)| {
        let client = stage.fake.connect(1_000_000);
        stage.fake.send(client, request.as_bytes());
        stage.rest();
        let answer = stage.fake.take(client, 1_000_000);
        assert_eq!(answers(&answer), [status], "{request}");
        (request, undated(&answer))
    };
    REQUESTS.into_iter().map(one).collect()
}

#[test]
fn whatever_the_kernel_does_everybody_gets_what_they_asked_for() {
    let mut bitten = [0; LIES];
    let known = known();
    let (secret, trusting) = tls();
    for seed in 1..=SEEDS {
        let encrypted = seed % 4 == 0;
        let tls = encrypted.then(|| secret.clone());
        let mut stage = stage_with(seed, 4 + seed % 20, Settings::default(), tls);
        let fake = stage.fake.clone();
        fake.0.borrow_mut().descriptors = 4;
        fake.0.borrow_mut().step = Duration::from_millis(10);
        let mut clients: Vec<Client> =
            (0..1 + seed % 7).map(|_| Client::any(&fake, encrypted.then(&trusting))).collect();
        let act = |clients: &mut Vec<Client>| clients.iter_mut().for_each(|client| client.act(&fake));
        for turn in 0.. {
            assert_eq!(stage.turn(), None);
            act(&mut clients);
            if clients.iter().all(|client| client.is_content(&fake)) {
                break;
            }
            // Those that stay idle and those that say nothing hold the descriptors that others wait for.
            if turn > 2000 {
                fake.0.borrow_mut().descriptors = 100;
            }
            let waiting =
                || clients.iter().filter(|client| !client.is_content(&fake)).map(|client| (client.number, client.kind));
            assert!(turn < 50_000, "seed {seed}: still waiting: {:?}", waiting().collect::<Vec<_>>());
        }
        // Nobody waits for those that may hang up at any time: what they ask for from here on is refused.
        let (rude, others): (Vec<_>, Vec<_>) = (0..clients.len()).partition(|place| clients[*place].kind == Kind::Rude);
        rude.iter().for_each(|place| clients[*place].check(&fake, &known, seed));
        stage.driver.drain();
        let ended = (0..100_000).find_map(|_| {
            act(&mut clients);
            stage.turn()
        });
        assert_eq!(ended, Some(Ended::Drained), "seed {seed}");
        stage.check_end();
        others.iter().for_each(|place| clients[*place].check(&fake, &known, seed));
        for (total, new) in bitten.iter_mut().zip(fake.0.borrow().bitten) {
            *total += new;
        }
    }
    let told = &bitten[..Lie::ConnectFails as usize];
    assert!(told.iter().all(|bites| *bites > 10), "a lie that is hardly told: {bitten:?}");
}

#[test]
fn a_viewer_gets_every_packet_in_order_however_its_socket_takes_them() {
    for seed in 1..=20 {
        let mut stage = stage(seed, 0);
        let fake = stage.fake.clone();
        let publisher = fake.connect(100_000);
        fake.send(publisher, offer().as_bytes());
        stage.rest();
        assert_eq!(answers(&fake.take(publisher, 100_000)), [201]);
        let session = stage.studio.borrow().session.unwrap();

        let viewer = fake.connect(300);
        fake.send(viewer, b"GET /live/live.ts HTTP/1.1\r\nHost: a\r\n\r\n");
        fake.0.borrow_mut().odds = 6;
        fake.0.borrow_mut().step = Duration::ZERO;
        let mut got = Vec::new();
        for unit in 0..600 {
            let now = fake.0.borrow().now.as_micros() as i64;
            let data = Bytes::from(vec![unit as u8; 80 + fake.random(400) as usize]);
            let codec = Codec::Opus;
            let unit = Unit { from: Writer::Session(session), codec, pts: now, dts: now, key: true, data };
            stage.studio.borrow_mut().events.push_back(MediaEvent::Unit(unit));
            stage.driver.media_waits = true;
            stage.turns(1);
            fake.0.borrow_mut().now = Time::from_micros(now as u64 + 20_000);
            got.extend(fake.take(viewer, fake.random(4000) as usize));
        }
        if fake.0.borrow().conns[viewer].lost {
            continue;
        }
        let body = got.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let packets: Vec<&[u8]> = got[body..].chunks_exact(188).collect();
        assert!(packets.len() > 300, "seed {seed}: only {} packets", packets.len());
        let mut counters = std::collections::BTreeMap::new();
        for packet in packets {
            assert_eq!(packet[0], 0x47, "seed {seed}");
            let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
            // The counter counts packets with payload (ISO/IEC 13818-1 §2.4.3.3).
            if packet[3] & 0x10 != 0 {
                let counter = packet[3] & 0x0f;
                if let Some(before) = counters.insert(pid, counter) {
                    assert_eq!(counter, (before + 1) & 0x0f, "seed {seed}, pid {pid}");
                }
            }
        }
        fake.0.borrow_mut().odds = 0;
        fake.0.borrow_mut().step = Duration::MAX;
        fake.fin(publisher);
        fake.fin(viewer);
        assert_eq!(stage.end(), Ended::Drained, "seed {seed}");
    }
}

#[test]
fn bytes_before_a_hang_up_are_read_and_the_descriptor_is_closed() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(10_000);
    stage.rest();
    stage.fake.send(client, OK.as_bytes());
    stage.fake.fin(client);
    stage.rest();
    assert_eq!(answers(&stage.fake.take(client, 10_000)), [200]);
    assert_eq!(stage.fake.open_descriptors(), 0);
}

#[test]
fn a_reset_connection_that_is_not_read_from_is_noticed() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(0);
    stage.fake.send(client, LARGE.as_bytes());
    stage.fake.send(client, &[b'x'; 100_000]);
    stage.rest();
    assert_eq!(stage.fake.open_descriptors(), 1);
    stage.fake.reset(client);
    stage.rest();
    assert_eq!(stage.fake.open_descriptors(), 0);
    assert_eq!(stage.driver.server().connection_count(), 0);
}

#[test]
fn a_dead_viewer_of_a_silent_feed_that_is_not_read_from_is_noticed() {
    let mut stage = stage(1, 0);
    let viewer = stage.fake.connect(10_000);
    stage.fake.send(viewer, b"GET /live/live.ts HTTP/1.1\r\nHost: a\r\n\r\n");
    stage.fake.send(viewer, &[b'x'; 1_000_000]);
    stage.rest();
    assert_eq!(stage.fake.open_descriptors(), 1);
    stage.fake.reset(viewer);
    stage.rest();
    assert_eq!((stage.fake.open_descriptors(), stage.driver.server().connection_count()), (0, 0));
}

#[test]
fn a_publisher_that_said_its_end_and_is_gone_is_told_from_one_that_still_reads() {
    let mut stage = stage(1, 0);
    stage.studio.borrow_mut().waits = true;
    let client = stage.fake.connect(10_000);
    stage.fake.send(client, offer().as_bytes());
    stage.fake.fin(client);
    stage.rest();
    assert_eq!(stage.fake.take(client, 10_000), b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(stage.fake.open_descriptors(), 1, "it waits for its answer");
    stage.fake.reset(client);
    stage.rest();
    assert_eq!((stage.fake.open_descriptors(), stage.driver.server().connection_count()), (0, 0));
}

#[test]
fn what_was_left_unread_is_read_when_there_is_room_though_no_event_says_so() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(100);
    stage.fake.send(client, OK.repeat(5000).as_bytes());
    let mut got = Vec::new();
    while answers(&got).len() < 5000 {
        stage.rest();
        let taken = stage.fake.take(client, 100_000);
        assert!(!taken.is_empty(), "stuck at {} bytes", got.len());
        got.extend(taken);
        // The kernel has room for much from here on, so that there are few turns.
        stage.fake.make_room(client, 100_000);
    }
}

#[test]
fn what_was_left_unread_is_read_after_an_answer_that_no_event_of_its_socket_led_to() {
    let mut stage = stage(1, 0);
    stage.studio.borrow_mut().waits = true;
    let client = stage.fake.connect(10_000_000);
    stage.fake.send(client, (offer() + &OK.repeat(5000)).as_bytes());
    stage.rest();
    let session = stage.studio.borrow().session.unwrap();
    let answer = MediaEvent::Answered { session, answer: "v=0\r\n".into() };
    stage.studio.borrow_mut().events.push_back(answer);
    stage.rest();
    assert_eq!(answers(&stage.fake.take(client, 10_000_000)).len(), 5001);
}

#[test]
fn what_tls_has_left_is_written_when_the_socket_takes_it() {
    let (secret, trusting) = tls();
    let mut stage = stage_with(1, 0, Settings::default(), Some(secret));
    let fake = stage.fake.clone();
    let mut client = Client::new(&fake, Kind::Polite, Some(trusting()));
    for _ in 0..1000 {
        client.act(&fake);
        stage.rest();
        if client.is_content(&fake) {
            return;
        }
    }
    panic!("stuck at {} bytes", client.got.len());
}

#[test]
fn a_short_write_is_not_followed_by_one_that_would_block() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(100);
    stage.fake.send(client, LARGE.as_bytes());
    stage.rest();
    assert_eq!(stage.fake.0.borrow().writes, 1);
}

#[test]
fn a_connection_that_is_gone_before_it_is_accepted_stops_nobody() {
    let mut stage = stage(1, 0);
    stage.fake.0.borrow_mut().abort = true;
    stage.fake.connect(10_000);
    let next = stage.fake.connect(10_000);
    stage.fake.send(next, OK.as_bytes());
    stage.rest();
    assert_eq!(answers(&stage.fake.take(next, 10_000)), [200]);
    assert_eq!(stage.reported("AcceptFailing"), 0);
}

#[test]
fn when_the_wall_clock_is_set_answers_have_the_date_as_it_is() {
    let mut stage = stage(1, 0);
    let date = |stage: &mut Stage| {
        let client = stage.fake.connect(100_000);
        stage.fake.send(client, OK.as_bytes());
        stage.rest();
        let answer = String::from_utf8(stage.fake.take(client, 100_000)).unwrap();
        answer.lines().find_map(|line| line.strip_prefix("Date: ")).unwrap().to_owned()
    };
    assert_eq!(date(&mut stage), "Thu, 01 Jan 1970 00:00:00 GMT");
    let set = |stage: &mut Stage, seconds: u64| {
        let mut world = stage.fake.0.borrow_mut();
        world.now = world.now + Duration::from_secs(1);
        world.wall = (Duration::from_secs(seconds), world.now);
    };
    set(&mut stage, 1_800_000_000);
    assert_eq!(date(&mut stage), "Fri, 15 Jan 2027 08:00:00 GMT");
    assert_eq!(stage.reported("ClockSet"), 1);
    // A clock that is disciplined wanders.
    set(&mut stage, 1_800_000_002);
    assert_eq!(stage.reported("ClockSet"), 1);
    set(&mut stage, 1_700_000_000);
    assert_eq!(date(&mut stage), "Tue, 14 Nov 2023 22:13:20 GMT");
    assert_eq!(stage.reported("ClockSet"), 2);
}

#[test]
fn one_that_always_has_more_does_not_starve_the_others() {
    let mut stage = stage(1, 0);
    let (greedy, modest) = (stage.fake.connect(10_000_000), stage.fake.connect(10_000));
    stage.fake.send(greedy, OK.repeat(20_000).as_bytes());
    stage.fake.send(modest, OK.as_bytes());
    stage.turns(3);
    assert_eq!(answers(&stage.fake.take(modest, 10_000)), [200]);
    assert!(!stage.fake.0.borrow().conns[greedy].to_client.is_empty());
    let answered = answers(&stage.fake.take(greedy, 10_000_000)).len();
    assert!(answered < 20_000, "all at once");
    stage.rest();
    assert_eq!(answered + answers(&stage.fake.take(greedy, usize::MAX)).len(), 20_000);
}

#[test]
fn without_descriptors_accepting_pauses_says_so_once_and_goes_on() {
    let mut stage = stage(1, 0);
    stage.fake.0.borrow_mut().descriptors = 1;
    let (first, second) = (stage.fake.connect(10_000), stage.fake.connect(10_000));
    stage.fake.send(second, OK.as_bytes());
    stage.turns(20);
    assert_eq!(stage.reported("AcceptFailing"), 1);
    assert!(stage.fake.0.borrow().now > Time::ZERO + PAUSE * 5, "it waits between attempts");
    stage.fake.fin(first);
    while stage.fake.0.borrow().conns[second].to_client.is_empty() {
        stage.turns(1);
    }
    assert_eq!(answers(&stage.fake.take(second, 10_000)), [200]);
    assert_eq!((stage.reported("AcceptFailing"), stage.reported("AcceptRecovered")), (1, 1));
}

#[test]
fn for_want_of_descriptors_those_that_linger_are_closed() {
    let mut stage = stage(1, 0);
    stage.fake.0.borrow_mut().descriptors = 1;
    let lingering = stage.fake.connect(10_000);
    stage.fake.send(lingering, LAST.as_bytes());
    stage.rest();
    let next = stage.fake.connect(10_000);
    stage.fake.send(next, OK.as_bytes());
    stage.turns(8);
    assert_eq!(answers(&stage.fake.take(next, 10_000)), [200]);
}

#[test]
fn an_answer_is_not_taken_back_by_a_reset() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(10_000);
    stage.fake.send(client, LAST.as_bytes());
    stage.rest();
    stage.fake.send(client, &[b'x'; 100_000]);
    stage.rest();
    let conn = |stage: &Stage| {
        let conn = &stage.fake.0.borrow().conns[client];
        (conn.ended, conn.lost)
    };
    assert_eq!(conn(&stage), (true, false));
    stage.fake.fin(client);
    stage.rest();
    assert_eq!((conn(&stage), stage.fake.open_descriptors()), ((true, false), 0));
}

#[test]
fn those_that_linger_are_bounded_in_time_and_bytes() {
    let mut stage = stage(1, 0);
    let silent = stage.fake.connect(10_000);
    stage.fake.send(silent, LAST.as_bytes());
    stage.rest();
    let before = stage.fake.0.borrow().now;
    while stage.fake.open_descriptors() > 0 {
        stage.turns(1);
    }
    assert!(stage.fake.0.borrow().now.since(before) >= LINGER);

    let chatty = stage.fake.connect(10_000);
    stage.fake.send(chatty, LAST.as_bytes());
    stage.rest();
    let before = stage.fake.0.borrow().now;
    stage.fake.send(chatty, &vec![b'x'; LINGER_BYTES]);
    while stage.fake.open_descriptors() > 0 {
        stage.turns(1);
    }
    assert!(stage.fake.0.borrow().now.since(before) < LINGER);
}

#[test]
fn those_that_linger_make_room_for_those_that_come() {
    let mut stage = stage(1, 0);
    stage.driver.keep_within(3);
    for _ in 0..10 {
        let client = stage.fake.connect(10_000);
        stage.fake.send(client, LAST.as_bytes());
        stage.rest();
        assert!(stage.fake.open_descriptors() <= 3);
        assert_eq!(answers(&stage.fake.take(client, 10_000)), [200]);
    }
    assert_eq!(stage.fake.open_descriptors(), 3);
}

#[test]
fn the_server_turns_away_whom_it_has_no_place_for() {
    let mut stage = stage_with(
        1,
        0,
        Settings { limits: Limits { connections: 1, ..Limits::default() }, ..Settings::default() },
        None,
    );
    stage.fake.connect(10_000);
    stage.rest();
    let second = stage.fake.connect(10_000);
    stage.rest();
    assert_eq!(stage.fake.open_descriptors(), 1);
    assert!(stage.fake.0.borrow().conns[second].ended);
}

#[test]
fn idle_connections_end_at_the_servers_deadline() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(10_000);
    stage.rest();
    while !stage.fake.0.borrow().conns[client].ended {
        stage.turns(1);
    }
    assert!(stage.fake.0.borrow().now >= Time::ZERO + Limits::default().head_timeout);
}

#[test]
fn draining_waits_for_answers_but_not_for_ever() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(0);
    stage.fake.send(client, OK.as_bytes());
    stage.rest();
    stage.fake.0.borrow_mut().terminate = true;
    let begun = stage.fake.0.borrow().now;
    let ended = (0..1000).find_map(|_| stage.turn());
    assert_eq!(ended, Some(Ended::TimedOut));
    assert!(stage.fake.0.borrow().now.since(begun) >= DRAIN);
    assert_eq!((stage.fake.open_descriptors(), stage.reported("CutShort(1)")), (0, 1));
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut stage = stage(1, 0);
    let client = stage.fake.connect(0);
    stage.fake.send(client, OK.as_bytes());
    stage.rest();
    stage.fake.0.borrow_mut().terminate = true;
    stage.turns(1);
    stage.fake.0.borrow_mut().terminate = true;
    let begun = stage.fake.0.borrow().now;
    let ended = (0..1000).find_map(|_| stage.turn());
    assert_eq!(ended, Some(Ended::Forced));
    assert!(stage.fake.0.borrow().now.since(begun) < DRAIN);
    assert_eq!(stage.fake.open_descriptors(), 0);
}

#[test]
fn every_lie_has_its_place() {
    assert_eq!(Lie::NotYetConnected as usize, LIES - 1);
}

/// Runs a driver on real sockets in a thread; `clients` gets its address. Ends it by the waker.
fn on_loopback(tls: Option<Arc<ServerConfig>>, clients: impl FnOnce(SocketAddr)) {
    let (said, hear) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = thread::spawn(move || {
        let mut kernel = Kernel::new(Clock::start()).unwrap();
        let address = kernel.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        said.send((address, kernel.waker())).unwrap();
        let server = Server::new(Config::default(), Settings::default(), Box::new(|| [7; 16]));
        let media = Rc::<RefCell<Studio>>::default();
        let mut driver = Driver::new(Parts {
            sys: kernel,
            listeners: vec![Door::Http(tls)],
            server,
            trust: Trust::default(),
            media,
            report: Box::new(|_| {}),
        });
        loop {
            if let Some(ended) = driver.turn().unwrap() {
                return ended;
            }
            if stopped.swap(false, Relaxed) {
                driver.drain();
            }
        }
    });
    let (address, waker) = hear.recv().unwrap();
    clients(address);
    stop.store(true, Relaxed);
    waker.wake().unwrap();
    assert_eq!(thread.join().unwrap(), Ended::Drained);
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn real_sockets() {
    on_loopback(None, |address| {
        let mut kept = TcpStream::connect(address).unwrap();
        let mut got = Vec::new();
        for _ in 0..3 {
            kept.write_all(OK.as_bytes()).unwrap();
            let before = answers(&got).len();
            while answers(&got).len() == before {
                let mut buffer = [0; 100];
                let length = kept.read(&mut buffer).unwrap();
                got.extend(&buffer[..length]);
            }
        }
        // Far more than the buffers of both sides hold, and read only after all was asked for.
        let mut many = TcpStream::connect(address).unwrap();
        let reader = many.try_clone().unwrap();
        let asking = thread::spawn(move || {
            many.write_all(LARGE.repeat(3000).as_bytes()).unwrap();
            many.write_all(LAST.as_bytes()).unwrap();
        });
        let mut got = Vec::new();
        let mut reader = &reader;
        reader.read_to_end(&mut got).unwrap();
        asking.join().unwrap();
        assert_eq!(answers(&got), vec![200; 3001]);
    });
}

#[test]
fn real_sockets_with_tls() {
    let (secret, trusting) = tls();
    on_loopback(Some(secret), |address| {
        let mut client = rustls::StreamOwned::new(trusting(), TcpStream::connect(address).unwrap());
        client.write_all(LARGE.repeat(100).as_bytes()).unwrap();
        client.write_all(LAST.as_bytes()).unwrap();
        let mut got = Vec::new();
        // An end without close_notify would be an error.
        client.read_to_end(&mut got).unwrap();
        assert_eq!(answers(&got), vec![200; 101]);
    });
}
