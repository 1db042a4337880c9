//! Randomness from the operating system: the seeds and keys that machines are given when they are
//! made.

/// The operating system gave no random bytes, so nothing can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system's random number generator failed: {0}")]
pub struct EntropyError(#[from] getrandom::Error);

/// `N` bytes from the operating system that nobody can guess. Blocks only early in the host's boot,
/// before the system's generator is seeded.
///
/// # Errors
///
/// [`EntropyError`] if the system has no working generator, for example in a sandbox.
pub fn seed<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seeds_differ_and_are_not_blank() {
        let (first, second) = (seed::<32>().unwrap(), seed::<32>().unwrap());
        assert_ne!(first, second);
        assert_ne!(first, [0; 32]);
    }
}
