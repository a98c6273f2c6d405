//! What may go wrong, how often it does in this run, and whether it did.

use holdfast_core::time::Date;
use rand::Rng;
use rand::rngs::SmallRng;

use std::time::Duration;

use super::options::Faults;

/// A list of names with all of them in order.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $about:literal])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $(#[doc = $word] #[doc = ""] $(#[doc = $about])* $variant,)+ }

        impl $name {
            /// Every one.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// What it means, in a line; empty where the word says it.
            pub fn about(self) -> &'static str {
                match self { $($name::$variant => concat!($($about),*),)+ }.trim_ascii()
            }
        }

        impl Name for $name {
            const ALL: &[$name] = $name::ALL;

            fn index(self) -> usize {
                self as usize
            }

            fn as_str(self) -> &'static str {
                $name::as_str(self)
            }
        }
    };
}

/// One of a fixed list of names.
pub trait Name: Copy + 'static {
    /// Every one, in order.
    const ALL: &'static [Self];

    /// Its place in the list.
    fn index(self) -> usize;

    /// The word for it.
    fn as_str(self) -> &'static str;
}

names! {
    /// What the world does to the core. Each is counted where it bites: where something is different because of it.
    Fault {
        /// A publisher's packets stop and nobody is told.
        SilentVanish = "silent-vanish",
        /// A POST's client is gone without a word before it has its answer.
        VanishWhileAsking = "vanish-while-asking",
        /// That a publisher's connection is over is heard long after its last packet.
        LateFin = "late-fin",
        /// A publisher freezes and thaws.
        Flap = "flap",
        /// A client hangs up while its POST is held.
        HangUpHeld = "hang-up-held",
        /// A client hangs up while its offer is negotiated.
        HangUpNegotiating = "hang-up-negotiating",
        /// A DELETE for a session that is over.
        LateDelete = "late-delete",
        /// A displaced publisher sends on.
        KeepSending = "keep-sending",
        /// Media of a session that is over still arrives.
        LeakyBridge = "leaky-bridge",
        /// The media side takes long to answer an offer.
        LateAnswer = "late-answer",
        /// The media side never answers an offer.
        LostAnswer = "lost-answer",
        /// The media side cannot negotiate an offer.
        FailedAnswer = "failed-answer",
        /// The media side answers twice.
        DoubledAnswer = "doubled-answer",
        /// The media side takes long to release a bridge.
        SlowRelease = "slow-release",
        /// The media side releases a bridge twice.
        DoubledRelease = "doubled-release",
        /// The media side releases the bridge of a session that lives.
        EarlyRelease = "early-release",
        /// A session is ended twice, for two reasons.
        DoubledEnd = "doubled-end",
        /// What the threads stamp is seen late, audio, video and control each by its own delay.
        EvidenceDelay = "evidence-delay",
        /// A stamp's time is seen before its count.
        TornEvidence = "torn-evidence",
        /// A deadline is served a little late.
        LateTick = "late-tick",
        /// A deadline is not served until something else happens, or a while later.
        LostWake = "lost-wake",
        /// A deadline is served twice.
        DoubledWake = "doubled-wake",
        /// The driver stands still; then many inputs come at one time.
        Stall = "stall",
        /// What gathered in a stall is handled with the media side's inputs first.
        Reorder = "reorder",
        /// The driver gives an older time than before.
        ClockBack = "clock-back",
        /// Unpredictable bytes repeat.
        EntropyRepeat = "entropy-repeat",
        /// A slot's chain puts nothing out.
        Wedge = "wedge",
        /// A viewer stops reading.
        ViewerStops = "viewer-stops",
        /// A viewer reads slower than its feed grows.
        ViewerSlow = "viewer-slow",
        /// Inputs about viewers that are gone.
        LateViewer = "late-viewer",
        /// One request is offered twice.
        DoubledOffer = "doubled-offer",
        /// Inputs that name what never was.
        Nonsense = "nonsense",
        /// An operator ends a session.
        Kick = "kick",
        /// A client hangs up while it is held for a channel's first media.
        HangUpWaiting = "hang-up-waiting",
        /// A viewer goes from one channel to another.
        Zap = "zap",
        /// An origin agrees, or sent, and sends nothing.
        OriginSilent = "origin-silent",
        /// An origin takes connections and never says a word.
        OriginDead = "origin-dead",
        /// Connections to an origin stand and are dead for ever.
        OriginBlackHole = "origin-black-hole",
        /// An origin refuses.
        OriginRefuses = "origin-refuses",
        /// An origin's handshake drips.
        OriginDrips = "origin-drips",
        /// An origin agrees, then resets.
        OriginResetsAtPlay = "origin-resets-at-play",
        /// An origin sends for a while, then resets.
        OriginFlaps = "origin-flaps",
        /// An origin sends for a while, then ends in order.
        OriginEnds = "origin-ends",
        /// An origin sends pictures that nobody can start with.
        OriginKeyless = "origin-keyless",
        /// An origin breaks all connections and is another when it is back.
        OriginReturns = "origin-returns",
        /// Inputs about sources that are over.
        LateSource = "late-source",
        /// A client hangs up while it waits for a place of its user.
        HangUpForPlace = "hang-up-for-place",
        /// A client hangs up while it waits for a permit.
        HangUpForPermit = "hang-up-for-permit",
        /// An operator ends a playback.
        KickPlayback = "kick-playback",
        /// An operator ends a playback that is over.
        LateKick = "late-kick",
        /// The wall clock is set.
        SetClock = "set-clock",
        /// A panel says how many connections it allows for an account.
        PanelAllows = "panel-allows",
        /// A player that is refused asks again at once.
        RetryAtOnce = "retry-at-once",
        /// A player opens the next before it closes this.
        OpenBeforeClose = "open-before-close",
        /// A player that polls pauses.
        PollerSilent = "poller-silent",
        /// The program is told to end in the middle of everything.
        Shutdown = "shutdown",
        /// A provider takes connections and never says a word.
        ProviderDead = "provider-dead",
        /// Nobody listens at a provider.
        ProviderUnreachable = "provider-unreachable",
        /// A provider answers that it does not have it, or cannot now.
        ProviderStatus = "provider-status",
        /// A provider wants other credentials.
        ProviderForbids = "provider-forbids",
        /// What a provider answers is of no use.
        ProviderUseless = "provider-useless",
        /// A provider answers, and then no media comes.
        ProviderSilent = "provider-silent",
        /// A provider breaks a response off.
        ProviderBreaks = "provider-breaks",
        /// A provider goes on counting what is closed, and refuses for it.
        ProviderCountsLate = "provider-counts-late",
        /// A connection to a provider takes long to be closed.
        CloseLate = "close-late",
        /// A connection to a provider is said to be closed twice.
        DoubledClosed = "doubled-closed",
        /// Inputs about responses that are over, or that only set up.
        LateRelay = "late-relay",
        /// One request for a title is made twice.
        DoubledFetch = "doubled-fetch",
        /// A client hangs up while it waits for a title.
        HangUpFetching = "hang-up-fetching",
        /// A client takes nothing of its response for a while.
        ClientStalls = "client-stalls",
        /// A player seeks and keeps the old response without reading it.
        KeepOldBody = "old-body-kept",
        /// A player over HLS pauses for longer than it is remembered.
        PausePastWindow = "pause-past-window",
        /// A player asks for the same four times at once.
        FourAtOnce = "four-at-once",
        /// A player goes from one title to another.
        TitleZap = "title-zap",
        /// A child of HLS names what it was never given.
        ForgedToken = "forged-token",
    }
}

