//! Transfers over TCP to relays, and from each relay to the receiver (Wang et al.). A source learns
//! without delay or loss how many bytes arrived: the ideal case, because the paper does not say how
//! a source learns this.

use super::run_error::RunError;
use crate::setup::{Demand, TcpOptions, Transfer};
use byway_control::wang::{RateController, WangOptions};
use byway_control::{ChoiceError, ControllerChoice};
use byway_sim::tcp::{FlowId, TcpHost, TcpRelay};
use byway_sim::{Handle, World};
use byway_wire::{Duration, Instant};

/// T at 1.2 Mbit/s (section IV).
const INTERVAL_MS: f64 = 400.0;
/// The paper's epsilon in kbit/s (section IV).
const EPSILON_KBIT: f64 = 0.5;

/// The hosts of a transfer, and the relays of its routes.
#[derive(Clone, Debug)]
pub(super) struct RelayedTcp {
    pub(super) sender: Handle<TcpHost>,
    pub(super) receiver: Handle<TcpHost>,
    /// In the order of ways.
    pub(super) flows: Vec<FlowId>,
    pub(super) relays: Vec<Handle<TcpRelay>>,
    /// Bytes of a full segment.
    pub(super) mss: u32,
}

impl RelayedTcp {
    /// Bytes that the receiver has got over each way.
    pub(super) fn arrived(&self, world: &World) -> Vec<u64> {
        let host = &world[self.receiver];
        let arrived = |relay: &Handle<TcpRelay>| {
            let got = world[*relay].tags().filter_map(|tag| host.received(tag));
            got.map(|received| received.bytes).sum()
        };
        self.relays.iter().map(arrived).collect()
    }
}

/// The settings of a source with rate control, from a plan.
#[derive(Clone, Debug)]
pub(super) struct WangSetup {
    options: WangOptions,
    /// The control interval, T in the paper.
    interval: Duration,
    /// y(0) of the first path and of each other, in bits per second.
    initial: [f64; 2],
}

impl WangSetup {
    /// Reads the settings of a source with one rate. `None`: the source sends as fast as it can,
    /// and no controller sets its rates.
    pub(super) fn of(transfer: &Transfer, tcp: &TcpOptions) -> Result<Option<Self>, RunError> {
        match transfer.demand {
            Demand::Unlimited => Ok(None),
            _ => Self::new(transfer, tcp).map(Some),
        }
    }

    /// Reads the rate control of a `transfer` that sends at one rate over TCP. Rates in the result
    /// are in bits of payload per second.
    fn new(transfer: &Transfer, tcp: &TcpOptions) -> Result<Self, RunError> {
        let refused = |why| RunError::Carrier { transfer: transfer.name.clone(), why };
        let Demand::Rate(steps) = &transfer.demand else {
            return Err(refused("over TCP to relays a source has one rate, or takes all"));
        };
        let &[(_, demand)] = steps.as_slice() else {
            return Err(refused("over TCP to relays a source has one rate, or takes all"));
        };
        let ControllerChoice { name, options: given } = &transfer.congestion;
        if name != "newreno" {
            return Err(refused("TCP to relays is governed by newreno, and its rates by the options"));
        }
        let usual = WangOptions::RECOMMENDED;
        // Name, what holds otherwise, least, most.
        let known = [
            ("interval_ms", INTERVAL_MS, 1.0, 1e5),
            ("epsilon_kbit", EPSILON_KBIT, 0.0, 1e6),
            ("alpha", usual.alpha, 1.0, 100.0),
            ("gamma", usual.gamma, 1.0, 100.0),
            ("delta", usual.delta, 0.0, 1.0),
            ("beta", usual.beta, 0.0, 100.0),
            ("rewrite", 0.0, 0.0, 1.0),
            ("cap", usual.cap, 0.0, 1e9),
            ("floor", usual.floor, 0.0, 1.0),
            ("slack_packets", 1.0, 0.0, 1e3),
            ("first_kbit", 0.0, 0.0, 1e6),
            ("others_kbit", 0.0, 0.0, 1e6),
        ];
        let wrong = |error| RunError::Congestion { of: transfer.name.clone(), error };
        if let Some(option) = given.keys().find(|option| !known.iter().any(|known| known.0 == *option)) {
            let known: Vec<_> = known.iter().map(|known| known.0).collect();
            let (option, known) = (option.clone(), known.join(", "));
            return Err(wrong(ChoiceError::UnknownOption { name: "tcp-relays".into(), option, known }));
        }
        let mut values = [0.0; 12];
        for (value, (option, otherwise, least, most)) in values.iter_mut().zip(known) {
            *value = given.get(option).copied().unwrap_or(otherwise);
            if !(*value >= least && *value <= most) {
                let (option, value) = (option.to_owned(), *value);
                let expected = format!("a number from {least} to {most}");
                let name = "tcp-relays".into();
                return Err(wrong(ChoiceError::BadValue { name, option, value, expected }));
            }
        }
        let [interval, epsilon, alpha, gamma, delta, beta, rewrite, cap, floor, slack, first, others] =
            values;
        let options = WangOptions {
            demand: demand as f64,
            epsilon: epsilon * 1e3,
            alpha,
            gamma,
            delta,
            beta,
            rewrite: rewrite >= 0.5,
            cap,
            floor,
            slack: slack * f64::from(tcp.mss) * 8e3 / interval,
        };
        let interval = Duration::from_micros((interval * 1e3) as u64);
        Ok(Self { options, interval, initial: [first * 1e3, others * 1e3] })
    }

