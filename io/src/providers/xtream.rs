//! What panels answer: JSON whose types are what they please. Lists are taken apart element by element as their bytes come, so that
//! neither a large one nor one that never ends is kept as a whole.

use std::collections::HashMap;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Kind;
use super::store::{Added, Catalogue, Context, Entry};

/// No element of a list is larger.
const ELEMENT: usize = 256 << 10;
/// Nothing is nested more deeply.
const DEPTH: usize = 64;

/// Takes a list apart: `[{…}, {…}]`, or what some panels make of it, `{"0": {…}, "1": {…}}`.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// The element that began.
    element: Vec<u8>,
    depth: usize,
    /// Whether a list began at all.
    begun: bool,
    in_text: bool,
    escaped: bool,
    too_long: bool,
    /// How many elements were too large.
    pub skipped: u64,
    /// Whether it shows to be no JSON list.
    pub wrong: bool,
}

impl Splitter {
    /// Says each element that became complete.
    pub fn push(&mut self, data: &[u8], mut each: impl FnMut(&[u8])) {
        for &byte in data {
            if self.depth >= 2 {
                self.keep(byte);
            }
            if self.in_text {
                match byte {
                    _ if std::mem::take(&mut self.escaped) => {}
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.begun = true;
                    self.wrong |= self.depth > DEPTH;
                    if self.depth == 2 {
                        self.element.clear();
                        self.too_long = false;
                        self.keep(byte);
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 {
                        if self.too_long {
                            self.skipped += 1;
                        } else {
                            each(&self.element);
                        }
                        self.element.clear();
                    }
                }
                _ if !self.begun && !byte.is_ascii_whitespace() => self.wrong |= !matches!(byte, 0xef | 0xbb | 0xbf),
                _ => {}
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.element.len() == ELEMENT {
            self.too_long = true;
        } else {
            self.element.push(byte);
        }
    }

    /// Whether it came whole.
    pub fn is_whole(&self) -> bool {
        self.begun && self.depth == 0 && !self.wrong
    }
}

/// A text, whatever it is written as.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub String);

impl Text {
    fn number(&self) -> u64 {
        let digits = self.0.trim();
        digits.parse().ok().or_else(|| Some(digits.parse::<f64>().ok()? as u64)).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text, E> {
                Ok(Text(u8::from(value).to_string()))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Text, E> {
                Ok(Text::default())
            }

            fn visit_none<E: de::Error>(self) -> Result<Text, E> {
                Ok(Text::default())
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
                Text::deserialize(deserializer)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text, A::Error> {
                // Where one is wanted and some are there, the first is meant.
                let first = list.next_element::<Text>()?.unwrap_or_default();
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A category of streams.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Category {
    category_id: Text,
    category_name: Text,
}

/// A live stream, a film or a series. Which of the fields are there depends on that.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stream {
    num: Text,
    name: Text,
    title: Text,
    stream_id: Text,
    series_id: Text,
    stream_icon: Text,
    cover: Text,
    epg_channel_id: Text,
    added: Text,
    last_modified: Text,
    category_id: Text,
    category_ids: Text,
    tv_archive: Text,
    tv_archive_duration: Text,
    container_extension: Text,
    rating: Text,
    plot: Text,
    genre: Text,
    #[serde(rename = "releaseDate")]
    release_date: Text,
}

/// What is asked of a panel, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Login,
    Categories(Kind),
    Streams(Kind),
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 7] = [
        Step::Login,
        Step::Categories(Kind::Live),
        Step::Streams(Kind::Live),
        Step::Categories(Kind::Film),
        Step::Streams(Kind::Film),
        Step::Categories(Kind::Series),
        Step::Streams(Kind::Series),
    ];

    /// What `action` says.
    pub fn action(self) -> Option<&'static str> {
        Some(match self {
            Step::Login => return None,
            Step::Categories(Kind::Live) => "get_live_categories",
            Step::Categories(Kind::Film) => "get_vod_categories",
            Step::Categories(_) => "get_series_categories",
            Step::Streams(Kind::Live) => "get_live_streams",
            Step::Streams(Kind::Film) => "get_vod_streams",
            Step::Streams(_) => "get_series",
        })
    }
}

/// Reads the answers of a panel into a catalogue.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    splitter: Splitter,
    /// The answer to a login, which is one object.
    whole: Vec<u8>,
    categories: HashMap<String, String>,
}

impl Reader {
    /// The next bytes of an answer.
    pub fn push(&mut self, step: Step, data: &[u8], catalogue: &mut Catalogue, cx: &Context<'_>) {
        let Reader { splitter, whole, categories } = self;
        match step {
            Step::Login => {
                let room = ELEMENT.saturating_sub(whole.len()).min(data.len());
                whole.extend_from_slice(&data[..room]);
            }
            Step::Categories(_) => splitter.push(data, |element| match serde_json::from_slice::<Category>(element) {
                Ok(own) if !own.category_id.0.is_empty() && categories.len() < 1 << 16 => {
                    categories.insert(own.category_id.0, clean(&own.category_name.0));
                }
                _ => catalogue.skip("", "a category that is none"),
            }),
            Step::Streams(kind) => splitter.push(data, |element| match serde_json::from_slice::<Stream>(element) {
                Ok(own) => drop(add(kind, &own, categories, catalogue, cx)),
                Err(_) => catalogue.skip("", "an element of a list that is no stream"),
            }),
        }
    }

    /// An answer is complete.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn finish(&mut self, step: Step, now: u64, catalogue: &mut Catalogue) -> Result<(), String> {
        let splitter = std::mem::take(&mut self.splitter);
        for _ in 0..splitter.skipped {
            catalogue.skip("", "an element of a list is longer than is taken");
        }
        match step {
            Step::Login => {
                let whole = std::mem::take(&mut self.whole);
                let said = login(&whole, now)?;
                (catalogue.offset, catalogue.formats) = (said.offset, said.formats);
                catalogue.connections = said.connections;
                Ok(())
            }
            // Names are missed less than streams.
            Step::Categories(_) => Ok(()),
            Step::Streams(_) => {
                self.categories.clear();
                // Some panels say `null`, `false` or nothing where they have nothing.
                if splitter.begun && !splitter.is_whole() {
                    return Err(String::from("the panel answers with what is no whole list in JSON"));
                }
                Ok(())
            }
        }
    }
}

fn clean(text: &str) -> String {
    text.trim().replace(char::is_control, " ")
}

fn add(
    kind: Kind,
    own: &Stream,
    categories: &HashMap<String, String>,
    catalogue: &mut Catalogue,
    cx: &Context<'_>,
) -> Added {
    let id = if kind == Kind::Series { &own.series_id } else { &own.stream_id };
    // It becomes a part of addresses.
    let usable = !id.0.is_empty() && id.0.len() <= 20 && id.0.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !usable {
        catalogue.skip(&own.name.0, "its id is none: up to 20 letters and digits");
        return Added::Unusable;
    }
    let first = |texts: [&Text; 2]| {
        texts.into_iter().find(|text| !text.0.is_empty()).map_or("", |text| text.0.as_str()).to_owned()
    };
    let category = first([&own.category_id, &own.category_ids]);
    let extension = own.container_extension.0.trim_start_matches('.').to_ascii_lowercase();
    let fits = extension.len() <= 5 && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let archive = kind == Kind::Live && own.tv_archive.number() > 0;
    let more = serde_json::json!({
        "rating": own.rating.0, "plot": own.plot.0, "genre": own.genre.0, "releaseDate": own.release_date.0,
    });
    let more = if kind == Kind::Live || [&own.rating, &own.plot, &own.genre].iter().all(|text| text.0.is_empty()) {
        String::new()
    } else {
        more.to_string()
    };
    let logo = first([&own.stream_icon, &own.cover]);
    let entry = Entry {
        name: &clean(&first([&own.name, &own.title])),
        group: categories.get(&category).map_or("", String::as_str),
        logo: if logo.starts_with("http") { &clean(&logo) } else { "" },
        guide: &clean(&own.epg_channel_id.0),
        address: &id.0,
        extension: if fits && kind == Kind::Film { &extension } else { "" },
        number: u32::try_from(own.num.number()).unwrap_or_default(),
        added: own.added.number().max(own.last_modified.number()),
        days: if archive { own.tv_archive_duration.number().min(365) as u32 } else { 0 },
        catchup: if archive { "xc" } else { "" },
        more: if more.len() <= 4 << 10 { &more } else { "" },
        ..Entry::default()
    };
    catalogue.add(cx, kind, &entry)
}

/// What a panel says of a login.
#[derive(Debug, PartialEq, Eq)]
struct Login {
    /// How far its clock is ahead of UTC, in seconds.
    offset: i64,
    /// Whether live streams come as MPEG-TS, and as HLS.
    formats: [bool; 2],
    /// How many connections it allows; `None`: any number, or it does not say.
    connections: Option<u32>,
}

fn login(answer: &[u8], now: u64) -> Result<Login, String> {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Answer<'a> {
        #[serde(borrow)]
        user_info: Option<&'a RawValue>,
        #[serde(borrow)]
        server_info: Option<&'a RawValue>,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct User {
        auth: Text,
        status: Text,
        max_connections: Text,
        allowed_output_formats: serde_json::Value,
    }
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Machine {
        timestamp_now: Text,
        time_now: Text,
    }
    let no_panel =
        || String::from("what is there is no panel: it does not answer a login in JSON; see `kind` and `url`");
    let answer: Answer<'_> = serde_json::from_slice(answer).map_err(|_| no_panel())?;
    let user: User = serde_json::from_str(answer.user_info.ok_or_else(no_panel)?.get()).map_err(|_| no_panel())?;
    if user.auth.0 == "0" || user.auth.0.is_empty() && user.status.0.is_empty() {
        return Err(String::from("the panel does not know this name and password; see [[account]]"));
    }
    let status = user.status.0.to_ascii_lowercase();
    if !matches!(status.as_str(), "" | "active" | "trial" | "1" | "true") {
        let word: String = status.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        return Err(format!("the panel says of this account that it is \"{word}\""));
    }
    let machine =
        answer.server_info.and_then(|own| serde_json::from_str::<Machine>(own.get()).ok()).unwrap_or_default();
    let local = machine.time_now.0.trim().replace(' ', "T").parse::<jiff::civil::DateTime>().ok();
    let local = local.and_then(|local| local.to_zoned(jiff::tz::TimeZone::UTC).ok());
    let there = match machine.timestamp_now.number() {
        0 => now,
        there => there,
    };
    let ahead = local.map_or(0, |local| local.timestamp().as_second().saturating_sub(there as i64));
    // Time zones are whole quarters of an hour; clocks are not that exact.
    let quarters = (ahead + ahead.signum() * 450) / 900 * 900;
    let formats = user.allowed_output_formats.as_array().map_or(&[][..], Vec::as_slice);
    let says =
        |format: &str| formats.iter().any(|own| own.as_str().is_some_and(|own| own.eq_ignore_ascii_case(format)));
    let formats = match [says("ts"), says("m3u8")] {
        // That is no answer.
        [false, false] => [true; 2],
        said => said,
    };
    let connections = u32::try_from(user.max_connections.number()).ok().filter(|connections| *connections > 0);
    Ok(Login { offset: if quarters.abs() <= 15 * 3600 { quarters } else { 0 }, formats, connections })
}

/// An episode of a series, as a panel tells it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Told {
    pub id: u64,
    pub season: u64,
    pub number: u64,
    pub title: String,
    pub extension: String,
    pub added: String,
    pub info: serde_json::Value,
}

