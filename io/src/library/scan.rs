//! Which files there are in libraries.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::{Library, Place};

/// How deep directories are looked through.
const DEPTH: usize = 8;
/// How many files are taken, all libraries together: lists of them are told at once.
const FILES: usize = 20_000;
/// How many names are looked at.
const NAMES: usize = 500_000;

/// What ends in one of these is a film or an episode.
const EXTENSIONS: [&str; 7] = ["mp4", "mkv", "ts", "avi", "mov", "webm", "m4v"];

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whose it is, by its place among the libraries.
    pub library: usize,
    /// Where it is.
    pub place: Place,
    /// When it was modified last, in seconds since 1970.
    pub modified: u64,
}

/// What came of looking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// What is there.
    pub files: Vec<Found>,
    /// Libraries that could not be looked through, by their place, and why not.
    pub failed: Vec<(usize, String)>,
    /// How many files and directories were left out of a library, by its place, since their names are no text.
    pub unnamed: Vec<(usize, u64)>,
    /// The same of files with nothing in them: a copy that broke off, or has not begun.
    pub empty: Vec<(usize, u64)>,
    /// Whether there is more than is taken.
    pub cut_short: bool,
}

/// Looks through libraries. Hidden files and directories, links to directories, links that lead out of their library, and what is
/// no file are left out. Blocks for as long as the disks take.
pub fn scan(libraries: &[Library]) -> Scan {
    let (mut scan, mut names) = (Scan::default(), 0);
    for (library, own) in libraries.iter().enumerate() {
        scan.unnamed.push((library, 0));
        scan.empty.push((library, 0));
        if let Err(error) = walk(library, &own.path, &mut scan, &mut names) {
            scan.files.retain(|found| found.library != library);
            scan.failed.push((library, error.to_string()));
        }
    }
    scan
}

fn walk(library: usize, path: &Path, scan: &mut Scan, names: &mut usize) -> io::Result<()> {
    let root: Arc<Path> = fs::canonicalize(path)?.into();
    let mut directories = vec![(PathBuf::new(), 0)];
    let mut is_root = true;
    while let Some((directory, depth)) = directories.pop() {
        let entries = match fs::read_dir(root.join(&directory)) {
            // One that is closed to us is as good as none, but for the library itself.
            Err(error) if std::mem::take(&mut is_root) => return Err(error),
            Err(_) => continue,
            Ok(entries) => entries,
        };
        is_root = false;
        for entry in entries.map_while(Result::ok) {
            *names += 1;
            if *names > NAMES || scan.files.len() == FILES {
                scan.cut_short = true;
                return Ok(());
            }
            let name = entry.file_name();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            let is_text = name.to_str().is_some();
            let path = directory.join(name);
            // Addresses and lists are text.
            if !hidden && !is_text && (extension(&path).is_some() || entry.file_type().is_ok_and(|kind| kind.is_dir()))
            {
                scan.unnamed.last_mut().into_iter().for_each(|(_, count)| *count += 1);
            }
            if hidden || !is_text {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth == DEPTH => {}
                Ok(kind) if kind.is_dir() => directories.push((path, depth + 1)),
                Ok(_) if extension(&path).is_some() => {
                    let place = Place { root: root.clone(), path };
                    match look(&place) {
                        Some((0, _)) => scan.empty.last_mut().into_iter().for_each(|(_, count)| *count += 1),
                        Some((_, modified)) => scan.files.push(Found { library, place, modified }),
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// How many bytes a file of a library has, and when it was modified; `None` if it is none.
fn look(place: &Place) -> Option<(u64, u64)> {
    let data = fs::metadata(place.real().ok()?).ok().filter(fs::Metadata::is_file)?;
    let modified = data.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some((data.len(), modified.as_secs()))
}

/// What a film or an episode ends in; `None` for what is neither.
pub(super) fn extension(path: &Path) -> Option<&'static str> {
    let own = path.extension()?.to_str()?;
    EXTENSIONS.into_iter().find(|known| known.eq_ignore_ascii_case(own))
}
