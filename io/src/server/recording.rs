//! How does the journal leave the process? Whole, for somebody who asks; bit by bit, for a file that outlives it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::config::Config;
use holdfast_core::journal::{Fresh, Head, Mark, Recorded};
use holdfast_core::time::Time;

use super::connection::Produce;
use super::{Action, Recording, Server};

/// How long what was recorded may wait for its way out of the process.
const SPOOL: Duration = Duration::from_secs(1);

/// A part of the journal, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A segment begins: what follows is read without what came before it, behind `head`.
    Segment {
        /// What every journal of this run begins with.
        head: Bytes,
        /// Whether something was left out just before it: it can follow nothing else then.
        gap: bool,
    },
    /// The next bytes.
    Frame(Bytes),
    /// The next bytes as they are so far: whatever comes next takes their place.
    Open(Bytes),
}

/// Why there is no journal to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoJournal {
    /// None is kept.
    Off,
    /// Somebody else is being sent it: it is kept for that long, beside the one that goes on.
    Busy,
}

/// How far the journal was handed out.
#[derive(Debug, Default)]
pub(super) struct Spool {
    is_wanted: bool,
    mark: Mark,
    /// When more is to be handed out; `None` while there is nothing.
    due: Option<Time>,
    /// What somebody is being sent.
    sent: Weak<()>,
}

impl Spool {
    pub fn new(recording: &Recording) -> Self {
        Spool { is_wanted: matches!(recording, Recording::Ring { spool: true, .. }), ..Spool::default() }
    }

    pub fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// The core was called.
    pub fn called(&mut self, now: Time) {
        if self.due.is_none() && self.is_wanted {
            self.due = Some(now + SPOOL);
        }
    }
}

/// An edge whose calls are written down as was wished.
pub(super) fn edge(config: Config, recording: &Recording) -> Recorded {
    match recording {
        Recording::Off => Recorded::off(config),
        Recording::Whole => Recorded::on(config),
        Recording::Ring { size, head, .. } => Recorded::ring(Head { config, ..Head::clone(head) }, *size),
    }
}

impl Server {
    pub(crate) fn keeps_journal(&self) -> bool {
        self.settings.recording != Recording::Off
    }

    /// The journal as it is now, for one at a time.
    pub(crate) fn download(&mut self) -> Result<Download, NoJournal> {
        if self.spool.sent.strong_count() > 0 {
            return Err(NoJournal::Busy);
        }
        let pieces = self.edge.pieces().ok_or(NoJournal::Off)?.into();
        let sent = Arc::new(());
        self.spool.sent = Arc::downgrade(&sent);
        Ok(Download { pieces, _sent: sent })
    }

    /// What of the journal was not yet asked to be recorded: said when the process ends.
    pub fn unrecorded(&self) -> Vec<Piece> {
        if self.spool.is_wanted { self.pieces().0 } else { Vec::new() }
    }

    /// Hands out what was recorded since the last time, each second in which there is something.
    pub(super) fn spool(&mut self, now: Time) {
        if self.spool.due.is_some_and(|due| due <= now) {
            self.spool.due = None;
            let (pieces, mark) = self.pieces();
            self.spool.mark = mark;
            self.actions.extend(pieces.into_iter().map(Action::Record));
        }
    }

    fn pieces(&self) -> (Vec<Piece>, Mark) {
        let mut pieces = Vec::new();
        let mark = self.edge.since(self.spool.mark, |fresh| {
            pieces.push(match fresh {
                Fresh::Segment { head, gap } => Piece::Segment { head, gap },
                Fresh::Frame(bytes) => Piece::Frame(bytes),
                Fresh::Open(bytes) => Piece::Open(bytes),
            });
        });
        (pieces, mark)
    }
}

/// A journal on its way to somebody. Nothing is copied before it goes: that would take the loop's time.
pub(crate) struct Download {
    pieces: VecDeque<Bytes>,
    _sent: Arc<()>,
}

impl Produce for Download {
    fn produce(&mut self, piece: &mut Vec<u8>, about: usize) -> bool {
        while piece.len() < about
            && let Some(next) = self.pieces.front_mut()
        {
            piece.extend_from_slice(&next.split_to(next.len().min(about - piece.len())));
            if next.is_empty() {
                self.pieces.pop_front();
            }
        }
        !self.pieces.is_empty()
    }
}
