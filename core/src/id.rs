//! Generation-tagged ids and the tables they index.
//!
//! An id names one tenancy of one place in a table. What arrives late, with the id of a tenancy that ended, finds nothing.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use serde::{Deserialize, Serialize};

/// Index and generation of a row in a [`Table`]; `Kind` keeps ids of different tables apart.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Id<Kind> {
    index: u32,
    generation: u32,
    #[serde(skip)]
    kind: PhantomData<fn() -> Kind>,
}

impl<Kind> Id<Kind> {
    /// The place in the table, from 0. Places are used again; the generation tells their tenants apart.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// Which tenant of the place this is, from 0.
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// An id from its parts, for a driver that carries ids through integers.
    pub const fn from_parts(index: u32, generation: u32) -> Self {
        Id { index, generation, kind: PhantomData }
    }
}

impl<Kind> Clone for Id<Kind> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Kind> Copy for Id<Kind> {}
impl<Kind> PartialEq for Id<Kind> {
    fn eq(&self, other: &Self) -> bool {
        (self.index, self.generation) == (other.index, other.generation)
    }
}
impl<Kind> Eq for Id<Kind> {}
impl<Kind> PartialOrd for Id<Kind> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<Kind> Ord for Id<Kind> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.index, self.generation).cmp(&(other.index, other.generation))
    }
}
impl<Kind> Hash for Id<Kind> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.index, self.generation).hash(state);
    }
}
impl<Kind> fmt::Debug for Id<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl<Kind> fmt::Display for Id<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// Rows under generation-tagged ids. A place freed last is used first.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "Row: Serialize", deserialize = "Row: Deserialize<'de>"))]
pub struct Table<Kind, Row> {
    places: Vec<Place<Row>>,
    free: Vec<u32>,
    rows: usize,
    #[serde(skip)]
    kind: PhantomData<fn() -> Kind>,
}

/// Begins with a line of cache: a row is not read through one more than it needs.
#[derive(Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Place<Row> {
    generation: u32,
    row: Option<Row>,
}

impl<Kind, Row> Default for Table<Kind, Row> {
    fn default() -> Self {
        Table { places: Vec::new(), free: Vec::new(), rows: 0, kind: PhantomData }
    }
}

impl<Kind, Row> Table<Kind, Row> {
    /// The id that the next row will get.
    pub fn next_id(&self) -> Id<Kind> {
        match self.free.last() {
            Some(index) => Id::from_parts(*index, self.places[*index as usize].generation),
            None => Id::from_parts(self.places.len() as u32, 0),
        }
    }

    /// Adds a row; its id is never given to another.
    pub fn insert(&mut self, row: Row) -> Id<Kind> {
        let id = self.next_id();
        match self.free.pop() {
            Some(index) => self.places[index as usize].row = Some(row),
            None => self.places.push(Place { generation: id.generation, row: Some(row) }),
        }
        self.rows += 1;
        id
    }

    /// The row, if this tenancy still lasts.
    pub fn get(&self, id: Id<Kind>) -> Option<&Row> {
        let place = self.places.get(id.index())?;
        if place.generation == id.generation { place.row.as_ref() } else { None }
    }

    /// The row to change, if this tenancy still lasts.
    pub fn get_mut(&mut self, id: Id<Kind>) -> Option<&mut Row> {
        let place = self.places.get_mut(id.index())?;
        if place.generation == id.generation { place.row.as_mut() } else { None }
    }

    /// Ends the tenancy and returns its row.
    pub fn remove(&mut self, id: Id<Kind>) -> Option<Row> {
        let place = self.places.get_mut(id.index())?;
        if place.generation != id.generation {
            return None;
        }
        let row = place.row.take()?;
        self.rows -= 1;
        // A place whose generations are used up is retired, so that no id is ever given twice.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(id.index);
        }
        Some(row)
    }

    /// All rows in order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Id<Kind>, &Row)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            place.row.as_ref().map(|row| (Id::from_parts(index as u32, place.generation), row))
        })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl<Kind, Row: fmt::Debug> fmt::Debug for Table<Kind, Row> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Thing {}

    #[test]
    fn a_late_id_finds_nothing() {
        let mut table: Table<Thing, &str> = Table::default();
        let first = table.insert("first");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert("second");
        assert_eq!(second.index(), first.index());
        assert_eq!(table.get(first), None);
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&"second"));
        assert_eq!(table.get_mut(second), Some(&mut "second"));
        assert_eq!((table.len(), table.is_empty()), (1, false));
        assert_eq!(table.remove(second), Some("second"));
        assert_eq!((table.len(), table.is_empty()), (0, true));
    }

    #[test]
    fn an_id_that_never_was_finds_nothing() {
        let mut table: Table<Thing, u8> = Table::default();
        assert_eq!(table.remove(Id::from_parts(7, 0)), None);
        assert!(table.is_empty());
    }

    #[test]
    fn ids_of_one_place_differ_by_their_generation() {
        let (first, second): (Id<Thing>, Id<Thing>) = (Id::from_parts(3, 4), Id::from_parts(3, 5));
        assert_eq!((first.index(), first.generation()), (3, 4));
        assert!(first == Id::from_parts(3, 4) && first != second && first < second);
        assert_eq!(alloc::format!("{first} {second:?}"), "3.4 3.5");
        let hash = |id: Id<Thing>| {
            let mut hasher = std::hash::DefaultHasher::new();
            id.hash(&mut hasher);
            hasher.finish()
        };
        assert_ne!(hash(first), hash(second));
    }
}
