//! The cases people reported, on the bare core: each a script, what it must show, and what it measured.
//!
//! Nothing goes wrong here but what the script does; the seed moves the moments at which it does it.

use std::io::Write;
use std::time::Duration;

use holdfast_core::config::{Config, Endpoint};
use holdfast_core::input::{EndReason, EndpointId, Input, RefuseReason, RequestId, SessionId, Writer};
use holdfast_core::publish::{Denied, Head, OFFER_LIMIT};
use holdfast_core::time::Time;
use rand::Rng;

use super::chance::{Fault, Plan};
use super::oracle::{Broken, shows};
use super::stream::{Rhythm, Track};
use super::truth::{Fate, media};
use super::{World, canary, random};
use crate::{Figures, Report, Scenario};

macro_rules! script {
    ($id:literal, $slots:expr, $script:expr) => {
        |seed, trace| play($id, $slots, $script, seed, trace)
    };
}

/// Every scenario of the world.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "random",
        shows: "whatever goes wrong, every invariant holds, and in peace nothing is left",
        play: random::play,
    },
    Scenario {
        name: "w1",
        shows: "A dies, B asks at once: B is in within dead_after + poll, A ends once",
        play: script!("w1", 1, w1),
    },
    Scenario {
        name: "w2",
        shows: "A died up to dead_after before B asks: B is in at the moment A counts as dead",
        play: script!("w2", 1, w2),
    },
    Scenario { name: "w3", shows: "A is healthy: B is refused within 150 ms, A untouched", play: script!("w3", 1, w3) },
    Scenario { name: "w4", shows: "A negotiates: B is refused at once", play: script!("w4", 1, w4) },
    Scenario {
        name: "w5",
        shows: "A sends a frame each 5 s and no audio: B is refused at once, always",
        play: script!("w5", 1, w5),
    },
    Scenario {
        name: "w6",
        shows: "A dead with audio, C quiet without: A is displaced, not C",
        play: script!("w6", 2, w6),
    },
    Scenario { name: "w7", shows: "a late DELETE of the displaced A touches nobody", play: script!("w7", 1, w7) },
    Scenario {
        name: "w8",
        shows: "A is displaced and sends on: nothing of it enters the slot, B's media comes first",
        play: script!("w8", 1, w8),
    },
    Scenario { name: "w9", shows: "B has no right to publish: the dead A is not touched", play: script!("w9", 1, w9) },
    Scenario { name: "w10", shows: "junk POSTs: the dead A is not touched", play: script!("w10", 1, w10) },
    Scenario {
        name: "w11",
        shows: "two, then ten POSTs in one millisecond while the holder is dead: one wins and keeps it",
        play: script!("w11", 1, w11),
    },
    Scenario {
        name: "w12",
        shows: "B hangs up while it waits: nothing is left of it, A is not displaced for it",
        play: script!("w12", 1, w12),
    },
    Scenario {
        name: "w13",
        shows: "a client that never sends media: its slot is free after setup_timeout",
        play: script!("w13", 1, w13),
    },
    Scenario {
        name: "w16",
        shows: "A pauses everything for 3 s again and again, nobody asks: A is never touched",
        play: script!("w16", 1, w16),
    },
    Scenario {
        name: "w18",
        shows: "A is displaced: its end is told before its slot is given on, within the same call",
        play: script!("w18", 1, w18),
    },
    Scenario {
        name: "torn",
        shows: "A dies while its last packet is counted, B asks: refused at the next look, let in when it asks again",
        play: script!("torn", 1, torn),
    },
    Scenario {
        name: "rig",
        shows: "the table of situations of the publish rules, on the bare core",
        play: script!("rig", 1, rig),
    },
    Scenario {
        name: "drain",
        shows: "the program ends with publishers, waiting POSTs and viewers: all are told, nothing is left",
        play: script!("drain", 2, drain),
    },
    Scenario {
        name: "canary",
        shows: "must fail with publish-3: evidence lags by more than the judges were told",
        play: canary::living,
    },
    Scenario {
        name: "canary-peace",
        shows: "must fail with publish-7 when it is at peace: the driver never wakes again, and a POST waits for ever",
        play: canary::peace,
    },
    Scenario {
        name: "canary-stuck",
        shows: "must end the program after half a minute: a call that never returns, and only a thread beside it can say so",
        play: canary::stuck,
    },
];

