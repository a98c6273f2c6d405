//! What was told of origins: whoever is asked again and again, and says the same, is no news.

use std::time::Duration;

use holdfast_core::input::{ChannelId, Loss, TitleId};
use holdfast_core::memory::Memory;
use holdfast_core::time::Time;

/// So many origins are remembered.
const ORIGINS: usize = 4096;
/// What is still so after this time is told again: whoever reads the log then may not have read what was before.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// A stream that stays the same, however often it is pulled anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stream {
    Channel(ChannelId),
    Title(TitleId),
}

/// What was told last of each origin of each stream, since media last came from there: its words, and what followed from them.
#[derive(Debug)]
pub(super) struct Told {
    words: Memory<(Stream, u32), String>,
    losses: Memory<(Stream, u32), Loss>,
}

impl Default for Told {
    fn default() -> Self {
        Told { words: Memory::new(ORIGINS), losses: Memory::new(ORIGINS) }
    }
}

impl Told {
    /// An origin says this. Whether that is news.
    pub fn words(&mut self, now: Time, origin: (Stream, u32), words: &str) -> bool {
        let news = self.words.recall(now, &origin).is_none_or(|told| told != words);
        if news {
            self.words.remember(now, origin, now + LASTS, words.to_owned());
        }
        news
    }

    /// An origin was lost so. Whether that is news.
    pub fn loss(&mut self, now: Time, origin: (Stream, u32), loss: Loss) -> bool {
        let news = self.losses.recall(now, &origin) != Some(&loss);
        if news {
            self.losses.remember(now, origin, now + LASTS, loss);
        }
        news
    }

    /// Media comes from it.
    pub fn forget(&mut self, origin: (Stream, u32)) {
        self.words.forget(&origin);
        self.losses.forget(&origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_same_is_told_once_until_media_comes_or_an_hour_is_over() {
        let (mut told, origin, other) =
            (Told::default(), (Stream::Title(TitleId(1)), 0), (Stream::Channel(ChannelId(1)), 0));
        assert!(told.words(at(0), origin, "403") && told.loss(at(0), origin, Loss::Forbidden));
        for second in [1, 60, 3599] {
            assert!(!told.words(at(second), origin, "403") && !told.loss(at(second), origin, Loss::Forbidden));
        }
        assert!(told.words(at(10), other, "403"), "of another one");
        assert!(told.words(at(3600), origin, "403") && told.loss(at(3600), origin, Loss::Forbidden));
        assert!(told.words(at(3601), origin, "404") && told.loss(at(3601), origin, Loss::NotFound), "it changed");
        assert!(told.words(at(3602), origin, "403"), "and back");
        told.forget(origin);
        assert!(told.words(at(3603), origin, "403") && told.loss(at(3603), origin, Loss::NotFound));
    }
}