/// What a panel says of a series: what there is to say, and its episodes. `None`: it is nothing that can be read.
pub(crate) fn series(answer: &[u8]) -> Option<(serde_json::Value, Vec<Told>)> {
    use serde_json::Value;
    let answer: Value = serde_json::from_slice(answer).ok()?;
    // Whoever may not log in is told that and nothing else.
    let answer = answer.as_object().filter(|said| ["episodes", "info"].iter().any(|name| said.contains_key(*name)))?;
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => clean(text),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let number = |value: Option<&Value>| Text(text(value)).number();
    let told = episodes(answer.get("episodes")).into_iter().filter_map(|Listed { season, guess, place, episode }| {
        let info = episode.get("info").and_then(Value::as_object);
        let inner = |name| info.and_then(|info| info.get(name));
        // What is not there, or is 0 for want of something better, may be said elsewhere; season 0 is that of specials.
        let first = |said: [Option<&Value>; 2]| said.into_iter().map(number).find(|number| *number > 0);
        let said = ["season", "season_number"].iter().any(|name| !text(episode.get(*name)).is_empty());
        let own = first([episode.get("season"), episode.get("season_number")]);
        let own = own.or_else(|| first([inner("season"), inner("season_number")]));
        Some(Told {
            id: Some(number(episode.get("id"))).filter(|id| *id > 0)?,
            season: own.or(season).unwrap_or(if said { 0 } else { guess }),
            number: first([episode.get("episode_num"), inner("episode_num")]).unwrap_or(place),
            title: text(episode.get("title")),
            extension: text(episode.get("container_extension")),
            added: text(episode.get("added")),
            info: info.map_or_else(|| Value::Object(Default::default()), |info| Value::Object(info.clone())),
        })
    });
    let told = told.take(10_000).collect();
    Some((answer.get("info").filter(|info| info.is_object()).cloned().unwrap_or_default(), told))
}

