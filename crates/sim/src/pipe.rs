//! The link that most worlds are made of: a drop-tail queue before a line of some rate, a propagation delay behind it,
//! and the faults that real lines have.

use crate::link::{Corruption, Delivery, DropReason, Fate, Link, Occupancy, Offer};
use crate::random::Random;
use byway_wire::time::nanos;
use byway_wire::{Duration, Ecn, Instant};
use std::collections::VecDeque;

/// Header bytes per packet: IPv4 and UDP.
pub const OVERHEAD_IPV4: u32 = 28;
/// Header bytes per packet: IPv6 and UDP.
pub const OVERHEAD_IPV6: u32 = 48;

/// What a [`Pipe`] is like. The default is a perfect line: no limit of rate, no delay, no fault.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Bits per second, headers included. `None`: no limit, so nothing ever queues. Zero counts as one.
    pub rate: Option<u64>,
    /// Rates that follow the clock; empty: [`rate`](Self::rate) always holds. A packet is served at the rate in force
    /// when its service begins.
    pub rate_steps: Vec<RateStep>,
    /// After how long [`rate_steps`](Self::rate_steps) begin anew; `None`: the last one stays.
    pub rate_period: Option<Duration>,
    /// Propagation: from a packet's last bit leaving to its arrival.
    pub delay: Duration,
    /// How many packets may wait. The packet being sent does not count, so a queue of 0 still sends.
    pub queue_packets: usize,
    /// How many bytes (headers included) may wait. The packet being sent does not count.
    pub queue_bytes: u64,
    /// Bytes that each packet costs beyond its UDP payload: [`OVERHEAD_IPV4`], [`OVERHEAD_IPV6`], or more with framing.
    pub overhead: u32,
    /// Largest packet in bytes, [`overhead`](Self::overhead) included; larger ones are dropped. `None`: no limit.
    pub mtu: Option<usize>,
    /// Probability that a packet is lost after it was sent: it takes its time on the line like any other.
    pub loss: f64,
    /// Probability that bits of a packet flip.
    pub corruption: f64,
    /// Probability that a packet arrives twice, one copy right behind the other.
    pub duplication: f64,
    /// Probability that a packet is held up by [`reorder_delay`](Self::reorder_delay), so that others overtake it.
    pub reordering: f64,
    /// How long a reordered packet is held up.
    pub reorder_delay: Duration,
    /// Every packet is late by 0 to this much, each equally likely, but overtakes none.
    pub jitter: Duration,
    /// ECN-capable packets that find this many waiting, or more, are marked CE. `None`: no marking.
    pub mark_above: Option<usize>,
    /// Times (from, until) in which all that is offered is dropped. They should not overlap.
    pub partitions: Vec<(Instant, Instant)>,
}

/// From some time on, a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// Since the world's beginning, or since the period's.
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
            corruption: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reorder_delay: Duration::ZERO,
            jitter: Duration::ZERO,
            mark_above: None,
            partitions: Vec::new(),
        }
    }
}

impl PipeConfig {
    /// A line of this rate (bits per second) and propagation delay, with a queue of 1 000 packets and no faults.
    #[must_use]
    pub fn new(rate: u64, delay: Duration) -> Self {
        Self { rate: Some(rate), delay, ..Self::default() }
    }

    /// A line of unlimited rate with this propagation delay.
    #[must_use]
    pub fn delay_only(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Lets this many packets wait.
    #[must_use]
    pub fn queue(mut self, packets: usize) -> Self {
        self.queue_packets = packets;
        self
    }

    /// Lets as many bytes wait as the line sends in `time` (at its fixed rate), and any number of packets.
    #[must_use]
    pub fn queue_time(mut self, time: Duration) -> Self {
        let bits = u128::from(self.rate.unwrap_or(0)) * time.as_nanos() / 1_000_000_000;
        self.queue_bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX);
        self.queue_packets = usize::MAX;
        self
    }

