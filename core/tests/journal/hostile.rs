//! Whatever is done to a journal, it is refused or read, and never makes anything panic.

use holdfast_core::journal::{Extent, JournalFault, Log, MAGIC, Recorded, Rest, VERSION, replay};
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
            // In the last frame it is as where power was lost.
            (JournalFault::Truncated { at, .. }, 8..) => prop_assert!(at <= place && behind(&good, at).is_none()),
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

/// Where the next frame is that begins behind the one at `at`.
fn behind(bytes: &[u8], at: usize) -> Option<usize> {
    let length = u32::from_le_bytes(bytes.get(at + 4..at + 8)?.try_into().ok()?) as usize;
    Some(at + 16 + length).filter(|next| *next < bytes.len())
}

/// Power is lost while the last frame is written: bytes of it are missing, or are zeros, or what the disk had there before.
#[test]
fn whatever_became_of_the_last_frame_the_recording_breaks_off_and_what_stands_before_is_whole() {
    let good = journal();
    let mut last = 8;
    while let Some(next) = behind(&good, last) {
        last = next;
    }
    let before = Extent::of(&good[..last], |_, _| ()).expect("it has a head");
    assert_eq!((before.checked, &before.fault), (last, &None));
    let breaks_off = |wrong: &[u8]| {
        let fault = replay(wrong, |_| {}).expect_err("something is missing");
        assert!(matches!(fault, JournalFault::Truncated { .. }), "{fault}");
        let mut calls = 0;
        let extent = Extent::of(wrong, |call, _| calls = call).expect("it has a head");
        assert_eq!((extent.checked, extent.calls), (last, before.calls));
        assert!(calls >= before.calls && matches!(extent.fault, None | Some(JournalFault::Truncated { .. })));
        replay(&wrong[..extent.checked], |_| {}).expect("what stands is a journal");
    };
    proptest!(ProptestConfig::with_cases(200), |(from: Index, lost: Index, old in 0u8..)| {
        let from = last + from.index(good.len() - last);
        let lost = 1 + lost.index(good.len() - from);
        breaks_off(&[&good[..from], &good[from + lost..]].concat());
        for other in [0, old] {
            let mut wrong = good.clone();
            wrong[from..from + lost].fill(other);
            if wrong != good {
                breaks_off(&wrong);
            }
        }
    });
    // In the middle it is another fault.
    let mut wrong = good.clone();
    wrong[last - 1] ^= 1;
    assert!(matches!(replay(&wrong, |_| {}), Err(JournalFault::Broken { .. })));
}

/// Whatever byte is wrong, from the next snapshot on it is the run that it was.
#[test]
fn what_stands_behind_a_broken_byte_is_gone_on_from_at_the_next_snapshot() {
    let good = journal();
    let whole = Log::read(&good).unwrap();
    let first = whole.snapshot.as_ref().map_or(0, |snapshot| snapshot.calls);
    let end = replay(&good, |_| {});
    let (mut gone_on, mut lost) = (0, 0);
    for place in (8..good.len()).step_by(97) {
        let mut wrong = good.clone();
        wrong[place] ^= 1;
        // What is wrong with its head is wrong with all of it.
        let Ok((before, Some(fault))) = Log::salvage(&wrong) else { continue };
        let JournalFault::Broken { at } = fault else { continue };
        let Some(Rest { at: from, calls, now, journal }) = Rest::behind(&wrong, at) else {
            lost += 1;
            continue;
        };
        gone_on += 1;
        assert!(from > place && calls > first + before.calls.len() as u64, "{from}, {calls}");
        let behind = Log::read(&journal).expect("what follows is whole");
        assert_eq!(behind.head, whole.head);
        assert_eq!(behind.calls[..], whole.calls[(calls - first) as usize..]);
        assert_eq!(now, whole.calls[(calls - first) as usize - 1].now);
        assert_eq!(replay(&journal, |_| {}), end);
    }
    assert!(gone_on > 20 && lost > 0, "{gone_on} gone on from, {lost} not");
    assert_eq!(Rest::behind(&good, good.len()), None);
    assert_eq!(Rest::behind(b"no journal", 0), None);
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
        said.contains("breaks off")
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
