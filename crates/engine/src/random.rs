//! Random numbers for choices of a session, derived from the seed that the application gives. They
//! choose among equal candidates, spread probes in time, and make bytes that nobody can guess
//! without the seed. Keys come from elsewhere.

use byway_wire::seeded_random;

/// The generator of a session.
#[derive(Clone, Debug)]
pub struct Random {
    choices: seeded_random::Random,
    key: [u8; 32],
    drawn: u64,
}

impl Random {
    /// Draws from `seed` only.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let mut state = [0; 8];
        state.copy_from_slice(&blake3::derive_key("byway 2026 session choices", &seed)[..8]);
        Self { choices: seeded_random::Random::new(u64::from_le_bytes(state)), key: seed, drawn: 0 }
    }

    /// 64 bits, to choose with.
    pub const fn next(&mut self) -> u64 {
        self.choices.bits()
    }

    /// A number below `bound` (zero if `bound` is).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.choices.below(bound)
    }

    /// Returns random bytes that cannot be predicted without the seed.
    pub fn unguessable<const N: usize>(&mut self) -> [u8; N] {
        self.drawn += 1;
        let mut bytes = [0; N];
        let mut reader = blake3::Hasher::new_keyed(&self.key)
            .update(b"token")
            .update(&self.drawn.to_le_bytes())
            .finalize_xof();
        reader.fill(&mut bytes);
        bytes
    }

    /// A seed for another random generator.
    pub fn fork(&mut self) -> [u8; 32] {
        self.unguessable()
    }
}
