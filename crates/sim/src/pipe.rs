//! A pipe, the kind of link that most worlds are made of. Its queue feeds a line of some rate.
//! Behind the line come a propagation delay and the faults that real lines have.

mod burst_loss;
mod config;
mod schedule;
mod stalls;

pub use burst_loss::GilbertElliott;
pub use config::{OVERHEAD_IPV4, OVERHEAD_IPV6, PipeConfig, RateStep};
pub use schedule::{Change, Step};
pub use stalls::Stalls;

use crate::aqm::{DequeueAqm, Dequeued, Discipline, Queued, Red, RedVerdict};
use crate::link::{Corruption, Decision, Delivery, DropReason, Link, Occupancy, Offer, PacketOutcome};
use crate::random::Random;
use burst_loss::Spell;
use byway_wire::time::nanos;
use byway_wire::{Duration, Ecn, Instant};
use schedule::TimedValue;
use stalls::StallState;
use std::collections::VecDeque;

/// A packet that waits for its service.
#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    begins: Instant,
    bytes: u64,
    deliveries: u64,
}

/// The parameters of a plain pipe: one with a drop-tail queue, a constant rate, a constant delay
/// and no faults. Most packets go through plain pipes. For these packets, the pipe reads only this
/// small struct and not its `PipeConfig`.
#[derive(Clone, Copy, Debug)]
struct PlainPipe {
    /// The rate in bits per second. 0: there is no limit.
    rate: u64,
    /// The propagation delay in nanoseconds.
    delay: u64,
    overhead: u64,
    largest: u64,
    queue_packets: usize,
    queue_bytes: u64,
}

/// A FIFO line with faults. Its state is a time (when the line falls idle) and the packets that
/// wait before it.
#[derive(Debug)]
pub struct Pipe {
    config: PipeConfig,
    random: Random,
    now: Instant,
    /// The time at which the line has sent all that it accepted.
    idle_at: Instant,
    /// The part of the last service time below a nanosecond, in billionths of a bit, which keeps
    /// the rate exact.
    carry: u64,
    waiting: VecDeque<QueuedPacket>,
    total: Occupancy,
    /// The latest arrival of packets in order. None of them may arrive before it.
    last_arrival: Instant,
    /// Partitions before this one are over.
    partition: usize,
    /// Rates of the schedule. Before the first of them, the configured rate applies.
    rate: TimedValue<Option<Option<u64>>>,
    delay: TimedValue<Duration>,
    loss: TimedValue<f64>,
    up: TimedValue<bool>,
    red: Option<Red>,
    /// The waiting packets, if the discipline decides at the beginning of their service.
    deciding: Option<DequeueAqm>,
    /// Decisions of the queue that were not fetched yet. Each entry has the packet
    /// ([`Decision::place`]) and the decision.
    decided: VecDeque<(usize, Dequeued)>,
    /// The state of losses in bursts.
    spell: Spell,
    stalls: Option<StallState>,
    plain: Option<PlainPipe>,
    /// The last packet size, and its service time: whole nanoseconds, and the rest in billionths of
    /// a bit.
    service: (u64, u64, u64),
}

