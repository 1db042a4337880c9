//! The headers of packets that a relay delivers (DELIVERED), and of the receiver's answers: to the
//! relay (RETURN), and from the relay to the sender (BACK).
//!
//! ```text
//! DELIVERED  0x64 | v6, header length (1), sender's address as observed (6 or 18), return tag (15), zeros, inner packet
//! RETURN     0x66 | v6, sender's address (6 or 18), return tag (15), inner packet
//! BACK       0x68 | v6, header length (1), receiver's address as observed (6 or 18), zeros, inner packet
//! return tag grant id (4), branch (1), expiry (2), MAC (8)
//! ```
//!
//! DELIVERED and BACK are not authenticated. Authenticate the inner packet before using the header.

use super::envelope::ENVELOPE_V4;
use super::key::ReturnTag;
use super::message::{
    FLAG_V6, MESSAGE_BACK, MESSAGE_DELIVERED, MESSAGE_RETURN, canonical, read_socket, v6_bit, write_socket,
};
use crate::codec::{DecodeError, Reader, Writer};
use core::net::SocketAddr;

/// Bytes before the inner packet of a RETURN to an IPv4 sender.
pub const RETURN_V4: usize = 1 + 6 + TAG_LEN;
/// Bytes before the inner packet of a RETURN to an IPv6 sender.
pub const RETURN_V6: usize = 1 + 18 + TAG_LEN;
/// Bytes of the longest header of a RETURN.
pub const RETURN_MAX: usize = RETURN_V6;

const TAG_LEN: usize = 15;
const DELIVERED_MAX: usize = 2 + 18 + TAG_LEN;
const BACK_MAX: usize = 2 + 18;

// A relay pads the new header to the replaced header's length, because GSO and path MTU probes need
// unchanged packet sizes.
const _: () = assert!(DELIVERED_MAX <= ENVELOPE_V4 && BACK_MAX <= RETURN_V4);

impl ReturnTag {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { grant: reader.u32()?, branch: reader.u8()?, expiry: reader.u16()?, tag: reader.u64()? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.grant);
        writer.u8(self.branch);
        writer.u16(self.expiry);
        writer.u64(self.tag);
    }
}

/// The header of a packet that came through a relay from a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The sender's address as the relay saw it.
    pub from: SocketAddr,
    /// The tag that permits the receiver's answers to the sender.
    pub tag: ReturnTag,
    /// The place of the inner packet.
    pub inner: usize,
}

impl Delivered {
    /// Reads the header of a packet. One without an inner packet is refused.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let (v6, inner) = read_start(&mut reader, MESSAGE_DELIVERED, packet.len())?;
        let (from, tag) = (read_socket(&mut reader, v6)?, ReturnTag::read(&mut reader)?);
        if packet.len() - reader.remaining() > inner {
            return Err(DecodeError::Range("header length"));
        }
        Ok(Self { from, tag, inner })
    }

    /// Writes this header over the sender's envelope, which is all of `packet` before the offset
    /// `self.inner`. Returns false if `self.inner` is smaller than the header, larger than
    /// `packet`, or above 255 (stored in one byte). After false, `packet` is unusable.
    #[must_use]
    pub fn write(&self, packet: &mut [u8]) -> bool {
        write_start(packet, MESSAGE_DELIVERED, self.inner, self.from, |writer| self.tag.write(writer))
    }
}

/// A request of a receiver to a relay to carry a packet back, as the relay reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// The sender's address, from [`Delivered`].
    pub to: SocketAddr,
    /// The return tag for the sender's address.
    pub tag: ReturnTag,
    /// The place of the inner packet.
    pub inner: usize,
}

impl Return {
    /// Reads the header of a packet. One without an inner packet is refused.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let kind = reader.u8()?;
        if kind & !FLAG_V6 != MESSAGE_RETURN {
            return Err(DecodeError::UnknownType(kind));
        }
        let (to, tag) = (read_socket(&mut reader, kind & FLAG_V6 != 0)?, ReturnTag::read(&mut reader)?);
        if reader.is_empty() {
            return Err(DecodeError::Truncated);
        }
        Ok(Self { to, tag, inner: packet.len() - reader.remaining() })
    }
}

