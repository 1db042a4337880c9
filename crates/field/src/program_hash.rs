//! Hashes that identify a program or a plan.

use crate::error::{About as _, Result};

/// Hexadecimal digits of a hash that suffice.
const HASH_DIGITS: usize = 16;

/// The hash of `bytes` in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(HASH_DIGITS).collect()
}

/// The hash of this program's file.
pub(crate) fn own_hash() -> Result<String> {
    let own =
        std::env::current_exe().and_then(std::fs::read).about(|| "the program itself cannot be read")?;
    Ok(hash(&own))
}
