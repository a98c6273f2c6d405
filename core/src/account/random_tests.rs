//! Anything in any order: what has to hold holds, and nothing is left (spec: playback §9).

use alloc::vec;
use alloc::vec::Vec;

use super::stage::*;
use super::*;
use crate::config::{Account, Provider};

/// Numbers that are always the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn providers(chance: &mut Chance) -> Vec<Provider> {
    let count = 1 + chance.below(2);
    let provider = |chance: &mut Chance| {
        let account = |chance: &mut Chance| Account {
            max_connections: chance.below(4) as u32,
            priority: chance.below(2) as i8,
            overlap: chance.below(4) == 0,
            enabled: chance.below(8) > 0,
            until: (chance.below(8) == 0).then(|| Date::from_micros(chance.below(20_000_000) as i64)),
        };
        let accounts = (0..1 + chance.below(3)).map(|_| account(chance)).collect();
        let cooling = millis([0, 0, 700, 4_000][chance.below(4) as usize]);
        Provider { accounts, cooling, ..Provider::default() }
    };
    (0..count).map(|_| provider(chance)).collect()
}

fn wished(stage: &Stage, chance: &mut Chance, holder: Holder) -> Wish<'static> {
    let until = ms(stage.now + chance.below(3_000));
    let account = AccountId(chance.below(7) as u32);
    let probes = matches!(holder, Holder::Probe(_));
    let patience = match chance.below(5) {
        _ if probes => Patience::None,
        0 => Patience::None,
        1 => Patience::Meek(until),
        2 => Patience::Until(until, Grace::Instant),
        _ => Patience::Until(until, Grace::Hold),
    };
    let lists: [&[ProviderId]; 4] =
        [ONE, &[ProviderId(1)], &[ProviderId(0), ProviderId(1)], &[ProviderId(1), ProviderId(0), ProviderId(1)]];
    Wish {
        holder,
        providers: lists[chance.below(4) as usize],
        avoid: &[],
        title: TitleId(chance.below(4)),
        viewing: (chance.below(2) == 0).then(|| viewing(chance.below(6) as u32)),
        feed: None,
        strength: if probes {
            Strength::PROBE
        } else {
            strength([Place::Normal, Place::Soft][chance.below(2) as usize], chance.below(3) as i8)
        },
        pin: [Pin::None, Pin::None, Pin::Loose(account), Pin::Firm(account)][chance.below(4) as usize],
        window: millis([0, 3_000][chance.below(2) as usize]),
        patience,
    }
}

fn run(seed: u64) -> Vec<(Told, u64)> {
    let chance = &mut Chance(seed);
    let mut stage = Stage::new(providers(chance));
    for _ in 0..300 {
        let number = chance.below(8) as u32;
        let holder = [playback(number), source(number), probe(number)][chance.below(3) as usize];
        let open: Vec<Grant> = stage
            .open
            .iter()
            .map(|(allocation, (_, account))| Grant { account: *account, allocation: *allocation })
            .collect();
        let grant = (!open.is_empty()).then(|| open[chance.below(open.len() as u64) as usize]);
        match (chance.below(12), grant) {
            (0..4, _) => drop(stage.acquire(wished(&stage, chance, holder))),
            (4, Some(grant)) => stage.release(grant),
            (5 | 6, Some(grant)) => stage.closed(grant),
            (7, Some(grant)) => stage.confirm(grant),
            (8, Some(grant)) => stage.failed(grant),
            (9, _) if chance.below(4) == 0 => stage.allow(chance.below(7) as u32, chance.below(4) as u32),
            (9, _) => stage.rest(holder),
            (10, _) => match chance.below(3) {
                0 => stage.end(holder),
                1 => stage.withdraw(holder),
                _ => stage.set_strength(holder, (chance.below(2) == 0).then_some(WEAK)),
            },
            _ => stage.run(chance.below(1_500)),
        }
        stage.agrees();
    }
    let holders: Vec<Holder> = stage.room.holders.keys().copied().collect();
    for holder in holders {
        stage.end(holder);
    }
    let open: Vec<Grant> = stage
        .open
        .iter()
        .map(|(allocation, (_, account))| Grant { account: *account, allocation: *allocation })
        .collect();
    for grant in open {
        stage.closed(grant);
    }
    stage.run(10_000);
    assert!(stage.is_empty(), "{seed}: {:?}", stage.room);
    stage.told
}

#[test]
fn anything_in_any_order_leaves_nothing() {
    for seed in 0..2_000 {
        run(seed);
    }
}

#[test]
fn the_same_happens_again() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn where_things_become_free_nobody_who_could_have_them_waits() {
    // What `agrees` looks at, on one that is easily told.
    let mut stage = Stage::new(vec![limits(&[1, 1])]);
    let grant = stage.grant(wish(playback(1)));
    stage.grant(wish(playback(2)));
    stage.acquire(stage.patient(playback(3)));
    stage.agrees();
    stage.close(grant);
    stage.agrees();
    assert_eq!(stage.room.waiting(), 0);
}
