//! Who asked for which title, who was granted which account, who plays what: by inputs and outputs, and by the rules of accounts.
//!
//! Users that play titles are judged by what must never be and by what must be in time, not place by place: what a playback waits
//! for is the core's own affair as long as nobody has more than it may and everybody has an answer.

mod follow;
mod midway;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_core::account::Holder;
use holdfast_core::config::{self, Config, Strategy};
use holdfast_core::input::{
    AccountId, AllocationId, Ask, ChannelId, FeedId, Grant, Input, Note, Output, PlaybackId, ProviderId, RefuseReason,
    RequestId, SourceId, TitleId, Token, UserId, ViewerEnd, ViewerId, Viewing, Want,
};
use holdfast_core::playback::{Binding, Item, Place, Traits};
use holdfast_core::time::Time;

use super::super::playback::truth::Player;
use super::vain::Vain;

/// How long what is over is remembered.
const REMEMBERED: Duration = Duration::from_secs(120);
/// The longest that a connection takes to be closed.
pub const CLOSING: Duration = Duration::from_millis(2_600);
/// The longest that what was granted is not opened since its provider may still count what was closed.
pub const LATE: Duration = Duration::from_secs(2);

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has no answer, or the last one came to nothing.
    Waiting,
    /// The core is told now that what it fetched came to nothing.
    Failing,
    Fetching,
    /// The core is told now that it is over.
    Finishing,
    /// Its client went away just now.
    HangingUp,
    /// Its connection is given up now, before anything of it was forwarded.
    Dropped,
    /// It watches a live stream.
    Seen(ViewerId),
    Over,
}

impl Stage {
    /// Whether the core may still have something to say of it.
    pub fn is_open(self) -> bool {
        self != Stage::Over
    }

    /// Whether it waits for an answer.
    pub fn waits(self) -> bool {
        matches!(self, Stage::Waiting | Stage::Failing | Stage::HangingUp | Stage::Dropped)
    }
}

/// What requests of one playback have in common before the core says which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Token(Token),
    Player(Player),
    /// It begins one of its own.
    New(RequestId),
}

#[derive(Clone, Debug)]
pub struct Request {
    pub viewing: Viewing,
    /// What of a title it asks for; `None` for a live stream.
    pub ask: Option<Ask>,
    pub key: Key,
    /// Counts requests as they come.
    pub order: u64,
    pub asked: Time,
    /// Since when it is at its stage.
    pub since: Time,
    /// Since when its player's requests have waited, one after the other: what was granted to one goes on to the next.
    pub waits_since: Time,
    pub stage: Stage,
    pub playback: Option<PlaybackId>,
    pub allocation: Option<AllocationId>,
    pub account: Option<AccountId>,
    pub forwarded: Option<Time>,
    pub stalled: Option<Time>,
    pub fetches: u32,
    pub refused: Option<RefuseReason>,
    pub cut: Option<ViewerEnd>,
    /// Whether a provider did not give it.
    pub failed: bool,
    /// By when it has to have an answer.
    pub latest: Option<Time>,
    /// Whether providers had been asked for its player in vain as often as they may be, when it was made.
    pub in_vain: bool,
}

impl Request {
    pub fn want(&self) -> Option<Want> {
        self.ask.as_ref().map(|ask| ask.want)
    }

    pub fn player(&self) -> Player {
        (self.viewing.user, self.viewing.client, self.viewing.item)
    }

    /// Whether it asks for a title that any account may give.
    pub fn names_no_account(&self) -> bool {
        self.ask.as_ref().is_some_and(|ask| ask.account.is_none())
    }

    /// Whether it counts for its user.
    pub fn counts(&self) -> bool {
        matches!(self.want(), Some(Want::Rest | Want::Part) | None)
    }
}

#[derive(Clone, Debug)]
pub struct Playback {
    pub viewing: Viewing,
    pub token: Option<Token>,
    /// When it first had something fetched.
    pub began: Time,
    /// When something last happened to it.
    pub stirred: Time,
    /// When media last went to its client while its connection stood, and of which account.
    pub confirmed: Option<(Time, AccountId)>,
    /// When a provider last did not give it something.
    pub failed: Option<Time>,
    /// Which account it has, and since when it may have had it at the earliest; `None` when media came, or its requests were over.
    pub silent: Option<(AccountId, Time)>,
    /// Until when an account is surely kept for it while it has no connection.
    pub kept: Option<(AccountId, Time)>,
    /// Which place of its user it has, as far as that was told.
    pub place: Option<Place>,
    pub started: bool,
    pub ended: Option<(ViewerEnd, Time)>,
}

