//! The common parts of relay packets: their first bytes, and the form of addresses.

use crate::codec::{DecodeError, Reader, Writer};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

pub(super) const FLAG_V6: u8 = 1;
pub(super) const FLAG_NARROWED: u8 = 2;
pub(super) const MESSAGE_FORWARD: u8 = 0x60;
pub(super) const MESSAGE_DELIVERED: u8 = 0x64;
pub(super) const MESSAGE_RETURN: u8 = 0x66;
pub(super) const MESSAGE_BACK: u8 = 0x68;
pub(super) const MESSAGE_GREET: u8 = 0x6a;
pub(super) const MESSAGE_OPENING: u8 = 0x6b;
pub(super) const MESSAGE_GREETED: u8 = 0x6c;
pub(super) const MESSAGE_NOTICE: u8 = 0x6e;
pub(super) const MESSAGE_LOCATION: u8 = 0x6f;

/// The type of a relay packet, which its first byte (0x60 to 0x6f) determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageType {
    /// The packet is a [`Forward`](super::Forward).
    Forward,
    /// The packet is a [`Delivered`](super::Delivered).
    Delivered,
    /// The packet is a [`Return`](super::Return).
    Return,
    /// The packet is a [`ReturnedPacket`](super::ReturnedPacket).
    Back,
    /// The packet is a [`Greet`](super::Greet).
    Greet,
    /// The packet is a [`Greeted`](super::Greeted).
    Greeted,
    /// The packet is a [`Notice`](super::Notice).
    Notice,
    /// The packet is a [`Location`](super::Location).
    Location,
    /// The packet is an [`Opening`](super::Opening).
    Opening,
}

impl MessageType {
    /// The type of a relay packet with this first byte. `None`: no type has it.
    #[must_use]
    pub const fn of(first: u8) -> Option<Self> {
        Some(match first {
            0x60..=0x63 => Self::Forward,
            0x64..=0x65 => Self::Delivered,
            0x66..=0x67 => Self::Return,
            0x68..=0x69 => Self::Back,
            0x6a => Self::Greet,
            0x6b => Self::Opening,
            0x6c..=0x6d => Self::Greeted,
            0x6e => Self::Notice,
            0x6f => Self::Location,
            _ => return None,
        })
    }
}

/// `address` in the form that envelopes use. An IPv4-mapped IPv6 address, as dual-stack sockets
/// show it, becomes the IPv4 address. Flow label and scope id become zero, because they mean
/// nothing to other hosts.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

pub(super) const fn socket_len(address: &SocketAddr) -> usize {
    if address.is_ipv4() { 6 } else { 18 }
}

pub(super) const fn v6_bit(address: SocketAddr) -> u8 {
    if address.is_ipv4() { 0 } else { FLAG_V6 }
}

pub(super) fn write_socket(writer: &mut Writer<'_>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => writer.bytes(&ip.octets()),
        IpAddr::V6(ip) => writer.bytes(&ip.octets()),
    }
    writer.u16(address.port());
}

/// Reads an IP address and port. An IPv4-mapped address in an IPv6 field is refused. So each
/// address has one form, and a rule about IPv4 addresses cannot be bypassed.
pub(super) fn read_socket(reader: &mut Reader<'_>, v6: bool) -> Result<SocketAddr, DecodeError> {
    let ip = if v6 {
        let ip = Ipv6Addr::from(reader.array::<16>()?);
        if ip.to_ipv4_mapped().is_some() {
            return Err(DecodeError::Range("address"));
        }
        IpAddr::V6(ip)
    } else {
        IpAddr::from(reader.array::<4>()?)
    };
    Ok(SocketAddr::new(ip, reader.u16()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    pub(in super::super) fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut buffer = vec![0xaa; 2000];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        assert!(!writer.overflowed());
        writer.written().to_vec()
    }

    pub(in super::super) fn any_socket() -> impl Strategy<Value = SocketAddr> {
        prop_oneof![
            any::<([u8; 4], u16)>().prop_map(SocketAddr::from),
            any::<([u8; 16], u16)>().prop_map(|pair| canonical(pair.into())),
        ]
    }

    #[test]
    fn each_first_byte_has_one_meaning() {
        let known = (0..=255).filter(|first| MessageType::of(*first).is_some()).collect::<Vec<_>>();
        assert_eq!(known, (0x60..=0x6f).collect::<Vec<_>>());
    }

    #[test]
    fn a_mapped_address_is_refused_where_an_ipv6_address_stands() {
        let field = [&[0; 10][..], &[0xff, 0xff, 127, 0, 0, 1], &[0, 80]].concat();
        assert_eq!(read_socket(&mut Reader::new(&field), true), Err(DecodeError::Range("address")));
        assert_eq!(canonical("[::ffff:127.0.0.1]:80".parse().unwrap()), "127.0.0.1:80".parse().unwrap());
    }
}
