//! The cases people reported of titles and accounts, on the bare core: each a script, what it must show, and what it measured.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::config::{Account, Config, Live, Playback, Provider, Strategy, User};
use holdfast_core::input::{
    AccountId, Client, Failure, Input, ProviderId, RefuseReason, RequestId, TitleId, UserId, ViewerEnd, Want,
};
use holdfast_core::playback::Place;
use holdfast_core::time::Time;
use rand::Rng;

use super::super::World;
use super::super::chance::Plan;
use super::super::oracle::{Broken, shows};
use super::device::Kind;
use super::provider::Mood;
use super::truth::Stage;
use crate::{Figures, Report, Scenario};

macro_rules! script {
    ($id:literal, $limits:expr, $strategies:expr, $script:ident, $shows:literal) => {
        Scenario { name: $id, shows: $shows, play: |seed, trace| play(&$limits, &$strategies, $script, seed, trace) }
    };
}

/// Every scenario of titles.
pub(crate) const SCENARIOS: &[Scenario] = &[
    script!(
        "v01-seeks",
        [4],
        [Strategy::GraceHold],
        v1,
        "two players seek twice each and never read what they asked for before: two connections at most, both play"
    ),
    script!(
        "v04-catchup",
        [1, 1, 1],
        [Strategy::GraceHold],
        v4,
        "10 openings of the past with a moving beginning: one of three accounts is used"
    ),
    script!(
        "v05-block-film",
        [2],
        [],
        v5,
        "kicked with a block of 10 s, it asks for its film each second: 10 s, then in"
    ),
    script!("v06-slow", [1], [], v6, "one of two viewers of a feed reads nothing: it ends, the other one plays on"),
    script!(
        "v07-key",
        [1],
        [],
        v7,
        "a key is answered with 400: that is what is told, no account is blamed or wanting"
    ),
    script!("v10-manifest", [1], [], v10, "a manifest is answered with 500, 20 times, then in order: it is let in"),
    script!(
        "v11-pause-hls",
        [1],
        [Strategy::EvictOldest],
        v11,
        "HLS pauses for 16 s, then asks for 5 segments at once: nobody is evicted"
    ),
    script!(
        "v12-replace-film",
        [1],
        [Strategy::GraceHold],
        v12,
        "30 ranges, each closes the one before: never more than one place, one connection"
    ),
    script!("v13-probe", [1], [Strategy::GraceHold], v13, "one account with a probe at it, a viewer comes: it has it"),
    script!(
        "v14-silent",
        [1],
        [Strategy::GraceHold],
        v14,
        "a live stream that sends nothing is left for another: that one starts, nothing is left of the first"
    ),
    script!(
        "v15-aborts-titles",
        [2, 1],
        [Strategy::GraceHold],
        v15,
        "200 random aborts: at each quiet moment nothing is open or counted"
    ),
    script!("v16-parts", [1], [], v16, "50 parts one after the other: nothing is counted afterwards"),
    script!("v20-probe-then-open", [1], [], v20, "a live stream is opened, left, opened again: one connection"),
    script!(
        "v21-full",
        [1],
        [Strategy::GraceHold],
        v21,
        "32 clients against a full account whose provider is silent: each is answered within its grace"
    ),
    script!(
        "v22-late",
        [1, 1],
        [],
        v22,
        "what comes late of a connection that failed touches neither the lease nor the affinity of the next one"
    ),
    script!(
        "v-zap-hls",
        [1],
        [Strategy::EvictSameIpOldest],
        zap_hls,
        "a player of HLS changes channels with one account and one place: each begins at once, one connection at a time"
    ),
    script!(
        "v23-zap-late",
        [1],
        [Strategy::GraceHold],
        v23,
        "live zapping at a provider that counts 1.5 s late: each stream plays, and after the first none is asked for in vain"
    ),
    script!(
        "v24-circle",
        [0],
        [],
        v24,
        "a film leads back to its own address, its account has no limit: 100 requests at once, then 20 a second; it plays when it does not"
    ),
    script!(
        "v-overlap",
        [1],
        [Strategy::GraceInstant],
        overlap,
        "a film begins at once beside another on the one connection of an account that bears one more, and ends with its grace"
    ),
    script!(
        "v-live-grace",
        [1],
        [Strategy::GraceHold],
        live_grace,
        "a live stream that waited for the one account by grace, in vain, is refused at once when it is asked for again"
    ),
];

