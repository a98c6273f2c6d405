//! What a file is called, and which part of a series it is.

use std::path::{Component, Path};

/// An episode, as its path says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Episode {
    pub series: String,
    pub season: u32,
    /// `None` where it does not say.
    pub number: Option<u32>,
    pub name: String,
}

/// The name of a film.
pub(super) fn film(path: &Path) -> String {
    readable(&stem(path))
}

/// `Series/Season 1/Name S01E02.mkv`, and what people make of that.
pub(super) fn episode(path: &Path) -> Episode {
    let stem = stem(path);
    let directories: Vec<String> = path
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    let marked = mark(&stem);
    let before = marked.as_ref().map_or("", |(at, ..)| &stem[..*at]).trim_matches([' ', '.', '_', '-']);
    let series = match directories.first() {
        Some(directory) => readable(directory),
        None if before.is_empty() => readable(&stem),
        None => readable(before),
    };
    let season = directories.iter().skip(1).rev().find_map(|directory| last_number(directory));
    let (season, number) = match marked {
        Some((_, season, number)) => (season, Some(number)),
        None => (season.unwrap_or(1), None),
    };
    Episode { series, season, number, name: readable(&stem) }
}

/// Where `S01E02` or `1x02` stands, and what it says.
fn mark(stem: &str) -> Option<(usize, u32, u32)> {
    let bytes = stem.as_bytes();
    let starts = |at: usize| at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    (0..bytes.len()).filter(|at| starts(*at)).find_map(|at| {
        let (first, rest) = match bytes[at] {
            b's' | b'S' => digits(&bytes[at + 1..])?,
            b'0'..=b'9' => digits(&bytes[at..])?,
            _ => return None,
        };
        let separator = rest.first()?;
        let fits = match bytes[at] {
            b's' | b'S' => matches!(separator, b'e' | b'E'),
            _ => matches!(separator, b'x' | b'X'),
        };
        let (second, rest) = digits(&rest[1..]).filter(|_| fits)?;
        // `1920x1080` is no episode.
        (first < 1000 && !rest.first().is_some_and(u8::is_ascii_digit)).then_some((at, first, second))
    })
}

/// Up to three digits, and what is behind them.
fn digits(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let count = bytes.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let number = bytes[..count].iter().fold(0, |number, byte| number * 10 + u32::from(byte - b'0'));
    (1..=3).contains(&count).then_some((number, &bytes[count..]))
}

/// `Season 02` is 2.
fn last_number(directory: &str) -> Option<u32> {
    let digits = directory.len() - directory.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    directory[directory.len() - digits..].parse().ok().filter(|_| digits <= 3)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// `The.Film_2019` is `The Film 2019`. Nothing in it ends a line.
fn readable(name: &str) -> String {
    let spaced = name.contains(' ');
    let name: String =
        name.chars().map(|c| if c.is_control() || (!spaced && matches!(c, '.' | '_')) { ' ' } else { c }).collect();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn films_are_called_as_their_files() {
        for (path, name) in [
            ("The Film (2019).mkv", "The Film (2019)"),
            ("a/The.Film_2019.mp4", "The Film 2019"),
            ("Mr. Film.mp4", "Mr. Film"),
            ("new\nline.ts", "new line"),
        ] {
            assert_eq!(film(Path::new(path)), name);
        }
    }

    #[test]
    fn episodes_by_their_names_or_directories() {
        for (path, series, season, number) in [
            ("The Show/Season 2/The Show S02E07 Name.mkv", "The Show", 2, Some(7)),
            ("The.Show/Season 2/x.s03e11.mkv", "The Show", 3, Some(11)),
            ("The Show/Staffel 04/Folge.mkv", "The Show", 4, None),
            ("The Show/1x02.mkv", "The Show", 1, Some(2)),
            ("The Show/Part one.mkv", "The Show", 1, None),
            ("The.Show.S01E02.1920x1080.mkv", "The Show", 1, Some(2)),
            ("Video 1920x1080.mkv", "Video 1920x1080", 1, None),
            ("The Show/a/b/c S1E1.mkv", "The Show", 1, Some(1)),
            ("The Show/bonuS01E02.mkv", "The Show", 1, None),
            ("é/S9999E1.mkv", "é", 1, None),
            ("Show/S01E.mkv", "Show", 1, None),
            ("S01E01.mkv", "S01E01", 1, Some(1)),
        ] {
            let found = episode(Path::new(path));
            assert_eq!((found.series.as_str(), found.season, found.number), (series, season, number), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_has_a_name(path in "[ -~é/]{1,30}") {
            let _ = (film(Path::new(&path)), episode(Path::new(&path)));
        }
    }
}
