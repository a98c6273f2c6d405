//! The command line.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use holdfast_io::users::Password;

use crate::arenas;
use crate::config::{self, Settings};
use crate::dump::Dump;
use crate::log::Log;
use crate::replay::Replay;
use crate::run;
use crate::sim::Sim;

/// A media edge in one binary: whoever is really alive holds a place.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the edge
    Run {
        /// Configuration; without one: an endpoint `live`, everything on loopback
        file: Option<PathBuf>,
    },
    /// Say everything that is wrong with a configuration, or what is effective
    Check {
        /// Configuration; without one: the embedded default
        file: Option<PathBuf>,
    },
    /// Print a commented configuration with every key and its default
    Sample,
    /// Read a password from standard input and print what may stand in a configuration instead of it
    Password,
    /// Save what happened lately from an edge that runs, for `holdfast replay`
    Dump(Dump),
    /// Say what happened in a journal that `holdfast dump` saved, check that it repeats, and judge it
    Replay(Replay),
    /// Run simulated sessions with faults, each repeatable from its seed
    Sim(Sim),
}

/// Does what the command line says. Exit code 1: a refused configuration, an edge that could not run, or what else did not come
/// off; 2: a command line
/// that is not understood.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run { file } => {
            arenas::limit();
            with(file.as_deref(), start)
        }
        Command::Check { file } => with(file.as_deref(), show),
        Command::Sample => print(&config::sample()),
        Command::Password => password(),
        Command::Dump(dump) => dump.run(),
        Command::Replay(replay) => replay.run(),
        Command::Sim(sim) => sim.run(),
    }
}

fn with(file: Option<&Path>, what: impl FnOnce(Settings) -> ExitCode) -> ExitCode {
    match config::load(file, std::env::vars_os()) {
        Ok(settings) => what(settings),
        Err(faults) => {
            eprintln!("{faults}");
            ExitCode::FAILURE
        }
    }
}

fn show(settings: Settings) -> ExitCode {
    for warning in settings.warnings() {
        eprintln!("warning: {warning}");
    }
    print(&config::effective(&settings))
}

fn start(settings: Settings) -> ExitCode {
    let _log = Log::open(&settings.log);
    match run::run(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stopped) => {
            tracing::error!("{stopped}");
            ExitCode::FAILURE
        }
    }
}

fn password() -> ExitCode {
    let mut line = String::new();
    if let Err(error) = io::stdin().lock().take(1024).read_line(&mut line) {
        eprintln!("the password cannot be read: {error}");
        return ExitCode::FAILURE;
    }
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() || password.len() > 256 {
        eprintln!("write a password of 1 to 256 bytes to standard input: echo -n geheim | holdfast password");
        return ExitCode::FAILURE;
    }
    print(&format!("{}\n", Password::hash(password, run::parts::entropy())))
}

fn print(text: &str) -> ExitCode {
    // A reader that has seen enough, such as `head`, is no failure to speak of.
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_file_may_be_left_out() {
        let file = |arguments: &[&str]| match Cli::try_parse_from(arguments).expect("understood").command {
            Command::Run { file } | Command::Check { file } => file,
            Command::Sample | Command::Password | Command::Dump(_) | Command::Replay(_) | Command::Sim(_) => None,
        };
        assert_eq!(file(&["holdfast", "run"]), None);
        assert_eq!(file(&["holdfast", "run", "a.toml"]), Some(PathBuf::from("a.toml")));
        assert_eq!(file(&["holdfast", "check", "a.toml"]), Some(PathBuf::from("a.toml")));
    }

    #[test]
    fn without_a_command_there_is_help() {
        let error = Cli::try_parse_from(["holdfast"]).expect_err("help");
        assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        assert!(error.to_string().contains("check"));
    }
}
