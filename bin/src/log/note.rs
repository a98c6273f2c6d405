//! The core's notes in words: who, where, what happened, what to do.

mod channel;
mod playback;
pub(super) mod provider;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use holdfast_core::config::{Config, Takeover};
use holdfast_core::input::{
    ChannelId, EndReason, EndpointId, FeedId, Loss, Note, PlaybackId, RefuseReason, SessionId, Switch, ViewerEnd,
    ViewerId,
};
use holdfast_io::server::About;
use tracing::Level;

use crate::config::Settings;

/// A note in words, with its parts for programs.
pub(super) struct Told<'n> {
    pub(super) level: Level,
    pub(super) sentence: String,
    pub(super) endpoint: Option<&'n str>,
    pub(super) slot: Option<u32>,
    pub(super) channel: Option<&'n str>,
    /// The source's URL without what may be secret in it.
    pub(super) source: Option<String>,
    pub(super) session: Option<SessionId>,
    pub(super) reason: Option<&'static str>,
    pub(super) viewer: Option<ViewerId>,
    pub(super) user: Option<&'n str>,
    pub(super) playback: Option<PlaybackId>,
}

impl<'n> Told<'n> {
    fn new(level: Level, sentence: String) -> Self {
        Told {
            level,
            sentence,
            endpoint: None,
            slot: None,
            channel: None,
            source: None,
            session: None,
            reason: None,
            viewer: None,
            user: None,
            playback: None,
        }
    }

    /// What happened to the viewers of a feed.
    fn at(place: Place<'n>, level: Level, what: &str) -> Self {
        let told = Told::new(level, format!("{place}: {what}"));
        match place {
            Place::Slot(endpoint, slot) => Told { endpoint: Some(endpoint), slot: Some(slot), ..told },
            Place::Channel(channel) => Told { channel: Some(channel), ..told },
        }
    }
}

