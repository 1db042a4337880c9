//! The receiving side of a direction.

use byway_wire::packet::TAG_LEN;
use byway_wire::{Instant, PathId};
use thiserror::Error;

use super::schedule::nonce;
use super::{Aead, EpochLimits, Key, Secret, Suite, TagMismatch};

/// Why a packet was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// The packet is shorter than its header and tag.
    #[error("packet ends before its tag")]
    TooShort,
    /// The packet belongs to an epoch whose key was erased.
    #[error("packet is of an epoch that is over")]
    OldEpoch,
    /// The peer did not seal the packet for this path and number, or it was changed on the route.
    #[error("packet is forged or damaged")]
    Forged,
    /// The session saw so many forged packets that the next might succeed, and has to end (RFC 9001
    /// section 6.6).
    #[error("too many forged packets")]
    Exhausted,
}

/// Opens the packets of one direction, on all paths, and follows the sender from one epoch (a key's
/// life) to the next. The header's two epoch bits select the key, so a forged packet costs one
/// attempt to decrypt.
#[derive(Debug)]
pub struct Opener {
    suite: Suite,
    limits: EpochLimits,
    /// The key of epoch e is at index e modulo 4. Keys of the next two epochs are ready: if all
    /// packets of one epoch are lost, packets of the epoch after it can still be opened.
    keys: [Option<Key>; 4],
    /// The secret of epoch `current` + 2, the furthest ahead. Earlier secrets are erased.
    furthest: Secret,
    current: u64,
    /// When the previous epoch's key goes.
    previous_until: Option<Instant>,
    forged: u64,
}

impl Opener {
    /// Begins at epoch 0 with `secret`.
    pub fn new(suite: Suite, secret: &Secret) -> Result<Self, TagMismatch> {
        let next = secret.next();
        let furthest = next.next();
        let keys = [Some(secret.key(suite)?), Some(next.key(suite)?), Some(furthest.key(suite)?), None];
        let limits = EpochLimits::default();
        Ok(Self { suite, limits, keys, furthest, current: 0, previous_until: None, forged: 0 })
    }

    /// Keeps the previous epoch's key for `limits.stragglers`; when epochs begin is the sender's
    /// choice.
    #[must_use]
    pub const fn with_limits(mut self, limits: EpochLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The suite that packets are opened with.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The number of epochs before the current one.
    #[must_use]
    pub const fn epochs(&self) -> u64 {
        self.current
    }

    /// Packets refused as [`OpenError::Forged`] since the connection began.
    #[must_use]
    pub const fn forged(&self) -> u64 {
        self.forged
    }

    /// Opens `packet` (header of `header_len` bytes, sealed bytes, tag) in place and returns the
    /// plaintext. After an error, the bytes are worthless. Call [`super::ReplayWindow::check`]
    /// before this function, and enter `number` into the window after success.
    #[inline]
    pub fn open<'a>(
        &mut self,
        now: Instant,
        path: PathId,
        number: u64,
        epoch_bits: u8,
        packet: &'a mut [u8],
        header_len: usize,
    ) -> Result<&'a mut [u8], OpenError> {
        if self.previous_until.is_some_and(|until| now >= until) {
            self.forget_previous();
        }
        if self.forged >= self.suite.integrity_limit() {
            return Err(OpenError::Exhausted);
        }
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(OpenError::TooShort)?;
        let (body, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(OpenError::TooShort)?;
        let slot = self.keys.get(usize::from(epoch_bits & 3)).and_then(Option::as_ref);
        let key = slot.ok_or(OpenError::OldEpoch)?;
        if let Err(TagMismatch) = key.open(nonce(path, number), header, body, *tag) {
            self.forged += 1;
            return Err(OpenError::Forged);
        }
        // 0: current, 1 and 2: ahead, 3: previous.
        let ahead = u64::from(epoch_bits).wrapping_sub(self.current) & 3;
        if matches!(ahead, 1 | 2) {
            self.advance(now, ahead);
        }
        Ok(body)
    }

    /// Advances by `ahead` (1 or 2) epochs, after the peer has proved that it did so.
    #[cold]
    fn advance(&mut self, now: Instant, ahead: u64) {
        for _ in 0..ahead {
            let furthest = self.furthest.next();
            self.current += 1;
            let slot = ((self.current + 2) & 3) as usize;
            if let Some(slot) = self.keys.get_mut(slot) {
                // In place of the epoch before the one that just ended: too old now, if it is there
                // still.
                *slot = furthest.key(self.suite).ok();
            }
            self.furthest = furthest;
        }
        self.previous_until = Some(now + self.limits.stragglers);
    }

    #[cold]
    fn forget_previous(&mut self) {
        self.previous_until = None;
        if let Some(previous) = self.keys.get_mut((self.current.wrapping_sub(1) & 3) as usize) {
            *previous = None;
        }
    }

    #[cfg(test)]
    pub(super) const fn pretend_forged(&mut self, forged: u64) {
        self.forged = forged;
    }
}