/// An episode as it stands in a panel's list.
struct Listed<'a> {
    /// The season under which it stands, where it stands under one.
    season: Option<u64>,
    /// Which season it is of where nothing says so.
    guess: u64,
    /// Its place there, from 1.
    place: u64,
    episode: &'a serde_json::Map<String, serde_json::Value>,
}

/// Episodes by season, `{"1": [{…}], "2": [{…}]}`, in the order of these; or what PHP makes of such lists: `[[{…}], [{…}]]` where
/// nobody said the seasons, `{"1": {"3": {…}}}` where places were left out; or all in one list.
fn episodes(listed: Option<&serde_json::Value>) -> Vec<Listed<'_>> {
    use serde_json::Value;
    let mut seasons: Vec<(Option<u64>, u64, &Value)> = match listed {
        // "1", or "Season 1".
        Some(Value::Object(seasons)) => {
            let digits =
                |name: &str| name.trim_start_matches(|own: char| !own.is_ascii_digit()).trim_end().parse().ok();
            seasons.iter().map(|(name, season)| (digits(name), 1, season)).collect()
        }
        Some(Value::Array(seasons)) => (1..)
            .zip(seasons)
            .map(|(place, season)| (None, if is_episode(season) { 1 } else { place }, season))
            .collect(),
        _ => Vec::new(),
    };
    seasons.sort_by_key(|(season, ..)| *season);
    let mut all = Vec::new();
    for (season, guess, own) in seasons {
        let within: Vec<&Value> = match own {
            // All in one list: what it stands under is its place in that.
            own if is_episode(own) => {
                let place = all.len() as u64 + 1;
                all.extend(own.as_object().map(|episode| Listed { season: None, guess, place, episode }));
                continue;
            }
            Value::Array(episodes) => episodes.iter().collect(),
            Value::Object(episodes) => episodes.values().collect(),
            _ => continue,
        };
        let listed = (1..).zip(within).filter_map(|(place, episode)| Some((place, episode.as_object()?)));
        all.extend(listed.map(|(place, episode)| Listed { season, guess, place, episode }));
    }
    all
}

fn is_episode(value: &serde_json::Value) -> bool {
    value.get("id").is_some_and(|id| id.is_string() || id.is_number())
}

#[cfg(test)]
#[path = "xtream_tests.rs"]
mod tests;
