//! What a provider has, and how panels say so: lists, the API of Xtream panels with its loose types, the guide.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::clips::{self, Clip, Hls};
use super::{Account, Settings};

/// A live stream.
pub struct Live {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'static str,
    /// What guides call it.
    pub epg: &'static str,
    /// Whether it is there as MPEG-TS; all are as HLS.
    pub ts: bool,
    /// Whether what it was is there, too.
    pub archive: bool,
    /// How its segments come.
    pub hls: Hls,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// One file.
    File(Clip),
    /// A playlist.
    Hls(Hls),
}

/// A film or an episode.
pub struct Film {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'static str,
    /// What its address ends in.
    pub extension: &'static str,
    /// What is behind it.
    pub form: Form,
}

/// All live streams.
pub const LIVES: [Live; 4] = [
    Live { id: 1, name: "News One", epg: "news.one", ts: true, archive: false, hls: Hls::Plain },
    Live { id: 2, name: "News Two", epg: "news.two", ts: true, archive: false, hls: Hls::Plain },
    Live { id: 3, name: "Archive", epg: "archive.tv", ts: true, archive: true, hls: Hls::Plain },
    Live { id: 4, name: "Segments", epg: "", ts: false, archive: false, hls: Hls::Keys },
];

/// A live stream that comes as DASH, in lists alone.
pub const DASH: &str = "Dash";

/// All films.
pub const FILMS: [Film; 7] = [
    Film { id: 101, name: "Film Tail", extension: "mp4", form: Form::File(Clip::Tail) },
    Film { id: 102, name: "Film Fast", extension: "mp4", form: Form::File(Clip::Fast) },
    Film { id: 103, name: "Film Matroska", extension: "mkv", form: Form::File(Clip::Matroska) },
    Film { id: 104, name: "Film Stream", extension: "ts", form: Form::File(Clip::Ts) },
    Film { id: 105, name: "Film Keys", extension: "m3u8", form: Form::Hls(Hls::Keys) },
    Film { id: 106, name: "Film Ranges", extension: "m3u8", form: Form::Hls(Hls::Ranges) },
    Film { id: 107, name: "Film Fragments", extension: "m3u8", form: Form::Hls(Hls::Fragments) },
];

/// The only series, and its episodes: two in the first season, one in the second.
pub const SERIES: (u32, &str) = (201, "The Series");
/// Its episodes.
pub const EPISODES: [Film; 3] = [
    Film { id: 2011, name: "The First", extension: "mp4", form: Form::File(Clip::Tail) },
    Film { id: 2012, name: "The Second", extension: "mkv", form: Form::File(Clip::Matroska) },
    Film { id: 2021, name: "The Third", extension: "ts", form: Form::File(Clip::Ts) },
];

/// The film or the episode of this number.
pub(super) fn film(id: u32) -> Option<&'static Film> {
    FILMS.iter().chain(&EPISODES).find(|film| film.id == id)
}

/// The live stream of this number.
pub(super) fn live(id: u32) -> Option<&'static Live> {
    LIVES.iter().find(|live| live.id == id)
}

/// Everything, for one account.
pub(super) struct Catalogue<'c> {
    pub settings: &'c Settings,
    pub account: &'c Account,
    /// `http://host:port`
    pub base: &'c str,
    pub open: usize,
}