type Script = fn(&mut World<'_>, &mut Figures) -> Result<(), Broken>;

fn play(
    id: &'static str,
    slots: u32,
    script: Script,
    seed: u64,
    trace: Option<&mut dyn Write>,
) -> Result<Report, (Time, Broken)> {
    let endpoint = Endpoint { slots, tokens: vec!["secret".into()], ..Endpoint::default() };
    let config = Config { endpoints: vec![endpoint], ..Config::default() };
    let mut world = World::new(config, seed, Plan::calm(), trace);
    let mut figures = Figures::default();
    let played = script(&mut world, &mut figures);
    let now = world.now;
    let name = |broken: Broken| match broken {
        Broken { id: "script", what } => (now, Broken { id, what }),
        broken => (now, broken),
    };
    played.and_then(|()| world.close(figures)).map_err(name)
}

impl World<'_> {
    pub(super) fn wait(&mut self, ms: u64) -> Result<(), Broken> {
        self.run(self.now + Duration::from_millis(ms))
    }

    /// A moment that the seed chose, up to so many ms from now.
    pub(super) fn while_away(&mut self, most_ms: u64) -> Result<(), Broken> {
        let micros = self.dice.random_range(0..=most_ms * 1000);
        self.run(self.now + Duration::from_micros(micros))
    }

    pub(super) fn ask(&mut self) -> Result<RequestId, Broken> {
        let request = self.request(None);
        self.call(Input::Offer { request, endpoint: EndpointId(0) })?;
        // What the media side does at once has been done.
        self.wait(0)?;
        Ok(request)
    }

    fn fate(&self, request: RequestId) -> Fate {
        self.truth.posts[&request].fate
    }

    /// How long a POST took to get its answer, in ms, rounded up.
    fn took(&self, request: RequestId) -> u64 {
        let post = &self.truth.posts[&request];
        let micros = post.answered.map_or(0, |at| at.since(post.arrived).as_micros() as u64);
        micros.div_ceil(1000)
    }

    fn accepted(&self, request: RequestId) -> Result<SessionId, Broken> {
        match self.fate(request) {
            Fate::Accepted(session) => Ok(session),
            fate => Err(Broken { id: "script", what: format!("{request:?} should be in, but is {fate:?}") }),
        }
    }

    fn refused(&self, request: RequestId, reason: RefuseReason) -> Result<u64, Broken> {
        let fate = self.fate(request);
        shows!(fate == Fate::Refused(reason), "{request:?} should be refused for {reason:?}, but is {fate:?}");
        Ok(self.took(request))
    }

    /// A publisher that is let in at once and sends from now on.
    pub(super) fn publish(&mut self, rhythm: Rhythm) -> Result<SessionId, Broken> {
        let request = self.ask()?;
        let session = self.accepted(request)?;
        self.send(session, Some(rhythm));
        Ok(session)
    }

    /// A publisher that has sent for so many ms, and up to a second more.
    fn publishing(&mut self, ms: u64) -> Result<SessionId, Broken> {
        let session = self.publish(Rhythm::AUDIO_VIDEO)?;
        self.wait(ms)?;
        self.while_away(1_000)?;
        Ok(session)
    }

    fn end_of(&self, session: SessionId) -> Option<EndReason> {
        self.truth.sessions[&session].finished.map(|(reason, _)| reason)
    }

    fn untouched(&self, session: SessionId) -> Result<(), Broken> {
        let end = self.end_of(session);
        shows!(end.is_none(), "{session} should live, but ended: {end:?}");
        Ok(())
    }

    fn ended(&self, session: SessionId, reason: EndReason) -> Result<(), Broken> {
        let end = self.end_of(session);
        shows!(end == Some(reason), "{session} should have ended as {reason:?}, but: {end:?}");
        Ok(())
    }
}

const DEAD_AFTER: u64 = 2000;
const POLL: u64 = 100;

fn w1(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publishing(10_000)?;
    world.send(a, None);
    let b = world.ask()?;
    world.wait(20_000)?;
    world.accepted(b)?;
    let took = world.took(b);
    shows!(took <= DEAD_AFTER + POLL, "B was let in after {took} ms");
    world.ended(a, EndReason::Displaced)?;
    figures.add("granted_after_ms", took);
    Ok(())
}

fn w2(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publishing(10_000)?;
    world.send(a, None);
    let died = world.now;
    world.while_away(DEAD_AFTER - 1)?;
    let b = world.ask()?;
    let before = world.now.since(died).as_millis() as u64;
    world.wait(20_000)?;
    world.accepted(b)?;
    let took = world.took(b) + before;
    shows!((DEAD_AFTER - 40..=DEAD_AFTER + POLL).contains(&took), "B was let in {took} ms after A died");
    world.ended(a, EndReason::Displaced)?;
    figures.add("asked_after_death_ms", before);
    figures.add("granted_after_death_ms", took);
    Ok(())
}

