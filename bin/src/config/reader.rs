//! Walks a document and the environment, and remembers where each key was written.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use holdfast_core::config::Channel;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Faults, Place, nearest, printable};
use super::keys::{INHERITED, KEYS, Key, Rows, SECTIONS};
use super::value::{Value, Wrong};
use super::{LARGEST_FILE, Settings};

/// What every variable of ours begins with.
const PREFIX: &str = "HOLDFAST_";

/// Settings while they are read.
pub(super) struct Reader<'a> {
    pub(super) settings: Settings,
    file: &'a str,
    text: &'a str,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
    /// Where each key and each element of a list of tables was written.
    places: BTreeMap<String, Place>,
    /// Keys whose value could not be used.
    faulty: BTreeSet<String>,
    faults: Vec<Fault>,
}

/// A table in the document, or an element of a list of tables.
#[derive(Clone, Copy)]
struct Spot<'p> {
    /// As keys are listed: `endpoint[]`; empty for the document itself.
    pattern: &'p str,
    /// As it is said to people: `endpoint[0]`.
    path: &'p str,
    /// Which element.
    n: usize,
}

impl<'a> Reader<'a> {
    /// A reader that knows the defaults.
    pub(super) fn new(file: &'a str, text: &'a str) -> Result<Self, Faults> {
        if text.len() > LARGEST_FILE {
            let wrong = format!("has {} bytes", text.len());
            return Err(Faults::one(file, Place::File, wrong, "a configuration has at most 1 MiB"));
        }
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Ok(Reader {
            settings: Settings::default(),
            file,
            text,
            lines,
            places: BTreeMap::new(),
            faulty: BTreeSet::new(),
            faults: Vec::new(),
        })
    }

