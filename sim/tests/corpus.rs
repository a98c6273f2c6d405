//! Journals of failures that once were: each shrunk to the calls that it took, and right ever since.
//!
//! A file is called like what was wrong. The calls are those of the core as it was then; what a core that is right asks for and that
//! one did not is answered by what the journal knows.

use std::fs;
use std::path::Path;

use holdfast_core::journal::Log;
use holdfast_sim::judge::judge_log;
use holdfast_sim::shrink::lines;

#[test]
fn no_failure_of_the_past_is_back() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> = fs::read_dir(&corpus)
        .unwrap_or_else(|error| panic!("{}: {error}", corpus.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "journal"))
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let log = Log::read(&fs::read(&file).expect("readable")).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!((1..=40).contains(&log.calls.len()), "{name}: {} calls", log.calls.len());
        let judged =
            judge_log(log.clone()).unwrap_or_else(|verdict| panic!("{name}: {verdict}\n{}", lines(&log).join("\n")));
        println!("{name}: {} calls in {:?}", judged.calls, judged.spans);
    }
}
