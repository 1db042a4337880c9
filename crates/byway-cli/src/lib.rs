//! The arguments, verbs, progress and exit codes of the program `byway`. Other crates move the
//! data.
//!
//! The program is a library with a thin `main`, so that tests and fuzz targets reach every parser
//! of user input.

pub mod args;
pub mod exit;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod marking;
mod messages;
pub mod output;
pub mod signals;
pub mod verb;

pub use byway_transfer::{address, units};

use args::Cli;
use output::Output;
use std::process::ExitCode;

/// Runs the program `byway` with the arguments of the process. All between a person's command and
/// the exit code is told in the module that each line names.
#[must_use]
pub fn program() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let mut output = Output::new(cli.global.style());
    let outcome = verb::run(&cli, &mut output);
    let exit = verb::conclude(cli.command.name(), outcome, &mut output);
    output.finish();
    exit.into()
}

/// Runs the program with the caller's own controllers beside byway's. Plans, the scoreboard and
/// random worlds can name them.
#[cfg(feature = "lab")]
#[must_use]
pub fn program_with(controllers: &[byway_control::catalogue::OwnController]) -> ExitCode {
    match byway_control::catalogue::add_controllers(controllers) {
        Ok(()) => program(),
        Err(error) => {
            output::print_failure("", exit::Exit::Usage, &error.to_string());
            exit::Exit::Usage.into()
        }
    }
}
