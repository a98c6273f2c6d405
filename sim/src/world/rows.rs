//! Rows by generation-tagged id, those of tenancies that ended included: found at once, in order of place and generation.

use std::fmt;
use std::mem;
use std::ops::Index;

use holdfast_core::id::Id;

pub struct Rows<Kind, Row> {
    /// It is nearly always the latest tenancy of a place that somebody asks for.
    last: Vec<Place<Kind, Row>>,
    /// Those before it, by place, in order. Apart, so that all that is asked for lies close together.
    earlier: Vec<Vec<(Id<Kind>, Row)>>,
    count: usize,
}

/// Begins with a line of cache, in which it says whether there is a row and whose that is.
#[repr(C, align(64))]
enum Place<Kind, Row> {
    Empty,
    Of(Id<Kind>, Row),
}

impl<Kind, Row> Place<Kind, Row> {
    fn get(&self) -> Option<(&Id<Kind>, &Row)> {
        match self {
            Place::Empty => None,
            Place::Of(id, row) => Some((id, row)),
        }
    }

    fn get_mut(&mut self) -> Option<(&Id<Kind>, &mut Row)> {
        match self {
            Place::Empty => None,
            Place::Of(id, row) => Some((id, row)),
        }
    }
}

impl<Kind, Row> Default for Rows<Kind, Row> {
    fn default() -> Self {
        Rows { last: Vec::new(), earlier: Vec::new(), count: 0 }
    }
}

impl<Kind, Row> Rows<Kind, Row> {
    pub fn get(&self, id: &Id<Kind>) -> Option<&Row> {
        match self.last.get(id.index())?.get() {
            Some((last, row)) if last == id => Some(row),
            _ => {
                let earlier = self.earlier.get(id.index())?;
                let at = earlier.binary_search_by_key(id, |(own, _)| *own).ok()?;
                Some(&earlier[at].1)
            }
        }
    }

    pub fn get_mut(&mut self, id: &Id<Kind>) -> Option<&mut Row> {
        match self.last.get_mut(id.index())?.get_mut() {
            Some((last, row)) if last == id => Some(row),
            _ => {
                let earlier = self.earlier.get_mut(id.index())?;
                let at = earlier.binary_search_by_key(id, |(own, _)| *own).ok()?;
                Some(&mut earlier[at].1)
            }
        }
    }

    pub fn contains_key(&self, id: &Id<Kind>) -> bool {
        self.get(id).is_some()
    }

    pub fn insert(&mut self, id: Id<Kind>, row: Row) {
        if self.last.len() <= id.index() {
            self.last.resize_with(id.index() + 1, || Place::Empty);
            self.earlier.resize_with(id.index() + 1, Vec::new);
        }
        if let Some(own) = self.get_mut(&id) {
            *own = row;
            return;
        }
        self.count += 1;
        let last = &mut self.last[id.index()];
        let row = match last {
            Place::Of(last, _) if *last > id => (id, row),
            _ => match mem::replace(last, Place::Of(id, row)) {
                Place::Of(id, row) => (id, row),
                Place::Empty => return,
            },
        };
        let earlier = &mut self.earlier[id.index()];
        let at = earlier.partition_point(|(own, _)| *own < row.0);
        earlier.insert(at, row);
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Id<Kind>, &Row)> {
        let places = self.earlier.iter().zip(&self.last);
        places.flat_map(|(earlier, last)| earlier.iter().map(|(id, row)| (id, row)).chain(last.get()))
    }

    pub fn keys(&self) -> impl Iterator<Item = &Id<Kind>> {
        self.iter().map(|(id, _)| id)
    }

    pub fn values(&self) -> impl Iterator<Item = &Row> {
        self.iter().map(|(_, row)| row)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        let places = self.earlier.iter_mut().zip(&mut self.last);
        let row = |(_, row)| row;
        places.flat_map(move |(earlier, last)| earlier.iter_mut().map(|(_, row)| row).chain(last.get_mut().map(row)))
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
