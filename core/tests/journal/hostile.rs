//! Whatever is done to a journal, it is refused or read, and never makes anything panic.

use holdfast_core::journal::{JournalFault, Log, MAGIC, Recorded, VERSION, replay};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{config, rounds};

fn journal() -> Vec<u8> {
    let mut ring = Recorded::ring(config(), 20_000);
    rounds(&mut ring, 1_500);
    ring.journal().expect("one is kept")
}

fn refused(bytes: &[u8]) -> JournalFault {
    let fault = Log::read(bytes).expect_err("it is broken");
    assert_eq!(replay(bytes, |_| {}), Err(fault.clone()));
    fault
}

#[test]
fn whatever_was_done_to_a_journal_is_noticed() {
    let good = journal();
    let whole = Log::read(&good).unwrap();
    proptest!(ProptestConfig::with_cases(200), |(at: Index, bits in 1u8.., cut: Index)| {
        let mut wrong = good.clone();
        let place = at.index(wrong.len());
        wrong[place] ^= bits;
        match (refused(&wrong), place) {
            (JournalFault::NotAJournal, 0..7) => {}
            (JournalFault::OtherVersion { has }, 7) => prop_assert_eq!(has, VERSION ^ bits),
            (JournalFault::Broken { at }, 8..) => prop_assert!(at <= place),
            (fault, place) => prop_assert!(false, "{fault} at {place}"),
        }
        // Cut: what is whole can be had.
        let cut = cut.index(good.len());
        let Ok((log, fault)) = Log::salvage(&good[..cut]) else { return Ok(()) };
        prop_assert!(log.calls.is_empty() || log.snapshot == whole.snapshot);
        prop_assert_eq!(&log.calls[..], &whole.calls[..log.calls.len()]);
        match fault {
            None => {}
            Some(JournalFault::Truncated { at, call }) => {
                let before = log.snapshot.map_or(0, |snapshot| snapshot.calls);
                prop_assert_eq!(call, before + log.calls.len() as u64);
                prop_assert!(at <= cut);
            }
            Some(fault) => prop_assert!(false, "{fault} where it was cut"),
        }
    });
}

#[test]
fn a_cut_loses_no_more_than_the_call_it_fell_on() {
    let good = journal();
    let all = Log::read(&good).unwrap().calls.len();
    // The last 16 bytes hold the last digest and less than two calls.
    let (log, fault) = Log::salvage(&good[..good.len() - 9]).unwrap();
    assert!(log.calls.len() + 2 > all && fault.is_some(), "{} of {all}", log.calls.len());
    let said = fault.unwrap().to_string();
    assert!(
        said.contains("cut off")
            && said.contains(&format!(
                "call {}",
                Log::read(&good).unwrap().snapshot.unwrap().calls + log.calls.len() as u64
            )),
        "{said}"
    );
    // And what is whole is a journal.
    assert!(replay(&log.write(), |_| {}).is_ok());
}

#[test]
fn foreign_bytes_are_no_journal() {
    proptest!(|(bytes: Vec<u8>)| {
        prop_assert!(Log::salvage(&bytes).is_err());
        let after = [&MAGIC[..], &bytes].concat();
        prop_assert!(Log::salvage(&after).is_err());
        let replayed = replay(&after, |_| {});
        prop_assert!(replayed.is_err());
    });
    let said = JournalFault::OtherVersion { has: 1 }.to_string();
    assert!(said.contains("version 1;") && said.contains(&format!("version {VERSION}")), "{said}");
    assert!(JournalFault::NotAJournal.to_string().contains("no journal"));
}

/// A frame that is cut off has nothing that checks it.
#[test]
fn any_bytes_in_a_frame_that_is_cut_off_are_calls_or_refused() {
    let mut edge = Recorded::on(config());
    rounds(&mut edge, 100);
    let good = edge.journal().unwrap();
    let empty = Log { calls: Vec::new(), ..Log::read(&good).unwrap() }.write();
    let begin = &good[..empty.len() + 16];
    proptest!(ProptestConfig::with_cases(2_000), |(bytes in prop::collection::vec(any::<u8>(), 0..1_000))| {
        let wrong = [begin, &bytes].concat();
        if let Ok((log, _)) = Log::salvage(&wrong) {
            // The core takes any calls.
            let played = log.play(|_| {});
            prop_assert_eq!(played, Ok(()));
        }
    });
}
