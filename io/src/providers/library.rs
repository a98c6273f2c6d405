//! What a user may see of all catalogues: each title once, in the order of the providers and of their lists. It holds on to the
//! catalogues that there were when it was made, so that a list that takes long is a whole one.

use std::collections::HashSet;
use std::sync::Arc;

use holdfast_core::input::TitleId;

use super::form::Forms;
use super::guide::{Programme, Programmes};
use super::store::{Catalogue, Entry, id_of};
use super::{Kind, Provider, Providers, Secrets};

/// How many entries are looked at before others are served, whatever becomes of those that are found.
const LOOKED_AT: u32 = 10_000;

/// All that a user may see.
pub(crate) struct Library {
    shelves: Vec<Shelf>,
}

/// What is there of one provider.
struct Shelf {
    catalogue: Arc<Catalogue>,
    programmes: Arc<Programmes>,
    secrets: Secrets,
    /// Which of its groups may be seen.
    permitted: Vec<bool>,
    /// How live streams of a panel's come.
    live: Option<Forms>,
}

/// Where one stands in a library.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    shelf: usize,
    place: u32,
    /// How many titles there were before.
    pub count: usize,
    /// How many entries were looked at since others were served.
    looked_at: u32,
}

/// A title of a library.
pub(crate) struct Item<'a> {
    shelf: usize,
    place: u32,
    pub kind: Kind,
    pub key: u64,
    /// What clients know it by.
    pub id: u32,
    pub entry: Entry<'a>,
    pub extension: &'a str,
}

/// What a step through a library comes to.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is got")]
pub(crate) enum Step<'a> {
    Item(Item<'a>),
    /// Others are to be served before it goes on.
    Pause,
    End,
}

/// What clients know a group by.
pub(crate) fn category_of(name: &str) -> u32 {
    // The first few are those of our own channels.
    (id_of(super::store::key_of(Kind::Series, name)) | 1 << 8).max(16)
}

impl Library {
    /// What may be seen of it by who may see these groups; none = all.
    pub fn new(providers: &Providers, groups: &[String]) -> Self {
        let shelf = |own: &Provider| Shelf {
            permitted: own
                .catalogue
                .groups()
                .iter()
                .map(|group| groups.is_empty() || groups.contains(&group.name))
                .collect(),
            catalogue: own.catalogue.clone(),
            programmes: own.programmes.clone(),
            secrets: own.secrets(),
            live: own.live(),
        };
        Library { shelves: providers.iter().map(|(_, own)| shelf(own)).collect() }
    }

    /// The groups that have something of a kind, each once: what clients know them by, and their names.
    pub fn categories(&self, kind: Kind) -> Vec<(u32, &str)> {
        let mut seen = HashSet::new();
        let groups = self.shelves.iter().flat_map(|shelf| shelf.catalogue.groups().iter().zip(&shelf.permitted));
        groups
            .filter(|(group, permitted)| **permitted && group.counts[kind as usize] > 0)
            .filter(|(group, _)| seen.insert(&group.name))
            .map(|(group, _)| (category_of(&group.name), shown(&group.name)))
            .collect()
    }

