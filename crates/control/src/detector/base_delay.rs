//! The delay of a path whose queues are empty.

use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// The base delay: a path's smallest delay, its delay without queues. A minimum over a sliding
/// window would take another flow's long queue for the base, so the sender would stop yielding.
/// Therefore the base rises only after a long time:
///
/// | all delays exceed the base for | further condition |
/// |---|---|
/// | 15 s ([`ADOPTION_TIME`](Self::ADOPTION_TIME)) | least delays of 3 in 4 RTTs are nearly equal |
/// | ten minutes ([`CONFIRMATION_TIMEOUT`](Self::CONFIRMATION_TIMEOUT)) | none |
#[derive(Clone, Debug)]
pub struct BaseDelay {
    tolerance: i64,
    /// The jitter of delays without a queue, in nanoseconds. Minima of rounds may differ by it.
    spread: i64,
    floor: Option<i64>,
    confirmed: Instant,
    /// The candidate for a higher base: the smallest delay since `since`, in nanoseconds.
    low: i64,
    /// When the search began. It begins again after a delay near the base, or clearly below `low`.
    since: Instant,
    /// Number of rounds that ended since `since`.
    rounds: u32,
    /// Number of these rounds in which the smallest delay was near `low`.
    near: u32,
    round_low: i64,
    round_until: Instant,
}

impl BaseDelay {
    /// Time for which delays must stay at another level before it becomes the base delay.
    pub const ADOPTION_TIME: Duration = Duration::from_secs(15);
    /// Time for which a base delay is valid without confirmation.
    pub const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(600);
    /// The least number of rounds that a floor must last.
    const MIN_ROUND_COUNT: u32 = 8;
    /// The shortest round, in which the smallest delay is taken.
    const MIN_ROUND_TIME: Duration = Duration::from_millis(10);

    /// A base not known yet. Delays up to `tolerance` above it count as equal to it.
    #[must_use]
    pub fn new(tolerance: Duration) -> Self {
        Self {
            tolerance: signed_nanos(tolerance),
            spread: 0,
            floor: None,
            confirmed: Instant::ZERO,
            low: i64::MAX,
            since: Instant::ZERO,
            rounds: 0,
            near: 0,
            round_low: i64::MAX,
            round_until: Instant::ZERO,
        }
    }

    /// The base, in nanoseconds on the scale of the samples.
    #[must_use]
    pub const fn floor(&self) -> Option<i64> {
        self.floor
    }

    /// Sets the jitter of delays without a queue, in nanoseconds. The base comes from the smallest
    /// delay of each round (one RTT, at least 10 ms). Two such delays count as equal if they differ
    /// by at most the jitter plus the tolerance of `new`.
    pub const fn set_spread(&mut self, spread: i64) {
        self.spread = spread;
    }

    /// Returns the time since a delay near the base was last seen.
    #[must_use]
    pub const fn unconfirmed(&self, now: Instant) -> Duration {
        now.since(self.confirmed)
    }

    /// Takes the delay of a packet into account, on a path with this RTT. Returns how long the
    /// packet waited beyond the base, in nanoseconds.
    pub fn sample(&mut self, delay: i64, now: Instant, rtt: Duration) -> i64 {
        let Some(floor) = self.floor else {
            self.set(delay, now);
            return 0;
        };
        if delay <= floor.saturating_add(self.tolerance) {
            self.set(delay.min(floor), now);
            return delay.saturating_sub(floor).max(0);
        }
        if now >= self.round_until {
            self.end_round(now, rtt);
        }
        if delay < self.low.saturating_sub(self.tolerance) {
            self.look_anew(now);
        }
        self.low = self.low.min(delay);
        self.round_low = self.round_low.min(delay);
        if self.unconfirmed(now) >= Self::CONFIRMATION_TIMEOUT {
            self.set(self.low, now);
        } else if now.since(self.since) >= Self::ADOPTION_TIME {
            if self.is_floor() { self.set(self.low, now) } else { self.look_anew(now) }
        }
        delay.saturating_sub(self.floor.unwrap_or(delay)).max(0)
    }

    /// Sets the base delay to `floor` after a change of the route.
    pub fn adopt(&mut self, floor: i64, now: Instant) {
        self.set(floor, now);
    }

    fn end_round(&mut self, now: Instant, rtt: Duration) {
        if self.round_low != i64::MAX {
            self.rounds += 1;
            let near = self.low.saturating_add(self.tolerance).saturating_add(self.spread);
            self.near += u32::from(self.round_low <= near);
        }
        self.round_low = i64::MAX;
        self.round_until = now + rtt.max(Self::MIN_ROUND_TIME);
    }

