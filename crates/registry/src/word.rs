//! Registry words: secret texts that contain a registry's addresses, its key, and the permission to
//! enrol a relay or to ask for relays.
//!
//! ```text
//! byway-registry-   format 1 (1), kind (1), key (32), number (4), secret (16), count (1) × address
//! ```
//!
//! The text ends with a checksum over prefix and content ([`byway_wire::checked_text`]).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use byway_engine::handshake::PublicKey;
use byway_wire::checked_text::{self, TextError};
use byway_wire::frame::{read_address, write_address};
use byway_wire::secret::Secret;
use byway_wire::{DecodeError, Reader, Writer};
use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use thiserror::Error;
use zeroize::Zeroize as _;

/// The beginning of every registry word's text.
pub const WORD_PREFIX: &str = "byway-registry-";
/// The most addresses of a registry word.
pub const MAX_ADDRESSES: usize = 4;

const FORMAT_VERSION: u8 = 1;
const MAX_LEN: usize = 1 + 1 + 32 + 4 + 16 + 1 + MAX_ADDRESSES * 19;

/// The permission of a registry word: to enrol relays, or to ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordKind {
    /// The registry word lets a relay enrol.
    Join,
    /// The registry word lets a sender ask for relays.
    Use,
}

impl WordKind {
    /// Returns the kind's number in registry words and stores.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Join => 1,
            Self::Use => 2,
        }
    }

    /// The kind with this number. `None`: no kind has it.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Join),
            2 => Some(Self::Use),
            _ => None,
        }
    }
}

/// The part of a registry word in a request. It proves to the registry that the asker holds the
/// word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WordProof {
    /// The number of the registry word.
    pub number: u32,
    /// The secret that only holders of the registry word and the registry know.
    pub secret: Secret<[u8; 16]>,
}

impl WordProof {
    /// Reads 20 bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { number: reader.u32()?, secret: Secret::new(reader.array()?) })
    }

    /// Writes 20 bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.number);
        writer.bytes(self.secret.expose());
    }
}

/// A registry word: a registry's addresses and key, and a permission.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryWord {
    /// The permission of the registry word.
    pub kind: WordKind,
    /// The public key of the registry.
    pub key: PublicKey,
    /// The number and secret by which the registry recognises the registry word.
    pub proof: WordProof,
    /// The registry's addresses: one to four.
    pub addresses: Vec<SocketAddr>,
}

/// Why something is not a registry word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegistryWordError {
    /// The text does not begin with [`WORD_PREFIX`].
    #[error("a registry word begins with \"byway-registry-\"")]
    Prefix,
    /// A character that no registry word contains.
    #[error("this registry word was mistyped: character {at} is {found:?}, which no word contains")]
    Character {
        /// The character that was found.
        found: char,
        /// The address's place in the registry word, counted from 1.
        at: usize,
    },
    /// The checksum is wrong.
    #[error("the registry word was not copied whole: its checksum does not fit")]
    Checksum,
    /// Made by another version of byway.
    #[error("the registry word has format {0}, this program reads format 1")]
    Format(u8),
    /// The checksum is right but the bytes are none of ours.
    #[error("the registry word cannot be read: it {0}")]
    Malformed(#[from] DecodeError),
    /// There is no address, there are too many, or one cannot be listened on.
    #[error("a registry word names one to four addresses, each with an IP and a port")]
    Addresses,
}