impl Playback {
    pub fn player(&self) -> Player {
        (self.viewing.user, self.viewing.client, self.viewing.item)
    }
}

/// One connection that was granted.
#[derive(Clone, Debug)]
pub struct Allocation {
    pub account: AccountId,
    pub holder: Holder,
    pub request: Option<RequestId>,
    pub granted: Time,
    pub confirmed: Option<Time>,
    /// When the core wanted it closed.
    pub dropped: Option<Time>,
    /// When the driver gave it up itself.
    pub let_go: Option<Time>,
    pub closed: Option<Time>,
    /// It was one more than the account has.
    pub over: bool,
}

impl Allocation {
    /// Whether somebody still uses it.
    pub fn is_used(&self) -> bool {
        self.dropped.is_none() && self.let_go.is_none() && self.closed.is_none()
    }
}

#[derive(Clone, Debug)]
pub struct Account {
    pub provider: ProviderId,
    pub settings: config::Account,
    /// How many connections it may have at a time: as configured, or fewer, since its provider said so; 0 = any number.
    pub limit: u32,
    /// What it could have before that became less, and since when; what was granted before is there still.
    pub before: Option<(u32, Time)>,
    /// What was granted and is not closed.
    pub open: BTreeSet<AllocationId>,
    /// When a connection was last closed, and of which title.
    pub closed: Option<Time>,
    /// When somebody last gave way, or its lease was over.
    pub eased: Option<Time>,
    pub grants: u64,
}

impl Account {
    /// Its provider allows so many connections; 0 = any number.
    fn allow(&mut self, now: Time, connections: u32) {
        let configured = self.settings.max_connections;
        let limit =
            if configured == 0 || connections == 0 { configured.max(connections) } else { configured.min(connections) };
        if limit == 0 {
            self.before = None;
        } else if self.limit == 0 || limit < self.limit {
            self.before = Some((self.most(), now));
        }
        if limit != self.limit {
            self.eased = Some(now);
        }
        self.limit = limit;
    }

    /// How many connections may be there, for all that it was before.
    pub fn most(&self) -> u32 {
        let most = if self.limit == 0 { u32::MAX } else { self.limit + u32::from(self.settings.overlap) };
        self.before.map_or(most, |(before, _)| before.max(most))
    }
}

/// A title that is, or was, watched as a live stream.
#[derive(Clone, Debug)]
pub struct Tuned {
    pub title: TitleId,
    pub feed: FeedId,
    pub providers: Vec<ProviderId>,
    pub open: BTreeSet<SourceId>,
    pub opens: u64,
    /// When it was last tuned, and when somebody last watched or asked.
    pub stirred: Time,
}

#[derive(Clone, Debug)]
pub struct Source {
    pub channel: ChannelId,
    pub feed: FeedId,
    pub allocation: AllocationId,
    pub gone: bool,
}

