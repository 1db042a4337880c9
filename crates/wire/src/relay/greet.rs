//! The greeting: a host that receives through a relay asks the relay for a token (the consent). The
//! host gives the consent to senders, who put it into each packet to the relay. The answer also
//! contains the host's address as the relay sees it.
//!
//! ```text
//! GREET    0x6a, nonce (8), grant id (4), zeros or a request about a location (`location.rs`), 56 bytes in all
//! GREETED  0x6c | v6, nonce (8), observed address (6 or 18), consent (10), cookie (8),
//!          relay's time in ms of Unix time (8)
//! ```
//!
//! | field | content |
//! |---|---|
//! | grant id | from the sender's relay word; a receiver learns it from the sender |
//! | cookie | proves that a sender receives at its address; only then can the receiver answer |
//!
//! Answers are shorter than greetings, so forged source addresses give no amplification.

use super::key::Consent;
use super::message::{
    FLAG_V6, MESSAGE_GREET, MESSAGE_GREETED, read_socket, socket_len, v6_bit, write_socket,
};
use crate::codec::{DecodeError, Reader, Writer};
use core::net::SocketAddr;

/// Bytes of a greeting.
pub const GREET_LEN: usize = 56;
/// Bytes of the longest answer (IPv6); shorter than the greeting.
pub const GREETED_MAX: usize = 1 + 8 + 18 + CONSENT_LEN + 8 + 8;
/// Bytes of a consent.
pub const CONSENT_LEN: usize = 10;
/// Seconds for which a relay makes a consent. Receivers greet again well before.
pub const CONSENT_LIFE: u64 = 24 * 3_600;

impl Consent {
    /// Reads [`CONSENT_LEN`] bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { expiry: reader.u16()?, tag: reader.u64()? })
    }

    /// Writes [`CONSENT_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u16(self.expiry);
        writer.u64(self.tag);
    }

    /// The bytes as written, for a frame to carry to the sender.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CONSENT_LEN] {
        let mut bytes = [0; CONSENT_LEN];
        self.write(&mut Writer::new(&mut bytes));
        bytes
    }

    /// Reads a consent from exactly the bytes that [`to_bytes`](Self::to_bytes) gives.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let consent = Self::read(&mut reader)?;
        if reader.is_empty() { Ok(consent) } else { Err(DecodeError::Range("consent length")) }
    }
}

/// A greeting: a host asks a relay for the relay's time, and for a token (the consent). Senders
/// need this token to reach the host through the relay. The greeting also opens a NAT in front of
/// the host for packets from the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greet {
    /// A random number for each greeting, which the answer repeats. So only a host that sees the
    /// greeting can answer.
    pub nonce: [u8; 8],
    /// The id of the grant for which the greeter consents.
    pub grant: u32,
}

impl Greet {
    /// Reads a greeting. One that is shorter than [`GREET_LEN`] is refused, so that no answer is
    /// larger.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MESSAGE_GREET => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        let greet = Self { nonce: reader.array()?, grant: reader.u32()? };
        if packet.len() < GREET_LEN { Err(DecodeError::Truncated) } else { Ok(greet) }
    }

    /// Writes [`GREET_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(MESSAGE_GREET);
        writer.bytes(&self.nonce);
        writer.u32(self.grant);
        writer.bytes(&[0; GREET_LEN - 13]);
    }
}

/// The answer to a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeted {
    /// The nonce of the greeting.
    pub nonce: [u8; 8],
    /// The greeter's address as the relay saw it, which senders must name as the destination.
    pub address: SocketAddr,
    /// The consent of that address for the grant of the greeting.
    pub consent: Consent,
    /// The cookie for [`Hop::set_cookie`](super::Hop::set_cookie), if this host also sends under
    /// the grant.
    pub cookie: u64,
    /// The relay's clock, in ms of Unix time.
    pub unix_millis: u64,
}

impl Greeted {
    /// Reads an answer.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let kind = reader.u8()?;
        if kind & !FLAG_V6 != MESSAGE_GREETED {
            return Err(DecodeError::UnknownType(kind));
        }
        Ok(Self {
            nonce: reader.array()?,
            address: read_socket(&mut reader, kind & FLAG_V6 != 0)?,
            consent: Consent::read(&mut reader)?,
            cookie: reader.u64()?,
            unix_millis: reader.u64()?,
        })
    }

    /// Writes at most [`GREETED_MAX`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(MESSAGE_GREETED | v6_bit(self.address));
        writer.bytes(&self.nonce);
        write_socket(writer, self.address);
        self.consent.write(writer);
        writer.u64(self.cookie);
        writer.u64(self.unix_millis);
    }

    /// The length of the encoded answer in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        GREETED_MAX - 18 + socket_len(&self.address)
    }

    /// False: no answer is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::{any_socket, bytes};
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn in_hex() {
        let greet = bytes(|w| Greet { nonce: *b"NONCE678", grant: 0x0102_0304 }.write(w));
        assert_eq!(greet, [b"\x6aNONCE678\x01\x02\x03\x04".as_slice(), &[0; 43]].concat());
        assert_eq!(greet.len(), GREET_LEN);
        let mut greeted = Greeted {
            nonce: *b"NONCE678",
            address: "192.0.2.7:4748".parse().unwrap(),
            consent: Consent { expiry: 0xeeff, tag: 0x0102_0304_0506_0708 },
            cookie: 0x0f0e_0d0c_0b0a_0908,
            unix_millis: 0x1122_3344_5566,
        };
        assert_eq!(
            bytes(|w| greeted.write(w)),
            [
                b"\x6cNONCE678\xc0\x00\x02\x07\x12\x8c\xee\xff\x01\x02\x03\x04\x05\x06\x07\x08".as_slice(),
                b"\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08\x00\x00\x11\x22\x33\x44\x55\x66"
            ]
            .concat()
        );
        greeted.address = "[2001:db8::1]:9".parse().unwrap();
        let written = bytes(|w| greeted.write(w));
        assert_eq!(written[..12], *b"\x6dNONCE678\x20\x01\x0d");
        assert_eq!(written.len(), GREETED_MAX);
        const { assert!(GREETED_MAX <= GREET_LEN) };
    }

    #[test]
    fn a_short_greeting_is_refused() {
        let greet = bytes(|w| Greet { nonce: [1; 8], grant: 1 }.write(w));
        assert_eq!(Greet::read(&greet[..GREET_LEN - 1]), Err(DecodeError::Truncated));
    }

    proptest! {
        #[test]
        fn round_trip(nonce: [u8; 8], grant: u32, address in any_socket(), expiry: u16, tag: u64, cookie: u64, unix_millis: u64) {
            let greet = Greet { nonce, grant };
            prop_assert_eq!(Greet::read(&bytes(|w| greet.write(w))), Ok(greet));
            let consent = Consent { expiry, tag };
            prop_assert_eq!(Consent::from_bytes(&consent.to_bytes()), Ok(consent));
            let greeted = Greeted { nonce, address, consent, cookie, unix_millis };
            let written = bytes(|w| greeted.write(w));
            prop_assert_eq!(written.len(), greeted.len());
            prop_assert_eq!(Greeted::read(&written), Ok(greeted));
        }

        #[test]
        fn garbage_never_panics(kind in 0x60u8..0x70, mut garbage in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Consent::from_bytes(&garbage);
            garbage.insert(0, kind);
            let _: (Result<_, _>, Result<_, _>) = (Greet::read(&garbage), Greeted::read(&garbage));
            let _: Vec<u8> = garbage;
        }
    }
}