type Script = fn(&mut World<'_>, &mut Figures) -> Result<(), Broken>;

fn play(
    limits: &[u32],
    strategies: &[Strategy],
    script: Script,
    seed: u64,
    trace: Option<&mut dyn Write>,
) -> Result<Report, (Time, Broken)> {
    let overlap = strategies.contains(&Strategy::GraceInstant);
    let account = |limit: &u32| Account { max_connections: *limit, overlap, ..Account::default() };
    let provider = Provider { accounts: limits.iter().map(account).collect(), ..Provider::default() };
    let user = |index: u32| User { name: format!("u{index}"), max_connections: 1, ..User::default() };
    let mut users: Vec<User> = (0..40).map(user).collect();
    users[1].max_connections = 2;
    let config = Config {
        live: Live { buffer: 20_000, ..Live::default() },
        users,
        playback: Playback { strategies: strategies.to_vec(), ..Playback::default() },
        providers: vec![provider],
        ..Config::default()
    };
    let mut world = World::with_titles(config, 0, seed, Plan::calm(), trace);
    world.titles = vec![vec![ProviderId(0)]; 4];
    let mut figures = Figures::default();
    let played = script(&mut world, &mut figures).and_then(|()| world.nothing_is_left());
    let now = world.now;
    played.and_then(|()| world.close(figures)).map_err(|broken| (now, broken))
}

impl World<'_> {
    /// A player that does what the script says.
    fn led(&mut self, user: u32, kind: Kind, title: u64, address: u8) -> usize {
        let client = Client { address: IpAddr::from([10, 0, 0, address]), agent: 0 };
        let index = self.add_device(UserId(user), client, kind, TitleId(title));
        self.devices[index].led = true;
        index
    }

    /// It asks, is fetched, and its response flows for as long as the script wants.
    fn plays_title(&mut self, index: usize, want: Want) -> Result<RequestId, Broken> {
        let request = self.ask_title(index, want)?;
        self.wait(2_500)?;
        self.flows(request)?;
        Ok(request)
    }

    fn flows(&mut self, request: RequestId) -> Result<(), Broken> {
        let row = &self.truth.titles.requests[&request];
        shows!(row.stage == Stage::Fetching && row.forwarded.is_some(), "{request:?} should play: {row:?}");
        Ok(())
    }

    fn is_done(&self, request: RequestId) -> Result<(), Broken> {
        let row = &self.truth.titles.requests[&request];
        shows!(row.stage == Stage::Over && row.refused.is_none() && row.cut.is_none(), "{request:?}: {row:?}");
        Ok(())
    }

    /// How many ms after it asked it was refused for this reason.
    fn refused_title(&self, request: RequestId, reason: RefuseReason) -> Result<u64, Broken> {
        let row = &self.truth.titles.requests[&request];
        shows!(row.refused == Some(reason), "{request:?} should be refused for {reason:?}: {row:?}");
        Ok(row.since.since(row.asked).as_millis() as u64)
    }

    fn peak(&self) -> u32 {
        self.counts.iter().map(|count| count.peak).sum()
    }

    fn open_at_providers(&self) -> u32 {
        self.counts.iter().map(|count| count.open).sum()
    }

    /// Everybody goes; nothing is left of anybody, after what is kept for a while.
    fn nothing_is_left(&mut self) -> Result<(), Broken> {
        self.heal_providers();
        self.leave_titles()?;
        self.run(self.now + self.longest_title() + self.truth.live.idle)?;
        self.bench().titles_rest(self.edge.edge())?;
        self.bench().rest(self.edge.edge())
    }
}

fn v1(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let devices = [world.led(1, Kind::Film, 0, 1), world.led(1, Kind::Film, 0, 2)];
    let mut last = Vec::new();
    for _ in 0..3 {
        for index in devices {
            let old = world.devices[index].open.clone();
            old.into_iter().for_each(|request| world.set_reading(request, false));
            last.push(world.ask_title(index, Want::Rest)?);
            world.while_away(600)?;
        }
    }
    world.wait(1_000)?;
    for request in &last[4..] {
        world.flows(*request)?;
    }
    shows!(world.peak() <= 2, "{} connections at once", world.peak());
    figures.add("peak", world.peak().into());
    Ok(())
}

