//! A seeded generator with a stream per component: xoshiro256++, seeded by SplitMix64 (Blackman and
//! Vigna, "Scrambled linear pseudorandom number generators", 2021). It is fast and well
//! distributed, and not for secrets.

use byway_wire::time::nanos;
use byway_wire::{Duration, seeded_random};

/// A stream of pseudorandom numbers: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator with this seed. Any seed is valid, also zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mixer = seeded_random::Random::new(seed);
        Self { state: [0; 4].map(|_| mixer.bits()) }
    }

    /// The stream of one component of a world. It depends only on the world's seed and the
    /// component's name, so other components can be added or removed without changing it.
    #[must_use]
    pub fn component(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then mixed with the seed: names that differ in one letter get
        // unrelated streams.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::new(seeded_random::Random::new(seed).bits() ^ name)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number in `0..bound`; 0 if `bound` is 0. The bias is at most `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)`, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability. Draws no number if the answer is certain.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.unit() < probability)
    }

    /// A random time between two events of a Poisson process with this mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let scale = -libm::log(1.0 - self.unit());
        Duration::from_nanos((nanos(mean) as f64 * scale) as u64)
    }

    /// A time in `0..=most`, each equally likely.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(nanos(most).saturating_add(1)))
    }

    /// Fills `bytes`, for payloads and keys of tests.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(word) {
                *to = from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_gives_the_published_sequence() {
        // The first two steps from the state 1, 2, 3, 4 are worked out by hand from the definition.
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!(random.next_u64(), (5_u64 << 23) + 1);
        assert_eq!(random.next_u64(), 58_720_359);
    }

    #[test]
    fn components_differ_by_name_and_by_seed() {
        let first = |seed, name| Random::component(seed, name).next_u64();
        assert_eq!(first(1, "up"), first(1, "up"));
        assert_ne!(first(1, "up"), first(1, "uq"));
        assert_ne!(first(1, "up"), first(2, "up"));
    }

    #[test]
    fn draws_are_spread_evenly() {
        let mut random = Random::new(7);
        let mut buckets = [0_u32; 10];
        for _ in 0..100_000 {
            buckets[random.below(10) as usize] += 1;
        }
        // Six standard deviations around 10 000.
        assert!(buckets.iter().all(|&count| count.abs_diff(10_000) < 570), "{buckets:?}");
        assert_eq!(random.below(0), 0);
        let mean = Duration::from_millis(10);
        let total: Duration = (0..100_000).map(|_| random.exponential(mean)).sum();
        assert!((total.as_secs_f64() / 1_000.0 - 1.0).abs() < 0.02, "{total:?}");
    }

    #[test]
    fn certain_answers_cost_no_draw() {
        let (mut used, mut fresh) = (Random::new(3), Random::new(3));
        assert!(!used.chance(0.0));
        assert!(used.chance(1.0));
        assert_eq!(used.next_u64(), fresh.next_u64());
    }
}