fn torn(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.plan = Plan::calm().with(Fault::TornEvidence, 1000);
    world.allowance.unseen = world.plan.unseen_at_most();
    let a = world.publishing(10_000)?;
    let last = |world: &World<'_>| world.truth.sessions[&a].stream.at(world.now).audio.last;
    let before = last(world);
    while last(world) == before {
        world.run(world.now + Duration::from_micros(100))?;
    }
    // What came in this very moment would be lost.
    world.run(world.now + Duration::from_micros(100))?;
    world.send(a, None);
    let b = world.ask()?;
    world.wait(POLL)?;
    let took = world.refused(b, RefuseReason::HolderLive)?;
    world.untouched(a)?;
    let again = world.ask()?;
    world.wait(DEAD_AFTER)?;
    world.accepted(again)?;
    figures.add("refused_after_ms", took);
    Ok(())
}

fn w3(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    let mut slowest = 0;
    for _ in 0..20 {
        world.wait(1_000)?;
        world.while_away(1_000)?;
        let b = world.ask()?;
        world.wait(4_000)?;
        slowest = slowest.max(world.refused(b, RefuseReason::HolderLive)?);
    }
    shows!(slowest <= 150, "B was refused after {slowest} ms");
    world.untouched(a)?;
    figures.add("refused_after_ms", slowest);
    Ok(())
}

fn w4(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.ask()?;
    let a = world.accepted(a)?;
    world.while_away(10_000)?;
    let b = world.ask()?;
    let took = world.refused(b, RefuseReason::HolderNegotiating)?;
    shows!(took == 0, "B was refused after {took} ms");
    world.untouched(a)?;
    figures.add("refused_after_ms", took);
    Ok(())
}

fn w5(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publish(Rhythm::video_only(5_000))?;
    let mut slowest = 0;
    for _ in 0..20 {
        world.wait(100)?;
        world.while_away(6_000)?;
        let b = world.ask()?;
        slowest = slowest.max(world.refused(b, RefuseReason::HolderWithoutAudio)?);
    }
    shows!(slowest == 0, "B was refused after {slowest} ms");
    world.untouched(a)?;
    figures.add("refused_after_ms", slowest);
    Ok(())
}

fn w6(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let c = world.publish(Rhythm::video_only(8_000))?;
    world.wait(1_000)?;
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    world.wait(1_000)?;
    world.send(a, None);
    world.wait(2_500)?;
    world.while_away(3_000)?;
    let b = world.ask()?;
    let b_session = world.accepted(b)?;
    world.ended(a, EndReason::Displaced)?;
    world.untouched(c)?;
    let slots = (world.truth.sessions[&a].slot, world.truth.sessions[&b_session].slot);
    shows!(slots.0 == slots.1, "A left slot {}, B took slot {}", slots.0, slots.1);
    figures.add("granted_after_ms", world.took(b));
    Ok(())
}

/// A dies and B gets its slot.
fn take_over(world: &mut World<'_>) -> Result<(SessionId, SessionId), Broken> {
    let a = world.publishing(5_000)?;
    world.send(a, None);
    let b = world.ask()?;
    world.wait(DEAD_AFTER + POLL)?;
    let b = world.accepted(b)?;
    world.send(b, Some(Rhythm::AUDIO_VIDEO));
    Ok((a, b))
}

fn w7(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (a, b) = take_over(world)?;
    world.while_away(5_000)?;
    let stale = world.edge.edge().publish().stale();
    world.call(Input::End { session: a, reason: EndReason::Deleted })?;
    world.call(Input::Released { session: a })?;
    world.wait(60_000)?;
    world.ended(a, EndReason::Displaced)?;
    world.untouched(b)?;
    let late = world.edge.edge().publish().stale() - stale;
    shows!(late == 2, "{late} of 2 late inputs were counted");
    figures.add("late_inputs", late);
    Ok(())
}

