//! What a provider counts: its open sockets, by account.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a provider has counted for one of its accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Sockets that are open now, or that it counts for a while longer.
    pub open: usize,
    /// The most that there were at once, refused ones included.
    pub peak: usize,
    /// How many it refused since there was no room.
    pub refused: usize,
}

/// A socket, known by the number of its connection.
struct Open {
    number: u64,
    socket: Arc<TcpStream>,
    gone: Option<Instant>,
}

#[derive(Default)]
struct Tally {
    open: Vec<Open>,
    peak: usize,
    refused: usize,
}

pub(super) struct Counter {
    tallies: Mutex<Vec<Tally>>,
    /// 0 = any number.
    limits: Vec<usize>,
    late: Duration,
}

/// Whether the peer has closed. It asks the kernel, whatever was not read yet: what was closed before a new connection was made is
/// never counted beside it.
pub(super) fn is_gone(socket: &TcpStream) -> bool {
    let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
    let answered = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    answered.is_err() || asked[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

impl Counter {
    pub(super) fn new(limits: Vec<usize>, late: Duration) -> Counter {
        let tallies = limits.iter().map(|_| Tally::default()).collect();
        Counter { tallies: Mutex::new(tallies), limits, late }
    }

    /// Counts a socket, once; false if there is no room for it.
    pub(super) fn admit(&self, account: usize, number: u64, socket: &Arc<TcpStream>) -> bool {
        let mut tallies = self.tallies.lock().unwrap();
        for (index, tally) in tallies.iter_mut().enumerate() {
            self.prune(tally);
            if index != account {
                tally.open.retain(|open| open.number != number);
            }
        }
        let tally = &mut tallies[account];
        if tally.open.iter().any(|open| open.number == number) {
            return true;
        }
        let (asked, limit) = (tally.open.len() + 1, self.limits[account]);
        tally.peak = tally.peak.max(asked);
        if limit > 0 && asked > limit {
            tally.refused += 1;
            return false;
        }
        tally.open.push(Open { number, socket: Arc::clone(socket), gone: None });
        true
    }

    fn prune(&self, tally: &mut Tally) {
        tally.open.retain_mut(|open| {
            if open.gone.is_none() && is_gone(&open.socket) {
                open.gone = Some(Instant::now());
            }
            open.gone.is_none_or(|gone| gone.elapsed() < self.late)
        });
    }

    /// This side has closed.
    pub(super) fn closed(&self, number: u64) {
        for tally in self.tallies.lock().unwrap().iter_mut() {
            for open in tally.open.iter_mut().filter(|open| open.number == number) {
                open.gone.get_or_insert_with(Instant::now);
            }
            self.prune(tally);
        }
    }

    pub(super) fn count(&self, account: usize) -> Count {
        let mut tallies = self.tallies.lock().unwrap();
        let tally = &mut tallies[account];
        self.prune(tally);
        Count { open: tally.open.len(), peak: tally.peak, refused: tally.refused }
    }

    /// From now on the most is what there is now.
    pub(super) fn forget(&self) {
        for tally in self.tallies.lock().unwrap().iter_mut() {
            self.prune(tally);
            (tally.peak, tally.refused) = (tally.open.len(), 0);
        }
    }
}
