//! `holdfast sim`: developers' sessions with faults, each repeatable from its seed.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::replay::{in_words, span, write_journal, write_page};
use clap::Args;
use holdfast_sim::shrink::{Calls, Patience, Shrunk, run_taped, shrink};
use holdfast_sim::story::Story;
use holdfast_sim::{
    Actor, Failure, Fault, Faults, Options, Report, Witness, record, run_with, scenarios, story, when_stuck,
};

/// Over so many seeds of `random` every fault has to bite and every mark has to be reached.
const ENOUGH: u64 = 2000;

/// Run Holdfast in a simulated world in which things go wrong on purpose.
#[derive(Debug, Args)]
pub struct Sim {
    /// Show the scenarios and the faults, and what each is
    #[arg(long, conflicts_with_all = ["seed", "seeds", "shrink", "journal", "html"])]
    list: bool,
    /// Which scenario
    #[arg(long, default_value = "random")]
    scenario: String,
    /// Which seed; the same seed is the same run
    #[arg(long, default_value_t = 1, conflicts_with = "seeds")]
    seed: u64,
    /// Many seeds, without a trace, as many at a time as there are processors: from the first up to but without the second
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// Faults of `random`: `a,b` these alone, `none`, `-a` the seed's without it, `+a` the seed's and it; `help` shows them
    #[arg(long, value_name = "LIST", value_parser = faults, allow_hyphen_values = true)]
    faults: Option<Chosen>,
    /// Who takes part in `random`, as a shrunk failure names them; `none` for nobody
    #[arg(long, value_name = "LIST", value_parser = cast)]
    actors: Option<Cast>,
    /// After how many ms in `random` nothing goes wrong any more, if not before
    #[arg(long, value_name = "MS")]
    storm: Option<u64>,
    /// Find out what of a failure it takes: which faults, which actors, which calls
    #[arg(long)]
    shrink: bool,
    /// How long --shrink may take; the least that was found by then is shown. A run that was begun is ended
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = span, requires = "shrink")]
    within: Duration,
    /// Write the calls of the run, or what is left of them by --shrink, as a journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// No trace
    #[arg(long)]
    quiet: bool,
    /// Write what happened, or what is left of it by --shrink, as a page for a browser, also where something broke
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

/// Standard output, gathered, which whoever ends the program can still write out.
#[derive(Clone)]
struct Shared(Arc<Mutex<BufWriter<Stdout>>>);

impl Shared {
    fn own(&self) -> MutexGuard<'_, BufWriter<Stdout>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.own().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.own().flush()
    }
}

#[derive(Clone, Debug)]
enum Chosen {
    Help,
    Faults(Faults),
}

type Cast = BTreeSet<Actor>;

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not a range like 0..2000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?;
    if range.is_empty() {
        return Err(format!("there is no seed in `{text}`, which ends before the second number"));
    }
    Ok(range)
}

fn faults(text: &str) -> Result<Chosen, String> {
    if text == "help" { Ok(Chosen::Help) } else { text.parse().map(Chosen::Faults) }
}

fn cast(text: &str) -> Result<Cast, String> {
    if text == "none" { Ok(Cast::new()) } else { text.split(',').map(|name| name.trim().parse()).collect() }
}

