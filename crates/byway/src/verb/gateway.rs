//! `byway gateway`: background flows of hosts that know nothing of it.

use crate::args::gateway::{Gateway, GatewayCheck, GatewayCommand};
use crate::exit::Exit;
use crate::gateway::check::Report;
use crate::gateway::config::GatewayConfig;
use crate::output::{Event, Outcome, Output};
use anyhow::Result;

/// Does what was asked for.
pub(super) fn run(arguments: &Gateway, output: &mut Output) -> Result<Exit> {
    match &arguments.command {
        GatewayCommand::Check(asked) => check(asked, output),
    }
}

/// Explains a configuration. What it could not be used with is an error; what is odd about it, or about this host, is told.
fn check(asked: &GatewayCheck, output: &mut Output) -> Result<Exit> {
    let report = Report::here(&GatewayConfig::read(&asked.file)?);
    output.answer(&report.to_string())?;
    output.emit(&Event::result("gateway", Exit::Ok, Outcome::Check(Box::new(report))));
    Ok(Exit::Ok)
}
