//! What is told of providers and their accounts.

use holdfast_core::account::Holder;
use holdfast_core::input::{AccountId, Failure, GivesWay, Left, Loss, Note, ProviderId, Refusal};
use holdfast_io::providers::account_name;
use tracing::Level;

use super::{About, Told, seconds};
use crate::config::Settings;

/// Puts a note of a provider into words.
pub(super) fn tell<'n>(note: &Note, settings: &'n Settings, about: &'n About) -> Told<'n> {
    let provider = |id: ProviderId| settings.providers.get(id.0 as usize).map_or("", |provider| provider.name.as_str());
    let of = |id: ProviderId, level, what: String| Told::new(level, format!("provider \"{}\": {what}", provider(id)));
    match note {
        Note::AccountGraced { holder, provider } => of(
            *provider,
            Level::DEBUG,
            format!("all accounts are in use; {} has its grace", who(*holder, &about.title)),
        ),
        Note::AccountPreempted { account, holder, by, why } => {
            let (id, name) = place(settings, *account);
            let (holder, by) = (who(*holder, &about.title), who(*by, &about.by));
            let (level, what) = match why {
                GivesWay::Lingering => (Level::DEBUG, format!("{holder}, which nobody watches, is closed for {by}")),
                GivesWay::Probe => (Level::DEBUG, format!("{holder}, which only looked, is closed for {by}")),
                GivesWay::Silent => (Level::INFO, format!("{holder}, which never sent anything, is closed for {by}")),
                GivesWay::Weaker => (Level::INFO, format!("{holder} gives way to {by}, which is stronger")),
            };
            of(id, level, format!("account {name}: {what}"))
        }
        Note::AccountLost { account, loss } => {
            let (id, name) = place(settings, *account);
            of(id, Level::DEBUG, format!("account {name}: a live stream is given up: {}", loss.says()))
        }
        Note::AccountFailed { account, failure } => {
            let (id, name) = place(settings, *account);
            let (level, why) = failed(*failure, about.why.as_deref());
            of(id, level, format!("account {name}: {why}"))
        }
        Note::AccountLate { account, late } => {
            let (id, name) = place(settings, *account);
            let late = seconds(*late);
            let what = format!(
                "account {name}: it still counted a connection {late} after that was closed; what is opened next waits so long"
            );
            of(id, Level::INFO, what)
        }
        Note::AccountOver { account } => {
            let (id, name) = place(settings, *account);
            let what = format!(
                "account {name}: its `expires` is over: nothing more is asked for with it, and what runs goes on until it ends; renew it, then change `expires` and start again"
            );
            of(id, Level::WARN, what)
        }
        Note::AccountOverstated { account, configured, allowed } => {
            let (id, name) = place(settings, *account);
            let what = format!(
                "account {name}: `max_connections` is {configured}, and its panel says that it allows {allowed}: no more than {allowed} are opened at a time; write {allowed}, or buy more"
            );
            of(id, Level::WARN, what)
        }
        Note::AccountNotLetIn { account, why } => {
            let (id, name) = place(settings, *account);
            of(id, Level::WARN, format!("account {name}: its panel says nothing of it: {why}"))
        }
        Note::LiveAsHls { provider } => of(
            *provider,
            Level::WARN,
            String::from(
                "its live streams come as HLS and not as MPEG-TS, as far as they were asked for: until its catalogue is read anew all are \
                 fetched as HLS, for each viewer with a connection of its own; `output = \"ts\"` or `\"m3u8\"` settles it",
            ),
        ),
        Note::CatalogRead { provider, live, films, series, skipped, first, beyond } => {
            let mut what = format!("{live} live streams, {films} films, {series} series");
            match skipped {
                0 => {}
                1 => what.push_str(&format!("; one entry could not be used: {first}")),
                skipped => what.push_str(&format!("; {skipped} entries could not be used, the first of them: {first}")),
            }
            if *beyond > 0 {
                what.push_str(&format!("; {beyond} more were left out: raise `entries` of the provider to have them"));
            }
            of(*provider, if *beyond > 0 { Level::WARN } else { Level::INFO }, what)
        }
        Note::CatalogFault { provider, why, left } => {
            let left = match left {
                Left::Nothing => String::from("nothing of it is shown until it can be read"),
                Left::Former(_) => String::from("what was read last is kept"),
                Left::Beginning(entries) => {
                    format!("it was never read to its end: the {entries} entries that came before that are shown")
                }
            };
            of(*provider, Level::WARN, format!("{why}; {left}"))
        }
        Note::GuideRead { provider, programmes, skipped: 0 } => {
            of(*provider, Level::DEBUG, format!("its guide: {programmes} programmes"))
        }
        Note::GuideRead { provider, programmes, skipped } => {
            let what = format!(
                "its guide: {programmes} programmes; {skipped} more are left out, since they cannot be read: their tags do not match, or \
                 channel, start or stop is missing"
            );
            of(*provider, Level::INFO, what)
        }
        Note::PlaylistFault { provider, why, .. } => {
            let title = about.title.as_ref().map_or_else(|| "a title".to_owned(), |title| format!("\"{title}\""));
            let what = format!("a playlist of {title}: {why}; what needs it is left out, and the rest plays");
            of(*provider, Level::WARN, what)
        }
        _ => Told::new(Level::DEBUG, String::new()),
    }
}