fn v4(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Past, 0, 1);
    for _ in 0..10 {
        let old = world.devices[index].open.clone();
        let request = world.plays_title(index, Want::Rest)?;
        shows!(world.truth.titles.requests[&request].account.is_some(), "{request:?} has no account");
        for request in old {
            world.drop_request(request)?;
        }
        world.while_away(3_000)?;
        if world.dice.random_bool(0.3) {
            world.end_session(index)?;
            world.while_away(20_000)?;
        }
    }
    let used = world.truth.titles.accounts.iter().filter(|account| account.grants > 0).count();
    shows!(used == 1, "{used} accounts are used");
    figures.add("accounts", used as u64);
    Ok(())
}

fn v5(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Film, 0, 1);
    let first = world.plays_title(index, Want::Rest)?;
    let Some(playback) = world.truth.titles.requests[&first].playback else {
        return Err(Broken { id: "script", what: "it has no name".into() });
    };
    world.call(Input::Kick { playback, block: 10_000_000 })?;
    world.wait(100)?;
    let cut = world.truth.titles.requests[&first].cut;
    shows!(cut == Some(ViewerEnd::Kicked), "it is cut as {cut:?}");
    let mut refused = 0;
    for _ in 0..9 {
        world.wait(1_000)?;
        let again = world.ask_title(index, Want::Rest)?;
        world.refused_title(again, RefuseReason::Kicked)?;
        refused += 1;
    }
    world.wait(1_000)?;
    world.plays_title(index, Want::Rest)?;
    figures.add("refused", refused);
    Ok(())
}

fn v6(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.live_every = Duration::from_millis(10);
    let (fast, slow) = (world.led(0, Kind::Live, 0, 1), world.led(2, Kind::Live, 0, 2));
    world.tune_in_to(fast)?;
    world.tune_in_to(slow)?;
    world.wait(1_000)?;
    let viewer = world.devices[slow].viewer;
    world.devices[slow].reads_nothing();
    world.wait(10_000)?;
    let end = viewer.and_then(|viewer| world.truth.titles.ends.get(&viewer).copied());
    let by_us = matches!(end, Some(ViewerEnd::Slow | ViewerEnd::Stuck));
    shows!(by_us, "who reads nothing ended as {end:?}");
    let behind =
        world.devices[fast].viewer.map(|viewer| world.edge.edge().feeds().unsent(viewer).map(<[u8]>::len).sum());
    let behind: usize = behind.unwrap_or(usize::MAX);
    shows!(behind <= 188 * 4, "the other one is {behind} bytes behind");
    figures.add("behind", behind as u64);
    Ok(())
}

fn v7(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Segments, 0, 1);
    let playlist = world.ask_title(index, Want::Setup)?;
    world.wait(500)?;
    world.is_done(playlist)?;
    world.providers[0].mood = Mood::Status(400);
    let key = world.ask_title(index, Want::Setup)?;
    world.wait(500)?;
    let took = world.refused_title(key, RefuseReason::ProviderFailed)?;
    world.providers[0].mood = Mood::Good;
    let segment = world.ask_title(index, Want::Part)?;
    world.wait(1_500)?;
    world.is_done(segment)?;
    figures.add("refused_after_ms", took);
    Ok(())
}

fn v10(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Segments, 0, 1);
    world.providers[0].mood = Mood::Status(500);
    for _ in 0..20 {
        let request = world.ask_title(index, Want::Setup)?;
        world.wait(500)?;
        world.refused_title(request, RefuseReason::ProviderFailed)?;
        world.while_away(1_000)?;
    }
    world.providers[0].mood = Mood::Good;
    let playlist = world.ask_title(index, Want::Setup)?;
    world.wait(500)?;
    world.is_done(playlist)?;
    let segment = world.ask_title(index, Want::Part)?;
    world.wait(1_500)?;
    world.is_done(segment)?;
    figures.add("asked", world.providers[0].asked);
    Ok(())
}

