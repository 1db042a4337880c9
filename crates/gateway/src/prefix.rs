//! Address prefixes and port ranges, as configurations write them.

use alloc::string::ToString;
use byway_wire::{DecodeError, Reader, Writer};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

/// Why a prefix or a range of ports was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadRange {
    /// Not an address.
    #[error("not an IP address: write it as 192.0.2.0/24, 2001:db8::/32, or a single address")]
    Address,
    /// The length behind the slash is no number, or too large for the address.
    #[error("the length behind the slash must be at most {0}")]
    Length(u8),
    /// Bits behind the length are set: perhaps another prefix was meant.
    #[error("bits behind the length are set; the prefix would be {0}")]
    HostBits(Prefix),
    /// Not a port or a range of ports.
    #[error("not a port or a range of ports: write 873 or 8000-8010")]
    Ports,
    /// The first port is larger than the last.
    #[error("the first port of a range must not be larger than the last")]
    Reversed,
}

/// The addresses that share their first bits. No bits behind them are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The prefix of `length` bits that `address` is in; lengths too large are cut to the whole address.
    #[must_use]
    pub fn of(address: IpAddr, length: u8) -> Self {
        let (bits, length) = (bits(address), length.min(width(address)));
        let masked = bits & mask(width(address), length);
        let address = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(masked as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(masked)),
        };
        Self { address, length }
    }

    /// The first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits that its addresses share.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether `address` is in it. An address of the other version never is.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Self::of(address, self.length) == *self
    }

    /// Whether all of `other` is in it.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// Its first and its last address as numbers.
    #[must_use]
    pub(crate) fn interval(&self) -> (u128, u128) {
        let (first, width) = (bits(self.address), width(self.address));
        (first, first | mask(width, width) & !mask(width, self.length))
    }

    /// Writes the length, with [`V6_LENGTHS`] added for IPv6, and as many bytes as it needs.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        match self.address {
            IpAddr::V4(v4) => {
                writer.u8(self.length);
                writer.bytes(v4.octets().get(..bytes(self.length)).unwrap_or_default());
            }
            IpAddr::V6(v6) => {
                writer.u8(V6_LENGTHS + self.length);
                writer.bytes(v6.octets().get(..bytes(self.length)).unwrap_or_default());
            }
        }
    }

    /// Reads what [`write`](Self::write) wrote. Set bits behind the length are refused.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = reader.u8()?;
        let (address, length): (IpAddr, u8) = if length < V6_LENGTHS {
            (Ipv4Addr::from(address_bytes::<4>(reader, length)?).into(), length)
        } else {
            let length = length - V6_LENGTHS;
            (Ipv6Addr::from(address_bytes::<16>(reader, length)?).into(), length)
        };
        let prefix = Self::of(address, length);
        if prefix.address == address { Ok(prefix) } else { Err(DecodeError::Range("prefix")) }
    }
}

/// What is added to the length of an IPv6 prefix on the wire; lengths of IPv4 end below it.
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

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as a number.
pub(crate) const fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits() as u128,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The upper `length` of `width` bits.
const fn mask(width: u8, length: u8) -> u128 {
    match length {
        0 => 0,
        _ => (u128::MAX << (128 - length)) >> (128 - width),
    }
}

impl FromStr for Prefix {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| BadRange::Address)?;
        let most = width(address);
        let length = length.map_or(Ok(most), str::parse).map_err(|_| BadRange::Length(most))?;
        if length > most {
            return Err(BadRange::Length(most));
        }
        let prefix = Self::of(address, length);
        if prefix.address == address { Ok(prefix) } else { Err(BadRange::HostBits(prefix)) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == width(self.address) {
            write!(f, "{}", self.address)
        } else {
            write!(f, "{}/{}", self.address, self.length)
        }
    }
}

/// Ports from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// All ports.
    pub const ALL: Self = Self { first: 0, last: u16::MAX };

    /// The ports from `first` to `last`. `None` if there are none.
    #[must_use]
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first <= last { Some(Self { first, last }) } else { None }
    }

    /// The first port.
    #[must_use]
    pub const fn first(&self) -> u16 {
        self.first
    }

    /// The last port.
    #[must_use]
    pub const fn last(&self) -> u16 {
        self.last
    }

    /// Whether `port` is among them.
    #[must_use]
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl FromStr for Ports {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let port = |text: &str| text.trim().parse().map_err(|_| BadRange::Ports);
        match text.split_once('-') {
            Some((first, last)) => Self::new(port(first)?, port(last)?).ok_or(BadRange::Reversed),
            None => port(text).map(|port| Self { first: port, last: port }),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last {
            serializer.serialize_u16(self.first)
        } else {
            serializer.collect_str(self)
        }
    }
}

struct PrefixVisitor;

impl Visitor<'_> for PrefixVisitor {
    type Value = Prefix;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address or a prefix, such as \"192.0.2.0/24\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Prefix, E> {
        text.parse().map_err(|error: BadRange| E::custom(alloc::format!("`{text}`: {error}")))
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PrefixVisitor)
    }
}

struct PortsVisitor;

impl Visitor<'_> for PortsVisitor {
    type Value = Ports;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a port, or a range such as \"8000-8010\"")
    }

    fn visit_u64<E: Error>(self, port: u64) -> Result<Ports, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_i64<E: Error>(self, port: i64) -> Result<Ports, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Ports, E> {
        text.parse().map_err(|error: BadRange| E::custom(alloc::format!("`{text}`: {error}")))
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PortsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn any_prefix() -> impl Strategy<Value = Prefix> {
        (any::<IpAddr>(), 0u8..=128).prop_map(|(address, length)| Prefix::of(address, length))
    }

    #[test]
    fn what_is_written_wrongly_is_explained() {
        let prefix = |text: &str| text.parse::<Prefix>().map_err(|error| error.to_string());
        assert!(prefix("10.0.0/8").unwrap_err().starts_with("not an IP address"));
        assert_eq!(prefix("10.0.0.0/33").unwrap_err(), "the length behind the slash must be at most 32");
        assert_eq!(
            prefix("10.0.0.1/8").unwrap_err(),
            "bits behind the length are set; the prefix would be 10.0.0.0/8"
        );
        assert_eq!(prefix("2001:db8::1").unwrap().to_string(), "2001:db8::1");
        assert_eq!("9-7".parse::<Ports>(), Err(BadRange::Reversed));
        assert_eq!("70000".parse::<Ports>(), Err(BadRange::Ports));
        assert_eq!("8000 - 8010".parse::<Ports>().map(|ports| ports.to_string()), Ok("8000-8010".into()));
    }

    #[test]
    fn an_interval_is_its_first_and_last_address() {
        let interval = |text: &str| text.parse::<Prefix>().unwrap().interval();
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
