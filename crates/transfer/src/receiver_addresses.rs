//! Where senders find a receiver, and what its person has to know of that.

use crate::address::{Advertised, Endpoint};
use crate::host_name::NamedAddress;
use crate::identity::PublicKey;
use crate::reachability::Role;
use crate::secret::Secret;
use crate::sockets::is_private;
use crate::ticket::{MAX_ENTRIES, MAX_NAMES, Ticket};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use thiserror::Error;

/// The port of receivers in examples.
const USUAL_PORT: u16 = 4747;

/// Why an advertised address or name leads to no host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoHost {
    /// The address is unspecified or multicast, or its port is 0.
    #[error(
        "--advertise {0} leads to no host: write an address that senders can send to, with a port if another than the one listened on"
    )]
    Address(SocketAddr),
    /// The port beside a name is 0.
    #[error("--advertise {0} leads to no host: its port is from 1 to 65535")]
    Name(NamedAddress),
    /// There are more addresses than a ticket holds.
    #[error("--advertise gives {0} addresses, and a ticket holds {MAX_ENTRIES} at most: give fewer")]
    TooManyAddresses(usize),
    /// There are more names than a ticket holds.
    #[error("--advertise gives {0} names, and a ticket holds {MAX_NAMES} at most: give fewer")]
    TooManyNames(usize),
}

/// The addresses and names at which a receiver can be reached without a relay.
#[derive(Debug)]
pub struct DirectAddresses {
    /// Addresses for the ticket: those advertised, then the host's own. There are at most
    /// [`MAX_ENTRIES`].
    pub addresses: Vec<SocketAddr>,
    /// Names for the ticket, at most [`MAX_NAMES`].
    pub names: Vec<NamedAddress>,
    /// UDP ports that this host's firewall must let in.
    pub ports: BTreeSet<u16>,
}

impl DirectAddresses {
    /// The addresses and names in a receiver's ticket. `bound`: its sockets' local addresses.
    /// `own`: this host's addresses for senders in its network. `advertised`: its addresses and
    /// names for senders elsewhere; a missing port is taken from `bound`.
    ///
    /// # Errors
    /// An advertised address is unspecified or multicast, a port is 0, or there is more than a
    /// ticket holds.
    pub fn new(
        bound: &[SocketAddr],
        own: Vec<SocketAddr>,
        advertised: &[Advertised],
    ) -> Result<Self, NoHost> {
        let (mut addresses, names) = with_ports(bound, advertised)?;
        addresses.extend(own);
        let mut seen = BTreeSet::new();
        addresses.retain(|address| seen.insert(*address));
        addresses.truncate(MAX_ENTRIES);
        Ok(Self { addresses, names, ports: bound.iter().map(SocketAddr::port).collect() })
    }

    /// Makes the ticket of a receiver at these addresses and names, without relays.
    #[must_use]
    pub fn ticket(&self, key: PublicKey, permission: Secret<[u8; 16]>) -> Ticket {
        Ticket {
            key,
            permission,
            addresses: self.addresses.clone(),
            relays: Vec::new(),
            names: self.names.clone(),
        }
    }

    /// Whether no address is reachable from other networks, and no name leads there.
    #[must_use]
    pub fn is_private(&self) -> bool {
        !self.is_named() && self.addresses.iter().all(|address| is_private(address.ip()))
    }

    /// Whether a name may lead here from other hosts.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.names.iter().any(|host| !host.name.is_localhost())
    }

    /// Returns a warning if other hosts may not find this one in its `role`. `None`: they may.
    #[must_use]
    pub fn warning(&self, role: Role) -> Option<String> {
        if self.is_named() { None } else { role.warning(&self.addresses) }
    }
}

