//! The properties of a pipe, as data.

use super::burst_loss::GilbertElliott;
use super::schedule::{Change, Step};
use super::stalls::Stalls;
use crate::aqm::Discipline;
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// Header bytes per packet: IPv4 and UDP.
pub const OVERHEAD_IPV4: u32 = 28;
/// Header bytes per packet: IPv6 and UDP.
pub const OVERHEAD_IPV6: u32 = 48;

/// The properties of a [`Pipe`](super::Pipe). The default is a perfect line: no rate limit, no
/// delay, no faults.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Bits per second, headers included. `None`: no limit, so nothing ever queues. Zero counts as
    /// one.
    pub rate: Option<u64>,
    /// Rates that follow the clock; empty: [`rate`](Self::rate) always holds. A packet is served at
    /// the rate in force when its service begins.
    pub rate_steps: Vec<RateStep>,
    /// The period after which [`rate_steps`](Self::rate_steps) repeat. `None`: the last rate stays.
    pub rate_period: Option<Duration>,
    /// The propagation delay, from the sending of a packet's last bit to its arrival.
    pub delay: Duration,
    /// The most packets that wait. The packet being sent does not count, so a queue of 0 still
    /// sends.
    pub queue_packets: usize,
    /// The most bytes (headers included) that wait. The packet being sent does not count.
    pub queue_bytes: u64,
    /// Bytes that each packet has beyond its UDP payload: [`OVERHEAD_IPV4`], [`OVERHEAD_IPV6`], or
    /// more with framing.
    pub overhead: u32,
    /// Largest packet in bytes, [`overhead`](Self::overhead) included; larger ones are dropped.
    /// `None`: no limit.
    pub mtu: Option<usize>,
    /// Probability that a packet is lost after it was sent. It takes its time on the line like any
    /// other packet.
    pub loss: f64,
    /// Burst losses, in addition to [`loss`](Self::loss). `None`: there are none.
    pub bursts: Option<GilbertElliott>,
    /// Probability that bits of a packet flip.
    pub corruption: f64,
    /// Probability that a packet arrives twice, one copy right behind the other.
    pub duplication: f64,
    /// Probability that a packet is delayed by [`reorder_delay`](Self::reorder_delay), so that
    /// later packets overtake it.
    pub reordering: f64,
    /// The delay of a reordered packet.
    pub reorder_delay: Duration,
    /// Every packet is late by 0 to this much, each equally likely, but overtakes none.
    pub jitter: Duration,
    /// Recurring times in which nothing arrives. `None`: there are none.
    pub stalls: Option<Stalls>,
    /// ECN-capable packets that find this many waiting, or more, are marked CE. `None`: no marking.
    pub mark_above: Option<usize>,
    /// The discipline of the queue, which may act before the queue is full.
    pub discipline: Discipline,
    /// Changes during the run, in any order. After a [`Change::Rate`],
    /// [`rate_steps`](Self::rate_steps) no longer apply.
    pub schedule: Vec<Step>,
    /// Times (from, until) in which every offered packet is dropped. They should not overlap.
    pub partitions: Vec<(Instant, Instant)>,
}

/// A rate, and the time from which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// The time since the beginning of the world, or of the period.
    pub at: Duration,
    /// Bits per second from then on. Zero counts as one: for an outage use a partition.
    pub rate: u64,
}

impl Default for PipeConfig {
    fn default() -> Self {
        Self {
            rate: None,
            rate_steps: Vec::new(),
            rate_period: None,
            delay: Duration::ZERO,
            queue_packets: 1_000,
            queue_bytes: u64::MAX,
            overhead: OVERHEAD_IPV4,
            mtu: None,
            loss: 0.0,
            bursts: None,
            corruption: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reorder_delay: Duration::ZERO,
            jitter: Duration::ZERO,
            stalls: None,
            mark_above: None,
            discipline: Discipline::DropTail,
            schedule: Vec::new(),
            partitions: Vec::new(),
        }
    }
}