#[derive(Debug)]
pub struct Titles {
    pub settings: config::Playback,
    pub providers: Vec<config::Provider>,
    pub accounts: Vec<Account>,
    /// The users that play titles; others never do.
    pub users: BTreeMap<UserId, config::User>,
    pub requests: BTreeMap<RequestId, Request>,
    /// Those that are not over.
    pub open: BTreeSet<RequestId>,
    pub playbacks: BTreeMap<PlaybackId, Playback>,
    pub tokens: BTreeMap<Token, PlaybackId>,
    pub allocations: BTreeMap<AllocationId, Allocation>,
    pub channels: BTreeMap<ChannelId, Tuned>,
    pub sources: BTreeMap<SourceId, Source>,
    pub viewers: BTreeMap<ViewerId, RequestId>,
    /// How many of them watch streams of titles.
    tuned_viewers: usize,
    /// How many connections of channels of titles stand.
    pub tuned_sources: usize,
    /// Connections that are to be closed, or were let go, and are not closed.
    pub leaving: BTreeSet<AllocationId>,
    /// Those of slots and configured channels.
    feeds: BTreeSet<FeedId>,
    /// The longest that one of these is waited for.
    feeds_start: Duration,
    /// What became of those that the core ended.
    pub ends: BTreeMap<ViewerId, ViewerEnd>,
    /// Playbacks by token that were ended for good, and when.
    pub over: BTreeMap<Token, Time>,
    pub blocks: BTreeMap<Player, (Time, Time)>,
    /// Who gave way, and when.
    pub preempted: BTreeMap<Player, Time>,
    /// Who was asked to give way, whether anything was seen of it or not, and when.
    pub eased: BTreeMap<Player, Time>,
    /// When one gave way of whom no more is known than that.
    pub eased_other: Option<Time>,
    /// Who was made to give way.
    yielded: BTreeSet<Holder>,
    /// What a player was last refused for that is said again for a while.
    pub refusals: BTreeMap<Player, (RefuseReason, Time)>,
    /// From when until when a user last waited for an account of a live stream in vain.
    pub fallen: BTreeMap<UserId, (Time, Time)>,
    /// When a player was last told that no provider gave what it wanted, after they were asked.
    pub failures: BTreeMap<Player, Time>,
    /// How often providers were asked in vain.
    pub vain: Vain,
    /// By when who has to have an answer.
    pub waits: BTreeSet<(Time, RequestId)>,
    /// By when media has to have come, or the connection is given up.
    pub starts: BTreeSet<(Time, AllocationId)>,
    /// Requests whose connections are given up now.
    dropped: Vec<RequestId>,
    /// Whom an operator ends now.
    pub kicked: Option<(PlaybackId, Viewing)>,
    pub draining: bool,
    /// How late the driver may come.
    pub slack: Duration,
    orders: u64,
}

impl Titles {
    /// Users in `of_titles` play titles, and may watch `feeds`, too.
    pub fn new(config: &Config, of_titles: &BTreeSet<UserId>, feeds: BTreeSet<FeedId>) -> Self {
        let numbered = config.providers.iter().enumerate();
        let account = |(place, provider): (usize, &config::Provider)| {
            let account = move |settings: &config::Account| Account {
                provider: ProviderId(place as u32),
                settings: settings.clone(),
                limit: settings.max_connections,
                before: None,
                open: BTreeSet::new(),
                closed: None,
                eased: None,
                grants: 0,
            };
            provider.accounts.iter().map(account).collect::<Vec<_>>()
        };
        Titles {
            settings: config.playback.clone(),
            providers: config.providers.clone(),
            accounts: numbered.flat_map(account).collect(),
            users: of_titles.iter().filter_map(|id| Some((*id, config.users.get(id.0 as usize)?.clone()))).collect(),
            requests: BTreeMap::new(),
            open: BTreeSet::new(),
            playbacks: BTreeMap::new(),
            tokens: BTreeMap::new(),
            allocations: BTreeMap::new(),
            channels: BTreeMap::new(),
            sources: BTreeMap::new(),
            viewers: BTreeMap::new(),
            tuned_viewers: 0,
            tuned_sources: 0,
            leaving: BTreeSet::new(),
            feeds,
            feeds_start: config.channels.iter().map(|channel| channel.start_timeout).max().unwrap_or_default(),
            ends: BTreeMap::new(),
            over: BTreeMap::new(),
            blocks: BTreeMap::new(),
            preempted: BTreeMap::new(),
            eased: BTreeMap::new(),
            eased_other: None,
            yielded: BTreeSet::new(),
            refusals: BTreeMap::new(),
            fallen: BTreeMap::new(),
            failures: BTreeMap::new(),
            vain: Vain::default(),
            waits: BTreeSet::new(),
            starts: BTreeSet::new(),
            dropped: Vec::new(),
            kicked: None,
            draining: false,
            slack: Duration::ZERO,
            orders: 0,
        }
    }

    pub fn is_of(&self, user: UserId) -> bool {
        self.users.contains_key(&user)
    }

    /// The first of them; none where nobody does.
    pub fn first(&self) -> UserId {
        self.users.first_key_value().map_or(UserId(u32::MAX), |(user, _)| *user)
    }

    pub fn limits(&self, user: UserId) -> Option<&config::User> {
        self.users.get(&user)
    }

    pub fn traits(&self, item: Item) -> Traits {
        item.traits(&self.settings)
    }

    pub fn is_request(&self, request: RequestId) -> bool {
        self.requests.contains_key(&request)
    }

