//! What one call was, in words: who asked for what, and what was done.

use holdfast_core::input::{Ask, EndpointId, Input, Output, UserId, Viewing, Want, Writer};
use holdfast_core::playback::Item;

use crate::config::Settings;
use crate::log;

/// What went in, where it is worth a line by itself; media and what belongs to its flow is summed up instead.
pub(super) fn input(input: &Input, settings: &Settings) -> Option<String> {
    let endpoint = |id: &EndpointId| endpoint(*id, settings);
    Some(match input {
        Input::Tick
        | Input::Media { .. }
        | Input::Arrived { .. }
        | Input::KeyFrameWanted { .. }
        | Input::Sent { .. }
        | Input::Playlist { .. }
        | Input::Polled { .. }
        | Input::Forwarded { .. }
        | Input::Released { .. } => return None,
        Input::Offer { request, endpoint: id } => {
            format!("{request}: somebody wants to publish at {}", endpoint(id))
        }
        Input::Hangup { request } => format!("{request}: its client hangs up"),
        Input::Answered { session } => format!("session {session}: its offer is answered"),
        Input::End { session, reason } => format!("session {session}: ended from outside, {}", reason.as_str()),
        Input::Opened { source } => format!("source {source}: its origin agrees to send"),
        Input::Lost { source, loss } => format!("source {source}: lost, {}", loss.as_str()),
        Input::Join { request, feed } => {
            format!("{request}: somebody wants to watch {}", log::place(*feed, settings))
        }
        Input::Leave { viewer } => format!("viewer {viewer}: it is gone"),
        Input::Allowed { account, connections: 0 } => {
            format!("{}: its provider allows any number of connections", log::account(*account, settings))
        }
        Input::Allowed { account, connections } => {
            format!("{}: its provider allows {connections} at a time", log::account(*account, settings))
        }
        Input::ClockSet { by } => log::clock_set(*by),
        Input::Drain => String::from("the program is to end"),
        Input::Poll { request, viewer, token } => {
            let again = if token.is_some() { "again " } else { "" };
            format!("{request}: viewer {viewer} polls {again}(HLS)")
        }
        Input::Play { request, viewing } => format!("{request}: {}", viewed(viewing, settings)),
        Input::Kick { playback, block } => match block {
            0 => format!("playback {playback}: an operator ends it"),
            block => {
                format!("playback {playback}: an operator ends it and keeps its player out for {} s", block / 1_000_000)
            }
        },
        Input::GiveUp { viewer } => format!("viewer {viewer}: it waits no longer"),
        Input::Tune { title, providers } => {
            format!("{title} is to be watched live; {} of providers have it", times(providers.len()))
        }
        Input::Fetch { request, ask } => format!("{request}: {}", asked(ask, settings)),
        Input::Failed { request, failure } => {
            format!("{request}: nothing can be fetched for it; its provider: {}", log::failure(*failure))
        }
        Input::Finished { request, reason } => {
            format!("{request}: its answer is over, {}", reason.as_str())
        }
        Input::Stalled { request } => format!("{request}: its client takes nothing"),
        Input::Closed { allocation } => format!("allocation {allocation}: its connection is closed"),
    })
}

/// What went in, where it is summed up as a rule.
pub(super) fn flow(input: &Input, settings: &Settings) -> String {
    match input {
        Input::Tick => String::from("time passes, and what is due by now is done"),
        Input::Media { feed, from, data, random_access } => {
            let mark = if random_access.is_some() { ", and a place to begin at" } else { "" };
            format!("{from}: {} bytes come into {}{mark}", data.len(), log::place(*feed, settings))
        }
        Input::Arrived { source } => format!("source {source}: media comes from it, beside the one that is used"),
        Input::KeyFrameWanted { feed } => format!("{}: a key frame is wanted", log::place(*feed, settings)),
        Input::Sent { viewer, bytes } => format!("viewer {viewer}: it has taken {bytes} bytes"),
        Input::Polled { viewer, bytes } => format!("viewer {viewer}: it polled and has taken {bytes} bytes"),
        Input::Playlist { request, viewer } => format!("{request}: viewer {viewer} asks for its playlist"),
        Input::Forwarded { request, .. } => format!("{request}: media of its title flows"),
        Input::Released { session } => format!("session {session}: all that it held is given back"),
        other => self::input(other, settings).unwrap_or_default(),
    }
}

