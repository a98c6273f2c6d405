//! The cases people reported, and what networks do, against the whole server.

use std::rc::Rc;

use holdfast_core::input::EndReason;

use super::peer::{AUDIO_VIDEO, Peer, Post, Sends, WhenClosed};
use super::{Broken, Stage, play};
use crate::world::oracle::shows;
use crate::{Figures, Scenario};

macro_rules! scenario {
    ($name:literal, $script:ident, $shows:literal) => {
        Scenario {
            name: $name,
            shows: $shows,
            play: |seed, trace| {
                let script = |stage: &mut Stage, figures: &mut Figures| {
                    stage.publishing();
                    $script(stage, figures)
                };
                play(script, seed, trace)
            },
        }
    };
}

/// Every scenario of the network.
pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario!("net-w1", w1, "A vanishes without FIN or RST, B POSTs at once: 201 in time, the viewer plays on"),
    scenario!("net-w2", w2, "A vanished 10 ms before B POSTs: as net-w1"),
    scenario!("net-w3", w3, "A is healthy: B gets 503 holder-live within 150 ms, with Retry-After"),
    scenario!("net-w4", w4, "A was let in and sends nothing yet: B gets 503 holder-negotiating at once"),
    scenario!("net-w5", w5, "A sends a picture each 5 s and no audio: B gets 503 holder-without-audio at once"),
    scenario!("net-w7", w7, "A comes back after B has its slot and DELETEs its old session: 404, B lives on"),
    scenario!("net-w8", w8, "A's network comes back after B has its slot, and A sends on: no viewer sees any of it"),
    scenario!("net-w9", w9, "POSTs with no token or a wrong one while A is dead: 401, A's slot is not touched"),
    scenario!("net-w10", w10, "junk POSTs while A is dead: 4xx each, A's slot is not touched"),
    scenario!("net-w11", w11, "two, then ten POSTs in one millisecond while the holder is dead: one wins and keeps it"),
    scenario!("net-w12", w12, "B hangs up while its POST is held: nothing is left, A is not displaced for it"),
    scenario!(
        "net-w12-silent",
        w12_silent,
        "B vanishes while its POST is held: what it gets is free after setup_timeout"
    ),
    scenario!("net-w13", w13, "a client that never sends media: its slot is free after setup_timeout"),
    scenario!("net-w16", w16, "A's network stands still for 3 s again and again: A is never touched"),
    scenario!("net-w18", w18, "A is displaced while it can hear again: it is told within 1 s"),
    scenario!("net-leave", leave, "A DELETEs its session, B closes its transport: the slot is free at once, each time"),
    scenario!("net-late-fin", late_fin, "the FIN of the dead A comes after B has its slot: B lives on"),
    scenario!("net-stopped", stopped, "a viewer stops reading: it is ended, the others lose nothing"),
    scenario!("net-canary", canary, "must fail: a task within a host panics, and nobody waits for it"),
    scenario!("net-drain", drain, "the program ends in the middle of everything: all are told, nothing is left in 5 s"),
];

const DEAD_AFTER: u64 = 2000;
const POLL: u64 = 100;
/// What the network and the media side add to an answer.
const ROUND: u64 = 60;
const FOREVER: u64 = u64::MAX;

impl Stage {
    /// `name` POSTs at once and sends for ever.
    fn publisher(&mut self, name: &'static str, from: u64, sends: Sends) {
        self.peer(name, move |peer: Rc<Peer>| async move {
            peer.at(from).await;
            let post = peer.post().await?;
            peer.publish(&post, sends, FOREVER, WhenClosed::Stop).await.map(drop)
        });
    }

    fn viewer(&mut self, name: &'static str, from: u64, stops: Option<u64>) {
        self.peer(name, move |peer: Rc<Peer>| async move {
            peer.at(from).await;
            peer.watch(stops).await
        });
    }

    fn only_post(&self, who: &str) -> Result<Post, Broken> {
        let posts = self.posts(who);
        shows!(posts.len() == 1, "{who} should have one answer, but has {posts:?}");
        Ok(posts[0].clone())
    }

    /// The answer of a host whose one POST was let in.
    fn accepted(&self, who: &str) -> Result<Post, Broken> {
        let post = self.only_post(who)?;
        shows!(post.status == 201 && post.session.is_some(), "{who} should be in, but: {post:?}");
        Ok(post)
    }

