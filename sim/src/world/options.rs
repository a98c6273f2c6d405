//! What of a random run is chosen by hand instead of by its seed: which faults there are, who takes part, for how long.
//!
//! Whoever is left out keeps its number, and so everybody else the same chances.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::chance::Fault;

/// What is chosen by hand. The default leaves everything to the seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which faults.
    pub faults: Faults,
    /// Who takes part; `None`: everybody whom the seed has.
    pub cast: Option<BTreeSet<Actor>>,
    /// After which time at the latest nothing goes wrong any more.
    pub storm: Option<Duration>,
    /// The judges are told nothing of the faults: then they find something, and a suite that finds nothing is noticed.
    pub untold: bool,
}

impl fmt::Display for Options {
    /// As on the command line, each option with a space before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.faults != Faults::default() {
            write!(f, " --faults {}", self.faults)?;
        }
        if let Some(cast) = &self.cast {
            let names: Vec<String> = cast.iter().map(Actor::to_string).collect();
            write!(f, " --actors {}", if names.is_empty() { "none".to_owned() } else { names.join(",") })?;
        }
        if let Some(storm) = self.storm {
            write!(f, " --storm {}", storm.as_millis())?;
        }
        Ok(())
    }
}

/// Which faults a run has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// These alone; `None`: as the seed has them.
    pub only: Option<Vec<Fault>>,
    /// These in any case.
    pub with: Vec<Fault>,
    /// These in no case.
    pub without: Vec<Fault>,
}

impl Faults {
    /// These and no others.
    pub fn only(faults: impl IntoIterator<Item = Fault>) -> Self {
        Faults { only: Some(faults.into_iter().collect()), ..Faults::default() }
    }

    /// Whether a fault is there; `drawn` is whether the seed has it.
    pub(super) fn has(&self, fault: Fault, drawn: bool) -> bool {
        let chosen = self.only.as_ref().map_or(drawn, |only| only.contains(&fault));
        (chosen || self.with.contains(&fault)) && !self.without.contains(&fault)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |sign: &'static str, faults: &[Fault]| -> Vec<String> {
            faults.iter().map(|fault| format!("{sign}{}", fault.as_str())).collect()
        };
        let only = self.only.as_deref();
        let mut all = only.map(|only| words("", only)).unwrap_or_default();
        if only.is_some_and(<[Fault]>::is_empty) {
            all.push("none".into());
        }
        all.extend(words("+", &self.with));
        all.extend(words("-", &self.without));
        f.write_str(&all.join(","))
    }
}

impl FromStr for Faults {
    type Err = String;

    /// `a,b`: these alone; `none`: none; `-a`: the seed's without it; `+a`: the seed's and it.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Faults::default();
        for word in text.split(',').map(str::trim) {
            match (word, word.strip_prefix('-'), word.strip_prefix('+')) {
                ("none", ..) => _ = faults.only.get_or_insert_default(),
                (_, Some(word), _) => faults.without.push(fault(word)?),
                (_, _, Some(word)) => faults.with.push(fault(word)?),
                (word, ..) => faults.only.get_or_insert_default().push(fault(word)?),
            }
        }
        let mut wanted = faults.only.iter().flatten().chain(&faults.with);
        if let Some(both) = wanted.find(|fault| faults.without.contains(fault)) {
            return Err(format!("{} cannot be there and be left out", both.as_str()));
        }
        let none = text.split(',').any(|word| word.trim() == "none");
        if let Some(one) = faults.only.iter().flatten().next().filter(|_| none) {
            return Err(format!("`none` stands alone, and {} is one", one.as_str()));
        }
        Ok(faults)
    }
}

fn fault(word: &str) -> Result<Fault, String> {
    let found = Fault::ALL.iter().copied().find(|fault| fault.as_str() == word);
    found.ok_or_else(|| {
        let near = near(word, Fault::ALL.iter().map(|fault| fault.as_str()));
        format!("there is no fault {word}{near}; `holdfast sim --list` shows them")
    })
}

