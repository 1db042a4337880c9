//! The sending side of a direction.

use byway_wire::packet::TAG_LEN;
use byway_wire::{Instant, PathId};
use thiserror::Error;

use super::schedule::nonce;
use super::{Aead, EpochLimits, Key, Secret, Suite, TagMismatch};

/// Why a packet was not sealed. Each reason is a mistake of the caller; the packet must not be
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The buffer is shorter than the header and the room for the tag.
    #[error("packet has no room for its header and tag")]
    TooShort,
    /// [`EpochLimits::HARD_LIMIT_PACKETS`] packets without a call of [`Sealer::epoch`].
    #[error("key is worn out")]
    WornOut,
    /// Longer than the cipher can seal (64 GB).
    #[error("packet is too long")]
    TooLong,
}

/// Seals the packets of all paths in one direction, and changes the key at each epoch.
#[derive(Debug)]
pub struct Sealer {
    suite: Suite,
    limits: EpochLimits,
    secret: Secret,
    key: Key,
    epoch: u64,
    /// The number of packets sealed in this epoch.
    sealed: u64,
    /// When this epoch began, or rather was first asked for. `None`: not yet.
    since: Option<Instant>,
}

impl Sealer {
    /// Begins at epoch 0 with `secret`.
    pub fn new(suite: Suite, secret: Secret) -> Result<Self, TagMismatch> {
        let key = secret.key(suite)?;
        Ok(Self { suite, limits: EpochLimits::default(), secret, key, epoch: 0, sealed: 0, since: None })
    }

    /// Rolls keys at other limits (tests roll every few packets). Both sides may differ in
    /// `packets` and `age`.
    #[must_use]
    pub const fn with_limits(mut self, limits: EpochLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The suite that packets are sealed with.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The epoch, modulo 4, for the header of the next packet. Changes to the next key first if a
    /// change is due. Call this once for each packet, before the packet's header is written.
    #[inline]
    pub fn epoch(&mut self, now: Instant) -> u8 {
        let since = *self.since.get_or_insert(now);
        if self.sealed >= self.limits.packets || now.since(since) >= self.limits.age {
            self.roll(now);
        }
        (self.epoch & 3) as u8
    }

    /// The number of epochs before this one.
    #[must_use]
    pub const fn epochs(&self) -> u64 {
        self.epoch
    }

    #[cold]
    fn roll(&mut self, now: Instant) {
        let secret = self.secret.next();
        // A key of the right length cannot be refused; if it were, the old one would go on to its
        // hard limit.
        if let Ok(key) = secret.key(self.suite) {
            self.key = key;
            self.secret = secret;
            self.epoch += 1;
            self.sealed = 0;
            self.since = Some(now);
        }
    }

    /// Encrypts `packet` in place. It consists of the header (`header_len` bytes, not encrypted),
    /// the plaintext, and 16 bytes of room for the tag. The header must contain the result of
    /// [`Sealer::epoch`]. `number` is the full packet number. Never call this twice with the same
    /// path and number.
    #[inline]
    pub fn seal(
        &mut self,
        path: PathId,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<(), SealError> {
        if self.sealed >= EpochLimits::HARD_LIMIT_PACKETS {
            return Err(SealError::WornOut);
        }
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(SealError::TooShort)?;
        let (body, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(SealError::TooShort)?;
        *tag = self.key.seal(nonce(path, number), header, body).map_err(|TagMismatch| SealError::TooLong)?;
        self.sealed += 1;
        Ok(())
    }

    #[cfg(test)]
    pub(super) const fn pretend_sealed(&mut self, sealed: u64) {
        self.sealed = sealed;
    }
}
