//! Looks at the counters of the uplink, and changes nothing.

use crate::report_text::{UplinkCounters, UplinkReport};
use byway_net::RouteTraffic;
use byway_uplink::{InterfaceCounters, Observation};
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Addresses that only a default route leads to (RFC 5737, RFC 3849). Nothing is sent there.
const FOREIGN_ADDRS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Looks at the interface of the default route: that of IPv4, or of IPv6 where there is no other.
#[derive(Debug)]
pub struct UplinkObserver {
    routes: [(RouteTraffic, Observation); 2],
    looked_at: Option<Instant>,
}

impl Default for UplinkObserver {
    fn default() -> Self {
        let route = |address| (RouteTraffic::new(address), Observation::default());
        Self { routes: FOREIGN_ADDRS.map(route), looked_at: None }
    }
}

impl UplinkObserver {
    /// Returns what the uplink carried since the look before. `None`: that was less than a second
    /// ago.
    pub fn look(&mut self, now: Instant) -> Option<UplinkReport> {
        let is_first = self.looked_at.is_none();
        if self.looked_at.is_some_and(|at| now.since(at) < LOOK_INTERVAL) {
            return None;
        }
        self.looked_at = Some(now);
        let mut has_route = false;
        let uplink = self.routes.iter_mut().find_map(|(traffic, seen)| {
            let look = traffic.look(now);
            if look.is_new {
                seen.move_on();
            }
            has_route |= look.bytes.is_some();
            let shown = look.bytes.map(|(sent, received)| InterfaceCounters { sent, received });
            seen.look(shown, now).map(UplinkCounters::from)
        });
        // After one look at an interface nothing is known of it yet.
        (uplink.is_some() || !has_route || !is_first).then_some(UplinkReport { uplink })
    }
}
