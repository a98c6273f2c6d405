//! What is wrong with a configuration, where, and what would be right.

use std::fmt;

/// How many faults are kept; a file with more is not worth more lines.
const MOST: usize = 100;
/// How much of a text of unknown origin is repeated in a message.
const QUOTE: usize = 60;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of the file, from 1.
    Line(usize),
    /// An environment variable.
    Variable(String),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it was written.
    pub place: Place,
    /// Full path of the key, such as `endpoint[0].dead_after`; `None` where no key could be made out.
    pub key: Option<String>,
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

/// Everything that is wrong with a configuration, in the order of its lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    file: String,
    faults: Vec<Fault>,
    /// How many more there were than are kept.
    more: usize,
}

impl Faults {
    /// `faults` of `file`, ordered by place.
    pub(super) fn new(file: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by(|a, b| a.place.cmp(&b.place));
        let more = faults.len().saturating_sub(MOST);
        faults.truncate(MOST);
        Faults { file: file.to_owned(), faults, more }
    }

    /// One fault of the file as a whole or of one line of it.
    pub(super) fn one(file: &str, place: Place, wrong: String, right: &str) -> Self {
        Faults::new(file, vec![Fault { place, key: None, wrong, right: right.to_owned() }])
    }

    /// The faults, in the order of their lines; at most 100.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter()
    }
}

impl fmt::Display for Faults {
    /// One line a fault: ``FILE:LINE: key `endpoint[0].dead_after`: what is wrong; what would be right``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.faults.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            match &fault.place {
                Place::File => write!(f, "{}: ", self.file)?,
                Place::Line(line) => write!(f, "{}:{line}: ", self.file)?,
                Place::Variable(name) => write!(f, "{name}: ")?,
            }
            if let Some(key) = &fault.key {
                write!(f, "key `{key}`: ")?;
            }
            write!(f, "{}; {}", fault.wrong, fault.right)?;
        }
        if self.more > 0 {
            write!(f, "\n{}: and {} more", self.file, self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// `text` as it may stand in a message: on one line, without control characters, not longer than needed to know it.
pub(super) fn printable(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTE).is_some() {
        short.push('…');
    }
    short
}

/// The candidate that `name` was most likely meant to be, if one is near enough.
pub(super) fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out or changed to make `b` of `a`. Bounded work: names of more than 64 letters
/// are near to nothing.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(65).collect(), b.chars().take(65).collect());
    if a.len() > 64 || b.len() > 64 {
        return usize::MAX;
    }
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut diagonal = above[0];
        above[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = above[j + 1];
            above[j + 1] = changed.min(above[j] + 1).min(diagonal + 1);
        }
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letters() {
        assert_eq!(distance("listen", "listen"), 0);
        assert_eq!(distance("lisen", "listen"), 1);
        assert_eq!(distance("listenn", "listen"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let keys = ["dead_after", "takeover", "takeover_wait", "poll"];
        assert_eq!(nearest("deadafter", keys), Some("dead_after"));
        assert_eq!(nearest("takover", keys), Some("takeover"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest(&"x".repeat(1000), keys), None);
    }

    #[test]
    fn what_is_quoted_stays_on_its_line_and_is_short() {
        assert_eq!(printable("a\nb\u{1b}[2J"), "a\\nb\\u{1b}[2J");
        assert!(printable(&"x".repeat(100_000)).chars().count() < 64);
    }

    #[test]
    fn too_many_faults_are_counted_instead_of_printed() {
        let fault = |line| Fault { place: Place::Line(line), key: None, wrong: "w".into(), right: "r".into() };
        let faults = Faults::new("f", (1..=150).rev().map(fault).collect());
        let text = faults.to_string();
        assert_eq!(text.lines().next(), Some("f:1: w; r"));
        assert_eq!(text.lines().last(), Some("f: and 50 more"));
        assert_eq!(text.lines().count(), 101);
    }
}
