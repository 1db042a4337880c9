//! A relay that ends TCP on one side and begins it anew on the other.

use super::stack::{Onward, Stack};
use super::{FlowTag, Subflow, TcpConfig};
use byway_wire::{Input, Instant, Machine, Transmit, TransmitBuffer};

/// Accepts every connection, and carries its data on over a connection of its own to one
/// destination.
///
/// What came is held until the destination has acknowledged it. The buffer of each connection is of
/// so many packets; one that is full closes the receive window, and so holds the source back.
#[derive(Debug)]
pub struct TcpRelay {
    stack: Stack,
}

impl TcpRelay {
    /// A relay towards `to`, whose buffers hold so many full segments, two at least. Both sides
    /// have these options, but for the receive window, which is the buffer's room. `seed` is for
    /// what it draws by chance.
    #[must_use]
    pub fn new(seed: u64, to: Subflow, packets: u32, options: &TcpConfig) -> Self {
        let mut stack = Stack::new(seed);
        let room = u64::from(packets.max(2)) * u64::from(options.mss.max(1));
        stack.serve.options = options.clone().receive_window(room);
        stack.onward = Some(Onward { to, options: options.clone(), pairs: Vec::new() });
        Self { stack }
    }

    /// By what names the destination knows what is carried on, in the order in which connections
    /// were accepted. Empty before the relay is in a world.
    pub fn tags(&self) -> impl Iterator<Item = FlowTag> + '_ {
        let pairs = self.stack.onward.iter().flat_map(|onward| &onward.pairs);
        pairs.filter_map(|pair| self.stack.tag(pair.bundle))
    }

    /// Bytes that came in order and were not acknowledged by the destination, of all connections.
    #[must_use]
    pub fn held(&self) -> u64 {
        let pairs = self.stack.onward.iter().flat_map(|onward| &onward.pairs);
        pairs.map(|pair| pair.came - pair.gone).sum()
    }
}

impl Machine for TcpRelay {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.stack.handle(now, input);
        self.stack.hand_over(now);
    }

    fn wake(&mut self, now: Instant) {
        self.stack.wake(now);
        self.stack.hand_over(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.stack.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.stack.deadline()
    }
}
