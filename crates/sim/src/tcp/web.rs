//! Web workloads: requests drawn in advance, so that the same list is replayed with and without
//! other load.

use super::flow_spec::Flow;
use super::stack::{Stack, StackEvent};
use super::{Demand, TcpConfig, newreno};
use crate::random::Random;
use byway_wire::time::nanos;
use byway_wire::{Duration, Input, Instant, Machine, Transmit, TransmitBuffer};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a request.
pub const REQUEST_BYTES: u64 = 300;

/// A request. It has a connection of its own, sends [`REQUEST_BYTES`] bytes there, gets a response
/// back, and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client that asks. Clients are numbered from 0.
    pub client: u32,
    /// When the client asks.
    pub when: RequestStart,
    /// Bytes of the response, at least 1.
    pub size: u64,
}

/// When a request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStart {
    /// The request starts at this time, whatever other requests do (open loop).
    At(Instant),
    /// The time after the answer to the client's request before; for its first, after the
    /// beginning. That is a closed loop.
    After(Duration),
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The place of the request in the list.
    pub index: usize,
    /// Bytes of the response.
    pub size: u64,
    /// When the request's SYN was sent. `None`: not yet.
    pub started: Option<Instant>,
    /// When the end of the response came.
    pub finished: Option<Instant>,
    /// Whether TCP gave the request up.
    pub given_up: bool,
}

/// The sizes that web users request: log-normal with a Pareto tail, bounded at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebTrace {
    /// The number of clients. Each has its own closed loop.
    pub clients: u32,
    /// The number of requests of each client.
    pub requests: u32,
    /// Median of the log-normal body in bytes.
    pub median: f64,
    /// Standard deviation of the logarithm of the body.
    pub sigma: f64,
    /// The part of the responses that are of the tail.
    pub tail: f64,
    /// Exponent of the Pareto tail.
    pub alpha: f64,
    /// The size in bytes at which the tail begins.
    pub tail_from: f64,
    /// Smallest response in bytes.
    pub smallest: u64,
    /// Largest response in bytes.
    pub largest: u64,
    /// Mean of the exponential think time.
    pub think: Duration,
}

impl Default for WebTrace {
    /// The web traffic of the simulations in the Harp paper: sizes up to 1.7 MB, with a mean of 7.8
    /// KB. The parameters of the log-normal body and the Pareto tail are chosen to give these
    /// values.
    fn default() -> Self {
        Self {
            clients: 10,
            requests: 300,
            median: 2_000.0,
            sigma: 1.2,
            tail: 0.0622,
            alpha: 1.1,
            tail_from: 15_000.0,
            smallest: 32,
            largest: 1_700_000,
            think: Duration::from_secs(1),
        }
    }
}

impl WebTrace {
    fn size(&self, random: &mut Random) -> u64 {
        let (small, large) = (self.smallest.max(1), self.largest.max(self.smallest).max(1));
        let size = if random.chance(self.tail) {
            // A Pareto distribution cut off at the largest size, by inversion.
            let least = libm::pow(self.tail_from / large as f64, self.alpha);
            let unit = random.unit();
            self.tail_from / libm::pow(1.0 - unit * (1.0 - least), 1.0 / self.alpha)
        } else {
            // Box and Muller.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.unit()));
            let normal = radius * libm::cos(2.0 * core::f64::consts::PI * random.unit());
            self.median * libm::exp(self.sigma * normal)
        };
        (size as u64).clamp(small, large)
    }
}

/// The requests of all clients of a trace. They depend only on `seed` and `trace`. The requests of
/// one client do not depend on the number of clients.
#[must_use]
pub fn trace(seed: u64, trace: &WebTrace) -> Vec<Request> {
    let mut requests = Vec::new();
    for client in 0..trace.clients {
        let mut random = Random::component(seed, &format!("web client {client}"));
        for _ in 0..trace.requests {
            let when = RequestStart::After(random.exponential(trace.think));
            requests.push(Request { client, when, size: trace.size(&mut random) });
        }
    }
    requests
}

/// Makes `count` requests for `size` bytes each, between `from` and `from + time`. The requests are
/// evenly spaced or, with `poisson`, at random times like a Poisson process.
#[must_use]
pub fn fetches(
    seed: u64,
    count: u32,
    size: u64,
    from: Instant,
    time: Duration,
    poisson: bool,
) -> Vec<Request> {
    let mut random = Random::component(seed, "fetches");
    let mut requests: Vec<Request> = (0..count)
        .map(|number| {
            let offset = if poisson {
                random.below(nanos(time))
            } else {
                let share = u128::from(nanos(time)) * u128::from(number) / u128::from(count);
                u64::try_from(share).unwrap_or(u64::MAX)
            };
            let at = from + Duration::from_nanos(offset);
            Request { client: 0, when: RequestStart::At(at), size: size.max(1) }
        })
        .collect();
    requests.sort_by_key(|request| match request.when {
        RequestStart::At(at) => at,
        RequestStart::After(_) => Instant::ZERO,
    });
    requests
}

/// Clients that replay a list of requests against one server, which is a
/// [`TcpHost`](super::TcpHost).
#[derive(Debug)]
pub struct Clients {
    stack: Stack,
    server: SocketAddr,
    options: TcpConfig,
    requests: Vec<Request>,
    outcomes: Vec<RequestOutcome>,
    /// Requests whose time is known and has not come.
    agenda: BTreeSet<(Instant, usize)>,
    /// The waiting requests of each client, in order.
    next: BTreeMap<u32, VecDeque<usize>>,
    /// Requests in progress, by their bundles.
    under_way: BTreeMap<u32, usize>,
}

