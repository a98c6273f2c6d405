//! Titles of providers that count their accounts' connections themselves, driven by hand in simulated time.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

use super::Phase;
use super::stage::{Fate, Origin, Outside, STEP, ms};
use crate::account::Strength;
use crate::config::{Config, Live, Playback, Provider};
use crate::input::{
    AccountId, AllocationId, ChannelId, FeedId, Input, Loss, Note, Output, ProviderId, RequestId, SourceId, TitleId,
    ViewerEnd, ViewerId, Writer,
};
use crate::playback::Place;
use crate::twins::Twins;

struct Connection {
    title: u64,
    provider: u32,
    account: AccountId,
    allocation: AllocationId,
    opened: u64,
    agreed: bool,
    /// Whether its provider counts it.
    counted: bool,
}

pub(super) struct House {
    pub edge: Twins,
    outside: Outside,
    pub now: u64,
    /// What a provider does with whoever asks it for a title; `Good` where nothing is said.
    pub origins: BTreeMap<(u64, u32), Origin>,
    /// Accounts that somebody else uses up, and what their providers answer meanwhile.
    pub taken: BTreeMap<u32, Loss>,
    /// Whose connections stand and send nothing at present.
    pub muted: Vec<(u64, u32)>,
    connections: BTreeMap<SourceId, Connection>,
    /// Connections that are being closed, when they are, and whether their providers count them.
    closing: Vec<(u64, AllocationId, AccountId, bool)>,
    /// For how long providers go on counting what is closed, and what they answer meanwhile.
    pub late: (u64, Loss),
    /// What they go on counting, and until when.
    ghosts: Vec<(AccountId, u64)>,
    /// How long closing takes.
    pub closes_in: u64,
    /// Title, provider, account, when.
    pub opens: Vec<(u64, u32, u32, u64)>,
    pub fates: BTreeMap<u64, Fate>,
    pub ended: Vec<(ViewerId, ViewerEnd, u64)>,
    pub notes: Vec<Note>,
    requests: u64,
    /// Of which title media went into a feed last, and when.
    pub media: BTreeMap<u64, (u32, u64)>,
}

impl House {
    pub fn new(providers: Vec<Provider>, playback: Playback) -> Self {
        let live = Live { progress_timeout: core::time::Duration::from_secs(24 * 3600), ..Live::default() };
        House {
            edge: Twins::new(Config { providers, playback, live, ..Config::default() }),
            outside: Outside(1),
            now: 0,
            origins: BTreeMap::new(),
            taken: BTreeMap::new(),
            muted: Vec::new(),
            connections: BTreeMap::new(),
            closing: Vec::new(),
            late: (0, Loss::Limit),
            ghosts: Vec::new(),
            closes_in: 100,
            opens: Vec::new(),
            fates: BTreeMap::new(),
            ended: Vec::new(),
            notes: Vec::new(),
            requests: 0,
            media: BTreeMap::new(),
        }
    }

    /// One provider with accounts of these limits.
    pub fn of(limits: &[u32]) -> Self {
        House::many(&[limits])
    }

    /// Providers with accounts of these limits.
    pub fn many(all: &[&[u32]]) -> Self {
        House::new(all.iter().map(|limits| provider(limits)).collect(), Playback::default())
    }

    pub fn input(&mut self, input: Input) {
        self.edge.handle(ms(self.now), input, &mut self.outside);
        self.drain();
    }

