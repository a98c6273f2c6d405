//! One provider's catalogue, kept so that a million entries fit: records of varying length in a few large blocks, and a table
//! that finds them. Nothing in it is moved while it grows, so that no addition takes long.

use std::collections::{HashMap, HashSet};

use super::Kind;
use super::index::{Index, Slot};

/// How large a block of records is; no record is longer.
const BLOCK: usize = 1 << 20;
/// So many words are kept once each; whatever comes beyond that is kept with its record.
const WORDS: usize = 1 << 16;
/// No text of an entry is longer.
const TEXT: usize = 8 << 10;

/// An entry of a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub name: &'a str,
    /// What it is one of; empty where nobody says.
    pub group: &'a str,
    /// The address of its picture.
    pub logo: &'a str,
    /// What guides know it by.
    pub guide: &'a str,
    /// Where it is: a URL; of a panel's the id that it has there.
    pub address: &'a str,
    /// What its address ends in.
    pub extension: &'a str,
    /// Its place in the list as people count; 0 = not said.
    pub number: u32,
    /// When it was added, in seconds since 1970; 0 = not said.
    pub added: u64,
    /// For how many days what it was can be had; 0 = not said, or it cannot.
    pub days: u32,
    /// In which way: `append`, `shift`, `fs`, …
    pub catchup: &'a str,
    /// The template of that.
    pub catchup_source: &'a str,
    /// Fields of requests for it, a line each: `User-Agent: …`.
    pub fields: &'a str,
    /// What an operator of an Xtream panel says of it, as JSON: plot, rating and so on.
    pub more: &'a str,
    /// Of an episode: its series, season and number.
    pub episode: Option<(&'a str, u32, u32)>,
}

impl Entry<'_> {
    /// For how many days clients are told that what it was can be had: who says that it can and not for how long means some days.
    pub fn told_days(&self) -> u32 {
        if self.catchup.is_empty() { 0 } else { self.days.max(1) }
    }
}

/// The catalogue of one provider.
#[derive(Debug)]
pub(crate) struct Catalogue {
    blocks: Vec<Vec<u8>>,
    entries: Vec<u32>,
    /// The next episode of the same series, as its place and one more; 0 = none.
    next: Vec<u32>,
    /// Of series: the first and the last of their episodes, as in `next`.
    series: HashMap<u32, (u32, u32)>,
    kinds: Vec<Kind>,
    keys: Vec<u64>,
    index: Index,
    words: Words,
    groups: Groups,
    /// What guides know its live streams by, until its guide is read.
    pub guides: GuideIds,
    /// How many there are of each kind.
    pub counts: [u64; Kind::COUNT],
    /// How many could not be used.
    pub skipped: u64,
    /// The first of these, and why, in words without an address; empty where there is none.
    pub first_skipped: String,
    /// How many were left out because of `entries`.
    pub beyond: u64,
    /// How many were left out because of `groups`.
    pub unwanted: u64,
    /// Where the list says its guide is.
    pub guide: Option<String>,
    /// How far its panel's clock is ahead of UTC, in seconds.
    pub offset: i64,
    /// Whether its panel says that live streams come as MPEG-TS, and as HLS.
    pub formats: [bool; 2],
    /// How many connections its panel says that the account allows with which it is read; `None`: any number, or it does not say.
    pub connections: Option<u32>,
    /// Whether entries are named by their ids at a panel.
    pub is_panel: bool,
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue {
            blocks: Vec::new(),
            entries: Vec::new(),
            next: Vec::new(),
            series: HashMap::new(),
            kinds: Vec::new(),
            keys: Vec::new(),
            index: Index::default(),
            guides: GuideIds::default(),
            words: Words::default(),
            groups: Groups::default(),
            counts: [0; Kind::COUNT],
            skipped: 0,
            first_skipped: String::new(),
            beyond: 0,
            unwanted: 0,
            guide: None,
            offset: 0,
            // Nobody says that they do not.
            formats: [true; 2],
            connections: None,
            is_panel: false,
        }
    }
}

/// What a new entry is compared with.
pub(crate) struct Context<'c> {
    /// Whether an id of a kind is taken elsewhere by another key.
    pub taken: &'c dyn Fn(Kind, u64) -> bool,
    /// Which groups are taken; empty = all.
    pub groups: &'c [String],
    /// How many entries at most.
    pub entries: usize,
}

/// What became of a new entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    Yes,
    /// Its group is not wanted.
    Unwanted,
    /// It cannot be kept.
    Unusable,
    /// There are as many as there may be.
    Full,
}

