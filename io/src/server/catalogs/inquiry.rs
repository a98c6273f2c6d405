//! What a panel is asked only when somebody wants to know it: the episodes of a series.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::Id;
use holdfast_core::input::{ProviderId, TitleId};
use holdfast_core::time::Time;
use url::Url;

use super::read::panel_url;
use crate::http::client::{Event, Exchange};
use crate::providers::xtream::{self, Told};
use crate::providers::{self, Belonging, Kind};
use crate::routes;
use crate::server::connection::{Connection, Work};
use crate::server::link::{LinkId, Owner, Target};
use crate::server::{Action, Call, ConnId, Server};

/// Marks ids of inquiries.
pub enum InquiryKind {}
/// One question to one provider.
pub type InquiryId = Id<InquiryKind>;

/// How long a panel may take.
const PATIENCE: Duration = Duration::from_secs(8);
/// How many are asked one after the other, before whoever waits is told that nobody knows: players wait for half a minute.
const ATTEMPTS: usize = 4;
/// How long its answer holds.
const FRESH: Duration = Duration::from_secs(600);
/// How many answers are kept.
const KEPT: usize = 256;
/// How long an answer may be.
const LARGEST: usize = 8 << 20;
/// How many inquiries there may be at once.
const MOST: usize = 32;

/// What a panel said of a series.
#[derive(Debug)]
pub(crate) struct Inquired {
    /// Whose it is.
    pub provider: ProviderId,
    pub info: serde_json::Value,
    pub episodes: Vec<Told>,
}

/// Whom one may ask, and where.
type Question = (ProviderId, Url);

pub(in crate::server) struct Inquiry {
    series: TitleId,
    provider: ProviderId,
    link: LinkId,
    exchange: Exchange,
    answer: Vec<u8>,
    /// Whoever waits for it.
    clients: Vec<ConnId>,
    /// Who is asked if this comes to nothing.
    others: VecDeque<Question>,
    armed: Time,
}

impl super::Catalogs {
    pub fn inquiry_output(&self, inquiry: InquiryId) -> Option<&[u8]> {
        Some(self.inquiries.get(inquiry)?.exchange.output())
    }

    pub fn inquiry_wrote(&mut self, inquiry: InquiryId, count: usize) {
        if let Some(inquiry) = self.inquiries.get_mut(inquiry) {
            inquiry.exchange.wrote(count);
        }
    }
}

impl Call<'_> {
    /// What the panels say of a series, if that is known by now. Else somebody is asked, and the request answered when it is:
    /// by [`routes::xtream::inquired`].
    pub fn inquire(&mut self, series: TitleId) -> Option<Arc<Inquired>> {
        let now = self.now;
        self.server.catalogs.answers.retain(|_, (until, _)| *until > now);
        if let Some((_, known)) = self.server.catalogs.answers.get(&series) {
            return Some(known.clone());
        }
        if let Some(connection) = self.server.connections.get_mut(self.id) {
            connection.work = Work::Inquiring;
        }
        let all = &mut self.server.catalogs.inquiries;
        let under_way = all.iter().find(|(_, inquiry)| inquiry.series == series).map(|(id, _)| id);
        match under_way.and_then(|id| all.get_mut(id)) {
            Some(inquiry) => inquiry.clients.push(self.id),
            None => self.server.ask_panel(now, series, self.id),
        }
        None
    }
}

impl Server {
    /// Asks whoever has the series: every panel with the first of its accounts before any with the next.
    fn ask_panel(&mut self, now: Time, series: TitleId, client: ConnId) {
        let mut all = Vec::new();
        for (provider, own) in self.providers.iter().filter(|(_, own)| own.is_panel()) {
            let Some(place) = own.catalogue.find(Kind::Series, series.0).next() else { continue };
            let query = [("action", "get_series_info"), ("series_id", own.catalogue.get(place).address)];
            let urls = own.settings.accounts.iter().flatten();
            let urls = urls.filter_map(|account| panel_url(&own.settings, account, "player_api.php", &query));
            all.extend(urls.enumerate().map(|(nth, url)| (nth, (provider, url))));
        }
        all.sort_by_key(|(nth, _)| *nth);
        let questions = all.into_iter().map(|(_, question)| question).take(ATTEMPTS).collect();
        self.ask_next(now, series, vec![client], questions);
    }

    fn ask_next(&mut self, now: Time, series: TitleId, clients: Vec<ConnId>, mut others: VecDeque<Question>) {
        while self.catalogs.inquiries.len() < MOST
            && let Some((provider, url)) = others.pop_front()
        {
            let Ok(get) = self.catalog_get(provider, url) else { continue };
            let id = self.catalogs.inquiries.next_id();
            let link = self.connect(Owner::Inquiry(id), Target::of(&get));
            let mut armed = Time::NEVER;
            self.catalogs.inquiry_timers.set(id, &mut armed, now + PATIENCE);
            let (exchange, answer) = (Exchange::new(&get), Vec::new());
            let inquiry = Inquiry { series, provider, link, exchange, answer, clients, others, armed };
            self.catalogs.inquiries.insert(inquiry);
            return;
        }
        for client in clients {
            self.answer_inquiry(now, client, series, None);
        }
    }

