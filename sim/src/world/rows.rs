//! Rows by generation-tagged id, those of tenancies that ended included: found at once, in order of place and generation.

use std::fmt;
use std::ops::Index;

use holdfast_core::id::Id;

pub struct Rows<Kind, Row> {
    places: Vec<Place<Kind, Row>>,
    count: usize,
}

struct Place<Kind, Row> {
    /// It is nearly always the latest tenancy that somebody asks for.
    last: Option<(Id<Kind>, Row)>,
    /// Those before it, in order.
    earlier: Vec<(Id<Kind>, Row)>,
}

impl<Kind, Row> Default for Place<Kind, Row> {
    fn default() -> Self {
        Place { last: None, earlier: Vec::new() }
    }
}

impl<Kind, Row> Default for Rows<Kind, Row> {
    fn default() -> Self {
        Rows { places: Vec::new(), count: 0 }
    }
}

impl<Kind, Row> Rows<Kind, Row> {
    pub fn get(&self, id: &Id<Kind>) -> Option<&Row> {
        let place = self.places.get(id.index())?;
        match &place.last {
            Some((last, row)) if last == id => Some(row),
            _ => {
                let at = place.earlier.binary_search_by_key(id, |(own, _)| *own).ok()?;
                Some(&place.earlier[at].1)
            }
        }
    }

    pub fn get_mut(&mut self, id: &Id<Kind>) -> Option<&mut Row> {
        let place = self.places.get_mut(id.index())?;
        match &mut place.last {
            Some((last, row)) if last == id => Some(row),
            _ => {
                let at = place.earlier.binary_search_by_key(id, |(own, _)| *own).ok()?;
                Some(&mut place.earlier[at].1)
            }
        }
    }

    pub fn contains_key(&self, id: &Id<Kind>) -> bool {
        self.get(id).is_some()
    }

    pub fn insert(&mut self, id: Id<Kind>, row: Row) {
        if self.places.len() <= id.index() {
            self.places.resize_with(id.index() + 1, Place::default);
        }
        if let Some(own) = self.get_mut(&id) {
            *own = row;
            return;
        }
        self.count += 1;
        let Place { last, earlier } = &mut self.places[id.index()];
        let row = match last {
            Some((last, _)) if *last > id => (id, row),
            _ => match last.replace((id, row)) {
                Some(before) => before,
                None => return,
            },
        };
        let at = earlier.partition_point(|(own, _)| *own < row.0);
        earlier.insert(at, row);
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Id<Kind>, &Row)> {
        self.places.iter().flat_map(|place| place.earlier.iter().chain(&place.last)).map(|(id, row)| (id, row))
    }

    pub fn keys(&self) -> impl Iterator<Item = &Id<Kind>> {
        self.iter().map(|(id, _)| id)
    }

    pub fn values(&self) -> impl Iterator<Item = &Row> {
        self.iter().map(|(_, row)| row)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.places.iter_mut().flat_map(|place| place.earlier.iter_mut().chain(&mut place.last)).map(|(_, row)| row)
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
