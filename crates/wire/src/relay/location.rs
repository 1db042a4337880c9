//! Locations: a relay remembers at which address it last heard a receiver, and tells senders. So a
//! ticket outlives the receiver's addresses.
//!
//! A greeting ([`super::Greet`]) has room for a request about a location:
//!
//! ```text
//! GREET     0x6a, nonce (8), grant (10), action (1), caveat (7, zeros: none), tag (16), sequence (4),
//!           zero (1), MAC (8)
//! LOCATION  0x6f, nonce (8), IP length (1: 4 or 16), IP, port (2), consent (10),
//!           relay's time in ms of Unix time (8), minutes since the receiver was heard (2), MAC (8)
//! ```
//!
//! | field | content |
//! |---|---|
//! | action | 0: only greets; 1: the relay is to remember this host's address; 2: asks for an address |
//! | tag | names the receiver, see [`ReceiverTag`] |
//! | sequence | the relay's time in Unix seconds: an older registration never replaces a newer one |
//! | MAC of GREET | under the word's key, over the [cookie](super::Greeted::cookie) of the host's address and all bytes before |
//! | MAC of LOCATION | under the word's key, over the nonce and all bytes before |
//!
//! The cookie ties a request to the address that it comes from: a copy from elsewhere is refused.
//! A relay answers a request that it refuses like a plain greeting, as one does that knows no
//! requests. The answer is never longer than the request.

use super::grant::{CAVEAT_LEN, Caveat, Grant};
use super::greet::{GREET_LEN, Greet};
use super::key::Consent;
use super::message::{MESSAGE_GREET, MESSAGE_LOCATION};
use super::secret::{MacKey, half};
use super::word::Word;
use crate::codec::{DecodeError, Reader, Writer};
use crate::frame::{read_address, write_address};
use core::fmt;
use core::net::SocketAddr;

/// Bytes of the longest answer with a location (IPv6); no longer than the greeting.
pub const LOCATION_MAX: usize = 1 + 8 + 1 + 16 + 2 + 10 + 8 + 2 + 8;

const MAC_AT: usize = GREET_LEN - 8;
/// The place of the action in a greeting: after type, nonce and grant.
const ACTION_AT: usize = 1 + 8 + 10;

/// The name of a receiver at one relay, for one grant. It follows from the secret in the receiver's
/// ticket. So only the receiver and the holders of its ticket know it, and two relays cannot tell
/// that they know the same receiver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReceiverTag([u8; 16]);

impl ReceiverTag {
    /// The first tag in the order of tags.
    pub const MIN: Self = Self([0; 16]);
    /// The last tag in the order of tags.
    pub const MAX: Self = Self([0xff; 16]);

    /// The tag of the receiver whose tickets contain `secret`, under the grant with the id `grant`.
    #[must_use]
    pub fn new(secret: &[u8; 16], grant: u32) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("byway relay v1 tag of a receiver");
        hasher.update(secret).update(&grant.to_be_bytes());
        Self(half(hasher.finalize().as_bytes()))
    }
}

impl fmt::Debug for ReceiverTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiverTag(redacted)")
    }
}

/// The action on a location that a host requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationAction {
    /// The relay is to remember the address that the greeting came from.
    Register = 1,
    /// The relay is to return the address that it remembers.
    LookUp = 2,
}

/// A request about a location, as a relay reads it. Its fields are not proved until
/// [`is_authentic`](Self::is_authentic) returns true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationRequest {
    /// The requested action.
    pub action: LocationAction,
    /// The grant of the relay word under which the host asks.
    pub grant: Grant,
    /// The caveat that narrows the grant. `None`: the grant is not narrowed.
    pub caveat: Option<Caveat>,
    /// The receiver.
    pub tag: ReceiverTag,
    /// The relay's time in Unix seconds, as far as the host knows it.
    pub sequence: u32,
    mac: u64,
}

impl LocationRequest {
    /// Reads the request in a greeting. `None`: the greeting has none.
    pub fn read(packet: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MESSAGE_GREET => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        reader.bytes(8)?;
        if packet.get(ACTION_AT).is_none_or(|action| *action == 0) {
            return Ok(None);
        }
        let grant = Grant::read(&mut reader)?;
        let action = match reader.u8()? {
            1 => LocationAction::Register,
            2 => LocationAction::LookUp,
            _ => return Err(DecodeError::Range("action")),
        };
        let caveat = reader.bytes(CAVEAT_LEN)?;
        let caveat = match caveat.iter().all(|byte| *byte == 0) {
            true => None,
            false => Some(Caveat::read(&mut Reader::new(caveat))?),
        };
        let (tag, sequence) = (ReceiverTag(reader.array()?), reader.u32()?);
        if reader.u8()? != 0 {
            return Err(DecodeError::Range("zero"));
        }
        Ok(Some(Self { action, grant, caveat, tag, sequence, mac: reader.u64()? }))
    }

