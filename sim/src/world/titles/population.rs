//! Providers, their titles and the players of these in the random world: drawn from the seed.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_core::config::{self, Account, Channel, Config, Provider, User};
use holdfast_core::input::{
    AllocationId, Ask, Client, Failure, Input, PlaybackId, ProviderId, RefuseReason, RequestId, TitleId, UserId,
    ViewerEnd, Viewing, Want,
};
use holdfast_core::playback::Item;
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::chance::{Fault, expiry, pick, span};
use super::super::oracle::Broken;
use super::super::{Event, World};
use super::device::{Kind, Step, providers_of};

/// Providers of a run: in more than every third there are some.
pub fn accounts(dice: &mut SmallRng) -> Vec<Provider> {
    let ms = Duration::from_millis;
    let count = *pick(dice, &[0, 0, 0, 1, 1, 2]);
    let provider = |index: u32, dice: &mut SmallRng| {
        let no_input_timeout = ms(*pick(dice, &[1000, 3000]));
        let account = |_, dice: &mut SmallRng| Account {
            max_connections: *pick(dice, &[0, 1, 1, 1, 1, 2, 3]),
            priority: *pick(dice, &[0, 0, 0, 1]),
            enabled: dice.random_bool(0.95),
            until: expiry(dice, 0.05),
            overlap: dice.random_bool(0.3),
        };
        let accounts = (0..*pick(dice, &[1, 1, 2, 3])).map(|index| account(index, dice)).collect();
        let live = Channel {
            start_timeout: ms(*pick(dice, &[4000, 10_000])),
            connect_timeout: ms(*pick(dice, &[300, 1000, 3000])),
            no_input_timeout,
            retry_backoff_max: no_input_timeout * *pick(dice, &[1, 2, 5]),
            retries: *pick(dice, &[None, None, Some(2)]),
            stable_after: ms(*pick(dice, &[500, 2000])),
            failback: dice.random_bool(0.5),
            end_grace: ms(*pick(dice, &[0, 1000])),
            ..Channel::default()
        };
        Provider { name: format!("p{index}"), accounts, cooling: ms(*pick(dice, &[0, 0, 0, 300, 2000])), live }
    };
    (0..count).map(|index| provider(index, dice)).collect()
}

/// Users that play titles. The last one is stronger than all and may everything: by it is found out whether what is there can
/// be had.
pub fn title_users(dice: &mut SmallRng) -> Vec<User> {
    let user = |index: u32, dice: &mut SmallRng| User {
        name: format!("t{index}"),
        max_connections: *pick(dice, &[0, 0, 1, 1, 2]),
        soft_connections: *pick(dice, &[0, 0, 0, 1]),
        priority: *pick(dice, &[0, 0, 0, -5, 5]),
        soft_priority: *pick(dice, &[0, 3]),
        enabled: dice.random_bool(0.97),
        until: expiry(dice, 0.05),
    };
    let count = *pick(dice, &[1, 2, 3]);
    let tester = User { name: "tester".into(), priority: -100, ..User::default() };
    (0..count).map(|index| user(index, dice)).chain([tester]).collect()
}

/// How long what belongs to titles is kept.
pub fn title_settings(dice: &mut SmallRng, settings: &mut config::Playback) {
    let ms = Duration::from_millis;
    settings.ended_memory = ms(*pick(dice, &[2_000, 10_000, 600_000]));
    settings.hls_session_ttl = ms(*pick(dice, &[1_500, 5_000, 15_000]));
    settings.catchup_session_ttl = ms(*pick(dice, &[2_000, 10_000, 45_000]));
    settings.provider_affinity_ttl = ms(*pick(dice, &[0, 5_000, 120_000]));
    settings.starting_deadline = ms(*pick(dice, &[1_500, 5_000]));
    settings.preemption_wait = ms(*pick(dice, &[500, 1_500]));
    settings.preempted_block = ms(*pick(dice, &[0, 3_000]));
    settings.linger = ms(*pick(dice, &[0, 3_000]));
}

