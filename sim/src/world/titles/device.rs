//! Players of titles, of each kind: they seek, prefetch, pause, probe, zap, ask four times at once, and keep what they do not read.

use std::time::Duration;

use holdfast_core::input::{
    AccountId, Ask, Client, FeedId, Input, ProviderId, RefuseReason, RequestId, TitleId, Token, UserId, ViewerEnd,
    ViewerId, Viewing, Want,
};
use holdfast_core::playback::Item;
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::chance::{Fault, pick, span};
use super::super::options::Actor;
use super::super::oracle::Broken;
use super::super::{Event, Owner, World};

/// How a player behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Film players seek: a new range before the old one is closed.
    Film,
    Episode,
    /// It moves its beginning.
    Past,
    /// It fetches several parts at once.
    Parts,
    /// It asks for a playlist, then for segments, two at a time.
    Segments,
    PastSegments,
    Live,
    /// It asks how large something is, again and again.
    Looks,
    /// It is sent elsewhere.
    Manifest,
    File,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Film,
        Kind::Episode,
        Kind::Past,
        Kind::Parts,
        Kind::Segments,
        Kind::PastSegments,
        Kind::Live,
        Kind::Looks,
        Kind::Manifest,
        Kind::File,
    ];

    pub fn item(self, title: TitleId) -> Option<Item> {
        match self {
            Kind::Film | Kind::Parts | Kind::Looks => Some(Item::Vod(title)),
            Kind::Episode => Some(Item::Series(title)),
            Kind::Past | Kind::PastSegments => Some(Item::Catchup(title)),
            Kind::Segments => Some(Item::Hls(title)),
            Kind::Manifest => Some(Item::Dash(title)),
            Kind::File => Some(Item::Local(title)),
            Kind::Live => None,
        }
    }

    fn has_token(self) -> bool {
        matches!(self, Kind::Segments | Kind::PastSegments)
    }
}

/// One player of one user.
pub struct Device {
    pub dice: SmallRng,
    pub user: UserId,
    pub client: Client,
    pub kind: Kind,
    pub title: TitleId,
    pub token: Option<Token>,
    pub account: Option<AccountId>,
    /// Its requests that are not over, for all it knows.
    pub open: Vec<RequestId>,
    pub viewer: Option<ViewerId>,
    feed: Option<FeedId>,
    reading: bool,
    /// How much it still does before it stops.
    left: u32,
    retries: u32,
    life: u32,
    /// Nothing of it happens by itself: a script leads it.
    pub led: bool,
}

impl Device {
    pub fn asks(&self, request: RequestId) -> bool {
        self.open.contains(&request)
    }

    /// It takes nothing of a live stream any more.
    pub fn reads_nothing(&mut self) {
        self.reading = true;
        self.life += 1;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Begin,
    Act,
    /// It closes this one of its requests.
    Close(RequestId),
    /// It reads again.
    Resume(RequestId),
    Read,
    Leave,
}

impl World<'_> {
    pub(in super::super) fn add_device(&mut self, user: UserId, client: Client, kind: Kind, title: TitleId) -> usize {
        let index = self.devices.len();
        let dice = super::super::generator(self.seed, 40_000 + index as u64);
        self.devices.push(Device {
            dice,
            user,
            client,
            kind,
            title,
            token: None,
            account: None,
            open: Vec::new(),
            viewer: None,
            feed: None,
            reading: false,
            left: 0,
            retries: 0,
            life: 0,
            led: false,
        });
        index
    }

    pub(in super::super) fn device_step(&mut self, index: usize, delay: Duration, step: Step) {
        let own = matches!(step, Step::Begin | Step::Act | Step::Leave);
        let delay = if own { delay * self.leisure } else { delay };
        let life = self.devices[index].life;
        self.plan_event(self.now + delay, Event::Device { index, life, step });
    }

    pub(in super::super) fn device(&mut self, index: usize, life: u32, step: Step) -> Result<(), Broken> {
        if self.devices[index].life != life {
            return Ok(());
        }
        match step {
            Step::Begin if self.healed || !self.attends(Actor::Device(index as u32)) => Ok(()),
            Step::Begin => self.begin_session(index),
            Step::Act => self.act(index),
            Step::Close(request) => self.close_request(index, request),
            Step::Resume(request) => {
                self.set_reading(request, true);
                Ok(())
            }
            Step::Read => self.read_live(index),
            Step::Leave => self.end_session(index),
        }
    }

