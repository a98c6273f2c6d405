//! What it takes several processes to see: every scenario has the same hash in each, as nothing of a run comes from where it runs; and
//! a call that never returns ends the process that waits for it, with a line that repeats it.

use std::env;
use std::process::{Command, ExitCode, Output};

use holdfast_sim::{Scenario, lose_patience_after, run, scenarios, when_stuck};

/// What tells this program to print hashes instead of comparing them, and to wait for what never returns.
const HASHES: &str = "hashes";
const STUCK: &str = "stuck";

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some(HASHES) => {
            for scenario in ending() {
                match run(scenario.name, 5, None) {
                    Ok(report) => println!("{} {:016x} {}", scenario.name, report.hash, report.figures),
                    Err(failure) => println!("{failure}"),
                }
            }
            ExitCode::SUCCESS
        }
        Some(STUCK) => {
            lose_patience_after(1);
            when_stuck(|| String::from(LAST_WORDS));
            println!("{:?}", run(CANARY, 3, None).map(drop));
            ExitCode::SUCCESS
        }
        _ => match hashes_agree().and_then(|()| what_never_returns_is_named()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(what) => {
                eprintln!("{what}");
                ExitCode::FAILURE
            }
        },
    }
}

/// What whoever waits for it has to say.
const LAST_WORDS: &str = "no file is written";

/// The scenario that never returns.
const CANARY: &str = "canary-stuck";

fn ending() -> impl Iterator<Item = &'static Scenario> {
    scenarios().iter().filter(|scenario| scenario.name != CANARY)
}

fn hashes_agree() -> Result<(), String> {
    let [first, second] = [child(HASHES)?, child(HASHES)?];
    let lines = String::from_utf8_lossy(&first.stdout);
    let scenarios = ending().count();
    let all = first.status.success() && second.status.success() && lines.lines().count() == scenarios;
    if !all || first.stdout != second.stdout {
        return Err(format!("one process says:\n{lines}\nthe other:\n{}", String::from_utf8_lossy(&second.stdout)));
    }
    println!("{lines}{scenarios} scenarios have the same hash in two processes");
    Ok(())
}

fn what_never_returns_is_named() -> Result<(), String> {
    let stuck = child(STUCK)?;
    let said = String::from_utf8_lossy(&stuck.stderr);
    let begins = "live-lock is broken at ";
    let ends = format!("again: holdfast sim --scenario canary-stuck --seed 3\n{LAST_WORDS}\n");
    let named = said.starts_with(begins) && said.contains(" has not returned for ") && said.ends_with(&ends);
    if !named || stuck.status.code() != Some(1) {
        return Err(format!("of what never returns it is said, with {}: {said}", stuck.status));
    }
    println!("{said}");
    Ok(())
}

fn child(what: &str) -> Result<Output, String> {
    // Another environment and another directory, as two machines have them.
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(program).arg(what).current_dir(env::temp_dir()).env_clear().output();
    child.map_err(|error| format!("cannot run itself again: {error}"))
}
