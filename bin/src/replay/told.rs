//! Which lines are printed, and what is left at the end?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use holdfast_core::config::Config;
use holdfast_core::edge::Edge;
use holdfast_core::input::Input;
use holdfast_core::journal::{Digest, Head, JournalFault, Step};
use holdfast_core::time::Time;
use jiff::Timestamp;

use super::finding::Judged;
use super::parts::Lost;
use super::{Failed, Replay, words};
use crate::config::{self, Account, Provider, Settings};

/// Prints one call after another.
pub(super) struct Told<'a, W> {
    out: &'a mut W,
    failed: Option<io::Error>,
    asked: &'a Replay,
    /// Who is there is looked at in this call alone: that takes as long as a hundred calls where there are many.
    ends: u64,
    /// Names, as the log wants them.
    settings: Settings,
    /// Wall-clock time of [`Time::ZERO`] in µs.
    started: Option<u64>,
    first: Option<Time>,
    last: Time,
    /// The first call that there is.
    from: u64,
    calls: u64,
    /// How many of them were before `--until`.
    told: u64,
    /// The day of the last line.
    day: String,
    flow: Flow,
    left: Vec<String>,
    over: bool,
    /// The one call that is asked for, and whether it was there.
    wanted: Option<u64>,
    found: bool,
}

/// What is not told one by one.
#[derive(Default)]
struct Flow {
    calls: u64,
    came: u64,
    went: u64,
}