impl Catalogue {
    /// An entry that is called so could not be used.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        if self.first_skipped.is_empty() {
            let name: String = name.chars().take(60).collect();
            self.first_skipped = if name.is_empty() { why.to_owned() } else { format!("\"{name}\": {why}") };
        }
    }

    /// Adds an entry, and with an episode its series.
    pub fn add(&mut self, cx: &Context<'_>, kind: Kind, entry: &Entry<'_>) -> Added {
        if !cx.groups.is_empty() && !cx.groups.iter().any(|group| group == entry.group) {
            self.unwanted += 1;
            return Added::Unwanted;
        }
        if self.entries.len() >= cx.entries.min(Slot::MOST) {
            self.beyond += 1;
            return Added::Full;
        }
        let texts = [
            entry.name,
            entry.group,
            entry.logo,
            entry.guide,
            entry.address,
            entry.catchup_source,
            entry.fields,
            entry.more,
            entry.episode.map_or("", |(series, ..)| series),
        ];
        if entry.name.is_empty() || texts.iter().any(|text| text.len() > TEXT) {
            let why = if entry.name.is_empty() { "it has no name" } else { "a text of it is longer than is taken" };
            self.skip(entry.name, why);
            return Added::Unusable;
        }
        let mut of_series = 0;
        if let Some((name, ..)) = entry.episode {
            let key = key_of(Kind::Series, name);
            let known = self.index.find(Kind::Series, key).next();
            of_series = match known {
                Some(place) => place + 1,
                None => {
                    let own =
                        Entry { name, group: entry.group, logo: entry.logo, added: entry.added, ..Entry::default() };
                    self.put(cx, Kind::Series, &own, 0) + 1
                }
            };
            if self.entries.len() >= cx.entries.min(Slot::MOST) {
                self.beyond += 1;
                return Added::Full;
            }
        }
        let place = self.put(cx, kind, entry, of_series);
        if let Some(series) = of_series.checked_sub(1) {
            let (first, last) = self.series.entry(series).or_default();
            match last.checked_sub(1) {
                Some(last) => self.next[last as usize] = place + 1,
                None => *first = place + 1,
            }
            *last = place + 1;
        }
        Added::Yes
    }

    fn put(&mut self, cx: &Context<'_>, kind: Kind, entry: &Entry<'_>, series: u32) -> u32 {
        let place = self.entries.len() as u32;
        let key = self.key(cx, kind, entry);
        let group = self.groups.of(entry.group);
        self.groups.all[group as usize].counts[kind as usize] += 1;
        self.counts[kind as usize] += 1;
        self.index.insert(Slot { key, kind, place });
        if kind == Kind::Live && !entry.guide.is_empty() {
            self.guides.insert(entry.guide);
        }
        let mut record = Vec::with_capacity(256);
        number(&mut record, u64::from(group));
        number(&mut record, u64::from(series));
        number(&mut record, u64::from(entry.number));
        number(&mut record, entry.added);
        number(&mut record, u64::from(entry.days));
        let (season, episode) = entry.episode.map_or((0, 0), |(_, season, episode)| (season, episode));
        number(&mut record, u64::from(season));
        number(&mut record, u64::from(episode));
        for text in [entry.name, entry.guide, entry.more] {
            number(&mut record, text.len() as u64);
            record.extend_from_slice(text.as_bytes());
        }
        // Of addresses what stands before the last part is much the same in all of them.
        for text in [entry.address, entry.logo] {
            let split = text.rfind('/').map_or(0, |at| at + 1);
            self.words.put(&mut record, &text[..split]);
            number(&mut record, (text.len() - split) as u64);
            record.extend_from_slice(&text.as_bytes()[split..]);
        }
        for text in [entry.extension, entry.catchup, entry.catchup_source, entry.fields] {
            self.words.put(&mut record, text);
        }
        if self.blocks.last().is_none_or(|block| block.len() + record.len() > BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let block = self.blocks.len() - 1;
        let at = block * BLOCK + self.blocks[block].len();
        self.blocks[block].extend_from_slice(&record);
        self.entries.push(u32::try_from(at).unwrap_or(u32::MAX));
        self.next.push(0);
        self.kinds.push(kind);
        self.keys.push(key);
        place
    }

    /// What an entry is known by: what is equally called is the same, at whatever provider. Of two in one list that are not of
    /// one group, or not in one format, the later one is known by its group as well.
    fn key(&self, cx: &Context<'_>, kind: Kind, entry: &Entry<'_>) -> u64 {
        let mut key = key_of(kind, entry.name);
        if let Some(first) = self.index.find(kind, key).next() {
            let first = self.get(first);
            if first.group != entry.group || first.extension != entry.extension {
                key = mixed(&[kind.as_str(), entry.name, entry.group, entry.extension]);
            }
        }
        // Clients have room for half of it only; two that are the same there must not be mistaken for one another.
        for salt in 0u8..64 {
            let mine = self.index.by_id(kind, id_of(key)).is_none_or(|own| own.key == key);
            if mine && !(cx.taken)(kind, key) {
                break;
            }
            key = mixed(&[kind.as_str(), entry.name, &char::from(salt + b'0').to_string()]);
        }
        key
    }

    /// How many entries there are, series among them.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub fn kind(&self, place: u32) -> Kind {
        self.kinds[place as usize]
    }

    /// The entry at a place; an empty one if there is none.
    pub fn get(&self, place: u32) -> Entry<'_> {
        let Some(&at) = self.entries.get(place as usize) else { return Entry::default() };
        let Some(block) = self.blocks.get(at as usize / BLOCK) else { return Entry::default() };
        let mut left = &block[at as usize % BLOCK..];
        let mut entry = Entry::default();
        let [group, series, number, added, days, season, episode] = std::array::from_fn(|_| take_number(&mut left));
        entry.group = self.groups.name(group as u32);
        (entry.number, entry.added, entry.days) = (number as u32, added, days as u32);
        if let Some(series) = (series as u32).checked_sub(1) {
            entry.episode = Some((self.get(series).name, season as u32, episode as u32));
        }
        [entry.name, entry.guide, entry.more] = std::array::from_fn(|_| take_text(&mut left));
        // Two pieces that follow one another only when they are put together; see `address` and `logo`.
        let [address, logo] = std::array::from_fn(|_| {
            let before = self.words.take(&mut left);
            (before, take_text(&mut left))
        });
        (entry.address, entry.logo) = (address.1, logo.1);
        [entry.extension, entry.catchup, entry.catchup_source, entry.fields] =
            std::array::from_fn(|_| self.words.take(&mut left));
        entry
    }

    /// The whole address of an entry, of which [`get`](Self::get) has the last part only; and that of its picture.
    pub fn addresses(&self, place: u32) -> [String; 2] {
        let Some(&at) = self.entries.get(place as usize) else { return Default::default() };
        let Some(block) = self.blocks.get(at as usize / BLOCK) else { return Default::default() };
        let mut left = &block[at as usize % BLOCK..];
        for _ in 0..7 {
            take_number(&mut left);
        }
        for _ in 0..3 {
            take_text(&mut left);
        }
        std::array::from_fn(|_| {
            let before = self.words.take(&mut left);
            [before, take_text(&mut left)].concat()
        })
    }

    /// The place of the group of an entry among [`groups`](Self::groups).
    pub fn group(&self, place: u32) -> u32 {
        let at = self.entries.get(place as usize).copied().unwrap_or_default() as usize;
        let mut left = self.blocks.get(at / BLOCK).map_or(&[][..], |block| &block[at % BLOCK..]);
        take_number(&mut left) as u32
    }

    pub fn groups(&self) -> &[Group] {
        &self.groups.all
    }

    /// The key of an entry.
    pub fn key_at(&self, place: u32) -> u64 {
        self.keys.get(place as usize).copied().unwrap_or_default()
    }

    /// The entries that are known by a key.
    pub fn find(&self, kind: Kind, key: u64) -> impl Iterator<Item = u32> + use<'_> {
        self.index.find(kind, key)
    }

    /// The key that clients know by an id.
    pub fn by_id(&self, kind: Kind, id: u32) -> Option<u64> {
        self.index.by_id(kind, id).map(|slot| slot.key)
    }

    /// The kind of what is known by a key.
    pub fn kind_of(&self, key: u64) -> Option<Kind> {
        self.index.kind_of(key)
    }

    /// The episodes of the series at a place.
    pub fn episodes(&self, series: u32) -> impl Iterator<Item = u32> + use<'_> {
        let mut next = self.series.get(&series).map_or(0, |(first, _)| *first);
        std::iter::from_fn(move || {
            let place = next.checked_sub(1)?;
            next = self.next[place as usize];
            Some(place)
        })
    }
}

