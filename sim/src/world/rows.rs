//! Rows by generation-tagged id, those of tenancies that ended included: found at once, in order of place and generation.

use std::fmt;
use std::ops::Index;

use holdfast_core::id::Id;

pub struct Rows<Kind, Row> {
    /// By place: its tenancies in order.
    places: Vec<Vec<(Id<Kind>, Row)>>,
    count: usize,
}

impl<Kind, Row> Default for Rows<Kind, Row> {
    fn default() -> Self {
        Rows { places: Vec::new(), count: 0 }
    }
}

impl<Kind, Row> Rows<Kind, Row> {
    fn find(&self, id: &Id<Kind>) -> Result<usize, usize> {
        let Some(place) = self.places.get(id.index()) else { return Err(0) };
        // It is nearly always the latest that somebody asks for.
        match place.last() {
            Some((last, _)) if last == id => Ok(place.len() - 1),
            _ => place.binary_search_by_key(id, |(own, _)| *own),
        }
    }

    pub fn get(&self, id: &Id<Kind>) -> Option<&Row> {
        let at = self.find(id).ok()?;
        Some(&self.places[id.index()][at].1)
    }

    pub fn get_mut(&mut self, id: &Id<Kind>) -> Option<&mut Row> {
        let at = self.find(id).ok()?;
        Some(&mut self.places[id.index()][at].1)
    }

    pub fn contains_key(&self, id: &Id<Kind>) -> bool {
        self.find(id).is_ok()
    }

    pub fn insert(&mut self, id: Id<Kind>, row: Row) {
        if self.places.len() <= id.index() {
            self.places.resize_with(id.index() + 1, Vec::new);
        }
        match self.find(&id) {
            Ok(at) => self.places[id.index()][at].1 = row,
            Err(at) => {
                self.places[id.index()].insert(at, (id, row));
                self.count += 1;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Id<Kind>, &Row)> {
        self.places.iter().flatten().map(|(id, row)| (id, row))
    }

    pub fn keys(&self) -> impl Iterator<Item = &Id<Kind>> {
        self.iter().map(|(id, _)| id)
    }

    pub fn values(&self) -> impl Iterator<Item = &Row> {
        self.iter().map(|(_, row)| row)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.places.iter_mut().flatten().map(|(_, row)| row)
    }
}

impl<Kind, Row> Index<&Id<Kind>> for Rows<Kind, Row> {
    type Output = Row;

    fn index(&self, id: &Id<Kind>) -> &Row {
        self.get(id).unwrap_or_else(|| panic!("there is no row {id}"))
    }
}

impl<Kind, Row> FromIterator<(Id<Kind>, Row)> for Rows<Kind, Row> {
    fn from_iter<T: IntoIterator<Item = (Id<Kind>, Row)>>(rows: T) -> Self {
        let mut all = Rows::default();
        rows.into_iter().for_each(|(id, row)| all.insert(id, row));
        all
    }
}

impl<Kind, Row: fmt::Debug> fmt::Debug for Rows<Kind, Row> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
