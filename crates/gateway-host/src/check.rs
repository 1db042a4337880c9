//! `byway gateway check`: what a configuration means, what is odd about it, and what it would
//! install. Installs nothing.

mod sentences;

use crate::config_file::{GATEWAY_PORT, GatewayConfig, GuestSection, RelayConfig};
use crate::plumbing::{self, system};
use byway_gateway::Prefix;
use byway_gateway::gateway_options::GATEWAY_OPTIONS;
use byway_gateway::rules::{Action, Direction, Rule, analyse, explain};
use byway_transfer::state_directory::StateDir;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The report on a gateway's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The gateway's actions, apart from its rules.
    pub gateway: Vec<String>,
    /// Each rule in a sentence.
    pub rules: Vec<String>,
    /// Problems of the configuration.
    pub findings: Vec<String>,
    /// Problems of this host that would hinder the gateway.
    pub host: Vec<String>,
    /// The nftables rules that the gateway would install.
    pub nftables: String,
    /// The `ip` commands that the gateway would run.
    pub routing: Vec<String>,
}

impl CheckReport {
    /// The report on `config`, on this host, whose key is in `key`, if there is one yet.
    #[must_use]
    pub fn here(config: &GatewayConfig, key: Option<&Path>) -> Self {
        let mut report = Self::of(config);
        if let Some(Ok(identity)) = key.filter(|key| key.exists()).map(StateDir::identity_in) {
            report.findings.extend(config.own_key(&identity).err().map(|error| error.to_string()));
        }
        let checks = [
            system::privileged(),
            system::device_free(&config.tun, Path::new(system::DEVICES_DIR)),
            plumbing::present("nft"),
            plumbing::present("ip"),
        ];
        report.host.extend(checks.into_iter().filter_map(|check| check.err().map(|error| error.to_string())));
        report.host.extend(system::complaints(&config.plan(), Path::new(system::SETTINGS_DIR)));
        report
    }

