//! `byway lab`: questions about networks, asked in a simulator, or of real kernels.

mod catalogue;
mod emulated;
mod fuzz;
mod harm;
mod run;
mod scoreboard;
mod show;
mod stop_flag;
mod sweep;

use crate::args::lab::{Lab, LabCommand};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use anyhow::Result;
use byway_field::{Error, http_requests};

/// Runs the subcommand of `byway lab`.
pub(super) fn run(lab: &Lab, output: &mut Output) -> Result<Exit> {
    let outcome = match &lab.command {
        LabCommand::List(arguments) => show::list(arguments, output),
        LabCommand::Show(arguments) => show::show(arguments, output),
        LabCommand::Run(arguments) => run::run(arguments, output),
        LabCommand::Tasks(arguments) => sweep::tasks(arguments, output),
        LabCommand::Task(arguments) => sweep::task(arguments, output),
        LabCommand::Gather(arguments) => sweep::gather(arguments, output),
        LabCommand::Report(arguments) => show::report(arguments, output),
        LabCommand::Fuzz(arguments) => fuzz::run(arguments, output),
        LabCommand::Harm(arguments) => harm::run(arguments, output),
        LabCommand::Scoreboard(arguments) => scoreboard::run(arguments, output),
        LabCommand::Topologies => catalogue::topologies(output),
        LabCommand::Controllers => catalogue::controllers(output),
        LabCommand::NewController(arguments) => catalogue::new_controller(arguments, output),
        LabCommand::Up(arguments) => emulated::up(arguments, output),
        LabCommand::Exec(arguments) => emulated::exec(arguments),
        LabCommand::Status(arguments) => emulated::status(arguments, output),
        LabCommand::Down(arguments) => emulated::down(arguments, output),
        LabCommand::Keep(arguments) => emulated::keep(arguments),
        LabCommand::Serve(arguments) => done(http_requests::serve(arguments.port, &arguments.congestion)),
        LabCommand::Fetch(arguments) => done(http_requests::fetch(arguments.server)),
        LabCommand::Inside(arguments) => emulated::inside(arguments),
    };
    outcome.map_err(|error| match error.downcast::<Error>() {
        Ok(error) => failure(error),
        Err(error) => error,
    })
}

fn done(outcome: byway_field::Result<()>) -> Result<Exit> {
    outcome?;
    Ok(Exit::Ok)
}

/// The failure for an error of the lab, with its exit code.
fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Usage(sentence) => Failure::new(Exit::Usage, sentence).into(),
        Error::NotFound(sentence) => Failure::new(Exit::NotFound, sentence).into(),
        Error::Failed(sentence) => anyhow::Error::msg(sentence),
        Error::Io(error) => error.into(),
        Error::Keeper(error) => error.into(),
        Error::About { about, source } => failure(*source).context(about),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn failures_keep_their_sentence_and_their_code() {
        let about = |source| Error::About { about: "a plan".to_owned(), source: Box::new(source) };
        for (error, exit, sentence) in [
            (about(Error::Usage("wrong".to_owned())), Exit::Usage, "a plan: wrong"),
            (Error::NotFound("none".to_owned()), Exit::NotFound, "none"),
            (about(about(Error::Failed("no".to_owned()))), Exit::Error, "a plan: a plan: no"),
            (
                about(io::Error::from(io::ErrorKind::NotFound).into()),
                Exit::NotFound,
                "a plan: entity not found",
            ),
            (io::Error::from(io::ErrorKind::BrokenPipe).into(), Exit::Ok, "broken pipe"),
        ] {
            let failure = failure(error);
            assert_eq!((Exit::of(&failure), format!("{failure:#}")), (exit, sentence.to_owned()));
        }
    }
}