/// Returns the advertised addresses and names, each once. A missing port is taken from `bound`.
fn with_ports(
    bound: &[SocketAddr],
    advertised: &[Advertised],
) -> Result<(Vec<SocketAddr>, Vec<NamedAddress>), NoHost> {
    let (mut addresses, mut names) = (Vec::new(), Vec::new());
    for advertised in advertised {
        let endpoint = match advertised {
            Advertised::Address(endpoint) => endpoint,
            Advertised::Name(name, port) => {
                let port = port.or(bound.first().map(SocketAddr::port)).unwrap_or_default();
                let named = NamedAddress { name: name.clone(), port };
                if port == 0 {
                    return Err(NoHost::Name(named));
                }
                if !names.contains(&named) {
                    names.push(named);
                }
                continue;
            }
        };
        let fitting = bound.iter().find(|address| address.is_ipv4() == endpoint.ip.is_ipv4());
        let port = fitting.or(bound.first()).map_or(0, SocketAddr::port);
        let address = endpoint.or_port(port);
        if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(NoHost::Address(address));
        }
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.len() > MAX_ENTRIES {
        return Err(NoHost::TooManyAddresses(addresses.len()));
    }
    if names.len() > MAX_NAMES {
        return Err(NoHost::TooManyNames(names.len()));
    }
    Ok((addresses, names))
}

/// Whether a receiver can advertise all of `advertised`, at any port on which it may listen.
///
/// # Errors
/// As [`DirectAddresses::new`].
pub fn check_advertised(advertised: &[Advertised]) -> Result<(), NoHost> {
    let bound = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), USUAL_PORT);
    with_ports(&[bound], advertised).map(drop)
}

/// Returns the advertised addresses, without their ports.
#[must_use]
pub fn outside_addresses(advertised: &[Advertised]) -> Vec<Endpoint> {
    let address = |advertised: &Advertised| match advertised {
        Advertised::Address(endpoint) => Some(Endpoint { port: None, ..*endpoint }),
        Advertised::Name(..) => None,
    };
    advertised.iter().filter_map(address).collect()
}

/// The command that a sender runs. `ticket`: the ticket as it is to be shown.
#[must_use]
pub fn command(piped: bool, ticket: &str) -> String {
    format!("byway send {} {ticket}", if piped { "-" } else { "PATH" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(own: &[&str], advertised: &[&str]) -> Result<DirectAddresses, NoHost> {
        let bound = ["0.0.0.0:4747", "[::]:4748"].map(|text| text.parse().unwrap());
        let own = own.iter().map(|text| text.parse().unwrap()).collect();
        let advertised: Vec<Advertised> = advertised.iter().map(|text| text.parse().unwrap()).collect();
        DirectAddresses::new(&bound, own, &advertised)
    }

    fn addresses(own: &[&str], advertised: &[&str]) -> Vec<String> {
        direct(own, advertised).unwrap().addresses.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn what_is_advertised_comes_first_and_has_the_port_listened_on() {
        let own = ["192.168.1.2:4747"];
        assert_eq!(addresses(&own, &["198.51.100.7"]), ["198.51.100.7:4747", "192.168.1.2:4747"]);
        let told = ["198.51.100.7:80", "2001:db8::1", "192.168.1.2"];
        let expected = ["198.51.100.7:80", "[2001:db8::1]:4748", "192.168.1.2:4747"];
        assert_eq!(addresses(&own, &told), expected);
        for nobody in ["0.0.0.0", "198.51.100.7:0", "224.0.0.1", "::"] {
            assert!(direct(&own, &[nobody]).is_err(), "{nobody}");
        }
    }

    #[test]
    fn names_have_the_port_listened_on_and_are_at_most_four() {
        let own = ["192.168.1.2:4747"];
        let told = direct(&own, &["nas.example.org", "NAS.example.org:4747", "localhost:80"]).unwrap();
        let names: Vec<String> = told.names.iter().map(NamedAddress::to_string).collect();
        assert_eq!(names, ["nas.example.org:4747", "localhost:80"]);
        assert!(told.is_named() && !told.is_private() && told.addresses.len() == 1);
        assert!(direct(&own, &["localhost"]).unwrap().is_private());
        assert!(matches!(direct(&own, &["nas:0"]), Err(NoHost::Name(_))));
        assert_eq!(direct(&own, &["a", "b", "c", "d", "e"]).unwrap_err(), NoHost::TooManyNames(5));
        let many: Vec<String> = (1..=17).map(|last| format!("198.51.100.{last}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(direct(&own, &many[..16]).unwrap().addresses.len(), 16);
        assert_eq!(direct(&own, &many).unwrap_err(), NoHost::TooManyAddresses(17));
    }
}
