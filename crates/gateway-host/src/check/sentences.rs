//! Sentences of `byway gateway check` about a configuration. The report begins with paragraphs of
//! whole sentences. Findings follow, as clauses without capital and full stop.

use crate::port_list::with_ports;
use byway_transfer::units::Bytes;
use std::fmt::Display;

pub(super) const ONLY_OBSERVES: &str = "It only observes, and carries nothing.";
pub(super) const FAILS_CLOSED: &str =
    "It fails closed: without a session, or without the gateway, background flows wait.";
pub(super) const FAILS_OPEN: &str =
    "It fails open: without a session, or without the gateway, background flows take the plain route.";
pub(super) const ASKS_REGISTRY: &str = "It asks a registry for relays.";
pub(super) const REST_PASSES: &str = "Everything else passes untouched.";

pub(super) const FINDINGS_HEADING: &str = "To look at:";
pub(super) const THIS_HOST: &str = "On this host:";

pub(super) const NO_PEER: &str = "there is no [[peer]], so nothing can be carried: add one";
pub(super) const NO_BACKGROUND: &str =
    "no [[rule]] makes anything background, so nothing is carried: add one";

pub(super) fn any_address(port: u16) -> String {
    format!("all addresses, UDP port {port}")
}

pub(super) fn udp_address(address: impl Display) -> String {
    format!("{address} (UDP)")
}

pub(super) fn listens(addresses: &str, tun: &str, mode: &str) -> String {
    format!("The gateway listens at {addresses}, with the device {tun}. {mode}")
}

pub(super) fn serves(hosts: impl Display, ports: &[String]) -> String {
    format!("It serves {hosts}{}.", with_ports(ports))
}

pub(super) fn keeps_packets(all: usize, of_a_flow: usize) -> String {
    format!(
        "It keeps what it sends until hosts acknowledge it, at most {} and {} of a flow. It sends again what paths lose.",
        Bytes(all as u64),
        Bytes(of_a_flow as u64)
    )
}

/// Returns a line about a peer. `addresses` and `relays` are those in the file.
pub(super) fn peer(name: &str, addresses: &[String], relays: usize, allowed: &[String]) -> String {
    let by = match (addresses, relays) {
        ([], 0) => "waited for".to_owned(),
        ([], _) => "waited for, and reached through relays".to_owned(),
        (addresses, _) => format!("reached at {}", addresses.join(" or ")),
    };
    let relays = match relays {
        0 => String::new(),
        1 => ", with 1 relay".to_owned(),
        relays => format!(", with {relays} relays"),
    };
    format!("The peer {name} is {by}{relays}, and may speak for {}.", allowed.join(", "))
}

pub(super) fn would_install(ruleset: &str) -> String {
    format!("It would give nft:\n{ruleset}\nand run:")
}

pub(super) fn rule_matches_nothing(number: usize) -> String {
    format!("rule {number} matches no flow between the hosts that are served here and those of the peers")
}

/// The text of `peer_address_inside` about hosts of this site, and of a peer's.
pub(super) const SERVED_HERE: &str = "is served here";
pub(super) const BEHIND_PEER: &str = "is behind a peer";

/// An address of a peer is one of the hosts whose flows are captured: nothing to worry about.
pub(super) fn peer_address_inside(
    peer: &str,
    address: impl Display,
    prefix: impl Display,
    whose: &str,
) -> String {
    format!(
        "the address {address} of the peer {peer} lies in {prefix}, which {whose}: sessions with it take the plain route all the same; \
         only forwarded TCP is captured"
    )
}

pub(super) fn peer_allowed_ours(peer: &str, allowed: impl Display, own: impl Display) -> String {
    format!(
        "the peer {peer} may speak for {allowed}, which contains {own} of this site: flows inside the site can be captured, so narrow \
         its `allowed`"
    )
}

pub(super) fn peers_overlap(one: &str, other: &str, prefix: impl Display) -> String {
    format!(
        "the peers {one} and {other} may both speak for hosts in {prefix}: whoever announces the longest prefix gets their flows"
    )
}