impl<'a, W: Write> Told<'a, W> {
    /// `ends` is the last call that is told of.
    pub fn new(head: &Head, ends: u64, asked: &'a Replay, out: &'a mut W) -> Self {
        let mut told = Told {
            out,
            failed: None,
            asked,
            ends,
            settings: settings(&head.config),
            started: head.started,
            first: None,
            last: Time::ZERO,
            from: 0,
            calls: 0,
            told: 0,
            day: String::new(),
            flow: Flow::default(),
            left: Vec::new(),
            over: false,
            wanted: asked.grep.as_ref().and_then(|text| text.trim().strip_prefix('#')?.parse().ok()),
            found: false,
        };
        let mut from = String::from("Holdfast");
        if !head.version.is_empty() {
            let _ = write!(from, " {}", head.version);
        }
        if !head.commit.is_empty() {
            let _ = write!(from, " ({})", head.commit);
        }
        match (head.started.and_then(timestamp), head.seed) {
            (Some(started), _) => drop(write!(from, ", started {}", started.strftime("%Y-%m-%d %H:%M:%S UTC"))),
            (None, Some(seed)) => drop(write!(from, ", simulated from seed {seed}")),
            (None, None) => {}
        }
        if !asked.quiet {
            told.line(&from);
        }
        told
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// What matters most is said before all that may be told.
    pub fn begin(&mut self, judged: &Judged) {
        if let (Judged::Broken(finding), false) = (judged, self.asked.quiet) {
            self.line(&format!("FINDING: {}", finding.line));
        }
    }

    pub fn step(&mut self, step: &Step<'_>) {
        if step.call == self.ends {
            self.left = left(step.edge, &self.settings);
        }
        let first = *self.first.get_or_insert_with(|| {
            self.from = step.call;
            step.now
        });
        self.calls = step.call;
        self.last = step.now;
        self.over |= self.asked.until.is_some_and(|until| step.now.since(first) > until);
        if self.over || self.failed.is_some() {
            return;
        }
        self.told += 1;
        let input = words::input(step.input, &self.settings);
        let outputs: Vec<String> = step.outputs.iter().filter_map(|one| words::output(one, &self.settings)).collect();
        let called = self.wanted == Some(step.call);
        self.found |= called;
        self.flow.add(step.input);
        if self.asked.quiet || !called && input.is_none() && outputs.is_empty() {
            return;
        }
        let input = input.unwrap_or_else(|| match called {
            // Whoever asks for one call wants to know all that is known of it.
            true => words::flow(step.input, &self.settings),
            false => due(step.input).to_owned(),
        });
        if let Some(text) = &self.asked.grep {
            let text = text.to_lowercase();
            if !called && !std::iter::once(&input).chain(&outputs).any(|line| line.to_lowercase().contains(&text)) {
                return;
            }
        }
        self.flush();
        let head = format!("{} {:>12}  #{:<7} ", self.clock(step.now), since(step.now.since(first)), step.call);
        self.line(&format!("{head}{input}"));
        let indent = " ".repeat(head.len());
        for output in outputs {
            self.line(&format!("{indent}→ {output}"));
        }
    }

    /// What comes now is behind calls that are lost.
    pub fn lost(&mut self, lost: &Lost) {
        if !self.asked.quiet {
            self.flush();
            if !self.over {
                self.line(&format!("  … {lost}"));
            }
        }
        if let Some((until, _)) = lost.until {
            self.calls = until;
        }
    }

    /// What is left of all that; what was `lost` between two calls.
    pub fn end(mut self, played: Result<&Digest, &Failed>, lost: &[Lost], judged: &Judged) -> io::Result<()> {
        let digest = played.ok();
        if !self.asked.quiet {
            self.flush();
        }
        if let (Some(wanted), false, Some(_)) = (self.wanted, self.found, self.first) {
            let (from, to) = (self.from, self.calls);
            let until = if self.over { " up to --until" } else { "" };
            self.line(&format!("call {wanted} is not among those that can be told{until}: {from} to {to}"));
        }
        if digest.is_none() && self.first.is_none() {
            // Not even one call is known.
            return self.failed.map_or(Ok(()), Err);
        }
        let lasted = self.first.map(|first| self.last.since(first)).unwrap_or_default();
        let calls = self.calls;
        self.line(&match digest {
            Some(digest) if !lost.is_empty() => {
                format!("{calls} calls in {}; those that are not lost repeat; digest {digest}", since(lasted))
            }
            Some(digest) if calls == 1 => format!("1 call in {}; it repeats; digest {digest}", since(lasted)),
            Some(digest) => format!("{calls} calls in {}; they repeat; digest {digest}", since(lasted)),
            None => format!("{calls} calls in {} before what is wrong", since(lasted)),
        });
        if let Err(Failed::Journal(JournalFault::Truncated { .. })) = played {
            self.line("the recording breaks off here: what stands before is judged");
        }
        for lost in lost {
            self.line(&lost.to_string());
        }
        if let Err(Failed::Lost(lost)) = played {
            lost.iter().for_each(|lost| self.line(&lost.to_string()));
        }
        if let Judged::Right(what) = judged {
            self.line(what);
        }
        if self.over {
            self.line(&format!("told up to --until, {} of these calls; what is left is as it was then", self.told));
        }
        let left = std::mem::take(&mut self.left);
        // Of what is cut off nobody knows the end.
        let then = if digest.is_some() { "at the end" } else { "by then" };
        self.line(&if left.is_empty() { format!("{then} nobody is there") } else { format!("{then} there are:") });
        for one in left {
            self.line(&format!("  {one}"));
        }
        // Whoever reads it from its end, or in a pager without the errors, is told, too.
        if let Judged::Broken(finding) = judged {
            self.line(&format!("FINDING: {} is broken in call {}", finding.id, finding.call));
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn line(&mut self, text: &str) {
        if self.failed.is_none()
            && let Err(error) = writeln!(self.out, "{text}")
        {
            self.failed = Some(error);
        }
    }

    /// What flowed since the last line. Among lines that were searched for it would say nothing.
    fn flush(&mut self) {
        let Flow { calls, came, went } = std::mem::take(&mut self.flow);
        if calls > 0 && (came > 0 || went > 0) && self.asked.grep.is_none() {
            let calls = if calls == 1 { String::from("1 call") } else { format!("{calls} calls") };
            self.line(&format!("  … {calls}: {} came in, {} went out", bytes(came), bytes(went)));
        }
    }

    /// The time of the day, where that is known; the day on a line of its own.
    fn clock(&mut self, now: Time) -> String {
        let Some(time) = self.started.and_then(|started| timestamp(started.saturating_add(now.as_micros()))) else {
            return since(now.since(Time::ZERO));
        };
        let day = time.strftime("%Y-%m-%d (UTC)").to_string();
        if self.day != day {
            self.line(&day);
            self.day = day;
        }
        time.strftime("%H:%M:%S%.3f").to_string()
    }
}

impl Flow {
    fn add(&mut self, input: &Input) {
        let (came, went) = words::media(input);
        self.calls += 1;
        self.came += came;
        self.went += went;
    }
}

/// What an input is called that is worth a line for what was done alone.
pub(super) fn due(input: &Input) -> &'static str {
    match input {
        Input::Tick => "something is due",
        Input::Media { .. } | Input::Arrived { .. } => "media comes",
        Input::Sent { .. } => "a viewer has taken bytes",
        Input::Playlist { .. } | Input::Polled { .. } => "a viewer polls",
        Input::Forwarded { .. } => "media of a title flows",
        Input::Released { .. } => "a session is released",
        _ => "something happens",
    }
}

/// Who is there, in words.
fn left(edge: &Edge, settings: &Settings) -> Vec<String> {
    let mut left = Vec::new();
    for (own, state) in settings.core.endpoints.iter().zip(edge.publish().endpoints()) {
        for (slot, holder) in state.holders().enumerate() {
            if let Some(session) = holder {
                left.push(format!("endpoint \"{}\" slot {}: session {session}", own.name, slot + 1));
            }
        }
        if state.waiting() > 0 {
            left.push(format!("endpoint \"{}\": {} who wait for a slot", own.name, state.waiting()));
        }
    }
    for (own, state) in settings.core.channels.iter().zip(edge.pull().states()) {
        if let Some((source, index)) = state.kept {
            left.push(format!("channel \"{}\": source {source}, its source {}", own.name, index + 1));
        }
    }
    if edge.feeds().viewer_count() > 0 {
        left.push(format!("viewers: {}", edge.feeds().viewer_count()));
    }
    let mut playbacks: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, playback) in edge.playback().playbacks() {
        *playbacks.entry(playback.viewing.user.0).or_default() += 1;
    }
    for (user, count) in playbacks {
        let name = settings.core.users.get(user as usize).map_or("?", |own| own.name.as_str());
        left.push(format!("user \"{name}\": {count} playing"));
    }
    let allocations = edge.accounts().allocations().count();
    if allocations > 0 {
        left.push(format!("connections to providers: {allocations}"));
    }
    left
}

/// As much of a configuration as the log needs for its words. Where sources are, a journal does not say.
pub(super) fn settings(config: &Config) -> Settings {
    let providers = config.providers.iter();
    Settings {
        core: config.clone(),
        origins: Vec::new(),
        providers: providers.clone().map(|own| Provider { name: own.name.clone(), ..Provider::default() }).collect(),
        accounts: providers
            .flat_map(|own| own.accounts.iter().map(|_| Account { provider: own.name.clone(), ..Account::default() }))
            .collect(),
        log: config::Log::default(),
        ..Settings::default()
    }
}

pub(super) fn timestamp(micros: u64) -> Option<Timestamp> {
    Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()
}

pub(super) fn since(span: Duration) -> String {
    format!("+{}.{:06}s", span.as_secs(), span.subsec_micros())
}

fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{} kB", count.div_ceil(1000)),
        count => format!("{}.{} MB", count / 1_000_000, count / 100_000 % 10),
    }
}
