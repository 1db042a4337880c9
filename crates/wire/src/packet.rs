//! The packet: a header in clear text, then encrypted bytes.
//!
//! ```text
//! data packet (all in network byte order)
//!   0       1                 9            13           17                        n-16      n
//!   +-------+-----------------+------------+------------+-------------------------+----------+
//!   | 0100  | connection id   | packet     | stamp      | frames                  | AEAD tag |
//!   | 00 ee | (8)             | number (4) | µs (4)     |                         | (16)     |
//!   +-------+-----------------+------------+------------+-------------------------+----------+
//!   '---------- header, authenticated -----'------------- sealed ------------------'
//! ```
//!
//! | field | content |
//! |---|---|
//! | `ee` | number of the connection's current key (key epoch), modulo 4 |
//! | packet number | low 32 bits; the receiver restores the rest (RFC 9000 appendix A.3) |
//! | stamp | time on the sender's clock, in µs modulo 2^32 (71 minutes) |
//!
//! Handshake packets (first byte `0101 00tt`) carry Noise messages: see [`Handshake`].

use crate::codec::{DecodeError, Reader, Writer};
use crate::id::ConnectionId;

/// Version of everything on the wire in this module. Peers of different versions do not talk.
pub const WIRE_VERSION: u8 = 1;
/// Bytes of the header of a data packet.
pub const HEADER_LEN: usize = 13;
/// Bytes of the sender's stamp, the first of the sealed bytes.
pub const STAMP_LEN: usize = 4;
/// Bytes of the AEAD tag.
pub const TAG_LEN: usize = 16;
/// Bytes of a data packet in addition to its frames.
pub const PACKET_OVERHEAD_LEN: usize = HEADER_LEN + STAMP_LEN + TAG_LEN;
/// Datagrams up to this size (UDP payload) pass everywhere that byway supports: RFC 9000 section
/// 14.
pub const BASE_DATAGRAM: usize = 1200;
/// The largest datagram that byway sends (UDP payload over loopback and jumbo frames).
pub const MAX_DATAGRAM: usize = 9000;

const PACKET_DATA: u8 = 0x40;
const PACKET_HELLO: u8 = 0x50;
const PACKET_RETRY: u8 = 0x51;
const PACKET_REPLY: u8 = 0x52;
const PACKET_REFUSE: u8 = 0x53;

/// The header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The receiver's name for the path.
    pub connection: ConnectionId,
    /// The low bits of the packet number.
    pub number: u32,
    /// The number of the key epoch, modulo 4.
    pub epoch: u8,
}

impl Header {
    /// Reads a header; the sealed bytes follow at [`HEADER_LEN`].
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let first = reader.u8()?;
        if first & 0xfc != PACKET_DATA {
            return Err(DecodeError::UnknownType(first));
        }
        let header =
            Self { connection: ConnectionId(reader.array()?), number: reader.u32()?, epoch: first & 0x03 };
        if reader.remaining() < STAMP_LEN + TAG_LEN { Err(DecodeError::Truncated) } else { Ok(header) }
    }

    /// Writes the header.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(PACKET_DATA | (self.epoch & 0x03));
        writer.bytes(&self.connection.0);
        writer.u32(self.number);
    }
}

/// Restores a packet number from its low 32 bits. The result is the number closest to `expected`,
/// which is the next number that the receiver expects (RFC 9000 appendix A.3).
#[must_use]
pub const fn restore_number(expected: u64, low: u32) -> u64 {
    const NUMBER_WINDOW: u64 = 1 << 32;
    const HALF_WINDOW: u64 = NUMBER_WINDOW / 2;
    let candidate = (expected & !(NUMBER_WINDOW - 1)) | low as u64;
    if candidate + HALF_WINDOW <= expected && candidate <= u64::MAX - NUMBER_WINDOW {
        candidate + NUMBER_WINDOW
    } else if candidate > expected + HALF_WINDOW && candidate >= NUMBER_WINDOW {
        candidate - NUMBER_WINDOW
    } else {
        candidate
    }
}

