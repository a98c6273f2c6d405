//! What is told of users and their playbacks.

use holdfast_core::input::{Note, UserId};
use holdfast_core::playback::Item;
use tracing::Level;

use super::{Told, place, refused, seconds, viewer_ended};
use crate::config::Settings;

/// Puts a note of a user into words.
pub(super) fn tell<'n>(note: &Note, settings: &'n Settings) -> Told<'n> {
    let name = |user: UserId| settings.core.users.get(user.0 as usize).map_or("", |user| user.name.as_str());
    let stream = |item: Item| match item.feed().map(|feed| place(feed, &settings.core)) {
        Some(place) => place.to_string(),
        None => format!("a title ({})", item.kind()),
    };
    let of = |user: UserId, level, what: String| {
        let user = name(user);
        Told { user: Some(user), ..Told::new(level, format!("user \"{user}\": {what}")) }
    };
    match note {
        Note::PlaybackStarted { user, playback, item, place, waited } => {
            let waited = if *waited < 50_000 { String::new() } else { format!(" after {}", seconds(*waited)) };
            let what = format!("playback {playback} of {} began{waited}, in a {} place", stream(*item), place.as_str());
            Told { playback: Some(*playback), ..of(*user, Level::INFO, what) }
        }
        Note::PlaybackEnded { user, playback, reason, lasted } => {
            let (level, why) = viewer_ended(*reason);
            let what = format!("playback {playback} {why}, after {}", seconds(*lasted));
            // That it began was said, too.
            let told = of(*user, level.min(Level::INFO), what);
            Told { playback: Some(*playback), reason: Some(reason.as_str()), ..told }
        }
        Note::PlaybackRefused { user, item, reason } => {
            let (level, why) = refused(*reason);
            let what = format!("playback of {} was refused: {why}", stream(*item));
            Told { reason: Some(reason.as_str()), ..of(*user, level, what) }
        }
        Note::PlaybackPromoted { user, playback } => {
            let what = format!("playback {playback} has a normal place from here on, since one became free");
            Told { playback: Some(*playback), ..of(*user, Level::INFO, what) }
        }
        Note::PlaybackEvicted { user, playback, by, rule } => {
            let what = format!("playback {playback} ends for the sake of playback {by}, by {}", rule.as_str());
            Told { playback: Some(*playback), reason: Some(rule.as_str()), ..of(*user, Level::INFO, what) }
        }
        Note::PlaybackGraced { user, playback, rule } => {
            let what = format!("playback {playback} finds all places used and has its grace, by {}", rule.as_str());
            Told { playback: Some(*playback), reason: Some(rule.as_str()), ..of(*user, Level::DEBUG, what) }
        }
        _ => Told::new(Level::DEBUG, String::new()),
    }
}
