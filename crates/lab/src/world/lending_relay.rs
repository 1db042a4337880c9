//! A relay at a node of its own, or at an end host. At an end host, forwarded packets give way to
//! the host's own traffic. The relay sees this traffic in the byte counters of the node's only
//! line.

use byway_relay::{COUNTER_READ_DEADLINE, COUNTER_READ_INTERVAL, Relay};
use byway_sim::world::LinkEvent;
use byway_sim::{LinkId, World};
use byway_uplink::InterfaceCounters;
use byway_wire::{Duration, Input, Instant, Local, Machine, TcpRequest, Transmit, TransmitBuffer};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes per datagram that interface counters add to the payload: UDP, IPv4 and Ethernet headers.
const HEADER_BYTES: u64 = 8 + 20 + 14;
/// The rate of a host's own traffic, in bytes per second, from which its heartbeats call it busy.
const BUSY_BYTES_PER_SECOND: u64 = 32 << 10;

/// The counters of the line at a node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeCounters(Rc<Cell<InterfaceCounters>>);

impl NodeCounters {
    /// Begins to count the bytes that enter and leave the line.
    pub(super) fn watch(&self, world: &mut World, there: LinkId, back: LinkId) {
        let line = Rc::clone(&self.0);
        world.observe(there, move |fact| {
            if matches!(fact.event, LinkEvent::Accepted { .. }) {
                let counted = line.get();
                line.set(InterfaceCounters {
                    sent: counted.sent + fact.size as u64 + HEADER_BYTES,
                    ..counted
                });
            }
        });
        let line = Rc::clone(&self.0);
        world.observe(back, move |fact| {
            if fact.event == LinkEvent::Delivered {
                let counted = line.get();
                line.set(InterfaceCounters {
                    received: counted.received + fact.size as u64 + HEADER_BYTES,
                    ..counted
                });
            }
        });
    }
}

/// A relay and the line that it lends.
#[derive(Debug)]
pub(super) struct LendingRelay {
    relay: Relay,
    line: Option<NodeCounters>,
    looked: Option<Instant>,
}

impl LendingRelay {
    pub(super) const fn new(relay: Relay, line: Option<NodeCounters>) -> Self {
        Self { relay, line, looked: None }
    }

    /// Passes the line's counters to the relay, if the last time was at least `every` ago.
    fn look(&mut self, now: Instant, every: Duration) {
        let (Some(line), Some(lending)) = (&self.line, self.relay.lending()) else { return };
        if self.looked.is_some_and(|looked| now.since(looked) < every) {
            return;
        }
        self.looked = Some(now);
        lending.look(now, Some(line.0.get()));
        let state = lending.state();
        self.relay.set_busy(now, state.own_up.max(state.own_down) >= BUSY_BYTES_PER_SECOND);
    }
}

impl Machine for LendingRelay {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if matches!(input, Input::Datagram(_)) {
            self.look(now, COUNTER_READ_DEADLINE);
        }
        self.relay.handle(now, input);
    }

    fn wake(&mut self, now: Instant) {
        self.relay.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let sent = self.relay.transmit(now, out);
        if sent.is_none() {
            self.look(now, COUNTER_READ_INTERVAL);
        }
        sent
    }

    fn deadline(&self) -> Option<Instant> {
        self.relay.deadline()
    }

    fn serves(&self, local: Local) -> bool {
        self.relay.serves(local)
    }

    fn ask(&mut self, now: Instant) -> Option<TcpRequest> {
        self.relay.ask(now)
    }
}