impl Clients {
    /// Clients whose closed loops begin at `start`.
    #[must_use]
    pub fn new(server: SocketAddr, requests: &[Request], start: Instant, options: TcpConfig) -> Self {
        let outcome = |(index, request): (usize, &Request)| RequestOutcome {
            index,
            size: request.size,
            started: None,
            finished: None,
            given_up: false,
        };
        let mut stack = Stack::new(0);
        stack.watched = true;
        let mut clients = Self {
            stack,
            server,
            options,
            requests: requests.to_vec(),
            outcomes: requests.iter().enumerate().map(outcome).collect(),
            agenda: BTreeSet::new(),
            next: BTreeMap::new(),
            under_way: BTreeMap::new(),
        };
        for (index, request) in requests.iter().enumerate() {
            match request.when {
                RequestStart::At(at) => drop(clients.agenda.insert((at, index))),
                RequestStart::After(_) => clients.next.entry(request.client).or_default().push_back(index),
            }
        }
        let all: Vec<u32> = clients.next.keys().copied().collect();
        for client in all {
            clients.plan_next(client, start);
        }
        clients
    }

    /// The outcome of each request, in the order of the list.
    #[must_use]
    pub fn outcomes(&self) -> &[RequestOutcome] {
        &self.outcomes
    }

    /// Whether every request was answered.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.agenda.is_empty() && self.under_way.is_empty() && self.next.values().all(|next| next.is_empty())
    }

    fn plan_next(&mut self, client: u32, now: Instant) {
        let Some(index) = self.next.get_mut(&client).and_then(VecDeque::pop_front) else {
            return;
        };
        if let Some(Request { when: RequestStart::After(think), .. }) = self.requests.get(index) {
            self.agenda.insert((now + *think, index));
        }
    }

    fn begin(&mut self, now: Instant, index: usize) {
        let Some(request) = self.requests.get(index) else { return };
        let path = vec![super::Subflow::direct(self.server)];
        let flow = Flow::new(path, newreno())
            .demand(Demand::Size(REQUEST_BYTES))
            .start(now)
            .options(self.options.clone());
        let bundle = self.stack.open(flow, request.size.max(1));
        self.under_way.insert(bundle, index);
        if let Some(outcome) = self.outcomes.get_mut(index) {
            outcome.started = Some(now);
        }
    }

    /// Notes requests that were answered or given up.
    fn settle(&mut self, now: Instant) {
        if self.stack.events.is_empty() {
            return;
        }
        for event in core::mem::take(&mut self.stack.events) {
            let (bundle, answered) = match event {
                StackEvent::Answered(bundle) => (bundle, true),
                StackEvent::Gone(bundle) => (bundle, false),
            };
            if let Some(index) = self.under_way.remove(&bundle) {
                if let Some(outcome) = self.outcomes.get_mut(index) {
                    (outcome.finished, outcome.given_up) = (answered.then_some(now), !answered);
                }
                if let Some(Request { client, when: RequestStart::After(_), .. }) =
                    self.requests.get(index).copied()
                {
                    self.plan_next(client, now);
                }
            }
            if !answered {
                self.stack.release(bundle);
            }
        }
    }
}

impl Machine for Clients {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.stack.handle(now, input);
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.agenda.first()
            && at <= now
        {
            self.agenda.pop_first();
            self.begin(now, index);
        }
        self.stack.wake(now);
        self.settle(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.stack.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        let planned = self.agenda.first().map(|&(at, _)| at);
        match (planned, self.stack.deadline()) {
            (Some(planned), Some(deadline)) => Some(planned.min(deadline)),
            (planned, deadline) => planned.or(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_the_paper_prints() {
        let many = WebTrace { clients: 100, requests: 10_000, ..WebTrace::default() };
        let requests = trace(1, &many);
        let sizes = requests.iter().map(|request| request.size as f64);
        let mean = sizes.clone().sum::<f64>() / requests.len() as f64;
        assert!((mean / 7_800.0 - 1.0).abs() < 0.03, "{mean}");
        let most = sizes.fold(0.0, f64::max);
        assert!(most > 1_500_000.0 && most <= 1_700_000.0, "{most}");
        let think: Duration = requests
            .iter()
            .map(|request| match request.when {
                RequestStart::After(think) => think,
                RequestStart::At(_) => Duration::ZERO,
            })
            .sum();
        assert!((think.as_secs_f64() / requests.len() as f64 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_client_asks_the_same_whoever_else_asks() {
        let few = WebTrace { clients: 2, requests: 20, ..WebTrace::default() };
        let many = WebTrace { clients: 7, ..few };
        let (few, many) = (trace(5, &few), trace(5, &many));
        assert_eq!(few[..], many[..40]);
        assert_ne!(trace(6, &WebTrace { clients: 2, requests: 20, ..WebTrace::default() }), few);
    }

    #[test]
    fn fetches_are_spread_over_the_time() {
        let (from, time) = (Instant::from_millis(100), Duration::from_secs(10));
        let even = fetches(1, 5, 20_000, from, time, false);
        let times: Vec<_> = even.iter().map(|request| request.when).collect();
        assert_eq!(
            times,
            [100, 2_100, 4_100, 6_100, 8_100].map(|ms| RequestStart::At(Instant::from_millis(ms)))
        );
        let by_chance = fetches(1, 500, 20_000, from, time, true);
        let half = Instant::from_millis(5_100);
        let before =
            by_chance.iter().filter(|request| matches!(request.when, RequestStart::At(at) if at < half));
        assert!((200..300).contains(&before.count()));
    }
}
