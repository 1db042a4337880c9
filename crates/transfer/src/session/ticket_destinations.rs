//! Where the sockets of a sender are to lead, before they are opened.

use crate::session::name_lookup::look_up_all;
use crate::ticket::Ticket;
use byway_registry::word::RegistryWord;
use byway_wire::relay::Word;
use std::net::{IpAddr, SocketAddr};

/// IP addresses to which a sender may send datagrams for the receiver, as [`Ticket::destinations`]
/// has them, and for the `registry`. If the ticket and `relays` hold no address, the names of the
/// ticket are looked up before, which takes 5 s at most.
#[must_use]
pub fn looked_up_destinations(
    ticket: &Ticket,
    relays: &[Word],
    registry: Option<&RegistryWord>,
) -> Vec<IpAddr> {
    let mut destinations = ticket.destinations(relays);
    destinations.extend(registry.iter().flat_map(|word| word.addresses.iter().map(SocketAddr::ip)));
    if ticket.addresses.is_empty() && ticket.relays.is_empty() && relays.is_empty() {
        destinations.extend(look_up_all(&ticket.names));
    }
    destinations
}
