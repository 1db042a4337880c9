//! The key schedule: a chain of secrets, one per epoch, each the one-way image of the one before.

use core::fmt;

use byway_wire::{Duration, PathId};
use zeroize::Zeroizing;

use super::{Key, Suite, TagMismatch};

/// A secret of one direction in one epoch. Erased from memory when dropped, never printed.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// Wraps secret bytes. The caller erases its own copy.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The secret for one purpose, from any key material. `context` is unique to the purpose.
    pub(crate) fn derive(context: &str, material: &[u8]) -> Self {
        Self(Zeroizing::new(blake3::derive_key(context, material)))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of the packets in this epoch.
    pub(super) fn key(&self, suite: Suite) -> Result<Key, TagMismatch> {
        let bytes = Self::derive("byway 1: key of data packets", self.bytes());
        Key::new(suite, bytes.bytes())
    }

    /// The secret of the next epoch. From it nothing of this one can be computed.
    pub(super) fn next(&self) -> Self {
        Self::derive("byway 1: secret of the next epoch", self.bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The limits at which keys roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochLimits {
    /// Packets sealed in one epoch, over all paths. At most [`EpochLimits::HARD_LIMIT_PACKETS`],
    /// half of which is the default.
    pub packets: u64,
    /// Age at which an epoch ends, however little was sent.
    pub age: Duration,
    /// Time after an epoch's end for which the receiver still opens late packets of it.
    pub stragglers: Duration,
}

impl EpochLimits {
    /// The most packets that are sealed under one key: 2^23 (RFC 9001 section 6.6). This is the
    /// confidentiality limit of AES-GCM. Beyond it a sealer refuses to seal.
    pub const HARD_LIMIT_PACKETS: u64 = 1 << 23;
}

impl Default for EpochLimits {
    fn default() -> Self {
        Self { packets: 1 << 22, age: Duration::from_secs(3600), stragglers: Duration::from_secs(5) }
    }
}

/// The nonce of a packet: path id, then packet number, both big endian.
#[inline]
pub(super) fn nonce(path: PathId, number: u64) -> [u8; 12] {
    let [a, b, c, d] = path.0.to_be_bytes();
    let [e, f, g, h, i, j, k, l] = number.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}
