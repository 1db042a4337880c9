//! The properties of a route before anything runs: delay, bottleneck, and the memory that a plan
//! may need.

use super::direction::Direction;
use super::graph::Graph;
use crate::pipe::{Change, PipeConfig};
use byway_wire::Duration;
use byway_wire::time::nanos;
use std::collections::BTreeSet;

/// The simulator's memory per packet without the packet's bytes: its entry, its event and its place
/// in a queue. A generous estimate.
pub const MEMORY_PER_PACKET: u64 = 256;

/// The traffic of a plan, as far as memory is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The number of flows.
    pub flows: u64,
    /// The most bytes that a flow may have in flight. `u64::MAX`: no limit.
    pub window: u64,
    /// Bytes of a typical packet, headers included. Zero counts as one.
    pub packet: u32,
}

impl Graph {
    /// The propagation delay of a route, without queues and transmission times.
    #[must_use]
    pub fn propagation(&self, way: &[Direction]) -> Duration {
        way.iter().map(|&direction| self.config(direction).delay).sum()
    }

    /// Returns the time that a datagram with `payload` bytes takes over the route `way` without
    /// other traffic: propagation, and sending with headers on every link.
    #[must_use]
    pub fn transit(&self, way: &[Direction], payload: usize) -> Duration {
        way.iter()
            .map(|&direction| {
                let config = self.config(direction);
                let bits = 8 * (payload as u64 + u64::from(config.overhead));
                let sending = nominal_rate(config).map_or(0, |rate| bits * 1_000_000_000 / rate);
                config.delay + Duration::from_nanos(sending)
            })
            .sum()
    }

    /// The round-trip time of a route and a route back: propagation only.
    #[must_use]
    pub fn base_rtt(&self, there: &[Direction], back: &[Direction]) -> Duration {
        self.propagation(there) + self.propagation(back)
    }

    /// The lowest rate on the route `way`, in bits per second; `None` if nothing limits it. If the
    /// rate of a link changes with time, its highest rate counts.
    #[must_use]
    pub fn bottleneck(&self, way: &[Direction]) -> Option<u64> {
        way.iter().filter_map(|&direction| nominal_rate(self.config(direction))).min()
    }

    /// An upper bound, in bytes, of the memory for packets under way on the directions in `used`.
    /// It is the smaller of what lines and queues can hold, and what the windows of all flows
    /// allow.
    #[must_use]
    pub fn memory_bound(&self, used: impl IntoIterator<Item = Direction>, traffic: Traffic) -> u64 {
        let packet = u64::from(traffic.packet.max(1));
        let used: BTreeSet<Direction> = used.into_iter().collect();
        let lines = used.into_iter().map(|direction| most_packets(self.config(direction), packet));
        let lines = lines.fold(0, u64::saturating_add);
        let windows = traffic.window.div_ceil(packet).saturating_mul(traffic.flows);
        lines.min(windows).saturating_mul(packet + MEMORY_PER_PACKET)
    }
}

/// The most packets of this size that a pipe can hold: waiting, being sent, propagating.
fn most_packets(config: &PipeConfig, packet: u64) -> u64 {
    let waiting = (config.queue_packets as u64).min(config.queue_bytes / packet);
    let later = config.schedule.iter().filter_map(|step| match step.change {
        Change::Delay(delay) => Some(delay),
        _ => None,
    });
    let longest = later.fold(config.delay, Duration::max);
    let flight = longest + config.jitter + config.reorder_delay;
    let flying = match nominal_rate(config) {
        Some(rate) => bytes_in(rate, flight).div_ceil(packet),
        None if flight.is_zero() => 0,
        None => u64::MAX,
    };
    let copies = if config.duplication > 0.0 { 2 } else { 1 };
    // One is being sent, one has just been.
    waiting.saturating_add(flying).saturating_add(2).saturating_mul(copies)
}

/// The highest rate that a pipe ever has; `None` if it has no limit at some time.
fn nominal_rate(config: &PipeConfig) -> Option<u64> {
    let steps = config.rate_steps.iter().map(|step| step.rate).max();
    let later = config.schedule.iter().filter_map(|step| match step.change {
        Change::Rate(rate) => Some(rate),
        _ => None,
    });
    let begin = steps.max(config.rate);
    later.fold(begin, |most, rate| Some(most?.max(rate?))).map(|rate| rate.max(1))
}

fn bytes_in(rate: u64, time: Duration) -> u64 {
    let bits = u128::from(rate) * u128::from(nanos(time)) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// The bandwidth-delay product in packets of `packet` bytes (headers included), rounded up. `rate`
/// is in bits per second.
#[must_use]
pub fn bdp_packets(rate: u64, rtt: Duration, packet: u32) -> usize {
    usize::try_from(bytes_in(rate, rtt).div_ceil(u64::from(packet.max(1)))).unwrap_or(usize::MAX)
}
