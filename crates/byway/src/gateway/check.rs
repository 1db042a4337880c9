//! `byway gateway check`: what a configuration means, what is odd about it, and what it would
//! install. Installs nothing.

use super::config_file::{GatewayConfig, GuestSection, PORT, RelayConfig};
use super::plumbing::{self, system};
use crate::units::Bytes;
use byway_gateway::Prefix;
use byway_gateway::gateway_options::OPTIONS;
use byway_gateway::rules::{Action, Direction, Rule, analyse, explain};
use byway_transfer::state_directory::StateDir;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// What is to be told about a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// What the gateway would do, besides its rules.
    pub gateway: Vec<String>,
    /// Each rule in a sentence.
    pub rules: Vec<String>,
    /// What is odd about the configuration.
    pub findings: Vec<String>,
    /// What about this host stands in the way.
    pub host: Vec<String>,
    /// The rules of nftables that it would install.
    pub nftables: String,
    /// The commands of `ip` that it would run.
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
            system::device_free(&config.tun, Path::new(system::DEVICES)),
            plumbing::present("nft"),
            plumbing::present("ip"),
        ];
        report.host.extend(checks.into_iter().filter_map(|check| check.err().map(|error| error.to_string())));
        report.host.extend(system::complaints(&config.plan(), Path::new(system::SETTINGS)));
        report
    }

    /// What can be said of `config` anywhere.
    #[must_use]
    pub fn of(config: &GatewayConfig) -> Self {
        let plan = config.plan();
        let rules = config.rules.rules.iter().enumerate().map(|(place, rule)| explain(place, rule));
        let routing = plan.routing.iter().flat_map(|(family, commands)| {
            commands.lines().map(|command| format!("ip {} {command}", family.flag())).collect::<Vec<_>>()
        });
        Self {
            gateway: gateway(config),
            rules: rules.chain(["Everything else passes untouched.".to_owned()]).collect(),
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
        for (heading, lines) in [("To look at:", &self.findings), ("On this host:", &self.host)] {
            if !lines.is_empty() {
                writeln!(f, "\n{heading}")?;
                lines.iter().try_for_each(|line| writeln!(f, "- {line}"))?;
            }
        }
        write!(f, "\nIt would give nft:\n{}\nand run:", self.nftables)?;
        self.routing.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

fn gateway(config: &GatewayConfig) -> Vec<String> {
    let listen = match config.listen.as_slice() {
        [] => format!("all addresses, UDP port {PORT}"),
        told => told.iter().map(|address| format!("{address} (UDP)")).collect::<Vec<_>>().join(", "),
    };
    let does = match (config.settings.observe, config.settings.fail_closed) {
        (true, _) => "It only observes: nothing is carried.",
        (false, true) => {
            "It fails closed: without a session, or without the gateway, flows that are carried wait."
        }
        (false, false) => {
            "It fails open: without a session, or without the gateway, flows go by the plain route."
        }
    };
    let mut lines = vec![format!("The gateway listens at {listen}, with the device {}. {does}", config.tun)];
    for served in &config.serves {
        let ports: Vec<String> = served.ports.iter().map(ToString::to_string).collect();
        let ports = if ports.is_empty() { String::new() } else { format!(", ports {}", ports.join(", ")) };
        lines.push(format!("It serves {}{ports}.", served.hosts));
    }
    lines.extend(OPTIONS.iter().filter_map(|option| option.meaning(&config.settings)).map(str::to_owned));
    if let Some(cache) = config.settings.cache {
        lines.push(format!(
            "It keeps what it sends until hosts acknowledge it, at most {} and {} of a flow, and sends what paths lose again by itself.",
            Bytes(cache.bytes as u64),
            Bytes(cache.flow_bytes as u64)
        ));
    }
    for peer in &config.peers {
        let by = match (peer.addresses.as_slice(), peer.relays.len()) {
            ([], 0) => "waited for".to_owned(),
            ([], _) => "waited for, and reached through relays".to_owned(),
            (told, _) => {
                let told: Vec<String> = told.iter().map(ToString::to_string).collect();
                format!("reached at {}", told.join(" or "))
            }
        };
        let allowed: Vec<String> = peer.allowed.iter().map(ToString::to_string).collect();
        let relays = match peer.relays.len() {
            0 => String::new(),
            1 => ", with 1 relay".to_owned(),
            relays => format!(", with {relays} relays"),
        };
        lines.push(format!(
            "The peer {} is {by}{relays}, and may speak for {}.",
            peer.name,
            allowed.join(", ")
        ));
    }
    lines.extend(config.guests.iter().map(GuestSection::explain));
    lines.extend(config.relay.as_ref().map(RelayConfig::explain));
    if config.registry.is_some() {
        lines.push("It asks a registry for relays.".to_owned());
    }
    lines
}

fn findings(config: &GatewayConfig) -> Vec<String> {
    let mut found: Vec<String> = analyse(&config.rules).iter().map(ToString::to_string).collect();
    let here: Vec<Prefix> = config.serves.iter().map(|served| served.hosts).collect();
    let there: Vec<Prefix> = config.elsewhere().collect();
    if config.peers.is_empty() {
        found.push("there is no [[peer]]: there is nobody to carry anything to".to_owned());
    }
    if !config.rules.rules.iter().any(|rule| rule.action == Action::Background) {
        found.push("no [[rule]] makes anything background: nothing is carried".to_owned());
    }
    for (place, rule) in config.rules.rules.iter().enumerate() {
        if !config.peers.is_empty() && !concerns(rule, &here, &there) {
            found.push(format!(
                "rule {} matches no flow between the hosts that are served here and those of the peers",
                place + 1
            ));
        }
    }
    for (place, peer) in config.peers.iter().enumerate() {
        for address in &peer.addresses {
            let own = here
                .iter()
                .find(|prefix| prefix.contains(address.ip()))
                .map(|prefix| (prefix, "is served here"));
            let others = there
                .iter()
                .find(|prefix| prefix.contains(address.ip()))
                .map(|prefix| (prefix, "is behind a peer"));
            if let Some((prefix, what)) = own.or(others) {
                found.push(format!(
                    "the address {address} of the peer {} lies in {prefix}, which {what}: sessions with it still go by the plain \
                     route, as only TCP that is forwarded is captured, so there is no loop, and no route is needed as an exception",
                    peer.name
                ));
            }
        }
        for prefix in &peer.allowed {
            if let Some(own) = here.iter().find(|own| prefix.covers(own)) {
                found.push(format!(
                    "the peer {} may speak for {prefix}, with {own} in it, which is served here: flows between hosts of this site that \
                     pass this host would be captured, too",
                    peer.name
                ));
            }
            let before = config.peers.iter().take(place);
            for other in before.filter(|other| other.allowed.iter().any(|theirs| overlap(theirs, prefix))) {
                found.push(format!(
                    "the peers {} and {} may both speak for hosts in {prefix}: whoever announces the longest prefix gets their flows",
                    other.name, peer.name
                ));
            }
        }
    }
    if config.exposed {
        found.push(format!(
            "{} holds a relay's word, a secret, and can be read by others: run `chmod 600 {0}`, or write `@FILE` instead",
            config.file.display()
        ));
    }
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
        for part in ["Losses are found", "Hosts are told", "It keeps", "Relays", "Packets wait"] {
            assert!(!usual.contains(part), "{usual}");
        }
        assert!(text("loss = \"all-passed\"").contains("later has arrived on every path (Harp)"));
        assert!(text("loss = \"batched\"").contains("maps in the packets that it sends (HIR)"));
        assert!(text("window = \"literal\"").contains("sum of the paths' windows (Harp)"));
        assert!(text("window = \"off\"").contains("windows of their peers as they are"));
        assert!(text("relays = \"any\"").contains("however far off the direct path"));
        assert!(text("relays = \"exclude\"").contains("are never used (Harp)"));
        assert!(
            text("timer = \"harp-relative\"").contains("1.5 times what the least delays of the paths differ")
        );
        assert!(text("timer = \"hir-relative\"").contains("the largest mean delay"));
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
        told(&odd, "with 192.168.1.0/24 in it, which is served here");
        told(&report("allowed = [\"10.0.0.0/8\"]", ""), "no [[rule]] makes anything background");
    }
}
