//! What users played, and which connections to providers that took.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::account::{AllocationState, Holder, LeaseId};
use holdfast_core::input::{AccountId, AllocationId, Input, Note, Output, PlaybackId, RequestId, UserId, ViewerId};
use holdfast_core::playback::{Place, Playback, State as Standing};
use holdfast_core::time::Time;

use super::lanes::{Board, Group, LaneId, State, Weight};
use super::{Scene, weight};

/// Users and accounts so far.
#[derive(Debug, Default)]
pub(super) struct Stage {
    requests: BTreeMap<RequestId, UserId>,
    viewers: BTreeMap<ViewerId, UserId>,
    playbacks: BTreeMap<UserId, BTreeMap<PlaybackId, LaneId>>,
    allocations: BTreeMap<AllocationId, LaneId>,
    /// Leases that keep a slot without a connection.
    kept: BTreeMap<LeaseId, LaneId>,
}

impl Stage {
    pub fn step(&mut self, board: &mut Board, scene: &Scene<'_>) {
        if scene.config().users.is_empty() && scene.config().providers.is_empty() {
            return;
        }
        let mut dirty = BTreeSet::new();
        let mut reasons = BTreeMap::new();
        let mut connected = matches!(
            scene.input,
            Input::Opened { .. }
                | Input::Lost { .. }
                | Input::Forwarded { .. }
                | Input::Failed { .. }
                | Input::Finished { .. }
                | Input::Closed { .. }
                | Input::Hangup { .. }
        );
        match scene.input {
            Input::Play { request, viewing } => self.asks(&mut dirty, *request, viewing.user),
            Input::Fetch { request, ask } => self.asks(&mut dirty, *request, ask.viewing.user),
            Input::Forwarded { request } | Input::Failed { request, .. } | Input::Stalled { request } => {
                dirty.extend(self.requests.get(request))
            }
            Input::Finished { request, .. } | Input::Hangup { request } => dirty.extend(self.requests.remove(request)),
            Input::Leave { viewer } => dirty.extend(self.viewers.remove(viewer)),
            Input::Media { .. } => connected = self.is_opening(board),
            Input::Kick { playback, .. } => self.kick(board, scene, *playback),
            _ => {}
        }
        for output in scene.outputs {
            match output {
                Output::Ready { .. } | Output::KeyFrame { .. } | Output::SourceKeyFrame { .. } => continue,
                Output::Joined { request, viewer } | Output::Polls { request, viewer, .. } => {
                    if let Some(user) = self.requests.get(request) {
                        dirty.insert(*user);
                        self.viewers.insert(*viewer, *user);
                    }
                }
                Output::Fetch { request, .. } => dirty.extend(self.requests.get(request)),
                Output::Refuse { request, .. } | Output::Cut { request, .. } => {
                    dirty.extend(self.requests.remove(request))
                }
                Output::ViewerEnd { viewer, .. } => dirty.extend(self.viewers.remove(viewer)),
                Output::Note(note) => dirty.extend(self.note(board, scene, note, &mut reasons)),
                _ => {}
            }
            connected = true;
        }
        for user in dirty {
            self.look(board, scene, user, &reasons);
        }
        if connected {
            self.connections(board, scene);
        }
    }

    /// What is there when the story begins.
    pub fn adopt(&mut self, board: &mut Board, scene: &Scene<'_>) {
        for user in 0..scene.config().users.len() as u32 {
            self.look(board, scene, UserId(user), &BTreeMap::new());
        }
        for (_, playback) in scene.edge.playback().playbacks() {
            if let Some(viewer) = playback.viewer {
                self.viewers.insert(viewer, playback.viewing.user);
            }
        }
        self.connections(board, scene);
    }

    fn asks(&mut self, dirty: &mut BTreeSet<UserId>, request: RequestId, user: UserId) {
        self.requests.insert(request, user);
        dirty.insert(user);
    }

    fn is_opening(&self, board: &Board) -> bool {
        self.allocations.values().any(|lane| board.state(*lane) == Some(State::Connecting))
    }

