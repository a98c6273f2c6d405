//! Whether values go together.

mod addresses;
mod channels;
mod libraries;
mod providers;
mod recorder;
mod tls;
mod users;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use holdfast_core::config::Config;

use super::Settings;
use super::reader::Reader;
use super::value::show_span;

/// Slots of all endpoints and channels together; each costs a feed.
const MOST_FEEDS: u64 = 4096;
/// What all feeds together may keep.
const MOST_BUFFERED: u64 = 64 << 30;
/// Bits per second of a stream whose source says nothing of that.
const USUAL_RATE: u64 = 4_000_000;

/// Checks that need nothing but the settings.
pub(super) fn settings(reader: &mut Reader<'_>) {
    addresses::settings(reader);
    tls::settings(reader);
    ice_servers(reader);
    endpoints(reader);
    channels::settings(reader);
    users::settings(reader);
    providers::settings(reader);
    libraries::settings(reader);
    recorder::settings(reader);
    feeds(reader);
    hls(reader);
}

/// Checks that look at the files that settings name.
pub(super) fn files(reader: &mut Reader<'_>) {
    tls::files(reader);
    channels::files(reader);
    channels::slates(reader);
    providers::files(reader);
    recorder::files(reader);
}

fn readable(path: &Path) -> io::Result<()> {
    // Looked at before it is opened: opening a pipe would wait for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path).map(drop)
}

fn ice_servers(reader: &mut Reader<'_>) {
    for (n, server) in reader.settings.ice.servers.clone().into_iter().enumerate() {
        let [element, url, username, credential] =
            ["", ".url", ".username", ".credential"].map(|key| format!("ice.servers[{n}]{key}"));
        let bare = server.username.is_empty() || server.credential.is_empty();
        if server.url.is_empty() {
            let right = String::from("write `url`, such as \"stun:192.0.2.7:3478\"");
            reader.conflict(&[&url, &element], String::from("has no URL"), right);
        } else if server.url.starts_with("turn") && bare {
            let right = String::from("write both; a TURN server serves nobody without (RFC 8656 §5)");
            let wrong = String::from("is a TURN server without `username` or `credential`");
            reader.conflict(&[&url, &username, &credential], wrong, right);
        }
    }
}

fn endpoints(reader: &mut Reader<'_>) {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for (n, endpoint) in reader.settings.core.endpoints.clone().into_iter().enumerate() {
        let [element, name, wait, dead, poll] =
            ["", ".name", ".takeover_wait", ".dead_after", ".poll"].map(|key| format!("endpoint[{n}]{key}"));
        let least = endpoint.dead_after + endpoint.poll;
        if endpoint.takeover_wait < least {
            // A shorter wait ends before death can be seen, and so would never displace anybody.
            let (waits, least) = (show_span(endpoint.takeover_wait), show_span(least));
            let wrong = if reader.is_written(&wait) {
                format!("{waits} is shorter than `dead_after` + `poll`, {least}")
            } else {
                format!("`dead_after` + `poll` is {least}, longer than `takeover_wait`, which is {waits} by default")
            };
            let right = format!("write `takeover_wait = \"{least}\"` or more, or less of the others");
            reader.conflict(&[&wait, &dead, &poll], wrong, right);
        }
        if let Some(first) = names.get(&endpoint.name) {
            let wrong = format!("\"{}\" is the name of `endpoint[{first}]` already", endpoint.name);
            let right = String::from("give each endpoint a `name` of its own");
            reader.conflict(&[&name, &element], wrong, right);
        } else {
            names.insert(endpoint.name, n);
        }
    }
}

