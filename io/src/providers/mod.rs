//! What providers have: catalogues that are read in the background, and where what is in them is fetched.
//!
//! | file | question it answers |
//! |---|---|
//! | `settings` | what is configured of a provider? |
//! | `store`, `index` | how is a catalogue kept, and something found in it? |
//! | `m3u` | what is in a list? |
//! | `xtream` | what does a panel answer? |
//! | `guide` | what is on when (XMLTV)? |
//! | `unpacking` | what is in what is gzipped? |
//! | `address` | where, and how, is something fetched with an account? |
//! | `form` | does a live stream of a panel come as MPEG-TS or as HLS? |
//! | `forbidden` | from where is nothing fetched? |
//! | `episode` | which episode of which panel is meant, and of which series is it? |
//! | `secrets` | does an address tell with what its provider is asked? |
//! | `nearby` | what in a list would be refused? |
//! | `library` | what may a user see of all of them? |

mod address;
pub(crate) use address::panel as panel_base;
mod episode;
mod forbidden;
mod form;
pub(crate) mod guide;
mod index;
pub(crate) mod library;
pub(crate) mod m3u;
mod nearby;
mod secrets;
mod settings;
pub(crate) mod store;
pub(crate) mod unpacking;
pub(crate) mod xtream;

use std::sync::Arc;

use holdfast_core::input::{AccountId, ProviderId, TitleId};
use url::Url;

use crate::http::FieldValue;
use crate::http::field::FieldName;
pub use episode::Belonging;
pub(crate) use episode::Episode;
use episode::OfSeries;
pub(crate) use forbidden::{Ends, Forbidden, Listeners};
pub(crate) use form::Form;
use form::Forms;
use guide::Programmes;
pub use nearby::near_entries;
pub(crate) use secrets::Secrets;
pub use settings::{Credentials, Dialect, Guide, Location, Output, ProviderSettings, Reach, account_name};

use store::Catalogue;

/// What a title is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Kind {
    /// A live stream.
    Live,
    /// A film.
    Film,
    /// An episode of a series.
    Episode,
    /// A series. It cannot be played itself.
    Series,
}

impl Kind {
    pub const COUNT: usize = 4;
    pub const ALL: [Kind; Kind::COUNT] = [Kind::Live, Kind::Film, Kind::Episode, Kind::Series];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Live => "live",
            Kind::Film => "film",
            Kind::Episode => "episode",
            Kind::Series => "series",
        }
    }
}

/// A title, as far as playing it needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Title {
    pub title: TitleId,
    pub kind: Kind,
    pub name: String,
    /// What its address ends in: `ts`, `m3u8`, `mpd`, `mp4`; empty where that is not known.
    pub extension: String,
}

/// What of a title is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The stream or the file.
    Whole,
    /// A live stream as a playlist (HLS).
    Playlist,
    /// What a live stream was: from then on, in seconds since 1970, for so many minutes; as a playlist or as a stream.
    Archive { start: u64, minutes: u32, playlist: bool },
}

/// One of the places where a title is had, as its catalogue had it when somebody asked: one that is read anew meanwhile changes
/// nothing of it. Holds secrets: not for logs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// Whose it is.
    pub provider: ProviderId,
    kind: Kind,
    /// Its address; of a panel's its id there.
    url: String,
    extension: String,
    /// In which way what it was can be had, and the template of that.
    catchup: [String; 2],
    /// For how many days; 0 = not said.
    days: u32,
    /// Fields of requests for it, a line each.
    fields: String,
}

/// Where, and with which fields, a part of a title is fetched with an account. Holds secrets: not for logs.
#[derive(Clone)]
pub(crate) struct Address {
    pub url: Url,
    /// `User-Agent`, `Referer` and what else the catalogue says.
    pub fields: Vec<(FieldName, FieldValue)>,
}

/// All providers' catalogues, in the order of the configuration.
#[derive(Default)]
pub(crate) struct Providers {
    all: Vec<Provider>,
    of_series: OfSeries,
    /// Seconds since 1970: some addresses bear the time.
    pub clock: u64,
    /// Where this server itself listens.
    pub listeners: Listeners,
}