    /// Loses packets with this probability.
    #[must_use]
    pub fn loss(mut self, probability: f64) -> Self {
        self.loss = probability;
        self
    }

    /// Makes every packet late by up to this much.
    #[must_use]
    pub fn jitter(mut self, most: Duration) -> Self {
        self.jitter = most;
        self
    }

    /// Holds packets up by `delay` with this probability.
    #[must_use]
    pub fn reordering(mut self, probability: f64, delay: Duration) -> Self {
        (self.reordering, self.reorder_delay) = (probability, delay);
        self
    }

    /// Duplicates packets with this probability.
    #[must_use]
    pub fn duplication(mut self, probability: f64) -> Self {
        self.duplication = probability;
        self
    }

    /// Corrupts packets with this probability.
    #[must_use]
    pub fn corruption(mut self, probability: f64) -> Self {
        self.corruption = probability;
        self
    }

    /// Drops packets whose bytes, headers included, are more than this.
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

    /// Marks ECN-capable packets that find this many waiting.
    #[must_use]
    pub fn mark_above(mut self, packets: usize) -> Self {
        self.mark_above = Some(packets);
        self
    }

    /// The rate in force at `at`.
    fn rate_at(&self, at: Instant) -> Option<u64> {
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

/// A packet that waits for its service.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    begins: Instant,
    bytes: u64,
    deliveries: u64,
}

/// A FIFO line with faults. Its state is a time (when the line falls idle) and the packets that wait before it.
#[derive(Debug)]
pub struct Pipe {
    config: PipeConfig,
    random: Random,
    now: Instant,
    /// When the line has sent all that it accepted.
    idle_at: Instant,
    /// What the last service time lost by rounding down to nanoseconds, in billionths of a bit: so the rate is exact.
    carry: u64,
    waiting: VecDeque<Waiting>,
    total: Occupancy,
    /// The latest arrival of packets in order: none of them may arrive before it.
    last_arrival: Instant,
    /// Partitions before this one are over.
    partition: usize,
}

impl Pipe {
    /// A pipe that draws its faults from `random`.
    #[must_use]
    pub fn new(mut config: PipeConfig, random: Random) -> Self {
        config.partitions.sort_unstable();
        config.rate_steps.sort_unstable_by_key(|step| step.at);
        Self {
            config,
            random,
            now: Instant::ZERO,
            idle_at: Instant::ZERO,
            carry: 0,
            waiting: VecDeque::new(),
            total: Occupancy::default(),
            last_arrival: Instant::ZERO,
            partition: 0,
        }
    }

    /// What it is like.
    #[must_use]
    pub fn config(&self) -> &PipeConfig {
        &self.config
    }

    /// Changes the rate for packets that are offered from now on; those that wait were promised theirs.
    pub fn set_rate(&mut self, rate: Option<u64>) {
        self.config.rate = rate;
        self.config.rate_steps.clear();
    }

    /// Changes the propagation delay for packets that are offered from now on. If it shrinks, they still overtake none.
    pub fn set_delay(&mut self, delay: Duration) {
        self.config.delay = delay;
    }

    /// Changes the loss probability.
    pub fn set_loss(&mut self, probability: f64) {
        self.config.loss = probability;
    }

    /// Drops all that is offered in `from..until`.
    pub fn partition(&mut self, from: Instant, until: Instant) {
        self.config.partitions.push((from, until));
        self.config.partitions.sort_unstable();
        self.partition = 0;
    }

    fn advance(&mut self, now: Instant) {
        // A real clock is read by more than one hand: an earlier reading counts as the latest.
        self.now = self.now.max(now);
        while let Some(&Waiting { begins, bytes, deliveries }) = self.waiting.front() {
            if begins > self.now {
                break;
            }
            self.waiting.pop_front();
            self.total.packets -= 1;
            self.total.bytes -= bytes;
            self.total.deliveries -= deliveries;
        }
    }

