//! Web workloads: requests drawn in advance, so that the same list is replayed with and without other load.

use super::Options;
use byway_wire::{Duration, Input, Instant, Machine, Out, Transmit};
use core::net::SocketAddr;

/// Bytes of a request.
pub const REQUEST: u64 = 300;

/// A request: a connection of its own, [`REQUEST`] bytes there, a response back, and the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asks. Clients are numbered from 0.
    pub client: u32,
    /// When.
    pub when: When,
    /// Bytes of the response.
    pub size: u64,
}

/// When a request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At a time, whatever else is under way: an open loop.
    At(Instant),
    /// So long after the client's request before was answered (its first: after the beginning): a closed loop.
    After(Duration),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its place in the list.
    pub index: usize,
    /// Bytes of the response.
    pub size: u64,
    /// When its SYN left.
    pub started: Option<Instant>,
    /// When its last byte came.
    pub finished: Option<Instant>,
}

/// What web users ask for: a log-normal body with a Pareto tail, cut off at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebTrace {
    /// How many clients, each with a closed loop of its own.
    pub clients: u32,
    /// How many requests each of them has.
    pub requests: u32,
    /// Mean size of a response in bytes.
    pub mean: f64,
    /// Largest response in bytes.
    pub largest: u64,
    /// Smallest response in bytes.
    pub smallest: u64,
    /// Mean of the exponential think time.
    pub think: Duration,
}

/// Clients that replay a list of requests against one server.
#[derive(Debug)]
pub struct Clients {
    server: SocketAddr,
    options: Options,
    outcomes: Vec<Outcome>,
}

impl Clients {
    /// Clients that begin at `start`.
    #[must_use]
    pub fn new(server: SocketAddr, requests: &[Request], start: Instant, options: Options) -> Self {
        let _ = start;
        let outcome = |(index, request): (usize, &Request)| Outcome {
            index,
            size: request.size,
            started: None,
            finished: None,
        };
        Self { server, options, outcomes: requests.iter().enumerate().map(outcome).collect() }
    }

    /// What became of each request, in the order of the list.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        let _ = (&self.server, &self.options);
        &self.outcomes
    }
}

impl Machine for Clients {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}

    fn wake(&mut self, _: Instant) {}

    fn transmit(&mut self, _: Instant, _: &mut Out<'_>) -> Option<Transmit> {
        None
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// So many clients' requests by `trace`.
#[must_use]
pub fn trace(seed: u64, trace: &WebTrace) -> Vec<Request> {
    let _ = (seed, trace);
    Vec::new()
}

/// `count` fetches of `size` bytes over `time`: evenly, or as a Poisson process.
#[must_use]
pub fn fetches(
    seed: u64,
    count: u32,
    size: u64,
    from: Instant,
    time: Duration,
    poisson: bool,
) -> Vec<Request> {
    let _ = (seed, count, size, from, time, poisson);
    Vec::new()
}