impl RegistryWord {
    /// Reads a registry word from exactly these bytes.
    ///
    /// # Errors
    /// See [`RegistryWordError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RegistryWordError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            FORMAT_VERSION => {}
            other => return Err(RegistryWordError::Format(other)),
        }
        let kind = WordKind::of(reader.u8()?).ok_or(DecodeError::Range("kind"))?;
        let key = PublicKey(reader.array()?);
        let proof = WordProof::read(&mut reader)?;
        let count = usize::from(reader.u8()?);
        if !(1..=MAX_ADDRESSES).contains(&count) {
            return Err(RegistryWordError::Addresses);
        }
        let addresses = (0..count).map(|_| read_address(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        if !reader.is_empty() {
            return Err(DecodeError::Range("length").into());
        }
        if addresses.iter().any(|address| address.port() == 0 || address.ip().is_unspecified()) {
            return Err(RegistryWordError::Addresses);
        }
        Ok(Self { kind, key, proof, addresses })
    }

    /// Returns the bytes of the registry word, secret included. Addresses beyond [`MAX_ADDRESSES`]
    /// are left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MAX_LEN];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(FORMAT_VERSION);
        writer.u8(self.kind.number());
        writer.bytes(&self.key.0);
        self.proof.write(&mut writer);
        let addresses = self.addresses.iter().take(MAX_ADDRESSES);
        writer.u8(addresses.len() as u8);
        addresses.for_each(|address| write_address(&mut writer, *address));
        let length = writer.len();
        bytes.truncate(length);
        bytes
    }

    /// Returns the text of the registry word, **secret included**: to be printed only for its
    /// holder.
    #[must_use]
    pub fn reveal(&self) -> String {
        let mut bytes = self.to_bytes();
        let text = checked_text::encode(WORD_PREFIX, &bytes);
        bytes.zeroize();
        text
    }
}

impl FromStr for RegistryWord {
    type Err = RegistryWordError;

    fn from_str(text: &str) -> Result<Self, RegistryWordError> {
        let mut bytes = checked_text::decode(WORD_PREFIX, text).map_err(|error| match error {
            TextError::Prefix => RegistryWordError::Prefix,
            TextError::Character { found, at } => RegistryWordError::Character { found, at },
            TextError::TooLong => RegistryWordError::Checksum,
            TextError::Checksum(mut bytes) => {
                bytes.zeroize();
                RegistryWordError::Checksum
            }
        })?;
        let word = Self::from_bytes(&bytes);
        bytes.zeroize();
        word
    }
}

impl fmt::Debug for RegistryWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryWord")
            .field("kind", &self.kind)
            .field("number", &self.proof.number)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    fn word() -> RegistryWord {
        RegistryWord {
            kind: WordKind::Use,
            key: PublicKey([7; 32]),
            proof: WordProof { number: 5, secret: Secret::new(*b"0123456789abcdef") },
            addresses: vec!["192.0.2.1:4750".parse().unwrap(), "[2001:db8::1]:4750".parse().unwrap()],
        }
    }

    #[test]
    fn frozen_bytes_and_text() {
        let bytes = word().to_bytes();
        let expected = [
            b"\x01\x02".as_slice(),
            &[7; 32],
            b"\x00\x00\x00\x050123456789abcdef\x02\x04\xc0\x00\x02\x01\x12\x8e",
            b"\x10\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x12\x8e",
        ]
        .concat();
        assert_eq!(bytes, expected);
        let text = word().reveal();
        assert!(text.starts_with("byway-registry-ae"), "{text}");
        assert_eq!(text.to_uppercase().parse(), Ok(word()));
        assert!(!format!("{:?}", word()).contains("48, 49"));
    }

    #[test]
    fn each_slip_has_its_own_error() {
        assert_eq!("byway-relay-aa".parse::<RegistryWord>(), Err(RegistryWordError::Prefix));
        assert_eq!("byway-registry-aaaa".parse::<RegistryWord>(), Err(RegistryWordError::Checksum));
        let mut later = word().to_bytes();
        later[0] = 9;
        assert_eq!(RegistryWord::from_bytes(&later), Err(RegistryWordError::Format(9)));
        for addresses in [vec![], vec!["192.0.2.1:0".parse().unwrap()]] {
            let bytes = RegistryWord { addresses, ..word() }.to_bytes();
            assert_eq!(RegistryWord::from_bytes(&bytes), Err(RegistryWordError::Addresses));
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..160), text in "\\PC{0,80}") {
            let _ = RegistryWord::from_bytes(&bytes);
            let _ = format!("{WORD_PREFIX}{text}").parse::<RegistryWord>();
        }
    }
}