impl Catalogue<'_> {
    fn address(&self, kind: &str, id: u32, extension: &str) -> String {
        format!("{}/{kind}/{}/{}/{id}.{extension}", self.base, self.account.username, self.account.password)
    }

    /// The list, as panels write it.
    pub fn list(&self, output: &str) -> String {
        let guide =
            format!("{}/xmltv.php?username={}&password={}", self.base, self.account.username, self.account.password);
        let mut text = format!("#EXTM3U url-tvg=\"{guide}\" x-tvg-url=\"{guide}\"\n");
        let mut entry = |fields: &str, group: &str, name: &str, address: &str| {
            text += &format!("#EXTINF:-1 {fields} group-title=\"{group}\",{name}\n{address}\n");
        };
        for live in &LIVES {
            // For how long is not said: tests ask for fixed dates.
            let archive = if live.archive { " catchup=\"xc\"" } else { "" };
            let fields = format!("tvg-id=\"{}\" tvg-name=\"{}\" tvg-logo=\"\"{archive}", live.epg, live.name);
            let extension = if live.ts && output != "m3u8" { "ts" } else { "m3u8" };
            entry(&fields, "News, all day", live.name, &self.address("live", live.id, extension));
        }
        entry("tvg-id=\"\"", "News, all day", DASH, &self.address("live", 5, "mpd"));
        for film in &FILMS {
            entry("tvg-type=\"movie\"", "Films", film.name, &self.address("movie", film.id, film.extension));
        }
        for (film, number) in EPISODES.iter().zip(["S01 E01", "S01 E02", "S02 E01"]) {
            let name = format!("{} {number}", SERIES.1);
            entry("tvg-type=\"serie\"", SERIES.1, &name, &self.address("series", film.id, film.extension));
        }
        for number in 0..self.settings.bulk {
            let id = 1_000_000 + number;
            entry("tvg-logo=\"\"", "Bulk", &format!("Bulk {number}"), &self.address("movie", id, "mp4"));
        }
        if self.settings.messy {
            text = text.replace('\n', "\r\n");
            text = text.replacen("#EXTINF", "#EXTINF:broken\r\n\r\nnot an address\r\n#EXTVLCOPT\r\n#EXTINF", 1);
            text.insert(0, '\u{feff}');
        }
        text
    }

    /// The guide: what runs now and next on each.
    pub fn guide(&self) -> String {
        let now = Timestamp::now();
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE tv SYSTEM \"xmltv.dtd\">\n<tv generator-info-name=\"panel\">\n",
        );
        let epgs = || LIVES.iter().filter(|live| !live.epg.is_empty());
        for live in epgs() {
            text += &format!(
                "<channel id=\"{}\"><display-name>{}</display-name><icon src=\"\"/></channel>\n",
                live.epg, live.name
            );
        }
        text += "<channel id=\"nobody.has\"><display-name>Nobody &amp; Co</display-name></channel>\n";
        for (epg, name) in epgs().map(|live| (live.epg, live.name)).chain([("nobody.has", "Nobody")]) {
            for part in -2..3_i64 {
                let at = |hours: i64| {
                    let time = Timestamp::from_second(now.as_second() / 3600 * 3600 + hours * 3600).expect("in range");
                    time.strftime("%Y%m%d%H%M%S +0000").to_string()
                };
                text += &format!(
                    "<programme start=\"{}\" stop=\"{}\" channel=\"{epg}\"><title lang=\"en\">{name} &lt;{part}&gt;</title></programme>\n",
                    at(part),
                    at(part + 1)
                );
            }
        }
        text + "</tv>\n"
    }

    /// What `player_api.php` answers, with the types that panels happen to use.
    pub fn api(&self, action: Option<&str>, value: impl Fn(&str) -> Option<String>) -> Value {
        let id = |name: &str| value(name).and_then(|id| id.parse::<u32>().ok());
        let category = value("category_id");
        let wanted = |own: &str| category.as_deref().is_none_or(|category| category == own);
        match action {
            None => self.login(),
            Some("get_live_categories") => json!([
                {"category_id": "1", "category_name": "News, all day", "parent_id": 0},
                {"category_id": "9", "category_name": "Empty", "parent_id": "0"},
            ]),
            Some("get_vod_categories") => json!([{"category_id": "2", "category_name": "Films", "parent_id": 0}]),
            Some("get_series_categories") => json!([{"category_id": 3, "category_name": "Series", "parent_id": 0}]),
            Some("get_live_streams") if wanted("1") => LIVES.iter().enumerate().map(live_record).collect(),
            Some("get_vod_streams") if wanted("2") => {
                let bulk = (0..self.settings.bulk).map(|number| (1_000_000 + number, format!("Bulk {number}"), "mp4"));
                let films = FILMS.iter().map(|film| (film.id, film.name.to_owned(), film.extension));
                films.chain(bulk).enumerate().map(film_record).collect()
            }
            Some("get_series") if wanted("3") => json!([{
                "num": 1, "name": SERIES.1, "series_id": SERIES.0, "cover": "", "plot": null, "cast": "", "director": null,
                "genre": "Test", "releaseDate": "2026-01-01", "last_modified": "1767225600", "rating": "7", "rating_5based": 3.5,
                "backdrop_path": [], "youtube_trailer": null, "episode_run_time": "0", "category_id": "3", "category_ids": [3],
            }]),
            Some("get_vod_info") => match id("vod_id").and_then(film) {
                Some(film) => json!({
                    "info": {"name": film.name, "duration_secs": clips::LENGTH, "duration": "00:02:00", "video": [], "rating": ""},
                    "movie_data": {"stream_id": film.id, "name": film.name, "added": "1767225600", "category_id": "2",
                        "container_extension": film.extension, "custom_sid": null, "direct_source": ""},
                }),
                None => json!({"info": [], "movie_data": []}),
            },
            Some("get_series_info") if id("series_id") == Some(SERIES.0) => series_info(),
            Some("get_series_info") => json!({"seasons": [], "info": [], "episodes": []}),
            Some("get_short_epg" | "get_simple_data_table") => epg(id("stream_id").and_then(live)),
            Some(_) => json!([]),
        }
    }

    fn login(&self) -> Value {
        let now = Timestamp::now();
        let host = self.base.rsplit(['/', ':']).nth(1).unwrap_or_default();
        json!({
            "user_info": {
                "username": self.account.username, "password": self.account.password, "message": "", "auth": 1,
                "status": self.account.status, "exp_date": self.account.expires.map(|at| at.to_string()), "is_trial": "0",
                "active_cons": self.open.to_string(), "created_at": "1767225600",
                "max_connections": self.account.says.unwrap_or(self.account.max).to_string(),
                "allowed_output_formats": ["m3u8", "ts", "rtmp"],
            },
            "server_info": {
                "url": host, "port": self.base.rsplit(':').next(), "https_port": "", "server_protocol": "http", "rtmp_port": "",
                "timezone": "UTC", "timestamp_now": now.as_second(), "time_now": now.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            },
        })
    }
}

