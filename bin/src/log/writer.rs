//! The thread that writes the log.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::config::Format;

/// Lines that may wait: some MiB at most, and more than a start or a drain of thousands of viewers says at once.
const QUEUE: usize = 8192;
/// How long the end of the program waits for the rest of the log.
const LAST: Duration = Duration::from_secs(1);

/// The thread; dropped, it writes what is left.
pub(super) struct Writer {
    shared: Arc<Shared>,
    sender: SyncSender<Vec<u8>>,
    ended: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    ending: AtomicBool,
    lost: AtomicU64,
}

impl Writer {
    /// Starts it. What is written to a [`Lines`] goes to `out`.
    pub(super) fn start(format: Format, out: impl Write + Send + 'static) -> (Writer, Lines) {
        let (sender, lines) = sync_channel(QUEUE);
        let (end, ended) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let lines_end = Lines { shared: shared.clone(), sender: sender.clone() };
        let thread = {
            let shared = shared.clone();
            move || {
                write_all(&lines, &shared, format, out);
                let _ = end.send(());
            }
        };
        // Without a thread there is no log, and nobody who could be told.
        let _ = thread::Builder::new().name(String::from("log")).spawn(thread);
        (Writer { shared, sender, ended }, lines_end)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.ending.store(true, Relaxed);
        // Wakes a thread that has nothing to write; one whose queue is full is awake.
        let _ = self.sender.try_send(Vec::new());
        // A standard error that takes nothing must not keep the program.
        let _ = self.ended.recv_timeout(LAST);
    }
}

fn write_all(lines: &Receiver<Vec<u8>>, shared: &Shared, format: Format, mut out: impl Write) {
    loop {
        let ending = shared.ending.load(Relaxed);
        let line = if ending { lines.try_recv().ok() } else { lines.recv().ok() };
        let Some(line) = line else { break };
        // A standard error that is closed is no reason to stop; nothing can be said about it.
        let _ = out.write_all(&line);
        match shared.lost.swap(0, Relaxed) {
            0 => {}
            lost => drop(out.write_all(lost_line(format, lost).as_bytes())),
        }
    }
    let _ = out.flush();
}

fn lost_line(format: Format, lost: u64) -> String {
    let sentence = format!("{lost} lines of the log are lost here: standard error took them too slowly");
    match format {
        Format::Text => format!("WARN {sentence}\n"),
        Format::Json => format!("{{\"level\":\"WARN\",\"message\":\"{sentence}\"}}\n"),
    }
}

/// Where the log's lines are put; never blocks.
#[derive(Clone)]
pub(super) struct Lines {
    shared: Arc<Shared>,
    sender: SyncSender<Vec<u8>>,
}

impl Write for Lines {
    /// One call is one line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.sender.try_send(line.to_vec()) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.lost.fetch_add(1, Relaxed);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Lines;

    fn make_writer(&'w self) -> Lines {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::*;

    /// Takes the first line only when the gate is passed.
    struct Slow {
        gate: Arc<Barrier>,
        written: Arc<Mutex<Vec<u8>>>,
        first: bool,
    }

    impl Write for Slow {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.first, false) {
                self.gate.wait();
                self.gate.wait();
            }
            self.written.lock().expect("no panic while locked").extend_from_slice(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_reader_stops_nobody_and_what_it_missed_is_counted() {
        let (gate, written) = (Arc::new(Barrier::new(2)), Arc::new(Mutex::new(Vec::new())));
        let slow = Slow { gate: gate.clone(), written: written.clone(), first: true };
        let (writer, mut lines) = Writer::start(Format::Text, slow);
        lines.write_all(b"first\n").expect("never fails");
        gate.wait();
        // The thread holds the first line; its queue is empty.
        for _ in 0..QUEUE + 5 {
            lines.write_all(b"more\n").expect("never fails");
        }
        gate.wait();
        drop(writer);
        let text = String::from_utf8(written.lock().expect("no panic while locked").clone()).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "first");
        assert_eq!(lines[1], "WARN 5 lines of the log are lost here: standard error took them too slowly");
        assert_eq!(lines.len(), QUEUE + 2);
    }

    #[test]
    fn what_is_left_is_written_at_the_end() {
        let (gate, written) = (Arc::new(Barrier::new(2)), Arc::new(Mutex::new(Vec::new())));
        let (writer, mut lines) = Writer::start(Format::Text, Slow { gate, written: written.clone(), first: false });
        for _ in 0..100 {
            lines.write_all(b"line\n").expect("never fails");
        }
        drop(writer);
        assert_eq!(written.lock().expect("no panic while locked").len(), 500);
    }

    #[test]
    fn a_lost_line_is_json_in_a_log_of_json() {
        assert!(lost_line(Format::Json, 3).starts_with("{\"level\":\"WARN\",\"message\":\"3 lines"));
    }
}
