//! Words typed to answers printed.
//!
//! ~~~text
//! arguments ──args──> Command ──plan / run / check / doctor / inspect / pack──> text or JSON on stdout, the rest on stderr
//! ~~~
//! Exit codes: 0 done; 1 it ran, and the answer is no; 2 it could not run. A closed pipe is a reader that has
//! seen enough, not an error.

mod args;
mod check;
mod doctor;
mod doctor_text;
mod given;
mod inspect;
mod out;
mod pack;
mod pack_spaces;
mod pack_spaces_text;
mod plan;
mod progress;
mod run;
mod run_text;
mod text;
mod time;

use args::{Args, Command};
use clap::Parser;
use std::io;
use std::process::ExitCode;

/// What a command found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Help and version go to stdout with code 0, everything else to stderr with code 2.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let result = match &args.command {
        Command::Plan(args) => plan::run(args),
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Pack(args) => pack::run(args),
    };
    match result {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::message(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
