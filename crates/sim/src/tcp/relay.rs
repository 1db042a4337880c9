//! A relay that ends TCP on one side and begins another TCP on the other.

use super::flow_spec::{FlowTag, Subflow};
use super::options::TcpConfig;
use super::server_config::MakeController;
use super::stack::{Onward, Stack};
use byway_wire::{Input, Instant, Machine, Transmit, TransmitBuffer};

/// A TCP relay. It accepts every connection, and carries the data on over its own connection to one
/// destination. Data stays in a buffer until the destination has acknowledged it. A full buffer
/// closes the receive window towards the source.
#[derive(Debug)]
pub struct TcpRelay {
    stack: Stack,
}

impl TcpRelay {
    /// A relay that forwards to `to`, with random numbers from `seed`. Each buffer holds `packets`
    /// full segments, at least two. All connections have `options`, but the receive window towards
    /// the source has the size of the buffer.
    #[must_use]
    pub fn new(seed: u64, to: Subflow, packets: u32, options: &TcpConfig) -> Self {
        let mut stack = Stack::new(seed);
        let room = u64::from(packets.max(2)) * u64::from(options.mss.max(1));
        stack.serve.options = options.clone().receive_window(room);
        stack.onward = Some(Onward { to, options: options.clone(), pairs: Vec::new() });
        Self { stack }
    }

    /// Sets the function that makes the controllers of connections to the destination. The default
    /// is NewReno.
    #[must_use]
    pub fn controller(mut self, controller: MakeController) -> Self {
        self.stack.serve.controller = controller;
        self
    }

    /// The tags by which the destination knows the flows that the relay opened, in the order in
    /// which the relay accepted the source's connections. There are none before the relay is in a
    /// world.
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
