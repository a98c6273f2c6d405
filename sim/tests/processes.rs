//! Every scenario has the same hash in every process: nothing of a run comes from where it runs.

use std::env;
use std::process::{Command, ExitCode, Output};

use holdfast_sim::{run, scenarios};

/// What tells this program to print hashes instead of comparing them.
const CHILD: &str = "hashes";

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(CHILD) {
        for scenario in scenarios() {
            match run(scenario.name, 5, None) {
                Ok(report) => println!("{} {:016x} {}", scenario.name, report.hash, report.figures),
                Err(failure) => println!("{failure}"),
            }
        }
        return ExitCode::SUCCESS;
    }
    let Some((first, second)) = hashes().zip(hashes()) else {
        eprintln!("cannot run itself again");
        return ExitCode::FAILURE;
    };
    let lines = String::from_utf8_lossy(&first.stdout);
    if lines.lines().count() != scenarios().len() || first.stdout != second.stdout {
        eprintln!("one process says:\n{lines}\nthe other:\n{}", String::from_utf8_lossy(&second.stdout));
        return ExitCode::FAILURE;
    }
    println!("{lines}{} scenarios have the same hash in two processes", scenarios().len());
    ExitCode::SUCCESS
}

fn hashes() -> Option<Output> {
    // Another environment and another directory, as two machines have them.
    let child = Command::new(env::current_exe().ok()?).arg(CHILD).current_dir(env::temp_dir()).env_clear().output();
    child.ok().filter(|output| output.status.success())
}
