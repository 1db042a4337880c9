//! Whether packets of two paths wait in the same queue: then their one-way delays rise and fall
//! together. So the mean delays of 30 slots of 350 ms each are compared. RFC 8382 compares
//! statistics of such means.

use crate::Delay;
use byway_wire::Duration;
use byway_wire::time::nanos;

/// The length of a slot: the base time interval T that RFC 8382 recommends.
const SLOT_INTERVAL: Duration = Duration::from_millis(350);
/// The number of latest slots that are compared, 10.5 s in all: M of RFC 8382.
const SLOT_COUNT: usize = 30;
/// The number of slots in which both paths must have packets.
const MIN_COMMON_SLOTS: usize = 20;

/// The mean delays of one path in the latest slots of 350 ms. Slots are numbered from time zero, so
/// a slot of a given number covers the same time on all paths.
#[derive(Clone, Debug)]
pub struct DelaySeries {
    /// The number of the present slot. The next fields: the sums of its delays (minus `origin`) and
    /// of their squares, and the number of delays.
    slot: u64,
    sum: f64,
    squares: f64,
    count: f64,
    /// The first delay. Later ones are stored as differences from it, so that sums stay small.
    origin: i64,
    /// The results of past slots, by slot number modulo [`SLOT_COUNT`].
    slots: [Option<SlotSample>; SLOT_COUNT],
}

/// The result of a slot: the mean delay.
#[derive(Clone, Copy, Debug)]
struct SlotSample {
    /// The mean delay, in nanoseconds.
    mean: f64,
    /// The variance of the mean, because a slot has only a few packets.
    noise: f64,
}

impl DelaySeries {
    /// A series without delays.
    pub const NONE: Self =
        Self { slot: 0, sum: 0.0, squares: 0.0, count: 0.0, origin: 0, slots: [None; SLOT_COUNT] };

    /// Takes the delay of one more packet into account. Returns whether a slot ended with it.
    pub fn sample(&mut self, delay: &Delay) -> bool {
        let slot = delay.sent_at.as_nanos() / nanos(SLOT_INTERVAL);
        if self.count == 0.0 {
            (self.slot, self.origin) = (slot, delay.one_way);
        }
        let over = slot > self.slot;
        if over {
            self.set(self.slot, self.told());
            let first = slot.saturating_sub(SLOT_COUNT as u64).max(self.slot + 1);
            (first..slot).for_each(|empty| self.set(empty, None));
            (self.slot, self.sum, self.squares, self.count) = (slot, 0.0, 0.0, 0.0);
        }
        if slot == self.slot {
            let delay = delay.one_way.saturating_sub(self.origin) as f64;
            self.sum += delay;
            self.squares += delay * delay;
            self.count += 1.0;
        }
        over
    }

    /// Returns the result of the present slot. `None`: it has fewer than three packets.
    fn told(&self) -> Option<SlotSample> {
        let n = self.count;
        let mean = self.sum / n;
        let variance = (self.squares - self.sum * mean) / (n - 1.0);
        (n >= 3.0).then(|| SlotSample { mean, noise: variance.max(0.0) / n })
    }

    fn set(&mut self, slot: u64, told: Option<SlotSample>) {
        if let Some(place) = self.slots.get_mut((slot % SLOT_COUNT as u64) as usize) {
            *place = told;
        }
    }

    /// Returns the result of a past slot. `None`: it is too old, or had too few packets.
    fn slot(&self, slot: u64) -> Option<SlotSample> {
        let known = slot < self.slot && slot + SLOT_COUNT as u64 >= self.slot;
        self.slots.get((slot % SLOT_COUNT as u64) as usize).copied().flatten().filter(|_| known)
    }

