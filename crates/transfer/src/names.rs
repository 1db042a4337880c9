//! What a person calls a path.

use byway_engine::{Route, Via};
use std::net::SocketAddr;

/// `direct` or `relay ADDRESS`, and where several local addresses are in use, from which one, or of which family.
#[must_use]
pub fn route_name(route: &Route, locals: &[SocketAddr]) -> String {
    let name = match &route.via {
        Via::Direct => String::from("direct"),
        Via::Relay(_) | Via::Return(_) => format!("relay {}", route.remote),
    };
    let v4 = route.remote.is_ipv4();
    let (same, other) =
        (locals.iter().filter(|it| it.is_ipv4() == v4).count(), locals.iter().any(|it| it.is_ipv4() != v4));
    match locals.get(usize::from(route.local.0)) {
        Some(local) if same > 1 => format!("{name} from {}", local.ip()),
        Some(_) if other && !v4 && matches!(route.via, Via::Direct) => format!("{name} IPv6"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::Local;

    #[test]
    fn local_addresses_are_named_where_there_are_several() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let route = Route::direct(Local(1), address("192.0.2.9:1"));
        assert_eq!(route_name(&route, &[address("10.0.0.1:1")]), "direct");
        assert_eq!(route_name(&route, &[address("[::1]:1"), address("10.0.0.1:1")]), "direct");
        let six = Route::direct(Local(0), address("[2001:db8::9]:1"));
        assert_eq!(route_name(&six, &[address("[::1]:1"), address("10.0.0.1:1")]), "direct IPv6");
        assert_eq!(route_name(&six, &[address("[::1]:1")]), "direct");
        let both = [address("10.0.0.1:1"), address("10.1.0.1:1")];
        assert_eq!(route_name(&route, &both), "direct from 10.1.0.1");
    }
}