names! {
    /// Branches that matter: over the fixed seeds each must be reached sometimes.
    Mark {
        GrantedAtOnce = "granted-at-once",
        GrantedAfterDisplacement = "granted-after-displacement",
        GrantedAfterLeaving = "granted-after-leaving",
        GrantedUnderRefuse = "granted-under-refuse",
        GrantedUnderNewestWins = "granted-under-newest-wins",
        DisplacedByNewest = "displaced-by-newest",
        TwoWaiting = "two-waiting",
        FiveWaiting = "five-waiting",
        LoserAfterWinner = "loser-after-winner",
        DeadFoundAmongSeveral = "dead-found-among-several",
        DeadBesideVideoOnly = "dead-beside-video-only",
        SparedVideoOnly = "spared-video-only",
        SparedMuted = "spared-muted",
        SparedInPause = "spared-in-pause",
        DrainedWhileHeld = "drained-while-held",
        DrainedWhileNegotiating = "drained-while-negotiating",
        LateReleaseAfterRegrant = "late-release-after-regrant",
        EndedWhileHeldFor = "ended-while-held-for",
        KeyFrameAsked = "key-frame-asked",
        Rebuilt = "rebuilt",
        ViewerAcrossSessions = "viewer-across-sessions",
        ViewerStartedOld = "viewer-started-on-an-old-point",
        ViewerWaited = "viewer-waited-for-a-point",
        RefusedHolderLive = "refused-holder-live",
        RefusedHolderNegotiating = "refused-holder-negotiating",
        RefusedHolderWithoutAudio = "refused-holder-without-audio",
        RefusedTakeoverTimeout = "refused-takeover-timeout",
        RefusedTooManyWaiting = "refused-too-many-waiting",
        RefusedNegotiationFailed = "refused-negotiation-failed",
        RefusedEnded = "refused-ended",
        RefusedDraining = "refused-draining",
        RefusedTooManyViewers = "refused-too-many-viewers",
        RefusedNotFound = "refused-not-found",
        RefusedStartTimeout = "refused-start-timeout",
        RefusedNoSource = "refused-no-source",
        RefusedFromMemory = "refused-from-memory",
        EndedDeleted = "ended-deleted",
        EndedNegotiationFailed = "ended-negotiation-failed",
        EndedClientGone = "ended-client-gone",
        EndedIceFailed = "ended-ice-failed",
        EndedDtlsClosed = "ended-dtls-closed",
        EndedBye = "ended-bye",
        EndedInactive = "ended-inactive",
        EndedSetupTimeout = "ended-setup-timeout",
        EndedDisplaced = "ended-displaced",
        EndedKicked = "ended-kicked",
        EndedShutdown = "ended-shutdown",
        ViewerEndedSlow = "viewer-ended-slow",
        ViewerEndedStuck = "viewer-ended-stuck",
        ViewerEndedIdle = "viewer-ended-idle",
        ViewerEndedShutdown = "viewer-ended-shutdown",
        ViewerEndedEnded = "viewer-ended-ended",
        ViewerEndedNoSource = "viewer-ended-no-source",
        SourceKeyFrame = "source-key-frame",
        ChannelStarted = "channel-started",
        ChannelStartedForTwo = "channel-started-for-two",
        ChannelBack = "channel-back",
        ChannelFailover = "channel-failover",
        ChannelFailback = "channel-failback",
        ChannelBeganAgain = "channel-began-again-within-grace",
        ChannelOff = "channel-off",
        ChannelOnAgain = "channel-on-again",
        ChannelEndedInOrder = "channel-ended-in-order",
        ChannelEndedNoSource = "channel-ended-no-source",
        ChannelPersistent = "channel-pulled-for-nobody",
        SilentAfterMedia = "silent-after-media",
        SilentFromTheBeginning = "silent-from-the-beginning",
        SilentLost = "silent-connection-lost",
        SilentBesideDead = "silent-beside-another",
        ProbeFailed = "probe-failed",
        ShortSuccess = "short-success",
        LongSuccess = "long-success",
        FixedCadence = "fixed-cadence",
        GrowingPause = "growing-pause",
        JoinedUnderRepair = "joined-under-repair",
        JoinedInPause = "joined-in-pause",
        DrainedWhileWaiting = "drained-while-waiting",
        LostNotFound = "lost-not-found",
        LostForbidden = "lost-forbidden",
        LostUnresolved = "lost-unresolved",
        LostUnreachable = "lost-unreachable",
        LostRefused = "lost-refused",
        LostLimit = "lost-limit",
        LostPage = "lost-page",
        LostReset = "lost-reset",
        LostEnded = "lost-ended",
        LostUnusable = "lost-unusable",
        LostLoop = "lost-loop",
        LostTimedOut = "lost-timed-out",
        LostSilent = "lost-silent",
        LostNoKeyFrame = "lost-no-key-frame",
        RefusedUserLimit = "refused-user-limit",
        RefusedSuppressed = "refused-suppressed",
        RefusedAccountExpired = "refused-account-expired",
        RefusedKicked = "refused-kicked",
        RefusedBusy = "refused-busy",
        RefusedAgain = "refused-again",
        Blocked = "blocked",
        HeldThenIn = "held-then-in",
        HeldInVain = "held-in-vain",
        PlayedNormal = "played-normal",
        PlayedSoft = "played-soft",
        PlayedByGrace = "played-by-grace",
        Promoted = "promoted",
        GraceInstantKept = "grace-instant-kept",
        GraceOverBeforeSeen = "grace-over-before-seen",
        EvictedOldest = "evicted-oldest",
        EvictedLatest = "evicted-latest",
        EvictedSameIpOldest = "evicted-same-ip-oldest",
        EvictedSameIpLatest = "evicted-same-ip-latest",
        EvictedAfterHold = "evicted-after-hold",
        EvictedAfterInstant = "evicted-after-instant",
        ViewerEndedEvicted = "viewer-ended-evicted",
        ViewerEndedKicked = "viewer-ended-kicked",
        ViewerEndedLimit = "viewer-ended-user-limit",
        ViewerEndedExpired = "viewer-ended-expired",
        PollerLeft = "poller-left",
        PlaybackDrained = "playback-drained",
        TitleDrained = "title-drained",
        FetchedAtOnce = "fetched-at-once",
        FetchedAfterWait = "fetched-after-wait",
        FetchedLook = "fetched-look",
        FetchedLocal = "fetched-local",
        FetchedPartInTurn = "fetched-part-in-turn",
        FailedOver = "failed-over",
        SameAccount = "same-account",
        OtherAccount = "other-account",
        CameBackInWindow = "came-back-in-window",
        WindowPassed = "window-passed",
        MadeAnew = "made-anew",
        NoAccountAtOnce = "no-account-at-once",
        NoAccountInTime = "no-account-in-time",
        RefusedProviderFailed = "refused-provider-failed",
        RefusedSuperseded = "refused-superseded",
        RefusedPreempted = "refused-preempted",
        RefusedPlaybackOver = "refused-playback-over",
        TitleUserLimit = "title-user-limit",
        TitleBlocked = "title-blocked",
        TitleSoft = "title-soft",
        TitleByGrace = "title-by-grace",
        CutSuperseded = "cut-superseded",
        CutPreempted = "cut-preempted",
        CutKicked = "cut-kicked",
        CutEvicted = "cut-evicted",
        CutShutdown = "cut-shutdown",
        CutLimit = "cut-user-limit",
        CutGraceOver = "cut-grace-over",
        CutExpired = "cut-expired",
        PlaylistMadeRoom = "playlist-made-room",
        GivenUpSilent = "given-up-silent",
        AccountGraced = "account-graced",
        OneMoreThanThereAre = "one-more-than-there-are",
        PreemptedPlayback = "preempted-playback",
        PreemptedSource = "preempted-source",
        PreemptedProbe = "preempted-probe",
        TunedOpened = "tuned-opened",
        TunedShared = "tuned-shared",
        TunedLingering = "tuned-lingering",
        TunedWaited = "tuned-waited",
        TunedNoAccount = "tuned-no-account",
        TunedPreempted = "tuned-preempted",
        TunedOff = "tuned-off",
    }
}

