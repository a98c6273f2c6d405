//! An edge between users and providers: Anna may play one thing at once, Ben two, Zoe any number.

use std::time::Duration;

use serde_json::Value;

use crate::edge::Edge;
use crate::eventually;
use crate::http::{Connection, Request, Response};
use crate::provider::Provider;

/// The users, and how much each may play.
const USERS: [(&str, u32); 3] = [("anna", 1), ("ben", 2), ("zoe", 0)];

/// One edge whose catalogue is read.
pub struct Household {
    /// The program under test.
    pub edge: Edge,
}

impl Household {
    /// One that has everything from this provider; `settings` is what its configuration says beside that.
    ///
    /// # Panics
    /// When the catalogue is not read within 20 s.
    pub fn of(provider: &Provider, settings: &str) -> Household {
        Household::open(&format!("{settings}\n{}", provider.configuration("panel")))
    }

    /// One with this configuration, and the users.
    ///
    /// # Panics
    /// As [`Household::of`].
    pub fn open(configuration: &str) -> Household {
        let mut text = format!("{configuration}\n");
        for (name, most) in USERS {
            // A test may say more of them.
            if !text.contains(&format!("name = \"{name}\"")) {
                text +=
                    &format!("[[user]]\nname = \"{name}\"\npassword = \"{name}-secret\"\nmax_connections = {most}\n");
            }
        }
        let household = Household { edge: Edge::start(&text) };
        eventually("a catalogue", Duration::from_secs(20), || {
            let films = household.api("zoe", "get_vod_streams");
            let lives = household.api("zoe", "get_live_streams");
            let some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
            (some(&films) && some(&lives)).then_some(())
        });
        household
    }

    /// What the API answers to an action.
    pub fn api(&self, user: &str, action: &str) -> Value {
        self.edge.get(&format!("/player_api.php?username={user}&password={user}-secret&action={action}")).json()
    }

    /// The number of what is called so in a list of the API's.
    fn find(&self, user: &str, action: &str, name: &str, key: &str) -> Value {
        let list = self.api(user, action);
        let found = list.as_array().into_iter().flatten().find(|own| own["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name} in {list}")).clone();
        assert!(!found[key].is_null(), "{key} of {found}");
        found
    }

    /// The path of a film.
    pub fn film(&self, user: &str, name: &str) -> String {
        let found = self.find(user, "get_vod_streams", name, "stream_id");
        let extension = found["container_extension"].as_str().unwrap_or("mp4");
        format!("/movie/{user}/{user}-secret/{}.{extension}", text(&found["stream_id"]))
    }

    /// The paths of all episodes of a series, season by season.
    pub fn episodes(&self, user: &str, name: &str) -> Vec<String> {
        let found = self.find(user, "get_series", name, "series_id");
        let info = self.api(user, &format!("get_series_info&series_id={}", text(&found["series_id"])));
        let seasons = info["episodes"].as_object().unwrap_or_else(|| panic!("seasons in {info}"));
        let all = seasons.values().flat_map(|season| season.as_array().cloned().unwrap_or_default());
        all.map(|own| {
            let extension = own["container_extension"].as_str().unwrap_or("mp4");
            format!("/series/{user}/{user}-secret/{}.{extension}", text(&own["id"]))
        })
        .collect()
    }

    /// The path of a live stream, which ends in `extension`.
    pub fn live(&self, user: &str, name: &str, extension: &str) -> String {
        let found = self.find(user, "get_live_streams", name, "stream_id");
        format!("/live/{user}/{user}-secret/{}.{extension}", text(&found["stream_id"]))
    }

    /// The path of what a live stream was for an hour from then on, such as `2026-11-30:10-00`.
    pub fn past(&self, user: &str, name: &str, start: &str, extension: &str) -> String {
        let found = self.find(user, "get_live_streams", name, "stream_id");
        format!("/timeshift/{user}/{user}-secret/60/{start}/{}.{extension}", text(&found["stream_id"]))
    }

    /// A path as an address.
    pub fn url(&self, path: &str) -> String {
        self.edge.url(path)
    }

    /// A user, as the status shows it.
    ///
    /// # Panics
    /// When it does not.
    pub fn user(&self, name: &str) -> Value {
        let status = self.edge.status();
        let users = status["users"].as_array().cloned().unwrap_or_default();
        users.into_iter().find(|user| user["name"] == name).expect("the user is in the status")
    }

    /// How many places a user uses, of whatever kind.
    pub fn counted(&self, user: &str) -> u64 {
        let user = self.user(user);
        ["normal", "soft", "grace"].iter().map(|place| user[*place].as_u64().expect("a number")).sum()
    }

    /// Waits until so many are counted.
    ///
    /// # Panics
    /// After `limit`.
    pub fn counts(&self, user: &str, number: u64, limit: Duration) {
        let what = format!("{number} counted for {user}");
        eventually(&what, limit, || (self.counted(user) == number).then_some(()));
    }

    /// How often the log says that.
    pub fn said(&self, what: &str) -> usize {
        self.edge.log().lines().filter(|line| line.contains(what)).count()
    }

    /// How many connections of each account are open, in the order of the configuration, as the status shows it.
    pub fn accounts(&self) -> Vec<u64> {
        let status = self.edge.status();
        let providers = status["providers"].as_array().cloned().unwrap_or_default();
        let accounts = providers.iter().flat_map(|own| own["accounts"].as_array().cloned().unwrap_or_default());
        accounts.map(|own| own["used"].as_u64().unwrap_or_else(|| panic!("no number in {own}"))).collect()
    }

    /// Nobody plays, nothing is open, and no account was ever used by more than it may be: by the provider's own count, which the
    /// status agrees with.
    ///
    /// # Panics
    /// When something of that is not so within `limit`.
    pub fn is_over(&self, provider: &Provider, limit: Duration) {
        for (user, _) in USERS {
            self.counts(user, 0, limit);
        }
        provider.was_kept_within_limits(limit);
        eventually("the status agrees", Duration::from_secs(2), || {
            let accounts = self.accounts();
            (!accounts.is_empty() && accounts.iter().all(|open| *open == 0)).then_some(())
        });
    }

    /// The status agrees with the provider's own count, at a quiet moment.
    ///
    /// # Panics
    /// When it does not within 2 s.
    pub fn agrees(&self, provider: &Provider) {
        let open = || provider.counts().iter().map(|count| count.open as u64).collect::<Vec<u64>>();
        let mut last = (Vec::new(), Vec::new());
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_secs(2) {
            last = (self.accounts(), open());
            if last.0 == last.1 {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the status says {:?}, the provider {:?}", last.0, last.1);
    }

    /// GET of a part, by a player that calls itself so.
    pub fn part(&self, agent: &str, path: &str, range: &str) -> Response {
        Request::new("GET", path).field("User-Agent", agent).field("Range", range).send(self.edge.address())
    }

    /// A player that asks for that and reads the head of the answer alone.
    ///
    /// # Panics
    /// Without an answer.
    pub fn opens(&self, agent: &str, path: &str, range: Option<&str>) -> (Connection, Response) {
        let mut connection = Connection::open(self.edge.address());
        let mut request = Request::new("GET", path).field("User-Agent", agent);
        if let Some(range) = range {
            request = request.field("Range", range);
        }
        connection.send(&request);
        let head = connection.head().unwrap_or_else(|error| panic!("{path} {range:?}: {error}"));
        (connection, head)
    }
}

/// A number, however it is written.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
