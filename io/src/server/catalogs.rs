//! Catalogues and guides of providers, read in the background: piece by piece as their bytes come, beside what there is already,
//! which is kept until the new one is whole.

mod inquiry;
mod read;

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_core::id::Table;
use holdfast_core::input::{AccountId, Input, Left, Note, ProviderId};
use holdfast_core::journal::Recorded;
use holdfast_core::time::{Time, Timers};
use url::Url;

use super::link::{LinkId, Owner, Target};
use super::{Action, Server};
use crate::http::FieldValue;
use crate::http::client::{Event, Exchange, Get, REDIRECTS, ResponseHead};
use crate::http::field;
use crate::providers::{self, Ends, Forbidden, Location, ProviderSettings};
pub(crate) use inquiry::Inquired;
use inquiry::Inquiry;
pub(super) use inquiry::InquiryId;
use read::{Job, Next};

/// How long a provider may send nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long it may take for each of its answers.
const WHOLE: Duration = Duration::from_secs(600);
/// The pause after a reading that failed, which doubles each time.
const RETRY: Duration = Duration::from_secs(10);
/// The longest of these pauses, if catalogues are not read more often than that anyway.
const RETRY_MOST: Duration = Duration::from_secs(900);

/// The readings of all providers.
pub(super) struct Catalogs {
    all: Vec<Task>,
    timers: Timers<ProviderId>,
    inquiries: Table<inquiry::InquiryKind, Inquiry>,
    /// What was asked lately, and when it is forgotten.
    answers: BTreeMap<holdfast_core::input::TitleId, (Time, std::sync::Arc<Inquired>)>,
    inquiry_timers: Timers<InquiryId>,
}

/// What is done for one provider.
struct Task {
    /// Under way.
    job: Option<Box<Job>>,
    connection: Option<Connection>,
    /// What came and was not read yet: it is compressed, and became too much to be read at once.
    rest: Vec<u8>,
    /// Whether the file that is read is at its end.
    ended: bool,
    armed: Time,
    failures: u32,
    /// When the catalogue that there is was read.
    read: Option<Time>,
    /// Why the last reading failed, if it did.
    fault: Option<String>,
    counts: ReadCounts,
    /// What its panel said last of each of its accounts, by their places: how many connections it allows, or why it does not let it in.
    logins: BTreeMap<usize, Result<Option<u32>, String>>,
    /// When the present answer has to be whole.
    until: Time,
}

/// What became of the readings of a provider so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadCounts {
    /// Catalogues that were read to their end.
    pub reads: u64,
    /// Catalogues and guides that could not be read.
    pub faults: u64,
}

/// How the bytes come.
enum Connection {
    Http { link: LinkId, get: Box<Get>, exchange: Box<Exchange>, redirects: usize, read: u64 },
    File { link: LinkId, read: u64 },
}

impl Connection {
    fn link(&self) -> LinkId {
        match self {
            Connection::Http { link, .. } | Connection::File { link, .. } => *link,
        }
    }
}

impl Catalogs {
    pub fn new(settings: &[ProviderSettings]) -> Self {
        let mut timers = Timers::default();
        let all = (0..settings.len())
            .map(|place| {
                let mut armed = Time::NEVER;
                timers.set(ProviderId(place as u32), &mut armed, Time::ZERO);
                Task {
                    job: None,
                    connection: None,
                    rest: Vec::new(),
                    ended: false,
                    armed,
                    failures: 0,
                    read: None,
                    fault: None,
                    counts: ReadCounts::default(),
                    logins: BTreeMap::new(),
                    until: Time::NEVER,
                }
            })
            .collect();
        let (inquiries, answers, inquiry_timers) = (Table::default(), BTreeMap::new(), Timers::default());
        Catalogs { all, timers, inquiries, answers, inquiry_timers }
    }

    pub fn deadline(&self) -> Option<Time> {
        [self.timers.deadline(), self.inquiry_timers.deadline()].into_iter().flatten().min()
    }

