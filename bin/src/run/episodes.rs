//! Of which series episodes of panels are, kept over restarts: who may see some groups alone is let play an episode by that, and
//! panels say it only of whole series. A file of one line each, to which is added while the program runs; at the start it is
//! written anew without what was said twice.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use holdfast_io::providers::Belonging;
use tracing::warn;

/// So many are kept: as many as the server remembers.
const KEPT: usize = 1 << 17;
/// How many pieces of news may wait to be written.
const QUEUE: usize = 256;

/// What is kept in the file, the oldest first; nothing if there is none yet.
///
/// # Errors
/// When it cannot be read, or not be written anew.
pub(super) fn load(file: &Path) -> io::Result<Vec<Belonging>> {
    let text = match fs::read(file) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    // The last word counts; a line that broke off when a disk was full is none.
    let said = text.lines().enumerate().filter_map(|(place, line)| Some((place, line.parse::<Belonging>().ok()?)));
    let last: BTreeMap<(String, u32), (usize, Belonging)> =
        said.map(|(place, own)| ((own.provider.clone(), own.episode), (place, own))).collect();
    let mut kept: Vec<(usize, Belonging)> = last.into_values().collect();
    kept.sort_by_key(|(place, _)| *place);
    let kept: Vec<Belonging> = kept.drain(kept.len().saturating_sub(KEPT)..).map(|(_, own)| own).collect();
    let anew: String = kept.iter().map(|own| format!("{own}\n")).collect();
    let beside = file.with_extension("new");
    fs::write(&beside, anew)?;
    fs::rename(&beside, file)?;
    Ok(kept)
}

/// The thread that writes; nobody waits for it.
pub(super) struct Keeper(SyncSender<Vec<Belonging>>);

impl Keeper {
    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(file: PathBuf) -> io::Result<Keeper> {
        let (sender, news) = sync_channel::<Vec<Belonging>>(QUEUE);
        let write = move || {
            for news in news {
                let lines: String = news.iter().map(|own| format!("{own}\n")).collect();
                let written = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&file)
                    .and_then(|mut out| out.write_all(lines.as_bytes()));
                if let Err(error) = written {
                    warn!("{}", fault(&file, &error));
                }
            }
        };
        thread::Builder::new().name(String::from("episodes")).spawn(write)?;
        Ok(Keeper(sender))
    }

    /// What does not fit is said again by its panel when somebody opens the series.
    pub fn keep(&self, news: Vec<Belonging>) {
        let _ = self.0.try_send(news);
    }
}

/// What an operator reads of it.
pub(super) fn fault(file: &Path, error: &io::Error) -> String {
    format!(
        "{}: {error}: after a restart users with `groups` have to open a series before they play an episode of it; see `episodes` \
         in [playback]",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use holdfast_core::input::TitleId;

    use super::*;

    fn of(episode: u32, series: u64) -> Belonging {
        Belonging { provider: String::from("tv"), episode, series: TitleId(series) }
    }

    #[test]
    fn what_was_kept_is_there_at_the_next_start() {
        let file = std::env::temp_dir().join(format!("holdfast-episodes-{}", std::process::id()));
        let _ = fs::remove_file(&file);
        assert_eq!(load(&file).expect("there is none yet"), []);
        let keeper = Keeper::start(file.clone()).expect("a thread");
        keeper.keep(vec![of(1, 2), of(2, 2)]);
        keeper.keep(vec![of(1, 4)]);
        let lines = || fs::read_to_string(&file).expect("it is there").lines().count();
        while lines() < 3 {
            thread::yield_now();
        }
        fs::write(&file, format!("{}broken", fs::read_to_string(&file).expect("text"))).expect("written");
        assert_eq!(load(&file).expect("read"), [of(2, 2), of(1, 4)], "the last word counts");
        assert_eq!(lines(), 2, "and is all that is left");
        fs::remove_file(&file).expect("it is ours");
        assert!(load(Path::new("/nonexistent/x")).is_err());
    }
}