    /// The variance of the difference of two paths' delays, as a ratio to the variance of `other`'s
    /// delays. Near 0, both paths wait in one queue; from 1 on, in different queues. `None` if
    /// delays are few, or hardly vary.
    #[must_use]
    pub fn apart(&self, other: &Self) -> Option<f64> {
        let end = self.slot.min(other.slot);
        // A straight line is subtracted: two different queues that only grow would look alike.
        let (mut theirs, mut difference) = (LinearFit::default(), LinearFit::default());
        let (mut noise, mut both) = (0.0, 0.0);
        for slot in end.saturating_sub(SLOT_COUNT as u64)..end {
            if let (Some(ours), Some(their)) = (self.slot(slot), other.slot(slot)) {
                let place = (end - slot) as f64;
                theirs.add(place, their.mean);
                difference.add(place, ours.mean - their.mean);
                noise += their.noise;
                both += ours.noise + their.noise;
            }
        }
        let n = theirs.count;
        let noise = [noise / n, both / n];
        let (theirs, difference) = (theirs.left()? - noise[0], difference.left()? - noise[1]);
        match theirs > noise[1] {
            _ if n < MIN_COMMON_SLOTS as f64 => None,
            true => Some(difference.max(0.0) / theirs),
            false => (difference > noise[1]).then_some(f64::INFINITY),
        }
    }
}

/// Sums of a straight line's fit by least squares.
#[derive(Default)]
struct LinearFit {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl LinearFit {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// The variance about the line.
    fn left(&self) -> Option<f64> {
        let n = self.count;
        let (xx, xy, yy) =
            (self.xx - self.x * self.x / n, self.xy - self.x * self.y / n, self.yy - self.y * self.y / n);
        (n > 2.0 && xx > 0.0).then(|| ((yy - xy * xy / xx) / n).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_random::Random;
    use byway_wire::Instant;

    const MS: f64 = 1e6;

    /// Two paths whose packets leave every `gap` ms for a minute, with the delay of each as a
    /// function of the time in ms.
    fn apart(gap: u64, ours: impl Fn(u64) -> f64, theirs: impl Fn(u64) -> f64) -> Option<f64> {
        let (mut a, mut b) = (DelaySeries::NONE, DelaySeries::NONE);
        for at in (0..60_000).step_by(gap as usize) {
            let delay = |one_way: f64, at| Delay {
                sent_at: Instant::from_millis(at),
                one_way: one_way as i64,
                bytes: 1_500,
            };
            a.sample(&delay(ours(at), at));
            b.sample(&delay(theirs(at + gap / 2), at + gap / 2));
        }
        a.apart(&b)
    }

    /// A queue that fills for `period` ms up to 60 ms and is cut by a third.
    fn queue(period: u64, at: u64) -> f64 {
        MS * (40.0 + 20.0 * (at % period) as f64 / period as f64)
    }

    #[test]
    fn one_queue_is_known_and_two_are_told_apart() {
        // Other base delays, and one path before the other in the line.
        let one = apart(20, |at| queue(3_000, at), |at| 70.0 * MS + queue(3_000, at + 20)).unwrap();
        assert!(one < 0.1, "{one}");
        for other in [1_700, 2_900, 4_100] {
            let two = apart(20, |at| queue(3_000, at), |at| queue(other, at)).unwrap();
            assert!(two > 0.8, "{other}: {two}");
        }
        let shifted = apart(20, |at| queue(3_000, at), |at| queue(3_000, at + 1_500)).unwrap();
        assert!(shifted > 0.8, "{shifted}");
    }

    #[test]
    fn queues_that_only_fill_are_not_alike() {
        let noise = |at: u64, seed: u64| Random::new(at * 2 + seed).unit() * MS;
        let fills = |at: u64| at as f64 * 1e3;
        let two = apart(20, |at| fills(at) + noise(at, 0), |at| fills(at) + noise(at, 1));
        assert_eq!(two, None);
    }

    #[test]
    fn a_queue_of_its_own_beside_the_common_one_tells_a_path_apart() {
        let both = apart(20, |at| queue(3_000, at) + queue(1_700, at), |at| queue(3_000, at)).unwrap();
        assert!(both > 0.5, "{both}");
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(apart(2_000, |at| queue(3_000, at), |at| queue(3_000, at)), None);
        assert_eq!(apart(20, |_| 0.0, |_| 0.0), None, "no queue at all");
        assert_eq!(DelaySeries::NONE.apart(&DelaySeries::NONE), None);
    }
}
