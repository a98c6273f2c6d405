//! Streams that come over HTTP: what an origin answers, and where it leads.

use holdfast_core::input::{Input, Loss, Refusal, SourceId};
use holdfast_core::time::Time;

use super::Means;
use crate::http::Via;
use crate::http::client::{Event, Exchange, Get, REDIRECTS, ResponseHead};
use crate::server::Server;
use crate::server::link::{Owner, Target};
use crate::server::relays::is_text;

impl Server {
    pub(super) fn fetch(&mut self, now: Time, id: SourceId) {
        while let Some(Means::Http(fetch)) = self.sources.sources.get_mut(&id).map(|source| &mut source.means) {
            let Some(event) = fetch.exchange.poll() else { return };
            match event {
                Event::Head(head) => self.answered(now, id, &head),
                Event::Body(data) => match fetch.page.take() {
                    Some(page) if is_text(&data) => return self.is_page(now, id, page),
                    _ => self.stream(now, id, &data),
                },
                Event::End => {
                    if let Some(page) = fetch.page.take() {
                        return self.is_page(now, id, page);
                    }
                    return self.source_lost(now, id, Loss::Ended, String::from("the origin ended the stream"));
                }
                Event::Fault(fault) => {
                    use crate::http::client::Fault;
                    let loss = match fault {
                        Fault::Unanswered | Fault::EndedEarly => Loss::Reset,
                        _ => Loss::Unusable,
                    };
                    let fault = fault.quoting(|words| self.quoted(id, words));
                    return self.source_lost(now, id, loss, fault.to_string());
                }
            }
        }
    }

    /// An origin answered a request for a stream.
    fn answered(&mut self, now: Time, id: SourceId, head: &ResponseHead) {
        let Some(Means::Http(fetch)) = self.sources.sources.get_mut(&id).map(|source| &mut source.means) else {
            return;
        };
        let loss = match head.status {
            200 | 206 => return self.agreed(now, id, head),
            300..=399 => match fetch.get.clone().follow(head) {
                Ok(Some(_)) if fetch.redirects == REDIRECTS => {
                    let why = format!("the origin redirects more than {REDIRECTS} times");
                    return self.source_lost(now, id, Loss::Refused, why);
                }
                Ok(Some(get)) => {
                    return match self.source_may_be(id, &get) {
                        Ok(()) => self.redirected(id, get),
                        Err(forbidden) => self.source_lost(now, id, forbidden.loss(), forbidden.to_string()),
                    };
                }
                Ok(None) => Loss::Refused,
                Err(fault) => return self.source_lost(now, id, Loss::Refused, fault.to_string()),
            },
            status => Refusal::of(u32::from(status)).into(),
        };
        let mut why = format!("the origin answers {}", head.status);
        if matches!(head.status, 404 | 406) {
            why = self.is_no_ts(id, why);
        }
        self.source_lost(now, id, loss, why);
    }

    fn redirected(&mut self, id: SourceId, get: Get) {
        let link = self.connect(Owner::Source(id), Target::of(&get));
        let Some(Means::Http(fetch)) = self.sources.sources.get_mut(&id).map(|source| &mut source.means) else {
            return;
        };
        let former = std::mem::replace(&mut fetch.link, link);
        (fetch.exchange, fetch.get) = (Exchange::new(&get), get);
        fetch.redirects += 1;
        self.drop_link(former);
    }

    /// Content follows. What it is shows itself; only what surely is something else is said so at once.
    fn agreed(&mut self, now: Time, id: SourceId, head: &ResponseHead) {
        let kind = head.headers.get("Content-Type").unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        // Scripts call all that they send a page, unless they are told (PHP): its beginning decides.
        let page = match kind {
            "text/html" => Some("a web page"),
            "application/json" => Some("JSON"),
            _ => None,
        };
        let other = match kind {
            "application/vnd.apple.mpegurl" | "application/x-mpegurl" | "audio/mpegurl" => Some("an HLS playlist"),
            "application/dash+xml" => Some("a DASH manifest"),
            _ => None,
        };
        match other {
            Some(other) => {
                let why = format!("the origin answers with {other}; a source is an address that gives MPEG-TS");
                let why = self.is_no_ts(id, why);
                self.source_lost(now, id, Loss::Unusable, why);
            }
            None => match Via::of(&head.headers, &self.settings.pseudonym()) {
                Ok(via) => {
                    if let Some(source) = self.sources.sources.get_mut(&id) {
                        source.via = via;
                        if let Means::Http(fetch) = &mut source.means {
                            (fetch.answered, fetch.page) = (true, page);
                        }
                    }
                    self.decide(now, Input::Opened { source: id });
                }
                Err(_) => {
                    let why = String::from("the origin gets this stream from here");
                    self.source_lost(now, id, Loss::Loop, why);
                }
            },
        }
    }

    /// A page comes in place of media. That says something of the login, and nothing of how the stream comes.
    fn is_page(&mut self, now: Time, id: SourceId, page: &str) {
        let why = format!("the origin answers with {page}; a source is an address that gives MPEG-TS");
        self.source_lost(now, id, Loss::Page, why);
    }
}
