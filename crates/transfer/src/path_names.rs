//! The names of paths, for people.

use byway_engine::Route;
use byway_wire::Local;
use std::net::{IpAddr, SocketAddr};

/// `direct` or `relay ADDRESS`, and where several local addresses are in use, from which one, or of
/// which family.
#[must_use]
pub fn route_name(route: &Route, locals: &[SocketAddr]) -> String {
    if route.local.is_connection() {
        let way =
            if route.is_proxied() { relay_name(route.remote, route.local, &[]) } else { "direct".into() };
        return format!("{way} over TCP");
    }
    if route.is_proxied() {
        return relay_name(route.remote, route.local, locals);
    }
    let v4 = route.remote.is_ipv4();
    let both = locals.iter().any(|it| it.is_ipv4() != v4);
    match source(v4, route.local, locals) {
        Some(source) => format!("direct from {source}"),
        None if both && !v4 => String::from("direct IPv6"),
        None => String::from("direct"),
    }
}

/// The local address of a path's datagrams. `None`: the system chooses it, as that of TCP.
#[must_use]
pub(crate) fn local_address(route: &Route, locals: &[SocketAddr]) -> Option<IpAddr> {
    let bound = locals.get(usize::from(route.local.0)).filter(|_| !route.local.is_connection());
    bound.map(SocketAddr::ip).filter(|address| !address.is_unspecified())
}

/// The transport of a path's datagrams: `udp` or `tcp`.
#[must_use]
pub const fn carrier(route: &Route) -> &'static str {
    if route.local.is_connection() { "tcp" } else { "udp" }
}

/// The name `relay ADDRESS`. If several local addresses are in use, it also names the local
/// address.
#[must_use]
pub fn relay_name(relay: SocketAddr, local: Local, locals: &[SocketAddr]) -> String {
    match source(relay.is_ipv4(), local, locals) {
        Some(source) => format!("relay {relay} from {source}"),
        None => format!("relay {relay}"),
    }
}

/// Returns the local address of a path, for its name. `None`: this host has only one of the family.
fn source(v4: bool, local: Local, locals: &[SocketAddr]) -> Option<IpAddr> {
    let several = locals.iter().filter(|it| it.is_ipv4() == v4).count() > 1;
    locals.get(usize::from(local.0)).filter(|_| several).map(SocketAddr::ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_named_where_there_are_several() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let route = Route::direct(Local(1), address("192.0.2.9:1"));
        assert_eq!(route_name(&route, &[address("10.0.0.1:1")]), "direct");
        assert_eq!(route_name(&route, &[address("[::1]:1"), address("10.0.0.1:1")]), "direct");
        let six = Route::direct(Local(0), address("[2001:db8::9]:1"));
        assert_eq!(route_name(&six, &[address("[::1]:1"), address("10.0.0.1:1")]), "direct IPv6");
        assert_eq!(route_name(&six, &[address("[::1]:1")]), "direct");
        let tcp = Route::direct(Local::connection(0).unwrap(), address("192.0.2.9:1"));
        assert_eq!(
            (route_name(&tcp, &[address("10.0.0.1:1")]).as_str(), carrier(&tcp)),
            ("direct over TCP", "tcp")
        );
        let both = [address("10.0.0.1:1"), address("10.1.0.1:1")];
        assert_eq!(route_name(&route, &both), "direct from 10.1.0.1");
        assert_eq!(local_address(&route, &both), Some(both[1].ip()));
        let any = [address("10.0.0.1:1"), address("0.0.0.0:1")];
        assert_eq!([local_address(&route, &any), local_address(&tcp, &both)], [None; 2]);
    }
}
