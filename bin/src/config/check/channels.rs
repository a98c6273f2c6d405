//! Whether channels have what they need: sources that there are, and times that go together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use holdfast_core::config::Channel;
use holdfast_io::origin::Origin;
use holdfast_io::server::Clip;

use super::super::reader::Reader;
use super::super::value::show_span;
use super::super::{Settings, Slates};

/// A file larger than this is not held in memory to be played in a loop.
const LARGEST_CLIP: u64 = 256 << 20;

/// Checks that need nothing but the settings.
pub(super) fn settings(reader: &mut Reader<'_>) {
    names(reader);
    let defaults = reader.settings.channel_defaults.clone();
    backoff(reader, &defaults, "channel_defaults");
    for (n, channel) in reader.settings.core.channels.clone().into_iter().enumerate() {
        let path = format!("channel[{n}]");
        // What is wrong with the defaults is said of them, once.
        if ["retry_backoff_max", "no_input_timeout"].iter().any(|key| reader.is_written(&format!("{path}.{key}"))) {
            backoff(reader, &channel, &path);
        }
        sources(reader, n, &channel.name);
    }
}

fn names(reader: &mut Reader<'_>) {
    let endpoints = reader.settings.core.endpoints.iter().map(|endpoint| endpoint.name.clone());
    let mut names: BTreeMap<String, String> =
        endpoints.enumerate().map(|(n, name)| (name, format!("endpoint[{n}]"))).collect();
    for (n, channel) in reader.settings.core.channels.clone().into_iter().enumerate() {
        let [element, name] = ["", ".name"].map(|key| format!("channel[{n}]{key}"));
        if let Some(other) = names.get(&channel.name) {
            let wrong = format!("\"{}\" is the name of `{other}` already", channel.name);
            let right = String::from("give each channel and endpoint a `name` of its own");
            reader.conflict(&[&name, &element], wrong, right);
        } else {
            names.insert(channel.name, element);
        }
    }
}

fn backoff(reader: &mut Reader<'_>, channel: &Channel, path: &str) {
    if channel.retry_backoff_max >= channel.no_input_timeout {
        return;
    }
    let (longest, least) = (show_span(channel.retry_backoff_max), show_span(channel.no_input_timeout));
    let [max, timeout] = ["retry_backoff_max", "no_input_timeout"].map(|key| format!("{path}.{key}"));
    let wrong = if reader.is_written(&max) {
        format!("{longest} is shorter than `no_input_timeout`, {least}, which pauses begin with")
    } else {
        format!(
            "{least} is longer than `retry_backoff_max`, which is {longest} here: pauses begin with the one and grow to the other"
        )
    };
    let right = format!("write `retry_backoff_max = \"{least}\"` or more, or a shorter `no_input_timeout`");
    reader.conflict(&[&max, &timeout], wrong, right);
}

fn sources(reader: &mut Reader<'_>, n: usize, name: &str) {
    let list = format!("channel[{n}].sources");
    let origins = reader.settings.origins[n].clone();
    if origins.is_empty() {
        let wrong = String::from("has no sources");
        let right = String::from("write `sources`, such as sources = [\"http://origin.example/live.ts\"]");
        return reader.conflict(&[&list, &format!("channel[{n}]")], wrong, right);
    }
    for (place, origin) in origins.iter().enumerate() {
        let fault = match origin {
            Origin::Slot { endpoint, slot } => slot_fault(&reader.settings, endpoint, *slot),
            origin if is_own(&reader.settings, origin, name) => {
                let right = String::from("name where it comes from; \"whip:ENDPOINT\" is what is published here");
                Some((String::from("is this channel itself"), right))
            }
            origin => origins[..place].iter().position(|other| other == origin).map(|first| {
                let right = String::from("write each source once: it is tried again by itself");
                (format!("is the same as `sources[{first}]`"), right)
            }),
        };
        if let Some((wrong, right)) = fault {
            reader.conflict(&[&format!("{list}[{place}]"), &list], wrong, right);
        }
    }
}

