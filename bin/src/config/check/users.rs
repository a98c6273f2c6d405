//! Whether users can log in, and whether the strategies for those who play too much go together.

use std::collections::BTreeMap;

use holdfast_core::config::{Strategy, User};

use super::super::Settings;
use super::super::reader::Reader;

/// Checks that need nothing but the settings.
pub(super) fn settings(reader: &mut Reader<'_>) {
    users(reader);
    strategies(reader);
}

fn users(reader: &mut Reader<'_>) {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for (n, user) in reader.settings.core.users.clone().into_iter().enumerate() {
        let [element, name, password] = ["", ".name", ".password"].map(|key| format!("user[{n}]{key}"));
        if user.name.is_empty() {
            let right = String::from("write `name`, such as name = \"anna\"");
            reader.conflict(&[&element, &name], String::from("has no name"), right);
            continue;
        }
        if reader.settings.logins[n].password.is_none() {
            let right = String::from("write `password`, or what `holdfast password` makes of one");
            reader.conflict(&[&element, &password], format!("\"{}\" has no password", user.name), right);
        }
        if let Some(first) = names.get(&user.name) {
            let wrong = format!("\"{}\" is the name of `user[{first}]` already", user.name);
            reader.conflict(&[&name, &element], wrong, String::from("give each user a `name` of its own"));
        } else {
            names.insert(user.name, n);
        }
    }
}

fn strategies(reader: &mut Reader<'_>) {
    const KEY: &str = "playback.strategies";
    let strategies = reader.settings.core.playback.strategies.clone();
    let place = |wanted: &[Strategy]| strategies.iter().position(|strategy| wanted.contains(strategy));
    let graces = strategies.iter().filter(|strategy| matches!(strategy, Strategy::GraceHold | Strategy::GraceInstant));
    if graces.count() > 1 {
        let wrong = String::from("has more than one grace");
        reader.conflict(&[KEY], wrong, String::from("keep one of \"grace_hold\" and \"grace_instant\""));
    }
    let same = strategies
        .iter()
        .rposition(|strategy| matches!(strategy, Strategy::EvictSameIpOldest | Strategy::EvictSameIpLatest));
    if let (Some(broad), Some(same)) = (place(&[Strategy::EvictOldest, Strategy::EvictLatest]), same)
        && broad < same
    {
        let (broad, same) = (strategies[broad].as_str(), strategies[same].as_str());
        let wrong = format!("\"{same}\" stands behind \"{broad}\", which finds whatever it could find");
        reader.conflict(&[KEY], wrong, format!("write \"{same}\" first"));
    }
    if let Some(deny) = place(&[Strategy::Deny])
        && deny + 1 < strategies.len()
    {
        let wrong = format!("\"{}\" stands behind \"deny\", where it is never tried", strategies[deny + 1].as_str());
        reader.conflict(&[KEY], wrong, String::from("write \"deny\" last, or leave it out: it is what follows anyway"));
    }
}

/// What an operator should know though nothing is wrong.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let most = settings.core.playback.sessions_per_user;
    let names = |users: &dyn Fn(&&User) -> bool| {
        let names = settings.core.users.iter().filter(users).map(|user| format!("\"{}\"", user.name));
        let (names, more): (Vec<String>, usize) = (names.clone().take(5).collect(), names.skip(5).count());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
    };
    let any = names(&|user| user.max_connections == 0).map(|users| {
        format!(
            "users with `max_connections = 0` may play any number at once, as far as `playback.sessions_per_user` goes, which is \
             {most} for each: {users}"
        )
    });
    let places = |user: &User| user.max_connections as usize + user.soft_connections as usize;
    let beyond = names(&|user| user.max_connections > 0 && places(user) > most).map(|users| {
        format!(
            "users with more than {most} places play {most} at once at the most, since that is `playback.sessions_per_user`, which \
             counts those that wait, too: raise it for {users}"
        )
    });
    any.into_iter().chain(beyond).collect()
}