impl PipeConfig {
    /// A line of this rate (bits per second) and propagation delay, with a queue of 1 000 packets
    /// and no faults.
    #[must_use]
    pub fn new(rate: u64, delay: Duration) -> Self {
        Self { rate: Some(rate), delay, ..Self::default() }
    }

    /// A pipe with this propagation delay and without a rate limit.
    #[must_use]
    pub fn delay_only(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Sets the queue limit in packets.
    #[must_use]
    pub fn queue(mut self, packets: usize) -> Self {
        self.queue_packets = packets;
        self
    }

    /// Limits the queue to the bytes that the line sends in `time` (at its fixed rate), with any
    /// number of packets.
    #[must_use]
    pub fn queue_time(mut self, time: Duration) -> Self {
        let bits = u128::from(self.rate.unwrap_or(0)) * time.as_nanos() / 1_000_000_000;
        self.queue_bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX);
        self.queue_packets = usize::MAX;
        self
    }

    /// Sets the probability of losing a packet.
    #[must_use]
    pub fn loss(mut self, probability: f64) -> Self {
        self.loss = probability;
        self
    }

    /// Loses packets in bursts.
    #[must_use]
    pub fn bursts(mut self, bursts: GilbertElliott) -> Self {
        self.bursts = Some(bursts);
        self
    }

    /// Sets the discipline of the queue.
    #[must_use]
    pub fn discipline(mut self, discipline: Discipline) -> Self {
        self.discipline = discipline;
        self
    }

    /// Changes something from `at` on.
    #[must_use]
    pub fn then(mut self, at: Instant, change: Change) -> Self {
        self.schedule.push(Step { at, change });
        self
    }

    /// Adds `extra` to the propagation delay in `from..until`, as where a relay is slow for a
    /// while. Packets stay in order.
    #[must_use]
    pub fn delay_spike(self, from: Instant, until: Instant, extra: Duration) -> Self {
        let usual = self.delay;
        self.then(from, Change::Delay(usual + extra)).then(until, Change::Delay(usual))
    }

    /// Sets the largest random delay that is added to each packet.
    #[must_use]
    pub fn jitter(mut self, most: Duration) -> Self {
        self.jitter = most;
        self
    }

    /// Lets nothing arrive during stalls.
    #[must_use]
    pub fn stalls(mut self, stalls: Stalls) -> Self {
        self.stalls = Some(stalls);
        self
    }

    /// Sets the probability that a packet is delayed by `delay`, so that later packets overtake it.
    #[must_use]
    pub fn reordering(mut self, probability: f64, delay: Duration) -> Self {
        (self.reordering, self.reorder_delay) = (probability, delay);
        self
    }

    /// Sets the probability of duplicating a packet.
    #[must_use]
    pub fn duplication(mut self, probability: f64) -> Self {
        self.duplication = probability;
        self
    }

    /// Sets the probability of corrupting a packet.
    #[must_use]
    pub fn corruption(mut self, probability: f64) -> Self {
        self.corruption = probability;
        self
    }

    /// Sets the largest packet in bytes, headers included. Larger ones are dropped.
    #[must_use]
    pub fn mtu(mut self, bytes: usize) -> Self {
        self.mtu = Some(bytes);
        self
    }

    /// Drops all that is offered in `from..until`.
    #[must_use]
    pub fn partition(mut self, from: Instant, until: Instant) -> Self {
        self.partitions.push((from, until));
        self
    }

    /// Sets the queue length in packets from which ECN-capable packets are marked.
    #[must_use]
    pub fn mark_above(mut self, packets: usize) -> Self {
        self.mark_above = Some(packets);
        self
    }

    /// The rate in force at `at`.
    pub(super) fn rate_at(&self, at: Instant) -> Option<u64> {
        if self.rate_steps.is_empty() {
            return self.rate;
        }
        let phase = match self.rate_period.map(nanos) {
            Some(period) if period > 0 => at.as_nanos() % period,
            _ => at.as_nanos(),
        };
        let place = self.rate_steps.partition_point(|step| nanos(step.at) <= phase);
        place.checked_sub(1).and_then(|last| self.rate_steps.get(last)).map(|step| step.rate).or(self.rate)
    }
}
