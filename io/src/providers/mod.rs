//! What providers have: catalogues that are read in the background, and where what is in them is fetched.

mod settings;

use holdfast_core::input::{AccountId, ProviderId, TitleId};
use url::Url;

use crate::http::FieldValue;
use crate::http::field::FieldName;
pub use settings::{Credentials, Dialect, Guide, Location, Output, ProviderSettings};
pub(crate) use settings::{is_private, names_private};

/// What a title is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Kind {
    /// A live stream.
    Live,
    /// A film.
    Film,
    /// An episode of a series.
    Episode,
}

/// A title, as far as playing it needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Title {
    pub title: TitleId,
    pub kind: Kind,
    pub name: String,
    /// What its address ends in: `ts`, `m3u8`, `mpd`, `mp4`; empty where that is not known.
    pub extension: String,
}

/// What of a title is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The stream or the file.
    Whole,
    /// A live stream as a playlist (HLS).
    Playlist,
    /// What a live stream was: from then on, in seconds since 1970, for so many minutes; as a playlist or as a stream.
    Archive { start: u64, minutes: u32, playlist: bool },
}

/// Where, and with which fields, a part of a title is fetched with an account. Holds secrets: not for logs.
#[derive(Clone)]
pub(crate) struct Address {
    pub url: Url,
    /// `User-Agent`, `Referer` and what else the catalogue says.
    pub fields: Vec<(FieldName, FieldValue)>,
}

/// All providers' catalogues.
#[derive(Default)]
pub(crate) struct Providers {}

impl Providers {
    /// The title that addresses of this server name so: `/movie/{user}/{password}/{id}.mp4`.
    pub fn find(&self, _kind: Kind, _id: u32) -> Option<Title> {
        None
    }

    /// Where it can be had, the preferred provider first; its places are what `index` counts.
    pub fn sources(&self, _title: TitleId) -> Vec<ProviderId> {
        Vec::new()
    }

    /// Where a part of it is fetched from the source at `index` with an account of that provider's; `None` if there is no such.
    pub fn address(&self, _title: TitleId, _index: u32, _account: AccountId, _part: Part) -> Option<Address> {
        None
    }
}
