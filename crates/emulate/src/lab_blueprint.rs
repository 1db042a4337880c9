//! A graph becomes hosts with addresses, wires with pipes, and routes. That is all that is to be
//! built, before anything is.

use byway_sim::PipeConfig;
use byway_sim::topology::Graph;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The most hosts of a lab: each is a network namespace with a route to every other.
pub const MAX_HOSTS: usize = 250;

/// A network that is ready to be built.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The hosts, in the graph's order.
    pub hosts: Vec<Host>,
    /// The wires between the hosts, in the order of the graph's links.
    pub wires: Vec<Wire>,
}

/// A host: a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name of the host, which resolves on every host of the lab.
    pub name: String,
    /// The host's IPv4 address, reachable from everywhere.
    pub v4: Ipv4Addr,
    /// The host's IPv6 address.
    pub v6: Ipv6Addr,
    /// The host's devices, in the order of the wires.
    pub devices: Vec<Device>,
    /// The neighbour that leads to each other host, both by number. Hosts that cannot be reached
    /// are missing.
    pub routes: BTreeMap<usize, usize>,
}

/// A network device of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The name of the device. It is that of the neighbour, if a device can be called so.
    pub name: String,
    /// The number of the device's wire, and the end of the wire (0 or 1).
    pub wire: (usize, usize),
    /// The number of the host at the other end of the wire.
    pub neighbour: usize,
}

/// A wire between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// The numbers of the hosts at both ends of the wire.
    pub ends: [usize; 2],
    /// The pipe in each direction: from `ends[0]` to `ends[1]`, then back. Their `overhead` is 0
    /// bytes, since the frames already contain all headers.
    pub pipes: [PipeConfig; 2],
}

/// Why a graph cannot become a lab.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlueprintError {
    /// The plan has nothing to build.
    #[error("a lab needs at least two hosts and a link between them")]
    Empty,
    /// The plan has too many hosts.
    #[error("{hosts} hosts are too many for one machine: at most {MAX_HOSTS}")]
    TooLarge {
        /// Number of hosts in the plan.
        hosts: usize,
    },
    /// A node that cannot be a host.
    #[error(
        "{name:?} cannot be a host's name: expected up to 63 letters, digits, - and _, a letter or digit first"
    )]
    BadName {
        /// The name of the node.
        name: String,
    },
    /// Two names that a resolver does not tell apart.
    #[error(
        "{first} and {second} are the same name to a resolver, which does not tell small from capital letters"
    )]
    SameName {
        /// The first of the two names.
        first: String,
        /// The second of the two names.
        second: String,
    },
}

impl Blueprint {
    /// Plans a lab for `graph`: a host for each node, a wire for each edge, and routes. Host number
    /// i (from 1) has the addresses 10.66.0.i and fd66::i (i in hexadecimal) on all its links.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn new(graph: &Graph) -> Result<Self, BlueprintError> {
        let names: Vec<&str> = graph.nodes().collect();
        let directions: Vec<_> = graph.directions().collect();
        if directions.is_empty() {
            return Err(BlueprintError::Empty);
        }
        if names.len() > MAX_HOSTS {
            return Err(BlueprintError::TooLarge { hosts: names.len() });
        }
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for (number, name) in names.iter().enumerate() {
            if !names_a_host(name) {
                return Err(BlueprintError::BadName { name: (*name).to_owned() });
            }
            if let Some(first) = numbers.insert(name.to_ascii_lowercase(), number) {
                let first = names.get(first).map_or_else(String::new, |name| (*name).to_owned());
                return Err(BlueprintError::SameName { first, second: (*name).to_owned() });
            }
        }
        let number = |name: &str| numbers.get(&name.to_ascii_lowercase()).copied().unwrap_or_default();
        let wires: Vec<Wire> = directions
            .chunks_exact(2)
            .filter_map(|pair| {
                let (there, back) = (*pair.first()?, *pair.last()?);
                let (from, to) = graph.ends(there);
                let pipes = [there, back].map(|way| PipeConfig { overhead: 0, ..graph.config(way).clone() });
                Some(Wire { ends: [number(from), number(to)], pipes })
            })
            .collect();
        let host = |(number_here, name): (usize, &&str)| Host {
            name: (*name).to_owned(),
            v4: address_v4(number_here),
            v6: address_v6(number_here),
            devices: devices(number_here, &names, &wires),
            routes: names
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number_here)
                .filter_map(|(other, to)| {
                    let way = graph.way(name, to, &[]).ok()?;
                    Some((other, number(graph.ends(*way.first()?).1)))
                })
                .collect(),
        };
        let hosts = names.iter().enumerate().map(host).collect();
        Ok(Self { hosts, wires })
    }

    /// The content of `/etc/hosts` for the hosts of the lab: every host's name and addresses.
    #[must_use]
    pub fn hosts_file(&self) -> String {
        let head = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
        self.hosts
            .iter()
            .fold(head, |file, host| file + &format!("{0} {2}\n{1} {2}\n", host.v4, host.v6, host.name))
    }

    /// The name of one direction of a wire. It is the simulator's name, so both draw the same
    /// random numbers from a seed.
    #[must_use]
    pub fn direction_name(&self, wire: usize, end: usize) -> String {
        let name = |end: usize| {
            let host = self.wires.get(wire).and_then(|wire| wire.ends.get(end));
            host.and_then(|&host| self.hosts.get(host)).map_or("", |host| host.name.as_str())
        };
        format!("{}>{}", name(end), name(1 - end.min(1)))
    }
}

