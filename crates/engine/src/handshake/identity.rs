//! The identity of a host: an X25519 key pair.

use core::fmt;

use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroizing;

/// A peer's public key: its name for everyone else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Debug for PublicKey {
    /// The first four bytes, enough to tell peers apart in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}..")
    }
}

impl fmt::Display for PublicKey {
    /// The whole key in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A host's own key pair. The secret is erased from memory when the last copy is dropped, and never
/// printed.
#[derive(Clone)]
pub struct Identity {
    secret: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl Identity {
    /// The identity with this secret: any 32 random bytes. The caller erases its own copy.
    #[must_use]
    pub fn from_secret(secret: [u8; 32]) -> Self {
        let secret = Zeroizing::new(secret);
        let public = PublicKey(MontgomeryPoint::mul_base_clamped(*secret).to_bytes());
        Self { secret, public }
    }

    /// Returns the public key, by which others know the host.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}
