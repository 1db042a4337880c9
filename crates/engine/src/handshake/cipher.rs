//! The cipher of the handshake: ring's ChaCha20-Poly1305, as data packets have it, with a key that
//! is erased.

use alloc::vec::Vec;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use snow::types::Cipher;
use zeroize::Zeroizing;

/// Bytes of a key.
const KEY_LEN: usize = 32;
/// Zero bytes of a nonce before the number (The Noise Protocol Framework, section 12.3).
const ZEROS_LEN: usize = 4;

/// ChaCha20-Poly1305 (RFC 8439) for snow.
#[derive(Default)]
pub(super) struct ChaChaPoly(Zeroizing<[u8; KEY_LEN]>);

impl ChaChaPoly {
    /// The key in ring's form, for one message.
    fn key(&self) -> Option<LessSafeKey> {
        Some(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, self.0.as_slice()).ok()?))
    }

    /// Seals `plain` into the beginning of `out`, with `number` as the nonce and `said` as
    /// associated data. Returns the sealed length. `None`: `out` is too short.
    fn seal(&self, number: u64, said: &[u8], plain: &[u8], out: &mut [u8]) -> Option<usize> {
        let (body, rest) = out.split_at_mut_checked(plain.len())?;
        body.copy_from_slice(plain);
        let tag = self.key()?.seal_in_place_separate_tag(nonce(number), Aad::from(said), body).ok()?;
        rest.get_mut(..tag.as_ref().len())?.copy_from_slice(tag.as_ref());
        Some(plain.len() + tag.as_ref().len())
    }

    /// Opens `sealed` into the beginning of `out`, with `number` as the nonce and `said` as
    /// associated data. Returns the length. `None`: it is not authentic.
    fn open(&self, number: u64, said: &[u8], sealed: &[u8], out: &mut [u8]) -> Option<usize> {
        let mut sealed = Zeroizing::new(Vec::from(sealed));
        let plain = self.key()?.open_in_place(nonce(number), Aad::from(said), &mut sealed).ok()?;
        out.get_mut(..plain.len())?.copy_from_slice(plain);
        Some(plain.len())
    }
}

/// The nonce of the message with this number.
fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    if let Some(place) = bytes.get_mut(ZEROS_LEN..) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    Nonce::assume_unique_for_key(bytes)
}

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; KEY_LEN]) {
        self.0 = Zeroizing::new(*key);
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        // snow's buffers have room, so this is never nothing.
        self.seal(nonce, authtext, plaintext, out).unwrap_or_default()
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, snow::Error> {
        self.open(nonce, authtext, ciphertext, out).ok_or(snow::Error::Decrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by another program: Python's `cryptography`, ChaCha20Poly1305 with the nonce 00000000
    /// 0807060504030201.
    const SEALED: [u8; 21] =
        [152, 44, 193, 136, 196, 91, 70, 6, 213, 243, 15, 27, 214, 34, 54, 163, 109, 22, 52, 95, 201];

    #[test]
    fn a_message_is_sealed_as_others_seal_it() {
        let mut cipher = ChaChaPoly::default();
        cipher.set(&core::array::from_fn(|place| place as u8));
        let mut sealed = [0; 21];
        assert_eq!(cipher.encrypt(0x0102_0304_0506_0708, b"said", b"hello", &mut sealed), 21);
        assert_eq!(sealed, SEALED);
        let mut plain = [0; 5];
        assert_eq!(cipher.decrypt(0x0102_0304_0506_0708, b"said", &sealed, &mut plain), Ok(5));
        assert_eq!(&plain, b"hello");
    }

    #[test]
    fn what_was_touched_does_not_open() {
        let mut cipher = ChaChaPoly::default();
        cipher.set(&[7; KEY_LEN]);
        let (mut sealed, mut plain) = ([0; 32], [0; 16]);
        assert_eq!(cipher.encrypt(3, b"said", &[5; 16], &mut sealed), 32);
        assert!(cipher.decrypt(4, b"said", &sealed, &mut plain).is_err());
        assert!(cipher.decrypt(3, b"sad", &sealed, &mut plain).is_err());
        for place in 0..sealed.len() {
            sealed[place] ^= 1;
            assert!(cipher.decrypt(3, b"said", &sealed, &mut plain).is_err(), "{place}");
            sealed[place] ^= 1;
        }
        assert!(cipher.decrypt(3, b"said", &sealed[..15], &mut plain).is_err());
        assert_eq!(cipher.encrypt(3, b"said", &[5; 17], &mut sealed), 0, "no room for the tag");
    }
}