    pub(in crate::server) fn inquiry_received(&mut self, now: Time, id: InquiryId, data: &[u8]) {
        if let Some(inquiry) = self.catalogs.inquiries.get_mut(id) {
            inquiry.exchange.receive(data);
            self.inquiry_exchange(now, id);
        }
    }

    pub(in crate::server) fn inquiry_eof(&mut self, now: Time, id: InquiryId) {
        if let Some(inquiry) = self.catalogs.inquiries.get_mut(id) {
            inquiry.exchange.eof();
            self.inquiry_exchange(now, id);
        }
    }

    fn inquiry_exchange(&mut self, now: Time, id: InquiryId) {
        while let Some(inquiry) = self.catalogs.inquiries.get_mut(id) {
            match inquiry.exchange.poll() {
                None => return,
                Some(Event::Head(head)) if head.status == 200 => {}
                Some(Event::Head(_) | Event::Fault(_)) => self.inquiry_failed(now, id),
                Some(Event::Body(data)) if inquiry.answer.len() + data.len() > LARGEST => self.inquiry_failed(now, id),
                Some(Event::Body(data)) => inquiry.answer.extend_from_slice(&data),
                Some(Event::End) => self.inquiry_whole(now, id),
            }
        }
    }

    fn inquiry_whole(&mut self, now: Time, id: InquiryId) {
        let read = self.catalogs.inquiries.get(id).and_then(|inquiry| xtream::series(&inquiry.answer));
        let Some((mut info, mut episodes)) = read else { return self.inquiry_failed(now, id) };
        let Some(Inquiry { series, provider, clients, .. }) = self.end_inquiry(id) else { return };
        if let Some(secrets) = self.providers.get(provider).map(providers::Provider::secrets) {
            secrets.cut_out_of(&mut info);
            episodes.iter_mut().for_each(|told| secrets.cut_out_of(&mut told.info));
        }
        let mut news = Vec::new();
        for told in &episodes {
            let Some(own) = self.providers.get(provider) else { break };
            let (name, episode) = (own.settings.name.clone(), own.episode(told.id, &told.extension));
            if let Some(episode) = episode
                && self.providers.learn(episode, series)
            {
                news.push(Belonging { provider: name, episode: episode.id, series });
            }
        }
        if !news.is_empty() {
            self.actions.push_back(Action::Keep(news));
        }
        let known = Arc::new(Inquired { provider, info, episodes });
        let answers = &mut self.catalogs.answers;
        if answers.len() >= KEPT {
            answers.pop_first();
        }
        answers.insert(series, (now + FRESH, known.clone()));
        for client in clients {
            self.answer_inquiry(now, client, series, Some(&known));
        }
    }

    /// Nothing came of it: somebody else may know.
    pub(in crate::server) fn inquiry_failed(&mut self, now: Time, id: InquiryId) {
        let Some(Inquiry { series, mut clients, others, .. }) = self.end_inquiry(id) else { return };
        let waits = |connection: &Connection| matches!(connection.work, Work::Inquiring);
        clients.retain(|client| self.connections.get(*client).is_some_and(waits));
        // Nobody is asked for the sake of whoever is gone.
        if !clients.is_empty() {
            self.ask_next(now, series, clients, others);
        }
    }

    fn end_inquiry(&mut self, id: InquiryId) -> Option<Inquiry> {
        let mut inquiry = self.catalogs.inquiries.remove(id)?;
        self.catalogs.inquiry_timers.set(id, &mut inquiry.armed, Time::NEVER);
        self.drop_link(inquiry.link);
        Some(inquiry)
    }

    pub(super) fn inquiries_overdue(&mut self, now: Time) {
        while let Some(id) = self.catalogs.inquiry_timers.expired(now) {
            if let Some(inquiry) = self.catalogs.inquiries.get_mut(id) {
                inquiry.armed = Time::NEVER;
                self.inquiry_failed(now, id);
            }
        }
    }

    fn answer_inquiry(&mut self, now: Time, client: ConnId, series: TitleId, known: Option<&Inquired>) {
        let Some(connection) = self.connections.get_mut(client) else { return };
        if matches!(connection.work, Work::Inquiring) {
            connection.work = Work::None;
            let answer = routes::xtream::inquired(self, series, known);
            self.answer(now, client, routes::shared(answer));
        }
    }
}
