//! Which account a player had last, so that it is tried first when it comes back (spec: playback §4).

use alloc::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::lease::Binding;
use crate::input::{AccountId, Viewing};
use crate::time::Time;

/// How many players are remembered at most.
const CAPACITY: usize = 4096;

/// Accounts by player, each until its time; a full memory forgets first what it would forget first anyway.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Affinities {
    rows: BTreeMap<Viewing, Affinity>,
    order: BTreeSet<(Time, Viewing)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Affinity {
    account: AccountId,
    binding: Binding,
    expires: Time,
}

impl Affinities {
    /// Media came through with this account.
    pub fn remember(&mut self, now: Time, viewing: Viewing, account: AccountId, binding: Binding, expires: Time) {
        if let Some(old) = self.rows.insert(viewing, Affinity { account, binding, expires }) {
            self.order.remove(&(old.expires, viewing));
        }
        self.order.insert((expires, viewing));
        while let Some((first, viewing)) = self.order.first().copied()
            && (first <= now || self.order.len() > CAPACITY)
        {
            self.order.pop_first();
            self.rows.remove(&viewing);
        }
    }

    pub fn recall(&self, now: Time, viewing: &Viewing) -> Option<AccountId> {
        self.rows.get(viewing).filter(|row| now < row.expires).map(|row| row.account)
    }

    /// The player uses the account again: what becomes of that decides.
    pub fn rebind(&mut self, viewing: &Viewing, account: AccountId, binding: Binding) {
        if let Some(row) = self.rows.get_mut(viewing).filter(|row| row.account == account) {
            row.binding = binding;
        }
    }

    /// It came to nothing with this account; ignored if that is not how the player used it last.
    pub fn forget(&mut self, viewing: &Viewing, account: AccountId, binding: Binding) {
        if let Some(row) = self.rows.get(viewing).filter(|row| row.account == account && row.binding == binding) {
            self.order.remove(&(row.expires, *viewing));
            self.rows.remove(viewing);
        }
    }

    pub fn len(&self) -> usize {
        debug_assert_eq!(self.rows.len(), self.order.len());
        self.rows.len()
    }
}
