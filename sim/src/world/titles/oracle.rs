//! The invariants of titles and accounts (spec: playback §4, §5, §9), judged from the actors' truth.
//!
//! | id | what must hold |
//! |---|---|
//! | `account-1` | a grant is of an account that may be used, of the provider that it says, under a name never given before, and of the account that an address names |
//! | `account-2` | an account never bears more connections than it has, but one for an instant grace where it bears that; by grants, and by the provider's own count |
//! | `account-3` | only the stronger makes somebody give way who plays; anybody does whoever only looks, is there for nobody, or sent nothing in its time |
//! | `account-4` | nobody is refused for want of an account while one is free, or held by somebody weaker |
//! | `account-5` | nothing is left of what is over |
//! | `account-6` | a connection is given up once, and whoever is over holds none |
//! | `account-7` | an account that is kept for a playback goes to nobody else |
//! | `account-8` | a connection over which nothing comes is given up after `starting_deadline` |
//! | `account-9` | one connection more than there are lasts no longer than a grace |
//! | `account-10` | no live stream waits by grace where that of each of its viewers was in vain just now |
//! | `account-11` | no playlist is refused for want of an account that its own user holds, whose only place is in use |
//! | `play-11` | a playback has one connection at a time |
//! | `play-12` | what was ended for good is not revived; who is blocked or gave way just now stays out |
//! | `play-13` | a request is answered once, is fetched while it waits, is cut while it is fetched, for a reason that is so |
//! | `play-14` | one playback is of one user, one item, one token |
//! | `play-15` | parts are fetched in the order in which they were asked for |
//! | `play-16` | whoever asks for a title is answered in time |
//! | `play-17` | what is stale changes nothing |
//! | `play-18` | nobody plays on when the time of its user is over, and none of it ends before |
//! | `play-19` | no provider is asked for a player more than a hundred times in a row in vain, and then 20 times a second |

mod own;

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_core::account::{Holder, LeaseState, Strength};
use holdfast_core::edge::Edge;
use holdfast_core::input::{
    AccountId, AllocationId, GivesWay, Grant, Input, Note, Output, PlaybackId, ProviderId, RefuseReason, RequestId,
    UserId, ViewerEnd, Want,
};
use holdfast_core::playback::{Place, State};
use holdfast_core::time::Time;

use super::super::oracle::{Bench, Verdict, holds};
use super::super::playback::oracle::FEW;
use super::super::playback::truth::is_of_feeds;
use super::truth::{CLOSING, Key, LATE, Playback, Request, Stage, Titles};

/// How many parts of a playback may wait.
const PARTS: usize = 64;
/// How long a refusal answers the same player again.
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);

/// What a request is fetched with.
struct Fetched {
    request: RequestId,
    playback: Option<PlaybackId>,
    token: Option<holdfast_core::input::Token>,
    index: u32,
    grant: Option<Grant>,
}