/// `user_info` of a login that is wrong.
pub(super) fn wrong_login() -> Value {
    json!({"user_info": {"auth": 0}})
}

fn live_record((number, live): (usize, &Live)) -> Value {
    // Panels send numbers as strings as they like.
    let archive = i32::from(live.archive);
    json!({
        "num": number + 1, "name": live.name, "stream_type": "live", "stream_id": live.id, "stream_icon": "",
        "epg_channel_id": if live.epg.is_empty() { Value::Null } else { live.epg.into() },
        "added": "1767225600", "is_adult": "0", "category_id": "1", "category_ids": [1], "custom_sid": null,
        "tv_archive": if live.archive { json!(archive.to_string()) } else { json!(archive) },
        "direct_source": "", "tv_archive_duration": if live.archive { json!("0") } else { json!(0) },
    })
}

fn film_record((number, (id, name, extension)): (usize, (u32, String, &str))) -> Value {
    let even = number % 2 == 0;
    json!({
        "num": number + 1, "name": name, "stream_type": "movie",
        "stream_id": if even { json!(id) } else { json!(id.to_string()) },
        "stream_icon": if even { json!("") } else { Value::Null },
        "rating": if even { json!("6.5") } else { json!(6.5) }, "rating_5based": 3.2, "added": "1767225600", "is_adult": 0,
        "category_id": "2", "category_ids": [2], "container_extension": extension, "custom_sid": "", "direct_source": "",
    })
}

fn series_info() -> Value {
    let episode = |index: usize, number: u32, season: u32| {
        let own = &EPISODES[index];
        json!({
            "id": own.id.to_string(), "episode_num": number, "title": own.name, "container_extension": own.extension,
            "info": if index == 1 { json!([]) } else { json!({"duration_secs": clips::LENGTH}) },
            "custom_sid": "", "added": "1767225600", "season": season, "direct_source": "",
        })
    };
    json!({
        "seasons": [],
        "info": {"name": SERIES.1, "cover": "", "plot": null, "rating": "7", "category_id": "3", "backdrop_path": []},
        "episodes": {"1": [episode(0, 1, 1), episode(1, 2, 1)], "2": [episode(2, 1, 2)]},
    })
}

fn epg(live: Option<&Live>) -> Value {
    let Some(live) = live.filter(|live| !live.epg.is_empty()) else { return json!({"epg_listings": []}) };
    let hour = Timestamp::now().as_second() / 3600 * 3600;
    let text = |time: i64| Timestamp::from_second(time).expect("in range").strftime("%Y-%m-%d %H:%M:%S").to_string();
    let listings = (0..2).map(|part| {
        let (start, stop) = (hour + part * 3600, hour + (part + 1) * 3600);
        json!({
            "id": part.to_string(), "epg_id": "1", "title": STANDARD.encode(format!("{} <{part}>", live.name)), "lang": "en",
            "start": text(start), "end": text(stop), "description": STANDARD.encode(""), "channel_id": live.epg,
            "start_timestamp": start.to_string(), "stop_timestamp": stop.to_string(),
        })
    });
    json!({"epg_listings": listings.collect::<Vec<_>>()})
}