/// A handshake packet, before any key is agreed.
///
/// ```text
///   HELLO  0x50, version (1), reply id (8), cookie length (1), cookie, length (2), Noise message 1, zeros to 1200
///   RETRY  0x51, version (1), reply id (8), cookie length (1), cookie
///   REPLY  0x52, version (1), reply id (8), Noise message 2
///   REFUSE 0x53, version (1), reply id (8), reason (1)
/// ```
///
/// Answers repeat the unpredictable reply id, so only a host that saw the HELLO can answer. HELLO
/// is padded, so no answer is larger: a forged source address gives no amplification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake<'a> {
    /// The first message of the initiator.
    Hello {
        /// The connection id that the initiator chose for this attempt.
        reply: ConnectionId,
        /// The cookie from a RETRY. Empty: there was no RETRY.
        cookie: &'a [u8],
        /// Noise message 1.
        noise: &'a [u8],
    },
    /// The responder is busy: show that you receive at your address.
    Retry {
        /// The connection id that the HELLO named for answers.
        reply: ConnectionId,
        /// To be sent back in the next HELLO.
        cookie: &'a [u8],
    },
    /// The responder's answer to a HELLO.
    Reply {
        /// The connection id that the HELLO named for answers.
        reply: ConnectionId,
        /// Noise message 2.
        noise: &'a [u8],
    },
    /// The responder will not talk. Not authenticated: a hint for people, never an end to the
    /// attempt by itself.
    Refuse {
        /// The connection id that the HELLO named for answers.
        reply: ConnectionId,
        /// Why the HELLO is refused.
        reason: RefuseReason,
    },
}

/// Why a responder will not talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// The protocol has another version.
    Version,
    /// The HELLO was encrypted for another receiver's key.
    WrongKey,
    /// The receiver has the largest permitted number of connections.
    Full,
}

impl<'a> Handshake<'a> {
    /// Whether this first byte belongs to a handshake packet.
    #[must_use]
    pub const fn is(first: u8) -> bool {
        first & 0xfc == PACKET_HELLO
    }

    /// Reads a handshake packet. A HELLO of another version is `Range("version")`, so that it can
    /// be refused.
    pub fn read(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let kind = reader.u8()?;
        if !Self::is(kind) {
            return Err(DecodeError::UnknownType(kind));
        }
        if reader.u8()? != WIRE_VERSION {
            return Err(DecodeError::Range("version"));
        }
        let reply = ConnectionId(reader.array()?);
        match kind {
            PACKET_HELLO => {
                let cookie = read_cookie(&mut reader)?;
                let length = usize::from(reader.u16()?);
                Ok(Self::Hello { reply, cookie, noise: reader.bytes(length)? })
            }
            PACKET_RETRY => Ok(Self::Retry { reply, cookie: read_cookie(&mut reader)? }),
            PACKET_REPLY => Ok(Self::Reply { reply, noise: reader.take_rest() }),
            _ => Ok(Self::Refuse { reply, reason: RefuseReason::from_byte(reader.u8()?)? }),
        }
    }

    /// Writes the packet; a HELLO is padded to [`BASE_DATAGRAM`].
    pub fn write(&self, writer: &mut Writer<'_>) {
        let (kind, reply) = match self {
            Self::Hello { reply, .. } => (PACKET_HELLO, reply),
            Self::Retry { reply, .. } => (PACKET_RETRY, reply),
            Self::Reply { reply, .. } => (PACKET_REPLY, reply),
            Self::Refuse { reply, .. } => (PACKET_REFUSE, reply),
        };
        writer.u8(kind);
        writer.u8(WIRE_VERSION);
        writer.bytes(&reply.0);
        match self {
            Self::Hello { cookie, noise, .. } => {
                writer.u8(cookie.len().min(255) as u8);
                writer.bytes(cookie);
                writer.u16(noise.len().min(0xffff) as u16);
                writer.bytes(noise);
                let padding = BASE_DATAGRAM.saturating_sub(writer.len());
                if let Some(room) = writer.claim(padding) {
                    room.fill(0);
                }
            }
            Self::Retry { cookie, .. } => {
                writer.u8(cookie.len().min(255) as u8);
                writer.bytes(cookie);
            }
            Self::Reply { noise, .. } => writer.bytes(noise),
            Self::Refuse { reason, .. } => writer.u8(reason.to_byte()),
        }
    }

    /// The reply id of a HELLO of any version, so that another version can be refused politely.
    #[must_use]
    pub fn hello_reply_id(packet: &[u8]) -> Option<ConnectionId> {
        let mut reader = Reader::new(packet);
        if reader.u8().ok()? != PACKET_HELLO {
            return None;
        }
        reader.u8().ok()?;
        Some(ConnectionId(reader.array().ok()?))
    }
}

