//! The causes for which a sender gets no answer, each in a sentence that says what to do.

use crate::host_name::HostName;
use crate::session::name_lookup::NoAddress;
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::relay::Reason;
use std::net::SocketAddr;
use thiserror::Error;

/// Bytes of the headers of IPv4 and UDP, and of IPv6 and UDP.
const HEADER_BYTES: (usize, usize) = (20 + 8, 40 + 8);

/// The most probable reason why a sender gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// A link to the receiver does not carry packets of the size that byway needs.
    #[error(
        "the way to {address} is too narrow: byway needs packets of {} bytes{}; raise the MTU of the tunnel or \
         link on the way, or use a relay (--relay)",
        needed(.address),
        takes(.mtu)
    )]
    TooNarrow {
        /// The address that the path leads to.
        address: SocketAddr,
        /// The largest packet in bytes that the link carries. `None`: unknown.
        mtu: Option<u32>,
    },
    /// A relay does not let the packets through.
    #[error("the receiver does not answer, and relay {relay} refuses: {reason}; {}", advice(.reason))]
    RelayRefuses {
        /// The relay's address.
        relay: SocketAddr,
        /// The reason that the relay gives.
        reason: Reason,
    },
    /// The receiver's hosts answer that nothing listens.
    #[error(
        "the receiver is not running: every address of the ticket answers that nothing listens on the port; \
         start `byway recv` there, and use the ticket that it prints"
    )]
    NotRunning,
    /// A firewall, on this host or on the route, forbids sending to the receiver.
    #[error("a firewall forbids to send to the receiver: let UDP out of this host")]
    Firewall,
    /// The ticket has only private addresses.
    #[error(
        "the receiver does not answer, and every address of the ticket is private: none leads there from \
         another network; let it run with `--advertise` or a relay. In the same network: does it run, and does a \
         firewall let UDP through?"
    )]
    PrivateAddresses,
    /// Connections over TCP are accepted at the receiver's port, and no byway answers.
    #[error(
        "something else than the receiver answers over TCP at {address}, and nothing over UDP: a captive portal or a proxy may \
         stand between. Open a page in a browser and log in if it asks for that, or use a relay (--relay)"
    )]
    OtherOverTcp {
        /// The address that accepts the TCP connections.
        address: SocketAddr,
    },
    /// No packet came back.
    #[error(
        "the receiver does not answer at any address of the ticket: is `byway recv` still running there, \
         and does a firewall let UDP through? A relay may help (--relay)"
    )]
    Silent,
    /// This host has no route to the receiver.
    #[error(
        "the receiver cannot be reached from here: no network leads to any address of the ticket; \
         a relay may help (--relay)"
    )]
    NoRoute,
    /// A name of the ticket leads to no address.
    #[error("{}", unresolved(.name, .why, .rest.as_deref()))]
    Unresolved {
        /// The name.
        name: HostName,
        /// Why the name leads to no address.
        why: NoAddress,
        /// Why nobody answers at the addresses that are known. `None`: there are none.
        rest: Option<Box<NoAnswer>>,
    },
}

fn unresolved(name: &HostName, why: &NoAddress, rest: Option<&NoAnswer>) -> String {
    match rest {
        Some(rest) => format!("{rest}. And {name}: {why}"),
        None => format!(
            "{name}: {why}; the ticket has no other way to the receiver. Does the network's name service (DNS) \
             work, and is the name right?"
        ),
    }
}

/// Bytes of the packets that byway needs.
const fn needed(address: &SocketAddr) -> usize {
    BASE_DATAGRAM + if address.is_ipv4() { HEADER_BYTES.0 } else { HEADER_BYTES.1 }
}

fn takes(mtu: &Option<u32>) -> String {
    mtu.map(|mtu| format!(" (it takes {mtu})")).unwrap_or_default()
}

/// Advice for a relay that refuses with this reason.
const fn advice(reason: &Reason) -> &'static str {
    match reason {
        Reason::Destination => "its operator may allow them with --allow-destination",
        Reason::UnknownWord | Reason::Expired => {
            "get a new word from its operator, and start the receiver again with that"
        }
        Reason::NoConsent | Reason::ConsentExpired => {
            "start the receiver again, and use the ticket that it prints then"
        }
        _ => "another relay may help",
    }
}
