//! `byway gateway`: background flows of hosts that know nothing of it.

use crate::args::Global;
use crate::args::gateway::{Gateway, GatewayCheck, GatewayCommand, GatewayJoin};
use crate::exit::{Exit, Failure};
use crate::gateway::check::CheckReport;
use crate::gateway::config_file::{self, GatewayConfig};
use crate::gateway::run;
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::{Hangup, SIGNAL_POLL_INTERVAL};
use anyhow::Result;
use byway_gateway::joining::JoinState;
use byway_gateway_host::joining::Association;

/// Runs the subcommand of `byway gateway`.
pub(super) fn run(global: &Global, arguments: &Gateway, output: &mut Output) -> Result<Exit> {
    match &arguments.command {
        Some(GatewayCommand::Check(asked)) => check(global, asked, output),
        Some(GatewayCommand::Status(asked)) => {
            let usual = || config_file::status_socket(&asked.tun);
            run::status(&asked.socket.clone().unwrap_or_else(usual), output)
        }
        Some(GatewayCommand::Join(asked)) => join(global, asked, output),
        None => {
            let mut config = GatewayConfig::read(&arguments.config.clone().unwrap_or_default())?;
            config.insist([arguments.observe, arguments.fail_closed]);
            run::run(global, config, output)
        }
    }
}

/// Explains a configuration, and reports its problems and the host's. Unusable configurations are
/// an error.
fn check(global: &Global, asked: &GatewayCheck, output: &mut Output) -> Result<Exit> {
    let config = GatewayConfig::read(&asked.file)?;
    let key = config.key_file(global.state_dir.as_deref()).ok();
    let report = CheckReport::here(&config, key.as_deref());
    output.answer(&report.to_string())?;
    output.emit(&Event::result("gateway", Exit::Ok, Outcome::Told(Fields::of(&report))));
    Ok(Exit::Ok)
}

/// Asks a gateway to serve this host, until stopped.
fn join(global: &Global, asked: &GatewayJoin, output: &mut Output) -> Result<Exit> {
    let identity = global.state()?.identity()?;
    let association = Association::start(&identity, asked.gateway, asked.ports.clone())?;
    let signals = output.catch_signals(Hangup::Stop)?;
    let (host, at) = (association.host(), asked.gateway.address);
    let ports: Vec<String> = asked.ports.iter().map(ToString::to_string).collect();
    let exit = loop {
        match association.next(SIGNAL_POLL_INTERVAL) {
            Some(JoinState::Joined) => {
                output.say(&messages::gateway::serves_this_host(at, host, &ports));
                output.emit(&Event::Told { event: "joined", fields: Fields::one("host", &host) });
            }
            Some(JoinState::Refused(why)) => {
                let sentence = messages::gateway::refuses_this_host(at, why);
                return Err(Failure::new(Exit::NotAuthorised, sentence).into());
            }
            Some(JoinState::Lost(why)) => {
                let message = messages::gateway::session_lost(at, &why);
                output.emit(&Event::Warning { message });
            }
            Some(JoinState::Asking | JoinState::Left) | None => {}
        }
        if let Some(exit) = signals.stop() {
            break exit;
        }
        if association.is_over() {
            break Exit::Error;
        }
    };
    association.leave();
    let exit = exit.of_service();
    output.emit(&Event::result("gateway", exit, Outcome::Told(Fields::one("host", &host))));
    Ok(exit)
}