    fn begin_session(&mut self, index: usize) -> Result<(), Broken> {
        if !self.devices[index].open.is_empty() || self.devices[index].viewer.is_some() {
            return Ok(());
        }
        let device = &mut self.devices[index];
        device.left = device.dice.random_range(1..=8);
        let first = span(&mut device.dice, 30, 2_500);
        if self.plan.strikes(Fault::TitleZap, &mut device.dice) {
            let titles = self.titles.len() as u64;
            let next = TitleId(device.dice.random_range(0..titles));
            if next != device.title {
                self.witness.faults.add(Fault::TitleZap);
                (device.title, device.token, device.account) = (next, None, None);
            }
        }
        // One that comes back with what it knew before may be remembered, or made anew.
        if device.dice.random_bool(0.7) {
            (device.token, device.account) = (None, None);
        }
        match device.kind {
            Kind::Live => self.tune_in_to(index).map(|_| ()),
            Kind::Parts => {
                let parts = self.devices[index].dice.random_range(2..=5);
                for _ in 0..parts {
                    self.ask_title(index, Want::Part)?;
                }
                self.device_step(index, first, Step::Act);
                Ok(())
            }
            kind => {
                let want = match kind {
                    Kind::Segments | Kind::PastSegments | Kind::Manifest => Want::Setup,
                    Kind::Looks => Want::Look,
                    _ => Want::Rest,
                };
                self.device_step(index, first, Step::Act);
                let request = self.ask_title(index, want)?;
                // Some ask for the same four times within 30 ms.
                if self.plan.strikes(Fault::FourAtOnce, &mut self.devices[index].dice) {
                    self.witness.faults.add(Fault::FourAtOnce);
                    for _ in 0..3 {
                        self.ask_title(index, want)?;
                    }
                }
                let dice = &mut self.devices[index].dice;
                if self.plan.strikes(Fault::HangUpFetching, dice) {
                    let after = span(dice, 0, 1_500);
                    self.device_step(index, after, Step::Close(request));
                }
                Ok(())
            }
        }
    }

    /// It asks for its title, or a part of it.
    pub(in super::super) fn ask_title(&mut self, index: usize, want: Want) -> Result<RequestId, Broken> {
        let request = self.request(Some(Owner::Device(index)));
        let device = &mut self.devices[index];
        let item = device.kind.item(device.title).unwrap_or(Item::Vod(device.title));
        device.open.push(request);
        let viewing = Viewing { user: device.user, item, client: device.client };
        let providers = match device.kind {
            Kind::File => Vec::new(),
            _ => self.titles[device.title.0 as usize].clone(),
        };
        let (mut token, mut account) = (device.token, device.account);
        if token.is_some() && self.plan.strikes(Fault::ForgedToken, &mut device.dice) {
            self.witness.faults.add(Fault::ForgedToken);
            match device.dice.random_range(0..3) {
                0 => token = Some(Token(device.dice.random())),
                1 => account = Some(AccountId(device.dice.random_range(0..4))),
                _ => {
                    let known: Vec<Token> = self.truth.titles.tokens.keys().copied().take(20).collect();
                    token = Some(*pick(&mut device.dice, &known)).or(token);
                }
            }
        }
        let ask = Ask { viewing, want, token, account, providers };
        self.deliver(Input::Fetch { request, ask: ask.clone() })?;
        let open = self.truth.titles.open.contains(&request);
        if open && self.plan.strikes(Fault::DoubledFetch, &mut self.devices[index].dice) {
            // Nobody makes a request again that has its answer, as it may have by what is due.
            self.call(Input::Tick)?;
            if self.truth.titles.open.contains(&request) {
                self.witness.faults.add(Fault::DoubledFetch);
                self.deliver(Input::Fetch { request, ask })?;
            }
        }
        Ok(request)
    }

    /// It watches its title as a live stream.
    pub(in super::super) fn tune_in_to(&mut self, index: usize) -> Result<Option<RequestId>, Broken> {
        if self.driver.still.is_some() {
            self.device_step(index, Duration::from_millis(500), Step::Begin);
            return Ok(None);
        }
        let device = &self.devices[index];
        let (title, user, client) = (device.title, device.user, device.client);
        let providers = self.titles[title.0 as usize].clone();
        self.call(Input::Tune { title, providers: providers.clone() })?;
        let pull = self.edge.edge().pull();
        let Some((channel, feed)) = pull.tuned(title).and_then(|channel| Some((channel, pull.feed_of(channel)?)))
        else {
            self.device_step(index, Duration::from_secs(3), Step::Begin);
            return Ok(None);
        };
        self.truth.tune(self.now, channel, feed, title, providers);
        let request = self.request(Some(Owner::Device(index)));
        self.devices[index].open.push(request);
        self.devices[index].feed = Some(feed);
        let viewing = Viewing { user, item: Item::LiveTs(feed), client };
        self.call(Input::Play { request, viewing })?;
        Ok(Some(request))
    }

