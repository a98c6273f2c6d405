//! Any calls in any order: the core takes them without a panic, and the journal of the run repeats it. Any bytes as a
//! journal: replayed or refused.
#![no_main]

use std::time::Duration;

use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{Arrivals, Env, Evidence, Input, SessionId};
use holdfast_core::journal::{Recorded, replay};
use holdfast_core::time::Time;
use libfuzzer_sys::fuzz_target;

/// Answers that depend on nothing but how often something was asked.
struct Outside(u64);

impl Env for Outside {
    fn activity(&mut self, _: SessionId) -> Evidence {
        self.0 += 1;
        let arrivals = |every| Arrivals { count: self.0 / every, last: Some(Time::from_micros(self.0 * 50_000)) };
        Evidence { audio: arrivals(3), video: arrivals(1), control: Arrivals::default() }
    }

    fn entropy(&mut self) -> [u8; 16] {
        [7; 16]
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = replay(input, |_| {});

    let config = Config { endpoints: vec![Endpoint { slots: 2, ..Endpoint::default() }], ..Config::default() };
    let (mut edge, mut env, mut now, mut rest) = (Recorded::on(config), Outside(0), Time::ZERO, input);
    while let Ok(((millis, call), next)) = postcard::take_from_bytes::<(u16, Input)>(rest) {
        now = now + Duration::from_millis(u64::from(millis));
        edge.handle(now, call, &mut env);
        while edge.poll().is_some() {}
        rest = next;
    }
    let journal = edge.journal().expect("a journal is kept");
    assert_eq!(replay(&journal, |_| {}), Ok(edge.digest().expect("a journal is kept")));
});