    fn is_floor(&self) -> bool {
        self.rounds >= Self::MIN_ROUND_COUNT && self.near >= self.rounds - self.rounds / 4
    }

    fn set(&mut self, floor: i64, now: Instant) {
        self.floor = Some(floor);
        self.confirmed = now;
        self.look_anew(now);
    }

    fn look_anew(&mut self, now: Instant) {
        (self.since, self.rounds, self.near) = (now, 0, 0);
        (self.low, self.round_low) = (i64::MAX, i64::MAX);
        self.round_until = now;
    }
}

/// The smallest and the largest delay ever seen: `dmin` and `dmax` of Harp, III.D, read literally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// Smallest delay in nanoseconds.
    pub min: i64,
    /// Largest delay in nanoseconds.
    pub max: i64,
}

impl Extremes {
    /// Takes a delay into account.
    pub fn sample(extremes: &mut Option<Self>, delay: i64) -> Self {
        let seen = extremes.get_or_insert(Self { min: delay, max: delay });
        seen.min = seen.min.min(delay);
        seen.max = seen.max.max(delay);
        *seen
    }

    /// A delay threshold, in nanoseconds above the smallest delay: the factor `threshold` (0 to 1)
    /// times the range from the smallest to the largest delay. A range below `least` counts as
    /// `least`.
    #[must_use]
    pub fn above_min(self, threshold: f64, least: Duration) -> f64 {
        let range = self.max.saturating_sub(self.min) as f64;
        threshold * range.max(least.as_secs_f64() * 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const RTT: Duration = Duration::from_millis(20);

    fn feed(base: &mut BaseDelay, from: u64, until: u64, delay: impl Fn(u64) -> i64) {
        for at in from..until {
            base.sample(delay(at), Instant::from_millis(at), RTT);
        }
    }

    #[test]
    fn falls_at_once_and_may_be_negative() {
        let mut base = BaseDelay::new(Duration::from_millis(1));
        feed(&mut base, 0, 10, |_| 10 * MS);
        assert_eq!(base.sample(-3 * MS, Instant::from_millis(20), RTT), 0);
        assert_eq!(base.floor(), Some(-3 * MS));
        assert_eq!(base.sample(4 * MS, Instant::from_millis(21), RTT), 7 * MS);
    }

    #[test]
    fn a_longer_route_is_adopted_and_a_sawing_queue_is_not() {
        let mut route = BaseDelay::new(Duration::from_millis(1));
        feed(&mut route, 0, 100, |_| 10 * MS);
        feed(&mut route, 100, 14_000, |_| 40 * MS);
        assert_eq!(route.floor(), Some(10 * MS));
        feed(&mut route, 14_000, 16_000, |_| 40 * MS);
        assert_eq!(route.floor(), Some(40 * MS));

        // The queue of a Reno flow at 10 Mbit/s. The window goes from 33 to 67 packets, and the
        // line holds 16.7 packets. So the queue grows from 20 to 60 ms within 2 s, then falls
        // again.
        let mut queue = BaseDelay::new(Duration::from_millis(1));
        feed(&mut queue, 0, 100, |_| 10 * MS);
        feed(&mut queue, 100, 500_000, |at| 30 * MS + 40 * MS * (at % 2_000) as i64 / 2_000);
        assert_eq!(queue.floor(), Some(10 * MS));
    }

    #[test]
    fn confirmations_within_the_tolerance_never_ratchet_it_up() {
        let mut base = BaseDelay::new(Duration::from_millis(1));
        feed(&mut base, 0, 10, |_| 10 * MS);
        feed(&mut base, 10, 900_000, |at| 10 * MS + (1 + at as i64 % 6) * MS);
        assert_eq!(base.floor(), Some(10 * MS));
        assert_eq!(base.unconfirmed(Instant::from_millis(900_010)).as_millis() / 20, 0);
    }

    #[test]
    fn what_nothing_confirms_is_forgotten_in_the_end() {
        let mut base = BaseDelay::new(Duration::from_millis(1));
        feed(&mut base, 0, 10, |_| 10 * MS);
        feed(&mut base, 10, 601_000, |at| 30 * MS + 40 * MS * (at % 2_000) as i64 / 2_000);
        assert_eq!(base.floor(), Some(30 * MS));
    }
}