    /// The next title of one of these kinds.
    pub fn next(&self, cursor: &mut Cursor, kinds: &[Kind]) -> Step<'_> {
        while let Some(shelf) = self.shelves.get(cursor.shelf) {
            if cursor.place >= shelf.catalogue.len() {
                (cursor.shelf, cursor.place) = (cursor.shelf + 1, 0);
                continue;
            }
            if cursor.looked_at == LOOKED_AT {
                cursor.looked_at = 0;
                return Step::Pause;
            }
            cursor.looked_at += 1;
            let place = cursor.place;
            cursor.place += 1;
            if kinds.contains(&shelf.catalogue.kind(place))
                && let Some(item) = self.item(cursor.shelf, place)
            {
                cursor.count += 1;
                return Step::Item(item);
            }
        }
        Step::End
    }

    /// The title at a place, unless it is seen elsewhere already or may not be seen.
    fn item(&self, at: usize, place: u32) -> Option<Item<'_>> {
        let (kind, key) = (self.shelves[at].catalogue.kind(place), self.shelves[at].catalogue.key_at(place));
        (self.first(kind, key)? == (at, place)).then(|| self.get(at, place, key))
    }

    /// Where a title is seen first.
    fn first(&self, kind: Kind, key: u64) -> Option<(usize, u32)> {
        self.shelves.iter().enumerate().find_map(|(at, shelf)| {
            let place = shelf.catalogue.find(kind, key).next()?;
            shelf.permitted.get(shelf.catalogue.group(place) as usize)?.then_some((at, place))
        })
    }

    fn get(&self, shelf: usize, place: u32, key: u64) -> Item<'_> {
        let own = &self.shelves[shelf];
        let (kind, entry) = (own.catalogue.kind(place), own.catalogue.get(place));
        let extension = match &own.live {
            Some(live) if kind == Kind::Live => live.of(TitleId(key)).extension(),
            _ if matches!(kind, Kind::Film | Kind::Episode) && entry.extension.is_empty() => "mp4",
            _ => entry.extension,
        };
        Item { shelf, place, kind, key, id: id_of(key), entry, extension }
    }

    /// What clients know by an id, if it may be seen.
    pub fn find(&self, kind: Kind, id: u32) -> Option<Item<'_>> {
        self.by_key(kind, self.shelves.iter().find_map(|shelf| shelf.catalogue.by_id(kind, id))?)
    }

    /// The title of this key, if it may be seen.
    pub fn by_key(&self, kind: Kind, key: u64) -> Option<Item<'_>> {
        let (shelf, place) = self.first(kind, key)?;
        Some(self.get(shelf, place, key))
    }

    /// The address of a title's picture; empty where there is none, or where it would tell with what its provider is asked.
    pub fn logo(&self, item: &Item<'_>) -> String {
        let own = &self.shelves[item.shelf];
        let [_, logo] = own.catalogue.addresses(item.place);
        if own.secrets.are_told_by(&logo) { String::new() } else { logo }
    }

    /// The episodes of a series out of a list.
    pub fn episodes(&self, series: &Item<'_>) -> Vec<Item<'_>> {
        let own = &self.shelves[series.shelf];
        let all = own.catalogue.episodes(series.place);
        let mut all: Vec<Item<'_>> =
            all.map(|place| self.get(series.shelf, place, own.catalogue.key_at(place))).collect();
        all.sort_by_key(|item| item.entry.episode.map(|(_, season, number)| (season, number)));
        all.dedup_by_key(|item| item.id);
        all
    }

    /// Whether a series is one of a panel's, whose episodes have to be asked for.
    pub fn is_asked_for(&self, series: &Item<'_>) -> bool {
        self.shelves[series.shelf].catalogue.is_panel
    }

    /// What is on at a live stream.
    pub fn programmes<'a>(&'a self, item: &Item<'_>) -> impl Iterator<Item = (Programme, &'a str)> + use<'a> {
        // Another provider's guide may know it though its own does not.
        let own = self.shelves[item.shelf].programmes.of(item.entry.guide);
        let mut own = own.peekable();
        let others = own.peek().is_none();
        let guide = item.entry.guide.to_owned();
        let of_others = others
            .then(|| self.shelves.iter().flat_map(move |shelf| shelf.programmes.of(&guide)))
            .into_iter()
            .flatten();
        own.chain(of_others.take(1000))
    }
}

impl Item<'_> {
    /// What it is one of.
    pub fn group(&self) -> &str {
        shown(self.entry.group)
    }

    pub fn category(&self) -> u32 {
        category_of(self.entry.group)
    }
}

fn shown(group: &str) -> &str {
    if group.is_empty() { "Other" } else { group }
}
