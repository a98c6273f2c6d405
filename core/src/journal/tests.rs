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
