//! What happens to channels and their sources, in words.

use super::*;

/// Puts a note about a channel into words, with its name and the labels of its sources.
pub(super) fn tell<'n>(note: &Note, settings: &'n Settings, about: &'n About) -> Told<'n> {
    match note {
        Note::SourceOpening { channel, index, .. } => {
            let of = settings.core.channels.get(channel.0 as usize).map(|own| own.sources);
            let what = |label: &str| match of {
                Some(of) => format!("asks {label}, source {} of {of}", index + 1),
                // Of a title of providers, which of them have it is in their catalogues.
                None => format!("asks {label}, source {}", index + 1),
            };
            told_of((settings, about), *channel, *index, Level::DEBUG, what)
        }
        Note::SourceLost { channel, index, loss, lasted, .. } => {
            let (level, why) = (lost(*loss), loss.says());
            let what = |label: &str| format!("{label} is given up after {}: {why}", seconds(*lasted));
            Told { reason: Some(loss.as_str()), ..told_of((settings, about), *channel, *index, level, what) }
        }
        Note::SourceFault { channel, index, why } => {
            told_of((settings, about), *channel, *index, Level::INFO, |label| format!("{label}: {why}"))
        }
        Note::ChannelStarted { channel, index, waited } => {
            let what = |label: &str| format!("media comes from {label}, {} after it was wanted", seconds(*waited));
            told_of((settings, about), *channel, *index, Level::INFO, what)
        }
        Note::ChannelSilent { channel, index, silent } => {
            let since = match silent {
                Some(silent) => format!("no media has come for {}", seconds(*silent)),
                None => String::from("no media has ever come"),
            };
            let what = |label: &str| format!("{label} is silent: it is connected, and {since}; the connection is kept");
            told_of((settings, about), *channel, *index, Level::WARN, what)
        }
        Note::ChannelBack { channel, index, gap } => {
            let what = |label: &str| format!("media is back from {label}, after a gap of {}", seconds(*gap));
            told_of((settings, about), *channel, *index, Level::INFO, what)
        }
        Note::ChannelSwitched { channel, index, why, gap } => {
            let what = |label: &str| match why {
                Switch::Failover => format!(
                    "goes on from a new connection to {label}: no media came from the one before, for {}",
                    seconds(*gap)
                ),
                Switch::Failback => {
                    format!("goes back to {label}, which is preferred and has shown that it works again")
                }
            };
            Told { reason: Some(why.as_str()), ..told_of((settings, about), *channel, *index, Level::INFO, what) }
        }
        Note::ChannelEnded { channel, reason } => {
            let why = match reason {
                ViewerEnd::Ended => "its origin ended the stream and did not begin again within `end_grace`",
                ViewerEnd::NoSource => "its origins were tried as often as `retries` allows",
                other => other.as_str(),
            };
            let what = format!("its viewers are ended: {why}");
            let place = Place::Channel(name(settings, *channel, about));
            Told { reason: Some(reason.as_str()), ..Told::at(place, Level::DEBUG, &what) }
        }
        Note::ChannelOff { channel } => {
            let what = "nobody has watched for `idle_timeout`: its connections are closed";
            Told::at(Place::Channel(name(settings, *channel, about)), Level::DEBUG, what)
        }
        // The others are not about channels, and have their words elsewhere.
        _ => Told::new(Level::DEBUG, String::new()),
    }
}

fn name<'n>(settings: &'n Settings, channel: ChannelId, about: &'n About) -> &'n str {
    settings.core.channels.get(channel.0 as usize).map_or(title(about), |own| own.name.as_str())
}

fn told_of<'n>(
    (settings, about): (&'n Settings, &'n About),
    channel: ChannelId,
    index: u32,
    level: Level,
    what: impl FnOnce(&str) -> String,
) -> Told<'n> {
    let origins = settings.origins.get(channel.0 as usize);
    let label = origins
        .and_then(|origins| origins.get(index as usize))
        .map(|origin| origin.label())
        // A journal knows how many there are, and not where.
        .or_else(|| settings.core.channels.get(channel.0 as usize).map(|_| format!("source {}", index + 1)))
        .unwrap_or_else(|| String::from("its provider"));
    let told = Told::at(Place::Channel(name(settings, channel, about)), level, &what(&label));
    Told { source: Some(label), ..told }
}