fn w8(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (a, b) = take_over(world)?;
    let feed = world.truth.sessions[&b].feed;
    let before = world.truth.feeds[&feed].head;
    // A's network is back: it never heard that it was displaced.
    world.send(a, Some(Rhythm::AUDIO_VIDEO));
    let mut dropped = 0;
    for serial in 0..10 {
        let from = Writer::Session(a);
        world.call(Input::Media { feed, from, data: media(1_000_000 + serial, 188), random_access: Some(0) })?;
        dropped += 1;
        world.while_away(10)?;
    }
    world.wait(5_000)?;
    let first = world.truth.feeds[&feed].chunk(before).map(|chunk| chunk.from);
    shows!(first == Some(Writer::Session(b)), "the first media after the decision is of {first:?}, not of {b}");
    world.untouched(b)?;
    figures.add("dropped_chunks", dropped);
    Ok(())
}

/// A is dead; whoever asks with these heads must be denied for these reasons, and A not be touched.
fn denied(world: &mut World<'_>, heads: &[(Head<'_>, Denied)]) -> Result<u64, Broken> {
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    world.wait(5_000)?;
    world.send(a, None);
    for (head, reason) in heads {
        world.while_away(1_000)?;
        let verdict = world.edge.edge().admit(head);
        shows!(verdict == Err(*reason), "{head:?} gets {verdict:?} instead of {reason:?}");
        world.untouched(a)?;
    }
    world.wait(10_000)?;
    world.ended(a, EndReason::Inactive)?;
    Ok(heads.len() as u64)
}

const GOOD: Head<'_> = Head {
    endpoint: "live",
    authorization: Some("Bearer secret"),
    content_type: Some("application/sdp"),
    length: Some(2_000),
};

fn w9(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let heads = [None, Some("Bearer wrong"), Some("Basic secret"), Some("Bearer ")]
        .map(|authorization| (Head { authorization, ..GOOD }, Denied::Unauthorized));
    figures.add("denied", denied(world, &heads)?);
    Ok(())
}

fn w10(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let heads = [
        (Head { content_type: Some("text/plain"), ..GOOD }, Denied::UnsupportedType),
        (Head { content_type: None, ..GOOD }, Denied::UnsupportedType),
        (Head { length: Some(2 << 20), ..GOOD }, Denied::TooLarge),
        (Head { length: Some(OFFER_LIMIT + 1), ..GOOD }, Denied::TooLarge),
        (Head { endpoint: "elsewhere", ..GOOD }, Denied::NotFound),
    ];
    figures.add("denied", denied(world, &heads)?);
    Ok(())
}

fn w11(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (_, mut holder) = take_over(world)?;
    for posts in [2, 10] {
        world.wait(5_000)?;
        world.send(holder, None);
        world.while_away(3_000)?;
        let mut requests = Vec::new();
        for _ in 0..posts {
            requests.push(world.ask()?);
            let micros = world.dice.random_range(0..1_000 / posts);
            world.run(world.now + Duration::from_micros(micros))?;
        }
        world.wait(8_000)?;
        let winners: Vec<SessionId> = requests.iter().filter_map(|request| world.accepted(*request).ok()).collect();
        let [winner] = winners[..] else {
            return Err(Broken { id: "script", what: format!("{} of {posts} POSTs won", winners.len()) });
        };
        world.untouched(winner)?;
        world.ended(holder, EndReason::Displaced)?;
        let slowest = requests.iter().map(|request| world.took(*request)).max().unwrap_or(0);
        figures.add(if posts == 2 { "two_answered_after_ms" } else { "ten_answered_after_ms" }, slowest);
        holder = winner;
        world.send(holder, Some(Rhythm::AUDIO_VIDEO));
    }
    Ok(())
}

fn w12(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    world.wait(5_000)?;
    world.send(a, None);
    let b = world.ask()?;
    world.while_away(DEAD_AFTER - 100)?;
    world.call(Input::Hangup { request: b })?;
    world.wait(5_000)?;
    world.untouched(a)?;
    world.wait(10_000)?;
    world.ended(a, EndReason::Inactive)?;
    world.bench().rest(world.edge.edge())?;
    figures.add("left", world.edge.edge().publish().timer_count() as u64);
    Ok(())
}

fn w13(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.while_away(1_000)?;
    let a = world.publish(Rhythm::default())?;
    let from = world.now;
    world.wait(60_000)?;
    world.ended(a, EndReason::SetupTimeout)?;
    let freed = world.truth.sessions[&a].finished.map_or(0, |(_, at)| at.since(from).as_millis() as u64);
    shows!(freed == 15_000, "the slot was freed after {freed} ms");
    world.bench().rest(world.edge.edge())?;
    figures.add("freed_after_ms", freed);
    Ok(())
}

