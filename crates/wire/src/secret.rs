//! Bytes that must not be seen: never printed, wiped when dropped, compared without telling where
//! they differ.

use core::fmt;
use zeroize::Zeroize;

/// A value that only [`expose`](Secret::expose) lets out.
#[derive(Clone)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Keeps `value` as a secret.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the secret value, for its use.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<T: Zeroize + AsRef<[u8]>> PartialEq for Secret<T> {
    /// Compares in constant time, so that the time does not show where the values differ.
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.0.as_ref(), other.0.as_ref());
        let difference = mine.iter().zip(theirs).fold(0, |all, (a, b)| all | (a ^ b));
        mine.len() == theirs.len() && core::hint::black_box(difference) == 0
    }
}

impl<T: Zeroize + AsRef<[u8]>> Eq for Secret<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec};

    #[test]
    fn a_secret_shows_nothing_and_compares_by_value() {
        let secret = Secret::new([0x61; 4]);
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(secret, Secret::new([0x61; 4]));
        assert_ne!(secret, Secret::new([0x62; 4]));
        assert_ne!(Secret::new(vec![1, 2]), Secret::new(vec![1, 2, 3]));
        assert_ne!(Secret::new(vec![]), Secret::new(vec![0]));
    }
}