fn feeds(reader: &mut Reader<'_>) {
    let Config { endpoints, channels, live, .. } = &reader.settings.core;
    let slots: u64 = endpoints.iter().map(|endpoint| u64::from(endpoint.slots)).sum();
    let feeds = slots + channels.len() as u64;
    let greatest = endpoints.iter().enumerate().max_by_key(|(_, endpoint)| endpoint.slots);
    let most = greatest.map_or_else(|| String::from("channel[0]"), |(n, _)| format!("endpoint[{n}].slots"));
    let buffered = feeds.saturating_mul(live.buffer as u64);
    if feeds > MOST_FEEDS {
        let wrong = format!("endpoints and channels together have {feeds} slots");
        reader.conflict(&[&most, "endpoint[0]"], wrong, format!("there may be at most {MOST_FEEDS}"));
    } else if buffered > MOST_BUFFERED {
        let wrong = format!("{feeds} slots and channels with `live.buffer` each come to {} GiB", buffered >> 30);
        let right = format!("make it {} GiB at most", MOST_BUFFERED >> 30);
        reader.conflict(&["live.buffer", &most], wrong, right);
    }
}

fn hls(reader: &mut Reader<'_>) {
    let hls = &reader.settings.core.live.hls;
    let least = Duration::from_secs(hls.target() * 2);
    let Some(timeout) = hls.viewer_timeout.filter(|timeout| *timeout < least) else { return };
    // A player asks for its playlist once a target duration, and one that has enough may leave one out.
    let wrong = format!("{} is too short for players, which ask every {}s", show_span(timeout), hls.target());
    let right = format!("write \"{}\" or more, or a shorter `segment`", show_span(least));
    reader.conflict(&["live.hls.viewer_timeout", "live.hls.segment"], wrong, right);
}

/// What the playlists of HLS list, where that is more than is kept.
fn unkept(Config { endpoints, live, .. }: &Config) -> Option<String> {
    let rate = endpoints.iter().map(|endpoint| endpoint.max_video_bitrate).max().unwrap_or(0).max(USUAL_RATE);
    let hls = &live.hls;
    let segments = u32::try_from(hls.window).unwrap_or(u32::MAX);
    let listed = hls.segment().saturating_mul(segments).max(Duration::from_secs(hls.target() * 3));
    let kept = Duration::from_secs((live.buffer as u64 * 8).div_ceil(rate));
    (kept < listed).then(|| {
        format!(
            "`live.buffer` keeps {} of a stream of {} Mbit/s, and a playlist of HLS should list {}: make it larger, or \
             `live.hls.window` or `live.hls.segment` smaller",
            show_span(kept),
            rate / 1_000_000,
            show_span(listed)
        )
    })
}

/// What an operator should know though nothing is wrong.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    let reachable: Vec<String> =
        settings.http.listen.iter().filter(|listener| !listener.ip().is_loopback()).map(ToString::to_string).collect();
    for endpoint in &settings.core.endpoints {
        if endpoint.tokens.is_empty() && !reachable.is_empty() {
            warnings.push(format!(
                "endpoint \"{}\" is open to everybody who can reach {}: give it `tokens`",
                endpoint.name,
                reachable.join(", ")
            ));
        }
    }
    if settings.http.tls.is_none() && !reachable.is_empty() {
        warnings.push(format!(
            "{} serves plain HTTP: browsers give the ingest page no camera there, and tokens travel readable; set [http.tls] \
             or put a proxy with TLS in front",
            reachable.join(", ")
        ));
    }
    warnings.extend(unkept(&settings.core));
    warnings.extend(users::warnings(settings));
    warnings.extend(providers::warnings(settings));
    for address in addresses::misplaced(&settings.ice.addresses) {
        warnings.push(format!(
            "`ice.addresses` names {address}, which is on the loopback interface: publishers elsewhere get no media through \
             there, since they are answered from another address; put it on an interface of its own (`ip link add media0 type \
             dummy`, then `ip addr add {address} dev media0`) or name the address of a network interface"
        ));
    }
    for server in &settings.ice.servers {
        warnings.push(format!(
            "ICE server {} is asked while each session is set up, which makes that slower; an edge that publishers can \
             reach needs none",
            server.url
        ));
    }
    warnings
}
