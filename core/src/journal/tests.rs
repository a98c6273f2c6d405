//! What is written can be read, and what cannot be read is refused.

use alloc::vec::Vec;
use std::prelude::v1::*;

use bytes::Bytes;
use proptest::prelude::*;

use super::code::{Coder, Piece, Unreadable};
use super::*;
use crate::config::{Config, Endpoint, User};
use crate::edge::Edge;
use crate::id::Id;
use crate::input::{Arrivals, EndpointId, Env, Input, Output, RequestId, UserId, Writer};
use crate::time::Time;

/// Small and very large numbers, all of them about as often.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn id<Kind>(from: u64) -> Id<Kind> {
    Id::from_parts((from >> 3) as u32, (from & 7) as u32)
}

fn input(kind: u8, a: u64, b: u64) -> Input {
    let writer = if b & 1 == 0 { Writer::Session(id(a)) } else { Writer::Source(id(b)) };
    match kind {
        0 => Input::Tick,
        1..=3 => Input::Media {
            feed: id(a),
            from: writer,
            data: Bytes::from(vec![0; (b % 3_000) as usize * if b & 2 == 0 { 188 } else { 1 }]),
            random_access: (kind == 3).then_some(b),
        },
        4 | 5 => Input::Sent { viewer: id(a), bytes: b },
        6 => Input::Polled { viewer: id(a), bytes: b },
        7 => Input::Arrived { source: id(a) },
        8 => Input::Tune { title: crate::input::TitleId(a), providers: vec![crate::input::ProviderId(b as u32)] },
        _ => Input::Offer { request: RequestId(a), endpoint: EndpointId(b as u32) },
    }
}

fn answer(kind: u8, session: u64, [a, b, c]: [u64; 3]) -> Answer {
    let arrivals = |count: u64| Arrivals { count, last: (count & 3 != 0).then(|| Time::from_micros(count ^ a)) };
    let evidence = Evidence { audio: arrivals(a), video: arrivals(b), control: arrivals(c) };
    if kind == 0 { Answer::Entropy([a as u8; 16]) } else { Answer::Activity { session: id(session), evidence } }
}

prop_compose! {
    fn call()(
        back in 0u8..8, at in number(), kind in 0u8..10, a in number(), b in number(),
        answers in prop::collection::vec((0u8..4, 0u64..40, [number(), number(), number()]), 0..3),
    ) -> (u8, u64, Input, Vec<Answer>) {
        // The same few ids often, so that some are known.
        let a = if a & 1 == 0 { a & 0x1f } else { a };
        (back, at, input(kind, a, b), answers.into_iter().map(|(kind, session, all)| answer(kind, session, all)).collect())
    }
}

fn config() -> Config {
    let endpoint = Endpoint { slots: 2, ..Endpoint::default() };
    Config { endpoints: vec![endpoint], users: vec![User::default()], ..Config::default() }
}

/// Sessions whose evidence is another each time.
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

/// Some publishers, viewers and media.
fn run(edge: &mut Recorded, calls: u64) {
    let feed = edge.edge().feed_of(EndpointId(0), 0).unwrap();
    let (mut env, mut session) = (Outside(0), None);
    for round in 0..calls {
        let now = Time::from_micros(round * 20_000);
        let (request, data) = (RequestId(round), Bytes::from_static(&[0x47; 188 * 7]));
        let input = match (round % 50, session) {
            (0, _) => Input::Offer { request, endpoint: EndpointId(0) },
            (1, _) => {
                let client = crate::input::Client { address: [127, 0, 0, 1].into(), agent: round };
                let viewing =
                    crate::input::Viewing { user: UserId(0), item: crate::playback::Item::LiveTs(feed), client };
                Input::Play { request, viewing }
            }
            (2, _) => Input::Join { request, feed },
            (_, Some(session)) => Input::Media {
                feed,
                from: Writer::Session(session),
                data,
                random_access: (round % 25 == 3).then_some(0),
            },
            _ => Input::Tick,
        };
        edge.handle(now, input, &mut env);
        while let Some(output) = edge.poll() {
            match output {
                Output::Start { session: own, .. } => {
                    session = Some(own);
                    edge.handle(now, Input::Answered { session: own }, &mut env);
                }
                Output::Finish { session, .. } => edge.handle(now, Input::Released { session }, &mut env),
                Output::Joined { viewer, .. } => edge.handle(now, Input::Sent { viewer, bytes: 1316 }, &mut env),
                _ => {}
            }
        }
    }
}

fn ran(calls: u64) -> Recorded {
    let mut edge = Recorded::on(config());
    run(&mut edge, calls);
    edge
}

