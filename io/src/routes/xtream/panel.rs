//! `/panel_api.php`: all that a user may play in one answer, as players ask for it that are older than `/player_api.php`.

use serde_json::{Map, Value, json};

use super::{Listing, categories, info, own_streams, record, with};
use crate::http::Request;
use crate::providers::Kind;
use crate::providers::library::{Library, Step};
use crate::routes::{local, long_text, read_only, text};
use crate::server::{Call, Produce};

/// Answers a user whose name and password were right.
pub(super) fn all(call: &mut Call<'_>, request: &Request, user: holdfast_core::input::UserId, password: &str) {
    if request.method == crate::http::Method::Options {
        return read_only(call, request, |_| text("application/json", ""));
    }
    let groups = call.server.users().get(user).map_or(&[][..], |own| &own.groups);
    let library = Library::new(call.server.providers(), groups);
    let shelves = local::Shelves::new(call.server.libraries(), groups);
    let live = categories(Some(call), &library, Kind::Live);
    let films = with(categories(None, &library, Kind::Film), shelves.categories(Kind::Film));
    let series = with(categories(None, &library, Kind::Series), shelves.categories(Kind::Series));
    let mut names = Map::new();
    for own in [&live, &films].into_iter().filter_map(Value::as_array).flatten() {
        if let Some(id) = own["category_id"].as_str() {
            names.insert(id.to_owned(), own["category_name"].clone());
        }
    }
    let mut head = info(call, request, user, password);
    head["categories"] = json!({ "live": live, "movie": films, "series": series });
    let (mut own, _) = own_streams(call, None);
    own.extend(shelves.listing(Kind::Film, None).0);
    let list = Listing { own, library: Some(library), ..Listing::new(Kind::Live, None) };
    let all = All { head: Some(head), names, list, told: 0 };
    call.produce(long_text("application/json"), Box::new(all));
}

/// The answer as it is told, piece by piece.
struct All {
    /// What stands before the streams.
    head: Option<Value>,
    /// What categories are called.
    names: Map<String, Value>,
    list: Listing,
    /// How many streams were told.
    told: usize,
}

impl All {
    fn tell(&mut self, piece: &mut Vec<u8>, mut told: Value) {
        let id = told["stream_id"].to_string();
        let id = id.trim_matches('"');
        let live = told["stream_type"] == "live";
        let name = told["category_id"].as_str().and_then(|id| self.names.get(id)).cloned();
        self.told += 1;
        told["num"] = self.told.into();
        told["category_name"] = name.unwrap_or_default();
        told["type_name"] = if live { "Live Streams" } else { "Movies" }.into();
        told["live"] = if live { "1" } else { "0" }.into();
        told["series_no"] = Value::Null;
        if live {
            told["container_extension"] = Value::Null;
        }
        let comma = if std::mem::replace(&mut self.list.begun, true) { "," } else { "" };
        piece.extend_from_slice(format!("{comma}\"{id}\":{told}").as_bytes());
    }
}

impl Produce for All {
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool {
        if let Some(head) = self.head.take() {
            // Its last brace is that of all.
            let head = head.to_string();
            piece.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
            piece.extend_from_slice(b",\"available_channels\":{");
        }
        for value in std::mem::take(&mut self.list.own) {
            self.tell(piece, value);
        }
        let Some(library) = self.list.library.take() else { return false };
        let mut more = true;
        while more && piece.len() < about {
            match library.next(&mut self.list.place, &[Kind::Live, Kind::Film]) {
                Step::Item(item) => {
                    let told = record(&library, &item, 0);
                    self.tell(piece, told);
                }
                Step::Pause => break,
                Step::End => {
                    piece.extend_from_slice(b"}}");
                    more = false;
                }
            }
        }
        self.list.library = Some(library);
        more
    }
}