    fn partitioned(&mut self) -> bool {
        while let Some(&(from, until)) = self.config.partitions.get(self.partition) {
            if self.now < until {
                return self.now >= from;
            }
            self.partition += 1;
        }
        false
    }

    /// When a packet of `bytes` that begins at `begins` has been sent.
    fn served(&mut self, begins: Instant, bytes: u64) -> Instant {
        let Some(rate) = self.config.rate_at(begins) else { return begins };
        let rate = u128::from(rate.max(1));
        let scaled = u128::from(bytes) * 8 * 1_000_000_000 + u128::from(self.carry);
        // Both fit 64 bits for every packet and rate in use; the division of 128 bits is an order slower.
        let (time, carry) = match (u64::try_from(scaled), u64::try_from(rate)) {
            (Ok(scaled), Ok(rate)) => (scaled / rate, scaled % rate),
            _ => (u64::try_from(scaled / rate).unwrap_or(u64::MAX), (scaled % rate) as u64),
        };
        self.carry = carry;
        begins + Duration::from_nanos(time)
    }
}

impl Link for Pipe {
    fn offer(&mut self, now: Instant, packet: &Offer) -> Fate {
        self.advance(now);
        let now = self.now;
        if self.partitioned() {
            return Fate::Dropped(DropReason::Partition);
        }
        let bytes = packet.size as u64 + u64::from(self.config.overhead);
        if self.config.mtu.is_some_and(|mtu| bytes > mtu as u64) {
            return Fate::Dropped(DropReason::TooLarge);
        }
        let begins = if self.idle_at < now {
            self.carry = 0;
            now
        } else {
            self.idle_at
        };
        let queues = begins > now;
        if queues
            && (self.total.packets >= self.config.queue_packets
                || self.total.bytes.saturating_add(bytes) > self.config.queue_bytes)
        {
            return Fate::Dropped(DropReason::QueueFull);
        }
        let marked = packet.ecn != Ecn::NotEct
            && self.config.mark_above.is_some_and(|threshold| queues && self.total.packets >= threshold);
        self.idle_at = self.served(begins, bytes);

        let lost = self.random.chance(self.config.loss);
        let copied = !lost && self.random.chance(self.config.duplication);
        if queues {
            let deliveries = if lost { 0 } else { 1 + u64::from(copied) };
            self.waiting.push_back(Waiting { begins, bytes, deliveries });
            self.total.packets += 1;
            self.total.bytes += bytes;
            self.total.deliveries += deliveries;
        }
        if lost {
            return Fate::Dropped(DropReason::Loss);
        }

        let mut at = self.idle_at + self.config.delay;
        if !self.config.jitter.is_zero() {
            at += self.random.up_to(self.config.jitter);
        }
        at = at.max(self.last_arrival);
        if self.random.chance(self.config.reordering) {
            at += self.config.reorder_delay;
        } else {
            self.last_arrival = at;
        }
        let ecn = if marked { Ecn::Ce } else { packet.ecn };
        let corruption = self.config.corruption;
        let mut delivery = || Delivery {
            at,
            ecn,
            corruption: self.random.chance(corruption).then(|| Corruption(self.random.next_u64())),
        };
        let first = delivery();
        if copied { Fate::Duplicated(first, delivery()) } else { Fate::Delivered(first) }
    }

    fn waiting(&self, now: Instant) -> Occupancy {
        // Less those whose service has begun since the last offer.
        let now = self.now.max(now);
        self.waiting.iter().take_while(|packet| packet.begins <= now).fold(self.total, |rest, packet| {
            Occupancy {
                packets: rest.packets - 1,
                bytes: rest.bytes - packet.bytes,
                deliveries: rest.deliveries - packet.deliveries,
            }
        })
    }

    fn bound(&self) -> Occupancy {
        Occupancy { packets: self.config.queue_packets, bytes: self.config.queue_bytes, deliveries: u64::MAX }
    }

    fn may_reorder(&self) -> bool {
        self.config.reordering > 0.0
    }
}
