//! Films and series that are files of this machine.
//!
//! | file | question it answers |
//! |---|---|
//! | `scan` | which files are there? |
//! | `names` | what is a file's title, which season and episode is it? |
//! | `file` | how is one opened, what is known of it, what is in it? |
//!
//! Threads of the driver's look and read, since disks take their time; what they found is swapped in as a whole.

mod file;
mod names;
mod scan;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::input::TitleId;

use crate::providers::Kind;
pub use file::{Attributes, Place, open, read};
pub use scan::{Found, Scan, scan};

/// How often directories are looked through.
pub(crate) const INTERVAL: Duration = Duration::from_secs(300);
/// How much of a file is read at once.
pub const PIECE: usize = 256 * 1024;

/// Ids of what is on this machine are the last 2^24 that clients have room for. Those of what is in catalogues have 30 bits, and
/// those of the episodes of panels end before these (`providers::Episode`).
pub(crate) const FIRST: u32 = 0x7f00_0000;

/// A directory with films or series in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// What it is called; part of what tells its titles from those of others.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub kind: Shelf,
    /// The group under which clients see it.
    pub group: String,
}

impl Default for Library {
    fn default() -> Self {
        Library { name: String::new(), path: PathBuf::new(), kind: Shelf::Films, group: String::from("Library") }
    }
}

/// What is in a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shelf {
    /// Each file is a film.
    #[default]
    Films,
    /// Each directory in it is a series, each file below it an episode.
    Series,
}

/// What a thread of the driver's is asked to do with a file for a request. One at a time for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCommand {
    /// Open this one; answered by [`FileEvent::Opened`].
    Open(Place),
    /// Read so many bytes from there on; answered by [`FileEvent::Data`].
    Read {
        /// Counted from 0.
        at: u64,
        /// How many, at most [`PIECE`].
        length: usize,
    },
    /// It is of no more use; nothing more is said of it.
    Close,
}

/// What came of a [`FileCommand`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEvent {
    /// It is open.
    Opened(Attributes),
    /// What was to be read; less only at the end of the file.
    Data(Bytes),
    /// It is not to be had.
    Failed(FileFault),
}

/// Why a file is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// It is not there any more, or what is there is no file of its library.
    Gone,
    /// The system says no; in its words.
    Unreadable(String),
}

/// A film or an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// What clients know it by.
    pub id: u32,
    pub title: TitleId,
    pub kind: Kind,
    pub name: String,
    /// Whose it is, by its place among the libraries.
    pub library: usize,
    /// In lower case.
    pub extension: &'static str,
    pub place: Place,
    /// In seconds since 1970.
    pub added: u64,
    /// Of an episode: the place of its series, its season and its number there.
    pub episode: Option<(usize, u32, u32)>,
}

/// A series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    /// What clients know it by.
    pub id: u32,
    pub name: String,
    /// Whose it is, by its place among the libraries.
    pub library: usize,
}

/// All libraries, and what was found in them last.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    libraries: Arc<[Library]>,
    files: Vec<Local>,
    series: Vec<Series>,
    by_id: BTreeMap<u32, usize>,
}

impl Libraries {
    /// Libraries in which nobody has looked yet.
    pub fn new(libraries: &[Library]) -> Self {
        Libraries { libraries: libraries.into(), ..Libraries::default() }
    }

    /// Where to look; empty if there is nothing configured.
    pub fn all(&self) -> &Arc<[Library]> {
        &self.libraries
    }

    /// Takes in what was found. What was there before and is not any more is gone; a library that could not be looked through
    /// keeps what it had.
    pub fn replace(&mut self, scan: &Scan) {
        let mut next = Libraries::new(&self.libraries);
        let kept: Vec<Found> = self
            .files
            .iter()
            .filter(|local| scan.failed.iter().any(|(library, _)| *library == local.library))
            .map(|local| Found { library: local.library, place: local.place.clone(), modified: local.added })
            .collect();
        let mut found: Vec<&Found> = scan.files.iter().chain(&kept).collect();
        found.sort_by(|a, b| (a.library, &a.place.path).cmp(&(b.library, &b.place.path)));
        found.dedup_by(|a, b| (a.library, &a.place.path) == (b.library, &b.place.path));
        let mut series = BTreeMap::new();
        for found in found {
            next.add(found, &mut series);
        }
        *self = next;
    }

