//! Which one is called this?

use alloc::vec::Vec;

/// Places by name: every request names one, and a scan of 100 000 names would stop everybody else meanwhile.
#[derive(Debug)]
pub(crate) struct Names(Vec<u32>);

impl Names {
    /// The names of `things`, in the order of their places.
    pub fn new<T>(things: &[T], name: impl Fn(&T) -> &str) -> Self {
        let mut places: Vec<u32> = (0..things.len() as u32).collect();
        places.sort_by(|a, b| name(&things[*a as usize]).cmp(name(&things[*b as usize])));
        Names(places)
    }

    /// The thing of this name among the `things` that these names are of, and its place; of equal names the first.
    pub fn find<'t, T>(&self, things: &'t [T], name: impl Fn(&T) -> &str, wanted: &str) -> Option<(u32, &'t T)> {
        let thing = |place: u32| things.get(place as usize);
        let first = self.0.partition_point(|place| thing(*place).is_some_and(|own| name(own) < wanted));
        let place = *self.0.get(first)?;
        Some((place, thing(place).filter(|own| name(own) == wanted)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own<'t>(thing: &'t &'static str) -> &'t str {
        thing
    }

    #[test]
    fn every_name_is_found_at_its_place_and_no_other_name_is() {
        let things = ["stage", "b", "stages", "a", "b"];
        let names = Names::new(&things, own);
        let found = |name| names.find(&things, own, name).map(|(place, thing)| (place, *thing));
        for (place, name) in [(0, "stage"), (1, "b"), (2, "stages"), (3, "a")] {
            assert_eq!(found(name), Some((place, name)));
        }
        for unknown in ["", "aa", "stag", "z"] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
        assert_eq!(Names::new(&[], own).find(&[], own, "a"), None);
    }
}
