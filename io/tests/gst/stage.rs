//! `Sessions` with a loop around it that waits as the real one does: woken by the bell, up to a deadline.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::config::Media;
use holdfast_core::input::{EndReason, SessionId};
use holdfast_io::gst::{AudioCodec, Options, Sessions};
use holdfast_io::media::{Activity, MediaCommand, MediaEvent, SessionSettings, Unit};
use holdfast_io::sdp::Offer;

/// Generous: the machine may be busy. A passing test waits for none of it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Threads and descriptors are counted per process, and encoders need the machine: one test at a time.
static SERIAL: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

pub struct Stage {
    pub sessions: Sessions,
    /// `Time::ZERO` of the driver.
    pub epoch: Instant,
    bell: Arc<Bell>,
    generation: u32,
    _alone: MutexGuard<'static, ()>,
}

/// One session on the stage.
pub struct Seat {
    pub id: SessionId,
    pub activity: Arc<Activity>,
}

impl Stage {
    pub fn new(audio: AudioCodec) -> Stage {
        let alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let bell = Arc::new(Bell::default());
        let ringer = Arc::clone(&bell);
        let wake = move || {
            *ringer.rung.lock().unwrap() = true;
            ringer.changed.notify_one();
        };
        let epoch = Instant::now();
        let sessions = Sessions::new(Options {
            epoch,
            addresses: vec!["127.0.0.1".parse().unwrap()],
            ports: None,
            stun: None,
            turn: Vec::new(),
            audio,
            queue: 1000,
            wake: Arc::new(wake),
        });
        Stage { sessions: sessions.unwrap(), epoch, bell, generation: 0, _alone: alone }
    }

    pub fn start(&mut self, offer: &str) -> Seat {
        let id = SessionId::from_parts(0, self.generation);
        self.generation += 1;
        let activity = Arc::new(Activity::default());
        self.sessions.command(MediaCommand::Start {
            session: id,
            offer: Box::new(Offer::check(offer.as_bytes(), Media::AudioVideo).unwrap()),
            activity: Arc::clone(&activity),
            settings: SessionSettings { jitter: Duration::from_millis(50), max_video_bitrate: 2_000_000 },
        });
        Seat { id, activity }
    }

    /// The next event, if one comes within `patience`.
    pub fn next(&mut self, patience: Duration) -> Option<MediaEvent> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(event) = self.sessions.poll() {
                return Some(event);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let rung = self.bell.rung.lock().unwrap();
            let (mut rung, _) = self.bell.changed.wait_timeout_while(rung, left, |rung| !*rung).unwrap();
            *rung = false;
        }
    }

    /// The first event that `wanted` makes something of; all before it are passed over.
    pub fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(MediaEvent) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.next(left).unwrap_or_else(|| panic!("waited in vain for {what}"));
            if let MediaEvent::Failed { why, .. } = &event {
                panic!("{why}, while waiting for {what}");
            }
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    pub fn answer(&mut self, seat: &Seat) -> String {
        self.until("the answer", |event| match event {
            MediaEvent::Answered { session, answer } if session == seat.id => Some(answer),
            _ => None,
        })
    }

    pub fn unit(&mut self, what: &str, mut wanted: impl FnMut(&Unit) -> bool) -> Unit {
        self.until(what, |event| match event {
            MediaEvent::Unit(unit) if wanted(&unit) => Some(unit),
            _ => None,
        })
    }

    pub fn end(&mut self, seat: &Seat) -> EndReason {
        self.until("the end", |event| match event {
            MediaEvent::Ended { session, reason } if session == seat.id => Some(reason),
            _ => None,
        })
    }

    pub fn finish(&mut self, seat: &Seat) {
        self.sessions.command(MediaCommand::Finish { session: seat.id });
        self.gone(seat);
    }

    pub fn gone(&mut self, seat: &Seat) {
        self.until("Gone", |event| match event {
            MediaEvent::Gone { session } if session == seat.id => Some(()),
            _ => None,
        });
    }

    /// Everything that comes within `span`.
    pub fn collect(&mut self, span: Duration) -> Vec<MediaEvent> {
        let deadline = Instant::now() + span;
        std::iter::from_fn(|| self.next(deadline.saturating_duration_since(Instant::now()))).collect()
    }
}

/// Threads and open descriptors of this process.
pub fn resources() -> (usize, usize) {
    let count = |directory| std::fs::read_dir(directory).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// Waits until no more threads and descriptors are there than at `base`: pools let their idle threads go after a while. One thread
/// more may be the next test, which the harness starts meanwhile; a leak of one per round shows all the same.
pub fn settles_at(base: (usize, usize)) {
    let deadline = Instant::now() + PATIENCE;
    let never = (Mutex::new(()), Condvar::new());
    loop {
        let (threads, descriptors) = resources();
        if threads <= base.0 + 1 && descriptors <= base.1 {
            return;
        }
        assert!(Instant::now() < deadline, "{threads} threads and {descriptors} descriptors, at first {base:?}");
        let guard = never.0.lock().unwrap();
        drop(never.1.wait_timeout(guard, Duration::from_millis(20)).unwrap());
    }
}
