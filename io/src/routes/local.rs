//! Films and episodes that are files of this machine, at the addresses of all others.

use holdfast_core::input::{Ask, UserId, Want};
use holdfast_core::playback::Item;

use serde_json::{Map, Value, json};

use super::{login, not_found};
use crate::http::range::{Asked, Several};
use crate::http::{FieldValue, Method, Request, Response, Status, Via};
use crate::library::{Libraries, Local, Series};
use crate::providers::Kind;
use crate::providers::library::category_of;
use crate::server::{Call, Errand, FetchedFrom, OfFile, Wanted, What};

/// Plays the film or episode of this id, if it is a file of this machine. Whether it is; if not, it is not answered.
pub(super) fn play(call: &mut Call<'_>, request: &Request, user: UserId, (kind, id): (Kind, u32)) -> bool {
    let Some(local) = call.server.libraries().find(kind, id) else { return false };
    let groups = call.server.users().get(user).map_or(&[][..], |login| &login.groups);
    if !call.server.libraries().permits(local.library, groups) {
        call.answer(not_found());
        return true;
    }
    let file = OfFile { place: local.place.clone(), kind: media_type(local.extension), request: request.clone() };
    let wanted = if local.extension == "ts" { Wanted::MpegTs } else { Wanted::Anything };
    let (id, asked) = (local.title, Asked::of(request));
    let (what, want) = match request.method {
        Method::Head => (What::Look, Want::Look),
        _ => (What::Media, asked.want(Several::Whole)),
    };
    let viewing = login::of(call, request, user, Item::Local(id));
    let ask = Ask { viewing, want, token: None, account: None, providers: Vec::new() };
    let from = FetchedFrom::File(Box::new(file));
    // Whoever it came through gets no further: it is from here.
    let sources = Vec::new();
    call.fetch(Errand { ask, sources, from, what, span: None, if_range: None, wanted, up: 0, via: Via::default() });
    true
}

/// What a user may see of the libraries of this machine.
pub(super) struct Shelves<'s> {
    libraries: &'s Libraries,
    /// The groups that it may see; none = all.
    groups: &'s [String],
}

impl<'s> Shelves<'s> {
    pub fn new(libraries: &'s Libraries, groups: &'s [String]) -> Self {
        Shelves { libraries, groups }
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &'s Local> {
        let (libraries, groups) = (self.libraries, self.groups);
        libraries.of(kind).filter(move |local| libraries.permits(local.library, groups))
    }