/// A set of what guides know channels by. Hashes do: of a million there are two that are equal by chance in one of 18 million sets.
#[derive(Debug, Default)]
pub(crate) struct GuideIds {
    /// Several small tables: one for all would keep everybody waiting whenever it grows.
    tables: [HashSet<u64>; 16],
}

impl GuideIds {
    /// Whether it is new.
    pub fn insert(&mut self, guide: &str) -> bool {
        let hash = mixed(&[guide]);
        self.tables[(hash >> 60) as usize].insert(hash)
    }

    pub fn contains(&self, guide: &str) -> bool {
        let hash = mixed(&[guide]);
        self.tables[(hash >> 60) as usize].contains(&hash)
    }

    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(HashSet::is_empty)
    }
}

/// What a title is known by.
pub(crate) fn key_of(kind: Kind, name: &str) -> u64 {
    mixed(&[kind.as_str(), name])
}

/// What clients know it by: of 31 bits, of which the first is set for episodes of panels alone.
pub(crate) fn id_of(key: u64) -> u32 {
    ((key >> 34) as u32).max(1)
}

/// FNV-1a, whose bits are then spread (SplitMix64): the same on every machine and in every version. Its last bit is 0: what has it
/// set is an episode of a panel, which says by itself where it is.
fn mixed(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)) & !1
}