    fn kick(&mut self, board: &mut Board, scene: &Scene<'_>, playback: PlaybackId) {
        let of = self.playbacks.iter().find_map(|(user, own)| Some((*user, *own.get(&playback)?)));
        if let Some((user, lane)) = of {
            let why = format!("an operator ends playback {playback} of user {}", scene.user(user));
            board.mark(lane, scene.now, Weight::Notice, "kick", &why);
        }
    }

    fn first(&self, board: &mut Board, scene: &Scene<'_>, user: UserId) -> LaneId {
        board.first(scene.key(Group::Users, u64::from(user.0), 0), || scene.named(scene.user(user).to_owned()))
    }

    /// Where a playback is drawn, or would be.
    fn place(&self, board: &mut Board, scene: &Scene<'_>, user: UserId, playback: PlaybackId) -> LaneId {
        let known = self.playbacks.get(&user).and_then(|own| own.get(&playback)).copied();
        known.unwrap_or_else(|| self.first(board, scene, user))
    }

    /// How a user's playbacks stand now.
    fn look(&mut self, board: &mut Board, scene: &Scene<'_>, user: UserId, reasons: &BTreeMap<PlaybackId, String>) {
        let now = scene.now;
        let own = self.playbacks.entry(user).or_default();
        own.retain(|id, lane| {
            let there = scene.edge.playback().get(*id).is_some();
            if !there {
                board.end(*lane, now, reasons.get(id).map_or("", String::as_str));
            }
            there
        });
        for (id, playback) in scene.edge.playback().of_user(user) {
            let state = standing(playback);
            match own.get(&id) {
                Some(lane) => board.turn(*lane, now, state, reasons.get(&id).map_or("", String::as_str)),
                None => {
                    let key = scene.key(Group::Users, u64::from(user.0), 0);
                    let lane = board.pack(key, || scene.named(scene.user(user).to_owned()));
                    board.begin(lane, now, state, &format!("playback {id}: {}", scene.item(playback.viewing.item)));
                    own.insert(id, lane);
                }
            }
        }
    }

    /// Whose playbacks it is about.
    fn note(
        &mut self,
        board: &mut Board,
        scene: &Scene<'_>,
        note: &Note,
        reasons: &mut BTreeMap<PlaybackId, String>,
    ) -> Option<UserId> {
        let now = scene.now;
        match note {
            Note::PlaybackStarted { user, playback, .. } => {
                self.look(board, scene, *user, reasons);
                let lane = self.place(board, scene, *user, *playback);
                board.mark(lane, now, Weight::Plain, "begins", &scene.says(note));
                Some(*user)
            }
            Note::PlaybackEnded { user, playback, reason, .. } => {
                let lane = self.place(board, scene, *user, *playback);
                let why = scene.says(note);
                board.mark(lane, now, weight::viewer_ended(*reason), reason.as_str(), &why);
                reasons.insert(*playback, why);
                Some(*user)
            }
            Note::PlaybackRefused { user, reason, .. } => {
                let lane = self.first(board, scene, *user);
                board.mark(lane, now, Weight::Notice, &format!("refused: {}", reason.as_str()), &scene.says(note));
                Some(*user)
            }
            Note::PlaybackPromoted { user, playback } => {
                let lane = self.place(board, scene, *user, *playback);
                board.mark(lane, now, Weight::Plain, "promoted", &scene.says(note));
                Some(*user)
            }
            Note::PlaybackEvicted { user, playback, .. } => {
                let lane = self.place(board, scene, *user, *playback);
                let why = scene.says(note);
                board.mark(lane, now, Weight::Loss, "evicted", &why);
                reasons.insert(*playback, why);
                Some(*user)
            }
            Note::PlaybackGraced { user, playback, .. } => {
                let lane = self.place(board, scene, *user, *playback);
                board.mark(lane, now, Weight::Notice, "grace", &scene.says(note));
                Some(*user)
            }
            Note::AccountGraced { holder, provider } => {
                let before: usize =
                    scene.config().providers.iter().take(provider.0 as usize).map(|own| own.accounts.len()).sum();
                let lane = self.account(board, scene, AccountId(before as u32));
                board.mark(lane, now, Weight::Notice, "grace", &scene.says(note));
                self.user_of(*holder)
            }
            Note::AccountPreempted { account, holder, .. } => {
                let lane = self.account(board, scene, *account);
                board.mark(lane, now, Weight::Loss, "preempted", &scene.says(note));
                self.user_of(*holder)
            }
            Note::AccountFailed { account, .. } => {
                let lane = self.account(board, scene, *account);
                board.mark(lane, now, Weight::Notice, "failed", &scene.says(note));
                None
            }
            _ => None,
        }
    }