    /// Reads the file's text.
    pub(super) fn document(&mut self) {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let place = error.span().map_or(Place::File, |span| self.line(span.start));
            let mut wrong = format!("is not TOML: {}", printable(error.message()));
            let mut right = String::from("see https://toml.io");
            let twice = error.span().filter(|_| error.message().contains("duplicate key"));
            if let Some((key, first)) = twice.and_then(|span| self.before(span.start)) {
                wrong = format!("is not TOML: `{}` stands in line {first} already", printable(key));
                right = String::from("write what belongs to it there");
            }
            self.faults.push(Fault { place, key: None, wrong, right });
        }
        // What was recovered from a broken document may be anything: faults in it would mislead.
        if errors.is_empty() {
            self.table(document.get_ref(), Spot { pattern: "", path: "", n: 0 });
        }
    }

    /// What stands at this place of the text, where it is a key or a header of a table that stands in an earlier line, too: that line.
    fn before(&self, at: usize) -> Option<(&'a str, usize)> {
        let number = self.lines.partition_point(|start| *start <= at);
        let lines: Vec<&'a str> = self.text.lines().take(number).collect();
        let (last, earlier) = lines.split_last()?;
        let is_header = |line: &str| line.trim_start().starts_with('[');
        let key = key_of(last)?;
        let same = |(_, line): &(usize, &&str)| key_of(line) == Some(key);
        let mut above = earlier.iter().enumerate().rev();
        let found =
            if is_header(last) { above.find(same) } else { above.take_while(|(_, line)| !is_header(line)).find(same) };
        found.map(|(place, _)| (key, place + 1))
    }

    /// Reads those variables that are ours.
    pub(super) fn environment(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        let mut known = Vec::new();
        for (name, value) in variables {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with(PREFIX) {
                continue;
            }
            match KEYS.iter().find_map(|key| Some((element_of_variable(key, &name)?, key))) {
                Some((n, key)) => known.push((n, name, key, value)),
                None => self.unknown_variable(&name),
            }
        }
        // Elements may be added one by one, so they come in order.
        known.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        for (n, name, key, value) in known {
            self.variable(key, n, name, &value);
        }
    }

    fn variable(&mut self, key: &'static Key, n: usize, name: String, value: &OsString) {
        let path = key.path.replacen("[]", &format!("[{n}]"), 1);
        let place = Place::Variable(name);
        if let Some((rows, pattern)) = rows_of(key) {
            let len = (rows.len)(&self.settings);
            if n > len || n >= rows.most {
                let list = pattern.trim_end_matches("[]");
                let wrong = match n.checked_sub(1) {
                    Some(before) if n > len => format!("there is no `{list}[{before}]` before it"),
                    _ => format!("there may be at most {} of `{list}`", rows.most),
                };
                return self.fault(place, &path, wrong, format!("number them from 0 to {}", len.min(rows.most - 1)));
            }
            if n == len {
                (rows.push)(&mut self.settings);
                self.places.insert(pattern.replace("[]", &format!("[{n}]")), place.clone());
            }
        }
        match value.to_str() {
            Some(value) => self.value(key, n, path, place, Value::Variable(value)),
            None => self.fault(place, &path, String::from("is not UTF-8"), String::from("write UTF-8")),
        }
    }

    fn unknown_variable(&mut self, name: &str) {
        let variables: Vec<String> = KEYS.iter().map(|key| variable_of(key, "0")).collect();
        let right = match nearest(name, variables.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => String::from("variables are named after keys, such as HOLDFAST_HTTP_LISTEN for `http.listen`"),
        };
        let place = Place::Variable(printable(name));
        self.faults.push(Fault { place, key: None, wrong: String::from("there is no such variable"), right });
    }

    fn table(&mut self, table: &DeTable<'_>, spot: Spot<'_>) {
        for (name, value) in table.iter() {
            let place = self.line(name.span().start);
            let pattern = join(spot.pattern, name.get_ref());
            let path = join(spot.path, &printable(name.get_ref()));
            // A quoted name may hold what separates the names of a path.
            let plain = !name.get_ref().contains(['.', '[']);
            let key = KEYS.iter().find(|key| plain && key.path == pattern);
            let section = SECTIONS.iter().find(|section| plain && section.path.trim_end_matches("[]") == pattern);
            match (key, section.map(|section| &section.rows)) {
                (Some(key), _) => self.value(key, spot.n, path, place, Value::Toml(value)),
                (None, Some(None)) => match value.get_ref() {
                    DeValue::Table(table) => self.table(table, Spot { pattern: &pattern, path: &path, n: 0 }),
                    other => {
                        let wrong = format!("is of type {} where a table is wanted", other.type_str());
                        self.fault(place, &path, wrong, format!("write [{path}], and its keys on lines of their own"));
                    }
                },
                (None, Some(Some(rows))) => self.rows(rows, value, Spot { pattern: &pattern, path: &path, n: 0 }),
                (None, None) => self.unknown_key(place, &path, name.get_ref(), spot.pattern),
            }
        }
    }

    /// A list of tables.
    fn rows(&mut self, rows: &Rows, value: &Spanned<DeValue<'_>>, spot: Spot<'_>) {
        let right = format!("write [[{}]] above the keys of each", spot.path);
        let place = self.line(value.span().start);
        let Some(elements) = value.get_ref().as_array() else {
            let wrong = format!("is of type {} where a list of tables is wanted", value.get_ref().type_str());
            return self.fault(place, spot.path, wrong, right);
        };
        if elements.len() > rows.most {
            let wrong = format!("has {} elements", elements.len());
            return self.fault(place, spot.path, wrong, format!("there may be at most {}", rows.most));
        }
        (rows.clear)(&mut self.settings);
        let pattern = format!("{}[]", spot.pattern);
        for (n, element) in elements.iter().enumerate() {
            let path = format!("{}[{n}]", spot.path);
            let place = self.line(element.span().start);
            (rows.push)(&mut self.settings);
            match element.get_ref() {
                DeValue::Table(table) => {
                    self.places.insert(path.clone(), place);
                    self.table(table, Spot { pattern: &pattern, path: &path, n });
                }
                other => {
                    let wrong = format!("is of type {} where a table is wanted", other.type_str());
                    self.fault(place, &path, wrong, right.clone());
                }
            }
        }
    }

    fn value(&mut self, key: &Key, n: usize, path: String, place: Place, value: Value<'_>) {
        // A variable wins over the file, and over what was wrong there.
        if self.faulty.remove(&path) {
            self.faults.retain(|fault| fault.key.as_deref() != Some(&path));
        }
        if let Err(Wrong { element, offset, wrong, right }) = key.field.read(&mut self.settings, n, value) {
            let at = offset.map_or_else(|| place.clone(), |offset| self.line(offset));
            let full = element.map_or_else(|| path.clone(), |element| format!("{path}[{element}]"));
            self.fault(at, &full, wrong, right);
            self.faulty.insert(path.clone());
        }
        // What was said of its elements before is no more.
        self.places.retain(|other, _| !other.strip_prefix(&path).is_some_and(|rest| rest.starts_with('[')));
        for (element, offset) in value.element_offsets().enumerate() {
            self.places.insert(format!("{path}[{element}]"), self.line(offset));
        }
        self.places.insert(path, place);
    }

    /// Channels get what they do not say themselves, and the core learns how many sources each has.
    pub(super) fn complete_channels(&mut self) {
        let is_written = self.places.keys().any(|key| key.starts_with("channel["));
        let Settings { core, origins, channel_defaults, .. } = &mut self.settings;
        // The default channel makes room for an endpoint that somebody gave its name.
        if !is_written {
            let name_is_free = |channel: &Channel| core.endpoints.iter().all(|endpoint| endpoint.name != channel.name);
            if !core.channels.iter().all(name_is_free) {
                core.channels.clear();
                origins.clear();
            }
        }
        for (n, (channel, origins)) in core.channels.iter_mut().zip(origins).enumerate() {
            for (name, inherit) in INHERITED {
                if !self.places.contains_key(&format!("channel[{n}].{name}")) {
                    inherit(channel, channel_defaults);
                }
            }
            channel.sources = origins.len() as u32;
        }
    }

    fn unknown_key(&mut self, place: Place, path: &str, name: &str, pattern: &str) {
        let siblings: BTreeSet<&str> = KEYS
            .iter()
            .filter_map(|key| {
                let rest =
                    if pattern.is_empty() { key.path } else { key.path.strip_prefix(pattern)?.strip_prefix('.')? };
                rest.split(['.', '[']).next()
            })
            .collect();
        let elsewhere = KEYS.iter().find(|key| key.path.rsplit('.').next() == Some(name));
        let right = match (nearest(name, siblings.iter().copied()), elsewhere) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(key)) => format!("did you mean `{}`?", key.path),
            (None, None) => format!("known here: {}", siblings.into_iter().collect::<Vec<_>>().join(", ")),
        };
        self.fault(place, path, String::from("there is no such key"), right);
    }

    /// Something is wrong with `key`.
    pub(super) fn fault(&mut self, place: Place, key: &str, wrong: String, right: String) {
        self.faults.push(Fault { place, key: Some(key.to_owned()), wrong, right });
    }

    /// Something is wrong between `keys`; said of the first of them that was written at all. Nothing is said while one of
    /// them has a fault of its own: its value is not known.
    pub(super) fn conflict(&mut self, keys: &[&str], wrong: String, right: String) {
        if keys.iter().any(|key| self.faulty.contains(*key)) {
            return;
        }
        let written = keys.iter().find_map(|key| Some((*key, self.places.get(*key)?.clone())));
        let (key, place) = written.unwrap_or((keys[0], Place::File));
        self.fault(place, key, wrong, right);
    }

    /// Whether somebody wrote `key`: what it says is no default.
    pub(super) fn is_written(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// The settings, if nothing is wrong.
    pub(super) fn finish(mut self) -> Result<Settings, Faults> {
        if !self.faults.is_empty() {
            return Err(Faults::new(self.file, self.faults));
        }
        self.settings.http.tls.take_if(|tls| tls.cert.as_os_str().is_empty() && tls.key.as_os_str().is_empty());
        Ok(self.settings)
    }

    fn line(&self, offset: usize) -> Place {
        Place::Line(self.lines.partition_point(|start| *start <= offset))
    }
}

