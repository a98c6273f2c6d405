//! ICE restart (RFC 8445 §9), which webrtcbin 1.22 does not do by itself.
//!
//! Renegotiating alone leaves our RTCP going to the dead address: audio comes back, video stalls. libnice's own restart makes
//! it check the new addresses under the old DTLS, and there is no GObject signal for it: hence one foreign call, the only
//! `unsafe` of this crate. The symbol is looked up in the library that GStreamer's plugin has loaded, so that building needs
//! no headers of libnice.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};

use gstreamer::glib;
use gstreamer::glib::prelude::*;

/// `gboolean nice_agent_restart_stream (NiceAgent *agent, guint stream_id)`, since libnice 0.1.6.
type RestartStream = unsafe extern "C" fn(*mut c_void, c_uint) -> c_int;

/// webrtcbin bundles everything into the agent's first stream.
const STREAM: c_uint = 1;

/// Forgets the remote side of `agent`'s stream, so that new credentials and candidates start new checks.
///
/// # Errors
/// In words: libnice is not the one that GStreamer loaded, or it refused.
pub(super) fn restart_stream(agent: &glib::Object) -> Result<(), &'static str> {
    if agent.type_().name() != "NiceAgent" {
        return Err("the ICE agent is not libnice's");
    }
    let Some(nice) = Library::loaded() else { return Err("libnice.so.10 is not loaded") };
    let Some(restart) = nice.restart_stream() else { return Err("libnice has no nice_agent_restart_stream") };
    // SAFETY: `agent` is a NiceAgent (checked above) that is borrowed, hence alive, for the whole call; the function takes the
    // agent's own lock and keeps no pointer; `nice` is open until the end of the scope.
    let done = unsafe { restart(agent.as_ptr().cast(), STREAM) };
    if done == 0 { Err("libnice refused to restart the stream") } else { Ok(()) }
}

struct Library(*mut c_void);

impl Library {
    /// A handle to libnice if the process has it already; never loads a second one.
    fn loaded() -> Option<Library> {
        // SAFETY: the name is a C string; RTLD_NOLOAD runs no initialiser.
        let handle = unsafe { libc::dlopen(c"libnice.so.10".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Library(handle))
    }

    fn restart_stream(&self) -> Option<RestartStream> {
        // SAFETY: the handle is open and the name is a C string.
        let symbol = unsafe { libc::dlsym(self.0, c"nice_agent_restart_stream".as_ptr()) };
        // SAFETY: an `Option` of a function pointer is null or the function, and libnice.so.10 declares this signature.
        unsafe { std::mem::transmute::<*mut c_void, Option<RestartStream>>(symbol) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle came from dlopen and is closed once. It only counts down: the plugin holds the library open.
        unsafe { libc::dlclose(self.0) };
    }
}
