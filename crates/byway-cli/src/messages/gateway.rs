//! Messages of a running `byway gateway`, and of `byway gateway join`.

use byway_gateway_host::with_ports;
use std::fmt::Display;
use std::path::Path;

pub const CANNOT_DROP_CAPABILITIES: &str = "cannot give up the capabilities that the gateway does not need";
pub const RULES_RELOADED: &str = "the rules were read again and are in use";

pub fn observes(tun: &str) -> String {
    format!("the gateway observes flows, with the device {tun}")
}

/// The message that the gateway is ready, while it has no peer yet.
pub fn ready(tun: &str) -> String {
    format!("the gateway is ready, with the device {tun}: it carries flows as soon as a peer is there")
}

pub fn peer_came(name: &str, observing: bool) -> String {
    let carried = if observing { "" } else { ": flows to its hosts are carried" };
    format!("peer {name} is there{carried}")
}

/// `why` may be empty.
pub fn peer_gone(name: &str, why: &str, observing: bool) -> String {
    let plain = if observing { "" } else { "; flows to its hosts take the plain route" };
    format!("peer {name} is gone{}{plain}", because(why))
}

/// The first attempt to reach a peer failed.
pub fn peer_missing(name: &str, why: &str) -> String {
    format!("peer {name} is not there{}; the gateway tries again and again", because(why))
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

pub fn guests_not_captured(error: impl Display) -> String {
    format!("{error}: what guests send takes the plain route")
}

pub fn not_reloaded(error: impl Display) -> String {
    format!("{error}; the gateway goes on with the configuration that it had")
}

/// The message that the new rules are in force, and that the other changes need a restart.
pub fn reloaded_in_part(changed: &[&str]) -> String {
    format!("{RULES_RELOADED}; restart the gateway for the other changes: {}", changed.join(", "))
}

/// `byway gateway status` has no answer.
pub fn no_gateway(socket: &Path) -> String {
    format!(
        "no gateway answers at {}: start it, or ask as root or as the user that runs it",
        socket.display()
    )
}

pub fn serves_this_host(gateway: impl Display, host: impl Display, ports: &[String]) -> String {
    format!("the gateway at {gateway} serves {host}{}", with_ports(ports))
}

pub fn refuses_this_host(gateway: impl Display, why: impl Display) -> String {
    format!("the gateway at {gateway} refuses this host: {why}")
}

/// `why` may be empty.
pub fn session_lost(gateway: impl Display, why: &str) -> String {
    format!("there is no session with the gateway at {gateway}{}; this host asks again", because(why))
}
