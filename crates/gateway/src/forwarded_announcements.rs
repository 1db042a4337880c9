//! Announcements that a gateway passes on: which hosts another gateway (the origin) serves, and the
//! origin's addresses (Harp, III.G).
//!
//! ```text
//! TABLE   version (1), hops (1), the origin's key (32), number of addresses (1: 0 to 2), each: IP length 1, IP, port 2,
//!         a part of the origin's announcement (see `serves`)
//! ```
//!
//! The receiving gateway's configuration file says for which hosts this origin may announce that it
//! serves them.

use alloc::vec::Vec;
use byway_engine::handshake::PublicKey;
use byway_wire::frame::{read_address, write_address};
use byway_wire::{DecodeError, Reader, Writer};
use core::net::SocketAddr;

/// The most addresses of an origin: one of each IP version.
pub const MAX_ADDRESSES: usize = 2;
/// The most gateways that pass an announcement on, one after the other.
pub const MAX_HOPS: u8 = 4;

const TABLE_VERSION: u8 = 1;
const MAX_HEADER_LEN: usize = 1 + 1 + 32 + 1 + MAX_ADDRESSES * 19;

/// A part of an origin's announcement, passed on by other gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedPart<'a> {
    /// Number of gateways that have passed the part on.
    pub hops: u8,
    /// The gateway that made the announcement.
    pub origin: PublicKey,
    /// The addresses of the origin.
    pub addresses: Vec<SocketAddr>,
    /// The part as bytes, for
    /// [`serves::AnnouncementPart::read`](crate::serves::AnnouncementPart::read).
    pub part: &'a [u8],
}

impl<'a> ForwardedPart<'a> {
    /// Reads a passed-on part.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != TABLE_VERSION {
            return Err(DecodeError::Range("version of a table"));
        }
        let (hops, origin) = (reader.u8()?, PublicKey(reader.array()?));
        let count = usize::from(reader.u8()?);
        if !(1..=MAX_HOPS).contains(&hops) || count > MAX_ADDRESSES {
            return Err(DecodeError::Range("hops or addresses"));
        }
        let mut addresses = Vec::with_capacity(count);
        for _ in 0..count {
            let address = read_address(&mut reader)?;
            let ip = address.ip();
            if address.port() == 0 || ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
                return Err(DecodeError::Range("address of a gateway"));
            }
            addresses.push(address);
        }
        Ok(Self { hops, origin, addresses, part: reader.take_rest() })
    }

    /// Encodes the passed-on part. Addresses beyond the limit are left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![0; MAX_HEADER_LEN + self.part.len()];
        let mut writer = Writer::new(&mut bytes);
        let addresses = self.addresses.get(..MAX_ADDRESSES).unwrap_or(&self.addresses);
        writer.u8(TABLE_VERSION);
        writer.u8(self.hops);
        writer.bytes(&self.origin.0);
        writer.u8(addresses.len() as u8);
        addresses.iter().for_each(|address| write_address(&mut writer, *address));
        writer.bytes(self.part);
        let length = writer.len();
        bytes.truncate(length);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(hops: u8, addresses: &[&str]) -> ForwardedPart<'static> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        ForwardedPart { hops, origin: PublicKey([7; 32]), addresses, part: b"part" }
    }

    #[test]
    fn in_hex() {
        let bytes = table(2, &["10.1.2.3:4749"]).to_bytes();
        let expected = [&[1, 2][..], &[7; 32], &[1, 4, 10, 1, 2, 3, 0x12, 0x8d], b"part"].concat();
        assert_eq!(bytes, expected);
        assert_eq!(ForwardedPart::read(&bytes), Ok(table(2, &["10.1.2.3:4749"])));
        let both = table(1, &["10.1.2.3:1", "[2001:db8::1]:2"]);
        assert_eq!(ForwardedPart::read(&both.to_bytes()), Ok(both));
    }

    #[test]
    fn what_is_none_is_refused() {
        let wrong = Err(DecodeError::Range("hops or addresses"));
        assert_eq!(ForwardedPart::read(&table(0, &[]).to_bytes()), wrong);
        assert_eq!(ForwardedPart::read(&table(MAX_HOPS + 1, &[]).to_bytes()), wrong);
        for address in ["0.0.0.0:1", "10.0.0.1:0", "224.0.0.1:1", "127.0.0.1:1", "[::1]:1"] {
            let read = table(1, &[address]).to_bytes();
            assert_eq!(
                ForwardedPart::read(&read),
                Err(DecodeError::Range("address of a gateway")),
                "{address}"
            );
        }
        assert_eq!(ForwardedPart::read(&[2]), Err(DecodeError::Range("version of a table")));
        assert_eq!(ForwardedPart::read(&[1, 1, 7]), Err(DecodeError::Truncated));
    }
}
