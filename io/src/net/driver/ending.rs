//! The end of connections, and of all of them.

use std::io::ErrorKind;
use std::time::Duration;

use super::{Driver, Ended, Media, READS, Report, Serve, SocketId, Stage, Sys};

/// How long the peer of a connection that we ended may take to end it too. Without that, what it still sends would be
/// answered with a reset, which takes back what it has not read yet (RFC 9112 §9.6).
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// How many bytes are read and thrown away for that.
pub(super) const LINGER_BYTES: usize = 256 * 1024;
/// How many sockets linger; beyond that the oldest is closed. Those whose peer ended at once count too, until `LINGER` is
/// over: enough for 2000 a second.
pub(super) const LINGERING: usize = 4096;

impl<S: Sys, M: Media, P: Serve> Driver<S, M, P> {
    /// A connection is over: says so to the peer, then waits a little for it to say the same.
    pub(super) fn finish(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get_mut(id) else { return };
        entry.stage = Stage::Flushing;
        entry.socket.end();
        if self.lingering.len() == LINGERING
            && let Some((_, oldest)) = self.lingering.pop_front()
        {
            self.close(oldest);
        }
        self.lingering.push_back((self.now + LINGER, id));
        self.end(id);
    }

    pub(super) fn end(&mut self, id: SocketId) {
        let Some(entry) = self.sockets.get_mut(id) else { return };
        if entry.socket.flush(&mut self.sys).is_err() || entry.hung_up {
            return self.close(id);
        }
        if !entry.socket.is_flushed() {
            return;
        }
        if entry.ended || entry.socket.shutdown(&mut self.sys).is_err() {
            return self.close(id);
        }
        entry.stage = Stage::Lingering(LINGER_BYTES);
        self.discard(id);
    }

    pub(super) fn discard(&mut self, id: SocketId) {
        for _ in 0..READS {
            let Some(entry) = self.sockets.get_mut(id) else { return };
            let Stage::Lingering(left) = &mut entry.stage else { return };
            match entry.socket.read(&mut self.sys, &mut self.buffer) {
                Ok(length) if length > 0 && length < *left => *left -= length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => return self.close(id),
            }
        }
        self.enqueue(id);
    }

    pub(super) fn is_drained(&self) -> bool {
        self.server.is_drained() && self.sockets.is_empty()
    }

    /// How it ended, if it did; closes what is left then.
    pub(super) fn over(&mut self) -> Option<Ended> {
        let until = self.ending?;
        let ended = if self.forced {
            Ended::Forced
        } else if self.is_drained() {
            Ended::Drained
        } else if until <= self.now {
            Ended::TimedOut
        } else {
            return None;
        };
        if ended != Ended::Drained {
            (self.report)(Report::CutShort(self.sockets.len()));
        }
        let left: Vec<SocketId> = self.sockets.iter().map(|(id, _)| id).collect();
        for id in left {
            self.close(id);
        }
        Some(ended)
    }
}