/// One provider with what it has at present.
pub(crate) struct Provider {
    pub settings: ProviderSettings,
    pub catalogue: Arc<Catalogue>,
    pub programmes: Arc<Programmes>,
    /// How its live streams come, as far as that showed.
    forms: Forms,
    /// The first of its accounts.
    first: u32,
    /// Which of the panels it is; a list is none.
    panel: Option<u32>,
}

/// Where a title is.
#[derive(Clone, Copy)]
enum Place {
    /// In a provider's catalogue.
    Entry(usize, u32),
    /// An episode of a provider's panel, by its id there.
    Episode(usize, Episode),
}

impl Providers {
    /// Providers of which nothing is known yet.
    pub fn new(settings: &[ProviderSettings]) -> Self {
        let (mut first, mut panels) = (0, 0);
        let all = settings
            .iter()
            .map(|own| {
                let panel = (own.dialect.at(&own.location) == Dialect::Xtream).then_some(panels);
                panels += u32::from(panel.is_some());
                let provider = Provider {
                    settings: own.clone(),
                    catalogue: Arc::default(),
                    programmes: Arc::default(),
                    forms: Forms::default(),
                    first,
                    panel,
                };
                first += own.accounts.len() as u32;
                provider
            })
            .collect();
        Providers { all, of_series: OfSeries::default(), clock: 0, listeners: Listeners::default() }
    }

    pub fn get(&self, provider: ProviderId) -> Option<&Provider> {
        self.all.get(provider.0 as usize)
    }

    pub fn get_mut(&mut self, provider: ProviderId) -> Option<&mut Provider> {
        self.all.get_mut(provider.0 as usize)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ProviderId, &Provider)> {
        self.all.iter().enumerate().map(|(place, own)| (ProviderId(place as u32), own))
    }

    /// The title that addresses of this server name so: `/movie/{user}/{password}/{id}.mp4`.
    pub fn find(&self, kind: Kind, id: u32) -> Option<Title> {
        if kind == Kind::Episode
            && let Some(episode) = Episode::of(id)
        {
            self.of_panel(episode.panel)?;
            let (title, extension) = (episode.title(), episode.extension().to_owned());
            return Some(Title { title, kind, name: format!("episode {}", episode.id), extension });
        }
        let key = self.all.iter().find_map(|provider| provider.catalogue.by_id(kind, id))?;
        let title = TitleId(key);
        let Place::Entry(provider, place) = self.places(title).next()? else { return None };
        let (provider, entry) = (&self.all[provider], self.all[provider].catalogue.get(place));
        let extension = provider.extension(kind, title, entry.extension).to_owned();
        Some(Title { title, kind, name: entry.name.to_owned(), extension })
    }

    /// What lists know it by, as addresses of this server name it.
    pub fn client_id(title: TitleId) -> u32 {
        Episode::of_title(title).map_or_else(|| store::id_of(title.0), Episode::client_id)
    }

    /// What people call it; `None` if it is not there any more.
    pub fn name(&self, title: TitleId) -> Option<String> {
        Some(match self.places(title).next()? {
            Place::Entry(provider, place) => self.all[provider].catalogue.get(place).name.to_owned(),
            Place::Episode(_, episode) => format!("episode {}", episode.id),
        })
    }

    /// Where it can be had, the preferred provider first.
    pub fn sources(&self, title: TitleId) -> Vec<Source> {
        self.places(title).map(|place| self.source(title, place)).collect()
    }

    /// Whether it is a live stream that is had as HLS, for all that is known.
    pub fn is_hls(&self, title: TitleId) -> bool {
        let first = self.places(title).next().map(|place| self.source(title, place));
        first.is_some_and(|source| source.kind == Kind::Live && source.extension == "m3u8")
    }

    /// For how many days what a live stream was can be had, wherever that is longest; `None` where it is not said of each place.
    pub fn archived_days(&self, title: TitleId) -> Option<u32> {
        let days = self.sources(title).into_iter().map(|source| Some(source.days).filter(|days| *days > 0));
        days.collect::<Option<Vec<u32>>>()?.into_iter().max()
    }

