//! The addresses this host could send from: a path may start at each of them.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// An address of a network interface that is up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interface {
    /// The system's name of the interface, `eth0` for one. One interface may have several
    /// addresses.
    pub name: String,
    /// The system's number of the interface. 0: it no longer exists.
    pub index: u32,
    /// The address to bind to.
    pub address: IpAddr,
    /// Whether the interface is a loopback device. A host whose uplinks are all unnumbered has its
    /// only address there. 127.0.0.1 and ::1 are left out of the list of interfaces, so other hosts
    /// can reach every address in it.
    pub is_loopback: bool,
}

/// The addresses of all interfaces that are up and running, sorted. Loopback (127.0.0.1, ::1),
/// unspecified, multicast and link-local addresses are left out; binding to a link-local address
/// would need a scope.
///
/// # Errors
///
/// What the system said.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let running = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let mut usable: Vec<Interface> = getifaddrs()?
        .filter(|entry| entry.flags.contains(running))
        .filter_map(|entry| {
            let address = entry.address.as_ref().and_then(ip)?;
            let index = if_nametoindex(entry.interface_name.as_str()).unwrap_or(0);
            let is_loopback = entry.flags.contains(InterfaceFlags::IFF_LOOPBACK);
            Some(Interface { name: entry.interface_name, index, address, is_loopback })
        })
        .filter(|interface| may_start_a_path(interface.address))
        .collect();
    usable.sort();
    usable.dedup();
    Ok(usable)
}

/// All network interfaces by their names, each with its addresses. An interface may have none. IPv6
/// link-local addresses are left out: binding to one would need a scope.
///
/// # Errors
///
/// What the system said.
pub fn interface_addresses() -> io::Result<BTreeMap<String, Vec<IpAddr>>> {
    let mut found: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for entry in getifaddrs()? {
        // An address may have a label of its own, which is the interface's name and more.
        let name = entry.interface_name.split(':').next().unwrap_or_default();
        let addresses = found.entry(name.to_owned()).or_default();
        addresses.extend(entry.address.as_ref().and_then(ip).filter(|address| !needs_scope(*address)));
    }
    Ok(found)
}

const fn needs_scope(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// The source address that the system chooses for packets to `destination`; `None` without a route.
/// The address may be on a loopback device, as on hosts with a routing protocol or an unnumbered
/// uplink. Nothing is sent.
#[must_use]
pub fn source_for(destination: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    // The discard service's port, which no route depends on.
    socket.connect(SocketAddr::new(destination, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

fn may_start_a_path(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => global_v4(v4),
        IpAddr::V6(v6) => global_v6(v6),
    }
}

fn global_v4(address: Ipv4Addr) -> bool {
    !(address.is_loopback() || address.is_link_local() || address.is_unspecified() || address.is_multicast())
}

fn global_v6(address: Ipv6Addr) -> bool {
    !(address.is_loopback()
        || address.is_unicast_link_local()
        || address.is_unspecified()
        || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn every_address_listed_can_be_bound_and_is_not_loopback() {
        for Interface { name, address, .. } in interfaces().unwrap() {
            assert!(!address.is_loopback(), "{name} {address}");
            let bound = UdpSocket::bind((address, 0)).unwrap();
            assert_eq!(bound.local_addr().unwrap().ip(), address);
        }
    }

    #[test]
    fn every_interface_is_there_and_loopback_has_its_addresses() {
        let all = interface_addresses().unwrap();
        assert!(all["lo"].contains(&IpAddr::from([127, 0, 0, 1])), "{all:?}");
        assert!(interfaces().unwrap().iter().all(|own| all[&own.name].contains(&own.address)), "{all:?}");
        assert!(!all.values().flatten().any(|address| needs_scope(*address)), "{all:?}");
    }

    #[test]
    fn the_system_names_the_address_that_it_sends_from() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(source_for(loopback), Some(loopback));
    }

    #[test]
    fn addresses_that_lead_nowhere_are_left_out() {
        for useless in ["127.0.0.1", "169.254.3.4", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "::", "ff02::1"]
        {
            assert!(!may_start_a_path(useless.parse().unwrap()), "{useless}");
        }
        for useful in ["192.0.2.2", "10.0.0.1", "fd00::2", "2001:db8::1"] {
            assert!(may_start_a_path(useful.parse().unwrap()), "{useful}");
        }
    }
}
