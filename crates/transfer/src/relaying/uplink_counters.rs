//! The line that an end host lends: which interface it is, and what its counters say.

use crate::sockets;
use byway_net::{SendLimit, Traffic, source_for, way_out};
use byway_relay::{InterfaceCounters, LendingControl};
use byway_wire::{Duration, Instant};
use std::net::IpAddr;

/// Time between two questions to the system which interface the line is.
const ROUTE_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Whether an address is another host's. Traffic to this host's own addresses uses no line.
pub(super) fn is_elsewhere(address: IpAddr) -> bool {
    !address.is_loopback() && !sockets::own_addresses().contains(&address)
}

pub(super) struct UplinkCounters {
    towards: IpAddr,
    /// The interface by which datagrams leave, and the address from which.
    route: Option<(u32, IpAddr)>,
    traffic: Option<Traffic>,
    asked: Option<Instant>,
    looked: Option<Instant>,
    /// The limits of the sockets by which others' datagrams leave.
    limits: Vec<SendLimit>,
    /// The limit of the send queue that was last set, in bytes.
    queue: u64,
}

impl UplinkCounters {
    pub(super) const fn new(towards: IpAddr, limits: Vec<SendLimit>) -> Self {
        Self { towards, route: None, traffic: None, asked: None, looked: None, limits, queue: 0 }
    }

    /// Passes the interface's counters to `lending`, if `every` has passed since the last time.
    pub(super) fn look(&mut self, lending: &mut LendingControl, now: Instant, every: Duration) {
        let due = |last: Option<Instant>, every| last.is_none_or(|last| now.since(last) >= every);
        if !due(self.looked, every) {
            return;
        }
        self.looked = Some(now);
        if due(self.asked, ROUTE_CHECK_INTERVAL) {
            self.asked = Some(now);
            let route = source_for(self.towards)
                .and_then(|source| Some((way_out(source, self.towards).ok()??, source)));
            if route != self.route {
                // The host roamed.
                (self.route, self.traffic) = (route, route.and_then(|(index, _)| Traffic::of(index).ok()));
                lending.move_on();
            }
        }
        let bytes = self.traffic.as_ref().and_then(|traffic| traffic.bytes().ok());
        lending.look(now, bytes.map(|(sent, received)| InterfaceCounters { sent, received }));
        let queue = lending.queue();
        if queue.abs_diff(self.queue) > self.queue / 4 {
            self.queue = queue;
            self.limits.iter().for_each(|limit| limit.set(usize::try_from(queue).unwrap_or(usize::MAX)));
        }
    }
}