    fn source(&self, title: TitleId, place: Place) -> Source {
        match place {
            Place::Entry(provider, place) => {
                let own = &self.all[provider];
                let (kind, entry) = (own.catalogue.kind(place), own.catalogue.get(place));
                let [url, _] = own.catalogue.addresses(place);
                Source {
                    provider: ProviderId(provider as u32),
                    kind,
                    url,
                    extension: own.extension(kind, title, entry.extension).to_owned(),
                    catchup: [entry.catchup, entry.catchup_source].map(str::to_owned),
                    days: entry.days,
                    fields: entry.fields.to_owned(),
                }
            }
            Place::Episode(provider, episode) => Source {
                provider: ProviderId(provider as u32),
                kind: Kind::Episode,
                url: episode.id.to_string(),
                extension: episode.extension().to_owned(),
                catchup: Default::default(),
                days: 0,
                fields: String::new(),
            },
        }
    }

    /// A panel said that an episode of its own is one of this series. Whether that is news.
    pub fn learn(&mut self, episode: Episode, series: TitleId) -> bool {
        self.of_series.learn(episode, series)
    }

    /// What panels said when the program ran last.
    pub fn recall(&mut self, belongings: &[Belonging]) {
        for Belonging { provider, episode, series } in belongings {
            let own = self.all.iter().find(|own| own.settings.name == *provider);
            if let Some(episode) = own.and_then(|own| own.episode(u64::from(*episode), "")) {
                self.of_series.learn(episode, *series);
            }
        }
    }

    /// Whether it is an episode of which nobody said yet of which series it is.
    pub fn is_stray(&self, title: TitleId) -> bool {
        Episode::of_title(title).is_some_and(|episode| self.of_series.get(episode).is_none())
    }

    /// Whether it is in one of these groups somewhere; none = all. An episode of a panel is where its series is, and nowhere as
    /// long as nobody ever asked the panel for the series: what it is known by does not say.
    pub fn permits(&self, title: TitleId, groups: &[String]) -> bool {
        groups.is_empty()
            || self.places(title).any(|place| match place {
                Place::Entry(provider, place) => {
                    let group = self.all[provider].catalogue.get(place).group;
                    groups.iter().any(|own| own == group)
                }
                Place::Episode(_, episode) => {
                    self.of_series.get(episode).is_some_and(|series| self.permits(series, groups))
                }
            })
    }

    /// Where a part of it is fetched from a source with an account of that provider's; `None` if it has no such account, or
    /// no such part. Whether that is gone to is asked [for itself](Providers::may_be).
    pub fn address(&self, source: &Source, account: AccountId, part: Part) -> Option<Address> {
        let provider = self.get(source.provider)?;
        let account = account.0.checked_sub(provider.first)? as usize;
        let credentials = provider.settings.accounts.get(account)?.as_ref();
        let url = address::url(provider, source, credentials, part, self.clock)?;
        Some(Address { url, fields: address::fields(&provider.settings, &source.fields) })
    }

    /// Whether whatever is fetched for a provider may come from this host, which led there.
    ///
    /// # Errors
    /// Why not.
    pub fn may_lead_to(&self, provider: ProviderId, host: &str, ends: Ends) -> Result<(), Forbidden> {
        let address = ends.peer.ip().to_canonical();
        let is_said = host.parse::<std::net::IpAddr>().is_ok_and(|said| said.to_canonical() == address);
        let shown = || if is_said { host.to_owned() } else { format!("{host} ({address})") };
        if Reach::to(address) > self.reach(provider) {
            return Err(Forbidden::Near(shown()));
        }
        if self.listeners.are_at(ends) { Err(Forbidden::Own(shown(), ends.peer.port())) } else { Ok(()) }
    }

    /// Whether whatever is fetched for a provider may be at this address, as far as that shows in its words.
    ///
    /// # Errors
    /// Why not.
    pub fn may_be(&self, provider: ProviderId, url: &Url) -> Result<(), Forbidden> {
        let host = || url.host_str().unwrap_or_default().to_owned();
        if Reach::to_url(url) > self.reach(provider) {
            return Err(Forbidden::Near(host()));
        }
        self.listeners.port_in(url).map_or(Ok(()), |port| Err(Forbidden::Own(host(), port)))
    }

