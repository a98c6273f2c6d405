//! Begins in the middle of a run: who has which place, who waits, and what is remembered of whom, as the core has it by then.

use std::time::Duration;

use holdfast_core::edge::Edge;
use holdfast_core::input::UserId;
use holdfast_core::playback::{Place, State};
use holdfast_core::time::Time;

use super::super::super::truth::{Truth, nameless};
use super::{Play, Refusal, Stage};

/// How long a refusal answers the same player again.
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);

impl Truth {
    pub fn adopt_plays(&mut self, edge: &Edge) {
        let (room, titles) = (edge.playback(), &self.titles);
        let users = &mut self.users;
        let grace = users.settings.grace;
        users.orders = room.arrivals();
        let mut rows: Vec<_> = room.playbacks().filter(|(_, own)| !titles.is_of(own.viewing.user)).collect();
        rows.sort_by_key(|(_, own)| own.arrival());
        for (id, own) in rows {
            let request = own.request().unwrap_or(nameless(own.arrival()));
            let stage = match (own.state, own.viewer) {
                (State::Queued(_), _) => Stage::Queued,
                (State::Held(until), _) => Stage::Held(until - grace),
                (_, Some(viewer)) => Stage::Seen(viewer),
                (_, None) => Stage::In,
            };
            let play = Play {
                viewing: own.viewing,
                asked: own.asked,
                order: own.arrival(),
                stage,
                place: own.place(),
                let_in: Time::ZERO,
                fallen: false,
                evicted: None,
            };
            users.plays.insert(request, play);
            users.names.insert(id, request);
            if let Stage::Seen(viewer) = stage {
                users.seen.insert(viewer, request);
            }
            users.alive += 1;
            let user = &mut users.users[own.viewing.user.0 as usize];
            user.rows.push(request);
            if own.place() == Some(Place::Grace) {
                user.grace = Some((request, own.grace() - grace));
            }
        }
        for (index, user) in users.users.iter_mut().enumerate() {
            let name = UserId(index as u32);
            let (Some(standing), Some(counts)) = (room.standing(name), room.counts(name)) else { continue };
            user.held = standing.held.iter().filter_map(|id| users.names.get(id).copied()).collect();
            user.fallen = standing.cooldown.map(|until| until - users.settings.grace_cooldown);
            user.freed = standing.freed;
            user.limits.until = room.until(name);
            (user.started, user.refused, user.ended) = (counts.started, counts.refused, counts.ended);
        }
        users.queue = room.queue().filter_map(|id| users.names.get(&id).copied()).collect();
        for (player, reason, freed, until) in room.refusals() {
            users.refusals.insert(player, Refusal { at: until - REFUSAL_MEMORY, reason, freed });
        }
        for (by, target, until) in room.guards() {
            users.guards.insert((by, target), until - users.settings.reentry_guard);
        }
        for (player, until) in room.blocks() {
            users.blocks.insert(player, (Time::ZERO, until));
        }
    }
}