    /// As playbacks say it.
    pub fn set_strength(&mut self, title: u64, strength: Option<Strength>) {
        let feed = self.feed(title);
        self.edge.set_strength(ms(self.now), feed, strength, &mut self.outside);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.edge.poll() {
            match output {
                Output::Open { source, channel, index, grant } => {
                    let grant = grant.expect("a provider is asked with an account");
                    let (title, providers) = self.edge.pull().title_of(channel).unwrap();
                    let (title, provider) = (title.0, providers[index as usize].0);
                    let account = self.edge.accounts().account(grant.account).unwrap();
                    assert_eq!(account.provider.0, provider, "an account of that provider");
                    self.opens.push((title, provider, grant.account.0, self.now));
                    let (opened, agreed, counted) = (self.now, false, false);
                    let (account, allocation) = (grant.account, grant.allocation);
                    let connection = Connection { title, provider, account, allocation, opened, agreed, counted };
                    self.connections.insert(source, connection);
                }
                Output::Close { source } => self.shut(source),
                Output::Joined { request, viewer } => {
                    assert!(self.fates.insert(request.0, Fate::Joined(viewer, self.now)).is_none(), "answered twice");
                }
                Output::Refuse { request, reason } => {
                    assert!(self.fates.insert(request.0, Fate::Refused(reason, self.now)).is_none(), "answered twice");
                }
                Output::ViewerEnd { viewer, reason } => self.ended.push((viewer, reason, self.now)),
                Output::Note(note) => self.notes.push(note),
                _ => {}
            }
        }
        for account in self.edge.accounts().accounts() {
            let open = self.connections.values().filter(|each| each.account == account.account).count();
            let closing = self.closing.iter().filter(|each| each.2 == account.account).count();
            let used = (open + closing) as u32;
            assert!(account.limit == 0 || used <= account.limit, "{used} of {}", account.limit);
            let pull = self.edge.pull();
            let waits = |id| pull.state(id).is_some_and(|state| state.waits);
            let resting = pull.tuned_channels().filter(|(id, _)| waits(*id)).count() as u32;
            assert!(account.used.abs_diff(used) <= resting, "what the provider counts");
        }
    }

    /// A connection is being closed.
    fn shut(&mut self, source: SourceId) {
        let connection = self.connections.remove(&source).expect("closed once");
        let Connection { allocation, account, counted, .. } = connection;
        self.closing.push((self.now + self.closes_in, allocation, account, counted));
    }

    pub fn tune(&mut self, title: u64, providers: &[u32]) {
        let providers = providers.iter().copied().map(ProviderId).collect();
        self.input(Input::Tune { title: TitleId(title), providers });
    }

    pub fn channel(&self, title: u64) -> Option<ChannelId> {
        self.edge.pull().tuned(TitleId(title))
    }

    pub fn feed(&self, title: u64) -> FeedId {
        self.edge.pull().feed_of(self.channel(title).unwrap()).unwrap()
    }

    pub fn phase(&self, title: u64) -> Option<Phase> {
        Some(self.edge.pull().state(self.channel(title)?)?.phase)
    }

    /// Somebody wants to watch a title of these providers.
    pub fn watch(&mut self, title: u64, providers: &[u32]) -> u64 {
        self.tune(title, providers);
        self.requests += 1;
        let (request, feed) = (RequestId(self.requests), self.feed(title));
        self.input(Input::Join { request, feed });
        self.requests
    }

    pub fn fate(&self, request: u64) -> Option<Fate> {
        self.fates.get(&request).copied()
    }

    /// A viewer that is let in.
    pub fn viewer(&mut self, title: u64, providers: &[u32]) -> ViewerId {
        let request = self.watch(title, providers);
        self.joined(request, 15_000)
    }

    /// A viewer that is let in and is so strong.
    pub fn viewer_of(&mut self, title: u64, providers: &[u32], strength: Option<Strength>) -> ViewerId {
        self.tune(title, providers);
        self.set_strength(title, strength);
        self.viewer(title, providers)
    }

    /// A viewer that is let in in so many ms.
    pub fn joined(&mut self, request: u64, within: u64) -> ViewerId {
        let until = self.now + within;
        while self.fate(request).is_none() && self.now < until {
            self.run(STEP);
        }
        match self.fate(request) {
            Some(Fate::Joined(viewer, _)) => viewer,
            other => panic!("{other:?}"),
        }
    }

    pub fn leave(&mut self, viewer: ViewerId) {
        self.input(Input::Leave { viewer });
    }

    pub fn hangup(&mut self, request: u64) {
        self.input(Input::Hangup { request: RequestId(request) });
    }

    /// How many connections stand.
    pub fn open(&self) -> usize {
        self.connections.len()
    }

