//! Child processes in groups of their own, which report by lines of JSON and die with the test.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

/// How long the last lines of a process that has ended may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One line, with the moment it was read.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it was read.
    pub at: Instant,
    /// Its text, without the line's end.
    pub text: String,
}

impl Line {
    /// The line as JSON; `Null` if it is something else.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
}

#[derive(Default)]
struct Output {
    lines: Vec<Line>,
    open: usize,
}

/// A running child and everything it has said so far, standard output and error together.
pub struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<(Mutex<Output>, Condvar)>,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` in a process group of its own.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(name: &str, mut command: Command) -> Process {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let output = Arc::new((Mutex::new(Output { open: 2, ..Output::default() }), Condvar::new()));
        for pipe in [
            Box::new(child.stdout.take().expect("piped")) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().expect("piped")),
        ] {
            let output = Arc::clone(&output);
            std::thread::spawn(move || read_lines(pipe, &output));
        }
        let stdin = child.stdin.take();
        Process { name: name.to_owned(), child, stdin, output, status: None }
    }

    /// Its process id, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid is an i32")).expect("a pid is not 0")
    }

    /// Writes one line to its standard input.
    ///
    /// # Panics
    /// When it does not read any more.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        let told = stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush());
        if told.is_err() {
            panic!("{} does not read its input any more:\n{}", self.name, self.log());
        }
    }

    /// Everything it has said.
    pub fn lines(&self) -> Vec<Line> {
        self.output.0.lock().unwrap().lines.clone()
    }

    /// Everything it has said, as one text.
    pub fn log(&self) -> String {
        let lines: Vec<String> = self.lines().into_iter().map(|line| line.text).collect();
        lines.join("\n")
    }

    /// The first line, of those it has said and will say, for which `wanted` gives something.
    ///
    /// # Panics
    /// After `limit`, or when it ends without such a line.
    pub fn find<T>(&self, what: &str, limit: Duration, mut wanted: impl FnMut(&Line) -> Option<T>) -> T {
        let start = Instant::now();
        let (lock, changed) = &*self.output;
        let mut output = lock.lock().unwrap();
        let mut seen = 0;
        loop {
            while seen < output.lines.len() {
                if let Some(found) = wanted(&output.lines[seen]) {
                    return found;
                }
                seen += 1;
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() || output.open == 0 {
                let why = if output.open == 0 { "it ended" } else { "time is over" };
                drop(output);
                panic!("{}: no {what} within {limit:?} ({why}). It said:\n{}", self.name, self.log());
            }
            output = changed.wait_timeout(output, left).unwrap().0;
        }
    }

    /// The first JSON line whose `event` is `name`.
    ///
    /// # Panics
    /// After `limit`, or when it ends without one.
    pub fn event(&self, name: &str, limit: Duration) -> (Instant, Value) {
        self.find(name, limit, |line| {
            let value = line.json();
            (value["event"] == name).then_some((line.at, value))
        })
    }

    /// How long its threads that still run have run on a processor, together.
    ///
    /// # Panics
    /// When it has ended.
    pub fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("the process lives");
        let own = threads.flatten().filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(own.sum())
    }

    /// Sends a signal to it and its children.
    pub fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            // It may have ended by itself meanwhile; then there is nobody to tell.
            let _ = kill_process_group(self.group(), signal);
        }
    }

    /// SIGKILL to the whole group: nothing of it gets to say goodbye. Returns when it is gone.
    pub fn kill(&mut self) -> Instant {
        if self.status.is_none() {
            let _ = kill_process_group(self.group(), Signal::KILL);
            let at = Instant::now();
            self.status = self.child.wait().ok();
            return at;
        }
        Instant::now()
    }

    /// How it ended, if it did. What it said until then has been read, unless a child of its own holds its output open.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("a child can be waited for");
            if self.status.is_some() {
                let (lock, changed) = &*self.output;
                let open = changed.wait_timeout_while(lock.lock().unwrap(), LAST_WORDS, |output| output.open > 0);
                drop(open.unwrap());
            }
        }
        self.status
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// After `limit`.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(start.elapsed() < limit, "{} has not ended within {limit:?}. It said:\n{}", self.name, self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let lines: VecDeque<String> = self.lines().into_iter().map(|line| line.text).collect();
            let skipped = lines.len().saturating_sub(60);
            eprintln!("--- {} said (last {} lines):", self.name, lines.len() - skipped);
            for line in lines.iter().skip(skipped) {
                eprintln!("  {line}");
            }
        }
    }
}

fn read_lines(pipe: Box<dyn Read + Send>, output: &(Mutex<Output>, Condvar)) {
    let mut reader = BufReader::new(pipe);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes).unwrap_or(0);
        let mut output_now = output.0.lock().unwrap();
        if read == 0 {
            output_now.open -= 1;
            output.1.notify_all();
            return;
        }
        let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        output_now.lines.push(Line { at: Instant::now(), text });
        output.1.notify_all();
    }
}

/// What a process holds, from /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Threads.
    pub threads: usize,
    /// Open descriptors.
    pub descriptors: usize,
    /// Resident memory in kB.
    pub resident: u64,
}

impl Holdings {
    /// Of the process `pid`, now.
    ///
    /// # Panics
    /// When there is no such process.
    pub fn of(pid: u32) -> Holdings {
        let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).expect("the process lives").count();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .expect("VmRSS is a number");
        Holdings { threads: count("task"), descriptors: count("fd"), resident }
    }
}
