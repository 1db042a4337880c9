//! `byway gateway --config FILE`: a gateway from its start to its end.

use super::config_file::GatewayConfig;
use super::peer_news::PeerNews;
use super::plumbing::{self, InstalledPlan, system};
use crate::args::Global;
use crate::exit::{Exit, Failure, sentence};
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output, Ready};
use crate::signals::{Hangup, Signals};
use anyhow::{Context as _, Result};
use byway_gateway::Prefix;
use byway_gateway::machine::Gateway;
use byway_gateway::report::GatewayReport;
use byway_gateway_host::config_reload;
use byway_gateway_host::gateway_process::RunningGateway;
use byway_gateway_host::gateway_relays::{GatewayRelays, LendEvent};
use byway_gateway_host::report_text::ReportText;
use byway_gateway_host::status_socket::{StatusSocket, ask};
use byway_net::{Tun, keep_net_admin, unix_seconds};
use byway_transfer::sockets;
use byway_transfer::state_directory::StateDir;
use std::path::Path;
use std::time::Duration;

/// Time between two checks for signals. Requests for the status are answered at once.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The largest packet of the hosts.
const HOST_MTU: u16 = 1500;

/// Runs a gateway until it is stopped. The state directory holds the private key unless `config`
/// names a key file.
///
/// # Errors
/// The configuration is wrong, or the system refuses a privilege, a device or the like.
pub fn run(global: &Global, mut config: GatewayConfig, output: &mut Output) -> Result<Exit> {
    let state = global.state_dir.as_deref();
    if let Some(warning) = config.exposure() {
        output.say(&warning);
    }
    let identity = StateDir::identity_in(&config.key_file(state)?)?;
    let plan = config.plan();
    system::privileged()?;
    system::device_free(&config.tun, Path::new(system::DEVICES_DIR))?;
    let serial = u32::try_from(unix_seconds()).unwrap_or(u32::MAX);
    let gateway = Gateway::new(config.site(&identity, byway_net::seed()?, serial)?)
        .map_err(byway_gateway_host::GatewayError::Impossible)?;
    let sockets = sockets::serving(&config.listen, super::config_file::GATEWAY_PORT)?;
    let listening: Vec<String> = sockets.iter().map(|socket| socket.address().to_string()).collect();
    if let Some(clipped) = sockets::clipped(&sockets) {
        output.say(&clipped);
    }
    let tun = Tun::open(&config.tun, HOST_MTU)
        .map_err(|error| Failure::new(Exit::NotAuthorised, error.to_string()))?;
    system::loosen(&config.tun)?;
    for complaint in system::complaints(&plan, Path::new(system::SETTINGS_DIR)) {
        output.say(&complaint);
    }
    let answers = StatusSocket::open(config.status_socket())?;
    keep_net_admin().context(messages::gateway::CANNOT_DROP_CAPABILITIES)?;
    // A thread that starts before this would keep the capabilities that are dropped.
    if let Ok(state) = global.state() {
        output.publish("gateway", None, &state);
    }
    let signals = output.catch_signals(Hangup::Reload)?;
    let mut lending = GatewayRelays::start(&config, &identity, state)?;
    let gating = RunningGateway::start(gateway, tun, sockets)?;
    // Last at the start and first at the end: packets that the gateway cannot carry take the
    // ordinary route.
    let installed = InstalledPlan::new(plan)?;
    output.emit(&Event::Ready(Ready { listen: listening, ..Ready::default() }));
    output.say(&match config.settings.observe {
        true => messages::gateway::observes(&config.tun),
        false => messages::gateway::ready(&config.tun),
    });
    let stop = serve(&mut config, (&gating, &mut lending), &answers, &signals, output);
    // First of all, so that nothing comes here any more.
    drop(installed);
    lending.drain();
    let relay = lending.report();
    let report =
        GatewayReport { relay, ..GatewayReport::of(&gating.stop()?, answers.uptime().as_secs_f64()) };
    lending.stop()?;
    output.say(&ReportText(&report).to_string());
    let exit = stop.map_or(Exit::Error, Exit::of_service);
    output.emit(&Event::result("gateway", exit, told(&report)));
    Ok(exit)
}

/// The status of a gateway, as a JSON result.
fn told(report: &GatewayReport) -> Outcome {
    Outcome::Told(Fields::one("gateway", report))
}

/// Runs a gateway until a signal stops it, and returns the exit code. `None`: the gateway ended by
/// itself.
fn serve(
    config: &mut GatewayConfig,
    (gating, lending): (&RunningGateway, &mut GatewayRelays),
    answers: &StatusSocket,
    signals: &Signals,
    output: &mut Output,
) -> Option<Exit> {
    let (mut guests, mut peers) = (Vec::new(), PeerNews::new(config.settings.observe));
    loop {
        if let Some(states) = gating.take_peers() {
            peers.tell(&states, output);
        }
        if let Some(hosts) = gating.take_guests() {
            guests = hosts;
            if let Err(error) = plumbing::reload(&config.plan_for(&guests)) {
                output.complain(&messages::gateway::guests_not_captured(sentence(&error.into())));
            }
        }
        for news in lending.turn(gating) {
            match news {
                LendEvent::Said(said) => output.say(&said),
                LendEvent::Warning(message) => output.emit(&Event::Warning { message }),
            }
        }
        let relay = lending.report();
        let report = || GatewayReport {
            relay: relay.clone(),
            ..GatewayReport::of(&gating.status(), answers.uptime().as_secs_f64())
        };
        answers.answer(report);
        if signals.take_report() {
            output.say(&ReportText(&report()).to_string());
        }
        if signals.take_reload() {
            match reload(config, gating, &guests) {
                Ok(told) => output.say(&told),
                Err(error) => output.complain(&messages::gateway::not_reloaded(sentence(&error))),
            }
        }
        if let Some(exit) = signals.stop() {
            return Some(exit);
        }
        if gating.is_over() {
            return None;
        }
        answers.wait(SIGNAL_POLL_INTERVAL);
    }
}

/// Applies changed rules without touching carried flows. Returns the sentence to report.
fn reload(config: &mut GatewayConfig, gating: &RunningGateway, guests: &[Prefix]) -> Result<String> {
    let fresh = GatewayConfig::read(&config.file)?;
    let after = config_reload::with_rules(config, &fresh);
    plumbing::reload(&after.plan_for(guests))?;
    gating.set_rules(after.rules.clone());
    *config = after;
    Ok(match config_reload::needs_start(config, &fresh).as_slice() {
        [] => messages::gateway::RULES_RELOADED.to_owned(),
        other => messages::gateway::reloaded_in_part(other),
    })
}

/// `byway gateway status`: asks the gateway that answers at `socket`.
///
/// # Errors
/// Nobody answers there.
pub fn status(socket: &Path, output: &mut Output) -> Result<Exit> {
    let nobody = || Failure::new(Exit::NotFound, messages::gateway::no_gateway(socket));
    let report = ask(socket).map_err(|_| nobody())?;
    if output.is_json() {
        output.emit(&Event::result("gateway", Exit::Ok, told(&report)));
    } else {
        output.answer(&ReportText(&report).to_string())?;
    }
    Ok(Exit::Ok)
}
