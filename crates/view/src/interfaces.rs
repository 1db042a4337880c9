//! Which network interface a path uses.

use byway_net::{interface_addresses, source_for};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Seconds after which addresses and routes are asked for anew.
const REFRESH_SECONDS: u64 = 5;
/// Routes that the kernel is asked for in that time, and kept.
const MAX_ROUTES: usize = 256;

/// The interfaces of this host by their addresses, and the routes that were asked for.
#[derive(Debug, Default)]
pub struct Interfaces {
    by_address: BTreeMap<IpAddr, Arc<str>>,
    by_remote: BTreeMap<IpAddr, Option<Arc<str>>>,
    refreshed: Option<u64>,
}

impl Interfaces {
    /// Forgets what may be outdated at this second.
    pub fn refresh(&mut self, second: u64) {
        if self.refreshed.is_some_and(|at| second.saturating_sub(at) < REFRESH_SECONDS) {
            return;
        }
        self.refreshed = Some(second);
        self.by_remote.clear();
        self.by_address.clear();
        for (name, addresses) in interface_addresses().unwrap_or_default() {
            let name: Arc<str> = name.into();
            self.by_address.extend(addresses.into_iter().map(|address| (address, Arc::clone(&name))));
        }
    }

    /// The interface of a path between a local address and a remote one. The kernel's route tells
    /// it where the local address is not known. `None`: nothing tells it.
    pub fn of_path(&mut self, local: Option<IpAddr>, remote: Option<SocketAddr>) -> Option<Arc<str>> {
        let remote = remote.map(|remote| remote.ip().to_canonical());
        if remote.is_some_and(|remote| self.by_address.contains_key(&remote)) {
            // What goes to this host's own addresses passes through no other interface.
            return self.by_address.get(&IpAddr::V4(Ipv4Addr::LOCALHOST)).cloned();
        }
        if let Some(local) = local {
            return self.by_address.get(&local.to_canonical()).cloned();
        }
        let remote = remote?;
        if let Some(known) = self.by_remote.get(&remote) {
            return known.clone();
        }
        if self.by_remote.len() >= MAX_ROUTES {
            return None;
        }
        let found = source_for(remote).and_then(|source| self.by_address.get(&source).cloned());
        self.by_remote.insert(remote, found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_the_interface_and_where_it_is_not_known_a_route() {
        let mut interfaces = Interfaces::default();
        interfaces.refresh(0);
        let own: SocketAddr = "127.0.0.1:9".parse().unwrap();
        assert_eq!(interfaces.of_path(Some(own.ip()), None).as_deref(), Some("lo"));
        assert_eq!(interfaces.of_path(None, Some(own)).as_deref(), Some("lo"));
        assert_eq!(interfaces.of_path(Some("192.0.2.250".parse().unwrap()), None), None);
        assert_eq!(interfaces.of_path(None, None), None);
        for host in 0..=u16::MAX {
            let [high, low] = host.to_be_bytes();
            interfaces.of_path(None, Some(SocketAddr::from(([127, 1, high, low], 1))));
        }
        assert!(interfaces.by_remote.len() <= MAX_ROUTES);
    }
}