    /// Whether more of what is read of a provider can be taken in.
    pub fn wants_read(&self, provider: ProviderId) -> bool {
        self.all.get(provider.0 as usize).is_some_and(|task| task.rest.is_empty())
    }

    pub fn output(&self, provider: ProviderId) -> Option<&[u8]> {
        match self.all.get(provider.0 as usize)?.connection.as_ref()? {
            Connection::Http { exchange, .. } => Some(exchange.output()),
            Connection::File { .. } => None,
        }
    }

    pub fn wrote(&mut self, provider: ProviderId, count: usize) {
        if let Some(Connection::Http { exchange, .. }) = self.task(provider).and_then(|task| task.connection.as_mut()) {
            exchange.wrote(count);
        }
    }

    fn task(&mut self, provider: ProviderId) -> Option<&mut Task> {
        self.all.get_mut(provider.0 as usize)
    }

    fn arm(&mut self, provider: ProviderId, at: Time) {
        if let Some(task) = self.all.get_mut(provider.0 as usize) {
            self.timers.set(provider, &mut task.armed, at);
        }
    }
}

impl Server {
    /// When the catalogue that there is of a provider was read, and why the last reading failed, if it did.
    pub(crate) fn catalog_state(&self, provider: ProviderId) -> (Option<Time>, Option<&str>) {
        let task = self.catalogs.all.get(provider.0 as usize);
        task.map_or((None, None), |task| (task.read, task.fault.as_deref()))
    }

    /// What became of the readings of a provider so far.
    pub(crate) fn catalog_counts(&self, provider: ProviderId) -> ReadCounts {
        self.catalogs.all.get(provider.0 as usize).map(|task| task.counts).unwrap_or_default()
    }

    /// What is due of all providers.
    pub(super) fn refresh(&mut self, now: Time) {
        while let Some(provider) = self.catalogs.timers.expired(now) {
            let Some(task) = self.catalogs.task(provider) else { continue };
            task.armed = Time::NEVER;
            if !task.rest.is_empty() {
                self.catalog_go_on(now, provider);
            } else if task.job.is_some() {
                self.catalog_failed(
                    now,
                    provider,
                    String::from("the provider takes too long, or sends nothing any more"),
                );
            } else if !self.draining {
                self.begin_reading(now, provider);
            }
        }
        self.inquiries_overdue(now);
    }

    fn begin_reading(&mut self, now: Time, provider: ProviderId) {
        let Some(own) = self.providers.get(provider) else { return };
        let (job, next) = Job::new(&own.settings);
        if let Some(task) = self.catalogs.task(provider) {
            task.job = Some(Box::new(job));
        }
        self.read_next(now, provider, next);
    }

    /// Goes on with what is read next of a provider.
    fn read_next(&mut self, now: Time, provider: ProviderId, next: Next) {
        match next {
            Next::Read(Location::Http(url)) => match self.catalog_may_be(provider, url) {
                Ok(get) => self.catalog_connect(now, provider, get, 0),
                Err(why) => self.catalog_failed(now, provider, why),
            },
            Next::Read(Location::File(path)) => {
                let link = self.links.insert(Owner::Catalog(provider));
                self.actions.push_back(Action::ReadFile(link, path));
                self.catalog_opened(now, provider, Connection::File { link, read: 0 });
            }
            Next::Done => {
                let Some(task) = self.catalogs.task(provider) else { return };
                (task.job, task.failures, task.fault) = (None, 0, None);
                let refresh = self.providers.get(provider).map_or(WHOLE, |own| own.settings.refresh);
                self.catalogs.arm(provider, now + refresh);
            }
            Next::Failed(why) => self.catalog_failed(now, provider, why),
        }
    }

