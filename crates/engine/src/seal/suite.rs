//! Which cipher seals a connection, and how two peers agree on one.

use byway_wire::packet::TAG_LEN;
use core::fmt;

/// A cipher for data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// AES-256 in Galois/counter mode (NIST SP 800-38D): the fastest where the processor has AES
    /// instructions.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439): fast on every processor.
    ChaCha20Poly1305,
    /// **No security.** Packets travel readable, with a checksum instead of a tag. For simulations,
    /// which need no cipher and save its time. Used only if both sides
    /// [allow it](Suites::INSECURE_SIMULATION).
    Null,
}

impl Suite {
    /// Returns the suite that a host prefers by itself. `aes_in_hardware`: whether the processor
    /// computes AES in hardware, which the caller must find out.
    #[must_use]
    pub const fn preferred(aes_in_hardware: bool) -> Self {
        if aes_in_hardware { Self::Aes256Gcm } else { Self::ChaCha20Poly1305 }
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
            Self::Null => 4,
        }
    }

    /// The block size of the cipher, in bytes. Packets whose plaintext is a multiple of it are
    /// sealed fastest. With AES-GCM, an incomplete last block takes up to a fifth of a packet's
    /// sealing time. Measured by `cargo bench -p byway-engine --bench seal`.
    pub(crate) const fn block(self) -> usize {
        match self {
            Self::Aes256Gcm => 16,
            Self::ChaCha20Poly1305 | Self::Null => 1,
        }
    }

    /// Returns the largest packet of at most `packet` bytes whose sealed part is a multiple of the
    /// cipher's block. `header` bytes of it are not sealed.
    pub(crate) const fn whole(self, packet: usize, header: usize) -> usize {
        packet - packet.saturating_sub(header + TAG_LEN) % self.block()
    }

    /// Returns the number of forged packets that an opener may refuse before the connection has to
    /// end: the integrity limits of RFC 9001 section 6.6. `Null` has no limit, since its checksum
    /// protects against accidents only.
    pub(crate) const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
            Self::Null => u64::MAX,
        }
    }
}

/// A set of cipher suites that one side accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Suites(u8);

impl Suites {
    /// Both ciphers, for processors with AES instructions.
    pub const SECURE: Self = Self(Suite::Aes256Gcm.to_byte() | Suite::ChaCha20Poly1305.to_byte());
    /// The set with only [`Suite::Null`]. **No security**: for simulations.
    pub const INSECURE_SIMULATION: Self = Self(Suite::Null.to_byte());

    /// The suites that a host offers: ChaCha20-Poly1305, and AES-256-GCM only with hardware
    /// support. In software it would slow down both ends.
    #[must_use]
    pub const fn for_processor(aes_in_hardware: bool) -> Self {
        if aes_in_hardware { Self::SECURE } else { Self::only(Suite::ChaCha20Poly1305) }
    }

    /// A set of one suite.
    #[must_use]
    pub const fn only(suite: Suite) -> Self {
        Self(suite.to_byte())
    }

    /// A set that has `suite`, too.
    #[must_use]
    pub const fn with(self, suite: Suite) -> Self {
        Self(self.0 | suite.to_byte())
    }

    /// Whether `suite` is in the set.
    #[must_use]
    pub const fn contains(self, suite: Suite) -> bool {
        self.0 & suite.to_byte() != 0
    }

    /// The suite for two sides that allow `self` and `other`, or `None` if no suite is in both.
    /// `Null` comes first, because a side allows it only on purpose. AES-256-GCM is offered only by
    /// processors that compute it fast.
    #[must_use]
    pub fn agree(self, other: Self) -> Option<Suite> {
        [Suite::Null, Suite::Aes256Gcm, Suite::ChaCha20Poly1305]
            .into_iter()
            .find(|&suite| self.contains(suite) && other.contains(suite))
    }

    pub(crate) const fn to_byte(self) -> u8 {
        self.0
    }

    /// Makes a set from its byte. Unknown bits, offers of a newer peer, are kept and never match.
    pub(crate) const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns the suite that this byte names, if it names exactly one known suite.
    pub(crate) fn single(byte: u8) -> Option<Suite> {
        [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Null]
            .into_iter()
            .find(|suite| suite.to_byte() == byte)
    }
}

impl fmt::Debug for Suites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Null];
        f.debug_set().entries(all.into_iter().filter(|&suite| self.contains(suite))).finish()
    }
}
