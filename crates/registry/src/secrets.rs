//! The keys that a registry derives from its one secret. Registry words are permissions to enrol
//! relays or to ask for relays. A client's draw is the random order in which the registry lists
//! relays for this client.
//!
//! ```text
//! registry secret (32) ──KDF("word")──PRF(number)──────────────> secret of a word (16)
//!                      ├─KDF("beat")──PRF(relay number)────────> key of a relay's heartbeats (16)
//!                      ├─KDF("draw")──PRF(word, slot, hour)────> order of a client's draw (8)
//!                      └─KDF("noise")──────────────────────────> the registry's key pair
//! ```
//!
//! KDF and PRF are BLAKE3. Registries that share a store derive the same keys.

use byway_engine::handshake::Identity;
use byway_wire::secret::Secret;
use core::fmt;
use zeroize::Zeroize as _;

/// The keys that a registry derives from its secret.
#[derive(Clone)]
pub struct Secrets {
    word: [u8; 32],
    beat: [u8; 32],
    draw: [u8; 32],
    noise: [u8; 32],
}

impl Secrets {
    /// Derives all from 32 bytes of entropy.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self {
            word: blake3::derive_key("byway registry v1 words", secret),
            beat: blake3::derive_key("byway registry v1 heartbeats", secret),
            draw: blake3::derive_key("byway registry v1 draws", secret),
            noise: blake3::derive_key("byway registry v1 key pair", secret),
        }
    }

    /// The registry's key pair.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity::from_secret(self.noise)
    }

    /// Returns the secret of the registry word `number`.
    #[must_use]
    pub fn word(&self, number: u32) -> Secret<[u8; 16]> {
        Secret::new(half(&self.word, &number.to_be_bytes()))
    }

    /// The key of the heartbeats of the relay `number`.
    #[must_use]
    pub fn beat(&self, number: u32) -> [u8; 16] {
        half(&self.beat, &number.to_be_bytes())
    }

    /// Returns the seed of a client's draw in an hour. The hosts with a registry word are spread
    /// over the `slot`s.
    #[must_use]
    pub fn draw(&self, word: u32, slot: u8, hour: u64) -> u64 {
        let mut message = [0; 13];
        message[..4].copy_from_slice(&word.to_be_bytes());
        message[4] = slot;
        message[5..].copy_from_slice(&hour.to_be_bytes());
        let [a, b, c, d, e, f, g, h, ..] = half(&self.draw, &message);
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(redacted)")
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        for key in [&mut self.word, &mut self.beat, &mut self.draw, &mut self.noise] {
            key.zeroize();
        }
    }
}

fn half(key: &[u8; 32], message: &[u8]) -> [u8; 16] {
    let hash = blake3::keyed_hash(key, message);
    let mut half = [0; 16];
    half.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_has_its_own() {
        let secrets = Secrets::new(&[1; 32]);
        assert_eq!(secrets.word(1), Secrets::new(&[1; 32]).word(1));
        assert_ne!(secrets.word(1), secrets.word(2));
        assert_ne!(*secrets.word(1).expose(), secrets.beat(1));
        assert_ne!(secrets.draw(1, 0, 5), secrets.draw(1, 0, 6));
        assert_ne!(secrets.draw(1, 0, 5), secrets.draw(1, 1, 5));
    }
}