/// Puts a note into words, with the names of the configuration. People count slots from 1, as the addresses of their feeds do.
pub(super) fn tell<'n>(note: &Note, settings: &'n Settings, about: &'n About) -> Told<'n> {
    let config = &settings.core;
    let name = |endpoint: &EndpointId| config.endpoints.get(endpoint.0 as usize).map_or("", |own| own.name.as_str());
    match note {
        Note::SessionStarted { endpoint, slot, session, waited } => {
            let (endpoint, slot) = (name(endpoint), slot + 1);
            let waited =
                if *waited == 0 { String::new() } else { format!(" after it had waited {}", seconds(*waited)) };
            let sentence = format!("endpoint \"{endpoint}\" slot {slot}: session {session} was let in{waited}");
            Told {
                endpoint: Some(endpoint),
                slot: Some(slot),
                session: Some(*session),
                ..Told::new(Level::INFO, sentence)
            }
        }
        Note::SessionEnded { endpoint, slot, session, reason, lasted, silent } => {
            let own = config.endpoints.get(endpoint.0 as usize);
            let rule = own.map_or(Takeover::DisplaceDead, |own| own.takeover);
            let (endpoint, slot) = (name(endpoint), slot + 1);
            let (level, what) = ended(*reason, seconds(*lasted), *silent, rule);
            let sentence = format!("endpoint \"{endpoint}\" slot {slot}: session {session} {what}");
            Told {
                endpoint: Some(endpoint),
                slot: Some(slot),
                session: Some(*session),
                reason: Some(reason.as_str()),
                ..Told::new(level, sentence)
            }
        }
        Note::OfferRefused { endpoint, reason, waited, .. } => {
            let (endpoint, level, why) = (name(endpoint), refused(*reason), reason.says());
            let waited = if *waited == 0 { String::new() } else { format!(" after {}", seconds(*waited)) };
            let from = from(&about.from);
            let sentence = format!("endpoint \"{endpoint}\": a publisher{from} was refused{waited}: {why}");
            Told { endpoint: Some(endpoint), reason: Some(reason.as_str()), ..Told::new(level, sentence) }
        }
        Note::SlotStalled { endpoint, slot, session, stalled } => {
            let (endpoint, slot) = (name(endpoint), slot + 1);
            let sentence = format!(
                "endpoint \"{endpoint}\" slot {slot}: session {session} delivers, but nothing has come out of its slot for {}: \
                 the fault is on this side, the slot's chain is built anew",
                seconds(*stalled)
            );
            Told {
                endpoint: Some(endpoint),
                slot: Some(slot),
                session: Some(*session),
                ..Told::new(Level::ERROR, sentence)
            }
        }
        Note::ViewerEnded { feed, viewer, reason, lasted, sent } => {
            let (level, why) = viewer_ended(*reason);
            let what = format!("viewer {viewer} {why}, after {} and {} kB", seconds(*lasted), sent.div_ceil(1000));
            Told {
                viewer: Some(*viewer),
                reason: Some(reason.as_str()),
                ..Told::at(place(*feed, config, about), level, &what)
            }
        }
        Note::ViewerRefused { feed, reason, .. } => {
            let (level, why) = (refused(*reason), reason.says());
            let what = format!("a viewer{} was refused: {why}", from(&about.from));
            Told { reason: Some(reason.as_str()), ..Told::at(place(*feed, config, about), level, &what) }
        }
        Note::RequestRefused { endpoint, status, from: address, why } => {
            let endpoint = name(endpoint);
            let from = from(address);
            let sentence =
                format!("endpoint \"{endpoint}\": a publisher's request{from} was answered with {status}: {why}");
            Told { endpoint: Some(endpoint), ..Told::new(Level::WARN, sentence) }
        }
        Note::SourceOpening { .. }
        | Note::SourceLost { .. }
        | Note::SourceFault { .. }
        | Note::ChannelStarted { .. }
        | Note::ChannelSilent { .. }
        | Note::ChannelBack { .. }
        | Note::ChannelSwitched { .. }
        | Note::ChannelEnded { .. }
        | Note::ChannelOff { .. } => channel::tell(note, settings, about),
        Note::PlaybackStarted { .. }
        | Note::PlaybackEnded { .. }
        | Note::PlaybackRefused { .. }
        | Note::PlaybackPromoted { .. }
        | Note::PlaybackEvicted { .. }
        | Note::PlaybackGraced { .. } => playback::tell(note, settings, about),
        Note::AccountGraced { .. }
        | Note::AccountPreempted { .. }
        | Note::AccountFailed { .. }
        | Note::AccountLate { .. }
        | Note::AccountOver { .. }
        | Note::AccountOverstated { .. }
        | Note::AccountNotLetIn { .. }
        | Note::LiveAsHls { .. }
        | Note::AccountLost { .. }
        | Note::CatalogRead { .. }
        | Note::CatalogFault { .. }
        | Note::GuideRead { .. }
        | Note::PlaylistFault { .. } => provider::tell(note, settings, about),
        Note::LibraryRead { library, files, unnamed, empty, cut_short } => {
            let mut what = format!("library \"{library}\": {files} films or episodes");
            if *unnamed > 0 {
                what.push_str(&format!(
                    "; {unnamed} files or directories are left out: their names are not UTF-8, rename them"
                ));
            }
            if *empty > 0 {
                what.push_str(&format!("; {empty} files are left out: they are empty, copy them again"));
            }
            if *cut_short {
                what.push_str("; there is more than is taken");
            }
            Told::new(if *unnamed > 0 || *empty > 0 { Level::WARN } else { Level::INFO }, what)
        }
        Note::LibraryFault { library, why, kept } => {
            let kept = if *kept > 0 { ", what was found before is kept" } else { "" };
            let sentence = format!("library \"{library}\" cannot be looked through{kept}: {why}");
            Told::new(Level::WARN, sentence)
        }
        Note::RateLimited { peer, refused } => {
            let sentence = format!(
                "{peer} sends more WHIP requests than `http.limits.whip_rate` allows: {refused} were answered with 429; behind a \
                 proxy everybody has its address"
            );
            Told::new(Level::WARN, sentence)
        }
        Note::LoginFailed { peer, user, failures } => {
            let user = user.and_then(|user| config.users.get(user.0 as usize));
            let what = match user {
                Some(user) => format!("with a wrong password for \"{}\"", user.name),
                None => String::from("under a name that nobody has"),
            };
            let more = if *failures == 1 { String::new() } else { format!(" (the last of {failures} that failed)") };
            Told::new(Level::WARN, format!("{peer} tried to log in {what}{more}"))
        }
        Note::LoginsLocked { peer, wait, addresses } => {
            let more = if *addresses == 1 { String::new() } else { format!(" (the last of {addresses} addresses)") };
            let sentence = format!(
                "logins from {peer} are answered with 429 for {}, and not looked at{more}: as many failed within a minute as \
                 `http.limits.login_failures` allows; it goes on as long as more fail. Correct what its players log in with, or \
                 name the proxy that they come through in `http.trusted_proxies`",
                seconds(*wait)
            );
            Told::new(Level::WARN, sentence)
        }
        Note::ConnectionsFull { limit } => {
            let sentence = format!(
                "clients are turned away: there are {limit} connections, as many as `http.limits.connections` and the limit of \
                 open files allow"
            );
            Told::new(Level::ERROR, sentence)
        }
        Note::ClockSet { by } => Told::new(Level::WARN, clock_set(*by)),
        Note::Draining { sessions, viewers } => Told::new(
            Level::INFO,
            format!("stopping: nobody new comes in; sessions that are ended: {sessions}, viewers: {viewers}"),
        ),
    }
}

