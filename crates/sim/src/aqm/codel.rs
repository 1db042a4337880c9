//! Controlled Delay, RFC 8289: decides when a packet leaves the queue, by how long it has waited.

use byway_wire::time::nanos;
use byway_wire::{Duration, Ecn, Instant};
use std::collections::VecDeque;

/// The parameters of [`Codel`].
#[derive(Clone, Debug, PartialEq)]
pub struct CodelConfig {
    /// The standing delay that is acceptable (TARGET).
    pub target: Duration,
    /// Time for which the delay must exceed the target before a packet is dropped (INTERVAL): a
    /// worst-case round trip.
    pub interval: Duration,
    /// Bytes, headers included. While no more than this wait behind a packet, nothing is dropped
    /// (`maxpacket_`).
    pub max_packet: u64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// Target 5 ms, interval 100 ms, `max_packet` 1 514 bytes, and no marks (RFC 8289, sections 4.2
    /// to 4.4).
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            max_packet: 1_514,
            ecn: false,
        }
    }
}

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The time since which the packet waits.
    pub since: Instant,
    /// The size of the packet in bytes, headers included.
    pub bytes: u64,
    /// The ECN mark of the packet.
    pub ecn: Ecn,
}

/// The result for the first packet of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeued {
    /// The packet was dropped.
    Dropped,
    /// The packet's service begins. It carries a CE mark if it was marked here.
    Served(Queued),
}

/// A queue under CoDel.
#[derive(Clone, Debug)]
pub struct Codel {
    config: CodelConfig,
    queue: VecDeque<Queued>,
    bytes: u64,
    /// The time at which the delay will have been too long for an interval. `None`: it is not too
    /// long.
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    /// An empty queue.
    #[must_use]
    pub fn new(config: CodelConfig) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
            bytes: 0,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// Returns the number of waiting packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a packet at the queue's end.
    pub fn enqueue(&mut self, packet: Queued) {
        self.bytes += packet.bytes;
        self.queue.push_back(packet);
    }

    /// Removes the first packet, because there is no room for more.
    pub(super) fn drop_first(&mut self) {
        self.bytes -= self.queue.pop_front().map_or(0, |packet| packet.bytes);
    }

