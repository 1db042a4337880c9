//! Which sockets to open, and which addresses to tell others.

use byway_net::{BindError, Buffers, Interface, Listener, Socket, interfaces, source_for, way_out};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Public addresses (a.root-servers.net) for which the system is asked for a route. No packet is
/// sent to them.
pub(crate) const INTERNET_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)),
];

/// The most sockets opened by default. A host with more addresses uses them for other purposes.
pub(crate) const DEFAULT_MAX_SOCKETS: usize = 8;

/// Ports that are tried where any will do, until TCP is free at one, too.
const MAX_PORT_TRIES: usize = 16;

/// Binds an address to which other hosts send first. If any port will do, it takes one that is also
/// free for TCP, for a listener on the same port.
fn bind_served(address: SocketAddr) -> Result<Socket, BindError> {
    bind_where(address, |bound| TcpListener::bind(bound).is_ok())
}

fn bind_where(address: SocketAddr, is_free: impl Fn(SocketAddr) -> bool) -> Result<Socket, BindError> {
    let first = Socket::bind(address)?;
    if address.port() != 0 || is_free(first.address()) {
        return Ok(first);
    }
    // Those that do not fit stay open meanwhile, so that the system does not give them again.
    let mut unfit = vec![first];
    while unfit.len() < MAX_PORT_TRIES {
        let next = Socket::bind(address)?;
        if is_free(next.address()) {
            return Ok(next);
        }
        unfit.push(next);
    }
    Ok(unfit.swap_remove(0))
}

/// Sockets to receive on: one per `asked` address, or else one each for IPv4 and IPv6. `before`:
/// the port that an earlier run used. It is tried first where any port will do (port 0).
///
/// # Errors
/// An `asked` address cannot be bound, or no port is left.
pub fn listening(asked: &[SocketAddr], before: Option<u16>) -> Result<Vec<Socket>, BindError> {
    let bind = |address: SocketAddr| {
        let again = before.filter(|_| address.port() == 0).map(|port| SocketAddr::new(address.ip(), port));
        again.and_then(|again| Socket::bind(again).ok()).map_or_else(|| bind_served(address), Ok)
    };
    if !asked.is_empty() {
        return asked.iter().copied().map(bind).collect();
    }
    let v4 = bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
    let port = v4.as_ref().map_or(0, |socket| socket.address().port());
    let any = |port| Socket::bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port));
    let v6 = any(port).or_else(|_| any(0));
    match (v4, v6) {
        (Err(error), Err(_)) => Err(error),
        // A host may do without one of the families.
        (v4, v6) => Ok([v4, v6].into_iter().filter_map(Result::ok).collect()),
    }
}

/// Makes sockets that are bound to all addresses answer from the address to which the question was
/// sent.
#[must_use]
pub fn answering(sockets: Vec<Socket>) -> Vec<Socket> {
    sockets.into_iter().map(Socket::answering_by_address).collect()
}

/// TCP listeners at the addresses and ports of these sockets, for senders whose networks drop UDP.
/// If another program has a port, or this user may not listen there, there is no listener, and
/// senders go on with UDP.
#[must_use]
pub fn listeners(sockets: &[Socket]) -> Vec<Listener> {
    sockets.iter().filter_map(|socket| Listener::bind(socket.address()).ok()).collect()
}