impl Pipe {
    /// Makes a pipe that draws its faults from `random`.
    #[must_use]
    pub fn new(mut config: PipeConfig, mut random: Random) -> Self {
        config.partitions.sort_unstable();
        config.rate_steps.sort_unstable_by_key(|step| step.at);
        let schedule = &config.schedule;
        Self {
            rate: TimedValue::new(None, schedule, |change| match change {
                Change::Rate(rate) => Some(Some(rate)),
                _ => None,
            }),
            delay: TimedValue::new(config.delay, schedule, |change| match change {
                Change::Delay(delay) => Some(delay),
                _ => None,
            }),
            loss: TimedValue::new(config.loss, schedule, |change| match change {
                Change::Loss(probability) => Some(probability),
                _ => None,
            }),
            up: TimedValue::new(true, schedule, |change| match change {
                Change::Up => Some(true),
                Change::Down => Some(false),
                _ => None,
            }),
            red: match &config.discipline {
                Discipline::Red(red) => Some(Red::new(red.clone())),
                _ => None,
            },
            deciding: DequeueAqm::new(&config.discipline, || random.next_u64()),
            decided: VecDeque::new(),
            spell: Spell::default(),
            stalls: config.stalls.map(|stalls| StallState::new(stalls, random.next_u64())),
            plain: None,
            service: (0, 0, 0),
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
        .simplified()
    }

    /// Notes whether the pipe is plain, and returns it.
    fn simplified(mut self) -> Self {
        self.simplify();
        self
    }

    fn simplify(&mut self) {
        let config = &self.config;
        let faults = [config.loss, config.corruption, config.duplication, config.reordering];
        let plain = config.discipline == Discipline::DropTail
            && faults.iter().all(|&probability| probability <= 0.0)
            && config.bursts.is_none()
            && config.jitter.is_zero()
            && config.stalls.is_none()
            && config.mark_above.is_none()
            && config.rate_steps.is_empty()
            && config.partitions.is_empty()
            && config.schedule.is_empty();
        self.plain = plain.then(|| PlainPipe {
            rate: config.rate.map_or(0, |rate| rate.max(1)),
            delay: nanos(config.delay),
            overhead: u64::from(config.overhead),
            largest: config.mtu.map_or(u64::MAX, |mtu| mtu as u64),
            queue_packets: config.queue_packets,
            queue_bytes: config.queue_bytes,
        });
        self.service = (0, 0, 0);
    }

    /// A faster [`offer`](Link::offer) for plain pipes. `size` is the payload in bytes. Returns
    /// when the packet's service begins and when the packet arrives, or why it is dropped. `None`:
    /// the pipe is not plain, and nothing has happened.
    #[inline]
    pub(crate) fn pass(&mut self, now: Instant, size: u32) -> Option<Result<(Instant, Instant), DropReason>> {
        self.plain.as_ref()?;
        self.advance(now);
        let now = self.now;
        let plain = self.plain.as_ref()?;
        let bytes = u64::from(size) + plain.overhead;
        if bytes > plain.largest {
            return Some(Err(DropReason::TooLarge));
        }
        let mut begins = now;
        if self.idle_at < now {
            self.carry = 0;
        } else {
            begins = self.idle_at;
            if begins > now {
                let after = self.total.bytes.saturating_add(bytes);
                if self.total.packets >= plain.queue_packets || after > plain.queue_bytes {
                    return Some(Err(DropReason::QueueFull));
                }
                self.waiting.push_back(QueuedPacket { begins, bytes, deliveries: 1 });
                self.total.packets += 1;
                self.total.bytes = after;
                self.total.deliveries += 1;
            }
        }
        let mut ends = begins.as_nanos();
        if plain.rate > 0 {
            let (time, left) = service_of(&mut self.service, bytes, plain.rate);
            ends = ends.saturating_add(time);
            self.carry += left;
            if self.carry >= plain.rate {
                // Once, unless the rate was lowered.
                self.carry -= plain.rate;
                ends = ends.saturating_add(1);
                if self.carry >= plain.rate {
                    ends = ends.saturating_add(self.carry / plain.rate);
                    self.carry %= plain.rate;
                }
            }
        }
        self.idle_at = Instant::from_nanos(ends);
        let at = Instant::from_nanos(ends.saturating_add(plain.delay)).max(self.last_arrival);
        self.last_arrival = at;
        Some(Ok((begins, at)))
    }

    /// The earliest time at which a packet that is offered at `now` or later arrives. The next that
    /// is offered has `size` payload bytes. `None`: zero delay, a packet beyond the MTU, or a pipe
    /// that is not plain. Plain: a drop-tail queue, constant rate and delay, no faults.
    #[inline]
    pub(crate) fn soonest(&mut self, now: Instant, size: u32) -> Option<Instant> {
        let plain = self.plain.as_ref().filter(|plain| plain.delay > 0)?;
        let bytes = u64::from(size) + plain.overhead;
        if bytes > plain.largest {
            // The packet would be dropped and take no time, so the one behind it may arrive sooner.
            return None;
        }
        if self.idle_at > now {
            // The queue may be full. Then the packet is dropped, and a shorter one behind it
            // arrives sooner than this one would have.
            return Some(Instant::from_nanos(self.idle_at.as_nanos().saturating_add(plain.delay)));
        }
        let time = if plain.rate > 0 { service_of(&mut self.service, bytes, plain.rate).0 } else { 0 };
        Some(Instant::from_nanos(now.as_nanos().saturating_add(time).saturating_add(plain.delay)))
    }

    /// Whether more waits in a plain pipe than may, since the last offer.
    #[inline]
    pub(crate) fn overfull(&self) -> bool {
        self.plain.as_ref().is_some_and(|plain| {
            self.total.packets > plain.queue_packets || self.total.bytes > plain.queue_bytes
        })
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &PipeConfig {
        &self.config
    }

    /// Sets the rate in bits per second for packets that are offered from now on; `None`: no limit.
    /// Packets whose arrival time is already fixed keep it. The scheduled changes of the rate no
    /// longer apply.
    pub fn set_rate(&mut self, rate: Option<u64>) {
        self.config.rate = rate;
        self.config.rate_steps.clear();
        self.rate.set(None);
        self.simplify();
    }

    /// Sets the propagation delay for packets that are offered from now on. Even if the delay
    /// shrinks, these packets do not overtake earlier ones. The scheduled changes of the delay no
    /// longer apply.
    pub fn set_delay(&mut self, delay: Duration) {
        self.config.delay = delay;
        self.delay.set(delay);
        self.simplify();
    }

    /// Sets the largest packet in bytes, [`overhead`](PipeConfig::overhead) included, for packets
    /// that are offered from now on. `None`: no limit.
    pub fn set_mtu(&mut self, mtu: Option<usize>) {
        self.config.mtu = mtu;
        self.simplify();
    }

    /// Returns RED's average queue, if the pipe uses RED.
    #[must_use]
    pub fn red_average(&self) -> Option<f64> {
        self.red.as_ref().map(Red::average)
    }

    /// Drops all that is offered in `from..until`.
    pub fn partition(&mut self, from: Instant, until: Instant) {
        self.config.partitions.push((from, until));
        self.config.partitions.sort_unstable();
        self.partition = 0;
        self.simplify();
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        // A real clock is read by more than one hand: an earlier reading counts as the latest.
        self.now = self.now.max(now);
        while let Some(&QueuedPacket { begins, bytes, deliveries }) = self.waiting.front() {
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
        if !self.up.at(self.now) {
            return true;
        }
        while let Some(&(from, until)) = self.config.partitions.get(self.partition) {
            if self.now < until {
                return self.now >= from;
            }
            self.partition += 1;
        }
        false
    }

    /// The rate in force at `time`; times never go back.
    fn rate_at(&mut self, time: Instant) -> Option<u64> {
        self.rate.at(time).unwrap_or_else(|| self.config.rate_at(time))
    }

    /// Returns RED's decision about a packet that arrives now.
    fn managed(&mut self, bytes: u64, ecn: Ecn) -> RedVerdict {
        if self.red.is_none() {
            return RedVerdict::Pass;
        }
        let (now, since) = (self.now, self.idle_at);
        let idle = if since < now { self.rate_at(now).map(|rate| (now.since(since), rate)) } else { None };
        let Self { red: Some(red), total, random, .. } = self else { return RedVerdict::Pass };
        red.arrive(*total, bytes, ecn != Ecn::NotEct, idle, random)
    }

    /// Whether the line loses the packet whose service began at `begins` and ends when the line
    /// falls idle.
    fn loses(&mut self, begins: Instant) -> bool {
        let lost = self.random.chance(self.loss.at(self.now));
        if self.config.bursts.is_none() {
            return lost;
        }
        let rate = self.rate_at(begins);
        let Self { config, spell, random, idle_at, .. } = self;
        let Some(bursts) = &config.bursts else { return lost };
        spell.rest(bursts, begins, rate, random);
        spell.loses(bursts, *idle_at, random) || lost
    }

    fn has_room(&self, total: Occupancy, bytes: u64) -> bool {
        total.packets < self.config.queue_packets
            && total.bytes.saturating_add(bytes) <= self.config.queue_bytes
    }

    /// Whether there is room for a packet, or room can be made by dropping waiting packets.
    fn makes_room(&mut self, bytes: u64) -> bool {
        loop {
            let total = self.waiting(self.now);
            if self.has_room(total, bytes) {
                return true;
            }
            let Some(deciding) = &mut self.deciding else { return false };
            deciding.overflow(|place, leaving| self.decided.push_back((place, leaving)));
            if deciding.total().0 == total.packets {
                return false;
            }
        }
    }

    /// Under CoDel: a packet joins the queue, and leaves it at once if the line is free.
    fn enqueue(&mut self, bytes: u64, packet: &Offer) -> PacketOutcome {
        let (now, queues) = (self.now, self.decides_at().is_some() || self.idle_at > self.now);
        if queues && !self.makes_room(bytes) {
            return PacketOutcome::Dropped(DropReason::QueueFull);
        }
        if let Some(deciding) = &mut self.deciding {
            deciding.enqueue(packet.flow, Queued { since: now, bytes, ecn: packet.ecn });
        }
        if queues {
            return PacketOutcome::Queued;
        }
        if self.idle_at < now {
            (self.idle_at, self.carry) = (now, 0);
        }
        self.decide(now).map_or(PacketOutcome::Queued, |decision| decision.fate)
    }

    /// Lets the queue decide if the line is free.
    fn dequeue(&mut self) {
        if self.idle_at <= self.now
            && let Some(deciding) = &mut self.deciding
        {
            deciding.dequeue(self.idle_at, |place, leaving| self.decided.push_back((place, leaving)));
        }
    }

    /// Sends a packet whose service begins at `begins`. Returns its fate on the line.
    fn serve(&mut self, begins: Instant, bytes: u64, ecn: Ecn) -> PacketOutcome {
        if begins > self.idle_at {
            self.carry = 0;
        }
        self.idle_at = self.served(begins, bytes);
        if self.loses(begins) {
            return PacketOutcome::Dropped(DropReason::Loss);
        }
        let copied = self.random.chance(self.config.duplication);
        let mut at = self.idle_at + self.delay.at(self.idle_at);
        if !self.config.jitter.is_zero() {
            at += self.random.up_to(self.config.jitter);
        }
        at = at.max(self.last_arrival);
        if let Some(stalls) = &mut self.stalls {
            at = stalls.release(at);
        }
        if self.random.chance(self.config.reordering) {
            at += self.config.reorder_delay;
        } else {
            self.last_arrival = at;
        }
        let corruption = self.config.corruption;
        let mut delivery = || Delivery {
            begins,
            at,
            ecn,
            corruption: self.random.chance(corruption).then(|| Corruption(self.random.next_u64())),
        };
        let first = delivery();
        if copied { PacketOutcome::Duplicated(first, delivery()) } else { PacketOutcome::Delivered(first) }
    }

    /// When a packet of `bytes` that begins at `begins` has been sent.
    fn served(&mut self, begins: Instant, bytes: u64) -> Instant {
        let Some(rate) = self.rate_at(begins) else { return begins };
        let rate = u128::from(rate.max(1));
        let scaled = u128::from(bytes) * 8 * 1_000_000_000 + u128::from(self.carry);
        // Both fit 64 bits for every packet and rate in use; the division of 128 bits is an order
        // slower.
        let (time, carry) = match (u64::try_from(scaled), u64::try_from(rate)) {
            (Ok(scaled), Ok(rate)) => (scaled / rate, scaled % rate),
            _ => (u64::try_from(scaled / rate).unwrap_or(u64::MAX), (scaled % rate) as u64),
        };
        self.carry = carry;
        begins + Duration::from_nanos(time)
    }
}

/// A packet's service time: its bits times 10^9, divided by `rate` (bits per second). Returns the
/// quotient in nanoseconds, and the remainder. The caller sums the remainders of successive
/// packets, so rounding loses no time. `known` caches the last size and its results.
#[inline]
fn service_of(known: &mut (u64, u64, u64), bytes: u64, rate: u64) -> (u64, u64) {
    if known.0 != bytes {
        let scaled = bytes.saturating_mul(8 * 1_000_000_000);
        *known = (bytes, scaled / rate, scaled % rate);
    }
    (known.1, known.2)
}

impl Link for Pipe {
    fn offer(&mut self, now: Instant, packet: &Offer) -> PacketOutcome {
        self.advance(now);
        let now = self.now;
        if self.partitioned() {
            return PacketOutcome::Dropped(DropReason::Partition);
        }
        let bytes = packet.size as u64 + u64::from(self.config.overhead);
        if self.config.mtu.is_some_and(|mtu| bytes > mtu as u64) {
            return PacketOutcome::Dropped(DropReason::TooLarge);
        }
        if self.deciding.is_some() {
            return self.enqueue(bytes, packet);
        }
        let verdict = self.managed(bytes, packet.ecn);
        let begins = self.idle_at.max(now);
        let queues = begins > now;
        if queues && !self.has_room(self.total, bytes) {
            return PacketOutcome::Dropped(DropReason::QueueFull);
        }
        if verdict == RedVerdict::Drop {
            return PacketOutcome::Dropped(DropReason::Managed);
        }
        let marked = verdict == RedVerdict::Mark
            || packet.ecn != Ecn::NotEct
                && self.config.mark_above.is_some_and(|threshold| queues && self.total.packets >= threshold);
        let fate = self.serve(begins, bytes, if marked { Ecn::Ce } else { packet.ecn });
        if queues {
            let deliveries = match fate {
                PacketOutcome::Delivered(_) => 1,
                PacketOutcome::Duplicated(..) => 2,
                PacketOutcome::Dropped(_) | PacketOutcome::Queued => 0,
            };
            self.waiting.push_back(QueuedPacket { begins, bytes, deliveries });
            self.total.packets += 1;
            self.total.bytes += bytes;
            self.total.deliveries += deliveries;
        }
        fate
    }

    fn waiting(&self, now: Instant) -> Occupancy {
        if let Some(deciding) = &self.deciding {
            let (packets, bytes) = deciding.total();
            return Occupancy { packets, bytes, deliveries: packets as u64 };
        }
        if self.waiting.front().is_none_or(|first| first.begins > now) {
            return self.total;
        }
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

    fn decides_at(&self) -> Option<Instant> {
        if !self.decided.is_empty() {
            return Some(self.now);
        }
        self.deciding.as_ref().filter(|deciding| deciding.total().0 > 0).map(|_| self.idle_at)
    }

    fn decide(&mut self, now: Instant) -> Option<Decision> {
        self.now = self.now.max(now);
        if self.decided.is_empty() {
            self.dequeue();
        }
        let (place, leaving) = self.decided.pop_front()?;
        let fate = match leaving {
            Dequeued::Dropped => PacketOutcome::Dropped(DropReason::Managed),
            Dequeued::Served(packet) => self.serve(self.idle_at, packet.bytes, packet.ecn),
        };
        Some(Decision { place, fate })
    }
}