/// A group of a catalogue.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub name: String,
    /// How many there are in it, of each kind.
    pub counts: [u64; Kind::COUNT],
}

#[derive(Debug)]
struct Groups {
    all: Vec<Group>,
    places: HashMap<String, u32>,
}

impl Default for Groups {
    fn default() -> Self {
        // The first is that of what has none.
        Groups { all: vec![Group::default()], places: HashMap::from([(String::new(), 0)]) }
    }
}

impl Groups {
    fn of(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        if self.all.len() == WORDS {
            return 0;
        }
        let place = self.all.len() as u32;
        self.all.push(Group { name: name.to_owned(), ..Group::default() });
        self.places.insert(name.to_owned(), place);
        place
    }

    fn name(&self, place: u32) -> &str {
        self.all.get(place as usize).map_or("", |group| &group.name)
    }
}

/// Texts that many entries have in common.
#[derive(Debug, Default)]
struct Words {
    all: Vec<Box<str>>,
    places: HashMap<Box<str>, u32>,
}

impl Words {
    fn put(&mut self, record: &mut Vec<u8>, text: &str) {
        if text.is_empty() {
            return number(record, 1);
        }
        let place = match self.places.get(text) {
            Some(place) => *place,
            None if self.all.len() < WORDS => {
                let place = self.all.len() as u32;
                self.all.push(text.into());
                self.places.insert(text.into(), place);
                place
            }
            None => {
                number(record, 0);
                number(record, text.len() as u64);
                return record.extend_from_slice(text.as_bytes());
            }
        };
        number(record, u64::from(place) + 2);
    }

    fn take<'a>(&'a self, left: &mut &'a [u8]) -> &'a str {
        match take_number(left) {
            0 => take_text(left),
            1 => "",
            place => self.all.get(place as usize - 2).map_or("", |word| word),
        }
    }
}

/// LEB128.
fn number(record: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        record.push(number as u8 | 0x80);
        number >>= 7;
    }
    record.push(number as u8);
}

fn take_number(left: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((byte, rest)) = left.split_first() {
        *left = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift > 63 {
            break;
        }
    }
    value
}