    /// Takes packets off the queue when the line is free (RFC 8289, 5.5). Calls `leaving` for each
    /// dropped packet, then for the packet that the line sends, if any. With `ecn`, ECN-capable
    /// packets are marked instead of dropped.
    pub fn dequeue(&mut self, now: Instant, mut leaving: impl FnMut(Dequeued)) {
        let (mut packet, mut may_drop) = self.take(now);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.mark(&mut packet) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                leaving(Dequeued::Dropped);
                (packet, may_drop) = self.take(now);
                self.dropping = may_drop;
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if may_drop {
            if !self.mark(&mut packet) {
                leaving(Dequeued::Dropped);
                (packet, _) = self.take(now);
            }
            self.dropping = true;
            // Soon after the last time, the rate that was needed then is where to begin.
            let delta = self.count - self.last_count;
            let soon = now.since(self.drop_next) < 16 * self.config.interval;
            self.count = if delta > 1 && soon { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        if let Some(packet) = packet {
            leaving(Dequeued::Served(packet));
        }
    }

    /// Removes the first packet. Also returns whether the packet may be dropped.
    fn take(&mut self, now: Instant) -> (Option<Queued>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= packet.bytes;
        if now.since(packet.since) < self.config.target || self.bytes <= self.config.max_packet {
            self.first_above = None;
            return (Some(packet), false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.config.interval);
                (Some(packet), false)
            }
            Some(at) => (Some(packet), now >= at),
        }
    }

    /// Marks the packet, if both it and the queue are ECN-capable. Returns whether it did.
    fn mark(&self, packet: &mut Option<Queued>) -> bool {
        match packet {
            Some(packet) if self.config.ecn && packet.ecn != Ecn::NotEct => {
                packet.ecn = Ecn::Ce;
                true
            }
            _ => false,
        }
    }

    /// The next drop after `time`: drops come faster with the square root of their number, so that
    /// the throughput of TCP falls linearly.
    fn control_law(&self, time: Instant) -> Instant {
        let wait = nanos(self.config.interval) as f64 / f64::from(self.count).sqrt();
        time + Duration::from_nanos(wait as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn queued(since: Instant, ecn: Ecn) -> Queued {
        Queued { since, bytes: 1_500, ecn }
    }

    /// A line that serves a packet per millisecond from a queue in which `in_queue` packets always
    /// wait. Returns the times of the drops in milliseconds, and how many packets were marked.
    fn standing(config: CodelConfig, in_queue: usize, millis: u64, ecn: Ecn) -> (Vec<u64>, usize) {
        let mut codel = Codel::new(config);
        let (mut drops, mut marked) = (Vec::new(), 0);
        let begins = Instant::from_millis(10_000);
        for ago in (1..=in_queue as u32).rev() {
            codel.enqueue(queued(begins - MS * ago, ecn));
        }
        for tick in 0..millis {
            let now = begins + MS * tick as u32;
            while codel.len() < in_queue {
                codel.enqueue(queued(now, ecn));
            }
            codel.dequeue(now, |leaving| match leaving {
                Dequeued::Dropped => drops.push(tick),
                Dequeued::Served(packet) => marked += usize::from(packet.ecn == Ecn::Ce),
            });
        }
        (drops, marked)
    }

    #[test]
    fn a_standing_queue_is_dropped_from_at_the_times_of_the_control_law() {
        let (drops, _) = standing(CodelConfig::default(), 20, 500, Ecn::NotEct);
        // The first drop comes after the delay was above target for 100 ms. Drop n comes
        // `100 ms / sqrt(n - 1)` after drop n - 1. Times are rounded up to whole milliseconds.
        let mut expected = vec![100];
        let mut ideal = 100.0;
        for count in 1.. {
            ideal += 100.0 / f64::from(count).sqrt();
            if ideal >= 500.0 {
                break;
            }
            expected.push(ideal.ceil() as u64);
        }
        assert_eq!(drops, expected);
    }

    #[test]
    fn a_short_queue_or_a_single_packet_is_left_alone() {
        // Four wait: less than the target.
        assert_eq!(standing(CodelConfig::default(), 4, 2_000, Ecn::NotEct).0, []);
        // Long waits, but no more than a packet behind the first: a slow line.
        let slow = CodelConfig { target: Duration::from_micros(100), ..CodelConfig::default() };
        assert_eq!(standing(slow.clone(), 2, 2_000, Ecn::NotEct).0, []);
        assert_ne!(standing(slow, 3, 2_000, Ecn::NotEct).0, []);
    }

    #[test]
    fn capable_packets_are_marked_at_the_same_times() {
        let config = CodelConfig { ecn: true, ..CodelConfig::default() };
        let (drops, marked) = standing(config.clone(), 20, 500, Ecn::Ect0);
        assert_eq!((drops.len(), marked), (0, standing(config, 20, 500, Ecn::NotEct).0.len()));
    }

    #[test]
    fn a_second_bad_time_soon_after_the_first_begins_where_that_ended() {
        let mut codel = Codel::new(CodelConfig::default());
        let mut last_drop = 0;
        let mut run = |codel: &mut Codel, from: u64, to: u64, waited: u32| {
            for tick in from..to {
                let now = Instant::from_millis(tick);
                while codel.len() < 20 {
                    codel.enqueue(queued(now, Ecn::NotEct));
                }
                for packet in &mut codel.queue {
                    packet.since = now - MS * waited;
                }
                codel.dequeue(now, |leaving| {
                    if leaving == Dequeued::Dropped {
                        last_drop = tick;
                    }
                });
            }
            last_drop
        };
        run(&mut codel, 0, 400, 20);
        let first = codel.count;
        run(&mut codel, 400, 410, 1);
        assert!(!codel.dropping);
        let last_drop = run(&mut codel, 410, 515, 20);
        // Above target again at 410 ms, dropping from 510 ms, at the pace that was reached: count
        // is what was gained.
        assert_eq!((codel.count, last_drop), (first - 1, 510));
        assert_eq!(
            codel.drop_next,
            Instant::from_millis(510) + (100 * MS).div_f64(f64::from(first - 1).sqrt())
        );
        // Long after, it begins anew.
        run(&mut codel, 515, 600, 1);
        run(&mut codel, 5_000, 5_101, 20);
        assert_eq!((codel.count, codel.drop_next), (1, Instant::from_millis(5_200)));
    }
}