    fn series(&self) -> impl Iterator<Item = &'s Series> {
        let (libraries, groups) = (self.libraries, self.groups);
        libraries.series().iter().filter(move |series| libraries.permits(series.library, groups))
    }

    fn category(&self, library: usize) -> u32 {
        category_of(self.libraries.group(library))
    }

    /// The groups that have something of a kind, each once: what clients know them by, and their names.
    pub fn categories(&self, kind: Kind) -> Vec<(u32, &'s str)> {
        let libraries = self.libraries;
        let mut groups: Vec<(u32, &str)> = match kind {
            Kind::Series => self.series().map(|own| own.library).collect::<Vec<_>>(),
            kind => self.of(kind).map(|own| own.library).collect(),
        }
        .into_iter()
        .map(|library| (self.category(library), libraries.group(library)))
        .collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Films, or series, as the Xtream API lists them, and how many there are in all categories.
    pub fn listing(&self, kind: Kind, category: Option<u32>) -> (Vec<Value>, usize) {
        let wanted = |library| category.is_none_or(|category| category == self.category(library));
        let all: Vec<(usize, Value)> = match kind {
            Kind::Film => self.of(kind).map(|own| (own.library, self.film(own))).collect(),
            Kind::Series => self.series().map(|own| (own.library, self.told(own))).collect(),
            Kind::Live | Kind::Episode => Vec::new(),
        };
        let count = all.len();
        // Its number is the same in whichever category it is looked for.
        let numbered =
            all.into_iter().enumerate().filter(|(_, (library, _))| wanted(*library)).map(|(at, (_, mut own))| {
                own["num"] = (at + 1).into();
                own
            });
        (numbered.collect(), count)
    }

    fn film(&self, own: &Local) -> Value {
        let category = self.category(own.library);
        json!({
            "name": own.name,
            "stream_type": "movie",
            "stream_id": own.id,
            "stream_icon": "",
            "rating": "",
            "rating_5based": 0.0,
            "added": own.added.to_string(),
            "is_adult": "0",
            "category_id": category.to_string(),
            "category_ids": [category],
            "container_extension": own.extension,
            "custom_sid": "",
            "direct_source": "",
        })
    }

    fn told(&self, own: &Series) -> Value {
        let category = self.category(own.library);
        json!({
            "name": own.name,
            "series_id": own.id,
            "cover": "",
            "plot": "",
            "cast": "",
            "director": "",
            "genre": "",
            "releaseDate": "",
            "last_modified": "0",
            "rating": "",
            "rating_5based": 0.0,
            "backdrop_path": [],
            "youtube_trailer": "",
            "episode_run_time": "0",
            "category_id": category.to_string(),
            "category_ids": [category],
        })
    }

    /// `get_vod_info`; `None` if it is no film of this machine that the user may see.
    pub fn film_info(&self, id: u32) -> Option<Value> {
        let own = self.libraries.find(Kind::Film, id)?;
        let permitted = self.libraries.permits(own.library, self.groups);
        permitted.then(|| json!({ "info": { "name": own.name, "movie_image": "" }, "movie_data": self.film(own) }))
    }

    /// `get_series_info`; `None` if it is no series of this machine that the user may see.
    pub fn series_info(&self, id: u32) -> Option<Value> {
        let (place, own) = self.libraries.series_by_id(id)?;
        if !self.libraries.permits(own.library, self.groups) {
            return None;
        }
        let mut episodes: Vec<(u32, u32, &Local)> =
            self.libraries.episodes(place).filter_map(|file| file.episode.map(|(_, s, n)| (s, n, file))).collect();
        episodes.sort_by_key(|(season, number, file)| (*season, *number, file.id));
        let mut seasons: Map<String, Value> = Map::new();
        let mut told: Vec<Value> = Vec::new();
        for of_one in episodes.chunk_by(|a, b| a.0 == b.0) {
            let season = of_one[0].0;
            told.push(json!({
                "id": season, "season_number": season, "name": format!("Season {season}"),
                "episode_count": of_one.len(), "air_date": "", "overview": "", "cover": "", "cover_big": "",
            }));
            let all = of_one.iter().map(|(season, number, file)| {
                json!({
                    "id": file.id.to_string(),
                    "episode_num": number,
                    "title": file.name,
                    "container_extension": file.extension,
                    "info": { "movie_image": "" },
                    "custom_sid": "",
                    "added": file.added.to_string(),
                    "season": season,
                    "direct_source": "",
                })
            });
            seasons.insert(season.to_string(), all.collect());
        }
        Some(json!({ "seasons": told, "info": self.told(own), "episodes": seasons }))
    }

    /// Films and episodes as players' lists have them: name, group, and where they are behind `/movie/` or `/series/` and the login.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'s>> {
        let libraries = self.libraries;
        [Kind::Film, Kind::Episode].into_iter().flat_map(|kind| self.of(kind)).map(move |own| Entry {
            name: &own.name,
            group: libraries.group(own.library),
            folder: if own.kind == Kind::Film { "movie" } else { "series" },
            file: format!("{}.{}", own.id, own.extension),
        })
    }
}

/// A film or an episode in a list.
pub(super) struct Entry<'s> {
    pub name: &'s str,
    pub group: &'s str,
    pub folder: &'static str,
    pub file: String,
}

/// What players are told that it is.
fn media_type(extension: &str) -> FieldValue {
    FieldValue::from_static(match extension {
        "mp4" | "m4v" => "video/mp4",
        "mkv" => "video/x-matroska",
        "ts" => "video/mp2t",
        "avi" => "video/x-msvideo",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    })
}

/// It is not what the client takes it for (`If-Match`, `If-Unmodified-Since`).
pub(crate) fn another_version() -> Response {
    let detail = "the file is another version than the one that was asked for";
    Response::problem(Status::PRECONDITION_FAILED, "another-version", "Precondition Failed", detail)
}