    /// Whether a request is for a slot or a configured channel, which is judged as such, too.
    pub fn watches(&self, request: RequestId) -> bool {
        let feed = self.requests.get(&request).filter(|row| row.ask.is_none()).and_then(|row| row.viewing.item.feed());
        feed.is_some_and(|feed| self.feeds.contains(&feed))
    }

    /// Whether an output about somebody who plays titles is about a feed that is none of a title.
    pub fn is_of_feeds(&self, output: &Output) -> bool {
        match output {
            Output::Refuse { request, .. } | Output::Joined { request, .. } => self.watches(*request),
            Output::ViewerEnd { viewer, .. } => self.viewers.get(viewer).is_some_and(|own| self.watches(*own)),
            _ => false,
        }
    }

    fn sees(&mut self, viewer: ViewerId, request: RequestId) {
        self.viewers.insert(viewer, request);
        self.tuned_viewers += usize::from(!self.watches(request));
    }

    /// A viewer is none any more without a word: by its token it was another one, or it was refused what it asked for first.
    pub fn mistaken(&mut self, now: Time, viewer: ViewerId) {
        if let Some(request) = self.sees_no_more(viewer) {
            self.stage(now, request, Stage::Over);
        }
    }

    fn sees_no_more(&mut self, viewer: ViewerId) -> Option<RequestId> {
        let request = self.viewers.remove(&viewer)?;
        self.tuned_viewers -= usize::from(!self.watches(request));
        Some(request)
    }

    /// Whether a channel is one of a title.
    pub fn is_tuned(&self, channel: ChannelId, configured: usize) -> bool {
        channel.0 as usize >= configured
    }

