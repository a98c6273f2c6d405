//! Journals of this version of the format stay readable: one of them is kept, as it was written when the version was new.
//!
//! When this fails, the format has changed, or something that the core keeps: give it another version
//! ([`holdfast_core::journal::VERSION`], `MAGIC`), write its journal with `HOLDFAST_WRITE_JOURNALS=1 cargo test -p holdfast-core
//! --test journal`, and look at what old programs and old files say of each other. When the core decides otherwise than before, the
//! outputs differ ([`JournalFault::OtherDigest`]): then write it anew as well.

use std::fs;
use std::path::Path;

use holdfast_core::journal::{JournalFault, Log, Recorded, VERSION, replay};

use super::{config, rounds};

#[test]
fn journals_of_this_version_stay_readable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/journals/{VERSION}.journal"));
    if std::env::var_os("HOLDFAST_WRITE_JOURNALS").is_some() {
        let mut ring = Recorded::ring(config(), 1);
        rounds(&mut ring, 1_000);
        fs::write(&path, ring.journal().unwrap()).unwrap();
    }
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        if path.file_stem().is_some_and(|stem| stem == &*VERSION.to_string()) {
            let mut calls = 0;
            let replayed = replay(&bytes, |_| calls += 1);
            assert!(replayed.is_ok(), "{}: {replayed:?}", path.display());
            let log = Log::read(&bytes).unwrap();
            assert!(calls > 50 && log.snapshot.is_some() && log.calls.len() == calls);
        } else {
            assert!(matches!(Log::read(&bytes), Err(JournalFault::OtherVersion { .. })), "{}", path.display());
        }
    }
    assert!(path.exists());
}
