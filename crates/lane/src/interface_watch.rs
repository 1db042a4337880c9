//! The counters of the interface by which all of the lane's connections leave.

use byway_net::{RouteTraffic, source_for, way_out};
use byway_uplink::InterfaceCounters;
use byway_wire::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How a connection leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Departure {
    /// It stays in this host, or has no route.
    Nowhere,
    /// By the interface of this index.
    By(u32),
}

/// Knows by which interfaces connections leave, and reads the counters if it is only one.
#[derive(Debug, Default)]
pub(crate) struct InterfaceWatch {
    /// The number of connections that leave in each way.
    connections: BTreeMap<Departure, usize>,
    traffic: Option<RouteTraffic>,
}

/// What a look at the counters gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchLook {
    /// Whether the counters are another interface's than at the look before.
    pub is_new: bool,
    /// What they show. `None`: connections leave by several interfaces, or nothing can be read.
    pub shown: Option<InterfaceCounters>,
}

impl InterfaceWatch {
    /// A connection to this address is there. Returns how it leaves.
    pub fn on_opened(&mut self, target: IpAddr) -> Departure {
        let interface = if target.is_loopback() {
            None
        } else {
            source_for(target).and_then(|source| way_out(source, target).ok()?)
        };
        let departure = interface.map_or(Departure::Nowhere, Departure::By);
        *self.connections.entry(departure).or_default() += 1;
        if interface.is_some() {
            self.traffic.get_or_insert_with(|| RouteTraffic::new(target)).turn(target);
        }
        departure
    }

    /// A connection that left so is over.
    pub fn on_over(&mut self, departure: Departure) {
        if let Some(count) = self.connections.get_mut(&departure) {
            *count -= 1;
            if *count == 0 {
                self.connections.remove(&departure);
            }
        }
    }

    /// The interface by which connections leave, as of the latest look.
    pub fn interface(&self) -> Option<u32> {
        self.traffic.as_ref()?.interface()
    }

    /// Reads the counters.
    pub fn look(&mut self, now: Instant) -> WatchLook {
        let Some(traffic) = self.traffic.as_mut().filter(|_| self.connections.len() == 1) else {
            return WatchLook { is_new: false, shown: None };
        };
        let look = traffic.look(now);
        let is_theirs =
            traffic.interface().is_some_and(|it| self.connections.contains_key(&Departure::By(it)));
        let shown = look.bytes.filter(|_| is_theirs);
        WatchLook {
            is_new: look.is_new,
            shown: shown.map(|(sent, received)| InterfaceCounters { sent, received }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn what_stays_in_this_host_and_what_leaves_by_two_interfaces_is_not_read() {
        let now = Instant::from_millis(1);
        let mut watch = InterfaceWatch::default();
        assert_eq!(watch.look(now).shown, None, "nobody is connected");
        let here = watch.on_opened(Ipv4Addr::LOCALHOST.into());
        assert_eq!((here, watch.look(now).shown), (Departure::Nowhere, None));
        watch.on_over(here);
        assert!(watch.connections.is_empty());
        // An interface that is there in every host stands for an uplink.
        let mut traffic = RouteTraffic::new(Ipv4Addr::LOCALHOST.into());
        traffic.look(now);
        let one = Departure::By(traffic.interface().unwrap());
        watch.traffic = Some(traffic);
        watch.connections.insert(one, 1);
        assert!(watch.look(now).shown.is_some());
        watch.connections.insert(Departure::By(u32::MAX), 1);
        assert_eq!(watch.look(now).shown, None, "connections leave by two");
        watch.on_over(Departure::By(u32::MAX));
        assert!(watch.look(now).shown.is_some());
    }
}
