//! How large titles are, as far as a provider said: whoever looks again needs no connection.

use std::collections::{BTreeMap, VecDeque};

use holdfast_core::input::TitleId;

use crate::http::FieldValue;
use crate::http::field::FieldName;

/// So many titles are remembered.
const TITLES: usize = 4096;

/// What is known of a title without having it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// In bytes; `None` where the provider does not say.
    pub length: Option<u64>,
    /// `Content-Type`, `ETag` and the like.
    pub fields: Vec<(FieldName, FieldValue)>,
}

/// The sizes of the titles that were asked for last. An account makes no difference.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    sizes: BTreeMap<TitleId, Size>,
    /// In the order in which they came to be known.
    order: VecDeque<TitleId>,
}

impl Sizes {
    pub fn get(&self, title: TitleId) -> Option<&Size> {
        self.sizes.get(&title)
    }

    pub fn learn(&mut self, title: TitleId, size: Size) {
        if self.sizes.insert(title, size).is_none() {
            self.order.push_back(title);
        }
        while self.order.len() > TITLES
            && let Some(oldest) = self.order.pop_front()
        {
            self.sizes.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_kept_and_the_oldest_goes_first() {
        let mut sizes = Sizes::default();
        let size = |length| Size { length: Some(length), fields: Vec::new() };
        for title in 0..=TITLES as u64 {
            sizes.learn(TitleId(title), size(title));
            sizes.learn(TitleId(title), size(title + 1));
        }
        assert_eq!((sizes.get(TitleId(0)), sizes.sizes.len(), sizes.order.len()), (None, TITLES, TITLES));
        assert_eq!(sizes.get(TitleId(1)), Some(&size(2)), "the last word counts");
    }
}