/// That the clock was set by so many µs.
pub(crate) fn clock_set(by: i64) -> String {
    let (direction, sooner) = if by < 0 { ("back", "later") } else { ("forward", "sooner") };
    let by = Duration::from_secs(by.unsigned_abs() / 1_000_000);
    format!(
        "the clock of this machine was set {direction} by {by:?}: users and accounts that end on a date end so much {sooner}"
    )
}

/// What a feed belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'c> {
    /// A slot of an endpoint, from 1.
    Slot(&'c str, u32),
    Channel(&'c str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Slot(endpoint, slot) => write!(f, "endpoint \"{endpoint}\" slot {slot}"),
            Place::Channel(channel) => write!(f, "channel \"{channel}\""),
        }
    }
}

/// Feeds are numbered through in the order of the configuration: those of all slots, then those of the channels.
pub(super) fn place<'c>(feed: FeedId, config: &'c Config, about: &'c About) -> Place<'c> {
    let mut left = feed.index() as u32;
    for endpoint in &config.endpoints {
        if left < endpoint.slots {
            return Place::Slot(&endpoint.name, left + 1);
        }
        left -= endpoint.slots;
    }
    Place::Channel(config.channels.get(left as usize).map_or(title(about), |channel| channel.name.as_str()))
}

/// What a live stream of a provider is called.
fn title(about: &About) -> &str {
    about.title.as_deref().unwrap_or("of a provider")
}

fn ended(reason: EndReason, lasted: String, silent: Option<u64>, rule: Takeover) -> (Level, String) {
    let silence = match silent {
        Some(silent) => format!("nothing had come from it for {}", seconds(silent)),
        None => String::from("it never sent any media"),
    };
    match reason {
        EndReason::Deleted => (Level::INFO, format!("ended by its publisher after {lasted}")),
        EndReason::Bye | EndReason::DtlsClosed => (Level::INFO, format!("closed by its publisher after {lasted}")),
        EndReason::ClientGone => (Level::INFO, String::from("dropped: its client hung up before it had an answer")),
        EndReason::Kicked => (Level::INFO, format!("ended by an operator after {lasted}")),
        EndReason::Shutdown => (Level::INFO, format!("ended after {lasted}: the program stops")),
        EndReason::NegotiationFailed => {
            (Level::WARN, String::from("dropped: no session could be negotiated from its offer"))
        }
        EndReason::IceFailed => {
            (Level::WARN, format!("lost after {lasted}: its network path failed, {silence}; it may come back at once"))
        }
        EndReason::Inactive => {
            (Level::WARN, format!("ended after {lasted}: {silence}, which is `inactivity_timeout`; its slot is free"))
        }
        EndReason::SetupTimeout => (
            Level::WARN,
            format!(
                "ended after {lasted}: no media ever came, for which it had `setup_timeout`; see whether UDP from its \
                 publisher reaches the addresses and ports of [ice]"
            ),
        ),
        EndReason::Displaced if rule == Takeover::NewestWins => (
            Level::WARN,
            format!(
                "displaced after {lasted}: another publisher asked for the slot, and the newest has it here (`takeover`), though {silence}"
            ),
        ),
        EndReason::Displaced => {
            (Level::WARN, format!("displaced after {lasted}: {silence} and another publisher asked for the slot"))
        }
    }
}

