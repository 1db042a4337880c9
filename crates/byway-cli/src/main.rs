//! What happens between a person's command and the exit code; each line is told in the module it
//! names.

use byway_cli::args::Cli;
use byway_cli::output::Output;
use byway_cli::verb;
use std::process::ExitCode;

fn main() -> ExitCode {
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