/// What was lost by something that was heard from the origin has been said in its own words as a fault. What waits for somebody
/// to change the configuration is an error; what is decided here is news; the rest is for those who look closer.
fn lost(loss: Loss) -> Level {
    match loss {
        Loss::Forbidden | Loss::Loop => Level::ERROR,
        Loss::TimedOut | Loss::NoAccount | Loss::Preempted | Loss::GraceOver | Loss::NoKeyFrame | Loss::Limit => {
            Level::INFO
        }
        Loss::Silent
        | Loss::NotFound
        | Loss::Unresolved
        | Loss::Unreachable
        | Loss::Refused
        | Loss::Reset
        | Loss::Ended
        | Loss::Unusable
        | Loss::Page => Level::DEBUG,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::Id;

    use super::super::tests::NOTHING;
    use super::*;
    use crate::config::parse;

    const CHANNEL: ChannelId = ChannelId(0);

    fn told(note: Note) -> (Level, String, Option<&'static str>) {
        let text =
            "[[channel]]\nname = 'news'\nsources = ['http://user:secret@a.example/secret/x.ts?key=secret', 'test:']";
        let settings = parse(text, "f.toml").expect("reads");
        let told = super::tell(&note, &settings, NOTHING);
        assert!(!told.sentence.contains("secret"), "{}", told.sentence);
        assert_eq!(told.channel, Some("news"));
        (told.level, told.sentence, told.reason)
    }

    fn loss(loss: Loss) -> Note {
        let source = Id::from_parts(1, 0);
        Note::SourceLost { channel: CHANNEL, index: 0, source, loss, lasted: 1_500_000 }
    }

    #[test]
    fn channels_are_told_by_name_and_sources_by_label() {
        let (level, sentence, _) =
            told(Note::SourceOpening { channel: CHANNEL, index: 0, source: Id::from_parts(1, 0) });
        assert_eq!(level, Level::DEBUG);
        assert_eq!(sentence, "channel \"news\": asks http://a.example/…/x.ts?…, source 1 of 2");
        let why = String::from("the origin answers 404");
        let (_, sentence, _) = told(Note::SourceFault { channel: CHANNEL, index: 0, why });
        assert_eq!(sentence, "channel \"news\": http://a.example/…/x.ts?…: the origin answers 404");
    }

    #[test]
    fn a_stream_of_a_provider_is_told_by_its_title_and_is_no_source_of_none() {
        let about = About { title: Some("Sport".into()), ..About::default() };
        let settings = Settings::default();
        let opening = Note::SourceOpening { channel: ChannelId(9), index: 0, source: Id::from_parts(1, 0) };
        let told = super::tell(&opening, &settings, &about);
        assert_eq!(told.sentence, "channel \"Sport\": asks its provider, source 1");
        let lost = Note::SourceLost {
            channel: ChannelId(9),
            index: 0,
            source: Id::from_parts(1, 0),
            loss: Loss::Limit,
            lasted: 2_000_000,
        };
        let told = super::tell(&lost, &settings, &about);
        let says = ["is given up after 2.0 s: it bears no more connections", "(`cooling`)"];
        assert!(says.iter().all(|part| told.sentence.contains(part)), "{}", told.sentence);
        assert_eq!((told.level, told.reason), (Level::INFO, Some("limit")));
    }

    #[test]
    fn a_silence_is_a_warning_with_the_true_time_since_media() {
        let silent = |silent| told(Note::ChannelSilent { channel: CHANNEL, index: 1, silent });
        let (level, sentence, _) = silent(Some(4_240_000));
        assert_eq!(level, Level::WARN);
        assert_eq!(
            sentence,
            "channel \"news\": test: is silent: it is connected, and no media has come for 4.2 s; the connection is kept"
        );
        assert!(silent(None).1.contains("no media has ever come"));
    }

    #[test]
    fn what_is_over_is_told_once_with_the_gap() {
        let (level, sentence, _) = told(Note::ChannelBack { channel: CHANNEL, index: 1, gap: 20_000_000 });
        assert_eq!(
            (level, sentence.as_str()),
            (Level::INFO, "channel \"news\": media is back from test:, after a gap of 20.0 s")
        );
        for (why, word) in [(Switch::Failover, "failover"), (Switch::Failback, "failback")] {
            let switched = Note::ChannelSwitched { channel: CHANNEL, index: 1, why, gap: 3_000_000 };
            let (level, sentence, reason) = told(switched);
            assert_eq!((level, reason), (Level::INFO, Some(word)));
            assert_eq!(sentence.contains("3.0 s"), why == Switch::Failover, "{sentence}");
        }
    }

    #[test]
    fn what_only_a_person_can_change_is_an_error() {
        for each in Loss::ALL {
            let (level, _, reason) = told(loss(each));
            assert_eq!(level == Level::ERROR, matches!(each, Loss::Forbidden | Loss::Loop), "{each:?}");
            assert_eq!(reason, Some(each.as_str()));
        }
    }

    #[test]
    fn ends_are_for_those_who_look_closer() {
        let (level, sentence, reason) = told(Note::ChannelEnded { channel: CHANNEL, reason: ViewerEnd::NoSource });
        assert_eq!((level, reason), (Level::DEBUG, Some("no-source")));
        assert!(sentence.contains("`retries`"), "{sentence}");
        assert_eq!(told(Note::ChannelOff { channel: CHANNEL }).0, Level::DEBUG);
    }

    #[test]
    fn a_live_stream_of_a_provider_is_told_by_its_title() {
        let about = About { title: Some("News".into()), ..About::default() };
        let settings = Settings { origins: Vec::new(), ..parse("", "f.toml").expect("reads") };
        let why = String::from("the origin answers 404");
        let note = Note::SourceFault { channel: ChannelId(1 << 20), index: 0, why };
        let told = super::tell(&note, &settings, &about);
        assert_eq!(told.sentence, "channel \"News\": its provider: the origin answers 404");
    }
}