/// The provider of an account, and what that is called among its accounts.
fn place(settings: &Settings, account: AccountId) -> (ProviderId, String) {
    let mut before = 0;
    for (index, provider) in settings.providers.iter().enumerate() {
        let mut own = settings.accounts.iter().filter(|account| account.provider == provider.name);
        // One without any has that of its URL.
        let behind = before + own.clone().count().max(1);
        if (account.0 as usize) < behind {
            let place = account.0 as usize - before;
            let username = own.nth(place).map_or("", |account| &account.username);
            return (ProviderId(index as u32), account_name(place + 1, username));
        }
        before = behind;
    }
    (ProviderId(u32::MAX), account_name(0, ""))
}

/// An account by its place and its provider's name.
pub(in crate::log) fn called(settings: &Settings, account: AccountId) -> String {
    let (provider, name) = place(settings, account);
    let provider = settings.providers.get(provider.0 as usize).map_or("?", |provider| provider.name.as_str());
    format!("account {name} of provider \"{provider}\"")
}

fn who(holder: Holder, title: &Option<String>) -> String {
    let of = |what: &str| title.as_ref().map_or_else(|| what.to_owned(), |title| format!("\"{title}\""));
    match holder {
        Holder::Playback(playback) => format!("playback {playback} of {}", of("a title")),
        Holder::Source(source) => format!("source {source} of {}", of("a live stream")),
        Holder::Probe(_) => String::from("a probe"),
    }
}

