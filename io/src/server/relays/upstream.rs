//! How a provider is asked for a title, and what it says.

use bytes::Bytes;
use holdfast_core::input::{AllocationId, Failure, Input, Note, ProviderId, RequestId, ViewerEnd};
use holdfast_core::playback::Item;
use holdfast_core::time::Time;
use url::Url;

use super::answer::{self, Asked, Verdict};
use super::{ANSWER, DOCUMENT, End, From, Granted, Promise, Relay, Stage, Stream, Upstream, What};
use crate::hls::sealed;
use crate::http::client::{Event, Exchange, Get, REDIRECTS, ResponseHead};
use crate::http::field::{self, CONTENT_RANGE};
use crate::http::{FieldValue, Response, Via};
use crate::providers::{Address, Ends, Form, Part, ProviderSettings};
use crate::routes;
use crate::server::link::{Owner, Target};
use crate::server::{Action, LinkId, Server};

/// What is said of a page that comes in place of media.
const PAGE: &str =
    "the provider answers with a page where media was to come: so panels say that a login is wrong or over";

impl Server {
    /// The core says from where something is fetched.
    pub(super) fn granted(&mut self, now: Time, request: RequestId, allocation: AllocationId, granted: Granted) {
        let Some(relay) = self.relays.relays.get_mut(&request) else {
            // Its client went away meanwhile.
            self.inbox.push_back(Input::Closed { allocation });
            return self.inbox.push_back(Input::Finished { request, reason: ViewerEnd::Left });
        };
        relay.granted = Some(granted);
        relay.closed = Some(allocation);
        let address = self.address(request).and_then(|address| {
            self.may_ask(request, &address.url)?;
            Ok(address)
        });
        let address = match address {
            Ok(address) => address,
            Err(why) => return self.relay_failed(request, Failure::Unusable, why),
        };
        let what = self.relays.relays.get(&request).map(|relay| relay.errand.what);
        if what == Some(What::Redirect) {
            self.inbox.push_back(Input::Finished { request, reason: ViewerEnd::Done });
            self.end_relay(now, request);
            return self.answer_request(now, request, routes::title::elsewhere(&address.url));
        }
        match self.asking(request, address) {
            Ok(get) => {
                self.relays.allocations.insert(allocation, request);
                self.relays.counts.opens += 1;
                let link = self.connect_relay(request, &get);
                let exchange = Exchange::new(&get);
                let upstream = Upstream { link, allocation, get, exchange, redirects: 0 };
                if let Some(relay) = self.relays.relays.get_mut(&request) {
                    (relay.upstream, relay.closed) = (Some(upstream), None);
                    self.relays.set_stage(request, Stage::Asking { until: now + ANSWER });
                    self.relays.rearm(request);
                }
            }
            Err(why) => self.relay_failed(request, Failure::Unusable, why),
        }
    }

    /// Where, and with which fields, it is fetched; why it cannot be.
    fn address(&self, request: RequestId) -> Result<Address, String> {
        let found = self.relays.relays.get(&request).and_then(|relay| {
            let Granted { index, account, .. } = relay.granted?;
            Some((&relay.errand.from, relay.errand.sources.get(index as usize)?, account))
        });
        let gone = || String::from("the catalogue does not have it any more");
        let (from, source, account) = found.ok_or_else(gone)?;
        let part = match from {
            From::Title(part) => *part,
            From::Child(_) => Part::Playlist,
            From::File(_) => return Err(gone()),
        };
        let address = self.providers.address(source, account, part).ok_or_else(|| match part {
            Part::Archive { .. } => String::from("the catalogue does not say how recordings of it are asked for"),
            Part::Whole | Part::Playlist => gone(),
        })?;
        Ok(match from {
            From::Child(sealed) => Address { url: sealed.url.clone(), ..address },
            From::Title(_) | From::File(_) => address,
        })
    }

    fn asking(&self, request: RequestId, address: Address) -> Result<Get, String> {
        let Some(relay) = self.relays.relays.get(&request) else { return Err(String::new()) };
        let get = Get::new(address.url).map_err(|fault| fault.to_string())?;
        let mut get = address.fields.into_iter().fold(get, |get, (name, value)| get.header(name, value));
        if self.provider_of(request).is_some_and(|provider| provider.via) {
            get = get.header(field::VIA, relay.errand.via.through(&self.settings.pseudonym()));
        }
        get = match (relay.errand.what, relay.errand.span) {
            // What is refused to HEAD is given to this (spec: protocols §4.3).
            (What::Look, _) => get.range(0, Some(0)),
            (_, Some(span)) => get.header(field::RANGE, span.into()),
            _ => get,
        };
        Ok(match &relay.errand.if_range {
            Some(version) if relay.errand.span.is_some() => get.header(field::IF_RANGE, version.clone()),
            _ => get,
        })
    }