/// What was done, where it is worth a line.
pub(super) fn output(output: &Output, settings: &Settings) -> Option<String> {
    Some(match output {
        Output::Note(note) => log::sentence(settings, note),
        Output::Accept { request, session } => format!("{request} is answered with session {session}"),
        Output::Refuse { request, reason } => format!("{request} is refused: {}", reason.as_str()),
        Output::Rebuild { session } => format!("session {session}: its chain is built anew"),
        Output::Open { source, channel, index, grant } => {
            let with =
                grant.map(|grant| format!(" with {}", log::account(grant.account, settings))).unwrap_or_default();
            let name = settings.core.channels.get(channel.0 as usize).map_or("of a provider", |own| own.name.as_str());
            format!("source {source} is opened for channel \"{name}\": its source {}{with}", index + 1)
        }
        Output::Close { source } => format!("source {source} is closed"),
        Output::Joined { request, viewer } => format!("{request} becomes viewer {viewer}"),
        Output::ViewerEnd { viewer, reason } => format!("viewer {viewer} is ended: {}", reason.as_str()),
        // The token says nothing to anybody, and looks like a secret.
        Output::Polls { request, viewer, .. } => format!("{request} polls as viewer {viewer}"),
        Output::Fetch { request, playback, grant, index, .. } => {
            let of = playback.map_or_else(|| String::from("to look"), |playback| format!("for playback {playback}"));
            let with =
                grant.map(|grant| format!(" with {}", log::account(grant.account, settings))).unwrap_or_default();
            format!("{request} is fetched {of} from its source {}{with}", index + 1)
        }
        Output::Cut { request, reason } => format!("{request} is cut off: {}", reason.as_str()),
        Output::Drop { allocation } => format!("allocation {allocation}: its connection is to be closed"),
        // Notes tell these.
        Output::Start { .. } | Output::Finish { .. } => return None,
        Output::KeyFrame { .. } | Output::SourceKeyFrame { .. } | Output::Ready { .. } | Output::Playlist { .. } => {
            return None;
        }
    })
}

/// Who writes media, and how many bytes; 0 of anything else.
pub(super) fn media(input: &Input) -> (u64, u64) {
    match input {
        Input::Media { data, from: Writer::Session(_) | Writer::Source(_), .. } => (data.len() as u64, 0),
        Input::Sent { bytes, .. } | Input::Polled { bytes, .. } => (0, *bytes),
        _ => (0, 0),
    }
}

fn endpoint(id: EndpointId, settings: &Settings) -> String {
    let name = settings.core.endpoints.get(id.0 as usize).map_or("?", |own| own.name.as_str());
    format!("endpoint \"{name}\"")
}

fn user(id: UserId, settings: &Settings) -> String {
    let name = settings.core.users.get(id.0 as usize).map_or("?", |own| own.name.as_str());
    format!("user \"{name}\"")
}

fn viewed(Viewing { user: id, item, client }: &Viewing, settings: &Settings) -> String {
    let what = match (item.feed(), item.title()) {
        (Some(feed), _) => log::place(feed, settings),
        (None, Some(title)) => title.to_string(),
        (None, None) => String::new(),
    };
    format!("{} wants to play {what} ({}) from {}", user(*id, settings), Item::kind(*item), client.address)
}

fn asked(ask: &Ask, settings: &Settings) -> String {
    let of = match ask.want {
        Want::Setup => "what it begins with",
        Want::Look => "how large it is",
        Want::Rest => "all from some place on",
        Want::Part => "a part",
    };
    format!("{}: {of}", viewed(&ask.viewing, settings))
}

fn times(count: usize) -> String {
    if count == 1 { String::from("1 source") } else { format!("{count} sources") }
}
