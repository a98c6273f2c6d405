//! What people are told at the start.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::Settings;

/// How many endpoints, and how many channels, are spelled out.
const SPELLED: usize = 5;

const PLAYERS: &str = "VLC, mpv, ffplay";
const HLS_PLAYERS: &str = "HLS: Safari, phones, hls.js";

/// Where it listens, and what to open.
pub(super) fn welcome(settings: &Settings, listening: &[SocketAddr]) -> String {
    let mut text = String::new();
    for address in listening {
        line(&mut text, format_args!("listening on {}", origin(settings, *address)));
    }
    let Some(first) = listening.first() else { return text };
    let origin = origin(settings, reachable(*first));
    for endpoint in settings.core.endpoints.iter().take(SPELLED) {
        let name = &endpoint.name;
        let mut addresses = vec![
            ("publish", format!("{origin}/publish/{name}"), "from a browser"),
            ("", format!("{origin}/whip/{name}"), "WHIP, such as OBS or GStreamer"),
            ("watch", format!("{origin}/live/{name}.ts"), PLAYERS),
            ("", format!("{origin}/live/{name}/index.m3u8"), HLS_PLAYERS),
        ];
        match endpoint.slots {
            0 | 1 => {}
            2 => addresses.push(("", format!("{origin}/live/{name}/2.ts"), "its second slot")),
            last => {
                addresses.push(("", format!("{origin}/live/{name}/2.ts"), "its second slot, and so on"));
                addresses.push(("", format!("{origin}/live/{name}/{last}.ts"), "its last slot"));
            }
        }
        line(&mut text, format_args!("\nendpoint {name}"));
        table(&mut text, &addresses);
    }
    if settings.core.endpoints.len() > SPELLED {
        line(&mut text, format_args!("\nand {} endpoints more", settings.core.endpoints.len() - SPELLED));
    }
    let channels = &settings.core.channels;
    for channel in channels.iter().take(SPELLED) {
        let name = &channel.name;
        line(&mut text, format_args!("\nchannel {name}"));
        let addresses = [
            ("watch", format!("{origin}/live/{name}.ts"), PLAYERS),
            ("", format!("{origin}/live/{name}/index.m3u8"), HLS_PLAYERS),
        ];
        table(&mut text, &addresses);
    }
    if channels.len() > SPELLED {
        line(&mut text, format_args!("\nand {} channels more", channels.len() - SPELLED));
    }
    if !settings.logins.is_empty() {
        line(&mut text, format_args!("\nusers, who watch with name and password alone"));
        let addresses = [
            ("list", format!("{origin}/get.php?username=NAME&password=PASSWORD"), "M3U: IPTV players, VLC"),
            ("login", origin.clone(), "Xtream: IPTV players that ask for server, name and password"),
        ];
        table(&mut text, &addresses);
    }
    line(&mut text, format_args!("\nstatus     {origin}/api/status"));
    text
}

/// Scheme, address and port.
pub(super) fn origin(settings: &Settings, address: SocketAddr) -> String {
    let scheme = if settings.http.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The address to open on this machine for one that is listened on.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// What an address is for, the address, and who opens it.
fn table(text: &mut String, rows: &[(&str, String, &str)]) {
    let width = rows.iter().map(|(_, address, _)| address.chars().count()).max().unwrap_or(0);
    for (what, address, by) in rows {
        line(text, format_args!("  {what:<7}  {address:<width$}  {by}"));
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn welcomed(text: &str) -> String {
        let settings = parse(text, "f.toml").expect("reads");
        welcome(&settings, &settings.http.listen)
    }

    #[test]
    fn the_default_says_what_to_open() {
        let text = welcomed("");
        for part in [
            "listening on http://127.0.0.1:8080\n",
            "http://127.0.0.1:8080/publish/live ",
            "http://127.0.0.1:8080/whip/live ",
            "http://127.0.0.1:8080/live/live.ts ",
            "http://127.0.0.1:8080/live/live/index.m3u8 ",
            "\nchannel test\n  watch    http://127.0.0.1:8080/live/test.ts          VLC",
            "\n           http://127.0.0.1:8080/live/test/index.m3u8  HLS",
            "http://127.0.0.1:8080/api/status\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("other slots"));
    }

    #[test]
    fn users_are_told_where_their_list_is_and_nobody_else_is() {
        let text = welcomed("[[user]]\nname = 'anna'\npassword = 'geheim'");
        let list = "\n  list     http://127.0.0.1:8080/get.php?username=NAME&password=PASSWORD  M3U";
        assert!(text.contains(list) && text.contains("\n  login    http://127.0.0.1:8080   "), "{text}");
        assert!(!text.contains("geheim"), "{text}");
        assert!(!welcomed("").contains("NAME"));
    }

    #[test]
    fn what_is_to_be_opened_can_be_opened() {
        let text = welcomed("http.listen = ['0.0.0.0:80', '[::]:81']\n[http.tls]\ncert = 'a'\nkey = 'b'");
        assert!(text.starts_with("listening on https://0.0.0.0:80\nlistening on https://[::]:81\n"), "{text}");
        assert!(text.contains("https://127.0.0.1:80/publish/live "), "{text}");
        assert!(welcomed("http.listen = ['[::]:81']").contains("http://[::1]:81/publish/live "));
    }

    #[test]
    fn many_channels_are_counted() {
        let many: String = (0..7).map(|n| format!("[[channel]]\nname = 'c{n}'\nsources = ['test:']\n")).collect();
        let text = welcomed(&many);
        assert!(text.contains("/live/c4.ts ") && !text.contains("/live/c5.ts"), "{text}");
        assert!(text.contains("and 2 channels more"), "{text}");
        assert!(!welcomed("channel = []").contains("channel"));
    }

    #[test]
    fn many_endpoints_are_counted_and_slots_are_named() {
        let many: String = (0..7).map(|n| format!("[[endpoint]]\nname = 'e{n}'\nslots = 3\n")).collect();
        let text = welcomed(&many);
        assert!(
            text.contains("/live/e4/2.ts ") && text.contains("/live/e4/3.ts ") && !text.contains("/live/e5"),
            "{text}"
        );
        let two = welcomed("[[endpoint]]\nname = 'e'\nslots = 2\n");
        assert!(two.contains("/live/e/2.ts        its second slot\n") && !two.contains("2.ts …"), "{two}");
        assert!(text.contains("and 2 endpoints more"));
    }
}
