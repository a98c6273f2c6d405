//! What status says of publishing, and what comes too late.

use super::Publish;
use super::tests::{AUDIO_VIDEO, Stage, ms};
use crate::config::{Config, Endpoint, Live, Takeover};
use crate::feed::Feeds;
use crate::input::{EndReason, EndpointId, Input, Output, RefuseReason, RequestId};

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
