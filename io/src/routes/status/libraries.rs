//! Libraries of this machine: what was found in each, and when.

use holdfast_core::time::Time;
use serde::Serialize;

use super::millis;
use crate::server::Server;

#[derive(Serialize)]
pub(super) struct Library {
    name: String,
    path: String,
    group: String,
    /// Films, or episodes.
    titles: usize,
    /// How long ago it was looked through; `null` while nobody has yet.
    read_ms: Option<u64>,
    /// Why it could not be looked through the last time; `null` if it could.
    fault: Option<String>,
}

/// All libraries, in the order of the configuration.
pub(super) fn libraries(server: &Server, now: Time) -> Vec<Library> {
    let all = server.libraries().all().iter().zip(server.library_states()).enumerate();
    let library = |(place, (own, state)): (usize, (&crate::library::Library, &crate::server::Looked))| Library {
        name: own.name.clone(),
        path: own.path.display().to_string(),
        group: own.group.clone(),
        titles: server.libraries().count(place),
        read_ms: state.read.map(|read| millis(now, read)),
        fault: state.fault.clone(),
    };
    all.map(library).collect()
}