    /// A report on `config` that does not depend on this host.
    #[must_use]
    pub fn of(config: &GatewayConfig) -> Self {
        let plan = config.plan();
        let rules = config.rules.rules.iter().enumerate().map(|(place, rule)| explain(place, rule));
        let routing = plan.routing.iter().flat_map(|(family, commands)| {
            commands.lines().map(|command| format!("ip {} {command}", family.flag())).collect::<Vec<_>>()
        });
        Self {
            gateway: gateway(config),
            rules: rules.chain([sentences::REST_PASSES.to_owned()]).collect(),
            findings: findings(config),
            host: Vec::new(),
            nftables: plan.ruleset.clone(),
            routing: routing.collect(),
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.gateway.iter().chain(&self.rules) {
            writeln!(f, "{line}")?;
        }
        for (heading, lines) in
            [(sentences::FINDINGS_HEADING, &self.findings), (sentences::THIS_HOST, &self.host)]
        {
            if !lines.is_empty() {
                writeln!(f, "\n{heading}")?;
                lines.iter().try_for_each(|line| writeln!(f, "- {line}"))?;
            }
        }
        write!(f, "\n{}", sentences::would_install(&self.nftables))?;
        self.routing.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

fn gateway(config: &GatewayConfig) -> Vec<String> {
    let listen = match config.listen.as_slice() {
        [] => sentences::any_address(GATEWAY_PORT),
        told => told.iter().map(sentences::udp_address).collect::<Vec<_>>().join(", "),
    };
    let mode = match (config.settings.observe, config.settings.fail_closed) {
        (true, _) => sentences::ONLY_OBSERVES,
        (false, true) => sentences::FAILS_CLOSED,
        (false, false) => sentences::FAILS_OPEN,
    };
    let mut lines = vec![sentences::listens(&listen, &config.tun, mode)];
    for served in &config.serves {
        let ports: Vec<String> = served.ports.iter().map(ToString::to_string).collect();
        lines.push(sentences::serves(served.hosts, &ports));
    }
    lines.extend(
        GATEWAY_OPTIONS.iter().filter_map(|option| option.meaning(&config.settings)).map(str::to_owned),
    );
    if let Some(cache) = config.settings.cache {
        lines.push(sentences::keeps_packets(cache.bytes, cache.flow_bytes));
    }
    for peer in &config.peers {
        let addresses: Vec<String> = peer.addresses.iter().map(ToString::to_string).collect();
        let allowed: Vec<String> = peer.allowed.iter().map(ToString::to_string).collect();
        lines.push(sentences::peer(&peer.name, &addresses, peer.relays.len(), &allowed));
    }
    lines.extend(config.guests.iter().map(GuestSection::explain));
    lines.extend(config.relay.as_ref().map(RelayConfig::explain));
    if config.registry.is_some() {
        lines.push(sentences::ASKS_REGISTRY.to_owned());
    }
    lines
}

fn findings(config: &GatewayConfig) -> Vec<String> {
    let mut found: Vec<String> = analyse(&config.rules).iter().map(ToString::to_string).collect();
    let here: Vec<Prefix> = config.serves.iter().map(|served| served.hosts).collect();
    let there: Vec<Prefix> = config.elsewhere().collect();
    if config.peers.is_empty() {
        found.push(sentences::NO_PEER.to_owned());
    }
    if !config.rules.rules.iter().any(|rule| rule.action == Action::Background) {
        found.push(sentences::NO_BACKGROUND.to_owned());
    }
    for (place, rule) in config.rules.rules.iter().enumerate() {
        if !config.peers.is_empty() && !concerns(rule, &here, &there) {
            found.push(sentences::rule_matches_nothing(place + 1));
        }
    }
    for (place, peer) in config.peers.iter().enumerate() {
        for address in &peer.addresses {
            let own = here
                .iter()
                .find(|prefix| prefix.contains(address.ip()))
                .map(|prefix| (prefix, sentences::SERVED_HERE));
            let others = there
                .iter()
                .find(|prefix| prefix.contains(address.ip()))
                .map(|prefix| (prefix, sentences::BEHIND_PEER));
            if let Some((prefix, whose)) = own.or(others) {
                found.push(sentences::peer_address_inside(&peer.name, address, prefix, whose));
            }
        }
        for prefix in &peer.allowed {
            if let Some(own) = here.iter().find(|own| prefix.covers(own)) {
                found.push(sentences::peer_allowed_ours(&peer.name, prefix, own));
            }
            let before = config.peers.iter().take(place);
            for other in before.filter(|other| other.allowed.iter().any(|theirs| overlap(theirs, prefix))) {
                found.push(sentences::peers_overlap(&other.name, &peer.name, prefix));
            }
        }
    }
    found.extend(config.exposure());
    found
}

/// Whether any flow between the two sides can match the rule, by its addresses.
fn concerns(rule: &Rule, here: &[Prefix], there: &[Prefix]) -> bool {
    let meets = |list: &[Prefix], side: &[Prefix]| {
        list.is_empty() || list.iter().any(|a| side.iter().any(|b| overlap(a, b)))
    };
    let outbound = meets(&rule.from, here) && meets(&rule.to, there);
    let inbound = meets(&rule.from, there) && meets(&rule.to, here);
    rule.direction != Direction::Inbound && outbound || rule.direction != Direction::Outbound && inbound
}

fn overlap(a: &Prefix, b: &Prefix) -> bool {
    a.covers(b) || b.covers(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu";

    fn report(peer: &str, rest: &str) -> CheckReport {
        let text = format!(
            "[gateway]\nserves = [\"192.168.1.0/24\"]\n[[peer]]\nname = \"b\"\nkey = \"{KEY}\"\n{peer}\n{rest}"
        );
        CheckReport::of(&GatewayConfig::parse(Path::new("gw.toml"), &text).unwrap())
    }

    #[test]
    fn a_good_configuration_is_explained_and_leaves_nothing_to_say() {
        let report = report(
            "addresses = [\"198.51.100.7:4749\"]\nallowed = [\"192.168.2.0/24\"]",
            "[[rule]]\nname = \"backup\"\nto-ports = [873]",
        );
        assert_eq!(report.findings, Vec::<String>::new());
        let text = report.to_string();
        for part in [
            "The gateway listens at all addresses, UDP port 4749, with the device byway0. It fails open",
            "It serves 192.168.1.0/24.",
            "The peer b is reached at 198.51.100.7:4749, and may speak for 192.168.2.0/24.",
            "Rule 1 (backup): TCP flows opened on either side, to port 873, are carried as background.",
            "Everything else passes untouched.",
            "table inet byway_gw {",
            "ip -4 rule add fwmark 0x6277/0xffff lookup 25207 priority 25207 protocol 98",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn what_differs_from_the_usual_is_explained() {
        let text = |settings: &str| {
            let text = format!("[gateway]\nserves = [\"192.168.1.0/24\"]\n{settings}");
            CheckReport::of(&GatewayConfig::parse(Path::new("gw.toml"), &text).unwrap()).to_string()
        };
        let usual = text("");
        for part in ["Hosts are told", "It keeps", "Relays"] {
            assert!(!usual.contains(part), "{usual}");
        }
        assert!(text("window = \"off\"").contains("windows of their peers as they are"));
        assert!(text("relays = \"any\"").contains("however far off the direct path"));
        let kept = text("[limits]\ncache = \"32M\"");
        assert!(
            kept.contains("until hosts acknowledge it, at most 32.0 MiB and 4.00 MiB of a flow"),
            "{kept}"
        );
    }

    #[test]
    fn what_is_odd_is_told() {
        let told = |report: &CheckReport, part: &str| {
            assert!(
                report.findings.iter().any(|finding| finding.contains(part)),
                "{part}: {:?}",
                report.findings
            );
        };
        let odd = report(
            "addresses = [\"192.168.2.7:4749\"]\nallowed = [\"192.168.0.0/16\"]",
            "[[rule]]\nto-ports = [80]\n[[rule]]\naction = \"pass\"\nto-ports = [80]\n[[rule]]\nto = [\"10.0.0.0/8\"]",
        );
        told(&odd, "rule 2 is never reached: rule 1 before it");
        told(&odd, "rule 3 matches no flow between the hosts");
        told(&odd, "192.168.2.7:4749 of the peer b lies in 192.168.0.0/16, which is behind a peer");
        told(&odd, "which contains 192.168.1.0/24 of this site");
        told(&report("allowed = [\"10.0.0.0/8\"]", ""), "no [[rule]] makes anything background");
    }
}
