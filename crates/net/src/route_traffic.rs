//! The byte counters of the interface by which datagrams to an address leave, whichever that is at
//! the time.

use crate::interfaces::source_for;
use crate::route_lookup::way_out;
use crate::traffic::Traffic;
use byway_wire::{Duration, Instant};
use std::net::IpAddr;

/// Time between two questions to the system which interface it is.
const ROUTE_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Reads the counters of the interface that the route to an address names. A VPN over another
/// interface is an interface of its own.
#[derive(Debug)]
pub struct RouteTraffic {
    towards: IpAddr,
    /// The interface by which datagrams leave, and the address from which.
    route: Option<(u32, IpAddr)>,
    traffic: Option<Traffic>,
    asked_at: Option<Instant>,
}

/// What a look at the counters gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLook {
    /// Whether the interface or its address is another than at the look before.
    pub is_new: bool,
    /// Bytes that the interface sent and received so far. `None`: there is no route, the interface
    /// is gone, or the system does not say.
    pub bytes: Option<(u64, u64)>,
}

impl RouteTraffic {
    /// The interface by which datagrams to this address leave.
    #[must_use]
    pub const fn new(towards: IpAddr) -> Self {
        Self { towards, route: None, traffic: None, asked_at: None }
    }

    /// From now on the counters are those of the interface to this address.
    pub fn turn(&mut self, towards: IpAddr) {
        if self.towards != towards {
            (self.towards, self.asked_at) = (towards, None);
        }
    }

    /// The number of the interface, as of the latest look.
    #[must_use]
    pub fn interface(&self) -> Option<u32> {
        self.route.map(|(index, _)| index)
    }

    /// Reads the counters. Every two seconds the system is asked which interface it is.
    pub fn look(&mut self, now: Instant) -> RouteLook {
        let mut is_new = false;
        if self.asked_at.is_none_or(|asked| now.since(asked) >= ROUTE_CHECK_INTERVAL) {
            self.asked_at = Some(now);
            let route = source_for(self.towards)
                .and_then(|source| Some((way_out(source, self.towards).ok()??, source)));
            is_new = route != self.route;
            if is_new {
                // The host roamed.
                (self.route, self.traffic) = (route, route.and_then(|(index, _)| Traffic::of(index).ok()));
            }
        }
        let bytes = self.traffic.as_ref().and_then(|traffic| traffic.bytes().ok());
        RouteLook { is_new, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    #[test]
    fn the_route_names_the_interface_and_its_counters_grow() {
        let (here, mut now) = (IpAddr::from(Ipv4Addr::LOCALHOST), Instant::from_millis(1));
        let mut traffic = RouteTraffic::new(here);
        let first = traffic.look(now);
        assert!(first.is_new && traffic.interface().is_some());
        let socket = UdpSocket::bind((here, 0)).unwrap();
        socket.send_to(&[7; 10_000], socket.local_addr().unwrap()).unwrap();
        now += Duration::from_millis(1);
        let second = traffic.look(now);
        assert!(!second.is_new);
        assert!(second.bytes.unwrap().0 >= first.bytes.unwrap().0 + 10_000);
        traffic.turn(Ipv4Addr::new(127, 0, 0, 9).into());
        assert!(traffic.look(now).bytes.is_some());
        assert!(!traffic.look(now).is_new, "it is the same interface");
    }
}