/// How often each name happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<N> {
    counts: Vec<u64>,
    names: std::marker::PhantomData<N>,
}

impl<N: Name> Default for Tally<N> {
    fn default() -> Self {
        Tally { counts: vec![0; N::ALL.len()], names: std::marker::PhantomData }
    }
}

impl<N: Name> Tally<N> {
    /// It happened once more.
    pub fn add(&mut self, name: N) {
        self.counts[name.index()] += 1;
    }

    /// How often it happened.
    pub fn of(&self, name: N) -> u64 {
        self.counts[name.index()]
    }

    /// Adds another tally to this one.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, more)| *sum += more);
    }

    /// Those that never happened.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> + '_ {
        N::ALL.iter().filter(|name| self.of(**name) == 0).map(|name| name.as_str())
    }

    /// Each name and how often it happened.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        N::ALL.iter().map(|name| (name.as_str(), self.of(*name)))
    }
}

/// Which faults this run has, and how strong they are.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Per mille of the occasions, by [`Fault`].
    rates: Vec<u16>,
    /// How long the driver may stand still.
    pub stall: Duration,
    /// How late a deadline may be served.
    pub late: Duration,
    /// How late audio, video and control are seen.
    pub unseen: [Duration; 3],
}

/// The most by which a driver's clock goes back.
pub const CLOCK_BACK: Duration = Duration::from_millis(5);

