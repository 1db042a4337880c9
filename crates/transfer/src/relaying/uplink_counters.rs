//! The line that an end host lends: which interface it is, and what its counters say.

use crate::sockets;
use byway_net::{RouteTraffic, SendLimit, UplinkLedger};
use byway_relay::LendingControl;
use byway_uplink::InterfaceCounters;
use byway_wire::{Duration, Instant};
use std::net::IpAddr;

/// Whether an address is another host's. Traffic to this host's own addresses uses no line.
pub(super) fn is_elsewhere(address: IpAddr) -> bool {
    !address.is_loopback() && !sockets::own_addresses().contains(&address)
}

pub(super) struct UplinkCounters {
    traffic: RouteTraffic,
    ledger: Option<UplinkLedger>,
    looked: Option<Instant>,
    /// The limits of the sockets by which others' datagrams leave.
    limits: Vec<SendLimit>,
    /// The limit of the send queue that was last set, in bytes.
    queue: u64,
}

impl UplinkCounters {
    pub(super) const fn new(towards: IpAddr, limits: Vec<SendLimit>) -> Self {
        Self { traffic: RouteTraffic::new(towards), ledger: None, looked: None, limits, queue: 0 }
    }

    /// Passes the interface's counters to `lending`, if `every` has passed since the last time.
    pub(super) fn look(&mut self, lending: &mut LendingControl, now: Instant, every: Duration) {
        if self.looked.is_some_and(|looked| now.since(looked) < every) {
            return;
        }
        self.looked = Some(now);
        let look = self.traffic.look(now);
        if look.is_new {
            lending.move_on();
            self.ledger = self.traffic.interface().and_then(|it| UplinkLedger::open(it).ok());
        }
        // Sessions of this host do not take it for the host's own.
        let lent = lending.take_lent();
        if self.ledger.as_mut().is_some_and(|ledger| ledger.exchange_lent(lent).is_err()) {
            self.ledger = None;
        }
        lending.look(now, look.bytes.map(|(sent, received)| InterfaceCounters { sent, received }));
        let queue = lending.queue();
        if queue.abs_diff(self.queue) > self.queue / 4 {
            self.queue = queue;
            self.limits.iter().for_each(|limit| limit.set(usize::try_from(queue).unwrap_or(usize::MAX)));
        }
    }
}
