//! What status says of publishing, and what comes too late.

use alloc::vec;
use alloc::vec::Vec;

use super::Publish;
use super::tests::{AUDIO_VIDEO, Stage, ms};
use crate::config::{Config, Endpoint, Live, Takeover};
use crate::feed::Feeds;
use crate::input::{EndReason, EndpointId, Input, Output, RefuseReason, RequestId};
use crate::twins::Twins;

#[test]
fn every_post_is_counted_as_what_became_of_it() {
    let mut stage = Stage::new(Endpoint { takeover: Takeover::Refuse, ..Endpoint::default() });
    let a = stage.publish(AUDIO_VIDEO);
    stage.run(1_000);
    stage.post();
    stage.post();
    stage.input(Input::End { session: a, reason: EndReason::Deleted });
    let counts = stage.edge.publish().endpoint(EndpointId(0)).unwrap().counts;
    assert_eq!((counts.offers, counts.accepted), (3, 1));
    assert_eq!(counts.refused[RefuseReason::HolderLive as usize], 2);
    assert_eq!(counts.ended[EndReason::Deleted as usize], 1);
    assert_eq!((counts.refused.iter().sum::<u64>(), counts.ended.iter().sum::<u64>()), (2, 1));
}

#[test]
fn a_session_is_answered_once_and_what_comes_again_is_counted_as_late() {
    let mut stage = Stage::one_slot();
    let offer = Input::Offer { request: RequestId(1), endpoint: EndpointId(0) };
    stage.edge.handle(ms(0), offer.clone(), &mut stage.peers);
    let Some(Output::Start { session, .. }) = stage.edge.poll() else { panic!("it is let in") };
    let answered = |stage: &Stage| stage.edge.publish().session(session).map(|session| session.is_answered());
    assert_eq!(answered(&stage), Some(false));
    stage.edge.handle(ms(0), offer, &mut stage.peers);
    assert_eq!(stage.edge.publish().stale(), 1, "this request has a session already");
    stage.input(Input::Answered { session });
    assert_eq!((answered(&stage), stage.edge.publish().stale()), (Some(true), 1));
    stage.input(Input::Answered { session });
    assert_eq!(stage.edge.publish().stale(), 2, "it has its answer");
    stage.input(Input::End { session, reason: EndReason::Deleted });
    stage.input(Input::Answered { session });
    assert_eq!((answered(&stage), stage.edge.publish().stale()), (None, 3), "it is over");
}

#[test]
fn who_displaced_a_holder_looks_again_after_a_pause() {
    let (mut stage, a) = Stage::dead_holder(1_000);
    stage.release = false;
    stage.run(4_000);
    stage.post();
    assert_eq!(stage.reasons(a), [EndReason::Displaced]);
    assert_eq!(stage.edge.deadline(), Some(ms(4_000) + Endpoint::default().poll));
    assert_eq!(stage.edge.publish().endpoint(EndpointId(0)).map(|endpoint| endpoint.waiting()), Some(1));
}

#[test]
fn slots_are_gone_on_with_only_where_each_endpoint_has_as_many() {
    let publish = |slots: [u32; 2]| {
        let endpoints = slots.map(|slots| Endpoint { slots, ..Endpoint::default() });
        let mut feeds = Feeds::new(Live::default());
        Publish::new(&Config { endpoints: endpoints.into(), ..Config::default() }, || feeds.open())
    };
    assert_eq!(publish([1, 2]).configure(publish([1, 2])), Some(()));
    assert_eq!(publish([1, 2]).configure(publish([2, 1])), None);
    assert_eq!(publish([1, 2]).configure(publish([1, 1])), None);
}

#[test]
fn what_is_there_is_counted_and_a_drain_says_so_to_whoever_it_was_negotiated_with() {
    let mut stage = Stage::one_slot();
    let (first, second) = (RequestId(1), RequestId(2));
    for request in [first, second] {
        stage.edge.handle(ms(0), Input::Offer { request, endpoint: EndpointId(0) }, &mut stage.peers);
    }
    while stage.edge.poll().is_some() {}
    let publish = stage.edge.publish();
    assert_eq!((publish.session_count(), publish.unanswered(), publish.timer_count()), (1, 1, 1));
    stage.input(Input::Hangup { request: RequestId(3) });
    assert_eq!(stage.edge.publish().stale(), 1, "nobody knows this one");
    let refused = |stage: &Stage| stage.edge.publish().endpoint(EndpointId(0)).unwrap().counts.refused;
    assert_eq!(refused(&stage)[RefuseReason::Draining as usize], 0);
    stage.edge.handle(ms(0), Input::Drain, &mut stage.peers);
    let outputs: Vec<Output> = core::iter::from_fn(|| stage.edge.poll()).collect();
    assert!(outputs.contains(&Output::Refuse { request: first, reason: RefuseReason::Draining }), "{outputs:?}");
    assert_eq!(refused(&stage)[RefuseReason::Draining as usize], 1);
}

#[test]
fn each_session_fills_the_feed_of_its_slot() {
    let endpoint = || Endpoint { slots: 2, ..Endpoint::default() };
    let mut stage = Stage::new(endpoint());
    stage.edge = Twins::new(Config { endpoints: vec![endpoint(), endpoint()], ..Config::default() });
    for (request, endpoint) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        stage.input(Input::Offer { request: RequestId(request), endpoint: EndpointId(endpoint) });
    }
    assert_eq!(stage.edge.publish().session_count(), 4);
    for (_, session) in stage.edge.publish().sessions() {
        assert_eq!(Some(session.feed), stage.edge.feed_of(session.endpoint, session.hold.slot as usize));
    }
}

#[test]
fn only_a_session_that_is_answered_and_not_over_is_asked_for_a_key_frame() {
    let asked = |stage: &mut Stage| {
        let feed = stage.edge.feed_of(EndpointId(0), 0).unwrap();
        stage.edge.handle(ms(0), Input::Join { request: RequestId(9), feed }, &mut stage.peers);
        core::iter::from_fn(|| stage.edge.poll()).any(|output| matches!(output, Output::KeyFrame { .. }))
    };
    let mut stage = Stage::one_slot();
    let offer = Input::Offer { request: RequestId(1), endpoint: EndpointId(0) };
    stage.edge.handle(ms(0), offer, &mut stage.peers);
    while stage.edge.poll().is_some() {}
    assert!(!asked(&mut stage), "it has no answer");
    let mut stage = Stage::one_slot();
    let session = stage.publish(AUDIO_VIDEO);
    stage.release = false;
    stage.input(Input::End { session, reason: EndReason::Deleted });
    assert!(!asked(&mut stage), "it is over");
}
