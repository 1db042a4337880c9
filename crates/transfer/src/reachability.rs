//! Sentences about which hosts can reach this one, and about the ports that a firewall must open,
//! for the person who started the program.

use crate::sockets::is_private;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The role of a host that waits for others to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A receiver, which a ticket leads to.
    Receiver,
    /// A sink, which a ticket leads to. Sources send over TCP alone.
    Sink,
    /// A relay, to which a relay word leads.
    Relay {
        /// Whether the relay also forwards over TCP.
        tcp: bool,
    },
    /// A registry, whose words contain its addresses.
    Registry,
}

impl Role {
    /// Returns what other hosts do with this host, as part of a sentence.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Receiver | Self::Sink => "send here",
            Self::Relay { .. } => "use this relay",
            Self::Registry => "ask this registry",
        }
    }

    /// Returns the text that contains the host's addresses, as part of a sentence.
    const fn name(self) -> &'static str {
        match self {
            Self::Receiver | Self::Sink => "the ticket",
            Self::Relay { .. } => "its word",
            Self::Registry => "its words",
        }
    }

    /// Returns the transports by which the host is reached, as part of a sentence.
    const fn carriers(self) -> &'static str {
        match self {
            Self::Receiver | Self::Registry | Self::Relay { tcp: false } => "UDP",
            Self::Sink => "TCP",
            Self::Relay { tcp: true } => "UDP and TCP",
        }
    }

    /// Returns a warning if other hosts may not find this one at these addresses. `None`: they may.
    #[must_use]
    pub fn warning(self, addresses: &[SocketAddr]) -> Option<String> {
        let (purpose, name, carriers) = (self.purpose(), self.name(), self.carriers());
        if addresses.iter().all(|address| address.ip().is_loopback()) {
            let verb = if name.ends_with('s') { "name" } else { "names" };
            return Some(format!("only this host can {purpose}: {name} {verb} no address of a network"));
        }
        let shown: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        let relay = match self {
            Self::Receiver | Self::Sink => ". Or use a relay: --relay WORD",
            Self::Relay { .. } | Self::Registry => "",
        };
        addresses.iter().all(|address| is_private(address.ip())).then(|| {
            format!(
                "only hosts of the same network can {purpose}: every address in {name} is private ({}). \
                 If a router or a cloud forwards {carriers} to this host, name its outside address: \
                 --advertise ADDR:PORT{relay}",
                shown.join(", ")
            )
        })
    }

    /// Returns a sentence that says which ports a firewall must open.
    #[must_use]
    pub fn firewall(self, ports: &BTreeSet<u16>) -> String {
        let shown: Vec<String> = ports.iter().map(u16::to_string).collect();
        let noun = if ports.len() == 1 { "port" } else { "ports" };
        format!("a firewall on the way must let in {} {noun} {}", self.carriers(), shown.join(" and "))
    }
}

/// Returns a sentence that says which ports a firewall must open for a direct path, for a receiver
/// with relays.
#[must_use]
pub fn firewall_beside_relays(ports: &BTreeSet<u16>) -> String {
    format!(
        "through the relay no port has to be opened; for a direct path, {}",
        Role::Receiver.firewall(ports)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: [Role; 4] = [Role::Receiver, Role::Sink, Role::Relay { tcp: true }, Role::Registry];

    #[test]
    fn who_finds_a_host_is_told_where_that_is_not_everybody() {
        let warning = |role: Role, addresses: &[&str]| {
            role.warning(&addresses.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
        };
        let private = ["192.168.1.2:4747", "100.64.3.4:4747", "[fd00::1]:4748"];
        for role in EACH {
            let said = warning(role, &private).unwrap();
            assert!(said.contains("(192.168.1.2, 100.64.3.4, fd00::1)"), "{said}");
            assert!(said.contains("--advertise ADDR:PORT"), "{said}");
            let is_receiver = matches!(role, Role::Receiver | Role::Sink);
            assert_eq!(said.contains("--relay WORD"), is_receiver, "{said}");
            assert_eq!(warning(role, &["192.168.1.2:4747", "[2001:db8::1]:4748"]), None);
        }
        let local = |role| warning(role, &["127.0.0.1:1"]).unwrap();
        assert_eq!(
            local(Role::Receiver),
            "only this host can send here: the ticket names no address of a network"
        );
        assert!(local(Role::Relay { tcp: true }).starts_with("only this host can use this relay"));
        assert!(local(Role::Registry).ends_with("its words name no address of a network"));
    }

    #[test]
    fn each_names_its_ports_and_what_they_carry() {
        let [one, two] = [vec![4748], vec![4747, 4748]].map(|ports| ports.into_iter().collect());
        let said = EACH.map(|role| role.firewall(&one).replace("a firewall on the way must let in ", ""));
        assert_eq!(said, ["UDP port 4748", "TCP port 4748", "UDP and TCP port 4748", "UDP port 4748"]);
        assert_eq!(
            Role::Relay { tcp: false }.firewall(&two),
            "a firewall on the way must let in UDP ports 4747 and 4748"
        );
        assert!(firewall_beside_relays(&one).starts_with("through the relay no port has to be opened"));
    }
}