    /// How long it took until a host's one POST was refused so.
    fn refused(&self, who: &str, reason: &str) -> Result<u64, Broken> {
        let post = self.only_post(who)?;
        let so = post.status == 503 && post.reason == reason && post.retry_after.is_some();
        shows!(so, "{who} should be refused for {reason}, but: {post:?}");
        Ok(post.answered - post.asked)
    }

    fn ends(&self, expected: &[(EndReason, u64)]) -> Result<(), Broken> {
        for reason in EndReason::ALL {
            let wanted = expected.iter().find(|(each, _)| *each == reason).map_or(0, |(_, count)| *count);
            let ended = self.ended(reason);
            shows!(ended == wanted, "{ended} sessions ended as {reason:?}, not {wanted}");
        }
        Ok(())
    }

    /// The viewer is still there, nothing it got was broken, and the media was of these hosts' sessions, in this order.
    fn saw(&self, viewer: &str, hosts: &[&str]) -> Result<(), Broken> {
        let watch = self.watch(viewer);
        let of: Vec<_> =
            hosts.iter().map(|host| self.accepted(host).map(|post| post.session)).collect::<Result<_, _>>()?;
        let of: Vec<_> = of.into_iter().flatten().collect();
        shows!(watch.faults == 0, "{viewer} got {} packets that don't follow the ones before", watch.faults);
        shows!(watch.ended.is_none(), "the stream of {viewer} ended at {:?}", watch.ended);
        shows!(watch.sessions == of, "{viewer} saw media of {:?}, not of {of:?}", watch.sessions);
        let late = self.elapsed - watch.last;
        shows!(late < 1000, "{viewer} has seen nothing for {late} ms");
        Ok(())
    }
}

/// A vanishes about 10 s after the start, B POSTs `after` ms later.
fn vanish_and_rejoin(stage: &mut Stage, figures: &mut Figures, after: u64) -> Result<(), Broken> {
    let dies = stage.about(10_000, 1_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    stage.vanish(dies, "a");
    stage.publisher("b", dies + after, AUDIO_VIDEO);
    stage.play(dies + 8_000)?;
    let b = stage.accepted("b")?;
    let took = b.answered - dies;
    shows!((DEAD_AFTER - 50..=DEAD_AFTER + POLL + ROUND).contains(&took), "B was let in {took} ms after A vanished");
    stage.ends(&[(EndReason::Displaced, 1)])?;
    stage.saw("viewer", &["a", "b"])?;
    figures.add("granted_after_ms", took);
    figures.add("viewer_packets", stage.watch("viewer").packets);
    Ok(())
}

fn w1(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    vanish_and_rejoin(stage, figures, 0)
}

fn w2(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    vanish_and_rejoin(stage, figures, 10)
}

fn w3(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let asks = stage.about(5_000, 1_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    stage.publisher("b", asks, AUDIO_VIDEO);
    stage.play(30_000)?;
    let took = stage.refused("b", "holder-live")?;
    shows!(took <= 150, "B was refused after {took} ms");
    stage.ends(&[])?;
    stage.saw("viewer", &["a"])?;
    figures.add("refused_after_ms", took);
    Ok(())
}

fn w4(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.peer("a", |peer: Rc<Peer>| async move { peer.post().await.map(drop) });
    let asks = stage.about(1_000, 5_000);
    stage.publisher("b", asks, AUDIO_VIDEO);
    stage.play(8_000)?;
    let took = stage.refused("b", "holder-negotiating")?;
    shows!(took <= ROUND, "B was refused after {took} ms");
    stage.ends(&[])?;
    figures.add("refused_after_ms", took);
    Ok(())
}

fn w5(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.publisher("a", 0, Sends { audio: 0, video: 5_000, control: 0 });
    let asks = stage.about(1_000, 9_000);
    stage.publisher("b", asks, AUDIO_VIDEO);
    stage.play(20_000)?;
    let took = stage.refused("b", "holder-without-audio")?;
    shows!(took <= ROUND, "B was refused after {took} ms");
    stage.ends(&[])?;
    figures.add("refused_after_ms", took);
    Ok(())
}

fn w7(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let lost = stage.about(5_000, 1_000);
    stage.peer("a", move |peer: Rc<Peer>| async move {
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, lost, WhenClosed::Ignore).await?;
        peer.at(lost + 5_000).await;
        peer.delete(&post).await.map(drop)
    });
    stage.viewer("viewer", 1_000, None);
    stage.publisher("b", lost, AUDIO_VIDEO);
    stage.play(lost + 20_000)?;
    stage.accepted("b")?;
    stage.ends(&[(EndReason::Displaced, 1)])?;
    stage.saw("viewer", &["a", "b"])?;
    let statuses = stage.shared.statuses.borrow().clone();
    shows!(statuses == [("a", 404)], "the late DELETE was answered {statuses:?}");
    figures.add("late_delete_status", 404);
    Ok(())
}

fn w8(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let lost = stage.about(5_000, 1_000);
    stage.peer("a", |peer: Rc<Peer>| async move {
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, FOREVER, WhenClosed::Ignore).await.map(drop)
    });
    stage.viewer("viewer", 1_000, None);
    stage.at(lost, |sim, _| sim.partition("a", "edge"));
    stage.publisher("b", lost, AUDIO_VIDEO);
    stage.at(lost + 4_000, |sim, _| sim.repair("a", "edge"));
    stage.play(lost + 20_000)?;
    let b = stage.accepted("b")?;
    stage.ends(&[(EndReason::Displaced, 1)])?;
    stage.saw("viewer", &["a", "b"])?;
    figures.add("granted_after_ms", b.answered - lost);
    Ok(())
}

