//! Limits the TCP connections of strangers at a listener.

use byway_wire::NetworkPrefix;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The most connections of one network at once.
const MAX_NETWORK_CONNECTIONS: usize = 64;

/// The number of connections of each network.
#[derive(Debug, Default)]
pub(crate) struct ConnectionQuota {
    all: usize,
    of_network: BTreeMap<NetworkPrefix, usize>,
}

/// Permits one connection. When dropped, another connection may take its place.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    seats: Arc<Mutex<ConnectionQuota>>,
    network: NetworkPrefix,
}

impl ConnectionPermit {
    /// Takes a place for a connection from `peer`. `None`: its network, or all networks together,
    /// have no place left. `all`: the most connections at once.
    pub(crate) fn take(seats: &Arc<Mutex<ConnectionQuota>>, peer: IpAddr, all: usize) -> Option<Self> {
        let network = NetworkPrefix::of(peer);
        let mut held = seats.lock().unwrap_or_else(PoisonError::into_inner);
        let of_this = held.of_network.get(&network).copied().unwrap_or(0);
        // A peer on this host is one of its users.
        let most = if peer.is_loopback() { all } else { MAX_NETWORK_CONNECTIONS };
        if held.all >= all || of_this >= most {
            return None;
        }
        held.all += 1;
        held.of_network.insert(network, of_this + 1);
        drop(held);
        Some(Self { seats: Arc::clone(seats), network })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut held = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        held.all = held.all.saturating_sub(1);
        if let Some(of_this) = held.of_network.get_mut(&self.network) {
            *of_this -= 1;
            if *of_this == 0 {
                held.of_network.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_CONNECTIONS: usize = 1024;

    #[test]
    fn one_network_holds_64_and_all_hold_1024() {
        let seats = Arc::default();
        let of = |a: u8, d: u8| IpAddr::from([198, 51, a, d]);
        let mut held: Vec<ConnectionPermit> =
            (0..64).map(|d| ConnectionPermit::take(&seats, of(0, d), MAX_CONNECTIONS).unwrap()).collect();
        assert!(ConnectionPermit::take(&seats, of(0, 200), MAX_CONNECTIONS).is_none());
        assert!(
            ConnectionPermit::take(&seats, "::ffff:198.51.0.9".parse().unwrap(), MAX_CONNECTIONS).is_none(),
            "it is the same network"
        );
        held.pop();
        held.push(ConnectionPermit::take(&seats, of(0, 201), MAX_CONNECTIONS).unwrap());
        for a in 1..16 {
            held.extend((0..64).map(|d| ConnectionPermit::take(&seats, of(a, d), MAX_CONNECTIONS).unwrap()));
        }
        assert!(ConnectionPermit::take(&seats, of(99, 1), MAX_CONNECTIONS).is_none(), "all are taken");
        held.clear();
        assert!(seats.lock().unwrap().of_network.is_empty());
    }
}
