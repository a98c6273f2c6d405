//! What is told of providers and their accounts.

use holdfast_core::account::Holder;
use holdfast_core::input::{AccountId, Failure, GivesWay, Note, ProviderId};
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
            let (id, number) = place(settings, *account);
            let (holder, by) = (who(*holder, &about.title), who(*by, &about.by));
            let (level, what) = match why {
                GivesWay::Lingering => (Level::DEBUG, format!("{holder}, which nobody watches, is closed for {by}")),
                GivesWay::Probe => (Level::DEBUG, format!("{holder}, which only looked, is closed for {by}")),
                GivesWay::Silent => (Level::INFO, format!("{holder}, which never sent anything, is closed for {by}")),
                GivesWay::Weaker => (Level::INFO, format!("{holder} gives way to {by}, which is stronger")),
            };
            of(id, level, format!("account {number}: {what}"))
        }
        Note::AccountLost { account, loss } => {
            let (id, number) = place(settings, *account);
            of(id, Level::DEBUG, format!("account {number}: a live stream is given up: {}", loss.as_str()))
        }
        Note::AccountFailed { account, failure } => {
            let (id, number) = place(settings, *account);
            let (level, why) = failed(*failure);
            of(id, level, format!("account {number}: {why}"))
        }
        Note::AccountLate { account, late } => {
            let (id, number) = place(settings, *account);
            let late = seconds(*late);
            let what = format!(
                "account {number}: it still counted a connection {late} after that was closed; what is opened next waits so long"
            );
            of(id, Level::INFO, what)
        }
        Note::CatalogRead { provider, live, films, series, skipped, beyond } => {
            let mut what = format!("{live} live streams, {films} films, {series} series");
            if *skipped > 0 {
                what.push_str(&format!("; {skipped} entries could not be used"));
            }
            if *beyond > 0 {
                what.push_str(&format!("; {beyond} more were left out: raise `entries` of the provider to have them"));
            }
            of(*provider, if *beyond > 0 { Level::WARN } else { Level::INFO }, what)
        }
        Note::CatalogFault { provider, why, kept } => {
            let kept = if *kept > 0 { ", and what was read last is kept" } else { "" };
            of(*provider, Level::WARN, format!("cannot be read now{kept}: {why}"))
        }
        _ => Told::new(Level::DEBUG, String::new()),
    }
}

/// The provider of an account, and which of its accounts that is, from 1.
fn place(settings: &Settings, account: AccountId) -> (ProviderId, usize) {
    let mut before = 0;
    for (index, provider) in settings.providers.iter().enumerate() {
        let own = settings.accounts.iter().filter(|account| account.provider == provider.name).count();
        // One without any has that of its URL.
        let behind = before + own.max(1);
        if (account.0 as usize) < behind {
            return (ProviderId(index as u32), account.0 as usize - before + 1);
        }
        before = behind;
    }
    (ProviderId(u32::MAX), 0)
}

fn who(holder: Holder, title: &Option<String>) -> String {
    let of = |what: &str| title.as_ref().map_or_else(|| what.to_owned(), |title| format!("\"{title}\""));
    match holder {
        Holder::Playback(playback) => format!("playback {playback} of {}", of("a title")),
        Holder::Source(source) => format!("source {source} of {}", of("a live stream")),
        Holder::Probe(_) => String::from("a probe"),
    }
}

fn failed(failure: Failure) -> (Level, String) {
    match failure {
        Failure::Unreachable => (Level::WARN, String::from("it cannot be reached")),
        Failure::TimedOut => (Level::WARN, String::from("it did not answer in time")),
        Failure::Status(status @ (401 | 403)) => (
            Level::ERROR,
            format!(
                "it answers {status}: it wants other credentials, the account is over, or a connection that was just closed is still counted (see `cooling`)"
            ),
        ),
        Failure::Status(status) => (Level::INFO, format!("it answers {status}")),
        Failure::Unusable => (Level::WARN, String::from("what it answers is of no use")),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::Id;

    use super::super::tests::NOTHING;
    use super::*;

    #[test]
    fn a_catalogue_that_was_cut_is_a_warning_that_names_the_key() {
        let read =
            |beyond| Note::CatalogRead { provider: ProviderId(0), live: 2, films: 0, series: 0, skipped: 1, beyond };
        let settings = Settings::default();
        let (whole, cut) = (tell(&read(0), &settings, NOTHING), tell(&read(7), &settings, NOTHING));
        assert_eq!((whole.level, cut.level), (Level::INFO, Level::WARN));
        assert!(!whole.sentence.contains("left out"), "{}", whole.sentence);
        assert!(cut.sentence.contains("7 more were left out: raise `entries`"), "{}", cut.sentence);
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
