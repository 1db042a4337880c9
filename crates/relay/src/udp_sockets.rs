//! The relay's sockets. A packet leaves by the one that brought it, or else by the first of its
//! address family.

use crate::send_queue::SendAddress;
use alloc::vec::Vec;
use byway_wire::relay::canonical;
use byway_wire::{Ecn, LinkChange, Local, RoomChange};
use core::net::{IpAddr, SocketAddr};

const MAX_SOCKETS: usize = 64;

#[derive(Debug)]
pub(crate) struct RelaySockets(Vec<RelaySocket>);

#[derive(Debug)]
struct RelaySocket {
    local: Local,
    address: SocketAddr,
    full: bool,
}

impl RelaySockets {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(MAX_SOCKETS))
    }

    pub(crate) fn change(&mut self, change: &LinkChange) {
        let LinkChange { local, address, up } = *change;
        self.0.retain(|link| link.local != local);
        if up && self.0.len() < MAX_SOCKETS {
            let at = self.0.partition_point(|link| link.local < local);
            self.0.insert(at, RelaySocket { local, address, full: false });
        }
    }

    /// A socket is full, or has room again.
    pub(crate) fn room(&mut self, change: RoomChange) {
        let found = self.0.iter_mut().find(|link| link.local == change.local);
        if let Some(link) = found {
            link.full = !change.room;
        }
    }

    /// Whether a socket of the relay has this address.
    pub(crate) fn are_at(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|own| canonical(own.address) == address)
    }

    /// The socket from which `remote` is reached, and whether that socket is full. If only an IPv6
    /// socket is up, an IPv4 address is reached through it in mapped form.
    ///
    /// `by`: by which socket the packet to `remote` came, and from whom. It leaves by that one if
    /// that speaks the same address family: `remote` greeted the relay at the same address, and
    /// its NAT lets nothing else in.
    pub(crate) fn way(
        &self,
        by: Option<(Local, SocketAddr)>,
        remote: SocketAddr,
        ecn: Ecn,
    ) -> Option<(SendAddress, bool)> {
        if let Some((local, from)) = by
            && !local.is_connection()
            && from.is_ipv4() == remote.is_ipv4()
        {
            let full = self.0.iter().any(|link| link.local == local && link.full);
            return Some((SendAddress { local, remote, ecn }, full));
        }
        let of = |v4: bool| self.0.iter().find(|link| link.address.is_ipv4() == v4);
        let (link, remote) = match (of(remote.is_ipv4()), remote.ip()) {
            (Some(link), _) => (link, remote),
            (None, IpAddr::V4(ip)) => {
                (of(false)?, SocketAddr::new(IpAddr::V6(ip.to_ipv6_mapped()), remote.port()))
            }
            (None, IpAddr::V6(_)) => return None,
        };
        Some((SendAddress { local: link.local, remote, ecn }, link.full))
    }
}