    /// Whether a holder of the relay word with this key made the request in `packet`, at the
    /// address to which the relay gave `cookie`.
    #[must_use]
    pub fn is_authentic(&self, packet: &[u8], key: &MacKey, cookie: u64) -> bool {
        packet.get(..MAC_AT).is_some_and(|covered| key.mac(MESSAGE_GREET, cookie, covered) == self.mac)
    }
}

/// Makes requests about one receiver's location at one relay, and checks the answers.
#[derive(Clone, Debug)]
pub struct LocationKey {
    grant: Grant,
    caveat: Option<Caveat>,
    key: MacKey,
    tag: ReceiverTag,
}

impl LocationKey {
    /// Makes the key for the receiver whose tickets contain `secret`, at the relay of this relay
    /// word.
    #[must_use]
    pub fn new(word: &Word, secret: &[u8; 16]) -> Self {
        let (grant, caveat) = (*word.grant(), word.caveat().copied());
        Self { grant, caveat, key: word.mac_key(), tag: ReceiverTag::new(secret, grant.id) }
    }

    /// Writes a greeting of [`GREET_LEN`] bytes with a request. `cookie`: the one of this host's
    /// address. `sequence`: the relay's time in Unix seconds.
    pub fn write(
        &self,
        buffer: &mut [u8; GREET_LEN],
        nonce: [u8; 8],
        action: LocationAction,
        cookie: u64,
        sequence: u64,
    ) {
        let mut writer = Writer::new(buffer);
        Greet { nonce, grant: self.grant.id }.write(&mut writer);
        let mut writer = Writer::new(&mut buffer[9..]);
        self.grant.write(&mut writer);
        writer.u8(action as u8);
        match &self.caveat {
            Some(caveat) => caveat.write(&mut writer),
            None => writer.bytes(&[0; CAVEAT_LEN]),
        }
        writer.bytes(&self.tag.0);
        writer.u32(u32::try_from(sequence).unwrap_or(u32::MAX));
        let (covered, mac) = buffer.split_at_mut(MAC_AT);
        mac.copy_from_slice(&self.key.mac(MESSAGE_GREET, cookie, covered).to_be_bytes());
    }

    /// Reads the relay's answer, and checks that it was made with the relay word's key.
    pub fn read(&self, packet: &[u8]) -> Result<Location, DecodeError> {
        let location = Location::read(packet)?;
        let (covered, mac) = packet.split_last_chunk::<8>().ok_or(DecodeError::Truncated)?;
        if location.mac_with(&self.key, covered).to_be_bytes() == *mac {
            Ok(location)
        } else {
            Err(DecodeError::Range("MAC"))
        }
    }

    /// Returns the key of the relay word.
    #[must_use]
    pub const fn mac_key(&self) -> &MacKey {
        &self.key
    }
}

/// The location of a receiver: the relay's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The nonce of the greeting.
    pub nonce: [u8; 8],
    /// The receiver's address as the relay sees it.
    pub address: SocketAddr,
    /// The consent of that address, for the grant of the request.
    pub consent: Consent,
    /// The relay's clock, in ms of Unix time.
    pub unix_millis: u64,
    /// Minutes since the relay heard the receiver.
    pub age_minutes: u16,
}

