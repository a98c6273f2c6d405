//! A journal repeats its run, and says what is wrong with one that does not.

mod hostile;
mod kept;
mod ring;

use bytes::Bytes;
use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{
    Arrivals, EndReason, EndpointId, Env, Evidence, Input, Output, RequestId, SessionId, Writer,
};
use holdfast_core::journal::{Fresh, JournalFault, Log, MAGIC, Mark, Recorded, VERSION, replay};
use holdfast_core::time::Time;

/// Whatever is asked, the answer differs from the one before.
struct Outside(u8);

impl Env for Outside {
    fn activity(&mut self, _: SessionId) -> Evidence {
        self.0 = self.0.wrapping_add(1);
        let last = Some(Time::from_micros(u64::from(self.0) * 10_000));
        Evidence { audio: Arrivals { count: u64::from(self.0), last }, ..Evidence::default() }
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.0 = self.0.wrapping_add(1);
        [self.0; 16]
    }
}

fn config() -> Config {
    let endpoint = Endpoint { slots: 2, tokens: vec!["top-secret-token".into()], ..Endpoint::default() };
    Config { endpoints: vec![endpoint], ..Config::default() }
}

fn run(edge: &mut Recorded) -> Vec<Output> {
    rounds(edge, 40)
}

/// Publishers that come, send, and go, and viewers.
fn rounds(edge: &mut Recorded, rounds: u64) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut env = Outside(0);
    let feed = edge.edge().feed_of(EndpointId(0), 0).expect("one endpoint");
    for round in 0..rounds {
        let now = Time::from_micros(round * 333_333);
        let request = RequestId(round * 2);
        edge.handle(now, Input::Offer { request, endpoint: EndpointId(0) }, &mut env);
        edge.handle(now, Input::Join { request: RequestId(round * 2 + 1), feed }, &mut env);
        while let Some(output) = edge.poll() {
            match output {
                Output::Start { session, feed, .. } => {
                    edge.handle(now, Input::Answered { session }, &mut env);
                    let data = Bytes::from(vec![0x47; 188 * 7]);
                    edge.handle(
                        now,
                        Input::Media { feed, from: Writer::Session(session), data, random_access: Some(0) },
                        &mut env,
                    );
                    if round % 3 == 0 {
                        edge.handle(now, Input::End { session, reason: EndReason::Deleted }, &mut env);
                    }
                }
                Output::Finish { session, .. } => edge.handle(now, Input::Released { session }, &mut env),
                Output::Joined { viewer, .. } => edge.handle(now, Input::Sent { viewer, bytes: 500 }, &mut env),
                _ => {}
            }
            outputs.push(output);
        }
    }
    outputs
}

#[test]
fn a_journal_repeats_its_run() {
    let mut edge = Recorded::on(config());
    let outputs = run(&mut edge);
    assert!(outputs.iter().any(|output| matches!(output, Output::Refuse { .. })));
    assert!(outputs.iter().any(|output| matches!(output, Output::Finish { .. })));
    let mut calls = 0;
    let mut again = Vec::new();
    let digest = replay(&edge.journal().unwrap(), |step| {
        calls += 1;
        again.extend_from_slice(step.outputs);
    });
    assert_eq!(digest, Ok(edge.digest().unwrap()));
    assert_eq!((calls, again.len()), (edge.calls(), outputs.len()));
}

#[test]
fn a_run_without_a_journal_decides_the_same() {
    let (mut on, mut off) = (Recorded::on(config()), Recorded::off(config()));
    assert_eq!(run(&mut on), run(&mut off));
    assert_eq!((off.journal(), off.digest()), (None, None));
}

#[test]
fn what_differs_has_another_digest() {
    let mut one = Recorded::on(config());
    run(&mut one);
    let mut other = Recorded::on(config());
    run(&mut other);
    assert_eq!(one.digest(), other.digest());
    other.handle(Time::from_micros(60_000_000), Input::Tick, &mut Outside(0));
    assert_ne!(one.digest(), other.digest());
    let mut config = config();
    config.endpoints[0].slots = 3;
    assert_ne!(Recorded::on(config).digest(), Recorded::on(self::config()).digest());
}

#[test]
fn a_journal_holds_no_token_and_no_media() {
    let mut edge = Recorded::on(config());
    run(&mut edge);
    let bytes = edge.journal().unwrap();
    assert!(!bytes.windows(10).any(|window| window == b"top-secret"));
    assert!(!bytes.windows(100).any(|window| window.iter().all(|byte| *byte == 0x47)));
    assert!(bytes.len() < 40_000, "{} bytes for {} calls", bytes.len(), edge.calls());
}

