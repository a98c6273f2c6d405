//! Which request of a title's playback is fetched next (spec: playback §3.1, §5).
//!
//! One connection to a provider at a time: a request for all that is left takes the place of whatever there is, a part waits for
//! the parts before it. The next connection is wished for at once and opened when the last one is closed, so that nobody takes
//! the account in between and the provider never sees two.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::activation::Claim;
use super::admission::Cost;
use super::wish::{Reach, Wished};
use super::{Playbacks, State, player};
use crate::account::{Holder, Late};
use crate::input::{
    AccountId, Ask, Grant, Output, PlaybackId, ProviderId, RefuseReason, RequestId, Token, ViewerEnd, Viewing, Want,
};
use crate::publish::Context;
use crate::time::Time;

/// How many requests of a playback may wait. Players ask for few at once (hls.js and ExoPlayer for six at most, aria2 for 16), and what
/// waits is no more than a row here and a socket that there is anyway: the bound is for whoever asks without end.
pub(super) const WAITING: usize = 64;
/// How long a part waits for those before it. Longer than players do.
const PART_WAIT: Duration = Duration::from_secs(60);

/// What a playback of a title consists of.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Title {
    pub token: Option<Token>,
    /// Those that are not fetched yet, in order.
    pub waiting: VecDeque<Piece>,
    /// Those whose responses flow: one, or more where nobody counts the connections.
    pub running: Vec<Running>,
    /// The account that it had last.
    pub account: Option<AccountId>,
    /// Whether media came through from there.
    pub bound: bool,
    /// What is wished for, or was granted and not used yet.
    pub wished: Option<Where>,
    /// What a wish in vain comes to where the user's own admission said so before any provider's.
    pub refusal: Option<RefuseReason>,
    /// Until when what was granted is not used, since the provider may still count what was closed before.
    pub pause: Option<Time>,
}

/// A request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub request: RequestId,
    pub want: Want,
    pub at: Where,
    /// Accounts that failed it.
    pub tried: Vec<AccountId>,
    /// Whether it was refused by a provider that may still count what was closed before, and when it is made again.
    pub late: Option<Late>,
    pub until: Time,
}

/// Where something can be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Where {
    pub providers: Box<[ProviderId]>,
    /// Only there.
    pub account: Option<AccountId>,
}

/// A request that was told to be fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Running {
    pub piece: Piece,
    /// Whether media of it came through.
    pub forwarded: bool,
    /// Whether its client takes nothing.
    pub stalled: bool,
    /// Whether its connection is closed, and only what was read before still flows.
    pub detached: bool,
}

/// Which of the responses that flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flowing {
    All,
    /// Those that still come from a provider.
    Connected,
}

impl Piece {
    pub fn new(now: Time, request: RequestId, ask: Ask) -> Self {
        let at = Where { providers: ask.providers.into(), account: ask.account };
        Piece { request, want: ask.want, at, tried: Vec::new(), late: None, until: now + PART_WAIT }
    }

    /// Whether it is read from this machine, where nobody counts connections.
    pub fn is_local(&self) -> bool {
        self.at.providers.is_empty()
    }

    pub fn cost(&self) -> Cost {
        if self.want == Want::Setup { Cost::Nothing } else { Cost::Place }
    }
}

impl Title {
    /// When the first of those that wait has waited long enough.
    pub fn deadline(&self) -> Time {
        self.waiting.iter().map(|piece| piece.until).chain(self.pause).min().unwrap_or(Time::NEVER)
    }

    pub fn needs_place(&self) -> bool {
        self.waiting.iter().any(|piece| piece.cost() == Cost::Place)
    }

    /// The place of the first one that may be fetched.
    pub fn next(&self, placed: bool) -> Option<usize> {
        self.waiting.iter().position(|piece| placed || piece.cost() == Cost::Nothing)
    }
}