impl Bench<'_> {
    /// Judges an output about titles before the truth takes it in.
    pub fn title_output(&self, input: &Input, output: &Output) -> Verdict {
        let titles = &self.truth.titles;
        match *output {
            Output::Fetch { request, playback, token, index, grant } => {
                self.title_fetch(&Fetched { request, playback, token, index, grant })
            }
            Output::Refuse { request, reason } => {
                let row = &titles.requests[&request];
                // What is asked twice may be answered before it is heard of again.
                let twice =
                    matches!(input, Input::Fetch { request: own, .. } if *own == request) && row.refused.is_some();
                let so = row.stage.waits() || self.was_due(row) || twice;
                holds!(so, "play-13", "{request:?} is refused for {reason:?} and is {:?}", row.stage);
                // What is for the feed to say is judged there.
                if titles.watches(request) && is_of_feeds(reason) {
                    return Ok(());
                }
                self.title_refused(input, request, row, reason)
            }
            Output::Cut { request, reason } => {
                let Some(row) = titles.requests.get(&request) else {
                    holds!(false, "play-13", "{request:?} is cut and was never made");
                    return Ok(());
                };
                let fetched = matches!(row.stage, Stage::Fetching | Stage::Failing | Stage::Finishing | Stage::Dropped);
                holds!(fetched, "play-13", "{request:?} is cut as {reason:?} and is {:?}", row.stage);
                self.title_cut(input, request, row, reason)
            }
            Output::Drop { allocation } => {
                let Some(row) = titles.allocations.get(&allocation) else {
                    holds!(false, "account-6", "allocation {allocation} is given up and was never granted");
                    return Ok(());
                };
                // What is due goes before what is heard.
                let heard = matches!(input, Input::Closed { allocation: own } if *own == allocation);
                let so = (row.closed.is_none() || heard) && row.dropped.is_none();
                holds!(so, "account-6", "allocation {allocation} is given up again: {row:?}");
                let source = matches!(row.holder, Holder::Source(_));
                holds!(!source, "account-6", "allocation {allocation} is of a source, which is closed as such");
                Ok(())
            }
            Output::Joined { request, .. } => {
                let row = &titles.requests[&request];
                holds!(row.stage.waits() && row.ask.is_none(), "play-13", "{request:?} is let in and is {row:?}");
                self.may_have(request, row)
            }
            Output::Open { source, channel, index, grant } => {
                let Some(row) = titles.channels.get(&channel) else {
                    holds!(false, "pull-3", "source {source} is opened for {channel:?}, which is none");
                    return Ok(());
                };
                holds!(!self.truth.shut, "pull-7", "source {source} is opened while the program ends");
                holds!(row.open.len() < 2, "pull-3", "source {source} is the third connection of {channel:?}");
                holds!(!titles.sources.contains_key(&source), "pull-3", "source {source} is opened twice");
                let Some(grant) = grant else {
                    holds!(false, "account-1", "source {source} is opened at a provider without an account");
                    return Ok(());
                };
                let Some(provider) = row.providers.get(index as usize) else {
                    holds!(false, "account-1", "source {source} is opened at {index} of {:?}", row.providers);
                    return Ok(());
                };
                let own = titles.accounts.get(grant.account.0 as usize).map(|account| account.provider);
                holds!(
                    own == Some(*provider),
                    "account-1",
                    "source {source} is opened at {provider:?} by {grant:?} of {own:?}"
                );
                self.granted(grant, Holder::Source(source), self.now)
            }
            Output::Close { source } => {
                let there = titles.sources.get(&source).is_some_and(|row| !row.gone);
                holds!(there, "pull-3", "source {source} is closed and does not stand");
                Ok(())
            }
            Output::ViewerEnd { viewer, reason } => {
                let of_feeds = titles.is_of_feeds(output);
                holds!(
                    of_feeds || !matches!(reason, ViewerEnd::Done | ViewerEnd::Failed | ViewerEnd::Superseded),
                    "play-13",
                    "viewer {viewer} of a live stream ends as {reason:?}"
                );
                Ok(())
            }
            Output::Note(ref note) => self.title_note(input, note),
            _ => Ok(()),
        }
    }

    fn title_fetch(&self, fetched: &Fetched) -> Verdict {
        let titles = &self.truth.titles;
        let request = fetched.request;
        let Some(row) = titles.requests.get(&request) else {
            holds!(false, "play-13", "{request:?} is fetched and was never made");
            return Ok(());
        };
        let Some(ask) = &row.ask else {
            holds!(false, "play-13", "{request:?} is for a live stream and is fetched");
            return Ok(());
        };
        holds!(row.stage.waits(), "play-13", "{request:?} is fetched and is {:?}", row.stage);
        holds!(!row.in_vain, "play-19", "{request:?} is fetched and should wait: {row:?}");
        holds!(!self.truth.shut, "play-10", "{request:?} is fetched while the program ends");
        self.may_have(request, row)?;
        holds!(
            fetched.playback.is_none() == (ask.want == Want::Look),
            "play-14",
            "{request:?}, {:?}, is of {:?}",
            ask.want,
            fetched.playback
        );
        if let Some(token) = ask.token.filter(|_| ask.want != Want::Look) {
            holds!(fetched.token == Some(token), "play-14", "{request:?} of {token:?} is of {:?}", fetched.token);
        }
        if let Some(token) = fetched.token.filter(|_| ask.want != Want::Look) {
            let over = titles.over.get(&token);
            let revived = over.is_some_and(|at| self.now + self.allowance.early < *at + titles.settings.ended_memory);
            holds!(!revived, "play-12", "{request:?} revives what was ended at {over:?}");
        }
        if let Some(playback) = fetched.playback {
            if let Some(known) = titles.playbacks.get(&playback) {
                let same = (known.viewing.user, known.viewing.item) == (row.viewing.user, row.viewing.item);
                holds!(same, "play-14", "{request:?} is of playback {playback}, which is {:?}", known.viewing);
                let token = known.token.is_none() || fetched.token.is_none() || known.token == fetched.token;
                holds!(
                    token,
                    "play-14",
                    "playback {playback} is known by {:?} and by {:?}",
                    known.token,
                    fetched.token
                );
                holds!(
                    known.ended.is_none(),
                    "play-13",
                    "{request:?} is of playback {playback}, over: {:?}",
                    known.ended
                );
            }
            let other = titles.allocations_of(Holder::Playback(playback)).next();
            holds!(other.is_none(), "play-11", "{request:?} of playback {playback} is fetched beside {other:?}");
            let fetching = titles
                .fetching(playback)
                .find(|(id, row)| *id != request && row.stage == Stage::Fetching && row.allocation.is_some());
            holds!(fetching.is_none(), "play-11", "{request:?} of playback {playback} is fetched beside {fetching:?}");
        }
        if ask.want == Want::Part {
            // An address may be of another player's playback, which goes on with its own parts.
            let player =
                |id: PlaybackId| titles.playbacks.get(&id).filter(|own| own.ended.is_none()).map(Playback::player);
            let of = fetched.playback.and_then(player).unwrap_or(row.player());
            let before = titles.open.iter().map(|id| (*id, &titles.requests[id])).find(|(id, other)| {
                let named = (titles.named(row), titles.named(other));
                *id != request
                    && other.key == row.key
                    && named.1.and_then(player).unwrap_or(other.player()) == of
                    && (named.0 == named.1 || named.0.is_none() || named.1.is_none())
                    && other.order < row.order
                    && other.stage == Stage::Waiting
                    && other.want() == Some(Want::Part)
                    && !other.failed
                    && !row.failed
            });
            holds!(before.is_none(), "play-15", "{request:?} is fetched before {:?}", before.map(|(id, _)| id));
        }
        let Some(grant) = fetched.grant else {
            holds!(ask.providers.is_empty(), "account-1", "{request:?} is fetched without an account");
            return Ok(());
        };
        let Some(provider) = ask.providers.get(fetched.index as usize) else {
            holds!(false, "account-1", "{request:?} is fetched at {} of {:?}", fetched.index, ask.providers);
            return Ok(());
        };
        let own = titles.accounts.get(grant.account.0 as usize).map(|account| account.provider);
        holds!(own == Some(*provider), "account-1", "{request:?} is fetched at {provider:?} by {grant:?} of {own:?}");
        let named = ask.account.is_none_or(|account| account == grant.account || !titles.is_firm(row.viewing.item));
        holds!(named, "account-1", "{request:?} is of {:?} and fetched by {grant:?}", ask.account);
        self.granted(grant, fetched.playback.map_or(Holder::Probe(request), Holder::Playback), row.since)
    }

    /// Judges a grant as such.
    fn granted(&self, grant: Grant, holder: Holder, since: Time) -> Verdict {
        let titles = &self.truth.titles;
        let account = &titles.accounts[grant.account.0 as usize];
        let settings = &account.settings;
        let known = titles.allocations.contains_key(&grant.allocation);
        holds!(!known, "account-1", "{} is granted twice", grant.allocation);
        holds!(settings.enabled, "account-1", "{:?} is granted and may not be used", grant.account);
        // A playback may have been granted it before, and use it only now that its last connection is closed.
        let waits = matches!(holder, Holder::Playback(_)) && self.now > since;
        // Or that its provider has had time to forget what was closed.
        let late = LATE + if waits { CLOSING + self.allowance.slack } else { Duration::ZERO };
        // Or before the clock was set.
        let until = settings.until.map(|until| until.time().max(self.truth.clock_set));
        let expired = until.is_some_and(|until| until + late + self.allowance.early <= self.now);
        holds!(!expired, "account-1", "{:?} is granted and expired at {:?}", grant.account, settings.until);
        // Or that its provider allows fewer since.
        let before = account.before.filter(|(_, at)| self.now <= *at + late + self.allowance.early);
        let (limit, open) = (account.limit as usize, account.open.len());
        let bears = (limit + usize::from(settings.overlap && self.may_overlap()))
            .max(before.map_or(0, |(before, _)| before as usize));
        holds!(
            limit == 0 || open < bears,
            "account-2",
            "{:?} has {limit}, {open} are open, and is granted",
            grant.account
        );
        // What is kept for a playback is counted where it has no connection that counts itself.
        let own = |playback: &PlaybackId| holder == Holder::Playback(*playback);
        let connected = |playback: &PlaybackId| titles.allocations_of(Holder::Playback(*playback)).next().is_some();
        let early = self.now + self.allowance.early + self.allowance.slack;
        let kept: Vec<_> =
            titles.kept(grant.account, early).filter(|playback| !own(playback) && !connected(playback)).collect();
        holds!(
            limit == 0 || open >= limit || open + kept.len() < bears,
            "account-7",
            "{:?} has {limit}, {open} are open, is kept for {kept:?}, and is granted to {holder:?}",
            grant.account
        );
        Ok(())
    }

    fn may_overlap(&self) -> bool {
        self.truth.titles.has_instant_grace()
    }

    /// Nobody gets anything who may not play, or not yet again.
    fn may_have(&self, request: RequestId, row: &Request) -> Verdict {
        let titles = &self.truth.titles;
        let Some(limits) = titles.limits(row.viewing.user) else {
            holds!(false, "play-2", "{request:?} is of nobody");
            return Ok(());
        };
        holds!(limits.enabled, "play-2", "{request:?} plays for a user that may not");
        let expired = limits.until.is_some_and(|until| until.time() + self.allowance.early <= row.asked);
        holds!(
            !expired || row.fetches > 0 || self.goes_on(row),
            "play-2",
            "{request:?} plays for a user that expired at {:?}",
            limits.until
        );
        let block = titles.blocks.get(&row.player());
        let early = self.allowance.early;
        let blocked = block.is_some_and(|(from, until)| *from < row.asked && row.asked + early < *until);
        holds!(!blocked, "play-12", "{request:?} plays and is blocked: {block:?}");
        let gave_way = titles.preempted.get(&row.player());
        let out =
            gave_way.is_some_and(|at| *at < row.asked && row.asked + early < *at + titles.settings.preempted_block);
        // Of two playbacks of one player one may have given way, and the other goes on.
        let other = match row.key {
            Key::Token(token) => titles.tokens.get(&token).and_then(|id| titles.playbacks.get(id)),
            _ => None,
        };
        let stays = other.is_some_and(|playback| playback.ended.is_none());
        holds!(!out || stays, "play-12", "{request:?} plays and gave way at {gave_way:?}");
        Ok(())
    }

    /// Whether a request is of a playback that was there before.
    fn goes_on(&self, row: &Request) -> bool {
        self.truth.titles.requests.values().any(|other| other.key == row.key && other.order < row.order)
    }

    fn title_refused(&self, input: &Input, id: RequestId, row: &Request, reason: RefuseReason) -> Verdict {
        let titles = &self.truth.titles;
        let user = row.viewing.user;
        let early = self.allowance.early;
        let again = titles
            .refusals
            .get(&row.player())
            .is_some_and(|(last, at)| *last == reason && self.now <= *at + REFUSAL_MEMORY + early);
        let so = match reason {
            RefuseReason::Draining => titles.draining,
            RefuseReason::AccountExpired => titles.limits(user).is_some_and(|limits| {
                !limits.enabled || limits.until.is_some_and(|until| until.has_come(self.now + early))
            }),
            RefuseReason::Kicked => {
                let kicked = matches!(input, Input::Kick { .. });
                let block = titles.blocks.get(&row.player());
                kicked || block.is_some_and(|(_, until)| self.now < *until + early)
            }
            RefuseReason::Preempted => {
                let at = titles.eased.get(&row.player()).copied().max(titles.eased_other);
                let block = titles.settings.preempted_block + early + self.allowance.slack;
                at.is_some_and(|at| self.now <= at + block) || self.may_give_way(row)
            }
            RefuseReason::PlaybackOver => {
                let token = row.ask.as_ref().and_then(|ask| ask.token);
                let over = token.and_then(|token| titles.over.get(&token));
                let foreign = token.and_then(|token| titles.tokens.get(&token)).is_some_and(|playback| {
                    let viewing = titles.playbacks[playback].viewing;
                    (viewing.user, viewing.item) != (row.viewing.user, row.viewing.item)
                });
                // A player that begins anew leaves its addresses behind.
                let anew = !titles.traits(row.viewing.item).own_starts && token.is_some();
                // Of one that was ended before anything was fetched for it, only whoever waited for it was told.
                let told = titles.requests.values().any(|other| {
                    let same = token.is_some() && other.ask.as_ref().and_then(|ask| ask.token) == token;
                    same && other.fetches == 0 && other.refused == Some(RefuseReason::UserLimit)
                });
                anew || foreign
                    || told
                    || over.is_some_and(|at| self.now <= *at + titles.settings.ended_memory + early)
                    || self.may_be_over(row)
            }
            RefuseReason::NotFound => row.ask.as_ref().is_none_or(|ask| {
                ask.account.is_some() || ask.providers.iter().all(|own| own.0 as usize >= titles.providers.len())
            }),
            RefuseReason::Superseded => {
                // What an address says goes before who asks: a player may go on with what another one began.
                let token = row.ask.as_ref().and_then(|ask| ask.token);
                let playback = token.and_then(|token| titles.playbacks.get(titles.tokens.get(&token)?));
                let players = [Some(row.player()), playback.map(|own| own.player())];
                titles.requests.values().any(|other| {
                    let same = players.contains(&Some(other.player()));
                    other.order > row.order && same && other.want() == Some(Want::Rest)
                })
            }
            RefuseReason::Suppressed => {
                titles.settings.strategies.iter().any(|strategy| strategy.as_str().starts_with("evict"))
            }
            RefuseReason::ProviderFailed => row.failed || row.fetches > 0 || self.may_have_failed(row),
            RefuseReason::InVain => row.in_vain || titles.vain.is_full(self.now, &row.player()),
            RefuseReason::TooManyRequests => {
                let parts =
                    titles.open.iter().map(|own| &titles.requests[own]).filter(|other| {
                        other.key == row.key && other.stage.waits() && other.want() == Some(Want::Part)
                    });
                row.want() == Some(Want::Part) && parts.count() > PARTS
            }
            RefuseReason::Busy => {
                // All of one playback wait for one permit, and whoever only looks does not wait for one.
                let same = titles.requests.values().any(|other| {
                    other.key == row.key && self.not_before_now(other.asked + titles.settings.permit_wait)
                });
                let looks = row.want() == Some(Want::Look) && titles.settings.cleanup_capacity < 1000;
                same || looks
                    || self.not_before_now(row.asked + titles.settings.permit_wait)
                    || titles.open.len() > titles.settings.cleanup_capacity
            }
            RefuseReason::UserLimit => {
                let limits = titles.limits(user);
                let most = limits.map_or(0, |limits| (limits.max_connections + limits.soft_connections) as usize);
                let counted = titles.at_most(user, id, self.now);
                let bounded = limits.is_some_and(|limits| limits.max_connections > 0) && counted >= most;
                again || bounded || counted + 1 >= titles.settings.sessions_per_user
            }
            RefuseReason::ProviderLimit => {
                if again || row.ask.is_none() {
                    return Ok(());
                }
                self.own_account(id, row)?;
                return self.provider_limit(id, row);
            }
            RefuseReason::AccountsOver => {
                let channel = titles.channels.values().find(|own| row.viewing.item.feed() == Some(own.feed));
                let providers = row.ask.as_ref().map(|ask| &ask.providers).or(channel.map(|own| &own.providers));
                providers.is_some_and(|providers| !providers.iter().any(|own| self.surely_serves(*own)))
            }
            RefuseReason::StartTimeout | RefuseReason::NoSource | RefuseReason::TooManyViewers => row.ask.is_none(),
            _ => false,
        };
        holds!(so, "play-13", "{id:?} is refused for {reason:?}: {row:?}");
        Ok(())
    }

    /// Whether a provider has an account that may be used, whatever the time is to the core.
    fn surely_serves(&self, provider: ProviderId) -> bool {
        let upto = self.now + self.allowance.early;
        self.truth.titles.accounts.iter().any(|account| {
            let settings = &account.settings;
            let lasts = settings.until.is_none_or(|until| !until.has_come(upto));
            account.provider == provider && settings.enabled && lasts
        })
    }

    /// Whether the connection of one that ends in this very call was given up before, since nothing came over it in its time.
    fn was_due(&self, row: &Request) -> bool {
        let own = row.allocation.and_then(|id| self.truth.titles.allocations.get(&id));
        let given_up = own.is_some_and(|own| own.dropped == Some(self.now));
        row.stage == Stage::Finishing && row.counts() && row.forwarded.is_none() && given_up
    }

    fn not_before_now(&self, at: Time) -> bool {
        self.now + self.allowance.early >= at
    }

    /// Whether what a request belongs to may have given way without that being told of it.
    fn may_give_way(&self, row: &Request) -> bool {
        self.truth.titles.accounts.iter().any(|account| account.eased == Some(self.now))
            || row.want() == Some(Want::Look)
    }

    /// Whether what a request belongs to may have been ended without that being told of its token.
    fn may_be_over(&self, row: &Request) -> bool {
        let titles = &self.truth.titles;
        let token = row.ask.as_ref().and_then(|ask| ask.token);
        let playback = token.and_then(|token| titles.tokens.get(&token)).and_then(|id| titles.playbacks.get(id));
        let ended = playback.and_then(|row| row.ended);
        // Of one of which nothing was seen nothing is told when it ends.
        let unseen = playback.is_some_and(|row| !row.started);
        unseen
            || ended.is_some_and(|(reason, _)| !matches!(reason, ViewerEnd::Left | ViewerEnd::Done | ViewerEnd::Idle))
    }

    fn may_have_failed(&self, row: &Request) -> bool {
        let titles = &self.truth.titles;
        let told = titles.failures.get(&row.player()).filter(|_| row.names_no_account());
        told.is_some_and(|at| self.now <= *at + REFUSAL_MEMORY + self.allowance.early)
            || titles.requests.values().any(|other| other.key == row.key && other.failed)
    }

    /// How many that wait may have been granted a connection of an account that they do not open yet, since its provider may still
    /// count what was closed.
    fn pausing(&self, row: &Request, number: AccountId, account: &super::truth::Account) -> usize {
        let titles = &self.truth.titles;
        let upto = self.now - self.allowance.early - self.allowance.slack;
        if account.closed.is_none_or(|at| upto > at + LATE) {
            return 0;
        }
        let may = |other: &&Request| {
            let of_it = other.ask.as_ref().is_some_and(|ask| {
                ask.want != Want::Look
                    && ask.providers.contains(&account.provider)
                    && ask.account.is_none_or(|own| own == number || !titles.is_firm(other.viewing.item))
            });
            of_it && other.stage.waits() && other.key != row.key
        };
        let waiting = || titles.open.iter().map(|id| &titles.requests[id]).filter(|own| own.stage.waits());
        let keys: BTreeSet<_> = waiting().filter(may).map(|row| row.key).collect();
        // A channel has one for all who wait for it, and for those who watched when it lost the one it had.
        let channels = titles.channels.values().filter(|own| own.providers.contains(&account.provider));
        let channels = channels.filter(|own| {
            let of_it = |row: &Request| row.ask.is_none() && row.viewing.item.feed() == Some(own.feed);
            own.open.is_empty() && titles.open.iter().map(|id| &titles.requests[id]).any(of_it)
        });
        keys.len() + channels.count()
    }

    /// Judges a refusal for want of an account.
    fn provider_limit(&self, id: RequestId, row: &Request) -> Verdict {
        let titles = &self.truth.titles;
        let Some(ask) = &row.ask else { return Ok(()) };
        let usable = |(number, account): (usize, &super::truth::Account)| {
            let number = AccountId(number as u32);
            let of_it = ask.providers.contains(&account.provider);
            let firm = titles.is_firm(row.viewing.item) && ask.account.is_some_and(|own| own != number);
            let settings = &account.settings;
            let valid =
                settings.enabled && settings.until.is_none_or(|until| !until.has_come(self.now + self.allowance.early));
            (of_it && !firm && valid).then_some((number, account.clone()))
        };
        // One that was tried in vain is not tried again, and one that a playback stays with is the only one.
        let tried = row.fetches > 0 || row.failed;
        let stays = titles.is_firm(row.viewing.item) && row.playback.is_some() || self.has_account(row);
        if tried || stays {
            return Ok(());
        }
        let mut closing = false;
        let mut weaker = None;
        // Whoever waits for its own connection to be closed may have been granted another already.
        let granted = titles.allocations.values().filter(|own| own.closed.is_none() && !own.is_used()).count();
        for (number, account) in titles.accounts.iter().enumerate().filter_map(usable) {
            let limit = account.limit as usize;
            let upto = self.now - self.allowance.early - self.allowance.slack;
            let kept = titles.playbacks.iter().filter(|(playback, row)| {
                let window = titles.traits(row.viewing.item).window;
                let until = row.stirred + window;
                row.confirmed.is_some_and(|(_, own)| own == number)
                    && upto <= until
                    && !window.is_zero()
                    && titles.allocations_of(Holder::Playback(**playback)).next().is_none()
            });
            let kept = kept.count();
            let used = account.open.len() + kept + granted + self.pausing(row, number, &account);
            let cooling = titles.providers[account.provider.0 as usize].cooling;
            let cools = account.closed.is_some_and(|at| upto <= at + cooling);
            let just = account.closed == Some(self.now) || account.eased == Some(self.now);
            holds!(
                limit > 0 && used >= limit || cools || just,
                "account-4",
                "{id:?} finds no account, and {number:?} has {limit}, of which {used} are used"
            );
            for allocation in &account.open {
                let used_by = &titles.allocations[allocation];
                closing |= !used_by.is_used();
                // What rests first comes too late.
                let in_time = cooling < titles.settings.preemption_wait;
                // Nor does one help where there are more than there may be.
                if in_time
                    && account.before.is_none()
                    && account.open.len() + kept <= limit
                    && used_by.is_used()
                    && used_by.granted < row.since
                    && self.surely_weaker(used_by.holder, row)
                {
                    weaker = Some((number, *allocation));
                }
            }
        }
        let looks = row.want() == Some(Want::Look);
        holds!(
            weaker.is_none() || closing || looks,
            "account-4",
            "{id:?} finds no account, and a weaker one holds {weaker:?}"
        );
        Ok(())
    }

    /// Whether a request's playback is bound to an account already.
    fn has_account(&self, row: &Request) -> bool {
        let titles = &self.truth.titles;
        let of_it = |own: &super::truth::Playback| own.player() == row.player() && own.confirmed.is_some();
        titles.requests.values().any(|other| other.key == row.key && other.account.is_some())
            || titles.playbacks.values().any(of_it)
    }

    /// The strongest that a user's claim can be with any of these places.
    fn strengths(&self, user: UserId, places: Vec<Place>) -> Vec<Strength> {
        let limits = self.truth.titles.limits(user).cloned().unwrap_or_default();
        let strength = |place: Place| Strength {
            place,
            priority: if place == Place::Normal { limits.priority } else { limits.soft_priority },
        };
        places.into_iter().map(strength).collect()
    }

    /// The strongest and the weakest that a holder can be; `None`: it is there for nobody.
    fn claims(&self, holder: Holder) -> Option<(Strength, Strength)> {
        let titles = &self.truth.titles;
        let bounds = |all: Vec<Strength>| Some((all.iter().min().copied()?, all.iter().max().copied()?));
        match holder {
            Holder::Probe(_) => Some((Strength::PROBE, Strength::PROBE)),
            Holder::Playback(id) => {
                let row = titles.playbacks.get(&id)?;
                bounds(self.strengths(row.viewing.user, titles.places(id, row.viewing.user)))
            }
            Holder::Source(id) => {
                let feed = titles.sources.get(&id)?.feed;
                let users = titles.open.iter().map(|own| &titles.requests[own]);
                let users = users.filter(|row| row.viewing.item.feed() == Some(feed)).map(|row| row.viewing.user);
                let anonymous = PlaybackId::from_parts(u32::MAX, u32::MAX);
                bounds(users.flat_map(|user| self.strengths(user, titles.places(anonymous, user))).collect())
            }
        }
    }

    /// Judges why somebody gives way.
    fn gives_way(&self, input: &Input, holder: Holder, by: Holder, why: GivesWay) -> Verdict {
        let titles = &self.truth.titles;
        match why {
            GivesWay::Probe => holds!(matches!(holder, Holder::Probe(_)), "account-3", "{holder:?} is no probe"),
            GivesWay::Lingering => {
                let Holder::Source(id) = holder else {
                    holds!(false, "account-3", "{holder:?} lingers, and is no source");
                    return Ok(());
                };
                let leaves = |request: &RequestId| match titles.requests[request].stage {
                    Stage::Seen(own) => matches!(input, Input::Leave { viewer } if *viewer == own),
                    _ => false,
                };
                let mut seen = titles.sources.get(&id).into_iter().flat_map(|row| titles.seen(row.feed));
                let seen = seen.find(|request| !leaves(request));
                holds!(seen.is_none(), "account-3", "{holder:?} lingers, and {seen:?} watches it");
            }
            GivesWay::Silent => {
                let since = titles.silent_since(holder);
                let so = since.is_none_or(|at| self.not_before_now(at + titles.settings.starting_deadline));
                holds!(so, "account-3", "{holder:?} gives way to {by:?} as silent since {since:?}");
            }
            GivesWay::Weaker => {
                let Some((_, weakest)) = self.claims(holder) else { return Ok(()) };
                let strongest = match by {
                    Holder::Playback(id) if !titles.playbacks.contains_key(&id) => None,
                    by => self.claims(by).map(|(strongest, _)| strongest),
                };
                let so = strongest.is_none_or(|strongest| strongest < weakest);
                holds!(so, "account-3", "{holder:?}, {weakest:?}, gives way to {by:?}, {strongest:?}");
            }
        }
        Ok(())
    }

    fn surely_weaker(&self, holder: Holder, row: &Request) -> bool {
        // Whoever wishes may have the weakest of its places.
        let anonymous = PlaybackId::from_parts(u32::MAX, u32::MAX);
        let places = self.truth.titles.places(row.playback.unwrap_or(anonymous), row.viewing.user);
        let Some(weakest) = self.strengths(row.viewing.user, places).into_iter().max() else { return false };
        self.claims(holder).is_some_and(|(strongest, _)| weakest < strongest)
    }

    fn title_cut(&self, input: &Input, id: RequestId, row: &Request, reason: ViewerEnd) -> Verdict {
        let titles = &self.truth.titles;
        let so = match reason {
            ViewerEnd::Shutdown => titles.draining,
            ViewerEnd::Superseded => titles.requests.values().any(|other| {
                // Or by one that names its playback by its token.
                let named = row.playback.is_some() && titles.named(other) == row.playback;
                other.order > row.order
                    && (other.key == row.key || other.player() == row.player() || named)
                    && other.want().is_some_and(|want| matches!(want, Want::Rest | Want::Part | Want::Setup))
            }),
            ViewerEnd::Kicked => matches!(input, Input::Kick { .. }),
            ViewerEnd::Evicted => {
                titles.settings.strategies.iter().any(|strategy| strategy.as_str().starts_with("evict"))
            }
            ViewerEnd::Limit => true,
            ViewerEnd::Preempted => true,
            ViewerEnd::GraceOver => titles.has_instant_grace(),
            ViewerEnd::Expired => {
                let until = titles.limits(row.viewing.user).and_then(|limits| limits.until);
                let so = until.is_some_and(|until| self.not_before_now(until.time()));
                holds!(so, "play-18", "{id:?} is cut as expired, its user may play until {until:?}");
                true
            }
            // It is over for others' reasons, or nothing came of it.
            ViewerEnd::Failed | ViewerEnd::Idle | ViewerEnd::Left => {
                let granted = row.allocation.and_then(|id| titles.allocations.get(&id)).map(|row| row.granted);
                let given_up = titles.accounts.iter().any(|account| account.eased == Some(self.now));
                let late = granted.is_some_and(|at| self.not_before_now(at + titles.settings.starting_deadline));
                late || given_up || row.failed
            }
            _ => false,
        };
        holds!(so, "play-13", "{id:?} is cut as {reason:?}: {row:?}");
        Ok(())
    }

    fn title_note(&self, input: &Input, note: &Note) -> Verdict {
        let titles = &self.truth.titles;
        match *note {
            Note::AccountPreempted { account, holder, by, why } => {
                holds!((account.0 as usize) < titles.accounts.len(), "account-3", "{account:?} is none");
                holds!(holder != by, "account-3", "{holder:?} gives way to itself");
                self.gives_way(input, holder, by, why)
            }
            Note::AccountGraced { holder: Holder::Source(_), .. } => {
                let cools = |user: UserId| {
                    // What is refused as soon as it is heard of has not waited.
                    let waited = |(from, at): &&(Time, Time)| {
                        *from + self.allowance.early + self.allowance.slack < *at && *at < self.now
                    };
                    let fallen = titles.fallen.get(&user).filter(waited);
                    fallen.is_some_and(|(_, at)| self.now + self.allowance.early < *at + titles.settings.grace_cooldown)
                };
                let mut live = titles.open.iter().map(|own| &titles.requests[own]).filter(|row| row.ask.is_none());
                let all = live.clone().count() > 0 && live.all(|row| cools(row.viewing.user));
                holds!(
                    !all,
                    "account-10",
                    "a live stream waits by grace, the last ones were in vain: {:?}",
                    titles.fallen
                );
                Ok(())
            }
            Note::PlaybackStarted { playback, user, .. } | Note::PlaybackPromoted { playback, user } => {
                let known = titles.playbacks.get(&playback).map(|row| row.viewing.user);
                holds!(
                    known.is_none_or(|known| known == user),
                    "play-4",
                    "playback {playback} is of {known:?}, not of {user:?}"
                );
                Ok(())
            }
            Note::PlaybackEnded { playback, .. } => {
                let ended = titles.playbacks.get(&playback).and_then(|row| row.ended);
                holds!(
                    ended.is_none_or(|(reason, _)| reason == ViewerEnd::Kicked),
                    "play-13",
                    "playback {playback} ends again after {ended:?}"
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Judges how titles and accounts stand after each call.
    pub fn titles_standing(&self, edge: &Edge) -> Verdict {
        let titles = &self.truth.titles;
        if titles.users.is_empty() {
            return Ok(());
        }
        if let Some((latest, id)) = titles.waits.first() {
            let stage = titles.requests.get(id).map(|row| row.stage);
            holds!(self.now <= *latest, "play-16", "{id:?} has no answer by {latest:?}, is {stage:?}");
        }
        if let Some((latest, id)) = titles.starts.first() {
            let row = titles.allocations.get(id);
            holds!(self.now <= *latest, "account-8", "nothing came over allocation {id} by {latest:?}: {row:?}");
        }
        if titles.users.len() <= FEW {
            titles.accounts.iter().try_for_each(|account| self.grace_is_over(account))?;
            for (user, limits) in titles.users.iter().filter(|(_, limits)| self.is_over(limits.until)) {
                let own = |id: &&RequestId| {
                    let row = &titles.requests[id];
                    row.viewing.user == *user && row.want() != Some(Want::Look)
                };
                let plays = titles.open.iter().find(own);
                holds!(plays.is_none(), "play-18", "{plays:?} of {user:?} goes on, expired: {limits:?}");
            }
            self.title_places(edge)?;
        }
        Ok(())
    }

    /// Judges that no account bears one connection more than it has for longer than a grace.
    fn grace_is_over(&self, account: &super::truth::Account) -> Verdict {
        let titles = &self.truth.titles;
        if account.open.len() <= account.limit as usize {
            return Ok(());
        }
        for id in &account.open {
            let row = &titles.allocations[id];
            let latest = row.granted + titles.settings.grace + self.allowance.slack * 2;
            let lasts = row.over && row.is_used() && self.now > latest;
            holds!(!lasts, "account-9", "allocation {id} is one more than there are, since {:?}", row.granted);
        }
        Ok(())
    }

    /// Judges that no user uses more places than it has.
    fn title_places(&self, edge: &Edge) -> Verdict {
        let titles = &self.truth.titles;
        for (user, limits) in titles.users.iter().map(|(user, limits)| (*user, limits)) {
            let room = edge.playback();
            let used = [Place::Normal, Place::Soft, Place::Grace].map(|place| room.used(user, place));
            let (max, soft) = (limits.max_connections, limits.soft_connections);
            let grace = u32::from(titles.has_instant_grace());
            let so = (max == 0 || used[0] <= max) && used[1] <= soft && used[2] <= grace;
            holds!(so, "play-1", "{user:?} uses {used:?} of {max} and {soft} places");
        }
        Ok(())
    }

    /// Judges what is dear to judge.
    pub fn titles_all(&self, edge: &Edge) -> Verdict {
        let titles = &self.truth.titles;
        titles.accounts.iter().try_for_each(|account| self.grace_is_over(account))?;
        for (user, limits) in titles.users.iter().map(|(user, limits)| (*user, limits)) {
            let most =
                (limits.max_connections + limits.soft_connections + u32::from(titles.has_instant_grace())) as usize;
            let counted = titles.at_least(user);
            holds!(limits.max_connections == 0 || counted <= most, "play-1", "{user:?} plays {counted} of {most}");
        }
        for id in &titles.open {
            let row = &titles.requests[id];
            if let Some(allocation) = row.allocation.filter(|_| row.stage == Stage::Fetching) {
                let dropped = titles.allocations[&allocation].dropped;
                holds!(
                    dropped.is_none(),
                    "account-6",
                    "{id:?} is fetched over allocation {allocation}, given up at {dropped:?}"
                );
            }
            self.part_in_time(*id, row)?;
        }
        for account in &titles.accounts {
            for id in &account.open {
                let row = &titles.allocations[id];
                self.stands(edge, *id, row.holder, row.request)?;
            }
        }
        self.account_tables(edge)?;
        self.title_places(edge)?;
        self.titles_standing(edge)
    }

    /// A part waits only for others of its playback.
    fn part_in_time(&self, id: RequestId, row: &Request) -> Verdict {
        let titles = &self.truth.titles;
        if row.latest.is_some() || row.stage != Stage::Waiting {
            return Ok(());
        }
        let same: Vec<&Request> = titles.requests.values().filter(|other| other.key == row.key).collect();
        let busy = same.iter().any(|other| other.stage == Stage::Fetching);
        let last = same.iter().filter(|other| other.order < row.order || other.stage == Stage::Over);
        let since = last.map(|other| other.since).max().unwrap_or_default().max(row.since).max(row.asked);
        let latest = since + titles.patience(row) + Duration::from_secs(3);
        holds!(busy || self.now <= latest, "play-16", "{id:?} waits since {since:?}, and for nothing");
        Ok(())
    }

    /// Somebody stands behind a connection.
    fn stands(&self, edge: &Edge, id: AllocationId, holder: Holder, request: Option<RequestId>) -> Verdict {
        let titles = &self.truth.titles;
        let row = &titles.allocations[&id];
        if !row.is_used() {
            return Ok(());
        }
        let so = match holder {
            Holder::Playback(playback) => edge.playback().get(playback).is_some(),
            Holder::Probe(probe) => titles.requests.get(&probe).is_some_and(|row| row.stage.is_open()),
            Holder::Source(source) => titles.sources.get(&source).is_some_and(|row| !row.gone),
        };
        let fetched = request.and_then(|request| titles.requests.get(&request));
        let used = fetched.is_none_or(|row| row.stage.is_open());
        holds!(so && used, "account-6", "allocation {id} stands and is of {holder:?}, which is over: {row:?}");
        Ok(())
    }

    /// How many playbacks of users that play titles the core has, and how many of these have a permit.
    pub fn title_rows(&self, edge: &Edge) -> (usize, usize) {
        let titles = &self.truth.titles;
        let rows = titles.users.keys().flat_map(|user| edge.playback().of_user(*user).map(|(_, row)| row.state));
        let (mut all, mut permitted) = (0, 0);
        for state in rows {
            all += 1;
            permitted += usize::from(!matches!(state, State::Queued(_)));
        }
        (all, permitted)
    }

    /// How many permits may be held for what is no playback any more, or never was one.
    pub fn loose_permits(&self) -> usize {
        let titles = &self.truth.titles;
        let looks = titles.open.iter().filter(|id| titles.requests[id].want() == Some(Want::Look)).count();
        looks + titles.accounts.iter().map(|account| account.open.len()).sum::<usize>()
    }

    /// Judges the tables of accounts.
    fn account_tables(&self, edge: &Edge) -> Verdict {
        let (titles, room) = (&self.truth.titles, edge.accounts());
        for state in room.accounts() {
            let account = &titles.accounts[state.account.0 as usize];
            let open = account.open.len();
            holds!(state.limit == account.limit, "account-2", "{state:?} may have {}", account.limit);
            let most = (state.limit + u32::from(state.graced)).max(account.before.map_or(0, |(before, _)| before));
            holds!(state.limit == 0 || state.used <= most, "account-2", "{state:?}");
            holds!(state.used as usize >= open, "account-2", "{open} are open of {state:?}");
        }
        let mut holders = std::collections::BTreeSet::new();
        for (id, lease) in room.leases() {
            holds!(holders.insert(lease.holder), "account-5", "{:?} has a second lease", lease.holder);
            let so = match lease.holder {
                Holder::Playback(playback) => edge.playback().get(playback).is_some(),
                Holder::Source(source) => titles.sources.get(&source).is_none_or(|row| !row.gone),
                Holder::Probe(_) => false,
            };
            holds!(so, "account-5", "{id:?} is of {:?}, which is over", lease.holder);
            let late = lease.state == LeaseState::Starting && lease.deadline + self.allowance.slack < self.now;
            holds!(!late, "account-8", "{lease:?} should be over");
        }
        Ok(())
    }

    /// Judges that nothing is left of any title.
    pub fn titles_rest(&self, edge: &Edge) -> Verdict {
        let titles: &Titles = &self.truth.titles;
        holds!(titles.open.is_empty(), "play-13", "never answered, or never ended: {:?}", titles.open);
        let open: Vec<_> = titles.accounts.iter().flat_map(|account| &account.open).collect();
        holds!(open.is_empty(), "account-5", "connections that are granted and not closed: {open:?}");
        let channels = edge.pull().tuned_channels().count();
        holds!(channels == 0, "account-5", "{channels} channels of titles are left");
        let room = edge.accounts();
        let left = (room.allocations().count(), room.leases().count(), room.waiting(), room.timer_count());
        holds!(left == (0, 0, 0, 0), "account-5", "allocations, leases, wishes and deadlines left: {left:?}");
        for state in room.accounts() {
            let left = (state.used, state.reserved, state.resting);
            holds!(left == (0, 0, 0), "account-5", "used, reserved and resting of {:?}: {left:?}", state.account);
        }
        Ok(())
    }
}
