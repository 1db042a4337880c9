//! Which network interface a path uses.

use byway_net::{interface_addresses, interfaces, source_for, way_out};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Seconds after which addresses and routes are asked for anew.
const REFRESH_SECONDS: u64 = 5;
/// Routes that the kernel is asked for in that time, and kept.
const MAX_ROUTES: usize = 256;

/// The interfaces of this host by their addresses and numbers, and the routes that were looked up.
#[derive(Debug, Default)]
pub struct Interfaces {
    by_address: BTreeMap<IpAddr, Arc<str>>,
    by_index: BTreeMap<u32, Arc<str>>,
    routes: BTreeMap<(Option<IpAddr>, IpAddr), Option<Arc<str>>>,
    refreshed: Option<u64>,
}

impl Interfaces {
    /// Forgets entries that may be outdated at this second.
    pub fn refresh(&mut self, second: u64) {
        if self.refreshed.is_some_and(|at| second.saturating_sub(at) < REFRESH_SECONDS) {
            return;
        }
        self.refreshed = Some(second);
        self.routes.clear();
        self.by_address.clear();
        for (name, addresses) in interface_addresses().unwrap_or_default() {
            let name: Arc<str> = name.into();
            self.by_address.extend(addresses.into_iter().map(|address| (address, Arc::clone(&name))));
        }
        let numbered = interfaces().unwrap_or_default().into_iter();
        self.by_index = numbered.map(|interface| (interface.index, interface.name.into())).collect();
    }

    /// Returns the interface of a path between a local and a remote address. `None`: it is not
    /// known.
    pub fn of_path(&mut self, local: Option<IpAddr>, remote: Option<SocketAddr>) -> Option<Arc<str>> {
        let local = local.map(|local| local.to_canonical());
        let Some(remote) = remote.map(|remote| remote.ip().to_canonical()) else {
            return self.by_address.get(&local?).cloned();
        };
        if self.by_address.contains_key(&remote) {
            // What goes to this host's own addresses passes through no other interface.
            return self.by_address.get(&IpAddr::V4(Ipv4Addr::LOCALHOST)).cloned();
        }
        if let Some(known) = self.routes.get(&(local, remote)) {
            return known.clone();
        }
        if self.routes.len() >= MAX_ROUTES {
            return None;
        }
        let found = self.route(local, remote);
        self.routes.insert((local, remote), found.clone());
        found
    }

    /// Returns the interface by which the kernel routes from one address to the other. It need not
    /// have the local address.
    fn route(&self, local: Option<IpAddr>, remote: IpAddr) -> Option<Arc<str>> {
        let source = local.or_else(|| source_for(remote))?;
        let index = way_out(source, remote).ok().flatten();
        let found = index.and_then(|index| self.by_index.get(&index));
        found.or_else(|| self.by_address.get(&source)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_tell_the_interface_and_where_there_is_none_the_address() {
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
        assert!(interfaces.routes.len() <= MAX_ROUTES);
    }

    #[test]
    fn a_path_leaves_by_the_interface_to_which_the_route_leads() {
        let own = byway_net::interfaces().unwrap();
        let Some(other) = source_for("192.0.2.9".parse().unwrap()) else {
            println!("skipped: this host has no route to elsewhere");
            return;
        };
        let mut interfaces = Interfaces::default();
        interfaces.refresh(0);
        let found = interfaces.of_path(None, Some("192.0.2.9:9".parse().unwrap()));
        let expected =
            own.iter().find(|interface| interface.address == other).map(|interface| &*interface.name);
        assert_eq!(found.as_deref(), expected);
    }
}