proptest! {
    #[test]
    fn what_is_written_is_read(calls in prop::collection::vec(call(), 1..60)) {
        let (mut bytes, mut writer, mut now) = (Vec::new(), Coder::new(Time::ZERO), Time::ZERO);
        let mut all = Vec::new();
        for (back, at, input, answers) in calls {
            let at = if back == 0 { Time::from_micros(at) } else { now + core::time::Duration::from_micros(at >> 20) };
            writer.call(&mut bytes, at, &input);
            answers.iter().for_each(|answer| writer.answer(&mut bytes, answer));
            now = now.max(at);
            all.push((now, input, answers));
        }
        let (mut reader, mut rest) = (Coder::new(Time::ZERO), &bytes[..]);
        for (now, input, answers) in all {
            match reader.read(&mut rest) {
                Ok(Piece::Call(own)) => prop_assert_eq!(own, input),
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert_eq!(reader.now(), now);
            for answer in answers {
                prop_assert!(Coder::is_answer(rest));
                match reader.read(&mut rest) {
                    Ok(Piece::Answer(own)) => prop_assert_eq!(own, answer),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert!(!Coder::is_answer(rest));
        }
        prop_assert_eq!(reader.read(&mut rest).err(), Some(Unreadable::End));
    }

    #[test]
    fn any_bytes_are_calls_or_refused(bytes: Vec<u8>) {
        let (mut reader, mut rest) = (Coder::new(Time::ZERO), &bytes[..]);
        while reader.read(&mut rest).is_ok() {}
    }

    /// The checksum protects from accidents; whoever means harm computes it.
    #[test]
    fn a_snapshot_that_makes_no_sense_is_restored_or_refused(
        at: prop::sample::Index, bits: u8, cut: Option<prop::sample::Index>, other in 0u8..4,
    ) {
        let edge = ran(300);
        let mut state = edge.edge().save(Vec::new()).unwrap();
        let place = at.index(state.len());
        state[place] ^= bits;
        state.truncate(cut.map_or(state.len(), |cut| cut.index(state.len())));
        let mut config = config();
        match other {
            0 => config.endpoints.clear(),
            1 => config.users.clear(),
            _ => {}
        }
        let snapshot = Snapshot { calls: 0, now: Time::ZERO, digest: Digest::default(), state };
        let restored = snapshot.restore(&config);
        prop_assert!(other > 1 || restored.is_none(), "of another configuration");
    }

    #[test]
    fn a_journal_that_makes_no_sense_is_read_or_refused(at: prop::sample::Index, bits: u8) {
        let mut bytes = ran(300).journal().unwrap();
        let head = frame::next(&bytes, MAGIC.len(), 0).unwrap().unwrap();
        let from = head.at + head.content.len();
        let place = from + frame::HEAD + at.index(bytes.len() - from - frame::HEAD);
        bytes[place] ^= bits;
        frame::close(&mut bytes, from, frame::Kind::Calls);
        let _ = Log::salvage(&bytes);
    }
}

#[test]
fn a_snapshot_of_another_state_is_noticed() {
    let edge = ran(100);
    let mut good = edge.journal().unwrap();
    let mut bad = good.clone();
    let (calls, digest) = (edge.calls(), edge.digest().unwrap());
    let now = Log::read(&good).unwrap().calls.last().unwrap().now;
    snapshot::take(edge.edge(), &mut good, calls, now, digest);
    assert_eq!(replay(&good, |_| {}), Ok(digest));
    snapshot::take(&Edge::new(config()), &mut bad, calls, now, digest);
    assert_eq!(replay(&bad, |_| {}), Err(JournalFault::OtherState { call: calls }));
}

#[test]
fn there_is_a_digest_each_4096_calls() {
    let edge = ran(9_000);
    let bytes = edge.journal().unwrap();
    let (mut at, mut frames) = (MAGIC.len(), 0);
    while let Some(frame) = frame::next(&bytes, at, 0).unwrap() {
        at = frame.at + frame.content.len();
        frames += 1;
    }
    assert_eq!(frames, 1 + edge.calls().div_ceil(4096));
    let mut reader = read::Reader::new(&bytes).unwrap();
    let mut digests = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        if let read::Entry::Digest(_) = entry {
            digests.push(reader.call);
        }
    }
    assert_eq!(digests, [4096, 8192, edge.calls()]);
}

#[test]
fn a_digest_knows_where_its_pieces_end() {
    let of = |pieces: &[&[u8]]| {
        let mut digest = Digest::default();
        pieces.iter().for_each(|piece| digest.update(piece));
        digest.value()
    };
    let all = [
        of(&[b"12345678", b"1"]),
        of(&[b"123456781"]),
        of(&[b"12345678"]),
        of(&[b"1234567", b"81"]),
        of(&[b""]),
        of(&[]),
        of(&[b"\0"]),
        of(&[b"\0\0"]),
        of(&[b"\0\0\0\0\0\0\0\0"]),
    ];
    let distinct: alloc::collections::BTreeSet<u64> = all.into();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(of(&[b"the same on every machine"]), 3_223_096_319_904_988_031, "here");
}

#[test]
fn media_is_as_long_as_it_was_up_to_a_limit() {
    let mut zeros = super::media::Zeros::default();
    let limit = 64 << 20;
    for length in [0, 188, 100_000, limit] {
        assert_eq!(zeros.get(length).map(|data| data.len() as u64), Some(length));
    }
    assert_eq!(zeros.get(limit + 1), None);
}

#[test]
fn which_feed_is_ready_is_in_the_digest() {
    let mut table = crate::id::Table::<crate::input::FeedKind, ()>::default();
    let (first, second) = (table.insert(()), table.insert(()));
    table.remove(second);
    let digest = |feed| {
        let mut digest = super::digest::Digest::default();
        super::record::digest_output(&mut digest, &mut Vec::new(), &Output::Ready { feed });
        digest
    };
    let all = [first, second, table.insert(())].map(digest);
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
}

/// As many places as a busy edge has sessions: some fall on the same row of what is known.
#[test]
fn the_evidence_of_sessions_far_apart_is_told_apart() {
    let evidence = |count| Evidence { audio: Arrivals { count, last: None }, ..Evidence::default() };
    let places = [0, 256, 0, 70_000, 256, 112, 70_000];
    let answers: Vec<Answer> = (1..)
        .zip(places)
        .map(|(count, place)| Answer::Activity { session: Id::from_parts(place, 0), evidence: evidence(count) })
        .collect();
    let (mut bytes, mut writer, mut reader) = (Vec::new(), Coder::new(Time::ZERO), Coder::new(Time::ZERO));
    answers.iter().for_each(|answer| writer.answer(&mut bytes, answer));
    let mut rest = &bytes[..];
    for answer in answers {
        match reader.read(&mut rest) {
            Ok(Piece::Answer(own)) => assert_eq!(own, answer),
            other => core::panic!("{other:?}"),
        }
    }
}

#[test]
fn a_segment_is_a_quarter_of_its_ring() {
    let mut kept = kept::Kept::new(kept::Limit::Bytes(4_000));
    let due = |kept: &kept::Kept| [999, 1_000].map(|open| kept.is_due(Time::ZERO, open));
    assert_eq!(due(&kept), [false, true]);
    kept.begin(Time::ZERO, &[0; 10]);
    kept.push(&[0; 90]);
    assert_eq!([899, 900].map(|open| kept.is_due(Time::ZERO, open)), [false, true], "with what it has");
}

#[test]
fn who_asks_again_has_only_what_is_new() {
    let mut kept = kept::Kept::new(kept::Limit::Bytes(1));
    let head = Bytes::from_static(b"head");
    let since = |kept: &kept::Kept, mark| {
        let mut all = Vec::new();
        let mark = kept.since(mark, &head, &mut |fresh| all.push(fresh));
        (mark, all)
    };
    let segment = |gap| Fresh::Segment { head: head.clone(), gap };
    let frame = |bytes: &'static [u8]| Fresh::Frame(Bytes::from_static(bytes));
    kept.push(b"1");
    let (mark, all) = since(&kept, Mark::default());
    assert_eq!(all, [segment(false), frame(b"1")]);
    kept.push(b"2");
    let (mark, all) = since(&kept, mark);
    assert_eq!(all, [frame(b"2")]);
    // The oldest segment that is still there has everything that was asked for.
    kept.begin(Time::ZERO, b"3");
    let (mark, all) = since(&kept, mark);
    assert_eq!(all, [segment(false), frame(b"3")]);
    kept.push(b"4567890");
    kept.begin(Time::ZERO, b"0");
    assert_eq!(since(&kept, mark).1, [segment(true), frame(b"0")]);
}

#[test]
fn a_ring_that_begins_long_after_its_clock_begins_with_nothing() {
    let mut edge = Recorded::ring(config(), 1 << 20);
    edge.handle(Time::from_micros(100_000_000), Input::Tick, &mut Outside(0));
    let log = Log::read(&edge.journal().unwrap()).unwrap();
    assert_eq!((log.snapshot, log.calls.len()), (None, 1));
}

#[test]
fn the_opening_of_a_journal_says_what_it_is_of_and_what_it_begins_with() {
    let head = Head { seed: Some(7), ..Head::from(config()) };
    let mut edge = Recorded::on(head);
    run(&mut edge, 10);
    let bytes = edge.journal().unwrap();
    let whole = Log::read(&bytes).unwrap();
    let opening = Log::opening(&bytes).unwrap();
    assert_eq!((opening.head.seed, opening.head.config, opening.snapshot), (Some(7), whole.head.config.clone(), None));
    let mut bytes = record::begin(&whole.head);
    snapshot::take(edge.edge(), &mut bytes, edge.calls(), Time::ZERO, edge.digest().unwrap());
    assert_eq!(Log::opening(&bytes).unwrap().snapshot.map(|snapshot| snapshot.calls), Some(edge.calls()));
}

/// A log in which what was answered is another, as of a run that diverges at its first answer; and which call that is.
fn with_other_answers(other: impl Fn(&Answer) -> Vec<Answer>) -> (Log, u64) {
    let mut log = Log::read(&ran(200).journal().unwrap()).unwrap();
    let asks = |call: &Call| matches!(call.answers[..], [Answer::Activity { .. }, ..]);
    let place = log.calls.iter().position(asks).expect("sessions are looked at");
    let answers = &mut log.calls[place].answers;
    let first = answers.remove(0);
    answers.splice(..0, other(&first));
    (log, place as u64 + 1)
}

#[test]
fn a_run_that_asks_for_something_else_diverges() {
    let (log, _) = with_other_answers(|own| Vec::from([*own]));
    assert!(replay(&log.write(), |_| {}).is_ok());
    let of_another = |own: &Answer| match *own {
        Answer::Activity { evidence, .. } => Vec::from([Answer::Activity { session: id(0x7fff), evidence }]),
        Answer::Entropy(_) => Vec::new(),
    };
    let twice = |own: &Answer| Vec::from([*own, *own]);
    for (log, call) in [with_other_answers(of_another), with_other_answers(twice), with_other_answers(|_| Vec::new())] {
        let mut bytes = log.write();
        assert_eq!(replay(&bytes, |_| {}), Err(JournalFault::Diverged { call }));
        // Of what was not checked it is not known whether it was written so.
        let at = frame::next(&bytes, MAGIC.len(), 0).unwrap().map(|head| head.at + head.content.len()).unwrap();
        bytes.pop();
        assert_eq!(replay(&bytes, |_| {}), Err(JournalFault::Truncated { at, call: call - 1 }));
    }
}

#[test]
fn what_did_not_come_out_is_another_digest() {
    let edge = ran(50);
    let mut bytes = edge.journal().unwrap();
    let head = frame::next(&bytes, MAGIC.len(), 0).unwrap().unwrap();
    let from = head.at + head.content.len();
    *bytes.last_mut().unwrap() ^= 1;
    frame::close(&mut bytes, from, frame::Kind::Calls);
    assert_eq!(replay(&bytes, |_| {}), Err(JournalFault::OtherDigest { call: edge.calls() }));
}

/// What is answered in each call of a log that is played.
fn given(log: &Log) -> Vec<Vec<Answer>> {
    let mut all = Vec::new();
    log.play(|step| all.push(step.answers.to_vec())).unwrap();
    all
}

#[test]
fn where_nothing_was_recorded_a_session_has_the_evidence_that_it_had_last() {
    let mut log = Log::read(&ran(200).journal().unwrap()).unwrap();
    let looks = |call: &Call| matches!(call.answers[..], [Answer::Activity { .. }, ..]);
    let first = log.calls.iter().position(looks).expect("sessions are looked at");
    let known = log.calls[first].answers[0];
    log.calls[first].answers.truncate(1);
    log.calls[first + 1..].iter_mut().for_each(|call| call.answers.clear());
    let given = given(&log);
    assert!(given[first + 1..].iter().flatten().any(|own| *own == known), "{given:?}");
}

#[test]
fn evidence_of_another_session_is_none_of_the_one_that_is_asked_for() {
    let (log, call) = with_other_answers(|own| match *own {
        Answer::Activity { evidence, .. } => Vec::from([Answer::Activity { session: id(0x7fff), evidence }]),
        Answer::Entropy(_) => Vec::new(),
    });
    let nothing = |own: &Answer| matches!(own, Answer::Activity { evidence, .. } if *evidence == Evidence::default());
    assert!(nothing(&given(&log)[call as usize - 1][0]));
}

#[test]
fn where_nothing_was_recorded_chance_is_another_each_time() {
    let mut log = Log::read(&ran(200).journal().unwrap()).unwrap();
    log.calls.iter_mut().for_each(|call| call.answers.clear());
    let all: Vec<[u8; 16]> = given(&log)
        .into_iter()
        .flatten()
        .filter_map(|own| if let Answer::Entropy(bytes) = own { Some(bytes) } else { None })
        .collect();
    let distinct: alloc::collections::BTreeSet<_> = all.iter().collect();
    assert!(all.len() > 1 && distinct.len() == all.len(), "{all:?}");
}

#[test]
fn media_in_any_input_is_as_long_as_it_was() {
    let data = Bytes::from_static(&[0; 500]);
    let input = Input::Media { feed: id(8), from: Writer::Session(id(8)), data, random_access: None };
    let bytes = postcard::to_allocvec(&input).unwrap();
    assert_eq!(postcard::from_bytes::<Input>(&bytes), Ok(input));
}
