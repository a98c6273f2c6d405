//! Which account a player had last, so that it is tried first when it comes back (spec: playback §4).

use super::lease::Binding;
use crate::input::{AccountId, Viewing};
use crate::memory::Memory;
use crate::time::Time;

/// How many players are remembered at most.
const CAPACITY: usize = 4096;

/// Accounts by player, and how they were used last, each until its time.
#[derive(Debug)]
pub(super) struct Affinities(Memory<Viewing, (AccountId, Binding)>);

impl Default for Affinities {
    fn default() -> Self {
        Affinities(Memory::new(CAPACITY))
    }
}

impl Affinities {
    /// Media came through with this account.
    pub fn remember(&mut self, now: Time, viewing: Viewing, account: AccountId, binding: Binding, expires: Time) {
        self.0.remember(now, viewing, expires, (account, binding));
    }

    pub fn recall(&self, now: Time, viewing: &Viewing) -> Option<AccountId> {
        self.0.recall(now, viewing).map(|(account, _)| *account)
    }

    /// The player uses the account again: what becomes of that decides.
    pub fn rebind(&mut self, viewing: &Viewing, account: AccountId, binding: Binding) {
        if let Some((_, last)) = self.0.get_mut(viewing).filter(|(own, _)| *own == account) {
            *last = binding;
        }
    }

    /// It came to nothing with this account; ignored if that is not how the player used it last.
    pub fn forget(&mut self, viewing: &Viewing, account: AccountId, binding: Binding) {
        if self.0.get_mut(viewing).is_some_and(|last| *last == (account, binding)) {
            self.0.forget(viewing);
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