/// The header of a packet that came back through a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedPacket {
    /// The receiver's address as the relay saw it.
    pub from: SocketAddr,
    /// The place of the inner packet.
    pub inner: usize,
}

impl ReturnedPacket {
    /// Reads the header of a packet. One without an inner packet is refused.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let (v6, inner) = read_start(&mut reader, MESSAGE_BACK, packet.len())?;
        let from = read_socket(&mut reader, v6)?;
        if packet.len() - reader.remaining() > inner {
            return Err(DecodeError::Range("header length"));
        }
        Ok(Self { from, inner })
    }

    /// Replaces the header of the [`Return`] in `packet` by this header. The inner packet stays at
    /// offset `self.inner`. Returns false if `self.inner` is smaller than the new header, larger
    /// than `packet`, or above 255 (stored in one byte). After false, `packet` is unusable.
    #[must_use]
    pub fn write(&self, packet: &mut [u8]) -> bool {
        write_start(packet, MESSAGE_BACK, self.inner, self.from, |_| {})
    }
}

/// The route from a receiver through a relay to a sender: writes the header before each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnHop {
    relay: SocketAddr,
    to: SocketAddr,
    template: [u8; RETURN_MAX],
    length: usize,
}

impl ReturnHop {
    /// The way back to the sender of a packet with the header `delivered`. `relay` is the UDP
    /// source address of that packet. Make a new `ReturnHop` from each newer authenticated packet,
    /// because the return tag (permission to answer) in `delivered` expires after some minutes.
    #[must_use]
    pub fn new(relay: SocketAddr, delivered: &Delivered) -> Self {
        let to = canonical(delivered.from);
        let mut template = [0; RETURN_MAX];
        let mut writer = Writer::new(&mut template);
        writer.u8(MESSAGE_RETURN | v6_bit(to));
        write_socket(&mut writer, to);
        delivered.tag.write(&mut writer);
        let length = writer.len();
        Self { relay, to, template, length }
    }

    /// Bytes to leave free before the inner packet: 22 or 34, constant for a hop.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.length
    }

    /// The relay's address, to which packets from [`seal`](Self::seal) are sent.
    #[must_use]
    pub const fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// The sender's address, to which the relay forwards.
    #[must_use]
    pub const fn destination(&self) -> SocketAddr {
        self.to
    }

    /// Writes the header into the first [`room`](Self::room) bytes of `packet`, before the inner
    /// packet. Returns false and writes nothing if there is no inner packet.
    #[must_use]
    pub fn seal(&self, packet: &mut [u8]) -> bool {
        if packet.len() <= self.length {
            return false;
        }
        packet[..self.length].copy_from_slice(&self.template[..self.length]);
        true
    }
}

/// Reads type and header length; gives whether the address is IPv6, and where the inner packet
/// begins.
fn read_start(reader: &mut Reader<'_>, kind: u8, length: usize) -> Result<(bool, usize), DecodeError> {
    let first = reader.u8()?;
    if first & !FLAG_V6 != kind {
        return Err(DecodeError::UnknownType(first));
    }
    let inner = usize::from(reader.u8()?);
    if inner >= length { Err(DecodeError::Truncated) } else { Ok((first & FLAG_V6 != 0, inner)) }
}

