//! The identity of a host: a key pair on Curve25519 (RFC 7748). The secret half is never printed;
//! the public half has a text.

use crate::error::Error;
use crate::secret::Secret;
use byway_engine::handshake;
use byway_wire::checked_text::{self, TextError};
use std::fmt;
use std::str::FromStr;

/// The beginning of a public key as text.
const KEY_PREFIX: &str = "byway-key-";

/// A host's public key, by which peers know it. Its text is `byway-key-` and base32 with a
/// checksum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

/// Why a text is not a public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Something else entirely.
    #[error("this is not a byway key: one begins with byway-key- and is printed by `byway id`")]
    NotAKey,
    /// The checksum disagrees, or a character does not belong.
    #[error("this key was mistyped or cut short: copy it again from `byway id`")]
    Mistyped,
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&checked_text::encode(KEY_PREFIX, &self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        match checked_text::decode(KEY_PREFIX, text) {
            Ok(bytes) => bytes.try_into().map(Self).map_err(|_| KeyError::Mistyped),
            Err(TextError::Prefix | TextError::TooLong) => Err(KeyError::NotAKey),
            Err(TextError::Character { .. } | TextError::Checksum(_)) => Err(KeyError::Mistyped),
        }
    }
}

/// A host's key pair.
#[derive(Clone, Debug)]
pub struct Identity {
    secret: Secret<[u8; 32]>,
    public: PublicKey,
}

impl Identity {
    /// The pair of a secret key.
    #[must_use]
    pub fn new(secret: Secret<[u8; 32]>) -> Self {
        let public = PublicKey(handshake::Identity::from_secret(*secret.expose()).public().0);
        Self { secret, public }
    }

    /// A new pair, which nothing keeps.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self::new(Secret::new(byway_net::seed()?)))
    }

    /// The secret key, for the handshake.
    #[must_use]
    pub const fn secret(&self) -> &Secret<[u8; 32]> {
        &self.secret
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_keys_match_rfc_7748_section_6_1() {
        let alice = *b"\x77\x07\x6d\x0a\x73\x18\xa5\x7d\x3c\x16\xc1\x72\x51\xb2\x66\x45\xdf\x4c\x2f\x87\xeb\xc0\x99\x2a\xb1\x77\xfb\xa5\x1d\xb9\x2c\x2a";
        let public = *b"\x85\x20\xf0\x09\x89\x30\xa7\x54\x74\x8b\x7d\xdc\xb4\x3e\xf7\x5a\x0d\xbf\x3a\x0d\x26\x38\x1a\xf4\xeb\xa4\xa9\x8e\xaa\x9b\x4e\x6a";
        let identity = Identity::new(Secret::new(alice));
        assert_eq!(identity.public(), PublicKey(public));
        assert!(!format!("{identity:?}").contains("77076d"), "the secret half is not shown");
    }

    #[test]
    fn a_key_survives_its_text_and_bad_ones_are_named() {
        let key = PublicKey(*b"abcdefghijklmnopqrstuvwxyz012345");
        let text = key.to_string();
        assert_eq!(text, "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu");
        assert_eq!(text.parse(), Ok(key));
        assert_eq!(text[..40].parse::<PublicKey>(), Err(KeyError::Mistyped));
        assert_eq!(text.replacen("mfrg", "mfrh", 1).parse::<PublicKey>(), Err(KeyError::Mistyped));
        assert_eq!("ssh-ed25519 AAAA".parse::<PublicKey>(), Err(KeyError::NotAKey));
    }
}
