//! Accounts at providers, for the status.

use holdfast_core::input::AccountId;

use crate::server::Server;

/// What people call an account: its provider, and which of its accounts, counted from 1.
pub(in crate::routes) fn label(server: &Server, account: AccountId) -> String {
    let mut left = account.0 as usize;
    for provider in &server.edge().config().providers {
        if left < provider.accounts.len() {
            return format!("{}/{}", provider.name, left + 1);
        }
        left -= provider.accounts.len();
    }
    account.0.to_string()
}
