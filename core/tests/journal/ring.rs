//! A journal that is a ring holds the end of its run, and repeats that.

use holdfast_core::journal::{Head, Log, MAGIC, Recorded, replay};

use super::{config, rounds};

/// Kind and length of each frame, its head with it.
fn frames(bytes: &[u8]) -> Vec<(u8, usize)> {
    let (mut at, mut frames) = (MAGIC.len(), Vec::new());
    while at < bytes.len() {
        let length = bytes[at + 4..at + 8].try_into().map(u32::from_le_bytes).expect("4 bytes");
        let length = 16 + length as usize;
        frames.push((bytes[at], length));
        at += length;
    }
    frames
}

const SNAPSHOT: u8 = 2;

#[test]
fn a_ring_holds_the_end_of_the_run_and_repeats_it() {
    let mut all = Recorded::on(config());
    rounds(&mut all, 6_000);
    let whole = all.journal().unwrap();
    for size in [1, 20_000, 100_000] {
        let mut ring = Recorded::ring(config(), size);
        rounds(&mut ring, 6_000);
        let bytes = ring.journal().unwrap();
        let largest = frames(&bytes).iter().filter(|(kind, _)| *kind == SNAPSHOT).map(|frame| frame.1).max().unwrap();
        let most = size.max(8 * largest) + 4_096;
        assert!(bytes.len() < whole.len() / 2 && bytes.len() <= most, "{} of {size}, {largest}", bytes.len());
        assert!(bytes.len() >= size / 2, "{} of {size}", bytes.len());
        assert_eq!((ring.digest(), ring.calls()), (all.digest(), all.calls()));
        let mut steps = Vec::new();
        assert_eq!(replay(&bytes, |step| steps.push(step.call)), Ok(all.digest().unwrap()), "{size}");
        let first = steps[0];
        assert!(first > 1 && steps.into_iter().eq(first..=all.calls()));
        // Taken apart, it is the end of the whole.
        let (log, whole) = (Log::read(&bytes).unwrap(), Log::read(&whole).unwrap());
        assert_eq!(log.snapshot.as_ref().unwrap().calls, first - 1);
        assert_eq!(log.calls, whole.calls[first as usize - 1..]);
        assert_eq!(replay(&log.write(), |_| {}), Ok(all.digest().unwrap()));
        let mut played = first;
        log.play(|step| {
            assert_eq!((step.call, step.answers), (played, &log.calls[(played - first) as usize].answers[..]));
            played += 1;
        })
        .unwrap();
    }
}

#[test]
fn snapshots_are_a_quarter_of_what_is_written_at_the_most_and_a_minute_apart_at_the_least() {
    let mut ring = Recorded::ring(config(), 64 << 20);
    rounds(&mut ring, 6_000);
    let bytes = ring.journal().unwrap();
    let frames = frames(&bytes);
    let snapshots: Vec<usize> = frames.iter().filter(|(kind, _)| *kind == SNAPSHOT).map(|frame| frame.1).collect();
    let (count, last) = (snapshots.len(), *snapshots.last().unwrap());
    assert!(count > 3, "{count}");
    assert!((snapshots.iter().sum::<usize>() - last) * 4 <= bytes.len());
    // 2 000 s.
    assert!(count <= 34, "{count}");
}

#[test]
fn a_ring_that_is_large_enough_holds_everything() {
    let mut ring = Recorded::ring(config(), 64 << 20);
    rounds(&mut ring, 500);
    let mut calls = 0;
    assert_eq!(replay(&ring.journal().unwrap(), |_| calls += 1), Ok(ring.digest().unwrap()));
    assert_eq!(calls, ring.calls());
}

#[test]
fn a_head_says_of_which_run_it_is_and_holds_no_token() {
    let head = Head {
        version: "1.2.3".into(),
        commit: "abcdef".into(),
        seed: Some(7),
        started: Some(1_700_000_000_000_000),
        config: config(),
    };
    let ring = Recorded::ring(head.clone(), 1 << 20);
    let own = Head::read(&ring.journal().unwrap()).unwrap();
    assert!(own.config.endpoints[0].tokens.is_empty());
    let mut config = own.config.clone();
    config.endpoints[0].tokens = head.config.endpoints[0].tokens.clone();
    assert_eq!(Head { config, ..own }, head);
}

#[test]
fn a_marked_journal_holds_everything_and_has_a_snapshot_in_so_many_bytes() {
    let (mut all, mut marked) = (Recorded::on(config()), Recorded::marked(config(), 20_000));
    rounds(&mut all, 1_000);
    rounds(&mut marked, 1_000);
    let (whole, bytes) = (all.journal().unwrap(), marked.journal().unwrap());
    assert_eq!(Log::read(&bytes).unwrap(), Log::read(&whole).unwrap());
    assert_eq!(replay(&bytes, |_| ()), Ok(all.digest().unwrap()));
    let snapshots = frames(&bytes).iter().filter(|(kind, _)| *kind == SNAPSHOT).count();
    // Fewer where four times the last one is more.
    assert!((2..=bytes.len() / 20_000).contains(&snapshots), "{snapshots} in {}", bytes.len());
}

#[test]
fn a_log_is_recorded_again_as_the_same_run() {
    let mut edge = Recorded::on(config());
    rounds(&mut edge, 50);
    let log = Log::read(&edge.journal().unwrap()).unwrap();
    let mut again = Recorded::ring(config(), 4_096);
    log.record(&mut again);
    assert_eq!((again.digest(), again.calls()), (edge.digest(), edge.calls()));
}