    /// Its request is being fetched.
    pub(in super::super) fn device_fetches(&mut self, index: usize, request: RequestId) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        device.retries = 0;
        if let Some(row) = self.truth.titles.requests.get(&request)
            && device.kind.has_token()
        {
            if let Some(playback) = row.playback.and_then(|id| self.truth.titles.playbacks.get(&id)) {
                device.token = playback.token.or(device.token);
            }
            device.account = row.account.or(device.account);
        }
        Ok(())
    }

    /// It watches.
    pub(in super::super) fn device_watches(
        &mut self,
        index: usize,
        request: RequestId,
        viewer: ViewerId,
    ) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        if !device.asks(request) {
            return self.deliver(Input::Leave { viewer });
        }
        device.open.retain(|own| *own != request);
        (device.viewer, device.retries) = (Some(viewer), 0);
        let stays = match device.dice.random_bool(0.4) {
            true => span(&mut device.dice, 300, 1_500),
            false => span(&mut device.dice, 1_000, 20_000),
        };
        if !device.led {
            self.device_step(index, stays, Step::Leave);
        }
        self.read_live_soon(index);
        Ok(())
    }

    /// There is something in a feed.
    pub(in super::super) fn live_readable(&mut self, feed: FeedId) {
        for index in 0..self.devices.len() {
            if self.devices[index].feed == Some(feed) && self.devices[index].viewer.is_some() {
                self.read_live_soon(index);
            }
        }
    }

    fn read_live_soon(&mut self, index: usize) {
        let device = &mut self.devices[index];
        if !device.reading {
            device.reading = true;
            let delay = Duration::from_micros(device.dice.random_range(0..2_000));
            self.device_step(index, delay, Step::Read);
        }
    }

    fn read_live(&mut self, index: usize) -> Result<(), Broken> {
        if let Some(until) = self.driver.still {
            self.device_step(index, until.since(self.now), Step::Read);
            return Ok(());
        }
        self.devices[index].reading = false;
        let Some(viewer) = self.devices[index].viewer else { return Ok(()) };
        let bytes = self.edge.edge().feeds().unsent(viewer).map(|slice| slice.len() as u64).sum();
        if bytes == 0 { Ok(()) } else { self.call(Input::Sent { viewer, bytes }) }
    }

    pub(in super::super) fn live_ended(&mut self, viewer: ViewerId) -> Result<(), Broken> {
        let Some(index) = self.devices.iter().position(|device| device.viewer == Some(viewer)) else { return Ok(()) };
        self.devices[index].viewer = None;
        self.stop(index)
    }

    /// One of its responses is over, by itself, or cut (`None`).
    pub(in super::super) fn device_finished(
        &mut self,
        request: RequestId,
        reason: Option<ViewerEnd>,
    ) -> Result<(), Broken> {
        let Some(Owner::Device(index)) = self.owner(request) else { return Ok(()) };
        let device = &mut self.devices[index];
        if !device.asks(request) {
            return Ok(());
        }
        device.open.retain(|own| *own != request);
        if device.led {
            return Ok(());
        }
        let goes_on = device.left > 0 && !self.healed;
        match (device.kind, reason) {
            (Kind::Parts, Some(ViewerEnd::Done)) if goes_on => {
                device.left -= 1;
                self.ask_title(index, Want::Part).map(|_| ())
            }
            (kind, Some(_)) if kind.has_token() => Ok(()),
            _ if device.open.is_empty() => self.stop(index),
            _ => Ok(()),
        }
    }

    /// One of its requests was refused.
    pub(in super::super) fn device_refused(
        &mut self,
        index: usize,
        request: RequestId,
        reason: RefuseReason,
    ) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        device.open.retain(|own| *own != request);
        if device.led {
            return Ok(());
        }
        if matches!(reason, RefuseReason::PlaybackOver | RefuseReason::NotFound | RefuseReason::Kicked) {
            // It knows that what it knew is over, or tries it once more.
            if device.dice.random_bool(0.8) {
                (device.token, device.account) = (None, None);
            }
        }
        if !device.open.is_empty() {
            return Ok(());
        }
        if device.retries == 0 && self.plan.strikes(Fault::RetryAtOnce, &mut device.dice) {
            device.retries = 4;
        }
        device.retries = device.retries.saturating_sub(1);
        if device.retries > 0 && device.kind != Kind::Live {
            device.life += 1;
            let after = span(&mut device.dice, 1, 10);
            self.device_step(index, after, Step::Begin);
            return Ok(());
        }
        self.stop(index)
    }

    /// It does the next thing that such a player does.
    fn act(&mut self, index: usize) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        let next = match device.dice.random_range(0..4) {
            0 => span(&mut device.dice, 15, 60),
            1 => span(&mut device.dice, 60, 600),
            _ => span(&mut device.dice, 600, 4_000),
        };
        if device.left == 0 || self.healed && device.open.is_empty() {
            return self.end_session(index);
        }
        if self.healed {
            return Ok(());
        }
        device.left -= 1;
        match device.kind {
            Kind::Film | Kind::Episode | Kind::Past | Kind::File => {
                self.device_step(index, next, Step::Act);
                self.seek(index)
            }
            Kind::Parts => {
                self.device_step(index, next, Step::Act);
                self.stop_reading(index);
                Ok(())
            }
            Kind::Segments | Kind::PastSegments => {
                let device = &mut self.devices[index];
                let pauses = self.plan.strikes(Fault::PausePastWindow, &mut device.dice);
                let item = device.kind.item(device.title);
                let window = item.map(|item| item.traits(&self.truth.titles.settings).window).unwrap_or_default();
                let pause = if pauses { window + span(&mut device.dice, 0, 4_000) } else { Duration::ZERO };
                if pauses {
                    self.witness.faults.add(Fault::PausePastWindow);
                }
                self.device_step(index, next + pause, Step::Act);
                if self.devices[index].token.is_none() {
                    return Ok(());
                }
                match self.devices[index].dice.random_range(0..6) {
                    0 | 1 => self.ask_title(index, Want::Setup).map(|_| ()),
                    2 => {
                        // Children of HLS are prefetched in pairs.
                        self.ask_title(index, Want::Part)?;
                        self.ask_title(index, Want::Part)?;
                        self.stop_reading(index);
                        Ok(())
                    }
                    _ => self.ask_title(index, Want::Part).map(|_| ()),
                }
            }
            Kind::Looks | Kind::Manifest => {
                self.device_step(index, next, Step::Act);
                let want = if self.devices[index].kind == Kind::Looks { Want::Look } else { Want::Setup };
                if self.devices[index].open.is_empty() { self.ask_title(index, want).map(|_| ()) } else { Ok(()) }
            }
            Kind::Live => Ok(()),
        }
    }

    /// A new place in the film: asked for before the old one is closed, which may be kept and never read.
    fn seek(&mut self, index: usize) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        if device.dice.random_bool(0.2) {
            self.stop_reading(index);
            return Ok(());
        }
        let device = &mut self.devices[index];
        let keeps = self.plan.strikes(Fault::KeepOldBody, &mut device.dice);
        let old = device.open.clone();
        for request in old {
            if keeps {
                self.witness.faults.add(Fault::KeepOldBody);
                self.set_reading(request, false);
            } else {
                let after = span(&mut self.devices[index].dice, 0, 20);
                self.device_step(index, after, Step::Close(request));
            }
        }
        // Some ask for the end of it in a part of its own.
        let want = if self.devices[index].dice.random_bool(0.15) { Want::Part } else { Want::Rest };
        self.ask_title(index, want).map(|_| ())
    }

    /// It stops reading one of its responses for a while.
    fn stop_reading(&mut self, index: usize) {
        let device = &mut self.devices[index];
        if !device.open.is_empty() && self.plan.strikes(Fault::ClientStalls, &mut device.dice) {
            let request = *pick(&mut device.dice, &device.open);
            let long = span(&mut device.dice, 500, 15_000);
            self.set_reading(request, false);
            self.device_step(index, long, Step::Resume(request));
        }
    }

    fn close_request(&mut self, index: usize, request: RequestId) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        if !device.asks(request) {
            return Ok(());
        }
        device.open.retain(|own| *own != request);
        self.drop_request(request)?;
        let device = &self.devices[index];
        if device.open.is_empty() && !device.led && device.kind != Kind::Live && device.left == 0 {
            return self.stop(index);
        }
        Ok(())
    }

    /// It closes everything, and comes again later.
    pub(in super::super) fn end_session(&mut self, index: usize) -> Result<(), Broken> {
        let open = std::mem::take(&mut self.devices[index].open);
        for request in open {
            self.drop_request(request)?;
        }
        if let Some(viewer) = self.devices[index].viewer.take() {
            self.deliver(Input::Leave { viewer })?;
        }
        self.stop(index)
    }

    fn stop(&mut self, index: usize) -> Result<(), Broken> {
        let device = &mut self.devices[index];
        device.life += 1;
        device.reading = false;
        if device.led {
            return Ok(());
        }
        // A zapper is back at once, others take their time.
        let again = match device.dice.random_range(0..3) {
            0 => span(&mut device.dice, 0, 100),
            1 => span(&mut device.dice, 100, 2_500),
            _ => span(&mut device.dice, 2_500, 12_000),
        };
        self.device_step(index, again, Step::Begin);
        Ok(())
    }
}

/// A list of providers as the title of a number has it.
pub fn providers_of(dice: &mut SmallRng, providers: u32) -> Vec<ProviderId> {
    let first = dice.random_range(0..providers);
    let mut list = vec![ProviderId(first)];
    if providers > 1 && dice.random_bool(0.6) {
        list.push(ProviderId((first + 1) % providers));
    } else if dice.random_bool(0.3) {
        // One that has it twice.
        list.push(ProviderId(first));
    }
    list
}