/// From where somebody came, where that is known.
fn from(address: &Option<String>) -> String {
    address.as_ref().map(|address| format!(" from {address}")).unwrap_or_default()
}

/// How much a refusal matters.
fn refused(reason: RefuseReason) -> Level {
    match reason {
        RefuseReason::TakeoverTimeout
        | RefuseReason::TooManyWaiting
        | RefuseReason::NegotiationFailed
        | RefuseReason::TooManyViewers
        | RefuseReason::StartTimeout
        | RefuseReason::AccountsOver
        | RefuseReason::InVain
        | RefuseReason::Busy => Level::WARN,
        RefuseReason::HolderLive
        | RefuseReason::HolderNegotiating
        | RefuseReason::HolderWithoutAudio
        | RefuseReason::Ended
        | RefuseReason::Draining
        | RefuseReason::NoSource
        | RefuseReason::NotFound
        | RefuseReason::UserLimit
        | RefuseReason::Suppressed
        | RefuseReason::AccountExpired
        | RefuseReason::Kicked
        | RefuseReason::TooManyRequests
        | RefuseReason::ProviderLimit
        | RefuseReason::ProviderFailed
        | RefuseReason::Preempted => Level::INFO,
        RefuseReason::Superseded | RefuseReason::PlaybackOver => Level::DEBUG,
    }
}

/// How much the end of a viewer matters, and what became of it.
fn viewer_ended(reason: ViewerEnd) -> (Level, Cow<'static, str>) {
    let ended = || Cow::Owned(format!("was ended: {}", reason.says()));
    match reason {
        ViewerEnd::Left => (Level::DEBUG, Cow::Borrowed("left")),
        ViewerEnd::Done => (Level::DEBUG, Cow::Borrowed("was sent to its end")),
        ViewerEnd::Shutdown | ViewerEnd::Superseded => (Level::DEBUG, ended()),
        ViewerEnd::Slow
        | ViewerEnd::Stuck
        | ViewerEnd::Idle
        | ViewerEnd::Ended
        | ViewerEnd::NoSource
        | ViewerEnd::Evicted
        | ViewerEnd::Kicked
        | ViewerEnd::Limit
        | ViewerEnd::Failed
        | ViewerEnd::Preempted
        | ViewerEnd::GraceOver
        | ViewerEnd::Expired => (Level::INFO, ended()),
    }
}