#[test]
fn a_broken_journal_is_told_from_a_foreign_one_and_from_another_run() {
    let mut edge = Recorded::on(config());
    run(&mut edge);
    let good = edge.journal().unwrap();
    assert_eq!(replay(b"RIFF....", |_| {}), Err(JournalFault::NotAJournal));
    assert_eq!(replay(&MAGIC[..7], |_| {}), Err(JournalFault::NotAJournal));
    assert!(matches!(replay(&MAGIC, |_| {}), Err(JournalFault::Truncated { at: 8, call: 0 })));
    let mut other_version = good.clone();
    other_version[7] += 1;
    assert_eq!(replay(&other_version, |_| {}), Err(JournalFault::OtherVersion { has: VERSION + 1 }));
    let mut other_digest = good.clone();
    *other_digest.last_mut().unwrap() ^= 1;
    assert!(matches!(
        replay(&other_digest, |_| {}),
        Err(JournalFault::OtherDigest { .. } | JournalFault::Truncated { .. })
    ));
    // Wherever it is cut, and whatever byte is wrong, it is refused or runs; it never panics.
    for cut in (0..good.len()).step_by(7) {
        let _ = replay(&good[..cut], |_| {});
    }
    for at in (8..good.len()).step_by(3) {
        let mut wrong = good.clone();
        wrong[at] ^= 0x55;
        let _ = replay(&wrong, |_| {});
    }
}

#[test]
fn a_journal_taken_apart_is_the_same_when_put_together_and_plays_with_calls_left_out() {
    let mut edge = Recorded::on(config());
    let outputs = run(&mut edge);
    let log = Log::read(&edge.journal().unwrap()).unwrap();
    assert_eq!(log.calls.len() as u64, edge.calls());
    let written = log.write();
    assert_eq!(Log::read(&written).as_ref(), Ok(&log));
    assert_eq!(replay(&written, |_| {}), Ok(edge.digest().unwrap()));
    let mut played = Vec::new();
    let play = log.play(|step| {
        assert_eq!(step.answers, log.calls[step.call as usize - 1].answers);
        played.extend_from_slice(step.outputs);
    });
    assert_eq!(play, Ok(()));
    assert_eq!(played, outputs);
    // Every third call left out: what the core asks for then was never recorded, and what is played is still a journal.
    let mut calls = log.calls.clone();
    let mut place = 0;
    calls.retain(|_| {
        place += 1;
        place % 3 != 0
    });
    let mut less = Log { calls, ..log };
    let answers = |log: &Log| {
        let mut all = Vec::new();
        log.play(|step| all.push(step.answers.to_vec())).unwrap();
        all
    };
    let given = answers(&less);
    assert_eq!(given, answers(&less), "the same each time");
    assert!(less.calls.iter().zip(&given).any(|(call, given)| call.answers != *given));
    for (call, given) in less.calls.iter_mut().zip(given) {
        call.answers = given;
    }
    assert!(replay(&less.write(), |_| {}).is_ok());
}

/// As somebody gets it who asks now and then; each segment is the beginning of a journal.
#[test]
fn what_is_new_makes_the_journal_also_for_whoever_comes_too_late_for_some() {
    for gaps in [false, true] {
        let mut edge = Recorded::ring(config(), 3_000);
        let (mut mark, mut journals, mut gap_seen) = (Mark::default(), Vec::new(), false);
        for round in 0..400 {
            for output in run(&mut edge) {
                // Nobody stays: what is kept of an edge without viewers is small.
                if let Output::Joined { viewer, .. } = output {
                    edge.handle(Time::ZERO, Input::Leave { viewer }, &mut Outside(0));
                }
            }
            while edge.poll().is_some() {}
            let mut lost = false;
            edge.since(mark, |fresh| lost |= matches!(fresh, Fresh::Segment { gap: true, .. }));
            if gaps && round > 0 && !gap_seen && !lost {
                continue;
            }
            if journals.len() > 6 {
                break;
            }
            mark = edge.since(mark, |fresh| {
                let (whole, open): &mut (Vec<u8>, Vec<u8>) = match &fresh {
                    Fresh::Segment { head, gap } => {
                        gap_seen |= gap;
                        journals.push((head.to_vec(), Vec::new()));
                        return;
                    }
                    _ => journals.last_mut().expect("a segment comes first"),
                };
                match fresh {
                    Fresh::Frame(bytes) => {
                        open.clear();
                        whole.extend_from_slice(&bytes);
                    }
                    Fresh::Open(bytes) => {
                        assert!(bytes.len() >= open.len());
                        *open = bytes.to_vec();
                    }
                    Fresh::Segment { .. } => {}
                }
            });
            let (whole, open) = journals.last().expect("a segment");
            let last = [whole.as_slice(), open].concat();
            let mut calls = 0;
            assert_eq!(replay(&last, |step| calls = step.call), Ok(edge.digest().unwrap()));
            assert_eq!(calls, edge.calls());
        }
        assert!(journals.len() > 3, "{} segments", journals.len());
        assert_eq!(gap_seen, gaps);
    }
}