    /// y(0) of a way.
    pub(super) fn initial(&self, way: usize) -> f64 {
        let [first, others] = self.initial;
        if way == 0 { first } else { others }
    }

    /// The control interval, T in the paper.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// The most bytes that a source may have unacknowledged on its connection to a relay: two RTTs
    /// of its demand (a rate), but at least four packets. With more, the source would notice too
    /// late that it sends too fast.
    pub(super) fn backlog(&self, tcp: &TcpOptions, rtt: Duration) -> u64 {
        let carried = self.options.demand / 8.0 * rtt.as_secs_f64() * 2.0;
        (carried as u64).max(4 * u64::from(tcp.mss))
    }
}

/// A source that sets the rates of its paths.
#[derive(Debug)]
pub(super) struct WangSource {
    hops: RelayedTcp,
    rates: RateController,
    interval: Duration,
    /// The smallest delay from the source to the receiver. Bytes that arrive earlier were sent at
    /// the previous rates.
    delay: Duration,
    /// The start of the next interval, or the time at which bytes of this one begin to arrive.
    next: Instant,
    /// Whether rates are set of which nothing can have come.
    sent: bool,
    /// The bytes that had arrived before the first bytes of this interval.
    before: Vec<u64>,
}

impl WangSource {
    /// Makes a source that sets its rates from `first` on.
    pub(super) fn new(
        hops: RelayedTcp,
        wanted: &WangSetup,
        delay: Duration,
        first: Instant,
        seed: u64,
    ) -> Self {
        let initial: Vec<f64> = (0..hops.flows.len()).map(|way| wanted.initial(way)).collect();
        Self {
            hops,
            rates: RateController::new(wanted.options, &initial, seed),
            interval: wanted.interval,
            delay: delay.min(wanted.interval / 2),
            next: first,
            sent: false,
            before: Vec::new(),
        }
    }

    /// Does the due step: reads the arrived bytes, or sets new rates.
    fn act(&mut self, world: &mut World) {
        let arrived = self.hops.arrived(world);
        if self.sent {
            (self.before, self.sent) = (arrived, false);
            self.next += self.interval - self.delay;
            return;
        }
        let seconds = (self.interval - self.delay).as_secs_f64();
        let rate = |(now, before): (&u64, &u64)| (now - before) as f64 * 8.0 / seconds;
        let received: Vec<f64> = arrived.iter().zip(&self.before).map(rate).collect();
        self.raise(world, &received);
        self.sent = true;
        self.next += self.delay;
    }

    fn raise(&mut self, world: &mut World, received: &[f64]) {
        self.rates.interval(received);
        let rates = self.rates.rates();
        world.act(self.hops.sender, |host, now| {
            for (flow, rate) in self.hops.flows.iter().zip(rates) {
                host.set_rate(now, *flow, Some(*rate as u64));
            }
        });
    }
}

/// Runs the world until `end`. Every source sets its rates on the way.
pub(super) fn run_until(world: &mut World, sources: &mut [WangSource], end: Instant) {
    while let Some(source) = sources.iter_mut().min_by_key(|source| source.next)
        && source.next <= end
    {
        world.run_until(source.next);
        source.act(world);
    }
    world.run_until(end);
}
