//! Stories of runs whose outcome is known.

use crate::Options;
use std::time::Duration;

use holdfast_core::config::{Channel, Config, Endpoint};
use holdfast_core::input::{Env, Evidence, Input, RequestId, SessionId};
use holdfast_core::journal::Recorded;

use super::lanes::State;
use super::*;

/// Whatever it is, with all its parts.
struct AsItIs;

impl Words for AsItIs {
    fn note(&self, note: &Note) -> String {
        format!("{note:?}")
    }

    fn input(&self, input: &Input) -> String {
        format!("{input:?}")
    }
}

fn as_it_is(_: &Config) -> Box<dyn Words> {
    Box::new(AsItIs)
}

fn told(scenario: &str, seed: u64) -> Story {
    crate::record(scenario, seed, &Options::default(), None, &as_it_is).expect("it keeps a journal").1
}

fn lane<'s>(story: &'s Story, name: &str) -> &'s Lane {
    let names = || story.lanes.iter().map(|lane| lane.name.as_str()).collect::<Vec<_>>();
    story.lanes.iter().find(|lane| lane.name == name).unwrap_or_else(|| panic!("no lane {name} among {:?}", names()))
}

fn states(story: &Story, lane: &Lane) -> Vec<(String, State)> {
    lane.spans.iter().map(|span| (story.texts.of(span.who).to_owned(), span.state)).collect()
}

#[test]
fn a_slot_shows_who_held_it_and_why_it_was_lost() {
    let story = told("w1", 1);
    let slot = lane(&story, "live");
    let seen = states(&story, slot);
    let first = |state| (String::from("session 0.0"), state);
    assert_eq!(seen[..4], [State::Connecting, State::Live, State::Dead, State::Closing].map(first), "{seen:?}");
    assert!(seen[4].0 != "session 0.0" && seen[4].1 == State::Connecting, "{seen:?}");
    let displaced = slot.marks.iter().find(|mark| story.texts.of(mark.word) == "displaced").expect("it was displaced");
    let why = story.texts.of(displaced.why);
    for part in ["session: 0.0", "reason: Displaced", "dead_after is 2.00 s", "POST 2 had waited for"] {
        assert!(why.contains(part), "{why}");
    }
    // It is dead from its last media on, which is before anybody could know.
    assert!(displaced.at.since(slot.spans[2].from) >= Duration::from_secs(2));
    let posts = lane(&story, "live POSTs");
    assert_eq!(states(&story, posts), [(String::from("POST 2"), State::Waiting)]);
    assert_eq!(posts.spans[0].to, displaced.at, "it waited until then");
}

#[test]
fn every_scenario_can_be_told_in_order() {
    let scenarios = crate::scenarios().iter().map(|scenario| scenario.name);
    for (scenario, seeds) in scenarios
        .filter(|name| !matches!(*name, "evening" | "canary-stuck") && !name.starts_with("net-"))
        .map(|name| (name, 0..2))
    {
        for seed in seeds {
            in_order(scenario, &told(scenario, seed));
        }
    }
    (0..40).for_each(|seed| in_order("random", &told("random", seed)));
}

fn in_order(scenario: &str, story: &Story) {
    assert!(!story.lanes.is_empty(), "{scenario}");
    let within = |at: Time| story.begin <= at && at <= story.end;
    for lane in &story.lanes {
        for span in &lane.spans {
            assert!(
                span.from <= span.to && within(span.from) && within(span.to),
                "{scenario}: {}: {span:?}",
                lane.name
            );
        }
        let apart = lane.spans.windows(2).all(|pair| pair[0].to <= pair[1].from);
        assert!(apart, "{scenario}: {}: {:?}", lane.name, lane.spans);
        assert!(lane.marks.iter().all(|mark| within(mark.at)), "{scenario}: {}: {:?}", lane.name, lane.marks);
    }
}

#[test]
fn faults_are_marked_when_they_bit() {
    let (result, story) = crate::record("random", 3, &Options::default(), None, &as_it_is).expect("it keeps a journal");
    let witness = result.expect("it holds").witness;
    for (name, count) in witness.faults.iter() {
        let marked = story.lanes.iter().find(|lane| lane.group == Group::Faults && lane.name == name);
        assert_eq!(marked.is_some(), count > 0, "{name}");
    }
}

#[test]
fn a_broken_invariant_is_marked_with_its_id() {
    let (result, story) = crate::record("canary", 7, &Options::default(), None, &as_it_is).expect("it keeps a journal");
    assert!(result.is_err());
    let broken = story.broken.as_ref().expect("it is broken");
    assert_eq!(broken.id, "publish-3");
    assert!(broken.at <= story.end);
    assert!(page(&story).contains("<strong>publish-3</strong> is broken at"));
}

#[test]
fn several_edges_stand_one_below_another() {
    let story = told("silent-origin-3-edges", 1);
    for edge in ["edge 1", "edge 2", "edge 3"] {
        assert!(!lane(&story, &format!("{edge} · channel")).spans.is_empty());
    }
}

#[test]
fn a_story_that_begins_in_the_middle_begins_with_what_is_there() {
    let (_, tapes) = crate::tape::record(|| crate::run("w1", 1, None));
    let whole = of_journal(&tapes[0].whole, &as_it_is).expect("it repeats");
    let displaced = lane(&whole, "live").spans[3].from;
    let mut teller = Teller::new(&as_it_is);
    journal::replay(&tapes[0].whole, |step| {
        // Half a second before the first session is displaced, and long after it was let in.
        if step.now + Duration::from_millis(500) >= displaced {
            teller.step(&step);
        }
    })
    .expect("it repeats");
    let late = teller.finish();
    let slot = lane(&late, "live");
    assert_eq!((slot.spans[0].from, slot.spans[0].state), (late.begin, State::Dead), "{:?}", slot.spans);
    assert_eq!(late.texts.of(slot.spans[0].who), "session 0.0");
    let ends = |story: &Story| lane(story, "live").marks.iter().map(|mark| mark.at).next_back();
    assert_eq!(ends(&late), ends(&whole));
}

/// Nobody sends anything.
struct Nothing;

impl Env for Nothing {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        [7; 16]
    }
}

#[test]
fn names_stay_text_whatever_they_are() {
    let name = String::from("</script><img src=x onerror=alert(1)><!--<script>&\"'\u{202e}");
    let endpoint = Endpoint { name: name.clone(), ..Endpoint::default() };
    let config = Config {
        endpoints: vec![endpoint],
        channels: vec![Channel { name, ..Channel::default() }],
        ..Config::default()
    };
    let mut edge = Recorded::on(config);
    for request in 1..4 {
        edge.handle(
            Time::from_micros(request * 1000),
            Input::Offer { request: RequestId(request), endpoint: holdfast_core::input::EndpointId(0) },
            &mut Nothing,
        );
        while edge.poll().is_some() {}
    }
    let story = of_journal(&edge.journal().expect("it is kept"), &as_it_is).expect("it repeats");
    let page = page(&story.titled("<b>title</b>"));
    assert!(!page.contains("<img") && !page.contains("<b>title") && !page.contains("<!--<"));
    assert_eq!(page.matches("</script>").count(), 2, "the page's own");
    assert!(page.contains("&lt;/script&gt;&lt;img"), "it is in the tables");
}

#[test]
fn a_page_names_no_address() {
    let page = page(&told("w1", 1));
    for address in ["http:", "https:", "//www", "@import", "url(", "src="] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn what_is_no_journal_has_no_story() {
    assert!(matches!(of_journal(b"something else", &as_it_is), Err(JournalFault::NotAJournal)));
}