/// Microseconds as seconds with one decimal, rounded.
fn seconds(micros: u64) -> String {
    let tenths = micros.saturating_add(50_000) / 100_000;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use holdfast_core::config::Endpoint;
    use holdfast_core::id::Id;

    use super::*;

    pub(super) const NOTHING: &About = &About { title: None, by: None, again: false, from: None, why: None };

    fn tell<'n>(note: &Note, settings: &'n Settings) -> Told<'n> {
        super::tell(note, settings, NOTHING)
    }

    #[test]
    fn lengths_of_time_are_rounded_to_tenths() {
        assert_eq!(seconds(0), "0.0 s");
        assert_eq!(seconds(2_049_999), "2.0 s");
        assert_eq!(seconds(2_050_000), "2.1 s");
        assert_eq!(seconds(u64::MAX), seconds(u64::MAX - 1));
    }

    #[test]
    fn every_end_has_words_of_its_own() {
        let mut words: Vec<String> = EndReason::ALL
            .iter()
            .map(|reason| ended(*reason, String::from("1.0 s"), Some(2), Takeover::Refuse).1)
            .collect();
        words.push(ended(EndReason::Displaced, String::from("1.0 s"), Some(2), Takeover::NewestWins).1);
        words.sort();
        words.dedup();
        // RTCP's goodbye and DTLS's are one thing to an operator.
        assert_eq!(words.len(), EndReason::ALL.len());
    }

    #[test]
    fn a_login_that_fails_is_told_by_a_name_only_where_somebody_has_it() {
        let mut settings = Settings::default();
        settings.core.users = vec![holdfast_core::config::User { name: "anna".into(), ..Default::default() }];
        for (user, failures, sentence) in [
            (Some(0), 1, "192.0.2.1 tried to log in with a wrong password for \"anna\""),
            (None, 3, "192.0.2.1 tried to log in under a name that nobody has (the last of 3 that failed)"),
        ] {
            let user = user.map(holdfast_core::input::UserId);
            let told = tell(&Note::LoginFailed { peer: "192.0.2.1".into(), user, failures }, &settings);
            assert_eq!((told.level, told.sentence.as_str()), (Level::WARN, sentence));
        }
    }

    #[test]
    fn an_address_that_is_locked_out_is_told_for_how_long_and_what_to_do() {
        let note = |addresses| Note::LoginsLocked { peer: "192.0.2.1".into(), wait: 6_000_000, addresses };
        let settings = Settings::default();
        let told = tell(&note(1), &settings);
        let says = ["logins from 192.0.2.1 are answered with 429 for 6.0 s", "`http.limits.login_failures`", "Correct"];
        assert!(says.iter().all(|part| told.sentence.contains(part)), "{}", told.sentence);
        assert_eq!(told.level, Level::WARN);
        assert!(tell(&note(3), &settings).sentence.contains("(the last of 3 addresses)"));
    }

    fn config(endpoints: &[(&str, u32)]) -> Settings {
        let mut settings = Settings::default();
        settings.core.endpoints = endpoints
            .iter()
            .map(|(name, slots)| Endpoint { name: (*name).to_owned(), slots: *slots, ..Endpoint::default() })
            .collect();
        settings
    }

    #[test]
    fn viewers_are_told_by_endpoint_and_slot_or_by_channel() {
        let config = config(&[("stage", 2), ("live", 3)]);
        for (feed, place) in [
            (0, "endpoint \"stage\" slot 1: "),
            (1, "endpoint \"stage\" slot 2: "),
            (4, "endpoint \"live\" slot 3: "),
            (5, "channel \"test\": "),
        ] {
            let (feed, reason) = (Id::from_parts(feed, 0), RefuseReason::TooManyViewers);
            let request = holdfast_core::input::RequestId(1);
            let told = tell(&Note::ViewerRefused { request, feed, reason }, &config);
            assert!(told.sentence.starts_with(&format!("{place}a viewer was refused")), "{}", told.sentence);
            let reason = ViewerEnd::Slow;
            let ended = Note::ViewerEnded { feed, viewer: Id::from_parts(7, 1), reason, lasted: 1, sent: 1 };
            let told = tell(&ended, &config);
            assert!(told.sentence.starts_with(&format!("{place}viewer 7.1 was ended")), "{}", told.sentence);
        }
    }

    #[test]
    fn a_wait_is_told_only_where_there_was_one() {
        let config = config(&[("stage", 1), ("live", 2)]);
        let started =
            |waited| Note::SessionStarted { endpoint: EndpointId(1), slot: 1, session: Id::from_parts(4, 0), waited };
        assert_eq!(tell(&started(0), &config).sentence, "endpoint \"live\" slot 2: session 4.0 was let in");
        let waited = started(2_000_000);
        assert_eq!(
            tell(&waited, &config).sentence,
            "endpoint \"live\" slot 2: session 4.0 was let in after it had waited 2.0 s"
        );
        assert_eq!(tell(&waited, &config).slot, Some(2));
    }

    #[test]
    fn a_session_without_media_is_not_said_to_have_fallen_silent() {
        let (_, words) = ended(EndReason::IceFailed, String::from("9.0 s"), None, Takeover::DisplaceDead);
        assert!(words.contains("it never sent any media"), "{words}");
    }

    #[test]
    fn what_goes_on_all_day_is_not_a_warning() {
        let level = |reason| viewer_ended(reason).0;
        assert_eq!((level(ViewerEnd::Left), level(ViewerEnd::Slow)), (Level::DEBUG, Level::INFO));
        assert_eq!(ended(EndReason::Deleted, String::new(), None, Takeover::DisplaceDead).0, Level::INFO);
        assert_eq!(refused(RefuseReason::HolderLive), Level::INFO);
    }
}
