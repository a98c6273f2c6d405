//! Begins in the middle of a run: channels and their connections as the core has them by then.

use holdfast_core::edge::Edge;
use holdfast_core::input::{ChannelId, SourceId};
use holdfast_core::pull::{Connected, Phase};
use holdfast_core::time::Time;

use super::super::super::truth::{Join, Truth};
use super::Source;

impl Truth {
    pub fn adopt_channels(&mut self, edge: &Edge, now: Time) {
        let (pull, feeds) = (edge.pull(), edge.feeds());
        for (request, channel, until) in pull.claims() {
            let Some(channel) = self.channels.get(channel.0 as usize) else { continue };
            let at = until - channel.settings.start_timeout;
            self.joins.push(Join { request, feed: channel.feed, at });
        }
        for place in 0..self.channels.len() {
            let id = ChannelId(place as u32);
            let (Some(state), Some(course)) = (pull.state(id), pull.course(id)) else { continue };
            let last = feeds.last_push(state.feed);
            let seeking = state.phase == Phase::Seeking;
            let row = |own: &Connected, kept: bool| Source {
                channel: place,
                index: own.index as usize,
                agreed: own.agreed,
                since: own.since.or(last.filter(|_| own.wrote)),
                last: own.last.max(last.filter(|_| own.wrote)),
                wrote: own.wrote,
                told: kept && seeking && (own.wrote || own.since.is_none()),
                superseded: false,
                lost: false,
                gone: false,
            };
            let all = [(course.kept, true), (course.beside, false)];
            let rows: Vec<(SourceId, Source)> =
                all.iter().filter_map(|(own, kept)| own.map(|own| (own.source, row(&own, *kept)))).collect();
            let watched = feeds.viewers_of(state.feed) > 0 || self.waiting(state.feed) > 0;
            let channel = &mut self.channels[place];
            channel.open = rows.iter().map(|(source, _)| *source).collect();
            channel.writer = course.kept.filter(|kept| kept.wrote).map(|kept| kept.source);
            channel.asked = course.opened;
            channel.wanted = (watched || !channel.settings.on_demand).then_some(now);
            channel.left = feeds.left(state.feed).unwrap_or_default().max(course.asked);
            channel.stirred = channel.left;
            channel.ended = course.grace.map(|until| until - channel.settings.end_grace);
            channel.given_up = state.phase == Phase::Ended;
            (channel.opens, channel.silences) = (state.counts.opens, state.counts.silences);
            (channel.switches, channel.lost) = (state.counts.switches, state.counts.lost);
            // How many of them since it was last off is not known, and nothing is judged by how many.
            channel.losses = state.counts.lost.iter().sum();
            self.sources.extend(rows);
        }
    }
}