impl Playbacks {
    /// A user wants a title.
    pub(crate) fn fetch(&mut self, cx: &mut Context<'_>, request: RequestId, ask: Ask) {
        if self.knows(request) {
            self.stale += 1;
            return;
        }
        let viewing = ask.viewing;
        if viewing.item.title().is_none() {
            return super::refuse(cx, request, RefuseReason::NotFound);
        }
        let known = self.users.get(viewing.user.0 as usize).is_some() && !self.draining;
        if known && ask.token.is_some_and(|token| self.ended.recall(cx.now, &token).is_some()) {
            return self.deny(cx, request, &viewing, RefuseReason::PlaybackOver);
        }
        if !self.may(cx, request, &viewing) {
            return;
        }
        if self.asks_in_vain(cx.now, &player(&viewing)) {
            return self.deny(cx, request, &viewing, RefuseReason::InVain);
        }
        if ask.want == Want::Look {
            if self.fails_again(cx, request, &ask) {
                return;
            }
            return self.look(cx, request, ask);
        }
        let now = cx.now;
        let piece = |ask| Piece::new(now, request, ask);
        match self.find(&ask) {
            Err(reason) => self.deny(cx, request, &viewing, reason),
            Ok(Some(id)) => {
                self.tag(cx, id, ask.want, ask.token);
                let piece = piece(ask);
                self.attach(cx, id, piece);
            }
            Ok(None) => {
                let cost = if ask.want == Want::Setup { Cost::Nothing } else { Cost::Place };
                if self.fails_again(cx, request, &ask) || self.repeats(cx, request, &viewing, cost) {
                    return;
                }
                let (want, token) = (ask.want, ask.token);
                let title = Title { waiting: VecDeque::from([piece(ask)]), ..Title::default() };
                let Some(id) = self.begin(cx, request, viewing, Some(title)) else { return };
                if !viewing.item.traits(&self.settings).own_starts {
                    let player = player(&viewing);
                    self.players.insert(player, id);
                    self.inherit(id, &player);
                }
                self.tag(cx, id, want, token);
                self.arm(id);
                self.permit(cx);
            }
        }
    }

    /// The playback that a request belongs to; why it can belong to none.
    pub(super) fn find(&self, ask: &Ask) -> Result<Option<PlaybackId>, RefuseReason> {
        let own_starts = ask.viewing.item.traits(&self.settings).own_starts;
        let by_token = ask.token.and_then(|token| self.tokens.get(&token).copied());
        let id = match by_token {
            None if own_starts => None,
            None => self.players.get(&player(&ask.viewing)).copied(),
            found => found,
        };
        let Some((id, playback)) = id.and_then(|id| Some((id, self.playbacks.get(id)?))) else { return Ok(None) };
        let Some(title) = &playback.title else { return Ok(None) };
        let same = (playback.viewing.user, playback.viewing.item) == (ask.viewing.user, ask.viewing.item);
        if !same || ask.account.is_some_and(|account| title.account.is_some_and(|own| own != account)) {
            return Err(RefuseReason::NotFound);
        }
        // Its player has begun anew: what the address belongs to is over.
        if by_token.is_none() && ask.token.is_some() && title.token.is_some() {
            return Err(RefuseReason::PlaybackOver);
        }
        Ok(Some(id))
    }

    /// What a playback with a playlist is known by: what its address says, or something new.
    fn tag(&mut self, cx: &mut Context<'_>, id: PlaybackId, want: Want, token: Option<Token>) {
        let Some(title) = self.playbacks.get_mut(id).and_then(|playback| playback.title.as_mut()) else { return };
        if title.token.is_some() || (token.is_none() && want != Want::Setup) {
            return;
        }
        let mut token = token.unwrap_or_else(|| Token(cx.env.entropy()));
        while self.tokens.contains_key(&token) || self.ended.recall(cx.now, &token).is_some() {
            token = Token(u128::from_le_bytes(token.0).wrapping_add(1).to_le_bytes());
        }
        title.token = Some(token);
        self.tokens.insert(token, id);
    }

    /// One more request of a playback.
    fn attach(&mut self, cx: &mut Context<'_>, id: PlaybackId, piece: Piece) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let viewing = playback.viewing;
        let Some(title) = &mut playback.title else { return };
        if piece.want == Want::Rest && !piece.is_local() {
            self.supersede(cx, id);
        } else if title.waiting.len() >= WAITING {
            return self.deny(cx, piece.request, &viewing, RefuseReason::TooManyRequests);
        }
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let Some(title) = &mut playback.title else { return };
        self.requests.insert(piece.request, id);
        title.waiting.push_back(piece);
        if matches!(playback.state, State::Preserved(_)) {
            self.transition(id, State::Active);
        }
        self.arm(id);
        self.advance(cx, id);
    }