/// How far a stamp's time may be ahead of its count.
pub const TEARING: Duration = Duration::from_millis(1);

impl Plan {
    /// Nothing goes wrong.
    pub fn calm() -> Self {
        Plan {
            rates: vec![0; Fault::ALL.len()],
            stall: Duration::ZERO,
            late: Duration::ZERO,
            unseen: [Duration::ZERO; 3],
        }
    }

    /// The same, and this goes wrong on so many occasions per mille.
    pub fn with(mut self, fault: Fault, per_mille: u16) -> Self {
        self.rates[fault.index()] = per_mille;
        self
    }

    /// Nothing goes wrong any more; evidence is seen as late as before, or counts would go back.
    pub fn healed(&self) -> Self {
        Plan { unseen: self.unseen, ..Plan::calm() }
    }

    /// Faults as this run has them: some off, some rare, some constant, so that runs differ in kind.
    pub fn draw(rng: &mut SmallRng) -> Self {
        let mut plan = Plan::calm();
        let busy = rng.random_range(1..=3);
        for rate in &mut plan.rates {
            *rate = match rng.random_range(0..4) {
                kind if kind >= busy => 0,
                0 => rng.random_range(5..50),
                1 => rng.random_range(50..300),
                _ => rng.random_range(300..=900),
            };
        }
        let ms = Duration::from_millis;
        if plan.has(Fault::Stall) {
            plan.stall = ms(*pick(rng, &[30, 150, 800]));
        }
        plan.late = if plan.has(Fault::LostWake) {
            ms(*pick(rng, &[60, 400]))
        } else if plan.has(Fault::LateTick) {
            ms(30)
        } else {
            Duration::ZERO
        };
        if plan.has(Fault::EvidenceDelay) {
            plan.unseen = std::array::from_fn(|_| ms(*pick(rng, &[0, 1, 15, 60])));
        }
        plan
    }

