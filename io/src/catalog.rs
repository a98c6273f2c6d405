//! What there is to play: channels, and the slots of endpoints.

use std::collections::BTreeMap;

use holdfast_core::edge::Edge;
use holdfast_core::input::{ChannelId, EndpointId, FeedId};

/// One live stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    /// What clients of the Xtream API know it by. Made from its path, so that it stays when others come and go.
    pub id: u32,
    /// What people call it.
    pub name: String,
    /// Where it is, below `/live/`: `stage`, `stage/2`.
    pub path: String,
    pub feed: FeedId,
    pub group: Group,
}

/// What a stream is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Channels,
    Endpoints,
}

impl Group {
    pub const ALL: [Group; 2] = [Group::Channels, Group::Endpoints];

    pub fn name(self) -> &'static str {
        match self {
            Group::Channels => "Channels",
            Group::Endpoints => "Live",
        }
    }

    /// What clients of the Xtream API know it by.
    pub fn id(self) -> u32 {
        self as u32 + 1
    }
}

/// All streams, in the order of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    streams: Vec<Stream>,
    by_id: BTreeMap<u32, usize>,
    by_feed: BTreeMap<FeedId, usize>,
}

impl Catalog {
    /// What this edge has.
    pub fn new(edge: &Edge) -> Self {
        let mut catalog = Catalog::default();
        for (index, channel) in edge.config().channels.iter().enumerate() {
            if let Some(feed) = edge.pull().feed_of(ChannelId(index as u32)) {
                catalog.add(channel.name.clone(), channel.name.clone(), feed, Group::Channels);
            }
        }
        for (index, endpoint) in edge.config().endpoints.iter().enumerate() {
            for slot in 0..endpoint.slots as usize {
                let Some(feed) = edge.feed_of(EndpointId(index as u32), slot) else { continue };
                let (name, path) = match slot {
                    0 if endpoint.slots == 1 => (endpoint.name.clone(), endpoint.name.clone()),
                    _ => (format!("{} {}", endpoint.name, slot + 1), format!("{}/{}", endpoint.name, slot + 1)),
                };
                catalog.add(name, path, feed, Group::Endpoints);
            }
        }
        catalog
    }

    fn add(&mut self, name: String, path: String, feed: FeedId, group: Group) {
        // FNV-1a, in the 31 bits that clients have room for; of two equal ones the later moves on.
        let hash = path.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let mut id = (hash >> 1).max(1);
        while self.by_id.contains_key(&id) {
            id = (id % (u32::MAX >> 1)) + 1;
        }
        self.by_id.insert(id, self.streams.len());
        self.by_feed.insert(feed, self.streams.len());
        self.streams.push(Stream { id, name, path, feed, group });
    }

    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    pub fn get(&self, id: u32) -> Option<&Stream> {
        self.streams.get(*self.by_id.get(&id)?)
    }

    /// Where a feed is, below `/live/`.
    pub fn path_of(&self, feed: FeedId) -> Option<&str> {
        Some(self.streams.get(*self.by_feed.get(&feed)?)?.path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::config::{Channel, Config, Endpoint};

    use super::*;

    fn catalog(channels: &[&str], endpoints: &[(&str, u32)]) -> Catalog {
        let channels = channels.iter().map(|name| Channel { name: (*name).into(), ..Channel::default() }).collect();
        let endpoint =
            |(name, slots): &(&str, u32)| Endpoint { name: (*name).into(), slots: *slots, ..Endpoint::default() };
        let endpoints = endpoints.iter().map(endpoint).collect();
        Catalog::new(&Edge::new(Config { channels, endpoints, ..Config::default() }))
    }

    #[test]
    fn every_feed_has_one_address() {
        let catalog = catalog(&["news"], &[("stage", 2), ("door", 1)]);
        let paths: Vec<&str> = catalog.streams().iter().map(|stream| stream.path.as_str()).collect();
        assert_eq!(paths, ["news", "stage/1", "stage/2", "door"]);
        for stream in catalog.streams() {
            assert_eq!(catalog.get(stream.id), Some(stream));
            assert_eq!(catalog.path_of(stream.feed), Some(stream.path.as_str()));
        }
    }

    #[test]
    fn a_stream_keeps_its_id_when_others_come_and_go() {
        let id = |catalog: &Catalog, path: &str| {
            catalog.streams().iter().find(|stream| stream.path == path).map(|own| own.id)
        };
        let (few, many) = (catalog(&["news"], &[]), catalog(&["sport", "news", "film"], &[("stage", 1)]));
        assert_eq!(id(&few, "news"), id(&many, "news"));
        let names: Vec<String> = (0..50_000).map(|index| format!("c{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let large = catalog(&names, &[]);
        assert_eq!(large.by_id.len(), 50_000, "no two have the same");
    }
}
