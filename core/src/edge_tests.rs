//! What is configured is found by its name, and what is shown of it has words of its own.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;

use crate::account::{AllocationState, LeaseState};
use crate::config::{Channel, Config, Endpoint, Media, Strategy, Takeover};
use crate::edge::Edge;
use crate::input::{ChannelId, EndpointId};

#[test]
fn endpoints_and_channels_are_found_by_their_names() {
    let endpoint = |name| Endpoint { name: String::from(name), ..Endpoint::default() };
    let channel = |name| Channel { name: String::from(name), ..Channel::default() };
    let endpoints = vec![endpoint("stage"), endpoint("a")];
    let channels = vec![channel("sports"), channel("news"), channel("zoo")];
    let edge = Edge::new(Config { endpoints, channels, ..Config::default() });
    let found = |name| edge.endpoint(name).map(|(id, own)| (id, own.name.as_str()));
    assert_eq!(found("stage"), Some((EndpointId(0), "stage")));
    assert_eq!(found("a"), Some((EndpointId(1), "a")));
    let found = |name| edge.channel(name).map(|(id, own)| (id, own.name.as_str()));
    assert_eq!(found("sports"), Some((ChannelId(0), "sports")));
    assert_eq!(found("news"), Some((ChannelId(1), "news")));
    assert_eq!(found("zoo"), Some((ChannelId(2), "zoo")));
    for unknown in ["", "b", "xyzzy"] {
        assert!(edge.endpoint(unknown).is_none() && edge.channel(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn every_setting_and_state_has_a_word_of_its_own() {
    let media = [Media::AudioVideo, Media::Audio, Media::Video].map(Media::as_str).to_vec();
    let takeover = [Takeover::DisplaceDead, Takeover::Refuse, Takeover::NewestWins].map(Takeover::as_str).to_vec();
    let connections = [AllocationState::Opening, AllocationState::Active, AllocationState::Closing];
    let leases = [LeaseState::Starting, LeaseState::Active, LeaseState::Idle];
    let states = [connections.map(AllocationState::as_str).to_vec(), leases.map(LeaseState::as_str).to_vec()];
    for words in [media, takeover, Strategy::ALL.map(Strategy::as_str).to_vec()].into_iter().chain(states) {
        let different: BTreeSet<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        assert_eq!(different.len(), words.len(), "{words:?}");
    }
}
