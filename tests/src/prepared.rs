//! What `tests/run` has put where. A test whose tools are missing fails and says so; none is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit, setrlimit};

/// The root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests crate lies in the workspace")
}

/// The cache that outlives checkouts: `$XDG_CACHE_HOME/holdfast` or `~/.cache/holdfast`.
pub fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    base.expect("HOME or XDG_CACHE_HOME is set").join("holdfast")
}

/// A path that must be there.
fn present(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is missing: tests/run prepares it", path.display());
    path
}

/// The program under test: the one that `PROGRAM_UNDER_TEST` names, else built as the tests were, in the same folder, from the same
/// checkout.
pub fn holdfast() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os("PROGRAM_UNDER_TEST") {
            return present(program.into());
        }
        let tests = std::env::current_exe().expect("a test knows where it is");
        let profile = tests.parent().and_then(Path::parent).expect("target/<profile>/deps/<test>");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "-p", "holdfast", "--target-dir"]).arg(profile.parent().expect("target"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(root()).status().expect("cargo runs");
        assert!(status.success(), "holdfast does not build; tests/run installs what that needs");
        profile.join("holdfast")
    })
}

/// The GStreamer publisher.
pub fn gstreamer_publisher() -> PathBuf {
    present(cache().join("publisher-target/debug/publisher"))
}

/// Python with aiortc, PyAV and aiohttp.
pub fn python() -> PathBuf {
    present(cache().join("venv/bin/python"))
}

/// The folder with the npm packages.
pub fn node_modules() -> PathBuf {
    present(cache().join("node/node_modules"))
}

/// One of the Python programs in `tests/clients`.
pub fn client(name: &str) -> PathBuf {
    present(root().join("tests/clients").join(name))
}

/// A program of the distribution.
///
/// # Panics
/// When it is not installed.
pub fn tool(name: &str) -> Command {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
        || Path::new("/usr/sbin").join(name).is_file();
    assert!(found, "{name} is not installed: tests/run installs it");
    let mut command = Command::new(name);
    command.stdin(Stdio::null());
    command
}

/// Prometheus's own checker.
pub fn promtool() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("promtool")).find(|file| file.is_file());
    found.unwrap_or_else(|| present(cache().join("prometheus/usr/bin/promtool")))
}

/// Lets this process, and what it starts, have this many open descriptors.
///
/// # Panics
/// When the hard limit is lower.
pub fn allow_descriptors(number: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    assert!(limit.maximum.is_none_or(|most| most >= number), "at least {number} descriptors are needed: {limit:?}");
    limit.current = Some(number.max(limit.current.unwrap_or(number)));
    setrlimit(Resource::Nofile, limit).expect("a limit below the hard one can be set");
}

/// A fresh folder for the files of one test process; what lies there after a failure explains it.
pub fn scratch(name: &str) -> PathBuf {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("holdfast-tests-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder.join(format!("{number}-{name}"))
}
