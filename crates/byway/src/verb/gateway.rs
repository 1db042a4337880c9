//! `byway gateway`: background flows of hosts that know nothing of it.

use crate::args::Global;
use crate::args::gateway::{Gateway, GatewayCheck, GatewayCommand};
use crate::exit::Exit;
use crate::gateway::check::Report;
use crate::gateway::config::{self, GatewayConfig};
use crate::gateway::run;
use crate::output::{Event, Fields, Outcome, Output};
use anyhow::Result;

/// Does what was asked for.
pub(super) fn run(global: &Global, arguments: &Gateway, output: &mut Output) -> Result<Exit> {
    match &arguments.command {
        Some(GatewayCommand::Check(asked)) => check(global, asked, output),
        Some(GatewayCommand::Status(asked)) => {
            let usual = || config::status_socket(&asked.tun);
            run::status(&asked.socket.clone().unwrap_or_else(usual), output)
        }
        None => {
            let mut config = GatewayConfig::read(&arguments.config.clone().unwrap_or_default())?;
            config.insist([arguments.observe, arguments.fail_closed]);
            run::run(global.state_dir.as_deref(), config, output)
        }
    }
}

/// Explains a configuration. What it could not be used with is an error; what is odd about it, or about this host, is told.
fn check(global: &Global, asked: &GatewayCheck, output: &mut Output) -> Result<Exit> {
    let config = GatewayConfig::read(&asked.file)?;
    let key = config.key_file(global.state_dir.as_deref()).ok();
    let report = Report::here(&config, key.as_deref());
    output.answer(&report.to_string())?;
    output.emit(&Event::result("gateway", Exit::Ok, Outcome::Told(Fields::of(&report))));
    Ok(Exit::Ok)
}