fn write_start(
    packet: &mut [u8],
    kind: u8,
    inner: usize,
    from: SocketAddr,
    rest: impl FnOnce(&mut Writer<'_>),
) -> bool {
    let (Some(header), Ok(length)) = (packet.get_mut(..inner), u8::try_from(inner)) else { return false };
    let from = canonical(from);
    let mut writer = Writer::new(header);
    writer.u8(kind | v6_bit(from));
    writer.u8(length);
    write_socket(&mut writer, from);
    rest(&mut writer);
    let room = writer.room();
    if let Some(padding) = writer.claim(room) {
        padding.fill(0);
    }
    !writer.overflowed()
}

#[cfg(test)]
mod tests {
    use super::super::envelope::ENVELOPE_MAX;
    use super::super::message::tests::any_socket;
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const TAG: ReturnTag =
        ReturnTag { grant: 0x0102_0304, branch: 5, expiry: 0x0607, tag: 0x0809_0a0b_0c0d_0e0f };

    #[test]
    fn in_hex() {
        let from = "192.0.2.7:4748".parse().unwrap();
        let mut packet = [[0xaa; ENVELOPE_V4].as_slice(), b"inner"].concat();
        let delivered = Delivered { from, tag: TAG, inner: ENVELOPE_V4 };
        assert!(delivered.write(&mut packet));
        let expected = [
            b"\x64\x25\xc0\x00\x02\x07\x12\x8c".as_slice(),
            b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
            &[0; 14],
            b"inner",
        ]
        .concat();
        assert_eq!(packet, expected);

        let hop = ReturnHop::new("192.0.2.1:9".parse().unwrap(), &delivered);
        assert_eq!((hop.room(), RETURN_V4, RETURN_V6), (22, 22, 34));
        let mut packet = [[0xaa; RETURN_V4].as_slice(), b"inner"].concat();
        assert!(hop.seal(&mut packet));
        let expected = [
            b"\x66\xc0\x00\x02\x07\x12\x8c\x01\x02\x03\x04\x05\x06\x07".as_slice(),
            b"\x08\x09\x0a\x0b\x0c\x0d\x0e\x0finner",
        ]
        .concat();
        assert_eq!(packet, expected);

        let from = "[2001:db8::7]:9".parse().unwrap();
        assert!(ReturnedPacket { from, inner: RETURN_V4 }.write(&mut packet));
        let expected = [
            b"\x69\x16\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x09".as_slice(),
            b"\x00\x00inner",
        ]
        .concat();
        assert_eq!(packet, expected);
    }

    #[test]
    fn headers_that_lie_about_their_length_are_refused() {
        let mut packet = vec![0; 60];
        packet[0] = 0x64;
        for (length, expected) in [
            (0, DecodeError::Range("header length")),
            (22, DecodeError::Range("header length")),
            (60, DecodeError::Truncated),
            (255, DecodeError::Truncated),
        ] {
            packet[1] = length;
            assert_eq!(Delivered::read(&packet), Err(expected));
        }
        packet[1] = 23;
        assert!(Delivered::read(&packet).is_ok());
        let from = "192.0.2.7:4748".parse().unwrap();
        assert!(!Delivered { from, tag: TAG, inner: 22 }.write(&mut [0; 60]));
        assert!(!Delivered { from, tag: TAG, inner: 256 }.write(&mut [0; 300]));
        assert!(!ReturnedPacket { from, inner: 61 }.write(&mut [0; 60]));
    }

    proptest! {
        #[test]
        fn round_trip(from in any_socket(), grant: u32, branch: u8, expiry: u16, tag: u64, inner in ENVELOPE_V4..=ENVELOPE_MAX, body in prop::collection::vec(any::<u8>(), 1..200)) {
            let tag = ReturnTag { grant, branch, expiry, tag };
            let mut packet = vec![0xaa; inner];
            packet.extend(&body);
            let delivered = Delivered { from, tag, inner };
            prop_assert!(delivered.write(&mut packet));
            prop_assert_eq!(Delivered::read(&packet), Ok(delivered));
            prop_assert_eq!(&packet[inner..], &body[..]);

            let hop = ReturnHop::new(from, &delivered);
            let mut packet = vec![0xaa; hop.room()];
            packet.extend(&body);
            prop_assert!(hop.seal(&mut packet));
            let back = Return::read(&packet).unwrap();
            prop_assert_eq!(back, Return { to: from, tag, inner: hop.room() });
            let back = ReturnedPacket { from, inner: hop.room() };
            prop_assert!(back.write(&mut packet));
            prop_assert_eq!(ReturnedPacket::read(&packet), Ok(back));
            prop_assert_eq!(&packet[hop.room()..], &body[..]);
        }

        #[test]
        fn garbage_never_panics(kind in 0x64u8..0x6a, mut garbage in prop::collection::vec(any::<u8>(), 0..100)) {
            garbage.insert(0, kind);
            if let Ok(read) = Delivered::read(&garbage) { prop_assert!(read.inner < garbage.len()); }
            if let Ok(read) = Return::read(&garbage) { prop_assert!(read.inner < garbage.len()); }
            if let Ok(read) = ReturnedPacket::read(&garbage) { prop_assert!(read.inner < garbage.len()); }
            let _: Vec<u8> = garbage;
        }
    }
}