/// Adds what belongs to titles to a configuration, in some runs. Where the first user that plays titles stands.
pub fn configure(dice: &mut SmallRng, config: &mut Config) -> usize {
    let first = config.users.len();
    config.providers = accounts(dice);
    if config.providers.is_empty() {
        return first;
    }
    title_settings(dice, &mut config.playback);
    // Whose places are judged one by one shares no permits with others.
    if first > 0 {
        config.playback.cleanup_capacity = 4096;
    }
    config.users.extend(title_users(dice));
    first
}

impl World<'_> {
    pub(in super::super) fn populate_titles(&mut self, dice: &mut SmallRng) {
        let providers = self.providers.len() as u32;
        if providers == 0 {
            return;
        }
        self.patience = Duration::from_millis(*pick(dice, &[800, 3_000, 10_000]));
        self.live_every = Duration::from_millis(*pick(dice, &[100, 250]));
        self.titles = (0..*pick(dice, &[2, 3, 4])).map(|_| providers_of(dice, providers)).collect();
        for index in 0..self.providers.len() {
            let first = span(dice, 0, 8_000);
            let provider = &mut self.providers[index];
            provider.steadfast = dice.random_bool(0.3);
            if self.plan.strikes(Fault::ProviderCountsLate, dice) {
                provider.counts_late = Duration::from_millis(*pick(dice, &[200, 1_500]));
            }
            self.plan_event(self.now + first, Event::Provider { index });
        }
        self.say_accounts();
        let users = self.truth.titles.users.len() as u32 - 1;
        let titles = self.titles.len() as u64;
        // In some runs all players are of one kind.
        let one = dice.random_bool(0.3).then(|| *pick(dice, &Kind::ALL));
        for user in 0..users {
            for _ in 0..dice.random_range(1..=4) {
                let address = IpAddr::from([10, 0, 1, dice.random_range(1..=2)]);
                let client = Client { address, agent: dice.random_range(0..2) };
                let kind = one.unwrap_or(*pick(dice, &Kind::ALL));
                let title = TitleId(dice.random_range(0..titles));
                let user = UserId(self.truth.titles.first().0 + user);
                let (index, first) = (self.add_device(user, client, kind, title), span(dice, 0, 8_000));
                self.device_step(index, first, Step::Begin);
            }
        }
    }

    /// So many players of titles, of every kind, who take their time.
    pub(in super::super) fn invite(&mut self, count: usize) {
        (self.leisure, self.live_every) = (120, Duration::from_secs(10));
        let providers = self.providers.len() as u32;
        let mut dice = super::super::generator(self.seed, 50_000);
        self.titles = (0..60).map(|_| providers_of(&mut dice, providers)).collect();
        let (first, users) = (self.truth.titles.first().0, self.truth.titles.users.len());
        for index in 0..count {
            let user = UserId(first + (index % users) as u32);
            let client = Client { address: IpAddr::from([10, 0, 2, (index % 250) as u8]), agent: 0 };
            let title = TitleId(dice.random_range(0..60));
            let device = self.add_device(user, client, Kind::ALL[index % Kind::ALL.len()], title);
            self.device_step(device, span(&mut dice, 0, 8_000), Step::Begin);
        }
    }

    /// All of them go, and nobody comes any more.
    pub(in super::super) fn everybody_stops(&mut self) -> Result<(), Broken> {
        self.healed = true;
        self.leave_titles()?;
        self.run(self.now + self.longest_title() + Duration::from_secs(120))
    }

    fn say_accounts(&mut self) {
        let accounts = self.truth.titles.accounts.iter().zip(0..);
        let lines = accounts.map(|(row, number)| format!("account {number} of {:?}: {:?}", row.provider, row.settings));
        let titles = self.titles.iter().zip(0..).map(|(row, number)| format!("title {number}: {row:?}"));
        let users = self.truth.titles.users.iter();
        let users = users.map(|(user, row)| format!("user {}: {row:?}", user.0));
        let lines: Vec<String> =
            lines.chain(titles).chain(users).chain([format!("{:?}", self.truth.titles.settings)]).collect();
        lines.iter().for_each(|line| self.say(format_args!("{line}")));
    }

    /// Inputs about titles that name what never was.
    pub(in super::super) fn talk_nonsense_of_titles(&mut self, index: u32, generation: u32) -> Result<(), Broken> {
        if self.providers.is_empty() {
            return Ok(());
        }
        let unknown = RequestId(u64::from(generation) << 40);
        self.deliver(Input::Forwarded { request: unknown })?;
        self.deliver(Input::Failed { request: unknown, failure: Failure::Status(200) })?;
        self.deliver(Input::Finished { request: unknown, reason: ViewerEnd::Done })?;
        self.deliver(Input::Stalled { request: unknown })?;
        self.deliver(Input::Closed { allocation: AllocationId::from_parts(index, generation) })?;
        self.deliver(Input::Kick { playback: PlaybackId::from_parts(index, generation), block: 1_000_000 })?;
        self.deliver(Input::Tune { title: TitleId(u64::MAX), providers: vec![ProviderId(index + 10)] })?;
        let request = self.request(None);
        let client = Client { address: IpAddr::from([10, 0, 0, 9]), agent: 0 };
        let user = self.truth.titles.first();
        let viewing = Viewing { user, item: Item::Vod(TitleId(7)), client };
        let providers = vec![ProviderId(index + 10)];
        self.deliver(Input::Fetch {
            request,
            ask: Ask { viewing, want: Want::Rest, token: None, account: None, providers },
        })
    }

    /// The longest that anything about titles may take to come to rest.
    pub(in super::super) fn longest_title(&self) -> Duration {
        let titles = &self.truth.titles;
        if titles.users.is_empty() {
            return Duration::ZERO;
        }
        let settings = &titles.settings;
        let live = |provider: &Provider| {
            provider.live.retry_backoff_max * 6 / 5
                + provider.live.start_timeout
                + provider.live.end_grace
                + provider.cooling
        };
        let live = titles.providers.iter().map(live).max().unwrap_or_default();
        let window = settings.hls_session_ttl.max(settings.catchup_session_ttl);
        let waits = settings.permit_wait + settings.grace + settings.preemption_wait + settings.starting_deadline;
        live + window + waits + settings.linger.max(Duration::from_millis(100)) + Duration::from_secs(15)
    }

    /// In a world at peace each title is had by one to whom everybody gives way.
    pub(in super::super) fn try_titles(&mut self) -> Result<(), Broken> {
        if self.truth.titles.users.is_empty() || self.truth.draining {
            return Ok(());
        }
        let tester = self.truth.titles.users.last_key_value().map_or(UserId(0), |(user, _)| *user);
        for title in 0..self.titles.len() {
            let providers = self.titles[title].clone();
            let now = self.now + self.longest_title() * 3;
            let usable = self.truth.titles.accounts.iter().any(|account| {
                let settings = &account.settings;
                providers.contains(&account.provider)
                    && settings.enabled
                    && settings.until.is_none_or(|until| !until.has_come(now))
            });
            if !usable {
                continue;
            }
            let cooling = self.truth.titles.providers.iter().map(|provider| provider.cooling).max();
            let client = Client { address: IpAddr::from([10, 9, 9, 9]), agent: title as u64 };
            let index = self.add_device(tester, client, Kind::Film, TitleId(title as u64));
            self.devices[index].led = true;
            // Others play on, and an account may rest just now from one of them; not each time.
            let mut had = false;
            for _ in 0..3 {
                self.run(self.now + cooling.unwrap_or_default() + Duration::from_secs(1))?;
                let request = self.ask_title(index, Want::Rest)?;
                let patience = self.truth.titles.patience(&self.truth.titles.requests[&request]);
                self.run(self.now + patience + Duration::from_secs(1))?;
                let row = &self.truth.titles.requests[&request];
                // Nobody gives a place in the table of playbacks away, to whomever.
                had = row.forwarded.is_some() || row.refused == Some(RefuseReason::Busy);
                if had || row.refused != Some(RefuseReason::ProviderLimit) {
                    break;
                }
            }
            if !had {
                let what = format!("title {title} is not had by who is stronger than all");
                return Err(Broken { id: "play-16", what });
            }
            self.end_session(index)?;
        }
        Ok(())
    }

    /// Everybody who plays a title goes.
    pub(in super::super) fn leave_titles(&mut self) -> Result<(), Broken> {
        for index in 0..self.devices.len() {
            self.end_session(index)?;
        }
        Ok(())
    }
}
