//! What is told of users and their playbacks.

use holdfast_core::input::{Note, UserId};
use holdfast_core::playback::Item;
use tracing::Level;

use super::{About, Told, place, refused, seconds, viewer_ended};
use crate::config::Settings;

/// Puts a note of a user into words.
pub(super) fn tell<'n>(note: &Note, settings: &'n Settings, about: &'n About) -> Told<'n> {
    let name = |user: UserId| settings.core.users.get(user.0 as usize).map_or("", |user| user.name.as_str());
    let stream = |item: Item| match item.feed().map(|feed| place(feed, &settings.core, about)) {
        Some(place) => place.to_string(),
        None => about
            .title
            .as_ref()
            .map_or_else(|| format!("a title ({})", item.kind()), |title| format!("\"{title}\" ({})", item.kind())),
    };
    let of_title = about.title.as_ref().map(|title| format!(" of \"{title}\"")).unwrap_or_default();
    let of = |user: UserId, level, what: String| {
        let user = name(user);
        Told { user: Some(user), ..Told::new(level, format!("user \"{user}\": {what}")) }
    };
    match note {
        Note::PlaybackStarted { user, playback, item, place, waited } => {
            let waited = if *waited < 50_000 { String::new() } else { format!(" after {}", seconds(*waited)) };
            let what = format!("playback {playback} of {} began{waited}, in a {} place", stream(*item), place.as_str());
            // What its player does to go on is for those who look closer.
            let level = if about.again { Level::DEBUG } else { Level::INFO };
            Told { playback: Some(*playback), ..of(*user, level, what) }
        }
        Note::PlaybackEnded { user, playback, reason, lasted } => {
            let (level, why) = viewer_ended(*reason);
            let what = format!("playback {playback}{of_title} {why}, after {}", seconds(*lasted));
            // That it began was said, too.
            let told = of(*user, level.min(Level::INFO), what);
            Told { playback: Some(*playback), reason: Some(reason.as_str()), ..told }
        }
        Note::PlaybackRefused { user, item, reason, client } => {
            // What its origins said tells more than that it came to nothing.
            let (level, why) = (refused(*reason), about.why.as_deref().unwrap_or(reason.says()));
            let what = format!("playback of {} from {} was refused: {why}", stream(*item), client.address);
            Told { reason: Some(reason.as_str()), ..of(*user, level, what) }
        }
        Note::PlaybackPromoted { user, playback } => {
            let what = format!("playback {playback}{of_title} has a normal place from here on, since one became free");
            Told { playback: Some(*playback), ..of(*user, Level::INFO, what) }
        }
        Note::PlaybackEvicted { user, playback, by, rule } => {
            let what = format!(
                "playback {playback}{of_title} ends for the sake of playback {by}{}, by {}",
                about.by.as_ref().map(|title| format!(" of \"{title}\"")).unwrap_or_default(),
                rule.as_str()
            );
            Told { playback: Some(*playback), reason: Some(rule.as_str()), ..of(*user, Level::INFO, what) }
        }
        Note::PlaybackGraced { user, playback, rule } => {
            let what =
                format!("playback {playback}{of_title} finds all places used and has its grace, by {}", rule.as_str());
            Told { playback: Some(*playback), reason: Some(rule.as_str()), ..of(*user, Level::DEBUG, what) }
        }
        _ => Told::new(Level::DEBUG, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::Id;
    use holdfast_core::input::{Client, RefuseReason, TitleId, ViewerEnd};
    use holdfast_core::playback;

    use super::*;

    #[test]
    fn a_refusal_says_who_from_where_what_why_and_what_to_do() {
        let client = Client { address: [192, 0, 2, 7].into(), agent: 0 };
        let (user, item, reason) = (UserId(0), Item::Vod(TitleId(7)), RefuseReason::ProviderLimit);
        let mut settings = Settings::default();
        settings.core.users = vec![holdfast_core::config::User { name: "anna".into(), ..Default::default() }];
        let about = About { title: Some("Film".into()), from: Some("192.0.2.7".into()), ..About::default() };
        let told = tell(&Note::PlaybackRefused { user, client, item, reason }, &settings, &about);
        let sentence = "user \"anna\": playback of \"Film\" (vod) from 192.0.2.7 was refused: ";
        assert!(told.sentence.starts_with(sentence), "{}", told.sentence);
        assert!(told.sentence.ends_with(reason.says()) && told.reason == Some("provider-limit"));
        let known = About { why: Some("the origin answers 429".into()), ..about };
        let told = tell(&Note::PlaybackRefused { user, client, item, reason }, &settings, &known);
        assert_eq!(told.sentence, format!("{sentence}the origin answers 429"));
    }

    #[test]
    fn a_playback_is_told_by_its_title_and_what_its_player_opens_again_is_a_detail() {
        let settings = Settings::default();
        let (user, playback, item) = (UserId(0), Id::from_parts(1, 5), Item::Vod(TitleId(7)));
        let started = Note::PlaybackStarted { user, playback, item, place: playback::Place::Normal, waited: 0 };
        for (again, level) in [(false, Level::INFO), (true, Level::DEBUG)] {
            let about = About { title: Some("Film".into()), again, ..About::default() };
            let told = tell(&started, &settings, &about);
            assert_eq!(told.level, level);
            assert_eq!(told.sentence, "user \"\": playback 1.5 of \"Film\" (vod) began, in a normal place");
            let ended = Note::PlaybackEnded { user, playback, reason: ViewerEnd::Done, lasted: 1_000_000 };
            let told = tell(&ended, &settings, &about);
            assert_eq!(told.sentence, "user \"\": playback 1.5 of \"Film\" was sent to its end, after 1.0 s");
        }
    }
}
