//! `holdfast sim`: developers' sessions with faults, each repeatable from its seed.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use holdfast_sim::{Report, record, run, scenarios, story};

/// Run Holdfast in a simulated world in which things go wrong on purpose.
#[derive(Debug, Args)]
pub struct Sim {
    /// Show the scenarios and what each must show
    #[arg(long)]
    list: bool,
    /// Which scenario
    #[arg(long, default_value = "random")]
    scenario: String,
    /// Which seed; the same seed is the same run
    #[arg(long, default_value_t = 1, conflicts_with = "seeds")]
    seed: u64,
    /// Many seeds, without a trace: from the first up to but without the second
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// No trace
    #[arg(long)]
    quiet: bool,
    /// Write what happened as a page for a browser, also where something broke
    #[arg(long, value_name = "OUT", conflicts_with_all = ["seeds", "list"])]
    html: Option<PathBuf>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.filter(|range| !range.is_empty()).ok_or_else(|| format!("`{text}` is not a range like 0..2000"))
}

impl Sim {
    /// Runs what was asked for; the exit code is 1 where something broke.
    pub fn run(self) -> ExitCode {
        let mut out = BufWriter::new(io::stdout().lock());
        let done = if self.list {
            list(&mut out)
        } else if let Some(range) = self.seeds {
            many(&self.scenario, range, &mut out)
        } else {
            one(&self, &mut out)
        };
        match done.and_then(|code| out.flush().map(|()| code)) {
            Ok(code) => code,
            // Whoever read the trace has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cannot write: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

fn list(out: &mut impl Write) -> io::Result<ExitCode> {
    for scenario in scenarios() {
        writeln!(out, "{:<15} {}", scenario.name, scenario.shows)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn one(Sim { scenario, seed, quiet, html, .. }: &Sim, out: &mut impl Write) -> io::Result<ExitCode> {
    let trace = (!quiet).then_some(out as &mut dyn Write);
    let result = match html {
        None => run(scenario, *seed, trace),
        Some(path) => match record(scenario, *seed, trace) {
            Ok((result, story)) => {
                out.flush()?;
                if let Err(error) = fs::write(path, story::page(&story)) {
                    eprintln!("{} cannot be written: {error}", path.display());
                    return Ok(ExitCode::FAILURE);
                }
                result
            }
            Err(untold) => {
                out.flush()?;
                eprintln!("{untold}");
                return Ok(ExitCode::FAILURE);
            }
        },
    };
    match result {
        Ok(Report { hash, figures, events, simulated, .. }) => {
            writeln!(out, "{events} events in {simulated:?} of simulated time")?;
            writeln!(out, "hash: {hash:016x}")?;
            writeln!(out, "{figures}")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => fail(&failure, out),
    }
}

fn many(name: &str, seeds: Range<u64>, out: &mut impl Write) -> io::Result<ExitCode> {
    let (mut runs, mut events, mut simulated) = (0_u64, 0, std::time::Duration::ZERO);
    let mut all = holdfast_sim::Witness::default();
    for seed in seeds {
        match run(name, seed, None) {
            Ok(report) => {
                runs += 1;
                events += report.events;
                simulated += report.simulated;
                all.merge(&report.witness);
            }
            Err(failure) => return fail(&failure, out),
        }
    }
    for (name, count) in all.faults.iter().chain(all.marks.iter()).filter(|(_, count)| *count > 0) {
        writeln!(out, "{count:>10}  {name}")?;
    }
    writeln!(out, "figures: seeds={runs} events={events} simulated_s={}", simulated.as_secs())?;
    Ok(ExitCode::SUCCESS)
}

fn fail(failure: &holdfast_sim::Failure, out: &mut impl Write) -> io::Result<ExitCode> {
    out.flush()?;
    eprintln!("{failure}");
    Ok(ExitCode::FAILURE)
}