    fn reach(&self, provider: ProviderId) -> Reach {
        self.get(provider).map_or(Reach::Public, |own| own.settings.reach)
    }

    fn of_panel(&self, panel: u32) -> Option<usize> {
        self.all.iter().position(|own| own.panel == Some(panel))
    }

    /// Where a title is, the preferred provider first. Live streams that are MPEG-TS somewhere are not looked for where they are
    /// something else.
    fn places(&self, title: TitleId) -> impl Iterator<Item = Place> + use<'_> {
        let episode = Episode::of_title(title);
        let episode = episode.and_then(|own| Some(Place::Episode(self.of_panel(own.panel)?, own)));
        let all = move || {
            let key = title.0;
            self.all.iter().enumerate().flat_map(move |(provider, own)| {
                let kind = own.catalogue.kind_of(key);
                kind.into_iter()
                    .flat_map(move |kind| own.catalogue.find(kind, key).map(move |place| (provider, kind, place)))
            })
        };
        let is_ts = move |provider: usize, place: u32| {
            let own = &self.all[provider];
            !matches!(own.extension(Kind::Live, title, own.catalogue.get(place).extension), "m3u8" | "mpd")
        };
        let any_ts =
            episode.is_none() && all().any(|(provider, kind, place)| kind == Kind::Live && is_ts(provider, place));
        let entries =
            all().filter(move |(provider, kind, place)| *kind != Kind::Live || !any_ts || is_ts(*provider, *place));
        episode.into_iter().chain(entries.map(|(provider, _, place)| Place::Entry(provider, place)))
    }
}

impl Provider {
    /// What addresses of an entry end in.
    fn extension<'e>(&self, kind: Kind, title: TitleId, own: &'e str) -> &'e str {
        match self.live() {
            Some(live) if kind == Kind::Live => live.of(title).extension(),
            _ => own,
        }
    }

    /// How its live streams are asked for; `None` where its list says that of each.
    fn live(&self) -> Option<Forms> {
        self.panel?;
        Some(match self.settings.output {
            Output::Ts => Forms::all(Form::Ts),
            Output::M3u8 => Forms::all(Form::Hls),
            Output::Auto => self.forms.beginning(self.first_form()),
        })
    }

    fn first_form(&self) -> Form {
        if self.catalogue.formats == [false, true] { Form::Hls } else { Form::Ts }
    }

    /// Whether its live streams may come in either form.
    fn is_open(&self) -> bool {
        self.is_panel() && self.settings.output == Output::Auto && self.catalogue.formats == [true, true]
    }

    /// A live stream came so. The form in which all are asked for from here on, if that changed.
    pub fn came(&mut self, title: TitleId, form: Form) -> Option<Form> {
        if self.is_open() { self.forms.came(title, form) } else { None }
    }

    /// A live stream did not come so. Whether it is asked for in the other form from here on.
    pub fn failed(&mut self, title: TitleId, form: Form) -> bool {
        self.is_open() && self.forms.failed(title, form)
    }

    /// The form in which its live streams are asked for, but for those that came in the other one; `None` where its list says that.
    pub fn form(&self) -> Option<Form> {
        Some(self.live()?.common())
    }

    /// Its catalogue was read anew.
    pub fn read_anew(&mut self, catalogue: Arc<Catalogue>) {
        self.catalogue = catalogue;
        self.forms.look_again();
    }

    /// The account at this place among its own, counted from 0.
    pub fn account(&self, place: usize) -> AccountId {
        AccountId(self.first.saturating_add(place as u32))
    }

    /// An episode of its panel's, as clients know it.
    pub fn episode(&self, id: u64, extension: &str) -> Option<Episode> {
        Episode::new(self.panel?, id, extension)
    }

    /// What must not be told of its accounts.
    pub fn secrets(&self) -> Secrets {
        Secrets::of(&self.settings)
    }

    pub fn is_panel(&self) -> bool {
        self.panel.is_some()
    }
}

#[cfg(test)]
mod tests;
