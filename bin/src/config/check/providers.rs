//! Whether providers can be read, and accounts belong to them.

use std::collections::BTreeMap;
use std::fs::File;

use holdfast_io::providers::{Dialect, Location, near_entries};
use jiff::Timestamp;

use super::super::reader::Reader;
use super::super::{Provider, Settings};

/// Checks that need nothing but the settings.
pub(super) fn settings(reader: &mut Reader<'_>) {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (n, provider) in reader.settings.providers.clone().into_iter().enumerate() {
        provider_is_whole(reader, n, &provider);
        let [element, name] = ["", ".name"].map(|key| format!("provider[{n}]{key}"));
        if provider.name.is_empty() {
            let right = String::from("write `name`, such as name = \"tv\"");
            reader.conflict(&[&element, &name], String::from("has no name"), right);
        } else if let Some(first) = places.get(&provider.name) {
            let wrong = format!("\"{}\" is the name of `provider[{first}]` already", provider.name);
            reader.conflict(&[&name, &element], wrong, String::from("give each provider a `name` of its own"));
        } else {
            places.insert(provider.name, n);
        }
    }
    accounts(reader, &places);
}

fn provider_is_whole(reader: &mut Reader<'_>, n: usize, provider: &Provider) {
    let [element, url, kind] = ["", ".url", ".kind"].map(|key| format!("provider[{n}]{key}"));
    let Some(location) = &provider.url else {
        let right = String::from("write `url`, such as url = \"http://panel.example:8080\"");
        return reader.conflict(&[&element, &url], String::from("has no URL"), right);
    };
    if provider.kind == Dialect::Xtream && matches!(location, Location::File(_)) {
        let right = String::from("write the URL of the panel, or kind = \"m3u\" for a list");
        reader.conflict(&[&kind, &url], String::from("is \"xtream\", and a file is no panel"), right);
    }
    let own = || reader.settings.accounts.iter().filter(|account| account.provider == provider.name);
    let logs_in = location.credentials().is_some() || own().any(|account| !account.username.is_empty());
    if provider.kind.at(location) == Dialect::Xtream && !logs_in {
        let name = &provider.name;
        let right = format!(
            "write [[account]] with provider = \"{name}\", `username` and `password`, or kind = \"m3u\" if it is a list"
        );
        let wrong = String::from("is a panel, and there is no account to log in to it with");
        reader.conflict(&[&url, &kind, &element], wrong, right);
    }
}

fn accounts(reader: &mut Reader<'_>, places: &BTreeMap<String, usize>) {
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (n, account) in reader.settings.accounts.clone().into_iter().enumerate() {
        let [element, of, username, password] =
            ["", ".provider", ".username", ".password"].map(|key| format!("account[{n}]{key}"));
        let known: Vec<&str> = places.keys().take(10).map(String::as_str).collect();
        let right = match known.is_empty() {
            true => String::from("write [[provider]] with its `name` and `url`"),
            false => format!("providers of this configuration: {}", known.join(", ")),
        };
        if account.provider.is_empty() {
            reader.conflict(&[&element, &of], String::from("names no provider"), right);
        } else if !places.contains_key(&account.provider) {
            let wrong = format!("there is no provider \"{}\"", account.provider);
            reader.conflict(&[&of, &element], wrong, right);
        } else if account.username.is_empty() && !account.password.is_empty() {
            let right = String::from("write `username` too, or neither of them");
            reader.conflict(&[&password, &element], String::from("is there without `username`"), right);
        } else if let Some(first) = seen.get(&(account.provider.clone(), account.username.clone())) {
            let wrong = format!("is the same as `account[{first}]`");
            let right = String::from("write each account once; `max_connections` says how much it may take");
            reader.conflict(&[&username, &element], wrong, right);
        } else {
            seen.insert((account.provider, account.username), n);
        }
    }
}

/// Checks that look at the files that settings name: a list that is not there when the program starts is likely misspelt.
pub(super) fn files(reader: &mut Reader<'_>) {
    for (n, provider) in reader.settings.providers.clone().into_iter().enumerate() {
        let Some(Location::File(path)) = &provider.url else { continue };
        if let Err(error) = super::readable(path) {
            let wrong = format!("\"{}\" cannot be read: {error}", path.display());
            let right = String::from("name a list that this user may read");
            reader.conflict(&[&format!("provider[{n}].url")], wrong, right);
        }
    }
}

/// What an operator should know though nothing is wrong.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    let owners = [("providers", settings.providers.is_empty()), ("libraries", settings.libraries.is_empty())];
    let owners: Vec<&str> = owners.into_iter().filter(|(_, none)| !none).map(|(what, _)| what).collect();
    if !owners.is_empty() && settings.core.users.is_empty() {
        let owners = owners.join(" and ");
        warnings.push(format!(
            "there are {owners} and no users: titles of {owners} are listed and played for users alone; \
             write [[user]] with `name` and `password`"
        ));
    }
    for provider in settings.providers.iter().filter(|provider| !provider.allow_private) {
        let Some(Location::File(path)) = &provider.url else { continue };
        let list = super::readable(path).and_then(|()| File::open(path)).ok();
        let near = list.and_then(|list| near_entries(list, &provider.groups, provider.entries, provider.bytes));
        if let Some((count, first)) = near {
            let entries = if count == 1 { "1 entry leads" } else { &format!("{count} entries lead") };
            warnings.push(format!(
                "provider \"{}\": of \"{}\" {entries} to a private address or to this machine, which is refused; the first is at {first}: \
                 write `allow_private = true` if the list may do that",
                provider.name,
                path.display()
            ));
        }
    }
    let now = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
    for (n, account) in settings.accounts.iter().enumerate() {
        if account.expires.is_some_and(|expires| expires <= now) {
            warnings.push(format!(
                "the time of `account[{n}]`, of provider \"{}\", is over, and nothing is asked for with it: see its `expires`",
                account.provider
            ));
        }
    }
    for (n, user) in settings.core.users.iter().enumerate() {
        let taken: Vec<&String> = settings.providers.iter().flat_map(|provider| &provider.groups).collect();
        let takes_all = settings.providers.iter().any(|provider| provider.groups.is_empty());
        for group in settings.logins[n].groups.iter().filter(|group| !takes_all && !taken.contains(group)) {
            warnings.push(format!(
                "user \"{}\" may see the group \"{group}\", which is taken of no provider: see `groups` of [[provider]]",
                user.name
            ));
        }
    }
    warnings
}
