//! Random Early Detection (Floyd and Jacobson, "Random Early Detection gateways for congestion
//! avoidance", 1993). The details are those of ns-2's `red.cc`, so that experiments made in ns-2
//! can be run here.

use crate::link::Occupancy;
use crate::random::Random;
use byway_wire::{Duration, time::nanos};

/// The parameters of [`Red`]. Thresholds are in packets, or in bytes on the wire where
/// [`in_bytes`](Self::in_bytes) says so.
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// Average queue below which nothing is dropped (`thresh_`).
    pub min: f64,
    /// Average queue at which the probability reaches [`max_p`](Self::max_p) (`maxthresh_`).
    pub max: f64,
    /// Probability at [`max`](Self::max) (1 / `linterm_`).
    pub max_p: f64,
    /// The weight of a new queue length in the average (`q_weight_`).
    pub weight: f64,
    /// Beyond [`max`](Self::max) the probability grows to 1 at twice that; otherwise it is 1 at
    /// once (`gentle_`).
    pub gentle: bool,
    /// Spreads drops evenly over 1/p to 2/p packets after the last one instead of 1 to 1/p
    /// (`wait_`).
    pub wait: bool,
    /// Measures the queue in bytes (`queue_in_bytes_`).
    pub in_bytes: bool,
    /// Whether large packets are dropped more often than small ones, in proportion to their size
    /// (`bytes_`).
    pub by_size: bool,
    /// Whether ECN-capable packets are marked instead of randomly dropped (`setbit_`). At
    /// probability 1 they are dropped all the same.
    pub ecn: bool,
    /// Bytes of a typical packet (`mean_pktsize_`). An idle line counts as having sent as many of
    /// these as it could.
    pub mean_packet: u32,
}

impl RedConfig {
    /// RED with thresholds in packets of 1 500 bytes. `max_p` is 0.1 and the weight 0.002; it is
    /// gentle and sets no marks.
    #[must_use]
    pub fn new(min: f64, max: f64) -> Self {
        Self {
            min,
            max,
            max_p: 0.1,
            weight: 0.002,
            gentle: true,
            wait: false,
            in_bytes: false,
            by_size: false,
            ecn: false,
            mean_packet: 1_500,
        }
    }

    /// The probability `p_b` of a drop for an average queue of `average` packets, or bytes if the
    /// thresholds are in bytes. The formula is from section 3 of the paper of 1993, the part for
    /// `gentle` from ns-2.
    #[must_use]
    pub fn probability(&self, average: f64) -> f64 {
        if average < self.min {
            0.0
        } else if average < self.max {
            self.max_p * (average - self.min) / (self.max - self.min)
        } else if self.gentle {
            (self.max_p + (1.0 - self.max_p) * (average - self.max) / self.max).min(1.0)
        } else {
            1.0
        }
    }

    /// The probability p_a for the `count`-th packet since the last that was dropped: it makes the
    /// gaps even instead of geometric.
    #[must_use]
    pub fn spread(&self, p: f64, count: f64) -> f64 {
        let due = count * p;
        if self.wait {
            if due < 1.0 {
                0.0
            } else if due < 2.0 {
                (p / (2.0 - due)).min(1.0)
            } else {
                1.0
            }
        } else if due < 1.0 {
            (p / (1.0 - due)).min(1.0)
        } else {
            1.0
        }
    }
}

/// The decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedVerdict {
    /// The packet may go in.
    Pass,
    /// The packet may go in, marked CE.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// The state of a queue under RED.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    average: f64,
    /// Packets and bytes since the last drop, including the present packet.
    count: u64,
    count_bytes: u64,
    /// The average was above the lower threshold before.
    above: bool,
}

impl Red {
    /// A queue that was always empty.
    #[must_use]
    pub fn new(config: RedConfig) -> Self {
        Self { config, average: 0.0, count: 0, count_bytes: 0, above: false }
    }

