//! The secret of a relay word, and the key of the MACs that follows from it. `key.rs` says how a
//! relay derives both.

use super::grant::Caveat;
use core::fmt;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;
use zeroize::Zeroize;

/// The secret of a grant, known to holders of the relay word. It is never shown, and is erased when
/// dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct GrantSecret([u8; 16]);

impl GrantSecret {
    /// Makes a secret from its bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the secret of the narrowed relay word.
    #[must_use]
    pub fn narrow(&self, caveat: &Caveat) -> Self {
        self.prf(b"caveat", &caveat.to_bytes())
    }

    /// The key of the MACs on packets and notices.
    #[must_use]
    pub fn mac_key(&self) -> MacKey {
        let mut derived = self.prf(b"mac", &[]);
        MacKey(core::mem::take(&mut derived.0))
    }

    pub(super) const fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    fn prf(&self, purpose: &[u8], data: &[u8]) -> Self {
        let mut key = [0; 32];
        if let Some(half) = key.first_chunk_mut() {
            *half = self.0;
        }
        let mut hasher = blake3::Hasher::new_keyed(&key);
        key.zeroize();
        hasher.update(purpose).update(data);
        Self(half(hasher.finalize().as_bytes()))
    }
}

impl fmt::Debug for GrantSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

impl Drop for GrantSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The key of the MACs under one relay word. Holders and relay keep it instead of deriving it per
/// packet.
#[derive(Clone)]
pub struct MacKey([u8; 16]);

impl MacKey {
    pub(super) const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the key of hosts without a relay word. It is public, so its MACs prove only the
    /// fields that they cover, such as a cookie.
    #[must_use]
    pub const fn of_strangers() -> Self {
        Self([0; 16])
    }

    /// MAC over `kind` (so that no message is valid as another kind), `time` and `bytes`. `time` is
    /// the full Unix time in seconds. A packet contains only its low 16 bits, which repeat after 18
    /// hours. In heartbeats, `time` is a counter.
    #[must_use]
    pub(crate) fn mac(&self, kind: u8, time: u64, bytes: &[u8]) -> u64 {
        // 16 bytes first, so that the long part starts on a word of the hash.
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write_u64(u64::from(kind).to_le());
        hasher.write_u64(time.to_be());
        hasher.hash(bytes)
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(redacted)")
    }
}

impl Drop for MacKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The first half of a hash.
pub(super) fn half(bytes: &[u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    half
}

#[cfg(test)]
impl MacKey {
    pub(super) const fn expose(&self) -> &[u8; 16] {
        &self.0
    }
}