    /// Whether an output is about titles, or about users that play them.
    pub fn concerns(&self, output: &Output, configured: usize) -> bool {
        match output {
            Output::Fetch { .. } | Output::Cut { .. } | Output::Drop { .. } => true,
            Output::Refuse { request, .. } | Output::Joined { request, .. } => self.is_request(*request),
            Output::ViewerEnd { viewer, .. } => self.viewers.contains_key(viewer),
            Output::Open { channel, .. } => self.is_tuned(*channel, configured),
            Output::Close { source } | Output::SourceKeyFrame { source } => self.sources.contains_key(source),
            Output::Note(note) => match note {
                Note::PlaybackStarted { user, .. }
                | Note::PlaybackEnded { user, .. }
                | Note::PlaybackRefused { user, .. }
                | Note::PlaybackPromoted { user, .. }
                | Note::PlaybackEvicted { user, .. }
                | Note::PlaybackGraced { user, .. } => self.is_of(*user),
                Note::AccountGraced { .. }
                | Note::AccountPreempted { .. }
                | Note::AccountFailed { .. }
                | Note::AccountLate { .. }
                | Note::AccountOver { .. }
                | Note::AccountLost { .. } => true,
                Note::SourceOpening { channel, .. }
                | Note::SourceLost { channel, .. }
                | Note::ChannelStarted { channel, .. }
                | Note::ChannelSilent { channel, .. }
                | Note::ChannelBack { channel, .. }
                | Note::ChannelSwitched { channel, .. }
                | Note::ChannelEnded { channel, .. }
                | Note::ChannelOff { channel } => self.is_tuned(*channel, configured),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether an input names what is over, so that nothing may come of it.
    pub fn is_stale(&self, input: &Input) -> bool {
        let over = |request: &RequestId| {
            self.requests.get(request).is_some_and(|row| !matches!(row.stage, Stage::Fetching | Stage::Seen(_)))
        };
        match input {
            Input::Finished { request, .. } if self.is_tried(*request) => false,
            Input::Forwarded { request }
            | Input::Failed { request, .. }
            | Input::Finished { request, .. }
            | Input::Stalled { request } => over(request) || !self.is_request(*request),
            Input::Closed { allocation } => self.allocations.get(allocation).is_none_or(|row| row.closed.is_some()),
            _ => false,
        }
    }

    /// Whether a request waits that was fetched before.
    pub fn is_tried(&self, request: RequestId) -> bool {
        self.requests.get(&request).is_some_and(|row| row.stage == Stage::Waiting && row.fetches > 0)
    }

    /// The playback that a request names.
    pub fn named(&self, request: &Request) -> Option<PlaybackId> {
        self.tokens.get(&request.ask.as_ref()?.token?).copied()
    }

    /// The channel that a title has now.
    pub fn tuned(&self, feed: FeedId) -> Option<(ChannelId, &Tuned)> {
        self.channels.iter().find(|(_, row)| row.feed == feed).map(|(id, row)| (*id, row))
    }

    /// Who watches a title as a live stream.
    pub fn seen(&self, feed: FeedId) -> impl Iterator<Item = RequestId> {
        let seen = move |id: &RequestId| {
            let row = &self.requests[id];
            matches!(row.stage, Stage::Seen(_)) && row.viewing.item.feed() == Some(feed)
        };
        self.open.iter().copied().filter(seen)
    }

    /// Since when somebody may have had an account of which nothing came; `None` where that is not known.
    pub fn silent_since(&self, holder: Holder) -> Option<Time> {
        match holder {
            Holder::Playback(id) => {
                let row = self.playbacks.get(&id)?;
                let player = row.player();
                let waits = |row: &&Request| row.stage.waits() && row.player() == player;
                let waiting = self.requests.values().filter(waits).map(|row| row.waits_since);
                waiting.chain(row.silent.map(|(_, since)| since)).min().or(Some(Time::NEVER))
            }
            Holder::Source(_) => self.allocations_of(holder).map(|(_, row)| row.granted - LATE).min(),
            Holder::Probe(_) => Some(Time::NEVER),
        }
    }

    /// How many watch live streams of titles.
    pub fn watching(&self) -> usize {
        self.tuned_viewers
    }

    /// Whether a place by grace may be given at once.
    pub fn has_instant_grace(&self) -> bool {
        !self.settings.grace.is_zero() && self.settings.strategies.contains(&Strategy::GraceInstant)
    }

    /// How long a request may wait for its answer.
    pub fn patience(&self, request: &Request) -> Duration {
        let settings = &self.settings;
        let account = settings.grace.max(settings.preemption_wait);
        // Its own last connection is closed first, and that may take its time.
        let own = settings.permit_wait + settings.grace + account + self.slack * 4 + CLOSING;
        match request.ask {
            Some(_) => own,
            None if request.viewing.item.feed().is_some_and(|feed| self.feeds.contains(&feed)) => {
                own + self.feeds_start
            }
            None => {
                let start = self.providers.iter().map(|provider| provider.live.start_timeout).max();
                own + start.unwrap_or_default()
            }
        }
    }

    /// Requests of a playback that are being fetched.
    pub fn fetching(&self, playback: PlaybackId) -> impl Iterator<Item = (RequestId, &Request)> {
        let rows = self.open.iter().filter_map(|id| Some((*id, self.requests.get(id)?)));
        rows.filter(move |(_, row)| row.playback == Some(playback) && !row.stage.waits())
    }

    /// What is granted on an account and not closed yet to a playback.
    pub fn allocations_of(&self, holder: Holder) -> impl Iterator<Item = (AllocationId, &Allocation)> {
        let open = self.accounts.iter().flat_map(|account| &account.open);
        let rows = open.filter_map(|id| Some((*id, self.allocations.get(id)?)));
        rows.filter(move |(_, row)| row.holder == holder)
    }

    /// Playbacks for which an account is surely kept though they have no connection.
    pub fn kept(&self, account: AccountId, now: Time) -> impl Iterator<Item = PlaybackId> {
        let kept = move |(id, row): (&PlaybackId, &Playback)| {
            let (own, until) = row.kept?;
            (own == account && now < until && row.ended.is_none()).then_some(*id)
        };
        self.playbacks.iter().filter_map(kept)
    }

    /// How many requests there were.
    pub fn asked_so_far(&self) -> u64 {
        self.orders
    }

    /// Forgets what nothing can follow from any more.
    pub fn prune(&mut self, now: Time) {
        let old = |at: Time| at + REMEMBERED < now;
        self.requests.retain(|_, row| row.stage.is_open() || !old(row.since));
        self.allocations.retain(|_, row| row.closed.is_none_or(|at| !old(at)));
        let window = self.settings.hls_session_ttl.max(self.settings.catchup_session_ttl);
        let open: BTreeSet<PlaybackId> = self.open.iter().filter_map(|id| self.requests.get(id)?.playback).collect();
        let used: BTreeSet<Holder> = self.allocations.values().map(|row| row.holder).collect();
        self.playbacks.retain(|id, row| {
            let over = row.ended.map_or(row.stirred + window, |(_, at)| at);
            open.contains(id) || used.contains(&Holder::Playback(*id)) || !old(over)
        });
        let playbacks = &self.playbacks;
        self.tokens.retain(|_, playback| playbacks.contains_key(playback));
        self.sources.retain(|_, row| !row.gone || self.allocations.contains_key(&row.allocation));
        self.vain.prune(now);
    }

    fn stage(&mut self, now: Time, id: RequestId, stage: Stage) {
        let Some(row) = self.requests.get_mut(&id) else { return };
        (row.stage, row.since) = (stage, now);
        if stage == Stage::Waiting {
            row.waits_since = now;
        }
        if stage == Stage::Over {
            self.open.remove(&id);
        }
        if stage != Stage::Waiting {
            return;
        }
        let latest = now + self.patience(&self.requests[&id]);
        if let Some(row) = self.requests.get_mut(&id) {
            // A part waits for those before it, however long these take, and so does what goes on with a playback.
            let in_line =
                row.want() == Some(Want::Part) || row.want() == Some(Want::Setup) && !matches!(row.key, Key::New(_));
            row.latest = Some(latest).filter(|_| !in_line);
            self.waits.extend(row.latest.map(|latest| (latest, id)));
        }
    }

    /// Forgets by when something was to happen that has happened.
    fn tidy(&mut self) {
        while let Some((latest, id)) = self.waits.first().copied() {
            let waits = self.requests.get(&id).is_some_and(|row| row.stage.waits() && row.latest == Some(latest));
            if waits {
                break;
            }
            self.waits.pop_first();
        }
        while let Some((_, id)) = self.starts.first().copied() {
            if self.allocations.get(&id).is_some_and(|row| row.is_used() && row.confirmed.is_none()) {
                break;
            }
            self.starts.pop_first();
        }
    }

    fn asked(&mut self, now: Time, id: RequestId, viewing: Viewing, ask: Option<Ask>) {
        self.orders += 1;
        let own_starts = self.traits(viewing.item).own_starts;
        let key = match ask.as_ref().map(|ask| ask.token) {
            Some(_) if !own_starts => Key::Player((viewing.user, viewing.client, viewing.item)),
            Some(Some(token)) => Key::Token(token),
            Some(None) | None => Key::New(id),
        };
        let row = Request {
            viewing,
            ask,
            key,
            order: self.orders,
            asked: now,
            since: now,
            waits_since: now,
            stage: Stage::Waiting,
            playback: None,
            allocation: None,
            account: None,
            forwarded: None,
            stalled: None,
            fetches: 0,
            refused: None,
            cut: None,
            failed: false,
            latest: None,
            in_vain: self.vain.is_full(now, &(viewing.user, viewing.client, viewing.item)),
        };
        self.requests.insert(id, row);
        self.open.insert(id);
        self.stage(now, id, Stage::Waiting);
        let player = self.requests[&id].player();
        let same =
            self.open.iter().map(|id| &self.requests[id]).filter(|row| row.stage.waits() && row.player() == player);
        let waits_since = same.map(|row| row.waits_since).min().unwrap_or(now);
        self.requests.entry(id).and_modify(|row| row.waits_since = waits_since);
    }

    /// A provider says how many connections of an account it allows.
    pub(super) fn allowed(&mut self, now: Time, account: AccountId, connections: u32) {
        if let Some(account) = self.accounts.get_mut(account.0 as usize) {
            account.allow(now, connections);
        }
    }

    /// Whatever an account had beyond what it may have now is gone, whether it was heard of or not.
    fn settle_limit(&mut self, now: Time, account: AccountId) {
        // What is kept for those without a connection is there until their windows are over.
        let window =
            self.settings.hls_session_ttl.max(self.settings.catchup_session_ttl) + self.settings.starting_deadline;
        let unseen = LATE + CLOSING + window + self.slack * 2;
        let Some(account) = self.accounts.get_mut(account.0 as usize) else { return };
        let seen = account.before.is_some_and(|(_, at)| now > at + unseen);
        if seen && account.open.len() <= account.limit as usize {
            account.before = None;
        }
    }

    fn closed(&mut self, now: Time, id: AllocationId) {
        let Some(row) = self.allocations.get_mut(&id).filter(|row| row.closed.is_none()) else { return };
        row.closed = Some(now);
        self.leaving.remove(&id);
        let (request, of) = (row.request, row.account);
        let account = &mut self.accounts[of.0 as usize];
        account.open.remove(&id);
        account.closed = Some(now);
        self.settle_limit(now, of);
        let account = &mut self.accounts[of.0 as usize];
        // Where there are no more than there may be, none is one more.
        if account.open.len() <= account.limit as usize {
            let open = account.open.clone();
            open.iter().for_each(|id| {
                self.allocations.entry(*id).and_modify(|row| row.over = false);
            });
        }
        if let Some(request) = request
            && let Some(request) = self.requests.get_mut(&request)
            && request.allocation == Some(id)
        {
            request.allocation = None;
        }
    }

    /// The driver gives a connection up by itself.
    pub fn let_go(&mut self, now: Time, id: AllocationId) {
        if let Some(row) = self.allocations.get_mut(&id) {
            row.let_go.get_or_insert(now);
            self.leaves(id);
        }
    }

    fn leaves(&mut self, id: AllocationId) {
        if self.allocations.get(&id).is_some_and(|row| row.closed.is_none()) {
            self.leaving.insert(id);
        }
    }

    fn grant(&mut self, now: Time, grant: Grant, holder: Holder, request: Option<RequestId>) {
        let account = &mut self.accounts[grant.account.0 as usize];
        account.grants += 1;
        account.open.insert(grant.allocation);
        let over = account.limit > 0 && account.before.is_none() && account.open.len() > account.limit as usize;
        let row = Allocation {
            account: grant.account,
            holder,
            request,
            granted: now,
            confirmed: None,
            dropped: None,
            let_go: None,
            closed: None,
            over,
        };
        self.allocations.insert(grant.allocation, row);
    }

    fn playback_over(&mut self, now: Time, id: PlaybackId, reason: ViewerEnd) {
        let Some(row) = self.playbacks.get_mut(&id) else { return };
        row.kept = None;
        row.ended.get_or_insert((reason, now));
    }

    /// A playback is ended for good: what it was known by is not revived soon.
    fn for_good(&mut self, now: Time, id: PlaybackId) {
        if let Some(token) = self.playbacks.get(&id).and_then(|row| row.token) {
            self.over.entry(token).or_insert(now);
        }
    }

    /// A playback stands as somebody with this place, for all that was told. What only sets up has none, and where none is free
    /// it counts as soft.
    pub fn places(&self, id: PlaybackId, user: UserId) -> Vec<Place> {
        // A grace becomes a place without a word.
        let told = self.playbacks.get(&id).and_then(|row| row.place).filter(|place| *place != Place::Grace);
        if let Some(place) = told {
            return vec![place];
        }
        let mut places = vec![Place::Normal];
        let soft = self.limits(user).is_some_and(|limits| limits.max_connections > 0);
        places.extend(soft.then_some(Place::Soft));
        places.extend(self.has_instant_grace().then_some(Place::Soft));
        places
    }

    /// Everything of a user that may count: what is asked for or played, and what is kept for its player.
    pub fn at_most(&self, user: UserId, but: RequestId, now: Time) -> usize {
        let mut keys = BTreeSet::new();
        let rows = self.open.iter().filter(|id| **id != but).map(|id| &self.requests[id]);
        for row in rows.filter(|row| row.viewing.user == user && row.want() != Some(Want::Look)) {
            keys.insert((row.playback, row.playback.is_none().then_some(row.key)));
        }
        for (id, row) in &self.playbacks {
            let traits = self.traits(row.viewing.item);
            let until = row.stirred + traits.window + self.slack * 2;
            if row.viewing.user == user && row.ended.is_none_or(|(_, at)| at == now) && now <= until {
                keys.insert((Some(*id), None));
            }
        }
        keys.len()
    }

    /// What surely counts: what media went out to and is not over.
    pub fn at_least(&self, user: UserId) -> usize {
        let mut keys = BTreeSet::new();
        for row in self.open.iter().map(|id| &self.requests[id]).filter(|row| row.viewing.user == user) {
            let plays = match row.stage {
                Stage::Seen(_) => true,
                Stage::Fetching => row.counts() && row.forwarded.is_some(),
                _ => false,
            };
            if plays {
                keys.insert((row.playback, row.playback.is_none().then_some(row.key)));
            }
        }
        keys.len()
    }

    /// Whether it stays with its account.
    pub fn is_firm(&self, item: Item) -> bool {
        self.traits(item).account == Binding::Firm
    }
}