fn slot_fault(settings: &Settings, name: &str, slot: u32) -> Option<(String, String)> {
    let endpoints = &settings.core.endpoints;
    let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.name == name) else {
        let known: Vec<&str> = endpoints.iter().take(10).map(|endpoint| endpoint.name.as_str()).collect();
        let wrong = String::from("names an endpoint that is not there");
        return Some((wrong, format!("endpoints of this configuration: {}", known.join(", "))));
    };
    (slot >= endpoint.slots).then(|| {
        let (of, right) = (endpoint.slots, "slots are numbered from 1");
        (format!("names slot {} of an endpoint that has {of}", u64::from(slot) + 1), String::from(right))
    })
}

/// Whether a source leads back to its own channel at one of our listeners, as far as addresses show it. What they do not show,
/// such as names and proxies, is found out when it is fetched.
fn is_own(settings: &Settings, origin: &Origin, channel: &str) -> bool {
    let scheme = if settings.http.tls.is_some() { "https" } else { "http" };
    let (host, port, listen) = match origin {
        Origin::Http(url) if url.scheme() == scheme && url.path() == format!("/live/{channel}.ts") => {
            (url.host_str(), url.port_or_known_default(), &settings.http.listen)
        }
        Origin::Ovt { host, port, target, .. } if target.ends_with(&format!("/live/{channel}")) => {
            (Some(host.as_str()), Some(*port), &settings.ovt.listen)
        }
        _ => return false,
    };
    let host = host.unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let leads_to = |listener: &SocketAddr| {
        let any = listener.ip().is_unspecified();
        match host.parse::<IpAddr>() {
            Ok(ip) => listener.ip() == ip || any && (ip.is_loopback() || ip.is_unspecified()),
            Err(_) => host == "localhost" && (any || listener.ip().is_loopback()),
        }
    };
    listen.iter().any(|listener| port == Some(listener.port()) && leads_to(listener))
}

/// Reads the files that are sources, each once.
pub(super) fn files(reader: &mut Reader<'_>) {
    for (n, origins) in reader.settings.origins.clone().into_iter().enumerate() {
        for (place, origin) in origins.iter().enumerate() {
            let (Origin::File(path), label) = (origin, origin.label()) else { continue };
            if reader.settings.clips.contains_key(&label) {
                continue;
            }
            match read(path) {
                Ok(clip) => drop(reader.settings.clips.insert(label, Arc::new(clip))),
                Err((wrong, right)) => {
                    let list = format!("channel[{n}].sources");
                    reader.conflict(&[&format!("{list}[{place}]"), &list], wrong, right);
                }
            }
        }
    }
}

/// Reads what players are shown which are refused.
pub(super) fn slates(reader: &mut Reader<'_>) {
    let Slates { user_limit, provider_limit } = reader.settings.slates.clone();
    for (path, key) in [(user_limit, "playback.user_limit_clip"), (provider_limit, "playback.provider_limit_clip")] {
        let label = Origin::File(path.clone()).label();
        if path.as_os_str().is_empty() || reader.settings.clips.contains_key(&label) {
            continue;
        }
        match read(&path) {
            Ok(clip) => drop(reader.settings.clips.insert(label, Arc::new(clip))),
            Err((wrong, right)) => reader.conflict(&[key], wrong, right),
        }
    }
}

fn read(path: &Path) -> Result<Clip, (String, String)> {
    let name = path.display();
    let right = String::from("name an MPEG-TS file that this user may read, of at most 256 MiB");
    let unreadable = |error: io::Error| (format!("\"{name}\" cannot be read: {error}"), right.clone());
    super::readable(path).map_err(unreadable)?;
    let mut data = Vec::new();
    // One byte more tells a file that is too large, whatever its size was said to be.
    File::open(path).and_then(|file| file.take(LARGEST_CLIP + 1).read_to_end(&mut data)).map_err(unreadable)?;
    if data.len() as u64 > LARGEST_CLIP {
        return Err((format!("\"{name}\" is larger than 256 MiB"), right));
    }
    Clip::new(data.into()).map_err(|fault| {
        let words = fault.to_string();
        let (wrong, right) = words.split_once("; ").unwrap_or((&words, "name another file"));
        (format!("\"{name}\" {wrong}"), right.to_owned())
    })
}