fn v11(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Segments, 0, 1);
    let playlist = world.ask_title(index, Want::Setup)?;
    world.wait(500)?;
    world.is_done(playlist)?;
    for round in 0..3 {
        let requests = (0..5).map(|_| world.ask_title(index, Want::Part)).collect::<Result<Vec<_>, _>>()?;
        world.wait(8_000)?;
        for request in requests {
            world.is_done(request)?;
        }
        // Once within what is kept for it, then for longer.
        world.wait(if round == 0 { 5_000 } else { 16_000 })?;
    }
    figures.add("evicted", 0);
    Ok(())
}

fn v12(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Film, 0, 1);
    let (mut last, mut most) = (world.plays_title(index, Want::Rest)?, 0);
    for _ in 0..30 {
        let next = world.ask_title(index, Want::Rest)?;
        world.while_away(100)?;
        world.drop_request(last)?;
        world.wait(300)?;
        let room = world.edge.edge().playback();
        most =
            most.max([Place::Normal, Place::Soft, Place::Grace].map(|place| room.used(UserId(0), place)).iter().sum());
        last = next;
    }
    world.flows(last)?;
    shows!(most == 1 && world.peak() == 1, "{most} places, {} connections", world.peak());
    figures.add("most", most.into());
    figures.add("peak", world.peak().into());
    Ok(())
}

fn v13(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (probe, viewer) = (world.led(0, Kind::Looks, 0, 1), world.led(2, Kind::Film, 1, 2));
    world.providers[0].mood = Mood::Dead;
    let look = world.ask_title(probe, Want::Look)?;
    world.while_away(1_000)?;
    world.providers[0].mood = Mood::Good;
    let request = world.ask_title(viewer, Want::Rest)?;
    world.wait(1_500)?;
    world.flows(request)?;
    let cut = world.truth.titles.requests[&look].cut;
    shows!(cut == Some(ViewerEnd::Preempted), "the probe is cut as {cut:?}");
    let row = &world.truth.titles.requests[&request];
    let took = row.since.since(row.asked).as_millis() as u64;
    figures.add("started_after_ms", took);
    Ok(())
}

fn v14(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (first, second) = (world.led(0, Kind::Live, 0, 1), world.led(0, Kind::Live, 1, 1));
    world.providers[0].mood = Mood::Silent;
    let request = world.tune_in_to(first)?;
    world.while_away(2_000)?;
    world.end_session(first)?;
    world.providers[0].mood = Mood::Good;
    world.tune_in_to(second)?;
    world.wait(2_000)?;
    shows!(world.devices[second].viewer.is_some(), "the other stream is not had");
    let open = world.open_at_providers();
    shows!(open == 1, "{open} connections are open, {request:?} was left");
    figures.add("open", open.into());
    Ok(())
}

fn v15(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let kinds = [Kind::Film, Kind::Past, Kind::Parts, Kind::Segments, Kind::Looks, Kind::Live, Kind::File];
    let mut devices = Vec::new();
    for address in 1..=3 {
        for (user, kind) in kinds.into_iter().enumerate() {
            devices.push(world.led(user as u32 % 3, kind, u64::from(address) % 3, address));
        }
    }
    for round in 1..=200 {
        let index = devices[world.dice.random_range(0..devices.len())];
        match world.devices[index].kind {
            Kind::Live if world.devices[index].viewer.is_none() && world.devices[index].open.is_empty() => {
                world.tune_in_to(index)?;
            }
            Kind::Live => {}
            Kind::Segments => {
                world.ask_title(index, Want::Setup)?;
            }
            Kind::Looks => {
                world.ask_title(index, Want::Look)?;
            }
            Kind::Parts => {
                world.ask_title(index, Want::Part)?;
            }
            _ => {
                world.ask_title(index, Want::Rest)?;
            }
        }
        world.while_away(300)?;
        let other = devices[world.dice.random_range(0..devices.len())];
        world.end_session(other)?;
        if round % 20 == 0 {
            for index in &devices {
                world.end_session(*index)?;
            }
            // What is kept for players over HLS and of the past is kept for a while, but not a connection.
            world.wait(4_000)?;
            let open = world.open_at_providers();
            shows!(open == 0, "{open} connections are left");
            shows!(world.truth.titles.open.is_empty(), "{:?} are left", world.truth.titles.open);
            world.wait(50_000)?;
            world.bench().titles_rest(world.edge.edge())?;
        }
    }
    figures.add("left", world.open_at_providers().into());
    Ok(())
}

