//! The configuration written down: the sample, and what is effective.

use std::fmt::Write;

use super::Settings;
use super::keys::{KEYS, SECTIONS, Section};

const HEADER: &str = "\
# Holdfast's configuration: one file, every key optional. What is commented out is the default.
#
# `holdfast check FILE` says what is wrong with it, by line and key, or prints what is effective.
#
# Every key can be set by an environment variable too, which wins over the file: HOLDFAST_HTTP_LISTEN=127.0.0.1:9000,
# HOLDFAST_LIVE_IDLE=5s, HOLDFAST_ENDPOINT_0_TOKENS=one,other (elements of a list are numbered from 0).
#
# Lengths of time are written \"2s\", \"100ms\", \"1m30s\"; sizes \"256 KiB\", \"16 MiB\"; bit rates \"4M\", \"4 Mbit/s\".
";

/// A commented configuration with every key, its meaning and its default.
///
/// A line that begins with `# ` is for people; one that begins with `#` and a letter or bracket is the default.
pub fn sample() -> String {
    let mut text = String::from(HEADER);
    for section in SECTIONS {
        let mut settings = Settings::default();
        text.push('\n');
        for line in section.doc.lines() {
            push(&mut text, format_args!("# {line}"));
        }
        let mark = match &section.rows {
            Some(rows) if (rows.len)(&settings) == 0 => {
                (rows.example)(&mut settings);
                "# "
            }
            _ => "#",
        };
        push(&mut text, format_args!("{mark}{}", heading(section)));
        for key in keys_of(section).filter(|key| !has_default(section, key)) {
            for line in key.doc.lines() {
                push(&mut text, format_args!("# {line}"));
            }
            push(&mut text, format_args!("{mark}{} = {}", name_of(key.path), key.field.show(&mut settings, 0)));
        }
    }
    text
}

/// All settings in TOML, but for secrets, which are shown as stars.
pub fn effective(settings: &Settings) -> String {
    let mut settings = settings.clone();
    let mut text = String::new();
    for section in SECTIONS {
        let elements = section.rows.as_ref().map_or(1, |rows| (rows.len)(&settings));
        for n in 0..elements {
            if !text.is_empty() {
                text.push('\n');
            }
            push(&mut text, format_args!("{}", heading(section)));
            for key in keys_of(section) {
                push(&mut text, format_args!("{} = {}", name_of(key.path), key.field.show(&mut settings, n)));
            }
        }
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{line}");
}

fn heading(section: &Section) -> String {
    match section.path.strip_suffix("[]") {
        Some(list) => format!("[[{list}]]"),
        None => format!("[{}]", section.path),
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}

/// Whether the key is shown in another section, which gives its defaults.
fn has_default(section: &Section, key: &super::keys::Key) -> bool {
    let of = |defaults: &str| KEYS.iter().any(|other| other.path == format!("{defaults}.{}", name_of(key.path)));
    section.defaults.is_some_and(of)
}

fn keys_of(section: &Section) -> impl Iterator<Item = &'static super::keys::Key> {
    let path = section.path;
    KEYS.iter().filter(move |key| key.path.rsplit_once('.').is_some_and(|(parent, _)| parent == path))
}