/// Opens sockets to send from: the requested ones, or else one per address of this host that
/// reaches one of `destinations`.
///
/// # Errors
/// An address that was asked for cannot be bound, or none of this host's addresses can be bound.
pub fn sending(asked: &[SocketAddr], destinations: &[IpAddr]) -> Result<Vec<Socket>, BindError> {
    if !asked.is_empty() {
        return bind_all(asked);
    }
    let wanted = |v4: bool, loopback: bool| {
        destinations.iter().any(|ip| ip.is_ipv4() == v4 && ip.is_loopback() == loopback)
    };
    let mut ips = uplinks(destinations).unwrap_or_default();
    ips.truncate(DEFAULT_MAX_SOCKETS);
    let families: [(IpAddr, IpAddr); 2] = [
        (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into()),
        (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()),
    ];
    for (any, loopback) in families {
        if wanted(any.is_ipv4(), true) {
            ips.push(loopback);
        }
        // The network may come later.
        if wanted(any.is_ipv4(), false)
            && !ips.iter().any(|ip| ip.is_ipv4() == any.is_ipv4() && !ip.is_loopback())
        {
            ips.push(any);
        }
    }
    let bound: Vec<Result<Socket, BindError>> =
        ips.into_iter().map(|ip| Socket::bind(SocketAddr::new(ip, 0))).collect();
    if bound.iter().any(Result::is_ok) {
        return Ok(bound.into_iter().filter_map(Result::ok).collect());
    }
    match bound.into_iter().find_map(Result::err) {
        Some(error) => Err(error),
        None => Ok(vec![Socket::bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0))?]),
    }
}

/// Addresses of this host from which datagrams reach `destinations` on other hosts. The source
/// addresses that the system chooses come first. Another address follows if the system routes
/// datagrams from it through the interface that has this address.
///
/// # Errors
/// The list of interfaces cannot be read.
pub(crate) fn uplinks(destinations: &[IpAddr]) -> io::Result<Vec<IpAddr>> {
    let elsewhere: Vec<IpAddr> = destinations.iter().copied().filter(|ip| !ip.is_loopback()).collect();
    let leads_out = |own: &Interface| elsewhere.iter().any(|to| leads_to(own, *to));
    Ok(best_first(interfaces()?, &elsewhere, leads_out))
}

/// Returns this host's addresses: first those from which the system sends to `destinations`, then
/// other `wanted` ones, public ones before private.
fn best_first(
    interfaces: Vec<Interface>,
    destinations: &[IpAddr],
    wanted: impl Fn(&Interface) -> bool,
) -> Vec<IpAddr> {
    let chosen: BTreeSet<IpAddr> = destinations.iter().filter_map(|to| source_for(*to)).collect();
    let mut ranked: Vec<(bool, bool, IpAddr)> = interfaces
        .into_iter()
        .filter(|own| chosen.contains(&own.address) || !own.is_loopback && wanted(own))
        .map(|own| (!chosen.contains(&own.address), is_private(own.address), own.address))
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().map(|(.., address)| address).collect()
}

/// Whether datagrams from an address leave by the interface of that address. True if the system
/// does not say.
fn leads_to(own: &Interface, destination: IpAddr) -> bool {
    own.address.is_ipv4() == destination.is_ipv4()
        && way_out(own.address, destination).map_or(true, |by| by == Some(own.index))
}

/// Binds a socket to each address.
///
/// # Errors
/// One of them cannot be bound.
pub fn bind_all(asked: &[SocketAddr]) -> Result<Vec<Socket>, BindError> {
    asked.iter().copied().map(Socket::bind).collect()
}

/// Binds the addresses `asked`, or else all addresses of this host at `port`. A host without IPv6
/// serves only IPv4.
///
/// # Errors
/// One of the addresses that were asked for, or the port for IPv4, cannot be bound.
pub fn serving(asked: &[SocketAddr], port: u16) -> Result<Vec<Socket>, BindError> {
    if !asked.is_empty() {
        return asked.iter().copied().map(bind_served).collect();
    }
    let v4 = bind_served(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))?;
    let v6 = Socket::bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)).ok();
    Ok([Some(v4), v6].into_iter().flatten().collect())
}

/// Returns a warning if the system gave a socket smaller buffers than requested. `None`: it did
/// not.
#[must_use]
pub fn clipped(sockets: &[Socket]) -> Option<String> {
    let mut buffers = sockets.iter().map(Socket::buffers);
    buffers.find(Buffers::clipped).map(|buffers| buffers.to_string())
}

/// Returns the addresses at which other hosts reach these sockets. A socket bound to all addresses
/// gives each address of the host.
#[must_use]
pub fn reachable_at(sockets: &[Socket]) -> Vec<SocketAddr> {
    reachable(sockets.iter().map(Socket::address))
}