    /// The average queue, in the unit of the thresholds.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Decides about an arriving packet of `bytes` bytes. `queue` is what waits at this time.
    /// `idle` is `Some` if the line is idle: the time since the line became idle, and its rate in
    /// bits per second.
    pub fn arrive(
        &mut self,
        queue: Occupancy,
        bytes: u64,
        ecn_capable: bool,
        idle: Option<(Duration, u64)>,
        random: &mut Random,
    ) -> RedVerdict {
        let config = &self.config;
        if let Some((time, rate)) = idle {
            // As if it had been empty for the packets that the line could have sent meanwhile.
            let per_second = rate as f64 / (8.0 * f64::from(config.mean_packet.max(1)));
            let missed = (per_second * (nanos(time) as f64 / 1e9)) as u32;
            self.average *= libm::pow(1.0 - config.weight, f64::from(missed));
        }
        let length = if config.in_bytes { queue.bytes as f64 } else { queue.packets as f64 };
        self.average += config.weight * (length - self.average);
        self.count += 1;
        self.count_bytes += bytes;
        if self.average < config.min || length <= 1.0 {
            self.above = false;
            return RedVerdict::Pass;
        }
        let p = config.probability(self.average);
        if p >= 1.0 {
            return RedVerdict::Drop;
        }
        if !self.above {
            // The first beyond the threshold only starts the count.
            self.above = true;
            (self.count, self.count_bytes) = (1, bytes);
            return RedVerdict::Pass;
        }
        let mean = u64::from(config.mean_packet.max(1));
        let count = if config.by_size { self.count_bytes / mean } else { self.count };
        let mut chance = config.spread(p, count as f64);
        if config.by_size && chance < 1.0 {
            chance = (chance * bytes as f64 / mean as f64).min(1.0);
        }
        if !random.chance(chance) {
            return RedVerdict::Pass;
        }
        (self.count, self.count_bytes) = (0, 0);
        if config.ecn && ecn_capable { RedVerdict::Mark } else { RedVerdict::Drop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(packets: usize) -> Occupancy {
        Occupancy { packets, bytes: packets as u64 * 1_500, deliveries: packets as u64 }
    }

    #[test]
    fn the_probability_follows_its_published_line() {
        let mut config = RedConfig::new(5.0, 15.0);
        let at = |config: &RedConfig| {
            [4.9, 5.0, 10.0, 15.0, 22.5, 30.0, 99.0].map(|queue| (config.probability(queue) * 1e6) as u64)
        };
        assert_eq!(at(&config), [0, 0, 50_000, 100_000, 550_000, 1_000_000, 1_000_000]);
        config.gentle = false;
        assert_eq!(at(&config), [0, 0, 50_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000]);
    }

    #[test]
    fn the_average_is_a_moving_one_that_decays_while_the_line_is_idle() {
        let mut random = Random::new(1);
        let mut red = Red::new(RedConfig { weight: 0.25, ..RedConfig::new(50.0, 100.0) });
        let averages = [4, 4, 8].map(|length| {
            red.arrive(waiting(length), 1_500, false, None, &mut random);
            red.average()
        });
        assert_eq!(averages, [1.0, 1.75, 3.3125]);
        // 2.5 packet times of idleness at 12 Mbit/s: two empty samples, and the empty queue that
        // this packet finds.
        let idle = Some((Duration::from_micros(2_500), 12_000_000));
        red.arrive(waiting(0), 1_500, false, idle, &mut random);
        assert!((red.average() - 3.3125 * 0.75 * 0.75 * 0.75).abs() < 1e-12, "{}", red.average());
    }

    /// Returns the gaps between drops while the average queue stays at `average`.
    fn gaps(config: RedConfig, average: usize, drops: usize) -> Vec<u64> {
        let mut random = Random::new(7);
        let mut red = Red::new(RedConfig { weight: 1.0, ..config });
        let (mut gaps, mut gap) = (Vec::new(), 0);
        while gaps.len() < drops {
            gap += 1;
            if red.arrive(waiting(average), 1_500, false, None, &mut random) == RedVerdict::Drop {
                gaps.push(core::mem::take(&mut gap));
            }
        }
        gaps
    }

    #[test]
    fn gaps_between_drops_are_uniform_not_geometric() {
        // As in ns-2, the k-th packet after a drop is dropped with probability `p_b / (1 - k p_b)`.
        // The average of 10 is half-way between the thresholds, so `p_b` is `max_p / 2`, 0.05. All
        // gaps of 1 to 19 packets are equally likely.
        let found = gaps(RedConfig::new(5.0, 15.0), 10, 20_001);
        let found = found.get(1..).unwrap();
        let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
        assert!((mean - 10.0).abs() < 0.2, "{mean}");
        assert_eq!(found.iter().max(), Some(&19));
        for length in 1..=19 {
            let count = found.iter().filter(|&&gap| gap == length).count();
            // 20 000 / 19, five standard deviations.
            assert!(count.abs_diff(1_053) < 158, "{count} gaps of {length}");
        }
        // And with `wait` over 1/p_b ..= 2/p_b - 1.
        let found = gaps(RedConfig { wait: true, ..RedConfig::new(5.0, 15.0) }, 10, 20_001);
        let found = found.get(1..).unwrap();
        let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
        assert!((mean - 29.5).abs() < 0.2, "{mean}");
        assert!(found.iter().all(|gap| (20..=39).contains(gap)));
    }

    #[test]
    fn ecn_capable_packets_are_marked_until_the_probability_is_one() {
        let mut random = Random::new(7);
        let config = RedConfig { ecn: true, weight: 1.0, ..RedConfig::new(5.0, 15.0) };
        let mut count = |average: usize, capable| {
            let mut red = Red::new(config.clone());
            let verdicts: Vec<_> = (0..10_000)
                .map(|_| red.arrive(waiting(average), 1_500, capable, None, &mut random))
                .collect();
            let of = |verdict| verdicts.iter().filter(|&&found| found == verdict).count();
            (of(RedVerdict::Mark), of(RedVerdict::Drop))
        };
        assert!(matches!(count(10, true), (900..1_000, 0)));
        assert!(matches!(count(10, false), (0, 900..1_000)));
        assert_eq!(count(30, true), (0, 10_000));
    }

    #[test]
    fn large_packets_are_dropped_more_often_in_byte_mode() {
        let mut random = Random::new(3);
        let config =
            RedConfig { by_size: true, in_bytes: true, weight: 1.0, ..RedConfig::new(7_500.0, 22_500.0) };
        let mut red = Red::new(config);
        let mut dropped = [0_u32; 2];
        for round in 0..100_000 {
            let size = [150, 1_500][round % 2];
            if red.arrive(waiting(10), size, false, None, &mut random) == RedVerdict::Drop {
                dropped[round % 2] += 1;
            }
        }
        let ratio = f64::from(dropped[1]) / f64::from(dropped[0]);
        assert!((8.0..12.0).contains(&ratio), "{dropped:?}");
    }
}
