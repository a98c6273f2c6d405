//! One reading of a provider: its catalogue, in one answer or several, what its panel says of the other accounts, then its guide.

use std::sync::Arc;

use url::Url;

use crate::providers::guide::{self, Programmes};
use crate::providers::store::{Catalogue, Context, GuideIds};
use crate::providers::unpacking::Unpacking;
use crate::providers::xtream::{self, Step};
use crate::providers::{Credentials, Dialect, Guide, Kind, Location, Provider, ProviderSettings, Secrets, m3u};

/// What is being read.
pub(super) struct Job {
    stage: Stage,
    catalogue: Catalogue,
    /// Of lists and of what panels answer; guides do this themselves.
    unpacking: Unpacking,
    /// How many bytes of the present answer there are, unpacked.
    unpacked: u64,
    /// Whether where it is was said by the provider and not by the operator.
    said_by_provider: bool,
    /// Of the catalogue that was read, and what of its guide is wanted.
    read: Option<(Arc<Catalogue>, GuideIds)>,
}

enum Stage {
    List(m3u::Reader),
    Panel(usize, xtream::Reader),
    /// The panel is asked of the account at this place, which is not the one that it is read with.
    Login(usize, xtream::Reader),
    Guide(Option<Box<guide::Reader>>),
}

/// What has become whole.
pub(super) enum Got {
    Nothing,
    Catalogue(Arc<Catalogue>),
    /// What the panel said of the account at this place: how many connections it allows, or why that is not let in.
    Login(usize, Result<Option<u32>, String>),
    Guide(Arc<Programmes>),
}

/// What comes next.
pub(super) enum Next {
    Read(Location),
    Done,
    Failed(String),
}

impl Job {
    pub fn new(settings: &ProviderSettings) -> (Job, Next) {
        let is_panel = settings.dialect.at(&settings.location) == Dialect::Xtream;
        let mut catalogue = Catalogue::default();
        catalogue.is_panel = is_panel;
        let (stage, next) = if is_panel {
            (Stage::Panel(0, xtream::Reader::default()), question(settings, Step::ALL[0].action(), None))
        } else {
            (Stage::List(m3u::Reader::default()), Next::Read(settings.location.clone()))
        };
        (
            Job { stage, catalogue, unpacking: Unpacking::default(), unpacked: 0, said_by_provider: false, read: None },
            next,
        )
    }

    pub fn is_guide(&self) -> bool {
        matches!(self.stage, Stage::Guide(_))
    }

    /// The place of the account of which the panel is asked.
    pub fn logs_in(&self) -> Option<usize> {
        match self.stage {
            Stage::Login(place, _) => Some(place),
            _ => None,
        }
    }

    pub fn is_said_by_provider(&self) -> bool {
        self.said_by_provider
    }

