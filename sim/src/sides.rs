//! Which users of a run play titles, and which watch feeds: they are judged by different rules.

use std::collections::BTreeSet;

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::{FeedId, Input, UserId, Viewing};
use holdfast_core::journal::Step;
use holdfast_core::playback::Item;

/// Learns it step by step.
pub(crate) struct Sides {
    users: usize,
    /// Those of the configuration; others are of titles.
    feeds: BTreeSet<FeedId>,
    tuned: BTreeSet<FeedId>,
    of_titles: BTreeSet<UserId>,
    of_feeds: BTreeSet<UserId>,
}

impl Sides {
    /// A run of this configuration that begins with nothing.
    pub fn new(config: &Config) -> Self {
        Sides {
            users: config.users.len(),
            feeds: Edge::new(config.clone()).feeds().feeds().collect(),
            tuned: BTreeSet::new(),
            of_titles: BTreeSet::new(),
            of_feeds: BTreeSet::new(),
        }
    }

    /// It begins with what is there by then.
    pub fn adopt(&mut self, edge: &Edge) {
        let pull = edge.pull();
        self.tuned.extend(pull.tuned_channels().filter_map(|(channel, _)| pull.feed_of(channel)));
        for (_, row) in edge.playback().playbacks() {
            match row.is_of_title() {
                true => _ = self.of_titles.insert(row.viewing.user),
                false => self.plays(&row.viewing),
            }
        }
    }

    pub fn step(&mut self, step: &Step<'_>) {
        match step.input {
            Input::Tune { title, .. } => {
                let pull = step.edge.pull();
                self.tuned.extend(pull.tuned(*title).and_then(|id| pull.feed_of(id)));
            }
            Input::Fetch { ask, .. } if self.knows(ask.viewing.user) => _ = self.of_titles.insert(ask.viewing.user),
            Input::Play { viewing, .. } if self.knows(viewing.user) => self.plays(viewing),
            _ => {}
        }
    }

    fn knows(&self, user: UserId) -> bool {
        (user.0 as usize) < self.users
    }

    fn plays(&mut self, viewing: &Viewing) {
        match viewing.item {
            Item::LiveTs(feed) | Item::LiveHls(feed) if self.feeds.contains(&feed) => {
                self.of_feeds.insert(viewing.user);
            }
            Item::LiveTs(feed) | Item::LiveHls(feed) if !self.tuned.contains(&feed) => {}
            _ => _ = self.of_titles.insert(viewing.user),
        }
    }

    /// The users that play titles, and those of them that also watch feeds.
    pub fn of_titles(self) -> (BTreeSet<UserId>, BTreeSet<UserId>) {
        let mixed = self.of_titles.intersection(&self.of_feeds).copied().collect();
        (self.of_titles, mixed)
    }
}