/// Names like one that there is not, as a question to add to a message; nothing where none is like it.
pub fn near(word: &str, names: impl IntoIterator<Item = &'static str>) -> String {
    let wanted = word.to_lowercase();
    let mut like: Vec<(usize, &str)> = names.into_iter().map(|name| (apart(&wanted, name), name)).collect();
    like.sort();
    let most = (word.len() / 3).max(1);
    let inside = |name: &str| wanted.len() >= 4 && name.contains(&wanted);
    let like: Vec<&str> =
        like.into_iter().filter(|(apart, name)| *apart <= most || inside(name)).map(|(_, name)| name).take(3).collect();
    if like.is_empty() { String::new() } else { format!(" (did you mean {}?)", like.join(", ")) }
}

/// How many letters have to be put in, left out or changed to make one word of another.
fn apart(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], index + 1);
        for (place, own) in other.iter().enumerate() {
            let change = before + usize::from(letter != *own);
            before = row[place + 1];
            row[place + 1] = change.min(before + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

/// Somebody in the random world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// Publishes.
    Publisher(u32),
    /// Watches a feed.
    Viewer(u32),
    /// Plays titles.
    Device(u32),
    /// An origin of a channel that is not always well.
    Origin(u32, u32),
    /// A provider that is not always well.
    Provider(u32),
    /// Kicks, sends crowds, ends the program.
    Operator,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Publisher(index) => write!(f, "publisher-{index}"),
            Actor::Viewer(index) => write!(f, "viewer-{index}"),
            Actor::Device(index) => write!(f, "device-{index}"),
            Actor::Origin(channel, index) => write!(f, "origin-{channel}-{index}"),
            Actor::Provider(index) => write!(f, "provider-{index}"),
            Actor::Operator => write!(f, "operator"),
        }
    }
}

impl FromStr for Actor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('-');
        let kind = parts.next().unwrap_or_default();
        let numbers: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
        match (kind, numbers.as_deref()) {
            ("publisher", Some([index])) => Ok(Actor::Publisher(*index)),
            ("viewer", Some([index])) => Ok(Actor::Viewer(*index)),
            ("device", Some([index])) => Ok(Actor::Device(*index)),
            ("origin", Some([channel, index])) => Ok(Actor::Origin(*channel, *index)),
            ("provider", Some([index])) => Ok(Actor::Provider(*index)),
            ("operator", Some([])) => Ok(Actor::Operator),
            _ => Err(format!(
                "{text} is no actor: these are publisher-N, viewer-N, device-N, provider-N, origin-N-N and operator, \
                 numbered from 0"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_written_as_it_is_read() {
        for text in ["none", "stall,kick", "-stall", "+stall,-kick", "stall,-kick"] {
            let faults: Faults = text.parse().expect(text);
            assert_eq!(faults.to_string(), text);
        }
        for text in ["publisher-0", "origin-1-2", "operator", "device-13"] {
            assert_eq!(text.parse::<Actor>().expect(text).to_string(), text);
        }
        let all: Options = Options {
            faults: "stall".parse().expect("a fault"),
            cast: Some([Actor::Operator, Actor::Viewer(3)].into()),
            storm: Some(Duration::from_millis(1500)),
            untold: false,
        };
        assert_eq!(all.to_string(), " --faults stall --actors viewer-3,operator --storm 1500");
        assert_eq!(Options::default().to_string(), "");
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is_like_it() {
        let wrong = |text: &str| text.parse::<Faults>().expect_err(text);
        assert!(wrong("silent-vansh").contains("did you mean silent-vanish?"), "{}", wrong("silent-vansh"));
        assert!(wrong("-vanish").contains("silent-vanish"), "{}", wrong("-vanish"));
        assert_eq!(wrong("-flap,flap"), "flap cannot be there and be left out");
        assert_eq!(wrong("none,flap"), "`none` stands alone, and flap is one");
        assert_eq!(wrong("qqqq"), "there is no fault qqqq; `holdfast sim --list` shows them");
        assert!("publisher".parse::<Actor>().is_err() && "operator-1".parse::<Actor>().is_err());
    }
}
