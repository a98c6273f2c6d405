use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// A directory of its own, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-library-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn put(&self, path: &str, content: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn library(path: &Path, kind: Shelf) -> Library {
    Library { name: "l".into(), path: path.into(), kind, group: "Films".into() }
}

fn paths(scan: &Scan) -> Vec<&str> {
    let mut paths: Vec<&str> = scan.files.iter().filter_map(|found| found.place.path.to_str()).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn what_has_a_name_that_is_no_text_is_counted() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let inside = Scratch::new("latin");
    inside.put("a.mp4", "x");
    for name in [&b"caf\xe9.mp4"[..], b"caf\xe9.txt", b".caf\xe9.mp4"] {
        fs::write(inside.0.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    fs::create_dir(inside.0.join(OsStr::from_bytes(b"s\xe9rie"))).unwrap();
    let found = scan(&[library(&inside.0, Shelf::Films)]);
    assert_eq!((paths(&found), &found.unnamed[..]), (vec!["a.mp4"], &[(0, 2)][..]));
}

#[test]
fn what_has_nothing_in_it_is_left_out_and_counted() {
    let inside = Scratch::new("empty");
    inside.put("a.mp4", "x");
    for empty in ["b.mp4", "d/c.mkv", ".hidden.mp4", "notes.txt"] {
        inside.put(empty, "");
    }
    let found = scan(&[library(&inside.0, Shelf::Films)]);
    assert_eq!((paths(&found), &found.empty[..]), (vec!["a.mp4"], &[(0, 2)][..]));
}

#[test]
fn what_is_found_are_files_of_the_library_alone() {
    let (inside, outside) = (Scratch::new("inside"), Scratch::new("outside"));
    for path in
        ["a.mp4", "b.MKV", "d/e/f.ts", ".hidden.mp4", ".d/g.mp4", "notes.txt", "mp4", "deep/1/2/3/4/5/6/7/8/h.ts"]
    {
        inside.put(path, "x");
    }
    let secret = outside.put("secret.mp4", "x");
    symlink(&secret, inside.0.join("out.mp4")).unwrap();
    symlink(&outside.0, inside.0.join("outdir")).unwrap();
    symlink(&inside.0, inside.0.join("d/again")).unwrap();
    symlink("a.mp4", inside.0.join("in.mp4")).unwrap();
    symlink("nowhere.mp4", inside.0.join("dangling.mp4")).unwrap();
    fs::create_dir(inside.0.join("dir.mp4")).unwrap();
    let found = scan(&[library(&inside.0, Shelf::Films)]);
    assert_eq!(paths(&found), ["a.mp4", "b.MKV", "d/e/f.ts", "in.mp4"]);
    assert!(found.failed.is_empty() && !found.cut_short);
}

#[test]
fn a_pipe_keeps_nobody_waiting() {
    let scratch = Scratch::new("pipe");
    let made = std::process::Command::new("mkfifo").arg(scratch.0.join("a.mp4")).status().unwrap();
    assert!(made.success());
    assert_eq!(paths(&scan(&[library(&scratch.0, Shelf::Films)])), Vec::<&str>::new());
    let place = Place { root: fs::canonicalize(&scratch.0).unwrap().into(), path: "a.mp4".into() };
    assert_eq!(open(&place).unwrap_err(), FileFault::Gone);
}

#[test]
fn a_library_that_is_away_keeps_its_titles_and_one_that_is_empty_does_not() {
    let scratch = Scratch::new("away");
    scratch.put("films/a.mp4", "x");
    let path = scratch.0.join("films");
    let mut libraries = Libraries::new(&[library(&path, Shelf::Films)]);
    libraries.replace(&scan(libraries.all()));
    let id = libraries.of(Kind::Film).next().unwrap().id;
    fs::rename(&path, scratch.0.join("elsewhere")).unwrap();
    let found = scan(libraries.all());
    assert_eq!((found.files.len(), found.failed.len()), (0, 1));
    libraries.replace(&found);
    assert_eq!(libraries.find(Kind::Film, id).map(|local| local.name.as_str()), Some("a"));
    fs::create_dir(&path).unwrap();
    libraries.replace(&scan(libraries.all()));
    assert_eq!(libraries.count(0), 0);
}

#[test]
fn a_file_is_opened_where_it_was_found_or_not_at_all() {
    let (inside, outside) = (Scratch::new("open"), Scratch::new("open-outside"));
    inside.put("d/a.mp4", "0123456789");
    outside.put("a.mp4", "secret");
    let found = scan(&[library(&inside.0, Shelf::Films)]);
    let place = &found.files[0].place;
    let (file, attributes) = open(place).unwrap();
    assert_eq!(attributes.length, 10);
    assert_eq!(read(&file, 3, 4).unwrap().as_ref(), b"3456");
    assert_eq!(read(&file, 8, 4).unwrap().as_ref(), b"89");
    assert_eq!(read(&file, 20, 4).unwrap().as_ref(), b"");
    // Another version has another tag.
    inside.put("d/a.mp4", "0123456789a");
    assert_ne!(open(place).unwrap().1.etag, attributes.etag);
    // Now something else is there.
    fs::remove_dir_all(inside.0.join("d")).unwrap();
    assert_eq!(open(place).unwrap_err(), FileFault::Gone);
    symlink(&outside.0, inside.0.join("d")).unwrap();
    assert_eq!(open(place).unwrap_err(), FileFault::Gone);
    for path in ["../open-outside/a.mp4", "d", "a\0.mp4"] {
        let place = Place { path: path.into(), ..place.clone() };
        assert!(open(&place).is_err(), "{path:?}");
    }
}

#[test]
fn titles_keep_their_ids_when_others_come_and_go() {
    let scratch = Scratch::new("ids");
    scratch.put("b.mp4", "x");
    let mut libraries = Libraries::new(&[library(&scratch.0, Shelf::Films)]);
    libraries.replace(&scan(libraries.all()));
    let before = libraries.of(Kind::Film).next().unwrap().clone();
    assert!(before.id >> 24 == 0x7f, "{}", before.id);
    scratch.put("a.mp4", "x");
    libraries.replace(&scan(libraries.all()));
    assert_eq!(libraries.find(Kind::Film, before.id), Some(&before));
    assert_eq!(libraries.find(Kind::Episode, before.id), None);
    assert_eq!(libraries.of(Kind::Film).map(|local| local.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn directories_of_series_are_series() {
    let scratch = Scratch::new("series");
    for path in
        ["Show/Season 1/Show S01E02.mkv", "Show/Season 1/Show S01E01.mkv", "Show/Season 2/x.mkv", "Show/Season 2/y.mkv"]
    {
        scratch.put(path, "x");
    }
    scratch.put("Other/1x03.mp4", "x");
    let mut libraries = Libraries::new(&[library(&scratch.0, Shelf::Series)]);
    libraries.replace(&scan(libraries.all()));
    assert_eq!(libraries.series().iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["Other", "Show"]);
    let (show, _) = libraries.series_by_id(libraries.series()[1].id).unwrap();
    let episodes: Vec<_> = libraries.episodes(show).filter_map(|own| own.episode.map(|(_, s, e)| (s, e))).collect();
    assert_eq!(episodes, [(1, 1), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(libraries.of(Kind::Film).count(), 0);
    assert!(
        libraries.permits(0, &[]) && libraries.permits(0, &["Films".into()]) && !libraries.permits(0, &["x".into()])
    );
}
