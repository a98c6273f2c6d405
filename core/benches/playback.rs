//! Admissions per second: films that 1000 users open, seek in and leave, from a pool of 100 accounts that are mostly taken.
//!
//! One *admission* is a request for a title from its question to its answer: a place of the user and an account of the
//! provider, or neither. Of ten, one opens a film, eight seek in it (the former connection is closed first), and one leaves; what
//! finds no account is refused when its grace is over.

use std::collections::VecDeque;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

use holdfast_core::config::{Account, Config, Playback, Provider, Strategy, User};
use holdfast_core::edge::Edge;
use holdfast_core::input::{
    AllocationId, Ask, Client, Env, Evidence, Grant, Input, Output, ProviderId, RequestId, SessionId, TitleId, UserId,
    ViewerEnd, Viewing, Want,
};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;

const USERS: u32 = 1000;
const PROVIDERS: u32 = 10;
const ACCOUNTS: u32 = 10;
const ADMISSIONS: u64 = 200_000;
const ROUNDS: usize = 5;
/// A request each so many µs.
const PACE: u64 = 100;

#[derive(Default)]
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

impl Env for Chance {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        u128::from(self.next(u64::from(u32::MAX))).to_le_bytes()
    }
}

struct Stage {
    edge: Edge,
    chance: Chance,
    now: u64,
    requests: u64,
    /// Who plays: the user, and the request that runs.
    playing: VecDeque<(UserId, RequestId)>,
    idle: Vec<UserId>,
    granted: u64,
    refused: u64,
}

impl Stage {
    fn new() -> Self {
        let user = |index| User { name: format!("u{index}"), max_connections: 2, ..User::default() };
        let accounts = || (0..ACCOUNTS).map(|_| Account { max_connections: 1, ..Account::default() }).collect();
        let provider = |index| Provider { name: format!("p{index}"), accounts: accounts(), ..Provider::default() };
        let config = Config {
            users: (0..USERS).map(user).collect(),
            providers: (0..PROVIDERS).map(provider).collect(),
            playback: Playback { strategies: vec![Strategy::GraceHold], ..Playback::default() },
            ..Config::default()
        };
        Stage {
            edge: Edge::new(config),
            chance: Chance(7),
            now: 0,
            requests: 0,
            playing: VecDeque::new(),
            idle: (0..USERS).map(UserId).collect(),
            granted: 0,
            refused: 0,
        }
    }

    /// Hands one input over and answers what comes of it as a driver does: connections close at once.
    fn input(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.edge.handle(Time::from_micros(self.now), input, &mut self.chance);
            while let Some(output) = self.edge.poll() {
                match output {
                    Output::Fetch { request, grant: Some(Grant { .. }), .. } => {
                        self.granted += 1;
                        inputs.push_back(Input::Forwarded { request });
                    }
                    Output::Drop { allocation } => inputs.push_back(closed(allocation)),
                    Output::Refuse { request, .. } => {
                        self.refused += 1;
                        self.gone(request);
                    }
                    output => drop(black_box(output)),
                }
            }
        }
    }

    fn gone(&mut self, request: RequestId) {
        if let Some(place) = self.playing.iter().position(|(_, own)| *own == request)
            && let Some((user, _)) = self.playing.remove(place)
        {
            self.idle.push(user);
        }
    }

    fn ask(&mut self, user: UserId) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let address = IpAddr::from([10, 0, (user.0 >> 8) as u8, user.0 as u8]);
        let item = Item::Vod(TitleId(u64::from(user.0)));
        let viewing = Viewing { user, item, client: Client { address, agent: 0 } };
        let providers = (0..3).map(|step| ProviderId((user.0 + step) % PROVIDERS)).collect();
        self.playing.push_back((user, request));
        self.input(Input::Fetch {
            request,
            ask: Ask { viewing, want: Want::Rest, token: None, account: None, providers },
        });
        request
    }

    fn run(&mut self, admissions: u64) {
        let until = self.requests + admissions;
        while self.requests < until {
            self.now += PACE;
            match self.chance.next(10) {
                0 if !self.idle.is_empty() => {
                    let place = self.chance.next(self.idle.len() as u64) as usize;
                    let user = self.idle.swap_remove(place);
                    self.ask(user);
                }
                1 => {
                    if let Some((user, request)) = self.playing.pop_front() {
                        self.idle.push(user);
                        self.input(Input::Finished { request, reason: ViewerEnd::Left });
                    }
                }
                _ => {
                    if let Some((user, _)) = self.playing.pop_front() {
                        self.ask(user);
                    }
                }
            }
        }
    }
}

fn closed(allocation: AllocationId) -> Input {
    Input::Closed { allocation }
}

fn main() {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let mut stage = Stage::new();
            stage.run(ADMISSIONS / 10);
            let begun = Instant::now();
            stage.run(ADMISSIONS);
            let rate = ADMISSIONS as f64 / begun.elapsed().as_secs_f64();
            assert!(stage.granted > ADMISSIONS / 4, "most are let in: {} of {ADMISSIONS}", stage.granted);
            rate
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!(
        "{USERS} users, {} accounts: {:.0} admissions/s, median of {ROUNDS} rounds of {ADMISSIONS}",
        PROVIDERS * ACCOUNTS,
        rates[ROUNDS / 2]
    );
}
