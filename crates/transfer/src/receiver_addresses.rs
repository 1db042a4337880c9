//! Where senders find a receiver, and what its person has to know of that.

use crate::address::Endpoint;
use crate::sockets::is_private;
use crate::ticket::MAX_ENTRIES;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use thiserror::Error;

/// The advertised text is no address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "--advertise {0} leads to no host: write an address that senders can send to, with a port if another than the one listened on"
)]
pub struct NoHost(pub SocketAddr);

/// Where a receiver can be reached directly.
#[derive(Debug)]
pub struct DirectAddresses {
    /// Addresses for the ticket: those advertised, then the host's own. There are at most
    /// [`MAX_ENTRIES`].
    pub addresses: Vec<SocketAddr>,
    /// UDP ports that this host's firewall must let in.
    pub ports: BTreeSet<u16>,
}

impl DirectAddresses {
    /// The addresses in a receiver's ticket. `bound`: its sockets' local addresses. `own`: this
    /// host's addresses for senders in its network. `advertised`: its addresses for senders
    /// elsewhere; a missing port is taken from `bound`.
    ///
    /// # Errors
    /// An advertised address is unspecified or multicast, or its port is 0.
    pub fn new(bound: &[SocketAddr], own: Vec<SocketAddr>, advertised: &[Endpoint]) -> Result<Self, NoHost> {
        let mut addresses = Vec::new();
        for endpoint in advertised {
            let fitting = bound.iter().find(|address| address.is_ipv4() == endpoint.ip.is_ipv4());
            let port = fitting.or(bound.first()).map_or(0, SocketAddr::port);
            let address = endpoint.or_port(port);
            if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
                return Err(NoHost(address));
            }
            addresses.push(address);
        }
        addresses.extend(own);
        let mut seen = BTreeSet::new();
        addresses.retain(|address| seen.insert(*address));
        addresses.truncate(MAX_ENTRIES);
        Ok(Self { addresses, ports: bound.iter().map(SocketAddr::port).collect() })
    }

    /// Whether no address is reachable from other networks.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.addresses.iter().all(|address| is_private(address.ip()))
    }
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
        let advertised: Vec<Endpoint> = advertised.iter().map(|text| text.parse().unwrap()).collect();
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
}
