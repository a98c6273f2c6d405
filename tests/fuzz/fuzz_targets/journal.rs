//! Any bytes as a journal, and as the calls in one: read as far as they are whole, or refused, in no more memory than a small multiple
//! of their length. What was read is played without a panic, and written again the same.
#![no_main]

use std::sync::LazyLock;

use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{Env, Evidence, Input, SessionId};
use holdfast_core::journal::{Head, Log, Recorded};
use holdfast_core::time::Time;
use libfuzzer_sys::fuzz_target;

struct Nothing;

impl Env for Nothing {
    fn activity(&mut self, _: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        [7; 16]
    }
}

/// A journal up to the first call: the beginning of a frame that is longer than any input. Cut off as it then is, nothing checks it.
static BEGIN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let endpoints = vec![Endpoint { slots: 2, ..Endpoint::default() }];
    let mut edge = Recorded::on(Config { endpoints, ..Config::default() });
    let empty = Log::read(&edge.journal().unwrap_or_default()).map(|log| log.write().len()).unwrap_or_default();
    for call in 0..4_096 {
        edge.handle(Time::from_micros(call << 50), Input::Tick, &mut Nothing);
    }
    let mut journal = edge.journal().unwrap_or_default();
    journal.truncate(empty + 16);
    journal
});

fuzz_target!(|input: &[u8]| {
    let _ = (Head::read(input), Log::salvage(input));
    let journal = [&BEGIN, input].concat();
    let Ok((log, _)) = Log::salvage(&journal) else { panic!("it has a head") };
    assert_eq!(Log::read(&log.write()), Ok(log.clone()));
    log.play(|_| {}).expect("it begins with nothing");
});