/// The Ethernet address of the device of `host` towards `neighbour`: administered locally, and
/// known without asking.
#[must_use]
pub fn mac(host: usize, neighbour: usize) -> String {
    let [host, neighbour] = [host, neighbour].map(|number| (number as u16).to_be_bytes());
    format!("02:66:{:02x}:{:02x}:{:02x}:{:02x}", host[0], host[1], neighbour[0], neighbour[1])
}

fn address_v4(number: usize) -> Ipv4Addr {
    let [high, low] = (number as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, 66, high, low)
}

fn address_v6(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, number as u16 + 1)
}

fn names_a_host(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= 63
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.eq_ignore_ascii_case("localhost")
}

/// The kernel allows 15 bytes, and gives some names a meaning.
fn names_a_device(name: &str) -> bool {
    name.len() <= 15 && !["lo", "all", "default"].contains(&name)
}

fn devices(host: usize, names: &[&str], wires: &[Wire]) -> Vec<Device> {
    let ends = wires.iter().enumerate().flat_map(|(wire, of)| [(wire, 0, of.ends), (wire, 1, of.ends)]);
    let mine = ends.filter(|(_, end, ends)| ends.get(*end) == Some(&host));
    mine.enumerate()
        .filter_map(|(place, (wire, end, ends))| {
            let neighbour = *ends.get(1 - end)?;
            let name = names.get(neighbour).filter(|name| names_a_device(name));
            let name = name.map_or_else(|| format!("eth{place}"), |name| (*name).to_owned());
            Some(Device { name, wire: (wire, end), neighbour })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_sim::topology::{KNOWN_TOPOLOGIES, Parameters, named};
    use byway_wire::Duration;

    fn line(ms: u64) -> PipeConfig {
        PipeConfig::new(10_000_000, Duration::from_millis(ms))
    }

    fn triangle() -> Graph {
        let mut graph = Graph::new();
        graph.join("alice", "bob", &line(30)).unwrap();
        graph.join("alice", "relay", &line(5)).unwrap();
        graph.join("relay", "bob", &line(5)).unwrap();
        graph
    }

    #[test]
    fn hosts_have_addresses_devices_and_routes_along_the_shortest_ways() {
        let blueprint = Blueprint::new(&triangle()).unwrap();
        let alice = &blueprint.hosts[0];
        assert_eq!((alice.v4.to_string(), alice.v6.to_string()), ("10.66.0.1".into(), "fd66::1".into()));
        let devices: Vec<_> =
            alice.devices.iter().map(|device| (device.name.as_str(), device.wire)).collect();
        assert_eq!(devices, [("bob", (0, 0)), ("relay", (1, 0))]);
        // The way over the relay is shorter than the direct link.
        assert_eq!(alice.routes, BTreeMap::from([(1, 2), (2, 2)]));
        assert_eq!(blueprint.wires[0].pipes[0].overhead, 0, "frames bring their headers along");
        assert_eq!(blueprint.direction_name(2, 1), "bob>relay");
        assert!(blueprint.hosts_file().contains("\n10.66.0.2 bob\nfd66::2 bob\n"));
        assert_ne!(mac(1, 2), mac(2, 1));
    }

    #[test]
    fn following_the_routes_leads_everywhere_and_never_in_circles() {
        for known in KNOWN_TOPOLOGIES {
            let graph = named(known.name, &Parameters::new(1)).unwrap();
            let Ok(blueprint) = Blueprint::new(&graph) else { continue };
            for (from, host) in blueprint.hosts.iter().enumerate() {
                for &to in host.routes.keys() {
                    let mut here = from;
                    let mut hops = 0;
                    while here != to {
                        here = blueprint.hosts[here].routes[&to];
                        hops += 1;
                        assert!(hops <= blueprint.hosts.len(), "{}: {from} to {to}", known.name);
                    }
                }
            }
        }
    }

    #[test]
    fn names_that_nobody_could_resolve_are_refused() {
        let join = |a: &str, b: &str| {
            let mut graph = Graph::new();
            graph.join(a, b, &line(1)).unwrap();
            Blueprint::new(&graph)
        };
        for wrong in ["-a", "a.b", "a/b", "ä", "localhost", &"x".repeat(64)] {
            assert_eq!(join(wrong, "b").unwrap_err(), BlueprintError::BadName { name: wrong.to_owned() });
        }
        assert!(matches!(join("Bob", "bob").unwrap_err(), BlueprintError::SameName { .. }));
        assert_eq!(Blueprint::new(&Graph::new()).unwrap_err(), BlueprintError::Empty);
        let long = join("a-name-longer-than-a-device", "lo").unwrap();
        assert_eq!(long.hosts[1].devices[0].name, "eth0");
        assert_eq!(long.hosts[0].devices[0].name, "eth0");
    }
}