fn v16(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Parts, 0, 1);
    for _ in 0..50 {
        let request = world.ask_title(index, Want::Part)?;
        world.wait(1_200)?;
        world.is_done(request)?;
    }
    let (used, open) = (world.edge.edge().playback().used(UserId(0), Place::Normal), world.open_at_providers());
    shows!((used, open) == (0, 0), "{used} places are used, {open} connections are open");
    figures.add("used", used.into());
    figures.add("open", open.into());
    Ok(())
}

fn v20(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Live, 0, 1);
    for _ in 0..3 {
        world.tune_in_to(index)?;
        world.wait(1_000)?;
        shows!(world.devices[index].viewer.is_some(), "the stream is not had");
        world.end_session(index)?;
        world.while_away(2_800)?;
    }
    let grants = world.truth.titles.accounts[0].grants;
    shows!(grants == 1, "{grants} connections for one stream");
    figures.add("connections", grants);
    Ok(())
}

fn v21(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let first = world.led(0, Kind::Film, 0, 1);
    world.plays_title(first, Want::Rest)?;
    world.providers[0].mood = Mood::Silent;
    let mut slowest = 0;
    for client in 0..32 {
        let index = world.led(2 + client, Kind::Film, 1, 2);
        let request = world.ask_title(index, Want::Rest)?;
        // The first one keeps it all the while.
        if world.devices[first].open.is_empty() {
            world.providers[0].mood = Mood::Good;
            world.ask_title(first, Want::Rest)?;
            world.wait(300)?;
            world.providers[0].mood = Mood::Silent;
        }
        world.wait(2_100)?;
        let row = &world.truth.titles.requests[&request];
        let answered = row.stage != Stage::Waiting;
        shows!(answered, "{request:?} has no answer: {row:?}");
        if row.refused.is_some() {
            slowest = slowest.max(row.since.since(row.asked).as_millis() as u64);
        }
        world.end_session(index)?;
        world.while_away(100)?;
    }
    shows!(slowest <= 2_000, "one waited for {slowest} ms");
    figures.add("slowest_ms", slowest);
    Ok(())
}

fn v22(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Past, 0, 1);
    world.providers[0].mood = Mood::Status(500);
    let request = world.ask_title(index, Want::Rest)?;
    let Some(old) = world.truth.titles.requests[&request].allocation else {
        return Err(Broken { id: "script", what: "it has no connection".into() });
    };
    // It fails where it was asked for first, and is had at the other account.
    while world.truth.titles.requests[&request].fetches < 2 && world.now < Time::ZERO + Duration::from_secs(2) {
        world.wait(1)?;
    }
    world.providers[0].mood = Mood::Good;
    world.wait(1_000)?;
    world.flows(request)?;
    let second = world.truth.titles.requests[&request].account;
    world.call(Input::Closed { allocation: old })?;
    world.call(Input::Failed { request: RequestId(9_999), failure: Failure::Unreachable })?;
    let next = world.plays_title(index, Want::Rest)?;
    // Of the one before, which was superseded.
    world.call(Input::Finished { request, reason: ViewerEnd::Failed })?;
    world.call(Input::Closed { allocation: old })?;
    world.flows(next)?;
    world.end_session(index)?;
    world.wait(60_000)?;
    let last = world.plays_title(index, Want::Rest)?;
    let accounts = [next, last].map(|request| world.truth.titles.requests[&request].account);
    shows!(accounts == [second; 2] && second.is_some(), "it was {second:?}, then {accounts:?}");
    figures.add("account", second.map_or(0, |AccountId(account)| account.into()));
    Ok(())
}

