//! Keeps memory flat. glibc gives every thread an arena of its own, up to eight a core, and gives little of it back; media
//! threads come and go. Of 104 MB 280 had become after three rounds of 50 channels; two arenas stayed at 82 over 14 short rounds.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// glibc reads it before the program begins, and from nowhere else without `unsafe`.
const ARENAS: &str = "MALLOC_ARENA_MAX";
const ENOUGH: &str = "2";
/// glibc takes the other one out of the environment of programs that have capabilities: those would begin again for ever.
const BEGUN_ANEW: &str = "MALLOC_ARENA_MAX_WAS_SET";

/// Begins the program anew, as the same process, unless somebody has said how many arenas there may be.
pub(crate) fn limit() {
    if !cfg!(target_env = "gnu") || [ARENAS, BEGUN_ANEW].iter().any(|name| env::var_os(name).is_some()) {
        return;
    }
    let (Ok(program), mut arguments) = (env::current_exe(), env::args_os()) else { return };
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // It returns only if that fails, and then memory is all that is lost.
    let _ = command.args(arguments).env(ARENAS, ENOUGH).env(BEGUN_ANEW, "1").exec();
}
