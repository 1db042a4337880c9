//! Times, rates and names by chance.

use byway_sim::Random;
use byway_wire::Duration;

/// A time of at least `least` and less than `most` seconds, in whole milliseconds.
pub(super) fn seconds(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_millis(1_000 * least + random.below(1_000 * (most - least).max(1)))
}

/// A time of at least `least` and less than `most` milliseconds, in whole microseconds.
pub(super) fn millis(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_micros(1_000 * least + random.below(1_000 * (most - least).max(1)))
}

/// Draws a rate from 0.5 to 50 Mbit/s, uniform in its logarithm.
pub(super) fn rate(random: &mut Random) -> u64 {
    (5e5 * libm::exp(random.unit() * libm::log(100.0))) as u64
}

/// Bytes from `least` to `most`, each order of magnitude as likely.
pub(super) fn bytes(random: &mut Random, least: u64, most: u64) -> u64 {
    let (least, most) = (least as f64, most as f64);
    (least * libm::exp(random.unit() * libm::log(most / least))) as u64
}

/// With the probability `chance`, a random share up to `most`.
pub(super) fn sometimes(random: &mut Random, chance: f64, most: f64) -> Option<f64> {
    random.chance(chance).then(|| random.unit() * most)
}

/// A random element. `None`: there is none.
pub(super) fn one<'a, T>(random: &mut Random, all: &'a [T]) -> Option<&'a T> {
    all.get(random.below(all.len().max(1) as u64) as usize)
}
