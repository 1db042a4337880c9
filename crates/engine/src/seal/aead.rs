//! Authenticated encryption with associated data, in place, with the tag apart.

use core::fmt;

use byway_wire::packet::TAG_LEN;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use thiserror::Error;

use super::Suite;

/// The tag does not match. When sealing: the body exceeds the cipher's limit for one nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("rejected by the cipher")]
pub struct TagMismatch;

/// A cipher with one key. The header is authenticated; the body is encrypted and authenticated. The
/// caller makes sure that no nonce is used twice.
pub trait Aead {
    /// Encrypts `body` in place. Returns its tag.
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
    ) -> Result<[u8; TAG_LEN], TagMismatch>;

    /// Opens `body` in place. After an error the body holds nothing of use: a packet is tried with
    /// one key only.
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Result<(), TagMismatch>;
}

/// AES-256-GCM or ChaCha20-Poly1305, as implemented by ring.
///
/// ring does not erase its expanded keys when dropped; the secrets they came from are erased
/// ([`super::Secret`]).
#[derive(Clone, Debug)]
pub struct Ring(LessSafeKey);

impl Aead for Ring {
    #[inline]
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
    ) -> Result<[u8; TAG_LEN], TagMismatch> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag =
            self.0.seal_in_place_separate_tag(nonce, Aad::from(header), body).map_err(|_| TagMismatch)?;
        tag.as_ref().try_into().map_err(|_| TagMismatch)
    }

    #[inline]
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .open_in_place_separate_tag(nonce, Aad::from(header), tag.into(), body, 0..)
            .map(|_| ())
            .map_err(|_| TagMismatch)
    }
}

/// **No security.** For simulations: the body stays readable, and the tag is a keyed checksum of
/// 128 bits. The checksum detects corruption, a wrong key and a wrong nonce. Changes within one
/// aligned word of 8 bytes are always detected.
#[derive(Clone)]
pub struct Null([u64; 4]);

impl Null {
    fn new(secret: &[u8; 32]) -> Self {
        let mut lanes = [0; 4];
        round(&mut lanes, secret);
        Self(lanes)
    }

    fn tag(&self, nonce: &[u8; NONCE_LEN], header: &[u8], body: &[u8]) -> [u8; TAG_LEN] {
        let mut lanes = self.0;
        let mut first = [0; 32];
        let (start, lengths) = first.split_at_mut(16);
        start[..NONCE_LEN].copy_from_slice(nonce);
        // Without its length a byte could move from the header to the body, or a zero behind it,
        // unnoticed.
        lengths[..8].copy_from_slice(&(header.len() as u64).to_le_bytes());
        lengths[8..].copy_from_slice(&(body.len() as u64).to_le_bytes());
        round(&mut lanes, &first);
        for part in [header, body] {
            let (blocks, rest) = part.as_chunks::<32>();
            for block in blocks {
                round(&mut lanes, block);
            }
            let mut last = [0; 32];
            for (to, from) in last.iter_mut().zip(rest) {
                *to = *from;
            }
            round(&mut lanes, &last);
        }
        let [a, b, c, d] = lanes;
        let low = (a ^ b.rotate_left(23)).wrapping_mul(HASH_MULTIPLIER);
        let high = (c ^ d.rotate_left(23) ^ low.rotate_left(31)).wrapping_mul(HASH_MULTIPLIER);
        ((u128::from(high) << 64) | u128::from(low)).to_le_bytes()
    }
}

/// The golden ratio's fraction in 64 bits: odd, and without a pattern.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn round(lanes: &mut [u64; 4], block: &[u8; 32]) {
    let (words, _) = block.as_chunks::<8>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(HASH_MULTIPLIER).rotate_left(29);
    }
}

impl Aead for Null {
    #[inline]
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
    ) -> Result<[u8; TAG_LEN], TagMismatch> {
        Ok(self.tag(&nonce, header, body))
    }

    #[inline]
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        if self.tag(&nonce, header, body) == tag { Ok(()) } else { Err(TagMismatch) }
    }
}

impl fmt::Debug for Null {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Null")
    }
}

/// The key of any suite: a branch instead of a virtual call per packet.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the one in use; it is not moved per packet")]
pub enum Key {
    /// A key of a real cipher.
    Ring(Ring),
    /// [`Suite::Null`].
    Null(Null),
}

impl Key {
    /// The key of `suite` from 32 secret bytes.
    pub fn new(suite: Suite, secret: &[u8; 32]) -> Result<Self, TagMismatch> {
        let algorithm = match suite {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Suite::Null => return Ok(Self::Null(Null::new(secret))),
        };
        let key = UnboundKey::new(algorithm, secret).map_err(|_| TagMismatch)?;
        Ok(Self::Ring(Ring(LessSafeKey::new(key))))
    }
}

impl Aead for Key {
    #[inline]
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
    ) -> Result<[u8; TAG_LEN], TagMismatch> {
        match self {
            Self::Ring(key) => key.seal(nonce, header, body),
            Self::Null(key) => key.seal(nonce, header, body),
        }
    }

    #[inline]
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        header: &[u8],
        body: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        match self {
            Self::Ring(key) => key.open(nonce, header, body, tag),
            Self::Null(key) => key.open(nonce, header, body, tag),
        }
    }
}
