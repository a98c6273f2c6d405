//! The way from the media threads to the loop: one queue for what must not be lost, one for media, one bell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use gstreamer_webrtc::WebRTCSessionDescription;
use holdfast_core::input::{EndReason, Loss, SessionId, SourceId};

use crate::media::Unit;

/// Wakes the loop; callable from any thread.
pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;

/// What webrtcbin says to a request, or why it refuses it.
pub(super) type Reply = Result<Option<WebRTCSessionDescription>, String>;

/// What a media thread tells its session's negotiation. A session sends few of them, whatever its peer does.
#[derive(Debug)]
pub(super) enum Signal {
    /// The outstanding request to webrtcbin was answered; with a description if it asked for one.
    Reply(Reply),
    /// All local candidates are known.
    Gathered,
    /// The peer or its transport is gone.
    Ended(EndReason),
    /// ICE could not be restarted.
    NotRestarted(String),
    /// An element gave up.
    Fault(String),
    /// The pipeline was disposed of.
    Gone,
}

/// What a media thread tells of its source. Each is told once at most.
#[derive(Debug)]
pub(super) enum Turn {
    /// The origin agreed to send.
    Opened,
    /// It is of no more use.
    Lost(Loss, String),
}

/// One thing out of the mailbox.
#[derive(Debug)]
pub(super) enum Post {
    Signal(SessionId, Signal),
    Turn(SourceId, Turn),
    Unit(Unit),
    Data(SourceId, Bytes),
}

/// A mailbox whose queue of media holds `media` posts.
pub(super) fn mailbox(media: usize, wake: Wake) -> (Outbox, Inbox) {
    let bell = Arc::new(Bell { rung: AtomicBool::new(false), wake });
    let (signal_sender, signals) = channel();
    let (media_sender, media_receiver) = sync_channel(media.max(1));
    let outbox = Outbox { signals: signal_sender, media: media_sender, bell: Arc::clone(&bell) };
    (outbox, Inbox { signals, media: media_receiver, bell })
}

/// Coalesces wakes: between two looks of the loop at empty queues it is woken once, however many packets come in.
struct Bell {
    rung: AtomicBool,
    wake: Wake,
}

impl Bell {
    fn ring(&self) {
        if !self.rung.swap(true, AcqRel) {
            (self.wake)();
        }
    }
}

/// The media threads' end. Sending neither blocks nor takes a lock.
#[derive(Clone)]
pub(super) struct Outbox {
    signals: Sender<Post>,
    media: SyncSender<Post>,
    bell: Arc<Bell>,
}

impl Outbox {
    /// Never lost while the loop lives.
    pub(super) fn signal(&self, session: SessionId, signal: Signal) {
        self.tell(Post::Signal(session, signal));
    }

    /// Never lost while the loop lives.
    pub(super) fn turn(&self, source: SourceId, turn: Turn) {
        self.tell(Post::Turn(source, turn));
    }

    /// `false` if the queue is full: the unit is lost.
    pub(super) fn unit(&self, unit: Unit) -> bool {
        self.hand_over(Post::Unit(unit))
    }

    /// `false` if the queue is full: the bytes are lost.
    pub(super) fn data(&self, source: SourceId, data: Bytes) -> bool {
        self.hand_over(Post::Data(source, data))
    }

    fn tell(&self, post: Post) {
        if self.signals.send(post).is_ok() {
            self.bell.ring();
        }
    }

    fn hand_over(&self, post: Post) -> bool {
        let taken = self.media.try_send(post).is_ok();
        self.bell.ring();
        taken
    }
}

/// The loop's end.
pub(super) struct Inbox {
    signals: Receiver<Post>,
    media: Receiver<Post>,
    bell: Arc<Bell>,
}

impl Inbox {
    /// The next thing, signals first; `None` arms the bell.
    pub(super) fn next(&self) -> Option<Post> {
        self.look().or_else(|| {
            // The second look is for what was sent after the first and found the bell still rung.
            self.bell.rung.swap(false, AcqRel);
            self.look()
        })
    }

    /// Waits for what is no media: for the time before there is a loop.
    pub(super) fn wait(&self, patience: Duration) -> Option<Post> {
        self.signals.recv_timeout(patience).ok()
    }

    fn look(&self) -> Option<Post> {
        self.signals.try_recv().or_else(|_| self.media.try_recv()).ok()
    }
}

/// One session's line to the loop.
pub(super) struct Line {
    pub(super) session: SessionId,
    pub(super) outbox: Outbox,
    over: AtomicBool,
}

impl Line {
    pub(super) fn new(session: SessionId, outbox: Outbox) -> Self {
        Line { session, outbox, over: AtomicBool::new(false) }
    }

    pub(super) fn send(&self, signal: Signal) {
        self.outbox.signal(self.session, signal);
    }

    /// The end of the session, told once: a peer that says goodbye ten thousand times fills no queue.
    pub(super) fn end(&self, signal: Signal) {
        if !self.over.swap(true, Relaxed) {
            self.send(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use bytes::Bytes;
    use holdfast_core::input::Writer;

    use super::*;
    use crate::codec::Codec;

    fn session() -> SessionId {
        SessionId::from_parts(1, 0)
    }

    fn unit(pts: i64) -> Unit {
        Unit { from: Writer::Session(session()), codec: Codec::Aac, pts, dts: pts, key: true, data: Bytes::new() }
    }

    fn counted(units: usize) -> (Outbox, Inbox, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&wakes);
        let wake = move || {
            counter.fetch_add(1, Relaxed);
        };
        let (outbox, inbox) = mailbox(units, Arc::new(wake));
        (outbox, inbox, wakes)
    }

    #[test]
    fn a_full_unit_queue_refuses_units_but_loses_no_signal() {
        let (outbox, inbox, _) = counted(2);
        assert!(outbox.unit(unit(1)) && outbox.unit(unit(2)));
        assert!(!outbox.unit(unit(3)));
        for _ in 0..100 {
            outbox.signal(session(), Signal::Gathered);
        }
        let posts: Vec<Post> = std::iter::from_fn(|| inbox.next()).collect();
        assert!(posts[..100].iter().all(|post| matches!(post, Post::Signal(_, Signal::Gathered))));
        let pts: Vec<i64> = posts[100..]
            .iter()
            .filter_map(|post| if let Post::Unit(unit) = post { Some(unit.pts) } else { None })
            .collect();
        assert_eq!(pts, [1, 2]);
    }

    #[test]
    fn the_loop_is_woken_once_until_it_saw_empty_queues() {
        let (outbox, inbox, wakes) = counted(8);
        outbox.unit(unit(1));
        outbox.signal(session(), Signal::Gone);
        outbox.unit(unit(2));
        assert_eq!(wakes.load(Relaxed), 1);
        assert!(inbox.next().is_some());
        outbox.unit(unit(3));
        assert_eq!(wakes.load(Relaxed), 1);
        while inbox.next().is_some() {}
        outbox.unit(unit(4));
        assert_eq!(wakes.load(Relaxed), 2);
    }

    #[test]
    fn the_end_is_told_once() {
        let (outbox, inbox, _) = counted(1);
        let line = Line::new(session(), outbox);
        line.end(Signal::Ended(EndReason::Bye));
        line.end(Signal::Fault("late".into()));
        assert!(matches!(inbox.next(), Some(Post::Signal(_, Signal::Ended(EndReason::Bye)))));
        assert!(inbox.next().is_none());
    }
}
