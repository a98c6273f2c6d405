use super::store::{Context, Entry, key_of};
use super::*;

/// A provider as it is configured.
pub(crate) fn settings(url: &str, accounts: &[(&str, &str)]) -> ProviderSettings {
    let own = |(username, password): &(&str, &str)| {
        Some(Credentials { username: (*username).to_owned(), password: (*password).to_owned() })
    };
    let mut accounts: Vec<Option<Credentials>> = accounts.iter().map(own).collect();
    if accounts.is_empty() {
        accounts.push(None);
    }
    ProviderSettings {
        name: String::from("tv"),
        location: Location::parse(url).unwrap(),
        dialect: Dialect::Auto,
        guide: Guide::Auto,
        refresh: std::time::Duration::from_secs(3600),
        user_agent: String::from("VLC/3"),
        output: Output::Auto,
        via: false,
        groups: Vec::new(),
        reach: Reach::Public,
        entries: 1000,
        bytes: 1 << 20,
        accounts,
    }
}

fn providers(all: &[(ProviderSettings, &[(Kind, Entry<'static>)])]) -> Providers {
    let own: Vec<ProviderSettings> = all.iter().map(|(own, _)| own.clone()).collect();
    let mut providers = Providers::new(&own);
    for (place, (_, entries)) in all.iter().enumerate() {
        let mut catalogue = Catalogue::default();
        let cx = Context { taken: &|_, _| false, groups: &[], entries: 100 };
        for (kind, entry) in *entries {
            catalogue.add(&cx, *kind, entry);
        }
        providers.all[place].catalogue = Arc::new(catalogue);
    }
    providers
}

fn live(
    name: &'static str,
    group: &'static str,
    address: &'static str,
    extension: &'static str,
) -> (Kind, Entry<'static>) {
    (Kind::Live, Entry { name, group, address, extension, ..Entry::default() })
}

fn url(providers: &Providers, title: TitleId, index: u32, account: u32, part: Part) -> Option<String> {
    let source = providers.sources(title).into_iter().nth(index as usize)?;
    providers.address(&source, AccountId(account), part).map(|own| own.url.into())
}

/// Whose each source of a title is.
fn whose(providers: &Providers, title: TitleId) -> Vec<u32> {
    providers.sources(title).iter().map(|source| source.provider.0).collect()
}

#[test]
fn a_title_is_had_from_every_provider_that_has_it_with_the_accounts_of_each() {
    let list = settings("http://l.example/get.php?username=a&password=b", &[("a", "b"), ("c", "d")]);
    let panel = settings("http://p.example:8080", &[("u", "v")]);
    let own = providers(&[
        (
            list,
            &[
                live("One", "x", "http://l.example/live/a/b/1.ts", "ts"),
                live("One", "x", "http://l.example/live/a/b/9.ts", "ts"),
            ],
        ),
        (panel, &[live("One", "y", "77", ""), live("Two", "y", "78", "")]),
    ]);
    let title = own.find(Kind::Live, store::id_of(key_of(Kind::Live, "One"))).unwrap();
    assert_eq!((title.name.as_str(), title.extension.as_str(), title.kind), ("One", "ts", Kind::Live));
    let title = title.title;
    assert_eq!(whose(&own, title), [0, 0, 1]);
    let whole = |index, account| url(&own, title, index, account, Part::Whole);
    assert_eq!(whole(0, 0).as_deref(), Some("http://l.example/live/a/b/1.ts"));
    assert_eq!(whole(1, 1).as_deref(), Some("http://l.example/live/c/d/9.ts"));
    assert_eq!(whole(2, 2).as_deref(), Some("http://p.example:8080/live/u/v/77.ts"));
    // Accounts of others, and places that are not there.
    assert_eq!([whole(0, 2), whole(2, 0), whole(2, 3), whole(3, 2)], [const { None }; 4]);
    let playlist = url(&own, title, 2, 2, Part::Playlist);
    assert_eq!(playlist.as_deref(), Some("http://p.example:8080/live/u/v/77.m3u8"));
    let archive = Part::Archive { start: 1_795_982_706, minutes: 90, playlist: false };
    let archive = url(&own, title, 2, 2, archive);
    assert_eq!(archive.as_deref(), Some("http://p.example:8080/timeshift/u/v/90/2026-11-29:20-05/77.ts"));
    let fields = own.address(&own.sources(title)[2], AccountId(2), Part::Whole).unwrap().fields;
    assert_eq!(
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(),
        [("User-Agent", "VLC/3")]
    );
    assert_eq!(own.find(Kind::Live, 5), None);
    assert_eq!(own.find(Kind::Film, store::id_of(title.0)), None);
}

#[test]
fn what_is_a_stream_somewhere_is_not_looked_for_where_it_is_a_playlist() {
    let list = || settings("http://l.example/x.m3u", &[]);
    let own = providers(&[
        (list(), &[live("A", "", "http://l.example/a.m3u8", "m3u8"), live("B", "", "http://l.example/b.m3u8", "m3u8")]),
        (list(), &[live("A", "", "http://m.example/a", "")]),
    ]);
    let [a, b] = ["A", "B"].map(|name| TitleId(key_of(Kind::Live, name)));
    assert_eq!(whose(&own, a), [1]);
    assert_eq!(url(&own, a, 0, 1, Part::Whole).as_deref(), Some("http://m.example/a"));
    assert_eq!(whose(&own, b), [0]);
    assert_eq!(own.find(Kind::Live, store::id_of(b.0)).unwrap().extension, "m3u8");
    assert_eq!(own.find(Kind::Live, store::id_of(a.0)).unwrap().extension, "");
}

#[test]
fn a_user_sees_its_groups() {
    let list = || settings("http://l.example/x.m3u", &[]);
    let own = providers(&[
        (list(), &[live("A", "x", "http://l.example/a", "")]),
        (list(), &[live("A", "y", "http://m.example/a", ""), live("B", "z", "http://m.example/b", "")]),
    ]);
    let [a, b] = ["A", "B"].map(|name| TitleId(key_of(Kind::Live, name)));
    let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    for (names, permitted) in
        [(&[][..], [true, true]), (&["x"], [true, false]), (&["y", "z"], [true, true]), (&["w"], [false, false])]
    {
        assert_eq!([a, b].map(|title| own.permits(title, &groups(names))), permitted, "{names:?}");
        let library = library::Library::new(&own, &groups(names));
        let mut place = library::Cursor::default();
        let mut seen = Vec::new();
        while let library::Step::Item(item) = library.next(&mut place, &[Kind::Live]) {
            seen.push((item.entry.name.to_owned(), item.entry.group.to_owned()));
        }
        assert_eq!(seen.len(), permitted.iter().filter(|may| **may).count(), "{names:?}: {seen:?}");
        assert_eq!(
            library.categories(Kind::Live).len(),
            if names.is_empty() { 3 } else { names.iter().filter(|name| **name != "w").count() }
        );
    }
}

#[test]
fn a_catalogue_leads_to_no_private_address_unless_that_is_allowed() {
    let entries = [
        live("A", "", "http://127.0.0.1:6379/x", ""),
        live("B", "", "http://169.254.169.254/latest", ""),
        live("C", "", "http://localhost/x", ""),
        live("D", "", "http://l.example/x", ""),
    ];
    let list = || settings("http://l.example/x.m3u", &[]);
    let allowed = ProviderSettings { reach: Reach::Machine, ..list() };
    let own = providers(&[(list(), &entries)]);
    let other = providers(&[(allowed, &entries)]);
    for (name, may) in [("A", false), ("B", false), ("C", false), ("D", true)] {
        let title = TitleId(key_of(Kind::Live, name));
        let url = url(&own, title, 0, 0, Part::Whole).unwrap().parse().unwrap();
        assert_eq!(own.may_be(ProviderId(0), &url).is_ok(), may, "{name}");
        assert!(other.may_be(ProviderId(0), &url).is_ok());
    }
    let to = |address: &str| Ends { peer: address.parse().unwrap(), own: None };
    let inside = |of: &Providers, host: &str| of.may_lead_to(ProviderId(0), host, to("10.0.0.1:80"));
    assert_eq!(inside(&own, "nas.example"), Err(Forbidden::Near("nas.example (10.0.0.1)".into())));
    assert_eq!((inside(&own, "10.0.0.1"), inside(&other, "x")), (Err(Forbidden::Near("10.0.0.1".into())), Ok(())));
    assert!(own.may_lead_to(ProviderId(0), "x", to("192.0.2.1:80")).is_ok());
}

#[test]
fn an_episode_of_a_panel_is_found_though_nobody_asked_for_its_series() {
    let list = settings("http://l.example/x.m3u", &[]);
    let panel = settings("http://p.example", &[("u", "v")]);
    let own = providers(&[(list, &[]), (panel, &[])]);
    let episode = own.all[1].episode(4711, "mkv").unwrap();
    let title = own.find(Kind::Episode, episode.client_id()).unwrap();
    assert_eq!((title.extension.as_str(), whose(&own, title.title)), ("mkv", vec![1]));
    assert_eq!(url(&own, title.title, 0, 1, Part::Whole).as_deref(), Some("http://p.example/series/u/v/4711.mkv"));
    assert_eq!(own.all[0].episode(4711, "mkv"), None);
    assert_eq!(own.all[1].episode(u64::from(Episode::IDS), "mkv"), None);
    assert!(own.find(Kind::Live, episode.client_id()).is_none());
    // Of a panel that is not there.
    assert!(own.find(Kind::Episode, episode.client_id() | 1 << 2).is_none());
}

#[test]
fn an_episode_of_a_panel_is_where_its_series_is_and_nowhere_before_that_is_known() {
    let series = |name, group| (Kind::Series, Entry { name, group, address: "1", ..Entry::default() });
    let mut own = providers(&[(settings("http://p.example", &[("u", "v")]), &[series("S", "x"), series("T", "y")])]);
    let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let episode = own.all[0].episode(4711, "mkv").unwrap();
    let permitted =
        |own: &Providers| [&[][..], &["x"], &["y"]].map(|names| own.permits(episode.title(), &groups(names)));
    assert_eq!(permitted(&own), [true, false, false]);
    own.learn(own.all[0].episode(4711, "mp4").unwrap(), TitleId(key_of(Kind::Series, "S")));
    assert_eq!(permitted(&own), [true, true, false]);
    own.all[0].catalogue = Arc::default();
    assert_eq!(permitted(&own), [true, false, false], "the series is gone");
}

#[test]
fn what_was_found_stays_what_it_is_when_catalogues_change() {
    let list = || settings("http://l.example/x.m3u", &[]);
    let mut own = providers(&[
        (list(), &[live("A", "", "http://l.example/a", "")]),
        (list(), &[live("A", "", "http://m.example/a", "")]),
    ]);
    let a = TitleId(key_of(Kind::Live, "A"));
    let found = own.sources(a);
    own.all[0].catalogue = Arc::default();
    let at =
        |account| own.address(&found[account as usize], AccountId(account), Part::Whole).map(|own| own.url.to_string());
    assert_eq!([at(0), at(1)], ["http://l.example/a", "http://m.example/a"].map(|url| Some(url.to_owned())));
}