    /// The next bytes; how many of them were taken. The others are to come once more, after others had their turn.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn push(
        &mut self,
        data: &[u8],
        settings: &ProviderSettings,
        taken: &dyn Fn(Kind, u64) -> bool,
    ) -> Result<usize, String> {
        match &mut self.stage {
            Stage::Guide(Some(reader)) => return reader.push(data).map_err(str::to_owned),
            Stage::Guide(None) => return Ok(data.len()),
            Stage::List(_) | Stage::Panel(..) | Stage::Login(..) => {}
        }
        let mut unpacking = std::mem::take(&mut self.unpacking);
        let done = unpacking.push(data, |plain| self.plain(plain, settings, taken));
        self.unpacking = unpacking;
        done
    }

    fn plain(
        &mut self,
        data: &[u8],
        settings: &ProviderSettings,
        taken: &dyn Fn(Kind, u64) -> bool,
    ) -> Result<(), String> {
        let cx = Context { taken, groups: &settings.groups, entries: settings.entries };
        self.unpacked += data.len() as u64;
        // As much as guides may become.
        if self.unpacked > settings.bytes.saturating_mul(8) {
            return Err(String::from("unpacked it is larger than `bytes` of the provider allows"));
        }
        match &mut self.stage {
            Stage::List(reader) => {
                reader.push(data, &mut self.catalogue, &cx);
                reader.wrong.map_or(Ok(()), |wrong| Err(no_list(wrong)))
            }
            Stage::Panel(step, reader) => {
                reader.push(Step::ALL[*step], data, &mut self.catalogue, &cx);
                Ok(())
            }
            Stage::Login(_, reader) => {
                reader.push(Step::ALL[0], data, &mut self.catalogue, &cx);
                Ok(())
            }
            Stage::Guide(_) => Ok(()),
        }
    }

    /// There is no more of it. `serves` says which accounts are used.
    pub fn finish(
        &mut self,
        own: &Provider,
        now: u64,
        taken: &dyn Fn(Kind, u64) -> bool,
        serves: &dyn Fn(usize) -> bool,
    ) -> (Got, Next) {
        let settings = &own.settings;
        let unpacking = std::mem::take(&mut self.unpacking);
        if let Err(why) = unpacking.finish(|plain| self.plain(plain, settings, taken)) {
            return (Got::Nothing, Next::Failed(why));
        }
        self.unpacked = 0;
        let cx = Context { taken, groups: &settings.groups, entries: settings.entries };
        match &mut self.stage {
            Stage::List(reader) => {
                reader.finish(&mut self.catalogue, &cx);
                if let Some(wrong) = reader.wrong {
                    return (Got::Nothing, Next::Failed(no_list(wrong)));
                }
            }
            Stage::Panel(step, reader) => {
                if let Err(why) = reader.finish(Step::ALL[*step], now, &mut self.catalogue) {
                    return (Got::Nothing, Next::Failed(why));
                }
                *step += 1;
                if let Some(next) = Step::ALL.get(*step) {
                    return (Got::Nothing, question(settings, next.action(), None));
                }
            }
            Stage::Login(place, reader) => {
                let (place, mut said) = (*place, Catalogue::default());
                let said = reader.finish(Step::ALL[0], now, &mut said).map(|()| said.connections);
                return (Got::Login(place, said), self.log_in(settings, place + 1, now, serves));
            }
            Stage::Guide(reader) => {
                let Some((programmes, done)) = reader.take().map(|reader| reader.finish()) else {
                    return (Got::Nothing, Next::Done);
                };
                let next = done.map_or_else(|why| Next::Failed(why.to_owned()), |()| Next::Done);
                // A part of it is better than nothing, or than what was a part too and is older; and worse than what was whole.
                let is_better = done.is_ok() || programmes.len() > 0 && !own.programmes.whole;
                return (if is_better { Got::Guide(Arc::new(programmes)) } else { Got::Nothing }, next);
            }
        }
        if self.catalogue.len() == 0 {
            let why = match (self.catalogue.unwanted, self.catalogue.beyond) {
                (0, 0) => String::from("there is nothing in it that can be played"),
                (0, beyond) => format!("all its {beyond} entries were left out: raise `entries` of the provider"),
                (unwanted, _) => format!(
                    "none of its {unwanted} entries is in one of `groups` of the provider: write these as it does, or none for all"
                ),
            };
            return (Got::Nothing, Next::Failed(why));
        }
        let mut catalogue = std::mem::take(&mut self.catalogue);
        let wanted = std::mem::take(&mut catalogue.guides);
        let catalogue = Arc::new(catalogue);
        self.read = Some((Arc::clone(&catalogue), wanted));
        (Got::Catalogue(catalogue), self.log_in(settings, 0, now, serves))
    }

    /// Asks a panel of its other accounts, from this place on, then for its guide.
    pub fn log_in(
        &mut self,
        settings: &ProviderSettings,
        from: usize,
        now: u64,
        serves: &dyn Fn(usize) -> bool,
    ) -> Next {
        let Some((catalogue, _)) = &self.read else { return Next::Done };
        let reader = settings.reads_with();
        let mut others = (from..settings.accounts.len()).filter(|place| Some(*place) != reader && serves(*place));
        let found = others.find_map(|place| Some((place, settings.accounts[place].as_ref()?)));
        if let Some((place, own)) = found.filter(|_| catalogue.is_panel)
            && let Some(url) = panel_url(settings, own, "player_api.php", &[])
        {
            (self.stage, self.unpacking) = (Stage::Login(place, xtream::Reader::default()), Unpacking::default());
            self.unpacked = 0;
            return Next::Read(Location::Http(url));
        }
        let Some((catalogue, wanted)) = self.read.take() else { return Next::Done };
        self.unpacking = Unpacking::default();
        self.guide(settings, &catalogue, wanted, now)
    }

    fn guide(&mut self, settings: &ProviderSettings, catalogue: &Catalogue, wanted: GuideIds, now: u64) -> Next {
        if wanted.is_empty() {
            return Next::Done;
        }
        let next = match &settings.guide {
            Guide::None => return Next::Done,
            Guide::At(location) => Next::Read(location.clone()),
            Guide::Auto if catalogue.is_panel => question(settings, None, Some("xmltv.php")),
            Guide::Auto => {
                self.said_by_provider = true;
                match catalogue.guide.as_deref().and_then(|url| Url::parse(url).ok()) {
                    Some(url) if matches!(url.scheme(), "http" | "https") => Next::Read(Location::Http(url)),
                    _ => return Next::Done,
                }
            }
        };
        self.stage =
            Stage::Guide(Some(Box::new(guide::Reader::new(wanted, now, settings.bytes, Secrets::of(settings)))));
        next
    }
}

fn no_list(what: &str) -> String {
    format!("what is there is {what} and no list (M3U)")
}

/// What a panel is asked.
fn question(settings: &ProviderSettings, action: Option<&str>, file: Option<&str>) -> Next {
    let query = [("action", action.unwrap_or_default())];
    let own = settings.reads_with().and_then(|place| settings.accounts.get(place)?.as_ref());
    let url = own.and_then(|own| panel_url(settings, own, file.unwrap_or("player_api.php"), &query));
    url.map_or_else(
        || Next::Failed(String::from("there is no account to log in with")),
        |url| Next::Read(Location::Http(url)),
    )
}

/// An address of a panel's, with the credentials of one of its accounts.
pub(super) fn panel_url(
    settings: &ProviderSettings,
    own: &Credentials,
    file: &str,
    query: &[(&str, &str)],
) -> Option<Url> {
    let base = crate::providers::panel_base(&settings.location)?;
    let mut url = Url::parse(&format!("{base}/{file}")).ok()?;
    url.query_pairs_mut()
        .append_pair("username", &own.username)
        .append_pair("password", &own.password)
        .extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
    Some(url)
}