    fn add(&mut self, found: &Found, known: &mut BTreeMap<(usize, String), usize>) {
        let Some(library) = self.libraries.get(found.library) else { return };
        let Some(extension) = scan::extension(&found.place.path) else { return };
        let key = hash(&[&library.name, &found.place.path.to_string_lossy()]);
        let (kind, name, episode) = match library.kind {
            Shelf::Films => (Kind::Film, names::film(&found.place.path), None),
            Shelf::Series => {
                let episode = names::episode(&found.place.path);
                let key = (found.library, episode.series.clone());
                let series = *known.entry(key).or_insert_with(|| {
                    let mut id = id_of(hash(&["series", &library.name, &episode.series]));
                    while self.series.iter().any(|series| series.id == id) {
                        id = next(id);
                    }
                    self.series.push(Series { id, name: episode.series.clone(), library: found.library });
                    self.series.len() - 1
                });
                let number = episode.number.unwrap_or_else(|| self.next_number(series, episode.season));
                (Kind::Episode, episode.name, Some((series, episode.season, number)))
            }
        };
        let mut id = id_of(key);
        while self.by_id.contains_key(&id) {
            id = next(id);
        }
        let title = TitleId(key);
        self.by_id.insert(id, self.files.len());
        let (library, place, added) = (found.library, found.place.clone(), found.modified);
        self.files.push(Local { id, title, kind, name, library, extension, place, added, episode });
    }

    /// For an episode that does not say which it is: the one after those that were found before.
    fn next_number(&self, series: usize, season: u32) -> u32 {
        let numbers = self.files.iter().rev().filter_map(|file| file.episode);
        let same = numbers.filter(|(own, in_season, _)| *own == series && *in_season == season);
        same.map(|(_, _, number)| number).max().map_or(1, |last| last.saturating_add(1))
    }

    /// The film or episode that addresses of this server name so: `/movie/{user}/{password}/{id}.mp4`.
    pub fn find(&self, kind: Kind, id: u32) -> Option<&Local> {
        self.files.get(*self.by_id.get(&id)?).filter(|local| local.kind == kind)
    }

    /// What people call a film or an episode: `None` if it is not there any more.
    pub fn name(&self, title: TitleId) -> Option<&str> {
        self.titled(title).map(|local| local.name.as_str())
    }

    /// The film or episode of this title.
    pub fn titled(&self, title: TitleId) -> Option<&Local> {
        self.files.iter().find(|local| local.title == title)
    }

    /// Everything of a kind, in the order of the configuration and of the paths.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Local> {
        self.files.iter().filter(move |local| local.kind == kind)
    }

    /// Every series, with its place.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The series that clients know by this id, with its place.
    pub fn series_by_id(&self, id: u32) -> Option<(usize, &Series)> {
        self.series.iter().enumerate().find(|(_, series)| series.id == id)
    }

    /// The episodes of the series at this place.
    pub fn episodes(&self, series: usize) -> impl Iterator<Item = &Local> {
        self.files.iter().filter(move |local| local.episode.is_some_and(|(own, ..)| own == series))
    }

    /// The group under which clients see what is in a library.
    pub fn group(&self, library: usize) -> &str {
        self.libraries.get(library).map_or("", |library| &library.group)
    }

    /// Whether a user who may see these groups may see what is in a library; none = all of them.
    pub fn permits(&self, library: usize, groups: &[String]) -> bool {
        groups.is_empty() || groups.iter().any(|group| group == self.group(library))
    }

    /// How many films or episodes there are in the library at this place.
    pub fn count(&self, library: usize) -> usize {
        self.files.iter().filter(|local| local.library == library).count()
    }
}

/// FNV-1a of some texts, each with its end.
fn hash(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // Its upper bits alone hardly depend on what came last.
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn id_of(key: u64) -> u32 {
    FIRST | (key >> 40) as u32
}

fn next(id: u32) -> u32 {
    FIRST | (id + 1) & 0x00ff_ffff
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