    /// Whether a request may go there, as far as that shows in its words; why not.
    fn may_ask(&self, request: RequestId, url: &Url) -> Result<(), String> {
        let provider = self.asked_of(request).ok_or_else(|| String::from("it is over"))?;
        self.providers.may_be(provider, url).map_err(|forbidden| forbidden.to_string())
    }

    /// Who is asked.
    pub(super) fn asked_of(&self, request: RequestId) -> Option<ProviderId> {
        let relay = self.relays.relays.get(&request)?;
        Some(relay.errand.sources.get(relay.granted?.index as usize)?.provider)
    }

    fn provider_of(&self, request: RequestId) -> Option<&ProviderSettings> {
        self.settings.providers.get(self.asked_of(request)?.0 as usize)
    }

    fn connect_relay(&mut self, request: RequestId, get: &Get) -> LinkId {
        self.connect(Owner::Relay(request), Target::of(get))
    }

    /// The connection is there.
    pub(in crate::server) fn relay_connected(&mut self, request: RequestId, link: LinkId, ends: Ends) {
        let host = self.relays.relays.get(&request).and_then(|relay| Some(relay.upstream.as_ref()?.get.host()));
        if let Some((provider, host)) = self.asked_of(request).zip(host)
            && let Err(forbidden) = self.providers.may_lead_to(provider, &host, ends)
        {
            // Nothing was said to it yet.
            return self.relay_failed(request, Failure::Unusable, forbidden.to_string());
        }
        self.actions.push_back(Action::WriteLink(link));
    }

    /// The connection is gone, or was never made.
    pub(in crate::server) fn relay_link_lost(&mut self, now: Time, request: RequestId, why: String) {
        self.relay_broken(now, request, Failure::Unreachable, why);
    }