fn read_cookie<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = usize::from(reader.u8()?);
    reader.bytes(length)
}

impl RefuseReason {
    const fn to_byte(self) -> u8 {
        match self {
            Self::Version => 1,
            Self::WrongKey => 2,
            Self::Full => 3,
        }
    }

    const fn from_byte(byte: u8) -> Result<Self, DecodeError> {
        match byte {
            1 => Ok(Self::Version),
            2 => Ok(Self::WrongKey),
            3 => Ok(Self::Full),
            _ => Err(DecodeError::Range("refuse reason")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut buffer = vec![0xaa; 2000];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        assert!(!writer.overflowed());
        writer.written().to_vec()
    }

    #[test]
    fn header_in_hex() {
        let header = Header {
            connection: ConnectionId(*b"\x01\x02\x03\x04\x05\x06\x07\x08"),
            number: 0xdead_beef,
            epoch: 2,
        };
        let mut packet = bytes(|w| header.write(w));
        assert_eq!(packet, b"\x42\x01\x02\x03\x04\x05\x06\x07\x08\xde\xad\xbe\xef");
        assert_eq!(packet.len(), HEADER_LEN);
        assert_eq!(Header::read(&packet), Err(DecodeError::Truncated));
        packet.extend([0; STAMP_LEN + TAG_LEN]);
        assert_eq!(Header::read(&packet), Ok(header));
    }

    #[test]
    fn handshakes_in_hex() {
        let reply = ConnectionId(*b"\x11\x12\x13\x14\x15\x16\x17\x18");
        let id = b"\x11\x12\x13\x14\x15\x16\x17\x18";
        let hello =
            bytes(|w| Handshake::Hello { reply, cookie: b"\xc0\xc1", noise: b"\xe0\xe1\xe2" }.write(w));
        assert_eq!(hello.len(), BASE_DATAGRAM);
        let expected = [b"\x50\x01".as_slice(), id, b"\x02\xc0\xc1\x00\x03\xe0\xe1\xe2\x00\x00"].concat();
        assert!(hello.starts_with(&expected));
        let retry = bytes(|w| Handshake::Retry { reply, cookie: b"\xc0" }.write(w));
        assert_eq!(retry, [b"\x51\x01".as_slice(), id, b"\x01\xc0"].concat());
        let answer = bytes(|w| Handshake::Reply { reply, noise: b"\xe5" }.write(w));
        assert_eq!(answer, [b"\x52\x01".as_slice(), id, b"\xe5"].concat());
        let refuse = bytes(|w| Handshake::Refuse { reply, reason: RefuseReason::WrongKey }.write(w));
        assert_eq!(refuse, [b"\x53\x01".as_slice(), id, b"\x02"].concat());
    }

    #[test]
    fn packet_numbers_are_restored_around_the_wrap() {
        assert_eq!(restore_number(0, 0), 0);
        assert_eq!(restore_number(5, 3), 3);
        assert_eq!(restore_number(0xffff_fffe, 1), 0x1_0000_0001);
        assert_eq!(restore_number(0x1_0000_0002, 0xffff_fff0), 0xffff_fff0);
        assert_eq!(restore_number(0x3_8000_0010, 7), 0x4_0000_0007);
    }

    proptest! {
        #[test]
        fn numbers_near_the_expected_one_survive(expected in 0u64..(1 << 50), delta in -1_000_000i64..1_000_000) {
            let number = expected.saturating_add_signed(delta);
            prop_assert_eq!(restore_number(expected, number as u32), number);
        }

        #[test]
        fn handshake_round_trip(reply: [u8; 8], cookie in prop::collection::vec(any::<u8>(), 0..64),
                                noise in prop::collection::vec(any::<u8>(), 0..1000), kind in 0..4) {
            let reply = ConnectionId(reply);
            let packet = match kind {
                0 => Handshake::Hello { reply, cookie: &cookie, noise: &noise },
                1 => Handshake::Retry { reply, cookie: &cookie },
                2 => Handshake::Reply { reply, noise: &noise },
                _ => Handshake::Refuse { reply, reason: RefuseReason::Full },
            };
            let written = bytes(|w| packet.write(w));
            prop_assert_eq!(Handshake::read(&written), Ok(packet));
        }

        #[test]
        fn garbage_never_panics(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::read(&garbage);
            let _ = Handshake::read(&garbage);
        }
    }
}
