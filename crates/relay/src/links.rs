//! The relay's sockets: one per address family, the first that is up.

use crate::queue::Way;
use alloc::vec::Vec;
use byway_wire::relay::canonical;
use byway_wire::{Ecn, LinkChange, Local};
use core::net::{IpAddr, SocketAddr};

const MOST: usize = 64;

#[derive(Debug)]
pub(crate) struct Links(Vec<(Local, SocketAddr)>);

impl Links {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(MOST))
    }

    pub(crate) fn change(&mut self, change: &LinkChange) {
        self.0.retain(|(local, _)| *local != change.local);
        if change.up && self.0.len() < MOST {
            let at = self.0.partition_point(|(local, _)| *local < change.local);
            self.0.insert(at, (change.local, change.address));
        }
    }

    /// Whether one of them has this address.
    pub(crate) fn are_at(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|(_, own)| canonical(*own) == address)
    }

    /// From which socket an address is reached. Where only an IPv6 socket is up, IPv4 goes through it in mapped form.
    pub(crate) fn way(&self, remote: SocketAddr, ecn: Ecn) -> Option<Way> {
        let of = |v4: bool| self.0.iter().find(|(_, address)| address.is_ipv4() == v4);
        let (local, remote) = match (of(remote.is_ipv4()), remote.ip()) {
            (Some((local, _)), _) => (*local, remote),
            (None, IpAddr::V4(ip)) => {
                (of(false)?.0, SocketAddr::new(IpAddr::V6(ip.to_ipv6_mapped()), remote.port()))
            }
            (None, IpAddr::V6(_)) => return None,
        };
        Some(Way { local, remote, ecn })
    }
}