    pub(in crate::server) fn relay_received(&mut self, now: Time, request: RequestId, data: &[u8]) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let Some(upstream) = &mut relay.upstream else { return };
        relay.moved = now;
        upstream.exchange.receive(data);
        self.converse_with_provider(now, request);
    }

    pub(in crate::server) fn relay_eof(&mut self, now: Time, request: RequestId) {
        if let Some(upstream) = self.relays.relays.get_mut(&request).and_then(|relay| relay.upstream.as_mut()) {
            upstream.exchange.eof();
            self.converse_with_provider(now, request);
        }
    }

    fn converse_with_provider(&mut self, now: Time, request: RequestId) {
        while let Some(relay) = self.relays.relays.get_mut(&request)
            && let Some(upstream) = &mut relay.upstream
            && let Some(event) = upstream.exchange.poll()
        {
            match event {
                Event::Head(head) => self.provider_answered(now, request, &head),
                Event::Body(data) => self.provider_sent(now, request, data),
                Event::End => self.provider_finished(now, request),
                Event::Fault(fault) => {
                    use crate::http::client::Fault;
                    let failure = match fault {
                        Fault::Unanswered | Fault::EndedEarly => Failure::Unreachable,
                        _ => Failure::Unusable,
                    };
                    self.relay_broken(now, request, failure, fault.to_string());
                }
            }
        }
        self.flow(now, request);
    }

    fn provider_answered(&mut self, now: Time, request: RequestId, head: &ResponseHead) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let Some(upstream) = &mut relay.upstream else { return };
        match upstream.get.clone().follow(head) {
            Ok(None) => {}
            Ok(Some(_)) if upstream.redirects == REDIRECTS => {
                let why = format!("the provider redirects more than {REDIRECTS} times");
                return self.relay_failed(request, Failure::Unusable, why);
            }
            Ok(Some(get)) => return self.relay_redirected(request, get),
            Err(fault) => return self.relay_failed(request, Failure::Unusable, fault.to_string()),
        }
        let errand = &relay.errand;
        let version = errand.if_range.as_ref().map(FieldValue::as_str);
        let asked = Asked { what: errand.what, span: errand.span, version };
        let via = match Via::of(&head.headers, &self.settings.pseudonym()) {
            Ok(via) => via.through(&self.settings.pseudonym()),
            Err(_) => {
                let why = String::from("its address leads back to this server, or the provider gets this from here");
                return self.relay_failed(request, Failure::Unusable, why);
            }
        };
        let is_media = match &errand.from {
            From::Title(_) => true,
            From::Child(own) => own.kind == sealed::Kind::Media,
            From::File(_) => false,
        };
        let may_be_page = is_media && answer::may_be_page(asked, head);
        match answer::judge(asked, head) {
            Verdict::Document => {
                let until = now + ANSWER;
                self.relays.set_stage(request, Stage::Collecting { document: Vec::new(), until });
                self.relays.rearm(request);
            }
            Verdict::Known(size) if may_be_page => {
                let response = routes::title::looked_at(&size).header(field::VIA, via);
                let promise = Box::new(Promise { response, stream: None, page: Some(size) });
                self.relays.set_stage(request, Stage::Promised { promise, until: now + ANSWER });
                self.relays.rearm(request);
            }
            // Of a page there is no part, however long it is.
            Verdict::Unsatisfiable(_) | Verdict::Failed(..) if may_be_page => {
                self.relay_failed(request, Failure::Page, PAGE.to_owned());
            }
            Verdict::Pass(pass) => {
                let page = may_be_page.then(|| pass.size.clone());
                if page.is_none() {
                    self.learn(now, request, pass.size.clone());
                }
                let stream = Stream {
                    queue: std::collections::VecDeque::new(),
                    queued: 0,
                    skip: pass.skip,
                    left: pass.length,
                    end: None,
                };
                let response = pass.response().header(field::VIA, via);
                let promise = Box::new(Promise { response, stream: Some(stream), page });
                self.relays.set_stage(request, Stage::Promised { promise, until: now + ANSWER });
                self.relays.rearm(request);
            }
            Verdict::Known(size) => {
                self.learn(now, request, size.clone());
                self.settled(now, request, routes::title::looked_at(&size).header(field::VIA, via));
            }
            Verdict::Unsatisfiable(range) => {
                let problem = routes::title::unsatisfiable();
                let answer = match range {
                    Some(range) => problem.header(CONTENT_RANGE, FieldValue::from(range)),
                    None => problem,
                };
                self.settled(now, request, answer);
            }
            Verdict::Changed => self.refetch_whole(request),
            Verdict::Failed(failure, why) => self.relay_failed(request, failure, why),
        }
    }

    /// All of it is asked for instead of a part of what it was before, where that was.
    fn refetch_whole(&mut self, request: RequestId) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        (relay.errand.span, relay.errand.if_range) = (None, None);
        match self.address(request).and_then(|address| self.asking(request, address)) {
            Ok(get) => self.relay_redirected(request, get),
            Err(why) => self.relay_failed(request, Failure::Unusable, why),
        }
    }

    /// The same is asked for elsewhere, on a connection of the same allocation.
    fn relay_redirected(&mut self, request: RequestId, get: Get) {
        if let Err(why) = self.may_ask(request, get.url()) {
            return self.relay_failed(request, Failure::Unusable, why);
        }
        let Some(former) =
            self.relays.relays.get(&request).and_then(|relay| relay.upstream.as_ref()).map(|upstream| upstream.link)
        else {
            return;
        };
        // First, since they count as one.
        if self.links.remove(former).is_some() {
            self.actions.push_back(Action::CloseLink(former));
        }
        self.relays.counts.redirects += 1;
        let link = self.connect_relay(request, &get);
        if let Some(upstream) = self.relays.relays.get_mut(&request).and_then(|relay| relay.upstream.as_mut()) {
            (upstream.link, upstream.exchange, upstream.get) = (link, Exchange::new(&get), get);
            upstream.redirects += 1;
        }
    }

    /// Remembers what a whole title is like.
    fn learn(&mut self, now: Time, request: RequestId, size: super::Size) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        let (From::Title(Part::Whole), Some(title)) = (&relay.errand.from, relay.errand.ask.viewing.item.title())
        else {
            return;
        };
        relay.size = Some(size.clone());
        for looker in std::mem::take(&mut relay.lookers) {
            self.tell_looker(now, looker, routes::title::looked_at(&size));
        }
        // Whoever asks for its beginning alone may be told the length that is not said here.
        if size.length.is_some() {
            self.relays.sizes.learn(title, size);
        }
    }

    /// There is something of a body, which begins so, or there will be nothing: the client is answered, unless it is a page that
    /// came in place of media.
    fn keep_promise(&mut self, now: Time, request: RequestId, beginning: &[u8]) {
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        if let Stage::Promised { .. } = relay.stage
            && let Stage::Promised { promise, .. } = std::mem::replace(&mut relay.stage, Stage::Asking { until: now })
        {
            let Promise { response, stream, page } = *promise;
            if let Some(size) = page {
                if answer::is_text(beginning) {
                    return self.relay_failed(request, Failure::Page, PAGE.to_owned());
                }
                self.learn(now, request, size);
            }
            match stream {
                Some(stream) => self.begin(now, request, response, stream),
                None => self.settled(now, request, response),
            }
        }
    }

    fn provider_sent(&mut self, now: Time, request: RequestId, mut data: Bytes) {
        self.keep_promise(now, request, &data);
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        match &mut relay.stage {
            Stage::Collecting { document, .. } => {
                if document.len() + data.len() > DOCUMENT {
                    let why = String::from("the provider sends a playlist that is longer than any is");
                    return self.relay_failed(request, Failure::Unusable, why);
                }
                document.extend_from_slice(&data);
            }
            Stage::Streaming(stream) => {
                let skipped = usize::try_from(stream.skip).unwrap_or(usize::MAX).min(data.len());
                stream.skip -= skipped as u64;
                let data = data.split_off(skipped);
                let wanted =
                    stream.left.map_or(data.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(data.len()));
                if stream.queued == 0 {
                    relay.taken = now;
                }
                if wanted > 0 {
                    stream.queue.push_back(data.slice(..wanted));
                    stream.queued += wanted;
                }
                if let Some(left) = &mut stream.left {
                    *left -= wanted as u64;
                    if *left == 0 {
                        stream.end = Some(End::Complete);
                        self.drop_upstream(request);
                    }
                }
            }
            Stage::Waiting | Stage::Asking { .. } | Stage::Promised { .. } => {}
        }
    }

    fn provider_finished(&mut self, now: Time, request: RequestId) {
        self.keep_promise(now, request, &[]);
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        match &mut relay.stage {
            Stage::Collecting { document, .. } => {
                let document = std::mem::take(document);
                let Some(base) = relay.upstream.as_ref().map(|upstream| upstream.get.url().clone()) else { return };
                let seconds = self.wall(now).as_secs();
                match self.rewritten(seconds, request, &document, &base) {
                    Ok((answer, missed)) => {
                        if let Some(why) = missed {
                            self.tell_missed(now, request, &why);
                        }
                        if let Some(provider) = self.tried_hls(request, true) {
                            self.tell(now, Note::LiveAsHls { provider });
                        }
                        self.settled(now, request, answer);
                    }
                    Err((failure, why)) => self.relay_failed(request, failure, why),
                }
            }
            Stage::Streaming(stream) => {
                // Less than it said: its client sees that by the length.
                if stream.left.unwrap_or(0) > 0 || stream.skip > 0 {
                    return self.broken_off(now, request);
                }
                stream.end = Some(End::Complete);
                self.drop_upstream(request);
            }
            Stage::Waiting | Stage::Asking { .. } | Stage::Promised { .. } => {}
        }
    }

    /// The connection is of no more use. What came of a body before still goes to the client.
    pub(super) fn relay_broken(&mut self, now: Time, request: RequestId, failure: Failure, why: String) {
        if self.relays.relays.get(&request).is_some_and(Relay::is_answered) {
            self.broken_off(now, request);
        } else {
            self.relay_failed(request, failure, why);
        }
    }

    /// A body ends before its end. What came of it still goes to the client.
    fn broken_off(&mut self, now: Time, request: RequestId) {
        self.drop_upstream(request);
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        if let Stage::Streaming(stream) = &mut relay.stage {
            stream.end.get_or_insert(End::Broken);
        }
        if !std::mem::replace(&mut relay.told, true) {
            self.relays.counts.broken += 1;
            self.inbox.push_back(Input::Finished { request, reason: ViewerEnd::Failed });
        }
        self.tell_closed(request);
        self.flow(now, request);
    }

    /// Nothing comes of this attempt; the core may know another.
    pub(super) fn relay_failed(&mut self, request: RequestId, failure: Failure, why: String) {
        self.drop_upstream(request);
        if matches!(failure, Failure::Status(404 | 406) | Failure::Unusable) {
            self.tried_hls(request, false);
        }
        let Some(relay) = self.relays.relays.get_mut(&request) else { return };
        if let Some(granted) = relay.granted {
            self.names.failed(granted.account, failure, &why);
        }
        relay.fault = Some((failure, why));
        self.relays.set_stage(request, Stage::Waiting);
        self.inbox.push_back(Input::Failed { request, failure });
        self.tell_closed(request);
    }

    /// A live stream came as HLS, or did not. The provider of which all are asked for so from here on, if that is news.
    fn tried_hls(&mut self, request: RequestId, came: bool) -> Option<ProviderId> {
        let relay = self.relays.relays.get(&request)?;
        let (Item::Hls(title), From::Title(Part::Playlist)) = (relay.errand.ask.viewing.item, &relay.errand.from)
        else {
            return None;
        };
        let provider = relay.errand.sources.get(relay.granted?.index as usize)?.provider;
        let own = self.providers.get_mut(provider)?;
        if !came {
            own.failed(title, Form::Hls);
            return None;
        }
        own.came(title, Form::Hls).filter(|form| *form == Form::Hls).map(|_| provider)
    }

    /// It is answered with something that was not to be passed on as it comes.
    pub(super) fn settled(&mut self, now: Time, request: RequestId, answer: Response) {
        self.inbox.push_back(Input::Finished { request, reason: ViewerEnd::Done });
        self.end_relay(now, request);
        self.answer_request(now, request, answer);
    }
}
