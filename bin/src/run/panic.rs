//! What is left when the loop panics: a journal of what led to it.

use std::any::Any;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use tracing::error;

/// Runs the loop over `subject`. When it panics, the journal goes to a file, and the panic goes on.
pub(super) fn dumped<S, T>(
    subject: &mut S,
    run: impl FnOnce(&mut S) -> T,
    journal: impl FnOnce(&S) -> Option<Vec<u8>>,
) -> T {
    match catch_unwind(AssertUnwindSafe(|| run(subject))) {
        Ok(done) => done,
        Err(panic) => {
            // Whatever broke may be broken for this, too.
            let journal = catch_unwind(AssertUnwindSafe(|| journal(subject))).ok().flatten();
            error!("{}", told(&*panic, journal.as_deref(), &place()));
            resume_unwind(panic)
        }
    }
}

fn told(panic: &(dyn Any + Send), journal: Option<&[u8]>, path: &Path) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let what = format!("the program panicked, which is a fault of its own: {}", text.unwrap_or("no words"));
    match journal.map(|journal| save(journal, path)) {
        None => format!("{what}; nothing was recorded ([recorder] `size`)"),
        Some(Ok(())) => format!(
            "{what}; what led to it is in {}: `holdfast replay` shows it, and it makes a good attachment of a report",
            path.display()
        ),
        Some(Err(error)) => format!("{what}; what led to it cannot be written to {}: {error}", path.display()),
    }
}

/// One file for all panics of this user: the service's state directory (systemd), else the temporary one.
fn place() -> PathBuf {
    // There may be several, with colons.
    let state = env::var("STATE_DIRECTORY").ok().and_then(|all| all.split(':').next().map(PathBuf::from));
    match state.filter(|state| state.is_dir()) {
        Some(state) => state.join("panic.journal"),
        None => env::temp_dir().join(format!("holdfast-{}-panic.journal", rustix::process::getuid().as_raw())),
    }
}

/// In the temporary directory anybody may have put something under the name: it is taken from nobody, and followed nowhere.
fn save(journal: &[u8], path: &Path) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let saved = file.write_all(journal).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, path));
    if saved.is_err() {
        // What is left of it takes room that somebody lacks.
        let _ = fs::remove_file(&new);
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_journal_and_goes_on() {
        let directory = env::temp_dir().join(format!("holdfast-panic-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("the temporary folder can be written");
        let path = directory.join("panic.journal");
        for round in [&b"first"[..], b"second"] {
            let text = told(&"broken", Some(round), &path);
            assert!(text.contains("broken") && text.contains(path.to_str().expect("text")), "{text}");
            assert_eq!(fs::read(&path).expect("it is there"), round);
        }
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 1, "one for all");
        assert!(told(&String::from("x"), None, &path).contains("nothing was recorded"));
        fs::remove_dir_all(&directory).expect("it is ours");
        assert!(told(&5, Some(b"x"), &path).contains("cannot be written"));
    }

    #[test]
    fn what_does_not_panic_passes_and_what_does_is_passed_on() {
        assert_eq!(dumped(&mut 1, |one| *one + 1, |_| panic!("not asked for")), 2);
        let panic = catch_unwind(|| dumped(&mut 1, |_| -> u8 { panic!("once") }, |_| panic!("twice")));
        assert_eq!(panic.expect_err("passed on").downcast_ref(), Some(&"once"));
    }
}