/// The key of a line as it is written, or the header of a table; arrays of tables may stand as often as there are elements.
fn key_of(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.starts_with("[[") || line.starts_with('#') {
        return None;
    }
    let key = match line.strip_prefix('[') {
        Some(_) => line.split_once(']').map(|(header, _)| &line[..=header.len()])?,
        None => line.split_once('=')?.0.trim(),
    };
    (!key.is_empty()).then_some(key)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The list that a key belongs to, and its path.
fn rows_of(key: &Key) -> Option<(&'static Rows, &'static str)> {
    let list = key.path.split_inclusive("[]").next()?;
    SECTIONS
        .iter()
        .find(|section| section.path == list)
        .and_then(|section| Some((section.rows.as_ref()?, section.path)))
}

/// The variable of a key, in element `n` where it is one of a list.
pub(super) fn variable_of(key: &Key, n: &str) -> String {
    format!("{PREFIX}{}", key.path.replace("[]", &format!(".{n}")).replace('.', "_").to_uppercase())
}

/// Which element of its list the variable `name` is about, if it is about `key` at all; 0 outside of lists.
fn element_of_variable(key: &Key, name: &str) -> Option<usize> {
    let Some((before, after)) = key.path.split_once("[]") else {
        return (variable_of(key, "") == name).then_some(0);
    };
    let rest = name.strip_prefix(PREFIX)?.strip_prefix(&format!("{}_", before.replace('.', "_").to_uppercase()))?;
    let (digits, rest) = rest.split_once('_')?;
    let canonical = digits == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    let n = digits.parse::<u16>().ok().filter(|_| canonical)?;
    (rest == after.trim_start_matches('.').replace('.', "_").to_uppercase()).then_some(usize::from(n))
}
