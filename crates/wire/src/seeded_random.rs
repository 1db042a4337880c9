//! A small seeded generator, which draws the same numbers on every machine.

/// SplitMix64: one addition and two multiplications per draw, any seed is good. Source: Steele, Lea
/// and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014). It is not for
/// secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that draws the same numbers for the same `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias is at most `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Mixes a number so that each bit of the result depends on all bits of the number: the finalizer
/// of SplitMix64.
#[must_use]
pub const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_of_seed_1234567() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn units_are_spread_over_their_range() {
        let mut random = Random::new(7);
        let mean =
            (0..10_000).map(|_| random.unit()).inspect(|u| assert!((0.0..1.0).contains(u))).sum::<f64>()
                / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
