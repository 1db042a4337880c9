//! `byway lab`: questions about networks, asked in a simulator, or of real kernels.

mod bench;
mod emulated;
mod emulation;
mod fetching;
mod fuzz;
mod harm;
mod known;
mod place;
mod run;
mod scoreboard;
mod show;
mod site;

use crate::args::lab::{Lab, LabCommand};
use crate::exit::Exit;
use crate::output::Output;
use anyhow::Result;

/// Does what the lab was asked for.
pub(super) fn run(lab: &Lab, output: &mut Output) -> Result<Exit> {
    match &lab.command {
        LabCommand::List(arguments) => show::list(arguments, output),
        LabCommand::Show(arguments) => show::show(arguments, output),
        LabCommand::Run(arguments) => run::run(arguments, output),
        LabCommand::Report(arguments) => show::report(arguments, output),
        LabCommand::Fuzz(arguments) => fuzz::run(arguments, output),
        LabCommand::Bench(arguments) => bench::run(arguments, output),
        LabCommand::Harm(arguments) => harm::run(arguments, output),
        LabCommand::Scoreboard(arguments) => scoreboard::run(arguments, output),
        LabCommand::Topologies => known::topologies(output),
        LabCommand::Controllers => known::controllers(output),
        LabCommand::Up(arguments) => emulated::up(arguments, output),
        LabCommand::Exec(arguments) => emulated::exec(arguments),
        LabCommand::Status(arguments) => emulated::status(arguments, output),
        LabCommand::Down(arguments) => emulated::down(arguments, output),
        LabCommand::Keep(arguments) => emulated::keep(arguments),
        LabCommand::Serve(arguments) => fetching::serve(arguments),
        LabCommand::Fetch(arguments) => fetching::fetch(arguments),
        LabCommand::Inside(arguments) => emulated::inside(arguments),
    }
}