pub(in crate::log) fn failed(failure: Failure, why: Option<&str>) -> (Level, String) {
    match failure {
        Failure::Unreachable => {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            (Level::WARN, format!("it cannot be reached{why}"))
        }
        Failure::TimedOut => (Level::WARN, String::from("it did not answer in time")),
        Failure::Status(status @ (401 | 403)) => (
            Level::ERROR,
            format!(
                "it answers {status}: it wants other credentials, the account is over, what is asked for is not part of it, or a connection that was just closed is still counted (see `cooling`)"
            ),
        ),
        Failure::Status(508) => (Level::ERROR, format!("it answers 508: {}", Loss::Loop.says())),
        Failure::Status(status) if Refusal::of(status.into()) == Refusal::Limit => {
            (Level::INFO, format!("it answers {status}: {}", Loss::Limit.says()))
        }
        Failure::Status(status) => (Level::INFO, format!("it answers {status}")),
        Failure::Page => (
            Level::ERROR,
            String::from(
                "it answers with a page where a film or a recording was to come: so panels say that credentials are wrong or an account is over",
            ),
        ),
        Failure::Unusable => (Level::WARN, why.unwrap_or("what it answers is of no use").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::Id;
    use holdfast_core::input::TitleId;

    use super::super::tests::NOTHING;
    use super::*;

    #[test]
    fn a_catalogue_that_was_cut_is_a_warning_that_names_the_key() {
        let read = |beyond| Note::CatalogRead {
            provider: ProviderId(0),
            live: 2,
            films: 0,
            series: 0,
            skipped: 1,
            first: "\"X\": no address follows it".into(),
            beyond,
        };
        let settings = Settings::default();
        let (whole, cut) = (tell(&read(0), &settings, NOTHING), tell(&read(7), &settings, NOTHING));
        assert_eq!((whole.level, cut.level), (Level::INFO, Level::WARN));
        assert!(!whole.sentence.contains("left out"), "{}", whole.sentence);
        assert!(
            whole.sentence.ends_with("; one entry could not be used: \"X\": no address follows it"),
            "{}",
            whole.sentence
        );
        assert!(cut.sentence.contains("7 more were left out: raise `entries`"), "{}", cut.sentence);
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_that_are_known() {
        let settings = Settings::default();
        let why = About { why: Some("it leads to 10.0.0.5".into()), ..About::default() };
        let told =
            |failure, about| tell(&Note::AccountFailed { account: AccountId(0), failure }, &settings, about).sentence;
        for (failure, known, unknown) in [
            (Failure::Unusable, ": it leads to 10.0.0.5", ": what it answers is of no use"),
            (Failure::Unreachable, ": it cannot be reached: it leads to 10.0.0.5", ": it cannot be reached"),
            (Failure::Status(500), ": it answers 500", ": it answers 500"),
            (
                Failure::Page,
                "credentials are wrong or an account is over",
                "credentials are wrong or an account is over",
            ),
            (
                Failure::Status(508),
                "it is this server, or gets the stream from here; name where the stream comes from",
                "it is this server, or gets the stream from here; name where the stream comes from",
            ),
        ] {
            let (with, without) = (told(failure, &why), told(failure, NOTHING));
            assert!(with.ends_with(known) && without.ends_with(unknown), "{with}; {without}");
        }
        for (left, follows) in [
            (Left::Nothing, "nothing of it is shown until it can be read"),
            (Left::Former(3), "what was read last is kept"),
            (Left::Beginning(3), "it was never read to its end: the 3 entries that came before that are shown"),
        ] {
            let note = Note::CatalogFault { provider: ProviderId(0), why: "the guide: it is no XMLTV".into(), left };
            let sentence = tell(&note, &settings, NOTHING).sentence;
            assert!(sentence.ends_with(&format!(": the guide: it is no XMLTV; {follows}")), "{sentence}");
        }
    }

    #[test]
    fn more_connections_than_a_panel_allows_are_told_with_the_number_to_write() {
        let told = |configured| {
            let note = Note::AccountOverstated { account: AccountId(0), configured, allowed: 1 };
            tell(&note, &Settings::default(), NOTHING).sentence
        };
        assert!(
            told(2).contains("`max_connections` is 2, and its panel says that it allows 1: no more than 1 are opened"),
            "{}",
            told(2)
        );
    }

    #[test]
    fn what_of_a_guide_cannot_be_read_is_told() {
        let settings = Settings::default();
        let told =
            |skipped| tell(&Note::GuideRead { provider: ProviderId(0), programmes: 7, skipped }, &settings, NOTHING);
        let (whole, part) = (told(0), told(2));
        assert_eq!((whole.level, part.level), (Level::DEBUG, Level::INFO));
        assert!(whole.sentence.ends_with(": its guide: 7 programmes"), "{}", whole.sentence);
        assert!(part.sentence.contains(": its guide: 7 programmes; 2 more are left out"), "{}", part.sentence);
    }

    #[test]
    fn what_is_wrong_with_a_playlist_is_told_of_its_title() {
        let settings = Settings {
            providers: vec![crate::config::Provider { name: "tv".into(), ..Default::default() }],
            ..Settings::default()
        };
        let note = Note::PlaylistFault { provider: ProviderId(0), title: TitleId(1), why: "line 5 names a Key".into() };
        let about = About { title: Some("News".into()), ..About::default() };
        let told = tell(&note, &settings, &about);
        let sentence = "provider \"tv\": a playlist of \"News\": line 5 names a Key; what needs it is left out, and the rest plays";
        assert_eq!((told.level, told.sentence.as_str()), (Level::WARN, sentence));
        // It may be in no catalogue any more.
        assert!(tell(&note, &settings, NOTHING).sentence.starts_with("provider \"tv\": a playlist of a title: line 5"));
    }

    #[test]
    fn an_account_is_called_by_its_number_and_what_it_logs_in_with() {
        let provider = |name: &str| crate::config::Provider { name: name.into(), ..Default::default() };
        let account = |provider: &str, username: &str| crate::config::Account {
            provider: provider.into(),
            username: username.into(),
            password: "hunter2".into(),
            ..Default::default()
        };
        let settings = Settings {
            providers: ["tv", "list", "more"].map(provider).into(),
            accounts: vec![account("more", "box-3"), account("tv", "box-1"), account("tv", "")],
            ..Settings::default()
        };
        for (id, told) in [
            (0, "provider \"tv\": account 1 (box-1): "),
            (1, "provider \"tv\": account 2: "),
            (2, "provider \"list\": account 1: "),
            (3, "provider \"more\": account 1 (box-3): "),
        ] {
            let failed = Note::AccountFailed { account: AccountId(id), failure: Failure::TimedOut };
            let sentence = tell(&failed, &settings, NOTHING).sentence;
            assert!(sentence.starts_with(told) && !sentence.contains("hunter2"), "{sentence}");
        }
    }

    #[test]
    fn what_nobody_watches_gives_way_to_nobody_stronger() {
        let settings = Settings::default();
        let (holder, by) = (Holder::Source(Id::from_parts(0, 0)), Holder::Source(Id::from_parts(1, 0)));
        let about = About { title: Some("News".into()), by: Some("Sport".into()), ..About::default() };
        let told = |why| tell(&Note::AccountPreempted { account: AccountId(0), holder, by, why }, &settings, &about);
        let lingering = told(GivesWay::Lingering);
        assert!(lingering.sentence.contains("source 0.0 of \"News\", which nobody watches"), "{}", lingering.sentence);
        assert!(!lingering.sentence.contains("stronger"), "{}", lingering.sentence);
        assert!(told(GivesWay::Weaker).sentence.contains("gives way to source 1.0 of \"Sport\", which is stronger"));
    }
}
