//! The session's own randomness, from the seed that its owner gives it: SplitMix64 (Steele, Lea, Flood 2014). Not for keys:
//! for choosing among equals, spreading probes in time, and tokens that only need to be unguessable from outside the seed.

/// The generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    key: [u8; 32],
    tokens: u64,
}

impl Random {
    /// Draws from `seed` only.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let mut state = [0; 8];
        state.copy_from_slice(&blake3::derive_key("byway 2026 session choices", &seed)[..8]);
        Self { state: u64::from_le_bytes(state), key: seed, tokens: 0 }
    }

    /// 64 bits, to choose with.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` (zero if `bound` is).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Bytes that nobody can predict without the seed.
    pub fn token<const N: usize>(&mut self) -> [u8; N] {
        self.tokens += 1;
        let mut token = [0; N];
        let mut reader = blake3::Hasher::new_keyed(&self.key)
            .update(b"token")
            .update(&self.tokens.to_le_bytes())
            .finalize_xof();
        reader.fill(&mut token);
        token
    }

    /// A seed for something that draws on its own.
    pub fn fork(&mut self) -> [u8; 32] {
        self.token()
    }
}
