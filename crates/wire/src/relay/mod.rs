//! The packets of the relay protocol, in network byte order. A relay keeps no state per flow,
//! because each packet carries its authorisation. A relay enlarges no packet, and sends only to
//! addresses that consented or from which packets came.
//!
//! | party | part |
//! |---|---|
//! | operator | gives a sender a relay word ([`Word`]): a [`Grant`] of rights and a secret |
//! | [registry](RangeKey) | may make relay words, too, with a key from the relay |
//! | receiver | asks the relay ([`Greet`]) for a [`Consent`], and passes it to the sender |
//! | sender | puts an envelope ([`Hop`]) before each packet: grant, destination, consent, MAC |
//! | relay | replaces the envelope by the sender's address and a [`ReturnTag`] ([`Delivered`]) |
//! | receiver | answers through the relay with the return tag ([`ReturnHop`], [`ReturnedPacket`]) |
//!
//! | first byte | packet | from → to | bytes before the inner packet (IPv4, IPv6) |
//! |---|---|---|---|
//! | 60 + bits | [`Forward`]: bit 0 IPv6 destination, bit 1 caveat | sender → relay | 37, 49; with caveat 44, 56 |
//! | 64, 65 | [`Delivered`]: bit 0 IPv6 sender | relay → receiver | as it came in |
//! | 66, 67 | [`Return`]: bit 0 IPv6 sender | receiver → relay | 22, 34 |
//! | 68, 69 | [`ReturnedPacket`]: bit 0 IPv6 receiver | relay → sender | as it came in |
//! | 6a | [`Greet`] | anyone → relay | 56 in all |
//! | 6c, 6d | [`Greeted`]: bit 0 IPv6 greeter | relay → greeter | 41, 53 in all |
//! | 6e | [`Notice`] | relay → sender | 30 in all |
//! | other 60 to 6f | none | | |
//! | 70, 71 | [`heartbeat`](crate::heartbeat) | relay, registry | |

mod clock;
mod deliver;
mod envelope;
mod grant;
mod greet;
mod key;
mod minted;
mod notice;
mod word;

pub use clock::RelayClock;
pub use deliver::{Delivered, RETURN_MAX, RETURN_V4, RETURN_V6, Return, ReturnHop, ReturnedPacket};
pub use envelope::{
    ENVELOPE_MAX, ENVELOPE_V4, ENVELOPE_V4_NARROWED, ENVELOPE_V6, ENVELOPE_V6_NARROWED, Forward, Hop,
    NoticeTrust, TIME_WINDOW,
};
pub use grant::{
    CAVEAT_LEN, Caveat, GRANT_EPOCH_SECONDS, GRANT_LEN, Grant, Minute, QuotaClass, RateClass, Scope, Terms,
};
pub use greet::{CONSENT_LEN, CONSENT_LIFE, GREET_LEN, GREETED_MAX, Greet, Greeted};
pub use key::{Consent, EXPIRY_UNIT, GrantSecret, MacKey, RelayKey, ReturnTag, restore};
pub use minted::{EpochKey, GrantId, Minted, RANGE_COUNT, RangeKey, SERIAL_COUNT};
pub use notice::{NOTICE_LEN, Notice, Reason};
pub use word::{MAX_ADDRESSES, RelayWordError, WORD_PREFIX, Word};

use crate::codec::{DecodeError, Reader, Writer};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

const FLAG_V6: u8 = 1;
const FLAG_NARROWED: u8 = 2;
const MESSAGE_FORWARD: u8 = 0x60;
const MESSAGE_DELIVERED: u8 = 0x64;
const MESSAGE_RETURN: u8 = 0x66;
const MESSAGE_BACK: u8 = 0x68;
const MESSAGE_GREET: u8 = 0x6a;
const MESSAGE_GREETED: u8 = 0x6c;
const MESSAGE_NOTICE: u8 = 0x6e;

/// The type of a relay packet, which its first byte (0x60 to 0x6f) determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageType {
    /// The packet is a [`Forward`].
    Forward,
    /// The packet is a [`Delivered`].
    Delivered,
    /// The packet is a [`Return`].
    Return,
    /// The packet is a [`ReturnedPacket`].
    Back,
    /// The packet is a [`Greet`].
    Greet,
    /// The packet is a [`Greeted`].
    Greeted,
    /// The packet is a [`Notice`].
    Notice,
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
            0x6c..=0x6d => Self::Greeted,
            0x6e => Self::Notice,
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

const fn socket_len(address: &SocketAddr) -> usize {
    if address.is_ipv4() { 6 } else { 18 }
}

const fn v6_bit(address: SocketAddr) -> u8 {
    if address.is_ipv4() { 0 } else { FLAG_V6 }
}

fn write_socket(writer: &mut Writer<'_>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => writer.bytes(&ip.octets()),
        IpAddr::V6(ip) => writer.bytes(&ip.octets()),
    }
    writer.u16(address.port());
}

/// Reads an IP address and port. An IPv4-mapped address in an IPv6 field is refused. So each
/// address has one form, and a rule about IPv4 addresses cannot be bypassed.
fn read_socket(reader: &mut Reader<'_>, v6: bool) -> Result<SocketAddr, DecodeError> {
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
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    pub(super) fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut buffer = vec![0xaa; 2000];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        assert!(!writer.overflowed());
        writer.written().to_vec()
    }

    pub(super) fn any_socket() -> impl Strategy<Value = SocketAddr> {
        prop_oneof![
            any::<([u8; 4], u16)>().prop_map(SocketAddr::from),
            any::<([u8; 16], u16)>().prop_map(|pair| canonical(pair.into())),
        ]
    }

    #[test]
    fn each_first_byte_has_one_meaning() {
        let known = (0..=255).filter(|first| MessageType::of(*first).is_some()).collect::<Vec<_>>();
        assert_eq!(known, (0x60..=0x6a).chain(0x6c..=0x6e).collect::<Vec<_>>());
    }

    #[test]
    fn a_mapped_address_is_refused_where_an_ipv6_address_stands() {
        let field = [&[0; 10][..], &[0xff, 0xff, 127, 0, 0, 1], &[0, 80]].concat();
        assert_eq!(read_socket(&mut Reader::new(&field), true), Err(DecodeError::Range("address")));
        assert_eq!(canonical("[::ffff:127.0.0.1]:80".parse().unwrap()), "127.0.0.1:80".parse().unwrap());
    }
}
