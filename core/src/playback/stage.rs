//! Viewers of titles, driven by hand in simulated time, and providers that count connections and enforce their limits.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use super::{Item, Place, State};
use crate::account::LeaseState;
use crate::config::{Account, Config, Endpoint, Playback, Provider, Strategy, User};
use crate::input::{
    AccountId, AllocationId, Ask, Client, EndpointId, Env, Evidence, Failure, FeedId, Grant, Input, Note, Output,
    PlaybackId, ProviderId, RefuseReason, RequestId, SessionId, SourceId, TitleId, Token, UserId, ViewerEnd, ViewerId,
    Viewing, Want, Writer,
};
use crate::time::Time;
use crate::twins::Twins;

/// Something else each time.
struct Outside(u64);

impl Env for Outside {
    fn activity(&mut self, _session: SessionId) -> Evidence {
        Evidence::default()
    }

    fn entropy(&mut self) -> [u8; 16] {
        self.0 += 1;
        u128::from(self.0).to_be_bytes()
    }
}

/// What a provider does with whoever asks it with one of its accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Sends at once.
    Good,
    /// Takes the connection and sends nothing.
    Mute,
    /// Says no at once.
    Fails(Failure),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its response flows, or waits for the provider.
    Fetched(Fetched),
    No(RefuseReason),
    /// Its response was cut.
    Cut(ViewerEnd),
    /// It watches a feed.
    Joined(ViewerId),
    /// Its response was ended by the test.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub playback: Option<PlaybackId>,
    pub token: Option<Token>,
    pub index: u32,
    pub account: Option<AccountId>,
}

struct Connection {
    account: AccountId,
    playback: Option<PlaybackId>,
    /// When it will be closed.
    closes: Option<u64>,
    /// Whether the provider counts it.
    counted: bool,
}

pub(super) struct Stage {
    pub edge: Twins,
    outside: Outside,
    pub now: u64,
    requests: u64,
    /// What became of each request, and when.
    fates: BTreeMap<RequestId, (u64, Fate)>,
    wants: BTreeMap<RequestId, Want>,
    grants: BTreeMap<RequestId, Grant>,
    connections: BTreeMap<AllocationId, Connection>,
    /// Sources that are open, in order.
    pub sources: BTreeMap<SourceId, Grant>,
    /// What an account's provider does; good where nothing stands.
    pub origins: BTreeMap<AccountId, Origin>,
    /// How long a provider takes to close a connection.
    pub closing: u64,
    /// How long a provider goes on counting a connection that is closed: it refuses others meanwhile with 403.
    pub late: u64,
    /// When a connection of an account was last closed that counted.
    closed: BTreeMap<AccountId, u64>,
    /// The most connections that were open at once, over all accounts.
    pub peak: usize,
    /// Accounts in the order in which they were used.
    pub used: Vec<AccountId>,
    pub notes: Vec<Note>,
    pub ended: Vec<(ViewerId, ViewerEnd)>,
    pub cut: usize,
}

pub(super) const A: u8 = 1;
pub(super) const B: u8 = 2;

pub(super) fn user(max_connections: u32, soft_connections: u32) -> User {
    User { max_connections, soft_connections, ..User::default() }
}

pub(super) fn with(strategies: &[Strategy]) -> Playback {
    Playback { strategies: strategies.to_vec(), ..Playback::default() }
}

/// A provider with accounts of so many connections each.
pub(super) fn provider(limits: &[u32]) -> Provider {
    let account = |max: &u32| Account { max_connections: *max, ..Account::default() };
    Provider { accounts: limits.iter().map(account).collect(), ..Provider::default() }
}

pub(super) fn vod(title: u64) -> Item {
    Item::Vod(TitleId(title))
}

pub(super) fn hls(title: u64) -> Item {
    Item::Hls(TitleId(title))
}

pub(super) fn catchup(title: u64) -> Item {
    Item::Catchup(TitleId(title))
}

