//! What a user's own playbacks have of an account, and may be said to lack.

use holdfast_core::account::Holder;
use holdfast_core::input::{AccountId, PlaybackId, RequestId, Want};

use super::super::super::oracle::{Bench, Verdict, holds};
use super::super::truth::{Playback, Request, Stage};

impl Bench<'_> {
    /// Judges that a playlist is not refused for want of an account that its own user has, whose only place that uses: whoever of the
    /// user's would have to go makes room for it, or that is what it is refused for.
    pub(super) fn own_account(&self, id: RequestId, row: &Request) -> Verdict {
        let (titles, item) = (&self.truth.titles, row.viewing.item);
        let Some(ask) = row.ask.as_ref().filter(|ask| ask.want == Want::Setup) else { return Ok(()) };
        let single =
            titles.limits(row.viewing.user).is_some_and(|own| (own.max_connections, own.soft_connections) == (1, 0));
        let begins = row.playback.is_none() && row.fetches == 0 && !row.failed && titles.named(row).is_none();
        // What its player is sent to takes no place, and what asks for one is decided as such.
        let open = |own: &Request| own.stage != Stage::Over || own.refused.is_some();
        let same = titles.requests.values().any(|own| own.key == row.key && own.counts() && open(own));
        if !single || !begins || same || !titles.traits(item).confirmable || titles.has_instant_grace() {
            return Ok(());
        }
        let of_it = titles.accounts.iter().zip(0..).filter(|(own, _)| ask.providers.contains(&own.provider));
        let of_it: Vec<_> = of_it.map(|(own, number)| (own, AccountId(number))).collect();
        let [(account, number)] = of_it[..] else { return Ok(()) };
        let cooling = titles.providers[account.provider.0 as usize].cooling;
        let settings = &account.settings;
        let usable =
            settings.enabled && settings.until.is_none_or(|until| !until.has_come(self.now + self.allowance.slack));
        if account.limit != 1 || account.before.is_some() || !usable || cooling >= titles.settings.preemption_wait {
            return Ok(());
        }
        let plays = |(_, own): &(&PlaybackId, &Playback)| {
            let same = (own.viewing.user, own.viewing.client, own.viewing.item) == row.player();
            // What began while the playlist waited took its place and its account from it.
            let before = own.began < row.asked && own.started && own.ended.is_none();
            own.viewing.user == row.viewing.user && !same && before
        };
        let own = titles.playbacks.iter().filter(plays).map(|(own, _)| *own).find(|own| {
            let mut used = titles.allocations_of(Holder::Playback(*own));
            used.any(|(_, own)| own.account == number && own.is_used() && own.granted < row.asked)
                || titles.kept(number, self.now + self.allowance.early + self.allowance.slack).any(|kept| kept == *own)
        });
        holds!(own.is_none(), "account-11", "{id:?} finds no account, and {own:?} of its own user has {number:?}");
        Ok(())
    }
}