    /// Time passes.
    pub fn run(&mut self, span: u64) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            while self.edge.deadline().is_some_and(|at| at <= ms(self.now)) {
                self.input(Input::Tick);
            }
            let now = self.now;
            for (_, allocation, account, counted) in
                self.closing.extract_if(.., |(at, ..)| *at <= now).collect::<Vec<_>>()
            {
                if counted {
                    self.ghosts.push((account, now + self.late.0));
                }
                self.edge.handle(ms(now), Input::Closed { allocation }, &mut self.outside);
            }
            self.drain();
            let sources: Vec<SourceId> = self.connections.keys().copied().collect();
            for source in sources {
                self.act(source);
            }
        }
    }

    /// What a provider does on one of its connections.
    fn act(&mut self, source: SourceId) {
        let Some(connection) = self.connections.get_mut(&source) else { return };
        if !connection.counted {
            let (account, now) = (connection.account, self.now);
            self.ghosts.retain(|(_, until)| now < *until);
            if self.ghosts.iter().any(|(own, _)| *own == account) {
                return self.lose(source, self.late.1);
            }
            if let Some(loss) = self.taken.get(&account.0) {
                return self.lose(source, *loss);
            }
            connection.counted = true;
        }
        let key = (connection.title, connection.provider);
        let (age, origin) = (self.now - connection.opened, self.origins.get(&key).copied().unwrap_or(Origin::Good));
        let gone = match origin {
            Origin::Fails(loss, after) | Origin::Plays(after, loss) => (age >= after).then_some(loss),
            _ => None,
        };
        if let Some(loss) = gone {
            return self.lose(source, loss);
        }
        if matches!(origin, Origin::Fails(..) | Origin::Mute) {
            return;
        }
        if !core::mem::replace(&mut connection.agreed, true) {
            return self.input(Input::Opened { source });
        }
        if self.muted.contains(&key) || origin == Origin::Silent {
            return;
        }
        let random = age % 1000 == 200;
        let (from, feed) = (Writer::Source(source), self.feed(key.0));
        if self.edge.takes(ms(self.now), feed, from, random) {
            self.media.insert(key.0, (key.1, self.now));
            let data = Bytes::from_static(&[0x47; 188]);
            self.input(Input::Media { feed, from, data, random_access: random.then_some(0) });
        } else {
            self.input(Input::Arrived { source });
        }
    }

    fn lose(&mut self, source: SourceId, loss: Loss) {
        self.shut(source);
        self.input(Input::Lost { source, loss });
    }

    /// The connections of a title break.
    pub fn break_off(&mut self, title: u64, loss: Loss) {
        let of_title = self.connections.iter().filter(|(_, each)| each.title == title);
        let sources: Vec<SourceId> = of_title.map(|(source, _)| *source).collect();
        for source in sources {
            self.lose(source, loss);
        }
    }

    pub fn noted(&self, wanted: impl Fn(&Note) -> bool) -> usize {
        self.notes.iter().filter(|note| wanted(note)).count()
    }

    /// Nothing is left anywhere.
    pub fn is_empty(&self) -> bool {
        let (pull, accounts, feeds) = (self.edge.pull(), self.edge.accounts(), self.edge.feeds());
        let pull = (pull.source_count(), pull.held(), pull.timer_count(), pull.tuned_channels().count());
        let room = (accounts.allocations().count(), accounts.leases().count(), accounts.waiting());
        let timers = (accounts.timer_count(), feeds.timer_count(), feeds.viewer_count());
        (pull, room, timers) == ((0, 0, 0, 0), (0, 0, 0), (0, 0, 0)) && self.open() == 0 && self.closing.is_empty()
    }
}

/// How strong the user of a normal place with this priority is.
pub(super) fn strength(priority: i8) -> Option<Strength> {
    Some(Strength { place: Place::Normal, priority })
}

/// A provider with accounts of these limits.
pub(super) fn provider(limits: &[u32]) -> Provider {
    let account = |limit: &u32| crate::config::Account { max_connections: *limit, ..Default::default() };
    Provider { name: String::from("provider"), accounts: limits.iter().map(account).collect(), ..Provider::default() }
}
