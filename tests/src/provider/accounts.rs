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

/// A connection that was one too many.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) at: Instant,
    pub(super) number: u64,
    /// The connections that were open.
    pub(super) beside: Vec<u64>,
}

#[derive(Default)]
struct Tally {
    open: Vec<Open>,
    peak: usize,
    refusals: Vec<Refusal>,
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
    // What came while another thread was writing waits until that has let go of the socket; whoever sets an option waits with it.
    let _ = socket.set_nodelay(true);
    let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
    let answered = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    answered.is_err() || asked[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

impl Counter {
    pub(super) fn new(limits: Vec<usize>, late: Duration) -> Counter {
        let tallies = limits.iter().map(|_| Tally::default()).collect();
        Counter { tallies: Mutex::new(tallies), limits, late }
    }

    /// Counts a socket, once; false if there is no room for it. One whose peer has closed meanwhile, before it was looked at, was over
    /// when what its peer opened then came: it is never counted beside that.
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
        if is_gone(socket) {
            return false;
        }
        let (asked, limit) = (tally.open.len() + 1, self.limits[account]);
        tally.peak = tally.peak.max(asked);
        if limit > 0 && asked > limit {
            let beside = tally.open.iter().map(|open| open.number).collect();
            tally.refusals.push(Refusal { at: Instant::now(), number, beside });
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
        Count { open: tally.open.len(), peak: tally.peak, refused: tally.refusals.len() }
    }

    pub(super) fn refusals(&self, account: usize) -> Vec<Refusal> {
        self.tallies.lock().unwrap()[account].refusals.clone()
    }

    /// From now on the most is what there is now.
    pub(super) fn forget(&self) {
        for tally in self.tallies.lock().unwrap().iter_mut() {
            self.prune(tally);
            tally.peak = tally.open.len();
            tally.refusals.clear();
        }
    }
}