impl Sim {
    /// Runs what was asked for; the exit code is 1 where something broke.
    pub fn run(self) -> ExitCode {
        let mut out = Shared(Arc::new(Mutex::new(BufWriter::new(io::stdout()))));
        when_stuck(self.last_words(out.clone()));
        match self.ask(&mut out).and_then(|code| out.flush().map(|()| code)) {
            Ok(code) => code,
            // Whoever read the trace has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cannot write: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// What is said where a call never returns, which ends the program wherever it is.
    fn last_words(&self, mut out: Shared) -> impl FnOnce() -> String + Send + 'static {
        let files: Vec<String> =
            [&self.html, &self.journal].into_iter().flatten().map(|file| file.display().to_string()).collect();
        move || {
            // The last lines of the trace are those that somebody wants to see.
            let _ = out.flush();
            let written = match &files[..] {
                [] => return String::new(),
                [file] => format!("{file} is not written"),
                files => format!("{} are not written", files.join(" and ")),
            };
            format!(
                "{written}: what a run was is written when it is over, and this one never is; its trace tells what was before that call \
                 (the same without --quiet, --html and --journal)"
            )
        }
    }

    fn ask(self, out: &mut impl Write) -> io::Result<ExitCode> {
        let faults = match &self.faults {
            _ if self.list => {
                list_scenarios(out)?;
                return list_faults(out);
            }
            Some(Chosen::Help) => return list_faults(out),
            Some(Chosen::Faults(faults)) => faults.clone(),
            None => Faults::default(),
        };
        let whole = |file: &Option<PathBuf>| file.as_ref().and_then(|file| std::path::absolute(file).ok());
        if self.journal.is_some() && whole(&self.journal) == whole(&self.html) {
            eprintln!("--journal and --html name the same file: give each its own");
            return Ok(ExitCode::from(2));
        }
        if !scenarios().iter().any(|scenario| scenario.name == self.scenario) {
            return fail(&Failure::Unknown { name: self.scenario.clone() }, out);
        }
        let storm = self.storm.map(Duration::from_millis);
        let options = Options { faults, cast: self.actors.clone(), storm, ..Options::default() };
        if let Some(range) = self.seeds.clone() {
            if (self.journal.is_some() || self.html.is_some()) && !self.shrink {
                eprintln!("--journal and --html write one run: name its --seed, or --shrink what fails of --seeds");
                return Ok(ExitCode::from(2));
            }
            return match many(&self.scenario, range, &options, out)? {
                Ok(code) => Ok(code),
                Err(failure) => self.failed(&failure, out),
            };
        }
        if self.shrink {
            return self.shrink(self.seed, &options, out);
        }
        self.one(&options, out)
    }

    fn one(&self, options: &Options, out: &mut impl Write) -> io::Result<ExitCode> {
        let trace = (!self.quiet).then_some(out as &mut dyn Write);
        let (result, story) = match &self.html {
            Some(file) => match record(&self.scenario, self.seed, options, trace, &in_words) {
                Ok((result, story)) => (result, Some((file, story))),
                Err(untold) => {
                    out.flush()?;
                    eprintln!("{untold}");
                    return Ok(ExitCode::FAILURE);
                }
            },
            None => (run_with(&self.scenario, self.seed, options, trace), None),
        };
        // What was found is said, whether it can be written or not.
        let mut written = story.map_or(Ok(()), |(file, story)| page(file, &story));
        if let Some(file) = &self.journal {
            let (_, tapes) = run_taped(&self.scenario, self.seed, options);
            match tapes.first() {
                Some(tape) => written = written.and(write(file, &tape.journal())),
                None if result.is_ok() => eprintln!("{} keeps no journal: nothing is written", self.scenario),
                None => {}
            }
        }
        let code = match result {
            Ok(Report { hash, figures, events, simulated, .. }) => {
                writeln!(out, "{events} events in {simulated:?} of simulated time")?;
                writeln!(out, "hash: {hash:016x}")?;
                writeln!(out, "{figures}")?;
                ExitCode::SUCCESS
            }
            Err(failure) => fail(&failure, out)?,
        };
        written.map(|()| code)
    }

    /// One of many seeds failed.
    fn failed(&self, failure: &Failure, out: &mut impl Write) -> io::Result<ExitCode> {
        match failure {
            Failure::Broken { seed, options, .. } if self.shrink => {
                fail(failure, out)?;
                self.shrink(*seed, options, out)
            }
            _ => fail(failure, out),
        }
    }

    fn shrink(&self, seed: u64, options: &Options, out: &mut impl Write) -> io::Result<ExitCode> {
        let started = Instant::now();
        let say = |what: fmt::Arguments<'_>| eprintln!("{:>6.1} s  {what}", started.elapsed().as_secs_f32());
        let shrunk = match shrink(&self.scenario, seed, options, Patience::within(self.within), say) {
            Ok(Some(shrunk)) => shrunk,
            Ok(None) => {
                writeln!(out, "nothing is broken in seed {seed} of {}: there is nothing to shrink", self.scenario)?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(failure) => return fail(&failure, out),
        };
        let Shrunk { failure, plan, calls, cut_short } = shrunk;
        if let Some((before, after)) = plan {
            writeln!(
                out,
                "it takes {} of {} faults and {} of {} actors",
                after.faults, before.faults, after.actors, before.actors
            )?;
        }
        let mut written = Ok(());
        match &calls {
            Some(calls) => {
                let Calls { before, log, .. } = calls;
                writeln!(out, "it takes {} of {before} calls:", log.calls.len())?;
                writeln!(out, "{calls}")?;
                if let Some(file) = &self.journal {
                    written = written.and(write(file, &log.write()));
                }
            }
            None => {
                writeln!(out, "the calls alone do not show it: it takes what the actors know")?;
                if let Some(file) = &self.journal {
                    writeln!(out, "{} is not written for that", file.display())?;
                }
            }
        }
        if let Some(file) = &self.html {
            match drawn(&failure, calls.as_ref()) {
                Some(story) => written = written.and(page(file, &story)),
                None => writeln!(out, "no edge of it kept a journal: {} is not written", file.display())?,
            }
        }
        if cut_short {
            writeln!(
                out,
                "after {:?} that is the least that was found, and may be more than it takes: --within",
                self.within
            )?;
        }
        let code = fail(&failure, out)?;
        written.map(|()| code)
    }
}

/// What is left of a failure, as a story: its calls, or the run with less in it where the calls alone do not show it.
fn drawn(failure: &Failure, calls: Option<&Calls>) -> Option<Story> {
    let Failure::Broken { scenario, seed, options, .. } = failure else { return None };
    let Some(Calls { log, at, id, what, .. }) = calls else {
        return record(scenario, *seed, options, None, &in_words).ok().map(|(_, story)| story);
    };
    let title = format!("Holdfast: {scenario}, seed {seed}, what is left of it");
    Some(story::as_far_as_it_goes(&log.write(), &in_words).titled(title).broken(*at, *id, what.clone()))
}

fn write(file: &Path, journal: &[u8]) -> io::Result<()> {
    write_journal(file, journal).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

fn page(file: &Path, story: &Story) -> io::Result<()> {
    write_page(file, story).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

fn list_scenarios(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "scenarios (--scenario):")?;
    scenarios().iter().try_for_each(|scenario| writeln!(out, "  {:<20} {}", scenario.name, scenario.shows))?;
    writeln!(out)
}

fn list_faults(out: &mut impl Write) -> io::Result<ExitCode> {
    writeln!(out, "faults of the scenario random (--faults):")?;
    Fault::ALL.iter().try_for_each(|fault| writeln!(out, "  {:<20} {}", fault.as_str(), fault.about()))?;
    Ok(ExitCode::SUCCESS)
}

/// What many runs were.
#[derive(Default)]
struct Totals {
    runs: u64,
    events: u64,
    simulated: Duration,
    witness: Witness,
    /// The failure of the first seed that has one.
    failure: Option<(u64, Failure)>,
}

impl Totals {
    fn add(&mut self, seed: u64, result: Result<Report, Failure>) {
        match result {
            Ok(report) => {
                self.runs += 1;
                self.events += report.events;
                self.simulated += report.simulated;
                self.witness.merge(&report.witness);
            }
            Err(failure) => {
                if self.failure.as_ref().is_none_or(|(first, _)| seed < *first) {
                    self.failure = Some((seed, failure));
                }
            }
        }
    }
}

fn many(
    name: &str,
    seeds: Range<u64>,
    options: &Options,
    out: &mut impl Write,
) -> io::Result<Result<ExitCode, Failure>> {
    let started = Instant::now();
    let count = seeds.end - seeds.start;
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let totals = Mutex::new(Totals::default());
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let further = |seed| (seed < seeds.end).then(|| seed + 1);
            let Ok(seed) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, further) else { break };
            let result = run_with(name, seed, options, None);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            let Ok(mut totals) = totals.lock() else { return };
            totals.add(seed, result);
            if count >= 100 && totals.runs > 0 && totals.runs.is_multiple_of(count.div_ceil(10)) {
                let (runs, elapsed) = (totals.runs, started.elapsed().as_secs());
                eprintln!("{runs} of {count} seeds hold after {elapsed} s, {} events", totals.events);
            }
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(count as usize);
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let totals = totals.into_inner().unwrap_or_default();
    if let Some((_, failure)) = totals.failure {
        return Ok(Err(failure));
    }
    let all = &totals.witness;
    for (title, counts) in [
        ("faults, and how often each bit:", all.faults.iter().collect::<Vec<_>>()),
        ("marks, and how often each was reached:", all.marks.iter().collect()),
    ] {
        // Scenarios of the net keep no count of these.
        if counts.iter().all(|(_, count)| *count == 0) {
            continue;
        }
        writeln!(out, "{title}")?;
        counts.iter().try_for_each(|(name, count)| writeln!(out, "{count:>10}  {name}"))?;
    }
    let elapsed = started.elapsed().as_secs_f64();
    writeln!(
        out,
        "figures: seeds={} events={} simulated_s={} wall_s={elapsed:.1} events_per_s={:.0}",
        totals.runs,
        totals.events,
        totals.simulated.as_secs(),
        totals.events as f64 / elapsed.max(0.001)
    )?;
    let missing: Vec<_> = all.faults.missing().chain(all.marks.missing()).collect();
    if name == "random" && *options == Options::default() && count >= ENOUGH && !missing.is_empty() {
        out.flush()?;
        eprintln!("over {count} seeds these never bit, or were never reached: {}", missing.join(", "));
        return Ok(Ok(ExitCode::FAILURE));
    }
    Ok(Ok(ExitCode::SUCCESS))
}

fn fail(failure: &Failure, out: &mut impl Write) -> io::Result<ExitCode> {
    out.flush()?;
    eprintln!("{failure}");
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_seed_at_least() {
        assert_eq!(seeds("3..5"), Ok(3..5));
        for wrong in ["3", "3..", "..5", "a..b", "3...5", "5..5", "5..3", "-1..3"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    fn parsed(arguments: &[&str]) -> Result<Sim, clap::Error> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            sim: Sim,
        }
        <Line as clap::Parser>::try_parse_from([&["sim"], arguments].concat()).map(|line| line.sim)
    }

    /// What is printed of a command line.
    fn printed(arguments: &[&str]) -> String {
        let mut out = Vec::new();
        parsed(arguments).expect("understood").ask(&mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn nothing_is_counted_of_what_is_no_scenario_and_no_table_is_empty() {
        assert_eq!(printed(&["--scenario", "unheard-of", "--seeds", "0..200"]), "");
        let net = printed(&["--scenario", "net-w1", "--seeds", "1..2"]);
        assert!(!net.contains("how often each") && net.contains("figures: seeds=1"), "{net}");
        let world = printed(&["--scenario", "w1", "--seeds", "1..2"]);
        assert!(world.contains("marks, and how often each was reached:"), "{world}");
    }

    #[test]
    fn what_would_be_of_no_use_is_refused_with_what_is_missing() {
        let refused = |arguments: &[&str]| parsed(arguments).map(drop).expect_err("refused").to_string();
        assert!(refused(&["--within", "3s"]).contains("--shrink"), "{}", refused(&["--within", "3s"]));
        assert!(parsed(&["--within", "3s", "--shrink"]).is_ok() && parsed(&["--shrink"]).is_ok());
        for other in
            [["--journal", "a"].as_slice(), &["--html", "a"], &["--shrink"], &["--seeds", "0..2"], &["--seed", "7"]]
        {
            assert!(refused(&[&["--list"], other].concat()).contains("--list"), "{other:?}");
        }
    }

    #[test]
    fn a_journal_takes_the_place_of_journals_alone_and_is_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("holdfast-sim-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary folder can be written");
        let (file, page) = (directory.join("a.journal"), directory.join("a.html"));
        let run = |html: &Path| {
            let files = [file.display().to_string(), html.display().to_string()];
            let asked = ["--scenario", "w1", "--quiet", "--journal", &files[0], "--html", &files[1]];
            parsed(&asked).expect("understood").ask(&mut Vec::new())
        };
        let is = |code: ExitCode, wanted: u8| assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(wanted)));
        for _ in 0..2 {
            is(run(&page).expect("written"), 0);
        }
        assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
        is(run(&file).expect("nothing was begun"), 2);
        is(run(&directory.join(".").join("a.journal")).expect("nothing was begun"), 2);
        std::fs::write(&file, "dear diary").expect("it can be written");
        assert!(run(&page).expect_err("refused").to_string().contains("no journal"));
        assert_eq!(std::fs::read(&file).expect("it is there"), b"dear diary");
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn where_a_call_never_returns_it_is_said_that_no_file_is_written() {
        let last = |arguments: &[&str]| {
            let out = Shared(Arc::new(Mutex::new(BufWriter::new(io::stdout()))));
            parsed(arguments).expect("understood").last_words(out)()
        };
        let both = last(&["--html", "a.html", "--journal", "a.journal"]);
        assert!(both.starts_with("a.html and a.journal are not written: "), "{both}");
        assert!(last(&["--journal", "a.journal"]).starts_with("a.journal is not written: "));
        assert_eq!(last(&[]), "", "nothing was asked for");
    }

    #[test]
    fn who_takes_part_is_read_as_it_is_written() {
        assert_eq!(cast("none"), Ok(Cast::new()));
        assert_eq!(cast("operator,viewer-3"), Ok(Cast::from([Actor::Operator, Actor::Viewer(3)])));
        assert!(cast("viewer-3,nobody").is_err_and(|text| text.starts_with("nobody is no actor")));
    }
}