    /// The same with the faults that were chosen by hand: one that the seed has not is neither rare nor constant.
    pub fn choose(mut self, faults: &Faults) -> Self {
        let drawn = self.has(Fault::EvidenceDelay);
        for fault in Fault::ALL {
            let rate = &mut self.rates[fault.index()];
            *rate = if faults.has(*fault, *rate > 0) { (*rate).max(u16::from(*rate == 0) * 200) } else { 0 };
        }
        let ms = Duration::from_millis;
        self.stall = if self.has(Fault::Stall) { self.stall.max(ms(30)) } else { Duration::ZERO };
        self.late = match (self.has(Fault::LostWake), self.has(Fault::LateTick)) {
            (true, _) => self.late.max(ms(60)),
            (false, true) => ms(30),
            (false, false) => Duration::ZERO,
        };
        if !self.has(Fault::EvidenceDelay) {
            self.unseen = [Duration::ZERO; 3];
        } else if !drawn {
            self.unseen = [ms(15), ms(60), ms(1)];
        }
        self
    }

    /// The faults that may happen in this run.
    pub fn faults(&self) -> impl Iterator<Item = Fault> + '_ {
        Fault::ALL.iter().copied().filter(|fault| self.has(*fault))
    }

    /// Whether it may happen in this run.
    pub fn has(&self, fault: Fault) -> bool {
        self.rates[fault.index()] > 0
    }

    /// Whether it happens on this occasion.
    pub fn strikes(&self, fault: Fault, rng: &mut SmallRng) -> bool {
        let rate = self.rates[fault.index()];
        rate > 0 && rng.random_range(0..1000) < rate
    }

    /// How much later than in a calm world the core may do what it has to.
    pub fn slack(&self) -> Duration {
        let clock = if self.has(Fault::ClockBack) { CLOCK_BACK } else { Duration::ZERO };
        self.stall + self.late + clock
    }

    /// How late the slowest kind of evidence is seen.
    pub fn unseen_at_most(&self) -> Duration {
        let torn = if self.has(Fault::TornEvidence) { TEARING } else { Duration::ZERO };
        self.unseen.into_iter().max().unwrap_or_default() + torn
    }
}

/// One of several.
pub fn pick<'a, T>(rng: &mut SmallRng, of: &'a [T]) -> &'a T {
    &of[rng.random_range(0..of.len())]
}

/// A span between two, in ms.
pub fn span(rng: &mut SmallRng, from: u64, to: u64) -> Duration {
    Duration::from_micros(rng.random_range(from * 1000..=to * 1000))
}

/// When the time of somebody is over, of whom there are few: while it plays, or before all began.
pub fn expiry(rng: &mut SmallRng, chance: f64) -> Option<Date> {
    rng.random_bool(chance).then(|| Date::from_micros(rng.random_range(-10_000_000..=40_000_000)))
}
