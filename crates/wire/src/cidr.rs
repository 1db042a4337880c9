//! Networks in CIDR notation (RFC 4632, RFC 4291 section 2.3).

use crate::{DecodeError, Reader, Writer};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use ipnet::IpNet;
use thiserror::Error;

/// Why a text is no prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// The text is not an address.
    #[error("not an IP address: write it as 192.0.2.0/24, 2001:db8::/32, or a single address")]
    Address,
    /// The length behind the slash is no number, or too large for the address.
    #[error("the length behind the slash must be at most {0}")]
    Length(u8),
    /// Bits behind the length are set: perhaps another prefix was meant.
    #[error("bits behind the length are set; the prefix would be {0}")]
    HostBits(Prefix),
}

/// A network: all addresses that share their first bits. The bits behind these are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpNet);

impl Prefix {
    /// The prefix of `length` bits that `address` is in; lengths too large are cut to the whole
    /// address.
    #[must_use]
    pub fn of(address: IpAddr, length: u8) -> Self {
        Self(IpNet::new(address, length).map_or_else(|_| IpNet::from(address), |net| net.trunc()))
    }

    /// The first address of the network.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.0.addr()
    }

    /// Returns the number of bits that all addresses of the network share.
    #[must_use]
    pub fn length(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether `address` is in the network. False for an address of the other IP version.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Whether all addresses of `other` are in this network.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }

    /// The first and the last address of the prefix as numbers.
    #[must_use]
    pub fn interval(&self) -> (u128, u128) {
        (bits(self.0.network()), bits(self.0.broadcast()))
    }

    /// Writes the length, with `V6_LENGTHS` added for IPv6, and the bytes of the address that the
    /// length covers.
    pub fn write(&self, writer: &mut Writer<'_>) {
        let length = self.length();
        match self.address() {
            IpAddr::V4(v4) => {
                writer.u8(length);
                writer.bytes(v4.octets().get(..bytes(length)).unwrap_or_default());
            }
            IpAddr::V6(v6) => {
                writer.u8(V6_LENGTHS + length);
                writer.bytes(v6.octets().get(..bytes(length)).unwrap_or_default());
            }
        }
    }

    /// Reads a prefix that [`write`](Self::write) wrote. Refuses bits set behind the length.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = reader.u8()?;
        let (address, length): (IpAddr, u8) = if length < V6_LENGTHS {
            (Ipv4Addr::from(address_bytes::<4>(reader, length)?).into(), length)
        } else {
            let length = length - V6_LENGTHS;
            (Ipv6Addr::from(address_bytes::<16>(reader, length)?).into(), length)
        };
        let prefix = Self::of(address, length);
        if prefix.address() == address { Ok(prefix) } else { Err(DecodeError::Range("prefix")) }
    }
}

/// Added to the length of an IPv6 prefix on the wire. Lengths of IPv4 prefixes are smaller.
const V6_LENGTHS: u8 = 64;

fn address_bytes<const N: usize>(reader: &mut Reader<'_>, length: u8) -> Result<[u8; N], DecodeError> {
    let mut address = [0; N];
    let room = address.get_mut(..bytes(length)).ok_or(DecodeError::Range("prefix length"))?;
    room.copy_from_slice(reader.bytes(bytes(length))?);
    Ok(address)
}

const fn bytes(bits: u8) -> usize {
    (bits as usize).div_ceil(8)
}

/// The address as a number.
const fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits() as u128,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `ADDRESS/LENGTH`, or a single `ADDRESS`. An IPv4-mapped IPv6 address is read as the
    /// IPv4 address.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address)?;
        let address = address.to_canonical();
        let most = IpNet::from(address).max_prefix_len();
        let length = length.map_or(Ok(most), str::parse).map_err(|_| PrefixError::Length(most))?;
        if length > most {
            return Err(PrefixError::Length(most));
        }
        let prefix = Self::of(address, length);
        if prefix.address() == address { Ok(prefix) } else { Err(PrefixError::HostBits(prefix)) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length() == self.0.max_prefix_len() {
            write!(f, "{}", self.address())
        } else {
            write!(f, "{}", self.0)
        }
    }
}

#[cfg(feature = "serde")]
mod text {
    use super::{Prefix, PrefixError};
    use core::fmt;
    use serde::de::{Deserialize, Deserializer, Error, Visitor};
    use serde::ser::{Serialize, Serializer};

    impl Serialize for Prefix {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    struct PrefixVisitor;

    impl Visitor<'_> for PrefixVisitor {
        type Value = Prefix;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an address or a prefix, such as \"192.0.2.0/24\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Prefix, E> {
            text.parse().map_err(|error: PrefixError| E::custom(format_args!("`{text}`: {error}")))
        }
    }

    impl<'de> Deserialize<'de> for Prefix {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(PrefixVisitor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn any_prefix() -> impl Strategy<Value = Prefix> {
        let address = any::<IpAddr>().prop_map(|address| address.to_canonical());
        (address, 0u8..=128).prop_map(|(address, length)| Prefix::of(address, length))
    }

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_wrongly_is_explained() {
        let wrong = |text: &str| text.parse::<Prefix>().unwrap_err();
        assert!(wrong("10.0.0/8").to_string().starts_with("not an IP address"));
        for text in ["", "ten/8", "10.0.0.0.0/8"] {
            assert_eq!(wrong(text), PrefixError::Address, "{text}");
        }
        assert_eq!(wrong("10.0.0.0/33").to_string(), "the length behind the slash must be at most 32");
        for (text, most) in [("::/129", 128), ("10.0.0.0/", 32), ("10.0.0.0/-1", 32)] {
            assert_eq!(wrong(text), PrefixError::Length(most), "{text}");
        }
        assert_eq!(
            wrong("10.0.0.1/8").to_string(),
            "bits behind the length are set; the prefix would be 10.0.0.0/8"
        );
        assert_eq!(prefix("2001:db8::1").to_string(), "2001:db8::1");
        assert_eq!(prefix("::ffff:10.0.0.1"), prefix("10.0.0.1"));
    }

    #[test]
    fn an_interval_is_its_first_and_last_address() {
        let interval = |text: &str| prefix(text).interval();
        assert_eq!(interval("10.1.0.0/16"), (0x0a01_0000, 0x0a01_ffff));
        assert_eq!(interval("0.0.0.0/0"), (0, u32::MAX.into()));
        assert_eq!(interval("::/0"), (0, u128::MAX));
        assert_eq!(interval("::5"), (5, 5));
    }

    proptest! {
        #[test]
        fn as_text_and_as_bytes_it_stays_the_same(prefix in any_prefix()) {
            prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
            let mut buffer = [0; 17];
            let mut writer = Writer::new(&mut buffer);
            prefix.write(&mut writer);
            prop_assert!(!writer.overflowed());
            prop_assert_eq!(Prefix::read(&mut Reader::new(writer.written())), Ok(prefix));
        }

        #[test]
        fn an_address_is_in_a_prefix_if_it_lies_in_its_interval(prefix in any_prefix(), address: IpAddr, near: bool, low: u8) {
            let address = match (near, prefix.address()) {
                (true, IpAddr::V4(v4)) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() ^ u32::from(low))),
                (true, IpAddr::V6(v6)) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() ^ u128::from(low))),
                _ => address,
            };
            let (first, last) = prefix.interval();
            let within = (first..=last).contains(&bits(address)) && address.is_ipv4() == prefix.address().is_ipv4();
            prop_assert_eq!(prefix.contains(address), within);
            prop_assert_eq!(prefix.covers(&Prefix::of(address, 128)), within);
        }
    }
}
