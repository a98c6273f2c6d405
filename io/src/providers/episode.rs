//! Episodes of panels. Their series are read only when somebody looks at them, so what an episode is known by says where it is; of
//! which series it is, is known once its panel said so.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use holdfast_core::input::TitleId;

use crate::library;

/// An episode of a panel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Episode {
    /// Which of the panels.
    pub panel: u32,
    /// Which of [`EXTENSIONS`].
    extension: u32,
    /// What it is called at its panel.
    pub id: u32,
}

/// What episodes of panels end in; the first is meant by whatever is none of them.
const EXTENSIONS: [&str; 4] = ["mp4", "mkv", "avi", "ts"];
/// What ids of these episodes have and no other id of an episode out of a catalogue has.
const OF_PANEL: u32 = 1 << 30;
/// So many episodes are remembered with their series.
const KNOWN: usize = 1 << 17;

impl Episode {
    /// How many panels there may be whose episodes can be told apart.
    const PANELS: u32 = 8;
    /// The first id that a panel may not give: what clients would know it by belongs to titles of this machine.
    pub const IDS: u32 = (library::FIRST - OF_PANEL) >> 5;

    pub fn new(panel: u32, id: u64, extension: &str) -> Option<Episode> {
        let id = u32::try_from(id).ok().filter(|id| *id < Episode::IDS && panel < Episode::PANELS)?;
        let known = EXTENSIONS.iter().position(|known| *known == extension).unwrap_or(0);
        Some(Episode { panel, extension: known as u32, id })
    }

    /// What clients know it by.
    pub fn client_id(self) -> u32 {
        OF_PANEL | self.id << 5 | self.panel << 2 | self.extension
    }

    pub fn of(client_id: u32) -> Option<Episode> {
        (OF_PANEL..library::FIRST).contains(&client_id).then_some(Episode {
            panel: client_id >> 2 & 7,
            extension: client_id & 3,
            id: (client_id & !OF_PANEL) >> 5,
        })
    }

    pub fn title(self) -> TitleId {
        TitleId(u64::from(self.client_id()) << 1 | 1)
    }

    pub fn of_title(title: TitleId) -> Option<Episode> {
        if title.0 & 1 == 1 { Episode::of(u32::try_from(title.0 >> 1).ok()?) } else { None }
    }

    pub fn extension(self) -> &'static str {
        EXTENSIONS[self.extension as usize & 3]
    }
}

/// A panel said of which series an episode of its own is. Written down, it is a line: the title of the series, the episode's id at
/// its panel, the provider's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Belonging {
    /// The provider's name in the configuration.
    pub provider: String,
    /// What the episode is called at its panel.
    pub episode: u32,
    /// What the series is known by here, which follows from its name.
    pub series: TitleId,
}

impl fmt::Display for Belonging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Belonging { provider, episode, series: TitleId(series) } = self;
        write!(f, "{series:016x} {episode} {provider}")
    }
}

impl FromStr for Belonging {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().ok_or(());
        let series = TitleId(u64::from_str_radix(word()?, 16).map_err(drop)?);
        let episode = word()?.parse().map_err(drop)?;
        Ok(Belonging { provider: word()?.to_owned(), episode, series })
    }
}

/// Of which series episodes of panels are, as far as panels said so; the oldest word is forgotten first.
#[derive(Debug, Default)]
pub(super) struct OfSeries {
    /// By panel and id: what an episode ends in does not matter here.
    series: BTreeMap<(u32, u32), TitleId>,
    order: VecDeque<(u32, u32)>,
}

impl OfSeries {
    /// Whether that is news.
    pub fn learn(&mut self, episode: Episode, series: TitleId) -> bool {
        let key = (episode.panel, episode.id);
        let known = self.series.insert(key, series);
        if known.is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.series.remove(&oldest);
        }
        known != Some(series)
    }

    pub fn get(&self, episode: Episode) -> Option<TitleId> {
        self.series.get(&(episode.panel, episode.id)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_episode_is_known_by_what_belongs_to_this_machine() {
        let last = Episode::new(Episode::PANELS - 1, u64::from(Episode::IDS) - 1, "ts").unwrap();
        assert_eq!(last.client_id() + 1, library::FIRST);
        assert_eq!(Episode::of(last.client_id()), Some(last));
        assert_eq!(Episode::new(0, u64::from(Episode::IDS), "mp4"), None);
        assert_eq!([library::FIRST, u32::MAX, OF_PANEL - 1].map(Episode::of), [None; 3]);
    }

    #[test]
    fn what_is_written_down_is_read_again_and_nothing_else() {
        let own = Belonging { provider: "tv.2".into(), episode: 4711, series: TitleId(0xfedc_ba98_0000_0002) };
        assert_eq!(own.to_string(), "fedcba9800000002 4711 tv.2");
        assert_eq!(own.to_string().parse(), Ok(own));
        for wrong in ["", "fedc", "fedc 1", "x 1 tv", "1 x tv", "1 4294967296 tv", "11112222333344445 1 tv"] {
            assert_eq!(wrong.parse::<Belonging>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn so_many_are_remembered_and_the_oldest_goes_first() {
        let mut known = OfSeries::default();
        let episode = |id: usize, extension| Episode::new(1, id as u64, extension).unwrap();
        for id in 0..=KNOWN {
            let news =
                [("mp4", 2), ("avi", 2), ("mkv", 4)].map(|(ends, of)| known.learn(episode(id, ends), TitleId(of)));
            assert_eq!(news, [true, false, true]);
        }
        assert_eq!((known.get(episode(0, "mp4")), known.series.len(), known.order.len()), (None, KNOWN, KNOWN));
        assert_eq!(known.get(episode(1, "avi")), Some(TitleId(4)), "the last word counts");
        assert_eq!(known.get(Episode::new(2, 1, "mp4").unwrap()), None);
    }
}
