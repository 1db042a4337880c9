//! A host with any number of flows, client and server at once.

use super::bundle::Bundle;
use super::flow_spec::{Flow, FlowId, FlowReport, FlowTag, ReceiverReport, SubflowReport};
use super::server_config::ServerConfig;
use super::stack::Stack;
use byway_wire::{Input, Instant, Machine, PathId, Transmit, TransmitBuffer};

/// A TCP host. It accepts every connection, reads all data, and answers requests.
#[derive(Debug)]
pub struct TcpHost {
    stack: Stack,
    flows: Vec<u32>,
}

impl TcpHost {
    /// Makes a host that serves with default options. `seed` is for its random choices.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { stack: Stack::new(seed), flows: Vec::new() }
    }

    /// A host that serves connections in this way.
    #[must_use]
    pub fn serving(seed: u64, serve: ServerConfig) -> Self {
        let mut host = Self::new(seed);
        host.serve(serve);
        host
    }

    /// Sets how connections are served that are opened from now on.
    pub fn serve(&mut self, serve: ServerConfig) {
        self.stack.serve = serve;
    }

    /// Opens a flow, before the world runs or while it does. A start in the past means now.
    pub fn open(&mut self, flow: Flow) -> FlowId {
        self.flows.push(self.stack.open(flow, 0));
        FlowId(self.flows.len() as u32 - 1)
    }

    /// Changes the rate at which a flow's application writes, from `now` on. `rate` is in bits of
    /// payload per second; `None`: as much as possible.
    pub fn set_rate(&mut self, now: Instant, flow: FlowId, rate: Option<u64>) {
        self.change(flow, |bundle| {
            bundle.supply.set_rate(now, rate, bundle.delivered);
        });
    }

    /// Ends a flow's application. The data that it has written are still delivered.
    pub fn stop(&mut self, now: Instant, flow: FlowId) {
        self.change(flow, |bundle| bundle.stop = now);
    }

    fn change(&mut self, flow: FlowId, change: impl FnOnce(&mut Bundle)) {
        if let Some(&index) = self.flows.get(flow.0 as usize) {
            self.stack.with_bundle(index, change);
        }
    }

    /// The report of a flow that this host opened.
    #[must_use]
    pub fn report(&self, flow: FlowId) -> Option<FlowReport> {
        let bundle = self.stack.bundle(*self.flows.get(flow.0 as usize)?)?;
        let live = bundle.connections.iter().filter_map(|&slot| {
            let connection = self.stack.connection(slot)?;
            Some((connection.path, connection.report(bundle)))
        });
        let mut subflows: Vec<(PathId, SubflowReport)> = bundle.closed.iter().copied().chain(live).collect();
        subflows.sort_by_key(|subflow| subflow.0);
        Some(FlowReport {
            delivered: bundle.delivered,
            written: bundle.supply.written(),
            started: bundle.started,
            finished: bundle.finished,
            subflows: subflows.into_iter().map(|subflow| subflow.1).collect(),
        })
    }

    /// Bytes of a flow that were acknowledged: the `delivered` of its [`report`](Self::report), at
    /// less cost.
    #[must_use]
    pub fn delivered(&self, flow: FlowId) -> u64 {
        let index = self.flows.get(flow.0 as usize);
        index.and_then(|&index| self.stack.bundle(index)).map_or(0, |bundle| bundle.delivered)
    }

    /// Returns the receiver's name for a flow that this host opened. `None`: the host is not in a
    /// world yet.
    #[must_use]
    pub fn tag(&self, flow: FlowId) -> Option<FlowTag> {
        self.stack.tag(*self.flows.get(flow.0 as usize)?)
    }

    /// The report of a flow that another host opened. `None`: none of its connections has arrived.
    #[must_use]
    pub fn received(&self, tag: FlowTag) -> Option<ReceiverReport> {
        self.stack.received(tag)
    }

    /// Bytes that this host has received in order, over all flows.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.stack.received
    }
}

impl Machine for TcpHost {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.stack.handle(now, input);
    }

    fn wake(&mut self, now: Instant) {
        self.stack.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.stack.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.stack.deadline()
    }
}