    fn user_of(&self, holder: Holder) -> Option<UserId> {
        match holder {
            Holder::Playback(id) => self.playbacks.iter().find(|(_, own)| own.contains_key(&id)).map(|(user, _)| *user),
            Holder::Source(_) | Holder::Probe(_) => None,
        }
    }

    fn account(&self, board: &mut Board, scene: &Scene<'_>, account: AccountId) -> LaneId {
        board.first(scene.key(Group::Accounts, u64::from(account.0), 0), || scene.named(scene.account(account)))
    }

    fn begin(&self, board: &mut Board, scene: &Scene<'_>, (account, state): (AccountId, State), who: &str) -> LaneId {
        let key = scene.key(Group::Accounts, u64::from(account.0), 0);
        let lane = board.pack(key, || scene.named(scene.account(account)));
        board.begin(lane, scene.now, state, who);
        lane
    }

    /// How all connections to providers stand now, and what is kept without one.
    fn connections(&mut self, board: &mut Board, scene: &Scene<'_>) {
        let accounts = scene.edge.accounts();
        if scene.config().providers.is_empty() {
            return;
        }
        let now = scene.now;
        end_those_gone(board, now, &mut self.allocations, |id| accounts.allocation(*id).is_some());
        let kept: BTreeMap<LeaseId, (AccountId, Holder)> = accounts
            .leases()
            .filter(|(_, lease)| lease.reserves())
            .filter(|(_, lease)| {
                !accounts.allocations().any(|(_, own)| own.holder == lease.holder && own.account == lease.account)
            })
            .map(|(id, lease)| (id, (lease.account, lease.holder)))
            .collect();
        end_those_gone(board, now, &mut self.kept, |id| kept.contains_key(id));
        for (id, allocation) in accounts.allocations() {
            let state = match allocation.state {
                AllocationState::Opening => State::Connecting,
                AllocationState::Active => State::Live,
                AllocationState::Closing => State::Closing,
            };
            match self.allocations.get(&id) {
                Some(lane) => board.turn(*lane, now, state, ""),
                None => {
                    let who = format!("connection {id} for {}", allocation.holder);
                    let lane = self.begin(board, scene, (allocation.account, state), &who);
                    self.allocations.insert(id, lane);
                }
            }
        }
        for (id, (account, holder)) in kept {
            if !self.kept.contains_key(&id) {
                let who = format!("lease {id} of {holder}");
                let lane = self.begin(board, scene, (account, State::Kept), &who);
                self.kept.insert(id, lane);
            }
        }
    }
}

fn end_those_gone<K: Ord>(
    board: &mut Board,
    now: Time,
    lanes: &mut BTreeMap<K, LaneId>,
    is_there: impl Fn(&K) -> bool,
) {
    lanes.retain(|id, lane| {
        let there = is_there(id);
        if !there {
            board.end(*lane, now, "");
        }
        there
    });
}

fn standing(playback: &Playback) -> State {
    match playback.state {
        Standing::Queued(_) | Standing::Held(_) | Standing::PendingProvider(_) => State::Waiting,
        Standing::Prepared => State::Connecting,
        Standing::Active if playback.place() == Some(Place::Grace) => State::Grace,
        Standing::Active => State::Live,
        Standing::Preserved(_) => State::Kept,
    }
}