impl Stage {
    pub fn new(
        users: impl IntoIterator<Item = User>,
        providers: impl IntoIterator<Item = Provider>,
        playback: Playback,
    ) -> Self {
        let endpoints = ["one", "two"].map(|name| Endpoint { name: name.into(), ..Endpoint::default() });
        let (users, providers) = (users.into_iter().collect(), providers.into_iter().collect());
        Stage::of(Config { endpoints: endpoints.into(), users, providers, playback, ..Config::default() })
    }

    pub fn of(config: Config) -> Self {
        Stage {
            edge: Twins::new(config),
            outside: Outside(0),
            now: 0,
            requests: 0,
            fates: BTreeMap::new(),
            wants: BTreeMap::new(),
            grants: BTreeMap::new(),
            connections: BTreeMap::new(),
            sources: BTreeMap::new(),
            origins: BTreeMap::new(),
            closing: 0,
            late: 0,
            closed: BTreeMap::new(),
            peak: 0,
            used: Vec::new(),
            notes: Vec::new(),
            ended: Vec::new(),
            cut: 0,
        }
    }

    pub fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.edge.handle(Time::from_micros(self.now * 1000), input, &mut self.outside);
            while let Some(output) = self.edge.poll() {
                self.output(output, &mut inputs);
            }
            self.check();
        }
    }

    fn output(&mut self, output: Output, inputs: &mut Vec<Input>) {
        match output {
            Output::Fetch { request, playback, token, index, grant } => {
                let account = grant.map(|grant| grant.account);
                let before =
                    self.fates.insert(request, (self.now, Fate::Fetched(Fetched { playback, token, index, account })));
                assert!(
                    matches!(before, None | Some((_, Fate::Fetched(_)))) && self.wants.contains_key(&request),
                    "{request:?} is fetched after {before:?}"
                );
                let Some(grant) = grant else { return self.answer(request, None, inputs) };
                self.grants.insert(request, grant);
                self.used.push(grant.account);
                let connection = Connection { account: grant.account, playback, closes: None, counted: true };
                assert!(self.connections.insert(grant.allocation, connection).is_none(), "one connection a grant");
                self.peak = self.peak.max(self.connections.len());
                self.answer(request, Some(grant.account), inputs);
            }
            Output::Drop { allocation } => {
                let now = self.now;
                let closes = now + self.closing;
                let connection = self.connections.get_mut(&allocation).expect("what is dropped is open");
                assert!(connection.closes.replace(closes).is_none(), "dropped twice");
                if self.closing == 0 {
                    self.close(allocation);
                    inputs.push(Input::Closed { allocation });
                }
            }
            Output::Open { source, grant: Some(grant), .. } => {
                self.sources.insert(source, grant);
                let connection = Connection { account: grant.account, playback: None, closes: None, counted: true };
                self.connections.insert(grant.allocation, connection);
            }
            Output::Close { source } => {
                if let Some(Grant { allocation, .. }) = self.sources.remove(&source) {
                    self.output(Output::Drop { allocation }, inputs);
                }
            }
            Output::Refuse { request, reason } => {
                let before = self.fates.insert(request, (self.now, Fate::No(reason)));
                assert!(
                    matches!(before, None | Some((_, Fate::Fetched(_)))),
                    "{request:?} is answered after {before:?}"
                );
            }
            Output::Cut { request, reason } => {
                self.cut += 1;
                let before = self.fates.insert(request, (self.now, Fate::Cut(reason)));
                assert!(matches!(before, Some((_, Fate::Fetched(_)))), "{request:?} is cut after {before:?}");
            }
            Output::Joined { request, viewer } => {
                self.fates.insert(request, (self.now, Fate::Joined(viewer)));
            }
            Output::ViewerEnd { viewer, reason } => self.ended.push((viewer, reason)),
            Output::Note(note) => self.notes.push(note),
            _ => {}
        }
    }

    pub fn close(&mut self, allocation: AllocationId) {
        if let Some(connection) = self.connections.remove(&allocation).filter(|own| own.counted) {
            self.closed.insert(connection.account, self.now);
        }
    }

    /// The provider's answer, as far as it comes by itself.
    fn answer(&mut self, request: RequestId, account: Option<AccountId>, inputs: &mut Vec<Input>) {
        let late = account.and_then(|account| self.closed.get(&account)).is_some_and(|at| self.now < at + self.late);
        let refused = self.grants.get(&request).and_then(|grant| self.connections.get_mut(&grant.allocation));
        if let Some(connection) = refused.filter(|_| late) {
            connection.counted = false;
            return inputs.push(Input::Failed { request, failure: Failure::Status(403) });
        }
        let origin = account.and_then(|account| self.origins.get(&account)).copied().unwrap_or(Origin::Good);
        match origin {
            Origin::Good if self.wants[&request] != Want::Look => inputs.push(Input::Forwarded { request }),
            Origin::Good | Origin::Mute => {}
            Origin::Fails(failure) => inputs.push(Input::Failed { request, failure }),
        }
    }

    /// What has to hold at every moment (spec: playback §9, 1-6).
    fn check(&self) {
        let (room, accounts) = (self.edge.playback(), self.edge.accounts());
        let mut rows = 0;
        for (index, limits) in self.edge.config().users.iter().enumerate() {
            let user = UserId(index as u32);
            let used = [Place::Normal, Place::Soft, Place::Grace].map(|place| room.used(user, place));
            let counted = |place| room.of_user(user).filter(|(_, own)| own.place() == Some(place)).count() as u32;
            assert_eq!(used, [Place::Normal, Place::Soft, Place::Grace].map(counted));
            assert!(limits.max_connections == 0 || used[0] <= limits.max_connections);
            assert!(used[1] <= limits.soft_connections && used[2] <= 1);
            rows += room.of_user(user).count();
        }
        assert_eq!(rows, room.playbacks().count());
        assert!(room.permits() <= self.edge.config().playback.cleanup_capacity);
        for (id, playback) in room.playbacks() {
            let open = self.connections.values().filter(|own| own.playback == Some(id) && own.closes.is_none()).count();
            assert!(open <= 1, "{id} has {open} connections open");
            let (running, waiting) = playback.claims();
            assert!(waiting <= super::title::WAITING, "{id}: {waiting} wait");
            assert!(playback.state != State::Active || running + waiting > 0, "{id} is active with no request");
            assert!(!matches!(playback.state, State::Preserved(_)) || running + waiting == 0);
        }
        let config = self.edge.config();
        let limits = config.providers.iter().flat_map(|provider| &provider.accounts);
        for (limits, account) in limits.zip(accounts.accounts()) {
            let open = self.connections.values().filter(|own| own.account == account.account).count() as u32;
            let extra = u32::from(limits.overlap);
            assert!(limits.max_connections == 0 || open <= limits.max_connections + extra, "{open} connections open");
            assert!(account.used >= open, "a connection that nobody counts");
        }
        let mut holders = BTreeSet::new();
        for (_, lease) in accounts.leases() {
            assert!(holders.insert(lease.holder), "two leases of {:?}", lease.holder);
            if let crate::account::Holder::Playback(id) = lease.holder {
                assert!(room.get(id).is_some(), "a lease of nobody");
            }
            let now = Time::from_micros(self.now * 1000);
            assert!(lease.state != LeaseState::Starting || lease.deadline + Duration::from_millis(1) > now);
        }
    }

    /// Time passes.
    pub fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        loop {
            let due = self.edge.deadline().map(|at| at.as_micros().div_ceil(1000));
            let closes = self.connections.iter().filter_map(|(id, own)| Some((own.closes?, *id))).min();
            match (due, closes) {
                (due, Some((at, allocation))) if at <= end && due.is_none_or(|due| at <= due) => {
                    self.now = self.now.max(at);
                    self.close(allocation);
                    self.input(Input::Closed { allocation });
                }
                (Some(due), _) if due <= end => {
                    self.now = self.now.max(due);
                    self.input(Input::Tick);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub fn feed(&self, endpoint: u32) -> FeedId {
        self.edge.feed_of(EndpointId(endpoint), 0).expect("an endpoint")
    }

    /// The feed of a title of the first provider's, about to be watched.
    pub fn tune(&mut self, title: u64) -> FeedId {
        let title = TitleId(title);
        self.input(Input::Tune { title, providers: vec![ProviderId(0)] });
        let channel = self.edge.pull().tuned(title).expect("a channel");
        self.edge.pull().feed_of(channel).expect("its feed")
    }

    /// A user wants a feed.
    pub fn watch(&mut self, user: u32, feed: FeedId, address: u8) -> RequestId {
        let request = self.next();
        let viewing = Self::viewing(user, Item::LiveTs(feed), address);
        self.input(Input::Play { request, viewing });
        request
    }

    /// Media comes from the source that was opened last.
    pub fn media(&mut self, feed: FeedId) {
        let source = *self.sources.keys().next_back().expect("a source");
        let data = bytes::Bytes::from_static(&[0x47; 188]);
        self.input(Input::Opened { source });
        self.input(Input::Media { feed, from: Writer::Source(source), data, random_access: Some(0) });
    }

    /// The viewer of a request that was let in.
    pub fn viewer(&self, request: RequestId) -> ViewerId {
        match self.fate(request) {
            Some(Fate::Joined(viewer)) => viewer,
            other => panic!("{request:?}: {other:?}"),
        }
    }

    pub fn viewing(user: u32, item: Item, address: u8) -> Viewing {
        let client = Client { address: IpAddr::from([10, 0, 0, address]), agent: 0 };
        Viewing { user: UserId(user), item, client }
    }

    /// An ask of the first provider.
    pub fn ask(viewing: Viewing, want: Want) -> Ask {
        Ask { viewing, want, token: None, account: None, providers: vec![ProviderId(0)] }
    }

    pub fn next(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    pub fn fetch(&mut self, ask: Ask) -> RequestId {
        let request = self.next();
        self.wants.insert(request, ask.want);
        self.input(Input::Fetch { request, ask });
        request
    }

    /// All of a title that is left, by a user at an address.
    pub fn rest(&mut self, user: u32, item: Item, address: u8) -> RequestId {
        self.fetch(Self::ask(Self::viewing(user, item, address), Want::Rest))
    }

    pub fn part(&mut self, user: u32, item: Item, address: u8) -> RequestId {
        self.fetch(Self::ask(Self::viewing(user, item, address), Want::Part))
    }

    pub fn look(&mut self, user: u32, item: Item, address: u8) -> RequestId {
        self.fetch(Self::ask(Self::viewing(user, item, address), Want::Look))
    }

    /// The playlist with which something begins, which is sent to its end; what is known of it.
    pub fn playlist(&mut self, user: u32, item: Item, address: u8) -> Fetched {
        let request = self.fetch(Self::ask(Self::viewing(user, item, address), Want::Setup));
        let fetched = self.fetched(request);
        self.finish(request, ViewerEnd::Done);
        fetched
    }

    /// What a playlist names.
    pub fn child(&mut self, user: u32, item: Item, of: Fetched, want: Want) -> RequestId {
        let ask = Self::ask(Self::viewing(user, item, A), want);
        self.fetch(Ask { token: of.token, account: of.account, ..ask })
    }

    /// A segment that is sent to its end.
    pub fn segment(&mut self, user: u32, item: Item, of: Fetched) -> RequestId {
        let request = self.child(user, item, of, Want::Part);
        self.fetched(request);
        self.finish(request, ViewerEnd::Done);
        request
    }

    pub fn play(&mut self, user: u32, endpoint: u32, address: u8) -> RequestId {
        self.watch(user, self.feed(endpoint), address)
    }

    pub fn finish(&mut self, request: RequestId, reason: ViewerEnd) {
        self.fates.insert(request, (self.now, Fate::Over));
        self.input(Input::Finished { request, reason });
    }

    /// The provider has sent all of it and closes, while the client still takes it.
    pub fn sent(&mut self, request: RequestId) {
        let Some(Grant { allocation, .. }) = self.grants.get(&request).copied() else { return };
        self.connections.remove(&allocation);
        self.input(Input::Closed { allocation });
    }

    pub fn hangup(&mut self, request: RequestId) {
        self.fates.insert(request, (self.now, Fate::Over));
        self.input(Input::Hangup { request });
    }

    pub fn kick(&mut self, playback: PlaybackId, block: u64) {
        self.input(Input::Kick { playback, block: block * 1000 });
    }

    pub fn fate(&self, request: RequestId) -> Option<Fate> {
        self.fates.get(&request).map(|(_, fate)| *fate)
    }

    pub fn at(&self, request: RequestId) -> u64 {
        self.fates[&request].0
    }

    pub fn refused(&self, request: RequestId) -> Option<RefuseReason> {
        match self.fate(request)? {
            Fate::No(reason) => Some(reason),
            _ => None,
        }
    }

    pub fn fetched(&self, request: RequestId) -> Fetched {
        match self.fate(request) {
            Some(Fate::Fetched(fetched)) => fetched,
            other => panic!("{request:?} at {}: {other:?}", self.now),
        }
    }

    pub fn is_fetched(&self, request: RequestId) -> bool {
        matches!(self.fate(request), Some(Fate::Fetched(_)))
    }

    pub fn playback(&self, request: RequestId) -> PlaybackId {
        self.fetched(request).playback.expect("a playback")
    }

    pub fn state(&self, id: PlaybackId) -> State {
        self.edge.playback().get(id).expect("a playback").state
    }

    /// How many of a user's places are used.
    pub fn counted(&self, user: u32) -> u32 {
        let room = self.edge.playback();
        [Place::Normal, Place::Soft, Place::Grace].map(|place| room.used(UserId(user), place)).iter().sum()
    }

    /// How many connections a provider counts.
    pub fn open(&self) -> usize {
        self.connections.len()
    }

    pub fn requests_open(&self) -> Vec<RequestId> {
        let open = |fate: &Fate| matches!(fate, Fate::Fetched(_));
        self.fates.iter().filter(|(_, (_, fate))| open(fate)).map(|(request, _)| *request).collect()
    }

    pub fn requests_waiting(&self) -> Vec<RequestId> {
        self.wants.keys().filter(|request| !self.fates.contains_key(request)).copied().collect()
    }

    pub fn noted(&self, wanted: impl Fn(&Note) -> bool) -> usize {
        self.notes.iter().filter(|note| wanted(note)).count()
    }

    /// Nothing is left of anything, in any table.
    pub fn is_empty(&self) {
        let (room, accounts) = (self.edge.playback(), self.edge.accounts());
        let tables = [
            ("playbacks", room.playbacks.len()),
            ("requests", room.requests.len()),
            ("viewers", room.viewers.len()),
            ("tokens", room.tokens.len()),
            ("players", room.players.len()),
            ("probes", room.probes.len()),
            ("closings", room.closings.len()),
            ("leaving", room.leaving.len()),
            ("strengths", room.strengths.len()),
            ("permits", room.permits()),
            ("timers", room.timer_count()),
            ("held", room.users.iter().map(|user| user.held.len()).sum()),
            ("rows of users", room.users.iter().map(|user| user.playbacks.len()).sum()),
            ("allocations", accounts.allocations().count()),
            ("leases", accounts.leases().count()),
            ("wishes", accounts.waiting()),
            ("deadlines of accounts", accounts.timer_count()),
            ("reserved", accounts.accounts().map(|account| (account.used + account.reserved) as usize).sum()),
            ("connections", self.connections.len()),
        ];
        let left: Vec<_> = tables.iter().filter(|(_, count)| *count > 0).collect();
        assert!(left.is_empty(), "left: {left:?}");
    }
}
