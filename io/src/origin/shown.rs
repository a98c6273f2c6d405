//! What of a source's URL is shown, and what is not repeated.
//!
//! Keys of providers stand anywhere: as user and password, in the query, and in the path (`/live/USER/PASSWORD/123.ts`). Shown
//! are scheme, host, port, and the last part of the path, unless that may be a key itself.

use percent_encoding::percent_decode_str;
use url::Url;

/// A last part of a path of so many characters may be a key.
const KEY: usize = 16;
/// A secret shorter than this is one only where it stands alone: "tv" is also a part of other words.
const ALONE: usize = 6;

/// The path of a URL, with `hidden` for what may be a secret: as many parts as there are before the last, and that one if it
/// may be a key. Its extension is always shown.
pub fn path(url: &Url, hidden: &str) -> String {
    let Some((before, last)) = url.path().rsplit_once('/') else { return String::new() };
    let before = if before.is_empty() { String::new() } else { format!("/{hidden}") };
    format!("{before}/{}", last_part(last).unwrap_or_else(|| format!("{hidden}{}", extension(last))))
}

/// The last part of a path, if it is no key.
fn last_part(part: &str) -> Option<String> {
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b'~');
    let stem = part.len() - extension(part).len();
    (stem < KEY && part.bytes().all(fits)).then(|| part.to_owned())
}

/// With its dot; empty if there is none.
fn extension(part: &str) -> &str {
    let Some(dot) = part.rfind('.') else { return "" };
    let letters = &part[dot + 1..];
    let is_one = (1..=4).contains(&letters.len()) && letters.bytes().all(|c| c.is_ascii_alphanumeric());
    if is_one { &part[dot..] } else { "" }
}

/// What of a URL may not be repeated.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub fn of(url: &Url) -> Secrets {
        let mut secrets = vec![url.username(), url.password().unwrap_or_default(), url.query().unwrap_or_default()];
        let mut parts: Vec<&str> = url.path().split('/').collect();
        if let Some(last) = parts.pop_if(|last| last_part(last).is_none()) {
            secrets.extend([last, &last[..last.len() - extension(last).len()]]);
        } else {
            parts.pop();
        }
        secrets.extend(parts);
        let decoded = secrets.iter().map(|secret| percent_decode_str(secret).decode_utf8_lossy().into_owned());
        let mut all: Vec<String> = decoded.chain(secrets.iter().map(|secret| (*secret).to_owned())).collect();
        all.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
        all.extend(url.query().unwrap_or_default().split(['&', '=']).map(str::to_owned));
        all.retain(|secret| !secret.is_empty());
        // What is a part of another must not break that up.
        all.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Secrets(all)
    }

    /// `text` with "…" in place of each.
    pub fn without(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            let mut shown = String::new();
            let mut rest = &text[..];
            while let Some(at) = rest.find(secret.as_str()) {
                let (before, after) = (&rest[..at], &rest[at + secret.len()..]);
                let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                let beside = before.chars().next_back().or_else(|| shown.chars().next_back());
                let alone = !in_word(beside) && !in_word(after.chars().next());
                shown.push_str(before);
                shown.push_str(if alone || secret.len() >= ALONE { "…" } else { secret });
                rest = after;
            }
            shown.push_str(rest);
            text = shown;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        path(&url.parse().unwrap(), "…")
    }

    #[test]
    fn of_a_path_the_last_part_is_shown_unless_it_may_be_a_key() {
        for (url, expected) in [
            ("http://a", "/"),
            ("http://a/", "/"),
            ("http://a/live.ts", "/live.ts"),
            ("http://a/live/USER/PASS/123.ts", "/…/123.ts"),
            ("http://a/USER/PASS/123", "/…/123"),
            ("http://a/live/USER/PASS/", "/…/"),
            ("http://a/hls/8f3a90c1d2e4b577/index.m3u8", "/…/index.m3u8"),
            ("http://a/8f3a90c1d2e4b577", "/…"),
            ("http://a/8f3a90c1d2e4b577.ts", "/….ts"),
            ("http://a/eyJhbGciOi.eyJzdWIiOi.SflKxwRJSM", "/…"),
            ("rtsp://a/user=admin&password=x&stream=0.sdp", "/….sdp"),
            ("rtsp://a/pw=x.sdp", "/….sdp"),
            ("http://a/p%40ss", "/…"),
            ("http://a/USER;PASS", "/…"),
            ("srt://a:7000", ""),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_not_shown_is_not_repeated() {
        let url = "http://us%40er:geheim@a.example/live/tom/pw/123.ts?key=x1y2&n=v".parse().unwrap();
        let secrets = Secrets::of(&url);
        for (text, expected) in [
            ("no http://us@er:geheim@a.example/live/tom/pw/123.ts here", "no http://…:…@a.example/…/…/…/123.ts here"),
            ("user us%40er of a.example", "user … of a.example"),
            ("xgeheimx", "x…x"),
            ("tomorrow at 123.ts", "tomorrow at 123.ts"),
            ("tom, pw: tompw", "…, …: tompw"),
            ("x1y2", "…"),
            ("?key=x1y2&n=v", "?…"),
            ("alive live", "alive …"),
        ] {
            assert_eq!(secrets.without(text), expected);
        }
        let bare = "http://a.example/x.ts".parse().unwrap();
        assert_eq!(Secrets::of(&bare).without("the origin answers 404"), "the origin answers 404");
        let key = "http://a.example/8f3a90c1d2e4b577.ts".parse().unwrap();
        assert_eq!(Secrets::of(&key).without("8f3a90c1d2e4b577 is over"), "… is over");
    }
}