    /// What is asked for what is read, unless it leads where others than the operator said and may not lead.
    fn catalog_may_be(&self, provider: ProviderId, url: Url) -> Result<Get, String> {
        let job = self.catalogs.all.get(provider.0 as usize).and_then(|task| task.job.as_ref());
        if job.is_some_and(|job| job.is_said_by_provider()) {
            self.providers.may_be(provider, &url).map_err(|forbidden| forbidden.to_string())?;
        }
        self.catalog_get(provider, url)
    }

    fn catalog_get(&self, provider: ProviderId, url: Url) -> Result<Get, String> {
        let get = Get::new(url).map_err(|fault| fault.to_string())?;
        // Guides are taken apart here as they come, with or without it.
        let get = get.header(field::ACCEPT_ENCODING, FieldValue::from_static("gzip, identity;q=0.5"));
        let agent = self.providers.get(provider).map(|own| own.settings.user_agent.clone()).unwrap_or_default();
        Ok(match FieldValue::new(agent) {
            Ok(agent) if !agent.as_str().is_empty() => get.header(field::USER_AGENT, agent),
            _ => get,
        })
    }

    fn catalog_connect(&mut self, now: Time, provider: ProviderId, get: Get, redirects: usize) {
        let link = self.connect(Owner::Catalog(provider), Target::of(&get));
        let (exchange, get) = (Box::new(Exchange::new(&get)), Box::new(get));
        self.catalog_opened(now, provider, Connection::Http { link, get, exchange, redirects, read: 0 });
    }

    fn catalog_opened(&mut self, now: Time, provider: ProviderId, connection: Connection) {
        if let Some(task) = self.catalogs.task(provider) {
            task.connection = Some(connection);
            (task.rest, task.ended, task.until) = (Vec::new(), false, now + WHOLE);
        }
        self.catalogs.arm(provider, now + SILENCE);
    }