    /// Something newer takes the place of all requests of a playback.
    fn supersede(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let viewing = playback.viewing;
        let Some(title) = &mut playback.title else { return };
        let waiting = core::mem::take(&mut title.waiting);
        for piece in waiting {
            self.requests.remove(&piece.request);
            self.deny(cx, piece.request, &viewing, RefuseReason::Superseded);
        }
        self.cut(cx, id, Flowing::All, ViewerEnd::Superseded);
    }

    /// Ends the responses that flow, and closes the connection that they come from.
    pub(super) fn cut(&mut self, cx: &mut Context<'_>, id: PlaybackId, which: Flowing, reason: ViewerEnd) {
        let Some(title) = self.playbacks.get_mut(id).and_then(|playback| playback.title.as_mut()) else { return };
        let cut = |running: &mut Running| which == Flowing::All || !running.detached;
        let running: Vec<Running> = title.running.extract_if(.., cut).collect();
        for Running { piece, .. } in &running {
            self.requests.remove(&piece.request);
            cx.out.push_back(Output::Cut { request: piece.request, reason });
        }
        if !running.is_empty() {
            self.give_up(cx, id);
        }
    }

    /// Something of a playback changed: it looks for a place where it needs one and has none, then goes on.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let Some(title) = &playback.title else { return };
        if playback.holds.permit.is_none() {
            if title.waiting.is_empty() {
                self.end(cx, id, ViewerEnd::Left);
            }
            return;
        }
        let held = matches!(playback.state, State::Held(_));
        match (playback.holds.place, title.needs_place()) {
            (None, true) if !held => {
                (playback.tried, playback.protected) = (0, false);
                return self.admit(cx, id);
            }
            (None, false) if held => {
                let (user, arrival) = (playback.viewing.user, playback.arrival);
                self.users[user.0 as usize].held.remove(&(arrival, id));
                self.transition(id, State::Prepared);
            }
            _ => {}
        }
        self.serve(cx, id);
    }

    /// Fetches what is to be fetched next, as far as there is an account for it.
    pub(super) fn serve(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let mut paused = None;
        while let Some(playback) = self.playbacks.get_mut(id) {
            let Some(title) = &mut playback.title else { return };
            paused = title.pause.take().or(paused);
            let next = title.next(playback.holds.place.is_some());
            let Some(place) = next else {
                if title.running.is_empty() {
                    self.give_up(cx, id);
                    self.settle(cx, id);
                } else if matches!(playback.holds.claim, Claim::Wished | Claim::Granted(..)) {
                    // What goes on has no connection any more, and whoever wanted one is gone.
                    title.wished = None;
                    self.give_up(cx, id);
                    self.wish_no_more(id);
                }
                break;
            };
            let piece = &title.waiting[place];
            let mut connected = title.running.iter().filter(|running| !running.detached);
            if connected.next().is_some_and(|running| !(running.piece.is_local() && piece.is_local())) {
                // Whoever takes nothing need not be waited for.
                if title.running.iter().any(|running| !running.detached && !running.stalled) {
                    break;
                }
                self.cut(cx, id, Flowing::Connected, ViewerEnd::Superseded);
            } else if piece.is_local() {
                self.give_up(cx, id);
                self.run(cx, id, place, None);
            } else if title.bound && piece.at.account.is_some() && piece.at.account != title.account {
                self.answer(cx, id, place, RefuseReason::NotFound);
            } else if title.wished.as_ref().is_some_and(|wished| *wished != piece.at) {
                title.wished = None;
                self.give_up(cx, id);
            } else {
                match playback.holds.claim {
                    Claim::None | Claim::Open(_) => {
                        paused = None;
                        match self.wish(cx, id, place, Reach::Same) {
                            Wished::Made => {}
                            Wished::Later => break,
                            Wished::Vain => self.exhausted(cx, id),
                        }
                    }
                    Claim::Granted(grant, index) if playback.holds.closing.is_none() => {
                        let again = piece.late.map_or(Time::ZERO, |late| late.until_on(grant.account));
                        let ready = again.max(cx.accounts.ready(cx.now, grant.allocation));
                        // What others close meanwhile does not put it off again.
                        let ready = paused.map_or(ready, |paused| ready.min(paused));
                        if ready > cx.now {
                            title.pause = Some(ready);
                            cx.accounts.put_off(grant.allocation, ready);
                            break;
                        }
                        self.run(cx, id, place, Some((grant, index)));
                    }
                    Claim::Granted(..) | Claim::Wished => break,
                }
            }
        }
        self.arm(id);
    }

    /// Has one that waits fetched.
    fn run(&mut self, cx: &mut Context<'_>, id: PlaybackId, place: usize, granted: Option<(Grant, u32)>) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let Some(title) = &mut playback.title else { return };
        let Some(piece) = title.waiting.remove(place) else { return };
        if playback.holds.place.is_none() && !matches!(playback.state, State::Held(_)) {
            // What is asked for next begins with the first of the strategies.
            (playback.tried, playback.protected) = (0, false);
        }
        let (grant, index) = (granted.map(|(grant, _)| grant), granted.map_or(0, |(_, index)| index));
        if let Some(grant) = grant {
            playback.holds.claim = Claim::Open(grant);
            title.account = Some(grant.account);
            title.wished = None;
            cx.accounts.opened(cx.now, grant.allocation);
        }
        let (request, token, asker) = (piece.request, title.token, player(&playback.viewing));
        title.running.push(Running { piece, forwarded: false, stalled: false, detached: false });
        // Where nobody counts connections there may be some at once, but not any number of them.
        let oldest = (title.running.len() > WAITING).then(|| title.running.remove(0).piece.request);
        if matches!(playback.state, State::PendingProvider(_)) {
            self.transition(id, State::Prepared);
        }
        if let Some(request) = oldest {
            self.requests.remove(&request);
            cx.out.push_back(Output::Cut { request, reason: ViewerEnd::Superseded });
        }
        if grant.is_some() {
            self.asks(cx.now, asker);
        }
        cx.out.push_back(Output::Fetch { request, playback: Some(id), token, index, grant });
    }

    /// Refuses one that waits.
    pub(super) fn answer(&mut self, cx: &mut Context<'_>, id: PlaybackId, place: usize, reason: RefuseReason) {
        let Some(playback) = self.playbacks.get_mut(id) else { return };
        let viewing = playback.viewing;
        let Some(piece) = playback.title.as_mut().and_then(|title| title.waiting.remove(place)) else { return };
        self.requests.remove(&piece.request);
        self.deny(cx, piece.request, &viewing, reason);
    }

    /// Refuses all that wait and need a place.
    pub(super) fn refuse_placeless(&mut self, cx: &mut Context<'_>, id: PlaybackId, reason: RefuseReason) {
        let place = |title: &Title| title.waiting.iter().position(|piece| piece.cost() == Cost::Place);
        while let Some(title) = self.playbacks.get(id).and_then(|playback| playback.title.as_ref())
            && let Some(place) = place(title)
        {
            self.answer(cx, id, place, reason);
        }
    }

    /// Nothing of it is asked for at present: it is kept for its player, or over.
    fn settle(&mut self, cx: &mut Context<'_>, id: PlaybackId) {
        let Some(playback) = self.playbacks.get(id) else { return };
        if playback.title.as_ref().is_some_and(|title| !title.waiting.is_empty()) {
            return;
        }
        let window = playback.viewing.item.traits(&self.settings).window;
        match playback.state {
            State::Active if !window.is_zero() => {
                cx.accounts.rest(cx.now, cx.out, Holder::Playback(id));
                self.transition(id, State::Preserved(cx.now + window));
            }
            State::Preserved(_) => {}
            _ => {
                let reason = playback.last;
                self.end(cx, id, reason);
            }
        }
    }

    /// Takes out what a playback is found by, and answers those that wait; its responses end.
    pub(super) fn forget(
        &mut self,
        cx: &mut Context<'_>,
        id: PlaybackId,
        viewing: &Viewing,
        title: Title,
        (reason, answer): (ViewerEnd, Option<RefuseReason>),
    ) {
        if let Some(token) = title.token {
            self.tokens.remove(&token);
            if matches!(reason, ViewerEnd::Kicked | ViewerEnd::Preempted | ViewerEnd::GraceOver | ViewerEnd::Evicted) {
                self.ended.remember(cx.now, token, cx.now + self.settings.ended_memory, ());
            }
        }
        let player = player(viewing);
        if self.players.get(&player) == Some(&id) {
            self.players.remove(&player);
        }
        for piece in title.waiting {
            self.requests.remove(&piece.request);
            self.deny(cx, piece.request, viewing, answer.unwrap_or(RefuseReason::Superseded));
        }
        for Running { piece, .. } in title.running {
            self.requests.remove(&piece.request);
            cx.out.push_back(Output::Cut { request: piece.request, reason });
        }
    }
}
