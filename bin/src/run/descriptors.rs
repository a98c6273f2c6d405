//! How the files that this process may open are shared out between connections and media.
//!
//! GLib ends the process when it finds no descriptor for a new session. So what sessions need is kept out of reach of
//! connections, of which anybody can open as many as he likes.

use holdfast_io::server::Limits;
use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::Level;

/// For listeners, the log, the event loop, GStreamer's own, a certificate that is read: 9 on a quiet edge.
const OWN: usize = 64;
/// A source that is read and another one that is tried beside it; one of GStreamer's has a loop and two sockets.
const CHANNEL: usize = 16;
/// Beyond what a session was seen to open: one whose media flows may have opened more than one that nobody stands behind.
const MARGIN: usize = 2;
/// Sessions beyond two a slot, of which one is taken down while the next begins.
const SPARE: usize = 4;

/// What is to be shared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// `http.limits.connections`.
    pub connections: usize,
    /// Slots of all endpoints.
    pub slots: usize,
    /// Channels.
    pub channels: usize,
    /// Descriptors that one session opens.
    pub session: usize,
}

/// How it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    pub connections: usize,
    pub sessions: usize,
}

/// Raises the limit of open files as far as this process may; what it is then.
pub(super) fn raise() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit = raised;
        }
    }
    limit.current.map_or(usize::MAX, |current| usize::try_from(current).unwrap_or(usize::MAX))
}

/// Shares out `most` descriptors: sessions and channels first, but no more than half.
pub(super) fn share(most: usize, wanted: Wanted) -> Shares {
    let session = wanted.session + MARGIN;
    let fixed = OWN + wanted.channels * CHANNEL;
    let half = (most / 2).saturating_sub(fixed) / session;
    let sessions = (wanted.slots * 2 + SPARE).min(half).max(1);
    let left = most.saturating_sub(fixed + sessions * session);
    Shares { connections: wanted.connections.min(left).max(1), sessions }
}

/// What an operator should know of it, and how urgently: a number that nobody wrote is nothing to warn of.
pub(super) fn notices(most: usize, wanted: Wanted, shares: Shares) -> Vec<(Level, String)> {
    let mut notices = Vec::new();
    let raise = "raise its limit (LimitNOFILE= in the unit, `ulimit -Hn`)";
    if shares.connections < wanted.connections {
        let system =
            format!("the system allows this process {most} open files, of which the others are kept for media");
        let (taken, connections) = (shares.connections, wanted.connections);
        notices.push(match connections == Limits::default().connections {
            true => (
                Level::INFO,
                format!("{taken} connections are taken at once: {system}; for up to {connections} {raise}"),
            ),
            false => (
                Level::WARN,
                format!(
                    "{taken} connections are taken at once, not {connections} as `http.limits.connections` says: {system}; \
                     {raise} or lower `connections`"
                ),
            ),
        });
    }
    if shares.sessions < wanted.slots {
        let text = format!(
            "{} publishers are taken at once though there are {} slots: the system allows this process {most} open files; {raise}",
            shares.sessions, wanted.slots
        );
        notices.push((Level::WARN, text));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted { connections: 20_000, slots: 1, channels: 1, session: 7 };

    #[test]
    fn where_there_is_enough_everybody_gets_what_is_configured() {
        let shares = share(65_536, WANTED);
        assert_eq!(shares, Shares { connections: 20_000, sessions: 6 });
        assert!(notices(65_536, WANTED, shares).is_empty());
        assert_eq!(share(usize::MAX, WANTED), shares);
    }

    #[test]
    fn what_sessions_and_sources_need_is_out_of_reach_of_connections() {
        let shares = share(1024, WANTED);
        assert_eq!(shares, Shares { connections: 1024 - 64 - 16 - 6 * 9, sessions: 6 });
        let told = notices(1024, WANTED, shares);
        assert_eq!((told.len(), told[0].0), (1, Level::INFO), "nobody wrote 20000");
        let says = |text: &str, parts: &[&str]| parts.iter().all(|part| text.contains(part));
        assert!(says(&told[0].1, &["890 connections", "20000", "1024"]), "{told:?}");

        let wanted = Wanted { connections: 1000, ..WANTED };
        let told = notices(1024, wanted, share(1024, wanted));
        assert_eq!((told.len(), told[0].0), (1, Level::WARN));
        assert!(says(&told[0].1, &["890 connections", "not 1000 as `http.limits.connections` says"]), "{told:?}");
    }

    #[test]
    fn slots_do_not_take_everything_from_connections() {
        let wanted = Wanted { slots: 1000, channels: 0, ..WANTED };
        let shares = share(1024, wanted);
        assert_eq!(shares.sessions, (512 - 64) / 9);
        assert!(shares.connections >= 512 && shares.connections + shares.sessions * 9 + 64 <= 1024);
        let told = &notices(1024, wanted, shares)[1];
        assert!(told.0 == Level::WARN && told.1.contains("1000 slots"), "{told:?}");
        assert_eq!(share(0, wanted), Shares { connections: 1, sessions: 1 });
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let most = raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(limit.current.map_or(usize::MAX, |current| current as usize), most);
    }
}