/// Returns the addresses at which other hosts reach sockets bound to `bound`.
pub(crate) fn reachable(bound: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    // Without the list there is still the unspecified address.
    let own = best_first(interfaces().unwrap_or_default(), &INTERNET_ADDRESSES, |_| true);
    let mut found = Vec::new();
    for address in bound {
        if !address.ip().is_unspecified() {
            found.push(address);
            continue;
        }
        let before = found.len();
        let fitting = own.iter().filter(|ip| ip.is_ipv4() == address.is_ipv4());
        found.extend(fitting.map(|ip| SocketAddr::new(*ip, address.port())));
        if found.len() == before && address.is_ipv4() {
            found.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()));
        }
    }
    found.dedup();
    found
}

/// Returns all addresses of this host at which other hosts may reach it.
#[must_use]
pub fn own_addresses() -> Vec<IpAddr> {
    interfaces().unwrap_or_default().into_iter().map(|Interface { address, .. }| address).collect()
}

/// Whether an address is valid only inside one network. Such an address is private (RFC 1918, RFC
/// 4193), shared behind a provider's NAT (RFC 6598), link-local or loopback.
#[must_use]
pub const fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let shared = matches!(ip.octets(), [100, 64..=127, ..]);
            ip.is_private() || shared || ip.is_link_local() || ip.is_loopback()
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(sockets: &[Socket]) -> Vec<IpAddr> {
        sockets.iter().map(|socket| socket.address().ip()).collect()
    }

    #[test]
    fn loopback_is_reached_from_loopback_and_nowhere_else() {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(ips(&sending(&[], &[loopback]).unwrap()), [loopback]);
        let far = sending(&[], &["192.0.2.1".parse().unwrap()]).unwrap();
        assert!(!far.is_empty() && !ips(&far).contains(&loopback));
    }

    #[test]
    fn a_port_that_tcp_has_not_free_is_passed_over_where_any_will_do() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let asked = std::cell::RefCell::new(Vec::new());
        let socket = bind_where(any, |bound| {
            asked.borrow_mut().push(bound);
            asked.borrow().len() == 3
        });
        let (socket, asked) = (socket.unwrap(), asked.into_inner());
        assert_eq!(socket.address(), asked[2]);
        assert!(asked[0] != asked[1] && asked[1] != asked[2]);
        assert!(bind_where(any, |_| false).is_ok(), "UDP alone is better than nothing");
        drop(socket);
        assert_eq!(bind_where(asked[2], |_| panic!("it was asked for")).unwrap().address(), asked[2]);
    }

    #[test]
    fn what_only_some_can_reach_is_private() {
        let is = |text: &str| is_private(text.parse().unwrap());
        for ip in ["10.1.2.3", "172.31.0.1", "192.168.0.1", "100.64.0.1", "100.127.255.255", "169.254.1.1"] {
            assert!(is(ip), "{ip}");
        }
        assert!(["127.0.0.1", "::1", "fd00::1", "fe80::1"].into_iter().all(is));
        for ip in ["100.63.255.255", "100.128.0.0", "172.32.0.1", "192.0.2.1", "2001:db8::1"] {
            assert!(!is(ip), "{ip}");
        }
    }

    #[test]
    fn what_is_told_to_others_can_be_reached() {
        for address in reachable_at(&listening(&[], None).unwrap()) {
            assert!(!address.ip().is_unspecified() && address.port() != 0, "{address}");
        }
        let asked: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let sockets = listening(&[asked], None).unwrap();
        assert_eq!(reachable_at(&sockets), [sockets[0].address()]);
        // A port that somebody else has by now is not worth failing for; one that is free is the
        // same again.
        let port = sockets[0].address().port();
        assert_ne!(listening(&[asked], Some(port)).unwrap()[0].address().port(), port);
        drop(sockets);
        let sockets = listening(&[asked], Some(port)).unwrap();
        assert_eq!(sockets[0].address().port(), port);
        let any: SocketAddr = "0.0.0.0:0".parse().unwrap();
        assert!(!reachable_at(&listening(&[any], None).unwrap()).is_empty());
        assert!(listening(&[sockets[0].address()], None).unwrap_err().to_string().contains("is in use"));
    }
}