/// A is dead; `name` comes with each of these heads and bodies and must get these statuses; A ends by its watchdog alone.
fn junk(stage: &mut Stage, posts: &'static [(&'static str, &'static str, u16)]) -> Result<u64, Broken> {
    let dies = stage.about(3_000, 1_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.vanish(dies, "a");
    stage.peer("b", move |peer: Rc<Peer>| async move {
        peer.at(dies + DEAD_AFTER + 500).await;
        for (headers, body, _) in posts {
            let body = if *body == "huge" { "v=0\r\n".repeat(500_000) } else { (*body).to_owned() };
            // A body that is refused by its length is not read: the connection may end while it is sent.
            let _ = peer.post_as(headers, &body).await;
        }
        Ok(())
    });
    stage.play(dies + 9_000)?;
    let got: Vec<u16> = stage.posts("b").iter().map(|post| post.status).collect();
    let wanted: Vec<u16> = posts.iter().map(|(_, _, status)| *status).collect();
    shows!(got == wanted, "the answers are {got:?}, not {wanted:?}");
    stage.ends(&[])?;
    stage.play(dies + 12_000)?;
    stage.ends(&[(EndReason::Inactive, 1)])?;
    shows!(stage.left() == (0, 0, 0), "left: {:?}", stage.left());
    Ok(got.len() as u64)
}

fn w9(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let denied = junk(
        stage,
        &[
            ("Content-Type: application/sdp\r\n", "v=0\r\n", 401),
            ("Authorization: Bearer wrong\r\nContent-Type: application/sdp\r\n", "v=0\r\n", 401),
            ("Authorization: Basic secret\r\nContent-Type: application/sdp\r\n", "v=0\r\n", 401),
        ],
    )?;
    figures.add("denied", denied);
    Ok(())
}

fn w10(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let denied = junk(
        stage,
        &[
            ("Authorization: Bearer secret\r\nContent-Type: text/plain\r\n", "v=0\r\n", 415),
            ("Authorization: Bearer secret\r\nContent-Type: application/sdp\r\n", "", 400),
            ("Authorization: Bearer secret\r\nContent-Type: application/sdp\r\n", "hello", 400),
            (
                "Authorization: Bearer secret\r\nContent-Type: application/sdp\r\n",
                "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n",
                422,
            ),
        ],
    )?;
    figures.add("denied", denied);
    Ok(())
}

fn w11(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let first = stage.about(5_000, 1_000);
    let second = stage.about(20_000, 1_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    stage.vanish(first, "a");
    for (name, at, posts) in [("two", first + 300, 2), ("ten", second + 300, 10)] {
        stage.peer(name, move |peer: Rc<Peer>| async move {
            peer.at(at).await;
            for _ in 0..posts {
                let peer = peer.clone();
                tokio::task::spawn_local(async move {
                    let post = peer.post().await?;
                    if post.status == 201 {
                        peer.publish(&post, AUDIO_VIDEO, FOREVER, WhenClosed::Stop).await?;
                    }
                    std::io::Result::Ok(())
                });
            }
            Ok(())
        });
    }
    stage.vanish(second, "two");
    stage.play(second + 12_000)?;
    for (name, posts) in [("two", 2), ("ten", 10)] {
        let answers = stage.posts(name);
        let won = answers.iter().filter(|post| post.status == 201).count();
        let lost = answers.iter().filter(|post| post.status == 503).count();
        shows!((won, lost) == (1, posts - 1), "of {posts} POSTs {won} won and {lost} were refused");
        let slowest = answers.iter().map(|post| post.answered - post.asked).max().unwrap_or(0);
        figures.add(if posts == 2 { "two_answered_after_ms" } else { "ten_answered_after_ms" }, slowest);
    }
    stage.ends(&[(EndReason::Displaced, 2)])?;
    let watch = stage.watch("viewer");
    shows!(watch.faults == 0 && watch.ended.is_none(), "the viewer's stream broke: {watch:?}");
    shows!(watch.sessions.len() == 3, "the viewer saw media of {:?}", watch.sessions);
    Ok(())
}

fn w12(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let dies = stage.about(5_000, 1_000);
    let patience = stage.about(100, DEAD_AFTER - 300);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.vanish(dies, "a");
    stage.peer("b", move |peer: Rc<Peer>| async move {
        peer.at(dies).await;
        peer.post_and_leave(patience).await
    });
    stage.play(dies + patience + 100)?;
    shows!(stage.left().1 == 0, "a POST is left");
    stage.play(dies + 12_000)?;
    stage.ends(&[(EndReason::Inactive, 1)])?;
    shows!(stage.left() == (0, 0, 0), "left: {:?}", stage.left());
    figures.add("patience_ms", patience);
    Ok(())
}

fn w12_silent(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let dies = stage.about(5_000, 1_000);
    let patience = stage.about(100, DEAD_AFTER - 300);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.vanish(dies, "a");
    stage.peer("b", move |peer: Rc<Peer>| async move {
        peer.at(dies).await;
        peer.post().await.map(drop)
    });
    stage.vanish(dies + patience, "b");
    stage.play(dies + 30_000)?;
    stage.ends(&[(EndReason::Displaced, 1), (EndReason::SetupTimeout, 1)])?;
    shows!(stage.left() == (0, 0, 0), "left: {:?}", stage.left());
    figures.add("patience_ms", patience);
    Ok(())
}

fn w13(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.peer("a", |peer: Rc<Peer>| async move { peer.post().await.map(drop) });
    let asks = stage.about(15_200, 2_000);
    stage.publisher("b", asks, AUDIO_VIDEO);
    stage.play(25_000)?;
    let b = stage.accepted("b")?;
    stage.ends(&[(EndReason::SetupTimeout, 1)])?;
    figures.add("accepted_after_ms", b.answered - b.asked);
    Ok(())
}

fn w16(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    let mut at = 3_000;
    for _ in 0..8 {
        at = stage.about(at + 4_000, 1_000);
        // What is on its way while the network stands still comes all at once when it goes on.
        stage.at(at, |sim, _| sim.hold("a", "edge"));
        stage.at(at + 3_000, |sim, _| sim.release("a", "edge"));
    }
    stage.play(at + 8_000)?;
    stage.ends(&[])?;
    stage.saw("viewer", &["a"])?;
    figures.add("pauses", 8);
    Ok(())
}

fn w18(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let lost = stage.about(5_000, 1_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    // Only A's packets are lost: it hears the edge all the time.
    stage.at(lost, |sim, _| sim.partition_oneway("a", "edge"));
    stage.publisher("b", lost, AUDIO_VIDEO);
    stage.play(lost + 10_000)?;
    let b = stage.accepted("b")?;
    let told = stage.shared.told.borrow().iter().find(|(who, _)| *who == "a").map(|(_, at)| *at);
    let Some(told) = told else {
        return Err(Broken { id: "script", what: "A was never told".into() });
    };
    let after = told.saturating_sub(lost + DEAD_AFTER);
    shows!(after <= 1_000, "A was told {after} ms after it counted as dead");
    figures.add("told_before_accepted_ms", b.answered.saturating_sub(told));
    Ok(())
}

fn leave(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let (first, second) = (stage.about(3_000, 1_000), stage.about(8_000, 1_000));
    stage.peer("a", move |peer: Rc<Peer>| async move {
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, first, WhenClosed::Ignore).await?;
        peer.delete(&post).await.map(drop)
    });
    stage.viewer("viewer", 1_000, None);
    stage.peer("b", move |peer: Rc<Peer>| async move {
        peer.at(first + ROUND).await;
        let post = peer.post().await?;
        peer.publish(&post, AUDIO_VIDEO, second, WhenClosed::Stop).await.map(drop)
    });
    stage.publisher("c", second + ROUND, AUDIO_VIDEO);
    stage.play(second + 5_000)?;
    for (who, figure) in [("b", "deleted_granted_after_ms"), ("c", "closed_granted_after_ms")] {
        let post = stage.accepted(who)?;
        let took = post.answered - post.asked;
        shows!(took <= ROUND, "{who} was let in after {took} ms");
        figures.add(figure, took);
    }
    stage.ends(&[(EndReason::Deleted, 1), (EndReason::DtlsClosed, 1)])?;
    stage.saw("viewer", &["a", "b", "c"])
}

fn late_fin(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let dies = stage.about(5_000, 1_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    stage.at(dies, |sim, _| {
        sim.hold("a", "edge");
        sim.crash("a");
    });
    stage.publisher("b", dies, AUDIO_VIDEO);
    stage.at(dies + 5_000, |sim, _| sim.release("a", "edge"));
    stage.play(dies + 20_000)?;
    let b = stage.accepted("b")?;
    stage.ends(&[(EndReason::Displaced, 1)])?;
    stage.saw("viewer", &["a", "b"])?;
    figures.add("granted_after_ms", b.answered - dies);
    Ok(())
}

fn stopped(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let stops = stage.about(4_000, 2_000);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    stage.viewer("stopped", 1_000, Some(stops));
    let leaves = stage.about(60_000, 1_000);
    stage.play(leaves)?;
    stage.saw("viewer", &["a"])?;
    let viewers = stage.shared.edge("edge").map_or(0, |edge| edge.server.borrow().edge().feeds().viewer_count());
    shows!(viewers == 1, "{viewers} viewers are there");
    figures.add("packets_before_it_stopped", stage.watch("stopped").packets);
    figures.add("viewer_packets", stage.watch("viewer").packets);
    Ok(())
}

fn canary(stage: &mut Stage, _: &mut Figures) -> Result<(), Broken> {
    stage.peer("a", |_| async {
        tokio::task::spawn_local(async { panic!("nobody waits for this task") });
        Ok(())
    });
    stage.play(1_000)
}

fn drain(stage: &mut Stage, figures: &mut Figures) -> Result<(), Broken> {
    let dies = stage.about(5_000, 1_000);
    let ends = stage.about(dies + 200, DEAD_AFTER - 500);
    stage.publisher("a", 100, AUDIO_VIDEO);
    stage.viewer("viewer", 1_000, None);
    // A's packets are lost, but it hears that the edge goes; B waits for A's slot.
    stage.at(dies, |sim, _| sim.partition_oneway("a", "edge"));
    stage.publisher("b", dies, AUDIO_VIDEO);
    stage.at(ends, |_, shared| shared.drain.notify_one());
    stage.play(ends + 5_000)?;
    stage.refused("b", "draining")?;
    stage.ends(&[(EndReason::Shutdown, 1)])?;
    shows!(stage.left() == (0, 0, 0), "left: {:?}", stage.left());
    let told = stage.shared.told.borrow().iter().any(|(who, _)| *who == "a");
    shows!(told, "A was not told");
    let watch = stage.watch("viewer");
    shows!(watch.ended.is_some() && watch.faults == 0, "the viewer's stream did not end well: {watch:?}");
    let drained = stage.shared.edge("edge").is_some_and(|edge| edge.server.borrow().is_drained());
    shows!(drained, "not everything has ended");
    figures.add("viewer_ended_after_ms", watch.ended.unwrap_or(ends).saturating_sub(ends));
    Ok(())
}