fn w16(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    let mut pauses = 0;
    for _ in 0..20 {
        world.wait(1_000)?;
        world.while_away(4_000)?;
        world.send(a, None);
        world.wait(3_000)?;
        world.send(a, Some(Rhythm::AUDIO_VIDEO));
        pauses += 1;
    }
    world.untouched(a)?;
    world.wait(1_000)?;
    world.send(a, None);
    let from = world.now;
    world.wait(20_000)?;
    world.ended(a, EndReason::Inactive)?;
    let freed = world.truth.sessions[&a].finished.map_or(0, |(_, at)| at.since(from).as_millis() as u64);
    shows!((9_900..=10_000).contains(&freed), "the watchdog fired after {freed} ms");
    figures.add("pauses", pauses);
    figures.add("watchdog_after_ms", freed);
    Ok(())
}

fn w18(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (a, b) = take_over(world)?;
    let told = world.truth.sessions[&a].finished.map(|(_, at)| at);
    let given_on = world.truth.sessions[&b].started;
    shows!(told.is_some_and(|told| told <= given_on), "A was told at {told:?}, its slot given on at {given_on:?}");
    let after = told.map_or(0, |told| given_on.since(told).as_millis() as u64);
    figures.add("told_before_next_ms", after);
    Ok(())
}

/// How the second client fares while the first sends in a rhythm.
fn second_client(world: &mut World<'_>, rhythm: Rhythm, lead_ms: u64, reason: RefuseReason) -> Result<u64, Broken> {
    let a = world.publish(rhythm)?;
    world.wait(lead_ms)?;
    world.while_away(1_000)?;
    let b = world.ask()?;
    world.wait(4_000)?;
    let took = world.refused(b, reason)?;
    world.untouched(a)?;
    world.call(Input::End { session: a, reason: EndReason::Deleted })?;
    world.wait(0)?;
    Ok(took)
}

fn rig(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (_, b) = take_over(world)?;
    let post = world.truth.sessions[&b].post;
    figures.add("killed_granted_after_ms", world.took(post));
    world.call(Input::End { session: b, reason: EndReason::Deleted })?;
    world.wait(0)?;
    let live = RefuseReason::HolderLive;
    figures.add("healthy_refused_after_ms", second_client(world, Rhythm::AUDIO_VIDEO, 5_000, live)?);
    let without = RefuseReason::HolderWithoutAudio;
    figures.add("video_30_refused_after_ms", second_client(world, Rhythm::video_only(33), 5_000, without)?);
    figures.add("video_1_refused_after_ms", second_client(world, Rhythm::video_only(1_000), 5_000, without)?);
    figures.add("video_fifth_refused_after_ms", second_client(world, Rhythm::video_only(5_000), 5_000, without)?);

    // The microphone is off for long; a frame each 5 s and RTCP each second still come.
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    world.wait(3_000)?;
    let sparse = Rhythm { video: Track::every_ms(5_000), ..Rhythm::AUDIO_VIDEO.muted() };
    world.send(a, Some(sparse));
    world.wait(5_500)?;
    world.while_away(3_000)?;
    let b = world.ask()?;
    world.wait(4_000)?;
    figures.add("muted_refused_after_ms", world.refused(b, live)?);
    world.untouched(a)?;

    let before = world.now;
    world.call(Input::End { session: a, reason: EndReason::Deleted })?;
    world.wait(0)?;
    let b = world.ask()?;
    world.accepted(b)?;
    figures.add("deleted_free_after_ms", world.now.since(before).as_millis() as u64);
    figures.add("free_accepted_after_ms", world.took(b));
    Ok(())
}

fn drain(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let a = world.publish(Rhythm::AUDIO_VIDEO)?;
    let b = world.publish(Rhythm::AUDIO_VIDEO)?;
    let feed = world.truth.sessions[&a].feed;
    world.add_viewer(feed, Duration::from_millis(500));
    world.wait(5_000)?;
    world.send(a, None);
    world.send(b, None);
    let waiting = [world.ask()?, world.ask()?];
    world.while_away(DEAD_AFTER - 100)?;
    let viewers = world.truth.watching as u64;
    world.healed = true;
    world.call(Input::Drain)?;
    world.wait(0)?;
    for request in waiting {
        world.refused(request, RefuseReason::Draining)?;
    }
    for session in [a, b] {
        world.ended(session, EndReason::Shutdown)?;
    }
    let late = world.ask()?;
    world.refused(late, RefuseReason::Draining)?;
    world.bench().rest(world.edge.edge())?;
    figures.add("sessions_ended", 2);
    figures.add("posts_refused", 3);
    figures.add("viewers_ended", viewers);
    Ok(())
}