impl Location {
    /// Reads an answer without authenticating it.
    fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MESSAGE_LOCATION => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        let location = Self {
            nonce: reader.array()?,
            address: read_address(&mut reader)?,
            consent: Consent::read(&mut reader)?,
            unix_millis: reader.u64()?,
            age_minutes: reader.u16()?,
        };
        reader.u64()?;
        if reader.is_empty() { Ok(location) } else { Err(DecodeError::Range("length")) }
    }

    /// Whether a packet answers the greeting with this nonce.
    #[must_use]
    pub fn answers(packet: &[u8], nonce: [u8; 8]) -> bool {
        packet.first() == Some(&MESSAGE_LOCATION) && packet.get(1..9) == Some(&nonce)
    }

    /// Writes at most [`LOCATION_MAX`] bytes, with the MAC of the relay word's key. Returns the
    /// number of bytes.
    pub fn write(&self, buffer: &mut [u8; LOCATION_MAX], key: &MacKey) -> usize {
        let mut writer = Writer::new(buffer);
        writer.u8(MESSAGE_LOCATION);
        writer.bytes(&self.nonce);
        write_address(&mut writer, self.address);
        self.consent.write(&mut writer);
        writer.u64(self.unix_millis);
        writer.u16(self.age_minutes);
        let mac = self.mac_with(key, writer.written());
        writer.u64(mac);
        writer.len()
    }

    fn mac_with(&self, key: &MacKey, covered: &[u8]) -> u64 {
        key.mac(MESSAGE_LOCATION, u64::from_be_bytes(self.nonce), covered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::grant::tests::{any_caveat, any_grant};
    use super::super::message::tests::any_socket;
    use super::super::secret::GrantSecret;
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn word(grant: Grant) -> Word {
        Word::new(vec!["192.0.2.1:4748".parse().unwrap()], grant, GrantSecret::new([3; 16])).unwrap()
    }

    fn written(key: &LocationKey, action: LocationAction, cookie: u64) -> [u8; GREET_LEN] {
        let mut packet = [0xaa; GREET_LEN];
        key.write(&mut packet, *b"NONCE678", action, cookie, 0x6b49_d200);
        packet
    }

    #[test]
    fn in_hex() {
        let grant = Grant::read(&mut Reader::new(b"\x01\x02\x03\x04\x05\x06\x07\x80\x90\x07")).unwrap();
        let key = LocationKey::new(&word(grant), b"0123456789abcdef");
        let packet = written(&key, LocationAction::LookUp, 0x0102_0304_0506_0708);
        let head = b"\x6aNONCE678\x01\x02\x03\x04\x05\x06\x07\x80\x90\x07\x02\x00\x00\x00\x00\x00\x00\x00";
        assert_eq!(packet[..27], *head);
        assert_eq!(packet[43..48], *b"\x6b\x49\xd2\x00\x00");
        assert_eq!(Greet::read(&packet), Ok(Greet { nonce: *b"NONCE678", grant: 0x0102_0304 }));
        let location = Location {
            nonce: *b"NONCE678",
            address: "192.0.2.7:4748".parse().unwrap(),
            consent: Consent { expiry: 0xeeff, tag: 0x0102_0304_0506_0708 },
            unix_millis: 0x1122_3344_5566,
            age_minutes: 3,
        };
        let mut packet = [0; LOCATION_MAX];
        let length = location.write(&mut packet, key.mac_key());
        let expected = [
            b"\x6fNONCE678\x04\xc0\x00\x02\x07\x12\x8c\xee\xff\x01\x02\x03\x04\x05\x06\x07\x08".as_slice(),
            b"\x00\x00\x11\x22\x33\x44\x55\x66\x00\x03",
        ]
        .concat();
        assert_eq!(packet[..length - 8], expected);
        assert_eq!(key.read(&packet[..length]), Ok(location));
        const { assert!(LOCATION_MAX <= GREET_LEN) };
    }

    #[test]
    fn a_tag_tells_neither_its_secret_nor_that_two_grants_are_of_one_receiver() {
        let tag = |secret: u8, grant| ReceiverTag::new(&[secret; 16], grant);
        assert_eq!(tag(1, 1), tag(1, 1));
        assert_ne!(tag(1, 1), tag(1, 2));
        assert_ne!(tag(1, 1), tag(2, 1));
        assert_eq!(alloc::format!("{:?}", tag(1, 1)), "ReceiverTag(redacted)");
    }

    proptest! {
        #[test]
        fn requests_round_trip_and_are_of_one_word_and_one_cookie(grant in any_grant(), caveat in prop::option::of(any_caveat()), secret: [u8; 16], cookie: u64, bit in 0usize..GREET_LEN * 8) {
            let mut key = LocationKey::new(&word(grant), &secret);
            key.caveat = caveat;
            for action in [LocationAction::Register, LocationAction::LookUp] {
                let mut packet = written(&key, action, cookie);
                let request = LocationRequest::read(&packet).unwrap().unwrap();
                prop_assert_eq!((request.action, request.grant, request.caveat), (action, grant, caveat));
                prop_assert_eq!((request.tag, request.sequence), (key.tag, 0x6b49_d200));
                prop_assert!(request.is_authentic(&packet, &key.key, cookie));
                prop_assert!(!request.is_authentic(&packet, &key.key, cookie ^ 1));
                prop_assert!(!request.is_authentic(&packet, &GrantSecret::new([4; 16]).mac_key(), cookie));
                packet[bit / 8] ^= 1 << (bit % 8);
                let forged = LocationRequest::read(&packet);
                prop_assert!(!forged.is_ok_and(|it| it.is_some_and(|it| it.is_authentic(&packet, &key.key, cookie))));
            }
        }

        #[test]
        fn locations_round_trip_and_are_of_one_word(nonce: [u8; 8], address in any_socket(), expiry: u16, tag: u64, unix_millis: u64, age_minutes: u16, bit: prop::sample::Index) {
            let key = LocationKey::new(&word(Grant::read(&mut Reader::new(&[1; 10])).unwrap()), &[5; 16]);
            let location = Location { nonce, address, consent: Consent { expiry, tag }, unix_millis, age_minutes };
            let mut packet = [0; LOCATION_MAX];
            let length = location.write(&mut packet, key.mac_key());
            let packet = &mut packet[..length];
            prop_assert!(Location::answers(packet, nonce));
            prop_assert_eq!(key.read(packet), Ok(location));
            let bit = bit.index(length * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(key.read(packet).is_err());
        }

        #[test]
        fn garbage_never_panics(kind in 0x60u8..0x70, mut garbage in prop::collection::vec(any::<u8>(), 0..100)) {
            garbage.insert(0, kind);
            let key = LocationKey::new(&word(Grant::read(&mut Reader::new(&[1; 10])).unwrap()), &[5; 16]);
            let _ = (LocationRequest::read(&garbage), key.read(&garbage));
            let _: Vec<u8> = garbage;
        }
    }
}