fn take_text<'a>(left: &mut &'a [u8]) -> &'a str {
    let length = usize::try_from(take_number(left)).unwrap_or(usize::MAX).min(left.len());
    let (text, rest) = left.split_at(length);
    *left = rest;
    std::str::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Context<'static> = Context { taken: &|_, _| false, groups: &[], entries: 100 };

    fn entry<'a>(name: &'a str, group: &'a str, address: &'a str) -> Entry<'a> {
        Entry { name, group, address, ..Entry::default() }
    }

    #[test]
    fn an_entry_comes_back_as_it_was_put_in() {
        let mut catalogue = Catalogue::default();
        let own = Entry {
            name: "Ä 1",
            group: "Nachrichten",
            logo: "http://l.example/a/b.png",
            guide: "a.de",
            address: "http://p.example/live/u/p/1.ts",
            extension: "ts",
            number: 7,
            added: 1_700_000_000,
            days: 3,
            catchup: "shift",
            catchup_source: "?utc={utc}",
            fields: "User-Agent: x\n",
            more: "{\"a\":1}",
            episode: Some(("Reihe", 2, 300)),
        };
        assert_eq!(catalogue.add(&ALL, Kind::Episode, &own), Added::Yes);
        // Its series comes before it.
        let [address, logo] = catalogue.addresses(1);
        assert_eq!((address.as_str(), logo.as_str()), (own.address, own.logo));
        assert_eq!(catalogue.get(1), Entry { address: "1.ts", logo: "b.png", ..own });
        assert_eq!((catalogue.get(0).name, catalogue.kind(0)), ("Reihe", Kind::Series));
        assert_eq!(catalogue.episodes(0).collect::<Vec<_>>(), [1]);
        assert_eq!(catalogue.get(2), Entry::default());
        assert_eq!(catalogue.groups()[1].counts, [0, 0, 1, 1]);
    }

    #[test]
    fn what_is_equally_called_is_the_same_and_what_is_not_of_one_group_is_not() {
        let (mut one, mut other) = (Catalogue::default(), Catalogue::default());
        for (name, group) in [("A", "x"), ("B", "x"), ("A", "x"), ("A", "y")] {
            one.add(&ALL, Kind::Live, &entry(name, group, "http://a/1"));
        }
        other.add(&ALL, Kind::Live, &entry("A", "z", "http://b/1"));
        other.add(&ALL, Kind::Film, &entry("A", "z", "http://b/2"));
        let a = key_of(Kind::Live, "A");
        assert_eq!(one.find(Kind::Live, a).collect::<Vec<_>>(), [0, 2], "the second is another source");
        assert_ne!(one.key_at(3), a);
        assert_eq!(one.find(Kind::Live, one.key_at(3)).collect::<Vec<_>>(), [3]);
        assert_eq!(other.find(Kind::Live, a).collect::<Vec<_>>(), [0]);
        assert_ne!(other.key_at(1), a);
        let hls = Entry { extension: "m3u8", ..entry("A", "x", "http://a/1.m3u8") };
        one.add(&ALL, Kind::Live, &hls);
        assert_ne!(one.key_at(4), a, "nor is what comes in another format");
        assert_eq!(one.by_id(Kind::Live, id_of(a)), Some(a));
        assert_eq!(one.by_id(Kind::Film, id_of(a)), None);
    }

    #[test]
    fn an_id_that_is_taken_elsewhere_is_not_given_again() {
        let a = key_of(Kind::Live, "A");
        let cx = Context { taken: &|_, key| key == a, ..ALL };
        let mut catalogue = Catalogue::default();
        catalogue.add(&cx, Kind::Live, &entry("A", "", "http://a/1"));
        assert_ne!(catalogue.key_at(0), a);
        assert_eq!(catalogue.by_id(Kind::Live, id_of(catalogue.key_at(0))), Some(catalogue.key_at(0)));
    }

    #[test]
    fn groups_that_are_not_wanted_and_more_than_there_may_be_are_left_out() {
        let groups = ["x".to_owned()];
        let cx = Context { groups: &groups, entries: 1, ..ALL };
        let mut catalogue = Catalogue::default();
        assert_eq!(catalogue.add(&cx, Kind::Live, &entry("A", "y", "http://a/1")), Added::Unwanted);
        assert_eq!(catalogue.add(&cx, Kind::Live, &entry("A", "x", "http://a/1")), Added::Yes);
        assert_eq!(catalogue.add(&cx, Kind::Live, &entry("B", "x", "http://a/1")), Added::Full);
        assert_eq!(catalogue.add(&ALL, Kind::Live, &entry("", "x", "http://a/1")), Added::Unusable);
        let long = "x".repeat(TEXT + 1);
        assert_eq!(catalogue.add(&ALL, Kind::Live, &entry(&long, "x", "http://a/1")), Added::Unusable);
        assert_eq!((catalogue.len(), catalogue.skipped), (1, 2));
    }

    #[test]
    fn more_words_than_are_kept_once_stay_with_their_entries() {
        let mut catalogue = Catalogue::default();
        let cx = Context { entries: 1 << 20, ..ALL };
        let many = WORDS + 500;
        for n in 0..many {
            let (name, address) = (format!("n{n}"), format!("http://a{n}/x"));
            catalogue.add(&cx, Kind::Live, &entry(&name, &name, &address));
        }
        assert_eq!(catalogue.addresses(many as u32 - 1)[0], format!("http://a{}/x", many - 1));
        assert_eq!(catalogue.get(many as u32 - 1).group, "", "there are too many groups");
    }
}
