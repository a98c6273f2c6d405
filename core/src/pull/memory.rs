//! Why whoever asks for a channel is refused at once: its origins were just asked, in vain.

use super::Phase;
use super::channel::Channel;
use crate::feed::Feeds;
use crate::input::RefuseReason;
use crate::time::Time;

impl Channel {
    /// Whether all origins failed, nothing is being tried, and nobody waits for the repair: then a failure is answered from memory.
    pub(super) fn is_pausing(&self, now: Time, feeds: &Feeds) -> bool {
        self.phase == Phase::Seeking
            && self.kept.is_none()
            && self.held.is_empty()
            && now < self.round.next
            && feeds.viewers_of(self.feed) == 0
    }

    /// Why whoever asks now is refused: its origins were just asked, in vain.
    pub(super) fn remembers(&self, now: Time, feeds: &Feeds) -> Option<RefuseReason> {
        let spacing = self.settings.no_input_timeout;
        let just_asked = || self.round.last_open().is_some_and(|last| now < last + spacing);
        let remembered = match self.phase {
            Phase::Ended => now < self.round.next,
            _ => self.is_pausing(now, feeds) && just_asked(),
        };
        remembered.then(|| self.lack())
    }

    /// Whether its origins would be asked for whoever came now, and for nobody else.
    pub(super) fn begins(&self, now: Time, feeds: &Feeds) -> bool {
        matches!(self.phase, Phase::Off | Phase::Ended) || self.is_pausing(now, feeds)
    }

    /// Why nobody gets it, after each origin had its turn.
    pub(super) fn lack(&self) -> RefuseReason {
        self.origins.as_ref().map_or(RefuseReason::NoSource, |origins| origins.lack())
    }
}
