//! Live streams of providers: opened with an account that was granted for them.

use holdfast_core::input::{AllocationId, ChannelId, FeedId, Grant, Input, Loss, SourceId, TitleId};
use holdfast_core::time::Time;

use super::{Fetch, Means, Source};
use crate::http::client::{Exchange, Get};
use crate::http::{Via, field};
use crate::origin::Origin;
use crate::providers::{Ends, Forbidden, Form, Part};
use crate::server::Server;
use crate::server::link::{Owner, Target};
use crate::ts::Scanner;

impl Server {
    /// Opens a live stream of a provider's with an account that was granted for it.
    pub(super) fn open_granted(&mut self, now: Time, id: SourceId, channel: ChannelId, index: u32, grant: Grant) {
        let gone = || String::from("the provider's catalogue has it no more");
        let found = self.edge().pull().title_of(channel).and_then(|(title, providers)| {
            let provider = *providers.get(index as usize)?;
            // The catalogue may have been read anew since: the same one of what that provider has is meant.
            let before = providers[..index as usize].iter().filter(|own| **own == provider).count();
            let known = self.providers.sources(title);
            let source = known.iter().filter(|own| own.provider == provider).nth(before)?;
            let address = self.providers.address(source, grant.account, Part::Whole)?;
            Some((provider, address))
        });
        let found = found.ok_or_else(|| (Loss::NotFound, gone())).and_then(|(provider, address)| {
            let feed = self.edge().pull().feed_of(channel).ok_or_else(|| (Loss::NotFound, gone()))?;
            let may = self.providers.may_be(provider, &address.url);
            may.map_err(|forbidden| (forbidden.loss(), forbidden.to_string()))?;
            Ok((feed, provider, address))
        });
        let (feed, provider, address) = match found {
            Ok(found) => found,
            Err((loss, why)) => {
                self.fail_to_open(now, id, (channel, index), loss, why);
                return self.inbox.push_back(Input::Closed { allocation: grant.allocation });
            }
        };
        let origin = Origin::Http(address.url.clone());
        let tells = self.providers.get(provider).is_some_and(|own| own.settings.via);
        let get = match Get::new(address.url) {
            Ok(get) if tells => get.header(field::VIA, self.via(channel)),
            Ok(get) => get,
            Err(fault) => {
                self.fail_to_open(now, id, (channel, index), Loss::Unusable, fault.to_string());
                return self.inbox.push_back(Input::Closed { allocation: grant.allocation });
            }
        };
        let get = address.fields.into_iter().fold(get, |get, (name, value)| get.header(name, value));
        let (link, exchange) = (self.connect(Owner::Source(id), Target::of(&get)), Exchange::new(&get));
        let means = Means::Http(Box::new(Fetch { link, get, exchange, redirects: 0, answered: false, page: None }));
        let granted = Some((provider, grant, origin));
        self.sources.allocations.insert(grant.allocation, id);
        let (scanner, via) = (Scanner::default(), Via::default());
        self.sources
            .sources
            .insert(id, Source { channel, index, feed, means, scanner, muxer: None, via, proved: false, granted });
    }

    /// What a provider answers to a request for MPEG-TS is none, and its words for that. It may have the stream as HLS.
    pub(super) fn is_no_ts(&mut self, id: SourceId, why: String) -> String {
        let source = self.sources.sources.get(&id).filter(|source| !source.proved);
        let Some((channel, Some((provider, ..)))) = source.map(|source| (source.channel, &source.granted)) else {
            return why;
        };
        let title = self.edge.edge().pull().title_of(channel).map(|(title, _)| title);
        let own = title.zip(self.providers.get_mut(*provider));
        match own.is_some_and(|(title, own)| own.failed(title, Form::Ts)) {
            true => format!("{why}; it is asked for as HLS from here on, see `output` of [[provider]]"),
            false => why,
        }
    }

    /// Whether what a source is fetched for may come from there: what a catalogue names must not lead to whatever this machine
    /// reaches and the world does not.
    pub(in crate::server) fn source_may_lead_to(&self, id: SourceId, ends: Ends) -> Result<(), Forbidden> {
        match self.sources.sources.get(&id) {
            Some(Source { means: Means::Http(fetch), granted: Some((provider, ..)), .. }) => {
                self.providers.may_lead_to(*provider, &fetch.get.host(), ends)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn source_may_be(&self, id: SourceId, get: &Get) -> Result<(), Forbidden> {
        let granted = self.sources.sources.get(&id).and_then(|source| source.granted.as_ref());
        granted.map_or(Ok(()), |(provider, ..)| self.providers.may_be(*provider, get.url()))
    }

    /// Closes a source's connection for the sake of somebody else who is granted its account. Whether it was one of a source.
    pub(in crate::server) fn drop_source(&mut self, allocation: AllocationId) -> bool {
        let source = self.sources.allocations.get(&allocation).copied();
        source.inspect(|source| self.close_source(*source)).is_some()
    }

    /// A live title of a provider's becomes a channel, if it is none yet.
    pub(crate) fn tune(&mut self, now: Time, title: TitleId) -> Option<FeedId> {
        let providers = self.providers.sources(title).iter().map(|source| source.provider).collect();
        self.decide(now, Input::Tune { title, providers });
        self.forget_channels();
        let channel = self.edge().pull().tuned(title)?;
        let feed = self.edge().pull().feed_of(channel);
        self.pump(now);
        feed
    }
}
