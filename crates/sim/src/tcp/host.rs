//! A host with any number of flows, client and server at once.

use super::{Flow, FlowId, Options, Received, Report, Tag, newreno};
use byway_control::Controller;
use byway_wire::{Input, Instant, Machine, Out, Transmit};

/// How a host treats connections that others open.
#[derive(Clone, Debug)]
pub struct Serve {
    /// How this end behaves.
    pub options: Options,
    /// Makes the controller of each connection on which this end answers with data.
    pub controller: fn(seed: u64) -> Box<dyn Controller>,
    /// From each instant on the application takes so many bits per second from each connection; `None`: all at once.
    /// Empty: all at once, always.
    pub reading: Vec<(Instant, Option<u64>)>,
}

impl Default for Serve {
    fn default() -> Self {
        Self { options: Options::default(), controller: |_| newreno(), reading: Vec::new() }
    }
}

/// A TCP host. It accepts every connection, takes all data, and answers those that ask for an answer.
#[derive(Debug)]
pub struct Host {
    seed: u64,
    serve: Serve,
    flows: Vec<Flow>,
}

impl Host {
    /// A host that serves with default options. `seed` is for what it draws by chance.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, serve: Serve::default(), flows: Vec::new() }
    }

    /// Serves connections opened from now on in this manner.
    pub fn serve(&mut self, serve: Serve) {
        self.serve = serve;
    }

    /// Opens a flow, before the world runs or while it does. A start in the past is now.
    pub fn open(&mut self, flow: Flow) -> FlowId {
        self.flows.push(flow);
        FlowId(self.flows.len() as u32 - 1)
    }

    /// Changes the rate at which the application of a flow writes, from `now` on: bits of payload per second; `None`:
    /// as much as possible.
    pub fn set_rate(&mut self, now: Instant, flow: FlowId, rate: Option<u64>) {
        let _ = (now, flow, rate, self.seed);
    }

    /// The application of a flow has nothing more.
    pub fn stop(&mut self, now: Instant, flow: FlowId) {
        let _ = (now, flow);
    }

    /// What this host knows of a flow that it opened.
    #[must_use]
    pub fn report(&self, flow: FlowId) -> Option<Report> {
        self.flows.get(flow.0 as usize).map(|_| Report::default())
    }

    /// By what name the receiver knows a flow that this host opened; `None` before the host is in a world.
    #[must_use]
    pub fn tag(&self, flow: FlowId) -> Option<Tag> {
        let _ = flow;
        None
    }

    /// What this host has received of a flow that another opened.
    #[must_use]
    pub fn received(&self, tag: Tag) -> Option<Received> {
        let _ = tag;
        None
    }

    /// What this host has received in all.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        0
    }
}

impl Machine for Host {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}

    fn wake(&mut self, _: Instant) {}

    fn transmit(&mut self, _: Instant, _: &mut Out<'_>) -> Option<Transmit> {
        None
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