fn zap_hls(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    // What it watched before may be a film, or a live stream that many may share.
    let film = world.led(0, Kind::Film, 3, 1);
    world.plays_title(film, Want::Rest)?;
    let mut slowest = 0;
    for channel in [0, 1, 2, 1, 0] {
        let index = world.led(0, Kind::Segments, channel, 1);
        let playlist = world.ask_title(index, Want::Setup)?;
        world.wait(2_000)?;
        world.is_done(playlist)?;
        let row = &world.truth.titles.requests[&playlist];
        slowest = slowest.max(row.since.since(row.asked).as_millis() as u64);
        for _ in 0..3 {
            let segment = world.ask_title(index, Want::Part)?;
            world.wait(1_500)?;
            world.is_done(segment)?;
        }
        world.while_away(2_000)?;
    }
    shows!(world.peak() == 1, "{} connections at once", world.peak());
    figures.add("slowest_ms", slowest);
    figures.add("peak", world.peak().into());
    Ok(())
}

fn v23(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    world.providers[0].counts_late = Duration::from_millis(1_500);
    let streams = [0, 1, 2, 3].map(|title| world.led(0, Kind::Live, title, 1));
    world.tune_in_to(streams[0])?;
    world.wait(1_000)?;
    let mut slowest = Duration::ZERO;
    for (zap, pair) in streams.windows(2).enumerate() {
        let (asked, before) = (world.now, world.providers[0].asked);
        world.end_session(pair[0])?;
        world.tune_in_to(pair[1])?;
        while world.devices[pair[1]].viewer.is_none() {
            world.wait(10)?;
            shows!(world.now.since(asked) < Duration::from_secs(3), "zap {zap} is not had");
        }
        let opens = world.providers[0].asked - before;
        let expected = if zap == 0 { 2..=5 } else { 1..=1 };
        shows!(expected.contains(&opens), "zap {zap} took {opens} connections");
        slowest = slowest.max(world.now.since(asked));
        world.wait(1_000)?;
    }
    figures.add("slowest_ms", slowest.as_millis() as u64);
    Ok(())
}

fn v24(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let index = world.led(0, Kind::Film, 0, 1);
    world.providers[0].mood = Mood::Silent;
    let (began, lasts) = (world.now, Duration::from_secs(10));
    let mut refused = 0;
    while world.now.since(began) < lasts {
        let request = world.ask_title(index, Want::Rest)?;
        world.wait(2)?;
        refused += u64::from(world.truth.titles.requests[&request].refused == Some(RefuseReason::InVain));
    }
    let asked = world.truth.titles.accounts[0].grants;
    shows!((100..=301).contains(&asked), "the provider was asked {asked} times");
    shows!(refused > 0, "nobody was told");
    world.providers[0].mood = Mood::Good;
    // What was asked for last may have failed just now, which is remembered for a second.
    world.end_session(index)?;
    world.wait(1_500)?;
    world.plays_title(index, Want::Rest)?;
    figures.add("asked", asked);
    Ok(())
}

fn overlap(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let (first, second) = (world.led(0, Kind::Film, 0, 1), world.led(2, Kind::Film, 1, 2));
    let plays = world.plays_title(first, Want::Rest)?;
    let beside = world.ask_title(second, Want::Rest)?;
    world.wait(500)?;
    world.flows(beside)?;
    world.wait(8_000)?;
    world.bench().titles_all(world.edge.edge())?;
    let cut = world.truth.titles.requests[&beside].cut;
    shows!(cut == Some(ViewerEnd::GraceOver), "what began beside it is cut as {cut:?}");
    world.flows(plays)?;
    figures.add("peak", world.peak().into());
    Ok(())
}

fn live_grace(world: &mut World<'_>, figures: &mut Figures) -> Result<(), Broken> {
    let film = world.led(0, Kind::Film, 0, 1);
    world.plays_title(film, Want::Rest)?;
    let stream = world.led(2, Kind::Live, 1, 2);
    let mut waited = Vec::new();
    for _ in 0..2 {
        let Some(request) = world.tune_in_to(stream)? else {
            return Err(Broken { id: "script", what: "it is not asked for".into() });
        };
        world.wait(2_500)?;
        waited.push(world.refused_title(request, RefuseReason::ProviderLimit)?);
        world.end_session(stream)?;
    }
    shows!(waited[0] >= 2_000 && waited[1] == 0, "it waited for {waited:?} ms");
    figures.add("waited_ms", waited[0]);
    Ok(())
}