    /// Whether what is read of a provider may come from there. Where it is was said by the operator; where that leads, and where
    /// its list says that its guide is, by others.
    pub(super) fn catalog_may_lead_to(&self, provider: ProviderId, ends: Ends) -> Result<(), Forbidden> {
        let task = self.catalogs.all.get(provider.0 as usize);
        match task.and_then(|task| Some((task.connection.as_ref()?, task.job.as_ref()?))) {
            Some((Connection::Http { get, redirects, .. }, job)) if *redirects > 0 || job.is_said_by_provider() => {
                self.providers.may_lead_to(provider, &get.host(), ends)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn catalog_received(&mut self, now: Time, provider: ProviderId, data: &[u8]) {
        let Some(task) = self.catalogs.task(provider) else { return };
        match &mut task.connection {
            Some(Connection::Http { exchange, .. }) => {
                exchange.receive(data);
                self.catalog_exchange(now, provider);
            }
            Some(Connection::File { .. }) => self.catalog_read(now, provider, data),
            None => return,
        }
        self.catalog_rearm(now, provider);
    }

    /// Goes on with what came before, as far as others do not have to wait for it.
    fn catalog_go_on(&mut self, now: Time, provider: ProviderId) {
        let Some(task) = self.catalogs.task(provider) else { return };
        let rest = std::mem::take(&mut task.rest);
        self.catalog_unpack(now, provider, &rest);
        let Some(task) = self.catalogs.task(provider) else { return };
        match &task.connection {
            Some(Connection::Http { .. }) => self.catalog_exchange(now, provider),
            Some(Connection::File { .. }) if task.ended => self.catalog_file_ended(now, provider),
            Some(Connection::File { .. }) | None => {}
        }
        self.catalog_rearm(now, provider);
    }

    fn catalog_rearm(&mut self, now: Time, provider: ProviderId) {
        let Some(task) = self.catalogs.task(provider).filter(|task| task.connection.is_some()) else { return };
        // Not at once: a deadline that is over already is served again in the same turn.
        let at = if task.rest.is_empty() { (now + SILENCE).min(task.until) } else { now + Duration::from_micros(1) };
        self.catalogs.arm(provider, at);
    }

    fn catalog_file_ended(&mut self, now: Time, provider: ProviderId) {
        let Some(task) = self.catalogs.task(provider) else { return };
        task.ended = true;
        if task.rest.is_empty() {
            self.catalog_whole(now, provider);
        }
    }

    pub(super) fn catalog_eof(&mut self, now: Time, provider: ProviderId) {
        match self.catalogs.task(provider).and_then(|task| task.connection.as_mut()) {
            Some(Connection::Http { exchange, .. }) => {
                exchange.eof();
                self.catalog_exchange(now, provider);
            }
            Some(Connection::File { .. }) => self.catalog_file_ended(now, provider),
            None => {}
        }
    }

    fn catalog_exchange(&mut self, now: Time, provider: ProviderId) {
        loop {
            let task = self.catalogs.task(provider).filter(|task| task.rest.is_empty());
            let Some(Connection::Http { exchange, .. }) = task.and_then(|task| task.connection.as_mut()) else {
                return;
            };
            match exchange.poll() {
                None => return,
                Some(Event::Head(head)) => self.catalog_answered(now, provider, &head),
                Some(Event::Body(data)) => self.catalog_read(now, provider, &data),
                Some(Event::End) => self.catalog_whole(now, provider),
                Some(Event::Fault(fault)) => self.catalog_failed(now, provider, fault.to_string()),
            }
        }
    }

    fn catalog_answered(&mut self, now: Time, provider: ProviderId, head: &ResponseHead) {
        let task = self.catalogs.task(provider);
        let Some(Connection::Http { get, redirects, link, .. }) = task.and_then(|task| task.connection.as_ref()) else {
            return;
        };
        let (link, redirects) = (*link, *redirects);
        match (head.status, (**get).clone().follow(head)) {
            (200, _) => {}
            (300..=399, Ok(Some(get))) if redirects < REDIRECTS => {
                if let Err(forbidden) = self.providers.may_be(provider, get.url()) {
                    return self.catalog_failed(now, provider, forbidden.to_string());
                }
                self.drop_link(link);
                self.catalog_connect(now, provider, get, redirects + 1);
            }
            (300..=399, Ok(Some(_))) => {
                self.catalog_failed(now, provider, format!("it redirects more than {REDIRECTS} times"));
            }
            (_, Err(fault)) => self.catalog_failed(now, provider, fault.to_string()),
            (401 | 403, _) => {
                let why = format!("it answers {}: name and password may be wrong, see [[account]]", head.status);
                self.catalog_failed(now, provider, why);
            }
            (status, _) => self.catalog_failed(now, provider, format!("it answers {status}")),
        }
    }

    /// The next bytes of what is read.
    fn catalog_read(&mut self, now: Time, provider: ProviderId, data: &[u8]) {
        let (Some(task), Some(own)) = (self.catalogs.all.get_mut(provider.0 as usize), self.providers.get(provider))
        else {
            return;
        };
        let Some(Connection::Http { read, .. } | Connection::File { read, .. }) = &mut task.connection else { return };
        *read += data.len() as u64;
        if *read > own.settings.bytes {
            let why = String::from("it is larger than `bytes` of the provider allows");
            return self.catalog_failed(now, provider, why);
        }
        // A file is read on though nobody wants more of it yet.
        if task.rest.is_empty() { self.catalog_unpack(now, provider, data) } else { task.rest.extend_from_slice(data) }
    }

    /// Reads what came, as far as others do not have to wait for it; the rest is kept.
    fn catalog_unpack(&mut self, now: Time, provider: ProviderId, data: &[u8]) {
        let Server { catalogs, providers, catalog, .. } = self;
        let (Some(task), Some(own)) = (catalogs.all.get_mut(provider.0 as usize), providers.get(provider)) else {
            return;
        };
        let Some(job) = &mut task.job else { return };
        match job.push(data, &own.settings, &|kind, key| taken(providers, catalog, provider, kind, key)) {
            Ok(read) => task.rest.extend_from_slice(&data[read..]),
            Err(why) => self.catalog_failed(now, provider, why),
        }
    }

    /// What is read is there to its end.
    fn catalog_whole(&mut self, now: Time, provider: ProviderId) {
        let seconds = self.wall(now).as_secs();
        let Server { catalogs, providers, catalog, edge, .. } = self;
        let Some(task) = catalogs.all.get_mut(provider.0 as usize) else { return };
        let link = task.connection.take().map(|connection| connection.link());
        let (Some(job), Some(own)) = (&mut task.job, providers.get(provider)) else { return };
        let taken = |kind, key| taken(providers, catalog, provider, kind, key);
        let serves = |place| serves(edge, own, place);
        let (got, next) = job.finish(own, seconds, &taken, &serves);
        let secrets = own.secrets();
        link.into_iter().for_each(|link| self.drop_link(link));
        match got {
            read::Got::Nothing => {}
            read::Got::Catalogue(catalogue) => {
                let [live, films, _, series] = catalogue.counts;
                let (skipped, beyond, first) =
                    (catalogue.skipped, catalogue.beyond, first_skipped(&secrets, &catalogue));
                let note = Note::CatalogRead { provider, live, films, series, skipped, first, beyond };
                self.actions.push_back(Action::Note(note));
                if let Some(place) = self.providers.get(provider).and_then(|own| own.settings.reads_with()) {
                    self.panel_says(provider, place, Ok(catalogue.connections));
                }
                if let Some(own) = self.providers.get_mut(provider) {
                    own.read_anew(catalogue);
                }
                if let Some(task) = self.catalogs.task(provider) {
                    task.read = Some(now);
                    task.counts.reads += 1;
                }
            }
            read::Got::Login(place, said) => self.panel_says(provider, place, said),
            read::Got::Guide(programmes) => {
                if programmes.whole {
                    let (all, skipped) = (programmes.len() as u64, programmes.skipped);
                    self.actions.push_back(Action::Note(Note::GuideRead { provider, programmes: all, skipped }));
                }
                if let Some(own) = self.providers.get_mut(provider) {
                    own.programmes = programmes;
                }
            }
        }
        self.read_next(now, provider, next);
    }

    /// What a panel says of one of its accounts: no more connections are made than it allows, and who configured more, or has an
    /// account that it does not let in, is told before somebody wants to play.
    fn panel_says(&mut self, provider: ProviderId, place: usize, said: Result<Option<u32>, String>) {
        let Some(account) = self.providers.get(provider).map(|own| own.account(place)) else { return };
        let Some(task) = self.catalogs.task(provider) else { return };
        let before = task.logins.insert(place, said.clone());
        if before.as_ref() == Some(&said) {
            return;
        }
        match said {
            Ok(said) => {
                // A panel that never said anything says nothing new.
                if said.is_some() || before.is_some() {
                    self.inbox.push_back(Input::Allowed { account, connections: said.unwrap_or(0) });
                }
                let all = &self.edge().config().providers;
                let own = all.get(provider.0 as usize).and_then(|own| own.accounts.get(place));
                let configured = own.map_or(0, |own| own.max_connections);
                if let Some(allowed) = said.filter(|allowed| configured > *allowed) {
                    self.actions.push_back(Action::Note(Note::AccountOverstated { account, configured, allowed }));
                }
            }
            // What it allowed is held to until it says something else.
            Err(why) => self.actions.push_back(Action::Note(Note::AccountNotLetIn { account, why })),
        }
    }

    /// How many connections a panel says that it allows for an account of its own.
    pub(crate) fn allowed(&self, provider: ProviderId, account: AccountId) -> Option<u32> {
        let task = self.catalogs.all.get(provider.0 as usize)?;
        let place = account.0.checked_sub(self.providers.get(provider)?.account(0).0)?;
        task.logins.get(&(place as usize))?.as_ref().ok().copied().flatten()
    }

    /// The panel could not be asked of one of its accounts, which says nothing of the others, nor of its catalogue.
    fn login_failed(&mut self, now: Time, provider: ProviderId, place: usize, why: String) {
        self.panel_says(provider, place, Err(why));
        let seconds = self.wall(now).as_secs();
        let Server { catalogs, providers, edge, .. } = self;
        let Some((task, own)) = catalogs.task(provider).zip(providers.get(provider)) else { return };
        let link = task.connection.take().map(|connection| connection.link());
        task.rest = Vec::new();
        let Some(job) = &mut task.job else { return };
        let next = job.log_in(&own.settings, place + 1, seconds, &|place| serves(edge, own, place));
        link.into_iter().for_each(|link| self.drop_link(link));
        self.read_next(now, provider, next);
    }

    /// What is read of a provider cannot be had at present, or not to its end: what there is, is kept.
    pub(super) fn catalog_failed(&mut self, now: Time, provider: ProviderId, why: String) {
        let Some(task) = self.catalogs.task(provider) else { return };
        if let Some(place) = task.job.as_ref().and_then(|job| job.logs_in()) {
            return self.login_failed(now, provider, place, why);
        }
        let (job, connection) = (task.job.take(), task.connection.take());
        task.rest = Vec::new();
        task.failures = task.failures.saturating_add(1);
        let pause = RETRY.saturating_mul(1 << task.failures.min(10) >> 1);
        let refresh = self.providers.get(provider).map_or(WHOLE, |own| own.settings.refresh);
        // A guide that is missing does not make the catalogue worth to be asked for again and again.
        let pause =
            if job.as_ref().is_some_and(|job| job.is_guide()) { refresh } else { pause.min(RETRY_MOST).min(refresh) };
        self.catalogs.arm(provider, now + pause);
        connection.into_iter().for_each(|connection| self.drop_link(connection.link()));
        let (catalogue, programmes, whole) = self.providers.get(provider).map_or((0, 0, false), |own| {
            (u64::from(own.catalogue.len()), own.programmes.len() as u64, own.programmes.whole)
        });
        let (what, left) = match job.filter(|job| job.is_guide()) {
            Some(_) if programmes > 0 && !whole => ("guide", Left::Beginning(programmes)),
            Some(_) if programmes > 0 => ("guide", Left::Former(programmes)),
            None if catalogue > 0 => ("catalogue", Left::Former(catalogue)),
            Some(_) => ("guide", Left::Nothing),
            None => ("catalogue", Left::Nothing),
        };
        let why = format!("the {what}: {why}");
        let Some(task) = self.catalogs.task(provider) else { return };
        task.counts.faults += 1;
        // What goes on as it was is told once.
        if task.fault.as_ref() != Some(&why) {
            task.fault = Some(why.clone());
            self.actions.push_back(Action::Note(Note::CatalogFault { provider, why, left }));
        }
    }
}

/// What an operator is told of the first entry that could not be used.
fn first_skipped(secrets: &providers::Secrets, catalogue: &providers::store::Catalogue) -> String {
    match &catalogue.first_skipped {
        first if secrets.are_told_by(first) => String::from("its name holds a login"),
        first => first.clone(),
    }
}

/// Whether the account of a provider at this place is used.
fn serves(edge: &Recorded, own: &providers::Provider, place: usize) -> bool {
    edge.edge().accounts().account(own.account(place)).is_some_and(|state| state.serves)
}

/// Whether an id that clients know belongs to something else: in another provider's catalogue, or to a channel of our own.
fn taken(
    providers: &providers::Providers,
    catalog: &crate::catalog::Catalog,
    provider: ProviderId,
    kind: providers::Kind,
    key: u64,
) -> bool {
    let id = providers::store::id_of(key);
    let others = providers.iter().filter(|(own, _)| *own != provider);
    kind == providers::Kind::Live && catalog.get(id).is_some()
        || others.into_iter().any(|(_, own)| own.catalogue.by_id(kind, id).is_some_and(|own| own != key))
}
